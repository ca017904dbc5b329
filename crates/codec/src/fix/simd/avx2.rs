//! AVX2: two times 32 bytes a step; fields one by one, with the bit instructions of that age.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::{DataTags, Places, Read, STEP, Token, fields};

/// Whether the processor has all that the functions below enable.
pub(super) fn detected() -> bool {
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// # Safety
/// - [`detected`] has returned true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn scan(bytes: &[u8], sep: u8, places: &mut Places) -> u64 {
    let pattern = _mm256_set1_epi8(sep as i8);
    let zero = _mm256_setzero_si256();
    let mut sums = zero;
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
        places.push(found & (u64::MAX >> (STEP - chunk.len())), index * STEP);
    }
    let mut lanes = [0u64; 4];
    // SAFETY: `lanes` is 32 bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    lanes.iter().sum()
}

/// # Safety
/// - [`detected`] has returned true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn fields(
    message: &[u8],
    places: &Places,
    lenient: bool,
    data: &DataTags,
    table: &mut [Token],
) -> Read {
    fields::read(message, 0, places.ends(), lenient, data, table)
}
