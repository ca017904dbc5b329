//! A store that is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unitape_model::{Dictionary, Event, InstrumentId, NameKind, Position, UnixNanos};
use unitape_tape::TapeId;

use crate::day::Day;
use crate::dictionary::{SealedNames, TokenDictionary};
use crate::error::{Error, Result};
use crate::keys::{MasterKey, PublicKey, StoreKeys};
use crate::leases::Lease;
use crate::manifest::{
    AsOf, Commit, GenerationBounds, GenerationSummary, Manifest, TapeSealProgress, commits_of,
};
use crate::rows::RowScan;
use crate::scan::{Scan, ScanFilter};
use crate::schema::TickSchema;
use crate::source::{BlockSource, KnownIndexes, ScanInput, StoredBlocks};

/// A store, as its manifest describes it at the time it is opened. It does not see a seal that runs meanwhile, and its files
/// stay for it during a compaction.
#[derive(Debug)]
pub struct Store {
    store_dir: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) keys: StoreKeys,
    pub(crate) tokens: TokenDictionary,
    pub(crate) indexes: KnownIndexes,
    /// While it is there, a compaction leaves the files of this store.
    _lease: Lease,
}

/// A part of a tape, by positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapePart {
    /// The tape.
    pub tape: TapeId,
    /// Where the part begins.
    pub from: Position,
    /// Where it ends.
    pub to: Position,
}

impl TapePart {
    pub(crate) fn list(
        tapes: &[TapeSealProgress],
        parts: fn(&TapeSealProgress) -> &Vec<[u64; 2]>,
    ) -> Vec<Self> {
        let tape_parts = |tape| {
            let part = |&[from, to]: &[u64; 2]| (Position(from), Position(to));
            parts(tape).iter().map(part).map(|(from, to)| Self { tape: tape.tape, from, to })
        };
        tapes.iter().flat_map(tape_parts).collect()
    }
}

/// Facts about a store: its tapes, days and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreSummary {
    /// How many seals have added something.
    pub generation: u64,
    /// The public half of the key that signs its manifest.
    pub public_key: PublicKey,
    /// What each generation added, by generation.
    pub generations: Vec<GenerationSummary>,
    /// Tapes, in the order of their first seal, each with how far it is sealed (apart from single days).
    pub tapes: Vec<(TapeId, Position)>,
    /// Parts of tapes that the store does not have: retention had removed them, or they are damaged.
    pub missing: Vec<TapePart>,
    /// Parts of tapes in the store that a repair had accepted without a check.
    pub unverified: Vec<TapePart>,
    /// Days, ascending.
    pub days: BTreeMap<Day, DaySummary>,
    /// Names by dictionary.
    pub names: Vec<(NameKind, u32)>,
    /// Bytes of the dictionary.
    pub dictionary_bytes: u64,
}

/// Facts about a day: its seals, schemas and totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaySummary {
    /// Seals that added to it.
    pub generations: Vec<u64>,
    /// Its schemas.
    pub schemas: BTreeMap<TickSchema, StoredTotals>,
    /// All of it.
    pub all: StoredTotals,
}

/// A block of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary<'a> {
    /// Its day.
    pub day: Day,
    /// Its schema.
    pub schema: TickSchema,
    /// Its instrument; `None` for events without one.
    pub symbol: Option<&'a str>,
    /// The seal that wrote it.
    pub generation: u64,
    /// Its number in the file, from 0.
    pub block: u32,
    /// Its rows, 65,536 at most.
    pub rows: u32,
    /// Its file, in the directory of the store.
    pub file: &'a str,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// The first event time.
    pub ts_min: UnixNanos,
    /// The last event time.
    pub ts_max: UnixNanos,
}

/// How much of something there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredTotals {
    /// Events.
    pub rows: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Bytes of its frames on the tape.
    pub raw_bytes: u64,
    /// The first event time, or `None` if there are no events.
    pub ts_min: Option<UnixNanos>,
    /// The last event time, or `None` if there are no events.
    pub ts_max: Option<UnixNanos>,
}

