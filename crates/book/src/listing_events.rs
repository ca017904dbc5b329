//! Events that concern whole listings, or many of them: phases, statuses, losses.

use crate::books::{BookChange, Books, ListingId};
use crate::consolidated::choose;
use crate::fault::BookFault;
use crate::listing::{ListingKey, SourceOffset};
use crate::losses::SourceBookPolicy;
use crate::mbo::OrderBookContext;
use crate::value::{Basis, SessionPhase};
use unitape_model::{Event, EventField, EventValue, InstrumentId};

/// The last status of listings, each value with the number of its event; 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LatestTradingStatus {
    pub phase: (u64, SessionPhase),
    pub halted: (u64, bool),
    pub stale: (u64, bool),
}

/// The place of a loss that is the place of no event.
pub(crate) const ELSEWHERE: SourceOffset = SourceOffset { source: u32::MAX, offset: u32::MAX };

/// The effect of a status on books; all other states have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusEffect {
    /// Something of the feed is missing.
    Stale,
    /// Nothing is missing any more.
    Recovered,
    /// The feed begins again, with empty books.
    Restarted,
    /// Whether nothing is matched.
    Halted(bool),
}

impl StatusEffect {
    fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event.field(EventField::State, &mut [0; 36]) {
            Some(EventValue::Text("stale")) => Self::Stale,
            Some(EventValue::Text("recovered")) => Self::Recovered,
            Some(EventValue::Text("restarted")) => Self::Restarted,
            Some(EventValue::Text("halted" | "paused" | "opening_delay" | "no_open" | "closed")) => {
                Self::Halted(true)
            }
            Some(EventValue::Text("trading" | "resumed")) => Self::Halted(false),
            _ => return None,
        })
    }
}

impl Books {
    /// Says of which feed a source is, and what its events are to books. [`crate::TapeBooks`] knows it from the tape.
    pub fn define_source(&mut self, source: u32, feed: &str, kind: SourceBookPolicy) {
        self.losses.define(source, feed, kind);
    }

    /// A feed has lost something: `event` is of its source and says why in `reason`. With an instrument it concerns that
    /// one, at `venue` if there is one; without it may concern every book of the feed.
    pub fn on_loss(
        &mut self,
        event: &Event<'_>,
        venue: Option<u16>,
        instrument: Option<InstrumentId>,
    ) -> &[BookChange] {
        self.changes.clear();
        let source = event.source();
        if self.losses.kind(source) != SourceBookPolicy::Plain {
            return &self.changes;
        }
        let feed = self.losses.feed(source);
        let place = SourceOffset::from_event(event);
        let Some(instrument) = instrument else {
            self.counters.lost += 1;
            self.counters.refused += 1;
            if self.losses.lose(feed, false) {
                (0..self.listings.len() as u32).for_each(|at| self.lose(at, feed, place, false));
            }
            return &self.changes;
        };
        let venue = venue.unwrap_or(0);
        self.losses.lose_named(feed, venue, instrument);
        let fault = match event.field(EventField::Reason, &mut [0; 36]) {
            Some(EventValue::Text(reason)) => BookFault::from_reason(reason),
            _ => BookFault::Refused,
        };
        let lose = |this: &mut Self, at: u32| {
            this.listings[at as usize].faults.count(fault);
            this.lose(at, feed, place, false);
        };
        match (venue, self.index.get(&ListingKey { venue, instrument })) {
            (0, _) => self.each(0, instrument, lose),
            (_, Some(&at)) => lose(self, at),
            // A book that begins later is stale.
            (_, None) => {}
        }
        &self.changes
    }

