//! The binaries that are compared: of this tree, and of a commit in a worktree of its own.
//!
//! ```text
//! DIR/tree-HASH/target       this tree, as it is now; the hash is that of its path
//! DIR/COMMIT/tree            the worktree of a commit
//! DIR/COMMIT/target          what is built of it, once; `built.json` says that it is whole
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cargo::{cargo, root};
use crate::rounds::to_stderr;

/// Binaries to count in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeasuredBuild {
    /// The commit, or `this tree`.
    pub(crate) name: String,
    pub(crate) unitape: PathBuf,
    /// The example that runs the cases of the tape; none where it does not compile.
    pub(crate) probe: Option<PathBuf>,
    /// Whether `unitape bench` knows `--marks`.
    pub(crate) marks: bool,
    /// Hash of all bytes of `unitape`.
    pub(crate) hash: u64,
    /// Hash of all bytes of the example; 0 where there is none.
    pub(crate) probe_hash: u64,
}

/// The example with the cases of the tape, from the root.
const PROBE: &str = "crates/tape/examples/instructions.rs";

/// Builds this tree as it is.
pub(crate) fn tree(dir: &Path) -> Result<MeasuredBuild, String> {
    // Cargo goes by the times of files: two trees must not share what is built of them.
    let name = format!("tree-{:016x}", hash(root().as_os_str().as_encoded_bytes()));
    let target = dir.join(name).join("target");
    eprintln!("building this tree (release); the first build needs some minutes");
    build(&root(), &target, UNITAPE)?;
    build(&root(), &target, EXAMPLE)?;
    finish("this tree", &target, true)
}

/// Builds a commit, or finds what was built of it before.
pub(crate) fn commit(dir: &Path, rev: &str) -> Result<MeasuredBuild, String> {
    let commit = git(&root(), &["rev-parse", "--verify", "--quiet", &format!("{rev}^{{commit}}")])
        .map_err(|_| format!("no commit is called `{rev}`"))?;
    let commit_dir = dir.join(&commit);
    let (tree, target, note) =
        (commit_dir.join("tree"), commit_dir.join("target"), commit_dir.join("built.json"));
    let probe = fs::read(root().join(PROBE)).map_err(|e| format!("{PROBE}: {e}"))?;
    if let Some(build) = find_built(&note, &commit, &target, hash(&probe)) {
        return Ok(build);
    }
    worktree(&tree, &commit)?;
    eprintln!("building {} (release), once; this needs some minutes", short(&commit));
    build(&tree, &target, UNITAPE)?;
    let has_probe = with_probe(&tree, &target, &probe)?;
    let built = finish(&commit, &target, has_probe)?;
    let text = json!({"probe": has_probe, "source": hash(&probe), "marks": built.marks, "hash": built.hash,
        "probe_hash": built.probe_hash});
    fs::write(&note, format!("{text}\n")).map_err(|e| format!("{}: {e}", note.display()))?;
    Ok(built)
}

/// As much of a commit's name as people need.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

const UNITAPE: &[&str] = &["--package", "unitape", "--bin", "unitape", "--features", "bench"];
const EXAMPLE: &[&str] = &["--package", "unitape-tape", "--example", "instructions"];

/// The earlier build, if it is there and the cases of the tape are still the same.
fn find_built(note: &Path, commit: &str, target: &Path, source: u64) -> Option<MeasuredBuild> {
    let entry: Value = serde_json::from_slice(&fs::read(note).ok()?).ok()?;
    if entry["source"].as_u64()? != source {
        return None;
    }
    let (unitape, probe) = binaries(target);
    let probe = entry["probe"].as_bool()?.then_some(probe);
    let is_complete = unitape.is_file() && probe.as_ref().is_none_or(|probe| probe.is_file());
    is_complete.then_some(MeasuredBuild {
        name: commit.to_owned(),
        unitape,
        probe,
        marks: entry["marks"].as_bool()?,
        hash: entry["hash"].as_u64()?,
        probe_hash: entry["probe_hash"].as_u64()?,
    })
}

/// Makes a worktree of the commit where there is none yet.
fn worktree(tree: &Path, commit: &str) -> Result<(), String> {
    if git(tree, &["rev-parse", "HEAD"]).is_ok_and(|head| head == commit) && tree.join(".git").exists() {
        return Ok(());
    }
    git(&root(), &["worktree", "prune"])?;
    let path = tree.to_str().ok_or_else(|| format!("{}: not UTF-8", tree.display()))?;
    git(&root(), &["worktree", "add", "--force", "--detach", path, commit]).map(|_| ())
}

