//! Steps become books, and calls for who listens.
//!
//! ```text
//!  events of a message ─▶ book of the instrument (by number, no look-up) ─▶ changes ─ End ─▶ one call an instrument
//!                 └ not subscribed: nothing is applied
//! ```

mod levels;

use crate::engine::{Engine, EventContext, LevelUpdate, MarketEvent, MarketEventSink, ReferenceTables};
use crate::listener::{BookUpdate, ChangedLevel, LineState, Listener, SequenceGap};
use crate::select::{Subscription, SubscriptionMatch, SubscriptionSet};
use crate::view::BookView;
use unitape_book::{BookFault, BookFaultCounts, DepthLimit, LevelBook, StoredLevel};
use unitape_model::{InstrumentId, ProductId, Side};

/// The books of all instruments that are subscribed.
#[derive(Debug, Default)]
pub struct Books {
    books: Vec<InstrumentBook>,
    /// By product: its instruments.
    products: Vec<Vec<InstrumentId>>,
    selection: SubscriptionSet,
    /// Changed levels of the current message.
    changes: Vec<ChangedLevel>,
    touched_instruments: Vec<InstrumentId>,
    /// Broken since [`Books::take_broken`] was asked.
    newly_broken: Vec<InstrumentId>,
    counters: HandlerCounters,
    fault_counts: BookFaultCounts,
}

/// Counters of the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerCounters {
    /// Levels that were applied to books.
    pub levels: u64,
    /// Levels of instruments that are not subscribed.
    pub passed_over: u64,
    /// Calls of the listener for changed books.
    pub updates: u64,
    /// Trades of subscribed instruments.
    pub trades: u64,
    /// Instruments that became stale.
    pub stale: u64,
    /// Instruments that recovered.
    pub recovered: u64,
    /// Messages that could not be used.
    pub refused: u64,
    /// Gaps on both lines.
    pub gaps: u64,
    /// Impossible changes of all instruments; of each book only the first until it is given in full: see
    /// [`Books::faults`].
    pub faults: u64,
}

/// An instrument and its book. The book is stale until its first events. Levels are reported only for instruments that
/// are not stale.
#[derive(Debug)]
struct InstrumentBook {
    book: LevelBook,
    /// `None` until the first event of the instrument.
    product: Option<ProductId>,
    levels_max: DepthLimit,
    subscription: SubscriptionMatch,
    /// The engine reported it as stale.
    is_stale: bool,
    /// Levels were left out or could not be; until the book is given in full.
    broken: bool,
    /// The listener considers it stale: this was reported last, or nothing yet.
    reported_stale: bool,
    /// In [`Books::touched_instruments`], in [`Books::newly_broken`].
    is_touched: bool,
    is_newly_broken: bool,
    is_cleared: bool,
    /// Some level is perhaps not between its neighbours, and some was not at the end of a message.
    unsorted: bool,
    out_of_order: bool,
}

/// Levels that are kept of a side where neither the venue nor the configuration says how many it has.
const LEVELS_MAX: u32 = 4096;

impl Books {
    /// Adds a subscription. Earlier changes of an instrument are lost. Its book is stale until it is given in full, see
    /// [`Books::take_broken`].
    pub fn subscribe(&mut self, subscription: Subscription, tables: &ReferenceTables) {
        if self.selection.add(subscription) {
            self.decide_all(tables);
        }
    }

    /// Removes a subscription. Books without any subscription are dropped.
    pub fn unsubscribe(&mut self, subscription: &Subscription, tables: &ReferenceTables) {
        if self.selection.remove(subscription) {
            self.decide_all(tables);
        }
    }

