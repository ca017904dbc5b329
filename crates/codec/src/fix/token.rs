//! A field of a message, and a view of several.

use super::value::{self, Decimal};
use unitape_base::digits;

/// One field: its tag and where its value lies in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldToken {
    /// The tag.
    pub tag: u32,
    /// First byte of the value, counted from the start of the message.
    pub start: u32,
    /// One past the last byte of the value.
    pub end: u32,
}

impl FieldToken {
    /// Returns the value; `message` must be the message of this token.
    #[inline]
    #[must_use]
    pub fn slice(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Parses the value as [`value::int`] does; `message` must be the message of this token.
    #[inline(always)]
    #[must_use]
    pub fn int(self, message: &[u8]) -> Option<i64> {
        match self.top_aligned(message) {
            Some((d, _)) if digits::all_digits(d) => Some(i64::from(digits::number(d))),
            // A sign is seldom, and more than eight bytes too.
            _ => value::int(self.slice(message)),
        }
    }

    /// Parses the value as [`value::decimal`] does; `message` must be the message of this token.
    #[inline(always)]
    #[must_use]
    pub fn decimal(self, message: &[u8]) -> Option<Decimal> {
        match self.top_aligned(message) {
            Some((d, shift)) => value::decimal_8(d, shift),
            None => value::decimal(self.slice(message)),
        }
    }

    /// Loads a value of one to eight bytes as [`digits::top`] does, and counts the bits below it. A header precedes
    /// each value, so the load needs no search for its start.
    #[inline(always)]
    fn top_aligned(self, message: &[u8]) -> Option<(u64, u32)> {
        let len = self.end.wrapping_sub(self.start);
        let eight = message.get(..self.end as usize)?.last_chunk::<8>()?;
        if len.wrapping_sub(1) >= 8 {
            return None;
        }
        let shift = len.wrapping_mul(8).wrapping_neg() & 63;
        let word = u64::from_le_bytes(*eight) ^ (digits::ONES * b'0' as u64);
        Some((word >> shift << shift, shift))
    }

    /// Returns the first byte of the value; `message` must be the message of this token.
    #[inline(always)]
    #[must_use]
    pub fn first_byte(self, message: &[u8]) -> Option<u8> {
        if self.start < self.end { message.get(self.start as usize).copied() } else { None }
    }

    /// Copies the value and fills the rest of the array with zeros; `message` must be the message of this token.
    /// Returns `None` if the value is longer than `N` bytes; `N` is at most 32.
    #[inline]
    #[must_use]
    pub fn padded_value<const N: usize>(self, message: &[u8]) -> Option<[u8; N]> {
        let value_start = self.start as usize;
        let len = (self.end as usize).wrapping_sub(value_start);
        if len > N {
            return None;
        }
        // The bytes after the value are copied too and cleared again: no call, no loop.
        const { assert!(N <= ONES_ZEROS.len() / 2) };
        let mask = ONES_ZEROS[ONES_ZEROS.len() / 2 - len..].first_chunk::<N>()?;
        if let Some(bytes) =
            message.get(value_start..value_start + N).and_then(|bytes| bytes.first_chunk::<N>())
        {
            let mut out = [0; N];
            if let (Ok(bytes), Some(mask)) = (<[u8; 8]>::try_from(&bytes[..]), mask.first_chunk::<8>()) {
                // The mask on one word, a short cut that the compiler does not see.
                let word = u64::from_le_bytes(bytes) & u64::from_le_bytes(*mask);
                out.copy_from_slice(&word.to_le_bytes());
                return Some(out);
            }
            for ((out, byte), mask) in out.iter_mut().zip(bytes).zip(mask) {
                *out = byte & mask;
            }
            return Some(out);
        }
        let mut out = [0; N];
        out.get_mut(..self.slice(message).len())?.copy_from_slice(self.slice(message));
        Some(out)
    }
}

static ONES_ZEROS: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut index = 0;
    while index < 32 {
        bytes[index] = u8::MAX;
        index += 1;
    }
    bytes
};

/// Fields of one message, or of a part of it: a view, as cheap to copy as a slice.
///
/// Invariant: the three columns are of one length. `new` and [`TokenSlice::range`], the only makers of any
/// that is not empty, slice all three alike.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenSlice<'t> {
    tags: &'t [u32],
    starts: &'t [u32],
    ends: &'t [u32],
    /// The number of the shape that has just these tags; 0 if not known.
    shape: u64,
}

impl<'t> TokenSlice<'t> {
    /// Makes a slice of the columns' first fields, as many as there are tags. `shape` must be the number that only
    /// these tags have, or 0.
    #[inline(always)]
    pub(super) fn new(tags: &'t [u32], starts: &'t [u32], ends: &'t [u32], shape: u64) -> Self {
        TokenSlice { tags, starts: &starts[..tags.len()], ends: &ends[..tags.len()], shape }
    }

    /// Counts the fields.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.tags.len()
    }

    /// Returns whether there are no fields.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.tags.is_empty()
    }

    /// Returns a number that only fields with the same tags have; 0 if no such number is known.
    #[inline]
    pub(crate) const fn shape(self) -> u64 {
        self.shape
    }

    /// Returns the tags without the values.
    #[inline]
    #[must_use]
    pub const fn tags(self) -> &'t [u32] {
        self.tags
    }

    /// Returns the field at `index`, or `None` if there are fewer fields.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> Option<FieldToken> {
        let tag = *self.tags.get(index)?;
        // SAFETY: `index` is in the tags, and the columns are of one length by the invariant.
        let (start, end) = unsafe { (*self.starts.get_unchecked(index), *self.ends.get_unchecked(index)) };
        Some(FieldToken { tag, start, end })
    }

    /// Returns the field at `index`.
    ///
    /// # Panics
    /// Panics if there are fewer fields.
    #[inline]
    #[must_use]
    pub fn token_at(self, index: usize) -> FieldToken {
        self.get(index).expect("an index of a field")
    }

    /// Returns the fields from `start` up to, not including, `end`.
    ///
    /// # Panics
    /// Panics if there are fewer fields.
    #[inline]
    #[must_use]
    pub fn range(self, start: usize, end: usize) -> Self {
        TokenSlice {
            tags: &self.tags[start..end],
            starts: &self.starts[start..end],
            ends: &self.ends[start..end],
            shape: 0,
        }
    }

    /// Iterates over the fields.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = FieldToken> + 't {
        let values = self.starts.iter().zip(self.ends);
        self.tags.iter().zip(values).map(|(&tag, (&start, &end))| FieldToken { tag, start, end })
    }
}
