//! Errors that end the work. A fault in one message belongs to its format and is not an error.

use unitape_model::ErrorCause;

/// An error of reading a dictionary or of the streaming driver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A dictionary is not well-formed or refers to something it does not define.
    #[error("{file}:{line}: {message}")]
    Dictionary {
        /// The name the file was given under.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// The problem, in words.
        message: String,
    },
    /// The input could not be read.
    #[error("{file}: cannot read at byte {offset}: {source}")]
    Read {
        /// The name the input was given under.
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

impl Error {
    /// Returns whose fault the error is. A faulty dictionary counts as an outside cause, not as bad data.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Dictionary { .. } => ErrorCause::Outside,
            Self::Read { source, .. } | Self::Write { source } => ErrorCause::from_io(source),
        }
    }
}
