//! The store's own names: `dictionary.log`, only ever appended to; the manifest says how much of it counts.
//!
//! ```text
//! 0  "UNIDICT0"   8  format version u32   12  crc32c of 0..12 u32
//! then records:  sort u8 │ 0 0 0 │ bytes u32 │ crc32c of sort, bytes and what follows u32 │ name, or source
//! ```
//!
//! A name's token is its place among the names of its sort, from 1. A source (sort 255) is the id of its tape, its id
//! there, and its definition as a frame, in which its token is the index.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unitape_model::schema::at;
use unitape_model::{Dictionary, Event, EventKind, NameKind};
use unitape_tape::TapeId;

use crate::FORMAT_VERSION;
use crate::error::{Error, IoContext, Result};

const MAGIC: &[u8; 8] = b"UNIDICT0";
const HEAD: u64 = 16;
const RECORD: usize = 12;
const SOURCE: u8 = 255;
/// Tape id and source id before the frame of a source.
const SOURCE_HEAD: usize = 20;
/// The longest record: a source whose names fill a frame.
const PAYLOAD_MAX: usize = SOURCE_HEAD + u16::MAX as usize * 64;

/// Names of the store and their tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenDictionary {
    pub names: Dictionary,
    /// Definitions of sources; the token of one is its place, from 1.
    sources: Vec<Vec<u8>>,
    tokens: BTreeMap<(u128, u32), u32>,
    /// Records that are not in the file yet.
    pending: Vec<u8>,
}

impl TokenDictionary {
    /// The file.
    pub fn path(store: &Path) -> PathBuf {
        store.join("dictionary.log")
    }

    /// Reads the first `bytes` of the file. With a damaged one, gives the part before the damage, and the damage.
    pub fn load(store: &Path, bytes: u64) -> (Self, Option<Error>) {
        let mut this = Self::default();
        let problem = if bytes == 0 { None } else { this.read(&Self::path(store), bytes).err() };
        (this, problem)
    }

