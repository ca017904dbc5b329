//! The files of the tree.

use std::path::Path;
use std::process::Command;

/// One file, by its path from the root with `/` between the parts.
pub(crate) struct TreeFile {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl TreeFile {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// Its text, or none for what is binary.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }

    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ext)| ext)
    }
}

/// The files that git tracks or would add; a tree without git (an unpacked archive) is walked instead.
pub(crate) fn list(root: &Path) -> Result<Vec<TreeFile>, String> {
    let paths = match list_tracked(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = root.join(&path);
        // A tracked file that was just deleted or is a link to a folder holds no text to judge.
        if full.is_file() {
            let bytes = std::fs::read(&full).map_err(|e| format!("{path}: {e}"))?;
            files.push(TreeFile { path, bytes });
        }
    }
    Ok(files)
}

fn list_tracked(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).ok()?;
    let mut paths: Vec<String> = names.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    // Inside a foreign repository that ignores us, git lists nothing; then the walk decides.
    (!paths.is_empty()).then_some(paths)
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{folder}: {e}"))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().map_err(|e| format!("{path}: {e}"))?;
        if kind.is_dir() && !matches!(name.as_str(), "target" | ".git" | "node_modules") {
            walk(root, &path, paths)?;
        } else if kind.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive without git must be checked just as well, and what was built is none of the tree.
    #[test]
    fn a_tree_without_git_is_walked_without_what_was_built() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [("a.md", "a"), ("src/b.rs", "b"), ("target/c.rs", "c")] {
            let full = dir.path().join(path);
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(full, text).unwrap();
        }
        let mut paths = Vec::new();
        walk(dir.path(), "", &mut paths).unwrap();
        assert_eq!(paths, ["a.md", "src/b.rs"]);
    }

    #[test]
    fn binary_files_have_no_text() {
        assert_eq!(TreeFile::new("a.rs", "x").text(), Some("x"));
        assert_eq!(TreeFile::new("a.bin", "x\0").text(), None);
        assert_eq!(TreeFile { path: "a".to_owned(), bytes: vec![0xff] }.text(), None);
        assert_eq!(
            (TreeFile::new("d.x/a", "").extension(), TreeFile::new("a.tar.gz", "").extension()),
            ("", "gz")
        );
    }
}
