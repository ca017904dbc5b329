//! The flag of a repeat, put into a frame that is built already.

use unitape_model::schema::TAG_UNMAPPED;
use unitape_model::{Event, FrameHeader, LINE, flags};

/// Name of the field that says of an event that its message may be there twice; its value is `Y`.
pub const REPEAT: &str = "repeat";

/// Appends `frame` to `out` with the field [`REPEAT`], unless it has it.
pub fn flag_frame(frame: &[u8], out: &mut Vec<u8>) {
    let event_start = out.len();
    out.extend_from_slice(frame);
    let Some(event) = Event::new(frame).filter(|e| e.unmapped_fields().all(|(name, _)| name != REPEAT))
    else {
        return;
    };
    let header = event.header();
    let end = event.extension_end();
    let entry = entry();
    // The longest frame there is has no room for it; it stays without, and is counted all the same.
    let Ok(lines) = u16::try_from((end + entry.len()).div_ceil(LINE)) else { return };
    let lines = lines.max(header.lines());
    out.resize(event_start + usize::from(lines) * LINE, 0);
    out[event_start + end..][..entry.len()].copy_from_slice(&entry);
    FrameHeader::new_unstamped(header.kind(), header.flags() | flags::EXT, lines)
        .write(&mut out[event_start..]);
}

/// Tag, length, and the field's name and value.
const ENTRY: usize = 6 + 2 + REPEAT.len() + VALUE.len();
const VALUE: &[u8] = b"\"Y\"";

fn entry() -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..2].copy_from_slice(&TAG_UNMAPPED.to_le_bytes());
    entry[2..6].copy_from_slice(&(ENTRY as u32 - 6).to_le_bytes());
    entry[6..8].copy_from_slice(&(REPEAT.len() as u16).to_le_bytes());
    entry[8..8 + REPEAT.len()].copy_from_slice(REPEAT.as_bytes());
    entry[8 + REPEAT.len()..].copy_from_slice(VALUE);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{EventBuilder, EventField, EventKind, EventValue, UnixNanos};

    /// Guards against a flag added later that gives other bytes than a flag built in, at any length.
    #[test]
    fn a_flag_put_in_later_is_the_one_that_is_built_in() {
        for n in 0..140 {
            let build = |flagged: bool| {
                let mut out = Vec::new();
                let mut e = EventBuilder::begin(&mut out, EventKind::News, UnixNanos(5));
                e.set_field(EventField::Headline, EventValue::Text("h")).unwrap();
                if n > 0 {
                    e.keep_unmapped("x", &format!("\"{}\"", "x".repeat(n))).unwrap();
                }
                if flagged {
                    e.keep_unmapped(REPEAT, "\"Y\"").unwrap();
                }
                e.finish(flags::LAST).unwrap();
                out
            };
            let (plain_frame, flagged_frame) = (build(false), build(true));
            let mut out = vec![1, 2, 3];
            flag_frame(&plain_frame, &mut out);
            assert_eq!(out[3..], flagged_frame, "{n}");
            out.clear();
            flag_frame(&flagged_frame, &mut out);
            assert_eq!(out, flagged_frame, "not twice");
        }
    }
}
