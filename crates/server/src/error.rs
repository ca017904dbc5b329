//! The errors of the desk.

use std::io;
use std::net::SocketAddr;
use unitape_model::ErrorCause;

/// An error that ends the desk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not one of this machine.
    #[error(
        "{0} is not an address of this machine alone; the desk has no TLS yet, so listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The threads of the server cannot be started.
    #[error("starting the server: {0}")]
    Runtime(#[source] io::Error),
    /// The users cannot be read.
    #[error(transparent)]
    Users(#[from] unitape_run::users::UserError),
    /// The cases cannot be used.
    #[error(transparent)]
    Case(#[from] unitape_case::Error),
    /// The certificate of the data server cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Certificate(String),
    /// The entitlements cannot be read.
    #[error("the entitlements cannot be read: {0}")]
    Entitlements(String),
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] unitape_store::Error),
    /// A tape cannot be read.
    #[error(transparent)]
    Run(#[from] unitape_run::Error),
}

impl Error {
    /// Returns on whose side the cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::NotLoopback(_) => ErrorCause::Call,
            Self::Store(source) => source.cause(),
            Self::Listen { .. } | Self::Runtime(_) | Self::Certificate(_) | Self::Entitlements(_) => {
                ErrorCause::Outside
            }
            Self::Users(source) => source.cause(),
            Self::Case(source) => source.cause(),
            Self::Run(source) => source.cause(),
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Run(error.into())
    }
}
