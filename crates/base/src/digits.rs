//! Digits to numbers: two at a time, and eight at once in a plain 64-bit word, the first byte lowest.

/// The value 1 in each byte.
pub const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
pub const HIGH: u64 = 0x8080_8080_8080_8080;
const LOW7: u64 = !HIGH;

/// Sets the highest bit of each byte that is zero in `x`. The result is exact: no carry crosses bytes.
#[inline(always)]
pub const fn zeros(x: u64) -> u64 {
    !(((x & LOW7) + LOW7) | x | LOW7)
}

/// Loads at most eight digits as bytes 0 to 9. The last digit is in the highest byte; bytes below the first digit are
/// 0.
#[inline(always)]
pub fn top(text: &[u8]) -> u64 {
    let len = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        // Where the two overlap they say the same.
        let up = 64 - 8 * len as u32;
        let word = u64::from(first) << (up & 63) | u64::from(last) << 32;
        return word ^ (ONES * b'0' as u64) << (up & 63);
    }
    let (Some(&first), Some(&last)) = (text.first(), text.last()) else { return 0 };
    let middle = text[len / 2];
    let word = u64::from(first) << (64 - 8 * len)
        | u64::from(middle) << (64 - 8 * (len - len / 2))
        | u64::from(last) << 56;
    word ^ (ONES * b'0' as u64) << (64 - 8 * len)
}

/// Digits as 0 to 9.
#[inline(always)]
pub const fn digits(text: [u8; 8]) -> u64 {
    u64::from_le_bytes(text) ^ (ONES * b'0' as u64)
}

/// Sets the highest bit of a byte that is not 0 to 9. Only the lowest such byte is exact.
#[inline(always)]
pub const fn no_digits(d: u64) -> u64 {
    d.wrapping_add(ONES * 0x76) | d
}

/// Returns whether every byte is 0 to 9.
#[inline(always)]
pub const fn all_digits(d: u64) -> bool {
    no_digits(d) & HIGH == 0
}

/// Computes ten times each byte plus the next byte; all bytes must be 0 to 9.
#[inline(always)]
pub const fn pairs(d: u64) -> u64 {
    d.wrapping_mul(10).wrapping_add(d >> 8)
}

/// Returns the number that eight digits of 0 to 9 write, the lowest byte first.
#[inline(always)]
pub const fn number(d: u64) -> u32 {
    // Pairs, then fours, then eights.
    let pairs = pairs(d);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32) as u32
}

/// Parses two ASCII digits; `None` if a byte is no digit.
#[inline]
#[must_use]
pub fn pair(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| tens * 10 + ones)
}

/// Parses a number of 1 to 19 ASCII digits.
#[inline]
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')))
}
