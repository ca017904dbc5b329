//! Rows out of bytes.

use super::fault::{CsvFault, CsvFaultCode};
use super::layout::{CsvLayout, TextEncoding};
use super::needs::ColumnChoice;
use super::preamble::{self, Preamble};
use super::row::{RowScanOutcome, RowValueSpans, ValueSpan, has_bare_return};
use super::simd::CsvKernel;
use crate::charset::Charset;
use crate::fixed::inside::{ColumnBytes, ColumnLayout, RecordContext, needs_other_column, read};
use crate::fixed::{self, ColumnValue};
use crate::foreign::{EndPadding, ForeignInput};
use crate::times::CachedTimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use unitape_base::{FramedLine, NextFrame, Span};

/// The next row of the input. A bad row is a row, too: only the layout can describe its fault.
pub type NextCsvRow = NextFrame<FramedCsvRow, Infallible>;

/// A row: its part in the file, or its fault.
pub type FramedCsvRow = FramedLine<Result<CsvRowKind, CsvFault>>;

/// The part of a row in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvRowKind {
    /// The header; [`CsvRowDecoder::names`] are its names.
    Header,
    /// A row of values, which are [`CsvRowDecoder::values`].
    Row,
    /// The trailer, and the number of rows that it states.
    Trailer(Option<u64>),
}

/// Decodes rows by a layout.
///
/// ```
/// use unitape_codec::csv::{CsvRowDecoder, CsvRowKind, CsvLayout, NextCsvRow};
/// use unitape_codec::fixed::ColumnValue;
///
/// let layout = r#"
///     name = "prices"
///     separator = "semicolon"
///     column = [{ name = "price", type = "decimal" }]
///     "#;
/// let mut decoder = CsvRowDecoder::new(std::sync::Arc::new(CsvLayout::parse(layout, "prices.toml").unwrap()));
/// let bytes = b"symbol;price\n\"A;B\";12.50\nC;none\n";
/// let NextCsvRow::Message(header) = decoder.next(bytes, 0, 0, true) else { panic!() };
/// let NextCsvRow::Message(row) = decoder.next(bytes, header.end, 0, true) else { panic!() };
/// assert_eq!((header.content, row.content), (Ok(CsvRowKind::Header), Ok(CsvRowKind::Row)));
/// assert_eq!(decoder.values()[0], ColumnValue::Decimal { mantissa: 125, exponent: -1 });
/// let NextCsvRow::Message(row) = decoder.next(bytes, row.end, 0, true) else { panic!() };
/// assert_eq!(row.content.unwrap_err().code.as_str(), "bad_number");
/// ```
#[derive(Debug, Clone)]
pub struct CsvRowDecoder {
    layout: Arc<CsvLayout>,
    kernel: CsvKernel,
    row: RowValueSpans,
    /// Values of the layout's columns.
    column_values: Vec<ColumnValue>,
    /// Values of columns that only the file has: the index of the column's name, and where the text is.
    extra_spans: Vec<(u16, ValueSpan)>,
    header: CsvHeader,
    /// The day of the file, where times look for it.
    day: [ColumnValue; 1],
    zone_caches: Vec<CachedTimeZone>,
    /// A row with the values after it whose quotes were doubled.
    extended_record: Vec<u8>,
    uses_extended_record: bool,
    /// Columns in the order in which they can be read.
    read_order: Vec<u16>,
}

