//! The errors and their places.

use unitape_model::{Decimal, ErrorCause, Position};

/// Why a frame could not be applied, or options cannot be. An impossible statement about a book is never an error: see
/// [`crate::BookFault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A frame of a tape that is not a valid event, or a definition out of turn.
    #[error("tape at {position}: {message}")]
    Frame {
        /// Its position.
        position: Position,
        /// The problem, in words.
        message: String,
    },
    /// Best prices of no size.
    #[error("no size: best prices are kept for one size at least")]
    NoSize,
    /// A size of best prices that is not above zero.
    #[error("size {size}: a size is a number above 0")]
    Size {
        /// The size.
        size: Decimal,
    },
    /// A median over no bank.
    #[error("spike_banks 0: a median needs one other bank at least")]
    SpikeBanks,
}

impl Error {
    /// Returns whether the data or the call caused the error.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Frame { .. } => ErrorCause::Data,
            Self::NoSize | Self::Size { .. } | Self::SpikeBanks => ErrorCause::Call,
        }
    }
}
