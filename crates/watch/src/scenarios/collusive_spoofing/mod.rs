//! Collusive spoofing: one owner of a linked group pulls a large order after another owner of it has traded on the
//! other side.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - All readings of [`super::spoofing`] apply, with the group in place of the owner.
//! - *Party gives them one group*: the last `party` event of the owner. It names no group if it has no `group`;
//!   then the owner takes no part. Its `link_score` counts, and that of an earlier event does not.
//! - *None of their link_scores is below* the limit: an owner below it is not linked; the other owners of the group
//!   still are.
//! - Groups and scores are those known at the cancel, also for the executions before it.
//! - A single owner with a group is a group. It alerts here and in `spoofing`.
//!
//! Executions are kept by a clock that never goes back, so in the order of the events: those after the entry of an order are
//! there as long as the order may be one. The file is long because groups, entries and executions are state of their own.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::ids::name_id;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::{OrderState, OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::scenarios::spoofing::SpoofingLimits;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind, SideBook,
};
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, EventValue, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "collusive_spoofing";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderNew, EventKind::OrderCancel, EventKind::Exec, EventKind::Party];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Market];

/// The scenario.
pub struct CollusiveSpoofingScenario {
    limits: SpoofingLimits,
    link_score_min: Number,
    /// The linked group of each owner that has one, and the linked owners of each group.
    groups: KeyedStates<u32, u32>,
    members: KeyedStates<u32, Vec<u32>>,
    /// What was known at the entry of the order in each slot of the orders.
    entries: Vec<OrderEntry>,
    /// By the clock, so in the order of the events.
    executions: TimeLogs<SideBook, Execution>,
    /// The latest time that events had, never earlier than before.
    clock: UnixNanos,
    late: u64,
}

#[derive(Clone, Copy)]
struct OrderEntry {
    /// The best price of the order's side, if there was one.
    best: Price,
    clock: UnixNanos,
}

#[derive(Clone, Copy)]
struct Execution {
    ts: UnixNanos,
    qty: Decimal,
    place: EvidencePlace,
}

state_value!(OrderEntry { best, clock });
state_value!(Execution { ts, qty, place });
watch_state!(CollusiveSpoofingScenario {
    groups, members, entries, executions, clock, late | limits, link_score_min,
});

impl CollusiveSpoofingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let limits = SpoofingLimits::new(params);
        Self {
            executions: TimeLogs::new(limits.max_life_ns),
            limits,
            link_score_min: Number::billionths(params.nano("link_score_min")),
            groups: KeyedStates::new(),
            members: KeyedStates::new(),
            entries: Vec::new(),
            clock: UnixNanos(i64::MIN),
            late: 0,
        }
    }

    /// Puts an owner into the group that the event gives it, if their link is strong enough.
    fn on_party(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let event = input.event;
        let (owner, group) = (name_id(event, EventField::Owner), name_id(event, EventField::Group));
        if owner == 0 {
            return out.missing(MissingValue::Field(EventField::Owner));
        }
        if let Some(before) = self.groups.get(&owner).copied() {
            self.groups.remove(&owner);
            if let Some(members) = self.members.get_mut(&before) {
                members.retain(|member| *member != owner);
            }
        }
        let score = match event.field(EventField::LinkScore, &mut [0; 36]) {
            Some(EventValue::Decimal(score)) => score.into(),
            _ => Number::whole(1),
        };
        if group != 0 && score >= self.link_score_min {
            self.groups.set(owner, group);
            self.members.get_or_insert_with(group, Vec::new).push(owner);
        }
    }

    fn on_entry(&mut self, input: &ScenarioInput<'_, '_>, update: OrderUpdate<'_>) {
        let (slot, order) = (update.slot as usize, update.order);
        let best = input.context.market.best(order.venue, order.instr);
        let best = best.and_then(|best| best.of_side(order.side)).unwrap_or(Price::NONE);
        if self.entries.len() <= slot {
            self.entries.resize(slot + 1, OrderEntry { best: Price::NONE, clock: UnixNanos(i64::MIN) });
        }
        self.entries[slot] = OrderEntry { best, clock: self.clock };
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let book = match input.side_book() {
            Ok(book) => book,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let Some(qty) = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0) else {
            return out.missing(MissingValue::Field(EventField::Qty));
        };
        let execution = Execution { ts: input.ts, qty, place: input.context.place() };
        self.executions.add(book, self.clock, execution, self.clock);
    }

    /// Judges a live order that its owner cancels.
    fn on_cancel(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
    ) -> Result<Option<Alert>, MissingValue> {
        let (order, now, limits) = (update.order, input.ts, &self.limits);
        let (Some(entry_seq), Some(entry)) = (order.entry_seq(), self.entries.get(update.slot as usize))
        else {
            return Ok(None);
        };
        let owner = if order.owner == 0 { input.owner } else { order.owner };
        let book =
            ScenarioInput { owner, venue: order.venue, instr: order.instr, side: order.side, ..*input };
        let book = book.side_book().map_err(MissingValue::Field)?;
        let px = || Some((order.entry_px.as_option()?, order.px.as_option()?));
        let (entry_px, px) = px().ok_or(MissingValue::Field(EventField::Px))?;
        let qty = order.qty().ok_or(MissingValue::Field(EventField::Qty))?;
        let best = entry.best.as_option().ok_or(MissingValue::BestPrice)?;
        let tick = input.context.market.reference(order.instr).and_then(|terms| terms.tick);
        let tick = tick.filter(|tick| tick.0 > 0).ok_or(MissingValue::Reference(EventField::Tick))?;
        let Some(group) = self.groups.get(&owner).copied() else { return Ok(None) };
        let fits = limits.is_short(order.entry_ts, now)
            && limits.is_near(order.side, entry_px, best, tick)
            && limits.is_hardly_filled(&order.executed, qty)
            && limits.is_large(qty, px);
        if !fits {
            return Ok(None);
        }
        let executions = self.opposite_executions(group, book, entry_seq, entry.clock);
        let Some(last) = executions.iter().max_by_key(|execution| execution.place.seq) else {
            return Ok(None);
        };
        let mut executed = QuantitySum::ZERO;
        executions.iter().for_each(|execution| executed.add(execution.qty));
        let fires = self.limits.is_pulled(last.ts, now) && self.limits.is_out_of_proportion(qty, &executed);
        Ok(fires.then(|| alert(group, order, &executions, input)))
    }

    /// Returns the executions of a group on the other side of an order after its entry.
    fn opposite_executions(
        &mut self,
        group: u32,
        book: SideBook,
        entry_seq: u64,
        entry_clock: UnixNanos,
    ) -> Vec<Execution> {
        let mut executions = Vec::new();
        let mut is_complete = true;
        for &owner in self.members.get(&group).into_iter().flatten() {
            let opposite = SideBook { owner, side: 3 - book.side, ..book };
            let window =
                self.executions.window(&opposite, entry_clock.0.saturating_sub(1).into(), self.clock);
            is_complete &= window.is_complete;
            let after_entry = window.iter().filter(|(_, execution)| execution.place.seq > entry_seq);
            executions.extend(after_entry.map(|(_, execution)| *execution));
        }
        self.late += u64::from(!is_complete);
        executions
    }
}

