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
//! A venue announces an order before it reports the orders that it was executed against. Until then, an order that
//! crosses the other side is *being matched*: the book has the order, but in no queue, so that nobody sees a crossed
//! book that never existed. The order goes to the end of its queue as soon as it crosses nothing. The next order also
//! puts it there, because the venue is then done with it: a book that is crossed then is really crossed.

use crate::fault::BookFault;
use crate::ladder::PriceLadder;
use crate::qty::{OrderQuantity, align, normalize};
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
    unqueued_head: u32,
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
    /// Whether the order can never enter a queue, or `None` if the event does not say.
    pub is_hidden: Option<bool>,
    /// Fields that few events have.
    pub rare_fields: Option<RareOrderFields>,
}

/// Order fields that few events have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareOrderFields {
    /// The quantity left of it, whatever the book has.
    pub quantity_left: Option<OrderQuantity>,
    /// The largest part of it that is shown.
    pub display: Option<OrderQuantity>,
    /// The quantity by which an amend reduces the remaining quantity. It counts only without a total and without
    /// `left`.
    pub reduced: Option<OrderQuantity>,
    /// Whether the event may end an order that the book does not have: the order was never accepted or has already
    /// ended.
    pub is_moot: bool,
}

impl RareOrderFields {
    /// Updates the order with its stated remaining quantity. Converts its quantities to an exponent in which all of
    /// them are whole numbers.
    #[cold]
    fn state(&self, mut order: StoredOrder, total: Option<OrderQuantity>) -> Result<StoredOrder, BookFault> {
        let normalize_option = |quantity: Option<OrderQuantity>| match quantity {
            Some(qty) => normalize(qty).filter(|q| q.mantissa >= 0).map(Some).ok_or(BookFault::BadQuantity),
            None => Ok(None),
        };
        let (left, display) = (normalize_option(self.quantity_left)?, normalize_option(self.display)?);
        let exp =
            [total, left, display].into_iter().flatten().fold(order.exp(), |exp, q| exp.min(q.exponent));
        if exp != order.exp() {
            order = to_finer(order, exp).ok_or(BookFault::BadQuantity)?;
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
    /// Whether the venue matches orders as they arrive.
    pub is_continuous: bool,
    /// Part of a snapshot: an order that is known already is no fault.
    pub is_snapshot: bool,
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
            unqueued_head: NONE,
            orders: 0,
        }
    }

    pub fn on_new(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let matched_before = self.finish_matching(s, context);
        self.take_new(s, context, oid, terms).and(matched_before)
    }

    fn take_new(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(side) = terms.side else { return Err(BookFault::WrongSide) };
        let known_slot = s.find_order(context.listing, &oid);
        let Some(total) = terms.qty.and_then(normalize).filter(|q| q.mantissa > 0) else {
            return Err(BookFault::BadQuantity);
        };
        if let Some(slot) = known_slot {
            self.drop_order(s, slot);
        } else if s.is_full() || self.orders >= context.orders_max {
            return Err(BookFault::OrdersFull);
        }
        let hidden = terms.is_hidden.unwrap_or(false);
        let mut order =
            StoredOrder::new(oid, context.listing, side, terms.px, hidden).with_exp(total.exponent);
        order.left = total.mantissa;
        if let Some(more_terms) = &terms.rare_fields {
            order = more_terms.state(order, Some(total))?;
            if order.left <= 0 {
                return Err(BookFault::BadQuantity);
            }
        }
        let slot = s.insert(order);
        self.orders += 1;
        self.add_unqueued(s, slot);
        if let Some(display) = terms.rare_fields.and_then(|more| more.display) {
            s.set_display(slot, display);
        }
        self.place_order(s, context, slot)?;
        if known_slot.is_some() && !context.is_snapshot { Err(BookFault::DuplicateOrder) } else { Ok(()) }
    }

    /// Amends an order. The new quantity includes executed quantity, or the event gives a reduction of the remaining
    /// quantity. The order keeps its place in the queue only if the price is the same and the quantity is less.
    pub fn on_amend(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let known_slot = s.find_order(context.listing, &oid);
        let before =
            if known_slot == Some(self.matching) { Ok(()) } else { self.finish_matching(s, context) };
        // An order without room was just removed.
        let Some(slot) =
            known_slot.filter(|_| before.is_ok() || s.find_order(context.listing, &oid).is_some())
        else {
            // An event with the remaining quantity states the complete order.
            return match terms.rare_fields.and_then(|more| more.quantity_left) {
                Some(left) if left.mantissa > 0 => self.take_new(s, context, oid, terms).and(before),
                Some(left) if left.mantissa == 0 => before,
                _ => Err(BookFault::UnknownOrder),
            };
        };
        let now = self.take_amend(s, context, slot, terms);
        let after = self.settle_matching(s, context);
        now.and(before).and(after)
    }

