//! The merge of segments: tapes of one feed each become one tape.
//!
//! ```text
//!  run a ─▶ tape a ─┐
//!  run b ─▶ tape b ─┼─▶ units in order of time ─▶ ids of this tape ─▶ tape
//!  run c ─▶ tape c ─┘
//! ```
//!
//! The merge copies a unit (one message with its events) unchanged. Its names and sources get ids of the tape it
//! comes onto, with the definitions right before their first use, and the raw bytes of what is in quarantine come
//! with it. Order is that of [`crate::run()`]: running maximum of event or receive time, ties by segment, a bounded
//! wait for a quiet one, `late` after it. The number of units of each segment on the tape says where a restart
//! resumes, so the tape itself records the decisions of the merge.

mod placed_units;

use crate::account::{TapeAccount, refuse_merge, uint};
use crate::block::NO_TS;
use crate::error::Error;
use crate::pipeline::consolidate::{RunOutcome, StageTimings};
use crate::pipeline::durability::FlushFailures;
use crate::pipeline::lead::{ClockLeadLimits, known_time};
use crate::quarantine::{RawLog, raw_of_event};
use crate::sources::link::{FeedAvailability, MergeWait};
use crate::sources::stats::{FeedStats, RunMonitor};
use placed_units::SegmentMergeProgress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_model::id_layout::IdLayoutTable;
use unitape_model::schema::at;
use unitape_model::{
    DefinitionTable, Dictionary, Event, EventBuilder, EventField, EventKind, FrameHeader, NameKind, Position,
    UnixNanos, flags, frames,
};
use unitape_ring::farm::FarmEnding;
use unitape_tape::{Reader, StartPosition, TapeId, Writer, WriterOptions as TapeOptions};

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
    let (account, mut progress_by_name) = SegmentMergeProgress::read(dir)?;
    let before = account.summary().messages;
    let segments = options.segments.into_iter().map(|s| {
        let tape_progress = progress_by_name.remove(&s.name).unwrap_or_default();
        MergeInput { segment: s, tape_progress, ..MergeInput::default() }
    });
    let mut tape = MergeOutput {
        raw: RawLog::open(dir, account.raw_bytes)?,
        writer,
        dictionary: account.names.dictionary().clone(),
        next_source: account.next_source,
        out: Vec::new(),
        flushes: FlushFailures::default(),
    };
    let mut segments: Vec<_> = segments.collect();
    let placed = account.placed_max;
    let mut placed_max = UnixNanos(if options.by_receive_time { placed.1 } else { placed.0 });
    let lead = if options.by_receive_time { ClockLeadLimits::UNBOUNDED } else { options.lead };
    let placed_before = placed_max;
    let began = Instant::now();
    let mut latest = Vec::with_capacity(segments.len());
    loop {
        latest.clear();
        latest.extend(segments.iter().map(|s| if s.unit.is_empty() { NO_TS } else { s.ts }));
        let mut next: Option<(UnixNanos, usize)> = None;
        let (mut some_empty, mut open, mut for_later) = (false, false, false);
        for (i, s) in segments.iter_mut().enumerate() {
            s.head = s.head(options.by_receive_time, placed_before)?;
            if s.waited_since.is_some() && s.head != NextMergeUnit::Nothing {
                s.note_waited(false, began.elapsed().as_nanos() as i64, &options.stats.feeds[i]);
            }
            match s.head {
                NextMergeUnit::Unit(ts) => {
                    let latest_other_ts =
                        latest.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, ts)| *ts).max();
                    let ts = s.believe(&lead, placed_max.max(latest_other_ts.unwrap_or(NO_TS))).unwrap_or(ts);
                    open = true;
                    if next.is_none_or(|(t, _)| ts < t) {
                        next = Some((ts, i));
                    }
                }
                NextMergeUnit::Nothing => {
                    (some_empty, open) = (true, true);
                }
                NextMergeUnit::End => {
                    let unbounded = s.segment.wait.unwrap_or(options.wait.into()) == MergeWait::Unbounded;
                    for_later |= unbounded && s.segment.stopped.load(Ordering::Relaxed);
                }
            }
        }
        if !open {
            break;
        }
        if for_later {
            // It may bring more in a later run, which places what waits for it.
            if segments.iter().all(|s| s.segment.ended.load(Ordering::Acquire)) {
                let left = segments.iter().zip(&options.stats.feeds);
                for (_, stats) in left.filter(|(s, _)| matches!(s.head, NextMergeUnit::Unit(_))) {
                    stats.link.note(LEFT.to_owned());
                }
                break;
            }
            options.stats.placed.wait(IDLE);
            continue;
        }
        if some_empty {
            let now_ns = began.elapsed().as_nanos() as i64;
            let came_ns = next.map(|(_, i)| segments[i].came_ns(now_ns));
            let mut until_ns = None;
            for (i, s) in segments.iter_mut().enumerate().filter(|(_, s)| s.head == NextMergeUnit::Nothing) {
                let link = &options.stats.feeds[i].link;
                s.availability.note_empty(now_ns, link.is_failing(), link.is_waiting());
                let wait = s.segment.wait.unwrap_or(options.wait.into());
                let its_until_ns = came_ns.and_then(|came_ns| s.availability.waits_until(came_ns, wait));
                s.note_waited(its_until_ns.is_some(), now_ns, &options.stats.feeds[i]);
                until_ns = until_ns.max(its_until_ns);
            }
            if next.is_none() || until_ns.is_some() {
                segments
                    .iter_mut()
                    .filter(|s| !s.unit.is_empty())
                    .for_each(|s| _ = s.held_since.get_or_insert(now_ns));
                let left = until_ns.map_or(i64::MAX, |until_ns| until_ns.saturating_sub(now_ns));
                match options.spin {
                    true => std::hint::spin_loop(),
                    false => {
                        _ = options.stats.placed.wait(IDLE.min(Duration::from_nanos(left.max(1) as u64)))
                    }
                }
                continue;
            }
        }
        let Some((ts, i)) = next else { continue };
        let s = &mut segments[i];
        if s.held_since.is_some() {
            s.note_held(began.elapsed().as_nanos() as i64, &options.stats.feeds[i]);
        }
        let late = ts < placed_max && !s.only_meta && !s.is_ahead;
        s.running_max = ts;
        if !s.only_meta && !s.is_ahead {
            placed_max = placed_max.max(ts);
        }
        tape.append_unit(s, late)?;
        let stats = &options.stats.feeds[i];
        stats.events.fetch_add(s.events, Ordering::Relaxed);
        stats.messages.fetch_add(u64::from(!s.only_meta), Ordering::Relaxed);
        stats.late.fetch_add(late.into(), Ordering::Relaxed);
        stats.clock_ahead.fetch_add(s.is_ahead.into(), Ordering::Relaxed);
        stats.ts_max.store(s.running_max.0, Ordering::Relaxed);
        s.unit.clear();
    }
    tape.raw.sync()?;
    tape.writer.close()?;
    let summary = TapeAccount::load(dir)?.summary();
    let fresh_messages = summary.messages.saturating_sub(before);
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

