//! Quarantine: what could not become events, kept as it came.
//!
//! The raw bytes stand in `quarantine.raw` beside the tape's segments, one message after the other; a
//! `quarantine` event on the tape says whose they are, why, and where in the raw log they stand. The raw bytes
//! are written before the event is published, so every event finds its bytes.

use crate::account::{Account, text, uint};
use crate::block::{Block, What};
use crate::bookkeeping::define_frame;
use crate::decode::{Format, How};
use crate::error::Error;
use crate::feed_state::Sort;
use crate::gone;
use crate::mapping::Mapping;
use crate::reference::{Reference, Told};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_model::{Dict, Dictionary, Event, Field, Header, Kind, Position, flags, frames};
use unitape_tape::{Options, Reader, Start, Writer};

const RAW_LOG: &str = "quarantine.raw";

/// The raw log of a tape, open for appending.
#[derive(Debug)]
pub struct RawLog {
    path: PathBuf,
    file: Option<File>,
    len: u64,
}

/// One entry of the quarantine.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Where its event stands on the tape.
    pub position: u64,
    /// Feed and file name.
    pub source: String,
    /// Offset of the message in the source, bytes.
    pub offset: u64,
    /// Length of the message, bytes.
    pub length: u64,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub detail: String,
    /// Whether a retry has made events of it.
    pub recovered: bool,
    #[serde(skip)]
    raw_at: u64,
    /// Id of the source's first definition.
    #[serde(skip)]
    source_id: u32,
    /// Id that events carry, which is another one in each 4 GiB.
    #[serde(skip)]
    extent_id: u32,
    /// The first bytes of the source, where the message cannot be read without them.
    #[serde(skip)]
    head: Vec<u8>,
}

/// What a retry did.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Retried {
    pub tried: u64,
    pub recovered: u64,
    pub events: u64,
    pub left: u64,
}

impl RawLog {
    /// The raw log of the tape in `dir`, of which the tape refers to the first `len` bytes; what a killed
    /// writer left behind them is cut off.
    ///
    /// # Errors
    /// When it is shorter than that, or cannot be opened.
    pub fn open(dir: &Path, len: u64) -> Result<Self, Error> {
        let path = dir.join(RAW_LOG);
        let fail = |source| Error::Raw { path: path.clone(), source };
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => {
                let have = file.metadata().map_err(fail)?.len();
                if have < len {
                    let what = format!("{have} bytes, but the tape refers to {len}");
                    return Err(fail(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, what)));
                }
                file.set_len(len).map_err(fail)?;
                Some(file)
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && len == 0 => None,
            Err(e) => return Err(fail(e)),
        };
        Ok(Self { path, file, len })
    }

    /// Appends a message; gives where it stands.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&mut self, raw: &[u8]) -> Result<u64, Error> {
        let fail = |source| Error::Raw { path: self.path.clone(), source };
        let file = match &self.file {
            Some(file) => file,
            None => {
                let options = &mut File::options();
                let file = options.read(true).write(true).create(true).truncate(true).open(&self.path);
                self.file.insert(file.map_err(fail)?)
            }
        };
        file.write_all_at(raw, self.len).map_err(fail)?;
        let at = self.len;
        self.len += raw.len() as u64;
        Ok(at)
    }

    /// Makes it durable.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        match &self.file {
            Some(file) => file.sync_data().map_err(|source| Error::Raw { path: self.path.clone(), source }),
            None => Ok(()),
        }
    }
}

/// The quarantine of the tape in `dir`, in tape order.
///
/// # Errors
/// When the tape cannot be read.
pub fn list(dir: &Path) -> Result<Vec<Entry>, Error> {
    let (mut account, mut reader) = gone::begin(dir)?;
    let mut entries = Vec::new();
    let mut late = HashSet::new();
    while let Some(run) = reader.next_run(1 << 20)? {
        for (at, header, frame) in frames(run.bytes) {
            let position = run.position.0 + at as u64;
            account.add(frame).map_err(|what| Error::Inconsistent { position, what })?;
            let Some(event) = Event::new(frame) else { continue };
            if header.is_meta() {
                continue;
            }
            if header.flags() & flags::LATE != 0 && event.kind() != Kind::Quarantine {
                late.insert((event.source(), event.offset()));
            } else if event.kind() == Kind::Quarantine {
                entries.push((event.offset(), entry(&account, &event, position)));
            }
        }
    }
    Ok(entries
        .into_iter()
        .map(|(offset, e)| Entry { recovered: late.contains(&(e.extent_id, offset)), ..e })
        .collect())
}

/// The entry whose event stands at `position`, with its raw bytes.
///
/// # Errors
/// When there is none, or its bytes cannot be read.
pub fn show(dir: &Path, position: Position) -> Result<(Entry, Vec<u8>), Error> {
    let found = list(dir)?.into_iter().find(|e| e.position == position.0);
    let entry = found.ok_or_else(|| Error::Inconsistent {
        position: position.0,
        what: "no quarantine event stands here; see `unitape quarantine list`".to_owned(),
    })?;
    let raw = raw_of(dir, &entry)?;
    Ok((entry, raw))
}

