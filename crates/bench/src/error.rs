//! The errors of a measurement.

use unitape_model::ErrorCause;

/// An error of this crate, in words, with the side on which its cause lies.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call is wrong.
    #[error("{0}")]
    Usage(String),
    /// The data are wrong.
    #[error("{0}")]
    Data(String),
    /// Something outside the call and the data; also a measurement that does not come out right.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Returns whether the data, the call or something outside caused the error.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Usage(_) => ErrorCause::Call,
            Self::Data(_) => ErrorCause::Data,
            Self::Failed(_) => ErrorCause::Outside,
        }
    }

    fn new(cause: ErrorCause, message: String) -> Self {
        match cause {
            ErrorCause::Call => Self::Usage(message),
            ErrorCause::Data => Self::Data(message),
            ErrorCause::Outside => Self::Failed(message),
        }
    }
}

macro_rules! caused {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::new(error.cause(), error.to_string())
            }
        })*
    };
}

caused!(
    unitape_book::Error,
    unitape_case::Error,
    unitape_client::Error,
    unitape_codec::fix::Error,
    unitape_codec::fixed::Error,
    unitape_fast::TemplateError,
    unitape_feed::Error,
    unitape_marketdata::Error,
    unitape_run::Error,
    unitape_run::users::UserError,
    unitape_server::Error,
    unitape_sim::Error,
    unitape_store::Error,
    unitape_tape::Error,
    unitape_watch::Error,
);

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorCause::from_io(&error), error.to_string())
    }
}

impl From<unitape_model::FrameFault> for Error {
    fn from(error: unitape_model::FrameFault) -> Self {
        Self::Data(error.to_string())
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Failed(error.to_string())
    }
}

impl<E: std::error::Error> From<unitape_ring::Error<E>> for Error {
    fn from(error: unitape_ring::Error<E>) -> Self {
        Self::Failed(error.to_string())
    }
}
