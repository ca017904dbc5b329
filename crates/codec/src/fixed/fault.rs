//! Faults of a record.

use super::code::RecordFaultCode;
use super::layout::FixedWidthLayout;
use std::fmt::Write;

/// The reason why bytes are no valid record. It is a plain value, so that a stream of faults needs no allocation;
/// [`RecordFault::text`] describes it in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFault {
    /// The code.
    pub code: RecordFaultCode,
    /// The kind of record and the column in it, as the layout numbers them.
    pub column: Option<(u16, u16)>,
    /// Bytes, or records, that there should be.
    pub expected_count: u64,
    /// Bytes, or records, that there are.
    pub actual: u64,
}

/// Returns whether a carriage return ends what could be a record at the start of a line without a line feed.
fn ends_in_returns(line: &[u8], record_bytes: u64) -> bool {
    let first_extra_byte = usize::try_from(record_bytes).ok().and_then(|bytes| line.get(bytes));
    first_extra_byte == Some(&b'\r') && !line.contains(&b'\n')
}

impl RecordFault {
    pub(crate) const fn lengths(code: RecordFaultCode, expected: usize, actual: usize) -> Self {
        RecordFault { code, column: None, expected_count: expected as u64, actual: actual as u64 }
    }

    pub(crate) const fn column(code: RecordFaultCode, record: u16, column: u16) -> Self {
        RecordFault { code, column: Some((record, column)), expected_count: 0, actual: 0 }
    }

    /// Makes the fault of a header or trailer that states `stated` records if the file has `actual` records.
    #[must_use]
    pub const fn count(stated: u64, actual: u64) -> Self {
        RecordFault { code: RecordFaultCode::RecordCount, column: None, expected_count: stated, actual }
    }

    /// Describes the fault in a sentence that quotes the column's value.
    #[must_use]
    pub fn text(&self, layout: &FixedWidthLayout, record: &[u8]) -> String {
        let RecordFault { code, column, expected_count: expected, actual } = *self;
        match code {
            RecordFaultCode::LongRecord if ends_in_returns(record, expected) => {
                return format!(
                    "{actual} bytes where the layout has {expected}: a carriage return alone ends no record, convert the line ends of the file to line feeds (tr '\\r' '\\n')"
                );
            }
            RecordFaultCode::ShortRecord | RecordFaultCode::LongRecord => {
                return format!("{actual} bytes where the layout has {expected}");
            }
            RecordFaultCode::UnknownRecord => {
                return "no record of the layout has these selectors".to_owned();
            }
            RecordFaultCode::RecordCount => return format!("{expected} records stated, {actual} found"),
            _ => {}
        }
        let mut out = String::new();
        if let Some((record_index, index)) = column {
            let column = &layout.records()[usize::from(record_index)].columns()[usize::from(index)];
            let value = record.get(column.start()..column.start() + column.length()).unwrap_or_default();
            let mut text = Vec::new();
            let value = match layout.page.filter(|_| !column.is_stored()) {
                None => value,
                Some(page) => {
                    page.to_latin1(value, &mut text);
                    &text
                }
            };
            let cut = &value[..value.len().min(60)];
            // Writing to a String cannot fail.
            _ = write!(
                out,
                "column {} at byte {}: \"{}\" ",
                column.name(),
                column.start() + 1,
                cut.escape_ascii()
            );
            out.push_str(&column.reason(code, value));
            return out;
        }
        out.push_str(code.description());
        out
    }
}
