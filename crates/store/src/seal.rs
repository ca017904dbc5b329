//! From a tape to the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use unitape_model::{Calendar, LostNameCounts, NameKind, Position, UnixNanos};
use unitape_tape::{DamagedParts, TapeId, TapeStatus, UnverifiedBytes, accepted_ranges};

use crate::block::BlockSealer;
use crate::blocks::{BlockWriter, SealId};
use crate::column::ROWS_MAX;
use crate::compact::{Compaction, PARTS_MAX};
use crate::day::Day;
use crate::dictionary::{AppendedNames, TokenDictionary};
use crate::error::{Error, Result};
use crate::gather::RowGatherer;
use crate::keys::{LeafKeys, MasterKey, Randomness, SystemRandomness};
use crate::leases;
use crate::manifest::{Commit, CommitEnd, Manifest, SealedPart, TapeRange, TapeSealProgress};
use crate::runs::RunSealer;
use crate::tape_rows::{SealEnd, TapeSealer};
use crate::writer::StoreWriter;

/// How a tape is sealed.
#[derive(Clone, Copy, Debug)]
pub struct SealOptions<'a> {
    /// Only this day; all when none.
    pub date: Option<Day>,
    /// Bytes of memory that a seal takes, roughly: 1 KiB to 1 TiB. Rows beyond a half of it go to temporary files in the
    /// store's directory, which are sealed and have no name.
    pub memory_bytes: usize,
    /// Rows of a block at most: 1 to 65,536.
    pub block_rows: usize,
    /// A stop request from outside. The seal then leaves the store unchanged.
    pub stop: Option<&'a AtomicBool>,
    /// How far it is.
    pub progress: Option<&'a StoreProgress>,
    /// Continues past damage of the tape instead of failing: later events are sealed, and lost ones are counted. A
    /// part that is mended later is not sealed any more.
    pub skip_damage: bool,
    /// Where keys, nonces and ids come from; the system by default.
    pub random: &'a dyn Randomness,
    /// Whether a day that has more than four parts then is compacted.
    pub compacts: bool,
    /// The text of a calendar: days are session dates by it. The first seal into a store keeps it there, and later seals
    /// follow it, with this option or without. Without one, days are UTC dates.
    pub calendar: Option<&'a str>,
}

impl Default for SealOptions<'_> {
    fn default() -> Self {
        Self {
            date: None,
            memory_bytes: 1 << 30,
            block_rows: ROWS_MAX,
            stop: None,
            progress: None,
            skip_damage: false,
            random: &SystemRandomness,
            compacts: true,
            calendar: None,
        }
    }
}

/// Progress figures for observers; written with Relaxed, each for itself.
#[derive(Debug, Default)]
pub struct StoreProgress {
    /// Bytes of tape, or of blocks, that have been read.
    pub bytes: AtomicU64,
    /// The total number of bytes known so far.
    pub bytes_total: AtomicU64,
    /// Rows sealed or given out.
    pub rows: AtomicU64,
}

/// The result of a seal: the events, blocks and bytes that it added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealReport {
    /// The generation of the added parts, or `None` if nothing was added.
    pub generation: Option<u64>,
    /// Events.
    pub rows: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Events of each day.
    pub days: BTreeMap<Day, u64>,
    /// The tape was read from here to there.
    pub from: Position,
    /// Position after the last frame that was read.
    pub to: Position,
    /// Positions that retention had removed before they were sealed.
    pub gap: Option<(Position, Position)>,
    /// Parts that were sealed although a repair had accepted them without a check.
    pub accepted: Vec<(Position, Position)>,
    /// Damaged parts that the seal skipped.
    pub damaged: DamagedParts,
    /// Names whose definitions are lost in skipped damage.
    pub names: LostNameCounts,
    /// Files of the tape that are missing or short, although every sealed byte matches its checksum.
    pub unverified: UnverifiedBytes,
    /// Days that were compacted, because they had more than four parts.
    pub compacted: Vec<Day>,
    /// The time of the last commit, if the clock is not after it. The new commit has the time one nanosecond later.
    pub last_commit_ahead: Option<UnixNanos>,
    /// Why a day was not compacted that should have been. Its events are sealed nevertheless.
    pub compaction_problem: Option<String>,
}

