//! The follower behind the writer: dictionary log, checksums, durable position, and in a hot tape the copy
//! on the disk.
//!
//! It knows the tape only through its files, so it can be a thread of the writer or a process of its own. After
//! a death it begins again at the segment of the durable position and does everything from there once more;
//! whatever is there already comes out the same.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use unitape_model::{Header, Position, frame::KIND_PAD};

use crate::disk::again;
use crate::disk::definitions::DefinitionLog;
use crate::disk::layout::{Meta, Paths, SegmentHeader, list_segments, segment_path};
use crate::disk::live::Live;
use crate::disk::map::{Seen, Segment};
use crate::disk::run::{Lock, State};
use crate::disk::sys;
use crate::error::{At, Error, Result};
use crate::keep::retention::Removal;
use crate::keep::retire::Caretaker;
use crate::keep::seal::{seal, unseal};
use crate::record::copy::Copy;
use crate::record::durable::{Durable, Flushed};
use crate::record::flush::{self, Flush};
use crate::{DEFINITION_KINDS, Sync};

/// Runs the recorder of a hot tape as a process of its own, until `stop` is set and all is recorded.
///
/// Waits for a writer as long as it must; a writer may come and go.
///
/// # Errors
/// The lock, the disk, or damage. What is recorded stays.
pub fn record(dir: &Path, sync: Sync, removal: Removal, stop: &AtomicBool) -> Result<()> {
    let live = Live::open(dir)?;
    sys::make_dir(&live.paths.run()).at("make", &live.paths.run())?;
    let mut follower = Follower::open(live, sync, 2)?;
    follower.removal(removal);
    let mut quiet = 0u32;
    loop {
        // Relaxed: a wish, nothing is read under it.
        let stopping = stop.load(Ordering::Relaxed);
        let moved = match follower.step().and_then(|moved| follower.housekeep().map(|()| moved)) {
            Err(e) if follower.is_mending(&e) => {
                std::thread::sleep(MENDING);
                continue;
            }
            other => other?,
        };
        quiet = if moved { 0 } else { quiet.saturating_add(1) };
        if !moved {
            if stopping {
                return follower.finish();
            }
            // A writer that closes waits for this, whatever the policy.
            if quiet == 32 && follower.position > follower.flush.flushed.position {
                follower.sync_last()?;
            }
            std::thread::sleep(IDLE);
        }
    }
}

/// Pause of a follower that has caught up; it looks rarely, so that the writer's lines stay with the writer.
pub(crate) const IDLE: Duration = Duration::from_millis(1);

/// Pause before what a flush has lost is written again.
pub(crate) const MENDING: Duration = Duration::from_millis(50);

/// Bytes handled in one step.
const STEP_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) live: Live,
    pub(crate) sync: Sync,
    keep_segments: u64,
    /// Followed up to here.
    pub position: u64,
    /// The last whole unit of that; never before the durable one.
    pub(crate) whole: Durable,
    source: Option<Segment>,
    copy: Option<Copy>,
    pub(crate) sums: Sums,
    pub(crate) definitions: DefinitionLog,
    pub(crate) state: State,
    pub(crate) flush: Flush,
    /// The last step ended where nothing more was committed.
    pub(crate) caught_up: bool,
    caretaker: Caretaker,
    idle: u32,
    _lock: Lock,
}

impl Follower {
    pub fn open(live: Live, sync: Sync, keep_segments: u64) -> Result<Self> {
        let mut lock = Lock::take(&live.paths.recorder_lock())?;
        lock.sign(&format!("pid {}\n", std::process::id()))?;
        sys::make_dir(&live.paths.segments()).at("make", &live.paths.segments())?;
        let size = live.meta.segment_bytes;
        let mut flush = flush::begin(&live.paths)?;
        let durable = flush.durable;
        // What lies beyond the tape's end was cut by the writer's recovery; the log is cut against the same end.
        let end = end_of(&live, durable.position)?;
        let mut from = durable.position / size;
        if durable.position == 0 {
            from = live.indices()?.first().copied().unwrap_or(0);
        }
        let given = durable.position.max(from * size);
        let mut definitions = DefinitionLog::open(&live.paths, &live.meta, given, end)?;
        if definitions.length < durable.definitions_bytes {
            from = live.indices()?.first().copied().unwrap_or(0);
            if from > 0 {
                let path = live.paths.definitions();
                return Err(Error::damage(
                    &path,
                    definitions.length,
                    "definitions of removed segments are lost",
                ));
            }
            definitions.rewind(0, 0);
        }
        let state = State::open(&live.paths)?;
        // Before the first step, which may have nothing to do until a writer that waits for this goes on.
        state.set_recorded(durable.position);
        if flush.take_over(&live.paths, &state, !lock.before.is_empty(), end)? {
            definitions.rewind(durable.definitions_bytes, durable.position);
        }
        let oldest = live.indices()?.first().copied().unwrap_or(0).saturating_mul(size);
        state.announce(oldest, oldest);
        // Those of a recorder that died in between, or that did not seal.
        seal(&live.paths, oldest / size, durable.position / size)?;
        let sums = Sums::new(&live.meta);
        Ok(Self {
            position: from * size,
            whole: durable,
            live,
            sync,
            keep_segments,
            source: None,
            copy: None,
            sums,
            definitions,
            state,
            flush,
            caught_up: false,
            caretaker: Caretaker::default(),
            idle: 0,
            _lock: lock,
        })
    }

