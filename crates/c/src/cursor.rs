//! Named places for C, apart from a subscription.

use std::ffi::c_char;

use unitape_model::Position;
use unitape_tape::Cursor;

use crate::argument::{Input, Output, exported};
use crate::error::{Error, code};

/// Finds the cursor of that name without making it.
fn find(dir: &Input<c_char>, name: &Input<c_char>) -> Result<Option<Cursor>, Error> {
    let (dir, name) = (dir.path("dir")?, name.word("name")?);
    let exists = Cursor::names(dir)?.iter().any(|cursor_name| cursor_name == name);
    Ok(exists.then(|| Cursor::open(dir, name)).transpose()?)
}

exported! {
    fn unitape_cursor_load(dir: Input<c_char>, name: Input<c_char>, position: Output<u64>) -> i32 {
        position.require("position")?;
        let cursor = find(&dir, &name)?;
        let Some(stored) = cursor.map_or(Ok(None), |cursor| cursor.load())? else { return Ok(0) };
        position.write(stored.0);
        Ok(1)
    }

    fn unitape_cursor_store(dir: Input<c_char>, name: Input<c_char>, position: u64) -> i32 {
        Cursor::open(dir.path("dir")?, name.word("name")?)?.store(Position(position))?;
        Ok(code::OK)
    }

    fn unitape_cursor_delete(dir: Input<c_char>, name: Input<c_char>) -> i32 {
        if let Some(cursor) = find(&dir, &name)? {
            cursor.delete()?;
        }
        Ok(code::OK)
    }
}
