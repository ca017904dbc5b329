//! The starts of a resumed stream's files in that stream, so that a file that is done with may be removed.
//!
//! ```text
//!  FEED/.resume   16 bytes a file: its number u64, the byte of the stream that it begins with u64; little-endian
//! ```
//!
//! An entry is written before the file before it ends. If one number has several, the last one counts; file 1 begins
//! at byte 0.

use super::{ENTRY, create, make_directory};
use crate::error::Error;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The starts of a stream's files.
#[derive(Debug, Default)]
pub struct StreamOffsets {
    offsets_path: PathBuf,
    base_by_file: BTreeMap<u64, u64>,
    file_length: u64,
}

impl StreamOffsets {
    /// Name of its file.
    pub const NAME: &str = ".resume";

    /// Reads the offsets of the journal in `dir`.
    ///
    /// # Errors
    /// Fails if the file is there and cannot be read.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        make_directory(dir)?;
        let path = dir.join(Self::NAME);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(Error::Read { path, offset: 0, source }),
        };
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let bases = entries.iter().map(|e| (word(&e[..8]), word(&e[8..]))).collect();
        Ok(Self { offsets_path: path, base_by_file: bases, file_length: (entries.len() * ENTRY) as u64 })
    }

    /// Returns the stream offset at which this file begins.
    pub fn base(&self, number: u64) -> u64 {
        self.base_by_file.get(&number).copied().unwrap_or(0)
    }

    /// Returns whether the start of this file in the stream is known.
    pub fn knows(&self, number: u64) -> bool {
        number <= 1 || self.base_by_file.contains_key(&number)
    }

    /// Returns the greatest file number with an entry; 0 without entries.
    pub fn last(&self) -> u64 {
        self.base_by_file.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Notes where a file begins.
    ///
    /// # Errors
    /// Fails if the disk refuses; nothing was noted then, and the same may be tried again.
    pub fn note(&mut self, number: u64, base: u64) -> Result<(), Error> {
        let entry = [number.to_le_bytes(), base.to_le_bytes()].concat();
        let written = create(&self.offsets_path)?.write_all_at(&entry, self.file_length);
        written.map_err(|source| Error::Read {
            path: self.offsets_path.clone(),
            offset: self.file_length,
            source,
        })?;
        self.file_length += ENTRY as u64;
        self.base_by_file.insert(number, base);
        Ok(())
    }
}
