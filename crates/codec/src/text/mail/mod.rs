//! E-mail: messages of RFC 5322 with MIME, one a file or many in an mbox.
//!
//! ```text
//! From ann@x Mon Mar  2 09:30:00 2026        ◀ postmark: an mbox has one before each message
//! From: =?utf-8?q?Ann_=C3=84mes?= <ann@x>    from[].name = Ann Ämes, from[].email = ann@x
//! To: bob@y, "Cole, Cy" <cy@y>               to[].email = bob@y, cy@y; recipients[] has them too
//! Subject: the                               subject = the fix
//!  fix
//! Content-Type: multipart/alternative; …     text = the part text/plain, decoded to UTF-8
//! ```
//!
//! # The rules
//!
//! 1. **Between messages** blank lines are skipped.
//! 2. A **message** begins with a postmark (`From `, who, and a date as `asctime` writes it) or with a header field. It goes
//!    up to the next line that is a postmark, or to the end of the input. Lines in it that are a postmark with `>` before
//!    it lose one `>`, where the message itself has a postmark.
//! 3. **Header fields** are unfolded, encoded words (RFC 2047) decoded. Bytes that are neither ASCII nor UTF-8 are read as
//!    [`crate::charset`] says, but in addresses and identifiers, where they are refused; an encoded word that cannot be
//!    decoded stays unchanged. `Date`, `From`, `Sender`, `Subject`,
//!    `TextMessage-ID` and the fields of MIME may be there once.
//! 4. **Text** is what parts `text/*` hold, of alternatives the plain one; the table in `body.rs` cites RFC 2045 and 2046
//!    for each kind of part. Its bytes must be characters of the set that is declared; without one the rule of
//!    [`crate::charset`] holds. Of a set that nobody knows the ASCII characters are read. The text
//!    of a forwarded message is a value of its own, under its From, Date and Subject. Attachments are named and counted.
//! 5. A message **longer than the limit** is refused in pieces of that size. A **bad** message goes up to the next
//!    postmark, too.
//!
//! | path | is |
//! |---|---|
//! | `date` | as it was written; [`super::time::rfc5322`] reads it |
//! | `message_id`, `in_reply_to`, `references[]` | without `<` and `>` |
//! | `from[]`, `sender[]`, `reply_to[]`, `to[]`, `cc[]`, `bcc[]` | `.name` and `.email` of each |
//! | `recipients[]` | the addresses of To, Cc and Bcc, in this order |
//! | `subject`, `text`, `html` | `html`: markup that has no plain alternative |
//! | `alternatives[]` | types of alternatives that were not read |
//! | `forwarded[]` | `.from`, `.date`, `.subject`, `.text` and `.html` of each forwarded message |
//! | `attachments[]` | `.name` and `.type` of each |
//! | `attachment_count`, `attachment_list` | how many; `fills.csv (text/csv); (image/png)` |
//! | `headers.NAME` | every other field, by its name in small letters |

mod address;
mod body;
mod charsets;
mod header;
mod mime_field;
#[cfg(test)]
mod tests;
mod words;

use super::{NextTextMessage, PathValues, Span, TextFault, TextFaultCode, TextMessage, TextMessageDecoder};
use crate::charset::FallbackCharset;

use charsets::MailCharsets;

/// The largest message that is read, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The type name of a message.
pub const KIND: &str = "mail";

/// The longest line that is a postmark.
pub(crate) const POSTMARK_BYTES_MAX: usize = 512;

/// Finds messages and takes them apart.
#[derive(Debug, Clone)]
pub struct MailDecoder {
    max_message: usize,
    fallback: FallbackCharset,
    /// The message without the marks that its mbox put into it.
    unquoted: Vec<u8>,
}

impl Default for MailDecoder {
    /// Messages up to [`MESSAGE_BYTES_MAX`].
    fn default() -> Self {
        Self { max_message: MESSAGE_BYTES_MAX, fallback: FallbackCharset::default(), unquoted: Vec::new() }
    }
}

