//! Where the live segments are when a writer has opened its tape: on the disk, or in a hot directory.

use crate::disk::layout::{SegmentHeader, segment_path};
use crate::disk::map::{MappedSegment, SegmentAllocation};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::record::flush::SyncPolicy;
use crate::record::follow::TapeRecorder;
use crate::write::cut::{CutPlan, RecoveredEnd, truncate_tape};
use crate::write::hot::{HotDirectory, HotDiscovery, forget_link};
use crate::write::options::{Backing, WriterOptions};

/// Brings the live segments to the place that the options demand. Returns the hot directory of a hot tape.
pub(crate) fn apply_backing(
    live: &SegmentLocator,
    end: &RecoveredEnd,
    options: &WriterOptions,
    start: HotDiscovery,
) -> Result<Option<HotDirectory>> {
    let paths = &live.paths;
    let HotDiscovery { own_dir, unmarked_dir: early, .. } = start;
    if let Backing::Hot { window_segments: ..2, .. } = &options.backing {
        return Err(Error::Option("window_segments must be at least 2"));
    }
    let is_file = options.backing == Backing::File;
    if early.is_some() || is_file && own_dir.is_some() {
        // Hot before, a file now, or in a directory that is left: the disk must have all of it first.
        let segment_locator = SegmentLocator::from_manifest(paths.clone(), live.meta);
        let mut recorder = TapeRecorder::open(segment_locator, SyncPolicy::OnClose, u64::MAX / 2)?;
        while recorder.step()? || recorder.position < end.position {}
        recorder.sync_last()?;
    }
    if early.is_some() {
        forget_link(paths)?;
        // Frames that were committed after the last whole unit were recorded, too.
        let cut_plan = CutPlan { replaces: false, may_zero: true, allocation: options.segment_allocation() };
        truncate_tape(live, end, None, &cut_plan)?;
    }
    let Backing::Hot { dir, .. } = &options.backing else {
        match own_dir {
            Some(old_hot) => old_hot.remove(paths)?,
            None => forget_link(paths)?,
        }
        return Ok(None);
    };
    let hot = match own_dir {
        Some(existing_hot) => existing_hot,
        None => HotDirectory::make_directory(paths, &live.meta, dir.as_deref())?,
    };
    let (size, index) = (live.meta.segment_bytes, end.position.0 / live.meta.segment_bytes);
    let disk = segment_path(&paths.segments(), index);
    // Also if the directory exists without the segment: another process has removed the segment.
    if !end.position.0.is_multiple_of(size)
        && !segment_path(&hot.hot_dir, index).exists()
        && let Some((from, first_ordinal)) = MappedSegment::open(&disk, &live.meta, index, false)?
    {
        let header = SegmentHeader { meta: live.meta, index, first_ordinal };
        let temp = hot.hot_dir.join(format!("making-{index:016x}"));
        let new_segment = MappedSegment::create(&temp, &header, SegmentAllocation::Ready)?;
        // SAFETY: the range was found committed, or zero, by `find_end` and `truncate`; the new file is ours.
        unsafe { new_segment.copy_in(0, from.bytes(0, (end.position.0 - from.base_position.0) as usize)) };
        let path = segment_path(&hot.hot_dir, index);
        sys::rename(&temp, &path).with_context("rename", &path)?;
    }
    Ok(Some(hot))
}
