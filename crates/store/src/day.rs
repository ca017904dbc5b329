//! Days of the store.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use unitape_model::schema::at;
use unitape_model::{Calendar, CivilDate, DateParseError, Event, EventKind, SessionClock, UnixNanos};

use crate::cells::EventKindLayout;

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// A day of the store: the UTC date of the event time, counted from 1970-01-01; in a store with a calendar, the session
/// date of the event's venue. Events without a time are in [`Day::UNDATED`].
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

    /// Returns whether an event time can fall on this day.
    pub(crate) fn is_possible(self) -> bool {
        (Self::from_time(UnixNanos(i64::MIN))..=Self::from_time(UnixNanos(i64::MAX))).contains(&self)
    }
}

/// Finds the day of events.
#[derive(Debug, Default)]
pub(crate) struct DayRule {
    calendar: Option<Arc<Calendar>>,
    /// The clock of each venue, by its id.
    clocks: Vec<Option<SessionClock>>,
}

impl DayRule {
    /// Makes the rule: session dates by a calendar, or UTC dates without one.
    pub fn new(calendar: Option<Arc<Calendar>>) -> Self {
        Self { calendar, clocks: Vec::new() }
    }

    /// Returns whether days are session dates.
    pub fn has_calendar(&self) -> bool {
        self.calendar.is_some()
    }

    /// Returns the day of an event. A message that was refused before its feed had a time has no day: 1970 is not its
    /// day. Events without a venue that `venue_name` knows are at their UTC date.
    pub fn day_of<'n>(&mut self, event: &Event<'_>, venue_name: impl FnOnce(u32) -> Option<&'n str>) -> Day {
        let (kind, ts) = (event.kind(), event.ts_event());
        if kind == EventKind::Quarantine && ts.0 == 0 {
            return Day::UNDATED;
        }
        let Some(calendar) = &self.calendar else { return Day::from_time(ts) };
        if !EventKindLayout::for_schema(event.schema()).has_venue {
            return Day::from_time(ts);
        }
        let venue = usize::from(u16::from_le_bytes([event.bytes()[at::VENUE], event.bytes()[at::VENUE + 1]]));
        if self.clocks.len() <= venue {
            self.clocks.resize_with(venue + 1, || None);
        }
        let clock = &mut self.clocks[venue];
        if clock.is_none() {
            *clock = venue_name(venue as u32).map(|name| SessionClock::new(calendar.clone(), name));
        }
        clock.as_mut().map_or_else(|| Day::from_time(ts), |clock| Day(clock.session_date(ts).0.days()))
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
