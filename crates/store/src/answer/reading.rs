//! The side that has no store: scans over an answer.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use unitape_model::{Dictionary, Event, EventKind, FieldClass, InstrumentId};
use unitape_tape::TapeId;

use super::{AnswerIndex, ReadDepth};
use crate::bits::PAD;
use crate::decode::OpenBlock;
use crate::error::{Error, Result};
use crate::file::{BlockLocation, FileId, open_chunks};
use crate::header::{BlockHeader, START};
use crate::keys::{Cipher, KeyOfLeaf, Leaf, SecretKey, StoreId, parse_hex};
use crate::manifest::{FileEntry, SealedPart, TapeRange};
use crate::rows::RowScan;
use crate::scan::{Scan, ScanFilter};
use crate::schema::TickSchema;
use crate::source::{BlockSource, ScanInput};

/// Gets sealed blocks from where they are.
pub trait BlockFetch: fmt::Debug + Send {
    /// Appends the sealed bytes of block `index` of the answer to `out`. Blocks are asked for mostly in ascending order.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::InvalidData`] if this block is unavailable, and with another kind if the later
    /// blocks are unavailable, too.
    fn fetch_block(&mut self, index: u32, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Reads an answer as a store is read.
#[derive(Debug)]
pub struct AnswerReader {
    generation: u64,
    problems: Vec<String>,
    read_depth: ReadDepth,
    store_label: PathBuf,
    store: StoreId,
    tapes: Vec<TapeId>,
    sealed_parts: Vec<SealedPart>,
    names: Dictionary,
    source_frames: Vec<Vec<u8>>,
    answer_leaves: AnswerLeaves,
    /// The blocks of each file, and their indexes in the answer.
    blocks: FxHashMap<FileId, Vec<(u32, BlockLocation)>>,
    body_sizes: Vec<u32>,
    fetch: Mutex<Option<Box<dyn BlockFetch>>>,
}

impl AnswerReader {
    /// Reads the private part of an answer. `label` names its store in errors about its blocks.
    ///
    /// # Errors
    /// Fails if no server can have made the index.
    pub fn new(index: AnswerIndex, label: &str) -> Result<Self> {
        Self::from_index(index, label).ok_or(Error::AnswerIndex)
    }

    fn from_index(index: AnswerIndex, label: &str) -> Option<Self> {
        let tape_id = |text: &str| u128::from_str_radix(text, 16).ok().map(TapeId);
        let store = StoreId(parse_hex(&index.store)?.try_into().ok()?);
        let ids = index.files.iter().map(|file| {
            Some(FileId {
                day: file.day,
                schema: file.schema,
                generation: file.generation,
                revision: file.revision,
                commit: u128::from_str_radix(&file.commit, 16).ok()?,
            })
        });
        let ids = ids.collect::<Option<Vec<_>>>()?;
        let tape_ids = |texts: &[String]| texts.iter().map(|text| tape_id(text)).collect::<Option<Vec<_>>>();
        let tapes = tape_ids(&index.tapes)?;
        let file_tapes = index.files.iter().map(|file| tape_ids(&file.tapes)).collect::<Option<Vec<_>>>()?;
        // A part that is listed twice would be read twice, and a tape that is not listed would not be read.
        let is_known = |list: &Vec<TapeId>| {
            !list.is_empty() && !has_twice(list) && list.iter().all(|tape| tapes.contains(tape))
        };
        if !file_tapes.iter().all(is_known) || has_twice(&ids) || has_twice(&tapes) {
            return None;
        }
        let last_class = *index.depth.classes().last().expect("a class at least");
        let (mut blocks, mut sizes) = (FxHashMap::<FileId, Vec<_>>::default(), Vec::new());
        for (number, block) in index.blocks.iter().enumerate() {
            let head = BlockHeader::decode(&parse_hex(&block.head)?).ok()?;
            let id = *ids.get(block.file as usize)?;
            if !head.kinds.is_of(id.schema) {
                return None;
            }
            let location = BlockLocation { offset: block.offset, head };
            blocks.entry(id).or_default().push((number as u32, location));
            sizes.push((head.end_of(last_class) - START) as u32);
        }
        // The offsets are for messages alone, and must not overflow there.
        let is_far = |location: &BlockLocation| location.offset.checked_add(u64::from(u32::MAX)).is_none();
        if blocks.values().flatten().any(|(_, location)| is_far(location)) {
            return None;
        }
        let mut parts = Vec::new();
        for (id, tapes) in ids.into_iter().zip(&file_tapes) {
            let Some(blocks) = blocks.get_mut(&id) else { continue };
            blocks.sort_by_key(|(_, location)| location.head.number);
            if blocks.windows(2).any(|pair| pair[0].1.head.number == pair[1].1.head.number) {
                return None;
            }
            parts.push(part_of(&id, tapes, blocks));
        }
        let (mut names, mut last_tokens) = (Dictionary::default(), BTreeMap::new());
        for name in &index.names {
            let kind = name.kind()?;
            // The last token of each kind gives the length of its table.
            last_tokens.insert(name.kind, name.token);
            let other_tokens: u32 =
                last_tokens.iter().filter(|(kind, _)| **kind != name.kind).map(|(_, n)| n).sum();
            let token_max = kind.id_max().min(TOKEN_MAX.saturating_sub(other_tokens));
            names.define_sparse(kind, name.token, name.name.as_bytes(), token_max).then_some(())?;
        }
        let sources = index.sources.iter().map(|frame| parse_hex(frame)).collect::<Option<Vec<_>>>()?;
        let is_source = |frame: &Vec<u8>| Event::new(frame).is_some_and(|e| e.kind() == EventKind::Source);
        if !sources.iter().all(is_source) {
            return None;
        }
        let mut leaves = FxHashMap::default();
        for leaf in &index.leaves {
            let class = FieldClass::ALL.into_iter().find(|class| *class as u8 == leaf.class)?;
            let instrument = InstrumentId(leaf.instrument);
            let key = SecretKey::new(parse_hex(&leaf.key)?.try_into().ok()?);
            leaves.insert(Leaf { day: leaf.day, schema: leaf.schema, instrument, class }, key.cipher());
        }
        Some(Self {
            generation: index.generation,
            problems: index.problems,
            read_depth: index.depth,
            store_label: label.into(),
            store,
            tapes,
            sealed_parts: parts,
            names,
            source_frames: sources,
            answer_leaves: AnswerLeaves(leaves),
            blocks,
            body_sizes: sizes,
            fetch: Mutex::new(None),
        })
    }

    /// Sets the source of the blocks. Without it, there are no blocks.
    pub fn set_fetch(&mut self, fetch: Box<dyn BlockFetch>) {
        self.fetch = Mutex::new(Some(fetch));
    }

    /// Returns the generation of the store.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the problems that the server found in the files of the answer.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the names that are in the answer. Their ids are the tokens of the store.
    pub fn names(&self) -> &Dictionary {
        &self.names
    }

    /// Returns the definitions of sources that are in the answer.
    pub fn sources(&self) -> impl Iterator<Item = Event<'_>> {
        self.source_frames.iter().filter_map(|frame| Event::new(frame))
    }

    /// Returns the sealed bytes of each block, by index.
    pub fn block_sizes(&self) -> &[u32] {
        &self.body_sizes
    }

    /// Begins to read the events that `filter` selects.
    ///
    /// # Errors
    /// Fails if the answer holds rows alone, or if no event in it has a symbol or venue of the filter.
    pub fn scan(&self, filter: &ScanFilter) -> Result<Scan<'_>> {
        if self.read_depth != ReadDepth::Events {
            return Err(Error::Option("this answer holds rows, not events"));
        }
        Scan::new(self.scan_input(), filter)
    }

