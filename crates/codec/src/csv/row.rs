//! One row: where it ends and where its values are.

use super::fault::{CsvFault, CsvFaultCode};
use super::layout::{CsvLayout, VALUES_MAX};
use super::simd::{CsvKernel, ScanStop};

/// Values of a row, as places in its bytes; a value whose quotes were doubled is in `text` after them.
#[derive(Debug, Clone, Default)]
pub(super) struct RowValueSpans {
    pub places: Vec<ValueSpan>,
    /// Values without the doubled quotes.
    pub text: Vec<u8>,
    /// The byte between values: that of the layout, or the one that the file states.
    pub separator: u8,
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSpan {
    pub start: u32,
    pub end: u32,
    /// In [`RowValueSpans::text`], not in the row.
    pub apart: bool,
}

/// The row at the start of a stretch of input.
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
    pub(super) fn read(
        &mut self,
        layout: &CsvLayout,
        kernel: CsvKernel,
        input: &[u8],
        eof: bool,
    ) -> RowScanOutcome {
        self.places.clear();
        self.text.clear();
        let most = layout.row_bytes_max;
        // A carriage return and a line feed may be after the longest row.
        let seen = &input[..input.len().min(most + 2)];
        let places = &mut self.places;
        let stop = kernel.scan(seen, self.separator, layout.quote.unwrap_or(b'\n'), places);
        let feed = match stop {
            ScanStop::Quote => return self.quoted(layout, input, eof),
            ScanStop::LineEnd(at) => Some(at),
            ScanStop::End => None,
        };
        let (length, end) = match feed {
            Some(at) => (at - usize::from(at > 0 && input[at - 1] == b'\r'), at + 1),
            None if seen.len() == most + 2 => return long(layout, input),
            None if eof => (input.len() - usize::from(input.last() == Some(&b'\r')), input.len()),
            None => return RowScanOutcome::More,
        };
        if has_bare_return(&input[..length]) {
            return bad(CsvFaultCode::BareReturn, layout, input, true, eof);
        }
        if length > most {
            return long(layout, input);
        }
        let last = places.last().map_or(0, |p| p.end as usize + 1);
        places.push(ValueSpan { start: last as u32, end: length as u32, apart: false });
        self.counted(length, end)
    }

    /// A row in which a quote is, byte by byte.
    fn quoted(&mut self, layout: &CsvLayout, input: &[u8], eof: bool) -> RowScanOutcome {
        let Some(quote) = layout.quote else { return RowScanOutcome::More };
        self.places.clear();
        let most = layout.row_bytes_max;
        let seen = &input[..input.len().min(most + 2)];
        // Input of this length is too long, whatever follows.
        let ended = eof && input.len() < most + 2;
        let mut at = 0;
        loop {
            let place = if seen.get(at) == Some(&quote) {
                let (start, apart) = (at + 1, self.text.len());
                let mut from = start;
                let mut doubled = false;
                let close = loop {
                    let Some(found) = memchr::memchr(quote, &seen[from..]) else {
                        return bad(CsvFaultCode::UnclosedQuote, layout, input, ended, eof);
                    };
                    let found = from + found;
                    match seen.get(found + 1) {
                        Some(byte) if *byte == quote => {
                            self.text.extend_from_slice(&seen[from..=found]);
                            (doubled, from) = (true, found + 2);
                        }
                        None if !ended => return bad(CsvFaultCode::UnclosedQuote, layout, input, ended, eof),
                        _ => break found,
                    }
                };
                at = close + 1;
                if doubled {
                    self.text.extend_from_slice(&seen[from..close]);
                    ValueSpan { start: apart as u32, end: self.text.len() as u32, apart: true }
                } else {
                    self.text.truncate(apart);
                    ValueSpan { start: start as u32, end: close as u32, apart: false }
                }
            } else {
                let rest = &seen[at..];
                let stop = |b: &u8| *b == self.separator || *b == b'\n' || *b == quote;
                let end = at + rest.iter().position(stop).unwrap_or(rest.len());
                let ends_value = seen.get(end).is_some_and(|byte| *byte != b'\n');
                let value = &seen[at..end];
                if has_bare_return(value) || ends_value && value.last() == Some(&b'\r') {
                    return bad(CsvFaultCode::BareReturn, layout, input, true, eof);
                }
                if seen.get(end) == Some(&quote) {
                    return bad(CsvFaultCode::BadQuote, layout, input, true, eof);
                }
                let start = at;
                at = end;
                ValueSpan { start: start as u32, end: end as u32, apart: false }
            };
            self.places.push(place);
            match (seen.get(at), seen.get(at + 1)) {
                (Some(byte), _) if *byte == self.separator => at += 1,
                (Some(b'\n'), _) => {
                    let cut = at > 0 && input[at - 1] == b'\r' && place.end as usize == at && !place.apart;
                    let length = at - usize::from(at > 0 && input[at - 1] == b'\r');
                    if cut && let Some(last) = self.places.last_mut() {
                        last.end -= 1;
                    }
                    return if length > most { long(layout, input) } else { self.counted(length, at + 1) };
                }
                (Some(b'\r'), Some(b'\n')) => {
                    return if at > most { long(layout, input) } else { self.counted(at, at + 2) };
                }
                (Some(b'\r'), None) if ended => {
                    return if at > most { long(layout, input) } else { self.counted(at, at + 1) };
                }
                (None, _) if ended => {
                    let cut = at > 0 && input[at - 1] == b'\r' && place.end as usize == at && !place.apart;
                    if cut && let Some(last) = self.places.last_mut() {
                        last.end -= 1;
                    }
                    let length = at - usize::from(cut);
                    return if length > most { long(layout, input) } else { self.counted(length, at) };
                }
                (None, _) | (Some(b'\r'), None) => {
                    return if input.len() < most + 2 { RowScanOutcome::More } else { long(layout, input) };
                }
                (Some(b'\r'), Some(_)) => return bad(CsvFaultCode::BareReturn, layout, input, true, eof),
                // Something is after a closing quote.
                _ => return bad(CsvFaultCode::BadQuote, layout, input, true, eof),
            }
        }
    }

