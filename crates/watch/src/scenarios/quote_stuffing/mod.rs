//! Quote stuffing: a trader floods one book with orders and pulls them within moments.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The trader and the instrument of a cancel or an execution that names none are those of its order. A new order
//!   or an amend without trader, venue or instrument takes no part, as in `order_to_trade_ratio`.
//! - *On each cancel*: a cancel by the trader. Cancels and amends that the venue made are no messages.
//! - *F*: the order was live when the cancel came. An order whose entry is stamped after its cancel was alive for
//!   less than any limit.
//! - *X*: every execution counts, whatever its quantity.
//! - The window is read literally: an event stamped later than the cancel is not in it. An alert that the cooldown
//!   holds back does not begin a new cooldown.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::cooldown::AlertCooldowns;
use crate::exact::BILLION;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeSums;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use serde_json::json;
use unitape_model::{EventField, EventKind, InstrumentId, NameKind};

/// The name of the scenario.
pub const ID: &str = "quote_stuffing";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct QuoteStuffingScenario {
    window_ns: i128,
    max_live_ns: i128,
    min_msgs: u64,
    /// Billionths of a percent.
    min_fast_cancel: u64,
    /// Billionths of a percent.
    max_exec: u64,
    /// Messages, cancels, fast cancels and executions.
    counts: TimeSums<TraderBook, [u64; 4]>,
    cooldowns: AlertCooldowns<TraderBook>,
    late: u64,
}

/// A trader in an instrument at a venue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct TraderBook {
    trader: u32,
    venue: u16,
    instr: InstrumentId,
}

state_value!(TraderBook { trader, venue, instr });
watch_state!(QuoteStuffingScenario {
    counts, cooldowns, late | window_ns, max_live_ns, min_msgs, min_fast_cancel, max_exec,
});

impl QuoteStuffingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.millis("window_ms");
        Self {
            window_ns,
            max_live_ns: params.millis("max_live_ms"),
            min_msgs: params.uint("min_msgs"),
            min_fast_cancel: params.nano("min_fast_cancel_pct"),
            max_exec: params.nano("max_exec_pct"),
            counts: TimeSums::new(window_ns),
            cooldowns: AlertCooldowns::new(params.millis("cooldown_ms")),
            late: 0,
        }
    }

    /// Returns whether F × 100 ≥ limit × C and X × 100 ≤ limit × N, with enough messages. The products are under 2^125.
    fn is_stuffing(&self, [n, c, f, x]: [u64; 4]) -> bool {
        let percent = |count: u64| i128::from(count) * 100 * BILLION;
        n >= self.min_msgs
            && percent(f) >= i128::from(self.min_fast_cancel) * i128::from(c)
            && percent(x) <= i128::from(self.max_exec) * i128::from(n)
    }
}

impl Scenario for QuoteStuffingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let key = TraderBook { trader: input.trader, venue: input.venue, instr: input.instr };
        let lacking = match key {
            TraderBook { trader: 0, .. } => Some(EventField::Trader),
            TraderBook { venue: 0, .. } => Some(EventField::Venue),
            TraderBook { instr: InstrumentId(0), .. } => Some(EventField::Instr),
            _ => None,
        };
        if let Some(field) = lacking {
            return out.missing(MissingValue::Field(field));
        }
        let (ts, kind) = (input.ts, input.event.kind());
        let is_fast = input.order.is_some_and(|update| {
            update.was_live && i128::from(ts.0) - i128::from(update.order.entry_ts.0) <= self.max_live_ns
        });
        let count = match kind {
            EventKind::OrderCancel => [1, 1, u64::from(is_fast), 0],
            EventKind::Exec => [0, 0, 0, 1],
            _ => [1, 0, 0, 0],
        };
        self.counts.add(key, ts, &count, input.context.expiry_ts);
        if kind != EventKind::OrderCancel {
            return;
        }
        let (counts, is_complete) = self.counts.sum(&key, i128::from(ts.0) - self.window_ns, ts);
        self.late += u64::from(!is_complete);
        if self.is_stuffing(counts) && self.cooldowns.may_fire(key, ts) {
            let context = input.context;
            let [n, c, f, x] = counts;
            let detail = json!({ "msgs": n, "cancels": c, "fast_cancels": f, "execs": x });
            let key = vec![
                ("trader", context.name(NameKind::Trader, key.trader)),
                ("venue", context.name(NameKind::Venue, key.venue.into())),
                ("instr", context.name(NameKind::Instrument, key.instr.0)),
            ];
            out.alert(Alert::new(ID, ts, context.seq, key, context.detail(detail, [])));
        }
    }

    fn reset(&mut self) {
        self.counts.clear();
        self.cooldowns.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let logs = self.counts.logs();
        ScenarioMetrics {
            held_back: self.cooldowns.held_back,
            late: self.late,
            expired: logs.expired,
            bound_hit: logs.bound_hit + self.cooldowns.bound_hit(),
            held_entries: logs.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
