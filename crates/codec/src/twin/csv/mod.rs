//! Rows of separated values: the slow twin, the checks.

pub mod check;
pub mod naive;
