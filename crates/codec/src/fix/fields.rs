//! The fast path of reading fields: from the places of all separators to a table of tokens. Plain
//! code without special instructions, which `simd.rs` compiles once for each set of them.

use super::data::DataTags;
use super::tokens::Token;

/// How far the fast path came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// Tokens written.
    pub fields: usize,
    /// The first field that it leaves to the walk: long tags, length fields, empty values, text
    /// after the last separator, and all that is wrong. The message's length if none.
    pub stopped: usize,
}

/// Reads the fields from `start` on that end at the separators at `ends` into `table`, which is as
/// long or longer.
#[inline(always)]
pub(crate) fn read(
    message: &[u8],
    mut start: usize,
    ends: &[u32],
    lenient: bool,
    data: &DataTags,
    table: &mut [Token],
) -> Read {
    // One byte of value at least, unless lenient.
    let value_len_min = usize::from(!lenient);
    for (fields, (&end, slot)) in ends.iter().zip(table.iter_mut()).enumerate() {
        let Some((tag, digits)) = tag_at(message, start) else {
            return Read { fields, stopped: start };
        };
        if start + digits + value_len_min >= end as usize || data.data_of(tag).is_some() {
            return Read { fields, stopped: start };
        }
        *slot = Token { tag, start: (start + digits + 1) as u32, end };
        start = end as usize + 1;
    }
    Read { fields: ends.len(), stopped: start }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The tag of the field at `start` and its digits, if it is 1 to 7 digits and `=`.
#[inline(always)]
fn tag_at(message: &[u8], start: usize) -> Option<(u32, usize)> {
    let word = match message.get(start..start + 8) {
        Some(eight) => u64::from_le_bytes(eight.try_into().ok()?),
        None => {
            let mut padded = [0; 8];
            let rest = message.get(start..)?;
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(padded)
        }
    };
    let x = word ^ (ONES * b'=' as u64);
    // The lowest set bit marks the first '='; bits above it may be false, which nobody reads.
    let equals = x.wrapping_sub(ONES) & !x & HIGH;
    let digits = equals.trailing_zeros() as usize / 8;
    // No '=' in eight bytes, no digit before it, or a leading zero.
    if equals == 0 || digits == 0 || word & 0xff == u64::from(b'0') {
        return None;
    }
    // Digits to the top, so that the last one is in the highest byte and missing ones are zero.
    let shift = 64 - 8 * digits as u32;
    let d = (word << shift).wrapping_sub((ONES * b'0' as u64) << shift);
    // A byte that is no digit is above 9 here: the lowest such byte is seen without borrow or
    // carry from below, so nothing wrong passes.
    if (d.wrapping_add(ONES * 0x76) | d) & HIGH != 0 {
        return None;
    }
    // Pairs, then fours, then eights.
    let pairs = d.wrapping_mul(10).wrapping_add(d >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(((low.wrapping_add(high) >> 32) as u32, digits))
}
