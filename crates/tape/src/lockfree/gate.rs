//! A gate: the position up to which a critical reader has dealt with the tape, and what was dropped for its sake.
//!
//! ```text
//!   reader ── came, position ──▶ ┌──────┐ ──▶ writer: may it go beyond position + ahead?
//!   reader ◀── dropped ───────── └──────┘ ◀── writer: heeded, dropped
//! ```
//!
//! Invariant: what the reader did before it advanced to a position happens before what the writer does once it has
//! seen that position. The writer keeps the limit it computed and looks again only when it gets there; the position
//! only grows, so an old limit is never too high.
//!
//! Invariant: the number of drops is stored after where and how much, so a thread that sees the number sees those of
//! that drop or of a later one.

use std::sync::atomic::Ordering;

use unitape_model::Position;

use super::{SharedMemory, flaw};

/// The places of the words in a gate's page; the reader's and the writer's are on lines of their own.
pub mod place {
    /// Everything before this position is dealt with. The reader's.
    pub const POSITION: u64 = 128;
    /// Comings and goings: odd while a reader is there, or died there. The reader's.
    pub const CAME: u64 = 136;
    /// Process id of the reader. The reader's.
    pub const PID: u64 = 144;
    /// The coming that the writer heeds; 0: none. This word and those that follow are the writer's.
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
    pub first: Position,
    /// The last of them would have stood here.
    pub last: Position,
}

/// The reader comes, at `position`; gives the number of its coming, which is odd.
pub fn attach<const FLAW: u8>(memory: &impl SharedMemory, position: Position) -> u64 {
    // Relaxed: only the holder of the gate's lock writes these.
    let came = (memory.load(place::CAME, Ordering::Relaxed) + 1) | 1;
    memory.store(place::POSITION, position.0, Ordering::Relaxed);
    // Release: pairs with the Acquire in `standing`; the position belongs to this coming.
    let order = if FLAW == flaw::RELAXED_POSITION { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::CAME, came, order);
    came
}

/// The reader goes.
pub fn detach(memory: &impl SharedMemory, came: u64) {
    // Release: pairs with the Acquire in `standing`.
    memory.store(place::CAME, came + 1, Ordering::Release);
}

/// The reader has dealt with everything before `position`.
#[inline]
pub fn advance<const FLAW: u8>(memory: &impl SharedMemory, position: Position) {
    // Release: pairs with the Acquire in `standing`; what the reader did with it comes before.
    let order = if FLAW == flaw::RELAXED_POSITION { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::POSITION, position.0, order);
}

/// The number of the reader's coming or going, and its position.
#[inline]
pub fn reader_state(memory: &impl SharedMemory) -> (u64, Position) {
    // Acquire: pairs with the Release in `come` and `go`.
    let came = memory.load(place::CAME, Ordering::Acquire);
    // Acquire: pairs with the Release in `advance`.
    (came, Position(memory.load(place::POSITION, Ordering::Acquire)))
}

/// The end up to which a writer at `end` may go that wants to write `bytes`: `prefault` beyond the reader's position,
/// and whatever it takes where the reader has dealt with all there is.
#[inline]
pub fn limit(position: Position, end: Position, bytes: u64, ahead: u64) -> Position {
    let limit = position.0.saturating_add(ahead);
    Position(if position >= end { limit.max(end.0.saturating_add(bytes)) } else { limit })
}

/// The writer counts `bytes` that it did not write at `end`.
pub fn drop_at<const FLAW: u8>(memory: &impl SharedMemory, end: Position, bytes: u64) {
    // Relaxed: only the writer writes these, and the count comes last.
    let count = memory.load(place::DROPS, Ordering::Relaxed);
    if count == 0 {
        memory.store(place::DROPPED_FIRST, end.0, Ordering::Relaxed);
    }
    let before = memory.load(place::DROPPED_BYTES, Ordering::Relaxed);
    memory.store(place::DROPPED_BYTES, before + bytes, Ordering::Relaxed);
    memory.store(place::DROPPED_LAST, end.0, Ordering::Relaxed);
    // Release: pairs with the Acquire in `dropped`.
    let order = if FLAW == flaw::RELAXED_COUNT { Ordering::Relaxed } else { Ordering::Release };
    memory.store(place::DROPS, count + 1, order);
}

/// The drops at the gate.
pub fn dropped(memory: &impl SharedMemory) -> DropCounters {
    // Acquire: pairs with the Release in `drop_at`.
    let count = memory.load(place::DROPS, Ordering::Acquire);
    let word = |at| memory.load(at, Ordering::Relaxed);
    let (bytes, first) = (word(place::DROPPED_BYTES), Position(word(place::DROPPED_FIRST)));
    DropCounters { count, bytes, first, last: Position(word(place::DROPPED_LAST)) }
}
