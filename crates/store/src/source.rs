//! Sources of blocks: the files of a store, or the blocks that a server sends. Scans read from both in the same way.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use unitape_model::{Dictionary, FieldClass};
use unitape_tape::TapeId;

use crate::decode::OpenBlock;
use crate::dictionary::SealedNames;
use crate::error::{Error, Result};
use crate::file::{BlockFile, BlockLocation, BlockOpener, FileId};
use crate::keys::StoreKeys;
use crate::manifest::{Commit, FileEntry, GenerationBounds, Manifest, SealedPart};
use crate::scan::ScanFilter;
use crate::selection::Selection;

/// The input of a scan: its parts, their names and their blocks.
#[derive(Debug)]
pub(crate) struct ScanInput<'a> {
    /// Tapes, in the order of their first seal.
    pub tapes: Vec<TapeId>,
    pub parts: &'a [SealedPart],
    /// What each generation added. Empty where earlier states cannot be read.
    pub commits: &'a [Commit],
    pub names: &'a Dictionary,
    /// The records that the names come from, if they are opened when they are asked for.
    pub sealed_names: Option<&'a SealedNames>,
    pub blocks: Box<dyn BlockSource + 'a>,
}

impl ScanInput<'_> {
    /// Reads a filter.
    ///
    /// # Errors
    /// Fails if the filter has a name that is unknown, or whose record cannot be opened.
    pub fn selection(&self, filter: &ScanFilter, bounds: Option<&GenerationBounds>) -> Result<Selection> {
        let selection = Selection::new(self.names, filter, bounds);
        selection.map_err(|e| self.sealed_names.and_then(SealedNames::damage).unwrap_or(e))
    }

    /// Returns the bounds of the state that a filter wants, or `None` for the newest one.
    ///
    /// # Errors
    /// Fails if there is no such generation yet, or if earlier states cannot be read here.
    pub fn bounds(&self, filter: &ScanFilter) -> Result<Option<GenerationBounds>> {
        match filter.as_of {
            None => Ok(None),
            Some(_) if self.commits.is_empty() && !self.parts.is_empty() => {
                Err(Error::Option("an answer holds one state of its store, and no earlier one"))
            }
            Some(as_of) => GenerationBounds::new(self.commits, as_of),
        }
    }
}

/// Finds and opens blocks.
pub(crate) trait BlockSource: fmt::Debug {
    /// Returns the blocks of a file that can be found, in order. Passes the problems of the file to `problem`.
    fn locations(
        &mut self,
        id: &FileId,
        entry: &FileEntry,
        problem: &mut dyn FnMut(Error),
    ) -> Arc<[BlockLocation]>;

    /// Reads a block into `block`, and opens its chunks of `classes`.
    ///
    /// # Errors
    /// Fails with [`Error::Answer`] if no more blocks can be read, and with another error if this block cannot be read.
    fn read<'b>(
        &mut self,
        id: &FileId,
        location: &BlockLocation,
        classes: &[FieldClass],
        block: &'b mut Vec<u8>,
    ) -> Result<OpenBlock<'b>>;

    /// Returns the path of a file, for errors.
    fn path(&self, id: &FileId) -> PathBuf;
}

/// The indexes of files that have been read, for all scans of a store. Those of files with problems are read each time.
#[derive(Debug, Default)]
pub(crate) struct KnownIndexes(Mutex<FxHashMap<FileId, Arc<[BlockLocation]>>>);

impl KnownIndexes {
    fn get(&self, id: &FileId) -> Option<Arc<[BlockLocation]>> {
        self.0.lock().ok()?.get(id).cloned()
    }

    fn keep(&self, id: &FileId, index: &Arc<[BlockLocation]>) {
        if let Ok(mut known) = self.0.lock() {
            known.insert(*id, index.clone());
        }
    }
}

/// The blocks in the files of a store.
#[derive(Debug)]
pub(crate) struct StoredBlocks<'a> {
    store_dir: &'a Path,
    keys: &'a StoreKeys,
    opener: BlockOpener<'a>,
    known_indexes: Option<&'a KnownIndexes>,
    /// Files that are open, the latest one last.
    open_files: Vec<(FileId, BlockFile)>,
}

/// Files that stay open: a store may have more than a process may open.
const OPEN_MAX: usize = 32;

impl<'a> StoredBlocks<'a> {
    pub fn new(dir: &'a Path, keys: &'a StoreKeys, manifest: &'a Manifest) -> Self {
        Self {
            store_dir: dir,
            keys,
            opener: BlockOpener::new(keys, &manifest.day_keys),
            known_indexes: None,
            open_files: Vec::new(),
        }
    }

    /// Keeps what it reads of indexes, and takes what others have kept.
    pub fn with_indexes(self, known_indexes: &'a KnownIndexes) -> Self {
        Self { known_indexes: Some(known_indexes), ..self }
    }

    /// Returns the index of a file among the open files, and opens it if necessary.
    fn open(&mut self, id: &FileId) -> Result<usize> {
        if let Some(index) = self.open_files.iter().rposition(|(open, _)| open == id) {
            return Ok(index);
        }
        let file = BlockFile::open(self.store_dir, id)?;
        if self.open_files.len() == OPEN_MAX {
            self.open_files.remove(0);
        }
        self.open_files.push((*id, file));
        Ok(self.open_files.len() - 1)
    }
}

impl BlockSource for StoredBlocks<'_> {
    fn locations(
        &mut self,
        id: &FileId,
        entry: &FileEntry,
        problem: &mut dyn FnMut(Error),
    ) -> Arc<[BlockLocation]> {
        let open_index = match self.open(id) {
            Ok(index) => index,
            Err(e) => {
                problem(e);
                return Arc::default();
            }
        };
        // A file that was cut since then is read again, and what is missing is said.
        let file = &self.open_files[open_index].1;
        let known = self.known_indexes.filter(|_| file.length() == entry.bytes);
        if let Some(index) = known.and_then(|known| known.get(id)) {
            return index;
        }
        let mut has_problems = false;
        let mut note_problem = |e| {
            has_problems = true;
            problem(e);
        };
        let index = file.places(self.keys, id, entry, &mut note_problem);
        let index: Arc<[BlockLocation]> = index.into();
        if let Some(known) = self.known_indexes.filter(|_| !has_problems) {
            known.keep(id, &index);
        }
        index
    }

    fn read<'b>(
        &mut self,
        id: &FileId,
        location: &BlockLocation,
        classes: &[FieldClass],
        block: &'b mut Vec<u8>,
    ) -> Result<OpenBlock<'b>> {
        let index = self.open(id).map_err(|e| {
            // The system may have refused it only now, which is no evidence about the store.
            if !matches!(&e, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound) {
                return e;
            }
            let reason = format!("its file cannot be opened any more: {e}");
            Error::block_damage(&self.path(id), location.head.number, location.offset, reason)
        })?;
        self.opener.read_block(&self.open_files[index].1, id, location, classes, block)
    }

    fn path(&self, id: &FileId) -> PathBuf {
        id.path(self.store_dir)
    }
}
