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
    pub from: Position,
    pub to: Position,
}

/// The remedy for a span with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanRemedy {
    /// It gets a checksum, because something else vouches for its bytes.
    Sum,
    /// Its bytes are those of the hot segment, for which the checksum vouches.
    Twin,
    /// It gets a checksum because you say so.
    Accept,
    /// It stays unchanged.
    Stay,
}

impl RepairSession<'_> {
    /// Looks at all spans before the durable position; gives those that stay wounds.
    pub(super) fn spans(
        &mut self,
        survey: &TapeSurvey,
        durable: &mut DurableMark,
    ) -> Result<Vec<UnmendedRange>> {
        let mut wounds = Vec::new();
        let size = survey.meta.segment_bytes;
        let stored =
            if self.closed { StoredChecksumState::Covered } else { StoredChecksumState::AtLeastCovered };
        let mut open_is_right = true;
        for of in survey.segments.iter().filter(|s| s.base < durable.position) {
            let covered = (durable.position.0 - of.base.0).min(size);
            let there =
                if of.length < covered { of.length - of.length % survey.meta.span() } else { covered };
            if there == 0 {
                continue;
            }
            let checks = SegmentSums::load(self.paths, &survey.meta, of.index)?;
            let segment = survey.open(of, false)?;
            let open = OpenSpan { sum: durable.open_sum, stored };
            let twin = self.twin(survey, of)?;
            let mut fates = Vec::new();
            for i in 0..there.div_ceil(survey.meta.span()) {
                let Some(fault) = checks.fault(&segment, i, there, open) else { continue };
                let walked = fault.to <= of.frames_end || of.stop == SegmentScanEnd::Full;
                let fate = if fault.vouched {
                    SpanRemedy::Sum
                } else if twin.as_ref().is_some_and(|t| checks.fault(t, i, there, open).is_none()) {
                    SpanRemedy::Twin
                } else if self.options.accept_unverified && walked {
                    SpanRemedy::Accept
                } else {
                    SpanRemedy::Stay
                };
                self.report_span(of, fault, fate, walked);
                if fate == SpanRemedy::Stay {
                    wounds.push(UnmendedRange { from: of.base.plus(fault.from), to: of.base.plus(fault.to) });
                    open_is_right &= fault.to < covered || covered == size;
                }
                fates.push((fault, fate));
            }
            if self.options.apply && fates.iter().any(|(_, fate)| *fate != SpanRemedy::Stay) {
                self.mend_spans(survey, of, there, &fates, twin.as_ref())?;
            }
            let accepted =
                |(fault, fate): &(SpanFault, SpanRemedy)| *fate == SpanRemedy::Accept && fault.to == covered;
            if fates.iter().any(accepted) {
                durable.open_sum = None;
            }
        }
        if durable.open_sum.is_none() && open_is_right {
            durable.open_sum = durable_rebuild::open_sum(survey, durable.position)?;
        }
        Ok(wounds)
    }

    /// The hot segment of the same index, if there still is one.
    fn twin(&self, survey: &TapeSurvey, of: &SegmentSurvey) -> Result<Option<MappedSegment>> {
        let hot = SegmentLocator::from_manifest(self.paths.clone(), survey.meta).hot_place()?;
        let Some(hot) = hot.filter(|_| !self.rebooted) else { return Ok(None) };
        MappedSegment::map(&segment_path(&hot, of.index), &survey.meta, of.index, false)
    }

    fn report_span(&mut self, of: &SegmentSurvey, fault: SpanFault, fate: SpanRemedy, walked: bool) {
        let path = segment_path(&self.paths.segments(), of.index);
        let (from, to) = (of.base.plus(fault.from), of.base.plus(fault.to));
        let what = match fault.missing {
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
        self.find(RepairFinding {
            file: path,
            offset: HEADER_PAGE + fault.from,
            positions: Some((from, to)),
            what: what.to_owned(),
            remedy,
            action,
            mended: fate != SpanRemedy::Stay,
        });
    }

    fn mend_spans(
        &mut self,
        survey: &TapeSurvey,
        of: &SegmentSurvey,
        covered: u64,
        fates: &[(SpanFault, SpanRemedy)],
        twin: Option<&MappedSegment>,
    ) -> Result<()> {
        let span = survey.meta.span();
        let path = segment_path(&self.paths.segments(), of.index);
        for (fault, _) in fates.iter().filter(|(_, fate)| *fate == SpanRemedy::Accept) {
            // Before it is done: a mark without a deed does no harm.
            self.aside.log(&format!("unverified {} {}", of.base.plus(fault.from), of.base.plus(fault.to)))?;
        }
        let from_twin: Vec<_> = fates.iter().filter(|(_, fate)| *fate == SpanRemedy::Twin).collect();
        if let Some(twin) = twin
            && !from_twin.is_empty()
        {
            self.aside.keep(&path)?;
            let sealed = is_sealed(&path);
            unseal(&path)?;
            let file =
                sys::open(&path, std::fs::OpenOptions::new().write(true)).with_context("open", &path)?;
            for (fault, _) in from_twin {
                // SAFETY: the twin's span was compared with its checksum, and nobody writes to it.
                let bytes = unsafe { twin.bytes(fault.from, (fault.to - fault.from) as usize) };
                sys::write_at(&file, bytes, HEADER_PAGE + fault.from).with_context("write", &path)?;
            }
            sys::sync_data(&file).with_context("flush", &path)?;
            if sealed {
                seal_file(&path)?;
            }
        }
        let sums_path = self.paths.crc(of.index);
        let mut sums = read_start(&sums_path, survey.meta.segment_bytes / span * 4).unwrap_or_default();
        sums.truncate(sums.len() - sums.len() % 4);
        let segment = survey.open(of, false)?;
        let mut changed = false;
        for (fault, _) in
            fates.iter().filter(|(_, fate)| matches!(fate, SpanRemedy::Sum | SpanRemedy::Accept))
        {
            let at = (fault.from / span * 4) as usize;
            if sums.len() < at {
                // The checksums before it are lost as well, and nobody has accepted those spans: there is no place
                // for this one.
                break;
            }
            // SAFETY: within the file, which nobody writes.
            let bytes = unsafe { segment.bytes(fault.from, (fault.to - fault.from) as usize) };
            let sum = span_sum(bytes, span).to_le_bytes();
            match sums.get_mut(at..at + 4) {
                Some(place) => place.copy_from_slice(&sum),
                None => sums.extend_from_slice(&sum),
            }
            changed = true;
        }
        if !changed {
            return Ok(());
        }
        if self.closed && !covered.is_multiple_of(survey.meta.segment_bytes) {
            sums.truncate(covered.div_ceil(span) as usize * 4);
        }
        // Retention counts from its date.
        let dated = [&sums_path, &path].iter().find_map(|p| std::fs::metadata(p).ok()?.modified().ok());
        let look = FileAttributes { read_only: is_sealed(&path), modified: dated };
        self.aside.replace(&sums_path, &sums, &look)
    }
}
