//! A mapped segment, and the only place that touches its memory.
//!
//! Everything here rests on the tape's one rule: bytes below the committed end never change, and bytes above
//! it are looked at through the header word only. The rule's own code is in [`crate::lockfree::lines`].

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use unitape_model::{EventKind, FrameHeader, LINE, Position, flags, frame::KIND_PAD, message::KIND_MESSAGE};

use crate::disk::filler::is_filler;
use crate::disk::layout::{HEADER_PAGE, SegmentHeader, TapeManifest};
use crate::disk::memory::{
    FileId, advise_huge, advise_once, copy, is_in_memory, next_data, populate, prefetch,
};
use crate::disk::{prefault, sys};
use crate::error::{Error, FileContext, Result};
pub(crate) use crate::lockfree::lines::HeaderWordState;
use crate::lockfree::lines::WalkLimits;
use crate::lockfree::{SharedMemory, flaw, lines};

/// One segment file in memory.
#[derive(Debug)]
pub(crate) struct MappedSegment {
    map: Arc<MmapRaw>,
    data: DataPointer,
    pub file: Arc<File>,
    pub path: PathBuf,
    pub segment_index: u64,
    /// Position of the first byte of data.
    pub base_position: Position,
    /// Bytes of data.
    pub data_bytes: u64,
    writable: bool,
    /// On a file system that lives in memory: its pages are there from the start and cost nothing to keep.
    in_memory: bool,
    /// The process whose reader's lock is on the file. A child that was forked has the same lock.
    lock_pid: Option<u32>,
    /// The segment's pages are in this process's page table, or will be soon.
    entered: bool,
    /// The file had the name `path` when it was mapped. False also where the file system gives a file another identity
    /// by its name than by its descriptor.
    was_named: bool,
    /// Data offset up to which the file has its blocks, as far as this process has reserved them.
    reserved_bytes: Arc<AtomicU64>,
}

/// How the memory of a new segment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentAllocation {
    /// All of it at once: mapped memory to be written to at any time.
    Ready,
    /// In a file system in memory: reserve blocks a little ahead of the writer, and no pages. For a writer that writes
    /// by system calls.
    ByAndBy,
}

impl MappedSegment {
    /// Makes a zeroed segment file at `path` with its blocks reserved, and maps it.
    ///
    /// Reserving makes a full disk an error here, and never a signal in the middle of an append.
    pub fn create(path: &Path, header: &SegmentHeader, allocation: SegmentAllocation) -> Result<Self> {
        Self::create_unless(path, header, allocation, &|| false)
    }

    /// Makes a segment file as [`Self::create`] does. Fails early if `stop` returns true.
    pub fn create_unless(
        path: &Path,
        header: &SegmentHeader,
        allocation: SegmentAllocation,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let meta = header.meta;
        let map_result = (|| {
            let file = sys::make_file(path).with_context("create", path)?;
            let (map, in_memory);
            let mut reserved = meta.segment_bytes;
            if is_in_memory(&file) && allocation == SegmentAllocation::ByAndBy {
                sys::set_len(&file, HEADER_PAGE + meta.segment_bytes).with_context("stretch", path)?;
                reserved = reserved.min(AHEAD_BYTES);
                sys::allocate(&file, 0, HEADER_PAGE + reserved).with_context("reserve", path)?;
                map = sys::map(&file).with_context("map", path)?;
                in_memory = true;
            } else if is_in_memory(&file) {
                // Faulted in first, so that they may be huge pages; reserving takes them one by one.
                sys::set_len(&file, HEADER_PAGE + meta.segment_bytes).with_context("stretch", path)?;
                map = sys::map(&file).with_context("map", path)?;
                advise_huge(&map);
                let file_bytes = HEADER_PAGE + meta.segment_bytes;
                for from in (0..file_bytes).step_by(POPULATE_BYTES as usize) {
                    populate(&map, from, POPULATE_BYTES.min(file_bytes - from));
                    if stop() {
                        return Err(std::io::Error::from(std::io::ErrorKind::Interrupted))
                            .with_context("make", path);
                    }
                }
                sys::allocate(&file, 0, HEADER_PAGE + meta.segment_bytes).with_context("reserve", path)?;
                in_memory = true;
            } else {
                sys::allocate(&file, 0, HEADER_PAGE + meta.segment_bytes).with_context("reserve", path)?;
                map = sys::map(&file).with_context("map", path)?;
                in_memory = false;
            }
            let base = Position(header.index * meta.segment_bytes);
            Ok(Self {
                data: DataPointer::from_map(&map),
                map: Arc::new(map),
                file: Arc::new(file),
                path: path.into(),
                segment_index: header.index,
                base_position: base,
                data_bytes: meta.segment_bytes,
                writable: true,
                in_memory,
                lock_pid: None,
                entered: in_memory && allocation == SegmentAllocation::Ready,
                was_named: false,
                reserved_bytes: Arc::new(AtomicU64::new(reserved)),
            })
        })();
        match &map_result {
            Ok(segment) => segment.write_header(header),
            Err(_) => drop(sys::unlink(path)),
        }
        map_result
    }

