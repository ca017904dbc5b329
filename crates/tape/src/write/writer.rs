//! Appending: the live path of one unit at a time, and claims for many threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use unitape_model::{FrameHeader, Position};

use crate::disk::frames::{check_frames, whole_unit};
use crate::disk::layout::{
    SegmentHeader, TapeId, TapeManifest, TapePaths, check_segment_bytes, remove, segment_path,
};
use crate::disk::lineage::{Lineage, check_newest};
use crate::disk::lock::FileLock;
use crate::disk::map::MappedSegment;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, with_committed_end};
use crate::gate::{GateSet, GateStatus};
use crate::record::follow::TapeRecorder;
use crate::write::claim::{Claim, ClaimPiece};
use crate::write::fork::WELL;
use crate::write::hot::HotDirectory;
use crate::write::options::{Backing, RecorderLocation, WriterOptions};
use crate::write::origin::TapeOrigin;
use crate::write::preallocator::{PreallocatorTask, RecorderThread, SegmentPreallocator, half_window};
use crate::write::recover::{self, OpenRequest, RecoveryReport};
use crate::write::shared::SharedWriterState;

mod close;
mod durability;

/// The one writer of a tape.
#[derive(Debug)]
pub struct Writer {
    shared_state: Arc<SharedWriterState>,
    current_segment: Option<Arc<MappedSegment>>,
    end_position: Position,
    ordinal: u64,
    /// The word of `core.fork`, so that an append does not go through it.
    fork_word: &'static AtomicU64,
    /// Frames may be appended up to here without a check of gates, room and open drafts; zero while a draft or a batch
    /// is open.
    short_end: Position,
    /// Bytes after the end that an open draft or batch has begun to write; otherwise zero.
    pub(crate) open_bytes: u64,
    /// Frames of an open draft or batch for which the segment has no room; otherwise empty.
    pub(crate) overflow_frames: Vec<u8>,
    pub(crate) gates: GateSet,
    pub(crate) meta: TapeManifest,
    pub(crate) options: WriterOptions,
    pub(crate) paths: TapePaths,
    /// Directory of the segments being written, and where new ones are made.
    segments_dir: PathBuf,
    making_dir: PathBuf,
    stash: Vec<MappedSegment>,
    preallocator: SegmentPreallocator,
    pub(crate) recorder: Option<RecorderThread>,
    pub(crate) state_page: StatePage,
    hot_directory: Option<HotDirectory>,
    lineage: Lineage,
    writer_lock: Option<FileLock>,
    /// Where the tape ended, if its last writer had closed it and this one has not begun to close it.
    found_closed: Option<Position>,
}

impl Writer {
    /// Opens the tape in `dir`: makes it, or recovers it and continues at its end.
    ///
    /// # Errors
    /// Fails if another writer has the tape, if the directory has another tape, a foreign version or other data, at
    /// damage, or if the system refuses.
    pub fn open(dir: &Path, id: TapeId, options: WriterOptions) -> Result<(Self, RecoveryReport)> {
        Self::open_request(dir, id, None, options)
    }

    /// Opens the tape in `dir` that begins at an origin: makes it in a directory that is empty or not there, as a tape
    /// whose beginning retention has removed, or resumes it as [`Writer::open`] does.
    ///
    /// The first unit is at the position of the origin, the first event has its ordinal, and every reader finds its
    /// definitions in the dictionary log. The writer of a new tape has the origin's epoch; each later opening has a
    /// later one, so who hands out epochs leaves room between them. A tape that is there is opened
    ///
    /// - with the same epoch: resumed, unless another epoch was asked for since;
    /// - with an epoch greater than that of every writer before: with exactly this epoch. A writer that still has the
    ///   tape is fenced ([`Error::Fenced`]): it publishes nothing more that a reader finds.
    ///
    /// The definitions of a tape that is there are those that it has; the origin's are checked and not compared.
    ///
    /// # Errors
    /// Fails if the origin is impossible, and with [`Error::BadDefinition`]. Fails with [`Error::OtherOrigin`],
    /// [`Error::EpochTaken`] or [`Error::Unfinished`] if the directory has such a tape, and as [`Writer::open`] does.
    pub fn open_at(
        dir: &Path,
        id: TapeId,
        origin: &TapeOrigin<'_>,
        options: WriterOptions,
    ) -> Result<(Self, RecoveryReport)> {
        check_segment_bytes(options.segment_bytes)?;
        origin.check(&options)?;
        Self::open_request(dir, id, Some(origin), options)
    }

