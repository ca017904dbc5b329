//! Applies retention: the recorder of a tape does so in passes, or a command on a tape that no process writes.
//!
//! A pass decides (`eligibility`) and announces on the state page. After the notice period it calls the hook, makes
//! durable what recovery needs, and unlinks, oldest first. Readers that have a segment mapped read it to its end. The
//! file `run/retention` stores the state that a pass needs after a death, as lines of `name value`.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unitape_model::Position;

use crate::disk::cursor::Cursor;
use crate::disk::durable::load_durable;
use crate::disk::layout::{
    TapeManifest, TapePaths, list_indexes, list_segments, list_sums, read_small, remove, remove_beside,
    segment_path, write_whole,
};
use crate::disk::limits::RetentionLimits;
use crate::disk::lock::{FileLock, boot_id, field, lock_writer_pid};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::{StatePage, tidy};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::retention::clock::ClockReading;
use crate::retention::clock_monitor::{ClockMonitor, TOLERANCE_NS};
use crate::retention::eligibility::{FinishedSegment, RemovalOptions, RetentionInputs, first_kept};

/// The side of retention that the recorder has.
#[derive(Debug, Default)]
pub(crate) struct RetentionEnforcer {
    removal_options: RemovalOptions,
    retention_state: Option<RetentionState>,
    /// A segment was finished since the last pass.
    due: bool,
    next_boot_ns: u64,
}

/// The state of the tape that passes remember, once any segment may be removed.
#[derive(Debug)]
struct RetentionState {
    /// Oldest segment there is.
    oldest: u64,
    finished: VecDeque<FinishedSegment>,
    ruler: ClockMonitor,
    /// Removals announced: the first segment that stays, and when it was said. At most [`ANNOUNCED_MAX`].
    announced_removals: VecDeque<(u64, u64)>,
    /// Why nothing could be removed at the last try.
    trouble: Option<String>,
    kept_boot_ns: Option<u64>,
}

/// Greatest number of pending announcements; a further one joins the last.
const ANNOUNCED_MAX: usize = 64;
/// Time between two passes when no segment is finished.
const PASS_NS: u64 = 1_000_000_000;

impl RetentionEnforcer {
    pub fn new(removal: RemovalOptions) -> Self {
        Self { removal_options: removal, ..Self::default() }
    }

    /// Returns the finish time for a segment that is finished now.
    pub fn finish_time(&self) -> SystemTime {
        let now = self.removal_options.clock.now();
        let believed = self.retention_state.as_ref().filter(|k| k.ruler.jump_ns().is_some());
        let ns = believed.map_or(now.wall_ns, |k| k.ruler.clone().look_at_clocks(now).0);
        SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(ns.max(0) as u64)
    }

    /// Takes a segment that was just finished.
    pub fn add_finished(&mut self, index: u64, finish_time: SystemTime) {
        self.due = true;
        let Some(retention) = &mut self.retention_state else { return };
        let finished_ns =
            finish_time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
        // After an error a segment is followed again.
        while retention.finished.back().is_some_and(|f| f.segment_index >= index) {
            retention.finished.pop_back();
        }
        retention.finished.push_back(FinishedSegment { segment_index: index, finished_ns });
    }

    /// Decides and announces. Returns the first segment that stays, if any segments must be removed now.
    pub fn announce_removals(
        &mut self,
        live: &SegmentLocator,
        state: &StatePage,
        recorded: Position,
    ) -> Result<Option<u64>> {
        let limits = state.retention();
        if !limits.is_limited() && self.retention_state.is_none() {
            return Ok(None);
        }
        let now = self.removal_options.clock.now();
        if !self.due && now.boot_ns < self.next_boot_ns {
            return Ok(None);
        }
        self.due = false;
        self.next_boot_ns = now.boot_ns.saturating_add(PASS_NS);
        if self.retention_state.is_none() {
            self.retention_state = Some(RetentionState::load(live, now, recorded)?);
        }
        let retention = self.retention_state.as_mut().expect("loaded above");
        let (time, believed) = retention.ruler.look_at_clocks(now);
        let size = live.meta.segment_bytes;
        let cursors = match limits.hold_for_cursors {
            Some(_) => cursor_positions(&live.paths.tape_dir)?,
            None => Vec::new(),
        };
        let reach = RetentionInputs {
            segment_bytes: size,
            recorded_to: recorded,
            now_ns: believed.then_some(time),
            cursors: &cursors,
        };
        let keep = first_kept(&limits, &retention.finished, &reach);
        retention.announce_removal(keep, now);
        let notice_ns = u64::try_from(limits.notice_period.as_nanos()).unwrap_or(u64::MAX);
        let ripe = retention
            .announced_removals
            .iter()
            .filter(|(_, announced_boot_ns)| now.boot_ns.saturating_sub(*announced_boot_ns) >= notice_ns);
        let ripe = ripe.map(|(index, _)| *index).max();
        if let Some((_, first_boot_ns)) = retention.announced_removals.front() {
            self.next_boot_ns = self.next_boot_ns.min(first_boot_ns.saturating_add(notice_ns));
        }
        let announced = retention.announced_removals.back().map_or(retention.oldest, |(index, _)| *index);
        let position_of = |index: u64| Position(index.saturating_mul(size));
        state.publish_oldest(position_of(retention.oldest), position_of(announced));
        retention.write_state(&live.paths, now, false);
        Ok(ripe)
    }

