//! Values of columns.

use std::fmt::Write;
use unitape_model::Decimal;

/// The value of a column, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnValue {
    /// Blank.
    #[default]
    None,
    /// Bytes of the record without their padding, as offsets from its start.
    Text {
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
    /// A whole number.
    Int(i64),
    /// `mantissa` × 10^`exponent`, with as many places as the column has.
    Decimal {
        /// All digits.
        mantissa: i64,
        /// Minus the places after the point.
        exponent: i8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since midnight, where nothing says of which day.
    Time(i64),
    /// UTC nanoseconds since 1970.
    Instant(i64),
    /// Yes or no.
    Flag(bool),
}

impl ColumnValue {
    /// Writes the value as plain text: decimals canonical, dates and times as ISO 8601 has them, flags `Y` and
    /// `N`. Text is the record's own bytes, with runs of blanks inside made one if `squeeze`.
    pub fn write(self, record: &[u8], squeeze: bool, out: &mut Vec<u8>) {
        let mut text = FmtWriter(out);
        // Writing to a Vec cannot fail.
        _ = match self {
            ColumnValue::None => Ok(()),
            ColumnValue::Text { start, end } => {
                let bytes = record.get(start as usize..end as usize).unwrap_or_default();
                let mut last = 0;
                for &byte in bytes {
                    if !(squeeze && byte == b' ' && last == b' ') {
                        text.0.push(byte);
                    }
                    last = byte;
                }
                Ok(())
            }
            ColumnValue::Int(n) => write!(text, "{n}"),
            ColumnValue::Decimal { mantissa, exponent } => match Decimal::new(mantissa, exponent) {
                Ok(d) => write!(text, "{d}"),
                // A layout has no more places than a decimal may have.
                Err(_) => Ok(()),
            },
            ColumnValue::Date(days) => write_date(&mut text, days),
            ColumnValue::Time(nanos) => write_time(&mut text, nanos),
            ColumnValue::Instant(nanos) => write_date(&mut text, nanos.div_euclid(DAY_NANOS) as i32)
                .and_then(|()| text.write_char('T'))
                .and_then(|()| write_time(&mut text, nanos.rem_euclid(DAY_NANOS)))
                .and_then(|()| text.write_char('Z')),
            ColumnValue::Flag(yes) => text.write_str(if yes { "Y" } else { "N" }),
        };
    }
}

/// Text goes where bytes go.
struct FmtWriter<'o>(&'o mut Vec<u8>);

impl Write for FmtWriter<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Nanoseconds of a day.
pub const DAY_NANOS: i64 = 86_400_000_000_000;

fn write_date(out: &mut impl Write, days: i32) -> std::fmt::Result {
    let (year, month, day) = civil(days);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// With as many decimals as it takes, in threes.
fn write_time(out: &mut impl Write, nanos: i64) -> std::fmt::Result {
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    match nanos {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(out, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(out, ".{:06}", n / 1_000),
        n => write!(out, ".{n:09}"),
    }
}

/// Days since 1970-01-01 of a day that the calendar has, `None` of another. Years 1678 to 2261, which
/// nanoseconds can hold.
#[inline]
pub fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > month_days || !(1678..=2261).contains(&year) {
        return None;
    }
    // The year starts in March, so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    i32::try_from(y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468).ok()
}

/// Year, month, day of days since 1970-01-01.
pub fn civil(days: i32) -> (i64, i64, i64) {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A calendar wrong by a day around a leap year looks right for years.
    #[test]
    fn every_day_there_and_back() {
        let mut expected = days(1678, 1, 1).unwrap();
        for year in 1678..=2261 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let Some(found) = days(year, month, day) else { continue };
                    assert_eq!(found, expected, "{year}-{month}-{day}");
                    assert_eq!(civil(found), (year, month, day));
                    expected += 1;
                }
            }
        }
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!(days(2014, 2, 6), Some(16_107));
        assert_eq!(days(1900, 2, 29), None);
    }
}
