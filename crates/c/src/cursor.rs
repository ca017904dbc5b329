//! Named places for C, apart from a subscription.

use std::ffi::c_char;

use unitape_model::Position;
use unitape_tape::Cursor;

use crate::call::run;
use crate::error::{Error, code};
use crate::text;

/// The cursor of that name, if there is one: looking does not make it.
///
/// # Safety
/// Both are null or end with a zero.
unsafe fn find(dir: *const c_char, name: *const c_char) -> Result<Option<Cursor>, Error> {
    // SAFETY: by unitape.h, `dir` and `name` are null or C strings.
    let (dir, name) = unsafe { (text::path(dir, "dir")?, text::word(name, "name")?) };
    let there = Cursor::names(dir)?.iter().any(|other| other == name);
    Ok(there.then(|| Cursor::open(dir, name)).transpose()?)
}

/// `unitape_cursor_load` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_cursor_load(
    dir: *const c_char,
    name: *const c_char,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, cursor) = unsafe { (text::require_place(position, "position")?, find(dir, name)?) };
        let Some(at) = cursor.map_or(Ok(None), |cursor| cursor.load())? else { return Ok(0) };
        // SAFETY: as above.
        unsafe { text::put(place, at.0) };
        Ok(1)
    })
}

/// `unitape_cursor_store` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_cursor_store(dir: *const c_char, name: *const c_char, position: u64) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `dir` and `name` are null or C strings.
        let (dir, name) = unsafe { (text::path(dir, "dir")?, text::word(name, "name")?) };
        Cursor::open(dir, name)?.store(Position(position))?;
        Ok(code::OK)
    })
}

/// `unitape_cursor_delete` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_cursor_delete(dir: *const c_char, name: *const c_char) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `dir` and `name` are null or C strings.
        if let Some(cursor) = unsafe { find(dir, name) }? {
            cursor.delete()?;
        }
        Ok(code::OK)
    })
}
