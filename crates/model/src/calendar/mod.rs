//! Calendars: the session dates of venues, and the trade and spot dates of currency pairs.
//!
//! ```text
//!  what,key,date,time,zone,value                  │ a session of XCME begins at 17:00 in Chicago, on the eve
//!  venue,XCME,,17:00,America/Chicago,             │
//!                                                 │  Sun 17:00        Mon 17:00        Tue 17:00
//!  holiday,XLON,2026-12-25,,,                     │ ─────┼─── Monday ────┼─── Tuesday ────┼── Wednesday ─▶
//!  half,XLON,2026-12-24,12:30,,                   │
//!  pair,EURUSD,,17:00,America/New_York,2          │ trade date: the same, Saturday and Sunday are Monday
//! ```
//!
//! A session begins when the clock of its zone first shows the roll time. A roll time after noon begins the session of the
//! next date, one at or before noon that of its own date. Hence session dates never go back, even when clocks do.
//!
//! ```
//! use unitape_model::{Calendar, CurrencyPair, UnixNanos};
//!
//! let text = "what,key,date,time,zone,value\nvenue,XCME,,17:00,America/Chicago,\nholiday,EUR,2026-03-04,,,\n";
//! let calendar = Calendar::parse(text)?;
//! let ts = UnixNanos(1_772_492_400_000_000_000); // Monday 2026-03-02 23:00 UTC, 17:00 in Chicago
//! assert_eq!(calendar.session_date("XCME", ts).to_string(), "2026-03-03");
//! assert_eq!(calendar.session_date("XLON", ts).to_string(), "2026-03-02", "UTC where there is no line");
//! let pair = CurrencyPair::parse("EURUSD").unwrap();
//! assert_eq!(calendar.spot_date(pair, ts).to_string(), "2026-03-05", "the second good day after the 2nd");
//! # Ok::<(), unitape_model::CalendarError>(())
//! ```
//!
//! It reads no file, and has no list of holidays of its own. Holidays move no session date.

mod clock;
mod date;
mod error;
mod moment;
mod parse;
mod zone;

pub use clock::{PairClock, SessionClock};
pub use date::{CivilDate, ClockTime, DateParseError, civil_from_days, days_from_civil, days_of_month};
pub use error::{CalendarError, CalendarFault};
pub use moment::{TimeParseError, UtcMoment};

use crate::UnixNanos;
use date::DAY_SECONDS;
use std::collections::BTreeMap;
use std::fmt;
pub use zone::LocalClock;
use zone::{OFFSET_MAX, ZoneTable};

/// The session dates, holidays and half days of venues, and the dates of currency pairs.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The first one is UTC.
    zone_tables: Vec<ZoneTable>,
    venues: BTreeMap<CalendarKey, SessionRoll>,
    pairs: BTreeMap<CurrencyPair, PairTerms>,
    days: BTreeMap<DayKey, DayMark>,
}

/// The date of a market session: that of its main trading hours, not of its first second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionDate(pub CivilDate);

/// A market session: its date and its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketSession {
    /// The session's date.
    pub date: SessionDate,
    /// The first nanosecond of the session.
    pub begin: UnixNanos,
    /// The first nanosecond of the next session; [`UnixNanos::MAX`] if there is no next session.
    pub end: UnixNanos,
}

/// The trade date and spot date of a currency pair, and the span in which they are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairDates {
    /// The date to which a trade belongs.
    pub trade_date: CivilDate,
    /// The date on which a spot trade settles.
    pub spot_date: CivilDate,
    /// The first nanosecond.
    pub begin: UnixNanos,
    /// The nanosecond of the next roll; [`UnixNanos::MAX`] if there is no next roll.
    pub end: UnixNanos,
}

/// The kind of day that a date is for a venue or a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DayKind {
    /// A weekday on which nothing is closed.
    Open,
    /// A day that ends early.
    Half,
    /// Closed, by the calendar.
    Holiday,
    /// A Saturday or Sunday that the calendar does not have.
    Weekend,
}

/// Two currencies. `EURUSD`, `EUR/USD` and `USDEUR` have the same dates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CurrencyPair {
    /// In the order of the alphabet.
    first_currency: CalendarKey,
    second_currency: CalendarKey,
}

/// A MIC, or a currency and a zero byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CalendarKey([u8; 4]);

/// The start of a session or a trade date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SessionRoll {
    /// An index of zones.
    zone_index: usize,
    /// Seconds from the midnight with which a date begins to the start of its session; negative on the eve.
    begin_offset: i64,
}

