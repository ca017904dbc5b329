//! Faults of a message of text, in a few codes and a reason for people.

use std::fmt;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextFaultCode {
    /// Bytes that begin no message.
    Garbage,
    /// The message is not over where its bytes are.
    Truncated,
    /// Not JSON.
    BadJson,
    /// Two of what may be there once, as members of one name: readers differ in which of them counts.
    Duplicate,
    /// Bytes that are no characters of the set that text is in.
    BadUtf8,
    /// A header that is none.
    BadHeader,
    /// An encoding or a set of characters that is not read.
    BadEncoding,
    /// Not XML.
    BadXml,
    /// A document type: what defines entities, and is refused for it.
    Doctype,
    /// An entity that is none of the five, or a reference to no character.
    BadEntity,
    /// No end within the largest message accepted.
    TooLarge,
    /// Nested too deep, with too many values, or with too long a path.
    TooDeep,
}

impl TextFaultCode {
    /// The word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TextFaultCode::Garbage => "garbage",
            TextFaultCode::Truncated => "truncated",
            TextFaultCode::BadJson => "bad_json",
            TextFaultCode::Duplicate => "duplicate",
            TextFaultCode::BadUtf8 => "bad_utf8",
            TextFaultCode::BadHeader => "bad_header",
            TextFaultCode::BadEncoding => "bad_encoding",
            TextFaultCode::BadXml => "bad_xml",
            TextFaultCode::Doctype => "doctype",
            TextFaultCode::BadEntity => "bad_entity",
            TextFaultCode::TooLarge => "too_large",
            TextFaultCode::TooDeep => "too_deep",
        }
    }
}

impl fmt::Display for TextFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a stretch of input is not a good message.
///
/// A plain value (no text of its own inside), so that a stream of nothing but faults allocates nothing; `Display` gives
/// the sentence. `at` is a place in bytes from the start of the stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFault {
    /// The code.
    pub code: TextFaultCode,
    /// Where.
    pub at: u32,
    /// The contents at this place.
    pub what: &'static str,
    /// The set of characters that it is about, as the input names it.
    pub charset: Option<CharsetLabel>,
}

/// The name of a set of characters as an input has it, or its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CharsetLabel {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
}

impl CharsetLabel {
    const BYTES_MAX: usize = 30;

    /// The label `name`; what is not printable ASCII becomes a question mark.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut this = Self { bytes: [0; Self::BYTES_MAX], length: 0 };
        for (slot, c) in this.bytes.iter_mut().zip(name.trim().chars()) {
            *slot = if c.is_ascii_graphic() { c as u8 } else { b'?' };
            this.length += 1;
        }
        this
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl TextFault {
    #[cold]
    pub(super) fn new(code: TextFaultCode, at: usize, what: &'static str) -> Self {
        Self { code, at: at.try_into().unwrap_or(u32::MAX), what, charset: None }
    }

    /// A byte at `at` that is no character of the set of this name.
    #[cold]
    pub(super) fn not_of_charset(at: usize, what: &'static str, charset: &str) -> Self {
        Self { charset: Some(CharsetLabel::new(charset)), ..Self::new(TextFaultCode::BadUtf8, at, what) }
    }
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.charset {
            Some(charset) => {
                write!(f, "{} the set of characters `{}` at byte {}", self.what, charset.as_str(), self.at)
            }
            None => write!(f, "{} at byte {}", self.what, self.at),
        }
    }
}
