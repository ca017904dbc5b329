//! Replay of the books of a tape: at any event, position or time, forward and back, with the changes since the last
//! call.
//!
//! ```text
//!   tape   ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■
//!          └─ step ─▶ │     └ seek: forward from here, or again from the start where it lies before
//!                     └ books, moment, changed listings
//! ```
//!
//! A seek to a point gives the books as if the tape ended there. The replay begins at the oldest frame that retention
//! has left. If this is after the start of the tape, the books lack the removed events and are stale. They are also
//! stale after skipped damage. A seek begins at the last valid checkpoint before the point.

mod checkpoint;

use crate::Error;
use checkpoint::{CheckpointFile, CheckpointHeader, frames_crc, state_hash};
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use unitape_book::{BookChange, BookOptions, ListingId, TapeBooks};
use unitape_model::{DefinitionTable, Event, Position, flags};
use unitape_query::address::{EventAddress, TapeStopPoint};
use unitape_query::follow::{FollowOutcome, TapeFlaws, TapeFollower};
use unitape_tape::{LostDefinitions, ReadOptions, Reader, StartPosition};

/// The point that the books of a replay show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookMoment {
    /// Ordinal of the last event applied, counted from 1; 0 before the first.
    pub seq: u64,
    /// Its position on the tape.
    pub position: Position,
    /// Its time, nanoseconds since 1970.
    pub ts: i64,
}

/// A step of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReplayOutcome {
    /// The next event was applied.
    Event,
    /// The next event lies after the point. The books show the point.
    Reached,
    /// All that is on the tape was applied.
    AtEnd,
    /// The tape was cut back. The replay begins again at the oldest frame, without books.
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut.
        to: Position,
    },
}

/// Whether a tape has a given point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointPresence {
    /// The tape has the point, and the books show it.
    There,
    /// Retention has removed it.
    Removed,
    /// The tape does not reach the point yet. The books show the end of the tape.
    BeyondEnd,
}

/// A checkpoint of books, compared with a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointStatus {
    /// The replay has the same books there.
    Good,
    /// It is not used: of another tape, version or options, or the tape was cut or has lost its oldest part since.
    Outdated,
    /// It does not match its checksums, or the replay has other books there.
    Wrong,
}

/// The checkpoints that a replay has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointTotals {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A replay of the books of a tape.
///
/// ```no_run
/// use unitape_book::BookOptions;
/// use unitape_run::{address::TapeStopPoint, replay::BookReplay};
///
/// let dir = std::path::Path::new("tape");
/// let mut replay = BookReplay::open(dir, Default::default(), BookOptions::default())?;
/// _ = replay.seek(TapeStopPoint::parse("2026-03-02T09:30")?)?;
/// for listing in replay.books().books.listings() {
///     println!("{:?}", replay.books().books.listing(listing).bbo());
/// }
/// # Ok::<(), unitape_run::Error>(())
/// ```
pub struct BookReplay {
    tape_dir: PathBuf,
    read_options: ReadOptions,
    /// Write a checkpoint whenever the number of events is a multiple of this.
    checkpoint_interval: Option<NonZeroU64>,
    checkpoint_totals: CheckpointTotals,
    follower: TapeFollower,
    options: BookOptions,
    tape: TapeBooks,
    book_moment: BookMoment,
    /// The greatest time of an event that was applied and whose time the merge believed.
    latest_time: Option<i64>,
    /// The oldest event and frame.
    oldest_address: EventAddress,
    /// The last frame applied, bookkeeping included.
    applied: Option<Position>,
    /// The position after it.
    applied_end: Position,
    /// The damaged parts that the books know of.
    damaged_count: u64,
    /// The changes since the last call, or `None` before the first call, so that a replay without calls pays nothing.
    changed_listings: Option<BTreeSet<ListingId>>,
}

impl BookReplay {
    /// Begins before the oldest event of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape or its log of definitions cannot be read.
    pub fn open(dir: &Path, read: ReadOptions, options: BookOptions) -> Result<Self, Error> {
        let (follower, names) = TapeFollower::open(dir, read)?;
        let oldest_address = oldest(&follower);
        let tape = books_from(oldest_address, &options, names);
        let damaged_count = follower.reader().damaged().count;
        Ok(Self {
            tape_dir: dir.to_owned(),
            read_options: read,
            checkpoint_interval: None,
            checkpoint_totals: CheckpointTotals::default(),
            follower,
            options,
            tape,
            book_moment: BookMoment::default(),
            latest_time: None,
            oldest_address,
            applied: None,
            applied_end: oldest_address.position,
            damaged_count,
            changed_listings: None,
        })
    }

