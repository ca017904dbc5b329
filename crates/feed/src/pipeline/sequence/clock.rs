//! Ticks of a run's clock in the merge.
//!
//! A tick has its place by what was on the tape before it, and not by its time: its line names the last message of each
//! feed. It comes after these and before all others, live and in each later run of the journals. Its time changes no
//! time by which anything is merged, and makes nothing late.
//!
//! While a tick is on its way from its journal to the tape, what came after it waits; else nothing waits for the clock.

use super::BlockSequencer;
use crate::block::{BlockMessage, BlockMessageKind, NO_TS};
use crate::error::Error;
use crate::formats::clock::{ClockTick, MessagePlace};
use crate::pipeline::feed_state::{FeedHead, FeedState};
use crate::sources::receive::{ClockWriter, TickReference};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use unitape_model::UnixNanos;

/// The clock of a merge.
#[derive(Debug)]
pub struct ClockMerge {
    /// Index of its feed.
    pub feed: usize,
    /// Writes ticks; `None` if ticks are only read.
    writer: Option<ClockWriter>,
    /// A tick was written and is not on the tape.
    tick_is_owed: bool,
    /// Its journal has been read to its end in this run.
    is_caught_up: bool,
    /// The run stops, and its journal was read to its end.
    has_stopped: bool,
    /// The tick at hand: its source and offset, and by feed how far the messages before it reach.
    tick_at_hand: Option<TickAtHand>,
    /// Ticks that were placed since it was last asked.
    placed_ticks: u64,
}

#[derive(Debug)]
struct TickAtHand {
    source: usize,
    offset: u64,
    feed_positions: Vec<Option<MessagePlace>>,
    ts: UnixNanos,
    /// Whether its time is not credible.
    is_ahead: bool,
}

/// The place of a unit in its feed, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitPlace {
    /// Index of its source.
    pub source: usize,
    /// Its offset.
    pub offset: u64,
    /// As in [`MessagePlace::part`].
    pub part_number: u8,
}

impl UnitPlace {
    /// Returns the place of a unit of this source.
    pub fn new(source: usize, unit: &BlockMessage) -> Self {
        let part = match unit.kind {
            BlockMessageKind::Progress { end: false, .. } | BlockMessageKind::Switch => MARK,
            BlockMessageKind::Progress { end: true, .. } => END,
            _ => MESSAGE,
        };
        Self { source, offset: unit.offset, part_number: part }
    }
}

/// What a merge with a clock does next.
pub(super) enum ClockStep {
    /// Nothing may be placed before more of the clock's journal arrives.
    Wait,
    /// The next unit of the clock is placed.
    Place,
    /// The next unit of the other feeds is placed; those after the tick at hand are left out.
    Others,
}

impl FeedState {
    /// Returns how far the feed was read when the run began.
    pub fn passed_before(&self) -> Option<UnitPlace> {
        let places = self.sources.iter().enumerate().map(|(source, state)| {
            let mark =
                UnitPlace { source, offset: state.through, part_number: if state.end { END } else { MARK } };
            let mark = (state.through > 0 || state.end).then_some(mark);
            mark.max(state.on_tape_through.map(|offset| UnitPlace { source, offset, part_number: MESSAGE }))
        });
        places.max().flatten()
    }

    /// Finds the place in this feed that a tick names; `None` while the feed does not have that source.
    fn place_of(&self, position: &MessagePlace) -> Option<UnitPlace> {
        let source = self.sources.iter().rposition(|source| source.file == position.file)?;
        Some(UnitPlace { source, offset: position.offset, part_number: position.part })
    }

    /// Returns the place of the next unit.
    fn head_place(&self) -> Option<UnitPlace> {
        let block = &self.queue[self.in_hand()?].block;
        Some(UnitPlace::new(block.source, block.units.get(self.cursor.unit_index)?))
    }

    /// Returns whether the next unit comes after the tick that names `position` of this feed.
    fn is_after(&self, position: Option<&MessagePlace>) -> bool {
        let Some(position) = position else { return true };
        match (self.head_place(), self.place_of(position)) {
            (Some(head), Some(unit_position)) => head > unit_position,
            // The source of the place has not begun.
            _ => false,
        }
    }

