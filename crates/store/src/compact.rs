//! Compaction: the parts of a day become one, and no answer changes.
//!
//! ```text
//! part of seal 3 ─┐
//! part of seal 4 ─┼─ rows by time ─▶ gatherer ─▶ blocks of 65,536 rows, tapes mixed ─▶ compare ─▶ manifest, next revision
//! part of seal 5 ─┘                                                                                  │
//!      └──────────── stay until no reader has a lease of an earlier revision ◀───────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use unitape_model::Dictionary;

use crate::block::BlockSealer;
use crate::blocks::{BlockWriter, SealId};
use crate::cells::EventKindLayout;
use crate::column::ROWS_MAX;
use crate::day::Day;
use crate::error::{Error, Result};
use crate::frames::SealRow;
use crate::gather::{GroupKey, RowGatherer};
use crate::keys::{LeafKeys, MasterKey, Randomness, SystemRandomness};
use crate::manifest::{Manifest, SealedPart, TapeRange};
use crate::rows::day_segments;
use crate::runs::RunSealer;
use crate::scan::ScanFilter;
use crate::schema::TickSchema;
use crate::seal::StoreProgress;
use crate::selection::Selection;
use crate::source::{ScanInput, StoredBlocks};
use crate::window::{RowOrder, WindowReader};
use crate::writer::StoreWriter;

/// Parts that a day may have before a seal compacts it.
pub const PARTS_MAX: usize = 4;

/// How a store is compacted.
#[derive(Clone, Copy, Debug)]
pub struct CompactOptions<'a> {
    /// Only this day; all when none.
    pub date: Option<Day>,
    /// Days with more parts than this, 1 or more.
    pub parts_max: usize,
    /// Bytes of memory that a compaction takes, roughly: 1 KiB to 1 TiB. Rows beyond a half of it go to temporary files, as
    /// those of a seal.
    pub memory_bytes: usize,
    /// A stop request from outside. Days that are done stay compacted, the others are as they were.
    pub stop: Option<&'a AtomicBool>,
    /// How far it is.
    pub progress: Option<&'a StoreProgress>,
    /// Where keys, nonces and ids come from; the system by default.
    pub random: &'a dyn Randomness,
}

impl Default for CompactOptions<'_> {
    fn default() -> Self {
        Self {
            date: None,
            parts_max: 1,
            memory_bytes: 1 << 30,
            stop: None,
            progress: None,
            random: &SystemRandomness,
        }
    }
}

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Days whose parts became one, with their rows. Days of one part are left alone.
    pub days: BTreeMap<Day, u64>,
    /// Files before and after, of these days.
    pub files: (u64, u64),
    /// Bytes of these files before and after.
    pub bytes: (u64, u64),
    /// Replaced files that stay for now, because a reader may read them.
    pub kept_files: u64,
}

/// Puts the parts of each day together, so that a block has 65,536 rows unless it is the last one of its instrument, schema
/// and day. Every answer stays the same, also of readers that are at work, and of earlier generations.
///
/// # Errors
/// Fails if there is no store, if the key is another one, or if somebody else changes the store. Fails if a block of a day is
/// damaged; that day and the days after it stay as they were.
pub fn compact(store: &Path, key: &MasterKey, options: &CompactOptions<'_>) -> Result<CompactReport> {
    if !(1 << 10..=1 << 40).contains(&options.memory_bytes) {
        return Err(Error::Option("memory_bytes must be 1 KiB to 1 TiB"));
    }
    let mut writer = StoreWriter::open(store, key, options.random)?;
    let mut days: BTreeSet<Day> = writer.manifest.parts.iter().map(|part| part.date).collect();
    days.retain(|day| {
        options.date.is_none_or(|date| date == *day) && writer.part_count(*day) > options.parts_max.max(1)
    });
    if let Some(progress) = options.progress {
        let parts = writer.manifest.parts.iter().filter(|part| days.contains(&part.date));
        let bytes = parts.flat_map(|part| &part.files).map(|file| file.bytes).sum();
        progress.bytes_total.store(bytes, Ordering::Relaxed);
    }
    let compaction = Compaction {
        memory_bytes: options.memory_bytes,
        block_rows: ROWS_MAX,
        stop: options.stop,
        progress: options.progress,
    };
    let mut report = CompactReport::default();
    for day in days {
        let compacted = compaction.compact_day(&mut writer, day)?;
        report.days.insert(day, compacted.rows);
        report.files = (report.files.0 + compacted.files.0, report.files.1 + compacted.files.1);
        report.bytes = (report.bytes.0 + compacted.bytes.0, report.bytes.1 + compacted.bytes.1);
    }
    report.kept_files = writer.kept_files(report.days.keys());
    Ok(report)
}

/// How days are compacted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compaction<'a> {
    pub memory_bytes: usize,
    pub block_rows: usize,
    pub stop: Option<&'a AtomicBool>,
    pub progress: Option<&'a StoreProgress>,
}

/// A day that was compacted: its rows, its files and their bytes before and after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompactedDay {
    rows: u64,
    files: (u64, u64),
    bytes: (u64, u64),
}

