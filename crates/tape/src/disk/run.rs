//! What lives under `run/` while a tape is in use: locks, the shared state page, named cursors.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, Meta, Paths, TapeId, read_small, read_start, remove};
use crate::disk::sys;
use crate::error::{At, Error, Result};
use crate::record::durable::{DurabilityFailure, Flushed};

/// A lock on a file, held by this open file (not by the process), gone with it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
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
                return Ok(Self { file, path: path.into(), before });
            }
        }
    }

    /// Says who holds the lock.
    pub fn sign(&mut self, text: &str) -> Result<()> {
        sys::set_len(&self.file, 0)
            .and_then(|()| sys::write_at(&self.file, text.as_bytes(), 0))
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
        let _ = self.file.unlock();
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
}

// Words of the page; see `docs/formats-tape.md`.
const DURABLE: usize = 2;
const WANTED: usize = 3;
const FAILED: usize = 8;
const FAILED_FILE: usize = 13;
const FAILURES: usize = 14;
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
        Ok(Self { map })
    }

    /// The page of a tape in use, none where there is none.
    pub fn attach(paths: &Paths) -> Result<Option<Self>> {
        let path = paths.run().join(Self::NAME);
        let file = match sys::open(&path, OpenOptions::new().read(true).write(true)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.at("open", &path)?,
        };
        // What is mapped and not in the file is a signal; whoever makes it writes it whole.
        if file.metadata().at("look at", &path)?.len() < Self::BYTES {
            return Ok(None);
        }
        let map = sys::map_part(&file, Self::BYTES as usize, true).at("map", &path)?;
        Ok(Some(Self { map }))
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

    /// Asks the follower to make everything before `position` durable.
    pub fn ask(&self, position: u64) {
        // Relaxed: a wish, nothing is read under it.
        self.word(WANTED).fetch_max(position, Ordering::Relaxed);
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
        let mut word = [0; 8];
        File::open(paths.run().join(Self::NAME))
            .and_then(|f| f.read_exact_at(&mut word, 0))
            .map_or(0, |()| u64::from_le_bytes(word))
    }
}

impl State {
    /// Sets the recorded position.
    pub fn set_recorded(&self, position: u64) {
        // Release: pairs with the Acquire of the writer's window check. Never backwards: a follower that begins
        // again goes over what is recorded already.
        self.recorded().fetch_max(position, Ordering::Release);
    }
}

/// Removes what is left of `run/` when neither writer nor recorder use it; named cursors stay.
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
    tape: TapeId,
}

const CURSOR_MAGIC: &[u8; 8] = b"UNITCURS";

/// Bytes of a cursor's file: one sector holds them, so they are written whole or not at all.
const CURSOR_BYTES: usize = 64;

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
        Ok(Self { file, path, tape })
    }

    /// The place stored last, none in a new cursor.
    ///
    /// # Errors
    /// A file that is not a cursor, or one of another tape or version, or the system's refusal. Delete it to begin
    /// anew.
    pub fn load(&self) -> Result<Option<Position>> {
        Ok(self.load_place()?.map(|(position, _)| position))
    }

    /// The same, with the number of events before it where it was told.
    pub(crate) fn load_place(&self) -> Result<Option<(Position, Option<u64>)>> {
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
        Ok(Some((Position(word(32)), word(40).checked_sub(1))))
    }

    /// Stores a place: what comes before it has been dealt with.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn store(&mut self, position: Position) -> Result<()> {
        self.store_place(position, None)
    }

    /// The same, with the number of events before it where that is known.
    pub(crate) fn store_place(&mut self, position: Position, ordinal: Option<u64>) -> Result<()> {
        let mut text = [0; CURSOR_BYTES];
        text[..8].copy_from_slice(CURSOR_MAGIC);
        text[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        text[16..32].copy_from_slice(&self.tape.0.to_le_bytes());
        text[32..40].copy_from_slice(&position.0.to_le_bytes());
        text[40..48].copy_from_slice(&ordinal.map_or(0, |n| n.saturating_add(1)).to_le_bytes());
        let crc = crc32c::crc32c(&text[..60]);
        text[60..].copy_from_slice(&crc.to_le_bytes());
        sys::overwrite_at(&self.file, &text, 0).at("write", &self.path)
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
