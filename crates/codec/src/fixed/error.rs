//! Errors that end the work. A fault in one record is a [`Fault`](super::RecordFault), not an error.

use unitape_model::ErrorCause;

/// An error of reading a layout or of the streaming driver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layout that cannot be.
    #[error("{origin}:{line}: {reason}")]
    Layout {
        /// The name the layout was given under.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The problem, in words.
        reason: String,
    },
    /// The input could not be read.
    #[error("{file}: at byte {offset}: {source}")]
    Read {
        /// The name it was given under.
        file: String,
        /// Bytes read before.
        offset: u64,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The output could not be written.
    #[error("cannot write the output: {source}")]
    Write {
        /// The system's reason.
        source: std::io::Error,
    },
}

impl From<unitape_base::Error> for Error {
    fn from(error: unitape_base::Error) -> Self {
        match error {
            unitape_base::Error::Read { file, offset, source } => Self::Read { file, offset, source },
            unitape_base::Error::Write { source } => Self::Write { source },
            other => unreachable!("reading rows has no dictionary: {other}"),
        }
    }
}

impl Error {
    /// Returns whose fault the error is. A faulty layout counts as an outside cause, not as bad data.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Layout { .. } => ErrorCause::Outside,
            Self::Read { source, .. } | Self::Write { source } => ErrorCause::from_io(source),
        }
    }
}
