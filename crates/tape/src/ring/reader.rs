//! A reader of a ring tape.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use unitape_model::Position;
use unitape_ring::WaitStrategy;

use super::file::{RingFile, offset};
use crate::disk::layout::TapeId;
use crate::disk::lineage::{LineagePoint, ReaderRewind};
use crate::error::{Error, Result};
use crate::lockfree::ring::{RingReadOutcome, RingReader, UnitMark};
use crate::read::pace::DeadlineWaiter;
use crate::read::reader::{Frame, FrameSlice, StartPosition};

/// The losses of a reader to the writer since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingLosses {
    /// How often it was overrun.
    pub overruns: u64,
    /// Bytes of tape that it did not get, pads included.
    pub bytes: u64,
    /// Non-META frames among them.
    pub events: u64,
}

/// A reader of a ring tape, in the writer's process or in another; never slows the writer, and may be overrun.
///
/// It gives out its own copies, checked after copying, so they stay unchanged while they are used.
#[derive(Debug)]
pub struct RingTapeReader {
    core: RingReader<RingFile>,
    buffer: Vec<u64>,
    losses: RingLosses,
    idle: u32,
    /// Epoch of the ring when it was opened.
    epoch_opened: u64,
}

impl RingTapeReader {
    /// Opens the ring at `path`: [`StartPosition::Oldest`] begins at the oldest unit that is not about to be overwritten.
    ///
    /// # Errors
    /// No ring at that place, a foreign version, damage, or a position that was overwritten or is no frame's.
    pub fn open(path: &Path, start: StartPosition) -> Result<Self> {
        let Some(file) = RingFile::open(path, false)? else {
            let what = "there is no ring tape; its writer makes it";
            return Err(Error::NotATape { path: path.into(), what });
        };
        let shape = file.shape;
        // Before anything is read: what comes may be of a later one. Acquire: pairs with the Release in
        // `writer::set_word`.
        let epoch_opened = file.word(offset::EPOCH).load(Ordering::Acquire);
        let core = RingReader::open(file, shape).ok_or_else(|| no_mark(path))?;
        let mut reader =
            Self { core, buffer: Vec::new(), losses: RingLosses::default(), idle: 0, epoch_opened };
        match start {
            StartPosition::Oldest => {}
            StartPosition::End => {
                // Again if the writer went round while this walked to its end.
                while !reader.walk_to(reader.core.end())? {}
            }
            StartPosition::At(position) => reader.seek(position)?,
        }
        Ok(reader)
    }

    /// Goes to the frame at `position` (or the end of the one before it).
    ///
    /// # Errors
    /// A position that was overwritten, or at which no frame starts.
    pub fn seek(&mut self, position: Position) -> Result<()> {
        if position > self.core.end() {
            return Err(Error::NoFrame(position));
        }
        if self.walk_to(position)? {
            return Ok(());
        }
        let oldest = self.oldest()?.position;
        if position < oldest {
            Err(Error::Retained { position, oldest })
        } else {
            Err(Error::NoFrame(position))
        }
    }

