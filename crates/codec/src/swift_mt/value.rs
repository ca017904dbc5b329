//! Components as plain values: exact, or not at all.
//!
//! | SWIFT | here |
//! |---|---|
//! | `15d`, `12d` (`3700,50`) | [`amount`]: mantissa × 10^exponent, as many decimals as written |
//! | `6!n` (`190425`) | [`date`]: a [`CalendarDay`]; years 80 to 99 are 1980 to 1999, 00 to 79 are 2000 to 2079 |
//! | `8!n` (`20190425`) | [`date_long`] |
//! | `4!n` after a value date (`0425`) | [`entry_date`]: the day nearest to the value date |
//! | `4!n`, `6!n` (`2359`, `235959`) | [`time`]: seconds since midnight |
//! | `4!a2!a2!c[3!c]` | [`is_bic`] |
//!
//! The standard wants a comma in every amount and a digit before it. Banks leave out either; both are read, and
//! so are leading zeros beyond the fifteen characters of the standard, as some fill up with them.

pub use unitape_base::Decimal;
pub use unitape_base::date::CalendarDay;

use super::words;
use unitape_base::digits::pair;
use unitape_model::calendar::days_of_month;

/// Reads an amount: digits with at most one comma. `None` for anything else, for more than
/// [`AMOUNT_MAX`] characters, and beyond 18 digits (leading zeros not counted).
#[inline]
#[must_use]
pub fn amount(text: &[u8]) -> Option<Decimal> {
    if text.len() > AMOUNT_MAX {
        return None;
    }
    let (mut mantissa, mut decimals, mut comma, mut digits) = (0i64, 0i8, false, 0);
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            if mantissa >= LAST {
                return None;
            }
            mantissa = mantissa * 10 + i64::from(digit);
            decimals += i8::from(comma);
            digits += 1;
        } else if byte == b',' && !comma {
            comma = true;
        } else {
            return None;
        }
    }
    (digits > 0).then_some(Decimal { mantissa, exponent: -decimals })
}

/// Characters of an amount, at most.
pub const AMOUNT_MAX: usize = 24;

/// A mantissa that has 18 digits.
const LAST: i64 = 100_000_000_000_000_000;

/// Appends an amount as a decimal number: a point for the comma, no zeros before the first digit that
/// counts, all decimals as written (`0001,50` is `1.50`, `14,` is `14`, `,5` is `0.5`).
pub fn write_amount(text: &[u8], out: &mut Vec<u8>) {
    let (integer_digits, decimals) = match text.iter().position(|b| *b == b',') {
        Some(comma) => (&text[..comma], &text[comma + 1..]),
        None => (text, &[][..]),
    };
    let zeros = integer_digits.iter().take_while(|b| **b == b'0').count();
    out.extend_from_slice(if zeros == integer_digits.len() { b"0" } else { &integer_digits[zeros..] });
    if !decimals.is_empty() {
        out.push(b'.');
        out.extend_from_slice(decimals);
    }
}

/// Reads `YYMMDD`.
#[inline]
#[must_use]
pub fn date(text: &[u8]) -> Option<CalendarDay> {
    let &[a, b, c, d, e, f] = text else { return None };
    CalendarDay::new(full_year(pair(a, b)?), pair(c, d)?, pair(e, f)?)
}

/// Reads the value date of a statement line, `YYMMDD`: as [`date`], but where interest is counted in months of
/// 30 days, February has them too: its 29th and 30th are its last day.
#[inline]
#[must_use]
pub fn value_date(text: &[u8]) -> Option<CalendarDay> {
    let &[a, b, b'0', b'2', e, f] = text else { return date(text) };
    let (year, day) = (full_year(pair(a, b)?), pair(e, f)?);
    let february_days = days_of_month(year.into(), 2) as u8;
    CalendarDay::new(year, 2, if day == 29 || day == 30 { february_days.min(day) } else { day })
}

#[inline]
fn full_year(two: u8) -> u16 {
    if two >= 80 { 1900 + u16::from(two) } else { 2000 + u16::from(two) }
}

/// Reads `YYYYMMDD`.
#[inline]
#[must_use]
pub fn date_long(text: &[u8]) -> Option<CalendarDay> {
    let &[a, b, c, d, e, f, g, h] = text else { return None };
    CalendarDay::new(u16::from(pair(a, b)?) * 100 + u16::from(pair(c, d)?), pair(e, f)?, pair(g, h)?)
}

/// Reads `MMDD`, the entry date after a value date: the nearest day that has this name.
#[inline]
#[must_use]
pub fn entry_date(text: &[u8], value: CalendarDay) -> Option<CalendarDay> {
    let &[a, b, c, d] = text else { return None };
    let (month, day) = (pair(a, b)?, pair(c, d)?);
    let near = |day: &CalendarDay| (day.number() - value.number()).abs() <= HALF_A_YEAR;
    if let Some(day) = CalendarDay::new(value.year, month, day).filter(near) {
        // The same day of another year is further away.
        return Some(day);
    }
    let years = [value.year, value.year - 1, value.year + 1];
    let days = years.into_iter().filter_map(|year| CalendarDay::new(year, month, day));
    days.min_by_key(|day| (day.number() - value.number()).abs())
}

/// A number of days below half of the shortest year.
const HALF_A_YEAR: i64 = 182;

/// Reads `HHMM` or `HHMMSS` as seconds since midnight; second 60 is the first one of the next minute.
#[inline]
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (hours, minutes, seconds) = match *text {
        [a, b, c, d] => (pair(a, b)?, pair(c, d)?, 0),
        [a, b, c, d, e, f] => (pair(a, b)?, pair(c, d)?, pair(e, f)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60 && seconds <= 60)
        .then(|| (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds))
}

/// Returns whether the text has the form of a BIC: four letters or digits, a country of two letters, two or five more
/// letters or digits.
#[inline]
#[must_use]
pub fn is_bic(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) else { return false };
    let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    let is_alphanumeric = words::alphanumerics(first) & words::alphanumerics(last) == words::HIGH;
    matches!(text.len(), 8 | 11) && is_alphanumeric && words::letters(first) >> 32 & 0x8080 == 0x8080
}

/// Returns whether the text has the form of an IBAN with correct check digits.
#[must_use]
pub fn is_iban(text: &[u8]) -> bool {
    if !(15..=34).contains(&text.len()) || !text[..2].iter().all(u8::is_ascii_uppercase) {
        return false;
    }
    let (head, tail) = text.split_at(4);
    let remainder = tail.iter().chain(head).try_fold(0u32, |sum, &byte| match byte {
        b'0'..=b'9' => Some((sum * 10 + u32::from(byte - b'0')) % 97),
        b'A'..=b'Z' => Some((sum * 100 + u32::from(byte - b'A') + 10) % 97),
        _ => None,
    });
    head[2..].iter().all(u8::is_ascii_digit) && remainder == Some(1)
}
