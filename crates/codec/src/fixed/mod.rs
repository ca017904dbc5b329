//! Fixed-width records, by a layout that is read at run time.
//!
//! ```text
//! layout.toml ──Layout──▶ steps ╮
//!                               ▼
//! 093109362NAOCHDQ          00000241762… ──Decoder──▶ values: Instant, Text, Decimal …
//! ╰─time──╯│╰────symbol────╯╰─bid price╯                ╰──decode_json──▶ JSON Lines
//!       exchange
//! ```
//!
//! A layout says which kinds of record there are, which columns each has, how values are written in them, and
//! what ends a record. Each is compiled to a list of steps; reading a record is a walk over it, without looking
//! at the layout again. See [`FixedWidthDecoder`] for an example, and the guide for all that a layout can say.
//!
//! A record is all or nothing: a short one, a long one, a digit that is none is a [`RecordFault`] with a code and the
//! column. Reading resumes after the terminator, or where a record has none after its length. Header and trailer may
//! count the records. [`decode_json`] checks these counts; a caller that reads a file in parts gets them from
//! [`FixedWidthDecoder::header_count`].
//!
//! Imports read in one direction: `code`, `text`, `step`, `marks` ─▶ `layout` ─▶ `fault` ─▶ `plan` ─▶ `build`,
//! `decode` ─▶ `batch`, `json`.
//!
//! It reads ASCII and EBCDIC, packed and binary numbers. It keeps no state but the header, whose date holds for the
//! whole file.

mod batch;
mod build;
mod code;
mod csv_columns;
mod decode;
mod digits;
mod ebcdic;
mod error;
mod fault;
mod json;
pub(crate) mod layout;
mod marks;
mod plan;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod value;

pub use batch::{
    BatchReader, ByteColumnIter, FramedRecord, LANES, Lanes, NumberKind, RecordBatch, RecordFramer,
    ScatteredRecords, StridedRecords,
};
pub use code::RecordFaultCode;
pub use decode::{FixedWidthDecoder, NextRecord, RecordLine};
pub use error::Error;
pub use fault::RecordFault;
pub use json::{FixedDecodeSummary, decode_json};
/// Parts that rows of separated values share with records: types of values, dates, zones.
pub(crate) mod inside {
    pub(crate) use super::csv_columns::{CsvTimeKeys, build_csv_columns, needs_other_column, parse_day};
    pub(crate) use super::layout::{ColumnLayout, RecordLayout};
    pub(crate) use super::plan::{ColumnBytes, RecordContext, read};
    pub(crate) use super::text::ColumnLayoutConfig;
}

pub use crate::times::midnight;
pub use digits::with_exponent;
pub use layout::{COLUMNS_MAX, ColumnLayout, FixedWidthLayout, RECORD_BYTES_MAX, RecordLayout};
pub use marks::{SuggestedMarks, marks_that_read};
pub use text::RecordRole;
pub use value::ColumnValue;
