//! The rules of the house that no compiler checks, each reported where it is broken.

pub(crate) mod files;
mod layers;
mod links;
mod locks;
mod text;
mod words;

use std::path::Path;

use crate::XtaskFailure;
use crate::cargo::{Metadata, root};

/// One broken rule. `place` is `path` or `path:line`, relative to the root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyProblem {
    pub(crate) location: String,
    pub(crate) message: String,
}

impl TidyProblem {
    fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into() }
    }

    fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), message)
    }
}

/// `cargo xtask tidy`.
pub(crate) fn run() -> Result<u8, XtaskFailure> {
    let problems = check(&root())?;
    show(&problems);
    if problems.is_empty() {
        println!("tidy: nothing to complain of");
    }
    Ok(u8::from(!problems.is_empty()))
}

/// All problems of the tree, ordered by place.
pub(crate) fn check(root: &Path) -> Result<Vec<TidyProblem>, String> {
    let packages = Metadata::load()?.packages();
    let mut problems = layers::check(&packages);
    let files = files::list(root)?;
    problems.extend(locks::check(&files, &packages));
    for file in &files {
        problems.extend(text::check(file));
        problems.extend(links::check(file, root));
    }
    problems.extend(words::check(&files));
    problems.extend(changelog(&files));
    problems.sort();
    problems.dedup();
    Ok(problems)
}

/// Writes them to stderr.
pub(crate) fn show(problems: &[TidyProblem]) {
    for TidyProblem { location: place, message } in problems {
        eprintln!("{place}: {message}");
    }
}

/// A change that users notice has a place in the changelog at any time.
fn changelog(files: &[files::TreeFile]) -> Option<TidyProblem> {
    let path = "CHANGELOG.md";
    match files.iter().find(|file| file.path == path) {
        None => Some(TidyProblem::new(path, "is missing")),
        Some(file) => {
            let open = file.text().is_some_and(|text| {
                text.lines().any(|line| line.starts_with("## ") && line.to_lowercase().contains("unreleased"))
            });
            (!open).then(|| TidyProblem::new(path, "has no heading of level 2 that says \"Unreleased\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree itself is held to the rules by `cargo test` too, not by the separate step alone.
    #[test]
    fn the_tree_is_tidy() {
        let problems = check(&root()).unwrap();
        show(&problems);
        assert!(problems.is_empty(), "{} problems, listed above", problems.len());
    }

    #[test]
    fn a_changelog_without_an_open_section_is_noticed() {
        let with = |text: &str| vec![files::TreeFile::new("CHANGELOG.md", text)];
        assert_eq!(changelog(&with("# Changes\n\n## 0.1.0 (unreleased)\n")), None);
        assert!(changelog(&with("# Changes\n\n## 0.1.0\n")).is_some());
        assert!(changelog(&[]).is_some());
    }
}
