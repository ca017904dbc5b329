//! The merge of tapes: what is on them now becomes one tape.
//!
//! Order: a unit has the time of its first event, or the running maximum of its tape where that is greater. Quarantine, a
//! user's message, bookkeeping, and an event whose time is not believed (`clock_ahead`) appear at the running maximum. Ties
//! go to the earlier tape. So the order of each tape stays, and no unit waits for another.
//!
//! The tape of a lone feed has nothing to hold an event's time against. The merge has: an event that leads what is placed
//! and what the other tapes have at hand by more than it may is flagged as `clock_ahead` here, as a merge of feeds does it.
//! That is decided from the units at hand alone, when the unit is placed, so a merge that was killed decides it again.
//!
//! What a tape lacks, because retention removed it or it is damaged, is an event on the merge: see `gaps`.
//!
//! A merge reads each tape up to where it ended when the merge began. A later merge of the same tapes continues there:
//! what came since has `late` where its time is before one that is placed. `state` says how far each tape is placed.

use crate::account::retention_checkpoint;
use crate::error::Error;
use crate::pipeline::consolidate::{RunOutcome, RunProgress, StageTimings, id_of};
use crate::pipeline::lead::ClockLeadLimits;
use crate::pipeline::merge::input::{InputTape, RemovedPart, TapeReading, changed};
use crate::pipeline::merge::output::{MergeKind, MergedTape};
use crate::pipeline::merge::recorder::{MergeRecorder, WrittenFrames};
use crate::pipeline::merge::state::{
    GapRecord, InputIdentity, InputProgress, MergeRecord, MergeStateLog, MergeStateReader,
};
use crate::pipeline::merge::{believed_max, same_tape, state, time_ceiling};
use crate::quarantine::RawLog;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_model::{Position, UnixNanos, flags};
use unitape_ring::farm::FarmEnding;
use unitape_tape::{
    DamagedParts, LostDefinitions, ReadOptions, Reader, StartPosition, TapeId, TapeManifest, UnverifiedBytes,
    Writer, WriterOptions as TapeOptions,
};

/// The options of a merge of tapes.
#[derive(Debug)]
pub struct TapeMergeOptions<'a> {
    /// The tapes; ties in time go to the earlier one.
    pub inputs: Vec<InputTape>,
    /// The writer's options.
    pub tape: TapeOptions,
    /// Whether the inputs are compared with their checksums, and the consequence of damage.
    pub read: ReadOptions,
    /// The bound on an event's lead over the other tapes and the placed events.
    pub lead: ClockLeadLimits,
    /// When up, the merge ends after the units at hand; a later one resumes from there.
    pub stop: Option<&'a AtomicBool>,
    /// Progress so far, for progress bars.
    pub progress: Arc<RunProgress>,
}

/// The result of a merge of tapes.
#[derive(Debug)]
pub struct TapeMergeOutcome {
    /// The account of the whole tape.
    pub run: RunOutcome,
    /// Parts of the tapes that retention removed before they were placed, in this merge and earlier ones.
    pub gaps: Vec<InputGap>,
    /// Parts of the tapes that were passed over because they are damaged, in this merge and earlier ones.
    pub damaged: Vec<InputGap>,
    /// Parts of the tapes that a repair accepted without a check, and that are in the merge.
    pub accepted: Vec<InputGap>,
    /// Messages of users on the tape.
    pub user_messages: u64,
    /// What was passed over in each tape.
    pub losses: Vec<InputLosses>,
}

/// A part of a tape that is not in the merge.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputGap {
    /// Name of the tape.
    pub tape: String,
    /// Position at which it begins.
    pub from: u64,
    /// Position at which it ends.
    pub to: u64,
}

/// What a merge passed over in a tape, or could not check.
#[derive(Clone, Debug)]
pub struct InputLosses {
    /// Damaged parts.
    pub damaged: DamagedParts,
    /// Bytes without a check.
    pub unverified: UnverifiedBytes,
}

