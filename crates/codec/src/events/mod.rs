//! Events as JSON Lines: the readable form of the tape, both ways.
//!
//! ```text
//!   line ──parse_line──▶ frame ──write_event(Plain)──▶ line     fields and names, for people and scripts
//!                          │ ▲
//!            write_event(Full) parse_full                       byte for byte, ids and all
//!                          ▼ │
//!                         line
//! ```
//!
//! The table in [`unitape_model::schema`] drives both directions, so a kind or a field that is added there is read
//! and written here at once. `docs/events.md` documents the lines for users.
//!
//! ```
//! use unitape_codec::events::{EventLineDetail, ParsedEventLine, LineParseOptions, EmptySourceLookup, parse_line, write_event};
//! use unitape_model::{Dictionary, Event};
//!
//! let (mut arena, mut names) = (Vec::new(), Dictionary::default());
//! let line = br#"{"seq":7,"ts":5,"kind":"trade","instr":"VOD","px":"2500.50","qty":"10","note":"x"}"#;
//! let ParsedEventLine::Event { start, seq, .. } =
//!     parse_line(line, &mut names, &mut arena, &LineParseOptions::default()).unwrap() else { panic!() };
//! assert_eq!(seq, Some(7));
//! let mut out = Vec::new();
//! let event = Event::new(&arena[start..]).unwrap();
//! write_event(&mut out, &event, 0, &names, &EmptySourceLookup, EventLineDetail::Plain);
//! assert_eq!(
//!     String::from_utf8(out).unwrap(),
//!     r#"{"seq":0,"ts":5,"kind":"trade","instr":"VOD","px":"2500.5","qty":"10","note":"x"}"#
//! );
//! ```
//!
//! It does not read files, give lasting ids to names (that is [`unitape_model::NameResolver`]), or judge whether an
//! event makes sense beside its neighbours.

mod object;
mod parse;
mod sources;
mod write;

#[cfg(test)]
mod tests;

pub use parse::{BOOKKEEPING, LineFault, LineParseOptions, ParsedEventLine, parse_full, parse_line};
pub use sources::{EmptySourceLookup, SourceLabel, SourceNameLookup};
pub use write::{EventLineDetail, write_event};

/// The maximum length of a line that is read as an event, in bytes; a longer line is an error.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Longest line in full form, in bytes: a frame of 4 MiB whose every byte is escaped, and its raw bytes.
pub const FULL_LINE_BYTES_MAX: usize = 48 << 20;
/// Deepest nesting of lists and objects inside a value.
pub const DEPTH_MAX: usize = 128;

/// Names at the top of a line that are never an event's own field: an unmapped field of such a name is
/// written inside `ext`, where it cannot be mistaken.
const RESERVED: [&str; 12] =
    ["rec", "seq", "ts", "kind", "src_seq", "ts_recv", "src", "flags", "ids", "position", "ext", "raw"];
