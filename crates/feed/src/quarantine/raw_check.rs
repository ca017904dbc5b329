//! Whether the raw log still has the bytes that were put into quarantine.
//!
//! ```text
//!  event on the tape ── raw_at, length ──▶ quarantine.raw  … ■■■■■■■■ …
//!        └──────────── hash ◀── compared ── BLAKE3 of these bytes
//! ```
//!
//! The event is under the checksums of the tape, so its hash vouches for the bytes beside the tape. Events of earlier
//! builds have no hash; of their bytes only the length can be checked.

use super::{QuarantineEntry, RAW_LOG, list, list_with, raw_log_error};
use crate::account::TapeAccount;
use crate::error::Error;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use unitape_model::Position;
use unitape_tape::{ForeignDamage, ReadOptions, open_regular};

/// Bytes that are read at once to be hashed.
const PIECE_BYTES: usize = 1 << 20;
/// Damaged entries that a report names; the others are counted.
const DAMAGE_MAX: usize = 1000;

/// The result of a check of all bytes of the raw log.
#[derive(Clone, Debug, Default)]
pub struct RawLogReport {
    /// Entries whose bytes match their hash.
    pub intact: u64,
    /// Entries whose bytes are present, and whose event has no hash.
    pub unhashed: u64,
    /// Entries whose bytes have changed or are missing.
    pub damaged: u64,
    /// The first of these.
    pub damage: Vec<RawLogDamage>,
    /// The raw log.
    pub path: PathBuf,
}

/// An entry of the quarantine whose bytes have changed.
#[derive(Clone, Debug)]
pub struct RawLogDamage {
    /// Position of its event on the tape; `None` for an event that retention has removed.
    pub position: Option<Position>,
    /// Start of its bytes in the raw log.
    pub raw_at: u64,
    /// The problem, in words.
    pub reason: String,
    /// The message's feed, file and place in it.
    pub message: String,
}

impl RawLogReport {
    /// Compares the entries with the raw log of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the log cannot be read; one that is missing or too short is damage.
    pub fn compare_entries(dir: &Path, entries: &[QuarantineEntry]) -> Result<Self, Error> {
        let mut log = RawFile::open(dir)?;
        let mut report = Self { path: log.log_path.clone(), ..Self::default() };
        for entry in entries.iter().filter(|e| e.length > 0) {
            match log.check_entry(entry)? {
                None if entry.hash.is_empty() => report.unhashed += 1,
                None => report.intact += 1,
                Some(reason) => report.add_problem(entry, reason),
            }
        }
        Ok(report)
    }

    /// Entries that have bytes in the raw log.
    pub fn entries(&self) -> u64 {
        self.intact + self.unhashed + self.damaged
    }

    /// Describes the problems for people: one line for each of the first damaged entries, and one line for the
    /// others.
    pub fn problems(&self) -> Vec<String> {
        let line = |d: &RawLogDamage| {
            format!(
                "{} at offset {}: {} (event at position {})",
                self.path.display(),
                d.raw_at,
                d.reason,
                d.position.unwrap_or_default()
            )
        };
        let mut lines: Vec<String> = self.damage.iter().map(line).collect();
        match self.damaged - self.damage.len() as u64 {
            0 => {}
            more => lines.push(format!("{}: {more} further entries are damaged", self.path.display())),
        }
        lines
    }

    fn add_problem(&mut self, entry: &QuarantineEntry, reason: String) {
        self.damaged += 1;
        if self.damage.len() < DAMAGE_MAX {
            let message = format!("{} at byte {}", entry.source, entry.offset);
            let (position, raw_at) = (Some(entry.position), entry.raw_at);
            self.damage.push(RawLogDamage { position, raw_at, reason, message });
        }
    }
}

/// Compares the raw log of the tape in `dir` with every quarantine event of its `account`.
///
/// # Errors
/// Fails if the tape or the log cannot be read.
pub fn check_raw(dir: &Path, account: &TapeAccount) -> Result<RawLogReport, Error> {
    if account.raw_bytes == 0 {
        return Ok(RawLogReport::default());
    }
    let mut report = RawLogReport::compare_entries(dir, &list(dir)?)?;
    let length = RawFile::open(dir)?.length;
    // The missing bytes belong to events that retention has removed.
    if report.damaged == 0 && length < account.raw_bytes {
        report.damaged = 1;
        let reason =
            format!("it has {length} bytes, but the tape refers to {}; it was cut", account.raw_bytes);
        report.damage.push(RawLogDamage { position: None, raw_at: length, reason, message: String::new() });
    }
    Ok(report)
}

