//! Momentum ignition: aggressive trades move a price, and the owner then trades the other way at a better price.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - An execution without owner, venue, instrument, side, price or a quantity above zero takes no part. Orders
//!   count only because executions inherit from them.
//! - *First* is the oldest by sequence. Its price must be above zero.
//! - *Active*: each execution is judged by its own time. An execution stamped later than `reverse_ms` after the
//!   last ignition execution (the last by sequence) does not belong to the ignition, and one that comes after it,
//!   stamped earlier, still does. A new ignition of the same side takes its place.
//! - *Activation* takes all aggressive executions in the window that no alert consumed, those of an ended ignition
//!   included.
//! - An execution may extend one side and reverse the other; both may alert on it, with the same key.
//!
//! An ignition remembers the latest 256 of its executions for the alert, and stays until another one of its side or an alert
//! takes its place. The file is long because each side has two kinds of state: executions that may ignite, and sums of the
//! ignition and of its reversal.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::compare_bps;
use crate::ids::field_text;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind, SideBook,
};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::VecDeque;
use unitape_model::{Decimal, EventField, EventKind, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "momentum_ignition";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct MomentumIgnitionScenario {
    ignite_ns: i128,
    reverse_ns: i128,
    min_aggr_execs: u64,
    /// Billionths of a basis point.
    min_move_bps: u64,
    min_reverse_pct: Number,
    /// Aggressive executions that no alert consumed.
    aggressive: TimeLogs<SideBook, AggressiveExecution>,
    /// The last ignition of each side.
    ignitions: KeyedStates<SideBook, Ignition>,
    late: u64,
}

#[derive(Clone, Copy)]
struct AggressiveExecution {
    px: Price,
    qty: Decimal,
    place: EvidencePlace,
    /// The number of the last ignition that it belongs to.
    ignition: Option<u64>,
}

/// An ignition that was active when its last execution came.
struct Ignition {
    /// The ordinal of the execution that ignited it.
    number: u64,
    last_ts: UnixNanos,
    ignited: QuantityValue,
    reversed: QuantityValue,
    /// The latest of its executions and of its reversal.
    evidence: VecDeque<EvidencePlace>,
}

/// The sums of quantities, and of quantities times prices.
#[derive(Clone, Copy, Default)]
struct QuantityValue {
    qty: Number,
    value: Number,
}

/// Events that an ignition remembers for its alert.
const EVIDENCE_MAX: usize = 256;

state_value!(AggressiveExecution { px, qty, place, ignition });
state_value!(Ignition { number, last_ts, ignited, reversed, evidence });
state_value!(QuantityValue { qty, value });
watch_state!(MomentumIgnitionScenario {
    aggressive, ignitions, late | ignite_ns, reverse_ns, min_aggr_execs, min_move_bps, min_reverse_pct,
});

impl MomentumIgnitionScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let ignite_ns = params.millis("ignite_ms");
        Self {
            ignite_ns,
            reverse_ns: params.millis("reverse_ms"),
            min_aggr_execs: params.uint("min_aggr_execs"),
            min_move_bps: params.nano("min_move_bps"),
            min_reverse_pct: Number::billionths(params.nano("min_reverse_pct")),
            aggressive: TimeLogs::new(ignite_ns),
            ignitions: KeyedStates::new(),
            late: 0,
        }
    }

    /// Returns whether an ignition is active for an execution at `ts`.
    fn is_active(&self, ignition: &Ignition, ts: UnixNanos) -> bool {
        i128::from(ts.0) - i128::from(ignition.last_ts.0) <= self.reverse_ns
    }

    /// Adds an aggressive execution to the active ignition of its side, or ignites the side if it moved the price enough.
    fn on_aggressive(&mut self, book: SideBook, px: Price, qty: Decimal, input: &ScenarioInput<'_, '_>) {
        let (ts, place) = (input.ts, input.context.place());
        let active = self.ignitions.get(&book).filter(|ignition| self.is_active(ignition, ts));
        let number = active.map(|ignition| ignition.number);
        let execution = AggressiveExecution { px, qty, place, ignition: number };
        self.aggressive.add(book, ts, execution, input.context.expiry_ts);
        match self.ignitions.get_mut(&book).filter(|_| number.is_some()) {
            Some(ignition) => ignition.extend(ts, &execution),
            None => self.ignite(book, px, place.seq, ts),
        }
    }

    /// Ignites a side if the executions in the window moved the price enough.
    fn ignite(&mut self, book: SideBook, px: Price, number: u64, ts: UnixNanos) {
        let after = i128::from(ts.0) - self.ignite_ns;
        let window = self.aggressive.window(&book, after, ts);
        self.late += u64::from(!window.is_complete);
        if (window.len() as u64) < self.min_aggr_execs {
            return;
        }
        let mut executions: Vec<AggressiveExecution> =
            window.iter().map(|(_, execution)| *execution).collect();
        executions.sort_unstable_by_key(|execution| execution.place.seq);
        let Some(first) = executions.first() else { return };
        let rise = i128::from(px.0) - i128::from(first.px.0);
        let moved = if book.side == 1 { rise } else { -rise };
        if first.px.0 <= 0 || compare_bps(moved, self.min_move_bps, first.px.0.into()) == Ordering::Less {
            return;
        }
        let mut ignition = Ignition::new(number, ts);
        executions.iter().for_each(|execution| ignition.extend(ts, execution));
        self.ignitions.set(book, ignition);
        self.aggressive.retain(&book, |execution| {
            if executions.binary_search_by_key(&execution.place.seq, |e| e.place.seq).is_ok() {
                execution.ignition = Some(number);
            }
            true
        });
    }

    /// Ends the ignition of a side with an alert if enough of it was reversed at a better price.
    fn judge(&mut self, book: SideBook, input: &ScenarioInput<'_, '_>) -> Option<Alert> {
        let active = self.ignitions.get(&book).filter(|ignition| self.is_active(ignition, input.ts));
        let ignition = active.filter(|ignition| ignition.is_reversed(book.side, self.min_reverse_pct))?;
        let context = input.context;
        let values = json!({
            "ignited_qty": ignition.ignited.qty.text(),
            "ignited_value": ignition.ignited.value.text(),
            "reversed_qty": ignition.reversed.qty.text(),
            "reversed_value": ignition.reversed.value.text(),
        });
        let detail = context.detail(values, ignition.evidence.iter().copied());
        let number = ignition.number;
        self.ignitions.remove(&book);
        self.aggressive.retain(&book, |execution| execution.ignition != Some(number));
        let key = vec![
            ("owner", context.name(NameKind::Owner, book.owner)),
            ("venue", context.name(NameKind::Venue, book.venue.into())),
            ("instr", context.name(NameKind::Instrument, book.instr.0)),
        ];
        Some(Alert::new(ID, input.ts, context.seq, key, detail))
    }
}

