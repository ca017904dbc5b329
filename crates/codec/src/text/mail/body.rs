//! The content of a message: its text, the messages forwarded in it, and what is attached.
//!
//! | part | is read as | by |
//! |---|---|---|
//! | no type, or one without a `/` | `text/plain` | RFC 2045, 5.2 |
//! | `text/*` of an unknown subtype | `text/plain`; with an unknown charset an attachment | RFC 2046, 4.1.4 |
//! | `multipart/alternative` | the plain text, else the markup, else the last one; the others are named | 5.1.4 |
//! | `multipart/digest` | parts without a type are `message/rfc822` | 5.1.5 |
//! | any other `multipart/*` | `multipart/mixed` | 5.1.3, 5.1.7 |
//! | `message/rfc822`, `message/global` | a forwarded message; it is named as an attachment, too | 5.2.1; RFC 6532, 3.7 |
//! | all else | an attachment: named and counted | RFC 2046, 4.5.1, 5.2.4 |
//!
//! Text marked as attachment (RFC 2183, 2.2) is text, too, where it has no file name, where it is all of a message's
//! content, or where its message has no other text. Text before the first boundary and after the last is ignored
//! (RFC 2046, 5.1.1). Parts in each other and parts in all are bounded, those of forwarded messages among them.

use super::charsets::{DeclaredCharset, MailCharsets};
use super::header::{MailHeaderField, fields, fields_of_part, unfold};
use super::mime_field::MimeField;
use super::words::{base64, decode_quoted_printable, decode_words};
use crate::text::{PathValueKind, PathValues, TextFault, TextFaultCode};
use unitape_base::Span;

/// Parts in parts, at most.
const DEPTH_MAX: usize = 16;

/// Parts of a message, at most.
const PARTS_MAX: usize = 1024;

/// The header fields that are read of a forwarded message, and the paths of their values.
const FORWARDED: [(&str, &str); 3] =
    [("from", "forwarded[].from"), ("date", "forwarded[].date"), ("subject", "forwarded[].subject")];

/// Puts the content of `message`, which begins at `from`, into `path_values`.
pub(super) fn read(
    message: &[u8],
    fields: &[MailHeaderField],
    from: usize,
    charsets: &MailCharsets,
    leaves: &mut PathValues,
) -> Result<(), TextFault> {
    let mut content = MailContent::default();
    let entity = MimeEntity { message, charsets, fields, span: Span { start: from, end: message.len() } };
    let mut pieces = Vec::new();
    content.read_part(entity, MimePartContext::BODY, &mut pieces)?;
    put_pieces(pieces, ["text", "html"], from, leaves)?;
    content.alternatives.iter().try_for_each(|kind| leaves.list_text("alternatives[]", kind, from))?;
    for letter in content.forwarded {
        let entry = leaves.begin_entry("forwarded[]", letter.offset)?;
        letter
            .header_values
            .iter()
            .try_for_each(|(path, value)| leaves.put_text(path, value, letter.offset))?;
        put_pieces(letter.text_parts, ["forwarded[].text", "forwarded[].html"], letter.offset, leaves)?;
        leaves.end_entry(entry);
    }
    put_attachments(&content.attachments, from, leaves)
}

/// Puts the plain texts as one value and the markup as another.
fn put_pieces(
    mut pieces: Vec<MailTextPart>,
    paths: [&str; 2],
    offset: usize,
    leaves: &mut PathValues,
) -> Result<(), TextFault> {
    // An attached file is the message's text only where there is no other.
    if pieces.iter().any(|piece| !piece.is_file) {
        pieces.retain(|piece| !piece.is_file);
    }
    for (path, is_html) in paths.into_iter().zip([false, true]) {
        let mark = leaves.mark();
        for piece in pieces.iter().filter(|piece| piece.is_html() == is_html) {
            let out = leaves.text_mut();
            if out.len() > mark && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&piece.text);
        }
        let out = leaves.text_mut();
        let trimmed_end = mark + out[mark..].trim_end_matches('\n').len();
        out.truncate(trimmed_end);
        if trimmed_end > mark {
            leaves.push_value(path, mark, PathValueKind::Text, offset)?;
        }
    }
    Ok(())
}

