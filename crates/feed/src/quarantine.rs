//! Quarantine: what could not become events, kept as it came.
//!
//! The raw bytes are in `quarantine.raw` beside the tape's segments, one message after the other; a
//! `quarantine` event on the tape says whose they are, why, and where in the raw log they are. The raw bytes
//! are written before the event is published, so every event finds its bytes. The event has the hash of its bytes: see
//! `raw_check`.

mod raw_check;
mod retry;
mod spool;

use raw_check::{RawFile, compare_bytes};

pub use raw_check::{RawLogDamage, RawLogReport, check_raw, raw_damage};
pub use retry::{RetryReport, retry};
pub use spool::RawSpool;

use crate::account::retention_checkpoint;
use crate::account::{TapeAccount, growth_of, head_of, text, uint};
use crate::error::Error;
use serde::{Serialize, Serializer};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_model::{Event, EventField, EventKind, LostNameCounts, Position, flags, frames};
use unitape_tape::{DefinitionReader, LostDefinitions, ReadOptions, Reader, open_regular, open_regular_with};

const RAW_LOG: &str = "quarantine.raw";

/// The raw log of a tape, open for appending.
#[derive(Debug)]
pub struct RawLog {
    log_path: PathBuf,
    log_file: Option<File>,
    log_length: u64,
    /// What was appended and is not in the file yet, see [`RawLog::open_held`].
    pending_bytes: Option<Vec<u8>>,
}

/// One entry of the quarantine.
#[derive(Clone, Debug, Serialize)]
pub struct QuarantineEntry {
    /// Position of its event on the tape.
    #[serde(serialize_with = "serialize_position")]
    pub position: Position,
    /// Feed and file name.
    pub source: String,
    /// Offset of the message in the source, bytes.
    pub offset: u64,
    /// Length of the message, bytes.
    pub length: u64,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub detail: String,
    /// Whether a retry has made events of it.
    pub recovered: bool,
    /// Whether its file has grown and the message was read again: the file had ended in it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// The problem with its bytes, if they were compared and differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    #[serde(skip)]
    raw_at: u64,
    /// BLAKE3 of its bytes; empty on tapes of earlier builds.
    #[serde(skip)]
    hash: String,
    /// Id of the source's first definition.
    #[serde(skip)]
    source_id: u32,
    /// Id that events carry, which is another one in each 4 GiB.
    #[serde(skip)]
    extent_id: u32,
    /// The first bytes of the source, where the message cannot be read without them.
    #[serde(skip)]
    head: Arc<[u8]>,
}

/// The quarantine of a tape, and the findings of reading it.
#[derive(Debug)]
pub struct QuarantineListing {
    /// The entries, in tape order.
    pub entries: Vec<QuarantineEntry>,
    /// The reader, which knows the parts that it skipped or could not check.
    pub reader: Reader,
    /// Names whose definitions are lost.
    pub names: LostNameCounts,
    /// Whether bytes are compared with their hash before they are shown.
    verify: bool,
}

impl QuarantineListing {
    /// Compares the bytes of all entries with their hash, unless the listing is read without checks; returns how many are
    /// damaged.
    ///
    /// # Errors
    /// Fails if the raw log of the tape in `dir` cannot be read.
    pub fn compare(&mut self, dir: &Path) -> Result<u64, Error> {
        let mut damaged = 0;
        if self.verify {
            let mut log = RawFile::open(dir)?;
            for entry in &mut self.entries {
                entry.damaged = log.check_entry(entry)?;
                damaged += u64::from(entry.damaged.is_some());
            }
        }
        Ok(damaged)
    }
}

impl RawLog {
    /// Opens the raw log of the tape in `dir`. The tape refers to its first `len` bytes; bytes after them come from a
    /// killed writer and are cut off.
    ///
    /// # Errors
    /// Fails if the log is shorter than `len`, or cannot be opened.
    pub fn open(dir: &Path, len: u64) -> Result<Self, Error> {
        let mut log = Self::open_held(dir, len)?;
        log.release()?;
        Ok(log)
    }