impl StoredTotals {
    /// Adds `other`.
    pub fn add_totals(&mut self, other: &Self) {
        self.rows += other.rows;
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.raw_bytes += other.raw_bytes;
        self.ts_min = self.ts_min.into_iter().chain(other.ts_min).min();
        self.ts_max = self.ts_max.max(other.ts_max);
    }
}

impl StoreSummary {
    /// Sums the totals of all days.
    pub fn all(&self) -> StoredTotals {
        let mut totals = StoredTotals::default();
        self.days.values().for_each(|d| totals.add_totals(&d.all));
        totals
    }
}

impl Store {
    /// Opens the store in `dir` with its key.
    ///
    /// # Errors
    /// Fails if the directory is not a store, or if the store has a foreign version, another key, or a damaged manifest
    /// or dictionary.
    pub fn open(dir: &Path, key: &MasterKey) -> Result<Self> {
        let (manifest, keys, lease) = Manifest::load_with_lease(dir, key)?;
        let token_dictionary = TokenDictionary::load(dir, &keys, &manifest)?;
        let (store_dir, indexes) = (dir.to_owned(), KnownIndexes::default());
        Ok(Self { store_dir, manifest, keys, tokens: token_dictionary, indexes, _lease: lease })
    }

    /// Returns the directory of the store.
    pub fn dir(&self) -> &Path {
        &self.store_dir
    }

    /// Returns the names and their tokens. The ids in scanned frames are these tokens.
    pub fn names(&self) -> &Dictionary {
        &self.tokens.names
    }

    /// Returns the damage that was met when a name was asked for. Such a name is given as if it did not exist.
    pub fn damaged_name(&self) -> Option<Error> {
        self.tokens.sealed()?.damage()
    }

    /// Returns the generation of a state, 0 before the first one.
    ///
    /// # Errors
    /// Fails if there is no such generation yet.
    pub fn generation(&self, as_of: Option<AsOf>) -> Result<u64> {
        let Some(as_of) = as_of else { return Ok(self.manifest.generation) };
        Ok(commits_of(&self.manifest.commits, as_of)?.last().map_or(0, |commit| commit.generation))
    }

    /// Counts the names of a kind that the store had in this state. Tokens count from 1 in the order in which names came.
    ///
    /// # Errors
    /// Fails if there is no such generation yet.
    pub fn name_count(&self, kind: NameKind, as_of: Option<AsOf>) -> Result<u32> {
        let bounds = as_of.map(|as_of| GenerationBounds::new(&self.manifest.commits, as_of)).transpose()?;
        Ok(bounds.flatten().map_or(self.names().len(kind), |bounds| bounds.name_count(kind)))
    }

