//! JSON Lines of any make: one object or list a line.
//!
//! ```text
//! {"id":"7","author":{"name":"Ann"},"recipients":[{"email":"b@x"},{"email":"c@x"}],"score":1.50}
//!     id           author.name              recipients[].email  (twice)              score
//! ```
//!
//! A file that begins with `[` is **one list** of such objects, as exports of chats are, on one line or on many: each entry
//! of the list is a message ([`TextMessageDecoder::inspect_head`] says so to the decoder). If a value follows the `[` at once, as
//! in `[336,{"as":…},"book-10"]`, the lines are messages that are lists.
//!
//! **Lines** end with `\n`; blank ones are nothing, a byte order mark before one is skipped. A fault in a line
//! affects that line alone: the decoder reads the next one as if nothing had been. A line longer than the limit goes
//! in pieces of that size. A line that is not JSON is refused, and so is an object with two members of one name; one that
//! is not UTF-8 is read as [`crate::charset`] says.
//!
//! **Paths** are the names of members with `.` between them, `[]` for the entries of a list. A name that has other
//! characters than a path can hold (`.`, `[`, `]`, `"`, `@`, `\`, control characters), or none at all, is in quotes,
//! as in JSON: `headers."x.y"`. A list in a list is often a record without names, such as a price and a quantity. Its
//! entries have their positions, from 0: `bids[][0]`, `bids[][1]`. If they are lists they have none: in `x[][][1]` the
//! position is that of the innermost list. All entries of a message that is a list have their positions: `[1].as[][0]`.
//!
//! **Values** are text: numbers as they were written, never through a float.

mod list;
pub mod path;
#[cfg(test)]
mod tests;
mod walk;

use super::{NextTextMessage, PathValues, Span, TextFault, TextFaultCode, TextMessage, TextMessageDecoder};

use crate::charset::{Charset, FallbackCharset};
use crate::foreign::{EndPadding, ForeignCheck, ForeignInput};
use list::ListStep;

/// The longest line that is read as a message, in bytes.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// The bytes from the start of a list's entry in which its brackets must match once they are found not to be JSON. It
/// bounds the search for the end of a broken entry, which each broken entry begins again.
const BROKEN_ENTRY_BYTES_MAX: usize = 64 << 10;

/// Lists and objects in each other, at most.
pub const DEPTH_MAX: usize = 64;

/// The type name of a message that is an object.
pub const KIND: &str = "object";

/// The type name of a message that is a list.
pub const LIST_KIND: &str = "list";

/// Finds lines and takes them apart.
#[derive(Debug, Clone, Copy)]
pub struct JsonlDecoder {
    pub(crate) max_line: usize,
    pub(crate) shape: InputShape,
    fallback: FallbackCharset,
}

/// What the first bytes of an input say of all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputShape {
    /// A message is a line.
    Lines,
    /// A message is an entry of a list.
    List,
    /// UTF-16, which is not read.
    Utf16(Charset),
    /// A ZIP archive, which is not read.
    ZipArchive,
}

impl Default for JsonlDecoder {
    /// Lines up to [`LINE_BYTES_MAX`].
    fn default() -> Self {
        Self { max_line: LINE_BYTES_MAX, shape: InputShape::Lines, fallback: FallbackCharset::default() }
    }
}

impl JsonlDecoder {
    /// Sets the maximum length of a line in bytes, 8 at least.
    #[must_use]
    pub fn with_max_line(self, max_line: usize) -> Self {
        Self { max_line: max_line.max(8), ..self }
    }

    /// Sets how the decoder reads lines that are not UTF-8.
    #[must_use]
    pub fn with_fallback(self, fallback: FallbackCharset) -> Self {
        Self { fallback, ..self }
    }

