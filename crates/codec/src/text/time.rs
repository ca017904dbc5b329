//! Moments as sources of text write them, to nanoseconds since 1970 in UTC; exactly, or not at all.
//!
//! | text | here |
//! |---|---|
//! | `2026-03-02T09:30:00.5+01:00` | [`iso`]; without an offset it is read as UTC |
//! | `Mon, 2 Mar 2026 09:30:00 +0100 (CET)` | [`rfc5322`], the old forms too |
//! | `1355517523.000005`, `1772443800123` | [`since_1970`], in a unit that somebody says |
//!
//! Second 60 is the first second of the next minute; a time without a zone is UTC.

pub use unitape_base::date::time as iso;

/// Converts a count since 1970 to nanoseconds; a unit is ten to the `power` nanoseconds (9 for seconds, 6 for
/// milliseconds). Returns `None` if the text is no number, has places beyond a nanosecond that are not 0, or does not
/// fit into 64 bits.
#[must_use]
pub fn since_1970(text: &str, power: u32) -> Option<i64> {
    crate::times::since_1970(text.as_bytes(), power).ok()
}

/// The names of months in mails and their like.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses a date of RFC 5322 to UTC nanoseconds. The day name and the seconds may be missing, years may have two
/// digits, and zones may be the names of RFC 822. An unknown zone (`-0000`, a letter) and a missing zone mean UTC.
/// Returns `None` for any other text; does not check the day name.
#[must_use]
pub fn rfc5322(text: &str) -> Option<i64> {
    let text = without_comments(text)?;
    let text = match text.split_once(',') {
        Some((day, rest)) if day.trim().len() == 3 => rest,
        Some(_) => return None,
        None => &text,
    };
    let mut words = text.split_ascii_whitespace();
    let day = parse_number(words.next()?, 1, 2)?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(month))? as u8 + 1;
    let year_word = words.next()?;
    let year = match (parse_number(year_word, 2, 4)?, year_word.len()) {
        (year @ 0..50, 2) => 2000 + year,
        (year, 2 | 3) => 1900 + year,
        (year, _) => year,
    };
    let clock = words.next()?;
    let mut parts = clock.split(':');
    let (hours, minutes) = (parse_number(parts.next()?, 1, 2)?, parse_number(parts.next()?, 2, 2)?);
    let seconds = parts.next().map_or(Some(0), |s| parse_number(s, 2, 2))?;
    if hours > 23 || minutes > 59 || seconds > 60 || parts.next().is_some() {
        return None;
    }
    let zone = words.next().unwrap_or("UTC");
    if words.next().is_some() {
        return None;
    }
    let midnight = unitape_base::date::CalendarDay::new(year, month, day as u8)?.nanos();
    let seconds =
        (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds) - zone_seconds(zone)?;
    midnight.checked_add(seconds * 1_000_000_000)
}

/// Seconds east of UTC.
fn zone_seconds(zone: &str) -> Option<i64> {
    const NAMED: [(&str, i64); 11] = [
        ("UT", 0),
        ("GMT", 0),
        ("UTC", 0),
        ("EST", -5),
        ("EDT", -4),
        ("CST", -6),
        ("CDT", -5),
        ("MST", -7),
        ("MDT", -6),
        ("PST", -8),
        ("PDT", -7),
    ];
    if let Some(digits) = zone.strip_prefix(['+', '-']) {
        let (hours, minutes) = (parse_number(digits.get(..2)?, 2, 2)?, parse_number(digits.get(2..)?, 2, 2)?);
        if hours > 14 || minutes > 59 {
            return None;
        }
        let seconds = (i64::from(hours) * 60 + i64::from(minutes)) * 60;
        return Some(if zone.starts_with('-') { -seconds } else { seconds });
    }
    if let Some((_, hours)) = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(zone)) {
        return Some(hours * 3600);
    }
    // RFC 822 had the letters of the military the wrong way round, so that nobody knows what one means.
    (zone.len() == 1 && zone.bytes().all(|b| b.is_ascii_alphabetic())).then_some(0)
}

