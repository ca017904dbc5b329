//! Taking units off a block: what goes onto the tape, under which ids, with which frames in between.

use super::large::{LargeDestination, LargeMessage};
use super::{BlockSequencer, FramePiece, RunCounters};
use crate::account::bookkeeping::{ProgressMark, progress_frame};
use crate::block::affected_books::AffectedBooks;
use crate::block::cursor::BlockCursor;
use crate::block::numbers::{FeedSessions, flag_frame};
use crate::block::quarantine_event::{QuarantineDetails, RawDigest, quarantine_frame};
use crate::block::{Block, BlockMessage, BlockMessageKind, IdFixup, NO_TS, TurnVerdict};
use crate::error::Error;
use crate::pipeline::feed_state::{FeedState, SourceState};
use crate::pipeline::job::{BlockJob, VersionedFormat};
use crate::quarantine::RawLog;
use crate::sources::link::FeedLinkStatus;
use std::ops::Range;
use std::sync::atomic::Ordering;
use unitape_model::schema::at;
use unitape_model::{Dictionary, EventBuilder, FrameHeader, NameKind, Refusal, UnixNanos, flags};

impl BlockSequencer {
    /// Takes units of feed `i` while they are not later than `limit`; leaves emptied blocks in the queue, for
    /// the pieces to be copied from, and stops at the end of one.
    pub(super) fn emit_run(&mut self, i: usize, limit: UnixNanos) -> Result<(), Error> {
        let bounds = self.lead_context();
        let feed = &mut self.feeds[i];
        let index = feed.in_hand().expect("a feed with a head");
        let ceiling = bounds.ceiling(feed, &feed.queue[index].block);
        let clock = self.clock.as_ref();
        let unit_end = clock.map_or(usize::MAX, |clock| clock.unit_end(i, feed));
        // Only of the first unit is it known whether it leads.
        let mut head = feed.head.take();
        let FeedState { queue, sources, cursor, sessions, large, running_max, open_sources, grows, .. } =
            feed;
        let BlockJob { block, format, .. } = &mut *queue[index];
        let run = FramePieceBuilder {
            frame_pieces: &mut self.frame_pieces,
            feed: i,
            block: index,
            piece_start: cursor.arena,
        };
        let mut unit_emitter = UnitEmitter {
            block,
            format: format.as_deref(),
            source_states: sources,
            cursor,
            sessions,
            large_message: large,
            running_max,
            open_sources,
            feed_grows: *grows,
            late_count: &mut feed.late,
            clock_ahead: &mut feed.clock_ahead,
            link_status: self.stats.as_ref().map(|stats| &stats.feeds[i].link),
            piece_builder: run,
            placed_max: &mut self.placed_max,
            events: &mut self.events,
            next_source: &mut self.next_source,
            log: &mut self.raw_log,
            names: (&mut self.dictionary, &mut self.defined_names),
            counters: &self.counters,
        };
        while unit_emitter.cursor.unit_index < unit_end
            && let Some(&unit) = unit_emitter.block.units.get(unit_emitter.cursor.unit_index)
        {
            let is_ahead = match head.take() {
                Some(head) => head.is_ahead,
                None if bounds.is_in_doubt(
                    &unit,
                    &unit_emitter.source_states[unit_emitter.block.source],
                    ceiling,
                ) =>
                {
                    break;
                }
                None => false,
            };
            let ts =
                if is_ahead { *unit_emitter.running_max } else { (*unit_emitter.running_max).max(unit.ts) };
            if ts > limit {
                break;
            }
            *unit_emitter.running_max = ts;
            if unit_emitter.may_be_part(&unit) && unit_emitter.add_large_part(&unit)? {
                continue;
            }
            if !is_ahead && unit_emitter.is_plain(&unit) {
                unit_emitter.emit_plain(&unit);
            } else {
                unit_emitter.emit_unit(&unit, is_ahead)?;
            }
        }
        let arena_end = unit_emitter.cursor.arena;
        unit_emitter.piece_builder.end_piece(arena_end);
        if self.clock.is_some() {
            feed.note_passed(index);
        }
        feed.advance();
        Ok(())
    }
}

