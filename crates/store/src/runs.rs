//! Runs: sorted rows on disk while a seal works. They are sealed with a key that is drawn for the seal and kept in
//! memory alone, and their files have no name, so that nothing of them is left behind.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{FrameHeader, InstrumentId, Position, UnixNanos};

use crate::day::Day;
use crate::error::{Error, IoContext, Result};
use crate::frames::SealRow;
use crate::gather::GroupKey;
use crate::keys::{Binding, Cipher, Piece, Randomness, SEAL_BYTES, SecretKey, StoreId};
use crate::schema::TickSchema;

/// Bytes of a run that are sealed together.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Bytes of a row before its frame: day, schema, tape, instrument, ordinal, position.
const ROW_HEAD: usize = 32;

/// The key of the runs of one seal.
pub(crate) struct RunSealer<'a> {
    cipher: Cipher,
    store: StoreId,
    random: &'a dyn Randomness,
    runs: AtomicU32,
}

impl std::fmt::Debug for RunSealer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunSealer(..)")
    }
}

impl<'a> RunSealer<'a> {
    /// Draws a key.
    pub fn new(store: StoreId, random: &'a dyn Randomness) -> Result<Self> {
        Ok(Self { cipher: SecretKey::random(random)?.cipher(), store, random, runs: AtomicU32::new(0) })
    }

    /// Begins a run in the directory of the store.
    pub fn begin_run(&self, dir: &Path) -> Result<RunWriter> {
        let file = tempfile::tempfile_in(dir).with_context("make a temporary file in", dir)?;
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(RunWriter {
            run: Run { file, dir: dir.into(), number, chunks: 0, rows: 0 },
            chunk: Vec::with_capacity(CHUNK_BYTES),
            sealed: Vec::with_capacity(CHUNK_BYTES + SEAL_BYTES),
        })
    }

    fn binding(&self, run: u32, chunk: u32) -> Binding {
        Binding::new(Piece::Run, self.store).bind_number(u64::from(run) << 32 | u64::from(chunk))
    }
}

/// A run that is written.
#[derive(Debug)]
pub(crate) struct Run {
    file: File,
    /// For errors.
    dir: PathBuf,
    number: u32,
    chunks: u32,
    rows: u64,
}

/// A run while it is written.
#[derive(Debug)]
pub(crate) struct RunWriter {
    run: Run,
    chunk: Vec<u8>,
    sealed: Vec<u8>,
}

impl RunWriter {
    /// Adds a row. Rows must come in their order.
    pub fn push(&mut self, sealer: &RunSealer<'_>, key: GroupKey, row: &SealRow<'_>) -> Result<()> {
        let mut head = [0; ROW_HEAD];
        head[..4].copy_from_slice(&key.day.0.to_le_bytes());
        head[4] = key.schema as u8;
        head[6..8].copy_from_slice(&row.tape_index.to_le_bytes());
        head[8..12].copy_from_slice(&key.instrument.0.to_le_bytes());
        head[16..24].copy_from_slice(&row.ordinal.to_le_bytes());
        head[24..].copy_from_slice(&row.position.0.to_le_bytes());
        self.write(sealer, &head)?;
        self.write(sealer, row.frame)?;
        self.run.rows += 1;
        Ok(())
    }

    fn write(&mut self, sealer: &RunSealer<'_>, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.chunk.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == CHUNK_BYTES {
                self.write_chunk(sealer)?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self, sealer: &RunSealer<'_>) -> Result<()> {
        let binding = sealer.binding(self.run.number, self.run.chunks);
        self.sealed.clear();
        sealer.cipher.seal(sealer.random, binding.bytes(), &self.chunk, &mut self.sealed)?;
        self.run.file.write_all(&self.sealed).with_context("write a temporary file in", &self.run.dir)?;
        self.run.chunks += 1;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the rest.
    pub fn finish(mut self, sealer: &RunSealer<'_>) -> Result<Run> {
        if !self.chunk.is_empty() {
            self.write_chunk(sealer)?;
        }
        self.run.file.rewind().with_context("read a temporary file in", &self.run.dir)?;
        Ok(self.run)
    }
}

/// The place of a row in the order of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPlace {
    pub group: GroupKey,
    pub ts: UnixNanos,
    pub tape_index: u16,
    pub ordinal: u64,
}

