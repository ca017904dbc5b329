//! Rows out of bytes.

use super::fault::{CsvFault, CsvFaultCode};
use super::layout::{CsvLayout, TextEncoding};
use super::row::{RowScanOutcome, RowValueSpans, ValueSpan};
use super::simd::CsvKernel;
use crate::charset::Charset;
use crate::fixed::inside::{
    CachedTimeZone, ColumnBytes, ColumnLayout, RecordContext, needs_other_column, read,
};
use crate::fixed::{self, ColumnValue};
use std::sync::Arc;
use unitape_base::Span;

/// The next part of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextCsvRow {
    /// The header; [`CsvRowDecoder::names`] are its names.
    Header {
        /// The row without its line end.
        span: Span,
        /// Behind its line end.
        end: usize,
    },
    /// A row; its values are [`CsvRowDecoder::values`].
    Row {
        /// The row without its line end.
        span: Span,
        /// Behind its line end.
        end: usize,
    },
    /// The trailer.
    Trailer {
        /// The row without its line end.
        span: Span,
        /// Behind its line end.
        end: usize,
        /// How many rows it says there are.
        count: Option<u64>,
    },
    /// Bytes that are no good row.
    Bad {
        /// The row, or what there is of it.
        span: Span,
        /// The fault.
        fault: CsvFault,
        /// Where to continue.
        end: usize,
    },
    /// More input decides. Bytes before `from` are done with; ask again when the buffer has `need` bytes, or the
    /// input has ended.
    Incomplete {
        /// The first byte still needed.
        from: usize,
        /// The shortest buffer that could decide, in bytes from its start.
        need: usize,
    },
    /// The input has ended and all of it was read.
    End,
}

/// Decodes rows by a layout.
///
/// ```
/// use unitape_codec::csv::{CsvRowDecoder, CsvLayout, NextCsvRow};
/// use unitape_codec::fixed::ColumnValue;
///
/// let layout = r#"
///     name = "prices"
///     separator = "semicolon"
///     column = [{ name = "price", type = "decimal" }]
///     "#;
/// let mut decoder = CsvRowDecoder::new(std::sync::Arc::new(CsvLayout::parse(layout, "prices.toml").unwrap()));
/// let bytes = b"symbol;price\n\"A;B\";12.50\nC;none\n";
/// let NextCsvRow::Header { end, .. } = decoder.next(bytes, 0, 0, true) else { panic!() };
/// let NextCsvRow::Row { end, .. } = decoder.next(bytes, end, 0, true) else { panic!() };
/// assert_eq!(decoder.values()[0], ColumnValue::Decimal { mantissa: 125, exponent: -1 });
/// let NextCsvRow::Bad { fault, .. } = decoder.next(bytes, end, 0, true) else { panic!() };
/// assert_eq!(fault.code.as_str(), "bad_number");
/// ```
#[derive(Debug, Clone)]
pub struct CsvRowDecoder {
    layout: Arc<CsvLayout>,
    kernel: CsvKernel,
    row: RowValueSpans,
    /// Values of the layout's columns.
    values: Vec<ColumnValue>,
    /// Values of columns that only the file has: the index of the column's name, and where the text is.
    others: Vec<(u16, ValueSpan)>,
    header: CsvHeader,
    /// The day of the file, where times look for it.
    day: [ColumnValue; 1],
    zones: Vec<CachedTimeZone>,
    /// A row with the values after it whose quotes were doubled.
    apart: Vec<u8>,
    in_apart: bool,
    /// Columns in the order in which they can be read.
    order: Vec<u16>,
}

