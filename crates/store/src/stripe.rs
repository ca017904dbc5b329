//! Rows on their way to the disk: one buffer for each day, kind and instrument, emptied together.
//!
//! The blocks that are written together, from one part of the tape, are a *stripe*. Stripes of a seal follow one
//! another. So a scan in the order of the tape holds at most one stripe of a seal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use unitape_model::{EventKind, EventSchema, InstrumentId, Position};
use unitape_tape::TapeId;

use crate::block::{BlockEncoder, BlockPlace, BlockRows, BlockSealer};
use crate::day::Day;
use crate::error::Result;
use crate::file::{FileId, FileWriter};
use crate::schema::TickSchema;
use crate::seal::SealOptions;

/// Bytes that a buffer costs beside its rows, so that a tape with a new instrument in every event stays bounded too.
const BUFFER_BYTES: usize = 512;
/// And a row beside its frame.
const ROW_BYTES: usize = 20;

/// A buffer's rows go into blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BufferKey {
    pub day: Day,
    pub schema: TickSchema,
    pub instrument: InstrumentId,
    pub kind: EventKind,
    /// The layout of its frames, see [`EventSchema::layout`].
    pub layout: u8,
}

/// Which seal it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealId {
    pub tape: TapeId,
    pub generation: u64,
    /// A random number.
    pub commit: u128,
}

/// The files of one seal, and the stripe being gathered.
#[derive(Debug)]
pub(crate) struct StripeWriter<'a> {
    store: &'a Path,
    tape: TapeId,
    generation: u64,
    commit: u128,
    pub sealer: BlockSealer<'a>,
    stripe_bytes: usize,
    block_rows: usize,
    open_buffers: FxHashMap<BufferKey, usize>,
    buffers: Vec<(BufferKey, BlockRows)>,
    spare_buffers: Vec<BlockRows>,
    weight: usize,
    stripe: u32,
    files: BTreeMap<FileId, FileWriter>,
    encoder: BlockEncoder,
    block_bytes: Vec<u8>,
    /// Files are removed again unless the seal gets to its end.
    is_finished: bool,
}

impl<'a> StripeWriter<'a> {
    pub fn new(store: &'a Path, seal: SealId, sealer: BlockSealer<'a>, options: &SealOptions<'_>) -> Self {
        Self {
            store,
            tape: seal.tape,
            generation: seal.generation,
            commit: seal.commit,
            sealer,
            stripe_bytes: options.stripe_bytes,
            block_rows: options.block_rows,
            open_buffers: FxHashMap::default(),
            buffers: Vec::new(),
            spare_buffers: Vec::new(),
            weight: 0,
            stripe: 0,
            files: BTreeMap::new(),
            encoder: BlockEncoder::default(),
            block_bytes: Vec::new(),
            is_finished: false,
        }
    }

    /// Takes a row; writes the stripe first when it is full.
    #[inline]
    pub fn push(&mut self, key: BufferKey, frame: &[u8], ordinal: u64, position: Position) -> Result<()> {
        if self.weight + frame.len() + ROW_BYTES + BUFFER_BYTES > self.stripe_bytes && self.weight > 0 {
            self.flush()?;
        }
        let index = match self.open_buffers.get(&key) {
            Some(&index) if self.buffers[index].1.has_room(frame.len(), self.block_rows) => index,
            _ => {
                let rows = self.spare_buffers.pop().unwrap_or_default();
                self.buffers.push((key, rows));
                self.open_buffers.insert(key, self.buffers.len() - 1);
                self.weight += BUFFER_BYTES;
                self.buffers.len() - 1
            }
        };
        self.buffers[index].1.push(frame, ordinal, position);
        self.weight += frame.len() + ROW_BYTES;
        Ok(())
    }

    /// Writes the gathered rows.
    pub fn flush(&mut self) -> Result<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        // Stable: buffers of one key stay in the order of the tape.
        buffers.sort_by_key(|(key, _)| *key);
        for run in buffers.chunk_by(|(a, _), (b, _)| (a.day, a.schema) == (b.day, b.schema)) {
            let (key, _) = &run[0];
            let id = FileId {
                day: key.day,
                schema: key.schema,
                generation: self.generation,
                tape: self.tape,
                commit: self.commit,
            };
            if !self.files.contains_key(&id) {
                self.files.insert(id, FileWriter::create(self.store, self.sealer.keys.store, id)?);
            }
            let file = self.files.get_mut(&id).expect("just made");
            let mut headers = Vec::with_capacity(run.len());
            self.block_bytes.clear();
            for (key, rows) in run {
                let number = file.file_entry.blocks + headers.len() as u32;
                let layout = EventSchema::for_layout(key.kind, key.layout).expect("the layout of an event");
                let block_place =
                    BlockPlace { file_id: id, instrument: key.instrument, stripe: self.stripe, number };
                let header = self.encoder.encode(
                    layout,
                    &block_place,
                    rows,
                    &mut self.sealer,
                    &mut self.block_bytes,
                )?;
                headers.push(header);
            }
            file.append_blocks(&self.block_bytes, &headers)?;
        }
        for (_, mut rows) in buffers.drain(..) {
            rows.clear();
            self.spare_buffers.push(rows);
        }
        self.buffers = buffers;
        self.open_buffers.clear();
        self.weight = 0;
        self.stripe += 1;
        // Buffers that an unusual stripe needed are not kept for ever.
        self.spare_buffers.truncate(POOL_MAX);
        Ok(())
    }

    /// Writes the rest and flushes everything to the disk.
    pub fn finish(&mut self) -> Result<&BTreeMap<FileId, FileWriter>> {
        self.flush()?;
        let mut folders: Vec<PathBuf> = Vec::new();
        for file in self.files.values_mut() {
            file.finish(&self.sealer)?;
            let schema = file.path().parent().expect("a file in a folder");
            folders.extend([schema.to_owned(), schema.parent().expect("a folder of a day").to_owned()]);
        }
        folders.sort_unstable();
        folders.dedup();
        folders.iter().try_for_each(|folder| crate::manifest::sync_dir(folder))?;
        crate::manifest::sync_dir(self.store)?;
        Ok(&self.files)
    }

    /// Keeps the written files, because the manifest names them now.
    pub fn keep_files(&mut self) {
        self.is_finished = true;
    }
}

/// Buffers that are kept between stripes.
const POOL_MAX: usize = 65_536;

impl Drop for StripeWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            for file in self.files.values() {
                // A file that cannot be removed now does no harm: the next seal removes it.
                _ = std::fs::remove_file(file.path());
            }
        }
    }
}
