//! Following a tape: a mapping of its own, a position of its own, no word to the writer.

use std::path::Path;
use std::time::Duration;

use unitape_model::{FrameHeader, LINE, Position, TopicMessage};
use unitape_ring::WaitStrategy;

use crate::disk::durable::load_durable;
use crate::disk::layout::{HEADER_PAGE, TapeId, segment_path};
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};
use crate::read::damage::{DamageStop, DamagedParts, ReadOptions};
use crate::read::figures::{RetentionLoss, RewindTotals};
use crate::read::pace::{DeadlineWaiter, ReadPacer};
use crate::read::span_checks::{SpanCheckContext, SpanVerifier};
use crate::record::durable::DurabilityHandle;

mod damage;
mod index_seek;
mod lag;
mod rewind;
mod seek;

pub use index_seek::{SeekOutcome, TimeRange};

use index_seek::IndexCursor;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPosition {
    /// At the oldest frame that retention has left.
    Oldest,
    /// Behind the last frame committed so far.
    End,
    /// At the frame that starts at, or right after the one that ends at, this position.
    At(Position),
}

/// A committed frame, in place.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The position of the frame.
    pub position: Position,
    /// The header word of the frame.
    pub header: FrameHeader,
    /// All of it, header included.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the message in the frame, if the frame holds a message.
    #[inline]
    pub fn message(&self) -> Option<TopicMessage<'a>> {
        TopicMessage::from_frame(self.bytes)
    }
}

/// Committed frames one after the other, in place; split them with [`unitape_model::frames`].
#[derive(Clone, Copy, Debug)]
pub struct FrameSlice<'a> {
    /// The position of the first one.
    pub position: Position,
    /// Ordinal of the first non-META frame in it.
    pub ordinal: u64,
    /// The frames.
    pub bytes: &'a [u8],
    /// The whole frame matches its checksums. False if it is not durable yet, or was read without checks.
    pub is_checked: bool,
}

/// A reader of a tape, in the writer's process or in another; it never slows the writer.
///
/// The reader compares durable bytes with their checksums before it returns them ([`ReadOptions::verify`]).
#[derive(Debug)]
pub struct Reader {
    pub(crate) segment_locator: SegmentLocator,
    pub(crate) segment: Option<MappedSegment>,
    pub(crate) lookup_segment: Option<MappedSegment>,
    /// Data offset in `segment`.
    pub(crate) offset: u64,
    /// Data offset in `segment` up to which frames may be given out without a question.
    pub(crate) limit_offset: u64,
    pub(crate) position: Position,
    /// Non-META frames before `position`.
    pub(crate) ordinal: u64,
    /// The ordinal is right. It is not after damage at the start.
    pub(crate) ordinal_known: bool,
    /// The durable position, as known last: before it there is a frame.
    durable: Position,
    pub(crate) checks: SpanVerifier,
    pub(crate) lookup_checks: SpanVerifier,
    /// Damage is passed over.
    pub(crate) skips_damage: bool,
    pub(crate) damaged: DamagedParts,
    /// Damage after which there is nothing to be read yet.
    pub(crate) damage_stop: Option<DamageStop>,
    pub(crate) idle_polls: u32,
    durability: Option<DurabilityHandle>,
    /// The page that announces the tape's end and the segments that retention is about to remove.
    pub(crate) page: Option<StatePage>,
    /// End and ordinal of a tape that is closed.
    pub(crate) closed_end: Option<(Position, u64)>,
    pub(crate) retention_loss: RetentionLoss,
    /// The epoch that the tape had before the reader looked for the segment; `None` before the first segment.
    pub(crate) epoch: Option<u64>,
    pub(crate) rewind_totals: RewindTotals,
    /// The last of `rewind_totals` has not been given.
    pub(crate) is_rewound: bool,
    index_cursor: IndexCursor,
    read_pacer: ReadPacer,
}

impl Reader {
    /// Opens the tape in `dir`.
    ///
    /// # Errors
    /// Fails if `dir` is no tape or has a foreign version, at damage on the way to `start`, and if the position was
    /// removed or no frame starts there.
    pub fn open(dir: &Path, start: StartPosition) -> Result<Self> {
        Self::open_with(dir, start, ReadOptions::default())
    }

