//! The number of the last file that a journal ever had. Its files may be removed; a number that the tape knows must not come
//! again, because the tape does not read a source twice.
//!
//! ```text
//!  FEED/.number   the number, u64; the boot of the machine in which it was noted, u128; little-endian
//! ```
//!
//! A journal is not flushed. In the boot in which it was written it has all that the tape has read of it; after
//! another one only the tape says how much that is.

use super::create;
use crate::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The last file that a journal ever had, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastFile {
    /// The file's number; 0 without a file.
    pub number: u64,
    /// Bytes of it that the tape has read. Where the journal was written in this boot, 0: it has them.
    pub read_bytes: u64,
}

impl LastFile {
    /// Returns how many bytes of the file with this number the tape has read; 0 for another file.
    pub fn read_of(self, number: u64) -> u64 {
        if number == self.number { self.read_bytes } else { 0 }
    }
}

/// A journal's note on its last file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalFileNumber {
    /// Its number.
    pub number: u64,
    /// It was noted since the machine was started.
    pub is_of_this_boot: bool,
}

/// The state of a journal before its receiver wrote to it.
#[derive(Clone, Copy, Debug)]
pub struct InitialJournalState {
    /// The number of the journal's last file; 0 without a file.
    pub number: u64,
    /// Length of that file.
    pub bytes: u64,
    /// That file was written in this boot of the machine, and has all that was written to it.
    pub is_of_this_boot: bool,
}

impl InitialJournalState {
    /// Reads the state of the journal in `dir`.
    pub fn read(dir: &Path) -> Self {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let files = entries.filter_map(|entry| {
            let number = number_of_file(entry.file_name().to_str()?)?;
            Some((number, entry.metadata().ok()?.len()))
        });
        let (number, bytes) = files.max().unwrap_or_default();
        // The next one is noted where a power loss has cut this one.
        let is_of_this_boot =
            noted_number(dir).is_some_and(|note| note.is_of_this_boot && note.number <= number);
        Self { number, bytes, is_of_this_boot }
    }
}

/// Reads the number that the journal in `dir` notes; `None` if it has no note.
pub fn noted_number(dir: &Path) -> Option<JournalFileNumber> {
    let bytes = std::fs::read(dir.join(NAME)).ok()?;
    let (number, boot) = bytes.split_first_chunk()?;
    // Earlier builds noted no boot.
    let boot = boot.try_into().map_or(0, u128::from_le_bytes);
    let is_of_this_boot = boot != 0 && boot == boot_id();
    Some(JournalFileNumber { number: u64::from_le_bytes(*number), is_of_this_boot })
}

/// Notes that the file with this number has begun, or that it is next and that earlier files get no more data.
///
/// # Errors
/// Fails if the disk refuses.
pub fn note_number(dir: &Path, number: u64) -> Result<(), Error> {
    let path = dir.join(NAME);
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(&boot_id().to_le_bytes());
    let written = create(&path)?.write_all_at(&bytes, 0);
    written.map_err(|source| Error::Read { path, offset: 0, source })
}

/// Parses the file name of a journal and returns its number.
pub fn number_of_file(name: &str) -> Option<u64> {
    name.strip_suffix(".raw").or_else(|| name.strip_suffix(".pcap"))?.parse().ok()
}

/// Returns the identity of this boot of the machine; 0 if the system does not report it.
fn boot_id() -> u128 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap_or(0)
}

const NAME: &str = ".number";
