//! The records of the dictionary, each sealed alone, and how one is found and opened.

use std::fmt;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use unitape_model::id::NAME_BYTES_MAX;
use unitape_model::{NameKind, NameSource};

use super::{HEAD, PAYLOAD_MAX, SOURCE, SOURCE_HEAD};
use crate::error::{Error, IoContext, Result};
use crate::keys::{Binding, Hasher, NamesKeys, Piece, Randomness, SEAL_BYTES, StoreId, StoreKeys};
use crate::manifest::{FileDigest, Manifest, NamesSegment};

/// Bytes before the sealed part of a record.
const RECORD_HEAD: usize = 24;
/// A name is padded to a multiple of this, so that its length does not show.
const PADDED_TO: usize = 32;
/// Bytes of the length before a name.
const LENGTH_BYTES: usize = 4;

/// The hash by which a name is found.
type NameHash = [u8; 16];

/// The hash of a record whose name was erased.
const ERASED: NameHash = [0; 16];

/// The clear part of a record.
#[derive(Clone, Copy, Debug)]
struct RecordHead {
    /// The kind of the name, or [`SOURCE`].
    kind: u8,
    sealed_bytes: usize,
    hash: NameHash,
}

impl RecordHead {
    fn encode(&self) -> [u8; RECORD_HEAD] {
        let mut bytes = [0; RECORD_HEAD];
        bytes[0] = self.kind;
        bytes[4..8].copy_from_slice(&(self.sealed_bytes as u32).to_le_bytes());
        bytes[8..].copy_from_slice(&self.hash);
        bytes
    }

    /// Reads the clear part, and returns what follows the record. `None` if there is no record.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<RECORD_HEAD>()?;
        let sealed_bytes = u32::from_le_bytes(*head[4..8].first_chunk()?) as usize;
        let this = Self { kind: head[0], sealed_bytes, hash: *head[8..].first_chunk()? };
        let payload_max = if this.kind == SOURCE { PAYLOAD_MAX } else { NAME_BYTES_MAX };
        let is_known = this.kind == SOURCE || NameKind::from_u8(this.kind).is_some();
        let padded_bytes = sealed_bytes.checked_sub(SEAL_BYTES + LENGTH_BYTES)?;
        let is_padded = padded_bytes > 0 && padded_bytes.is_multiple_of(PADDED_TO);
        let is_valid = is_known && is_padded && padded_bytes <= payload_max.next_multiple_of(PADDED_TO);
        (is_valid && this.encode() == *head).then_some((this, rest.get(sealed_bytes..)?))
    }
}

/// Seals a record and appends it to `out`.
pub(super) fn seal_record(
    keys: &StoreKeys,
    random: &dyn Randomness,
    record: &NewRecord,
    position: RecordPosition<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let padded_bytes = record.payload.len().next_multiple_of(PADDED_TO);
    let mut plaintext = Vec::with_capacity(LENGTH_BYTES + padded_bytes);
    plaintext.extend_from_slice(&(record.payload.len() as u32).to_le_bytes());
    plaintext.extend_from_slice(&record.payload);
    plaintext.resize(LENGTH_BYTES + padded_bytes, 0);
    let sealed_bytes = plaintext.len() + SEAL_BYTES;
    let hash = keys.names.hash_of(record.kind, record.hashed_bytes());
    let head = RecordHead { kind: record.kind, sealed_bytes, hash }.encode();
    out.extend_from_slice(&head);
    keys.names.cipher.seal(random, &position.binding(keys.store, &head), &plaintext, out)
}

/// A record that is not in the file yet.
#[derive(Debug)]
pub(super) struct NewRecord {
    /// The kind of the name, or [`SOURCE`].
    pub kind: u8,
    /// The name, or the source.
    pub payload: Vec<u8>,
}

impl NewRecord {
    /// Returns the bytes by which it is found: the name, or the id of the tape and of the source there.
    fn hashed_bytes(&self) -> &[u8] {
        if self.kind == SOURCE { &self.payload[..SOURCE_HEAD] } else { &self.payload }
    }

