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
    /// As [`Reader::open`], and damage of the lineage.
    pub fn resume(dir: &Path, point: LineagePoint) -> Result<Self> {
        Self::resume_with(dir, point, ReadOptions::default())
    }

    /// Resumes with or without checks, and stopping at damage or not.
    ///
    /// # Errors
    /// As [`Reader::resume`]; damage is none where it is to be passed over.
    pub fn resume_with(dir: &Path, point: LineagePoint, options: ReadOptions) -> Result<Self> {
        Self::resume_place(dir, point, None, options)
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
                    reader.rewound(ReaderRewind { from: point.position, to });
                }
                return Ok(reader);
            }
        }
    }

    fn resume_once(mut self, point: LineagePoint, removal: Option<Option<u64>>) -> Result<(Self, Position)> {
        let lineage = Lineage::load(&self.live.paths, self.live.meta.id)?;
        let mut to = lineage.map_or(point.position, |lineage| lineage.resume(point));
        let mut gone = self.seek_in_epoch(to);
        if let Err(Error::NoFrame(_)) = gone {
            // Before a writer has recovered the tape no lineage knows of the cut.
            let end = find_end(&self.live, load_durable(&self.live.paths)?.position)?;
            if to > end {
                to = end;
                gone = self.seek_in_epoch(to);
            }
        }
        match (gone, removal) {
            (Err(Error::Retained { .. }), Some(ordinal)) => {
                let ordinal = ordinal.filter(|_| to == point.position);
                let options = ReadOptions { verify: self.checks.on, skip_damage: self.skip };
                Ok((Self::open_after_removal(&self.live.paths.dir, to, ordinal)?.with_options(options), to))
            }
            (Err(e), _) => Err(e),
            (Ok(()), _) => Ok((self, to)),
        }
    }

    /// Position after the last frame read and the epoch in which it was read: what to store so that
    /// [`Reader::resume`] finds the place again.
    pub fn point(&self) -> LineagePoint {
        LineagePoint { epoch: self.epoch.unwrap_or(0), position: self.position() }
    }

    /// How often the tape was cut back before this reader's position, the time included of which the reader has still
    /// to give [`Error::Rewound`].
    pub fn rewinds(&self) -> RewindTotals {
        self.rewinds
    }

    /// The error for the last time that was not given yet.
    pub(crate) fn take_rewind_error(&mut self) -> Error {
        self.is_rewound = false;
        let ReaderRewind { from, to } = self.rewinds.last.expect("a reader that is rewound knows where");
        Error::Rewound { from, to }
    }

    /// Keeps in mind that the tape was cut back; the next look at the tape says so.
    fn rewound(&mut self, rewound: ReaderRewind) {
        self.rewinds.count += 1;
        self.rewinds.bytes += rewound.from.0.saturating_sub(rewound.to.0);
        self.rewinds.last = Some(rewound);
        self.is_rewound = true;
        // Without a segment the next look is the slow one.
        self.set_position(self.position());
    }

    /// Whether the tape has been opened by another writer since the reader looked for its segment.
    pub(crate) fn has_new_epoch(&mut self) -> Result<bool> {
        let epoch = self.epoch_now()?;
        Ok(self.epoch.is_some_and(|known| known != epoch))
    }

    /// Goes back to the cut if the tape has been cut back before `from`, which is of the reader's epoch.
    ///
    /// # Errors
    /// [`Error::Rewound`] then, with the reader at the cut.
    pub(crate) fn apply_cut(&mut self, from: Position) -> Result<()> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        if self.epoch_now()? == epoch {
            return Ok(());
        }
        let Some(lineage) = Lineage::load(&self.live.paths, self.live.meta.id)? else { return Ok(()) };
        let to = lineage.resume(LineagePoint { epoch, position: from });
        if to >= from {
            return Ok(());
        }
        let gone = self.seek_in_epoch(to);
        if gone.is_err() {
            // The obstacle, retention or damage, is met again from there.
            self.set_position(to);
        }
        self.rewound(ReaderRewind { from, to });
        match gone {
            Ok(()) | Err(Error::Retained { .. }) => Err(self.take_rewind_error()),
            Err(e) => Err(e),
        }
    }

    /// Stays with the epoch that the segment was found in, unless the tape was cut back before `position`, which is of
    /// the epoch `known`.
    ///
    /// # Errors
    /// As [`Reader::apply_cut`].
    pub(crate) fn adopt(&mut self, known: Option<u64>, position: Position) -> Result<()> {
        if known.is_none() || known == self.epoch {
            return Ok(());
        }
        let found = std::mem::replace(&mut self.epoch, known);
        self.apply_cut(position)?;
        self.epoch = found;
        Ok(())
    }

    /// Segment `index` and its first ordinal, with the epoch whose frames it has: one that was current before the look
    /// and still is after it.
    pub(crate) fn find(&mut self, index: u64) -> Result<Option<(MappedSegment, u64)>> {
        loop {
            let epoch = self.epoch_now()?;
            let found = self.live.segment(index)?;
            if self.epoch_now()? == epoch {
                self.epoch = Some(epoch);
                return Ok(found);
            }
        }
    }

    fn epoch_now(&mut self) -> Result<u64> {
        self.look_for_page()?;
        current_epoch(&self.live.paths, self.live.meta.id, self.page.as_ref())
    }
}
