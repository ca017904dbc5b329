//! Values at their edges, and against the standard library.

use super::super::token::FieldToken;
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

    // The fast reading of up to sixteen bytes against the one byte by byte.
    #[test]
    fn short_and_long_readings_agree(text in "-?[0-9.]{0,18}|-?[0-9]{0,12}[.]?[0-9]{0,12}|-?[-0-9.:/+ e]{0,18}") {
        let text = text.as_bytes();
        let (negative, digits) = split_sign(text);
        prop_assert_eq!(decimal(text), decimal_19(negative, digits), "{:?}", text);
        let long = int_long(negative, digits).filter(|_| !digits.is_empty());
        prop_assert_eq!(int(text), long);
        // The text inside a message, near its start and far from it.
        for before in ["1=", "8=FIX.4.4\u{1}44="] {
            let message = [before.as_bytes(), text, b"\x01"].concat();
            let start = before.len() as u32;
            let token = FieldToken { tag: 44, start, end: start + text.len() as u32 };
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

    // A day that is remembered must not answer for another, nor for one that there is not.
    #[test]
    fn times_of_days_in_turn(
        days in prop::collection::vec(prop::sample::select(vec![
            "19700101", "20240229", "20230229", "20261122", "16771231", "22611231", "2026112x", "00000000",
        ]), 1..12),
        clock in "-[0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.][0-9]{1,12})?",
    ) {
        let mut timestamps = TimestampReader::default();
        for day in days {
            let text = format!("{day}{clock}");
            prop_assert_eq!(timestamps.read(text.as_bytes()), obvious(text.as_bytes()), "{}", text);
        }
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
