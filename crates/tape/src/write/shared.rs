//! State that a writer shares with its claims, its preallocator and its recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use unitape_model::Position;

use crate::disk::map::MappedSegment;
use crate::disk::segment_pool::MappedSegmentCache;
use crate::error::{Error, Result, with_committed_end};
use crate::write::claim::StagedFrames;
use crate::write::fork::{ForkDetector, TROUBLED, WELL};

/// State that the writer shares with its claims and helper threads.
#[derive(Debug, Default)]
pub(crate) struct SharedWriterState {
    /// End of the claimed space; a hint to the helpers until all claims are published.
    pub end: AtomicU64,
    /// Non-META frames before `end`, for readers that ask how far they lag.
    pub ordinal: AtomicU64,
    pub outstanding: AtomicU64,
    /// Segment that the preallocator is making or about to hand over; a hint. 0 means no segment: the preallocator
    /// never makes segment 0.
    pub making: AtomicU64,
    pub current: Mutex<Option<Arc<MappedSegment>>>,
    /// Mappings of segments that are full, for when their files come round again.
    pub released_mappings: MappedSegmentCache<Arc<MappedSegment>>,
    /// Memory for claims that are written by calls, between two of them.
    stages: Mutex<Vec<StagedFrames>>,
    pub stop_preallocator: AtomicBool,
    pub drain: AtomicBool,
    pub abandon: AtomicBool,
    /// Whether an error waits, and whether the writer is this process's.
    pub fork: ForkDetector,
    trouble: Mutex<Option<(Error, bool)>>,
}

impl SharedWriterState {
    /// Makes the state of a tape that ends at `end`.
    pub fn with_end(end: Position, ordinal: u64) -> Self {
        Self { end: AtomicU64::new(end.0), ordinal: AtomicU64::new(ordinal), ..Self::default() }
    }

    /// Returns memory for a claim that the caller fills with calls.
    pub fn stage(&self) -> StagedFrames {
        self.stages.lock().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub fn unstage(&self, staged: StagedFrames) {
        self.stages.lock().push(staged);
    }

    /// Leaves an error for the writer's next call; a lasting one stays.
    pub fn raise(&self, error: Error, lasting: bool) {
        let mut trouble = self.trouble.lock();
        if !matches!(*trouble, Some((_, true))) {
            *trouble = Some((error, lasting));
        }
        // Release: pairs with the Acquire in `check_helpers`.
        self.fork.fork_word().store(TROUBLED, Ordering::Release);
    }

    #[inline]
    pub fn check_helpers(&self, end: Position) -> Result<()> {
        if self.is_well() { Ok(()) } else { with_committed_end(self.trouble(), end) }
    }

    /// Returns whether no error waits.
    #[inline]
    pub fn is_well(&self) -> bool {
        // Acquire: pairs with the Release in `raise`.
        self.fork.fork_word().load(Ordering::Acquire) == WELL
    }

    #[cold]
    fn trouble(&self) -> Result<()> {
        // Before anything is locked, which a child may find locked for ever.
        self.fork.check_process()?;
        let mut trouble = self.trouble.lock();
        match trouble.take() {
            Some((Error::ClaimAbandoned(position), true)) => {
                *trouble = Some((Error::ClaimAbandoned(position), true));
                Err(Error::ClaimAbandoned(position))
            }
            Some((error @ Error::Fenced { .. }, true)) => {
                let fenced_copy = error.clone_fenced().expect("matched");
                *trouble = Some((fenced_copy, true));
                Err(error)
            }
            Some((error, _)) => {
                self.fork.fork_word().store(WELL, Ordering::Relaxed);
                Err(error)
            }
            None => Ok(()),
        }
    }
}
