//! Journals: what is received is written down first, and what was written down is the source.
//!
//! ```text
//!  FEED/00000001.raw     a stream's bytes as they came; each connection is a source of its own
//!  FEED/00000001.times   16 bytes a read: end of its stretch in .raw u64, receive time in ns i64; little-endian
//!  FEED/00000001.pcap    datagrams with their receive times, as `unitape_base::capture::write` documents
//!  FEED/.at              16 bytes: number of the last .pcap u64, where some record of it begins u64
//!  FEED/.resume          where the files of a resumed stream begin in it, 16 bytes each
//!  FEED/.number          number of the last file that there ever was u64
//!  FEED/closed           nothing more will come
//! ```
//!
//! So a restart, a replay and the evidence of an event are the same for live feeds and for files, and a tape is a
//! function of what was recorded. A byte of a stream counts as received when its stretch is in `.times`, which is
//! written after the bytes; an entry with the time [`END`] says that the stream ended there. After a kill -9, bytes
//! without an entry get one without a time (`NO_TIME`), so that nothing that was read is lost. A record that was cut
//! short is cut off and counted.

mod number;
mod packets;
mod stream_offsets;

use crate::error::Error;
use crate::formats::stamp::NO_TIME;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use unitape_model::UnixNanos;

use number::note_number;
pub use number::{InitialJournalState, LastFile, noted_number, number_of_file};
pub use packets::PacketJournal;
use stream_offsets::StreamOffsets;

/// Present in a journal to which nothing will be added.
pub const CLOSED: &str = "closed";

/// The greatest number of a file: names have eight digits and are in the order of numbers.
const NUMBER_MAX: u64 = 99_999_999;

/// The time of the entry that ends a stream.
pub const END: UnixNanos = UnixNanos::MAX;

const ENTRY: usize = 16;

/// Locked by who writes the journal.
const LOCK: &str = ".lock";

/// Entries of `.times` that one look takes in, at most.
const LOOK_ENTRIES: usize = 4096;

/// The receive times of a stream's journal, as they are read.
#[derive(Debug)]
pub struct ReceiveTimeReader {
    times_file: File,
    times_path: PathBuf,
    /// Next byte of the file.
    times_offset: u64,
    /// Stretches that have not been given to a block wholly.
    pending_ranges: Vec<(u64, UnixNanos)>,
    ranges_end: u64,
    has_ended: bool,
}

impl ReceiveTimeReader {
    /// Opens the receive times of the journal at `raw`, from the byte `from` on.
    ///
    /// # Errors
    /// Fails if the journal has no times.
    pub fn open(raw: &Path, from: u64) -> Result<Self, Error> {
        let path = raw.with_extension("times");
        let file =
            File::open(&path).map_err(|source| Error::Read { path: path.clone(), offset: 0, source })?;
        let mut this = Self {
            times_file: file,
            times_path: path,
            times_offset: 0,
            pending_ranges: Vec::new(),
            ranges_end: 0,
            has_ended: false,
        };
        // Entries are short beside what they speak of; those before the place are read and dropped.
        loop {
            let start_offset = this.times_offset;
            this.poll()?;
            this.pending_ranges.retain(|(end, _)| *end > from);
            if this.times_offset == start_offset {
                return Ok(this);
            }
        }
    }