    /// Returns whether all units before the tick that names `position` of this feed have passed.
    fn has_passed(&self, position: Option<&MessagePlace>) -> bool {
        let Some(position) = position else { return true };
        let passed = self.place_of(position).is_some_and(|unit_position| self.passed >= Some(unit_position));
        let is_over = self.in_hand().is_none() && (self.closed || self.open_sources == 0);
        passed || is_over || self.in_hand().is_some() && self.is_after(Some(position))
    }

    /// Returns the end of the first block's available units, up to the last unit before the tick that names
    /// `position`.
    fn units_before(&self, position: Option<&MessagePlace>) -> usize {
        let Some((block, position)) = self.in_hand().map(|i| &self.queue[i].block).zip(position) else {
            return 0;
        };
        let Some(clock_place) = self.place_of(position) else { return block.units.len() };
        let (first, rest) = (self.cursor.unit_index, &block.units[self.cursor.unit_index..]);
        first + rest.partition_point(|unit| UnitPlace::new(block.source, unit) <= clock_place)
    }
}

impl ClockMerge {
    /// Makes the clock of this feed; with a writer, it ticks.
    pub fn new(feed: usize, writer: Option<ClockWriter>) -> Self {
        Self {
            feed,
            writer,
            tick_is_owed: false,
            is_caught_up: false,
            has_stopped: false,
            tick_at_hand: None,
            placed_ticks: 0,
        }
    }

    /// Stops the clock: the run stops, and all of its journal was read.
    pub(super) fn stop_clock(&mut self) {
        self.has_stopped = true;
    }

    /// Returns whether nothing may be placed before more of the clock's feed arrives.
    fn is_awaited(&self, feed: &FeedState) -> bool {
        if feed.in_hand().is_some() || feed.closed || feed.open_sources == 0 {
            return false;
        }
        self.tick_is_owed || !self.has_stopped && !self.is_caught_up
    }

    /// Returns whether feed `i` has no available unit before the current tick.
    pub(super) fn holds_feed(&self, i: usize, feed: &FeedState) -> bool {
        self.tick_at_hand.as_ref().is_some_and(|tick| feed.is_after(tick.feed_positions[i].as_ref()))
    }

    /// Returns the end of the units that feed `i` may place now.
    pub(super) fn unit_end(&self, i: usize, feed: &FeedState) -> usize {
        match &self.tick_at_hand {
            _ if i == self.feed => feed.cursor.unit_index + 1,
            Some(tick) => feed.units_before(tick.feed_positions[i].as_ref()),
            None => usize::MAX,
        }
    }

    /// Looks at the clock's next unit.
    pub(super) fn look_at_next(&mut self, feeds: &mut [FeedState], is_over: bool) -> ClockStep {
        let clock = &mut feeds[self.feed];
        // A journal that has been found empty once is read as it is written.
        self.is_caught_up |= clock.grows && clock.availability.empty_ns != i64::MIN;
        clock.head = None;
        let Some(index) = clock.in_hand() else {
            self.tick_at_hand = None;
            return if self.is_awaited(clock) { ClockStep::Wait } else { ClockStep::Others };
        };
        let block = &clock.queue[index].block;
        let (unit, source) = (block.units[clock.cursor.unit_index], block.source);
        if self.tick_at_hand.as_ref().is_none_or(|t| (t.source, t.offset) != (source, unit.offset)) {
            let line_offset = (unit.offset - block.base) as usize;
            let line = block.bytes.get(line_offset..line_offset + unit.length as usize).unwrap_or_default();
            let tick = unit.kind.is_events().then(|| ClockTick::parse(line).ok()).flatten();
            self.tick_at_hand = tick.map(|mut tick| TickAtHand {
                source,
                offset: unit.offset,
                feed_positions: feeds.iter().map(|feed| tick.after.remove(&feed.name)).collect(),
                ts: UnixNanos(tick.ts),
                is_ahead: tick.ahead,
            });
        }
        let clock = &mut feeds[self.feed];
        let is_ahead = self.tick_at_hand.as_ref().is_some_and(|tick| tick.is_ahead);
        let ts = if is_ahead { clock.running_max } else { clock.running_max.max(unit.ts) };
        clock.head = Some(FeedHead { ts, is_ahead });
        // A mark, or a line that is no tick, has no place of its own. At the end of a run nothing more comes before it.
        let Some(tick) = &self.tick_at_hand else { return ClockStep::Place };
        let other_feeds = || feeds.iter().enumerate().filter(|(i, _)| *i != self.feed);
        let has_more =
            other_feeds().any(|(i, f)| f.in_hand().is_some() && !f.is_after(tick.feed_positions[i].as_ref()));
        let passed = || other_feeds().all(|(i, feed)| feed.has_passed(tick.feed_positions[i].as_ref()));
        match !has_more && (is_over || passed()) {
            true => ClockStep::Place,
            false => ClockStep::Others,
        }
    }

