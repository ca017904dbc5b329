//! From a layout's text to a layout that holds together, or what is wrong with it and where.

use super::ebcdic::CodePage;
use super::error::Error;
use super::layout::{
    COLUMNS_MAX, ColumnFormat, ColumnLayout, DateSource, FixedWidthLayout, RECORD_BYTES_MAX, RecordLayout,
    RecordSelector,
};
use super::plan::steps;
use super::text::{
    ColumnLayoutConfig, ColumnType, FixedLayoutConfig, NumberStorage, OneOrMany, RecordLayoutConfig,
    RecordRole, RecordTerminator, ShortRecordPolicy, SignStyle, TrimSide,
};
use crate::times::{AmbiguousTimes, CachedTimeZone, TimeForm, TimeFormKind, TimeFormOptions};
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// A problem of a layout, and its place in the text.
pub struct LayoutRefusal {
    /// Offset in the text.
    pub offset: usize,
    pub reason: String,
}

pub type LayoutResult<T> = Result<T, LayoutRefusal>;

pub fn refuse<T>(span: &Range<usize>, reason: String) -> LayoutResult<T> {
    Err(LayoutRefusal { offset: span.start, reason })
}

impl FixedWidthLayout {
    /// Reads a layout; `origin` names it in errors.
    ///
    /// # Errors
    /// Fails if the text is no layout; the error has the line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let error_at = |offset: usize, reason: String| {
            let text_before = text.as_bytes().get(..offset).unwrap_or_default();
            let line = 1 + text_before.iter().filter(|b| **b == b'\n').count();
            Error::Layout { origin: origin.to_owned(), line, reason }
        };
        let parsed: Result<FixedLayoutConfig, _> = toml::from_str(text);
        let parsed = parsed.map_err(|e| error_at(e.span().map_or(0, |s| s.start), e.message().to_owned()))?;
        build_layout(parsed).map_err(|wrong| error_at(wrong.offset, wrong.reason))
    }
}

/// Builds a layout.
fn build_layout(text: FixedLayoutConfig) -> LayoutResult<FixedWidthLayout> {
    check_name(&text.name)?;
    let page = match text.encoding.as_ref().filter(|e| e.get_ref() != "ascii") {
        None => None,
        Some(encoding) => match CodePage::by_name(encoding.get_ref()) {
            Some(_) if text.terminator != RecordTerminator::None => {
                let reason = "EBCDIC records have no line ends: terminator = \"none\"".to_owned();
                return refuse(&encoding.span(), reason);
            }
            Some(page) => Some(page),
            None => {
                let choices = "there is: ascii, ebcdic-037, ebcdic-500";
                return refuse(&encoding.span(), format!("encoding `{}`; {choices}", encoding.get_ref()));
            }
        },
    };
    if text.record.is_empty() {
        return refuse(&text.name.span(), "a layout needs a [[record]]".to_owned());
    }
    let mut zones = TimeZoneTable::new(text.zone.as_ref(), text.ambiguous.as_ref(), text.pivot.as_ref())?;
    // The header comes first, so that times can look for its dates.
    let header = text.record.iter().position(|r| r.get_ref().role == RecordRole::Header);
    let mut records: Vec<Option<RecordLayout>> = text.record.iter().map(|_| None).collect();
    let mut record_names = BTreeSet::new();
    let order = header.into_iter().chain((0..text.record.len()).filter(|i| Some(*i) != header));
    for i in order {
        let record = &text.record[i];
        check_name(&record.get_ref().name)?;
        if !record_names.insert(record.get_ref().name.get_ref().clone()) {
            let name = &record.get_ref().name;
            return refuse(&name.span(), format!("two records are called `{}`", name.get_ref()));
        }
        if record.get_ref().role == RecordRole::Header && Some(i) != header {
            return refuse(&record.span(), "a second header; a file has one".to_owned());
        }
        let header_layout = header.and_then(|h| records[h].as_ref());
        records[i] = Some(build_record(&text, record, header_layout, &mut zones)?);
    }
    let records: Vec<RecordLayout> = records.into_iter().flatten().collect();
    for (record, text) in records.iter().zip(&text.record) {
        let matches_all = record.role != RecordRole::Header && record.selectors.is_empty();
        let repeats_last = records.last().is_some_and(|l| l.name == record.name);
        if matches_all && !repeats_last {
            let reason =
                "every record behind this one is this one: give it a `when`, or put it last".to_owned();
            return refuse(&text.span(), reason);
        }
        if matches_all && record.role == RecordRole::Trailer {
            return refuse(&text.span(), "a trailer needs a `when` to be known by".to_owned());
        }
    }
    let record_bytes_max = records.iter().map(|r| r.bytes).max().unwrap_or(0);
    if text.terminator == RecordTerminator::None
        && let Some((_, mismatch)) =
            records.iter().zip(&text.record).find(|(record, _)| record.bytes != record_bytes_max)
    {
        let reason =
            format!("without a terminator all records have the same length, here {record_bytes_max}");
        return refuse(&mismatch.span(), reason);
    }
    Ok(FixedWidthLayout {
        name: text.name.into_inner(),
        title: text.title,
        terminator: text.terminator,
        short: text.short,
        header: header.map(|h| h as u16),
        records,
        // The layout's own zone is the first.
        default_zone: text.zone.is_some().then_some(0),
        zone_caches: zones.zones,
        record_bytes_max,
        page,
    })
}

