//! From a tape to the store.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use unitape_model::schema::at;
use unitape_model::{
    Calendar, DefinitionTable, Event, FrameFault, LostNameCounts, NameKind, Position, TopicMessage, frames,
};
use unitape_tape::{
    DamagedParts, LostDefinitions, ReadOptions, Reader, StartPosition, TapeId, TapeStatus, UnverifiedBytes,
    accepted_ranges,
};

use crate::block::BlockSealer;
use crate::blocks::{BlockWriter, SealId};
use crate::cells::EventKindLayout;
use crate::column::ROWS_MAX;
use crate::day::{Day, DayRule};
use crate::dictionary::TokenDictionary;
use crate::error::{Error, IoContext, Result};
use crate::gather::{GroupKey, RowGatherer};
use crate::keys::{LeafKeys, MasterKey, Randomness, StoreId, StoreKeys, SystemRandomness};
use crate::manifest::{DICTIONARY, Manifest, SealedPart, TapeSealProgress};
use crate::runs::RunSealer;
use crate::schema::TickSchema;

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
}

/// Seals the new part of the tape in `tape` into the store in `store`, with `key`. Makes the store if there is none.
///
/// A seal takes data that is durable and matches its checksums. Of a closed tape, this is everything. Of a tape whose
/// writer is running or has died, it is the part before the durable position. A seal that is killed leaves the store
/// unchanged. Another run does the remaining work, if any.
///
/// # Errors
/// Fails if the tape or the store is missing or damaged, or if the tape lacks checksums. Fails if another tape was
/// sealed under this id, or if events name an undefined id. Fails if the key is not the store's, or if the system
/// refuses. The store is then as it was before.
pub fn seal(tape: &Path, store: &Path, key: &MasterKey, options: &SealOptions<'_>) -> Result<SealReport> {
    if !(1 << 10..=1 << 40).contains(&options.memory_bytes) {
        return Err(Error::Option("memory_bytes must be 1 KiB to 1 TiB"));
    }
    if !(1..=ROWS_MAX).contains(&options.block_rows) {
        return Err(Error::Option("block_rows must be 1 to 65,536"));
    }
    // The tape first: a wrong path must not leave an empty store behind.
    let standing = unitape_tape::tape_status(tape)?;
    let (_lock, mut manifest, keys) = open_for_sealing(store, key, options.random)?;
    keep_calendar(&mut manifest, store, options.calendar)?;
    let mut token_dictionary = TokenDictionary::load(store, &keys, &manifest.names)?;
    let state = manifest.tape(standing.id).cloned();
    let mut sealed = SealReport::default();
    let mut work = TapeSealer::new(tape, &standing, state.as_ref(), manifest.day_rule(store)?, options)?;
    (sealed.from, sealed.gap) = (work.from_position, work.gap);
    let generation = manifest.generation + 1;
    let mut commit = [0; 16];
    options.random.fill(&mut commit)?;
    let commit = u128::from_le_bytes(commit);
    let sealer = BlockSealer {
        keys: &keys,
        leaf_keys: LeafKeys::new(&keys),
        days: std::mem::take(&mut manifest.day_keys),
        random: options.random,
    };
    let run_sealer = RunSealer::new(keys.store, options.random)?;
    let mut gatherer = RowGatherer::new(store, options.memory_bytes, run_sealer, options.stop);
    let seal_end = work.run(&mut token_dictionary, &mut gatherer)?;
    let seal = SealId { tape: standing.id, generation, commit };
    let mut writer = BlockWriter::new(store, seal, sealer, options.block_rows, options.memory_bytes);
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
            commit,
            tape: id.tape,
            ordinal_first: u64::MAX,
            ordinal_last: 0,
            files: Vec::new(),
        });
        part.ordinal_first = part.ordinal_first.min(file.ordinals.0);
        part.ordinal_last = part.ordinal_last.max(file.ordinals.1);
        part.files.push(file.file_entry.clone());
        manifest.files.insert(id.listed_path(), file.digest());
        sealed.rows += file.file_entry.rows;
        sealed.blocks += u64::from(file.file_entry.blocks);
        sealed.bytes += file.file_entry.bytes;
        *sealed.days.entry(id.day).or_default() += file.file_entry.rows;
    }
    manifest.parts.extend(parts.into_values());
    if let Some((segment, digest)) =
        token_dictionary.append_names(store, &keys, &manifest.names, (generation, commit), options.random)?
    {
        manifest.names.push(segment);
        manifest.files.insert(DICTIONARY.to_owned(), digest);
    }
    manifest.day_keys = std::mem::take(&mut writer.sealer.days);
    manifest.generation = generation;
    record_progress(&mut manifest, standing.id, options.date, &seal_end);
    note_parts(&mut manifest, standing.id, &sealed);
    manifest.store_manifest(store, &keys, options.random)?;
    writer.keep_files();
    sealed.generation = Some(generation);
    Ok(sealed)
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

