//! A directory of data that has its name only when it is complete.

use super::{CommandFailure, file_failure};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that is being filled beside its name. It is removed unless it is finished.
#[derive(Debug)]
pub struct OutputDirectory {
    final_path: PathBuf,
    /// The directory under its name of the meantime; `None` when it has its own.
    part_path: Option<PathBuf>,
}

impl OutputDirectory {
    /// Makes the directory for what will be in `path`.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn create(path: &Path) -> Result<Self, CommandFailure> {
        // A link stays, and the directory behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let part_path = sibling(&path, "part")?;
        // Of a process with our number that was killed.
        match fs::remove_dir_all(&part_path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(file_failure(&part_path, e)),
            _ => {}
        }
        fs::create_dir(&part_path).map_err(|e| file_failure(&part_path, e))?;
        Ok(Self { final_path: path, part_path: Some(part_path) })
    }

    /// Returns the directory to write to.
    pub fn path(&self) -> &Path {
        self.part_path.as_ref().unwrap_or(&self.final_path)
    }

    /// Gives the directory its name. One that has the name already is removed with all that is in it.
    ///
    /// # Errors
    /// Fails if the name cannot be given; the old directory then still has it.
    pub fn finish(mut self) -> Result<(), CommandFailure> {
        let Some(part_path) = self.part_path.clone() else { return Ok(()) };
        let failure = |e| file_failure(&self.final_path, e);
        let old_path = sibling(&self.final_path, "old")?;
        let has_old = match fs::rename(&self.final_path, &old_path) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(failure(e)),
        };
        if let Err(e) = fs::rename(&part_path, &self.final_path) {
            if has_old {
                _ = fs::rename(&old_path, &self.final_path);
            }
            return Err(failure(e));
        }
        self.part_path = None;
        if has_old {
            fs::remove_dir_all(&old_path).map_err(|e| file_failure(&old_path, e))?;
        }
        Ok(())
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        if let Some(part_path) = &self.part_path {
            _ = fs::remove_dir_all(part_path);
        }
    }
}

/// Returns the name of the meantime beside a path.
fn sibling(path: &Path, ending: &str) -> Result<PathBuf, CommandFailure> {
    let name = path.file_name().ok_or_else(|| {
        CommandFailure::Usage(format!("{}: is no name for a new directory", path.display()))
    })?;
    let mut name = name.to_owned();
    name.push(format!(".{}.{ending}", std::process::id()));
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader would take half of a data set for the whole.
    #[test]
    fn a_directory_has_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set");
        let names = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for (file, is_finished, expected) in
            [("a", false, None), ("b", true, Some("b")), ("c", false, Some("b")), ("d", true, Some("d"))]
        {
            let output = OutputDirectory::create(&path).unwrap();
            fs::write(output.path().join(file), "rows").unwrap();
            if is_finished {
                output.finish().unwrap();
            } else {
                drop(output);
            }
            assert_eq!(path.exists().then(|| names(&path)), expected.map(|name| vec![name.into()]), "{file}");
            assert_eq!(names(dir.path()).len(), usize::from(expected.is_some()), "{file}");
        }
        assert!(OutputDirectory::create(Path::new("/")).is_err());
    }
}
