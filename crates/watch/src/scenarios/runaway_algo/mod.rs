//! Runaway algorithm: an algorithm sends too much, repeats itself, trades too much or more than its parent order.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The algorithm and the parent of a cancel or an execution that names none are those of its order. An event
//!   without algorithm takes no part; its quantity does not count for its parent either.
//! - *Until re-enabled*: no event of the inputs re-enables. Each reason comes once for an algorithm.
//! - Each reason is tested at the events it counts: `message_rate` at messages, `repeat` at an `order_new`,
//!   `notional` and `overfill` at executions.
//! - *Identical*: the venue, instrument, side, price and quantity are all named. A market order without a price is
//!   no repeat.
//! - *Gross executed* is quantity × price without its sign, as both are quoted, over all instruments. An execution
//!   without a price takes no part.
//! - *Parent qty* is that of the last `parent` event with this id and a quantity, which must be above zero.
//!   Executions before that event count.
//! - *Crossing exec*: the parent is beyond the limit with it, and was not with the execution of the parent before
//!   it (by the quantity known then).

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::ids::IdKey;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeSums;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use crate::windows::SlidingWindows;
use serde_json::{Value, json};
use unitape_model::{Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "runaway_algo";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec, EventKind::Parent];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct RunawayAlgoScenario {
    max_msgs: u64,
    max_repeats: u64,
    notional_window_ns: i128,
    max_notional: Number,
    /// Billionths of a percent.
    overfill: u64,
    messages: SlidingWindows<u32, 1>,
    repeats: SlidingWindows<RepeatKey, 1>,
    notionals: TimeSums<u32, Number>,
    parents: KeyedStates<IdKey, ParentOrder>,
    /// The reasons that an algorithm has given, a bit each.
    given: KeyedStates<u32, u8>,
    late: u64,
}

/// The terms by which orders of an algorithm are identical.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RepeatKey {
    algo: u32,
    venue: u16,
    instr: InstrumentId,
    side: u8,
    px: i64,
    qty: (i64, i8),
}

/// A parent order.
#[derive(Clone, Copy)]
struct ParentOrder {
    /// That of the last `parent` event with a quantity.
    qty: Option<Decimal>,
    executed: QuantitySum,
    /// It was overfilled with its last execution.
    is_beyond: bool,
}

state_value!(RepeatKey { algo, venue, instr, side, px, qty });
state_value!(ParentOrder { qty, executed, is_beyond });
watch_state!(RunawayAlgoScenario {
    messages, repeats, notionals, parents, given, late
    | max_msgs, max_repeats, notional_window_ns, max_notional, overfill,
});

/// The reasons, in the order of the list.
const REASONS: [&str; 4] = ["message_rate", "repeat", "notional", "overfill"];

