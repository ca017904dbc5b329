//! AVX-512 of 2019 and later (VBMI, VBMI2): the fields of 64 bytes at once.
//!
//! ```text
//! block   …|38=100|44=2.5|…     positions of '=' (compressed)   2, 9
//! digits  . 38....  44.....     bytes that are no tag's are 0
//! lanes   0 0 3 8, 0 0 4 4      the four bytes before each '=', by one permutation over this
//!                               block and the one before; two multiplications make numbers
//! ```
//!
//! Longer tags are read one by one. Everything else that is unusual ends the pass.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::super::data::RawFieldTags;
use super::super::shapes::TagSequence;
use super::{FIELDS_MAX, FieldColumns, FieldMaskCarry, STEP, ScanTotals, portable};

/// Returns whether the processor has all instructions that the functions below enable.
pub(super) fn is_detected() -> bool {
    let wide = has!("avx512f") && has!("avx512bw") && has!("avx512vbmi") && has!("avx512vbmi2");
    wide && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// Reads the fields of a message with AVX-512.
///
/// # Safety
/// The caller must ensure:
/// - [`is_detected`] has returned true.
/// - `columns` has room for `message`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn read_fields(
    message: &[u8],
    sep: u8,
    data: &RawFieldTags,
    columns: &mut FieldColumns,
) -> ScanTotals {
    let room = FieldColumns::room(message.len());
    debug_assert!(columns.tags.len() >= room && columns.starts.len() >= room && columns.ends.len() >= room);
    let (tags, starts, ends) =
        (columns.tags.as_mut_ptr(), columns.starts.as_mut_ptr(), columns.ends.as_mut_ptr());
    let (sep_pattern, eq_pattern) = (_mm512_set1_epi8(sep as i8), _mm512_set1_epi8(b'=' as i8));
    let (zero, one) = (_mm512_setzero_si512(), _mm512_set1_epi32(1));
    let (mut sums, mut seps, mut eqs, mut offset) = (zero, 0usize, 0usize, 0usize);
    let mut masks = FieldMaskCarry::START;
    // Where the tag bytes of the step before are.
    let mut tags_before = 0u64;
    // SAFETY: IOTA is 64 bytes; the load needs no alignment.
    let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    // SAFETY: the tables are 64 bytes each, the last four of them one after the other; the loads need no alignment.
    let (spread, low, high) = unsafe {
        let low = data.folded().as_ptr();
        (
            _mm512_loadu_si512(SPREAD.as_ptr().cast()),
            [_mm512_loadu_si512(low.cast()), _mm512_loadu_si512(low.add(16).cast())],
            [_mm512_loadu_si512(low.add(32).cast()), _mm512_loadu_si512(low.add(48).cast())],
        )
    };
    let (nine, ascii_zero) = (_mm512_set1_epi8(9), _mm512_set1_epi8(0x30));
    let step_indices = _mm512_set1_epi32(i32::from_le_bytes([60, 61, 62, 63]));
    let mut digits_before = zero;
    while offset < message.len() {
        let bytes_left = message.len() - offset;
        let valid = if bytes_left >= STEP { u64::MAX } else { u64::MAX >> (STEP - bytes_left) };
        // SAFETY: the mask lets only bytes up to the end of `message` be read; the others are zero
        // and never touched.
        let block = unsafe { _mm512_maskz_loadu_epi8(valid, message.as_ptr().add(offset).cast()) };
        let sep_mask = _mm512_mask_cmpeq_epi8_mask(valid, block, sep_pattern);
        let eq_mask = _mm512_cmpeq_epi8_mask(block, eq_pattern);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
        let resolved = masks.resolve_masks(sep_mask, eq_mask);
        // Behind the message's last separator a field seems to start.
        let tag_mask = resolved.tags & valid;
        let digits = _mm512_maskz_mov_epi8(tag_mask, _mm512_xor_si512(block, ascii_zero));
        let not_digit = _mm512_cmpgt_epu8_mask(digits, nine);
        let leading_zero = _mm512_mask_testn_epi8_mask(resolved.starts & tag_mask, digits, digits);
        let count = resolved.equals_bits.count_ones();
        let positions = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(resolved.equals_bits, iota));
        let fours = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(positions), spread);
        let four = _mm512_permutex2var_epi8(digits_before, _mm512_add_epi8(fours, step_indices), digits);
        // Tens and ones, then hundreds: bytes in the order they are written.
        let pairs = _mm512_maddubs_epi16(four, _mm512_set1_epi16(0x010a));
        let tag = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064));
        let active = _bzhi_u32(0xffff, count) as __mmask16;
        let word = _mm512_srli_epi32::<5>(tag);
        let bits = _mm512_permutex2var_epi32(low[0], word, low[1]);
        let high_words = _mm512_cmpgt_epu32_mask(word, _mm512_set1_epi32(31));
        let bits = _mm512_mask_mov_epi32(bits, high_words, _mm512_permutex2var_epi32(high[0], word, high[1]));
        let length = _mm512_mask_test_epi32_mask(active, bits, _mm512_rolv_epi32(one, tag));
        let wrong = resolved.has_wrong_field || not_digit | leading_zero != 0;
        // The byte five before the '=' is a digit of this tag, or (seldom) of the one before.
        let long = resolved.equals_bits & (tag_mask << 5 | tags_before >> 59);
        if wrong || u64::from(length) | long != 0 {
            // SAFETY: the columns have room for FIELDS_MAX from `eqs` on, as below.
            let usual = !wrong
                && unsafe {
                    _mm512_storeu_si512(tags.add(eqs).cast(), tag);
                    let places = std::slice::from_raw_parts_mut(tags.add(eqs), FIELDS_MAX);
                    read_unusual(message, offset, resolved.equals_bits, long, data, places)
                };
            if !usual {
                let fields = seps.min(eqs);
                let mut sum = _mm512_reduce_add_epi64(sums) as u64;
                seps += sep_mask.count_ones() as usize;
                for chunk in message[(offset + STEP).min(message.len())..].chunks(128) {
                    sum += u64::from(chunk.iter().map(|&byte| u16::from(byte)).sum::<u16>());
                    seps += chunk.iter().filter(|&&byte| byte == sep).count();
                }
                let walk_offset = fields.checked_sub(1).map_or(0, |last| columns.ends[last] as usize + 1);
                return ScanTotals { byte_sum: sum, seps, fields, walk_start: walk_offset };
            }
        } else {
            // SAFETY: as for the columns below.
            unsafe { _mm512_storeu_si512(tags.add(eqs).cast(), tag) };
        }
        let base = _mm512_set1_epi32(offset as i32);
        let value_starts = _mm512_add_epi32(_mm512_cvtepu8_epi32(positions), _mm512_add_epi32(base, one));
        let separators = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(sep_mask, iota));
        let value_ends = _mm512_add_epi32(_mm512_cvtepu8_epi32(separators), base);
        // SAFETY: no step before had more than FIELDS_MAX of either, so `eqs` and `seps` are at most
        // `at / STEP * FIELDS_MAX`, and the columns have room for two steps' more than that.
        unsafe {
            _mm512_storeu_si512(starts.add(eqs).cast(), value_starts);
            _mm512_storeu_si512(ends.add(seps).cast(), value_ends);
        }
        eqs += count as usize;
        seps += sep_mask.count_ones() as usize;
        (digits_before, tags_before) = (digits, tag_mask);
        offset += STEP;
    }
    let fields = seps.min(eqs);
    let walk_offset = fields.checked_sub(1).map_or(0, |last| columns.ends[last] as usize + 1);
    ScanTotals { byte_sum: _mm512_reduce_add_epi64(sums) as u64, seps, fields, walk_start: walk_offset }
}

