//! Tags and lengths, the plain numbers of framing: digits and no sign.

/// Parses 1 to 9 digits without a leading zero.
pub(super) fn plain_tag(digits: &[u8]) -> Option<u32> {
    if digits.first() == Some(&b'0') || digits.len() > 9 {
        return None;
    }
    plain_length(digits).map(|tag| tag as u32)
}

/// Parses 1 to 9 digits.
pub(super) fn plain_length(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, &digit| sum * 10 + usize::from(digit - b'0')))
}

/// Counts the digits of a tag.
pub(super) fn digits(tag: u32) -> u32 {
    tag.checked_ilog10().unwrap_or(0) + 1
}
