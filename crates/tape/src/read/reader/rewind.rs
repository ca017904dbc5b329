//! A reader of a tape that was cut back: how it learns of it, and where it continues.
//!
//! ```text
//!  epoch 4   ■ ■ ■ ■ ■ ■ ■ ■ ■ ▲ reader             the reader's mapping stays as it is: recovery gives the segment
//!  epoch 5   ■ ■ ■ ■ ■ □ □ □ □ □ □                  of the cut a new file, and writes to that one alone
//!                      ▲ cut
//! ```
//!
//! A reader asks for the epoch whenever it looks for a segment, and from time to time where it finds nothing to read.
//! It knows the epoch from before it looked for the segment, so a cut that comes in between is a later one to it.

use std::path::Path;

use unitape_model::Position;

use super::Reader;
use crate::disk::durable::load_durable;
use crate::disk::end::find_end;
use crate::disk::lineage::{Lineage, LineagePoint, ReaderRewind, current_epoch};
use crate::disk::map::MappedSegment;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::{Error, Result};
use crate::read::damage::ReadOptions;
use crate::read::figures::RewindTotals;

impl Reader {
    /// Opens the tape in `dir` where `point` was dealt with: at its position, or at the cut where the tape was cut back
    /// before it since. The reader then gives [`Error::Rewound`] first, and continues at the cut.
    ///
    /// For who stores its place together with what it did, as a database does; [`Reader::point`] gives it. A point
    /// of an epoch that this tape does not know (its `run/` was removed, or it is an older copy) continues at the
    /// oldest position. One of epoch 0 is of an unknown epoch, and continues at the first cut before it.
    ///
    /// # Errors
    /// Fails as [`Reader::open`] does, and if the lineage is damaged.
    pub fn resume(dir: &Path, point: LineagePoint) -> Result<Self> {
        Self::resume_with(dir, point, ReadOptions::default())
    }

    /// Resumes with or without checks, and stopping at damage or not.
    ///
    /// # Errors
    /// Fails as [`Reader::resume`] does; damage is no error if the options pass over it.
    pub fn resume_with(dir: &Path, point: LineagePoint, options: ReadOptions) -> Result<Self> {
        Self::resume_place(dir, point, None, options)
    }

    /// Returns where the tape in `dir` was cut back before `point` since its epoch, with an epoch that knows of the cut: the
    /// present one, or the next one if no writer has recovered the tape yet. Returns `None` if it was not cut. A point of epoch
    /// 0 asks for every cut that the tape knows.
    ///
    /// # Errors
    /// Fails if there is no tape, or if it or its lineage cannot be read.
    pub fn cut_before(dir: &Path, point: LineagePoint) -> Result<Option<LineagePoint>> {
        let mut reader = Self::unpositioned(SegmentLocator::open(dir)?);
        let epoch = reader.epoch_now()?;
        let paths = &reader.segment_locator.paths;
        let lineage = Lineage::load(paths, reader.segment_locator.meta.id)?;
        let resume_position = lineage.map_or(point.position, |lineage| lineage.resume(point));
        if resume_position < point.position {
            return Ok(Some(LineagePoint { epoch, position: resume_position }));
        }
        let tape_end = find_end(&reader.segment_locator, load_durable(paths)?.position)?;
        Ok((tape_end < point.position).then_some(LineagePoint { epoch: epoch + 1, position: tape_end }))
    }

    /// Resumes at a place; where retention has removed it and `removal` is given, at the oldest position there is,
    /// with the number of events before the place where it is known.
    pub(crate) fn resume_place(
        dir: &Path,
        point: LineagePoint,
        removal: Option<Option<u64>>,
        options: ReadOptions,
    ) -> Result<Self> {
        loop {
            let mut reader = Self::unpositioned(SegmentLocator::open(dir)?).with_options(options);
            let epoch = reader.epoch_now()?;
            let (mut reader, to) = reader.resume_once(point, removal)?;
            // A writer that opened meanwhile may have cut the tape, and this did not ask about that cut.
            if reader.epoch_now()? == epoch {
                if to < point.position {
                    reader.rewound(ReaderRewind { reader_position: point.position, resume_position: to });
                }
                return Ok(reader);
            }
        }
    }

