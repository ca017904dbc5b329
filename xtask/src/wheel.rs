//! `cargo xtask wheel`: the wheel of the Python module, built by maturin into `target/wheels`.
//!
//! ```text
//! python/ ──maturin──▶ target/wheels/unitape-….whl ──pip install──▶ import unitape
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{Metadata, root};
use crate::report::{self, TestCount};
use crate::{XtaskFailure, tools};

/// The wheel to build.
pub(crate) struct WheelRequest {
    /// With link-time optimisation, as it is shipped; otherwise as the tests are built.
    pub(crate) is_release: bool,
    /// For every Linux with glibc 2.28 or later, by zig's linker; otherwise for this machine's glibc.
    pub(crate) is_portable: bool,
}

/// Builds the wheel and prints its path.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let mut request = WheelRequest { is_release: true, is_portable: false };
    for arg in args {
        match arg.as_str() {
            "--dev" => request.is_release = false,
            "--manylinux" => request.is_portable = true,
            other => {
                return Err(XtaskFailure::Usage(format!("unknown argument `{other}`; see cargo xtask help")));
            }
        }
    }
    tools::c_compiler()?;
    tools::python();
    let target_dir = Metadata::load()?.target_dir()?;
    let wheel = build(&request, &target_dir, tools::fetch(), &mut TestCount::default())?;
    println!("{}", wheel.display());
    Ok(0)
}

/// Builds the wheel, and gives its path.
pub(crate) fn build(
    request: &WheelRequest,
    target_dir: &Path,
    locked: &str,
    count: &mut TestCount,
) -> Result<PathBuf, String> {
    let maturin = tools::install(&tools::MATURIN, target_dir)?;
    let out = target_dir.join("wheels");
    // A folder of its own, so that the one wheel in it is this one.
    let fresh = tempfile_in(&out)?;
    let mut command = Command::new(maturin);
    command.args(["build", "--manifest-path", "python/Cargo.toml", locked]).arg("--out").arg(&fresh);
    command.args(["--profile", if request.is_release { "release" } else { "dev" }]).current_dir(root());
    if request.is_portable {
        let zig = tools::install(&tools::ZIG, target_dir)?;
        let mut path = zig.parent().map(Path::as_os_str).unwrap_or_default().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.args(["--zig", "--compatibility", "manylinux_2_28"]).env("PATH", path);
    }
    let result = report::run(&mut command, count).and_then(|()| take_wheel(&fresh, &out));
    _ = std::fs::remove_dir_all(&fresh);
    result
}

fn tempfile_in(out: &Path) -> Result<PathBuf, String> {
    let folder = out.join(format!("build-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Moves the wheel to its place.
fn take_wheel(fresh: &Path, out: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(fresh).map_err(|e| format!("{}: {e}", fresh.display()))?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    let built = wheels.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let built = built.ok_or_else(|| format!("maturin has left no wheel in {}", fresh.display()))?;
    let wheel = out.join(built.file_name().expect("a file has a name"));
    std::fs::rename(&built, &wheel).map_err(|e| format!("{}: {e}", wheel.display()))?;
    Ok(wheel)
}

/// Builds the portable wheel, installs it in a fresh environment without a network, and runs the tests in Python there.
pub(crate) fn check(target_dir: &Path, locked: &str, count: &mut TestCount) -> Result<(), String> {
    let wheel = build(&WheelRequest { is_release: true, is_portable: true }, target_dir, locked, count)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.contains("manylinux_2_28") {
        return Err(format!("{name} is not for manylinux_2_28"));
    }
    let binary = crate::demo::build().map_err(|failure| failure.to_string())?;
    let packages = tools::python_environment()?;
    let fresh = target_dir.join("wheels").join(format!("fresh-{}", std::process::id()));
    let python = fresh.join("bin").join("python3");
    let run = |command: &mut Command| report::run(command, &mut TestCount::default());
    // The tests' packages come from their environment, and the module from the wheel alone.
    let result = run(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&fresh))
        .and_then(|()| {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]);
            run(pip.arg(site_packages(&python)?).arg(&wheel))
        })
        .and_then(|()| {
            // maturin writes it for a module with a stub; without it type checkers ignore the stub.
            let marker = site_packages(&python)?.join("unitape").join("py.typed");
            if marker.exists() { Ok(()) } else { Err(format!("{name} has no unitape/py.typed")) }
        })
        .and_then(|()| {
            let mut pytest = Command::new(&python);
            pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(root().join("python/tests"));
            pytest.env("PYTHONPATH", site_packages(&packages)?).env("UNITAPE_BIN", &binary);
            run(pytest.env("PYTHONDONTWRITEBYTECODE", "1"))
        });
    _ = std::fs::remove_dir_all(&fresh);
    result
}

/// The folder of the packages of an environment, given by its Python.
fn site_packages(python: &Path) -> Result<PathBuf, String> {
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(python).args(["-c", code]).output();
    let output = output.map_err(|e| format!("{}: {e}", python.display()))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
}
