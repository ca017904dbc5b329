//! What can go wrong with a configuration, a run or the address of a point; each says what was being done and where.

use crate::layered::Origin;
use std::io;
use std::path::PathBuf;
use unitape_model::ErrorCause;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A configuration is not text.
    #[error("{}: is not text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A configuration, or a value laid over it, cannot be read.
    #[error("{origin}: {what}")]
    Origin {
        /// The place of what is wrong.
        origin: Origin,
        /// What is wrong.
        what: String,
    },
    /// A value of a configuration cannot be.
    #[error("{origin}: {key}{}{what}", colon(key))]
    Value {
        /// Where the value came from.
        origin: Origin,
        /// Its key; empty where it is the configuration as a whole.
        key: String,
        /// What is wrong with it.
        what: String,
    },
    /// Reference data of a configuration cannot be used.
    #[error("{origin}: {key}: {source}")]
    Reference {
        /// Where the value came from.
        origin: Origin,
        /// Its key.
        key: String,
        /// What is wrong with them.
        source: Box<unitape_feed::Error>,
    },
    /// A configuration has no feed of this name.
    #[error("{origin}: no feed `{feed}`; feeds: {feeds}")]
    NoFeed {
        /// The place of the feeds.
        origin: Origin,
        /// The name that was asked for.
        feed: String,
        /// Those that it has.
        feeds: String,
    },
    /// This names no point of a tape.
    #[error(
        "{text}: neither of an ordinal, an @position, a time like `2026-03-02 09:30:00.5` (UTC), or nanoseconds since 1970"
    )]
    Point {
        /// As it was written.
        text: String,
    },
    /// This bounds no part of a tape.
    #[error("`{text}` is neither an ordinal nor an @position")]
    Bound {
        /// As it was written.
        text: String,
    },
}

impl Error {
    /// On whose side its cause lies. A configuration's mistake is not the call's, but an option laid over it is.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::File { source, .. } => ErrorCause::of_io(source),
            Self::Value { origin: Origin::Flag(_), .. }
            | Self::NoFeed { .. }
            | Self::Point { .. }
            | Self::Bound { .. } => ErrorCause::Call,
            Self::NotText { .. } | Self::Origin { .. } | Self::Value { .. } => ErrorCause::Outside,
            Self::Reference { source, .. } => configured(source.cause()),
        }
    }
}

/// The cause where the value came from a configuration, not from the call.
fn configured(cause: ErrorCause) -> ErrorCause {
    match cause {
        ErrorCause::Call => ErrorCause::Outside,
        cause => cause,
    }
}

fn colon(key: &str) -> &'static str {
    if key.is_empty() { "" } else { ": " }
}