    fn open_request(
        dir: &Path,
        id: TapeId,
        origin: Option<&TapeOrigin<'_>>,
        options: WriterOptions,
    ) -> Result<(Self, RecoveryReport)> {
        options.helpers.check()?;
        let (opened, lock) = recover::open(dir, &OpenRequest { id, origin, options: &options })?;
        let paths = opened.paths.clone();
        let past = opened.prior_state;
        match Self::start_helpers(opened, options) {
            Ok((mut writer, recovery)) => {
                writer.writer_lock = Some(lock);
                Ok((writer, recovery))
            }
            Err(e) => {
                past.restore(&paths, id, lock);
                Err(e)
            }
        }
    }

    /// Starts the helpers of a writer of an opened tape; the caller has the lock.
    fn start_helpers(opened: recover::OpenedTape, options: WriterOptions) -> Result<(Self, RecoveryReport)> {
        let recover::OpenedTape {
            paths,
            meta,
            recovery,
            hot_directory,
            segments_dir,
            making_dir: making,
            current_segment: current,
            lineage,
            prior_state: _,
        } = opened;
        let (end, ordinal) = (recovery.end_position, recovery.ordinal);
        let core = Arc::new(SharedWriterState::with_end(end, ordinal));
        let current = current.map(Arc::new);
        if let Some(segment) = &current
            && !options.writes_by_call()
        {
            segment.prefault(end.0 - segment.base_position.0, options.prefault_bytes);
        }
        *core.current.lock() = current.clone();
        let gates = GateSet::open(&paths, meta.id, end, &options.gates)?;
        let (state, keepers) = (StatePage::open(&paths)?, StatePage::open(&paths)?);
        state.set_end(end, ordinal);
        let is_hot = matches!(options.backing, Backing::Hot { .. });
        let recorder = if is_hot && options.recorder == RecorderLocation::External {
            None
        } else {
            let segment_locator = SegmentLocator::from_manifest(paths.clone(), meta);
            let mut recorder =
                TapeRecorder::open(segment_locator, options.sync_policy, half_window(&options))?;
            recorder.set_removal(options.removal_options.clone());
            recorder.set_writer_epoch(lineage.epoch);
            Some(RecorderThread::spawn(core.clone(), recorder, options.helpers.clone())?)
        };
        let preallocator = SegmentPreallocator::spawn(PreallocatorTask {
            shared_state: core.clone(),
            state_page: keepers,
            paths: paths.clone(),
            epoch: lineage.epoch,
            meta,
            making_dir: making.clone(),
            prefault_bytes: options.prefault_bytes,
            by_call: options.writes_by_call(),
            first_segment: end.0 / meta.segment_bytes + 1,
            helpers: options.helpers.clone(),
        });
        // Without a writer nobody would end the recorder, and its lock would stay.
        let preallocator = preallocator.inspect_err(|_| core.abandon.store(true, Ordering::Relaxed))?;
        let writer = Self {
            fork_word: core.fork.fork_word(),
            shared_state: core,
            current_segment: current,
            end_position: end,
            ordinal,
            short_end: Position(0),
            open_bytes: 0,
            overflow_frames: Vec::new(),
            gates,
            meta,
            options,
            paths,
            segments_dir,
            making_dir: making,
            stash: Vec::new(),
            preallocator,
            recorder,
            state_page: state,
            hot_directory,
            lineage,
            writer_lock: None,
            found_closed: (recovery.was_closed && !recovery.was_created).then_some(end),
        };
        Ok((writer, recovery))
    }

    /// Returns the position after the last unit appended or claimed.
    pub fn end(&self) -> Position {
        self.end_position
    }

