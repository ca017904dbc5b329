//! The sparse index of a finished segment, `%016x.idx`: what a search by ordinal or by event time needs.
//!
//! ```text
//!  frames   │■■■■ ■■ ■■■■■│■■■ ■■■■■■■■│■■ ■■■■■■ ■■■│■■■ pad│     a chunk: the frames that begin in one span
//!  entry     └ first frame, events before it, least and greatest event time
//!  header      the same of the whole segment: a search reads no entries of a segment that cannot hold its event
//!  .crc      ◀── a checksum of all checksums: an index of other bytes than these is of no use
//! ```
//!
//! The file is derived from the frames: the same frames give the same file. A reader scans the frames if the index is
//! missing or fails its checksum. A search compares the chunk to which it jumps with its entry, and trusts the entries
//! that it passes over. Only a forged file with right checksums could hide an event from it, and `verify` finds that.
//! Drawn byte by byte in `docs/formats-tape.md`.
//!
//! An event's time is the word after its header. Two kinds of frames have no time: bookkeeping, which has no ordinal
//! either, and messages of users, which have an ordinal. Time 0 means that the time is unknown (a quarantined message).
//! It counts as any other time, and the index keeps it apart from the least and greatest time. A time that is flagged
//! as clock ahead counts for a range. It does not end a search for the first later event, because the merge did not
//! believe it.

use std::path::PathBuf;

use unitape_model::{FrameHeader, LINE, flags, frame::KIND_PAD};

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, SegmentHeader, TapeManifest, TapePaths, read_start};
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::sys;
use crate::error::{FileContext, Result};

/// A search by event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeQuery {
    /// Events of a later time that the merge believed.
    Later(i64),
    /// Events of a time from the first one to the last one, both included.
    Within { first: i64, last: i64 },
}

impl TimeQuery {
    /// Returns whether the query selects the event with this header and time.
    #[inline]
    pub fn matches(&self, header: FrameHeader, time: i64) -> bool {
        match *self {
            Self::Later(than) => time > than && header.flags() & flags::CLOCK_AHEAD == 0,
            Self::Within { first, last } => (first..=last).contains(&time),
        }
    }
}

/// Least and greatest event times of some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBounds {
    /// Of all times but 0.
    min_ns: i64,
    greatest: i64,
    /// The greatest that is neither 0 nor flagged as clock ahead.
    believed: i64,
    /// An event has time 0.
    has_zero: bool,
}

impl TimeBounds {
    /// The bounds of an empty segment.
    pub const NONE: Self = Self { min_ns: i64::MAX, greatest: i64::MIN, believed: i64::MIN, has_zero: false };

    #[inline]
    fn add(&mut self, header: FrameHeader, time: i64) {
        if time == 0 {
            self.has_zero = true;
            return;
        }
        self.min_ns = self.min_ns.min(time);
        self.greatest = self.greatest.max(time);
        if header.flags() & flags::CLOCK_AHEAD == 0 {
            self.believed = self.believed.max(time);
        }
    }

    fn merge(&mut self, bounds: &Self) {
        self.min_ns = self.min_ns.min(bounds.min_ns);
        self.greatest = self.greatest.max(bounds.greatest);
        self.believed = self.believed.max(bounds.believed);
        self.has_zero |= bounds.has_zero;
    }

    /// Returns whether one of the frames may be an event of `query`. False means that there is certainly no such event.
    pub fn may_match(&self, query: &TimeQuery) -> bool {
        match *query {
            TimeQuery::Later(than) => self.believed > than || self.has_zero && than < 0,
            TimeQuery::Within { first, last } => {
                let has_zero = self.has_zero && (first..=last).contains(&0);
                has_zero || self.min_ns <= last && self.greatest >= first && self.min_ns <= self.greatest
            }
        }
    }
}

/// One chunk of a segment: the frames that begin in one span of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Data offset of its first frame.
    pub offset: u64,
    /// Events of the segment before it.
    pub events_before: u64,
    pub time_bounds: TimeBounds,
}

/// Builds the index of a segment from its frames, one after the other.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    span: u64,
    /// Frames before this data offset were added: a walk may come over some again.
    next_offset: u64,
    /// Data offset at which the open chunk ends.
    chunk_end: u64,
    events: u64,
    open_entry: IndexEntry,
    entries: Vec<IndexEntry>,
}

