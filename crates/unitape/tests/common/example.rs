//! The examples of this package, as they were built for the tests.

use std::path::{Path, PathBuf};

/// The program of an example of this package.
pub fn example(name: &str) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_unitape"));
    let path = binary.with_file_name("examples").join(name);
    let written = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).with_extension("rs");
    assert!(
        written(&path).is_some_and(|built| written(&source).is_some_and(|source| source <= built)),
        "{} is not there, or older than its source: `cargo test` builds the examples unless one test is named; \
         run `cargo build --examples`",
        path.display()
    );
    path
}
