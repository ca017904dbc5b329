//! A book made of its orders: price, then time.
//!
//! The fate of an order that an event announces:
//!
//! ```text
//!   order_new ──┬─ never rests (immediate, stop, no price) ──▶ aside ─── exec, cancel ──▶ gone
//!               ├─ meets the other side, in continuous trading ─▶ being matched ─ exec ─┬─▶ gone
//!               │                                                                      ▼ nothing left to meet
//!               └─ otherwise ─────────────────────────────────────────────────────▶ in the queue of its price
//! ```
//!
//! A venue announces an order before it reports what the order was executed against. Until it does, an order that
//! meets the other side is *being matched*: the book has it, but it is in no queue, so that no one sees a crossed
//! book that never was. It goes to the end of its queue as soon as it meets nothing any more. The next order also
//! puts it there, for then the venue is done with it: a book that is crossed then, is.

use crate::fault::BookFault;
use crate::ladder::PriceLadder;
use crate::qty::{OrderQuantity, align, settle};
use crate::store::{NONE, OrderStore, PriceQueue, StoredOrder};
use crate::value::{OrderId, price_key};
use unitape_model::{Price, Side};

/// A book of orders. The orders themselves lie in the [`OrderStore`].
#[derive(Clone, Debug)]
pub(crate) struct OrderBook {
    sides: [PriceLadder<u32>; 2],
    /// Quantities of levels are whole numbers of 10^scale.
    scale: i8,
    /// The order that is being matched; it is in the list of those aside, too.
    matching: u32,
    /// First of the orders that are in no queue.
    aside: u32,
    /// Orders, queued or not.
    orders: u32,
}

/// The fields of an order in an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderTerms {
    pub side: Option<Side>,
    /// [`Price::NONE`] for none.
    pub px: i64,
    pub qty: Option<OrderQuantity>,
    /// Whether the order can never enter a queue; none where the event does not say.
    pub hidden: Option<bool>,
    /// Fields that few events have.
    pub more: Option<RareOrderFields>,
}

/// Order fields that few events have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareOrderFields {
    /// The quantity left of it, whatever the book has.
    pub left: Option<OrderQuantity>,
    /// The largest part of it that is shown.
    pub display: Option<OrderQuantity>,
    /// The quantity that an amend takes off what is left. It counts only without a total and without `left`.
    pub reduced: Option<OrderQuantity>,
    /// It may end an order that the book does not have: one that was never accepted, or is over already.
    pub moot: bool,
}

impl RareOrderFields {
    /// The order with what is said to be left of it, and its quantities in a power that all of them are whole numbers of.
    #[cold]
    fn state(&self, mut order: StoredOrder, total: Option<OrderQuantity>) -> Result<StoredOrder, BookFault> {
        let settled = |of: Option<OrderQuantity>| match of {
            Some(qty) => settle(qty).filter(|q| q.mantissa >= 0).map(Some).ok_or(BookFault::BadQuantity),
            None => Ok(None),
        };
        let (left, display) = (settled(self.left)?, settled(self.display)?);
        let exp =
            [total, left, display].into_iter().flatten().fold(order.exp(), |exp, q| exp.min(q.exponent));
        if exp != order.exp() {
            order = finer(order, exp).ok_or(BookFault::BadQuantity)?;
        }
        if let Some(left) = left {
            order.left = left.units(exp).ok_or(BookFault::BadQuantity)?;
            if let Some(total) = total {
                let total = total.units(exp).ok_or(BookFault::BadQuantity)?;
                order.done =
                    total.checked_sub(order.left).filter(|d| *d >= 0).ok_or(BookFault::BadQuantity)?;
            }
        }
        Ok(order)
    }
}

/// Bounds and state that the book's listing knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderBookContext {
    pub listing: u32,
    /// Whether orders are matched as they come.
    pub continuous: bool,
    /// Part of a snapshot: an order that is known already is no fault.
    pub snapshot: bool,
    pub orders_max: u32,
    pub levels_max: u32,
}

type OrderResult = Result<(), BookFault>;

impl OrderBook {
    pub const fn new() -> Self {
        Self {
            sides: [PriceLadder::new(), PriceLadder::new()],
            scale: 0,
            matching: NONE,
            aside: NONE,
            orders: 0,
        }
    }

    pub fn on_new(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let before = self.finish_matching(s, around);
        self.take_new(s, around, oid, terms).and(before)
    }

