//! Rows: the columns of `trades` and `bbo`, in the order of event time, out of market data alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use unitape_model::{Event, EventRow, FrameHeader, LINE, UnixNanos};

use crate::class::FieldClass;
use crate::day::Day;
use crate::decode::{BlockDecoder, FrameBatch};
use crate::error::{Error, Result};
use crate::file::{BlockLocation, FileId};
use crate::manifest::{FileEntry, SealedPart};
use crate::scan::{PROBLEMS_MAX, ScanFilter};
use crate::schema::TickSchema;
use crate::seal::StoreProgress;
use crate::selection::Selection;
use crate::source::ScanInput;

/// Bytes of rows that are decoded at once, by estimate. The time of a day is cut into windows that have fewer.
const WINDOW_BYTES: u64 = 256 << 20;

/// Rows of one schema, one after the other: by event time, ties in the order of the tapes.
///
/// Only chunks of market data are opened. A damaged block is skipped and reported in [`RowScan::problems`]; the rest is read.
#[derive(Debug)]
pub struct RowScan<'a> {
    scan_input: ScanInput<'a>,
    row_selection: Selection,
    decoder: BlockDecoder,
    /// Days that are left to read, in order.
    days: VecDeque<Vec<DayFile<'a>>>,
    /// Files of the day, and their blocks that may have a selected row.
    files: Vec<FileId>,
    blocks: Vec<DayBlock>,
    /// Windows of the day that are left, the next one last.
    windows_left: Vec<(i64, i64)>,
    window_bytes: u64,
    rows: Vec<RowKey>,
    next_row: usize,
    arena: Vec<u8>,
    batch: FrameBatch,
    block: Vec<u8>,
    problems: Vec<Error>,
    problem_count: u64,
    failure: Option<Error>,
    store_progress: Option<Arc<StoreProgress>>,
}

/// A file that may have a selected row, and the rank of its tape.
#[derive(Clone, Copy, Debug)]
struct DayFile<'a> {
    part: &'a SealedPart,
    entry: &'a FileEntry,
    tape_rank: u32,
}

/// A block of the day.
#[derive(Clone, Copy, Debug)]
struct DayBlock {
    file_index: usize,
    tape_rank: u32,
    location: BlockLocation,
}

/// A row of the window: its sort key, and the line of the arena where its frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    ts: i64,
    tape_rank: u32,
    ordinal: u64,
    line: u32,
}

impl<'a> RowScan<'a> {
    pub(crate) fn new(input: ScanInput<'a>, schema: TickSchema, filter: &ScanFilter) -> Result<Self> {
        if schema.row_schema().is_none() {
            return Err(Error::Option("this schema has no rows yet"));
        }
        let filter = ScanFilter { schemas: vec![schema], ..filter.clone() };
        let selection = Selection::new(input.names, &filter)?;
        let has_window = filter.from.is_some() || filter.to.is_some();
        let mut days: BTreeMap<Day, Vec<DayFile<'a>>> = BTreeMap::new();
        for part in input.parts {
            let rank = input.tapes.iter().position(|tape| *tape == part.tape);
            for entry in &part.files {
                if selection.wants_file(part, entry) && !(has_window && part.date == Day::UNDATED) {
                    let tape_rank = rank.unwrap_or(usize::MAX) as u32;
                    days.entry(part.date).or_default().push(DayFile { part, entry, tape_rank });
                }
            }
        }
        Ok(Self {
            scan_input: input,
            row_selection: selection,
            decoder: BlockDecoder::default(),
            days: days.into_values().collect(),
            files: Vec::new(),
            blocks: Vec::new(),
            windows_left: Vec::new(),
            window_bytes: WINDOW_BYTES,
            rows: Vec::new(),
            next_row: 0,
            arena: Vec::new(),
            batch: FrameBatch::default(),
            block: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            failure: None,
            store_progress: None,
        })
    }

    /// Reports how far it is in `progress`: bytes of blocks read, of those chosen so far, and rows.
    pub fn with_progress(mut self, progress: Arc<StoreProgress>) -> Self {
        self.store_progress = Some(progress);
        self
    }

    /// Decodes about this many bytes of rows at once, instead of 256 MiB.
    pub fn with_window_bytes(mut self, bytes: u64) -> Self {
        self.window_bytes = bytes.max(1);
        self
    }

