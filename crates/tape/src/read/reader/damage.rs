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
    /// Turns the comparison with checksums on or off, for all later reads.
    pub fn set_verify(&mut self, on: bool) {
        (self.checks.is_enabled, self.lookup_checks.is_enabled) = (on, on);
        self.limit_offset = self.offset;
        self.checks.begin_segment();
        self.lookup_checks.begin_segment();
    }

    /// Makes damage something to be passed over and counted, or an error again.
    pub fn set_skip_damage(&mut self, skip: bool) {
        self.skips_damage = skip;
    }

    /// Returns the damaged parts that the reader has passed over.
    pub fn damaged(&self) -> &DamagedParts {
        &self.damaged
    }

    /// Returns the bytes that should have a checksum but could not be compared with it.
    pub fn unverified(&self) -> &UnverifiedBytes {
        &self.checks.unverified_bytes
    }

    /// Treats a frame of the current segment as damaged because of its content: returns an error, or passes over it if
    /// the options say so.
    ///
    /// # Errors
    /// Fails with the damage, its file and its position.
    pub fn refuse(&mut self, position: Position, reason: &dyn std::fmt::Display) -> Result<()> {
        let error = self.damage_at(position, reason);
        let base = Position(self.position.0 - self.offset);
        if let Some(segment) = self.segment.as_ref().filter(|segment| segment.base_position == base)
            && self.skips_damage
            && position >= base
            && position < self.position
        {
            // The frame counts as passed over, with everything after it.
            let mut offset = position.0 - base.0;
            while offset < self.offset
                && let HeaderWordState::Frame(header) = segment.header_state(offset)
            {
                self.ordinal -= u64::from(!header.is_meta());
                offset += header.len_bytes() as u64;
            }
            self.position = position;
        }
        self.pass_over(error)
    }

    /// Makes the error for a frame at `position` whose content shows damage.
    pub fn damage_at(&self, position: Position, reason: &dyn std::fmt::Display) -> Error {
        let size = self.segment_locator.meta.segment_bytes;
        let path = segment_path(&self.segment_locator.paths.segments(), position.0 / size);
        Error::damage(&path, HEADER_PAGE + position.0 % size, format!("position {position}: {reason}"))
    }

    /// Leaves a segment after [`Error::Damage`] and goes to the start of the next segment that can be opened. Returns
    /// the position there. Returns `None` and stays if there is no such segment. The bytes between are lost to this
    /// reader; the first unit after them may lack its start.
    ///
    /// # Errors
    /// Fails if the system refuses, and with [`Error::Rewound`] as [`Reader::next`] does.
    pub fn skip_damage(&mut self) -> Result<Option<Position>> {
        let (epoch, furthest) = (self.epoch, self.position);
        self.apply_cut(furthest)?;
        let state_before = (self.offset, self.limit_offset, self.position, self.ordinal);
        let segment = self.segment.take();
        if self.next_segment()? {
            self.adopt_epoch(epoch, furthest)?;
            return Ok(Some(self.position()));
        }
        (self.offset, self.limit_offset, self.position, self.ordinal) = state_before;
        (self.segment, self.epoch) = (segment, epoch);
        Ok(None)
    }

    /// Goes to the start of the next segment that can be opened. Returns false if there is no such segment.
    fn next_segment(&mut self) -> Result<bool> {
        let current_index = self.position.0 / self.segment_locator.meta.segment_bytes;
        for index in self.segment_locator.indices()?.into_iter().filter(|&index| index > current_index) {
            match self.begin_at(index) {
                Ok(true) => return Ok(true),
                Ok(false) | Err(Error::Damage { .. } | Error::ForeignVersion { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// Passes over damage if the options say so; otherwise, and for any other error, returns the error.
    pub(crate) fn pass_over(&mut self, error: Error) -> Result<()> {
        let (Error::Damage { path, offset, reason: message }, true) = (&error, self.skips_damage) else {
            return Err(error);
        };
        let old_position = self.position;
        let (path, offset, reason) = (path.clone(), *offset, message.clone());
        let part = DamagedPart {
            file_path: path,
            offset,
            reason,
            from_position: old_position,
            to_position: old_position,
            events: None,
        };
        self.damaged.count += 1;
        if self.damaged.parts.len() < PARTS_MAX {
            self.damaged.parts.push(part);
        }
        self.damaged.uncounted += 1;
        let ordinal = self.ordinal_known.then_some(self.ordinal);
        self.damage_stop = Some(DamageStop { position: self.position, ordinal, counted_bytes: 0 });
        self.segment = None;
        self.continue_after_damage().map(drop)
    }

    /// Continues after damage if a later segment exists; otherwise returns false.
    ///
    /// # Errors
    /// Fails with [`Error::Rewound`] if the tape was cut back before the damage; the reader is then at the cut.
    pub(crate) fn continue_after_damage(&mut self) -> Result<bool> {
        let Some(stop) = self.damage_stop else { return Ok(true) };
        let epoch = self.epoch;
        self.apply_cut(stop.position)?;
        self.position = stop.position;
        let has_next = self.next_segment()?;
        self.adopt_epoch(epoch, stop.position)?;
        let (to, events) = if has_next {
            self.ordinal_known = true;
            (self.position, stop.ordinal.map(|ordinal| self.ordinal.saturating_sub(ordinal)))
        } else {
            self.position = stop.position;
            (self.known_end().max(stop.position), None)
        };
        if let Some(part) = self.damaged.parts.get_mut(self.damaged.count as usize - 1) {
            (part.to_position, part.events) = (to, events);
        }
        let lost_bytes = to.0 - stop.position.0;
        self.damaged.bytes = (self.damaged.bytes + lost_bytes).saturating_sub(stop.counted_bytes);
        self.damage_stop = Some(DamageStop { counted_bytes: lost_bytes, ..stop });
        if has_next {
            self.damage_stop = None;
            if let Some(events) = events {
                self.damaged.events += events;
                self.damaged.uncounted -= 1;
            }
        }
        Ok(has_next)
    }

    /// Returns the end of the tape as the state page or the file of the durable position gives it.
    fn known_end(&self) -> Position {
        match &self.page {
            Some(page) => page.published_end().0,
            None => load_durable(&self.segment_locator.paths).map_or(Position(0), |durable| durable.position),
        }
    }
}