impl Ignition {
    fn new(number: u64, last_ts: UnixNanos) -> Self {
        let (ignited, reversed) = Default::default();
        Self { number, last_ts, ignited, reversed, evidence: VecDeque::new() }
    }

    fn extend(&mut self, ts: UnixNanos, execution: &AggressiveExecution) {
        self.last_ts = ts;
        self.ignited.add(execution.qty, execution.px);
        self.remember(execution.place);
    }

    fn reverse(&mut self, px: Price, qty: Decimal, place: EvidencePlace) {
        self.reversed.add(qty, px);
        self.remember(place);
    }

    fn remember(&mut self, place: EvidencePlace) {
        if self.evidence.len() == EVIDENCE_MAX {
            self.evidence.pop_front();
        }
        self.evidence.push_back(place);
    }

    /// Returns whether enough was reversed, at a better average price.
    fn is_reversed(&self, side: u8, min_reverse_pct: Number) -> bool {
        let (q, r) = (&self.ignited, &self.reversed);
        // The averages, times both quantities.
        let (reversal, ignition) = (r.value * q.qty, q.value * r.qty);
        let is_better = if side == 1 { reversal > ignition } else { reversal < ignition };
        is_better && r.qty * Number::whole(100) >= min_reverse_pct * q.qty
    }
}

impl QuantityValue {
    fn add(&mut self, qty: Decimal, px: Price) {
        self.qty = self.qty + qty.into();
        self.value = self.value + Number::from(qty) * Number::from(px);
    }
}

impl Scenario for MomentumIgnitionScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let book = match input.side_book() {
            Ok(book) => book,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let Some(px) = input.record.and_then(|record| Price(record.px.get()).as_option()) else {
            return out.missing(MissingValue::Field(EventField::Px));
        };
        let Some(qty) = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0) else {
            return out.missing(MissingValue::Field(EventField::Qty));
        };
        let opposite = SideBook { side: 3 - book.side, ..book };
        let reversed = self.ignitions.get(&opposite).filter(|ignition| self.is_active(ignition, input.ts));
        if reversed.is_some()
            && let Some(ignition) = self.ignitions.get_mut(&opposite)
        {
            ignition.reverse(px, qty, input.context.place());
        }
        if field_text(input.event, EventField::Liq, &mut [0; 36]) == Some("R") {
            self.on_aggressive(book, px, qty, input);
        }
        for side in [1, 2] {
            if let Some(alert) = self.judge(SideBook { side, ..book }, input) {
                out.alert(alert);
            }
        }
    }

    fn reset(&mut self) {
        self.aggressive.clear();
        self.ignitions.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.aggressive.expired,
            bound_hit: self.aggressive.bound_hit + self.ignitions.bound_hit(),
            held_entries: (self.aggressive.entry_count() + self.ignitions.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
