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
    kinds: Vec<Option<RecordTypeProgram>>,
    lists: RecordStartLists,
    frames: RecordFramer,
    found: Box<[FramedRecord; LANES]>,
    looked_up: Box<bulk::BatchScratch>,
    /// Records decoded by it.
    taken: u64,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct LaneRecord {
    start: u32,
    /// Bytes without the terminator.
    length: u32,
    /// Behind the terminator.
    end: u32,
    /// Type of record, or [`SLOW`].
    kind: u16,
    /// Index among those of its type.
    index: u8,
}

/// A record for the general path.
const SLOW: u16 = u16::MAX;

impl FixedBatchDecoder {
    /// `None` if no type of record can use this path.
    pub(super) fn new(kinds: Vec<Option<RecordTypeProgram>>, layout: &FixedWidthLayout) -> Option<Self> {
        kinds.iter().any(Option::is_some).then(|| Self {
            lists: RecordStartLists::new(kinds.len()),
            kinds,
            frames: RecordFramer::new(layout),
            found: Box::new([FramedRecord::default(); LANES]),
            looked_up: Box::default(),
            taken: 0,
        })
    }

    /// The types of record that can use this path.
    #[cfg(test)]
    pub(super) fn kinds(&self) -> Vec<bool> {
        self.kinds.iter().map(Option::is_some).collect()
    }

    /// The number of records decoded by it.
    #[cfg(test)]
    pub(super) fn records_decoded(&self) -> u64 {
        self.taken
    }

    /// Names may have other ids than in the block before.
    pub(super) fn begin_block(&mut self, known: &Dictionary) {
        self.kinds.iter_mut().flatten().for_each(|kind| kind.begin_block(known));
    }

    /// Finds the records of a batch from `at` on; gives how many.
    fn gather(
        &mut self,
        layout: &FixedWidthLayout,
        bytes: &[u8],
        at: usize,
        lanes: &mut [LaneRecord; LANES],
    ) -> usize {
        self.lists.clear();
        let found = &mut self.found;
        let count = self.frames.fill(layout, bytes, at, found);
        let mut next = at;
        for (lane, found) in lanes.iter_mut().zip(&found[..count]) {
            let program = self.kinds[usize::from(found.kind)].as_ref();
            let fast = program.is_some_and(|p| next + p.reach <= bytes.len());
            let index = self.lists.add(if fast { Some(found.kind) } else { None }, next);
            let (start, length) = (next as u32, found.length);
            *lane = LaneRecord {
                start,
                length,
                end: found.end,
                kind: if fast { found.kind } else { SLOW },
                index,
            };
            next = found.end as usize;
        }
        count
    }

    /// Lists records that are all like the first and can take the fast path.
    fn list(
        &mut self,
        rows: StridedRecords<'_>,
        at: usize,
        first: FramedRecord,
        lanes: &mut [LaneRecord; LANES],
    ) -> usize {
        self.lists.clear();
        let FramedRecord { length, kind, .. } = first;
        let stride = rows.stride() as u32;
        for (i, lane) in (0..rows.count() as u32).zip(&mut *lanes) {
            let start = at as u32 + i * stride;
            let index = self.lists.add(Some(kind), start as usize);
            *lane = LaneRecord { start, length, end: start + stride, kind, index };
        }
        rows.count()
    }
}

/// Fewer records at one distance are as well looked at one by one.
const EVEN_MIN: usize = 8;

impl FixedRecordsDecoder {
    /// Decodes records from `at` on while the fast path finds some; gives where it stopped.
    pub(super) fn batches(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        mut at: usize,
        source: u32,
        known: &Dictionary,
        before: Option<u64>,
    ) -> usize {
        // The first record of a file is its header, whatever it looks like.
        if block.base + at as u64 == 0 {
            return at;
        }
        let Some(mut fast) = self.fast.take() else { return at };
        // Fix-ups of the general path come before those of the batch.
        block.settle_names(known);
        let context = BlockContext { source: SourceContext { source, known }, before };
        let mut lanes = [LaneRecord::default(); LANES];
        loop {
            let (count, is_read) = match self.even(&mut fast, block, bytes, at, source) {
                BatchOutcome::Done(end) => {
                    at = end;
                    continue;
                }
                BatchOutcome::Read(rows, first) => (fast.list(rows, at, first, &mut lanes), true),
                BatchOutcome::Nothing => (fast.gather(self.decoder.layout(), bytes, at, &mut lanes), false),
            };
            // A few records at the end, or before something odd, are as quickly done one by one.
            if count < 4 {
                break;
            }
            let run = LaneSlice { lanes: &lanes[..count], is_read };
            let done = self.batch(&mut fast, block, bytes, run, context);
            at = done;
            if done != run.lanes[count - 1].end as usize {
                break;
            }
        }
        self.fast = Some(fast);
        at
    }

    /// The records from `at` on, as far as they are at one distance, all of them at once.
    fn even<'b>(
        &mut self,
        fast: &mut FixedBatchDecoder,
        block: &mut Block,
        bytes: &'b [u8],
        at: usize,
        source: u32,
    ) -> BatchOutcome<'b> {
        let FixedBatchDecoder { kinds, frames, looked_up, taken, .. } = fast;
        let layout = self.decoder.layout();
        let Some((first, count)) = frames.even(layout, bytes, at).filter(|(_, n)| *n >= EVEN_MIN) else {
            return BatchOutcome::Nothing;
        };
        let Some(kind) = kinds[usize::from(first.kind)].as_mut() else { return BatchOutcome::Nothing };
        let Some(rows) = StridedRecords::new(bytes, at, first.end as usize - at, count, kind.reach) else {
            return BatchOutcome::Nothing;
        };
        let end = at + rows.count() * rows.stride();
        kind.read_even(&mut self.decoder, rows, &bytes[end..]);
        let batch = bulk::StridedBatch { rows, start: block.base + at as u64, length: first.length, source };
        if kind.by_byte.is_none() && bulk::emit_all(kind, block, batch, looked_up) {
            *taken += rows.count() as u64;
            return BatchOutcome::Done(end);
        }
        BatchOutcome::Read(rows, first)
    }
}

/// The outcome for records at one distance.
enum BatchOutcome<'b> {
    /// All of them are in the block, up to here.
    Done(usize),
    /// Their columns were read, and nothing else; what the first of them is.
    Read(StridedRecords<'b>, FramedRecord),
    /// There are none.
    Nothing,
}
