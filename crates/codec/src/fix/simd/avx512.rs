//! AVX-512 of 2019 and later (VBMI2): 64 bytes a step, then 16 fields at once.
//!
//! The first `=` of each field comes out of one addition per step. With a bit for each start of a
//! field and ones wherever there is no `=`, the sum carries each start through the ones up to the
//! next `=`, and that bit stays:
//!
//! ```text
//! bytes           3 5 = D | 5 8 = a = b |      (first byte left; bits carry to the right)
//! starts          1 0 0 0 0 1 0 0 0 0 0 0
//! no '='          1 1 0 1 1 1 1 0 1 0 1 1
//! sum             0 0 1 1 1 0 0 1 1 0 1 1
//! sum and '='     0 0 1 0 0 0 0 1 0 0 0 0
//! ```
//!
//! A tag of up to four digits is then in the four bytes before its `=`, last digit last, and 16 of
//! them are one gather and two multiplications. Whatever is unusual in a batch (longer tags, length
//! fields, anything wrong) sends that batch to [`fields::read`].

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::{DataTags, Places, Read, STEP, Token, fields};

/// Whether the processor has all that the functions below enable.
pub(super) fn detected() -> bool {
    let wide = has!("avx512f") && has!("avx512bw") && has!("avx512vbmi2");
    wide && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// # Safety
/// - [`detected`] has returned true.
/// - `places` has room for `bytes.len() + STEP` places in both buffers, and is empty.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn scan(bytes: &[u8], sep: u8, places: &mut Places) -> u64 {
    debug_assert!(places.ends.len() >= bytes.len() + STEP && places.seps == 0);
    debug_assert!(places.equals.len() >= bytes.len() + STEP && places.eqs == 0);
    let sep_pattern = _mm512_set1_epi8(sep as i8);
    let eq_pattern = _mm512_set1_epi8(b'=' as i8);
    let zero = _mm512_setzero_si512();
    let (ends, equals) = (places.ends.as_mut_ptr(), places.equals.as_mut_ptr());
    let (mut sums, mut seps, mut eqs, mut at) = (zero, 0, 0, 0);
    // The start of a field, and the sum's carry, from the step before.
    let (mut start_carry, mut sum_carry) = (1, false);
    while at < bytes.len() {
        let left = bytes.len() - at;
        let valid = if left >= STEP { u64::MAX } else { u64::MAX >> (STEP - left) };
        // SAFETY: the mask lets only bytes up to the end of `bytes` be read; the others are zero
        // and never touched.
        let block = unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().add(at).cast()) };
        let sep_mask = _mm512_mask_cmpeq_epi8_mask(valid, block, sep_pattern);
        let eq_mask = _mm512_cmpeq_epi8_mask(block, eq_pattern);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
        let starts = sep_mask << 1 | start_carry;
        start_carry = sep_mask >> 63;
        let (sum, over) = starts.overflowing_add(!eq_mask);
        let (sum, over_again) = sum.overflowing_add(u64::from(sum_carry));
        sum_carry = over | over_again;
        // SAFETY: at most `at` separators lie before this step, and at most one '=' is marked for
        // each byte, so `seps` and `eqs` are at most `at`; a step writes at most STEP places, which
        // by this function's duty fit.
        unsafe {
            seps += write(sep_mask, at, ends.add(seps));
            eqs += write(sum & eq_mask, at, equals.add(eqs));
        }
        at += STEP;
    }
    (places.seps, places.eqs) = (seps, eqs);
    _mm512_reduce_add_epi64(sums) as u64
}

