//! The lock-free core: everything that two threads or processes do on the same memory without a lock.
//!
//! ```text
//!   Segment, gate file (mapped)                tests/loom.rs (a few words that loom watches)
//!                       └──────── Memory ────────┘
//!                                   │
//!           lines: commit, look, put, copy      gate: position, drops
//! ```
//!
//! It knows memory through [`SharedMemory`] alone, so that loom runs this code unchanged, with a capacity of a few
//! lines. Each protocol has copies with one flaw, chosen by a constant and gone at compile time; the loom tests
//! show that loom rejects each of them, without which their passing would prove nothing.
//!
//! Mapping, files, locks between processes and waiting are not here.

pub mod gate;
pub mod lines;

use std::sync::atomic::Ordering;

/// Shared memory: words at byte offsets, and bytes that only one side uses for a while.
///
/// A word that another thread may read while it changes is loaded and stored, never filled. Filled bytes are reached by
/// others only through a word that is stored after them.
pub trait SharedMemory {
    /// Loads the word at byte offset `offset`, a multiple of eight.
    fn load(&self, offset: u64, order: Ordering) -> u64;

    /// Stores the word at byte offset `offset`, a multiple of eight.
    fn store(&self, offset: u64, value: u64, order: Ordering);

    /// Copies `bytes` to byte offset `offset`, not atomically.
    ///
    /// # Safety
    /// - The range lies in the memory; `offset` and the length are multiples of eight.
    /// - Nobody else reads or writes the range until a word stored later with Release leads there.
    unsafe fn fill(&self, offset: u64, bytes: &[u8]);
}

/// Sound, or a copy with one mistake that loom must find.
pub mod flaw {
    /// No flaw: the code that the tape runs.
    pub const NONE: u8 = 0;
    /// A header word is stored with Relaxed.
    pub const RELAXED_COMMIT: u8 = 1;
    /// A header word is looked at with Relaxed.
    pub const RELAXED_LOOK: u8 = 2;
    /// The first header of a claim is stored with the others, before the claim is full.
    pub const FIRST_WORD_FIRST: u8 = 3;
    /// A gate's reader publishes its position, or that it came, with Relaxed.
    pub const RELAXED_POSITION: u8 = 4;
    /// A gate's writer counts dropped units with Relaxed.
    pub const RELAXED_COUNT: u8 = 5;
}