/// Merges the tapes onto the tape in `dir`: makes it, or resumes where an earlier merge ended. Equal tapes give equal bytes,
/// however often a merge is killed.
///
/// # Errors
/// Fails if a tape cannot be read or is not the one that was merged before, or the tape refuses. What is refused at the start
/// changes nothing.
pub fn merge_tapes(dir: &Path, options: TapeMergeOptions<'_>) -> Result<TapeMergeOutcome, Error> {
    let identities = identify_tapes(dir, &options.inputs)?;
    let state_reader = MergeStateReader::open(dir)?;
    let existing = id_of(dir)?;
    match &state_reader {
        Some(state_reader) => check_same_inputs(state_reader.first(), &identities)?,
        None if existing.is_some() && Reader::open(dir, StartPosition::Oldest)?.next()?.is_some() => {
            return Err(other_tape(dir));
        }
        None => {}
    }
    // All is looked at before anything is written.
    let ends =
        options.inputs.iter().map(|input| end_of(input, options.read)).collect::<Result<Vec<_>, _>>()?;
    if let Some(state_reader) = MergeStateReader::open(dir)? {
        let state = state_reader.state_at(u64::MAX)?.ok_or_else(|| other_tape(dir))?.merge_state;
        for (input, progress) in options.inputs.iter().zip(&state.progress) {
            TapeReading::open(input.clone(), *progress, options.read)?;
        }
    }
    let id = existing.unwrap_or_else(|| tape_id(&identities));
    let tape = TapeOptions { in_bulk: true, ..options.tape.clone() };
    let (writer, _) = Writer::open(dir, id, tape)?;
    // Only now is nobody else writing.
    let (state, log) = match MergeStateReader::open(dir)? {
        Some(state_reader) => {
            check_same_inputs(state_reader.first(), &identities)?;
            let stored_state = state_reader.state_at(writer.end().0)?.ok_or_else(|| other_tape(dir))?;
            (stored_state.merge_state, MergeStateLog::resume(dir, stored_state.bytes)?)
        }
        None if writer.end() > Position(0) => return Err(other_tape(dir)),
        None => {
            let initial_record = MergeRecord {
                shared: shared_feeds(&options.inputs),
                targets: ends.clone(),
                progress: vec![InputProgress::default(); identities.len()],
                inputs: identities,
                ..MergeRecord::default()
            };
            let log = MergeStateLog::create(dir, &initial_record)?;
            (initial_record, log)
        }
    };
    let account = retention_checkpoint::load_up_to(dir, state.account.clone(), Position(state.end))?;
    retention_checkpoint::refuse_partial(&account)?;
    account.refuse_mismatch()?;
    let message_count = account.summary().messages + state.user_messages;
    let has_written = (writer.end().0 > state.end)
        .then(|| Reader::open(dir, StartPosition::At(Position(state.end))))
        .transpose()?
        .map(|reader| WrittenFrames { reader, end_position: writer.end() });
    // What the tape refers to is not touched before the frames are compared.
    let raw = match &has_written {
        Some(_) => RawLog::open_held(dir, state.raw)?,
        None => RawLog::open(dir, state.raw)?,
    };
    let mut recorder = MergeRecorder { log, written_frames: has_written };
    let state = MergeRecord { account: None, ..state };
    let mut tape = MergedTape::new(MergeKind::Tapes, account, state, writer, raw);
    let mut losses = BTreeMap::new();
    let mut notes = LeadNotes::default();
    let mut was_stopped = false;
    loop {
        let mut inputs = open_inputs(&options, &tape.merge_state)?;
        let bytes_left = inputs
            .iter()
            .zip(&tape.merge_state.targets)
            .map(|(i, to)| to.saturating_sub(i.progress.position));
        options.progress.bytes_total.fetch_add(bytes_left.sum(), Ordering::Relaxed);
        let mut place_result = place_all(&mut tape, &mut recorder, &mut inputs, &options, &mut notes);
        // A merge that was stopped meets what is before the units in hand again.
        if matches!(place_result, Ok(false))
            && let Err(error) = tape.note_last_losses(&mut inputs)
        {
            place_result = Err(error);
        }
        note_last(&mut tape, &mut inputs);
        let flushed = recorder.flush(&mut tape);
        for (index, input) in inputs.iter().enumerate() {
            let (damaged, unverified) =
                (input.reader().damaged().clone(), input.reader().unverified().clone());
            losses.insert(index, InputLosses { damaged, unverified });
        }
        let outcome = match (place_result, flushed) {
            (Ok(ended), Ok(())) => ended,
            (Err(error), _) | (_, Err(error)) => {
                // What was placed before it is a whole tape.
                tape.raw_log.sync()?;
                tape.writer.close()?;
                return Err(error);
            }
        };
        was_stopped |= outcome;
        if was_stopped {
            break;
        }
        recorder.refuse_rest()?;
        if tape.merge_state.targets == ends {
            break;
        }
        // An earlier merge was to end elsewhere: it is complete now, and the tapes have more.
        tape.new_records.targets.clone_from(&ends);
        let tape_end = tape.writer.end().0;
        recorder.record(&mut tape, tape_end)?;
    }
    let summary = tape.account.summary();
    let parts = |earlier: &[GapRecord], fresh: &[GapRecord]| {
        let mut parts: Vec<_> = earlier.iter().chain(fresh).collect();
        parts.sort_by_key(|part| (part.input, part.from));
        let tape = |part: &GapRecord| options.inputs[part.input].name.clone();
        parts.into_iter().map(|part| InputGap { tape: tape(part), from: part.from, to: part.to }).collect()
    };
    let gaps = parts(&tape.merge_state.gaps, &tape.new_records.gaps);
    let damaged = parts(&tape.merge_state.damaged, &tape.new_records.damaged);
    let accepted = parts(&tape.merge_state.accepted, &tape.new_records.accepted);
    let user_messages = tape.merge_state.user_messages;
    recorder.close(tape, dir)?;
    let run = RunOutcome {
        fresh_messages: (summary.messages + user_messages).saturating_sub(message_count),
        summary,
        ending: if was_stopped { FarmEnding::Stopped } else { FarmEnding::EndOfInput },
        turns: StageTimings::default(),
        stopped: was_stopped,
        notes: notes.0.into_values().collect(),
    };
    Ok(TapeMergeOutcome {
        run,
        gaps,
        damaged,
        accepted,
        user_messages,
        losses: losses.into_values().collect(),
    })
}

