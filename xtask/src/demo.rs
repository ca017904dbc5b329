//! `cargo xtask demo`: from a fresh clone to the main job on sample data.

use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{Metadata, cargo};
use crate::{XtaskFailure, tools};

/// The file name of the binary in a build folder.
pub(crate) const BINARY: &str = if cfg!(windows) { "unitape.exe" } else { "unitape" };

/// Builds the binary and runs `unitape demo` with the arguments given; the exit code is the child's.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    // `cargo xtask demo -- --seconds 5` hands us the `--` as well.
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    let binary = build()?;
    let status = Command::new(&binary)
        .arg("demo")
        .args(args)
        .status()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    // A child ended by a signal has no code; 1 says "error" in the contract of the command line.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Builds `unitape` for release and says where it is.
pub(crate) fn build() -> Result<PathBuf, XtaskFailure> {
    tools::c_compiler()?;
    let network = tools::fetch();
    eprintln!("building unitape (release); the first time takes a few minutes");
    let mut build = cargo();
    build.args(["build", "--release", "--package", "unitape", "--bin", "unitape"]).arg(network);
    let status = build.status().map_err(|e| format!("cargo build: {e}"))?;
    if !status.success() {
        return Err(XtaskFailure::Other(format!("cargo build: {status}")));
    }
    Ok(Metadata::load()?.target_dir()?.join("release").join(BINARY))
}
