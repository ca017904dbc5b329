//! Counts of seconds, milliseconds, microseconds and nanoseconds.

use super::fault::TimeFault;

/// Converts a count since 1970 to nanoseconds; a unit is ten to the `power` nanoseconds (9 for seconds, 6 for
/// milliseconds).
///
/// # Errors
/// Fails if the text is no number, has places beyond a nanosecond that are not 0, or does not fit into 64 bits.
pub fn since_1970(text: &[u8], power: u32) -> Result<i64, TimeFault> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (digits, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        None => (text, 0),
        Some(exponent_index) => (&text[..exponent_index], parse_exponent(&text[exponent_index + 1..])?),
    };
    let (integer_digits, fraction) = match digits.iter().position(|b| *b == b'.') {
        None => (digits, &[][..]),
        Some(point_index) if point_index + 1 == digits.len() => return Err(TimeFault::Form),
        Some(point_index) => (&digits[..point_index], &digits[point_index + 1..]),
    };
    let zeros = fraction.iter().rev().take_while(|b| **b == b'0').count();
    let fraction = &fraction[..fraction.len() - if fraction.len() > COUNT_DIGITS_MAX { 0 } else { zeros }];
    let all_digits = integer_digits.iter().chain(fraction).all(u8::is_ascii_digit);
    if integer_digits.is_empty() || !all_digits {
        return Err(TimeFault::Form);
    }
    if integer_digits.len() > COUNT_DIGITS_MAX || fraction.len() > COUNT_DIGITS_MAX {
        return Err(if integer_digits.len() > COUNT_DIGITS_MAX {
            TimeFault::Range
        } else {
            TimeFault::Fraction
        });
    }
    // Places of the last digit above a nanosecond.
    let mut scale_power = power as i32 + exponent - fraction.len() as i32;
    let mut value = 0i128;
    for digit in integer_digits.iter().chain(fraction) {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(i128::from(digit - b'0')))
            .ok_or(TimeFault::Range)?;
    }
    while scale_power < 0 && value != 0 {
        if value % 10 != 0 {
            return Err(TimeFault::Fraction);
        }
        (value, scale_power) = (value / 10, scale_power + 1);
    }
    let scale = u32::try_from(scale_power.max(0)).ok().and_then(|p| 10i128.checked_pow(p));
    let nanos = match scale {
        _ if value == 0 => 0,
        Some(scale) => value.checked_mul(scale).ok_or(TimeFault::Range)?,
        None => return Err(TimeFault::Range),
    };
    let nanos = i64::try_from(if negative { -nanos } else { nanos }).map_err(|_| TimeFault::Range)?;
    if nanos == i64::MIN { Err(TimeFault::Range) } else { Ok(nanos) }
}

/// Parses an exponent of at most three digits.
fn parse_exponent(text: &[u8]) -> Result<i32, TimeFault> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TimeFault::Form);
    }
    if digits.len() > 3 {
        return Err(TimeFault::Range);
    }
    let value = digits.iter().fold(0, |n, b| n * 10 + i32::from(b - b'0'));
    Ok(if negative { -value } else { value })
}

/// Digits of a count before its point, and after it.
const COUNT_DIGITS_MAX: usize = 30;
