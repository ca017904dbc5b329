//! The file of a ring tape: one page of control, then the frames. Drawn in `docs/formats-tape.md`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, HEADER_PAGE, TapeId, read_start, remove};
use crate::disk::lock::lock_exclusive;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::lockfree::SharedMemory;
use crate::lockfree::ring::{RingGeometry, RingWriter, UnitMark, place};

/// Smallest ring; the greatest is 64 GiB.
pub const RING_CAPACITY_MIN: u64 = 16 << 10;
const RING_CAPACITY_MAX: u64 = 1 << 36;

const MAGIC: &[u8; 8] = b"UNITRING";

/// Offsets in the control page; those of the lock-free words are in `lockfree::ring::place`.
pub(super) mod offset {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const CAPACITY: usize = 32;
    pub const CRC: usize = 60;
    pub const END: usize = 64;
    /// Openings by a writer.
    pub const EPOCH: u64 = 384;
    /// Process id of the writer.
    pub const PID: u64 = 392;
    /// Identity of the machine's boot in which the ring was last written, two words.
    pub const BOOT: u64 = 400;
    /// Whether the writer closed: 1, otherwise 0.
    pub const CLOSED: u64 = 416;
    /// Epoch of the writer that emptied the ring last, after a restart of the machine; 0: none has.
    pub const EMPTIED_EPOCH: u64 = 424;
    /// Where it began.
    pub const EMPTIED_AT: u64 = 432;
}

const _: () = {
    assert!(offset::MAGIC == 0 && offset::VERSION == 8 && offset::TAPE == 16 && offset::CAPACITY == 32);
    assert!(offset::CRC == 60 && offset::END == 64 && offset::END as u64 <= place::INTENT);
    assert!(place::INTENT == 128 && place::END == 256 && offset::EPOCH == 384 && offset::PID == 392);
    assert!(offset::BOOT == 400 && offset::CLOSED == 416 && place::MARKS == 512);
    assert!(offset::EMPTIED_EPOCH == 424 && offset::EMPTIED_AT == 432);
    assert!(place::MARKS + 2 * place::STEPS * 16 == 1024 && 1024 <= HEADER_PAGE);
};

/// How a ring tape is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Bytes of frames, a power of two from 16 KiB to 64 GiB. A unit may have a quarter of it; up to a sixteenth
    /// is given up ahead of the writer. An existing ring must have the same.
    pub capacity_bytes: u64,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { capacity_bytes: 64 << 20 }
    }
}

/// A mapped ring.
#[derive(Debug)]
pub(super) struct RingFile {
    map: MmapRaw,
    pub file: File,
    pub path: PathBuf,
    pub id: TapeId,
    pub shape: RingGeometry,
    writable: bool,
    /// The process that opened it; a child that was forked has the same lock.
    pid: u32,
}

impl RingFile {
    /// Maps the ring at `path` and checks its page. `None`: no such file.
    pub fn open(path: &Path, writable: bool) -> Result<Option<Self>> {
        let mut how = OpenOptions::new();
        how.read(true).write(writable);
        let opened = if writable { sys::open(path, &how) } else { how.open(path) };
        let file = match opened {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("open", path)?,
        };
        let page = read_start(path, HEADER_PAGE).with_context("read", path)?;
        let (id, capacity) = check_page(&page, path)?;
        let shape = RingGeometry::new(HEADER_PAGE, capacity);
        let (length, wanted) = (file.metadata().with_context("look at", path)?.len(), HEADER_PAGE + capacity);
        // A page that is mapped but not in the file is a SIGBUS, so the size is checked first.
        if length != wanted {
            let what = format!(
                "the ring must have {wanted} bytes and has {length}; remove it and let its writer make it again"
            );
            return Err(Error::damage(path, length.min(wanted), what));
        }
        let map = sys::map_part(&file, wanted as usize, writable).with_context("map", path)?;
        Ok(Some(Self { map, file, path: path.into(), id, shape, writable, pid: std::process::id() }))
    }

