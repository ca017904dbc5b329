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
    /// Bytes that are not UTF-8 where text is due.
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
}

impl TextFault {
    #[cold]
    pub(super) fn new(code: TextFaultCode, at: usize, what: &'static str) -> Self {
        Self { code, at: at.try_into().unwrap_or(u32::MAX), what }
    }
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}