/// Seals the new part of the tape in `tape` into the store in `store`, with `key`. Makes the store if there is none. `now` is
/// the time of the commit; if the last commit is not before it, the time is one nanosecond after that one.
///
/// A seal takes data that is durable and matches its checksums. Of a closed tape, this is everything. Of a tape whose
/// writer is running or has died, it is the part before the durable position. A seal that is killed leaves the store
/// unchanged. Another run does the remaining work, if any.
///
/// A day that has more than four parts then is compacted, as [`compact()`](crate::compact()) does it. What is sealed stays
/// sealed if that fails.
///
/// # Errors
/// Fails if the tape or the store is missing or damaged, or if the tape lacks checksums. Fails if another tape was
/// sealed under this id, or if events name an undefined id. Fails if the key is not the store's, or if the system
/// refuses. The store is then as it was before.
pub fn seal(
    tape: &Path,
    store: &Path,
    key: &MasterKey,
    now: UnixNanos,
    options: &SealOptions<'_>,
) -> Result<SealReport> {
    if !(1 << 10..=1 << 40).contains(&options.memory_bytes) {
        return Err(Error::Option("memory_bytes must be 1 KiB to 1 TiB"));
    }
    if !(1..=ROWS_MAX).contains(&options.block_rows) {
        return Err(Error::Option("block_rows must be 1 to 65,536"));
    }
    // The tape first: a wrong path must not leave an empty store behind.
    let standing = unitape_tape::tape_status(tape)?;
    let mut writer = StoreWriter::open_or_make(store, key, options.random)?;
    let mut report = seal_tape(tape, &standing, &mut writer, now, options)?;
    if report.generation.is_some() && options.compacts {
        let days = report.days.keys().copied().filter(|day| writer.part_count(*day) > PARTS_MAX).collect();
        compact_sealed(&mut writer, days, options, &mut report);
    }
    // What stays of the leases of earlier revisions does no harm: the next seal removes it.
    _ = leases::oldest_held(store, writer.manifest.revision);
    Ok(report)
}

/// Compacts the days, and keeps the problem of one that cannot be compacted.
fn compact_sealed(
    writer: &mut StoreWriter<'_>,
    days: Vec<Day>,
    options: &SealOptions<'_>,
    report: &mut SealReport,
) {
    let SealOptions { memory_bytes, block_rows, stop, .. } = *options;
    let compaction = Compaction { memory_bytes, block_rows, stop, progress: None };
    for day in days {
        match compaction.compact_day(writer, day) {
            Ok(_) => report.compacted.push(day),
            // The next seal does it.
            Err(Error::Stopped) => return,
            Err(e) => report.compaction_problem = Some(format!("{day} is not compacted: {e}")),
        }
    }
}

/// Seals the new part of the tape.
fn seal_tape(
    tape: &Path,
    standing: &TapeStatus,
    store: &mut StoreWriter<'_>,
    now: UnixNanos,
    options: &SealOptions<'_>,
) -> Result<SealReport> {
    let StoreWriter { dir: store_dir, manifest, keys, random, .. } = store;
    let (store_dir, keys, random) = (*store_dir, &*keys, *random);
    keep_calendar(manifest, store_dir, options.calendar)?;
    let mut token_dictionary = TokenDictionary::load(store_dir, keys, manifest)?;
    let state = manifest.tape(standing.id).cloned();
    let mut sealed = SealReport::default();
    let day_rule = manifest.day_rule(store_dir)?;
    let mut work = TapeSealer::new(tape, standing, state.as_ref(), day_rule, options)?;
    (sealed.from, sealed.gap) = (work.from_position, work.gap);
    let generation = manifest.generation + 1;
    let mut commit = [0; 16];
    random.fill(&mut commit)?;
    let commit = u128::from_le_bytes(commit);
    let sealer =
        BlockSealer { keys, leaf_keys: LeafKeys::new(keys), days: manifest.day_keys.clone(), random };
    let run_sealer = RunSealer::new(keys.store, random)?;
    let mut gatherer = RowGatherer::new(store_dir, options.memory_bytes, run_sealer, options.stop);
    let seal_end = work.run(&mut token_dictionary, &mut gatherer)?;
    let seal = SealId { generation, revision: 0, commit };
    let mut writer = BlockWriter::new(store_dir, seal, sealer, options.block_rows, options.memory_bytes);
    gatherer.finish(&mut writer)?;
    sealed.accepted = accepted_ranges(tape);
    sealed.accepted.retain(|(from, to)| *from < seal_end.position && *to > work.from_position);
    sealed.to = seal_end.position.max(work.from_position);
    sealed.damaged = work.reader.damaged().clone();
    sealed.unverified = work.reader.unverified().clone();
    sealed.names = work.definitions.lost_names();
    let files = writer.finish()?;
    if files.is_empty() {
        return Ok(sealed);
    }
    let mut parts: BTreeMap<Day, SealedPart> = BTreeMap::new();
    for (id, file) in files {
        let part = parts.entry(id.day).or_insert_with(|| SealedPart {
            date: id.day,
            generation,
            revision: 0,
            commit,
            tapes: vec![TapeRange { tape: standing.id, ordinal_first: u64::MAX, ordinal_last: 0 }],
            files: Vec::new(),
        });
        let range = &mut part.tapes[0];
        range.ordinal_first = range.ordinal_first.min(file.ordinals.0);
        range.ordinal_last = range.ordinal_last.max(file.ordinals.1);
        part.files.push(file.file_entry.clone());
        manifest.files.insert(id.listed_path(), file.digest());
        sealed.rows += file.file_entry.rows;
        sealed.blocks += u64::from(file.file_entry.blocks);
        sealed.bytes += file.file_entry.bytes;
        *sealed.days.entry(id.day).or_default() += file.file_entry.rows;
    }
    let appended = token_dictionary.append_names(store_dir, keys, manifest, (generation, commit), random)?;
    if let Some(AppendedNames { segment, path, digest }) = appended {
        manifest.names.push(segment);
        manifest.files.insert(path, digest);
    }
    let end = |part: &SealedPart| CommitEnd {
        date: part.date,
        tape: standing.id,
        ordinal_last: part.tapes[0].ordinal_last,
    };
    let committed = commit_time(manifest, now);
    sealed.last_commit_ahead = (committed != now.0).then(|| UnixNanos(committed.saturating_sub(1)));
    manifest.commits.push(Commit {
        generation,
        committed,
        rows: sealed.rows,
        names: NameKind::ALL.iter().map(|kind| token_dictionary.names.len(*kind)).collect(),
        ends: parts.values().map(end).collect(),
    });
    manifest.parts.extend(parts.into_values());
    manifest.day_keys = std::mem::take(&mut writer.sealer.days);
    manifest.generation = generation;
    record_progress(manifest, standing.id, options.date, &seal_end);
    note_parts(manifest, standing.id, &sealed);
    let confirmed = manifest.store_manifest(store_dir, keys, random)?;
    writer.keep_files();
    confirmed?;
    sealed.generation = Some(generation);
    Ok(sealed)
}

