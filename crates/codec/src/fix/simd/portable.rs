//! The pass in plain code, generic over how 64 bytes become masks; and the masks in plain code.

use super::super::data::RawFieldTags;
use super::super::shapes::TagSequence;
use super::{FIELDS_MAX, FieldColumns, FieldMaskCarry, STEP, ScanTotals};
use unitape_base::digits::{self, ONES};

/// The masks of one step: separators, `=`, sum of the bytes.
pub(super) type ByteMasks = (u64, u64, u64);

/// Reads the fields of a message on 8-byte words.
pub(super) fn read_fields(
    message: &[u8],
    sep: u8,
    data: &RawFieldTags,
    columns: &mut FieldColumns,
) -> ScanTotals {
    read_with(message, sep, data, columns, |block| step_masks(block, sep))
}

/// Reads the fields of a message that has the tags of `shape`, on 8-byte words.
pub(super) fn read_expected(
    message: &[u8],
    sep: u8,
    shape: &TagSequence,
    columns: &mut FieldColumns,
) -> Option<u64> {
    read_expected_with(message, shape, columns, |block| step_masks(block, sep))
}

/// Reads the fields of a message; compiled once for each instruction set. `step` reads 64 bytes.
#[inline(always)]
pub(super) fn read_with(
    message: &[u8],
    sep: u8,
    data: &RawFieldTags,
    columns: &mut FieldColumns,
    step: impl Fn(&[u8; STEP]) -> ByteMasks,
) -> ScanTotals {
    let room = FieldColumns::room(message.len());
    let (tags, starts) = (&mut columns.tags[..room], &mut columns.starts[..room]);
    let ends = &mut columns.ends[..room];
    let (mut sum, mut seps, mut eqs) = (0, 0, 0);
    let mut masks = FieldMaskCarry::START;
    for (index, chunk) in message.chunks(STEP).enumerate() {
        let base = index * STEP;
        let mut padded = [0; STEP];
        let block: &[u8; STEP] = match chunk.try_into() {
            Ok(full_chunk) => full_chunk,
            Err(_) => {
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded
            }
        };
        let (sep_mask, eq_mask, block_sum) = step(block);
        sum += block_sum;
        // The padding of a short block is not input, whatever the separator is.
        let sep_mask = sep_mask & (u64::MAX >> (STEP - chunk.len()));
        let resolved = masks.resolve_masks(sep_mask, eq_mask);
        let (fields, seps_before) = (seps.min(eqs), seps);
        let mut wrong = resolved.has_wrong_field;
        if !wrong {
            let mut left = sep_mask;
            while left != 0 {
                ends[seps] = base as u32 + left.trailing_zeros();
                seps += 1;
                left &= left - 1;
            }
            let mut left = resolved.equals_bits;
            while left != 0 {
                let equal = base + left.trailing_zeros() as usize;
                // The separator before is known: it is in this step or in one before.
                let value_start = if eqs == 0 { 0 } else { ends[eqs - 1] as usize + 1 };
                let tag = parse_tag(message, value_start, equal);
                wrong |= tag == 0 || data.data_of(tag).is_some();
                (tags[eqs], starts[eqs]) = (tag, equal as u32 + 1);
                eqs += 1;
                left &= left - 1;
            }
        }
        if wrong {
            seps = seps_before + sep_mask.count_ones() as usize;
            for chunk in message[base + chunk.len()..].chunks(128) {
                // Simple enough that the compiler makes wide adds of it; no lane overflows.
                sum += u64::from(chunk.iter().map(|&byte| u16::from(byte)).sum::<u16>());
                seps += chunk.iter().filter(|&&byte| byte == sep).count();
            }
            let walk_offset = fields.checked_sub(1).map_or(0, |last| ends[last] as usize + 1);
            return ScanTotals { byte_sum: sum, seps, fields, walk_start: walk_offset };
        }
    }
    let fields = seps.min(eqs);
    let stopped = fields.checked_sub(1).map_or(0, |last| ends[last] as usize + 1);
    ScanTotals { byte_sum: sum, seps, fields, walk_start: stopped }
}

