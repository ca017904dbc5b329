//! All books of a tape: it sends each event to its book and reports the changes.

use crate::consolidated::{ConsolidatedBbo, ConsolidatedInstrument, choose};
use crate::decode::{self, StatedSide};
use crate::executions::RecentExecutions;
use crate::fault::{BookFault, BookFaultCounts};
use crate::listing::{ListingBooks, ListingKey, PublishedSides, is_same_top};
use crate::listing_events::{ELSEWHERE, LatestTradingStatus};
use crate::losses::{MessageLossTable, SourceBookPolicy};
use crate::mbo::OrderBookContext;
use crate::mbp::LevelAction;
use crate::state::State;
use crate::store::{LISTINGS_MAX, OrderStore};
use crate::value::Basis;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use unitape_model::records::OrderRecord;
use unitape_model::{Event, EventKind, InstrumentId, UnixNanos, flags};

/// The options of books; bounds have counters.
#[derive(Clone, Debug)]
pub struct BookOptions {
    /// Live orders of all books together, 64 bytes each.
    pub orders_max: u32,
    /// Live orders of one book.
    pub orders_per_book_max: u32,
    /// Levels on one side of a book.
    pub levels_max: u32,
    /// Instruments at venues; [`BookCounters::no_room`] counts events of others.
    pub listings_max: u32,
    /// The source of a venue's best price: the first of these that the tape has and that is not stale.
    pub basis_order: [Basis; 3],
    /// A basis is stale when its last event is further back than this, by event time.
    pub stale_after_ns: Option<i64>,
}

impl Default for BookOptions {
    /// Returns the default options: 16 Mi orders, 1 Mi in a book, 16,384 levels a side and 65,536 listings. The venue's
    /// published best price is preferred, then levels, then orders, because a tape may hold the orders of a single
    /// firm. No price becomes stale by age.
    fn default() -> Self {
        Self {
            orders_max: 1 << 24,
            orders_per_book_max: 1 << 20,
            levels_max: 1 << 14,
            listings_max: 1 << 16,
            basis_order: [Basis::Bbo, Basis::Levels, Basis::Orders],
            stale_after_ns: None,
        }
    }
}

/// An instrument at a venue, as [`Books`] numbers it in the order of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListingId(pub(crate) u32);

/// The changes of an event, by listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookChange {
    /// Whose book.
    pub listing: ListingId,
    /// The basis of its book, or `None` if only the phase changed.
    pub basis: Option<Basis>,
    /// The best prices of that book are others.
    pub top_changed: bool,
    /// The best prices of the venue are others.
    pub best_changed: bool,
    /// The best prices over all venues are others.
    pub consolidated_changed: bool,
    /// The phase is another.
    pub phase_changed: bool,
    /// The impossible statement of the event.
    pub fault: Option<BookFault>,
}

/// The counters over all books; faults are counted by listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookCounters {
    /// Events that concern books.
    pub events: u64,
    /// Events among these that name no instrument or no order; left out.
    pub unnamed_events: u64,
    /// Events of listings for which there was no room; left out.
    pub no_room: u64,
    /// `session` events of a phase we do not know; left out.
    pub unknown_phase: u64,
    /// Events of orders of sources of which no books can be made; left out.
    pub bookless: u64,
    /// Gaps and messages in quarantine that may concern any book of their feed.
    pub lost: u64,
    /// Events of messages that may be there twice; left out.
    pub repeats: u64,
    /// Quarantined messages among the `lost` messages.
    pub refused: u64,
}

/// The effect of an event on the basis that it concerns.
#[derive(Clone, Copy)]
struct BasisUpdate {
    /// The event publishes the whole book again.
    restores_book: bool,
}

