//! Layouts: which columns a record has, read from TOML and checked.

use super::code::RecordFaultCode;
use super::ebcdic::CodePage;
use super::marks::NumberPunctuation;
use super::step::ColumnInstruction;
use super::text::{NumberStorage, RecordRole, RecordTerminator, ShortRecordPolicy, SignStyle, TrimSide};
use crate::times::{AmbiguousTimes, CachedTimeZone, TimeFault, TimeForm, TimeFormKind, TimeFormOptions};
use std::ops::Range;

/// A consistent layout: no column overlaps another, no column lies outside its record, and every byte has a column.
#[derive(Debug, Clone)]
pub struct FixedWidthLayout {
    pub(super) name: String,
    pub(super) title: String,
    pub(crate) terminator: RecordTerminator,
    pub(crate) short: ShortRecordPolicy,
    pub(super) records: Vec<RecordLayout>,
    pub(crate) header: Option<u16>,
    pub(crate) zone_caches: Vec<CachedTimeZone>,
    /// The zone of the layout, among them.
    pub(crate) default_zone: Option<u16>,
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
    pub(crate) selectors: Vec<RecordSelector>,
    pub(crate) count: Option<u16>,
    pub(crate) steps: Vec<ColumnInstruction>,
}

/// One of these values must be at `at`.
#[derive(Debug, Clone)]
pub(crate) struct RecordSelector {
    pub range: Range<usize>,
    pub values: Vec<Vec<u8>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnLayout {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) length: usize,
    pub(crate) format: ColumnFormat,
    pub(crate) pad: u8,
    pub(crate) trim: TrimSide,
    pub(crate) squeezes_blanks: bool,
    pub(crate) required: bool,
    pub(crate) none_values: Vec<Vec<u8>>,
    pub(super) redefines: bool,
    /// How its numbers are written, where not plainly.
    pub(super) marks: Option<NumberPunctuation>,
    /// A file without it is refused.
    pub(crate) is_expected: bool,
    /// The name of its column in the file, where it is another.
    pub(crate) source: Option<String>,
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
    Date(TimeForm),
    Time(TimeForm, Option<(DateSource, u16)>),
    /// With its zone.
    Timestamp(TimeForm, u16),
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
    /// Looks up a shipped layout by name and returns its text.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// Lists the names of the shipped layouts.
    pub fn all_built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the layout's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title, one line for people.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the record types, in file order.
    #[must_use]
    pub fn records(&self) -> &[RecordLayout] {
        &self.records
    }

    /// Sets the choice for local times that occur twice or never.
    #[must_use]
    pub fn with_ambiguous(mut self, ambiguous: AmbiguousTimes) -> Self {
        for record in &mut self.records {
            record.set_ambiguous(ambiguous, &mut self.zone_caches);
        }
        self.zone_caches.iter_mut().for_each(|zone| zone.set_ambiguous(ambiguous));
        self
    }

    /// Adds the column `name`, which reads the records' column `source` as a time in `form`.
    ///
    /// # Errors
    /// Fails if the form is invalid; the text says why.
    pub fn with_time_column(&self, name: &str, source: &str, form: &str) -> Result<Self, String> {
        let mut this = self.clone();
        for record in &mut this.records {
            let Some(i) = record.find(source) else { continue };
            let mut column =
                ColumnLayout::time_column(name, source, form, &mut this.zone_caches, this.default_zone)?;
            if matches!(column.format, ColumnFormat::Time(..)) {
                return Err(format!("`{form}` is a time of day: a layout's column says which `date` it has"));
            }
            let source_column = &record.columns[i];
            (column.start, column.length, column.redefines) =
                (source_column.start, source_column.length, true);
            (column.pad, column.none_values, column.is_expected) =
                (source_column.pad, source_column.none_values.clone(), false);
            record.columns.push(column);
            record.steps = super::plan::steps(&record.columns);
        }
        Ok(this)
    }

    /// Returns whether the time in any column depends on earlier times in the source.
    #[must_use]
    pub fn needs_order(&self) -> bool {
        self.zone_caches.iter().any(|zone| zone.ambiguous() == AmbiguousTimes::ByOrder)
    }

    /// Returns the maximum length of a file's header in bytes, 0 if files have no header. A decoder that begins
    /// further on must see these bytes.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        // Line ends before it, and after.
        self.header.map_or(0, |h| self.records[usize::from(h)].bytes + 64)
    }
}

impl RecordLayout {
    /// Gives each column with local times its own zone, with this choice for times that occur twice or never.
    pub(crate) fn set_ambiguous(&mut self, ambiguous: AmbiguousTimes, zones: &mut Vec<CachedTimeZone>) {
        for column in &mut self.columns {
            let (ColumnFormat::Timestamp(_, zone) | ColumnFormat::Time(_, Some((_, zone)))) =
                &mut column.format
            else {
                continue;
            };
            if let Some(column_zone) = zones.get(usize::from(*zone)).cloned() {
                zones.push(column_zone);
                *zone = zones.len() as u16 - 1;
            }
        }
        self.steps = super::plan::steps(&self.columns);
        zones.iter_mut().for_each(|zone| zone.set_ambiguous(ambiguous));
    }

    /// Adds a column.
    pub(crate) fn push(&mut self, column: ColumnLayout) {
        self.columns.push(column);
    }

    /// Returns the record's name, which is its type.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role of the record.
    #[must_use]
    pub fn role(&self) -> RecordRole {
        self.role
    }

