//! Stop hunting: an owner pushes the price to a client's stop order and then trades the other way.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *The price went to* is the price of the aggressive execution; *not there before* is the first public trade in
//!   the window, by sequence, that counts as a last price. *Within* is the distance to either side.
//! - *Same firm* is the firm that the execution itself names; a firm is not inherited. The venue does not matter.
//! - *Stop order*: its `order_new` has a stop price. The latest stop price counts, also of an amend. The order is
//!   live with the execution included.
//! - *Public volume* is that before the execution by sequence, over all venues, with corrections. Without a public
//!   trade in the window nothing is judged.
//! - *That whole quantity* is the aggressive quantity in the window at the last such execution. Only executions
//!   after it, by sequence, reverse it. Executions on the other side count with any `liq`.
//! - *By which*: the execution with which the sum reaches the quantity. It alerts once for each last such
//!   execution.
//! - The tick is the one known at the execution. No ticks need no tick.
//!
//! ```text
//!   stop orders by firm, instrument and side, in order of their price
//!   seq ─▶  exec, exec (buys, up to a stop) ──── exec, exec (sales)
//!                     └ the hunt: its quantity      └ by which that quantity is reversed
//! ```
//!
//! The book of stop orders makes the module longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::{BILLION, QuantitySum};
use crate::fields;
use crate::ids::name_id;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::orders::{OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "stop_hunting";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[
    EventKind::OrderNew,
    EventKind::OrderAmend,
    EventKind::OrderCancel,
    EventKind::Exec,
    EventKind::Trade,
    EventKind::Ref,
];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] =
    &[SharedStateKind::Orders, SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct StopHuntingScenario {
    window_ns: i128,
    /// Billionths.
    min_aggr_share_pct: u64,
    /// Billionths.
    barrier_ticks: u64,
    reverse_ns: i128,
    /// Stop orders of clients that are not cancelled.
    stops: BTreeMap<StopKey, StopOrder>,
    /// The key of the stop order in each slot of the orders.
    marks: Vec<Option<StopKey>>,
    aggressive: TimeLogs<HuntKey, AggressiveExec>,
    /// The last execution of each key that reached a stop.
    hunts: KeyedStates<HuntKey, Hunt>,
    late: u64,
}

/// In the order of their prices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StopKey {
    firm: u32,
    instr: InstrumentId,
    side: u8,
    stop_px: Price,
    /// Ordinal of the order's entry.
    seq: u64,
}