/// All books of a tape.
pub struct Books {
    pub(crate) options: BookOptions,
    pub(crate) store: OrderStore,
    pub(crate) listings: Vec<ListingBooks>,
    pub(crate) groups: Vec<ConsolidatedInstrument>,
    pub(crate) listing_index: HashMap<ListingKey, u32, FxBuildHasher>,
    pub(crate) group_index: HashMap<InstrumentId, u32, FxBuildHasher>,
    /// The status for later listings, by venue and instrument; 0 stands for all. It applies to several listings, or to
    /// a listing that does not exist yet.
    pub(crate) latest_status: HashMap<ListingKey, LatestTradingStatus, FxBuildHasher>,
    /// The number of such statements.
    pub(crate) wide_count: u64,
    pub(crate) loss_table: MessageLossTable,
    executions: RecentExecutions,
    /// The venue id that means all of them.
    all_venues: Option<u16>,
    /// Greatest event time so far.
    pub(crate) now: i64,
    /// That of this event, and its source.
    ts: i64,
    source: u32,
    pub(crate) counters: BookCounters,
    pub(crate) changes: Vec<BookChange>,
}

impl Default for Books {
    fn default() -> Self {
        Self::new(BookOptions::default())
    }
}

impl Books {
    /// Makes an empty set of books.
    pub fn new(options: BookOptions) -> Self {
        let orders_max = options.orders_max;
        Self {
            options: BookOptions { listings_max: options.listings_max.min(LISTINGS_MAX - 1), ..options },
            store: OrderStore::new(orders_max),
            listings: Vec::new(),
            groups: Vec::new(),
            listing_index: HashMap::default(),
            group_index: HashMap::default(),
            latest_status: HashMap::default(),
            wide_count: 0,
            loss_table: MessageLossTable::default(),
            executions: RecentExecutions::default(),
            all_venues: None,
            now: i64::MIN,
            ts: 0,
            source: 0,
            counters: BookCounters::default(),
            changes: Vec::new(),
        }
    }

    /// Says which venue id is no venue but the feed's own price over all of them (`NBBO`); it does not take part in
    /// consolidated prices. [`crate::TapeBooks`] finds it by its name.
    pub fn set_all_venues(&mut self, venue: u16) {
        self.all_venues = Some(venue);
    }

    /// Applies the next event and returns the changes. Events that do not concern books change nothing.
    #[inline]
    pub fn on_event(&mut self, event: &Event<'_>) -> &[BookChange] {
        self.changes.clear();
        if event.is_repeat() {
            self.on_repeat(event);
            return &self.changes;
        }
        match event.kind() {
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec => {
                self.on_order(event)
            }
            EventKind::Bbo | EventKind::Level => self.on_quote(event),
            EventKind::Session => self.on_session(event),
            EventKind::Status => self.on_status(event),
            _ => {}
        }
        &self.changes
    }

    /// Returns the book changes that the last event made.
    pub fn changes(&self) -> &[BookChange] {
        &self.changes
    }

    /// Marks a book as not to be trusted, as after a gap in its feed. An event that clears it, or
    /// [`Books::mark_recovered`], ends that.
    pub fn mark_stale(&mut self, listing: ListingId, basis: Basis) {
        self.set_stale(listing, basis, true);
    }

    /// Takes a book as whole again, as after a snapshot.
    pub fn mark_recovered(&mut self, listing: ListingId, basis: Basis) {
        self.set_stale(listing, basis, false);
    }

    /// Looks up the listing of an instrument at a venue, both by their ids.
    pub fn find(&self, venue: u16, instrument: InstrumentId) -> Option<ListingId> {
        self.listing_index.get(&ListingKey { venue, instrument }).copied().map(ListingId)
    }

    /// Returns all listings, in the order in which the tape named them.
    pub fn listings(&self) -> impl ExactSizeIterator<Item = ListingId> + use<> {
        (0..self.listings.len() as u32).map(ListingId)
    }

    /// Returns the ids of the instruments, in the order in which the tape named them.
    pub fn instruments(&self) -> impl ExactSizeIterator<Item = InstrumentId> {
        self.groups.iter().map(|g| g.instrument)
    }

    /// Returns the listings of an instrument, without the feed's own price over all venues.
    pub fn listings_of(&self, instrument: InstrumentId) -> impl Iterator<Item = ListingId> {
        let group = self.group_index.get(&instrument).map(|group_index| &self.groups[*group_index as usize]);
        group.into_iter().flat_map(|g| g.listings.iter().copied().map(ListingId))
    }

