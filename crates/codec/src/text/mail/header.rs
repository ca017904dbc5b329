//! The header of a message, or of a part of one: its fields, unfolded and decoded.

use super::charsets::MailCharsets;
use super::{address, words};
use crate::text::{PathValues, TextFault, TextFaultCode, jsonl::path};
use unitape_base::Span;

/// Fields of a header, at most.
const FIELDS_MAX: usize = 2048;

/// A field: name and value as they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct MailHeaderField {
    pub name: Span,
    pub value: Span,
}

impl MailHeaderField {
    pub(super) fn is(&self, message: &[u8], name: &str) -> bool {
        self.name.slice(message).eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Returns whether `text` begins with a header field.
pub(super) fn starts_field(text: &[u8]) -> bool {
    let name = text.iter().take(80).take_while(|b| is_name(**b)).count();
    name > 0 && text.get(name) == Some(&b':')
}

fn is_name(byte: u8) -> bool {
    (b'!'..=b'~').contains(&byte) && byte != b':'
}

/// Reads the header fields at `from`. Returns also where the content after the blank line begins.
pub(super) fn fields(message: &[u8], from: usize) -> Result<(Vec<MailHeaderField>, usize), TextFault> {
    fields_to(message, from, false)
}

/// Reads the header fields of a message inside another. It may end with its header: RFC 5322, 3.5 asks for no blank
/// line after it.
pub(super) fn fields_of_part(
    message: &[u8],
    from: usize,
) -> Result<(Vec<MailHeaderField>, usize), TextFault> {
    fields_to(message, from, true)
}

fn fields_to(message: &[u8], from: usize, may_end: bool) -> Result<(Vec<MailHeaderField>, usize), TextFault> {
    let mut fields: Vec<MailHeaderField> = Vec::new();
    let mut offset = from;
    loop {
        let header_bytes = &message[offset..];
        let n = match memchr::memchr(b'\n', header_bytes) {
            Some(n) => n,
            None if may_end && header_bytes.is_empty() => return Ok((fields, offset)),
            None if may_end => header_bytes.len(),
            // Headers end with a blank line.
            None => {
                return Err(TextFault::new(
                    TextFaultCode::Truncated,
                    message.len(),
                    "the header is not over",
                ));
            }
        };
        let line = header_bytes[..n].strip_suffix(b"\r").unwrap_or(&header_bytes[..n]);
        let (start, end) = (offset, offset + line.len());
        offset = message.len().min(offset + n + 1);
        if line.is_empty() {
            return Ok((fields, offset));
        }
        if matches!(line[0], b' ' | b'\t') {
            match fields.last_mut() {
                Some(field) => field.value.end = end,
                None => {
                    return Err(TextFault::new(
                        TextFaultCode::BadHeader,
                        start,
                        "a header begins with a folded line",
                    ));
                }
            }
            continue;
        }
        let name = line.iter().take_while(|b| is_name(**b)).count();
        let blanks = line[name..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        if name == 0 || line.get(name + blanks) != Some(&b':') {
            return Err(TextFault::new(
                TextFaultCode::BadHeader,
                start,
                "a line of the header that is no field",
            ));
        }
        if fields.len() >= FIELDS_MAX {
            return Err(TextFault::new(TextFaultCode::TooDeep, start, "more than 2048 header fields"));
        }
        let name = Span { start, end: start + name };
        fields.push(MailHeaderField { name, value: Span { start: name.end + blanks + 1, end } });
    }
}

/// Returns the value of a field: its lines joined, without surrounding white space.
pub(super) fn unfold(
    message: &[u8],
    field: &MailHeaderField,
    charsets: &MailCharsets,
) -> Result<String, TextFault> {
    unfold_noting_guess(message, field, charsets).map(|(text, _)| text)
}

/// Unfolds a field like [`unfold`], and returns whether its character set was guessed.
fn unfold_noting_guess(
    message: &[u8],
    field: &MailHeaderField,
    charsets: &MailCharsets,
) -> Result<(String, bool), TextFault> {
    let raw = field.value.slice(message);
    let (text, guessed) = charsets.header(raw).map_err(|index| {
        let offset = field.value.start + index;
        TextFault::new(
            TextFaultCode::BadUtf8,
            offset,
            "a header field with a byte that is in no set of characters",
        )
    })?;
    let mut out = String::with_capacity(text.len());
    out.extend(text.chars().filter(|c| !matches!(c, '\r' | '\n')));
    Ok((out.trim().to_owned(), guessed))
}

/// Refuses an identifier with a guessed character: messages are matched by it.
#[cold]
fn guessed_identifier(message: &[u8], field: &MailHeaderField, detail: &'static str) -> TextFault {
    let raw = field.value.slice(message);
    let index = raw.iter().position(|b| !b.is_ascii()).unwrap_or(0);
    TextFault::new(TextFaultCode::BadUtf8, field.value.start + index, detail)
}

/// The fields of a header that were read so far.
#[derive(Debug, Default)]
pub(super) struct MailHeaderSummary {
    seen_names: Vec<&'static str>,
    /// The addresses of the fields that name who receives the message.
    pub addresses: Vec<(&'static str, String)>,
}

/// Fields that a message may have once.
const ONCE: [&str; 8] = [
    "date",
    "from",
    "sender",
    "subject",
    "message-id",
    "in-reply-to",
    "content-type",
    "content-transfer-encoding",
];

/// Fields of addresses, and their path.
const ADDRESSES: [(&str, &str); 6] = [
    ("from", "from"),
    ("sender", "sender"),
    ("reply-to", "reply_to"),
    ("to", "to"),
    ("cc", "cc"),
    ("bcc", "bcc"),
];

impl MailHeaderSummary {
    /// Reports a field.
    pub(super) fn field(
        &mut self,
        message: &[u8],
        field: &MailHeaderField,
        charsets: &MailCharsets,
        leaves: &mut PathValues,
    ) -> Result<(), TextFault> {
        let offset = field.name.start;
        let (value, guessed) = unfold_noting_guess(message, field, charsets)?;
        if let Some(name) = ONCE.iter().find(|name| field.is(message, name)) {
            if self.seen_names.contains(name) {
                return Err(TextFault::new(
                    TextFaultCode::Duplicate,
                    offset,
                    "a header field that is there twice",
                ));
            }
            self.seen_names.push(name);
        }
        if let Some((_, path)) = ADDRESSES.iter().find(|(name, _)| field.is(message, name)) {
            let non_ascii = self.add_addresses(path, &value, charsets, offset, leaves)?;
            if guessed && non_ascii {
                let detail = "an address with bytes that are neither ASCII nor UTF-8, in a field of senders or receivers";
                return Err(guessed_identifier(message, field, detail));
            }
            return Ok(());
        }
        let ids = || value.split_whitespace().map(|id| id.trim_start_matches('<').trim_end_matches('>'));
        for (name, path) in [("message-id", "message_id"), ("in-reply-to", "in_reply_to")] {
            if field.is(message, name) {
                if guessed {
                    let detail = "a Message-ID or In-Reply-To with bytes that are neither ASCII nor UTF-8";
                    return Err(guessed_identifier(message, field, detail));
                }
                return ids().next().map_or(Ok(()), |id| leaves.put_text(path, id, offset));
            }
        }
        if field.is(message, "references") {
            if guessed {
                let detail = "References with bytes that are neither ASCII nor UTF-8";
                return Err(guessed_identifier(message, field, detail));
            }
            return ids().try_for_each(|id| leaves.list_text("references[]", id, offset));
        }
        if field.is(message, "date") {
            return leaves.put_text("date", &value, offset);
        }
        let value = words::decode_words(&value, charsets);
        if field.is(message, "subject") {
            return leaves.put_text("subject", &value, offset);
        }
        let name = String::from_utf8_lossy(field.name.slice(message)).to_ascii_lowercase();
        let mut header_path = "headers".to_owned();
        path::push(&mut header_path, &name);
        leaves.put_text(&header_path, &value, offset)
    }

    /// Adds the addresses of a field; returns whether an address is not ASCII.
    fn add_addresses(
        &mut self,
        path: &'static str,
        value: &str,
        charsets: &MailCharsets,
        offset: usize,
        leaves: &mut PathValues,
    ) -> Result<bool, TextFault> {
        let mut non_ascii = false;
        let list = format!("{path}[]");
        for address in address::list(value) {
            let entry = leaves.begin_entry(&list, offset)?;
            if !address.name.is_empty() {
                leaves.put_text(
                    &format!("{list}.name"),
                    &words::decode_words(&address.name, charsets),
                    offset,
                )?;
            }
            if !address.email.is_empty() {
                non_ascii |= !address.email.is_ascii();
                leaves.put_text(&format!("{list}.email"), &address.email, offset)?;
                if matches!(path, "to" | "cc" | "bcc") {
                    self.addresses.push((path, address.email));
                }
            }
            leaves.end_entry(entry);
        }
        Ok(non_ascii)
    }
}