impl IndexBuilder {
    /// Makes an empty builder for segments of the tape with this manifest.
    pub fn new(meta: &TapeManifest) -> Self {
        let empty_entry = IndexEntry { offset: 0, events_before: 0, time_bounds: TimeBounds::NONE };
        Self {
            span: meta.span(),
            next_offset: 0,
            chunk_end: 0,
            events: 0,
            open_entry: empty_entry,
            entries: Vec::new(),
        }
    }

    /// Begins a segment.
    pub fn begin_segment(&mut self) {
        (self.next_offset, self.chunk_end, self.events) = (0, 0, 0);
        self.entries.clear();
    }

    /// Walks the plain events of the open chunk from data offset `offset` of `segment`, see
    /// [`MappedSegment::walk_plain_events`], and adds them together. Returns the offset of the first frame that is no
    /// plain event, that begins at or after `before`, or that must be added alone. `visit` gets the header and the end
    /// of each event.
    #[inline(always)]
    pub fn add_plain_events(
        &mut self,
        segment: &MappedSegment,
        offset: u64,
        before: u64,
        mut visit: impl FnMut(FrameHeader, u64),
    ) -> u64 {
        let run_end = if offset < self.next_offset { offset } else { self.chunk_end.max(offset) };
        let (mut events, mut least, mut greatest) = (0, i64::MAX, i64::MIN);
        let walk_end = segment.walk_plain_events(offset, before.min(run_end), |header, time, end| {
            events += 1;
            least = least.min(time);
            greatest = greatest.max(time);
            visit(header, end);
        });
        if events > 0 {
            self.next_offset = walk_end;
            self.events += events;
            self.open_entry.time_bounds.merge(&TimeBounds {
                min_ns: least,
                greatest,
                believed: greatest,
                has_zero: false,
            });
        }
        walk_end
    }

    /// Adds the frame at data offset `offset` of `segment`, which was seen committed there.
    pub fn add_frame(&mut self, segment: &MappedSegment, offset: u64, header: FrameHeader) {
        if offset < self.next_offset {
            return;
        }
        self.next_offset = offset + header.len_bytes() as u64;
        if header.kind() == KIND_PAD {
            // A filler before the tape's origin.
            return;
        }
        if offset >= self.chunk_end {
            self.begin_chunk(offset);
        }
        if let Some(time) = segment.event_time(offset, header) {
            self.open_entry.time_bounds.add(header, time);
        }
        self.events += u64::from(!header.is_meta());
    }

    #[cold]
    fn begin_chunk(&mut self, offset: u64) {
        self.close_chunk();
        self.chunk_end = offset - offset % self.span + self.span;
        self.open_entry = IndexEntry { offset, events_before: self.events, time_bounds: TimeBounds::NONE };
    }

    fn close_chunk(&mut self) {
        if self.chunk_end > 0 {
            self.entries.push(self.open_entry);
            self.chunk_end = 0;
        }
    }

    /// Walks the frames of `segment`. Returns `None` if they do not reach its end.
    pub fn scan(segment: &MappedSegment, meta: &TapeManifest) -> Option<Self> {
        let mut builder = Self::new(meta);
        let mut offset = 0;
        loop {
            offset = builder.add_plain_events(segment, offset, segment.data_bytes, |_, _| {});
            if offset >= segment.data_bytes {
                break;
            }
            match segment.header_state(offset) {
                HeaderWordState::Frame(header) => {
                    builder.add_frame(segment, offset, header);
                    offset += header.len_bytes() as u64;
                }
                HeaderWordState::Pad => break,
                HeaderWordState::Nothing | HeaderWordState::Damage(_) => return None,
            }
        }
        Some(builder)
    }