    fn resume_once(mut self, point: LineagePoint, removal: Option<Option<u64>>) -> Result<(Self, Position)> {
        let lineage = Lineage::load(&self.segment_locator.paths, self.segment_locator.meta.id)?;
        let mut resume_position = lineage.map_or(point.position, |lineage| lineage.resume(point));
        let mut outcome = self.seek_in_epoch(resume_position);
        if let Err(Error::NoFrame(_)) = outcome {
            // Before a writer has recovered the tape no lineage knows of the cut.
            let tape_end =
                find_end(&self.segment_locator, load_durable(&self.segment_locator.paths)?.position)?;
            if resume_position > tape_end {
                resume_position = tape_end;
                outcome = self.seek_in_epoch(resume_position);
            }
        }
        match (outcome, removal) {
            (Err(Error::Retained { .. }), Some(ordinal)) => {
                let ordinal = ordinal.filter(|_| resume_position == point.position);
                let options = ReadOptions { verify: self.checks.is_enabled, skip_damage: self.skips_damage };
                Ok((
                    Self::open_after_removal(&self.segment_locator.paths.tape_dir, resume_position, ordinal)?
                        .with_options(options),
                    resume_position,
                ))
            }
            (Err(e), _) => Err(e),
            (Ok(()), _) => Ok((self, resume_position)),
        }
    }

    /// Returns the position after the last frame read, with the epoch in which it was read. Store this point, so that
    /// [`Reader::resume`] finds the position again.
    pub fn point(&self) -> LineagePoint {
        LineagePoint { epoch: self.epoch.unwrap_or(0), position: self.position() }
    }

    /// Counts how often the tape was cut back before this reader's position. The count includes a cut for which the
    /// reader has yet to return [`Error::Rewound`].
    pub fn rewinds(&self) -> RewindTotals {
        self.rewind_totals
    }

    /// Returns the error for the last rewind that was not reported yet.
    pub(crate) fn take_rewind_error(&mut self) -> Error {
        self.is_rewound = false;
        let ReaderRewind { reader_position: from, resume_position: to } =
            self.rewind_totals.last_rewind.expect("a reader that is rewound knows where");
        Error::Rewound { from, to }
    }

    /// Keeps in mind that the tape was cut back; the next look at the tape says so.
    fn rewound(&mut self, rewound: ReaderRewind) {
        self.rewind_totals.count += 1;
        self.rewind_totals.bytes += rewound.reader_position.0.saturating_sub(rewound.resume_position.0);
        self.rewind_totals.last_rewind = Some(rewound);
        self.is_rewound = true;
        // Without a segment the next look is the slow one.
        self.set_position(self.position());
    }

    /// Returns whether another writer has opened the tape since the reader looked for its segment.
    pub(crate) fn has_new_epoch(&mut self) -> Result<bool> {
        let epoch = self.epoch_now()?;
        Ok(self.epoch.is_some_and(|reader_epoch| reader_epoch != epoch))
    }

    /// Goes back to the cut if the tape has been cut back before `from`, which is of the reader's epoch.
    ///
    /// # Errors
    /// Fails with [`Error::Rewound`] in that case; the reader is then at the cut.
    pub(crate) fn apply_cut(&mut self, from: Position) -> Result<()> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        if self.epoch_now()? == epoch {
            return Ok(());
        }
        let Some(lineage) = Lineage::load(&self.segment_locator.paths, self.segment_locator.meta.id)? else {
            return Ok(());
        };
        let resume_position = lineage.resume(LineagePoint { epoch, position: from });
        if resume_position >= from {
            return Ok(());
        }
        let outcome = self.seek_in_epoch(resume_position);
        if outcome.is_err() {
            // The obstacle, retention or damage, is met again from there.
            self.set_position(resume_position);
        }
        self.rewound(ReaderRewind { reader_position: from, resume_position });
        match outcome {
            Ok(()) | Err(Error::Retained { .. }) => Err(self.take_rewind_error()),
            Err(e) => Err(e),
        }
    }

    /// Stays with the epoch that the segment was found in, unless the tape was cut back before `position`, which is of
    /// the epoch `known`.
    ///
    /// # Errors
    /// Fails as [`Reader::apply_cut`] does.
    pub(crate) fn adopt_epoch(&mut self, known_epoch: Option<u64>, position: Position) -> Result<()> {
        if known_epoch.is_none() || known_epoch == self.epoch {
            return Ok(());
        }
        let segment_epoch = std::mem::replace(&mut self.epoch, known_epoch);
        self.apply_cut(position)?;
        self.epoch = segment_epoch;
        Ok(())
    }

    /// Finds segment `index` and its first ordinal, and sets the epoch of its frames. The epoch is the same before and
    /// after the look.
    pub(crate) fn find_segment(&mut self, index: u64) -> Result<Option<(MappedSegment, u64)>> {
        loop {
            let epoch = self.epoch_now()?;
            let segment = self.segment_locator.segment(index)?;
            if self.epoch_now()? == epoch {
                self.epoch = Some(epoch);
                return Ok(segment);
            }
        }
    }

    fn epoch_now(&mut self) -> Result<u64> {
        self.look_for_page()?;
        current_epoch(&self.segment_locator.paths, self.segment_locator.meta.id, self.page.as_ref())
    }
}