/// Where reading came to.
struct SealEnd {
    /// Position after the last frame.
    position: Position,
    last_position: Position,
    last_crc: u32,
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

/// A tape that is being read, with the meaning of its ids.
struct TapeSealer<'a> {
    reader: Reader,
    tape: TapeId,
    options: &'a SealOptions<'a>,
    /// Sealed without regard to days.
    from_position: Position,
    /// Days that are further.
    days: BTreeMap<Day, Position>,
    /// Nothing from here on is read.
    limit_position: Option<Position>,
    gap: Option<(Position, Position)>,
    definitions: DefinitionTable,
    tokens: [Vec<u32>; NameKind::COUNT],
    source_tokens: Vec<u32>,
    day_rule: DayRule,
}

impl<'a> TapeSealer<'a> {
    fn new(
        dir: &Path,
        standing: &TapeStatus,
        state: Option<&TapeSealProgress>,
        day_rule: DayRule,
        options: &'a SealOptions<'a>,
    ) -> Result<Self> {
        let (tape, days) = (standing.id, state.map_or_else(BTreeMap::new, |s| s.days.clone()));
        let of_day = options.date.and_then(|d| days.get(&d)).copied().unwrap_or_default();
        let sealed_end = state.map_or(Position(0), |s| s.sealed).max(of_day);
        let gap = (standing.oldest_position > sealed_end).then_some((sealed_end, standing.oldest_position));
        // The log has at least all definitions up to the durable position. The tape has the others.
        let read_from = sealed_end.min(standing.durable);
        let start = if read_from <= standing.oldest_position {
            StartPosition::Oldest
        } else {
            StartPosition::At(read_from)
        };
        let read_options = ReadOptions { skip_damage: options.skip_damage, ..ReadOptions::default() };
        let open_reader = |start| {
            Reader::open_with(dir, start, read_options).map_err(|e| shorter_tape(e, tape, sealed_end))
        };
        let mut reader = open_reader(start)?;
        if let Some(state) = state {
            check_last(&mut reader, state, dir, options.skip_damage)?;
        }
        let table = || {
            let mut definitions = DefinitionTable::default();
            if options.skip_damage {
                definitions.set_log(LostDefinitions::names(dir));
            }
            definitions
        };
        let (mut names, mut lost_definitions) = (table(), LostDefinitions::new(dir, options.skip_damage));
        match lost_definitions.learn_before(reader.position(), |_, frame| names.admit_frame(frame).map(drop))
        {
            // All that the log has can be met on the tape once more.
            Err(_) if standing.oldest_position.0 == 0 => {
                (reader, names) = (open_reader(StartPosition::Oldest)?, table())
            }
            other => other?,
        }
        let limit = standing.live.then_some(standing.durable);
        if let Some(p) = options.progress {
            p.bytes_total.store(standing.durable.0.saturating_sub(sealed_end.0), Ordering::Relaxed);
        }
        Ok(Self {
            reader,
            tape,
            options,
            from_position: sealed_end,
            days,
            limit_position: limit,
            gap,
            definitions: names,
            tokens: Default::default(),
            source_tokens: Vec::new(),
            day_rule,
        })
    }

