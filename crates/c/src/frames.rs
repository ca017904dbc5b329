//! Frames that C may append: events without a source, names, messages, and kinds that unitape does not know.
//!
//! unitape relies on the account of a tape (sources, progress marks, quarantine) when it continues the tape.
//! `docs/formats-events.md` lists the writer of each kind.

use unitape_model::schema::at;
use unitape_model::{EventKind, frames};
use unitape_tape::Error;

/// Refuses a unit with a frame of the tape's account. Whether it is a unit at all the writer finds out.
pub(crate) fn check(unit: &[u8]) -> Result<(), Error> {
    for (offset, header, frame) in frames(unit) {
        let kind = header.kind();
        let is_definition = kind == EventKind::Define as u8;
        let reason = if (kind < FIRST_EVENT && !is_definition) || kind == EventKind::Quarantine as u8 {
            "frames of this kind are the tape's account, which unitape writes itself"
        } else if header.is_meta() != is_definition {
            "the flag 4 (bookkeeping) belongs to definitions, and to nothing else"
        } else if (FIRST_EVENT..FIRST_FREE).contains(&kind) && frame[at::SOURCE..at::OFFSET] != [0; 4] {
            "an event with a source is of those who consolidate; the four bytes at 16 must be zero"
        } else {
            continue;
        };
        return Err(Error::BadUnit { offset: offset as u64, reason });
    }
    Ok(())
}

/// Kinds below it are bookkeeping.
const FIRST_EVENT: u8 = EventKind::Ref as u8;
/// Kinds from it on are not events with the 40 bytes that each event begins with.
const FIRST_FREE: u8 = EventKind::NUMBER_MAX + 1;