/// The columns of the file.
#[derive(Debug, Clone, Default)]
struct CsvHeader {
    names: Vec<String>,
    /// Column of the layout, by column of the file.
    of: Vec<Option<u16>>,
    /// Column of the file, by column of the layout.
    at: Vec<Option<u16>>,
    is: CsvHeaderState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CsvHeaderState {
    /// The next row is the header.
    #[default]
    Awaited,
    Known,
    /// It could not be read.
    Bad,
}

impl CsvRowDecoder {
    /// A decoder by this layout.
    #[must_use]
    pub fn new(layout: Arc<CsvLayout>) -> Self {
        let columns = layout.row.columns();
        let mut order: Vec<u16> = (0..columns.len() as u16).collect();
        order.sort_by_key(|i| needs_other_column(&columns[usize::from(*i)]));
        let mut this = CsvRowDecoder {
            kernel: CsvKernel::best(),
            row: RowValueSpans::default(),
            values: vec![ColumnValue::None; columns.len()],
            others: Vec::new(),
            header: CsvHeader::default(),
            day: [layout.day.map_or(ColumnValue::None, ColumnValue::Date)],
            zones: layout.zones.clone(),
            apart: Vec::new(),
            in_apart: false,
            order,
            layout,
        };
        this.begin();
        this
    }

    /// This decoder with the kernel that every processor runs.
    #[cfg(any(test, feature = "naive"))]
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.kernel = CsvKernel::PORTABLE;
        self
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Arc<CsvLayout> {
        &self.layout
    }

    /// A file begins: whatever was known of another header is forgotten.
    pub fn begin(&mut self) {
        self.header = CsvHeader::default();
        if !self.layout.header {
            let names = self.layout.row.columns().iter().map(|c| c.name().to_owned()).collect();
            _ = self.know(names);
        }
    }

    /// Sets the file's name, which may contain its day.
    pub fn set_name(&mut self, name: &str) {
        let day = self.layout.day.or_else(|| CsvLayout::day_of(name));
        self.day = [day.map_or(ColumnValue::None, ColumnValue::Date)];
    }

    /// Takes the header out of the first bytes of a file, for a decoder that begins further on.
    pub fn read_header(&mut self, head: &[u8]) {
        self.begin();
        if self.header.is == CsvHeaderState::Awaited {
            _ = self.next(head, 0, 0, true);
            if self.header.is == CsvHeaderState::Awaited {
                self.header.is = CsvHeaderState::Bad;
            }
        }
    }

