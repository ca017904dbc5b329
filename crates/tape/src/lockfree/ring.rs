//! The ring: frames on memory that is used again, and readers that notice.
//!
//! ```text
//!   positions   intent                                      end        intent + capacity
//!      ─ ─ ─ ─ ─ ─ ┼──────────────────────────────────────────┼ ─ ─ ─ ─ ─ ─ ─ ┼
//!      overwritten │  whole units, as they were written       │0  free to be  │
//!      or about to │                                          │   written     │
//!      be          ▲ a multiple of the step: a block          ▲ the word here is zero
//! ```
//!
//! A position's place is `position % capacity`, so writing after the end overwrites the bytes a capacity before.
//!
//! Invariant (intent first): before the first byte of a block is overwritten, the intent is stored beyond that
//! block, and a Release fence separates the two. A reader copies with relaxed loads and looks at the intent after an
//! Acquire fence. If any of its loads found a byte of a later lap, the two fences meet and it finds the intent
//! beyond its position as well, and throws the copy away. So nothing is delivered that is not exactly one frame
//! as it was written. The same holds for marks, which are used again after two laps.
//!
//! Invariant (zero behind): when a unit is committed, the word after it is zero already, so that a reader which
//! continues there finds zero until the next commit, and never the payload of an old lap, whatever it looks like.
//! A reader reaches a position from a commit, a mark or the end, all of which come after that zero.
//!
//! Invariant (one word commits): a unit lies together; all of it but its first header word is in place before that
//! word is stored with Release. Where it does not fit before the end of the memory, a pad is that word, and the unit
//! is at the start. A writer that dies leaves a zero there.
//!
//! Invariant (marks): block *b*'s mark is the start of the first unit that starts at or after *b* × step, and the
//! number of events before it; written after that unit's commit, the position last. The intent is always the start
//! of a block that has its mark, because a unit is at most a quarter of the memory: so a reader that was overrun
//! continues at the oldest whole unit and knows how many events it lost.
//!
//! All payload goes through atomic words: a reader may look while the writer writes, and that must not be a race
//! in the language's memory model.

use std::sync::atomic::Ordering;

use unitape_model::{FrameHeader, LINE, Position, frame::KIND_PAD};

use super::lines::{HeaderWordState, judge};
use super::{SharedMemory, flaw};

/// The places of the words in the control page; lines that the two sides write or read apart are 128 bytes apart.
pub mod place {
    /// Everything before this position is overwritten or about to be. Written by the writer once a block.
    pub const INTENT: u64 = 128;
    /// Position after the last unit. Written by the writer with every unit, looked at to know the lag.
    pub const END: u64 = 256;
    /// First of the marks: position and events before it, 16 bytes each.
    pub const MARKS: u64 = 512;
    /// Steps in a capacity.
    pub const STEPS: u64 = 16;
}

/// Sizes of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingGeometry {
    /// Byte offset of position 0 in the memory.
    pub data_at: u64,
    /// Bytes of frames, a power of two.
    pub capacity: u64,
    /// Bytes of a block, a power of two.
    pub step: u64,
    /// Bytes of the greatest unit.
    pub unit_max: u64,
    /// Marks: two laps of blocks, so that none is used again while its block may still be looked for.
    pub marks: u64,
}

/// No position of a ring is greater, so that sums cannot overflow.
const PLACE_MAX: u64 = 1 << 62;

impl RingGeometry {
    /// The geometry of a ring of `capacity` bytes whose data begins at byte `data_at`.
    pub const fn new(data_at: u64, capacity: u64) -> Self {
        let step = capacity / place::STEPS;
        Self { data_at, capacity, step, unit_max: capacity / 4, marks: 2 * place::STEPS }
    }

    #[inline]
    fn word(&self, position: Position) -> u64 {
        self.data_at + (position.0 & (self.capacity - 1))
    }

