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
//! **Finer than nanoseconds.** FIX allows up to picoseconds. Digits behind the ninth are dropped by
//! [`timestamp`] and [`time`], and [`picoseconds`] says what they were.
//!
//! **Leap seconds.** FIX allows second 60. UTC nanoseconds since 1970 have no number for it; it
//! reads as the first second of the next minute (`23:59:60.5` is `00:00:00.5` of the next day), so
//! that time never runs backwards by reading.

use super::swar;
use super::tokens::Token;

/// An exact decimal: `mantissa` × 10^`exponent`, exponent 0 or negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// All digits as written, without the point.
    pub mantissa: i64,
    /// Minus the number of digits after the point.
    pub exponent: i8,
}

/// Reads a FIX float: optional `-`, digits, optional point and digits; no exponent, no `+`.
/// Leading and trailing zeros are allowed, and `.5` and `5.` too; nothing is rounded. `None` for
/// anything else, for more than 127 decimals and for a mantissa beyond i64.
///
/// Trailing zeros after the point that would overflow the mantissa are dropped, they say nothing.
#[inline]
#[must_use]
pub fn decimal(text: &[u8]) -> Option<Decimal> {
    if (1..=8).contains(&text.len()) {
        let d = swar::top(text);
        return decimal_8(d, 64 - 8 * text.len() as u32);
    }
    let (negative, digits) = signed(text);
    decimal_16(negative, digits)
}

/// The same in the message that `token` was read from, which spares the search for where to load
/// from: a value has a header before it.
#[inline(always)]
pub(super) fn decimal_in(message: &[u8], token: Token) -> Option<Decimal> {
    match top_of(message, token) {
        Some((d, shift)) => decimal_8(d, shift),
        None => decimal(token.of(message)),
    }
}

/// [`int`] in the message that `token` was read from.
#[inline(always)]
pub(super) fn int_in(message: &[u8], token: Token) -> Option<i64> {
    match top_of(message, token) {
        Some((d, _)) if swar::all_digits(d) => Some(i64::from(swar::number(d))),
        // A sign is seldom, and more than eight bytes too.
        _ => int(token.of(message)),
    }
}

/// A value of one to eight bytes as [`swar::top`] gives it, and the bits below it.
#[inline(always)]
fn top_of(message: &[u8], token: Token) -> Option<(u64, u32)> {
    let len = token.end.wrapping_sub(token.start);
    let eight = message.get(..token.end as usize)?.last_chunk::<8>()?;
    if len.wrapping_sub(1) >= 8 {
        return None;
    }
    let shift = len.wrapping_mul(8).wrapping_neg() & 63;
    let word = u64::from_le_bytes(*eight) ^ (swar::ONES * b'0' as u64);
    Some((word >> shift << shift, shift))
}

/// One to eight bytes from [`swar::top`], with a sign or without, and the bits below them.
#[inline(always)]
fn decimal_8(d: u64, shift: u32) -> Option<Decimal> {
    // A sign becomes a leading zero. There are prices and changes of either sign: no branch.
    let negative = u64::from((d >> shift) as u8 == SIGN);
    let d = d ^ (negative * u64::from(SIGN)) << shift;
    // The lowest bit set marks the first point; bits above it may be false.
    let x = d ^ (swar::ONES * POINT);
    let found = x.wrapping_sub(swar::ONES) & !x & swar::HIGH;
    let (d, decimals) = if found == 0 {
        (d, 0)
    } else {
        // What stands before the point moves up by its one byte; a second point is no digit.
        let below = (found & found.wrapping_neg()) >> 7;
        let whole = d & (below - 1);
        let fraction = d - whole - below * POINT;
        (whole << 8 | fraction, 7 - below.trailing_zeros() / 8)
    };
    let others = negative as u32 + u32::from(found != 0);
    if 64 - shift == 8 * others || !swar::all_digits(d) {
        return None;
    }
    let mantissa = (i64::from(swar::number(d)) ^ -(negative as i64)) + negative as i64;
    Some(Decimal { mantissa, exponent: -(decimals as i8) })
}

/// A minus as a byte among digits that are 0 to 9.
const SIGN: u8 = b'-' ^ b'0';

/// The point, as a byte among digits that are 0 to 9.
const POINT: u64 = (b'.' ^ b'0') as u64;

/// The same for more than eight bytes.
#[inline(never)]
fn decimal_16(negative: bool, digits: &[u8]) -> Option<Decimal> {
    // 18 digits and a point cannot overflow: the common case needs no check per digit.
    if digits.len() > 19 {
        return decimal_long(negative, digits);
    }
    let (mut mantissa, mut point, mut seen) = (0i64, None, 0usize);
    for (i, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            if seen == 18 {
                return decimal_long(negative, digits);
            }
            mantissa = mantissa * 10 + i64::from(digit);
            seen += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(i);
        } else {
            return None;
        }
    }
    if seen == 0 {
        return None;
    }
    let decimals = point.map_or(0, |at| digits.len() - at - 1);
    let mantissa = if negative { -mantissa } else { mantissa };
    Some(Decimal { mantissa, exponent: -(decimals as i8) })
}