    /// The header with its line end and what is before it, at the start of `bytes`, the first of a file;
    /// empty where files of this layout have none.
    #[must_use]
    pub fn head<'b>(layout: &Arc<CsvLayout>, bytes: &'b [u8]) -> &'b [u8] {
        if !layout.header {
            return &[];
        }
        match CsvRowDecoder::new(layout.clone()).next(bytes, 0, 0, true) {
            NextCsvRow::Header { end, .. }
            | NextCsvRow::Bad { end, .. }
            | NextCsvRow::Row { end, .. }
            | NextCsvRow::Trailer { end, .. } => &bytes[..end],
            NextCsvRow::Incomplete { .. } | NextCsvRow::End => bytes,
        }
    }

    /// The values of the last row, by column of the layout.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[ColumnValue] {
        &self.values
    }

    /// The values of the last row in columns that the layout does not name: name and text, in the order of the
    /// file, without those that are empty.
    pub fn extra_values<'r>(&'r self, record: &'r [u8]) -> impl Iterator<Item = (&'r str, &'r [u8])> {
        self.others.iter().map(move |(i, place)| {
            let text = record.get(place.start as usize..place.end as usize).unwrap_or_default();
            (self.header.names[usize::from(*i)].as_str(), text)
        })
    }

    /// The bytes that the values of the last row are offsets into: `raw`, or a copy of it with the values after
    /// it in which quotes were doubled.
    #[inline]
    #[must_use]
    pub fn record<'r>(&'r self, raw: &'r [u8]) -> &'r [u8] {
        if self.in_apart { &self.apart } else { raw }
    }

    /// Names of the columns, in the order of the file.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.header.names
    }

    /// Names and texts of the trailer that was found last.
    pub fn trailer<'r>(&'r self, record: &'r [u8]) -> impl Iterator<Item = (&'r str, &'r [u8])> {
        let names = self.layout.trailer.as_ref().map_or(&[][..], |t| &t.columns);
        names.iter().zip(&self.row.places).map(|(name, place)| (name.as_str(), self.text(record, *place)))
    }

    /// Where to cut `buf` so that only whole rows are before the cut; a guess, for a line end may be in
    /// quotes.
    #[must_use]
    pub fn cut(buf: &[u8]) -> usize {
        memchr::memrchr(b'\n', buf).map_or(0, |i| i + 1)
    }

    /// Reads the next part, at `buf[at..]`; `base` is the offset of `buf[0]` in its file, `eof` whether nothing
    /// follows. The answer depends only on the bytes from there on and on the header, never on where the buffer ends.
    pub fn next(&mut self, buf: &[u8], at: usize, base: u64, eof: bool) -> NextCsvRow {
        let most = self.layout.row_bytes_max;
        let mut from = at;
        if base + at as u64 == 0 {
            match buf {
                [0xef, 0xbb, 0xbf, ..] => from = 3,
                [] | [0xef] | [0xef, 0xbb] if !eof => return NextCsvRow::Incomplete { from: 0, need: 3 },
                _ => {}
            }
        }
        loop {
            // Empty lines say nothing.
            while from < buf.len() && matches!(buf[from], b'\n' | b'\r') {
                from += 1;
            }
            // The start of the file is kept, for a mark at it to be known.
            let kept = if base + at as u64 == 0 { at } else { from };
            if from >= buf.len() {
                return if eof {
                    NextCsvRow::End
                } else {
                    NextCsvRow::Incomplete { from: kept, need: from + 1 }
                };
            }
            if Some(buf[from]) == self.layout.comment {
                match memchr::memchr(b'\n', &buf[from..buf.len().min(from + most + 2)]) {
                    Some(end) => {
                        from += end + 1;
                        continue;
                    }
                    None if buf.len() - from >= most + 2 => {
                        let span = Span { start: from, end: from + most };
                        let fault = CsvFault::numbers(CsvFaultCode::LongRow, most, most + 2);
                        return NextCsvRow::Bad { span, fault, end: span.end };
                    }
                    None if eof => return NextCsvRow::End,
                    None => return NextCsvRow::Incomplete { from: kept, need: buf.len() + 1 },
                }
            }
            let (length, end) = match self.row.read(&self.layout, self.kernel, &buf[from..], eof) {
                RowScanOutcome::Whole { length, end } => (length, end),
                RowScanOutcome::Bad { fault, length, end } => {
                    let span = Span { start: from, end: from + length };
                    if self.header.is == CsvHeaderState::Awaited {
                        self.header.is = CsvHeaderState::Bad;
                    }
                    return NextCsvRow::Bad { span, fault, end: from + end };
                }
                RowScanOutcome::More => return NextCsvRow::Incomplete { from: kept, need: buf.len() + 1 },
            };
            let span = Span { start: from, end: from + length };
            return self.whole(span.slice(buf), span, from + end);
        }
    }

    fn whole(&mut self, raw: &[u8], span: Span, end: usize) -> NextCsvRow {
        self.in_apart = !self.row.text.is_empty();
        if self.in_apart {
            self.apart.clear();
            self.apart.extend_from_slice(raw);
            self.apart.extend_from_slice(&self.row.text);
            for place in self.row.places.iter_mut().filter(|p| p.apart) {
                place.start += raw.len() as u32;
                place.end += raw.len() as u32;
            }
        }
        if let TextEncoding::Declared(charset) = self.layout.encoding
            && !raw.is_ascii()
        {
            self.transcode(raw, charset);
        }
        if self.header.is == CsvHeaderState::Awaited {
            let names = self.row.places.iter().map(|p| {
                let text = self.text(self.record(raw), *p);
                std::str::from_utf8(text)
                    .map(|t| t.trim().to_owned())
                    .map_err(|_| CsvFault::from_code(CsvFaultCode::NotUtf8))
            });
            let names: Result<Vec<String>, CsvFault> = names.collect();
            return match names.and_then(|names| self.know(names)) {
                Ok(()) => NextCsvRow::Header { span, end },
                Err(fault) => {
                    self.header.is = CsvHeaderState::Bad;
                    NextCsvRow::Bad { span, fault, end }
                }
            };
        }
        if let Some(trailer) = &self.layout.trailer
            && self.row.places.first().is_some_and(|p| self.text(self.record(raw), *p) == &trailer.first[..])
        {
            let text = trailer.count.map(|i| self.row.places.get(i).map(|p| self.text(self.record(raw), *p)));
            let count = match text {
                None => None,
                Some(text) => {
                    let text = text.and_then(|t| std::str::from_utf8(t).ok()).map(str::trim);
                    let digits = text.filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()));
                    match digits.and_then(|d| d.parse().ok()) {
                        Some(n) => Some(n),
                        None => {
                            return NextCsvRow::Bad {
                                span,
                                fault: CsvFault::from_code(CsvFaultCode::BadTrailer),
                                end,
                            };
                        }
                    }
                }
            };
            return NextCsvRow::Trailer { span, end, count };
        }
        match self.values_of(raw) {
            Ok(()) => NextCsvRow::Row { span, end },
            Err(fault) => NextCsvRow::Bad { span, fault, end },
        }
    }

    /// Puts values that are not ASCII after the row, as UTF-8.
    #[cold]
    fn transcode(&mut self, raw: &[u8], charset: Charset) {
        if !self.in_apart {
            self.apart.clear();
            self.apart.extend_from_slice(raw);
            self.in_apart = true;
        }
        let (mut value, mut text) = (Vec::new(), String::new());
        for p in &mut self.row.places {
            value.clear();
            value.extend_from_slice(place(&self.apart, *p));
            text.clear();
            // A value that is no text of the set stays as it is, which is not UTF-8.
            if !value.is_ascii() {
                let start = self.apart.len();
                match charset.decode(&value, &mut text) {
                    Ok(()) => self.apart.extend_from_slice(text.as_bytes()),
                    Err(_) => self.apart.push(0xff),
                }
                *p = ValueSpan { start: start as u32, end: self.apart.len() as u32, apart: true };
            }
        }
    }

    /// The day of the file, where it is known.
    #[must_use]
    pub fn day(&self) -> ColumnValue {
        self.day[0]
    }

    /// Takes the names of the file's columns.
    fn know(&mut self, names: Vec<String>) -> Result<(), CsvFault> {
        let columns = self.layout.row.columns();
        let mut at = vec![None; columns.len()];
        let mut of = Vec::new();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) && !name.is_empty() {
                return Err(CsvFault::with_value(CsvFaultCode::BadHeader, i));
            }
            let column = columns.iter().position(|c| c.name() == name);
            if let Some(column) = column {
                at[column] = Some(i as u16);
            }
            of.push(column.map(|c| c as u16));
        }
        let must = |c: &ColumnLayout| c.required || c.expected;
        let lacking = columns.iter().zip(&at).filter(|(c, at)| must(c) && at.is_none()).count();
        if lacking > 0 {
            let wanted = columns.iter().filter(|c| must(c)).count();
            return Err(CsvFault::numbers(CsvFaultCode::BadHeader, wanted, wanted - lacking));
        }
        self.header = CsvHeader { names, of, at, is: CsvHeaderState::Known };
        Ok(())
    }

    fn values_of(&mut self, raw: &[u8]) -> Result<(), CsvFault> {
        if self.header.is != CsvHeaderState::Known {
            return Err(CsvFault::from_code(CsvFaultCode::NoHeader));
        }
        let (wanted, found) = (self.header.names.len(), self.row.places.len());
        if found > wanted || found < wanted && !self.layout.pad {
            return Err(CsvFault::numbers(CsvFaultCode::RaggedRow, wanted, found));
        }
        let record: &[u8] = if self.in_apart { &self.apart } else { raw };
        let is_text = match self.layout.encoding {
            TextEncoding::Utf8 => std::str::from_utf8(raw).is_ok(),
            TextEncoding::Declared(_) => {
                raw.is_ascii()
                    || self.row.places.iter().all(|p| std::str::from_utf8(place(record, *p)).is_ok())
            }
        };
        if !is_text {
            // A separator is ASCII, so the fault lies in one of the values.
            let bad = self.row.places.iter().position(|p| std::str::from_utf8(place(record, *p)).is_err());
            return Err(CsvFault {
                value: bad.map(|i| i as u16),
                ..CsvFault::from_code(CsvFaultCode::NotUtf8)
            });
        }
        let columns = self.layout.row.columns();
        for &i in &self.order {
            let column = &columns[usize::from(i)];
            let at = self.header.at[usize::from(i)];
            let place = at.and_then(|at| self.row.places.get(usize::from(at)));
            let value = match place {
                None => ColumnValue::None,
                Some(p) => {
                    let (start, end) = (p.start as usize, p.end as usize);
                    let whole = ColumnBytes { bytes: &record[start..end], start };
                    let mut around = RecordContext { header: &self.day, zones: &mut self.zones };
                    let value = read(column, whole, &self.values, &mut around);
                    value.map_err(|code| {
                        CsvFault::with_value(CsvFaultCode::Value(code), usize::from(at.unwrap_or(0)))
                    })?
                }
            };
            if value == ColumnValue::None && column.required && column.is_output() {
                return Err(CsvFault::with_value(
                    CsvFaultCode::Value(fixed::RecordFaultCode::Missing),
                    usize::from(at.unwrap_or(0)),
                ));
            }
            self.values[usize::from(i)] = value;
        }
        self.others.clear();
        let others = self.row.places.iter().zip(&self.header.of).enumerate();
        for (i, (place, _)) in others.filter(|(_, (p, of))| of.is_none() && p.start < p.end) {
            self.others.push((i as u16, *place));
        }
        Ok(())
    }

    #[inline]
    fn text<'r>(&self, record: &'r [u8], p: ValueSpan) -> &'r [u8] {
        place(record, p)
    }

    /// A fault in a sentence, with what is in the value.
    #[must_use]
    pub fn explain(&self, fault: &CsvFault, raw: &[u8]) -> String {
        let CsvFault { code, value, wanted, found } = *fault;
        let name = |i: u16| self.header.names.get(usize::from(i)).map_or("", String::as_str);
        match (code, value) {
            (CsvFaultCode::RaggedRow, _) => format!("{found} values where there are {wanted} columns"),
            (CsvFaultCode::LongRow, _) => format!("longer than the {wanted} bytes that a row may have"),
            (CsvFaultCode::RecordCount, _) => format!("{wanted} rows stated, {found} found"),
            (CsvFaultCode::UnclosedQuote, _) => "a quote is opened and not closed".to_owned(),
            (CsvFaultCode::BadQuote, _) => {
                "a quote within a value, or something behind a closing quote".to_owned()
            }
            (CsvFaultCode::NoHeader, _) => "the file's header cannot be read".to_owned(),
            (CsvFaultCode::BadTrailer, _) => "the trailer's count is no number".to_owned(),
            (CsvFaultCode::BadHeader, Some(i)) => format!("the header names column {} twice", i + 1),
            (CsvFaultCode::BadHeader, None) => {
                let names: Vec<_> = self.row.places.iter().map(|p| self.text(self.record(raw), *p)).collect();
                let lacks = |c: &&ColumnLayout| {
                    (c.required || c.expected) && !names.iter().any(|n| n.trim_ascii() == c.name().as_bytes())
                };
                let lacking: Vec<_> =
                    self.layout.row.columns().iter().filter(lacks).map(ColumnLayout::name).collect();
                let lacking = lacking.join("`, `");
                format!("the header has {found} of {wanted} columns that must be there, not `{lacking}`")
            }
            (CsvFaultCode::NotUtf8, Some(i)) => {
                format!("column {} is not {}", name(i), self.layout.encoding_name())
            }
            (CsvFaultCode::NotUtf8, None) => format!("text that is not {}", self.layout.encoding_name()),
            (CsvFaultCode::Value(code), i) => {
                let i = i.unwrap_or(0);
                // The values of the row in hand, if it is still this one.
                let text = self.row.places.get(usize::from(i)).map(|p| self.text(self.record(raw), *p));
                let text = text.unwrap_or_default();
                let cut = &text[..text.len().min(60)];
                format!("column {}: \"{}\" {}", name(i), cut.escape_ascii(), code.description())
            }
        }
    }
}

fn place(record: &[u8], p: ValueSpan) -> &[u8] {
    record.get(p.start as usize..p.end as usize).unwrap_or_default()
}
