//! The normal form: numbers, identities, event records, their frame. No I/O.
pub mod frame;
pub use frame::{Header, LINE, Position, frames};
