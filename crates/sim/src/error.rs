//! The errors in a request for a market.

use unitape_model::ErrorCause;

/// A market that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Times on the wire have four digits for the year, and the arithmetic is in u64 nanoseconds.
    #[error("configuration: a day from {start_ns} ns for {span_ns} ns does not end before the year 2500")]
    OutOfTime {
        /// Start, in nanoseconds since the Unix epoch.
        start_ns: u64,
        /// Length, in nanoseconds.
        span_ns: u64,
    },
    /// A value of a configuration that cannot be.
    #[error("configuration: {name} is {value}, not {least} to {most}")]
    OutOfRange {
        /// Name of the value.
        name: &'static str,
        /// The requested value.
        value: u64,
        /// The least there may be.
        least: u64,
        /// The most there may be.
        most: u64,
    },
    /// A scene or a halt has its instrument to itself; this many find no place.
    #[error(
        "configuration: no instrument is free for another {kind} after {placed}; give more instruments or a longer span"
    )]
    NoRoom {
        /// The scene or halt to place.
        kind: &'static str,
        /// The number of scenes that were placed.
        placed: u32,
    },
    /// A scenario that only a market of several days can have.
    #[error("configuration: a simple day cannot have {scenario}; only a full market (--full, --days) can")]
    FullMarketOnly {
        /// Id of the scenario.
        scenario: &'static str,
    },
    /// A scenario that plays at several venues.
    #[error("configuration: {scenario} needs {least} venues")]
    Venues {
        /// Id of the scenario.
        scenario: &'static str,
        /// The least number of venues.
        least: usize,
    },
    /// A scenario that looks back at earlier days.
    #[error("configuration: {scenario} needs {least} days")]
    Days {
        /// Id of the scenario.
        scenario: &'static str,
        /// The least number of days.
        least: u32,
    },
    /// A control that a market cannot obey.
    #[error("control: {0}")]
    Control(String),
    /// A line that is no event, where best prices are made of events.
    #[error("banks: {0}")]
    BankLine(String),
    /// A file of templates that is wrong.
    #[error("exchange templates: {0}")]
    Templates(String),
    /// No file has a template that a channel needs.
    #[error("exchange templates: none for the {channel} channel has {template}; give the file with it")]
    NoTemplate {
        /// The channel.
        channel: &'static str,
        /// The template.
        template: &'static str,
    },
    /// A template without a field that a receiver cannot do without.
    #[error("exchange templates: {template} of the {channel} channel has no {field}")]
    NoField {
        /// The channel.
        channel: &'static str,
        /// The template.
        template: &'static str,
        /// The field, with its context.
        field: &'static str,
    },
    /// A value that the templates cannot express.
    #[error("exchange: the templates have no field for what happened: {0}")]
    Encode(unitape_fast::MessageFault),
}

impl Error {
    /// Returns where the cause lies: in the data, in the call or outside unitape. A template file does not count as
    /// data.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::OutOfTime { .. }
            | Self::OutOfRange { .. }
            | Self::NoRoom { .. }
            | Self::FullMarketOnly { .. }
            | Self::Venues { .. }
            | Self::Days { .. } => ErrorCause::Call,
            Self::Control(_)
            | Self::BankLine(_)
            | Self::Templates(_)
            | Self::NoTemplate { .. }
            | Self::NoField { .. }
            | Self::Encode(_) => ErrorCause::Outside,
        }
    }
}
