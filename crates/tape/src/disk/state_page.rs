//! The state page of a tape in use: words that its processes share.
//!
//! ```text
//!  word   0 recorded │ 1 bytes kept │ 2 durable │ 3 wanted │ 4 end │ 5 its ordinal │ 6 oldest │ 7 announced
//!         8, 13, 14 a flush that failed │ 9 age kept │ 10 days kept │ 11 notice │ 12 held for cursors
//!         15 retired │ 16 epoch │ 17, 18, 19 whose page it is
//! ```
//!
//! Each is a number of its own. The limits are those of the writer, for the process that records the tape.

use std::fs::{self, File, OpenOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use unitape_model::Position;

use crate::disk::directory_identity::DirectoryIdentity;
use crate::disk::failure::{DurabilityFailure, FlushedFile};
use crate::disk::layout::{TapePaths, remove};
use crate::disk::limits::RetentionLimits;
use crate::disk::lock::FileLock;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, optional};

/// A page that the processes of a tape share: how far the recorder is, and how much it must keep.
#[derive(Debug)]
pub(crate) struct StatePage {
    map: MmapRaw,
    writable: bool,
}

// Words of the page; see `docs/formats-tape.md`.
const BYTES: usize = 1;
const DURABLE: usize = 2;
const WANTED: usize = 3;
const END: usize = 4;
const ORDINAL: usize = 5;
const OLDEST: usize = 6;
const ANNOUNCED: usize = 7;
const FAILED: usize = 8;
const AGE_NS: usize = 9;
const DAYS: usize = 10;
const NOTICE_NS: usize = 11;
const HOLD: usize = 12;
const FAILED_FILE: usize = 13;
const FAILURES: usize = 14;
const RETIRED: usize = 15;
const EPOCH: usize = 16;
/// Identity of the tape's directory, three words; zero in a page of an earlier version.
const HOME: usize = 17;

/// In the word of the failed flush: nothing more becomes durable.
const LASTING: u64 = 1 << 32;

impl StatePage {
    pub(crate) const NAME: &'static str = "state";
    pub(crate) const BYTES: u64 = 4096;

    pub fn open(paths: &TapePaths) -> Result<Self> {
        let path = paths.run().join(Self::NAME);
        let file = sys::open_or_make(&path).with_context("open", &path)?;
        // Written, not only stretched: a hole that cannot be filled later would be a signal.
        if file.metadata().with_context("look at", &path)?.len() < Self::BYTES {
            sys::write_at(&file, &[0; Self::BYTES as usize], 0).with_context("write", &path)?;
        }
        let map = sys::map(&file).with_context("map", &path)?;
        let state = Self { map, writable: true };
        state.bind(&file, paths)?;
        Ok(state)
    }

