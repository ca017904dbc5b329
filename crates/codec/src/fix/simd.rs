//! The one place with instruction-set specific code: a pass over a message that finds every
//! separator and sums the bytes.
//!
//! ```text
//! bytes   8=FIX.4.4|9=128|35=D|…            ends  9, 15, 20, …   where the separators are
//!                                           sum   of all bytes, wrapping nowhere (u64)
//! ```
//!
//! Three kernels give the same answer: AVX-512 (64 bytes a step, positions by one compress), AVX2
//! (2 × 32) and a portable one on 8-byte words, which is also what aarch64 uses. Which one runs is
//! decided once, when a [`Kernel`] is made.

use super::data::DataTags;
use super::fields::{self, Read};
use super::tokens::Token;

/// A kernel that this processor can run.
///
/// Invariant: a value other than `Portable` exists only if detection found the instructions
/// ([`Kernel::best`] and [`Kernel::all`] are the only makers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Kernel {
    /// The fastest kernel this processor can run.
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx512() {
                return Kernel(Set::Avx512);
            }
            if x86::has_avx2() {
                return Kernel(Set::Avx2);
            }
        }
        Kernel(Set::Portable)
    }

    /// Every kernel this processor can run, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Kernel(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx2() {
                all.push(Kernel(Set::Avx2));
            }
            if x86::has_avx512() {
                all.push(Kernel(Set::Avx512));
            }
        }
        all
    }

    /// Finds every `sep` in `bytes`: their offsets are the first `seps` of `ends`, which grows
    /// when it is too short and never shrinks; what follows them there is rubbish.
    ///
    /// `bytes` must be shorter than 4 GiB, which the bound on a message sees to.
    #[inline]
    pub(crate) fn scan(self, bytes: &[u8], sep: u8, ends: &mut Vec<u32>) -> Scan {
        // A whole step of the widest kernel may be written past the last separator.
        if ends.len() < bytes.len() + STEP {
            ends.resize(bytes.len() + STEP, 0);
        }
        let ends = &mut ends[..bytes.len() + STEP];
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions,
            // and `ends` was just cut to STEP more than there are bytes.
            Set::Avx512 => unsafe { x86::scan_avx512(bytes, sep, ends) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { x86::scan_avx2(bytes, sep, ends) },
            Set::Portable => scan_portable(bytes, sep, ends),
        }
    }

    /// [`fields::read`], compiled for this kernel's instructions.
    #[inline]
    pub(crate) fn fields(
        self,
        message: &[u8],
        ends: &[u32],
        lenient: bool,
        data: &DataTags,
        table: &mut [Token],
    ) -> Read {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx512 => unsafe { x86::fields_avx512(message, ends, lenient, data, table) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { x86::fields_avx2(message, ends, lenient, data, table) },
            Set::Portable => fields::read(message, ends, lenient, data, table),
        }
    }
}

/// What one pass found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The sum of all bytes.
    pub sum: u64,
    /// How many separators there are.
    pub seps: usize,
}

/// Bytes a step, and positions written at once, at most.
const STEP: usize = 64;

