//! The one loop over a tape that applies a selection.

use crate::Error;
use crate::address::EventAddress;
use crate::follow::{FollowOutcome, SkippedDefinitions, TapeFollower};
use crate::selection::{EventFilter, EventSelection};
use std::path::Path;
use unitape_model::{DefinitionTable, Event, Position, TopicMessage};
use unitape_tape::{ReadOptions, Reader};

/// A selected event, or a selected message of a user.
#[derive(Clone, Copy, Debug)]
pub enum Selected<'a> {
    /// An event, with the names of its tape.
    Event(Event<'a>, &'a DefinitionTable),
    /// A message, which has no names.
    Message(TopicMessage<'a>),
}

/// A step of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CursorOutcome {
    /// The next selected event or message was given.
    Given,
    /// All that is on the tape was read; there may be more later.
    AtEnd,
    /// The selection is at its end: its last place is passed, or its limit is reached.
    Done,
    /// As many frames were read as [`EventCursor::next_within`] may read. The next call continues.
    Paused,
    /// The tape was cut back. The cursor reads it again from its oldest frame, and returns the events after the cut.
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut.
        to: Position,
    },
}

/// A cursor over the selected events of a tape.
#[derive(Debug)]
pub struct EventCursor {
    follower: TapeFollower,
    definitions: DefinitionTable,
    filter: EventFilter,
    skipped_definitions: Option<SkippedDefinitions>,
    is_complete: bool,
    /// Frames before this position were given before the tape was cut.
    given_to: Position,
}

impl EventCursor {
    /// Begins at the start of the selection in the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape or its log of definitions cannot be read.
    pub fn open(dir: &Path, selection: EventSelection, read: ReadOptions) -> Result<Self, Error> {
        let mut filter = EventFilter::new(&selection);
        let (mut follower, mut names) = TapeFollower::open(dir, read)?;
        let is_complete = filter.range().seek(&mut follower, &mut names)?;
        // Bookkeeping appears in its place, so no part is skipped.
        let times = filter.range().times.filter(|_| !selection.includes_bookkeeping);
        let skipped = times.and_then(|times| follower.keep_times(times));
        filter.update_ids(names.dictionary());
        Ok(Self {
            follower,
            definitions: names,
            filter,
            skipped_definitions: skipped,
            is_complete,
            given_to: Position(0),
        })
    }

