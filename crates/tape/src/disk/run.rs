//! What lives under `run/` while a tape is in use: locks, the shared state page, named cursors.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, Meta, Paths, TapeId, read_small, read_start, remove, sync_dir};
use crate::disk::lineage::{Lineage, LineagePoint, current_epoch};
use crate::disk::sys;
use crate::error::{At, Error, Result};
use crate::record::durable::{DurabilityFailure, Flushed};

/// A lock on a file, held by this open file (not by the process), gone with it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    /// The process that locked it: a child that was forked has the same open file, and would unlock it for both.
    pid: u32,
    /// What the file said before: who held it last and did not clean up.
    pub before: String,
}

impl Lock {
    pub fn take(path: &Path) -> Result<Self> {
        let mut tries = 0;
        loop {
            let mut file = sys::open_or_make(path).at("open", path)?;
            match file.try_lock() {
                Ok(()) => {}
                // `holder` locks for a moment to see whether someone else does.
                Err(TryLockError::WouldBlock) if tries < 10 => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::Locked { path: path.into(), holder: pid_in(path) });
                }
                Err(TryLockError::Error(e)) => return Err(e).at("lock", path),
            }
            // The holder before may have unlinked the file between our open and our lock.
            let same = fs::metadata(path).is_ok_and(|m| file.metadata().is_ok_and(|f| f.ino() == m.ino()));
            if same {
                let mut before = String::new();
                // A lock file that is not text tells nothing about the holder before, and that is all.
                let _ = (&mut file).take(4096).read_to_string(&mut before);
                return Ok(Self { file, path: path.into(), pid: std::process::id(), before });
            }
        }
    }

    /// Says who holds the lock. At no moment does the file say nothing: that means that the tape was closed.
    pub fn sign(&mut self, text: &str) -> Result<()> {
        sys::write_at(&self.file, text.as_bytes(), 0)
            .and_then(|()| sys::set_len(&self.file, text.len() as u64))
            .at("write", &self.path)
    }

    /// Removes the file while it is still locked.
    pub fn remove(self) -> Result<()> {
        remove(&self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not left to closing the file: a process that is being started by another thread of ours has a copy of
        // the descriptor for a moment, and would keep the lock.
        if self.pid == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}

/// The process that has the tape open for writing.
pub(crate) fn writer_of(paths: &Paths) -> Option<u64> {
    holder(&paths.writer_lock())
}

/// The process that holds the lock at `path`, if one does.
pub(crate) fn holder(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(pid_in(path)),
        _ => None,
    }
}

fn pid_in(path: &Path) -> u64 {
    let text = String::from_utf8(read_small(path).unwrap_or_default()).unwrap_or_default();
    field(&text, "pid").and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// The value of `name` in lines of `name value`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// Identity of this boot of the machine, empty where the system does not tell.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

/// A page that the processes of a tape share: how far the recorder is, and what it is to keep.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) map: MmapRaw,
    pub(crate) writable: bool,
}

// Words of the page; see `docs/formats-tape.md`.
const DURABLE: usize = 2;
const WANTED: usize = 3;
pub(crate) const FAILED: usize = 8;
pub(crate) const FAILED_FILE: usize = 13;
pub(crate) const FAILURES: usize = 14;
const RETIRED: usize = 15;
/// In the word of the failed flush: nothing more becomes durable.
const LASTING: u64 = 1 << 32;

impl State {
    pub(crate) const NAME: &'static str = "state";
    pub(crate) const BYTES: u64 = 4096;

    pub fn open(paths: &Paths) -> Result<Self> {
        let path = paths.run().join(Self::NAME);
        let file = sys::open_or_make(&path).at("open", &path)?;
        // Written, not only stretched: a hole that cannot be filled later would be a signal.
        if file.metadata().at("look at", &path)?.len() < Self::BYTES {
            sys::write_at(&file, &[0; Self::BYTES as usize], 0).at("write", &path)?;
        }
        let map = sys::map(&file).at("map", &path)?;
        let state = Self { map, writable: true };
        state.bind(&file, paths)?;
        Ok(state)
    }

