//! The errors, and where they are.

use unitape_base::toml::suggest_word;
use unitape_codec::events::LineFault;
use unitape_model::{ErrorCause, Position};

/// Why a watch could not be set up or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No scenario of this name.
    #[error("no scenario is called `{name}`{}; see: unitape watch scenarios", suggest_word(name, scenarios.split(", ")))]
    UnknownScenario {
        /// The requested name.
        name: String,
        /// The names of all scenarios.
        scenarios: String,
    },
    /// No parameter of this name.
    #[error(
        "scenario {scenario} has no parameter `{name}`{}; it has: {params}",
        suggest_word(name, params.split(", "))
    )]
    UnknownParam {
        /// The scenario.
        scenario: &'static str,
        /// The given name.
        name: String,
        /// The parameters that it has.
        params: String,
    },
    /// A parameter of the wrong type.
    #[error("parameter {scenario}.{name}: {expected} is needed, not {got}")]
    BadParam {
        /// The scenario.
        scenario: &'static str,
        /// The parameter.
        name: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The value that was given, as JSON.
        got: String,
    },
    /// Parameters that cannot be read at all.
    #[error("parameters: {message}")]
    BadParams {
        /// The reader's message.
        message: String,
    },
    /// A rules file of breakers has a mistake.
    #[error("{location}: {message}")]
    BreakerRules {
        /// File and line.
        location: String,
        /// The problem, in words.
        message: String,
    },
    /// A line that is not an event.
    #[error("{label}:{line}: {source}")]
    Line {
        /// Name of the input.
        label: String,
        /// Line number from 1.
        line: u64,
        /// Why.
        source: LineFault,
    },
    /// A header or a case that cannot be used.
    #[error("{label}:{line}: {message}")]
    Record {
        /// Name of the input.
        label: String,
        /// Line number from 1.
        line: u64,
        /// Why.
        message: String,
    },
    /// `seq` is an order; this one does not follow the one before it.
    #[error("{label}:{line}: seq {seq} does not follow {last}")]
    Order {
        /// Name of the input.
        label: String,
        /// Line number from 1.
        line: u64,
        /// Its `seq`.
        seq: u64,
        /// The `seq` before.
        last: u64,
    },
    /// No case of this id.
    #[error("{label} has no case `{id}`{}", suggest_case(id, ids))]
    UnknownCase {
        /// Name of the input.
        label: String,
        /// The requested id.
        id: String,
        /// The ids that the input has.
        ids: Vec<String>,
    },
    /// The input could not be read.
    #[error("reading {label}: {source}")]
    Read {
        /// Name of the input.
        label: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An alert could not be handed on.
    #[error("writing alerts: {0}")]
    Write(#[source] std::io::Error),
    /// A frame of a tape that is not a valid event, or a definition out of turn.
    #[error("tape at {position}: {message}")]
    Frame {
        /// Its position.
        position: Position,
        /// The problem, in words.
        message: String,
    },
}

/// Suggests the id that is most like `id`, or lists a few of those that there are.
fn suggest_case(id: &str, ids: &[String]) -> String {
    match (suggest_word(id, ids.iter().map(String::as_str)), ids) {
        (_, []) => "; it has no cases at all".to_owned(),
        (suggestion, _) if !suggestion.is_empty() => suggestion,
        (_, few) if few.len() <= CASES_LISTED_MAX => format!("; it has: {}", few.join(", ")),
        (_, [first, .., last]) => format!("; it has {} cases, from {first} to {last}", ids.len()),
        (_, [one]) => format!("; it has: {one}"),
    }
}

/// The greatest number of cases that a message lists.
const CASES_LISTED_MAX: usize = 12;

impl Error {
    /// Returns whether the data, the call or something outside caused the error.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::UnknownScenario { .. }
            | Self::UnknownParam { .. }
            | Self::BadParam { .. }
            | Self::BadParams { .. }
            | Self::UnknownCase { .. } => ErrorCause::Call,
            Self::BreakerRules { .. } => ErrorCause::Outside,
            Self::Line { .. } | Self::Record { .. } | Self::Order { .. } | Self::Frame { .. } => {
                ErrorCause::Data
            }
            Self::Read { source, .. } | Self::Write(source) => ErrorCause::from_io(source),
        }
    }
}