    /// Reads new times. Returns the end of the readable part of the stream, and whether the stream ends there.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn poll(&mut self) -> Result<(u64, bool), Error> {
        let mut buf = [0; ENTRY * LOOK_ENTRIES];
        let (path, offset) = (&self.times_path, self.times_offset);
        let fail = |source| Error::Read { path: path.clone(), offset, source };
        let n = match self.has_ended {
            true => 0,
            false => read_at(&self.times_file, &mut buf, self.times_offset).map_err(fail)?,
        };
        let (entries, _) = buf[..n].as_chunks::<ENTRY>();
        for entry in entries {
            let (end, ts) = parse_entry(entry);
            self.times_offset += ENTRY as u64;
            if ts == END {
                self.has_ended = true;
                break;
            }
            if end < self.ranges_end {
                return Err(fail(std::io::Error::new(
                    ErrorKind::InvalidData,
                    "an entry before the one before it",
                )));
            }
            self.ranges_end = end;
            self.pending_ranges.push((end, ts));
        }
        Ok((self.ranges_end, self.has_ended))
    }

    /// Appends the receive times of a block that ends at `end` to `times`.
    pub fn set_block_times(&mut self, end: u64, times: &mut Vec<(u64, UnixNanos)>) {
        let whole_count = self.pending_ranges.partition_point(|(e, _)| *e <= end);
        let upto = (whole_count + 1).min(self.pending_ranges.len());
        times.extend_from_slice(&self.pending_ranges[..upto]);
        self.pending_ranges.drain(..whole_count);
    }
}

/// The fate of the current file when its receiver begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamContinuity {
    /// It has ended: each connection is a stream.
    Connection,
    /// It continues: a pipe is one stream.
    Pipe,
    /// It continues, and unitape asks the stream's sender for the byte after the last one.
    Resumed,
    /// It continues: datagrams are independent of each other.
    Packets,
}

/// The journal of a feed's streams, open for appending.
#[derive(Debug)]
pub struct StreamJournal {
    journal_dir: PathBuf,
    open_file: Option<OpenStreamFile>,
    next_file_number: u64,
    stream_offsets: StreamOffsets,
    continuity: StreamContinuity,
}

#[derive(Debug)]
struct OpenStreamFile {
    raw_file: File,
    times_file: File,
    raw_path: PathBuf,
    /// Bytes in the journal.
    raw_length: u64,
    times_len: u64,
    /// Bytes after `len` that were moved there and have no entry yet, and when they were received.
    moved_bytes: Option<(u64, UnixNanos)>,
}

impl StreamJournal {
    /// Opens the journal in `dir`, creates it if needed, and repairs the damage of a kill. `last_file` is the last
    /// file that the journal ever had.
    ///
    /// # Errors
    /// Fails if the disk refuses, or the last file of a resumed stream was removed.
    pub fn open(dir: &Path, continuity: StreamContinuity, last_file: LastFile) -> Result<Self, Error> {
        make_directory(dir)?;
        let last = last_number(dir, "raw")?;
        let places = StreamOffsets::open(dir)?;
        // The place of a file is noted before the file before it ends.
        let ever = last_file.number.max(places.last().saturating_sub(1));
        let refuse = |name: &str| {
            let reason = "is missing, and how much of the stream was received is known from it alone; put it back, or give \
                        the feed another name and have the sender start over";
            let source = std::io::Error::new(ErrorKind::InvalidData, reason);
            Err(Error::Read { path: dir.join(name), offset: 0, source })
        };
        if continuity == StreamContinuity::Resumed && last < ever {
            return refuse(&format!("{ever:08}.raw"));
        }
        let next_number = next_number(dir, last.max(ever))?;
        let mut this = Self {
            journal_dir: dir.to_owned(),
            open_file: None,
            next_file_number: next_number,
            stream_offsets: places,
            continuity,
        };
        let mut current_number = this.number();
        if last > 0 {
            this.open_file = OpenStreamFile::recover_file(&this.path_of_file(last))?;
            if continuity == StreamContinuity::Resumed
                && this.open_file.is_some()
                && !this.stream_offsets.knows(last)
            {
                return refuse(StreamOffsets::NAME);
            }
            // A pipe does not send again the bytes that a power loss removed; new bytes must not take their place.
            // The next run must know it even if nothing comes in this one.
            let is_cut = continuity == StreamContinuity::Pipe && this.file_len() < last_file.read_of(last);
            if is_cut {
                current_number = this.next_file_number;
            }
            if continuity == StreamContinuity::Connection || last < ever || is_cut {
                this.end()?;
            }
        }
        note_number(dir, current_number)?;
        Ok(this)
    }