/// A segment as the merge has it.
#[derive(Debug)]
struct MergeInput {
    segment: MergeSegment,
    tape_progress: SegmentMergeProgress,
    reader: Option<Reader>,
    /// Its names and sources, by its own ids.
    names: DefinitionTable,
    /// Ids on the tape, by dictionary and own id; 0 not yet looked for.
    ids: [Vec<u32>; NameKind::COUNT],
    sources: BTreeMap<u32, u32>,
    /// The current unit without definitions of names; complete if `is_unit_complete`.
    unit: Vec<u8>,
    is_unit_complete: bool,
    only_meta: bool,
    events: u64,
    ts: UnixNanos,
    /// Its time leads by more than it may: it is merged by that of its segment.
    is_ahead: bool,
    running_max: UnixNanos,
    /// The result of the last look.
    head: NextMergeUnit,
    availability: FeedAvailability,
    /// When the current unit came, on the merge's clock; when that is first asked.
    arrival_ns: Option<i64>,
    received_at: Option<UnixNanos>,
    /// Since when it has been held for other segments, and since when they wait for it.
    held_since: Option<i64>,
    waited_since: Option<i64>,
}

impl Default for MergeInput {
    fn default() -> Self {
        let segment = MergeSegment {
            name: String::new(),
            dir: PathBuf::new(),
            ended: Arc::default(),
            stopped: Arc::default(),
            wait: None,
        };
        Self {
            segment,
            tape_progress: SegmentMergeProgress::default(),
            reader: None,
            names: DefinitionTable::default(),
            ids: Default::default(),
            sources: BTreeMap::new(),
            unit: Vec::new(),
            is_unit_complete: false,
            only_meta: true,
            events: 0,
            ts: NO_TS,
            is_ahead: false,
            running_max: NO_TS,
            head: NextMergeUnit::Nothing,
            availability: FeedAvailability::default(),
            arrival_ns: None,
            received_at: None,
            held_since: None,
            waited_since: None,
        }
    }
}

