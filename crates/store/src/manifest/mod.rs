//! The manifest: the list of the store's contents. A file that it does not name does not belong to the store.
//!
//! ```text
//! unitape-store 1 CRC LENGTH
//! STOREID KEYID PUBLICKEY GENERATION REVISION ACCESSKEY
//! PATH LENGTH SHA256                      one line for each file of the store, by path
//!                                         an empty line
//! sealed JSON │ signature, 64 bytes
//! ```
//!
//! The generation counts seals that added events, the revision counts manifests: a compaction makes a new revision of the
//! same generation.
//!
//! It is written last, completely and under another name, and then renamed. A seal that is killed before that leaves
//! the store unchanged.

mod commits;
mod names;
mod text;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unitape_model::{Calendar, Position};
use unitape_tape::TapeId;

pub use self::commits::{AsOf, GenerationSummary};
pub(crate) use self::commits::{Commit, CommitEnd, GenerationBounds, commits_of};
pub(crate) use self::names::{DICTIONARY, NamesSegment, dictionary_path, dictionary_revision};
use self::text::{number_text, position_number, position_numbers, sealed_keys, tape_text, wrapped_keys};
use crate::FORMAT_VERSION;
use crate::day::{Day, DayRule};
use crate::error::{Error, IoContext, Result};
use crate::file::FileId;
use crate::keys::cipher::KEY_BYTES;
use crate::keys::{
    AccessKeys, Binding, DayKeys, MasterKey, Piece, PublicKey, Randomness, SEAL_BYTES, SIGNATURE_BYTES,
    StoreId, StoreKeys, WrappedKeys, hex, parse_hex,
};
use crate::leases::{self, Lease};
use crate::schema::TickSchema;

/// Longer than any manifest that there can be a use for.
const BYTES_MAX: u64 = 256 << 20;
const NAME: &str = "manifest";
const WORD: &str = "unitape-store";
/// The longest line of the part in clear.
const LINE_MAX: usize = 400;

/// The files of the store, by their path below its directory.
pub(crate) type ListedFiles = BTreeMap<String, FileDigest>;

/// Length and SHA-256 of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileDigest {
    pub bytes: u64,
    pub hash: [u8; 32],
}

/// The contents of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Counts seals that added something. It is in clear.
    #[serde(skip)]
    pub generation: u64,
    /// Counts the manifests of the store. It is in clear.
    #[serde(skip)]
    pub revision: u64,
    /// The public half of the key that signs. It is in clear.
    #[serde(skip)]
    pub public_key: PublicKey,
    /// The files that belong to the store. They are in clear.
    #[serde(skip)]
    pub files: ListedFiles,
    /// The keys of the store, sealed.
    #[serde(with = "wrapped_keys")]
    pub keys: WrappedKeys,
    /// The segments of the dictionary that count, in their order.
    pub names: Vec<NamesSegment>,
    /// The key of each day, sealed.
    #[serde(with = "sealed_keys")]
    pub day_keys: DayKeys,
    /// Tapes that were sealed, in the order of their first seal.
    pub tapes: Vec<TapeSealProgress>,
    /// What each generation added, by generation.
    pub commits: Vec<Commit>,
    /// The parts that seals and compactions wrote, in their order.
    pub parts: Vec<SealedPart>,
    /// Files that were replaced or erased, with the first revision that does not name them. Readers of earlier
    /// revisions may still read them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, u64>,
    /// The calendar whose session dates are the days, as its text. `None` if the days are UTC dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
}

/// How far a tape is sealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TapeSealProgress {
    #[serde(with = "tape_text")]
    pub tape: TapeId,
    /// All events before this position are in the store.
    #[serde(with = "position_number")]
    pub sealed: Position,
    /// Days that were sealed on their own: up to where.
    #[serde(with = "position_numbers")]
    pub days: BTreeMap<Day, Position>,
    /// The last frame that was read: where, and its checksum.
    #[serde(with = "position_number")]
    pub last_position: Position,
    pub last_crc: u32,
    /// Parts that are not in the store: retention had removed them, or they were damaged and skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[u64; 2]>,
    /// Parts in the store that a repair of the tape accepted without a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<[u64; 2]>,
}