    /// Opens the raw log like [`RawLog::open`], but leaves the file unchanged until [`RawLog::release`].
    ///
    /// # Errors
    /// Fails as [`RawLog::open`] does.
    pub fn open_held(dir: &Path, len: u64) -> Result<Self, Error> {
        let path = dir.join(RAW_LOG);
        let fail = |source| Error::Raw { path: path.clone(), source };
        let file = match open_regular_with(File::options().read(true).write(true), &path) {
            Ok(file) => {
                let log_bytes = file.metadata().map_err(fail)?.len();
                if log_bytes < len {
                    let reason = format!("{log_bytes} bytes, but the tape refers to {len}");
                    return Err(fail(IoError::new(ErrorKind::UnexpectedEof, reason)));
                }
                Some(file)
            }
            Err(e) if e.kind() == ErrorKind::NotFound && len == 0 => None,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let reason = format!("is missing, but the tape refers to {len} bytes of it");
                return Err(fail(IoError::new(ErrorKind::UnexpectedEof, reason)));
            }
            Err(e) => return Err(fail(e)),
        };
        Ok(Self { log_path: path, log_file: file, log_length: len, pending_bytes: Some(Vec::new()) })
    }

    /// Writes the messages appended since, and cuts off the bytes after them.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn release(&mut self) -> Result<(), Error> {
        let Some(pending_bytes) = self.pending_bytes.take() else { return Ok(()) };
        let len = self.log_length;
        self.log_length -= pending_bytes.len() as u64;
        if !pending_bytes.is_empty() {
            self.append(&pending_bytes)?;
        }
        let fail = |source| Error::Raw { path: self.log_path.clone(), source };
        self.log_file.as_ref().map_or(Ok(()), |file| file.set_len(len)).map_err(fail)
    }

    /// Appends a message; returns its offset.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn append(&mut self, raw: &[u8]) -> Result<u64, Error> {
        if let Some(pending_bytes) = &mut self.pending_bytes {
            let offset = self.log_length;
            pending_bytes.extend_from_slice(raw);
            self.log_length += raw.len() as u64;
            return Ok(offset);
        }
        let fail = |source| Error::Raw { path: self.log_path.clone(), source };
        let file = match &self.log_file {
            Some(file) => file,
            None => {
                let options = &mut File::options();
                let file = options.read(true).write(true).create(true).truncate(true).open(&self.log_path);
                self.log_file.insert(file.map_err(fail)?)
            }
        };
        file.write_all_at(raw, self.log_length).map_err(fail)?;
        let offset = self.log_length;
        self.log_length += raw.len() as u64;
        Ok(offset)
    }

    /// Makes it durable.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        match &self.log_file {
            Some(file) => {
                file.sync_data().map_err(|source| Error::Raw { path: self.log_path.clone(), source })
            }
            None => Ok(()),
        }
    }
}

impl QuarantineEntry {
    /// Returns whether the entry is neither recovered nor superseded.
    pub fn is_open(&self) -> bool {
        !self.recovered && !self.superseded
    }
}

/// Marks the entry that a definition says its grown file has superseded.
fn mark_superseded(entries: &mut [QuarantineEntry], definition: &Event<'_>) {
    let Some((true, from)) = growth_of(definition) else { return };
    let first_id = uint(definition, EventField::Of).unwrap_or(0) as u32;
    let last_entry = entries.iter_mut().rev().find(|e| e.source_id == first_id && e.offset == from);
    if let Some(entry) = last_entry {
        entry.superseded = true;
    }
}

/// Lists the quarantine of the tape in `dir`, in tape order.
///
/// # Errors
/// Fails if the tape cannot be read.
pub fn list(dir: &Path) -> Result<Vec<QuarantineEntry>, Error> {
    Ok(list_with(dir, ReadOptions::default())?.entries)
}

