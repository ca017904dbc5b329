//! The tape's past, as an opening for writing sees it: its epoch, and whether the machine was restarted. Bytes beyond
//! the end are removed in such a way that no reader which has them mapped mistakes new frames for them.

use std::path::Path;

use unitape_model::Position;

use crate::disk::definitions::{DefinitionLog, LogRecoveryLimits};
use crate::disk::durable::load_durable;
use crate::disk::layout::{
    SegmentHeader, TapeId, TapePaths, list_indexes, list_segments, list_sums, read_start, remove,
    remove_beside, segment_path, sync_dir,
};
use crate::disk::lineage::{EpochLimits, Lineage, boot_number};
use crate::disk::lock::field;
use crate::disk::map::{MappedSegment, SegmentAllocation};
use crate::disk::seal::unseal;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::{segment_pool, sys};
use crate::error::{Error, FileContext, Result};
use crate::trust::span::span_sum;
use crate::write::hot::HotDirectory;
use crate::write::options::WriterOptions;
use crate::write::origin::OriginEpoch;

/// The facts that were found before this opening.
pub(crate) struct OpeningState<'a> {
    /// The text of the lock file.
    pub lock_text: &'a str,
    /// This boot of the machine.
    pub boot: &'a str,
    /// The tape is made just now.
    pub is_new_tape: bool,
    /// The epoch that an opening at an origin asks for.
    pub origin: OriginEpoch,
}

/// An opening, before the tape is looked at.
pub(crate) struct WriterOpening {
    /// With the epoch of this opening; not stored yet.
    pub lineage: Lineage,
    /// Epoch of the writer before; 0 if it is unknown.
    pub epoch_before: u64,
    /// The boot in which a writer has the tape open, as the lineage says.
    pub open_before: Option<u128>,
    /// The last writer closed the tape.
    pub was_closed: bool,
    /// The machine was restarted since a writer that had not.
    pub has_rebooted: bool,
}

impl WriterOpening {
    /// Begins an opening: finds out how the last one ended, and assigns an epoch to this one.
    pub fn begin_opening(
        paths: &TapePaths,
        tape: TapeId,
        opening: &OpeningState<'_>,
        options: &WriterOptions,
    ) -> Result<Self> {
        let &OpeningState { lock_text: before, boot, is_new_tape: created, origin } = opening;
        let stored_lineage = match Lineage::load(paths, tape) {
            // A lineage of a tape that was removed, or that is given up with the damage, counts as lost.
            Err(Error::Damage { .. } | Error::ForeignTape { .. }) if created || options.truncate_damage => {
                None
            }
            other => other?,
        };
        // The lineage is flushed when a writer opens. The lock is not, and a power loss can take it away.
        let open_boot = stored_lineage.as_ref().and_then(|lineage| lineage.open_boot);
        let rebooted = open_boot.is_some_and(|open| open != boot_number(boot))
            || !before.is_empty() && field(before, "boot").unwrap_or_default() != boot;
        let is_lost = stored_lineage.is_none() && (!created || Lineage::path(paths).exists());
        let past = EpochLimits {
            tape,
            is_new_tape: created,
            known_epoch: field(before, "epoch").and_then(|e| e.parse().ok()).unwrap_or(0),
            least_epoch: options.epoch_min,
            // Reads the clock only if necessary. The epochs of a lost lineage are unknown. The time is later than all
            // of them, so that no holder of an old epoch mistakes a new epoch for its own.
            first_epoch: if is_lost {
                options.removal_options.clock.now().wall_ns.max(1000) as u64 / 1000
            } else {
                1
            },
            requested_epoch: origin.requested_epoch,
        };
        let epoch_before = stored_lineage.as_ref().map_or(0, |lineage| lineage.epoch);
        let lineage = match stored_lineage {
            // It was made with the epoch of this opening.
            Some(begun_lineage) if origin.is_begun && begun_lineage.epoch > past.known_epoch => begun_lineage,
            previous_lineage => Lineage::next(previous_lineage, &past, paths)?,
        };
        Ok(Self {
            epoch_before,
            lineage,
            open_before: open_boot,
            was_closed: before.is_empty() && open_boot.is_none(),
            has_rebooted: rebooted,
        })
    }

    /// Writes the lineage with this opening, and with the cut if readers may have seen more than `cut`.
    pub fn store_lineage(&mut self, live: &SegmentLocator, cut: Option<Position>, boot: &str) -> Result<()> {
        if let Some(position) = cut {
            let oldest = live.indices()?.first().copied().unwrap_or(0);
            self.lineage.cut(position, Position(oldest.saturating_mul(live.meta.segment_bytes)));
        }
        self.lineage.open_boot = Some(boot_number(boot));
        self.lineage.store(&live.paths)
    }
}

/// Says how everything beyond the end is removed.
pub(crate) struct CutPlan {
    /// A reader may exist. The segment of the end gets a new file, and a reader that has mapped the old file keeps it
    /// unchanged.
    pub replaces: bool,
    /// The old file is zeroed if there is no room for the new file: no process that had it mapped is left.
    pub may_zero: bool,
    pub allocation: SegmentAllocation,
}

