//! The `unitape` binary.
fn main() {}
