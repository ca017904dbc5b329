//! Timers on event time.
//!
//! A timer due at D fires when the first event stamped D or later arrives, before that event changes anything:
//! the alert is of time D and triggered by that event. No later event, no alert.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unitape_model::UnixNanos;

/// Timers that may wait at most; one more is counted and not set.
const TIMERS_MAX: usize = 1 << 20;

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When it was due.
    pub at: UnixNanos,
    /// What its scenario gave it to know it by.
    pub token: u64,
}

/// The timers of all scenarios of a watch.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Due, order of setting, scenario, token.
    heap: BinaryHeap<Reverse<(i64, u64, usize, u64)>>,
    set: u64,
    pub bound_hit: u64,
}

impl Timers {
    /// Sets a timer of the scenario number `scenario`.
    pub fn set(&mut self, scenario: usize, at: UnixNanos, token: u64) {
        if self.heap.len() == TIMERS_MAX {
            self.bound_hit += 1;
            return;
        }
        self.heap.push(Reverse((at.0, self.set, scenario, token)));
        self.set += 1;
    }

    /// The next timer that is due at `now`: the earliest, of these the one set first.
    #[inline]
    pub fn pop(&mut self, now: i64) -> Option<(usize, Due)> {
        if self.heap.peek().is_none_or(|Reverse((at, ..))| *at > now) {
            return None;
        }
        let Reverse((at, _, scenario, token)) = self.heap.pop()?;
        Some((scenario, Due { at: UnixNanos(at), token }))
    }

    pub fn clear(&mut self) {
        self.heap.clear();
    }
}
