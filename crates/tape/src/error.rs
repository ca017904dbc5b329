//! Errors of the tape, each with its place.

use std::io;
use std::path::{Path, PathBuf};

use unitape_model::{ErrorCause, Position};

/// Error of the tape. Frames committed before it stay readable.
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
    /// No room for the next segment or record.
    #[error("disk full: {doing} {}: {source}; what is committed up to position {committed} stays readable", path.display())]
    DiskFull {
        /// The operation that failed.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// End of the committed frames.
        committed: Position,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is damaged.
    #[error("damage: {} at offset {offset}: {reason}", path.display())]
    Damage {
        /// The damaged file.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// The damage, in words.
        reason: String,
    },
    /// The directory holds something that is not a tape.
    #[error("not a tape: {}: {reason}", path.display())]
    NotATape {
        /// The directory.
        path: PathBuf,
        /// Why it is not accepted as one.
        reason: &'static str,
    },
    /// The tape was written in a format that this build does not know.
    #[error("foreign version: {} is format {version}, this build knows {supported_version}", path.display())]
    ForeignVersion {
        /// The file that says so.
        path: PathBuf,
        /// The version in the file.
        version: u64,
        /// Ours.
        supported_version: u64,
    },
    /// The directory holds another tape than the requested one, or the file belongs to another tape.
    #[error("foreign tape: {} is of tape {tape_id}, not {expected_id}", path.display())]
    ForeignTape {
        /// The directory or file.
        path: PathBuf,
        /// The identity of the tape to which it belongs.
        tape_id: crate::TapeId,
        /// The identity of the requested tape.
        expected_id: crate::TapeId,
    },
    /// Someone else has the tape open in the same role.
    #[error("locked: {} is held by process {holder}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Process id of the holder if the lock file contains it, otherwise 0.
        holder: u64,
    },
    /// The hot segments that the tape names belong to a tape at another place, which is not there any more.
    #[error("hot elsewhere: {}: {notice}", path.display())]
    HotElsewhere {
        /// The tape.
        path: PathBuf,
        /// Where they are, and whose.
        notice: Box<crate::HotNotice>,
    },
    /// A hot directory that this process must not use.
    #[error("unsafe hot directory: {} {reason}", path.display())]
    UnsafeHot {
        /// The directory.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The writer belongs to the process that opened it, and this one was forked from it.
    #[error(
        "forked: process {opened_by} opened the writer, and this is a child of it; open a tape in the process that writes it"
    )]
    Forked {
        /// The process that opened the writer.
        opened_by: u32,
    },
    /// An option cannot be used.
    #[error("option: {0}")]
    Option(&'static str),
    /// The caller's bytes are not a run of whole unstamped frames.
    #[error("bad unit: frame at byte {offset}: {reason}")]
    BadUnit {
        /// Byte offset in the unit.
        offset: u64,
        /// The problem, in words.
        reason: &'static str,
    },
    /// A claim was given up before it was published; nothing after it can be reached.
    #[error("claim abandoned: the claim at position {0} was never published; open the writer again")]
    ClaimAbandoned(Position),
    /// Claims are still out.
    #[error("claims outstanding: {0}")]
    ClaimsOutstanding(u64),
    /// The recorder is too far behind: the window of hot segments is full.
    #[error("recorder behind: recorded up to {recorded}, the window is full at {wanted}")]
    RecorderBehind {
        /// Recorded up to here.
        recorded: Position,
        /// Segment that was wanted starts here.
        wanted: Position,
    },
    /// A position did not become durable within the timeout.
    #[error("not durable: position {wanted} was waited for, durable is up to {durable}{}", if *asked { "" } else { UNASKED })]
    NotDurable {
        /// Position waited for.
        wanted: Position,
        /// Durable up to here.
        durable: Position,
        /// An earlier flush was requested. A process that may only read the tape cannot request one.
        asked: bool,
    },
    /// A flush has failed; no more is durable than before.
    #[error("durability failed: flush {}: {source}; durable is up to position {durable}, {consequence}", path.display())]
    DurabilityFailed {
        /// The file whose flush failed.
        path: PathBuf,
        /// Durable up to here.
        durable: Position,
        /// The system's reason.
        source: io::Error,
        /// The consequence for the tape, and the remedy.
        consequence: &'static str,
    },
    /// No process runs that could make anything durable.
    #[error("no recorder: nobody records the tape {}, durable is up to position {durable}; start its recorder or its writer", path.display())]
    NoRecorder {
        /// The tape.
        path: PathBuf,
        /// Durable up to here.
        durable: Position,
    },
    /// A position that the tape does not reach yet.
    #[error("beyond the end: position {position} was asked for, the tape ends at {end}")]
    BeyondEnd {
        /// The requested position.
        position: Position,
        /// The tape's end.
        end: Position,
    },
    /// The position was dropped by retention.
    ///
    /// A reader continues with [`crate::Reader::skip_to_oldest`], which returns what was lost.
    #[error(
        "retained away: position {position} is gone, the oldest on the tape is {oldest}; read on from there"
    )]
    Retained {
        /// The requested position.
        position: Position,
        /// Oldest position there is.
        oldest: Position,
    },
    /// Retention has removed the event with this ordinal.
    #[error(
        "retained away: event {ordinal} is gone, the oldest on the tape is event {oldest_ordinal} after position {oldest}; read \
         on from there"
    )]
    RetainedEvent {
        /// The requested ordinal.
        ordinal: u64,
        /// Events before the oldest position.
        oldest_ordinal: u64,
        /// Oldest position there is.
        oldest: Position,
    },
    /// The tape was cut back, by a power loss or at damage, before the place that the reader had come to.
    ///
    /// The reader has gone back and continues at `to`: it loses nothing that the tape has. Drop what it gave of a unit
    /// whose last frame has not come.
    #[error(
        "rewound: the tape was cut back to position {to} and the reader was at {from}; read on, what follows {to} is new"
    )]
    Rewound {
        /// Where the reader was.
        from: Position,
        /// Where it continues.
        to: Position,
    },
    /// Another writer has opened the tape since; this one must not write to it any more.
    #[error(
        "fenced: {} was opened by a writer of epoch {newest}, this one has epoch {epoch}; close it and append nothing more", path.display()
    )]
    Fenced {
        /// The tape.
        path: PathBuf,
        /// Epoch of the writer that met this.
        epoch: u64,
        /// Epoch of the later one.
        newest: u64,
    },
    /// The writer's epoch would be less than the least that [`crate::WriterOptions::epoch_min`] accepts.
    #[error(
        "old epoch: a writer of {} would have epoch {epoch}, at least {least} is asked for; this is an older copy of the tape", path.display()
    )]
    OldEpoch {
        /// The tape.
        path: PathBuf,
        /// The epoch that the writer would have.
        epoch: u64,
        /// The least epoch that the caller accepts.
        least: u64,
    },
    /// The directory has had a writer of the epoch that [`crate::Writer::open_at`] asks for, or of a later one.
    #[error(
        "epoch taken: {} has had a writer of epoch {newest}, and epoch {epoch} is asked for; ask for a greater one", path.display()
    )]
    EpochTaken {
        /// The tape.
        path: PathBuf,
        /// The requested epoch.
        epoch: u64,
        /// The greatest known epoch.
        newest: u64,
    },
    /// The tape exists, but begins at another position than the requested one.
    #[error("other origin: {0}")]
    OtherOrigin(Box<OriginMismatch>),
    /// A tape was to begin at an origin, and the process that made it died.
    #[error(
        "unfinished: the tape in {} was to begin at position {position} with ordinal {ordinal} and epoch {epoch}, and the          process that made it died; open it at that origin again, or remove the directory", path.display()
    )]
    Unfinished {
        /// The directory.
        path: PathBuf,
        /// Where the tape was to begin.
        position: Position,
        /// Events before that.
        ordinal: u64,
        /// The epoch of its writer.
        epoch: u64,
    },
    /// A definition of an origin is invalid, or does not follow the one before it.
    #[error("bad definition: definition {index} of the origin (position {position}): {reason}")]
    BadDefinition {
        /// Which one, from 0.
        index: usize,
        /// The position that it is to have.
        position: Position,
        /// The problem, in words.
        reason: String,
    },
    /// Retention could not remove the data that exceed its limits.
    #[error("not removed: {}: {reason}; nothing was removed", path.display())]
    NotRemoved {
        /// The tape.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The clock is behind the newest time on the tape.
    #[error("clock: {} was finished {ahead_s} s from now; set the clock, or retain by bytes", path.display())]
    Clock {
        /// The file that says so.
        path: PathBuf,
        /// The difference in seconds.
        ahead_s: i64,
    },
    /// A reader that the writer waits for has not come far enough in time; nothing was appended.
    #[error("gated: reader {reader} ({}) has dealt with the tape up to position {position} only; nothing was appended", if *.alive { "alive" } else { "not there" })]
    Gated {
        /// The reader's name.
        reader: String,
        /// The reader has processed everything before this.
        position: Position,
        /// Whether it is there.
        alive: bool,
    },
    /// A reader is too far behind, and the gate says to drop; the unit was not appended, for nobody.
    #[error(
        "dropped: reader {reader} is too far behind; the unit at position {position} was not appended, {dropped} so far"
    )]
    Dropped {
        /// The reader's name.
        reader: String,
        /// Where the unit would have stood.
        position: Position,
        /// How many were dropped at this gate, this one included.
        dropped: u64,
    },
    /// The tape has no gate of that name.
    #[error("no gate: {} is not there; the tape's writer makes it when it is opened with a gate of that name", path.display())]
    NoGate {
        /// The file that would be the gate.
        path: PathBuf,
    },
    /// No committed frame starts at the position.
    #[error("no frame: nothing committed starts at position {0}")]
    NoFrame(Position),
}

