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
    pub index: u64,
    /// Position of the first byte of data.
    pub base: Position,
    /// Bytes of data.
    pub size: u64,
    writable: bool,
    /// On a file system that lives in memory: its pages are there from the start and cost nothing to keep.
    in_memory: bool,
    /// The process whose reader's lock is on the file. A child that was forked has the same lock.
    held: Option<u32>,
    /// Its pages are in this process's page table, or will be soon.
    entered: bool,
    /// Data offset up to which the file has its blocks, as far as this process has reserved them.
    reserved: Arc<AtomicU64>,
}

/// How the memory of a new segment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentAllocation {
    /// All of it at once: mapped memory to be written to at any time.
    Ready,
    /// In a file system in memory, blocks a little ahead of who writes, and no pages: for who writes by calls.
    ByAndBy,
}

impl MappedSegment {
    /// Makes a zeroed segment file at `path` with its blocks reserved, and maps it.
    ///
    /// Reserving makes a full disk an error here, and never a signal in the middle of an append.
    pub fn create(path: &Path, header: &SegmentHeader, how: SegmentAllocation) -> Result<Self> {
        Self::create_unless(path, header, how, &|| false)
    }

    /// Makes a segment file as [`Self::create`] does, and gives up with an error when `stop` says so.
    pub fn create_unless(
        path: &Path,
        header: &SegmentHeader,
        how: SegmentAllocation,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let meta = header.meta;
        let made = (|| {
            let file = sys::make_file(path).with_context("create", path)?;
            let (map, in_memory);
            let mut reserved = meta.segment_bytes;
            if is_in_memory(&file) && how == SegmentAllocation::ByAndBy {
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
                let all = HEADER_PAGE + meta.segment_bytes;
                for from in (0..all).step_by(POPULATE_BYTES as usize) {
                    populate(&map, from, POPULATE_BYTES.min(all - from));
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
                data: DataPointer::of(&map),
                map: Arc::new(map),
                file: Arc::new(file),
                path: path.into(),
                index: header.index,
                base,
                size: meta.segment_bytes,
                writable: true,
                in_memory,
                held: None,
                entered: in_memory && how == SegmentAllocation::Ready,
                reserved: Arc::new(AtomicU64::new(reserved)),
            })
        })();
        match &made {
            Ok(segment) => segment.write_header(header),
            Err(_) => drop(sys::unlink(path)),
        }
        made
    }

    /// Maps an existing segment and checks its header page; gives its first ordinal too. `None`: no such file.
    pub fn open(path: &Path, meta: &TapeManifest, index: u64, writable: bool) -> Result<Option<(Self, u64)>> {
        let Some(segment) = Self::map(path, meta, index, writable)? else { return Ok(None) };
        let first_ordinal = segment.first_ordinal(meta)?;
        Ok(Some((segment, first_ordinal)))
    }

