//! Layering: orders at several prices that are not meant to trade push the market, and are pulled after a trade on
//! the other side.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *P's live orders* are those whose first event with an owner, the `order_new` or an amend, names P. They are
//!   judged with E included. An order without a price counts in |L| and is no level. An order without an instrument
//!   or a side takes no part.
//! - *E*: an execution without owner, instrument, side or a quantity above zero takes no part.
//! - *Open episode*: each event is judged by its own time. An event stamped later than tE+cancel_ms does not belong
//!   to the episode; an event that comes after it, stamped earlier, still does. A newly opened episode takes its
//!   place.
//! - *Within cancel_ms* has no lower limit in time: executions, fills and cancels come after E by sequence, and may
//!   be stamped earlier.
//! - *Each cancel of an order of L* is a cancel by the trader that finds the order live. A second cancel, the
//!   cancel of a filled order, and a cancel that the venue made add nothing, and the condition is not tested at
//!   them.
//! - *Fills of L* belong to the order, whatever owner or side the execution names.
//! - An order whose id another `order_new` has used is no longer of L.
//!
//! ```text
//!   seq ─▶  new, new, new, new (buys) ──── exec: a sale ──── cancel, cancel, cancel
//!             │ kept by time of entry        │ episode: Q, G     │ C, F; the condition is tested here
//! ```

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::orders::{OrderState, OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput,
    SharedStateKind, SideBook,
};
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind};

/// The name of the scenario.
pub const ID: &str = "layering";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario, and its sibling across venues.
pub struct LayeringScenario {
    rules: LayeringRules,
    /// Orders by owner, instrument and side, by the time of their entry. The venue of the key is 0.
    entries: TimeLogs<SideBook, EnteredOrder>,
    /// Open episodes. The side is that of the layered orders.
    episodes: KeyedStates<SideBook, LayeringEpisode>,
    /// The episode of each order, by its slot.
    layers: Vec<LayeredOrder>,
    /// Prices of the orders in hand.
    prices: Vec<i64>,
    late: u64,
}

/// The parameters.
struct LayeringRules {
    id: &'static str,
    /// Orders of other venues than the execution's are layered, and the venue is no part of the key.
    is_cross_venue: bool,
    min_orders: u64,
    min_levels: u64,
    build_ns: i128,
    cancel_ns: i128,
    /// Billionths.
    min_size_ratio: u64,
    cancel_pct: u64,
    max_filled_pct: u64,
}

/// An order, from its entry on.
#[derive(Clone, Copy)]
struct EnteredOrder {
    slot: u32,
    venue: u16,
    entry: EvidencePlace,
}

/// An episode: a trade against the layered orders, and what came after it.
#[derive(Clone)]
struct LayeringEpisode {
    /// Ordinal of the execution that opened it.
    seq: u64,
    end_ns: i128,
    /// Remaining quantity of the layered orders when it opened (Q).
    layered: QuantitySum,
    /// Executed on the other side (G).
    traded: QuantitySum,
    /// Cancelled of the layered orders (C), and executed of them (F).
    cancelled: QuantitySum,
    filled: QuantitySum,
    evidence: Vec<EvidencePlace>,
}

/// The episode of an order.
#[derive(Clone, Copy)]
struct LayeredOrder {
    /// Ordinals of the order's entry and of the episode's execution; 0 if it is in none.
    entry_seq: u64,
    episode_seq: u64,
    key: SideBook,
}

state_value!(EnteredOrder { slot, venue, entry });
state_value!(LayeringEpisode { seq, end_ns, layered, traded, cancelled, filled, evidence });
state_value!(LayeredOrder { entry_seq, episode_seq, key });
watch_state!(LayeringScenario { entries, episodes, layers, late | rules, prices });

const NO_LAYER: LayeredOrder = LayeredOrder {
    entry_seq: 0,
    episode_seq: 0,
    key: SideBook { owner: 0, venue: 0, instr: unitape_model::InstrumentId(0), side: 0 },
};

