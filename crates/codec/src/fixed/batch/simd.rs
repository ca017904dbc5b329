//! The one place with instruction-set specific code: up to 16 digits of two records, or up to eight of four, in one
//! register (AVX2).
//!
//! ```text
//!  16 bytes from the column's start      0 0 0 0 2 4 1 7 6 2 2 0 0 0 0 0
//!  less '0', checked, moved to the right . . . . . 0 0 0 0 0 2 4 1 7 6 2
//!  × 10 + neighbour                          pairs of digits, 8 × 16 bits
//!  × 100 + neighbour                         fours, 4 × 32 bits
//!  × 10 000 + neighbour                      eights, 2 × 32 bits
//! ```
//!
//! A clock goes the same way with other factors: `HHMM` becomes minutes, `SSffffff` microseconds, and the pairs
//! are compared with 23, 59 and 59 on the way.

use super::clock::Clock;
use super::{Found, Lanes, Number, portable};

/// A kernel that this processor can run.
///
/// Invariant: `Avx2` exists only if detection found the instructions; [`Kernel::best`] is its only maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Kernel {
    /// The one that every processor runs.
    #[cfg(any(test, feature = "naive"))]
    pub(super) const PORTABLE: Self = Kernel(Set::Portable);

    /// The fastest that this processor runs.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Kernel(Set::Avx2);
        }
        Kernel(Set::Portable)
    }

    /// Reads a column of at most 16 digits. All records reach 16 bytes behind the column's start.
    #[inline]
    pub(super) fn numbers(self, op: &Number, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { avx2::numbers(op, bytes, starts, values) },
            Set::Portable => portable::numbers(op, bytes, starts, values),
        }
    }

    /// Reads a column of clock times. All records reach 16 bytes behind the column's start.
    #[inline]
    pub(super) fn clocks(self, op: &Clock, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            Set::Avx2 => unsafe { avx2::clocks(op, bytes, starts, values) },
            Set::Portable => portable::clocks(op, bytes, starts, values),
        }
    }
}

