//! What may precede the header: a mark of UTF-8, a line that states the separator, lines about something else.

use super::decode::{CsvRowDecoder, column_of};
use super::fault::{CsvFault, CsvFaultCode};
use super::layout::PREAMBLE_BYTES_MAX;
use super::row::{RowScanOutcome, has_bare_return};
use crate::foreign::{ForeignCheck, ForeignInput};
use unitape_base::Span;

/// The start of a file up to its header, or to its first row.
pub(super) enum Preamble {
    /// It ends here.
    Until(usize),
    /// A buffer of this many bytes could decide.
    More(usize),
    /// There is no header.
    Bad { span: Span, fault: CsvFault, end: usize },
}

/// Lines among which a header is looked for, at most.
const HEADER_LINES_MAX: usize = 1_000;

/// Returns the first line of a file if it states the separator; otherwise an empty slice.
pub(super) fn separator_line(bytes: &[u8]) -> &[u8] {
    let text_start = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    let line_end_offset = line_end(bytes, text_start).unwrap_or(bytes.len());
    if stated_separator(&bytes[text_start..line_end_offset]).is_some() {
        &bytes[..line_end_offset]
    } else {
        &[]
    }
}

impl CsvRowDecoder {
    /// Finds the end of what precedes header and rows, from the start of a file.
    pub(super) fn preamble(&mut self, buf: &[u8], eof: bool) -> Preamble {
        let layout = self.layout().clone();
        match ForeignInput::check(buf, eof) {
            ForeignCheck::No => {}
            ForeignCheck::Needs(bytes) => return Preamble::More(bytes),
            ForeignCheck::Is(input) => {
                let window = &buf[..buf.len().min(layout.row_bytes_max)];
                let preamble_line_end = match line_end(window, 0) {
                    Some(end) => end,
                    None if !eof && window.len() < layout.row_bytes_max => {
                        return Preamble::More(buf.len() + 1);
                    }
                    None => window.len(),
                };
                let fault = CsvFault::from_code(input.into());
                return Preamble::Bad {
                    span: Span { start: 0, end: preamble_line_end },
                    fault,
                    end: preamble_line_end,
                };
            }
        }
        let header_start = match buf {
            [0xef, 0xbb, 0xbf, ..] => 3,
            [] | [0xef] | [0xef, 0xbb] if !eof => return Preamble::More(3),
            _ => 0,
        };
        let mut line_start = header_start;
        let header_bytes = &buf[header_start..];
        let might_state =
            header_bytes.len() < SEPARATOR_LINE_BYTES_MAX && line_end(header_bytes, 0).is_none();
        let begins = SEPARATOR_WORDS.iter().any(|w| {
            let n = w.len().min(header_bytes.len());
            header_bytes[..n].eq_ignore_ascii_case(&w[..n])
        });
        if begins && might_state && !eof {
            return Preamble::More(buf.len() + 1);
        }
        let first_line = &buf[header_start..line_end(buf, header_start).unwrap_or(buf.len())];
        if let Some(stated) = stated_separator(first_line) {
            line_start = header_start + first_line.len();
            if layout.states_separator && stated != layout.separator {
                let span = Span { start: header_start, end: line_start };
                let (expected, actual) = (usize::from(layout.separator), usize::from(stated));
                let fault = CsvFault::numbers(CsvFaultCode::BadSeparator, expected, actual);
                return Preamble::Bad { span, fault, end: line_start };
            }
            self.set_separator(stated);
        }
        let mut line = header_start;
        for _ in 0..layout.lines_skipped {
            match line_end(buf, line) {
                Some(end) => line = end,
                None if eof && has_bare_return(&buf[line..]) => {
                    let span = Span { start: line, end: buf.len() };
                    let fault = CsvFault::from_code(CsvFaultCode::BareReturn);
                    return Preamble::Bad { span, fault, end: buf.len() };
                }
                None if eof => return Preamble::Until(buf.len()),
                None if buf.len() - header_start < PREAMBLE_BYTES_MAX => {
                    return Preamble::More(buf.len() + 1);
                }
                None => line = buf.len(),
            }
            if line - header_start > PREAMBLE_BYTES_MAX {
                let span = Span { start: header_start, end: header_start + PREAMBLE_BYTES_MAX };
                let fault = CsvFault::numbers(CsvFaultCode::HeaderNotFound, layout.lines_skipped, 0);
                return Preamble::Bad { span, fault, end: span.end };
            }
        }
        line_start = line_start.max(line);
        if layout.finds_header { self.find_header(buf, line_start, eof) } else { Preamble::Until(line_start) }
    }

    /// Finds the first line from `from` on that has all columns of the layout.
    fn find_header(&mut self, buf: &[u8], from: usize, eof: bool) -> Preamble {
        let layout = self.layout().clone();
        let mut offset = from;
        let mut lines = 0;
        while lines < HEADER_LINES_MAX && offset - from < PREAMBLE_BYTES_MAX {
            while buf.get(offset).is_some_and(|b| matches!(b, b'\n' | b'\r')) {
                offset += 1;
            }
            if offset >= buf.len() {
                break;
            }
            let length = match self.scan_row(&buf[offset..], eof) {
                RowScanOutcome::Whole { length, .. } => Some(length),
                RowScanOutcome::Bad { .. } => None,
                RowScanOutcome::More => return Preamble::More(buf.len() + 1),
            };
            let names = length.and_then(|length| self.names_of(&buf[offset..offset + length]));
            let columns = layout.row.columns();
            if names.is_some_and(|names| columns.iter().all(|c| column_of(&names, c.source()).is_some())) {
                return Preamble::Until(offset);
            }
            lines += 1;
            offset = match line_end(buf, offset) {
                Some(end) => end,
                None => buf.len(),
            };
        }
        let is_past_header = lines >= HEADER_LINES_MAX || offset - from >= PREAMBLE_BYTES_MAX;
        if !is_past_header && !eof {
            return Preamble::More(buf.len() + 1);
        }
        if lines == 0 {
            return Preamble::Until(buf.len());
        }
        // The rows behind it have no header, too.
        let end = line_end(buf, from).unwrap_or(buf.len());
        let span = Span { start: from, end: from + buf[from..end].trim_ascii_end().len() };
        let fault = match has_bare_return(span.slice(buf)) {
            true => CsvFault::from_code(CsvFaultCode::BareReturn),
            false => CsvFault::numbers(CsvFaultCode::HeaderNotFound, 0, lines),
        };
        Preamble::Bad { span, fault, end }
    }
}

/// Returns the offset after the line that begins at `from`; `None` if the line has no end.
fn line_end(buf: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(b'\n', buf.get(from..)?).map(|n| from + n + 1)
}

/// Returns the separator that a line such as `sep=;` states.
fn stated_separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    let (word, rest) = line.split_at_checked(4)?;
    match rest {
        _ if !word.eq_ignore_ascii_case(b"sep=") => None,
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => Some(*byte),
        _ => None,
    }
}

/// The mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The starts of a line that may state the separator.
const SEPARATOR_WORDS: [&[u8]; 2] = [b"sep=", b"\"sep="];

/// Bytes of such a line.
const SEPARATOR_LINE_BYTES_MAX: usize = 9;
