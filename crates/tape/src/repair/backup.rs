//! Where a repair keeps what it replaces, and how it replaces it.
//!
//! ```text
//!  DIR/FILE ──copy, flush──▶ DIR/repair-N/FILE         first, and it stays
//!  new text ──write, flush─▶ DIR/repair-N/new ──rename──▶ DIR/FILE
//! ```
//!
//! If it is killed at any moment, the old file is in its place or among the kept files, complete and flushed. The new
//! file is complete or absent. The next repair looks at the tape as it is then.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unitape_model::Position;

use crate::disk::layout::{TapePaths, remove, sync_dir};
use crate::disk::sys;
use crate::error::{FileContext, Result};

/// How the directories of files that repairs kept begin.
const NAME: &str = "repair-";

/// The file in the tape's directory that lists the actions of repairs which a reader of the tape must know.
const LOG: &str = "repairs.log";

/// The directory of one repair; made with the first file that is kept.
#[derive(Debug)]
pub(super) struct RepairBackup {
    tape: PathBuf,
    backup_dir: Option<PathBuf>,
    saved_files: BTreeSet<PathBuf>,
}

/// How a new file is to look from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct FileAttributes {
    pub read_only: bool,
    pub modified: Option<SystemTime>,
}

impl RepairBackup {
    pub fn new(paths: &TapePaths) -> Self {
        Self { tape: paths.tape_dir.clone(), backup_dir: None, saved_files: BTreeSet::new() }
    }

    /// Returns the directory in which this repair keeps files, if it has kept any.
    pub fn dir(&self) -> Option<&Path> {
        self.backup_dir.as_deref()
    }

    /// Returns the path for a new file that has no name yet. Removes any earlier file there.
    pub fn temp_path(&mut self) -> Result<PathBuf> {
        let path = self.backup_directory()?.join("new");
        remove(&path)?;
        Ok(path)
    }

    /// Keeps a copy of the file at `path`, once, if there is one.
    pub fn keep_copy(&mut self, path: &Path) -> Result<()> {
        if self.saved_files.contains(path) || !path.exists() {
            return Ok(());
        }
        let backup_path = self.place_of(path)?;
        let temp = backup_path.with_added_extension("copying");
        remove(&temp)?;
        fs::copy(path, &temp).with_context("copy", path)?;
        // A copy of a file that is read-only is so as well, and can be flushed all the same.
        let file = File::open(&temp).with_context("open", &temp)?;
        if let Ok(time) = fs::metadata(path).and_then(|m| m.modified()) {
            _ = sys::set_modified(&file, time);
        }
        sys::sync_data(&file).with_context("flush", &temp)?;
        self.backup_named(&temp, &backup_path)?;
        self.saved_files.insert(path.into());
        Ok(())
    }

    /// Keeps the first `bytes` of the file at `path`, as the file of that name with `.start` appended.
    pub fn keep_start(&mut self, path: &Path, bytes: u64) -> Result<()> {
        let backup_path = self.place_of(path)?.with_added_extension("start");
        let text = crate::disk::layout::read_start(path, bytes).with_context("read", path)?;
        let temp = backup_path.with_added_extension("copying");
        write_flushed(&temp, &text)?;
        self.backup_named(&temp, &backup_path)
    }

    /// Moves the file at `path` away, if there is one.
    pub fn move_away(&mut self, path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        let backup_path = self.place_of(path)?;
        if is_on_other_file_system(path, &self.tape) {
            self.keep_copy(path)?;
            return remove(path);
        }
        self.backup_named(path, &backup_path)?;
        sync_parent(path)
    }

    /// Replaces the file at `path` with a file of these bytes, and keeps the old file.
    pub fn replace(&mut self, path: &Path, bytes: &[u8], look: &FileAttributes) -> Result<()> {
        let temp = self.temp_path()?;
        write_flushed(&temp, bytes)?;
        self.install(&temp, path, look)
    }

