//! The entry, of which messages are made: sixteen bytes for each value, group, sequence, element and end.

use std::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(super) enum DecodedEntryKind {
    Int,
    UInt,
    Decimal,
    /// Up to eight bytes, in the entry.
    Short,
    /// More, in the arena.
    Long,
    Group,
    Sequence,
    /// It ends the one before it.
    Element,
    /// A message in the message; it is not reported.
    Inner,
    /// The end of a group, of a sequence with its last element, or of a message in the message.
    End,
}

/// Sixteen bytes.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct DecodedEntry {
    /// The number; the bytes, the first the lowest; offset and length in the arena; how many elements; the template of a
    /// message in the message.
    pub bits: u64,
    /// From the lowest bit: 32 of the field, group or sequence, 16 of the caller's tag, 8 of the form, 8 of the exponent of
    /// a decimal or the length of a short text.
    pub meta: u64,
}

const _: () = assert!(size_of::<DecodedEntry>() == 16);

/// An entry with the parts of `meta` each by itself: to look at one is then to load it, and not to load all and to
/// cut it out.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct UnpackedEntry {
    pub bits: u64,
    #[cfg(target_endian = "little")]
    _info: u32,
    #[cfg(target_endian = "big")]
    pub extra: u8,
    #[cfg(target_endian = "big")]
    pub form: u8,
    pub tag: u16,
    #[cfg(target_endian = "little")]
    pub form: u8,
    #[cfg(target_endian = "little")]
    pub extra: u8,
    #[cfg(target_endian = "big")]
    _info: u32,
}

impl DecodedEntry {
    #[inline(always)]
    pub fn unpacked_view(&self) -> &UnpackedEntry {
        zerocopy::transmute_ref!(self)
    }

    pub fn meta(info: u32, tag: u16, form: DecodedEntryKind, extra: u8) -> u64 {
        u64::from(info) | u64::from(tag) << 32 | (form as u64) << 48 | u64::from(extra) << 56
    }

    #[inline(always)]
    pub fn info(&self) -> u32 {
        self.meta as u32
    }

    #[inline(always)]
    pub fn tag(&self) -> u16 {
        (self.meta >> 32) as u16
    }

    #[inline(always)]
    pub fn form_byte(&self) -> u8 {
        (self.meta >> 48) as u8
    }

    #[inline(always)]
    pub fn is_value(&self) -> bool {
        self.form_byte() <= DecodedEntryKind::Long as u8
    }

    #[inline(always)]
    pub fn form(&self) -> DecodedEntryKind {
        match self.form_byte() {
            0 => DecodedEntryKind::Int,
            1 => DecodedEntryKind::UInt,
            2 => DecodedEntryKind::Decimal,
            3 => DecodedEntryKind::Short,
            4 => DecodedEntryKind::Long,
            5 => DecodedEntryKind::Group,
            6 => DecodedEntryKind::Sequence,
            7 => DecodedEntryKind::Element,
            8 => DecodedEntryKind::Inner,
            _ => DecodedEntryKind::End,
        }
    }

    #[inline(always)]
    pub fn extra(&self) -> u8 {
        (self.meta >> 56) as u8
    }
}

/// Returns the range of a long text in the arena.
pub(super) fn span(bits: u64) -> Range<usize> {
    let (from, len) = ((bits >> 32) as usize, (bits & 0xffff_ffff) as usize);
    from..from + len
}
