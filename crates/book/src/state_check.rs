//! Whether the parts of books that were read from bytes refer to each other as they do in books that events have made.
//!
//! ```text
//!   listing ─▶ ladder ─▶ queue ─▶ order ⇄ order ⇄ order     every slot is in one chain, or free, and counts and sums agree
//!           └▶ aside ──────────▶ order ⇄ order
//! ```
//!
//! Books trust the numbers of their slots: a wrong one would be a panic, or a chain without an end, at some later event.

use crate::books::Books;
use crate::listing::ListingBooks;
use crate::mbo::OrderBook;
use crate::qty::align;
use crate::store::{NONE, OrderStore, StoredOrder};
use crate::value::price_key;
use unitape_model::Side;
use unitape_model::num::EXPONENT_MAX;

impl Books {
    /// Whether all slots, counts and sums agree.
    pub(crate) fn is_consistent(&self) -> bool {
        self.has_consistent_orders().is_some() && self.has_consistent_groups() && self.losses.is_consistent()
    }

    fn has_consistent_orders(&self) -> Option<()> {
        let mut slots = SlotSet::of_free(&self.store)?;
        for (at, listing) in self.listings.iter().enumerate() {
            slots.visit(&self.store, u32::try_from(at).ok()?, &listing.orders)?;
        }
        slots.are_all_met().then_some(())
    }

    /// Each listing is in the group of its instrument, once, unless it is a price over all venues; no key is there twice.
    fn has_consistent_groups(&self) -> bool {
        let is_member = |listing: &ListingBooks, at: u32| {
            let group = self.groups.get(listing.group as usize);
            group.is_some_and(|group| {
                group.instrument == listing.instrument
                    && group.listings.binary_search(&at).is_ok() != listing.consolidated
            })
        };
        // In the order in which they were met: their numbers rise.
        let members_rise = self.groups.iter().all(|group| group.listings.is_sorted_by(|a, b| a < b));
        let members: usize = self.groups.iter().map(|group| group.listings.len()).sum();
        members_rise
            && members == self.listings.iter().filter(|listing| !listing.consolidated).count()
            && self.listings.iter().zip(0..).all(|(listing, at)| is_member(listing, at))
            && self.index.len() == self.listings.len()
            && self.group_index.len() == self.groups.len()
            && self.listings.len() <= self.options.listings_max as usize
    }
}

/// Slots of orders and queues that were met, each once.
struct SlotSet {
    orders: Vec<bool>,
    queues: Vec<bool>,
}

impl SlotSet {
    /// The free slots of both slabs; none where one is free twice, or is not there.
    fn of_free(store: &OrderStore) -> Option<Self> {
        let mut this =
            Self { orders: vec![false; store.orders.len()], queues: vec![false; store.queues.len()] };
        let (orders, queues) = store.free_slots();
        orders.iter().try_for_each(|slot| meet(&mut this.orders, *slot))?;
        queues.iter().try_for_each(|slot| meet(&mut this.queues, *slot))?;
        Some(this)
    }

    /// Meets the slots of a book, and compares what they hold with each other.
    fn visit(&mut self, store: &OrderStore, listing: u32, book: &OrderBook) -> Option<()> {
        let mut orders = 0;
        for side in Side::BOTH {
            let ladder = book.ladder(side);
            ladder.is_sorted().then_some(())?;
            for (key, level) in ladder.entries() {
                meet(&mut self.queues, level)?;
                let queue = &store.queues[level as usize];
                let mut units = 0i128;
                let (count, last) = self.walk(store, listing, queue.head, |slot, order| {
                    let shown = align(store.shown_quantity(slot).into(), order.exp(), book.scale())?;
                    units = units.checked_add(shown)?;
                    (order.level == level && order.side() == side && order.px == queue.px).then_some(())
                })?;
                let found = (key, last, count, units);
                (found == (price_key(side, queue.px), queue.tail, queue.orders, queue.units)).then_some(())?;
                (count > 0).then_some(())?;
                orders += count;
            }
        }
        let mut has_matching = book.matching() == NONE;
        let (aside, _) = self.walk(store, listing, book.first_aside(), |slot, order| {
            has_matching |= slot == book.matching();
            (order.level == NONE).then_some(())
        })?;
        (has_matching && orders + aside == book.orders()).then_some(())
    }

    /// Meets the orders of a chain, and gives their number and the last one.
    fn walk(
        &mut self,
        store: &OrderStore,
        listing: u32,
        head: u32,
        mut see: impl FnMut(u32, &StoredOrder) -> Option<()>,
    ) -> Option<(u32, u32)> {
        let (mut count, mut last, mut next) = (0, NONE, head);
        while next != NONE {
            meet(&mut self.orders, next)?;
            let order = &store.orders[next as usize];
            let is_sound = order.prev == last
                && order.listing() == listing
                && order.left > 0
                && order.done >= 0
                && order.exp() <= EXPONENT_MAX
                && order.is_partly_shown() == store.has_display(next);
            is_sound.then_some(())?;
            see(next, order)?;
            (count, last, next) = (count + 1, next, order.next);
        }
        Some((count, last))
    }

    fn are_all_met(&self) -> bool {
        self.orders.iter().chain(&self.queues).all(|met| *met)
    }
}

/// Marks a slot; none where it was met already, or is not there.
fn meet(slots: &mut [bool], slot: u32) -> Option<()> {
    let met = slots.get_mut(slot as usize)?;
    (!std::mem::replace(met, true)).then_some(())
}
