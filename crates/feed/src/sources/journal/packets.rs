//! The journal of datagrams: a capture that grows.

use super::{
    ENTRY, LastFile, create, last_number, make_directory, next_number, note_number, read_at, split_entry,
};
use crate::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, write};
use unitape_model::UnixNanos;

/// The journal of a feed's datagrams, open for appending.
#[derive(Debug)]
pub struct PacketJournal {
    journal_dir: PathBuf,
    open_file: Option<(File, PathBuf, u64)>,
    next_file_number: u64,
    /// A file grows to about this, bytes; then the next one begins.
    file_bytes: u64,
    /// So long after midnight a day begins, and with it a file, ns.
    day_begins_ns: Option<i64>,
    /// The day of the last record.
    day: Option<i64>,
    batch: Vec<u8>,
    /// Bytes written since [`PacketJournal::flush`] last reported.
    unreported_bytes: u64,
    /// The place in the current file at the last note.
    noted_offset: u64,
    /// Bytes of a record that a kill had cut short, which were cut off.
    pub cut_bytes: u64,
}

impl PacketJournal {
    /// Opens the journal in `dir` and creates the directory; cuts off an incomplete last record that a kill left. A
    /// new file begins after about `file_bytes`, and at a set time after each midnight (UTC). `known` is the last
    /// file that there ever was.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn open(
        dir: &Path,
        file_bytes: u64,
        day_begins: Option<Duration>,
        last_file: LastFile,
    ) -> Result<Self, Error> {
        make_directory(dir)?;
        let last = last_number(dir, "pcap")?;
        let mut this = Self {
            journal_dir: dir.to_owned(),
            open_file: None,
            next_file_number: next_number(dir, last.max(last_file.number))?,
            file_bytes,
            day_begins_ns: day_begins.map(|d| i64::try_from(d.as_nanos()).unwrap_or(0)),
            day: None,
            batch: Vec::new(),
            unreported_bytes: 0,
            noted_offset: 0,
            cut_bytes: 0,
        };
        let mut current_number = this.next_file_number - 1;
        // A file that another one followed has ended.
        if last > 0 && last >= last_file.number {
            let path = this.path_of_file(last);
            let fail = |source| Error::Read { path: path.clone(), offset: 0, source };
            let file = File::options().read(true).write(true).open(&path).map_err(fail)?;
            // A damaged file is left to its reader, which reports it; the next file begins.
            if let Some((whole_bytes, ts)) = whole_records(&file, this.noted_at(last)).map_err(fail)? {
                this.cut_bytes = file.metadata().map_err(fail)?.len() - whole_bytes;
                file.set_len(whole_bytes).map_err(fail)?;
                if whole_bytes < last_file.read_of(last) {
                    // A power loss took the rest; what comes must not be in its place. The next run must know it even
                    // where nothing comes in this one.
                    current_number = this.next_file_number;
                } else {
                    (this.noted_offset, this.day) = (whole_bytes, ts.and_then(|ts| this.day_of(ts)));
                    this.open_file = Some((file, path, whole_bytes));
                    if whole_bytes == 0 {
                        write::file_header(&mut this.batch);
                        this.flush()?;
                    }
                }
            }
        }
        note_number(dir, current_number)?;
        Ok(this)
    }

    /// Returns the current batch, to which [`mod@write`] must append a whole record of this time.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn batch(&mut self, ts: UnixNanos) -> Result<&mut Vec<u8>, Error> {
        if self.batch.len() >= BATCH_BYTES {
            self.write_batch()?;
        }
        if let Some(day) = self.day_of(ts) {
            // A clock that steps back makes no day.
            if self.day.is_some_and(|before| day > before) {
                self.write_batch()?;
                self.open_file = None;
            }
            self.day = self.day.max(Some(day));
        }
        Ok(&mut self.batch)
    }

    /// Writes the batch down; returns how many bytes were written since it was last called.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn flush(&mut self) -> Result<u64, Error> {
        self.write_batch()?;
        Ok(std::mem::take(&mut self.unreported_bytes))
    }

    fn write_batch(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if self.open_file.as_ref().is_none_or(|(_, _, len)| *len >= self.file_bytes) {
            let path = self.path_of_file(self.next_file_number);
            let file = create(&path)?;
            let mut head = Vec::new();
            write::file_header(&mut head);
            file.write_all_at(&head, 0).map_err(|source| Error::Read {
                path: path.clone(),
                offset: 0,
                source,
            })?;
            let made = head.len() as u64;
            // A file that could not be made is tried again under the same number.
            self.next_file_number += 1;
            self.unreported_bytes += made;
            self.noted_offset = made;
            self.open_file = Some((file, path, made));
            note_number(&self.journal_dir, self.next_file_number - 1)?;
        }
        let (file, path, len) = self.open_file.as_mut().expect("made above");
        file.write_all_at(&self.batch, *len).map_err(|source| Error::Read {
            path: path.clone(),
            offset: *len,
            source,
        })?;
        let record_offset = *len;
        *len += self.batch.len() as u64;
        self.unreported_bytes += self.batch.len() as u64;
        self.batch.clear();
        if record_offset - self.noted_offset >= NOTE_BYTES {
            self.noted_offset = record_offset;
            self.note_record(record_offset)?;
        }
        Ok(())
    }

    fn path_of_file(&self, number: u64) -> PathBuf {
        self.journal_dir.join(format!("{number:08}.pcap"))
    }

    fn day_of(&self, ts: UnixNanos) -> Option<i64> {
        Some(ts.0.saturating_sub(self.day_begins_ns?).div_euclid(DAY_NS))
    }

    /// Notes that a record begins here, so that who opens the journal need not go through all of a long file.
    fn note_record(&self, offset: u64) -> Result<(), Error> {
        let path = self.journal_dir.join(NOTED);
        let entry = [(self.next_file_number - 1).to_le_bytes(), offset.to_le_bytes()].concat();
        let write_outcome = create(&path).map(|file| file.write_all_at(&entry, 0));
        write_outcome?.map_err(|source| Error::Read { path, offset: 0, source })
    }

    /// Returns the noted start of a record in this file; 0 without a note.
    fn noted_at(&self, number: u64) -> u64 {
        let entry = std::fs::read(self.journal_dir.join(NOTED)).ok();
        let entry = entry.as_deref().and_then(|e| e.first_chunk::<ENTRY>());
        entry
            .map(split_entry)
            .filter(|(file_number, _)| *file_number == number)
            .map_or(0, |(_, offset)| offset.max(0) as u64)
    }
}