#[derive(Clone, Copy)]
struct StopOrder {
    slot: u32,
    entry: EvidencePlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct HuntKey {
    owner: u32,
    instr: InstrumentId,
    side: u8,
}

#[derive(Clone, Copy)]
struct AggressiveExec {
    qty: Decimal,
    place: EvidencePlace,
}

struct Hunt {
    end_ns: i128,
    px: Price,
    first_px: Price,
    stop_px: Price,
    /// The aggressive quantity in the window, and the public volume.
    qty: QuantitySum,
    volume: QuantitySum,
    reversed: QuantitySum,
    evidence: Vec<EvidencePlace>,
}

state_value!(StopKey { firm, instr, side, stop_px, seq });
state_value!(StopOrder { slot, entry });
state_value!(HuntKey { owner, instr, side });
state_value!(AggressiveExec { qty, place });
state_value!(Hunt { end_ns, px, first_px, stop_px, qty, volume, reversed, evidence });
watch_state!(StopHuntingScenario {
    stops, marks, aggressive, hunts, late | window_ns, min_aggr_share_pct, barrier_ticks, reverse_ns,
});

impl StopHuntingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.seconds("window_s");
        Self {
            window_ns,
            min_aggr_share_pct: params.nano("min_aggr_share_pct"),
            barrier_ticks: params.nano("barrier_ticks"),
            reverse_ns: params.millis("reverse_ms"),
            stops: BTreeMap::new(),
            marks: Vec::new(),
            aggressive: TimeLogs::new(window_ns),
            hunts: KeyedStates::new(),
            late: 0,
        }
    }

    fn on_entry(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let (slot, event) = (update.slot as usize, input.event);
        // The slot may have belonged to another order.
        if let Some(before) = self.marks.get_mut(slot).and_then(Option::take) {
            self.stops.remove(&before);
        }
        let Some(stop_px) = fields::price(event, EventField::StopPx) else { return };
        if !fields::has_text(event, EventField::Capacity, "A") {
            return;
        }
        let entry = input.context.place();
        let firm = name_id(event, EventField::Firm);
        let key = StopKey { firm, instr: input.instr, side: input.side, stop_px, seq: entry.seq };
        match (firm, key.instr.0, key.side) {
            (0, _, _) => return out.missing(MissingValue::Field(EventField::Firm)),
            (_, 0, _) => return out.missing(MissingValue::Field(EventField::Instr)),
            (_, _, 1 | 2) => {}
            _ => return out.missing(MissingValue::Field(EventField::Side)),
        }
        if self.marks.len() <= slot {
            self.marks.resize(slot + 1, None);
        }
        self.marks[slot] = Some(key);
        self.stops.insert(key, StopOrder { slot: update.slot, entry });
    }

    /// Removes a stop order that was cancelled, and gives one that was amended its new place.
    fn on_change(&mut self, input: &ScenarioInput<'_, '_>) {
        let Some(update) = input.order else { return };
        let Some(mark) = self.marks.get_mut(update.slot as usize) else { return };
        let Some(key) = mark.filter(|key| Some(key.seq) == update.order.entry_seq()) else { return };
        if input.event.kind() == EventKind::OrderCancel {
            *mark = None;
            self.stops.remove(&key);
        } else if let Some(stop_px) = fields::price(input.event, EventField::StopPx) {
            let moved = StopKey { stop_px, ..key };
            *mark = Some(moved);
            let stop = self.stops.remove(&key);
            self.stops.extend(stop.map(|stop| (moved, stop)));
        }
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let qty = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0);
        let (owner, instr, side) = (input.owner, input.instr, input.side);
        let qty = match (owner, instr.0, side, qty) {
            (0, ..) => return out.missing(MissingValue::Field(EventField::Owner)),
            (_, 0, ..) => return out.missing(MissingValue::Field(EventField::Instr)),
            (_, _, 1 | 2, Some(qty)) => qty,
            (_, _, 1 | 2, None) => return out.missing(MissingValue::Field(EventField::Qty)),
            _ => return out.missing(MissingValue::Field(EventField::Side)),
        };
        let key = HuntKey { owner, instr, side };
        self.reverse(HuntKey { side: 3 - side, ..key }, qty, input, out);
        if !fields::has_text(input.event, EventField::Liq, "R") {
            return;
        }
        let context = input.context;
        self.aggressive.add(key, input.ts, AggressiveExec { qty, place: context.place() }, context.expiry_ts);
        match self.hunt(key, input) {
            Ok(hunt) => hunt.into_iter().for_each(|hunt| self.hunts.set(key, hunt)),
            Err(value) => out.missing(value),
        }
    }

    /// Returns the hunt if the aggressive execution reached a stop order. The error is the value that is missing.
    fn hunt(&mut self, key: HuntKey, input: &ScenarioInput<'_, '_>) -> Result<Option<Hunt>, MissingValue> {
        let (context, record) = (input.context, input.record);
        let px = record.and_then(|record| Price(record.px.get()).as_option());
        let px = px.ok_or(MissingValue::Field(EventField::Px))?;
        let firm = name_id(input.event, EventField::Firm);
        if firm == 0 {
            return Err(MissingValue::Field(EventField::Firm));
        }
        let tick = context.market.reference(key.instr).and_then(|terms| terms.tick);
        let most = match tick.filter(|tick| tick.0 > 0) {
            _ if self.barrier_ticks == 0 => 0,
            Some(tick) => i128::from(tick.0) * i128::from(self.barrier_ticks) / BILLION,
            None => return Err(MissingValue::Reference(EventField::Tick)),
        };
        if self.live_stops(firm, key, px, most, context).next().is_none() {
            return Ok(None);
        }
        let after = i128::from(input.ts.0) - self.window_ns;
        let prints = context.prints.of_instr(key.instr, after, input.ts);
        let aggressive = self.aggressive.window(&key, after, input.ts);
        let is_late = !prints.is_complete || !aggressive.is_complete;
        let (mut volume, mut qty) = (QuantitySum::ZERO, QuantitySum::ZERO);
        prints.iter().for_each(|(_, print)| volume.add(print.qty));
        aggressive.iter().for_each(|(_, exec)| qty.add(exec.qty));
        let priced = prints.iter().map(|(_, print)| print).filter(|print| !print.no_last);
        let first = priced.min_by_key(|print| print.seq);
        let reached = first.and_then(|first| {
            let was_there = |stop_px: Price| (i128::from(first.px.0) - i128::from(stop_px.0)).abs() <= most;
            let mut stops = self.live_stops(firm, key, px, most, context);
            let (stop, order) = stops.find(|(stop, _)| !was_there(stop.stop_px))?;
            Some((first, stop.stop_px, order.entry))
        });
        let is_large = qty.times(100).times(BILLION as u64) >= volume.times(self.min_aggr_share_pct);
        let hunt = reached.filter(|_| is_large).map(|(first, stop_px, entry)| Hunt {
            end_ns: i128::from(input.ts.0) + self.reverse_ns,
            px,
            first_px: first.px,
            stop_px,
            qty,
            volume,
            reversed: QuantitySum::ZERO,
            evidence: aggressive.iter().map(|(_, exec)| exec.place).chain([first.place(), entry]).collect(),
        });
        self.late += u64::from(is_late);
        Ok(hunt)
    }

    /// Returns the live stop orders whose price is at most `most` from a price.
    fn live_stops(
        &self,
        firm: u32,
        key: HuntKey,
        px: Price,
        most: i128,
        context: &ScenarioContext<'_>,
    ) -> impl Iterator<Item = (&StopKey, &StopOrder)> {
        let at = |px: i128, seq| {
            let stop_px = Price(px.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
            StopKey { firm, instr: key.instr, side: key.side, stop_px, seq }
        };
        let px = i128::from(px.0);
        let is_live =
            |(key, stop): &(&StopKey, &StopOrder)| context.orders.find_live(stop.slot, key.seq).is_some();
        self.stops.range(at(px - most, 0)..=at(px + most, u64::MAX)).filter(is_live)
    }

    /// Adds an execution to what is reversed of a hunt on the other side.
    fn reverse(
        &mut self,
        key: HuntKey,
        qty: Decimal,
        input: &ScenarioInput<'_, '_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let Some(hunt) = self.hunts.get_mut(&key) else { return };
        if i128::from(input.ts.0) > hunt.end_ns {
            return;
        }
        let context = input.context;
        hunt.reversed.add(qty);
        hunt.evidence.push(context.place());
        if hunt.reversed < hunt.qty {
            return;
        }
        let names = vec![
            ("owner", context.name(NameKind::Owner, key.owner)),
            ("instr", context.name(NameKind::Instrument, key.instr.0)),
        ];
        let values = json!({
            "first_px": hunt.first_px.to_string(), "px": hunt.px.to_string(), "stop_px": hunt.stop_px.to_string(),
            "aggressive": hunt.qty.to_string(), "volume": hunt.volume.to_string(),
            "reversed": hunt.reversed.to_string(),
        });
        let detail = context.detail(values, hunt.evidence.iter().copied());
        self.hunts.remove(&key);
        out.alert(Alert::new(ID, input.ts, context.seq, names, detail));
    }
}

impl Scenario for StopHuntingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match (input.event.kind(), input.order) {
            (EventKind::Exec, _) => self.on_exec(input, out),
            (EventKind::OrderNew, Some(update)) => self.on_entry(input, update, out),
            _ => self.on_change(input),
        }
    }

    fn on_venue_change(&mut self, input: &ScenarioInput<'_, '_>) {
        self.on_change(input);
    }

    fn print_window_ns(&self) -> i128 {
        self.window_ns
    }

    fn reset(&mut self) {
        self.stops.clear();
        self.marks.clear();
        self.aggressive.clear();
        self.hunts.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.aggressive.expired,
            bound_hit: self.aggressive.bound_hit + self.hunts.bound_hit(),
            held_entries: (self.stops.len() + self.aggressive.entry_count() + self.hunts.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
