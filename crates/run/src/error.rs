//! The errors of a configuration, a run or the address of a point; each says what was being done and where.

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
    #[error("{origin}: {what}")]
    Origin {
        /// The place of what is wrong.
        origin: ValueOrigin,
        /// The problem, in words.
        what: String,
    },
    /// A value of a configuration cannot be.
    #[error("{origin}: {key}{}{what}", colon(key))]
    Value {
        /// The origin of the value.
        origin: ValueOrigin,
        /// Its key; empty where it is the configuration as a whole.
        key: String,
        /// The problem, in words.
        what: String,
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
    /// Reference data should be strict, and there are none.
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
        /// Whether the causes of all lie in the data.
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
    #[error("picture: {what}")]
    Picture {
        /// The problem, in words.
        what: String,
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
        /// What it holds, in words.
        content: String,
        /// The kind of tape that is needed, and the option that takes this one.
        needed: &'static str,
    },
    /// A tape is not the one that is needed.
    #[error("{}: {what}", path.display())]
    OtherTape {
        /// Its directory.
        path: PathBuf,
        /// The problem, in words.
        what: String,
    },
}

impl Error {
    /// On whose side its cause lies. A configuration's mistake is not the call's, but an option laid over it is.
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
            | Self::Picture { .. } => ErrorCause::Call,
            Self::NotText { .. } | Self::Origin { .. } | Self::Value { .. } | Self::Calendar { .. } => {
                ErrorCause::Outside
            }
            Self::ControlsHeld { .. } | Self::OtherContent { .. } => ErrorCause::Outside,
            Self::Input(source) => source.cause(),
            Self::Tape(source) => source.cause(),
            Self::Book(source) => source.cause(),
            Self::Watch(source) => source.cause(),
            Self::Query(source) => source.cause(),
            Self::Reference { source, .. } | Self::Configured { source, .. } | Self::Run(source) => {
                configured(source.cause())
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
