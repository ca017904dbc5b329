//! Field values as plain integers: exact, or not at all.
//!
//! | FIX type | here |
//! |---|---|
//! | Price, Qty, Amt, float | [`Decimal`]: mantissa × 10^exponent, as many decimals as written |
//! | int, SeqNum, NumInGroup, Length | [`int`] |
//! | UTCTimestamp | [`timestamp`]: nanoseconds since 1970-01-01 00:00 UTC |
//! | UTCDateOnly, LocalMktDate | [`date`]: the same for midnight of the day |
//! | UTCTimeOnly | [`time`]: nanoseconds since midnight |
//!
//! **Finer than nanoseconds.** FIX allows up to picoseconds. Digits after the ninth are dropped by
//! [`timestamp`] and [`time`], and [`picoseconds`] says what they were.
//!
//! **Leap seconds.** FIX allows second 60. UTC nanoseconds since 1970 have no number for it; it
//! reads as the first second of the next minute (`23:59:60.5` is `00:00:00.5` of the next day), so
//! that time never runs backwards by reading.

pub use unitape_base::Decimal;

use unitape_base::digits;

/// Reads a FIX float: optional `-`, digits, optional point and digits; no exponent, no `+`.
/// Leading and trailing zeros are allowed, and `.5` and `5.` too; nothing is rounded. `None` for
/// anything else, for more than 127 decimals and for a mantissa beyond i64.
///
/// Trailing zeros after the point that would overflow the mantissa are dropped, they say nothing.
#[inline]
#[must_use]
pub fn decimal(text: &[u8]) -> Option<Decimal> {
    if (1..=8).contains(&text.len()) {
        let d = digits::top(text);
        return decimal_8(d, 64 - 8 * text.len() as u32);
    }
    if let Some((first, last)) = text.split_last_chunk::<8>()
        && first.len() <= 8
    {
        return decimal_16(digits::top(first), 64 - 8 * first.len() as u32, digits::digits(*last));
    }
    let (negative, digits) = split_sign(text);
    decimal_19(negative, digits)
}

/// Parses one to eight bytes from [`digits::top`], with or without a sign. `shift` counts the bits below them.
#[inline(always)]
pub(super) fn decimal_8(d: u64, shift: u32) -> Option<Decimal> {
    let (d, negative) = parse_unsigned(d, shift);
    let point_mask = point_bits(d);
    let (d, decimals) = if point_mask == 0 { (d, 0) } else { without_point(d, point_mask) };
    // Seldom so short; a sign and a point alone are no number.
    if shift >= 48 && 64 - shift == 8 * (negative as u32 + u32::from(point_mask != 0))
        || !digits::all_digits(d)
    {
        return None;
    }
    let mantissa = (i64::from(digits::number(d)) ^ -negative) + negative;
    Some(Decimal { mantissa, exponent: -(decimals as i8) })
}

/// Parses nine to sixteen bytes: the last eight as [`digits::digits`] gives them, the first as [`digits::top`] does.
/// `shift` counts the bits below the first.
#[inline(always)]
fn decimal_16(first: u64, shift: u32, last: u64) -> Option<Decimal> {
    let (first, negative) = parse_unsigned(first, shift);
    let (in_first, in_last) = (point_bits(first), point_bits(last));
    let (first, last, decimals) = if in_first != 0 {
        let (first, decimals) = without_point(first, in_first);
        (first, last, decimals + 8)
    } else if in_last != 0 {
        // All that is before the point moves up.
        let (last, decimals) = without_point(last, in_last);
        (first << 8, last | first >> 56, decimals)
    } else {
        (first, last, 0)
    };
    if !digits::all_digits(first) || !digits::all_digits(last) {
        return None;
    }
    let number = i64::from(digits::number(first)) * 100_000_000 + i64::from(digits::number(last));
    Some(Decimal { mantissa: (number ^ -negative) + negative, exponent: -(decimals as i8) })
}

