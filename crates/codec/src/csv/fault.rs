//! Faults of a row.

use crate::fixed;
use crate::foreign::ForeignInput;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CsvFaultCode {
    /// The row has another number of values than there are columns.
    RaggedRow,
    /// A quote that is opened is not closed within the longest row.
    UnclosedQuote,
    /// A quote is at a wrong place: inside a value, or before more text of the value.
    BadQuote,
    /// The row is longer than a row may be.
    LongRow,
    /// A carriage return alone, outside of quotes: the lines of the file end so, or some of them.
    BareReturn,
    /// The file is in UTF-16.
    Utf16,
    /// The file is a ZIP archive.
    ZipArchive,
    /// Text is not UTF-8.
    NotUtf8,
    /// The header lacks columns that the layout requires, has one twice, or cannot be read.
    BadHeader,
    /// The file states another separator than the layout.
    BadSeparator,
    /// No line near the start of the file has the columns of the layout, or more lines are to be skipped than may be.
    HeaderNotFound,
    /// A row of a file whose header cannot be read.
    NoHeader,
    /// The trailer's count cannot be read.
    BadTrailer,
    /// Another number of rows than the trailer says.
    RecordCount,
    /// A value does not fit its column; codes as for fixed-width records.
    Value(fixed::RecordFaultCode),
}

impl From<ForeignInput> for CsvFaultCode {
    fn from(input: ForeignInput) -> Self {
        match input {
            ForeignInput::Utf16 => CsvFaultCode::Utf16,
            ForeignInput::ZipArchive => CsvFaultCode::ZipArchive,
        }
    }
}

impl CsvFaultCode {
    /// Returns the code as a word, such as `ragged_row`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CsvFaultCode::RaggedRow => "ragged_row",
            CsvFaultCode::UnclosedQuote => "unclosed_quote",
            CsvFaultCode::BadQuote => "bad_quote",
            CsvFaultCode::LongRow => "long_row",
            CsvFaultCode::BareReturn => "bare_return",
            CsvFaultCode::Utf16 => "utf_16",
            CsvFaultCode::ZipArchive => "zip_archive",
            CsvFaultCode::NotUtf8 => "not_utf8",
            CsvFaultCode::BadHeader => "bad_header",
            CsvFaultCode::BadSeparator => "bad_separator",
            CsvFaultCode::HeaderNotFound => "header_not_found",
            CsvFaultCode::NoHeader => "no_header",
            CsvFaultCode::BadTrailer => "bad_trailer",
            CsvFaultCode::RecordCount => "record_count",
            CsvFaultCode::Value(code) => code.as_str(),
        }
    }
}

/// The reason why bytes are no valid row. It is a plain value, so that a stream of faults needs no allocation;
/// [`Decoder::explain`](super::CsvRowDecoder::explain) describes it in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvFault {
    /// The code.
    pub code: CsvFaultCode,
    /// Which value of the row, from 0.
    pub value_index: Option<u16>,
    /// Values, bytes or rows that there should be.
    pub expected_count: u64,
    /// Values, bytes or rows that there are.
    pub actual: u64,
}

impl CsvFault {
    pub(super) const fn from_code(code: CsvFaultCode) -> Self {
        CsvFault { code, value_index: None, expected_count: 0, actual: 0 }
    }

    pub(super) const fn with_value(code: CsvFaultCode, value: usize) -> Self {
        CsvFault { code, value_index: Some(value as u16), expected_count: 0, actual: 0 }
    }

    pub(super) const fn numbers(code: CsvFaultCode, expected: usize, actual: usize) -> Self {
        CsvFault { code, value_index: None, expected_count: expected as u64, actual: actual as u64 }
    }

    /// Makes the fault of a trailer that states `stated` rows if the file has `actual` rows.
    #[must_use]
    pub const fn count(stated: u64, actual: u64) -> Self {
        CsvFault { code: CsvFaultCode::RecordCount, value_index: None, expected_count: stated, actual }
    }
}
