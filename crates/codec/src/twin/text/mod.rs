//! Text of all formats: the checks.

pub mod check;
pub mod jsonl;
pub mod mail;
pub mod xml;