/// Units of one block on their way to the tape.
struct UnitEmitter<'e> {
    block: &'e mut Block,
    format: Option<&'e VersionedFormat>,
    // The feed's state.
    source_states: &'e mut Vec<SourceState>,
    cursor: &'e mut BlockCursor,
    sessions: &'e mut FeedSessions,
    large_message: &'e mut Option<Box<LargeMessage>>,
    running_max: &'e mut UnixNanos,
    open_sources: &'e mut usize,
    feed_grows: bool,
    late_count: &'e mut u64,
    clock_ahead: &'e mut u64,
    link_status: Option<&'e FeedLinkStatus>,
    // The sequencer's state.
    piece_builder: FramePieceBuilder<'e>,
    placed_max: &'e mut UnixNanos,
    events: &'e mut u64,
    next_source: &'e mut u32,
    log: &'e mut RawLog,
    /// All names, and those that were defined in this run.
    names: (&'e mut Dictionary, &'e mut Vec<(NameKind, u32)>),
    counters: &'e RunCounters,
}

/// The time flag for the frames of a unit; `ahead` has priority over the other flag.
#[derive(Clone, Copy)]
struct TimeFlags {
    is_ahead: bool,
    is_late: bool,
}

impl UnitEmitter<'_> {
    /// Returns whether a unit is a message with events that go to the tape unchanged and in order of time.
    #[inline]
    fn is_plain(&self, unit: &BlockMessage) -> bool {
        let state = &self.source_states[self.block.source];
        unit.kind.is_events()
            && unit.fixups_end as usize == self.cursor.fixup
            && unit.offset >> 32 == 0
            && state.defined
            && state.id == self.block.decoded_as
            && state.on_tape_through.is_none_or(|t| unit.offset > t)
            && *self.running_max >= *self.placed_max
    }

    /// Emits a plain unit, as nearly all are: its frames stay in place and unchanged.
    #[inline]
    fn emit_plain(&mut self, unit: &BlockMessage) {
        *self.placed_max = *self.running_max;
        *self.events += u64::from(unit.events);
        self.cursor.unit_index += 1;
        self.cursor.arena = unit.end as usize;
        self.cursor.raw_offset = unit.raw_end as usize;
    }

    /// Takes any other unit.
    fn emit_unit(&mut self, unit: &BlockMessage, is_ahead: bool) -> Result<(), Error> {
        let frames = self.cursor.arena..unit.end as usize;
        let is_late = *self.running_max < *self.placed_max && !unit.is_progress() && !is_ahead;
        if !self.enter_account(unit, &frames)? {
            self.piece_builder.skip_frames(frames);
        } else {
            let source = self.source_of(unit, &frames);
            self.flag_frames(unit, &frames, TimeFlags { is_ahead, is_late });
            let fixup_range = self.cursor.fixup..unit.fixups_end as usize;
            let cursor = &*self.cursor;
            match self
                .block
                .full_dictionary(fixup_range.clone(), self.names.0, |fixup| cursor.resolved_id(fixup))
            {
                Some(dict) => self.refuse_unit(unit, frames, source, is_late, dict)?,
                None => self.place_unit(unit, &frames, fixup_range),
            }
        }
        self.step_over(unit);
        Ok(())
    }

    /// Moves the cursor past a unit.
    fn step_over(&mut self, unit: &BlockMessage) {
        self.cursor.unit_index += 1;
        self.cursor.arena = unit.end as usize;
        self.cursor.fixup = unit.fixups_end as usize;
        self.cursor.raw_offset = unit.raw_end as usize;
        if self.cursor.unit_index >= self.cursor.recorded_units_end
            && self.cursor.unit_index < self.block.units.len()
        {
            self.cursor.note_stretch(self.block, self.sessions);
        }
    }

    /// Enters a unit in the account of its source; whether its frames go onto the tape.
    fn enter_account(&mut self, unit: &BlockMessage, frames: &Range<usize>) -> Result<bool, Error> {
        let state = &mut self.source_states[self.block.source];
        let is_new = state.on_tape_through.is_none_or(|t| unit.offset > t);
        match unit.kind {
            BlockMessageKind::Events | BlockMessageKind::Numbered { .. } => {}
            BlockMessageKind::Repeat { unsure } => self.block.count_repeat(self.cursor.unit_index, unsure),
            BlockMessageKind::Quarantine | BlockMessageKind::QuarantinePart { .. } => {
                self.keep_raw(unit, frames, is_new)?
            }
            BlockMessageKind::Duplicate => {
                self.block.recount_unit(self.cursor.unit_index, TurnVerdict::Duplicate);
                return Ok(false);
            }
            BlockMessageKind::Switch => {
                self.switch_mapping(unit, frames);
                return Ok(false);
            }
            BlockMessageKind::Progress { end, .. } if state.has_mark(unit.offset, end) => {
                *self.open_sources -= usize::from(end && !self.feed_grows);
                return Ok(false);
            }
            BlockMessageKind::Progress { tally, end } => {
                self.add_progress_mark(unit, frames, tally, end);
                return Ok(true);
            }
        }
        Ok(is_new)
    }

    /// Switches to another mapping for the rest of the source after this unit. It starts fresh here, also after a
    /// restart.
    fn switch_mapping(&mut self, unit: &BlockMessage, frames: &Range<usize>) {
        let state = &mut self.source_states[self.block.source];
        if state.defined {
            let (source, running_max) = (state.id, self.running_max.0);
            let mark = ProgressMark { source, through: unit.offset, end: false, running_max, hash: None };
            let frames_start = self.block.added.len();
            progress_frame(&mut self.block.added, &mark, state.tally, self.sessions);
            self.piece_builder.insert(frames.start, frames_start..self.block.added.len());
        }
        state.switch_format(self.format.map(|s| s.format_id.clone()).unwrap_or_default());
    }

    /// Puts the bytes of a message in quarantine into the raw log, where they are new, and their place into its event.
    fn keep_raw(&mut self, unit: &BlockMessage, frames: &Range<usize>, is_new: bool) -> Result<(), Error> {
        let raw = &self.block.raw[self.cursor.raw_offset..unit.raw_end as usize];
        let raw_at = if is_new { self.log.append(raw)? } else { 0 };
        let ts = if *self.running_max == NO_TS { 0 } else { self.running_max.0 };
        let frame = &mut self.block.arena[frames.clone()];
        patch_bytes(frame, at::TS_EVENT, &ts.to_le_bytes());
        patch_bytes(frame, RAW_AT, &raw_at.to_le_bytes());
        Ok(())
    }

    /// Adds a mark of progress.
    fn add_progress_mark(&mut self, unit: &BlockMessage, frames: &Range<usize>, tally: u32, end: bool) {
        let state = &mut self.source_states[self.block.source];
        if !state.defined {
            let frames_start = self.block.added.len();
            state.define(self.next_source, unit.offset, &[], &mut self.block.added);
            self.piece_builder.insert(frames.start, frames_start..self.block.added.len());
        }
        let total = state.tally.plus(self.block.tallies[tally as usize]);
        let (source, running_max) = (state.id, self.running_max.0);
        let hash = self.block.hashes.get(tally as usize).copied();
        let mark = ProgressMark { source, through: unit.offset, end, running_max, hash };
        let frames_start = self.block.added.len();
        progress_frame(&mut self.block.added, &mark, total, self.sessions);
        self.piece_builder.insert(frames.start, frames_start..self.block.added.len());
        (state.through, state.end) = (unit.offset, end);
        *self.open_sources -= usize::from(end && !self.feed_grows);
    }

    /// Returns the id of the definition with the first bytes of the source; adds the definition if the tape does not
    /// have it. Returns the source's id if a message in quarantine has these bytes itself.
    fn definition_with_head(&mut self, unit: &BlockMessage, from: usize, source: u32) -> u32 {
        if !self.block.is_head_defined {
            return source;
        }
        let state = &mut self.source_states[self.block.source];
        let frame_start = self.block.added.len();
        let id =
            state.head_definition_id(unit.offset, &self.block.head, self.next_source, &mut self.block.added);
        if self.block.added.len() > frame_start {
            self.piece_builder.insert(from, frame_start..self.block.added.len());
        }
        id
    }

    /// Returns the id of the source's definition for this unit and writes it into the frames. Adds the definition if
    /// the tape does not have it.
    fn source_of(&mut self, unit: &BlockMessage, frames: &Range<usize>) -> u32 {
        let state = &mut self.source_states[self.block.source];
        if !state.defined {
            let raw = &self.block.raw[self.cursor.raw_offset..unit.raw_end as usize];
            let frame_start = self.block.added.len();
            let message_bytes = first_message(&self.block.bytes, self.block.base, unit, raw);
            state.define(self.next_source, unit.offset, message_bytes, &mut self.block.added);
            self.piece_builder.insert(frames.start, frame_start..self.block.added.len());
        }
        let mut source = state.id;
        if unit.offset >> 32 != 0 && !unit.is_progress() {
            let (id, new) = state.extent((unit.offset >> 32) as u32, self.next_source);
            if new {
                let frame_start = self.block.added.len();
                state.extent_frame(id, unit.offset, &mut self.block.added);
                self.piece_builder.insert(frames.start, frame_start..self.block.added.len());
            }
            source = id;
        }
        if unit.kind == BlockMessageKind::Quarantine {
            source = self.definition_with_head(unit, frames.start, source);
        }
        if source != self.block.decoded_as {
            patch_each(&mut self.block.arena[frames.clone()], at::SOURCE, &source.to_le_bytes());
        }
        source
    }

    /// Flags the frames of a unit whose time leads, or that is late. Any other unit moves the time order.
    fn flag_frames(&mut self, unit: &BlockMessage, frames: &Range<usize>, time: TimeFlags) {
        if time.is_ahead {
            set_flag(&mut self.block.arena[frames.clone()], flags::CLOCK_AHEAD);
            if *self.clock_ahead == 0
                && let Some(link) = self.link_status
            {
                link.note(lead_note(unit, *self.running_max));
            }
            *self.clock_ahead += 1;
        } else if time.is_late {
            set_flag(&mut self.block.arena[frames.clone()], flags::LATE);
            *self.late_count += u64::from(!frames.is_empty());
        } else if !unit.is_progress() {
            *self.placed_max = (*self.placed_max).max(*self.running_max);
        }
    }

    /// Has the frames of a unit go onto the tape, with the ids of its names and the definitions of those that are new.
    fn place_unit(&mut self, unit: &BlockMessage, frames: &Range<usize>, fixup_range: Range<usize>) {
        *self.events += u64::from(unit.events);
        let is_repeat = matches!(unit.kind, BlockMessageKind::Repeat { .. });
        let mut flagged = frames.start;
        for f in fixup_range {
            let fixup = self.block.fixups[f];
            if is_repeat {
                self.piece_builder.flag_range(self.block, &mut flagged, fixup.frame as usize);
            }
            let id = match self.cursor.resolved_id(&fixup) {
                0 => self.define_name(&fixup),
                id => id,
            };
            let width = if fixup.dict == NameKind::Venue { 2 } else { 4 };
            patch_bytes(&mut self.block.arena, fixup.id_offset as usize, &id.to_le_bytes()[..width]);
        }
        if is_repeat {
            self.piece_builder.flag_range(self.block, &mut flagged, frames.end);
        }
    }

    /// Returns the id of the block's own name; a new name gets its definition before the frame.
    fn define_name(&mut self, fixup: &IdFixup) -> u32 {
        let (dictionary, defined) = &mut self.names;
        let name = self.block.names.name(fixup.dict, fixup.id).expect("the block's own name");
        let (id, new) = dictionary.intern(fixup.dict, name.as_bytes()).expect("it has a place");
        if new {
            defined.push((fixup.dict, id));
            let frames_start = self.block.added.len();
            EventBuilder::define(&mut self.block.added, fixup.dict, id, name)
                .expect("a name of a dictionary");
            self.piece_builder.insert(fixup.frame as usize, frames_start..self.block.added.len());
        }
        self.cursor.resolve_fixup(fixup, id);
        id
    }

    /// Quarantines a message whose names have no place in `dict`.
    #[cold]
    fn refuse_unit(
        &mut self,
        unit: &BlockMessage,
        frames: Range<usize>,
        source: u32,
        is_late: bool,
        dict: NameKind,
    ) -> Result<(), Error> {
        self.block.recount_unit(self.cursor.unit_index, TurnVerdict::Quarantined);
        // Relaxed: a figure for progress bars.
        self.counters.quarantined.fetch_add(1, Ordering::Relaxed);
        let source = self.definition_with_head(unit, frames.start, source);
        let added =
            refuse_names(self.block, self.log, RefusedUnit { unit, ts: *self.running_max, source }, dict)?;
        if is_late {
            set_flag(&mut self.block.added[added.clone()], flags::LATE);
        }
        self.piece_builder.insert(frames.start, added);
        self.piece_builder.skip_frames(frames);
        *self.events += 1;
        Ok(())
    }

    /// Returns whether a unit may be a part of a large message, or end one.
    #[inline]
    fn may_be_part(&self, unit: &BlockMessage) -> bool {
        self.large_message.is_some()
            || matches!(unit.kind, BlockMessageKind::QuarantinePart { first: true, .. })
    }

    /// Puts a unit to the large message that it continues, and places the message where it is whole now; whether the unit was
    /// such a part and is done with.
    #[cold]
    fn add_large_part(&mut self, unit: &BlockMessage) -> Result<bool, Error> {
        let frames = self.cursor.arena..unit.end as usize;
        let step = LargeUnit {
            unit_index: self.cursor.unit_index,
            frames: frames.clone(),
            raw_range: self.cursor.raw_offset..unit.raw_end as usize,
            running_max: *self.running_max,
            next_source: self.next_source,
            log: self.log,
        };
        let outcome = large_step(self.large_message, self.source_states, self.block, step)?;
        if let Some((added, event)) = outcome.placed_frames {
            if *self.running_max < *self.placed_max {
                set_flag(&mut self.block.added[event..added.end], flags::LATE);
                *self.late_count += 1;
            } else {
                *self.placed_max = *self.running_max;
            }
            self.piece_builder.insert(frames.start, added);
            *self.events += 1;
        }
        if outcome.unit_is_handled {
            self.piece_builder.skip_frames(frames);
            self.step_over(unit);
        }
        Ok(outcome.unit_is_handled)
    }
}

