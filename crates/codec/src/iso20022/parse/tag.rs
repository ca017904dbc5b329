//! Attributes, namespaces and end tags.

use super::super::value::{ElementValueForm, ElementValueSpan};
use super::super::{ATTRIBUTES_MAX, IsoFaultKind, NAME_BYTES_MAX, Span};
use super::{DocumentParser, ElementAttribute, NamespaceBinding, ParseResult, ParseStop};
use unitape_base::xml::reference;
use unitape_base::xml::{self, skip_white, starts_name};

impl<M: Copy + Default> DocumentParser<M> {
    #[inline]
    pub(super) fn is_bound(&self, buf: &[u8], prefix: &[u8]) -> bool {
        self.bound_namespaces.iter().rev().any(|b| b.prefix.slice(buf) == prefix)
    }

    pub(super) fn uri(&self, buf: &[u8], name: usize, local: usize) -> Option<&NamespaceBinding> {
        let prefix = if local > name { &buf[name..local - 1] } else { &[] };
        self.bound_namespaces.iter().rev().find(|b| b.prefix.slice(buf) == prefix)
    }

    /// Reads the attributes after a name; returns where the tag's `>` is and whether the element is empty.
    pub(super) fn attributes(
        &mut self,
        buf: &[u8],
        lt: usize,
        mut offset: usize,
    ) -> ParseResult<(usize, bool)> {
        loop {
            let name_start = skip_white(buf, offset);
            match buf.get(name_start) {
                None => return Err(ParseStop::Need),
                Some(b'>') => return Ok((name_start, false)),
                Some(b'/') => {
                    return match buf.get(name_start + 1) {
                        None => Err(ParseStop::Need),
                        Some(b'>') => Ok((name_start + 1, true)),
                        Some(_) => Err(ParseStop::Bad(IsoFaultKind::Expected(">"), name_start + 1)),
                    };
                }
                Some(&byte) if name_start > offset && starts_name(byte) => {}
                Some(_) => {
                    return Err(ParseStop::Bad(IsoFaultKind::Expected("an attribute, > or />"), name_start));
                }
            }
            if self.attributes.len() >= ATTRIBUTES_MAX {
                return Err(ParseStop::Bad(IsoFaultKind::Attributes, lt));
            }
            let mut name_end = xml::name(buf, name_start);
            let mut prefix_bytes = 0;
            if buf.get(name_end) == Some(&b':') {
                prefix_bytes = name_end + 1 - name_start;
                name_end = xml::name(buf, name_end + 1);
            }
            if name_end - name_start > NAME_BYTES_MAX {
                return Err(ParseStop::Bad(IsoFaultKind::Long, name_start));
            }
            let name = Span { start: name_start, end: name_end };
            if prefix_bytes > 0 && name.len() > prefix_bytes && !starts_name(buf[name_start + prefix_bytes]) {
                return Err(ParseStop::Bad(IsoFaultKind::Expected("a name"), name_start + prefix_bytes));
            }
            let equals = skip_white(buf, name_end);
            match buf.get(equals) {
                None => return Err(ParseStop::Need),
                Some(b'=') if name.len() > prefix_bytes => {}
                Some(_) => return Err(ParseStop::Bad(IsoFaultKind::Expected("="), equals)),
            }
            let value_start = skip_white(buf, equals + 1);
            let quote = match buf.get(value_start) {
                None => return Err(ParseStop::Need),
                Some(&quote @ (b'"' | b'\'')) => quote,
                Some(_) => return Err(ParseStop::Bad(IsoFaultKind::Expected("a quote"), value_start)),
            };
            let value = attribute_value(buf, value_start + 1, quote)?;
            if self.attributes.iter().any(|a| a.name.slice(buf) == name.slice(buf)) {
                return Err(ParseStop::Bad(IsoFaultKind::Expected("another attribute"), name_start));
            }
            self.attributes.push(ElementAttribute { name, prefix_bytes, value });
            offset = value.end as usize + 1;
        }
    }
}

/// Reads an end tag that is not written in the plainest way; `name` is the element's name. Returns the offset of its
/// `>`.
#[cold]
pub(super) fn end_tag(buf: &[u8], lt: usize, name: Span) -> ParseResult<usize> {
    let tag_bytes = &buf[lt + 2..];
    let (want, bytes) = (&buf[name.start..name.end], name.len());
    if tag_bytes.len() < bytes {
        return Err(if want.starts_with(tag_bytes) {
            ParseStop::Need
        } else {
            ParseStop::Bad(IsoFaultKind::Mismatch, lt)
        });
    }
    if bytes == 0 || !tag_bytes.starts_with(want) {
        return Err(ParseStop::Bad(IsoFaultKind::Mismatch, lt));
    }
    let gt = skip_white(buf, lt + 2 + bytes);
    match buf.get(gt) {
        None => Err(ParseStop::Need),
        Some(b'>') => Ok(gt),
        Some(_) => Err(ParseStop::Bad(IsoFaultKind::Mismatch, lt)),
    }
}

/// Reads an attribute value up to its quote.
fn attribute_value(buf: &[u8], start: usize, quote: u8) -> ParseResult<ElementValueSpan> {
    let value_bytes = &buf[start..];
    let Some(n) = value_bytes.iter().position(|b| *b == quote || *b == b'<') else {
        return Err(ParseStop::Need);
    };
    if value_bytes[n] == b'<' {
        return Err(ParseStop::Bad(IsoFaultKind::Expected("no <"), start + n));
    }
    let value_end = start + n;
    let mut form = ElementValueForm::Plain;
    if buf[start..value_end].iter().any(|b| matches!(b, b'\t' | b'\n' | b'\r')) {
        form = ElementValueForm::Attribute;
    }
    let mut offset = start;
    while let Some(n) = memchr::memchr(b'&', &buf[offset..value_end]) {
        form = ElementValueForm::Attribute;
        offset = match reference::read(&buf[..value_end], offset + n) {
            reference::XmlReferenceOutcome::Is(_, end) => end,
            _ => return Err(ParseStop::Bad(IsoFaultKind::Entity, offset + n)),
        };
    }
    Ok(ElementValueSpan { start: start as u32, end: value_end as u32, form })
}