/// The roll and the lag of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairTerms {
    roll: SessionRoll,
    lag: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DayKey {
    key: CalendarKey,
    date: CivilDate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayMark {
    Holiday,
    Half(Option<ClockTime>),
}

/// The calendar without a line: dates of UTC, no holidays.
impl Default for Calendar {
    fn default() -> Self {
        let (venues, pairs, days) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { zone_tables: vec![ZoneTable::utc()], venues, pairs, days }
    }
}

impl Calendar {
    /// Reads the text of a calendar: `what,key,date,time,zone,value` and its lines.
    ///
    /// # Errors
    /// Fails at the first wrong line.
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        parse::parse(text)
    }

    /// Returns the session date of a venue at the time `ts`; the UTC date if the calendar has no line for the venue.
    pub fn session_date(&self, venue: &str, ts: UnixNanos) -> SessionDate {
        self.session(venue, ts).date
    }

    /// Returns the session of a venue at the time `ts`. Use a [`SessionClock`] to ask for each event.
    pub fn session(&self, venue: &str, ts: UnixNanos) -> MarketSession {
        self.session_by_roll(self.venue_roll(venue), ts)
    }

    /// Returns the IANA name of a venue's time zone; `UTC` if the calendar has no line for the venue.
    pub fn zone_name(&self, venue: &str) -> &str {
        self.zone_tables[self.venue_roll(venue).zone_index].name()
    }

    /// Returns the kind of day that a date is for a venue or a currency. A line of the calendar overrides the weekday.
    pub fn day_kind(&self, venue: &str, date: CivilDate) -> DayKind {
        match self.mark_of_date(CalendarKey::mic_or_currency(venue), date) {
            Some(DayMark::Holiday) => DayKind::Holiday,
            Some(DayMark::Half(_)) => DayKind::Half,
            None if date.is_weekend() => DayKind::Weekend,
            None => DayKind::Open,
        }
    }

    /// Returns the time in the venue's zone at which a half day ends, if the calendar has it.
    pub fn closes(&self, venue: &str, date: CivilDate) -> Option<ClockTime> {
        match self.mark_of_date(CalendarKey::mic_or_currency(venue), date) {
            Some(DayMark::Half(closes)) => closes,
            _ => None,
        }
    }

    /// Returns the trade date of a pair. From the roll on it is the next date; Saturdays and Sundays become Monday.
    pub fn trade_date(&self, pair: CurrencyPair, ts: UnixNanos) -> CivilDate {
        next_weekday(self.session_by_roll(self.pair_terms(pair).roll, ts).date.0)
    }

    /// Returns the settlement date of a spot trade at the time `ts`.
    pub fn spot_date(&self, pair: CurrencyPair, ts: UnixNanos) -> CivilDate {
        self.pair_dates(pair, ts).spot_date
    }

    /// Returns the dates of a pair at the time `ts`. Use a [`PairClock`] to ask for each event.
    pub fn pair_dates(&self, pair: CurrencyPair, ts: UnixNanos) -> PairDates {
        let terms = self.pair_terms(pair);
        let MarketSession { date, begin, end } = self.session_by_roll(terms.roll, ts);
        let trade_date = next_weekday(date.0);
        PairDates { trade_date, spot_date: self.count_spot(pair, trade_date, terms.lag), begin, end }
    }

    /// Counts `lag` days that are good for the pair. A holiday of USD alone counts, but no trade settles on it.
    fn count_spot(&self, pair: CurrencyPair, trade_date: CivilDate, lag: u8) -> CivilDate {
        let is_holiday = |key, date| self.mark_of_date(Some(key), date) == Some(DayMark::Holiday);
        let (mut date, mut missing) = (trade_date, lag);
        loop {
            let mut holidays =
                [pair.first_currency, pair.second_currency].into_iter().filter(|key| is_holiday(*key, date));
            let (counts, settles) = match (holidays.next(), holidays.next()) {
                (None, _) => (!date.is_weekend(), !date.is_weekend()),
                (Some(CalendarKey::USD), None) => (!date.is_weekend(), false),
                _ => (false, false),
            };
            if date > trade_date && counts {
                missing = missing.saturating_sub(1);
            }
            if missing == 0 && settles {
                return date;
            }
            date = date.following();
        }
    }

    fn mark_of_date(&self, key: Option<CalendarKey>, date: CivilDate) -> Option<DayMark> {
        self.days.get(&DayKey { key: key?, date }).copied()
    }

    fn venue_roll(&self, venue: &str) -> SessionRoll {
        CalendarKey::from_mic(venue)
            .and_then(|key| self.venues.get(&key))
            .copied()
            .unwrap_or(SessionRoll::UTC)
    }

    fn pair_terms(&self, pair: CurrencyPair) -> PairTerms {
        let default = || PairTerms { roll: SessionRoll::UTC, lag: pair.default_lag() };
        self.pairs.get(&pair).copied().unwrap_or_else(default)
    }

    /// Returns the session at the time `ts`: the last session that starts at or before it.
    fn session_by_roll(&self, roll: SessionRoll, ts: UnixNanos) -> MarketSession {
        let (zone, second) = (&self.zone_tables[roll.zone_index], ts.0.div_euclid(NANOS));
        let span = zone.span(second);
        let date = CivilDate::from_second(second + span.offset - roll.begin_offset);
        let local_begin = |date: CivilDate| i64::from(date.days()) * DAY_SECONDS + roll.begin_offset;
        let session = |date, begin: i64, end: i64| MarketSession {
            date: SessionDate(date),
            begin: UnixNanos(begin.saturating_mul(NANOS)),
            end: UnixNanos(end.saturating_mul(NANOS)),
        };
        // No earlier offset can have shown this session's hours, and its end comes before the next offset.
        let begin = local_begin(date) - span.offset;
        if begin - 3 * OFFSET_MAX >= span.start && begin + DAY_SECONDS < span.end_second {
            return session(date, begin, begin + DAY_SECONDS);
        }
        // A clock that was set back may have shown a later date already.
        let mut date = CivilDate::from_days(date.days() + 2);
        let mut session_end = zone.first_reach(local_begin(date.following()));
        loop {
            let begin = zone.first_reach(local_begin(date));
            if begin <= second {
                return session(date, begin, session_end);
            }
            (date, session_end) = (CivilDate::from_days(date.days() - 1), begin);
        }
    }
}