    /// Bytes from `position` up to the end of the memory.
    #[inline]
    fn room(&self, position: Position) -> u64 {
        self.capacity - (position.0 & (self.capacity - 1))
    }

    fn mark(&self, block: u64) -> u64 {
        place::MARKS + block % self.marks * 16
    }
}

/// A unit's start and the number of events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitMark {
    /// Where the unit starts.
    pub position: Position,
    /// Non-META frames before it.
    pub ordinal: u64,
}

/// The writing side.
#[derive(Debug)]
pub struct RingWriter<M, const FLAW: u8 = { flaw::NONE }> {
    memory: M,
    shape: RingGeometry,
    end: Position,
    ordinal: u64,
    /// As last announced.
    intent: u64,
    /// First block that has no mark yet.
    unmarked: u64,
}

impl<M: SharedMemory, const FLAW: u8> RingWriter<M, FLAW> {
    /// Begins a ring at position `at`, a multiple of the capacity; nobody reads it yet.
    pub fn begin(memory: M, shape: RingGeometry, at: UnitMark) -> Self {
        assert!(
            at.position.0.is_multiple_of(shape.capacity) && shape.unit_max + shape.step <= shape.capacity / 2
        );
        let mut ring = Self {
            memory,
            shape,
            end: at.position,
            ordinal: at.ordinal,
            intent: at.position.0,
            unmarked: at.position.0 / shape.step,
        };
        // Relaxed: the file gets its name, or its readers this page, after this.
        ring.memory.store(shape.word(at.position), 0, Ordering::Relaxed);
        ring.mark(at.position);
        ring.memory.store(place::END, at.position.0, Ordering::Relaxed);
        ring.memory.store(place::INTENT, at.position.0, Ordering::Release);
        ring
    }

    /// Resumes where another writer died or closed: from the newest mark along the commits to the end.
    ///
    /// # Errors
    /// Byte offset in the memory and what is wrong there.
    pub fn recover(memory: M, shape: RingGeometry) -> Result<Self, (u64, &'static str)> {
        // Relaxed, all of it: the writer before is gone, the file's lock is ours.
        let word = |at| memory.load(at, Ordering::Relaxed);
        let intent = word(place::INTENT);
        if !intent.is_multiple_of(shape.step) || intent >= PLACE_MAX {
            return Err((place::INTENT, "the intent is no block's start"));
        }
        let newest = (intent / shape.step..=(intent + shape.capacity) / shape.step).rev().find_map(|block| {
            let mark = UnitMark {
                position: Position(word(shape.mark(block))),
                ordinal: word(shape.mark(block) + 8),
            };
            let at = mark.position.0;
            let there = at >= block * shape.step && at <= intent + shape.capacity;
            (there && at.is_multiple_of(LINE as u64)).then_some((block, mark))
        });
        let (block, mark) = newest.ok_or((place::MARKS, "no mark belongs to the ring as it stands"))?;
        let UnitMark { position: end, ordinal } = mark;
        let mut ring = Self { memory, shape, end, ordinal, intent, unmarked: block + 1 };
        // The unit that the walk is in: its start, and the events before it.
        let mut unit = None;
        loop {
            let at = ring.end;
            if at.0 > intent + shape.capacity {
                return Err((shape.word(at), "frames continue beyond the announced position"));
            }
            let header = FrameHeader(ring.memory.load(shape.word(at), Ordering::Relaxed));
            match judge(header, at, shape.room(at)) {
                HeaderWordState::Frame(header) => {
                    unit.get_or_insert(UnitMark { position: at, ordinal: ring.ordinal });
                    ring.end = ring.end.plus(header.len_bytes() as u64);
                    ring.ordinal += u64::from(!header.is_meta());
                    if header.is_last()
                        && let Some(begun) = unit.take()
                    {
                        let ordinal = std::mem::replace(&mut ring.ordinal, begun.ordinal);
                        ring.mark(begun.position);
                        ring.ordinal = ordinal;
                    }
                }
                HeaderWordState::Pad if unit.is_none() => ring.end = ring.end.plus(shape.room(at)),
                HeaderWordState::Nothing if unit.is_none() => break,
                _ => return Err((shape.word(at), "neither a frame nor the end of the ring stands here")),
            }
        }
        // Release: pairs with the Acquire of readers that ask for the end.
        ring.memory.store(place::END, ring.end.0, Ordering::Release);
        Ok(ring)
    }