    fn take_new(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(side) = terms.side else { return Err(BookFault::WrongSide) };
        let known = s.find(around.listing, &oid);
        let Some(total) = terms.qty.and_then(settle).filter(|q| q.mantissa > 0) else {
            return Err(BookFault::BadQuantity);
        };
        if let Some(slot) = known {
            self.drop_order(s, slot);
        } else if s.is_full() || self.orders >= around.orders_max {
            return Err(BookFault::OrdersFull);
        }
        let hidden = terms.hidden.unwrap_or(false);
        let mut order =
            StoredOrder::new(oid, around.listing, side, terms.px, hidden).with_exp(total.exponent);
        order.left = total.mantissa;
        if let Some(more) = &terms.more {
            order = more.state(order, Some(total))?;
            if order.left <= 0 {
                return Err(BookFault::BadQuantity);
            }
        }
        let slot = s.insert(order);
        self.orders += 1;
        self.put_aside(s, slot);
        if let Some(display) = terms.more.and_then(|more| more.display) {
            s.set_display(slot, display);
        }
        self.place(s, around, slot)?;
        if known.is_some() && !around.snapshot { Err(BookFault::DuplicateOrder) } else { Ok(()) }
    }

    /// The quantity of an amend is the whole of the order, what was executed included, or a reduction of what is left. The
    /// place in the queue is kept only by less quantity at the same price.
    pub fn on_amend(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let found = s.find(around.listing, &oid);
        let before = if found == Some(self.matching) { Ok(()) } else { self.finish_matching(s, around) };
        // An order that had no room has just gone.
        let Some(slot) = found.filter(|_| before.is_ok() || s.find(around.listing, &oid).is_some()) else {
            // An event with the remaining quantity says all of the order.
            return match terms.more.and_then(|more| more.left) {
                Some(left) if left.mantissa > 0 => self.take_new(s, around, oid, terms).and(before),
                Some(left) if left.mantissa == 0 => before,
                _ => Err(BookFault::UnknownOrder),
            };
        };
        let now = self.take_amend(s, around, slot, terms);
        let after = self.settle_matching(s, around);
        now.and(before).and(after)
    }

    fn take_amend(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        slot: u32,
        terms: &OrderTerms,
    ) -> OrderResult {
        let mut order = s.orders[slot as usize];
        let (was, was_exp, shown_was) = (order, order.exp(), s.shown_quantity(slot));
        let states_left = terms.more.is_some_and(|more| more.left.is_some());
        let reduced =
            terms.more.and_then(|more| more.reduced).filter(|_| terms.qty.is_none() && !states_left);
        if let Some(more) = &terms.more {
            let total = terms.qty.map(|qty| settle(qty).ok_or(BookFault::BadQuantity)).transpose()?;
            order = more.state(order, total)?;
        }
        if let Some(qty) = terms.qty.filter(|_| !states_left) {
            let Some(total) = settle(qty) else { return Err(BookFault::BadQuantity) };
            let exp = total.exponent.min(order.exp());
            let done = OrderQuantity { mantissa: order.done, exponent: order.exp() };
            let parts = (total.units(exp), done.units(exp));
            let (Some(total), Some(done)) = parts else { return Err(BookFault::BadQuantity) };
            (order.left, order.done) = (total.checked_sub(done).ok_or(BookFault::BadQuantity)?, done);
            order = order.with_exp(exp);
        }
        if let Some(qty) = reduced {
            let Some(qty) = Some(qty).filter(|qty| qty.mantissa > 0).and_then(settle) else {
                return Err(BookFault::BadQuantity);
            };
            if qty.exponent < order.exp() {
                order = finer(order, qty.exponent).ok_or(BookFault::BadQuantity)?;
            }
            let qty = qty.units(order.exp()).ok_or(BookFault::BadQuantity)?;
            order.left = order.left.checked_sub(qty).ok_or(BookFault::BadQuantity)?;
        }
        if order.left <= 0 {
            self.drop_order(s, slot);
            return if order.left < 0 { Err(BookFault::NegativeLeft) } else { Ok(()) };
        }
        if terms.px != Price::NONE.0 {
            order.px = terms.px;
        }
        order = order.with_hidden(terms.hidden.unwrap_or(order.hidden()));
        let display = terms.more.and_then(|more| more.display);
        // The shown quantity may not grow either.
        let not_more = |was: i64, now: i64| {
            align(was.into(), was_exp, order.exp()).is_some_and(|was| i128::from(now) <= was)
        };
        let shows_more = display.is_some_and(|display| {
            let part = display.units(order.exp());
            !not_more(shown_was, part.map_or(order.left, |part| part.min(order.left)))
        });
        let keeps = was.level != NONE
            && was.px == order.px
            && !order.hidden()
            && not_more(was.left, order.left)
            && !shows_more;
        if keeps {
            self.shrink(s, slot, order, display)?;
        } else {
            self.leave_queue(s, slot);
            if let Some(display) = display {
                s.set_display(slot, display);
            }
            let links = s.orders[slot as usize];
            let order = order.with_partly_shown(links.is_partly_shown());
            s.orders[slot as usize] =
                StoredOrder { prev: links.prev, next: links.next, level: NONE, ..order };
            if self.matching == slot {
                self.matching = NONE;
            }
            self.place(s, around, slot)?;
        }
        if terms.side.is_some_and(|side| side != order.side()) { Err(BookFault::WrongSide) } else { Ok(()) }
    }

