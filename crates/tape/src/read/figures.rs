//! Counts of a reader: how far it is behind, how much it skipped, and how often it was rewound.

use crate::disk::lineage::ReaderRewind;

/// How far a reader is behind the tape's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderLag {
    /// Bytes of tape that are given out and not read.
    pub bytes: u64,
    /// Events (non-META frames) among them.
    pub events: u64,
    /// Bytes between the reader and the data that are removed or announced for removal. Zero: the reader's next data
    /// will be removed soon.
    pub until_removal_bytes: u64,
}

/// Bytes and events lost because retention had removed them before the reader came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionLoss {
    /// Bytes of tape.
    pub bytes: u64,
    /// Events (non-META frames) among them.
    pub events: u64,
}

/// How often a reader was rewound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewindTotals {
    /// How often.
    pub count: u64,
    /// Bytes of tape that it had read and that were cut.
    pub bytes: u64,
    /// The last time.
    pub last_rewind: Option<ReaderRewind>,
}
