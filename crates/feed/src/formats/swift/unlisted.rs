//! Fields that a mapping does not name: how often each name came before.

use unitape_codec::swift_mt::SwiftField;

/// Computes a number that distinguishes the names of unlisted fields. Two names with one number count as a repeated
/// name.
pub(super) fn name_key(token: &SwiftField, text: &[u8]) -> u64 {
    let mut key = 0xcbf2_9ce4_8422_2325u64;
    for byte in token.name(text).iter().chain(qualifier(token.slice(text)).unwrap_or_default()) {
        key = (key ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    key
}

/// Returns the qualifier of a value: `SETR` in `:SETR//TRAD`.
pub(super) fn qualifier(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b':', a, b, c, d, b'/', ..] if [a, b, c, d].iter().all(|x| x.is_ascii_alphanumeric()) => {
            Some(&value[1..5])
        }
        _ => None,
    }
}

/// Counts how often each name was there before, and leaves them in order.
pub(super) fn number_repeats(unlisted: &mut [(u64, u32, u32)]) {
    if unlisted.len() <= FEW {
        // They are in order, and are compared one with another sooner than sorted.
        for i in 1..unlisted.len() {
            let key = unlisted[i].0;
            unlisted[i].2 = unlisted[..i].iter().filter(|earlier| earlier.0 == key).count() as u32;
        }
        return;
    }
    unlisted.sort_unstable();
    for i in 1..unlisted.len() {
        if unlisted[i].0 == unlisted[i - 1].0 {
            unlisted[i].2 = unlisted[i - 1].2 + 1;
        }
    }
    unlisted.sort_unstable_by_key(|u| u.1);
}

/// Appends text; replaces bytes that are not UTF-8.
#[inline]
pub(super) fn push_lossy(out: &mut String, text: &[u8]) {
    match std::str::from_utf8(text) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(text)),
    }
}

/// Names that are compared one with another.
const FEW: usize = 32;
