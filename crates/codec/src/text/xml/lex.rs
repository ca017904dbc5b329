//! Markup and the text between it, one piece at a time.

use memchr::memmem;
use unitape_base::Span;
use unitape_base::xml::{is_white, name, skip_white, starts_name};

/// Bytes of a name with its prefix, at most.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// The token at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XmlToken {
    /// Characters up to `end`, references among them.
    Text { end: usize },
    /// A start tag; the text after its name is in `attributes`.
    Start { name: Span, attributes: Span, empty: bool, end: usize },
    /// An end tag.
    End { name: Span, end: usize },
    /// A CDATA section.
    Section { inside: Span, end: usize },
    /// `<?xml …?>`.
    Declaration { inside: Span, end: usize },
    /// A comment or another instruction.
    Nothing { end: usize },
    /// A document type.
    Doctype { end: usize },
}

/// The reason why there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LexStop {
    /// More bytes decide.
    Need,
    /// A token that begins here, and would hold whatever follows, is not over.
    Open,
    /// Not XML.
    Bad { offset: usize, detail: &'static str },
}

/// Reads the token that begins at `buf[offset]`, which must exist.
pub(crate) fn token(buf: &[u8], offset: usize) -> Result<XmlToken, LexStop> {
    if buf[offset] != b'<' {
        let text_end = memchr::memchr(b'<', &buf[offset..]).map_or(buf.len(), |n| offset + n);
        return Ok(XmlToken::Text { end: text_end });
    }
    match buf.get(offset + 1) {
        None => Err(LexStop::Need),
        Some(b'/') => end_tag(buf, offset),
        Some(b'!') => read_declaration(buf, offset),
        Some(b'?') => {
            let name_start = offset + 2;
            let n = memmem::find(&buf[name_start..], b"?>").ok_or(LexStop::Open)?;
            let (inside, end) = (Span { start: name_start, end: name_start + n }, name_start + n + 2);
            let declares = inside
                .slice(buf)
                .strip_prefix(b"xml")
                .is_some_and(|rest| rest.first().is_none_or(|b| is_white(*b)));
            Ok(if declares { XmlToken::Declaration { inside, end } } else { XmlToken::Nothing { end } })
        }
        Some(&byte) if starts_name(byte) => start_tag(buf, offset),
        Some(_) => Err(LexStop::Bad { offset: offset + 1, detail: "a name is missing" }),
    }
}

fn start_tag(buf: &[u8], offset: usize) -> Result<XmlToken, LexStop> {
    let name = read_qualified_name(buf, offset + 1)?;
    let mut gt = name.end;
    loop {
        let Some(n) = buf[gt..].iter().position(|b| matches!(b, b'>' | b'<' | b'"' | b'\'')) else {
            return Err(LexStop::Need);
        };
        gt += n;
        match buf[gt] {
            b'>' => break,
            b'<' => return Err(LexStop::Bad { offset: gt, detail: "a tag within a tag" }),
            quote => {
                let n = buf[gt + 1..].iter().position(|b| *b == quote || *b == b'<').ok_or(LexStop::Need)?;
                gt += 1 + n;
                if buf[gt] == b'<' {
                    return Err(LexStop::Bad { offset: gt, detail: "a tag within an attribute" });
                }
                gt += 1;
            }
        }
    }
    let empty = gt > name.end && buf[gt - 1] == b'/';
    let attributes = Span { start: name.end, end: gt - usize::from(empty) };
    Ok(XmlToken::Start { name, attributes, empty, end: gt + 1 })
}

fn end_tag(buf: &[u8], offset: usize) -> Result<XmlToken, LexStop> {
    let name = read_qualified_name(buf, offset + 2)?;
    let gt = skip_white(buf, name.end);
    match buf.get(gt) {
        None => Err(LexStop::Need),
        Some(b'>') => Ok(XmlToken::End { name, end: gt + 1 }),
        Some(_) => Err(LexStop::Bad { offset: gt, detail: "`>` is missing" }),
    }
}

/// Reads a name with its prefix. If the bytes end there, the name may continue.
fn read_qualified_name(buf: &[u8], offset: usize) -> Result<Span, LexStop> {
    let mut name_end = offset;
    for _ in 0..2 {
        match buf.get(name_end) {
            None => return Err(LexStop::Need),
            Some(&byte) if starts_name(byte) => {}
            Some(_) => return Err(LexStop::Bad { offset: name_end, detail: "a name is missing" }),
        }
        name_end = name(buf, name_end);
        if name_end - offset > NAME_BYTES_MAX {
            return Err(LexStop::Bad { offset, detail: "a name of more than 256 bytes" });
        }
        match buf.get(name_end) {
            None => return Err(LexStop::Need),
            Some(b':') => name_end += 1,
            Some(_) => return Ok(Span { start: offset, end: name_end }),
        }
    }
    Err(LexStop::Bad { offset: name_end - 1, detail: "a name with two prefixes" })
}

