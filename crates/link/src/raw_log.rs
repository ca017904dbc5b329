//! The raw bytes of quarantine, which are in a file beside the segments.
//!
//! ```text
//!  event on the tape ── raw_at, length, hash ──▶ quarantine.raw  … ■■■■■■■■ …
//! ```
//!
//! A sender sends the bytes up to the end that an event names before it sends the event, and compares them with the hash of the
//! event. It sends no byte that no event names: a writer that was killed cuts those off when it is started again.

use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use unitape_model::{Event, EventField, EventKind, EventValue, Position, frames};

use crate::error::Error;

const RAW_LOG: &str = "quarantine.raw";

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// What a receiver has of the raw log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawState {
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of all of it.
    pub crc: u32,
}

/// The raw log of a sender.
#[derive(Debug)]
pub struct RawSource {
    log_path: PathBuf,
    piece_buffer: Vec<u8>,
}

impl RawSource {
    /// Returns the raw log of the tape in `dir`, which need not exist.
    pub fn new(dir: &Path) -> Self {
        Self { log_path: dir.join(RAW_LOG), piece_buffer: Vec::new() }
    }

    /// Returns the end of the bytes that the events of these frames name; the first frame is at `position`. Compares the bytes
    /// with the hashes of the events.
    ///
    /// # Errors
    /// Fails if bytes are missing or differ.
    pub fn needed(&mut self, position: Position, run: &[u8]) -> Result<u64, Error> {
        let mut needed = 0;
        for (offset, header, frame) in frames(run) {
            if header.kind() == EventKind::Quarantine as u8
                && let Some(event) = Event::new(frame)
            {
                needed = self.check_event(position.plus(offset as u64), &event)?.max(needed);
            }
        }
        Ok(needed)
    }

    /// Reads `bytes` bytes at `offset`.
    ///
    /// # Errors
    /// Fails if they are not there.
    pub fn read_bytes(&mut self, offset: u64, bytes: usize) -> Result<&[u8], Error> {
        self.piece_buffer.resize(bytes, 0);
        let read_result =
            File::open(&self.log_path).and_then(|file| file.read_exact_at(&mut self.piece_buffer, offset));
        read_result.map_err(|source| self.io_failure("read", source))?;
        Ok(&self.piece_buffer)
    }

    /// Returns whether the log begins with the bytes that a receiver has.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn begins_with(&self, theirs: RawState) -> Result<bool, Error> {
        let ours =
            read_state(&self.log_path, theirs.bytes).map_err(|source| self.io_failure("read", source))?;
        Ok(ours == theirs)
    }

    /// Returns the end of the bytes of an event.
    fn check_event(&mut self, position: Position, event: &Event<'_>) -> Result<u64, Error> {
        let uint = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::UInt(value)) => value,
            _ => 0,
        };
        let (start, length) = (uint(EventField::RawAt), uint(EventField::Length));
        if length == 0 {
            return Ok(0);
        }
        let damage =
            |path: &Path, reason: String| Error::RawDamage { path: path.to_owned(), position, reason };
        let Some(bytes_end) = start.checked_add(length) else {
            return Err(damage(&self.log_path, format!("no file has {length} bytes at {start}")));
        };
        let mut hasher = blake3::Hasher::new();
        let mut offset = start;
        while offset < bytes_end {
            let count = (bytes_end - offset).min(PIECE_BYTES as u64) as usize;
            match self.read_bytes(offset, count) {
                Ok(piece) => drop(hasher.update(piece)),
                Err(Error::Io { source, .. })
                    if [ErrorKind::UnexpectedEof, ErrorKind::NotFound].contains(&source.kind()) =>
                {
                    return Err(damage(&self.log_path, format!("it lacks bytes of the {length} at {start}")));
                }
                Err(error) => return Err(error),
            }
            offset += count as u64;
        }
        let mut scratch = [0; 36];
        let is_same = match event.field(EventField::Hash, &mut scratch) {
            Some(EventValue::Text(hash)) => {
                blake3::Hash::from_hex(hash).is_ok_and(|wanted| wanted == hasher.finalize())
            }
            // Events of earlier builds have no hash.
            _ => true,
        };
        match is_same {
            true => Ok(bytes_end),
            false => Err(damage(
                &self.log_path,
                format!("the {length} bytes at {start} do not match the checksum of the event"),
            )),
        }
    }

    fn io_failure(&self, doing: &str, source: IoError) -> Error {
        Error::Io { doing: format!("{doing} {}", self.log_path.display()), source }
    }
}

/// The raw log of a receiver.
#[derive(Debug)]
pub struct RawCopy {
    log_path: PathBuf,
    log_file: Option<File>,
    raw_state: RawState,
    is_dirty: bool,
}

impl RawCopy {
    /// Reads the raw log in `dir`, which need not exist.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(RAW_LOG);
        match read_state(&path, u64::MAX) {
            Ok(state) => Ok(Self { log_path: path, log_file: None, raw_state: state, is_dirty: false }),
            Err(source) => Err(Error::Io { doing: format!("read {}", path.display()), source }),
        }
    }

    /// Returns what it has.
    pub fn state(&self) -> RawState {
        self.raw_state
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let failure = |source| Error::Io { doing: format!("write {}", self.log_path.display()), source };
        let file = match &self.log_file {
            Some(file) => file,
            None => {
                let file = File::options().write(true).create(true).truncate(false).open(&self.log_path);
                self.log_file.insert(file.map_err(failure)?)
            }
        };
        file.write_all_at(bytes, self.raw_state.bytes).map_err(failure)?;
        self.raw_state.bytes += bytes.len() as u64;
        self.raw_state.crc = crc32c::crc32c_append(self.raw_state.crc, bytes);
        self.is_dirty = true;
        Ok(())
    }

    /// Makes it durable: an event on a durable tape finds its bytes.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn make_durable(&mut self) -> Result<(), Error> {
        if let Some(file) = self.log_file.as_ref().filter(|_| self.is_dirty) {
            file.sync_data().map_err(|source| Error::Io {
                doing: format!("flush {}", self.log_path.display()),
                source,
            })?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

/// Reads the state of at most the first `bytes_max` bytes of a file.
fn read_state(path: &Path, bytes_max: u64) -> std::io::Result<RawState> {
    let mut state = RawState::default();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(state),
        Err(e) => return Err(e),
    };
    let mut file = file.take(bytes_max);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(state);
        }
        state.bytes += count as u64;
        state.crc = crc32c::crc32c_append(state.crc, &piece[..count]);
    }
}
