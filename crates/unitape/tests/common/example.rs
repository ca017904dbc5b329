//! The examples of this package, as they were built for the tests.

use std::path::{Path, PathBuf};

/// The program of an example of this package.
pub fn example(name: &str) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_unitape"));
    let path = binary.with_file_name("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not there: `cargo test` builds the examples unless told which test; cargo build --examples",
        path.display()
    );
    path
}