    /// Begins a stream, unless one continues. Returns how many bytes it has, in all of its files.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn begin(&mut self) -> Result<u64, Error> {
        let stream = match &mut self.open_file {
            Some(stream) => stream,
            None => {
                // A stream that begins after others has a place, too.
                if self.continuity == StreamContinuity::Resumed
                    && !self.stream_offsets.knows(self.next_file_number)
                {
                    self.stream_offsets.note(self.next_file_number, 0)?;
                }
                let stream = OpenStreamFile::new(self.path_of_file(self.next_file_number))?;
                // A file that could not be made is tried again under the same number.
                self.next_file_number += 1;
                let stream = self.open_file.insert(stream);
                note_number(&self.journal_dir, self.next_file_number - 1)?;
                stream
            }
        };
        Ok(self.stream_offsets.base(self.next_file_number - 1) + stream.raw_length)
    }

    /// Returns the number of the current file.
    pub fn number(&self) -> u64 {
        self.next_file_number - 1
    }

    /// Returns the length of the current file in bytes.
    pub fn file_len(&self) -> u64 {
        self.open_file.as_ref().map_or(0, |stream| stream.raw_length)
    }

    /// Ends the current file and lets the stream continue in the next one.
    ///
    /// # Errors
    /// Fails if the disk refuses; the same may be tried again.
    pub fn rotate(&mut self) -> Result<(), Error> {
        if self.open_file.is_some() {
            let begins = self.stream_offsets.base(self.number()) + self.file_len();
            self.stream_offsets.note(self.next_file_number, begins)?;
            self.end()?;
        }
        self.begin().map(drop)
    }

    /// Appends bytes that were received at `ts`.
    ///
    /// # Errors
    /// Fails if the disk refuses; nothing was appended then, and the same may be tried again.
    ///
    /// # Panics
    /// Panics if no stream was begun.
    pub fn append(&mut self, bytes: &[u8], ts: UnixNanos) -> Result<(), Error> {
        let stream = self.open_file.as_mut().expect("a stream was begun");
        stream.commit_moved()?;
        stream.raw_file.write_all_at(bytes, stream.raw_length).map_err(|e| stream.file_error(e))?;
        stream.commit(bytes.len() as u64, ts)
    }

    /// Moves the content of a pipe into the journal, in the kernel, so that a kill -9 in between loses nothing.
    /// Returns the number of bytes; 0 at the pipe's end.
    ///
    /// # Errors
    /// Fails if the pipe or the disk refuses; `WouldBlock` when the pipe is empty. The call may be retried: what was
    /// moved and has no entry yet gets it first, and is then counted.
    ///
    /// # Panics
    /// Panics if no stream was begun.
    pub fn splice(
        &mut self,
        pipe: &impl std::os::fd::AsFd,
        clock: impl Fn() -> UnixNanos,
    ) -> Result<usize, Error> {
        let stream = self.open_file.as_mut().expect("a stream was begun");
        if let Some(n) = stream.commit_moved()? {
            return Ok(n);
        }
        let mut offset = stream.raw_length;
        let flags = rustix::pipe::SpliceFlags::NONBLOCK;
        let n = rustix::pipe::splice(pipe, None, &stream.raw_file, Some(&mut offset), SPLICE_BYTES, flags)
            .map_err(|e| stream.file_error(e.into()))?;
        if n > 0 {
            stream.moved_bytes = Some((n as u64, clock()));
            stream.commit_moved()?;
        }
        Ok(n)
    }

    /// Ends the current stream.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn end(&mut self) -> Result<(), Error> {
        if let Some(stream) = &mut self.open_file {
            stream.commit_moved()?;
            stream.commit(0, END)?;
        }
        self.open_file = None;
        Ok(())
    }

    /// Notes that no more data will arrive.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(&mut self) -> Result<(), Error> {
        self.end()?;
        close(&self.journal_dir)
    }

    fn path_of_file(&self, number: u64) -> PathBuf {
        self.journal_dir.join(format!("{number:08}.raw"))
    }
}

