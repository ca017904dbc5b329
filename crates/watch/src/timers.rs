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
pub struct DueTimer {
    /// Its due time.
    pub at: UnixNanos,
    /// The scenario's token for the timer.
    pub token: u64,
}

/// The timers of all scenarios of a watch.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    /// Due, order of setting, scenario, token.
    heap: BinaryHeap<Reverse<(UnixNanos, u64, usize, u64)>>,
    set: u64,
    pub bound_hit: u64,
}

impl TimerQueue {
    /// Sets a timer of the scenario number `scenario`.
    pub fn set(&mut self, scenario: usize, at: UnixNanos, token: u64) {
        if self.heap.len() == TIMERS_MAX {
            self.bound_hit += 1;
            return;
        }
        self.heap.push(Reverse((at, self.set, scenario, token)));
        self.set += 1;
    }

    /// The next timer that is due at `now`: the earliest, of these the one set first.
    #[inline]
    pub fn pop(&mut self, now: UnixNanos) -> Option<(usize, DueTimer)> {
        if self.heap.peek().is_none_or(|Reverse((at, ..))| *at > now) {
            return None;
        }
        let Reverse((at, _, scenario, token)) = self.heap.pop()?;
        Some((scenario, DueTimer { at, token }))
    }

    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::naive::stream::{Op, SILENT, arena, run};
    use crate::{
        Alert, ConductClass, Scenario, ScenarioContext, ScenarioDef, ScenarioInput, ScenarioMetrics,
        ScenarioOutput, Watch,
    };
    use unitape_model::EventKind;

    static DEF: ScenarioDef = ScenarioDef {
        id: "echo",
        title: "Says of each order, ten later, how many it has seen by then",
        class: ConductClass::Market,
        inputs: &[EventKind::OrderNew],
        needs: &[],
        key: &["token"],
        params: &[],
        trigger: "",
        clarified: "",
        regulation: &[],
    };

    #[derive(Default)]
    struct EchoScenario {
        seen: u64,
    }

    impl Scenario for EchoScenario {
        fn def(&self) -> &'static ScenarioDef {
            &DEF
        }

        fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
            self.seen += 1;
            out.wake_at(UnixNanos(input.event.ts_event().0 + 10), input.context.seq);
        }

        fn on_timer(&mut self, due: DueTimer, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
            let key = vec![("token", due.token.to_string())];
            out.alert(Alert::new(DEF.id, due.at, context.seq, key, self.seen.into()));
            // A timer that is due at once fires with the same event.
            if due.token < 100 {
                out.wake_at(due.at, due.token + 100);
            }
        }

        fn reset(&mut self) {
            self.seen = 0;
        }

        fn metrics(&self) -> ScenarioMetrics {
            ScenarioMetrics::default()
        }
    }

    fn run_steps(watch: &mut Watch, steps: &[(EventKind, i64)]) -> Vec<(i64, u64, String, u64)> {
        let ops: Vec<Op> = steps.iter().map(|&(kind, by)| Op { kind, by, ..SILENT }).collect();
        let said = run(watch, &arena(&ops));
        said.into_iter()
            .map(|a| (a.ts.0, a.trigger_seq, a.key[0].1.clone(), a.detail.as_u64().unwrap()))
            .collect()
    }

    /// A timer must fire at the first event of its time or later, of whatever kind, before that event counts; at none
    /// that is earlier, and never without one.
    #[test]
    fn timers_fire_before_the_event_that_brings_their_time() {
        let (order, clock) = (EventKind::OrderNew, EventKind::Clock);
        let mut watch = Watch::from_scenarios(vec![Box::new(EchoScenario::default())]);
        let one = |ts, seq, token: u64, seen| (ts, seq, token.to_string(), seen);
        assert_eq!(
            run_steps(&mut watch, &[(order, 0), (clock, 9), (order, 1)]),
            [one(10, 3, 1, 1), one(10, 3, 101, 1)]
        );
        watch.reset();
        // The pending timer is gone: the order of time 10 has no effect.
        assert_eq!(run_steps(&mut watch, &[(clock, 100)]), []);
        watch.reset();
        // Two due at one event, and those that they set: by key, as the alerts of an event are. Time that goes back
        // brings nothing.
        assert_eq!(
            run_steps(&mut watch, &[(order, 5), (order, -1), (clock, -4), (clock, 100), (clock, 1)]),
            [one(15, 4, 1, 2), one(15, 4, 101, 2), one(14, 4, 102, 2), one(14, 4, 2, 2)]
        );
    }

    /// Timers once came out in the order of the heap, which is that of nothing.
    #[test]
    fn timers_of_one_time_fire_in_the_order_they_were_set() {
        let mut timers = TimerQueue::default();
        for (token, at) in [5, 3, 5, 3, 4].into_iter().enumerate() {
            timers.set(0, UnixNanos(at), token as u64);
        }
        let fired: Vec<u64> =
            std::iter::from_fn(|| timers.pop(UnixNanos(5))).map(|(_, due)| due.token).collect();
        assert_eq!(fired, [1, 3, 4, 0, 2]);
    }
}
