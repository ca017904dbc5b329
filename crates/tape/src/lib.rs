//! The log that is the transport: writer, reader, recorder, recovery.
//!
//! ```text
//!  writer ──append / claims──▶ ┌──────── segment n ────────┬──────── segment n+1 ───── …   one file each,
//!                              │frame│frame  │frame│…  │PAD│frame│frame│ 0 0 0 0           mapped by all
//!                              └───────────────────────────┴──────────────────────────
//!                                 ▲            ▲                          ▲
//!            readers, any number, each its own position        follower: dictionary log, checksums,
//!                                                              durable position, copy of hot segments
//! ```
//!
//! A *claim* is a range of the tape given out in order; several may be out at once, on several threads. It is
//! published by storing the header word of its first frame last, so a reader sees it whole or not at all, and a
//! process killed in between leaves nothing that can be reached. The tape's position is a byte offset from its
//! start; frames are whole lines of 64 bytes (`unitape_model::frame`). What stands in the files is drawn in
//! `docs/formats-tape.md`.
//!
//! ```
//! use unitape_model::{Header, LINE, flags};
//! use unitape_tape::{Options, Reader, Start, TapeId, Writer};
//!
//! let dir = tempfile::tempdir()?;
//! let options = Options { segment_bytes: 1 << 20, ..Options::default() };
//! let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options)?;
//! let mut frame = [7u8; LINE];
//! Header::unstamped(20, flags::LAST, 1).write(&mut frame);
//! let position = writer.append(&frame)?;
//!
//! let mut reader = Reader::open(dir.path(), Start::Oldest)?;
//! let seen = reader.next()?.expect("one frame is committed");
//! assert_eq!((seen.position, &seen.bytes[8..]), (position, &frame[8..]));
//! writer.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does not do: know what is in a frame (`unitape-model`), order what several feeds bring
//! (`unitape-feed`), or carry the tape to another host (`unitape-link`). There is one writer per tape.

mod ahead;
mod claim;
mod clock;
mod copy;
mod definitions;
mod durable;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod flush;
mod follow;
mod gate;
mod keeper;
mod keeping;
mod lag;
mod layout;
mod live;
mod lockfree;
mod map;
pub mod measure;
mod page;
mod place;
mod publish;
mod reader;
mod recover;
mod retention;
mod retire;
mod ring;
mod ruler;
mod run;
mod seal;
mod subscribe;
mod sys;
mod verify;
mod writer;

pub use claim::Claim;
pub use clock::{Clock, Now};
pub use definitions::Definitions;
pub use durable::{Durability, DurabilityFailure};
pub use error::{Error, Result};
pub use follow::record;
pub use gate::{Dropped, Gate, GateHandle, GatePolicy, GateStanding};
pub use keeping::{CursorStanding, Keeping, keeping};
pub use lag::{Lag, Skipped};
pub use layout::{CHECKSUM_SPAN, FORMAT_VERSION, HEADER_PAGE, Meta, SEGMENT_BYTES_MIN, TapeId};
pub use place::Helpers;
pub use publish::{Batch, Draft, Publication};
pub use reader::{Frame, Reader, Run, Start};
pub use recover::Recovery;
pub use retention::{BeforeRemoval, Removal, Retention};
pub use retire::{Removed, retain, retention_warning};
pub use ring::{
    Losses, RING_CAPACITY_MIN, RingDraft, RingOptions, RingRecovery, RingTapeReader, RingTapeWriter,
};
pub use run::Cursor;
pub use subscribe::Subscription;
pub use unitape_ring::{Wait, Waiter};
pub use verify::{Info, Problem, Report, Standing, info, standing, verify};
pub use writer::{Backing, Options, RecorderPlace, Sync, Writer};

/// The lock-free core, for the loom tests.
#[cfg(loom)]
#[doc(hidden)]
pub mod loom_parts {
    pub use crate::lockfree::{Memory, flaw, gate, lines, ring};
}

/// Kinds of frames that are copied to the dictionary log.
pub const DEFINITION_KINDS: std::ops::RangeInclusive<u8> = 2..=7;
