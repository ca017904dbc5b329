//! The one place with instruction-set specific code: up to 16 digits of four records at once (AVX2), two in a register.
//!
//! ```text
//!  16 bytes from the column's start      0 0 0 0 2 4 1 7 6 2 2 0 0 0 0 0
//!  less '0', moved to the right          . . . . . 0 0 0 0 0 2 4 1 7 6 2    the greatest of all is kept: 9, or bad
//!  × 10 + neighbour                          pairs of digits, 8 × 16 bits
//!  × 100 + neighbour                         fours, 4 × 32 bits
//!  × 10 000 + neighbour                      eights, 2 × 32 bits
//! ```
//!
//! A clock goes the same way with other factors: `HHMM` becomes minutes, `SSffffff` microseconds, and the pairs
//! are compared with 23, 59 and 59 on the way.
//!
//! Only at the end of a column is it looked at whether all were digits. If not, the column is read again, record by
//! record; where that was so, the next batch is read record by record at once, until one is all digits again.

use super::clock::ClockColumn;
use super::rows::RecordBatch;
use super::{DigitColumn, LANES, LaneFaults, Lanes, portable};

/// A kernel that this processor can run.
///
/// Invariant: `Avx2` exists only if detection found the instructions; [`BatchKernel::best`] is its only maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchKernel(BatchInstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchInstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl BatchKernel {
    /// The portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    pub(super) const PORTABLE: Self = BatchKernel(BatchInstructionSet::Portable);

    /// Returns the fastest kernel of this processor.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return BatchKernel(BatchInstructionSet::Avx2);
        }
        BatchKernel(BatchInstructionSet::Portable)
    }

    /// Reads a column of at most 16 digits. All records reach 16 bytes after the column's start. `odd` says how it was
    /// with the batch before, and then with this one.
    #[inline]
    pub(super) fn read_numbers<'b>(
        self,
        op: &DigitColumn,
        rows: impl RecordBatch<'b>,
        values: &mut Lanes,
        odd: &mut bool,
    ) -> LaneFaults {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a Kernel of this kind exists only where detection found the instructions.
        if self.0 == BatchInstructionSet::Avx2 && !*odd && unsafe { avx2::read_numbers(op, rows, values) } {
            return LaneFaults::default();
        }
        portable::read_numbers(op, rows, values, odd)
    }

    /// Reads a column of clock times. All records reach 16 bytes after the column's start.
    #[inline]
    pub(super) fn read_clocks<'b>(
        self,
        op: &ClockColumn,
        rows: impl RecordBatch<'b>,
        values: &mut Lanes,
        odd: &mut bool,
    ) -> LaneFaults {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a Kernel of this kind exists only where detection found the instructions.
        if self.0 == BatchInstructionSet::Avx2 && !*odd && unsafe { avx2::read_clocks(op, rows, values) } {
            return LaneFaults::default();
        }
        portable::read_clocks(op, rows, values, odd)
    }

    /// Returns the lanes that have this value.
    #[inline]
    pub(super) fn equal_lanes(self, values: &Lanes, value: i64) -> u64 {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            BatchInstructionSet::Avx2 => unsafe { avx2::equal_lanes(values, value) },
            BatchInstructionSet::Portable => portable::equal_lanes(values, value),
        }
    }

    /// Counts the occurrences of this byte.
    #[inline]
    pub(super) fn count(self, bytes: &[u8], byte: u8) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            BatchInstructionSet::Avx2 => unsafe { avx2::count(bytes, byte) },
            BatchInstructionSet::Portable => memchr::memchr_iter(byte, bytes).count(),
        }
    }
}

