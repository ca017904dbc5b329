//! Calendar dates, as fields of events hold them.

use crate::num::UnixNanos;
use std::fmt;

/// A date of the Gregorian calendar, in days since 1970-01-01; years 0000 to 9999.
///
/// ```
/// use unitape_model::Date;
/// let date = Date::parse(b"2026-03-05").unwrap();
/// assert_eq!((date.days(), date.to_string().as_str()), (20_517, "2026-03-05"));
/// assert_eq!(Date::parse(b"20260305"), Some(date));
/// assert_eq!(Date::parse(b"2026-02-29"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// 0000-01-01.
const DAYS_MIN: i32 = -719_528;
/// 9999-12-31.
const DAYS_MAX: i32 = 2_932_896;

impl Date {
    /// The date that many days after 1970-01-01; `None` outside years 0000 to 9999.
    #[must_use]
    pub const fn from_days(days: i32) -> Option<Self> {
        if days < DAYS_MIN || days > DAYS_MAX { None } else { Some(Self(days)) }
    }

    /// The UTC date of a time.
    #[must_use]
    pub const fn from_time(ts: UnixNanos) -> Self {
        Self(ts.0.div_euclid(NANOS_PER_DAY) as i32)
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn days(self) -> i32 {
        self.0
    }

    /// Reads `2026-03-05` or `20260305`; `None` for any other text and for a day that no month has.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; 8] = match *text {
            [a, b, c, d, b'-', e, f, b'-', g, h] | [a, b, c, d, e, f, g, h] => [a, b, c, d, e, f, g, h],
            _ => return None,
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = |part: &[u8]| part.iter().fold(0i32, |n, digit| n * 10 + i32::from(digit - b'0'));
        let date = from_civil(number(&digits[..4]), number(&digits[4..6]), number(&digits[6..]));
        Some(date).filter(|date| {
            civil(date.0) == (number(&digits[..4]), number(&digits[4..6]), number(&digits[6..]))
        })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Days since 1970-01-01 of a date, by eras of 400 years that begin on March 1.
fn from_civil(year: i32, month: i32, day: i32) -> Date {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Date(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// Year, month and day, by the same eras.
fn civil(days: i32) -> (i32, i32, i32) {
    let days = days + 719_468;
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + days.div_euclid(146_097) * 400 + i32::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A date that a leap rule shifts by one would settle a deal on another day. The twin counts day by day.
    #[test]
    fn every_day_of_ten_thousand_years_comes_back() {
        let (mut year, mut month, mut day) = (0, 1, 1);
        for days in DAYS_MIN..=DAYS_MAX {
            let date = Date::from_days(days).unwrap();
            assert_eq!(civil(days), (year, month, day));
            assert_eq!(from_civil(year, month, day), date);
            if days % 97 == 0 {
                assert_eq!(Date::parse(date.to_string().as_bytes()), Some(date));
            }
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            day += 1;
            if day > length[month as usize - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(year, 10_000);
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2026-3-5",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-03-00",
            "2026/03/05",
            "+2026305",
            "2026-03-05T",
        ] {
            assert_eq!(Date::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Date::from_time(UnixNanos(-1)), Date::parse(b"1969-12-31").unwrap());
    }
}
