//! A checksum of the whole segments before a position, by which who keeps something derived knows the tape again.

use std::path::Path;

use unitape_model::Position;

use crate::disk::layout::read_start;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::Result;

/// The segments of a tape that end at or before a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPrefix {
    /// The end of the last of these segments; the start of the oldest segment if there is none.
    pub end_position: Position,
    /// CRC-32C of their checksum files, one after the other: equal bytes have an equal one.
    pub crc: u32,
}

/// Reads the checksums of the segments of the tape in `dir` that end at or before `position`. `None` where one is missing.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version.
pub fn segment_prefix(dir: &Path, position: Position) -> Result<Option<SegmentPrefix>> {
    let segment_locator = SegmentLocator::open(dir)?;
    let size = segment_locator.meta.segment_bytes;
    let indices = segment_locator.indices()?;
    let mut prefix =
        SegmentPrefix { end_position: Position(indices.first().map_or(0, |first| first * size)), crc: 0 };
    for index in indices.into_iter().take_while(|index| (index + 1) * size <= position.0) {
        let Some(sums) =
            read_sums(&segment_locator, index).filter(|_| prefix.end_position == Position(index * size))
        else {
            return Ok(None);
        };
        prefix.crc = crc32c::crc32c_append(prefix.crc, &sums);
        prefix.end_position = Position((index + 1) * size);
    }
    Ok(Some(prefix))
}

/// Checksums of the oldest whole segments of a tape, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentChecksums {
    /// Index of the first of these segments. It is the oldest segment of the tape.
    pub first_index: u64,
    /// CRC-32C of the checksum file of each: segments with equal bytes have an equal one.
    pub crcs: Vec<u32>,
}

/// Reads the checksum of each segment of the tape in `dir` that ends at or before `position`, up to the first segment whose
/// checksums are missing.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version.
pub fn segment_checksums(dir: &Path, position: Position) -> Result<SegmentChecksums> {
    let segment_locator = SegmentLocator::open(dir)?;
    let size = segment_locator.meta.segment_bytes;
    let indices = segment_locator.indices()?;
    let mut checksums =
        SegmentChecksums { first_index: indices.first().copied().unwrap_or(0), crcs: Vec::new() };
    for index in indices.into_iter().take_while(|index| (index + 1) * size <= position.0) {
        let is_next = index == checksums.first_index + checksums.crcs.len() as u64;
        let Some(sums) = read_sums(&segment_locator, index).filter(|_| is_next) else { break };
        checksums.crcs.push(crc32c::crc32c(&sums));
    }
    Ok(checksums)
}

/// Reads the checksum file of a whole segment. `None` if it is missing or incomplete.
fn read_sums(live: &SegmentLocator, index: u64) -> Option<Vec<u8>> {
    let sums_bytes = live.meta.segment_bytes / live.meta.span() * 4;
    let sums = read_start(&live.paths.crc(index), sums_bytes + 1).ok()?;
    (sums.len() as u64 == sums_bytes).then_some(sums)
}
