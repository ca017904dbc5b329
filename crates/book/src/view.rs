//! Looking at books.

use crate::books::{Books, ListingId};
use crate::fault::BookFaultCounts;
use crate::listing::{ListingBooks, TouchLevel, marks_of};
use crate::qty;
use crate::value::{Basis, Bbo, BookDepth, OrderId, OrderView, PriceLevel, QuoteFlags, SessionPhase};
use unitape_model::{InstrumentId, Price, Side, UnixNanos};

/// An instrument at a venue, to look at.
#[derive(Clone, Copy)]
pub struct ListingView<'a> {
    books: &'a Books,
    listing_index: u32,
}

/// One book of a listing, to look at.
#[derive(Clone, Copy)]
pub struct BookView<'a> {
    books: &'a Books,
    listing_index: u32,
    basis: Basis,
}

impl Books {
    /// Looks at a listing.
    pub fn listing(&self, id: ListingId) -> ListingView<'_> {
        ListingView { books: self, listing_index: id.0 }
    }

    /// Returns the book of one basis of a listing. It is empty if the tape has no such book.
    pub fn book(&self, id: ListingId, basis: Basis) -> BookView<'_> {
        BookView { books: self, listing_index: id.0, basis }
    }
}

impl<'a> ListingView<'a> {
    fn inner(self) -> &'a ListingBooks {
        &self.books.listings[self.listing_index as usize]
    }

    /// Returns the id of the venue, or 0 if the feed names no venue.
    pub fn venue(self) -> u16 {
        self.inner().venue
    }

    /// Returns the id of the instrument.
    pub fn instrument(self) -> InstrumentId {
        self.inner().instrument
    }

    /// Returns the phase of the market session.
    pub fn phase(self) -> SessionPhase {
        self.inner().session_phase
    }

    /// Returns whether the venue matches orders as they arrive: the phase is continuous and trading is not halted.
    pub fn is_continuous(self) -> bool {
        self.inner().is_continuous()
    }

    /// Returns the basis of the best price now. Returns `None` before the first price and after the close.
    pub fn basis(self) -> Option<Basis> {
        let options = &self.books.options;
        self.inner().choose(&options.basis_order, self.books.now, options.stale_after_ns)
    }

    /// Returns the best prices of the first basis in [`crate::BookOptions::basis_order`] that has data and is not stale.
    pub fn bbo(self) -> Bbo {
        match self.basis() {
            Some(basis) => self.book(basis).bbo(),
            None => Bbo { marks: self.inner().marks(), ..Bbo::default() },
        }
    }

    /// Returns the books that have data.
    pub fn books(self) -> impl Iterator<Item = BookView<'a>> {
        let has_data = self.inner().has_data;
        Basis::ALL.into_iter().filter(move |b| has_data[*b as usize]).map(move |b| self.book(b))
    }

    /// Returns the book of one basis.
    pub fn book(self, basis: Basis) -> BookView<'a> {
        BookView { books: self.books, listing_index: self.listing_index, basis }
    }

    /// Returns the counts of impossible statements in the listing's events.
    pub fn faults(self) -> &'a BookFaultCounts {
        &self.inner().fault_counts
    }

    /// Counts how often the best prices became crossed or locked in continuous trading.
    pub fn crossings(self) -> u64 {
        self.inner().crossings
    }

    /// Counts the comparisons of the venue's published best prices with its book of orders, and the comparisons that
    /// differed. A comparison is made in continuous trading, while the book is not stale.
    pub fn published_checks(self) -> (u64, u64) {
        (self.inner().checked_events, self.inner().differs)
    }
}

