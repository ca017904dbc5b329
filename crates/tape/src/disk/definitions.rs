//! The dictionary log, `definitions.log`: copies of all definition frames, never recycled.
//!
//! ```text
//! 0   "UNITDEFS"   8  format version u64   16  tape id u128   32  zero   60  crc32c of 0..60
//! then records:    position u64 │ frame bytes u32 │ crc32c of position, length, frame u32 │ frame
//! ```

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use unitape_model::{FrameHeader, LINE, Position};

use crate::disk::durable::load_durable;
use crate::disk::layout::{FORMAT_VERSION, TapeManifest, TapePaths};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// Kinds of frames that are copied to the dictionary log.
pub const DEFINITION_KINDS: std::ops::RangeInclusive<u8> = 2..=7;
const MAGIC: &[u8; 8] = b"UNITDEFS";
pub(crate) const HEAD: usize = 64;
pub(crate) const RECORD: usize = 16;
const FRAME_BYTES_MAX: usize = u16::MAX as usize * LINE;

/// Reads the definitions of a tape in order, also those whose segments retention has removed.
#[derive(Debug)]
pub struct DefinitionReader {
    file: BufReader<File>,
    path: PathBuf,
    offset: u64,
    frame: Vec<u8>,
    /// The position that the head of the last record says.
    last_record_position: Option<Position>,
    /// The tape whose durable bytes the log must have; `None` while the log is under repair.
    durable_paths: Option<TapePaths>,
}

impl DefinitionReader {
    /// Opens the dictionary log of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if there is no tape or no log, or if the log has another tape or format.
    pub fn open(dir: &Path) -> Result<Self> {
        let meta = TapeManifest::load(dir)?;
        let paths = TapePaths { tape_dir: dir.into() };
        let log = Self::open_at(&paths.definitions(), &meta)?;
        Ok(Self { durable_paths: Some(paths), ..log })
    }

    pub(crate) fn open_at(path: &Path, meta: &TapeManifest) -> Result<Self> {
        let mut file = BufReader::new(File::open(path).with_context("open", path)?);
        let mut head = [0; HEAD];
        file.read_exact(&mut head).with_context("read", path)?;
        if head[..8] != *MAGIC || head[60..] != crc32c::crc32c(&head[..60]).to_le_bytes() {
            return Err(Error::damage(path, 0, "the head of the dictionary log is not one"));
        }
        let version = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
        if version != FORMAT_VERSION {
            return Err(Error::ForeignVersion {
                path: path.into(),
                version,
                supported_version: FORMAT_VERSION,
            });
        }
        if head[16..32] != meta.id.0.to_le_bytes() {
            return Err(Error::damage(path, 16, "the dictionary log belongs to another tape"));
        }
        Ok(Self {
            file,
            path: path.into(),
            offset: HEAD as u64,
            frame: Vec::new(),
            last_record_position: None,
            durable_paths: None,
        })
    }

    /// Returns the next definition: its position on the tape and its frame. Returns `None` at the end of the log.
    ///
    /// # Errors
    /// Fails if a record is cut short or does not match its checksum, and if the log ends before its durable end.
    #[allow(clippy::should_implement_trait)] // lends its buffer, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<(Position, &[u8])>> {
        let mut head = [0; RECORD];
        let bytes_read = read_full(&mut self.file, &mut head).with_context("read", &self.path)?;
        if bytes_read == 0 {
            return self.check_end().map(|()| None);
        }
        let position = |head: &[u8]| Position(u64::from_le_bytes(head[..8].try_into().expect("eight bytes")));
        self.last_record_position = (bytes_read == RECORD).then(|| position(&head));
        let (path, offset) = (&self.path, self.offset);
        let damage_error = |reason| Err(Error::damage(path, offset, reason));
        let length = u32::from_le_bytes(head[8..12].try_into().expect("four bytes")) as usize;
        if bytes_read < RECORD || length == 0 || length > FRAME_BYTES_MAX || !length.is_multiple_of(LINE) {
            return damage_error("a record of the dictionary log is cut short or has no length");
        }
        self.frame.resize(length, 0);
        if read_full(&mut self.file, &mut self.frame).with_context("read", &self.path)? < length {
            return damage_error("a record of the dictionary log is cut short");
        }
        if head[12..] != crc32c::crc32c_append(crc32c::crc32c(&head[..12]), &self.frame).to_le_bytes() {
            return damage_error("the checksum of a record of the dictionary log does not match");
        }
        self.offset += (RECORD + length) as u64;
        let position = Position(u64::from_le_bytes(head[..8].try_into().expect("eight bytes")));
        if !FrameHeader::read(&self.frame).is_at(position) {
            return damage_error("a record of the dictionary log holds a frame of another position");
        }
        Ok(Some((position, &self.frame)))
    }

    /// Checks that the log reaches its durable end. A log that was cut after a whole record contains no error, but
    /// lacks durable definitions.
    fn check_end(&self) -> Result<()> {
        let Some(paths) = &self.durable_paths else { return Ok(()) };
        // A damaged mark is reported when the tape is verified.
        let Ok(durable) = load_durable(paths) else { return Ok(()) };
        // Asked for after the mark: the log is flushed first, so that it is never behind.
        let length = self.file.get_ref().metadata().with_context("look at", &self.path)?.len();
        if length < durable.definitions_bytes {
            let reason = format!(
                "the dictionary log ends here; {} bytes of it were durable",
                durable.definitions_bytes
            );
            return Err(Error::damage(&self.path, length, reason));
        }
        Ok(())
    }

    /// Returns the position in the last record read, whether it is right or not.
    pub(crate) fn last_record_position(&self) -> Option<Position> {
        self.last_record_position
    }
}

