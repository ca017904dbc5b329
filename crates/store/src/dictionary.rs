//! The store's own names: `dictionary.log`, which is only ever appended to. The manifest gives its valid length.
//!
//! ```text
//! 0  "UNIDICT1"   8  format version u32   12  crc32c of 0..12 u32
//! then one sealed segment of each seal that met new names. Opened, it is records:
//!     sort u8 │ 0 0 0 │ bytes u32 │ name, or source
//! ```
//!
//! A name's token is its number among the names of its kind, from 1. A source (kind 255) has the id of its tape, its id
//! there, and its definition as a frame, in which its token is the index.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unitape_model::schema::at;
use unitape_model::{Dictionary, Event, EventKind, NameKind};
use unitape_tape::TapeId;

use crate::FORMAT_VERSION;
use crate::error::{Error, IoContext, Result};
use crate::keys::{Binding, Hasher, Piece, Randomness, SEAL_BYTES, StoreKeys};
use crate::manifest::{DICTIONARY, FileDigest, NamesSegment};

const MAGIC: &[u8; 8] = b"UNIDICT1";
const HEAD: u64 = 16;
const RECORD: usize = 8;
const SOURCE: u8 = 255;
/// Tape id and source id before the frame of a source.
const SOURCE_HEAD: usize = 20;
/// The longest record: a source whose names fill a frame.
const PAYLOAD_MAX: usize = SOURCE_HEAD + u16::MAX as usize * 64;

/// Names of the store and their tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenDictionary {
    pub names: Dictionary,
    /// Definitions of sources. The token of a source is its number, from 1.
    source_definitions: Vec<Vec<u8>>,
    tokens: BTreeMap<(u128, u32), u32>,
    /// Records that are not in the file yet.
    pending_records: Vec<u8>,
}

impl TokenDictionary {
    /// Returns the path of the dictionary file.
    pub fn path(store: &Path) -> PathBuf {
        store.join(DICTIONARY)
    }

    /// Reads the segments that the manifest names.
    pub fn load(store: &Path, keys: &StoreKeys, segments: &[NamesSegment]) -> Result<Self> {
        let mut this = Self::default();
        if segments.is_empty() {
            return Ok(this);
        }
        let path = Self::path(store);
        let file = unitape_tape::open_regular(&path).with_context("open", &path)?;
        let length = file.metadata().with_context("look at", &path)?.len();
        let mut head = [0; HEAD as usize];
        if length < HEAD || file.read_exact_at(&mut head, 0).is_err() || head != header() {
            return Err(Error::damage(&path, 0, "the head of the dictionary is not one"));
        }
        let (mut start, mut sealed) = (HEAD, Vec::new());
        for segment in segments {
            let damage_error = |reason: &str| Error::damage(&path, start, reason);
            if segment.bytes > length - start {
                return Err(damage_error("the dictionary is shorter than the manifest says"));
            }
            sealed.clear();
            sealed.resize(segment.bytes as usize, 0);
            file.read_exact_at(&mut sealed, start).with_context("read", &path)?;
            let opened_names = keys.names.open(segment_binding(keys, segment, start).bytes(), &mut sealed);
            let plaintext =
                opened_names.ok_or_else(|| damage_error("the names are not as they were sealed"))?;
            this.add_records(plaintext)
                .ok_or_else(|| damage_error("a record of the dictionary that is no name and no source"))?;
            start += segment.bytes;
        }
        Ok(this)
    }

