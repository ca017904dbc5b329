//! The bound on the lead of an event's time: one wrong clock must not move the merge for everyone.
//!
//! An event that was received at a known time is compared with that time, any other with the other feeds. An event
//! that leads by more keeps its place in its feed, has the flag `clock_ahead`, and changes no time by which anything
//! is merged.

use crate::block::{Block, BlockMessage, BlockMessageKind};
use crate::formats::stamp::{last_byte, time_of};
use crate::pipeline::feed_state::{FeedState, SourceState};
use std::time::Duration;
use unitape_model::UnixNanos;

/// The bound on the lead of an event's time; `None`: without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockLeadLimits {
    /// Before the time at which its message was received, where that is known and recorded.
    pub receipt: Option<Duration>,
    /// Before the latest time of all other feeds and of the tape, where it is not.
    pub feeds: Option<Duration>,
}

impl Default for ClockLeadLimits {
    fn default() -> Self {
        Self { receipt: Some(Duration::from_secs(600)), feeds: Some(Duration::from_secs(366 * 86_400)) }
    }
}

impl ClockLeadLimits {
    /// Without bound.
    pub const UNBOUNDED: Self = Self { receipt: None, feeds: None };

    /// The latest time that is believed of what was received at `ts`.
    pub fn after_receipt(&self, ts: UnixNanos) -> UnixNanos {
        after(ts, self.receipt)
    }

    /// The latest time that is believed beside a time of the other feeds.
    pub fn after_feeds(&self, ts: UnixNanos) -> UnixNanos {
        after(ts, self.feeds)
    }
}

fn after(ts: UnixNanos, lead: Option<Duration>) -> UnixNanos {
    let ns = |lead: Duration| i64::try_from(lead.as_nanos()).unwrap_or(i64::MAX);
    lead.map_or(UnixNanos::MAX, |lead| UnixNanos(ts.0.saturating_add(ns(lead))))
}

/// A time before 1990 says nothing of what time it is: it is unknown, or of a simulation.
pub const KNOWN_SINCE: UnixNanos = UnixNanos(631_152_000_000_000_000);

/// A time that says what time it is.
pub fn known_time(ts: UnixNanos) -> Option<UnixNanos> {
    Some(ts).filter(|ts| *ts >= KNOWN_SINCE)
}

impl Block {
    /// The earliest time at which any of it was received.
    pub fn received_first(&self) -> Option<UnixNanos> {
        self.times.iter().filter_map(|(_, ts)| known_time(*ts)).min()
    }
}

impl SourceState {
    /// Whether a message that is on the tape already leads. `placed_max` is the latest time that was believed when
    /// the run began.
    fn leads_on_tape(&self, unit: &BlockMessage, placed_max: UnixNanos) -> Option<bool> {
        let there = self.on_tape_through.is_some_and(|t| unit.offset <= t);
        there.then(|| {
            unit.ts > placed_max && known_time(placed_max).is_some()
                || self.ahead.binary_search(&unit.offset).is_ok()
        })
    }
}

/// The sequencer's knowledge of time when it looks at a message.
#[derive(Clone, Copy, Debug)]
pub struct ClockLeadContext {
    /// The bounds.
    pub lead: ClockLeadLimits,
    /// The latest time that was placed and believed.
    pub placed_max: UnixNanos,
    /// The latest time that was placed and believed when the run began.
    pub placed_before: UnixNanos,
    /// There is another feed.
    pub merges: bool,
}

impl ClockLeadContext {
    /// Up to this event time nothing of the block's messages can lead, but for those that the tape has.
    pub fn ceiling(&self, feed: &FeedState, block: &Block) -> UnixNanos {
        match block.received_min {
            Some(ts) if feed.received => self.lead.after_receipt(ts),
            _ if !self.merges => UnixNanos::MAX,
            _ if known_time(self.placed_max).is_some() => self.lead.after_feeds(self.placed_max),
            _ => UnixNanos::MIN,
        }
    }

    /// Whether [`ClockLeadContext::leads`] is to be asked of this message.
    #[inline]
    pub fn is_in_doubt(&self, unit: &BlockMessage, state: &SourceState, ceiling: UnixNanos) -> bool {
        unit.ts > ceiling
            || state.on_tape_through.is_some() && state.leads_on_tape(unit, self.placed_before) == Some(true)
    }

    /// Whether a message leads by more than it may; `others` is the latest time at hand of the other feeds.
    pub fn leads(&self, unit: &BlockMessage, feed: &FeedState, block: &Block, others: UnixNanos) -> bool {
        if matches!(
            unit.what,
            BlockMessageKind::Quarantine
                | BlockMessageKind::QuarantinePart { .. }
                | BlockMessageKind::Switch
                | BlockMessageKind::Progress { .. }
        ) {
            return false;
        }
        if let Some(leads) = feed.sources[block.source].leads_on_tape(unit, self.placed_before) {
            return leads;
        }
        let received = || time_of(&block.times, last_byte(unit.offset, unit.length)).and_then(known_time);
        if let Some(ts) = Some(()).filter(|()| feed.received).and_then(|()| received()) {
            return unit.ts > self.lead.after_receipt(ts);
        }
        let latest = known_time(self.placed_max.max(others));
        self.merges && latest.is_some_and(|ts| unit.ts > self.lead.after_feeds(ts))
    }
}
