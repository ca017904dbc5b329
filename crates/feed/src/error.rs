//! The errors between bytes and the tape; each says what was being done and where.

use std::path::PathBuf;
use unitape_model::{ErrorCause, Position};

/// An error of this crate. Bad messages are no errors: they go into quarantine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A mapping cannot be used.
    #[error("mapping {origin}: {reason}")]
    Mapping {
        /// File name, or `built in`.
        origin: String,
        /// The problem, in words.
        reason: String,
    },
    /// The account of what retention removed cannot be read or written.
    #[error("{}: the account of what retention removed: {source}", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file that says how far a merge is cannot be read or written.
    #[error("{}: how far the merge is: {source}", path.display())]
    MergeState {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A merged tape cannot be merged, or has changed.
    #[error("merge, tape {name}: {reason}")]
    MergeInput {
        /// Its name in the merge.
        name: String,
        /// The problem, in words.
        reason: String,
    },
    /// A layout cannot be used.
    #[error("layout {0}")]
    Layout(#[from] unitape_codec::fixed::Error),
    /// A configuration cannot be used.
    #[error("{origin}: {reason}")]
    Config {
        /// File name or option.
        origin: String,
        /// The problem, in words.
        reason: String,
    },
    /// Reference data cannot be used.
    #[error("reference data {}: at byte {offset}: {reason}", path.display())]
    Reference {
        /// The file.
        path: PathBuf,
        /// Offset of the invalid message, in bytes from the file's start.
        offset: u64,
        /// The problem, in words.
        reason: String,
    },
    /// Reading an input failed.
    #[error("{}: at byte {offset}: {source}", path.display())]
    Read {
        /// The input.
        path: PathBuf,
        /// The offset, in bytes from its start.
        offset: u64,
        /// The system's word.
        source: std::io::Error,
    },
    /// The content has no known format.
    #[error(
        "{}: not recognised by its content ({description}); name it with --feed name=format:mapping:path", path.display()
    )]
    Unrecognised {
        /// The input.
        path: PathBuf,
        /// The start of the content.
        description: String,
    },
    /// A pipe or device: a look at its content would be missing from its feed.
    #[error(
        "{}: a pipe or device, which can be read only once; name it with --feed name=format:mapping:path", path.display()
    )]
    ReadOnce {
        /// The input.
        path: PathBuf,
    },
    /// An input differs from what the tape recorded about it.
    #[error("{file} of feed {feed}: {difference}")]
    SourceChanged {
        /// The feed.
        feed: String,
        /// The input's name.
        file: String,
        /// The difference, in words.
        difference: String,
    },
    /// A file that was being read, or is to be read further, is another one now.
    #[error("{file}: {difference}; what was read before is on the tape, what is there now is not read")]
    SourceReplaced {
        /// The file.
        file: String,
        /// The difference, in words.
        difference: String,
    },
    /// A socket.
    #[error("{address}: cannot {operation}: {source}")]
    Socket {
        /// The address of the socket.
        address: String,
        /// The operation that failed.
        operation: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
    /// The engine of market data, or a socket of it.
    #[error(transparent)]
    Marketdata(#[from] unitape_marketdata::Error),
    /// The quarantine's raw log.
    #[error("{}: {source}", path.display())]
    Raw {
        /// Its file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No message was put into quarantine there.
    #[error("no quarantine event has position {position}; see `unitape quarantine list`")]
    NoEntry {
        /// The position that was asked for.
        position: Position,
    },
    /// The contents of a tape contradict each other.
    #[error("tape, position {position}: {reason}")]
    Inconsistent {
        /// The position on the tape.
        position: Position,
        /// The contradiction, in words.
        reason: String,
    },
    /// The tape refused.
    #[error(transparent)]
    Tape(#[from] unitape_tape::Error),
    /// A worker could not be started.
    #[error("cannot start worker {worker}: {source}")]
    Spawn {
        /// Number of the worker.
        worker: usize,
        /// The system's word.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns whose fault the error is. A mapping, a layout or a configuration counts as an outside cause, not as
    /// bad data.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Read { source, .. }
            | Self::Raw { source, .. }
            | Self::Gone { source, .. }
            | Self::MergeState { source, .. } => ErrorCause::from_io(source),
            Self::Reference { .. }
            | Self::Unrecognised { .. }
            | Self::SourceChanged { .. }
            | Self::SourceReplaced { .. }
            | Self::MergeInput { .. }
            | Self::Inconsistent { .. } => ErrorCause::Data,
            Self::ReadOnce { .. } | Self::NoEntry { .. } => ErrorCause::Call,
            Self::Marketdata(error) => error.cause(),
            Self::Tape(error) => error.cause(),
            Self::Layout(error) => error.cause(),
            Self::Mapping { .. } | Self::Config { .. } | Self::Socket { .. } | Self::Spawn { .. } => {
                ErrorCause::Outside
            }
        }
    }
}