fn put_attachments(
    attachments: &[MailAttachment],
    from: usize,
    leaves: &mut PathValues,
) -> Result<(), TextFault> {
    for MailAttachment { name, kind, offset: at } in attachments {
        let entry = leaves.begin_entry("attachments[]", *at)?;
        if !name.is_empty() {
            leaves.put_text("attachments[].name", name, *at)?;
        }
        leaves.put_text("attachments[].type", kind, *at)?;
        leaves.end_entry(entry);
    }
    if attachments.is_empty() {
        return Ok(());
    }
    leaves.put_text("attachment_count", &attachments.len().to_string(), from)?;
    let mut list = String::new();
    for MailAttachment { name, kind, .. } in attachments {
        list.push_str(if list.is_empty() { "" } else { "; " });
        list.push_str(name);
        list.push_str(if name.is_empty() { "(" } else { " (" });
        list.push_str(kind);
        list.push(')');
    }
    leaves.put_text("attachment_list", &list, from)
}

/// The contents of a message.
#[derive(Default)]
struct MailContent {
    /// Types of alternatives that were not read.
    alternatives: Vec<String>,
    /// In the order in which they begin, those in each other among them.
    forwarded: Vec<ForwardedMail>,
    attachments: Vec<MailAttachment>,
    part_count: usize,
}

/// A text of a message.
struct MailTextPart {
    kind: String,
    text: String,
    /// It is attached under a name.
    is_file: bool,
}

impl MailTextPart {
    fn is_html(&self) -> bool {
        self.kind == "text/html"
    }

    /// Returns the rank of the text: the highest rank among alternatives wins.
    fn rank(&self) -> u8 {
        match self.kind.as_str() {
            "text/plain" => 3,
            "text/html" => 2,
            _ => 1,
        }
    }
}

/// A forwarded message.
struct ForwardedMail {
    /// Path and value.
    header_values: Vec<(&'static str, String)>,
    text_parts: Vec<MailTextPart>,
    offset: usize,
}

struct MailAttachment {
    name: String,
    kind: String,
    offset: usize,
}

/// A header and the content that follows it.
#[derive(Clone, Copy)]
struct MimeEntity<'m> {
    message: &'m [u8],
    charsets: &'m MailCharsets,
    fields: &'m [MailHeaderField],
    span: Span,
}

/// Where a part is.
#[derive(Clone, Copy)]
struct MimePartContext {
    depth: usize,
    /// The type of a part without one.
    default_type: &'static str,
    /// All of a message's content.
    is_body: bool,
}

impl MimePartContext {
    const BODY: Self = MimePartContext { depth: 0, default_type: "text/plain", is_body: true };
}

/// A content type of several parts (RFC 2046, 5.1).
#[derive(Clone, Copy)]
struct MultipartType<'t> {
    /// After the `/`, such as `mixed`.
    subtype: &'t str,
    /// Without the `--` that is before it in a line.
    boundary: &'t str,
}

impl MailContent {
    fn read_part(
        &mut self,
        entity: MimeEntity<'_>,
        position: MimePartContext,
        pieces: &mut Vec<MailTextPart>,
    ) -> Result<(), TextFault> {
        let MimeEntity { message, charsets, fields, span } = entity;
        let offset = span.start;
        self.part_count += 1;
        if position.depth > DEPTH_MAX || self.part_count > PARTS_MAX {
            return Err(TextFault::new(
                TextFaultCode::TooDeep,
                offset,
                "more than 16 parts in each other, or 1024 in all",
            ));
        }
        let typed = MimeField::find(message, fields, "content-type", charsets)?;
        let kind = match &typed {
            None => position.default_type,
            // RFC 2045, 5.2: a type that is none is plain text.
            Some(typed) if !is_type(&typed.value) => "text/plain",
            Some(typed) => &typed.value,
        };
        let kind = kind.to_owned();
        let typed = typed.unwrap_or_default();
        if let Some(subtype) = kind.strip_prefix("multipart/") {
            let Some(boundary) = typed.get("boundary").filter(|b| !b.is_empty()) else {
                return Err(TextFault::new(TextFaultCode::BadHeader, offset, "parts without a boundary"));
            };
            let multipart = MultipartType { subtype, boundary };
            return self.read_multipart(entity, multipart, position.depth, pieces);
        }
        let disposition = MimeField::find(message, fields, "content-disposition", charsets)?;
        let is_attachment = disposition.as_ref().is_some_and(|d| d.value == "attachment");
        let file_name = disposition.as_ref().and_then(|d| d.long("filename", charsets));
        let name = file_name.or_else(|| typed.long("name", charsets)).unwrap_or_default();
        let name = decode_words(&name, charsets).into_owned();
        if matches!(kind.as_str(), "message/rfc822" | "message/global") {
            self.attachments.push(MailAttachment { name, kind, offset });
            return self.read_forwarded(entity, position.depth);
        }
        if !kind.starts_with("text/") {
            self.attachments.push(MailAttachment { name, kind, offset });
            return Ok(());
        }
        let charset = typed.get("charset").unwrap_or_default();
        let is_plain_or_html = matches!(kind.as_str(), "text/plain" | "text/html");
        let is_unreadable =
            !is_plain_or_html && DeclaredCharset::by_name(charset) == DeclaredCharset::Unknown;
        if is_attachment || is_unreadable {
            let is_file = !name.is_empty() && !position.is_body;
            self.attachments.push(MailAttachment { name, kind: kind.clone(), offset });
            if is_unreadable {
                return Ok(());
            }
            // An attachment that cannot be read is named all the same.
            if let Ok(text) = decode_characters(entity, charset) {
                push_piece(pieces, MailTextPart { kind, text, is_file });
            }
            return Ok(());
        }
        push_piece(pieces, MailTextPart { kind, text: decode_characters(entity, charset)?, is_file: false });
        Ok(())
    }

