//! Lines out of a buffer, sans I/O.

use super::LINE_BYTES_MAX;

/// The line at a place of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextLine<'a> {
    /// A line, without its newline and without a carriage return before that.
    Line {
        /// The line, perhaps empty.
        bytes: &'a [u8],
        /// Where the one after it begins, in bytes from the start of the buffer.
        next: usize,
    },
    /// A line of more than [`LINE_BYTES_MAX`] bytes.
    TooLong {
        /// Where to continue, in bytes from the start of the buffer.
        next: usize,
        /// Whether the line's end was seen. If not, the bytes at `next` still belong to it: the caller must search
        /// for the newline.
        ended: bool,
    },
    /// The buffer ends inside a line and the input does not.
    More,
    /// Nothing is left.
    End,
}

/// Finds the line that begins at byte `offset` of `buf`. With `eof`, nothing follows `buf`, so a last line without a
/// newline counts.
///
/// ```
/// use unitape_codec::events::{NextLine, next_line};
/// assert_eq!(next_line(b"a\r\nb", 0, false), NextLine::Line { bytes: b"a", next: 3 });
/// assert_eq!(next_line(b"a\r\nb", 3, false), NextLine::More);
/// assert_eq!(next_line(b"a\r\nb", 3, true), NextLine::Line { bytes: b"b", next: 4 });
/// assert_eq!(next_line(b"a\r\nb", 4, true), NextLine::End);
/// ```
#[inline]
pub fn next_line(buf: &[u8], offset: usize, eof: bool) -> NextLine<'_> {
    let rest = buf.get(offset..).unwrap_or(&[]);
    let (end, next) = match memchr::memchr(b'\n', rest) {
        Some(n) => (n, offset + n + 1),
        None if rest.len() > LINE_BYTES_MAX => {
            return NextLine::TooLong { next: buf.len(), ended: eof };
        }
        None if !eof => return NextLine::More,
        None if rest.is_empty() => return NextLine::End,
        None => (rest.len(), buf.len()),
    };
    if end > LINE_BYTES_MAX {
        return NextLine::TooLong { next, ended: true };
    }
    let line = &rest[..end];
    NextLine::Line { bytes: line.strip_suffix(b"\r").unwrap_or(line), next }
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
                match next_line(&bytes[..visible_length], offset, visible_length == bytes.len()) {
                    NextLine::Line { bytes, next } => { got.push(bytes); offset = next; }
                    NextLine::More => visible_length = bytes.len(),
                    NextLine::End => break,
                    NextLine::TooLong { .. } => unreachable!(),
                }
            }
            prop_assert_eq!(got, want);
        }
    }

    /// Guards against unbounded memory: a file of zeros has no newline and must be refused.
    #[test]
    fn a_line_without_end_is_given_up() {
        let zeros = vec![0u8; LINE_BYTES_MAX + 1];
        assert_eq!(next_line(&zeros, 0, false), NextLine::TooLong { next: zeros.len(), ended: false });
        assert_eq!(next_line(&zeros[1..], 0, false), NextLine::More);
        let mut ended = zeros;
        ended.extend(b"\nx");
        let next = ended.len() - 1;
        assert_eq!(next_line(&ended, 0, false), NextLine::TooLong { next, ended: true });
        assert_eq!(next_line(&ended, next, true), NextLine::Line { bytes: b"x", next: next + 1 });
    }
}