/// Prefetches `length` bytes from `start` on.
#[inline]
pub(super) fn prefetch(bytes: &[u8], start: usize, length: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.get(start..bytes.len().min(start + length)).unwrap_or_default().chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: asking for a line touches no memory, and this one is the slice's.
        unsafe { _mm_prefetch(line.as_ptr().cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, start, length);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::rows::ByteColumnIter;
    use super::{ClockColumn, DigitColumn, LANES, Lanes, RecordBatch, portable};
    use std::arch::x86_64::*;

    /// Reads a column of digits alone; false, and nothing is known of it, where there is something else in it.
    ///
    /// # Safety
    /// The caller must ensure:
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn read_numbers<'b>(
        op: &DigitColumn,
        rows: impl RecordBatch<'b>,
        values: &mut Lanes,
    ) -> bool {
        if op.digit_count <= 8 { read_short(op, rows, values) } else { read_long(op, rows, values) }
    }

    /// Reads up to 16 digits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn read_long<'b>(op: &DigitColumn, rows: impl RecordBatch<'b>, values: &mut Lanes) -> bool {
        let mut right = [-128i8; 16];
        for i in 0..op.digit_count {
            right[16 - op.digit_count + i] = i as i8;
        }
        let right = twice_lanes(right);
        let hundreds = _mm256_set1_epi32(100 | 1 << 16);
        let first_eight = _mm256_set1_epi64x(100_000_000);
        let mut greatest_bytes = _mm256_setzero_si256();
        let mut column = rows.column::<16>(op.column_start);
        let (fours, rest) = values[..rows.count().min(LANES)].as_chunks_mut::<4>();
        for values in fours {
            let Some([a, b, c, d]) = column.four() else { return false };
            // Packing leaves the halves of a register alone, so that with these pairs the four come out in their order.
            let (x, y) = (digit_numbers(a, c, right), digit_numbers(b, d, right));
            greatest_bytes = _mm256_max_epu8(greatest_bytes, _mm256_max_epu8(x, y));
            let x = _mm256_madd_epi16(_mm256_maddubs_epi16(x, tens()), hundreds);
            let y = _mm256_madd_epi16(_mm256_maddubs_epi16(y, tens()), hundreds);
            let n = join_eights(x, y);
            let n = _mm256_add_epi64(_mm256_mul_epu32(n, first_eight), _mm256_srli_epi64(n, 32));
            store_lanes(n, values);
        }
        let last_rows =
            rest.iter_mut().zip(column).all(|(value, text)| portable::read_plain_number(op, text, value));
        last_rows && all_digits(greatest_bytes)
    }

    /// Reads up to eight digits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn read_short<'b>(op: &DigitColumn, rows: impl RecordBatch<'b>, values: &mut Lanes) -> bool {
        let mut right = [-128i8; 16];
        for i in 0..op.digit_count {
            right[8 - op.digit_count + i] = i as i8;
            right[16 - op.digit_count + i] = 8 + i as i8;
        }
        let right = twice_lanes(right);
        let hundreds = _mm256_set1_epi32(100 | 1 << 16);
        let mut greatest_bytes = _mm256_setzero_si256();
        let mut column = rows.column::<8>(op.column_start);
        let (fours, rest) = values[..rows.count().min(LANES)].as_chunks_mut::<4>();
        for values in fours {
            let Some(four) = column.four() else { return false };
            let [a, b, c, d] = four.map(|text| i64::from_le_bytes(*text));
            let x = _mm256_set_m128i(_mm_set_epi64x(d, c), _mm_set_epi64x(b, a));
            let x = _mm256_shuffle_epi8(_mm256_sub_epi8(x, _mm256_set1_epi8(b'0' as i8)), right);
            greatest_bytes = _mm256_max_epu8(greatest_bytes, x);
            let fours = _mm256_madd_epi16(_mm256_maddubs_epi16(x, tens()), hundreds);
            store_lanes(_mm256_unpacklo_epi32(join_eights(fours, fours), _mm256_setzero_si256()), values);
        }
        let last_rows =
            rest.iter_mut().zip(column).all(|(value, text)| portable::read_plain_number(op, text, value));
        last_rows && all_digits(greatest_bytes)
    }

    /// Reads a column of times of day alone; false, and nothing is known of it, where there is something else in it.
    ///
    /// # Safety
    /// The caller must ensure:
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn read_clocks<'b>(
        op: &ClockColumn,
        rows: impl RecordBatch<'b>,
        values: &mut Lanes,
    ) -> bool {
        let near = op.fraction_digits.min(6);
        let mut places = [-128i8; 16];
        for i in 0..6 + near {
            places[4 + i] = i as i8;
        }
        let places = twice_lanes(places);
        let bounds = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0, 23, 59, 59, 99, 99, 99));
        let factors = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0, 60, 1, 100, 1, 100, 1));
        let minute_micros = _mm256_set1_epi64x(60_000_000);
        let mut greatest_bytes = _mm256_setzero_si256();
        let mut out_of_bounds = _mm256_setzero_si256();
        let mut column = rows.column::<16>(op.column_start);
        let (fours, rest) = values[..rows.count().min(LANES)].as_chunks_mut::<4>();
        let simd_rows = fours.len() * 4;
        for values in fours {
            let Some([a, b, c, d]) = column.four() else { return false };
            let (x, y) = (digit_numbers(a, c, places), digit_numbers(b, d, places));
            greatest_bytes = _mm256_max_epu8(greatest_bytes, _mm256_max_epu8(x, y));
            let (x, y) = (_mm256_maddubs_epi16(x, tens()), _mm256_maddubs_epi16(y, tens()));
            out_of_bounds =
                _mm256_or_si256(out_of_bounds, _mm256_cmpgt_epi16(_mm256_max_epi16(x, y), bounds));
            let n = join_eights(_mm256_madd_epi16(x, factors), _mm256_madd_epi16(y, factors));
            let micros = _mm256_add_epi64(_mm256_mul_epu32(n, minute_micros), _mm256_srli_epi64(n, 32));
            // Times 1000, which is 1024 less 16 less 8.
            let less = _mm256_add_epi64(_mm256_slli_epi64(micros, 4), _mm256_slli_epi64(micros, 3));
            store_lanes(_mm256_sub_epi64(_mm256_slli_epi64(micros, 10), less), values);
        }
        if !all_digits(greatest_bytes) || _mm256_testz_si256(out_of_bounds, out_of_bounds) == 0 {
            return false;
        }
        if !rest.iter_mut().zip(column).all(|(value, text)| portable::plain_clock(op, text, value)) {
            return false;
        }
        if op.fraction_digits > 6 {
            // The last three digits of nanoseconds are alone.
            let unit = 10i64.pow(9 - op.fraction_digits as u32);
            for (value, text) in
                values[..simd_rows].iter_mut().zip(rows.texts(op.column_start + 12, op.fraction_digits - 6))
            {
                if !text.iter().all(u8::is_ascii_digit) {
                    return false;
                }
                *value += text.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')) * unit;
            }
        }
        true
    }

    /// Returns the lanes that have this value.
    ///
    /// # Safety
    /// The caller must ensure:
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn equal_lanes(values: &Lanes, value: i64) -> u64 {
        let value = _mm256_set1_epi64x(value);
        let mut lanes = 0;
        for (i, four) in values.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: `four` is four times 8 bytes; the load needs no alignment.
            let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            let are = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(four, value)));
            lanes |= (are as u64) << (4 * i);
        }
        lanes
    }

    /// Counts the occurrences of this byte.
    ///
    /// # Safety
    /// The caller must ensure:
    /// - The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn count(bytes: &[u8], byte: u8) -> usize {
        let (words, rest) = bytes.as_chunks::<32>();
        let wanted_bytes = _mm256_set1_epi8(byte as i8);
        let mut counts = _mm256_setzero_si256();
        // A byte counts to 255.
        for words in words.chunks(255) {
            let mut count = _mm256_setzero_si256();
            for word in words {
                // SAFETY: `word` is 32 bytes; the load needs no alignment.
                let word = unsafe { _mm256_loadu_si256(word.as_ptr().cast()) };
                count = _mm256_sub_epi8(count, _mm256_cmpeq_epi8(word, wanted_bytes));
            }
            counts = _mm256_add_epi64(counts, _mm256_sad_epu8(count, _mm256_setzero_si256()));
        }
        let mut four = [0; 4];
        store_lanes(counts, &mut four);
        four.iter().sum::<i64>() as usize + rest.iter().filter(|b| **b == byte).count()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn twice_lanes(bytes: [i8; 16]) -> __m256i {
        _mm256_broadcastsi128_si256(load_sixteen(&bytes.map(|b| b as u8)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn tens() -> __m256i {
        _mm256_set1_epi16(10 | 1 << 8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_sixteen(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: `bytes` is 16 bytes; the load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// Converts the digits of two records to numbers and moves them to `places`. A byte that is no digit becomes
    /// greater than 9.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn digit_numbers(a: &[u8; 16], b: &[u8; 16], places: __m256i) -> __m256i {
        let x = _mm256_set_m128i(load_sixteen(b), load_sixteen(a));
        _mm256_shuffle_epi8(_mm256_sub_epi8(x, _mm256_set1_epi8(b'0' as i8)), places)
    }

    /// Returns whether the greatest values are digits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn all_digits(most: __m256i) -> bool {
        let nine = _mm256_set1_epi8(9);
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(most, nine), nine)) == -1
    }

    /// Joins numbers of four digits to numbers of eight, two in each half: the numbers of `x`, then those of `y`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn join_eights(x: __m256i, y: __m256i) -> __m256i {
        _mm256_madd_epi16(_mm256_packus_epi32(x, y), _mm256_set1_epi32(10_000 | 1 << 16))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store_lanes(n: __m256i, values: &mut [i64; 4]) {
        // SAFETY: `values` is four times 8 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), n) };
    }
}
