//! The step `format`: `examples/formats/ltsv.patch` adds a format to feeds. It is applied to a copy of the tree, and
//! the tests that it brings run there. The files it touches show the cost of a format: its folder, its `mod` line, a
//! line of the registry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, root};
use crate::report::{self, TestCount};
use crate::steps::{StepContext, StepOutcome};

const PATCH: &str = "examples/formats/ltsv.patch";
const FOLDER: &str = "crates/feed/src/formats/ltsv/";
/// Files besides those of its folder, each of which gets one line.
const OTHERS: [&str; 2] = ["crates/feed/src/formats/mod.rs", "crates/feed/src/formats/registry.rs"];

pub(crate) fn run(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let patch = root().join(PATCH);
    let text = match std::fs::read_to_string(&patch) {
        Ok(text) => text,
        Err(e) => return StepOutcome::Failed(format!("{PATCH}: {e}")),
    };
    let wrong = touched_otherwise(&text);
    if !wrong.is_empty() {
        return StepOutcome::Failed(format!(
            "{PATCH} touches more than a format needs: {}",
            wrong.join(", ")
        ));
    }
    let home = context.target_dir.join("example-format");
    match copy(&root(), &home.join("tree")).and_then(|tree| tested(&tree, &patch, context, count)) {
        Ok(()) => StepOutcome::Ok,
        Err(reason) => StepOutcome::Failed(reason),
    }
}

/// Files that a patch changes otherwise than by one more line, outside the folder of its format.
fn touched_otherwise(patch: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for part in patch.split("diff --git ").skip(1) {
        let file = part.lines().find_map(|line| line.strip_prefix("+++ b/")).unwrap_or_default();
        let lines = |sign: char| part.lines().filter(|line| line.starts_with(sign)).count() - 1;
        let is_one_line = OTHERS.contains(&file) && (lines('+'), lines('-')) == (1, 0);
        if !(file.starts_with(FOLDER) || is_one_line) {
            wrong.push(file.to_owned());
        }
    }
    wrong
}

/// Copies the files that git knows, with their changes, and gives the copy's root. A file of an earlier copy that is
/// the same stays untouched, so that cargo need not compile it again.
fn copy(from: &Path, to: &Path) -> Result<PathBuf, String> {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output();
    let listed = git.map_err(|e| format!("git ls-files: {e}"))?;
    if !listed.status.success() {
        return Err("git ls-files failed".to_owned());
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    // A file that was removed and not yet committed is listed and does not exist.
    let names: BTreeSet<PathBuf> =
        listed.split_terminator('\0').map(PathBuf::from).filter(|name| from.join(name).exists()).collect();
    let fail = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    remove_others(to, Path::new(""), &names).map_err(|e| fail(to, e))?;
    for name in &names {
        let (old, new) = (from.join(name), to.join(name));
        let bytes = std::fs::read(&old).map_err(|e| fail(&old, e))?;
        if std::fs::read(&new).is_ok_and(|copied| copied == bytes) {
            continue;
        }
        let folder = new.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).map_err(|e| fail(folder, e))?;
        std::fs::write(&new, bytes).map_err(|e| fail(&new, e))?;
    }
    Ok(to.to_owned())
}

/// Removes files of an earlier copy that are not among `names`.
fn remove_others(root: &Path, folder: &Path, names: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(root.join(folder)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(root, &name, names)?;
        } else if !names.contains(&name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Applies the patch in `tree` and runs the tests of its folder. It builds in a folder of its own: cargo distinguishes packages of
/// two workspaces by their paths below the workspace, which are the same here.
fn tested(tree: &Path, patch: &Path, context: &StepContext, count: &mut TestCount) -> Result<(), String> {
    let mut apply = Command::new("git");
    apply.arg("apply").arg(patch).current_dir(tree);
    // The copy lies in a folder of the repository and is none of its own.
    apply.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
    report::run(&mut apply, count)?;
    let mut command = cargo();
    command.args(["test", "--package", "unitape-feed", "--lib", context.locked, "formats::ltsv"]);
    command.current_dir(tree).env("CARGO_TARGET_DIR", tree.with_file_name("build"));
    // The tests are few and small: what takes time is compiling.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    let before = count.passed;
    report::run(&mut command, count)?;
    match count.passed == before {
        true => Err("no test of the format ran".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_that_touches_more_is_told() {
        let folder = format!("diff --git a/x b/x\n--- /dev/null\n+++ b/{FOLDER}mod.rs\n+a\n+b\n");
        let line = format!("diff --git a/y b/y\n--- a/{0}\n+++ b/{0}\n+a\n", OTHERS[1]);
        assert!(touched_otherwise(&format!("{folder}{line}")).is_empty());
        let two = line.replace("+a\n", "+a\n+b\n");
        let foreign_line = line.replace("registry", "fix");
        assert_eq!(touched_otherwise(&format!("{folder}{two}{foreign_line}")).len(), 2);
    }
}