impl LayeringScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self::with_rules(params, ID, false)
    }

    pub(super) fn with_rules(params: &ScenarioParams, id: &'static str, is_cross_venue: bool) -> Self {
        let rules = LayeringRules {
            id,
            is_cross_venue,
            min_orders: params.uint("min_orders"),
            min_levels: params.uint("min_levels"),
            build_ns: params.millis("build_ms"),
            cancel_ns: params.millis("cancel_ms"),
            min_size_ratio: params.nano("min_size_ratio"),
            cancel_pct: params.nano("cancel_pct"),
            max_filled_pct: params.nano("max_filled_pct"),
        };
        Self {
            entries: TimeLogs::new(rules.build_ns),
            rules,
            episodes: KeyedStates::new(),
            layers: Vec::new(),
            prices: Vec::new(),
            late: 0,
        }
    }

    /// Keeps an order by its entry as soon as its owner is known.
    fn keep_entry(&mut self, input: &ScenarioInput<'_, '_>, update: OrderUpdate<'_>) {
        let order = update.order;
        let Some(seq) = order.entry_seq() else { return };
        let is_named = order.owner != 0 && order.instr.0 != 0 && matches!(order.side, 1 | 2);
        if !is_named || self.rules.is_cross_venue && order.venue == 0 {
            return;
        }
        let entry = EvidencePlace { seq, position: order.kept_entry_position() };
        let entered = EnteredOrder { slot: update.slot, venue: order.venue, entry };
        self.entries.add(entries_key(order), order.entry_ts, entered, input.context.expiry_ts);
    }

    /// Opens an episode if enough live orders are on the other side of an execution.
    fn open(&mut self, input: &ScenarioInput<'_, '_>, key: SideBook, qty: Decimal) {
        let (context, rules) = (input.context, &self.rules);
        let now = i128::from(input.ts.0);
        let window = self.entries.window(&SideBook { venue: 0, ..key }, now - rules.build_ns, input.ts);
        self.late += u64::from(!window.is_complete);
        if (window.len() as u64) < rules.min_orders {
            return;
        }
        let is_there = |entered: &EnteredOrder| (entered.venue == input.venue) != rules.is_cross_venue;
        let layers = || {
            window.iter().filter(|(_, entered)| is_there(entered)).filter_map(|(_, entered)| {
                Some((entered, context.orders.find_live(entered.slot, entered.entry.seq)?))
            })
        };
        self.prices.clear();
        self.prices.extend(layers().filter_map(|(_, order)| Some(order.px.as_option()?.0)));
        self.prices.sort_unstable();
        self.prices.dedup();
        if (layers().count() as u64) < rules.min_orders || (self.prices.len() as u64) < rules.min_levels {
            return;
        }
        let mut episode = LayeringEpisode {
            seq: context.seq,
            end_ns: now + rules.cancel_ns,
            layered: QuantitySum::ZERO,
            traded: QuantitySum::from_decimal(qty),
            cancelled: QuantitySum::ZERO,
            filled: QuantitySum::ZERO,
            evidence: vec![context.place()],
        };
        for (entered, order) in layers() {
            episode.layered.plus(&leaves(order));
            episode.evidence.push(entered.entry);
            let slot = entered.slot as usize;
            if self.layers.len() <= slot {
                self.layers.resize(slot + 1, NO_LAYER);
            }
            let (entry_seq, episode_seq) = (entered.entry.seq, episode.seq);
            self.layers[slot] = LayeredOrder { entry_seq, episode_seq, key };
        }
        self.episodes.set(key, episode);
    }

    /// Returns the key and the episode of a layered order to which an event at this time still belongs.
    fn episode_of(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
    ) -> Option<(SideBook, &mut LayeringEpisode)> {
        let layer = *self.layers.get(update.slot as usize)?;
        let is_same = layer.episode_seq != 0 && update.order.entry_seq() == Some(layer.entry_seq);
        let episode = self.episodes.get_mut(&layer.key).filter(|episode| {
            is_same && episode.seq == layer.episode_seq && i128::from(input.ts.0) <= episode.end_ns
        })?;
        Some((layer.key, episode))
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(qty) = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0) else {
            return out.missing(MissingValue::Field(EventField::Qty));
        };
        if let Some((_, episode)) = input.order.and_then(|update| self.episode_of(input, update)) {
            episode.filled.add(qty);
        }
        let key = match input.side_book() {
            Ok(key) => key,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let venue = if self.rules.is_cross_venue { 0 } else { key.venue };
        let key = SideBook { venue, side: 3 - key.side, ..key };
        match self.episodes.get_mut(&key) {
            Some(episode) if i128::from(input.ts.0) <= episode.end_ns => episode.traded.add(qty),
            _ => self.open(input, key, qty),
        }
    }

    fn on_cancel(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        update: OrderUpdate<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let Some((key, episode)) = self.episode_of(input, update).filter(|_| update.was_live) else { return };
        episode.cancelled.plus(&leaves(update.order));
        episode.evidence.push(input.context.place());
        let (episode, rules) = (episode.clone(), &self.rules);
        if !rules.fires(&episode) {
            return;
        }
        self.episodes.remove(&key);
        let context = input.context;
        let detail = json!({
            "layered": episode.layered.to_string(), "traded": episode.traded.to_string(),
            "cancelled": episode.cancelled.to_string(), "filled": episode.filled.to_string(),
        });
        let detail = context.detail(detail, episode.evidence);
        out.alert(Alert::new(rules.id, input.ts, context.seq, rules.key(key, context), detail));
    }
}

