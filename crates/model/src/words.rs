//! Short texts as words: what is compared, hashed, parsed or stored a thousand times in a block is taken into a
//! register whole, without a loop over its bytes.
//!
//! ```text
//!  "GB00BH4HKS39"   first eight bytes   B G 0 0 B H 4 H      byte 0 lowest, nothing is zero
//!                   the rest            K S 3 9 0 0 0 0
//! ```

/// Packs up to eight bytes of a text into a word, the first byte lowest, padded with zeros. A longer text is cut.
///
/// Two texts are equal if their words and their lengths are equal.
#[inline]
pub fn word(text: &[u8]) -> u64 {
    let four = |b: &[u8; 4]| u64::from(u32::from_le_bytes(*b));
    let n = text.len();
    if let Some(all) = text.first_chunk() {
        u64::from_le_bytes(*all)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        // The two overlap in the middle, where they say the same.
        four(first) | four(last) << (8 * (n - 4))
    } else if n > 0 {
        // One, two or three bytes: first, middle and last are all of them.
        let (middle, last) = (n / 2, n - 1);
        u64::from(text[0]) | u64::from(text[middle]) << (8 * middle) | u64::from(text[last]) << (8 * last)
    } else {
        0
    }
}

/// Packs a text of at most sixteen bytes into one little-endian number.
#[inline]
pub fn double_word(text: &[u8]) -> u128 {
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let bytes_after = match text.len() {
                8 => 0,
                n @ 9..=16 => u64::from_le_bytes(*last) >> (8 * (16 - n)),
                _ => text.get(8..16).map_or(0, word),
            };
            u128::from(u64::from_le_bytes(*first)) | u128::from(bytes_after) << 64
        }
        _ => word(text).into(),
    }
}

/// Returns whether all `n` bytes are ASCII and not zero, so that zeros after the text do not belong to it. The words
/// hold at most 24 bytes.
#[inline]
pub fn is_plain(words: [u64; 3], n: usize) -> bool {
    let padding_mask = |start: usize| match n.saturating_sub(start) {
        0 => u64::MAX,
        left @ 1..8 => u64::MAX << (8 * left),
        _ => 0,
    };
    // Bytes after the text count as plain.
    let [a, b, c] =
        [(0, words[0]), (8, words[1]), (16, words[2])].map(|(start, w)| w | padding_mask(start) & ONES);
    let not_ascii = (a | b | c) & HIGH;
    let zero = |w: u64| w.wrapping_sub(ONES) & HIGH;
    // Without high bits a byte of zero is the only one from which a one borrows.
    not_ascii == 0 && (zero(a) | zero(b) | zero(c)) == 0
}

/// Finds the first byte that JSON text must escape: a quote, a backslash or a control character below 0x20.
#[inline]
pub fn find_special(text: &[u8]) -> Option<usize> {
    first_match(
        text,
        |w| below_space(w) | mark_zeros(w ^ (ONES * 0x22)) | mark_zeros(w ^ (ONES * 0x5c)),
        |b| b < b' ' || b == b'"' || b == b'\\',
    )
}

/// Finds the first byte that JSON text must escape, or a DEL.
#[inline]
pub fn find_special_or_del(text: &[u8]) -> Option<usize> {
    first_match(
        text,
        |w| {
            below_space(w)
                | mark_zeros(w ^ (ONES * 0x22))
                | mark_zeros(w ^ (ONES * 0x5c))
                | mark_zeros(w ^ (ONES * 0x7f))
        },
        |b| b < b' ' || matches!(b, b'"' | b'\\' | 0x7f),
    )
}

/// Finds the first position of `byte`.
#[inline]
pub fn find(text: &[u8], byte: u8) -> Option<usize> {
    first_match(text, |w| mark_zeros(w ^ (ONES * u64::from(byte))), |b| b == byte)
}

/// Finds the first byte for which `is_match` is true. `mark_matches` marks matches in eight bytes; at least its first
/// mark must be right.
#[inline]
fn first_match(
    text: &[u8],
    mark_matches: impl Fn(u64) -> u64,
    is_match: impl Fn(u8) -> bool,
) -> Option<usize> {
    let mut offset = 0;
    while let Some(eight) = text[offset..].first_chunk::<8>() {
        let marks = mark_matches(u64::from_le_bytes(*eight));
        if marks != 0 {
            return Some(offset + marks.trailing_zeros() as usize / 8);
        }
        offset += 8;
    }
    text[offset..].iter().position(|b| is_match(*b)).map(|i| offset + i)
}

/// Marks bytes that are zero; after the first one it may mark others.
#[inline]
fn mark_zeros(w: u64) -> u64 {
    w.wrapping_sub(ONES) & !w & HIGH
}

/// Marks bytes below 0x20; after the first one it may mark others.
#[inline]
fn below_space(w: u64) -> u64 {
    w.wrapping_sub(ONES * 0x20) & !w & HIGH
}

/// Packs a text of at most 24 bytes into three words. Returns `None` for a longer text.
#[inline]
pub fn three_words(text: &[u8]) -> Option<[u64; 3]> {
    let n = text.len();
    if n <= 16 {
        let two = double_word(text);
        return Some([two as u64, (two >> 64) as u64, 0]);
    }
    match (text.first_chunk::<16>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) if n <= 24 => {
            let two = u128::from_le_bytes(*first);
            Some([two as u64, (two >> 64) as u64, u64::from_le_bytes(*last) >> (8 * (24 - n))])
        }
        _ => None,
    }
}