/// Makes the alert of an order and the executions on the other side.
fn alert(group: u32, order: &OrderState, executions: &[Execution], input: &ScenarioInput<'_, '_>) -> Alert {
    let context = input.context;
    let key = vec![
        ("group", context.name(NameKind::Owner, group)),
        ("venue", context.name(NameKind::Venue, order.venue.into())),
        ("instr", context.name(NameKind::Instrument, order.instr.0)),
    ];
    let executed = executions.iter().fold(Number::ZERO, |sum, execution| sum + execution.qty.into());
    let values = json!({
        "owner": context.name(NameKind::Owner, if order.owner == 0 { input.owner } else { order.owner }),
        "side": if order.side == 1 { "B" } else { "S" },
        "qty": order.qty().map(|qty| qty.to_string()),
        "executed_qty": executed.text(),
        "executions": executions.len(),
    });
    let entry = order.entry_seq().map(|seq| EvidencePlace { seq, position: order.kept_entry_position() });
    let places = executions.iter().map(|execution| execution.place).chain(entry);
    Alert::new(ID, input.ts, context.seq, key, context.detail(values, places))
}

impl Scenario for CollusiveSpoofingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        self.clock = self.clock.max(input.context.expiry_ts);
        match (input.event.kind(), input.order) {
            (EventKind::Party, _) => self.on_party(input, out),
            (EventKind::Exec, _) => self.on_exec(input, out),
            (EventKind::OrderNew, Some(update)) => self.on_entry(input, update),
            (EventKind::OrderCancel, Some(update)) if update.was_live => {
                match self.on_cancel(input, update) {
                    Ok(alert) => alert.into_iter().for_each(|alert| out.alert(alert)),
                    Err(value) => out.missing(value),
                }
            }
            // An order that was never seen is never live.
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.groups.clear();
        self.members.clear();
        self.entries.clear();
        self.executions.clear();
        self.clock = UnixNanos(i64::MIN);
    }

    fn metrics(&self) -> ScenarioMetrics {
        let Self { groups, members, executions, .. } = self;
        ScenarioMetrics {
            late: self.late,
            expired: executions.expired,
            bound_hit: executions.bound_hit + groups.bound_hit() + members.bound_hit(),
            held_entries: (executions.entry_count() + groups.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
