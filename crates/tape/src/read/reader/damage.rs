//! A reader meets damage: an error, or passed over and counted.

use unitape_model::Position;

use super::Reader;
use crate::disk::durable::load_durable;
use crate::disk::layout::{HEADER_PAGE, segment_path};
use crate::disk::map::HeaderWordState;
use crate::error::{Error, Result};
use crate::read::damage::{DamageStop, DamagedPart, DamagedParts, UnverifiedBytes};

/// Parts that are listed.
const PARTS_MAX: usize = 1000;

impl Reader {
    /// Turns the comparison with checksums on or off, for what is read from here on.
    pub fn set_verify(&mut self, on: bool) {
        (self.checks.on, self.aside_checks.on) = (on, on);
        self.limit = self.at;
        self.checks.begin();
        self.aside_checks.begin();
    }

    /// Makes damage something to be passed over and counted, or an error again.
    pub fn set_skip_damage(&mut self, skip: bool) {
        self.skip = skip;
    }

    /// The damaged parts that the reader has passed over.
    pub fn damaged(&self) -> &DamagedParts {
        &self.damaged
    }

    /// Bytes that should have a checksum and could not be compared with one.
    pub fn unverified(&self) -> &UnverifiedBytes {
        &self.checks.unverified
    }

    /// Makes a frame of the segment that is read damage, by what it says: an error, or passed over where damage is.
    ///
    /// # Errors
    /// The damage, with its file and position.
    pub fn refuse(&mut self, position: Position, what: &dyn std::fmt::Display) -> Result<()> {
        let error = self.damage_at(position, what);
        let base = Position(self.position.0 - self.at);
        if let Some(segment) = self.segment.as_ref().filter(|segment| segment.base == base)
            && self.skip
            && position >= base
            && position < self.position
        {
            // It counts among what is passed over, with what comes after it.
            let mut at = position.0 - base.0;
            while at < self.at
                && let HeaderWordState::Frame(header) = segment.look(at)
            {
                self.ordinal -= u64::from(!header.is_meta());
                at += header.len_bytes() as u64;
            }
            self.position = position;
        }
        self.pass_over(error)
    }

    /// Damage that a frame at `position` shows by what it says.
    pub fn damage_at(&self, position: Position, what: &dyn std::fmt::Display) -> Error {
        let size = self.live.meta.segment_bytes;
        let path = segment_path(&self.live.paths.segments(), position.0 / size);
        Error::damage(&path, HEADER_PAGE + position.0 % size, format!("position {position}: {what}"))
    }

    /// Leaves a segment in which [`Error::Damage`] was met and goes to the start of the next one that can be opened.
    /// Returns the position there, or none if there is none, and the reader stays. The bytes between are lost to this
    /// reader; the first unit after them may be one whose start is gone.
    ///
    /// # Errors
    /// The system's refusal, or [`Error::Rewound`] as [`Reader::next`].
    pub fn skip_damage(&mut self) -> Result<Option<Position>> {
        let (known, furthest) = (self.epoch, self.position);
        self.apply_cut(furthest)?;
        let before = (self.at, self.limit, self.position, self.ordinal);
        let held = self.segment.take();
        if self.next_segment()? {
            self.adopt(known, furthest)?;
            return Ok(Some(self.position()));
        }
        (self.at, self.limit, self.position, self.ordinal) = before;
        (self.segment, self.epoch) = (held, known);
        Ok(None)
    }

    /// Goes to the start of the next segment that can be opened; false if there is none.
    fn next_segment(&mut self) -> Result<bool> {
        let here = self.position.0 / self.live.meta.segment_bytes;
        for index in self.live.indices()?.into_iter().filter(|&index| index > here) {
            match self.begin_at(index) {
                Ok(true) => return Ok(true),
                Ok(false) | Err(Error::Damage { .. } | Error::ForeignVersion { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// Passes over damage where that was asked for; otherwise, and for any other error, gives it back.
    pub(crate) fn pass_over(&mut self, error: Error) -> Result<()> {
        let (Error::Damage { path, offset, what }, true) = (&error, self.skip) else { return Err(error) };
        let from = self.position;
        let (path, offset, what) = (path.clone(), *offset, what.clone());
        let part = DamagedPart { path, offset, what, from, to: from, events: None };
        self.damaged.count += 1;
        if self.damaged.parts.len() < PARTS_MAX {
            self.damaged.parts.push(part);
        }
        self.damaged.uncounted += 1;
        let ordinal = self.ordinal_known.then_some(self.ordinal);
        self.stop = Some(DamageStop { position: self.position, ordinal, counted: 0 });
        self.segment = None;
        self.continue_after_damage().map(drop)
    }

    /// Continues after damage, if a later segment exists; false if none does.
    ///
    /// # Errors
    /// [`Error::Rewound`] where the tape was cut back before the damage; the reader is at the cut then.
    pub(crate) fn continue_after_damage(&mut self) -> Result<bool> {
        let Some(stop) = self.stop else { return Ok(true) };
        let known = self.epoch;
        self.apply_cut(stop.position)?;
        self.position = stop.position;
        let found = self.next_segment()?;
        self.adopt(known, stop.position)?;
        let (to, events) = if found {
            self.ordinal_known = true;
            (self.position, stop.ordinal.map(|ordinal| self.ordinal.saturating_sub(ordinal)))
        } else {
            self.position = stop.position;
            (self.known_end().max(stop.position), None)
        };
        if let Some(part) = self.damaged.parts.get_mut(self.damaged.count as usize - 1) {
            (part.to, part.events) = (to, events);
        }
        let lost = to.0 - stop.position.0;
        self.damaged.bytes = (self.damaged.bytes + lost).saturating_sub(stop.counted);
        self.stop = Some(DamageStop { counted: lost, ..stop });
        if found {
            self.stop = None;
            if let Some(events) = events {
                self.damaged.events += events;
                self.damaged.uncounted -= 1;
            }
        }
        Ok(found)
    }

    /// Where the tape ends, as far as somebody says so.
    fn known_end(&self) -> Position {
        match &self.page {
            Some(page) => page.end().0,
            None => load_durable(&self.live.paths).map_or(Position(0), |durable| durable.position),
        }
    }
}
