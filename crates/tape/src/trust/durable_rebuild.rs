//! The durable mark, made again from the tape itself.

use unitape_model::Position;

use crate::disk::definitions::{DefinitionReader, HEAD};
use crate::disk::durable::{DurableMark, store_durable};
use crate::disk::layout::{TapeManifest, segment_path};
use crate::disk::seal::is_sealed;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::Result;
use crate::trust::segment_sums::SegmentSums;
use crate::trust::span::extend_with_zeros;
use crate::trust::survey::{SegmentScanEnd, SegmentSurvey, TapeSurvey};

/// The durable position of a tape whose file `durable` is lost, and the last position that any checksum covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RebuiltDurableMark {
    pub durable: DurableMark,
    /// There are checksums up to here.
    pub summed: Position,
}

/// Rebuilds the file `durable` of a tape from its checksums alone. [`crate::WriterOptions::truncate_damage`] uses it,
/// and then cuts off the rest.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub(crate) fn remake_durable(live: &SegmentLocator) -> Result<DurableMark> {
    let survey = TapeSurvey::scan_segments(&live.paths, &live.meta)?;
    let mut position = survey.first();
    for segment in &survey.segments {
        let vouched = vouched_from_start(&survey, segment)?;
        position = segment.base_position.plus(vouched);
        if vouched < live.meta.segment_bytes {
            break;
        }
    }
    let mut durable = DurableMark { position: survey.unit_end_before(position)?.0, ..DurableMark::default() };
    durable.definitions_bytes = log_bytes(&survey, durable.position);
    durable.open_sum = open_sum(&survey, durable.position)?;
    store_durable(&live.paths, &durable)?;
    Ok(durable)
}

/// Computes how far the tape was durable, from its frames and checksums.
///
/// A closed tape was durable up to its end, any other tape up to the last checksum that matches. Earlier bytes that do
/// not match are damaged; they are not the end.
pub(crate) fn remake(survey: &TapeSurvey, closed: bool) -> Result<RebuiltDurableMark> {
    let (mut matched, mut summed) = (survey.first(), survey.first());
    for segment in &survey.segments {
        let sums = SegmentSums::load(&survey.paths, &survey.meta, segment.segment_index)?;
        if sums.len() > 0 {
            let bytes = (sums.len() * survey.meta.span()).min(survey.meta.segment_bytes);
            summed = segment.base_position.plus(bytes);
        }
        for i in 0..sums.len() {
            if let Some(matching_end) = matching_end(survey, segment, &sums, i)? {
                matched = segment.base_position.plus(matching_end);
            }
        }
    }
    // Not after a pad: a tape that was closed has frames in its last segment, or none at all.
    let position = if closed { survey.end_positions().0 } else { survey.unit_end_before(matched)?.0 };
    let durable = DurableMark { position, definitions_bytes: 0, open_sum: None };
    Ok(RebuiltDurableMark { durable, summed })
}

/// Explains why the file `durable` must be older than the tape, if it is. A closed tape is durable to its end, and only
/// durable segments are sealed.
pub(crate) fn why_older(survey: &TapeSurvey, durable: &DurableMark, closed: bool) -> Option<String> {
    let (says, end) = (durable.position, survey.end_positions().0);
    if closed && says < end {
        return Some(format!(
            "it says that the tape ends at position {says}, and the tape was closed at {end}"
        ));
    }
    let segments_dir = survey.paths.segments();
    let sealed = |segment: &&SegmentSurvey| {
        segment.base_position.plus(survey.meta.segment_bytes) > says
            && is_sealed(&segment_path(&segments_dir, segment.segment_index))
    };
    let sealed_segment = survey.segments.iter().find(sealed)?;
    Some(format!(
        "it says that the tape is durable to position {says}, and segment {} is sealed",
        sealed_segment.segment_index
    ))
}

/// Computes the checksum of the bytes before `position` in its span.
pub(crate) fn open_sum(survey: &TapeSurvey, position: Position) -> Result<Option<u32>> {
    let TapeManifest { segment_bytes, .. } = survey.meta;
    let end_offset = position.0 % segment_bytes;
    let span_start = end_offset - end_offset % survey.meta.span();
    if span_start == end_offset {
        return Ok(Some(0));
    }
    let Some(segment_survey) = survey.segment_at(position).filter(|s| s.length >= end_offset) else {
        return Ok(None);
    };
    let segment = survey.open(segment_survey, false)?;
    // SAFETY: within the file, which nobody writes.
    Ok(Some(crc32c::crc32c(unsafe { segment.bytes(span_start, (end_offset - span_start) as usize) })))
}

/// Returns the data offset up to which checksums cover a segment from its start.
fn vouched_from_start(survey: &TapeSurvey, segment: &SegmentSurvey) -> Result<u64> {
    let sums = SegmentSums::load(&survey.paths, &survey.meta, segment.segment_index)?;
    let mut vouched = 0;
    for i in 0..sums.len() {
        match matching_end(survey, segment, &sums, i)? {
            Some(to) => vouched = to,
            None => break,
        }
        if !vouched.is_multiple_of(survey.meta.span()) {
            break;
        }
    }
    Ok(vouched)
}

/// Returns the data offset up to which the checksum of span `i` matches: the whole span, or some of its lines with
/// zeros after them.
fn matching_end(
    survey: &TapeSurvey,
    segment_survey: &SegmentSurvey,
    sums: &SegmentSums,
    i: u64,
) -> Result<Option<u64>> {
    let span = survey.meta.span();
    let Some(stored) = sums.get(i) else { return Ok(None) };
    let (from, end) = (i * span, ((i + 1) * span).min(segment_survey.length));
    if from >= end {
        return Ok(None);
    }
    let segment = survey.open(segment_survey, false)?;
    // SAFETY: within the file, which nobody writes.
    let bytes = unsafe { segment.bytes(from, (end - from) as usize) };
    if end - from == span && crc32c::crc32c(bytes) == stored {
        // The zeros at its end need not have been there.
        let ends_in_it =
            segment_survey.scan_end == SegmentScanEnd::Nothing && segment_survey.frames_end < end;
        return Ok(Some(if ends_in_it { segment_survey.frames_end.max(from) } else { end }));
    }
    let mut sum = 0;
    let mut rebuilt_end = from;
    for line in bytes.chunks(unitape_model::LINE) {
        sum = crc32c::crc32c_append(sum, line);
        rebuilt_end += line.len() as u64;
        if extend_with_zeros(sum, from + span - rebuilt_end) == stored {
            return Ok(Some(rebuilt_end));
        }
    }
    Ok(None)
}

/// Counts the bytes of the dictionary log for positions before `end`, as far as the log can be read.
fn log_bytes(survey: &TapeSurvey, end: Position) -> u64 {
    let mut bytes = HEAD as u64;
    if let Ok(mut log) = DefinitionReader::open_at(&survey.paths.definitions(), &survey.meta) {
        while let Ok(Some((position, frame))) = log.next() {
            if position >= end {
                break;
            }
            bytes += (crate::disk::definitions::RECORD + frame.len()) as u64;
        }
    }
    bytes
}