/// Reads markup that begins with `<!`.
fn read_declaration(buf: &[u8], offset: usize) -> Result<XmlToken, LexStop> {
    const SECTION: &[u8] = b"<![CDATA[";
    const DOCTYPE: &[u8] = b"<!DOCTYPE";
    let markup_bytes = &buf[offset..];
    if markup_bytes.starts_with(b"<!--") {
        let n = memmem::find(&markup_bytes[4..], b"-->").ok_or(LexStop::Open)?;
        return Ok(XmlToken::Nothing { end: offset + 4 + n + 3 });
    }
    if markup_bytes.starts_with(SECTION) {
        let section_start = offset + SECTION.len();
        let n = memmem::find(&buf[section_start..], b"]]>").ok_or(LexStop::Open)?;
        return Ok(XmlToken::Section {
            inside: Span { start: section_start, end: section_start + n },
            end: section_start + n + 3,
        });
    }
    if markup_bytes.starts_with(DOCTYPE) {
        return skip_doctype(buf, offset + DOCTYPE.len());
    }
    if [b"<!--", SECTION, DOCTYPE].iter().any(|word| word.starts_with(markup_bytes)) {
        return Err(LexStop::Need);
    }
    Err(LexStop::Bad { offset, detail: "no comment, section or document type" })
}

/// Reads a document type up to its end; skips its declarations.
fn skip_doctype(buf: &[u8], mut offset: usize) -> Result<XmlToken, LexStop> {
    let mut in_subset = false;
    loop {
        let n = buf[offset..]
            .iter()
            .position(|b| matches!(b, b'[' | b']' | b'>' | b'"' | b'\'' | b'<'))
            .ok_or(LexStop::Open)?;
        offset += n;
        let markup_bytes = &buf[offset..];
        let skip = |start: usize, end: &[u8]| {
            memmem::find(markup_bytes.get(start..).unwrap_or_default(), end)
                .map(|n| start + n + end.len())
                .ok_or(LexStop::Open)
        };
        offset += match markup_bytes[0] {
            b'>' if !in_subset => return Ok(XmlToken::Doctype { end: offset + 1 }),
            b'<' if markup_bytes.starts_with(b"<!--") => skip(4, b"-->")?,
            b'<' if markup_bytes.starts_with(b"<?") => skip(2, b"?>")?,
            b'"' => skip(1, b"\"")?,
            b'\'' => skip(1, b"'")?,
            byte => {
                in_subset = in_subset && byte != b']' || byte == b'[';
                1
            }
        };
    }
}

/// The attributes of a start tag, which are in `buf[at..end]`: name and value, as they are written.
pub(super) struct XmlAttributeIter<'b> {
    pub buf: &'b [u8],
    pub offset: usize,
    pub tag_end: usize,
}

impl Iterator for XmlAttributeIter<'_> {
    type Item = Result<(Span, Span), LexStop>;

    fn next(&mut self) -> Option<Self::Item> {
        let buf = &self.buf[..self.tag_end];
        let name_start = skip_white(buf, self.offset);
        let quote_byte = *buf.get(name_start)?;
        let behind_white = name_start > self.offset;
        self.offset = self.tag_end;
        let bad_attribute = |offset, detail| Some(Err(LexStop::Bad { offset, detail }));
        if !behind_white || !starts_name(quote_byte) {
            return bad_attribute(name_start, "no attribute");
        }
        let Ok(name) = read_qualified_name(buf, name_start) else {
            return bad_attribute(name_start, "no attribute");
        };
        let equals = skip_white(buf, name.end);
        let value_start = skip_white(buf, equals + 1);
        let (Some(b'='), Some(&quote @ (b'"' | b'\''))) = (buf.get(equals), buf.get(value_start)) else {
            return bad_attribute(name.end, "an attribute without a value in quotes");
        };
        let Some(n) = memchr::memchr(quote, &buf[value_start + 1..]) else {
            return bad_attribute(value_start, "a quote is missing");
        };
        let value = Span { start: value_start + 1, end: value_start + 1 + n };
        self.offset = value.end + 1;
        Some(Ok((name, value)))
    }
}

/// Splits a name into the local name, and the prefix with its colon.
pub(super) fn local(name: &[u8]) -> (&[u8], &[u8]) {
    let n = memchr::memchr(b':', name).map_or(0, |n| n + 1);
    (&name[n..], &name[..n])
}
