//! Moments as sources of text write them, to nanoseconds since 1970 in UTC; exactly, or not at all.
//!
//! | text | here |
//! |---|---|
//! | `2026-03-02T09:30:00.5+01:00` | [`iso`]; without an offset it is taken as UTC |
//! | `1355517523.000005`, `1772443800123` | [`since_1970`], in a unit that somebody says |

pub use crate::iso20022::value::time as iso;

/// A count since 1970: `power` is how many places a nanosecond is behind the unit (9 for seconds, 6 for milliseconds).
/// `None` for what is no number, has places beyond a nanosecond that are not 0, or lies outside of what 64 bits hold.
#[must_use]
pub fn since_1970(text: &str, power: u32) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || !digits(whole) || !digits(fraction) {
        return None;
    }
    if digits_end(text) {
        return None;
    }
    let (kept, beyond) = fraction.split_at(fraction.len().min(power as usize));
    if beyond.bytes().any(|b| b != b'0') {
        return None;
    }
    let mut nanos: i128 = whole.parse().ok()?;
    nanos *= 10i128.pow(power);
    if !kept.is_empty() {
        nanos += kept.parse::<i128>().ok()? * 10i128.pow(power - kept.len() as u32);
    }
    i64::try_from(if negative { -nanos } else { nanos }).ok().filter(|n| *n != i64::MIN)
}

/// A point with nothing behind it is no number.
fn digits_end(text: &str) -> bool {
    text.ends_with('.')
}

/// A number of JSON without its exponent; `None` where it has none, or one beyond 400.
#[must_use]
pub fn without_exponent(number: &str) -> Option<String> {
    let at = number.find(['e', 'E'])?;
    let exponent: i32 = number[at + 1..].parse().ok().filter(|e: &i32| e.abs() <= 400)?;
    let (sign, digits) = match number[..at].strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", &number[..at]),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let plain = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point as usize >= digits.len() {
        format!("{digits}{}", "0".repeat(point as usize - digits.len()))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    let plain = match plain.find(|c| c != '0') {
        Some(n) if plain[n..].starts_with('.') => &plain[n - 1..],
        Some(n) => &plain[n..],
        None => "0",
    };
    Some(format!("{sign}{plain}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // A float of seconds is off by a hundred nanoseconds and more.
    #[test]
    fn counts_are_exact() {
        for (text, power, want) in [
            ("1355517523.000005", 9, Some(1_355_517_523_000_005_000)),
            ("1355517523", 9, Some(1_355_517_523_000_000_000)),
            ("1772443800123", 6, Some(1_772_443_800_123_000_000)),
            ("1772443800123.4", 6, Some(1_772_443_800_123_400_000)),
            ("-1.5", 9, Some(-1_500_000_000)),
            ("1.0000000000", 9, Some(1_000_000_000)),
            ("1.0000000001", 9, None),
            ("1772443800123", 9, None),
            ("7", 0, Some(7)),
            ("7.5", 0, None),
            ("1.", 9, None),
            (".5", 9, None),
            ("1e9", 9, None),
            ("+1", 9, None),
            ("", 9, None),
            ("-", 9, None),
            ("2026-03-02", 9, None),
        ] {
            assert_eq!(since_1970(text, power), want, "{text} {power}");
        }
    }

    // 1.5e3 is a number of JSON and none of ours.
    #[test]
    fn exponents_are_written_out() {
        for (number, want) in [
            ("1.5e3", Some("1500")),
            ("1.5E+1", Some("15")),
            ("125e-2", Some("1.25")),
            ("-5e-3", Some("-0.005")),
            ("0e9", Some("0")),
            ("1.25e1", Some("12.5")),
            ("0.0012e2", Some("0.12")),
            ("1e401", None),
            ("1.5", None),
        ] {
            assert_eq!(without_exponent(number).as_deref(), want, "{number}");
        }
    }

    proptest! {
        #[test]
        fn a_number_without_its_exponent_is_the_same_number(
            whole in 0u32..10_000, fraction in "[0-9]{0,6}", exponent in -9i32..9,
        ) {
            let point = if fraction.is_empty() { "" } else { "." };
            let number = format!("{whole}{point}{fraction}e{exponent}");
            let plain = without_exponent(&number).unwrap();
            // Both in units of 1e-20.
            let scaled = |text: &str| -> i128 {
                let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                format!("{whole}{fraction:0<20}").parse().unwrap()
            };
            let (want, shift) = (scaled(&number[..number.find('e').unwrap()]), exponent);
            let want = if shift < 0 { want / 10i128.pow(-shift as u32) } else { want * 10i128.pow(shift as u32) };
            prop_assert_eq!(scaled(&plain), want, "{} {}", number, plain);
        }
    }
}
