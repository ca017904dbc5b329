//! Integers as few bytes: varints, and runs packed to the bits they need.
//!
//! A packed run of `n` values of `width` bits is a little-endian bit stream: value `i` is in bits
//! `i * width ..` of it, and it occupies `ceil(n * width / 8)` bytes.
//!
//! A whole vector of 1,024 values is packed in lanes instead, which a processor unpacks several at a time: in the order of
//! FastLanes (Afroozeh and Boncz, *The FastLanes Compression Layout*, VLDB 2023), in words of the type of the column. It
//! occupies as many bytes: `128 * width`.

use fastlanes::BitPacking;
use zerocopy::{FromBytes, IntoBytes};

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

/// The number of values of a vector. The last vector of a column may have fewer.
pub(crate) const VECTOR: usize = 1024;

#[cfg(target_endian = "big")]
compile_error!("packed vectors are little-endian words, and this reads them as those of the machine");

/// The words in which a vector is packed: the least that hold a value of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Bits8,
    Bits16,
    Bits32,
    Bits64,
}

impl Lane {
    /// Returns the words for values of this many bytes, 1 to 8.
    pub fn for_bytes(bytes: u8) -> Self {
        match bytes {
            0 | 1 => Self::Bits8,
            2 => Self::Bits16,
            3 | 4 => Self::Bits32,
            _ => Self::Bits64,
        }
    }

    /// Returns the bits of a word, which are the most that a packed value has.
    pub fn bits(self) -> u32 {
        match self {
            Self::Bits8 => 8,
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }

    /// Appends a vector, none of whose values is wider than `width` bits.
    ///
    /// # Panics
    /// Panics if `width` is more than the bits of a word.
    pub fn pack(self, out: &mut Vec<u8>, values: &[u64; VECTOR], width: u32) {
        match self {
            Self::Bits8 => pack_u8(out, values, width),
            Self::Bits16 => pack_u16(out, values, width),
            Self::Bits32 => pack_u32(out, values, width),
            Self::Bits64 => pack_u64(out, values, width),
        }
    }

    /// Reads a vector. `src` has at least `128 * width` bytes.
    ///
    /// # Panics
    /// Panics if it has fewer, or if `width` is more than the bits of a word. Opening a vector checks both.
    pub fn unpack(self, src: &[u8], width: u32, out: &mut [u64; VECTOR]) {
        match self {
            Self::Bits8 => unpack_u8(src, width, out),
            Self::Bits16 => unpack_u16(src, width, out),
            Self::Bits32 => unpack_u32(src, width, out),
            Self::Bits64 => unpack_u64(src, width, out),
        }
    }
}

/// Makes the functions of one word: `WORDS` of it are one bit of a vector.
macro_rules! lane {
    ($pack:ident $unpack:ident $word:ty, $words:literal: $($width:literal)*) => {
        fn $pack(out: &mut Vec<u8>, values: &[u64; VECTOR], width: u32) {
            let mut narrow = [0 as $word; VECTOR];
            narrow.iter_mut().zip(values).for_each(|(word, value)| *word = *value as $word);
            match width {
                0 => {}
                $($width => {
                    let mut packed = [0 as $word; $width * $words];
                    <$word>::pack::<$width, { $width * $words }>(&narrow, &mut packed);
                    out.extend_from_slice(packed.as_bytes());
                })*
                _ => panic!("width {width}"),
            }
        }

        fn $unpack(src: &[u8], width: u32, out: &mut [u64; VECTOR]) {
            let mut narrow = [0 as $word; VECTOR];
            match width {
                0 => {}
                $($width => {
                    let packed = &src[..128 * $width];
                    // In a block that was opened in place the words are aligned.
                    match <[$word; $width * $words]>::ref_from_bytes(packed) {
                        Ok(words) => <$word>::unpack::<$width, { $width * $words }>(words, &mut narrow),
                        Err(_) => {
                            let mut words = [0 as $word; $width * $words];
                            words.as_mut_bytes().copy_from_slice(packed);
                            <$word>::unpack::<$width, { $width * $words }>(&words, &mut narrow);
                        }
                    }
                })*
                _ => panic!("width {width}"),
            }
            out.iter_mut().zip(&narrow).for_each(|(value, word)| *value = u64::from(*word));
        }
    };
}

lane!(pack_u8 unpack_u8 u8, 128: 1 2 3 4 5 6 7 8);
lane!(pack_u16 unpack_u16 u16, 64: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
lane!(pack_u32 unpack_u32 u32, 32: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
    31 32);
lane!(pack_u64 unpack_u64 u64, 16: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
    31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);

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

        /// Fails at a word or a width in which a vector comes back otherwise, or in which a lane does not begin with its value.
        #[test]
        fn packed_vectors_come_back_aligned_or_not(
            width in 0u32..=64, bytes in 1u8..=8, seed in any::<u64>(), shift in 0usize..16,
        ) {
            let lane = Lane::for_bytes(bytes);
            let width = width.min(lane.bits());
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: [u64; VECTOR] =
                std::array::from_fn(|i| seed.wrapping_mul(i as u64 | 1).rotate_left(i as u32 % 64) & mask);
            let mut packed = vec![0xee; shift];
            lane.pack(&mut packed, &values, width);
            prop_assert_eq!(packed.len(), shift + packed_bytes(VECTOR, width));
            let mut back = [3; VECTOR];
            lane.unpack(&packed[shift..], width, &mut back);
            prop_assert_eq!(back, values);
            // The first word of each lane begins with the value of its number.
            let lanes = VECTOR / lane.bits() as usize;
            if width > 0 {
                let word_bytes = lane.bits() as usize / 8;
                for lane_number in [0, 1, lanes - 1] {
                    let word = &packed[shift + lane_number * word_bytes..][..word_bytes];
                    let first = word.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte)) & mask;
                    prop_assert_eq!(first, values[lane_number], "lane {}", lane_number);
                }
            }
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
