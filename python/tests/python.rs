//! Runs the tests that are written in Python, in an environment of their own, on the module as it was just built.
//!
//! The environment is in the user's cache (`environment.py`). A stale module beside the test once passed for the new one, so the
//! module comes from the folder of this test binary.
#![cfg(unix)]

use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn the_tests_in_python_pass() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = tempfile::tempdir().unwrap();
    symlink(module(), folder.path().join("unitape.abi3.so")).unwrap();
    let status = Command::new(environment(&tests))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp"])
        .arg(folder.path().join("temp"))
        .arg(&tests)
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("UNITAPE_BIN", binary())
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "pytest ended with {status}; its output is above");
}

/// Returns the Python of the environment.
fn environment(tests: &Path) -> PathBuf {
    let output = Command::new("python3").arg(tests.join("environment.py")).stderr(Stdio::inherit()).output();
    let output =
        output.unwrap_or_else(|e| panic!("this test needs Python 3 (see CONTRIBUTING.md): python3: {e}"));
    assert!(output.status.success(), "no environment for the tests in Python; the reason is above");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

/// Returns the library that cargo has built for this test.
fn module() -> PathBuf {
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let module = folder().join(format!("{prefix}unitape_python{suffix}"));
    assert!(module.is_file(), "{} is missing", module.display());
    module
}

/// Returns the binary of the same build, or the one that `UNITAPE_BIN` names.
fn binary() -> PathBuf {
    if let Some(other) = env::var_os("UNITAPE_BIN") {
        return std::path::absolute(other).expect("UNITAPE_BIN is a path");
    }
    let binary = folder().with_file_name("unitape");
    assert!(binary.is_file(), "{} is missing: cargo test -p unitape -p unitape-python", binary.display());
    binary
}

/// Returns the folder of this test binary.
fn folder() -> PathBuf {
    env::current_exe().unwrap().parent().expect("a folder").to_path_buf()
}
