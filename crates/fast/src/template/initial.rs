//! Initial values: text of a template file to a value of the field's type (FAST 1.1, 6.3.2 and 9).

use super::{InitialValue, WireType};

/// Exponents of decimals lie between −63 and this.
const EXPONENT_MAX: i32 = 63;

/// Parses `text` as the initial value of a field of this type. Fails with a description of the mistake. `strict` means
/// that the file is of version 1.1.
pub(super) fn parse_initial(text: &str, kind: WireType, strict: bool) -> Result<InitialValue, String> {
    let value = match kind {
        WireType::Int32 | WireType::UInt32 | WireType::Int64 | WireType::UInt64 => parse_int(text, kind),
        WireType::Decimal => parse_decimal(text),
        WireType::Ascii => text.is_ascii().then(|| InitialValue::Bytes(text.as_bytes().to_vec())),
        WireType::Unicode => Some(InitialValue::Bytes(text.as_bytes().to_vec())),
        WireType::Bytes => parse_bytes(text, strict),
    };
    value.ok_or_else(|| format!("value=\"{text}\" is no {}", kind.word()))
}

fn parse_int(text: &str, kind: WireType) -> Option<InitialValue> {
    let digits = text.trim();
    let unsigned_digits = digits.strip_prefix('-').unwrap_or(digits);
    if unsigned_digits.is_empty() || !unsigned_digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    let (least, most) = kind.bounds()?;
    (least..=most).contains(&value).then_some(InitialValue::Int(value))
}

/// Parses a decimal and normalises it, so that the mantissa does not end in a zero.
fn parse_decimal(text: &str) -> Option<InitialValue> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (integer_digits, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut digit_bytes: Vec<u8> = integer_digits.bytes().chain(fraction.bytes()).collect();
    if digit_bytes.is_empty()
        || !digit_bytes.iter().all(u8::is_ascii_digit)
        || digits.ends_with('.') && integer_digits.is_empty()
    {
        return None;
    }
    let mut exponent = -i32::try_from(fraction.len()).ok()?;
    while let [.., b'0'] = digit_bytes[..] {
        digit_bytes.pop();
        exponent += 1;
    }
    let mut mantissa: i128 = 0;
    for digit in digit_bytes {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if mantissa == 0 {
        return Some(InitialValue::Decimal { mantissa: 0, exponent: 0 });
    }
    let mantissa = i64::try_from(sign * mantissa).ok()?;
    (-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent).then_some(InitialValue::Decimal { mantissa, exponent })
}

/// Parses hexadecimal digits with any white space between them. Files that do not name the language of 1.1 may have
/// plain text instead.
fn parse_bytes(text: &str, strict: bool) -> Option<InitialValue> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect();
    let Some(digits) = digits else {
        return (!strict).then(|| InitialValue::Bytes(text.as_bytes().to_vec()));
    };
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| InitialValue::Bytes(pairs.map(|pair| pair[0] << 4 | pair[1]).collect()))
}
