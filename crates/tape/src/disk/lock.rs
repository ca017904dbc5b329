//! Locks on files, and what they say about their holders.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::layout::{TapePaths, read_small, remove};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// A lock on a file, held by this open file (not by the process), gone with it.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
    /// The process that locked it: a child that was forked has the same open file, and would unlock it for both.
    pid: u32,
    /// The text of the file before this lock: the last holder that did not clean up.
    pub before: String,
}

impl FileLock {
    pub fn take(path: &Path) -> Result<Self> {
        let mut tries = 0;
        loop {
            let mut file = sys::open_or_make(path).with_context("open", path)?;
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
                Err(TryLockError::Error(e)) => return Err(e).with_context("lock", path),
            }
            // The holder before may have unlinked the file between our open and our lock.
            let same = fs::metadata(path).is_ok_and(|m| file.metadata().is_ok_and(|f| f.ino() == m.ino()));
            if same {
                let mut before = String::new();
                // A lock file that is not text does not identify the earlier holder, and nothing else depends on it.
                let _ = (&mut file).take(4096).read_to_string(&mut before);
                return Ok(Self { file, path: path.into(), pid: std::process::id(), before });
            }
        }
    }

    /// Says who holds the lock. At no moment does the file say nothing: that means that the tape was closed.
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

/// The process that has the tape open for writing.
pub(crate) fn lock_writer_pid(paths: &TapePaths) -> Option<u64> {
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

/// Identity of this boot of the machine, empty where the system does not report it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}