    /// Returns the book of an instrument, or `None` if the instrument is not subscribed.
    #[must_use]
    pub fn book(&self, instrument: InstrumentId) -> Option<BookView<'_>> {
        let one =
            self.books.get(instrument.index()).filter(|one| one.subscription == SubscriptionMatch::Yes)?;
        Some(one.view())
    }

    /// Counters of the work done.
    #[must_use]
    pub fn counters(&self) -> HandlerCounters {
        HandlerCounters { faults: self.fault_counts.total(), ..self.counters }
    }

    /// Returns the counts of impossible changes, by kind of fault.
    #[must_use]
    pub fn faults(&self) -> &BookFaultCounts {
        &self.fault_counts
    }

    /// Returns the instruments whose books broke since the last call: an impossible change was reported for them, or
    /// they were subscribed late. No further change repairs such a book; it must be given in full.
    pub fn take_broken(&mut self) -> impl Iterator<Item = InstrumentId> {
        for instrument in &self.newly_broken {
            self.books[instrument.index()].is_newly_broken = false;
        }
        self.newly_broken.drain(..)
    }

    /// Requests snapshots for the books that broke since the last call.
    #[inline]
    pub(crate) fn recover_broken(&mut self, core: &mut Engine) {
        if !self.newly_broken.is_empty() {
            self.want_snapshots(core);
        }
    }

    #[cold]
    fn want_snapshots(&mut self, core: &mut Engine) {
        for instrument in self.take_broken() {
            // Where no channel has snapshots it is stale until the venue empties it.
            core.want_snapshot(instrument);
        }
    }

    /// Returns a sink that applies events to the books and calls `listener`.
    #[inline]
    pub fn updater<'b, L: Listener>(&'b mut self, listener: &'b mut L) -> BookUpdater<'b, L> {
        BookUpdater { books: self, listener }
    }

    fn decide_all(&mut self, tables: &ReferenceTables) {
        for instrument in (0..self.books.len() as u32).map(InstrumentId) {
            _ = self.decide_subscription(tables, instrument);
        }
    }

    /// Takes new reference data of an instrument. If these data first show that it is subscribed, the listener gets its
    /// book at the end of the message. Returns whether it is subscribed.
    fn define_instrument(&mut self, tables: &ReferenceTables, instrument: InstrumentId) -> bool {
        let old_subscription = self.books.get(instrument.index()).map(|one| one.subscription);
        let wants_books = self.decide_subscription(tables, instrument);
        if wants_books && old_subscription == Some(SubscriptionMatch::NotYet) {
            self.note_touched(instrument);
        }
        wants_books
    }

    /// Decides whether an instrument is subscribed, by the reference data known so far.
    fn decide_subscription(&mut self, tables: &ReferenceTables, instrument: InstrumentId) -> bool {
        let reference = &tables.instruments[instrument.index()];
        while self.books.len() <= instrument.index() {
            self.books.push(InstrumentBook::new());
        }
        let wants_books = self.selection.wants(tables, instrument);
        let one = &mut self.books[instrument.index()];
        if one.product != Some(reference.product) {
            one.product = Some(reference.product);
            let product = reference.product.index();
            self.products.resize_with(self.products.len().max(product + 1), Vec::new);
            self.products[product].push(instrument);
        }
        let depth =
            reference.depth.or(tables.products[reference.product.index()].depth).filter(|depth| *depth > 0);
        one.levels_max = depth.map_or(DepthLimit::Kept(LEVELS_MAX), |n| DepthLimit::Published(n.into()));
        let old_subscription = std::mem::replace(&mut one.subscription, wants_books);
        if old_subscription == wants_books {
            return wants_books == SubscriptionMatch::Yes;
        }
        one.reported_stale = true;
        match wants_books {
            SubscriptionMatch::No => {
                one.broken |= Side::BOTH.iter().any(|side| one.book.levels(*side) > 0);
                one.book = LevelBook::default();
                (one.unsorted, one.out_of_order) = (false, false);
            }
            SubscriptionMatch::Yes if one.broken => self.note_broken(instrument),
            SubscriptionMatch::Yes | SubscriptionMatch::NotYet => {}
        }
        wants_books == SubscriptionMatch::Yes
    }

    #[inline]
    fn note_touched(&mut self, instrument: InstrumentId) {
        let one = &mut self.books[instrument.index()];
        if !one.is_touched {
            one.is_touched = true;
            self.touched_instruments.push(instrument);
        }
    }

    /// Notes that the book lacks levels that only a full book can restore.
    #[cold]
    fn note_broken(&mut self, instrument: InstrumentId) {
        let one = &mut self.books[instrument.index()];
        if !std::mem::replace(&mut one.is_newly_broken, true) {
            self.newly_broken.push(instrument);
        }
    }

    /// Notes an impossible change. Further faults in a book that is already broken say nothing new.
    #[cold]
    fn fault(&mut self, instrument: InstrumentId, fault: BookFault) {
        if !std::mem::replace(&mut self.books[instrument.index()].broken, true) {
            self.fault_counts.count(fault);
            self.note_broken(instrument);
        }
    }

    fn clear(&mut self, instrument: InstrumentId) {
        let Some(one) = self.books.get_mut(instrument.index()) else { return };
        if one.subscription == SubscriptionMatch::No {
            return;
        }
        one.book.clear();
        one.is_cleared = true;
        (one.unsorted, one.broken, one.out_of_order) = (false, false, false);
        // Earlier changes in the message no longer count.
        self.changes.retain(|change| change.instrument != instrument);
        self.note_touched(instrument);
    }

    /// Ends the message: calls the listener for each book that it changed.
    #[inline]
    fn end_message<L: Listener>(&mut self, context: &EventContext<'_>, listener: &mut L) {
        match self.touched_instruments[..] {
            [] => return,
            [one] => self.notify_listener(context, listener, one, 0..self.changes.len()),
            _ => self.notify_all(context, listener),
        }
        self.touched_instruments.clear();
        self.changes.clear();
    }

    fn notify_all<L: Listener>(&mut self, context: &EventContext<'_>, listener: &mut L) {
        // Changes of one instrument are next to each other mostly, but need not be.
        if !self.changes.is_sorted_by_key(|change| change.instrument) {
            self.changes.sort_unstable_by_key(|change| (change.instrument, change.number));
        }
        let touched = std::mem::take(&mut self.touched_instruments);
        for instrument in &touched {
            let first_change = self.changes.partition_point(|change| change.instrument < *instrument);
            let last_change = self.changes.partition_point(|change| change.instrument <= *instrument);
            self.notify_listener(context, listener, *instrument, first_change..last_change);
        }
        self.touched_instruments = touched;
    }

    #[inline]
    fn notify_listener<L: Listener>(
        &mut self,
        context: &EventContext<'_>,
        listener: &mut L,
        instrument: InstrumentId,
        changes: std::ops::Range<usize>,
    ) {
        let one = &mut self.books[instrument.index()];
        one.is_touched = false;
        let out_of_order = one.unsorted && one.check_order() && !one.broken;
        let cleared = std::mem::replace(&mut one.is_cleared, false);
        let (stale, wanted) = (one.is_stale(), one.subscription == SubscriptionMatch::Yes);
        let has_changed = wanted && std::mem::replace(&mut one.reported_stale, stale) != stale;
        if out_of_order {
            self.fault_counts.count(BookFault::UnsortedLevel);
            self.note_broken(instrument);
        }
        if !wanted {
            return;
        }
        if has_changed && stale {
            self.counters.stale += 1;
            listener.on_stale(context, instrument);
        } else if has_changed {
            self.counters.recovered += 1;
            listener.on_recovered(context, instrument);
        }
        self.counters.updates += 1;
        let (book, changes) = (self.books[instrument.index()].view(), &self.changes[changes]);
        listener.on_book(&BookUpdate { context, instrument, cleared, changes, book });
    }
}