/// The appending side, owned by the recorder.
#[derive(Debug)]
pub(crate) struct DefinitionLog {
    file: File,
    path: PathBuf,
    meta: TapeManifest,
    /// Bytes of whole records in the file, head included.
    pub length: u64,
    /// Everything below this position is in the log.
    covered_to: Position,
    /// The recorder came this far; the definitions before it occupy this many bytes. The log may have more of them.
    recorder_mark: (Position, u64),
    /// The position and bytes at the start of the segment that is followed.
    segment_mark: (Position, u64),
    pending_records: Vec<u8>,
}

impl DefinitionLog {
    /// Opens the log and cuts off a broken end and everything at or beyond `end` of the tape. The caller passes frames
    /// from position `from` on. The first `durable_bytes` are never cut.
    ///
    /// # Errors
    /// Fails if the durable part is damaged; it stays unchanged.
    pub fn open(
        paths: &TapePaths,
        meta: &TapeManifest,
        from: Position,
        bounds: LogRecoveryLimits,
    ) -> Result<Self> {
        let path = paths.definitions();
        if bounds.durable_bytes > HEAD as u64 && !path.exists() {
            return Err(durable_damage(&path, 0, "the dictionary log is missing", None));
        }
        let file = sys::open_or_make(&path).with_context("open", &path)?;
        let (mut length, mut covered) = (HEAD as u64, Position(0));
        let mut passed = (from, HEAD as u64);
        let file_bytes = file.metadata().with_context("look at", &path)?.len();
        if file_bytes < HEAD as u64 && bounds.durable_bytes > HEAD as u64 {
            return Err(durable_damage(
                &path,
                file_bytes,
                "the head of the dictionary log is cut short",
                None,
            ));
        }
        if file_bytes < HEAD as u64 {
            sys::write_at(&file, &encode_head(meta), 0).with_context("write", &path)?;
        } else {
            let mut records = match DefinitionReader::open_at(&path, meta) {
                Err(Error::Damage { offset, reason, .. }) => {
                    return Err(durable_damage(&path, offset, &reason, None));
                }
                other => other?,
            };
            loop {
                let broken = match records.next() {
                    Ok(Some((position, frame))) => {
                        let record_end = position.plus(frame.len() as u64);
                        if record_end > bounds.tape_end || position < covered {
                            let order_fault =
                                "a record of the dictionary log is not in the order of the tape".to_owned();
                            Some((order_fault, Some(position)))
                        } else {
                            covered = record_end;
                            length = records.offset;
                            if position < from {
                                passed.1 = length;
                            }
                            continue;
                        }
                    }
                    Ok(None) => None,
                    Err(Error::Damage { reason: fault, .. }) => Some((fault, records.last_record_position())),
                    Err(error) => return Err(error),
                };
                // A broken end is the tail of an append that was cut off: the tape has these definitions, and gives
                // them once more.
                if length < bounds.durable_bytes {
                    let ends = || ("the dictionary log is cut short".to_owned(), None);
                    let (cut_reason, position) = broken.unwrap_or_else(ends);
                    return Err(durable_damage(&path, length, &cut_reason, position));
                }
                break;
            }
        }
        if bounds.cuts_broken_records {
            sys::set_len(&file, length).with_context("cut", &path)?;
        }
        Ok(Self {
            file,
            path,
            meta: *meta,
            length,
            covered_to: covered,
            recorder_mark: passed,
            segment_mark: passed,
            pending_records: Vec::new(),
        })
    }

