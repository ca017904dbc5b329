//! Leases: how a reader keeps the files of its revision while a compaction replaces them.
//!
//! ```text
//! readers/00000007   empty, locked (shared) by each reader of revision 7
//! readers/00000008   of the revision that counts now
//! ```
//!
//! A writer makes the file before the manifest of its revision, so a reader needs no right to write. A reader locks the file
//! and then looks whether its revision still counts; if not, it begins again. A writer removes a replaced file when nobody
//! holds a revision that names it. A process that dies gives its lease back.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};

/// The directory of the leases.
pub(crate) const FOLDER: &str = "readers";

/// A lease of the files of a revision. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    /// `None` if the store has no such file, as a copy may have none, or if the file system has no locks.
    _lock: Option<File>,
}

fn lease_path(store: &Path, revision: u64) -> PathBuf {
    store.join(FOLDER).join(format!("{revision:08x}"))
}

/// Returns the revision of a lease's file.
pub(crate) fn revision_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|revision| format!("{revision:08x}") == name)
}

/// Makes the file that readers of a revision lock.
pub(crate) fn prepare(store: &Path, revision: u64) -> Result<()> {
    let (folder, path) = (store.join(FOLDER), lease_path(store, revision));
    if path.exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context("make", &folder)?;
    File::create(&path).with_context("make", &path)?;
    super::manifest::sync_dir(&folder)
}

impl Lease {
    /// Takes a lease of a revision. It holds only if the revision still counts afterwards.
    pub fn take(store: &Path, revision: u64) -> Result<Self> {
        let path = lease_path(store, revision);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Self { _lock: None }),
            Err(e) => return Err(e).with_context("open", &path),
        };
        match file.lock_shared() {
            Ok(()) => Ok(Self { _lock: Some(file) }),
            Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Self { _lock: None }),
            Err(e) => Err(e).with_context("lock", &path),
        }
    }
}

/// Removes the leases that nobody holds of revisions before `revision`. Returns the oldest revision that is held.
pub(crate) fn oldest_held(store: &Path, revision: u64) -> Result<Option<u64>> {
    let folder = store.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries.with_context("list", &folder)?,
    };
    let mut oldest: Option<u64> = None;
    for entry in entries {
        let entry = entry.with_context("list", &folder)?;
        let Some(held) = entry.file_name().to_str().and_then(revision_of) else { continue };
        if held == revision {
            continue;
        }
        let path = entry.path();
        let file = File::open(&path).with_context("open", &path)?;
        match file.try_lock() {
            Ok(()) => fs::remove_file(&path).with_context("remove", &path)?,
            Err(TryLockError::WouldBlock) => oldest = Some(oldest.map_or(held, |oldest| oldest.min(held))),
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(e).with_context("lock", &path),
        }
    }
    Ok(oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lease_stays_and_is_the_oldest_one() {
        let dir = tempfile::tempdir().unwrap();
        for revision in [3, 4, 5] {
            prepare(dir.path(), revision).unwrap();
        }
        let (third, fourth) = (Lease::take(dir.path(), 3).unwrap(), Lease::take(dir.path(), 4).unwrap());
        assert_eq!(oldest_held(dir.path(), 5).unwrap(), Some(3));
        drop(third);
        assert_eq!(oldest_held(dir.path(), 5).unwrap(), Some(4));
        assert!(!lease_path(dir.path(), 3).exists() && lease_path(dir.path(), 4).exists());
        drop(fourth);
        assert_eq!(oldest_held(dir.path(), 5).unwrap(), None);
        assert!(lease_path(dir.path(), 5).exists(), "readers of the revision that counts need it");
        assert!(Lease::take(dir.path(), 9).unwrap()._lock.is_none(), "a copy may have no such file");
    }

    #[test]
    fn only_names_of_our_own_are_leases() {
        assert_eq!(revision_of("0000001f"), Some(31));
        assert_eq!(revision_of("100000001"), Some(0x1_0000_0001));
        for other in ["1f", "0000001F", "x", "", "0000001f.bak"] {
            assert_eq!(revision_of(other), None, "{other}");
        }
    }
}