    /// Begins to read the rows of `schema` that `filter` selects.
    ///
    /// # Errors
    /// Fails if no event in the answer has a symbol or venue of the filter, or if the schema has no rows.
    pub fn rows(&self, schema: TickSchema, filter: &ScanFilter) -> Result<RowScan<'_>> {
        RowScan::new(self.scan_input(), schema, filter)
    }

    fn scan_input(&self) -> ScanInput<'_> {
        ScanInput {
            tapes: self.tapes.clone(),
            parts: &self.sealed_parts,
            commits: &[],
            names: &self.names,
            sealed_names: None,
            blocks: Box::new(SentBlocks { answer: self }),
        }
    }
}

/// Tables of names with more entries are larger than any store asks for.
const TOKEN_MAX: u32 = 1 << 26;

fn has_twice<T: Eq + Hash>(items: &[T]) -> bool {
    let mut unique_items = FxHashSet::default();
    !items.iter().all(|item| unique_items.insert(item))
}

/// Describes a file by the blocks of it that are in the answer.
fn part_of(id: &FileId, tapes: &[TapeId], blocks: &[(u32, BlockLocation)]) -> SealedPart {
    let heads = || blocks.iter().map(|(_, location)| &location.head);
    let entry = FileEntry {
        schema: id.schema,
        bytes: heads().map(|head| u64::from(head.bytes)).sum(),
        blocks: blocks.len() as u32,
        rows: heads().map(|head| u64::from(head.rows)).sum(),
        raw_bytes: heads().map(|head| u64::from(head.raw_bytes)).sum(),
        ts_min: heads().map(|head| head.ts_min.0).min().unwrap_or(i64::MAX),
        ts_max: heads().map(|head| head.ts_max.0).max().unwrap_or(i64::MIN),
    };
    let ordinal_first = heads().map(|head| head.ordinal_min).min().unwrap_or(0);
    let ordinal_last = heads().map(|head| head.ordinal_max).max().unwrap_or(0);
    SealedPart {
        date: id.day,
        generation: id.generation,
        revision: id.revision,
        commit: id.commit,
        tapes: tapes.iter().map(|tape| TapeRange { tape: *tape, ordinal_first, ordinal_last }).collect(),
        files: vec![entry],
    }
}

