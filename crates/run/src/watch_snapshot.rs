//! Snapshots of a live watch beside its alert tape: `ALERTS.state/%016x.watch`, named by the number of events judged.
//!
//! ```text
//!  32 bytes      BLAKE3 of all that follows
//!  one line      JSON: version, both tapes with their points, counts
//!  the rest      the state of the watch
//!
//!  source   ■ ■ ■ ■ ■ ■│■ ■ ■        a restart goes on here
//!  alerts     a   a   a│  a          and compares from here on
//! ```
//!
//! A snapshot is derived: without one, a watch judges the source from its oldest event. It is written once both tapes are
//! durable up to its points, and it is used only if both tapes have exactly these points: by lineage, ordinal, and a checksum
//! of the frames before them. State has names of people, so files are readable by their owner alone.

use crate::Error;
use crate::derived_tape::DerivedPoint;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use unitape_model::Position;
use unitape_tape::{LineagePoint, ReadOptions, Reader, StartPosition, TapeId};

/// A point of the source up to which a watch has judged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePoint {
    /// The epoch in which the tape was read.
    pub epoch: u64,
    /// The position after the last frame.
    pub position: u64,
    /// The number of events before it.
    pub events: u64,
    /// The checksum of the last frames before it, see [`TailChecksum`].
    pub tail: TailChecksum,
}

/// The checksum of the frames that begin in the last block of 4 KiB before a position. Another tape with the same id, such
/// as a copy that got other events, has other frames there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailChecksum {
    block: u64,
    crc: u32,
}

impl TailChecksum {
    /// Takes the next frame.
    #[inline]
    pub fn add_frame(&mut self, position: Position, frame: &[u8]) {
        let block = position.0 / BLOCK_BYTES;
        let crc_before = if block == self.block { self.crc } else { 0 };
        *self = Self { block, crc: crc32c::crc32c_append(crc_before, frame) };
    }

    /// Returns whether the tape in `dir` has these frames before `end`.
    fn is_of(self, dir: &Path, end: Position, read: ReadOptions) -> Option<bool> {
        let mut reader = Reader::open_with(dir, StartPosition::Oldest, read).ok()?;
        if reader.position().0 < self.block * BLOCK_BYTES {
            _ = reader.seek_frame(Position(self.block * BLOCK_BYTES)).ok()?;
        }
        let mut tail = Self::default();
        while reader.position() < end {
            let frame = reader.next().ok()??;
            tail.add_frame(frame.position, frame.bytes);
        }
        Some(reader.position() == end && tail == self)
    }
}

impl SourcePoint {
    /// Returns the point of a reader that has read frames with this tail.
    pub fn from_reader(reader: &Reader, tail: TailChecksum) -> Self {
        let LineagePoint { epoch, position } = reader.point();
        Self { epoch, position: position.0, events: reader.ordinal(), tail }
    }

    /// Returns its position with its epoch.
    pub fn point(&self) -> LineagePoint {
        LineagePoint { epoch: self.epoch, position: Position(self.position) }
    }

    /// Returns whether the tape in `dir` has this point.
    fn is_reached(&self, dir: &Path, id: TapeId, read: ReadOptions) -> bool {
        let point = self.point();
        let Ok(reader) = Reader::resume_with(dir, point, read) else { return false };
        reader.id() == id
            && reader.rewinds().count == 0
            && reader.position() == point.position
            && reader.ordinal() == self.events
            && self.tail.is_of(dir, point.position, read) == Some(true)
    }
}

/// A state of a watch, with the points of both tapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSnapshot {
    /// The point of the source.
    pub source: SourcePoint,
    /// The point of the alert tape.
    pub alerts: DerivedPoint,
    /// The alerts so far.
    pub alert_count: u64,
    /// The state, as [`unitape_watch::WatchState::save`] writes it.
    pub state: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotHeader {
    version: u32,
    /// The id of the alert tape, which comes from the source and the rules.
    alert_tape: String,
    source_tape: String,
    source: SourcePoint,
    alerts: DerivedPoint,
    alert_count: u64,
}

