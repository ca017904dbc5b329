//! What a merge of tapes has placed of each of them: `merge.state` beside the segments of its own tape.
//!
//! ```text
//!  {"format":1,"inputs":[…],"end":0,…} sum      who is merged, and the state at position 0
//!  {"end":262080,"at":[…]} sum                  written before the frames up to 262080 are on the tape
//!  {"end":524160,"at":[…]} sum
//! ```
//!
//! A record comes before the frames that it describes, and these are published all at once. So the last record that ends
//! at or before the end of the tape says how far each input is placed. After a power loss the tape may end between two
//! records: the merge then makes the frames in between once more, and compares them.

use crate::block::MessageTally;
use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use unitape_tape::open_regular;

/// Name of the file.
pub const NAME: &str = crate::account::MERGE_STATE;

const FORMAT: u32 = 1;
/// No record is longer: it may have a million sources.
const LINE_BYTES_MAX: usize = 1 << 30;
/// Digits of the sum of a record.
const SUM_DIGITS: usize = 16;

/// A tape that is merged.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct InputIdentity {
    /// Its name in the merge.
    pub name: String,
    /// Its id.
    pub tape: String,
}

/// How far a tape is placed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct InputProgress {
    /// The epoch in which its frames were read.
    pub epoch: u64,
    /// Everything before it is placed.
    pub position: u64,
    /// The running maximum of its time; `None` before its first event.
    pub running_max: Option<i64>,
    /// A frame before the position, by which the tape is known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<PlacedFrame>,
}

/// A frame that is placed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct PlacedFrame {
    /// Its position.
    pub position: u64,
    /// The first eight bytes of the BLAKE3 of its bytes.
    pub hash: u64,
}

impl PlacedFrame {
    /// Makes the record of a frame with these bytes.
    pub fn new(position: u64, bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        Self { position, hash: u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes")) }
    }
}

/// The id of a source on a tape, and on the tape of the merge.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SourceId {
    /// Number of the tape.
    pub input: usize,
    /// The id there.
    pub own: u32,
    /// The id here.
    pub id: u32,
}

/// The name of a feed on a tape, and on the tape of the merge.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct FeedName {
    /// Number of the tape.
    pub input: usize,
    /// The name there.
    pub own: String,
    /// The name here.
    pub name: String,
}

/// A part of a tape that is not placed: retention had removed it, or it is damaged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct GapRecord {
    /// Number of the tape.
    pub input: usize,
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
}

/// A record: the changes since the previous record.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct MergeRecord {
    /// In the first record.
    #[serde(skip_serializing_if = "is_zero")]
    pub format: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputIdentity>,
    /// Feeds that more than one tape has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// Where the inputs end for the merge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<u64>,
    /// End of the tape with the frames of this record.
    pub end: u64,
    /// How far each tape is placed then.
    #[serde(rename = "at")]
    pub progress: Vec<InputProgress>,
    /// Bytes of the raw log then.
    pub raw: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<FeedName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapRecord>,
    /// Parts that were passed over because they are damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<GapRecord>,
    /// Parts that a repair accepted without a check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<GapRecord>,
    /// Messages of users that are placed then.
    #[serde(skip_serializing_if = "is_none")]
    pub user_messages: u64,
    /// What marks of progress count that is not on this tape, by source; all of them, where one has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bases: Option<MarkBases>,
    /// The account up to `end`; at the end of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<serde_json::Value>,
}

/// What the marks of progress of an input count and the tape of the merge does not have, because it was gone.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct MarkBases {
    /// By id of the source here.
    pub known: BTreeMap<u32, MessageTally>,
    /// Sources whose next mark says it.
    pub open: BTreeSet<u32>,
}

/// The records of a merge.
#[derive(Debug)]
pub struct MergeStateLog {
    log_path: PathBuf,
    log_file: File,
}

/// The existing records, read one by one.
#[derive(Debug)]
pub struct MergeStateReader {
    log_path: PathBuf,
    log_reader: BufReader<File>,
    first_record: MergeRecord,
    /// Bytes of the records that were read.
    bytes: u64,
    line_bytes: Vec<u8>,
}

impl MergeRecord {
    /// Applies a later record.
    pub fn apply(&mut self, later: MergeRecord) {
        if !later.targets.is_empty() {
            self.targets = later.targets;
        }
        (self.end, self.progress, self.raw) = (later.end, later.progress, later.raw);
        self.user_messages = later.user_messages;
        self.sources.extend(later.sources);
        self.feeds.extend(later.feeds);
        self.gaps.extend(later.gaps);
        self.damaged.extend(later.damaged);
        self.accepted.extend(later.accepted);
        self.bases = later.bases.or(self.bases.take());
        // An account is one of a position, and the position has changed.
        if later.account.is_some() {
            self.account = later.account;
        }
    }

