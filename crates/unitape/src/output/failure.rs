//! The outcome of a command, and the one rule for its exit code. Users read the rule in docs/reference/exit-codes.md.
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

/// The outcome of a successful command; the greater one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Makes a failure with this cause and message.
    pub fn new(cause: ErrorCause, message: String) -> Self {
        match cause {
            ErrorCause::Call => Self::Usage(message),
            ErrorCause::Data => Self::Data(message),
            ErrorCause::Outside => Self::Error(message),
        }
    }

    /// Puts the subject before the message: `tape.toml: no such file`.
    pub fn with_subject(self, subject: impl std::fmt::Display) -> Self {
        let add_subject = |text| format!("{subject}: {text}");
        match self {
            Self::ClosedStdout => self,
            Self::Usage(text) => Self::Usage(add_subject(text)),
            Self::Data(text) => Self::Data(add_subject(text)),
            Self::Error(text) => Self::Error(add_subject(text)),
        }
    }

    /// Turns a usage failure into an error, because the value came from a configuration and not from the call.
    pub fn into_configured(self) -> Self {
        match self {
            Self::Usage(text) => Self::Error(text),
            other => other,
        }
    }

    /// Returns whether the data, the call or something outside caused the failure. A closed stdout counts as outside.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::ClosedStdout | Self::Error(_) => ErrorCause::Outside,
            Self::Usage(_) => ErrorCause::Call,
            Self::Data(_) => ErrorCause::Data,
        }
    }

    /// Returns the text to print, or `None` if stdout was closed.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::ClosedStdout => None,
            Self::Usage(text) | Self::Data(text) | Self::Error(text) => Some(text),
        }
    }
}

/// Returns the exit code of a command. No other part of the binary names an exit code.
pub fn exit_code(result: &Result) -> ExitCode {
    ExitCode::from(match result {
        Ok(CommandOutcome::Clean) | Err(CommandFailure::ClosedStdout) => 0,
        Err(CommandFailure::Error(_)) => 1,
        Err(CommandFailure::Usage(_)) => 2,
        Ok(CommandOutcome::Flawed) | Err(CommandFailure::Data(_)) => 3,
    })
}

/// Returns the cause of a failure from the exit code of a process of unitape.
pub fn cause_of(exit_code: i32) -> ErrorCause {
    match exit_code {
        2 => ErrorCause::Call,
        3 => ErrorCause::Data,
        _ => ErrorCause::Outside,
    }
}

/// An error that names its cause.
pub trait ErrorWithCause: std::error::Error + 'static {
    /// Returns whether the data, the call or something outside caused the error.
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
    /// Returns the data as the cause of a syntax error, because the JSON that unitape writes is valid.
    fn error_cause(&self) -> ErrorCause {
        if self.is_syntax() || self.is_eof() { ErrorCause::Data } else { ErrorCause::Outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_an_exit_code() {
        let code_of = |cause| format!("{:?}", exit_code(&Err(CommandFailure::new(cause, String::new()))));
        for (cause, code) in [(ErrorCause::Outside, 1), (ErrorCause::Call, 2), (ErrorCause::Data, 3)] {
            assert_eq!(code_of(cause), format!("{:?}", ExitCode::from(code)));
        }
    }

    /// Fails if a broken pipe other than stdout counts as a closed stdout.
    #[test]
    fn only_stdout_may_be_closed() {
        let broken_pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(matches!(CommandFailure::from(broken_pipe), CommandFailure::Error(_)));
    }
}
