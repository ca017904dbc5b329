//! A message that is larger than its framer waits for: it comes in parts, and goes into quarantine once.
//!
//! ```text
//!  parts     │8=FIX…  1 MiB│      1 MiB      │      1 MiB      │ rest │8=FIX…
//!            first                                               last
//!  spool     ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■▶ raw log, when all of it is there
//!  tape                                                                ▶ one event, with length and hash of all
//! ```
//!
//! The parts of other feeds may come in between, so the bytes wait in a file without a name beside the raw log; in memory
//! is the first part alone. No mark of progress is made within the message: after a restart it is read from its start.

use crate::block::affected_books::AffectedBooks;
use crate::block::quarantine_event::{QuarantineDetails, RawDigest, quarantine_frame};
use crate::block::{Block, BlockMessage, BlockMessageKind, NO_TS};
use crate::error::Error;
use crate::pipeline::feed_state::SourceState;
use crate::quarantine::{RawLog, RawSpool};
use std::ops::Range;
use unitape_model::{Event, EventField, EventValue, UnixNanos};

/// A message whose last part has not arrived.
#[derive(Debug)]
pub struct LargeMessage {
    /// Index of its source.
    pub source: usize,
    /// Its start in the source.
    offset: u64,
    /// Start of its next part.
    next_part_start: u64,
    reason: String,
    detail: String,
    /// Its first part, by which a source may be known.
    first_part: Vec<u8>,
    /// The bytes; `None` if the message is on the tape already.
    spool: Option<RawSpool>,
    hasher: blake3::Hasher,
}

/// The destination of a large message's event.
#[derive(Debug)]
pub struct LargeDestination<'a> {
    pub state: &'a mut SourceState,
    pub next_source: &'a mut u32,
    pub log: &'a mut RawLog,
    pub added: &'a mut Vec<u8>,
    pub running_max: UnixNanos,
}

impl LargeMessage {
    /// Begins with the first part, whose event is `frame`; there is a `spool` unless it is on the tape already.
    pub fn begin(
        block: &Block,
        unit: &BlockMessage,
        frame: &[u8],
        raw: &[u8],
        spool: Option<RawSpool>,
    ) -> Result<Self, Error> {
        let event = Event::new(frame).expect("the block's own event");
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text)) => text.to_owned(),
            _ => String::new(),
        };
        let mut this = Self {
            source: block.source,
            offset: unit.offset,
            next_part_start: unit.offset,
            reason: text(EventField::Reason),
            detail: text(EventField::Detail),
            first_part: raw.to_vec(),
            spool,
            hasher: blake3::Hasher::new(),
        };
        this.add(raw)?;
        Ok(this)
    }

    /// Returns whether the unit is the next part of the large message.
    pub fn continues(&self, unit: &BlockMessage, source: usize) -> bool {
        matches!(unit.kind, BlockMessageKind::QuarantinePart { first: false, .. })
            && (source, unit.offset) == (self.source, self.next_part_start)
    }

    /// Returns whether the unit is a mark of progress within the large message.
    pub fn hides(&self, unit: &BlockMessage, source: usize) -> bool {
        matches!(unit.kind, BlockMessageKind::Progress { end: false, .. })
            && (source, unit.offset) == (self.source, self.next_part_start)
    }

    /// Adds a part.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn add(&mut self, raw: &[u8]) -> Result<(), Error> {
        self.next_part_start += raw.len() as u64;
        self.hasher.update(raw);
        self.spool.as_mut().map_or(Ok(()), |spool| spool.add(raw))
    }

    /// Writes its event; returns where in `added` the frames are, and where of these the event begins. Nothing where it is on
    /// the tape already.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self, destination: LargeDestination<'_>) -> Result<Option<(Range<usize>, usize)>, Error> {
        let LargeDestination { state, next_source, log, added, running_max } = destination;
        let Some(spool) = self.spool else { return Ok(None) };
        let frames_start = added.len();
        if !state.defined {
            state.define(next_source, self.offset, &self.first_part, added);
        }
        let mut source = state.id;
        if self.offset >> 32 != 0 {
            let (id, new) = state.extent((self.offset >> 32) as u32, next_source);
            if new {
                state.extent_frame(id, self.offset, added);
            }
            source = id;
        }
        let raw =
            RawDigest { length: self.next_part_start - self.offset, hash: Some(self.hasher.finalize()) };
        let details = QuarantineDetails {
            ts: if running_max == NO_TS { UnixNanos(0) } else { running_max },
            source,
            offset: self.offset,
            raw_at: log.append_spool(spool)?,
            raw,
            reason: &self.reason,
            detail: &self.detail,
            head: &[],
            concern: &AffectedBooks::Feed,
        };
        let event = added.len();
        quarantine_frame(added, &details);
        Ok(Some((frames_start..added.len(), event)))
    }
}