impl MarketSession {
    /// Returns whether the time `ts` is in the session.
    #[inline]
    pub fn contains(&self, ts: UnixNanos) -> bool {
        self.begin <= ts && ts < self.end
    }
}

impl DayKind {
    /// Returns the word: `open`, `half`, `holiday` or `weekend`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Half => "half",
            Self::Holiday => "holiday",
            Self::Weekend => "weekend",
        }
    }
}

impl fmt::Display for SessionDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl CurrencyPair {
    /// Reads `EURUSD` or `EUR/USD`.
    pub fn parse(text: &str) -> Option<Self> {
        let (a, b) = text.split_once('/').or_else(|| text.split_at_checked(3))?;
        let (a, b) = (CalendarKey::from_currency(a)?, CalendarKey::from_currency(b)?);
        (a != b).then(|| Self { first_currency: a.min(b), second_currency: a.max(b) })
    }

    /// Returns the settlement lag of a pair without a line in the calendar.
    const fn default_lag(self) -> u8 {
        match (&self.first_currency.0, &self.second_currency.0) {
            (b"CAD\0" | b"PHP\0" | b"RUB\0" | b"TRY\0", b"USD\0") => 1,
            _ => 2,
        }
    }
}

impl fmt::Debug for CurrencyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.first_currency, self.second_currency)
    }
}

impl CalendarKey {
    const USD: Self = Self(*b"USD\0");

    fn from_mic(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()).then_some(Self(bytes))
    }

    fn from_currency(text: &str) -> Option<Self> {
        let &[a, b, c] = text.as_bytes() else { return None };
        [a, b, c].iter().all(u8::is_ascii_uppercase).then_some(Self([a, b, c, 0]))
    }

    fn mic_or_currency(text: &str) -> Option<Self> {
        Self::from_mic(text).or_else(|| Self::from_currency(text))
    }
}

impl fmt::Debug for CalendarKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default().trim_end_matches('\0'))
    }
}

impl SessionRoll {
    /// Midnight of UTC.
    const UTC: Self = Self { zone_index: 0, begin_offset: 0 };

    fn new(zone: usize, time: ClockTime) -> Self {
        let second = i64::from(time.minutes()) * 60;
        let noon = DAY_SECONDS / 2;
        Self { zone_index: zone, begin_offset: if second > noon { second - DAY_SECONDS } else { second } }
    }
}

fn next_weekday(mut date: CivilDate) -> CivilDate {
    while date.is_weekend() {
        date = date.following();
    }
    date
}

const NANOS: i64 = 1_000_000_000;
