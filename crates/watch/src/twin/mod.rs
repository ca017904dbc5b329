//! Slow twins of the scenarios and of the breakers, and a sample of orders.
//!
//! Benches and tests use them. The feature `twin` adds them; no product build has it.

pub mod naive;
pub mod sample;
