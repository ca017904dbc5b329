//! The manifest: the list of the store's contents. A file that it does not name does not belong to the store.
//!
//! One line with format, checksum, length, the id of the store and that of its key, then sealed JSON. It is written last,
//! whole, under another name, and renamed into its place: a seal that is killed before that leaves the store as it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unitape_model::Position;
use unitape_tape::TapeId;

use crate::FORMAT_VERSION;
use crate::day::Day;
use crate::error::{Error, IoContext, Result};
use crate::file::FileId;
use crate::keys::{Binding, DayKeys, MasterKey, Piece, Randomness, StoreId, StoreKeys, hex, parse_hex};
use crate::schema::TickSchema;

/// Longer than any manifest that there can be a use for.
const BYTES_MAX: u64 = 256 << 20;
const NAME: &str = "manifest";
const WORD: &str = "unitape-store";

/// The contents of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Counts seals that added something.
    pub generation: u64,
    /// The segments of the dictionary that count, in their order.
    pub names: Vec<NamesSegment>,
    /// The key of each day, sealed.
    #[serde(with = "sealed_keys")]
    pub day_keys: DayKeys,
    /// Tapes that were sealed, in the order of their first seal.
    pub tapes: Vec<TapeSealProgress>,
    /// The parts that seals added, in their order.
    pub parts: Vec<SealedPart>,
}

/// What one seal added to the dictionary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamesSegment {
    pub bytes: u64,
    pub generation: u64,
    #[serde(with = "number_text")]
    pub commit: u128,
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
}

/// The events that one seal added to one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedPart {
    pub date: Day,
    pub generation: u64,
    /// A random number of the seal.
    #[serde(with = "number_text")]
    pub commit: u128,
    #[serde(with = "tape_text")]
    pub tape: TapeId,
    pub ordinal_first: u64,
    pub ordinal_last: u64,
    pub files: Vec<FileEntry>,
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
            tape: self.tape,
            commit: self.commit,
        }
    }
}

impl Manifest {
    /// The path of the manifest.
    pub fn path(store: &Path) -> PathBuf {
        store.join(NAME)
    }

    /// Name of the file that becomes the manifest.
    pub fn path_new(store: &Path) -> PathBuf {
        store.join("manifest.new")
    }

    /// Reads the manifest of the store in `dir`, and derives the keys of the store.
    pub fn load(dir: &Path, master: &MasterKey) -> Result<(Self, StoreKeys)> {
        let path = Self::path(dir);
        let mut file = ManifestFile::parse(read(dir)?, &path)?;
        let keys = StoreKeys::new(master, file.store);
        if keys.key_id != file.key_id {
            return Err(Error::WrongKey { path });
        }
        let manifest = file.open(&keys, &path)?;
        Ok((manifest, keys))
    }

    /// Reads what is sealed in the manifest's file.
    pub fn from_body(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// The bytes of the manifest's file.
    pub fn encode(&self, keys: &StoreKeys, random: &dyn Randomness) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(self).expect("plain data is always JSON");
        let mut body = format!("{} {}\n", hex(&keys.store.0), hex(&keys.key_id)).into_bytes();
        keys.manifest.seal(random, manifest_binding(keys.store).bytes(), &plain, &mut body)?;
        let mut bytes = head_of(&body).into_bytes();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Puts this manifest in the place of the one before.
    pub fn store(&self, dir: &Path, keys: &StoreKeys, random: &dyn Randomness) -> Result<()> {
        let bytes = self.encode(keys, random)?;
        let (new, path) = (Self::path_new(dir), Self::path(dir));
        let mut file = File::create(&new).with_context("make", &new)?;
        file.write_all(&bytes).with_context("write", &new)?;
        file.sync_all().with_context("sync", &new)?;
        fs::rename(&new, &path).with_context("rename", &new)?;
        sync_dir(dir)
    }

    /// The state of a tape.
    pub fn tape(&self, tape: TapeId) -> Option<&TapeSealProgress> {
        self.tapes.iter().find(|t| t.tape == tape)
    }
}

/// Fails unless there is a store in `dir`, in the format of this build: the checks that need no key.
///
/// # Errors
/// Not a store, a foreign version, or a damaged manifest.
pub fn check_format(dir: &Path) -> Result<()> {
    ManifestFile::parse(read(dir)?, &Manifest::path(dir)).map(drop)
}

/// The bytes of the manifest of the store in `dir`.
fn read(dir: &Path) -> Result<Vec<u8>> {
    let path = Manifest::path(dir);
    let mut bytes = Vec::new();
    let opened = match File::open(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let what = if dir.is_dir() { "there is no manifest in it" } else { "there is no such directory" };
            return Err(Error::NotAStore { path: dir.into(), what });
        }
        other => other.with_context("open", &path)?,
    };
    opened.take(BYTES_MAX + 1).read_to_end(&mut bytes).with_context("read", &path)?;
    Ok(bytes)
}

