//! The programs of peers that are built when they are asked for, or the reason why they cannot be had here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// The directory of the Java peers, built once in a run.
pub fn java() -> Result<PathBuf, String> {
    static PLACE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = || own_dir().map(|dir| dir.join("java")).and_then(|place| java_built(&place).map(|()| place));
    PLACE.get_or_init(built).clone()
}

/// Where a JVM finds the classes of the Java peers.
pub fn class_path(place: &Path) -> String {
    format!("{0}/classes:{0}/lib/*", place.display())
}

/// The program of `bench/cpp/NAME.cpp`, built once in a run against the library of a Debian package.
pub fn cpp(name: &'static str, library: &str, package: &str) -> Result<PathBuf, String> {
    static PROGRAMS: Mutex<BTreeMap<&str, Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());
    let mut programs = PROGRAMS.lock().map_err(|e| e.to_string())?;
    programs.entry(name).or_insert_with(|| cpp_built(name, library, package)).clone()
}

fn cpp_built(name: &str, library: &str, package: &str) -> Result<PathBuf, String> {
    let place = own_dir()?.join("cpp");
    std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let program = place.join(name);
    eprintln!("building {name}");
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    // QuickFIX has exception specifications, which C++17 no longer has.
    command.args(["-std=c++14", "-O3", "-march=native", "-Wno-deprecated"]);
    // A program may say which version it is.
    command.arg(format!("-DPEER_VERSION=\"{}\"", debian_version(package)));
    command.arg(bench_dir().join("cpp").join(format!("{name}.cpp"))).arg("-o").arg(&program);
    command.arg(format!("-l{library}"));
    output(&mut command).map_err(|e| format!("{e}; a C++ compiler and Debian's {package} are needed"))?;
    Ok(program)
}

/// Where FIX44.xml and the others are that QuickFIX reads: `QUICKFIX_SPEC`, or what Maven brings with QuickFIX/J.
pub fn dictionaries() -> Result<PathBuf, String> {
    if let Some(place) = std::env::var_os("QUICKFIX_SPEC") {
        return Ok(place.into());
    }
    let place = java().map(|place| place.join("dictionaries"));
    place.map_err(|e| format!("{e}; for its dictionaries, which QUICKFIX_SPEC may name as well"))
}

/// The version without what Debian adds to it.
fn debian_version(package: &str) -> String {
    let asked = output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]));
    let version = asked.unwrap_or_default();
    let own = version.split(['+', '-']).next().unwrap_or("");
    if own.is_empty() { "of no known version".to_owned() } else { own.to_owned() }
}

fn own_dir() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    Ok(own.parent().unwrap_or(Path::new(".")).into())
}

fn bench_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).into()
}

/// Builds a package of this workspace; gives its program.
pub fn package_built(package: &str) -> Result<PathBuf, String> {
    eprintln!("building {package}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--message-format=json-render-diagnostics", "--package", package]);
    command.arg("--manifest-path").arg(bench_dir().join("Cargo.toml"));
    if std::env::var_os("RUSTERON_C_MARCH").is_none() {
        command.env("RUSTERON_C_MARCH", "native");
    }
    let messages = output(&mut command)?;
    // The last program that was made is the package's own.
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable").and_then(|e| e.as_str()).map(PathBuf::from))
        .next_back();
    program.ok_or_else(|| format!("the build of {package} names no program"))
}

/// Compiles the Java peers into `place`, once with what is there and, if that is not enough, once more with Maven's
/// repository.
fn java_built(place: &Path) -> Result<(), String> {
    output(Command::new("java").arg("-version")).map_err(|e| format!("{e}; a JDK 17 or later is needed"))?;
    let maven = |offline: bool| {
        let mut command = Command::new("mvn");
        command.args(["-q", "-B"]).args(offline.then_some("-o")).arg("process-classes");
        command.arg(format!("-Dbuild.dir={}", place.display())).current_dir(bench_dir().join("java"));
        output(&mut command)
    };
    match maven(true) {
        Ok(_) => Ok(()),
        Err(_) => {
            eprintln!("building the Java peers");
            maven(false).map(|_| ()).map_err(|e| format!("{e}; Maven and a JDK 17 or later are needed"))
        }
    }
}

/// What Aeron's C build wants and is easily missing; better one line before than a page of its messages.
pub fn aeron_can_be_built() -> Result<(), String> {
    let cmake = std::env::var("CMAKE").unwrap_or_else(|_| "cmake".to_owned());
    let version = output(Command::new(&cmake).arg("--version"));
    let version =
        version.map_err(|e| format!("{e}; cmake 3.30 or later is needed (PyPI has it), in CMAKE or PATH"))?;
    let number = version.split_whitespace().nth(2).unwrap_or("").to_owned();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (3, 30) {
        return Err(format!("cmake is {number}; 3.30 or later is needed (PyPI has it), in CMAKE or PATH"));
    }
    for (header, package) in [("bsd/string.h", "libbsd-dev"), ("uuid/uuid.h", "uuid-dev")] {
        if !Path::new("/usr/include").join(header).exists() {
            return Err(format!("{header} is missing: install {package}"));
        }
    }
    let clang = std::env::var("LIBCLANG_PATH").is_ok() || libclang_found();
    if clang { Ok(()) } else { Err("libclang is missing: install libclang-dev".to_owned()) }
}

fn libclang_found() -> bool {
    let dirs = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let places = dirs.flat_map(|dir| [dir.path(), dir.path().join("lib")]);
    let is = |name: &str| {
        name.starts_with("libclang.so") || name.starts_with("libclang-") && !name.contains("cpp")
    };
    places
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flat_map(|entries| entries.flatten())
        .any(|entry| entry.file_name().to_str().is_some_and(|name| is(name) && name.contains(".so")))
}

/// Runs a command to its end; gives what it said on stdout, or why not, with the end of what it complained of.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    if status.success() {
        return Ok(stdout);
    }
    let complaints = if stderr.is_empty() { stdout } else { String::from_utf8_lossy(&stderr).into_owned() };
    let all: Vec<&str> = complaints.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(format!("{name} ended with {status}: {}", all[all.len().saturating_sub(3)..].join(" | ")))
}
