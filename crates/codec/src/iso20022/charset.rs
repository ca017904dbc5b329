//! The set of characters of a document: the one that its declaration names in place of UTF-8, or a fallback.

use super::{IsoFault, IsoFaultKind};
use crate::charset::{Charset, FallbackCharset, push_ascii};

/// A set of characters that begins with ASCII, so that markup is found before it is decoded.
#[derive(Debug, Clone, Copy)]
pub(super) enum DocumentCharset {
    Declared {
        charset: Charset,
        /// Whether the set is an ISO 8859 set, where the bytes 0x80 to 0x9f are control characters. Text has no such
        /// bytes, unless its declaration is wrong.
        is_iso: bool,
    },
    /// A name that says nothing.
    Unknown,
    /// Nothing is declared, and it is not UTF-8.
    Undeclared(FallbackCharset),
}

impl DocumentCharset {
    /// Looks up the set that is declared under this name.
    ///
    /// # Errors
    /// Fails if markup cannot be found in the set; returns its name.
    pub(super) fn declared(name: &[u8]) -> Result<Self, &'static str> {
        let name = String::from_utf8_lossy(name);
        match Charset::by_name(&name) {
            Some(charset) if charset.keeps_ascii() => {
                let is_iso =
                    name.to_ascii_lowercase().starts_with("iso-8859") || name.eq_ignore_ascii_case("latin1");
                Ok(Self::Declared { charset, is_iso })
            }
            Some(charset) => Err(charset.name()),
            None => Ok(Self::Unknown),
        }
    }

    /// Appends `bytes` as UTF-8.
    ///
    /// # Errors
    /// Fails at the first byte that is no character of the set.
    pub(super) fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), IsoFault> {
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
        let (charset, decoded) = match self {
            Self::Unknown => {
                push_ascii(bytes, &mut text);
                (Charset::UTF_8, Ok(()))
            }
            Self::Undeclared(fallback) => (fallback.charset(), fallback.decode(bytes, &mut text)),
            Self::Declared { charset, is_iso } => {
                let is_control = |b: &u8| is_iso && charset.is_single_byte() && (0x80..0xa0).contains(b);
                match bytes.iter().position(is_control) {
                    Some(n) => (charset, Err(n)),
                    None => (charset, charset.decode(bytes, &mut text)),
                }
            }
        };
        // Browsers read one set for the other, but the document names this one.
        let name = match self {
            Self::Declared { is_iso: true, charset } if charset == Charset::WINDOWS_1252 => "ISO-8859-1",
            _ => charset.name(),
        };
        decoded.map_err(|n| IsoFault { kind: IsoFaultKind::Uncoded(bytes[n], name), offset: n as u32 })?;
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