    /// Maps an existing segment and checks its length alone. `None`: no such file.
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
        let mut how = OpenOptions::new();
        how.read(true).write(writable);
        let opened = if writable { sys::open(path, &how) } else { how.open(path) };
        let file = match opened {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("open", path)?,
        };
        let length = file.metadata().with_context("look at", path)?.len();
        let wanted = HEADER_PAGE + size;
        // A page that is mapped but not in the file is a SIGBUS, so the size is checked first.
        if length < wanted {
            return Err(Error::damage(
                path,
                length,
                format!("the segment is cut short, it must have {wanted} bytes"),
            ));
        }
        let base = index.checked_mul(meta.segment_bytes);
        let base = base
            .map(Position)
            .ok_or_else(|| Error::damage(path, 0, "the segment's index is out of range"))?;
        let map = sys::map_part(&file, wanted as usize, writable).with_context("map", path)?;
        let in_memory = is_in_memory(&file);
        Ok(Some(Self {
            data: DataPointer::of(&map),
            map: Arc::new(map),
            file: Arc::new(file),
            path: path.into(),
            index,
            base,
            size,
            writable,
            in_memory,
            held: None,
            entered: false,
            reserved: Arc::new(AtomicU64::new(size)),
        }))
    }

    /// Checks the header page; gives the first ordinal.
    pub fn first_ordinal(&self, meta: &TapeManifest) -> Result<u64> {
        // SAFETY: the mapping has at least HEADER_PAGE bytes (checked when it was made). The page is written before
        // the file gets its name and, when a segment is taken over again, with the same fields; a hot segment is
        // held by the caller.
        let page = unsafe { std::slice::from_raw_parts(self.map.as_ptr(), HEADER_PAGE as usize) };
        SegmentHeader::check(page, meta, self.index, &self.path)
    }

    /// This segment's memory as another segment, under another name.
    pub fn reuse_as(&self, path: &Path, header: &SegmentHeader) -> Self {
        Self {
            map: self.map.clone(),
            data: self.data,
            file: self.file.clone(),
            path: path.into(),
            index: header.index,
            base: Position(header.index * header.meta.segment_bytes),
            size: self.size,
            writable: self.writable,
            in_memory: self.in_memory,
            held: None,
            entered: self.entered,
            reserved: self.reserved.clone(),
        }
    }

    /// A second view of this memory for another reader, which is done with it before this one goes.
    pub fn view(&self) -> Self {
        Self {
            map: self.map.clone(),
            file: self.file.clone(),
            path: self.path.clone(),
            reserved: self.reserved.clone(),
            writable: false,
            held: None,
            ..*self
        }
    }

    /// Maps a segment that waits to be used again, for writing; none if it is not of the right size, or not in
    /// memory, where there is nothing to be gained.
    pub fn map_spare(path: &Path, header: &SegmentHeader) -> Option<Self> {
        let mut segment = Self::map(path, &header.meta, header.index, true).ok()??;
        if !segment.in_memory || segment.map.len() as u64 != HEADER_PAGE + segment.size {
            return None;
        }
        populate(&segment.map, 0, segment.map.len() as u64);
        segment.entered = true;
        Some(segment)
    }

    /// Whether it is on a file system that lives in memory.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Which file it is.
    pub fn id(&self) -> Option<FileId> {
        self.file.metadata().ok().map(|m| FileId::from(&m))
    }

    /// Takes a reader's lock; false if the file is being made another segment.
    pub fn lock_shared(&mut self) -> bool {
        self.held = self.file.try_lock_shared().is_ok().then(std::process::id);
        self.held.is_some()
    }

    /// Without its lock, to be kept for when its file comes round again; none for one that was not locked.
    pub fn into_unlocked(mut self) -> Option<Self> {
        if self.held.take() != Some(std::process::id()) {
            return None;
        }
        self.unlock();
        Some(self)
    }

    /// Takes the lock that excludes readers; false if there is one.
    pub fn lock_exclusive(&self) -> bool {
        self.file.try_lock().is_ok()
    }

    /// Lets go of either lock.
    pub fn unlock(&self) {
        // It fails where there are no locks, and there nothing was taken.
        let _ = self.file.unlock();
    }

    /// Zeroes all data; only under the lock that excludes readers.
    pub fn zero(&self) {
        assert!(self.writable);
        // SAFETY: all of it lies in the writable mapping; nobody else has the file (the lock, and no name that is
        // a segment's), and the writer that filled it has published all of it.
        unsafe { std::ptr::write_bytes(self.data(0), 0, self.size as usize) };
    }

    /// Writes the header page; only before anything in the segment is committed.
    pub fn write_header(&self, header: &SegmentHeader) {
        assert!(self.writable);
        let bytes = header.encode();
        // SAFETY: the page is the first HEADER_PAGE bytes of a writable mapping (asserted), and no reader
        // looks at it: the file has no name yet, or nothing in it is committed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr(), bytes.len()) };
    }

    /// Makes sure that everything from data offset `at` on has blocks, which a closed tape gave back; only the
    /// sole writer, before it writes there, and nothing from there on is committed.
    pub fn reserve(&self, at: u64, how: SegmentAllocation) -> Result<()> {
        assert!(self.writable);
        let by_and_by = self.in_memory && how == SegmentAllocation::ByAndBy;
        let to = if by_and_by { self.size.min(at + AHEAD_BYTES) } else { self.size };
        sys::allocate(&self.file, HEADER_PAGE + at, to - at).with_context("reserve", &self.path)?;
        self.reserved.store(to, Ordering::Relaxed);
        Ok(())
    }

    /// Data offset up to which the writer may write, and may look beyond its last byte: a page beyond that has its
    /// block too.
    #[inline]
    pub fn ready(&self) -> u64 {
        // Relaxed: the blocks are the file's, and the call that reserved them orders all else.
        let reserved = self.reserved.load(Ordering::Relaxed);
        if reserved >= self.size { self.size } else { reserved.saturating_sub(4096) }
    }

    /// Makes sure that everything up to data offset `at` may be written.
    #[inline]
    pub fn ensure_reserved(&self, at: u64) -> Result<()> {
        if at.min(self.size) <= self.ready() { Ok(()) } else { self.have_to(at + STEP_BYTES) }
    }

    /// Reserves further ahead of a writer that is at data offset `at`. The writer reports a full disk.
    pub fn reserve_ahead(&self, at: u64) {
        if (at + AHEAD_BYTES).min(self.size) >= self.ready() + STEP_BYTES {
            _ = self.have_to(at + AHEAD_BYTES);
        }
    }

    #[cold]
    fn have_to(&self, at: u64) -> Result<()> {
        let at = (at + 4096).min(self.size);
        let from = self.reserved.load(Ordering::Relaxed);
        if from < at {
            sys::allocate(&self.file, HEADER_PAGE + from, at - from).with_context("reserve", &self.path)?;
            self.reserved.fetch_max(at, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes bytes to data offset `at` by a call, for who does not want their pages in its page table.
    ///
    /// Nobody else writes to the range, it is not committed, and no slice of it is lent.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        assert!(self.writable && at + bytes.len() as u64 <= self.size);
        sys::write_at(&self.file, bytes, HEADER_PAGE + at).with_context("write", &self.path)
    }

    /// Gives the blocks after the tape's end at data offset `at` back to the file system. The file keeps its
    /// size, because readers may have it mapped, and the page with the word at the end, at which they look.
    pub fn free_blocks_after(&self, at: u64) {
        let from = (HEADER_PAGE + at + 1).next_multiple_of(4096);
        let to = HEADER_PAGE + self.size;
        if from < to {
            sys::punch(&self.file, from, to - from);
        }
    }

    /// Position after the last byte of data.
    pub fn end(&self) -> Position {
        self.base.plus(self.size)
    }

    /// Pointer to the byte at data offset `at`.
    #[inline]
    fn data(&self, at: u64) -> *mut u8 {
        debug_assert!(at <= self.size);
        // SAFETY: the mapping has HEADER_PAGE + size bytes and every caller checks `at <= size`.
        unsafe { self.data.0.add(at as usize) }
    }

    /// The word at data offset `at`.
    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at < self.size && at.is_multiple_of(LINE as u64));
        // SAFETY: the word lies in the mapping (asserted), is 64-byte aligned because the mapping is
        // page-aligned, lives as long as `self`, and is accessed atomically while it may change.
        unsafe { AtomicU64::from_ptr(self.data(at).cast()) }
    }

    /// Looks at what is committed at data offset `at`; everything in a frame seen may be read.
    #[inline]
    pub fn look(&self, at: u64) -> HeaderWordState {
        match lines::look::<{ flaw::NONE }>(self, self.base, self.size, at) {
            HeaderWordState::Damage(header) if is_filler(header, self.base, at, self.size) => {
                HeaderWordState::Frame(header)
            }
            seen => seen,
        }
    }

    /// Bytes of the filler with which the segment begins; 0 where it begins with a frame.
    pub fn filler_bytes(&self) -> u64 {
        let mut at = 0;
        while let HeaderWordState::Frame(header) = self.look(at)
            && header.kind() == KIND_PAD
        {
            at += header.len_bytes() as u64;
        }
        at
    }

    /// The event time of the frame at data offset `at`, if such a frame has one; `header` was seen committed there.
    #[inline]
    pub fn event_time(&self, at: u64, header: FrameHeader) -> Option<i64> {
        // SAFETY: the frame was seen committed at `at`, and it has a whole line.
        let time = || unsafe { self.bytes(at + TIME_OFFSET, 8) };
        has_time(header).then(|| i64::from_le_bytes(time().try_into().expect("eight bytes")))
    }

    /// Walks plain events from data offset `at`: committed, with a time that is not 0 and that the merge believed. Gives the
    /// offset of the first frame that is none, or that begins at `before` or after it. `visit` gets the header, the time
    /// and the end of each.
    #[inline(always)]
    pub fn walk_plain_events(
        &self,
        at: u64,
        before: u64,
        mut visit: impl FnMut(FrameHeader, i64, u64),
    ) -> u64 {
        const ODD: u8 = flags::META | flags::CLOCK_AHEAD;
        let limits = WalkLimits { begin_before: before.min(self.size), end: self.size };
        lines::walk(self, self.base, at, limits, |header, at, end| {
            // SAFETY: `walk` saw the frame committed at `at`, and it has a whole line.
            let time = unsafe { self.bytes(at + TIME_OFFSET, 8) };
            let time = i64::from_le_bytes(time.try_into().expect("eight bytes"));
            let kind = header.kind().wrapping_sub(FIRST_EVENT);
            let plain = header.flags() & ODD == 0 && kind < KIND_MESSAGE - FIRST_EVENT && time != 0;
            if plain {
                visit(header, time, end);
            }
            plain
        })
    }

    /// Looks at data offset `at`; only a frame that ends at data offset `limit` or before it counts.
    #[inline]
    pub fn look_within(&self, at: u64, limit: u64) -> HeaderWordState {
        lines::look::<{ flaw::NONE }>(self, self.base, limit, at)
    }

    /// Copies one frame to data offset `at` and publishes it.
    ///
    /// # Safety
    /// - The segment is writable, `at + frame.len() <= size`, and `at` is a multiple of the line.
    /// - `frame` is one whole frame with this header.
    /// - Nobody else writes to the range, and it is not committed.
    #[inline]
    pub unsafe fn put_and_commit(&self, at: u64, header: FrameHeader, frame: &[u8]) {
        debug_assert!(self.writable && at.is_multiple_of(LINE as u64));
        // SAFETY: the contract of this function has each point of `fill`'s: the range is in the segment, whole, and written
        // by nobody else. `commit` stores the header word after it.
        unsafe { self.fill(at + 8, &frame[8..]) };
        self.commit(at, header);
    }

    /// Publishes everything written from data offset `at` on by storing its header word.
    #[inline]
    pub fn commit(&self, at: u64, header: FrameHeader) {
        lines::commit::<{ flaw::NONE }>(self, self.base, at, header);
    }

    /// Copies frames to data offset `at`, stamping each; leaves out the first header if `hold` is set.
    ///
    /// # Safety
    /// - `at + frames.len() <= size`, and `at` is a multiple of the line.
    /// - `frames` is a run of whole frames (checked by `check_frames`).
    /// - Nobody else writes to the range, and it is not committed.
    #[inline]
    pub unsafe fn put(&self, at: u64, frames: &[u8], hold: bool) {
        debug_assert!(self.writable && at + frames.len() as u64 <= self.size);
        // SAFETY: the caller's duties are those of `lines::install`.
        unsafe { lines::put::<{ flaw::NONE }>(self, self.base, at, frames, hold) };
    }

    /// Copies committed bytes unchanged to data offset `at`, the first word last.
    ///
    /// # Safety
    /// - `at + bytes.len() <= size`, both multiples of the line, `bytes` not empty.
    /// - Nobody else writes to the range, and it is not committed in this file.
    pub unsafe fn copy_in(&self, at: u64, bytes: &[u8]) {
        assert!(self.writable && at + bytes.len() as u64 <= self.size);
        // SAFETY: the range lies in the mapping (asserted); the rest are the caller's duties.
        unsafe { lines::copy_in::<{ flaw::NONE }>(self, at, bytes) };
    }

    /// Committed bytes from data offset `at`.
    ///
    /// # Safety
    /// - `at + length <= size`, and `look` has shown the range to be committed.
    #[inline]
    pub unsafe fn bytes(&self, at: u64, length: usize) -> &[u8] {
        debug_assert!(at + length as u64 <= self.size);
        // SAFETY: `at + length <= size`, so the range is in the mapping; `look` has shown it to be committed, and committed
        // bytes never change.
        unsafe { std::slice::from_raw_parts(self.data(at), length) }
    }

    /// Memory from data offset `at` to write to, before it is committed.
    ///
    /// # Safety
    /// - `at + length <= size`.
    /// - The range lies after the committed end, holds no word that a reader looks at (the header word of the
    ///   first frame after the end), and nobody else writes to it while the slice lives.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the memory is shared, and the range is the caller's alone")]
    pub unsafe fn draft(&self, at: u64, length: usize) -> &mut [u8] {
        debug_assert!(self.writable && at + length as u64 <= self.size);
        // SAFETY: `at + length <= size` in a writable mapping; no reader looks after the committed end, and by the contract
        // nobody else writes there while the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.data(at), length) }
    }

    /// Writes a frame's header word that is reached only through an earlier one, which is stored later.
    #[inline]
    pub fn stamp(&self, at: u64, header: FrameHeader) {
        lines::stamp(self, self.base, at, header);
    }

    /// First data offset at or after `at` that holds a byte other than zero. Nobody may be writing.
    pub fn first_nonzero(&self, at: u64) -> Option<u64> {
        let mut at = at;
        loop {
            // A hole is skipped, not read: reading one in shared memory would fill it.
            at = at.max(next_data(&self.file, HEADER_PAGE + at)?.saturating_sub(HEADER_PAGE));
            if at >= self.size {
                return None;
            }
            let length = (self.size - at).min(SCAN - at % SCAN);
            // SAFETY: in the mapping, and by the caller's word nobody writes.
            let page = unsafe { self.bytes(at, length as usize) };
            if let Some(i) = page.iter().position(|&b| b != 0) {
                return Some(at + i as u64);
            }
            at += length;
        }
    }

    /// Zeroes everything from data offset `at` on; only the sole writer, above the committed end.
    pub fn zero_from(&self, at: u64) {
        assert!(self.writable);
        let mut at = at;
        while let Some(found) = self.first_nonzero(at) {
            let length = (self.size - found).min(4096 - found % 4096);
            // SAFETY: the range lies in the mapping; above the committed end only this writer touches it.
            unsafe { std::ptr::write_bytes(self.data(found), 0, length as usize) };
            at = found + length;
        }
    }

    /// Stores one word of each page of the header and the first `bytes` of data again, so that the next flush writes
    /// all of them; only the sole writer, before it appends.
    pub fn rewrite_pages(&self, bytes: u64) {
        assert!(self.writable && bytes <= self.size);
        for page in (0..HEADER_PAGE + bytes).step_by(4096) {
            // SAFETY: within the mapping (asserted), aligned; nobody writes there, readers see the same bytes.
            unsafe {
                let word = self.map.as_mut_ptr().add(page as usize).cast::<u64>();
                word.write_volatile(word.read_volatile());
            }
        }
    }

    /// Faults in the pages of `length` bytes from data offset `at` for writing, as a hint; in memory all from
    /// there on.
    pub fn prefault(&self, at: u64, length: u64) {
        let from = (HEADER_PAGE + at) & !4095;
        if self.in_memory && self.entered {
            return;
        }
        let length = if self.in_memory { self.size } else { length };
        let to = (HEADER_PAGE + at.saturating_add(length)).min(HEADER_PAGE + self.size);
        if self.writable && to > from {
            populate(&self.map, from, to - from);
        }
    }

    /// Enters the pages from data offset `at` on into this process's page table, soon and as a hint: for a reader
    /// that is about to read them.
    pub fn enter_pages(&mut self, at: u64) {
        // Entering a hole would fill it.
        let whole = || self.file.metadata().is_ok_and(|m| m.blocks() * 512 >= m.len());
        if self.in_memory && !self.writable && !self.entered && whole() {
            prefault::request(&self.map, HEADER_PAGE + at);
            self.entered = at == 0;
        }
    }

    /// Says that it will be read once, from its start to its end.
    pub fn read_once(&self) {
        advise_once(&self.map);
    }

    /// Whether the file still has a name.
    pub fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() > 0)
    }

    /// Asks the processor for the line at data offset `at`.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        if at < self.size {
            prefetch(self.data(at));
        }
    }
}

