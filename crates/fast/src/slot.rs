//! What dictionaries have of fields, and which of it each template has.

use super::found::Found;
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

/// Entries that the same templates have, or nearly so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub from: u32,
    pub to: u32,
}

impl Share {
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// The entries of all dictionaries of a program, from [`super::engine::HEAD`] on.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    pub shares: Vec<Share>,
    /// What each entry is where nothing was before.
    pub empty: Vec<Slot>,
    /// The shares of all templates; each has a range of it.
    pub of: Vec<u32>,
}
