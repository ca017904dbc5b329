//! A value between the wire, a dictionary and an entry.

use super::entry::{DecodedEntryKind, span};
use super::template::WireType;
use std::ops::Range;

/// A value on its way from wire, template or dictionary to an entry and a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedValue {
    /// As in an entry.
    pub bits: u64,
    pub exponent: i8,
    pub len: u8,
    /// A text that lies in the arena.
    pub long: bool,
}

impl PackedValue {
    /// Makes an integer, the mantissa of a decimal, or an empty text.
    #[inline(always)]
    pub fn int(bits: u64) -> Self {
        PackedValue { bits, exponent: 0, len: 0, long: false }
    }

    /// Makes a text of up to eight bytes.
    #[inline(always)]
    pub fn short(text: &[u8]) -> Self {
        let mut word = [0; 8];
        word[..text.len()].copy_from_slice(text);
        PackedValue { len: text.len() as u8, ..Self::int(u64::from_le_bytes(word)) }
    }

    pub fn form(&self, kind: WireType) -> DecodedEntryKind {
        match kind {
            WireType::Int32 | WireType::Int64 => DecodedEntryKind::Int,
            WireType::UInt32 | WireType::UInt64 => DecodedEntryKind::UInt,
            WireType::Decimal => DecodedEntryKind::Decimal,
            _ if self.long => DecodedEntryKind::Long,
            _ => DecodedEntryKind::Short,
        }
    }

    pub fn extra(&self, kind: WireType) -> u8 {
        if kind == WireType::Decimal { self.exponent as u8 } else { self.len }
    }

    /// Makes a text that is in the arena.
    #[inline(always)]
    pub fn long(from: usize, len: usize) -> Self {
        PackedValue { long: true, ..Self::int((from as u64) << 32 | len as u64) }
    }

    pub fn text_len(&self) -> usize {
        if self.long { span(self.bits).len() } else { usize::from(self.len) }
    }

    /// Appends this part of the text to the arena in which it may lie.
    pub fn copy(&self, part: Range<usize>, arena: &mut Vec<u8>) {
        if self.long {
            let text_start = span(self.bits).start;
            arena.extend_from_within(text_start + part.start..text_start + part.end);
        } else {
            arena.extend_from_slice(&self.bits.to_le_bytes()[part]);
        }
    }
}
