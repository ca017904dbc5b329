//! The best price of an instrument over its venues.

use crate::books::Options;
use crate::listing::{Listing, Touch, marks_of};
use crate::qty;
use crate::value::{Basis, Level, Marks};
use unitape_model::{InstrumentId, UnixNanos};

/// The best price of an instrument over its venues.
///
/// Only venues in continuous trading take part, and none that is stale; [`Consolidated::marks`] has
/// [`Marks::STALE`] when one was left out for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consolidated {
    /// Best bid over the venues.
    pub bid: Option<BestSide>,
    /// Best offer over the venues.
    pub ask: Option<BestSide>,
    /// Crossed, locked, stale.
    pub marks: Marks,
    /// Event time of the last event that touched a venue that took part.
    pub ts: UnixNanos,
}

/// One side of a consolidated price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestSide {
    /// The price, and the quantity at it over all venues that have it.
    pub level: Level,
    /// Id of the first venue that has it, in the order in which the venues were met.
    pub venue: u16,
    /// How many venues have it.
    pub venues: u32,
}

/// As it is compared and kept; a venue of 0 for an empty side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub touch: Touch,
    pub venue: u16,
    pub venues: u32,
}

impl Best {
    pub const EMPTY: Best = Best { touch: Touch::EMPTY, venue: 0, venues: 0 };

    fn same(&self, other: &Best) -> bool {
        self.touch.same(&other.touch) && self.venue == other.venue && self.venues == other.venues
    }

    fn side(&self) -> Option<BestSide> {
        Some(BestSide { level: self.touch.level(None)?, venue: self.venue, venues: self.venues })
    }
}

/// An instrument with its venues.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub instrument: InstrumentId,
    /// In the order in which they were met.
    pub listings: Vec<u32>,
    pub best: [Best; 2],
    pub marks: Marks,
}

impl Group {
    pub fn new(instrument: InstrumentId) -> Self {
        Self { instrument, listings: Vec::new(), best: [Best::EMPTY; 2], marks: Marks::default() }
    }

    /// Finds the best price anew; whether it is another one.
    pub fn renew(&mut self, all: &[Listing], now: i64, options: &Options) -> bool {
        let (best, marks) = self.find(all, now, options);
        let same = marks == self.marks && best[0].same(&self.best[0]) && best[1].same(&self.best[1]);
        (self.best, self.marks) = (best, marks);
        !same
    }

    /// The best price as users see it.
    pub fn consolidated(&self, all: &[Listing], now: i64, options: &Options) -> Consolidated {
        let (best, marks) = self.find(all, now, options);
        let last = |l: &Listing| basis_of(l, now, options).map_or(0, |b| l.ts[b as usize]);
        let ts = self.listings.iter().map(|at| &all[*at as usize]).filter(|l| l.is_continuous()).map(last);
        Consolidated {
            bid: best[0].side(),
            ask: best[1].side(),
            marks,
            ts: UnixNanos(ts.max().unwrap_or_default()),
        }
    }

    fn find(&self, all: &[Listing], now: i64, options: &Options) -> ([Best; 2], Marks) {
        let (mut best, mut marks) = ([Best::EMPTY; 2], Marks::default());
        for listing in self.listings.iter().map(|at| &all[*at as usize]) {
            if !listing.is_continuous() {
                continue;
            }
            let Some(basis) = basis_of(listing, now, options) else { continue };
            if listing.is_stale(basis, now, options.stale_after_ns) {
                marks = marks.with(Marks::STALE);
                continue;
            }
            let [bid, ask] = &listing.tops[basis as usize];
            join(&mut best[0], bid, listing.venue, |mine, best| mine > best);
            join(&mut best[1], ask, listing.venue, |mine, best| mine < best);
        }
        let crossed = marks_of(&[best[0].touch, best[1].touch]);
        (best, marks.with(crossed))
    }
}

/// The basis of a listing now. Without an age it is the one that its last event chose.
#[inline]
fn basis_of(listing: &Listing, now: i64, options: &Options) -> Option<Basis> {
    match options.stale_after_ns {
        None => listing.basis,
        after => listing.choose(&options.prefer, now, after),
    }
}

/// Sets the venue's price against the best so far.
#[inline]
fn join(best: &mut Best, mine: &Touch, venue: u16, better: impl Fn(i64, i64) -> bool) {
    if mine.is_empty() {
        return;
    }
    if best.touch.is_empty() || better(mine.px, best.touch.px) {
        *best = Best { touch: *mine, venue, venues: 1 };
    } else if mine.px == best.touch.px {
        // A sum that does not fit is no quantity that anybody has; it is told as unknown.
        best.touch.qty = qty::add(best.touch.qty, mine.qty).unwrap_or((0, 0));
        best.venues += 1;
    }
}

/// The basis of a listing is chosen anew: whether its best prices are others.
#[inline]
pub(crate) fn choose(listing: &mut Listing, now: i64, options: &Options) -> bool {
    listing.basis = listing.choose(&options.prefer, now, options.stale_after_ns);
    let best = listing.basis.map_or(crate::listing::EMPTY, |b| listing.tops[b as usize]);
    let other = !crate::listing::same(&best, &listing.best);
    if other {
        let crosses = |top| marks_of(top) != Marks::default();
        let newly = crosses(&best) && !crosses(&listing.best) && listing.is_continuous();
        listing.crossings += u64::from(newly);
        listing.best = best;
    }
    other
}
