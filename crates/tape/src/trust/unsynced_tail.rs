//! How much beyond the durable position a writer may believe: what checksums say after a restart of the machine, or
//! after a flush that failed; and whether the durable part is there at all.

use unitape_model::Position;

use crate::disk::definitions::{DefinitionLog, HEAD, LogRecoveryLimits};
use crate::disk::durable::{DurableMark, load_durable, store_durable};
use crate::disk::layout::{HEADER_PAGE, list_segments, read_start, segment_path};
use crate::disk::lock::holder;
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::seal::is_sealed;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::{Error, Result};
use crate::trust::durable_rebuild::remake_durable;
use crate::trust::segment_sums::{OpenSpan, SegmentSums, StoredChecksumState, check_durable, vouch};
use crate::trust::span::matches_prefix_sum;
use crate::trust::survey::TapeSurvey;

/// Refuses a tape that was durable but no longer knows how far. A new tape, or a tape that was killed before its first
/// flush, does not know it yet and is accepted.
///
/// # Errors
/// Fails at damage.
pub(crate) fn check_known(live: &SegmentLocator, clean: bool) -> Result<()> {
    let path = live.paths.durable();
    if path.exists() || !was_durable(live, clean)? {
        return Ok(());
    }
    let reason = "the file is missing, it says how far the tape is durable; `unitape tape repair` makes it again by \
                walking the tape";
    Err(Error::damage(&path, 0, reason))
}

/// Returns whether a tape without the file `durable` must have had it. The tape was closed with frames on it, or a
/// segment was sealed or removed; both happen only to durable data.
pub(crate) fn was_durable(live: &SegmentLocator, clean: bool) -> Result<bool> {
    let segment_indices = list_segments(&live.paths.segments())?;
    let Some(&first) = segment_indices.first() else { return Ok(false) };
    let segments_dir = live.paths.segments();
    if first > 0 || segment_indices.iter().any(|&i| is_sealed(&segment_path(&segments_dir, i))) {
        return Ok(true);
    }
    let path = segment_path(&segments_dir, first);
    let has_frames = |segment: &MappedSegment| segment.header_state(0) != HeaderWordState::Nothing;
    Ok(clean && MappedSegment::map(&path, &live.meta, first, false)?.as_ref().is_some_and(has_frames))
}

/// Compares the durable bytes that a writer or its recorder will read again: the spans of the last durable segment, and
/// the dictionary log. A tape of an earlier build stores the checksum of the open span from here on.
///
/// # Errors
/// Fails at damage; then nothing was changed.
pub(crate) fn check_before_writing(
    live: &SegmentLocator,
    durable: &mut DurableMark,
    end: Position,
    clean: bool,
) -> Result<()> {
    let bounds = LogRecoveryLimits {
        durable_bytes: durable.definitions_bytes,
        tape_end: end,
        cuts_broken_records: false,
    };
    if live.paths.definitions().exists() || bounds.durable_bytes > HEAD as u64 {
        DefinitionLog::open(&live.paths, &live.meta, end, bounds)?;
    }
    // A live recorder has compared it, and is writing the checksums after it.
    if holder(&live.paths.recorder_lock())?.is_some() {
        return Ok(());
    }
    let stored = if clean { StoredChecksumState::Covered } else { StoredChecksumState::AtLeastCovered };
    check_durable(&live.paths, &live.meta, durable, stored)?;
    check_sealed(live, durable.position)?;
    vouch(&live.paths, &live.meta, durable)
}

/// Compares the sealed segments that end beyond the durable position. Only durable segments are sealed, so the file
/// `durable` is older than they are.
fn check_sealed(live: &SegmentLocator, durable: Position) -> Result<()> {
    let (size, segments_dir) = (live.meta.segment_bytes, live.paths.segments());
    for index in list_segments(&segments_dir)?.into_iter().filter(|&index| index >= durable.0 / size) {
        let path = segment_path(&segments_dir, index);
        if !is_sealed(&path) {
            continue;
        }
        let Some((segment, _)) = MappedSegment::open(&path, &live.meta, index, false)? else { continue };
        let open_span = OpenSpan { covered_sum: None, stored_state: StoredChecksumState::Covered };
        let sums = SegmentSums::load(&live.paths, &live.meta, index)?;
        if let Some(fault) = sums.first_fault(&segment, size, open_span) {
            return Err(fault.error(&path, segment.base_position));
        }
    }
    Ok(())
}

/// Finds the end of a copy that was made while the tape was written. Its files are of different moments, so `durable`
/// may be ahead of the rest. The copy ends where its own units do: `durable` goes back to the last byte that its
/// checksums cover, and `look` walks from there. Later bytes stay, as they do after the death of a writer that flushed
/// none of them.
///
/// # Errors
/// Fails with `damage`, and leaves `durable` unchanged, if no file is older than `durable`, or if bytes before the last
/// span of the copy do not match their checksum.
pub(crate) fn end_of_copy<T>(
    live: &SegmentLocator,
    damage: Error,
    look: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let old_durable = match load_durable(&live.paths) {
        Ok(before) if is_older_than(live, &before)? => before,
        _ => return Err(damage),
    };
    let result = remake_durable(live).and_then(|made| {
        let reach = Position(made.position.0 - made.position.0 % live.meta.span() + live.meta.span());
        // Frames a whole span beyond are damage, and not the place at which the copy ends.
        match TapeSurvey::scan_segments(&live.paths, &live.meta)?.end_positions().0 > reach
            || made.position > old_durable.position
        {
            true => Err(Error::damage(&live.paths.durable(), 0, "")),
            false => look(),
        }
    });
    if result.is_err() {
        store_durable(&live.paths, &old_durable)?;
    }
    result.map_err(|e| if let Error::Damage { .. } = e { damage } else { e })
}

