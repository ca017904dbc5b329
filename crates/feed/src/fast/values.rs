//! Values of FAST as numbers: exactly, or not at all.

use super::config::Unit;
use super::plan::{NOTHING, Table};
use unitape_codec::fast::Value;
use unitape_codec::fix::value;
use unitape_model::{Decimal, Price, Quantity};

/// A whole number that is not negative; bytes are one, the highest first.
#[inline]
pub(super) fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::UInt(n) => Some(n),
        Value::Int(n) => u64::try_from(n).ok(),
        Value::Bytes(bytes) => whole(bytes),
        Value::Text(text) => crate::mapping::parse_u64(text),
        Value::Decimal { .. } => None,
    }
}

#[inline]
fn whole(bytes: &[u8]) -> Option<u64> {
    match *bytes {
        [a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ if bytes.len() > 8 => None,
        _ => Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))),
    }
}

/// What a code means, [`NOTHING`] if nothing.
#[inline]
pub(super) fn code(table: &Table, value: Value<'_>) -> u8 {
    match value {
        Value::UInt(n) => table.numbers.get(n as usize).copied().filter(|_| n < 256).unwrap_or(NOTHING),
        Value::Int(n) => {
            usize::try_from(n).ok().and_then(|n| table.numbers.get(n)).copied().unwrap_or(NOTHING)
        }
        Value::Text([letter]) => table.letters[usize::from(*letter)],
        _ => NOTHING,
    }
}

#[inline]
fn parts(value: Value<'_>, exponent_of_int: i8) -> Option<(i64, i8)> {
    match value {
        Value::Decimal { mantissa, exponent } => Some((mantissa, exponent)),
        Value::Int(n) => Some((n, exponent_of_int)),
        Value::UInt(n) => Some((i64::try_from(n).ok()?, exponent_of_int)),
        _ => None,
    }
}

/// A price; none if it is none of ours.
#[inline]
pub(super) fn px(value: Value<'_>, exponent_of_int: i8) -> Option<Price> {
    let (mantissa, exponent) = parts(value, exponent_of_int)?;
    // Few prices have more places than ours, and they need not be in one form for this.
    match (-9..=0).contains(&exponent) {
        true => Price::from_decimal(Decimal::from_canonical(mantissa, exponent)).ok(),
        false => Price::from_decimal(Decimal::new(mantissa, exponent).ok()?).ok(),
    }
}

/// A quantity.
#[inline]
pub(super) fn qty(value: Value<'_>, exponent_of_int: i8) -> Option<Quantity> {
    let (mantissa, exponent) = parts(value, exponent_of_int)?;
    Decimal::new(mantissa, exponent).ok()
}

/// A time.
#[inline]
pub(super) fn time(value: Value<'_>, unit: Unit) -> Option<i64> {
    let number = number(value)?;
    let scaled = |nanos: i64| i64::try_from(number).ok()?.checked_mul(nanos);
    match unit {
        Unit::Nanos => scaled(1),
        Unit::Micros => scaled(1000),
        Unit::Millis => scaled(1_000_000),
        Unit::Seconds => scaled(1_000_000_000),
        Unit::Digits => digits(number),
    }
}

/// The time of YYYYMMDDhhmmssfff.
fn digits(number: u64) -> Option<i64> {
    let (day, time) = (number / 1_000_000_000, number % 1_000_000_000);
    if day > 99_991_231 {
        return None;
    }
    let (mut text, mut left) = ([b'0'; 8], day);
    for digit in text.iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    let midnight = value::date(&text)?;
    let (millis, seconds, minutes, hours) =
        (time % 1000, time / 1000 % 100, time / 100_000 % 100, time / 10_000_000);
    (hours < 24 && minutes < 60 && seconds < 61)
        .then(|| ((hours * 3600 + minutes * 60 + seconds) * 1000 + millis) as i64 * 1_000_000)
        .and_then(|nanos| midnight.checked_add(nanos))
}
