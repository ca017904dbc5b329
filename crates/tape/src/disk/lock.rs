//! Locks on files, and the information about their holders.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::layout::{TapePaths, read_small, remove};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, optional};

/// A lock on a file, held by this open file (not by the process), gone with it.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
    /// The process that locked it: a child that was forked has the same open file, and would unlock it for both.
    pid: u32,
    /// The text of the file before this lock: the last holder that did not clean up.
    pub stale_holder: String,
}

impl FileLock {
    pub fn acquire(path: &Path) -> Result<Self> {
        loop {
            let mut file = sys::open_or_make(path).with_context("open", path)?;
            if !lock_exclusive(&file).with_context("lock", path)? {
                return Err(Error::Locked { path: path.into(), holder: pid_in(path) });
            }
            // The holder before may have unlinked the file between our open and our lock.
            let named_file = match fs::metadata(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                other => Some(other.with_context("look at", path)?.ino()),
            };
            if named_file == Some(file.metadata().with_context("look at", path)?.ino()) {
                let mut holder_text = String::new();
                // A lock file that is not text does not identify the earlier holder, and nothing else depends on it.
                let _ = (&mut file).take(4096).read_to_string(&mut holder_text);
                return Ok(Self {
                    file,
                    path: path.into(),
                    pid: std::process::id(),
                    stale_holder: holder_text,
                });
            }
        }
    }

    /// Writes the holder of the lock into the file. The file is never empty meanwhile: an empty file means that the
    /// tape was closed.
    pub fn sign(&mut self, text: &str) -> Result<()> {
        sys::write_at(&self.file, text.as_bytes(), 0)
            .and_then(|()| sys::set_len(&self.file, text.len() as u64))
            .with_context("write", &self.path)
    }

    /// Removes the file while it is still locked.
    pub fn remove(self) -> Result<()> {
        remove(&self.path)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Not left to closing the file: a process that is being started by another thread of ours has a copy of
        // the descriptor for a moment, and would keep the lock.
        if self.pid == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}

/// Locks a file for this open file alone; false if another process has locked it. A process that looks for a lock takes
/// a shared lock for a moment. It may be held up in that moment, so this function waits for it.
pub(crate) fn lock_exclusive(file: &File) -> io::Result<bool> {
    let (since, mut tries) = (Instant::now(), 0);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) => {}
        }
        match file.try_lock_shared() {
            // Only a process that looks had the lock.
            Ok(()) => file.unlock()?,
            Err(TryLockError::Error(e)) => return Err(e),
            // A writer that removes an unused file also locks it for a moment.
            Err(TryLockError::WouldBlock) => tries += 1,
        }
        if tries > 10 || since.elapsed() > LOOKS_MAX {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// No process looks for as long.
const LOOKS_MAX: Duration = Duration::from_secs(30);

/// Returns the process that has the tape open for writing.
///
/// # Errors
/// Fails as [`holder`] does.
pub(crate) fn lock_writer_pid(paths: &TapePaths) -> Result<Option<u64>> {
    holder(&paths.writer_lock())
}

/// Returns the process that holds the lock at `path`. Returns `None` if there is no such file, or if this user may not
/// read it.
///
/// # Errors
/// Fails if the system is out of descriptors or memory: a holder would be taken for none.
pub(crate) fn holder(path: &Path) -> Result<Option<u64>> {
    let Some(file) = optional(File::open(path).with_context("open", path))? else { return Ok(None) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(Some(pid_in(path))),
        _ => Ok(None),
    }
}

fn pid_in(path: &Path) -> u64 {
    let text = String::from_utf8(read_small(path).unwrap_or_default()).unwrap_or_default();
    field(&text, "pid").and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// Returns the value of `name` in lines of `name value`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// Returns the identity of this boot of the machine, empty if the system does not report it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer was refused because another process had looked who has the tape, and was held up for over ten milliseconds.
    #[test]
    fn a_shared_lock_is_waited_for_and_an_exclusive_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let open = || File::create(&path).unwrap();
        let (looks, takes) = (open(), open());
        looks.lock_shared().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                looks.unlock().unwrap();
            });
            assert!(lock_exclusive(&takes).unwrap());
        });
        assert!(!lock_exclusive(&looks).unwrap(), "somebody has it");
        takes.unlock().unwrap();
        assert!(lock_exclusive(&looks).unwrap());
    }
}