/// The zone of a column whose values say themselves which moment they are.
pub const NO_ZONE: u16 = u16::MAX;

/// The zones of a layout's columns, and what holds for columns that do not say it.
#[derive(Default)]
pub struct TimeZoneTable {
    names: Vec<String>,
    pub zones: Vec<CachedTimeZone>,
    /// The layout's zone, for columns that name no zone.
    default_zone: Option<Spanned<String>>,
    ambiguous: AmbiguousTimes,
    pub pivot: Option<i64>,
}

impl TimeZoneTable {
    /// Makes the zone table of a layout from these keys. If the layout has a zone, it comes first.
    pub fn new(
        zone: Option<&Spanned<String>>,
        ambiguous: Option<&Spanned<String>>,
        pivot: Option<&Spanned<i64>>,
    ) -> LayoutResult<Self> {
        let ambiguous = ambiguous.map(ambiguous_times).transpose()?.unwrap_or_default();
        let pivot = pivot.map(pivot_year).transpose()?;
        let mut table = TimeZoneTable { ambiguous, pivot, default_zone: zone.cloned(), ..Self::default() };
        if let Some(zone) = zone {
            table.id(zone, ambiguous)?;
        }
        Ok(table)
    }

    /// Returns the zone of a column, if the column or the layout names one.
    pub fn of_column(&mut self, text: &ColumnLayoutConfig) -> LayoutResult<Option<u16>> {
        let ambiguous = text.ambiguous.as_ref().map(ambiguous_times).transpose()?.unwrap_or(self.ambiguous);
        match text.zone.clone().or_else(|| self.default_zone.clone()) {
            Some(name) => self.id(&name, ambiguous).map(Some),
            None => Ok(None),
        }
    }

    fn id(&mut self, name: &Spanned<String>, ambiguous: AmbiguousTimes) -> LayoutResult<u16> {
        let is_same_zone =
            |(n, zone): (&String, &CachedTimeZone)| n == name.get_ref() && zone.ambiguous() == ambiguous;
        // Each column has an order of its own.
        let shared = ambiguous != AmbiguousTimes::ByOrder;
        if let Some(i) = self.names.iter().zip(&self.zones).position(is_same_zone).filter(|_| shared) {
            return Ok(i as u16);
        }
        let zone = CachedTimeZone::by_name(name.get_ref()).or_else(|reason| refuse(&name.span(), reason))?;
        self.zones.push(zone.with_ambiguous(ambiguous));
        self.names.push(name.get_ref().clone());
        Ok(self.names.len() as u16 - 1)
    }
}

fn ambiguous_times(word: &Spanned<String>) -> LayoutResult<AmbiguousTimes> {
    AmbiguousTimes::by_name(word.get_ref()).map_or_else(
        || {
            refuse(
                &word.span(),
                "ambiguous: refuse, first, second or by-order; see docs/time-forms.md".to_owned(),
            )
        },
        Ok,
    )
}

