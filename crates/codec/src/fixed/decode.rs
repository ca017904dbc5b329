//! Records out of bytes.

use super::code::RecordFaultCode;
use super::ebcdic::push_utf8;
use super::fault::RecordFault;
use super::layout::{ColumnFormat, FixedWidthLayout, RECORD_BYTES_MAX, RecordLayout};
use super::plan::{EBCDIC_BLANK, RecordContext, run};
use super::text::{RecordRole, RecordTerminator, ShortRecordPolicy};
use super::value::ColumnValue;
use crate::foreign::{EndPadding, ForeignCheck, ForeignInput};
use crate::times::CachedTimeZone;
use std::convert::Infallible;
use std::sync::Arc;
use unitape_base::{FramedLine, NextFrame, Span};

/// The next record of the input. A bad record is a record, too: only the layout can describe its fault.
pub type NextRecord = NextFrame<RecordLine, Infallible>;

/// A record: which of the layout's records it is, or its fault. The values of a good record are
/// [`FixedWidthDecoder::values`]. The line of a bad record is only its beginning if it is not complete.
pub type RecordLine = FramedLine<Result<u16, RecordFault>>;

/// Decodes records by a layout.
///
/// ```
/// use unitape_codec::fixed::{FixedWidthDecoder, FixedWidthLayout, NextRecord, ColumnValue};
///
/// let layout = FixedWidthLayout::parse(
///     r#"
///     name = "prices"
///     terminator = "newline"
///     [[record]]
///     name = "price"
///     column = [
///         { name = "symbol", length = 6 },
///         { name = "price", length = 8, type = "decimal", decimals = 4 },
///     ]
///     "#,
///     "prices.toml",
/// )
/// .unwrap();
/// let mut decoder = FixedWidthDecoder::new(std::sync::Arc::new(layout));
/// let bytes = b"ACME  00124500\nACME  broken\n";
/// let NextRecord::Message(record) = decoder.next(bytes, 0, 0, true) else { panic!() };
/// assert_eq!(decoder.values()[1], ColumnValue::Decimal { mantissa: 124_500, exponent: -4 });
/// let NextRecord::Message(record) = decoder.next(bytes, record.end, 0, true) else { panic!() };
/// assert_eq!(record.content.unwrap_err().code.as_str(), "short_record");
/// ```
#[derive(Debug, Clone)]
pub struct FixedWidthDecoder {
    layout: Arc<FixedWidthLayout>,
    column_values: Vec<ColumnValue>,
    header: Vec<ColumnValue>,
    zone_caches: Vec<CachedTimeZone>,
    /// A short record with its blanks.
    padded_record: Vec<u8>,
    /// Whether the values are of `padded_record`.
    in_padded: bool,
    /// The record's characters, where they are not ASCII as they are.
    ascii_record: Vec<u8>,
}

/// A line without an end is cut into pieces of this many bytes.
const LINE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX;

impl FixedWidthDecoder {
    /// Makes a decoder for `layout`.
    #[must_use]
    pub fn new(layout: Arc<FixedWidthLayout>) -> Self {
        let columns = layout.records().iter().map(|r| r.columns().len()).max().unwrap_or(0);
        FixedWidthDecoder {
            column_values: vec![ColumnValue::None; columns],
            header: Vec::new(),
            zone_caches: layout.zone_caches.clone(),
            padded_record: Vec::new(),
            in_padded: false,
            ascii_record: Vec::new(),
            layout,
        }
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Arc<FixedWidthLayout> {
        &self.layout
    }

    /// Returns the values of the last record, by column.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[ColumnValue] {
        &self.column_values
    }

    /// Returns the bytes that the offsets in the last record's values refer to. These bytes are `raw`, or a copy of
    /// it with the blanks that were cut off.
    #[inline]
    #[must_use]
    pub fn record<'r>(&'r self, raw: &'r [u8]) -> &'r [u8] {
        if self.in_padded { &self.padded_record } else { raw }
    }

    /// Begins a source: forgets the order of the times in the previous source.
    pub fn begin_source(&mut self) {
        self.zone_caches.iter_mut().for_each(CachedTimeZone::begin_source);
    }

    /// Takes over what another decoder of the same columns knew of the order of its source's times.
    pub fn resume_from(&mut self, before: &Self) {
        CachedTimeZone::resume_all(&mut self.zone_caches, &before.zone_caches);
    }

    /// Reads the header from the first bytes of a file, for a decoder that begins further on. It forgets any other
    /// header.
    pub fn read_header(&mut self, head: &[u8]) {
        self.header.clear();
        if self.layout.header.is_some() {
            _ = self.next(head, 0, 0, true);
        }
    }

