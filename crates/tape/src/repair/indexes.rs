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
        let place = self.paths.segments();
        for of in &survey.segments {
            let end = of.base.plus(survey.meta.segment_bytes);
            let is_durable = end <= durable || is_sealed(&segment_path(&place, of.index));
            let Some(header) = finished(survey, of).filter(|_| is_durable) else { continue };
            if self.report.findings.iter().any(|finding| self.affects(finding, survey, of)) {
                continue;
            }
            let path = self.paths.index(of.index);
            if !path.exists() {
                continue;
            }
            let frames = IndexBuilder::scan(&survey.open(of, false)?, &survey.meta);
            if let Some(fault) = frames.and_then(|mut frames| find_fault(self.paths, &mut frames, &header)) {
                self.mends(&path, fault.offset, fault.what, "made again from the frames");
            }
        }
        Ok(())
    }

    /// Makes the indexes again that are not what the frames and checksums give now, of segments in which nothing is wrong
    /// any more.
    pub(super) fn make_indexes(&mut self, survey: &TapeSurvey) -> Result<()> {
        if !self.options.apply {
            return Ok(());
        }
        let there = list_indexes(&self.paths.segments())?;
        for of in survey.segments.iter().filter(|of| there.binary_search(&of.index).is_ok()) {
            let mut findings = self.report.findings.iter();
            if findings.any(|finding| !finding.mended && self.affects(finding, survey, of)) {
                continue;
            }
            let Some(header) = finished(survey, of) else { continue };
            let made = make_index(self.paths, &survey.open(of, false)?, &header);
            let path = self.paths.index(of.index);
            let Some(bytes) = made.filter(|made| std::fs::read(&path).is_ok_and(|there| there != *made))
            else {
                continue;
            };
            let read_only = is_sealed(&segment_path(&self.paths.segments(), of.index));
            let look = FileAttributes { read_only, ..FileAttributes::default() };
            self.aside.replace(&path, &bytes, &look)?;
        }
        Ok(())
    }

    /// Whether a finding is about a segment or its checksums.
    fn affects(&self, finding: &RepairFinding, survey: &TapeSurvey, of: &SegmentSurvey) -> bool {
        let end = of.base.plus(survey.meta.segment_bytes);
        let is_within = |(from, to): (Position, Position)| from < end && to > of.base;
        let segment = segment_path(&self.paths.segments(), of.index);
        finding.file == segment
            || finding.file == self.paths.crc(of.index)
            || finding.positions.is_some_and(is_within)
    }
}

/// The header of a segment whose frames reach its end.
fn finished(survey: &TapeSurvey, of: &SegmentSurvey) -> Option<SegmentHeader> {
    let is_finished = of.stop == SegmentScanEnd::Full && of.length == survey.meta.segment_bytes;
    let first_ordinal = survey.first_ordinal(of.index).filter(|_| is_finished)?;
    Some(SegmentHeader { meta: survey.meta, index: of.index, first_ordinal })
}
