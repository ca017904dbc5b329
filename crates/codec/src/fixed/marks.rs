//! Numbers as people write them: `1.234,50`, `(12.00)`, `12,00-`. Each mark must be named; nothing is guessed.

use super::code::RecordFaultCode;
use super::digits::exponent_at;
use super::text::NegativeStyle;

/// The marks of a column's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberPunctuation {
    /// The mark before the decimals.
    pub decimal_mark: u8,
    /// The mark between groups of three digits, if there may be one.
    pub thousands: Option<u8>,
    /// How a number less than zero may be written, besides a minus before it.
    pub negative: Vec<NegativeStyle>,
}

/// Bytes of a number, at most.
const NUMBER_BYTES_MAX: usize = 64;

/// A number in plain form: `-1234.50`.
pub(crate) struct NormalizedNumber {
    text: [u8; NUMBER_BYTES_MAX],
    len: usize,
}

impl NormalizedNumber {
    /// Returns the number's text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }

    fn push(&mut self, byte: u8) -> Result<(), RecordFaultCode> {
        *self.text.get_mut(self.len).ok_or(RecordFaultCode::NumberRange)? = byte;
        self.len += 1;
        Ok(())
    }
}

impl NumberPunctuation {
    /// Rewrites the number in `text` in plain form.
    ///
    /// # Errors
    /// Fails if the text is no number by these marks: a group without three digits, two signs, another mark.
    pub fn normalize(&self, text: &[u8]) -> Result<NormalizedNumber, RecordFaultCode> {
        let mut normalized = NormalizedNumber { text: [0; NUMBER_BYTES_MAX], len: 0 };
        let (is_negative, digits) = self.split_sign(text.trim_ascii());
        if is_negative {
            normalized.push(b'-')?;
        }
        let (digits, exponent) = digits.split_at(exponent_at(digits).unwrap_or(digits.len()));
        let (units, fraction) = match memchr::memchr(self.decimal_mark, digits) {
            Some(n) => (&digits[..n], Some(&digits[n + 1..])),
            None => (digits, None),
        };
        self.append_units(units, &mut normalized)?;
        if let Some(fraction) = fraction {
            normalized.push(b'.')?;
            for &byte in fraction {
                normalized.push(Some(byte).filter(u8::is_ascii_digit).ok_or(RecordFaultCode::BadNumber)?)?;
            }
        }
        // What an exponent may be is looked at where the number is read.
        exponent.iter().try_for_each(|byte| normalized.push(*byte))?;
        Ok(normalized)
    }

    /// Splits off the sign: returns whether the number is negative, and the remaining text.
    fn split_sign<'t>(&self, text: &'t [u8]) -> (bool, &'t [u8]) {
        let may = |style| self.negative.contains(&style);
        match text {
            [b'(', inner @ .., b')'] if may(NegativeStyle::Parentheses) => (true, inner.trim_ascii()),
            [sign @ (b'-' | b'+'), rest @ ..] => (*sign == b'-', rest.trim_ascii()),
            [rest @ .., sign @ (b'-' | b'+')] if may(NegativeStyle::Trailing) => {
                (*sign == b'-', rest.trim_ascii())
            }
            _ => (false, text),
        }
    }

    /// Digits before the point, in groups of three or in one.
    fn append_units(
        &self,
        mut text: &[u8],
        normalized: &mut NormalizedNumber,
    ) -> Result<(), RecordFaultCode> {
        let mut is_grouped = false;
        loop {
            let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
            let (group, rest) = text.split_at(digits);
            let mark = self.thousands.map_or(0, |mark| mark_bytes(mark, rest));
            let group_fits = match (is_grouped, mark > 0) {
                (true, _) => digits == 3,
                // No group follows a zero: `0,123` is a fraction of another country, or a mistake.
                (false, true) => (1..=3).contains(&digits) && group[0] != b'0',
                (false, false) => digits > 0,
            };
            if !group_fits || mark == 0 && !rest.is_empty() {
                return Err(RecordFaultCode::BadNumber);
            }
            group.iter().try_for_each(|byte| normalized.push(*byte))?;
            if mark == 0 {
                return Ok(());
            }
            (is_grouped, text) = (true, &rest[mark..]);
        }
    }
}

/// A way in which a column of a layout reads a number, and the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedMarks {
    /// The keys of the column, as layouts spell them: `point = ",", thousands = "."`.
    pub keys: String,
    /// The number in plain form.
    pub plain_number: String,
}

/// Returns the marks by which `value` is a number, different numbers alone, those with the fewest keys first.
#[must_use]
pub fn marks_that_read(value: &str) -> Vec<SuggestedMarks> {
    let mut suggested = Vec::<SuggestedMarks>::new();
    let mut ways = Vec::new();
    for point in [b'.', b','] {
        for thousands in
            [None, Some(b'.'), Some(b','), Some(b'\''), Some(b' ')].into_iter().filter(|t| *t != Some(point))
        {
            let styles = [
                (None, ""),
                (Some(NegativeStyle::Trailing), "trailing"),
                (Some(NegativeStyle::Parentheses), "parentheses"),
            ];
            for (style, style_name) in styles {
                let punctuation = NumberPunctuation {
                    decimal_mark: point,
                    thousands,
                    negative: style.into_iter().collect(),
                };
                let Ok(normalized) = punctuation.normalize(value.as_bytes()) else { continue };
                let mut keys = Vec::new();
                if point != b'.' {
                    keys.push(format!("point = \"{}\"", char::from(point)));
                }
                keys.extend(thousands.map(|mark| format!("thousands = \"{}\"", char::from(mark))));
                keys.extend(style.map(|_| format!("negative = [\"{style_name}\"]")));
                ways.push((keys, String::from_utf8_lossy(normalized.as_bytes()).into_owned()));
            }
        }
    }
    ways.sort_by_key(|(keys, _)| keys.len());
    for (keys, meaning) in ways {
        if !keys.is_empty() && suggested.iter().all(|before| before.plain_number != meaning) {
            suggested.push(SuggestedMarks { keys: keys.join(", "), plain_number: meaning });
        }
    }
    suggested
}