/// Returns the first year of the century that two digits mean: `70` and `1970` are the same.
fn pivot_year(pivot: &Spanned<i64>) -> LayoutResult<i64> {
    match *pivot.get_ref() {
        short @ 0..=99 => Ok(1900 + short),
        year @ 1678..=2161 => Ok(year),
        _ => refuse(
            &pivot.span(),
            "pivot: the first of the hundred years that two digits mean, such as 1970; see docs/time-forms.md".to_owned(),
        ),
    }
}

fn check_name(name: &Spanned<String>) -> LayoutResult<()> {
    let text = name.get_ref();
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(is_name_byte) {
        return refuse(&name.span(), format!("`{text}` is no name: 1 to 64 letters, digits, _ and -"));
    }
    Ok(())
}

fn build_record(
    layout: &FixedLayoutConfig,
    record: &Spanned<RecordLayoutConfig>,
    header: Option<&RecordLayout>,
    zones: &mut TimeZoneTable,
) -> LayoutResult<RecordLayout> {
    let (span, text) = (record.span(), record.get_ref());
    if text.column.is_empty() || text.column.len() > COLUMNS_MAX {
        return refuse(&span, format!("a record has 1 to {COLUMNS_MAX} columns"));
    }
    let mut columns: Vec<ColumnLayout> = Vec::new();
    let mut next_offset = 0;
    for column in &text.column {
        let (span, text) = (column.span(), column.get_ref());
        check_name(&text.name)?;
        // Filler has no name to be found by.
        let is_duplicate =
            text.r#type != ColumnType::Filler && columns.iter().any(|c| c.name == *text.name.get_ref());
        if is_duplicate {
            return refuse(&text.name.span(), format!("two columns are called `{}`", text.name.get_ref()));
        }
        if text.storage != NumberStorage::Text && layout.terminator != RecordTerminator::None {
            let reason = "such a number may hold a line end: terminator = \"none\"".to_owned();
            return refuse(&span, reason);
        }
        if matches!(text.storage, NumberStorage::Binary | NumberStorage::Unsigned)
            && layout.short == ShortRecordPolicy::Pad
        {
            let reason =
                "a record that may end early (short = \"pad\") has no blank for such a number".to_owned();
            return refuse(&span, reason);
        }
        let range = column_range(text, &span, &columns, next_offset)?;
        if text.redefines.is_none() {
            next_offset = range.end;
        }
        if text.point.is_some() || text.thousands.is_some() || text.negative.is_some() {
            return refuse(&span, "point, thousands and negative are for separated values".to_owned());
        }
        columns.push(build_column(text, &span, range, zones)?);
    }
    let stated = text.bytes.as_ref().or(layout.record_bytes.as_ref());
    let bytes = stated.map_or(next_offset, |b| *b.get_ref());
    if bytes == 0 || bytes > RECORD_BYTES_MAX {
        let bytes_span = stated.map_or(span, Spanned::span);
        return refuse(&bytes_span, format!("a record has 1 to {RECORD_BYTES_MAX} bytes, not {bytes}"));
    }
    check_cover(&columns, text, &span, bytes)?;
    find_dates(text, &mut columns, header)?;
    let find = |name: &Spanned<String>, key: &str| {
        let index = columns.iter().position(|c| c.name == *name.get_ref());
        index.map_or_else(|| refuse(&name.span(), format!("{key}: no column `{}`", name.get_ref())), Ok)
    };
    let count = match &text.count {
        None => None,
        Some(name) if text.role == RecordRole::Data => {
            return refuse(&name.span(), "a header or trailer counts records, data do not".to_owned());
        }
        Some(name) => match find(name, "count")? {
            i if matches!(columns[i].format, ColumnFormat::Int(_) | ColumnFormat::Stored(_, None)) => {
                Some(i as u16)
            }
            _ => return refuse(&name.span(), "count: the column must be of type int".to_owned()),
        },
    };
    let mut selectors = Vec::new();
    for (name, values) in &text.when {
        let Some(column) = columns.iter().find(|c| c.name == *name) else {
            return refuse(&values.span(), format!("when: no column `{name}`"));
        };
        let padded = |v: &String| column.pad_value(v.as_bytes());
        let Some(list) = values.get_ref().list().iter().map(padded).collect::<Option<Vec<_>>>() else {
            return refuse(&values.span(), format!("when: longer than column `{name}`"));
        };
        selectors.push(RecordSelector { range: column.start..column.start + column.length, values: list });
    }
    let steps = steps(&columns);
    let name = text.name.get_ref().clone();
    Ok(RecordLayout { name, role: text.role, bytes, columns, selectors, count, steps })
}