/// A unit that may be a part of a large message.
struct LargeUnit<'a> {
    unit_index: usize,
    frames: Range<usize>,
    raw_range: Range<usize>,
    running_max: UnixNanos,
    next_source: &'a mut u32,
    log: &'a mut RawLog,
}

/// The outcome for a large message.
#[derive(Default)]
struct LargeOutcome {
    /// Where the frames of a message that is complete now are in the block's added frames, and where its event begins
    /// in them.
    placed_frames: Option<(Range<usize>, usize)>,
    /// The unit was a part, or a mark within one, and is done with.
    unit_is_handled: bool,
}

/// Adds a unit to the large message that it continues. Places the message if the unit is its last part, or no part.
#[cold]
fn large_step(
    large: &mut Option<Box<LargeMessage>>,
    sources: &mut [SourceState],
    block: &mut Block,
    large_unit: LargeUnit<'_>,
) -> Result<LargeOutcome, Error> {
    let unit = block.units[large_unit.unit_index];
    let mut outcome = LargeOutcome::default();
    let is_complete = match large.as_mut() {
        Some(open) if open.continues(&unit, block.source) => {
            open.add(&block.raw[large_unit.raw_range.clone()])?;
            block.count_as_part(large_unit.unit_index);
            outcome.unit_is_handled = true;
            unit.kind == BlockMessageKind::QuarantinePart { first: false, last: true }
        }
        Some(open) if open.hides(&unit, block.source) => {
            outcome.unit_is_handled = true;
            false
        }
        open => open.is_some(),
    };
    if let Some(open_message) = large.take_if(|_| is_complete) {
        let (state, added) = (&mut sources[open_message.source], &mut block.added);
        let destination = LargeDestination {
            state,
            next_source: large_unit.next_source,
            log: &mut *large_unit.log,
            added,
            running_max: large_unit.running_max,
        };
        outcome.placed_frames = open_message.close(destination)?;
    }
    if !outcome.unit_is_handled && matches!(unit.kind, BlockMessageKind::QuarantinePart { first: true, .. }) {
        let is_new = sources[block.source].on_tape_through.is_none_or(|t| unit.offset > t);
        let spool = if is_new { Some(large_unit.log.spool()?) } else { None };
        let (frame, raw) =
            (&block.arena[large_unit.frames.clone()], &block.raw[large_unit.raw_range.clone()]);
        *large = Some(Box::new(LargeMessage::begin(block, &unit, frame, raw, spool)?));
        outcome.unit_is_handled = true;
    }
    Ok(outcome)
}