#[cold]
fn decimal_long(negative: bool, digits: &[u8]) -> Option<Decimal> {
    let (whole, mut fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    loop {
        let mantissa = whole.iter().chain(fraction).try_fold(0i64, |sum, &digit| {
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
    let (negative, digits) = signed(text);
    if digits.len() > 8 {
        return int_long(negative, digits);
    }
    let d = swar::top(digits);
    if digits.is_empty() || !swar::all_digits(d) {
        return None;
    }
    let value = i64::from(swar::number(d));
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
fn signed(text: &[u8]) -> (bool, &[u8]) {
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
    Timestamps::default().read(text)
}

/// Reads timestamps, and remembers the day of the last one: most of a feed are of one day.
///
/// ```
/// use unitape_codec::fix::value::{Timestamps, timestamp};
///
/// let mut timestamps = Timestamps::default();
/// let text = b"20260302-09:00:00.123";
/// assert_eq!(timestamps.read(text), Some(1_772_442_000_123_000_000));
/// assert_eq!(timestamps.read(text), timestamp(text));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// Eight bytes that [`date`] reads, and what it says.
    day: [u8; 8],
    midnight: i64,
}

impl Default for Timestamps {
    fn default() -> Self {
        Timestamps { day: *b"19700101", midnight: 0 }
    }
}

impl Timestamps {
    /// The same as [`timestamp`].
    #[inline]
    #[must_use]
    pub fn read(&mut self, text: &[u8]) -> Option<i64> {
        let (day, rest) = text.split_first_chunk::<8>()?;
        let (clock, fraction) = rest.split_first_chunk::<9>()?;
        let &[b'-', ref clock @ ..] = clock else { return None };
        if *day != self.day {
            self.turn(*day)?;
        }
        Some(self.midnight + clock_and_fraction(*clock, text, fraction)?)
    }

    #[inline(never)]
    fn turn(&mut self, day: [u8; 8]) -> Option<()> {
        *self = Timestamps { day, midnight: date(&day)? };
        Some(())
    }
}

/// Reads `YYYYMMDD` as nanoseconds since 1970-01-01 of midnight UTC. `None` for anything else,
/// for days the calendar does not have, and outside 1678 to 2261.
#[inline]
#[must_use]
pub fn date(text: &[u8]) -> Option<i64> {
    let day = swar::digits(text.try_into().ok()?);
    if !swar::all_digits(day) {
        return None;
    }
    Some(days(day)? * 86_400 * NANOS)
}

/// Reads `HH:MM:SS`, optionally with `.` and 1 to 12 digits, as nanoseconds since midnight. Second
/// 60 reads as the second after 59.
#[inline]
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_first_chunk::<8>()?;
    clock_and_fraction(*clock, text, fraction)
}

/// The nanoseconds of `HH:MM:SS` and of what stands behind it at the end of `text`.
#[inline(always)]
fn clock_and_fraction(clock: [u8; 8], text: &[u8], fraction: &[u8]) -> Option<i64> {
    let clock = clock_digits(clock);
    let (nanos, fraction_wrong) = fraction_of(text, fraction)?;
    if (clock_wrong(clock) | fraction_wrong) & swar::HIGH != 0 {
        return None;
    }
    Some(seconds(clock)? * NANOS + nanos)
}

/// `HH:MM:SS` as digits of 0 to 9; colons become 0.
#[inline(always)]
const fn clock_digits(text: [u8; 8]) -> u64 {
    u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"00:00:00")
}

/// The highest bit of some byte is set if one of these is no digit or stands for a colon and is none.
#[inline(always)]
const fn clock_wrong(clock: u64) -> u64 {
    // What is beyond 9, and might carry here, is no digit there.
    let colons = (clock & 0x0000_ff00_00ff_0000).wrapping_add(0x0000_7f00_007f_0000);
    swar::no_digits(clock) | colons
}

/// The seconds since midnight of `HH:MM:SS`.
#[inline(always)]
fn seconds(clock: u64) -> Option<i64> {
    let parts = swar::pairs(clock) & 0x00ff_0000_ff00_00ff;
    // Each is at most 99; more than it may be sets its highest bit.
    let most = (127 - 23) | (127 - 59) << 24 | (127 - 60) << 48;
    if (parts + most) & swar::HIGH & 0x00ff_0000_ff00_00ff != 0 {
        return None;
    }
    let (hours, minutes, seconds) = (parts & 0xff, parts >> 24 & 0xff, parts >> 48);
    Some(((hours * 60 + minutes) * 60 + seconds) as i64)
}

/// The nanoseconds that `fraction` says, the end of `text` and empty or a point and 1 to 12 digits; a
/// second number has the highest bit of some byte set if one of the digits is none.
#[inline(always)]
fn fraction_of(text: &[u8], fraction: &[u8]) -> Option<(i64, u64)> {
    if let &[b'.', a, b, c] = fraction {
        // Milliseconds, which most times have. One byte can carry into no other.
        let [a, b, c] = [a, b, c].map(|digit| u32::from(digit ^ b'0'));
        let wrong = (a + 0x76) | (b + 0x76) | (c + 0x76);
        return Some((i64::from((a * 100 + b * 10 + c) * 1_000_000), u64::from(wrong | a | b | c)));
    }
    let Some((&point, digits)) = fraction.split_first() else { return Some((0, 0)) };
    if point != b'.' {
        return None;
    }
    // A clock stands before the digits, so that there are eight bytes.
    if let Some(&scale) = SCALE.get(digits.len().wrapping_sub(1))
        && let Some(eight) = text.last_chunk::<8>()
    {
        let shift = 64 - 8 * digits.len() as u32;
        let d = swar::digits(*eight) >> shift << shift;
        return Some((i64::from(swar::number(d)) * i64::from(scale), swar::no_digits(d)));
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
fn days(day: u64) -> Option<i64> {
    let pairs = swar::pairs(day);
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

/// What a time or timestamp that [`time`] or [`timestamp`] has read says beyond its nanoseconds: 0 to
/// 999 picoseconds.
#[must_use]
pub fn picoseconds(text: &[u8]) -> u16 {
    let Some(point) = text.iter().rposition(|&byte| byte == b'.') else { return 0 };
    let finer = text.get(point + 10..).unwrap_or_default();
    (0..3).fold(0, |sum, at| {
        let digit = finer.get(at).map_or(0, |digit| digit.wrapping_sub(b'0').min(9));
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dec(text: &str) -> Option<(i64, i8)> {
        decimal(text.as_bytes()).map(|d| (d.mantissa, d.exponent))
    }

    /// By the standard library, counting days one year and one month after the other.
    fn obvious(text: &[u8]) -> Option<i64> {
        let number = |from: usize, to: usize| {
            let part = text.get(from..to)?;
            let digits = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
            digits.then(|| std::str::from_utf8(part).unwrap().parse::<i64>().unwrap())
        };
        let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
        let (hour, minute, second) = (number(9, 11)?, number(12, 14)?, number(15, 17)?);
        if text[8] != b'-' || text[11] != b':' || text[14] != b':' {
            return None;
        }
        let leap = |year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let in_range = (1678..=2261).contains(&year) && (1..=12).contains(&month) && hour < 24;
        if !in_range || minute > 59 || second > 60 || day < 1 || day > length[month as usize - 1] {
            return None;
        }
        let years: i64 = (1600..year).map(|y| 365 + i64::from(leap(y))).sum();
        let months: i64 = length[..month as usize - 1].iter().sum();
        let days = years + months + day - 1 - (1600..1970).map(|y| 365 + i64::from(leap(y))).sum::<i64>();
        let nanos = match text.get(17) {
            None => 0,
            Some(b'.') if text.len() <= 27 => number(18, text.len())? * 10i64.pow(27 - text.len() as u32),
            // Finer than nanoseconds: digits, and dropped.
            Some(b'.') if text.len() <= 30 => number(27, text.len()).and(number(18, 27))?,
            Some(_) => return None,
        };
        Some((((days * 24 + hour) * 60 + minute) * 60 + second) * NANOS + nanos)
    }

    // Rounding, exponents and half numbers slip into prices through lenient parsers.
    #[test]
    fn decimals_exact_or_not_at_all() {
        for (text, expected) in [
            ("0", Some((0, 0))),
            ("-0", Some((0, 0))),
            ("62.09", Some((6209, -2))),
            ("-0.28", Some((-28, -2))),
            ("00023.2300", Some((232_300, -4))),
            ("6042.689999999999", Some((6_042_689_999_999_999, -12))),
            (".5", Some((5, -1))),
            ("5.", Some((5, 0))),
            ("9223372036854775807", Some((i64::MAX, 0))),
            ("-9223372036854775808", Some((i64::MIN, 0))),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("1.000000000000000000000000", Some((1_000_000_000_000_000_000, -18))),
            ("0.0000000000000000001", Some((1, -19))),
            ("12345678901234567890.5", None),
            ("", None),
            ("-", None),
            (".", None),
            ("1.2.3", None),
            ("1e5", None),
            ("+1", None),
            (" 1", None),
            ("1,5", None),
            ("--1", None),
        ] {
            assert_eq!(dec(text), expected, "{text:?}");
        }
    }

    // Times at the edges: the leap day, the leap second, fractions of every length, and what
    // only looks like a time.
    #[test]
    fn times() {
        let at = |text: &str| timestamp(text.as_bytes());
        assert_eq!(at("19700101-00:00:00"), Some(0));
        assert_eq!(at("20111124-05:33:31.763"), Some(1_322_112_811_763_000_000));
        assert_eq!(at("20111124-05:33:31.763000001"), Some(1_322_112_811_763_000_001));
        assert_eq!(at("20161231-23:59:60.5"), at("20170101-00:00:00.500"));
        assert_eq!(at("20240229-00:00:00"), Some(1_709_164_800_000_000_000));
        assert_eq!(at("19691231-23:59:59"), Some(-1_000_000_000));
        assert_eq!(at("16780101-00:00:00"), Some(-9_214_560_000_000_000_000));
        assert!(at("22611231-23:59:59.999999999").is_some());
        for wrong in [
            "20230229-00:00:00",
            "20230230-00:00:00",
            "20231301-00:00:00",
            "20230001-00:00:00",
            "20230101 00:00:00",
            "20230101-24:00:00",
            "20230101-00:60:00",
            "20230101-00:00:61",
            "20230101-00:00:00.",
            "20230101-00:00:00.1234567890123",
            "20230101-00:00:00.12345678901x",
            "20230101-0:00:00",
            "",
            "16771231-00:00:00",
            "22620101-00:00:00",
            "2023010100:00:00",
            "20230101-00:00:0x",
        ] {
            assert_eq!(at(wrong), None, "{wrong:?}");
        }
        assert_eq!(time(b"07:43:15.000"), Some(27_795_000_000_000));
        // Picoseconds: the nanosecond that has begun, and what is left.
        for (text, picos) in [
            ("20230101-00:00:00.123456789012", 12),
            ("20230101-00:00:00.1234567899", 900),
            ("20230101-00:00:00.12345678999", 990),
            ("20230101-00:00:00.123456789", 0),
            ("20230101-00:00:00.1", 0),
            ("20230101-00:00:00", 0),
        ] {
            assert_eq!(picoseconds(text.as_bytes()), picos, "{text}");
            assert!(at(text).is_some());
        }
        assert_eq!(at("20230101-00:00:00.123456789999"), at("20230101-00:00:00.123456789"));
        assert_eq!(date(b"20150406"), Some(1_428_278_400_000_000_000));
    }

    proptest! {
        #[test]
        fn decimals_read_back(mantissa in any::<i64>(), decimals in 0usize..25) {
            let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = decimals + 1);
            let sign = if mantissa < 0 { "-" } else { "" };
            let (whole, fraction) = digits.split_at(digits.len() - decimals);
            let text = if decimals == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") };
            let got = decimal(text.as_bytes()).expect("an i64 mantissa");
            prop_assert_eq!((got.mantissa, i32::from(got.exponent)), (mantissa, -(decimals as i32)));
        }

        // The fast reading of up to eight bytes against the one byte by byte.
        #[test]
        fn short_and_long_readings_agree(text in "-?[0-9.]{0,9}|-?[-0-9.:/+ e]{0,9}") {
            let text = text.as_bytes();
            let (negative, digits) = signed(text);
            prop_assert_eq!(decimal(text), decimal_16(negative, digits), "{:?}", text);
            let long = int_long(negative, digits).filter(|_| !digits.is_empty());
            prop_assert_eq!(int(text), long);
            // The same inside a message, near its start and far from it.
            for before in ["1=", "8=FIX.4.4\u{1}44="] {
                let message = [before.as_bytes(), text, b"\x01"].concat();
                let start = before.len() as u32;
                let token = Token { tag: 44, start, end: start + text.len() as u32 };
                prop_assert_eq!(token.decimal(&message), decimal(text));
                prop_assert_eq!(token.int(&message), int(text));
            }
        }

        // Every byte of a time replaced: nothing that is no digit may pass for one.
        #[test]
        fn times_as_the_standard_library_reads_their_parts(
            at in 0usize..30, byte in any::<u8>(), digits in 0usize..13,
        ) {
            let mut text = b"20240229-23:59:60.123456789012"[..18 + digits].to_vec();
            if digits == 0 {
                text.pop();
            }
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            prop_assert_eq!(timestamp(&text), obvious(&text), "{:?}", String::from_utf8_lossy(&text));
        }

        #[test]
        fn ints_as_the_library_reads_them(text in "-?[0-9]{0,21}|.{0,5}") {
            prop_assume!(!text.starts_with('+'));
            prop_assert_eq!(int(text.as_bytes()), text.parse::<i64>().ok());
        }

        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (decimal(&text), timestamp(&text), time(&text), date(&text));
        }
    }
}
