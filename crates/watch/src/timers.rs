//! Timers on event time.
//!
//! A timer due at D fires when the first event stamped D or later arrives, before that event changes anything:
//! the alert is of time D and triggered by that event. No later event, no alert.

use crate::state::{StateFault, StateReader, StateValue, WatchState};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unitape_model::UnixNanos;

/// Timers that may wait at most; one more is counted and not set.
const TIMERS_MAX: usize = 1 << 20;

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTimer {
    /// Its due time.
    pub due_ts: UnixNanos,
    /// The scenario's token for the timer.
    pub token: u64,
}

/// The timers of all scenarios of a watch.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    /// Due, order of setting, scenario, token.
    heap: BinaryHeap<Reverse<(UnixNanos, u64, usize, u64)>>,
    last_timer: u64,
    pub bound_hit: u64,
}

/// In the order in which the timers are due.
impl WatchState for TimerQueue {
    fn save(&self, out: &mut Vec<u8>) {
        let mut timers: Vec<_> = self.heap.iter().map(|Reverse(timer)| *timer).collect();
        timers.sort_unstable();
        let timers: Vec<_> = timers
            .into_iter()
            .map(|(due_ts, number, scenario, token)| ((due_ts, number), (scenario, token)))
            .collect();
        timers.write(out);
        (self.last_timer, self.bound_hit).write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        let timers = Vec::<((UnixNanos, u64), (usize, u64))>::read(input)?.into_iter();
        self.heap = timers
            .map(|((due_ts, number), (scenario, token))| Reverse((due_ts, number, scenario, token)))
            .collect();
        (self.last_timer, self.bound_hit) = StateValue::read(input)?;
        Ok(())
    }
}

impl TimerQueue {
    /// Sets a timer of the scenario number `scenario`.
    pub fn set(&mut self, scenario: usize, due_ts: UnixNanos, token: u64) {
        if self.heap.len() == TIMERS_MAX {
            self.bound_hit += 1;
            return;
        }
        self.heap.push(Reverse((due_ts, self.last_timer, scenario, token)));
        self.last_timer += 1;
    }

    /// Takes the earliest timer that is due at `now`. Of timers with the same time, takes the timer that was set first.
    #[inline]
    pub fn pop(&mut self, now: UnixNanos) -> Option<(usize, DueTimer)> {
        if self.heap.peek().is_none_or(|Reverse((due_ts, ..))| *due_ts > now) {
            return None;
        }
        let Reverse((due_ts, _, scenario, token)) = self.heap.pop()?;
        Some((scenario, DueTimer { due_ts, token }))
    }

    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::SessionDates;
    use crate::state::watch_state;
    use crate::twin::naive::stream::{Op, SILENT, arena, run};
    use crate::watch::RunningScenario;
    use crate::{Alert, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, Watch};
    use std::sync::Arc;
    use unitape_model::EventKind;

    #[derive(Default)]
    struct EchoScenario {
        event_count: u64,
    }

    watch_state!(EchoScenario { event_count });

    impl Scenario for EchoScenario {
        fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
            self.event_count += 1;
            out.wake_at(UnixNanos(input.ts.0 + 10), input.context.seq);
        }

        fn on_timer(&mut self, due: DueTimer, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
            let key = vec![("token", due.token.to_string())];
            out.alert(Alert::new("echo", due.due_ts, context.seq, key, self.event_count.into()));
            // A timer that is due at once fires with the same event.
            if due.token < 100 {
                out.wake_at(due.due_ts, due.token + 100);
            }
        }

        fn reset(&mut self) {
            self.event_count = 0;
        }

        fn metrics(&self) -> ScenarioMetrics {
            ScenarioMetrics::default()
        }
    }

    fn run_steps(watch: &mut Watch, steps: &[(EventKind, i64)]) -> Vec<(i64, u64, String, u64)> {
        let ops: Vec<Op> =
            steps.iter().map(|&(kind, delay_ns)| Op { kind, by: delay_ns, ..SILENT }).collect();
        let alerts = run(watch, &arena(&ops));
        alerts
            .into_iter()
            .map(|a| (a.ts.0, a.trigger_seq, a.key[0].1.clone(), a.detail.as_u64().unwrap()))
            .collect()
    }

    /// Fails if a timer does not fire at the first event of its time or later, before that event counts. An event of
    /// any kind counts; an earlier event must not fire it.
    #[test]
    fn timers_fire_before_the_event_that_brings_their_time() {
        let (order, clock) = (EventKind::OrderNew, EventKind::Clock);
        let echo = Box::new(EchoScenario::default());
        let echo = RunningScenario::new("echo", &[EventKind::OrderNew], &[], echo);
        let mut watch = Watch::from_scenarios(vec![echo], SessionDates::new(Arc::default()));
        let expected_alert = |ts, seq, token: u64, event_count| (ts, seq, token.to_string(), event_count);
        assert_eq!(
            run_steps(&mut watch, &[(order, 0), (clock, 9), (order, 1)]),
            [expected_alert(10, 3, 1, 1), expected_alert(10, 3, 101, 1)]
        );
        watch.reset();
        // The pending timer is gone: the order of time 10 has no effect.
        assert_eq!(run_steps(&mut watch, &[(clock, 100)]), []);
        watch.reset();
        // Two timers due at one event, and the timers that they set, fire by key, as the alerts of an event do. A time
        // that goes back fires nothing.
        assert_eq!(
            run_steps(&mut watch, &[(order, 5), (order, -1), (clock, -4), (clock, 100), (clock, 1)]),
            [
                expected_alert(15, 4, 1, 2),
                expected_alert(15, 4, 101, 2),
                expected_alert(14, 4, 102, 2),
                expected_alert(14, 4, 2, 2)
            ]
        );
    }

    /// Fails if timers fire in the order of the heap, as they once did.
    #[test]
    fn timers_of_one_time_fire_in_the_order_they_were_set() {
        let mut timers = TimerQueue::default();
        for (token, due_ts) in [5, 3, 5, 3, 4].into_iter().enumerate() {
            timers.set(0, UnixNanos(due_ts), token as u64);
        }
        let fired: Vec<u64> =
            std::iter::from_fn(|| timers.pop(UnixNanos(5))).map(|(_, due)| due.token).collect();
        assert_eq!(fired, [1, 3, 4, 0, 2]);
    }
}
