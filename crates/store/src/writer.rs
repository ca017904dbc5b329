//! A store that is being changed: its lock, its manifest, and the files that no longer belong to it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::day::Day;
use crate::error::{Error, IoContext, Result};
use crate::file::FileId;
use crate::keys::{MasterKey, Randomness, StoreId, StoreKeys};
use crate::leases;
use crate::manifest::{Manifest, dictionary_revision};
use crate::schema::TickSchema;

/// The file that whoever changes a store locks.
pub(crate) const LOCK: &str = "store.lock";

/// A store that is being changed. Nobody else changes it meanwhile.
pub(crate) struct StoreWriter<'a> {
    pub dir: &'a Path,
    pub manifest: Manifest,
    pub keys: StoreKeys,
    pub random: &'a dyn Randomness,
    _lock: File,
}

/// Fails if `store` is a directory of something else, where a seal makes no store.
///
/// # Errors
/// Fails if `store` is not empty and has no manifest, or if it cannot be listed.
pub fn check_place(store: &Path) -> Result<()> {
    if Manifest::path(store).exists() || !store.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(store).with_context("list", store)? {
        let name = entry.with_context("list", store)?.file_name();
        // A first seal that was killed at once leaves these.
        if name != LOCK && name != "manifest.new" && name != leases::FOLDER {
            let reason = "it is not empty, and there is no manifest in it";
            return Err(Error::NotAStore { path: store.into(), reason });
        }
    }
    Ok(())
}

impl<'a> StoreWriter<'a> {
    /// Takes the lock of the store in `dir`, and removes what a killed seal or compaction has left.
    ///
    /// # Errors
    /// Fails if there is no store, if somebody else changes it, or if the key is another one.
    pub fn open(dir: &'a Path, master: &MasterKey, random: &'a dyn Randomness) -> Result<Self> {
        // No lock file where there is no store.
        crate::manifest::check_format(dir)?;
        let lock = take_lock(dir)?;
        Self::with_lock(dir, master, random, lock)
    }

    /// Opens the store, and makes it if there is none.
    pub fn open_or_make(dir: &'a Path, master: &MasterKey, random: &'a dyn Randomness) -> Result<Self> {
        fs::create_dir_all(dir).with_context("make", dir)?;
        check_place(dir)?;
        let lock = take_lock(dir)?;
        if !Manifest::path(dir).exists() {
            let mut id = StoreId::default();
            random.fill(&mut id.0)?;
            let (mut manifest, keys) = Manifest::new(master, id, random)?;
            manifest.store_manifest(dir, &keys, random)??;
        }
        Self::with_lock(dir, master, random, lock)
    }

    fn with_lock(dir: &'a Path, master: &MasterKey, random: &'a dyn Randomness, lock: File) -> Result<Self> {
        let (manifest, keys) = Manifest::load(dir, master)?;
        let mut this = Self { dir, manifest, keys, random, _lock: lock };
        // The writer before may have been killed, or refused, just before the disk confirmed its manifest.
        crate::manifest::sync_dir(dir)?;
        remove(&Manifest::path_new(dir))?;
        // Readers from now on have a lease, also in a store that was copied without this file.
        leases::prepare(dir, this.manifest.revision)?;
        this.remove_unnamed(None)?;
        Ok(this)
    }

    /// Removes files that the manifest does not name: those of a killed seal or compaction, and replaced ones that no
    /// reader holds. Only files with a store's names are considered, and of days only those of `date` if one is given.
    pub fn remove_unnamed(&mut self, date: Option<Day>) -> Result<()> {
        let oldest_held = leases::oldest_held(self.dir, self.manifest.revision)?;
        let is_read = |revision: &u64| oldest_held.is_some_and(|held| held < *revision);
        let is_wanted = |day: Day| date.is_none_or(|date| date == day);
        for entry in fs::read_dir(self.dir).with_context("list", self.dir)? {
            let name = entry.with_context("list", self.dir)?.file_name();
            let Some(name) = name.to_str().filter(|name| dictionary_revision(name).is_some()) else {
                continue;
            };
            let is_kept = self.manifest.files.contains_key(name)
                || self.manifest.replaced.get(name).is_some_and(is_read);
            if !is_kept {
                remove(&self.dir.join(name))?;
            }
        }
        for day in subdirectories(self.dir, |name| name.parse().is_ok_and(is_wanted))? {
            for schema in subdirectories(&day, |name| TickSchema::from_name(name).is_some())? {
                for entry in fs::read_dir(&schema).with_context("list", &schema)? {
                    let path = entry.with_context("list", &schema)?.path();
                    let listed_path = path.strip_prefix(self.dir).ok().and_then(|path| path.to_str());
                    let Some(listed_path) = listed_path.filter(|path| FileId::parse_path(path).is_some())
                    else {
                        continue;
                    };
                    let is_kept = self.manifest.files.contains_key(listed_path)
                        || self.manifest.replaced.get(listed_path).is_some_and(is_read);
                    if !is_kept {
                        remove(&path)?;
                    }
                }
                remove_empty(&schema)?;
            }
            remove_empty(&day)?;
        }
        // The next manifest forgets them.
        self.manifest.replaced.retain(|path, revision| {
            let is_removed = FileId::parse_path(path).is_none_or(|id| is_wanted(id.day));
            !is_removed || is_read(revision)
        });
        Ok(())
    }

    /// Removes files as [`StoreWriter::remove_unnamed`] does, after a change that counts already.
    ///
    /// # Errors
    /// Fails with [`Error::NotRemoved`] if the system refuses.
    pub fn remove_replaced(&mut self, date: Option<Day>) -> Result<()> {
        self.remove_unnamed(date).map_err(|e| match e {
            Error::Io { path, source, .. } => Error::NotRemoved { path, source },
            e => e,
        })
    }

    /// Counts the replaced files of these days that stay for now, because a reader may read them.
    pub fn kept_files<'d>(&self, days: impl IntoIterator<Item = &'d Day>) -> u64 {
        let days: Vec<&Day> = days.into_iter().collect();
        let is_wanted = |path: &&String| FileId::parse_path(path).is_some_and(|id| days.contains(&&id.day));
        self.manifest.replaced.keys().filter(is_wanted).count() as u64
    }

    /// Counts the replaced dictionaries that stay for now, because a reader may read them.
    pub fn kept_dictionaries(&self) -> u64 {
        self.manifest.replaced.keys().filter(|path| dictionary_revision(path).is_some()).count() as u64
    }

    /// Counts the parts of a day.
    pub fn part_count(&self, day: Day) -> usize {
        self.manifest.parts.iter().filter(|part| part.date == day).count()
    }
}

fn take_lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let lock = lock.with_context("open", &path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
        Err(TryLockError::Error(e)) => Err(e).with_context("lock", &path),
    }
}

fn subdirectories(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(dir).with_context("list", dir)? {
        let entry = entry.with_context("list", dir)?;
        if entry.file_name().to_str().is_some_and(&ours) && entry.path().is_dir() {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context("remove", path),
        _ => Ok(()),
    }
}

fn remove_empty(dir: &Path) -> Result<()> {
    match fs::remove_dir(dir) {
        Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(e).with_context("remove", dir)
        }
        _ => Ok(()),
    }
}
