//! The store's own names: `dictionary.log`, to which seals append. The manifest gives its valid length.
//!
//! ```text
//! 0  "UNIDICT2"   8  format version u32   12  crc32c of 0..12 u32
//! then a record of each name and each source:
//!     0  kind u8 │ 0 0 0 │ sealed bytes u32      8  hash by which the name is found, 16 bytes; 0 if it was erased
//!    24  nonce │ bytes u32, name or source, zeros to a multiple of 32 │ tag
//! ```
//!
//! A name's token is its number among the names of its kind, from 1. A source (kind 255) has the id of its tape, its id
//! there, and its definition as a frame, in which its token is the index.
//!
//! A reader walks the clear parts and opens the names that it is asked for. The manifest has the hash of the file, so a changed
//! byte is noticed before any name is read.

mod records;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use unitape_model::schema::at;
use unitape_model::{Dictionary, Event, EventKind, NameKind, NameSource};
use unitape_tape::TapeId;

pub(crate) use self::records::SealedNames;
use self::records::{NewRecord, RecordPosition, seal_record};
use crate::FORMAT_VERSION;
use crate::error::{Error, IoContext, Result};
use crate::keys::{Hasher, Randomness, StoreKeys};
use crate::manifest::{DICTIONARY, FileDigest, Manifest, NamesSegment, dictionary_path, sync_dir};

const MAGIC: &[u8; 8] = b"UNIDICT2";
/// What builds wrote that sealed the names of a seal together.
const MAGIC_BEFORE: &[u8; 8] = b"UNIDICT1";
const HEAD: u64 = 16;
const SOURCE: u8 = 255;
/// Tape id and source id before the frame of a source.
const SOURCE_HEAD: usize = 20;
/// The longest record: a source whose names fill a frame.
const PAYLOAD_MAX: usize = SOURCE_HEAD + u16::MAX as usize * 64;

/// Names of the store and their tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenDictionary {
    pub names: Dictionary,
    /// The names that are in the file; `None` if the store has none.
    sealed: Option<Arc<SealedNames>>,
    /// Definitions of sources. The token of a source is its number, from 1.
    source_definitions: Vec<Vec<u8>>,
    tokens: BTreeMap<(u128, u32), u32>,
    /// Records that are not in the file yet.
    pending_records: Vec<NewRecord>,
}

/// Names that a seal has added: their segment, and the file that has it.
#[derive(Debug, PartialEq)]
pub(crate) struct AppendedNames {
    pub segment: NamesSegment,
    /// The path of the dictionary in the list of files.
    pub path: String,
    pub digest: FileDigest,
}

impl TokenDictionary {
    /// Reads the segments that the manifest names. Opens the sources, and no name.
    pub fn load(store: &Path, keys: &StoreKeys, manifest: &Manifest) -> Result<Self> {
        let mut this = Self::default();
        if manifest.names.is_empty() {
            return Ok(this);
        }
        let sealed = Arc::new(SealedNames::read(store, keys, manifest)?);
        for source in sealed.sources()? {
            if !this.take_source(&source) {
                return Err(Error::damage(&store.join(DICTIONARY), 0, "a source that has no definition"));
            }
        }
        this.names = Dictionary::with_source(sealed.clone());
        this.sealed = Some(sealed);
        Ok(this)
    }

    /// Returns the names in the file.
    pub fn sealed(&self) -> Option<&SealedNames> {
        self.sealed.as_deref()
    }

    /// Finds a name among the names of every kind. Returns the kinds and tokens.
    pub fn find_in_all_kinds(&self, name: &str) -> Vec<(NameKind, u32)> {
        let find = |kind| Some((kind, self.sealed.as_ref()?.find(kind, name.as_bytes())?));
        NameKind::ALL.into_iter().filter_map(find).collect()
    }

    fn take_source(&mut self, payload: &[u8]) -> bool {
        let Some((head, frame)) = payload.split_at_checked(SOURCE_HEAD) else { return false };
        if Event::new(frame).is_none_or(|e| e.kind() != EventKind::Source) {
            return false;
        }
        let tape = u128::from_le_bytes(head[..16].try_into().expect("sixteen bytes"));
        let id = u32::from_le_bytes(head[16..].try_into().expect("four bytes"));
        self.source_definitions.push(frame.to_vec());
        self.tokens.insert((tape, id), self.source_definitions.len() as u32);
        true
    }

    /// Returns the token of a name. A new name gets a token now.
    pub fn intern(&mut self, dict: NameKind, name: &str) -> Result<u32> {
        let (token, new) =
            self.names.intern(dict, name.as_bytes()).map_err(|_| Error::DictionaryFull(dict.name()))?;
        if new {
            self.append_record(dict as u8, &[name.as_bytes()]);
        }
        // Otherwise a name whose record does not open would get a second token.
        match self.sealed.as_ref().and_then(|sealed| sealed.damage()) {
            Some(damage) => Err(damage),
            None => Ok(token),
        }
    }

