//! The errors, and where they are.

use unitape_model::{ErrorCause, Position};

/// Why a frame could not be applied. An impossible statement about a book is never an error: see
/// [`crate::BookFault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A frame of a tape that is no event of ours, or a definition out of turn.
    #[error("tape at {position}: {message}")]
    Frame {
        /// Its position.
        position: Position,
        /// The problem, in words.
        message: String,
    },
}

impl Error {
    /// On whose side the cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Frame { .. } => ErrorCause::Data,
        }
    }
}