    /// Opens the tape in `dir`, with or without checks, and stopping at damage or not.
    ///
    /// # Errors
    /// Fails as [`Reader::open`] does; damage is no error if the options pass over it.
    pub fn open_with(dir: &Path, start: StartPosition, options: ReadOptions) -> Result<Self> {
        let mut reader = Self::unpositioned(SegmentLocator::open(dir)?).with_options(options);
        match start {
            StartPosition::Oldest => loop {
                let oldest_index = reader.segment_locator.indices()?.first().copied().unwrap_or(0);
                reader.ordinal_known =
                    oldest_index == 0 && reader.segment_locator.oldest_position()? == Position(0);
                match reader.begin_at(oldest_index) {
                    // Retention has removed the segment since it was listed.
                    Ok(false)
                        if reader.segment_locator.indices()?.first().is_some_and(|&i| i > oldest_index) =>
                    {
                        continue;
                    }
                    Ok(_) => reader.ordinal_known = true,
                    Err(e) => reader.pass_over(e)?,
                }
                break;
            },
            StartPosition::End => {
                let durable = load_durable(&reader.segment_locator.paths)
                    .map_or(Position(0), |durable| durable.position);
                let oldest_index = reader.segment_locator.indices()?.first().copied().unwrap_or(0);
                let known_end = durable.max(StatePage::peek(&reader.segment_locator.paths)?);
                let search_start = known_end
                    .max(Position(oldest_index.saturating_mul(reader.segment_locator.meta.segment_bytes)));
                if let Err(e) = reader.walk_to_segment_of(search_start) {
                    reader.pass_over(e)?;
                }
                while reader.next_run(1 << 20)?.is_some() {}
            }
            StartPosition::At(position) => reader.seek(position)?,
        }
        Ok(reader)
    }

    /// Opens the tape at its oldest position, for a reader whose `position` was removed, with `ordinal` events before
    /// it if that is known. [`Reader::skipped`] then returns the loss.
    pub(crate) fn open_after_removal(dir: &Path, position: Position, ordinal: Option<u64>) -> Result<Self> {
        let mut reader = Self::unpositioned(SegmentLocator::open(dir)?);
        (reader.position, reader.ordinal) = (position, ordinal.unwrap_or(0));
        reader.skip_to_oldest()?;
        if ordinal.is_none() {
            reader.retention_loss.events = 0;
        }
        Ok(reader)
    }

    pub(crate) fn unpositioned(live: SegmentLocator) -> Self {
        let span = live.meta.span();
        Self {
            segment_locator: live,
            segment: None,
            lookup_segment: None,
            offset: 0,
            limit_offset: 0,
            position: Position(0),
            ordinal: 0,
            ordinal_known: true,
            durable: Position(0),
            checks: SpanVerifier::new(span, true),
            lookup_checks: SpanVerifier::new(span, true),
            skips_damage: false,
            damaged: DamagedParts::default(),
            damage_stop: None,
            idle_polls: 0,
            read_pacer: ReadPacer::default(),
            durability: None,
            page: None,
            closed_end: None,
            retention_loss: RetentionLoss::default(),
            epoch: None,
            rewind_totals: RewindTotals::default(),
            is_rewound: false,
            index_cursor: IndexCursor::default(),
        }
    }

    /// Applies the options to the reader.
    pub(crate) fn with_options(mut self, options: ReadOptions) -> Self {
        (self.checks.is_enabled, self.lookup_checks.is_enabled) = (options.verify, options.verify);
        self.skips_damage = options.skip_damage;
        self
    }