    /// Goes back to where everything below `covered` occupies `length` bytes. All after that is written again,
    /// the same bytes in the same place. Frames will be given from position `from` on, which is not after `covered`.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn rewind(&mut self, length: u64, covered: Position, from: Position) -> Result<()> {
        let length = length.max(HEAD as u64);
        let mut passed = HEAD as u64;
        let mut records = DefinitionReader::open_at(&self.path, &self.meta)?;
        while passed < length
            && let Some((position, _)) = records.next()?
            && position < from
        {
            passed = records.offset;
        }
        // All at once: after an error nothing has changed.
        (self.length, self.covered_to) = (length, covered);
        self.pending_records.clear();
        self.recorder_mark = (from, passed);
        self.segment_mark = self.recorder_mark;
        Ok(())
    }

    /// Keeps in mind that a segment begins here.
    pub fn mark(&mut self) {
        self.segment_mark = self.recorder_mark;
    }

    /// Goes back to the mark, so that the definitions of the segment can be passed again.
    pub fn rewind_to_mark(&mut self) {
        self.recorder_mark = self.segment_mark;
    }

    /// Returns the bytes of the definitions up to the last accepted definition.
    pub fn bytes_passed(&self) -> u64 {
        self.recorder_mark.1
    }

    /// Takes a definition frame, unless the log has it already.
    pub fn push(&mut self, position: Position, frame: &[u8]) {
        if position >= self.recorder_mark.0 {
            let frame_end = position.plus(frame.len() as u64);
            self.recorder_mark = (frame_end, self.recorder_mark.1 + (RECORD + frame.len()) as u64);
        }
        if position < self.covered_to {
            return;
        }
        self.pending_records.extend_from_slice(&encode_record(position, frame));
        self.pending_records.extend_from_slice(frame);
        self.covered_to = position.plus(frame.len() as u64);
    }

    /// Writes the definitions accepted so far.
    pub fn flush(&mut self) -> Result<()> {
        if !self.pending_records.is_empty() {
            sys::write_at(&self.file, &self.pending_records, self.length)
                .with_context("append to", &self.path)?;
            self.length += self.pending_records.len() as u64;
            self.pending_records.clear();
        }
        Ok(())
    }

    pub fn sync(&self) -> Result<()> {
        sys::sync_data(&self.file).with_context("flush", &self.path)
    }
}

/// The part of the log that is certain, and the end of the tape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRecoveryLimits {
    /// Bytes of it that are durable.
    pub durable_bytes: u64,
    /// End of the tape.
    pub tape_end: Position,
    /// Cuts off broken records, and records after that end.
    pub cuts_broken_records: bool,
}

/// Encodes the head of a tape's dictionary log.
pub(crate) fn encode_head(meta: &TapeManifest) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    head[16..32].copy_from_slice(&meta.id.0.to_le_bytes());
    let crc = crc32c::crc32c(&head[..60]);
    head[60..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Encodes the head of the record of a definition frame.
pub(crate) fn encode_record(position: Position, frame: &[u8]) -> [u8; RECORD] {
    let mut head = [0; RECORD];
    head[..8].copy_from_slice(&position.0.to_le_bytes());
    head[8..12].copy_from_slice(&(frame.len() as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..12]), frame);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    head
}

fn durable_damage(path: &Path, offset: u64, reason: &str, position: Option<Position>) -> Error {
    let position_note =
        position.map_or_else(String::new, |p| format!(" (it says that it is of position {p})"));
    let message = format!(
        "{reason}{position_note}; this part of it is durable, `unitape tape repair` makes it again from the tape"
    );
    Error::damage(path, offset, message)
}

/// Reads until `buffer` is full or the file ends.
fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut bytes_read = 0;
    while bytes_read < buffer.len() {
        match from.read(&mut buffer[bytes_read..]) {
            Ok(0) => break,
            Ok(n) => bytes_read += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes_read)
}
