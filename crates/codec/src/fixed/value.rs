//! Values of columns.

use crate::times::calendar::DAY_NANOS;
use std::fmt::Write;
use unitape_model::Decimal;
use unitape_model::calendar::civil_from_days;

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
    /// Nanoseconds since midnight of an unknown day.
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
                let mut last_value = 0;
                for &byte in bytes {
                    if !(squeeze && byte == b' ' && last_value == b' ') {
                        text.0.push(byte);
                    }
                    last_value = byte;
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

/// Writes text into a byte buffer.
struct FmtWriter<'o>(&'o mut Vec<u8>);

impl Write for FmtWriter<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn write_date(out: &mut impl Write, days: i32) -> std::fmt::Result {
    let (year, month, day) = civil_from_days(days.into());
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// Writes a time with as many decimals as it needs, in threes.
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
