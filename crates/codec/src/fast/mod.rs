//! FAST, "FIX adapted for streaming": messages by templates that are loaded at run time.

mod fault;
pub mod naive;
pub mod template;

pub use fault::{Code, Fault};
pub use template::{Source, StaticCode, StaticError, Templates};
