//! Points of a tape, as people name them: by ordinal, by `@position`, by time.

use crate::Error;
use std::fmt;
use unitape_model::{Event, Position, UnixNanos, UtcMoment, flags};
use unitape_tape::Frame;

/// The address of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAddress {
    /// Its ordinal. Bookkeeping has the ordinal of the next event.
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
    /// Up to the last event before the first event that is later than this, in nanoseconds since 1970.
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
    /// Fails if the text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let point_error = || Error::Point { text: text.to_owned() };
        if let Some(position) = text.strip_prefix('@') {
            return position.parse().map(Position).map(Self::Position).map_err(|_| point_error());
        }
        if let Ok(number) = text.parse::<u64>() {
            return match number {
                NANOS_FROM.. => i64::try_from(number).map(Self::Time).map_err(|_| point_error()),
                _ => Ok(Self::Ordinal(number)),
            };
        }
        // With a sign it is no ordinal, and no time that a tape has.
        let time = text.parse::<UnixNanos>().ok().filter(|_| !text.starts_with('-'));
        time.map(|ts| Self::Time(ts.0)).ok_or_else(point_error)
    }

    /// Returns whether a frame lies after this point. Bookkeeping has no ordinal of its own, and neither bookkeeping
    /// nor a message has a time. The time of an event that is flagged `clock_ahead` is not used.
    #[inline]
    pub fn is_before(self, address: EventAddress, frame: &Frame<'_>) -> bool {
        match self {
            Self::Ordinal(last) => !frame.header.is_meta() && address.seq > last,
            Self::Position(last) => address.position > last,
            Self::Time(last) => {
                frame.header.flags() & (flags::META | flags::CLOCK_AHEAD) == 0
                    && Event::new(frame.bytes).is_some_and(|event| event.ts_event().0 > last)
            }
        }
    }
}

/// Reads a time in UTC or nanoseconds since 1970, as [`UnixNanos`] does.
///
/// # Errors
/// Fails if the text has neither form.
pub fn parse_time(text: &str) -> Result<UnixNanos, Error> {
    text.parse().map_err(|_| Error::Time { text: text.to_owned() })
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
    /// Fails if the text has neither form.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bound_error = || Error::Bound { text: text.to_owned() };
        match text.strip_prefix('@') {
            Some(position) => {
                position.parse().map(Position).map(TapeRangeBound::Position).map_err(|_| bound_error())
            }
            None => text.parse().map(TapeRangeBound::Ordinal).map_err(|_| bound_error()),
        }
    }

    /// Returns whether `address` is this place or after it.
    #[inline]
    pub fn is_reached_by(self, address: EventAddress) -> bool {
        match self {
            Self::Ordinal(n) => address.seq >= n,
            Self::Position(p) => address.position >= p,
        }
    }

    /// Returns whether this place is before `address`.
    #[inline]
    pub fn is_before_event(self, address: EventAddress) -> bool {
        match self {
            Self::Ordinal(n) => address.seq > n,
            Self::Position(p) => address.position > p,
        }
    }

    /// Returns whether this place is after the other place. An ordinal and a position cannot be compared and give
    /// false.
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

/// Writes nanoseconds since 1970 as UTC: `2011-11-24 06:28:56.151000000`.
pub fn utc(ns: i64) -> String {
    UtcMoment(UnixNanos(ns)).to_string()
}

/// A plain number from here on is a time: no tape has that many events, and the year is 1970.
const NANOS_FROM: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn stop_point(text: &str) -> Option<TapeStopPoint> {
        TapeStopPoint::parse(text).ok()
    }

    /// Fails if a number means the wrong thing: an ordinal of `--at` is below 10^15, and a number of `--since` is
    /// always a time.
    #[test]
    fn numbers_are_nanoseconds_where_only_a_time_can_be() {
        for (text, ns) in [("17", 17), ("-17", -17), ("1970-01-01 00:00:00.5", 500_000_000)] {
            assert_eq!(parse_time(text).unwrap(), UnixNanos(ns), "{text}");
        }
        for text in ["", "-", "@17", "+17", "1e9", "99999999999999999999", "noon"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(stop_point("999999999999999"), Some(TapeStopPoint::Ordinal(999_999_999_999_999)));
        assert_eq!(stop_point("1000000000000000"), Some(TapeStopPoint::Time(1_000_000_000_000_000)));
    }

    /// Fails if a time is misread, because the user would see the book of another moment unnoticed.
    #[test]
    fn points_are_read_as_they_are_printed() {
        assert_eq!(stop_point("17"), Some(TapeStopPoint::Ordinal(17)));
        assert_eq!(stop_point("@4096"), Some(TapeStopPoint::Position(Position(4096))));
        assert_eq!(stop_point("1772443800000000000"), Some(TapeStopPoint::Time(1_772_443_800_000_000_000)));
        assert_eq!(stop_point("2026-03-02 09:30:00"), Some(TapeStopPoint::Time(1_772_443_800_000_000_000)));
        assert_eq!(
            stop_point("2026-03-02T09:30:00.5Z"),
            Some(TapeStopPoint::Time(1_772_443_800_500_000_000))
        );
        for ns in [0, 951_782_400_000_000_000, 1_709_164_800_000_000_001, -1, 4_102_444_799_999_999_999] {
            assert_eq!(stop_point(&utc(ns)), Some(TapeStopPoint::Time(ns)));
        }
        for (text, seconds) in
            [("2026-03-02", 0), ("2026-03-02T14:30", 52_200), ("2026-03-02 14:30Z", 52_200)]
        {
            assert_eq!(
                stop_point(text),
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
            assert_eq!(stop_point(text), None, "{text}");
        }
    }
}