    /// Removes everything before segment `keep`, which is announced, recorded and durable.
    pub fn remove(&mut self, live: &SegmentLocator, state: &StatePage, keep: u64) {
        let Some(retention) = &mut self.retention_state else { return };
        let size = live.meta.segment_bytes;
        match remove_before(&live.paths, &live.meta, &self.removal_options, keep) {
            Ok(_) => {
                retention.trouble = None;
                retention.oldest = keep;
                while retention.announced_removals.front().is_some_and(|(index, _)| *index <= keep) {
                    retention.announced_removals.pop_front();
                }
                while retention.finished.front().is_some_and(|f| f.segment_index < keep) {
                    retention.finished.pop_front();
                }
                let announced = retention.announced_removals.back().map_or(keep, |(index, _)| *index);
                state.publish_oldest(Position(keep * size), Position(announced * size));
            }
            // Nothing of the writer's: it continues, and the next pass tries again.
            Err(e) => retention.trouble = Some(e.to_string().replace('\n', " ")),
        }
    }

    /// Stores the state that the next recorder needs, at the end of a recorder.
    pub fn save_state(&mut self, live: &SegmentLocator) {
        if let Some(retention) = &mut self.retention_state {
            retention.write_state(&live.paths, self.removal_options.clock.now(), true);
        }
    }
}

impl RetentionState {
    fn load(live: &SegmentLocator, now: ClockReading, recorded: Position) -> Result<Self> {
        let size = live.meta.segment_bytes;
        let oldest = live.indices()?.first().copied().unwrap_or(0);
        if oldest > 0 {
            // Left by one that died between the two files of a segment.
            remove_beside(&live.paths, oldest - 1)?;
        }
        let finished = finished_segments(&live.paths, recorded.0 / size)?;
        let text = String::from_utf8(read_small(&live.paths.retention()).unwrap_or_default());
        let (text, boot) = (text.unwrap_or_default(), boot_id());
        let newest = finished.iter().map(|f| f.finished_ns).max().max(ClockMonitor::time_in(&text));
        let ruler = ClockMonitor::resume(&text, &boot, now);
        let mut announced = VecDeque::new();
        if ruler.is_some() {
            for line in text.lines().filter_map(|l| l.strip_prefix("announced ")).take(ANNOUNCED_MAX) {
                let pair = line
                    .split_once(' ')
                    .and_then(|(i, boot_ns)| Some((i.parse().ok()?, boot_ns.parse().ok()?)));
                let last_announced = announced.back().map_or(oldest, |(index, _)| *index);
                announced.extend(pair.filter(|(index, _): &(u64, u64)| *index > last_announced));
            }
        }
        let ruler = ruler.unwrap_or_else(|| ClockMonitor::begin(&boot, now, newest));
        Ok(Self { oldest, finished, ruler, announced_removals: announced, trouble: None, kept_boot_ns: None })
    }

    fn announce_removal(&mut self, keep: u64, now: ClockReading) {
        // A segment that stays after all, because a new cursor needs it or the clock is not trusted, is no longer
        // announced.
        while let Some((_, announced_boot_ns)) =
            self.announced_removals.back().copied().filter(|(last, _)| *last > keep)
        {
            self.announced_removals.pop_back();
            if self.announced_removals.back().map_or(self.oldest, |(index, _)| *index) < keep {
                self.announced_removals.push_back((keep, announced_boot_ns));
            }
        }
        let last_announced = self.announced_removals.back().map_or(self.oldest, |(index, _)| *index);
        if keep > last_announced {
            if self.announced_removals.len() == ANNOUNCED_MAX {
                self.announced_removals.pop_back();
            }
            self.announced_removals.push_back((keep, now.boot_ns));
        }
    }

