//! Smoking: an attractive order draws others in and is repriced before they trade with it.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *Worse* is worse for the other side: lower for a buy order, higher for a sell order.
//! - *An amend of it* is one by the trader, with a price. Of several that fit, the last one before the execution
//!   gives the amended price.
//! - *Within reprice_ms* counts from the entry and has no lower limit in time.
//! - The tick is the one known at the amend. No ticks (`attract_ticks` 0) need no tick.
//! - *Another owner*: a contra order without owner does not count. It is of the same venue and instrument.
//! - *One lure*: an order is one lure, at its first execution that fits. Its owner is that of its first event that
//!   names one or, when these name none, that of the execution.
//! - A best price is missing if no `bbo` came before the entry, or the last one has no price on the side of the
//!   order.
//! - An order without venue, instrument or side, a price that cannot be compared, and a lure without owner are counted as
//!   `missing`.
//!
//! Of the contra orders of a side only two are kept, the last and the last of another owner: one of them is of another owner
//! than the lure, if any is. The file is long because a lure is four events, each with its own fields.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::orders::{OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{EventField, EventKind, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "smoking";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Market];

/// The scenario.
pub struct SmokingScenario {
    /// Billionths of a tick.
    attract_ticks: u64,
    reprice_ns: i128,
    min_events: u64,
    window_ns: i128,
    /// The order in each slot of the orders, if it may become a lure.
    suspects: Vec<Option<SuspectOrder>>,
    contras: KeyedStates<BookSide, [ContraOrder; 2]>,
    lures: TimeLogs<LureKey, Lure>,
    late: u64,
}

/// Venue, instrument, and 1 for buy or 2 for sell.
type BookSide = (u16, InstrumentId, u8);
/// Owner, venue, instrument.
type LureKey = (u32, u16, InstrumentId);

/// An order that was better than the best price when it was entered.
#[derive(Clone, Copy)]
struct SuspectOrder {
    entry: EvidencePlace,
    repriced: Option<Repricing>,
}

/// An amend to a worse price soon after the entry.
#[derive(Clone, Copy)]
struct Repricing {
    px: Price,
    place: EvidencePlace,
}

/// The last order of an owner on a side of a book: the first of two is the last of all, and the second the last of another owner.
#[derive(Clone, Copy)]
struct ContraOrder {
    /// 0 if there is none.
    owner: u32,
    place: EvidencePlace,
}

/// The events of a lure.
#[derive(Clone, Copy)]
struct Lure {
    places: [EvidencePlace; 4],
}

state_value!(SuspectOrder { entry, repriced });
state_value!(Repricing { px, place });
state_value!(ContraOrder { owner, place });
state_value!(Lure { places });
watch_state!(SmokingScenario {
    suspects, contras, lures, late | attract_ticks, reprice_ns, min_events, window_ns,
});

