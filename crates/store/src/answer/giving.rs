//! The side with the store: it makes an answer.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use unitape_model::schema::at;
use unitape_model::{Dictionary, FieldClass, FrameHeader, InstrumentId, NameKind, Position};

use unitape_tape::TapeId;

use super::{AnswerBlock, AnswerFile, AnswerIndex, AnswerLeaf, AnswerName, ReadDepth};
use crate::cells::EventKindLayout;
use crate::day::Day;
use crate::decode::{BlockDecoder, FrameBatch};
use crate::error::{Error, Result};
use crate::file::{BlockLocation, FileId};
use crate::header::{BlockHeader, START};
use crate::keys::{Leaf, LeafKeys, hex};
use crate::manifest::SealedPart;
use crate::scan::{PROBLEMS_MAX, ScanFilter};
use crate::schema::TickSchema;
use crate::selection::Selection;
use crate::source::{BlockSource, StoredBlocks};
use crate::store::Store;

/// A leaf that the reader of the answer may read, or may not read.
#[derive(Clone, Copy, Debug)]
pub struct LeafAccess<'a> {
    /// The day.
    pub day: Day,
    /// The schema.
    pub schema: TickSchema,
    /// The instrument; `None` for events without one.
    pub symbol: Option<&'a str>,
    /// The class.
    pub class: FieldClass,
}

/// An answer: its private part, and where the sealed blocks lie.
#[derive(Debug)]
pub struct Answer {
    /// The private part, with the keys.
    pub private_index: AnswerIndex,
    /// The blocks, in the order in which they are read.
    pub blocks: Vec<SealedBlock>,
    /// The files of the blocks.
    pub files: Vec<PathBuf>,
}

/// The location of the sealed bytes of a block in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedBlock {
    /// Index of its file in [`Answer::files`].
    pub file: u32,
    /// Offset of the first byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
}

/// A file that may have blocks of an answer.
#[derive(Clone, Copy)]
struct GivenFile<'a> {
    id: FileId,
    part: &'a SealedPart,
}

impl<'a> GivenFile<'a> {
    fn tapes(self) -> impl Iterator<Item = TapeId> + 'a {
        self.part.tapes.iter().map(|range| range.tape)
    }
}

/// A block that belongs to an answer.
struct GivenBlock {
    file_index: u32,
    location: BlockLocation,
    /// The order of blocks, as they are read.
    read_order: (u64, u64, u32, u32, u32),
}

impl Store {
    /// Makes the answer to a query: the parts that `filter` selects of the leaves that `may_read` permits. Other leaves
    /// are left out, as if they did not exist. Names in the filter that the store does not have, and names that only
    /// unreadable leaves have, select nothing.
    ///
    /// # Errors
    /// Fails if the answer has more than `blocks_max` blocks, if an earlier state is wanted, or if the system refuses to read
    /// a file that belongs to it.
    pub fn answer(
        &self,
        filter: &ScanFilter,
        depth: ReadDepth,
        blocks_max: usize,
        may_read: &dyn Fn(&LeafAccess<'_>) -> bool,
    ) -> Result<Answer> {
        if filter.as_of.is_some() {
            return Err(Error::Option("an answer has the newest state of its store"));
        }
        let selection = Selection::with_unknown_names(self.names(), filter);
        let mut giving = Giving::new(self, depth);
        giving.choose_blocks(&selection, blocks_max, may_read)?;
        giving.finish_answer(&selection)
    }
}

/// An answer while it is made.
struct Giving<'a> {
    store: &'a Store,
    read_depth: ReadDepth,
    blocks: StoredBlocks<'a>,
    files: Vec<GivenFile<'a>>,
    given_blocks: Vec<GivenBlock>,
    problems: Vec<String>,
    problem_count: u64,
}