/// Writes the offsets of the bits of `mask` and returns how many there are.
///
/// # Safety
/// - [`detected`] has returned true.
/// - `out` can be written for STEP places.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn write(mask: u64, base: usize, out: *mut u32) -> usize {
    // SAFETY: IOTA is 64 bytes; the load needs no alignment.
    let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    let offsets = _mm512_maskz_compress_epi8(mask, iota);
    let base = _mm512_set1_epi32(base as i32);
    let wide = |quarter| _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
    let count = mask.count_ones() as usize;
    // SAFETY: four times 16 places are STEP, which the caller vouches for.
    unsafe {
        _mm512_storeu_si512(out.cast(), wide(_mm512_castsi512_si128(offsets)));
        // Seldom: fields of less than four bytes.
        if count > 16 {
            _mm512_storeu_si512(out.add(16).cast(), wide(_mm512_extracti32x4_epi32::<1>(offsets)));
            _mm512_storeu_si512(out.add(32).cast(), wide(_mm512_extracti32x4_epi32::<2>(offsets)));
            _mm512_storeu_si512(out.add(48).cast(), wide(_mm512_extracti32x4_epi32::<3>(offsets)));
        }
    }
    count
}

/// # Safety
/// - [`detected`] has returned true.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn fields(
    message: &[u8],
    places: &Places,
    lenient: bool,
    data: &DataTags,
    table: &mut [Token],
) -> Read {
    let (ends, equals) = (places.ends(), &places.equals[..places.eqs]);
    let seps = ends.len();
    // The first field has less than four bytes before its '='. A field without '=' is wrong, and
    // offsets of a gather are signed.
    let first = seps.min(1);
    let mut read = fields::read(message, 0, &ends[..first], lenient, data, table);
    if read.fields < first || equals.len() < seps || message.len() > i32::MAX as usize {
        return fields::read(message, 0, ends, lenient, data, table);
    }
    assert!(table.len() >= seps + BATCH, "room for a whole batch past the last field");
    // SAFETY: the tables are 64 bytes each; the loads need no alignment.
    let (low, high) = unsafe {
        let low = data.low_bits().as_ptr();
        (_mm512_loadu_si512(low.cast()), _mm512_loadu_si512(low.add(8).cast()))
    };
    let value_len_min = _mm512_set1_epi32(i32::from(!lenient));
    let four = _mm512_set1_epi32(4);
    let one = _mm512_set1_epi32(1);
    let len = _mm512_set1_epi32(message.len() as i32);
    let mut at = first;
    while at < seps {
        let lanes = (seps - at).min(BATCH);
        let active: __mmask16 = u16::MAX >> (BATCH - lanes);
        // SAFETY: the mask lets only `lanes` places be read, of which each slice has as many from
        // `at` on (`starts`: from `at - 1` on, and `at` is at least 1).
        let (end, equal, start) = unsafe {
            (
                _mm512_maskz_loadu_epi32(active, ends.as_ptr().add(at).cast()),
                _mm512_maskz_loadu_epi32(active, equals.as_ptr().add(at).cast()),
                _mm512_maskz_loadu_epi32(active, ends.as_ptr().add(at - 1).cast()),
            )
        };
        let start = _mm512_add_epi32(start, one);
        let digits = _mm512_sub_epi32(equal, start);
        // One to four digits (none and negative wrap far above), a value, and inside the message.
        let few = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(digits, one), four);
        let value = _mm512_cmplt_epu32_mask(_mm512_add_epi32(equal, value_len_min), end);
        let inside = _mm512_cmplt_epu32_mask(equal, len) & _mm512_cmpge_epu32_mask(equal, four);
        let usual = few & value & inside & active;
        let before = _mm512_sub_epi32(equal, four);
        // SAFETY: a lane is read only if 4 <= equal < message.len(), so the four bytes before
        // `equal` lie in the message.
        let word = unsafe {
            let zero = _mm512_setzero_si512();
            _mm512_mask_i32gather_epi32::<1>(zero, usual, before, message.as_ptr().cast())
        };
        // Digits become 0 to 9; bytes before the tag become 0.
        let shift = _mm512_slli_epi32::<3>(_mm512_sub_epi32(four, digits));
        let digit = _mm512_xor_si512(word, _mm512_set1_epi8(0x30));
        let digit = _mm512_and_si512(digit, _mm512_sllv_epi32(_mm512_set1_epi32(-1), shift));
        let above = _mm512_cmpgt_epu8_mask(digit, _mm512_set1_epi8(9));
        let leading = _mm512_and_si512(_mm512_srlv_epi32(digit, shift), _mm512_set1_epi32(0xff));
        let zero_first = _mm512_testn_epi32_mask(leading, leading);
        // Tens and ones, then hundreds: bytes in the order they are written.
        let pairs = _mm512_maddubs_epi16(digit, _mm512_set1_epi16(0x010a));
        let tag = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064));
        let bits = _mm512_permutex2var_epi32(low, _mm512_srli_epi32::<5>(tag), high);
        let bit = _mm512_and_si512(tag, _mm512_set1_epi32(31));
        let small = _mm512_cmplt_epu32_mask(tag, _mm512_set1_epi32(1024));
        let length = _mm512_mask_test_epi32_mask(small, _mm512_srlv_epi32(bits, bit), one);
        let mut unusual = !usual | zero_first | length;
        let mut big = active & !small;
        let place = _mm512_add_epi32(equal, one);
        // SAFETY: the table has BATCH tokens of room from `at` on, by the assertion above.
        unsafe { store(tag, place, end, table.as_mut_ptr().add(at)) };
        while big != 0 && unusual & active == 0 && above == 0 {
            let lane = big.trailing_zeros() as usize;
            unusual |= u16::from(data.data_of(table[at + lane].tag).is_some()) << lane;
            big &= big - 1;
        }
        if unusual & active != 0 || above != 0 {
            let from = ends[at - 1] as usize + 1;
            let batch = &ends[at..at + lanes];
            read = fields::read(message, from, batch, lenient, data, &mut table[at..]);
            if read.fields < lanes {
                return Read { fields: at + read.fields, stopped: read.stopped };
            }
        }
        at += lanes;
    }
    let stopped = ends.last().map_or(0, |&end| end as usize + 1);
    Read { fields: seps, stopped }
}

