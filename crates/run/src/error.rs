//! The errors of a configuration, a run or the address of a point. Each names the action and the place.

use crate::layered::ValueOrigin;
use std::io;
use std::path::PathBuf;
use unitape_model::{CalendarError, ErrorCause};

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
    #[error("{origin}: {reason}")]
    Origin {
        /// The origin of the wrong value.
        origin: ValueOrigin,
        /// The problem, in words.
        reason: String,
    },
    /// A value of a configuration cannot be.
    #[error("{origin}: {key}{}{reason}", colon(key))]
    Value {
        /// The origin of the value.
        origin: ValueOrigin,
        /// Its key, or an empty text for the configuration as a whole.
        key: String,
        /// The problem, in words.
        reason: String,
    },
    /// Reference data of a configuration cannot be used.
    #[error("{origin}: {key}: {source}")]
    Reference {
        /// The origin of the value.
        origin: ValueOrigin,
        /// Its key.
        key: String,
        /// The error in them.
        source: Box<unitape_feed::Error>,
    },
    /// The calendar of a configuration has a mistake.
    #[error("{origin}: {key}: {}:{}: {}", path.display(), source.line, source.fault)]
    Calendar {
        /// The origin of the value.
        origin: ValueOrigin,
        /// Its key.
        key: String,
        /// The calendar.
        path: PathBuf,
        /// The mistake.
        source: Box<CalendarError>,
    },
    /// A configuration has no feed of this name.
    #[error("{origin}: no feed `{feed}`; feeds: {feeds}")]
    NoFeed {
        /// The place of the feeds.
        origin: ValueOrigin,
        /// The name that was asked for.
        feed: String,
        /// The feeds that it has.
        feeds: String,
    },
    /// A configuration of inputs names a format, a mapping or reference data that cannot be used.
    #[error("{}: {source}", path.display())]
    Configured {
        /// The configuration.
        path: PathBuf,
        /// The error.
        source: Box<unitape_feed::Error>,
    },
    /// An option for inputs cannot be.
    #[error(transparent)]
    Option(Box<unitape_feed::Error>),
    /// An input cannot be used.
    #[error(transparent)]
    Input(Box<unitape_feed::Error>),
    /// Standard input is to be sealed.
    #[error(
        "stdin cannot be sealed, because nothing tells whether it was sealed before: write it into a file, or onto a tape with `unitape consolidate`"
    )]
    SealedStdin,
    /// Files of a store are being sealed by somebody else.
    #[error("locked: {} is held by another seal", path.display())]
    SealLocked {
        /// The lock.
        path: PathBuf,
    },
    /// Sealing files was stopped.
    #[error("stopped; the files before this one are sealed, and the same command seals the others")]
    SealStopped,
    /// A store cannot be changed.
    #[error(transparent)]
    Store(#[from] unitape_store::Error),
    /// Two options give a feed two formats.
    #[error("--feed {option}: the feed has another format already")]
    OtherFormat {
        /// The later one.
        option: String,
    },
    /// Standard input is named as a file.
    #[error("stdin has no content to recognise it by; say --feed name=format:mapping:-")]
    BareStdin,
    /// No input is named.
    #[error("nothing to consolidate: name a file, a CONFIG.toml or a --feed")]
    NoInput,
    /// Reference data should be strict, but there is no reference data.
    #[error("--reference-strict goes with --reference FILE:MAPPING, or [[reference]] of CONFIG.toml")]
    NoReference,
    /// The process of a segment cannot be started.
    #[error("{source}")]
    Process {
        /// The system's word.
        source: io::Error,
    },
    /// A run has failed as a whole.
    #[error(transparent)]
    Run(Box<unitape_feed::Error>),
    /// Feeds of a run ended before their end or have failed.
    #[error("a feed ended before its end or has failed; the same command resumes from here")]
    FeedsFailed {
        /// Whether all causes lie in the data.
        in_data: bool,
    },
    /// A tape cannot be read.
    #[error(transparent)]
    Tape(Box<unitape_tape::Error>),
    /// A frame of a tape cannot be applied to books.
    #[error(transparent)]
    Book(#[from] unitape_book::Error),
    /// An address of a tape or a selection cannot be used, or the tape cannot be read.
    #[error(transparent)]
    Query(#[from] unitape_query::Error),
    /// Scenarios, their parameters or their input cannot be used.
    #[error(transparent)]
    Watch(#[from] unitape_watch::Error),
    /// A picture cannot be made of these options.
    #[error("picture: {reason}")]
    Picture {
        /// The problem, in words.
        reason: String,
    },
    /// Another process writes a control tape.
    #[error(
        "{}: process {holder} writes this control tape, a breaker that runs or somebody who trips or resets; end it first",
        path.display()
    )]
    ControlsHeld {
        /// Its directory.
        path: PathBuf,
        /// The process.
        holder: u64,
    },
    /// A tape holds something else than the command needs.
    #[error("{}: this is {content}, and {needed}", path.display())]
    OtherContent {
        /// Its directory.
        path: PathBuf,
        /// A description of its content.
        content: String,
        /// The kind of tape that is needed, and the option that takes this one.
        needed: &'static str,
    },
    /// A tape is not the required tape.
    #[error("{}: {reason}", path.display())]
    OtherTape {
        /// Its directory.
        path: PathBuf,
        /// The problem, in words.
        reason: String,
    },
}

impl Error {
    /// Returns whether the data, the call or something outside caused the error. A mistake in the configuration is
    /// outside; a wrong option that overrides it is the call's.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::File { source, .. } | Self::Process { source } => ErrorCause::from_io(source),
            Self::Value { origin: ValueOrigin::Flag(_), .. }
            | Self::NoFeed { .. }
            | Self::Option(_)
            | Self::OtherFormat { .. }
            | Self::BareStdin
            | Self::NoInput
            | Self::NoReference
            | Self::SealedStdin
            | Self::Picture { .. } => ErrorCause::Call,
            Self::NotText { .. } | Self::Origin { .. } | Self::Value { .. } | Self::Calendar { .. } => {
                ErrorCause::Outside
            }
            Self::ControlsHeld { .. } | Self::OtherContent { .. } => ErrorCause::Outside,
            Self::SealLocked { .. } | Self::SealStopped => ErrorCause::Outside,
            Self::Store(source) => source.cause(),
            Self::Input(source) => source.cause(),
            Self::Tape(source) => source.cause(),
            Self::Book(source) => source.cause(),
            Self::Watch(source) => source.cause(),
            Self::Query(source) => source.cause(),
            Self::Reference { source, .. } | Self::Configured { source, .. } | Self::Run(source) => {
                outside_cause(source.cause())
            }
            Self::OtherTape { .. } | Self::FeedsFailed { in_data: true } => ErrorCause::Data,
            Self::FeedsFailed { in_data: false } => ErrorCause::Outside,
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Tape(Box::new(error))
    }
}

/// Turns a cause in the call into a cause outside, because the value came from a configuration.
fn outside_cause(cause: ErrorCause) -> ErrorCause {
    match cause {
        ErrorCause::Call => ErrorCause::Outside,
        cause => cause,
    }
}

fn colon(key: &str) -> &'static str {
    if key.is_empty() { "" } else { ": " }
}
