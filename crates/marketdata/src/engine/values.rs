//! Values of FAST as numbers: exactly, or not at all.

use super::codes::{CodeMeanings, NOTHING};
use super::config::TimeUnit;
use unitape_base::date::CalendarDay;
use unitape_base::digits::parse_u64;
use unitape_fast::{DecodedValue, FieldValue};
use unitape_model::num::EXPONENT_MAX;
use unitape_model::{Decimal, Price, Quantity};

/// Reads a whole number that is not negative. Bytes form a number, the highest first.
#[inline(always)]
pub(super) fn unsigned_number(value: DecodedValue<'_>) -> Option<u64> {
    let not_negative = |n: i64| u64::try_from(n).ok();
    value
        .uint()
        .or_else(|| value.int().and_then(not_negative))
        .or_else(|| value.uint_of_bytes())
        .or_else(|| number_of(value.get()))
}

#[inline(never)]
fn number_of(value: FieldValue<'_>) -> Option<u64> {
    match value {
        FieldValue::Text(text) => parse_u64(text),
        // Below zero, longer than eight bytes, or none.
        _ => None,
    }
}

/// Returns the meaning of a code, or [`NOTHING`] if it has no meaning.
#[inline(always)]
pub(super) fn code(table: &CodeMeanings, value: DecodedValue<'_>) -> u8 {
    let of_number = |n: u64| if n < 256 { table.numbers[n as usize] } else { NOTHING };
    match value.uint() {
        Some(n) => of_number(n),
        None => match value.get() {
            // One below zero is far above them.
            FieldValue::Int(n) => of_number(n as u64),
            FieldValue::Text([letter]) => table.letters[usize::from(*letter)],
            _ => NOTHING,
        },
    }
}

/// Reads mantissa and exponent; the caller gives the exponent of whole numbers.
#[inline(always)]
fn parts(value: DecodedValue<'_>, exponent_of_int: i8) -> Option<(i64, i8)> {
    let integer = || value.int().or_else(|| i64::try_from(value.uint()?).ok());
    value.decimal().or_else(|| Some((integer()?, exponent_of_int)))
}

/// Reads a price, or returns `None` if no [`Price`] is equal to it.
#[inline(always)]
pub(super) fn px(value: DecodedValue<'_>, exponent_of_int: i8) -> Option<Price> {
    let (mantissa, exponent) = parts(value, exponent_of_int)?;
    px_of(mantissa, exponent)
}

/// Makes a price from a mantissa and an exponent.
#[inline(always)]
pub(super) fn px_of(mantissa: i64, exponent: i8) -> Option<Price> {
    // Few prices have more places than ours, and they need not be in one form for this.
    match (-9..=0).contains(&exponent) {
        true => Price::from_decimal(Decimal::from_canonical(mantissa, exponent)).ok(),
        false => other_px(mantissa, exponent),
    }
}

#[cold]
fn other_px(mantissa: i64, exponent: i8) -> Option<Price> {
    Price::from_decimal(Decimal::new(mantissa, exponent).ok()?).ok()
}

/// Reads a quantity.
#[inline(always)]
pub(super) fn qty(value: DecodedValue<'_>, exponent_of_int: i8) -> Option<Quantity> {
    let (mantissa, exponent) = parts(value, exponent_of_int)?;
    qty_of(mantissa, exponent)
}

/// Makes a quantity from a mantissa and an exponent.
#[inline(always)]
pub(super) fn qty_of(mantissa: i64, exponent: i8) -> Option<Quantity> {
    // Most have no zero at their end to remove.
    match mantissa % 10 != 0 && (-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
        true => Some(Decimal::from_canonical(mantissa, exponent)),
        false => other_qty(mantissa, exponent),
    }
}

#[inline(never)]
fn other_qty(mantissa: i64, exponent: i8) -> Option<Quantity> {
    Decimal::new(mantissa, exponent).ok()
}

/// Reads a time.
#[inline(always)]
pub(super) fn time_ns(value: DecodedValue<'_>, unit: TimeUnit) -> Option<i64> {
    time_in(unsigned_number(value)?, unit)
}

/// Converts a number to a time in nanoseconds.
#[inline(always)]
pub(super) fn time_in(number: u64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Nanos => i64::try_from(number).ok(),
        _ => time_of(number, unit),
    }
}

/// Converts a number to a time in nanoseconds, if it is in range.
#[inline(never)]
pub(super) fn time_of(number: u64, unit: TimeUnit) -> Option<i64> {
    let scaled = |nanos: i64| i64::try_from(number).ok()?.checked_mul(nanos);
    match unit {
        TimeUnit::Nanos => scaled(1),
        TimeUnit::Micros => scaled(1000),
        TimeUnit::Millis => scaled(1_000_000),
        TimeUnit::Seconds => scaled(1_000_000_000),
        TimeUnit::Digits => parse_time_digits(number),
    }
}

/// Converts YYYYMMDDhhmmssfff to a time in nanoseconds.
fn parse_time_digits(number: u64) -> Option<i64> {
    let (day, time) = (number / 1_000_000_000, number % 1_000_000_000);
    let year = u16::try_from(day / 10_000).ok()?;
    let midnight = CalendarDay::new(year, (day / 100 % 100) as u8, (day % 100) as u8)?.nanos();
    let (millis, seconds, minutes, hours) =
        (time % 1000, time / 1000 % 100, time / 100_000 % 100, time / 10_000_000);
    (hours < 24 && minutes < 60 && seconds < 61)
        .then(|| ((hours * 3600 + minutes * 60 + seconds) * 1000 + millis) as i64 * 1_000_000)
        .and_then(|nanos| midnight.checked_add(nanos))
}
