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
    session_roll: SessionRoll,
    last_session: MarketSession,
}

/// The trade and spot dates of one currency pair.
#[derive(Clone, Debug)]
pub struct PairClock {
    calendar: Arc<Calendar>,
    pair: CurrencyPair,
    last_dates: PairDates,
}

impl SessionClock {
    /// Makes the clock of a venue.
    pub fn new(calendar: Arc<Calendar>, venue: &str) -> Self {
        let roll = calendar.venue_roll(venue);
        let last_session = calendar.session_by_roll(roll, UnixNanos(0));
        Self { calendar, session_roll: roll, last_session }
    }

    /// Returns the session date at the time `ts`.
    #[inline]
    pub fn session_date(&mut self, ts: UnixNanos) -> SessionDate {
        self.session(ts).date
    }

    /// Returns the session at the time `ts`.
    #[inline]
    pub fn session(&mut self, ts: UnixNanos) -> MarketSession {
        if !self.last_session.contains(ts) {
            self.last_session = self.calendar.session_by_roll(self.session_roll, ts);
        }
        self.last_session
    }
}

impl PairClock {
    /// Makes the clock of a currency pair.
    pub fn new(calendar: Arc<Calendar>, pair: CurrencyPair) -> Self {
        let last_dates = calendar.pair_dates(pair, UnixNanos(0));
        Self { calendar, pair, last_dates }
    }

    /// Returns the dates of the pair at the time `ts`.
    #[inline]
    pub fn dates(&mut self, ts: UnixNanos) -> PairDates {
        if !(self.last_dates.begin <= ts && ts < self.last_dates.end) {
            self.last_dates = self.calendar.pair_dates(self.pair, ts);
        }
        self.last_dates
    }
}