impl InstrumentBook {
    fn new() -> Self {
        Self {
            book: LevelBook::default(),
            product: None,
            levels_max: DepthLimit::Kept(LEVELS_MAX),
            subscription: SubscriptionMatch::NotYet,
            is_stale: true,
            broken: false,
            reported_stale: true,
            is_touched: false,
            is_newly_broken: false,
            is_cleared: false,
            unsorted: false,
            out_of_order: false,
        }
    }

    /// Notes a changed level of the book. `is_sorted` says whether the level is between its neighbours.
    #[inline(always)]
    fn note_change(&mut self, instrument: InstrumentId, is_sorted: bool, touched: &mut Vec<InstrumentId>) {
        self.is_stale = false;
        if !is_sorted {
            self.unsorted = true;
        }
        if !self.is_touched {
            self.is_touched = true;
            touched.push(instrument);
        }
    }

    /// Looks at the order of all levels, at the end of a message; whether they are out of order now and were not before.
    #[cold]
    fn check_order(&mut self) -> bool {
        let side = |side: Side| {
            let better = |a: &StoredLevel, b: &StoredLevel| match side {
                Side::Buy => a.px > b.px,
                Side::Sell => a.px < b.px,
            };
            self.book.iter(side).is_sorted_by(|a, b| better(a, b))
        };
        self.unsorted = !Side::BOTH.into_iter().all(side);
        let was = std::mem::replace(&mut self.out_of_order, self.unsorted);
        self.unsorted && !was
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.is_stale | self.broken | self.out_of_order
    }

    #[inline]
    fn view(&self) -> BookView<'_> {
        BookView { book: &self.book, is_stale: self.is_stale() }
    }
}

/// Books and their listener, as a sink for the events of an engine.
#[derive(Debug)]
pub struct BookUpdater<'b, L> {
    books: &'b mut Books,
    listener: &'b mut L,
}

