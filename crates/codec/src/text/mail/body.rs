//! The content of a message: its text, and what is attached.

use super::header::{Field, fields, unfolded};
use super::words::{base64, characters, decoded, quoted, set_named};
use crate::fix::Span;
use crate::text::{Code, Fault, Leaves, Sort};

/// Parts in parts, at most.
const DEPTH_MAX: usize = 16;

/// Parts of a message, at most.
const PARTS_MAX: usize = 1024;

/// Parameters of a field, at most.
const PARAMETERS_MAX: usize = 64;

/// Tells the content of `message`, which begins at `from`.
pub(super) fn read(message: &[u8], fields: &[Field], from: usize, leaves: &mut Leaves) -> Result<(), Fault> {
    let mut found = Found::default();
    let content = Span { start: from, end: message.len() };
    part(message, fields, content, 0, &mut found)?;
    let texts = if found.plain.is_empty() { &found.html } else { &found.plain };
    let path = if found.plain.is_empty() { "html" } else { "text" };
    let mark = leaves.mark();
    for text in texts {
        let out = leaves.text_mut();
        if out.len() > mark && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(text);
    }
    let out = leaves.text_mut();
    let end = mark + out[mark..].trim_end_matches('\n').len();
    out.truncate(end);
    if end > mark {
        leaves.put(path, mark, Sort::Text, from)?;
    }
    for (name, kind, at) in &found.attachments {
        let entry = leaves.begin_entry("attachments[]", *at)?;
        if !name.is_empty() {
            leaves.put_text("attachments[].name", name, *at)?;
        }
        leaves.put_text("attachments[].type", kind, *at)?;
        leaves.end_entry(entry);
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    plain: Vec<String>,
    html: Vec<String>,
    /// Name, type and place.
    attachments: Vec<(String, String, usize)>,
    parts: usize,
}

/// A field of MIME: `text/plain; charset=utf-8`.
#[derive(Debug, Default)]
struct Typed {
    value: String,
    parameters: Vec<(String, String)>,
}

impl Typed {
    fn of(message: &[u8], fields: &[Field], name: &str) -> Result<Option<Self>, Fault> {
        let Some(field) = fields.iter().find(|f| f.is(message, name)) else { return Ok(None) };
        let text = without_comments(unfolded(message, field)?);
        let (value, mut rest) = text.split_once(';').unwrap_or((&text, ""));
        let mut this = Self { value: value.trim().to_ascii_lowercase(), parameters: Vec::new() };
        while let Some((name, behind)) = rest.split_once('=') {
            if this.parameters.len() >= PARAMETERS_MAX {
                return Err(Fault::new(
                    Code::TooDeep,
                    field.name.start,
                    "a field with more than 64 parameters",
                ));
            }
            let behind = behind.trim_start();
            let (value, behind) = match behind.strip_prefix('"') {
                Some(inside) => {
                    let (mut value, mut chars) = (String::new(), inside.char_indices());
                    let mut end = inside.len();
                    while let Some((n, c)) = chars.next() {
                        match c {
                            '"' => {
                                end = n + 1;
                                break;
                            }
                            '\\' => value.extend(chars.next().map(|(_, c)| c)),
                            c => value.push(c),
                        }
                    }
                    (value, &inside[end..])
                }
                None => {
                    let n = behind.find(';').unwrap_or(behind.len());
                    (behind[..n].trim().to_owned(), &behind[n..])
                }
            };
            let name = name.trim().trim_start_matches(';').trim().to_ascii_lowercase();
            this.parameters.push((name, value));
            rest = behind.split_once(';').map_or("", |(_, rest)| rest);
        }
        Ok(Some(this))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Without what stands in parentheses outside of quotes; one that is not closed is none.
fn without_comments(text: String) -> String {
    if !text.contains('(') {
        return text;
    }
    let (mut out, mut depth, mut quoted) = (String::with_capacity(text.len()), 0u32, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next();
                if depth == 0 {
                    out.extend([c].into_iter().chain(next));
                }
                continue;
            }
            '"' if depth == 0 => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if depth > 0 => {
                depth -= 1;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            out.push(c);
        }
    }
    if depth == 0 { out } else { text }
}

fn part(
    message: &[u8],
    fields: &[Field],
    content: Span,
    depth: usize,
    found: &mut Found,
) -> Result<(), Fault> {
    let at = content.start;
    found.parts += 1;
    if depth > DEPTH_MAX || found.parts > PARTS_MAX {
        return Err(Fault::new(Code::TooDeep, at, "more than 16 parts in each other, or 1024 in all"));
    }
    let typed = Typed::of(message, fields, "content-type")?.unwrap_or_default();
    let kind = if typed.value.is_empty() { "text/plain" } else { &typed.value };
    if kind.starts_with("multipart/") {
        let Some(boundary) = typed.get("boundary").filter(|b| !b.is_empty()) else {
            return Err(Fault::new(Code::BadHeader, at, "parts without a boundary"));
        };
        return parts(message, content, boundary, depth, found);
    }
    let disposition = Typed::of(message, fields, "content-disposition")?;
    let attached = disposition.as_ref().is_some_and(|d| d.value == "attachment");
    if attached || !matches!(kind, "text/plain" | "text/html") {
        let named = disposition.as_ref().and_then(|d| d.get("filename")).or(typed.get("name"));
        let name = decoded(named.unwrap_or_default()).into_owned();
        found.attachments.push((name, kind.to_owned(), at));
        return Ok(());
    }
    let encoding = Typed::of(message, fields, "content-transfer-encoding")?.unwrap_or_default();
    let raw = content.of(message);
    let bytes = match encoding.value.as_str() {
        "" | "7bit" | "8bit" | "binary" => raw.to_vec(),
        "quoted-printable" => quoted(raw, true),
        "base64" => base64(raw).ok_or_else(|| {
            Fault::new(Code::Truncated, content.end, "base64 that is cut off, or goes on behind its end")
        })?,
        _ => return Err(Fault::new(Code::BadEncoding, at, "a transfer encoding that is not known")),
    };
    let set = set_named(typed.get("charset").unwrap_or_default())
        .ok_or_else(|| Fault::new(Code::BadEncoding, at, "a set of characters that is not known"))?;
    let text = characters(set, &bytes)
        .ok_or_else(|| Fault::new(Code::BadUtf8, at, "bytes that are no characters of the part's set"))?;
    let text = if text.contains('\r') { text.replace("\r\n", "\n") } else { text };
    if kind == "text/plain" {
        found.plain.push(text)
    } else {
        found.html.push(text)
    }
    Ok(())
}

/// The parts between boundaries.
fn parts(
    message: &[u8],
    content: Span,
    boundary: &str,
    depth: usize,
    found: &mut Found,
) -> Result<(), Fault> {
    let (mut at, mut begun) = (content.start, None);
    while at < content.end {
        let line_end = memchr::memchr(b'\n', &message[at..content.end]).map_or(content.end, |n| at + n + 1);
        let line = message[at..line_end].trim_ascii_end();
        if let Some(behind) = line.strip_prefix(b"--").and_then(|l| l.strip_prefix(boundary.as_bytes())) {
            let last = behind == b"--";
            if last || behind.is_empty() {
                if let Some(start) = begun {
                    // The line end before a boundary belongs to it.
                    let part = &message[start..at];
                    let part = part.strip_suffix(b"\n").unwrap_or(part);
                    let part = part.strip_suffix(b"\r").unwrap_or(part);
                    one(message, Span { start, end: start + part.len() }, depth, found)?;
                }
                if last {
                    return Ok(());
                }
                begun = Some(line_end);
            }
        }
        at = line_end;
    }
    Err(Fault::new(Code::Truncated, content.end, "the last boundary is missing"))
}

/// A part with its header.
fn one(message: &[u8], part_span: Span, depth: usize, found: &mut Found) -> Result<(), Fault> {
    let view = &message[..part_span.end];
    // A part may have no header at all, and one that is empty no content.
    if part_span.is_empty() {
        return Ok(());
    }
    let (fields, from) = match fields(view, part_span.start) {
        // Fields that end with the part: nothing follows them.
        Err(fault) if fault.code == Code::Truncated => return Ok(()),
        other => other?,
    };
    part(view, &fields, Span { start: from, end: part_span.end }, depth + 1, found)
}