    /// Ends the segment with this header and returns the bytes of its index file. `sums` is the checksum of all its
    /// checksums.
    pub fn finish(&mut self, segment: &SegmentHeader, sums: u32) -> Vec<u8> {
        self.close_chunk();
        let mut merged_bounds = TimeBounds::NONE;
        let mut out = vec![0; offset::END];
        for entry in &self.entries {
            merged_bounds.merge(&entry.time_bounds);
            let zero = u64::from(entry.time_bounds.has_zero) << 63;
            for word in [entry.offset | zero, entry.events_before] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            for time in [entry.time_bounds.min_ns, entry.time_bounds.greatest, entry.time_bounds.believed] {
                out.extend_from_slice(&time.to_le_bytes());
            }
        }
        let entries_crc = crc32c::crc32c(&out[offset::END..]);
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(offset::MAGIC, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &segment.meta.id.0.to_le_bytes());
        write_field(offset::INDEX, &segment.index.to_le_bytes());
        write_field(offset::SEGMENT_BYTES, &segment.meta.segment_bytes.to_le_bytes());
        write_field(offset::FIRST_ORDINAL, &segment.first_ordinal.to_le_bytes());
        write_field(offset::EVENTS, &self.events.to_le_bytes());
        write_field(offset::FRAMES_END, &self.next_offset.to_le_bytes());
        write_field(offset::LEAST, &merged_bounds.min_ns.to_le_bytes());
        write_field(offset::GREATEST, &merged_bounds.greatest.to_le_bytes());
        write_field(offset::BELIEVED, &merged_bounds.believed.to_le_bytes());
        write_field(offset::ENTRIES, &(self.entries.len() as u32).to_le_bytes());
        write_field(offset::FLAGS, &u32::from(merged_bounds.has_zero).to_le_bytes());
        write_field(offset::SUMS, &sums.to_le_bytes());
        write_field(offset::ENTRIES_CRC, &entries_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..offset::CRC]);
        out[offset::CRC..offset::END].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

/// A fault of an index file, with the byte that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexFault {
    pub offset: u64,
    pub reason: &'static str,
}

/// The index of a segment, whose checksums match.
#[derive(Debug)]
pub(crate) struct SegmentIndex {
    pub first_ordinal: u64,
    events: u64,
    /// Data offset after the last frame.
    pub frames_end: u64,
    /// The times of all its frames.
    pub time_bounds: TimeBounds,
    sums: u32,
    count: u64,
    entries_crc: u32,
    /// Entries in the order of the tape; empty if only the header was read.
    pub entries: Vec<IndexEntry>,
}

