//! The loops over bytes that decide the speed: text up to the next markup, names, characters. Eight bytes at a
//! time in plain integers, the same on every machine.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Finds the end of a text and returns whether all of it is white space.
///
/// The text ends before the first `<` or `&` from `offset` on, or at the end of `buf`. Control characters count as
/// white: another check refuses them.
#[inline(always)]
pub fn text(buf: &[u8], mut offset: usize) -> (usize, bool) {
    let mut black = 0;
    while let Some(eight) = buf.get(offset..offset + 8) {
        let word = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        let stop = has(word, b'<') | has(word, b'&');
        let dark = (((word & !HIGHS) + 0x5f * ONES) | word) & HIGHS;
        if stop != 0 {
            // The bits of `has` above its first hit may be wrong; those below it are right.
            let n = stop.trailing_zeros() / 8;
            black |= dark & ((1 << (8 * n)) - 1);
            return (offset + n as usize, black == 0);
        }
        black |= dark;
        offset += 8;
    }
    while let Some(&byte) = buf.get(offset) {
        if matches!(byte, b'<' | b'&') {
            break;
        }
        black |= u64::from(byte > b' ');
        offset += 1;
    }
    (offset, black == 0)
}

/// Sets the highest bit of each byte that equals `byte`. Only bits up to the first such byte are right.
#[inline(always)]
fn has(word: u64, byte: u8) -> u64 {
    let x = word ^ (ONES * u64::from(byte));
    x.wrapping_sub(ONES) & !x & HIGHS
}

/// Finds the first byte from `offset` on that cannot be in a name without prefix. Returns the end of `buf` if there
/// is no such byte.
#[inline(always)]
pub fn name(buf: &[u8], offset: usize) -> usize {
    let rest = buf.get(offset..).unwrap_or_default();
    offset + rest.iter().position(|b| CLASS[usize::from(*b)] & NAME == 0).unwrap_or(rest.len())
}

/// Returns whether a name may start with this byte.
#[inline(always)]
pub fn starts_name(byte: u8) -> bool {
    CLASS[usize::from(byte)] & START != 0
}

/// Returns whether the byte is a blank, a tab or a line end.
#[inline(always)]
pub fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Finds the first byte from `offset` on that is not white.
#[inline]
pub fn skip_white(buf: &[u8], offset: usize) -> usize {
    let rest = buf.get(offset..).unwrap_or_default();
    offset + rest.iter().position(|b| !is_white(*b)).unwrap_or(rest.len())
}

/// Returns whether `buf[a..]` and `buf[b..]` begin with the same `len` bytes.
#[inline(always)]
pub fn ranges_equal(buf: &[u8], a: usize, b: usize, len: usize) -> bool {
    if len <= 8
        && let (Some(x), Some(y)) = (buf.get(a..a + 8), buf.get(b..b + 8))
    {
        let x = u64::from_le_bytes(x.try_into().expect("eight bytes"));
        let y = u64::from_le_bytes(y.try_into().expect("eight bytes"));
        return len == 0 || (x ^ y) << (64 - 8 * len) == 0;
    }
    match (buf.get(a..a + len), buf.get(b..b + len)) {
        (Some(x), Some(y)) => x == y,
        _ => false,
    }
}

/// Finds the first control character that XML does not allow.
#[inline]
pub fn control(bytes: &[u8]) -> Option<usize> {
    let is_forbidden = |b: u8| (b < 0x20) & (b != b'\t') & (b != b'\n') & (b != b'\r');
    if !bytes.iter().fold(false, |any, &b| any | is_forbidden(b)) {
        return None;
    }
    bytes.iter().position(|b| is_forbidden(*b))
}

const NAME: u8 = 1;
const START: u8 = 2;

/// Letters of other scripts are accepted, without a check that XML allows them in names.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        class[b] = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80.. => NAME | START,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            _ => 0,
        };
        b += 1;
    }
    class
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Guards against a false hit of the eight-byte search, where a byte differs by one bit from the byte
        /// searched for.
        #[test]
        fn eight_at_a_time_finds_what_one_at_a_time_does(
            bytes in prop::collection::vec(prop_oneof![Just(b'<'), Just(b'&'), Just(b' '), Just(b'='), Just(b'\''),
                Just(b'\n'), Just(0xbc), any::<u8>()], 0..40),
            offset in 0usize..40,
        ) {
            let offset = offset.min(bytes.len());
            let rest = &bytes[offset..];
            let n = rest.iter().position(|b| matches!(b, b'<' | b'&')).unwrap_or(rest.len());
            prop_assert_eq!(text(&bytes, offset), (offset + n, rest[..n].iter().all(|b| *b <= b' ')));
            for len in 0..12 {
                let slow = bytes.get(offset..offset + len).zip(bytes.get(..len)).is_some_and(|(a, b)| a == b);
                prop_assert_eq!(ranges_equal(&bytes, offset, 0, len), slow);
            }
        }
    }
}