    /// Returns the token of source `id` of `tape`, whose definition is `frame`. A new source gets a token now.
    pub fn intern_source(&mut self, tape: TapeId, id: u32, frame: &[u8]) -> Result<u32> {
        if let Some(token) = self.tokens.get(&(tape.0, id)) {
            return Ok(*token);
        }
        // The two greatest have another meaning in the place where it will stand.
        let token = u32::try_from(self.source_definitions.len() + 1).ok().filter(|t| *t < u32::MAX - 1);
        let token = token.ok_or(Error::DictionaryFull("source"))?;
        let mut frame = frame.to_vec();
        frame[..4].fill(0);
        frame[at::INSTRUMENT..at::INSTRUMENT + 4].copy_from_slice(&token.to_le_bytes());
        self.append_record(SOURCE, &[&tape.0.to_le_bytes(), &id.to_le_bytes(), &frame]);
        self.source_definitions.push(frame);
        self.tokens.insert((tape.0, id), token);
        Ok(token)
    }

    /// Definitions of sources, as events.
    pub fn sources(&self) -> impl Iterator<Item = Event<'_>> {
        self.source_definitions.iter().filter_map(|frame| Event::new(frame))
    }

    fn append_record(&mut self, kind: u8, parts: &[&[u8]]) {
        self.pending_records.push(NewRecord { kind, payload: parts.concat() });
    }

    /// Appends the new names and flushes them. Returns the new segment, and the length and hash of all valid segments. Returns
    /// `None` if no name is new.
    pub fn append_names(
        &mut self,
        store: &Path,
        keys: &StoreKeys,
        manifest: &Manifest,
        commit: (u64, u128),
        random: &dyn Randomness,
    ) -> Result<Option<AppendedNames>> {
        if self.pending_records.is_empty() {
            return Ok(None);
        }
        let name = manifest.dictionary().map_or(DICTIONARY, |(name, _)| name);
        let path = store.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).with_context("open", &path)?;
        let segments = &manifest.names;
        if segments.is_empty() {
            file.write_all_at(&header(MAGIC), 0).with_context("write", &path)?;
        }
        let start = HEAD + segments.iter().map(|segment| segment.bytes).sum::<u64>();
        let bytes: usize = self.pending_records.iter().map(NewRecord::bytes).sum();
        let segment = NamesSegment { bytes: bytes as u64, generation: commit.0, commit: commit.1 };
        let mut sealed = Vec::with_capacity(bytes);
        for record in &self.pending_records {
            let position = RecordPosition { segment: &segment, offset: start + sealed.len() as u64 };
            seal_record(keys, random, record, position, &mut sealed)?;
        }
        // The tail that a killed seal may have left is cut off.
        file.set_len(start).with_context("cut", &path)?;
        file.write_all_at(&sealed, start).with_context("append to", &path)?;
        file.sync_all().with_context("sync", &path)?;
        self.pending_records.clear();
        let bytes = start + segment.bytes;
        let digest = FileDigest { bytes, hash: hash_of_first(&file, bytes, &path)? };
        Ok(Some(AppendedNames { segment, path: name.to_owned(), digest }))
    }

    /// Writes a dictionary without the names of these tokens beside the one that counts, and flushes it. The next revision of the
    /// manifest can name it. Returns its path in the list of files, and its digest.
    pub fn write_without(
        &self,
        store: &Path,
        keys: &StoreKeys,
        manifest: &Manifest,
        tokens: &[(NameKind, u32)],
        random: &dyn Randomness,
    ) -> Result<(String, FileDigest)> {
        let sealed = self.sealed.as_ref().expect("a token has a record");
        let (bytes, name) = (sealed.without(keys, tokens, random)?, dictionary_path(manifest.revision + 1));
        let path = store.join(&name);
        let file = File::create(&path).with_context("make", &path)?;
        file.write_all_at(&bytes, 0).with_context("write", &path)?;
        file.sync_all().with_context("sync", &path)?;
        sync_dir(store)?;
        let mut hasher = Hasher::new();
        hasher.update(&bytes);
        Ok((name, FileDigest { bytes: bytes.len() as u64, hash: hasher.finish() }))
    }
}

/// Hashes the first `bytes` bytes of a file.
fn hash_of_first(file: &File, bytes: u64, path: &Path) -> Result<[u8; 32]> {
    let (mut hasher, mut buffer, mut offset) = (Hasher::new(), vec![0; 1 << 16], 0);
    while offset < bytes {
        let part = (bytes - offset).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..part], offset).with_context("read", path)?;
        hasher.update(&buffer[..part]);
        offset += part as u64;
    }
    Ok(hasher.finish())
}

/// Fails unless a dictionary begins with the head of this build.
fn check_header(store: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(&header(MAGIC)) {
        Ok(())
    } else if bytes.starts_with(&header(MAGIC_BEFORE)) {
        Err(Error::EarlierBuild { path: Manifest::path(store) })
    } else {
        Err(Error::damage(path, 0, "the head of the dictionary is not one"))
    }
}

fn header(magic: &[u8; 8]) -> [u8; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    head[..8].copy_from_slice(magic);
    head[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    head
}

#[cfg(test)]
mod tests;
