//! The manifest: the list of the store's contents. A file that it does not name does not belong to the store.
//!
//! One line with format, checksum and length, then JSON. It is written last, whole, under another name, and renamed
//! into its place: a seal that is killed before that leaves the store as it was.

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
    /// Bytes of the dictionary that count.
    pub dictionary_bytes: u64,
    /// Tapes that were sealed, in the order of their first seal.
    pub tapes: Vec<TapeSealProgress>,
    /// The parts that seals added, in their order.
    pub parts: Vec<SealedPart>,
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
        FileId { day: self.date, schema: entry.schema, generation: self.generation, tape: self.tape }
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

    /// Reads the manifest of the store in `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = Self::path(dir);
        let mut text = Vec::new();
        let opened = match File::open(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let what =
                    if dir.is_dir() { "there is no manifest in it" } else { "there is no such directory" };
                return Err(Error::NotAStore { path: dir.into(), what });
            }
            other => other.with_context("open", &path)?,
        };
        opened.take(BYTES_MAX + 1).read_to_end(&mut text).with_context("read", &path)?;
        Self::parse(&text, &path)
    }

    /// Reads the text of a manifest.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self> {
        let bad = |offset: usize, what: &str| Err(Error::damage(path, offset as u64, what));
        if text.len() as u64 > BYTES_MAX {
            return bad(text.len(), "longer than any manifest is");
        }
        let line = text.iter().take(64).position(|b| *b == b'\n').unwrap_or(0);
        let words: Vec<&str> = std::str::from_utf8(&text[..line]).unwrap_or("").split(' ').collect();
        let [WORD, version, crc, length] = words[..] else {
            return bad(0, "it does not begin as a manifest does");
        };
        let Ok(version) = version.parse::<u64>() else { return bad(0, "it names no version") };
        if version != u64::from(FORMAT_VERSION) {
            return Err(Error::ForeignVersion {
                path: path.into(),
                found: version,
                known: FORMAT_VERSION.into(),
            });
        }
        let body = &text[line + 1..];
        if length.parse() != Ok(body.len()) {
            return bad(line + 1, "it has another length than it says");
        }
        if u32::from_str_radix(crc, 16) != Ok(crc32c::crc32c(body)) {
            return bad(line + 1, "its checksum does not match");
        }
        serde_json::from_slice(body).or_else(|e| bad(line + 1, &e.to_string()))
    }

    /// Puts this manifest in the place of the one before.
    pub fn store(&self, dir: &Path) -> Result<()> {
        let body = serde_json::to_vec(self).expect("plain data is always JSON");
        let head = format!("{WORD} {FORMAT_VERSION} {:08x} {}\n", crc32c::crc32c(&body), body.len());
        let (new, path) = (Self::path_new(dir), Self::path(dir));
        let mut file = File::create(&new).with_context("make", &new)?;
        file.write_all(head.as_bytes()).and_then(|()| file.write_all(&body)).with_context("write", &new)?;
        file.sync_all().with_context("sync", &new)?;
        fs::rename(&new, &path).with_context("rename", &new)?;
        sync_dir(dir)
    }

    /// The state of a tape.
    pub fn tape(&self, tape: TapeId) -> Option<&TapeSealProgress> {
        self.tapes.iter().find(|t| t.tape == tape)
    }
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
            dictionary_bytes: 77,
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
        let manifest = sample();
        manifest.store(dir.path()).unwrap();
        assert_eq!(Manifest::load(dir.path()).unwrap(), manifest);
        let good = fs::read(Manifest::path(dir.path())).unwrap();
        for at in 0..good.len() {
            for bit in [1, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[at] ^= bit;
                // A changed case of a hexadecimal digit of the checksum is the same checksum.
                if let Ok(same) = Manifest::parse(&bad, dir.path()) {
                    assert!(same == manifest && bad[at].is_ascii_alphabetic(), "byte {at}");
                }
            }
            assert!(Manifest::parse(&good[..at], dir.path()).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn another_version_and_another_thing_are_told_apart() {
        let path = Path::new("manifest");
        let version = Manifest::parse(b"unitape-store 1 00000000 2\n{}", path);
        assert!(matches!(version, Err(Error::ForeignVersion { found: 1, known: 0, .. })), "{version:?}");
        let other = Manifest::parse(b"format = 1\n", path);
        assert!(matches!(other, Err(Error::Damage { .. })), "{other:?}");
        let nothing = Manifest::load(Path::new("no such directory"));
        assert!(matches!(nothing, Err(Error::NotAStore { .. })));
    }
}