impl MergeInput {
    /// Returns the time by which the next unit is merged.
    fn head(&mut self, by_receive_time: bool, placed_before: UnixNanos) -> Result<NextMergeUnit, Error> {
        loop {
            if self.is_unit_complete && !self.unit.is_empty() {
                let ts = if self.is_ahead { self.running_max } else { self.running_max.max(self.ts) };
                return Ok(NextMergeUnit::Unit(ts));
            }
            // Acquire: pairs with the Release of who saw its writer end; all it committed is seen.
            let ended = self.segment.ended.load(Ordering::Acquire);
            if !self.read(by_receive_time)? {
                return Ok(if ended { NextMergeUnit::End } else { NextMergeUnit::Nothing });
            }
            if self.tape_progress.units > 0 {
                // It is on the tape already.
                self.tape_progress.units -= 1;
                // A time later than all believed times was not believed.
                if !self.is_ahead && self.ts <= placed_before {
                    self.running_max = self.running_max.max(self.ts);
                }
                let unit = std::mem::take(&mut self.unit);
                for (_, _, frame) in frames(&unit) {
                    if let Some(event) = Event::new(frame).filter(|e| e.kind() == EventKind::Source) {
                        let segment_id = uint(&event, EventField::Index).unwrap_or(0) as u32;
                        let id = self.tape_progress.sources.pop_front().ok_or_else(|| self.foreign())?;
                        self.sources.insert(segment_id, id);
                    }
                }
                self.unit = unit;
                self.unit.clear();
            }
        }
    }

