//! Random access: a reader goes to an event by its ordinal, or to the first one of a later time, and reads the events of a
//! range of time. The index of each finished segment says which part of it to read.
//!
//! ```text
//!  segments   │       0       │       1       │       2       │    3 …
//!  .idx        least, greatest  least, greatest  least, greatest  none yet: its frames are walked
//!  chunks      · · · · · · · ·  · · · ▒ · · · ·
//!                                     └ the first that may hold it: compared with the index, then walked
//! ```
//!
//! A reader trusts an index as far as the frames confirm it. The index must belong to this tape and segment, match its
//! own checksums, and cover the bytes of the segment's checksums. Before a reader jumps to a chunk it compares the
//! chunk's frames with the entry. If anything differs, the reader walks the segment.
//!
//! By ordinal a search reads the header pages of some segments (log2 of their number), one index and one chunk. By time it
//! reads 128 bytes of each index and each `.crc` before the event, one whole index, and one chunk.

use unitape_model::{FrameHeader, Position, UnixNanos};

use super::{Frame, Reader};
use crate::disk::layout::segment_path;
use crate::disk::map::HeaderWordState;
use crate::disk::seal::is_sealed;
use crate::disk::segment_index::{SegmentIndex, TimeQuery};
use crate::error::{Error, Result};
use crate::read::span_checks::survives;

/// Where a reader is after it looked for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SeekOutcome {
    /// The next frame is the event sought. If that lies in damage that is passed over, the next frame is the first one
    /// after the damage, and has another ordinal.
    Event {
        /// Where its frame begins.
        position: Position,
        /// Events before it.
        ordinal: u64,
    },
    /// The tape has no such event yet, and the reader is at its end.
    End {
        /// The end.
        position: Position,
        /// Events before it.
        ordinal: u64,
    },
}

/// A range of event times: `since <= time < until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time in the range; `None`: all times before `until`.
    pub since: Option<UnixNanos>,
    /// The first time after the range; `None`: all times from `since` on.
    pub until: Option<UnixNanos>,
}

impl TimeRange {
    /// Returns whether `time` is in the range.
    pub fn contains(&self, time: UnixNanos) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
    }

    fn query(self) -> TimeQuery {
        let first_ns = self.since.map_or(i64::MIN, |since| since.0);
        match self.until.map(|until| until.0.checked_sub(1)) {
            None => TimeQuery::Within { first: first_ns, last: i64::MAX },
            Some(Some(last)) => TimeQuery::Within { first: first_ns, last },
            // Nothing is before the least time.
            Some(None) => TimeQuery::Within { first: i64::MAX, last: i64::MIN },
        }
    }
}

/// The index of the segment that a reader is in, and the part of the tape that it reads before it asks again.
#[derive(Debug, Default)]
pub(crate) struct IndexCursor {
    /// Segment and epoch for which it was looked for.
    segment_key: Option<(u64, Option<u64>)>,
    segment_index: Option<SegmentIndex>,
    /// The query for which positions from one to the other are read without a question.
    query: Option<TimeQuery>,
    from_position: Position,
    to_position: Position,
}

impl IndexCursor {
    fn covers(&self, position: Position, query: TimeQuery) -> bool {
        self.query == Some(query) && self.from_position <= position && position < self.to_position
    }

    fn set_covered(&mut self, query: TimeQuery, from: Position, to: Position) {
        (self.query, self.from_position, self.to_position) = (Some(query), from, to);
    }

    /// Drops the loaded index, because it does not match the frames.
    fn drop_index(&mut self) {
        self.segment_index = None;
    }
}

impl Reader {
    /// Goes to the event with `ordinal`: the next event is that one. Events are counted over the whole tape, and
    /// bookkeeping is not.
    ///
    /// The definitions before it are in the dictionary log ([`crate::LostDefinitions::learn_before`]), as for a reader
    /// that begins at a position.
    ///
    /// # Errors
    /// Fails with [`Error::RetainedEvent`] if the event lies before the oldest position. Fails at damage, and with
    /// [`Error::Rewound`] as [`Reader::seek`] does.
    pub fn seek_ordinal(&mut self, ordinal: u64) -> Result<SeekOutcome> {
        let (epoch, before) = (self.epoch, self.position);
        self.apply_cut(before)?;
        self.damage_stop = None;
        let indices = self.segment_locator.indices()?;
        let index = self.segment_of_event(&indices, ordinal)?;
        if let Err(e) = self.begin_at(index) {
            self.pass_over(e)?;
        }
        self.adopt_epoch(epoch, before)?;
        self.jump_to_chunk(index, |segment_index| {
            let ordinal_in_segment = ordinal.saturating_sub(segment_index.first_ordinal);
            segment_index.entries.partition_point(|entry| entry.events_before <= ordinal_in_segment)
        });
        loop {
            let Some((offset, header)) = self.advance()? else { return Ok(self.at_end()) };
            if !header.is_meta() && self.ordinal > ordinal {
                return Ok(self.step_back(offset));
            }
        }
    }

