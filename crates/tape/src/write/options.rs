//! How a writer opens a tape.

use std::path::PathBuf;
use std::time::Duration;

use crate::disk::limits::RetentionLimits;
use crate::disk::map::SegmentAllocation;
use crate::gate::Gate;
use crate::record::flush::SyncPolicy;
use crate::retention::eligibility::RemovalOptions;
use crate::write::placement::HelperThreadAffinity;

/// Where the segments that are being written live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// In the tape's directory: for batch, and where latency does not matter.
    File,
    /// In shared memory, copied to the tape's directory by a recorder: for live feeds.
    Hot {
        /// Directory of the hot segments; by default one of its own under `/dev/shm`. An existing directory belongs
        /// to the user of this process, lets nobody else write, and holds no segments of another tape.
        dir: Option<PathBuf>,
        /// Segments that may be in shared memory at once (at least 2); bounds how far the recorder may be behind.
        window_segments: u32,
    },
}

/// Where the recorder of a hot tape runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecorderLocation {
    /// A thread of the writer.
    Thread,
    /// A process of its own that calls [`crate::record()`].
    External,
}

/// How a writer opens a tape.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Bytes of frames in a segment, a power of two; an existing tape keeps its own.
    pub segment_bytes: u64,
    /// Where live segments are.
    pub backing: Backing,
    /// Where the recorder of a hot tape runs.
    pub recorder: RecorderLocation,
    /// How far ahead of a writer pages are faulted in on a disk, in bytes; 0: not at all. The distance grows, up to a
    /// segment, if it proves too small. In memory whole segments are faulted in, whatever this says; in bulk no pages
    /// are.
    pub prefault_bytes: u64,
    /// When frames become durable.
    pub sync_policy: SyncPolicy,
    /// How much of the tape is kept; everything by default.
    pub retention: RetentionLimits,
    /// The clocks and the hook that removal uses besides its limits.
    pub removal_options: RemovalOptions,
    /// Readers that the writer must not leave behind; empty by default.
    pub gates: Vec<Gate>,
    /// How long a writer waits for a slow recorder before it returns [`crate::Error::RecorderBehind`].
    pub recorder_wait: Duration,
    /// Where preallocator and recorder run, and how urgently.
    pub helpers: HelperThreadAffinity,
    /// Frames come in large claims, as when files are consolidated. In files the system then takes them by calls, and
    /// their pages are neither zeroed nor entered into a page table before; single appends are slower so. With
    /// [`Backing::Hot`] it says nothing.
    pub in_bulk: bool,
    /// Cut the tape at damage beyond the durable position, instead of refusing to open it.
    pub truncate_damage: bool,
    /// The least epoch that the writer may have, for a caller that knows of an epoch from elsewhere; 0: any.
    ///
    /// A tape whose lineage says that the writer would have a lesser one is an older copy, and is refused with
    /// [`crate::Error::OldEpoch`]. A tape that is made, or that has lost its lineage, begins with this epoch or a later.
    pub epoch_min: u64,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            backing: Backing::File,
            recorder: RecorderLocation::Thread,
            prefault_bytes: 8 << 20,
            sync_policy: SyncPolicy::OnClose,
            retention: RetentionLimits::default(),
            removal_options: RemovalOptions::default(),
            gates: Vec::new(),
            recorder_wait: Duration::from_secs(5),
            helpers: HelperThreadAffinity::default(),
            in_bulk: false,
            truncate_damage: false,
            epoch_min: 0,
        }
    }
}

impl WriterOptions {
    /// Claims are copied by the system, not into mapped memory.
    pub(crate) fn writes_by_call(&self) -> bool {
        self.in_bulk && self.backing == Backing::File
    }

    /// Returns how the memory of the tape's segments is allocated.
    pub(crate) fn segment_allocation(&self) -> SegmentAllocation {
        if self.writes_by_call() { SegmentAllocation::ByAndBy } else { SegmentAllocation::Ready }
    }
}
