//! Initial values: text of a template file to a value of the field's type (FAST 1.1, 6.3.2 and 9).

use super::{Type, Value};

/// Exponents of decimals lie between −63 and this.
const EXPONENT_MAX: i32 = 63;

/// The value that `text` is for a field of this type; what is wrong with it otherwise. `strict`: the file is of 1.1.
pub(super) fn initial(text: &str, kind: Type, strict: bool) -> Result<Value, String> {
    let value = match kind {
        Type::Int32 | Type::UInt32 | Type::Int64 | Type::UInt64 => int(text, kind),
        Type::Decimal => decimal(text),
        Type::Ascii => text.is_ascii().then(|| Value::Bytes(text.as_bytes().to_vec())),
        Type::Unicode => Some(Value::Bytes(text.as_bytes().to_vec())),
        Type::Bytes => bytes(text, strict),
    };
    value.ok_or_else(|| format!("value=\"{text}\" is no {}", kind.word()))
}

fn int(text: &str, kind: Type) -> Option<Value> {
    let digits = text.trim();
    let plain = digits.strip_prefix('-').unwrap_or(digits);
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    let (least, most) = kind.bounds()?;
    (least..=most).contains(&value).then_some(Value::Int(value))
}

/// Normalised: the mantissa does not end in a nought.
fn decimal(text: &str) -> Option<Value> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if all.is_empty() || !all.iter().all(u8::is_ascii_digit) || digits.ends_with('.') && whole.is_empty() {
        return None;
    }
    let mut exponent = -i32::try_from(fraction.len()).ok()?;
    while let [.., b'0'] = all[..] {
        all.pop();
        exponent += 1;
    }
    let mut mantissa: i128 = 0;
    for digit in all {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if mantissa == 0 {
        return Some(Value::Decimal { mantissa: 0, exponent: 0 });
    }
    let mantissa = i64::try_from(sign * mantissa).ok()?;
    (-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent).then_some(Value::Decimal { mantissa, exponent })
}

/// Hexadecimal digits, white space between them as one likes. Files that do not name the language of 1.1 also have plain
/// text there.
fn bytes(text: &str, strict: bool) -> Option<Value> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect();
    let Some(digits) = digits else {
        return (!strict).then(|| Value::Bytes(text.as_bytes().to_vec()));
    };
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| Value::Bytes(pairs.map(|pair| pair[0] << 4 | pair[1]).collect()))
}
