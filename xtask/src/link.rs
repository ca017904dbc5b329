//! The step `link`: unitape with Aeron is built, and two processes of it carry a tape.
//!
//! Aeron's C code wants cmake 3.30 and bindgen wants libclang. Both come from PyPI into `target/tools`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::cargo;
use crate::report::{self, TestCount};
use crate::steps::{StepContext, StepOutcome};
use crate::tools;

/// What the build of Aeron needs beside a C compiler.
struct AeronBuild {
    cmake: PathBuf,
    /// The folder of libclang.
    libclang: PathBuf,
    /// The folder of the compiler's own headers, which libclang from PyPI does not have.
    headers: String,
}

pub(crate) fn run(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let build = match AeronBuild::find(&context.target_dir) {
        Ok(build) => build,
        Err(reason) => return StepOutcome::Skipped(reason),
    };
    check(&build, context, count).into()
}

fn check(build: &AeronBuild, context: &StepContext, count: &mut TestCount) -> Result<(), String> {
    // The whole workspace, so that the crates of others have the features with which they are built already.
    let features = ["--workspace", "--features", "unitape/link", context.locked];
    let mut test = cargo();
    test.arg("test").args(features).args(["--test", "link"]);
    report::run(build.set_environment(&mut test), count)?;
    // The step `clippy` does not see the code behind the feature.
    let mut clippy = cargo();
    clippy.arg("clippy").args(features).args(["--lib", "--bins", "--test", "link", "--", "-D", "warnings"]);
    report::run(build.set_environment(&mut clippy), count)
}

impl AeronBuild {
    /// Finds or installs the tools; otherwise says why they cannot be had.
    fn find(target_dir: &Path) -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("the link is built on Linux alone".to_owned());
        }
        tools::libraries_of_aeron()?;
        let cmake = tools::install(&tools::CMAKE, target_dir)?;
        let libclang = tools::libclang(target_dir)?;
        let output = Command::new("cc").arg("-print-file-name=include").output();
        let output = output.map_err(|e| format!("cc does not start: {e}"))?;
        let headers = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok(Self { cmake, libclang, headers })
    }

    fn set_environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("CMAKE", &self.cmake).env("LIBCLANG_PATH", &self.libclang);
        command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", self.headers))
    }
}
