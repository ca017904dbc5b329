//! Advancing the bid: an owner holds a price level by entering again whenever its order there trades.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *The price of an earlier order* is its price when something of it was executed: the latest amended one.
//! - *His last entry there*: the last earlier `order_new` of the owner, on the same side, within `level_tol_ticks`
//!   of the new price. If there is none, any execution before counts.
//! - The owner of an `order_new` is the one it names. An earlier order belongs to the first owner that its events
//!   name or, when these name none, to the owner of the execution.
//! - *In the window*: refreshes of the owner on the same side within `level_tol_ticks` of the present one, which
//!   counts, too. Nothing is consumed: every further refresh may alert.
//! - *If its price is the level*: the best price of that side is within `level_tol_ticks` of the new order's price.
//! - *As far as the BBO shows them*: the remaining quantities of the owner's live orders at that best price, as
//!   they were when the BBO came. The new order is not among them.
//! - The tick is the one known at the `order_new`. No ticks (the default of `level_tol_ticks`) need no tick. A best
//!   price without a quantity above zero is missing.
//!
//! The order events add up what each owner holds at each price of a book. A BBO takes a copy of what is held at its prices:
//!
//! ```text
//!   held, by price and owner:   100 ACME 700, 100 FUND 50, 99 ACME 20  ── BBO, bid 100 ──▶  shown: ACME 700, FUND 50
//! ```
//!
//! These sums make the module longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::{BILLION, QuantitySum};
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::orders::{OrderState, OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind, SideBook,
};
use serde_json::json;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, Price};

/// The name of the scenario.
pub const ID: &str = "excessive_bid";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[
    EventKind::OrderNew,
    EventKind::OrderAmend,
    EventKind::OrderCancel,
    EventKind::Exec,
    EventKind::Bbo,
    EventKind::Ref,
];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Market];

/// The scenario.
pub struct ExcessiveBidScenario {
    window_ns: i128,
    min_refresh: u64,
    /// Billionths.
    level_tol_ticks: u64,
    /// What happened at each price of an owner.
    levels: KeyedStates<SideBook, OwnerLevels>,
    refreshes: TimeLogs<SideBook, Refresh>,
    books: KeyedStates<BookKey, BookOrders>,
    /// The order in each slot as it is added up in its book.
    marks: Vec<Option<HeldOrder>>,
    late: u64,
    bound_hit: u64,
}

/// Venue, instrument and side.
type BookKey = (u16, InstrumentId, u8);

#[derive(Default)]
struct OwnerLevels {
    levels: BTreeMap<Price, PriceLevel>,
}

/// What an owner did at a price.
#[derive(Clone, Copy, Default)]
struct PriceLevel {
    /// Ordinal of the last entry; 0 none.
    entry_seq: u64,
    /// The last execution.
    hit: Option<EvidencePlace>,
}

#[derive(Clone, Copy)]
struct Refresh {
    px: Price,
    place: EvidencePlace,
}

/// Live orders at one side of a book.
#[derive(Default)]
struct BookOrders {
    /// Remaining quantity by price and owner.
    held: BTreeMap<(Price, u32), QuantitySum>,
    /// Remaining quantity by owner at the best price, when the last BBO came.
    shown: Vec<(u32, QuantitySum)>,
}

/// A live order.
#[derive(Clone, Copy)]
struct HeldOrder {
    owner: u32,
    book: BookKey,
    px: Price,
    left: QuantitySum,
}

/// Prices of an owner at one side of a book that are remembered. After that, the one where nothing happened for longest is
/// forgotten.
const LEVELS_MAX: usize = 1024;

state_value!(OwnerLevels { levels });
state_value!(PriceLevel { entry_seq, hit });
state_value!(Refresh { px, place });
state_value!(BookOrders { held, shown });
state_value!(HeldOrder { owner, book, px, left });
watch_state!(ExcessiveBidScenario {
    levels, refreshes, books, marks, late, bound_hit | window_ns, min_refresh, level_tol_ticks,
});