/// A manifest's file, of which the part in clear has been read.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    pub store: StoreId,
    pub key_id: [u8; 16],
    bytes: Vec<u8>,
    sealed_at: usize,
}

impl ManifestFile {
    /// Reads the part in clear.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        let bad = |offset: usize, what: &str| Err(Error::damage(path, offset as u64, what));
        if bytes.len() as u64 > BYTES_MAX {
            return bad(bytes.len(), "longer than any manifest is");
        }
        let line = |at: usize, most: usize| {
            let text = bytes.get(at..)?.split(|b| *b == b'\n').next()?;
            std::str::from_utf8(text).ok().filter(|text| text.len() <= most && at + text.len() < bytes.len())
        };
        let Some(head) = line(0, 64) else { return bad(0, "it does not begin as a manifest does") };
        let words: Vec<&str> = head.split(' ').collect();
        let [WORD, version, _, _] = words[..] else { return bad(0, "it does not begin as a manifest does") };
        let Ok(version) = version.parse::<u64>() else { return bad(0, "it names no version") };
        if version != u64::from(FORMAT_VERSION) {
            return Err(Error::ForeignVersion {
                path: path.into(),
                found: version,
                known: FORMAT_VERSION.into(),
            });
        }
        let body_at = head.len() + 1;
        // One way of writing it is right: a checksum in capital letters is a changed byte as well.
        if head_of(&bytes[body_at..]).as_bytes() != &bytes[..body_at] {
            return bad(body_at, "its checksum or its length does not match");
        }
        let ids = line(body_at, 65).and_then(|line| line.split_once(' '));
        let id = |text: &str| parse_hex(text).and_then(|id| <[u8; 16]>::try_from(id).ok());
        let Some((Some(store), Some(key_id))) = ids.map(|(store, key)| (id(store), id(key))) else {
            return bad(body_at, "it names no store and no key");
        };
        Ok(Self { store: StoreId(store), key_id, sealed_at: body_at + 66, bytes })
    }

    /// Opens the sealed part.
    pub fn open(&mut self, keys: &StoreKeys, path: &Path) -> Result<Manifest> {
        let at = self.sealed_at;
        let plain = keys.manifest.open(manifest_binding(self.store).bytes(), &mut self.bytes[at..]);
        let bad = |what: &str| Error::damage(path, at as u64, what);
        let plain = plain.ok_or_else(|| bad("it is not as it was sealed"))?;
        Manifest::from_body(plain).map_err(|e| bad(&e.to_string()))
    }
}

fn head_of(body: &[u8]) -> String {
    format!("{WORD} {FORMAT_VERSION} {:08x} {}\n", crc32c::crc32c(body), body.len())
}

fn manifest_binding(store: StoreId) -> Binding {
    Binding::new(Piece::Manifest, store)
}

/// Makes names in a directory survive power loss.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|f| f.sync_all()).with_context("sync", dir)
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for TickSchema {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TickSchema {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        Self::from_name(&String::deserialize(d)?).ok_or_else(|| D::Error::custom("no schema of ours"))
    }
}

mod tape_text {
    use super::*;

    pub fn serialize<S: Serializer>(tape: &TapeId, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(tape)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<TapeId, D::Error> {
        u128::from_str_radix(&String::deserialize(d)?, 16).map(TapeId).map_err(D::Error::custom)
    }
}

/// Numbers beyond what JSON readers keep.
mod number_text {
    use super::*;

    pub fn serialize<S: Serializer>(number: &u128, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{number:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(d)?, 16).map_err(D::Error::custom)
    }
}

mod sealed_keys {
    use super::*;