/// Computes where a column lies.
fn column_range(
    text: &ColumnLayoutConfig,
    span: &Range<usize>,
    before: &[ColumnLayout],
    next: usize,
) -> LayoutResult<Range<usize>> {
    let redefined_range = match &text.redefines {
        None => None,
        Some(name) => match before.iter().find(|c| c.name == *name.get_ref() && !c.redefines) {
            Some(c) => Some(c.start..c.start + c.length),
            None => return refuse(&name.span(), format!("redefines: no column `{}` before", name.get_ref())),
        },
    };
    let column_start = match &text.start {
        Some(start) if *start.get_ref() == 0 => {
            return refuse(&start.span(), "start counts from 1".to_owned());
        }
        Some(start) => start.get_ref() - 1,
        None => redefined_range.as_ref().map_or(next, |w| w.start),
    };
    let (length_span, length) = match (&text.length, &redefined_range) {
        (Some(length), _) => (length.span(), *length.get_ref()),
        (None, Some(range)) => (span.clone(), range.end.saturating_sub(column_start)),
        (None, None) => return refuse(span, format!("column `{}` needs a length", text.name.get_ref())),
    };
    if length == 0 || length > RECORD_BYTES_MAX || column_start > RECORD_BYTES_MAX {
        return refuse(&length_span, format!("a column has 1 to {RECORD_BYTES_MAX} bytes within its record"));
    }
    if let Some(range) = redefined_range
        && (column_start < range.start || column_start + length > range.end)
    {
        let reason = format!("it must lie within bytes {} to {}", range.start + 1, range.end);
        return refuse(&text.redefines.as_ref().map_or(length_span, Spanned::span), reason);
    }
    Ok(column_start..column_start + length)
}

/// Checks that every byte of the record belongs to one column.
fn check_cover(
    columns: &[ColumnLayout],
    text: &RecordLayoutConfig,
    span: &Range<usize>,
    bytes: usize,
) -> LayoutResult<()> {
    let mut order: Vec<usize> = (0..columns.len()).filter(|i| !columns[*i].redefines).collect();
    order.sort_by_key(|i| columns[*i].start);
    let (mut end, mut last) = (0, None::<&ColumnLayout>);
    for i in order {
        let (column, span) = (&columns[i], text.column[i].span());
        let (first, column_end) = (column.start, column.start + column.length);
        if column_end > bytes {
            let reason = format!("column `{}` ends at byte {column_end}, the record at {bytes}", column.name);
            return refuse(&span, reason);
        }
        if first < end {
            let last_name = last.map_or("", |c| c.name.as_str());
            let reason =
                format!("column `{}` begins at byte {}, inside `{last_name}`", column.name, first + 1);
            return refuse(&span, reason);
        }
        if first > end {
            return refuse(&span, byte_gap(end, first));
        }
        (end, last) = (column_end, Some(column));
    }
    if end < bytes { refuse(span, byte_gap(end, bytes)) } else { Ok(()) }
}

fn byte_gap(from: usize, to: usize) -> String {
    format!("bytes {} to {to} belong to no column; name them, or say type = \"filler\"", from + 1)
}