/// The events that one seal added to one day, or that a compaction put together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedPart {
    pub date: Day,
    /// The latest one in it.
    pub generation: u64,
    /// The revision of the manifest that named the files of a compaction first; 0 for a seal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: u64,
    /// A random number of the seal or the compaction.
    #[serde(with = "number_text")]
    pub commit: u128,
    /// The tapes of its events, in the order of their first seal.
    pub tapes: Vec<TapeRange>,
    pub files: Vec<FileEntry>,
}

/// A tape in a part, and the first and last ordinal of its events there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TapeRange {
    #[serde(with = "tape_text")]
    pub tape: TapeId,
    pub ordinal_first: u64,
    pub ordinal_last: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A file of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    pub schema: TickSchema,
    pub bytes: u64,
    pub blocks: u32,
    pub rows: u64,
    /// Bytes of its frames on the tape.
    pub raw_bytes: u64,
    pub ts_min: i64,
    pub ts_max: i64,
}

impl SealedPart {
    pub fn file(&self, entry: &FileEntry) -> FileId {
        FileId {
            day: self.date,
            schema: entry.schema,
            generation: self.generation,
            revision: self.revision,
            commit: self.commit,
        }
    }

    /// Returns each file with its identity.
    pub fn file_ids(&self) -> impl Iterator<Item = (FileId, &FileEntry)> {
        self.files.iter().map(|entry| (self.file(entry), entry))
    }
}

impl Manifest {
    /// Returns the path of the manifest.
    pub fn path(store: &Path) -> PathBuf {
        store.join(NAME)
    }

    /// Returns the path of the file that becomes the manifest.
    pub fn path_new(store: &Path) -> PathBuf {
        store.join("manifest.new")
    }

    /// Reads the manifest of the store in `dir`, and derives the keys of the store.
    pub fn load(dir: &Path, master: &MasterKey) -> Result<(Self, StoreKeys)> {
        let path = Self::path(dir);
        ManifestFile::parse(read_manifest(dir)?, &path)?.open(master, &path)
    }

    /// Reads the manifest of the store in `dir`, and takes a lease of the files that it names.
    pub fn load_with_lease(dir: &Path, master: &MasterKey) -> Result<(Self, StoreKeys, Lease)> {
        // Each time that this begins again, somebody has ended a seal or a compaction.
        loop {
            let (manifest, keys) = Self::load(dir, master)?;
            let lease = Lease::take(dir, manifest.revision)?;
            if Self::revision_now(dir)? == manifest.revision {
                return Ok((manifest, keys, lease));
            }
        }
    }

    /// Reads the revision of the manifest that counts now.
    pub fn revision_now(dir: &Path) -> Result<u64> {
        let path = Self::path(dir);
        let mut start_bytes = Vec::new();
        let file = unitape_tape::open_regular(&path).with_context("open", &path)?;
        file.take(2 * LINE_MAX as u64).read_to_end(&mut start_bytes).with_context("read", &path)?;
        let words = String::from_utf8_lossy(&start_bytes);
        let revision = words.lines().nth(1).and_then(|ids| parse_ids(&ids.split(' ').collect::<Vec<_>>()));
        revision.map(|ids| ids.revision).ok_or_else(|| Error::damage(&path, 0, "it names no revision"))
    }

    /// Makes the manifest of a new store, with new keys.
    pub fn new(master: &MasterKey, store: StoreId, random: &dyn Randomness) -> Result<(Self, StoreKeys)> {
        let (keys, wrapped) = StoreKeys::draw(master, store, random)?;
        let signer = keys.access.signer(&wrapped.signing).expect("it was just sealed");
        Ok((Self { public_key: signer.public(), keys: wrapped, ..Self::default() }, keys))
    }