/// Digits whose sign is a leading zero, and one if there was one. Changes are of either sign: no branch.
#[inline(always)]
fn parse_unsigned(d: u64, shift: u32) -> (u64, i64) {
    let negative = (d >> shift) as u8 == SIGN;
    (d ^ (u64::from(negative) * u64::from(SIGN)) << shift, i64::from(negative))
}

/// Marks the first point: the lowest set bit is in its byte. Bits above it may be false.
#[inline(always)]
const fn point_bits(d: u64) -> u64 {
    let x = d ^ (digits::ONES * POINT);
    x.wrapping_sub(digits::ONES) & !x & digits::HIGH
}

/// Digits without the first point, which [`point_bits`] has found, and the number of those after it.
#[inline(always)]
const fn without_point(d: u64, point_mask: u64) -> (u64, u32) {
    // The digits before the point move up by its one byte; a second point is no digit.
    let point_unit = (point_mask & point_mask.wrapping_neg()) >> 7;
    let integer_part = d & (point_unit - 1);
    let fraction = d - integer_part - point_unit * POINT;
    (integer_part << 8 | fraction, 7 - point_unit.trailing_zeros() / 8)
}

/// A minus as a byte among digits that are 0 to 9.
const SIGN: u8 = b'-' ^ b'0';

/// The point, as a byte among digits that are 0 to 9.
const POINT: u64 = (b'.' ^ b'0') as u64;

/// Reads the digits of a decimal of more than sixteen bytes.
#[inline(never)]
fn decimal_19(negative: bool, digits: &[u8]) -> Option<Decimal> {
    // 18 digits and a point cannot overflow: the common case needs no check per digit.
    if digits.len() > 19 {
        return decimal_long(negative, digits);
    }
    let (mut mantissa, mut point, mut digit_count) = (0i64, None, 0usize);
    for (i, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            if digit_count == 18 {
                return decimal_long(negative, digits);
            }
            mantissa = mantissa * 10 + i64::from(digit);
            digit_count += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(i);
        } else {
            return None;
        }
    }
    if digit_count == 0 {
        return None;
    }
    let decimals = point.map_or(0, |point_index| digits.len() - point_index - 1);
    let mantissa = if negative { -mantissa } else { mantissa };
    Some(Decimal { mantissa, exponent: -(decimals as i8) })
}

#[cold]
fn decimal_long(negative: bool, digits: &[u8]) -> Option<Decimal> {
    let (integer_digits, mut fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(point_index) => (&digits[..point_index], &digits[point_index + 1..]),
        None => (digits, &[][..]),
    };
    if integer_digits.len() + fraction.len() == 0
        || !integer_digits.iter().chain(fraction).all(u8::is_ascii_digit)
    {
        return None;
    }
    loop {
        let mantissa = integer_digits.iter().chain(fraction).try_fold(0i64, |sum, &digit| {
            let digit = i64::from(digit - b'0');
            let digit = if negative { -digit } else { digit };
            sum.checked_mul(10)?.checked_add(digit)
        });
        match (mantissa, fraction) {
            (Some(mantissa), _) if fraction.len() <= 127 => {
                return Some(Decimal { mantissa, exponent: -(fraction.len() as i8) });
            }
            (_, [rest @ .., b'0']) => fraction = rest,
            _ => return None,
        }
    }
}

/// Reads a FIX int: optional `-` and digits. `None` for anything else and beyond i64.
#[inline]
#[must_use]
pub fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.len() > 8 {
        return int_long(negative, digits);
    }
    let d = digits::top(digits);
    if digits.is_empty() || !digits::all_digits(d) {
        return None;
    }
    let value = i64::from(digits::number(d));
    Some(if negative { -value } else { value })
}

#[inline(never)]
fn int_long(negative: bool, digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |sum, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        let digit = i64::from(digit);
        sum.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    })
}

#[inline(always)]
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

/// Reads `YYYYMMDD-HH:MM:SS`, optionally with `.` and 1 to 12 digits (3, 6, 9 or 12 in the standard),
/// as nanoseconds since 1970-01-01 00:00 UTC. `None` for anything else and outside 1678 to 2261.
#[inline]
#[must_use]
pub fn timestamp(text: &[u8]) -> Option<i64> {
    TimestampReader::default().read(text)
}

