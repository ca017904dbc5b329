//! Damage that cannot be repaired, and the cut that removes it, if you want it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use unitape_model::Position;

use crate::disk::cursor::Cursor;
use crate::disk::durable::DurableMark;
use crate::disk::hot::{HotDirectoryLookup, find_hot_directory};
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
            if position < segment_survey.base_position && !has_ended {
                let path = segment_path(&segments_dir, position.0 / size);
                self.add_wound(
                    &path,
                    0,
                    "the segment is missing",
                    UnmendedRange { from_position: position, to_position: segment_survey.base_position },
                    wounds,
                );
            }
            if has_ended {
                break;
            }
            if segment_survey.header.is_err() {
                wounds.push(UnmendedRange {
                    from_position: segment_survey.base_position,
                    to_position: segment_survey.base_position.plus(size),
                });
            }
            let path = segment_path(&segments_dir, segment_survey.segment_index);
            let frames_end = segment_survey.base_position.plus(segment_survey.frames_end);
            position = segment_survey.base_position.plus(size);
            match segment_survey.scan_end {
                SegmentScanEnd::Full => {}
                // A kill or a power loss leaves this; the next writer ends the tape here.
                SegmentScanEnd::Nothing if frames_end >= durable => {
                    (position, has_ended) = (frames_end, true)
                }
                SegmentScanEnd::Damage
                    if frames_end >= durable && self.has_rebooted && segment_survey.length == size =>
                {
                    (position, has_ended) = (frames_end, true)
                }
                SegmentScanEnd::Nothing => {
                    let gap_problem = "nothing stands here, and the tape is durable further";
                    self.add_wound(
                        &path,
                        HEADER_PAGE + segment_survey.frames_end,
                        gap_problem,
                        UnmendedRange { from_position: frames_end, to_position: position.min(durable) },
                        wounds,
                    );
                }
                SegmentScanEnd::Damage => {
                    let stop_problem = match segment_survey.length < size {
                        true => "the segment is cut short",
                        false => "no frame can start here",
                    };
                    let wound = UnmendedRange { from_position: frames_end, to_position: position };
                    self.add_wound(
                        &path,
                        HEADER_PAGE + segment_survey.frames_end,
                        stop_problem,
                        wound,
                        wounds,
                    );
                }
            }
        }
        let hot = SegmentLocator::from_manifest(self.paths.clone(), survey.meta).hot_place()?;
        let hot = hot.is_some_and(|hot| segment_path(&hot, position.0 / size).exists());
        // A claim that was not published may have been given out in a segment that is there, and so it says nothing.
        let reached = match self.was_closed || self.has_rebooted || hot || !position.0.is_multiple_of(size) {
            true => None,
            false => StatePage::attach_reader(self.paths)?.map(|state| state.published_end().0),
        };
        let summed = summed.filter(|summed| summed.0 > position.0.next_multiple_of(survey.meta.span()));
        let reach = reached.into_iter().chain(summed).fold(durable, Position::max);
        if position < reach && !wounds.iter().any(|w| w.to_position > position) {
            let path = segment_path(&segments_dir, position.0 / size);
            let end_problem = "the tape ends here, but it continued";
            self.add_wound(
                &path,
                HEADER_PAGE + position.0 % size,
                end_problem,
                UnmendedRange { from_position: position, to_position: reach },
                wounds,
            );
        }
        if !self.was_closed && !self.has_rebooted {
            let segment_locator = SegmentLocator::from_manifest(self.paths.clone(), survey.meta);
            if let Some((from, Error::Damage { path, offset, reason })) =
                first_lost(&segment_locator, durable)?
                && !wounds.iter().any(|w| w.from_position <= from && from < w.to_position)
            {
                self.add_wound(
                    &path,
                    offset,
                    &reason,
                    UnmendedRange { from_position: from, to_position: survey.end_positions().1.max(from) },
                    wounds,
                );
            }
        }
        Ok(())
    }

    fn add_wound(
        &mut self,
        file: &Path,
        offset: u64,
        problem: &str,
        wound: UnmendedRange,
        wounds: &mut Vec<UnmendedRange>,
    ) {
        wounds.push(wound);
        self.add_finding(RepairFinding {
            file_path: file.into(),
            offset,
            position_range: Some((wound.from_position, wound.to_position)),
            problem: problem.to_owned(),
            remedy: RepairRemedy::Truncate,
            action: "the data are lost; cut the tape here (--truncate), or leave it: readers continue after it with \
                     --skip-damage"
                .to_owned(),
            is_mended: false,
        });
    }

    /// Cuts the tape before the first wound, if you want that, and reports the removed part.
    pub(super) fn cut_tape(
        &mut self,
        survey: &mut TapeSurvey,
        durable: &mut DurableMark,
        wounds: &[UnmendedRange],
    ) -> Result<()> {
        let Some(first_wound) = wounds.iter().map(|w| w.from_position).min() else { return Ok(()) };
        let (position, ordinal) = survey.unit_end_before(first_wound)?;
        let (size, wanted) = (survey.meta.segment_bytes, self.options.truncates);
        let cut_end = wounds
            .iter()
            .map(|w| w.to_position)
            .max()
            .unwrap_or(first_wound)
            .max(survey.end_positions().1)
            .max(durable.position);
        let mut events = 0;
        for segment_survey in survey.segments.iter().filter(|s| s.base_position.plus(size) > position) {
            let kept_bytes = position.0.saturating_sub(segment_survey.base_position.0);
            let segment = survey.open(segment_survey, false)?;
            let mut offset = 0;
            while offset < segment_survey.frames_end
                && let HeaderWordState::Frame(header) = segment.header_state(offset)
            {
                events += u64::from(offset >= kept_bytes && !header.is_meta());
                offset += header.len_bytes() as u64;
            }
        }
        // With those of a cut that this repair has completed.
        let completed = self.report.cut.filter(|_| wanted);
        self.report.cut = Some(RepairCut {
            position,
            end_before_cut: completed.map_or(cut_end, |cut| cut.end_before_cut.max(cut_end)),
            events: events + completed.map_or(0, |cut| cut.events),
            is_applied: wanted,
        });
        if !wanted {
            return Ok(());
        }
        for finding in &mut self.report.findings {
            if matches!(finding.remedy, RepairRemedy::Truncate | RepairRemedy::AcceptOrTruncate)
                && !finding.is_mended
            {
                finding.is_mended = true;
                finding.action = format!("the tape ends before it, at position {position}");
            }
        }
        if self.options.apply {
            self.backup.log(&format!("cut {position} {cut_end} {events}"))?;
            let pending = PendingCut {
                position,
                ordinal: ordinal.unwrap_or(0),
                durable: durable.position,
                epoch: optional(newest_epoch(self.paths, survey.meta.id))?.unwrap_or(0),
                end_before_cut: cut_end,
                events,
            };
            let path = PendingCut::path(self.paths);
            self.backup.replace(&path, &pending.encode(&survey.meta), &FileAttributes::default())?;
            self.complete_cut(survey, &pending)?;
        } else {
            let oldest_position = survey.first();
            survey.segments.retain(|s| s.base_position < position || s.base_position == oldest_position);
            if let Some(last_segment) =
                survey.segments.last_mut().filter(|s| s.base_position.plus(size) > position)
            {
                last_segment.frames_end = position.0.saturating_sub(last_segment.base_position.0);
                last_segment.unit_end = Some(last_segment.frames_end).filter(|end| *end > 0);
                last_segment.scan_end = SegmentScanEnd::Nothing;
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
        self.add_mended(&path, refused.0, refused.1, action);
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
        let PendingCut { position, end_before_cut: end, events, .. } = *pending;
        self.report.cut = Some(RepairCut { position, end_before_cut: end, events, is_applied: true });
        let problem = format!("a repair was killed while it cut the tape at position {position}");
        let action = "the cut is completed; only then the rest of the tape can be compared";
        self.add_mended(&PendingCut::path(self.paths), 0, problem, action);
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
        sync_dir(&self.paths.tape_dir)?;
        *survey = TapeSurvey::scan_segments(self.paths, &survey.meta)?;
        Ok(())
    }

    /// Moves everything after the cut away, the last segment first, and empties the rest of the segment of the cut.
    fn cut_segments(&mut self, survey: &TapeSurvey, cut: &PendingCut, open_sum: Option<u32>) -> Result<()> {
        let PendingCut { position, ordinal, durable, .. } = *cut;
        let segments_dir = self.paths.segments();
        let link = find_hot_directory(self.paths, survey.meta.id)?;
        if let HotDirectoryLookup::Own(hot) | HotDirectoryLookup::Early(hot) = &link {
            for index in list_segments(hot)? {
                self.backup.keep_copy(&segment_path(hot, index))?;
            }
            self.backup.keep_copy(&self.paths.hot())?;
        }
        match link {
            HotDirectoryLookup::Own(hot) => HotDirectory::lock_directory(hot)?.remove(self.paths)?,
            // Its directory has no mark, so nothing in it is removed.
            HotDirectoryLookup::Early(_) => forget_link(self.paths)?,
            HotDirectoryLookup::None | HotDirectoryLookup::Gone(_) | HotDirectoryLookup::Other { .. } => {}
        }
        let oldest_position = survey.first();
        let size = survey.meta.segment_bytes;
        let base = |index: u64| Position(index * size);
        let is_after_cut = |index: &u64| base(*index) >= position && base(*index) > oldest_position;
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
        if position == segment_survey.base_position && segment_survey.base_position > oldest_position {
            return Ok(());
        }
        let path = segment_path(&segments_dir, segment_survey.segment_index);
        let kept_bytes = position.0 - segment_survey.base_position.0;
        let header = SegmentHeader {
            meta: survey.meta,
            index: segment_survey.segment_index,
            first_ordinal: if kept_bytes == 0 {
                ordinal
            } else {
                survey.first_ordinal(segment_survey.segment_index).unwrap_or(0)
            },
        };
        let temp_path = self.backup.temp_path()?;
        let segment = MappedSegment::create(&temp_path, &header, SegmentAllocation::Ready)?;
        if kept_bytes > 0 {
            let mapped_segment = survey.open(segment_survey, false)?;
            // SAFETY: `unit_end_before` walked the range to the unit's end at `position`, for a fresh cut and for a resumed
            // one; and the new file is ours.
            unsafe { segment.copy_in(0, mapped_segment.bytes(0, kept_bytes as usize)) };
        }
        sys::sync_data(&segment.file).with_context("flush", &temp_path)?;
        drop(segment);
        self.backup.install(&temp_path, &path, &FileAttributes::default())?;
        let sums_path = self.paths.crc(segment_survey.segment_index);
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
            self.backup.keep_copy(&page)?;
            let state = StatePage::open(self.paths)?;
            state.set_end(position, ordinal);
            // The words recorded, durable and requested: no process has the page open, because this repair holds the
            // locks.
            for word in [0, 2, 3] {
                state.word(word).fetch_min(position.0, Ordering::Relaxed);
            }
        }
        for name in Cursor::names(&self.paths.tape_dir)? {
            let Ok(mut cursor) = Cursor::open(&self.paths.tape_dir, &name) else { continue };
            if cursor.load().is_ok_and(|stored_position| {
                stored_position.is_some_and(|cursor_position| cursor_position > position)
            }) {
                let path: PathBuf = self.paths.run().join("cursors").join(&name);
                self.backup.keep_copy(&path)?;
                cursor.store(position)?;
                self.add_mended(
                    &path,
                    32,
                    "the cursor is behind the cut",
                    format!("set to position {position}"),
                );
            }
        }
        Ok(())
    }
}
