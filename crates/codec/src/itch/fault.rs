//! What can be wrong with a message.

use std::fmt;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The length before a message is not that of its type.
    BadLength,
    /// No message of ITCH 5.0 has this type.
    UnknownType,
    /// Bytes that are no message, up to the next one that is.
    Garbage,
    /// The input ends inside a message.
    Truncated,
    /// A buy or sell indicator that is neither.
    BadSide,
    /// A symbol that is blank, or not of printable ASCII with blanks behind.
    BadStock,
    /// A code or text that is not printable ASCII.
    BadText,
    /// A time of day that is none.
    BadTime,
}

impl Code {
    /// The word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::BadLength => "bad_length",
            Code::UnknownType => "unknown_type",
            Code::Garbage => "garbage",
            Code::Truncated => "truncated",
            Code::BadSide => "bad_side",
            Code::BadStock => "bad_stock",
            Code::BadText => "bad_text",
            Code::BadTime => "bad_time",
        }
    }
}

/// Why a stretch of input is no good message. A plain value; it prints as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub code: Code,
    /// The type byte, where there is one.
    pub letter: u8,
    /// The length that stands before it.
    pub stated: u16,
    /// The field at fault, empty when it is none.
    pub field: &'static str,
}

impl Fault {
    pub(super) const fn of(code: Code, letter: u8, field: &'static str) -> Self {
        Self { code, letter, stated: 0, field }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letter, stated) = (self.letter.escape_ascii(), self.stated);
        match self.code {
            Code::BadLength => {
                let size = super::size_of_type(self.letter);
                write!(f, "a message of type {letter} has {size} bytes, {stated} are stated")
            }
            Code::UnknownType => {
                write!(f, "no message of ITCH 5.0 has the type {letter}, {stated} bytes are stated")
            }
            Code::Garbage => write!(f, "no message begins here"),
            Code::Truncated => write!(f, "the input ends inside a message"),
            Code::BadSide => write!(f, "{}: neither B nor S", self.field),
            Code::BadStock => write!(f, "{}: no symbol of printable ASCII", self.field),
            Code::BadText => write!(f, "{}: not printable ASCII", self.field),
            Code::BadTime => write!(f, "{}: a day has no such nanosecond", self.field),
        }
    }
}