/// Lists the quarantine of the tape in `dir`, read with or without checks.
///
/// # Errors
/// Fails as [`list`] does.
pub fn list_with(dir: &Path, options: ReadOptions) -> Result<QuarantineListing, Error> {
    let (mut account, mut reader) = retention_checkpoint::open_at_checkpoint(dir, options)?;
    let mut lost_definitions = LostDefinitions::new(dir, options.skip_damage);
    let mut entries = Vec::new();
    let mut late = HashSet::new();
    while let Some(run) = reader.next_run(1 << 20)? {
        lost_definitions.learn_before_bytes(run.position, run.bytes, |_, frame| account.add(frame))?;
        let mut refused = None;
        for (offset, header, frame) in frames(run.bytes) {
            let position = run.position.plus(offset as u64);
            // After damage the account cannot close.
            if let Err(reason) = account.add(frame)
                && !options.skip_damage
            {
                refused = Some((position, reason));
                break;
            }
            let Some(event) = Event::new(frame) else { continue };
            if header.is_meta() {
                if event.kind() == EventKind::Source {
                    mark_superseded(&mut entries, &event);
                }
                continue;
            }
            if header.flags() & flags::LATE != 0 && event.kind() != EventKind::Quarantine {
                late.insert(source_and_offset(&account, &event));
            } else if event.kind() == EventKind::Quarantine {
                entries.push(entry(&account, &event, position));
            }
        }
        if let Some((position, reason)) = refused {
            return Err(reader.damage_at(position, &reason).into());
        }
    }
    let headed: BTreeSet<u32> =
        account.sources.iter().flat_map(|source| source.head_hashes.keys().copied()).collect();
    let heads = read_heads(dir, entries.iter().map(|e| e.extent_id).filter(|id| headed.contains(id)))?;
    for e in &mut entries {
        e.recovered = !e.superseded && late.contains(&(e.source_id, e.offset));
        if let Some(head) = heads.get(&e.extent_id) {
            e.head = head.clone();
        }
    }
    Ok(QuarantineListing { entries, reader, names: account.names.lost_names(), verify: options.verify })
}

/// Reads the first bytes of sources for the definitions with these ids, from the dictionary log of the tape in `dir`:
/// retention may have removed the definitions from the tape. From a damaged log, returns those before the damage.
fn read_heads(dir: &Path, ids: impl Iterator<Item = u32>) -> Result<HashMap<u32, Arc<[u8]>>, Error> {
    let mut wanted_ids: BTreeSet<u32> = ids.collect();
    let mut heads = HashMap::new();
    if wanted_ids.is_empty() {
        return Ok(heads);
    }
    let mut log = DefinitionReader::open(dir)?;
    while let Ok(Some((_, frame))) = log.next() {
        let Some(event) = Event::new(frame).filter(|event| event.kind() == EventKind::Source) else {
            continue;
        };
        let id = uint(&event, EventField::Index).unwrap_or(0) as u32;
        if wanted_ids.remove(&id)
            && let Some(head) = head_of(&event)
        {
            heads.insert(id, head.into());
        }
        if wanted_ids.is_empty() {
            break;
        }
    }
    Ok(heads)
}

/// Returns the entry whose event is at `position`, with its raw bytes.
///
/// # Errors
/// Fails if there is no such entry, or if its bytes cannot be read or have changed.
pub fn show(dir: &Path, position: Position) -> Result<(QuarantineEntry, Vec<u8>), Error> {
    show_in(dir, &list_with(dir, ReadOptions::default())?, position)
}

/// Returns the entry of a listing whose event is at `position`, with its raw bytes.
///
/// # Errors
/// Fails as [`show`] does.
pub fn show_in(
    dir: &Path,
    listing: &QuarantineListing,
    position: Position,
) -> Result<(QuarantineEntry, Vec<u8>), Error> {
    let listed_entry = listing.entries.iter().find(|e| e.position == position);
    let entry = listed_entry.ok_or(Error::NoEntry { position })?;
    let raw = raw_of(dir, entry)?;
    if listing.verify {
        compare_bytes(dir, entry.raw_at, &entry.hash, &raw)?;
    }
    Ok((entry.clone(), raw))
}

/// Returns the id of the first definition of an event's source, and the offset of its message there.
fn source_and_offset(account: &TapeAccount, event: &Event<'_>) -> (u32, u64) {
    let id = event.source();
    let (id, base) = account.source_of(id).map_or((id, 0), |(s, base)| (s.id, base));
    (id, base + u64::from(event.offset()))
}