    /// Reads to the end, or as far as it may seal.
    fn run(&mut self, store: &mut TokenDictionary, gatherer: &mut RowGatherer<'_>) -> Result<SealEnd> {
        let mut seal_end = SealEnd { position: Position(0), last_position: Position(0), last_crc: 0 };
        let mut scratch = Vec::new();
        // The run borrows the reader, so the other fields are borrowed apart.
        let Self {
            reader,
            tape,
            options,
            from_position: from,
            days,
            limit_position: limit,
            definitions: names,
            tokens,
            source_tokens,
            day_rule,
            ..
        } = self;
        'tape: while let Some(run) = reader.next_run(RUN_BYTES)? {
            if options.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                return Err(Error::Stopped);
            }
            // Bytes without a checksum are sealed later, when they are durable.
            if !run.is_checked {
                break;
            }
            let mut ordinal = run.ordinal;
            let mut rows = 0;
            let (read_bytes, mut refused) = (run.bytes.len() as u64, None);
            for (offset, header, frame) in frames(run.bytes) {
                let position = run.position.plus(offset as u64);
                if limit.is_some_and(|limit| position >= limit) {
                    break 'tape;
                }
                let event = match Event::new(frame) {
                    // A user's bytes: no tick, and of no day.
                    None if TopicMessage::from_frame(frame).is_some() => {
                        (seal_end.position, seal_end.last_position) =
                            (position.plus(frame.len() as u64), position);
                        ordinal += 1;
                        continue;
                    }
                    Some(event) if !header.is_meta() => event,
                    _ => {
                        if let Err(flaw) = names.admit_frame(frame) {
                            refused = Some((position, flaw.to_string()));
                            break;
                        }
                        (seal_end.position, seal_end.last_position) =
                            (position.plus(frame.len() as u64), position);
                        continue;
                    }
                };
                if options.skip_damage {
                    // For names from the log. A name without a definition is refused below.
                    _ = names.admit_event(&event);
                }
                let (kind, ts) = (event.kind(), event.ts_event());
                let day = day_rule.day_of(&event, |venue| names.name(NameKind::Venue, venue));
                let sealed = days.get(&day).map_or(*from, |through| (*through).max(*from));
                if position >= sealed && options.date.is_none_or(|wanted| wanted == day) {
                    scratch.clear();
                    scratch.extend_from_slice(frame);
                    scratch[..4].fill(0);
                    let plan = EventKindLayout::for_schema(event.schema());
                    let change = |dict: NameKind, id: u32| -> std::result::Result<u32, IdRefusal> {
                        let known_token = tokens[dict as usize].get(id as usize).copied().unwrap_or(0);
                        if known_token != 0 {
                            return Ok(known_token);
                        }
                        let name = names.name(dict, id).ok_or(FrameFault::Undefined { dict, id })?;
                        let token = store.intern(dict, name)?;
                        record_token(&mut tokens[dict as usize], id, token);
                        Ok(token)
                    };
                    let source = event.source();
                    let source_token = source_tokens.get(source as usize).copied().unwrap_or(0);
                    let change_result = plan.change_ids(&mut scratch, change).and_then(|()| {
                        if source != 0 && source_token == 0 {
                            let defined = names.source(source).ok_or(FrameFault::UndefinedSource(source))?;
                            let token = store.intern_source(*tape, source, &defined.frame)?;
                            record_token(source_tokens, source, token);
                        }
                        TickSchema::for_kind(kind).ok_or(IdRefusal::Frame("bookkeeping among events"))
                    });
                    let schema = match change_result {
                        Ok(schema) => schema,
                        Err(IdRefusal::Store(e)) => return Err(e),
                        Err(IdRefusal::Frame(reason)) => {
                            refused = Some((position, reason.to_owned()));
                            break;
                        }
                        Err(IdRefusal::Flaw(flaw)) => {
                            refused = Some((position, flaw.to_string()));
                            break;
                        }
                    };
                    if source != 0 {
                        let token = source_tokens[source as usize];
                        scratch[at::SOURCE..at::SOURCE + 4].copy_from_slice(&token.to_le_bytes());
                    }
                    let key = GroupKey { day, schema, instrument: plan.instrument(&scratch) };
                    gatherer.push(key, &scratch, ts, ordinal, position)?;
                    rows += 1;
                }
                (seal_end.position, seal_end.last_position) = (position.plus(frame.len() as u64), position);
                ordinal += 1;
            }
            if let Some((position, refusal_reason)) = refused {
                reader.refuse(position, &refusal_reason)?;
            }
            if let Some(p) = options.progress {
                p.bytes.fetch_add(read_bytes, Ordering::Relaxed);
                p.rows.fetch_add(rows, Ordering::Relaxed);
            }
        }
        if reader.unverified().bytes > 0
            && let (Some(from), Some((path, unchecked_reason))) =
                (reader.unverified().first_position, &reader.unverified().first_file)
        {
            return Err(Error::Unchecked { path: path.clone(), from, reason: unchecked_reason.clone() });
        }
        if seal_end.position > Position(0) {
            let frame = reader.frame_at(seal_end.last_position)?;
            seal_end.last_crc = crc32c::crc32c(frame.bytes);
        }
        Ok(seal_end)
    }
}

/// Bytes of tape between two looks at whether to stop.
const RUN_BYTES: usize = 1 << 20;

/// Why an id was not accepted.
enum IdRefusal {
    Store(Error),
    Frame(&'static str),
    Flaw(FrameFault),
}

impl From<FrameFault> for IdRefusal {
    fn from(flaw: FrameFault) -> Self {
        Self::Flaw(flaw)
    }
}

impl From<Error> for IdRefusal {
    fn from(e: Error) -> Self {
        Self::Store(e)
    }
}

impl From<&'static str> for IdRefusal {
    fn from(reason: &'static str) -> Self {
        Self::Frame(reason)
    }
}

/// Records the token of an id. The ids of a tape are consecutive, so a table of them is dense. An id far beyond all
/// defined names never gets here.
fn record_token(tokens: &mut Vec<u32>, id: u32, token: u32) {
    let index = id as usize;
    if tokens.len() <= index {
        tokens.resize(index + 1, 0);
    }
    tokens[index] = token;
}

