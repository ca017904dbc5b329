//! Following a tape: a mapping of its own, a position of its own, no word to the writer.

use std::path::Path;
use std::time::Duration;

use unitape_model::{Header, LINE, Message, Position};
use unitape_ring::Wait;

use crate::disk::layout::segment_path;
use crate::disk::live::Live;
use crate::disk::map::{Seen, Segment};
use crate::disk::run::State;
use crate::error::{Error, Result};
use crate::read::lag::Skipped;
use crate::read::pace::Pace;
use crate::read::subscribe::Patience;
use crate::record::durable::{Durability, load_durable};

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the oldest frame that retention has left.
    Oldest,
    /// Behind the last frame committed so far.
    End,
    /// At the frame that starts at, or right behind the one that ends at, this position.
    At(Position),
}

/// A committed frame, in place.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Where it stands.
    pub position: Position,
    /// Its header word.
    pub header: Header,
    /// All of it, header included.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The message in the frame, if it holds one.
    #[inline]
    pub fn message(&self) -> Option<Message<'a>> {
        Message::of(self.bytes)
    }
}

/// Committed frames one after the other, in place; take them apart with [`unitape_model::frames`].
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where the first one stands.
    pub position: Position,
    /// Ordinal of the first non-META frame in it.
    pub ordinal: u64,
    /// The frames.
    pub bytes: &'a [u8],
}

/// A reader of a tape, in the writer's process or in another; never slows the writer.
#[derive(Debug)]
pub struct Reader {
    pub(crate) live: Live,
    segment: Option<Segment>,
    aside: Option<Segment>,
    /// Data offset in `segment`.
    at: u64,
    position: u64,
    /// Non-META frames before `position`.
    ordinal: u64,
    idle: u32,
    durability: Option<Durability>,
    /// The page on which the tape's end and what is about to go are told.
    pub(crate) page: Option<State>,
    /// End and ordinal of a tape that is closed.
    pub(crate) ended: Option<(u64, u64)>,
    pub(crate) skipped: Skipped,
    pace: Pace,
}

impl Reader {
    /// Opens the tape in `dir`.
    ///
    /// # Errors
    /// Not a tape, a foreign version, damage on the way to `start`, or a position that is gone or no frame's.
    pub fn open(dir: &Path, start: Start) -> Result<Self> {
        let mut reader = Self::nowhere(Live::open(dir)?);
        match start {
            Start::Oldest => {
                let first = reader.live.indices()?.first().copied().unwrap_or(0);
                reader.begin_at(first)?;
            }
            Start::End => {
                let known = load_durable(&reader.live.paths)?.position.max(State::peek(&reader.live.paths));
                reader.walk_to_segment_of(known)?;
                while reader.next_run(1 << 20)?.is_some() {}
            }
            Start::At(position) => reader.seek(position)?,
        }
        Ok(reader)
    }

    /// Opens the tape at the oldest position there is, for who was at `position`, which is gone, with `ordinal`
    /// events before it if that is known; [`Reader::skipped`] then tells what was lost.
    pub(crate) fn behind_removal(dir: &Path, position: Position, ordinal: Option<u64>) -> Result<Self> {
        let mut reader = Self::nowhere(Live::open(dir)?);
        (reader.position, reader.ordinal) = (position.0, ordinal.unwrap_or(0));
        reader.skip_to_oldest()?;
        if ordinal.is_none() {
            reader.skipped.events = 0;
        }
        Ok(reader)
    }

    fn nowhere(live: Live) -> Self {
        Self {
            live,
            segment: None,
            aside: None,
            at: 0,
            position: 0,
            ordinal: 0,
            idle: 0,
            pace: Pace::default(),
            durability: None,
            page: None,
            ended: None,
            skipped: Skipped::default(),
        }
    }

    /// Goes to the frame at `position` (or the end of the one before it).
    ///
    /// # Errors
    /// A position that retention has removed, or at which no frame starts.
    pub fn seek(&mut self, position: Position) -> Result<()> {
        let oldest = self.live.indices()?.first().copied().unwrap_or(0) * self.live.meta.segment_bytes;
        if position.0 < oldest {
            return Err(Error::Retained { position, oldest: Position(oldest) });
        }
        self.walk_to_segment_of(position.0)?;
        while self.position < position.0 {
            if self.advance()?.is_none() {
                return Err(Error::NoFrame(position));
            }
        }
        if self.position == position.0 { Ok(()) } else { Err(Error::NoFrame(position)) }
    }

