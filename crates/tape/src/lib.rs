//! The log that is the transport: writer, reader, recorder, recovery.
//!
//! ```text
//!  writer ──append / claims──▶ ┌──────── segment n ────────┬──────── segment n+1 ───── …   one file each,
//!                              │frame│frame  │frame│…  │PAD│frame│frame│ 0 0 0 0           mapped by all
//!                              └───────────────────────────┴──────────────────────────
//!                                 ▲            ▲                          ▲
//!            readers, any number, each its own position        recorder: dictionary log, checksums,
//!                                                              durable position, copy of hot segments
//! ```
//!
//! A *claim* is a range of the tape given out in order; several may be out at once, on several threads. It is
//! published by storing the header word of its first frame last, so a reader sees it whole or not at all, and a
//! process killed in between leaves nothing that can be reached. The tape's position is a byte offset from its
//! start; frames are whole lines of 64 bytes (`unitape_model::frame`). The layout of the files is drawn in
//! `docs/formats-tape.md`.
//!
//! ```
//! use unitape_model::{FrameHeader, LINE, flags};
//! use unitape_tape::{WriterOptions, Reader, StartPosition, TapeId, Writer};
//!
//! let dir = tempfile::tempdir()?;
//! let options = WriterOptions { segment_bytes: 1 << 20, ..WriterOptions::default() };
//! let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options)?;
//! let mut frame = [7u8; LINE];
//! FrameHeader::new_unstamped(20, flags::LAST, 1).write(&mut frame);
//! let position = writer.append(&frame)?;
//!
//! let mut reader = Reader::open(dir.path(), StartPosition::Oldest)?;
//! let seen = reader.next()?.expect("one frame is committed");
//! assert_eq!((seen.position, &seen.bytes[8..]), (position, &frame[8..]));
//! writer.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folders import downwards only:
//!
//! ```text
//!  twin ─▶ verify, keeping, measure
//!  repair ─▶ write ─▶ gate ─▶ read ─▶ record ─▶ keep ─▶ trust ─▶ disk ─▶ lockfree, error
//! ```
//!
//! The tape does not know the contents of a frame (`unitape-model`), order several feeds (`unitape-feed`), or carry
//! frames to another host (`unitape-link`). There is one writer per tape.

mod disk;
mod error;
mod gate;
mod lockfree;
pub mod measure;
mod read;
mod record;
mod repair;
mod retention;
mod retention_status;
mod trust;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;
mod verify;
mod write;

#[cfg(feature = "faults")]
pub use disk::faults;
pub use disk::{
    CHECKSUM_SPAN, Cursor, DEFINITION_KINDS, DefinitionReader, DurabilityFailure, FORMAT_VERSION,
    HEADER_PAGE, HotNotice, LineagePoint, ReaderRewind, RetentionLimits, SEGMENT_BYTES_MIN, TapeId,
    TapeManifest, hot_notice, hot_place, open_regular, open_regular_with,
};
pub use error::{Error, OriginMismatch, Result};
pub use gate::{Gate, GateDrops, GateHandle, GatePolicy, GateStatus};
pub use read::{
    DamagedPart, DamagedParts, Frame, FrameSlice, LostDefinitions, ReadOptions, Reader, ReaderLag,
    RetentionLoss, RewindTotals, SeekOutcome, StartPosition, Subscription, TimeRange, UnverifiedBytes,
};
pub use record::{DurabilityHandle, SyncPolicy, durability_warning, record};
pub use repair::{
    ForeignDamage, RepairCut, RepairFinding, RepairOptions, RepairRemedy, RepairReport, accepted_ranges,
    repair,
};
pub use retention::{
    ClockReading, ClockSource, RemovalHook, RemovalOptions, RemovalReport, retain, retention_warning,
};
pub use retention_status::{CursorStatus, RetentionStatus, retention_status};
pub use trust::segment_prefix::{SegmentChecksums, SegmentPrefix, segment_checksums, segment_prefix};
pub use unitape_ring::{WaitStrategy, Waiter};
pub use verify::{
    TapeStatus, TapeSummary, VerifyFinding, VerifyReport, info, info_with, oldest_position, tape_status,
    verify, writer_pid,
};
pub use write::{
    Backing, Claim, DefinitionRecord, FrameDraft, HelperThreadAffinity, MessageBatch, OrphanHotDirectory,
    Publication, RecorderLocation, RecoveryReport, TapeOrigin, Writer, WriterOptions, adopt_hot, forget_hot,
    hot_leftovers,
};

/// The lock-free core, for the loom tests.
#[cfg(loom)]
#[doc(hidden)]
pub mod loom_parts {
    pub use crate::lockfree::{SharedMemory, flaw, gate, lines};
}
