//! Ordinals and positions that may be missing, as they are kept where many are: in one word each. An [`Option`] of
//! either takes two, and a busy day is a walk through a million orders. The encoding of "none" in a word stays in
//! this file.

use crate::state::wrapped;
use unitape_model::Position;

/// The ordinal of an event, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionalSequence(u64);

impl OptionalSequence {
    /// No ordinal; no tape has an event of this number.
    pub const NONE: Self = Self(u64::MAX);

    #[inline]
    pub const fn new(seq: u64) -> Self {
        Self(seq)
    }

    #[inline]
    pub fn get(self) -> Option<u64> {
        (self != Self::NONE).then_some(self.0)
    }
}

/// A position on the tape, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionalPosition(Position);

impl OptionalPosition {
    /// The position of an event that is on no tape. No frame begins there.
    pub const NONE: Self = Self(Position(u64::MAX));

    #[inline]
    pub fn new(position: Option<Position>) -> Self {
        position.map_or(Self::NONE, Self)
    }

    #[inline]
    pub fn get(self) -> Option<Position> {
        (self != Self::NONE).then_some(self.0)
    }
}

wrapped!(OptionalSequence, u64, |seq| seq.0, |seq| Some(OptionalSequence(seq)));
wrapped!(OptionalPosition, Position, |position| position.0, |position| Some(OptionalPosition(position)));

const _: () = assert!(size_of::<OptionalSequence>() == 8 && size_of::<OptionalPosition>() == 8);