    /// Returns when the current unit arrived, on the merge's clock. The first call takes the present time, less the
    /// time since its receipt.
    fn came_ns(&mut self, now_ns: i64) -> i64 {
        let age_ns = self.received_at.map_or(0, crate::sources::receive::age_ns);
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

    /// Holds the current unit against the latest time of the other segments; returns the time by which it is merged where
    /// it leads by more than it may.
    fn believe(&mut self, lead: &ClockLeadLimits, latest: UnixNanos) -> Option<UnixNanos> {
        let doubt = !self.is_ahead && !self.only_meta;
        // An event that its segment has held against its receipt does not lead that; a receipt that the data name may.
        let received = self.received_at.and_then(known_time);
        if doubt
            && known_time(latest).is_some_and(|latest| self.ts > lead.after_feeds(latest))
            && received.is_none_or(|received| self.ts > lead.after_receipt(received))
        {
            self.is_ahead = true;
        }
        self.is_ahead.then_some(self.running_max)
    }

    /// Reads the next unit; false when it is not there yet.
    fn read(&mut self, by_receive_time: bool) -> Result<bool, Error> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None if !self.segment.dir.join("tape.toml").exists() => return Ok(false),
            None => {
                let reader = Reader::open(&self.segment.dir, StartPosition::Oldest)?;
                if reader.position() > Position(0) {
                    let reason =
                        "the beginning of its tape is gone, and a merge needs all of it; use a new tape";
                    let origin = format!("segment {}", self.segment.name);
                    return Err(Error::Config { origin, reason: reason.to_owned() });
                }
                self.reader.insert(reader)
            }
        };
        if self.unit.is_empty() {
            (self.is_unit_complete, self.only_meta, self.events, self.ts) = (false, true, 0, NO_TS);
            (self.is_ahead, self.arrival_ns, self.received_at) = (false, None, None);
        }
        while let Some(frame) = reader.next()? {
            let event = match self.names.admit_frame(frame.bytes) {
                Ok(Some(event)) => event,
                Ok(None) => {
                    let reason = "a user's message, which a merge has no place for".to_owned();
                    return Err(Error::Inconsistent { position: frame.position, reason });
                }
                Err(flaw) => {
                    let position = frame.position;
                    return Err(reader.damage_at(position, &flaw).into());
                }
            };
            if event.kind() == EventKind::Define {
                continue;
            }
            if !frame.header.is_meta() {
                if self.only_meta && event.source() == 0 {
                    // Sources count what is placed, so a restart would place it again.
                    let reason =
                        "an event without a source, which a merge of segments has no place for".to_owned();
                    return Err(Error::Inconsistent { position: frame.position, reason });
                }
                if self.only_meta && event.kind() != EventKind::Quarantine {
                    let ts = event.ts_event();
                    self.ts = if by_receive_time { event.ts_recv().unwrap_or(ts) } else { ts };
                    self.received_at = event.ts_recv();
                    self.is_ahead = !by_receive_time && frame.header.flags() & flags::CLOCK_AHEAD != 0;
                }
                self.only_meta = false;
                self.events += 1;
            }
            self.unit.extend_from_slice(frame.bytes);
            if frame.header.is_last() {
                self.is_unit_complete = true;
                self.availability.note_bytes(false);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn foreign(&self) -> Error {
        Error::Config {
            origin: format!("segment {}", self.segment.name),
            reason: "its tape is not the one that was merged before; use a new tape".to_owned(),
        }
    }
}

/// The tape that is written.
struct MergeOutput {
    writer: Writer,
    raw: RawLog,
    dictionary: Dictionary,
    next_source: u32,
    out: Vec<u8>,
    flushes: FlushFailures,
}

impl MergeOutput {
    /// Appends the current unit, under ids of this tape.
    fn append_unit(&mut self, s: &mut MergeInput, late: bool) -> Result<(), Error> {
        self.out.clear();
        let unit = std::mem::take(&mut s.unit);
        for (_, header, frame) in frames(&unit) {
            let kind = EventKind::from_u8(header.kind()).expect("looked at when it was read");
            let mut tape_frame = frame.to_vec();
            let source =
                u32::from_le_bytes(tape_frame[at::SOURCE..at::SOURCE + 4].try_into().expect("four bytes"));
            match kind {
                EventKind::Source => self.define_source(s, &mut tape_frame)?,
                _ if source != 0 => {
                    let id = *s.sources.get(&source).ok_or_else(|| s.foreign())?;
                    write_bytes(&mut tape_frame, at::SOURCE, &id.to_le_bytes());
                }
                _ => {}
            }
            if !header.is_meta() {
                self.rewrite_names(s, header, &mut tape_frame)?;
            }
            if kind == EventKind::Quarantine {
                let event = Event::new(frame).expect("looked at when it was read");
                let raw_at = self.raw.append(&raw_of_event(&s.segment.dir, &event)?)?;
                write_bytes(&mut tape_frame, RAW_AT, &raw_at.to_le_bytes());
            }
            let ahead_flag = if s.is_ahead { flags::CLOCK_AHEAD } else { 0 };
            let mark = if header.is_meta() { 0 } else { ahead_flag | if late { flags::LATE } else { 0 } };
            FrameHeader::new_unstamped(header.kind(), header.flags() | mark, header.lines())
                .write(&mut tape_frame);
            self.out.extend_from_slice(&tape_frame);
        }
        while let Err(e) = self.writer.append(&self.out) {
            if !self.flushes.may_retry_append(&e, &self.writer, s.segment.ended.load(Ordering::Relaxed)) {
                return Err(e.into());
            }
        }
        s.unit = unit;
        Ok(())
    }

    /// Assigns a definition of a source its id on this tape.
    fn define_source(&mut self, s: &mut MergeInput, frame: &mut [u8]) -> Result<(), Error> {
        let event = Event::new(frame).expect("looked at when it was read");
        let (index, first_index) =
            (uint(&event, EventField::Index).unwrap_or(0) as u32, uint(&event, EventField::Of));
        let id = self.next_source;
        self.next_source += 1;
        s.sources.insert(index, id);
        write_bytes(frame, INDEX, &id.to_le_bytes());
        if let Some(segment_index) = first_index.filter(|first_index| *first_index != 0) {
            let first_id = *s.sources.get(&(segment_index as u32)).ok_or_else(|| s.foreign())?;
            write_bytes(frame, OF, &first_id.to_le_bytes());
        }
        Ok(())
    }

    /// Replaces the ids of an event's names by their ids on this tape; new names get definitions before it.
    fn rewrite_names(
        &mut self,
        s: &mut MergeInput,
        header: FrameHeader,
        frame: &mut [u8],
    ) -> Result<(), Error> {
        let layout = IdLayoutTable::get().find(header, frame).expect("an event of a known layout");
        if layout.venue {
            self.rewrite_narrow_id(s, frame, at::VENUE)?;
        }
        for id in &layout.wide {
            self.rewrite_wide_id(s, frame, id.dict, id.offset)?;
        }
        let mut listed = Vec::new();
        layout.each_listed(header, frame, |dict, offset| listed.push((dict, offset)));
        listed.into_iter().try_for_each(|(dict, offset)| self.rewrite_wide_id(s, frame, dict, offset))
    }

    fn rewrite_narrow_id(
        &mut self,
        s: &mut MergeInput,
        frame: &mut [u8],
        offset: usize,
    ) -> Result<(), Error> {
        let id = u16::from_le_bytes(frame[offset..offset + 2].try_into().expect("two bytes"));
        let id = self.tape_id_of(s, NameKind::Venue, id.into())?;
        write_bytes(frame, offset, &(id as u16).to_le_bytes());
        Ok(())
    }

    fn rewrite_wide_id(
        &mut self,
        s: &mut MergeInput,
        frame: &mut [u8],
        dict: NameKind,
        offset: usize,
    ) -> Result<(), Error> {
        let id = u32::from_le_bytes(frame[offset..offset + 4].try_into().expect("four bytes"));
        let id = self.tape_id_of(s, dict, id)?;
        write_bytes(frame, offset, &id.to_le_bytes());
        Ok(())
    }

    /// Returns the tape's id of the segment's name `segment_id`.
    fn tape_id_of(&mut self, s: &mut MergeInput, dict: NameKind, segment_id: u32) -> Result<u32, Error> {
        let ids = &mut s.ids[dict as usize];
        if segment_id == 0 {
            return Ok(0);
        }
        if let Some(id) = ids.get(segment_id as usize).filter(|id| **id != 0) {
            return Ok(*id);
        }
        let config = |reason: String| Error::Config { origin: format!("segment {}", s.segment.name), reason };
        let name = s
            .names
            .name(dict, segment_id)
            .ok_or_else(|| config(format!("{} {segment_id} is not defined", dict.name())))?;
        let full = |_| config(format!("no place for another {}, there are {}", dict.name(), dict.id_max()));
        let (id, new) = self.dictionary.intern(dict, name.as_bytes()).map_err(full)?;
        if new {
            EventBuilder::define(&mut self.out, dict, id, name).expect("a name of a dictionary");
        }
        if ids.len() <= segment_id as usize {
            ids.resize(segment_id as usize + 1, 0);
        }
        ids[segment_id as usize] = id;
        Ok(id)
    }
}

fn write_bytes(frame: &mut [u8], offset: usize, bytes: &[u8]) {
    frame[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn tape_id(segments: &[MergeSegment]) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    for s in segments {
        hasher.update(&(s.name.len() as u64).to_le_bytes());
        hasher.update(s.name.as_bytes());
    }
    TapeId(u128::from_le_bytes(hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}

/// Where a source's definition says its id, and that of its first definition; where a quarantine event says its
/// place in the raw log. A test holds them against the schema.
const INDEX: usize = 32;
const OF: usize = 36;
const RAW_AT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::schema::{EventSchema, FieldLayout};

    #[test]
    fn places_are_those_of_the_schema() {
        let slot = |kind, field| EventSchema::for_kind(kind).get(field).unwrap().slot;
        assert_eq!(
            slot(EventKind::Source, EventField::Index),
            FieldLayout::UInt { offset: INDEX as u16, width: 4 }
        );
        assert_eq!(
            slot(EventKind::Source, EventField::Of),
            FieldLayout::UInt { offset: OF as u16, width: 4 }
        );
        assert_eq!(
            slot(EventKind::Quarantine, EventField::RawAt),
            FieldLayout::UInt { offset: RAW_AT as u16, width: 8 }
        );
    }
}