    /// Reads the sealed part of the manifest's file.
    pub fn from_body(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// Writes the bytes of the manifest file.
    ///
    /// # Panics
    /// Panics if the signing key does not belong to this store. Opening a manifest checks this.
    pub fn encode(&self, keys: &StoreKeys, random: &dyn Randomness) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(self).expect("plain data is always JSON");
        let mut body = self.clear(keys).into_bytes();
        let binding = manifest_binding(keys.store, &body);
        keys.access.manifest.seal(random, &binding, &json, &mut body)?;
        let signer = keys.access.signer(&self.keys.signing).expect("a manifest has the key that signs it");
        let signature = signer.sign(&signed_message(&body));
        body.extend_from_slice(&signature);
        let mut bytes = head_of(&body).into_bytes();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Writes the unencrypted lines after the first line.
    fn clear(&self, keys: &StoreKeys) -> String {
        use std::fmt::Write as _;
        let Self { public_key, generation, revision, .. } = self;
        let (store, key) = (hex(&keys.store.0), hex(&keys.access.key_id));
        let access = hex(&keys.access.wrapped);
        let mut text = format!("{store} {key} {public_key} {generation} {revision} {access}\n");
        for (path, FileDigest { bytes, hash }) in &self.files {
            _ = writeln!(text, "{path} {bytes} {}", hex(hash));
        }
        text.push('\n');
        text
    }

    /// Puts this manifest in the place of the one before, as its next revision.
    ///
    /// # Errors
    /// Fails if the manifest before still counts; this one then has its revision. If this one counts, but the disk has not
    /// confirmed that, the inner result is an error: after a power cut either may count, so the files of both must stay.
    pub fn store_manifest(
        &mut self,
        dir: &Path,
        keys: &StoreKeys,
        random: &dyn Randomness,
    ) -> Result<Result<()>> {
        self.revision += 1;
        if let Err(e) = self.rename_into_place(dir, keys, random) {
            self.revision -= 1;
            return Err(e);
        }
        let flushed = File::open(dir).and_then(|folder| folder.sync_all());
        Ok(flushed.map_err(|source| Error::Unconfirmed { path: Self::path(dir), source }))
    }

    fn rename_into_place(&self, dir: &Path, keys: &StoreKeys, random: &dyn Randomness) -> Result<()> {
        let bytes = self.encode(keys, random)?;
        leases::prepare(dir, self.revision)?;
        let (new, path) = (Self::path_new(dir), Self::path(dir));
        let mut file = File::create(&new).with_context("make", &new)?;
        file.write_all(&bytes).with_context("write", &new)?;
        file.sync_all().with_context("sync", &new)?;
        fs::rename(&new, &path).with_context("rename", &new)
    }

    /// Reads the calendar, and returns the rule of days.
    ///
    /// # Errors
    /// Fails if the manifest has a calendar that is none.
    pub fn day_rule(&self, dir: &Path) -> Result<DayRule> {
        let parse = |text: &String| {
            let damage = |e| Error::damage(&Self::path(dir), 0, format!("its calendar cannot be read: {e}"));
            Calendar::parse(text).map(Arc::new).map_err(damage)
        };
        Ok(DayRule::new(self.calendar.as_ref().map(parse).transpose()?))
    }

    /// Removes a day: its parts, its key, and what commits say about it. The files stay for readers that have them. The next
    /// revision is without it.
    pub fn remove_day(&mut self, day: Day) {
        let revision = self.revision + 1;
        for part in self.parts.iter().filter(|part| part.date == day) {
            for (id, _) in part.file_ids() {
                let path = id.listed_path();
                self.files.remove(&path);
                self.replaced.insert(path, revision);
            }
        }
        self.parts.retain(|part| part.date != day);
        self.day_keys.remove(&day);
        self.commits.iter_mut().for_each(|commit| commit.ends.retain(|end| end.date != day));
    }

    /// Puts a part in the place of others, whose files stay for readers that have them. The next revision has it.
    pub fn replace_parts(&mut self, part: SealedPart, is_replaced: impl Fn(&SealedPart) -> bool) {
        let revision = self.revision + 1;
        for old in self.parts.iter().filter(|part| is_replaced(part)) {
            for (id, _) in old.file_ids() {
                let path = id.listed_path();
                self.files.remove(&path);
                self.replaced.insert(path, revision);
            }
        }
        // The new part stands where the first of the old ones stood.
        let first = self.parts.iter().position(&is_replaced).unwrap_or(self.parts.len());
        self.parts.retain(|part| !is_replaced(part));
        self.parts.insert(first, part);
    }

    /// Looks up the seal progress of a tape.
    pub fn tape(&self, tape: TapeId) -> Option<&TapeSealProgress> {
        self.tapes.iter().find(|t| t.tape == tape)
    }
}

/// Fails unless there is a store in `dir`, in the format of this build: the checks that need no key.
///
/// # Errors
/// Fails if the directory is not a store, if the store has a foreign version, or if its manifest is damaged.
pub fn check_format(dir: &Path) -> Result<()> {
    ManifestFile::parse(read_manifest(dir)?, &Manifest::path(dir)).map(drop)
}

/// Reads the bytes of the manifest of the store in `dir`.
pub(crate) fn read_manifest(dir: &Path) -> Result<Vec<u8>> {
    let path = Manifest::path(dir);
    let mut bytes = Vec::new();
    let open_result = match unitape_tape::open_regular(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let reason =
                if dir.is_dir() { "there is no manifest in it" } else { "there is no such directory" };
            return Err(Error::NotAStore { path: dir.into(), reason });
        }
        other => other.with_context("open", &path)?,
    };
    open_result.take(BYTES_MAX + 1).read_to_end(&mut bytes).with_context("read", &path)?;
    Ok(bytes)
}

