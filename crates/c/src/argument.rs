//! The functions of the header: C's arguments as safe Rust values, and the macro that defines a function with them.
//!
//! ```text
//!   C: pointers, numbers ──▶ Argument::from_c ──▶ body with safe references ──▶ call::run ──▶ a value, or a code
//!                            (in `exported!`)
//! ```

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::call::Handle;
use crate::error::Error;
use crate::market::{Level, MarketCallback};
use crate::options::Options;
use crate::subscription::Callback;

/// Defines functions of the header.
///
/// An argument is written with its type in Rust and is an [`Argument::Raw`] of that type in C. The body is of type
/// `Result`: its value goes to C, its error becomes the code and the message of the thread, and so does a panic. Where
/// the first argument is written `&mut T` it is a handle in C, and the whole body has the object behind it.
macro_rules! exported {
    ($(fn $name:ident($($arguments:tt)*) -> $result:ty $body:block)*) => {
        $($crate::argument::exported!(@function fn $name($($arguments)*) -> $result $body);)*
    };
    (@function fn $name:ident($handle:ident: &mut $object:ty $(, $argument:ident: $kind:ty)* $(,)?) -> $result:ty
        $body:block) => {
        $crate::argument::exported!(@function
            fn $name($handle: $crate::argument::HandlePointer<$object> $(, $argument: $kind)*) -> $result {
                $handle.with(|$handle| $body)
            }
        );
    };
    (@function fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty $body:block) => {
        #[doc = concat!("`", stringify!($name), "` of the header.")]
        ///
        /// # Safety
        /// - Each argument is what the header says of it, under "Handles", "Threads" and at the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: <$kind as $crate::argument::Argument>::Raw),*
        ) -> $result {
            $crate::call::run(|| {
                $(
                    // SAFETY: what the header says of an argument is the contract of `from_c`, and the caller upholds
                    // it: it is the duty in the documentation of this function.
                    let $argument = unsafe { <$kind as $crate::argument::Argument>::from_c($argument) };
                )*
                $body
            })
        }
    };
}
pub(crate) use exported;

/// An argument of a function of the header, as the body of the function sees it.
pub trait Argument {
    /// Its type in C.
    type Raw;

    /// Takes the argument over from C.
    ///
    /// # Safety
    /// - `raw` is what the header says of the argument: a pointer is null or points to what the implementation names.
    /// - While the value lives nobody frees that, and no other thread writes to it.
    unsafe fn from_c(raw: Self::Raw) -> Self;
}

/// A pointer to a handle: null, or alive and used by this thread alone.
#[derive(Debug)]
pub struct HandlePointer<T>(*mut Handle<T>);

impl<T> Argument for HandlePointer<T> {
    type Raw = *mut Handle<T>;

    unsafe fn from_c(raw: *mut Handle<T>) -> Self {
        Self(raw)
    }
}

impl<T> HandlePointer<T> {
    /// Calls a function with the object of the handle.
    ///
    /// # Errors
    /// Fails if the handle is null, is in use or was broken by a panic, or if the function fails.
    #[inline]
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        // SAFETY: null or alive, and of this thread alone, by the contract of `from_c`.
        unsafe { Handle::with(self.0, call) }
    }

    /// Takes the object of the handle back, and whether a panic left it broken. Returns `None` for null.
    ///
    /// # Errors
    /// Fails if the handle is in use. The object then stays.
    pub(crate) fn take_object(self) -> Result<Option<(T, bool)>, Error> {
        // SAFETY: as in `with`. The handle is gone for C, too: the header forbids to use one that was closed.
        unsafe { Handle::take_object(self.0) }
    }
}

/// A pointer that is read: null, or to a `T`; where `T` is `c_char`, to a string that ends with zero.
#[derive(Debug)]
pub struct Input<T>(*const T);

impl<T> Argument for Input<T> {
    type Raw = *const T;

    unsafe fn from_c(raw: *const T) -> Self {
        Self(raw)
    }
}

impl<T> Input<T> {
    pub(crate) fn pointer(&self) -> *const T {
        self.0
    }
}

impl Input<c_char> {
    /// Returns the text as a path. `argument` is its name in messages.
    ///
    /// # Errors
    /// Fails if the text is null or empty.
    pub(crate) fn path(&self, argument: &'static str) -> Result<&Path, Error> {
        if self.0.is_null() {
            return Err(Error::Null(argument));
        }
        // SAFETY: not null, checked above; ends with a zero and lives as long as `self` by the contract of `from_c`.
        let bytes = unsafe { CStr::from_ptr(self.0) }.to_bytes();
        if bytes.is_empty() {
            return Err(Error::Argument(format!("{argument} is empty")));
        }
        Ok(Path::new(OsStr::from_bytes(bytes)))
    }

    /// Returns the text as a word. `argument` is its name in messages.
    ///
    /// # Errors
    /// Fails if the text is null, empty or not UTF-8.
    pub(crate) fn word(&self, argument: &'static str) -> Result<&str, Error> {
        let path = self.path(argument)?;
        path.to_str().ok_or_else(|| Error::Argument(format!("{argument} is not UTF-8")))
    }

    /// Returns the text as a word, or `None` if it is null.
    ///
    /// # Errors
    /// Fails as [`Input::word`] does, except for null.
    pub(crate) fn optional_word(&self, argument: &'static str) -> Result<Option<&str>, Error> {
        if self.0.is_null() { Ok(None) } else { self.word(argument).map(Some) }
    }
}

impl Input<c_void> {
    /// Returns `length` bytes.
    ///
    /// # Errors
    /// Fails if the pointer is null and the length is not 0, or if the length exceeds the address space.
    ///
    /// # Safety
    /// The caller must make sure that `length` bytes are readable. If `length` is 0, the pointer may be anything.
    #[inline]
    pub(crate) unsafe fn bytes(&self, length: usize) -> Result<&[u8], Error> {
        if length == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Error::Null("the bytes"));
        }
        if length > isize::MAX as usize {
            return Err(Error::Argument(format!("a length of {length} is none")));
        }
        // SAFETY: not null, and of a length that a slice may have, checked above; `length` bytes are there by the
        // contract of `bytes`, and unchanged while `self` lives by that of `from_c`.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), length) })
    }
}

/// A pointer that is written to: null, or to room for a `T`.
#[derive(Debug)]
pub struct Output<T>(*mut T);

impl<T> Argument for Output<T> {
    type Raw = *mut T;

    unsafe fn from_c(raw: *mut T) -> Self {
        Self(raw)
    }
}

impl<T> Output<T> {
    /// Checks that C passed a pointer for the value. `argument` is its name in messages.
    ///
    /// # Errors
    /// Fails if the pointer is null.
    #[inline]
    pub(crate) fn require(&self, argument: &'static str) -> Result<(), Error> {
        if self.0.is_null() { Err(Error::Null(argument)) } else { Ok(()) }
    }

    /// Writes the value if C passed a pointer for it.
    #[inline]
    pub(crate) fn write(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, checked above; room for a `T` by the contract of `from_c`.
            unsafe { self.0.write(value) };
        }
    }
}

/// Arguments that are the same on both sides: numbers, and pointers that a body looks at itself.
macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl Argument for $kind {
            type Raw = Self;

            unsafe fn from_c(raw: Self) -> Self {
                raw
            }
        }
    )*};
}

plain!(u32, u64, i64, usize, *mut c_void, *mut Level, *mut Options, Callback, MarketCallback);