    /// Finds the best price of an instrument over its venues, now. An unknown instrument has an empty price.
    pub fn consolidated(&self, instrument: InstrumentId) -> ConsolidatedBbo {
        let group = self.group_index.get(&instrument).map(|group_index| &self.groups[*group_index as usize]);
        group.map_or_else(ConsolidatedBbo::default, |g| {
            g.consolidated(&self.listings, self.now, &self.options)
        })
    }

    /// Counts the live orders of all books.
    pub fn orders(&self) -> usize {
        self.store.len()
    }

    /// Counters over all books.
    pub fn counters(&self) -> BookCounters {
        self.counters
    }

    /// Sums the faults of all books.
    pub fn faults_total(&self) -> u64 {
        self.listings.iter().map(|l| l.fault_counts.total()).sum()
    }

    /// Returns whether a listing has no book because every event since the feed last cleared it was left out as a
    /// repeat. A listing that the feed has cleared, and of which nothing followed, has an empty book.
    pub fn has_only_repeats(&self, listing: ListingId) -> bool {
        self.lacks_book(listing) && self.listings[listing.0 as usize].repeat_count > 0
    }

    /// Returns the fault counts of a listing.
    pub fn faults(&self, listing: ListingId) -> &BookFaultCounts {
        &self.listings[listing.0 as usize].fault_counts
    }

    /// Returns the greatest event time so far, or `None` before the first event.
    pub fn now(&self) -> Option<UnixNanos> {
        (self.now != i64::MIN).then_some(UnixNanos(self.now))
    }

    fn on_order(&mut self, event: &Event<'_>) {
        self.counters.events += 1;
        let Some(order) = OrderRecord::from_event(event) else { return };
        if self.loss_table.any_bookless && self.loss_table.kind(event.source()) == SourceBookPolicy::Bookless
        {
            self.counters.bookless += 1;
            return;
        }
        let oid = decode::order_id(event, order).filter(|_| event.instrument() != InstrumentId::NONE);
        let Some(oid) = oid else { return self.on_unnamed_order(event) };
        let Some((listing_index, late)) = self.begin_event(event) else { return };
        let (listing, store) = (&mut self.listings[listing_index as usize], &mut self.store);
        let context = OrderBookContext {
            listing: listing_index,
            is_continuous: listing.is_continuous(),
            is_snapshot: event.header().flags() & flags::SNAPSHOT != 0,
            orders_max: self.options.orders_per_book_max,
            levels_max: self.options.levels_max,
        };
        let terms = decode::terms(event, order);
        let book = &mut listing.orders;
        let outcome = match event.kind() {
            _ if late => Err(BookFault::Late),
            EventKind::OrderNew => book.on_new(store, &context, oid, &terms),
            EventKind::OrderAmend => book.on_amend(store, &context, oid, &terms),
            EventKind::OrderCancel => book.on_cancel(store, &context, oid, &terms),
            _ => {
                self.executions.note_execution(listing_index, order);
                book.on_exec(store, &context, oid, &terms)
            }
        };
        self.finish_event(listing_index, Basis::Orders, outcome, BasisUpdate { restores_book: false });
    }

    fn on_quote(&mut self, event: &Event<'_>) {
        self.counters.events += 1;
        let Some((listing_index, late)) = self.begin_event(event) else { return };
        let listing = &mut self.listings[listing_index as usize];
        let mut recovered = false;
        if event.kind() == EventKind::Level {
            let outcome = match decode::level(event) {
                _ if late => Err(BookFault::Late),
                Some(change) => {
                    recovered = change.action == LevelAction::Clear && change.side.is_none();
                    // A message that arrives with the stale notice does not replace the book.
                    recovered &= !listing.is_word(Basis::Levels);
                    listing.levels.on_level(&change, self.options.levels_max)
                }
                None => Err(BookFault::BadLevel),
            };
            return self.finish_event(
                listing_index,
                Basis::Levels,
                outcome,
                BasisUpdate { restores_book: recovered },
            );
        }
        if let Some(stated) = decode::partial_bbo(event) {
            return self.on_partial_quote(listing_index, late, &stated);
        }
        let outcome = match decode::bbo(event) {
            _ if late => Err(BookFault::Late),
            Some(published) => {
                listing.published_sides = published;
                recovered = !listing.is_word(Basis::Bbo);
                Ok(())
            }
            None => Err(BookFault::BadLevel),
        };
        self.finish_event(listing_index, Basis::Bbo, outcome, BasisUpdate { restores_book: recovered });
        self.check_published(listing_index);
    }

