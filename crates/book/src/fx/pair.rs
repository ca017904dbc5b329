//! Currency pairs: their direction, their pip and their spot date.

use std::fmt;
use unitape_model::{CivilDate, UnixNanos};

/// A currency pair the right way round, as it prints: `EUR/USD`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairName([u8; 7]);

/// A pair as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrientedPair {
    /// The pair, the right way round.
    pub name: PairName,
    /// Whether the event names the pair in the other direction: `USD/EUR`.
    pub inverted: bool,
}

impl OrientedPair {
    /// Reads `EURUSD` or `EUR/USD`. Rule 12: other forms are no pair, nor is one currency twice.
    #[must_use]
    pub fn parse(instr: &str) -> Option<Self> {
        let &([a, b, c, b'/', d, e, f] | [a, b, c, d, e, f]) = instr.as_bytes() else { return None };
        let (first, second) = ([a, b, c], [d, e, f]);
        let is_currency = |code: [u8; 3]| code.iter().all(u8::is_ascii_uppercase);
        if !is_currency(first) || !is_currency(second) || first == second {
            return None;
        }
        let inverted = currency_rank(second) < currency_rank(first);
        let [[a, b, c], [d, e, f]] = if inverted { [second, first] } else { [first, second] };
        Some(Self { name: PairName([a, b, c, b'/', d, e, f]), inverted })
    }
}

/// Returns the rank of a currency. The currency with the lower rank comes first. Rule 12: by this list, others
/// bytewise, JPY last.
fn currency_rank(code: [u8; 3]) -> (u8, [u8; 3]) {
    match RANKED.iter().position(|ranked| **ranked == code) {
        Some(index) => (index as u8, [0; 3]),
        None if &code == b"JPY" => (u8::MAX, [0; 3]),
        None => (RANKED.len() as u8, code),
    }
}

impl PairName {
    /// Returns the six letters of the pair as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("capital letters are ASCII")
    }

    /// Returns a pip in units of 10⁻⁹. Rule 17: 0.01 if the second currency is JPY or the first a metal, else 0.0001.
    pub(super) fn pip(self) -> i64 {
        let is_metal = METALS.iter().any(|metal| self.0.starts_with(*metal));
        if is_metal || self.0.ends_with(b"JPY") { 10_000_000 } else { 100_000 }
    }

    /// Returns the spot date of a quote of this time. Rule 11: the second weekday after its UTC date, for some pairs the first.
    pub(super) fn spot_date(self, ts: UnixNanos) -> CivilDate {
        let mut date = CivilDate::from_utc(ts);
        for _ in 0..if NEXT_DAY.contains(&&self.0) { 1 } else { 2 } {
            date = date.following();
            while date.is_weekend() {
                date = date.following();
            }
        }
        date
    }
}

/// Returns whether a quote of this time may name this date. Rule 11: weekends and dates before its UTC date are
/// refused.
pub(super) fn accepts_date(date: CivilDate, ts: UnixNanos) -> bool {
    !date.is_weekend() && date >= CivilDate::from_utc(ts)
}

impl fmt::Display for PairName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for PairName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const RANKED: [&[u8; 3]; 11] =
    [b"XAU", b"XAG", b"XPT", b"XPD", b"EUR", b"GBP", b"AUD", b"NZD", b"USD", b"CAD", b"CHF"];
const METALS: [&[u8; 3]; 4] = [b"XAU", b"XAG", b"XPT", b"XPD"];
/// Pairs whose spot date is the first weekday.
const NEXT_DAY: [&[u8; 7]; 4] = [b"USD/CAD", b"USD/TRY", b"USD/PHP", b"USD/RUB"];