    /// Follows for about a mebibyte; false if there was nothing to follow.
    ///
    /// After an error the segment is done again from its start: everything in it comes out the same.
    pub fn step(&mut self) -> Result<bool> {
        let result = self.try_step();
        if result.is_err() {
            self.definitions.back_to_mark();
            self.go_back(self.position - self.position % self.live.meta.segment_bytes);
        }
        result
    }

    fn try_step(&mut self) -> Result<bool> {
        self.caught_up = true;
        if self.source.is_none() && !self.enter()? {
            return Ok(false);
        }
        let source = self.source.as_ref().expect("entered");
        let from = self.position - source.base;
        let (mut to, mut pad) = (from, None);
        while to < source.size && to - from < STEP_BYTES {
            match source.look(to) {
                Seen::Frame(header) => {
                    if DEFINITION_KINDS.contains(&header.kind()) {
                        // SAFETY: `look` saw the frame committed at `to`, its length within the segment.
                        let frame = unsafe { source.bytes(to, header.len_bytes()) };
                        self.definitions.push(Position(source.base + to), frame);
                    }
                    to += header.len_bytes() as u64;
                    if header.is_last() && source.base + to > self.whole.position {
                        let definitions_bytes = self.definitions.bytes_passed();
                        self.whole = Durable { position: source.base + to, definitions_bytes };
                    }
                }
                Seen::Pad => {
                    if self.whole.position == source.base + to {
                        self.whole.position = source.end();
                    }
                    pad = Some(Header::unstamped(KIND_PAD, 0, 0).stamped(Position(source.base + to)));
                    break;
                }
                Seen::Nothing => break,
                Seen::Damage(header) => {
                    let offset = crate::disk::layout::HEADER_PAGE + to;
                    return Err(Error::damage(
                        &source.path,
                        offset,
                        format!("no frame can start with {header:?}"),
                    ));
                }
            }
        }
        let full = pad.is_some() || to == source.size;
        if to == from && !full {
            self.idle += 1;
            if self.idle.is_multiple_of(16)
                && let Some(other) = self.live.moved(source)?
                // A hot segment that somebody has removed is written on; what is found instead is its copy.
                && !(self.copy.as_ref().is_some_and(|copy| copy.segment.path == other.path)
                    && self.live.paths.hot_place().is_some_and(|hot| source.path.starts_with(hot)))
            {
                self.take_source(other)?;
            }
            return Ok(false);
        }
        self.idle = 0;
        self.caught_up = !full && to - from < STEP_BYTES;
        // SAFETY: the loop above saw every frame of the range committed.
        let bytes = unsafe { source.bytes(from, (to - from) as usize) };
        match &mut self.copy {
            Some(copy) => {
                let sums = &mut self.sums;
                beside(bytes, || sums.add(bytes), || copy.extend(source, from, to))?;
                if let Some(pad) = pad {
                    copy.segment.commit(to, pad);
                }
            }
            None => self.sums.add(bytes),
        }
        if let Some(pad) = pad {
            self.sums.add(&pad.0.to_le_bytes());
        }
        self.definitions.flush()?;
        if full {
            self.finish_segment()?;
        } else {
            self.sums.store(false)?;
            self.position = self.position.max(self.sums.base + to);
        }
        self.state.set_recorded(self.position);
        Ok(true)
    }

    /// Says by which clock segments are finished and removed, and who is told before.
    pub fn removal(&mut self, removal: Removal) {
        self.caretaker = Caretaker::new(removal);
    }

    /// What is to be done from time to time: flushes when that is due, removes what retention says.
    pub fn housekeep(&mut self) -> Result<()> {
        self.sync_if_due()?;
        let Some(keep) = self.caretaker.pass(&self.live, &self.state, self.position)? else { return Ok(()) };
        // Recovery begins at the durable position, and the dictionary log must have what goes.
        let from = keep * self.live.meta.segment_bytes;
        if self.flush.durable.position < from {
            if self.flush.is_lost() {
                return Ok(());
            }
            self.sync()?;
            // A unit that begins before that, and is not whole yet.
            if self.flush.durable.position < from {
                return Ok(());
            }
        }
        self.caretaker.remove(&self.live, &self.state, keep);
        Ok(())
    }