impl RunawayAlgoScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let notional_window_ns = i128::from(params.uint("notional_window_s")) * 1_000_000_000;
        Self {
            max_msgs: params.uint("max_msgs"),
            max_repeats: params.uint("max_repeats"),
            notional_window_ns,
            max_notional: params.amount("max_notional").into(),
            overfill: params.nano("overfill_pct"),
            messages: SlidingWindows::new(params.millis("msg_window_ms")),
            repeats: SlidingWindows::new(params.millis("repeat_window_ms")),
            notionals: TimeSums::new(notional_window_ns),
            parents: KeyedStates::new(),
            given: KeyedStates::new(),
            late: 0,
        }
    }

    fn on_parent(&mut self, input: &ScenarioInput<'_, '_>) {
        let Some(id) = IdKey::read(input.event, EventField::Parent) else { return };
        if let Some(EventValue::Decimal(qty)) = input.event.field(EventField::Qty, &mut [0; 36]) {
            self.parents.get_or_insert_with(id, ParentOrder::unknown).qty = Some(qty);
        }
    }

    /// Counts a message, and returns the measured values of the reasons that it meets.
    fn on_message(&mut self, input: &ScenarioInput<'_, '_>) -> [Option<Value>; 4] {
        let (algo, ts, expiry_ts) = (input.algo, input.ts, input.context.expiry_ts);
        let mut met = [const { None }; 4];
        let messages = self.messages.add(algo, 0, ts, expiry_ts);
        self.late += u64::from(!messages.is_complete);
        let count = u64::from(messages.counts[0]);
        met[0] = (count > self.max_msgs).then(|| json!({ "msgs": count }));
        if let Some(key) = RepeatKey::of(input).filter(|_| input.event.kind() == EventKind::OrderNew) {
            let repeats = self.repeats.add(key, 0, ts, expiry_ts);
            self.late += u64::from(!repeats.is_complete);
            let count = u64::from(repeats.counts[0]);
            met[1] = (count > self.max_repeats).then(|| json!({ "repeats": count }));
        }
        met
    }

    /// Counts an execution, and returns the measured values of the reasons that it meets.
    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>) -> [Option<Value>; 4] {
        let mut met = [const { None }; 4];
        let Some(record) = input.record else { return met };
        let Some(qty) = quantity(record).filter(|qty| qty.mantissa() > 0) else { return met };
        if let Some(px) = Price(record.px.get()).as_option() {
            let notional = Number::from(qty) * Number::from(px).abs();
            self.notionals.add(input.algo, input.ts, &notional, input.context.expiry_ts);
            let after = i128::from(input.ts.0) - self.notional_window_ns;
            let (sum, is_complete) = self.notionals.sum(&input.algo, after, input.ts);
            self.late += u64::from(!is_complete);
            met[2] = (sum > self.max_notional).then(|| json!({ "notional": sum.text() }));
        }
        if let Some(id) = input.parent() {
            let overfill = self.overfill;
            let parent = self.parents.get_or_insert_with(id, ParentOrder::unknown);
            parent.executed.add(qty);
            let is_beyond = parent.qty.filter(|qty| qty.mantissa() > 0).is_some_and(|qty| {
                parent.executed.times(100 * BILLION) > QuantitySum::from_decimal(qty).times(overfill)
            });
            let was_beyond = std::mem::replace(&mut parent.is_beyond, is_beyond);
            let values = || {
                let qty = parent.qty.map(|qty| qty.to_string());
                json!({ "parent": id.text(), "executed": parent.executed.to_string(), "qty": qty })
            };
            met[3] = (is_beyond && !was_beyond).then(values);
        }
        met
    }
}

impl RepeatKey {
    /// Returns the terms of a new order if it names them all.
    fn of(input: &ScenarioInput<'_, '_>) -> Option<Self> {
        let record = input.record?;
        let (px, qty) = (Price(record.px.get()).as_option()?, quantity(record)?);
        let (algo, venue, instr, side) = (input.algo, input.venue, input.instr, input.side);
        let is_named = venue != 0 && instr.0 != 0 && side != 0;
        let qty = (qty.mantissa(), qty.exponent());
        is_named.then_some(Self { algo, venue, instr, side, px: px.0, qty })
    }
}

impl ParentOrder {
    /// Makes a parent order of which nothing is known yet.
    fn unknown() -> Self {
        Self { qty: None, executed: QuantitySum::ZERO, is_beyond: false }
    }
}

impl Scenario for RunawayAlgoScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let kind = input.event.kind();
        if kind == EventKind::Parent {
            return self.on_parent(input);
        }
        if input.algo == 0 {
            return out.missing(MissingValue::Field(EventField::Algo));
        }
        let met = if kind == EventKind::Exec { self.on_exec(input) } else { self.on_message(input) };
        for (bit, (reason, values)) in REASONS.into_iter().zip(met).enumerate() {
            let Some(mut values) = values else { continue };
            let given = self.given.get_or_insert_with(input.algo, || 0);
            if *given >> bit & 1 == 0 {
                *given |= 1 << bit;
                values["reason"] = reason.into();
                let context = input.context;
                let key = vec![("algo", context.name(NameKind::Algo, input.algo))];
                out.alert(Alert::new(ID, input.ts, context.seq, key, context.detail(values, [])));
            }
        }
    }

    fn reset(&mut self) {
        self.messages.clear();
        self.repeats.clear();
        self.notionals.clear();
        self.parents.clear();
        self.given.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let notionals = self.notionals.logs();
        let windows = self.messages.bound_hit + self.repeats.bound_hit + notionals.bound_hit;
        let entries = self.messages.entry_count() + self.repeats.entry_count() + notionals.entry_count();
        ScenarioMetrics {
            late: self.late,
            expired: self.messages.expired + self.repeats.expired + notionals.expired,
            bound_hit: windows + self.parents.bound_hit() + self.given.bound_hit(),
            held_entries: (entries + self.parents.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BILLION: u64 = 1_000_000_000;
