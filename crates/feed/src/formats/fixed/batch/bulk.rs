//! A batch of which every record is good, of one type, as long as the others, and has names that are known: no record
//! needs a look of its own, so all is done column by column.

use super::emit::NAMES_MAX;
use super::extension_cache::ExtensionSpan;
use super::frames::{BatchFrames, SpacedFrames, UniformFrames, write_bytes};
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
    /// Iterates over the start of each record in its source.
    #[inline(always)]
    fn record_offsets(&self) -> impl Iterator<Item = u64> {
        let (start, stride) = (self.start, self.rows.stride() as u64);
        (0..self.rows.count() as u64).map(move |i| start + i * stride)
    }
}

/// Emits the whole batch, whose columns were read, or leaves the whole batch to be decoded record by record.
pub(super) fn emit_all(
    kind: &mut RecordTypeProgram,
    block: &mut Block,
    batch: StridedBatch<'_>,
    scratch: &mut BatchScratch,
) -> bool {
    let count = batch.rows.count();
    let last_offset = batch.start + (count * batch.rows.stride()) as u64;
    let all_lanes = u64::MAX >> (LANES - count);
    // A mark of progress would be within.
    if kind.good != all_lanes || batch.start / PROGRESS_BYTES != last_offset / PROGRESS_BYTES {
        return false;
    }
    let RecordTypeProgram { columns, ts, sequence, variants, .. } = kind;
    let Some(RecordDisposition::Event(program)) = variants.first_mut() else { return false };
    let sequences = match *sequence {
        None => &NO_SEQUENCES,
        Some(column_index) => {
            let values = columns.lane_values(column_index);
            let is_too_large = |any: bool, n: &i64| any | (*n as u64 >= u64::from(SEQ_EXT));
            if columns.empty_lanes(column_index) != 0 || values[..count].iter().fold(false, is_too_large) {
                return false;
            }
            values
        }
    };
    if !program.batch_fields.iter_mut().all(|field| field.prepare_all(columns, batch.rows)) {
        return false;
    }
    for (name, ids) in program.names.iter().zip(&mut scratch.ids) {
        if !name.find_all(batch.rows, ids) {
            return false;
        }
    }
    if let Some(cache) = &program.extension_cache
        && !cache.find_all(batch.rows, &mut scratch.extensions)
    {
        return false;
    }
    let times = columns.lane_values(*ts);
    let head = LaneColumns { times, sequences };
    let frames_start = block.arena.len();
    let fixed = program.template.len();
    if program.extension_cache.is_none() {
        block.arena.extend_from_slice(&program.templates[..count * fixed]);
        let mut frames = UniformFrames { frames: &mut block.arena[frames_start..], fixed };
        fill_constants(program, &mut frames, batch, head, scratch);
        for field in &program.batch_fields {
            field.store_all(columns, &mut frames, batch.rows);
        }
        end_messages(block, batch, times, |i| (frames_start + (i + 1) * fixed) as u32);
        return true;
    }
    program.extend_arena(&mut block.arena, count, scratch);
    let mut frames = SpacedFrames { arena: &mut block.arena, starts: &scratch.starts[..count], fixed };
    fill_constants(program, &mut frames, batch, head, scratch);
    for field in &program.batch_fields {
        field.store_all(columns, &mut frames, batch.rows);
    }
    end_messages(block, batch, times, |i| scratch.starts[(i + 1) % (LANES + 1)]);
    true
}

/// Sequences of records without sequence numbers.
static NO_SEQUENCES: Lanes = [SEQ_NONE as i64; LANES];

/// The columns that are in every frame, by lane.
#[derive(Clone, Copy)]
struct LaneColumns<'l> {
    /// Event times, ns since 1970.
    times: &'l Lanes,
    /// Sequence numbers; [`SEQ_NONE`] for no number.
    sequences: &'l Lanes,
}

/// Writes the constant part of every frame after its header, and the names.
#[inline]
fn fill_constants(
    program: &EventProgram,
    frames: &mut impl BatchFrames,
    batch: StridedBatch<'_>,
    head: LaneColumns<'_>,
    scratch: &BatchScratch,
) {
    let LaneColumns { times, sequences } = head;
    let heads = times.iter().zip(sequences).zip(batch.record_offsets());
    frames.write_each(heads, |frame, ((ts, sequence), offset)| {
        write_bytes(frame, at::TS_EVENT, ts.to_le_bytes());
        write_bytes(frame, at::SOURCE, (u64::from(batch.source) | offset << 32).to_le_bytes());
        write_bytes(
            frame,
            at::RECV_DELTA,
            (u64::from(RECV_NONE as u32) | (*sequence as u64) << 32).to_le_bytes(),
        );
    });
    for (name, ids) in program.names.iter().zip(&scratch.ids) {
        match name.has_short_id {
            true => frames.write_each(ids, |frame, id| {
                write_bytes(frame, name.frame_offset, short_id(*id).to_le_bytes())
            }),
            false => {
                frames.write_each(ids, |frame, id| write_bytes(frame, name.frame_offset, id.to_le_bytes()))
            }
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
    fn extend_arena(&self, arena: &mut Vec<u8>, count: usize, scratch: &mut BatchScratch) {
        let Some(cache) = &self.extension_cache else { return };
        let header = FrameHeader::read(&self.template);
        let fixed = self.template.len();
        let extended: usize = scratch.extensions[..count].iter().map(|span| span.length as usize).sum();
        arena.reserve(count * fixed + extended);
        for (start, extension) in scratch.starts.iter_mut().zip(&scratch.extensions[..count]) {
            let frame = arena.len();
            *start = frame as u32;
            for line in self.template.as_chunks::<LINE>().0 {
                arena.extend_from_slice(line);
            }
            if extension.length > 0 {
                let lines = ((fixed + extension.length as usize) / LINE) as u16;
                FrameHeader::new_unstamped(header.kind(), header.flags() | flags::EXT, lines)
                    .write(&mut arena[frame..]);
                for line in cache.extension_text(*extension).as_chunks::<LINE>().0 {
                    arena.extend_from_slice(line);
                }
            }
        }
        scratch.starts[count] = arena.len() as u32;
    }
}