/// The snapshots of one alert tape.
#[derive(Debug)]
pub struct SnapshotStore {
    snapshot_dir: PathBuf,
    alert_tape: TapeId,
    source_tape: TapeId,
    /// The most bytes of a snapshot.
    bytes_max: u64,
}

impl SnapshotStore {
    /// Makes the store of the snapshots beside the alert tape in `alerts`. It makes no file yet.
    pub fn new(alerts: &Path, alert_tape: TapeId, source_tape: TapeId) -> Self {
        let mut name = alerts.file_name().unwrap_or_default().to_owned();
        name.push(".state");
        let snapshot_dir = alerts.with_file_name(name);
        Self { snapshot_dir, alert_tape, source_tape, bytes_max: SNAPSHOT_BYTES_MAX }
    }

    /// Returns the snapshots whose point the source in `source` has, the latest first. Damaged snapshots, and those of other
    /// rules or another source, are passed over. A snapshot that is too large is passed over as well, and `on_refused` is given
    /// the reason.
    pub fn latest(
        &self,
        source: &Path,
        read: ReadOptions,
        on_refused: impl Fn(&Error),
    ) -> impl Iterator<Item = WatchSnapshot> {
        let is_reached =
            move |snapshot: &WatchSnapshot| snapshot.source.is_reached(source, self.source_tape, read);
        let read_snapshot = move |path: PathBuf| match self.read_file(&path) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                on_refused(&Error::File { path, source: error });
                None
            }
            bytes => self.decode(&bytes.ok()?),
        };
        self.list_snapshots().into_iter().filter_map(move |(_, path)| read_snapshot(path)).filter(is_reached)
    }

    /// Writes a snapshot and removes all but the last three up to it. A snapshot ahead of it is of a source that was cut
    /// back since, so it goes as well.
    ///
    /// # Errors
    /// Fails if the disk refuses, or if the snapshot is too large to be read again.
    pub fn write_snapshot(&self, snapshot: &WatchSnapshot) -> Result<(), Error> {
        let path = self.snapshot_dir.join(format!("{:016x}{SUFFIX}", snapshot.source.events));
        let bytes = self.encode(snapshot);
        let write_result =
            self.check_length(bytes.len() as u64).and_then(|()| self.write_file(&path, &bytes));
        write_result.map_err(|source| Error::File { path, source })?;
        let (ahead, mut reached): (Vec<_>, Vec<_>) =
            self.list_snapshots().into_iter().partition(|(events, _)| *events > snapshot.source.events);
        for (_, path) in ahead.into_iter().chain(reached.drain(KEPT.min(reached.len())..)) {
            // One that stays does no harm: it is used only if both tapes reach it.
            _ = fs::remove_file(path);
        }
        Ok(())
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.snapshot_dir)?;
        let temp = self.snapshot_dir.join("writing");
        let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temp, path)?;
        fs::File::open(&self.snapshot_dir)?.sync_all()
    }

    /// Lists the snapshots, the latest first.
    fn list_snapshots(&self) -> Vec<(u64, PathBuf)> {
        let entries = fs::read_dir(&self.snapshot_dir).into_iter().flatten();
        let mut snapshots: Vec<(u64, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
                // To open a pipe would wait for its writer.
                let events = u64::from_str_radix(name, 16).ok().filter(|_| path.is_file())?;
                Some((events, path))
            })
            .collect();
        snapshots.sort_unstable_by(|a, b| b.cmp(a));
        snapshots
    }

    fn encode(&self, snapshot: &WatchSnapshot) -> Vec<u8> {
        let header = SnapshotHeader {
            version: VERSION,
            alert_tape: self.alert_tape.to_string(),
            source_tape: self.source_tape.to_string(),
            source: snapshot.source,
            alerts: snapshot.alerts,
            alert_count: snapshot.alert_count,
        };
        let mut bytes = vec![0; HASH_BYTES];
        serde_json::to_writer(&mut bytes, &header).expect("a header is JSON");
        bytes.push(b'\n');
        bytes.extend_from_slice(&snapshot.state);
        let hash = blake3::hash(&bytes[HASH_BYTES..]);
        bytes[..HASH_BYTES].copy_from_slice(hash.as_bytes());
        bytes
    }

    /// Fails if a snapshot of this length is too large.
    fn check_length(&self, length: u64) -> std::io::Result<()> {
        if length <= self.bytes_max {
            return Ok(());
        }
        let reason = format!("a snapshot has at most {} bytes, and this one has {length}", self.bytes_max);
        Err(std::io::Error::new(ErrorKind::FileTooLarge, reason))
    }

    fn read_file(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let file = fs::File::open(path)?;
        self.check_length(file.metadata()?.len())?;
        let mut bytes = Vec::new();
        file.take(self.bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the snapshot of this alert tape in `bytes`. Returns `None` if it is damaged, or of another version, tape or
    /// source.
    fn decode(&self, bytes: &[u8]) -> Option<WatchSnapshot> {
        let (hash, rest) = bytes.split_at_checked(HASH_BYTES)?;
        if blake3::hash(rest).as_bytes() != hash {
            return None;
        }
        let line_end = rest.iter().position(|byte| *byte == b'\n')?;
        let header: SnapshotHeader = serde_json::from_slice(&rest[..line_end]).ok()?;
        let is_ours = header.version == VERSION
            && header.alert_tape == self.alert_tape.to_string()
            && header.source_tape == self.source_tape.to_string();
        is_ours.then(|| WatchSnapshot {
            source: header.source,
            alerts: header.alerts,
            alert_count: header.alert_count,
            state: rest[line_end + 1..].to_vec(),
        })
    }
}

/// Of the header and the state.
const VERSION: u32 = 1;
const HASH_BYTES: usize = 32;
const BLOCK_BYTES: u64 = 4096;
const SUFFIX: &str = ".watch";
/// The most bytes of a snapshot.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;
/// Snapshots kept: after a power loss the newest may be ahead of a tape.
const KEPT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use unitape_tape::{Writer, WriterOptions};

    /// A file of any size in the directory of snapshots was read into memory as a whole.
    #[test]
    fn a_snapshot_that_is_too_large_is_neither_written_nor_read() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        Writer::open(&source, TapeId(7), WriterOptions::default()).unwrap().0.close().unwrap();
        let reader = Reader::open_with(&source, StartPosition::Oldest, ReadOptions::default()).unwrap();
        let snapshot = WatchSnapshot {
            source: SourcePoint::from_reader(&reader, TailChecksum::default()),
            alerts: DerivedPoint::default(),
            alert_count: 0,
            state: vec![1; 1000],
        };
        let store = SnapshotStore::new(&dir.path().join("alerts"), TapeId(8), TapeId(7));
        store.write_snapshot(&snapshot).unwrap();
        let small = SnapshotStore {
            bytes_max: 1000,
            ..SnapshotStore::new(&dir.path().join("alerts"), TapeId(8), TapeId(7))
        };
        let read = |store: &SnapshotStore| {
            let reasons = RefCell::new(Vec::new());
            let on_refused = |error: &Error| reasons.borrow_mut().push(error.to_string());
            let snapshots: Vec<_> = store.latest(&source, ReadOptions::default(), on_refused).collect();
            (snapshots, reasons.into_inner())
        };
        assert_eq!(read(&store), (vec![snapshot.clone()], vec![]));
        let (snapshots, reasons) = read(&small);
        assert_eq!((snapshots.len(), reasons.len()), (0, 1));
        assert!(reasons[0].contains(".watch: a snapshot has at most 1000 bytes"), "{reasons:?}");
        let refused = small.write_snapshot(&snapshot).unwrap_err().to_string();
        assert!(refused.contains("a snapshot has at most 1000 bytes"), "{refused}");
        assert_eq!(read(&store).0.len(), 1, "a refused snapshot leaves the one before");
    }
}
