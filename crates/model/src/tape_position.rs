//! A place on any tape, as events name it.

use crate::frame::Position;
use std::fmt;

/// A position on a tape that is named by its id: the cause of an event, a quote that was considered.
///
/// In a frame it has [`TapePosition::BYTES`] bytes: the id as u128, the position as u64, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TapePosition {
    /// The id of the tape.
    pub tape: u128,
    /// The position on it.
    pub position: Position,
}

impl TapePosition {
    /// Size of the payload in a frame.
    pub const BYTES: usize = 24;

    /// Encodes the position as the payload bytes of a frame.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..16].copy_from_slice(&self.tape.to_le_bytes());
        out[16..].copy_from_slice(&self.position.0.to_le_bytes());
        out
    }

    /// Reads the bytes of a frame.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (tape, position) = bytes.split_at(16);
        Self {
            tape: u128::from_le_bytes(tape.try_into().expect("16 bytes")),
            position: Position(u64::from_le_bytes(position.try_into().expect("8 bytes"))),
        }
    }
}

/// As in JSON: `{"tape":"00000000000000000000000000000007","position":4096}`.
impl fmt::Display for TapePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"{{"tape":"{:032x}","position":{}}}"#, self.tape, self.position.0)
    }
}