/// Reads timestamps, and remembers the day of the last one: most of a feed are of one day.
///
/// ```
/// use unitape_codec::fix::value::{TimestampReader, timestamp};
///
/// let mut timestamps = TimestampReader::default();
/// let text = b"20260302-09:00:00.123";
/// assert_eq!(timestamps.read(text), Some(1_772_442_000_123_000_000));
/// assert_eq!(timestamps.read(text), timestamp(text));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampReader {
    /// The eight bytes of the last [`date`], and its value.
    day: [u8; 8],
    midnight: i64,
}

impl Default for TimestampReader {
    fn default() -> Self {
        TimestampReader { day: *b"19700101", midnight: 0 }
    }
}

impl TimestampReader {
    /// Reads a timestamp as [`timestamp`] does.
    #[inline]
    #[must_use]
    pub fn read(&mut self, text: &[u8]) -> Option<i64> {
        let (day, rest) = text.split_first_chunk::<8>()?;
        let (clock, fraction) = rest.split_first_chunk::<9>()?;
        let &[b'-', ref clock @ ..] = clock else { return None };
        if *day != self.day {
            self.set_day(*day)?;
        }
        Some(self.midnight + clock_and_fraction(*clock, text, fraction)?)
    }

    #[inline(never)]
    fn set_day(&mut self, day: [u8; 8]) -> Option<()> {
        *self = TimestampReader { day, midnight: date(&day)? };
        Some(())
    }
}

/// Reads `YYYYMMDD` as nanoseconds since 1970-01-01 of midnight UTC. `None` for anything else,
/// for days the calendar does not have, and outside 1678 to 2261.
#[inline]
#[must_use]
pub fn date(text: &[u8]) -> Option<i64> {
    let day = digits::digits(text.try_into().ok()?);
    if !digits::all_digits(day) {
        return None;
    }
    Some(epoch_days(day)? * 86_400 * NANOS)
}

/// Reads `HH:MM:SS`, optionally with `.` and 1 to 12 digits, as nanoseconds since midnight. Second
/// 60 reads as the second after 59.
#[inline]
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_first_chunk::<8>()?;
    clock_and_fraction(*clock, text, fraction)
}

/// Converts `HH:MM:SS` and the fraction at the end of `text` to nanoseconds.
#[inline(always)]
fn clock_and_fraction(clock: [u8; 8], text: &[u8], fraction: &[u8]) -> Option<i64> {
    let clock = clock_digits(clock);
    let (nanos, fraction_wrong) = fraction_of(text, fraction)?;
    if (clock_wrong(clock) | fraction_wrong) & digits::HIGH != 0 {
        return None;
    }
    Some(clock_seconds(clock)? * NANOS + nanos)
}

/// Converts `HH:MM:SS` to digits of 0 to 9; colons become 0.
#[inline(always)]
const fn clock_digits(text: [u8; 8]) -> u64 {
    u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"00:00:00")
}

/// Sets the highest bit of some byte if a digit is not 0 to 9, or if a byte in the place of a colon is no colon.
#[inline(always)]
const fn clock_wrong(clock: u64) -> u64 {
    // A byte beyond 9, which might carry here, is no digit there.
    let colons = (clock & 0x0000_ff00_00ff_0000).wrapping_add(0x0000_7f00_007f_0000);
    digits::no_digits(clock) | colons
}

/// Converts `HH:MM:SS` to seconds since midnight.
#[inline(always)]
fn clock_seconds(clock: u64) -> Option<i64> {
    let parts = digits::pairs(clock) & 0x00ff_0000_ff00_00ff;
    // Each is at most 99; more than it may be sets its highest bit.
    let digit_bias = (127 - 23) | (127 - 59) << 24 | (127 - 60) << 48;
    if (parts + digit_bias) & digits::HIGH & 0x00ff_0000_ff00_00ff != 0 {
        return None;
    }
    let (hours, minutes, seconds) = (parts & 0xff, parts >> 24 & 0xff, parts >> 48);
    Some(((hours * 60 + minutes) * 60 + seconds) as i64)
}