impl<'a> Giving<'a> {
    fn new(store: &'a Store, depth: ReadDepth) -> Self {
        let blocks =
            StoredBlocks::new(store.dir(), &store.keys, &store.manifest).with_indexes(&store.indexes);
        Self {
            store,
            read_depth: depth,
            blocks,
            files: Vec::new(),
            given_blocks: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
        }
    }

    /// Adds a problem of a file to the answer, as a scan of the store would.
    ///
    /// # Errors
    /// Fails with a refusal of the system: an answer without the file would look whole, or damaged.
    fn report_problem(&mut self, id: &FileId, problem: Error) -> Result<()> {
        if problem.is_refusal() {
            return Err(problem);
        }
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem_text(id, &problem));
        }
        Ok(())
    }

    /// Chooses the blocks.
    fn choose_blocks(
        &mut self,
        wanted: &Selection,
        blocks_max: usize,
        may_read: &dyn Fn(&LeafAccess<'_>) -> bool,
    ) -> Result<()> {
        let manifest = &self.store.manifest;
        for part in &manifest.parts {
            let first_tape = &part.tapes[0];
            let rank = manifest.tapes.iter().position(|tape| tape.tape == first_tape.tape);
            let rank = rank.unwrap_or(usize::MAX);
            for entry in &part.files {
                if !wanted.wants_file(part, entry) {
                    continue;
                }
                let (id, mut problems) = (part.file(entry), Vec::new());
                let locations = self.blocks.locations(&id, entry, &mut |e| problems.push(e));
                let file = self.files.len() as u32;
                for location in locations.iter().copied().filter(|location| wanted.wants_block(location)) {
                    let head = &location.head;
                    let symbol = self.store.given_symbol(head.instrument);
                    let is_named = symbol.is_some() || head.instrument.0 == 0;
                    let may_read = self.read_depth.classes().iter().all(|class| {
                        let access = LeafAccess { day: id.day, schema: id.schema, symbol, class: *class };
                        is_named && may_read(&access)
                    });
                    if !may_read {
                        continue;
                    }
                    let order = match self.read_depth {
                        ReadDepth::Rows => (i64::from(id.day.0) as u64 ^ 1 << 63, 0, file, head.number, 0),
                        ReadDepth::Events => (rank as u64, first_tape.ordinal_first, file, head.number, 0),
                    };
                    self.given_blocks.push(GivenBlock { file_index: file, location, read_order: order });
                    if self.given_blocks.len() > blocks_max {
                        return Err(Error::AnswerTooLarge { blocks_max });
                    }
                }
                self.files.push(GivenFile { id, part });
                // A missing block may belong to any leaf. A reader who may read no part of the file does not hear of
                // it.
                if !problems.is_empty() && self.is_file_readable(&id, wanted, may_read) {
                    problems.into_iter().try_for_each(|problem| self.report_problem(&id, problem))?;
                }
            }
        }
        self.given_blocks.sort_by_key(|block| block.read_order);
        Ok(())
    }

    /// Returns whether the reader may read a selected block of this file, if there is such a block.
    fn is_file_readable(
        &self,
        id: &FileId,
        wanted: &Selection,
        may_read: &dyn Fn(&LeafAccess<'_>) -> bool,
    ) -> bool {
        (0..=self.store.names().len(NameKind::Instrument)).any(|token| {
            let symbol = self.store.given_symbol(InstrumentId(token));
            let (day, schema) = (id.day, id.schema);
            wanted.wants_instrument(schema, InstrumentId(token))
                && self
                    .read_depth
                    .classes()
                    .iter()
                    .all(|class| may_read(&LeafAccess { day, schema, symbol, class: *class }))
        })
    }

    /// Gathers the keys and names, and puts the answer together.
    fn finish_answer(mut self, wanted: &Selection) -> Result<Answer> {
        let store = self.store;
        let (mut leaf_keys, mut leaves) = (LeafKeys::new(&store.keys), BTreeMap::new());
        let mut used_names = NamesInUse::default();
        // Only the files that have a block in the answer.
        let (mut files, mut numbers) = (Vec::new(), FxHashMap::default());
        let mut answer_blocks = Vec::with_capacity(self.given_blocks.len());
        for mut block in std::mem::take(&mut self.given_blocks) {
            let file = self.files[block.file_index as usize];
            let id = file.id;
            match used_names.gather_tokens(&mut self.blocks, &id, &block.location, self.read_depth, wanted) {
                Ok(true) => {
                    block.file_index = *numbers.entry(block.file_index).or_insert_with(|| {
                        files.push(file);
                        files.len() as u32 - 1
                    });
                    answer_blocks.push(block);
                }
                Ok(false) => {}
                Err(problem) => self.report_problem(&id, problem)?,
            }
        }
        let unnamed = self.problem_count - self.problems.len() as u64;
        if unnamed > 0 {
            self.problems.push(format!("{unnamed} further problems are not named"));
        }
        for GivenBlock { file_index: file, location, .. } in &answer_blocks {
            let (id, head) = (files[*file as usize].id, &location.head);
            used_names.tokens.insert((NameKind::Instrument as u8, head.instrument.0));
            for class in self.read_depth.classes() {
                let leaf =
                    Leaf { day: id.day, schema: id.schema, instrument: head.instrument, class: *class };
                if let Entry::Vacant(entry) =
                    leaves.entry((id.day, id.schema as u8, head.instrument, *class as u8))
                {
                    let key = leaf_keys.secret(leaf, &store.manifest.day_keys)?;
                    entry.insert(AnswerLeaf {
                        day: id.day,
                        schema: id.schema,
                        instrument: head.instrument.0,
                        class: *class as u8,
                        key: hex(key.bytes()),
                    });
                }
            }
        }
        let names = used_names.named_tokens(store.names());
        if let Some(Error::Damage { path, offset, reason, .. }) = store.damaged_name() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.problems.push(format!("{name}: at offset {offset}: {reason}"));
        }
        let depth = self.read_depth;
        let last_class = *depth.classes().last().expect("a class at least");
        let paths = files.iter().map(|file| self.blocks.path(&file.id)).collect();
        let blocks = answer_blocks.iter().map(|block| SealedBlock {
            file: block.file_index,
            offset: block.location.offset + START as u64,
            bytes: (block.location.head.end_of(last_class) - START) as u32,
        });
        let manifest = &store.manifest;
        let index = AnswerIndex {
            generation: manifest.generation,
            problems: self.problems,
            depth,
            store: hex(&store.keys.store.0),
            tapes: manifest
                .tapes
                .iter()
                .filter(|tape| files.iter().any(|file| file.tapes().any(|id| id == tape.tape)))
                .map(|tape| tape.tape.to_string())
                .collect(),
            files: files
                .iter()
                .map(|file| AnswerFile {
                    day: file.id.day,
                    schema: file.id.schema,
                    generation: file.id.generation,
                    revision: file.id.revision,
                    commit: format!("{:032x}", file.id.commit),
                    tapes: file.tapes().map(|tape| tape.to_string()).collect(),
                })
                .collect(),
            blocks: answer_blocks
                .iter()
                .map(|block| AnswerBlock {
                    file: block.file_index,
                    offset: block.location.offset,
                    head: hex(&shown_head(&block.location.head, depth).encode()),
                })
                .collect(),
            leaves: leaves.into_values().collect(),
            names,
            sources: used_names.sources(store),
        };
        Ok(Answer { private_index: index, blocks: blocks.collect(), files: paths })
    }
}