    /// Counts the non-META frames before [`Writer::end`].
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns the writer's epoch; see [`RecoveryReport::epoch`].
    pub fn epoch(&self) -> u64 {
        self.lineage.epoch
    }

    /// Returns the tape's manifest: its identity and segment size.
    pub fn meta(&self) -> TapeManifest {
        self.meta
    }

    /// Returns the present state of the gates, in the order in which the gates were declared.
    pub fn gates(&self) -> Vec<GateStatus> {
        self.gates.statuses()
    }

    /// Returns the position up to which the recorder has followed the tape. In a hot tape, the recorder has copied
    /// everything before it to the disk.
    pub fn recorded(&self) -> Position {
        // Acquire: pairs with the Release in `StatePage::set_recorded`.
        self.state_page.recorded_now()
    }

    /// Appends a unit of whole unstamped frames, the last with the flag `LAST`, and returns the position of the first
    /// frame. Makes no system call and no allocation while the unit fits the segment.
    ///
    /// # Errors
    /// Fails if the bytes are no such unit, if there is no room for a new segment, at a gate, or if a helper has failed
    /// since the last call. Then nothing was appended, and the writer can continue.
    #[inline]
    pub fn append(&mut self, unit: &[u8]) -> Result<Position> {
        // The path of nearly all units, with as little as possible between the call and the store that publishes.
        if let Some(header) = whole_unit(unit)
            && let Some((segment, offset)) = self.fast_path(unit.len() as u64)
        {
            // SAFETY: the unit is one frame (`whole_unit`), it fits (`fast_path`), and what is after the end is this
            // writer's alone: `&mut self`, the lock, and claims that end before it.
            unsafe { segment.write_and_commit(offset, header, unit) };
            let position = self.end_position;
            self.advance(unit.len() as u64, u64::from(!header.is_meta()));
            return Ok(position);
        }
        self.append_frames(unit)
    }

    /// Appends a unit of several frames, an empty unit, or a unit that begins a new segment.
    #[inline(never)] // would take the registers of the short way
    fn append_frames(&mut self, unit: &[u8]) -> Result<Position> {
        let (ordinals, last) = check_frames(unit, self.meta.segment_bytes)?;
        if !last {
            return Err(Error::BadUnit { offset: 0, reason: "the unit does not end with the flag LAST" });
        }
        self.discard_forgotten();
        let Some(offset) = self.find_room(unit.len() as u64)? else {
            return self.append_across(unit, ordinals);
        };
        let segment = self.current_segment();
        // SAFETY: the unit fits (`room`), it is whole frames (checked), and what is after the end is this
        // writer's alone: `&mut self`, the lock, and claims that end before it.
        unsafe { segment.write_frames(offset, unit, true) };
        segment.commit(offset, FrameHeader::read(unit));
        let position = self.end_position;
        self.advance(unit.len() as u64, ordinals);
        Ok(position)
    }

    /// Returns the data offset for `bytes` after the end in the current segment, or `None` if the segment lacks the
    /// room.
    ///
    /// # Errors
    /// Fails if a helper has failed since the last call, or at a gate.
    #[inline]
    pub(crate) fn find_room(&mut self, bytes: u64) -> Result<Option<u64>> {
        self.short_end = Position(0);
        self.shared_state.check_helpers(self.end_position)?;
        self.gates.admit_append(self.end_position, bytes, self.open_bytes)?;
        let Some(segment) = &self.current_segment else { return Ok(None) };
        let offset = self.end_position.0 - segment.base_position.0;
        with_committed_end(segment.ensure_reserved(offset + bytes), self.end_position)?;
        if self.open_bytes == 0 && self.overflow_frames.is_empty() {
            self.short_end = segment.base_position.plus(segment.ready()).min(self.gates.allowed_end());
        }
        Ok((bytes <= segment.data_bytes - offset).then_some(offset))
    }

    /// Returns the current segment and the data offset for `bytes` after the end, if nothing else needs a check.
    #[inline(always)] // all that most appends ask
    pub(crate) fn fast_path(&self, bytes: u64) -> Option<(&MappedSegment, u64)> {
        let segment = self.current_segment.as_deref()?;
        // Acquire: pairs with the Release in `SharedWriterState::raise`.
        let is_short =
            self.end_position.plus(bytes) <= self.short_end && self.fork_word.load(Ordering::Acquire) == WELL;
        is_short.then(|| (segment, self.end_position.0 - segment.base_position.0))
    }

