//! What can go wrong around a handler; bad packets are no errors, they are counted and told.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(unitape_feed::Error),
    /// A socket cannot be opened.
    #[error(transparent)]
    Socket(unitape_feed::Error),
    /// A file cannot be read.
    #[error("{}: at byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from its start.
        offset: u64,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file is neither a capture nor what it was said to be.
    #[error("{}: at byte {offset}: {what}", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from its start.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Waiting for packets failed.
    #[error("{what}: {source}")]
    Receive {
        /// Which socket, or what was done with all.
        what: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// Packets are asked for, and nothing is listened to.
    #[error("nothing is listened to: call `listen` first")]
    NotLive,
    /// A channel that there is not.
    #[error("no channel `{0}` in the configuration")]
    Channel(String),
}
