//! Digits to numbers, eight at a time.

use unitape_model::{Decimal, NumberFault};

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Powers of ten that fit.
pub const POW10: [i64; 19] = {
    let mut t = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

/// Parses `record[start..end]` as a number of 1 to 18 digits. Returns `None` for any other byte or length.
///
/// The whole record is asked for because the bytes before a column can be loaded with it and masked away.
#[inline]
pub fn parse_number(record: &[u8], start: usize, end: usize) -> Option<u64> {
    let text = record.get(start..end)?;
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let (head, tail) = text.split_at(text.len() % 8);
    let mut n = 0u64;
    if !head.is_empty() {
        n = parse_short(record, start, head)?;
    }
    for eight in tail.chunks_exact(8) {
        n = n * 100_000_000 + eight_digits(u64::from_le_bytes(eight.try_into().expect("eight bytes")))?;
    }
    Some(n)
}

/// Parses one to seven digits at `start` of the record.
#[inline]
fn parse_short(record: &[u8], start: usize, text: &[u8]) -> Option<u64> {
    let text_end = start + text.len();
    let Some(word_start) = text_end.checked_sub(8) else {
        // The first bytes of the record may have bytes after them instead.
        let Some(word) = record.get(start..start + 8) else {
            let digit = |n: u64, b: &u8| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0'));
            return text.iter().try_fold(0, digit);
        };
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        return eight_digits(word << (64 - 8 * text.len()) | ZEROS >> (8 * text.len()));
    };
    let word = u64::from_le_bytes(record[word_start..text_end].try_into().expect("eight bytes"));
    let digit_mask = u64::MAX << (64 - 8 * text.len());
    eight_digits(word & digit_mask | ZEROS & !digit_mask)
}

/// Parses eight digits, the first in the lowest byte.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    // A digit has 3 above, and still has it when 6 is added.
    if word & high != ZEROS || word.wrapping_add(0x0606_0606_0606_0606) & high != ZEROS {
        return None;
    }
    let word = word & 0x0f0f_0f0f_0f0f_0f0f;
    // Pairs, then fours, then eight.
    let word = (word * 10 + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let word = (word * 100 + (word >> 16)) & 0x0000_ffff_0000_ffff;
    Some((word * 10_000 + (word >> 32)) & 0xffff_ffff)
}

/// Finds the exponent of a number: returns the offset of its `e`.
pub fn exponent_at(text: &[u8]) -> Option<usize> {
    text.iter().position(|b| matches!(b, b'e' | b'E'))
}

/// Parses a number with an exponent, such as `7.25e-05`, exactly.
///
/// # Errors
/// Fails if the text is no number, or has more digits or decimals than a decimal may have.
#[cold]
pub fn with_exponent(text: &[u8]) -> Result<Decimal, NumberFault> {
    let exponent_index = exponent_at(text).ok_or(NumberFault::Malformed)?;
    let (digits, exponent) = (&text[..exponent_index], &text[exponent_index + 1..]);
    let (negative, exponent) = match exponent {
        [sign @ (b'-' | b'+'), rest @ ..] => (*sign == b'-', rest),
        _ => (false, exponent),
    };
    if exponent.is_empty() || !exponent.iter().all(u8::is_ascii_digit) {
        return Err(NumberFault::Malformed);
    }
    let d = Decimal::parse(digits)?;
    let zeros = exponent.iter().take_while(|b| **b == b'0').count();
    let exponent = &exponent[zeros..];
    if exponent.len() > 3 {
        return Err(NumberFault::DoesNotFit);
    }
    let power = exponent.iter().fold(0i32, |n, b| n * 10 + i32::from(b - b'0'));
    let power = i32::from(d.exponent()) + if negative { -power } else { power };
    if d.mantissa() == 0 {
        return Ok(d);
    }
    Decimal::new(d.mantissa(), i8::try_from(power).map_err(|_| NumberFault::DoesNotFit)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Digits at the very start of a record have nothing before them to load; a short record has nothing after
    /// them either.
    #[test]
    fn digits_at_the_edges_of_a_record() {
        assert_eq!(parse_number(b"0930abcd", 0, 4), Some(930));
        assert_eq!(parse_number(b"0930", 0, 4), Some(930));
        assert_eq!(parse_number(b"abcdef12", 6, 8), Some(12));
        assert_eq!(parse_number(b"123456789012345678", 0, 18), Some(123_456_789_012_345_678));
        assert_eq!(parse_number(b"1234567890123456789", 0, 19), None);
        assert_eq!(parse_number(b"12345678", 3, 3), None);
        assert_eq!(parse_number(b"12345678", 3, 9), None);
    }

    proptest! {
        #[test]
        fn as_the_library_reads_them(record in "[0-9:/ A]{8,40}|[0-9]{8,40}", start in 0usize..40, len in 0usize..20) {
            let end = start + len;
            let Some(text) = record.get(start..end) else { return Ok(()) };
            let digits = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
            let expected = if digits { text.parse().ok() } else { None };
            prop_assert_eq!(parse_number(record.as_bytes(), start, end), expected);
        }
    }
}
