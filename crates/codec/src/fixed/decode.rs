//! Records out of bytes.

use super::code::Code;
use super::ebcdic::push_utf8;
use super::fault::Fault;
use super::layout::{Layout, RECORD_BYTES_MAX, Record, Sort};
use super::plan::{Around, EBCDIC_BLANK, run};
use super::text::{Role, Short, Terminator};
use super::value::Value;
use super::when::Zone;
use std::sync::Arc;
use unitape_base::Span;

/// What stands at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A record; its values are [`Decoder::values`].
    Record {
        /// The record without its terminator.
        span: Span,
        /// Which of the layout's records it is.
        kind: u16,
        /// Behind its terminator.
        end: usize,
    },
    /// Bytes that are no good record.
    Bad {
        /// The record, or what there is of it, without its terminator.
        span: Span,
        /// What is wrong.
        fault: Fault,
        /// Where to go on: behind the terminator, or behind the record's length.
        end: usize,
    },
    /// More input decides. Bytes before `from` are done with; ask again when the buffer has `need` bytes, or
    /// the input has ended.
    Incomplete {
        /// The first byte still needed.
        from: usize,
        /// The shortest buffer that could decide, in bytes from its start.
        need: usize,
    },
    /// The input has ended and all of it was read.
    End,
}

/// Decodes records by a layout.
///
/// ```
/// use unitape_codec::fixed::{Decoder, Layout, Next, Value};
///
/// let layout = Layout::parse(
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
/// let mut decoder = Decoder::new(std::sync::Arc::new(layout));
/// let bytes = b"ACME  00124500\nACME  broken\n";
/// let Next::Record { end, .. } = decoder.next(bytes, 0, 0, true) else { panic!() };
/// assert_eq!(decoder.values()[1], Value::Decimal { mantissa: 124_500, exponent: -4 });
/// let Next::Bad { fault, .. } = decoder.next(bytes, end, 0, true) else { panic!() };
/// assert_eq!(fault.code.as_str(), "short_record");
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    layout: Arc<Layout>,
    values: Vec<Value>,
    header: Vec<Value>,
    zones: Vec<Zone>,
    /// A short record with its blanks.
    padded: Vec<u8>,
    /// Whether the values are of `padded`.
    in_padded: bool,
    /// The record's characters, where they are not ASCII as they stand.
    text: Vec<u8>,
}

/// A line without an end is cut into pieces of so many bytes.
const LINE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX;

