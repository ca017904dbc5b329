//! Order-to-trade ratio: a trader floods the market with messages and hardly trades.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The trader of a cancel or an execution that names none is that of its order. A new order or an amend without
//!   one says nothing and is counted as `missing`, as is a cancel or an execution of an order nobody knows.
//! - The window is read literally, from the time of the current event: events with a later stamp are not in it. Time
//!   may go back. An event that comes up to one window late is counted exactly. If it comes later, an event that
//!   belongs into its window may be forgotten; then the late event is counted as `late`.
//! - An alert that is held back by the cooldown is counted and does not begin a new one.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::cooldown::AlertCooldowns;
use crate::exact::BILLION;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use crate::windows::SlidingWindows;
use serde_json::json;
use unitape_model::{EventField, EventKind, NameKind};

/// The name of the scenario.
pub const ID: &str = "order_to_trade_ratio";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

const MESSAGES: usize = 0;
const EXECUTIONS: usize = 1;

/// The scenario.
pub struct OrderToTradeScenario {
    min_msgs: u64,
    /// Billionths.
    max_ratio: u64,
    windows: SlidingWindows<u32, 2>,
    cooldowns: AlertCooldowns<u32>,
    late: u64,
}

watch_state!(OrderToTradeScenario { windows, cooldowns, late | min_msgs, max_ratio });

impl OrderToTradeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            min_msgs: params.uint("min_msgs"),
            max_ratio: params.nano("max_ratio"),
            windows: SlidingWindows::new(params.millis("window_ms")),
            cooldowns: AlertCooldowns::new(params.millis("cooldown_ms")),
            late: 0,
        }
    }

    /// Returns whether N ≥ least and N > ratio × X. The product is under 2^93.
    #[inline]
    fn is_burst(&self, n: u32, x: u32) -> bool {
        u64::from(n) >= self.min_msgs && i128::from(n) * BILLION > i128::from(self.max_ratio) * i128::from(x)
    }
}

impl Scenario for OrderToTradeScenario {
    #[inline]
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let trader = input.trader;
        if trader == 0 {
            return out.missing(MissingValue::Field(EventField::Trader));
        }
        let class = if input.event.kind() == EventKind::Exec { EXECUTIONS } else { MESSAGES };
        let window_counts = self.windows.add(trader, class, input.ts, input.context.expiry_ts);
        self.late += u64::from(!window_counts.is_complete);
        let [n, x] = window_counts.counts;
        if self.is_burst(n, x) && self.cooldowns.may_fire(trader, input.ts) {
            let key = vec![("trader", input.context.name(NameKind::Trader, trader))];
            let detail = json!({"msgs": n, "execs": x});
            out.alert(Alert::new(ID, input.ts, input.context.seq, key, detail));
        }
    }

    fn reset(&mut self) {
        self.windows.clear();
        self.cooldowns.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            held_back: self.cooldowns.held_back,
            expired: self.windows.expired,
            bound_hit: self.windows.bound_hit + self.cooldowns.bound_hit(),
            held_entries: self.windows.entry_count() as u64,
            late: self.late,
            ..ScenarioMetrics::default()
        }
    }
}