    /// Replaces the file at `path` with the flushed file at `temp`, and keeps the old file.
    pub fn install(&mut self, temp: &Path, path: &Path, look: &FileAttributes) -> Result<()> {
        self.keep_copy(path)?;
        if let Some(time) = look.modified {
            let file = File::open(temp).with_context("open", temp)?;
            _ = sys::set_modified(&file, time);
        }
        if look.read_only {
            crate::disk::seal::seal_file(temp)?;
        }
        sys::rename(temp, path).with_context("rename", path)?;
        sync_parent(path)
    }

    /// Writes a line into the tape's log of repairs, before the action that it describes.
    pub fn log(&mut self, line: &str) -> Result<()> {
        let dir = self.backup_directory()?.to_path_buf();
        let path = self.tape.join(LOG);
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file =
            sys::open(&path, OpenOptions::new().append(true).create(true)).with_context("open", &path)?;
        file.write_all(format!("{name} {line}\n").as_bytes()).with_context("write", &path)?;
        sys::sync_data(&file).with_context("flush", &path)?;
        sync_dir(&self.tape)
    }

    /// Removes files that only the running repair needs.
    pub fn finish(&mut self) -> Result<()> {
        match &self.backup_dir {
            Some(dir) => remove(&dir.join("new")),
            None => Ok(()),
        }
    }

    fn backup_directory(&mut self) -> Result<&Path> {
        if self.backup_dir.is_none() {
            let last_number = repairs(&self.tape)?.last().map_or(0, |(n, _)| *n);
            let dir = self.tape.join(format!("{NAME}{}", last_number + 1));
            sys::make_dir(&dir).with_context("make", &dir)?;
            sync_dir(&self.tape)?;
            self.backup_dir = Some(dir);
        }
        Ok(self.backup_dir.as_deref().expect("made above"))
    }

    /// Returns the path under which a file is kept, and makes the directories to it.
    fn place_of(&mut self, path: &Path) -> Result<PathBuf> {
        let relative_path = match path.strip_prefix(&self.tape) {
            Ok(inside) => inside.to_path_buf(),
            // A hot segment.
            Err(_) => Path::new("hot").join(path.file_name().unwrap_or_default()),
        };
        let backup_path = self.backup_directory()?.join(relative_path);
        if let Some(parent) = backup_path.parent() {
            sys::make_dir(parent).with_context("make", parent)?;
            sync_parent(parent)?;
        }
        Ok(backup_path)
    }

    fn backup_named(&self, from: &Path, to: &Path) -> Result<()> {
        sys::rename(from, to).with_context("rename", to)?;
        sync_parent(to)
    }
}

/// Lists the repairs of the tape in `dir` that kept files, by number.
pub(super) fn repairs(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).with_context("list", dir)? {
        let entry = entry.with_context("list", dir)?;
        let number = entry.file_name().to_str().and_then(|n| n.strip_prefix(NAME)?.parse().ok());
        out.extend(number.map(|n: u64| (n, entry.path())));
    }
    out.sort_unstable();
    Ok(out)
}

/// Returns the parts of the tape in `dir` that repairs accepted although nothing vouched for them, as positions.
pub fn accepted_ranges(dir: &Path) -> Vec<(Position, Position)> {
    let text = crate::disk::layout::read_start(&dir.join(LOG), 1 << 20).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let numbers = |text: &str| text.split(' ').map_while(|n| n.parse().ok()).collect::<Vec<u64>>();
    let mut parts = Vec::new();
    for line in text.lines() {
        if let Some([from, to]) = line.split_once(" unverified ").map(|(_, rest)| numbers(rest)).as_deref() {
            parts.push((Position(*from), Position(*to)));
        } else if let Some([cut_position, ..]) =
            line.split_once(" cut ").map(|(_, rest)| numbers(rest)).as_deref()
        {
            // The present file came after it.
            parts.retain_mut(|(from, to)| {
                *to = (*to).min(Position(*cut_position));
                from < to
            });
        }
    }
    parts
}

fn write_flushed(path: &Path, bytes: &[u8]) -> Result<()> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
    let file = sys::open(path, &options).with_context("create", path)?;
    sys::write_at(&file, bytes, 0).with_context("write", path)?;
    sys::sync_data(&file).with_context("flush", path)
}

fn sync_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), sync_dir)
}

fn is_on_other_file_system(path: &Path, dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).ok().map(|m| m.dev());
    device(path) != device(dir)
}