    /// Notes that a draft or a batch has `bytes` after the end, or in `backup`.
    #[inline]
    pub(crate) fn set_open_bytes(&mut self, bytes: u64) {
        self.short_end = Position(0);
        self.open_bytes = bytes;
    }

    /// Returns the current segment. The caller must have found room in it with [`Writer::find_room`].
    #[inline]
    pub(crate) fn current_segment(&self) -> &MappedSegment {
        self.current_segment.as_ref().expect("a segment with room")
    }

    /// Discards a draft or batch that the caller forgot instead of dropping it.
    #[inline]
    pub(crate) fn discard_forgotten(&mut self) {
        if self.open_bytes > 0 || !self.overflow_frames.is_empty() {
            self.discard_open();
        }
    }

    /// Zeroes the bytes that a draft or a batch has written after the end.
    #[cold]
    pub(crate) fn discard_open(&mut self) {
        let length = std::mem::take(&mut self.open_bytes);
        self.overflow_frames.clear();
        if let Some(segment) = &self.current_segment
            && length > 0
            && self.shared_state.fork.check_process().is_ok()
        {
            // SAFETY: the range was found in the segment when it was given out; it lies after the committed end,
            // and the draft that had it is gone or going.
            unsafe { segment.draft(self.end_position.0 - segment.base_position.0 + 8, length as usize - 8) }
                .fill(0);
        }
    }

    /// Claims the next `bytes` of the tape, for whole units with `ordinals` non-META frames.
    ///
    /// Frames never cross a segment. If the claim does, the writer calls `frames_before(limit)`. It must return the
    /// greatest frame boundary of the claim that is at most `limit` bytes, and the number of non-META frames before it.
    ///
    /// # Errors
    /// Fails as [`Writer::append`] does; then the writer gives out no claim.
    pub fn claim(
        &mut self,
        bytes: u64,
        frames_before: impl FnMut(u64) -> (u64, u64),
        ordinals: u64,
    ) -> Result<Claim> {
        self.claim_as(bytes, frames_before, ordinals, self.options.writes_by_call())
    }

    fn claim_as(
        &mut self,
        bytes: u64,
        mut frames_before: impl FnMut(u64) -> (u64, u64),
        ordinals: u64,
        by_call: bool,
    ) -> Result<Claim> {
        self.discard_forgotten();
        self.shared_state.check_helpers(self.end_position)?;
        if bytes == 0 || !bytes.is_multiple_of(unitape_model::LINE as u64) {
            return Err(Error::BadUnit { offset: 0, reason: "a claim is some whole lines" });
        }
        self.short_end = Position(0);
        self.gates.admit_append(self.end_position, bytes, 0)?;
        let (first, rest, current, end) = self.cut_claim(bytes, &mut frames_before)?;
        // Relaxed: only this thread adds; `close` pairs with the subtraction.
        self.shared_state.outstanding.fetch_add(1, Ordering::Relaxed);
        let claim = Claim::new(self.shared_state.clone(), first, rest, by_call);
        if self.current_segment.as_ref().is_none_or(|c| c.segment_index != current.segment_index) {
            self.set_current(current);
        }
        let claimed_bytes = end.0 - self.end_position.0;
        self.advance(claimed_bytes, ordinals);
        Ok(claim)
    }

    /// Returns whether this process opened the writer.
    #[inline(always)] // two instructions
    pub(crate) fn is_ours(&self) -> bool {
        // Relaxed: the kernel clears the word before a child runs.
        self.fork_word.load(Ordering::Relaxed) != 0
    }

    /// Returns the error of a forked child process.
    #[cold]
    pub(crate) fn refuse_child(&self) -> Result<Position> {
        self.shared_state.fork.check_process().map(|()| self.end())
    }

