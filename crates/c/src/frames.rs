//! Frames that C may append: events without a source, names, messages, and kinds that unitape does not know.
//!
//! The account of a tape (sources, marks of progress, quarantine) is what unitape believes when it continues with the
//! tape; `docs/formats-events.md` says who writes which kind.

use unitape_model::schema::at;
use unitape_model::{EventKind, frames};
use unitape_tape::Error;

/// Refuses a unit with a frame of the tape's account. Whether it is a unit at all the writer finds out.
pub(crate) fn check(unit: &[u8]) -> Result<(), Error> {
    for (offset, header, frame) in frames(unit) {
        let kind = header.kind();
        let is_definition = kind == EventKind::Define as u8;
        let what = if (kind < FIRST_EVENT && !is_definition) || kind == EventKind::Quarantine as u8 {
            "frames of this kind are the tape's account, which unitape writes itself"
        } else if header.is_meta() != is_definition {
            "the flag 4 (bookkeeping) belongs to definitions, and to nothing else"
        } else if (FIRST_EVENT..FIRST_FREE).contains(&kind) && frame[at::SOURCE..at::OFFSET] != [0; 4] {
            "an event with a source is of those who consolidate; the four bytes at 16 must be zero"
        } else {
            continue;
        };
        return Err(Error::BadUnit { offset: offset as u64, what });
    }
    Ok(())
}

/// Kinds below it are bookkeeping.
const FIRST_EVENT: u8 = EventKind::Ref as u8;
/// Kinds from it on are not events with the 40 bytes that each event begins with.
const FIRST_FREE: u8 = EventKind::NUMBER_MAX + 1;
