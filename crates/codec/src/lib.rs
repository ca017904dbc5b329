//! Bytes to fields and back, sans I/O, one module per format.

pub mod events;
pub mod fix;
