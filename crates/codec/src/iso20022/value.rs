//! Values: where an element's text is, what it says, and times and amounts as plain integers.
//!
//! | XML | here |
//! |---|---|
//! | text with references, CDATA, comments | [`ElementValueSpan::text`]: the characters alone |
//! | `2018-04-27`, `2018-04-27+02:00` | [`time`]: its midnight |
//! | `2009-10-30T12:01:45.123+02:00` | [`time`]: the moment in UTC, to the nanosecond; without an offset it is read as UTC |
//! | `+0010.50`, `.5`, `5.` | [`decimal`]: the digits that count |

pub use unitape_base::date::time;

use memchr::memmem;
use unitape_base::xml::is_white;
use unitape_base::xml::reference;

/// Where the text of an element or the value of an attribute is, and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElementValueSpan {
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// How it is written.
    pub form: ElementValueForm,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElementValueForm {
    /// As it is.
    #[default]
    Plain,
    /// With references (`&amp;`).
    References,
    /// With comments or CDATA inside, and maybe references.
    Marked,
    /// The value of an attribute, with references, tabs or line ends: normalised as XML 1.0, section 3.3.3 says.
    Attribute,
}

impl ElementValueSpan {
    /// Returns the raw bytes of the value.
    #[inline]
    #[must_use]
    pub fn raw<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns whether the value has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Returns the text: references replaced, CDATA unpacked, comments left out, line ends as `\n`. White space
    /// around the text is left out, except in CDATA.
    #[inline]
    #[must_use]
    pub fn text<'v>(&self, buf: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let raw = self.raw(buf);
        if self.form == ElementValueForm::Plain && !raw.contains(&b'\r') {
            return raw;
        }
        scratch.clear();
        match self.form {
            ElementValueForm::Attribute => normalize_attribute(raw, scratch),
            form => cook_value(raw, form, scratch),
        }
        scratch
    }
}

#[cold]
fn cook_value(mut raw: &[u8], form: ElementValueForm, out: &mut Vec<u8>) {
    // White space up to here is not to be cut off again.
    let mut protected_length = 0;
    while !raw.is_empty() {
        let marked = form == ElementValueForm::Marked && raw[0] == b'<';
        if !marked {
            let n = match form {
                ElementValueForm::Marked => memchr::memchr(b'<', raw).unwrap_or(raw.len()),
                ElementValueForm::Plain | ElementValueForm::References | ElementValueForm::Attribute => {
                    raw.len()
                }
            };
            let (text, rest) = raw.split_at(n);
            let text_start = out.len();
            decode_references(text, out);
            if protected_length == 0 {
                let white = out[text_start..].iter().take_while(|b| is_white(**b)).count();
                if text_start == 0 {
                    out.drain(..white);
                }
            }
            raw = rest;
        } else if let Some(rest) = raw.strip_prefix(b"<![CDATA[") {
            let n = memmem::find(rest, b"]]>").unwrap_or(rest.len());
            line_ends(&rest[..n], out);
            protected_length = out.len();
            raw = rest.get(n + 3..).unwrap_or_default();
        } else {
            let closing_bytes: &[u8] = if raw.starts_with(b"<!--") { b"-->" } else { b"?>" };
            let n = memmem::find(&raw[2..], closing_bytes).map_or(raw.len(), |n| n + 2 + closing_bytes.len());
            raw = raw.get(n..).unwrap_or_default();
        }
    }
    while out.len() > protected_length && out.last().is_some_and(|b| is_white(*b)) {
        out.pop();
    }
}

/// Normalizes an attribute of type CDATA by XML 1.0, 3.3.3: each tab and line end becomes a blank, a reference
/// becomes its character.
#[cold]
fn normalize_attribute(raw: &[u8], out: &mut Vec<u8>) {
    let mut offset = 0;
    while let Some(&byte) = raw.get(offset) {
        offset += 1;
        match byte {
            // Section 2.11: the two bytes are one line end.
            b'\r' if raw.get(offset) == Some(&b'\n') => {}
            b'\t' | b'\n' | b'\r' => out.push(b' '),
            b'&' => match reference::read(raw, offset - 1) {
                reference::XmlReferenceOutcome::Is(c, end) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    offset = end;
                }
                // Other uses of `&` were refused before.
                _ => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
}

fn decode_references(text: &[u8], out: &mut Vec<u8>) {
    let mut unread_text = text;
    while let Some(n) = memchr::memchr(b'&', unread_text) {
        line_ends(&unread_text[..n], out);
        match reference::read(unread_text, n) {
            reference::XmlReferenceOutcome::Is(c, end) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                unread_text = &unread_text[end..];
            }
            // Other uses of `&` were refused before.
            _ => {
                out.push(b'&');
                unread_text = &unread_text[n + 1..];
            }
        }
    }
    line_ends(unread_text, out);
}

fn line_ends(text: &[u8], out: &mut Vec<u8>) {
    for (n, byte) in text.iter().enumerate() {
        match byte {
            b'\r' if text.get(n + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            _ => out.push(*byte),
        }
    }
}

/// Strips the `+` of a decimal number: XML allows it, our numbers do not.
#[inline]
#[must_use]
pub fn decimal(text: &[u8]) -> &[u8] {
    match text {
        [b'+', rest @ ..] if rest.first().is_some_and(|b| b.is_ascii_digit() || *b == b'.') => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: ElementValueForm, raw: &str) -> String {
        let value = ElementValueSpan { start: 0, end: raw.len() as u32, form };
        let mut scratch = Vec::new();
        String::from_utf8(value.text(raw.as_bytes(), &mut scratch).to_vec()).expect("UTF-8")
    }

    // A payload that was cut into CDATA sections must fit together again: their blanks are not ours to trim.
    #[test]
    fn texts_are_unpacked() {
        for (form, raw, want) in [
            (ElementValueForm::Plain, "AB\r\nC\rD", "AB\nC\nD"),
            (
                ElementValueForm::References,
                "a &amp;&#x41;&#246; &lt;b&gt; &apos;&quot;",
                "a &A\u{f6} <b> '\"",
            ),
            (ElementValueForm::Marked, "\n  <![CDATA[ <x> &amp; ]]>\n", " <x> &amp; "),
            (ElementValueForm::Marked, "one<!-- no < -->two <?pi > ?> ", "onetwo"),
            (ElementValueForm::Marked, " <!-- --> a<![CDATA[]]> ", "a"),
        ] {
            assert_eq!(text(form, raw), want, "{raw:?}");
        }
    }
}