    /// Maps an existing segment, checks its header page, and returns it with its first ordinal. Returns `None` if there
    /// is no such file.
    pub fn open(path: &Path, meta: &TapeManifest, index: u64, writable: bool) -> Result<Option<(Self, u64)>> {
        let Some(segment) = Self::map(path, meta, index, writable)? else { return Ok(None) };
        let first_ordinal = segment.first_ordinal(meta)?;
        Ok(Some((segment, first_ordinal)))
    }

    /// Maps an existing segment and checks only its length. Returns `None` if there is no such file.
    pub fn map(path: &Path, meta: &TapeManifest, index: u64, writable: bool) -> Result<Option<Self>> {
        Self::map_cut(path, meta, index, writable, meta.segment_bytes)
    }

    /// Maps the first `size` bytes of a segment's data, as [`Self::map`] maps all of them.
    pub fn map_cut(
        path: &Path,
        meta: &TapeManifest,
        index: u64,
        writable: bool,
        size: u64,
    ) -> Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(writable);
        let open_result = if writable { sys::open(path, &options) } else { options.open(path) };
        let file = match open_result {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("open", path)?,
        };
        let file_meta = file.metadata().with_context("look at", path)?;
        let (length, file_bytes) = (file_meta.len(), HEADER_PAGE + size);
        // A page that is mapped but not in the file is a SIGBUS, so the size is checked first.
        if length < file_bytes {
            return Err(Error::damage(
                path,
                length,
                format!("the segment is cut short, it must have {file_bytes} bytes"),
            ));
        }
        let base = index.checked_mul(meta.segment_bytes);
        let base = base
            .map(Position)
            .ok_or_else(|| Error::damage(path, 0, "the segment's index is out of range"))?;
        let map = sys::map_part(&file, file_bytes as usize, writable).with_context("map", path)?;
        let in_memory = is_in_memory(&file);
        Ok(Some(Self {
            data: DataPointer::from_map(&map),
            map: Arc::new(map),
            file: Arc::new(file),
            path: path.into(),
            segment_index: index,
            base_position: base,
            data_bytes: size,
            writable,
            in_memory,
            lock_pid: None,
            entered: false,
            was_named: FileId::from_target(path) == Some(FileId::from(&file_meta)),
            reserved_bytes: Arc::new(AtomicU64::new(size)),
        }))
    }

    /// Checks the header page and returns the first ordinal.
    pub fn first_ordinal(&self, meta: &TapeManifest) -> Result<u64> {
        // SAFETY: the mapping has at least HEADER_PAGE bytes (checked when it was made). The page is written before
        // the file gets its name and, when a segment is taken over again, with the same fields; a hot segment is
        // held by the caller.
        let page = unsafe { std::slice::from_raw_parts(self.map.as_ptr(), HEADER_PAGE as usize) };
        SegmentHeader::check(page, meta, self.segment_index, &self.path)
    }

    /// Returns a segment that uses this segment's memory under another name and header.
    pub fn reuse_as(&self, path: &Path, header: &SegmentHeader) -> Self {
        Self {
            map: self.map.clone(),
            data: self.data,
            file: self.file.clone(),
            path: path.into(),
            segment_index: header.index,
            base_position: Position(header.index * header.meta.segment_bytes),
            data_bytes: self.data_bytes,
            writable: self.writable,
            in_memory: self.in_memory,
            lock_pid: None,
            entered: self.entered,
            was_named: self.was_named,
            reserved_bytes: self.reserved_bytes.clone(),
        }
    }

    /// Returns a second view of this memory for another reader. The view must end before this segment does.
    pub fn view(&self) -> Self {
        Self {
            map: self.map.clone(),
            file: self.file.clone(),
            path: self.path.clone(),
            reserved_bytes: self.reserved_bytes.clone(),
            writable: false,
            lock_pid: None,
            ..*self
        }
    }

    /// Maps a spare segment for writing. Returns `None` if it does not have the right size, or if it is not in memory,
    /// where reuse gains nothing.
    pub fn map_spare(path: &Path, header: &SegmentHeader) -> Option<Self> {
        let mut segment = Self::map(path, &header.meta, header.index, true).ok()??;
        if !segment.in_memory || segment.map.len() as u64 != HEADER_PAGE + segment.data_bytes {
            return None;
        }
        populate(&segment.map, 0, segment.map.len() as u64);
        segment.entered = true;
        Some(segment)
    }

    /// Returns whether the file is on a file system in memory.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Returns the identity of the mapped file, or `None` if the system does not tell.
    pub fn id(&self) -> Option<FileId> {
        self.file.metadata().ok().map(|m| FileId::from(&m))
    }

    /// Takes a reader's lock; false if the file is being made another segment.
    pub fn lock_shared(&mut self) -> bool {
        self.lock_pid = self.file.try_lock_shared().is_ok().then(std::process::id);
        self.lock_pid.is_some()
    }

    /// Releases the lock, so that the mapping can be kept until its file is used again. Returns `None` if this process
    /// had not locked it.
    pub fn into_unlocked(mut self) -> Option<Self> {
        if self.lock_pid.take() != Some(std::process::id()) {
            return None;
        }
        self.unlock_file();
        Some(self)
    }

    /// Takes the lock that excludes readers; false if there is one.
    pub fn lock_exclusive(&self) -> bool {
        self.file.try_lock().is_ok()
    }

    /// Lets go of either lock.
    pub fn unlock_file(&self) {
        // It fails where there are no locks, and there nothing was taken.
        let _ = self.file.unlock();
    }

    /// Zeroes all data; only under the lock that excludes readers.
    pub fn zero(&self) {
        assert!(self.writable);
        // SAFETY: all of it lies in the writable mapping; nobody else has the file (the lock, and no name that is
        // a segment's), and the writer that filled it has published all of it.
        unsafe { std::ptr::write_bytes(self.data(0), 0, self.data_bytes as usize) };
    }

    /// Writes the header page; only before anything in the segment is committed.
    pub fn write_header(&self, header: &SegmentHeader) {
        assert!(self.writable);
        let bytes = header.encode();
        // SAFETY: the page is the first HEADER_PAGE bytes of a writable mapping (asserted), and no reader
        // looks at it: the file has no name yet, or nothing in it is committed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr(), bytes.len()) };
    }

    /// Reserves the blocks from data offset `offset` on, which a closed tape gave back. Only the sole writer may call
    /// it, before it writes there, while nothing from there on is committed.
    pub fn reserve_blocks(&self, offset: u64, allocation: SegmentAllocation) -> Result<()> {
        assert!(self.writable);
        let by_and_by = self.in_memory && allocation == SegmentAllocation::ByAndBy;
        let reserve_end = if by_and_by { self.data_bytes.min(offset + AHEAD_BYTES) } else { self.data_bytes };
        sys::allocate(&self.file, HEADER_PAGE + offset, reserve_end - offset)
            .with_context("reserve", &self.path)?;
        self.reserved_bytes.store(reserve_end, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the data offset up to which the writer may write. The next page is reserved too, so the writer may look
    /// at the bytes that follow.
    #[inline]
    pub fn ready(&self) -> u64 {
        // Relaxed: the blocks are the file's, and the call that reserved them orders all else.
        let reserved = self.reserved_bytes.load(Ordering::Relaxed);
        if reserved >= self.data_bytes { self.data_bytes } else { reserved.saturating_sub(4096) }
    }

    /// Reserves blocks so that everything up to data offset `offset` may be written.
    #[inline]
    pub fn ensure_reserved(&self, offset: u64) -> Result<()> {
        if offset.min(self.data_bytes) <= self.ready() {
            Ok(())
        } else {
            self.reserve_to(offset + STEP_BYTES)
        }
    }

    /// Reserves blocks further ahead of a writer that is at data offset `offset`. The writer reports a full disk.
    pub fn reserve_ahead(&self, offset: u64) {
        if (offset + AHEAD_BYTES).min(self.data_bytes) >= self.ready() + STEP_BYTES {
            _ = self.reserve_to(offset + AHEAD_BYTES);
        }
    }

    #[cold]
    fn reserve_to(&self, offset: u64) -> Result<()> {
        let page_end = (offset + 4096).min(self.data_bytes);
        let reserved_end = self.reserved_bytes.load(Ordering::Relaxed);
        if reserved_end < page_end {
            sys::allocate(&self.file, HEADER_PAGE + reserved_end, page_end - reserved_end)
                .with_context("reserve", &self.path)?;
            self.reserved_bytes.fetch_max(page_end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes bytes to data offset `offset` by a system call, for a writer that does not want their pages in its page
    /// table.
    ///
    /// No other thread may write to the range, it must not be committed, and no slice of it may be lent.
    pub fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        assert!(self.writable && offset + bytes.len() as u64 <= self.data_bytes);
        sys::write_at(&self.file, bytes, HEADER_PAGE + offset).with_context("write", &self.path)
    }

    /// Gives the blocks after the tape's end at data offset `offset` back to the file system. The file keeps its size,
    /// because readers may have it mapped. It also keeps the page with the word at the end, which readers read.
    pub fn free_blocks_after(&self, offset: u64) {
        let page_start = (HEADER_PAGE + offset + 1).next_multiple_of(4096);
        let file_end = HEADER_PAGE + self.data_bytes;
        if page_start < file_end {
            sys::punch(&self.file, page_start, file_end - page_start);
        }
    }

    /// Returns the position after the last byte of data.
    pub fn end_position(&self) -> Position {
        self.base_position.plus(self.data_bytes)
    }

    /// Returns a pointer to the byte at data offset `offset`.
    #[inline]
    fn data(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset <= self.data_bytes);
        // SAFETY: the mapping has HEADER_PAGE + size bytes and every caller checks `offset <= size`.
        unsafe { self.data.0.add(offset as usize) }
    }

    /// Returns the word at data offset `offset`.
    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset < self.data_bytes && offset.is_multiple_of(LINE as u64));
        // SAFETY: the word lies in the mapping (asserted), is 64-byte aligned because the mapping is
        // page-aligned, lives as long as `self`, and is accessed atomically while it may change.
        unsafe { AtomicU64::from_ptr(self.data(offset).cast()) }
    }

    /// Returns the state of the header word at data offset `offset`. If it is a frame, the whole frame may be read.
    #[inline]
    pub fn header_state(&self, offset: u64) -> HeaderWordState {
        match lines::header_state::<{ flaw::NONE }>(self, self.base_position, self.data_bytes, offset) {
            HeaderWordState::Damage(header)
                if is_filler(header, self.base_position, offset, self.data_bytes) =>
            {
                HeaderWordState::Frame(header)
            }
            seen => seen,
        }
    }

    /// Counts the bytes of the filler at the start of the segment; 0 if the segment begins with a frame.
    pub fn filler_bytes(&self) -> u64 {
        let mut offset = 0;
        while let HeaderWordState::Frame(header) = self.header_state(offset)
            && header.kind() == KIND_PAD
        {
            offset += header.len_bytes() as u64;
        }
        offset
    }

    /// Returns the event time of the frame at data offset `offset`, if a frame of that kind has a time. The caller has
    /// seen `header` committed there.
    #[inline]
    pub fn event_time(&self, offset: u64, header: FrameHeader) -> Option<i64> {
        // SAFETY: the frame was seen committed at `offset`, and it has a whole line.
        let time = || unsafe { self.bytes(offset + TIME_OFFSET, 8) };
        has_time(header).then(|| i64::from_le_bytes(time().try_into().expect("eight bytes")))
    }

    /// Walks plain events from data offset `offset`: committed events with a time that is not 0 and that the merge
    /// believed. Returns the offset of the first other frame, or of the first frame at or after `before`. `visit` gets
    /// the header, the time and the end of each event.
    #[inline(always)]
    pub fn walk_plain_events(
        &self,
        offset: u64,
        before: u64,
        mut visit: impl FnMut(FrameHeader, i64, u64),
    ) -> u64 {
        const ODD: u8 = flags::META | flags::CLOCK_AHEAD;
        let limits = WalkLimits { begin_before: before.min(self.data_bytes), memory_bytes: self.data_bytes };
        lines::walk_frames(self, self.base_position, offset, limits, |header, frame_offset, end| {
            // SAFETY: `walk` saw the frame committed at `at`, and it has a whole line.
            let time = unsafe { self.bytes(frame_offset + TIME_OFFSET, 8) };
            let time = i64::from_le_bytes(time.try_into().expect("eight bytes"));
            let kind = header.kind().wrapping_sub(FIRST_EVENT);
            let is_plain_event = header.flags() & ODD == 0 && kind < KIND_MESSAGE - FIRST_EVENT && time != 0;
            if is_plain_event {
                visit(header, time, end);
            }
            is_plain_event
        })
    }

    /// Returns the state of the header word at data offset `offset`; a frame counts only if it ends at or before data
    /// offset `limit`.
    #[inline]
    pub fn look_within(&self, offset: u64, limit: u64) -> HeaderWordState {
        lines::header_state::<{ flaw::NONE }>(self, self.base_position, limit, offset)
    }

    /// Copies one frame to data offset `offset` and publishes it.
    ///
    /// # Safety
    /// - The segment is writable, `offset + frame.len() <= size`, and `offset` is a multiple of the line.
    /// - `frame` is one whole frame with this header.
    /// - Nobody else writes to the range, and it is not committed.
    #[inline]
    pub unsafe fn write_and_commit(&self, offset: u64, header: FrameHeader, frame: &[u8]) {
        debug_assert!(self.writable && offset.is_multiple_of(LINE as u64));
        // SAFETY: the contract of this function has each point of `fill`'s: the range is in the segment, whole, and written
        // by nobody else. `commit` stores the header word after it.
        unsafe { self.fill(offset + 8, &frame[8..]) };
        self.commit(offset, header);
    }

    /// Publishes everything written from data offset `offset` on by storing its header word.
    #[inline]
    pub fn commit(&self, offset: u64, header: FrameHeader) {
        lines::commit::<{ flaw::NONE }>(self, self.base_position, offset, header);
    }

    /// Copies frames to data offset `offset`, stamping each; leaves out the first header if `hold` is set.
    ///
    /// # Safety
    /// - `offset + frames.len() <= size`, and `offset` is a multiple of the line.
    /// - `frames` is a run of whole frames (checked by `check_frames`).
    /// - Nobody else writes to the range, and it is not committed.
    #[inline]
    pub unsafe fn write_frames(&self, offset: u64, frames: &[u8], hold: bool) {
        debug_assert!(self.writable && offset + frames.len() as u64 <= self.data_bytes);
        // SAFETY: the caller's duties are those of `lines::install`.
        unsafe { lines::write_frames::<{ flaw::NONE }>(self, self.base_position, offset, frames, hold) };
    }

    /// Copies committed bytes unchanged to data offset `offset`, the first word last.
    ///
    /// # Safety
    /// - `offset + bytes.len() <= size`, both multiples of the line, `bytes` not empty.
    /// - Nobody else writes to the range, and it is not committed in this file.
    pub unsafe fn copy_in(&self, offset: u64, bytes: &[u8]) {
        assert!(self.writable && offset + bytes.len() as u64 <= self.data_bytes);
        // SAFETY: the range lies in the mapping (asserted); the rest are the caller's duties.
        unsafe { lines::copy_in::<{ flaw::NONE }>(self, offset, bytes) };
    }

    /// Returns the committed bytes from data offset `offset`.
    ///
    /// # Safety
    /// - `offset + length <= size`, and `header_state` has shown the range to be committed.
    #[inline]
    pub unsafe fn bytes(&self, offset: u64, length: usize) -> &[u8] {
        debug_assert!(offset + length as u64 <= self.data_bytes);
        // SAFETY: `offset + length <= size`, so the range is in the mapping; `header_state` has shown it to be committed, and committed
        // bytes never change.
        unsafe { std::slice::from_raw_parts(self.data(offset), length) }
    }

    /// Returns memory from data offset `offset`, to be written before it is committed.
    ///
    /// # Safety
    /// - `offset + length <= size`.
    /// - The range lies after the committed end, holds no word that a reader looks at (the header word of the
    ///   first frame after the end), and nobody else writes to it while the slice lives.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the memory is shared, and the range is the caller's alone")]
    pub unsafe fn draft(&self, offset: u64, length: usize) -> &mut [u8] {
        debug_assert!(self.writable && offset + length as u64 <= self.data_bytes);
        // SAFETY: `offset + length <= size` in a writable mapping; no reader looks after the committed end, and by the contract
        // nobody else writes there while the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.data(offset), length) }
    }

    /// Writes a frame's header word that is reached only through an earlier one, which is stored later.
    #[inline]
    pub fn stamp_header(&self, offset: u64, header: FrameHeader) {
        lines::stamp_header(self, self.base_position, offset, header);
    }

    /// Returns the first data offset at or after `start` that holds a byte other than zero. No process may write
    /// meanwhile.
    pub fn first_nonzero(&self, start: u64) -> Option<u64> {
        let mut offset = start;
        loop {
            // A hole is skipped, not read: reading one in shared memory would fill it.
            offset = offset.max(next_data(&self.file, HEADER_PAGE + offset)?.saturating_sub(HEADER_PAGE));
            if offset >= self.data_bytes {
                return None;
            }
            let length = (self.data_bytes - offset).min(SCAN - offset % SCAN);
            // SAFETY: in the mapping, and by the caller's word nobody writes.
            let page = unsafe { self.bytes(offset, length as usize) };
            if let Some(i) = page.iter().position(|&b| b != 0) {
                return Some(offset + i as u64);
            }
            offset += length;
        }
    }

    /// Zeroes everything from data offset `start` on. Only the sole writer may call it, above the committed end.
    pub fn zero_from(&self, start: u64) {
        assert!(self.writable);
        let mut offset = start;
        while let Some(nonzero_offset) = self.first_nonzero(offset) {
            let length = (self.data_bytes - nonzero_offset).min(4096 - nonzero_offset % 4096);
            // SAFETY: the range lies in the mapping; above the committed end only this writer touches it.
            unsafe { std::ptr::write_bytes(self.data(nonzero_offset), 0, length as usize) };
            offset = nonzero_offset + length;
        }
    }

    /// Stores one word of each page of the header and the first `bytes` of data again, so that the next flush writes
    /// all of them; only the sole writer, before it appends.
    pub fn rewrite_pages(&self, bytes: u64) {
        assert!(self.writable && bytes <= self.data_bytes);
        for page in (0..HEADER_PAGE + bytes).step_by(4096) {
            // SAFETY: within the mapping (asserted), aligned; nobody writes there, readers see the same bytes.
            unsafe {
                let word = self.map.as_mut_ptr().add(page as usize).cast::<u64>();
                word.write_volatile(word.read_volatile());
            }
        }
    }

    /// Faults in the pages of `length` bytes from data offset `offset` for writing, as a hint; in memory all pages from
    /// there on.
    pub fn prefault(&self, offset: u64, length: u64) {
        let page_start = (HEADER_PAGE + offset) & !4095;
        if self.in_memory && self.entered {
            return;
        }
        let length = if self.in_memory { self.data_bytes } else { length };
        let page_end = (HEADER_PAGE + offset.saturating_add(length)).min(HEADER_PAGE + self.data_bytes);
        if self.writable && page_end > page_start {
            populate(&self.map, page_start, page_end - page_start);
        }
    }

    /// Enters the pages from data offset `offset` on into this process's page table, soon and as a hint: for a reader
    /// that is about to read them.
    pub fn enter_pages(&mut self, offset: u64) {
        // Entering a hole would fill it.
        let has_all_blocks = || self.file.metadata().is_ok_and(|m| m.blocks() * 512 >= m.len());
        if self.in_memory && !self.writable && !self.entered && has_all_blocks() {
            prefault::request(&self.map, HEADER_PAGE + offset);
            self.entered = offset == 0;
        }
    }

    /// Says that it will be read once, from its start to its end.
    pub fn read_once(&self) {
        advise_once(&self.map);
    }

    /// Returns whether the file still has a name.
    pub fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() > 0)
    }

    /// Returns whether the file still has the name under which it was mapped. Another name, which a backup made of hard
    /// links gives it, says nothing about the tape.
    pub fn has_name(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| {
            meta.nlink() > 0
                && (!self.was_named || FileId::from_target(&self.path) == Some(FileId::from(&meta)))
        })
    }

    /// Asks the processor for the line at data offset `offset`.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        if offset < self.data_bytes {
            prefetch(self.data(offset));
        }
    }
}