/// A manifest's file, of which the part in clear has been read.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    pub store: StoreId,
    pub key_id: [u8; 16],
    pub public_key: PublicKey,
    pub generation: u64,
    pub revision: u64,
    pub access_key: Vec<u8>,
    pub files: ListedFiles,
    bytes: Vec<u8>,
    body_at: usize,
    sealed_at: usize,
}

impl ManifestFile {
    /// Reads the part in clear.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        let damage_error = |offset: usize, reason: &str| Err(Error::damage(path, offset as u64, reason));
        if bytes.len() as u64 > BYTES_MAX {
            return damage_error(bytes.len(), "longer than any manifest is");
        }
        let line = |start: usize| {
            let manifest_left = bytes.get(start..)?;
            let line_length = manifest_left.iter().take(LINE_MAX).position(|b| *b == b'\n')?;
            std::str::from_utf8(&manifest_left[..line_length]).ok()
        };
        let Some(head) = line(0) else { return damage_error(0, "it does not begin as a manifest does") };
        let words: Vec<&str> = head.split(' ').collect();
        let [WORD, version, _, _] = words[..] else {
            return damage_error(0, "it does not begin as a manifest does");
        };
        let Ok(version) = version.parse::<u64>() else { return damage_error(0, "it names no version") };
        if version != u64::from(FORMAT_VERSION) {
            return Err(Error::ForeignVersion {
                path: path.into(),
                version,
                supported_version: FORMAT_VERSION.into(),
            });
        }
        let body_at = head.len() + 1;
        // One way of writing it is right: a checksum in capital letters is a changed byte as well.
        if head_of(&bytes[body_at..]).as_bytes() != &bytes[..body_at] {
            return damage_error(body_at, "its checksum or its length does not match");
        }
        let Some(ids) = line(body_at) else { return damage_error(body_at, "it names no store and no key") };
        let words: Vec<&str> = ids.split(' ').collect();
        // Builds before the format was complete wrote ids alone, or less behind them.
        let are_ids = words.iter().take(2).all(|word| parse_hex(word).is_some_and(|id| id.len() == 16));
        if are_ids && matches!(words.len(), 2 | 4 | 5) {
            return Err(Error::EarlierBuild { path: path.into() });
        }
        let Some(ClearIds { store, key_id, public_key, generation, revision, access_key }) =
            parse_ids(&words)
        else {
            return damage_error(body_at, "it names no store, no keys and no generation");
        };
        let (mut files, mut line_offset) = (ListedFiles::new(), body_at + ids.len() + 1);
        loop {
            match line(line_offset) {
                Some("") => break,
                Some(text) => {
                    let Some((path, digest)) = parse_listed(text) else {
                        return damage_error(line_offset, "a file that is none of ours");
                    };
                    if files.last_key_value().is_some_and(|(last, _)| *last >= path) {
                        return damage_error(line_offset, "a file that is not in its order");
                    }
                    files.insert(path, digest);
                    line_offset += text.len() + 1;
                }
                None => return damage_error(line_offset, "the list of files does not end"),
            }
        }
        let sealed_at = line_offset + 1;
        if bytes.len() < sealed_at + SIGNATURE_BYTES {
            return damage_error(sealed_at, "it is cut short");
        }
        Ok(Self {
            store,
            key_id,
            public_key,
            generation,
            revision,
            access_key,
            files,
            bytes,
            body_at,
            sealed_at,
        })
    }

    /// Returns whether the signature matches the public key that the file names.
    pub fn is_signed(&self) -> bool {
        let (body, signature) = self.bytes[self.body_at..].split_at(self.signature_at() - self.body_at);
        self.public_key.verify(&signed_message(body), signature)
    }

    /// Returns the offset of the signature.
    pub fn signature_at(&self) -> usize {
        self.bytes.len() - SIGNATURE_BYTES
    }

    /// Opens the sealed part, which opens beside its own part in clear alone.
    ///
    /// # Errors
    /// Fails if the key is another one, or if the file is not as it was sealed.
    pub fn open(&mut self, master: &MasterKey, path: &Path) -> Result<(Manifest, StoreKeys)> {
        if AccessKeys::key_id(master, self.store) != self.key_id {
            return Err(Error::WrongKey { path: path.into() });
        }
        let access = AccessKeys::open(master, self.store, &self.access_key);
        let access = access.ok_or_else(|| {
            Error::damage(path, self.body_at as u64, "its access key is not as it was sealed")
        })?;
        let (sealed_offset, end) = (self.sealed_at, self.signature_at());
        let binding = manifest_binding(self.store, &self.bytes[self.body_at..sealed_offset]);
        let opened_part = access.manifest.open(&binding, &mut self.bytes[sealed_offset..end]);
        let damage_error = |reason: &str| Error::damage(path, sealed_offset as u64, reason);
        let plaintext = opened_part.ok_or_else(|| damage_error("it is not as it was sealed"))?;
        let sealed = Manifest::from_body(plaintext).map_err(|e| damage_error(&e.to_string()))?;
        let signer = access.signer(&sealed.keys.signing);
        if signer.is_none_or(|signer| signer.public() != self.public_key) {
            return Err(damage_error("the key that signs it is not the one that it names"));
        }
        let is_known = |part: &SealedPart| part.tapes.iter().all(|range| sealed.tape(range.tape).is_some());
        if !sealed.parts.iter().all(|part| !part.tapes.is_empty() && is_known(part)) {
            return Err(damage_error("a part of tapes that it does not have"));
        }
        let (generation, revision, public_key) = (self.generation, self.revision, self.public_key);
        let keys = StoreKeys::open(access, &sealed.keys);
        let keys = keys.ok_or_else(|| damage_error("a key of it does not open"))?;
        let files = std::mem::take(&mut self.files);
        let manifest = Manifest { generation, revision, public_key, files, ..sealed };
        if !manifest.is_dictionary_listed() {
            return Err(Error::damage(path, sealed_offset as u64, "its names are not in one dictionary"));
        }
        Ok((manifest, keys))
    }
}

