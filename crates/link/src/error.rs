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
    #[error("the sender at {sender} offers tape {offered}, the directory holds tape {held_tape}")]
    OtherOffer {
        /// The address of the sender.
        sender: SocketAddr,
        /// The tape that it offers.
        offered: TapeId,
        /// The tape of the receiver.
        held_tape: TapeId,
    },
    /// A sender's bytes are no frames.
    #[error("the sender's bytes after position {position} are no frames: {reason}")]
    BadFrames {
        /// The end of the receiver's tape.
        position: Position,
        /// The problem, in words.
        reason: String,
    },
    /// The raw bytes of quarantine are not those that an event names.
    #[error("damage: {}: {reason} (event at position {position})", path.display())]
    RawDamage {
        /// The raw log.
        path: PathBuf,
        /// The event.
        position: Position,
        /// The damage, in words.
        reason: String,
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
    #[error("Aeron: {doing}: {reason}")]
    Aeron {
        /// The operation that failed.
        doing: String,
        /// Aeron's reason.
        reason: String,
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

/// Returns the system's reason in a text of Aeron, which is the line `(98) Address already in use` among the places in Aeron's code;
/// otherwise the whole text in one line.
#[cfg(any(test, feature = "aeron"))]
pub(crate) fn aeron_reason(text: &str) -> String {
    let code_and_words = |line: &str| {
        let (code, words) = line.trim().strip_prefix('(')?.split_once(") ")?;
        code.parse::<i32>().ok().map(|code| format!("{words} (error {code})"))
    };
    let lines = || text.lines().flat_map(|line| line.split("\\n"));
    let reason = lines().find_map(code_and_words);
    reason.unwrap_or_else(|| {
        lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Aeron says where in its code it failed, in seven lines; a person needs one of them.
    #[test]
    fn the_reason_of_the_system_is_found() {
        let text = "generic error, see message\n[f, a.c:3807] registration error\n(98) Address already in use\n[g, b.c:93] failed";
        assert_eq!(aeron_reason(text), "Address already in use (error 98)");
        assert_eq!(aeron_reason("no\nnumber\n"), "no; number");
    }
}
