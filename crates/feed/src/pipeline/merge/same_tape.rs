//! Whether two tapes of one id are one tape.
//!
//! The id of a tape that a live run writes comes from the names of its feeds: the runs of two days have one id and other
//! events. A copy has the same events.

use crate::error::Error;
use std::path::Path;
use unitape_tape::{ReadOptions, Reader, StartPosition};

/// Events that are compared; two days differ in the first.
const EVENTS: usize = 64;

/// Returns whether two directories have the same events where both begin. Tapes without events are the same only if
/// their directory is.
pub fn is_same(a: &Path, b: &Path) -> Result<bool, Error> {
    if a.canonicalize().ok() == b.canonicalize().ok() {
        return Ok(true);
    }
    let options = ReadOptions { verify: false, skip_damage: true };
    let (mut a, mut b) = (
        Reader::open_with(a, StartPosition::Oldest, options)?,
        Reader::open_with(b, StartPosition::Oldest, options)?,
    );
    let common_start = a.position().max(b.position());
    for reader in [&mut a, &mut b] {
        match reader.seek(common_start) {
            Err(unitape_tape::Error::NoFrame(_)) => return Ok(false),
            sought => sought?,
        }
    }
    for compared in 0..EVENTS {
        match (next_event(&mut a)?, next_event(&mut b)?) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => return Ok(false),
            _ => return Ok(compared > 0),
        }
    }
    Ok(true)
}

/// Reads the bytes of the next event or message.
fn next_event(reader: &mut Reader) -> Result<Option<Vec<u8>>, Error> {
    while let Some(frame) = reader.next()? {
        if !frame.header.is_meta() {
            return Ok(Some(frame.bytes.to_vec()));
        }
    }
    Ok(None)
}