/// Tries every entry again with `mapping`, or with the shipped mapping of the source's name; what becomes events
/// is appended, flagged late, with the definitions it needs. Instruments are looked up in `reference` where the source
/// was read with reference data, and must be in it where they had to be then.
///
/// # Errors
/// When the tape cannot be read or written, no mapping is known for a source, or a source was read with reference data
/// and there is none now: its messages would get other names than their neighbours.
pub fn retry(dir: &Path, mapping: Option<&Mapping>, reference: Option<&Reference>) -> Result<Retried, Error> {
    let entries = list(dir)?;
    let account = Account::of(dir)?;
    for e in entries.iter().filter(|e| !e.recovered && reference.is_none()) {
        let sort = sort_of(&account, e);
        if let Some(told) = Told::in_mapping(sort.mapping.as_deref().unwrap_or_default()) {
            let what = format!(
                "was read with reference data ({}); name them with --reference FILE:MAPPING, the same or mended ones",
                told.files
            );
            return Err(Error::Config { origin: e.source.clone(), what });
        }
    }
    let id = Reader::open(dir, Start::End)?.id();
    let (mut writer, _) = Writer::open(dir, id, Options::default())?;
    let mut account = Account::of(dir)?;
    let mut done = Retried::default();
    for e in entries.iter().filter(|e| !e.recovered) {
        done.tried += 1;
        let format = format_of(&account, e, mapping, reference)?;
        let mut block = Block { base: e.offset, bytes: raw_of(dir, e)?, ..Block::default() };
        block.head = e.head.as_slice().into();
        block.eof = true;
        let nothing = Dictionary::default();
        format.decoder()?.decode(&mut block, e.extent_id, &nothing, &How::default());
        let whole = block.units.first().is_some_and(|u| u.what == What::Events && u.offset == e.offset)
            && block.tally.messages == 1;
        if !whole {
            continue;
        }
        let events = block.units[0].events;
        let Some(unit) = late_unit(&mut account.dictionary, &mut block) else { continue };
        writer.append(&unit)?;
        done.recovered += 1;
        done.events += u64::from(events);
    }
    writer.close()?;
    done.left = done.tried - done.recovered;
    Ok(done)
}

/// The block's one message as frames for the tape: names resolved, definitions first, all flagged late. `None`
/// when a dictionary has no place for its names.
fn late_unit(dictionary: &mut Dictionary, block: &mut Block) -> Option<Vec<u8>> {
    if block.without_place(0..block.fixups.len(), dictionary, |_| 0).is_some() {
        return None;
    }
    let mut out = Vec::new();
    for f in std::mem::take(&mut block.fixups) {
        let name = block.names.name(f.dict, f.id).expect("the block's own name").to_owned();
        let (id, new) = dictionary.intern(f.dict, name.as_bytes()).expect("it has a place");
        if new {
            define_frame(&mut out, f.dict, id, &name);
        }
        let width = if f.dict == Dict::Venue { 2 } else { 4 };
        let at = f.at as usize;
        block.arena[at..at + width].copy_from_slice(&id.to_le_bytes()[..width]);
    }
    let end = block.units[0].end as usize;
    let mut at = 0;
    while at < end {
        let header = Header::read(&block.arena[at..]).with_flags(flags::LATE);
        header.write(&mut block.arena[at..]);
        at += header.len_bytes();
    }
    out.extend_from_slice(&block.arena[..end]);
    Some(out)
}

fn sort_of(account: &Account, entry: &Entry) -> Sort {
    let source = account.sources.iter().find(|s| s.id == entry.source_id);
    source.map(|s| s.sort.clone()).unwrap_or_default()
}

fn format_of(
    account: &Account,
    entry: &Entry,
    mapping: Option<&Mapping>,
    reference: Option<&Reference>,
) -> Result<Format, Error> {
    let sort = sort_of(account, entry);
    let told = sort.mapping.as_deref().unwrap_or_default();
    let name = told.split('@').next().unwrap_or_default();
    let format = match mapping {
        Some(m) if m.format == sort.format => Format::by(m.clone()),
        _ => Format::named(&sort.format, name),
    }?;
    Ok(match (reference, Told::in_mapping(told)) {
        (Some(reference), Some(told)) => {
            format.with_reference(&Arc::new(reference.clone().strictly(told.strict)))
        }
        _ => format,
    })
}

fn entry(account: &Account, event: &Event<'_>, position: u64) -> Entry {
    let id = event.source();
    let (source, base) = account.source_of(id).map_or((None, 0), |(s, base)| (Some(s), base));
    Entry {
        position,
        source: source.map_or_else(String::new, |s| format!("{}/{}", s.feed, s.file)),
        offset: base + u64::from(event.offset()),
        length: uint(event, Field::Length).unwrap_or(0),
        reason: text(event, Field::Reason),
        detail: text(event, Field::Detail),
        recovered: false,
        raw_at: uint(event, Field::RawAt).unwrap_or(0),
        source_id: source.map_or(id, |s| s.id),
        extent_id: id,
        head: event.unmapped().find(|(name, _)| *name == "head").map_or_else(Vec::new, |(_, v)| head(v)),
    }
}

/// Bytes out of JSON, as [`crate::mapping::json_string`] writes them.
fn head(json: &str) -> Vec<u8> {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::String(text)) => text.into_bytes(),
        Ok(value) => {
            let hex = value["hex"].as_str().unwrap_or_default().as_bytes();
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
            hex.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn raw_of(dir: &Path, entry: &Entry) -> Result<Vec<u8>, Error> {
    raw_bytes(dir, (entry.raw_at, entry.length))
}

/// So many bytes of the raw log of the tape in `dir`, from this place on.
///
/// # Errors
/// When they are not there.
pub(crate) fn raw_bytes(dir: &Path, (raw_at, length): (u64, u64)) -> Result<Vec<u8>, Error> {
    let path = dir.join(RAW_LOG);
    let read = || {
        let file = File::open(&path)?;
        // Asked before memory is: the length is what the tape says, and a tape can be damaged.
        let end = raw_at.checked_add(length);
        if end.is_none_or(|end| file.metadata().is_ok_and(|m| m.len() < end)) {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
        }
        let mut raw = vec![0; length as usize];
        file.read_exact_at(&mut raw, raw_at)?;
        Ok(raw)
    };
    read().map_err(|source| Error::Raw { path: path.clone(), source })
}
