//! One limit order book: price, then time.
//!
//! ```text
//!   bids, best last:   [ 98 ] [ 99 ] [ 100 ]          asks, best last:   [ 103 ] [ 102 ] [ 101 ]
//!                                      │ head → tail: first come, first served
//!                                     (o7)─(o9)─(o12)
//! ```
//!
//! Levels are a sorted vector with the best at its end: activity is near the best, so an insertion moves little. The
//! orders of a level are a list threaded through one slab, so no request allocates once the slab has grown.

use unitape_model::Side;

const NONE: u32 = u32::MAX;

/// A resting order was hit. The resting order's price is the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The caller's own number of the resting order.
    pub tag: u32,
    /// Price in ticks.
    pub px: i64,
    /// Quantity of this fill.
    pub qty: i64,
    /// The remaining quantity of the resting order; at zero the order has left the book and its handle is free.
    pub leaves: i64,
}

/// The outcome of an order that was submitted or amended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacementResult {
    /// Quantity neither filled nor refused by the book.
    pub leaves: i64,
    /// The handle, when the rest of it rests in the book.
    pub handle: Option<OrderHandle>,
}

/// Names a resting order of one book; not valid after the order was filled or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderHandle(u32);

/// Price in ticks and quantity at the best level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestLevel {
    /// Price in ticks.
    pub px: i64,
    /// All quantity at this price.
    pub qty: i64,
}

/// A request to trade.
#[derive(Debug, Clone, Copy)]
pub struct IncomingOrder {
    /// The caller's own number, given back in [`Fill::tag`] when the order rests and is hit.
    pub tag: u32,
    /// Side.
    pub side: Side,
    /// Limit in ticks; `None` for a market order, which never rests.
    pub limit: Option<i64>,
    /// Quantity, above zero.
    pub qty: i64,
    /// Whether the remaining quantity may rest.
    pub may_rest: bool,
}

/// A limit order book of one instrument on one venue.
#[derive(Debug, Default)]
pub struct MatchingBook {
    halves: [MatchingSide; 2],
    nodes: Vec<RestingNode>,
    free: Vec<u32>,
}

impl MatchingBook {
    /// Matches an order against the other side, appends the fills, and lets the remaining quantity rest if it may.
    pub fn submit(&mut self, order: IncomingOrder, fills: &mut Vec<Fill>) -> PlacementResult {
        assert!(order.qty > 0, "an order without quantity");
        let leaves = self.match_levels(order.side.opposite(), order.limit, order.qty, fills);
        let handle = match order.limit {
            Some(px) if leaves > 0 && order.may_rest => Some(self.rest(order.side, px, leaves, order.tag)),
            _ => None,
        };
        PlacementResult { leaves, handle }
    }

    /// Puts an order at the end of its queue without matching it, as in the call of an auction. The book may be crossed
    /// afterwards; [`MatchingBook::uncross`] ends that.
    pub fn queue(&mut self, side: Side, px: i64, qty: i64, tag: u32) -> OrderHandle {
        assert!(qty > 0, "an order without quantity");
        self.rest(side, px, qty, tag)
    }

    /// Matches `volume` of either side at a single price: the best orders first, orders of one price in their queue
    /// order. Fills of the buyers go to `bought`, of the sellers to `sold`, all at `px`.
    pub fn uncross(&mut self, px: i64, volume: i64, bought: &mut Vec<Fill>, sold: &mut Vec<Fill>) {
        for (side, fills) in [(Side::Buy, bought), (Side::Sell, sold)] {
            let start = fills.len();
            let open = self.match_levels(side, Some(px), volume, fills);
            assert_eq!(open, 0, "a side does not hold the volume of the auction");
            fills[start..].iter_mut().for_each(|fill| fill.px = px);
        }
    }