    /// The next frame, or none if nothing more is committed yet.
    ///
    /// # Errors
    /// [`Error::Overrun`] once for each time the writer has overtaken the reader. The reader is then at the oldest
    /// unit that is left and continues with the next call. Drop the frames of a unit whose last frame has not come.
    /// Damage, or a file that was removed.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends the reader's copy, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        self.buffer.clear();
        let header = match self.core.next(Some(&mut self.buffer)) {
            RingReadOutcome::Frame(header) => header,
            got => return self.otherwise(got).map(|()| None),
        };
        self.idle = 0;
        let position = Position(self.core.next_mark().position.0 - header.len_bytes() as u64);
        Ok(Some(Frame { position, header, bytes: bytes(&self.buffer) }))
    }

    /// Whole units that are there, copied together, up to about `bytes_max` (at least one unit); none if there is
    /// nothing more yet. A run ends where frames do not lie together.
    ///
    /// # Errors
    /// As [`RingTapeReader::next`]; a unit that was overrun in the middle is not given.
    pub fn next_run(&mut self, bytes_max: usize) -> Result<Option<FrameSlice<'_>>> {
        self.buffer.clear();
        let mut position = None;
        // Behind the last whole unit: words in the buffer, and the place.
        let mut whole = (0, self.core.next_mark());
        let mut begun = whole.1;
        let got = loop {
            let before = self.core.next_mark();
            let words = self.buffer.len();
            match self.core.next(Some(&mut self.buffer)) {
                RingReadOutcome::Frame(header) => {
                    let at = Position(self.core.next_mark().position.0 - header.len_bytes() as u64);
                    if words == 0 {
                        (position, begun) = (Some(at), before);
                    } else if at != before.position {
                        // After a pad, which separates units: it begins the next run.
                        self.buffer.truncate(words);
                        self.core.move_to(before);
                        break RingReadOutcome::Nothing;
                    }
                    if header.is_last() {
                        whole = (self.buffer.len(), self.core.next_mark());
                        if self.buffer.len() * 8 >= bytes_max {
                            break RingReadOutcome::Nothing;
                        }
                    }
                }
                got => break got,
            }
        };
        self.buffer.truncate(whole.0);
        if let (Some(position), true) = (position, whole.0 > 0) {
            // The next call meets the reason again why no next frame came.
            self.core.move_to(whole.1);
            self.idle = 0;
            let (ordinal, bytes) = (begun.ordinal, bytes(&self.buffer));
            return Ok(Some(FrameSlice { position, ordinal, bytes, checked: false }));
        }
        if got == RingReadOutcome::Overrun {
            // Counted from where the unit that was not given began.
            self.core.move_to(begun);
        }
        self.otherwise(got).map(|()| None)
    }

    /// Waits until a frame is there, or until the reader was overrun: spins, yields, then sleeps for at most 50 µs
    /// at a time. False when `timeout` has passed without one.
    ///
    /// # Errors
    /// As [`RingTapeReader::next`], but for being overrun, which the next call reports.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.wait_as(WaitStrategy::Balanced, timeout)
    }

    /// Waits until a frame is there, in the way that `wait` says.
    ///
    /// # Errors
    /// As [`RingTapeReader::wait`].
    pub fn wait_as(&mut self, wait: WaitStrategy, timeout: Duration) -> Result<bool> {
        let mut patience = DeadlineWaiter::new(wait, timeout);
        loop {
            let at = self.core.next_mark();
            match self.core.next(None) {
                RingReadOutcome::Frame(_) | RingReadOutcome::Overrun => {
                    self.core.move_to(at);
                    return Ok(true);
                }
                got => self.otherwise(got)?,
            }
            if !patience.wait() {
                return Ok(false);
            }
        }
    }

    /// Bytes that the writer is ahead; at about fifteen sixteenths of [`RingTapeReader::capacity_bytes`] the
    /// reader will be overrun.
    pub fn lag_bytes(&self) -> u64 {
        self.core.end().0.saturating_sub(self.core.next_mark().position.0)
    }

    /// Position after the last frame read.
    pub fn position(&self) -> Position {
        self.core.next_mark().position
    }

    /// Non-META frames before [`RingTapeReader::position`], lost ones included.
    pub fn ordinal(&self) -> u64 {
        self.core.next_mark().ordinal
    }

    /// The losses since the reader was opened.
    pub fn losses(&self) -> RingLosses {
        self.losses
    }

    /// Identity of the tape.
    pub fn id(&self) -> TapeId {
        self.core.memory().id
    }

    /// Bytes of frames in the ring.
    pub fn capacity_bytes(&self) -> u64 {
        self.core.shape().capacity
    }

    /// Openings of the ring by a writer so far: it has grown when a writer was replaced by another.
    pub fn epoch(&self) -> u64 {
        self.word(offset::EPOCH)
    }

    /// Position after the last frame read, with the epoch that the ring had when this reader was opened: what
    /// [`RingTapeReader::resume`] wants.
    pub fn point(&self) -> LineagePoint {
        LineagePoint { epoch: self.epoch_opened, position: self.position() }
    }

    /// Opens the ring at `path` where `point` was dealt with. A ring that was emptied since, by a restart of the machine,
    /// is read from where it began then; the second value says so.
    ///
    /// # Errors
    /// As [`RingTapeReader::open`]; a place that was overwritten is [`Error::Retained`].
    pub fn resume(path: &Path, point: LineagePoint) -> Result<(Self, Option<ReaderRewind>)> {
        let mut reader = Self::open(path, StartPosition::Oldest)?;
        let LineagePoint { epoch, position: from } = point;
        let (emptied, begun) = (reader.word(offset::EMPTIED_EPOCH), reader.word(offset::EMPTIED_AT));
        let to = match epoch {
            // The place is of a ring that was lost and made again, or of an unknown one.
            _ if epoch > reader.epoch() => reader.oldest()?.position.min(from),
            _ if epoch < emptied => Position(begun.min(from.0)),
            _ => from,
        };
        reader.seek(to)?;
        Ok((reader, (to < from).then_some(ReaderRewind { from, to })))
    }

    fn word(&self, at: u64) -> u64 {
        // Acquire: pairs with the Release in `writer::set_word`.
        self.core.memory().word(at).load(Ordering::Acquire)
    }

    /// Process id of the writer, none if no process has the ring open for writing.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn writer(&self) -> Result<Option<u64>> {
        self.core.memory().writer()
    }

    /// Acts on a look that found no frame.
    #[cold]
    fn otherwise(&mut self, got: RingReadOutcome) -> Result<()> {
        let file = self.core.memory();
        match got {
            RingReadOutcome::Frame(_) => Ok(()),
            RingReadOutcome::Nothing => {
                self.idle = self.idle.wrapping_add(1);
                if self.idle.is_multiple_of(IDLE_LOOK) && !file.is_linked() {
                    return Err(Error::Removed { path: file.path.clone() });
                }
                Ok(())
            }
            RingReadOutcome::Damage(header) => {
                let position = self.core.next_mark().position;
                let at = crate::disk::layout::HEADER_PAGE + position.0 % self.core.shape().capacity;
                Err(Error::damage(&file.path, at, format!("no frame can start with {header}")))
            }
            RingReadOutcome::Overrun => {
                let (from, to) = (self.core.next_mark(), self.oldest()?);
                self.core.move_to(to);
                let lost_bytes = to.position.0 - from.position.0;
                let lost_events = to.ordinal.saturating_sub(from.ordinal);
                self.losses.overruns += 1;
                self.losses.bytes += lost_bytes;
                self.losses.events += lost_events;
                let (position, resume_at) = (from.position, to.position);
                Err(Error::Overrun { position, lost_bytes, lost_events, resume_at })
            }
        }
    }

    fn oldest(&self) -> Result<UnitMark> {
        self.core.oldest().ok_or_else(|| no_mark(&self.core.memory().path))
    }

    /// Walks from the newest mark before it to `position`; false if that is not to be reached.
    fn walk_to(&mut self, position: Position) -> Result<bool> {
        let Some(mark) = self.core.mark_before(position) else { return Ok(false) };
        self.core.move_to(mark);
        while self.core.next_mark().position < position {
            match self.core.next(None) {
                RingReadOutcome::Frame(_) => {}
                RingReadOutcome::Damage(header) => {
                    return self.otherwise(RingReadOutcome::Damage(header)).map(|()| false);
                }
                RingReadOutcome::Nothing | RingReadOutcome::Overrun => break,
            }
        }
        Ok(self.core.next_mark().position == position)
    }
}

fn no_mark(path: &Path) -> Error {
    let what = "the ring's page is damaged; remove the ring and let its writer make it again";
    Error::damage(path, crate::lockfree::ring::place::INTENT, what)
}

/// Empty looks between two questions to the file system whether the file is still there.
const IDLE_LOOK: u32 = 4096;

/// The bytes of words.
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory, which has no padding and needs no alignment as bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