impl SmokingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = 1_000_000_000 * i128::from(params.uint("window_s"));
        Self {
            attract_ticks: params.nano("attract_ticks"),
            reprice_ns: params.millis("reprice_ms"),
            min_events: params.uint("min_events"),
            window_ns,
            suspects: Vec::new(),
            contras: KeyedStates::new(),
            lures: TimeLogs::new(window_ns),
            late: 0,
        }
    }

    /// Keeps an order that is better than the best price, and any order as the contra order of others.
    fn on_entry(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
    ) -> Result<(), MissingValue> {
        let (slot, place) = (update.slot as usize, input.context.place());
        if self.suspects.len() <= slot {
            self.suspects.resize(slot + 1, None);
        }
        // The slot may have belonged to another order.
        self.suspects[slot] = None;
        let order = update.order;
        let lacking = match () {
            () if order.venue == 0 => Some(EventField::Venue),
            () if order.instr.0 == 0 => Some(EventField::Instr),
            () if !matches!(order.side, 1 | 2) => Some(EventField::Side),
            () => None,
        };
        lacking.map_or(Ok(()), |field| Err(MissingValue::Field(field)))?;
        if input.owner != 0 {
            let none = [ContraOrder { owner: 0, place }; 2];
            let last = self.contras.get_or_insert_with((order.venue, order.instr, order.side), || none);
            if last[0].owner != input.owner {
                last[1] = last[0];
            }
            last[0] = ContraOrder { owner: input.owner, place };
        }
        let px = order.entry_px.as_option().ok_or(MissingValue::Field(EventField::Px))?;
        let best = input.context.market.best(order.venue, order.instr);
        let best = best.and_then(|best| best.of_side(order.side)).ok_or(MissingValue::BestPrice)?;
        let is_better = if order.side == 1 { px > best } else { px < best };
        self.suspects[slot] = is_better.then_some(SuspectOrder { entry: place, repriced: None });
        Ok(())
    }

    /// Keeps the price of an amend that is soon and worse enough.
    fn on_amend(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
    ) -> Result<(), MissingValue> {
        let order = update.order;
        let Some(suspect) = find_suspect(&mut self.suspects, update) else { return Ok(()) };
        let Some(px) = input.record.and_then(|record| Price(record.px.get()).as_option()) else {
            return Ok(());
        };
        if i128::from(input.ts.0) - i128::from(order.entry_ts.0) > self.reprice_ns {
            return Ok(());
        }
        let tick = input.context.market.reference(order.instr).and_then(|terms| terms.tick);
        let least = match tick.filter(|tick| tick.0 > 0) {
            _ if self.attract_ticks == 0 => 0,
            Some(tick) => i128::from(tick.0) * i128::from(self.attract_ticks),
            None => return Err(MissingValue::Reference(EventField::Tick)),
        };
        let fall = i128::from(order.entry_px.0) - i128::from(px.0);
        let worse = if order.side == 1 { fall } else { -fall };
        if worse * 1_000_000_000 >= least {
            suspect.repriced = Some(Repricing { px, place: input.context.place() });
        }
        Ok(())
    }

    /// Counts an order that trades at the amended price after a contra order came, once.
    fn on_exec(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let (order, ts, context) = (update.order, input.ts, input.context);
        let Some(suspect) = find_suspect(&mut self.suspects, update) else { return };
        let Some(repriced) = suspect.repriced else { return };
        let has_quantity = input.record.and_then(quantity).is_some_and(|qty| qty.mantissa() > 0);
        let px = input.record.and_then(|record| Price(record.px.get()).as_option());
        if !has_quantity || px != Some(repriced.px) {
            return;
        }
        let owner = if order.owner == 0 { input.owner } else { order.owner };
        if owner == 0 {
            return out.missing(MissingValue::Field(EventField::Owner));
        }
        let contras = self.contras.get(&(order.venue, order.instr, 3 - order.side));
        let contra = contras.and_then(|last| last.iter().find(|contra| contra.owner != owner));
        let entry = suspect.entry;
        let Some(contra) = contra.filter(|contra| contra.owner != 0 && contra.place.seq > entry.seq) else {
            return;
        };
        self.suspects[update.slot as usize] = None;
        let key = (owner, order.venue, order.instr);
        let lure = Lure { places: [entry, repriced.place, contra.place, context.place()] };
        self.lures.add(key, ts, lure, context.expiry_ts);
        let window = self.lures.window(&key, i128::from(ts.0) - self.window_ns, ts);
        self.late += u64::from(!window.is_complete);
        if window.len() as u64 >= self.min_events {
            let names = vec![
                ("owner", context.name(NameKind::Owner, owner)),
                ("venue", context.name(NameKind::Venue, order.venue.into())),
                ("instr", context.name(NameKind::Instrument, order.instr.0)),
            ];
            let places = window.iter().flat_map(|(_, lure)| lure.places);
            let detail = context.detail(json!({ "lures": window.len() }), places);
            out.alert(Alert::new(ID, ts, context.seq, names, detail));
        }
    }
}

/// Returns the order of an event, if it may become a lure.
fn find_suspect<'s>(
    suspects: &'s mut [Option<SuspectOrder>],
    update: OrderUpdate<'_>,
) -> Option<&'s mut SuspectOrder> {
    let suspect = suspects.get_mut(update.slot as usize)?.as_mut();
    suspect.filter(|suspect| update.order.entry_seq() == Some(suspect.entry.seq))
}

impl Scenario for SmokingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(update) = input.order else { return };
        let judged = match input.event.kind() {
            EventKind::OrderNew => self.on_entry(input, update),
            EventKind::OrderAmend => self.on_amend(input, update),
            _ => {
                self.on_exec(input, update, out);
                Ok(())
            }
        };
        if let Err(value) = judged {
            out.missing(value);
        }
    }

    fn reset(&mut self) {
        self.suspects.clear();
        self.contras.clear();
        self.lures.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.lures.expired,
            bound_hit: self.lures.bound_hit + self.contras.bound_hit(),
            held_entries: (self.lures.entry_count() + self.contras.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