/// The part of a block's arena that is being sequenced, as pieces.
struct FramePieceBuilder<'p> {
    frame_pieces: &'p mut Vec<FramePiece>,
    feed: usize,
    block: usize,
    /// Start of the frames that are not yet in a piece.
    piece_start: usize,
}

impl FramePieceBuilder<'_> {
    /// Inserts frames that were added to the block before the frame at `before`.
    fn insert(&mut self, before: usize, added: Range<usize>) {
        self.push(false, self.piece_start..before);
        self.push(true, added);
        self.piece_start = before;
    }

    /// Has the frames from `from` up to `to` go onto the tape as repeats: copies with the flag in place of them.
    fn flag_range(&mut self, block: &mut Block, from: &mut usize, to: usize) {
        while *from < to {
            let frame_end = *from + FrameHeader::read(&block.arena[*from..]).len_bytes();
            let added_start = block.added.len();
            flag_frame(&block.arena[*from..frame_end], &mut block.added);
            self.insert(*from, added_start..block.added.len());
            self.skip_frames(*from..frame_end);
            *from = frame_end;
        }
    }

    /// Leaves these frames out.
    fn skip_frames(&mut self, frames: Range<usize>) {
        self.push(false, self.piece_start..frames.start);
        self.piece_start = frames.end;
    }

    fn end_piece(mut self, frame_end: usize) {
        self.push(false, self.piece_start..frame_end);
    }

    fn push(&mut self, added: bool, range: Range<usize>) {
        if !range.is_empty() {
            let (feed, block) = (self.feed as u32, self.block as u32);
            self.frame_pieces.push(FramePiece {
                feed,
                block,
                added,
                start: range.start as u32,
                end: range.end as u32,
            });
        }
    }
}

