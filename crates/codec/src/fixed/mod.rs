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
//! A layout says which sorts of record there are, which columns each has, how values are written in them, and
//! what ends a record. Each is compiled to a list of steps; reading a record is a walk over it, without looking
//! at the layout again. See [`Decoder`] for an example, and the guide for all that a layout can say.
//!
//! A record is all or nothing: a short one, a long one, a digit that is none is a [`Fault`] with a code and the
//! column, and reading goes on behind the terminator, or where a record has none behind its length. Header and
//! trailer may count the records; [`decode_json`] checks that, and whoever reads a file in parts is told what
//! they say ([`Decoder::header_count`]).
//!
//! Imports read in one direction: `code`, `text`, `when`, `step`, `marks` ─▶ `layout` ─▶ `fault` ─▶ `plan` ─▶ `build`,
//! `decode` ─▶ `batch`, `json`.
//!
//! It reads ASCII and EBCDIC, packed and binary numbers. It keeps no state but the header, whose date holds for the
//! whole file.

mod batch;
mod build;
#[cfg(any(test, feature = "naive"))]
#[doc(hidden)]
pub mod check;
mod code;
mod decode;
mod digits;
mod ebcdic;
mod error;
mod fault;
mod json;
mod layout;
mod loose;
mod marks;
#[cfg(any(test, feature = "naive"))]
#[doc(hidden)]
pub mod naive;
mod plan;
mod step;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod when;

pub use batch::{Columns, Even, Framed, Frames, LANES, Lanes, Listed, Numbers, Rows, RowsColumn};
pub use code::Code;
pub use decode::{Decoder, Next};
pub use error::Error;
pub use fault::Fault;
pub use json::{Summary, decode_json};
/// What rows of separated values share with records: sorts of values, dates, zones.
pub(crate) mod inside {
    pub(crate) use super::layout::{Column, Record};
    pub(crate) use super::loose::{days_in, loose_columns, waits};
    pub(crate) use super::plan::{Around, read};
    pub(crate) use super::text::ColumnText;
    pub(crate) use super::when::Zone;
}

pub use layout::{COLUMNS_MAX, Column, Layout, RECORD_BYTES_MAX, Record};
pub use text::Role;
pub use value::Value;
pub use when::midnight;