/// Describes a problem of a file by its public path. The reader of an answer must not learn where the store lies.
fn problem_text(id: &FileId, problem: &Error) -> String {
    let listed = id.listed_path();
    match problem {
        Error::Damage { reason, block: None, .. } => format!("{listed}: {reason}"),
        Error::Damage { reason: detail, block: Some(block), offset, .. } => {
            format!("{listed}: block {block} at offset {offset}: {detail}")
        }
        _ => format!("{listed}: it cannot be read"),
    }
}

/// Returns the header of a block as its reader may see it: positions on the tape are provenance.
fn shown_head(head: &BlockHeader, depth: ReadDepth) -> BlockHeader {
    match depth {
        ReadDepth::Events => *head,
        ReadDepth::Rows => BlockHeader { position_min: Position(0), position_max: Position(0), ..*head },
    }
}

/// The tokens that are in the blocks of an answer.
#[derive(Default)]
struct NamesInUse {
    tokens: BTreeSet<(u8, u32)>,
    source_ids: BTreeSet<u32>,
    decoder: BlockDecoder,
    batch: FrameBatch,
    block: Vec<u8>,
}

impl NamesInUse {
    /// Adds the tokens of the selected rows of a block. Returns whether there are such rows. Fails if the block is
    /// damaged.
    fn gather_tokens(
        &mut self,
        blocks: &mut StoredBlocks<'_>,
        id: &FileId,
        location: &BlockLocation,
        depth: ReadDepth,
        wanted: &Selection,
    ) -> Result<bool> {
        let head = &location.head;
        let open_block = blocks.read(id, location, depth.classes(), &mut self.block)?;
        self.batch.clear();
        let (mut venues, mut has_more_names) = (BTreeSet::new(), depth == ReadDepth::Events);
        if depth == ReadDepth::Rows {
            let has_market_tail = self.decoder.venues(&open_block, head, &mut venues).unwrap_or(false);
            has_more_names = head.kinds.any_layout(|layout| {
                layout.has_more_fixed_names() || has_market_tail && layout.lists_market_names()
            });
        }
        if has_more_names || wanted.depends_on_rows(head.instrument) {
            let rows = &wanted.in_block(head.instrument);
            self.decoder.decode(&open_block, head, rows, &mut self.batch).map_err(|fault| {
                let offset = location.offset + fault.offset as u64;
                Error::block_damage(&blocks.path(id), head.number, offset, fault.reason)
            })?;
            if self.batch.keys.is_empty() {
                return Ok(false);
            }
        }
        self.tokens.extend(venues.into_iter().map(|venue| (NameKind::Venue as u8, venue.into())));
        if !has_more_names {
            return Ok(true);
        }
        for key in &self.batch.keys {
            let frame_start = key.line as usize * unitape_model::LINE;
            let length = FrameHeader::read(&self.batch.arena[frame_start..]).len_bytes();
            let frame = &mut self.batch.arena[frame_start..frame_start + length];
            let tokens = &mut self.tokens;
            // A truncated list of ids has no names. The frame is printed as it is.
            _ = EventKindLayout::for_frame(frame).change_ids(frame, |kind, token| {
                tokens.insert((kind as u8, token));
                Ok::<_, UnreadableList>(token)
            });
            // Rows have no source, which is provenance.
            let source = &frame[at::SOURCE..at::SOURCE + 4];
            self.source_ids.insert(u32::from_le_bytes(source.try_into().expect("four bytes")));
        }
        Ok(true)
    }

    fn named_tokens(&self, names: &Dictionary) -> Vec<AnswerName> {
        let named = self.tokens.iter().filter_map(|(kind, token)| {
            let name = names.name(NameKind::from_u8(*kind)?, *token)?;
            Some(AnswerName { kind: *kind, token: *token, name: name.to_owned() })
        });
        named.collect()
    }

    fn sources(&self, store: &Store) -> Vec<String> {
        let is_used = |frame: &[u8]| {
            let token = &frame[at::INSTRUMENT..at::INSTRUMENT + 4];
            self.source_ids.contains(&u32::from_le_bytes(token.try_into().expect("four bytes")))
        };
        store.sources().map(|event| event.bytes()).filter(|frame| is_used(frame)).map(hex).collect()
    }
}

/// A list of ids that is no list.
struct UnreadableList;

impl From<&'static str> for UnreadableList {
    fn from(_: &'static str) -> Self {
        Self
    }
}
