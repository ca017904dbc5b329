//! Which directory a tape is, whatever its name: a copy of it is another one, and one that was renamed is the same.
//!
//! A file system gives an inode number again after a removal, so the time of birth belongs to the identity where the
//! file system keeps one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Identity of a directory: device, inode number, and time of birth in nanoseconds since 1970 (0: not known).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryIdentity(pub [u64; 3]);

impl DirectoryIdentity {
    /// Returns the identity of the directory at `dir`.
    ///
    /// # Errors
    /// Fails if the system cannot look at the directory.
    pub fn from_dir(dir: &Path) -> std::io::Result<Self> {
        let meta = std::fs::metadata(dir)?;
        let born = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(0));
        Ok(Self([meta.dev(), meta.ino(), born_ns]))
    }

    /// Returns whether the directory at `dir` has this identity.
    pub fn is_at(self, dir: &Path) -> bool {
        Self::from_dir(dir).is_ok_and(|identity| identity == self)
    }
}
