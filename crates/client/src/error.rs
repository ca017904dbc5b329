//! The errors of a client.

use crate::wire::Refusal;
use std::io;
use unitape_model::ErrorCause;

/// An error of a client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of the server cannot be read.
    #[error("`{0}` is no address of a dataset: unitape://HOST:PORT/NAME")]
    Address(String),
    /// The server cannot be reached, or the connection broke.
    #[error("{doing} {server}: {source}")]
    Connection {
        /// The operation that failed.
        doing: &'static str,
        /// Host and port.
        server: String,
        /// The reason.
        source: io::Error,
    },
    /// The server is not the one that was asked for.
    #[error("{server} is not the server that you named: {reason}")]
    Untrusted {
        /// Host and port.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The file of certificates cannot be used.
    #[error("{0}")]
    Trust(String),
    /// The server refused a message.
    #[error("{}", .0.text)]
    Refused(Refusal),
    /// The server said something that was not its turn.
    #[error("{server} does not keep to the protocol: {reason}")]
    Protocol {
        /// Host and port.
        server: String,
        /// The problem.
        reason: &'static str,
    },
    /// The answer cannot be read.
    #[error(transparent)]
    Store(#[from] unitape_store::Error),
}

impl Error {
    /// Returns on whose side its cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Address(_) => ErrorCause::Call,
            Self::Refused(refusal) if refusal.is_call => ErrorCause::Call,
            Self::Store(error) => error.cause(),
            _ => ErrorCause::Outside,
        }
    }
}