/// Asks for `length` bytes from `at` on, which are wanted soon.
#[inline]
pub(super) fn prefetch(bytes: &[u8], at: usize, length: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (at..bytes.len().min(at + length)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = &bytes[line];
        // SAFETY: asking for a line touches no memory, and this one is the slice's.
        unsafe { _mm_prefetch(std::ptr::from_ref(line).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at, length);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Clock, Found, Lanes, Number, portable};
    use std::arch::x86_64::*;

    /// # Safety
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn numbers(op: &Number, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
        let mut found = Found::default();
        if op.width <= 8 {
            short(op, bytes, starts, values, &mut found)
        } else {
            long(op, bytes, starts, values, &mut found)
        }
        found
    }

    /// Up to 16 digits: two records in a register.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn long(op: &Number, bytes: &[u8], starts: &[u32], values: &mut Lanes, found: &mut Found) {
        let mut right = [-128i8; 16];
        for i in 0..op.width {
            right[16 - op.width + i] = i as i8;
        }
        let right = twice(right);
        let width = (1u32 << op.width) - 1;
        let all = width | width << 16;
        let hundreds = _mm256_set1_epi32(100 | 1 << 16);
        let first_eight = _mm256_set1_epi64x(100_000_000);
        for (pair, (at, values)) in starts.chunks(2).zip(values.as_chunks_mut::<2>().0).enumerate() {
            let (a, b) = (at[0] as usize + op.start, at[at.len() - 1] as usize + op.start);
            let (x, digits) = digits(sixteen(bytes, a), sixteen(bytes, b));
            let pairs = _mm256_maddubs_epi16(_mm256_shuffle_epi8(x, right), tens());
            let n = eights(_mm256_madd_epi16(pairs, hundreds));
            let n = _mm256_add_epi64(_mm256_mul_epu32(n, first_eight), _mm256_srli_epi64(n, 32));
            store_two(n, values);
            if digits & all != all {
                for (i, (at, digits)) in at.iter().zip([digits, digits >> 16]).enumerate() {
                    if digits & width != width {
                        let start = *at as usize + op.start;
                        values[i] = portable::one(op, &bytes[start..start + op.width], 2 * pair + i, found);
                    }
                }
            }
        }
    }

    /// Up to eight digits: four records in a register.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn short(op: &Number, bytes: &[u8], starts: &[u32], values: &mut Lanes, found: &mut Found) {
        let mut right = [-128i8; 16];
        for i in 0..op.width {
            right[8 - op.width + i] = i as i8;
            right[16 - op.width + i] = 8 + i as i8;
        }
        let right = twice(right);
        let width = (1u32 << op.width) - 1;
        let all = width * 0x0101_0101;
        let hundreds = _mm256_set1_epi32(100 | 1 << 16);
        for (four, (at, values)) in starts.chunks(4).zip(values.as_chunks_mut::<4>().0).enumerate() {
            // The last record stands for those that are missing.
            let load = |i: usize| eight(bytes, at[i.min(at.len() - 1)] as usize + op.start);
            let (a, b) = (_mm_set_epi64x(load(1), load(0)), _mm_set_epi64x(load(3), load(2)));
            let (x, digits) = digits(a, b);
            let pairs = _mm256_maddubs_epi16(_mm256_shuffle_epi8(x, right), tens());
            let n = eights(_mm256_madd_epi16(pairs, hundreds));
            let n = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(_mm256_permute4x64_epi64(n, 0b1000)));
            // SAFETY: `values` is four times 8 bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), n) };
            if digits & all != all {
                for (i, at) in at.iter().enumerate() {
                    if digits >> (8 * i) & width != width {
                        let start = *at as usize + op.start;
                        values[i] = portable::one(op, &bytes[start..start + op.width], 4 * four + i, found);
                    }
                }
            }
        }
    }

    /// # Safety
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn clocks(op: &Clock, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
        let mut found = Found::default();
        let near = op.digits.min(6);
        let mut places = [-128i8; 16];
        for i in 0..6 + near {
            places[4 + i] = i as i8;
        }
        let places = twice(places);
        let width = (1u32 << (6 + near)) - 1;
        let all = width | width << 16;
        let most = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0, 23, 59, 59, 99, 99, 99));
        let factors = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0, 60, 1, 100, 1, 100, 1));
        let minute_micros = _mm256_set1_epi64x(60_000_000);
        let unit = 10i64.pow(9 - op.digits as u32);
        for (pair, (at, values)) in starts.chunks(2).zip(values.as_chunks_mut::<2>().0).enumerate() {
            let (a, b) = (at[0] as usize + op.start, at[at.len() - 1] as usize + op.start);
            let (x, digits) = digits(sixteen(bytes, a), sixteen(bytes, b));
            let pairs = _mm256_maddubs_epi16(_mm256_shuffle_epi8(x, places), tens());
            let beyond = _mm256_movemask_epi8(_mm256_cmpgt_epi16(pairs, most)) as u32;
            let n = eights(_mm256_madd_epi16(pairs, factors));
            let micros = _mm256_add_epi64(_mm256_mul_epu32(n, minute_micros), _mm256_srli_epi64(n, 32));
            // Times 1000, which is 1024 less 16 less 8.
            let less = _mm256_add_epi64(_mm256_slli_epi64(micros, 4), _mm256_slli_epi64(micros, 3));
            store_two(_mm256_sub_epi64(_mm256_slli_epi64(micros, 10), less), values);
            if digits & all == all && beyond == 0 && op.digits <= 6 {
                continue;
            }
            let each = [(digits, beyond & 0xffff), (digits >> 16, beyond >> 16)];
            for (i, (at, (digits, beyond))) in at.iter().zip(each).enumerate() {
                let (lane, start) = (2 * pair + i, *at as usize);
                if digits & width != width || beyond != 0 {
                    values[i] = portable::one_clock(op, bytes, start, lane, &mut found);
                } else if op.digits > 6 {
                    // The last three digits of nanoseconds stand alone.
                    let start = start + op.start + 12;
                    let rest = &bytes[start..start + op.digits - 6];
                    if rest.iter().all(u8::is_ascii_digit) {
                        values[i] += rest.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')) * unit;
                    } else {
                        found.bad |= 1 << lane;
                    }
                }
            }
        }
        found
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn twice(bytes: [i8; 16]) -> __m256i {
        // SAFETY: `bytes` is 16 bytes; the load needs no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn tens() -> __m256i {
        _mm256_set1_epi16(10 | 1 << 8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sixteen(bytes: &[u8], at: usize) -> __m128i {
        let bytes = &bytes[at..at + 16];
        // SAFETY: `bytes` is 16 bytes; the load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// The values of the digits of two records, and which bytes are digits; other bytes are 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn digits(a: __m128i, b: __m128i) -> (__m256i, u32) {
        let x = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
        let x = _mm256_sub_epi8(x, _mm256_set1_epi8(b'0' as i8));
        let are = _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8(9)), x);
        (_mm256_and_si256(x, are), _mm256_movemask_epi8(are) as u32)
    }

    #[inline]
    fn eight(bytes: &[u8], at: usize) -> i64 {
        let bytes: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
        i64::from_le_bytes(bytes)
    }

    /// Of fours: two numbers of eight digits in the low half of each half, the first in the low bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn eights(fours: __m256i) -> __m256i {
        let packed = _mm256_packus_epi32(fours, fours);
        _mm256_madd_epi16(packed, _mm256_set1_epi32(10_000 | 1 << 16))
    }

    /// The low words of both halves.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn store_two(n: __m256i, values: &mut [i64; 2]) {
        let two = _mm256_castsi256_si128(_mm256_permute4x64_epi64(n, 0b1000));
        // SAFETY: `values` is twice 8 bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(values.as_mut_ptr().cast(), two) };
    }
}