    /// Writes the state that the next recorder needs, about once in a pass.
    fn write_state(&mut self, paths: &TapePaths, now: ClockReading, at_once: bool) {
        let fresh = self
            .kept_boot_ns
            .is_some_and(|saved_boot_ns| now.boot_ns.saturating_sub(saved_boot_ns) < PASS_NS);
        if fresh && !at_once {
            return;
        }
        self.kept_boot_ns = Some(now.boot_ns);
        let mut text = self.ruler.to_text();
        for (index, boot_ns) in &self.announced_removals {
            text += &format!("announced {index} {boot_ns}\n");
        }
        if let Some(trouble) = &self.trouble {
            text += &format!("trouble {}\n", trouble.chars().take(1000).collect::<String>());
        }
        // Without it the next one starts afresh: with the notice, and with the clock as the tape knows it.
        let _ = write_whole(&paths.retention(), text.as_bytes());
    }
}

/// Lists the segments before `index` that have checksums, with the times at which they were finished.
fn finished_segments(paths: &TapePaths, index: u64) -> Result<VecDeque<FinishedSegment>> {
    let mut out = VecDeque::new();
    for index in list_segments(&paths.segments())?.into_iter().filter(|&i| i < index) {
        if let Ok(meta) = fs::metadata(paths.crc(index)) {
            let finished_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
            out.push_back(FinishedSegment { segment_index: index, finished_ns });
        }
    }
    Ok(out)
}

/// Returns the positions where the named cursors of the tape in `dir` continue. A cursor after the point of a cut needs
/// the tape from the cut on. A broken cursor, or a cursor without a position yet, holds nothing.
fn cursor_positions(dir: &Path) -> Result<Vec<Position>> {
    let mut out = Vec::new();
    for name in Cursor::names(dir)? {
        let Ok(cursor) = Cursor::open(dir, &name) else { continue };
        if let Ok(Some(_)) = cursor.load_point() {
            // Where the lineage cannot be read, a place may be rewound to anywhere.
            out.extend(cursor.load().unwrap_or(Some(Position(0))));
        }
    }
    Ok(out)
}

/// Returns the files of segment `index`, in the order in which they are removed.
fn segment_files(paths: &TapePaths, index: u64) -> [PathBuf; 3] {
    [segment_path(&paths.segments(), index), paths.index(index), paths.crc(index)]
}

/// Files that a removal keeps open, at most.
const OPEN_MAX: usize = 64;

/// Calls `removal_hook`, then removes the segments before `keep`, one file after the other, oldest first. Returns how many,
/// and the bytes that their files occupied.
fn remove_before(
    paths: &TapePaths,
    meta: &TapeManifest,
    removal: &RemovalOptions,
    keep: u64,
) -> Result<(u64, u64)> {
    let segments_dir = paths.segments();
    let mut old_segments: BTreeSet<u64> =
        list_segments(&segments_dir)?.into_iter().filter(|&i| i < keep).collect();
    let count = old_segments.len() as u64;
    // A killed removal has left files of a segment that no longer exists.
    old_segments.extend(
        list_indexes(&segments_dir)?.into_iter().chain(list_sums(&segments_dir)?).filter(|&i| i < keep),
    );
    if old_segments.is_empty() {
        return Ok((0, 0));
    }
    if let Some(removal_hook) = &removal.before_removal {
        let called = removal_hook.call(&paths.tape_dir, Position(keep * meta.segment_bytes));
        called.map_err(|reason| Error::NotRemoved { path: paths.tape_dir.clone(), reason })?;
    }
    let mut freed = 0;
    // Removing a file that is open takes its name at once and its blocks when it is closed, which is what takes long.
    let mut open_files = Vec::new();
    for &index in &old_segments {
        for path in segment_files(paths, index) {
            if let Ok(file) = fs::File::open(&path) {
                freed += file.metadata().map_or(0, |m| m.blocks() * 512);
                open_files.push(file);
            }
            remove(&path)?;
        }
        if open_files.len() > OPEN_MAX {
            open_files.clear();
        }
    }
    // Without a thread they are closed here.
    _ = std::thread::Builder::new().name("tape-remove".into()).spawn(move || drop(open_files));
    Ok((count, freed))
}

/// The segments that [`retain`] removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalReport {
    /// Segments.
    pub segments: u64,
    /// Bytes that their files occupied on the disk.
    pub bytes: u64,
    /// Oldest position that is kept.
    pub oldest: Position,
}

/// Applies `limits` to the tape in `dir`, which no process writes, at once and without notice; `dry` only reports.
///
/// The dictionary log must cover the removed part. So only durable segments are removed, and never the segment of the
/// end.
///
/// # Errors
/// Fails if a writer or recorder has the tape open (it applies retention itself), if a limit needs the time and the
/// clock is behind the newest segment, or if `removal.before` or the system refuses.
pub fn retain(
    dir: &Path,
    limits: &RetentionLimits,
    removal: &RemovalOptions,
    dry: bool,
) -> Result<RemovalReport> {
    limits.check()?;
    let meta = TapeManifest::load(dir)?;
    let paths = TapePaths { tape_dir: dir.into() };
    sys::make_dir(&paths.run()).with_context("make", &paths.run())?;
    let (writer, recorder) = take_locks(&paths)?;
    let result = retain_locked(&paths, &meta, limits, removal, dry);
    // The lock file distinguishes a writer that died from one that closed.
    recorder.remove()?;
    match writer.stale_holder.is_empty() {
        true => tidy(&paths, writer)?,
        false => drop(writer),
    }
    result
}

