//! The best price of an instrument over its venues.

use crate::books::BookOptions;
use crate::listing::{ListingBooks, TouchLevel, marks_of};
use crate::qty::{self, AggregateQuantity};
use crate::value::{Basis, PriceLevel, QuoteFlags};
use unitape_model::{InstrumentId, UnixNanos};

/// The best price of an instrument over its venues.
///
/// Only venues in continuous trading take part, and only if they are not stale. [`ConsolidatedBbo::marks`] has
/// [`QuoteFlags::STALE`] if a stale venue was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsolidatedBbo {
    /// Best bid over the venues.
    pub bid: Option<ConsolidatedSide>,
    /// Best offer over the venues.
    pub ask: Option<ConsolidatedSide>,
    /// Crossed, locked, stale.
    pub marks: QuoteFlags,
    /// Event time of the last event that touched a venue that took part.
    pub ts: UnixNanos,
}

/// One side of a consolidated price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsolidatedSide {
    /// The price, and the quantity at it over all venues that have it.
    pub level: PriceLevel,
    /// Id of the first venue that has it, in the order in which the venues were met.
    pub venue: u16,
    /// The number of venues that have it.
    pub venues: u32,
}

/// As it is compared and kept; a venue of 0 for an empty side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsolidatedTouch {
    pub touch: TouchLevel,
    pub venue: u16,
    pub venues: u32,
}

impl ConsolidatedTouch {
    pub const EMPTY: ConsolidatedTouch = ConsolidatedTouch { touch: TouchLevel::EMPTY, venue: 0, venues: 0 };

    fn is_same(&self, other: &ConsolidatedTouch) -> bool {
        self.touch.is_same(&other.touch) && self.venue == other.venue && self.venues == other.venues
    }

    fn side(&self) -> Option<ConsolidatedSide> {
        Some(ConsolidatedSide { level: self.touch.level(None)?, venue: self.venue, venues: self.venues })
    }
}

/// An instrument with its venues.
#[derive(Clone, Debug)]
pub(crate) struct ConsolidatedInstrument {
    pub instrument: InstrumentId,
    /// In the order in which they were met.
    pub listings: Vec<u32>,
    pub best: [ConsolidatedTouch; 2],
    pub marks: QuoteFlags,
}

impl ConsolidatedInstrument {
    pub fn new(instrument: InstrumentId) -> Self {
        Self {
            instrument,
            listings: Vec::new(),
            best: [ConsolidatedTouch::EMPTY; 2],
            marks: QuoteFlags::default(),
        }
    }

    /// Finds the best price again and returns whether it changed.
    pub fn renew_best(&mut self, all: &[ListingBooks], now: i64, options: &BookOptions) -> bool {
        let (best, marks) = self.find(all, now, options);
        let is_unchanged =
            marks == self.marks && best[0].is_same(&self.best[0]) && best[1].is_same(&self.best[1]);
        (self.best, self.marks) = (best, marks);
        !is_unchanged
    }

    /// Finds the best price over the venues, with its flags and the time of the last event.
    pub fn consolidated(&self, all: &[ListingBooks], now: i64, options: &BookOptions) -> ConsolidatedBbo {
        let (best, marks) = self.find(all, now, options);
        let last_change = |l: &ListingBooks| basis_of(l, now, options).map_or(0, |b| l.ts[b as usize]);
        let ts = self
            .listings
            .iter()
            .map(|index| &all[*index as usize])
            .filter(|l| l.is_continuous())
            .map(last_change);
        ConsolidatedBbo {
            bid: best[0].side(),
            ask: best[1].side(),
            marks,
            ts: UnixNanos(ts.max().unwrap_or_default()),
        }
    }

    fn find(
        &self,
        all: &[ListingBooks],
        now: i64,
        options: &BookOptions,
    ) -> ([ConsolidatedTouch; 2], QuoteFlags) {
        let (mut best, mut marks) = ([ConsolidatedTouch::EMPTY; 2], QuoteFlags::default());
        for listing in self.listings.iter().map(|index| &all[*index as usize]) {
            if !listing.is_continuous() {
                continue;
            }
            let Some(basis) = basis_of(listing, now, options) else { continue };
            if listing.is_stale(basis, now, options.stale_after_ns) {
                marks = marks.union(QuoteFlags::STALE);
                continue;
            }
            let [bid, ask] = &listing.top_by_basis[basis as usize];
            join_touch(&mut best[0], bid, listing.venue, |mine, best| mine > best);
            join_touch(&mut best[1], ask, listing.venue, |mine, best| mine < best);
        }
        let crossed = marks_of(&[best[0].touch, best[1].touch]);
        (best, marks.union(crossed))
    }
}

/// Returns the current basis of a listing. Without an age limit, this is the basis that the last event chose.
#[inline]
fn basis_of(listing: &ListingBooks, now: i64, options: &BookOptions) -> Option<Basis> {
    match options.stale_after_ns {
        None => listing.basis,
        after => listing.choose(&options.basis_order, now, after),
    }
}

/// Sets the venue's price against the best so far.
#[inline]
fn join_touch(
    best: &mut ConsolidatedTouch,
    mine: &TouchLevel,
    venue: u16,
    better: impl Fn(i64, i64) -> bool,
) {
    if mine.is_empty() {
        return;
    }
    if best.touch.is_empty() || better(mine.px, best.touch.px) {
        *best = ConsolidatedTouch { touch: *mine, venue, venues: 1 };
    } else if mine.px == best.touch.px {
        // A sum that does not fit is no quantity that anybody has; it is reported as unknown.
        best.touch.qty = qty::add(best.touch.qty, mine.qty).unwrap_or(AggregateQuantity::ZERO);
        best.venues += 1;
    }
}

/// Chooses the basis of a listing again. Returns whether its best prices changed.
#[inline]
pub(crate) fn choose(listing: &mut ListingBooks, now: i64, options: &BookOptions) -> bool {
    listing.basis = listing.choose(&options.basis_order, now, options.stale_after_ns);
    let best = listing.basis.map_or(crate::listing::EMPTY, |b| listing.top_by_basis[b as usize]);
    let has_changed = !crate::listing::is_same_top(&best, &listing.best);
    if has_changed {
        let crosses = |top| marks_of(top) != QuoteFlags::default();
        let newly = crosses(&best) && !crosses(&listing.best) && listing.is_continuous();
        listing.crossings += u64::from(newly);
        listing.best = best;
    }
    has_changed
}

crate::state::state!(ConsolidatedTouch { touch, venue, venues });
crate::state::state!(ConsolidatedInstrument { instrument, listings, best, marks });