/// Reads the fields of a message that has the tags of `shape`, and returns the sum of its bytes. Returns `None` if
/// the message has other tags or a field without value.
///
/// All bytes of tags, and their `=`, must equal the text of the shape. If a field lacks its `=`, the bits of
/// [`FieldMaskCarry`] run over a separator, which no shape's text contains. So this pass needs to look only for empty
/// values.
///
/// # Safety
/// The caller must ensure:
/// - [`is_detected`] has returned true.
/// - `columns` has room for `message`.
/// - `sep` is no digit and no `=`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn read_expected(
    message: &[u8],
    sep: u8,
    shape: &TagSequence,
    columns: &mut FieldColumns,
) -> Option<u64> {
    debug_assert!(columns.starts.len().min(columns.ends.len()) >= FieldColumns::room(message.len()));
    let (starts, ends) = (columns.starts.as_mut_ptr(), columns.ends.as_mut_ptr());
    let (sep_pattern, eq_pattern) = (_mm512_set1_epi8(sep as i8), _mm512_set1_epi8(b'=' as i8));
    let zero = _mm512_setzero_si512();
    // SAFETY: IOTA is 64 bytes; the load needs no alignment.
    let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    let (mut sums, mut base) = (zero, zero);
    let (mut offset, mut seps, mut cursor) = (0, 0, 0);
    // Whether a field starts with the next byte, or has started and its `=` is yet to come; whether the
    // last byte was a first `=`.
    let (mut carry, mut equal) = (1, 0);
    // SAFETY: there is room for one field.
    unsafe { *starts = shape.skips[0] - 1 };
    while offset < message.len() {
        let bytes_left = message.len() - offset;
        let (block, valid) = if bytes_left >= STEP {
            // SAFETY: 64 bytes are left; the load needs no alignment.
            (unsafe { _mm512_loadu_si512(message.as_ptr().add(offset).cast()) }, u64::MAX)
        } else {
            let valid = u64::MAX >> (STEP - bytes_left);
            // SAFETY: the mask lets only bytes up to the end of `message` be read; the others are zero and
            // never touched.
            (unsafe { _mm512_maskz_loadu_epi8(valid, message.as_ptr().add(offset).cast()) }, valid)
        };
        let sep_mask = _mm512_cmpeq_epi8_mask(block, sep_pattern) & valid;
        let eq_mask = _mm512_cmpeq_epi8_mask(block, eq_pattern);
        let field_starts = sep_mask << 1 | carry;
        let equals = field_starts.wrapping_add(!eq_mask) & eq_mask;
        let tag_mask = equals.wrapping_sub(field_starts);
        let text_mask = (tag_mask | equals) & valid;
        // SAFETY: `cursor` is at most the length of the text, after which 64 bytes are.
        let text = unsafe { _mm512_loadu_si512(shape.tag_text.as_ptr().add(cursor).cast()) };
        let text = _mm512_maskz_expand_epi8(text_mask, text);
        let differ = _mm512_mask_cmpneq_epi8_mask(text_mask, text, block);
        let no_value = sep_mask & (equals << 1 | equal);
        cursor += text_mask.count_ones() as usize;
        if differ | no_value != 0 || cursor > shape.text_len {
            return None;
        }
        (carry, equal) = ((sep_mask | tag_mask) >> 63, equals >> 63);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, zero));
        let separators = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(sep_mask, iota));
        let value_ends = _mm512_add_epi32(_mm512_cvtepu8_epi32(separators), base);
        // SAFETY: each separator so far ended a field whose '=' is in the text up to `cursor`, so there are
        // at most as many as the shape has fields, and 64 skips after. None of the steps had more than
        // FIELDS_MAX, and the columns have room for two steps' fields more than those.
        unsafe {
            let skip = _mm512_loadu_si512(shape.skips.as_ptr().add(seps + 1).cast());
            _mm512_storeu_si512(ends.add(seps).cast(), value_ends);
            _mm512_storeu_si512(starts.add(seps + 1).cast(), _mm512_add_epi32(value_ends, skip));
        }
        seps += sep_mask.count_ones() as usize;
        base = _mm512_add_epi32(base, _mm512_set1_epi32(STEP as i32));
        offset += STEP;
    }
    let is_complete = cursor == shape.text_len && seps == shape.tags.len() && message.last() == Some(&sep);
    is_complete.then(|| _mm512_reduce_add_epi64(sums) as u64)
}