    /// Position after the last unit.
    #[inline]
    pub fn end(&self) -> Position {
        self.end
    }

    /// Non-META frames before the end.
    #[inline]
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Sizes of the ring.
    #[inline]
    pub fn shape(&self) -> RingGeometry {
        self.shape
    }

    /// Appends a unit of whole frames, at most `unit_max` bytes, with `ordinals` events; gives its position.
    #[inline]
    pub fn append(&mut self, unit: &[u8], ordinals: u64) -> Position {
        let start = self.open(unit.len() as u64);
        let mut at = 0;
        while at < unit.len() {
            let header = FrameHeader::read(&unit[at..]);
            let place = start.plus(at as u64);
            if at > 0 {
                // Relaxed: not reachable before the unit's first word.
                self.memory.store(self.shape.word(place), header.with_stamp(place).0, Ordering::Relaxed);
            }
            self.write(place.plus(8), &unit[at + 8..at + header.len_bytes()]);
            at += header.len_bytes();
        }
        self.publish(start, unit.len() as u64, FrameHeader::read(unit), ordinals);
        start
    }

    /// Makes `bytes` after the end writable and gives where they begin; nothing is committed yet.
    #[inline]
    pub fn open(&mut self, bytes: u64) -> Position {
        assert!(bytes > 0 && bytes <= self.shape.unit_max);
        let room = self.shape.room(self.end);
        let start = if bytes <= room { self.end } else { self.end.plus(room) };
        // The line after the unit, too: its first word is zeroed.
        let to = start.plus(bytes + LINE as u64);
        if to.0 > self.intent + self.shape.capacity && FLAW != flaw::LATE_INTENT {
            self.announce(to);
        }
        start
    }

    /// Writes whole words of a unit that is open.
    #[inline]
    pub fn write(&self, position: Position, bytes: &[u8]) {
        let mut to = self.shape.word(position);
        for word in bytes.chunks_exact(8) {
            let value = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            // Relaxed: after the fence of `announce` for readers of the old lap, before the commit for others.
            self.memory.store(to, value, Ordering::Relaxed);
            to += 8;
        }
    }

    /// Commits the unit that is open at `start`; everything but its first word is written.
    #[inline]
    pub fn publish(&mut self, start: Position, bytes: u64, first: FrameHeader, ordinals: u64) {
        let next = start.plus(bytes);
        if FLAW != flaw::NO_ZERO {
            // Relaxed: before the commit below, after the fence of `announce`.
            self.memory.store(self.shape.word(next), 0, Ordering::Relaxed);
        }
        if FLAW == flaw::LATE_INTENT && next.0 + LINE as u64 > self.intent + self.shape.capacity {
            self.announce(next.plus(LINE as u64));
        }
        // Release: pairs with the Acquire in `RingReader::owner_and_mode`.
        let order = if FLAW == flaw::RELAXED_COMMIT { Ordering::Relaxed } else { Ordering::Release };
        let word = first.with_stamp(start).0;
        if start == self.end {
            self.memory.store(self.shape.word(start), word, order);
        } else {
            // Relaxed: reached through the pad, which is the commit.
            self.memory.store(self.shape.word(start), word, Ordering::Relaxed);
            let pad = FrameHeader::new_unstamped(KIND_PAD, 0, 0).with_stamp(self.end);
            self.memory.store(self.shape.word(self.end), pad.0, order);
        }
        if start.0 >= self.unmarked * self.shape.step {
            self.mark(start);
        }
        self.ordinal += ordinals;
        self.end = next;
        // Release: pairs with the Acquire of readers that ask for the end; the unit is committed before it.
        self.memory.store(place::END, next.0, Ordering::Release);
    }