/// Builds the cases of the tape as this tree has them; where they do not compile, as the commit has them, if it has any.
fn with_probe(tree: &Path, target: &Path, ours: &[u8]) -> Result<bool, String> {
    let path = tree.join(PROBE);
    let theirs = git(tree, &["show", &format!("HEAD:{PROBE}")]).ok();
    let write = |text: &[u8]| fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
    write(ours)?;
    if build(tree, target, EXAMPLE).is_ok() {
        return Ok(true);
    }
    let Some(theirs) = theirs else {
        eprintln!("the cases of the tape do not compile there; they are reported as new");
        return Ok(false);
    };
    eprintln!("the cases of the tape do not compile there; its own are counted");
    write(theirs.as_bytes())?;
    build(tree, target, EXAMPLE).map(|()| true)
}

/// Builds for release, as a release is built: whatever profiles and flags the caller's environment has are left out.
fn build(tree: &Path, target: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = cargo();
    command.current_dir(tree).args(["build", "--release", "--locked"]).args(arguments);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let changes =
            ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_INCREMENTAL", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"];
        if changes.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env("CARGO_TARGET_DIR", target);
    if to_stderr(&mut command)? { Ok(()) } else { Err(format!("{}: the build failed", tree.display())) }
}

fn binaries(target: &Path) -> (PathBuf, PathBuf) {
    let release = target.join("release");
    (release.join("unitape"), release.join("examples").join("instructions"))
}

/// Looks at what was built.
fn finish(name: &str, target: &Path, has_probe: bool) -> Result<MeasuredBuild, String> {
    let (unitape, probe) = binaries(target);
    let probe = has_probe.then_some(probe);
    let hash_file = |path: &PathBuf| {
        fs::read(path).map(|bytes| hash(&bytes)).map_err(|e| format!("{}: {e}", path.display()))
    };
    let probe_hash = probe.as_ref().map_or(Ok(0), hash_file)?;
    let (hash, marks) = (hash_file(&unitape)?, knows_marks(&unitape)?);
    Ok(MeasuredBuild { name: name.to_owned(), unitape, probe, marks, hash, probe_hash })
}

/// Whether its benches print marks.
fn knows_marks(unitape: &Path) -> Result<bool, String> {
    let mut command = Command::new(unitape);
    command.args(["bench", "--quick", "--json", "--marks", "sim/events"]);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", unitape.display()))?;
    let first: Value =
        output
            .stdout
            .split(|b| *b == b'\n')
            .next()
            .map_or(Ok(Value::Null), |line| {
                if line.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(line) }
            })
            .map_err(|e| format!("{}: {e}", unitape.display()))?;
    Ok(output.status.success() && first["marks"].is_object())
}

fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("git does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

/// FNV-1a over words of eight bytes: to know a file again, not to trust it.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut tail = [0; 8];
    tail[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&tail]).map(|word| u64::from_le_bytes(*word));
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(PRIME).rotate_left(29);
    all.chain([bytes.len() as u64]).fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A binary that is not known again is counted under the name of another.
    #[test]
    fn files_that_differ_have_other_hashes() {
        let texts: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"12345678", b"123456789", b"12345678\0", b"87654321"];
        let mut hashes: Vec<u64> = texts.map(hash).to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len());
    }

    /// A build for other cases of the tape would be counted as if it were built for these.
    #[test]
    fn what_was_built_is_found_again_only_with_the_same_cases() {
        let dir = tempfile::tempdir().unwrap();
        let (unitape, probe) = binaries(dir.path());
        fs::create_dir_all(probe.parent().unwrap()).unwrap();
        fs::write(&unitape, "u").unwrap();
        let note = dir.path().join("built.json");
        fs::write(
            &note,
            json!({"probe": true, "source": 5, "marks": false, "hash": u64::MAX, "probe_hash": 3})
                .to_string(),
        )
        .unwrap();
        assert_eq!(find_built(&note, "c", dir.path(), 5), None, "the example is missing");
        fs::write(&probe, "p").unwrap();
        let cached_build = find_built(&note, "c", dir.path(), 5).unwrap();
        assert_eq!((cached_build.hash, cached_build.probe_hash, cached_build.marks), (u64::MAX, 3, false));
        assert_eq!(cached_build.probe, Some(probe));
        assert_eq!(find_built(&note, "c", dir.path(), 6), None);
    }
}