    /// Definitions of sources; their index is the token that scanned frames carry.
    pub fn sources(&self) -> impl Iterator<Item = Event<'_>> {
        self.tokens.sources()
    }

    /// Makes the summary of the store from the manifest alone.
    pub fn info(&self) -> StoreSummary {
        let mut info = StoreSummary {
            generation: self.manifest.generation,
            public_key: self.manifest.public_key,
            generations: self.manifest.commits.iter().map(Commit::summary).collect(),
            tapes: self.manifest.tapes.iter().map(|t| (t.tape, t.sealed)).collect(),
            missing: TapePart::list(&self.manifest.tapes, |tape| &tape.missing),
            unverified: TapePart::list(&self.manifest.tapes, |tape| &tape.unverified),
            names: NameKind::ALL.iter().map(|d| (*d, self.names().len(*d))).collect(),
            dictionary_bytes: self.manifest.names.iter().map(|segment| segment.bytes).sum(),
            ..StoreSummary::default()
        };
        for commit in &self.manifest.commits {
            for day in commit.ends.iter().map(|end| end.date) {
                info.days.entry(day).or_default().generations.push(commit.generation);
            }
        }
        for part in &self.manifest.parts {
            let day = info.days.entry(part.date).or_default();
            for f in &part.files {
                let amount = StoredTotals {
                    rows: f.rows,
                    blocks: f.blocks.into(),
                    bytes: f.bytes,
                    raw_bytes: f.raw_bytes,
                    // An undated event has no time; its time field holds only a number.
                    ts_min: (part.date != Day::UNDATED).then_some(UnixNanos(f.ts_min)),
                    ts_max: (part.date != Day::UNDATED).then_some(UnixNanos(f.ts_max)),
                };
                day.schemas.entry(f.schema).or_default().add_totals(&amount);
                day.all.add_totals(&amount);
            }
        }
        info
    }

    /// Files that the manifest names and that are not there, or have another size.
    pub fn missing_files(&self) -> Vec<Error> {
        let mut problems = Vec::new();
        for part in &self.manifest.parts {
            for f in &part.files {
                let path = part.file(f).path(&self.store_dir);
                match std::fs::metadata(&path) {
                    Ok(meta) if meta.len() == f.bytes => {}
                    Ok(meta) => {
                        let reason =
                            format!("{} bytes long, not {} as the manifest says", meta.len(), f.bytes);
                        problems.push(Error::damage(&path, meta.len().min(f.bytes), reason));
                    }
                    Err(source) => problems.push(Error::Io { doing: "look at", path, source }),
                }
            }
        }
        problems
    }

    /// Passes each block of the store to `visit`, in the order of days, schemas and files. Returns the problems of files
    /// whose blocks cannot be found, and of a name that cannot be read.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(BlockSummary<'_>)) -> Vec<Error> {
        let mut blocks = self.stored_blocks();
        let files = self.manifest.parts.iter().flat_map(|part| part.files.iter().map(move |f| (part, f)));
        let mut files: Vec<_> = files.map(|(part, entry)| (part.file(entry), entry)).collect();
        files.sort_unstable_by_key(|(id, _)| *id);
        let mut problems = Vec::new();
        for (id, entry) in files {
            for location in blocks.locations(&id, entry, &mut |e| problems.push(e)).iter() {
                visit(BlockSummary {
                    day: id.day,
                    schema: id.schema,
                    symbol: self.names().name(NameKind::Instrument, location.head.instrument.0),
                    generation: id.generation,
                    block: location.head.number,
                    rows: location.head.rows,
                    file: &id.listed_path(),
                    offset: location.offset,
                    bytes: location.head.bytes,
                    ts_min: location.head.ts_min,
                    ts_max: location.head.ts_max,
                });
            }
        }
        problems.extend(self.damaged_name());
        problems
    }

    /// Returns the name by which others may be given the rows of an instrument. One whose name was erased has none: what stands
    /// for the name could be that of another instrument.
    pub(crate) fn given_symbol(&self, instrument: InstrumentId) -> Option<&str> {
        let is_erased = |names: &SealedNames| names.is_erased(NameKind::Instrument, instrument.0);
        let name = self.names().name(NameKind::Instrument, instrument.0);
        name.filter(|_| !self.tokens.sealed().is_some_and(is_erased))
    }

    fn stored_blocks(&self) -> StoredBlocks<'_> {
        StoredBlocks::new(&self.store_dir, &self.keys, &self.manifest).with_indexes(&self.indexes)
    }

    /// Returns the input of scans.
    fn scan_input(&self) -> ScanInput<'_> {
        ScanInput {
            tapes: self.manifest.tapes.iter().map(|tape| tape.tape).collect(),
            parts: &self.manifest.parts,
            commits: &self.manifest.commits,
            names: self.names(),
            sealed_names: self.tokens.sealed(),
            blocks: Box::new(self.stored_blocks()),
        }
    }

    /// Begins to read the events that `filter` selects.
    ///
    /// # Errors
    /// Fails if no event in the store has the symbol or the venue.
    pub fn scan(&self, filter: &ScanFilter) -> Result<Scan<'_>> {
        Scan::new(self.scan_input(), filter)
    }

    /// Begins to read the rows of `schema` that `filter` selects. The schemas of the filter are ignored.
    ///
    /// # Errors
    /// Fails if no event in the store has the symbol or the venue, or if the schema has no rows.
    pub fn rows(&self, schema: TickSchema, filter: &ScanFilter) -> Result<RowScan<'_>> {
        RowScan::new(self.scan_input(), schema, filter)
    }
}