pub fn build_column(
    text: &ColumnLayoutConfig,
    span: &Range<usize>,
    range: Range<usize>,
    zones: &mut TimeZoneTable,
) -> LayoutResult<ColumnLayout> {
    let length = range.len();
    let pad = match &text.pad {
        None => b' ',
        Some(pad) => match pad.get_ref().as_bytes() {
            [byte] => *byte,
            _ => return refuse(&pad.span(), "pad: one byte".to_owned()),
        },
    };
    if pad.is_ascii_digit() && matches!(text.r#type, ColumnType::Int | ColumnType::Decimal) {
        let pad_span = text.pad.as_ref().map_or(span.clone(), Spanned::span);
        return refuse(
            &pad_span,
            "pad: a digit would be taken off a number; leading zeros need no pad".to_owned(),
        );
    }
    let has_zone = matches!(text.r#type, ColumnType::Time | ColumnType::Timestamp);
    let zone = if has_zone || text.zone.is_some() { zones.of_column(text)? } else { None };
    let pivot = text.pivot.as_ref().map(pivot_year).transpose()?.or(zones.pivot);
    only_for(text, &text.decimals, &[ColumnType::Decimal], "decimals")?;
    only_for(text, &text.form, &[ColumnType::Date, ColumnType::Time, ColumnType::Timestamp], "form")?;
    only_for(text, &text.date, &[ColumnType::Time], "date")?;
    only_for(text, &text.pivot, &[ColumnType::Date, ColumnType::Timestamp], "pivot")?;
    only_for(text, &text.ambiguous, &[ColumnType::Time, ColumnType::Timestamp], "ambiguous")?;
    only_for(text, &text.yes, &[ColumnType::Flag], "yes")?;
    only_for(text, &text.no, &[ColumnType::Flag], "no")?;
    only_for(text, &text.is, &[ColumnType::Literal], "is")?;
    if text.sign != SignStyle::None && !matches!(text.r#type, ColumnType::Int | ColumnType::Decimal) {
        return refuse(span, "`sign` is for numbers".to_owned());
    }
    if text.storage != NumberStorage::Text {
        let length_max = if text.storage == NumberStorage::Packed { 16 } else { 8 };
        if !matches!(text.r#type, ColumnType::Int | ColumnType::Decimal)
            || text.sign != SignStyle::None
            || !text.none.is_empty()
        {
            let reason =
                "`storage` is for int and decimal, has its own sign, and goes without `none`".to_owned();
            return refuse(span, reason);
        }
        if text.r#type == ColumnType::Decimal && text.decimals.is_none() {
            return refuse(span, "such a number has no point: say `decimals`".to_owned());
        }
        if length > length_max {
            return refuse(span, format!("such a number has 1 to {length_max} bytes"));
        }
    }
    let form = |wanted: TimeFormKind, example: &str| match &text.form {
        None => refuse(span, format!("it needs a form, such as {example}; see docs/time-forms.md")),
        Some(form) => match TimeForm::parse(form.get_ref().list(), wanted, TimeFormOptions { pivot }) {
            // Separated values have no length.
            Ok(f) => match f.fixed_length().filter(|n| length > 0 && *n != length) {
                None => Ok(f),
                Some(n) => refuse(&form.span(), format!("the form has {n} bytes, the column {length}")),
            },
            Err(reason) => refuse(&form.span(), reason),
        },
    };
    let needs_zone = |subject: &str| match zone {
        Some(zone) => Ok(zone),
        None => refuse(span, format!("{subject}: it needs a `zone`, such as UTC or America/New_York")),
    };
    let format = match text.r#type {
        ColumnType::Text => ColumnFormat::Text,
        ColumnType::Int if text.storage != NumberStorage::Text => ColumnFormat::Stored(text.storage, None),
        ColumnType::Int => ColumnFormat::Int(text.sign),
        ColumnType::Decimal => match &text.decimals {
            Some(d) if *d.get_ref() > 18 => {
                return refuse(&d.span(), "decimals: 18 at most".to_owned());
            }
            d if text.storage != NumberStorage::Text => {
                ColumnFormat::Stored(text.storage, d.as_ref().map(|d| *d.get_ref()))
            }
            d => ColumnFormat::Decimal(text.sign, d.as_ref().map(|d| *d.get_ref())),
        },
        ColumnType::Date => ColumnFormat::Date(form(TimeFormKind::Date, "YYYYMMDD")?),
        // The date is looked up when all columns are known.
        ColumnType::Time => {
            let form = form(TimeFormKind::Time, "HHMMSSfff")?;
            let date = match &text.date {
                Some(_) => Some((DateSource::Record(0), needs_zone("a time with a date is an instant")?)),
                None => None,
            };
            ColumnFormat::Time(form, date)
        }
        ColumnType::Timestamp => {
            let form = form(TimeFormKind::Both, "YYYYMMDDHHMMSS")?;
            let zone = match zone {
                None if form.is_absolute() => NO_ZONE,
                _ => needs_zone("a timestamp is an instant")?,
            };
            ColumnFormat::Timestamp(form, zone)
        }
        ColumnType::Flag => {
            let list = |values: &Option<Spanned<OneOrMany>>, default: &str| match values {
                None => vec![default.as_bytes().to_vec()],
                Some(v) => v.get_ref().list().iter().map(|v| v.clone().into_bytes()).collect(),
            };
            ColumnFormat::Flag { yes: list(&text.yes, "Y"), no: list(&text.no, "N") }
        }
        ColumnType::Literal => match &text.is {
            Some(is) if is.get_ref().len() == length => {
                ColumnFormat::Literal(is.get_ref().clone().into_bytes())
            }
            Some(is) => return refuse(&is.span(), format!("`is` must have the column's {length} bytes")),
            None => return refuse(span, "a literal needs `is`".to_owned()),
        },
        ColumnType::Filler => ColumnFormat::Filler,
    };
    let trims_right_only = matches!(format, ColumnFormat::Text | ColumnFormat::Flag { .. });
    let mut column = ColumnLayout {
        name: text.name.get_ref().clone(),
        start: range.start,
        length,
        format,
        pad,
        trim: text.trim.unwrap_or(if trims_right_only { TrimSide::Right } else { TrimSide::Both }),
        squeezes_blanks: text.squeeze,
        required: text.required,
        none_values: Vec::new(),
        redefines: text.redefines.is_some(),
        marks: None,
        is_expected: false,
        source: None,
    };
    for value in &text.none {
        match column.pad_value(value.get_ref().as_bytes()) {
            Some(padded) => column.none_values.push(padded),
            None => return refuse(&value.span(), "none: longer than the column".to_owned()),
        }
    }
    Ok(column)
}

