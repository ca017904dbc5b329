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
//! The folders import downwards only:
//!
//! ```text
//!  verify, keeping, measure
//!  repair ─▶ write ─▶ gate, ring ─▶ read ─▶ record ─▶ keep ─▶ trust ─▶ disk ─▶ lockfree, error
//! ```
//!
//! What it does not do: know what is in a frame (`unitape-model`), order what several feeds bring
//! (`unitape-feed`), or carry the tape to another host (`unitape-link`). There is one writer per tape.

mod disk;
mod error;
mod gate;
mod keep;
mod keeping;
mod lockfree;
pub mod measure;
mod read;
mod record;
mod repair;
mod ring;
mod trust;
mod verify;
mod write;

#[cfg(feature = "faults")]
pub use disk::faults;
pub use disk::{
    CHECKSUM_SPAN, Cursor, DEFINITION_KINDS, Definitions, DurabilityFailure, FORMAT_VERSION, HEADER_PAGE,
    HotNotice, LineagePoint, Meta, Retention, Rewound, SEGMENT_BYTES_MIN, TapeId, hot_notice, hot_place,
};
pub use error::{Error, Result};
pub use gate::{Dropped, Gate, GateHandle, GatePolicy, GateStanding};
pub use keep::{BeforeRemoval, Clock, Now, Removal, Removed, retain, retention_warning};
pub use keeping::{CursorStanding, Keeping, keeping};
pub use read::{
    DamagedPart, DamagedParts, Frame, Lag, LostDefinitions, ReadOptions, Reader, Rewinds, Run, Skipped,
    Start, Subscription, Unverified,
};
pub use record::{Durability, Sync, durability_warning, record};
pub use repair::{ForeignDamage, Remedy, RepairCut, RepairFinding, RepairOptions, RepairReport, repair};
pub use ring::{
    Losses, RING_CAPACITY_MIN, RingDraft, RingOptions, RingRecovery, RingTapeReader, RingTapeWriter,
};
pub use unitape_ring::{Wait, Waiter};
pub use verify::{Info, Problem, Report, Standing, info, info_with, oldest, standing, verify, writer};
pub use write::{
    Backing, Batch, Claim, Draft, Helpers, HotLeftover, Options, Publication, RecorderPlace, Recovery,
    Writer, adopt_hot, forget_hot, hot_leftovers,
};

/// The lock-free core, for the loom tests.
#[cfg(loom)]
#[doc(hidden)]
pub mod loom_parts {
    pub use crate::lockfree::{Memory, flaw, gate, lines, ring};
}