    /// Returns the header with its line end; `bytes` must be the first bytes of a file. Cuts it at
    /// [`FixedWidthLayout::head_bytes`]; it is empty if the layout has no header.
    #[must_use]
    pub fn head<'b>(layout: &Arc<FixedWidthLayout>, bytes: &'b [u8]) -> &'b [u8] {
        let head_length = layout.head_bytes().min(bytes.len());
        let header_end = match FixedWidthDecoder::new(layout.clone()).next(bytes, 0, 0, false) {
            _ if head_length == 0 => 0,
            NextRecord::Message(record) => record.end,
            NextRecord::Incomplete { .. } | NextRecord::End => head_length,
        };
        &bytes[..header_end.min(head_length)]
    }

    /// Returns the number of records that the header states.
    #[must_use]
    pub fn header_count(&self) -> Option<u64> {
        let header = &self.layout.records()[usize::from(self.layout.header?)];
        count(header, &self.header)
    }

    /// Returns the number of records that the last record states, if it is a trailer with a count.
    #[must_use]
    pub fn trailer_count(&self, kind: u16) -> Option<u64> {
        let record = &self.layout.records()[usize::from(kind)];
        if record.role() == RecordRole::Trailer { count(record, &self.column_values) } else { None }
    }

    /// Reads the next part, at `buf[offset..]`; `base` is the offset of `buf[0]` in its file, `eof` whether nothing
    /// follows. The answer depends only on the bytes from there on and on the header, never on where the buffer ends.
    pub fn next(&mut self, buf: &[u8], offset: usize, base: u64, eof: bool) -> NextRecord {
        let is_file_start = base + offset as u64 == 0;
        let mut line_start = offset;
        if self.layout.terminator != RecordTerminator::None {
            // Line ends between records say nothing.
            while line_start < buf.len() && matches!(buf[line_start], b'\n' | b'\r') {
                line_start += 1;
            }
        }
        // The start of the file is kept, for the record after it to be known as the first.
        let keep_from = if is_file_start { offset } else { line_start };
        if line_start >= buf.len() {
            return if eof {
                NextRecord::End
            } else {
                NextRecord::Incomplete { from: keep_from, need: line_start + 1 }
            };
        }
        let mut foreign = None;
        if self.layout.is_text() && !is_file_start {
            match EndPadding::check(&buf[line_start..], eof) {
                EndPadding::No => {}
                EndPadding::Is => return NextRecord::End,
                EndPadding::Undecided => {
                    return NextRecord::Incomplete { from: keep_from, need: buf.len() + 1 };
                }
            }
        } else if self.layout.is_text() {
            match ForeignInput::check(buf, eof) {
                ForeignCheck::No => {}
                ForeignCheck::Needs(bytes) => {
                    return NextRecord::Incomplete { from: keep_from, need: bytes.max(buf.len() + 1) };
                }
                ForeignCheck::Is(input) => foreign = Some(RecordFaultCode::from(input)),
            }
        }
        let record = |span, end, content| NextRecord::Message(FramedLine { span, end, content });
        let (line, end) = match self.find_line(buf, line_start, eof) {
            LineSearchOutcome::Is(line, end) => (line, end),
            LineSearchOutcome::Need(need) => return NextRecord::Incomplete { from: keep_from, need },
            LineSearchOutcome::Endless => {
                let span = Span { start: line_start, end: line_start + LINE_BYTES_MAX };
                let fault = RecordFault::lengths(
                    foreign.unwrap_or(RecordFaultCode::LongRecord),
                    self.layout.record_bytes_max,
                    span.len(),
                );
                return record(span, span.end, Err(fault));
            }
        };
        if let Some(code) = foreign {
            return record(line, end, Err(RecordFault::lengths(code, 0, line.len())));
        }
        record(line, end, self.read_record(line.slice(buf), is_file_start))
    }

    /// Returns the state outside a record on which its values depend.
    pub(super) fn context(&mut self) -> (&FixedWidthLayout, &[ColumnValue], &mut [CachedTimeZone]) {
        (&self.layout, &self.header, &mut self.zone_caches)
    }

    /// Returns an offset in `buf` with only whole records before it. It is a guess.
    #[must_use]
    pub fn cut_offset(layout: &FixedWidthLayout, buf: &[u8]) -> usize {
        match layout.terminator {
            RecordTerminator::None => buf.len() / layout.record_bytes_max * layout.record_bytes_max,
            _ => memchr::memrchr(b'\n', buf).map_or(0, |i| i + 1),
        }
    }

    /// Finds the line at `from`, which must have at least one byte.
    #[inline]
    fn find_line(&self, buf: &[u8], from: usize, eof: bool) -> LineSearchOutcome {
        let terminator = self.layout.terminator;
        if terminator == RecordTerminator::None {
            let length_limit = from + self.layout.record_bytes_max;
            return match length_limit <= buf.len() {
                true => LineSearchOutcome::Is(Span { start: from, end: length_limit }, length_limit),
                false if eof => LineSearchOutcome::Is(Span { start: from, end: buf.len() }, buf.len()),
                false => LineSearchOutcome::Need(length_limit),
            };
        }
        let limit = buf.len().min(from + LINE_BYTES_MAX);
        let mut search = from;
        while let Some(distance) = memchr::memchr(b'\n', &buf[search..limit]) {
            let feed = search + distance;
            let has_carriage_return = feed > from && buf[feed - 1] == b'\r';
            if has_carriage_return || terminator == RecordTerminator::Newline {
                return LineSearchOutcome::Is(
                    Span { start: from, end: feed - usize::from(has_carriage_return) },
                    feed + 1,
                );
            }
            search = feed + 1;
        }
        match limit < buf.len() || limit == from + LINE_BYTES_MAX {
            true => LineSearchOutcome::Endless,
            false if eof => LineSearchOutcome::Is(Span { start: from, end: limit }, limit),
            false => LineSearchOutcome::Need(limit + 1),
        }
    }

    /// Reads one record and returns its type.
    #[inline]
    fn read_record(&mut self, raw: &[u8], is_first: bool) -> Result<u16, RecordFault> {
        let layout = &*self.layout;
        let (raw, stored) = match layout.page {
            None => (raw, raw),
            Some(page) => {
                self.ascii_record.clear();
                page.to_latin1(raw, &mut self.ascii_record);
                (&self.ascii_record[..], raw)
            }
        };
        let kind = match layout.header {
            Some(header) if is_first => Some(header),
            _ => layout.kind_of(raw),
        };
        let Some(kind) = kind else {
            return Err(RecordFault::lengths(
                RecordFaultCode::UnknownRecord,
                layout.record_bytes_max,
                raw.len(),
            ));
        };
        let record = &layout.records()[usize::from(kind)];
        let bytes = record.bytes();
        self.in_padded = false;
        let text = match raw.len() {
            n if n == bytes && layout.page.is_none() => raw,
            n if n > bytes => return Err(RecordFault::lengths(RecordFaultCode::LongRecord, bytes, n)),
            n if n < bytes && layout.short == ShortRecordPolicy::Error => {
                return Err(RecordFault::lengths(RecordFaultCode::ShortRecord, bytes, n));
            }
            _ => {
                self.padded_record.clear();
                self.padded_record.extend_from_slice(raw);
                self.padded_record.resize(bytes, b' ');
                self.in_padded = true;
                if layout.page.is_some() {
                    // Numbers that are no text are not translated.
                    for column in
                        record.columns().iter().filter(|c| matches!(c.format, ColumnFormat::Stored(..)))
                    {
                        let range = column.start()..column.start() + column.length();
                        match stored.get(range.clone()) {
                            Some(bytes) => self.padded_record[range].copy_from_slice(bytes),
                            None => self.padded_record[range].fill(EBCDIC_BLANK),
                        }
                    }
                }
                &self.padded_record[..]
            }
        };
        let mut context = RecordContext { header: &self.header, zone_caches: &mut self.zone_caches };
        let values = &mut self.column_values[..record.columns().len()];
        run(&record.steps, record.columns(), text, kind, values, &mut context)?;
        if layout.page.is_some() {
            // Text that is not ASCII is after the record, as UTF-8.
            for value in values.iter_mut() {
                let ColumnValue::Text { start, end } = *value else { continue };
                let text = &self.padded_record[start as usize..end as usize];
                if !text.is_ascii() {
                    let (latin1, from) = (text.to_vec(), self.padded_record.len());
                    push_utf8(&latin1, &mut self.padded_record);
                    *value = ColumnValue::Text { start: from as u32, end: self.padded_record.len() as u32 };
                }
            }
        }
        if record.role() == RecordRole::Header {
            self.header.clear();
            self.header.extend_from_slice(values);
        }
        Ok(kind)
    }
}

enum LineSearchOutcome {
    /// The line, and where it ends with its terminator.
    Is(Span, usize),
    /// The decision needs this many bytes of the buffer.
    Need(usize),
    /// There is no end within the longest line.
    Endless,
}

impl FixedWidthLayout {
    /// Returns whether files of the layout are lines of text in a superset of ASCII.
    fn is_text(&self) -> bool {
        self.terminator != RecordTerminator::None && self.page.is_none()
    }

    /// Finds the type of a record by its selectors. It is never the header, whose position identifies it.
    #[inline]
    #[must_use]
    pub fn kind_of(&self, raw: &[u8]) -> Option<u16> {
        let fits = |record: &RecordLayout| {
            record.role() != RecordRole::Header
                && record.selectors.iter().all(|s| {
                    let text = raw.get(s.range.clone());
                    text.is_some_and(|t| s.values.iter().any(|v| v == t))
                })
        };
        self.records().iter().position(fits).map(|i| i as u16)
    }
}

fn count(record: &RecordLayout, values: &[ColumnValue]) -> Option<u64> {
    match values.get(usize::from(record.count?))? {
        ColumnValue::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}