    /// Returns the next row, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // lends its window, which an Iterator cannot
    pub fn next(&mut self) -> Option<EventRow<'_>> {
        while self.next_row == self.rows.len() {
            match self.windows_left.pop() {
                Some(window) => self.decode_window(window),
                None => {
                    let files = self.days.pop_front()?;
                    self.begin_day(&files);
                }
            }
        }
        let frame_start = self.rows[self.next_row].line as usize * LINE;
        self.next_row += 1;
        let event =
            Event::new(&self.arena[frame_start..]).expect("only whole frames of known kinds are decoded");
        Some(EventRow { event, names: self.scan_input.names })
    }

    /// Returns the first 1,000 problems found so far.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Counts the problems found so far.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Takes the failure that ended the scan before its end, if one did. Rows of a store in a directory always end at its end.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Finds the blocks of a day that may have a selected row.
    fn begin_day(&mut self, files: &[DayFile<'_>]) {
        self.files.clear();
        self.blocks.clear();
        for DayFile { part, entry, tape_rank } in files {
            let id = part.file(entry);
            let mut problems = Vec::new();
            let places = self.scan_input.blocks.locations(&id, entry, &mut |e| problems.push(e));
            problems.into_iter().for_each(|e| self.report_problem(e));
            let index = self.files.len();
            let wanted_blocks =
                places.into_iter().filter(|location| self.row_selection.wants_block(location));
            self.blocks.extend(wanted_blocks.map(|block_location| DayBlock {
                file_index: index,
                tape_rank: *tape_rank,
                location: block_location,
            }));
            self.files.push(id);
        }
        let heads = || self.blocks.iter().map(|block| &block.location.head);
        let ts_min = heads().map(|head| head.ts_min.0).min().unwrap_or(0);
        let ts_max = heads().map(|head| head.ts_max.0).max().unwrap_or(0);
        if let Some(p) = &self.store_progress {
            p.bytes_total.fetch_add(heads().map(|head| u64::from(head.bytes)).sum(), Ordering::Relaxed);
        }
        if !self.blocks.is_empty() {
            self.windows_left
                .push((ts_min.max(self.row_selection.rows.from.0), ts_max.min(self.row_selection.rows.to.0)));
        }
    }

    /// Decodes the rows between two times, both of them included; or cuts the window in two, where that is too much at once.
    fn decode_window(&mut self, (from, to): (i64, i64)) {
        let is_met = |block: &DayBlock| {
            let head = &block.location.head;
            head.ts_min.0 <= to && head.ts_max.0 >= from
        };
        let estimate: u128 = self
            .blocks
            .iter()
            .filter(|block| is_met(block))
            .map(|block| {
                let head = &block.location.head;
                let span = |first: i64, last: i64| (i128::from(last) - i128::from(first) + 1) as u128;
                let window_span = span(head.ts_min.0.max(from), head.ts_max.0.min(to));
                u128::from(head.raw_bytes) * window_span / span(head.ts_min.0, head.ts_max.0)
            })
            .sum();
        if estimate > u128::from(self.window_bytes) && from < to {
            let middle = ((i128::from(from) + i128::from(to)) >> 1) as i64;
            self.windows_left.push((middle + 1, to));
            self.windows_left.push((from, middle));
            return;
        }
        self.rows.clear();
        self.next_row = 0;
        self.arena.clear();
        let mut blocks = std::mem::take(&mut self.blocks);
        // A block that is damaged is read and reported once.
        let mut failure = None;
        blocks.retain(|block| {
            !is_met(block)
                || failure.is_some()
                || match self.decode_block(block, (from, to)) {
                    Ok(()) => true,
                    Err(e @ Error::Answer(_)) => {
                        failure = Some(e);
                        true
                    }
                    Err(e) => {
                        self.report_problem(e);
                        false
                    }
                }
        });
        if failure.is_some() {
            // Otherwise the rows of half a window and the rows after them would look complete.
            self.rows.clear();
            self.windows_left.clear();
            self.days.clear();
            self.failure = failure;
            return;
        }
        self.blocks = blocks;
        self.rows.sort_unstable();
        if let Some(p) = &self.store_progress {
            p.rows.fetch_add(self.rows.len() as u64, Ordering::Relaxed);
        }
    }

    /// Adds the selected rows of a block to the window.
    fn decode_block(&mut self, block: &DayBlock, (from, to): (i64, i64)) -> Result<()> {
        let DayBlock { file_index: file, tape_rank, location } = block;
        let id = &self.files[*file];
        let open_block = self.scan_input.blocks.read(id, location, &[FieldClass::Market], &mut self.block)?;
        let mut block_filter = self.row_selection.in_block(location.head.instrument);
        (block_filter.from, block_filter.to) =
            (UnixNanos(from).max(block_filter.from), UnixNanos(to).min(block_filter.to));
        self.batch.clear();
        let decoded = self.decoder.decode(&open_block, &location.head, &block_filter, &mut self.batch);
        decoded.map_err(|flaw| {
            let offset = location.offset + flaw.offset as u64;
            Error::block_damage(&self.scan_input.blocks.path(id), location.head.number, offset, flaw.reason)
        })?;
        for key in &self.batch.keys {
            let frame = self.batch.frame(key);
            let line = (self.arena.len() / LINE) as u32;
            let ts = i64::from_le_bytes(frame[8..16].try_into().expect("eight bytes"));
            self.rows.push(RowKey { ts, tape_rank: *tape_rank, ordinal: key.ordinal, line });
            self.arena.extend_from_slice(frame);
            debug_assert!(FrameHeader::read(frame).len_bytes() == frame.len());
        }
        if let Some(p) = &self.store_progress
            && location.head.ts_max.0 <= to
        {
            p.bytes.fetch_add(location.head.bytes.into(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn report_problem(&mut self, problem: Error) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}