/// Returns whether a file of the tape is older than `durable`. The dictionary log is shorter than `durable` says, a
/// segment lacks frames before the durable position, or a `.crc` file lacks their checksums.
fn is_older_than(live: &SegmentLocator, durable: &DurableMark) -> Result<bool> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let log = live.paths.definitions();
    if std::fs::metadata(&log).map_or(0, |m| m.len()) < durable.definitions_bytes {
        return Ok(true);
    }
    let segments_dir = live.paths.segments();
    let oldest_index = list_segments(&segments_dir)?.first().copied().unwrap_or(0);
    for index in oldest_index..durable.position.0.div_ceil(size) {
        let covered = (durable.position.0 - index * size).min(size);
        // Damage of a header does not come from copying.
        let Ok(disk_segment) =
            MappedSegment::open(&segment_path(&segments_dir, index), &live.meta, index, false)
        else {
            continue;
        };
        let Some((segment, _)) = disk_segment else { return Ok(true) };
        let mut offset = 0;
        while offset < covered {
            match segment.header_state(offset) {
                HeaderWordState::Frame(header) => offset += header.len_bytes() as u64,
                HeaderWordState::Nothing => return Ok(true),
                HeaderWordState::Pad | HeaderWordState::Damage(_) => break,
            }
        }
        let sums = SegmentSums::load(&live.paths, &live.meta, index)?;
        if sums.len() < covered.div_ceil(span) {
            return Ok(true);
        }
        // The last one may be of fewer bytes than the span has now.
        let last_span = covered / span;
        if let Some(sum) =
            last_span.checked_sub(1).filter(|_| sums.len() == last_span).and_then(|i| sums.get(i))
        {
            // SAFETY: within the segment by `covered`; the lock is ours and no writer lives.
            let bytes = unsafe { segment.bytes((last_span - 1) * span, span as usize) };
            if crc32c::crc32c(bytes) != sum && matches_prefix_sum(bytes, span, sum.to_le_bytes()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Computes after a restart how far beyond the durable position the checksums match the bytes on the disk.
pub(crate) fn trusted_end(live: &SegmentLocator, durable: Position) -> Result<Position> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let mut trusted = durable;
    for index in durable.0 / size.. {
        let path = segment_path(&live.paths.segments(), index);
        let Ok(sums) = read_start(&live.paths.crc(index), size / span * 4) else { break };
        let Ok(Some((segment, _))) = MappedSegment::open(&path, &live.meta, index, false) else { break };
        for (i, sum) in sums.chunks_exact(4).enumerate() {
            let span_start = i as u64 * span;
            if span_start >= size {
                break;
            }
            // SAFETY: within the segment; the lock is ours and no writer lives.
            let bytes = unsafe { segment.bytes(span_start, span as usize) };
            if crc32c::crc32c(bytes).to_le_bytes() != *sum {
                return Ok(trusted.max(durable));
            }
            trusted = trusted.max(segment.base_position.plus(span_start + span));
        }
        if trusted < segment.end_position() {
            break;
        }
    }
    Ok(trusted)
}

/// Finds lost data after the death of a writer, on a machine that was not restarted. Returns the first span beyond the
/// durable position that does not match the checksum of its write. After a failed flush the kernel may have dropped
/// pages that it could not write.
pub(crate) fn first_lost(live: &SegmentLocator, durable: Position) -> Result<Option<(Position, Error)>> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    for index in list_segments(&live.paths.segments())?.into_iter().filter(|&i| i >= durable.0 / size) {
        let path = segment_path(&live.paths.segments(), index);
        if live.hot_place()?.is_some_and(|hot| segment_path(&hot, index).exists()) {
            continue;
        }
        let Ok(sums) = read_start(&live.paths.crc(index), size / span * 4) else { continue };
        let Some((segment, _)) = MappedSegment::open(&path, &live.meta, index, false)? else { continue };
        for (i, sum) in sums.chunks_exact(4).take((size / span) as usize).enumerate() {
            let span_start = i as u64 * span;
            // SAFETY: within the segment; the lock is ours and no writer lives.
            let bytes = unsafe { segment.bytes(span_start, span as usize) };
            let is_last_span = (i + 1) * 4 + 4 > sums.len();
            let is_same = crc32c::crc32c(bytes).to_le_bytes() == *sum;
            if !(is_same
                || is_last_span && matches_prefix_sum(bytes, span, sum.try_into().expect("four bytes")))
            {
                let reason = format!(
                    "the checksum of the {span} bytes from here does not match; they were not durable, and a flush that \
                     fails can lose them"
                );
                let error = Error::damage(&path, HEADER_PAGE + span_start, reason);
                return Ok(Some((segment.base_position.plus(span_start), error)));
            }
        }
    }
    Ok(None)
}
