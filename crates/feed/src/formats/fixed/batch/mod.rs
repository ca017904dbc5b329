//! The fast path of fixed-width records: up to 64 at once, column by column, straight into frames.
//!
//! ```text
//!  block   │rec│rec│rec│…│   starts, sorts           every record of its length, every line end in its place
//!             │ Columns::read   numbers, instants    by column; what is not plain is not good
//!             │ prepare         prices, quantities   by field, checked
//!             ▼ emit            names, kept columns  by record: template, ids, extension, unit
//!  arena   │frame│frame │…   store                   by field, into the frames
//! ```
//!
//! The decoder uses it for records whose rule it can express (see [`program`]), and within a batch for those that
//! pass all its checks; every other record uses the general path, in its turn, and that one says what is wrong with
//! it. So both ways give the same bytes, and the general one is the twin of this one: tests hold them equal.

mod batch_field;
mod bulk;
mod emit;
mod extension_cache;
mod frames;
mod names;
mod program;

use super::FixedRecordsDecoder;
use crate::block::Block;
use crate::formats::format::SourceContext;
use emit::{BlockContext, LaneSlice, RecordStartLists};
pub(super) use program::RecordTypeProgram;
use unitape_codec::fixed::{
    FixedWidthLayout, FramedRecord, LANES, RecordBatch, RecordFramer, StridedRecords,
};
use unitape_model::Dictionary;

/// The state of the fast path; one per worker and feed.
#[derive(Debug)]
pub(super) struct FixedBatchDecoder {
    /// By type of record.
    programs_by_type: Vec<Option<RecordTypeProgram>>,
    start_lists: RecordStartLists,
    frames: RecordFramer,
    framed_records: Box<[FramedRecord; LANES]>,
    looked_up: Box<bulk::BatchScratch>,
    /// Records decoded by it.
    decoded_records: u64,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct LaneRecord {
    record_start: u32,
    /// Bytes without the terminator.
    length: u32,
    /// Behind the terminator.
    record_end: u32,
    /// Type of record, or [`SLOW`].
    kind: u16,
    /// The index among the records of its type.
    type_ordinal: u8,
}

/// A record for the general path.
const SLOW: u16 = u16::MAX;

impl FixedBatchDecoder {
    /// Makes a decoder; `None` if no type of record can use this path.
    pub(super) fn new(kinds: Vec<Option<RecordTypeProgram>>, layout: &FixedWidthLayout) -> Option<Self> {
        kinds.iter().any(Option::is_some).then(|| Self {
            start_lists: RecordStartLists::new(kinds.len()),
            programs_by_type: kinds,
            frames: RecordFramer::new(layout),
            framed_records: Box::new([FramedRecord::default(); LANES]),
            looked_up: Box::default(),
            decoded_records: 0,
        })
    }

    /// Returns which types of record can use this path.
    #[cfg(test)]
    pub(super) fn usable_types(&self) -> Vec<bool> {
        self.programs_by_type.iter().map(Option::is_some).collect()
    }

    /// Returns the number of records that it decoded.
    #[cfg(test)]
    pub(super) fn records_decoded(&self) -> u64 {
        self.decoded_records
    }

    /// Begins a block, in which names may have other ids than before.
    pub(super) fn begin_block(&mut self, dictionary: &Dictionary) {
        self.programs_by_type.iter_mut().flatten().for_each(|kind| kind.begin_block(dictionary));
    }

    /// Finds the records of a batch from `offset` on; returns their number.
    fn gather_records(
        &mut self,
        layout: &FixedWidthLayout,
        bytes: &[u8],
        offset: usize,
        lanes: &mut [LaneRecord; LANES],
    ) -> usize {
        self.start_lists.clear();
        let records = &mut self.framed_records;
        let count = self.frames.frame_records(layout, bytes, offset, records);
        let mut record_start = offset;
        for (lane, record) in lanes.iter_mut().zip(&records[..count]) {
            let program = self.programs_by_type[usize::from(record.kind)].as_ref();
            let fast = program.is_some_and(|p| record_start + p.reach <= bytes.len());
            let index =
                self.start_lists.add_record(if fast { Some(record.kind) } else { None }, record_start);
            let (start, length) = (record_start as u32, record.length);
            *lane = LaneRecord {
                record_start: start,
                length,
                record_end: record.end,
                kind: if fast { record.kind } else { SLOW },
                type_ordinal: index,
            };
            record_start = record.end as usize;
        }
        count
    }

