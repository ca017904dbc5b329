//! The units of each segment that the tape of a merge has when the merge begins.
//!
//! The account of the tape counts the units of a source. A user's message and an event without a source are in no such
//! account; the file `merge.units` beside the segments of the tape counts them:
//!
//! ```text
//!  {"format":1,"position":0,"feed":"","units":0} sum
//!  {"position":4096,"feed":"a","units":3} sum             written before the three units are on the tape, and durable
//!  {"position":9216,"feed":"b","units":1} sum
//! ```
//!
//! The units of a record are the first ones on the tape from its position on. So a record at or after the end of the tape
//! counts nothing, and of the last record those units count that the tape has.

use crate::account::TapeAccount;
use crate::account::retention_checkpoint;
use crate::error::Error;
use crate::pipeline::merge::state::{line, parse};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use unitape_model::{FrameHeader, Position, frames};
use unitape_tape::{Reader, StartPosition, open_regular};

/// The units of a segment that a tape has.
#[derive(Debug, Default)]
pub struct SegmentMergeProgress {
    /// Units of a source that are placed.
    pub units: u64,
    /// Units without a source that are placed.
    pub without_source: u64,
    /// Ids of its source definitions, in their order.
    pub sources: VecDeque<u32>,
}

/// The state of a merge of segments when it begins.
#[derive(Debug)]
pub struct PlacedUnits {
    /// The account of the tape.
    pub account: TapeAccount,
    /// The progress in each segment, by feed.
    pub by_feed: BTreeMap<String, SegmentMergeProgress>,
    /// The records of units without a source.
    pub log: UnitLog,
}

impl PlacedUnits {
    /// Reads the account of the tape in `dir`, which ends at `end`, and its progress in each segment.
    ///
    /// # Errors
    /// Fails if the tape cannot be read, or lacks what a merge must know.
    pub fn read(dir: &Path, end: Position) -> Result<Self, Error> {
        let account = TapeAccount::load(dir)?;
        retention_checkpoint::refuse_partial(&account)?;
        account.refuse_mismatch()?;
        let mut by_feed = BTreeMap::<String, SegmentMergeProgress>::new();
        for source in &account.sources {
            let progress = by_feed.entry(source.feed.clone()).or_default();
            progress.units += source.units;
            progress.sources.push_back(source.id);
            progress.sources.extend(source.further.keys().chain(source.retried.keys()));
        }
        // Ids are given in the order of the definitions.
        by_feed.values_mut().for_each(|progress| progress.sources.make_contiguous().sort_unstable());
        let (log, records) = UnitLog::open(dir, end)?;
        for record in records {
            by_feed.entry(record.feed).or_default().without_source += record.units;
        }
        Ok(Self { account, by_feed, log })
    }
}

/// A record: units of a segment that are next on the tape.
#[derive(Debug, Deserialize, Serialize)]
struct UnitRecord {
    /// In the first record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
    /// The end of the tape before them.
    position: u64,
    feed: String,
    units: u64,
}

/// The records of the units that no account counts.
#[derive(Debug)]
pub struct UnitLog {
    log_path: PathBuf,
    /// Open once the merge has a record.
    log_file: Option<File>,
}

impl UnitLog {
    /// Opens the records of the tape in `dir`, and removes those of units that the tape lacks.
    fn open(dir: &Path, end: Position) -> Result<(Self, Vec<UnitRecord>), Error> {
        let mut log = Self { log_path: dir.join(NAME), log_file: None };
        let file = match open_regular(&log.log_path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok((log, Vec::new())),
            Err(source) => return Err(log.error(source)),
        };
        let mut found = read_records(BufReader::new(file), end).map_err(|source| log.error(source))?;
        let last_record = found.records.pop();
        let on_tape = last_record.as_ref().map(|last| count_units(dir, last)).transpose()?.unwrap_or(0);
        let is_complete = last_record.as_ref().is_some_and(|last| last.units == on_tape);
        let length = if is_complete { found.bytes } else { found.bytes_before_last };
        let file = File::options().append(true).open(&log.log_path);
        let file = file.and_then(|file| file.set_len(length).map(|()| file));
        log.log_file = Some(file.map_err(|source| log.error(source))?);
        if let Some(last_record) = last_record.filter(|_| on_tape > 0) {
            let last = UnitRecord { units: on_tape, ..last_record };
            if !is_complete {
                log.write_record(&last)?;
            }
            found.records.push(last);
        }
        Ok((log, found.records))
    }