    /// Writes a checkpoint of the books beside the tape whenever the number of events is a multiple of `events`, from
    /// here on. Frames that are not durable yet or were not compared with their checksums get no checkpoint.
    /// Checkpoints that do not match their own checksums are removed.
    pub fn write_checkpoints(&mut self, events: NonZeroU64) {
        CheckpointFile::remove_damaged(&self.tape_dir);
        self.checkpoint_interval = Some(events);
    }

    /// Returns the totals of the checkpoints written so far.
    pub fn checkpoints_written(&self) -> CheckpointTotals {
        self.checkpoint_totals
    }

    /// Applies the next event, and the bookkeeping before it.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn step(&mut self) -> Result<ReplayOutcome, Error> {
        self.step_within(None)
    }

    /// Applies the next event unless it lies after `point`.
    ///
    /// # Errors
    /// Fails as [`BookReplay::step`] does.
    pub fn step_to(&mut self, point: TapeStopPoint) -> Result<ReplayOutcome, Error> {
        self.step_within(Some(point))
    }

    /// Goes to a point: forward, or where the books are beyond it, again from the start. Returns whether the tape has it;
    /// a tape that is cut back meanwhile is read again.
    ///
    /// # Errors
    /// Fails as [`BookReplay::step`] does.
    pub fn seek(&mut self, point: TapeStopPoint) -> Result<PointPresence, Error> {
        let is_beyond = self.is_beyond(point);
        if !self.begin_at_checkpoint(point, is_beyond) && is_beyond {
            let definitions = self.follower.reopen()?;
            self.begin_again(definitions);
        }
        loop {
            match self.step_within(Some(point))? {
                ReplayOutcome::Event | ReplayOutcome::Rewound { .. } => {}
                ReplayOutcome::Reached => return Ok(self.presence(point, true)),
                ReplayOutcome::AtEnd => return Ok(self.presence(point, false)),
            }
        }
    }

    /// Returns whether the tape has `point`. The replay must have reached the point or the end.
    pub fn presence(&self, point: TapeStopPoint, is_reached: bool) -> PointPresence {
        let (first, end) = (self.oldest_address, self.end());
        let is_removed = match point {
            TapeStopPoint::Ordinal(seq) => first.seq > 1 && seq < first.seq,
            TapeStopPoint::Position(position) => position < first.position,
            TapeStopPoint::Time(_) => is_reached && first.seq > 1 && self.book_moment.seq == 0,
        };
        let is_beyond = match point {
            TapeStopPoint::Ordinal(seq) => seq > end.seq,
            TapeStopPoint::Position(position) => position >= end.position,
            TapeStopPoint::Time(_) => true,
        };
        match (is_removed, !is_reached && is_beyond) {
            (true, _) => PointPresence::Removed,
            (false, true) => PointPresence::BeyondEnd,
            (false, false) => PointPresence::There,
        }
    }

    /// Waits at the end of the tape until there is more, or for a fifth of a second.
    ///
    /// # Errors
    /// Fails as [`BookReplay::step`] does.
    pub fn wait(&mut self) -> Result<ReplayOutcome, Error> {
        match self.follower.wait()? {
            FollowOutcome::Rewound { from, to } => self.rewind_replay(from, to),
            _ => Ok(ReplayOutcome::AtEnd),
        }
    }

    /// Returns the books and the names of the tape.
    pub fn books(&self) -> &TapeBooks {
        &self.tape
    }

    /// Returns the point that the books show.
    pub fn moment(&self) -> BookMoment {
        self.book_moment
    }

    /// Returns the oldest event that the tape had when it was opened, and the event's first frame.
    pub fn first(&self) -> EventAddress {
        self.oldest_address
    }

    /// Returns the last event that was read, and the position after it.
    pub fn end(&self) -> EventAddress {
        EventAddress { seq: self.follower.reader().ordinal(), position: self.follower.reader().position() }
    }

    /// Returns the changes of the last event.
    pub fn changes(&self) -> &[BookChange] {
        self.tape.books.changes()
    }

    /// Returns the listings that changed since the last call. Returns all listings at the first call and after the
    /// replay went back.
    pub fn take_changed(&mut self) -> BTreeSet<ListingId> {
        self.changed_listings.replace(BTreeSet::new()).unwrap_or_else(|| self.tape.books.listings().collect())
    }

    /// Counts how often the tape was cut back while it was read.
    pub fn rewind_count(&self) -> u64 {
        self.follower.rewind_count()
    }

    /// Returns the directory of the tape.
    pub fn dir(&self) -> &Path {
        &self.tape_dir
    }

    /// Returns the flaws of the part of the tape that was read.
    pub fn flaws(&self) -> &TapeFlaws {
        self.follower.flaws()
    }

    /// Returns the reader, which knows the damage that it skipped.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    fn step_within(&mut self, point: Option<TapeStopPoint>) -> Result<ReplayOutcome, Error> {
        loop {
            let (ordinal, frame) = match self.follower.next_step()? {
                FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
                FollowOutcome::AtEnd => {
                    self.note_damage();
                    return Ok(ReplayOutcome::AtEnd);
                }
                FollowOutcome::Rewound { from, to } => return self.rewind_replay(from, to),
            };
            let (position, header) = (frame.position, frame.header);
            let address = EventAddress { seq: ordinal + 1, position };
            let event_end = position.plus(frame.bytes.len() as u64);
            if self.read_options.skip_damage && position != self.applied_end {
                // The books must know of damage before they get the frame after it.
                self.applied_end = position;
                self.follower.step_back(position)?;
                self.note_damage();
                continue;
            }
            if point.is_some_and(|point| point.is_before(address, &frame)) {
                self.follower.step_back(position)?;
                return Ok(ReplayOutcome::Reached);
            }
            if !header.is_meta() {
                let ts = Event::new(frame.bytes).map(|event| event.ts_event().0);
                self.book_moment =
                    BookMoment { seq: address.seq, position, ts: ts.unwrap_or(self.book_moment.ts) };
                if header.flags() & flags::CLOCK_AHEAD == 0 {
                    self.latest_time = self.latest_time.max(ts);
                }
            }
            (self.applied, self.applied_end) = (Some(position), event_end);
            match self.tape.on_frame(position, frame.bytes) {
                Ok(changes) => {
                    if let Some(listing_changes) = &mut self.changed_listings {
                        listing_changes.extend(changes.iter().map(|change| change.listing));
                    }
                }
                Err(unitape_book::Error::Frame { message, .. }) => {
                    self.follower.refuse_frame(position, &message)?;
                    continue;
                }
                Err(e) => return Err(e.into()),
            }
            if !header.is_meta() {
                if self.checkpoint_interval.is_some_and(|every| address.seq.is_multiple_of(every.get())) {
                    self.write_checkpoint()?;
                }
                return Ok(ReplayOutcome::Event);
            }
        }
    }

    /// Compares the checkpoints of the tape in `dir` with a replay from its oldest frame.
    ///
    /// # Errors
    /// Fails as [`BookReplay::step`] does.
    pub fn verify_checkpoints(
        dir: &Path,
        read: ReadOptions,
        options: BookOptions,
    ) -> Result<Vec<(PathBuf, CheckpointStatus)>, Error> {
        let mut replay = Self::open(dir, read, options)?;
        let mut comparisons = Vec::new();
        // The first one first, as the replay meets them.
        for file in CheckpointFile::list(dir).into_iter().rev() {
            let status = match (file.header, file.state()) {
                (Some(header), Some(state)) => replay.compare_state(&header, &state)?,
                _ => CheckpointStatus::Wrong,
            };
            comparisons.push((file.path, status));
        }
        Ok(comparisons)
    }

    fn compare_state(&mut self, header: &CheckpointHeader, state: &[u8]) -> Result<CheckpointStatus, Error> {
        let is_usable = header.start == self.oldest_address
            && header.open_tape(&self.tape_dir, self.read_options).is_some();
        if !is_usable || self.decode(header, state).is_none() {
            return Ok(CheckpointStatus::Outdated);
        }
        while self.book_moment.seq < header.end.seq {
            match self.step()? {
                ReplayOutcome::Event | ReplayOutcome::Rewound { .. } => {}
                ReplayOutcome::Reached | ReplayOutcome::AtEnd => return Ok(CheckpointStatus::Outdated),
            }
        }
        let mut replayed_state = Vec::new();
        self.tape.encode_state(&mut replayed_state);
        let is_same = replayed_state == state
            && (header.latest, header.ts, header.end) == (self.latest_time, self.book_moment.ts, self.end())
            && header.last == self.book_moment.position;
        Ok(if is_same { CheckpointStatus::Good } else { CheckpointStatus::Wrong })
    }

    /// Writes a checkpoint after the last event, if it would be believed after a power loss, too.
    fn write_checkpoint(&mut self) -> Result<(), Error> {
        let (end, moment, epoch) = (self.end(), self.book_moment, self.reader().point().epoch);
        let mut reader = Reader::open(&self.tape_dir, StartPosition::Oldest)?;
        let is_durable = reader.durable().is_ok_and(|durable| durable >= end.position);
        let is_checked = self.read_options.verify
            && !self.read_options.skip_damage
            && self.reader().unverified().is_empty();
        if !is_durable || !is_checked {
            return Ok(());
        }
        let Some(frames_crc) = frames_crc(&self.tape_dir, end.position, self.read_options) else {
            return Ok(());
        };
        let mut state = Vec::new();
        self.tape.encode_state(&mut state);
        let header = CheckpointHeader {
            tape: reader.id(),
            epoch,
            start: self.oldest_address,
            end,
            last: moment.position,
            frames_crc,
            ts: moment.ts,
            latest: self.latest_time,
            state_bytes: state.len() as u64,
            state_hash: state_hash(&state),
        };
        self.checkpoint_totals.bytes += CheckpointFile::write_checkpoint(&self.tape_dir, &header, &state)?;
        self.checkpoint_totals.count += 1;
        Ok(())
    }

    /// Goes to the last valid checkpoint before `point`. Unless the books are beyond the point, the checkpoint must be
    /// further than the books. Returns false if there is no such checkpoint.
    fn begin_at_checkpoint(&mut self, point: TapeStopPoint, is_beyond: bool) -> bool {
        if !self.read_options.verify || self.read_options.skip_damage {
            return false;
        }
        let current_seq = if is_beyond { 0 } else { self.book_moment.seq };
        CheckpointFile::list(&self.tape_dir).iter().any(|file| {
            let header = file.header.filter(|header| {
                header.end.seq > current_seq && header.start == self.oldest_address && header.is_within(point)
            });
            header.is_some_and(|header| self.adopt_checkpoint(file, &header).is_some())
        })
    }

    fn adopt_checkpoint(&mut self, file: &CheckpointFile, header: &CheckpointHeader) -> Option<()> {
        let reader = header.open_tape(&self.tape_dir, self.read_options)?;
        let tape = self.decode(header, &file.state()?)?;
        self.follower.replace_reader(reader);
        self.tape = tape;
        self.book_moment = BookMoment { seq: header.end.seq, position: header.last, ts: header.ts };
        (self.latest_time, self.applied, self.changed_listings) = (header.latest, Some(header.last), None);
        self.applied_end = header.end.position;
        Some(())
    }

    /// Decodes the books of a checkpoint, with the names that the dictionary log has before the checkpoint.
    fn decode(&self, header: &CheckpointHeader, state: &[u8]) -> Option<TapeBooks> {
        let mut definitions = DefinitionTable::default();
        let mut log = LostDefinitions::new(&self.tape_dir, false);
        log.learn_before(header.end.position, |_, frame| definitions.admit_frame(frame).map(drop)).ok()?;
        TapeBooks::decode_state(self.options.clone(), definitions, state)
    }

    /// Returns whether an event after `point` was applied.
    fn is_beyond(&self, point: TapeStopPoint) -> bool {
        match point {
            TapeStopPoint::Ordinal(seq) => self.book_moment.seq > seq,
            TapeStopPoint::Position(position) => self.applied.is_some_and(|applied| applied > position),
            TapeStopPoint::Time(time) => self.latest_time.is_some_and(|latest| latest > time),
        }
    }

    fn rewind_replay(&mut self, from: Position, to: Position) -> Result<ReplayOutcome, Error> {
        let definitions = self.follower.reopen()?;
        self.begin_again(definitions);
        Ok(ReplayOutcome::Rewound { from, to })
    }

    /// Begins at the oldest frame, where the follower is: the books of before hold events that come again, or that the
    /// tape no longer has.
    fn begin_again(&mut self, names: DefinitionTable) {
        self.changed_listings = None;
        self.oldest_address = oldest(&self.follower);
        self.tape = books_from(self.oldest_address, &self.options, names);
        (self.book_moment, self.latest_time, self.applied) = (BookMoment::default(), None, None);
        self.applied_end = self.oldest_address.position;
        self.damaged_count = self.reader().damaged().count;
    }

    /// Reports the damage that the reader has skipped since the last call to the books.
    fn note_damage(&mut self) {
        let count = self.follower.reader().damaged().count;
        if count == self.damaged_count {
            return;
        }
        self.damaged_count = count;
        let changes = self.tape.lose_part();
        if let Some(listing_changes) = &mut self.changed_listings {
            listing_changes.extend(changes.iter().map(|change| change.listing));
        }
    }
}

/// Returns the books at the oldest event, without content. They are incomplete if retention has removed earlier events.
fn books_from(first: EventAddress, options: &BookOptions, names: DefinitionTable) -> TapeBooks {
    let mut tape = TapeBooks::with_names(options.clone(), names);
    if first.position > Position(0) {
        tape.lose_part();
    }
    tape
}

/// Returns the oldest event of a follower that has not moved, and the event's first frame.
pub(crate) fn oldest(follower: &TapeFollower) -> EventAddress {
    EventAddress { seq: follower.reader().ordinal() + 1, position: follower.reader().position() }
}