/// The columns of the file.
#[derive(Debug, Clone, Default)]
struct CsvHeader {
    column_names: Vec<String>,
    /// Column of the layout, by column of the file.
    layout_columns: Vec<Option<u16>>,
    /// Column of the file, by column of the layout.
    file_columns: Vec<Option<u16>>,
    header_state: CsvHeaderState,
    /// The file has it, and not the layout alone.
    is_row: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CsvHeaderState {
    /// The next row is the header.
    #[default]
    Awaited,
    Known,
    /// The layout knows the columns, and the next row may be a header that names them.
    Optional,
    /// It could not be read.
    Bad,
}

impl CsvRowDecoder {
    /// Makes a decoder for `layout`.
    #[must_use]
    pub fn new(layout: Arc<CsvLayout>) -> Self {
        let columns = layout.row.columns();
        let mut order: Vec<u16> = (0..columns.len() as u16).collect();
        order.sort_by_key(|i| needs_other_column(&columns[usize::from(*i)]));
        let mut this = CsvRowDecoder {
            kernel: CsvKernel::best(),
            row: RowValueSpans { separator: layout.separator, ..RowValueSpans::default() },
            column_values: vec![ColumnValue::None; columns.len()],
            extra_spans: Vec::new(),
            header: CsvHeader::default(),
            day: [layout.day.map_or(ColumnValue::None, ColumnValue::Date)],
            zone_caches: layout.zone_caches.clone(),
            extended_record: Vec::new(),
            uses_extended_record: false,
            read_order: order,
            layout,
        };
        this.begin_file();
        this
    }

    /// Replaces the kernel by the portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.kernel = CsvKernel::PORTABLE;
        self
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Arc<CsvLayout> {
        &self.layout
    }

    /// Begins a file: forgets the header of the previous file.
    pub fn begin_file(&mut self) {
        self.header = CsvHeader::default();
        self.row.separator = self.layout.separator;
        if !self.layout.header {
            let source_columns = self.layout.row.columns().iter().filter(|c| c.source() == c.name());
            let names = source_columns.map(|c| c.name().to_owned()).collect();
            _ = self.set_column_names(names);
            (self.header.header_state, self.header.is_row) = (CsvHeaderState::Optional, false);
        }
    }

    /// Returns how many rows of the file are a header: 0 or 1.
    #[must_use]
    pub fn header_rows(&self) -> u64 {
        u64::from(self.layout.header || self.header.is_row)
    }

    /// Begins a source: forgets the order of the times in the previous source.
    pub fn begin_source(&mut self) {
        self.zone_caches.iter_mut().for_each(CachedTimeZone::begin_source);
    }

    /// Takes over what another decoder of the same columns knew of the order of its source's times.
    pub fn resume_from(&mut self, before: &Self) {
        CachedTimeZone::resume_all(&mut self.zone_caches, &before.zone_caches);
    }

    /// Sets the file's name, which may contain its day.
    pub fn set_name(&mut self, name: &str) {
        let day = self.layout.day.or_else(|| CsvLayout::day_of(name));
        self.day = [day.map_or(ColumnValue::None, ColumnValue::Date)];
    }

    /// Takes the header out of the first bytes of a file, for a decoder that begins further on.
    pub fn read_header(&mut self, head: &[u8]) {
        self.begin_file();
        if !self.layout.header {
            if !head.is_empty() {
                _ = self.next(head, 0, 0, true);
            }
            if self.header.header_state == CsvHeaderState::Optional {
                self.header.header_state = CsvHeaderState::Known;
            }
        } else if self.header.header_state == CsvHeaderState::Awaited {
            _ = self.next(head, 0, 0, true);
            if self.header.header_state == CsvHeaderState::Awaited {
                self.header.header_state = CsvHeaderState::Bad;
            }
        }
    }

