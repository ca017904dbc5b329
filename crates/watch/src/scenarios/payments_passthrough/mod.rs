//! Pass-through: money that an account receives leaves it again within the hour.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A payment counts by its stage, as docs/events.md says ("Stages of a payment"): once, as the credit of one account and the
//!   debit of another. A transfer is remembered while the event that counted is less than the window old. A
//!   payment with neither `uetr` nor `ref` is a transfer of its own.
//! - A payment with one account alone is a credit alone, or a debit alone. A payment without any account, without currency
//!   or without an amount above zero does not count and is counted as `missing`.
//! - *After a credit*: by sequence. A debit with an earlier stamp than the credit is within the window.
//! - A payment from an account to itself is a debit for the open credits, and then a credit of its own.
//! - Credits that are still open after a debit has used them stay open: a debit counts for each of them in full.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::IdKey;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::transfers::{Payment, Transfers, alert_key};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{EventField, EventKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "payments_passthrough";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Payment];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct PassthroughScenario {
    window_ns: i128,
    min_amt: Number,
    out_percent: Number,
    transfers: Transfers,
    /// Credits that gave no alert yet, by account and currency.
    credits: TimeLogs<(u32, IdKey), OpenCredit>,
    /// Debits, as evidence.
    debits: TimeLogs<(u32, IdKey), EvidencePlace>,
    late: u64,
}

/// A credit, and the debits that count for it.
#[derive(Clone, Copy)]
struct OpenCredit {
    ts: UnixNanos,
    amt: Number,
    debits: Number,
    place: EvidencePlace,
}

state_value!(OpenCredit { ts, amt, debits, place });
watch_state!(PassthroughScenario { transfers, credits, debits, late | window_ns, min_amt, out_percent });

impl PassthroughScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = i128::from(params.uint("window_min")) * 60_000_000_000;
        Self {
            window_ns,
            min_amt: params.amount("min_amt").into(),
            out_percent: Number::billionths(params.nano("out_pct")),
            transfers: Transfers::new(window_ns),
            credits: TimeLogs::new(window_ns),
            debits: TimeLogs::new(window_ns),
            late: 0,
        }
    }

    /// Counts a debit for the open credits of its account, and raises an alert for each whose sum it reaches.
    fn debit(&mut self, payment: &Payment, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context) = (input.ts, input.context);
        let key = (payment.dr_acct, payment.ccy);
        self.debits.add(key, ts, context.place(), context.expiry_ts);
        let after = i128::from(ts.0) - self.window_ns;
        self.late += u64::from(!self.credits.window(&key, after, UnixNanos::MAX).is_complete);
        let debits = &self.debits;
        self.credits.retain(&key, |credit| {
            if i128::from(credit.ts.0) <= after {
                return true;
            }
            credit.debits = credit.debits + payment.amt.into();
            if credit.debits * Number::whole(100) < self.out_percent * credit.amt {
                return true;
            }
            let end = i128::from(credit.ts.0) + self.window_ns;
            let log = debits.window(&key, i128::MIN, UnixNanos::MAX);
            let of_credit = |(ts, place): &(UnixNanos, &EvidencePlace)| {
                place.seq > credit.place.seq && i128::from(ts.0) < end
            };
            let places = log.iter().filter(of_credit).map(|(_, place)| *place);
            let values = json!({"credit": credit.amt.text(), "debits": credit.debits.text()});
            let detail = context.detail(values, places.chain([credit.place]));
            out.alert(Alert::new(ID, ts, context.seq, alert_key("acct", payment, input), detail));
            false
        });
    }
}

impl Scenario for PassthroughScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(payment) = Payment::read(input.event, out) else { return };
        if payment.dr_acct == 0 && payment.cr_acct == 0 {
            return out.missing(MissingValue::Field(EventField::DrAcct));
        }
        if payment.ccy == IdKey::NONE {
            return out.missing(MissingValue::Field(EventField::Ccy));
        }
        if !self.transfers.admit(&payment, input.ts, input.context.expiry_ts) {
            return;
        }
        if payment.dr_acct != 0 {
            self.debit(&payment, input, out);
        }
        let amt = Number::from(payment.amt);
        if payment.cr_acct != 0 && amt >= self.min_amt {
            let (ts, place) = (input.ts, input.context.place());
            let credit = OpenCredit { ts, amt, debits: Number::ZERO, place };
            self.credits.add((payment.cr_acct, payment.ccy), ts, credit, input.context.expiry_ts);
        }
    }

    fn reset(&mut self) {
        self.transfers.clear();
        self.credits.clear();
        self.debits.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let (transfers, credits, debits) = (self.transfers.metrics(), &self.credits, &self.debits);
        ScenarioMetrics {
            late: transfers.late + self.late,
            expired: transfers.expired + credits.expired + debits.expired,
            bound_hit: transfers.bound_hit + credits.bound_hit + debits.bound_hit,
            held_entries: transfers.held_entries + (credits.entry_count() + debits.entry_count()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