    #[inline]
    pub(crate) fn advance(&mut self, bytes: u64, ordinals: u64) {
        self.end_position = self.end_position.plus(bytes);
        self.ordinal += ordinals;
        // Relaxed: hints to the helpers.
        self.shared_state.ordinal.store(self.ordinal, Ordering::Relaxed);
        self.shared_state.end.store(self.end_position.0, Ordering::Relaxed);
    }

    #[cold]
    fn append_across(&mut self, unit: &[u8], ordinals: u64) -> Result<Position> {
        let before = |limit: u64| {
            let mut cut = (0, 0);
            for (offset, header, frame) in unitape_model::frames(unit) {
                let frame_end = (offset + frame.len()) as u64;
                if frame_end > limit {
                    break;
                }
                cut = (frame_end, cut.1 + u64::from(!header.is_meta()));
            }
            cut
        };
        // Not by calls: a call may fail, and an append that has its place must not.
        let mut claim = self.claim_as(unit.len() as u64, before, ordinals, false)?;
        let position = claim.write_frames(unit)?;
        claim.publish();
        Ok(position)
    }

    /// Cuts a claim into pieces, one a segment; changes nothing but the stash.
    #[allow(clippy::type_complexity)] // first piece, others, the segment of the last, the end
    fn cut_claim(
        &mut self,
        bytes: u64,
        frames_before: &mut dyn FnMut(u64) -> (u64, u64),
    ) -> Result<(ClaimPiece, Vec<ClaimPiece>, Arc<MappedSegment>, Position)> {
        let mut claimed_bytes = 0;
        let mut cut_ordinals = 0;
        let mut pieces: Option<(ClaimPiece, Vec<ClaimPiece>)> = None;
        let mut current = self.current_segment.clone();
        let mut claim_end = self.end_position;
        loop {
            let segment = match current.take().filter(|s| claim_end < s.end_position()) {
                Some(segment) => segment,
                None => match self
                    .place_segment(claim_end.0 / self.meta.segment_bytes, self.ordinal + cut_ordinals)
                {
                    Ok(segment) => segment,
                    Err(e) => return self.undo_claim(pieces, e),
                },
            };
            let data_offset = claim_end.0 - segment.base_position.0;
            let room = segment.data_bytes - data_offset;
            let (length, needs_pad) = if bytes - claimed_bytes <= room {
                (bytes - claimed_bytes, false)
            } else {
                let (cut, ordinals) = frames_before(claimed_bytes + room);
                let right = cut >= claimed_bytes
                    && cut <= claimed_bytes + room
                    && (data_offset > 0 || cut > claimed_bytes);
                if !right {
                    let reason = "a frame longer than a segment, or a boundary beyond the limit";
                    return self.undo_claim(pieces, Error::BadUnit { offset: cut, reason });
                }
                cut_ordinals = ordinals;
                (cut - claimed_bytes, cut - claimed_bytes < room)
            };
            claimed_bytes += length;
            claim_end = if needs_pad { segment.end_position() } else { claim_end.plus(length) };
            let reserved_end = segment.ensure_reserved(data_offset + length);
            let piece = ClaimPiece { segment: segment.clone(), data_offset, length, needs_pad };
            match &mut pieces {
                None => pieces = Some((piece, Vec::new())),
                Some((_, rest)) => rest.push(piece),
            }
            if let Err(e) = reserved_end {
                drop(segment);
                return self.undo_claim(pieces, e);
            }
            if claimed_bytes == bytes {
                let (first, rest) = pieces.expect("pushed above");
                return Ok((first, rest, segment, claim_end));
            }
            current = Some(segment);
        }
    }

    /// Keeps segments that were taken for a claim that failed for the next one that needs them.
    fn undo_claim<T>(&mut self, pieces: Option<(ClaimPiece, Vec<ClaimPiece>)>, error: Error) -> Result<T> {
        let current_index = self.current_segment.as_ref().map(|s| s.segment_index);
        let mut segments: Vec<Arc<MappedSegment>> = Vec::new();
        if let Some((first, rest)) = pieces {
            segments.extend(std::iter::once(first).chain(rest).map(|p| p.segment));
        }
        for segment in segments {
            if Some(segment.segment_index) != current_index
                && let Some(segment) = Arc::into_inner(segment)
            {
                self.stash.push(segment);
            }
        }
        with_committed_end(Err(error), self.end_position)
    }

