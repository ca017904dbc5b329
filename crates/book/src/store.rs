//! The memory of the orders and price levels of all books: two slabs, and an index by order id.
//!
//! ```text
//!   index  (listing, oid) ─▶ slot          orders  ┌ oid ─────── px ─ left ─ done ─ links ─ level ┐ 64 bytes
//!                                                  └ …                                            ┘
//!                                          levels  ┌ quantity, orders, first and last in line ────┐ 48 bytes
//! ```
//!
//! Slots are used again, so nothing is allocated once the slabs have grown to the greatest number of live orders.

use crate::qty::{self, OrderQuantity};
use crate::state::State;
use crate::value::{OrderId, OrderView};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use unitape_model::{Price, Side};

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// An order, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct StoredOrder {
    pub oid: OrderId,
    /// [`Price::NONE`] for none.
    pub px: i64,
    /// The remaining quantity, in 10^[`StoredOrder::exp`].
    pub left: i64,
    /// The executed quantity, in the same power.
    pub done: i64,
    /// Its neighbours in the queue, or in the list of orders without one.
    pub prev: u32,
    pub next: u32,
    /// Its level, [`NONE`] when it is in no queue.
    pub level: u32,
    /// 23 bits of listing, 1 for a partly shown order, 6 of exponent, 1 of side, 1 for an order that never enters a
    /// queue.
    pub tags: u32,
}

const _: () = assert!(size_of::<StoredOrder>() == 64);

/// Listings at most, as [`StoredOrder`] has room for.
pub(crate) const LISTINGS_MAX: u32 = 1 << 23;

impl StoredOrder {
    pub fn new(oid: OrderId, listing: u32, side: Side, px: i64, is_hidden: bool) -> Self {
        debug_assert!(listing < LISTINGS_MAX);
        let tags = listing | (side as u32) << 30 | u32::from(is_hidden) << 31;
        let this = Self { oid, px, left: 0, done: 0, prev: NONE, next: NONE, level: NONE, tags };
        this.with_exp(0)
    }

    #[inline]
    pub fn listing(&self) -> u32 {
        self.tags & (LISTINGS_MAX - 1)
    }

    #[inline]
    pub fn exp(&self) -> i8 {
        (self.tags >> 24 & 63) as i8 - 30
    }

    #[inline]
    pub fn side(&self) -> Side {
        if self.tags >> 30 & 1 == 0 { Side::Buy } else { Side::Sell }
    }

    /// Returns whether the order is hidden, which means that it never enters a queue.
    #[inline]
    pub fn is_hidden(&self) -> bool {
        self.tags >> 31 != 0
    }

    #[must_use]
    pub fn with_exp(mut self, exp: i8) -> Self {
        self.tags = self.tags & !(63 << 24) | ((exp + 30) as u32 & 63) << 24;
        self
    }

    #[must_use]
    pub fn with_hidden(mut self, is_hidden: bool) -> Self {
        self.tags = self.tags & !(1 << 31) | u32::from(is_hidden) << 31;
        self
    }

    /// Returns whether the order shows only a part of its quantity. The [`OrderStore`] holds the shown part.
    #[inline]
    pub fn is_partly_shown(&self) -> bool {
        self.tags >> 23 & 1 != 0
    }

    #[must_use]
    pub fn with_partly_shown(mut self, is_partly_shown: bool) -> Self {
        self.tags = self.tags & !(1 << 23) | u32::from(is_partly_shown) << 23;
        self
    }
}

/// A price with its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriceQueue {
    /// In 10^scale of its book.
    pub units: i128,
    pub px: i64,
    pub first_slot: u32,
    pub last_slot: u32,
    pub orders: u32,
}

/// The slabs and the index.
pub(crate) struct OrderStore {
    pub orders: Vec<StoredOrder>,
    pub queues: Vec<PriceQueue>,
    free_orders: Vec<u32>,
    free_queues: Vec<u32>,
    index: HashTable<u32>,
    /// Seeded per process: ids come from outside, and nothing that is seen depends on the hash.
    hasher: DefaultHashBuilder,
    orders_max: u32,
    /// The largest visible quantity of partly hidden orders, by slot; mantissa and exponent.
    displays: HashMap<u32, OrderQuantity, FxBuildHasher>,
}

impl OrderStore {
    pub fn new(orders_max: u32) -> Self {
        Self {
            orders: Vec::new(),
            queues: Vec::new(),
            free_orders: Vec::new(),
            free_queues: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            orders_max: orders_max.min(NONE - 1),
            displays: HashMap::default(),
        }
    }