    pub fn on_cancel(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(slot) = s.find(around.listing, &oid) else {
            let moot = terms.more.is_some_and(|more| more.moot);
            return if moot { Ok(()) } else { Err(BookFault::UnknownOrder) };
        };
        self.drop_order(s, slot);
        self.settle_matching(s, around)
    }

    pub fn on_exec(
        &mut self,
        s: &mut OrderStore,
        around: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(slot) = s.find(around.listing, &oid) else { return Err(BookFault::UnknownOrder) };
        let now = self.take_exec(s, slot, terms);
        let after = self.settle_matching(s, around);
        now.and(after)
    }

    fn take_exec(&mut self, s: &mut OrderStore, slot: u32, terms: &OrderTerms) -> OrderResult {
        let mut order = s.orders[slot as usize];
        let Some(qty) = terms.qty.filter(|q| q.mantissa > 0).and_then(settle) else {
            return Err(BookFault::BadQuantity);
        };
        if qty.exponent != order.exp() {
            order = finer(order, qty.exponent.min(order.exp())).ok_or(BookFault::BadQuantity)?;
        }
        let more = qty.units(order.exp());
        let (left, done) = match more {
            Some(more) => (order.left.checked_sub(more), order.done.checked_add(more)),
            None => return Err(BookFault::BadQuantity),
        };
        match left {
            Some(left) if left > 0 => {
                order.left = left;
                order.done = done.ok_or(BookFault::BadQuantity)?;
                self.shrink(s, slot, order, None)?;
            }
            _ => self.drop_order(s, slot),
        }
        if left.is_none_or(|left| left < 0) {
            return Err(BookFault::NegativeLeft);
        }
        if terms.side.is_some_and(|side| side != order.side()) { Err(BookFault::WrongSide) } else { Ok(()) }
    }

    /// Lets all orders go.
    pub fn clear(&mut self, s: &mut OrderStore) {
        while let Some(at) = self.sides.iter().find_map(PriceLadder::last) {
            self.drop_order(s, s.queues[at as usize].head);
        }
        while self.aside != NONE {
            self.drop_order(s, self.aside);
        }
        self.scale = 0;
    }

    /// Orders, queued or not.
    pub fn orders(&self) -> u32 {
        self.orders
    }

    pub fn levels(&self, side: Side) -> usize {
        self.sides[side as usize].len()
    }

    /// The queues of a side by price.
    pub fn ladder(&self, side: Side) -> &PriceLadder<u32> {
        &self.sides[side as usize]
    }

    /// The power of ten of the quantities of queues.
    pub fn scale(&self) -> i8 {
        self.scale
    }

    /// The slot of the order that is being matched, [`NONE`] for none.
    pub fn matching(&self) -> u32 {
        self.matching
    }

    /// The slot of the first order that is in no queue, [`NONE`] for none.
    pub fn first_aside(&self) -> u32 {
        self.aside
    }

    /// Price and quantity of the best level: mantissa and exponent.
    #[inline]
    pub fn best(&self, s: &OrderStore, side: Side) -> Option<(i64, i128, i8)> {
        let queue = &s.queues[self.sides[side as usize].last()? as usize];
        Some((queue.px, queue.units, self.scale))
    }

