//! Days of the store.

use std::fmt;
use std::str::FromStr;

use unitape_model::{CivilDate, DateParseError, Event, EventKind, UnixNanos};

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// A day of the store: the UTC date of the event time, counted from 1970-01-01. Events without a time are in
/// [`Day::UNDATED`].
///
/// ```
/// use unitape_model::UnixNanos;
/// use unitape_store::Day;
/// assert_eq!(Day::from_time(UnixNanos(1_710_167_400_000_000_000)).to_string(), "2024-03-11");
/// assert_eq!("2024-03-11".parse(), Ok(Day::from_time(UnixNanos(1_710_167_400_000_000_000))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// The partition of events without a time.
    pub const UNDATED: Self = Self(i32::MIN);

    /// Returns the day of an event time.
    #[inline]
    pub fn from_time(ts: UnixNanos) -> Self {
        // 106,752 days on either side of 1970 are all that 64 bits of nanoseconds reach.
        Self(ts.0.div_euclid(DAY_NS) as i32)
    }

    /// Returns the day of an event. A message that was refused before its feed had a time has no day: 1970 is not its
    /// day.
    pub(crate) fn of_event(event: &Event<'_>) -> Self {
        let (kind, ts) = (event.kind(), event.ts_event());
        if kind == EventKind::Quarantine && ts.0 == 0 { Self::UNDATED } else { Self::from_time(ts) }
    }

    /// Returns the first and the last nanosecond of the day, cut to the range of such times. Undated events may have
    /// any time.
    pub fn span(self) -> (UnixNanos, UnixNanos) {
        if self == Self::UNDATED {
            return (UnixNanos(i64::MIN), UnixNanos(i64::MAX));
        }
        let day_start_ns = i64::from(self.0).saturating_mul(DAY_NS);
        (UnixNanos(day_start_ns), UnixNanos(day_start_ns.saturating_add(DAY_NS - 1)))
    }

    /// Returns whether an event time can fall on this day.
    pub(crate) fn is_possible(self) -> bool {
        (Self::from_time(UnixNanos(i64::MIN))..=Self::from_time(UnixNanos(i64::MAX))).contains(&self)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::UNDATED { f.write_str("undated") } else { CivilDate::from_days(self.0).fmt(f) }
    }
}

impl FromStr for Day {
    type Err = DateParseError;

    fn from_str(text: &str) -> Result<Self, DateParseError> {
        if text == "undated" {
            return Ok(Self::UNDATED);
        }
        let day = Self(text.parse::<CivilDate>()?.days());
        if day.is_possible() { Ok(day) } else { Err(DateParseError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a leap day is counted wrongly, which would put a whole day of ticks into the wrong directory.
    #[test]
    fn days_come_back_from_their_text() {
        for n in -106_752..=106_751 {
            assert_eq!(Day(n).to_string().parse(), Ok(Day(n)));
        }
        assert_eq!(Day::UNDATED.to_string().parse(), Ok(Day::UNDATED));
        assert_eq!(Day(0).to_string(), "1970-01-01");
        assert_eq!(Day::from_time(UnixNanos(-1)).to_string(), "1969-12-31");
        assert_eq!(Day::from_time(UnixNanos(1_709_164_800_000_000_000)).to_string(), "2024-02-29");
        for bad in ["2023-02-29", "2023-13-01", "2023-00-10", "2023-1-1", "20230101", "2300-01-01", "", "x"] {
            assert_eq!(bad.parse::<Day>(), Err(DateParseError), "{bad}");
        }
    }
}
