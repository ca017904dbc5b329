//! The directory of a media driver.
//!
//! ```text
//!  /dev/shm/unitape-link-PID-N/lock     locked for as long as the process lives
//!                              driver/  the driver's own
//! ```
//!
//! It is new each time: two drivers in one directory destroy each other, and a driver waits up to 20 s before it uses a directory that
//! had another one. What a killed process leaves is removed by the next one that finds its lock free.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::Error;

/// The directory of a driver, removed when it is dropped.
#[derive(Debug)]
pub(super) struct DriverDirectory {
    directory_path: PathBuf,
    /// Locked for as long as the directory is in use.
    _lock: File,
}

const DIRECTORY_PREFIX: &str = "unitape-link-";
const LOCK_NAME: &str = "lock";

/// A directory younger than this may not be locked yet by the process that makes it.
const DIRECTORY_AGE_MIN: Duration = Duration::from_secs(60);

impl DriverDirectory {
    /// Makes a new directory in shared memory, or in the folder for temporary files where there is none.
    #[cfg(feature = "aeron")]
    pub(super) fn create() -> Result<Self, Error> {
        let memory = Path::new("/dev/shm");
        Self::create_in(if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }.as_path())
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.directory_path
    }

    fn create_in(parent: &Path) -> Result<Self, Error> {
        remove_unused(parent);
        for attempt in 0u32.. {
            let path = parent.join(format!("{DIRECTORY_PREFIX}{}-{attempt}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = lock_directory(&path)
                        .map_err(|source| Error::Io { doing: format!("lock {}", path.display()), source })?;
                    return Ok(Self { directory_path: path, _lock: lock });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Io { doing: format!("make {}", path.display()), source }),
            }
        }
        unreachable!("a directory has not 2^32 entries")
    }
}

impl Drop for DriverDirectory {
    fn drop(&mut self) {
        // What stays is removed by the next process.
        _ = fs::remove_dir_all(&self.directory_path);
    }
}

fn lock_directory(path: &Path) -> std::io::Result<File> {
    let lock = File::create(path.join(LOCK_NAME))?;
    lock.try_lock()?;
    Ok(lock)
}

/// Removes directories whose processes are dead. What cannot be removed is left: it belongs to another user.
fn remove_unused(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(DIRECTORY_PREFIX) {
            continue;
        }
        let is_old = |made: SystemTime| made.elapsed().is_ok_and(|age| age >= DIRECTORY_AGE_MIN);
        let modified_at = entry.metadata().and_then(|metadata| metadata.modified());
        let lock = File::open(path.join(LOCK_NAME));
        if modified_at.is_ok_and(is_old) && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is killed leaves 100 MiB of shared memory.
    #[test]
    fn a_directory_of_a_dead_process_is_removed_and_no_other() {
        let parent = tempfile::tempdir().unwrap();
        let is_there = |name: &str| parent.path().join(name).exists();
        let make = |name: &str, is_old: bool| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            let lock = File::create(path.join(LOCK_NAME)).unwrap();
            let made = SystemTime::now() - if is_old { 2 * DIRECTORY_AGE_MIN } else { Duration::ZERO };
            File::open(&path).unwrap().set_modified(made).unwrap();
            lock
        };
        let locked = make("unitape-link-1-0", true);
        locked.try_lock().unwrap();
        for (name, is_old) in [("unitape-link-2-0", true), ("unitape-link-3-0", false), ("other-4-0", true)] {
            make(name, is_old);
        }
        let own_directory = DriverDirectory::create_in(parent.path()).unwrap();
        assert!(!is_there("unitape-link-2-0"), "its process is dead");
        assert!(is_there("unitape-link-1-0") && is_there("unitape-link-3-0") && is_there("other-4-0"));
        let second = DriverDirectory::create_in(parent.path()).unwrap();
        assert_ne!(own_directory.path(), second.path());
        let path = own_directory.path().to_owned();
        drop(own_directory);
        assert!(!path.exists() && second.path().exists());
    }
}