    /// Applies a `bbo` that states only the fields that it has. A book of which a side is not known is stale.
    #[cold]
    fn on_partial_quote(&mut self, listing_index: u32, late: bool, stated: &[StatedSide; 2]) {
        let basis = Basis::Bbo;
        let listing = &mut self.listings[listing_index as usize];
        let was_marked = listing.is_marked(basis);
        let mut recovered = false;
        let outcome = if late { Err(BookFault::Late) } else { listing.with_partial(stated) };
        if let Ok(PublishedSides { stated_sides: sides, is_known }) = outcome {
            listing.published_sides = sides;
            let has_data = listing.has_data[basis as usize];
            // A message that arrives with the stale notice does not state a side again.
            if (was_marked || !has_data) && !listing.is_word(basis) {
                recovered = is_known == [true; 2];
                listing.is_restated = is_known;
            }
            listing.is_stale[basis as usize] |= !has_data && !recovered;
        }
        self.finish_event(listing_index, basis, outcome.map(drop), BasisUpdate { restores_book: recovered });
        if !self.listings[listing_index as usize].is_marked(basis) {
            self.check_published(listing_index);
        }
    }

    /// Leaves out an event whose message may be a duplicate. Its book is stale from then on, unless the book shows that
    /// the event changes nothing. That is so for an order that exists, the end or execution of an unknown order, one of
    /// the last executions, or the current best price.
    #[cold]
    fn on_repeat(&mut self, event: &Event<'_>) {
        let (kind, order) = (event.kind(), OrderRecord::from_event(event));
        let basis = match (kind, order) {
            (_, Some(_)) => Basis::Orders,
            (EventKind::Bbo, _) => Basis::Bbo,
            (EventKind::Level, _) => Basis::Levels,
            (EventKind::Session | EventKind::Status, _) => return self.on_repeated_status(event),
            _ => return,
        };
        self.counters.events += 1;
        self.counters.repeats += 1;
        let Some((listing_index, _)) = self.begin_event(event) else { return };
        self.listings[listing_index as usize].repeat_count += 1;
        let listing = &self.listings[listing_index as usize];
        let is_known = match order {
            Some(order) => {
                let oid = decode::order_id(event, order);
                let is_there = oid.is_some_and(|oid| self.store.find_order(listing_index, &oid).is_some());
                match kind {
                    EventKind::OrderNew => is_there,
                    EventKind::OrderAmend => false,
                    EventKind::Exec if self.executions.has_execution(listing_index, order) => true,
                    _ => oid.is_some() && !is_there,
                }
            }
            None if kind == EventKind::Bbo => {
                let published = match decode::partial_bbo(event) {
                    Some(stated) => listing.with_partial(&stated).ok().map(|after| after.stated_sides),
                    None => decode::bbo(event),
                };
                published.as_ref() == Some(&listing.published_sides)
            }
            None => false,
        };
        if !is_known {
            self.set_stale(ListingId(listing_index), basis, true);
        }
    }

    /// Leaves out a phase or status whose message may be there twice: all books of its listing are stale from then on.
    fn on_repeated_status(&mut self, event: &Event<'_>) {
        self.counters.events += 1;
        self.counters.repeats += 1;
        let (venue, instrument) = (event.venue(), event.instrument());
        let Some(listing) = self.find(venue, instrument) else { return };
        for basis in Basis::ALL {
            if self.listings[listing.0 as usize].has_data[basis as usize] {
                self.set_stale(listing, basis, true);
            }
        }
    }

    /// Returns whether no event has described a listing since it was last cleared.
    fn lacks_book(&self, listing: ListingId) -> bool {
        self.listings[listing.0 as usize].has_data == [false; 3]
    }