    pub fn serialize<S: Serializer>(keys: &DayKeys, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_map(keys.iter().map(|(day, key)| (day, hex(key))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<DayKeys, D::Error> {
        let keys = BTreeMap::<Day, String>::deserialize(d)?;
        let key = |text: String| parse_hex(&text).ok_or_else(|| D::Error::custom("no key in digits"));
        keys.into_iter().map(|(day, text)| Ok((day, key(text)?))).collect()
    }
}

/// A position is a plain number here.
mod position_number {
    use super::*;

    pub fn serialize<S: Serializer>(position: &Position, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_u64(position.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Position, D::Error> {
        u64::deserialize(d).map(Position)
    }
}

/// So are the positions of days.
mod position_numbers {
    use super::*;

    type Days = BTreeMap<Day, Position>;

    pub fn serialize<S: Serializer>(days: &Days, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_map(days.iter().map(|(day, position)| (day, position.0)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Days, D::Error> {
        let days = BTreeMap::<Day, u64>::deserialize(d)?;
        Ok(days.into_iter().map(|(day, position)| (day, Position(position))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SystemRandomness;

    fn sample() -> Manifest {
        let entry = FileEntry {
            schema: TickSchema::Bbo,
            bytes: 4096,
            blocks: 3,
            rows: 70_000,
            raw_bytes: 70_000 * 64,
            ts_min: -5,
            ts_max: 7,
        };
        Manifest {
            generation: 2,
            names: vec![NamesSegment { bytes: 77, generation: 1, commit: u128::MAX }],
            day_keys: [(Day::UNDATED, vec![1, 2, 255])].into(),
            tapes: vec![TapeSealProgress {
                tape: TapeId(0xabc),
                sealed: Position(640),
                days: [(Day(3), Position(900))].into(),
                last_position: Position(576),
                last_crc: 9,
            }],
            parts: vec![SealedPart {
                date: Day(19_000),
                generation: 2,
                commit: 5 << 100,
                tape: TapeId(0xabc),
                ordinal_first: 1,
                ordinal_last: 70_000,
                files: vec![entry],
            }],
        }
    }

    /// A manifest that is mistaken for another one loses days; one bit is enough.
    #[test]
    fn it_comes_back_and_no_changed_byte_goes_unnoticed() {
        let dir = tempfile::tempdir().unwrap();
        let (manifest, master) = (sample(), MasterKey::random(&SystemRandomness).unwrap());
        let keys = StoreKeys::new(&master, StoreId([3; 16]));
        manifest.store(dir.path(), &keys, &SystemRandomness).unwrap();
        assert_eq!(Manifest::load(dir.path(), &master).unwrap().0, manifest);
        let good = fs::read(Manifest::path(dir.path())).unwrap();
        let parse = |bytes: &[u8]| ManifestFile::parse(bytes.to_vec(), dir.path())?.open(&keys, dir.path());
        assert_eq!(parse(&good).unwrap(), manifest);
        for at in 0..good.len() {
            for bit in [1, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[at] ^= bit;
                assert!(parse(&bad).is_err(), "byte {at}");
            }
            assert!(parse(&good[..at]).is_err(), "cut at {at}");
        }
        // With its checksum made right, the sealed part still says so.
        let body_at = good.iter().position(|b| *b == b'\n').unwrap() + 1;
        for at in [good.len() - 1, good.len() - 30, body_at + 70] {
            let mut body = good[body_at..].to_vec();
            body[at - body_at] ^= 1;
            let bad = [head_of(&body).as_bytes(), &body].concat();
            assert!(matches!(parse(&bad), Err(Error::Damage { .. })), "byte {at}");
        }
        let other = Manifest::load(dir.path(), &MasterKey::random(&SystemRandomness).unwrap());
        assert!(matches!(other, Err(Error::WrongKey { .. })), "{other:?}");
    }

    #[test]
    fn another_version_and_another_thing_are_told_apart() {
        let parse = |bytes: &[u8]| ManifestFile::parse(bytes.to_vec(), Path::new("manifest"));
        let version = parse(b"unitape-store 7 00000000 2\n{}");
        assert!(matches!(version, Err(Error::ForeignVersion { found: 7, known: 1, .. })), "{version:?}");
        let old = parse(b"unitape-store 0 00000000 2\n{}").unwrap_err().to_string();
        assert!(old.contains("seal its tapes again"), "{old}");
        let other = parse(b"format = 1\n");
        assert!(matches!(other, Err(Error::Damage { .. })), "{other:?}");
        let nothing = check_format(Path::new("no such directory"));
        assert!(matches!(nothing, Err(Error::NotAStore { .. })));
    }
}
