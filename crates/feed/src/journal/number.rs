//! The number of the last file that a journal ever had. Its files may be removed; a number that the tape knows must not come
//! again, because the tape does not read a source twice.
//!
//! ```text
//!  FEED/.number   the number, u64; little-endian
//! ```

use super::create;
use crate::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The number that the journal in `dir` notes; none where it notes none.
pub fn noted_number(dir: &Path) -> Option<u64> {
    let bytes = std::fs::read(dir.join(NAME)).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Notes that the file of this number has begun.
///
/// # Errors
/// When the disk refuses.
pub fn note_number(dir: &Path, number: u64) -> Result<(), Error> {
    let path = dir.join(NAME);
    let written = create(&path)?.write_all_at(&number.to_le_bytes(), 0);
    written.map_err(|source| Error::Read { path, offset: 0, source })
}

/// The number of a journal's file with this name.
pub fn number_of_file(name: &str) -> Option<u64> {
    name.strip_suffix(".raw").or_else(|| name.strip_suffix(".pcap"))?.parse().ok()
}

const NAME: &str = ".number";
