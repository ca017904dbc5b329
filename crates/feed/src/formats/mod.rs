//! Bytes to events, by format: a folder or a file for each.

pub mod csv;
pub mod decode;
pub mod detect;
pub mod events;
pub mod fast;
pub mod fast_rules;
pub mod fix;
pub mod fixed;
pub mod iso20022;
pub mod itch;
pub mod jsonl;
pub mod swift;
pub mod text;
pub mod zeros;