    /// Returns the bytes of the record in the file.
    pub fn bytes(&self) -> usize {
        RECORD_HEAD + SEAL_BYTES + LENGTH_BYTES + self.payload.len().next_multiple_of(PADDED_TO)
    }
}

/// Where a record belongs: the segment, and the offset in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPosition<'a> {
    pub segment: &'a NamesSegment,
    pub offset: u64,
}

impl RecordPosition<'_> {
    /// Returns the associated data of the record: its place, and its clear part.
    fn binding(self, store: StoreId, head: &[u8]) -> Vec<u8> {
        let NamesSegment { generation, commit, .. } = *self.segment;
        let place = Binding::new(Piece::Names, store).commit(generation, commit).bind_number(self.offset);
        [place.bytes(), head].concat()
    }
}

/// The records of a dictionary, as they are in the file: a name is opened when somebody asks for it.
pub(crate) struct SealedNames {
    path: PathBuf,
    store: StoreId,
    keys: Arc<NamesKeys>,
    bytes: Vec<u8>,
    /// Segments, each with the offset at which it begins.
    segments: Vec<(usize, NamesSegment)>,
    /// Offsets of the records of each kind, by token.
    names: [Vec<usize>; NameKind::COUNT],
    sources: Vec<usize>,
    /// Hashes with their tokens, sorted. Made for the first lookup.
    lookup: OnceLock<Vec<(NameHash, u8, u32)>>,
    /// The first record that did not open.
    damage: OnceLock<usize>,
    /// Names that were opened.
    opened_count: AtomicU64,
}

impl fmt::Debug for SealedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedNames({} bytes)", self.bytes.len())
    }
}

impl SealedNames {
    /// Reads the segments that the manifest names, and their clear parts. No record is opened, unless one is damaged.
    ///
    /// # Errors
    /// Fails with the first damaged record if the file is not the one that the manifest lists.
    pub fn read(store_dir: &Path, keys: &StoreKeys, manifest: &Manifest) -> Result<Self> {
        let (mut this, digest) = Self::read_bytes(store_dir, keys, manifest)?;
        let mut hasher = Hasher::new();
        hasher.update(&this.bytes);
        let (is_intact, walked) = (hasher.finish() == digest.hash, this.walk());
        if is_intact && let Ok(()) = walked {
            this.check_counts(manifest)?;
            return Ok(this);
        }
        let damage = this.first_damage().map(|offset| this.record_damage(offset)).or(walked.err());
        Err(damage.unwrap_or_else(|| this.damage_error(0, "its hash is not the one that the manifest has")))
    }

    /// Opens every record, and returns the damage that is found.
    pub fn check(store_dir: &Path, keys: &StoreKeys, manifest: &Manifest) -> Vec<Error> {
        let (mut this, _) = match Self::read_bytes(store_dir, keys, manifest) {
            Ok(read) => read,
            Err(e) => return vec![e],
        };
        // Behind a wrong length no record is found.
        if let Err(e) = this.walk() {
            return vec![this.first_damage().map_or(e, |offset| this.record_damage(offset))];
        }
        let mut offsets: Vec<usize> = this.names.iter().chain([&this.sources]).flatten().copied().collect();
        offsets.sort_unstable();
        offsets.retain(|offset| this.payload(*offset).is_none());
        let damages: Vec<Error> = offsets.into_iter().map(|offset| this.record_damage(offset)).collect();
        if damages.is_empty() { this.check_counts(manifest).err().into_iter().collect() } else { damages }
    }