/// Two origins of one tape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} begins at position {position} with ordinal {ordinal}, not at {wanted_position} with {wanted_ordinal}; open it at \
     its own origin, or name another directory", tape_dir.display()
)]
pub struct OriginMismatch {
    /// The tape's directory.
    pub tape_dir: PathBuf,
    /// Where it begins, or began before retention removed segments.
    pub position: Position,
    /// Events before that.
    pub ordinal: u64,
    /// Where it was to begin.
    pub wanted_position: Position,
    /// Events before that.
    pub wanted_ordinal: u64,
}

/// Why nothing was asked for.
const UNASKED: &str = "; this user may only read the tape and cannot ask for an earlier flush";

/// Result with the tape's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns where the cause lies: in the data, in the call or outside unitape.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Io { source, .. } => ErrorCause::from_io(source),
            // The data of the tape are elsewhere, gone, or not the same as before.
            Self::Damage { .. }
            | Self::HotElsewhere { .. }
            | Self::Retained { .. }
            | Self::RetainedEvent { .. }
            | Self::Rewound { .. } => ErrorCause::Data,
            Self::Option(_) | Self::BadDefinition { .. } => ErrorCause::Call,
            Self::DiskFull { .. }
            | Self::NotATape { .. }
            | Self::ForeignVersion { .. }
            | Self::ForeignTape { .. }
            | Self::Locked { .. }
            | Self::UnsafeHot { .. }
            | Self::Forked { .. }
            | Self::Fenced { .. }
            | Self::OldEpoch { .. }
            | Self::EpochTaken { .. }
            | Self::OtherOrigin(_)
            | Self::Unfinished { .. }
            | Self::BadUnit { .. }
            | Self::ClaimAbandoned(_)
            | Self::ClaimsOutstanding(_)
            | Self::RecorderBehind { .. }
            | Self::NotDurable { .. }
            | Self::DurabilityFailed { .. }
            | Self::NoRecorder { .. }
            | Self::BeyondEnd { .. }
            | Self::NotRemoved { .. }
            | Self::Clock { .. }
            | Self::Gated { .. }
            | Self::Dropped { .. }
            | Self::NoGate { .. }
            | Self::NoFrame(_) => ErrorCause::Outside,
        }
    }

    /// Returns whether the cause is a lack of disk space.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    /// Copies the error if it says that another writer has the tape.
    pub(crate) fn clone_fenced(&self) -> Option<Self> {
        match self {
            Self::Fenced { path, epoch, newest } => {
                Some(Self::Fenced { path: path.clone(), epoch: *epoch, newest: *newest })
            }
            _ => None,
        }
    }

    pub(crate) fn damage(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damage { path: path.into(), offset, reason: reason.into() }
    }
}

/// Adds the action and the file to an error of the system.
pub(crate) trait FileContext<T> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> FileContext<T> for std::result::Result<T, E> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|e| {
            let source = e.into();
            let path = path.into();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => {
                    Error::DiskFull { doing, path, committed: Position(0), source }
                }
                _ => Error::Io { doing, path, source },
            }
        })
    }
}

/// Returns whether the system is out of descriptors or memory. Such an error says nothing about the file: the caller
/// must not take the file for missing or damaged. The next try fails as well.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

impl Error {
    /// Returns whether the cause is one that [`is_shortage`] names.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_shortage(source))
    }
}

/// Turns every error but a shortage into `None`, for a file that the reader can do without.
pub(crate) fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_shortage() => Err(e),
        Err(_) => Ok(None),
    }
}

/// Fills in how far the tape is committed, which the place of the error does not know.
pub(crate) fn with_committed_end<T>(result: Result<T>, end: Position) -> Result<T> {
    result.map_err(|e| match e {
        Error::DiskFull { doing, path, source, .. } => {
            Error::DiskFull { doing, path, committed: end, source }
        }
        other => other,
    })
}
