//! Currency pairs as best prices see them: which way round, what a pip is, which date is spot.

use std::sync::Arc;

use unitape_model::{Calendar, CivilDate, CurrencyPair, DayKind, UnixNanos};

/// A currency pair in its usual orientation, and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrientedPair {
    /// As it is printed: `EUR/USD`.
    pub name: String,
    /// Whether the event has it the other way: `USD/EUR`.
    pub inverted: bool,
}

impl OrientedPair {
    /// Parses a pair (rule 12): accepts the forms `EURUSD` and `EUR/USD` only.
    #[must_use]
    pub fn parse(instr: &str) -> Option<Self> {
        let (a, b) = match instr.split_once('/') {
            Some(halves) => halves,
            None if instr.len() == 6 => instr.split_at_checked(3)?,
            None => return None,
        };
        let is_currency = |text: &str| text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
        if !is_currency(a) || !is_currency(b) || a == b {
            return None;
        }
        let inverted = currency_rank(b) < currency_rank(a);
        let (first, second) = if inverted { (b, a) } else { (a, b) };
        Some(Self { name: format!("{first}/{second}"), inverted })
    }
}

/// Returns the rank of a currency (rule 12): the lower rank comes first. Currencies without a rank of their own are
/// ordered bytewise, JPY last.
fn currency_rank(currency: &str) -> (usize, &str) {
    const FIRST: [&str; 11] = ["XAU", "XAG", "XPT", "XPD", "EUR", "GBP", "AUD", "NZD", "USD", "CAD", "CHF"];
    let other_rank = FIRST.len();
    match FIRST.iter().position(|c| *c == currency) {
        Some(rank) => (rank, ""),
        None if currency == "JPY" => (other_rank + 1, ""),
        None => (other_rank, currency),
    }
}

/// Returns a pip in units of 1e-9 for a pair in its usual orientation (rule 17).
pub(super) fn pip_nanos(pair: &str) -> i64 {
    let metal = ["XAU", "XAG", "XPT", "XPD"].iter().any(|metal| pair.starts_with(metal));
    if metal || pair.ends_with("JPY") { 10_000_000 } else { 100_000 }
}

/// The value dates of quotes, by a calendar or without one.
#[derive(Debug, Clone, Default)]
pub struct ValueDates {
    /// Rolls, lags and holidays.
    pub calendar: Option<Arc<Calendar>>,
}

impl ValueDates {
    /// Returns the spot date of a quote at the time `ts` (rule 11).
    #[must_use]
    pub fn spot(&self, pair: &str, ts: i64) -> CivilDate {
        if let Some(calendar) = &self.calendar {
            let currencies = CurrencyPair::parse(pair).expect("a pair that was parsed");
            return calendar.spot_date(currencies, UnixNanos(ts));
        }
        let next_day = ["USD/CAD", "USD/TRY", "USD/PHP", "USD/RUB"].contains(&pair);
        let mut weekdays = if next_day { 1 } else { 2 };
        let mut date = CivilDate::from_utc(UnixNanos(ts));
        while weekdays > 0 {
            date = date.following();
            weekdays -= i32::from(!date.is_weekend());
        }
        date
    }

    /// Returns whether a value date is accepted. Rule 11 refuses weekends, holidays of either currency and dates before
    /// the UTC date of `ts`.
    #[must_use]
    pub fn accepts(&self, pair: &str, date: CivilDate, ts: i64) -> bool {
        let is_holiday = |currency: &str| {
            self.calendar.as_ref().is_some_and(|c| c.day_kind(currency, date) == DayKind::Holiday)
        };
        let (first, second) = pair.split_once('/').expect("a pair that was parsed");
        !date.is_weekend()
            && !is_holiday(first)
            && !is_holiday(second)
            && date >= CivilDate::from_utc(UnixNanos(ts))
    }
}