    /// Records that the next `units` of the tape, from `position` on, are those of a feed. The record is durable.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn append(&mut self, position: Position, feed: &str, units: u64) -> Result<(), Error> {
        if self.log_file.is_none() {
            self.log_file = Some(create(&self.log_path).map_err(|source| self.error(source))?);
        }
        self.write_record(&UnitRecord { format: None, position: position.0, feed: feed.to_owned(), units })
    }

    fn write_record(&mut self, record: &UnitRecord) -> Result<(), Error> {
        let Some(file) = &mut self.log_file else { return Ok(()) };
        let write_result =
            line(record).and_then(|line| file.write_all(&line)).and_then(|()| file.sync_data());
        write_result.map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> Error {
        Error::MergeState { path: self.log_path.clone(), source }
    }
}

/// Makes the file with its first record, whole or not at all.
fn create(path: &Path) -> io::Result<File> {
    let (dir, temp) = (path.parent().unwrap_or(Path::new(".")), path.with_extension("units.new"));
    let format_record = UnitRecord { format: Some(FORMAT), position: 0, feed: String::new(), units: 0 };
    let mut file = File::create(&temp)?;
    file.write_all(&line(&format_record)?)?;
    file.sync_all()?;
    std::fs::rename(&temp, path)?;
    File::open(dir)?.sync_all()?;
    File::options().append(true).open(path)
}

/// The records of units before the end of a tape.
struct FoundRecords {
    records: Vec<UnitRecord>,
    /// Bytes of the file up to the end of the last record, and up to its start.
    bytes: u64,
    bytes_before_last: u64,
}

/// Reads the records before `end` of the tape, up to an incomplete write.
fn read_records(mut file: BufReader<File>, end: Position) -> io::Result<FoundRecords> {
    let invalid = |reason: &str| io::Error::new(ErrorKind::InvalidData, reason.to_owned());
    let mut next_record = || -> io::Result<Option<(UnitRecord, u64)>> {
        let mut line = Vec::new();
        file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        Ok(parse::<UnitRecord>(&line).map(|record| (record, line.len() as u64)))
    };
    let (first, bytes) =
        next_record()?.ok_or_else(|| invalid("its first record is damaged; merge into a new tape"))?;
    if first.format != Some(FORMAT) {
        return Err(invalid(&format!("its format is not {FORMAT}, which this build knows")));
    }
    let mut found = FoundRecords { records: Vec::new(), bytes, bytes_before_last: bytes };
    while let Some((record, bytes)) = next_record()?.filter(|(record, _)| record.position < end.0) {
        found.records.push(record);
        (found.bytes_before_last, found.bytes) = (found.bytes, found.bytes + bytes);
    }
    Ok(found)
}

/// Counts the units of a record that are on the tape in `dir`.
fn count_units(dir: &Path, record: &UnitRecord) -> Result<u64, Error> {
    let mut reader = match Reader::open(dir, StartPosition::At(Position(record.position))) {
        // Retention removes what the tape had.
        Err(unitape_tape::Error::Retained { .. }) => return Ok(record.units),
        reader => reader?,
    };
    let mut units = 0;
    while units < record.units {
        let Some(run) = reader.next_run(1 << 16)? else { break };
        let is_last = |(_, header, _): &(usize, FrameHeader, &[u8])| header.is_last();
        units += frames(run.bytes).filter(is_last).count() as u64;
    }
    Ok(units.min(record.units))
}

/// Name of the file.
const NAME: &str = "merge.units";

const FORMAT: u32 = 1;

/// No record is longer: the name of a feed has no more bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
