//! The errors of addresses and cursors.

use unitape_model::ErrorCause;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This names no point of a tape.
    #[error(
        "{text}: neither of an ordinal, an @position, a time like `2026-03-02` or `2026-03-02 09:30:00.5` (UTC), or nanoseconds \
         since 1970"
    )]
    Point {
        /// As it was written.
        text: String,
    },
    /// This bounds no part of a tape.
    #[error("`{text}` is neither an ordinal nor an @position")]
    Bound {
        /// As it was written.
        text: String,
    },
    /// This is no time.
    #[error(
        "`{text}` is not a time like `2026-03-02` or `2026-03-02 09:30:00.5` (UTC), and not nanoseconds since 1970"
    )]
    Time {
        /// As it was written.
        text: String,
    },
    /// A tape cannot be read.
    #[error(transparent)]
    Tape(Box<unitape_tape::Error>),
}

impl Error {
    /// Returns on whose side the cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Point { .. } | Self::Bound { .. } | Self::Time { .. } => ErrorCause::Call,
            Self::Tape(source) => source.cause(),
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Tape(Box::new(error))
    }
}
