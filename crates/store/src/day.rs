//! Days and times as people write them.

use std::fmt;
use std::str::FromStr;

use unitape_model::UnixNanos;

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// A day of the store: in version 0 the UTC date of the event time, counted from 1970-01-01.
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
    /// The day of an event time.
    #[inline]
    pub fn from_time(ts: UnixNanos) -> Self {
        // 106,752 days on either side of 1970 are all that 64 bits of nanoseconds reach.
        Self(ts.0.div_euclid(DAY_NS) as i32)
    }

    /// First and last nanosecond of the day, as far as there are such times.
    pub fn span(self) -> (UnixNanos, UnixNanos) {
        let start = i64::from(self.0).saturating_mul(DAY_NS);
        (UnixNanos(start), UnixNanos(start.saturating_add(DAY_NS - 1)))
    }

    /// The greatest and smallest day that an event time can have.
    pub(crate) fn is_possible(self) -> bool {
        (Self::from_time(UnixNanos(i64::MIN))..=Self::from_time(UnixNanos(i64::MAX))).contains(&self)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, m, d) = civil(i64::from(self.0));
        write!(f, "{y:04}-{m:02}-{d:02}")
    }
}

/// Text that is not a day or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: nanoseconds since 1970, 2024-03-11, or 2024-03-11T14:30:00.5 (UTC) are")]
pub struct TimeParseError;

impl FromStr for Day {
    type Err = TimeParseError;

    fn from_str(text: &str) -> Result<Self, TimeParseError> {
        let b = text.as_bytes();
        if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
            return Err(TimeParseError);
        }
        let (y, m, d) = (digits(&b[..4])?, digits(&b[5..7])?, digits(&b[8..])?);
        let day = Self(days(y, m, d) as i32);
        // A date that does not come back is none: 2023-02-29.
        if day.to_string() == text && day.is_possible() { Ok(day) } else { Err(TimeParseError) }
    }
}

/// Reads a time: nanoseconds since 1970, a date, or a date with time of day in UTC.
///
/// # Errors
/// Anything else, and times that 64 bits of nanoseconds do not reach.
pub fn parse_time(text: &str) -> Result<UnixNanos, TimeParseError> {
    let whole = text.strip_prefix('-').unwrap_or(text);
    if !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(UnixNanos).map_err(|_| TimeParseError);
    }
    let (date, time) = text.split_once(['T', ' ']).map_or((text, None), |(d, t)| (d, Some(t)));
    let start = i64::from(date.parse::<Day>()?.0).checked_mul(DAY_NS).ok_or(TimeParseError)?;
    let Some(time) = time else { return Ok(UnixNanos(start)) };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (clock, fraction) = time.split_once('.').map_or((time, None), |(c, f)| (c, Some(f)));
    let b = clock.as_bytes();
    let (h, m, s) = match b.len() {
        5 if b[2] == b':' => (digits(&b[..2])?, digits(&b[3..])?, 0),
        8 if b[2] == b':' && b[5] == b':' => (digits(&b[..2])?, digits(&b[3..5])?, digits(&b[6..])?),
        _ => return Err(TimeParseError),
    };
    if h > 23 || m > 59 || s > 59 || (fraction.is_some() && b.len() == 5) {
        return Err(TimeParseError);
    }
    let nanos = match fraction.map(str::as_bytes) {
        None => 0,
        Some(f) if (1..=9).contains(&f.len()) => digits(f)? * 10i64.pow(9 - f.len() as u32),
        Some(_) => return Err(TimeParseError),
    };
    let of_day = (h * 3600 + m * 60 + s) * 1_000_000_000 + nanos;
    start.checked_add(of_day).map(UnixNanos).ok_or(TimeParseError)
}

fn digits(b: &[u8]) -> Result<i64, TimeParseError> {
    if b.is_empty() || !b.iter().all(u8::is_ascii_digit) {
        return Err(TimeParseError);
    }
    Ok(b.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
}

/// Date of the Gregorian calendar, `days` after 1970-01-01. Years begin in March here, so that the leap day is the
/// last of its year, and are counted in eras of 400.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = year - i64::from(month <= 2);
    let (era, yoe) = (y.div_euclid(400), y.rem_euclid(400));
    let mp = if month > 2 { month - 3 } else { month + 9 };
    let doy = (153 * mp + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leap day counted wrongly puts a whole day of ticks into the wrong directory.
    #[test]
    fn days_come_back_from_their_text() {
        for n in -106_752..=106_751 {
            assert_eq!(Day(n).to_string().parse(), Ok(Day(n)));
        }
        assert_eq!(Day(0).to_string(), "1970-01-01");
        assert_eq!(Day::from_time(UnixNanos(-1)).to_string(), "1969-12-31");
        assert_eq!(Day::from_time(UnixNanos(1_709_164_800_000_000_000)).to_string(), "2024-02-29");
        for bad in ["2023-02-29", "2023-13-01", "2023-00-10", "2023-1-1", "20230101", "2300-01-01", "", "x"] {
            assert_eq!(bad.parse::<Day>(), Err(TimeParseError), "{bad}");
        }
    }

    #[test]
    fn times_are_read_in_each_form_and_refused_otherwise() {
        let base = 1_710_115_200_000_000_000;
        for (text, ns) in [
            ("2024-03-11", base),
            ("2024-03-11T14:30", base + 52_200_000_000_000),
            ("2024-03-11T14:30:01Z", base + 52_201_000_000_000),
            ("2024-03-11 14:30:01.5", base + 52_201_500_000_000),
            ("2024-03-11T14:30:01.000000007Z", base + 52_201_000_000_007),
            ("1710115200000000000", base),
            ("-5", -5),
        ] {
            assert_eq!(parse_time(text), Ok(UnixNanos(ns)), "{text}");
        }
        for bad in [
            "2024-03-11T25:00",
            "2024-03-11T1:00",
            "2024-03-11T14:30.5",
            "2024-03-11T14:30:01.",
            "2024-03-11T14:30:01.0000000001",
            "2024-03-11T14:30:60",
            "99999999999999999999",
            "-",
            "noon",
        ] {
            assert_eq!(parse_time(bad), Err(TimeParseError), "{bad}");
        }
    }
}
