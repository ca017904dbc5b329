//! Indexes of segments, made again from the frames.

use unitape_model::Position;

use crate::disk::layout::{SegmentHeader, list_indexes, remove, segment_path};
use crate::disk::seal::is_sealed;
use crate::disk::segment_index::{IndexBuilder, find_fault, make_index, temp_path};
use crate::error::Result;
use crate::repair::backup::FileAttributes;
use crate::repair::{RepairFinding, RepairSession};
use crate::trust::survey::{SegmentScanEnd, SegmentSurvey, TapeSurvey};

impl RepairSession<'_> {
    /// Looks at the index of each durable segment in which nothing else is wrong.
    pub(super) fn indexes(&mut self, survey: &TapeSurvey, durable: Position) -> Result<()> {
        if self.options.apply {
            remove(&temp_path(self.paths))?;
        }
        let segments_dir = self.paths.segments();
        for segment_survey in &survey.segments {
            let segment_end = segment_survey.base_position.plus(survey.meta.segment_bytes);
            let is_durable = segment_end <= durable
                || is_sealed(&segment_path(&segments_dir, segment_survey.segment_index));
            let Some(header) = finished_header(survey, segment_survey).filter(|_| is_durable) else {
                continue;
            };
            if self
                .report
                .findings
                .iter()
                .any(|finding| self.affects_segment(finding, survey, segment_survey))
            {
                continue;
            }
            let path = self.paths.index(segment_survey.segment_index);
            if !path.exists() {
                continue;
            }
            let frames = IndexBuilder::scan(&survey.open(segment_survey, false)?, &survey.meta);
            if let Some(fault) = frames.and_then(|mut frames| find_fault(self.paths, &mut frames, &header)) {
                self.add_mended(&path, fault.offset, fault.reason, "made again from the frames");
            }
        }
        Ok(())
    }

    /// Makes new indexes if the old ones do not agree with the frames and checksums, for segments without any other
    /// fault.
    pub(super) fn make_indexes(&mut self, survey: &TapeSurvey) -> Result<()> {
        if !self.options.apply {
            return Ok(());
        }
        let present_indexes = list_indexes(&self.paths.segments())?;
        for segment_survey in survey
            .segments
            .iter()
            .filter(|segment| present_indexes.binary_search(&segment.segment_index).is_ok())
        {
            let mut findings = self.report.findings.iter();
            if findings
                .any(|finding| !finding.is_mended && self.affects_segment(finding, survey, segment_survey))
            {
                continue;
            }
            let Some(header) = finished_header(survey, segment_survey) else { continue };
            let index_bytes = make_index(self.paths, &survey.open(segment_survey, false)?, &header);
            let path = self.paths.index(segment_survey.segment_index);
            let Some(bytes) =
                index_bytes.filter(|made| std::fs::read(&path).is_ok_and(|old_bytes| old_bytes != *made))
            else {
                continue;
            };
            let read_only = is_sealed(&segment_path(&self.paths.segments(), segment_survey.segment_index));
            let attributes = FileAttributes { read_only, ..FileAttributes::default() };
            self.backup.replace(&path, &bytes, &attributes)?;
        }
        Ok(())
    }

    /// Returns whether a finding concerns a segment or its checksums.
    fn affects_segment(
        &self,
        finding: &RepairFinding,
        survey: &TapeSurvey,
        segment_survey: &SegmentSurvey,
    ) -> bool {
        let segment_end = segment_survey.base_position.plus(survey.meta.segment_bytes);
        let is_within =
            |(from, to): (Position, Position)| from < segment_end && to > segment_survey.base_position;
        let segment = segment_path(&self.paths.segments(), segment_survey.segment_index);
        finding.file_path == segment
            || finding.file_path == self.paths.crc(segment_survey.segment_index)
            || finding.position_range.is_some_and(is_within)
    }
}

/// Returns the header of a segment whose frames reach its end.
fn finished_header(survey: &TapeSurvey, segment_survey: &SegmentSurvey) -> Option<SegmentHeader> {
    let is_finished =
        segment_survey.scan_end == SegmentScanEnd::Full && segment_survey.length == survey.meta.segment_bytes;
    let first_ordinal = survey.first_ordinal(segment_survey.segment_index).filter(|_| is_finished)?;
    Some(SegmentHeader { meta: survey.meta, index: segment_survey.segment_index, first_ordinal })
}
