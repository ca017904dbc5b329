//! The step `web`: the page of the desk is checked and built again, and two persons walk through it in Chromium.
//!
//! The bundle is committed, so that nobody needs Node.js to build the binary. Here it is built from its sources and compared byte
//! for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, root};
use crate::demo::BINARY;
use crate::report::{self, TestCount};
use crate::steps::{StepContext, StepOutcome};
use crate::tools;

pub(crate) fn run(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    if !tools::has("node") || !tools::has("npm") {
        return StepOutcome::Skipped("Node.js with npm is not installed here (20.19 or later)".to_owned());
    }
    let chromium = match tools::chromium() {
        Ok(chromium) => chromium,
        Err(reason) => return StepOutcome::Skipped(reason),
    };
    check(context, &chromium, count).into()
}

fn check(context: &StepContext, chromium: &Path, count: &mut TestCount) -> Result<(), String> {
    let web = root().join("web");
    install(&web, count)?;
    report::run(npm(&web).args(["run", "--silent", "check"]), count)?;
    let built = context.target_dir.join("web-dist");
    let mut build = npm(&web);
    build.args(["run", "--silent", "build", "--", "--emptyOutDir", "--outDir"]).arg(&built);
    report::run(&mut build, count)?;
    compare(&web.join("dist"), &built)?;
    let mut binary = cargo();
    binary.args(["test", "--workspace", "--no-run", context.locked]);
    report::run(&mut binary, count)?;
    let mut walk = Command::new("node");
    walk.args(["--test", "--test-reporter", "tap", "test/walk.test.mjs"]).current_dir(&web);
    walk.env("UNITAPE", context.target_dir.join("debug").join(BINARY)).env("CHROMIUM", chromium);
    report::run(&mut walk, count)
}

/// Installs the packages of the lock file, unless they are there.
fn install(web: &Path, count: &mut TestCount) -> Result<(), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let lock = read(&web.join("package-lock.json"))?;
    let mark = web.join("node_modules/.unitape-lock");
    if std::fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    report::run(npm(web).args(["ci", "--no-audit", "--no-fund"]), count)?;
    std::fs::write(&mark, lock).map_err(|e| format!("{}: {e}", mark.display()))
}

fn npm(web: &Path) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(web);
    command
}

/// Fails if the committed bundle is not the one that its sources give.
fn compare(committed: &Path, built: &Path) -> Result<(), String> {
    let (committed, built) = (files(committed)?, files(built)?);
    let names = committed.keys().chain(built.keys().filter(|name| !committed.contains_key(*name)));
    let differing: Vec<String> = names
        .filter(|name| committed.get(*name) != built.get(*name))
        .map(|name| name.display().to_string())
        .collect();
    match differing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "web/dist is not what its sources give; run `npm run build` in web/ and commit it: {}",
            differing.join(", ")
        )),
    }
}

fn files(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap_or(&path).to_owned();
                all.insert(name, std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?);
            }
        }
    }
    Ok(all)
}