/// Converts `fraction` to nanoseconds. It must be the end of `text`, and empty or a point and 1 to 12 digits. The
/// second number has the highest bit of a byte set if one of them is no digit.
#[inline(always)]
fn fraction_of(text: &[u8], fraction: &[u8]) -> Option<(i64, u64)> {
    if let &[b'.', a, b, c] = fraction {
        // Milliseconds, which most times have. One byte can carry into no other.
        let [a, b, c] = [a, b, c].map(|digit| u64::from(digit ^ b'0'));
        let wrong = (a + 0x76) | (b + 0x76) | (c + 0x76);
        return Some(((a * 100 + b * 10 + c) as i64 * 1_000_000, wrong | a | b | c));
    }
    let Some((&point, digits)) = fraction.split_first() else { return Some((0, 0)) };
    if point != b'.' {
        return None;
    }
    // A clock is before the digits, so that there are eight bytes.
    if let Some(&scale) = SCALE.get(digits.len().wrapping_sub(1))
        && let Some(eight) = text.last_chunk::<8>()
    {
        let shift = 64 - 8 * digits.len() as u32;
        let d = digits::digits(*eight) >> shift << shift;
        return Some((i64::from(digits::number(d)) * i64::from(scale), digits::no_digits(d)));
    }
    fraction_long(digits).map(|nanos| (nanos, 0))
}

#[inline(never)]
fn fraction_long(digits: &[u8]) -> Option<i64> {
    if !(9..=12).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits[..9].iter().fold(0, |nanos, &digit| nanos * 10 + i64::from(digit - b'0')))
}

/// Days from 1970-01-01 to the day of eight digits.
#[inline(always)]
fn epoch_days(day: u64) -> Option<i64> {
    let pairs = digits::pairs(day);
    let (century, of_century) = (u32::from(pairs as u8), u32::from((pairs >> 16) as u8));
    let (month, day) = (u32::from((pairs >> 32) as u8), u32::from((pairs >> 48) as u8));
    let year = century * 100 + of_century;
    let leap = if of_century == 0 { century } else { of_century } % 4 == 0;
    let months = &MONTHS[usize::from(leap)];
    let &(before, length) = months.get(month as usize)?;
    if day.wrapping_sub(1) >= u32::from(length) || !(1678..=2261).contains(&year) {
        return None;
    }
    let (years, centuries) = (year - 1, century - u32::from(of_century == 0));
    let days = years * 365 + years / 4 - centuries + centuries / 4 + u32::from(before) + day;
    Some(i64::from(days) - 719_163)
}

/// Returns the picoseconds beyond the nanoseconds, 0 to 999; [`time`] or [`timestamp`] must have accepted `text`.
#[must_use]
pub fn picoseconds(text: &[u8]) -> u16 {
    let Some(point) = text.iter().rposition(|&byte| byte == b'.') else { return 0 };
    let finer = text.get(point + 10..).unwrap_or_default();
    (0..3).fold(0, |sum, index| {
        let digit = finer.get(index).map_or(0, |digit| digit.wrapping_sub(b'0').min(9));
        sum * 10 + u16::from(digit)
    })
}

const NANOS: i64 = 1_000_000_000;
/// Nanoseconds of the last of one to eight digits.
const SCALE: [u32; 8] = [100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10];

/// Days before each month, counted from 1, and its days; of a year without a leap day and one with it.
static MONTHS: [[(u16, u8); 13]; 2] = {
    let mut months = [[(0, 0); 13]; 2];
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut leap = 0;
    while leap < 2 {
        let (mut month, mut before) = (1, 0);
        while month <= 12 {
            let length = lengths[month - 1] + if month == 2 { leap as u8 } else { 0 };
            months[leap][month] = (before, length);
            before += length as u16;
            month += 1;
        }
        leap += 1;
    }
    months
};

#[cfg(test)]
mod tests;
