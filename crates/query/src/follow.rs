//! A tape that is read from its oldest frame on, and followed as it grows.
//!
//! A follower may meet the end of the tape, where it waits, and cuts: after a power loss, the tape may be shorter than
//! the part that was read. The facts learned from the lost part are then invalid, and the tape is read again.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::{DefinitionTable, Event, EventKind, Position, TapeGap};
use unitape_tape::{
    Error, Frame, LostDefinitions, ReadOptions, Reader, SeekOutcome, StartPosition, TimeRange,
    accepted_ranges,
};

use crate::address::{EventAddress, TapeRangeBound};

/// Opens a reader of the whole tape in `dir`. Returns it with the names that the removed part of the tape defined.
///
/// # Errors
/// Fails if the tape or its log of definitions cannot be read.
pub fn open_reader(dir: &Path, options: ReadOptions) -> Result<(Reader, DefinitionTable), Error> {
    let reader = Reader::open_with(dir, StartPosition::Oldest, options)?;
    let mut definitions = DefinitionTable::default();
    if options.skip_damage {
        definitions.set_log(LostDefinitions::names(dir));
    }
    let mut lost_definitions = LostDefinitions::new(dir, options.skip_damage);
    lost_definitions.learn_before(reader.position(), |_, frame| definitions.admit_frame(frame).map(drop))?;
    Ok((reader, definitions))
}

/// A step of a follower.
#[derive(Debug)]
pub enum FollowOutcome<'a> {
    /// The next frame.
    Frame {
        /// The number of events before it.
        ordinal: u64,
        /// The frame.
        frame: Frame<'a>,
    },
    /// All that is on the tape was read.
    AtEnd,
    /// The tape was cut back. The caller must forget its facts and call [`TapeFollower::reopen`].
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut. The next frames replace the frames that were read after it.
        to: Position,
    },
}

/// A follower of a tape.
#[derive(Debug)]
pub struct TapeFollower {
    tape_dir: PathBuf,
    options: ReadOptions,
    reader: Reader,
    rewind_count: u64,
    /// The times of the events to return, if other events are skipped.
    range: Option<TimeRange>,
    flaws: TapeFlaws,
}

/// The flaws in the content of a tape, beside the damage that its reader met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapeFlaws {
    /// Events in which a merge reports that a part of its inputs is missing.
    pub losses: u64,
    /// Events in which a merge reports that a repair accepted a part of its inputs without a check.
    pub unverified: u64,
    /// Parts of the tape itself that a repair accepted without a check.
    pub accepted: Vec<(Position, Position)>,
}

impl TapeFlaws {
    fn of_tape(dir: &Path, reader: &Reader) -> Self {
        let mut accepted = accepted_ranges(dir);
        accepted.retain(|(_, to)| *to > reader.position());
        Self { accepted, ..Self::default() }
    }

    #[cold]
    fn add_frame(&mut self, frame: &[u8]) {
        match Event::new(frame).and_then(|event| TapeGap::from_event(&event)) {
            Some(gap) if gap.is_loss() => self.losses += 1,
            Some(_) => self.unverified += 1,
            None => {}
        }
    }
}

impl TapeFollower {
    /// Begins at the oldest frame of the tape in `dir`. Also returns the names that the removed part of the tape
    /// defined.
    ///
    /// # Errors
    /// Fails as [`open_reader`] does.
    pub fn open(dir: &Path, options: ReadOptions) -> Result<(Self, DefinitionTable), Error> {
        let (reader, names) = open_reader(dir, options)?;
        let flaws = TapeFlaws::of_tape(dir, &reader);
        Ok((Self { tape_dir: dir.to_owned(), options, reader, rewind_count: 0, range: None, flaws }, names))
    }

