//! The packages that a change concerns: those whose files changed since a commit, and all that depend on them.
//!
//! ```text
//! git diff BASE, untracked files ─▶ crates/watch/src/x.rs ─▶ unitape-watch ─▶ + unitape
//! ```
//!
//! A file outside all packages (`mappings/`, `docs/`) concerns those that read it. Where that is not known (`Cargo.lock`,
//! `vectors/`), it concerns all.

use std::collections::BTreeSet;

use crate::cargo::Package;
use crate::records::git;

/// The files that differ from where this branch left `base`, committed or not, as paths from the root.
pub(crate) fn files_since(base: &str) -> Result<Vec<String>, String> {
    let fork = git(&["merge-base", base, "HEAD"])?;
    let changed = git(&["diff", "--name-only", "--no-renames", &fork])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(untracked.lines()).map(str::to_owned).collect())
}

/// Files and folders outside packages that are compiled into one, the lowest; those above it depend on it.
const BUILT_INTO: [(&str, &str); 1] = [("mappings/", "unitape-marketdata")];

/// Files and folders outside packages that tests read, and the packages of these tests: what depends on such a
/// package does not change.
const READ_BY: [(&str, &[&str]); 7] = [
    ("docs/", &["unitape", "unitape-codec", "unitape-model", "unitape-run"]),
    ("README.md", &["unitape"]),
    ("CONTRIBUTING.md", &["unitape"]),
    ("examples/", &["unitape", "unitape-c"]),
    ("ARCHITECTURE.md", &[]),
    ("CHANGELOG.md", &[]),
    ("bench/", &[]),
];

/// The packages that these files are in.
pub(crate) fn owners<'a>(files: &[String], packages: &'a [Package]) -> BTreeSet<&'a str> {
    let owner = |file: &String| packages.iter().find(|package| package.holds(file));
    files.iter().filter_map(owner).map(|package| package.name.as_str()).collect()
}

/// The names of the packages that these files concern, in the order of `packages`.
pub(crate) fn packages_of(files: &[String], packages: &[Package]) -> Vec<String> {
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    let mut readers: BTreeSet<&str> = BTreeSet::new();
    for file in files {
        let is_in = |path: &str| file == path || path.ends_with('/') && file.starts_with(path);
        if let Some(owner) = packages.iter().find(|package| package.holds(file)) {
            changed.insert(&owner.name);
        } else if let Some((_, package)) = BUILT_INTO.iter().find(|(path, _)| is_in(path)) {
            changed.insert(package);
        } else if let Some((_, packages)) = READ_BY.iter().find(|(path, _)| is_in(path)) {
            readers.extend(*packages);
        } else {
            // A lock file, the toolchain, golden data: nobody is safe.
            changed.extend(packages.iter().map(|package| package.name.as_str()));
        }
    }
    loop {
        let before = changed.len();
        for package in packages {
            if package.dependencies.iter().any(|dependency| changed.contains(dependency.name.as_str())) {
                changed.insert(&package.name);
            }
        }
        if changed.len() == before {
            break;
        }
    }
    let is_concerned = |name: &str| changed.contains(name) || readers.contains(name);
    packages.iter().map(|package| package.name.clone()).filter(|name| is_concerned(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::{Dependency, Metadata};

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            layer: None,
            publish_forbidden: true,
            license: None,
            dependencies: dependencies
                .iter()
                .map(|&name| Dependency {
                    name: name.to_owned(),
                    kind: "normal".to_owned(),
                    is_optional: false,
                })
                .collect(),
            tests: Vec::new(),
        }
    }

    fn concerned(files: &[&str]) -> Vec<String> {
        let packages = [
            package("model", &[]),
            package("tape", &["model"]),
            package("watch", &["tape"]),
            package("c", &["tape"]),
        ];
        packages_of(&files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>(), &packages)
    }

    /// A package that was left out would be found broken at the landing, half an hour later.
    #[test]
    fn what_depends_on_a_changed_package_is_tested_too() {
        assert_eq!(concerned(&["crates/model/src/lib.rs"]), ["model", "tape", "watch", "c"]);
        assert_eq!(concerned(&["crates/tape/Cargo.toml"]), ["tape", "watch", "c"]);
        assert_eq!(concerned(&["crates/watch/src/a.rs", "crates/c/src/b.rs"]), ["watch", "c"]);
        assert_eq!(concerned(&[]), Vec::<String>::new());
    }

    /// `crates/c` is no folder of `crates/codec`, and a file of nobody may be read by anybody.
    #[test]
    fn folders_are_whole_names_and_other_files_concern_all() {
        assert_eq!(concerned(&["crates/c/src/lib.rs"]), ["c"]);
        assert_eq!(concerned(&["crates/codec/src/lib.rs"]).len(), 4, "a package that is not known");
        assert_eq!(concerned(&["Cargo.lock"]).len(), 4);
        assert_eq!(concerned(&["vectors/fix/a.fix"]).len(), 4);
        assert_eq!(concerned(&["bench/record/x.jsonl", "CHANGELOG.md"]), Vec::<String>::new());
    }

    /// Readers that exist no more would let a change of the docs pass untested.
    #[test]
    fn the_readers_are_packages_of_this_workspace() {
        let packages = Metadata::load().unwrap().packages();
        let built_into = BUILT_INTO.iter().map(|(path, package)| (*path, std::slice::from_ref(package)));
        for (path, names) in READ_BY.into_iter().chain(built_into) {
            assert!(crate::cargo::root().join(path).exists(), "{path}");
            for name in names {
                assert!(packages.iter().any(|package| package.name == *name), "{name}");
            }
        }
        let names_of = |file: &str| {
            let mut names = packages_of(&[file.to_owned()], &packages);
            names.sort();
            names
        };
        assert_eq!(
            names_of("crates/watch/src/lib.rs"),
            ["unitape", "unitape-bench", "unitape-case", "unitape-run", "unitape-server", "unitape-watch"]
        );
        assert_eq!(names_of("fuzz/src/lib.rs"), ["unitape-fuzz"]);
        assert_eq!(names_of("docs/events.md"), ["unitape", "unitape-codec", "unitape-model", "unitape-run"]);
    }
}
