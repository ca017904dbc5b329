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
    /// Whether matching is halted.
    Halted(bool),
}

impl StatusEffect {
    fn from_event(event: &Event<'_>) -> Option<Self> {
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
    /// Defines the feed of a source and the policy for its events. [`crate::TapeBooks`] knows both from the tape.
    pub fn define_source(&mut self, source: u32, feed: &str, kind: SourceBookPolicy) {
        self.loss_table.define_source(source, feed, kind);
    }

    /// Marks the books that a loss of the feed may concern. `event` is of the feed's source, and its `reason` says what
    /// was lost. With an instrument, the loss concerns that instrument only, at `venue` if there is a venue. Without an
    /// instrument, it may concern every book of the feed.
    pub fn on_loss(
        &mut self,
        event: &Event<'_>,
        venue: Option<u16>,
        instrument: Option<InstrumentId>,
    ) -> &[BookChange] {
        self.changes.clear();
        let source = event.source();
        if self.loss_table.kind(source) != SourceBookPolicy::Plain {
            return &self.changes;
        }
        let feed = self.loss_table.feed(source);
        let offset = SourceOffset::from_event(event);
        let Some(instrument) = instrument else {
            self.counters.lost += 1;
            self.counters.refused += 1;
            if self.loss_table.lose(feed, false) {
                (0..self.listings.len() as u32)
                    .for_each(|listing_index| self.lose_books(listing_index, feed, offset, false));
            }
            return &self.changes;
        };
        let venue = venue.unwrap_or(0);
        self.loss_table.lose_named(feed, venue, instrument);
        let fault = match event.field(EventField::Reason, &mut [0; 36]) {
            Some(EventValue::Text(reason)) => BookFault::from_reason(reason),
            _ => BookFault::Refused,
        };
        let lose = |this: &mut Self, listing_index: u32| {
            this.listings[listing_index as usize].fault_counts.count(fault);
            this.lose_books(listing_index, feed, offset, false);
        };
        match (venue, self.listing_index.get(&ListingKey { venue, instrument })) {
            (0, _) => self.visit_listings(0, instrument, lose),
            (_, Some(&listing_index)) => lose(self, listing_index),
            // A book that begins later is stale.
            (_, None) => {}
        }
        &self.changes
    }

    /// Marks the books that a missing part of the tape may concern. The part may have had events of any book of the
    /// source's feed, or events without a source.
    pub fn on_missing_part(&mut self, source: u32) -> &[BookChange] {
        self.changes.clear();
        self.counters.lost += 1;
        let feeds = [self.loss_table.feed(source), self.loss_table.feed(0)];
        let is_new =
            [self.loss_table.lose_part(feeds[0]), source != 0 && self.loss_table.lose(feeds[1], false)];
        for (feed, _) in feeds.into_iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            (0..self.listings.len() as u32)
                .for_each(|listing_index| self.lose_books(listing_index, feed, ELSEWHERE, false));
        }
        &self.changes
    }

    /// Marks the books of all feeds that are defined now. The beginning of the tape or a damaged part of it is missing.
    pub fn on_missing_part_of_all(&mut self) -> &[BookChange] {
        self.changes.clear();
        self.counters.lost += 1;
        self.loss_table.lose_part_of_all();
        for listing_index in 0..self.listings.len() as u32 {
            let listing = &mut self.listings[listing_index as usize];
            for basis in Basis::ALL {
                if listing.has_data[basis as usize] {
                    listing.mark_lost(basis, ELSEWHERE);
                }
            }
            self.renew_best_prices(listing_index, false);
        }
        &self.changes
    }

    /// Returns whether a part of the tape is missing, so that books may be missing as well. The next day of a feed, or its
    /// recovery, ends that.
    pub fn lacks_part(&self) -> bool {
        self.loss_table.lacks_part()
    }

    /// Handles an order event that names no instrument or no order. It may concern every book of orders of its feed.
    #[cold]
    pub(crate) fn on_unnamed_order(&mut self, event: &Event<'_>) {
        self.counters.unnamed_events += 1;
        self.now = self.now.max(event.ts_event().0);
        let feed = self.loss_table.feed(event.source());
        if self.loss_table.lose(feed, true) {
            let offset = SourceOffset::from_event(event);
            (0..self.listings.len() as u32)
                .for_each(|listing_index| self.lose_books(listing_index, feed, offset, true));
        }
    }