impl OpenStreamFile {
    fn new(path: PathBuf) -> Result<Self, Error> {
        // The times first, so that readers that see the stream find them.
        let times = create(&path.with_extension("times"))?;
        let raw = create(&path)?;
        Ok(Self {
            raw_file: raw,
            times_file: times,
            raw_path: path,
            raw_length: 0,
            times_len: 0,
            moved_bytes: None,
        })
    }

    /// Opens the current stream; `None` if it has ended.
    fn recover_file(path: &Path) -> Result<Option<Self>, Error> {
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        let options = || {
            let mut o = File::options();
            o.read(true).write(true).create(true).truncate(false);
            o
        };
        let times = options().open(path.with_extension("times")).map_err(fail)?;
        let raw = options().open(path).map_err(fail)?;
        let len = raw.metadata().map_err(fail)?.len();
        let times_len = times.metadata().map_err(fail)?.len() / ENTRY as u64 * ENTRY as u64;
        times.set_len(times_len).map_err(fail)?;
        let mut this = Self {
            raw_file: raw,
            times_file: times,
            raw_path: path.to_owned(),
            raw_length: len,
            times_len,
            moved_bytes: None,
        };
        let mut last_entry = [0; ENTRY];
        let (mut end, mut ts) = (0, NO_TIME);
        if times_len > 0 {
            this.times_file.read_exact_at(&mut last_entry, times_len - ENTRY as u64).map_err(fail)?;
            (end, ts) = parse_entry(&last_entry);
        }
        if ts == END {
            return Ok(None);
        }
        if len < end {
            let reason = format!("{len} bytes, but its times end at {end}");
            return Err(fail(std::io::Error::new(ErrorKind::InvalidData, reason)));
        }
        if len > end {
            this.raw_length = end;
            this.commit(len - end, NO_TIME)?;
        }
        Ok(Some(this))
    }

    fn commit(&mut self, bytes: u64, ts: UnixNanos) -> Result<(), Error> {
        let journal_end = self.raw_length + bytes;
        let mut entry = [0; ENTRY];
        entry[..8].copy_from_slice(&journal_end.to_le_bytes());
        entry[8..].copy_from_slice(&ts.0.to_le_bytes());
        self.times_file.write_all_at(&entry, self.times_len).map_err(|e| self.file_error(e))?;
        self.times_len += ENTRY as u64;
        self.raw_length = journal_end;
        Ok(())
    }

    /// Writes the entry of the moved bytes; returns their number.
    fn commit_moved(&mut self) -> Result<Option<usize>, Error> {
        let Some((bytes, ts)) = self.moved_bytes else { return Ok(None) };
        self.commit(bytes, ts)?;
        self.moved_bytes = None;
        Ok(Some(bytes as usize))
    }

    fn file_error(&self, source: std::io::Error) -> Error {
        Error::Read { path: self.raw_path.clone(), offset: self.raw_length, source }
    }
}

/// Returns the total length of all journal files in `dir`, in bytes.
pub fn journaled_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let data = entries.filter(|e| e.path().extension().is_some_and(|x| x == "raw" || x == "pcap"));
    data.filter_map(|e| Some(e.metadata().ok()?.len())).sum()
}

/// Notes that no more data will arrive in the journal in `dir`.
///
/// # Errors
/// Fails if the disk refuses.
pub fn close(dir: &Path) -> Result<(), Error> {
    create(&dir.join(CLOSED)).map(drop)
}

