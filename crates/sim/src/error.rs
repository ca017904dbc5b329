//! What can be wrong with a request for a flow.

use unitape_model::ErrorCause;

/// A flow that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The span leaves no room for a window before and after a scene.
    #[error("flow config: span of {span_ns} ns is shorter than {least_ns} ns, which planted scenes need")]
    SpanTooShort {
        /// What was asked for, in nanoseconds.
        span_ns: u64,
        /// The least that will do, in nanoseconds.
        least_ns: u64,
    },
    /// So many messages in the span would leave less than the time one request takes.
    #[error("flow config: {messages} messages do not fit in the span, which holds {most}; lengthen span_ns")]
    TooManyMessages {
        /// What was asked for.
        messages: u64,
        /// The most that will do.
        most: u64,
    },
    /// Scenes must keep apart, or two of one owner would mix; this many find no place.
    #[error("flow config: scene {scene} of {scenes} finds no owner and instrument at rest; lengthen span_ns")]
    TooManyScenes {
        /// The first that found no place, counted from 0 in order of time.
        scene: usize,
        /// All that were asked for.
        scenes: usize,
    },
    /// Times on the wire have four digits for the year, and the arithmetic is in u64 nanoseconds.
    #[error("flow config: a flow from {start_ns} ns for {span_ns} ns does not end before the year 2500")]
    OutOfTime {
        /// Start, in nanoseconds since the Unix epoch.
        start_ns: u64,
        /// Length, in nanoseconds.
        span_ns: u64,
    },
    /// A share above the whole.
    #[error("flow config: {bad_per_million} bad messages per million")]
    BadShare {
        /// What was asked for.
        bad_per_million: u32,
    },
    /// A value of a configuration that cannot be.
    #[error("configuration: {name} is {value}, not {least} to {most}")]
    OutOfRange {
        /// Which value.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// The least there may be.
        least: u64,
        /// The most there may be.
        most: u64,
    },
    /// A scene or a halt has its instrument to itself; this many find no place.
    #[error(
        "configuration: no instrument is free for another {what} after {placed}; give more instruments or a longer span"
    )]
    NoRoom {
        /// What was to be placed.
        what: &'static str,
        /// How many found a place.
        placed: u32,
    },
    /// A file of templates that is wrong.
    #[error("exchange templates: {0}")]
    Templates(String),
    /// No file has what a channel has to say.
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
        /// The field, with what is around it.
        field: &'static str,
    },
    /// A value that the templates cannot tell.
    #[error("exchange: the templates cannot tell what happened: {0}")]
    Encode(unitape_fast::Fault),
}

impl Error {
    /// On whose side the cause lies. A file of templates is no data.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::SpanTooShort { .. }
            | Self::TooManyMessages { .. }
            | Self::TooManyScenes { .. }
            | Self::OutOfTime { .. }
            | Self::BadShare { .. }
            | Self::OutOfRange { .. }
            | Self::NoRoom { .. } => ErrorCause::Call,
            Self::Templates(_) | Self::NoTemplate { .. } | Self::NoField { .. } | Self::Encode(_) => {
                ErrorCause::Outside
            }
        }
    }
}