    /// Goes to the first frame at `position` or after it: an event or bookkeeping, whose ordinal is that of the next event.
    ///
    /// Unlike [`Reader::seek`] it takes any position, also one within a frame or beyond the end. The definitions before it
    /// are in the dictionary log.
    ///
    /// # Errors
    /// Fails with [`Error::Retained`] if the target lies before the oldest position. Fails at damage, and with
    /// [`Error::Rewound`] as [`Reader::seek`] does.
    pub fn seek_frame(&mut self, position: Position) -> Result<SeekOutcome> {
        let (epoch, before) = (self.epoch, self.position);
        self.apply_cut(before)?;
        self.damage_stop = None;
        let oldest = self.segment_locator.oldest_position()?;
        if position < oldest {
            return Err(Error::Retained { position, oldest });
        }
        let indices = self.segment_locator.indices()?;
        let (wanted, offset) = (
            position.0 / self.segment_locator.meta.segment_bytes,
            position.0 % self.segment_locator.meta.segment_bytes,
        );
        let next_slot = indices.partition_point(|&index| index <= wanted);
        let index = next_slot.checked_sub(1).map_or(0, |slot| indices[slot]);
        if let Err(e) = self.begin_at(index) {
            self.pass_over(e)?;
        }
        self.adopt_epoch(epoch, before)?;
        if index == wanted {
            self.jump_to_chunk(index, |segment_index| {
                segment_index.entries.partition_point(|entry| entry.offset <= offset)
            });
        }
        loop {
            let Some((frame_offset, header)) = self.advance()? else { return Ok(self.at_end()) };
            if self.segment.as_ref().expect("a segment after a frame").base_position.plus(frame_offset)
                >= position
            {
                // Bookkeeping was not counted.
                self.ordinal += u64::from(header.is_meta());
                return Ok(self.step_back(frame_offset));
            }
        }
    }

    /// Goes to the first event, in the order of the tape, whose time is later than `time`. Events that are flagged as clock
    /// ahead do not count: the merge did not believe their time. Messages of users have no time.
    ///
    /// It looks from the oldest position on. Event times of a tape may go back, so events of an earlier time may follow.
    ///
    /// # Errors
    /// Fails at damage, and with [`Error::Rewound`] as [`Reader::seek`] does.
    pub fn seek_time(&mut self, time: UnixNanos) -> Result<SeekOutcome> {
        let (epoch, before) = (self.epoch, self.position);
        self.apply_cut(before)?;
        self.damage_stop = None;
        let oldest_index = self.segment_locator.indices()?.first().copied().unwrap_or(0);
        if let Err(e) = self.begin_at(oldest_index) {
            self.pass_over(e)?;
        }
        self.adopt_epoch(epoch, before)?;
        match self.advance_to(TimeQuery::Later(time.0), false)? {
            Some((offset, _)) => Ok(self.step_back(offset)),
            None => Ok(self.at_end()),
        }
    }