    /// Counts the live orders.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() >= self.orders_max as usize
    }

    /// Looks up the slot of an order.
    #[inline]
    pub fn find_order(&self, listing: u32, oid: &OrderId) -> Option<u32> {
        let orders = &self.orders;
        let is_same = |&slot: &u32| {
            let order = &orders[slot as usize];
            order.oid == *oid && order.listing() == listing
        };
        self.index.find(hash(&self.hasher, listing, oid), is_same).copied()
    }

    /// Takes in an order that is not there yet.
    pub fn insert(&mut self, order: StoredOrder) -> u32 {
        let slot = match self.free_orders.pop() {
            Some(slot) => {
                self.orders[slot as usize] = order;
                slot
            }
            None => {
                self.orders.push(order);
                self.orders.len() as u32 - 1
            }
        };
        let (orders, hasher) = (&self.orders, &self.hasher);
        self.index.insert_unique(hash(hasher, order.listing(), &order.oid), slot, |&slot| {
            let order = &orders[slot as usize];
            hash(hasher, order.listing(), &order.oid)
        });
        slot
    }

    /// Returns the visible quantity of the order in a slot, in units of the order's exponent.
    #[inline]
    pub fn shown_quantity(&self, slot: u32) -> i64 {
        let order = &self.orders[slot as usize];
        if order.is_partly_shown() { self.shown_part(slot, order) } else { order.left }
    }

    #[cold]
    fn shown_part(&self, slot: u32, order: &StoredOrder) -> i64 {
        let display = self.displays.get(&slot).and_then(|display| display.units(order.exp()));
        display.map_or(order.left, |m| m.min(order.left))
    }

    /// Limits the shown quantity of the order in a slot from now on.
    pub fn set_display(&mut self, slot: u32, display: OrderQuantity) {
        let order = &mut self.orders[slot as usize];
        *order = order.with_partly_shown(true);
        self.displays.insert(slot, display);
    }

    /// Makes the view of an order that users see.
    pub fn view(&self, order: &StoredOrder) -> OrderView {
        let (left, exp) = (order.left, order.exp());
        let slot = || self.find_order(order.listing(), &order.oid);
        let shown_units = if order.is_partly_shown() {
            slot().map_or(left, |slot| self.shown_quantity(slot))
        } else {
            left
        };
        OrderView {
            oid: order.oid,
            side: order.side(),
            px: Price(order.px).as_option(),
            left: qty::decimal(left, exp),
            visible_qty: qty::decimal(shown_units, exp),
            executed_qty: qty::decimal(order.done, exp),
            is_queued: order.level != NONE,
        }
    }

    /// Returns the free slots of orders and the free slots of queues.
    pub fn free_slots(&self) -> (&[u32], &[u32]) {
        (&self.free_orders, &self.free_queues)
    }

    /// Returns whether the order in a slot limits its shown quantity.
    pub fn has_display(&self, slot: u32) -> bool {
        self.displays.contains_key(&slot)
    }

    /// Lets an order go.
    pub fn remove(&mut self, slot: u32) {
        let order = &self.orders[slot as usize];
        if order.is_partly_shown() {
            self.displays.remove(&slot);
        }
        let hash = hash(&self.hasher, order.listing(), &order.oid);
        if let Ok(entry) = self.index.find_entry(hash, |&entry_slot| entry_slot == slot) {
            entry.remove();
            self.free_orders.push(slot);
        }
    }

    /// Stores a new queue and returns its index.
    pub fn open_queue(&mut self, queue: PriceQueue) -> u32 {
        match self.free_queues.pop() {
            Some(queue_index) => {
                self.queues[queue_index as usize] = queue;
                queue_index
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        }
    }

    pub fn close_queue(&mut self, queue_index: u32) {
        self.free_queues.push(queue_index);
    }
}

#[inline]
fn hash(hasher: &DefaultHashBuilder, listing: u32, oid: &OrderId) -> u64 {
    let [a, b, c] = split_words(&oid.0);
    hasher.hash_one((a, b, c, listing))
}

/// Splits the 24 bytes into three words.
#[inline]
fn split_words(bytes: &[u8; 24]) -> [u64; 3] {
    [0, 8, 16].map(|offset| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes")))
}

crate::state::state!(StoredOrder { oid, px, left, done, prev, next, level, tags });
crate::state::state!(PriceQueue { units, px, first_slot, last_slot, orders });

impl OrderStore {
    /// Puts the slabs into bytes, slot by slot.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.orders.encode(out);
        self.queues.encode(out);
        self.free_orders.encode(out);
        self.free_queues.encode(out);
        self.displays.encode(out);
    }

    /// Reads the slabs and makes the index again. Returns `None` if an order is there twice.
    pub fn decode(orders_max: u32, input: &mut &[u8]) -> Option<Self> {
        let mut this = Self {
            orders: State::decode(input)?,
            queues: State::decode(input)?,
            free_orders: State::decode(input)?,
            free_queues: State::decode(input)?,
            displays: State::decode(input)?,
            ..Self::new(orders_max)
        };
        let mut is_free = vec![false; this.orders.len()];
        for slot in &this.free_orders {
            *is_free.get_mut(*slot as usize)? = true;
        }
        let (orders, hasher) = (&this.orders, &this.hasher);
        let hash_of = |slot: &u32| {
            let order = &orders[*slot as usize];
            hash(hasher, order.listing(), &order.oid)
        };
        this.index.reserve(orders.len() - this.free_orders.len().min(orders.len()), hash_of);
        for slot in (0..orders.len() as u32).filter(|slot| !is_free[*slot as usize]) {
            let order = &orders[slot as usize];
            let is_same = |other_slot: &u32| {
                let other_order = &orders[*other_slot as usize];
                other_order.oid == order.oid && other_order.listing() == order.listing()
            };
            match this.index.entry(hash_of(&slot), is_same, hash_of) {
                Entry::Vacant(entry) => _ = entry.insert(slot),
                Entry::Occupied(_) => return None,
            }
        }
        Some(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a small field spills over and changes its neighbour in the shared word.
    #[test]
    fn tags_keep_to_their_bits() {
        let oid = OrderId([7; 24]);
        for listing in [0, 1, LISTINGS_MAX - 1] {
            for side in Side::BOTH {
                for hidden in [false, true] {
                    for exp in -30..=30 {
                        for partly in [false, true] {
                            let order =
                                StoredOrder::new(oid, listing, side, 5, !hidden).with_partly_shown(partly);
                            let order = order.with_exp(exp).with_hidden(hidden);
                            assert_eq!(
                                (order.listing(), order.side(), order.is_hidden(), order.exp()),
                                (listing, side, hidden, exp)
                            );
                            assert_eq!(order.is_partly_shown(), partly);
                        }
                    }
                }
            }
        }
    }
}