    /// Reads the entry of a list at `buf[offset..]`.
    #[cold]
    fn next_entry(&self, buf: &[u8], offset: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage {
        let mut step = list::step(buf, offset, self.max_line.min(BROKEN_ENTRY_BYTES_MAX));
        match step {
            ListStep::Open { from, end }
                if end - from == BROKEN_ENTRY_BYTES_MAX && self.is_json_so_far(&buf[from..end], leaves) =>
            {
                step = list::step(buf, offset, self.max_line);
            }
            _ => {}
        }
        let (from, limit, entry) = match step {
            ListStep::Nothing { .. } if eof => return NextTextMessage::End,
            // Whether the list begins here, or one in it, is looked at again with more bytes.
            ListStep::Nothing { .. } => {
                return NextTextMessage::Incomplete { from: offset, need: buf.len() + 1 };
            }
            ListStep::Entry { from, end } => (from, end, Some(end)),
            // What begins at the end of the bytes may be a byte order mark.
            ListStep::Open { from, end } if !eof && end == buf.len() && end - from < self.max_line => {
                return NextTextMessage::Incomplete { from: offset, need: buf.len() + 1 };
            }
            ListStep::Open { from, end } => (from, end, None),
        };
        leaves.clear();
        let text = buf[from..limit].trim_ascii_end();
        let text_span = Span { start: from, end: from + text.len() };
        let fault = match walk::entry(text, self.fallback, leaves) {
            Ok(()) if entry.is_some() => {
                return NextTextMessage::Message(TextMessage { span: text_span, kind: KIND });
            }
            Err(fault) if entry.is_some() => return NextTextMessage::Bad { span: text_span, fault },
            Ok(()) => TextFault::new(TextFaultCode::Truncated, 0, "the object is not over"),
            Err(fault) => fault,
        };
        // An entry without end: what follows the place where it is no JSON any more may be another one.
        let resync_offset = match fault.code {
            TextFaultCode::BadJson => list::resync(&buf[..limit], from + (fault.offset as usize).max(1)),
            _ => None,
        };
        match resync_offset {
            Some(end) => NextTextMessage::Bad { span: Span { start: from, end }, fault },
            None if limit - from == self.max_line => NextTextMessage::Bad {
                span: Span { start: from, end: limit },
                fault: TextFault::new(TextFaultCode::TooLarge, 0, "an entry of the list without end"),
            },
            None => NextTextMessage::Bad { span: text_span, fault },
        }
    }

    /// Returns whether the start of an entry is the start of an object.
    fn is_json_so_far(&self, start: &[u8], leaves: &mut PathValues) -> bool {
        // The bytes may end within a character.
        let continuation_count =
            start.iter().rev().take(3).position(|byte| !matches!(byte, 0x80..=0xbf)).unwrap_or(0);
        let cut = start.len()
            - continuation_count
            - usize::from(start[start.len() - 1 - continuation_count] >= 0xc0);
        leaves.clear();
        match walk::line(&start[..cut], self.fallback, leaves) {
            Ok(()) => true,
            Err(fault) => !matches!(fault.code, TextFaultCode::BadJson | TextFaultCode::Garbage),
        }
    }

    /// Returns the offset after the last line end of `buf`, so that a stream can be cut into blocks there.
    #[must_use]
    pub fn cut(buf: &[u8]) -> usize {
        memchr::memrchr(b'\n', buf).map_or(0, |n| n + 1)
    }
}

impl TextMessageDecoder for JsonlDecoder {
    fn inspect_head<'h>(&mut self, head: &'h [u8]) -> &'h [u8] {
        let start = skip(head, 0, true).unwrap_or(0);
        let rest = &head[start..];
        self.shape = match crate::charset::utf_16(head) {
            Some(charset) => InputShape::Utf16(charset),
            None if ForeignInput::check(head, true) == ForeignCheck::Is(ForeignInput::ZipArchive) => {
                InputShape::ZipArchive
            }
            // A list that begins with a value at once is a message of its line.
            None if rest.first() == Some(&b'[') => match rest.get(1) {
                Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => InputShape::Lines,
                _ => InputShape::List,
            },
            None => InputShape::Lines,
        };
        match self.shape {
            InputShape::Lines => b"",
            InputShape::List => &rest[..1],
            InputShape::Utf16(_) | InputShape::ZipArchive => &head[..head.len().min(4)],
        }
    }

    fn next(&mut self, buf: &[u8], offset: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage {
        match self.shape {
            InputShape::Lines => {}
            InputShape::List => return self.next_entry(buf, offset, eof, leaves),
            InputShape::Utf16(charset) => return super::utf_16(buf, offset, eof, self.max_line, charset),
            InputShape::ZipArchive => {
                let detail = ForeignInput::ZipArchive.description();
                let fault = TextFault::new(TextFaultCode::BadEncoding, 0, detail);
                return super::refused_piece(buf, offset, eof, self.max_line, fault);
            }
        }
        let from = match skip(buf, offset, eof) {
            Ok(from) => from,
            Err(from) => return NextTextMessage::Incomplete { from, need: buf.len() + 1 },
        };
        if from == buf.len() {
            return if eof {
                NextTextMessage::End
            } else {
                NextTextMessage::Incomplete { from, need: from + 1 }
            };
        }
        match EndPadding::check(&buf[from..], eof) {
            EndPadding::No => {}
            EndPadding::Is => return NextTextMessage::End,
            EndPadding::Undecided => {
                return NextTextMessage::Incomplete { from, need: buf.len() + 1 };
            }
        }
        super::decode_line(buf, from, eof, self.max_line, |line| {
            leaves.clear();
            walk::line(line, self.fallback, leaves).map_err(|fault| with_bare_return(line, fault))?;
            Ok(if line.first() == Some(&b'[') { LIST_KIND } else { KIND })
        })
    }
}

/// Adds to a fault at a carriage return, or right after one, that a carriage return does not end a line.
#[cold]
fn with_bare_return(line: &[u8], fault: TextFault) -> TextFault {
    let before = line.get(..fault.offset as usize).unwrap_or_default();
    let is_behind = before.trim_ascii_end().len() < before.len() && before.contains(&b'\r');
    let is_at = line.get(fault.offset as usize) == Some(&b'\r');
    match fault.code {
        TextFaultCode::BadJson | TextFaultCode::Garbage if is_behind || is_at => TextFault::new(
            fault.code,
            fault.offset as usize,
            "a carriage return alone does not end a line: convert the line ends to line feeds (tr '\\r' '\\n'):",
        ),
        _ => fault,
    }
}

/// Skips white space and byte order marks. `Err` means that more bytes must show whether a mark is there.
fn skip(buf: &[u8], mut offset: usize, eof: bool) -> Result<usize, usize> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    loop {
        let rest = buf.get(offset..).unwrap_or_default();
        let white = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let rest = &rest[white..];
        offset += white;
        if rest.starts_with(MARK) {
            offset += MARK.len();
        } else if !eof && !rest.is_empty() && rest.len() < MARK.len() && MARK.starts_with(rest) {
            return Err(offset);
        } else {
            return Ok(offset.min(buf.len()));
        }
    }
}