    /// Says that what makes room for everything before `to` is about to be overwritten.
    #[cold]
    fn announce(&mut self, to: Position) {
        self.intent = (to.0 - self.shape.capacity).next_multiple_of(self.shape.step);
        // Release: pairs with the Acquire in `RingReader::intent`; the block's mark is there before.
        self.memory.store(place::INTENT, self.intent, Ordering::Release);
        if FLAW != flaw::NO_WRITE_FENCE {
            // Pairs with the fence in `RingReader::is_intact`: a reader that sees a store after it sees the intent.
            M::fence(Ordering::Release);
        }
    }

    /// Marks the blocks up to that of the unit at `start`, which is committed.
    #[cold]
    fn mark(&mut self, start: Position) {
        while self.unmarked * self.shape.step <= start.0 {
            let at = self.shape.mark(self.unmarked);
            // Relaxed and Release: pair with the Acquire in `RingReader::mark`; the position comes last.
            self.memory.store(at + 8, self.ordinal, Ordering::Relaxed);
            self.memory.store(at, start.0, Ordering::Release);
            self.unmarked += 1;
        }
    }
}

/// The result of a reader's look at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingReadOutcome {
    /// A frame; the reader has moved past it.
    Frame(FrameHeader),
    /// Nothing is committed there yet.
    Nothing,
    /// The writer has overwritten the position; the reader has not moved.
    Overrun,
    /// Neither a frame nor zero is there, and it was not overwritten.
    Damage(FrameHeader),
}

/// The reading side; there may be any number.
#[derive(Debug)]
pub struct RingReader<M, const FLAW: u8 = { flaw::NONE }> {
    memory: M,
    shape: RingGeometry,
    /// Position of the next frame, and events before it.
    at: UnitMark,
}

impl<M: SharedMemory, const FLAW: u8> RingReader<M, FLAW> {
    /// At the oldest unit; none as [`RingReader::oldest`].
    pub fn open(memory: M, shape: RingGeometry) -> Option<Self> {
        let mut reader = Self { memory, shape, at: UnitMark { position: Position(0), ordinal: 0 } };
        reader.at = reader.oldest()?;
        Some(reader)
    }

    /// The position of the next frame, and the number of events before it.
    #[inline]
    pub fn next_mark(&self) -> UnitMark {
        self.at
    }