    /// Notes that the unit at hand was placed.
    fn note_placed(&mut self) {
        if let Some(tick) = self.tick_at_hand.take() {
            self.placed_ticks += 1;
            self.tick_is_owed = false;
            if let Some(writer) = &mut self.writer {
                writer.timer.note_tick(tick.ts, tick.is_ahead);
            }
        }
    }

    /// Notes that `events` were placed, ticks among them.
    pub(super) fn note_events(&mut self, events: u64, now_ns: i64) {
        let ticks = std::mem::take(&mut self.placed_ticks);
        if let Some(writer) = &mut self.writer
            && events > ticks
        {
            writer.timer.note_event(now_ns);
        }
    }

    /// Returns when the merge must check the clock again, on the intake's clock.
    pub(super) fn due_ns(&self, feeds: &[FeedState], now_ns: i64) -> i64 {
        match &self.writer {
            _ if self.is_awaited(&feeds[self.feed]) => now_ns,
            Some(writer) if !self.has_stopped => writer.timer.due_ns(),
            _ => i64::MAX,
        }
    }
}

impl BlockSequencer {
    /// Lets a feed's messages be the ticks of a clock.
    pub fn follow_clock(&mut self, clock: ClockMerge) {
        for feed in &mut self.feeds {
            feed.passed = feed.passed_before();
        }
        let mut clock = clock;
        if let Some(writer) = &mut clock.writer {
            // The last tick of earlier runs, or a later one that the clock had before it was set back.
            writer.timer.note_tick(self.feeds[clock.feed].running_max, false);
        }
        self.clock = Some(Box::new(clock));
    }

    /// Places the clock's next unit.
    pub(super) fn place_tick(&mut self, i: usize) -> Result<(), Error> {
        // The time of a tick must not be the tape's: with a time of its own, nothing is late beside it.
        let placed_max = std::mem::replace(&mut self.placed_max, NO_TS);
        let emitted = self.emit_run(i, UnixNanos::MAX);
        self.placed_max = placed_max;
        if let Some(clock) = &mut self.clock {
            clock.note_placed();
        }
        emitted
    }

    /// Writes a tick if one is due.
    pub(super) fn write_tick(&mut self) {
        let Some(clock) = &mut self.clock else { return };
        // When all feeds have ended the run is over.
        let is_over = self.feeds.iter().all(|feed| feed.is_clock || feed.closed);
        let is_read = clock.is_caught_up && self.feeds[clock.feed].in_hand().is_none();
        let ready = is_read && !clock.tick_is_owed && !clock.has_stopped && !is_over;
        // Acquire: pairs with the Release of who stopped the receivers; what is written now, nobody reads.
        let stopping = self.stopping.as_ref().is_some_and(|stopping| stopping.load(Ordering::Acquire));
        let Some(writer) = clock.writer.as_mut().filter(|_| ready && !stopping) else { return };
        let (feeds, clock_index) = (&self.feeds, clock.feed);
        let reference = TickReference { placed_max: self.placed_max, lead: self.lead_limits };
        clock.tick_is_owed = writer.write(self.patience.now_ns, &reference, || {
            let other_feeds = feeds.iter().enumerate().filter(|(i, _)| *i != clock_index);
            let feed_places = other_feeds.filter_map(|(_, feed)| {
                let UnitPlace { source, offset, part_number: part } = feed.passed?;
                Some((
                    feed.name.clone(),
                    MessagePlace { file: feed.sources[source].file.clone(), offset, part },
                ))
            });
            feed_places.collect::<BTreeMap<_, _>>()
        });
    }
}

const MARK: u8 = 0;
const END: u8 = 1;
const MESSAGE: u8 = 2;