/// Returns the length of the thousands mark at the start of `text`. A blank mark may also be a no-break space.
fn mark_bytes(mark: u8, text: &[u8]) -> usize {
    let blanks: [&[u8]; 3] = [b" ", "\u{a0}".as_bytes(), "\u{202f}".as_bytes()];
    match mark {
        b' ' => blanks.iter().find(|b| text.starts_with(b)).map_or(0, |b| b.len()),
        _ => usize::from(text.first() == Some(&mark)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normalize_text(marks: &NumberPunctuation, text: &str) -> Option<String> {
        marks.normalize(text.as_bytes()).ok().map(|n| String::from_utf8(n.as_bytes().to_vec()).unwrap())
    }

    fn continental() -> NumberPunctuation {
        let negative = vec![NegativeStyle::Trailing, NegativeStyle::Parentheses];
        NumberPunctuation { decimal_mark: b',', thousands: Some(b'.'), negative }
    }

    // 1.234 is a thousand and more to one bank and one and a bit to another.
    #[test]
    fn numbers_of_other_countries_have_marks() {
        for (value, wanted) in [
            ("1.234,56", &[("point = \",\", thousands = \".\"", "1234.56")][..]),
            ("1,234.56", &[("thousands = \",\"", "1234.56")]),
            ("12,5", &[("point = \",\"", "12.5")]),
            ("1,234", &[("thousands = \",\"", "1234"), ("point = \",\"", "1.234")]),
            ("1 234,5", &[("point = \",\", thousands = \" \"", "1234.5")]),
            ("1'234.5", &[("thousands = \"'\"", "1234.5")]),
            ("(12.00)", &[("negative = [\"parentheses\"]", "-12.00")]),
            ("12-", &[("negative = [\"trailing\"]", "-12")]),
            ("(1.234,5)", &[("point = \",\", thousands = \".\", negative = [\"parentheses\"]", "-1234.5")]),
            ("$12.50", &[]),
            ("12.5.6", &[]),
            // It was read as 123.
            ("0,123", &[("point = \",\"", "0.123")]),
            ("", &[]),
        ] {
            let suggested = marks_that_read(value);
            let actual: Vec<_> =
                suggested.iter().map(|f| (f.keys.as_str(), f.plain_number.as_str())).collect();
            assert_eq!(actual, wanted, "{value}");
        }
    }

    #[test]
    fn numbers_are_read_by_their_marks_or_refused() {
        let blank = NumberPunctuation { decimal_mark: b',', thousands: Some(b' '), negative: Vec::new() };
        for (marks, text, want) in [
            (continental(), "1.234,50", Some("1234.50")),
            (continental(), "1.234", Some("1234")),
            (continental(), "(12,00)", Some("-12.00")),
            (continental(), "12,00-", Some("-12.00")),
            (continental(), "12,00 -", Some("-12.00")),
            (continental(), "-12,00", Some("-12.00")),
            (continental(), "+12,00", Some("12.00")),
            (continental(), "1234567,5", Some("1234567.5")),
            (blank.clone(), "1\u{a0}234 567,5", Some("1234567.5")),
            (continental(), "12.34", None),
            (continental(), "1.2345,00", None),
            (continental(), "0.123", None),
            (continental(), "-0.123", None),
            (continental(), "(0.123)", None),
            (continental(), "0.123-", None),
            (continental(), "00.123", None),
            (continental(), "012.345", None),
            (continental(), "1.23", None),
            (continental(), "1..234", None),
            (continental(), "0,123", Some("0.123")),
            (continental(), "0123", Some("0123")),
            (continental(), "10.123", Some("10123")),
            (blank.clone(), "0 123", None),
            (blank.clone(), "0\u{a0}123", None),
            (blank.clone(), "0\u{202f}123", None),
            (blank.clone(), "1 23", None),
            (blank.clone(), " 123", Some("123")),
            (continental(), ".234", None),
            (continental(), "12.00,00", None),
            (continental(), "1,2,3", None),
            (continental(), "1,234.5", None),
            (continental(), "-12,00-", None),
            (continental(), "(-12,00)", None),
            (continental(), "(12,00", None),
            (continental(), "", None),
            (continental(), "-", None),
            (continental(), "12 EUR", None),
            (blank.clone(), "(12,00)", None),
            (blank, "12,00-", None),
        ] {
            assert_eq!(normalize_text(&marks, text).as_deref(), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_with_marks_comes_back(units in 0u64..=u64::MAX / 2, cents in 0u8..100, way in 0..4) {
            let digits = units.to_string();
            let mut grouped = String::new();
            for (n, digit) in digits.chars().enumerate() {
                if n > 0 && (digits.len() - n) % 3 == 0 {
                    grouped.push('.');
                }
                grouped.push(digit);
            }
            let (text, sign) = match way {
                0 => (format!("{grouped},{cents:02}"), ""),
                1 => (format!("({grouped},{cents:02})"), "-"),
                2 => (format!("{grouped},{cents:02}-"), "-"),
                _ => (format!("-{units},{cents:02}"), "-"),
            };
            prop_assert_eq!(normalize_text(&continental(), &text), Some(format!("{sign}{units}.{cents:02}")));
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "[-+(). ,0-9\u{a0}x]{0,80}") {
            if let Some(number) = normalize_text(&continental(), &text) {
                prop_assert!(number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')), "{}", number);
            }
        }
    }
}
