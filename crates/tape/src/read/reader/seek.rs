//! Places on a tape: a reader goes to one, or looks at the frame at one.

use unitape_model::{LINE, Position};

use super::{Frame, Reader};
use crate::disk::map::HeaderWordState;
use crate::error::{Error, Result};
use crate::read::span_checks::SpanCheckContext;

impl Reader {
    /// Goes to the frame at `position` (or the end of the one before it).
    ///
    /// # Errors
    /// A position that retention has removed, or at which no frame starts; [`Error::Rewound`] where the tape was cut
    /// back before it since this reader looked last.
    pub fn seek(&mut self, position: Position) -> Result<()> {
        let (known, furthest) = (self.epoch, position.max(self.position));
        self.apply_cut(furthest)?;
        self.seek_in_epoch(position)?;
        self.adopt(known, furthest)
    }

    /// Goes to the frame at a position that is known to be of this epoch.
    pub(crate) fn seek_in_epoch(&mut self, position: Position) -> Result<()> {
        let oldest = self.live.oldest()?;
        if position < oldest {
            return Err(Error::Retained { position, oldest });
        }
        self.stop = None;
        if let Err(e) = self.walk_to_segment_of(position) {
            self.pass_over(e)?;
        }
        let passed_over = self.damaged.count;
        while self.position < position {
            let Some((at, header)) = self.advance()? else { return Err(Error::NoFrame(position)) };
            let base = self.segment.as_ref().expect("a segment after a frame").base;
            if self.damaged.count > passed_over && base.plus(at) >= position {
                // The frame lies in damage; this is the first one after it.
                (self.position, self.at) = (base.plus(at), at);
                self.ordinal -= u64::from(!header.is_meta());
                return Ok(());
            }
        }
        let after_damage = self.damaged.count > passed_over || self.stop.is_some();
        if self.position == position || after_damage { Ok(()) } else { Err(Error::NoFrame(position)) }
    }

    /// The frame at `position`, without moving the reader.
    ///
    /// # Errors
    /// As [`Reader::seek`]; the position must be one that the tape gave out.
    pub fn frame_at(&mut self, position: Position) -> Result<Frame<'_>> {
        let size = self.live.meta.segment_bytes;
        let (index, at) = (position.0 / size, position.0 % size);
        if !at.is_multiple_of(LINE as u64) {
            return Err(Error::NoFrame(position));
        }
        if self.aside.as_ref().is_none_or(|s| s.index != index || !s.is_linked()) {
            self.aside = self.live.segment(index)?.map(|(segment, _)| segment);
            self.aside_checks.begin();
            self.look_for_page()?;
        }
        let Some(segment) = &self.aside else {
            self.live.explain_missing(index)?;
            return Err(Error::NoFrame(position));
        };
        let origin = segment.filler_bytes();
        if at < origin {
            return Err(Error::Retained { position, oldest: segment.base.plus(origin) });
        }
        let scope = SpanCheckContext { live: &self.live, page: self.page.as_ref(), segment };
        self.aside_checks.vouch(&scope, at, at + LINE as u64)?;
        let HeaderWordState::Frame(header) = segment.look(at) else { return Err(Error::NoFrame(position)) };
        self.aside_checks.vouch(&scope, at, at + header.len_bytes() as u64)?;
        // SAFETY: `look` saw the frame committed at `at`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(at, header.len_bytes()) };
        Ok(Frame { position, header, bytes })
    }

    /// Moves to the start of segment `index`, or to the position where it will be.
    pub(crate) fn begin_at(&mut self, index: u64) -> Result<bool> {
        self.position = Position(index.saturating_mul(self.live.meta.segment_bytes));
        (self.at, self.limit) = (0, 0);
        self.idle = 0;
        self.checks.begin();
        let found = self.find(index)?;
        let there = found.is_some();
        self.look_for_page()?;
        self.segment = found.map(|(mut segment, first_ordinal)| {
            self.ordinal = first_ordinal;
            // The first frame of a tape that begins within the segment.
            self.at = segment.filler_bytes();
            (self.limit, self.position) = (self.at, segment.base.plus(self.at));
            segment.enter_pages(self.at);
            segment
        });
        Ok(there)
    }

    /// Moves to the start of the segment that holds `position`, or of the one before it if that is not there.
    pub(crate) fn walk_to_segment_of(&mut self, position: Position) -> Result<()> {
        let index = position.0 / self.live.meta.segment_bytes;
        if !self.begin_at(index)? {
            self.live.explain_missing(index)?;
            if index > 0 && !self.begin_at(index - 1)? {
                self.miss(index)?;
                return Err(Error::NoFrame(position));
            }
        }
        Ok(())
    }
}