    /// Marks the books of a listing that are built from a feed, because the feed has lost events.
    fn lose_books(&mut self, listing_index: u32, feed: u32, offset: SourceOffset, orders_only: bool) {
        let listing = &mut self.listings[listing_index as usize];
        let mut has_lost_books = false;
        for basis in Basis::ALL {
            let b = basis as usize;
            let is_concerned = !orders_only || basis == Basis::Orders;
            if is_concerned && listing.has_data[b] && self.loss_table.feed(listing.source_by_basis[b]) == feed
            {
                listing.mark_lost(basis, offset);
                has_lost_books = true;
            }
        }
        if has_lost_books {
            self.renew_best_prices(listing_index, false);
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
            if let Some((listing_index, false)) = self.begin_event(event) {
                self.enter_phase(listing_index, phase);
            }
            return;
        }
        let old_phase = self.latest_status.get(&key).map_or(SessionPhase::Unknown, |wide| wide.phase.1);
        let reopens = old_phase == SessionPhase::Close && phase != SessionPhase::Close;
        self.note_status(key, |wide, number| {
            wide.phase = (number, phase);
            if reopens {
                wide.stale = (number, false);
            }
        });
        if reopens && instrument == InstrumentId::NONE {
            self.loss_table.recover_feed(event.source());
        }
        self.visit_listings(venue, instrument, |books, listing_index| {
            books.enter_phase(listing_index, phase)
        });
    }

    /// Applies a status that concerns books of one listing or of many.
    pub(crate) fn on_status(&mut self, event: &Event<'_>) {
        let Some(word) = StatusEffect::from_event(event) else { return };
        self.counters.events += 1;
        self.now = self.now.max(event.ts_event().0);
        let (venue, instrument) = (event.venue(), event.instrument());
        let key = ListingKey { venue, instrument };
        if venue != 0 && instrument != InstrumentId::NONE && self.listing_index.contains_key(&key) {
            match self.begin_event(event) {
                Some((listing_index, true)) => self.reject_late_status(listing_index),
                Some((listing_index, false)) => {
                    self.apply_status(listing_index, word, SourceOffset::from_event(event))
                }
                None => {}
            }
            return;
        }
        self.note_status(key, |wide, number| match word {
            StatusEffect::Stale => wide.stale = (number, true),
            StatusEffect::Recovered | StatusEffect::Restarted => wide.stale = (number, false),
            StatusEffect::Halted(halted) => wide.halted = (number, halted),
        });
        if instrument == InstrumentId::NONE
            && matches!(word, StatusEffect::Recovered | StatusEffect::Restarted)
        {
            self.loss_table.recover_feed(event.source());
        }
        let offset = SourceOffset::from_event(event);
        self.visit_listings(venue, instrument, |books, listing_index| {
            books.apply_status(listing_index, word, offset)
        });
    }

    /// Applies a status to a listing.
    fn apply_status(&mut self, listing_index: u32, word: StatusEffect, offset: SourceOffset) {
        let (count, listing) = (self.loss_table.count, &mut self.listings[listing_index as usize]);
        match word {
            StatusEffect::Stale => Basis::ALL.into_iter().for_each(|basis| listing.mark_lost(basis, offset)),
            StatusEffect::Recovered | StatusEffect::Restarted => {
                if word == StatusEffect::Restarted {
                    listing.clear(&mut self.store);
                }
                (listing.loss_offsets, listing.cleared_loss) = ([None; 3], count);
                // A fault of levels or of a best price is cleared only if the venue publishes them again.
                listing.is_stale[Basis::Orders as usize] = false;
                self.loss_table.clear_count += 1;
            }
            StatusEffect::Halted(halted) => {
                listing.halted = halted;
                self.finish_matching(listing_index);
            }
        }
        self.renew_best_prices(listing_index, false);
    }