/// Reads a run, row by row.
#[derive(Debug)]
pub(crate) struct RunReader {
    run: Run,
    next_chunk: u32,
    /// The chunk at hand, opened, with its nonce and tag.
    chunk: Vec<u8>,
    offset: usize,
    frame: Vec<u8>,
    position: Position,
}

impl Run {
    pub fn into_reader(self) -> RunReader {
        RunReader {
            run: self,
            next_chunk: 0,
            chunk: Vec::new(),
            offset: 0,
            frame: Vec::new(),
            position: Position(0),
        }
    }
}

impl RunReader {
    /// Reads the next row. Returns its place, or `None` at the end.
    pub fn advance(&mut self, sealer: &RunSealer<'_>) -> Result<Option<RowPlace>> {
        if self.run.rows == 0 {
            return Ok(None);
        }
        self.run.rows -= 1;
        let mut head = [0; ROW_HEAD];
        self.read(sealer, &mut head)?;
        let four = |offset: usize| head[offset..offset + 4].try_into().expect("four bytes");
        let eight = |offset: usize| head[offset..offset + 8].try_into().expect("eight bytes");
        let group = GroupKey {
            day: Day(i32::from_le_bytes(four(0))),
            schema: TickSchema::ALL[usize::from(head[4])],
            instrument: InstrumentId(u32::from_le_bytes(four(8))),
        };
        let (tape_index, ordinal) = (u16::from_le_bytes([head[6], head[7]]), u64::from_le_bytes(eight(16)));
        self.position = Position(u64::from_le_bytes(eight(24)));
        let mut frame = std::mem::take(&mut self.frame);
        frame.resize(LINE, 0);
        self.read(sealer, &mut frame)?;
        let length = FrameHeader::read(&frame).len_bytes();
        frame.resize(length, 0);
        self.read(sealer, &mut frame[LINE..])?;
        self.frame = frame;
        let ts = self.frame[at::TS_EVENT..at::TS_EVENT + 8].try_into().expect("eight bytes");
        Ok(Some(RowPlace { group, ts: UnixNanos(i64::from_le_bytes(ts)), tape_index, ordinal }))
    }

    /// Returns the row that was read last, which has this place.
    pub fn row(&self, place: &RowPlace) -> SealRow<'_> {
        let RowPlace { ts, tape_index, ordinal, .. } = *place;
        SealRow { frame: &self.frame, ts, tape_index, ordinal, position: self.position }
    }

    fn read(&mut self, sealer: &RunSealer<'_>, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.offset == self.chunk.len() {
                self.open_chunk(sealer)?;
                continue;
            }
            let n = (self.chunk.len() - self.offset).min(out.len());
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&self.chunk[self.offset..self.offset + n]);
            (self.offset, out) = (self.offset + n, later);
        }
        Ok(())
    }

    fn open_chunk(&mut self, sealer: &RunSealer<'_>) -> Result<()> {
        let changed = || Error::damage(&self.run.dir, 0, "a temporary file of this seal was changed");
        self.chunk.clear();
        let chunk_bytes = (CHUNK_BYTES + SEAL_BYTES) as u64;
        let read_result = (&self.run.file).take(chunk_bytes).read_to_end(&mut self.chunk);
        read_result.with_context("read a temporary file in", &self.run.dir)?;
        let binding = sealer.binding(self.run.number, self.next_chunk);
        let opened = sealer.cipher.open(binding.bytes(), &mut self.chunk).map(|plain| plain.len());
        let plain_bytes = opened.filter(|bytes| *bytes > 0).ok_or_else(changed)?;
        self.chunk.truncate(plain_bytes);
        self.next_chunk += 1;
        self.offset = 0;
        Ok(())
    }
}
