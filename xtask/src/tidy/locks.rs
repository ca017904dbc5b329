//! The workspaces beside the main one know what our packages depend on.
//!
//! They are built with `--locked`, but not by the ordinary run: without this rule nobody sees that a lock file is old.

use std::collections::{BTreeMap, BTreeSet};

use super::{TidyProblem, files};
use crate::cargo::Package;

/// The end of the paths of lock files of separate workspaces.
const END: &str = "/Cargo.lock";

pub(crate) fn check(files: &[files::TreeFile], packages: &[Package]) -> Vec<TidyProblem> {
    let locks = files.iter().filter(|file| file.path.ends_with(END));
    locks.flat_map(|file| missing(&file.path, file.text().unwrap_or_default(), packages)).collect()
}

/// One problem for each package of ours whose entry lacks a dependency.
fn missing(path: &str, lock: &str, packages: &[Package]) -> Vec<TidyProblem> {
    let entries = entries(lock);
    let folder = path.strip_suffix(END).unwrap_or(path);
    let mut problems = Vec::new();
    for package in packages {
        let Some(locked_names) = entries.get(package.name.as_str()) else { continue };
        let needed = package.dependencies.iter().filter(|dep| dep.kind == "normal" && !dep.is_optional);
        let lacking: BTreeSet<&str> =
            needed.map(|dep| dep.name.as_str()).filter(|name| !locked_names.contains(name)).collect();
        if !lacking.is_empty() {
            let names: Vec<&str> = lacking.into_iter().collect();
            let message = format!(
                "{} depends on {}, which is not locked here: run cargo update --workspace --manifest-path {folder}/Cargo.toml",
                package.name,
                names.join(", ")
            );
            problems.push(TidyProblem::new(path, message));
        }
    }
    problems
}

/// The dependencies of each package by name. Packages of one name in several versions are joined: none of ours is.
fn entries(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut package = None;
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            let name = name.trim_matches('"');
            entries.entry(name).or_default();
            package = Some(name);
        } else if let (Some(package), Some(dependency)) = (package, line.strip_prefix(" \"")) {
            // `libc`, or `syn 2.0.119` where there are several versions.
            let name = dependency.split(['"', ' ']).next().unwrap_or_default();
            entries.entry(package).or_default().insert(name);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::Dependency;

    fn package(dependencies: &[(&str, &str, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|&(name, kind, is_optional)| Dependency {
            name: name.to_owned(),
            kind: kind.to_owned(),
            is_optional,
        });
        Package {
            name: "unitape-tape".to_owned(),
            folder: "crates/tape".to_owned(),
            layer: Some(1),
            publish_forbidden: true,
            license: None,
            dependencies: dependencies.collect(),
            tests: Vec::new(),
        }
    }

    const LOCK: &str = "[[package]]\nname = \"libc\"\nversion = \"0.2.1\"\n\n[[package]]\nname = \"unitape-tape\"\n\
        version = \"0.1.0\"\ndependencies = [\n \"libc\",\n \"syn 2.0.119\",\n]\n";

    /// A dependency was added to the tape, and the workspace of the peers could no longer be built.
    #[test]
    fn a_lock_file_that_lacks_a_dependency_of_ours_is_told() {
        let all = [package(&[("libc", "normal", false), ("parking_lot", "normal", false)])];
        let [problem] = &missing("bench/Cargo.lock", LOCK, &all)[..] else { panic!() };
        assert!(problem.message.contains("unitape-tape depends on parking_lot,"), "{problem:?}");
        assert!(problem.message.ends_with("bench/Cargo.toml"), "{problem:?}");
    }

    #[test]
    fn what_another_workspace_does_not_build_is_not_wanted() {
        let required = [("libc", "normal", false), ("syn", "normal", false)];
        let unwanted = [("proptest", "dev", false), ("zstd", "normal", true)];
        let all = [package(&[&required[..], &unwanted].concat())];
        assert_eq!(missing("bench/Cargo.lock", LOCK, &all), []);
        assert_eq!(
            missing("bench/Cargo.lock", "[[package]]\nname = \"libc\"\n", &all),
            [],
            "ours is not in it"
        );
    }
}