/// The second line of a manifest.
struct ClearIds {
    store: StoreId,
    key_id: [u8; 16],
    public_key: PublicKey,
    generation: u64,
    revision: u64,
    /// Sealed.
    access_key: Vec<u8>,
}

/// Reads the ids of a store and its keys, the generation, the revision and the sealed access key.
fn parse_ids(words: &[&str]) -> Option<ClearIds> {
    let [store, key, public, generation, revision, access_key] = words else { return None };
    let id = |text: &str| <[u8; 16]>::try_from(parse_hex(text)?).ok();
    let public = <[u8; 32]>::try_from(parse_hex(public)?).ok()?;
    let (generation, revision) = (parse_number(generation)?, parse_number(revision)?);
    let access_key = parse_hex(access_key).filter(|key| key.len() == KEY_BYTES + SEAL_BYTES)?;
    let (store, key_id, public_key) = (StoreId(id(store)?), id(key)?, PublicKey(public));
    Some(ClearIds { store, key_id, public_key, generation, revision, access_key })
}

/// Reads a line of the list of files. A path has only unitape's own numbers and names; any other path is refused.
fn parse_listed(line: &str) -> Option<(String, FileDigest)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [path, bytes, hash] = words[..] else { return None };
    let is_ours = dictionary_revision(path).is_some() || FileId::parse_path(path).is_some();
    let digest = FileDigest { bytes: parse_number(bytes)?, hash: parse_hex(hash)?.try_into().ok()? };
    is_ours.then(|| (path.to_owned(), digest))
}

