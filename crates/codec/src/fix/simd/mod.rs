//! The one place with instruction-set specific code: a pass over a message that finds every
//! separator and sums the bytes, and the reading of fields that follows.
//!
//! ```text
//! bytes   8=FIX.4.4|9=128|35=D|…            ends    9, 15, 20, …   where the separators are
//!                                           equals  1, 11, 18, …   the first '=' of each field
//!                                           sum     of all bytes, wrapping nowhere (u64)
//! ```
//!
//! Three kernels give the same answer: AVX-512 (64 bytes a step, 16 fields at once), AVX2
//! (2 × 32) and a portable one on 8-byte words, which is also what aarch64 uses; only the first
//! wants `equals`. Which one runs is decided once, when a [`Kernel`] is made.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::data::DataTags;
use super::fields::{self, Read};
use super::tokens::Token;

/// A kernel that this processor can run.
///
/// Invariant: a value other than `Portable` exists only if detection found the instructions
/// ([`Kernel::best`] and, in tests, `Kernel::all` are the only makers).
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
            if avx512::detected() {
                return Kernel(Set::Avx512);
            }
            if avx2::detected() {
                return Kernel(Set::Avx2);
            }
        }
        Kernel(Set::Portable)
    }

    /// Every kernel this processor can run, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        #[allow(unused_mut, reason = "elsewhere than on x86-64 there is only one")]
        let mut all = vec![Kernel(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if avx2::detected() {
                all.push(Kernel(Set::Avx2));
            }
            if avx512::detected() {
                all.push(Kernel(Set::Avx512));
            }
        }
        all
    }

    /// Finds every `sep` in `bytes` and returns the sum of all bytes. `bytes` must be shorter than
    /// 4 GiB, which the bound on a message sees to.
    #[inline]
    pub(crate) fn scan(self, bytes: &[u8], sep: u8, places: &mut Places) -> u64 {
        places.make_room(bytes.len());
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions,
            // and room for all bytes was just made.
            Set::Avx512 => unsafe { avx512::scan(bytes, sep, places) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { avx2::scan(bytes, sep, places) },
            Set::Portable => scan_portable(bytes, sep, places),
        }
    }

    /// [`fields::read`] for this kernel's instructions. `table` is [`STEP`] longer than there are
    /// separators.
    #[inline]
    pub(crate) fn fields(
        self,
        message: &[u8],
        places: &Places,
        lenient: bool,
        data: &DataTags,
        table: &mut [Token],
    ) -> Read {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx512 => unsafe { avx512::fields(message, places, lenient, data, table) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { avx2::fields(message, places, lenient, data, table) },
            Set::Portable => fields::read(message, 0, places.ends(), lenient, data, table),
        }
    }
}

/// Where the separators of one message are, in buffers used again for the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The first `seps` are offsets of separators, the rest is rubbish and room.
    ends: Vec<u32>,
    seps: usize,
    /// The first `eqs` are offsets of the first '=' after the start, and after each separator.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    equals: Vec<u32>,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    eqs: usize,
}

impl Places {
    /// Offsets of the separators.
    #[inline]
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends[..self.seps]
    }

    #[inline]
    fn make_room(&mut self, bytes: usize) {
        (self.seps, self.eqs) = (0, 0);
        // A whole step may be written past the last separator.
        if self.ends.len() < bytes + STEP {
            self.ends.resize(bytes + STEP, 0);
            self.equals.resize(bytes + STEP, 0);
        }
    }

    /// Appends the separators that `mask` marks in the 64 bytes from `base` on.
    #[inline(always)]
    fn push(&mut self, mut mask: u64, base: usize) {
        let count = mask.count_ones() as usize;
        for place in &mut self.ends[self.seps..self.seps + count] {
            *place = base as u32 + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        self.seps += count;
    }
}

/// Bytes a step, and positions written at once, at most.
pub(crate) const STEP: usize = 64;

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

fn scan_portable(bytes: &[u8], sep: u8, places: &mut Places) -> u64 {
    let pattern = u64::from(sep) * ONES;
    let mut sum = 0;
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
        places.push(found, block * STEP);
        sum += (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48);
    }
    sum
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
            let (ends, sum) = obvious(&bytes, sep);
            for kernel in Kernel::all() {
                let mut places = Places::default();
                prop_assert_eq!(kernel.scan(&bytes, sep, &mut places), sum);
                prop_assert_eq!(places.ends(), &ends[..]);
            }
        }
    }
}