    /// Takes the records of an opened segment.
    fn add_records(&mut self, mut records: &[u8]) -> Option<()> {
        while let Some((head, rest)) = records.split_first_chunk::<RECORD>() {
            let length = u32::from_le_bytes(head[4..].try_into().expect("four bytes")) as usize;
            let (payload, rest) = rest.split_at_checked(length).filter(|_| length <= PAYLOAD_MAX)?;
            let is_valid = match NameKind::from_u8(head[0]) {
                Some(dict) => self.names.define(dict, self.names.len(dict) + 1, payload),
                None => head[0] == SOURCE && self.take_source(payload),
            };
            records = is_valid.then_some(rest)?;
        }
        records.is_empty().then_some(())
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
        Ok(token)
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

    fn append_record(&mut self, record_kind: u8, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        let mut head = [record_kind, 0, 0, 0, 0, 0, 0, 0];
        head[4..].copy_from_slice(&(length as u32).to_le_bytes());
        self.pending_records.extend_from_slice(&head);
        parts.iter().for_each(|p| self.pending_records.extend_from_slice(p));
    }

    /// Appends the new names after `segments` and flushes them. Returns the new segment, and the length and hash of all
    /// valid segments. Returns `None` if no name is new.
    pub fn append_names(
        &mut self,
        store: &Path,
        keys: &StoreKeys,
        segments: &[NamesSegment],
        commit: (u64, u128),
        random: &dyn Randomness,
    ) -> Result<Option<(NamesSegment, FileDigest)>> {
        if self.pending_records.is_empty() {
            return Ok(None);
        }
        let path = Self::path(store);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context("open", &path)?;
        if segments.is_empty() {
            file.write_all_at(&header(), 0).with_context("write", &path)?;
        }
        let record_offset = HEAD + segments.iter().map(|segment| segment.bytes).sum::<u64>();
        let bytes = (self.pending_records.len() + SEAL_BYTES) as u64;
        let segment = NamesSegment { bytes, generation: commit.0, commit: commit.1 };
        let mut sealed = Vec::with_capacity(bytes as usize);
        keys.names.seal(
            random,
            segment_binding(keys, &segment, record_offset).bytes(),
            &self.pending_records,
            &mut sealed,
        )?;
        // The tail that a killed seal may have left is cut off.
        file.set_len(record_offset).with_context("cut", &path)?;
        file.write_all_at(&sealed, record_offset).with_context("append to", &path)?;
        file.sync_all().with_context("sync", &path)?;
        self.pending_records.clear();
        let digest = FileDigest {
            bytes: record_offset + bytes,
            hash: hash_of_first(&file, record_offset + bytes, &path)?,
        };
        Ok(Some((segment, digest)))
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

fn segment_binding(keys: &StoreKeys, segment: &NamesSegment, start: u64) -> Binding {
    Binding::new(Piece::Names, keys.store).commit(segment.generation, segment.commit).bind_number(start)
}

fn header() -> [u8; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{MasterKey, StoreId, SystemRandomness};

    /// Fails if a token means another name after damage or after a killed seal, because then all rows would lie.
    #[test]
    fn tokens_stay_and_no_changed_byte_gives_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let master = MasterKey::random(&SystemRandomness).unwrap();
        let (keys, _) = StoreKeys::draw(&master, StoreId([7; 16]), &SystemRandomness).unwrap();
        let mut names = TokenDictionary::default();
        for (dict, name) in [(NameKind::Venue, "XLON"), (NameKind::Owner, "ACME"), (NameKind::Venue, "CHIX")]
        {
            names.intern(dict, name).unwrap();
        }
        assert_eq!(names.intern(NameKind::Venue, "CHIX").unwrap(), 2);
        let append = |names: &mut TokenDictionary, segments: &[NamesSegment], commit| {
            names.append_names(dir.path(), &keys, segments, (1, commit), &SystemRandomness).unwrap()
        };
        let (first, _) = append(&mut names, &[], 1).unwrap();
        assert_eq!(append(&mut names, std::slice::from_ref(&first), 2), None);
        names.intern(NameKind::Owner, "BETA").unwrap();
        let (second, digest) = append(&mut names, std::slice::from_ref(&first), 3).unwrap();
        let mut hasher = Hasher::new();
        hasher.update(&std::fs::read(TokenDictionary::path(dir.path())).unwrap());
        assert_eq!((digest.hash, digest.bytes), (hasher.finish(), HEAD + first.bytes + second.bytes));

        let load = |segments: &[NamesSegment]| TokenDictionary::load(dir.path(), &keys, segments);
        let back = load(std::slice::from_ref(&first)).unwrap();
        assert_eq!(back.names.len(NameKind::Owner), 1, "only what counts");
        let all = [first, second];
        let back = load(&all).unwrap();
        assert_eq!(back.names.name(NameKind::Venue, 2), Some("CHIX"));
        assert_eq!(back.names.name(NameKind::Owner, 2), Some("BETA"));
        // A killed seal left a segment at the same place. It does not count.
        let killed_segment = NamesSegment { commit: 4, ..all[1].clone() };
        assert!(matches!(load(&[all[0].clone(), killed_segment]), Err(Error::Damage { .. })));

        let path = TokenDictionary::path(dir.path());
        let good = std::fs::read(&path).unwrap();
        assert!(!good.windows(4).any(|w| [b"XLON", b"ACME", b"BETA"].iter().any(|name| w == *name)));
        for byte_index in 0..good.len() {
            let mut bad = good.clone();
            bad[byte_index] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            let problem = load(&all);
            let Err(Error::Damage { offset, .. }) = problem else { panic!("byte {byte_index}: {problem:?}") };
            assert!(offset <= byte_index as u64, "byte {byte_index}, reported {offset}");
        }
        std::fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(matches!(load(&all), Err(Error::Damage { .. })));
    }
}