/// The keys of an answer.
struct AnswerLeaves(FxHashMap<Leaf, Cipher>);

impl fmt::Debug for AnswerLeaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl KeyOfLeaf for &AnswerLeaves {
    fn key_of(&mut self, leaf: Leaf) -> Result<&Cipher> {
        self.0.get(&leaf).ok_or(Error::NoDayKey(leaf.day))
    }
}

/// The blocks that a server sends.
#[derive(Debug)]
struct SentBlocks<'a> {
    answer: &'a AnswerReader,
}

impl BlockSource for SentBlocks<'_> {
    fn locations(
        &mut self,
        id: &FileId,
        _entry: &FileEntry,
        _problem: &mut dyn FnMut(Error),
    ) -> Arc<[BlockLocation]> {
        let blocks = self.answer.blocks.get(id).into_iter().flatten();
        blocks.map(|(_, location)| *location).collect()
    }

    fn read<'b>(
        &mut self,
        id: &FileId,
        location: &BlockLocation,
        classes: &[FieldClass],
        block: &'b mut Vec<u8>,
    ) -> Result<OpenBlock<'b>> {
        let (answer, head) = (self.answer, &location.head);
        let blocks = &answer.blocks[id];
        let slot = blocks.binary_search_by_key(&head.number, |(_, location)| location.head.number);
        let (index, _) = blocks[slot.expect("a block of the answer")];
        block.clear();
        block.resize(START, 0);
        let mut fetch = answer.fetch.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = || Err(io::Error::other("there is no connection"));
        let fetched = fetch.as_mut().map_or_else(nothing, |fetch| fetch.fetch_block(index, block));
        fetched.map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => {
                Error::block_damage(&self.path(id), head.number, location.offset, e.to_string())
            }
            _ => Error::Answer(e),
        })?;
        if block.len() != START + answer.body_sizes[index as usize] as usize {
            return Err(Error::Answer(io::Error::other("a block of another length than the server said")));
        }
        block.resize(block.len() + PAD, 0);
        let parts = open_chunks(answer.store, &mut &answer.answer_leaves, id, head, classes, block).map_err(
            |(offset, reason)| {
                Error::block_damage(&self.path(id), head.number, location.offset + offset as u64, reason)
            },
        )?;
        Ok(OpenBlock { bytes: block, parts })
    }

    fn path(&self, id: &FileId) -> PathBuf {
        self.answer.store_label.join(id.listed_path())
    }
}