impl LayeringRules {
    /// Returns whether C × 100 ≥ limit × Q, Q ≥ ratio × G and F × 100 ≤ limit × Q.
    fn fires(&self, episode: &LayeringEpisode) -> bool {
        let LayeringEpisode { layered, traded, cancelled, filled, .. } = episode;
        cancelled.times(100 * BILLION) >= layered.times(self.cancel_pct)
            && layered.times(BILLION) >= traded.times(self.min_size_ratio)
            && filled.times(100 * BILLION) <= layered.times(self.max_filled_pct)
    }

    fn key(&self, key: SideBook, context: &ScenarioContext<'_>) -> Vec<(&'static str, String)> {
        let mut names = key.names(context);
        names.retain(|(part, _)| !(self.is_cross_venue && *part == "venue"));
        names
    }
}

/// Returns the key of an order's entry: without its venue, so that both scenarios find it.
fn entries_key(order: &OrderState) -> SideBook {
    SideBook { owner: order.owner, venue: 0, instr: order.instr, side: order.side }
}

/// Returns the remaining quantity of an order that is or was live.
fn leaves(order: &OrderState) -> QuantitySum {
    let qty = order.qty().map_or(QuantitySum::ZERO, QuantitySum::from_decimal);
    if qty > order.executed { qty.minus_earlier(&order.executed) } else { QuantitySum::ZERO }
}

impl Scenario for LayeringScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match (input.event.kind(), input.order) {
            (EventKind::Exec, _) => self.on_exec(input, out),
            (EventKind::OrderNew, Some(update)) => self.keep_entry(input, update),
            (EventKind::OrderAmend, Some(update)) if update.names_owner => self.keep_entry(input, update),
            (EventKind::OrderCancel, Some(update)) => self.on_cancel(input, update, out),
            _ => {}
        }
    }

    fn on_venue_change(&mut self, input: &ScenarioInput<'_, '_>) {
        if let (EventKind::OrderAmend, Some(update)) = (input.event.kind(), input.order)
            && update.names_owner
        {
            self.keep_entry(input, update);
        }
    }

    fn reset(&mut self) {
        self.entries.clear();
        self.episodes.clear();
        self.layers.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.entries.expired,
            bound_hit: self.entries.bound_hit + self.episodes.bound_hit(),
            held_entries: (self.entries.entry_count() + self.episodes.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BILLION: u64 = 1_000_000_000;
