//! Damage that cannot be repaired, and the cut that removes it, if you want it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use unitape_model::Position;

use crate::disk::cursor::Cursor;
use crate::disk::durable::DurableMark;
use crate::disk::hot::{HotDirectoryLookup, find};
use crate::disk::layout::{
    HEADER_PAGE, SegmentHeader, list_indexes, list_segments, list_sums, read_start, remove, segment_path,
    sync_dir,
};
use crate::disk::lineage::{Lineage, newest_epoch};
use crate::disk::map::{HeaderWordState, MappedSegment, SegmentAllocation};
use crate::disk::pending_cut::PendingCut;
use crate::disk::seal::unseal;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, optional};
use crate::repair::backup::FileAttributes;
use crate::repair::spans::UnmendedRange;
use crate::repair::{RepairCut, RepairFinding, RepairRemedy, RepairSession};
use crate::trust::durable_rebuild;
use crate::trust::span::extend_with_zeros;
use crate::trust::survey::{SegmentScanEnd, TapeSurvey};
use crate::trust::unsynced_tail::first_lost;
use crate::write::hot::{HotDirectory, forget_link};

impl RepairSession<'_> {
    /// Finds positions where frames are missing or broken before `durable` or before the end of the checksums
    /// (`summed`), or where a writer would fail.
    pub(super) fn holes(
        &mut self,
        survey: &TapeSurvey,
        durable: Position,
        summed: Option<Position>,
        wounds: &mut Vec<UnmendedRange>,
    ) -> Result<()> {
        let (size, segments_dir) = (survey.meta.segment_bytes, self.paths.segments());
        let mut position = survey.first();
        let mut has_ended = false;
        for segment_survey in &survey.segments {
            if position < segment_survey.base && !has_ended {
                let path = segment_path(&segments_dir, position.0 / size);
                self.wound(
                    &path,
                    0,
                    "the segment is missing",
                    UnmendedRange { from: position, to: segment_survey.base },
                    wounds,
                );
            }
            if has_ended {
                break;
            }
            if segment_survey.header.is_err() {
                wounds.push(UnmendedRange { from: segment_survey.base, to: segment_survey.base.plus(size) });
            }
            let path = segment_path(&segments_dir, segment_survey.index);
            let end = segment_survey.base.plus(segment_survey.frames_end);
            position = segment_survey.base.plus(size);
            match segment_survey.stop {
                SegmentScanEnd::Full => {}
                // A kill or a power loss leaves this; the next writer ends the tape here.
                SegmentScanEnd::Nothing if end >= durable => (position, has_ended) = (end, true),
                SegmentScanEnd::Damage
                    if end >= durable && self.rebooted && segment_survey.length == size =>
                {
                    (position, has_ended) = (end, true)
                }
                SegmentScanEnd::Nothing => {
                    let gap_problem = "nothing stands here, and the tape is durable further";
                    self.wound(
                        &path,
                        HEADER_PAGE + segment_survey.frames_end,
                        gap_problem,
                        UnmendedRange { from: end, to: position.min(durable) },
                        wounds,
                    );
                }
                SegmentScanEnd::Damage => {
                    let stop_problem = match segment_survey.length < size {
                        true => "the segment is cut short",
                        false => "no frame can start here",
                    };
                    let wound = UnmendedRange { from: end, to: position };
                    self.wound(&path, HEADER_PAGE + segment_survey.frames_end, stop_problem, wound, wounds);
                }
            }
        }
        let hot = SegmentLocator::from_manifest(self.paths.clone(), survey.meta).hot_place()?;
        let hot = hot.is_some_and(|hot| segment_path(&hot, position.0 / size).exists());
        // A claim that was not published may have been given out in a segment that is there, and so it says nothing.
        let reached = match self.closed || self.rebooted || hot || !position.0.is_multiple_of(size) {
            true => None,
            false => StatePage::look(self.paths)?.map(|state| state.end().0),
        };
        let summed = summed.filter(|summed| summed.0 > position.0.next_multiple_of(survey.meta.span()));
        let reach = reached.into_iter().chain(summed).fold(durable, Position::max);
        if position < reach && !wounds.iter().any(|w| w.to > position) {
            let path = segment_path(&segments_dir, position.0 / size);
            let end_problem = "the tape ends here, but it continued";
            self.wound(
                &path,
                HEADER_PAGE + position.0 % size,
                end_problem,
                UnmendedRange { from: position, to: reach },
                wounds,
            );
        }
        if !self.closed && !self.rebooted {
            let live = SegmentLocator::from_manifest(self.paths.clone(), survey.meta);
            if let Some((from, Error::Damage { path, offset, reason })) = first_lost(&live, durable)?
                && !wounds.iter().any(|w| w.from <= from && from < w.to)
            {
                self.wound(
                    &path,
                    offset,
                    &reason,
                    UnmendedRange { from, to: survey.end().1.max(from) },
                    wounds,
                );
            }
        }
        Ok(())
    }

    fn wound(
        &mut self,
        file: &Path,
        offset: u64,
        problem: &str,
        wound: UnmendedRange,
        wounds: &mut Vec<UnmendedRange>,
    ) {
        wounds.push(wound);
        self.find(RepairFinding {
            file: file.into(),
            offset,
            positions: Some((wound.from, wound.to)),
            problem: problem.to_owned(),
            remedy: RepairRemedy::Truncate,
            action: "the data are lost; cut the tape here (--truncate), or leave it: readers continue after it with \
                     --skip-damage"
                .to_owned(),
            mended: false,
        });
    }

    /// Cuts the tape before the first wound, if you want that, and reports the removed part.
    pub(super) fn cut(
        &mut self,
        survey: &mut TapeSurvey,
        durable: &mut DurableMark,
        wounds: &[UnmendedRange],
    ) -> Result<()> {
        let Some(first) = wounds.iter().map(|w| w.from).min() else { return Ok(()) };
        let (position, ordinal) = survey.unit_end_before(first)?;
        let (size, wanted) = (survey.meta.segment_bytes, self.options.truncate);
        let end =
            wounds.iter().map(|w| w.to).max().unwrap_or(first).max(survey.end().1).max(durable.position);
        let mut events = 0;
        for segment_survey in survey.segments.iter().filter(|s| s.base.plus(size) > position) {
            let kept_bytes = position.0.saturating_sub(segment_survey.base.0);
            let segment = survey.open(segment_survey, false)?;
            let mut offset = 0;
            while offset < segment_survey.frames_end
                && let HeaderWordState::Frame(header) = segment.look(offset)
            {
                events += u64::from(offset >= kept_bytes && !header.is_meta());
                offset += header.len_bytes() as u64;
            }
        }
        // With those of a cut that this repair has completed.
        let completed = self.report.cut.filter(|_| wanted);
        self.report.cut = Some(RepairCut {
            position,
            end: completed.map_or(end, |cut| cut.end.max(end)),
            events: events + completed.map_or(0, |cut| cut.events),
            wanted,
        });
        if !wanted {
            return Ok(());
        }
        for finding in &mut self.report.findings {
            if matches!(finding.remedy, RepairRemedy::Truncate | RepairRemedy::AcceptOrTruncate)
                && !finding.mended
            {
                finding.mended = true;
                finding.action = format!("the tape ends before it, at position {position}");
            }
        }
        if self.options.apply {
            self.backup.log(&format!("cut {position} {end} {events}"))?;
            let pending = PendingCut {
                position,
                ordinal: ordinal.unwrap_or(0),
                durable: durable.position,
                epoch: optional(newest_epoch(self.paths, survey.meta.id))?.unwrap_or(0),
                end,
                events,
            };
            let path = PendingCut::path(self.paths);
            self.backup.replace(&path, &pending.encode(&survey.meta), &FileAttributes::default())?;
            self.complete_cut(survey, &pending)?;
        } else {
            let first = survey.first();
            survey.segments.retain(|s| s.base < position || s.base == first);
            if let Some(last) = survey.segments.last_mut().filter(|s| s.base.plus(size) > position) {
                last.frames_end = position.0.saturating_sub(last.base.0);
                last.unit_end = Some(last.frames_end).filter(|end| *end > 0);
                last.stop = SegmentScanEnd::Nothing;
            }
        }
        if position < durable.position {
            durable.position = position;
            durable.open_sum = durable_rebuild::open_sum(survey, position)?;
        }
        Ok(())
    }

    /// Completes the cut of a repair that was killed in the middle of it. Returns whether there was one.
    pub(super) fn resume_cut(&mut self, survey: &mut TapeSurvey) -> Result<bool> {
        let path = PendingCut::path(self.paths);
        let refused = match PendingCut::load(self.paths, survey.meta.id) {
            Ok(None) => return Ok(false),
            Ok(Some(pending)) => match self.why_not_resumable(survey, &pending)? {
                None => return self.resume(survey, &pending).map(|()| true),
                Some(reason) => (0, reason),
            },
            Err(Error::Damage { offset, reason: damage_reason, .. }) => (offset, damage_reason),
            Err(e) => return Err(e),
        };
        let action = "moved away: where the tape is damaged, this repair cuts it again";
        self.mends(&path, refused.0, refused.1, action);
        if self.options.apply {
            self.backup.move_away(&path)?;
        }
        Ok(false)
    }

    /// Explains why this cut does not belong to the tape in its present state, if so.
    fn why_not_resumable(&self, survey: &TapeSurvey, pending: &PendingCut) -> Result<Option<String>> {
        // A lineage that cannot be read names no later writer.
        let newest = optional(newest_epoch(self.paths, survey.meta.id))?.unwrap_or(0);
        let is_noted = Lineage::load(self.paths, survey.meta.id).is_ok_and(|lineage| {
            lineage
                .is_some_and(|stored_lineage| stored_lineage.ends_with_cut(pending.epoch, pending.position))
        });
        if pending.epoch != 0 && newest > pending.epoch && !is_noted {
            let epoch = pending.epoch;
            return Ok(Some(format!(
                "the cut was begun in epoch {epoch}, and a writer opened the tape in epoch {newest}"
            )));
        }
        let (position, ordinal) = survey.unit_end_before(pending.position)?;
        let is_same = position == pending.position
            && ordinal.is_none_or(|unit_ordinal| unit_ordinal == pending.ordinal);
        Ok((!is_same).then(|| {
            format!(
                "the cut is at position {}, event {}; no unit of the tape ends there",
                pending.position, pending.ordinal
            )
        }))
    }

    fn resume(&mut self, survey: &mut TapeSurvey, pending: &PendingCut) -> Result<()> {
        let PendingCut { position, end, events, .. } = *pending;
        self.report.cut = Some(RepairCut { position, end, events, wanted: true });
        let problem = format!("a repair was killed while it cut the tape at position {position}");
        let action = "the cut is completed; only then the rest of the tape can be compared";
        self.mends(&PendingCut::path(self.paths), 0, problem, action);
        if self.options.apply {
            self.complete_cut(survey, pending)?;
        }
        Ok(())
    }

    /// Cuts the tape. If it is killed at any moment, the same call with the data in `DIR/cut` completes the cut.
    ///
    /// The file `durable` is written after the segments. Readers compare only durable bytes with checksums, so a
    /// damaged frame must be removed before the tape is durable only up to the cut. Until then readers report the
    /// damage, or that the tape ends before its durable position.
    fn complete_cut(&mut self, survey: &mut TapeSurvey, cut: &PendingCut) -> Result<()> {
        let open_sum = durable_rebuild::open_sum(survey, cut.position)?;
        self.cut_segments(survey, cut, open_sum)?;
        if cut.position < cut.durable {
            let durable = DurableMark { position: cut.position, definitions_bytes: 0, open_sum };
            self.backup.replace(&self.paths.durable(), &durable.encode(), &FileAttributes::default())?;
        }
        self.cut_run(cut.position, cut.ordinal)?;
        self.cut_lineage(survey, cut)?;
        remove(&PendingCut::path(self.paths))?;
        sync_dir(&self.paths.dir)?;
        *survey = TapeSurvey::scan_segments(self.paths, &survey.meta)?;
        Ok(())
    }

    /// Moves everything after the cut away, the last segment first, and empties the rest of the segment of the cut.
    fn cut_segments(&mut self, survey: &TapeSurvey, cut: &PendingCut, open_sum: Option<u32>) -> Result<()> {
        let PendingCut { position, ordinal, durable, .. } = *cut;
        let segments_dir = self.paths.segments();
        let link = find(self.paths, survey.meta.id)?;
        if let HotDirectoryLookup::Own(hot) | HotDirectoryLookup::Early(hot) = &link {
            for index in list_segments(hot)? {
                self.backup.keep(&segment_path(hot, index))?;
            }
            self.backup.keep(&self.paths.hot())?;
        }
        match link {
            HotDirectoryLookup::Own(hot) => HotDirectory::lock(hot)?.remove(self.paths)?,
            // Its directory has no mark, so nothing in it is removed.
            HotDirectoryLookup::Early(_) => forget_link(self.paths)?,
            HotDirectoryLookup::None | HotDirectoryLookup::Gone(_) | HotDirectoryLookup::Other { .. } => {}
        }
        let first = survey.first();
        let size = survey.meta.segment_bytes;
        let base = |index: u64| Position(index * size);
        let is_after_cut = |index: &u64| base(*index) >= position && base(*index) > first;
        for index in list_segments(&segments_dir)?.into_iter().rev().filter(is_after_cut) {
            self.backup.move_away(&segment_path(&segments_dir, index))?;
        }
        // A repair that was killed may have left checksums without their segment.
        for index in list_sums(&segments_dir)?.into_iter().rev().filter(is_after_cut) {
            self.backup.move_away(&self.paths.crc(index))?;
        }
        // That of the segment of the cut too, which is not finished any more.
        for index in
            list_indexes(&segments_dir)?.into_iter().rev().filter(|&index| base(index + 1) > position)
        {
            self.backup.move_away(&self.paths.index(index))?;
        }
        let Some(segment_survey) = survey.segment_at(position) else {
            return Ok(());
        };
        if position == segment_survey.base && segment_survey.base > first {
            return Ok(());
        }
        let path = segment_path(&segments_dir, segment_survey.index);
        let kept_bytes = position.0 - segment_survey.base.0;
        let header = SegmentHeader {
            meta: survey.meta,
            index: segment_survey.index,
            first_ordinal: if kept_bytes == 0 {
                ordinal
            } else {
                survey.first_ordinal(segment_survey.index).unwrap_or(0)
            },
        };
        let new = self.backup.temp_path()?;
        let segment = MappedSegment::create(&new, &header, SegmentAllocation::Ready)?;
        if kept_bytes > 0 {
            let from = survey.open(segment_survey, false)?;
            // SAFETY: `unit_end_before` walked the range to the unit's end at `position`, for a fresh cut and for a resumed
            // one; and the new file is ours.
            unsafe { segment.copy_in(0, from.bytes(0, kept_bytes as usize)) };
        }
        sys::sync_data(&segment.file).with_context("flush", &new)?;
        drop(segment);
        self.backup.install(&new, &path, &FileAttributes::default())?;
        let sums_path = self.paths.crc(segment_survey.index);
        let span = survey.meta.span();
        if kept_bytes == 0 {
            self.backup.move_away(&sums_path)?;
        } else if position < durable {
            let mut sums = read_start(&sums_path, kept_bytes / span * 4).with_context("read", &sums_path)?;
            if let Some(sum) = open_sum.filter(|_| !kept_bytes.is_multiple_of(span)) {
                sums.extend_from_slice(&extend_with_zeros(sum, span - kept_bytes % span).to_le_bytes());
            }
            unseal(&sums_path)?;
            self.backup.replace(&sums_path, &sums, &FileAttributes::default())?;
        }
        Ok(())
    }

    /// Assigns the cut its own epoch in the lineage: a later point of an earlier epoch leads back to the cut, although
    /// the tape may be longer again. A lineage that cannot be read is rebuilt afterwards, without positions.
    fn cut_lineage(&mut self, survey: &TapeSurvey, cut: &PendingCut) -> Result<()> {
        let Ok(Some(mut lineage)) = Lineage::load(self.paths, survey.meta.id) else { return Ok(()) };
        if cut.epoch == 0 || !lineage.ends_with_cut(cut.epoch, cut.position) {
            lineage.epoch += 1;
            lineage.cut(cut.position, survey.first());
            self.backup.replace(&Lineage::path(self.paths), &lineage.encode(), &FileAttributes::default())?;
        }
        Ok(())
    }

    /// Corrects the state page and the named cursors that refer to the removed part.
    fn cut_run(&mut self, position: Position, ordinal: u64) -> Result<()> {
        let page = self.paths.run().join(StatePage::NAME);
        if page.exists() {
            self.backup.keep(&page)?;
            let state = StatePage::open(self.paths)?;
            state.set_end(position, ordinal);
            // The words recorded, durable and requested: no process has the page open, because this repair holds the
            // locks.
            for word in [0, 2, 3] {
                state.word(word).fetch_min(position.0, Ordering::Relaxed);
            }
        }
        for name in Cursor::names(&self.paths.dir)? {
            let Ok(mut cursor) = Cursor::open(&self.paths.dir, &name) else { continue };
            if cursor.load().is_ok_and(|stored_position| {
                stored_position.is_some_and(|cursor_position| cursor_position > position)
            }) {
                let path: PathBuf = self.paths.run().join("cursors").join(&name);
                self.backup.keep(&path)?;
                cursor.store(position)?;
                self.mends(&path, 32, "the cursor is behind the cut", format!("set to position {position}"));
            }
        }
        Ok(())
    }
}