/// Writes 16 tokens.
///
/// # Safety
/// - [`detected`] has returned true.
/// - `out` can be written for 16 tokens.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store(tag: __m512i, start: __m512i, end: __m512i, out: *mut Token) {
    for (third, ((from, ends), last)) in PICK.iter().zip(&PICK_END).zip(PICK_END_MASK).enumerate() {
        // SAFETY: the picks are 64 bytes each, 16 tokens three times 64; nothing needs alignment.
        unsafe {
            let from = _mm512_loadu_si512(from.as_ptr().cast());
            let ends = _mm512_loadu_si512(ends.as_ptr().cast());
            let mixed = _mm512_permutex2var_epi32(tag, from, start);
            let mixed = _mm512_mask_permutexvar_epi32(mixed, last, ends, end);
            _mm512_storeu_si512(out.cast::<u8>().add(64 * third).cast(), mixed);
        }
    }
}

/// Fields at once.
const BATCH: usize = 16;

const _: () = assert!(size_of::<Token>() == 12 && BATCH <= STEP);

static IOTA: [u8; STEP] = {
    let mut iota = [0; STEP];
    let mut i = 0;
    while i < STEP {
        iota[i] = i as u8;
        i += 1;
    }
    iota
};

/// For each third of 16 tokens: which lane of (tag, start) each of its 16 words is, ...
static PICK: [[u32; 16]; 3] = picks(false);

/// ... which lane of end, ...
static PICK_END: [[u32; 16]; 3] = picks(true);

/// ... and which words are ends.
static PICK_END_MASK: [u16; 3] = {
    let mut masks = [0; 3];
    let mut word = 2;
    while word < 48 {
        masks[word / 16] |= 1 << (word % 16);
        word += 3;
    }
    masks
};

const fn picks(end: bool) -> [[u32; 16]; 3] {
    let mut picks = [[0; 16]; 3];
    let mut word = 0;
    while word < 48 {
        let (token, part) = (word as u32 / 3, word % 3);
        picks[word / 16][word % 16] = if end || part == 0 { token } else { token + 16 };
        word += 1;
    }
    picks
}
