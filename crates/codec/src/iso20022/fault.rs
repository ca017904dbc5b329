//! What can be wrong with a stretch of XML, in a few codes and a reason for people.

use std::fmt;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
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
    /// An entity that is none of the five, or a character reference to no character.
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

impl Code {
    /// The word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::Garbage => "garbage",
            Code::Truncated => "truncated",
            Code::Mismatch => "mismatch",
            Code::Malformed => "malformed",
            Code::Doctype => "doctype",
            Code::BadEntity => "bad_entity",
            Code::BadEncoding => "bad_encoding",
            Code::BadUtf8 => "bad_utf8",
            Code::BadChar => "bad_char",
            Code::TooDeep => "too_deep",
            Code::TooLarge => "too_large",
            Code::Namespace => "namespace",
            Code::NoDocument => "no_document",
            Code::Mixed => "mixed",
            Code::Repeated => "repeated",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a stretch of input is not a good message.
///
/// A plain value (no text inside), so that a stream of nothing but faults allocates nothing; `Display` gives
/// the sentence. `at` is a place in bytes from the start of the stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub what: What,
    /// Where.
    pub at: u32,
}

/// The faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the sentences below tell them")]
pub enum What {
    Garbage,
    Truncated,
    Unclosed,
    Mismatch,
    Expected(&'static str),
    Comment,
    Doctype,
    Entity,
    Encoding,
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
    Uncoded(u8),
}

impl Fault {
    /// The code this fault is reported under.
    #[must_use]
    pub const fn code(self) -> Code {
        match self.what {
            What::Garbage => Code::Garbage,
            What::Truncated | What::Unclosed => Code::Truncated,
            What::Mismatch => Code::Mismatch,
            What::Expected(_) | What::Comment => Code::Malformed,
            What::Doctype => Code::Doctype,
            What::Entity => Code::BadEntity,
            What::Encoding => Code::BadEncoding,
            What::Utf8 => Code::BadUtf8,
            What::Char(_) | What::Uncoded(_) => Code::BadChar,
            What::Depth | What::Attributes | What::Long => Code::TooDeep,
            What::NoEnd { .. } => Code::TooLarge,
            What::Namespace | What::NoNamespace | What::Prefix => Code::Namespace,
            What::NoDocument => Code::NoDocument,
            What::Mixed => Code::Mixed,
            What::Twice(_) => Code::Repeated,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::{ATTRIBUTES_MAX, DEPTH_MAX, NAME_BYTES_MAX};
        let at = self.at;
        match self.what {
            What::Garbage => f.write_str("bytes outside any message"),
            What::Truncated => {
                write!(f, "the message is not over at byte {at}, where the input ends or another one starts")
            }
            What::Unclosed => write!(f, "the comment, CDATA section or instruction at byte {at} is not over"),
            What::Comment => write!(f, "the comment at byte {at} has -- in it"),
            What::Mismatch => write!(f, "the end tag at byte {at} is not that of the open element"),
            What::Expected(what) => write!(f, "{what} expected at byte {at}"),
            What::Doctype => {
                write!(f, "a DOCTYPE before byte {at}: document types and their entities are not read")
            }
            What::Entity => write!(
                f,
                "the reference at byte {at} is none of &lt; &gt; &amp; &apos; &quot; and of no character"
            ),
            What::Encoding => {
                write!(f, "the encoding declared at byte {at} is not read; convert the file to UTF-8")
            }
            What::Utf8 => write!(f, "byte {at} is not UTF-8"),
            What::Char(byte) => write!(f, "the character {byte:#04x} at byte {at} is none of XML's"),
            What::Depth => write!(f, "the element at byte {at} is more than {DEPTH_MAX} deep"),
            What::Attributes => {
                write!(f, "the element at byte {at} has more than {ATTRIBUTES_MAX} attributes")
            }
            What::Long => write!(f, "the name at byte {at} is longer than {NAME_BYTES_MAX} bytes"),
            What::NoEnd { limit } => write!(f, "no end of the message within {limit} bytes"),
            What::Namespace => {
                write!(
                    f,
                    "the namespace of Document, which starts at byte {at}, names no message of ISO 20022"
                )
            }
            What::NoNamespace => {
                write!(f, "Document, at byte {at}, has no namespace, and no header tells which message it is")
            }
            What::Prefix => write!(f, "the prefix of the name at byte {at} has no namespace"),
            What::NoDocument => f.write_str("neither Document nor AppHdr in it"),
            What::Mixed => write!(f, "text beside elements, before byte {at}"),
            What::Twice(name) => write!(f, "{name} is there twice in one parent; the schema allows it once"),
            What::Uncoded(byte) => {
                write!(f, "byte {byte:#04x} at byte {at} is no character of the encoding declared")
            }
        }
    }
}
