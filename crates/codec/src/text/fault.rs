//! Faults of a message of text, in a few codes and a reason for people.

use std::fmt;
use unitape_base::FrameFault;

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
    /// A header is invalid.
    BadHeader,
    /// An encoding or a set of characters that is not read.
    BadEncoding,
    /// Not XML.
    BadXml,
    /// A document type: what defines entities, and is refused for it.
    Doctype,
    /// An entity other than the five of XML, or a reference to no character.
    BadEntity,
    /// No end within the largest message accepted.
    TooLarge,
    /// Nested too deep, with too many values, or with too long a path.
    TooDeep,
}

impl TextFaultCode {
    /// Returns the code as a word, such as `bad_json`.
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

/// The reason why bytes are no valid message.
///
/// It is a plain value without its own text, so that a stream of faults needs no allocation; `Display` describes it
/// in a sentence. `offset` counts bytes from the start of the bad bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFault {
    /// The code.
    pub code: TextFaultCode,
    /// Where.
    pub offset: u32,
    /// The contents at this place.
    pub detail: &'static str,
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

    /// Makes the label `name`; replaces characters other than printable ASCII by question marks.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut this = Self { bytes: [0; Self::BYTES_MAX], length: 0 };
        for (slot, c) in this.bytes.iter_mut().zip(name.trim().chars()) {
            *slot = if c.is_ascii_graphic() { c as u8 } else { b'?' };
            this.length += 1;
        }
        this
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl TextFault {
    /// Makes the fault that `detail` describes, at this offset in the bad bytes.
    #[cold]
    #[must_use]
    pub fn new(code: TextFaultCode, offset: usize, detail: &'static str) -> Self {
        Self { code, offset: offset.try_into().unwrap_or(u32::MAX), detail, charset: None }
    }

    /// Makes the fault of a byte at `offset` that is no character of the set `charset`.
    #[cold]
    pub(super) fn not_of_charset(offset: usize, detail: &'static str, charset: &str) -> Self {
        Self {
            charset: Some(CharsetLabel::new(charset)),
            ..Self::new(TextFaultCode::BadUtf8, offset, detail)
        }
    }
}

impl FrameFault for TextFault {
    fn code_word(&self) -> &'static str {
        self.code.as_str()
    }
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.charset {
            Some(charset) => {
                write!(
                    f,
                    "{} the set of characters `{}` at byte {}",
                    self.detail,
                    charset.as_str(),
                    self.offset
                )
            }
            None => write!(f, "{} at byte {}", self.detail, self.offset),
        }
    }
}
