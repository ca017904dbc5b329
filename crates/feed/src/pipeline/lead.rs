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

    /// Returns the latest credible event time of a message received at `ts`.
    pub fn after_receipt(&self, ts: UnixNanos) -> UnixNanos {
        latest_time(ts, self.receipt)
    }

    /// Returns the latest credible event time if another feed is at `ts`.
    pub fn after_feeds(&self, ts: UnixNanos) -> UnixNanos {
        latest_time(ts, self.feeds)
    }
}

fn latest_time(ts: UnixNanos, lead: Option<Duration>) -> UnixNanos {
    let ns = |lead: Duration| i64::try_from(lead.as_nanos()).unwrap_or(i64::MAX);
    lead.map_or(UnixNanos::MAX, |lead| UnixNanos(ts.0.saturating_add(ns(lead))))
}

/// A time before 1990 says nothing of what time it is: it is unknown, or of a simulation.
pub const KNOWN_SINCE: UnixNanos = UnixNanos(631_152_000_000_000_000);

/// Returns `ts` if it is late enough to be a real time.
pub fn known_time(ts: UnixNanos) -> Option<UnixNanos> {
    Some(ts).filter(|ts| *ts >= KNOWN_SINCE)
}

impl Block {
    /// Returns the earliest receive time of any byte of the block.
    pub fn received_first(&self) -> Option<UnixNanos> {
        self.times.iter().filter_map(|(_, ts)| known_time(*ts)).min()
    }
}

impl SourceState {
    /// Returns whether a message that is on the tape already leads. `placed_max` is the latest credible time when the
    /// run began.
    fn leads_on_tape(&self, unit: &BlockMessage, placed_max: UnixNanos) -> Option<bool> {
        let is_on_tape = self.on_tape_through.is_some_and(|t| unit.offset <= t);
        is_on_tape.then(|| {
            unit.ts > placed_max && known_time(placed_max).is_some()
                || self.ahead_offsets.binary_search(&unit.offset).is_ok()
        })
    }
}

/// The sequencer's knowledge of time when it looks at a message.
#[derive(Clone, Copy, Debug)]
pub struct ClockLeadContext {
    /// The bounds.
    pub lead: ClockLeadLimits,
    /// The latest credible time that was placed.
    pub placed_max: UnixNanos,
    /// The latest credible time that was placed when the run began.
    pub placed_before: UnixNanos,
    /// There is another feed.
    pub merges: bool,
}

impl ClockLeadContext {
    /// Returns the event time up to which no message of the block can lead, except messages that the tape already
    /// has.
    pub fn ceiling(&self, feed: &FeedState, block: &Block) -> UnixNanos {
        match block.received_min {
            Some(ts) if feed.received => self.lead.after_receipt(ts),
            _ if !self.merges => UnixNanos::MAX,
            _ if known_time(self.placed_max).is_some() => self.lead.after_feeds(self.placed_max),
            _ => UnixNanos::MIN,
        }
    }

    /// Returns whether [`ClockLeadContext::leads`] must check this message.
    #[inline]
    pub fn is_in_doubt(&self, unit: &BlockMessage, state: &SourceState, ceiling: UnixNanos) -> bool {
        unit.ts > ceiling
            || state.on_tape_through.is_some() && state.leads_on_tape(unit, self.placed_before) == Some(true)
    }

    /// Returns whether a message leads by more than the limit; `latest_other_ts` is the latest available time of the
    /// other feeds.
    pub fn leads(
        &self,
        unit: &BlockMessage,
        feed: &FeedState,
        block: &Block,
        latest_other_ts: UnixNanos,
    ) -> bool {
        if matches!(
            unit.kind,
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
        let latest = known_time(self.placed_max.max(latest_other_ts));
        self.merges && latest.is_some_and(|ts| unit.ts > self.lead.after_feeds(ts))
    }
}
