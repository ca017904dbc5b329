//! Days of the calendar, and moments as XML and JSON write them.

use crate::digits::pair;
use unitape_model::calendar::{days_from_civil, days_of_month};

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalendarDay {
    /// 1900 to 2261.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl CalendarDay {
    /// Makes a day, if the calendar has it.
    #[inline]
    #[must_use]
    pub fn new(year: u16, month: u8, day: u8) -> Option<CalendarDay> {
        let fits = (1900..=2261).contains(&year)
            && day >= 1
            && i64::from(day) <= days_of_month(year.into(), month.into());
        fits.then_some(CalendarDay { year, month, day })
    }

    /// Returns the day's midnight in UTC, in nanoseconds since 1970.
    #[inline]
    #[must_use]
    pub fn nanos(self) -> i64 {
        self.number() * 86_400 * 1_000_000_000
    }

    /// Days since 1970-01-01.
    #[inline]
    #[must_use]
    pub fn number(self) -> i64 {
        days_from_civil(self.year.into(), self.month.into(), self.day.into())
    }

    /// Appends it as `2019-04-25`.
    pub fn write(self, out: &mut Vec<u8>) {
        let digits = |n: u16| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        out.extend_from_slice(&digits(self.year / 100));
        out.extend_from_slice(&digits(self.year % 100));
        out.push(b'-');
        out.extend_from_slice(&digits(self.month.into()));
        out.push(b'-');
        out.extend_from_slice(&digits(self.day.into()));
    }
}

/// Parses a day or a moment to UTC nanoseconds since 1970. Returns `None` for any other text, for years outside 1900
/// to 2261, and if a digit after the ninth decimal of a second is not 0. Second 60 is the first second of the next
/// minute; a moment without an offset is UTC.
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let &[a, b, c, d, b'-', m, n, b'-', e, f] = day else { return None };
    let year = u16::from(pair(a, b)?) * 100 + u16::from(pair(c, d)?);
    let day = CalendarDay::new(year, pair(m, n)?, pair(e, f)?)?.nanos();
    let Some(clock) = rest.strip_prefix(b"T") else {
        return day.checked_sub(offset(rest)?);
    };
    let (hms, mut rest) = clock.split_at_checked(8)?;
    let &[a, b, b':', c, d, b':', e, f] = hms else { return None };
    let (hours, minutes, seconds) = (pair(a, b)?, pair(c, d)?, pair(e, f)?);
    let mut fraction = 0;
    if let Some(digits) = rest.strip_prefix(b".") {
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, offset_text) = digits.split_at(count);
        if count == 0 || digits.iter().skip(9).any(|b| *b != b'0') {
            return None;
        }
        fraction = (0..9).fold(0, |n, i| n * 10 + i64::from(digits.get(i).map_or(0, |b| b - b'0')));
        rest = offset_text;
    }
    // The end of a day may be written as its 24th hour.
    let end_of_day = hours == 24 && minutes == 0 && seconds == 0 && fraction == 0;
    if !end_of_day && hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let clock = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    day.checked_add(clock * NANOS + fraction)?.checked_sub(offset(rest)?)
}

/// Parses `Z`, `+02:00` or nothing to nanoseconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let &[sign @ (b'+' | b'-'), a, b, b':', c, d] = text else {
        return matches!(text, b"" | b"Z").then_some(0);
    };
    let (hours, minutes) = (pair(a, b)?, pair(c, d)?);
    if hours > 14 || minutes > 59 || hours == 14 && minutes > 0 {
        return None;
    }
    let east = (i64::from(hours) * 60 + i64::from(minutes)) * 60 * NANOS;
    Some(if sign == b'-' { -east } else { east })
}

const NANOS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_moments_in_utc() {
        let day = 86_400 * NANOS;
        for (text, want) in [
            ("1970-01-02", Some(day)),
            ("1970-01-02+02:00", Some(day - 2 * 3600 * NANOS)),
            ("1970-01-02Z", Some(day)),
            ("1970-01-01T24:00:00", Some(day)),
            ("1970-01-01T12:01:45+02:00", Some((10 * 3600 + 105) * NANOS)),
            ("1970-01-01T00:00:00.5-00:30", Some(1800 * NANOS + NANOS / 2)),
            ("1970-01-01T00:00:00.1234567890", Some(123_456_789)),
            ("1970-01-01T00:00:00.1234567891", None),
            ("1970-01-01T00:00:00.", None),
            ("1970-01-01T24:00:01", None),
            ("1970-01-01T23:59:60", Some(day)),
            ("1970-01-01T23:59:60.5Z", Some(day + NANOS / 2)),
            ("1970-01-01T23:59:61", None),
            ("1970-01-01T00:60:00", None),
            ("1970-13-01", None),
            ("1970-1-1", None),
            ("1970-01-01T00:00", None),
            ("1970-01-01T00:00:00+15:00", None),
            ("1970-01-01 00:00:00", None),
            ("", None),
        ] {
            assert_eq!(time(text.as_bytes()), want, "{text}");
        }
    }
}
