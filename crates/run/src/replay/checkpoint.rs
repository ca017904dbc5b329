//! Checkpoints of books beside a tape: `DIR/checkpoints/%016x.books`, named by the number of events before them.
//!
//! ```text
//!   tape         ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■ ■
//!   checkpoints          └ 4       └ 8       └ 12      the state of all books after that event
//!                                  └──▶ books at event 10: from the checkpoint at 8, two events
//! ```
//!
//! Checkpoints are derived: a replay from the oldest frame makes the same bytes, and without checkpoints books only
//! take longer. A reader uses a checkpoint only if it matches its checksums, its tape, the same oldest event and the
//! reader's options. It must not have been cut away since, and the checksums of its frames must match the tape. The
//! layout is drawn in `docs/formats-tape.md`.

use crate::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use unitape_model::Position;
use unitape_query::address::{EventAddress, TapeStopPoint};
use unitape_tape::{
    LineagePoint, ReadOptions, Reader, StartPosition, TapeId, oldest_position, segment_prefix,
};

/// The header of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckpointHeader {
    pub tape: TapeId,
    /// Epoch in which the tape was read.
    pub epoch: u64,
    /// The oldest event, with which the replay began, and its first frame.
    pub start: EventAddress,
    /// The last event applied, and the position after it.
    pub end: EventAddress,
    /// Position of the frame of the last event.
    pub last: Position,
    /// The checksum of all frames up to `end`, see [`frames_crc`].
    pub frames_crc: u32,
    /// Time of the last event that has one.
    pub ts: i64,
    /// Greatest time that the merge believed.
    pub latest: Option<i64>,
    /// Length and BLAKE3 hash of the state.
    pub state_bytes: u64,
    pub state_hash: [u8; 32],
}

impl CheckpointHeader {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let mut write_at =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_at(0, MAGIC);
        write_at(8, &VERSION.to_le_bytes());
        write_at(12, &u32::from(self.latest.is_some()).to_le_bytes());
        write_at(16, &self.tape.0.to_le_bytes());
        write_at(32, &self.epoch.to_le_bytes());
        write_at(40, &self.start.seq.to_le_bytes());
        write_at(48, &self.start.position.0.to_le_bytes());
        write_at(56, &self.end.seq.to_le_bytes());
        write_at(64, &self.end.position.0.to_le_bytes());
        write_at(72, &self.last.0.to_le_bytes());
        write_at(80, &self.ts.to_le_bytes());
        write_at(88, &self.latest.unwrap_or(0).to_le_bytes());
        write_at(96, &self.state_bytes.to_le_bytes());
        write_at(STATE_HASH, &self.state_hash);
        write_at(FRAMES_CRC, &self.frames_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..CRC]);
        out[CRC..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word =
            |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"));
        let half =
            |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"));
        let address = |offset| EventAddress { seq: word(offset), position: Position(word(offset + 8)) };
        let crc = crc32c::crc32c(&bytes[..CRC]);
        if &bytes[..8] != MAGIC || half(8) != VERSION || half(CRC) != crc {
            return None;
        }
        Some(Self {
            tape: TapeId(u128::from_le_bytes(bytes[16..32].try_into().expect("sixteen bytes"))),
            epoch: word(32),
            start: address(40),
            end: address(56),
            last: Position(word(72)),
            frames_crc: half(FRAMES_CRC),
            ts: word(80) as i64,
            latest: (half(12) != 0).then_some(word(88) as i64),
            state_bytes: word(96),
            state_hash: bytes[STATE_HASH..FRAMES_CRC].try_into().expect("32 bytes"),
        })
    }

    /// Returns whether the last event is not after `point`.
    pub fn is_within(&self, point: TapeStopPoint) -> bool {
        match point {
            TapeStopPoint::Ordinal(seq) => self.end.seq <= seq,
            TapeStopPoint::Position(position) => self.last <= position,
            TapeStopPoint::Time(time) => self.latest.is_none_or(|latest| latest <= time),
        }
    }

    /// Opens a reader of the tape in `dir` after the last event. Returns `None` if the directory now holds another
    /// tape.
    pub fn open_tape(&self, dir: &Path, options: ReadOptions) -> Option<Reader> {
        let point = LineagePoint { epoch: self.epoch, position: self.end.position };
        let reader = Reader::resume_with(dir, point, options).ok()?;
        let is_there = reader.id() == self.tape
            && reader.rewinds().count == 0
            && reader.position() == self.end.position
            && reader.ordinal() == self.end.seq;
        (is_there && frames_crc(dir, self.end.position, options) == Some(self.frames_crc)).then_some(reader)
    }
}

