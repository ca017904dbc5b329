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
use crate::def::{ConductClass, ParamDef, ParamType, ScenarioDef, SharedStateKind};
use crate::exact::BILLION;
use crate::params::ScenarioParams;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput};
use crate::windows::SlidingWindows;
use serde_json::json;
use unitape_model::{EventKind, NameKind};

/// Definition of the scenario.
pub static DEF: ScenarioDef = ScenarioDef {
    id: "order_to_trade_ratio",
    title: "Order-to-trade ratio burst",
    class: ConductClass::Messaging,
    inputs: &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec],
    needs: &[SharedStateKind::Orders],
    key: &["trader"],
    params: &[
        ParamDef {
            name: "window_ms",
            default: "1000",
            unit: "ms",
            param_type: ParamType::UpTo(1_000_000_000_000),
            description: "messages and executions of less than this ago are counted",
        },
        ParamDef {
            name: "min_msgs",
            default: "50",
            unit: "messages",
            param_type: ParamType::UpTo(u32::MAX as u64),
            description: "fewer messages than this are no burst",
        },
        ParamDef {
            name: "max_ratio",
            default: "20",
            unit: "messages per execution",
            param_type: ParamType::Tolerance,
            description: "more messages than this for each execution",
        },
        ParamDef {
            name: "cooldown_ms",
            default: "60000",
            unit: "ms",
            param_type: ParamType::UpTo(1_000_000_000_000),
            description: "after an alert the same trader gives none for this long",
        },
    ],
    trigger: "Per trader on each order/exec event: N = new+amend+cancel, X = exec in (t-window,t]. Fire if \
              N>=min_msgs and N>max_ratio*X. Re-arm at last alert + cooldown (inclusive). A daily RTS 9 report is \
              separate: ratio = orders/transactions - 1 by count and by volume per member+instrument.",
    clarified: "",
    regulation: &[
        "MiFID II Art. 48(6), RTS 9 (EU) 2017/566",
        "RTS 7 Art. 12-13",
        "Del. Reg. (EU) 2016/522 Annex II (quote stuffing)",
    ],
};

const MESSAGES: usize = 0;
const EXECUTIONS: usize = 1;

/// The scenario.
pub struct OrderToTradeScenario {
    min_msgs: u64,
    /// Billionths.
    max_ratio: u64,
    windows: SlidingWindows<u32, 2>,
    cooldowns: AlertCooldowns<u32>,
    metrics: ScenarioMetrics,
}

impl OrderToTradeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            min_msgs: params.uint("min_msgs"),
            max_ratio: params.nano("max_ratio"),
            windows: SlidingWindows::new(params.millis("window_ms")),
            cooldowns: AlertCooldowns::new(params.millis("cooldown_ms")),
            metrics: ScenarioMetrics::default(),
        }
    }

    /// Returns whether N ≥ least and N > ratio × X. The product is under 2^93.
    #[inline]
    fn is_burst(&self, n: u32, x: u32) -> bool {
        u64::from(n) >= self.min_msgs && i128::from(n) * BILLION > i128::from(self.max_ratio) * i128::from(x)
    }
}

impl Scenario for OrderToTradeScenario {
    fn def(&self) -> &'static ScenarioDef {
        &DEF
    }

    #[inline]
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        self.metrics.events += 1;
        let trader = input.trader;
        if trader == 0 {
            self.metrics.missing += 1;
            return;
        }
        let class = if input.event.kind() == EventKind::Exec { EXECUTIONS } else { MESSAGES };
        let ts = input.event.ts_event();
        let window_counts = self.windows.add(trader, class, ts.0);
        self.metrics.late += u64::from(!window_counts.complete);
        let [n, x] = window_counts.counts;
        if self.is_burst(n, x) && self.cooldowns.may_fire(trader, ts) {
            self.metrics.alerts += 1;
            let key = vec![("trader", input.context.name(NameKind::Trader, trader))];
            let detail = json!({"msgs": n, "execs": x});
            out.alert(Alert::new(DEF.id, ts, input.context.seq, key, detail));
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
            ..self.metrics
        }
    }
}
