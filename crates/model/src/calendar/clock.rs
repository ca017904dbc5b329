//! Dates for one call an event: the answer of the last call is kept with the span in which it holds.

use super::{Calendar, CurrencyPair, MarketSession, PairDates, SessionDate, SessionRoll};
use crate::UnixNanos;
use std::sync::Arc;

/// The session dates of one venue.
///
/// ```
/// use std::sync::Arc;
/// use unitape_model::{Calendar, SessionClock, UnixNanos};
///
/// let mut clock = SessionClock::new(Arc::new(Calendar::default()), "XLON");
/// assert_eq!(clock.session_date(UnixNanos(1_772_492_400_000_000_000)).to_string(), "2026-03-02");
/// ```
#[derive(Clone, Debug)]
pub struct SessionClock {
    calendar: Arc<Calendar>,
    roll: SessionRoll,
    last: MarketSession,
}

/// The trade and spot dates of one currency pair.
#[derive(Clone, Debug)]
pub struct PairClock {
    calendar: Arc<Calendar>,
    pair: CurrencyPair,
    last: PairDates,
}

impl SessionClock {
    /// Makes the clock of a venue.
    pub fn new(calendar: Arc<Calendar>, venue: &str) -> Self {
        let roll = calendar.venue_roll(venue);
        let last = calendar.session_by_roll(roll, UnixNanos(0));
        Self { calendar, roll, last }
    }

    /// Returns the session date at the time `ts`.
    #[inline]
    pub fn session_date(&mut self, ts: UnixNanos) -> SessionDate {
        self.session(ts).date
    }

    /// Returns the session at the time `ts`.
    #[inline]
    pub fn session(&mut self, ts: UnixNanos) -> MarketSession {
        if !self.last.contains(ts) {
            self.last = self.calendar.session_by_roll(self.roll, ts);
        }
        self.last
    }
}

impl PairClock {
    /// Makes the clock of a currency pair.
    pub fn new(calendar: Arc<Calendar>, pair: CurrencyPair) -> Self {
        let last = calendar.pair_dates(pair, UnixNanos(0));
        Self { calendar, pair, last }
    }

    /// Returns the dates of the pair at the time `ts`.
    #[inline]
    pub fn dates(&mut self, ts: UnixNanos) -> PairDates {
        if !(self.last.begin <= ts && ts < self.last.end) {
            self.last = self.calendar.pair_dates(self.pair, ts);
        }
        self.last
    }
}
