//! Errors around a handler. Bad packets are no errors: they are counted and reported.

use std::path::PathBuf;
use unitape_model::ErrorCause;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A mapping cannot be used.
    #[error("mapping {origin}: {reason}")]
    Mapping {
        /// File name, or `built in`, with the line.
        origin: String,
        /// The problem, in words.
        reason: String,
    },
    /// A socket cannot be opened.
    #[error("{address}: cannot {operation}: {source}")]
    Socket {
        /// The address of the socket.
        address: String,
        /// The operation that failed.
        operation: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file cannot be read.
    #[error("{}: at byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The offset, in bytes from its start.
        offset: u64,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file is neither a capture nor of the format that the caller named.
    #[error("{}: at byte {offset}: {reason}", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// The offset, in bytes from its start.
        offset: u64,
        /// The problem, in words.
        reason: &'static str,
    },
    /// A channel is given for a capture, whose packets have addresses of their own.
    #[error("{}: a capture, which says itself where packets were sent: say no channel", path.display())]
    ChannelOfCapture {
        /// The file.
        path: PathBuf,
    },
    /// Waiting for packets failed.
    #[error("{operation}: {source}")]
    Receive {
        /// The socket, or the operation on all sockets.
        operation: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// Packets are requested, but no socket is open.
    #[error("nothing is listened to: call `listen` first")]
    NotLive,
    /// The configuration has no channel of this name.
    #[error("no channel `{0}` in the configuration")]
    Channel(String),
}

impl Error {
    /// Returns where the cause lies: in the data, in the call or outside unitape.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Read { source, .. } | Self::Receive { source, .. } => ErrorCause::from_io(source),
            Self::Container { .. } => ErrorCause::Data,
            Self::Channel(_) | Self::ChannelOfCapture { .. } => ErrorCause::Call,
            Self::NotLive | Self::Mapping { .. } | Self::Socket { .. } => ErrorCause::Outside,
        }
    }
}
