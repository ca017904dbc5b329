//! Faults of a stretch of SWIFT bytes, in a few codes and a reason for people.

use std::fmt;
use unitape_base::FrameFault;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SwiftFaultCode {
    /// Bytes between messages that are neither message nor separator.
    Garbage,
    /// The message stops before its text does: the next one starts, or the input ends.
    Truncated,
    /// A block is not closed, unknown, there twice, or not where one must be.
    BadBlock,
    /// The text block does not start with a field.
    MalformedField,
    /// No end within the largest message accepted.
    TooLarge,
    /// A field's value does not have the form of its tag.
    BadValue,
}

impl SwiftFaultCode {
    /// Returns the code as a word, such as `bad_block`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SwiftFaultCode::Garbage => "garbage",
            SwiftFaultCode::Truncated => "truncated",
            SwiftFaultCode::BadBlock => "bad_block",
            SwiftFaultCode::MalformedField => "malformed_field",
            SwiftFaultCode::TooLarge => "too_large",
            SwiftFaultCode::BadValue => "bad_value",
        }
    }
}

impl fmt::Display for SwiftFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why bytes are no valid message.
///
/// It is a plain value without text, so that a stream of faults needs no allocation; `Display` describes it in a
/// sentence. Offsets inside are bytes from the start of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwiftFault {
    /// Bytes that belong to no message.
    Garbage,
    /// No end of the text before the next message or the end of the input.
    Truncated,
    /// Another block starts inside a block.
    Unclosed {
        /// The block that is not closed: `1` to `5` or `S`, as a letter.
        block: u8,
        /// Where the other one starts.
        offset: u32,
    },
    /// A block occurs twice.
    Twice {
        /// Which, as a letter.
        block: u8,
        /// Where it starts again.
        offset: u32,
    },
    /// Something else is where a block `1` to `5` must start.
    NoBlock {
        /// Where.
        offset: u32,
    },
    /// Blocks nest deeper than [`NEST_MAX`](super::NEST_MAX).
    Depth {
        /// Where the one too deep starts.
        offset: u32,
    },
    /// Text is before the first `:tag:` of the text block.
    TextBeforeTag {
        /// Where.
        offset: u32,
    },
    /// No end within the largest message accepted.
    NoEnd {
        /// The largest whole message accepted, in bytes.
        limit: u32,
    },
}

impl SwiftFault {
    /// Returns the code under which unitape reports this fault.
    #[must_use]
    pub const fn code(self) -> SwiftFaultCode {
        match self {
            SwiftFault::Garbage => SwiftFaultCode::Garbage,
            SwiftFault::Truncated => SwiftFaultCode::Truncated,
            SwiftFault::Unclosed { .. }
            | SwiftFault::Twice { .. }
            | SwiftFault::NoBlock { .. }
            | SwiftFault::Depth { .. } => SwiftFaultCode::BadBlock,
            SwiftFault::TextBeforeTag { .. } => SwiftFaultCode::MalformedField,
            SwiftFault::NoEnd { .. } => SwiftFaultCode::TooLarge,
        }
    }
}

impl FrameFault for SwiftFault {
    fn code_word(&self) -> &'static str {
        self.code().as_str()
    }
}

impl fmt::Display for SwiftFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SwiftFault::Garbage => f.write_str("bytes outside any message"),
            SwiftFault::Truncated => f.write_str("the message ends before its text does"),
            SwiftFault::Unclosed { block, offset } => {
                write!(f, "block {} is not closed before byte {offset} of the message", char::from(block))
            }
            SwiftFault::Twice { block, offset } => {
                write!(f, "block {} starts again at byte {offset} of the message", char::from(block))
            }
            SwiftFault::NoBlock { offset } => write!(f, "no block starts at byte {offset} of the message"),
            SwiftFault::Depth { offset } => {
                write!(f, "the block at byte {offset} of the message is nested too deep")
            }
            SwiftFault::TextBeforeTag { offset } => {
                write!(f, "the text at byte {offset} of the message stands before any :tag:")
            }
            SwiftFault::NoEnd { limit } => write!(f, "no end of the message within {limit} bytes"),
        }
    }
}

/// The reason why a value does not have the form of its tag: the expected text, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueFault {
    /// Offset in the value, in bytes.
    pub offset: u32,
    /// The expected contents: the component that is wrong, if it is one.
    pub expected_component: &'static str,
}

impl ValueFault {
    /// Always [`SwiftFaultCode::BadValue`].
    #[must_use]
    pub const fn code(self) -> SwiftFaultCode {
        SwiftFaultCode::BadValue
    }
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of the value: {} expected", self.offset, self.expected_component)
    }
}
