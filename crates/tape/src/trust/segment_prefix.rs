//! A checksum of the whole segments before a position, by which who keeps something derived knows the tape again.

use std::path::Path;

use unitape_model::Position;

use crate::disk::layout::read_start;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::Result;

/// The segments of a tape that end at or before a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPrefix {
    /// Where the last of them ends; the start of the oldest segment if there is none.
    pub end: Position,
    /// CRC-32C of their checksum files, one after the other: equal bytes have an equal one.
    pub crc: u32,
}

/// Reads the checksums of the segments of the tape in `dir` that end at or before `position`. `None` where one is missing.
///
/// # Errors
/// Not a tape, or a foreign version.
pub fn segment_prefix(dir: &Path, position: Position) -> Result<Option<SegmentPrefix>> {
    let live = SegmentLocator::open(dir)?;
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let wanted = size / span * 4;
    let indices = live.indices()?;
    let mut prefix = SegmentPrefix { end: Position(indices.first().map_or(0, |first| first * size)), crc: 0 };
    for index in indices.into_iter().take_while(|index| (index + 1) * size <= position.0) {
        let sums = read_start(&live.paths.crc(index), wanted + 1).unwrap_or_default();
        if sums.len() as u64 != wanted || prefix.end != Position(index * size) {
            return Ok(None);
        }
        prefix.crc = crc32c::crc32c_append(prefix.crc, &sums);
        prefix.end = Position((index + 1) * size);
    }
    Ok(Some(prefix))
}