/// Returns the length of a capture's whole records in bytes, and the time of the last record. Returns `None` if other
/// bytes are between them. If a record begins at `noted_offset`, earlier records are not read.
fn whole_records(file: &File, noted_offset: u64) -> std::io::Result<Option<(u64, Option<UnixNanos>)>> {
    let mut walker = CaptureWalker::default();
    let (mut buf, mut base, mut offset, mut ts) = (Vec::new(), 0u64, 0, None);
    loop {
        match walker.next(&buf, offset) {
            NextCaptureRecord::Packet(p) => (offset, ts) = (p.end, p.ts_ns.map(UnixNanos)),
            NextCaptureRecord::Dropped { end, ts_ns, .. } => (offset, ts) = (end, Some(UnixNanos(ts_ns))),
            // The header, which says how to read all others.
            NextCaptureRecord::Skip { .. }
                if base == 0 && noted_offset > 0 && noted_offset < file.metadata()?.len() =>
            {
                (base, offset) = (noted_offset, 0);
                buf.clear();
            }
            NextCaptureRecord::Skip { end } => offset = end,
            NextCaptureRecord::Lost { .. } => return Ok(None),
            NextCaptureRecord::More => {
                buf.drain(..offset);
                base += offset as u64;
                offset = 0;
                let record_start = buf.len();
                buf.resize(record_start + (1 << 20), 0);
                let n = read_at(file, &mut buf[record_start..], base + record_start as u64)?;
                buf.truncate(record_start + n);
                if n == 0 {
                    return Ok(Some((base, ts)));
                }
            }
        }
    }
}

/// The file that notes the start of a record in the last file, beside the files: number of the file, offset.
const NOTED: &str = ".at";

/// It is noted again after this many bytes.
const NOTE_BYTES: u64 = 64 << 20;

/// A batch is written down when it has this many bytes, at the latest.
const BATCH_BYTES: usize = 1 << 20;

