//! Cuts sorted rows into blocks, and writes the blocks into files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::block::{BlockEncoder, BlockPlace, BlockSealer};
use crate::decode::{BlockDecoder, FrameBatch, OpenBlock, RowFilter};
use crate::error::{Error, Result};
use crate::file::{FileId, FileWriter};
use crate::frames::{BlockRows, FrameArena, FrameRow, SealRow};
use crate::gather::GroupKey;
use crate::header::{BlockHeader, RAW_MAX};

/// Bytes of a frame's stamp.
const STAMP_BYTES: usize = 4;
/// Bytes of blocks that are written together.
const WRITE_BYTES: usize = 1 << 20;
/// Least bytes of frames that a block may have, whatever the budget of memory is.
const BLOCK_BYTES_MIN: usize = 8 << 20;

/// Which seal or compaction writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealId {
    pub generation: u64,
    /// Of the manifest that names the files of a compaction; 0 for a seal.
    pub revision: u64,
    /// A random number.
    pub commit: u128,
}

/// Writes the blocks of one seal or compaction. Groups must come in the order of their keys.
#[derive(Debug)]
pub(crate) struct BlockWriter<'a> {
    store_dir: &'a Path,
    seal: SealId,
    pub sealer: BlockSealer<'a>,
    block_rows: usize,
    /// Bytes of frames of a block at most.
    block_bytes: usize,
    files: BTreeMap<FileId, FileWriter>,
    /// The file that takes blocks.
    current: Option<FileId>,
    encoder: BlockEncoder,
    /// The latest block before it was sealed, and its rows decoded.
    plain: Vec<u8>,
    decoder: BlockDecoder,
    batch: FrameBatch,
    /// Blocks of the current file that are not written yet.
    written: Vec<u8>,
    headers: Vec<BlockHeader>,
    /// Rows that were pushed, for the next block.
    arena: FrameArena,
    rows: Vec<FrameRow>,
    row_bytes: usize,
    row_group: Option<GroupKey>,
    /// 0, 1, 2, …
    in_order: Vec<u32>,
    /// Files are removed again unless the seal gets to its end.
    is_finished: bool,
}

impl<'a> BlockWriter<'a> {
    pub fn new(
        store_dir: &'a Path,
        seal: SealId,
        sealer: BlockSealer<'a>,
        block_rows: usize,
        budget_bytes: usize,
    ) -> Self {
        Self {
            store_dir,
            seal,
            sealer,
            block_rows,
            block_bytes: (budget_bytes / 8).clamp(BLOCK_BYTES_MIN, RAW_MAX),
            files: BTreeMap::new(),
            current: None,
            encoder: BlockEncoder::default(),
            plain: Vec::new(),
            decoder: BlockDecoder::default(),
            batch: FrameBatch::default(),
            written: Vec::new(),
            headers: Vec::new(),
            arena: FrameArena::default(),
            rows: Vec::new(),
            row_bytes: 0,
            row_group: None,
            in_order: Vec::new(),
            is_finished: false,
        }
    }

    /// Writes all rows of a group.
    pub fn write_group(&mut self, key: GroupKey, group: BlockRows<'_>) -> Result<()> {
        let (mut start, mut bytes) = (0, 0);
        for (end, frame) in group.frames().enumerate() {
            if end > start && self.is_full(end - start, bytes + frame.len()) {
                self.write_block(key, BlockRows { order: &group.order[start..end], ..group })?;
                (start, bytes) = (end, 0);
            }
            bytes += frame.len();
        }
        self.write_block(key, BlockRows { order: &group.order[start..], ..group })
    }

    /// Takes the next row of the group. [`BlockWriter::end_group`] must follow the last one.
    pub fn push(&mut self, key: GroupKey, row: &SealRow<'_>) -> Result<()> {
        if self.row_group != Some(key) || self.is_full(self.rows.len(), self.row_bytes + row.frame.len()) {
            self.end_group()?;
            self.row_group = Some(key);
        }
        self.rows.push(FrameRow::new(row, 0, &mut self.arena));
        self.row_bytes += row.frame.len();
        Ok(())
    }