    /// The page of a tape in use, none where there is none. Who may not write to it gets one to read.
    pub fn attach(paths: &Paths) -> Result<Option<Self>> {
        let path = paths.run().join(Self::NAME);
        let (file, writable) = match sys::open(&path, OpenOptions::new().read(true).write(true)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) if is_read_only(&e) => (File::open(&path).at("open", &path)?, false),
            other => (other.at("open", &path)?, true),
        };
        // What is mapped and not in the file is a signal; whoever makes it writes it whole.
        if file.metadata().at("look at", &path)?.len() < Self::BYTES {
            return Ok(None);
        }
        let map = sys::map_part(&file, Self::BYTES as usize, writable).at("map", &path)?;
        Ok(Some(Self { map, writable }).filter(|state| state.is_of(paths)))
    }

    /// Whether this process may ask for a flush.
    pub fn can_ask(&self) -> bool {
        self.writable
    }

    /// Followed (and in a hot tape recorded) up to here, as the follower says.
    pub fn recorded(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Followed up to here, as a number.
    pub fn recorded_now(&self) -> u64 {
        // Acquire: pairs with the Release in `set_recorded`.
        self.recorded().load(Ordering::Acquire)
    }

    /// Everything before this survives power loss, as the follower says.
    #[inline]
    pub fn durable(&self) -> u64 {
        // Acquire: pairs with the Release in `set_durable`.
        self.word(DURABLE).load(Ordering::Acquire)
    }

    /// Says what survives power loss.
    pub fn set_durable(&self, position: u64) {
        // Release: pairs with the Acquire in `durable`. Never backwards, and never raised by anybody else.
        self.word(DURABLE).fetch_max(position, Ordering::Release);
    }

    /// Asks the follower to make everything before `position` durable. Who may only read cannot.
    pub fn ask(&self, position: u64) {
        if self.writable {
            // Relaxed: a wish, nothing is read under it.
            self.word(WANTED).fetch_max(position, Ordering::Relaxed);
        }
    }

    /// The furthest position that was asked for.
    #[inline]
    pub fn wanted(&self) -> u64 {
        self.word(WANTED).load(Ordering::Relaxed)
    }

    /// Tells that a flush has failed.
    pub fn fail(&self, errno: i32, what: Flushed, lasting: bool) {
        self.word(FAILED_FILE).store(what.word(), Ordering::Relaxed);
        self.word(FAILURES).fetch_add(1, Ordering::Relaxed);
        let word = u64::from(errno.unsigned_abs().max(1)) | if lasting { LASTING } else { 0 };
        // Release: pairs with the Acquire in `failure`; the file is told before.
        self.word(FAILED).store(word, Ordering::Release);
    }

    /// What failed is written again, or will be before anything more is called durable.
    pub fn mending(&self) {
        self.word(FAILED).fetch_and(!LASTING, Ordering::Release);
    }

    /// What failed was written again and flushed.
    pub fn mended(&self) {
        self.word(FAILED).store(0, Ordering::Release);
    }

    /// The flush that failed, if it was not made good.
    pub fn failure(&self, paths: &Paths) -> Option<DurabilityFailure> {
        // Acquire: pairs with the Release in `fail`.
        let word = self.word(FAILED).load(Ordering::Acquire);
        (word != 0).then(|| DurabilityFailure {
            errno: (word & 0xffff) as i32,
            path: Flushed::path_of(self.word(FAILED_FILE).load(Ordering::Relaxed), paths),
            lasting: word & LASTING != 0,
        })
    }

    /// Flushes that have failed.
    pub fn failures(&self) -> u64 {
        self.word(FAILURES).load(Ordering::Relaxed)
    }

    /// Forgets all: what it says is of before a restart of the machine.
    pub fn reset(&self) {
        for index in 0..16 {
            self.word(index).store(0, Ordering::Relaxed);
        }
    }

    /// Whether the tape was closed since the page was mapped.
    pub fn is_retired(&self) -> bool {
        self.word(RETIRED).load(Ordering::Relaxed) != 0
    }

    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < Self::BYTES as usize / 8);
        // SAFETY: in the mapping (its file has BYTES bytes, index asserted), aligned, atomics only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(index)) }
    }

    /// Reads the recorded position without keeping the page.
    pub fn peek(paths: &Paths) -> u64 {
        Self::look(paths).map_or(0, |state| state.recorded_now())
    }
}