    /// Puts a listing into a phase. The phase after a close begins with empty books: the remaining orders have expired,
    /// even if the venue did not cancel them.
    fn enter_phase(&mut self, listing_index: u32, phase: SessionPhase) {
        let listing = &mut self.listings[listing_index as usize];
        let phase_before = std::mem::replace(&mut listing.session_phase, phase);
        let has_changed = phase_before != phase;
        if phase != SessionPhase::Halt {
            listing.halted = false;
        }
        if phase_before == SessionPhase::Close && has_changed {
            listing.clear(&mut self.store);
            listing.cleared_loss = self.loss_table.count;
            self.loss_table.clear_count += 1;
        } else {
            // The matching of an order ends here.
            self.finish_matching(listing_index);
        }
        self.renew_best_prices(listing_index, has_changed);
    }

    fn finish_matching(&mut self, listing_index: u32) {
        let context = OrderBookContext {
            listing: listing_index,
            is_continuous: false,
            is_snapshot: false,
            orders_max: self.options.orders_per_book_max,
            levels_max: self.options.levels_max,
        };
        let listing = &mut self.listings[listing_index as usize];
        if let Err(fault) = listing.orders.finish_matching(&mut self.store, &context) {
            listing.fault(Basis::Orders, fault);
        }
    }

    /// Finds the best prices of a listing and of its instrument again, and records the changes.
    fn renew_best_prices(&mut self, listing_index: u32, phase: bool) {
        let listing = &mut self.listings[listing_index as usize];
        for basis in Basis::ALL {
            listing.top_by_basis[basis as usize] = listing.top_of(&self.store, basis);
        }
        let best = choose(listing, self.now, &self.options);
        let group = listing.instrument_index as usize;
        let consolidated = self.groups[group].renew_best(&self.listings, self.now, &self.options);
        let listing = ListingId(listing_index);
        let change = BookChange {
            listing,
            basis: None,
            top_changed: false,
            best_changed: best,
            consolidated_changed: consolidated,
            phase_changed: phase,
            fault: None,
        };
        self.changes.push(change);
    }

    /// Does something to each listing of this venue and instrument, 0 for all of them.
    fn visit_listings(
        &mut self,
        venue: u16,
        instrument: InstrumentId,
        mut visit: impl FnMut(&mut Self, u32),
    ) {
        for listing_index in 0..self.listings.len() as u32 {
            let listing = &self.listings[listing_index as usize];
            let of_venue = venue == 0 || venue == listing.venue;
            if of_venue && (instrument == InstrumentId::NONE || instrument == listing.instrument) {
                visit(self, listing_index);
            }
        }
    }

    /// Records a status for later listings.
    fn note_status(&mut self, key: ListingKey, set: impl FnOnce(&mut LatestTradingStatus, u64)) {
        if self.latest_status.len() < self.options.listings_max as usize
            || self.latest_status.contains_key(&key)
        {
            self.wide_count += 1;
            set(self.latest_status.entry(key).or_default(), self.wide_count);
        } else {
            self.counters.no_room += 1;
        }
    }

    /// Returns the status of a listing from events before the listing existed.
    pub(crate) fn initial_status(&self, venue: u16, instrument: InstrumentId) -> LatestTradingStatus {
        let mut latest_status = LatestTradingStatus::default();
        for (venue, instrument) in
            [(0, InstrumentId::NONE), (venue, InstrumentId::NONE), (0, instrument), (venue, instrument)]
        {
            let Some(status) = self.latest_status.get(&ListingKey { venue, instrument }) else { continue };
            if status.phase.0 > latest_status.phase.0 {
                latest_status.phase = status.phase;
            }
            if status.halted.0 > latest_status.halted.0 {
                latest_status.halted = status.halted;
            }
            if status.stale.0 > latest_status.stale.0 {
                latest_status.stale = status.stale;
            }
        }
        // A phase ends a halt, as it does for an existing listing.
        latest_status.halted.1 &=
            latest_status.phase.0 < latest_status.halted.0 || latest_status.phase.1 == SessionPhase::Halt;
        latest_status
    }
}

crate::state::state!(LatestTradingStatus { phase, halted, stale });