/// Places all units up to the targets; returns whether the merge was stopped.
fn place_all(
    tape: &mut MergedTape,
    recorder: &mut MergeRecorder,
    inputs: &mut [TapeReading],
    options: &TapeMergeOptions<'_>,
    notes: &mut LeadNotes,
) -> Result<bool, Error> {
    // A tape alone has nothing that its times could lead.
    let lead = if inputs.len() > 1 { options.lead } else { ClockLeadLimits::UNBOUNDED };
    let mut placed_max =
        inputs.iter().filter_map(|input| input.progress.running_max).max().unwrap_or(i64::MIN);
    let mut keys = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter_mut().enumerate() {
        keys.push(unit_key(input, index)?);
    }
    loop {
        // The next one, and the one that it must come before to be followed by its tape's next.
        let (mut first, mut second) = (END, END);
        let mut bound = time_ceiling(&lead, UnixNanos(placed_max)).0;
        let mut latest = None;
        for key in &keys {
            let mut key = *key;
            if key.ts > bound && key != END {
                let latest =
                    *latest.get_or_insert_with(|| believed_max(inputs.iter(), &lead, UnixNanos(placed_max)));
                let input = &inputs[key.index];
                if input.leads(&lead, latest) {
                    (key.ts, key.is_ahead) = (input.progress.running_max.unwrap_or(i64::MIN), true);
                }
            }
            if key < first {
                (first, second) = (key, first);
            } else if key < second {
                second = key;
            }
        }
        if first == END {
            return Ok(false);
        }
        let index = first.index;
        let mut next_input = first;
        loop {
            let input = &mut inputs[index];
            if next_input.is_ahead {
                notes.note_lead(input, index);
                input.disbelieve();
            }
            let unit = input.unit.expect("a unit has a key");
            let late = if unit.has_time && unit.ts < placed_max { flags::LATE } else { 0 };
            let ahead_flag = if next_input.is_ahead { flags::CLOCK_AHEAD } else { 0 };
            tape.place_unit(input, index, late | ahead_flag)?;
            placed_max = placed_max.max(unit.ts);
            bound = bound.max(time_ceiling(&lead, UnixNanos(placed_max)).0);
            if tape.is_full() {
                note_last(tape, inputs);
                recorder.flush(tape)?;
                let placed_position: u64 = tape.merge_state.progress.iter().map(|at| at.position).sum();
                options.progress.bytes.store(placed_position, Ordering::Relaxed);
                if options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Ok(true);
                }
            }
            next_input = unit_key(&mut inputs[index], index)?;
            // A unit that may lead is compared with the other tapes again after each step.
            if next_input >= second || next_input.ts > bound || latest.is_some() {
                break;
            }
        }
        keys[index] = next_input;
    }
}

