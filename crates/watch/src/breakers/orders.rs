//! The orders, parent orders and prices that a breaker remembers.

use super::scope::{EventScopes, NO_SCOPE};
use crate::exact::QuantitySum;
use crate::ids::IdKey;
use crate::table::{BoundedTable, EntryRank};
use hashbrown::HashMap;
use unitape_model::{Decimal, Event, EventField, EventKind, EventValue, InstrumentId, Price};

/// The greatest number of kept orders and parents. Ended orders are forgotten first, then the oldest orders.
const ORDERS_MAX: usize = 1 << 20;
const SPENT_MAX: usize = 1 << 16;

/// An order according to the events up to now.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownOrder {
    pub scopes: EventScopes,
    pub qty: Option<Decimal>,
    pub px: Option<Price>,
    pub executed: QuantitySum,
    pub parent: Option<IdKey>,
    /// The last counted value in billionths.
    pub value: i128,
    pub ccy: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownParent {
    pub qty: Option<Decimal>,
    pub executed: QuantitySum,
}

/// Orders by venue and id, parents by id, last prices by instrument.
pub(super) struct OrderBookkeeping {
    pub orders: BoundedTable<(u16, IdKey), KnownOrder>,
    pub parents: BoundedTable<IdKey, KnownParent>,
    prices: HashMap<InstrumentId, Price>,
    currencies: HashMap<String, u32>,
    currency_of: HashMap<InstrumentId, u32>,
}

impl OrderBookkeeping {
    pub fn new() -> Self {
        Self {
            orders: BoundedTable::new(ORDERS_MAX, SPENT_MAX),
            parents: BoundedTable::new(ORDERS_MAX, 0),
            prices: HashMap::new(),
            currencies: HashMap::new(),
            currency_of: HashMap::new(),
        }
    }

    /// Learns the prices and currencies in an event.
    pub fn update_from_event(&mut self, event: &Event<'_>) {
        let instr = event.instrument();
        match event.kind() {
            EventKind::Trade | EventKind::Exec | EventKind::RefPx if !is_cancelled(event) => {
                self.prices.extend(price(event, EventField::Px).map(|px| (instr, px)));
            }
            EventKind::Ref => {
                if let Some(px) = price(event, EventField::PrevClose) {
                    self.prices.entry(instr).or_insert(px);
                }
                if let Some(EventValue::Text(ccy)) = event.field(EventField::Ccy, &mut [0; 36]) {
                    let ccy = self.currency_index(ccy);
                    self.currency_of.insert(instr, ccy);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of the currency of an order: its own currency, or the instrument's. Returns 0 if neither is
    /// known.
    pub fn currency_of(&mut self, event: &Event<'_>) -> u32 {
        match event.field(EventField::Ccy, &mut [0; 36]) {
            Some(EventValue::Text(ccy)) => self.currency_index(ccy),
            _ => self.currency_of.get(&event.instrument()).copied().unwrap_or_default(),
        }
    }

    /// Returns the last price of the instrument.
    pub fn last_price(&self, instr: InstrumentId) -> Option<Price> {
        self.prices.get(&instr).copied()
    }

    fn currency_index(&mut self, ccy: &str) -> u32 {
        let next_index = self.currencies.len() as u32 + 1;
        *self.currencies.entry_ref(ccy).or_insert(next_index)
    }

    /// Keeps an order. An ended order is forgotten sooner.
    pub fn keep(&mut self, key: (u16, IdKey), order: KnownOrder, is_over: bool) {
        let rank = if is_over { EntryRank::Spent } else { EntryRank::Kept };
        match self.orders.find(&key) {
            Some(slot) => {
                *self.orders.get_mut(slot) = order;
                self.orders.set_rank(slot, rank);
            }
            None => _ = self.orders.insert(key, order, rank),
        }
    }

    /// Returns the orders and parents that were forgotten for want of room before they were over.
    pub fn forgotten(&self) -> u64 {
        let kept_rank = EntryRank::Kept as usize;
        self.orders.forgotten_entries[kept_rank] + self.parents.forgotten_entries[kept_rank]
    }
}

impl KnownOrder {
    pub const UNKNOWN: Self = Self {
        scopes: [NO_SCOPE; 8],
        qty: None,
        px: None,
        executed: QuantitySum::ZERO,
        parent: None,
        value: 0,
        ccy: 0,
    };
}

fn is_cancelled(event: &Event<'_>) -> bool {
    matches!(event.field(EventField::Action, &mut [0; 36]), Some(EventValue::Text("cancel")))
}

/// Returns the price in a field.
pub(crate) fn price(event: &Event<'_>, field: EventField) -> Option<Price> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Price(px)) => Some(px),
        _ => None,
    }
}

/// Returns the quantity of an event.
pub(crate) fn quantity(event: &Event<'_>) -> Option<Decimal> {
    match event.field(EventField::Qty, &mut [0; 36]) {
        Some(EventValue::Decimal(qty)) => Some(qty),
        _ => None,
    }
}

/// Computes price times quantity in billionths, without its sign and rounded up; at most [`VALUE_MAX`].
pub(crate) fn value_of(px: Price, qty: Decimal) -> i128 {
    let product = i128::from(px.0).unsigned_abs() * u128::from(qty.mantissa().unsigned_abs());
    let scale = 10u128.checked_pow(u32::from(qty.exponent().unsigned_abs()));
    let value = match (qty.exponent() < 0, scale) {
        (true, Some(scale)) => product.div_ceil(scale),
        (true, None) => u128::from(product > 0),
        (false, Some(scale)) => product.saturating_mul(scale),
        (false, None) => u128::MAX * u128::from(product > 0),
    };
    i128::try_from(value).unwrap_or(VALUE_MAX).min(VALUE_MAX)
}

/// A value that passes every limit.
pub(super) const VALUE_MAX: i128 = 1_000_000_000_000_000_000_000_000_000_000;
