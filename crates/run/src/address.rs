//! Points of a tape, as people name them: by ordinal, by `@position`, by time.

use crate::Error;
use std::fmt;
use unitape_model::{Event, Position, UnixNanos, flags};
use unitape_tape::Frame;

/// The address of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAddress {
    /// Its ordinal; of bookkeeping that of the next event.
    pub seq: u64,
    /// Its position.
    pub position: Position,
}

/// Up to where a tape is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeStopPoint {
    /// Through this event, counted from 1.
    Ordinal(u64),
    /// Through the frame at this position.
    Position(Position),
    /// Through the last event before the first one that is later than this, nanoseconds since 1970.
    Time(i64),
}

impl fmt::Display for TapeStopPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal(n) => write!(f, "{n}"),
            Self::Position(p) => write!(f, "@{p}"),
            Self::Time(ns) => write!(f, "{}", utc(*ns)),
        }
    }
}

impl TapeStopPoint {
    /// Reads `123`, `@4096`, `1772443800000000000`, or a time as [`parse_time`] does. Digits below 10^15 are an ordinal.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::Point { text: text.to_owned() };
        if let Some(position) = text.strip_prefix('@') {
            return position.parse().map(Position).map(Self::Position).map_err(|_| bad());
        }
        if let Ok(number) = text.parse::<u64>() {
            return match number {
                NANOS_FROM.. => i64::try_from(number).map(Self::Time).map_err(|_| bad()),
                _ => Ok(Self::Ordinal(number)),
            };
        }
        time(text).map(Self::Time).ok_or_else(bad)
    }

    /// Whether a frame lies after this point. Bookkeeping has no ordinal of its own, and neither it nor a message has a
    /// time; the time of an event that is flagged as clock ahead is not believed.
    #[inline]
    pub fn is_before(self, place: EventAddress, frame: &Frame<'_>) -> bool {
        match self {
            Self::Ordinal(last) => !frame.header.is_meta() && place.seq > last,
            Self::Position(last) => place.position > last,
            Self::Time(last) => {
                frame.header.flags() & (flags::META | flags::CLOCK_AHEAD) == 0
                    && Event::new(frame.bytes).is_some_and(|event| event.ts_event().0 > last)
            }
        }
    }
}

/// Reads a time in UTC: `2026-03-02`, `2026-03-02T14:30`, `2026-03-02 14:30:00.5`, each also with `Z`, or nanoseconds since
/// 1970.
///
/// # Errors
/// When it is none of these.
pub fn parse_time(text: &str) -> Result<UnixNanos, Error> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let ns = if is_number { text.parse().ok() } else { time(text) };
    ns.map(UnixNanos).ok_or_else(|| Error::Time { text: text.to_owned() })
}

/// A first or last point of a part of a tape.
#[derive(Clone, Copy, Debug)]
pub enum TapeRangeBound {
    /// This event, counted from 1.
    Ordinal(u64),
    /// The frame at this position.
    Position(Position),
}

impl TapeRangeBound {
    /// Reads `123` or `@4096`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::Bound { text: text.to_owned() };
        match text.strip_prefix('@') {
            Some(position) => position.parse().map(Position).map(TapeRangeBound::Position).map_err(|_| bad()),
            None => text.parse().map(TapeRangeBound::Ordinal).map_err(|_| bad()),
        }
    }

    /// Whether the place is this one or after it.
    #[inline]
    pub fn is_reached_by(self, place: EventAddress) -> bool {
        match self {
            Self::Ordinal(n) => place.seq >= n,
            Self::Position(p) => place.position >= p,
        }
    }

    /// Whether this is before the place.
    #[inline]
    pub fn is_before_event(self, place: EventAddress) -> bool {
        match self {
            Self::Ordinal(n) => place.seq > n,
            Self::Position(p) => place.position > p,
        }
    }

    /// Whether this is after the other; of an ordinal and a position nobody knows.
    pub fn is_after(self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ordinal(a), Self::Ordinal(b)) => a > *b,
            (Self::Position(a), Self::Position(b)) => a > *b,
            _ => false,
        }
    }
}

impl fmt::Display for TapeRangeBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal(n) => write!(f, "{n}"),
            Self::Position(p) => write!(f, "@{p}"),
        }
    }
}

/// `2011-11-24 06:28:56.151000000`, of nanoseconds since 1970.
pub fn utc(ns: i64) -> String {
    let (days, of_day) = (ns.div_euclid(86_400_000_000_000), ns.rem_euclid(86_400_000_000_000));
    let (s, n) = (of_day / 1_000_000_000, of_day % 1_000_000_000);
    // Days to a date of the Gregorian calendar, counted in eras of 400 years that begin on 1 March.
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let y = yoe + era * 400 + i64::from(m <= 2);
    format!("{y:04}-{m:02}-{d:02} {:02}:{:02}:{:02}.{n:09}", s / 3600, s / 60 % 60, s % 60)
}

