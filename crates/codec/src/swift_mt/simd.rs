//! The one place with instruction-set specific code: where line feeds and braces are in a message, 64 bytes a step
//! (AVX2), or eight in a word on every processor.
//!
//! ```text
//! {1:F01…}{2:O103…}{4:⏎:20:REF⏎:32A:…⏎-}{5:…
//! ↑      ↑↑       ↑↑  ↑       ↑      ↑ ↑ stops here
//! ```

/// A kernel that this processor can run.
///
/// Invariant: `Avx2` exists only if detection found the instructions; [`SwiftKernel::best`] is its only maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SwiftKernel(SwiftInstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SwiftInstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// Places found, in order: the first `len` of a table that only grows.
#[derive(Debug, Default)]
pub(super) struct DelimiterOffsets {
    table: Vec<u32>,
    len: usize,
}

impl DelimiterOffsets {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.table[..self.len]
    }

    /// Adds the bits of one step; 64 at most.
    #[inline(always)]
    fn add_bits(&mut self, mut bits: u64, base: u32) {
        let count = bits.count_ones() as usize;
        if self.table.len() < self.len + STEP {
            self.grow_offsets();
        }
        let out = &mut self.table[self.len..self.len + STEP];
        // Nearly all steps have fewer than eight: to write always eight costs less than to guess how many.
        for offset in &mut out[..EAGER] {
            *offset = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        if count > EAGER {
            for offset in &mut out[EAGER..count] {
                *offset = base + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
        }
        self.len += count;
    }

    #[cold]
    fn grow_offsets(&mut self) {
        self.table.resize((self.len + STEP) * 2, 0);
    }
}

/// Bytes a step.
const STEP: usize = 64;

/// Bytes ahead that are fetched from memory: some messages.
const AHEAD: usize = 2048;

/// Places of a step that are written without asking.
const EAGER: usize = 8;

impl SwiftKernel {
    /// The portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    pub(super) const PORTABLE: Self = SwiftKernel(SwiftInstructionSet::Portable);

    /// Returns the fastest kernel of this processor.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            return SwiftKernel(SwiftInstructionSet::Avx2);
        }
        SwiftKernel(SwiftInstructionSet::Portable)
    }

    /// Finds every `\n`, `{` and `}` up to and with the first `}` after a `-`; returns false without such a `}`.
    /// `bytes` must be shorter than 4 GiB.
    #[inline]
    pub(super) fn index(self, bytes: &[u8], places: &mut DelimiterOffsets) -> bool {
        debug_assert!(u32::try_from(bytes.len()).is_ok());
        places.len = 0;
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            SwiftInstructionSet::Avx2 => unsafe { index_avx2(bytes, places) },
            SwiftInstructionSet::Portable => index_portable(bytes, places),
        }
    }
}

/// Adds the marks of one step: `marks` are line feeds and braces, `closing` are the closing braces among them.
#[inline(always)]
fn add_step(
    bytes: &[u8],
    base: usize,
    mut marks: u64,
    mut closing: u64,
    places: &mut DelimiterOffsets,
) -> bool {
    let mut has_end = false;
    while closing != 0 {
        let offset = base + closing.trailing_zeros() as usize;
        if offset > 0 && bytes[offset - 1] == b'-' {
            // Bytes after it are not asked for.
            marks &= closing ^ closing.wrapping_sub(1);
            has_end = true;
            break;
        }
        closing &= closing - 1;
    }
    places.add_bits(marks, base as u32);
    has_end
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;

fn index_portable(bytes: &[u8], places: &mut DelimiterOffsets) -> bool {
    for (i, chunk) in bytes.chunks(STEP).enumerate() {
        let (mut marks, mut closing) = (0, 0);
        for (n, word) in chunk.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let bits = u64::from_le_bytes(padded);
            let are = |byte: u8| {
                let x = bits ^ (u64::from(byte) * ONES);
                // Bit 7 of each byte that is zero in x, exactly: no carry crosses bytes.
                let zero = !(((x & LOW7) + LOW7) | x | LOW7);
                ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * n)
            };
            let close = are(b'}');
            marks |= are(b'\n') | are(b'{') | close;
            closing |= close;
        }
        if add_step(bytes, STEP * i, marks, closing, places) {
            return true;
        }
    }
    false
}

/// Indexes line feeds and braces with AVX2.
///
/// # Safety
/// The caller must ensure:
/// - The processor has AVX2, BMI1 and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn index_avx2(bytes: &[u8], places: &mut DelimiterOffsets) -> bool {
    use std::arch::x86_64::*;
    let line_feeds = _mm256_set1_epi8(b'\n' as i8);
    let (open, close) = (_mm256_set1_epi8(b'{' as i8), _mm256_set1_epi8(b'}' as i8));
    for (i, chunk) in bytes.chunks(STEP).enumerate() {
        let mut padded = [0; STEP];
        let block: &[u8; STEP] = match chunk.try_into() {
            Ok(full_chunk) => full_chunk,
            Err(_) => {
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded
            }
        };
        // The next bytes of the stream are needed soon. Nothing is read here, whatever the address is.
        _mm_prefetch::<_MM_HINT_T0>(chunk.as_ptr().wrapping_add(AHEAD).cast());
        let (mut marks, mut closing) = (0, 0);
        for (n, half) in block.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: `half` is 32 bytes; the load needs no alignment.
            let x = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            let closes = _mm256_cmpeq_epi8(x, close);
            let feeds_and_opens =
                _mm256_or_si256(_mm256_cmpeq_epi8(x, line_feeds), _mm256_cmpeq_epi8(x, open));
            let all_marks = _mm256_or_si256(closes, feeds_and_opens);
            marks |= u64::from(_mm256_movemask_epi8(all_marks) as u32) << (32 * n);
            closing |= u64::from(_mm256_movemask_epi8(closes) as u32) << (32 * n);
        }
        if add_step(bytes, STEP * i, marks, closing, places) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // An end whose `-` is the last byte of a step; more than eight marks in a step; a short tail.
        #[test]
        fn kernels_agree_with_the_obvious(
            bytes in "[a\n{}-]{0,20}([a-z\n]{0,90}|[\n{}]{0,90})[-}a]{0,20}[a\n{}-]{0,70}"
        ) {
            let bytes = bytes.as_bytes();
            let end = bytes.windows(2).position(|two| two == b"-}");
            let message_bytes = &bytes[..end.map_or(bytes.len(), |offset| offset + 2)];
            let marks = message_bytes.iter().enumerate().filter(|(_, b)| matches!(b, b'\n' | b'{' | b'}'));
            let expected: Vec<_> = marks.map(|(offset, _)| offset as u32).collect();
            for kernel in [SwiftKernel::best(), SwiftKernel::PORTABLE] {
                let mut places = DelimiterOffsets::default();
                prop_assert_eq!(kernel.index(bytes, &mut places), end.is_some());
                prop_assert_eq!(places.as_slice(), &expected);
            }
        }
    }
}
