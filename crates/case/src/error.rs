//! The errors of cases, each with its place.

use crate::model::{ActionKind, CaseState, allowed_actions};
use std::io;
use std::path::{Path, PathBuf};
use unitape_model::ErrorCause;

/// An error of cases.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There are no cases in the directory.
    #[error("{}: there are no cases here; `unitape case ingest` makes them", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Others may read or write the cases.
    #[error("{}: others may read or write it (mode {mode:04o}); run: chmod {required_mode:o} {}", path.display(), path.display())]
    Open {
        /// The directory or file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The permissions that it must have.
        required_mode: u32,
    },
    /// The file is no database of cases.
    #[error(
        "{}: the database of cases is damaged, or is none: {reason}; restore a copy of it, or name another directory",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The problem, in words.
        reason: String,
    },
    /// The database has a format that this build does not know.
    #[error("{}: the cases have format {version}, and this build knows {supported_version}; use a newer build", path.display())]
    ForeignVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: i64,
        /// Ours.
        supported_version: i64,
    },
    /// The database is damaged.
    #[error(
        "{}: the database of cases is damaged: {reason}; keep a copy, then `unitape case audit verify` says what is left",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem, in words.
        reason: String,
    },
    /// Another process has held the database for too long.
    #[error("{}: another process has been writing the cases for {seconds} s; try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// The time that was waited.
        seconds: u64,
    },
    /// The disk has no room.
    #[error("{}: the disk is full; nothing of this step was stored", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file system does not support what the database needs.
    #[error("{}: the database stays in journal mode `{mode}`: the file system has no shared memory; use another one", path.display())]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// The mode that it has.
        mode: String,
    },
    /// The database refused an operation for another reason.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The database's reason.
        source: rusqlite::Error,
    },
    /// There is no such case.
    #[error("there is no case {0}")]
    UnknownCase(u64),
    /// The state of the case does not allow the action.
    #[error(
        "case {case} is {state}: `{}` is not possible; possible: {}", action.command(), allowed_words(*state)
    )]
    NotAllowed {
        /// The case.
        case: u64,
        /// Its state.
        state: CaseState,
        /// The action that was asked for.
        action: ActionKind,
    },
    /// The actor may not do this.
    #[error("case {case}: {reason}")]
    Forbidden {
        /// The case.
        case: u64,
        /// The rule, in words.
        reason: String,
    },
    /// A value of an action cannot be.
    #[error("{0}")]
    Value(String),
    /// An alert tape cannot be ingested.
    #[error("{}: {reason}", path.display())]
    Ingest {
        /// The directory of the tape.
        path: PathBuf,
        /// The problem, in words.
        reason: String,
    },
    /// Another process ingests the same alert tape.
    #[error("{}: another process is ingesting this alert tape; try again when it has ended", path.display())]
    Ingesting {
        /// The directory of the tape.
        path: PathBuf,
    },
    /// A tape cannot be read.
    #[error(transparent)]
    Run(#[from] unitape_run::Error),
}

impl Error {
    /// Returns on whose side its cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Io { source, .. } => ErrorCause::from_io(source),
            Self::Missing { .. }
            | Self::Open { .. }
            | Self::ForeignVersion { .. }
            | Self::Busy { .. }
            | Self::Ingesting { .. }
            | Self::Full { .. }
            | Self::JournalMode { .. }
            | Self::Database { .. }
            | Self::Forbidden { .. } => ErrorCause::Outside,
            Self::Foreign { .. } | Self::Damaged { .. } | Self::Ingest { .. } => ErrorCause::Data,
            Self::UnknownCase(_) | Self::NotAllowed { .. } | Self::Value(_) => ErrorCause::Call,
            Self::Run(source) => source.cause(),
        }
    }

    /// Returns the error of what the database refused.
    pub(crate) fn from_database(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::{Error as Sql, ErrorCode};
        let path = path.to_owned();
        // A row, a table or a word that every database of ours has.
        if let Sql::QueryReturnedNoRows | Sql::FromSqlConversionFailure(..) | Sql::InvalidColumnType(..) =
            source
        {
            return Self::Damaged { path, reason: source.to_string() };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
                Self::Damaged { path, reason: source.to_string() }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, seconds: crate::store::BUSY.as_secs() }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path },
            _ => Self::Database { path, source },
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Run(error.into())
    }
}

fn allowed_words(state: CaseState) -> String {
    let mut words: Vec<&str> = allowed_actions(state).map(ActionKind::command).collect();
    words.dedup();
    words.join(", ")
}