    /// The last flush and the last pass, when there is nothing more to follow.
    pub fn finish(&mut self) -> Result<()> {
        self.sync_last()?;
        self.housekeep()?;
        self.caretaker.end(&self.live);
        Ok(())
    }

    /// Begins again at the segment base `position`, because what was written from there on is not to be trusted.
    pub fn go_back(&mut self, position: u64) {
        self.source = None;
        self.copy = None;
        self.position = position;
        // Whole units that are flushed stay what they are.
        self.whole = self.flush.durable;
    }

    /// Begins the segment of the position; false if it is not there yet.
    fn enter(&mut self) -> Result<bool> {
        self.definitions.mark();
        let index = self.position / self.live.meta.segment_bytes;
        let Some((segment, first_ordinal)) = self.live.segment(index)? else {
            self.live.explain_missing(index)?;
            if self.live.is_lost(index, || Ok(self.state.end().0))? {
                return Err(self.lose(index));
            }
            return Ok(false);
        };
        if self.flush.is_full() && !self.flush.is_lost() {
            self.sync()?;
        }
        self.sums.begin(&self.live.paths, index)?;
        if let Some((file, path)) = &self.sums.file {
            self.flush.hold(Flushed::Checksums(index), file, path)?;
        }
        self.position = segment.base;
        let header = SegmentHeader { meta: self.live.meta, index, first_ordinal };
        self.take_source_with(segment, &header)?;
        Ok(true)
    }

    fn take_source(&mut self, segment: Segment) -> Result<()> {
        let (_, first_ordinal) = Segment::open(&segment.path, &self.live.meta, segment.index, false)?
            .ok_or_else(|| Error::damage(&segment.path, 0, "the segment went away while it was opened"))?;
        let header = SegmentHeader { meta: self.live.meta, index: segment.index, first_ordinal };
        self.take_source_with(segment, &header)
    }

    fn take_source_with(&mut self, source: Segment, header: &SegmentHeader) -> Result<()> {
        let path = segment_path(&self.live.paths.segments(), header.index);
        self.copy = if source.path == path {
            None
        } else {
            unseal(&path)?;
            let found = match header.index * self.live.meta.segment_bytes < self.flush.suspect {
                // What is in the file may not be what is on the disk. It gets a new one, on other blocks.
                true => None,
                false => Segment::open(&path, &self.live.meta, header.index, true)?,
            };
            let (segment, have) = match found {
                Some((segment, _)) => {
                    segment.write_header(header);
                    let have = committed_bytes(&segment);
                    if have < segment.size && segment.look(have) != Seen::Pad {
                        // A copy that was cut off: its first word is missing, the rest may be there.
                        segment.reserve(have)?;
                        segment.zero_from(have);
                    }
                    (segment, have)
                }
                None => {
                    let temp = self.live.paths.run().join("recording");
                    let mut made = Segment::create(&temp, header)?;
                    sys::rename(&temp, &path).at("rename", &path)?;
                    made.path = path;
                    (made, 0)
                }
            };
            Some(Copy::new(segment, have))
        };
        let written = self.copy.as_ref().map_or(&source, |copy| &copy.segment);
        self.flush.hold(Flushed::Segment(header.index), &written.file, &written.path)?;
        self.source = Some(source);
        Ok(())
    }

    fn finish_segment(&mut self) -> Result<()> {
        let index = self.sums.index;
        self.sums.fill();
        self.sums.store(true)?;
        let time = self.caretaker.time();
        self.sums.date(time)?;
        self.caretaker.finish(index, time);
        if let Some(source) = self.source.take() {
            self.live.leave(source);
        }
        if let Some(copy) = self.copy.take() {
            sys::begin_write_back(&copy.segment.file);
        }
        self.position = (index + 1) * self.live.meta.segment_bytes;
        if let Some(hot) = self.live.paths.hot_place() {
            let old: Vec<u64> = list_segments(&hot)?
                .into_iter()
                .filter(|old| old + self.keep_segments <= index + 1)
                .collect();
            let size = self.live.meta.segment_bytes;
            // What is not durable may have to be written again, and is so only from here.
            if old.last().is_some_and(|last| (last + 1) * size > self.flush.flushed.position)
                && !self.flush.is_lost()
            {
                self.sync()?;
            }
            for old in old {
                again::retire(&hot, old)?;
            }
        }
        Ok(())
    }
}