    /// Writes the rows that were pushed.
    pub fn end_group(&mut self) -> Result<()> {
        let Some(key) = self.row_group.take().filter(|_| !self.rows.is_empty()) else { return Ok(()) };
        let (arena, rows) = (std::mem::take(&mut self.arena), std::mem::take(&mut self.rows));
        let mut in_order = std::mem::take(&mut self.in_order);
        in_order.extend(in_order.len() as u32..rows.len() as u32);
        let result =
            self.write_block(key, BlockRows { arena: &arena, rows: &rows, order: &in_order[..rows.len()] });
        (self.arena, self.rows, self.in_order) = (arena, rows, in_order);
        self.arena.clear();
        self.rows.clear();
        self.row_bytes = 0;
        result
    }

    /// Returns whether a block with these rows takes no further row, with which its frames had these bytes.
    fn is_full(&self, rows: usize, bytes_with_next: usize) -> bool {
        rows == self.block_rows || (rows > 0 && bytes_with_next > self.block_bytes)
    }

    fn write_block(&mut self, key: GroupKey, rows: BlockRows<'_>) -> Result<()> {
        let id = FileId {
            day: key.day,
            schema: key.schema,
            generation: self.seal.generation,
            revision: self.seal.revision,
            commit: self.seal.commit,
        };
        if self.current != Some(id) {
            self.end_file()?;
            self.files.insert(id, FileWriter::create(self.store_dir, self.sealer.keys.store, id)?);
            self.current = Some(id);
        }
        let number = self.files[&id].file_entry.blocks + self.headers.len() as u32;
        let block_place = BlockPlace { file_id: id, instrument: key.instrument, number };
        let header = self.encoder.encode(&block_place, rows, &mut self.sealer, &mut self.written)?;
        self.check_block(key, &header, rows)?;
        self.headers.push(header);
        if self.written.len() >= WRITE_BYTES { self.write_pending() } else { Ok(()) }
    }

    /// Decodes the latest block, and compares its rows with those that went into it.
    fn check_block(&mut self, key: GroupKey, header: &BlockHeader, rows: BlockRows<'_>) -> Result<()> {
        self.encoder.write_plain(header, &mut self.plain);
        self.batch.clear();
        let differs = |row| Error::BlockDiffers { day: key.day, schema: key.schema, row };
        let block = OpenBlock::from_plain(&self.plain, header).ok_or_else(|| differs(0))?;
        let decoded = self.decoder.decode(&block, header, &RowFilter::all(), &mut self.batch);
        if decoded.is_err() || self.batch.keys.len() != rows.len() {
            return Err(differs(0));
        }
        for (row, ((read, key), frame)) in rows.rows().zip(&self.batch.keys).zip(rows.frames()).enumerate() {
            // The first bytes of a frame are its stamp, which follows from the position.
            let is_same = (key.tape_rank, key.ordinal, key.position)
                == (u32::from(read.tape_index), read.ordinal, read.position)
                && self.batch.frame(key)[STAMP_BYTES..] == frame[STAMP_BYTES..];
            if !is_same {
                return Err(differs(row as u64));
            }
        }
        Ok(())
    }

    /// Writes the blocks that are not written yet.
    fn write_pending(&mut self) -> Result<()> {
        if let Some(file) = self.current.and_then(|id| self.files.get_mut(&id)) {
            file.append_blocks(&self.written, &self.headers)?;
        }
        self.written.clear();
        self.headers.clear();
        Ok(())
    }

    /// Writes the rest of the current file and flushes it to the disk.
    fn end_file(&mut self) -> Result<()> {
        self.write_pending()?;
        match self.current.take().and_then(|id| self.files.get_mut(&id)) {
            Some(file) => file.finish(&self.sealer),
            None => Ok(()),
        }
    }

    /// Flushes everything to the disk.
    pub fn finish(&mut self) -> Result<&BTreeMap<FileId, FileWriter>> {
        self.end_file()?;
        let mut folders: Vec<PathBuf> = Vec::new();
        for file in self.files.values() {
            let schema = file.path().parent().expect("a file in a folder");
            folders.extend([schema.to_owned(), schema.parent().expect("a folder of a day").to_owned()]);
        }
        folders.sort_unstable();
        folders.dedup();
        folders.iter().try_for_each(|folder| crate::manifest::sync_dir(folder))?;
        crate::manifest::sync_dir(self.store_dir)?;
        Ok(&self.files)
    }

    /// Keeps the written files, because the manifest names them now.
    pub fn keep_files(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for BlockWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            for file in self.files.values() {
                // A file that cannot be removed now does no harm: the next seal removes it.
                _ = std::fs::remove_file(file.path());
            }
        }
    }
}