impl MailDecoder {
    /// Sets the maximum length of a message in bytes, 64 at least.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        Self { max_message: max_message.max(64), ..self }
    }

    /// Sets how the decoder reads text that declares no character set and is not UTF-8.
    #[must_use]
    pub fn with_fallback(self, fallback: FallbackCharset) -> Self {
        Self { fallback, ..self }
    }

    /// Returns where the last message of `buf` starts, after its first, so that a stream can be cut into blocks
    /// there.
    #[must_use]
    pub fn cut(buf: &[u8]) -> usize {
        let mut end = buf.len();
        while let Some(n) = memchr::memmem::rfind(&buf[..end], b"\nFrom ") {
            if postmark(&buf[n + 1..], false).is_some() {
                return n + 1;
            }
            end = n;
        }
        if buf.len() > MESSAGE_BYTES_MAX { buf.len() } else { 0 }
    }
}

impl TextMessageDecoder for MailDecoder {
    fn next(&mut self, buf: &[u8], offset: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage {
        let white =
            buf.get(offset..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count();
        let from = offset + white;
        if from >= buf.len() {
            let from = buf.len();
            return if eof {
                NextTextMessage::End
            } else {
                NextTextMessage::Incomplete { from, need: from + 1 }
            };
        }
        let (span, is_complete) = match self.end(buf, from, eof) {
            Some((end, is_complete)) => (Span { start: from, end }, is_complete),
            None => return NextTextMessage::Incomplete { from, need: buf.len() + 1 },
        };
        let message = span.slice(buf);
        let bad = |fault| NextTextMessage::Bad { span, fault };
        let start = match postmark(message, true) {
            Some(n) => n,
            None if header::starts_field(message) => 0,
            None => return bad(TextFault::new(TextFaultCode::Garbage, 0, "neither postmark nor header")),
        };
        if !is_complete {
            return bad(TextFault::new(TextFaultCode::TooLarge, 0, "a message without end"));
        }
        leaves.clear();
        let quoted = start > 0 && memchr::memmem::find(message, b"\n>").is_some();
        let text = if quoted {
            unquote(&message[start..], &mut self.unquoted);
            &self.unquoted[..]
        } else {
            &message[start..]
        };
        match read(text, self.fallback, leaves) {
            Ok(()) => NextTextMessage::Message(TextMessage { span, kind: KIND }),
            // The place in the bytes as received is reported only for a message without marks.
            Err(fault) => {
                bad(TextFault { offset: if quoted { 0 } else { fault.offset + start as u32 }, ..fault })
            }
        }
    }
}

impl MailDecoder {
    /// Finds the end of the message that begins at `from`, and whether it is complete there; `None` if more bytes
    /// decide.
    fn end(&self, buf: &[u8], from: usize, eof: bool) -> Option<(usize, bool)> {
        let limit = from + self.max_message;
        let view = &buf[..buf.len().min(limit + POSTMARK_BYTES_MAX + 1)];
        let mut offset = from;
        while let Some(n) = memchr::memmem::find(&view[offset..], b"\nFrom ") {
            let line = offset + n + 1;
            if line > limit {
                break;
            }
            let rest = &view[line..];
            let open = rest.len() < POSTMARK_BYTES_MAX && memchr::memchr(b'\n', rest).is_none();
            if open && !eof {
                return None;
            }
            if postmark(rest, eof).is_some() {
                return Some((line, true));
            }
            offset = line;
        }
        match buf.len() > limit + POSTMARK_BYTES_MAX || eof && buf.len() > limit {
            true => Some((limit, false)),
            false if eof => Some((buf.len(), true)),
            false => None,
        }
    }
}

/// Returns whether `text` begins with a message header that has a date and a sender. Any bytes may follow the header.
#[must_use]
pub fn has_header(text: &[u8]) -> bool {
    let text = &text[postmark(text, false).unwrap_or(0)..];
    let is = |name: &str| header::fields(text, 0).is_ok_and(|(f, _)| f.iter().any(|f| f.is(text, name)));
    header::starts_field(text) && is("date") && is("from")
}

/// Checks a path: returns it if messages can have a value there.
///
/// # Errors
/// Fails if messages cannot have a value there; the text lists the possible paths.
pub fn known_path(path: &str) -> Result<String, String> {
    let listed = PATHS.contains(&path)
        || path
            .strip_prefix("headers.")
            .is_some_and(|name| !name.is_empty() && name == name.to_ascii_lowercase())
        || PARTIES.iter().any(|party| {
            let rest = path.strip_prefix(party).and_then(|rest| rest.strip_prefix("[]"));
            rest.is_some_and(|rest| matches!(rest, "" | ".name" | ".email"))
        });
    if listed {
        return Ok(path.to_owned());
    }
    let (paths, parties) = (PATHS.join(", "), PARTIES.join("[], "));
    Err(format!(
        "`{path}` is nothing that a mail has: {paths}, {parties}[] with .name and .email, headers.NAME in small letters"
    ))
}

const PATHS: [&str; 20] = [
    "date",
    "message_id",
    "in_reply_to",
    "references[]",
    "recipients[]",
    "subject",
    "text",
    "html",
    "attachments[]",
    "attachments[].name",
    "attachments[].type",
    "attachment_count",
    "attachment_list",
    "alternatives[]",
    "forwarded[]",
    "forwarded[].from",
    "forwarded[].date",
    "forwarded[].subject",
    "forwarded[].text",
    "forwarded[].html",
];

const PARTIES: [&str; 6] = ["from", "sender", "reply_to", "to", "cc", "bcc"];

/// Returns the length of the postmark at the start of `text`, with its line end. If `is_final`, a last line without
/// an end counts.
fn postmark(text: &[u8], is_final: bool) -> Option<usize> {
    let rest = text.strip_prefix(b"From ")?;
    let look = &rest[..rest.len().min(POSTMARK_BYTES_MAX - 5)];
    let (line, end) = match memchr::memchr(b'\n', look) {
        Some(n) => (&look[..n], 5 + n + 1),
        None if is_final && look.len() == rest.len() => (look, text.len()),
        None => return None,
    };
    // "ann@x Mon Mar  2 09:30:00 2026", with an offset after it perhaps.
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty()).skip(1);
    let day = words.next()?;
    let month = words.next()?;
    let date = words.next()?;
    let clock = words.next()?;
    let is = |word: &[u8], list: &[&str]| list.iter().any(|w| w.as_bytes() == word);
    let is_short_number =
        |word: &[u8]| !word.is_empty() && word.len() <= 2 && word.iter().all(u8::is_ascii_digit);
    let has_known_names =
        is(day, &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]) && is(month, &super::time::MONTHS);
    let has_clock = clock.len() >= 5 && clock.iter().all(|b| b.is_ascii_digit() || *b == b':');
    let has_year = words.any(|word| word.len() == 4 && word.iter().all(u8::is_ascii_digit));
    (has_known_names && is_short_number(date) && has_clock && has_year).then_some(end)
}

