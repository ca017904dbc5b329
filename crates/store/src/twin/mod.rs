//! The checks of blocks and manifests with any bytes.
//!
//! Tests and the fuzzer use them. The feature `twin` adds them; no product build has it.

pub mod check;