    /// Puts segment `index` in its place: one prepared by the preallocator, or made now.
    #[cold]
    fn place_segment(&mut self, index: u64, first_ordinal: u64) -> Result<Arc<MappedSegment>> {
        self.stay_newest()?;
        self.await_window(index)?;
        // A small segment is made sooner than a thread is woken.
        let large = self.meta.segment_bytes >= 1 << 20;
        loop {
            // Before the channel: what the preallocator hands over in between is in it then.
            let making = large && self.shared_state.making.load(Ordering::Relaxed) == index;
            while let Ok(segment) = self.preallocator.prepared.try_recv() {
                self.take_prepared(segment, index)?;
            }
            if !making || self.stash.iter().any(|s| s.segment_index == index) {
                break;
            }
            // Twice the same work at once takes longer than waiting for it.
            self.preallocator.wake_thread();
            match self.preallocator.prepared.recv_timeout(KEEPER_WAIT) {
                Ok(segment) => self.take_prepared(segment, index)?,
                Err(_) => break,
            }
        }
        let header = SegmentHeader { meta: self.meta, index, first_ordinal };
        let mut segment = match self.stash.iter().position(|s| s.segment_index == index) {
            Some(i) => self.stash.swap_remove(i),
            None => {
                let path = self.making_dir.join(format!("making-{index:016x}"));
                MappedSegment::create(&path, &header, self.options.segment_allocation())?
            }
        };
        segment.write_header(&header);
        let path = segment_path(&self.segments_dir, index);
        if segment.path != path {
            sys::rename(&segment.path, &path).with_context("rename", &path)?;
            segment.path = path;
        }
        if large {
            self.preallocator.wake_thread();
        }
        Ok(Arc::new(segment))
    }

    /// Makes sure that no later writer has the tape, as after a lost lock or a restored machine; if one has, this writer
    /// appends nothing more.
    fn stay_newest(&self) -> Result<()> {
        let checked = check_newest(&self.paths, self.meta.id, self.lineage.epoch);
        checked.inspect_err(|e| {
            if let Some(e) = e.clone_fenced() {
                self.shared_state.raise(e, true);
                // It would continue to say where this writer's tape ends, and remove nothing it made.
                self.shared_state.stop_preallocator.store(true, Ordering::Relaxed);
            }
        })
    }

    fn take_prepared(&mut self, segment: MappedSegment, wanted: u64) -> Result<()> {
        if segment.segment_index < wanted {
            return remove(&segment.path);
        }
        self.stash.push(segment);
        Ok(())
    }

    /// Waits, in a hot tape, until the recorder is near enough for segment `index` to begin.
    fn await_window(&self, index: u64) -> Result<()> {
        if !matches!(self.options.backing, Backing::Hot { .. }) {
            return Ok(());
        }
        let needed = Position(index.saturating_sub(half_window(&self.options)) * self.meta.segment_bytes);
        // A claim larger than the window: the recorder cannot come further than the last position before it.
        let needed = needed.min(self.end_position);
        let mut since = None;
        while self.recorded() < needed {
            self.shared_state.check_helpers(self.end_position)?;
            if since.get_or_insert_with(Instant::now).elapsed() >= self.options.recorder_wait {
                let segment_start = Position(index * self.meta.segment_bytes);
                return Err(Error::RecorderBehind { recorded: self.recorded(), wanted: segment_start });
            }
            std::thread::park_timeout(Duration::from_micros(50));
        }
        Ok(())
    }

    fn set_current(&mut self, segment: Arc<MappedSegment>) {
        self.short_end = Position(0);
        *self.shared_state.current.lock() = Some(segment.clone());
        if let Some(full) = self.current_segment.replace(segment)
            && full.is_in_memory()
        {
            self.shared_state.released_mappings.keep_mapping(full);
        }
    }
}

/// How long a writer waits for a segment that the preallocator is making, before it makes one itself.
const KEEPER_WAIT: Duration = Duration::from_millis(100);
