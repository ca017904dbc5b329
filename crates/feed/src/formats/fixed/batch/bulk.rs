//! A batch of which every record is good, of one type, as long as the others, and has names that are known: no record
//! needs a look of its own, so all is done column by column.

use super::emit::NAMES_MAX;
use super::extension_cache::ExtensionSpan;
use super::frames::{BatchFrames, SpacedFrames, UniformFrames, put};
use super::names::short_id;
use super::program::{EventProgram, RecordDisposition, RecordTypeProgram};
use crate::block::{Block, PROGRESS_BYTES, SingleEventUnit};
use unitape_codec::fixed::{LANES, Lanes, RecordBatch, StridedRecords};
use unitape_model::schema::{RECV_NONE, SEQ_EXT, SEQ_NONE, at};
use unitape_model::{FrameHeader, LINE, UnixNanos, flags};

/// Records at one distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct StridedBatch<'b> {
    pub rows: StridedRecords<'b>,
    /// Start of the first record in its source.
    pub start: u64,
    /// Bytes of each without its terminator.
    pub length: u32,
    /// The source.
    pub source: u32,
}

impl StridedBatch<'_> {
    /// Start of each record in its source.
    #[inline(always)]
    fn offsets(&self) -> impl Iterator<Item = u64> {
        let (start, stride) = (self.start, self.rows.stride() as u64);
        (0..self.rows.count() as u64).map(move |i| start + i * stride)
    }
}

/// Takes the whole batch, of which the columns were read, or leaves all of it to be looked at record by record.
pub(super) fn emit_all(
    kind: &mut RecordTypeProgram,
    block: &mut Block,
    batch: StridedBatch<'_>,
    found: &mut BatchScratch,
) -> bool {
    let count = batch.rows.count();
    let end = batch.start + (count * batch.rows.stride()) as u64;
    let whole = u64::MAX >> (LANES - count);
    // A mark of progress would be within.
    if kind.good != whole || batch.start / PROGRESS_BYTES != end / PROGRESS_BYTES {
        return false;
    }
    let RecordTypeProgram { columns, ts, sequence, variants, .. } = kind;
    let Some(RecordDisposition::Event(program)) = variants.first_mut() else { return false };
    let sequences = match *sequence {
        None => &NO_SEQUENCES,
        Some(place) => {
            let values = columns.values(place);
            let beyond = |any: bool, n: &i64| any | (*n as u64 >= u64::from(SEQ_EXT));
            if columns.none(place) != 0 || values[..count].iter().fold(false, beyond) {
                return false;
            }
            values
        }
    };
    if !program.puts.iter_mut().all(|put| put.prepare_all(columns, batch.rows)) {
        return false;
    }
    for (name, ids) in program.names.iter().zip(&mut found.ids) {
        if !name.find_all(batch.rows, ids) {
            return false;
        }
    }
    if let Some(kept) = &program.kept
        && !kept.find_all(batch.rows, &mut found.extensions)
    {
        return false;
    }
    let times = columns.values(*ts);
    let head = LaneColumns { times, sequences };
    let first = block.arena.len();
    let fixed = program.template.len();
    if program.kept.is_none() {
        block.arena.extend_from_slice(&program.templates[..count * fixed]);
        let mut frames = UniformFrames { frames: &mut block.arena[first..], fixed };
        fill(program, &mut frames, batch, head, found);
        for put in &program.puts {
            put.store_all(columns, &mut frames, batch.rows);
        }
        end_messages(block, batch, times, |i| (first + (i + 1) * fixed) as u32);
        return true;
    }
    program.extend(&mut block.arena, count, found);
    let mut frames = SpacedFrames { arena: &mut block.arena, starts: &found.starts[..count], fixed };
    fill(program, &mut frames, batch, head, found);
    for put in &program.puts {
        put.store_all(columns, &mut frames, batch.rows);
    }
    end_messages(block, batch, times, |i| found.starts[(i + 1) % (LANES + 1)]);
    true
}

