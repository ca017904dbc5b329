//! Where a demo leaves its files: a directory of its own, marked, and never anybody else's.

use crate::output::CommandFailure;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The directory of a demo, held until dropped.
#[derive(Debug)]
pub struct DemoDirectory {
    /// The directory.
    pub dir: PathBuf,
    /// The mark, locked against a second demo in the same directory.
    _mark: File,
}

impl DemoDirectory {
    /// Makes `dir` (by default one below the system's temporary directory) ready: what an earlier demo left in it
    /// goes, anything else is refused.
    pub fn prepare(dir: Option<&Path>) -> Result<Self, CommandFailure> {
        let dir = dir.map_or_else(|| std::env::temp_dir().join("unitape-demo"), Path::to_path_buf);
        fs::create_dir_all(&dir).map_err(|e| directory_failure("make", &dir, &e))?;
        let mark = dir.join(MARK);
        let begins = fs::read(&mark).map(|text| text.starts_with(MARK_BEGINS.as_bytes()));
        if !begins.unwrap_or(false) {
            let mut entries = fs::read_dir(&dir).map_err(|e| directory_failure("list", &dir, &e))?;
            if entries.next().is_some() {
                return Err(CommandFailure::Error(format!(
                    "{} holds files that are not a demo's ({MARK} is missing); nothing was touched, \
                     say --dir with a new or empty directory",
                    dir.display()
                )));
            }
        }
        let options = &mut File::options();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&mark)
            .map_err(|e| directory_failure("write", &mark, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message =
                    format!("another demo is running in {}; say --dir for a second one", dir.display());
                return Err(CommandFailure::Error(message));
            }
            Err(TryLockError::Error(e)) => return Err(directory_failure("lock", &mark, &e)),
        }
        file.write_all(MARK_TEXT.as_bytes()).map_err(|e| directory_failure("write", &mark, &e))?;
        let demo_dir = Self { dir, _mark: file };
        for old in REPLACED.map(|name| demo_dir.path(name)) {
            match fs::remove_dir_all(&old) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(directory_failure("remove", &old, &e));
                }
                _ => {}
            }
        }
        for new in ["feeds", "banks", "server", "output"].map(|name| demo_dir.path(name)) {
            fs::create_dir(&new).map_err(|e| directory_failure("make", &new, &e))?;
        }
        Ok(demo_dir)
    }

    /// Returns the path of a file or directory of the demo.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file of the demo.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CommandFailure> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|e| directory_failure("write", &path, &e))
    }
}

/// Makes the failure for a file system error, with the action and the path.
pub fn directory_failure(action: &str, path: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::Error(format!("cannot {action} {}: {error}", path.display()))
}

/// The directories of a demo: feeds and tapes, and what the commands make of them and print.
const REPLACED: [&str; 8] = ["feeds", "tape", "alerts", "banks", "cases", "store", "server", "output"];
const MARK: &str = "unitape-demo.txt";
/// The common start of every version's mark.
const MARK_BEGINS: &str = "Made by `unitape demo`.";
const MARK_TEXT: &str =
    "Made by `unitape demo`. The next demo in this directory replaces `feeds`, `tape` and `store`.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(dir: &Path) -> String {
        match DemoDirectory::prepare(Some(dir)) {
            Err(CommandFailure::Error(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Fails if the demo cleans up a directory with somebody's work.
    #[test]
    fn what_is_not_a_demos_stays() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("tape/work.txt");
        fs::create_dir(temp.path().join("tape")).unwrap();
        fs::write(&file, "years").unwrap();
        assert!(refused(temp.path()).contains("not a demo's"));
        // A file that only bears the name of the mark is none.
        fs::write(temp.path().join(MARK), "notes").unwrap();
        assert!(refused(temp.path()).contains("not a demo's"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "years");
        assert_eq!(fs::read_to_string(temp.path().join(MARK)).unwrap(), "notes");
    }

    /// Fails if two demos run at once, because they would cut off each other's tape.
    #[test]
    fn one_demo_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("new/demo");
        let first = DemoDirectory::prepare(Some(&dir)).unwrap();
        fs::write(first.path("feeds/old.fix"), "old").unwrap();
        assert!(refused(&dir).contains("another demo is running"));
        drop(first);
        // An older version promised to replace less, in other words.
        fs::write(dir.join(MARK), format!("{MARK_BEGINS} It was another version.\n")).unwrap();
        let second = DemoDirectory::prepare(Some(&dir)).unwrap();
        assert!(!second.path("feeds/old.fix").exists());
    }
}