    /// Losses of instruments at venues that have no book; `instrument` and `venue` choose among them.
    pub(crate) fn losses_without_book(&self, instrument: Option<InstrumentId>, venue: Option<u16>) -> u64 {
        let is_without = |key: &ListingKey| match key.venue {
            0 => self.listings_of(key.instrument).all(|listing| self.lacks_book(listing)),
            _ => self.find(key.venue, key.instrument).is_none_or(|listing| self.lacks_book(listing)),
        };
        let is_chosen = |key: &ListingKey| {
            instrument.is_none_or(|id| id == key.instrument)
                && venue.is_none_or(|venue| venue == key.venue || key.venue == 0)
        };
        let keys = self.loss_table.named_listings();
        keys.filter(|key| is_chosen(key) && is_without(key)).count() as u64
    }

    /// Compares the venue's published best price with the book of its orders.
    fn check_published(&mut self, listing_index: u32) {
        let listing = &mut self.listings[listing_index as usize];
        let [orders, bbo] = [Basis::Orders, Basis::Bbo].map(|b| b as usize);
        if listing.has_data[orders] && !listing.is_marked(Basis::Orders) && listing.is_continuous() {
            listing.checked_events += 1;
            listing.differs +=
                u64::from(!is_same_top(&listing.top_by_basis[orders], &listing.top_by_basis[bbo]));
        }
    }

    /// Finds the listing of an event, or makes it if it is new. Also returns whether the event is late and out of turn.
    #[inline]
    pub(crate) fn begin_event(&mut self, event: &Event<'_>) -> Option<(u32, bool)> {
        self.ts = event.ts_event().0;
        self.now = self.now.max(self.ts);
        let (venue, instrument) = (event.venue(), event.instrument());
        if instrument == InstrumentId::NONE {
            self.counters.unnamed_events += 1;
            return None;
        }
        let listing_index = match self.listing_index.get(&ListingKey { venue, instrument }) {
            Some(index) => *index,
            None => self.open(venue, instrument)?,
        };
        let listing = &mut self.listings[listing_index as usize];
        let (source, offset) = (event.source(), event.offset());
        self.source = source;
        if event.header().flags() & flags::LATE != 0 {
            return Some((listing_index, listing.is_out_of_turn(source, offset)));
        }
        (listing.source, listing.offset) = (source, offset);
        Some((listing_index, false))
    }

    #[cold]
    fn open(&mut self, venue: u16, instrument: InstrumentId) -> Option<u32> {
        if self.listings.len() >= self.options.listings_max as usize {
            self.counters.no_room += 1;
            return None;
        }
        let initial_status = self.initial_status(venue, instrument);
        let groups = &mut self.groups;
        let group = *self.group_index.entry(instrument).or_insert_with(|| {
            groups.push(ConsolidatedInstrument::new(instrument));
            groups.len() as u32 - 1
        });
        let listing_index = self.listings.len() as u32;
        let is_all_venues = self.all_venues == Some(venue);
        if !is_all_venues {
            groups[group as usize].listings.push(listing_index);
        }
        let mut listing = ListingBooks::new(venue, instrument, group, initial_status.phase.1, is_all_venues);
        listing.halted = initial_status.halted.1;
        listing.loss_offsets = [initial_status.stale.1.then_some(ELSEWHERE); 3];
        self.listings.push(listing);
        self.listing_index.insert(ListingKey { venue, instrument }, listing_index);
        Some(listing_index)
    }

    /// Records a status as late if it comes from before the last offset that the book has read of its source.
    #[cold]
    pub(crate) fn reject_late_status(&mut self, listing_index: u32) {
        self.finish_event(
            listing_index,
            Basis::Levels,
            Err(BookFault::Late),
            BasisUpdate { restores_book: false },
        );
    }

