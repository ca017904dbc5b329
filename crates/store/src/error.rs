//! Errors of the store, each with its place.

use std::io;
use std::path::{Path, PathBuf};

use unitape_model::{ErrorCause, Position};
use unitape_tape::TapeId;

use crate::day::Day;
use crate::keys::PublicKey;
use crate::schema::TickSchema;

/// Error of the store. Days sealed before it stay readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("io: {doing} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is damaged.
    #[error("damage: {}: {}", path.display(), damage_text(*block, *offset, reason))]
    Damage {
        /// The damaged file.
        path: PathBuf,
        /// The number of the damaged block in the file, from 0, if a block is damaged.
        block: Option<u32>,
        /// Byte offset in the file.
        offset: u64,
        /// The damage, in words.
        reason: String,
    },
    /// The directory holds something that is not a store.
    #[error("not a store: {}: {reason}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// Why it is not accepted as one.
        reason: &'static str,
    },
    /// The store was written in a format that this build does not know.
    #[error("foreign version: {} is format {version}, this build knows {supported_version}{}", path.display(), version_advice(*version))]
    ForeignVersion {
        /// The file with the foreign version.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// Ours.
        supported_version: u64,
    },
    /// The store was written in format 1 before the format was complete, which no release has done.
    #[error(
        "earlier build: {} was written before format 1 was complete, which this build cannot read: seal its tapes again, into a new directory",
        path.display()
    )]
    EarlierBuild {
        /// The store's manifest.
        path: PathBuf,
    },
    /// The store is signed with another key than the given key.
    #[error("wrong key: {} is signed with the key {signer}: it is another store, or somebody else has signed it", path.display())]
    WrongSigner {
        /// The store's manifest.
        path: PathBuf,
        /// The public half of the key that it names.
        signer: PublicKey,
    },
    /// A file that should hold remembered generations holds something else.
    #[error("not a file of generations: {}: {reason}; name another file, or remove this one", path.display())]
    NotAMemory {
        /// The file.
        path: PathBuf,
        /// Why it is not accepted as one.
        reason: &'static str,
    },
    /// The key does not belong to the store.
    #[error("wrong key: {} was sealed with another key; give its own with --key FILE", path.display())]
    WrongKey {
        /// The store's manifest.
        path: PathBuf,
    },
    /// A file that should hold a key holds something else.
    #[error("not a key: {} does not hold 64 hexadecimal digits", .0.display())]
    NotAKey(PathBuf),
    /// The key of a day is not in the manifest, or does not open.
    #[error("no key: the manifest has no key that opens the day {0}")]
    NoDayKey(Day),
    /// The system has no random bytes.
    #[error("no random bytes: the system has none to give, and nothing is sealed without")]
    NoRandomness,
    /// The days of the store follow another calendar, or none.
    #[error("other calendar: the days of {} follow {}; a store keeps the calendar of its first seal", path.display(), if *has_calendar { "another calendar" } else { "no calendar, but UTC dates" })]
    OtherCalendar {
        /// The store's manifest.
        path: PathBuf,
        /// Whether the store has a calendar.
        has_calendar: bool,
    },
    /// A block does not give its frames back. This is a fault of unitape; nothing was sealed.
    #[error(
        "fault: a block of {schema} of {day} does not give back the rows that went into it (row {row}); nothing was sealed. Please report it, with the tape if you can"
    )]
    BlockDiffers {
        /// The day of the block.
        day: Day,
        /// Its schema.
        schema: TickSchema,
        /// Its first row that differs, from 0.
        row: u64,
    },
    /// A generation that the store does not have yet.
    #[error("no such generation: {generation} was asked for, the newest one is {newest}")]
    FutureGeneration {
        /// The generation that was asked for.
        generation: u64,
        /// The newest one.
        newest: u64,
    },
    /// Somebody else is sealing into the store, or compacts it.
    #[error("locked: {} is held by another seal or compaction", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A change counts, but the disk has not confirmed it.
    #[error(
        "io: {} has the change, but the disk has not confirmed it ({source}); a power cut could still undo it",
        path.display()
    )]
    Unconfirmed {
        /// The manifest.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A change counts, but a file that no longer belongs to the store could not be removed.
    #[error(
        "io: the store has the change, but {} could not be removed ({source}); the next command that changes the store tries again",
        path.display()
    )]
    NotRemoved {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The tape cannot be read.
    #[error(transparent)]
    Tape(#[from] unitape_tape::Error),
    /// Checksums of the tape are missing, and nothing is sealed unchecked.
    #[error(
        "unchecked: {}: {reason}; nothing from position {from} on can be sealed before it is back", path.display()
    )]
    Unchecked {
        /// The file that should have them.
        path: PathBuf,
        /// Where the first bytes are that cannot be checked.
        from: Position,
        /// The problem with the file.
        reason: String,
    },
    /// The tape is not the tape that was sealed before, though it has the same id: it ends earlier or has other
    /// content.
    #[error("other tape: {tape} was sealed to position {sealed}, but {difference}")]
    OtherTape {
        /// The tape.
        tape: TapeId,
        /// Sealed so far.
        sealed: Position,
        /// The difference.
        difference: &'static str,
    },
    /// More names than a store can hold.
    #[error("dictionary full: no more tokens for names of sort {0}")]
    DictionaryFull(&'static str),
    /// A name that no sealed event has.
    #[error("unknown {kind}: nothing in the store is called `{name}`")]
    UnknownName {
        /// The kind of name that was looked for.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An option cannot be used.
    #[error("option: {0}")]
    Option(&'static str),
    /// The blocks of a server ended before all of them were there.
    #[error("the answer broke off: {0}; what was read before is not all of it")]
    Answer(#[source] io::Error),
    /// An answer has too many blocks.
    #[error("the answer would have more than {blocks_max} blocks: ask for fewer days or instruments at once")]
    AnswerTooLarge {
        /// The most that one answer has.
        blocks_max: usize,
    },
    /// The private part of an answer cannot come from a store.
    #[error("the answer of the server is none: its index has something in it that no store has")]
    AnswerIndex,
    /// Sealing was stopped; the store is as it was before.
    #[error("stopped; the same command goes on from there")]
    Stopped,
    /// Checking was stopped.
    #[error("stopped; not all of the store was checked")]
    VerifyStopped,
}

/// Result with the store's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns whether the data, the call or something outside caused the error.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Answer(_) => ErrorCause::Outside,
            Self::Io { source, .. } | Self::Unconfirmed { source, .. } | Self::NotRemoved { source, .. } => {
                ErrorCause::from_io(source)
            }
            Self::Damage { .. } | Self::Unchecked { .. } | Self::OtherTape { .. } | Self::NoDayKey(_) => {
                ErrorCause::Data
            }
            Self::Option(_)
            | Self::UnknownName { .. }
            | Self::AnswerTooLarge { .. }
            | Self::OtherCalendar { .. }
            | Self::FutureGeneration { .. } => ErrorCause::Call,
            Self::Tape(error) => error.cause(),
            Self::NotAStore { .. }
            | Self::ForeignVersion { .. }
            | Self::EarlierBuild { .. }
            | Self::WrongSigner { .. }
            | Self::NotAMemory { .. }
            | Self::WrongKey { .. }
            | Self::NotAKey(_)
            | Self::NoRandomness
            | Self::Locked { .. }
            | Self::BlockDiffers { .. }
            | Self::DictionaryFull(_)
            | Self::AnswerIndex
            | Self::Stopped
            | Self::VerifyStopped => ErrorCause::Outside,
        }
    }

    /// Returns whether the system refused an operation, which is no evidence about the store. A missing file is damage
    /// of the store.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                source.kind() != io::ErrorKind::NotFound && self.cause() == ErrorCause::Outside
            }
            _ => false,
        }
    }

    pub(crate) fn damage(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damage { path: path.into(), block: None, offset, reason: reason.into() }
    }

    pub(crate) fn block_damage(path: &Path, block: u32, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damage { path: path.into(), block: Some(block), offset, reason: reason.into() }
    }
}

/// Returns advice for the owner of a store of version 0, which was not final.
fn version_advice(version: u64) -> &'static str {
    if version == 0 {
        ", which cannot read version 0: seal its tapes again, into a new directory"
    } else {
        ""
    }
}

fn damage_text(block: Option<u32>, offset: u64, reason: &str) -> String {
    match block {
        Some(block) => format!("block {block} at offset {offset}: {reason}"),
        None => format!("at offset {offset}: {reason}"),
    }
}

/// Adds the action and the file to an error of the system.
pub(crate) trait IoContext<T> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { doing, path: path.into(), source })
    }
}
