//! Detects a store that is an older state of itself. A signature cannot show this, so the user must remember the
//! generation.
//!
//! ```text
//! unitape-store-generations 1
//! STOREID GENERATION             one line for each store
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::keys::parse_hex;
use crate::manifest::sync_dir;

const HEAD: &str = "unitape-store-generations 1";
/// More than any such file has.
const BYTES_MAX: u64 = 16 << 20;

/// Whether a store is at least as new as its last known state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// No generation was given for comparison.
    #[default]
    Unproven,
    /// It is as new as it has to be.
    Proven,
    /// It is older: a state of the store from before has been put back.
    RolledBack,
}

impl Freshness {
    /// Returns the word that output uses for this state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Proven => "proven",
            Self::RolledBack => "rolled back",
        }
    }

    /// Compares `generation` with `bounds`. It is proven if it is at least each bound, and unproven without bounds.
    pub fn for_generation(generation: u64, bounds: &[u64]) -> Self {
        match bounds.iter().max() {
            None => Self::Unproven,
            Some(least) if *least <= generation => Self::Proven,
            Some(_) => Self::RolledBack,
        }
    }
}

/// A file with the highest generation that was seen of each store.
#[derive(Debug)]
pub struct GenerationMemory {
    file_path: PathBuf,
    stores: BTreeMap<String, u64>,
}

impl GenerationMemory {
    /// Reads the file. A missing file remembers nothing.
    ///
    /// # Errors
    /// Fails if the file has other content or cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let mut memory = Self { file_path: path.into(), stores: BTreeMap::new() };
        let mut text = String::new();
        let not_a_memory = |reason| Err(Error::NotAMemory { path: path.into(), reason });
        match unitape_tape::open_regular(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(memory),
            other => match other.with_context("open", path)?.take(BYTES_MAX + 1).read_to_string(&mut text) {
                Err(e) if e.kind() == ErrorKind::InvalidData => return not_a_memory("it is no text"),
                read => _ = read.with_context("read", path)?,
            },
        }
        if text.len() as u64 > BYTES_MAX {
            return not_a_memory("it is longer than any is");
        }
        // A file that has lost its end would have forgotten stores.
        let Some(text) = text.strip_suffix('\n') else {
            return not_a_memory("it does not end in a whole line");
        };
        let mut lines = text.split('\n');
        if lines.next() != Some(HEAD) {
            return not_a_memory("it does not begin as one does");
        }
        for line in lines {
            let entry = line.split_once(' ').and_then(|(store, generation)| {
                let is_id = parse_hex(store).is_some_and(|id| id.len() == 16);
                is_id.then_some((store.to_owned(), generation.parse().ok()?))
            });
            let Some((store, generation)) = entry else {
                return not_a_memory("a line is no store and its generation");
            };
            if memory.stores.insert(store, generation).is_some() {
                return not_a_memory("it has two lines for one store");
            }
        }
        Ok(memory)
    }

    /// Looks up the highest generation that was seen of the store with this id. The id is in digits.
    pub fn generation(&self, store: &str) -> Option<u64> {
        self.stores.get(store).copied()
    }

    /// Records that this generation of the store was seen. A lower generation than before changes nothing. The file is
    /// replaced as a whole: a process that is killed leaves the state before or after. Records of other processes stay:
    /// one process writes at a time, and reads the file again first.
    ///
    /// # Errors
    /// Fails if the file cannot be read or replaced.
    pub fn remember(&mut self, store: &str, generation: u64) -> Result<()> {
        // A link stays, and the file behind it is replaced.
        let path = fs::canonicalize(&self.file_path).unwrap_or_else(|_| self.file_path.clone());
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        // The directory, because the file is replaced; the lock ends with the handle.
        let lock = File::open(parent).with_context("open", parent)?;
        lock.lock().with_context("lock", parent)?;
        self.stores = Self::load(&path)?.stores;
        if self.generation(store).is_some_and(|last_generation| last_generation >= generation) {
            return Ok(());
        }
        self.stores.insert(store.to_owned(), generation);
        let mut text = format!("{HEAD}\n");
        for (store, generation) in &self.stores {
            text += &format!("{store} {generation}\n");
        }
        let mut new_path = path.clone().into_os_string();
        new_path.push(format!(".{}.new", std::process::id()));
        let new_path = PathBuf::from(new_path);
        let mut file = File::create(&new_path).with_context("make", &new_path)?;
        file.write_all(text.as_bytes()).with_context("write", &new_path)?;
        file.sync_all().with_context("sync", &new_path)?;
        fs::rename(&new_path, &path).with_context("rename", &new_path)?;
        sync_dir(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a generation is forgotten, because an older store would then pass.
    #[test]
    fn the_highest_generation_of_each_store_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seen");
        let (a, b) = ("0a".repeat(16), "0b".repeat(16));
        let mut memory = GenerationMemory::load(&path).unwrap();
        assert_eq!(memory.generation(&a), None);
        memory.remember(&b, 3).unwrap();
        memory.remember(&a, 7).unwrap();
        memory.remember(&a, 6).unwrap();
        let reloaded_memory = GenerationMemory::load(&path).unwrap();
        assert_eq!((reloaded_memory.generation(&a), reloaded_memory.generation(&b)), (Some(7), Some(3)));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEAD}\n{a} 7\n{b} 3\n"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "another file is left");
        // Two processes that have read the same file, even through a link, must keep each other's records.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (mut first, mut second) =
            (GenerationMemory::load(&path).unwrap(), GenerationMemory::load(&link).unwrap());
        first.remember(&a, 8).unwrap();
        second.remember(&b, 4).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEAD}\n{a} 8\n{b} 4\n"));
    }

    /// Fails if a file of something else is replaced, or if a cut file passes that would have forgotten stores.
    #[test]
    fn what_is_no_memory_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seen");
        let id = "0a".repeat(16);
        for bad in [
            String::new(),
            "my notes\n".into(),
            HEAD.into(),
            format!("{HEAD}\n{id} 7"),
            format!("{HEAD}\n{id}\n"),
            format!("{HEAD}\n{} 7\n", &id[2..]),
            format!("{HEAD}\n{id} 7\n{id} 8\n"),
            format!("{HEAD}\n\n"),
        ] {
            fs::write(&path, &bad).unwrap();
            let loaded = GenerationMemory::load(&path);
            assert!(matches!(loaded, Err(Error::NotAMemory { .. })), "{bad:?}: {loaded:?}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(GenerationMemory::load(&path), Err(Error::NotAMemory { .. })));
    }

    #[test]
    fn a_store_is_as_new_as_the_highest_bound_at_least() {
        for (bounds, want) in [
            (&[][..], Freshness::Unproven),
            (&[5], Freshness::Proven),
            (&[6], Freshness::RolledBack),
            (&[0, 6], Freshness::RolledBack),
            (&[4, 5], Freshness::Proven),
        ] {
            assert_eq!(Freshness::for_generation(5, bounds), want, "{bounds:?}");
        }
    }
}
