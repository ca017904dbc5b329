//! The slots of fields in dictionaries, and the ones that each template has.

use super::packed_value::PackedValue;
use super::template::WireType;
use std::ops::Range;

/// A previous value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct DictionarySlot {
    /// As in an entry.
    pub bits: u64,
    /// From the lowest bit: 8 of the state, 8 of the type, 40 unused, 8 of the exponent of a decimal or the length of a
    /// short text.
    pub meta: u64,
}

const _: () = assert!(size_of::<DictionarySlot>() == 16);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    Empty,
    Assigned,
    /// A text that lies in the arena.
    Long,
    Undefined,
}

impl DictionarySlot {
    pub const UNDEFINED: Self = DictionarySlot { bits: 0, meta: SlotState::Undefined as u64 };

    pub const fn meta(state: SlotState, kind: WireType, extra: u8) -> u64 {
        state as u64 | (kind as u64) << 8 | (extra as u64) << 56
    }

    #[inline(always)]
    pub fn state(&self) -> SlotState {
        match self.meta as u8 {
            0 => SlotState::Empty,
            1 => SlotState::Assigned,
            2 => SlotState::Long,
            _ => SlotState::Undefined,
        }
    }

    #[inline(always)]
    pub fn is_of(&self, kind: WireType) -> bool {
        (self.meta >> 8) as u8 == kind as u8
    }

    #[inline(always)]
    pub fn packed_value(&self) -> PackedValue {
        let extra = (self.meta >> 56) as u8;
        PackedValue {
            bits: self.bits,
            exponent: extra as i8,
            len: extra,
            long: self.state() == SlotState::Long,
        }
    }
}

/// The previous state of a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotUndo {
    pub slot: DictionarySlot,
    pub slot_index: u32,
}

/// Entries that the same templates have, or nearly so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SharedSlotRange {
    pub from: u32,
    pub to: u32,
}

impl SharedSlotRange {
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// The entries of all dictionaries of a program, from [`super::engine::HEAD`] on.
#[derive(Debug, Clone, Default)]
pub(super) struct DictionaryLayout {
    pub shares: Vec<SharedSlotRange>,
    /// The state of each entry before a value was put there.
    pub empty: Vec<DictionarySlot>,
    /// The shares of all templates; each has a range of it.
    pub template_shares: Vec<u32>,
}
