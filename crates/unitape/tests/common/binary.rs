//! The binary that the tests of the command line run.

use std::path::PathBuf;

/// The binary of this build, or the one that `UNITAPE_BIN` names: with that of an older commit, a new test shows that
/// it fails there. A relative name counts from the package's folder, where the tests run.
pub fn binary() -> PathBuf {
    match std::env::var_os("UNITAPE_BIN") {
        Some(other) => std::path::absolute(other).expect("UNITAPE_BIN is a path"),
        None => env!("CARGO_BIN_EXE_unitape").into(),
    }
}
