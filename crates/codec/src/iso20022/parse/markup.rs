//! Markup that begins with `<!` or `<?`: comments, CDATA, document types, instructions and declarations.

use super::super::charset::DocumentCharset;
use super::super::frame::starts_message;
use super::super::{DEPTH_MAX, IsoFaultKind, Span};
use super::{DocumentParser, OpenElement, ParseResult, ParseStop, ParserLocation, TEXT};
use memchr::memmem;
use unitape_base::xml::{self, skip_white, starts_name};

impl<M: Copy + Default> DocumentParser<M> {
    /// Finds the end of a CDATA section that holds elements, if it ends before `lt`.
    #[inline]
    pub(super) fn wrapped_end(&mut self, buf: &[u8], offset: usize, lt: usize) -> Option<usize> {
        let top = self.stack.last()?;
        if top.name_bytes != 0 {
            return None;
        }
        let n = memmem::find(&buf[offset..lt], b"]]>")?;
        self.stack.pop();
        Some(offset + n + 3)
    }

    /// Takes a comment, CDATA section or processing instruction; returns where it ends.
    #[cold]
    pub(super) fn markup(&mut self, buf: &[u8], lt: usize, zone: ParserLocation) -> ParseResult<usize> {
        let markup_bytes = &buf[lt..];
        if markup_bytes.get(1) == Some(&b'?') {
            return self.skip_instruction(buf, lt);
        }
        for (head, markup_kind) in [(&b"<!--"[..], 0), (b"<![CDATA[", 1), (b"<!DOCTYPE", 2)] {
            if markup_bytes.starts_with(head) {
                return match markup_kind {
                    0 => skip_comment(buf, lt),
                    1 => self.read_cdata(buf, lt, zone == ParserLocation::Wrapper),
                    _ => self.skip_doctype(buf, lt),
                };
            }
            if head.starts_with(markup_bytes) {
                return Err(ParseStop::Need);
            }
        }
        Err(ParseStop::Bad(IsoFaultKind::Expected("a comment or CDATA"), lt))
    }

    /// Passes over a document type, so that the whole document can be refused.
    fn skip_doctype(&mut self, buf: &[u8], lt: usize) -> ParseResult<usize> {
        if let Some(outcome) = self.header_alone() {
            return Err(ParseStop::Done(outcome));
        }
        if !self.stack.is_empty() {
            return Err(ParseStop::Bad(IsoFaultKind::Doctype, lt));
        }
        self.has_doctype = true;
        let (mut depth, mut offset) = (0, lt + 2);
        loop {
            let Some(rest) = buf.get(offset..).filter(|rest| !rest.is_empty()) else {
                return Err(ParseStop::Need);
            };
            let skipped = match rest[0] {
                quote @ (b'"' | b'\'') => memchr::memchr(quote, &rest[1..]).map(|n| n + 2),
                b'<' if rest.starts_with(b"<!--") => memmem::find(&rest[4..], b"-->").map(|n| n + 7),
                b'<' if rest.starts_with(b"<?") => memmem::find(rest, b"?>").map(|n| n + 2),
                b'<' if b"<!--".starts_with(rest) => None,
                b'>' if depth <= 0 => return Ok(offset + 1),
                byte => {
                    depth += i32::from(byte == b'[') - i32::from(byte == b']');
                    Some(1)
                }
            };
            offset += skipped.ok_or(ParseStop::Need)?;
        }
    }

    fn read_cdata(&mut self, buf: &[u8], lt: usize, is_wrapper: bool) -> ParseResult<usize> {
        let content_start = lt + 9;
        if self.stack.is_empty() {
            return Err(ParseStop::Bad(IsoFaultKind::Expected("an element"), lt));
        }
        let section_end = memmem::find(&buf[content_start..], b"]]>").map(|n| content_start + n);
        // A message may yet come in it, and then it holds elements.
        let may_wrap = is_wrapper && buf.get(skip_white(buf, content_start)) == Some(&b'<');
        if section_end.is_none() && may_wrap && !holds_message(&buf[content_start..]) {
            return Err(ParseStop::Need);
        }
        let section = Span { start: content_start, end: section_end.unwrap_or(buf.len()) };
        if let Some(swallowed_end) = self.swallowed_section(buf, section, is_wrapper) {
            return Err(ParseStop::Bad(IsoFaultKind::Truncated, swallowed_end));
        }
        let begins_element = || buf.get(skip_white(buf, content_start)).is_none_or(|b| *b == b'<');
        if is_wrapper && begins_element() && holds_message(section.slice(buf)) {
            if self.stack.len() >= DEPTH_MAX {
                return Err(ParseStop::Bad(IsoFaultKind::Depth, lt));
            }
            let (name, content) = ((lt + 1) as u32, content_start as u32);
            self.stack.push(OpenElement { name, content_start: content, ..OpenElement::default() });
            return Ok(content_start);
        }
        if let Some(open_element) = self.stack.last_mut() {
            open_element.flags |= TEXT;
        }
        section_end.map(|end| end + 3).ok_or(ParseStop::Need)
    }