    /// Reads the parts between boundaries.
    fn read_multipart(
        &mut self,
        entity: MimeEntity<'_>,
        kind: MultipartType<'_>,
        depth: usize,
        pieces: &mut Vec<MailTextPart>,
    ) -> Result<(), TextFault> {
        let MultipartType { subtype, boundary } = kind;
        let default = if subtype == "digest" { "message/rfc822" } else { "text/plain" };
        let position = MimePartContext { depth: depth + 1, default_type: default, is_body: false };
        let mut alternatives = Vec::new();
        for span in part_spans(entity, boundary)? {
            let mut part_pieces = Vec::new();
            self.part_with_header(entity, span, position, &mut part_pieces)?;
            match subtype {
                "alternative" => alternatives.push(part_pieces),
                _ => pieces.append(&mut part_pieces),
            }
        }
        let rank = |parts: &[MailTextPart]| parts.iter().filter(|p| !p.is_file).map(MailTextPart::rank).max();
        let best = alternatives.iter().filter_map(|parts| rank(parts)).max();
        // If only unknown alternatives are there, the last one is the best.
        let chosen_alternative = alternatives.iter().rposition(|parts| rank(parts).is_some()).unwrap_or(0);
        for (n, mut part_pieces) in alternatives.into_iter().enumerate() {
            match rank(&part_pieces) {
                Some(this) if Some(this) != best || this == 1 && n != chosen_alternative => {
                    self.alternatives.extend(part_pieces.into_iter().map(|piece| piece.kind));
                }
                _ => pieces.append(&mut part_pieces),
            }
        }
        Ok(())
    }

    /// Reads a part with its header.
    fn part_with_header(
        &mut self,
        container: MimeEntity<'_>,
        span: Span,
        position: MimePartContext,
        pieces: &mut Vec<MailTextPart>,
    ) -> Result<(), TextFault> {
        let view = &container.message[..span.end];
        // A part may have no header at all, and one that is empty no content.
        if span.is_empty() {
            return Ok(());
        }
        let (fields, from) = match fields(view, span.start) {
            // Fields that end with the part: nothing follows them.
            Err(fault) if fault.code == TextFaultCode::Truncated => return Ok(()),
            other => other?,
        };
        let span = Span { start: from, end: span.end };
        let entity = MimeEntity { message: view, charsets: container.charsets, fields: &fields, span };
        self.read_part(entity, position, pieces)
    }

    /// Reads a message inside this message.
    fn read_forwarded(&mut self, carrier: MimeEntity<'_>, depth: usize) -> Result<(), TextFault> {
        let offset = carrier.span.start;
        let encoding = transfer_encoding(carrier)?;
        // RFC 2046, 5.2.1 allows none but 7bit, 8bit and binary. Some senders encode it: to read it is no guess.
        if matches!(encoding.as_str(), "base64" | "quoted-printable") {
            let bytes = bytes(carrier, &encoding)?;
            let span = Span { start: 0, end: bytes.len() };
            // A place in decoded bytes is none in the message.
            let letter = MimeEntity { message: &bytes, span, ..carrier };
            return self
                .read_letter(letter, depth, offset)
                .map_err(|f| TextFault { offset: offset as u32, ..f });
        }
        if !matches!(encoding.as_str(), "" | "7bit" | "8bit" | "binary") {
            return Err(TextFault::new(
                TextFaultCode::BadEncoding,
                offset,
                "a transfer encoding that is not known",
            ));
        }
        self.read_letter(carrier, depth, offset)
    }

