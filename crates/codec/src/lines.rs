//! Lines out of a buffer, sans I/O.

use std::fmt::{self, Display};
use unitape_base::{FrameFault, FramedLine, NextFrame, Span};

/// The fault of a line with more than this many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLine(pub usize);

impl FrameFault for LongLine {
    fn code_word(&self) -> &'static str {
        "too_large"
    }
}

impl Display for LongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line longer than {} MiB", self.0 >> 20)
    }
}

/// Finds the line at `buf[offset..]`, of at most `bytes_max` bytes; `eof`: nothing follows `buf`, so that a last line
/// needs no newline. A carriage return before the newline is not part of the line. A longer line is refused in pieces
/// of `bytes_max` bytes, so that the pieces do not depend on where the buffer ends; the rest of the line follows them.
///
/// ```
/// use unitape_base::{FramedLine, NextFrame, Span};
/// use unitape_codec::next_line;
/// let line = |start, stop, end| NextFrame::Message(FramedLine { span: Span { start, end: stop }, end, content: () });
/// assert_eq!(next_line(b"a\r\nb", 0, false, 9), line(0, 1, 3));
/// assert_eq!(next_line(b"a\r\nb", 3, false, 9), NextFrame::Incomplete { from: 3, need: 5 });
/// assert_eq!(next_line(b"a\r\nb", 3, true, 9), line(3, 4, 4));
/// assert_eq!(next_line(b"a\r\nb", 4, true, 9), NextFrame::End);
/// ```
#[inline]
#[must_use]
pub fn next_line(buf: &[u8], offset: usize, eof: bool, bytes_max: usize) -> NextFrame<FramedLine, LongLine> {
    let line_bytes = buf.get(offset..).unwrap_or_default();
    let (length, end) = match memchr::memchr(b'\n', &line_bytes[..line_bytes.len().min(bytes_max + 1)]) {
        Some(length) => (length, offset + length + 1),
        None if line_bytes.len() > bytes_max => {
            let span = Span { start: offset, end: offset + bytes_max };
            return NextFrame::Bad { span, fault: LongLine(bytes_max) };
        }
        None if !eof => return NextFrame::Incomplete { from: offset, need: buf.len() + 1 },
        None if line_bytes.is_empty() => return NextFrame::End,
        None => (line_bytes.len(), buf.len()),
    };
    let length = line_bytes[..length].strip_suffix(b"\r").map_or(length, <[u8]>::len);
    NextFrame::Message(FramedLine { span: Span { start: offset, end: offset + length }, end, content: () })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        /// Guards against a cut that makes, loses or changes a line.
        #[test]
        fn lines_are_those_of_split(bytes in proptest::collection::vec(prop::sample::select(&b"ab\n\r\x0b\x8a"[..]), 0..80), cut in 0usize..80) {
            let mut want: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
            if want.last().is_some_and(|l| l.is_empty()) {
                want.pop();
            }
            let want: Vec<_> = want.into_iter().map(|l| l.strip_suffix(b"\r").unwrap_or(l)).collect();
            let (mut offset, mut got) = (0, Vec::new());
            let mut visible_length = cut.min(bytes.len());
            loop {
                match next_line(&bytes[..visible_length], offset, visible_length == bytes.len(), 100) {
                    NextFrame::Message(line) => { got.push(line.span.slice(&bytes)); offset = line.end; }
                    NextFrame::Incomplete { .. } => visible_length = bytes.len(),
                    NextFrame::End => break,
                    NextFrame::Bad { .. } => unreachable!(),
                }
            }
            prop_assert_eq!(got, want);
        }
    }

    /// Guards against unbounded memory: a file of zeros has no newline and must be refused.
    #[test]
    fn a_line_without_end_is_given_up() {
        let bad = NextFrame::Bad { span: Span { start: 0, end: 8 }, fault: LongLine(8) };
        assert_eq!(next_line(&[0; 9], 0, false, 8), bad);
        assert_eq!(next_line(&[0; 8], 0, false, 8), NextFrame::Incomplete { from: 0, need: 9 });
        assert_eq!(next_line(b"123456789\n", 0, false, 8), bad);
        let line = |start, end| FramedLine { span: Span { start, end }, end: end + 1, content: () };
        assert_eq!(next_line(b"123456789\n", 8, false, 8), NextFrame::Message(line(8, 9)));
        assert_eq!(next_line(b"12345678\n", 0, false, 8), NextFrame::Message(line(0, 8)));
    }
}
