//! The errors of a link.

use std::net::SocketAddr;
use std::path::PathBuf;
use unitape_model::{ErrorCause, Position};
use unitape_tape::TapeId;

use crate::wire::{Refusal, RefusalReason};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tape cannot be read or written.
    #[error(transparent)]
    Tape(Box<unitape_tape::Error>),
    /// The sender has refused the receiver.
    #[error("the sender at {sender} refuses: {}", refusal.text)]
    Refused {
        /// The address of the sender.
        sender: SocketAddr,
        /// Its reason.
        refusal: Refusal,
    },
    /// A sender offers another tape than the one that it was asked for.
    #[error("the sender at {sender} offers tape {offered}, the directory holds tape {held}")]
    OtherOffer {
        /// The address of the sender.
        sender: SocketAddr,
        /// The tape that it offers.
        offered: TapeId,
        /// The tape of the receiver.
        held: TapeId,
    },
    /// A sender's bytes are no frames.
    #[error("the sender's bytes after position {position} are no frames: {what}")]
    BadFrames {
        /// The end of the receiver's tape.
        position: Position,
        /// The problem, in words.
        what: String,
    },
    /// The raw bytes of quarantine are not those that an event names.
    #[error("damage: {}: {what} (event at position {position})", path.display())]
    RawDamage {
        /// The raw log.
        path: PathBuf,
        /// The event.
        position: Position,
        /// The damage, in words.
        what: String,
    },
    /// A unit is larger than a link carries.
    #[error(
        "the unit after position {position} has more than {limit} bytes, which is the most that a link carries"
    )]
    LargeUnit {
        /// The position before the unit.
        position: Position,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Aeron has refused an operation.
    #[error("Aeron: {doing}: {what}")]
    Aeron {
        /// The operation that failed.
        doing: String,
        /// Aeron's reason.
        what: String,
    },
    /// The system has refused an operation.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns on whose side the cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Tape(source) => source.cause(),
            Self::Refused { refusal, .. } => match refusal.reason {
                RefusalReason::Retained | RefusalReason::Damage => ErrorCause::Data,
                _ => ErrorCause::Outside,
            },
            Self::BadFrames { .. } | Self::RawDamage { .. } => ErrorCause::Data,
            Self::OtherOffer { .. } | Self::LargeUnit { .. } | Self::Aeron { .. } => ErrorCause::Outside,
            Self::Io { source, .. } => ErrorCause::from_io(source),
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Tape(Box::new(error))
    }
}
