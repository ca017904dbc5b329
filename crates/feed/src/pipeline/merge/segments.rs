//! The merge of segments: the tapes of a run's segments become one tape while they are written.
//!
//! Order is that of [`crate::run()`]: running maximum of event or receive time, ties by segment, a bounded wait for a quiet
//! one, `late` after it. A user's message has no time: it is at the running maximum of its segment. The number of units of
//! each segment on the tape says where a restart resumes, so the tape itself records the decisions of the merge;
//! `placed_units` counts those without a source.

use crate::account::{TapeAccount, refuse_merge, uint};
use crate::block::NO_TS;
use crate::error::Error;
use crate::pipeline::consolidate::{RunOutcome, StageTimings};
use crate::pipeline::durability::FlushFailures;
use crate::pipeline::lead::{ClockLeadLimits, known_time};
use crate::pipeline::merge::input::{InputTape, TapeReading};
use crate::pipeline::merge::output::{MergeKind, MergedTape};
use crate::pipeline::merge::placed_units::{PlacedUnits, SegmentMergeProgress, UnitLog};
use crate::pipeline::merge::state::{InputProgress, MergeRecord};
use crate::pipeline::merge::{believed_max, time_ceiling};
use crate::quarantine::RawLog;
use crate::sources::link::{FeedAvailability, MergeWait};
use crate::sources::stats::{FeedStats, RunMonitor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_model::message::KIND_MESSAGE;
use unitape_model::{Event, EventField, EventKind, TapeGap, UnixNanos, flags, frames};
use unitape_ring::farm::FarmEnding;
use unitape_tape::{ReadOptions, TapeId, Writer, WriterOptions as TapeOptions};

/// A segment of a merge.
#[derive(Clone, Debug)]
pub struct MergeSegment {
    /// Name of its feed.
    pub name: String,
    /// The directory of its tape; it may appear later.
    pub dir: PathBuf,
    /// Set when no more frames will be written to its tape.
    pub ended: Arc<AtomicBool>,
    /// Up with that when it ended because its process stopped: a later run may bring more.
    pub stopped: Arc<AtomicBool>,
    /// The time that the merge waits for it, if it differs from the merge's.
    pub wait: Option<MergeWait>,
}

/// The options of a merge.
#[derive(Debug)]
pub struct MergeOptions {
    /// The segments; ties in time go to the earlier one.
    pub segments: Vec<MergeSegment>,
    /// The writer's options.
    pub tape: TapeOptions,
    /// The time after its receipt that a unit waits for an idle segment; `None`: until it has ended.
    pub wait: Option<Duration>,
    /// The bound on an event's lead over the other segments if no receipt is recorded; an event that leads its
    /// receipt was flagged in its segment.
    pub lead: ClockLeadLimits,
    /// Receive times, where there are any, and not event times say the order.
    pub by_receive_time: bool,
    /// Figures, for segments of these names; `placed_units` of them reports that a tape has more.
    pub stats: Arc<RunMonitor>,
    /// It looks again and again instead of sleeping.
    pub spin: bool,
}

/// Merges the segments onto the tape in `dir`, until all have ended.
///
/// # Errors
/// Fails if a segment's tape cannot be read or is not what the tape has of it, or the tape refuses.
pub fn merge(dir: &Path, options: MergeOptions) -> Result<RunOutcome, Error> {
    refuse_merge(dir)?;
    let id = crate::pipeline::consolidate::id_of(dir)?.unwrap_or_else(|| tape_id(&options.segments));
    let (writer, _) = Writer::open(dir, id, options.tape)?;
    let PlacedUnits { account, mut by_feed, log } = PlacedUnits::read(dir, writer.end())?;
    let message_count = account.summary().messages;
    let placed = account.placed_max;
    let mut placed_max = UnixNanos(if options.by_receive_time { placed.1 } else { placed.0 });
    let lead = if options.by_receive_time { ClockLeadLimits::UNBOUNDED } else { options.lead };
    let placed_before = placed_max;
    let segments = options.segments.into_iter().map(|segment| {
        let tape_progress = by_feed.remove(&segment.name).unwrap_or_default();
        MergeInput::new(segment, tape_progress, options.by_receive_time)
    });
    let mut segments: Vec<_> = segments.collect();
    let state =
        MergeRecord { progress: vec![InputProgress::default(); segments.len()], ..MergeRecord::default() };
    let raw = RawLog::open(dir, account.raw_bytes)?;
    let mut output = SegmentOutput {
        tape: MergedTape::new(MergeKind::Segments, account, state, writer, raw),
        log,
        flushes: FlushFailures::default(),
    };
    let began = Instant::now();
    loop {
        let (mut some_empty, mut open, mut for_later) = (false, false, false);
        for (i, s) in segments.iter_mut().enumerate() {
            s.look_result = s.next_unit_head(placed_before)?;
            if s.waited_since.is_some() && s.look_result != NextMergeUnit::Nothing {
                s.note_waited(false, began.elapsed().as_nanos() as i64, &options.stats.feeds[i]);
            }
            match s.look_result {
                NextMergeUnit::Unit(_) => open = true,
                NextMergeUnit::Nothing => (some_empty, open) = (true, true),
                NextMergeUnit::End => {
                    let unbounded = s.segment.wait.unwrap_or(options.wait.into()) == MergeWait::Unbounded;
                    for_later |= unbounded && s.segment.stopped.load(Ordering::Relaxed);
                }
            }
        }
        let bound = time_ceiling(&lead, placed_max);
        let mut latest = None;
        let mut next_segment: Option<(UnixNanos, usize)> = None;
        for i in 0..segments.len() {
            let NextMergeUnit::Unit(mut ts) = segments[i].look_result else { continue };
            if ts > bound && segments[i].may_lead(&lead) {
                let readings = segments.iter().filter_map(|s| s.tape_reading.as_ref());
                let latest = *latest.get_or_insert_with(|| believed_max(readings, &lead, placed_max));
                ts = segments[i].believed_time(&lead, latest);
            }
            if next_segment.is_none_or(|(t, _)| ts < t) {
                next_segment = Some((ts, i));
            }
        }
        if !open {
            break;
        }
        if for_later {
            // It may bring more in a later run, which places what waits for it.
            if segments.iter().all(|s| s.segment.ended.load(Ordering::Acquire)) {
                let segment_stats = segments.iter().zip(&options.stats.feeds);
                for (_, stats) in
                    segment_stats.filter(|(s, _)| matches!(s.look_result, NextMergeUnit::Unit(_)))
                {
                    stats.link.note(LEFT.to_owned());
                }
                break;
            }
            options.stats.placed.wait(IDLE);
            continue;
        }
        if some_empty {
            let now_ns = began.elapsed().as_nanos() as i64;
            let came_ns = next_segment.map(|(_, i)| segments[i].came_ns(now_ns));
            let mut until_ns = None;
            for (i, s) in
                segments.iter_mut().enumerate().filter(|(_, s)| s.look_result == NextMergeUnit::Nothing)
            {
                let link = &options.stats.feeds[i].link;
                s.availability.note_empty(now_ns, link.is_failing(), link.is_waiting());
                let wait = s.segment.wait.unwrap_or(options.wait.into());
                let its_until_ns = came_ns.and_then(|came_ns| s.availability.waits_until(came_ns, wait));
                s.note_waited(its_until_ns.is_some(), now_ns, &options.stats.feeds[i]);
                until_ns = until_ns.max(its_until_ns);
            }
            if next_segment.is_none() || until_ns.is_some() {
                segments
                    .iter_mut()
                    .filter(|s| s.next_unit.is_some())
                    .for_each(|s| _ = s.held_since.get_or_insert(now_ns));
                let ns_left = until_ns.map_or(i64::MAX, |until_ns| until_ns.saturating_sub(now_ns));
                match options.spin {
                    true => std::hint::spin_loop(),
                    false => {
                        _ = options.stats.placed.wait(IDLE.min(Duration::from_nanos(ns_left.max(1) as u64)))
                    }
                }
                continue;
            }
        }
        let Some((_, i)) = next_segment else { continue };
        let s = &mut segments[i];
        if s.held_since.is_some() {
            s.note_held(began.elapsed().as_nanos() as i64, &options.stats.feeds[i]);
        }
        placed_max = output.place_unit(s, i, placed_max, &options.stats.feeds[i])?;
    }
    let SegmentOutput { tape, .. } = output;
    tape.raw_log.sync()?;
    tape.writer.close()?;
    let summary = TapeAccount::load(dir)?.summary();
    let fresh_messages = summary.messages.saturating_sub(message_count);
    Ok(RunOutcome {
        fresh_messages,
        summary,
        ending: FarmEnding::EndOfInput,
        turns: StageTimings::default(),
        stopped: false,
        notes: Vec::new(),
    })
}

/// Said of a feed whose messages wait for another one at the end.
const LEFT: &str =
    "messages wait for other feeds; they are on the tape of its segment, and the next run places them";

/// The sleep of a merge if no work is reported.
const IDLE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextMergeUnit {
    Unit(UnixNanos),
    Nothing,
    End,
}

/// The current unit of a segment, beside what its [`TapeReading`] knows of it.
#[derive(Clone, Copy, Debug)]
struct SegmentUnit {
    /// Its events; a user's message is none.
    events: u64,
    /// Whether it has bookkeeping alone.
    only_meta: bool,
    /// Whether the account of a source counts it on the tape.
    has_source: bool,
    /// Its time leads by more than it may: it is merged by that of its segment.
    is_ahead: bool,
    received_at: Option<UnixNanos>,
    /// The receive time of its first event, or the event's time; if the merge is by receive time.
    ts_recv: Option<UnixNanos>,
}

/// A segment as the merge has it.
#[derive(Debug)]
struct MergeInput {
    segment: MergeSegment,
    tape_progress: SegmentMergeProgress,
    by_receive_time: bool,
    /// Its tape, once that exists.
    tape_reading: Option<TapeReading>,
    next_unit: Option<SegmentUnit>,
    /// The result of the last look.
    look_result: NextMergeUnit,
    availability: FeedAvailability,
    /// When the current unit came, on the merge's clock; when that is first asked.
    arrival_ns: Option<i64>,
    /// Since when it has been held for other segments, and since when they wait for it.
    held_since: Option<i64>,
    waited_since: Option<i64>,
}

impl MergeInput {
    fn new(segment: MergeSegment, tape_progress: SegmentMergeProgress, by_receive_time: bool) -> Self {
        Self {
            segment,
            tape_progress,
            by_receive_time,
            tape_reading: None,
            next_unit: None,
            look_result: NextMergeUnit::Nothing,
            availability: FeedAvailability::default(),
            arrival_ns: None,
            held_since: None,
            waited_since: None,
        }
    }

    /// Returns the time by which the next unit is merged.
    fn next_unit_head(&mut self, placed_before: UnixNanos) -> Result<NextMergeUnit, Error> {
        loop {
            if self.next_unit.is_some()
                && let Some(unit) = self.tape_reading.as_ref().and_then(|reading| reading.unit)
            {
                return Ok(NextMergeUnit::Unit(UnixNanos(unit.ts)));
            }
            // Acquire: pairs with the Release of who saw its writer end; all it committed is seen.
            let has_ended = self.segment.ended.load(Ordering::Acquire);
            let Some(unit) = self.next_unit()? else {
                return Ok(if has_ended { NextMergeUnit::End } else { NextMergeUnit::Nothing });
            };
            if self.is_on_tape(unit)? {
                self.skip_unit(placed_before)?;
            }
        }
    }

    /// Returns whether the current unit is on the tape from an earlier merge.
    fn is_on_tape(&mut self, unit: SegmentUnit) -> Result<bool, Error> {
        let SegmentMergeProgress { units, without_source, .. } = &mut self.tape_progress;
        let (own, other) = if unit.has_source { (units, without_source) } else { (without_source, units) };
        if *own == 0 && *other > 0 {
            return Err(foreign_tape(&self.segment));
        }
        let is_on_tape = *own > 0;
        *own = own.saturating_sub(1);
        Ok(is_on_tape)
    }

    /// Skips the current unit, which is on the tape.
    fn skip_unit(&mut self, placed_before: UnixNanos) -> Result<(), Error> {
        self.next_unit = None;
        let Some(reading) = &mut self.tape_reading else { return Ok(()) };
        let mut sources = Vec::new();
        for (_, _, frame) in frames(reading.unit_bytes()) {
            if let Some(event) = Event::new(frame).filter(|e| e.kind() == EventKind::Source) {
                let segment_id = uint(&event, EventField::Index).unwrap_or(0) as u32;
                let id = self.tape_progress.sources.pop_front().ok_or_else(|| foreign_tape(&self.segment))?;
                sources.push((segment_id, id));
            }
        }
        reading.sources.extend(sources);
        // A time later than all believed times was not believed.
        if reading.unit.is_some_and(|unit| unit.ts > placed_before.0) {
            reading.disbelieve();
        }
        pass_unit(reading)
    }

    /// Returns when the current unit arrived, on the merge's clock. The first call takes the present time, less the
    /// time since its receipt.
    fn came_ns(&mut self, now_ns: i64) -> i64 {
        let received_at = self.next_unit.and_then(|unit| unit.received_at);
        let age_ns = received_at.map_or(0, crate::sources::receive::age_ns);
        *self.arrival_ns.get_or_insert(now_ns.saturating_sub(age_ns))
    }

    fn note_waited(&mut self, waited_for: bool, now_ns: i64, stats: &FeedStats) {
        // Up to now: a wait that continues counts as well.
        if let Some(since) = self.waited_since.take() {
            stats.note_waited(now_ns.saturating_sub(since));
        }
        self.waited_since = waited_for.then_some(now_ns);
    }

    fn note_held(&mut self, now_ns: i64, stats: &FeedStats) {
        if let Some(since) = self.held_since.take() {
            stats.note_held(now_ns.saturating_sub(since));
        }
    }

    /// Returns whether the time of the current unit leads its receipt by more than it may, or has no receipt.
    fn may_lead(&self, lead: &ClockLeadLimits) -> bool {
        let timed = self.tape_reading.as_ref().and_then(|reading| reading.unit?.timed);
        let Some(ts) = timed.and_then(|timed| known_time(timed.ts)) else { return false };
        // An event that its segment has held against its receipt does not lead that; a receipt that the data name may.
        let received = self.next_unit.and_then(|unit| unit.received_at).and_then(known_time);
        received.is_none_or(|received| ts > lead.after_receipt(received))
    }

    /// Holds the current unit against the latest credible time; returns the time by which it is merged.
    fn believed_time(&mut self, lead: &ClockLeadLimits, latest: UnixNanos) -> UnixNanos {
        let (Some(reading), Some(unit)) = (&mut self.tape_reading, &mut self.next_unit) else { return NO_TS };
        if reading.leads(lead, latest) {
            reading.disbelieve();
            unit.is_ahead = true;
        }
        reading.unit.map_or(NO_TS, |unit| UnixNanos(unit.ts))
    }

    /// Reads the next unit; `None` when it is not there yet.
    fn next_unit(&mut self) -> Result<Option<SegmentUnit>, Error> {
        let reading = match &mut self.tape_reading {
            Some(reading) => reading,
            None if !self.segment.dir.join("tape.toml").exists() => return Ok(None),
            None => {
                let tape = InputTape { name: self.segment.name.clone(), dir: self.segment.dir.clone() };
                let mut reading = TapeReading::open(tape, InputProgress::default(), ReadOptions::default())?;
                reading.set_target(u64::MAX);
                reading.leave_out_records();
                self.tape_reading.insert(reading)
            }
        };
        (self.next_unit, self.arrival_ns) = (None, None);
        while reading.gap.is_none() && reading.look()?.is_some() {
            let Some(unit) = segment_unit(reading.unit_bytes(), self.by_receive_time) else {
                // It defines names alone: they come along with their first use.
                pass_unit(reading)?;
                continue;
            };
            if let Some(ts) = unit.ts_recv
                && let Some(in_hand) = &mut reading.unit
            {
                let running_max = reading.progress.running_max.unwrap_or(NO_TS.0);
                (in_hand.ts, in_hand.has_time, in_hand.timed) = (running_max.max(ts.0), true, None);
            }
            self.availability.note_bytes(false);
            self.next_unit = Some(unit);
            return Ok(self.next_unit);
        }
        if reading.gap.is_some() {
            let reason = "the beginning of its tape is gone, and a merge needs all of it; use a new tape";
            let origin = format!("segment {}", self.segment.name);
            return Err(Error::Config { origin, reason: reason.to_owned() });
        }
        Ok(None)
    }
}

fn foreign_tape(segment: &MergeSegment) -> Error {
    Error::Config {
        origin: format!("segment {}", segment.name),
        reason: "its tape is not the one that was merged before; use a new tape".to_owned(),
    }
}

/// Passes the current unit, whose definitions of names and sources are learned.
fn pass_unit(reading: &mut TapeReading) -> Result<(), Error> {
    let (unit_frames, unit) = (reading.take_frames(), reading.unit);
    let mut learned = Ok(());
    if let Some(unit) = unit {
        for (offset, _, frame) in frames(&unit_frames[unit.start..unit.end]) {
            let definition = Event::new(frame)
                .filter(|event| matches!(event.kind(), EventKind::Define | EventKind::Source));
            if let Some(Err(fault)) = definition.map(|event| reading.names.admit_event(&event)) {
                learned = Err(reading.damage_at(unit.start + offset, &fault));
                break;
            }
        }
    }
    reading.put_back(unit_frames);
    reading.advance();
    learned
}

/// Describes a unit; `None` if it defines names alone.
fn segment_unit(unit: &[u8], by_receive_time: bool) -> Option<SegmentUnit> {
    let (mut events, mut only_meta, mut last) = (0, true, None);
    let (mut is_ahead, mut received_at, mut ts_recv) = (false, None, None);
    for (_, header, frame) in frames(unit).filter(|(_, header, _)| header.kind() != EventKind::Define as u8) {
        last = Some(frame);
        if header.is_meta() {
            continue;
        }
        let is_first = std::mem::replace(&mut only_meta, false);
        if header.kind() == KIND_MESSAGE {
            continue;
        }
        events += 1;
        if is_first
            && header.kind() != EventKind::Quarantine as u8
            && let Some(event) = Event::new(frame)
        {
            received_at = event.ts_recv();
            ts_recv = by_receive_time.then(|| received_at.unwrap_or(event.ts_event()));
            is_ahead = !by_receive_time && header.flags() & flags::CLOCK_AHEAD != 0;
        }
    }
    let has_source = last.map(|frame| {
        Event::new(frame).is_some_and(|event| {
            let is_of_source = event.kind() == EventKind::Source || event.source() != 0;
            is_of_source && TapeGap::from_event(&event).is_none()
        })
    })?;
    Some(SegmentUnit { events, only_meta, has_source, is_ahead, received_at, ts_recv })
}

/// The tape that is written, and the records of units that no account counts.
struct SegmentOutput {
    tape: MergedTape,
    log: UnitLog,
    flushes: FlushFailures,
}

/// What was placed at once.
#[derive(Clone, Copy, Debug, Default)]
struct PlacedCounts {
    events: u64,
    messages: u64,
    late: u64,
    clock_ahead: u64,
    /// Units without a source.
    without_source: u64,
}

impl SegmentOutput {
    /// Appends the current unit of segment number `index`; returns the latest time that is placed. Further units without
    /// a source that have the same time go with it, so that they need one record.
    fn place_unit(
        &mut self,
        s: &mut MergeInput,
        index: usize,
        mut placed_max: UnixNanos,
        stats: &FeedStats,
    ) -> Result<UnixNanos, Error> {
        let mut placed_counts = PlacedCounts::default();
        while let (Some(reading), Some(unit)) = (&mut s.tape_reading, s.next_unit.take()) {
            let Some(in_hand) = reading.unit else { break };
            let late = in_hand.has_time && in_hand.ts < placed_max.0;
            placed_max = placed_max.max(UnixNanos(in_hand.ts));
            let ahead_flag = if unit.is_ahead { flags::CLOCK_AHEAD } else { 0 };
            self.tape.place_unit(reading, index, ahead_flag | if late { flags::LATE } else { 0 })?;
            placed_counts.events += unit.events;
            placed_counts.messages += u64::from(!unit.only_meta);
            placed_counts.late += u64::from(late);
            placed_counts.clock_ahead += u64::from(unit.is_ahead);
            if unit.has_source {
                break;
            }
            placed_counts.without_source += 1;
            if self.tape.is_full() {
                break;
            }
            let next_unit = s.next_unit()?.filter(|next| !next.has_source);
            let next_ts = s.tape_reading.as_ref().and_then(|reading| reading.unit).map(|unit| unit.ts);
            if next_unit.is_none() || next_ts != Some(in_hand.ts) {
                break;
            }
        }
        self.append_batch(s, placed_counts.without_source)?;
        stats.events.fetch_add(placed_counts.events, Ordering::Relaxed);
        stats.messages.fetch_add(placed_counts.messages, Ordering::Relaxed);
        stats.late.fetch_add(placed_counts.late, Ordering::Relaxed);
        stats.clock_ahead.fetch_add(placed_counts.clock_ahead, Ordering::Relaxed);
        let running_max = s.tape_reading.as_ref().and_then(|reading| reading.progress.running_max);
        stats.ts_max.store(running_max.unwrap_or(NO_TS.0), Ordering::Relaxed);
        Ok(placed_max)
    }

    /// Puts the batch onto the tape, after the record of units without a source.
    fn append_batch(&mut self, s: &MergeInput, without_source: u64) -> Result<(), Error> {
        let tape = &mut self.tape;
        if tape.batch.is_empty() {
            return Ok(());
        }
        if without_source > 0 {
            self.log.append(tape.writer.end(), &s.segment.name, without_source)?;
        }
        while let Err(e) = tape.writer.append(&tape.batch) {
            if !self.flushes.may_retry_append(&e, &tape.writer, s.segment.ended.load(Ordering::Relaxed)) {
                return Err(e.into());
            }
        }
        tape.batch.clear();
        Ok(())
    }
}

fn tape_id(segments: &[MergeSegment]) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    for s in segments {
        hasher.update(&(s.name.len() as u64).to_le_bytes());
        hasher.update(s.name.as_bytes());
    }
    TapeId(u128::from_le_bytes(hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}