    /// Sections do not nest. A section that holds the start of another one and that of a message lost its end, and
    /// would end with that of the next message. So did a section in a document that is in a section itself, if it
    /// holds a message.
    fn swallowed_section(&self, buf: &[u8], section: Span, is_wrapper: bool) -> Option<usize> {
        let content = section.slice(buf);
        let in_section = || !is_wrapper && self.stack.iter().any(|open| open.name_bytes == 0);
        if memmem::find(content, b"<![CDATA[").is_none() && !in_section() {
            return None;
        }
        if is_wrapper && content.trim_ascii_start().starts_with(b"<") && holds_message(content) {
            return None;
        }
        let starts = memchr::memchr_iter(b'<', content).map(|n| section.start + n);
        starts.into_iter().find(|start| starts_message(&buf[*start..]) == Some(true))
    }

    fn skip_instruction(&mut self, buf: &[u8], lt: usize) -> ParseResult<usize> {
        let target = lt + 2;
        let name_end = xml::name(buf, target);
        if name_end == buf.len() {
            return Err(ParseStop::Need);
        }
        if !buf[target..name_end].eq_ignore_ascii_case(b"xml") {
            if !starts_name(buf[target]) {
                return Err(ParseStop::Bad(IsoFaultKind::Expected("a name"), target));
            }
            return memmem::find(&buf[name_end..], b"?>").map(|n| name_end + n + 2).ok_or(ParseStop::Need);
        }
        // A declaration starts a document.
        match self.stack.last() {
            None => {
                if let Some(outcome) = self.header_alone() {
                    return Err(ParseStop::Done(outcome));
                }
                if self.has_doctype {
                    return Err(ParseStop::Bad(IsoFaultKind::Truncated, lt));
                }
            }
            // In CDATA it is that of the document in there.
            Some(top) if top.name_bytes == 0 && skip_white(buf, top.content_start as usize) == lt => {}
            Some(_) => return Err(ParseStop::Bad(IsoFaultKind::Truncated, lt)),
        }
        let Some(n) = memmem::find(&buf[name_end..], b"?>") else { return Err(ParseStop::Need) };
        self.attributes.clear();
        let target_end = name_end + n;
        // Read as if it were a tag, for its two attributes.
        match self.attributes(&buf[..target_end], lt, name_end) {
            Err(ParseStop::Need) => {}
            Err(ParseStop::Bad(kind, offset)) => return Err(ParseStop::Bad(kind, offset)),
            Ok(_) | Err(ParseStop::Done(_)) => {
                return Err(ParseStop::Bad(IsoFaultKind::Expected("?>"), target_end));
            }
        }
        if let Some(encoding) = self.attributes.iter().find(|a| a.name.slice(buf) == b"encoding") {
            let name = encoding.value.raw(buf).to_ascii_lowercase();
            let name_offset = encoding.value.start as usize;
            let declaration = Span { start: lt, end: target_end + 2 };
            match &name[..] {
                b"utf-8" | b"utf8" => self.is_utf8 = true,
                // Where only ASCII is used they all are the same.
                b"us-ascii" | b"ascii" => {
                    (self.encoding, self.declaration) = (Some(name_offset), declaration)
                }
                // The bytes are plainly not that: programs write it before text in UTF-8.
                b"utf-16" | b"utf-16le" | b"utf-16be" => {}
                name => match DocumentCharset::declared(name) {
                    Ok(charset) => {
                        if matches!(charset, DocumentCharset::Unknown) {
                            let printable = name.iter().filter(|b| b.is_ascii_graphic()).take(40);
                            self.unknown_charset = printable.map(|b| char::from(*b)).collect();
                        }
                        self.encoding = Some(name_offset);
                        self.charset = Some(charset);
                        self.declaration = declaration;
                    }
                    Err(name) => {
                        (self.unread_charset, self.declaration) = (Some((name, name_offset)), declaration)
                    }
                },
            }
        }
        Ok(target_end + 2)
    }
}

fn skip_comment(buf: &[u8], lt: usize) -> ParseResult<usize> {
    let content_start = lt + 4;
    let Some(n) = memmem::find(&buf[content_start..], b"--") else { return Err(ParseStop::Need) };
    match buf.get(content_start + n + 2) {
        None => Err(ParseStop::Need),
        Some(b'>') => Ok(content_start + n + 3),
        Some(_) => Err(ParseStop::Bad(IsoFaultKind::Comment, lt)),
    }
}

/// Returns whether a header or document starts in the text of a CDATA section.
fn holds_message(text: &[u8]) -> bool {
    [&b"Document"[..], b"AppHdr"]
        .iter()
        .any(|word| memmem::find_iter(text, word).any(|n| n > 0 && matches!(text[n - 1], b'<' | b':')))
}