    /// The next frame, or none if nothing more is committed yet.
    ///
    /// # Errors
    /// Damage, or a segment that retention has removed before it was read.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends the mapping, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let Some((at, header)) = self.advance()? else { return Ok(None) };
        let segment = self.segment.as_ref().expect("a segment after a frame");
        // SAFETY: `advance` saw the frame committed at `at`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(at, header.len_bytes()) };
        Ok(Some(Frame { position: Position(segment.base + at), header, bytes }))
    }

    /// The committed frames that lie together, up to about `bytes_max` (at least one frame); none if there is
    /// nothing more yet.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_run(&mut self, bytes_max: usize) -> Result<Option<Run<'_>>> {
        let ordinal = self.ordinal;
        let Some((from, header)) = self.advance()? else { return Ok(None) };
        let mut length = header.len_bytes();
        let segment = self.segment.as_ref().expect("a segment after a frame");
        while length < bytes_max && self.at < segment.size {
            let Seen::Frame(header) = segment.look(self.at) else { break };
            segment.prefetch(self.at + header.len_bytes() as u64);
            self.at += header.len_bytes() as u64;
            self.ordinal += u64::from(!header.is_meta());
            length += header.len_bytes();
        }
        self.position = segment.base + self.at;
        // SAFETY: `advance` and `look` saw every frame of the range committed.
        let bytes = unsafe { segment.bytes(from, length) };
        Ok(Some(Run { position: Position(segment.base + from), ordinal, bytes }))
    }

    /// Waits until a frame is there: spins, yields, then parks for at most 50 µs at a time. False when
    /// `timeout` has passed without one.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.wait_as(Wait::Balanced, timeout)
    }

    /// The same in another way.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn wait_as(&mut self, wait: Wait, timeout: Duration) -> Result<bool> {
        // Before the next look: what would be found now lies at the writer's heels.
        if self.idle > 0 && wait != Wait::Spin {
            (0..self.pace.pause(self.ordinal)).for_each(|_| std::hint::spin_loop());
        }
        if self.ready()? {
            return Ok(true);
        }
        self.look_for_page();
        let mut patience = Patience::new(wait, timeout);
        loop {
            if self.ready()? {
                return Ok(true);
            }
            if !patience.wait() {
                return Ok(false);
            }
            // Who sleeps looks rarely: the next look is the one that asks whether the segment has moved.
            if patience.parks() % PARKS_LOOK == PARKS_LOOK - 1 {
                self.idle |= IDLE_LOOK - 1;
            }
        }
    }

    /// The frame at `position`, without moving the reader.
    ///
    /// # Errors
    /// As [`Reader::seek`]; the position must be one that the tape gave out.
    pub fn at(&mut self, position: Position) -> Result<Frame<'_>> {
        let size = self.live.meta.segment_bytes;
        let (index, at) = (position.0 / size, position.0 % size);
        if !at.is_multiple_of(LINE as u64) {
            return Err(Error::NoFrame(position));
        }
        if self.aside.as_ref().is_none_or(|s| s.index != index || !s.is_linked()) {
            self.aside = self.live.segment(index)?.map(|(segment, _)| segment);
        }
        let Some(segment) = &self.aside else {
            self.live.explain_missing(index)?;
            return Err(Error::NoFrame(position));
        };
        let Seen::Frame(header) = segment.look(at) else { return Err(Error::NoFrame(position)) };
        // SAFETY: `look` saw the frame committed at `at`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(at, header.len_bytes()) };
        Ok(Frame { position, header, bytes })
    }

    /// Position behind the last frame read.
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Non-META frames before [`Reader::position`]: the ordinal of the next event.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Everything before this position survives power loss.
    ///
    /// # Errors
    /// Damage of the file that says so.
    pub fn durable(&mut self) -> Result<Position> {
        self.durability()?.position()
    }

    /// Asks for everything before `position` to be made durable, and waits for it; for a subscriber that must not
    /// act on what a power loss could take back.
    ///
    /// # Errors
    /// As [`Durability::wait`].
    pub fn wait_durable(&mut self, position: Position, timeout: Duration) -> Result<()> {
        let known = self.position();
        self.durability()?.wait(position, known, timeout)
    }

    /// The tape's durability beyond the position: what failed, and how often.
    ///
    /// # Errors
    /// As [`Durability::open`].
    pub fn durability(&mut self) -> Result<&mut Durability> {
        if self.durability.is_none() {
            self.durability = Some(Durability::open(&self.live.paths.dir)?);
        }
        Ok(self.durability.as_mut().expect("made above"))
    }

    /// Leaves a segment in which [`Error::Damage`] was met and goes to the start of the next one that can be
    /// opened; gives the position there, or none if there is none, and the reader stays. What is between is lost
    /// to this reader; the first unit behind may be one whose start is gone.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn skip_damage(&mut self) -> Result<Option<Position>> {
        let here = self.position / self.live.meta.segment_bytes;
        let before = (self.at, self.position, self.ordinal);
        let held = self.segment.take();
        for index in self.live.indices()?.into_iter().filter(|&index| index > here) {
            match self.begin_at(index) {
                Ok(true) => return Ok(Some(self.position())),
                Ok(false) | Err(Error::Damage { .. } | Error::ForeignVersion { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        (self.at, self.position, self.ordinal) = before;
        self.segment = held;
        Ok(None)
    }

    /// Identity of the tape.
    pub fn id(&self) -> crate::TapeId {
        self.live.meta.id
    }

    /// Whether a frame is there to be read.
    fn ready(&mut self) -> Result<bool> {
        let ordinal = self.ordinal;
        let found = self.advance()?;
        if let Some((at, _)) = found {
            let base = self.segment.as_ref().expect("a segment after a frame").base;
            // Step back onto the frame; a pad before it stays behind us.
            (self.position, self.at, self.ordinal) = (base + at, at, ordinal);
        }
        Ok(found.is_some())
    }

    /// Steps over the next frame; gives its data offset and header.
    #[inline(always)] // the loop of whoever waits for a frame: what it takes to notice one is in every round trip
    fn advance(&mut self) -> Result<Option<(u64, Header)>> {
        if let Some(segment) = &self.segment
            && self.at < segment.size
        {
            match segment.look(self.at) {
                Seen::Frame(header) => {
                    let (at, length) = (self.at, header.len_bytes() as u64);
                    segment.prefetch(at + length);
                    self.at += length;
                    self.position += length;
                    self.ordinal += u64::from(!header.is_meta());
                    self.idle = 0;
                    return Ok(Some((at, header)));
                }
                Seen::Nothing => {
                    // The second line of the frame to come, so that it comes over together with the first: measured
                    // 180 ns instead of 230 for a round trip of two lines each.
                    segment.prefetch(self.at + LINE as u64);
                    self.idle = self.idle.wrapping_add(1);
                    if !self.idle.is_multiple_of(IDLE_LOOK) {
                        return Ok(None);
                    }
                }
                Seen::Pad | Seen::Damage(_) => {}
            }
        }
        self.advance_slowly()
    }

    /// The same at the end of a segment, without one, and when it is time to ask whether it has moved.
    #[cold]
    fn advance_slowly(&mut self) -> Result<Option<(u64, Header)>> {
        loop {
            let Some(segment) = &self.segment else {
                if !self.enter()? {
                    return Ok(None);
                }
                continue;
            };
            if self.at == segment.size {
                self.leave();
                continue;
            }
            match segment.look(self.at) {
                Seen::Frame(_) => return self.advance(),
                Seen::Nothing => match self.live.moved(segment)? {
                    Some(other) => self.segment = Some(other),
                    None => return Ok(None),
                },
                Seen::Pad => self.leave(),
                Seen::Damage(header) => {
                    return Err(Error::damage(
                        &segment.path,
                        crate::disk::layout::HEADER_PAGE + self.at,
                        format!("no frame can start with {header:?}"),
                    ));
                }
            }
        }
    }

    /// Goes to the start of the next segment.
    #[cold]
    fn leave(&mut self) {
        let segment = self.segment.take().expect("a segment to leave");
        self.position = segment.end();
        self.live.leave(segment);
        self.at = 0;
        self.idle = 0;
    }

    /// Opens the segment of `position`; false if it is not there yet.
    #[cold]
    fn enter(&mut self) -> Result<bool> {
        // Between segments a reader asks the file system; not at every spin.
        self.idle = self.idle.wrapping_add(1);
        if self.idle > 64 && !self.idle.is_multiple_of(64) {
            return Ok(false);
        }
        let index = self.position / self.live.meta.segment_bytes;
        match self.live.segment(index)? {
            Some((mut segment, _)) => {
                self.at = self.position - segment.base;
                segment.enter_pages(self.at);
                self.segment = Some(segment);
                self.idle = 0;
                self.look_for_page();
                Ok(true)
            }
            None => {
                self.live.explain_missing(index)?;
                self.miss(index)?;
                Ok(false)
            }
        }
    }

    /// Makes it an error that segment `index` is not there although the tape reaches into it: somebody has removed
    /// it, and waiting for it would be for ever.
    fn miss(&mut self, index: u64) -> Result<()> {
        self.look_for_page();
        let end = || match &self.page {
            Some(page) => Ok(page.end().0),
            None => Ok(load_durable(&self.live.paths)?.position),
        };
        if !self.live.is_lost(index, end)? {
            return Ok(());
        }
        let path = segment_path(&self.live.paths.segments(), index);
        Err(Error::damage(&path, 0, "the segment is missing, the tape goes on in it"))
    }

    /// Stands at the start of segment `index`, or at the position where it will be.
    pub(crate) fn begin_at(&mut self, index: u64) -> Result<bool> {
        self.position = index.saturating_mul(self.live.meta.segment_bytes);
        self.at = 0;
        self.idle = 0;
        let found = self.live.segment(index)?;
        let there = found.is_some();
        self.look_for_page();
        self.segment = found.map(|(mut segment, first_ordinal)| {
            self.ordinal = first_ordinal;
            segment.enter_pages(0);
            segment
        });
        Ok(there)
    }

    /// Stands at the start of the segment that holds `position`, or of the one before it if that is not there.
    fn walk_to_segment_of(&mut self, position: u64) -> Result<()> {
        let index = position / self.live.meta.segment_bytes;
        if !self.begin_at(index)? {
            self.live.explain_missing(index)?;
            if index > 0 && !self.begin_at(index - 1)? {
                return Err(Error::NoFrame(Position(position)));
            }
        }
        Ok(())
    }
}

/// Empty looks between two questions to the file system whether the segment has moved, a power of two.
const IDLE_LOOK: u32 = 4096;

/// Sleeps between two such questions: some milliseconds.
const PARKS_LOOK: u64 = 64;