impl<'a> BookView<'a> {
    fn inner(self) -> &'a ListingBooks {
        &self.books.listings[self.listing_index as usize]
    }

    /// Returns the kind of data from which the book is built.
    pub fn basis(self) -> Basis {
        self.basis
    }

    /// Returns the best bid and offer.
    pub fn bbo(self) -> Bbo {
        let top = self.inner().top_by_basis[self.basis as usize];
        let level = |side: Side, touch: TouchLevel| match self.basis {
            // Only this one counts orders, and only its level knows how many.
            Basis::Orders | Basis::Levels => self.levels(side).next(),
            Basis::Bbo => touch.level(None),
        };
        let [bid, ask] = [level(Side::Buy, top[0]), level(Side::Sell, top[1])];
        Bbo { bid, ask, marks: self.marks(), ts: self.ts() }
    }

    /// Returns the flags of the book.
    pub fn marks(self) -> QuoteFlags {
        let (listing, options) = (self.inner(), &self.books.options);
        let stale = listing.is_stale(self.basis, self.books.now, options.stale_after_ns);
        let marks = listing.marks().union(marks_of(&listing.top_by_basis[self.basis as usize]));
        if stale { marks.union(QuoteFlags::STALE) } else { marks }
    }

    /// Returns the event time of the last event that changed the book.
    pub fn ts(self) -> UnixNanos {
        UnixNanos(self.inner().ts[self.basis as usize])
    }

    /// Counts the levels of a side.
    pub fn level_count(self, side: Side) -> usize {
        let listing = self.inner();
        match self.basis {
            Basis::Orders => listing.orders.levels(side),
            Basis::Levels => listing.levels.levels(side),
            Basis::Bbo => usize::from(listing.published_sides[side as usize].is_some()),
        }
    }

    /// Returns the levels of a side, best first.
    pub fn levels(self, side: Side) -> impl Iterator<Item = PriceLevel> + use<'a> {
        let (listing, store) = (self.inner(), &self.books.store);
        let pick = |basis| self.basis == basis;
        let orders = pick(Basis::Orders).then(|| listing.orders.queues(store, side));
        let levels = pick(Basis::Levels).then(|| listing.levels.iter(side));
        let bbo = listing.published_sides[side as usize].as_ref().filter(|_| pick(Basis::Bbo));
        let of_queue = |(queue, scale): (&crate::store::PriceQueue, i8)| PriceLevel {
            px: Price(queue.px),
            qty: qty::amount(queue.units, scale),
            orders: Some(queue.orders),
        };
        orders
            .into_iter()
            .flatten()
            .map(of_queue)
            .chain(levels.into_iter().flatten().chain(bbo).map(crate::mbp::StoredLevel::level))
    }

    /// Returns the first `n` levels of both sides.
    pub fn depth(self, n: usize) -> BookDepth {
        let side = |side| self.levels(side).take(n).collect();
        BookDepth { bids: side(Side::Buy), asks: side(Side::Sell) }
    }

    /// Returns the orders at a price, first in line first. Only a book of orders has any.
    pub fn queue(self, side: Side, px: Price) -> impl Iterator<Item = OrderView> + use<'a> {
        let listing = self.inner();
        let orders =
            (self.basis == Basis::Orders).then(|| listing.orders.queue(&self.books.store, side, px.0));
        orders.into_iter().flatten().map(|order| self.books.store.view(order))
    }

    /// Returns the orders that are in no queue (see [`OrderView::is_queued`]), latest first.
    pub fn unqueued_orders(self) -> impl Iterator<Item = OrderView> + use<'a> {
        let listing = self.inner();
        let orders = (self.basis == Basis::Orders).then(|| listing.orders.unqueued_orders(&self.books.store));
        orders.into_iter().flatten().map(|order| self.books.store.view(order))
    }

    /// Counts the live orders, queued or not.
    pub fn order_count(self) -> u32 {
        if self.basis == Basis::Orders { self.inner().orders.orders() } else { 0 }
    }

    /// Looks up a live order.
    pub fn order(self, oid: &OrderId) -> Option<OrderView> {
        let slot =
            self.books.store.find_order(self.listing_index, oid).filter(|_| self.basis == Basis::Orders)?;
        Some(self.books.store.view(&self.books.store.orders[slot as usize]))
    }
}
