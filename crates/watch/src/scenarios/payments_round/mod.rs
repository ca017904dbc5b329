//! Round amounts: most payments of an account are multiples of a round sum.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A payment counts by its stage, as docs/events.md says ("Stages of a payment"). A transfer is remembered while the event that
//!   counted is less than the window old. A payment with neither `uetr` nor `ref` is a transfer of its own.
//! - A payment without debtor account or an amount above zero does not count and is counted as `missing`. A payment without
//!   a currency counts.
//! - Every payment that counts is judged, a payment of any other amount too, and alerts again while the conditions hold.
//! - With `round_to` 0 no amount is round.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::time_logs::{TimeLogs, TimeSums};
use crate::transfers::{Payment, Transfers};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{Amount, EventField, EventKind, NameKind};

/// The name of the scenario.
pub const ID: &str = "payments_round";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Payment];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct RoundAmountsScenario {
    window_ns: i128,
    round_to: u64,
    min_count: u64,
    transfers: Transfers,
    /// Number of payments and of round ones, by account.
    counts: TimeSums<u32, [u64; 2]>,
    /// The round ones, as evidence.
    round: TimeLogs<u32, EvidencePlace>,
    late: u64,
}

watch_state!(RoundAmountsScenario { transfers, counts, round, late | window_ns, round_to, min_count });

impl RoundAmountsScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = i128::from(params.uint("window_days")) * DAY_NS;
        Self {
            window_ns,
            round_to: params.uint("round_to"),
            min_count: params.uint("min_count"),
            transfers: Transfers::new(window_ns),
            counts: TimeSums::new(window_ns),
            round: TimeLogs::new(window_ns),
            late: 0,
        }
    }
}

impl Scenario for RoundAmountsScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context) = (input.ts, input.context);
        let Some(payment) = Payment::read(input.event, out) else { return };
        let acct = payment.dr_acct;
        if acct == 0 {
            return out.missing(MissingValue::Field(EventField::DrAcct));
        }
        if !self.transfers.admit(&payment, input.ts, input.context.expiry_ts) {
            return;
        }
        let is_round = is_multiple(payment.amt, self.round_to);
        self.counts.add(acct, ts, &[1, is_round.into()], context.expiry_ts);
        if is_round {
            self.round.add(acct, ts, context.place(), context.expiry_ts);
        }
        let after = i128::from(ts.0) - self.window_ns;
        let ([count, round], is_complete) = self.counts.sum(&acct, after, ts);
        self.late += u64::from(!is_complete);
        if round >= self.min_count && round * 100 >= count * USUAL_PERCENT {
            let key = vec![("acct", context.name(NameKind::Account, acct))];
            let places = self.round.window(&acct, after, ts).iter().map(|(_, place)| *place);
            let detail = context.detail(json!({"round": round, "payments": count}), places);
            out.alert(Alert::new(ID, ts, context.seq, key, detail));
        }
    }

    fn reset(&mut self) {
        self.transfers.clear();
        self.counts.clear();
        self.round.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let (transfers, counts) = (self.transfers.metrics(), self.counts.logs());
        ScenarioMetrics {
            late: transfers.late + self.late,
            expired: transfers.expired + counts.expired,
            bound_hit: transfers.bound_hit + counts.bound_hit + self.round.bound_hit,
            held_entries: transfers.held_entries + counts.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// Returns whether an amount is a whole multiple of `unit`.
fn is_multiple(amt: Amount, unit: u64) -> bool {
    // An amount has no zeros at the end of its mantissa: with decimal places, it is no whole number.
    let Ok(zeros) = u32::try_from(amt.exponent()) else { return false };
    let unit = i128::from(unit);
    unit != 0 && (amt.mantissa() % unit) * (10i128.pow(zeros) % unit) % unit == 0
}

/// The least share of round payments, in percent.
const USUAL_PERCENT: u64 = 80;
const DAY_NS: i128 = 86_400_000_000_000;
