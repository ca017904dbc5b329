//! The slow twin of the decoder, and the checks that compare both: templates and messages, and encoding.
//!
//! Tests, benches and the fuzzer use them. The feature `twin` adds them; no product build has it.

pub mod check;
pub mod encode_check;
pub mod naive;