/// A message with events that cannot go onto the tape.
struct RefusedUnit<'u> {
    unit: &'u BlockMessage,
    /// The time of its place; [`NO_TS`] until the feed has one.
    ts: UnixNanos,
    /// Id of the source's definition.
    source: u32,
}

/// Quarantines a message whose names have no place in `dict`; returns where its event is in `added`.
fn refuse_names(
    block: &mut Block,
    log: &mut RawLog,
    message: RefusedUnit<'_>,
    dict: NameKind,
) -> Result<Range<usize>, Error> {
    let RefusedUnit { unit, ts, source } = message;
    let message_start = (unit.offset - block.base) as usize;
    let raw = &block.bytes[message_start..message_start + unit.length as usize];
    let raw_at = log.append(raw)?;
    let detail = format!("no place for another {}, there are {}", dict.name(), dict.id_max());
    let details = QuarantineDetails {
        ts: if ts == NO_TS { UnixNanos(0) } else { ts },
        source,
        offset: unit.offset,
        raw_at,
        raw: RawDigest::from_bytes(raw),
        reason: Refusal::DictionaryFull.code(),
        detail: &detail,
        head: if block.is_head_defined { &[] } else { &block.head },
        concern: &AffectedBooks::Feed,
    };
    let frame_start = block.added.len();
    quarantine_frame(&mut block.added, &details);
    Ok(frame_start..block.added.len())
}