    /// Returns the next frame, or `None` if no more frames are committed yet.
    ///
    /// # Errors
    /// Fails at damage, and if retention removed the segment before it was read. Returns [`Error::Rewound`] once for
    /// each cut before this reader's position; the position is then that of the cut.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends the mapping, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let Some((offset, header)) = self.advance()? else { return Ok(None) };
        let segment = self.segment.as_ref().expect("a segment after a frame");
        // SAFETY: `advance` saw the frame committed at `offset`, with its length inside the segment.
        let bytes = unsafe { segment.bytes(offset, header.len_bytes()) };
        Ok(Some(Frame { position: segment.base_position.plus(offset), header, bytes }))
    }

    /// Returns the next frame with the number of non-META frames before it: the ordinal of an event.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    #[inline]
    pub fn next_counted(&mut self) -> Result<Option<(u64, Frame<'_>)>> {
        let Some((offset, header)) = self.advance()? else { return Ok(None) };
        // Not the one from before, which may be that of damage which was passed over.
        let ordinal = self.ordinal - u64::from(!header.is_meta());
        let segment = self.segment.as_ref().expect("a segment after a frame");
        // SAFETY: as in `next`.
        let bytes = unsafe { segment.bytes(offset, header.len_bytes()) };
        Ok(Some((ordinal, Frame { position: segment.base_position.plus(offset), header, bytes })))
    }

    /// Returns adjacent committed frames, up to about `bytes_max` bytes but at least one frame. Returns `None` if no
    /// more frames are committed yet.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    pub fn next_run(&mut self, bytes_max: usize) -> Result<Option<FrameSlice<'_>>> {
        let Some((from, header)) = self.advance()? else { return Ok(None) };
        let ordinal = self.ordinal - u64::from(!header.is_meta());
        let mut length = header.len_bytes();
        let segment = self.segment.as_ref().expect("a segment after a frame");
        while length < bytes_max && self.offset < self.limit_offset {
            let HeaderWordState::Frame(header) = segment.look_within(self.offset, self.limit_offset) else {
                break;
            };
            segment.prefetch(self.offset + header.len_bytes() as u64);
            self.offset += header.len_bytes() as u64;
            self.ordinal += u64::from(!header.is_meta());
            length += header.len_bytes();
        }
        self.position = segment.base_position.plus(self.offset);
        // SAFETY: `advance` and `look` saw every frame of the range committed.
        let bytes = unsafe { segment.bytes(from, length) };
        let checked = self.checks.is_checked(segment.base_position.plus(from), self.position);
        Ok(Some(FrameSlice {
            position: segment.base_position.plus(from),
            ordinal,
            bytes,
            is_checked: checked,
        }))
    }

    /// Waits until a frame is there: spins, yields, then parks for at most 50 µs at a time. False when
    /// `timeout` has passed without one.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.wait_as(WaitStrategy::Balanced, timeout)
    }

    /// Waits until a frame is there, in the way that `wait` says.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    pub fn wait_as(&mut self, wait: WaitStrategy, timeout: Duration) -> Result<bool> {
        // Before the next look: what would be found now lies at the writer's heels.
        if self.idle_polls > 0 && wait != WaitStrategy::Spin {
            (0..self.read_pacer.pause(self.ordinal)).for_each(|_| std::hint::spin_loop());
        }
        if self.frame_is_ready()? {
            return Ok(true);
        }
        self.look_for_page()?;
        let mut patience = DeadlineWaiter::new(wait, timeout);
        loop {
            if self.frame_is_ready()? {
                return Ok(true);
            }
            if !patience.wait_once() {
                return Ok(false);
            }
            // A sleeping reader looks rarely: the next look is the one that asks whether the segment has moved.
            if patience.parks() % PARKS_LOOK == PARKS_LOOK - 1 {
                self.idle_polls |= IDLE_LOOK - 1;
            }
        }
    }

    /// Returns the position after the last frame read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the ordinal of the next event: the number of non-META frames before [`Reader::position`].
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns the durable position: everything before it survives power loss.
    ///
    /// # Errors
    /// Fails if the file of the durable position is damaged.
    pub fn durable(&mut self) -> Result<Position> {
        self.durability()?.position()
    }

    /// Requests durability of everything before `position` and waits for it. A subscriber calls it if it must not act
    /// on data that a power loss could remove.
    ///
    /// # Errors
    /// Fails as [`DurabilityHandle::wait`] does.
    pub fn wait_durable(&mut self, position: Position, timeout: Duration) -> Result<()> {
        let reader_position = self.position();
        self.durability()?.wait(position, reader_position, timeout)
    }

    /// Returns the handle to the tape's durability, which also tells what failed and how often.
    ///
    /// # Errors
    /// Fails as [`DurabilityHandle::open`] does.
    pub fn durability(&mut self) -> Result<&mut DurabilityHandle> {
        if self.durability.is_none() {
            self.durability = Some(DurabilityHandle::open(&self.segment_locator.paths.tape_dir)?);
        }
        Ok(self.durability.as_mut().expect("made above"))
    }

    /// Returns the identity of the tape.
    pub fn id(&self) -> TapeId {
        self.segment_locator.meta.id
    }

    /// Returns whether a frame can be read.
    fn frame_is_ready(&mut self) -> Result<bool> {
        let frame = self.advance()?;
        if let Some((offset, header)) = frame {
            let base = self.segment.as_ref().expect("a segment after a frame").base_position;
            // Step back onto the frame; a pad before it stays behind us.
            (self.position, self.offset) = (base.plus(offset), offset);
            self.ordinal -= u64::from(!header.is_meta());
        }
        Ok(frame.is_some())
    }

    /// Steps over the next frame and returns its data offset and header.
    #[inline(always)] // a waiting thread loops here: the time to notice a frame is in every round trip
    pub(crate) fn advance(&mut self) -> Result<Option<(u64, FrameHeader)>> {
        if let Some(segment) = &self.segment
            && self.offset < self.limit_offset
        {
            match segment.look_within(self.offset, self.limit_offset) {
                HeaderWordState::Frame(header) => {
                    let (offset, length) = (self.offset, header.len_bytes() as u64);
                    segment.prefetch(offset + length);
                    self.offset += length;
                    self.position = self.position.plus(length);
                    self.ordinal += u64::from(!header.is_meta());
                    self.idle_polls = 0;
                    return Ok(Some((offset, header)));
                }
                HeaderWordState::Nothing => {
                    // The second line of the frame to come, so that it comes over together with the first: measured
                    // 180 ns instead of 230 for a round trip of two lines each.
                    segment.prefetch(self.offset + LINE as u64);
                    self.idle_polls = self.idle_polls.wrapping_add(1);
                    if !self.idle_polls.is_multiple_of(IDLE_LOOK) && self.position >= self.durable {
                        return Ok(None);
                    }
                }
                HeaderWordState::Pad | HeaderWordState::Damage(_) => {}
            }
        }
        self.advance_slowly()
    }

    /// Advances at the limit, at the end of a segment, without one, and when it is time to ask whether it has moved.
    #[cold]
    fn advance_slowly(&mut self) -> Result<Option<(u64, FrameHeader)>> {
        if self.is_rewound {
            return Err(self.take_rewind_error());
        }
        loop {
            match self.try_advance() {
                // The checksums may be of a file that has replaced the one that is mapped here.
                Err(Error::Damage { .. }) if self.segment.is_some() && self.has_moved()? => {
                    self.segment = None
                }
                Err(e) => self.pass_over(e)?,
                found => return found,
            }
        }
    }

    fn try_advance(&mut self) -> Result<Option<(u64, FrameHeader)>> {
        loop {
            let Some(segment) = &self.segment else {
                if !(if self.damage_stop.is_some() { self.look_again()? } else { self.enter_segment()? }) {
                    return Ok(None);
                }
                continue;
            };
            if self.offset == segment.data_bytes {
                self.leave_segment();
                continue;
            }
            let scope = SpanCheckContext {
                segment_locator: &self.segment_locator,
                page: self.page.as_ref(),
                segment,
            };
            // Before the look: everything durable by then must be there.
            self.durable = self.checks.durable(&self.segment_locator, self.page.as_ref())?;
            let word_state = segment.header_state(self.offset);
            let need = match word_state {
                HeaderWordState::Frame(header) if self.offset < self.limit_offset => {
                    self.offset + header.len_bytes() as u64
                }
                // A sum that does not match says more than a header that cannot be.
                HeaderWordState::Frame(_) | HeaderWordState::Pad | HeaderWordState::Damage(_) => {
                    self.offset + 1
                }
                HeaderWordState::Nothing => 0,
            };
            if need > self.limit_offset {
                self.limit_offset = self.checks.check_up_to(&scope, self.offset, self.limit_offset, need)?;
                continue;
            }
            match word_state {
                HeaderWordState::Frame(_) => return self.advance(),
                // It is looked for once more, with the epoch in which it is found.
                HeaderWordState::Nothing => {
                    if self.has_moved()? {
                        self.segment = None;
                    } else if self.position >= self.durable {
                        return Ok(None);
                    } else if !self.comes_yet()? {
                        let segment = self.segment.as_ref().expect("looked at");
                        let (position, durable) = (self.position, self.durable);
                        let reason = format!(
                            "there is nothing at position {position}, and the tape is durable up to {durable}"
                        );
                        return Err(Error::damage(&segment.path, HEADER_PAGE + self.offset, reason));
                    }
                }
                HeaderWordState::Pad => self.leave_segment(),
                HeaderWordState::Damage(header) => {
                    return Err(Error::damage(
                        &segment.path,
                        HEADER_PAGE + self.offset,
                        format!("position {}: no frame can start with {header}", self.position),
                    ));
                }
            }
        }
    }

    /// Waits a moment and returns whether a frame appears after all where a frame must be, or in another mapping.
    fn comes_yet(&mut self) -> Result<bool> {
        for _ in 0..HOLE_LOOKS {
            std::thread::sleep(Duration::from_millis(1));
            let segment = self.segment.as_ref().expect("looked at");
            if segment.header_state(self.offset) != HeaderWordState::Nothing || self.has_moved()? {
                return Ok(true);
            }
        }
        // The segment may be one that a writer began again elsewhere, and that was removed since.
        let segment = self.segment.as_ref().expect("looked at");
        if !segment.has_name() {
            self.segment_locator.explain_missing(segment.segment_index)?;
        }
        Ok(false)
    }

    /// Looks for a segment after damage at the end. Asks the file system, but not at every call.
    fn look_again(&mut self) -> Result<bool> {
        self.idle_polls = self.idle_polls.wrapping_add(1);
        if self.idle_polls > 64 && !self.idle_polls.is_multiple_of(64) {
            return Ok(false);
        }
        self.look_for_page()?;
        self.continue_after_damage()
    }

    /// Continues in another mapping of the segment, at the same offset.
    fn replace_mapping(&mut self, segment: MappedSegment) {
        self.segment = Some(segment);
        self.limit_offset = self.offset;
        self.checks.begin_segment();
    }

    /// Goes to the start of the next segment.
    #[cold]
    fn leave_segment(&mut self) {
        let segment = self.segment.take().expect("a segment to leave");
        self.position = segment.end_position();
        self.segment_locator.return_segment(segment);
        (self.offset, self.limit_offset) = (0, 0);
        self.idle_polls = 0;
    }

    /// Returns whether the segment now has another file, or the tape another writer.
    #[cold]
    fn has_moved(&mut self) -> Result<bool> {
        let is_new = self.has_new_epoch()?;
        let segment = self.segment.as_ref().expect("a segment that may have moved");
        let has_moved = is_new || self.segment_locator.remap_moved(segment)?.is_some();
        if has_moved {
            self.idle_polls = 0;
        }
        Ok(has_moved)
    }

    /// Sets the position. The reader finds its segment when it next looks at the tape.
    pub(crate) fn set_position(&mut self, position: Position) {
        if let Some(segment) = self.segment.take() {
            self.segment_locator.return_segment(segment);
        }
        (self.position, self.offset, self.limit_offset, self.idle_polls) = (position, 0, 0, 0);
        self.damage_stop = None;
    }

    /// Opens the segment of `position`; false if it is not there yet.
    #[cold]
    fn enter_segment(&mut self) -> Result<bool> {
        // Between segments a reader asks the file system; not at every spin.
        self.idle_polls = self.idle_polls.wrapping_add(1);
        if self.idle_polls > 64 && !self.idle_polls.is_multiple_of(64) {
            return Ok(false);
        }
        let (epoch, position) = (self.epoch, self.position);
        self.apply_cut(position)?;
        let index = self.position.0 / self.segment_locator.meta.segment_bytes;
        let opened_segment = self.find_segment(index)?;
        self.adopt_epoch(epoch, position)?;
        match opened_segment {
            Some((mut segment, first_ordinal)) => {
                self.offset = self.position.0 - segment.base_position.0;
                let follows = first_ordinal == self.ordinal || !self.ordinal_known || self.offset > 0;
                if !follows && segment.header_state(0) != HeaderWordState::Nothing {
                    let reason = format!(
                        "{} events come before this segment, and it says {first_ordinal}: it is of another tape, or one before \
                         it is",
                        self.ordinal
                    );
                    return Err(Error::damage(&segment.path, 56, reason));
                }
                let origin = segment.filler_bytes();
                if self.offset < origin {
                    (self.offset, self.position) = (origin, segment.base_position.plus(origin));
                }
                segment.enter_pages(self.offset);
                self.replace_mapping(segment);
                self.idle_polls = 0;
                self.look_for_page()?;
                Ok(true)
            }
            None => {
                self.segment_locator.explain_missing(index)?;
                self.check_missing(index)?;
                Ok(false)
            }
        }
    }

    /// Fails if segment `index` is missing although the tape reaches into it. Another process has removed it, and a
    /// wait for it would never end.
    fn check_missing(&mut self, index: u64) -> Result<()> {
        self.look_for_page()?;
        let known_end = || match &self.page {
            Some(page) => Ok(page.published_end().0),
            None => Ok(load_durable(&self.segment_locator.paths)?.position),
        };
        if !self.segment_locator.is_lost(index, known_end)? {
            return Ok(());
        }
        let path = segment_path(&self.segment_locator.paths.segments(), index);
        Err(Error::damage(&path, 0, "the segment is missing, the tape continues in it"))
    }
}

/// Empty looks between two questions to the file system whether the segment has moved, a power of two.
const IDLE_LOOK: u32 = 4096;

/// Looks, a millisecond apart, until nothing where a frame must be is damage.
const HOLE_LOOKS: u32 = 5;

/// Sleeps between two such checks: some milliseconds.
const PARKS_LOOK: u64 = 64;
