//! Faults of a message.

use std::fmt;

/// The code that a fault is reported under. The codes of the specification have their names there (FAST 1.1, appendix
/// 4); it has none for input that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageFaultCode {
    /// A value that the field cannot have: of another type, not its constant, shorter than a tail can encode.
    D1,
    /// An integer outside the bounds of its type.
    D2,
    /// A decimal that the operators of exponent and mantissa cannot encode.
    D3,
    /// A previous value of another type.
    D4,
    /// A mandatory value is left out, and has no previous value.
    D5,
    /// A mandatory value is left out, and its previous value is empty; of a tail, it has no previous value.
    D6,
    /// A string loses more than it has, or a tail is left out and its previous value is empty.
    D7,
    /// A reference to a template that is not there.
    D8,
    /// An id of no template.
    D9,
    /// A block without a byte.
    D12,
    /// A decimal whose exponent is not between −63 and 63, or whose mantissa does not fit into 64 bits.
    R1,
    /// The text put together is not UTF-8.
    R2,
    /// Characters of more than seven bits in a string of such.
    R3,
    /// An integer that does not fit into the field's type, after a difference or as encoded.
    R4,
    /// A decimal that is no integer of the field's type.
    R5,
    /// An integer that is longer than it has to be.
    R6,
    /// A presence map that is longer than it has to be.
    R7,
    /// A presence map with bits that no field has; reported by a strict decoder alone, as R6, R7 and R9.
    R8,
    /// A string that is longer than it has to be.
    R9,
    /// A mandatory field without a value.
    Missing,
    /// The input ends inside a message.
    Truncated,
    /// More than 4,096 elements without a byte, more than 16 templates named in each other, texts of more than 16 MiB, or
    /// more than some four million values.
    TooLarge,
    /// Text that is not of the framing.
    Garbage,
}

impl MessageFaultCode {
    /// Returns the word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            MessageFaultCode::D1 => "D1",
            MessageFaultCode::D2 => "D2",
            MessageFaultCode::D3 => "D3",
            MessageFaultCode::D4 => "D4",
            MessageFaultCode::D5 => "D5",
            MessageFaultCode::D6 => "D6",
            MessageFaultCode::D7 => "D7",
            MessageFaultCode::D8 => "D8",
            MessageFaultCode::D9 => "D9",
            MessageFaultCode::D12 => "D12",
            MessageFaultCode::R1 => "R1",
            MessageFaultCode::R2 => "R2",
            MessageFaultCode::R3 => "R3",
            MessageFaultCode::R4 => "R4",
            MessageFaultCode::R5 => "R5",
            MessageFaultCode::R6 => "R6",
            MessageFaultCode::R7 => "R7",
            MessageFaultCode::R8 => "R8",
            MessageFaultCode::R9 => "R9",
            MessageFaultCode::Missing => "missing",
            MessageFaultCode::Truncated => "truncated",
            MessageFaultCode::TooLarge => "too_large",
            MessageFaultCode::Garbage => "garbage",
        }
    }

    /// Returns the description of the fault.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            MessageFaultCode::D1 => {
                "a value that the field cannot have: of another type, not its constant, or shorter than its tail"
            }
            MessageFaultCode::D2 => "an integer out of the bounds of its type",
            MessageFaultCode::D3 => {
                "a decimal that the operators of its exponent and mantissa cannot express"
            }
            MessageFaultCode::D4 => "the previous value is of another type",
            MessageFaultCode::D5 => {
                "a mandatory value is left out, there is none before it and no initial one"
            }
            MessageFaultCode::D6 => {
                "a mandatory value is left out, and the one before it is empty (or, of a tail, there is none)"
            }
            MessageFaultCode::D7 => {
                "more is taken away from a string than it has, or a tail is left out behind an empty one"
            }
            MessageFaultCode::D8 => "a reference to a template that no file has",
            MessageFaultCode::D9 => "no template has this id",
            MessageFaultCode::D12 => "a block of no bytes",
            MessageFaultCode::R1 => "a decimal with an exponent beyond 63, or a mantissa beyond 64 bits",
            MessageFaultCode::R2 => "a string that was put together is not UTF-8",
            MessageFaultCode::R3 => "characters beyond ASCII in a string of ASCII",
            MessageFaultCode::R4 => "an integer that does not fit into the type of the field",
            MessageFaultCode::R5 => "a decimal that is no integer of the type of the field",
            MessageFaultCode::R6 => "an integer that is longer than it has to be",
            MessageFaultCode::R7 => "a presence map that is longer than it has to be",
            MessageFaultCode::R8 => "a presence map with bits that belong to no field",
            MessageFaultCode::R9 => "a string that is longer than it has to be",
            MessageFaultCode::Missing => "a mandatory field without a value",
            MessageFaultCode::Truncated => "the input ends inside the message",
            MessageFaultCode::TooLarge => {
                "more values, text, elements without a byte or templates in each other than are taken"
            }
            MessageFaultCode::Garbage => "bytes that are not of the framing",
        }
    }
}

/// The fault of a message: its code, its place and its field. It prints as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageFault {
    /// The code of the fault.
    pub code: MessageFaultCode,
    /// The template, or an empty text if it is unknown.
    pub template: String,
    /// The field, or an empty text if the fault belongs to no field.
    pub field: String,
    /// The byte of the message at which the value begins.
    pub offset: usize,
}

impl fmt::Display for MessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.text())?;
        if self.code == MessageFaultCode::D5 && self.template.is_empty() {
            f.write_str(": the id of the template")?;
        }
        if !self.template.is_empty() {
            write!(f, ", in template {}", self.template)?;
        }
        if !self.field.is_empty() {
            write!(f, ", field {}", self.field)?;
        }
        write!(f, ", at byte {} of the message", self.offset)
    }
}

impl std::error::Error for MessageFault {}
