//! Fixed-width records: the slow twin, the checks.

pub mod check;
pub mod naive;