    /// Goes to the first frame at or after `from` by the indexes of the segments, and passes the earlier definitions to
    /// `names`. It stops earlier if the dictionary log lacks some of them, so frames before `from` may come first.
    ///
    /// # Errors
    /// Fails with [`Error::Retained`] or [`Error::RetainedEvent`] if `from` is before the oldest frame; the follower is
    /// then at the oldest frame. Fails if the tape is damaged or cannot be read.
    pub fn seek(&mut self, from: TapeRangeBound, names: &mut DefinitionTable) -> Result<(), Error> {
        let outcome = match from {
            TapeRangeBound::Ordinal(seq) => self.reader.seek_ordinal(seq.saturating_sub(1))?,
            TapeRangeBound::Position(position) => self.reader.seek_frame(position)?,
        };
        let (SeekOutcome::Event { position, .. } | SeekOutcome::End { position, .. }) = outcome;
        // Without a durable position, the contents of the log are unknown.
        let durable = self.reader.durable().unwrap_or(Position(0));
        if durable < position {
            match self.reader.seek_frame(durable) {
                // It is older than the tape that is left.
                Err(Error::Retained { .. }) => return self.begin_again(names),
                other => _ = other?,
            }
        }
        if self.learn_before(self.reader.position(), names).is_err() {
            // All that the log should have is on the tape once more.
            self.begin_again(names)?;
        }
        Ok(())
    }

    /// Returns only events of these times from here on, and bookkeeping, and skips the other events by the indexes of
    /// the segments. The caller must pass each frame to the returned value, which has the skipped definitions.
    ///
    /// Returns `None` if the dictionary log cannot be read. Then all frames are returned.
    pub fn keep_times(&mut self, range: TimeRange) -> Option<SkippedDefinitions> {
        let durable = self.reader.durable().ok()?;
        let log = |skip| LostDefinitions::new(&self.tape_dir, skip);
        // Read once to see whether all of it is there, before anything is printed.
        let mut definitions = DefinitionTable::default();
        log(false).learn_before(durable, |_, frame| definitions.admit_frame(frame).map(drop)).ok()?;
        self.range = Some(range);
        Some(SkippedDefinitions {
            lost_definitions: log(self.options.skip_damage),
            next_position: self.reader.position(),
        })
    }

    fn learn_before(&self, position: Position, names: &mut DefinitionTable) -> Result<(), Error> {
        let mut lost_definitions = LostDefinitions::new(&self.tape_dir, false);
        lost_definitions.learn_before(position, |_, frame| names.admit_frame(frame).map(drop))
    }

    fn begin_again(&mut self, names: &mut DefinitionTable) -> Result<(), Error> {
        *names = self.reopen()?;
        Ok(())
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    #[inline]
    pub fn next_step(&mut self) -> Result<FollowOutcome<'_>, Error> {
        let next_outcome = match self.range {
            Some(range) => self.reader.next_in_range(range),
            None => self.reader.next_counted(),
        };
        match next_outcome {
            Ok(Some((ordinal, frame))) => {
                if frame.header.kind() == EventKind::Quarantine as u8 {
                    self.flaws.add_frame(frame.bytes);
                }
                Ok(FollowOutcome::Frame { ordinal, frame })
            }
            Ok(None) => Ok(FollowOutcome::AtEnd),
            Err(error) => rewound_outcome(error, &mut self.rewind_count),
        }
    }

    /// Continues where `reader` is, which is of the same tape.
    pub fn replace_reader(&mut self, reader: Reader) {
        (self.reader, self.range) = (reader, None);
    }

    /// Steps back onto the frame at `position`, which was given last.
    ///
    /// # Errors
    /// Fails as [`TapeFollower::next_step`] does.
    pub fn step_back(&mut self, position: Position) -> Result<(), Error> {
        self.reader.seek_frame(position).map(drop)
    }