    /// Maps the page of a tape in use. Returns `None` if there is no page. A process without write permission gets a
    /// page to read.
    pub fn attach_writer(paths: &TapePaths) -> Result<Option<Self>> {
        let path = paths.run().join(Self::NAME);
        let (file, writable) = match sys::open(&path, OpenOptions::new().read(true).write(true)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) if is_read_only(&e) => (File::open(&path).with_context("open", &path)?, false),
            other => (other.with_context("open", &path)?, true),
        };
        // Mapped memory that the file does not have raises a signal; the process that creates the file writes it
        // whole.
        if file.metadata().with_context("look at", &path)?.len() < Self::BYTES {
            return Ok(None);
        }
        let map = sys::map_part(&file, Self::BYTES as usize, writable).with_context("map", &path)?;
        Ok(Some(Self { map, writable }).filter(|state| state.is_of(paths)))
    }

    /// Returns whether this process may request a flush.
    pub fn can_request(&self) -> bool {
        self.writable
    }

    /// Returns the word with the recorded position: the recorder has followed the tape up to here, and copied it if the
    /// tape is hot.
    pub fn recorded(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Reads the recorded position: the recorder has followed the tape up to here.
    pub fn recorded_now(&self) -> Position {
        // Acquire: pairs with the Release in `set_recorded`.
        Position(self.recorded().load(Ordering::Acquire))
    }

    /// Reads the durable position: everything before it survives power loss.
    #[inline]
    pub fn durable(&self) -> Position {
        // Acquire: pairs with the Release in `set_durable`.
        Position(self.word(DURABLE).load(Ordering::Acquire))
    }

    /// Publishes the durable position.
    pub fn set_durable(&self, position: Position) {
        // Release: pairs with the Acquire in `durable`. Never backwards, and never raised by anybody else.
        self.word(DURABLE).fetch_max(position.0, Ordering::Release);
    }

    /// Asks the recorder to make everything before `position` durable. A process that may only read cannot ask.
    pub fn request_durable(&self, position: Position) {
        if self.writable {
            // Relaxed: a wish, nothing is read under it.
            self.word(WANTED).fetch_max(position.0, Ordering::Relaxed);
        }
    }

    /// Returns the furthest position for which a flush was requested.
    #[inline]
    pub fn requested_position(&self) -> Position {
        Position(self.word(WANTED).load(Ordering::Relaxed))
    }

    /// Reports that a flush has failed.
    pub fn fail(&self, errno: i32, file: FlushedFile, lasting: bool) {
        self.word(FAILED_FILE).store(file.to_word(), Ordering::Relaxed);
        self.word(FAILURES).fetch_add(1, Ordering::Relaxed);
        let word = u64::from(errno.unsigned_abs().max(1)) | if lasting { LASTING } else { 0 };
        // Release: pairs with the Acquire in `failure`; the file is stored before.
        self.word(FAILED).store(word, Ordering::Release);
    }

    /// Reports that the recorder mends a failed flush: it writes the bytes again before it calls anything more
    /// durable.
    pub fn set_mending(&self) {
        self.word(FAILED).fetch_and(!LASTING, Ordering::Release);
    }

    /// Reports that a failed flush is mended: the bytes were written again and flushed.
    pub fn set_mended(&self) {
        self.word(FAILED).store(0, Ordering::Release);
    }

    /// Returns the failed flush, if the recorder has not made it good since.
    pub fn failure(&self, paths: &TapePaths) -> Option<DurabilityFailure> {
        // Acquire: pairs with the Release in `fail`.
        let word = self.word(FAILED).load(Ordering::Acquire);
        (word != 0).then(|| DurabilityFailure {
            errno: (word & 0xffff) as i32,
            file_path: FlushedFile::path_of(self.word(FAILED_FILE).load(Ordering::Relaxed), paths),
            lasting: word & LASTING != 0,
        })
    }

    /// Flushes that have failed.
    pub fn failures(&self) -> u64 {
        self.word(FAILURES).load(Ordering::Relaxed)
    }

    /// Forgets everything on the page, because it was written before a restart of the machine.
    pub fn reset(&self) {
        for index in 0..16 {
            self.word(index).store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether the tape was closed since the page was mapped.
    pub fn is_retired(&self) -> bool {
        self.word(RETIRED).load(Ordering::Relaxed) != 0
    }

    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < Self::BYTES as usize / 8);
        // SAFETY: in the mapping (its file has BYTES bytes, index asserted), aligned, atomics only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(index)) }
    }

    /// Reads the recorded position without keeping the page.
    ///
    /// # Errors
    /// Fails as [`Self::attach_reader`] does.
    pub fn peek(paths: &TapePaths) -> Result<Position> {
        Ok(Self::attach_reader(paths)?.map_or(Position(0), |state| state.recorded_now()))
    }

    /// Sets the recorded position.
    pub fn set_recorded(&self, position: Position) {
        // Release: pairs with the Acquire of the writer's window check. Never backwards: a recorder that restarts
        // passes over recorded frames again.
        self.recorded().fetch_max(position.0, Ordering::Release);
    }

    /// Returns the epoch whose frames are on the tape; 0 if no process has set it.
    pub fn epoch(&self) -> u64 {
        // Acquire: pairs with the Release in `set_epoch`; a reader that sees the epoch finds the result of its
        // recovery.
        self.word(EPOCH).load(Ordering::Acquire)
    }

    /// Keeps the epoch of the page until recovery is done. Sets it to `before`, the epoch of the lineage, if the
    /// machine restarted or the page has no epoch.
    pub fn keep_epoch(&self, before: u64, restarted: bool) {
        if restarted || self.epoch() == 0 {
            self.set_epoch(before);
        }
    }

    /// Says which epoch's frames are on the tape.
    pub fn set_epoch(&self, epoch: u64) {
        // Release: pairs with the Acquire in `epoch`.
        self.word(EPOCH).store(epoch, Ordering::Release);
    }

    /// Maps the page as a reader does. Returns `None` if no process uses a page, or if this process may not read it.
    ///
    /// # Errors
    /// Fails if the system is out of descriptors or memory.
    pub fn attach_reader(paths: &TapePaths) -> Result<Option<Self>> {
        let path = paths.run().join(Self::NAME);
        let map = || {
            let file = File::open(&path).with_context("open", &path)?;
            // Mapped memory that the file does not have raises a signal; the file is written whole before anything is in
            // it.
            if file.metadata().with_context("look at", &path)?.len() < Self::BYTES {
                return Ok(None);
            }
            let map = MmapOptions::new().len(Self::BYTES as usize).map_raw_read_only(&file);
            Ok(Some(Self { map: map.with_context("map", &path)?, writable: false }))
        };
        let page = optional(map())?.flatten();
        Ok(page.filter(|page| !page.is_retired() && page.is_of(paths)))
    }

    /// Returns whether the page belongs to the tape in `paths.dir`, and was not copied with its directory from another
    /// tape.
    pub fn is_of(&self, paths: &TapePaths) -> bool {
        let home = self.home();
        home == [0; 3] || DirectoryIdentity(home).is_at(&paths.tape_dir)
    }

    fn home(&self) -> [u64; 3] {
        // Relaxed: set once, before any other process looks. A process that sees only a part takes the page for another
        // tape's and looks again.
        std::array::from_fn(|i| self.word(HOME + i).load(Ordering::Relaxed))
    }

    /// Makes the page this tape's. A page that was copied from another tape is cleared before; `file` is the page's.
    pub fn bind(&self, file: &File, paths: &TapePaths) -> Result<()> {
        let DirectoryIdentity(home) =
            DirectoryIdentity::from_dir(&paths.tape_dir).with_context("look at", &paths.tape_dir)?;
        if self.home() == home {
            return Ok(());
        }
        // The writer and a recorder may come at the same time. It fails where there are no locks.
        let _ = file.lock();
        let now = self.home();
        if now != home {
            if now != [0; 3] {
                self.renounce();
            }
            for (i, word) in home.into_iter().enumerate() {
                self.word(HOME + i).store(word, Ordering::Relaxed);
            }
        }
        let _ = file.unlock();
        Ok(())
    }

    /// Forgets what the page says of another tape, except for a failed flush: the files were copied with it.
    pub fn renounce(&self) {
        for index in (0..HOME).filter(|index| ![FAILED, FAILED_FILE, FAILURES].contains(index)) {
            self.word(index).store(0, Ordering::Relaxed);
        }
    }

    /// Returns the writer's retention limits, for the process that records the tape.
    pub fn retention(&self) -> RetentionLimits {
        let word = |index| Some(self.word(index).load(Ordering::Relaxed)).filter(|&n| n > 0);
        RetentionLimits {
            bytes: word(BYTES),
            age: word(AGE_NS).map(Duration::from_nanos),
            days: word(DAYS).and_then(|n| n.try_into().ok()),
            notice_period: Duration::from_nanos(word(NOTICE_NS).unwrap_or(0)),
            hold_for_cursors: word(HOLD),
        }
    }

    /// Stores the retention limits. A missing limit is stored as zero, and zero as one.
    pub fn set_retention(&self, limits: &RetentionLimits) {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let words = [
            (BYTES, limits.bytes.map_or(0, |n| n.max(1))),
            (AGE_NS, limits.age.map_or(0, |age| ns(age).max(1))),
            (DAYS, limits.days.map_or(0, u64::from)),
            (NOTICE_NS, ns(limits.notice_period)),
            (HOLD, limits.hold_for_cursors.map_or(0, |n| n.max(1))),
        ];
        for (index, value) in words {
            self.word(index).store(value, Ordering::Relaxed);
        }
    }

    /// Returns the tape's end and its ordinal, as last published.
    pub fn published_end(&self) -> (Position, u64) {
        // Acquire: pairs with the Release in `set_end`; the ordinal is of that end or a later one.
        let published_end = self.word(END).load(Ordering::Acquire);
        (Position(published_end), self.word(ORDINAL).load(Ordering::Relaxed))
    }

    pub fn set_end(&self, end: Position, ordinal: u64) {
        self.word(ORDINAL).store(ordinal, Ordering::Relaxed);
        // Release: pairs with the Acquire in `end`.
        self.word(END).store(end.0, Ordering::Release);
    }

    /// Returns the announced position: retention has removed everything before it, or soon will.
    #[inline]
    pub fn announced(&self) -> Position {
        Position(self.word(ANNOUNCED).load(Ordering::Relaxed))
    }

    /// Publishes the oldest position, and the position up to which removal is announced.
    pub fn publish_oldest(&self, oldest: Position, announced: Position) {
        self.word(OLDEST).store(oldest.0, Ordering::Relaxed);
        self.word(ANNOUNCED).store(announced.0, Ordering::Relaxed);
    }
}

/// Returns whether the error means that this user, or the file system, allows only reads of the file.
fn is_read_only(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

/// Removes the rest of `run/` when neither writer nor recorder use it; named cursors and the lineage stay.
pub(crate) fn tidy(paths: &TapePaths, writer: FileLock) -> Result<()> {
    match FileLock::acquire(&paths.recorder_lock()) {
        Ok(recorder) => {
            // Relaxed: a word of its own, looked at now and then.
            StatePage::open(paths)?.word(RETIRED).store(1, Ordering::Relaxed);
            remove(&paths.run().join(StatePage::NAME))?;
            recorder.remove()?;
        }
        Err(Error::Locked { .. }) => {}
        Err(e) => return Err(e),
    }
    writer.remove()?;
    // Directories that are not empty are in use and stay.
    let _ = fs::remove_dir(paths.run().join("cursors"));
    let _ = fs::remove_dir(paths.run());
    Ok(())
}