/// Takes one `>` from the lines that an mbox put one before.
fn unquote(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for line in text.split_inclusive(|b| *b == b'\n') {
        let marks = line.iter().take_while(|b| **b == b'>').count();
        let is_quoted = marks > 0 && line[marks..].starts_with(b"From ");
        out.extend_from_slice(&line[usize::from(is_quoted)..]);
    }
}

/// Puts the values of a message without its postmark into `path_values`.
fn read(message: &[u8], fallback: FallbackCharset, leaves: &mut PathValues) -> Result<(), TextFault> {
    let (fields, content) = header::fields(message, 0)?;
    let mut charsets = MailCharsets::new(fallback);
    charsets.look_at(message, &fields, content);
    let mut summary = header::MailHeaderSummary::default();
    for field in &fields {
        summary.field(message, field, &charsets, leaves)?;
    }
    let mut recipients = Vec::new();
    for name in ["to", "cc", "bcc"] {
        for address in summary.addresses.iter().filter(|(field_name, _)| *field_name == name) {
            recipients.push(&address.1);
        }
    }
    for email in recipients {
        leaves.list_text("recipients[]", email, 0)?;
    }
    body::read(message, &fields, content, &charsets, leaves)?;
    charsets.into_notes().iter().for_each(|note| leaves.note_charset(note));
    Ok(())
}
