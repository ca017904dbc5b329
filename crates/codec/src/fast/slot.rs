//! What a dictionary has of a field, and what goes there.

use super::program::Found;
use super::record::span;
use super::template::Type;
use std::ops::Range;

/// A previous value. Sixteen bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// As in an entry.
    pub bits: u64,
    /// It is undefined unless this is the decoder's.
    pub epoch: u32,
    pub state: State,
    pub kind: Type,
    pub exponent: i8,
    pub len: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    Assigned,
    /// A text that lies in the arena.
    Long,
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
    #[inline(always)]
    pub fn found(&self) -> Found {
        let Slot { bits, exponent, len, state, .. } = *self;
        Found { bits, exponent, len, long: state == State::Long }
    }
}