/// Reads a number in the one way that it is written.
fn parse_number(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn head_of(body: &[u8]) -> String {
    format!("{WORD} {FORMAT_VERSION} {:08x} {}\n", crc32c::crc32c(body), body.len())
}

/// Returns the data that binds the sealed part: its place and the unencrypted part before it.
fn manifest_binding(store: StoreId, clear: &[u8]) -> Vec<u8> {
    [Binding::new(Piece::Manifest, store).bytes(), clear].concat()
}

/// Returns the signed message: the format, and all bytes after the first line up to the signature.
fn signed_message(body: &[u8]) -> Vec<u8> {
    [format!("{WORD} {FORMAT_VERSION}\n").as_bytes(), body].concat()
}

/// Makes names in a directory survive power loss.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|f| f.sync_all()).with_context("sync", dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SystemRandomness;

    fn sample(master: &MasterKey) -> (Manifest, StoreKeys) {
        let entry = FileEntry {
            schema: TickSchema::Bbo,
            bytes: 4096,
            blocks: 3,
            rows: 70_000,
            raw_bytes: 70_000 * 64,
            ts_min: -5,
            ts_max: 7,
        };
        let digest = |bytes| FileDigest { bytes, hash: [bytes as u8; 32] };
        let (empty, keys) = Manifest::new(master, StoreId([3; 16]), &SystemRandomness).unwrap();
        let files = [("2022-01-08/bbo/00000002.blocks", digest(4096)), (DICTIONARY, digest(93))];
        let manifest = Manifest {
            generation: 2,
            files: files.map(|(path, digest)| (path.to_owned(), digest)).into(),
            names: vec![NamesSegment { bytes: 77, generation: 1, commit: u128::MAX }],
            day_keys: [(Day::UNDATED, vec![1, 2, 255])].into(),
            tapes: vec![TapeSealProgress {
                tape: TapeId(0xabc),
                sealed: Position(640),
                days: [(Day(3), Position(900))].into(),
                last_position: Position(576),
                last_crc: 9,
                missing: Vec::new(),
                unverified: Vec::new(),
            }],
            commits: vec![Commit {
                generation: 2,
                committed: 7_000,
                rows: 70_000,
                names: vec![4, 0, 9],
                ends: vec![CommitEnd { date: Day(19_000), tape: TapeId(0xabc), ordinal_last: 70_000 }],
            }],
            replaced: [("2022-01-08/bbo/00000001.blocks".to_owned(), 3)].into(),
            parts: vec![SealedPart {
                date: Day(19_000),
                generation: 2,
                revision: 0,
                commit: 5 << 100,
                tapes: vec![TapeRange { tape: TapeId(0xabc), ordinal_first: 1, ordinal_last: 70_000 }],
                files: vec![entry],
            }],
            ..empty
        };
        (manifest, keys)
    }

    /// Fails if a changed byte of a manifest goes unnoticed, because another manifest would lose days.
    #[test]
    fn it_comes_back_and_no_changed_byte_goes_unnoticed() {
        let dir = tempfile::tempdir().unwrap();
        let master = MasterKey::random(&SystemRandomness).unwrap();
        let (mut manifest, keys) = sample(&master);
        manifest.store_manifest(dir.path(), &keys, &SystemRandomness).unwrap().unwrap();
        assert_eq!(Manifest::load(dir.path(), &master).unwrap().0, manifest);
        let good = fs::read(Manifest::path(dir.path())).unwrap();
        let clear = |bytes: &[u8]| ManifestFile::parse(bytes.to_vec(), dir.path());
        let parse = |bytes: &[u8]| Ok::<_, Error>(clear(bytes)?.open(&master, dir.path())?.0);
        assert_eq!(parse(&good).unwrap(), manifest);
        assert!(clear(&good).unwrap().is_signed());
        for byte_index in 0..good.len() {
            for bit in [1, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[byte_index] ^= bit;
                assert!(parse(&bad).is_err(), "byte {byte_index}");
            }
            assert!(parse(&good[..byte_index]).is_err(), "cut at {byte_index}");
        }
        // With a correct checksum, the signature still shows the change. So does the tag of the sealed part, which is
        // bound to the lines before it.
        let body_at = good.iter().position(|b| *b == b'\n').unwrap() + 1;
        for body_index in 0..good.len() - body_at {
            let mut body = good[body_at..].to_vec();
            body[body_index] ^= 1;
            let bad = [head_of(&body).as_bytes(), &body].concat();
            assert!(!clear(&bad).is_ok_and(|file| file.is_signed()), "byte {body_index}");
            assert!(parse(&bad).is_err() || body.len() - body_index <= SIGNATURE_BYTES, "byte {body_index}");
        }
        let wrong_key_load = Manifest::load(dir.path(), &MasterKey::random(&SystemRandomness).unwrap());
        assert!(matches!(wrong_key_load, Err(Error::WrongKey { .. })), "{wrong_key_load:?}");
    }

    /// Fails if a path leads out of the store, because unitape would read there.
    #[test]
    fn paths_of_files_are_ours_alone() {
        let hash = "0a".repeat(32);
        for (path, good) in [
            ("dictionary.log", true),
            ("dictionary-0000001f.log", true),
            ("dictionary-1f.log", false),
            ("2024-03-11/bbo/00000001.blocks", true),
            ("undated/quarantine/100000001.blocks", true),
            ("2024-03-11/bbo/00000001-0000000a.blocks", true),
            ("2024-03-11/bbo/00000001-00000000.blocks", false),
            ("2024-03-11/bbo/00000001-a.blocks", false),
            ("2024-03-11/bbo/1.blocks", false),
            ("2024-03-11/bbo/0000000A.blocks", false),
            ("2024-03-11/nope/00000001.blocks", false),
            ("../2024-03-11/bbo/00000001.blocks", false),
            ("2024-03-11/bbo/../bbo/00000001.blocks", false),
            ("/etc/passwd", false),
            ("manifest", false),
        ] {
            assert_eq!(parse_listed(&format!("{path} 7 {hash}")).is_some(), good, "{path}");
        }
        for bad in [format!("dictionary.log 07 {hash}"), format!("dictionary.log 7 {hash}a"), String::new()] {
            assert_eq!(parse_listed(&bad), None, "{bad}");
        }
    }

    #[test]
    fn another_version_and_another_thing_are_told_apart() {
        let parse = |bytes: &[u8]| ManifestFile::parse(bytes.to_vec(), Path::new("manifest"));
        let version = parse(b"unitape-store 7 00000000 2\n{}");
        assert!(
            matches!(version, Err(Error::ForeignVersion { version: 7, supported_version: 1, .. })),
            "{version:?}"
        );
        let old = parse(b"unitape-store 0 00000000 2\n{}").unwrap_err().to_string();
        assert!(old.contains("seal its tapes again"), "{old}");
        let body = format!("{0} {0}\nsealed", "5a".repeat(16));
        let unsigned = parse(&[head_of(body.as_bytes()).as_bytes(), body.as_bytes()].concat());
        assert!(matches!(unsigned, Err(Error::EarlierBuild { .. })), "{unsigned:?}");
        let body = format!("{0} {0} {1} 4\n\nsealed", "5a".repeat(16), "b7".repeat(32));
        let earlier = parse(&[head_of(body.as_bytes()).as_bytes(), body.as_bytes()].concat());
        assert!(matches!(earlier, Err(Error::EarlierBuild { .. })), "{earlier:?}");
        let other_format = parse(b"format = 1\n");
        assert!(matches!(other_format, Err(Error::Damage { .. })), "{other_format:?}");
        let nothing = check_format(Path::new("no such directory"));
        assert!(matches!(nothing, Err(Error::NotAStore { .. })));
    }
}