    /// The queues of a side, best first, with the exponent of their quantities.
    pub fn queues<'a>(&'a self, s: &'a OrderStore, side: Side) -> impl Iterator<Item = (&'a PriceQueue, i8)> {
        self.sides[side as usize].iter().map(|at| (&s.queues[at as usize], self.scale))
    }

    /// The orders at a price, first in line first.
    pub fn queue<'a>(
        &'a self,
        s: &'a OrderStore,
        side: Side,
        px: i64,
    ) -> impl Iterator<Item = &'a StoredOrder> {
        let ladder = &self.sides[side as usize];
        let head = ladder.find(price_key(side, px)).ok().map(|at| s.queues[ladder.val(at) as usize].head);
        chain(s, head.unwrap_or(NONE))
    }

    /// The orders that are in no queue, latest first.
    pub fn aside<'a>(&'a self, s: &'a OrderStore) -> impl Iterator<Item = &'a StoredOrder> {
        chain(s, self.aside)
    }

    /// Puts an order that is aside where it belongs.
    fn place(&mut self, s: &mut OrderStore, around: &OrderBookContext, slot: u32) -> OrderResult {
        let order = &s.orders[slot as usize];
        if order.hidden() || order.px == Price::NONE.0 {
            return Ok(());
        }
        if around.continuous && self.meets(order) {
            self.matching = slot;
            return Ok(());
        }
        self.join_queue(s, around, slot)
    }

    /// Whether the other side has a price that the order can be executed at.
    #[inline]
    fn meets(&self, order: &StoredOrder) -> bool {
        let other = order.side().opposite();
        self.sides[other as usize].best_key().is_some_and(|best| best >= price_key(other, order.px))
    }

    /// Ends the matching when nothing is left to meet.
    #[inline]
    fn settle_matching(&mut self, s: &mut OrderStore, around: &OrderBookContext) -> OrderResult {
        if self.matching != NONE && !self.meets(&s.orders[self.matching as usize]) {
            return self.finish_matching(s, around);
        }
        Ok(())
    }

    /// Ends the matching: the rest of the order goes to its queue.
    #[inline]
    pub fn finish_matching(&mut self, s: &mut OrderStore, around: &OrderBookContext) -> OrderResult {
        if self.matching != NONE {
            let slot = std::mem::replace(&mut self.matching, NONE);
            return self.join_queue(s, around, slot);
        }
        Ok(())
    }

    /// Moves an order from those aside to the end of the queue of its price. On an error it is gone.
    fn join_queue(&mut self, s: &mut OrderStore, around: &OrderBookContext, slot: u32) -> OrderResult {
        let order = s.orders[slot as usize];
        let side = order.side();
        if order.exp() < self.scale && !self.refine(s, order.exp()) {
            self.drop_order(s, slot);
            return Err(BookFault::BadQuantity);
        }
        let Some(units) = align(s.shown_quantity(slot).into(), order.exp(), self.scale) else {
            self.drop_order(s, slot);
            return Err(BookFault::BadQuantity);
        };
        let found = self.sides[side as usize].find(price_key(side, order.px));
        let at = match found {
            Ok(at) => {
                let level = self.sides[side as usize].val(at);
                let queue = &mut s.queues[level as usize];
                let Some(sum) = queue.units.checked_add(units) else {
                    self.drop_order(s, slot);
                    return Err(BookFault::BadQuantity);
                };
                let tail = std::mem::replace(&mut queue.tail, slot);
                queue.units = sum;
                queue.orders += 1;
                self.leave_aside(s, slot);
                s.orders[tail as usize].next = slot;
                (s.orders[slot as usize].prev, s.orders[slot as usize].next) = (tail, NONE);
                level
            }
            Err(_) if self.sides[side as usize].len() >= around.levels_max as usize => {
                self.drop_order(s, slot);
                return Err(BookFault::LevelsFull);
            }
            Err(at) => {
                let level =
                    s.open_queue(PriceQueue { units, px: order.px, head: slot, tail: slot, orders: 1 });
                self.sides[side as usize].insert(at, price_key(side, order.px), level);
                self.leave_aside(s, slot);
                (s.orders[slot as usize].prev, s.orders[slot as usize].next) = (NONE, NONE);
                level
            }
        };
        s.orders[slot as usize].level = at;
        Ok(())
    }

    /// Takes an order out of its queue and puts it aside; nothing when it is aside.
    fn leave_queue(&mut self, s: &mut OrderStore, slot: u32) {
        if s.orders[slot as usize].level != NONE {
            self.unlink(s, slot);
            self.put_aside(s, slot);
        }
    }

    /// Takes over what has become less of an order, which keeps its place.
    fn shrink(
        &mut self,
        s: &mut OrderStore,
        slot: u32,
        to: StoredOrder,
        display: Option<OrderQuantity>,
    ) -> OrderResult {
        let was = s.orders[slot as usize];
        if was.level != NONE && to.exp() < self.scale && !self.refine(s, to.exp()) {
            return Err(BookFault::BadQuantity);
        }
        let shown_was = s.shown_quantity(slot);
        s.orders[slot as usize] = StoredOrder { prev: was.prev, next: was.next, level: was.level, ..to };
        if let Some(display) = display {
            s.set_display(slot, display);
        }
        if was.level != NONE {
            // Both fit: the level holds the greater one, in a power that both are whole numbers of.
            let units = |m: i64, exp| align(m.into(), exp, self.scale).unwrap_or(0);
            let less = units(shown_was, was.exp()) - units(s.shown_quantity(slot), to.exp());
            s.queues[was.level as usize].units -= less;
        }
        Ok(())
    }

    /// Removes an order, wherever it is.
    fn drop_order(&mut self, s: &mut OrderStore, slot: u32) {
        if s.orders[slot as usize].level == NONE {
            self.leave_aside(s, slot);
        } else {
            self.unlink(s, slot);
        }
        if self.matching == slot {
            self.matching = NONE;
        }
        self.orders -= 1;
        s.remove(slot);
    }

    fn unlink(&mut self, s: &mut OrderStore, slot: u32) {
        let (order, shown) = (s.orders[slot as usize], s.shown_quantity(slot));
        let queue = &mut s.queues[order.level as usize];
        queue.orders -= 1;
        if queue.orders == 0 {
            let ladder = &mut self.sides[order.side() as usize];
            if let Ok(at) = ladder.find(price_key(order.side(), order.px)) {
                ladder.remove(at);
            }
            s.close_queue(order.level);
        } else {
            queue.units -= align(shown.into(), order.exp(), self.scale).unwrap_or(0);
            match order.prev {
                NONE => queue.head = order.next,
                prev => s.orders[prev as usize].next = order.next,
            }
            match order.next {
                NONE => queue.tail = order.prev,
                next => s.orders[next as usize].prev = order.prev,
            }
        }
        s.orders[slot as usize].level = NONE;
    }

    fn put_aside(&mut self, s: &mut OrderStore, slot: u32) {
        let first = std::mem::replace(&mut self.aside, slot);
        if first != NONE {
            s.orders[first as usize].prev = slot;
        }
        let order = &mut s.orders[slot as usize];
        (order.prev, order.next, order.level) = (NONE, first, NONE);
    }

    fn leave_aside(&mut self, s: &mut OrderStore, slot: u32) {
        let order = s.orders[slot as usize];
        match order.prev {
            NONE => self.aside = order.next,
            prev => s.orders[prev as usize].next = order.next,
        }
        if order.next != NONE {
            s.orders[order.next as usize].prev = order.prev;
        }
    }

    /// Turns all levels to a finer power; false, and nothing has happened, when one does not fit.
    #[cold]
    fn refine(&mut self, s: &mut OrderStore, scale: i8) -> bool {
        let all = || self.sides.iter().flat_map(PriceLadder::iter);
        if all().any(|at| align(s.queues[at as usize].units, self.scale, scale).is_none()) {
            return false;
        }
        for at in all() {
            let units = &mut s.queues[at as usize].units;
            *units = align(*units, self.scale, scale).unwrap_or(*units);
        }
        self.scale = scale;
        true
    }
}

/// The same order with its quantities in a finer power; none when they do not fit.
#[cold]
fn finer(mut order: StoredOrder, exp: i8) -> Option<StoredOrder> {
    let fits = |m: i64| align(m.into(), order.exp(), exp).and_then(|m| i64::try_from(m).ok());
    (order.left, order.done) = (fits(order.left)?, fits(order.done)?);
    Some(order.with_exp(exp))
}

fn chain(s: &OrderStore, head: u32) -> impl Iterator<Item = &StoredOrder> {
    let mut at = head;
    std::iter::from_fn(move || {
        let order = s.orders.get(at as usize)?;
        at = order.next;
        Some(order)
    })
}

crate::state::state!(OrderBook { sides, scale, matching, aside, orders });
