//! The ring tape: the same frames in a bounded memory that is used again, for who needs the newest and not all.
//!
//! ```text
//!  writer ──append──▶ ┌─ one file, mapped by all: a page of control, a power of two of frames ─┐
//!  (one, locked)      │ intent │ end │ marks ┃ frame│frame│frame  │0│ …older frames │ frame │PAD│
//!                     └────────────────────────────────────▲──────▲──────────────────────▲─────┘
//!                                                        reader  end                   reader
//! ```
//!
//! The writer never waits and knows no reader. A reader copies a frame out and then checks that the writer had not
//! begun to overwrite it; if it had, the reader gets [`crate::Error::Overrun`], which says how much it lost, and
//! continues at the oldest unit that is left. [`crate::lockfree::ring`] says why that is safe; `docs/formats-tape.md`
//! draws the file.
//!
//! A ring is not a recording. There is no recorder, no checksum and no durable position; a restart of the
//! machine without a clean close leaves an empty ring. For messages that must not be lost there is the tape.

mod file;
mod reader;
mod writer;

pub use file::{RING_CAPACITY_MIN, RingOptions};
pub use reader::{RingLosses, RingTapeReader};
pub use writer::{RingDraft, RingRecovery, RingTapeWriter};
