//! Measurements of the tape between two processes, for `unitape bench` and tests.
//!
//! The feature `twin` adds them; no product build has it.

pub mod measure;