impl Compaction<'_> {
    /// Puts the parts of a day together, and commits that.
    pub fn compact_day(&self, store: &mut StoreWriter<'_>, day: Day) -> Result<CompactedDay> {
        let is_of_day = |part: &SealedPart| part.date == day;
        let (dir, random) = (store.dir, store.random);
        let keys = &store.keys;
        let old_parts: Vec<SealedPart> =
            store.manifest.parts.iter().filter(|p| is_of_day(p)).cloned().collect();
        let old_files = || old_parts.iter().flat_map(|part| &part.files);
        let tapes = tape_ranges(&store.manifest, &old_parts)?;
        let mut commit = [0; 16];
        random.fill(&mut commit)?;
        let seal = SealId {
            generation: old_parts.iter().map(|part| part.generation).max().unwrap_or_default(),
            revision: store.manifest.revision + 1,
            commit: u128::from_le_bytes(commit),
        };
        let run_sealer = RunSealer::new(keys.store, random)?;
        let mut gatherer = RowGatherer::new(dir, self.memory_bytes, run_sealer, self.stop);
        let rows = self.gather_rows(store, day, &old_parts, &tapes, &mut gatherer)?;
        let mut compacted = CompactedDay {
            rows,
            files: (old_files().count() as u64, 0),
            bytes: (old_files().map(|file| file.bytes).sum(), 0),
        };
        if rows != old_files().map(|file| file.rows).sum::<u64>() {
            return Err(Error::damage(
                &Manifest::path(dir),
                0,
                format!("{day} has not as many rows as it says"),
            ));
        }
        let sealer = BlockSealer {
            keys,
            leaf_keys: LeafKeys::new(keys),
            days: store.manifest.day_keys.clone(),
            random,
        };
        let mut writer = BlockWriter::new(dir, seal, sealer, self.block_rows, self.memory_bytes);
        gatherer.finish(&mut writer)?;
        let mut part = SealedPart {
            date: day,
            generation: seal.generation,
            revision: seal.revision,
            commit: seal.commit,
            tapes,
            files: Vec::new(),
        };
        let mut new_files = Vec::new();
        for (id, file) in writer.finish()? {
            compacted.files.1 += 1;
            compacted.bytes.1 += file.file_entry.bytes;
            part.files.push(file.file_entry.clone());
            new_files.push((id.listed_path(), file.digest()));
        }
        let manifest = &mut store.manifest;
        let before = manifest.clone();
        manifest.replace_parts(part, is_of_day);
        manifest.files.extend(new_files);
        let confirmed = match manifest.store_manifest(dir, keys, random) {
            Ok(confirmed) => confirmed,
            Err(e) => {
                *manifest = before;
                return Err(e);
            }
        };
        writer.keep_files();
        drop(writer);
        // Unless this one is confirmed, the manifest before may come back, and with it the files that it names.
        confirmed?;
        store.remove_replaced(Some(day))?;
        Ok(compacted)
    }

    /// Passes all rows of the day to the gatherer. Returns how many they are.
    fn gather_rows(
        &self,
        store: &StoreWriter<'_>,
        day: Day,
        parts: &[SealedPart],
        tapes: &[TapeRange],
        gatherer: &mut RowGatherer<'_>,
    ) -> Result<u64> {
        let all_tapes: Vec<_> = store.manifest.tapes.iter().map(|tape| tape.tape).collect();
        // The rank of a tape in the store, and its index in the part.
        let index_of = |rank: u32| {
            tapes.iter().position(|range| range.tape == all_tapes[rank as usize]).unwrap_or_default() as u16
        };
        let indexes: Vec<u16> = (0..all_tapes.len() as u32).map(index_of).collect();
        let (names, mut rows) = (Dictionary::default(), 0);
        for schema in TickSchema::ALL {
            let filter = ScanFilter { schemas: vec![schema], ..ScanFilter::default() };
            let selection = Selection::with_unknown_names(&names, &filter);
            let input = ScanInput {
                tapes: all_tapes.clone(),
                parts,
                commits: &[],
                names: &names,
                sealed_names: None,
                blocks: Box::new(StoredBlocks::new(store.dir, &store.keys, &store.manifest)),
            };
            let segments = day_segments(&input, &selection, None, false);
            let mut reader = WindowReader::new(input, selection, RowOrder::Time, segments);
            reader.read_all_classes();
            // The rows that are gathered take a half of the memory.
            reader.set_window_bytes((self.memory_bytes / 8) as u64);
            while let Some(row) = reader.next() {
                if rows % 4096 == 0 && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Error::Stopped);
                }
                rows += 1;
                let instrument = EventKindLayout::for_frame(row.frame).instrument(row.frame);
                let seal_row = SealRow {
                    frame: row.frame,
                    ts: row.key.ts,
                    tape_index: indexes[row.key.tape_rank as usize],
                    ordinal: row.key.ordinal,
                    position: row.key.position,
                };
                gatherer.push(GroupKey { day, schema, instrument }, &seal_row)?;
            }
            if let Some(problem) = reader.problems.pop() {
                return Err(problem);
            }
            if let Some(progress) = self.progress {
                let of_schema =
                    parts.iter().flat_map(|part| &part.files).filter(|file| file.schema == schema);
                progress.bytes.fetch_add(of_schema.map(|file| file.bytes).sum(), Ordering::Relaxed);
                progress.rows.store(rows, Ordering::Relaxed);
            }
        }
        Ok(rows)
    }
}

/// Returns the tapes of these parts, in the order of their first seal, with all of their ordinals.
fn tape_ranges(manifest: &Manifest, parts: &[SealedPart]) -> Result<Vec<TapeRange>> {
    let mut ranges: Vec<TapeRange> = Vec::new();
    for tape in &manifest.tapes {
        let of_tape = parts.iter().flat_map(|part| &part.tapes).filter(|range| range.tape == tape.tape);
        ranges.extend(of_tape.copied().reduce(|all, range| TapeRange {
            tape: all.tape,
            ordinal_first: all.ordinal_first.min(range.ordinal_first),
            ordinal_last: all.ordinal_last.max(range.ordinal_last),
        }));
    }
    if ranges.len() >= usize::from(crate::header::SEVERAL_TAPES) {
        return Err(Error::Option("a day of more than 65,534 tapes cannot be compacted"));
    }
    Ok(ranges)
}
