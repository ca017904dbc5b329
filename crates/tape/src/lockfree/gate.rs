//! A gate: the position up to which a critical reader has processed the tape, and the counts of dropped units.
//!
//! ```text
//!   reader ── came, position ──▶ ┌──────┐ ──▶ writer: may it go beyond position + ahead?
//!   reader ◀── dropped ───────── └──────┘ ◀── writer: heeded, dropped
//! ```
//!
//! Invariant: everything that the reader did before it advanced to a position happens before everything that the writer
//! does after it has seen that position. The writer keeps the limit that it computed and looks again only when it
//! reaches the limit. The position only grows, so an old limit is never too high.
//!
//! Invariant: the number of drops is stored after their positions and bytes. A thread that sees the number therefore
//! sees the positions and bytes of that drop or of a later one.

use std::sync::atomic::Ordering;

use unitape_model::Position;

use super::{SharedMemory, flaw};

/// The places of the words in a gate's page; the reader's and the writer's are on lines of their own.
pub mod place {
    /// The reader's word: it has processed everything before this position.
    pub const POSITION: u64 = 128;
    /// Comings and goings: odd while a reader is there, or died there. The reader's.
    pub const CAME: u64 = 136;
    /// Process id of the reader. The reader's.
    pub const PID: u64 = 144;
    /// The number of the attachment that the writer heeds; 0 if there is no such attachment. The writer writes this
    /// word and the following ones.
    pub const HEEDED: u64 = 256;
    /// How often something was dropped.
    pub const DROPS: u64 = 264;
    /// Bytes of it.
    pub const DROPPED_BYTES: u64 = 272;
    /// End of the tape at the first drop.
    pub const DROPPED_FIRST: u64 = 280;
    /// End of the tape at the last drop.
    pub const DROPPED_LAST: u64 = 288;
    /// How often the writer waited.
    pub const WAITS: u64 = 296;
}

/// Units and bytes dropped at a gate since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    /// How many units were not appended (a claim that was refused counts as one).
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// The first of them would have stood here.
    pub first_position: Position,
    /// The last of them would have stood here.
    pub last_position: Position,
}

/// Attaches the reader at `position` and returns the number of this attachment, which is odd.
pub fn attach_reader<const FLAW: u8>(memory: &impl SharedMemory, position: Position) -> u64 {
    // Relaxed: only the holder of the gate's lock writes these.
    let attachment = (memory.load(place::CAME, Ordering::Relaxed) + 1) | 1;
    memory.store(place::POSITION, position.0, Ordering::Relaxed);
    // Release: pairs with the Acquire in `reader_state`; the position belongs to this attachment.
    let order = if FLAW == flaw::RELAXED_POSITION { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::CAME, attachment, order);
    attachment
}

/// Detaches the reader that attached with number `came`.
pub fn detach_reader(memory: &impl SharedMemory, came: u64) {
    // Release: pairs with the Acquire in `reader_state`.
    memory.store(place::CAME, came + 1, Ordering::Release);
}

/// Reports that the reader has processed everything before `position`.
#[inline]
pub fn advance<const FLAW: u8>(memory: &impl SharedMemory, position: Position) {
    // Release: pairs with the Acquire in `reader_state`; the reader's work on the frames comes before.
    let order = if FLAW == flaw::RELAXED_POSITION { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::POSITION, position.0, order);
}

/// Returns the number of the reader's last attachment or detachment, and the reader's position.
#[inline]
pub fn reader_state(memory: &impl SharedMemory) -> (u64, Position) {
    // Acquire: pairs with the Release in `attach_reader` and `detach_reader`.
    let attachment = memory.load(place::CAME, Ordering::Acquire);
    // Acquire: pairs with the Release in `advance`.
    (attachment, Position(memory.load(place::POSITION, Ordering::Acquire)))
}

/// Returns the limit for a writer at `end` that wants to write `bytes`. It is `ahead_bytes` beyond the reader's
/// position; a reader without backlog also admits `bytes` beyond `end`.
#[inline]
pub fn writer_limit(position: Position, end: Position, bytes: u64, ahead_bytes: u64) -> Position {
    let limit = position.0.saturating_add(ahead_bytes);
    Position(if position >= end { limit.max(end.0.saturating_add(bytes)) } else { limit })
}

/// Counts `bytes` that the writer dropped at `end`.
pub fn drop_at<const FLAW: u8>(memory: &impl SharedMemory, end: Position, bytes: u64) {
    // Relaxed: only the writer writes these, and the count comes last.
    let count = memory.load(place::DROPS, Ordering::Relaxed);
    if count == 0 {
        memory.store(place::DROPPED_FIRST, end.0, Ordering::Relaxed);
    }
    let dropped_before = memory.load(place::DROPPED_BYTES, Ordering::Relaxed);
    memory.store(place::DROPPED_BYTES, dropped_before + bytes, Ordering::Relaxed);
    memory.store(place::DROPPED_LAST, end.0, Ordering::Relaxed);
    // Release: pairs with the Acquire in `dropped`.
    let order = if FLAW == flaw::RELAXED_COUNT { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::DROPS, count + 1, order);
}

/// Returns the drop counters of the gate.
pub fn dropped(memory: &impl SharedMemory) -> DropCounters {
    // Acquire: pairs with the Release in `drop_at`.
    let count = memory.load(place::DROPS, Ordering::Acquire);
    let word = |offset| memory.load(offset, Ordering::Relaxed);
    let (bytes, first) = (word(place::DROPPED_BYTES), Position(word(place::DROPPED_FIRST)));
    DropCounters { count, bytes, first_position: first, last_position: Position(word(place::DROPPED_LAST)) }
}
