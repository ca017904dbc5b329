//! One row: where it ends and where its values are.

use super::fault::{CsvFault, CsvFaultCode};
use super::layout::{CsvLayout, VALUES_MAX};
use super::simd::{CsvKernel, ScanStop};

/// Values of a row, as places in its bytes; a value whose quotes were doubled is in `unquoted_text` after them.
#[derive(Debug, Clone, Default)]
pub(super) struct RowValueSpans {
    pub spans: Vec<ValueSpan>,
    /// Values without the doubled quotes.
    pub unquoted_text: Vec<u8>,
    /// The byte between values: the layout's separator, or the separator that the file states.
    pub separator: u8,
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSpan {
    pub start: u32,
    pub end: u32,
    /// In [`RowValueSpans::unquoted_text`], not in the row.
    pub is_in_text: bool,
}

/// The result of scanning a row at the start of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowScanOutcome {
    /// A row of `length` bytes, and the place after its line end.
    Whole { length: usize, end: usize },
    /// No row: its bytes, and where to continue.
    Bad { fault: CsvFault, length: usize, end: usize },
    /// More bytes are needed to say.
    More,
}

impl RowValueSpans {
    /// Reads the row that `input` begins with; `eof` says that nothing follows it.
    pub(super) fn read_row(
        &mut self,
        layout: &CsvLayout,
        kernel: CsvKernel,
        input: &[u8],
        eof: bool,
    ) -> RowScanOutcome {
        self.spans.clear();
        self.unquoted_text.clear();
        let length_max = layout.row_bytes_max;
        // A carriage return and a line feed may be after the longest row.
        let window = &input[..input.len().min(length_max + 2)];
        let spans = &mut self.spans;
        let stop = kernel.scan_row(window, self.separator, layout.quote.unwrap_or(b'\n'), spans);
        let feed = match stop {
            ScanStop::Quote => return self.scan_quoted(layout, input, eof),
            ScanStop::LineEnd(offset) => Some(offset),
            ScanStop::End => None,
        };
        let (length, end) = match feed {
            Some(offset) => (offset - usize::from(offset > 0 && input[offset - 1] == b'\r'), offset + 1),
            None if window.len() == length_max + 2 => return long_row(layout, input),
            None if eof => (input.len() - usize::from(input.last() == Some(&b'\r')), input.len()),
            None => return RowScanOutcome::More,
        };
        if has_bare_return(&input[..length]) {
            return bad_quote(CsvFaultCode::BareReturn, layout, input, true, eof);
        }
        if length > length_max {
            return long_row(layout, input);
        }
        let row_end = spans.last().map_or(0, |p| p.end as usize + 1);
        spans.push(ValueSpan { start: row_end as u32, end: length as u32, is_in_text: false });
        self.check_count(length, end)
    }

    /// Scans a row that contains a quote, byte by byte.
    fn scan_quoted(&mut self, layout: &CsvLayout, input: &[u8], eof: bool) -> RowScanOutcome {
        let Some(quote) = layout.quote else { return RowScanOutcome::More };
        self.spans.clear();
        let length_max = layout.row_bytes_max;
        let window = &input[..input.len().min(length_max + 2)];
        // Input of this length is too long, whatever follows.
        let is_last_row = eof && input.len() < length_max + 2;
        let mut offset = 0;
        loop {
            let span = if window.get(offset) == Some(&quote) {
                let (start, text_start) = (offset + 1, self.unquoted_text.len());
                let mut search_offset = start;
                let mut has_doubled_quotes = false;
                let close = loop {
                    let Some(distance) = memchr::memchr(quote, &window[search_offset..]) else {
                        return bad_quote(CsvFaultCode::UnclosedQuote, layout, input, is_last_row, eof);
                    };
                    let quote_offset = search_offset + distance;
                    match window.get(quote_offset + 1) {
                        Some(byte) if *byte == quote => {
                            self.unquoted_text.extend_from_slice(&window[search_offset..=quote_offset]);
                            (has_doubled_quotes, search_offset) = (true, quote_offset + 2);
                        }
                        None if !is_last_row => {
                            return bad_quote(CsvFaultCode::UnclosedQuote, layout, input, is_last_row, eof);
                        }
                        _ => break quote_offset,
                    }
                };
                offset = close + 1;
                if has_doubled_quotes {
                    self.unquoted_text.extend_from_slice(&window[search_offset..close]);
                    ValueSpan {
                        start: text_start as u32,
                        end: self.unquoted_text.len() as u32,
                        is_in_text: true,
                    }
                } else {
                    self.unquoted_text.truncate(text_start);
                    ValueSpan { start: start as u32, end: close as u32, is_in_text: false }
                }
            } else {
                let unread_bytes = &window[offset..];
                let stop = |b: &u8| *b == self.separator || *b == b'\n' || *b == quote;
                let value_end = offset + unread_bytes.iter().position(stop).unwrap_or(unread_bytes.len());
                let ends_value = window.get(value_end).is_some_and(|byte| *byte != b'\n');
                let value = &window[offset..value_end];
                if has_bare_return(value) || ends_value && value.last() == Some(&b'\r') {
                    return bad_quote(CsvFaultCode::BareReturn, layout, input, true, eof);
                }
                if window.get(value_end) == Some(&quote) {
                    return bad_quote(CsvFaultCode::BadQuote, layout, input, true, eof);
                }
                let value_start = offset;
                offset = value_end;
                ValueSpan { start: value_start as u32, end: value_end as u32, is_in_text: false }
            };
            self.spans.push(span);
            match (window.get(offset), window.get(offset + 1)) {
                (Some(byte), _) if *byte == self.separator => offset += 1,
                (Some(b'\n'), _) => {
                    let cut = offset > 0
                        && input[offset - 1] == b'\r'
                        && span.end as usize == offset
                        && !span.is_in_text;
                    let length = offset - usize::from(offset > 0 && input[offset - 1] == b'\r');
                    if cut && let Some(last) = self.spans.last_mut() {
                        last.end -= 1;
                    }
                    return if length > length_max {
                        long_row(layout, input)
                    } else {
                        self.check_count(length, offset + 1)
                    };
                }
                (Some(b'\r'), Some(b'\n')) => {
                    return if offset > length_max {
                        long_row(layout, input)
                    } else {
                        self.check_count(offset, offset + 2)
                    };
                }
                (Some(b'\r'), None) if is_last_row => {
                    return if offset > length_max {
                        long_row(layout, input)
                    } else {
                        self.check_count(offset, offset + 1)
                    };
                }
                (None, _) if is_last_row => {
                    let cut = offset > 0
                        && input[offset - 1] == b'\r'
                        && span.end as usize == offset
                        && !span.is_in_text;
                    if cut && let Some(last) = self.spans.last_mut() {
                        last.end -= 1;
                    }
                    let length = offset - usize::from(cut);
                    return if length > length_max {
                        long_row(layout, input)
                    } else {
                        self.check_count(length, offset)
                    };
                }
                (None, _) | (Some(b'\r'), None) => {
                    return if input.len() < length_max + 2 {
                        RowScanOutcome::More
                    } else {
                        long_row(layout, input)
                    };
                }
                (Some(b'\r'), Some(_)) => {
                    return bad_quote(CsvFaultCode::BareReturn, layout, input, true, eof);
                }
                // Something is after a closing quote.
                _ => return bad_quote(CsvFaultCode::BadQuote, layout, input, true, eof),
            }
        }
    }