    /// Finishes an event: updates the state of its book and everything that depends on it.
    #[inline]
    fn finish_event(
        &mut self,
        listing_index: u32,
        basis: Basis,
        outcome: Result<(), BookFault>,
        touched: BasisUpdate,
    ) {
        let (now, after) = (self.now, self.options.stale_after_ns);
        let listing = &mut self.listings[listing_index as usize];
        let b = basis as usize;
        let was_stale = listing.is_marked(basis);
        if touched.restores_book && listing.end_marks(basis) {
            self.loss_table.clear_count += 1;
        }
        if let Err(fault) = outcome {
            listing.fault(basis, fault);
        }
        // A late event says nothing about the present.
        let current = outcome != Err(BookFault::Late);
        let is_first_data = current && !listing.has_data[b];
        if current {
            listing.has_data[b] = true;
            listing.ts[b] = self.ts;
            if listing.source_by_basis[b] != self.source {
                // A loss of this feed has marked it while it was of another, or not there.
                listing.source_by_basis[b] = self.source;
                self.loss_table.clear_count += 1;
            }
        }
        if is_first_data && !touched.restores_book && self.loss_table.count > listing.cleared_loss {
            let key = ListingKey { venue: listing.venue, instrument: listing.instrument };
            if self.loss_table.last_loss(self.source, key, basis == Basis::Orders) > listing.cleared_loss {
                listing.loss_offsets[b] = Some(ELSEWHERE);
            }
        }
        let top_now = listing.top_of(&self.store, basis);
        let top = !is_same_top(&top_now, &listing.top_by_basis[b]);
        if top {
            listing.top_by_basis[b] = top_now;
        }
        let mut change = BookChange {
            listing: ListingId(listing_index),
            basis: Some(basis),
            top_changed: top,
            best_changed: false,
            consolidated_changed: false,
            phase_changed: false,
            fault: outcome.err(),
        };
        // With an age limit, time alone can make a basis stale.
        if top || is_first_data || was_stale != listing.is_marked(basis) || after.is_some() {
            let basis_was = listing.basis;
            change.best_changed = choose(listing, now, &self.options);
            let stale = was_stale != listing.is_marked(basis);
            if change.best_changed || stale || basis_was != listing.basis || after.is_some() {
                let group = listing.instrument_index as usize;
                change.consolidated_changed = !listing.consolidated
                    && self.groups[group].renew_best(&self.listings, now, &self.options);
            }
        }
        self.changes.push(change);
    }

    fn set_stale(&mut self, listing: ListingId, basis: Basis, stale: bool) {
        let now = self.now;
        let listing = &mut self.listings[listing.0 as usize];
        if stale {
            listing.mark_stale(basis);
        } else {
            listing.end_marks(basis);
            self.loss_table.clear_count += 1;
        }
        choose(listing, now, &self.options);
        let group = listing.instrument_index as usize;
        self.groups[group].renew_best(&self.listings, now, &self.options);
    }
}

crate::state::state!(BookCounters {
    events,
    unnamed_events,
    no_room,
    unknown_phase,
    bookless,
    lost,
    repeats,
    refused
});
crate::state::state!(BookOptions {
    orders_max,
    orders_per_book_max,
    levels_max,
    listings_max,
    basis_order,
    stale_after_ns,
});

impl Books {
    /// Puts the books into bytes, options included.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.options.encode(out);
        self.store.encode(out);
        self.listings.encode(out);
        self.groups.encode(out);
        self.latest_status.encode(out);
        self.wide_count.encode(out);
        self.loss_table.encode(out);
        self.executions.encode(out);
        self.all_venues.encode(out);
        self.now.encode(out);
        (self.ts, self.source).encode(out);
        self.counters.encode(out);
    }

    /// Reads books with these options. Returns `None` if the books had other options or if their parts disagree.
    pub(crate) fn decode(options: BookOptions, input: &mut &[u8]) -> Option<Self> {
        let mut this = Self::new(options);
        let (mut expected_bytes, mut found_bytes) = (Vec::new(), Vec::new());
        this.options.encode(&mut expected_bytes);
        BookOptions::decode(input)?.encode(&mut found_bytes);
        if expected_bytes != found_bytes {
            return None;
        }
        this.store = OrderStore::decode(this.options.orders_max, input)?;
        (this.listings, this.groups) = (State::decode(input)?, State::decode(input)?);
        (this.latest_status, this.wide_count) = (State::decode(input)?, State::decode(input)?);
        (this.loss_table, this.executions) = (State::decode(input)?, State::decode(input)?);
        (this.all_venues, this.now) = (State::decode(input)?, State::decode(input)?);
        ((this.ts, this.source), this.counters) = (State::decode(input)?, State::decode(input)?);
        let keys = this.listings.iter().map(|l| ListingKey { venue: l.venue, instrument: l.instrument });
        this.listing_index = keys.zip(0..).collect();
        this.group_index = this.groups.iter().map(|group| group.instrument).zip(0..).collect();
        this.is_consistent().then_some(this)
    }
}
