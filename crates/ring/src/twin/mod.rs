//! A measurement of the farm, for `unitape bench`.
//!
//! The feature `twin` adds it; no product build has it.

pub mod measure;
