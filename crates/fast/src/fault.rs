//! What can be wrong with a message.

use std::fmt;

/// The code a fault is reported under. Those of the specification have their names there (FAST 1.1, appendix 4); it has
/// none for input that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A value that the field cannot have: of another type, not its constant, shorter than a tail can tell.
    D1,
    /// An integer that is none of its type.
    D2,
    /// A decimal that the operators of exponent and mantissa cannot tell.
    D3,
    /// A previous value of another type.
    D4,
    /// A mandatory value is not told, and nothing was before.
    D5,
    /// A mandatory value is not told, and what was before is empty; of a tail, nothing was before.
    D6,
    /// More is taken away from a string than it has, or a tail is not told and what was before is empty.
    D7,
    /// A reference to a template that is not there.
    D8,
    /// An id of no template.
    D9,
    /// A block without a byte.
    D12,
    /// A decimal whose exponent is not between −63 and 63, or whose mantissa does not fit into 64 bits.
    R1,
    /// What was put together is not UTF-8.
    R2,
    /// Characters of more than seven bits in a string of such.
    R3,
    /// An integer that does not fit into the field's type, by a difference or as it was told.
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
    /// A mandatory field that no value is told for.
    Missing,
    /// The input ends inside a message.
    Truncated,
    /// More than 4,096 elements without a byte, more than 16 templates named in each other, texts of more than 16 MiB, or
    /// more than some four million values.
    TooLarge,
    /// Text that is not of the framing.
    Garbage,
}

impl Code {
    /// The word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::D1 => "D1",
            Code::D2 => "D2",
            Code::D3 => "D3",
            Code::D4 => "D4",
            Code::D5 => "D5",
            Code::D6 => "D6",
            Code::D7 => "D7",
            Code::D8 => "D8",
            Code::D9 => "D9",
            Code::D12 => "D12",
            Code::R1 => "R1",
            Code::R2 => "R2",
            Code::R3 => "R3",
            Code::R4 => "R4",
            Code::R5 => "R5",
            Code::R6 => "R6",
            Code::R7 => "R7",
            Code::R8 => "R8",
            Code::R9 => "R9",
            Code::Missing => "missing",
            Code::Truncated => "truncated",
            Code::TooLarge => "too_large",
            Code::Garbage => "garbage",
        }
    }

    /// What it says.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Code::D1 => {
                "a value that the field cannot have: of another type, not its constant, or shorter than a tail tells"
            }
            Code::D2 => "an integer out of the bounds of its type",
            Code::D3 => "a decimal that the operators of its exponent and mantissa cannot tell",
            Code::D4 => "the previous value is of another type",
            Code::D5 => "a mandatory value is left out, there is none before it and no initial one",
            Code::D6 => {
                "a mandatory value is left out, and the one before it is empty (or, of a tail, there is none)"
            }
            Code::D7 => {
                "more is taken away from a string than it has, or a tail is left out behind an empty one"
            }
            Code::D8 => "a reference to a template that no file has",
            Code::D9 => "no template has this id",
            Code::D12 => "a block of no bytes",
            Code::R1 => "a decimal with an exponent beyond 63, or a mantissa beyond 64 bits",
            Code::R2 => "a string that was put together is not UTF-8",
            Code::R3 => "characters beyond ASCII in a string of ASCII",
            Code::R4 => "an integer that does not fit into the type of the field",
            Code::R5 => "a decimal that is no integer of the type of the field",
            Code::R6 => "an integer that is longer than it has to be",
            Code::R7 => "a presence map that is longer than it has to be",
            Code::R8 => "a presence map with bits that stand for nothing",
            Code::R9 => "a string that is longer than it has to be",
            Code::Missing => "a mandatory field that no value is told for",
            Code::Truncated => "the input ends inside the message",
            Code::TooLarge => {
                "more values, text, elements without a byte or templates in each other than are taken"
            }
            Code::Garbage => "bytes that are not of the framing",
        }
    }
}

/// Why a message is none: code, place and whose value it was. It prints as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub code: Code,
    /// The template, empty where it is not known.
    pub template: String,
    /// The field, empty where it is none.
    pub field: String,
    /// The byte of the message at which the value begins.
    pub at: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.text())?;
        if self.code == Code::D5 && self.template.is_empty() {
            f.write_str(": the id of the template")?;
        }
        if !self.template.is_empty() {
            write!(f, ", in template {}", self.template)?;
        }
        if !self.field.is_empty() {
            write!(f, ", field {}", self.field)?;
        }
        write!(f, ", at byte {} of the message", self.at)
    }
}

impl std::error::Error for Fault {}
