//! The set of characters of a document: what its declaration says (XML 1.0, section 4.3.3), and its text in it.

use super::lex::{XmlToken, token};
use crate::charset::{Charset, FallbackCharset, push_ascii};
use crate::text::undeclared;
use crate::text::{CharsetLabel, PathValues, TextFault, TextFaultCode};
use std::borrow::Cow;

/// What a document's declaration says of its set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum XmlEncoding {
    /// Nothing; or UTF-16, where the bytes are plainly not.
    #[default]
    Undeclared,
    /// A set in which the brackets of markup are bytes of ASCII, by the name that it has there.
    Declared(Charset, CharsetLabel),
    /// A name that says nothing.
    Unknown(CharsetLabel),
    /// A set in which markup cannot be found.
    Unread(CharsetLabel),
}

impl XmlEncoding {
    /// Reads the encoding from the text between `<?xml` and `?>`.
    pub(super) fn from_declaration(declaration: &[u8]) -> Self {
        let Some(n) = memchr::memmem::find(declaration, b"encoding") else { return Self::Undeclared };
        let quoted = declaration[n + 8..].split(|b| matches!(b, b'"' | b'\'')).nth(1).unwrap_or_default();
        let name = String::from_utf8_lossy(quoted);
        let label = CharsetLabel::new(&name);
        match Charset::by_name(&name) {
            Some(charset) if charset.keeps_ascii() => Self::Declared(charset, label),
            Some(charset) if charset.name().starts_with("UTF-16") => Self::Undeclared,
            Some(_) => Self::Unread(label),
            None if name.trim().is_empty() => Self::Undeclared,
            None => Self::Unknown(label),
        }
    }

    /// Reads the encoding from the declaration at `offset` of `head`, and returns the declaration too.
    pub(super) fn from_head(head: &[u8], offset: usize) -> (Self, &[u8]) {
        match head.get(offset).map(|_| token(head, offset)) {
            Some(Ok(XmlToken::Declaration { inside, end })) => {
                (Self::from_declaration(inside.slice(head)), &head[offset..end])
            }
            _ => (Self::Undeclared, b""),
        }
    }

    /// Decodes `bytes`.
    ///
    /// # Errors
    /// Fails at a byte that is no character of the declared set, or of the mapping's.
    #[inline]
    pub(crate) fn text<'b>(
        self,
        bytes: &'b [u8],
        fallback: FallbackCharset,
        leaves: &mut PathValues,
    ) -> Result<Cow<'b, str>, TextFault> {
        match self {
            Self::Undeclared => undeclared::text(bytes, fallback, leaves),
            Self::Unread(label) => {
                let detail = "the document declares what is not read, convert it to UTF-8 from";
                let fault = TextFault::not_of_charset(0, detail, label.as_str());
                Err(TextFault { code: TextFaultCode::BadEncoding, ..fault })
            }
            // ASCII is the same in all of them.
            Self::Declared(..) | Self::Unknown(_) if bytes.is_ascii() => {
                Ok(Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default()))
            }
            Self::Declared(charset, label) => self::check_declared(bytes, charset, label),
            Self::Unknown(label) => {
                let mut out = String::with_capacity(bytes.len());
                push_ascii(bytes, &mut out);
                leaves.note_charset(&format!("unknown {}", label.as_str()));
                Ok(Cow::Owned(out))
            }
        }
    }
}

fn check_declared(bytes: &[u8], charset: Charset, label: CharsetLabel) -> Result<Cow<'_, str>, TextFault> {
    let fault = |offset| {
        let detail = "a byte that is no character of the declared set,";
        TextFault::not_of_charset(offset, detail, label.as_str())
    };
    if charset == Charset::UTF_8 {
        return std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|e| fault(e.valid_up_to()));
    }
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 8);
    charset.decode(bytes, &mut out).map_err(fault)?;
    Ok(Cow::Owned(out))
}