    fn read_bytes<'m>(
        store_dir: &Path,
        keys: &StoreKeys,
        manifest: &'m Manifest,
    ) -> Result<(Self, &'m FileDigest)> {
        let (name, digest) = manifest.dictionary().expect("whoever reads names has a dictionary");
        let path = store_dir.join(name);
        let damage_error = |offset: u64, reason: &str| Err(Error::damage(&path, offset, reason));
        let file = unitape_tape::open_regular(&path).with_context("open", &path)?;
        let length = file.metadata().with_context("look at", &path)?.len();
        let (mut segments, mut start) = (Vec::new(), HEAD);
        for segment in &manifest.names {
            if length < HEAD || segment.bytes > length.saturating_sub(start) {
                return damage_error(start.min(length), "the dictionary is shorter than the manifest says");
            }
            segments.push((start as usize, segment.clone()));
            start += segment.bytes;
        }
        if digest.bytes != start {
            return damage_error(start, "the list of files gives it another length than the segments have");
        }
        let mut bytes = vec![0; start as usize];
        file.read_exact_at(&mut bytes, 0).with_context("read", &path)?;
        super::check_header(store_dir, &path, &bytes)?;
        let this = Self {
            path,
            store: keys.store,
            keys: keys.names.clone(),
            bytes,
            segments,
            names: Default::default(),
            sources: Vec::new(),
            lookup: OnceLock::new(),
            damage: OnceLock::new(),
            opened_count: AtomicU64::new(0),
        };
        Ok((this, digest))
    }

    /// Finds the records by their clear parts.
    fn walk(&mut self) -> Result<()> {
        for index in 0..self.segments.len() {
            let Range { start, end } = self.segment_range(index);
            let mut offset = start;
            while offset < end {
                let Some((head, rest)) = RecordHead::parse(&self.bytes[offset..end]) else {
                    return Err(self.damage_error(offset, "it has no name and no source there"));
                };
                match NameKind::from_u8(head.kind) {
                    Some(kind) => self.names[kind as usize].push(offset),
                    None => self.sources.push(offset),
                }
                offset = end - rest.len();
            }
        }
        Ok(())
    }

    /// Fails unless there are as many names as the last commit says.
    fn check_counts(&self, manifest: &Manifest) -> Result<()> {
        let committed = manifest.commits.last().map_or(&[][..], |commit| &commit.names);
        for kind in NameKind::ALL {
            let wanted = committed.get(kind as usize).copied().unwrap_or(0);
            if self.count(kind) != wanted {
                let reason = format!(
                    "it has {} names of the kind {}, the last commit {wanted}",
                    self.count(kind),
                    kind.name()
                );
                return Err(self.damage_error(self.bytes.len(), &reason));
            }
        }
        Ok(())
    }

    /// Opens records from the first one on, and returns the offset of the first one that is damaged.
    fn first_damage(&self) -> Option<usize> {
        for index in 0..self.segments.len() {
            let Range { start, end } = self.segment_range(index);
            let mut offset = start;
            while offset < end {
                let Some((_, rest)) = RecordHead::parse(&self.bytes[offset..end]) else {
                    return Some(offset);
                };
                if self.payload(offset).is_none() {
                    return Some(offset);
                }
                offset = end - rest.len();
            }
        }
        None
    }

    fn segment_range(&self, index: usize) -> Range<usize> {
        let start = self.segments[index].0;
        start..self.segments.get(index + 1).map_or(self.bytes.len(), |(next, _)| *next)
    }

    /// Opens the record at an offset. `None` if it is damaged.
    fn payload(&self, offset: usize) -> Option<Vec<u8>> {
        let index = self.segments.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        let (head, _) = RecordHead::parse(&self.bytes[offset..self.segment_range(index).end])?;
        let (clear, sealed) = self.bytes[offset..].split_at(RECORD_HEAD);
        let position = RecordPosition { segment: &self.segments[index].1, offset: offset as u64 };
        let mut sealed = sealed[..head.sealed_bytes].to_vec();
        let plaintext = self.keys.cipher.open(&position.binding(self.store, clear), &mut sealed)?;
        let (length, padded) = plaintext.split_first_chunk::<LENGTH_BYTES>()?;
        let (payload, zeros) = padded.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        zeros.iter().all(|byte| *byte == 0).then(|| payload.to_vec())
    }

    /// Opens a name. `None` if its record is damaged, which [`SealedNames::damage`] then says.
    fn open_name(&self, offset: usize) -> Option<String> {
        self.opened_count.fetch_add(1, Ordering::Relaxed);
        let name = self.payload(offset).and_then(|name| String::from_utf8(name).ok());
        if name.is_none() {
            _ = self.damage.set(offset);
        }
        name
    }

    /// Opens the sources.
    ///
    /// # Errors
    /// Fails with the first damaged one.
    pub fn sources(&self) -> Result<Vec<Vec<u8>>> {
        let open = |offset: &usize| self.payload(*offset).ok_or_else(|| self.record_damage(*offset));
        self.sources.iter().map(open).collect()
    }

    /// Returns the damage that was met when a name was asked for.
    pub fn damage(&self) -> Option<Error> {
        self.damage.get().map(|offset| self.record_damage(*offset))
    }

    /// Returns how often a name was opened.
    #[cfg(test)]
    pub fn opened_count(&self) -> u64 {
        self.opened_count.load(Ordering::Relaxed)
    }

    /// Returns whether the name of a token was erased.
    pub fn is_erased(&self, kind: NameKind, token: u32) -> bool {
        let offset = (token as usize).checked_sub(1).and_then(|index| self.names[kind as usize].get(index));
        let head = offset.and_then(|offset| RecordHead::parse(&self.bytes[*offset..]));
        head.is_some_and(|(head, _)| head.hash == ERASED)
    }

    /// Returns the bytes of the dictionary without the names of these tokens. Their records have the same length and no name.
    ///
    /// # Errors
    /// Fails if there are no random bytes.
    pub fn without(
        &self,
        keys: &StoreKeys,
        tokens: &[(NameKind, u32)],
        random: &dyn Randomness,
    ) -> Result<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        for (kind, token) in tokens {
            let offset = self.names[*kind as usize][*token as usize - 1];
            let index = self.segments.partition_point(|(start, _)| *start <= offset) - 1;
            let (old, _) = RecordHead::parse(&bytes[offset..]).expect("it was found by its clear part");
            let head = RecordHead { hash: ERASED, ..old }.encode();
            let position = RecordPosition { segment: &self.segments[index].1, offset: offset as u64 };
            let mut record = head.to_vec();
            let empty = vec![0; old.sealed_bytes - SEAL_BYTES];
            keys.names.cipher.seal(random, &position.binding(keys.store, &head), &empty, &mut record)?;
            bytes[offset..offset + record.len()].copy_from_slice(&record);
        }
        Ok(bytes)
    }

    fn lookup(&self) -> &[(NameHash, u8, u32)] {
        self.lookup.get_or_init(|| {
            let of_kind = |kind: NameKind| {
                let records = self.names[kind as usize].iter().zip(1..);
                records.filter_map(move |(offset, token)| {
                    let (head, _) = RecordHead::parse(&self.bytes[*offset..])?;
                    (head.hash != ERASED).then_some((head.hash, kind as u8, token))
                })
            };
            let mut lookup: Vec<_> = NameKind::ALL.into_iter().flat_map(of_kind).collect();
            lookup.sort_unstable();
            lookup
        })
    }

    fn record_damage(&self, offset: usize) -> Error {
        self.damage_error(offset, "a name or a source is not as it was sealed")
    }

    fn damage_error(&self, offset: usize, reason: &str) -> Error {
        Error::damage(&self.path, offset as u64, reason)
    }
}

impl NameSource for SealedNames {
    fn count(&self, kind: NameKind) -> u32 {
        self.names[kind as usize].len() as u32
    }

    fn find(&self, kind: NameKind, name: &[u8]) -> Option<u32> {
        let hash = self.keys.hash_of(kind as u8, name);
        let lookup = self.lookup();
        let first = lookup.partition_point(|(other, ..)| *other < hash);
        let candidates = lookup[first..].iter().take_while(|(other, ..)| *other == hash);
        // Two names could have one hash.
        let mut tokens =
            candidates.filter(|(_, of_kind, _)| *of_kind == kind as u8).map(|(.., token)| *token);
        tokens.find(|token| {
            let known = self.open_name(self.names[kind as usize][*token as usize - 1]);
            known.is_some_and(|known| known.as_bytes() == name)
        })
    }

    fn open(&self, kind: NameKind, token: u32) -> Option<String> {
        let name = self.open_name(*self.names[kind as usize].get((token as usize).checked_sub(1)?)?)?;
        // An erased name has no bytes.
        Some(if name.is_empty() { format!("erased-{token}") } else { name })
    }
}
