//! The outcome of a command, and the one rule for its exit code. Users read the rule in docs/guide-engineer.md.
//!
//! | code | when |
//! |---|---|
//! | 0 | done; also when nothing was found, and when the reader of stdout has closed it |
//! | 1 | the cause lies outside the call and the data: [`ErrorCause::Outside`] |
//! | 2 | the call is wrong: [`ErrorCause::Call`] |
//! | 3 | the data are damaged, missing or in quarantine, whether the command finished or not: [`ErrorCause::Data`] |
//!
//! Each error type of the crates names its cause, and [`ErrorWithCause`] brings it here; a failure of a command's own is made
//! by its cause: [`CommandFailure::Usage`], [`CommandFailure::Data`], [`CommandFailure::Error`].

use super::stdout::StdoutError;
use std::process::ExitCode;
use unitape_model::ErrorCause;

/// The outcome of a successful command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Nothing to remark.
    Clean,
    /// Done, but there are gaps, quarantined or damaged data.
    Flawed,
}

/// The failure of a command.
#[derive(Debug)]
pub enum CommandFailure {
    /// Stdout was closed by its reader.
    ClosedStdout,
    /// The call is wrong.
    Usage(String),
    /// The data are not what they must be.
    Data(String),
    /// The cause lies outside the call and the data.
    Error(String),
}

/// The result of a command.
pub type Result = std::result::Result<CommandOutcome, CommandFailure>;

impl CommandFailure {
    /// A failure with this cause, in words.
    pub fn new(cause: ErrorCause, what: String) -> Self {
        match cause {
            ErrorCause::Call => Self::Usage(what),
            ErrorCause::Data => Self::Data(what),
            ErrorCause::Outside => Self::Error(what),
        }
    }

    /// This failure, said of something: `tape.toml: no such file`.
    pub fn with_subject(self, what: impl std::fmt::Display) -> Self {
        let put = |text| format!("{what}: {text}");
        match self {
            Self::ClosedStdout => self,
            Self::Usage(text) => Self::Usage(put(text)),
            Self::Data(text) => Self::Data(put(text)),
            Self::Error(text) => Self::Error(put(text)),
        }
    }

    /// This failure where the value came from a configuration, not from the call.
    pub fn into_configured(self) -> Self {
        match self {
            Self::Usage(text) => Self::Error(text),
            other => other,
        }
    }

    /// On whose side its cause lies; a closed stdout is nobody's.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::ClosedStdout | Self::Error(_) => ErrorCause::Outside,
            Self::Usage(_) => ErrorCause::Call,
            Self::Data(_) => ErrorCause::Data,
        }
    }

    /// The text to print; nothing if stdout was closed.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::ClosedStdout => None,
            Self::Usage(text) | Self::Data(text) | Self::Error(text) => Some(text),
        }
    }
}

/// The exit code of a command. Nothing else in the binary names a number.
pub fn exit_code(result: &Result) -> ExitCode {
    ExitCode::from(match result {
        Ok(CommandOutcome::Clean) | Err(CommandFailure::ClosedStdout) => 0,
        Err(CommandFailure::Error(_)) => 1,
        Err(CommandFailure::Usage(_)) => 2,
        Ok(CommandOutcome::Flawed) | Err(CommandFailure::Data(_)) => 3,
    })
}

/// The cause of the failure that a process of ours ended with this exit code for.
pub fn cause_of(exit_code: i32) -> ErrorCause {
    match exit_code {
        2 => ErrorCause::Call,
        3 => ErrorCause::Data,
        _ => ErrorCause::Outside,
    }
}

/// An error that names its cause.
pub trait ErrorWithCause: std::error::Error + 'static {
    /// On whose side it lies.
    fn error_cause(&self) -> ErrorCause;
}

impl<E: ErrorWithCause> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        match StdoutError::find(&error) {
            Some(stdout) => stdout.into(),
            None => Self::new(error.error_cause(), error.to_string()),
        }
    }
}

macro_rules! caused {
    ($($error:ty),* $(,)?) => {
        $(impl ErrorWithCause for $error {
            fn error_cause(&self) -> ErrorCause {
                <$error>::cause(self)
            }
        })*
    };
}

#[cfg(feature = "bench")]
caused!(unitape_bench::Error);

#[cfg(feature = "link")]
caused!(unitape_link::Error);

caused!(
    unitape_arrow::Error,
    unitape_book::Error,
    unitape_case::Error,
    unitape_fast::TemplateError,
    unitape_codec::fix::Error,
    unitape_codec::fixed::Error,
    unitape_feed::Error,
    unitape_marketdata::Error,
    unitape_query::Error,
    unitape_run::Error,
    unitape_client::Error,
    unitape_server::Error,
    unitape_run::users::UserError,
    unitape_sim::Error,
    unitape_store::Error,
    unitape_tape::Error,
    unitape_watch::Error,
);

impl ErrorWithCause for std::io::Error {
    fn error_cause(&self) -> ErrorCause {
        ErrorCause::from_io(self)
    }
}

impl ErrorWithCause for unitape_model::FrameFault {
    fn error_cause(&self) -> ErrorCause {
        ErrorCause::Data
    }
}

impl ErrorWithCause for rustix::io::Errno {
    fn error_cause(&self) -> ErrorCause {
        ErrorCause::Outside
    }
}

impl<E: std::error::Error + 'static> ErrorWithCause for unitape_ring::Error<E> {
    fn error_cause(&self) -> ErrorCause {
        ErrorCause::Outside
    }
}

impl ErrorWithCause for serde_json::Error {
    /// The JSON that we write is valid, so a syntax error comes from data that we read.
    fn error_cause(&self) -> ErrorCause {
        if self.is_syntax() || self.is_eof() { ErrorCause::Data } else { ErrorCause::Outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_an_exit_code() {
        let of = |cause| format!("{:?}", exit_code(&Err(CommandFailure::new(cause, String::new()))));
        for (cause, code) in [(ErrorCause::Outside, 1), (ErrorCause::Call, 2), (ErrorCause::Data, 3)] {
            assert_eq!(of(cause), format!("{:?}", ExitCode::from(code)));
        }
    }

    /// A pipe that somebody else broke is an error; only our own stdout may be closed.
    #[test]
    fn only_stdout_may_be_closed() {
        let other = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(matches!(CommandFailure::from(other), CommandFailure::Error(_)));
    }
}