/// Sequences of records that have none.
static NO_SEQUENCES: Lanes = [SEQ_NONE as i64; LANES];

/// The columns that are in every frame, by lane.
#[derive(Clone, Copy)]
struct LaneColumns<'l> {
    /// Event times, ns since 1970.
    times: &'l Lanes,
    /// Sequence numbers, [`SEQ_NONE`] for none.
    sequences: &'l Lanes,
}

/// The constant part of every frame after its header, and the names.
#[inline]
fn fill(
    program: &EventProgram,
    frames: &mut impl BatchFrames,
    batch: StridedBatch<'_>,
    head: LaneColumns<'_>,
    found: &BatchScratch,
) {
    let LaneColumns { times, sequences } = head;
    let heads = times.iter().zip(sequences).zip(batch.offsets());
    frames.each(heads, |frame, ((ts, sequence), offset)| {
        put(frame, at::TS_EVENT, ts.to_le_bytes());
        put(frame, at::SOURCE, (u64::from(batch.source) | offset << 32).to_le_bytes());
        put(frame, at::RECV_DELTA, (u64::from(RECV_NONE as u32) | (*sequence as u64) << 32).to_le_bytes());
    });
    for (name, ids) in program.names.iter().zip(&found.ids) {
        match name.short {
            true => frames.each(ids, |frame, id| put(frame, name.at, short_id(*id).to_le_bytes())),
            false => frames.each(ids, |frame, id| put(frame, name.at, id.to_le_bytes())),
        }
    }
}

/// Notes the messages of all lanes; `end_of` returns where their frames end.
#[inline]
fn end_messages(block: &mut Block, batch: StridedBatch<'_>, times: &Lanes, end_of: impl Fn(usize) -> u32) {
    let (start, stride, length) = (batch.start, batch.rows.stride() as u64, batch.length);
    let times = &times[..batch.rows.count()];
    block.end_messages(times.iter().enumerate().map(|(i, ts)| SingleEventUnit {
        offset: start + i as u64 * stride,
        ts: UnixNanos(*ts),
        end: end_of(i),
        length,
    }));
}

/// Looked-up ids of the current batch, by lane.
#[derive(Debug)]
pub(super) struct BatchScratch {
    ids: [[u32; LANES]; NAMES_MAX],
    extensions: [ExtensionSpan; LANES],
    /// Starts of the frames with extensions, and the end of the last.
    starts: [u32; LANES + 1],
}

impl Default for BatchScratch {
    fn default() -> Self {
        Self {
            ids: [[0; LANES]; NAMES_MAX],
            extensions: [ExtensionSpan::default(); LANES],
            starts: [0; LANES + 1],
        }
    }
}

impl EventProgram {
    /// Frames of all lanes with their extensions, as they are before anything is put into them.
    #[inline]
    fn extend(&self, arena: &mut Vec<u8>, count: usize, found: &mut BatchScratch) {
        let Some(kept) = &self.kept else { return };
        let header = FrameHeader::read(&self.template);
        let fixed = self.template.len();
        let extended: usize = found.extensions[..count].iter().map(|span| span.length as usize).sum();
        arena.reserve(count * fixed + extended);
        for (start, extension) in found.starts.iter_mut().zip(&found.extensions[..count]) {
            let frame = arena.len();
            *start = frame as u32;
            for line in self.template.as_chunks::<LINE>().0 {
                arena.extend_from_slice(line);
            }
            if extension.length > 0 {
                let lines = ((fixed + extension.length as usize) / LINE) as u16;
                FrameHeader::new_unstamped(header.kind(), header.flags() | flags::EXT, lines)
                    .write(&mut arena[frame..]);
                for line in kept.text(*extension).as_chunks::<LINE>().0 {
                    arena.extend_from_slice(line);
                }
            }
        }
        found.starts[count] = arena.len() as u32;
    }
}
