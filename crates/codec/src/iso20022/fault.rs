//! Faults of a stretch of XML, in a few codes and a reason for people.

use std::fmt;
use unitape_base::FrameFault;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IsoFaultCode {
    /// Bytes between messages that are neither message nor separator.
    Garbage,
    /// The message stops before its end tags do: the next one starts, or the input ends.
    Truncated,
    /// An end tag that is not that of the element it ends.
    Mismatch,
    /// Not XML.
    Malformed,
    /// A document type declaration: what defines entities, and is refused for it.
    Doctype,
    /// An entity other than the five of XML, or a character reference to no character.
    BadEntity,
    /// An encoding that is not read.
    BadEncoding,
    /// Bytes that are not UTF-8.
    BadUtf8,
    /// A character that XML does not allow.
    BadChar,
    /// Elements nested too deep, or with too many or too long attributes or names.
    TooDeep,
    /// No end within the largest message accepted.
    TooLarge,
    /// A namespace that names no message, or a prefix without one.
    Namespace,
    /// A document without a message in it.
    NoDocument,
    /// Text beside elements.
    Mixed,
    /// An element that its schema allows once.
    Repeated,
}

impl IsoFaultCode {
    /// Returns the code as a word, such as `truncated`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            IsoFaultCode::Garbage => "garbage",
            IsoFaultCode::Truncated => "truncated",
            IsoFaultCode::Mismatch => "mismatch",
            IsoFaultCode::Malformed => "malformed",
            IsoFaultCode::Doctype => "doctype",
            IsoFaultCode::BadEntity => "bad_entity",
            IsoFaultCode::BadEncoding => "bad_encoding",
            IsoFaultCode::BadUtf8 => "bad_utf8",
            IsoFaultCode::BadChar => "bad_char",
            IsoFaultCode::TooDeep => "too_deep",
            IsoFaultCode::TooLarge => "too_large",
            IsoFaultCode::Namespace => "namespace",
            IsoFaultCode::NoDocument => "no_document",
            IsoFaultCode::Mixed => "mixed",
            IsoFaultCode::Repeated => "repeated",
        }
    }
}

impl fmt::Display for IsoFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why bytes are no valid message.
///
/// It is a plain value without text, so that a stream of faults needs no allocation; `Display` describes it in a
/// sentence. `offset` counts bytes from the start of the bad bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsoFault {
    /// The kind of the fault.
    pub kind: IsoFaultKind,
    /// Where.
    pub offset: u32,
}