    /// Goes to a place that [`RingReader::oldest`] or [`RingReader::mark_before`] gave.
    pub fn move_to(&mut self, at: UnitMark) {
        self.at = at;
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Sizes of the ring.
    pub fn shape(&self) -> RingGeometry {
        self.shape
    }

    /// Position after the last unit, as the writer last said.
    #[inline]
    pub fn end(&self) -> Position {
        // Acquire: pairs with the Release in `RingWriter::publish`; what is before it can be read.
        Position(self.memory.load(place::END, Ordering::Acquire))
    }

    /// Steps over the next frame, and appends it to `buffer` if there is one. A pad is stepped over as well.
    #[inline]
    pub fn next(&mut self, buffer: Option<&mut Vec<u64>>) -> RingReadOutcome {
        let (header, seen) = loop {
            let header = self.look();
            let seen = judge(header, self.at.position, self.shape.room(self.at.position));
            if seen != HeaderWordState::Pad {
                break (header, seen);
            }
            if !self.is_intact(self.at.position) {
                return RingReadOutcome::Overrun;
            }
            self.at.position = self.at.position.plus(self.shape.room(self.at.position));
        };
        let position = self.at.position;
        if FLAW == flaw::EARLY_CHECK && !self.is_intact(position) {
            return RingReadOutcome::Overrun;
        }
        let mut begun = None;
        if let (HeaderWordState::Frame(header), Some(buffer)) = (seen, buffer) {
            let from = buffer.len();
            buffer.push(header.0);
            let word = self.shape.word(position);
            // Relaxed: the look's Acquire comes before them, the check after them.
            let words = (8..header.len_bytes() as u64).step_by(8);
            buffer.extend(words.map(|at| self.memory.load(word + at, Ordering::Relaxed)));
            begun = Some((buffer, from));
        }
        if FLAW != flaw::EARLY_CHECK && !self.is_intact(position) {
            if let Some((buffer, from)) = begun {
                buffer.truncate(from);
            }
            return RingReadOutcome::Overrun;
        }
        match seen {
            HeaderWordState::Frame(header) => {
                self.at.position = self.at.position.plus(header.len_bytes() as u64);
                self.at.ordinal += u64::from(!header.is_meta());
                RingReadOutcome::Frame(header)
            }
            HeaderWordState::Nothing => RingReadOutcome::Nothing,
            HeaderWordState::Pad | HeaderWordState::Damage(_) => RingReadOutcome::Damage(header),
        }
    }

    /// The oldest whole unit that is not about to be overwritten, or the end of a ring without any. None where
    /// the control page is damaged.
    pub fn oldest(&self) -> Option<UnitMark> {
        let mut before = u64::MAX;
        loop {
            let intent = self.intent()?;
            if let Some(mark) = self.mark(intent / self.shape.step, intent) {
                return Some(mark);
            }
            // The mark of a block that the intent names is there, unless the intent has moved on meanwhile.
            if intent == before {
                return None;
            }
            before = intent;
        }
    }

    /// The newest mark that is not after `limit`, at or after the intent.
    pub fn mark_before(&self, limit: Position) -> Option<UnitMark> {
        let intent = self.intent()?;
        let step = self.shape.step;
        let blocks = intent / step..=limit.0.min(intent + self.shape.capacity) / step;
        blocks.rev().find_map(|block| {
            self.mark(block, intent).filter(|mark| mark.position.0 >= block * step && mark.position <= limit)
        })
    }

    /// The intent, if it is one.
    fn intent(&self) -> Option<u64> {
        // Acquire: pairs with the Release in `RingWriter::announce`; the block it names has its mark.
        let intent = self.memory.load(place::INTENT, Ordering::Acquire);
        (intent.is_multiple_of(self.shape.step) && intent < PLACE_MAX).then_some(intent)
    }

    /// The mark of `block`, if it is of this lap: the block lies in the capacity after `intent`.
    fn mark(&self, block: u64, intent: u64) -> Option<UnitMark> {
        let at = self.shape.mark(block);
        // Acquire: pairs with the Release in `RingWriter::mark`; the ordinal, the commit of the unit and the zero
        // after it are there.
        let position = Position(self.memory.load(at, Ordering::Acquire));
        let ordinal = self.memory.load(at + 8, Ordering::Relaxed);
        // A mark is used again two laps on, when the intent is beyond the lap that it was looked up in.
        (self.is_intact(position) && position.0 < intent + self.shape.capacity && position.0 >= intent)
            .then_some(UnitMark { position, ordinal })
    }

    #[inline]
    fn look(&self) -> FrameHeader {
        // Acquire: pairs with the Release in `RingWriter::publish`.
        let order = if FLAW == flaw::RELAXED_LOOK { Ordering::Relaxed } else { Ordering::Acquire };
        FrameHeader(self.memory.load(self.shape.word(self.at.position), order))
    }

    /// Whether the bytes loaded before this, at and after `position`, is of its own lap.
    #[inline]
    fn is_intact(&self, position: Position) -> bool {
        if FLAW != flaw::NO_READ_FENCE {
            // Pairs with the fence in `RingWriter::announce`.
            M::fence(Ordering::Acquire);
        }
        // Relaxed: ordered by the fence.
        self.memory.load(place::INTENT, Ordering::Relaxed) <= position.0
    }
}
