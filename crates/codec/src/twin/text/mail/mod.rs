//! Mail: the checks, the sample.

pub mod check;
pub mod sample;
