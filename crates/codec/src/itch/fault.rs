//! Faults of a message.

use std::fmt;
use unitape_base::FrameFault;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItchFaultCode {
    /// The length before a message is not that of its type.
    BadLength,
    /// No message of ITCH 5.0 has this type.
    UnknownType,
    /// Bytes are no message, up to the next message.
    Garbage,
    /// The input ends inside a message.
    Truncated,
    /// A buy or sell indicator that is neither.
    BadSide,
    /// A symbol that is blank, or not of printable ASCII with trailing blanks.
    BadStock,
    /// A code or text that is not printable ASCII.
    BadText,
    /// A time of day is invalid.
    BadTime,
}

impl ItchFaultCode {
    /// Returns the code as a word, such as `bad_length`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ItchFaultCode::BadLength => "bad_length",
            ItchFaultCode::UnknownType => "unknown_type",
            ItchFaultCode::Garbage => "garbage",
            ItchFaultCode::Truncated => "truncated",
            ItchFaultCode::BadSide => "bad_side",
            ItchFaultCode::BadStock => "bad_stock",
            ItchFaultCode::BadText => "bad_text",
            ItchFaultCode::BadTime => "bad_time",
        }
    }
}

/// The reason why bytes are no valid message. It is a plain value that prints as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItchFault {
    /// The code of the fault.
    pub code: ItchFaultCode,
    /// The type byte, where there is one.
    pub letter: u8,
    /// The length that is before it.
    pub stated_length: u16,
    /// The field at fault; empty if it is no field.
    pub field: &'static str,
}

impl ItchFault {
    pub(super) const fn from_code(code: ItchFaultCode, letter: u8, field: &'static str) -> Self {
        Self { code, letter, stated_length: 0, field }
    }
}

impl FrameFault for ItchFault {
    fn code_word(&self) -> &'static str {
        self.code.as_str()
    }
}

impl fmt::Display for ItchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letter, stated) = (self.letter.escape_ascii(), self.stated_length);
        match self.code {
            ItchFaultCode::BadLength => {
                let size = super::size_of_type(self.letter);
                write!(f, "a message of type {letter} has {size} bytes, {stated} are stated")
            }
            ItchFaultCode::UnknownType => {
                write!(f, "no message of ITCH 5.0 has the type {letter}, {stated} bytes are stated")
            }
            ItchFaultCode::Garbage => write!(f, "no message begins here"),
            ItchFaultCode::Truncated => write!(f, "the input ends inside a message"),
            ItchFaultCode::BadSide => write!(f, "{}: neither B nor S", self.field),
            ItchFaultCode::BadStock => write!(f, "{}: no symbol of printable ASCII", self.field),
            ItchFaultCode::BadText => write!(f, "{}: not printable ASCII", self.field),
            ItchFaultCode::BadTime => write!(f, "{}: a day has no such nanosecond", self.field),
        }
    }
}
