//! AVX2: two times 32 bytes a step; fields one by one, with the bit instructions of that age.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::super::data::RawFieldTags;
use super::super::shapes::TagSequence;
use super::portable::{self, ByteMasks};
use super::{FieldColumns, STEP, ScanTotals};

/// Returns whether the processor has all instructions that the functions below enable.
pub(super) fn is_detected() -> bool {
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// Reads the fields of a message with AVX2.
///
/// # Safety
/// The caller must ensure:
/// - [`is_detected`] has returned true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn read_fields(
    message: &[u8],
    sep: u8,
    data: &RawFieldTags,
    columns: &mut FieldColumns,
) -> ScanTotals {
    portable::read_with(message, sep, data, columns, |block| step_masks(block, sep))
}

/// Reads the fields of a message that has the tags of `shape`, with AVX2.
///
/// # Safety
/// The caller must ensure:
/// - [`is_detected`] has returned true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn read_expected(
    message: &[u8],
    sep: u8,
    shape: &TagSequence,
    columns: &mut FieldColumns,
) -> Option<u64> {
    portable::read_expected_with(message, shape, columns, |block| step_masks(block, sep))
}

/// Computes the masks and the sum of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn step_masks(block: &[u8; STEP], sep: u8) -> ByteMasks {
    let (sep_pattern, eq_pattern) = (_mm256_set1_epi8(sep as i8), _mm256_set1_epi8(b'=' as i8));
    // SAFETY: `block` is 64 bytes, both halves lie inside; the loads need no alignment.
    let (low, high) = unsafe {
        let block_ptr = block.as_ptr().cast::<__m256i>();
        (_mm256_loadu_si256(block_ptr), _mm256_loadu_si256(block_ptr.add(1)))
    };
    (equal_bits(low, high, sep_pattern), equal_bits(low, high, eq_pattern), byte_sum(low, high))
}

/// Sets a bit for each byte that equals the byte in `pattern`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal_bits(low: __m256i, high: __m256i, pattern: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
    let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32;
    u64::from(low) | u64::from(high) << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn byte_sum(low: __m256i, high: __m256i) -> u64 {
    let zero = _mm256_setzero_si256();
    let four = _mm256_add_epi64(_mm256_sad_epu8(low, zero), _mm256_sad_epu8(high, zero));
    let two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
    _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))) as u64
}
