//! Places on a tape: a reader goes to one, or looks at the frame at one.

use unitape_model::{FrameHeader, LINE, Position};

use super::{Frame, Reader};
use crate::disk::map::HeaderWordState;
use crate::error::{Error, Result};
use crate::read::span_checks::SpanCheckContext;

impl Reader {
    /// Goes to the frame at `position` (or the end of the one before it).
    ///
    /// # Errors
    /// Fails if retention has removed the position, or if no frame starts there. Fails with [`Error::Rewound`] if the
    /// tape was cut back before it since this reader last looked.
    pub fn seek(&mut self, position: Position) -> Result<()> {
        let (epoch, furthest) = (self.epoch, position.max(self.position));
        self.apply_cut(furthest)?;
        self.seek_in_epoch(position)?;
        self.adopt_epoch(epoch, furthest)
    }

    /// Goes to the frame at a position that is known to be of this epoch.
    pub(crate) fn seek_in_epoch(&mut self, position: Position) -> Result<()> {
        let oldest = self.segment_locator.oldest_position()?;
        if position < oldest {
            return Err(Error::Retained { position, oldest });
        }
        self.damage_stop = None;
        if let Err(e) = self.walk_to_segment_of(position) {
            self.pass_over(e)?;
        }
        let passed_over = self.damaged.count;
        while self.position < position {
            let Some((offset, header)) = self.advance()? else { return Err(Error::NoFrame(position)) };
            let base = self.segment.as_ref().expect("a segment after a frame").base_position;
            if self.damaged.count > passed_over && base.plus(offset) >= position {
                // The frame lies in damage; this is the first one after it.
                (self.position, self.offset) = (base.plus(offset), offset);
                self.ordinal -= u64::from(!header.is_meta());
                return Ok(());
            }
        }
        let after_damage = self.damaged.count > passed_over || self.damage_stop.is_some();
        if self.position == position || after_damage { Ok(()) } else { Err(Error::NoFrame(position)) }
    }

    /// Returns the frame at `position` without moving the reader.
    ///
    /// # Errors
    /// Fails as [`Reader::seek`] does; unitape must have given out the position for this tape.
    pub fn frame_at(&mut self, position: Position) -> Result<Frame<'_>> {
        let size = self.segment_locator.meta.segment_bytes;
        let (index, offset) = (position.0 / size, position.0 % size);
        if !offset.is_multiple_of(LINE as u64) {
            return Err(Error::NoFrame(position));
        }
        let header = loop {
            match self.look_up(position, index, offset) {
                // A writer may have closed the tape and opened it again meanwhile. The durable position and the
                // checksums are then of another file than the mapped one.
                Err(Error::Damage { .. } | Error::NoFrame(_)) if self.lookup_has_moved()? => {
                    self.lookup_segment = None
                }
                other => break other?,
            }
        };
        let segment = self.lookup_segment.as_ref().expect("a segment after a frame");
        // SAFETY: `look_up` saw the frame committed at `offset`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(offset, header.len_bytes()) };
        Ok(Frame { position, header, bytes })
    }

    /// Maps the segment of `position` for a look-up, and returns the header of the frame there, which is then checked.
    fn look_up(&mut self, position: Position, index: u64, offset: u64) -> Result<FrameHeader> {
        if self.lookup_segment.as_ref().is_none_or(|s| s.segment_index != index || !s.has_name()) {
            self.lookup_segment = self.segment_locator.segment(index)?.map(|(segment, _)| segment);
            self.lookup_checks.begin_segment();
            self.look_for_page()?;
        }
        let Some(segment) = &self.lookup_segment else {
            self.segment_locator.explain_missing(index)?;
            return Err(Error::NoFrame(position));
        };
        let origin = segment.filler_bytes();
        if offset < origin {
            return Err(Error::Retained { position, oldest: segment.base_position.plus(origin) });
        }
        let scope =
            SpanCheckContext { segment_locator: &self.segment_locator, page: self.page.as_ref(), segment };
        self.lookup_checks.vouch(&scope, offset, offset + LINE as u64)?;
        let HeaderWordState::Frame(header) = segment.header_state(offset) else {
            return Err(Error::NoFrame(position));
        };
        self.lookup_checks.vouch(&scope, offset, offset + header.len_bytes() as u64)?;
        Ok(header)
    }

    /// Returns whether the segment of the last look-up now has another file.
    fn lookup_has_moved(&self) -> Result<bool> {
        match &self.lookup_segment {
            Some(segment) => self.segment_locator.is_current(segment).map(|is_current| !is_current),
            None => Ok(false),
        }
    }

    /// Moves to the start of segment `index`, or to the position where it will be.
    pub(crate) fn begin_at(&mut self, index: u64) -> Result<bool> {
        self.position = Position(index.saturating_mul(self.segment_locator.meta.segment_bytes));
        (self.offset, self.limit_offset) = (0, 0);
        self.idle_polls = 0;
        self.checks.begin_segment();
        let opened_segment = self.find_segment(index)?;
        let is_there = opened_segment.is_some();
        self.look_for_page()?;
        self.segment = opened_segment.map(|(mut segment, first_ordinal)| {
            self.ordinal = first_ordinal;
            // The first frame of a tape that begins within the segment.
            self.offset = segment.filler_bytes();
            (self.limit_offset, self.position) = (self.offset, segment.base_position.plus(self.offset));
            segment.enter_pages(self.offset);
            segment
        });
        Ok(is_there)
    }

    /// Moves to the start of the segment that holds `position`, or of the segment before it if that is missing.
    pub(crate) fn walk_to_segment_of(&mut self, position: Position) -> Result<()> {
        let index = position.0 / self.segment_locator.meta.segment_bytes;
        if !self.begin_at(index)? {
            self.segment_locator.explain_missing(index)?;
            if index > 0 && !self.begin_at(index - 1)? {
                self.check_missing(index)?;
                return Err(Error::NoFrame(position));
            }
        }
        Ok(())
    }
}