/// Returns the bytes of a message: its raw bytes if it was refused.
fn first_message<'b>(bytes: &'b [u8], base: u64, unit: &BlockMessage, raw: &'b [u8]) -> &'b [u8] {
    match unit.kind {
        BlockMessageKind::Quarantine | BlockMessageKind::QuarantinePart { .. } => raw,
        _ => {
            let message_offset = (unit.offset - base) as usize;
            bytes.get(message_offset..message_offset + unit.length as usize).unwrap_or_default()
        }
    }
}

/// Describes the first message of a feed that leads.
#[cold]
fn lead_note(unit: &BlockMessage, running_max: UnixNanos) -> String {
    let latest_text = if running_max == NO_TS { "none" } else { &running_max.0.to_string() };
    format!(
        "the event at byte {} has the time {} (ns since 1970), which leads by more than it may; the feed's latest is {latest_text}. \
         It is flagged clock_ahead and does not move the merge; so are further ones, and the figures count them",
        unit.offset, unit.ts.0
    )
}

/// Flags the frames of a unit.
fn set_flag(mut run: &mut [u8], flag: u8) {
    while !run.is_empty() {
        let header = FrameHeader::read(run);
        header.with_flags(header.flags() | flag).write(run);
        run = &mut run[header.len_bytes()..];
    }
}

fn patch_each(mut run: &mut [u8], offset: usize, bytes: &[u8]) {
    while !run.is_empty() {
        patch_bytes(run, offset, bytes);
        let len = FrameHeader::read(run).len_bytes();
        run = &mut run[len..];
    }
}

fn patch_bytes(frame: &mut [u8], offset: usize, bytes: &[u8]) {
    frame[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Where a quarantine event says its place in the raw log; the tests hold it against the schema.
const RAW_AT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{EventField, EventKind, EventSchema, FieldLayout};

    #[test]
    fn the_place_in_the_raw_log_stands_where_the_schema_says() {
        let slot = EventSchema::for_kind(EventKind::Quarantine).get(EventField::RawAt).unwrap().slot;
        assert_eq!(slot, FieldLayout::UInt { offset: RAW_AT as u16, width: 8 });
    }
}
