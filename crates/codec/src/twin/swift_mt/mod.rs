//! SWIFT MT: the slow twin, the checks, the sample.

pub mod check;
pub mod naive;
pub mod naive_parts;
pub mod sample;
