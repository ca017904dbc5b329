//! Velocity: an account pays far more often, or far more, than in the weeks before.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A payment counts by its stage, as docs/events.md says ("Stages of a payment"). A transfer is remembered while the event that
//!   counted is less than window and baseline together old. A payment with neither `uetr` nor `ref` is a transfer of its
//!   own.
//! - A payment without debtor account, currency or an amount above zero does not count and is counted as `missing`.
//! - The mean is that of a day, whatever the window is. Every payment that counts is judged, and alerts again while the
//!   conditions hold.
//! - The baseline is missing if a payment completes `min_count` in the window, and the baseline has no payment.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::IdKey;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::time_logs::{TimeLogs, TimeSums};
use crate::transfers::{Payment, Transfers, alert_key};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{EventKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "payments_velocity";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Payment];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct VelocityScenario {
    window_ns: i128,
    baseline_ns: i128,
    baseline_days: u64,
    mult: Number,
    min_count: u64,
    transfers: Transfers,
    /// Number and sum of the payments, by account and currency.
    sums: TimeSums<(u32, IdKey), ([u64; 1], Number)>,
    /// The payments of the window, as evidence.
    payments: TimeLogs<(u32, IdKey), EvidencePlace>,
    late: u64,
}

watch_state!(VelocityScenario {
    transfers, sums, payments, late | window_ns, baseline_ns, baseline_days, mult, min_count
});

impl VelocityScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = i128::from(params.uint("window_h")) * 3_600_000_000_000;
        let baseline_days = params.uint("baseline_days");
        let baseline_ns = i128::from(baseline_days) * 86_400_000_000_000;
        Self {
            window_ns,
            baseline_ns,
            baseline_days,
            mult: Number::billionths(params.nano("mult")),
            min_count: params.uint("min_count"),
            transfers: Transfers::new(window_ns + baseline_ns),
            sums: TimeSums::new(window_ns + baseline_ns),
            payments: TimeLogs::new(window_ns),
            late: 0,
        }
    }

    /// Returns number and sum of the payments of `key` in `(after, to]`. Before all time there are none.
    fn measure(&mut self, key: &(u32, IdKey), after: i128, to: i128) -> (u64, Number) {
        let Ok(to) = i64::try_from(to) else { return (0, Number::ZERO) };
        let (([count], sum), is_complete) = self.sums.sum(key, after, UnixNanos(to));
        self.late += u64::from(!is_complete);
        (count, sum)
    }
}

impl Scenario for VelocityScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context) = (input.ts, input.context);
        let Some(payment) = Payment::read(input.event, out) else { return };
        let Some(key) = payment.debtor(out) else { return };
        if !self.transfers.admit(&payment, input.ts, input.context.expiry_ts) {
            return;
        }
        self.sums.add(key, ts, &([1], payment.amt.into()), context.expiry_ts);
        self.payments.add(key, ts, context.place(), context.expiry_ts);
        let (now, begin) = (i128::from(ts.0), i128::from(ts.0) - self.window_ns);
        let (count, sum) = self.measure(&key, begin, now);
        if count < self.min_count {
            return;
        }
        let (usual_count, usual_sum) = self.measure(&key, begin - self.baseline_ns, begin);
        if usual_count == 0 {
            return out.missing(MissingValue::Baseline);
        }
        // Both sides are multiplied by the days of the mean.
        let days = Number::whole(self.baseline_days.into());
        let is_often = Number::whole(count.into()) * days >= self.mult * Number::whole(usual_count.into());
        if is_often || sum * days >= self.mult * usual_sum {
            let places = self.payments.window(&key, begin, ts).iter().map(|(_, place)| *place);
            let values = json!({"count": count, "sum": sum.text(), "baseline_count": usual_count,
                "baseline_sum": usual_sum.text(), "baseline_days": self.baseline_days});
            let detail = context.detail(values, places);
            out.alert(Alert::new(ID, ts, context.seq, alert_key("acct", &payment, input), detail));
        }
    }

    fn reset(&mut self) {
        self.transfers.clear();
        self.sums.clear();
        self.payments.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let (transfers, sums) = (self.transfers.metrics(), self.sums.logs());
        ScenarioMetrics {
            late: transfers.late + self.late,
            expired: transfers.expired + sums.expired,
            bound_hit: transfers.bound_hit + sums.bound_hit + self.payments.bound_hit,
            held_entries: transfers.held_entries + sums.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