/// Computes a checksum of the frames of the tape in `dir` before `end`. It covers the checksums of the earlier segments
/// and all frames of the last segment before `end`. A copy of the tape that received other data has another checksum.
/// Returns `None` if a part is missing.
pub(super) fn frames_crc(dir: &Path, end: Position, options: ReadOptions) -> Option<u32> {
    let prefix = segment_prefix(dir, end).ok()??;
    let checkpoint_start = prefix.end_position.max(oldest_position(dir).ok()?);
    let mut crc = prefix.crc;
    let mut reader = Reader::open_with(dir, StartPosition::At(checkpoint_start), options).ok()?;
    while reader.position() < end {
        let run = reader.next_run(1 << 20).ok()??;
        let bytes = run.bytes.len().min(end.0.checked_sub(run.position.0)? as usize);
        crc = crc32c::crc32c_append(crc, &run.bytes[..bytes]);
    }
    Some(crc)
}

/// A checkpoint as a file.
#[derive(Debug)]
pub(super) struct CheckpointFile {
    pub path: PathBuf,
    /// The header, or `None` if it is damaged or of another version.
    pub header: Option<CheckpointHeader>,
}

impl CheckpointFile {
    /// Lists the checkpoints of the tape in `dir`, the latest first.
    pub fn list(dir: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(dir.join(FOLDER)) else { return Vec::new() };
        let mut checkpoints: Vec<(u64, Self)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                // To open a pipe would wait for its writer.
                if !path.is_file() {
                    return None;
                }
                let seq = u64::from_str_radix(path.file_name()?.to_str()?.strip_suffix(SUFFIX)?, 16).ok()?;
                let header = read_header(&path).filter(|header| header.end.seq == seq);
                Some((seq, Self { path, header }))
            })
            .collect();
        checkpoints.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        checkpoints.into_iter().map(|(_, file)| file).collect()
    }

    /// Reads the state. Returns `None` if it does not match the header.
    pub fn state(&self) -> Option<Vec<u8>> {
        let header = self.header?;
        let mut bytes = Vec::new();
        // Do not read all of a file that is longer than its header says.
        let limit = header.state_bytes.checked_add(HEADER_BYTES as u64 + 1)?;
        fs::File::open(&self.path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
        let (head, state) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let is_same = CheckpointHeader::decode(head) == Some(header)
            && state.len() as u64 == header.state_bytes
            && state_hash(state) == header.state_hash;
        is_same.then(|| state.to_vec())
    }

    /// Writes a complete checkpoint or none, and returns its length. It is not flushed: a checkpoint that a power loss
    /// damages does not match its checksums.
    ///
    /// A process that writes checkpoints of the same tape waits: each holds a lock on the file until it has its name.
    pub fn write_checkpoint(dir: &Path, header: &CheckpointHeader, state: &[u8]) -> Result<u64, Error> {
        let folder = dir.join(FOLDER);
        let (temp, path) = (folder.join("writing"), folder.join(format!("{:016x}{SUFFIX}", header.end.seq)));
        let bytes = [&header.encode()[..], state].concat();
        let write_result =
            fs::create_dir_all(&folder).and_then(|()| open_locked(&temp)).and_then(|mut file| {
                // A killed process left its bytes.
                file.set_len(0)?;
                file.write_all(&bytes)?;
                // Still locked: a file that another process can lock must not get a name.
                fs::rename(&temp, &path)
            });
        write_result.map_err(|source| Error::File { path, source })?;
        Ok(bytes.len() as u64)
    }

    /// Removes the checkpoints of the tape in `dir` that do not match their checksums: a killed process or a power loss
    /// left them. One that cannot be removed is not used all the same.
    pub fn remove_damaged(dir: &Path) {
        for file in Self::list(dir).into_iter().filter(|file| file.state().is_none()) {
            _ = fs::remove_file(&file.path);
        }
    }
}

/// Opens a file for writing, and waits for its lock.
fn open_locked(path: &Path) -> io::Result<fs::File> {
    loop {
        let file = fs::File::options().write(true).create(true).truncate(false).open(path)?;
        file.lock()?;
        // The process that held the lock may have given the file its name meanwhile.
        if fs::metadata(path).is_ok_and(|path_metadata| {
            file.metadata().is_ok_and(|own_metadata| own_metadata.ino() == path_metadata.ino())
        }) {
            return Ok(file);
        }
    }
}

/// Hashes the state of books.
pub(super) fn state_hash(state: &[u8]) -> [u8; 32] {
    *blake3::hash(state).as_bytes()
}

fn read_header(path: &Path) -> Option<CheckpointHeader> {
    let mut bytes = [0; HEADER_BYTES];
    fs::File::open(path).ok()?.read_exact(&mut bytes).ok()?;
    CheckpointHeader::decode(&bytes)
}

const MAGIC: &[u8; 8] = b"UNITBOOK";
/// Of the header and of the state, which is as [`unitape_book::TapeBooks::encode_state`] makes it.
const VERSION: u32 = 6;
const HEADER_BYTES: usize = 192;
/// Offsets of the last fields of the header; 140 to 188 is zero.
const STATE_HASH: usize = 104;
const FRAMES_CRC: usize = 136;
const CRC: usize = 188;
const _: () = assert!(STATE_HASH + 32 == FRAMES_CRC && FRAMES_CRC + 4 + 48 == CRC && CRC + 4 == HEADER_BYTES);
const FOLDER: &str = "checkpoints";
const SUFFIX: &str = ".books";