    /// Returns the header with its line end and all bytes before it; `bytes` must be the first bytes of a file. If
    /// the file cannot be read, returns the bytes that show why. Returns an empty slice if the file has neither.
    #[must_use]
    pub fn head<'b>(layout: &Arc<CsvLayout>, bytes: &'b [u8]) -> &'b [u8] {
        let mut decoder = CsvRowDecoder::new(layout.clone());
        match decoder.next(bytes, 0, 0, true) {
            NextCsvRow::Message(row) if layout.header || row.content == Ok(CsvRowKind::Header) => {
                &bytes[..row.end]
            }
            NextCsvRow::Message(row)
                if row.content.is_err() && decoder.header.header_state == CsvHeaderState::Bad =>
            {
                &bytes[..row.end.min(BAD_START_BYTES)]
            }
            NextCsvRow::Incomplete { .. } | NextCsvRow::End if layout.header => bytes,
            _ => preamble::separator_line(bytes),
        }
    }

    /// Returns the values of the last row, by layout column.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[ColumnValue] {
        &self.column_values
    }

    /// Returns name and text of each value in the last row whose column the layout does not name. They come in file
    /// order, without empty values.
    pub fn extra_values<'r>(&'r self, record: &'r [u8]) -> impl Iterator<Item = (&'r str, &'r [u8])> {
        self.extra_spans.iter().map(move |(i, span)| {
            let text = record.get(span.start as usize..span.end as usize).unwrap_or_default();
            (self.header.column_names[usize::from(*i)].as_str(), text)
        })
    }

    /// Returns the bytes that the offsets in the last row's values refer to. These bytes are `raw`, or a copy of it
    /// followed by the values that had doubled quotes.
    #[inline]
    #[must_use]
    pub fn record<'r>(&'r self, raw: &'r [u8]) -> &'r [u8] {
        if self.uses_extended_record { &self.extended_record } else { raw }
    }

    /// Returns whether the file has this layout column; true for a number that is no column.
    #[inline]
    #[must_use]
    pub fn has_column(&self, column: u16) -> bool {
        self.header.file_columns.get(usize::from(column)).is_none_or(Option::is_some)
    }

    /// Returns the column names, in file order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.header.column_names
    }

    /// Returns name and text of each value in the last trailer.
    pub fn trailer<'r>(&'r self, record: &'r [u8]) -> impl Iterator<Item = (&'r str, &'r [u8])> {
        let trailer_columns = self.layout.trailer.as_ref().map_or(&[][..], |t| &t.columns);
        trailer_columns
            .iter()
            .zip(&self.row.spans)
            .map(|(name, span)| (name.as_str(), self.value_text(record, *span)))
    }

    /// Reads the next part, at `buf[offset..]`; `base` is the offset of `buf[0]` in its file, `eof` whether nothing
    /// follows. The answer depends only on the bytes from there on and on the header, never on where the buffer ends.
    pub fn next(&mut self, buf: &[u8], offset: usize, base: u64, eof: bool) -> NextCsvRow {
        let length_max = self.layout.row_bytes_max;
        let mut search_offset = offset;
        if base + offset as u64 == 0 {
            match self.preamble(buf, eof) {
                Preamble::Until(end) => search_offset = end,
                Preamble::More(need) => return NextCsvRow::Incomplete { from: 0, need },
                Preamble::Bad { span, fault, end } => {
                    self.header.header_state = CsvHeaderState::Bad;
                    return row_outcome(span, end, Err(fault));
                }
            }
        }
        loop {
            // Empty lines say nothing.
            while search_offset < buf.len() && matches!(buf[search_offset], b'\n' | b'\r') {
                search_offset += 1;
            }
            // The start of the file is kept, for a mark at it to be known.
            let keep_from = if base + offset as u64 == 0 { offset } else { search_offset };
            if search_offset >= buf.len() {
                return if eof {
                    NextCsvRow::End
                } else {
                    NextCsvRow::Incomplete { from: keep_from, need: search_offset + 1 }
                };
            }
            // A file of padding alone is no file of this format.
            if base + search_offset as u64 > 0 {
                match EndPadding::check(&buf[search_offset..], eof) {
                    EndPadding::No => {}
                    EndPadding::Is => return NextCsvRow::End,
                    EndPadding::Undecided => {
                        return NextCsvRow::Incomplete { from: keep_from, need: buf.len() + 1 };
                    }
                }
            }
            if Some(buf[search_offset]) == self.layout.comment {
                match memchr::memchr(
                    b'\n',
                    &buf[search_offset..buf.len().min(search_offset + length_max + 2)],
                ) {
                    Some(end) => {
                        search_offset += end + 1;
                        continue;
                    }
                    None if buf.len() - search_offset >= length_max + 2 => {
                        let span = Span { start: search_offset, end: search_offset + length_max };
                        let fault = CsvFault::numbers(CsvFaultCode::LongRow, length_max, length_max + 2);
                        return row_outcome(span, span.end, Err(fault));
                    }
                    None if eof && has_bare_return(&buf[search_offset..]) => {
                        let fault = CsvFault::from_code(CsvFaultCode::BareReturn);
                        let span = Span { start: search_offset, end: buf.len() };
                        return row_outcome(span, buf.len(), Err(fault));
                    }
                    None if eof => return NextCsvRow::End,
                    None => return NextCsvRow::Incomplete { from: keep_from, need: buf.len() + 1 },
                }
            }
            let (length, end) = match self.row.read_row(&self.layout, self.kernel, &buf[search_offset..], eof)
            {
                RowScanOutcome::Whole { length, end } => (length, end),
                RowScanOutcome::Bad { fault, length, end } => {
                    let span = Span { start: search_offset, end: search_offset + length };
                    self.header.header_state = match self.header.header_state {
                        CsvHeaderState::Awaited => CsvHeaderState::Bad,
                        CsvHeaderState::Optional => CsvHeaderState::Known,
                        state => state,
                    };
                    return row_outcome(span, search_offset + end, Err(fault));
                }
                RowScanOutcome::More => {
                    return NextCsvRow::Incomplete { from: keep_from, need: buf.len() + 1 };
                }
            };
            let span = Span { start: search_offset, end: search_offset + length };
            return row_outcome(span, search_offset + end, self.classify_row(span.slice(buf)));
        }
    }

    /// Puts the values of the current row where they can be read as UTF-8.
    #[inline]
    fn place_values(&mut self, raw: &[u8]) {
        self.uses_extended_record = !self.row.unquoted_text.is_empty();
        if self.uses_extended_record {
            self.extended_record.clear();
            self.extended_record.extend_from_slice(raw);
            self.extended_record.extend_from_slice(&self.row.unquoted_text);
            for span in self.row.spans.iter_mut().filter(|p| p.is_in_text) {
                span.start += raw.len() as u32;
                span.end += raw.len() as u32;
            }
        }
        if let TextEncoding::Declared(charset) = self.layout.encoding
            && !raw.is_ascii()
        {
            self.transcode_values(raw, charset);
        }
    }

    /// Sets the separator that the file states.
    pub(super) fn set_separator(&mut self, separator: u8) {
        self.row.separator = separator;
    }

    /// Reads the row that `input` begins with.
    pub(super) fn scan_row(&mut self, input: &[u8], eof: bool) -> RowScanOutcome {
        self.row.read_row(&self.layout, self.kernel, input, eof)
    }

    /// Returns the values of the current row as names.
    fn row_names(&self, raw: &[u8]) -> Result<Vec<String>, CsvFault> {
        let header_names = self.row.spans.iter().map(|p| {
            let text = self.value_text(self.record(raw), *p);
            std::str::from_utf8(text)
                .map(|t| t.trim().to_owned())
                .map_err(|_| CsvFault::from_code(CsvFaultCode::NotUtf8))
        });
        header_names.collect()
    }

    /// Returns the column names that this row gives if it is the header.
    pub(super) fn names_of(&mut self, raw: &[u8]) -> Option<Vec<String>> {
        self.place_values(raw);
        let names = self.row_names(raw).and_then(number_names).ok()?;
        Some(names.names)
    }

    /// Returns whether each value of the current row is the name of a column.
    #[cold]
    fn names_columns(&self, raw: &[u8]) -> bool {
        let columns = self.layout.row.columns();
        let is_column = |name: &String| columns.iter().any(|column| column.source() == name);
        let names = self.row_names(raw).and_then(number_names).map(|numbered| numbered.names);
        names.is_ok_and(|names| !names.is_empty() && names.iter().all(is_column))
    }

    fn classify_row(&mut self, raw: &[u8]) -> Result<CsvRowKind, CsvFault> {
        self.place_values(raw);
        if self.header.header_state == CsvHeaderState::Optional {
            self.header.header_state = match self.names_columns(raw) {
                true => CsvHeaderState::Awaited,
                false => CsvHeaderState::Known,
            };
        }
        if self.header.header_state == CsvHeaderState::Awaited {
            let names = self.row_names(raw).and_then(|names| self.set_column_names(names));
            if names.is_err() {
                self.header.header_state = CsvHeaderState::Bad;
            }
            return names.map(|()| CsvRowKind::Header);
        }
        if let Some(trailer) = &self.layout.trailer
            && self
                .row
                .spans
                .first()
                .is_some_and(|p| self.value_text(self.record(raw), *p) == &trailer.first_value[..])
        {
            let text =
                trailer.count.map(|i| self.row.spans.get(i).map(|p| self.value_text(self.record(raw), *p)));
            let count = match text {
                None => None,
                Some(text) => {
                    let text = text.and_then(|t| std::str::from_utf8(t).ok()).map(str::trim);
                    let digits = text.filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()));
                    let count = digits.and_then(|d| d.parse().ok());
                    Some(count.ok_or(CsvFault::from_code(CsvFaultCode::BadTrailer))?)
                }
            };
            return Ok(CsvRowKind::Trailer(count));
        }
        self.values_of(raw).map(|()| CsvRowKind::Row)
    }

    /// Puts values that are not ASCII after the row, as UTF-8.
    #[cold]
    fn transcode_values(&mut self, raw: &[u8], charset: Charset) {
        if !self.uses_extended_record {
            self.extended_record.clear();
            self.extended_record.extend_from_slice(raw);
            self.uses_extended_record = true;
        }
        let (mut value, mut text) = (Vec::new(), String::new());
        for p in &mut self.row.spans {
            value.clear();
            value.extend_from_slice(span_bytes(&self.extended_record, *p));
            text.clear();
            // A value that is no text of the set stays as it is, which is not UTF-8.
            if !value.is_ascii() {
                let extension_start = self.extended_record.len();
                match charset.decode(&value, &mut text) {
                    Ok(()) => self.extended_record.extend_from_slice(text.as_bytes()),
                    Err(_) => self.extended_record.push(0xff),
                }
                *p = ValueSpan {
                    start: extension_start as u32,
                    end: self.extended_record.len() as u32,
                    is_in_text: true,
                };
            }
        }
    }

    /// Returns the day of the file, or `ColumnValue::None` if it is unknown.
    #[must_use]
    pub fn day(&self) -> ColumnValue {
        self.day[0]
    }

    /// Takes the names of the file's columns. Of several columns of one name the second is `name#2`.
    fn set_column_names(&mut self, names: Vec<String>) -> Result<(), CsvFault> {
        let columns = self.layout.row.columns();
        let NumberedNames { names, repeated_names: doubled } = number_names(names)?;
        for (i, name) in doubled {
            let numbered = |c: &ColumnLayout| {
                c.source().strip_prefix(&name).and_then(|rest| rest.strip_prefix('#')).is_some_and(is_number)
            };
            if columns.iter().any(|c| c.source() == name) && !columns.iter().any(numbered) {
                return Err(CsvFault::with_value(CsvFaultCode::BadHeader, i));
            }
        }
        let file_columns: Vec<Option<u16>> =
            columns.iter().map(|c| column_of(&names, c.source()).map(|i| i as u16)).collect();
        let column_at = |i: usize| {
            file_columns.iter().position(|file_column| *file_column == Some(i as u16)).map(|c| c as u16)
        };
        let layout_columns = (0..names.len()).map(column_at).collect();
        let is_needed = |c: &ColumnLayout| c.required || c.is_expected;
        let missing_count = columns
            .iter()
            .zip(&file_columns)
            .filter(|(c, file_column)| is_needed(c) && file_column.is_none())
            .count();
        if missing_count > 0 {
            let needed_count = columns.iter().filter(|c| is_needed(c)).count();
            return Err(CsvFault::numbers(
                CsvFaultCode::BadHeader,
                needed_count,
                needed_count - missing_count,
            ));
        }
        if !self.layout.column_needs.unmet(&names).is_empty() {
            return Err(CsvFault::from_code(CsvFaultCode::BadHeader));
        }
        self.header = CsvHeader {
            column_names: names,
            layout_columns,
            file_columns,
            header_state: CsvHeaderState::Known,
            is_row: true,
        };
        Ok(())
    }

    fn values_of(&mut self, raw: &[u8]) -> Result<(), CsvFault> {
        if self.header.header_state != CsvHeaderState::Known {
            return Err(CsvFault::from_code(CsvFaultCode::NoHeader));
        }
        let (expected, actual) = (self.header.column_names.len(), self.row.spans.len());
        if actual > expected || actual < expected && !self.layout.pad {
            return Err(CsvFault::numbers(CsvFaultCode::RaggedRow, expected, actual));
        }
        let record: &[u8] = if self.uses_extended_record { &self.extended_record } else { raw };
        let is_text = match self.layout.encoding {
            TextEncoding::Utf8 => std::str::from_utf8(raw).is_ok(),
            TextEncoding::Declared(_) => {
                raw.is_ascii()
                    || self.row.spans.iter().all(|p| std::str::from_utf8(span_bytes(record, *p)).is_ok())
            }
        };
        if !is_text {
            // A separator is ASCII, so the fault lies in one of the values.
            let value_fault =
                self.row.spans.iter().position(|p| std::str::from_utf8(span_bytes(record, *p)).is_err());
            return Err(CsvFault {
                value_index: value_fault.map(|i| i as u16),
                ..CsvFault::from_code(CsvFaultCode::NotUtf8)
            });
        }
        let columns = self.layout.row.columns();
        for &i in &self.read_order {
            let column = &columns[usize::from(i)];
            let file_column = self.header.file_columns[usize::from(i)];
            let span = file_column.and_then(|index| self.row.spans.get(usize::from(index)));
            let value = match span {
                None => ColumnValue::None,
                Some(p) => {
                    let (start, end) = (p.start as usize, p.end as usize);
                    let column_bytes = ColumnBytes { bytes: &record[start..end], record_offset: start };
                    let mut context = RecordContext { header: &self.day, zone_caches: &mut self.zone_caches };
                    let value = read(column, column_bytes, &self.column_values, &mut context);
                    value.map_err(|code| {
                        CsvFault::with_value(CsvFaultCode::Value(code), usize::from(file_column.unwrap_or(0)))
                    })?
                }
            };
            if value == ColumnValue::None && column.required && column.is_output() {
                return Err(CsvFault::with_value(
                    CsvFaultCode::Value(fixed::RecordFaultCode::Missing),
                    usize::from(file_column.unwrap_or(0)),
                ));
            }
            self.column_values[usize::from(i)] = value;
        }
        self.extra_spans.clear();
        let column_spans = self.row.spans.iter().zip(&self.header.layout_columns).enumerate();
        for (i, (span, _)) in
            column_spans.filter(|(_, (p, layout_column))| layout_column.is_none() && p.start < p.end)
        {
            self.extra_spans.push((i as u16, *span));
        }
        Ok(())
    }

    #[inline]
    fn value_text<'r>(&self, record: &'r [u8], p: ValueSpan) -> &'r [u8] {
        span_bytes(record, p)
    }

    /// Describes a fault in a sentence that quotes the value.
    #[must_use]
    pub fn explain(&self, fault: &CsvFault, raw: &[u8]) -> String {
        let CsvFault { code, value_index: value, expected_count: expected, actual } = *fault;
        let name = |i: u16| {
            let name = self.header.column_names.get(usize::from(i)).map_or("", String::as_str);
            shorten_name(name)
        };
        match (code, value) {
            (CsvFaultCode::RaggedRow, _) => format!("{actual} values where there are {expected} columns"),
            (CsvFaultCode::LongRow, _) => format!("longer than the {expected} bytes that a row may have"),
            (CsvFaultCode::RecordCount, _) => format!("{expected} rows stated, {actual} found"),
            (CsvFaultCode::UnclosedQuote, _) => "a quote is opened and not closed".to_owned(),
            (CsvFaultCode::BadQuote, _) => {
                "a quote within a value, or something behind a closing quote".to_owned()
            }
            (CsvFaultCode::Utf16, _) => ForeignInput::Utf16.description().to_owned(),
            (CsvFaultCode::ZipArchive, _) => ForeignInput::ZipArchive.description().to_owned(),
            (CsvFaultCode::BareReturn, _) => BARE_RETURN.to_owned(),
            (CsvFaultCode::NoHeader, _) => "the file's header cannot be read".to_owned(),
            (CsvFaultCode::BadTrailer, _) => "the trailer's count is no number".to_owned(),
            (CsvFaultCode::BadHeader, Some(i)) => {
                let span = self.row.spans.get(usize::from(i)).copied();
                let name = span.map(|p| self.value_text(self.record(raw), p)).unwrap_or_default();
                let name = shorten_name(&String::from_utf8_lossy(name.trim_ascii()));
                let column = i + 1;
                format!(
                    "the header names column {column} twice, `{name}`: the layout may call the two `{name}#1` and `{name}#2`"
                )
            }
            (CsvFaultCode::BadSeparator, _) => {
                format!(
                    "the file states the separator `{}` in its first line, the layout `{}`",
                    char::from(actual as u8).escape_default(),
                    char::from(expected as u8).escape_default()
                )
            }
            (CsvFaultCode::HeaderNotFound, _) if self.layout.finds_header => {
                let names: Vec<_> = self.layout.row.columns().iter().map(ColumnLayout::source).collect();
                format!(
                    "none of the first {actual} lines has all columns of the layout: `{}`",
                    names.join("`, `")
                )
            }
            (CsvFaultCode::HeaderNotFound, _) => {
                format!("the {expected} lines before the header are longer than 64 KiB")
            }
            (CsvFaultCode::BadHeader, None) => {
                let names: Vec<_> =
                    self.row.spans.iter().map(|p| self.value_text(self.record(raw), *p)).collect();
                let names = names.iter().map(|n| String::from_utf8_lossy(n).trim().to_owned()).collect();
                let names = number_names(names).unwrap_or_default().names;
                let lacks = |c: &&ColumnLayout| {
                    (c.required || c.is_expected) && column_of(&names, c.source()).is_none()
                };
                let lacking: Vec<_> =
                    self.layout.row.columns().iter().filter(lacks).map(ColumnLayout::source).collect();
                let present = quoted_names(names.iter().map(String::as_str));
                if lacking.is_empty() {
                    let unmet = self.layout.column_needs.unmet(&names);
                    let unmet: Vec<_> = unmet.into_iter().map(no_column).collect();
                    return format!("{}; the header has {present}", unmet.join("; "));
                }
                let lacking = lacking.join("`, `");
                format!(
                    "the header has {actual} of {expected} columns that must be there, not `{lacking}`; it has {present}"
                )
            }
            (CsvFaultCode::NotUtf8, Some(i)) => {
                format!("column {} is not {}", name(i), self.layout.encoding_name())
            }
            (CsvFaultCode::NotUtf8, None) => format!("text that is not {}", self.layout.encoding_name()),
            (CsvFaultCode::Value(code), i) => {
                let i = i.unwrap_or(0);
                // The values of the current row, if it is still this one.
                let text = self.row.spans.get(usize::from(i)).map(|p| self.value_text(self.record(raw), *p));
                let text = text.unwrap_or_default();
                let cut = &text[..text.len().min(60)];
                // A column of the file may be read in several ways.
                let readings = self.layout.row.columns().iter().zip(&self.header.file_columns);
                let readings = readings
                    .filter(|(_, file_column)| **file_column == Some(i))
                    .map(|(c, _)| c.reason(code, text));
                let general = code.description();
                let reason = readings.into_iter().reduce(|a, b| if a == general { b } else { a });
                let reason = reason.unwrap_or_else(|| general.to_owned());
                format!("column {}: \"{}\" {reason}", name(i), cut.escape_ascii())
            }
        }
    }
}

