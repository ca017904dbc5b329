//! Text that people write: JSON Lines of any make, e-mail, and news in XML, each message as values by path.
//!
//! ```text
//! bytes ──Decode──▶ messages, faults ──▶ Leaves: author.name = "Ann", recipients[].email = "bob@…", …
//!                                           ╰──decode_json──▶ JSON Lines
//! ```
//!
//! | | |
//! |---|---|
//! | [`jsonl`] | JSON Lines: one object a line, whatever is in it |
//! | [`mail`] | e-mail: RFC 5322 with MIME, alone or in an mbox |
//! | [`xml`] | news in XML: items of RSS, Atom and NewsML-G2 |
//! | [`PathValues`] | the values of a message, by path, and where the entries of its lists are |
//! | [`time`] | moments as such sources write them: ISO 8601, RFC 5322, counts since 1970 |
//! | [`decode_json`] | a file as JSON Lines |
//!
//! Every decoder has the rules of the other codecs: what is at a position depends on the bytes from there on, never
//! on where the buffer ends; what is wrong is a value with a code and a place; memory is bounded by the longest message
//! that is taken.
//!
//! ```
//! use unitape_codec::text::{TextMessageDecoder, PathValues, NextTextMessage, jsonl};
//!
//! let line = br#"{"id":7,"author":{"name":"Ann"},"to":["Bob","Cy"]}"#;
//! let mut leaves = PathValues::default();
//! let NextTextMessage::Message(_) = jsonl::JsonlDecoder::default().next(line, 0, true, &mut leaves) else { panic!() };
//! let values: Vec<_> = leaves.iter().map(|(path, text)| format!("{path}={text}")).collect();
//! assert_eq!(values, ["id=7", "author.name=Ann", "to[]=Bob", "to[]=Cy"]);
//! ```
//!
//! It gives no field a meaning: that is a mapping's.

mod fault;
mod json;
pub mod jsonl;
pub mod mail;
mod path_values;
pub mod time;
mod undeclared;
pub mod xml;

use crate::charset::Charset;
use crate::next_line;
pub use fault::{CharsetLabel, TextFault, TextFaultCode};
pub use json::{TextSummary, decode_json};
pub use path_values::{ListEntry, PathValue, PathValueKind, PathValues};
use unitape_base::NextFrame;
pub use unitape_base::Span;

/// Bytes at the start of an input that a decoder is shown.
pub const HEAD_BYTES: usize = 1024;

/// Finds the messages of a stream and takes them apart.
pub trait TextMessageDecoder {
    /// Takes the first bytes of an input, [`HEAD_BYTES`] or the whole input. They show facts about the whole input:
    /// the declaration of an encoding, or the list that a JSON file may be. Returns the bytes that a decoder needs if
    /// it begins further on; empty if they show no such fact.
    fn inspect_head<'h>(&mut self, head: &'h [u8]) -> &'h [u8] {
        _ = head;
        b""
    }

    /// Finds the message at `buf[offset..]`; `eof`: the input ends where `buf` does. The values of a message are put into
    /// `path_values`; after any other answer its contents have no meaning.
    fn next(&mut self, buf: &[u8], offset: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage;
}

/// Finds the line at `buf[from..]`, where no white space may be, and decodes it without the white space at its end.
/// `decode` returns the type name of the message. A line of more than `bytes_max` bytes is refused.
pub fn decode_line(
    buf: &[u8],
    from: usize,
    eof: bool,
    bytes_max: usize,
    decode: impl FnOnce(&[u8]) -> Result<&'static str, TextFault>,
) -> NextTextMessage {
    let line = match next_line(buf, from, eof, bytes_max) {
        NextFrame::Message(line) => line.span.slice(buf).trim_ascii_end(),
        NextFrame::Bad { span, .. } => {
            let fault = TextFault::new(TextFaultCode::TooLarge, 0, "a line without end");
            return NextTextMessage::Bad { span, fault };
        }
        NextFrame::Incomplete { from, need } => return NextTextMessage::Incomplete { from, need },
        NextFrame::End => return NextTextMessage::End,
    };
    let span = Span { start: from, end: from + line.len() };
    match decode(line) {
        Ok(kind) => NextTextMessage::Message(TextMessage { span, kind }),
        Err(fault) => NextTextMessage::Bad { span, fault },
    }
}

/// Refuses a piece of an input in UTF-16, of `most` bytes.
#[cold]
fn utf_16(buf: &[u8], offset: usize, eof: bool, most: usize, charset: Charset) -> NextTextMessage {
    let fault = TextFault {
        charset: Some(CharsetLabel::new(charset.name())),
        ..TextFault::new(
            TextFaultCode::BadEncoding,
            0,
            "UTF-16 is not read, convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8):",
        )
    };
    refused_piece(buf, offset, eof, most, fault)
}

/// Refuses a piece of `most` bytes of an input that is refused as a whole.
#[cold]
fn refused_piece(buf: &[u8], offset: usize, eof: bool, most: usize, fault: TextFault) -> NextTextMessage {
    let bytes_left = buf.len() - offset.min(buf.len());
    match bytes_left {
        0 if eof => NextTextMessage::End,
        _ if bytes_left < most && !eof => NextTextMessage::Incomplete { from: offset, need: buf.len() + 1 },
        _ => NextTextMessage::Bad { span: Span { start: offset, end: offset + bytes_left.min(most) }, fault },
    }
}

/// The next message of the input. Bytes between the position asked for and the start of a span are separators; the
/// next position to ask for is the end of the span.
pub type NextTextMessage = NextFrame<TextMessage, TextFault>;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextMessage {
    /// All of it in the buffer.
    pub span: Span,
    /// The type name of the message.
    pub kind: &'static str,
}
