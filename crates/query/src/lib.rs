//! Queries of a tape for a command, a program or a notebook: a selection, and a cursor that returns its events.
//!
//! ```text
//!  17, @4096, 2026-03-02 09:30:00 ─▶ address ─▶ points and bounds
//!  kinds, instruments, venues, limit ─▶ selection ─▶ EventFilter
//!  tape ─▶ follow ─▶ frames, the end, cuts ─▶ cursor ─▶ the selected events, with their names
//! ```
//!
//! ```
//! use unitape_model::{EventBuilder, EventKind, UnixNanos, flags};
//! use unitape_query::{CursorOutcome, EventCursor, EventSelection, Selected};
//! use unitape_tape::{TapeId, Writer, WriterOptions};
//!
//! let dir = tempfile::tempdir()?;
//! let (mut writer, _) = Writer::open(dir.path(), TapeId(1), WriterOptions::default())?;
//! let mut unit = Vec::new();
//! EventBuilder::begin(&mut unit, EventKind::Clock, UnixNanos(1_000)).finish(flags::LAST)?;
//! writer.append(&unit)?;
//! writer.close()?;
//!
//! let selection = EventSelection { kinds: vec![EventKind::Clock], ..EventSelection::default() };
//! let mut cursor = EventCursor::open(dir.path(), selection, Default::default())?;
//! let mut times = Vec::new();
//! while cursor.next(|_, selected| {
//!     if let Selected::Event(event, _) = selected {
//!         times.push(event.ts_event());
//!     }
//! })? == CursorOutcome::Given {}
//! assert_eq!(times, [UnixNanos(1_000)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It prints nothing, and keeps no books: a selection chooses events as they are.

pub mod address;
mod cursor;
mod error;
pub mod follow;
mod selection;

pub use cursor::{CursorOutcome, EventCursor, Selected};
pub use error::Error;
pub use selection::{EventFilter, EventSelection, FilterCounts, NameFilter};
