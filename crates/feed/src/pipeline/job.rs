//! A block on its way, with what the pipeline knows of it.

use crate::block::Block;
use crate::formats::format::{Format, FormatId, Statefulness};
use crate::sources::link::FeedAvailability;
use crate::sources::source::SourceFacts;
use std::sync::Arc;

/// A block that travels: filled at intake, decoded by a worker, placed by the sequencer, and filled again.
#[derive(Debug, Default)]
pub struct BlockJob {
    /// Its bytes and events.
    pub block: Block,
    /// Its kind, besides its bytes.
    pub kind: BlockKind,
    /// The intake's view of each feed when it claimed the block; empty if no feed is live.
    pub availabilities: Vec<FeedAvailability>,
    /// When that was, on the intake's clock.
    pub claimed_ns: i64,
    /// The source that begins with this block, when it was found while running.
    pub begins: Option<Box<SourceFacts>>,
    /// Format and mapping to decode it by.
    pub format: Option<Arc<VersionedFormat>>,
}

impl BlockJob {
    /// Returns whether the block must be decoded in order, because its meaning depends on earlier blocks.
    pub fn is_stream(&self) -> bool {
        let stream = |s: &Arc<VersionedFormat>| s.format.statefulness() == Statefulness::Stream;
        self.kind == BlockKind::Bytes && self.format.as_ref().is_some_and(stream)
    }
}

/// The content of a block for the sequencer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockKind {
    /// Bytes of a source.
    #[default]
    Bytes,
    /// Nothing: time has passed, and the merge may have waited long enough.
    Tick,
    /// Nothing: the feed brings no more.
    FeedEnd,
    /// Nothing: the run stops, and the feed may bring more in a later one.
    FeedStop,
}

/// A format with its mapping, and which one of those that a feed has had in this run.
#[derive(Clone, Debug)]
pub struct VersionedFormat {
    /// The format of the bytes.
    pub format: Format,
    /// The format as source definitions record it.
    pub format_id: FormatId,
    /// 0 for the format with which the run began.
    pub generation: u64,
}

impl VersionedFormat {
    /// Makes a format with its generation; a run's first format has the lowest.
    pub fn new(format: Format, generation: u64) -> Self {
        let format_id = FormatId::from_format(&format);
        Self { format, format_id, generation }
    }
}