    /// Renames the layout.
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Returns the length of the record in bytes, without its terminator.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the columns, in file order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnLayout] {
        &self.columns
    }

    /// Finds a column by its name and returns its index.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }
}

impl ColumnLayout {
    /// Makes a column of text that the file must have and that may be blank.
    pub(crate) fn text_column(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start: 0,
            length: 0,
            format: ColumnFormat::Text,
            pad: b' ',
            trim: TrimSide::Right,
            squeezes_blanks: false,
            required: false,
            none_values: Vec::new(),
            redefines: false,
            marks: None,
            is_expected: true,
            source: None,
        }
    }

    /// Makes the column `name`, which reads the column `source` as a time in `form`. Local times are in the zone
    /// `default`.
    pub(crate) fn time_column(
        name: &str,
        source: &str,
        form: &str,
        zones: &mut Vec<CachedTimeZone>,
        default: Option<u16>,
    ) -> Result<Self, String> {
        let texts = [form.to_owned()];
        let parse = |kind| TimeForm::parse(&texts, kind, TimeFormOptions::default());
        let mut zone = || {
            let zone = default.and_then(|zone| zones.get(usize::from(zone)).cloned());
            let zone =
                zone.ok_or_else(|| format!("`{form}` is of local times: the layout needs a `zone`"))?;
            // Each column has an order of its own.
            zones.push(zone);
            Ok::<u16, String>(zones.len() as u16 - 1)
        };
        let format = match parse(TimeFormKind::Both) {
            Ok(form) if default.is_none() && form.is_absolute() => {
                ColumnFormat::Timestamp(form, super::build::NO_ZONE)
            }
            Ok(form) => ColumnFormat::Timestamp(form, zone()?),
            Err(reason) => match (parse(TimeFormKind::Time), parse(TimeFormKind::Date)) {
                (Ok(form), _) => ColumnFormat::Time(form, Some((DateSource::Header(0), zone()?))),
                (_, Ok(form)) => ColumnFormat::Date(form),
                _ => return Err(reason),
            },
        };
        let mut column = Self::text_column(name);
        (column.format, column.trim, column.source) = (format, TrimSide::Both, Some(source.to_owned()));
        Ok(column)
    }

    /// Returns the column's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the offset of the column's first byte in the record, from 0.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the column's width in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the name of the column in the file: a column may be read in two ways.
    pub(crate) fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(&self.name)
    }

    /// Explains why `value` is no value of this column, in words that follow the value.
    pub(crate) fn reason(&self, code: RecordFaultCode, value: &[u8]) -> String {
        let (from, to) = super::plan::trim_range(value, self.pad, self.trim);
        let value = &value[from..to];
        match (code, &self.format) {
            (
                RecordFaultCode::BadDate | RecordFaultCode::BadTime,
                ColumnFormat::Timestamp(form, super::build::NO_ZONE),
            ) if form.read(value).is_ok_and(|read| read.offset.is_none()) => {
                TimeFault::NoZone.description().to_owned()
            }
            (
                RecordFaultCode::BadDate | RecordFaultCode::BadTime,
                ColumnFormat::Date(form) | ColumnFormat::Time(form, _) | ColumnFormat::Timestamp(form, _),
            ) => form.reason(value),
            (RecordFaultCode::NumberRange, _) if value.iter().any(|b| matches!(b, b'e' | b'E')) => {
                "has an exponent that leads beyond 64 bits or 30 decimals".to_owned()
            }
            _ => code.description().to_owned(),
        }
    }

    /// Returns whether the column has a value to output; filler and literals have no such value.
    #[must_use]
    pub fn is_output(&self) -> bool {
        !matches!(self.format, ColumnFormat::Filler | ColumnFormat::Literal(_))
    }

    /// Returns whether runs of blanks inside the text become one blank.
    #[must_use]
    pub fn collapses_blanks(&self) -> bool {
        self.squeezes_blanks
    }

    /// Returns the byte that pads the value to the column's width.
    #[must_use]
    pub fn pad(&self) -> u8 {
        self.pad
    }

    /// Returns whether the column has separated values, which have no fixed length.
    pub(crate) fn is_separated(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the numbers may have an exponent. An `E` among the digits of a fixed-width record is a broken
    /// byte.
    pub(crate) fn has_exponents(&self) -> bool {
        self.is_separated()
    }

    /// Returns whether the column holds a number in binary form, not as text.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.format, ColumnFormat::Stored(..))
    }

    /// Returns whether the column holds text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.format, ColumnFormat::Text)
    }

    /// Returns whether the column holds text that ends where its padding begins. No other bytes are removed from it,
    /// and no text means "no value".
    #[must_use]
    pub fn is_plain_text(&self) -> bool {
        self.is_text() && self.trim == TrimSide::Right && !self.squeezes_blanks && self.none_values.is_empty()
    }

    /// Returns whether the column holds one character, where a blank means "no value".
    #[must_use]
    pub fn is_one_character(&self) -> bool {
        self.length == 1 && self.is_text() && self.trim != TrimSide::None && self.none_values.is_empty()
    }

    /// Returns whether the column covers bytes of another column.
    #[must_use]
    pub fn redefines(&self) -> bool {
        self.redefines
    }
}

const BUILT_IN: &[(&str, &str)] = &[
    ("nyse-taq-bbo-98", include_str!("../../../../mappings/layouts/nyse-taq-bbo-98.toml")),
    ("sim-day", include_str!("../../../../mappings/layouts/sim-day.toml")),
];