impl CutPlan {
    /// Gives the segment of the end a new file with the bytes before the end, or removes it if there are no such bytes.
    /// Returns false if the file stays and must be zeroed.
    ///
    /// Bytes that a reader can see are never written again, and the bytes that it finds under the name are of the new
    /// epoch.
    pub fn replace(&self, segment: &MappedSegment, live: &SegmentLocator, end: Position) -> Result<bool> {
        if !self.replaces {
            return Ok(false);
        }
        let (offset, path) = (end.0 - segment.base_position.0, &segment.path);
        if offset == 0 {
            let removes =
                segment.segment_index == 0 || live.indices()?.contains(&(segment.segment_index - 1));
            if removes {
                remove(path)?;
                remove_beside(&live.paths, segment.segment_index)?;
            }
            return Ok(removes);
        }
        let first_ordinal = segment.first_ordinal(&live.meta)?;
        let header = SegmentHeader { meta: live.meta, index: segment.segment_index, first_ordinal };
        let folder = path.parent().unwrap_or(Path::new("."));
        let on_disk = folder == live.paths.segments();
        let making = if on_disk { live.paths.run() } else { folder.into() };
        let temp = making.join(format!("making-{:016x}", segment.segment_index));
        let make_result = (|| {
            let new_segment = MappedSegment::create(&temp, &header, self.allocation)?;
            // SAFETY: the range was found committed by the walk to the end, and the new file is ours.
            unsafe { new_segment.copy_in(0, segment.bytes(0, offset as usize)) };
            // Before it has the name: some of it is durable under that name already.
            sys::sync_data(&new_segment.file).with_context("flush", &temp)?;
            sys::rename(&temp, path).with_context("rename", path)?;
            sync_dir(folder)
        })();
        if make_result.is_err() {
            let _ = remove(&temp);
        }
        match make_result {
            Err(e) if self.may_zero && e.is_disk_full() => Ok(false),
            other => other.map(|()| true),
        }
    }
}

/// Removes the bytes beyond the end from the checksums. New bytes will be written there, and a writer that dies before
/// its recorder begins would leave them with checksums of the old bytes.
///
/// It comes before the bytes are cut: the checksum of a start of the span is right before and after.
pub(crate) fn cut_sums(live: &SegmentLocator, end: Position) -> Result<()> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let last_segment = end.0 / size;
    // An index is of a segment that is finished, and these are not.
    for index in list_indexes(&live.paths.segments())?.into_iter().filter(|&index| index >= last_segment) {
        remove(&live.paths.index(index))?;
    }
    for index in list_sums(&live.paths.segments())?.into_iter().filter(|&index| index >= last_segment) {
        let path = live.paths.crc(index);
        let kept_bytes = if index == last_segment { end.0 - last_segment * size } else { 0 };
        if kept_bytes == 0 {
            remove(&path)?;
            continue;
        }
        let mut sums = read_start(&path, size / span * 4).with_context("read", &path)?;
        let whole_sums_bytes = (kept_bytes / span) as usize * 4;
        if sums.len() <= whole_sums_bytes {
            continue;
        }
        sums.truncate(whole_sums_bytes);
        if !kept_bytes.is_multiple_of(span) {
            let Some((segment, _)) = live.segment(index)? else { continue };
            // SAFETY: the walk to the end found these bytes committed; the lock is ours and no writer lives.
            let zero_start =
                unsafe { segment.bytes(kept_bytes - kept_bytes % span, (kept_bytes % span) as usize) };
            sums.extend_from_slice(&span_sum(zero_start, span).to_le_bytes());
        }
        unseal(&path)?;
        let file = sys::open_or_make(&path).with_context("open", &path)?;
        sys::write_at(&file, &sums[whole_sums_bytes..], whole_sums_bytes as u64)
            .with_context("write", &path)?;
        sys::set_len(&file, sums.len() as u64).with_context("cut", &path)?;
    }
    Ok(())
}

pub(crate) struct RecoveredEnd {
    pub position: Position,
    pub ordinal: u64,
    pub cut_bytes: u64,
    /// A reader may have seen committed frames beyond it.
    pub may_be_missed: bool,
}

/// Zeroes everything after the end and removes later segments, wherever they are.
pub(crate) fn truncate_tape(
    live: &SegmentLocator,
    end: &RecoveredEnd,
    hot: Option<&HotDirectory>,
    cut_plan: &CutPlan,
) -> Result<()> {
    let size = live.meta.segment_bytes;
    let last_segment = end.position.0 / size;
    let segments = live.paths.segments();
    for (dir, is_hot) in hot.map(|hot| (&hot.hot_dir, true)).into_iter().chain([(&segments, false)]) {
        // From the end, so that no reader that looks meanwhile finds a gap between segments.
        for index in list_segments(dir)?.into_iter().rev().filter(|&i| i >= last_segment) {
            let path = segment_path(dir, index);
            if index > last_segment {
                remove(&path)?;
                remove_beside(&live.paths, index)?;
                continue;
            }
            unseal(&path)?;
            let opened_segment = match is_hot {
                true => segment_pool::open_own(dir, &live.meta, index),
                false => MappedSegment::open(&path, &live.meta, index, true),
            };
            if let Some((segment, _)) = match opened_segment {
                // Nothing of it is on the tape: a broken one is made again.
                Err(Error::Damage { .. }) if end.position.0.is_multiple_of(size) => {
                    remove(&path)?;
                    Ok(None)
                }
                other => other,
            }? && !cut_plan.replace(&segment, live, end.position)?
            {
                segment.zero_from(end.position.0 - segment.base_position.0);
            }
        }
    }
    if live.paths.definitions().exists() {
        let durable_bytes = load_durable(&live.paths)?.definitions_bytes;
        let bounds = LogRecoveryLimits { durable_bytes, tape_end: end.position, cuts_broken_records: true };
        DefinitionLog::open(&live.paths, &live.meta, end.position, bounds)?;
    }
    Ok(())
}