    fn counted(&self, length: usize, end: usize) -> RowScanOutcome {
        if self.places.len() > VALUES_MAX {
            let fault = CsvFault::numbers(CsvFaultCode::RaggedRow, VALUES_MAX, self.places.len());
            return RowScanOutcome::Bad { fault, length, end };
        }
        RowScanOutcome::Whole { length, end }
    }
}

/// A row with a quote that cannot be: it ends with the line in which it begins. Unless it is `decided`, more bytes
/// may make it good.
fn bad(code: CsvFaultCode, layout: &CsvLayout, input: &[u8], decided: bool, eof: bool) -> RowScanOutcome {
    let most = layout.row_bytes_max;
    let all = input.len() >= most + 2;
    if !decided && !all {
        return RowScanOutcome::More;
    }
    let seen = &input[..input.len().min(most + 2)];
    let fault = CsvFault::from_code(code);
    match memchr::memchr(b'\n', seen) {
        Some(at) => RowScanOutcome::Bad { fault, length: without_return(seen, at), end: at + 1 },
        None if all => RowScanOutcome::Bad { fault, length: most, end: most },
        None if eof => RowScanOutcome::Bad { fault, length: seen.len(), end: seen.len() },
        None => RowScanOutcome::More,
    }
}

/// A row beyond the limit goes in pieces of it, to the end of its line where that is in sight.
fn long(layout: &CsvLayout, input: &[u8]) -> RowScanOutcome {
    let most = layout.row_bytes_max;
    let seen = &input[..input.len().min(most + 2)];
    let fault = |found| CsvFault::numbers(CsvFaultCode::LongRow, most, found);
    match memchr::memchr(b'\n', seen) {
        Some(at) => {
            let length = without_return(seen, at);
            RowScanOutcome::Bad { fault: fault(length), length, end: at + 1 }
        }
        None => {
            let length = if input.len() >= most + 2 { most } else { input.len() };
            let fault = match has_bare_return(seen) {
                true => CsvFault::from_code(CsvFaultCode::BareReturn),
                false => fault(seen.len()),
            };
            RowScanOutcome::Bad { fault, length, end: length }
        }
    }
}

/// Returns whether a carriage return in a line without its end has something else behind it.
#[inline]
pub(super) fn has_bare_return(line: &[u8]) -> bool {
    memchr::memchr(b'\r', line).is_some_and(|at| line[at..].iter().any(|byte| *byte != b'\r'))
}

/// The length of a line that a line feed at `at` ends.
fn without_return(line: &[u8], at: usize) -> usize {
    at - usize::from(at > 0 && line[at - 1] == b'\r')
}