/// Fails if the tape no longer reads as it did when it was sealed.
fn check_last(reader: &mut Reader, state: &TapeSealProgress, dir: &Path, skip_damage: bool) -> Result<()> {
    let other_tape = |difference| Error::OtherTape { tape: state.tape, sealed: state.sealed, difference };
    match reader.frame_at(state.last_position) {
        Ok(frame) if crc32c::crc32c(frame.bytes) == state.last_crc => Ok(()),
        Ok(_) => Err(other_tape("its last frame that was sealed is another one now")),
        Err(unitape_tape::Error::Retained { .. }) => Ok(()),
        Err(unitape_tape::Error::Damage { .. }) if skip_damage => Ok(()),
        // Within a frame of another tape no sum matches. A walk from the segment's start finds that no frame starts there.
        Err(unitape_tape::Error::Damage { .. })
            if matches!(
                Reader::open(dir, StartPosition::At(state.last_position)),
                Err(unitape_tape::Error::NoFrame(_))
            ) =>
        {
            Err(other_tape("its last frame that was sealed is not there now"))
        }
        Err(unitape_tape::Error::NoFrame(_)) => Err(other_tape("it ends before that now")),
        Err(e) => Err(e.into()),
    }
}

fn shorter_tape(error: unitape_tape::Error, tape: TapeId, sealed: Position) -> Error {
    match error {
        unitape_tape::Error::NoFrame(_) => {
            let difference = "no frame starts or ends there now";
            Error::OtherTape { tape, sealed, difference }
        }
        other => other.into(),
    }
}

/// Fails if `store` is a directory of something else, where a seal makes no store.
///
/// # Errors
/// Fails if `store` is not empty and has no manifest, or if it cannot be listed.
pub fn check_place(store: &Path) -> Result<()> {
    if Manifest::path(store).exists() || !store.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(store).with_context("list", store)? {
        let name = entry.with_context("list", store)?.file_name();
        // A first seal that was killed at once leaves these two files.
        if name != LOCK && name != "manifest.new" {
            let reason = "it is not empty, and there is no manifest in it";
            return Err(Error::NotAStore { path: store.into(), reason });
        }
    }
    Ok(())
}

pub(crate) const LOCK: &str = "store.lock";

/// Takes the lock, makes the store if there is none, and removes the files of a killed seal.
fn open_for_sealing(
    store: &Path,
    master: &MasterKey,
    random: &dyn Randomness,
) -> Result<(File, Manifest, StoreKeys)> {
    fs::create_dir_all(store).with_context("make", store)?;
    check_place(store)?;
    let path = store.join(LOCK);
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .with_context("open", &path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::Locked { path }),
        Err(TryLockError::Error(e)) => return Err(e).with_context("lock", &path),
    }
    if !Manifest::path(store).exists() {
        let mut id = StoreId::default();
        random.fill(&mut id.0)?;
        let keys = StoreKeys::new(master, id);
        Manifest::new(&keys, random)?.store_manifest(store, &keys, random)?;
    }
    let (manifest, keys) = Manifest::load(store, master)?;
    remove(&Manifest::path_new(store))?;
    clean_store(store, manifest.generation)?;
    Ok((lock, manifest, keys))
}

/// Removes files of generations that the manifest does not know, and directories that are empty then. Only files with a
/// store's names are considered.
fn clean_store(store: &Path, generation: u64) -> Result<()> {
    for day in subdirectories(store, |name| name.parse::<Day>().is_ok())? {
        for schema in subdirectories(&day, |name| TickSchema::from_name(name).is_some())? {
            for entry in fs::read_dir(&schema).with_context("list", &schema)? {
                let entry = entry.with_context("list", &schema)?;
                let name = entry.file_name();
                let number = name.to_str().and_then(|n| n.strip_suffix(".blocks"));
                if number.and_then(|n| u64::from_str_radix(n, 16).ok()).is_some_and(|n| n > generation) {
                    remove(&entry.path())?;
                }
            }
            remove_empty(&schema)?;
        }
        remove_empty(&day)?;
    }
    Ok(())
}

fn subdirectories(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<Vec<std::path::PathBuf>> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(dir).with_context("list", dir)? {
        let entry = entry.with_context("list", dir)?;
        if entry.file_name().to_str().is_some_and(&ours) && entry.path().is_dir() {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context("remove", path),
        _ => Ok(()),
    }
}

fn remove_empty(dir: &Path) -> Result<()> {
    match fs::remove_dir(dir) {
        Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(e).with_context("remove", dir)
        }
        _ => Ok(()),
    }
}
