//! Columns without a place: those of separated values, which have their sorts from here.

use super::build::{LayoutRefusal, TimeZoneTable, build_column, refuse};
use super::layout::{COLUMNS_MAX, ColumnFormat, DateSource, RecordLayout};
use super::marks::NumberPunctuation;
use super::text::{ColumnLayoutConfig, ColumnType, RecordRole, SignStyle};
use crate::times::CachedTimeZone;
use crate::times::calendar::days;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// Parses a day of eight digits, `YYYYMMDD`.
pub(crate) fn parse_day(digits: &[u8]) -> Option<i32> {
    let date_digits =
        std::str::from_utf8(digits).ok().filter(|d| d.len() == 8 && d.bytes().all(|b| b.is_ascii_digit()))?;
    let yyyymmdd: i64 = date_digits.parse().ok()?;
    days(yyyymmdd / 10_000, yyyymmdd / 100 % 100, yyyymmdd % 100)
}

/// The keys of a layout that hold for all its times.
#[derive(Debug, Default)]
pub(crate) struct CsvTimeKeys {
    pub zone: Option<Spanned<String>>,
    pub ambiguous: Option<Spanned<String>>,
    pub pivot: Option<Spanned<i64>>,
}

/// Builds the columns as a record without offsets, and the zones of its times. A time with the date `file` takes its
/// day from the first value of the header.
///
/// # Errors
/// Fails if the text is invalid; returns the offset of the fault and the reason.
pub(crate) fn build_csv_columns(
    name: Spanned<String>,
    keys: CsvTimeKeys,
    columns: Vec<Spanned<ColumnLayoutConfig>>,
) -> Result<(RecordLayout, Vec<CachedTimeZone>), (usize, String)> {
    build_columns(name, keys, columns).map_err(|LayoutRefusal { offset, reason }| (offset, reason))
}

fn build_columns(
    name: Spanned<String>,
    keys: CsvTimeKeys,
    texts: Vec<Spanned<ColumnLayoutConfig>>,
) -> Result<(RecordLayout, Vec<CachedTimeZone>), LayoutRefusal> {
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.get_ref().is_empty() || name.get_ref().len() > 64 || !name.get_ref().bytes().all(is_name_byte) {
        return refuse(
            &name.span(),
            format!("`{}` is no name: 1 to 64 letters, digits, _ and -", name.get_ref()),
        );
    }
    if texts.len() > COLUMNS_MAX {
        return refuse(&name.span(), format!("{COLUMNS_MAX} columns at most"));
    }
    let mut zones = TimeZoneTable::new(keys.zone.as_ref(), keys.ambiguous.as_ref(), keys.pivot.as_ref())?;
    let mut columns = Vec::new();
    let mut column_names = BTreeSet::new();
    let mut dates = Vec::new();
    for text in texts {
        let (span, mut text) = (text.span(), text.into_inner());
        let column_name = text.name.get_ref();
        if column_name.is_empty()
            || column_name.len() > 128
            || column_name.chars().any(char::is_control)
            || column_name.starts_with('@')
        {
            return refuse(
                &text.name.span(),
                "a column's name has 1 to 128 bytes and does not begin with @".to_owned(),
            );
        }
        if !column_names.insert(column_name.clone()) {
            return refuse(&text.name.span(), format!("two columns are called `{column_name}`"));
        }
        if text.r#type == ColumnType::Filler
            || text.start.is_some()
            || text.length.is_some()
            || text.redefines.is_some()
        {
            return refuse(
                &span,
                "filler, start, length and redefines are for fixed-width records".to_owned(),
            );
        }
        if text.storage != super::text::NumberStorage::Text {
            return refuse(&span, "storage is for fixed-width records".to_owned());
        }
        // Literals are as long as they are.
        let length = text.is.as_ref().map_or(0, |is| is.get_ref().len());
        let none_values = std::mem::take(&mut text.none);
        let mut column = build_column(&text, &span, 0..length, &mut zones)?;
        column.marks = punctuation(&text, &span)?;
        column.none_values = none_values.into_iter().map(|n| n.into_inner().into_bytes()).collect();
        dates.push(text.date);
        columns.push(column);
    }
    for (i, date) in dates.into_iter().enumerate() {
        let Some(date) = date else { continue };
        let date_source = match date.get_ref().as_str() {
            "file" => DateSource::Header(0),
            name => {
                let column_index =
                    columns.iter().position(|c| c.name == name && matches!(c.format, ColumnFormat::Date(_)));
                match column_index {
                    Some(index) => DateSource::Record(index as u16),
                    None => {
                        return refuse(
                            &date.span(),
                            format!("date: no column `{name}` of type date, and not `file`"),
                        );
                    }
                }
            }
        };
        if let ColumnFormat::Time(_, Some((date, _))) = &mut columns[i].format {
            *date = date_source;
        }
    }
    let record = RecordLayout {
        name: name.into_inner(),
        role: RecordRole::Data,
        bytes: 0,
        columns,
        selectors: Vec::new(),
        count: None,
        steps: Vec::new(),
    };
    Ok((record, zones.zones))
}

/// Returns the punctuation of a column's numbers, if the layout names any.
fn punctuation(
    text: &ColumnLayoutConfig,
    span: &Range<usize>,
) -> Result<Option<NumberPunctuation>, LayoutRefusal> {
    let ColumnLayoutConfig { point, thousands, negative, .. } = text;
    if point.is_none() && thousands.is_none() && negative.is_none() {
        return Ok(None);
    }
    let is_number = matches!(text.r#type, ColumnType::Int | ColumnType::Decimal);
    if !is_number || text.sign != SignStyle::None || text.decimals.is_some() {
        let reason = "point, thousands and negative are for int and decimal without `sign` and `decimals`";
        return refuse(span, reason.to_owned());
    }
    let mark_of = |key: &Option<Spanned<String>>, allowed: &str| match key {
        None => Ok(None),
        Some(mark) => match mark.get_ref().as_bytes() {
            [byte] if allowed.as_bytes().contains(byte) => Ok(Some(*byte)),
            _ => refuse(&mark.span(), format!("one of the characters `{allowed}`")),
        },
    };
    let point_mark = mark_of(point, ".,")?.unwrap_or(b'.');
    let thousands_mark = mark_of(thousands, "., '")?;
    if thousands_mark == Some(point_mark) {
        return refuse(span, "point and thousands are the same character".to_owned());
    }
    let negative = negative.as_ref().map(|n| n.get_ref().clone()).unwrap_or_default();
    Ok(Some(NumberPunctuation { decimal_mark: point_mark, thousands: thousands_mark, negative }))
}

/// Returns whether a column's values depend on another column of the same record.
pub(crate) fn needs_other_column(column: &super::ColumnLayout) -> bool {
    matches!(column.format, ColumnFormat::Time(_, Some((DateSource::Record(_), _))))
}