    /// Passes the next selected event or message to `sink`, with its address. Bookkeeping has the ordinal of the next
    /// event.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read. Earlier events were passed to `sink`.
    #[inline]
    pub fn next(&mut self, sink: impl FnMut(EventAddress, Selected<'_>)) -> Result<CursorOutcome, Error> {
        // No tape has as many frames.
        let mut frames = u64::MAX;
        self.next_within(&mut frames, sink)
    }

    /// Passes the next selected event or message to `sink` as [`EventCursor::next`] does. Returns
    /// [`CursorOutcome::Paused`] after `frames` frames without one. It subtracts the frames that it reads from
    /// `frames`.
    ///
    /// # Errors
    /// Fails as [`EventCursor::next`] does.
    #[inline]
    pub fn next_within(
        &mut self,
        frames: &mut u64,
        mut sink: impl FnMut(EventAddress, Selected<'_>),
    ) -> Result<CursorOutcome, Error> {
        loop {
            // The next frame may be damaged, or long in coming.
            if self.filter.left() == 0 {
                return Ok(CursorOutcome::Done);
            }
            if *frames == 0 {
                return Ok(CursorOutcome::Paused);
            }
            *frames -= 1;
            let (ordinal, frame) = match self.follower.next_step()? {
                FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
                FollowOutcome::AtEnd => return Ok(self.outcome_at_end()),
                FollowOutcome::Rewound { from, to } => return self.rewind_cursor(from, to),
            };
            let position = frame.position;
            // Ordinals count from 1, as people do and as the vectors of events do.
            let address = EventAddress { seq: ordinal + 1, position };
            if self.filter.is_done(address) {
                return Ok(CursorOutcome::Done);
            }
            if let Some(skipped) = &mut self.skipped_definitions {
                skipped.learn_before(&frame, &mut self.definitions)?;
            }
            let (is_meta, is_given) = (frame.header.is_meta(), position < self.given_to);
            match self.definitions.admit_frame(frame.bytes) {
                Ok(None) => {
                    if let Some(message) = frame.message()
                        && !is_given
                        && self.filter.select_message(address)
                    {
                        sink(address, Selected::Message(message));
                        return Ok(CursorOutcome::Given);
                    }
                }
                Ok(Some(event)) => {
                    if is_meta || self.skipped_definitions.is_some() {
                        self.filter.update_ids(self.definitions.dictionary());
                    }
                    if !is_given && self.filter.select(&event, address) {
                        sink(address, Selected::Event(event, &self.definitions));
                        return Ok(CursorOutcome::Given);
                    }
                }
                Err(flaw) => self.follower.refuse_frame(position, &flaw)?,
            }
        }
    }

    /// Waits at the end of the tape until there is more, for a fifth of a second at most. Returns `AtEnd`, or `Rewound`.
    ///
    /// # Errors
    /// Fails as [`EventCursor::next`] does.
    pub fn wait(&mut self) -> Result<CursorOutcome, Error> {
        match self.follower.wait()? {
            FollowOutcome::Rewound { from, to } => self.rewind_cursor(from, to),
            _ => Ok(CursorOutcome::AtEnd),
        }
    }

    /// Returns whether retention has left all of the selected part.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the filter, with its counts.
    pub fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// Returns the names of the tape so far.
    pub fn names(&self) -> &DefinitionTable {
        &self.definitions
    }

    /// Returns the follower, which knows how often the tape was cut back.
    pub fn follower(&self) -> &TapeFollower {
        &self.follower
    }

    /// Returns the reader, which knows the damage that it skipped.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    /// At the end of the tape, the selection may be at its end as well: what comes later is after its last place.
    #[cold]
    fn outcome_at_end(&self) -> CursorOutcome {
        let reader = self.follower.reader();
        match self.filter.is_done(EventAddress { seq: reader.ordinal() + 1, position: reader.position() }) {
            true => CursorOutcome::Done,
            false => CursorOutcome::AtEnd,
        }
    }

    fn rewind_cursor(&mut self, from: Position, to: Position) -> Result<CursorOutcome, Error> {
        self.definitions = self.follower.reopen()?;
        self.filter.update_ids(self.definitions.dictionary());
        (self.skipped_definitions, self.given_to) = (None, to);
        Ok(CursorOutcome::Rewound { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::TapeRangeBound;
    use crate::follow::TapeRange;
    use unitape_model::{EventBuilder, EventKind, UnixNanos, flags};
    use unitape_tape::{TapeId, Writer, WriterOptions};

    /// Fails if a cursor does not pause while a selection finds nothing, because the caller could not look for signals.
    #[test]
    fn a_cursor_pauses_and_continues_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), WriterOptions::default()).unwrap();
        for n in 0..10 {
            let mut unit = Vec::new();
            let kind = if n == 7 { EventKind::Clock } else { EventKind::News };
            EventBuilder::begin(&mut unit, kind, UnixNanos(n)).finish(flags::LAST).unwrap();
            writer.append(&unit).unwrap();
        }
        writer.close().unwrap();
        let selection =
            EventSelection { kinds: vec![EventKind::Clock], limit: Some(1), ..EventSelection::default() };
        let mut cursor = EventCursor::open(dir.path(), selection, ReadOptions::default()).unwrap();
        let mut steps = Vec::new();
        let mut ordinals = Vec::new();
        while steps.last() != Some(&CursorOutcome::Done) {
            let mut frames = 3;
            steps.push(cursor.next_within(&mut frames, |address, _| ordinals.push(address.seq)).unwrap());
        }
        use CursorOutcome::{Done, Given, Paused};
        assert_eq!((&steps[..], &ordinals[..]), (&[Paused, Paused, Given, Done][..], &[8][..]));
        // The limit ends it before the next frame is looked at.
        assert_eq!(cursor.reader().ordinal(), 8);
    }

    /// Fails if a reader of a part waits for an event that cannot be in the part.
    #[test]
    fn a_part_that_ends_with_the_tape_is_done_there() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), WriterOptions::default()).unwrap();
        for n in 0..10 {
            let mut unit = Vec::new();
            EventBuilder::begin(&mut unit, EventKind::News, UnixNanos(n)).finish(flags::LAST).unwrap();
            writer.append(&unit).unwrap();
        }
        writer.close().unwrap();
        let last = |to: TapeRangeBound| {
            let range = TapeRange { to: Some(to), ..TapeRange::default() };
            let selection = EventSelection { range, ..EventSelection::default() };
            let mut cursor = EventCursor::open(dir.path(), selection, ReadOptions::default()).unwrap();
            let mut position = Position(0);
            loop {
                match cursor.next(|address, _| position = address.position).unwrap() {
                    CursorOutcome::Given => {}
                    outcome => return (outcome, position),
                }
            }
        };
        let (outcome, position) = last(TapeRangeBound::Ordinal(11));
        assert_eq!(outcome, CursorOutcome::AtEnd);
        for to in
            [TapeRangeBound::Ordinal(10), TapeRangeBound::Ordinal(9), TapeRangeBound::Position(position)]
        {
            assert_eq!(last(to).0, CursorOutcome::Done, "{to}");
        }
    }
}
