//! Ping orders: small orders that never rest look for hidden liquidity, and a large order follows.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *IOC* is `tif` `IOC`. A probe has a quantity above zero. Its key is that of its `order_new`; what an amend
//!   names later does not count.
//! - *Last probe* is the last by sequence of the probes in the window.
//! - *Had an exec*: an execution with a quantity above zero, whatever its owner or side, of a probe in the window.
//! - *Another order* without a quantity, or without a part of the key, takes no part.
//! - Nothing is consumed: each further order may alert.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::{OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind, SideBook,
};
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, EventValue};

/// The name of the scenario.
pub const ID: &str = "ping_orders";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderNew, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct PingOrdersScenario {
    window_ns: i128,
    follow_ns: i128,
    max_ping_qty: Number,
    min_pings: u64,
    min_follow_ratio: Number,
    probes: TimeLogs<SideBook, PingProbe>,
    /// The probe in each slot of the orders.
    marks: Vec<ProbeMark>,
    late: u64,
}

/// A probe.
#[derive(Clone, Copy)]
struct PingProbe {
    place: EvidencePlace,
    qty: Decimal,
    /// Something of it was executed.
    is_executed: bool,
}

#[derive(Clone, Copy, Default)]
struct ProbeMark {
    /// 0 if the order is no probe.
    entry_seq: u64,
    /// The owner that its `order_new` names.
    owner: u32,
}

state_value!(PingProbe { place, qty, is_executed });
state_value!(ProbeMark { entry_seq, owner });
watch_state!(PingOrdersScenario {
    probes, marks, late | window_ns, follow_ns, max_ping_qty, min_pings, min_follow_ratio,
});

impl PingOrdersScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.millis("window_ms");
        Self {
            window_ns,
            follow_ns: params.millis("follow_ms"),
            max_ping_qty: params.amount("max_ping_qty").into(),
            min_pings: params.uint("min_pings"),
            min_follow_ratio: Number::billionths(params.nano("min_follow_ratio")),
            probes: TimeLogs::new(window_ns),
            marks: Vec::new(),
            late: 0,
        }
    }

    fn on_entry(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let slot = update.slot as usize;
        if self.marks.len() <= slot {
            self.marks.resize(slot + 1, ProbeMark::default());
        }
        // The slot may have belonged to another order.
        self.marks[slot] = ProbeMark::default();
        let key = match input.side_book() {
            Ok(key) => key,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let Some(qty) = input.record.and_then(quantity) else {
            return out.missing(MissingValue::Field(EventField::Qty));
        };
        let is_small = qty.mantissa() > 0 && Number::from(qty) <= self.max_ping_qty;
        let mut scratch = [0; 36];
        let tif = input.event.field(EventField::Tif, &mut scratch);
        if is_small && matches!(tif, Some(EventValue::Text("IOC"))) {
            let place = input.context.place();
            self.marks[slot] = ProbeMark { entry_seq: place.seq, owner: key.owner };
            let probe = PingProbe { place, qty, is_executed: false };
            return self.probes.add(key, input.ts, probe, input.context.expiry_ts);
        }
        let window = self.probes.window(&key, i128::from(input.ts.0) - self.window_ns, input.ts);
        self.late += u64::from(!window.is_complete);
        if (window.len() as u64) < self.min_pings {
            return;
        }
        let Some((last_ts, _)) = window.iter().max_by_key(|(_, probe)| probe.place.seq) else { return };
        let is_soon = i128::from(input.ts.0) - i128::from(last_ts.0) <= self.follow_ns;
        let most = window.iter().map(|(_, probe)| Number::from(probe.qty)).max().unwrap_or_default();
        let has_executed = window.iter().any(|(_, probe)| probe.is_executed);
        if is_soon && has_executed && Number::from(qty) >= self.min_follow_ratio * most {
            let detail =
                json!({ "pings": window.len(), "max_ping_qty": most.text(), "qty": qty.to_string() });
            let evidence = window.iter().map(|(_, probe)| probe.place);
            let context = input.context;
            let detail = context.detail(detail, evidence);
            out.alert(Alert::new(ID, input.ts, context.seq, key.names(context), detail));
        }
    }
}

impl Scenario for PingOrdersScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(update) = input.order else { return };
        if input.event.kind() == EventKind::OrderNew {
            return self.on_entry(input, update, out);
        }
        let is_positive = input.record.and_then(quantity).is_some_and(|qty| qty.mantissa() > 0);
        let (mark, order) = (self.marks.get(update.slot as usize).copied().unwrap_or_default(), update.order);
        if is_positive && mark.entry_seq != 0 && Some(mark.entry_seq) == order.entry_seq() {
            let key =
                SideBook { owner: mark.owner, venue: order.venue, instr: order.instr, side: order.side };
            self.probes.retain(&key, |probe| {
                probe.is_executed |= probe.place.seq == mark.entry_seq;
                true
            });
        }
    }

    fn reset(&mut self) {
        self.probes.clear();
        self.marks.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.probes.expired,
            bound_hit: self.probes.bound_hit,
            held_entries: self.probes.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
