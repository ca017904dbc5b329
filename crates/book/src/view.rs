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
    at: u32,
}

/// One book of a listing, to look at.
#[derive(Clone, Copy)]
pub struct BookView<'a> {
    books: &'a Books,
    at: u32,
    basis: Basis,
}

impl Books {
    /// Looks at a listing.
    pub fn listing(&self, id: ListingId) -> ListingView<'_> {
        ListingView { books: self, at: id.0 }
    }

    /// Looks at the book of one basis of a listing; empty where the tape has none.
    pub fn book(&self, id: ListingId, basis: Basis) -> BookView<'_> {
        BookView { books: self, at: id.0, basis }
    }
}

impl<'a> ListingView<'a> {
    fn inner(self) -> &'a ListingBooks {
        &self.books.listings[self.at as usize]
    }

    /// Id of the venue; 0 where the feed names none.
    pub fn venue(self) -> u16 {
        self.inner().venue
    }

    /// Id of the instrument.
    pub fn instrument(self) -> InstrumentId {
        self.inner().instrument
    }

    /// The phase of its market session.
    pub fn phase(self) -> SessionPhase {
        self.inner().phase
    }

    /// Whether orders are matched as they come: by its phase, and no status says otherwise.
    pub fn is_continuous(self) -> bool {
        self.inner().is_continuous()
    }

    /// The basis of the best price now; none before any event has given one, and after the close.
    pub fn basis(self) -> Option<Basis> {
        let options = &self.books.options;
        self.inner().choose(&options.prefer, self.books.now, options.stale_after_ns)
    }

    /// The best prices, from the first basis in [`crate::BookOptions::prefer`] that is there and not stale.
    pub fn bbo(self) -> Bbo {
        match self.basis() {
            Some(basis) => self.book(basis).bbo(),
            None => Bbo { marks: self.inner().marks(), ..Bbo::default() },
        }
    }

    /// The books there are.
    pub fn books(self) -> impl Iterator<Item = BookView<'a>> {
        let has_data = self.inner().has_data;
        Basis::ALL.into_iter().filter(move |b| has_data[*b as usize]).map(move |b| self.book(b))
    }

    /// The book of one basis.
    pub fn book(self, basis: Basis) -> BookView<'a> {
        BookView { books: self.books, at: self.at, basis }
    }

    /// The impossible statements of its events.
    pub fn faults(self) -> &'a BookFaultCounts {
        &self.inner().faults
    }

    /// The number of times that its best prices came to cross or to lock each other in continuous trading.
    pub fn crossings(self) -> u64 {
        self.inner().crossings
    }

    /// The venue's published best prices that were compared with the book of its orders: their number, and how many
    /// of them differed. The comparison is made in continuous trading, while the book is not stale.
    pub fn published_checks(self) -> (u64, u64) {
        (self.inner().checked, self.inner().differs)
    }
}

impl<'a> BookView<'a> {
    fn inner(self) -> &'a ListingBooks {
        &self.books.listings[self.at as usize]
    }

    /// The kind of data from which the book is built.
    pub fn basis(self) -> Basis {
        self.basis
    }

    /// Best bid and offer.
    pub fn bbo(self) -> Bbo {
        let top = self.inner().tops[self.basis as usize];
        let level = |side: Side, touch: TouchLevel| match self.basis {
            // Only this one counts orders, and only its level knows how many.
            Basis::Orders | Basis::Levels => self.levels(side).next(),
            Basis::Bbo => touch.level(None),
        };
        let [bid, ask] = [level(Side::Buy, top[0]), level(Side::Sell, top[1])];
        Bbo { bid, ask, marks: self.marks(), ts: self.ts() }
    }

    /// Its marks.
    pub fn marks(self) -> QuoteFlags {
        let (listing, options) = (self.inner(), &self.books.options);
        let stale = listing.is_stale(self.basis, self.books.now, options.stale_after_ns);
        let marks = listing.marks().union(marks_of(&listing.tops[self.basis as usize]));
        if stale { marks.union(QuoteFlags::STALE) } else { marks }
    }

    /// Event time of the last event that touched it.
    pub fn ts(self) -> UnixNanos {
        UnixNanos(self.inner().ts[self.basis as usize])
    }

    /// The number of levels of a side.
    pub fn level_count(self, side: Side) -> usize {
        let listing = self.inner();
        match self.basis {
            Basis::Orders => listing.orders.levels(side),
            Basis::Levels => listing.levels.levels(side),
            Basis::Bbo => usize::from(listing.published[side as usize].is_some()),
        }
    }

    /// The levels of a side, best first.
    pub fn levels(self, side: Side) -> impl Iterator<Item = PriceLevel> + use<'a> {
        let (listing, store) = (self.inner(), &self.books.store);
        let pick = |basis| self.basis == basis;
        let orders = pick(Basis::Orders).then(|| listing.orders.queues(store, side));
        let levels = pick(Basis::Levels).then(|| listing.levels.iter(side));
        let bbo = listing.published[side as usize].as_ref().filter(|_| pick(Basis::Bbo));
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

    /// The first `n` levels of both sides.
    pub fn depth(self, n: usize) -> BookDepth {
        let side = |side| self.levels(side).take(n).collect();
        BookDepth { bids: side(Side::Buy), asks: side(Side::Sell) }
    }

    /// The orders at a price, first in line first; none but in a book of orders.
    pub fn queue(self, side: Side, px: Price) -> impl Iterator<Item = OrderView> + use<'a> {
        let listing = self.inner();
        let orders =
            (self.basis == Basis::Orders).then(|| listing.orders.queue(&self.books.store, side, px.0));
        orders.into_iter().flatten().map(|order| self.books.store.view(order))
    }

    /// The orders that are in no queue (see [`OrderView::queued`]), latest first.
    pub fn aside(self) -> impl Iterator<Item = OrderView> + use<'a> {
        let listing = self.inner();
        let orders = (self.basis == Basis::Orders).then(|| listing.orders.aside(&self.books.store));
        orders.into_iter().flatten().map(|order| self.books.store.view(order))
    }

    /// Live orders, queued or not.
    pub fn order_count(self) -> u32 {
        if self.basis == Basis::Orders { self.inner().orders.orders() } else { 0 }
    }

    /// A live order.
    pub fn order(self, oid: &OrderId) -> Option<OrderView> {
        let slot = self.books.store.find(self.at, oid).filter(|_| self.basis == Basis::Orders)?;
        Some(self.books.store.view(&self.books.store.orders[slot as usize]))
    }
}
