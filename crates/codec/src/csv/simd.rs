//! The one place with instruction-set specific code: where separators are in a row without quotes, 32 bytes a
//! step (AVX2), or eight in a word on every processor.

use super::row::ValueSpan;

/// A kernel that this processor can run.
///
/// Invariant: `Avx2` exists only if detection found the instructions; [`CsvKernel::best`] is its only maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CsvKernel(CsvInstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvInstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// The reason why a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStop {
    /// The first line feed, here.
    LineEnd(usize),
    /// A quote before it.
    Quote,
    /// Neither.
    End,
}

impl CsvKernel {
    /// The portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    pub(super) const PORTABLE: Self = CsvKernel(CsvInstructionSet::Portable);

    /// Returns the fastest kernel of this processor.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return CsvKernel(CsvInstructionSet::Avx2);
        }
        CsvKernel(CsvInstructionSet::Portable)
    }

    /// Appends the values that separators end, up to the first line feed or quote.
    #[inline]
    pub(super) fn scan_row(
        self,
        bytes: &[u8],
        separator: u8,
        quote: u8,
        out: &mut Vec<ValueSpan>,
    ) -> ScanStop {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            CsvInstructionSet::Avx2 => unsafe { scan_avx2(bytes, separator, quote, out) },
            CsvInstructionSet::Portable => scan_portable(bytes, separator, quote, out),
        }
    }
}

/// Appends the values that the separators of one step end; `start` is the start of the first value.
#[inline(always)]
fn append_step(
    mut separators: u64,
    stops: u64,
    base: usize,
    start: &mut u32,
    out: &mut Vec<ValueSpan>,
) -> Option<usize> {
    // Only what is before the first stop.
    separators &= stops.wrapping_sub(1) & !stops;
    while separators != 0 {
        let value_end = base as u32 + separators.trailing_zeros();
        out.push(ValueSpan { start: *start, end: value_end, is_in_text: false });
        *start = value_end + 1;
        separators &= separators - 1;
    }
    (stops != 0).then(|| base + stops.trailing_zeros() as usize)
}

#[inline]
fn scan_stop(bytes: &[u8], offset: usize) -> ScanStop {
    if bytes[offset] == b'\n' { ScanStop::LineEnd(offset) } else { ScanStop::Quote }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;

fn scan_portable(bytes: &[u8], separator: u8, quote: u8, out: &mut Vec<ValueSpan>) -> ScanStop {
    let mut value_start = 0;
    for (i, word) in bytes.chunks(8).enumerate() {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        let bits = u64::from_le_bytes(padded);
        let valid = 0xff >> (8 - word.len());
        let are = |byte: u8| {
            let x = bits ^ (u64::from(byte) * ONES);
            // Bit 7 of each byte that is zero in x, exactly: no carry crosses bytes.
            let zero = !(((x & LOW7) + LOW7) | x | LOW7);
            (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 & valid
        };
        if let Some(offset) =
            append_step(are(separator), are(b'\n') | are(quote), 8 * i, &mut value_start, out)
        {
            return scan_stop(bytes, offset);
        }
    }
    ScanStop::End
}

/// Scans a row with AVX2.
///
/// # Safety
/// The caller must ensure:
/// - The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn scan_avx2(bytes: &[u8], separator: u8, quote: u8, out: &mut Vec<ValueSpan>) -> ScanStop {
    use std::arch::x86_64::*;
    let (separator, quote) = (_mm256_set1_epi8(separator as i8), _mm256_set1_epi8(quote as i8));
    let feed = _mm256_set1_epi8(b'\n' as i8);
    let mut value_start = 0;
    for (i, chunk) in bytes.chunks(32).enumerate() {
        let mut padded = [0; 32];
        let block: &[u8; 32] = match chunk.try_into() {
            Ok(full_chunk) => full_chunk,
            Err(_) => {
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded
            }
        };
        // SAFETY: `block` is 32 bytes; the load needs no alignment.
        let x = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        // The padding of a short block is not input, whatever separator and quote are.
        let valid = u32::MAX >> (32 - chunk.len());
        let separators = _mm256_movemask_epi8(_mm256_cmpeq_epi8(x, separator)) as u32 & valid;
        let stops = _mm256_or_si256(_mm256_cmpeq_epi8(x, feed), _mm256_cmpeq_epi8(x, quote));
        let stops = _mm256_movemask_epi8(stops) as u32 & valid;
        if let Some(offset) = append_step(separators.into(), stops.into(), 32 * i, &mut value_start, out) {
            return scan_stop(bytes, offset);
        }
    }
    ScanStop::End
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Guards against a stop in the last byte of a step, a separator after it, and a tail of one byte.
        #[test]
        fn kernels_agree_with_the_obvious(bytes in "[a,\"\n]{0,20}[ab,]{0,90}[a,\"\n]{0,20}", quote in prop_oneof![Just(b'"'), Just(b'\n')]) {
            let bytes = bytes.as_bytes();
            let stop_offset = bytes.iter().position(|b| *b == b'\n' || *b == quote);
            let mut expected = Vec::new();
            let mut start = 0;
            for (i, _) in bytes[..stop_offset.unwrap_or(bytes.len())].iter().enumerate().filter(|(_, b)| **b == b',') {
                expected.push(ValueSpan { start: start as u32, end: i as u32, is_in_text: false });
                start = i + 1;
            }
            let end = stop_offset.map_or(ScanStop::End, |offset| if bytes[offset] == b'\n' { ScanStop::LineEnd(offset) } else { ScanStop::Quote });
            for kernel in [CsvKernel::best(), CsvKernel::PORTABLE] {
                let mut actual = Vec::new();
                prop_assert_eq!(kernel.scan_row(bytes, b',', quote, &mut actual), end);
                prop_assert_eq!(&actual, &expected);
            }
        }
    }
}