/// Returns the time of the next commit: `now`, if that is later than the last commit.
fn commit_time(manifest: &Manifest, now: UnixNanos) -> i64 {
    let last = manifest.commits.last().map_or(i64::MIN, |commit| commit.committed);
    now.0.max(last.saturating_add(1))
}

/// Keeps the calendar of the first seal in the manifest. Fails if the store has another one.
fn keep_calendar(manifest: &mut Manifest, store: &Path, calendar: Option<&str>) -> Result<()> {
    let Some(text) = calendar.filter(|text| manifest.calendar.as_deref() != Some(*text)) else {
        return Ok(());
    };
    if manifest.generation > 0 {
        let (path, has_calendar) = (Manifest::path(store), manifest.calendar.is_some());
        return Err(Error::OtherCalendar { path, has_calendar });
    }
    Calendar::parse(text).map_err(|_| Error::Option("the calendar cannot be read"))?;
    manifest.calendar = Some(text.to_owned());
    Ok(())
}

/// Writes into the manifest how far the tape is sealed now.
fn record_progress(manifest: &mut Manifest, tape: TapeId, date: Option<Day>, seal_end: &SealEnd) {
    let index = manifest.tapes.iter().position(|t| t.tape == tape).unwrap_or_else(|| {
        let (days, last_position, last_crc) = (BTreeMap::new(), Position(0), 0);
        let (sealed, missing, unverified) = (Position(0), Vec::new(), Vec::new());
        manifest.tapes.push(TapeSealProgress {
            tape,
            sealed,
            days,
            last_position,
            last_crc,
            missing,
            unverified,
        });
        manifest.tapes.len() - 1
    });
    let state = &mut manifest.tapes[index];
    match date {
        Some(day) => _ = state.days.insert(day, seal_end.position),
        None => {
            state.sealed = seal_end.position;
            state.days.retain(|_, through| *through > seal_end.position);
        }
    }
    if seal_end.last_position >= state.last_position {
        (state.last_position, state.last_crc) = (seal_end.last_position, seal_end.last_crc);
    }
}

/// Writes into the manifest which parts of the tape the store does not have, and which ones nothing vouches for.
fn note_parts(manifest: &mut Manifest, tape: TapeId, report: &SealReport) {
    let Some(state) = manifest.tapes.iter_mut().find(|t| t.tape == tape) else { return };
    let damaged = report.damaged.parts.iter().map(|part| (part.from_position, part.to_position));
    state.missing.extend(report.gap.into_iter().chain(damaged).map(|(from, to)| [from.0, to.0]));
    state.unverified.extend(report.accepted.iter().map(|(from, to)| [from.0, to.0]));
    for parts in [&mut state.missing, &mut state.unverified] {
        parts.sort_unstable();
        parts.dedup();
    }
}
