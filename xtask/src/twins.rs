//! The contents of the binary: a build without `bench` holds no slow twin, one with it does.
//!
//! Twins, checks and samples are in the module `twin` of their crate, under its feature `twin`. Each build is
//! unstripped and not optimised, so that no symbol is left out because it was inlined.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::cargo;
use crate::report::{self, TestCount};

/// Builds both, and looks for symbols of twins in them.
pub(crate) fn check(target_dir: &Path, locked: &str, count: &mut TestCount) -> Result<(), String> {
    let folder = target_dir.join("twins");
    let symbols = twins_in(&build(&folder, locked, &[], count)?)?;
    if let Some(first) = symbols.first() {
        return Err(format!("{} symbols of twins in a build without bench: {first} …", symbols.len()));
    }
    match twins_in(&build(&folder, locked, &["--features", "bench"], count)?)?.is_empty() {
        true => Err("no symbol of a twin in a build with bench: the search does not find them".to_owned()),
        false => Ok(()),
    }
}

fn build(folder: &Path, locked: &str, features: &[&str], count: &mut TestCount) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--package", "unitape", locked]).args(features);
    command.env("CARGO_TARGET_DIR", folder).env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    report::run(&mut command, count)?;
    Ok(folder.join("debug/unitape"))
}

/// Symbols of twins in a binary.
fn twins_in(binary: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("nm").arg(binary).output().map_err(|e| format!("nm: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || text.is_empty() {
        return Err(format!("nm {}: {}", binary.display(), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(text.lines().filter(|line| is_twin(line)).map(str::to_owned).collect())
}

fn is_twin(line: &str) -> bool {
    line.contains("unitape") && line.contains("4twin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_known_by_their_module() {
        assert!(is_twin("0000 t _ZN13unitape_codec4twin3fix5naive6tokens17hE"));
        assert!(
            !is_twin("0000 t _ZN13unitape_codec3fix6tokens17hE") && !is_twin("0000 t _ZN6chrono4twin17hE")
        );
    }
}
