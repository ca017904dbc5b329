//! The one place with instruction-set specific code: a pass over a message that finds every
//! separator and sums the bytes.
//!
//! Picture of the result, for a message of 150 bytes and separator `|`:
//!
//! ```text
//! bytes   8=FIX.4.4|9=128|35=D|…            bit i of word w is set
//! masks   [u64; 3]                          where byte 64·w + i is the separator
//! sum     all 150 bytes added up, wrapping nowhere (u64)
//! ```
//!
//! Three kernels give the same answer: AVX-512BW (64 bytes a step), AVX2 (2 × 32) and a portable
//! one on 8-byte words, which is also what aarch64 uses. Which one runs is decided once, when a
//! [`Kernel`] is made.

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
            if std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512f")
            {
                return Kernel(Set::Avx512);
            }
            if std::arch::is_x86_feature_detected!("avx2") {
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
            if std::arch::is_x86_feature_detected!("avx2") {
                all.push(Kernel(Set::Avx2));
            }
            if Kernel::best() == Kernel(Set::Avx512) {
                all.push(Kernel(Set::Avx512));
            }
        }
        all
    }

    /// Marks every `sep` in `bytes` and returns the sum of all bytes. `masks` grows when it is
    /// too short and never shrinks; the first `bytes.len().div_ceil(64)` words are the answer.
    #[inline]
    pub(crate) fn scan(self, bytes: &[u8], sep: u8, masks: &mut Vec<u64>) -> u64 {
        let words = bytes.len().div_ceil(64);
        if masks.len() < words {
            masks.resize(words, 0);
        }
        let masks = &mut masks[..words];
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx512 => unsafe { x86::scan_avx512(bytes, sep, masks) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { x86::scan_avx2(bytes, sep, masks) },
            Set::Portable => scan_portable(bytes, sep, masks),
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

fn scan_portable(bytes: &[u8], sep: u8, masks: &mut [u64]) -> u64 {
    let pattern = u64::from(sep) * ONES;
    let mut sum = 0;
    for (chunk, mask) in bytes.chunks(64).zip(masks) {
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
        *mask = found;
        sum += (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48);
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// - The processor has AVX-512F and AVX-512BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn scan_avx512(bytes: &[u8], sep: u8, masks: &mut [u64]) -> u64 {
        let pattern = _mm512_set1_epi8(sep as i8);
        let zero = _mm512_setzero_si512();
        let mut sums = zero;
        let mut chunks = bytes.chunks_exact(64);
        let mut masks = masks.iter_mut();
        for (chunk, mask) in chunks.by_ref().zip(masks.by_ref()) {
            // SAFETY: the chunk is exactly 64 bytes; the load needs no alignment.
            let block = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            *mask = _mm512_cmpeq_epi8_mask(block, pattern);
            sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
        }
        let rest = chunks.remainder();
        if let (false, Some(mask)) = (rest.is_empty(), masks.next()) {
            let valid = u64::MAX >> (64 - rest.len());
            // SAFETY: the mask lets only the `rest.len()` first bytes be read, the others are
            // zero and never touched.
            let block = unsafe { _mm512_maskz_loadu_epi8(valid, rest.as_ptr().cast()) };
            *mask = _mm512_mask_cmpeq_epi8_mask(valid, block, pattern);
            sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
        }
        _mm512_reduce_add_epi64(sums) as u64
    }

    /// # Safety
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn scan_avx2(bytes: &[u8], sep: u8, masks: &mut [u64]) -> u64 {
        let pattern = _mm256_set1_epi8(sep as i8);
        let zero = _mm256_setzero_si256();
        let mut sums = zero;
        for (chunk, mask) in bytes.chunks(64).zip(masks) {
            let mut padded = [0; 64];
            let block: &[u8; 64] = match chunk.try_into() {
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
            *mask = found & (u64::MAX >> (64 - chunk.len()));
        }
        let mut lanes = [0u64; 4];
        // SAFETY: `lanes` is 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
        lanes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn obvious(bytes: &[u8], sep: u8) -> (Vec<u64>, u64) {
        let mut masks = vec![0; bytes.len().div_ceil(64)];
        for (i, &byte) in bytes.iter().enumerate() {
            if byte == sep {
                masks[i / 64] |= 1 << (i % 64);
            }
        }
        (masks, bytes.iter().map(|&b| u64::from(b)).sum())
    }

    proptest! {
        // A lane that overflows or a tail read one byte too far shows only at odd lengths and
        // with high bytes; separator 0 would match the padding.
        #[test]
        fn every_kernel_agrees_with_the_obvious(
            bytes in prop::collection::vec(prop_oneof![Just(1u8), Just(0), Just(255), any::<u8>()], 0..400),
            sep in prop_oneof![Just(1u8), Just(0), Just(b'|'), any::<u8>()],
        ) {
            let (masks, sum) = obvious(&bytes, sep);
            for kernel in Kernel::all() {
                let mut got = vec![u64::MAX; 1];
                prop_assert_eq!(kernel.scan(&bytes, sep, &mut got), sum);
                prop_assert_eq!(&got[..masks.len()], &masks[..]);
            }
        }
    }
}