fn entry(account: &TapeAccount, event: &Event<'_>, position: Position) -> QuarantineEntry {
    let id = event.source();
    let source = account.source_of(id).map(|(source, _)| source);
    let (source_id, offset) = source_and_offset(account, event);
    QuarantineEntry {
        position,
        source: source.map_or_else(String::new, |s| format!("{}/{}", s.feed, s.file)),
        offset,
        length: uint(event, EventField::Length).unwrap_or(0),
        reason: text(event, EventField::Reason),
        detail: text(event, EventField::Detail),
        recovered: false,
        superseded: false,
        damaged: None,
        raw_at: uint(event, EventField::RawAt).unwrap_or(0),
        hash: text(event, EventField::Hash),
        source_id,
        extent_id: id,
        head: head_of(event).unwrap_or_default().into(),
    }
}

/// Serializes a position as a plain number.
fn serialize_position<S: Serializer>(position: &Position, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(position.0)
}

fn raw_of(dir: &Path, entry: &QuarantineEntry) -> Result<Vec<u8>, Error> {
    raw_bytes(dir, entry.raw_at, entry.length)
}

/// Reads the bytes of a quarantine event of the tape in `dir` and compares them with its hash.
///
/// # Errors
/// Fails if the bytes are missing, or have changed.
pub(crate) fn raw_of_event(dir: &Path, event: &Event<'_>) -> Result<Vec<u8>, Error> {
    let part = |field| uint(event, field).unwrap_or(0);
    let (raw_at, length) = (part(EventField::RawAt), part(EventField::Length));
    let raw = raw_bytes(dir, raw_at, length)?;
    compare_bytes(dir, raw_at, &text(event, EventField::Hash), &raw)?;
    Ok(raw)
}

fn raw_log_error(dir: &Path, kind: ErrorKind, reason: String) -> Error {
    Error::Raw { path: dir.join(RAW_LOG), source: IoError::new(kind, reason) }
}

/// Reads `length` bytes of the raw log of the tape in `dir`, from `raw_at` on.
fn raw_bytes(dir: &Path, raw_at: u64, length: u64) -> Result<Vec<u8>, Error> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let path = dir.join(RAW_LOG);
    let read_log = || {
        // The tape refers to this file, so it is a part of the tape: without it, data are missing.
        let file = open_regular(&path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                IoError::new(ErrorKind::UnexpectedEof, "is missing, but the tape refers to it")
            }
            _ => e,
        })?;
        // Asked before memory is: the length is what the tape says, and a tape can be damaged.
        let log_bytes = file.metadata()?.len();
        if raw_at.checked_add(length).is_none_or(|end| log_bytes < end) {
            let reason = format!(
                "it has {log_bytes} bytes, but an event names {length} bytes at {raw_at}; see `unitape tape verify`"
            );
            return Err(IoError::new(ErrorKind::UnexpectedEof, reason));
        }
        let mut raw = vec![0; length as usize];
        file.read_exact_at(&mut raw, raw_at)?;
        Ok(raw)
    };
    read_log().map_err(|source| Error::Raw { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a refused merge that cut off bytes to which its tape refers.
    #[test]
    fn held_bytes_change_nothing_before_they_are_released() {
        let dir = tempfile::tempdir().unwrap();
        let content = || std::fs::read(dir.path().join(RAW_LOG)).unwrap_or_default();
        let mut log = RawLog::open(dir.path(), 0).unwrap();
        assert_eq!((log.append(b"first").unwrap(), log.append(b"second").unwrap()), (0, 5));
        let mut log = RawLog::open_held(dir.path(), 5).unwrap();
        assert_eq!(log.append(b"se").unwrap(), 5);
        drop(log);
        assert_eq!(content(), b"firstsecond");
        let mut log = RawLog::open_held(dir.path(), 5).unwrap();
        log.append(b"third").unwrap();
        log.release().unwrap();
        assert_eq!(content(), b"firstthird");
        assert_eq!(log.append(b"!").unwrap(), 10);
        assert_eq!(content(), b"firstthird!");
        assert!(RawLog::open_held(dir.path(), 12).is_err());
    }
}
