//! What a dictionary has of a field, and what goes there.

use super::program::Found;
use super::record::span;
use super::template::Type;
use std::ops::Range;

/// A previous value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Slot {
    /// As in an entry.
    pub bits: u64,
    /// From the lowest bit: 8 of the state, 8 of the type, 40 unused, 8 of the exponent of a decimal or the length of a
    /// short text.
    pub meta: u64,
}

const _: () = assert!(size_of::<Slot>() == 16);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    Assigned,
    /// A text that lies in the arena.
    Long,
    Undefined,
}

impl Found {
    pub fn text_len(&self) -> usize {
        if self.long { span(self.bits).len() } else { usize::from(self.len) }
    }

    /// Appends this part of the text to the arena in which it may lie.
    pub fn copy(&self, part: Range<usize>, arena: &mut Vec<u8>) {
        if self.long {
            let from = span(self.bits).start;
            arena.extend_from_within(from + part.start..from + part.end);
        } else {
            arena.extend_from_slice(&self.bits.to_le_bytes()[part]);
        }
    }
}

impl Slot {
    pub const UNDEFINED: Self = Slot { bits: 0, meta: State::Undefined as u64 };

    pub const fn meta(state: State, kind: Type, extra: u8) -> u64 {
        state as u64 | (kind as u64) << 8 | (extra as u64) << 56
    }

    #[inline(always)]
    pub fn state(&self) -> State {
        match self.meta as u8 {
            0 => State::Empty,
            1 => State::Assigned,
            2 => State::Long,
            _ => State::Undefined,
        }
    }

    #[inline(always)]
    pub fn is_of(&self, kind: Type) -> bool {
        (self.meta >> 8) as u8 == kind as u8
    }

    #[inline(always)]
    pub fn found(&self) -> Found {
        let extra = (self.meta >> 56) as u8;
        Found { bits: self.bits, exponent: extra as i8, len: extra, long: self.state() == State::Long }
    }
}

/// What the slot had before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undo {
    pub slot: Slot,
    pub place: u32,
}