/// Notes the last frame of each input for the next record.
fn note_last(tape: &mut MergedTape, inputs: &mut [TapeReading]) {
    for (input, progress) in inputs.iter_mut().zip(&mut tape.merge_state.progress) {
        input.note_last();
        progress.last = input.progress.last;
    }
}

/// The place of a unit in the order of the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnitKey {
    ts: i64,
    index: usize,
    /// Whether its time is not credible.
    is_ahead: bool,
}

/// After all units.
const END: UnitKey = UnitKey { ts: i64::MAX, index: usize::MAX, is_ahead: false };

#[inline]
fn unit_key(input: &mut TapeReading, index: usize) -> Result<UnitKey, Error> {
    Ok(input.look()?.map_or(END, |unit| UnitKey { ts: unit.ts, index, is_ahead: false }))
}

/// The first event of each tape that leads by more than it may, in words.
#[derive(Debug, Default)]
struct LeadNotes(BTreeMap<usize, String>);

impl LeadNotes {
    #[cold]
    fn note_lead(&mut self, input: &TapeReading, index: usize) {
        let Some(timed) = input.unit.and_then(|unit| unit.timed) else { return };
        let (name, position) = (&input.tape.name, input.progress.position);
        self.0.entry(index).or_insert_with(|| {
            format!(
                "tape {name}: the event after position {position} has the time {} (ns since 1970), which leads by more than \
                 it may. It is flagged clock_ahead and does not move the merge; so are further ones, and the account counts \
                 them",
                timed.ts.0
            )
        });
    }
}

/// Opens the inputs where their placed part ends.
fn open_inputs(options: &TapeMergeOptions<'_>, state: &MergeRecord) -> Result<Vec<TapeReading>, Error> {
    let mut inputs = Vec::new();
    for ((tape, progress), target) in options.inputs.iter().zip(&state.progress).zip(&state.targets) {
        let mut input = TapeReading::open(tape.clone(), *progress, options.read)?;
        input.set_target(*target);
        let index = inputs.len();
        let input_sources = state.sources.iter().filter(|source| source.input == index);
        input.sources.extend(input_sources.map(|source| (source.own, source.id)));
        let known_parts = state.accepted.iter().filter(|part| part.input == index);
        input.forget_accepted(
            &known_parts.map(|part| RemovedPart { from: part.from, to: part.to }).collect::<Vec<_>>(),
        );
        inputs.push(input);
    }
    Ok(inputs)
}