fn row_outcome(span: Span, end: usize, content: Result<CsvRowKind, CsvFault>) -> NextCsvRow {
    NextCsvRow::Message(FramedLine { span, end, content })
}

/// Describes that the header has no column of a choice.
fn no_column(choice: &ColumnChoice) -> String {
    let columns = quoted_names(choice.columns.iter().map(String::as_str));
    match choice.columns.len() {
        1 => format!("no column {columns} ({})", choice.purpose),
        _ => format!("none of the columns {columns} ({})", choice.purpose),
    }
}

/// Returns names of columns for people: a few dozen at most, and of each the start.
fn quoted_names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let count = names.len();
    let name_list = names.take(NAMES_SHOWN_MAX).map(|name| format!("`{}`", shorten_name(name)));
    let mut text = name_list.collect::<Vec<_>>().join(", ");
    if count > NAMES_SHOWN_MAX {
        text += &format!(" and {} more", count - NAMES_SHOWN_MAX);
    }
    text
}

/// Bytes at the start of a file without a header that say why it cannot be read: a line `sep=;`, or the mark of a format.
const BAD_START_BYTES: usize = 16;

/// What is wrong with carriage returns as line ends, and what to do.
const BARE_RETURN: &str = "a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')";

/// Returns the start of a name, which a header may make as long as a row: each bad row would repeat it.
fn shorten_name(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Names of columns in an error, at most.
const NAMES_SHOWN_MAX: usize = 24;

/// Characters of a name in an error, at most.
const NAME_CHARS_SHOWN_MAX: usize = 60;

/// Column names, numbered so that no name occurs twice.
#[derive(Default)]
struct NumberedNames {
    names: Vec<String>,
    /// The columns whose name was there already, with that name.
    repeated_names: Vec<(usize, String)>,
}

/// Numbers the second and later of several equal names.
fn number_names(mut names: Vec<String>) -> Result<NumberedNames, CsvFault> {
    let unique_names: BTreeSet<String> = names.iter().cloned().collect();
    let mut doubled = Vec::new();
    if unique_names.len() == names.len() {
        return Ok(NumberedNames { names, repeated_names: doubled });
    }
    let mut counts = BTreeMap::<String, usize>::new();
    for (i, name) in names.iter_mut().enumerate().filter(|(_, name)| !name.is_empty()) {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            continue;
        }
        let numbered = format!("{name}#{count}");
        if unique_names.contains(&numbered) {
            return Err(CsvFault::with_value(CsvFaultCode::BadHeader, i));
        }
        doubled.push((i, std::mem::replace(name, numbered)));
    }
    Ok(NumberedNames { names, repeated_names: doubled })
}

/// Finds a column by its name; `name#1` is the first of several.
pub(super) fn column_of(names: &[String], name: &str) -> Option<usize> {
    let position = |name: &str| names.iter().position(|n| n == name);
    position(name).or_else(|| position(name.strip_suffix("#1")?))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn span_bytes(record: &[u8], p: ValueSpan) -> &[u8] {
    record.get(p.start as usize..p.end as usize).unwrap_or_default()
}