    /// Makes an empty ring at `path`, locked; `None` if somebody else has made one meanwhile.
    pub fn create(path: &Path, id: TapeId, options: &RingOptions) -> Result<Option<Self>> {
        let temp = path.with_added_extension("making");
        let file = sys::open_or_make(&temp).with_context("create", &temp)?;
        if !try_lock(&file, &temp)? || !is_at(&file, &temp) {
            return Ok(None);
        }
        let made = Self::fill(&temp, file, id, options).and_then(|mut ring| {
            let begun = UnitMark { position: Position(0), ordinal: 0 };
            RingWriter::<_>::begin(&ring, ring.shape, begun);
            // Its name last, and never in the place of another: who finds the file finds a whole ring.
            match sys::link(&temp, path) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
                other => other.with_context("name", path)?,
            }
            ring.path = path.into();
            Ok(Some(ring))
        });
        remove(&temp)?;
        made
    }

    fn fill(temp: &Path, file: File, id: TapeId, options: &RingOptions) -> Result<Self> {
        let length = HEADER_PAGE + options.capacity_bytes;
        // Bytes of an earlier attempt are removed.
        sys::set_len(&file, 0).with_context("empty", temp)?;
        sys::set_len(&file, length).with_context("stretch", temp)?;
        let map = sys::map_part(&file, length as usize, true).with_context("map", temp)?;
        #[cfg(target_os = "linux")]
        {
            // Faulted in first, so that they may be huge pages; reserving takes them one by one.
            sys::advise(&map, 0, length, rustix::mm::Advice::LinuxHugepage);
            sys::advise(&map, 0, length, rustix::mm::Advice::LinuxPopulateWrite);
        }
        // Makes a full disk an error here, and never a signal in the middle of an append.
        sys::allocate(&file, 0, length).with_context("reserve", temp)?;
        sys::write_at(&file, &page(id, options.capacity_bytes), 0).with_context("write", temp)?;
        let shape = RingGeometry::new(HEADER_PAGE, options.capacity_bytes);
        Ok(Self { map, file, path: temp.into(), id, shape, writable: true, pid: std::process::id() })
    }

    /// Locks the ring for writing.
    pub fn lock(&self) -> Result<()> {
        if lock_exclusive(&self.file).with_context("lock", &self.path)? {
            return Ok(());
        }
        Err(Error::Locked { path: self.path.clone(), holder: self.word(offset::PID).load(Ordering::Relaxed) })
    }

    /// The process that has the ring open for writing.
    pub fn writer(&self) -> Result<Option<u64>> {
        // A descriptor of its own: locks belong to the open file.
        let probe = File::open(&self.path).with_context("open", &self.path)?;
        match probe.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Ok(Some(self.word(offset::PID).load(Ordering::Relaxed))),
            _ => Ok(None),
        }
    }

    /// Makes sure that this process opened it.
    pub fn check_process(&self) -> Result<()> {
        if self.pid == std::process::id() { Ok(()) } else { Err(Error::Forked { opened_by: self.pid }) }
    }

    /// Whether the file still has its name.
    pub fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() > 0)
    }

    /// Whether the file is still the one of that name.
    pub fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Flushes everything to the disk.
    pub fn flush(&self) -> Result<()> {
        sys::sync_data(&self.file).with_context("sync", &self.path)
    }

    /// Flushes the page of control to the disk, and none of the frames.
    pub fn flush_page(&self) -> Result<()> {
        sys::sync_map(&self.map, HEADER_PAGE as usize).with_context("sync", &self.path)
    }

    /// The word at byte offset `at`.
    #[inline]
    pub fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at < HEADER_PAGE + self.shape.capacity);
        // SAFETY: the word lies in the mapping, whose length is the page and a capacity (asserted); it is aligned,
        // because the mapping is, lives as long as `self`, and is accessed atomically by everybody.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at as usize).cast()) }
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        if self.writable && self.check_process().is_ok() {
            // Not left to closing the file: a process that is being started by another thread of ours has a copy
            // of the descriptor for a moment, and would keep the lock.
            let _ = self.file.unlock();
        }
    }
}

impl SharedMemory for RingFile {
    #[inline]
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.word(at).load(order)
    }

    #[inline]
    fn store(&self, at: u64, value: u64, order: Ordering) {
        assert!(self.writable);
        self.word(at).store(value, order);
    }

    unsafe fn fill(&self, at: u64, bytes: &[u8]) {
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            // Relaxed: as plain memory would be.
            self.store(at + i as u64 * 8, value, Ordering::Relaxed);
        }
    }
}

impl SharedMemory for &RingFile {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        (**self).load(at, order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        (**self).store(at, value, order);
    }

    unsafe fn fill(&self, at: u64, bytes: &[u8]) {
        // SAFETY: the caller's duties are the same.
        unsafe { (**self).fill(at, bytes) };
    }
}

pub(super) fn check_capacity(bytes: u64) -> Result<()> {
    if bytes.is_power_of_two() && (RING_CAPACITY_MIN..=RING_CAPACITY_MAX).contains(&bytes) {
        Ok(())
    } else {
        Err(Error::Option("capacity_bytes of a ring must be a power of two from 16 KiB to 64 GiB"))
    }
}

fn page(id: TapeId, capacity: u64) -> [u8; offset::END] {
    let mut out = [0; offset::END];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset::MAGIC, MAGIC);
    put(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
    put(offset::TAPE, &id.0.to_le_bytes());
    put(offset::CAPACITY, &capacity.to_le_bytes());
    let crc = crc32c::crc32c(&out[..offset::CRC]);
    out[offset::CRC..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Checks the control page, and reads the facts in it that never change: the identity and the capacity.
fn check_page(page: &[u8], path: &Path) -> Result<(TapeId, u64)> {
    if page.len() < offset::END || page[..8] != *MAGIC {
        return Err(Error::NotATape { path: path.into(), what: "it does not begin as a ring tape does" });
    }
    let u64_at = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"));
    let found = u64_at(offset::VERSION);
    if found != FORMAT_VERSION {
        return Err(Error::ForeignVersion { path: path.into(), found, known: FORMAT_VERSION });
    }
    if page[offset::CRC..offset::END] != crc32c::crc32c(&page[..offset::CRC]).to_le_bytes() {
        return Err(Error::damage(
            path,
            offset::CRC as u64,
            "the checksum of the ring's page does not match",
        ));
    }
    let capacity = u64_at(offset::CAPACITY);
    check_capacity(capacity).map_err(|e| Error::damage(path, offset::CAPACITY as u64, e.to_string()))?;
    let id = u128::from_le_bytes(page[offset::TAPE..offset::CAPACITY].try_into().expect("sixteen bytes"));
    Ok((TapeId(id), capacity))
}

fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e).with_context("lock", path),
    }
}

/// Whether `file` is what `path` names.
fn is_at(file: &File, path: &Path) -> bool {
    let key = |m: fs::Metadata| (m.dev(), m.ino());
    fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|ours| key(ours) == key(there)))
}