    fn read_letter(&mut self, letter: MimeEntity<'_>, depth: usize, offset: usize) -> Result<(), TextFault> {
        let MimeEntity { message, charsets, span, .. } = letter;
        let view = &message[..span.end];
        let letter_start = span.start + super::postmark(&view[span.start..], false).unwrap_or(0);
        let (fields, from) = fields_of_part(view, letter_start)?;
        let mut head = Vec::new();
        for (name, path) in FORWARDED {
            for field in fields.iter().filter(|field| field.is(view, name)) {
                head.push((path, decode_words(&unfold(view, field, charsets)?, charsets).into_owned()));
            }
        }
        // Its place comes before those of messages in it.
        let n = self.forwarded.len();
        self.forwarded.push(ForwardedMail { header_values: head, text_parts: Vec::new(), offset });
        let entity = MimeEntity {
            message: view,
            charsets,
            fields: &fields,
            span: Span { start: from, end: span.end },
        };
        let mut pieces = Vec::new();
        self.read_part(entity, MimePartContext { depth: depth + 1, ..MimePartContext::BODY }, &mut pieces)?;
        self.forwarded[n].text_parts = pieces;
        Ok(())
    }
}

/// Returns whether a value is `type/subtype`, each a token of RFC 2045, 5.1.
fn is_type(value: &str) -> bool {
    let token = |t: &str| {
        !t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
    };
    value.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

/// Adds a piece unless it is blank: a blank text must not hide the markup beside it.
fn push_piece(pieces: &mut Vec<MailTextPart>, piece: MailTextPart) {
    if !piece.text.trim().is_empty() {
        pieces.push(piece);
    }
}

/// Decodes the characters of a part.
fn decode_characters(entity: MimeEntity<'_>, charset: &str) -> Result<String, TextFault> {
    let offset = entity.span.start;
    let encoding = transfer_encoding(entity)?;
    let bytes = bytes(entity, &encoding)?;
    let is_raw = !matches!(encoding.as_str(), "quoted-printable" | "base64");
    let text = entity.charsets.text(charset, bytes, offset).map_err(|fault| match is_raw {
        true => fault,
        // A place in decoded bytes is none in the message.
        false => TextFault { offset: offset as u32, ..fault },
    })?;
    Ok(if text.contains('\r') { text.replace("\r\n", "\n") } else { text })
}

/// Returns the transfer encoding of a part, in small letters; empty if it states no encoding.
fn transfer_encoding(entity: MimeEntity<'_>) -> Result<String, TextFault> {
    let name = "content-transfer-encoding";
    let field = MimeField::find(entity.message, entity.fields, name, entity.charsets)?;
    Ok(field.unwrap_or_default().value)
}

/// Decodes the bytes of a part.
fn bytes(entity: MimeEntity<'_>, encoding: &str) -> Result<Vec<u8>, TextFault> {
    let Span { start, end } = entity.span;
    let raw = entity.span.slice(entity.message);
    match encoding {
        "" | "7bit" | "8bit" | "binary" => Ok(raw.to_vec()),
        "quoted-printable" => Ok(decode_quoted_printable(raw, true)),
        "base64" => base64(raw).ok_or_else(|| {
            TextFault::new(
                TextFaultCode::Truncated,
                end,
                "base64 that is cut off, or continues after its end",
            )
        }),
        _ => Err(TextFault::new(TextFaultCode::BadEncoding, start, "a transfer encoding that is not known")),
    }
}

/// Finds the parts between boundaries.
fn part_spans(entity: MimeEntity<'_>, boundary: &str) -> Result<Vec<Span>, TextFault> {
    let MimeEntity { message, span, .. } = entity;
    let (mut offset, mut part_start, mut spans) = (span.start, None, Vec::new());
    while offset < span.end {
        let line_end = memchr::memchr(b'\n', &message[offset..span.end]).map_or(span.end, |n| offset + n + 1);
        let line = message[offset..line_end].trim_ascii_end();
        if let Some(suffix) = line.strip_prefix(b"--").and_then(|l| l.strip_prefix(boundary.as_bytes())) {
            let is_final_boundary = suffix == b"--";
            if is_final_boundary || suffix.is_empty() {
                if let Some(start) = part_start {
                    // The line end before a boundary belongs to it.
                    let part = &message[start..offset];
                    let part = part.strip_suffix(b"\n").unwrap_or(part);
                    let part = part.strip_suffix(b"\r").unwrap_or(part);
                    spans.push(Span { start, end: start + part.len() });
                }
                if is_final_boundary {
                    return Ok(spans);
                }
                if spans.len() > PARTS_MAX {
                    return Err(TextFault::new(TextFaultCode::TooDeep, offset, "more than 1024 parts"));
                }
                part_start = Some(line_end);
            }
        }
        offset = line_end;
    }
    Err(TextFault::new(TextFaultCode::Truncated, span.end, "the last boundary is missing"))
}