/// The faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the sentences below document them")]
pub enum IsoFaultKind {
    Garbage,
    Truncated,
    Unclosed,
    Mismatch,
    Expected(&'static str),
    Comment,
    Doctype,
    Entity,
    Encoding(&'static str),
    Utf8,
    Char(u8),
    Depth,
    Attributes,
    Long,
    NoEnd { limit: u32 },
    Namespace,
    NoNamespace,
    Prefix,
    NoDocument,
    Mixed,
    Twice(&'static str),
    Uncoded(u8, &'static str),
}

impl IsoFault {
    /// Returns the code under which unitape reports this fault.
    #[must_use]
    pub const fn code(self) -> IsoFaultCode {
        match self.kind {
            IsoFaultKind::Garbage => IsoFaultCode::Garbage,
            IsoFaultKind::Truncated | IsoFaultKind::Unclosed => IsoFaultCode::Truncated,
            IsoFaultKind::Mismatch => IsoFaultCode::Mismatch,
            IsoFaultKind::Expected(_) | IsoFaultKind::Comment => IsoFaultCode::Malformed,
            IsoFaultKind::Doctype => IsoFaultCode::Doctype,
            IsoFaultKind::Entity => IsoFaultCode::BadEntity,
            IsoFaultKind::Encoding(_) => IsoFaultCode::BadEncoding,
            IsoFaultKind::Utf8 => IsoFaultCode::BadUtf8,
            IsoFaultKind::Char(_) | IsoFaultKind::Uncoded(..) => IsoFaultCode::BadChar,
            IsoFaultKind::Depth | IsoFaultKind::Attributes | IsoFaultKind::Long => IsoFaultCode::TooDeep,
            IsoFaultKind::NoEnd { .. } => IsoFaultCode::TooLarge,
            IsoFaultKind::Namespace | IsoFaultKind::NoNamespace | IsoFaultKind::Prefix => {
                IsoFaultCode::Namespace
            }
            IsoFaultKind::NoDocument => IsoFaultCode::NoDocument,
            IsoFaultKind::Mixed => IsoFaultCode::Mixed,
            IsoFaultKind::Twice(_) => IsoFaultCode::Repeated,
        }
    }
}

impl FrameFault for IsoFault {
    fn code_word(&self) -> &'static str {
        self.code().as_str()
    }
}

impl fmt::Display for IsoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::{ATTRIBUTES_MAX, DEPTH_MAX, NAME_BYTES_MAX};
        let offset = self.offset;
        match self.kind {
            IsoFaultKind::Garbage => f.write_str("bytes outside any message"),
            IsoFaultKind::Truncated => {
                write!(
                    f,
                    "the message is not over at byte {offset}, where the input ends or another one starts"
                )
            }
            IsoFaultKind::Unclosed => {
                write!(f, "the comment, CDATA section or instruction at byte {offset} is not over")
            }
            IsoFaultKind::Comment => write!(f, "the comment at byte {offset} has -- in it"),
            IsoFaultKind::Mismatch => {
                write!(f, "the end tag at byte {offset} is not that of the open element")
            }
            IsoFaultKind::Expected(expectation) => write!(f, "{expectation} expected at byte {offset}"),
            IsoFaultKind::Doctype => {
                write!(f, "a DOCTYPE before byte {offset}: document types and their entities are not read")
            }
            IsoFaultKind::Entity => write!(
                f,
                "the reference at byte {offset} is none of &lt; &gt; &amp; &apos; &quot; and of no character"
            ),
            IsoFaultKind::Encoding("us-ascii") => {
                write!(f, "`us-ascii` is declared at byte {offset}, and the message has other characters")
            }
            IsoFaultKind::Encoding(name) => {
                write!(
                    f,
                    "the set of characters `{name}`, declared at byte {offset}, is not read; convert the file to UTF-8"
                )
            }
            IsoFaultKind::Utf8 => write!(f, "byte {offset} is not UTF-8"),
            IsoFaultKind::Char(byte) => {
                write!(f, "the character {byte:#04x} at byte {offset} is none of XML's")
            }
            IsoFaultKind::Depth => write!(f, "the element at byte {offset} is more than {DEPTH_MAX} deep"),
            IsoFaultKind::Attributes => {
                write!(f, "the element at byte {offset} has more than {ATTRIBUTES_MAX} attributes")
            }
            IsoFaultKind::Long => {
                write!(f, "the name at byte {offset} is longer than {NAME_BYTES_MAX} bytes")
            }
            IsoFaultKind::NoEnd { limit } => write!(f, "no end of the message within {limit} bytes"),
            IsoFaultKind::Namespace => {
                write!(
                    f,
                    "the namespace of Document, which starts at byte {offset}, names no message of ISO 20022"
                )
            }
            IsoFaultKind::NoNamespace => {
                write!(
                    f,
                    "Document, at byte {offset}, has no namespace, and no header says which message it is"
                )
            }
            IsoFaultKind::Prefix => write!(f, "the prefix of the name at byte {offset} has no namespace"),
            IsoFaultKind::NoDocument => f.write_str("neither Document nor AppHdr in it"),
            IsoFaultKind::Mixed => write!(f, "text beside elements, before byte {offset}"),
            IsoFaultKind::Twice(name) => {
                write!(f, "{name} is there twice in one parent; the schema allows it once")
            }
            IsoFaultKind::Uncoded(byte, name) => {
                write!(
                    f,
                    "byte {byte:#04x} at byte {offset} is no character of the set of characters `{name}`"
                )
            }
        }
    }
}
