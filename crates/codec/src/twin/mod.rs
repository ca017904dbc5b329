//! Slow twins of the fast paths, the checks that compare both, and seeded samples: one folder a format.
//!
//! Tests, benches and the fuzzer use them. The feature `twin` adds them; no product build has it.

pub mod csv;
pub mod fix;
pub mod fixed;
pub mod iex;
pub mod iso20022;
pub mod itch;
pub mod swift_mt;
pub mod text;
