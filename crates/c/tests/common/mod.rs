//! The C compiler of the machine, and the library as C links it.

#![allow(dead_code)] // each test uses some of it

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the repository")
}

pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// A compiler that runs, or a line in the log that says what was not tested.
pub fn compiler(variable: &str, usual: &str) -> Option<String> {
    let compiler =
        std::env::var(variable).ok().filter(|cc| !cc.is_empty()).unwrap_or_else(|| usual.to_owned());
    let works = Command::new(&compiler).arg("--version").output().is_ok_and(|out| out.status.success());
    if !works {
        eprintln!("SKIPPED: no `{compiler}` here: what C sees of the library was not tested");
    }
    works.then_some(compiler)
}

/// `libunitape_c.a` or `.so` of this build: it lies beside the tests.
pub fn library(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("this test is a file");
    let deps = tests.parent().expect("it lies in a folder");
    let places = [deps.join(name), deps.join("..").join(name)];
    let newest = places.iter().filter(|path| path.is_file());
    newest
        .max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok())
        .unwrap_or_else(|| panic!("{name} is not in {}", deps.display()))
        .clone()
}

/// The system libraries that the static library needs.
pub const LIBS: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lrt"];

pub const C99: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"];
pub const CXX: [&str; 8] = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"];

/// Runs a command that must succeed.
pub fn must(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
