//! The check of books that a receiver keeps against those of the exchange.
//!
//! Tests and benches use it. The feature `twin` adds it; no product build has it.

mod exchange_check;

pub use exchange_check::{ExactLevel, ReceivedBook};
