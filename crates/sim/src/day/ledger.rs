//! The orders in the books according to the events: the slow, obvious way.

use std::collections::BTreeMap;
use unitape_model::Side;

use super::event::{DayEvent, DayEventBody, OrderKind, OrderTicket, TimeInForce};

/// A resting order, as the events describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestingOrder {
    /// The order's terms as of the last event.
    pub terms: OrderTicket,
    /// The order's remaining quantity.
    pub leaves: i64,
    /// When it took its place in the queue of its price: the ordinal of that event.
    pub since: u64,
}

/// Open orders by number, kept from the events alone.
///
/// An order is open from its `order_new` until it is cancelled or filled. It rests in the book if it may: not while it
/// waits for a stop price, and not if it is immediate. Between an `order_new` and its executions in the same step, an
/// order may cross the other side; after each step of a book that matches, no order does. An amend keeps the order's
/// turn in the queue only if price and kind stay and the quantity does not grow.
#[derive(Debug, Clone, Default)]
pub struct OrderLedger {
    orders: BTreeMap<u64, RestingOrder>,
}

impl OrderLedger {
    /// Takes an event into account.
    pub fn apply(&mut self, event: &DayEvent) {
        match event.body {
            DayEventBody::New(terms) => {
                let previous = self
                    .orders
                    .insert(terms.oid, RestingOrder { terms, leaves: terms.qty, since: event.seq });
                assert!(previous.is_none(), "an order number used twice");
            }
            DayEventBody::Amend(terms) => {
                let order = self.orders.get_mut(&terms.oid).expect("an amend of an order that lives");
                let filled_qty = order.terms.qty - order.leaves;
                let keeps = order.terms.px == terms.px && order.terms.kind == terms.kind;
                if !keeps || terms.qty > order.terms.qty {
                    order.since = event.seq;
                }
                (order.terms, order.leaves) = (terms, terms.qty - filled_qty);
            }
            DayEventBody::Cancel(terms) => {
                self.orders.remove(&terms.oid).expect("a cancel of an order that lives");
            }
            DayEventBody::Exec { order, qty, .. } => {
                let live = self.orders.get_mut(&order.oid).expect("an execution of an order that lives");
                live.leaves -= qty;
                assert!(live.leaves >= 0, "more was executed than ordered");
                if live.leaves == 0 {
                    self.orders.remove(&order.oid);
                }
            }
            _ => {}
        }
    }

    /// Returns an open order.
    pub fn order(&self, oid: u64) -> Option<&RestingOrder> {
        self.orders.get(&oid)
    }

    /// Orders that live.
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Returns whether there are no open orders.
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Orders of one side of a book, in the order in which they would be filled: number, price in ticks, remainder.
    pub fn queue(&self, book: u32, side: Side) -> Vec<(u64, i64, i64)> {
        let is_shown = |r: &&RestingOrder| {
            let t = &r.terms;
            t.book == book && t.side == side && t.kind == OrderKind::Limit && t.tif == TimeInForce::Day
        };
        let mut orders: Vec<&RestingOrder> = self.orders.values().filter(is_shown).collect();
        let better = |px: i64| if side == Side::Buy { -px } else { px };
        orders.sort_by_key(|r| (better(r.terms.px.expect("a limit order has its limit")), r.since));
        orders.iter().map(|r| (r.terms.oid, r.terms.px.expect("as above"), r.leaves)).collect()
    }

    /// Returns the levels of one side of a book, best first: price in ticks, quantity, number of orders.
    pub fn depth(&self, book: u32, side: Side) -> Vec<(i64, i64, u32)> {
        let mut levels: Vec<(i64, i64, u32)> = Vec::new();
        for (_, px, leaves) in self.queue(book, side) {
            match levels.last_mut() {
                Some(level) if level.0 == px => (level.1, level.2) = (level.1 + leaves, level.2 + 1),
                _ => levels.push((px, leaves, 1)),
            }
        }
        levels
    }
}