    fn take_amend(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        slot: u32,
        terms: &OrderTerms,
    ) -> OrderResult {
        let mut order = s.orders[slot as usize];
        let (was, was_exp, shown_was) = (order, order.exp(), s.shown_quantity(slot));
        let states_left = terms.rare_fields.is_some_and(|more| more.quantity_left.is_some());
        let reduced =
            terms.rare_fields.and_then(|more| more.reduced).filter(|_| terms.qty.is_none() && !states_left);
        if let Some(more_terms) = &terms.rare_fields {
            let total = terms.qty.map(|qty| normalize(qty).ok_or(BookFault::BadQuantity)).transpose()?;
            order = more_terms.state(order, total)?;
        }
        if let Some(qty) = terms.qty.filter(|_| !states_left) {
            let Some(total) = normalize(qty) else { return Err(BookFault::BadQuantity) };
            let exp = total.exponent.min(order.exp());
            let executed = OrderQuantity { mantissa: order.done, exponent: order.exp() };
            let parts = (total.units(exp), executed.units(exp));
            let (Some(total), Some(executed_units)) = parts else { return Err(BookFault::BadQuantity) };
            (order.left, order.done) =
                (total.checked_sub(executed_units).ok_or(BookFault::BadQuantity)?, executed_units);
            order = order.with_exp(exp);
        }
        if let Some(qty) = reduced {
            let Some(qty) = Some(qty).filter(|qty| qty.mantissa > 0).and_then(normalize) else {
                return Err(BookFault::BadQuantity);
            };
            if qty.exponent < order.exp() {
                order = to_finer(order, qty.exponent).ok_or(BookFault::BadQuantity)?;
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
        order = order.with_hidden(terms.is_hidden.unwrap_or(order.is_hidden()));
        let display = terms.rare_fields.and_then(|more| more.display);
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
            && !order.is_hidden()
            && not_more(was.left, order.left)
            && !shows_more;
        if keeps {
            self.shrink_order(s, slot, order, display)?;
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
            self.place_order(s, context, slot)?;
        }
        if terms.side.is_some_and(|side| side != order.side()) { Err(BookFault::WrongSide) } else { Ok(()) }
    }

    pub fn on_cancel(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(slot) = s.find_order(context.listing, &oid) else {
            let is_moot = terms.rare_fields.is_some_and(|more| more.is_moot);
            return if is_moot { Ok(()) } else { Err(BookFault::UnknownOrder) };
        };
        self.drop_order(s, slot);
        self.settle_matching(s, context)
    }

    pub fn on_exec(
        &mut self,
        s: &mut OrderStore,
        context: &OrderBookContext,
        oid: OrderId,
        terms: &OrderTerms,
    ) -> OrderResult {
        let Some(slot) = s.find_order(context.listing, &oid) else { return Err(BookFault::UnknownOrder) };
        let now = self.take_exec(s, slot, terms);
        let after = self.settle_matching(s, context);
        now.and(after)
    }

    fn take_exec(&mut self, s: &mut OrderStore, slot: u32, terms: &OrderTerms) -> OrderResult {
        let mut order = s.orders[slot as usize];
        let Some(qty) = terms.qty.filter(|q| q.mantissa > 0).and_then(normalize) else {
            return Err(BookFault::BadQuantity);
        };
        if qty.exponent != order.exp() {
            order = to_finer(order, qty.exponent.min(order.exp())).ok_or(BookFault::BadQuantity)?;
        }
        let more = qty.units(order.exp());
        let (left, executed) = match more {
            Some(more) => (order.left.checked_sub(more), order.done.checked_add(more)),
            None => return Err(BookFault::BadQuantity),
        };
        match left {
            Some(left) if left > 0 => {
                order.left = left;
                order.done = executed.ok_or(BookFault::BadQuantity)?;
                self.shrink_order(s, slot, order, None)?;
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
        while let Some(queue_index) = self.sides.iter().find_map(PriceLadder::last) {
            self.drop_order(s, s.queues[queue_index as usize].first_slot);
        }
        while self.unqueued_head != NONE {
            self.drop_order(s, self.unqueued_head);
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

    /// Returns the queues of a side by price.
    pub fn ladder(&self, side: Side) -> &PriceLadder<u32> {
        &self.sides[side as usize]
    }

    /// Returns the exponent of the queues' quantities, a power of ten.
    pub fn scale(&self) -> i8 {
        self.scale
    }

    /// Returns the slot of the order that is being matched, or [`NONE`].
    pub fn matching(&self) -> u32 {
        self.matching
    }

    /// Returns the slot of the first order that is in no queue, or [`NONE`].
    pub fn first_unqueued(&self) -> u32 {
        self.unqueued_head
    }

    /// Returns the price of the best level, and the mantissa and exponent of its quantity.
    #[inline]
    pub fn best(&self, s: &OrderStore, side: Side) -> Option<(i64, i128, i8)> {
        let queue = &s.queues[self.sides[side as usize].last()? as usize];
        Some((queue.px, queue.units, self.scale))
    }

    /// Returns the queues of a side, best first, with the exponent of their quantities.
    pub fn queues<'a>(&'a self, s: &'a OrderStore, side: Side) -> impl Iterator<Item = (&'a PriceQueue, i8)> {
        self.sides[side as usize].iter().map(|queue_index| (&s.queues[queue_index as usize], self.scale))
    }

    /// Returns the orders at a price, first in line first.
    pub fn queue<'a>(
        &'a self,
        s: &'a OrderStore,
        side: Side,
        px: i64,
    ) -> impl Iterator<Item = &'a StoredOrder> {
        let ladder = &self.sides[side as usize];
        let head = ladder
            .find(price_key(side, px))
            .ok()
            .map(|index| s.queues[ladder.val(index) as usize].first_slot);
        chain_orders(s, head.unwrap_or(NONE))
    }

    /// Returns the orders that are in no queue, latest first.
    pub fn unqueued_orders<'a>(&'a self, s: &'a OrderStore) -> impl Iterator<Item = &'a StoredOrder> {
        chain_orders(s, self.unqueued_head)
    }

    /// Puts an order from aside into its queue.
    fn place_order(&mut self, s: &mut OrderStore, context: &OrderBookContext, slot: u32) -> OrderResult {
        let order = &s.orders[slot as usize];
        if order.is_hidden() || order.px == Price::NONE.0 {
            return Ok(());
        }
        if context.is_continuous && self.meets_other_side(order) {
            self.matching = slot;
            return Ok(());
        }
        self.join_queue(s, context, slot)
    }

    /// Returns whether the other side has a price at which the order can be executed.
    #[inline]
    fn meets_other_side(&self, order: &StoredOrder) -> bool {
        let opposite_side = order.side().opposite();
        self.sides[opposite_side as usize]
            .best_key()
            .is_some_and(|best| best >= price_key(opposite_side, order.px))
    }

    /// Ends the matching when nothing is left to meet.
    #[inline]
    fn settle_matching(&mut self, s: &mut OrderStore, context: &OrderBookContext) -> OrderResult {
        if self.matching != NONE && !self.meets_other_side(&s.orders[self.matching as usize]) {
            return self.finish_matching(s, context);
        }
        Ok(())
    }

    /// Ends the matching: the rest of the order goes to its queue.
    #[inline]
    pub fn finish_matching(&mut self, s: &mut OrderStore, context: &OrderBookContext) -> OrderResult {
        if self.matching != NONE {
            let slot = std::mem::replace(&mut self.matching, NONE);
            return self.join_queue(s, context, slot);
        }
        Ok(())
    }

    /// Moves an order from those aside to the end of the queue of its price. On an error it is gone.
    fn join_queue(&mut self, s: &mut OrderStore, context: &OrderBookContext, slot: u32) -> OrderResult {
        let order = s.orders[slot as usize];
        let side = order.side();
        if order.exp() < self.scale && !self.refine_scale(s, order.exp()) {
            self.drop_order(s, slot);
            return Err(BookFault::BadQuantity);
        }
        let Some(units) = align(s.shown_quantity(slot).into(), order.exp(), self.scale) else {
            self.drop_order(s, slot);
            return Err(BookFault::BadQuantity);
        };
        let search_outcome = self.sides[side as usize].find(price_key(side, order.px));
        let queue_index = match search_outcome {
            Ok(index) => {
                let level = self.sides[side as usize].val(index);
                let queue = &mut s.queues[level as usize];
                let Some(sum) = queue.units.checked_add(units) else {
                    self.drop_order(s, slot);
                    return Err(BookFault::BadQuantity);
                };
                let tail = std::mem::replace(&mut queue.last_slot, slot);
                queue.units = sum;
                queue.orders += 1;
                self.remove_unqueued(s, slot);
                s.orders[tail as usize].next = slot;
                (s.orders[slot as usize].prev, s.orders[slot as usize].next) = (tail, NONE);
                level
            }
            Err(_) if self.sides[side as usize].len() >= context.levels_max as usize => {
                self.drop_order(s, slot);
                return Err(BookFault::LevelsFull);
            }
            Err(index) => {
                let level = s.open_queue(PriceQueue {
                    units,
                    px: order.px,
                    first_slot: slot,
                    last_slot: slot,
                    orders: 1,
                });
                self.sides[side as usize].insert(index, price_key(side, order.px), level);
                self.remove_unqueued(s, slot);
                (s.orders[slot as usize].prev, s.orders[slot as usize].next) = (NONE, NONE);
                level
            }
        };
        s.orders[slot as usize].level = queue_index;
        Ok(())
    }

    /// Takes an order out of its queue and puts it aside; nothing when it is aside.
    fn leave_queue(&mut self, s: &mut OrderStore, slot: u32) {
        if s.orders[slot as usize].level != NONE {
            self.unlink_order(s, slot);
            self.add_unqueued(s, slot);
        }
    }

    /// Takes over the reduced quantities of an order, which keeps its place.
    fn shrink_order(
        &mut self,
        s: &mut OrderStore,
        slot: u32,
        to: StoredOrder,
        display: Option<OrderQuantity>,
    ) -> OrderResult {
        let was = s.orders[slot as usize];
        if was.level != NONE && to.exp() < self.scale && !self.refine_scale(s, to.exp()) {
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
            self.remove_unqueued(s, slot);
        } else {
            self.unlink_order(s, slot);
        }
        if self.matching == slot {
            self.matching = NONE;
        }
        self.orders -= 1;
        s.remove(slot);
    }

    fn unlink_order(&mut self, s: &mut OrderStore, slot: u32) {
        let (order, shown_units) = (s.orders[slot as usize], s.shown_quantity(slot));
        let queue = &mut s.queues[order.level as usize];
        queue.orders -= 1;
        if queue.orders == 0 {
            let ladder = &mut self.sides[order.side() as usize];
            if let Ok(index) = ladder.find(price_key(order.side(), order.px)) {
                ladder.remove(index);
            }
            s.close_queue(order.level);
        } else {
            queue.units -= align(shown_units.into(), order.exp(), self.scale).unwrap_or(0);
            match order.prev {
                NONE => queue.first_slot = order.next,
                prev => s.orders[prev as usize].next = order.next,
            }
            match order.next {
                NONE => queue.last_slot = order.prev,
                next => s.orders[next as usize].prev = order.prev,
            }
        }
        s.orders[slot as usize].level = NONE;
    }

    fn add_unqueued(&mut self, s: &mut OrderStore, slot: u32) {
        let old_head = std::mem::replace(&mut self.unqueued_head, slot);
        if old_head != NONE {
            s.orders[old_head as usize].prev = slot;
        }
        let order = &mut s.orders[slot as usize];
        (order.prev, order.next, order.level) = (NONE, old_head, NONE);
    }

    fn remove_unqueued(&mut self, s: &mut OrderStore, slot: u32) {
        let order = s.orders[slot as usize];
        match order.prev {
            NONE => self.unqueued_head = order.next,
            prev => s.orders[prev as usize].next = order.next,
        }
        if order.next != NONE {
            s.orders[order.next as usize].prev = order.prev;
        }
    }

    /// Turns all levels to a finer power; false, and nothing has happened, when one does not fit.
    #[cold]
    fn refine_scale(&mut self, s: &mut OrderStore, scale: i8) -> bool {
        let all = || self.sides.iter().flat_map(PriceLadder::iter);
        if all().any(|queue_index| align(s.queues[queue_index as usize].units, self.scale, scale).is_none()) {
            return false;
        }
        for queue_index in all() {
            let units = &mut s.queues[queue_index as usize].units;
            *units = align(*units, self.scale, scale).unwrap_or(*units);
        }
        self.scale = scale;
        true
    }
}

/// Converts the order's quantities to a finer exponent, or returns `None` if they do not fit.
#[cold]
fn to_finer(mut order: StoredOrder, exp: i8) -> Option<StoredOrder> {
    let fits_exponent = |m: i64| align(m.into(), order.exp(), exp).and_then(|m| i64::try_from(m).ok());
    (order.left, order.done) = (fits_exponent(order.left)?, fits_exponent(order.done)?);
    Some(order.with_exp(exp))
}

fn chain_orders(s: &OrderStore, head: u32) -> impl Iterator<Item = &StoredOrder> {
    let mut slot = head;
    std::iter::from_fn(move || {
        let order = s.orders.get(slot as usize)?;
        slot = order.next;
        Some(order)
    })
}

crate::state::state!(OrderBook { sides, scale, matching, unqueued_head, orders });