    /// Waits at the end of the tape until there is more, for a fifth of a second at most: then [`FollowOutcome::AtEnd`], and the
    /// caller looks again.
    ///
    /// # Errors
    /// Fails as [`TapeFollower::next_step`] does.
    pub fn wait(&mut self) -> Result<FollowOutcome<'static>, Error> {
        match self.reader.wait(LOOK) {
            Ok(_) => Ok(FollowOutcome::AtEnd),
            Err(error) => rewound_outcome(error, &mut self.rewind_count),
        }
    }

    /// Begins again at the oldest frame, after a cut. Also returns the names that the removed part of the tape defined.
    /// From then on, all frames are returned, also frames of other times.
    ///
    /// # Errors
    /// Fails as [`open_reader`] does.
    pub fn reopen(&mut self) -> Result<DefinitionTable, Error> {
        let (reader, names) = open_reader(&self.tape_dir, self.options)?;
        self.flaws = TapeFlaws::of_tape(&self.tape_dir, &reader);
        (self.reader, self.range) = (reader, None);
        Ok(names)
    }

    /// Refuses the frame at this position, because it is not a valid frame.
    ///
    /// # Errors
    /// Fails with this damage unless the reader skips damage.
    pub fn refuse_frame(&mut self, position: Position, fault: &dyn Display) -> Result<(), Error> {
        self.reader.refuse(position, fault)
    }

    /// Counts how often the tape was cut back.
    pub fn rewind_count(&self) -> u64 {
        self.rewind_count
    }

    /// Returns the reader, which knows the damage that it skipped.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the position up to which the tape is durable.
    ///
    /// # Errors
    /// Fails if the position cannot be read.
    pub fn durable(&mut self) -> Result<Position, Error> {
        self.reader.durable()
    }

    /// Returns the flaws of the part that was read.
    pub fn flaws(&self) -> &TapeFlaws {
        &self.flaws
    }
}

/// The definitions in the parts of a tape that a follower has skipped.
#[derive(Debug)]
pub struct SkippedDefinitions {
    lost_definitions: LostDefinitions,
    /// Where the next frame is if nothing is between.
    next_position: Position,
}

impl SkippedDefinitions {
    /// Passes the definitions between the previous frame and this frame to `names`.
    ///
    /// # Errors
    /// Fails if the dictionary log is damaged.
    #[inline]
    pub fn learn_before(&mut self, frame: &Frame<'_>, names: &mut DefinitionTable) -> Result<(), Error> {
        let position = frame.position;
        if position != self.next_position {
            self.lost_definitions.learn_before(position, |_, frame| names.admit_frame(frame).map(drop))?;
        }
        self.next_position = position.plus(frame.bytes.len() as u64);
        Ok(())
    }
}

/// A part of a tape: by place, by time, or both.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapeRange {
    /// The first place.
    pub from: Option<TapeRangeBound>,
    /// The last place.
    pub to: Option<TapeRangeBound>,
    /// Times of the events, wherever these are.
    pub times: Option<TimeRange>,
}

impl TapeRange {
    /// Goes to the first place. Returns whether retention has left all of the part.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn seek(&self, follower: &mut TapeFollower, names: &mut DefinitionTable) -> Result<bool, Error> {
        let is_start = |from: &TapeRangeBound| match from {
            TapeRangeBound::Ordinal(seq) => *seq == 0,
            TapeRangeBound::Position(position) => position.0 == 0,
        };
        let Some(start_bound) = self.from.filter(|from| !is_start(from)) else { return Ok(true) };
        match follower.seek(start_bound, names) {
            Ok(()) => Ok(true),
            Err(Error::Retained { .. } | Error::RetainedEvent { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns whether the part ends before this place.
    #[inline]
    pub fn is_over(&self, address: EventAddress) -> bool {
        self.to.is_some_and(|to| to.is_before_event(address))
    }

    /// Returns whether this place is at the first place or after it.
    #[inline]
    pub fn is_reached_by(&self, address: EventAddress) -> bool {
        self.from.is_none_or(|from| from.is_reached_by(address))
    }

    /// Returns whether the event or message of this frame is in the part. A message has no time.
    #[inline]
    pub fn contains_event(&self, address: EventAddress, frame: &Frame<'_>) -> bool {
        let is_of_times = |times: TimeRange| {
            frame.message().is_none()
                && Event::new(frame.bytes).is_none_or(|event| times.contains(event.ts_event()))
        };
        self.is_reached_by(address) && self.times.is_none_or(is_of_times)
    }
}

#[cold]
fn rewound_outcome(error: Error, rewind_count: &mut u64) -> Result<FollowOutcome<'static>, Error> {
    let Error::Rewound { from, to } = error else { return Err(error) };
    *rewind_count += 1;
    Ok(FollowOutcome::Rewound { from, to })
}

/// The time that a follower waits before the caller may look whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);