/// Holds the journal in `dir`, which is made, for one writer: as long as the file is open.
///
/// # Errors
/// Fails if another process holds the journal, or if the disk refuses.
pub fn lock(dir: &Path) -> Result<File, Error> {
    make_directory(dir)?;
    let path = dir.join(LOCK);
    let file = create(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let reason =
                "another run writes this journal; give each run a directory of its own (run.journal)";
            let source = std::io::Error::new(ErrorKind::WouldBlock, reason);
            Err(Error::Read { path, offset: 0, source })
        }
        Err(TryLockError::Error(source)) => Err(Error::Read { path, offset: 0, source }),
    }
}

fn make_directory(dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir).map_err(|source| Error::Read { path: dir.to_owned(), offset: 0, source })
}

fn create(path: &Path) -> Result<File, Error> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(|source| Error::Read { path: path.to_owned(), offset: 0, source })
}

/// Returns the number after `last`.
fn next_number(dir: &Path, last: u64) -> Result<u64, Error> {
    match last {
        0..NUMBER_MAX => Ok(last + 1),
        _ => {
            let reason = format!("its last file has number {last}, and a journal has at most {NUMBER_MAX}");
            let source = std::io::Error::new(ErrorKind::InvalidData, reason);
            Err(Error::Read { path: dir.to_owned(), offset: 0, source })
        }
    }
}

fn last_number(dir: &Path, extension: &str) -> Result<u64, Error> {
    let fail = |source| Error::Read { path: dir.to_owned(), offset: 0, source };
    let mut last_end = 0;
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == extension) {
            let number = path.file_stem().and_then(|s| s.to_str()).and_then(|s| s.parse().ok());
            last_end = last_end.max(number.unwrap_or(0));
        }
    }
    Ok(last_end)
}

fn split_entry(entry: &[u8; ENTRY]) -> (u64, i64) {
    let (end, ts) = entry.split_at(8);
    (u64::from_le_bytes(end.try_into().expect("eight")), i64::from_le_bytes(ts.try_into().expect("eight")))
}

/// Parses an entry: the end of a range, and its receive time.
fn parse_entry(entry: &[u8; ENTRY]) -> (u64, UnixNanos) {
    let (end, ts) = split_entry(entry);
    (end, UnixNanos(ts))
}

fn read_at(file: &File, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
    loop {
        match file.read_at(buf, offset) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The maximum number of bytes that one splice moves: the capacity of a pipe.
const SPLICE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against missing offsets: the sender was asked for a much earlier byte, and its bytes arrived twice.
    #[test]
    fn a_resumed_stream_needs_its_places() {
        let dir = tempfile::tempdir().unwrap();
        let open = |continuity| StreamJournal::open(dir.path(), continuity, LastFile::default());
        // The feed was not resumed at first.
        let mut journal = open(StreamContinuity::Connection).unwrap();
        journal.begin().unwrap();
        journal.append(b"before", UnixNanos(1)).unwrap();
        drop(journal);
        let mut journal = open(StreamContinuity::Connection).unwrap();
        assert_eq!(journal.number(), 1);
        journal.begin().unwrap();
        drop(journal);
        let mut journal = open(StreamContinuity::Connection).unwrap();
        journal.begin().unwrap();
        journal.end().unwrap();
        let mut journal = open(StreamContinuity::Resumed).unwrap();
        assert_eq!((journal.begin().unwrap(), journal.number()), (0, 4));
        journal.append(b"four", UnixNanos(2)).unwrap();
        journal.rotate().unwrap();
        journal.append(b"five!", UnixNanos(3)).unwrap();
        drop(journal);
        let mut journal = open(StreamContinuity::Resumed).unwrap();
        assert_eq!((journal.begin().unwrap(), journal.number()), (9, 5));
        drop(journal);
        std::fs::remove_file(dir.path().join(StreamOffsets::NAME)).unwrap();
        let error = open(StreamContinuity::Resumed).unwrap_err().to_string();
        assert!(error.contains(".resume") && error.contains("is missing"), "{error}");
    }
}
