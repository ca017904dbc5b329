//! The slow twin of the books, and the text of a state in which both are compared.
//!
//! Tests, benches and the tests of the simulator use it. The feature `twin` adds it; no product build has it.

pub mod naive;