/// Identifies the tapes by name and id.
fn identify_tapes(dir: &Path, inputs: &[InputTape]) -> Result<Vec<InputIdentity>, Error> {
    let usage = |tape: &InputTape, reason: String| {
        Err(Error::Config { origin: format!("--tape-in {}={}", tape.name, tape.dir.display()), reason })
    };
    if dir.is_file() {
        let reason = "it is a file, and a tape is a directory".to_owned();
        return Err(Error::Config { origin: dir.display().to_string(), reason });
    }
    let merge_id = id_of(dir)?.map(|id| id.to_string());
    let merge_paths = absolute_paths(dir);
    let mut identities = Vec::<InputIdentity>::new();
    for (number, tape) in inputs.iter().enumerate() {
        if tape.dir.is_file() {
            let reason = "it is a file, and a tape is a directory".to_owned();
            return usage(tape, reason);
        }
        let id = TapeManifest::load(&tape.dir)?.id.to_string();
        let canonical_path = tape.dir.canonicalize().ok();
        if Some(&id) == merge_id.as_ref()
            || canonical_path.is_some() && merge_paths.first() == canonical_path.as_ref()
        {
            return usage(tape, "it is the tape that the merge writes".to_owned());
        }
        if canonical_path.is_some_and(|path| merge_paths.contains(&path)) {
            return usage(tape, "the tape that the merge writes would be in it".to_owned());
        }
        if identities.iter().any(|identity| identity.name == tape.name) {
            return usage(tape, format!("two tapes have the name {}; give one another: NAME=DIR", tape.name));
        }
        for (identity, other_input) in identities.iter().zip(&inputs[..number]) {
            if identity.tape == id && same_tape::is_same(&other_input.dir, &tape.dir)? {
                return usage(tape, format!("it is the same tape as {}", identity.name));
            }
        }
        identities.push(InputIdentity { name: tape.name.clone(), tape: id });
    }
    Ok(identities)
}

/// Returns the full path of a directory that need not exist, then its parent directories, nearest first.
fn absolute_paths(dir: &Path) -> Vec<PathBuf> {
    let ancestors =
        dir.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let Some(existing) = ancestors.into_iter().find(|path| path.exists()) else { return Vec::new() };
    let Ok(canonical_path) = existing.canonicalize() else { return Vec::new() };
    let full_path = match dir.strip_prefix(existing) {
        Ok(rest) => canonical_path.join(rest),
        Err(_) => canonical_path.join(dir),
    };
    full_path.ancestors().map(Path::to_owned).collect()
}

/// Refuses other tapes than those that were merged before.
fn check_same_inputs(before: &MergeRecord, now: &[InputIdentity]) -> Result<(), Error> {
    if before.inputs.len() != now.len() {
        let reason =
            format!("the tape is a merge of {} tapes, and {} are given", before.inputs.len(), now.len());
        return Err(Error::Config { origin: "--tape-in".to_owned(), reason });
    }
    for (number, (before, now)) in before.inputs.iter().zip(now).enumerate() {
        if before.name != now.name {
            let reason = format!("tape {} of the merge is {}, not {}", number + 1, before.name, now.name);
            return Err(Error::Config { origin: "--tape-in".to_owned(), reason });
        }
        if before.tape != now.tape {
            let reason = format!("it is tape {}, and the merge has tape {}", now.tape, before.tape);
            return Err(changed(&now.name, &reason));
        }
    }
    Ok(())
}

/// Feeds that more than one of the tapes has.
fn shared_feeds(inputs: &[InputTape]) -> Vec<String> {
    let mut tapes_of = BTreeMap::<String, usize>::new();
    for input in inputs {
        let definitions = LostDefinitions::names(&input.dir);
        let mut feeds: Vec<_> = definitions.sources().map(|(_, source)| source.feed.clone()).collect();
        feeds.sort_unstable();
        feeds.dedup();
        feeds.into_iter().for_each(|feed| *tapes_of.entry(feed).or_default() += 1);
    }
    tapes_of.into_iter().filter(|(_, tapes)| *tapes > 1).map(|(feed, _)| feed).collect()
}

fn end_of(input: &InputTape, options: ReadOptions) -> Result<u64, Error> {
    Ok(Reader::open_with(&input.dir, StartPosition::End, options)?.position().0)
}

fn other_tape(dir: &Path) -> Error {
    let reason =
        format!("it is no merge of tapes, or its {} is gone or of another time; use a new tape", state::NAME);
    Error::Config { origin: dir.display().to_string(), reason }
}

/// Computes the identity of a merge; equal inputs give equal identities.
fn tape_id(inputs: &[InputIdentity]) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    for text in inputs.iter().flat_map(|input| [&input.name, &input.tape]) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    TapeId(u128::from_le_bytes(hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}
