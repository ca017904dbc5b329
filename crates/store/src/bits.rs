//! Integers as few bytes: varints, and runs packed to the bits they need.
//!
//! A packed run of `n` values of `width` bits is a little-endian bit stream: value `i` is in bits
//! `i * width ..` of it, and it occupies `ceil(n * width / 8)` bytes.

/// Readable bytes that must follow a packed run, so that every value can be loaded without looking where it ends.
pub(crate) const PAD: usize = 16;

/// Returns the number of bytes of `n` values of `width` bits.
#[inline]
pub(crate) fn packed_bytes(n: usize, width: u32) -> usize {
    (n * width as usize).div_ceil(8)
}

/// Bits that `v` needs.
#[inline]
pub(crate) fn width_of(v: u64) -> u32 {
    64 - v.leading_zeros()
}

/// Appends `values`, none wider than `width` bits.
pub(crate) fn pack(out: &mut Vec<u8>, values: &[u64], width: u32) {
    if width == 0 {
        return;
    }
    let (mut acc, mut bits) = (0u128, 0u32);
    for &v in values {
        debug_assert!(width == 64 || v >> width == 0);
        acc |= u128::from(v) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(acc as u64).to_le_bytes());
            acc >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&(acc as u64).to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Reads a run into `out`. `src` begins with it and continues for [`PAD`] bytes at least.
///
/// # Panics
/// Panics if `src` is shorter than that or `width` is more than 64. Opening a chunk checks both.
pub(crate) fn unpack(src: &[u8], width: u32, out: &mut [u64]) {
    macro_rules! dispatch {
        ($($w:literal)*) => { match width { 0 => out.fill(0), $($w => unpack_as::<$w>(src, out),)* _ => panic!("width {width}") } };
    }
    dispatch!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36
        37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64)
}

/// Unpacks values of a constant width. Offsets and shifts of eight values at a time are then constants.
fn unpack_as<const W: usize>(src: &[u8], out: &mut [u64]) {
    let mut offset = 0;
    let mut groups = out.chunks_exact_mut(8);
    for group in &mut groups {
        let run = &src[offset..offset + W + PAD];
        for (k, v) in group.iter_mut().enumerate() {
            *v = load::<W>(run, k);
        }
        offset += W;
    }
    for (k, v) in groups.into_remainder().iter_mut().enumerate() {
        *v = load::<W>(&src[offset..], k);
    }
}

#[inline(always)]
fn load<const W: usize>(src: &[u8], k: usize) -> u64 {
    let (byte, shift) = (k * W / 8, k * W % 8);
    let mask = u64::MAX >> (64 - W);
    if W <= 57 {
        u64::from_le_bytes(src[byte..byte + 8].try_into().expect("eight bytes")) >> shift & mask
    } else {
        (u128::from_le_bytes(src[byte..byte + 16].try_into().expect("sixteen bytes")) >> shift) as u64 & mask
    }
}

/// Appends `v` seven bits at a time.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Reads a varint at `offset` and moves past it. Returns `None` if it does not end in `data` or does not fit 64 bits.
#[inline]
pub(crate) fn take_varint(data: &[u8], offset: &mut usize) -> Option<u64> {
    let mut v = 0u64;
    for i in 0..10 {
        let b = *data.get(*offset)?;
        *offset += 1;
        if i == 9 && b > 1 {
            return None;
        }
        v |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some(v);
        }
    }
    None
}

/// Maps small numbers of either sign to small unsigned numbers.
#[inline]
pub(crate) fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

/// Inverts [`zigzag`].
#[inline]
pub(crate) fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Unpacks one bit after another, as the head of this file describes.
    fn naive(src: &[u8], width: u32, n: usize) -> Vec<u64> {
        let bit = |i: usize| u64::from(src[i / 8] >> (i % 8) & 1);
        let w = width as usize;
        (0..n).map(|i| (0..w).fold(0, |v, k| v | bit(i * w + k) << k)).collect()
    }

    proptest! {
        /// Fails if a load runs over into the next value, which happens only at some widths and offsets.
        #[test]
        fn packed_runs_come_back_and_are_what_they_are_said_to_be(
            width in 0u32..=64, values in proptest::collection::vec(any::<u64>(), 0..200),
        ) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> = values.iter().map(|v| v & mask).collect();
            let mut bytes = Vec::new();
            pack(&mut bytes, &values, width);
            prop_assert_eq!(bytes.len(), packed_bytes(values.len(), width));
            prop_assert_eq!(&naive(&bytes, width, values.len()), &values);
            bytes.extend([0xa5; PAD]);
            let mut back = vec![7; values.len()];
            unpack(&bytes, width, &mut back);
            prop_assert_eq!(back, values);
        }

        #[test]
        fn varints_come_back(v in any::<u64>(), s in 0u32..64, cut in 0usize..10) {
            let v = v >> s;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, v);
            let mut offset = 0;
            prop_assert_eq!((take_varint(&bytes, &mut offset), offset), (Some(v), bytes.len()));
            prop_assert_eq!(unzigzag(zigzag(v as i64)), v as i64);
            if cut < bytes.len() {
                prop_assert_eq!(take_varint(&bytes[..cut], &mut 0), None);
            }
        }
    }

    #[test]
    fn a_varint_beyond_64_bits_is_none() {
        assert_eq!(take_varint(&[0xff; 11], &mut 0), None);
        assert_eq!(take_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], &mut 0), None);
    }
}