fn parse_number(digits: &str, least: usize, most: usize) -> Option<u16> {
    let fits = (least..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| digits.parse().ok())?
}

/// Strips the text in parentheses; `None` if a parenthesis is not closed.
fn without_comments(text: &str) -> Option<String> {
    let (mut out, mut depth) = (String::with_capacity(text.len()), 0u32);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    (depth == 0).then_some(out)
}

/// Writes out a JSON number without its exponent. Returns `None` if it has no exponent or one beyond 400.
#[must_use]
pub fn without_exponent(number: &str) -> Option<String> {
    let exponent_index = number.find(['e', 'E'])?;
    let exponent: i32 = number[exponent_index + 1..].parse().ok().filter(|e: &i32| e.abs() <= 400)?;
    let (sign, digits) = match number[..exponent_index].strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", &number[..exponent_index]),
    };
    let (integer_digits, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{integer_digits}{fraction}");
    let point = integer_digits.len() as i32 + exponent;
    let decimal = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point as usize >= digits.len() {
        format!("{digits}{}", "0".repeat(point as usize - digits.len()))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    let decimal = match decimal.find(|c| c != '0') {
        Some(n) if decimal[n..].starts_with('.') => &decimal[n - 1..],
        Some(n) => &decimal[n..],
        None => "0",
    };
    Some(format!("{sign}{decimal}"))
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
            ("1e9", 9, Some(1_000_000_000_000_000_000)),
            ("1e10", 9, None),
            ("+1", 9, None),
            ("", 9, None),
            ("-", 9, None),
            ("2026-03-02", 9, None),
        ] {
            assert_eq!(since_1970(text, power), want, "{text} {power}");
        }
    }

    // A zone by name, or a comment after it, made a message one of 1970.
    #[test]
    fn dates_of_mails_are_moments() {
        let hour = 3_600_000_000_000;
        let want = 1_772_443_800_000_000_000;
        for (text, want) in [
            ("Mon, 2 Mar 2026 09:30:00 +0000", Some(want)),
            ("Mon, 02 Mar 2026 10:30:00 +0100 (CET)", Some(want)),
            ("2 Mar 2026 09:30 GMT", Some(want)),
            ("Mon, 2 mar 26 09:30:00 Z", Some(want)),
            ("Mon, 2 Mar 126 09:30:00 -0000", Some(want)),
            ("(a (b)) 2 Mar 2026 04:30:00 EST", Some(want)),
            ("2 Mar 2026 09:30:00 -0330", Some(want + 3 * hour + hour / 2)),
            ("1 Jan 1970 00:00:00 +0000", Some(0)),
            ("Mon, 2 Mar 2026 09:30:61 +0000", None),
            ("Mon, 2 Mar 2026 24:00:00 +0000", None),
            ("Mon, 30 Feb 2026 09:30:00 +0000", None),
            ("Mon, 2 Mar 2026 09:30:00", Some(want)),
            ("Mon, 2 Mar 2026 09:29:60 +0000", Some(want)),
            ("Mon, 2 Mar 2026 09:30:00 +0000 x", None),
            ("Mon, 2 Mar 2026 09:30:00 +1500", None),
            ("Mon, 2 Mar 2026 09:30:00 +000é", None),
            ("Mon, 2 Mar 2026 09:30:00 CET", None),
            ("Mon, 2 Mar 2026 09:30:00 +0000 (", None),
            ("2026-03-02T09:30:00Z", None),
            ("", None),
        ] {
            assert_eq!(rfc5322(text), want, "{text}");
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
            let decimal = without_exponent(&number).unwrap();
            // Both in units of 1e-20.
            let scaled = |text: &str| -> i128 {
                let (integer_digits, fraction) = text.split_once('.').unwrap_or((text, ""));
                format!("{integer_digits}{fraction:0<20}").parse().unwrap()
            };
            let (want, shift) = (scaled(&number[..number.find('e').unwrap()]), exponent);
            let want = if shift < 0 { want / 10i128.pow(-shift as u32) } else { want * 10i128.pow(shift as u32) };
            prop_assert_eq!(scaled(&decimal), want, "{} {}", number, decimal);
        }
    }
}