    /// Sets price and open quantity. The place in the queue is kept only by less quantity at the same price; anything
    /// else is a new arrival, which may match.
    pub fn amend(
        &mut self,
        handle: OrderHandle,
        px: i64,
        leaves: i64,
        fills: &mut Vec<Fill>,
    ) -> PlacementResult {
        assert!(leaves > 0, "an amend to nothing");
        let node = self.nodes[handle.0 as usize];
        if px == node.px && leaves <= node.leaves {
            self.nodes[handle.0 as usize].leaves = leaves;
            let half = &mut self.halves[node.side.index()];
            let level_index = half.find(node.side, px).expect("a resting order has its level");
            half.levels[level_index].qty -= node.leaves - leaves;
            return PlacementResult { leaves, handle: Some(handle) };
        }
        self.cancel(handle);
        self.submit(
            IncomingOrder { tag: node.tag, side: node.side, limit: Some(px), qty: leaves, may_rest: true },
            fills,
        )
    }

    /// Amends an order as [`MatchingBook::amend`] does, but without matching: for the call of an auction.
    pub fn amend_queued(&mut self, handle: OrderHandle, px: i64, leaves: i64) -> OrderHandle {
        let node = self.nodes[handle.0 as usize];
        if px == node.px && leaves <= node.leaves {
            self.amend(handle, px, leaves, &mut Vec::new());
            return handle;
        }
        self.cancel(handle);
        self.rest(node.side, px, leaves, node.tag)
    }

    /// Removes an order and returns the quantity it had left.
    pub fn cancel(&mut self, handle: OrderHandle) -> i64 {
        let node = self.nodes[handle.0 as usize];
        let half = &mut self.halves[node.side.index()];
        let level_index = half.find(node.side, node.px).expect("a resting order has its level");
        half.levels[level_index].qty -= node.leaves;
        if half.levels[level_index].qty == 0 {
            half.levels.remove(level_index);
        } else {
            match node.prev {
                NONE => half.levels[level_index].head = node.next,
                prev => self.nodes[prev as usize].next = node.next,
            }
            match node.next {
                NONE => half.levels[level_index].tail = node.prev,
                next => self.nodes[next as usize].prev = node.prev,
            }
        }
        self.free.push(handle.0);
        node.leaves
    }

    /// Returns the best level of a side.
    pub fn best(&self, side: Side) -> Option<BestLevel> {
        self.halves[side.index()].levels.last().map(|level| BestLevel { px: level.px, qty: level.qty })
    }

    /// Sums the quantity on `side` that an order of the opposite side with this limit would meet.
    pub fn quantity_within(&self, side: Side, limit: i64) -> i64 {
        let levels = self.halves[side.index()].levels.iter().rev();
        levels.take_while(|level| rank(side, level.px) >= rank(side, limit)).map(|level| level.qty).sum()
    }

    /// Iterates over the levels of a side, best first: price and total quantity.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = BestLevel> + '_ {
        self.halves[side.index()].levels.iter().rev().map(|level| BestLevel { px: level.px, qty: level.qty })
    }

    /// Iterates over the orders of a side in the order of execution: tag, price, open quantity.
    pub fn orders(&self, side: Side) -> impl Iterator<Item = (u32, i64, i64)> + '_ {
        self.halves[side.index()].levels.iter().rev().flat_map(move |level| {
            let mut node_index = level.head;
            std::iter::from_fn(move || {
                let node = self.nodes.get(node_index as usize)?; // NONE is past all of them
                node_index = node.next;
                Some((node.tag, node.px, node.leaves))
            })
        })
    }

    fn match_levels(&mut self, side: Side, limit: Option<i64>, mut open: i64, fills: &mut Vec<Fill>) -> i64 {
        let half = &mut self.halves[side.index()];
        while open > 0
            && let Some(level) = half.levels.last_mut()
            && limit.is_none_or(|px| rank(side, level.px) >= rank(side, px))
        {
            let node = &mut self.nodes[level.head as usize];
            let qty = open.min(node.leaves);
            open -= qty;
            node.leaves -= qty;
            level.qty -= qty;
            fills.push(Fill { tag: node.tag, px: level.px, qty, leaves: node.leaves });
            if node.leaves == 0 {
                self.free.push(level.head);
                match node.next {
                    NONE => drop(half.levels.pop()),
                    next => {
                        level.head = next;
                        self.nodes[next as usize].prev = NONE;
                    }
                }
            }
        }
        open
    }

    fn rest(&mut self, side: Side, px: i64, leaves: i64, tag: u32) -> OrderHandle {
        let mut node = RestingNode { tag, side, px, leaves, prev: NONE, next: NONE };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        });
        let half = &mut self.halves[side.index()];
        match half.find(side, px) {
            Ok(level_index) => {
                let level = &mut half.levels[level_index];
                node.prev = level.tail;
                self.nodes[level.tail as usize].next = slot;
                level.tail = slot;
                level.qty += leaves;
            }
            Err(level_index) => {
                half.levels.insert(level_index, LevelQueue { px, qty: leaves, head: slot, tail: slot })
            }
        }
        self.nodes[slot as usize] = node;
        OrderHandle(slot)
    }
}