fn only_for<T>(
    text: &ColumnLayoutConfig,
    key: &Option<Spanned<T>>,
    types: &[ColumnType],
    name: &str,
) -> LayoutResult<()> {
    match key {
        Some(key) if !types.contains(&text.r#type) => {
            refuse(&key.span(), format!("`{name}` does not go with this type of column"))
        }
        _ => Ok(()),
    }
}

/// Finds the date columns that times name.
fn find_dates(
    text: &RecordLayoutConfig,
    columns: &mut [ColumnLayout],
    header: Option<&RecordLayout>,
) -> LayoutResult<()> {
    for i in 0..columns.len() {
        let Some(name) = &text.column[i].get_ref().date else { continue };
        let is_date = |c: &ColumnLayout| matches!(c.format, ColumnFormat::Date(_));
        let date_source = match name.get_ref().strip_prefix("header.") {
            Some(in_header) => header
                .and_then(|h| h.columns.iter().position(|c| c.name == in_header && is_date(c)))
                .map(|i| DateSource::Header(i as u16)),
            None => columns
                .iter()
                .position(|c| c.name == *name.get_ref() && is_date(c))
                .map(|i| DateSource::Record(i as u16)),
        };
        let Some(date_source) = date_source else {
            let reason = format!("date: no column `{}` of type date", name.get_ref());
            return refuse(&name.span(), reason);
        };
        if let ColumnFormat::Time(_, Some((date, _))) = &mut columns[i].format {
            *date = date_source;
        }
    }
    Ok(())
}

impl ColumnLayout {
    /// Pads `value` as in the column; `None` if it is too long.
    fn pad_value(&self, value: &[u8]) -> Option<Vec<u8>> {
        let blank = self.length.checked_sub(value.len())?;
        let blanks = std::iter::repeat_n(self.pad, blank);
        Some(match self.trim {
            TrimSide::Left => blanks.chain(value.iter().copied()).collect(),
            _ => value.iter().copied().chain(blanks).collect(),
        })
    }
}
