//! Faults of a record.

use super::code::RecordFaultCode;
use super::layout::FixedWidthLayout;
use std::fmt::Write;

/// Why a stretch of input is no good record. A plain value, so that a stream of nothing but faults allocates
/// nothing; [`RecordFault::text`] gives the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFault {
    /// The code.
    pub code: RecordFaultCode,
    /// The kind of record and the column in it, as the layout numbers them.
    pub column: Option<(u16, u16)>,
    /// Bytes, or records, that there should be.
    pub wanted: u64,
    /// Bytes, or records, that there are.
    pub found: u64,
}

/// Returns whether a carriage return ends what could be a record at the start of a line without a line feed.
fn ends_in_returns(line: &[u8], record_bytes: u64) -> bool {
    let first = usize::try_from(record_bytes).ok().and_then(|bytes| line.get(bytes));
    first == Some(&b'\r') && !line.contains(&b'\n')
}

impl RecordFault {
    pub(crate) const fn lengths(code: RecordFaultCode, wanted: usize, found: usize) -> Self {
        RecordFault { code, column: None, wanted: wanted as u64, found: found as u64 }
    }

    pub(crate) const fn column(code: RecordFaultCode, record: u16, column: u16) -> Self {
        RecordFault { code, column: Some((record, column)), wanted: 0, found: 0 }
    }

    /// The fault of a header or trailer that says `stated` records where there are `found`.
    #[must_use]
    pub const fn count(stated: u64, found: u64) -> Self {
        RecordFault { code: RecordFaultCode::RecordCount, column: None, wanted: stated, found }
    }

    /// The fault in a sentence, with what is in the column.
    #[must_use]
    pub fn text(&self, layout: &FixedWidthLayout, record: &[u8]) -> String {
        let RecordFault { code, column, wanted, found } = *self;
        match code {
            RecordFaultCode::LongRecord if ends_in_returns(record, wanted) => {
                return format!(
                    "{found} bytes where the layout has {wanted}: a carriage return alone ends no record, convert the line ends of the file to line feeds (tr '\\r' '\\n')"
                );
            }
            RecordFaultCode::ShortRecord | RecordFaultCode::LongRecord => {
                return format!("{found} bytes where the layout has {wanted}");
            }
            RecordFaultCode::UnknownRecord => {
                return "no record of the layout has these selectors".to_owned();
            }
            RecordFaultCode::RecordCount => return format!("{wanted} records stated, {found} found"),
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
                    page.latin1(value, &mut text);
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