#[derive(Debug, Clone, Copy)]
struct RestingNode {
    tag: u32,
    side: Side,
    px: i64,
    leaves: i64,
    prev: u32,
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct LevelQueue {
    px: i64,
    qty: i64,
    head: u32,
    tail: u32,
}

#[derive(Debug, Default)]
struct MatchingSide {
    levels: Vec<LevelQueue>,
}

impl MatchingSide {
    fn find(&self, side: Side, px: i64) -> Result<usize, usize> {
        self.levels.binary_search_by_key(&rank(side, px), |level| rank(side, level.px))
    }
}

/// Returns a rank that is higher for better prices: the price for a bid, its negative for an offer.
fn rank(side: Side, px: i64) -> i64 {
    match side {
        Side::Buy => px,
        Side::Sell => -px,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow obvious twin: a heap of orders, searched from end to end for each step.
    #[derive(Default)]
    struct NaiveBook {
        orders: Vec<(Side, i64, i64, u32)>, // in order of arrival
    }

    impl NaiveBook {
        fn best(&self, side: Side) -> Option<BestLevel> {
            let px = self.orders.iter().filter(|o| o.0 == side).map(|o| o.1);
            let px = if side == Side::Buy { px.max() } else { px.min() }?;
            let best_orders = self.orders.iter().filter(|o| o.0 == side && o.1 == px);
            Some(BestLevel { px, qty: best_orders.map(|o| o.2).sum() })
        }

        fn submit(&mut self, order: IncomingOrder, fills: &mut Vec<Fill>) -> i64 {
            let mut open = order.qty;
            while open > 0 {
                let Some(best) = self.best(order.side.opposite()) else { break };
                let reachable = match (order.side, order.limit) {
                    (_, None) => true,
                    (Side::Buy, Some(limit)) => best.px <= limit,
                    (Side::Sell, Some(limit)) => best.px >= limit,
                };
                if !reachable {
                    break;
                }
                let first = self
                    .orders
                    .iter()
                    .position(|o| o.0 != order.side && o.1 == best.px)
                    .expect("best exists");
                let qty = open.min(self.orders[first].2);
                open -= qty;
                self.orders[first].2 -= qty;
                fills.push(Fill {
                    tag: self.orders[first].3,
                    px: best.px,
                    qty,
                    leaves: self.orders[first].2,
                });
                if self.orders[first].2 == 0 {
                    self.orders.remove(first);
                }
            }
            if let (true, true, Some(px)) = (open > 0, order.may_rest, order.limit) {
                self.orders.push((order.side, px, open, order.tag));
            }
            open
        }

        fn amend(&mut self, tag: u32, px: i64, leaves: i64, fills: &mut Vec<Fill>) -> i64 {
            let index = self.orders.iter().position(|o| o.3 == tag).expect("the order rests");
            if self.orders[index].1 == px && leaves <= self.orders[index].2 {
                self.orders[index].2 = leaves;
                return leaves;
            }
            let side = self.orders.remove(index).0;
            self.submit(IncomingOrder { tag, side, limit: Some(px), qty: leaves, may_rest: true }, fills)
        }

        fn quantity_within(&self, side: Side, limit: i64) -> i64 {
            let reach = |px: i64| if side == Side::Buy { px >= limit } else { px <= limit };
            self.orders.iter().filter(|o| o.0 == side && reach(o.1)).map(|o| o.2).sum()
        }
    }

    #[derive(Debug, Clone)]
    enum BookOperation {
        Submit { side: Side, limit: Option<i64>, qty: i64, may_rest: bool },
        Amend { choice: usize, px: i64, leaves: i64 },
        Cancel { choice: usize },
    }

    fn op() -> impl Strategy<Value = BookOperation> {
        let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
        let limit = prop_oneof![9 => (90i64..110).prop_map(Some), 1 => Just(None)];
        prop_oneof![
            6 => (side, limit, 1i64..50, prop::bool::weighted(0.8))
                .prop_map(|(side, limit, qty, may_rest)| BookOperation::Submit { side, limit, qty, may_rest }),
            2 => (0usize..64, 90i64..110, 1i64..50).prop_map(|(choice, px, leaves)| BookOperation::Amend { choice, px, leaves }),
            2 => (0usize..64).prop_map(|choice| BookOperation::Cancel { choice }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// A list relinked wrongly serves orders out of turn or loses one, and only a long mixed history shows it.
        #[test]
        fn book_agrees_with_its_twin(ops in prop::collection::vec(op(), 1..200)) {
            let (mut book, mut twin) = (MatchingBook::default(), NaiveBook::default());
            let mut resting: Vec<(u32, OrderHandle)> = Vec::new();
            for (tag, op) in ops.into_iter().enumerate() {
                let tag = tag as u32;
                let (mut fast, mut slow) = (Vec::new(), Vec::new());
                match op {
                    BookOperation::Submit { side, limit, qty, may_rest } => {
                        let order = IncomingOrder { tag, side, limit, qty, may_rest };
                        let placed = book.submit(order, &mut fast);
                        prop_assert_eq!(placed.leaves, twin.submit(order, &mut slow));
                        resting.extend(placed.handle.map(|handle| (tag, handle)));
                    }
                    BookOperation::Amend { choice, px, leaves } if !resting.is_empty() => {
                        let index = choice % resting.len();
                        let (tag, handle) = resting[index];
                        let placed = book.amend(handle, px, leaves, &mut fast);
                        prop_assert_eq!(placed.leaves, twin.amend(tag, px, leaves, &mut slow));
                        match placed.handle {
                            Some(handle) => resting[index].1 = handle,
                            None => drop(resting.remove(index)),
                        }
                    }
                    BookOperation::Cancel { choice } if !resting.is_empty() => {
                        let (tag, handle) = resting.remove(choice % resting.len());
                        let twin_index = twin.orders.iter().position(|o| o.3 == tag).expect("the order rests");
                        prop_assert_eq!(book.cancel(handle), twin.orders.remove(twin_index).2);
                    }
                    _ => {}
                }
                prop_assert_eq!(&fast, &slow);
                resting.retain(|(tag, _)| !fast.iter().any(|fill| fill.tag == *tag && fill.leaves == 0));
                for side in [Side::Buy, Side::Sell] {
                    prop_assert_eq!(book.best(side), twin.best(side));
                    prop_assert_eq!(book.quantity_within(side, 100), twin.quantity_within(side, 100));
                }
            }
        }
    }

    /// Raising the quantity of the first in the queue must send it to the back, or anyone could queue with one share.
    #[test]
    fn more_quantity_loses_the_turn() {
        let mut book = MatchingBook::default();
        let mut fills = Vec::new();
        let ask = |tag| IncomingOrder { tag, side: Side::Sell, limit: Some(10), qty: 5, may_rest: true };
        let first = book.submit(ask(1), &mut fills).handle.expect("rests");
        book.submit(ask(2), &mut fills);
        book.amend(first, 10, 6, &mut fills);
        book.submit(
            IncomingOrder { tag: 3, side: Side::Buy, limit: None, qty: 6, may_rest: false },
            &mut fills,
        );
        assert_eq!(
            fills,
            [Fill { tag: 2, px: 10, qty: 5, leaves: 0 }, Fill { tag: 1, px: 10, qty: 1, leaves: 5 }]
        );
    }
}