impl ExcessiveBidScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.seconds("window_s");
        Self {
            window_ns,
            min_refresh: params.uint("min_refresh"),
            level_tol_ticks: params.nano("level_tol_ticks"),
            levels: KeyedStates::new(),
            refreshes: TimeLogs::new(window_ns),
            books: KeyedStates::new(),
            marks: Vec::new(),
            late: 0,
            bound_hit: 0,
        }
    }

    /// Adds the order up in its book as it is now.
    fn follow(&mut self, update: OrderUpdate<'_>) {
        let slot = update.slot as usize;
        // The slot may have belonged to another order.
        if let Some(before) = self.marks.get_mut(slot).and_then(Option::take)
            && let Some(book) = self.books.get_mut(&before.book)
        {
            book.subtract(&before);
        }
        let Some(held) = HeldOrder::of(update.order) else { return };
        if self.marks.len() <= slot {
            self.marks.resize(slot + 1, None);
        }
        self.marks[slot] = Some(held);
        let book = self.books.get_or_insert_with(held.book, BookOrders::default);
        book.held.entry((held.px, held.owner)).or_default().plus(&held.left);
    }

    /// Keeps what each owner holds at the best prices.
    fn on_bbo(&mut self, input: &ScenarioInput<'_, '_>) {
        let (venue, instr) = (input.event.venue(), input.event.instrument());
        let best = input.context.market.best(venue, instr);
        for side in [1, 2] {
            let Some(book) = self.books.get_mut(&(venue, instr, side)) else { continue };
            book.shown.clear();
            if let Some(px) = best.and_then(|best| best.of_side(side)) {
                let at_best = book.held.range((px, 0)..=(px, u32::MAX));
                book.shown.extend(at_best.map(|((_, owner), left)| (*owner, *left)));
            }
        }
    }

    /// Keeps an execution of an order at its price.
    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(order) = input.order.map(|update| update.order).filter(|order| order.entry_seq().is_some())
        else {
            return out.missing(MissingValue::Order);
        };
        if input.record.and_then(quantity).is_none_or(|qty| qty.mantissa() <= 0) {
            return out.missing(MissingValue::Field(EventField::Qty));
        }
        let owner = if order.owner == 0 { input.owner } else { order.owner };
        let Some(px) = order.px.as_option() else { return };
        if owner == 0 {
            return out.missing(MissingValue::Field(EventField::Owner));
        }
        let key = SideBook { owner, venue: order.venue, instr: order.instr, side: order.side };
        let hit = Some(input.context.place());
        self.bound_hit +=
            self.levels.get_or_insert_with(key, OwnerLevels::default).set(px, |level| level.hit = hit);
    }

    fn on_entry(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let key = match input.side_book() {
            Ok(key) => key,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let Some(px) = input.record.and_then(|record| Price(record.px.get()).as_option()) else {
            return out.missing(MissingValue::Field(EventField::Px));
        };
        match self.judge(key, px, input) {
            Ok(alert) => alert.into_iter().for_each(|alert| out.alert(alert)),
            Err(value) => out.missing(value),
        }
        let (levels, seq) = (self.levels.get_or_insert_with(key, OwnerLevels::default), input.context.seq);
        self.bound_hit += levels.set(px, |level| level.entry_seq = seq);
    }

    /// Judges a new order. The error is the value that is missing.
    fn judge(
        &mut self,
        key: SideBook,
        px: Price,
        input: &ScenarioInput<'_, '_>,
    ) -> Result<Option<Alert>, MissingValue> {
        let (context, ts) = (input.context, input.ts);
        let tick = context.market.reference(key.instr).and_then(|terms| terms.tick);
        let most = match tick.filter(|tick| tick.0 > 0) {
            _ if self.level_tol_ticks == 0 => 0,
            Some(tick) => i128::from(tick.0) * i128::from(self.level_tol_ticks) / BILLION,
            None => return Err(MissingValue::Reference(EventField::Tick)),
        };
        let Some(hit) = self.levels.get(&key).and_then(|levels| levels.hit_since_entry(px, most)) else {
            return Ok(None);
        };
        let refresh = Refresh { px, place: context.place() };
        self.refreshes.add(key, ts, refresh, context.expiry_ts);
        let best = context.market.best(key.venue, key.instr).ok_or(MissingValue::BestPrice)?;
        let displayed = if key.side == 1 { best.bid_qty } else { best.ask_qty };
        let best_px = best.of_side(key.side).ok_or(MissingValue::BestPrice)?;
        let displayed = displayed.filter(|qty| qty.mantissa() > 0).ok_or(MissingValue::BestPrice)?;
        let is_level = |other: Price| (i128::from(other.0) - i128::from(px.0)).abs() <= most;
        let held = self.shown(key);
        if !is_level(best_px) || held.times(100) <= QuantitySum::from_decimal(displayed).times(MIN_SHARE_PCT)
        {
            return Ok(None);
        }
        let window = self.refreshes.window(&key, i128::from(ts.0) - self.window_ns, ts);
        self.late += u64::from(!window.is_complete);
        let refreshes = || window.iter().map(|(_, refresh)| refresh).filter(|refresh| is_level(refresh.px));
        let count = refreshes().count() as u64;
        if count < self.min_refresh {
            return Ok(None);
        }
        let mut names = key.names(context);
        names.retain(|(part, _)| *part != "side");
        let values = json!({
            "side": if key.side == 1 { "B" } else { "S" }, "px": px.to_string(), "refreshes": count,
            "held": held.to_string(), "displayed": displayed.to_string(),
        });
        let evidence = refreshes().map(|refresh| refresh.place).chain([hit, best.place()]);
        Ok(Some(Alert::new(ID, ts, context.seq, names, context.detail(values, evidence))))
    }

    /// Returns what an owner held at the best price when the last BBO came.
    fn shown(&self, key: SideBook) -> QuantitySum {
        let book = self.books.get(&(key.venue, key.instr, key.side));
        let mut shown = book.into_iter().flat_map(|book| &book.shown);
        shown.find(|(owner, _)| *owner == key.owner).map_or(QuantitySum::ZERO, |(_, left)| *left)
    }
}