    fn check_count(&self, length: usize, end: usize) -> RowScanOutcome {
        if self.spans.len() > VALUES_MAX {
            let fault = CsvFault::numbers(CsvFaultCode::RaggedRow, VALUES_MAX, self.spans.len());
            return RowScanOutcome::Bad { fault, length, end };
        }
        RowScanOutcome::Whole { length, end }
    }
}

/// Refuses a row with an invalid quote: the row ends with the line in which it begins. Unless the fault is `decided`,
/// more bytes may make the row valid.
fn bad_quote(
    code: CsvFaultCode,
    layout: &CsvLayout,
    input: &[u8],
    decided: bool,
    eof: bool,
) -> RowScanOutcome {
    let length_max = layout.row_bytes_max;
    let is_long = input.len() >= length_max + 2;
    if !decided && !is_long {
        return RowScanOutcome::More;
    }
    let window = &input[..input.len().min(length_max + 2)];
    let fault = CsvFault::from_code(code);
    match memchr::memchr(b'\n', window) {
        Some(offset) => {
            RowScanOutcome::Bad { fault, length: without_return(window, offset), end: offset + 1 }
        }
        None if is_long => RowScanOutcome::Bad { fault, length: length_max, end: length_max },
        None if eof => RowScanOutcome::Bad { fault, length: window.len(), end: window.len() },
        None => RowScanOutcome::More,
    }
}

/// Refuses a row beyond the length limit in pieces of that length. The last piece ends with the line, if the line end
/// is in sight.
fn long_row(layout: &CsvLayout, input: &[u8]) -> RowScanOutcome {
    let length_max = layout.row_bytes_max;
    let window = &input[..input.len().min(length_max + 2)];
    let fault = |actual| CsvFault::numbers(CsvFaultCode::LongRow, length_max, actual);
    match memchr::memchr(b'\n', window) {
        Some(offset) => {
            let length = without_return(window, offset);
            RowScanOutcome::Bad { fault: fault(length), length, end: offset + 1 }
        }
        None => {
            let length = if input.len() >= length_max + 2 { length_max } else { input.len() };
            let fault = match has_bare_return(window) {
                true => CsvFault::from_code(CsvFaultCode::BareReturn),
                false => fault(window.len()),
            };
            RowScanOutcome::Bad { fault, length, end: length }
        }
    }
}

/// Returns whether a carriage return in a line without its end has something else behind it.
#[inline]
pub(super) fn has_bare_return(line: &[u8]) -> bool {
    memchr::memchr(b'\r', line).is_some_and(|offset| line[offset..].iter().any(|byte| *byte != b'\r'))
}

/// Returns the length of the line that the line feed at `feed_offset` ends, without its carriage return.
fn without_return(line: &[u8], feed_offset: usize) -> usize {
    feed_offset - usize::from(feed_offset > 0 && line[feed_offset - 1] == b'\r')
}