/// Lists the losses in the raw log of the tape in `dir`, for [`unitape_tape::repair`]. Lost bytes cannot be restored;
/// the rest of the log stays where it is.
///
/// # Errors
/// Fails if the tape or the log cannot be read.
pub fn raw_damage(dir: &Path) -> Result<Vec<ForeignDamage>, Error> {
    let entries = list_with(dir, ReadOptions { verify: true, skip_damage: true })?.entries;
    let report = RawLogReport::compare_entries(dir, &entries)?;
    let finding = |d: &RawLogDamage| ForeignDamage {
        file_path: report.path.clone(),
        offset: d.raw_at,
        reason: format!("{} (event at position {})", d.reason, d.position.unwrap_or_default()),
        is_harmless: false,
        stays: true,
        action: format!(
            "the bytes of the message of {} are lost here; its event stays, and the message is in its source if you have kept \
             that",
            d.message
        ),
    };
    Ok(report.damage.iter().map(finding).collect())
}

/// The raw log, open to be compared.
#[derive(Debug)]
pub(super) struct RawFile {
    log_path: PathBuf,
    log_file: Option<File>,
    length: u64,
    piece_buffer: Vec<u8>,
}

impl RawFile {
    /// Opens the raw log of the tape in `dir`; a missing log counts as empty.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(RAW_LOG);
        let (file, length) = match open_regular(&path).and_then(|file| Ok((file.metadata()?.len(), file))) {
            Ok((length, file)) => (Some(file), length),
            Err(e) if e.kind() == ErrorKind::NotFound => (None, 0),
            Err(source) => return Err(Error::Raw { path, source }),
        };
        Ok(Self { log_path: path, log_file: file, length, piece_buffer: Vec::new() })
    }

    /// Returns the problem with the bytes of an entry, if there is one.
    pub(super) fn check_entry(&mut self, entry: &QuarantineEntry) -> Result<Option<String>, Error> {
        let (raw_offset, length) = (entry.raw_at, entry.length);
        if length == 0 {
            return Ok(None);
        }
        let Some(file) = &self.log_file else {
            return Ok(Some(format!("it is missing, but the tape refers to {length} bytes at {raw_offset}")));
        };
        if raw_offset.checked_add(length).is_none_or(|end| end > self.length) {
            let file_length = self.length;
            return Ok(Some(format!(
                "it has {file_length} bytes, but the event names {length} bytes at {raw_offset}; it was cut, or unitape did not write the \
                 event"
            )));
        }
        if entry.hash.is_empty() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let (mut from, mut left) = (raw_offset, length);
        while left > 0 {
            let n = left.min(PIECE_BYTES as u64) as usize;
            self.piece_buffer.resize(self.piece_buffer.len().max(n), 0);
            let piece = &mut self.piece_buffer[..n];
            file.read_exact_at(piece, from)
                .map_err(|source| Error::Raw { path: self.log_path.clone(), source })?;
            hasher.update(piece);
            (from, left) = (from + n as u64, left - n as u64);
        }
        Ok(mismatch_text(&hasher.finalize(), length, &entry.hash))
    }
}

/// Compares bytes that were read at this place of the raw log of the tape in `dir` with the hash of their event.
///
/// # Errors
/// Fails if they differ.
pub(super) fn compare_bytes(dir: &Path, raw_at: u64, hash: &str, raw: &[u8]) -> Result<(), Error> {
    if raw.is_empty() || hash.is_empty() {
        return Ok(());
    }
    match mismatch_text(&blake3::hash(raw), raw.len() as u64, hash) {
        None => Ok(()),
        Some(reason) => {
            Err(raw_log_error(dir, ErrorKind::InvalidData, format!("at offset {raw_at}: {reason}")))
        }
    }
}

fn mismatch_text(actual_hash: &blake3::Hash, length: u64, expected_hash: &str) -> Option<String> {
    // An event that says no hash of this kind is not what unitape wrote.
    if blake3::Hash::from_hex(expected_hash.as_bytes()).is_ok_and(|hash| hash == *actual_hash) {
        return None;
    }
    let (actual, expected) = (&actual_hash.to_hex()[..16], expected_hash.get(..16).unwrap_or(expected_hash));
    Some(format!("the {length} bytes do not match the checksum of their event: {actual}…, not {expected}…"))
}