    /// Lists records that are all like the first and can take the fast path.
    fn list_uniform(
        &mut self,
        rows: StridedRecords<'_>,
        offset: usize,
        first: FramedRecord,
        lanes: &mut [LaneRecord; LANES],
    ) -> usize {
        self.start_lists.clear();
        let FramedRecord { length, kind, .. } = first;
        let stride = rows.stride() as u32;
        for (i, lane) in (0..rows.count() as u32).zip(&mut *lanes) {
            let record_start = offset as u32 + i * stride;
            let index = self.start_lists.add_record(Some(kind), record_start as usize);
            *lane = LaneRecord {
                record_start,
                length,
                record_end: record_start + stride,
                kind,
                type_ordinal: index,
            };
        }
        rows.count()
    }
}

/// Fewer records at one distance are as well looked at one by one.
const EVEN_MIN: usize = 8;

impl FixedRecordsDecoder {
    /// Decodes records from `offset` on while the fast path finds records; returns the offset where it stopped.
    pub(super) fn decode_batches(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        mut offset: usize,
        source: u32,
        dictionary: &Dictionary,
        before: Option<u64>,
    ) -> usize {
        // The first record of a file is its header, whatever it looks like.
        if block.base + offset as u64 == 0 {
            return offset;
        }
        let Some(mut fast) = self.fast.take() else { return offset };
        // Fix-ups of the general path come before those of the batch.
        block.resolve_names(dictionary);
        let context = BlockContext { source: SourceContext { source, dictionary }, before };
        let mut lanes = [LaneRecord::default(); LANES];
        loop {
            let (count, is_read) = match self.decode_uniform(&mut fast, block, bytes, offset, source) {
                BatchOutcome::Done(end) => {
                    offset = end;
                    continue;
                }
                BatchOutcome::Read(rows, first) => (fast.list_uniform(rows, offset, first, &mut lanes), true),
                BatchOutcome::Nothing => {
                    (fast.gather_records(self.decoder.layout(), bytes, offset, &mut lanes), false)
                }
            };
            // A few records at the end, or before something odd, are as quickly done one by one.
            if count < 4 {
                break;
            }
            let run = LaneSlice { lanes: &lanes[..count], is_read };
            let batch_end = self.decode_batch(&mut fast, block, bytes, run, context);
            offset = batch_end;
            if batch_end != run.lanes[count - 1].record_end as usize {
                break;
            }
        }
        self.fast = Some(fast);
        offset
    }

    /// Decodes the records from `offset` on, all at once, as long as they have equal distances.
    fn decode_uniform<'b>(
        &mut self,
        fast: &mut FixedBatchDecoder,
        block: &mut Block,
        bytes: &'b [u8],
        offset: usize,
        source: u32,
    ) -> BatchOutcome<'b> {
        let FixedBatchDecoder { programs_by_type: kinds, frames, looked_up, decoded_records, .. } = fast;
        let layout = self.decoder.layout();
        let Some((first, count)) = frames.uniform_run(layout, bytes, offset).filter(|(_, n)| *n >= EVEN_MIN)
        else {
            return BatchOutcome::Nothing;
        };
        let Some(kind) = kinds[usize::from(first.kind)].as_mut() else { return BatchOutcome::Nothing };
        let Some(rows) = StridedRecords::new(bytes, offset, first.end as usize - offset, count, kind.reach)
        else {
            return BatchOutcome::Nothing;
        };
        let records_end = offset + rows.count() * rows.stride();
        kind.read_even(&mut self.decoder, rows, &bytes[records_end..]);
        let batch =
            bulk::StridedBatch { rows, start: block.base + offset as u64, length: first.length, source };
        if kind.by_byte.is_none() && bulk::emit_all(kind, block, batch, looked_up) {
            *decoded_records += rows.count() as u64;
            return BatchOutcome::Done(records_end);
        }
        BatchOutcome::Read(rows, first)
    }
}

/// The outcome for records at one distance.
enum BatchOutcome<'b> {
    /// All of them are in the block, up to here.
    Done(usize),
    /// Only their columns were read; the first record is given.
    Read(StridedRecords<'b>, FramedRecord),
    /// There are no such records.
    Nothing,
}