const DAY_NS: i64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const TS: i64 = 1_772_434_800_000_000_000;

    fn append(journal: &mut PacketJournal, n: i64, ts_ns: i64) {
        let (from, to) = ("10.0.0.1:1".parse().unwrap(), "239.0.0.1:2".parse().unwrap());
        write::datagram(journal.batch(UnixNanos(ts_ns)).unwrap(), ts_ns, from, to, &n.to_le_bytes());
    }

    /// Numbers and times of all records of a file.
    fn read(path: &Path) -> Vec<(i64, i64)> {
        let bytes = std::fs::read(path).unwrap();
        let (mut walker, mut offset, mut all) = (CaptureWalker::default(), 0, Vec::new());
        loop {
            match walker.next(&bytes, offset) {
                NextCaptureRecord::Packet(p) => {
                    let number = i64::from_le_bytes(bytes[p.end - 8..p.end].try_into().unwrap());
                    all.push((number, p.ts_ns.unwrap()));
                    offset = p.end;
                }
                NextCaptureRecord::Skip { end } => offset = end,
                NextCaptureRecord::More if offset == bytes.len() => return all,
                other => panic!("{other:?} at {offset}"),
            }
        }
    }

    /// Guards against reading a whole long journal before a socket is open. The notes may also describe another file,
    /// or an offset past the end after a power loss: then the whole journal is read.
    #[test]
    fn a_long_file_goes_on_where_it_was_noted() {
        for note in [None, Some((1u64, 24 + 3 * 52)), Some((1, 1i64 << 40)), Some((2, 50)), Some((1, -5))] {
            let dir = tempfile::tempdir().unwrap();
            let mut journal = PacketJournal::open(dir.path(), u64::MAX, None, LastFile::default()).unwrap();
            (0..10).for_each(|n| append(&mut journal, n, TS + n));
            assert_eq!(journal.flush().unwrap(), 24 + 10 * (16 + 28 + 8));
            let path = journal.path_of_file(1);
            drop(journal);
            // A kill, in the middle of the last record.
            File::options().write(true).open(&path).unwrap().set_len(24 + 10 * 52 - 3).unwrap();
            if let Some((number, offset)) = note {
                let entry = [number.to_le_bytes(), offset.to_le_bytes()].concat();
                std::fs::write(dir.path().join(NOTED), entry).unwrap();
            }
            let mut journal = PacketJournal::open(dir.path(), u64::MAX, None, LastFile::default()).unwrap();
            assert_eq!(journal.cut_bytes, 49, "{note:?}");
            append(&mut journal, 10, TS + 10);
            journal.flush().unwrap();
            let want: Vec<_> = (0..9).chain([10]).map(|n| (n, TS + n)).collect();
            assert_eq!(read(&path), want, "{note:?}");
        }
    }

    #[test]
    fn what_is_noted_is_where_a_record_begins() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = PacketJournal::open(dir.path(), u64::MAX, None, LastFile::default()).unwrap();
        let (from, to) = ("10.0.0.1:1".parse().unwrap(), "239.0.0.1:2".parse().unwrap());
        for n in 0..2 * NOTE_BYTES / 60_000 + 100 {
            write::datagram(journal.batch(UnixNanos(TS)).unwrap(), TS + n as i64, from, to, &[0; 60_000]);
        }
        journal.flush().unwrap();
        let offset = journal.noted_at(1);
        assert!(offset >= NOTE_BYTES && (offset - 24).is_multiple_of(60_000 + 28 + 16), "{offset}");
        let len = std::fs::metadata(journal.path_of_file(1)).unwrap().len();
        assert_eq!(
            whole_records(&File::open(journal.path_of_file(1)).unwrap(), offset).unwrap().unwrap().0,
            len
        );
    }

    /// Guards against one file for the whole week: it could never be removed, and each restart read it from its
    /// start.
    #[test]
    fn a_day_begins_with_a_file() {
        let dir = tempfile::tempdir().unwrap();
        // 07:00 of that day; a day begins at 22:30.
        let begins = Some(Duration::from_secs(22 * 3600 + 30 * 60));
        let hour = 3_600_000_000_000;
        let mut journal = PacketJournal::open(dir.path(), u64::MAX, begins, LastFile::default()).unwrap();
        let times = [0, 15 * hour, 16 * hour, 15 * hour, 39 * hour];
        times.iter().zip(0..).for_each(|(ts, n)| append(&mut journal, n, TS + ts));
        journal.flush().unwrap();
        drop(journal);
        // The same day, after a restart, and the next one.
        let mut journal = PacketJournal::open(dir.path(), u64::MAX, begins, LastFile::default()).unwrap();
        append(&mut journal, 5, TS + 39 * hour + 1);
        append(&mut journal, 6, TS + 63 * hour + 1);
        journal.flush().unwrap();
        let numbers = |file| read(&journal.path_of_file(file)).iter().map(|(n, _)| *n).collect::<Vec<_>>();
        assert_eq!([1, 2, 3].map(numbers), [vec![0, 1], vec![2, 3, 4, 5], vec![6]]);
        let mut small = PacketJournal::open(dir.path(), 60, None, LastFile::default()).unwrap();
        append(&mut small, 7, TS);
        small.flush().unwrap();
        append(&mut small, 8, TS);
        small.flush().unwrap();
        assert_eq!((read(&small.path_of_file(3)).len(), read(&small.path_of_file(4))), (1, vec![(7, TS)]));
        assert_eq!(read(&small.path_of_file(5)), vec![(8, TS)]);
    }
}