/// Appends the offsets of the bits of `mask`.
#[inline(always)]
fn push_bits(mut mask: u64, base: usize, ends: &mut [u32], seps: &mut usize) {
    while mask != 0 {
        ends[*seps] = base as u32 + mask.trailing_zeros();
        *seps += 1;
        mask &= mask - 1;
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

fn scan_portable(bytes: &[u8], sep: u8, ends: &mut [u32]) -> Scan {
    let pattern = u64::from(sep) * ONES;
    let (mut sum, mut seps) = (0, 0);
    for (block, chunk) in bytes.chunks(STEP).enumerate() {
        let mut found = 0;
        // Two lanes of 16 bits for each pair of bytes: eight words add at most 8 × 510, far from
        // overflow.
        let mut lanes = 0;
        for (i, word) in chunk.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let word_bits = u64::from_le_bytes(padded);
            lanes += (word_bits & EVEN) + ((word_bits >> 8) & EVEN);
            let x = word_bits ^ pattern;
            // Bit 7 of each byte that is zero in x, exactly: no carry crosses bytes.
            let zero = !(((x & LOW7) + LOW7) | x | LOW7);
            let eight = (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            // The padding of a short word is not input, whatever the separator is.
            let valid = 0xff >> (8 - word.len());
            found |= (eight & valid) << (8 * i);
        }
        push_bits(found, block * STEP, ends, &mut seps);
        sum += (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48);
    }
    Scan { sum, seps }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::*;

    use super::{DataTags, Read, STEP, Scan, Token, fields, push_bits};

    /// All that the functions below for AVX-512 enable.
    pub(super) fn has_avx512() -> bool {
        has!("avx512f") && has!("avx512bw") && has!("avx512vbmi2") && has_bits()
    }

    /// All that the functions below for AVX2 enable.
    pub(super) fn has_avx2() -> bool {
        has!("avx2") && has_bits()
    }

    fn has_bits() -> bool {
        has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
    }

    /// # Safety
    /// - The processor has what [`has_avx512`] asks for.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn fields_avx512(
        message: &[u8],
        ends: &[u32],
        lenient: bool,
        data: &DataTags,
        table: &mut [Token],
    ) -> Read {
        fields::read(message, ends, lenient, data, table)
    }

    /// # Safety
    /// - The processor has what [`has_avx2`] asks for.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn fields_avx2(
        message: &[u8],
        ends: &[u32],
        lenient: bool,
        data: &DataTags,
        table: &mut [Token],
    ) -> Read {
        fields::read(message, ends, lenient, data, table)
    }

    /// # Safety
    /// - The processor has what [`has_avx512`] asks for.
    /// - `ends` has at least `bytes.len() + STEP` places.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn scan_avx512(bytes: &[u8], sep: u8, ends: &mut [u32]) -> Scan {
        debug_assert!(ends.len() >= bytes.len() + STEP);
        let pattern = _mm512_set1_epi8(sep as i8);
        let zero = _mm512_setzero_si512();
        // SAFETY: IOTA is 64 bytes; the load needs no alignment.
        let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
        let (mut sums, mut seps, mut at) = (zero, 0, 0);
        while at < bytes.len() {
            let left = bytes.len() - at;
            let valid = if left >= STEP { u64::MAX } else { u64::MAX >> (STEP - left) };
            // SAFETY: the mask lets only bytes up to the end of `bytes` be read; the others are
            // zero and never touched.
            let block = unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().add(at).cast()) };
            let mask = _mm512_mask_cmpeq_epi8_mask(valid, block, pattern);
            sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
            let found = mask.count_ones() as usize;
            let places = _mm512_maskz_compress_epi8(mask, iota);
            let base = _mm512_set1_epi32(at as i32);
            let mut place = _mm512_castsi512_si128(places);
            // SAFETY: at most `at` separators lie before this block, so `seps` <= `at`, and at
            // most STEP places from there are written: within `ends` by this function's duty.
            unsafe {
                let out = ends.as_mut_ptr().add(seps);
                _mm512_storeu_si512(out.cast(), _mm512_add_epi32(_mm512_cvtepu8_epi32(place), base));
                // Seldom: more than 16 fields in 64 bytes.
                if found > 16 {
                    place = _mm512_extracti32x4_epi32::<1>(places);
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(place), base);
                    _mm512_storeu_si512(out.add(16).cast(), wide);
                    place = _mm512_extracti32x4_epi32::<2>(places);
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(place), base);
                    _mm512_storeu_si512(out.add(32).cast(), wide);
                    place = _mm512_extracti32x4_epi32::<3>(places);
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(place), base);
                    _mm512_storeu_si512(out.add(48).cast(), wide);
                }
            }
            seps += found;
            at += STEP;
        }
        Scan { sum: _mm512_reduce_add_epi64(sums) as u64, seps }
    }

    static IOTA: [u8; STEP] = {
        let mut iota = [0; STEP];
        let mut i = 0;
        while i < STEP {
            iota[i] = i as u8;
            i += 1;
        }
        iota
    };

    /// # Safety
    /// - The processor has what [`has_avx2`] asks for.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn scan_avx2(bytes: &[u8], sep: u8, ends: &mut [u32]) -> Scan {
        let pattern = _mm256_set1_epi8(sep as i8);
        let zero = _mm256_setzero_si256();
        let (mut sums, mut seps) = (zero, 0);
        for (index, chunk) in bytes.chunks(STEP).enumerate() {
            let mut padded = [0; STEP];
            let block: &[u8; STEP] = match chunk.try_into() {
                Ok(whole) => whole,
                Err(_) => {
                    padded[..chunk.len()].copy_from_slice(chunk);
                    &padded
                }
            };
            // SAFETY: `block` is 64 bytes, both halves lie inside; the loads need no alignment.
            let (low, high) = unsafe {
                let at = block.as_ptr().cast::<__m256i>();
                (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
            };
            sums = _mm256_add_epi64(sums, _mm256_sad_epu8(low, zero));
            sums = _mm256_add_epi64(sums, _mm256_sad_epu8(high, zero));
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32;
            let found = u64::from(low) | u64::from(high) << 32;
            // The padding of a short block is not input, whatever the separator is.
            let found = found & (u64::MAX >> (STEP - chunk.len()));
            push_bits(found, index * STEP, ends, &mut seps);
        }
        let mut lanes = [0u64; 4];
        // SAFETY: `lanes` is 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
        Scan { sum: lanes.iter().sum(), seps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn obvious(bytes: &[u8], sep: u8) -> (Vec<u32>, u64) {
        let places = bytes.iter().enumerate().filter(|&(_, &byte)| byte == sep);
        (places.map(|(at, _)| at as u32).collect(), bytes.iter().map(|&b| u64::from(b)).sum())
    }

    proptest! {
        // A lane that overflows or a tail read one byte too far shows only at odd lengths and
        // with high bytes; separator 0 would match the padding; a run of separators fills a step.
        #[test]
        fn every_kernel_agrees_with_the_obvious(
            bytes in prop::collection::vec(prop_oneof![2 => Just(1u8), 1 => Just(0), 1 => Just(255), 1 => any::<u8>()], 0..400),
            sep in prop_oneof![Just(1u8), Just(0), Just(b'|'), any::<u8>()],
        ) {
            let (places, sum) = obvious(&bytes, sep);
            for kernel in Kernel::all() {
                let mut ends = vec![u32::MAX; 1];
                let scan = kernel.scan(&bytes, sep, &mut ends);
                prop_assert_eq!(scan, Scan { sum, seps: places.len() });
                prop_assert_eq!(&ends[..scan.seps], &places[..]);
            }
        }
    }
}
