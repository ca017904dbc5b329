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
//! **Leap seconds.** FIX allows second 60. UTC nanoseconds since 1970 have no number for it; it
//! reads as the first second of the next minute (`23:59:60.5` is `00:00:00.5` of the next day), so
//! that time never runs backwards by reading.

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
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
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
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0i64, |sum, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        let digit = i64::from(digit);
        sum.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    })
}

/// Reads `YYYYMMDD-HH:MM:SS`, optionally with `.` and 1 to 9 digits (3, 6 or 9 in the standard),
/// as nanoseconds since 1970-01-01 00:00 UTC. `None` for anything else and outside 1678 to 2261.
#[inline]
#[must_use]
pub fn timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(8)?;
    let clock = rest.strip_prefix(b"-")?;
    date(day)?.checked_add(time(clock)?)
}

/// Reads `YYYYMMDD` as nanoseconds since 1970-01-01 of midnight UTC. `None` for anything else,
/// for days the calendar does not have, and outside 1678 to 2261.
#[inline]
#[must_use]
pub fn date(text: &[u8]) -> Option<i64> {
    let &[a, b, c, d, e, f, g, h] = text else { return None };
    let year = pair(a, b)? * 100 + pair(c, d)?;
    let (month, day) = (pair(e, f)?, pair(g, h)?);
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
    // Days since 1970 with the year starting in March, so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 * NANOS)
}

/// Reads `HH:MM:SS`, optionally with `.` and 1 to 9 digits, as nanoseconds since midnight. Second
/// 60 reads as the second after 59.
#[inline]
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hours, minutes, seconds) = (pair(h1, h2)?, pair(m1, m2)?, pair(s1, s2)?);
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let mut nanos = 0;
            for &byte in digits {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                nanos = nanos * 10 + i64::from(digit);
            }
            nanos * SCALE[9 - digits.len()]
        }
        _ => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * NANOS + nanos)
}

#[inline]
fn pair(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i64::from(tens * 10 + ones))
}

const NANOS: i64 = 1_000_000_000;
const SCALE: [i64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dec(text: &str) -> Option<(i64, i8)> {
        decimal(text.as_bytes()).map(|d| (d.mantissa, d.exponent))
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
            "20230101-00:00:00.1234567890",
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
