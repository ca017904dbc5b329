//! Layouts: which columns a record has, read from TOML and checked.

use super::datetime::{CachedTimeZone, DateTimeFormat};
use super::ebcdic::CodePage;
use super::marks::NumberPunctuation;
use super::step::ColumnInstruction;
use super::text::{NumberStorage, RecordRole, RecordTerminator, ShortRecordPolicy, SignStyle, TrimSide};
use std::ops::Range;

/// A layout that holds together: no column overlaps another, none lies outside its record, no byte is left out.
#[derive(Debug, Clone)]
pub struct FixedWidthLayout {
    pub(super) name: String,
    pub(super) title: String,
    pub(crate) terminator: RecordTerminator,
    pub(crate) short: ShortRecordPolicy,
    pub(super) records: Vec<RecordLayout>,
    pub(crate) header: Option<u16>,
    pub(crate) zones: Vec<CachedTimeZone>,
    pub(crate) record_bytes_max: usize,
    /// How text is encoded, where it is not ASCII.
    pub(crate) page: Option<CodePage>,
}

/// A kind of record.
#[derive(Debug, Clone)]
pub struct RecordLayout {
    pub(super) name: String,
    pub(super) role: RecordRole,
    pub(super) bytes: usize,
    pub(super) columns: Vec<ColumnLayout>,
    pub(crate) when: Vec<RecordSelector>,
    pub(crate) count: Option<u16>,
    pub(crate) steps: Vec<ColumnInstruction>,
}

/// One of these values must be at `at`.
#[derive(Debug, Clone)]
pub(crate) struct RecordSelector {
    pub at: Range<usize>,
    pub values: Vec<Vec<u8>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnLayout {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) length: usize,
    pub(crate) sort: ColumnFormat,
    pub(crate) pad: u8,
    pub(crate) trim: TrimSide,
    pub(crate) squeeze: bool,
    pub(crate) required: bool,
    pub(crate) none: Vec<Vec<u8>>,
    pub(super) redefines: bool,
    /// How its numbers are written, where not plainly.
    pub(super) marks: Option<NumberPunctuation>,
    /// A file without it is refused.
    pub(crate) expected: bool,
}

/// The contents of a column.
#[derive(Debug, Clone)]
pub(crate) enum ColumnFormat {
    Text,
    Int(SignStyle),
    /// Places after the point, `None` where the point is written.
    Decimal(SignStyle, Option<u8>),
    /// A number that is no text, with the places after its point: `None` for a whole number.
    Stored(NumberStorage, Option<u8>),
    Date(DateTimeFormat),
    Time(DateTimeFormat, Option<(DateSource, u16)>),
    /// With its zone.
    Timestamp(DateTimeFormat, u16),
    Flag {
        yes: Vec<Vec<u8>>,
        no: Vec<Vec<u8>>,
    },
    Literal(Vec<u8>),
    Filler,
}

/// Where the date of a time is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DateSource {
    /// In this column of the same record.
    Record(u16),
    /// In this column of the header.
    Header(u16),
}

/// Maximum bytes of a record.
pub const RECORD_BYTES_MAX: usize = 32 << 10;

/// Maximum columns of a record.
pub const COLUMNS_MAX: usize = 2_000;

impl FixedWidthLayout {
    /// The shipped layout of this name, as its text.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// Names of the shipped layouts.
    pub fn all_built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The title, one line for people.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its records, in the order of the file.
    #[must_use]
    pub fn records(&self) -> &[RecordLayout] {
        &self.records
    }

    /// Bytes at the start of a file that hold its header, 0 where it has none: a decoder that begins further on
    /// wants to see them.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        // Line ends before it, and after.
        self.header.map_or(0, |h| self.records[usize::from(h)].bytes + 64)
    }
}

impl RecordLayout {
    /// Adds a column.
    pub(crate) fn push(&mut self, column: ColumnLayout) {
        self.columns.push(column);
    }

    /// Its name, which is its type.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role of the record.
    #[must_use]
    pub fn role(&self) -> RecordRole {
        self.role
    }

    /// This layout under another name.
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Bytes without its terminator.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its columns, in the order of the file.
    #[must_use]
    pub fn columns(&self) -> &[ColumnLayout] {
        &self.columns
    }

    /// The column of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }
}

impl ColumnLayout {
    /// A column of text that the file must have, and that may be blank.
    pub(crate) fn text_column(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start: 0,
            length: 0,
            sort: ColumnFormat::Text,
            pad: b' ',
            trim: TrimSide::Right,
            squeeze: false,
            required: false,
            none: Vec::new(),
            redefines: false,
            marks: None,
            expected: true,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first byte, from 0.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Its bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether it says something: filler and literals do not.
    #[must_use]
    pub fn is_output(&self) -> bool {
        !matches!(self.sort, ColumnFormat::Filler | ColumnFormat::Literal(_))
    }

    /// Whether runs of blanks inside its text are one.
    #[must_use]
    pub fn collapses_blanks(&self) -> bool {
        self.squeeze
    }

    /// The byte that pads the value to the column's width.
    #[must_use]
    pub fn pad(&self) -> u8 {
        self.pad
    }

    /// Whether it holds a number that is no text.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.sort, ColumnFormat::Stored(..))
    }

    /// Whether it holds text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.sort, ColumnFormat::Text)
    }

    /// Whether it holds text that ends where its padding begins, and nothing else is removed or means none.
    #[must_use]
    pub fn is_plain_text(&self) -> bool {
        self.is_text() && self.trim == TrimSide::Right && !self.squeeze && self.none.is_empty()
    }

    /// Whether it holds one character, and a blank is none.
    #[must_use]
    pub fn is_one_character(&self) -> bool {
        self.length == 1 && self.is_text() && self.trim != TrimSide::None && self.none.is_empty()
    }

    /// Whether it covers bytes that another column covers too.
    #[must_use]
    pub fn redefines(&self) -> bool {
        self.redefines
    }
}

const BUILT_IN: &[(&str, &str)] = &[
    ("nyse-taq-bbo-98", include_str!("../../../../mappings/layouts/nyse-taq-bbo-98.toml")),
    ("sim-day", include_str!("../../../../mappings/layouts/sim-day.toml")),
];
