//! Spans for which nothing vouches, and checksums that are lost.

use unitape_model::Position;

use crate::disk::durable::DurableMark;
use crate::disk::layout::{HEADER_PAGE, read_start, segment_path};
use crate::disk::map::MappedSegment;
use crate::disk::seal::{is_sealed, seal_file, unseal};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::sys;
use crate::error::{FileContext, Result};
use crate::repair::backup::FileAttributes;
use crate::repair::{RepairFinding, RepairRemedy, RepairSession};
use crate::trust::durable_rebuild;
use crate::trust::segment_sums::{OpenSpan, SegmentSums, StoredChecksumState};
use crate::trust::span::{SpanFault, span_sum};
use crate::trust::survey::{SegmentScanEnd, SegmentSurvey, TapeSurvey};

/// A part of the tape that cannot be mended, unless you say how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnmendedRange {
    /// Positions.
    pub from_position: Position,
    pub to_position: Position,
}

/// The remedy for a span with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanRemedy {
    /// The span gets a checksum, because another file confirms its bytes.
    Sum,
    /// The hot segment supplies the span's bytes, which the checksum confirms.
    Twin,
    /// The span gets a checksum because you accept it.
    Accept,
    /// The span stays unchanged.
    Stay,
}

impl RepairSession<'_> {
    /// Checks all spans before the durable position. Spans that stay damaged become wounds.
    pub(super) fn check_spans(
        &mut self,
        survey: &TapeSurvey,
        durable: &mut DurableMark,
    ) -> Result<Vec<UnmendedRange>> {
        let mut wounds = Vec::new();
        let size = survey.meta.segment_bytes;
        let stored =
            if self.was_closed { StoredChecksumState::Covered } else { StoredChecksumState::AtLeastCovered };
        let mut open_is_right = true;
        for segment_survey in survey.segments.iter().filter(|s| s.base_position < durable.position) {
            let covered = (durable.position.0 - segment_survey.base_position.0).min(size);
            let present_bytes = if segment_survey.length < covered {
                segment_survey.length - segment_survey.length % survey.meta.span()
            } else {
                covered
            };
            if present_bytes == 0 {
                continue;
            }
            let checks = SegmentSums::load(self.paths, &survey.meta, segment_survey.segment_index)?;
            let segment = survey.open(segment_survey, false)?;
            let open_span = OpenSpan { covered_sum: durable.open_sum, stored_state: stored };
            let twin = self.hot_twin(survey, segment_survey)?;
            let mut fates = Vec::new();
            for i in 0..present_bytes.div_ceil(survey.meta.span()) {
                let Some(fault) = checks.fault(&segment, i, present_bytes, open_span) else { continue };
                let walked = fault.to_offset <= segment_survey.frames_end
                    || segment_survey.scan_end == SegmentScanEnd::Full;
                let fate = if fault.is_vouched {
                    SpanRemedy::Sum
                } else if twin
                    .as_ref()
                    .is_some_and(|t| checks.fault(t, i, present_bytes, open_span).is_none())
                {
                    SpanRemedy::Twin
                } else if self.options.accept_unverified && walked {
                    SpanRemedy::Accept
                } else {
                    SpanRemedy::Stay
                };
                self.report_span(segment_survey, fault, fate, walked);
                if fate == SpanRemedy::Stay {
                    wounds.push(UnmendedRange {
                        from_position: segment_survey.base_position.plus(fault.from_offset),
                        to_position: segment_survey.base_position.plus(fault.to_offset),
                    });
                    open_is_right &= fault.to_offset < covered || covered == size;
                }
                fates.push((fault, fate));
            }
            if self.options.apply && fates.iter().any(|(_, fate)| *fate != SpanRemedy::Stay) {
                self.mend_spans(survey, segment_survey, present_bytes, &fates, twin.as_ref())?;
            }
            let accepted = |(fault, fate): &(SpanFault, SpanRemedy)| {
                *fate == SpanRemedy::Accept && fault.to_offset == covered
            };
            if fates.iter().any(accepted) {
                durable.open_sum = None;
            }
        }
        if durable.open_sum.is_none() && open_is_right {
            durable.open_sum = durable_rebuild::open_sum(survey, durable.position)?;
        }
        Ok(wounds)
    }

    /// Maps the hot segment of the same index, if it still exists.
    fn hot_twin(&self, survey: &TapeSurvey, segment_survey: &SegmentSurvey) -> Result<Option<MappedSegment>> {
        let hot = SegmentLocator::from_manifest(self.paths.clone(), survey.meta).hot_place()?;
        let Some(hot) = hot.filter(|_| !self.has_rebooted) else { return Ok(None) };
        MappedSegment::map(
            &segment_path(&hot, segment_survey.segment_index),
            &survey.meta,
            segment_survey.segment_index,
            false,
        )
    }

    fn report_span(
        &mut self,
        segment_survey: &SegmentSurvey,
        fault: SpanFault,
        fate: SpanRemedy,
        walked: bool,
    ) {
        let path = segment_path(&self.paths.segments(), segment_survey.segment_index);
        let (from, to) = (
            segment_survey.base_position.plus(fault.from_offset),
            segment_survey.base_position.plus(fault.to_offset),
        );
        let problem = match fault.missing {
            true => "the checksum was lost",
            false => "the bytes do not match their checksum: they are damaged, or it is",
        };
        let unverified = "nothing vouches for the data";
        let (remedy, action) = match fate {
            SpanRemedy::Sum => {
                (RepairRemedy::Mend, "made again: the file `durable` vouches for the data".to_owned())
            }
            SpanRemedy::Twin => (RepairRemedy::Mend, "written again from the hot segment".to_owned()),
            SpanRemedy::Accept => {
                (RepairRemedy::Accept, format!("{unverified}; accepted as they are, and marked so"))
            }
            SpanRemedy::Stay if !walked => {
                (RepairRemedy::Truncate, format!("{unverified}; cut the tape here (--truncate), or leave it"))
            }
            SpanRemedy::Stay => (
                RepairRemedy::AcceptOrTruncate,
                format!(
                    "{unverified}; accept them as they are (--accept-unverified), cut the tape here (--truncate), or leave it"
                ),
            ),
        };
        self.add_finding(RepairFinding {
            file_path: path,
            offset: HEADER_PAGE + fault.from_offset,
            position_range: Some((from, to)),
            problem: problem.to_owned(),
            remedy,
            action,
            is_mended: fate != SpanRemedy::Stay,
        });
    }

    fn mend_spans(
        &mut self,
        survey: &TapeSurvey,
        segment_survey: &SegmentSurvey,
        covered: u64,
        fates: &[(SpanFault, SpanRemedy)],
        twin: Option<&MappedSegment>,
    ) -> Result<()> {
        let span = survey.meta.span();
        let path = segment_path(&self.paths.segments(), segment_survey.segment_index);
        for (fault, _) in fates.iter().filter(|(_, fate)| *fate == SpanRemedy::Accept) {
            // Before it is done: a mark without a deed does no harm.
            self.backup.log(&format!(
                "unverified {} {}",
                segment_survey.base_position.plus(fault.from_offset),
                segment_survey.base_position.plus(fault.to_offset)
            ))?;
        }
        let from_twin: Vec<_> = fates.iter().filter(|(_, fate)| *fate == SpanRemedy::Twin).collect();
        if let Some(twin) = twin
            && !from_twin.is_empty()
        {
            self.backup.keep_copy(&path)?;
            let sealed = is_sealed(&path);
            unseal(&path)?;
            let file =
                sys::open(&path, std::fs::OpenOptions::new().write(true)).with_context("open", &path)?;
            for (fault, _) in from_twin {
                // SAFETY: the twin's span was compared with its checksum, and nobody writes to it.
                let bytes =
                    unsafe { twin.bytes(fault.from_offset, (fault.to_offset - fault.from_offset) as usize) };
                sys::write_at(&file, bytes, HEADER_PAGE + fault.from_offset).with_context("write", &path)?;
            }
            sys::sync_data(&file).with_context("flush", &path)?;
            if sealed {
                seal_file(&path)?;
            }
        }
        let sums_path = self.paths.crc(segment_survey.segment_index);
        let mut sums = read_start(&sums_path, survey.meta.segment_bytes / span * 4).unwrap_or_default();
        sums.truncate(sums.len() - sums.len() % 4);
        let segment = survey.open(segment_survey, false)?;
        let mut has_changed = false;
        for (fault, _) in
            fates.iter().filter(|(_, fate)| matches!(fate, SpanRemedy::Sum | SpanRemedy::Accept))
        {
            let sum_offset = (fault.from_offset / span * 4) as usize;
            if sums.len() < sum_offset {
                // The checksums before it are lost as well, and nobody has accepted those spans: there is no place
                // for this one.
                break;
            }
            // SAFETY: within the file, which nobody writes.
            let bytes =
                unsafe { segment.bytes(fault.from_offset, (fault.to_offset - fault.from_offset) as usize) };
            let sum = span_sum(bytes, span).to_le_bytes();
            match sums.get_mut(sum_offset..sum_offset + 4) {
                Some(old_sum) => old_sum.copy_from_slice(&sum),
                None => sums.extend_from_slice(&sum),
            }
            has_changed = true;
        }
        if !has_changed {
            return Ok(());
        }
        if self.was_closed && !covered.is_multiple_of(survey.meta.segment_bytes) {
            sums.truncate(covered.div_ceil(span) as usize * 4);
        }
        // Retention counts from its date.
        let dated = [&sums_path, &path].iter().find_map(|p| std::fs::metadata(p).ok()?.modified().ok());
        let attributes = FileAttributes { read_only: is_sealed(&path), modified: dated };
        self.backup.replace(&sums_path, &sums, &attributes)
    }
}