fn take_locks(paths: &TapePaths) -> Result<(FileLock, FileLock)> {
    if let Some(holder) = lock_writer_pid(paths)? {
        return Err(Error::Locked { path: paths.writer_lock(), holder });
    }
    Ok((FileLock::acquire(&paths.writer_lock())?, FileLock::acquire(&paths.recorder_lock())?))
}

fn retain_locked(
    paths: &TapePaths,
    meta: &TapeManifest,
    limits: &RetentionLimits,
    removal: &RemovalOptions,
    dry: bool,
) -> Result<RemovalReport> {
    let recorded = load_durable(paths)?.position;
    let size = meta.segment_bytes;
    let segment_indices = list_segments(&paths.segments())?;
    let oldest = segment_indices.first().copied().unwrap_or(0);
    let finished = finished_segments(paths, recorded.0 / size)?;
    let now = removal.clock.now().wall_ns;
    if let Some(newest) = finished.back().filter(|f| limits.is_timed() && f.finished_ns > now + TOLERANCE_NS)
    {
        return Err(Error::Clock {
            path: paths.crc(newest.segment_index),
            ahead_s: (newest.finished_ns - now) / 1_000_000_000,
        });
    }
    let cursors = cursor_positions(&paths.tape_dir)?;
    let reach =
        RetentionInputs { segment_bytes: size, recorded_to: recorded, now_ns: Some(now), cursors: &cursors };
    let keep = first_kept(limits, &finished, &reach).max(oldest);
    let keep = keep.min(segment_indices.last().copied().unwrap_or(0));
    let mut removed = RemovalReport { segments: 0, bytes: 0, oldest: Position(keep * size) };
    if dry {
        for index in segment_indices.into_iter().filter(|&i| i < keep) {
            removed.segments += 1;
            for path in segment_files(paths, index) {
                removed.bytes += fs::metadata(&path).map_or(0, |m| m.blocks() * 512);
            }
        }
    } else {
        (removed.segments, removed.bytes) = remove_before(paths, meta, removal, keep)?;
    }
    Ok(removed)
}

/// Segments from `oldest` on that would go by these limits, if no cursor held them.
pub(crate) fn count_held(
    paths: &TapePaths,
    meta: &TapeManifest,
    limits: &RetentionLimits,
    oldest: u64,
) -> Result<u64> {
    if limits.hold_for_cursors.is_none() {
        return Ok(0);
    }
    let recorded = StatePage::peek(paths)?.max(load_durable(paths)?.position);
    let finished = finished_segments(paths, recorded.0 / meta.segment_bytes)?;
    let cursors = cursor_positions(&paths.tape_dir)?;
    let now_ns = Some(RemovalOptions::default().clock.now().wall_ns);
    let reach = RetentionInputs {
        segment_bytes: meta.segment_bytes,
        recorded_to: recorded,
        now_ns,
        cursors: &cursors,
    };
    let free = RetentionLimits { hold_for_cursors: None, ..limits.clone() };
    let (first_with_hold, first_without_hold) =
        (first_kept(limits, &finished, &reach), first_kept(&free, &finished, &reach));
    Ok(first_without_hold.saturating_sub(first_with_hold.max(oldest)))
}

/// Explains why retention of the tape in `dir` does not follow the limits. Returns `None` if it does. The call is
/// cheap.
pub fn retention_warning(dir: &Path) -> Option<String> {
    let (jump_ns, jumps, trouble) = kept_state(&TapePaths { tape_dir: dir.into() });
    let jump = jump_ns.map(|ns| {
        let s = ns / 1_000_000_000;
        format!("the clock has jumped by {s} s (jump {jumps}); nothing goes for its age or day until it is believed")
    });
    jump.or(trouble.map(|reason| format!("nothing could be removed: {reason}")))
}

/// Reads the warnings in `run/retention`: the nanoseconds of a clock jump that is not accepted yet, the number of
/// jumps, and why nothing could be removed.
pub(crate) fn kept_state(paths: &TapePaths) -> (Option<i64>, u64, Option<String>) {
    let text = String::from_utf8(read_small(&paths.retention()).unwrap_or_default()).unwrap_or_default();
    let number = |name| field(&text, name)?.parse::<i64>().ok();
    (number("jump-ns"), number("jumps").unwrap_or(0) as u64, field(&text, "trouble").map(str::to_owned))
}
