//! Moments in UTC, as people write them and as reports print them.

use std::fmt;
use std::str::FromStr;

use super::date::{CivilDate, ClockTime, DAY_SECONDS};
use crate::UnixNanos;

/// Text that is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: nanoseconds since 1970, 2024-03-11, or 2024-03-11T14:30:00.5 (UTC) are")]
pub struct TimeParseError;

impl FromStr for UnixNanos {
    type Err = TimeParseError;

    /// Reads a time in UTC: `2026-03-02`, `2026-03-02T14:30`, `2026-03-02 14:30:00.5`, each also with `Z`, or nanoseconds since
    /// 1970.
    fn from_str(text: &str) -> Result<Self, TimeParseError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().map(Self).map_err(|_| TimeParseError);
        }
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, clock) =
            text.split_once(['T', ' ']).map_or((text, None), |(date, clock)| (date, Some(clock)));
        let date: CivilDate = date.parse().map_err(|_| TimeParseError)?;
        let of_day = clock.map_or(Some(0), nanos_of_day).ok_or(TimeParseError)?;
        let midnight = i64::from(date.days()).checked_mul(DAY_SECONDS * SECOND_NS);
        midnight.and_then(|ns| ns.checked_add(of_day)).map(Self).ok_or(TimeParseError)
    }
}

/// Parses `14:30`, `14:30:00` or `14:30:00.5`, with up to nine decimals.
fn nanos_of_day(clock: &str) -> Option<i64> {
    let (minute, rest) = clock.split_at_checked(5)?;
    let minutes = i64::from(ClockTime::parse(minute)?.minutes());
    let Some(seconds) = rest.strip_prefix(':') else {
        return rest.is_empty().then_some(minutes * 60 * SECOND_NS);
    };
    let (second, decimals) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if second.len() != 2 || !(1..=9).contains(&decimals.len()) || !is_number(second) || !is_number(decimals) {
        return None;
    }
    let second: i64 = second.parse().ok().filter(|second| *second < 60)?;
    let nanos: i64 = format!("{decimals:0<9}").parse().ok()?;
    Some((minutes * 60 + second) * SECOND_NS + nanos)
}

/// A moment that is printed in UTC: `2011-11-24 06:28:56.151000000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcMoment(pub UnixNanos);

impl fmt::Display for UtcMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.0.div_euclid(SECOND_NS), self.0.0.rem_euclid(SECOND_NS));
        let of_day = seconds.rem_euclid(DAY_SECONDS);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{} {hour:02}:{minute:02}:{second:02}.{nanos:09}", CivilDate::from_utc(self.0))
    }
}

const SECOND_NS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A time that is read wrong shows a book of another moment, and nobody notices.
    #[test]
    fn times_are_read_in_each_form_and_refused_otherwise() {
        let base = 1_710_115_200_000_000_000;
        for (text, ns) in [
            ("2024-03-11", base),
            ("2024-03-11Z", base),
            ("2024-03-11T14:30", base + 52_200_000_000_000),
            ("2024-03-11T14:30:01Z", base + 52_201_000_000_000),
            ("2024-03-11 14:30:01.5", base + 52_201_500_000_000),
            ("2024-03-11T14:30:01.000000007Z", base + 52_201_000_000_007),
            ("1970-01-01 00:00:00.5", 500_000_000),
            ("1710115200000000000", base),
            ("17", 17),
            ("-5", -5),
        ] {
            assert_eq!(text.parse(), Ok(UnixNanos(ns)), "{text}");
        }
        for bad in [
            "2024-03-11T25:00",
            "2024-03-11T1:00",
            "2024-03-11T14",
            "2024-03-11T",
            "2024-03-11T14:30.5",
            "2024-03-11T14:30:01.",
            "2024-03-11T14:30:01.0000000001",
            "2024-03-11T14:30:60",
            "2024-03-11T14:30:+1",
            "2024-02-30 00:00:00",
            "2024-3-2 09:30:00",
            "9999-01-01",
            "99999999999999999999",
            "-",
            "",
            "+17",
            "1e9",
            "noon",
            "é:00",
        ] {
            assert_eq!(bad.parse::<UnixNanos>(), Err(TimeParseError), "{bad}");
        }
    }

    #[test]
    fn moments_come_back_from_their_text() {
        for (ns, text) in [
            (0, "1970-01-01 00:00:00.000000000"),
            (1_322_116_136_151_000_000, "2011-11-24 06:28:56.151000000"),
            (1_709_164_800_000_000_001, "2024-02-29 00:00:00.000000001"),
            (-1, "1969-12-31 23:59:59.999999999"),
            (i64::MIN, "1677-09-21 00:12:43.145224192"),
            (i64::MAX, "2262-04-11 23:47:16.854775807"),
        ] {
            assert_eq!(UtcMoment(UnixNanos(ns)).to_string(), text);
            assert_eq!(text.parse().ok(), (ns > i64::MIN).then_some(UnixNanos(ns)), "{text}");
        }
    }
}