    /// A part of the tape is missing that may have had events of any book of the feed of this source, or of no source.
    pub fn on_missing_part(&mut self, source: u32) -> &[BookChange] {
        self.changes.clear();
        self.counters.lost += 1;
        let feeds = [self.losses.feed(source), self.losses.feed(0)];
        let is_new = [self.losses.lose_part(feeds[0]), source != 0 && self.losses.lose(feeds[1], false)];
        for (feed, _) in feeds.into_iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            (0..self.listings.len() as u32).for_each(|at| self.lose(at, feed, ELSEWHERE, false));
        }
        &self.changes
    }

    /// A part of the tape is missing, its beginning or a damaged part: all feeds that are defined now have lost something.
    pub fn on_missing_part_of_all(&mut self) -> &[BookChange] {
        self.changes.clear();
        self.counters.lost += 1;
        self.losses.lose_part_of_all();
        for at in 0..self.listings.len() as u32 {
            let listing = &mut self.listings[at as usize];
            for basis in Basis::ALL {
                if listing.has_data[basis as usize] {
                    listing.mark_lost(basis, ELSEWHERE);
                }
            }
            self.renew(at, false);
        }
        &self.changes
    }

    /// Returns whether a part of the tape is missing, so that books may be missing as well. The next day of a feed, or its
    /// recovery, ends that.
    pub fn lacks_part(&self) -> bool {
        self.losses.lacks_part()
    }

    /// An event of an order that names no instrument, or no order: it may concern every book of orders of its feed.
    #[cold]
    pub(crate) fn on_unnamed_order(&mut self, event: &Event<'_>) {
        self.counters.unnamed += 1;
        self.now = self.now.max(event.ts_event().0);
        let feed = self.losses.feed(event.source());
        if self.losses.lose(feed, true) {
            let place = SourceOffset::from_event(event);
            (0..self.listings.len() as u32).for_each(|at| self.lose(at, feed, place, true));
        }
    }

    /// The books of a listing that are made of a feed have lost something.
    fn lose(&mut self, at: u32, feed: u32, place: SourceOffset, orders_only: bool) {
        let listing = &mut self.listings[at as usize];
        let mut any = false;
        for basis in Basis::ALL {
            let b = basis as usize;
            let wanted = !orders_only || basis == Basis::Orders;
            if wanted && listing.has_data[b] && self.losses.feed(listing.sources[b]) == feed {
                listing.mark_lost(basis, place);
                any = true;
            }
        }
        if any {
            self.renew(at, false);
        }
    }

    pub(crate) fn on_session(&mut self, event: &Event<'_>) {
        self.counters.events += 1;
        self.now = self.now.max(event.ts_event().0);
        let phase = match event.field(EventField::Phase, &mut [0; 36]) {
            Some(EventValue::Text(name)) => SessionPhase::from_name(name),
            _ => None,
        };
        let Some(phase) = phase else {
            self.counters.unknown_phase += 1;
            return;
        };
        let (venue, instrument) = (event.venue(), event.instrument());
        let key = ListingKey { venue, instrument };
        if venue != 0 && instrument != InstrumentId::NONE {
            if let Some((at, false)) = self.begin(event) {
                self.enter(at, phase);
            }
            return;
        }
        let before = self.wide.get(&key).map_or(SessionPhase::Unknown, |wide| wide.phase.1);
        let reopens = before == SessionPhase::Close && phase != SessionPhase::Close;
        self.note(key, |wide, number| {
            wide.phase = (number, phase);
            if reopens {
                wide.stale = (number, false);
            }
        });
        if reopens && instrument == InstrumentId::NONE {
            self.losses.recover(event.source());
        }
        self.each(venue, instrument, |books, at| books.enter(at, phase));
    }

    /// A status that means something to books, of one listing or of many.
    pub(crate) fn on_status(&mut self, event: &Event<'_>) {
        let Some(word) = StatusEffect::of(event) else { return };
        self.counters.events += 1;
        self.now = self.now.max(event.ts_event().0);
        let (venue, instrument) = (event.venue(), event.instrument());
        let key = ListingKey { venue, instrument };
        if venue != 0 && instrument != InstrumentId::NONE && self.index.contains_key(&key) {
            match self.begin(event) {
                Some((at, true)) => self.finish_late(at),
                Some((at, false)) => self.apply(at, word, SourceOffset::from_event(event)),
                None => {}
            }
            return;
        }
        self.note(key, |wide, number| match word {
            StatusEffect::Stale => wide.stale = (number, true),
            StatusEffect::Recovered | StatusEffect::Restarted => wide.stale = (number, false),
            StatusEffect::Halted(halted) => wide.halted = (number, halted),
        });
        if instrument == InstrumentId::NONE
            && matches!(word, StatusEffect::Recovered | StatusEffect::Restarted)
        {
            self.losses.recover(event.source());
        }
        let place = SourceOffset::from_event(event);
        self.each(venue, instrument, |books, at| books.apply(at, word, place));
    }

    /// Does what a status says to a listing.
    fn apply(&mut self, at: u32, word: StatusEffect, place: SourceOffset) {
        let (count, listing) = (self.losses.count, &mut self.listings[at as usize]);
        match word {
            StatusEffect::Stale => Basis::ALL.into_iter().for_each(|basis| listing.mark_lost(basis, place)),
            StatusEffect::Recovered | StatusEffect::Restarted => {
                if word == StatusEffect::Restarted {
                    listing.clear(&mut self.store);
                }
                (listing.lost, listing.cleared) = ([None; 3], count);
                // A fault of levels or a best price is cleared only where they are published again.
                listing.stale[Basis::Orders as usize] = false;
                self.losses.cleared += 1;
            }
            StatusEffect::Halted(halted) => {
                listing.halted = halted;
                self.finish_matching(at);
            }
        }
        self.renew(at, false);
    }

    /// A listing enters a phase. The phase after a close begins with empty books: the orders left then have expired,
    /// if the venue did not cancel them by itself.
    fn enter(&mut self, at: u32, phase: SessionPhase) {
        let listing = &mut self.listings[at as usize];
        let was = std::mem::replace(&mut listing.phase, phase);
        let changed = was != phase;
        if phase != SessionPhase::Halt {
            listing.halted = false;
        }
        if was == SessionPhase::Close && changed {
            listing.clear(&mut self.store);
            listing.cleared = self.losses.count;
            self.losses.cleared += 1;
        } else {
            // The matching of an order ends here.
            self.finish_matching(at);
        }
        self.renew(at, changed);
    }

    fn finish_matching(&mut self, at: u32) {
        let around = OrderBookContext {
            listing: at,
            continuous: false,
            snapshot: false,
            orders_max: self.options.orders_per_book_max,
            levels_max: self.options.levels_max,
        };
        let listing = &mut self.listings[at as usize];
        if let Err(fault) = listing.orders.finish_matching(&mut self.store, &around) {
            listing.fault(Basis::Orders, fault);
        }
    }

    /// Finds the best prices of a listing and of its instrument again, and notes what changed.
    fn renew(&mut self, at: u32, phase: bool) {
        let listing = &mut self.listings[at as usize];
        for basis in Basis::ALL {
            listing.tops[basis as usize] = listing.top_of(&self.store, basis);
        }
        let best = choose(listing, self.now, &self.options);
        let group = listing.group as usize;
        let consolidated = self.groups[group].renew(&self.listings, self.now, &self.options);
        let listing = ListingId(at);
        let change = BookChange { listing, basis: None, top: false, best, consolidated, phase, fault: None };
        self.changes.push(change);
    }

    /// Does something to each listing of this venue and instrument, 0 for all of them.
    fn each(&mut self, venue: u16, instrument: InstrumentId, mut what: impl FnMut(&mut Self, u32)) {
        for at in 0..self.listings.len() as u32 {
            let listing = &self.listings[at as usize];
            let of_venue = venue == 0 || venue == listing.venue;
            if of_venue && (instrument == InstrumentId::NONE || instrument == listing.instrument) {
                what(self, at);
            }
        }
    }

    /// Notes for listings to come what was said of them.
    fn note(&mut self, of: ListingKey, set: impl FnOnce(&mut LatestTradingStatus, u64)) {
        if self.wide.len() < self.options.listings_max as usize || self.wide.contains_key(&of) {
            self.wide_count += 1;
            set(self.wide.entry(of).or_default(), self.wide_count);
        } else {
            self.counters.no_room += 1;
        }
    }

    /// The status of a listing from events before it existed.
    pub(crate) fn initial_status(&self, venue: u16, instrument: InstrumentId) -> LatestTradingStatus {
        let mut last = LatestTradingStatus::default();
        for (venue, instrument) in
            [(0, InstrumentId::NONE), (venue, InstrumentId::NONE), (0, instrument), (venue, instrument)]
        {
            let Some(said) = self.wide.get(&ListingKey { venue, instrument }) else { continue };
            if said.phase.0 > last.phase.0 {
                last.phase = said.phase;
            }
            if said.halted.0 > last.halted.0 {
                last.halted = said.halted;
            }
            if said.stale.0 > last.stale.0 {
                last.stale = said.stale;
            }
        }
        // A phase ends a halt, as it does for a listing that is there.
        last.halted.1 &= last.phase.0 < last.halted.0 || last.phase.1 == SessionPhase::Halt;
        last
    }
}

crate::state::state!(LatestTradingStatus { phase, halted, stale });