/// Reads the `long` tags of the step at `offset` one by one into `places`, one for each of `equals`, and
/// says whether no tag is wrong or a length field's. All bytes of the tags are known to be digits.
#[cold]
fn read_unusual(
    message: &[u8],
    offset: usize,
    equals: u64,
    mut long: u64,
    data: &RawFieldTags,
    tags: &mut [u32],
) -> bool {
    while long != 0 {
        let bit = long.trailing_zeros();
        let equal = offset + bit as usize;
        let digits = message[..equal].iter().rev().take(10).take_while(|byte| byte.is_ascii_digit());
        let index = (equals & ((1 << bit) - 1)).count_ones() as usize;
        tags[index] = portable::parse_tag(message, equal - digits.count(), equal);
        long &= long - 1;
    }
    let valid_tags = &tags[..equals.count_ones() as usize];
    valid_tags.iter().all(|&tag| tag != 0 && data.data_of(tag).is_none())
}

static IOTA: [u8; STEP] = counted_bytes(1);

/// Lane l of four bytes is l, four times.
static SPREAD: [u8; STEP] = counted_bytes(4);

const fn counted_bytes(times: usize) -> [u8; STEP] {
    let mut bytes = [0; STEP];
    let mut i = 0;
    while i < STEP {
        bytes[i] = (i / times) as u8;
        i += 1;
    }
    bytes
}
