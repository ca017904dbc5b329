//! The codes of faults.

use crate::foreign::ForeignInput;
use crate::times::LocalTimeFault;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordFaultCode {
    /// The record has fewer bytes than its layout says.
    ShortRecord,
    /// The record has more bytes than its layout says.
    LongRecord,
    /// No record of the layout has these selectors.
    UnknownRecord,
    /// The file is in UTF-16.
    Utf16,
    /// The file is a ZIP archive.
    ZipArchive,
    /// A column that must have a value is blank.
    Missing,
    /// A number is not made of digits, or its sign is not of the form the layout says.
    BadNumber,
    /// A number is beyond 64 bits.
    NumberRange,
    /// A date is invalid.
    BadDate,
    /// A time is invalid.
    BadTime,
    /// A local time that occurs twice, as clocks go back on that day.
    AmbiguousTime,
    /// The same, and the order of the source does not say which of the two it is.
    UnorderedTime,
    /// A local time that never occurs, as clocks go forward on that day.
    SkippedTime,
    /// A flag has an unknown value.
    BadFlag,
    /// A literal differs from the layout.
    BadLiteral,
    /// The date that a time belongs to is not known.
    NoDate,
    /// Another number of records than the header or trailer says.
    RecordCount,
}

impl From<ForeignInput> for RecordFaultCode {
    fn from(input: ForeignInput) -> Self {
        match input {
            ForeignInput::Utf16 => RecordFaultCode::Utf16,
            ForeignInput::ZipArchive => RecordFaultCode::ZipArchive,
        }
    }
}

impl RecordFaultCode {
    /// Returns the code as a word, such as `short_record`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RecordFaultCode::ShortRecord => "short_record",
            RecordFaultCode::LongRecord => "long_record",
            RecordFaultCode::UnknownRecord => "unknown_record",
            RecordFaultCode::Utf16 => "utf_16",
            RecordFaultCode::ZipArchive => "zip_archive",
            RecordFaultCode::Missing => "missing",
            RecordFaultCode::BadNumber => "bad_number",
            RecordFaultCode::NumberRange => "number_range",
            RecordFaultCode::BadDate => "bad_date",
            RecordFaultCode::BadTime => "bad_time",
            RecordFaultCode::AmbiguousTime => "ambiguous_time",
            RecordFaultCode::UnorderedTime => "unordered_time",
            RecordFaultCode::SkippedTime => "skipped_time",
            RecordFaultCode::BadFlag => "bad_flag",
            RecordFaultCode::BadLiteral => "bad_literal",
            RecordFaultCode::NoDate => "no_date",
            RecordFaultCode::RecordCount => "record_count",
        }
    }

    /// Describes the fault in words that follow the value.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            RecordFaultCode::Utf16 => ForeignInput::Utf16.description(),
            RecordFaultCode::ZipArchive => ForeignInput::ZipArchive.description(),
            RecordFaultCode::Missing => "is blank and must not be",
            RecordFaultCode::BadNumber => "is no number of the form the layout says",
            RecordFaultCode::NumberRange => "is beyond 64 bits",
            RecordFaultCode::BadDate => "is no date",
            RecordFaultCode::BadTime => "is no time of that day",
            RecordFaultCode::AmbiguousTime => LocalTimeFault::Twice.description(),
            RecordFaultCode::UnorderedTime => LocalTimeFault::TwiceUnordered.description(),
            RecordFaultCode::SkippedTime => LocalTimeFault::Never.description(),
            RecordFaultCode::BadFlag => "is none of the values of the flag",
            RecordFaultCode::BadLiteral => "is not the literal of the layout",
            _ => "has no date: its source is missing or not readable",
        }
    }
}