/// Where the data of a mapped segment begin; beside the mapping, so that an append does not go through it.
#[derive(Clone, Copy, Debug)]
struct DataPointer(*mut u8);

impl DataPointer {
    fn of(map: &MmapRaw) -> Self {
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
        if self.held.is_some_and(|pid| pid == std::process::id()) {
            self.unlock();
        }
    }
}

impl SharedMemory for MappedSegment {
    #[inline]
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.word(at).load(order)
    }

    #[inline]
    fn store(&self, at: u64, value: u64, order: Ordering) {
        assert!(self.writable);
        self.word(at).store(value, order);
    }

    #[inline]
    unsafe fn fill(&self, at: u64, bytes: &[u8]) {
        debug_assert!(self.writable && at + bytes.len() as u64 <= self.size);
        // SAFETY: the range lies in the mapping and is the caller's alone by its duties; the mapping is never
        // handed out mutably, so it cannot overlap `bytes`.
        unsafe { copy(bytes.as_ptr(), self.data(at), bytes.len()) };
    }
}

/// Whether a frame with this header has an event time: one of the kinds from the first event to the message of a user.
#[inline]
fn has_time(header: FrameHeader) -> bool {
    !header.is_meta() && (FIRST_EVENT..KIND_MESSAGE).contains(&header.kind())
}

/// The least number of a kind of events.
const FIRST_EVENT: u8 = EventKind::EVENTS[0] as u8;

/// Offset of the event time in an event's frame.
const TIME_OFFSET: u64 = unitape_model::schema::at::TS_EVENT as u64;

/// Bytes that have their blocks ahead of who writes, where they are reserved by and by, and how many at least are
/// reserved at once.
const AHEAD_BYTES: u64 = 8 << 20;
const STEP_BYTES: u64 = 2 << 20;

/// Bytes whose pages are faulted in between two questions whether they are still wanted: a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// Bytes looked at between two questions where the next hole is: a page, the smallest hole.
const SCAN: u64 = 4096;