    /// Returns the next event whose time is in `range`, with its ordinal; `None` if there is no more yet. Also returns
    /// META frames on the way, with the ordinal of the next event.
    ///
    /// The reader passes over parts of finished segments that have no such event, with their bookkeeping: the definitions
    /// there are in the dictionary log. Events that are flagged as clock ahead count with their time, wherever they are.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    pub fn next_in_range(&mut self, range: TimeRange) -> Result<Option<(u64, Frame<'_>)>> {
        let Some((offset, header)) = self.advance_to(range.query(), true)? else { return Ok(None) };
        let ordinal = self.ordinal - u64::from(!header.is_meta());
        let segment = self.segment.as_ref().expect("a segment after a frame");
        // SAFETY: `advance` saw the frame committed at `offset`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(offset, header.len_bytes()) };
        Ok(Some((ordinal, Frame { position: segment.base_position.plus(offset), header, bytes })))
    }

    /// Steps over frames up to the next event of `query`, or with `wants_meta` the next bookkeeping.
    fn advance_to(&mut self, query: TimeQuery, wants_meta: bool) -> Result<Option<(u64, FrameHeader)>> {
        loop {
            while !self.index_cursor.covers(self.position, query) {
                self.pass_chunks(query)?;
            }
            let Some((offset, header)) = self.advance()? else { return Ok(None) };
            if header.is_meta() {
                if wants_meta {
                    return Ok(Some((offset, header)));
                }
                continue;
            }
            let segment = self.segment.as_ref().expect("a segment after a frame");
            if segment.event_time(offset, header).is_some_and(|time| query.matches(header, time)) {
                return Ok(Some((offset, header)));
            }
        }
    }

    /// Goes to the next chunk that may hold an event of `query`, from where the reader is, or to the start of the next
    /// segment with one. Says how far to read before the next question, or is in a later segment afterwards.
    #[cold]
    fn pass_chunks(&mut self, query: TimeQuery) -> Result<()> {
        let size = self.segment_locator.meta.segment_bytes;
        let position = self.position;
        if self.damage_stop.is_some() || self.is_rewound {
            // The next look at the tape decides where it continues.
            self.index_cursor.set_covered(query, position, position.plus(1));
            return Ok(());
        }
        let (index, offset) = (position.0 / size, position.0 % size);
        let segment_end = Position((index + 1).saturating_mul(size));
        // A place within a segment that is not open yet is found by the reader first.
        let is_open = self.segment.as_ref().is_some_and(|segment| segment.segment_index == index);
        if !is_open && offset > 0 {
            self.index_cursor.set_covered(query, position, position.plus(1));
            return Ok(());
        }
        self.load_index(index);
        let Some(segment_index) = &self.index_cursor.segment_index else {
            self.index_cursor.set_covered(query, position, segment_end);
            return Ok(());
        };
        let next_entry = segment_index.entries.partition_point(|entry| entry.offset < offset);
        if next_entry > 0 && offset < segment_index.chunk_end(next_entry - 1) {
            // In the middle of a chunk.
            let chunk_end = Position(index * size + segment_index.chunk_end(next_entry - 1));
            self.index_cursor.set_covered(query, position, chunk_end);
            return Ok(());
        }
        let wanted_entry = (next_entry..segment_index.entries.len())
            .find(|&i| segment_index.entries[i].time_bounds.may_match(&query));
        let Some(wanted_entry) = wanted_entry else { return self.pass_segments(index, query) };
        let chunk_end = Position(index * size + segment_index.chunk_end(wanted_entry));
        if !is_open {
            // Only by its start is it known which lineage it is of.
            self.begin_segment(index)?;
        }
        match self.jump_to_entry(wanted_entry) {
            true => self.index_cursor.set_covered(query, self.position, chunk_end),
            false => self.index_cursor.set_covered(query, self.position, segment_end),
        }
        Ok(())
    }

    /// Continues after segment `index`, whose rest has no event of `query`.
    fn pass_segments(&mut self, index: u64, query: TimeQuery) -> Result<()> {
        let indices = self.segment_locator.indices()?;
        let is_there = |index: u64| indices.binary_search(&index).is_ok();
        let mut next_index = index + 1;
        if !is_there(next_index) {
            // The end of the tape is in this segment, or will be in the next: it is found by the frames.
            let segment_end = Position(next_index.saturating_mul(self.segment_locator.meta.segment_bytes));
            self.index_cursor.set_covered(query, self.position, segment_end);
            return Ok(());
        }
        while is_there(next_index + 1) && self.is_usable(next_index) {
            match SegmentIndex::load_summary(
                &self.segment_locator.paths,
                &self.segment_locator.meta,
                next_index,
            ) {
                Some(summary) if !summary.time_bounds.may_match(&query) => next_index += 1,
                _ => break,
            }
        }
        self.begin_segment(next_index)
    }

    /// Goes to the start of segment `index`, which comes after the reader's place.
    fn begin_segment(&mut self, index: u64) -> Result<()> {
        let (epoch, before) = (self.epoch, self.position);
        self.apply_cut(before)?;
        if let Some(segment) = self.segment.take() {
            self.segment_locator.return_segment(segment);
        }
        if let Err(e) = self.begin_at(index) {
            self.pass_over(e)?;
        }
        self.adopt_epoch(epoch, before)
    }

    /// Loads the index of segment `index`, if it exists and can be trusted.
    fn load_index(&mut self, index: u64) {
        let key = Some((index, self.epoch));
        if self.index_cursor.segment_key != key {
            self.index_cursor.segment_key = key;
            let usable = self.is_usable(index);
            let load = || SegmentIndex::load(&self.segment_locator.paths, &self.segment_locator.meta, index);
            self.index_cursor.segment_index = usable.then(load).flatten();
        }
    }

    /// Returns whether a power loss cannot have removed the frames that the index of segment `index` describes.
    fn is_usable(&mut self, index: u64) -> bool {
        let path = segment_path(&self.segment_locator.paths.segments(), index);
        let segment_end = Position((index + 1).saturating_mul(self.segment_locator.meta.segment_bytes));
        is_sealed(&path) || survives(&self.segment_locator.paths, segment_end).unwrap_or(false)
    }

    /// Jumps to the chunk of entry `i` in the open segment. Returns false and stays if the frames do not agree with the
    /// index.
    fn jump_to_entry(&mut self, i: usize) -> bool {
        let (Some(segment), Some(segment_index)) = (&self.segment, &self.index_cursor.segment_index) else {
            return false;
        };
        let entry = segment_index.entries[i];
        let first_ordinal = segment.first_ordinal(&self.segment_locator.meta);
        let confirmed =
            self.index_cursor.segment_key.is_some_and(|(index, _)| index == segment.segment_index)
                && first_ordinal.is_ok_and(|first| first == segment_index.first_ordinal)
                && segment.header_state(entry.offset) != HeaderWordState::Nothing
                && segment_index.is_confirmed(i, segment);
        if !confirmed {
            self.index_cursor.drop_index();
            return false;
        }
        let ordinal = segment_index.first_ordinal + entry.events_before;
        (self.offset, self.position) = (entry.offset, segment.base_position.plus(entry.offset));
        self.limit_offset = self.limit_offset.max(self.offset);
        (self.ordinal, self.ordinal_known) = (ordinal, true);
        self.idle_polls = 0;
        true
    }

    /// Jumps within segment `index`, at whose start the reader is, to the last of the chunks that `count` counts from its
    /// start.
    fn jump_to_chunk(&mut self, index: u64, count: impl FnOnce(&SegmentIndex) -> usize) {
        if self.segment.as_ref().is_none_or(|segment| segment.segment_index != index) {
            return;
        }
        self.load_index(index);
        let Some(segment_index) = &self.index_cursor.segment_index else { return };
        if let Some(chunk) = count(segment_index).checked_sub(1) {
            self.jump_to_entry(chunk);
        }
    }

    /// Finds the last segment that begins at or before event `ordinal`.
    fn segment_of_event(&self, indices: &[u64], ordinal: u64) -> Result<u64> {
        let Some(&oldest) = indices.first() else { return Ok(0) };
        if let Ok(Some((_, first))) = self.segment_locator.segment(oldest)
            && first > ordinal
        {
            let (oldest, oldest_ordinal) = (self.segment_locator.oldest_position()?, first);
            return Err(Error::RetainedEvent { ordinal, oldest_ordinal, oldest });
        }
        let (mut low, mut high) = (0, indices.len());
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            let begins_before = match self.segment_locator.segment(indices[middle]) {
                // The first ordinal of a segment without a frame is not final.
                Ok(Some((segment, first))) => {
                    first <= ordinal && segment.header_state(0) != HeaderWordState::Nothing
                }
                // It is met on the way from an earlier one.
                Ok(None) | Err(Error::Damage { .. }) => false,
                Err(e) => return Err(e),
            };
            match begins_before {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(indices[low])
    }

    /// Steps back before the last event read, whose frame is at data offset `offset`.
    fn step_back(&mut self, offset: u64) -> SeekOutcome {
        let base = self.segment.as_ref().expect("a segment after a frame").base_position;
        (self.position, self.offset) = (base.plus(offset), offset);
        self.ordinal -= 1;
        SeekOutcome::Event { position: self.position, ordinal: self.ordinal }
    }

    fn at_end(&self) -> SeekOutcome {
        SeekOutcome::End { position: self.position, ordinal: self.ordinal }
    }
}
