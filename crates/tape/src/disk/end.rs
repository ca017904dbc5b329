//! How far the committed frames of a segment, and of a tape, go.

use unitape_model::Position;

use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::segment_locator::SegmentLocator;
use crate::error::Result;

/// Returns the data offset up to which frames are committed in `segment`, without a pad at the end.
pub(crate) fn committed_bytes(segment: &MappedSegment) -> u64 {
    let mut offset = 0;
    while offset < segment.data_bytes
        && let HeaderWordState::Frame(header) = segment.header_state(offset)
    {
        offset += header.len_bytes() as u64;
    }
    offset
}

/// Finds the end of the tape, walking from the segment of `from`.
pub(crate) fn find_end(live: &SegmentLocator, from: Position) -> Result<Position> {
    let mut index = from.0 / live.meta.segment_bytes;
    let mut tape_end = Position(index * live.meta.segment_bytes);
    while let Some((segment, _)) = live.segment(index)? {
        let data_end = committed_bytes(&segment);
        tape_end = segment.base_position.plus(data_end);
        if data_end < segment.data_bytes && segment.header_state(data_end) != HeaderWordState::Pad {
            break;
        }
        tape_end = segment.end_position();
        index += 1;
    }
    Ok(tape_end)
}
