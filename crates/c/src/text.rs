//! Texts that C passes by pointer.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::Error;

/// A path of C.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and live for `'a`.
pub(crate) unsafe fn path<'a>(text: *const c_char, what: &'static str) -> Result<&'a Path, Error> {
    if text.is_null() {
        return Err(Error::Null(what));
    }
    // SAFETY: not null, checked above; by the contract of `path`, `text` ends with a zero.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    if bytes.is_empty() {
        return Err(Error::Argument(format!("{what} is empty")));
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// A word of C.
///
/// # Safety
/// As [`path`].
pub(crate) unsafe fn word<'a>(text: *const c_char, what: &'static str) -> Result<&'a str, Error> {
    // SAFETY: `word` has the contract of `path`.
    let path = unsafe { path(text, what) }?;
    path.to_str().ok_or_else(|| Error::Argument(format!("{what} is not UTF-8")))
}

/// Bytes of C.
///
/// # Safety
/// `bytes` points to `length` bytes that nobody changes during `'a`; if `length` is 0 it may be anything.
#[inline]
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, length: usize) -> Result<&'a [u8], Error> {
    if length == 0 {
        return Ok(&[]);
    }
    if bytes.is_null() {
        return Err(Error::Null("the bytes"));
    }
    if length > isize::MAX as usize {
        return Err(Error::Argument(format!("a length of {length} is none")));
    }
    // SAFETY: not null, and of a length that a slice may have; the rest is the caller's duty.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), length) })
}

/// Writes to where C wants a value, if it does.
///
/// # Safety
/// `place` is null or points to a place for a `T`.
#[inline]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, and by the contract of `put` a place for a `T`.
        unsafe { place.write(value) };
    }
}

/// Checks that C has given a place.
///
/// # Safety
/// As [`put`].
#[inline]
pub(crate) unsafe fn require_place<T>(place: *mut T, what: &'static str) -> Result<*mut T, Error> {
    if place.is_null() { Err(Error::Null(what)) } else { Ok(place) }
}
