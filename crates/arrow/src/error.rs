//! The errors of reading rows.

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use unitape_model::{ErrorCause, Position};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tape cannot be read.
    #[error(transparent)]
    Query(#[from] unitape_query::Error),
    /// A size does not fit the type of its column.
    #[error("size: {column} of event {seq} is {size}, which does not fit {data_type}; {remedy}")]
    SizeMisfit {
        /// The column.
        column: &'static str,
        /// The ordinal of the event.
        seq: u64,
        /// The exact size.
        size: String,
        /// The type of the column.
        data_type: &'static str,
        /// The option that helps.
        remedy: &'static str,
    },
    /// The names of a column are longer together than Arrow's offsets reach.
    #[error("names: the names of a column are more than 2 GiB together; select fewer instruments")]
    NamesFull,
    /// The tape was cut back while it was read.
    #[error("rewound: the tape was cut back from position {from} to {to} while it was read; read it again")]
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut.
        to: Position,
    },
    /// The tape is shorter than it was.
    #[error(
        "shortened: the tape ends at position {current_end}, and ended at {end} when reading began; read it again"
    )]
    Shortened {
        /// The end of the tape now.
        current_end: Position,
        /// Its end when reading began.
        end: Position,
    },
    /// Arrow refused what was built.
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
    /// Parquet refused what was built.
    #[error("parquet: {0}")]
    Parquet(#[from] ParquetError),
    /// A defect of unitape. The reader gives nothing more.
    #[error("panic: {0}; this is a defect of unitape, and nothing more is read")]
    Panic(String),
}

impl Error {
    /// Returns on whose side the cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Query(source) => source.cause(),
            Self::SizeMisfit { .. } | Self::NamesFull => ErrorCause::Call,
            Self::Rewound { .. } | Self::Shortened { .. } => ErrorCause::Data,
            Self::Arrow(_) | Self::Parquet(_) | Self::Panic(_) => ErrorCause::Outside,
        }
    }
}

impl From<unitape_tape::Error> for Error {
    fn from(error: unitape_tape::Error) -> Self {
        Self::Query(error.into())
    }
}