impl Decoder {
    /// A decoder by this layout.
    #[must_use]
    pub fn new(layout: Arc<Layout>) -> Self {
        let columns = layout.records().iter().map(|r| r.columns().len()).max().unwrap_or(0);
        Decoder {
            values: vec![Value::None; columns],
            header: Vec::new(),
            zones: layout.zones.clone(),
            padded: Vec::new(),
            in_padded: false,
            text: Vec::new(),
            layout,
        }
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The values of the last record, by column.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The bytes that the values of the last record are offsets into: `raw`, or a copy of it with the blanks
    /// that were cut off.
    #[inline]
    #[must_use]
    pub fn record<'r>(&'r self, raw: &'r [u8]) -> &'r [u8] {
        if self.in_padded { &self.padded } else { raw }
    }

    /// Takes the header out of the first bytes of a file, for a decoder that begins further on. Whatever was
    /// known of another header is forgotten.
    pub fn read_header(&mut self, head: &[u8]) {
        self.header.clear();
        if self.layout.header.is_some() {
            _ = self.next(head, 0, 0, true);
        }
    }

    /// The header with its line end, at the start of `bytes`, the first of a file; cut at
    /// [`Layout::head_bytes`], and empty where files of this layout have none.
    #[must_use]
    pub fn head<'b>(layout: &Arc<Layout>, bytes: &'b [u8]) -> &'b [u8] {
        let most = layout.head_bytes().min(bytes.len());
        let end = match Decoder::new(layout.clone()).next(bytes, 0, 0, false) {
            _ if most == 0 => 0,
            Next::Record { end, .. } | Next::Bad { end, .. } => end,
            Next::Incomplete { .. } | Next::End => most,
        };
        &bytes[..end.min(most)]
    }

    /// How many records the header says there are.
    #[must_use]
    pub fn header_count(&self) -> Option<u64> {
        let header = &self.layout.records()[usize::from(self.layout.header?)];
        count(header, &self.header)
    }

    /// How many records the last record says there are, if it is a trailer that says so.
    #[must_use]
    pub fn trailer_count(&self, kind: u16) -> Option<u64> {
        let record = &self.layout.records()[usize::from(kind)];
        if record.role() == Role::Trailer { count(record, &self.values) } else { None }
    }

    /// What stands at `buf[at..]`; `base` is the offset of `buf[0]` in its file, `eof` whether nothing follows.
    /// The answer depends only on the bytes from there on and on the header, never on where the buffer ends.
    pub fn next(&mut self, buf: &[u8], at: usize, base: u64, eof: bool) -> Next {
        let first = base + at as u64 == 0;
        let mut from = at;
        if self.layout.terminator != Terminator::None {
            // Line ends between records say nothing.
            while from < buf.len() && matches!(buf[from], b'\n' | b'\r') {
                from += 1;
            }
        }
        // The start of the file is kept, for the record behind it to be known as the first.
        let kept = if first { at } else { from };
        if from >= buf.len() {
            return if eof { Next::End } else { Next::Incomplete { from: kept, need: from + 1 } };
        }
        let (line, end) = match self.line(buf, from, eof) {
            Line::Is(line, end) => (line, end),
            Line::Need(need) => return Next::Incomplete { from: kept, need },
            Line::Endless => {
                let span = Span { start: from, end: from + LINE_BYTES_MAX };
                let fault = Fault::lengths(Code::LongRecord, self.layout.record_bytes_max, span.len());
                return Next::Bad { span, fault, end: span.end };
            }
        };
        match self.read(line.slice(buf), first) {
            Ok(kind) => Next::Record { span: line, kind, end },
            Err(fault) => Next::Bad { span: line, fault, end },
        }
    }

    /// What values depend on beside their record.
    pub(super) fn around(&mut self) -> (&Layout, &[Value], &mut [Zone]) {
        (&self.layout, &self.header, &mut self.zones)
    }

    /// Where to cut `buf` so that only whole records stand before the cut; a guess.
    #[must_use]
    pub fn cut(layout: &Layout, buf: &[u8]) -> usize {
        match layout.terminator {
            Terminator::None => buf.len() / layout.record_bytes_max * layout.record_bytes_max,
            _ => memchr::memrchr(b'\n', buf).map_or(0, |i| i + 1),
        }
    }

    /// The line at `from`, which holds a byte at least.
    #[inline]
    fn line(&self, buf: &[u8], from: usize, eof: bool) -> Line {
        let terminator = self.layout.terminator;
        if terminator == Terminator::None {
            let end = from + self.layout.record_bytes_max;
            return match end <= buf.len() {
                true => Line::Is(Span { start: from, end }, end),
                false if eof => Line::Is(Span { start: from, end: buf.len() }, buf.len()),
                false => Line::Need(end),
            };
        }
        let limit = buf.len().min(from + LINE_BYTES_MAX);
        let mut search = from;
        while let Some(found) = memchr::memchr(b'\n', &buf[search..limit]) {
            let feed = search + found;
            let carriage = feed > from && buf[feed - 1] == b'\r';
            if carriage || terminator == Terminator::Newline {
                return Line::Is(Span { start: from, end: feed - usize::from(carriage) }, feed + 1);
            }
            search = feed + 1;
        }
        match limit < buf.len() || limit == from + LINE_BYTES_MAX {
            true => Line::Endless,
            false if eof => Line::Is(Span { start: from, end: limit }, limit),
            false => Line::Need(limit + 1),
        }
    }

    /// Reads one record; gives which it is.
    #[inline]
    fn read(&mut self, raw: &[u8], first: bool) -> Result<u16, Fault> {
        let layout = &*self.layout;
        let (raw, stored) = match layout.page {
            None => (raw, raw),
            Some(page) => {
                self.text.clear();
                page.latin1(raw, &mut self.text);
                (&self.text[..], raw)
            }
        };
        let kind = match layout.header {
            Some(header) if first => Some(header),
            _ => layout.kind_of(raw),
        };
        let Some(kind) = kind else {
            return Err(Fault::lengths(Code::UnknownRecord, layout.record_bytes_max, raw.len()));
        };
        let record = &layout.records()[usize::from(kind)];
        let bytes = record.bytes();
        self.in_padded = false;
        let text = match raw.len() {
            n if n == bytes && layout.page.is_none() => raw,
            n if n > bytes => return Err(Fault::lengths(Code::LongRecord, bytes, n)),
            n if n < bytes && layout.short == Short::Error => {
                return Err(Fault::lengths(Code::ShortRecord, bytes, n));
            }
            _ => {
                self.padded.clear();
                self.padded.extend_from_slice(raw);
                self.padded.resize(bytes, b' ');
                self.in_padded = true;
                if layout.page.is_some() {
                    // Numbers that are no text are not translated.
                    for column in record.columns().iter().filter(|c| matches!(c.sort, Sort::Stored(..))) {
                        let at = column.start()..column.start() + column.length();
                        match stored.get(at.clone()) {
                            Some(bytes) => self.padded[at].copy_from_slice(bytes),
                            None => self.padded[at].fill(EBCDIC_BLANK),
                        }
                    }
                }
                &self.padded[..]
            }
        };
        let mut around = Around { header: &self.header, zones: &mut self.zones };
        let values = &mut self.values[..record.columns().len()];
        run(&record.steps, record.columns(), text, kind, values, &mut around)?;
        if layout.page.is_some() {
            // What is not ASCII stands behind the record as UTF-8.
            for value in values.iter_mut() {
                let Value::Text { start, end } = *value else { continue };
                let text = &self.padded[start as usize..end as usize];
                if !text.is_ascii() {
                    let (latin1, from) = (text.to_vec(), self.padded.len());
                    push_utf8(&latin1, &mut self.padded);
                    *value = Value::Text { start: from as u32, end: self.padded.len() as u32 };
                }
            }
        }
        if record.role() == Role::Header {
            self.header.clear();
            self.header.extend_from_slice(values);
        }
        Ok(kind)
    }
}

enum Line {
    /// The line, and where it ends with its terminator.
    Is(Span, usize),
    /// So many bytes of the buffer are needed to say.
    Need(usize),
    /// There is no end within the longest line.
    Endless,
}

impl Layout {
    /// Which of the records this is, by its selectors; never the header, which is known by its place.
    #[inline]
    #[must_use]
    pub fn kind_of(&self, raw: &[u8]) -> Option<u16> {
        let fits = |record: &Record| {
            record.role() != Role::Header
                && record.when.iter().all(|s| {
                    let text = raw.get(s.at.clone());
                    text.is_some_and(|t| s.values.iter().any(|v| v == t))
                })
        };
        self.records().iter().position(fits).map(|i| i as u16)
    }
}

fn count(record: &Record, values: &[Value]) -> Option<u64> {
    match values.get(usize::from(record.count?))? {
        Value::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}