/// This user, or the file system, lets the file be read alone.
fn is_read_only(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

impl State {
    /// Sets the recorded position.
    pub fn set_recorded(&self, position: u64) {
        // Release: pairs with the Acquire of the writer's window check. Never backwards: a follower that begins
        // again goes over what is recorded already.
        self.recorded().fetch_max(position, Ordering::Release);
    }
}

/// Removes what is left of `run/` when neither writer nor recorder use it; named cursors and the lineage stay.
pub(crate) fn tidy(paths: &Paths, writer: Lock) -> Result<()> {
    match Lock::take(&paths.recorder_lock()) {
        Ok(recorder) => {
            // Relaxed: a word of its own, looked at now and then.
            State::open(paths)?.word(RETIRED).store(1, Ordering::Relaxed);
            remove(&paths.run().join(State::NAME))?;
            recorder.remove()?;
        }
        Err(Error::Locked { .. }) => {}
        Err(e) => return Err(e),
    }
    writer.remove()?;
    // Directories that are not empty belong to somebody and stay.
    let _ = fs::remove_dir(paths.run().join("cursors"));
    let _ = fs::remove_dir(paths.run());
    Ok(())
}

/// A named place on a tape that survives its reader: `run/cursors/NAME`.
#[derive(Debug)]
pub struct Cursor {
    file: File,
    path: PathBuf,
    paths: Paths,
    tape: TapeId,
    /// Of the tape when this was opened.
    epoch: u64,
    /// The file has been flushed since it was made, and so has its name.
    is_there: bool,
}

const CURSOR_MAGIC: &[u8; 8] = b"UNITCURS";

/// Bytes of a cursor's file: one sector holds them, so they are written whole or not at all.
const CURSOR_BYTES: usize = 64;

/// Where a cursor says that it and its name have been flushed to the disk once.
const FLUSHED_AT: usize = 56;
const FLUSHED: [u8; 4] = [1, 0, 0, 0];

impl Cursor {
    /// Opens or makes the cursor `name` (letters, digits, `-` and `_`) of the tape in `dir`.
    ///
    /// # Errors
    /// A name that is not one, no tape, or the system's refusal.
    pub fn open(dir: &Path, name: &str) -> Result<Self> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
            return Err(Error::Option("a cursor's name is 1 to 64 letters, digits, - or _"));
        }
        let tape = Meta::load(dir)?.id;
        let folder = dir.join("run/cursors");
        sys::make_dir(&folder).at("make", &folder)?;
        let path = folder.join(name);
        let file = sys::open_or_make(&path).at("open", &path)?;
        let paths = Paths { dir: dir.into() };
        let epoch = current_epoch(&paths, tape, State::look(&paths).as_ref());
        let mut mark = [0; 4];
        let is_there = file.read_exact_at(&mut mark, FLUSHED_AT as u64).is_ok() && mark == FLUSHED;
        Ok(Self { file, path, paths, tape, epoch, is_there })
    }

    /// The place where reading continues, none in a new cursor: what was stored last, or the position to which the tape
    /// was cut back since, if that is before it. [`Cursor::load_point`] gives what was stored.
    ///
    /// # Errors
    /// A file that is not a cursor, or one of another tape or version, or the system's refusal. Delete it to begin
    /// anew.
    pub fn load(&self) -> Result<Option<Position>> {
        let Some(point) = self.load_point()? else { return Ok(None) };
        let lineage = Lineage::load(&self.paths, self.tape)?;
        Ok(Some(lineage.map_or(point.position, |lineage| lineage.resume(point))))
    }

    /// What was stored last, with the epoch in which it was read; none in a new cursor.
    ///
    /// # Errors
    /// As [`Cursor::load`].
    pub fn load_point(&self) -> Result<Option<LineagePoint>> {
        Ok(self.load_place()?.map(|(point, _)| point))
    }

    /// The same, with the number of events before it where it was told.
    pub(crate) fn load_place(&self) -> Result<Option<(LineagePoint, Option<u64>)>> {
        let text = read_start(&self.path, CURSOR_BYTES as u64 + 1).at("read", &self.path)?;
        if text.is_empty() {
            return Ok(None);
        }
        let word = |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().expect("eight bytes"));
        if text.len() != CURSOR_BYTES || text[..8] != *CURSOR_MAGIC {
            return Err(Error::damage(
                &self.path,
                0,
                "this is no cursor, or one of an older format; delete it",
            ));
        }
        if word(8) != FORMAT_VERSION {
            let path = self.path.clone();
            return Err(Error::ForeignVersion { path, found: word(8), known: FORMAT_VERSION });
        }
        if text[60..] != crc32c::crc32c(&text[..60]).to_le_bytes() {
            return Err(Error::damage(&self.path, 60, "the cursor's checksum does not match; delete it"));
        }
        let found = TapeId(u128::from_le_bytes(text[16..32].try_into().expect("sixteen bytes")));
        if found != self.tape {
            return Err(Error::ForeignTape { path: self.path.clone(), found, wanted: self.tape });
        }
        let point = LineagePoint { epoch: word(48), position: Position(word(32)) };
        Ok(Some((point, word(40).checked_sub(1))))
    }

    /// Stores a place: what comes before it has been dealt with. It counts as read in the epoch that the tape had when
    /// this cursor was opened.
    ///
    /// The first store of a name is flushed to the disk, with the name. A later one is a single system call: a power
    /// loss may bring an earlier place back, and never a later one.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn store(&mut self, position: Position) -> Result<()> {
        self.store_place(LineagePoint { epoch: self.epoch, position }, None)
    }

    /// The same with the epoch in which it was read.
    ///
    /// # Errors
    /// As [`Cursor::store`].
    pub fn store_point(&mut self, point: LineagePoint) -> Result<()> {
        self.store_place(point, None)
    }

    /// The same, with the number of events before it where that is known.
    pub(crate) fn store_place(&mut self, point: LineagePoint, ordinal: Option<u64>) -> Result<()> {
        let mut text = [0; CURSOR_BYTES];
        text[..8].copy_from_slice(CURSOR_MAGIC);
        text[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        text[16..32].copy_from_slice(&self.tape.0.to_le_bytes());
        text[32..40].copy_from_slice(&point.position.0.to_le_bytes());
        text[40..48].copy_from_slice(&ordinal.map_or(0, |n| n.saturating_add(1)).to_le_bytes());
        text[48..56].copy_from_slice(&point.epoch.to_le_bytes());
        if self.is_there {
            return self.write(&mut text);
        }
        // A name that a power loss took away would begin at its start again, perhaps at the end of the tape.
        let before = read_start(&self.path, CURSOR_BYTES as u64).at("read", &self.path)?;
        self.write(&mut text)?;
        let run = self.paths.run();
        let flushed = sys::sync_data(&self.file).at("flush", &self.path).and_then(|()| {
            [&run.join("cursors"), &run, &self.paths.dir].iter().try_for_each(|folder| sync_dir(folder))
        });
        if flushed.is_err() {
            // What was not stored is not found either. Where this fails as well, the place comes again: no harm.
            _ = sys::set_len(&self.file, 0).and_then(|()| sys::overwrite_at(&self.file, &before, 0));
            return flushed;
        }
        self.is_there = true;
        // The mark alone: without it the next one flushes once more.
        let _ = self.write(&mut text);
        Ok(())
    }

    fn write(&self, text: &mut [u8; CURSOR_BYTES]) -> Result<()> {
        text[FLUSHED_AT..60].copy_from_slice(if self.is_there { &FLUSHED } else { &[0; 4] });
        let crc = crc32c::crc32c(&text[..60]);
        text[60..].copy_from_slice(&crc.to_le_bytes());
        sys::overwrite_at(&self.file, text, 0).at("write", &self.path)
    }

    /// Names of the cursors of the tape in `dir`, in order.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn names(dir: &Path) -> Result<Vec<String>> {
        let folder = dir.join("run/cursors");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).at("list", &folder),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.at("list", &folder)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Deletes the cursor.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn delete(self) -> Result<()> {
        remove(&self.path)
    }
}

/// Writes a small file under another name first, so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let temp = path.with_extension(UNFINISHED);
    let written = (|| {
        let file = sys::open(&temp, OpenOptions::new().write(true).create(true).truncate(true));
        sys::write_at(&file.at("create", &temp)?, text, 0).at("write", &temp)?;
        sys::rename(&temp, path).at("rename", path)
    })();
    if written.is_err() {
        // One that stays is written over by the next attempt.
        let _ = sys::unlink(&temp);
    }
    written
}

/// Extension of the names under which [`write_whole`] writes.
pub(crate) const UNFINISHED: &str = "new";