/// Reads the fields of a message that has the tags of `shape`, and returns the sum of its bytes. Finds the separators
/// first, then compares each field. Returns `None` if the message has other tags or a field without value.
#[inline(always)]
pub(super) fn read_expected_with(
    message: &[u8],
    shape: &TagSequence,
    columns: &mut FieldColumns,
    step: impl Fn(&[u8; STEP]) -> ByteMasks,
) -> Option<u64> {
    let (mut sum, mut seps) = (0, 0);
    for (index, chunk) in message.chunks(STEP).enumerate() {
        let mut padded = [0; STEP];
        let block: &[u8; STEP] = match chunk.try_into() {
            Ok(full_chunk) => full_chunk,
            Err(_) => {
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded
            }
        };
        let (sep_mask, _, block_sum) = step(block);
        sum += block_sum;
        let mut left = sep_mask & (u64::MAX >> (STEP - chunk.len()));
        let count = left.count_ones() as usize;
        if count > FIELDS_MAX {
            return None;
        }
        // Always eight, also where fewer are left: no branch for each.
        let base = (index * STEP) as u32;
        for eight in columns.ends.get_mut(seps..seps + FIELDS_MAX)?.as_chunks_mut::<8>().0 {
            for end in eight {
                *end = base + left.trailing_zeros();
                left &= left.wrapping_sub(1);
            }
            if left == 0 {
                break;
            }
        }
        seps += count;
    }
    let fields = shape.tags.len();
    if seps != fields {
        return None;
    }
    let (starts, ends) = (columns.starts.get_mut(..fields)?, columns.ends.get(..fields)?);
    let (mut offset, mut differ) = (0, 0);
    for ((&end, start), &(word, mask, skip)) in ends.iter().zip(starts).zip(&shape.tag_words) {
        let eight = match message.get(offset..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(eight) => u64::from_le_bytes(*eight),
            None => last_word(message, offset),
        };
        let value = offset as u32 + skip;
        differ |= (eight & mask) ^ word | u64::from(value >= end);
        *start = value;
        offset = end as usize + 1;
    }
    (differ == 0 && offset == message.len()).then_some(sum)
}

/// Loads the bytes from `offset` on, of which there are fewer than eight.
#[cold]
fn last_word(message: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    let rest = message.get(offset..).unwrap_or_default();
    word[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
    u64::from_le_bytes(word)
}

/// Parses the tag in `message[start..equal]`. Returns 0 if it is not 1 to 9 digits without a leading zero.
#[inline(always)]
pub(super) fn parse_tag(message: &[u8], start: usize, equal: usize) -> u32 {
    let digits = equal.wrapping_sub(start);
    // A load of eight bytes that ends at the '=', unless the message starts too close.
    if let Some(eight) = equal.checked_sub(8).and_then(|from| message.get(from..equal))
        && let Ok(eight) = eight.try_into()
        && digits.wrapping_sub(1) < 8
    {
        // Digits become 0 to 9 at the top, bytes before the tag 0 below.
        let shift = 64 - 8 * digits as u32;
        let d = (u64::from_le_bytes(eight) ^ (ONES * b'0' as u64)) >> shift << shift;
        let leading = d >> shift & 0xff;
        return if digits::all_digits(d) && leading != 0 { digits::number(d) } else { 0 };
    }
    tag_slow(message.get(start..equal).unwrap_or_default())
}

#[cold]
fn tag_slow(digits: &[u8]) -> u32 {
    if !(1..=9).contains(&digits.len()) || digits[0] == b'0' || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    digits.iter().fold(0, |tag, &digit| tag * 10 + u32::from(digit - b'0'))
}

const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

const _: () = assert!(FIELDS_MAX * 4 == STEP);

/// Computes the masks of 64 bytes, eight at a time.
#[inline(always)]
fn step_masks(block: &[u8; STEP], sep: u8) -> ByteMasks {
    let (sep, eq) = (u64::from(sep) * ONES, u64::from(b'=') * ONES);
    let (mut seps, mut eqs) = (0, 0);
    // Two lanes of 16 bits for each pair of bytes: eight words add at most 8 × 510, far from
    // overflow.
    let mut lanes = 0;
    for (i, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*eight);
        lanes += (word & EVEN) + (word >> 8 & EVEN);
        seps |= zero_bytes(word ^ sep) << (8 * i);
        eqs |= zero_bytes(word ^ eq) << (8 * i);
    }
    (seps, eqs, (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48))
}

/// Sets a bit for each byte of `x` that is zero.
#[inline(always)]
fn zero_bytes(x: u64) -> u64 {
    (digits::zeros(x) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