    /// Returns whether the record has a place for each input and names no other input.
    fn is_consistent(&self) -> bool {
        let count = self.inputs.len();
        let parts = self.gaps.iter().chain(&self.damaged).chain(&self.accepted).map(|part| part.input);
        let named_file =
            self.sources.iter().map(|source| source.input).chain(self.feeds.iter().map(|feed| feed.input));
        self.progress.len() == count
            && self.targets.len() == count
            && parts.chain(named_file).all(|input| input < count)
    }
}

impl MergeStateReader {
    /// Reads the first record of the tape in `dir`; `None` where there is no such file. It gets its name when its first record is
    /// durable.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if its first record is damaged.
    pub fn open(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(NAME);
        let file = match open_regular(&path) {
            Ok(file) => BufReader::new(file),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::MergeState { path, source }),
        };
        let mut this = Self {
            log_path: path,
            log_reader: file,
            first_record: MergeRecord::default(),
            bytes: 0,
            line_bytes: Vec::new(),
        };
        match this.next()? {
            Some(first) if first.format == FORMAT => this.first_record = first,
            Some(first) => {
                let reason = format!("it is of format {}, this build knows {FORMAT}", first.format);
                return Err(this.state_error(&reason));
            }
            None => {
                let reason = "its first record is damaged, without which nobody knows what is merged there; merge into a new tape";
                return Err(this.state_error(reason));
            }
        }
        Ok(Some(this))
    }

    /// Returns the first record, which names the inputs.
    pub fn first(&self) -> &MergeRecord {
        &self.first_record
    }

    /// Finds the state of the last record that ends at or before `end` of the tape, and the length of the file up to
    /// there. Returns `None` if all records are after `end`. Leaves out records of an incomplete write.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if its records do not agree.
    pub fn state_at(mut self, end: u64) -> Result<Option<FoundState>, Error> {
        if self.first_record.end > end {
            return Ok(None);
        }
        let mut stored_state =
            FoundState { merge_state: std::mem::take(&mut self.first_record), bytes: self.bytes };
        while let Some(record) = self.next()?.filter(|record| record.end <= end) {
            stored_state.merge_state.apply(record);
            stored_state.bytes = self.bytes;
        }
        if !stored_state.merge_state.is_consistent() {
            return Err(self.state_error("its records do not agree with each other"));
        }
        Ok(Some(stored_state))
    }

    /// Reads the next record; `None` after the last whole record.
    fn next(&mut self) -> Result<Option<MergeRecord>, Error> {
        self.line_bytes.clear();
        self.read_line().map_err(|source| Error::MergeState { path: self.log_path.clone(), source })?;
        let record: Option<MergeRecord> = parse(&self.line_bytes);
        self.bytes += if record.is_some() { self.line_bytes.len() as u64 } else { 0 };
        Ok(record)
    }

    /// Reads up to the end of a line, or to a byte that no record has: a file that lost its content may be of any size.
    fn read_line(&mut self) -> std::io::Result<()> {
        while self.line_bytes.len() < LINE_BYTES_MAX {
            let bytes = match self.log_reader.fill_buf() {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let line_length = bytes.iter().position(|byte| *byte < b' ');
            let byte_count = line_length.map_or(bytes.len(), |end| end + 1);
            self.line_bytes.extend_from_slice(&bytes[..byte_count]);
            self.log_reader.consume(byte_count);
            if line_length.is_some() || byte_count == 0 {
                break;
            }
        }
        Ok(())
    }

    fn state_error(&self, reason: &str) -> Error {
        let source = std::io::Error::new(ErrorKind::InvalidData, reason.to_owned());
        Error::MergeState { path: self.log_path.clone(), source }
    }
}

/// A state, and the bytes of the file that say it.
#[derive(Debug)]
pub struct FoundState {
    /// All records up to it, as one.
    pub merge_state: MergeRecord,
    /// Bytes of these records.
    pub bytes: u64,
}

impl MergeStateLog {
    /// Begins the records of a new merge; the first is durable.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn create(dir: &Path, first: &MergeRecord) -> Result<Self, Error> {
        Self::replace(dir, first)?;
        let path = dir.join(NAME);
        let file = File::options().append(true).open(&path);
        let file = file.map_err(|source| Error::MergeState { path: path.clone(), source })?;
        Ok(Self { log_path: path, log_file: file })
    }

    /// Continues after the first `bytes`.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn resume(dir: &Path, bytes: u64) -> Result<Self, Error> {
        let path = dir.join(NAME);
        let fail = |source| Error::MergeState { path: path.clone(), source };
        let file = File::options().append(true).open(&path).map_err(fail)?;
        file.set_len(bytes).map_err(fail)?;
        Ok(Self { log_path: path, log_file: file })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn append(&mut self, record: &MergeRecord) -> Result<(), Error> {
        let fail = |source| Error::MergeState { path: self.log_path.clone(), source };
        let line = line(record).map_err(fail)?;
        self.log_file.write_all(&line).map_err(fail)
    }

    /// Puts one record in the place of all, whole or not at all; it is durable then.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn replace(dir: &Path, state: &MergeRecord) -> Result<(), Error> {
        let path = dir.join(NAME);
        let fail = |source| Error::MergeState { path: path.clone(), source };
        let write = || {
            let temp = dir.join("merge.new");
            let mut file = File::create(&temp)?;
            file.write_all(&line(&MergeRecord { format: FORMAT, ..state.clone() })?)?;
            file.sync_all()?;
            std::fs::rename(&temp, &path)?;
            File::open(dir)?.sync_all()
        };
        write().map_err(fail)
    }
}