/// Where the data of a mapped segment begin; beside the mapping, so that an append does not go through it.
#[derive(Clone, Copy, Debug)]
struct DataPointer(*mut u8);

impl DataPointer {
    fn from_map(map: &MmapRaw) -> Self {
        Self(map.as_mut_ptr().wrapping_add(HEADER_PAGE as usize))
    }
}

// SAFETY: the pointer is into the mapping that is beside it in `MappedSegment`, which may be sent and shared itself and
// lives as long; what is done through it keeps to the rules of `lockfree::lines`.
unsafe impl Send for DataPointer {}
// SAFETY: as above.
unsafe impl Sync for DataPointer {}

impl Drop for MappedSegment {
    fn drop(&mut self) {
        // Not left to closing the file: a process that is being started by another thread of ours has a copy of
        // the descriptor for a moment, and would keep the lock.
        if self.lock_pid.is_some_and(|pid| pid == std::process::id()) {
            self.unlock_file();
        }
    }
}

impl SharedMemory for MappedSegment {
    #[inline]
    fn load(&self, offset: u64, order: Ordering) -> u64 {
        self.word(offset).load(order)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64, order: Ordering) {
        assert!(self.writable);
        self.word(offset).store(value, order);
    }

    #[inline]
    unsafe fn fill(&self, offset: u64, bytes: &[u8]) {
        debug_assert!(self.writable && offset + bytes.len() as u64 <= self.data_bytes);
        // SAFETY: the range lies in the mapping and is the caller's alone by its duties; the mapping is never
        // handed out mutably, so it cannot overlap `bytes`.
        unsafe { copy(bytes.as_ptr(), self.data(offset), bytes.len()) };
    }
}

/// Returns whether a frame with this header has an event time. All kinds from the first event up to user messages,
/// exclusive, have a time.
#[inline]
fn has_time(header: FrameHeader) -> bool {
    !header.is_meta() && (FIRST_EVENT..KIND_MESSAGE).contains(&header.kind())
}

/// The least number of a kind of events.
const FIRST_EVENT: u8 = EventKind::EVENTS[0] as u8;

/// Offset of the event time in an event's frame.
const TIME_OFFSET: u64 = unitape_model::schema::at::TS_EVENT as u64;

/// Bytes of reserved blocks ahead of a writer that reserves step by step, and the least number of bytes reserved at
/// once.
const AHEAD_BYTES: u64 = 8 << 20;
const STEP_BYTES: u64 = 2 << 20;

/// Bytes whose pages are faulted in between two questions whether they are still wanted: a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// Bytes looked at between two questions where the next hole is: a page, the smallest hole.
const SCAN: u64 = 4096;
