//! Dates of the civil calendar, and clock times of a day.

use crate::UnixNanos;
use std::fmt;
use std::str::FromStr;

/// 0001-01-01.
const DAYS_MIN: i32 = -719_162;
/// 9999-12-31.
const DAYS_MAX: i32 = 2_932_896;

/// Days from 1 March of the year 0 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;

/// Seconds of a day.
pub(super) const DAY_SECONDS: i64 = 86_400;

/// A date of the Gregorian calendar, without a zone; days since 1970-01-01. No value means "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilDate(i32);

/// A time of day to the minute, 00:00 to 23:59, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockTime(u16);

/// Text that is no date of the form `2026-12-25`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a date; write 2026-12-25")]
pub struct DateParseError;

/// Returns the days since 1970-01-01 of a date that the calendar has, from year 1 on. Each month and day is computed as it is given.
///
/// The year begins in March here, so that the leap day is its last.
#[inline]
pub const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - EPOCH_DAYS
}

/// Splits days since 1970-01-01 into year, month and day.
#[inline]
pub const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

/// Returns the days of a month; 0 if there is no such month.
#[inline]
pub const fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

impl CivilDate {
    /// Returns the date that is `days` days after 1970-01-01.
    #[inline]
    pub const fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// Returns the date that is `days` days after 1970-01-01, or `None` outside the years 1 to 9999.
    pub const fn from_days_checked(days: i32) -> Option<Self> {
        if days < DAYS_MIN || days > DAYS_MAX { None } else { Some(Self(days)) }
    }

    /// Reads `2026-03-05`, or `20260305` as messages write it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let &([a, b, c, d, b'-', m, n, b'-', e, f] | [a, b, c, d, m, n, e, f]) = text else { return None };
        let year = i32::from(two_digits(a, b)?) * 100 + i32::from(two_digits(c, d)?);
        Self::new_checked(year, two_digits(m, n)?, two_digits(e, f)?)
    }

    /// Returns the date of a year, a month and a day, if the calendar has it.
    pub fn new_checked(year: i32, month: u8, day: u8) -> Option<Self> {
        if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
            return None;
        }
        let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
        (day <= days_of_month(year, month)).then(|| Self(days_from_civil(year, month, day) as i32))
    }

    /// Returns the UTC date at the time `ts`.
    #[inline]
    pub fn from_utc(ts: UnixNanos) -> Self {
        Self::from_second(ts.0.div_euclid(1_000_000_000))
    }

    /// Days since 1970-01-01.
    #[inline]
    pub const fn days(self) -> i32 {
        self.0
    }

    /// Returns the next date.
    #[inline]
    pub const fn following(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns whether the date is a Saturday or a Sunday.
    #[inline]
    pub const fn is_weekend(self) -> bool {
        // Day 0 is a Thursday.
        self.0.rem_euclid(7) == 2 || self.0.rem_euclid(7) == 3
    }

    /// Returns the date of a second of a clock that began with 1970.
    #[inline]
    pub(super) const fn from_second(second: i64) -> Self {
        // 106,752 days on either side of 1970 are all that 64 bits of nanoseconds reach.
        Self(second.div_euclid(DAY_SECONDS) as i32)
    }
}

impl fmt::Display for CivilDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.into());
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for CivilDate {
    type Err = DateParseError;

    fn from_str(text: &str) -> Result<Self, DateParseError> {
        let dashed = text.len() == "2026-12-25".len();
        Self::parse(text.as_bytes()).filter(|_| dashed).ok_or(DateParseError)
    }
}

impl ClockTime {
    /// Midnight.
    pub const MIDNIGHT: Self = Self(0);

    /// Reads `17:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let &[a, b, b':', c, d] = text.as_bytes() else { return None };
        let (hour, minute) = (two_digits(a, b)?, two_digits(c, d)?);
        (hour < 24 && minute < 60).then(|| Self(u16::from(hour) * 60 + u16::from(minute)))
    }

    /// Minutes since midnight.
    #[inline]
    pub const fn minutes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

fn two_digits(a: u8, b: u8) -> Option<u8> {
    (a.is_ascii_digit() && b.is_ascii_digit()).then(|| (a - b'0') * 10 + (b - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leap day that is counted wrongly moves every later date of the file by one.
    #[test]
    fn civil_dates_come_back_from_their_text() {
        let first: CivilDate = "1600-01-01".parse().unwrap();
        let last: CivilDate = "2400-12-31".parse().unwrap();
        for days in first.days()..=last.days() {
            let date = CivilDate::from_days(days);
            assert_eq!(date.to_string().parse(), Ok(date));
        }
        assert_eq!(CivilDate::from_days(0).to_string(), "1970-01-01");
        assert_eq!(CivilDate::from_utc(UnixNanos(-1)).to_string(), "1969-12-31");
        assert_eq!(CivilDate::from_utc(UnixNanos::MIN).to_string(), "1677-09-21");
        assert_eq!(CivilDate::from_utc(UnixNanos::MAX).to_string(), "2262-04-11");
        for bad in ["2023-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-01-00"] {
            assert_eq!(bad.parse::<CivilDate>(), Err(DateParseError), "{bad}");
        }
        for bad in ["", "2026-1-1", "20261225", "25.12.2026", "0000-01-01", "2026-12-25 ", "+026-12-25", "é"]
        {
            assert_eq!(bad.parse::<CivilDate>(), Err(DateParseError), "{bad}");
        }
    }

    /// The twin counts day by day.
    #[test]
    fn every_day_of_ten_thousand_years_is_the_one_after_the_day_before() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in DAYS_MIN..=DAYS_MAX {
            let date = CivilDate::from_days_checked(days).unwrap();
            assert_eq!(CivilDate::new_checked(year, month, day), Some(date));
            if days % 97 == 0 {
                let text = date.to_string();
                assert_eq!(text, format!("{year:04}-{month:02}-{day:02}"));
                assert_eq!(CivilDate::parse(text.replace('-', "").as_bytes()), Some(date));
            }
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            day += 1;
            if day > length[usize::from(month) - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(year, 10_000);
        assert_eq!([DAYS_MIN - 1, DAYS_MAX + 1].map(CivilDate::from_days_checked), [None; 2]);
    }

    #[test]
    fn weekends_are_saturdays_and_sundays() {
        let week = ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06"];
        let weekend = ["2026-03-07", "2026-03-08", "1969-12-27", "1969-12-28", "1677-09-25", "1677-09-26"];
        let is_weekend = |text: &str| text.parse::<CivilDate>().unwrap().is_weekend();
        assert!(!week.into_iter().any(is_weekend));
        assert!(weekend.into_iter().all(is_weekend));
    }

    #[test]
    fn clock_times_have_two_digits_each() {
        for text in ["00:00", "07:05", "23:59"] {
            assert_eq!(ClockTime::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "7:05", "24:00", "12:60", "12.30", "12:30:00", "1230", "+1:00", "noon", "12:3é"] {
            assert_eq!(ClockTime::parse(bad), None, "{bad}");
        }
    }
}
