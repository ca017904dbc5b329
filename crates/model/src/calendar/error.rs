//! Mistakes in the text of a calendar.

/// A line of a calendar that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct CalendarError {
    /// The line, counted from 1.
    pub line: usize,
    /// The mistake.
    pub fault: CalendarFault,
}

/// A mistake in a line of a calendar, with a correct form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarFault {
    /// The file does not begin as a calendar.
    #[error("the first line of a calendar is `what,key,date,time,zone,value`, here it is `{text}`")]
    Header {
        /// The start of the line.
        text: String,
    },
    /// The file has no line.
    #[error("the calendar is empty; its first line is `what,key,date,time,zone,value`")]
    Empty,
    /// A line has another number of columns.
    #[error("{count} columns; a line has 6, as `holiday,XLON,2026-12-25,,,`")]
    ColumnCount {
        /// The number of columns.
        count: usize,
    },
    /// A line has a quotation mark.
    #[error("a quotation mark; remove it, no value has a comma")]
    Quoted,
    /// The first column has none of the four words.
    #[error("`{text}` is none of venue, holiday, half and pair")]
    RowKind {
        /// The value.
        text: String,
    },
    /// The key of a venue line is no market.
    #[error("`{text}` is no MIC; write 4 capital letters or digits, as XLON")]
    Mic {
        /// The value.
        text: String,
    },
    /// The key of a day is neither a market nor a currency.
    #[error("`{text}` is no MIC and no currency; write 4 capital letters or digits, as XLON, or 3, as USD")]
    MicOrCurrency {
        /// The value.
        text: String,
    },
    /// The key of a pair line is no pair.
    #[error("`{text}` is no pair of two currencies; write EURUSD or EUR/USD")]
    Pair {
        /// The value.
        text: String,
    },
    /// The date is invalid.
    #[error("`{text}` is no date; write 2026-12-25")]
    Date {
        /// The value.
        text: String,
    },
    /// The time is invalid.
    #[error("`{text}` is no time of day; write 17:00, from 00:00 to 23:59")]
    Time {
        /// The value.
        text: String,
    },
    /// The zone is not known.
    #[error("no time zone `{text}`; names are as in America/New_York, or UTC")]
    Zone {
        /// The value.
        text: String,
    },
    /// The lag is out of range.
    #[error("`{text}` is no lag; write a number of days from 0 to 10")]
    Lag {
        /// The value.
        text: String,
    },
    /// A column has a value that its line cannot have.
    #[error("a {kind} line has no {column}; remove `{text}`")]
    ExtraValue {
        /// The first column.
        kind: &'static str,
        /// The name of the column.
        column: &'static str,
        /// The value.
        text: String,
    },
    /// An earlier line gives the same key another value.
    #[error("line {earlier} says something else of the same key; keep one of the two")]
    Conflict {
        /// The earlier line.
        earlier: usize,
    },
}