/// Adds up `bytes` while they are written. Much of it in a thread of its own, so that the disk does not wait for sums.
fn beside(bytes: &[u8], add: impl FnOnce() + Send, write: impl FnOnce() -> Result<()>) -> Result<()> {
    if bytes.len() < BESIDE_MIN {
        add();
        return write();
    }
    // A closure that could not be given to a thread is still to be called.
    let add = std::sync::Mutex::new(Some(add));
    let take = || add.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let adding = std::thread::Builder::new().name("tape-sums".into());
        let adding = adding.spawn_scoped(scope, || take().map(|add| add()));
        let written = write();
        if adding.is_err() {
            _ = take().map(|add| add());
        }
        written
    })
}

/// Bytes from which adding up takes longer than starting a thread for it.
const BESIDE_MIN: usize = 1 << 20;

/// Data offset up to which frames are committed in `segment`, without a pad at the end.
pub(crate) fn committed_bytes(segment: &Segment) -> u64 {
    let mut at = 0;
    while at < segment.size
        && let Seen::Frame(header) = segment.look(at)
    {
        at += header.len_bytes() as u64;
    }
    at
}

/// Where the tape ends, walking from the segment of `from`.
pub(crate) fn end_of(live: &Live, from: u64) -> Result<u64> {
    let mut index = from / live.meta.segment_bytes;
    let mut end = index * live.meta.segment_bytes;
    while let Some((segment, _)) = live.segment(index)? {
        let at = committed_bytes(&segment);
        end = segment.base + at;
        if at < segment.size && segment.look(at) != Seen::Pad {
            break;
        }
        end = segment.end();
        index += 1;
    }
    Ok(end)
}

/// Checksums of the spans of one segment, `%016x.crc`: u32 little-endian each.
#[derive(Debug)]
pub(crate) struct Sums {
    pub file: Option<(File, std::path::PathBuf)>,
    span: u64,
    size: u64,
    index: u64,
    base: u64,
    /// Bytes added so far, and the sum of those in the span that is open.
    added: u64,
    running: u32,
    /// Sums not yet written, the first of them of span `written`.
    pending: Vec<u8>,
    written: u64,
}

impl Sums {
    fn new(meta: &Meta) -> Self {
        let (span, size) = (meta.span(), meta.segment_bytes);
        Self {
            file: None,
            span,
            size,
            index: 0,
            base: 0,
            added: 0,
            running: 0,
            pending: Vec::new(),
            written: 0,
        }
    }

    fn begin(&mut self, paths: &Paths, index: u64) -> Result<()> {
        let path = paths.crc(index);
        unseal(&path)?;
        let file = sys::open(&path, OpenOptions::new().write(true).create(true).truncate(true));
        let file = file.at("create", &path)?;
        self.file = Some((file, path));
        (self.index, self.base) = (index, index * self.size);
        (self.added, self.running, self.written) = (0, 0, 0);
        self.pending.clear();
        Ok(())
    }

    /// Dates the file, which says when the segment was finished.
    fn date(&self, time: SystemTime) -> Result<()> {
        let Some((file, path)) = &self.file else { return Ok(()) };
        sys::set_modified(file, time).at("date", path)
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let part = bytes.len().min((self.span - self.added % self.span) as usize);
            self.running = crc32c::crc32c_append(self.running, &bytes[..part]);
            self.added += part as u64;
            bytes = &bytes[part..];
            if self.added.is_multiple_of(self.span) {
                self.pending.extend_from_slice(&self.running.to_le_bytes());
                self.running = 0;
            }
        }
    }

    /// Adds the zeros behind a pad.
    fn fill(&mut self) {
        while self.added < self.size {
            let part = (self.size - self.added).min(ZEROS.len() as u64);
            self.add(&ZEROS[..part as usize]);
        }
    }

    /// Writes the sums of the spans that are full, and with `partial` that of the open one, padded with zeros.
    pub fn store(&mut self, partial: bool) -> Result<()> {
        let Some((file, path)) = &self.file else { return Ok(()) };
        let open = self.added % self.span;
        let mut out = std::mem::take(&mut self.pending);
        let whole = out.len() as u64 / 4;
        if partial && open > 0 {
            let sum = padded(self.running, self.span - open);
            out.extend_from_slice(&sum.to_le_bytes());
        }
        let result = sys::write_at(file, &out, self.written * 4).at("write", path);
        out.truncate(whole as usize * 4);
        match result {
            Ok(()) => self.written += whole,
            Err(_) => self.pending = out,
        }
        result
    }
}

/// The sum `crc` continued over `zeros` zero bytes.
pub(crate) fn padded(mut crc: u32, mut zeros: u64) -> u32 {
    while zeros > 0 {
        let part = zeros.min(ZEROS.len() as u64);
        crc = crc32c::crc32c_append(crc, &ZEROS[..part as usize]);
        zeros -= part;
    }
    crc
}

static ZEROS: [u8; 4096] = [0; 4096];