    fn read(&mut self, path: &Path, bytes: u64) -> Result<()> {
        let file = File::open(path).with_context("open", path)?;
        let mut file = BufReader::new(file.take(bytes));
        let mut offset = 0;
        let mut exact = |buffer: &mut [u8], offset: &mut u64| {
            match file.read_exact(buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(Error::damage(
                        path,
                        *offset,
                        "the dictionary is shorter than the manifest says",
                    ));
                }
                other => other.with_context("read", path)?,
            }
            *offset += buffer.len() as u64;
            Ok(())
        };
        let mut head = [0; HEAD as usize];
        exact(&mut head, &mut offset)?;
        if head != header() {
            return Err(Error::damage(path, 0, "the head of the dictionary is not one"));
        }
        let mut payload = Vec::new();
        while offset < bytes {
            let start = offset;
            let bad = |what: &str| Err(Error::damage(path, start, what));
            let mut head = [0; RECORD];
            exact(&mut head, &mut offset)?;
            let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
            if length > PAYLOAD_MAX || length as u64 > bytes - offset {
                return bad("a record of the dictionary has no length that it can have");
            }
            payload.resize(length, 0);
            exact(&mut payload, &mut offset)?;
            if head[8..] != crc32c::crc32c_append(crc32c::crc32c(&head[..8]), &payload).to_le_bytes() {
                return bad("the checksum of a record of the dictionary does not match");
            }
            let taken = match NameKind::from_u8(head[0]) {
                Some(dict) => self.names.define(dict, self.names.len(dict) + 1, &payload),
                None => head[0] == SOURCE && self.take_source(&payload),
            };
            if !taken {
                return bad("a record of the dictionary that is no name and no source");
            }
        }
        Ok(())
    }

    fn take_source(&mut self, payload: &[u8]) -> bool {
        let Some((head, frame)) = payload.split_at_checked(SOURCE_HEAD) else { return false };
        if Event::new(frame).is_none_or(|e| e.kind() != EventKind::Source) {
            return false;
        }
        let tape = u128::from_le_bytes(head[..16].try_into().expect("sixteen bytes"));
        let id = u32::from_le_bytes(head[16..].try_into().expect("four bytes"));
        self.sources.push(frame.to_vec());
        self.tokens.insert((tape, id), self.sources.len() as u32);
        true
    }

    /// The token of a name, given now if it has none.
    pub fn intern(&mut self, dict: NameKind, name: &str) -> Result<u32> {
        let (token, new) =
            self.names.intern(dict, name.as_bytes()).map_err(|_| Error::DictionaryFull(dict.name()))?;
        if new {
            self.record(dict as u8, &[name.as_bytes()]);
        }
        Ok(token)
    }

    /// The token of source `id` of `tape`, whose definition is `frame`, given now if it has none.
    pub fn intern_source(&mut self, tape: TapeId, id: u32, frame: &[u8]) -> Result<u32> {
        if let Some(token) = self.tokens.get(&(tape.0, id)) {
            return Ok(*token);
        }
        // The two greatest have another meaning in the place where it will stand.
        let token = u32::try_from(self.sources.len() + 1).ok().filter(|t| *t < u32::MAX - 1);
        let token = token.ok_or(Error::DictionaryFull("source"))?;
        let mut frame = frame.to_vec();
        frame[..4].fill(0);
        frame[at::INSTRUMENT..at::INSTRUMENT + 4].copy_from_slice(&token.to_le_bytes());
        self.record(SOURCE, &[&tape.0.to_le_bytes(), &id.to_le_bytes(), &frame]);
        self.sources.push(frame);
        self.tokens.insert((tape.0, id), token);
        Ok(token)
    }

    /// Definitions of sources, as events.
    pub fn sources(&self) -> impl Iterator<Item = Event<'_>> {
        self.sources.iter().filter_map(|frame| Event::new(frame))
    }

    fn record(&mut self, sort: u8, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        let mut head = [sort, 0, 0, 0, 0, 0, 0, 0];
        head[4..].copy_from_slice(&(length as u32).to_le_bytes());
        let crc = parts.iter().fold(crc32c::crc32c(&head), |crc, p| crc32c::crc32c_append(crc, p));
        self.pending.extend_from_slice(&head);
        self.pending.extend_from_slice(&crc.to_le_bytes());
        parts.iter().for_each(|p| self.pending.extend_from_slice(p));
    }

    /// Appends what is new after the first `bytes` of the file and flushes it; gives how much of it counts then.
    pub fn append(&mut self, store: &Path, bytes: u64) -> Result<u64> {
        let path = Self::path(store);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context("open", &path)?;
        let mut start = bytes;
        if start == 0 {
            file.write_all_at(&header(), 0).with_context("write", &path)?;
            start = HEAD;
        }
        // The tail that a killed seal may have left is cut off.
        file.set_len(start).with_context("cut", &path)?;
        file.write_all_at(&self.pending, start).with_context("append to", &path)?;
        file.sync_all().with_context("sync", &path)?;
        let end = start + self.pending.len() as u64;
        self.pending.clear();
        Ok(end)
    }
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

    /// A token that means another name after a damage, or after a seal that was killed, makes all rows lie.
    #[test]
    fn tokens_stay_and_damage_is_found_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut names = TokenDictionary::default();
        for (dict, name) in [(NameKind::Venue, "XLON"), (NameKind::Owner, "ACME"), (NameKind::Venue, "CHIX")]
        {
            names.intern(dict, name).unwrap();
        }
        assert_eq!(names.intern(NameKind::Venue, "CHIX").unwrap(), 2);
        let bytes = names.append(dir.path(), 0).unwrap();
        names.intern(NameKind::Owner, "BETA").unwrap();
        let more = names.append(dir.path(), bytes).unwrap();

        let (back, problem) = TokenDictionary::load(dir.path(), bytes);
        assert!(problem.is_none() && back.names.len(NameKind::Owner) == 1, "only what counts: {problem:?}");
        let (back, _) = TokenDictionary::load(dir.path(), more);
        assert_eq!(back.names.name(NameKind::Venue, 2), Some("CHIX"));
        assert_eq!(back.names.name(NameKind::Owner, 2), Some("BETA"));

        let good = std::fs::read(TokenDictionary::path(dir.path())).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(TokenDictionary::path(dir.path()), &bad).unwrap();
            let (_, problem) = TokenDictionary::load(dir.path(), more);
            let Some(Error::Damage { offset, .. }) = problem else { panic!("byte {at}: {problem:?}") };
            assert!(offset <= at as u64, "byte {at}, reported {offset}");
        }
        std::fs::write(TokenDictionary::path(dir.path()), &good[..good.len() - 1]).unwrap();
        assert!(matches!(TokenDictionary::load(dir.path(), more).1, Some(Error::Damage { .. })));
    }
}