/// `YYYY-MM-DD`, alone or with `HH:MM`, `HH:MM:SS` or that with up to nine decimals, as nanoseconds since 1970.
fn time(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (clock, decimals) = match clock.split_once('.') {
        // Decimals are of seconds.
        Some((clock, decimals)) if clock.len() > 5 => (clock, decimals),
        Some(_) => return None,
        None => (clock, "0"),
    };
    let date = numbers::<3>(date, '-', [4, 2, 2])?;
    let clock = match clock.len() {
        5 => numbers::<2>(clock, ':', [2, 2]).map(|[h, m]| [h, m, 0])?,
        _ => numbers::<3>(clock, ':', [2, 2, 2])?,
    };
    if decimals.is_empty() || decimals.len() > 9 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{decimals:0<9}").parse().ok()?;
    let ([year, month, day], [h, m, s]) = (date, clock);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || h > 23 || m > 59 || s > 59 {
        return None;
    }
    // Days since 1970 of a date of the Gregorian calendar, in years that begin in March.
    let y = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (y.div_euclid(400), y.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = ((days * 24 + h) * 60 + m) * 60 + s;
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    // A day that the month does not have comes back as another one.
    utc(ns).starts_with(&format!("{year:04}-{month:02}-{day:02}")).then_some(ns)
}

fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut out = [0; N];
    for (out, digits) in out.iter_mut().zip(digits) {
        let part = parts.next().filter(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_digit()))?;
        *out = part.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// A plain number from here on is a time: no tape has that many events, and the year is 1970.
const NANOS_FROM: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<TapeStopPoint> {
        TapeStopPoint::parse(text).ok()
    }

    #[test]
    fn times_are_told_in_utc() {
        for (ns, text) in [
            (0, "1970-01-01 00:00:00.000000000"),
            (1_322_116_136_151_000_000, "2011-11-24 06:28:56.151000000"),
            (1_709_164_800_000_000_001, "2024-02-29 00:00:00.000000001"),
            (-1, "1969-12-31 23:59:59.999999999"),
        ] {
            assert_eq!(utc(ns), text);
        }
    }

    /// An ordinal of `--at` may be any number below 10^15, and a number of `--since` is always a time.
    #[test]
    fn numbers_are_nanoseconds_where_only_a_time_can_be() {
        for (text, ns) in [("17", 17), ("-17", -17), ("1970-01-01 00:00:00.5", 500_000_000)] {
            assert_eq!(parse_time(text).unwrap(), UnixNanos(ns), "{text}");
        }
        for text in ["", "-", "@17", "+17", "1e9", "99999999999999999999", "noon"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(at("999999999999999"), Some(TapeStopPoint::Ordinal(999_999_999_999_999)));
        assert_eq!(at("1000000000000000"), Some(TapeStopPoint::Time(1_000_000_000_000_000)));
    }

    /// A time that is read wrong shows a book of another moment and nobody notices.
    #[test]
    fn points_are_read_as_they_are_printed() {
        assert_eq!(at("17"), Some(TapeStopPoint::Ordinal(17)));
        assert_eq!(at("@4096"), Some(TapeStopPoint::Position(Position(4096))));
        assert_eq!(at("1772443800000000000"), Some(TapeStopPoint::Time(1_772_443_800_000_000_000)));
        assert_eq!(at("2026-03-02 09:30:00"), Some(TapeStopPoint::Time(1_772_443_800_000_000_000)));
        assert_eq!(at("2026-03-02T09:30:00.5Z"), Some(TapeStopPoint::Time(1_772_443_800_500_000_000)));
        for ns in [0, 951_782_400_000_000_000, 1_709_164_800_000_000_001, -1, 4_102_444_799_999_999_999] {
            assert_eq!(at(&utc(ns)), Some(TapeStopPoint::Time(ns)));
        }
        for (text, seconds) in
            [("2026-03-02", 0), ("2026-03-02T14:30", 52_200), ("2026-03-02 14:30Z", 52_200)]
        {
            assert_eq!(
                at(text),
                Some(TapeStopPoint::Time((1_772_409_600 + seconds) * 1_000_000_000)),
                "{text}"
            );
        }
        for text in [
            "2026-03-02T",
            "2026-03-02T14",
            "2026-03-02T14:30.5",
            "",
            "@",
            "@x",
            "09:30:00",
            "2026-02-30 00:00:00",
            "2026-3-2 09:30:00",
            "2026-03-02 24:00:00",
            "2026-03-02 09:30:00.",
            "2026-03-02 09:30:00.1234567890",
            "-5",
            "9999-01-01 00:00:00",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
