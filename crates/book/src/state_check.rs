//! Checks of books that were read from bytes: their parts must refer to each other as in books that events made.
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
    /// Returns whether all slots, counts and sums agree.
    pub(crate) fn is_consistent(&self) -> bool {
        self.has_consistent_orders().is_some()
            && self.has_consistent_groups()
            && self.loss_table.is_consistent()
    }

    fn has_consistent_orders(&self) -> Option<()> {
        let mut slots = SlotSet::of_free(&self.store)?;
        for (listing_index, listing) in self.listings.iter().enumerate() {
            slots.visit_book(&self.store, u32::try_from(listing_index).ok()?, &listing.orders)?;
        }
        slots.are_all_met().then_some(())
    }

    /// Returns whether each listing is in the group of its instrument once, unless it is a price over all venues. No
    /// key may be there twice.
    fn has_consistent_groups(&self) -> bool {
        let is_member = |listing: &ListingBooks, listing_index: u32| {
            let group = self.groups.get(listing.instrument_index as usize);
            group.is_some_and(|group| {
                group.instrument == listing.instrument
                    && group.listings.binary_search(&listing_index).is_ok() != listing.consolidated
            })
        };
        // In the order in which they were met: their numbers rise.
        let members_rise = self.groups.iter().all(|group| group.listings.is_sorted_by(|a, b| a < b));
        let members: usize = self.groups.iter().map(|group| group.listings.len()).sum();
        members_rise
            && members == self.listings.iter().filter(|listing| !listing.consolidated).count()
            && self.listings.iter().zip(0..).all(|(listing, listing_index)| is_member(listing, listing_index))
            && self.listing_index.len() == self.listings.len()
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
    /// Collects the free slots of both slabs. Returns `None` if a slot is free twice or does not exist.
    fn of_free(store: &OrderStore) -> Option<Self> {
        let mut this =
            Self { orders: vec![false; store.orders.len()], queues: vec![false; store.queues.len()] };
        let (orders, queues) = store.free_slots();
        orders.iter().try_for_each(|slot| mark_met(&mut this.orders, *slot))?;
        queues.iter().try_for_each(|slot| mark_met(&mut this.queues, *slot))?;
        Some(this)
    }

    /// Visits the slots of a book and compares their contents with each other.
    fn visit_book(&mut self, store: &OrderStore, listing: u32, book: &OrderBook) -> Option<()> {
        let mut orders = 0;
        for side in Side::BOTH {
            let ladder = book.ladder(side);
            ladder.is_sorted().then_some(())?;
            for (key, level) in ladder.entries() {
                mark_met(&mut self.queues, level)?;
                let queue = &store.queues[level as usize];
                let mut units = 0i128;
                let (count, last) = self.walk_chain(store, listing, queue.first_slot, |slot, order| {
                    let shown_units = align(store.shown_quantity(slot).into(), order.exp(), book.scale())?;
                    units = units.checked_add(shown_units)?;
                    (order.level == level && order.side() == side && order.px == queue.px).then_some(())
                })?;
                let actual = (key, last, count, units);
                (actual == (price_key(side, queue.px), queue.last_slot, queue.orders, queue.units))
                    .then_some(())?;
                (count > 0).then_some(())?;
                orders += count;
            }
        }
        let mut has_matching = book.matching() == NONE;
        let (unqueued_count, _) = self.walk_chain(store, listing, book.first_unqueued(), |slot, order| {
            has_matching |= slot == book.matching();
            (order.level == NONE).then_some(())
        })?;
        (has_matching && orders + unqueued_count == book.orders()).then_some(())
    }

    /// Walks the orders of a chain. Returns their number and the last order.
    fn walk_chain(
        &mut self,
        store: &OrderStore,
        listing: u32,
        head: u32,
        mut see: impl FnMut(u32, &StoredOrder) -> Option<()>,
    ) -> Option<(u32, u32)> {
        let (mut count, mut last, mut next) = (0, NONE, head);
        while next != NONE {
            mark_met(&mut self.orders, next)?;
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
        self.orders.iter().chain(&self.queues).all(|is_met| *is_met)
    }
}

/// Marks a slot. Returns `None` if the slot was met already or does not exist.
fn mark_met(slots: &mut [bool], slot: u32) -> Option<()> {
    let is_met = slots.get_mut(slot as usize)?;
    (!std::mem::replace(is_met, true)).then_some(())
}