/// Encodes a record as a line of JSON with its sum.
pub fn line(record: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    let sum = blake3::hash(&line).to_hex();
    line.push(b' ');
    line.extend_from_slice(&sum.as_bytes()[..SUM_DIGITS]);
    line.push(b'\n');
    Ok(line)
}

/// Parses a line of [`line()`]; `None` if it is incomplete or damaged.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let line = line.strip_suffix(b"\n")?;
    let (json, sum) = line.split_at_checked(line.len().checked_sub(SUM_DIGITS + 1)?)?;
    let is_intact = blake3::hash(json).to_hex().as_bytes()[..SUM_DIGITS] == sum[1..];
    is_intact.then(|| serde_json::from_slice(json).ok())?
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::ErrorCause;

    fn first() -> MergeRecord {
        let inputs = ["a", "b"].map(|name| InputIdentity { name: name.to_owned(), tape: "1".to_owned() });
        MergeRecord {
            inputs: inputs.into(),
            targets: vec![64; 2],
            progress: vec![InputProgress::default(); 2],
            ..MergeRecord::default()
        }
    }

    fn read_state(dir: &Path, records: &[MergeRecord], end: u64) -> Result<Option<FoundState>, String> {
        let mut log = MergeStateLog::create(dir, &records[0]).unwrap();
        records[1..].iter().for_each(|record| log.append(record).unwrap());
        MergeStateReader::open(dir).unwrap().expect("a state").state_at(end).map_err(|e| e.to_string())
    }

    /// Guards against records that must not count: an incomplete record, and records of frames that are not on the
    /// tape.
    #[test]
    fn the_state_is_that_of_the_last_record_on_the_tape() {
        let dir = tempfile::tempdir().unwrap();
        let later =
            |end| MergeRecord { end, raw: end / 64, progress: first().progress, ..MergeRecord::default() };
        let records = [first(), later(64), later(128), later(640)];
        for (end, raw) in [(0, 0), (63, 0), (64, 1), (639, 2), (u64::MAX, 10)] {
            let stored_state = read_state(dir.path(), &records, end).unwrap().unwrap();
            assert_eq!(stored_state.merge_state.raw, raw, "{end}");
            let file_bytes = std::fs::read(dir.path().join(NAME)).unwrap();
            std::fs::write(
                dir.path().join(NAME),
                &file_bytes
                    [..stored_state.bytes as usize + 5.min(file_bytes.len() - stored_state.bytes as usize)],
            )
            .unwrap();
            let cut =
                MergeStateReader::open(dir.path()).unwrap().unwrap().state_at(u64::MAX).unwrap().unwrap();
            assert_eq!((cut.merge_state.raw, cut.bytes), (raw, stored_state.bytes), "{end}");
        }
        assert!(read_state(dir.path(), &[MergeRecord { end: 64, ..first() }], 0).unwrap().is_none());
        let record_line = line(&MergeRecord { format: FORMAT, ..first() }).unwrap();
        let cuts = [0, 1, 20, record_line.len() - 1].map(|end| &record_line[..end]);
        for text in [&b"{}\n"[..], b"\0\0\0"].into_iter().chain(cuts) {
            std::fs::write(dir.path().join(NAME), text).unwrap();
            let error = MergeStateReader::open(dir.path()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("merge.state") && message.contains("damaged"), "{message}");
            assert_eq!(error.cause(), ErrorCause::Data);
        }
        // A file system that lost the content leaves zeros, of which no memory has enough.
        File::options().write(true).open(dir.path().join(NAME)).unwrap().set_len(1 << 40).unwrap();
        assert!(MergeStateReader::open(dir.path()).is_err());
    }

    /// Guards against records with right checksums that name absent inputs.
    #[test]
    fn records_that_do_not_agree_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let part = GapRecord { input: 2, from: 0, to: 64 };
        let wrong = [
            MergeRecord { gaps: vec![part], ..first() },
            MergeRecord { damaged: vec![part], ..first() },
            MergeRecord { accepted: vec![part], ..first() },
            MergeRecord { sources: vec![SourceId { input: 9, own: 1, id: 1 }], ..first() },
            MergeRecord { progress: vec![InputProgress::default()], ..first() },
            MergeRecord { targets: vec![64; 3], ..first() },
        ];
        for record in wrong {
            let message = read_state(dir.path(), &[record], u64::MAX).unwrap_err();
            assert!(message.contains("do not agree"), "{message}");
        }
    }
}
