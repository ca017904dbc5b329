//! JSON Lines: the slow twin, the checks, the sample.

pub mod check;
pub mod naive;
pub mod sample;