impl SegmentIndex {
    /// Reads the header of the index of segment `index`. Returns `None` if there is no index, or if it does not fit the
    /// segment's checksums.
    pub fn load_summary(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Option<Self> {
        let bytes = read_start(&paths.index(index), offset::END as u64).ok()?;
        let summary = Self::decode_header(&bytes, meta, index).ok()?;
        summary.fits(paths, meta, index).then_some(summary)
    }

    /// Reads the index of segment `index`. Returns `None` if there is no index, or if it does not fit the segment's
    /// checksums.
    pub fn load(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Option<Self> {
        let bytes = read_start(&paths.index(index), bytes_max(meta) + 1).ok()?;
        let segment_index = Self::decode(&bytes, meta, index).ok()?;
        segment_index.fits(paths, meta, index).then_some(segment_index)
    }

    fn fits(&self, paths: &TapePaths, meta: &TapeManifest, index: u64) -> bool {
        load_sums_crc(paths, meta, index) == Some(self.sums)
    }

    /// Reads the file of segment `index`.
    pub fn decode(bytes: &[u8], meta: &TapeManifest, index: u64) -> std::result::Result<Self, IndexFault> {
        let mut segment_index = Self::decode_header(bytes, meta, index)?;
        let index_fault =
            |fault_offset: usize, reason| Err(IndexFault { offset: fault_offset as u64, reason });
        let body = &bytes[offset::END..];
        if body.len() as u64 != segment_index.count * ENTRY_BYTES as u64 {
            return index_fault(offset::ENTRIES, "the index has another length than it says");
        }
        if crc32c::crc32c(body) != segment_index.entries_crc {
            return index_fault(offset::END, "the checksum of the index's entries does not match");
        }
        let span = meta.span();
        segment_index.entries.reserve(segment_index.count as usize);
        for (i, entry) in body.chunks_exact(ENTRY_BYTES).enumerate() {
            let word = |word_offset: usize| {
                u64::from_le_bytes(entry[word_offset..word_offset + 8].try_into().expect("eight bytes"))
            };
            let time = |time_offset: usize| word(time_offset) as i64;
            let index_entry = IndexEntry {
                offset: word(0) & !(1 << 63),
                events_before: word(8),
                time_bounds: TimeBounds {
                    min_ns: time(16),
                    greatest: time(24),
                    believed: time(32),
                    has_zero: word(0) >> 63 == 1,
                },
            };
            let follows = segment_index.entries.last().is_none_or(|last| {
                last.offset / span < index_entry.offset / span
                    && last.events_before <= index_entry.events_before
            });
            let is_in_bounds = index_entry.offset < segment_index.frames_end
                && index_entry.offset.is_multiple_of(LINE as u64)
                && index_entry.events_before <= segment_index.events;
            if !follows || !is_in_bounds || segment_index.entries.is_empty() && index_entry.events_before != 0
            {
                return index_fault(
                    offset::END + i * ENTRY_BYTES,
                    "an entry of the index does not follow from the one before",
                );
            }
            segment_index.entries.push(index_entry);
        }
        Ok(segment_index)
    }

    fn decode_header(bytes: &[u8], meta: &TapeManifest, index: u64) -> std::result::Result<Self, IndexFault> {
        let index_fault =
            |fault_offset: usize, reason| Err(IndexFault { offset: fault_offset as u64, reason });
        if bytes.len() < offset::END || bytes[..8] != *MAGIC {
            return index_fault(offset::MAGIC, "the file does not start with an index's magic");
        }
        if bytes[offset::CRC..offset::END] != crc32c::crc32c(&bytes[..offset::CRC]).to_le_bytes() {
            return index_fault(offset::CRC, "the checksum of the index's header does not match");
        }
        let word =
            |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"));
        let half = |start: usize| u32::from_le_bytes(bytes[start..start + 4].try_into().expect("four bytes"));
        if word(offset::VERSION) != FORMAT_VERSION {
            return index_fault(offset::VERSION, "the index is of another version of the format");
        }
        if bytes[offset::TAPE..offset::INDEX] != meta.id.0.to_le_bytes() {
            return index_fault(offset::TAPE, "the index belongs to another tape");
        }
        if word(offset::INDEX) != index || word(offset::SEGMENT_BYTES) != meta.segment_bytes {
            return index_fault(offset::INDEX, "the index is of another segment");
        }
        let (first_ordinal, frames_end) = (word(offset::FIRST_ORDINAL), word(offset::FRAMES_END));
        let events = word(offset::EVENTS);
        if first_ordinal > PLACE_MAX || frames_end > meta.segment_bytes || events > frames_end / LINE as u64 {
            return index_fault(offset::FIRST_ORDINAL, "the index says what no segment can hold");
        }
        Ok(Self {
            first_ordinal,
            events,
            frames_end,
            time_bounds: TimeBounds {
                min_ns: word(offset::LEAST) as i64,
                greatest: word(offset::GREATEST) as i64,
                believed: word(offset::BELIEVED) as i64,
                has_zero: half(offset::FLAGS) & 1 == 1,
            },
            sums: half(offset::SUMS),
            count: half(offset::ENTRIES).into(),
            entries_crc: half(offset::ENTRIES_CRC),
            entries: Vec::new(),
        })
    }

    /// Returns the data offset at which the chunk of entry `i` ends.
    pub fn chunk_end(&self, i: usize) -> u64 {
        self.entries.get(i + 1).map_or(self.frames_end, |next| next.offset)
    }

    /// Returns whether the frames of `segment` agree with entry `i`.
    pub fn is_confirmed(&self, i: usize, segment: &MappedSegment) -> bool {
        let (entry, end) = (self.entries[i], self.chunk_end(i));
        let mut times = TimeBounds::NONE;
        let (mut offset, mut before) = (entry.offset, entry.events_before);
        while offset < end
            && let HeaderWordState::Frame(header) = segment.header_state(offset)
        {
            if let Some(time) = segment.event_time(offset, header) {
                times.add(header, time);
            }
            before += u64::from(!header.is_meta());
            offset += header.len_bytes() as u64;
        }
        let next_events = self.entries.get(i + 1).map_or(self.events, |next| next.events_before);
        offset == end && times == entry.time_bounds && before == next_events
    }
}

/// Computes the checksum of all checksums of segment `index`. Returns `None` if any checksum is missing.
pub(crate) fn load_sums_crc(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Option<u32> {
    let sums_bytes = meta.segment_bytes / meta.span() * 4;
    let sums = read_start(&paths.crc(index), sums_bytes + 1).ok()?;
    (sums.len() as u64 == sums_bytes).then(|| crc32c::crc32c(&sums))
}

/// Writes the index of segment `index`, completely or not at all. Returns the file, to be flushed.
pub(crate) fn store_index(paths: &TapePaths, index: u64, bytes: &[u8]) -> Result<std::fs::File> {
    let (temp, path) = (temp_path(paths), paths.index(index));
    let file = sys::make_file(&temp).with_context("create", &temp)?;
    sys::write_at(&file, bytes, 0).with_context("write", &temp)?;
    sys::rename(&temp, &path).with_context("rename", &path)?;
    Ok(file)
}

/// Returns the path of an index until it is complete and gets its name.
pub(crate) fn temp_path(paths: &TapePaths) -> PathBuf {
    paths.run().join("indexing")
}

/// Makes the index of a segment from its frames and checksums. Returns `None` if the segment is not finished.
pub(crate) fn make_index(
    paths: &TapePaths,
    segment: &MappedSegment,
    header: &SegmentHeader,
) -> Option<Vec<u8>> {
    let sums = load_sums_crc(paths, &header.meta, header.index)?;
    Some(IndexBuilder::scan(segment, &header.meta)?.finish(header, sums))
}

/// Compares the index of a segment with its frames and returns the fault, if the index exists and differs. The rest of
/// the segment is sound, and `frames` has all its frames.
pub(crate) fn find_fault(
    paths: &TapePaths,
    frames: &mut IndexBuilder,
    header: &SegmentHeader,
) -> Option<IndexFault> {
    let bytes = read_start(&paths.index(header.index), bytes_max(&header.meta) + 1).ok()?;
    let index_bytes = frames.finish(header, load_sums_crc(paths, &header.meta, header.index)?);
    let first_difference = first_difference(&bytes, &index_bytes)?;
    let fault =
        IndexFault { offset: first_difference, reason: "the index is not that of the segment's frames" };
    Some(SegmentIndex::decode(&bytes, &header.meta, header.index).err().unwrap_or(fault))
}

/// Finds the first byte in which two files differ.
fn first_difference(a: &[u8], b: &[u8]) -> Option<u64> {
    let difference_index = a.iter().zip(b).position(|(a, b)| a != b);
    difference_index.or((a.len() != b.len()).then_some(a.len().min(b.len()))).map(|index| index as u64)
}

/// Returns the greatest size of a segment's index, in bytes.
fn bytes_max(meta: &TapeManifest) -> u64 {
    offset::END as u64 + meta.segment_bytes / meta.span() * ENTRY_BYTES as u64
}

const MAGIC: &[u8; 8] = b"UNITINDX";

/// Bytes of an entry: data offset and in its highest bit whether an event has time 0; events before; three times.
const ENTRY_BYTES: usize = 40;

/// Offsets in the header.
mod offset {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const INDEX: usize = 32;
    pub const SEGMENT_BYTES: usize = 40;
    pub const FIRST_ORDINAL: usize = 48;
    pub const EVENTS: usize = 56;
    pub const FRAMES_END: usize = 64;
    pub const LEAST: usize = 72;
    pub const GREATEST: usize = 80;
    pub const BELIEVED: usize = 88;
    pub const ENTRIES: usize = 96;
    pub const FLAGS: usize = 100;
    pub const SUMS: usize = 104;
    pub const ENTRIES_CRC: usize = 108;
    // 112..124: zero.
    pub const CRC: usize = 124;
    pub const END: usize = 128;
}

const _: () = {
    assert!(offset::VERSION == offset::MAGIC + 8 && offset::TAPE == 16 && offset::INDEX == offset::TAPE + 16);
    assert!(offset::SEGMENT_BYTES == 40 && offset::FIRST_ORDINAL == 48 && offset::EVENTS == 56);
    assert!(
        offset::FRAMES_END == 64 && offset::LEAST == 72 && offset::GREATEST == 80 && offset::BELIEVED == 88
    );
    assert!(
        offset::ENTRIES == 96 && offset::FLAGS == 100 && offset::SUMS == 104 && offset::ENTRIES_CRC == 108
    );
    assert!(offset::CRC == 124 && offset::END == offset::CRC + 4 && ENTRY_BYTES == 5 * 8);
};