impl<L: Listener> MarketEventSink for BookUpdater<'_, L> {
    // Inlined everywhere: the emitting code knows which event it is.
    #[inline(always)]
    fn emit(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) {
        let Self { books, listener } = self;
        match step {
            MarketEvent::Level(level) => books.level(&level),
            MarketEvent::End(_) => books.end_message(context, *listener),
            MarketEvent::Trade(trade) => {
                if books.is_wanted(trade.instrument) {
                    books.counters.trades += 1;
                    listener.on_trade(context, &trade);
                }
            }
            other => self.rare_event(context, other),
        }
    }

    #[inline(always)]
    fn emit_level(&mut self, _at: &EventContext<'_>, level: &LevelUpdate) {
        self.books.level(level);
    }
}

impl Books {
    /// Marks an instrument as stale. Returns whether the listener must be called. If no snapshot will repair the book,
    /// levels continue, and the book stays stale until it arrives in full.
    fn mark_stale(&mut self, instrument: InstrumentId, mended: bool) -> bool {
        let Some(one) = self.books.get_mut(instrument.index()) else { return false };
        one.is_stale = true;
        one.broken |= !mended;
        !std::mem::replace(&mut one.reported_stale, true)
    }

    /// Marks an instrument as recovered. The listener is called at the end of the message.
    fn mark_recovered(&mut self, instrument: InstrumentId) {
        if let Some(one) = self.books.get_mut(instrument.index())
            && one.is_stale
        {
            one.is_stale = false;
            self.note_touched(instrument);
        }
    }

    /// Takes the instruments of a product out of the table while the caller iterates over them.
    fn take_instruments(&mut self, product: ProductId) -> Vec<InstrumentId> {
        let product = self.products.get_mut(product.index());
        product.map(std::mem::take).unwrap_or_default()
    }

    fn put_instruments(&mut self, product: ProductId, instruments: Vec<InstrumentId>) {
        if let Some(product) = self.products.get_mut(product.index()) {
            *product = instruments;
        }
    }

    #[inline]
    fn is_wanted(&self, instrument: InstrumentId) -> bool {
        self.books.get(instrument.index()).is_some_and(|one| one.subscription == SubscriptionMatch::Yes)
    }
}

impl<L: Listener> BookUpdater<'_, L> {
    #[inline(never)]
    #[allow(clippy::collapsible_match, reason = "a guard that changes books would hide what it does")]
    fn rare_event(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) {
        let Self { books, listener } = self;
        match step {
            MarketEvent::Instrument(instrument) => {
                if books.define_instrument(context.tables, instrument) {
                    listener.on_instrument(context, instrument);
                }
            }
            MarketEvent::Product(product) => {
                let all = books.take_instruments(product);
                for instrument in &all {
                    if books.define_instrument(context.tables, *instrument) {
                        listener.on_instrument(context, *instrument);
                    }
                }
                books.put_instruments(product, all);
            }
            MarketEvent::Clear { instrument } => books.clear(instrument),
            MarketEvent::Stale { instrument, mended } => {
                if books.mark_stale(instrument, mended) {
                    books.counters.stale += 1;
                    listener.on_stale(context, instrument);
                }
            }
            MarketEvent::Recovered { instrument } => books.mark_recovered(instrument),
            MarketEvent::State(state) => {
                let wanted_instruments = match state.instrument {
                    Some(instrument) => books.is_wanted(instrument),
                    None => {
                        let all = books.products.get(state.product.index());
                        all.is_some_and(|all| all.iter().any(|instrument| books.is_wanted(*instrument)))
                    }
                };
                if wanted_instruments {
                    listener.on_state(context, &state);
                }
            }
            MarketEvent::Missing { product, from, to, .. } => {
                books.counters.gaps += 1;
                listener.on_gap(context, SequenceGap::Messages { product, from, to });
            }
            MarketEvent::Lost { from, to } => {
                books.counters.gaps += 1;
                listener.on_gap(context, SequenceGap::Packets { from, to });
            }
            MarketEvent::NoRoom { product } => {
                books.counters.gaps += 1;
                listener.on_gap(context, SequenceGap::NoRoom { product });
            }
            MarketEvent::Refused(refusal) => {
                books.counters.refused += 1;
                listener.on_refused(context, &refusal);
            }
            MarketEvent::LineDown { line, since } => {
                listener.on_line(context, LineState { line, down: true, since })
            }
            MarketEvent::LineUp { line, since } => {
                listener.on_line(context, LineState { line, down: false, since })
            }
            _ => {}
        }
    }
}
