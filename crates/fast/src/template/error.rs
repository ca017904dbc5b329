//! Errors of a template file.

use std::fmt;
use unitape_model::ErrorCause;

/// The static errors of FAST 1.1, appendix 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TemplateErrorCode {
    /// Not well-formed, or not as the language has it.
    S1,
    /// An operator that the type of its field does not have.
    S2,
    /// An initial value outside the values of the field's type.
    S3,
    /// A constant without a value.
    S4,
    /// A default without a value on a mandatory field.
    S5,
}

impl fmt::Display for TemplateErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
        })
    }
}

/// A template file that cannot be used: which, where and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {code}: {reason}")]
pub struct TemplateError {
    /// The specification's code.
    pub code: TemplateErrorCode,
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem, and the expected contents.
    pub reason: String,
}

impl TemplateError {
    /// Returns the cause of the error. A template file is not data, so the cause is always outside.
    pub fn cause(&self) -> ErrorCause {
        ErrorCause::Outside
    }
}