/// Extracts the digits of a text of at most 16 bytes, right-aligned, one digit value per byte. All bytes must be
/// digits, except for at most one point. Also returns the number of digits after the point. Returns `None` for any
/// other text.
#[inline]
pub fn digits(text: &[u8]) -> Option<(u128, u32)> {
    let n = text.len();
    if n == 0 || n > 16 {
        return None;
    }
    let up = 8 * (16 - n) as u32;
    // Aligned to the top, which is the last digit; the bits shifted in from below are leading zeros.
    let values = (double_word(text) << up) ^ ((EACH * 0x30) >> up << up);
    // Nothing carries from byte to byte: 0x7f and 0x76 are less than 0x100.
    let beyond_nine = (((values & (EACH * 0x7f)) + EACH * 0x76) | values) & (EACH * 0x80);
    if beyond_nine == 0 {
        return Some((values, 0));
    }
    let point_index = beyond_nine.trailing_zeros() / 8;
    let one = beyond_nine & (beyond_nine - 1) == 0;
    if !one || (values >> (8 * point_index)) as u8 != b'.' ^ 0x30 || n == 1 {
        return None;
    }
    // The digits before the point move up by one.
    let digits_before_point = values & ((1 << (8 * point_index)) - 1);
    let after_point =
        if point_index == 15 { 0 } else { values >> (8 * (point_index + 1)) << (8 * (point_index + 1)) };
    Some((digits_before_point << 8 | after_point, 15 - point_index))
}

/// Computes the number from the digits that [`digits`] returned.
#[inline]
pub fn number(digits: u128) -> u64 {
    eight_digits(digits as u64) * 100_000_000 + eight_digits((digits >> 64) as u64)
}

/// Converts eight digits, one per byte, the first one lowest.
#[inline]
fn eight_digits(v: u64) -> u64 {
    let v = v.wrapping_mul(1 + (10 << 8)) >> 8 & 0x00ff_00ff_00ff_00ff;
    let v = v.wrapping_mul(1 + (100 << 16)) >> 16 & 0x0000_ffff_0000_ffff;
    v.wrapping_mul(1 + (10_000 << 32)) >> 32
}

const EACH: u128 = u128::from_le_bytes([1; 16]);
const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packs the words of a text byte by byte.
    fn slow(text: &[u8], words: usize) -> Vec<u64> {
        let mut all = vec![0u8; 8 * words];
        let n = text.len().min(all.len());
        all[..n].copy_from_slice(&text[..n]);
        all.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
    }

    fn slow_digits(text: &[u8]) -> Option<(u64, u32)> {
        let points: Vec<usize> = (0..text.len()).filter(|i| text[*i] == b'.').collect();
        let digits: Vec<u8> = text.iter().copied().filter(|b| *b != b'.').collect();
        if points.len() > 1 || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) || text.len() > 16
        {
            return None;
        }
        let places = points.first().map_or(0, |index| text.len() - index - 1);
        Some((std::str::from_utf8(&digits).unwrap().parse().unwrap(), places as u32))
    }

    proptest! {
        #[test]
        fn words_agree_with_bytes(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(word(&text), slow(&text, 1)[0]);
            let two = double_word(&text);
            prop_assert_eq!(vec![two as u64, (two >> 64) as u64], slow(&text, 2));
            prop_assert_eq!(three_words(&text).map(|w| w.to_vec()), (text.len() <= 24).then(|| slow(&text, 3)));
        }

        /// Padding must not pass for text, nor a zero inside for padding.
        #[test]
        fn plain_is_ascii_without_zeros(text in proptest::collection::vec(prop_oneof![
            Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff), b' '..=b'z',
        ], 0..25)) {
            let expected = text.iter().all(|b| b.is_ascii() && *b != 0);
            prop_assert_eq!(is_plain(three_words(&text).unwrap(), text.len()), expected);
        }

        #[test]
        fn the_first_of_a_sort_is_found(text in proptest::collection::vec(prop_oneof![
            Just(b'"'), Just(b'\\'), Just(0x1f), Just(0x80), Just(0x7f), Just(0xff), b' '..=b'z',
            b'a'..=b'z', b'a'..=b'z', b'a'..=b'z', b'a'..=b'z', b'a'..=b'z', b'a'..=b'z', b'a'..=b'z',
        ], 0..40), byte in prop_oneof![Just(0x80u8), Just(0xffu8), b' '..=b'z']) {
            let slow = text.iter().position(|b| *b < b' ' || *b == b'"' || *b == b'\\');
            prop_assert_eq!(find_special(&text), slow);
            let del = text.iter().position(|b| *b == 0x7f);
            prop_assert_eq!(find_special_or_del(&text), slow.into_iter().chain(del).min());
            prop_assert_eq!(find(&text, byte), text.iter().position(|b| *b == byte));
        }

        #[test]
        fn digits_agree_with_the_standard_library(text in "[0-9]{0,9}[.]?[0-9]{0,9}|[0-9./:]{0,17}|.{0,5}") {
            let got = digits(text.as_bytes()).map(|(d, places)| (number(d), places));
            prop_assert_eq!(got, slow_digits(text.as_bytes()), "{}", text);
        }
    }

    #[test]
    fn digits_at_the_ends_of_their_room() {
        for text in ["9999999999999999", "999999999999999.", ".999999999999999", "0", "0.", ".", "", "1.2.3"]
        {
            let got = digits(text.as_bytes()).map(|(d, places)| (number(d), places));
            assert_eq!(got, slow_digits(text.as_bytes()), "{text}");
        }
    }
}
