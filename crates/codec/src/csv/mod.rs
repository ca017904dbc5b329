//! Rows of separated values (CSV, TSV, pipes), by a layout that is read at run time.
//!
//! ```text
//! Time|Exchange|Symbol|Trade Volume|Trade Price      the header: names, in the order of the file
//! 093000417837000|Z|A|300|45.88                      a row ──Decoder──▶ Instant, Text, Int, Decimal …
//! END|20161024|1|||                                   the trailer: how many rows there are
//! ```
//!
//! A layout says what separates values, whether they may be in quotes (RFC 4180: separators and line ends
//! within, a quote twice), which lines are comments, how header and trailer are known, and which sort the values
//! of a column are. Columns that the layout does not name are text.
//!
//! A row is all or nothing: one that is ragged, has an open quote, a value that is none of its column or text that is
//! not UTF-8 is a [`CsvFault`] with a code and the column. Reading resumes after the row, or, where its end is
//! unknown, after the line in which it begins.
//!
//! It keeps no state but the header and the day of the file, which is known by the file's name.

mod decode;
mod fault;
mod json;
pub(crate) mod layout;
mod needs;
mod preamble;
mod row;
mod simd;
#[cfg(test)]
mod tests;

pub use decode::{CsvRowDecoder, CsvRowKind, FramedCsvRow, NextCsvRow};
pub use fault::{CsvFault, CsvFaultCode};
pub use json::decode_json;
pub use layout::{CsvLayout, ROW_BYTES_MAX};
pub use needs::{ColumnChoice, ColumnNeeds};