impl OwnerLevels {
    /// Changes what happened at a price. Returns the number of prices that are forgotten because there is no room.
    fn set(&mut self, px: Price, change: impl FnOnce(&mut PriceLevel)) -> u64 {
        change(self.levels.entry(px).or_default());
        if self.levels.len() <= LEVELS_MAX {
            return 0;
        }
        let oldest = self.levels.iter().min_by_key(|(_, level)| level.entry_seq.max(level.hit_seq()));
        let oldest = oldest.map(|(px, _)| *px);
        oldest.and_then(|px| self.levels.remove(&px)).map_or(0, |_| 1)
    }

    /// Returns the last execution at a price or within `most` of it, if there was no entry after it.
    fn hit_since_entry(&self, px: Price, most: i128) -> Option<EvidencePlace> {
        let at = |px: i128| Price(px.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        let px = i128::from(px.0);
        let near = || self.levels.range(at(px - most)..=at(px + most)).map(|(_, level)| level);
        let entry_seq = near().map(|level| level.entry_seq).max()?;
        let hit = near().filter_map(|level| level.hit).max_by_key(|hit| hit.seq)?;
        (hit.seq > entry_seq).then_some(hit)
    }
}

impl PriceLevel {
    fn hit_seq(&self) -> u64 {
        self.hit.map_or(0, |hit| hit.seq)
    }
}

impl BookOrders {
    fn subtract(&mut self, order: &HeldOrder) {
        let key = (order.px, order.owner);
        let Some(left) = self.held.get_mut(&key) else { return };
        if *left > order.left {
            *left = left.minus_earlier(&order.left);
        } else {
            self.held.remove(&key);
        }
    }
}

impl HeldOrder {
    /// Returns a live order that has an owner, a book and a price.
    fn of(order: &OrderState) -> Option<Self> {
        let px = order.px.as_option()?;
        let qty: Decimal = order.qty().filter(|_| order.is_live() && order.owner != 0)?;
        let book = (order.venue, order.instr, order.side);
        let left = QuantitySum::from_decimal(qty).minus_earlier(&order.executed);
        Some(Self { owner: order.owner, book, px, left })
    }
}

impl Scenario for ExcessiveBidScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.event.kind() {
            EventKind::Bbo => return self.on_bbo(input),
            EventKind::Exec => self.on_exec(input, out),
            EventKind::OrderNew => self.on_entry(input, out),
            _ => {}
        }
        input.order.into_iter().for_each(|update| self.follow(update));
    }

    fn on_venue_change(&mut self, input: &ScenarioInput<'_, '_>) {
        input.order.into_iter().for_each(|update| self.follow(update));
    }

    fn reset(&mut self) {
        self.levels.clear();
        self.refreshes.clear();
        self.books.clear();
        self.marks.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.refreshes.expired,
            bound_hit: self.bound_hit
                + self.refreshes.bound_hit
                + self.levels.bound_hit()
                + self.books.bound_hit(),
            held_entries: (self.levels.len() + self.refreshes.entry_count() + self.books.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// The owner holds more than this much of the displayed quantity.
const MIN_SHARE_PCT: u64 = 60;
