//! Structuring: an account pays a large sum in parts that each stay a little under the reporting threshold.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A payment counts by its stage, as docs/events.md says ("Stages of a payment"). A transfer is remembered while the event that
//!   counted is less than the window old, also if that event was outside the band or time went back. A payment with
//!   neither `uetr` nor `ref` is a transfer of its own.
//! - A payment without debtor account, currency or an amount above zero does not count and is counted as `missing`.
//! - The scenario judges at a payment that counts and is in the band. The end of a cooldown alone raises no alert.
//! - The band is `threshold × (100 − band_pct) ÷ 100 ≤ amt < threshold`. Above 100 % it reaches down to every amount.
//! - The window is read literally, from the time of the current payment: later stamps are not in it.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::cooldown::AlertCooldowns;
use crate::ids::IdKey;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::time_logs::{TimeLogs, TimeSums};
use crate::transfers::{Payment, Transfers, alert_key};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::EventKind;

/// The name of the scenario.
pub const ID: &str = "payments_structuring";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Payment];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct StructuringScenario {
    window_ns: i128,
    threshold: Number,
    /// The lower end of the band, times 100.
    floor_percent: Number,
    min_count: u64,
    transfers: Transfers,
    /// Number and sum of the payments in the band, by account and currency.
    sums: TimeSums<(u32, IdKey), ([u64; 1], Number)>,
    /// The same payments, as evidence.
    payments: TimeLogs<(u32, IdKey), EvidencePlace>,
    cooldowns: AlertCooldowns<(u32, IdKey)>,
    late: u64,
}

watch_state!(StructuringScenario {
    transfers, sums, payments, cooldowns, late | window_ns, threshold, floor_percent, min_count
});

impl StructuringScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = i128::from(params.uint("window_h")) * HOUR_NS;
        let threshold = Number::from(params.amount("threshold"));
        let band_percent = Number::billionths(params.nano("band_pct"));
        Self {
            window_ns,
            threshold,
            floor_percent: threshold * (Number::whole(100) - band_percent),
            min_count: params.uint("min_count"),
            transfers: Transfers::new(window_ns),
            sums: TimeSums::new(window_ns),
            payments: TimeLogs::new(window_ns),
            cooldowns: AlertCooldowns::new(i128::from(params.uint("cooldown_h")) * HOUR_NS),
            late: 0,
        }
    }
}

impl Scenario for StructuringScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context) = (input.ts, input.context);
        let Some(payment) = Payment::read(input.event, out) else { return };
        let Some(key) = payment.debtor(out) else { return };
        if !self.transfers.admit(&payment, input.ts, input.context.expiry_ts) {
            return;
        }
        let amt = Number::from(payment.amt);
        if amt >= self.threshold || amt * Number::whole(100) < self.floor_percent {
            return;
        }
        self.sums.add(key, ts, &([1], amt), context.expiry_ts);
        self.payments.add(key, ts, context.place(), context.expiry_ts);
        let after = i128::from(ts.0) - self.window_ns;
        let (([count], sum), is_complete) = self.sums.sum(&key, after, ts);
        self.late += u64::from(!is_complete);
        let is_structured = count >= self.min_count && sum >= self.threshold;
        if is_structured && self.cooldowns.may_fire(key, ts) {
            let places = self.payments.window(&key, after, ts).iter().map(|(_, place)| *place);
            let values = json!({"count": count, "sum": sum.text(), "threshold": self.threshold.text()});
            let detail = context.detail(values, places);
            out.alert(Alert::new(ID, ts, context.seq, alert_key("dr_acct", &payment, input), detail));
        }
    }

    fn reset(&mut self) {
        self.transfers.clear();
        self.sums.clear();
        self.payments.clear();
        self.cooldowns.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let transfers = self.transfers.metrics();
        let (sums, payments) = (self.sums.logs(), &self.payments);
        ScenarioMetrics {
            held_back: self.cooldowns.held_back,
            late: transfers.late + self.late,
            expired: transfers.expired + sums.expired,
            bound_hit: transfers.bound_hit + sums.bound_hit + payments.bound_hit + self.cooldowns.bound_hit(),
            held_entries: transfers.held_entries + sums.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const HOUR_NS: i128 = 3_600_000_000_000;
