//! Rows of many blocks in one order, a window of it at a time.
//!
//! ```text
//! order:   time, for rows               ordinal on the tape, for events
//! segment: a day                        a tape
//!
//!          ┌ window ┐┌─ window ─┐┌ window ┐        the rows of a window fit the budget
//! block 1  ████████████████████████                a block is decoded in each window that it meets,
//! block 2       ███████████████████████████        and there gives the rows of the window alone
//! block 3                            ██████
//! ```
//!
//! Blocks hold one instrument each and long stretches of time, so rows in order come from many blocks at once.

use std::collections::VecDeque;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use unitape_model::{Dictionary, FieldClass, UnixNanos};
use unitape_tape::TapeId;

use crate::decode::{BlockDecoder, FrameBatch, FrameKey};
use crate::dictionary::SealedNames;
use crate::error::{Error, Result};
use crate::file::{BlockLocation, FileId};
use crate::header::BlockHeader;
use crate::manifest::{FileEntry, GenerationBounds, SealedPart, TapeRange};
use crate::scan::PROBLEMS_MAX;
use crate::seal::StoreProgress;
use crate::selection::Selection;
use crate::source::ScanInput;

/// Bytes of frames that are decoded at once, by estimate.
const WINDOW_BYTES: u64 = 256 << 20;

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// By event time, then in the order of the tapes.
    Time,
    /// By ordinal on the tape.
    Tape,
}

impl RowOrder {
    /// Returns the first and the last place of the rows of a block in this order.
    fn span(self, head: &BlockHeader) -> (u64, u64) {
        match self {
            Self::Time => (place_of_time(head.ts_min), place_of_time(head.ts_max)),
            Self::Tape => (head.ordinal_min, head.ordinal_max),
        }
    }

    /// The classes that are read, unless more are asked for.
    fn classes(self) -> &'static [FieldClass] {
        match self {
            Self::Time => &[FieldClass::Market],
            Self::Tape => &FieldClass::ALL,
        }
    }
}

/// Maps times to unsigned numbers of the same order.
fn place_of_time(ts: UnixNanos) -> u64 {
    ts.0 as u64 ^ 1 << 63
}

/// Returns whether a block may have a row of a wanted tape, or `None` if its tape is not among them.
fn has_wanted_tape(head: &BlockHeader, tapes: &[PartTape]) -> Option<bool> {
    let may_have = |tape: &PartTape| {
        tape.is_wanted() && tape.ordinals.0 <= head.ordinal_max && tape.ordinals.1 >= head.ordinal_min
    };
    match head.single_tape() {
        Some(index) => tapes.get(usize::from(index)).map(may_have),
        None => Some(tapes.iter().any(may_have)),
    }
}

fn time_of_place(place: u64) -> UnixNanos {
    UnixNanos((place ^ 1 << 63) as i64)
}

/// Files whose rows follow those of the segment before: of a day or of a tape.
pub(crate) type Segment<'a> = VecDeque<SegmentFile<'a>>;

/// A file that may have a selected row.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile<'a> {
    pub part: &'a SealedPart,
    pub entry: &'a FileEntry,
    pub tapes: Arc<[PartTape]>,
    /// No selected row of the file has an earlier place in the order of the tape. 0 in the order of time.
    pub first_place: u64,
}

/// A tape of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartTape {
    /// Its rank among the tapes of the store.
    pub rank: u32,
    /// The first and the last ordinal that may be selected. The first is the larger one if none may.
    pub ordinals: (u64, u64),
}

impl PartTape {
    /// Returns the tapes without the rows of all but one of them.
    pub fn alone(tapes: &[Self], index: usize) -> Arc<[Self]> {
        let without_rows = |tape: &Self| Self { ordinals: (1, 0), ..*tape };
        let tapes = tapes.iter().enumerate();
        tapes.map(|(other, tape)| if other == index { *tape } else { without_rows(tape) }).collect()
    }

    /// Returns the tapes of a part, by their index, without the rows behind `bounds`.
    pub fn list(part: &SealedPart, tapes: &[TapeId], bounds: Option<&GenerationBounds>) -> Arc<[Self]> {
        let of_tape = |range: &TapeRange| {
            let rank = tapes.iter().position(|tape| *tape == range.tape).expect("checked when it was opened");
            let last = match bounds {
                None => Some(range.ordinal_last),
                Some(bounds) => bounds.ordinal_last(part.date, range.tape),
            };
            // Ordinals begin with 0, so a tape without a row has no last one.
            let ordinals = last.map_or((1, 0), |last| (range.ordinal_first, last.min(range.ordinal_last)));
            Self { rank: rank as u32, ordinals }
        };
        part.tapes.iter().map(of_tape).collect()
    }

    /// Returns whether a row of the tape may be selected.
    pub fn is_wanted(&self) -> bool {
        self.ordinals.0 <= self.ordinals.1
    }
}

/// A file that is open.
#[derive(Clone, Debug)]
struct OpenFile {
    id: FileId,
    tapes: Arc<[PartTape]>,
}

/// A block that may have a selected row in this window or a later one.
#[derive(Clone, Copy, Debug)]
struct ActiveBlock {
    file_index: usize,
    location: BlockLocation,
}

/// A row of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRow<'a> {
    pub key: FrameKey,
    pub frame: &'a [u8],
    pub tape: TapeId,
    /// The names of the ids in the frame.
    pub names: &'a Dictionary,
}

/// Reads windows of rows.
#[derive(Debug)]
pub(crate) struct WindowReader<'a> {
    pub scan_input: ScanInput<'a>,
    row_selection: Selection,
    order: RowOrder,
    classes: &'static [FieldClass],
    /// Segments that are left to read; of the first one, files that are not open yet.
    segments: VecDeque<Segment<'a>>,
    files: Vec<OpenFile>,
    blocks: Vec<ActiveBlock>,
    /// Rows of earlier places have been given.
    next_place: u64,
    window_bytes: u64,
    batch: FrameBatch,
    next_row: usize,
    /// For the sort by ordinal.
    slots: Vec<u32>,
    sorted_keys: Vec<FrameKey>,
    decoder: BlockDecoder,
    block: Vec<u8>,
    pub problems: Vec<Error>,
    pub problem_count: u64,
    pub failure: Option<Error>,
    store_progress: Option<Arc<StoreProgress>>,
}

impl<'a> WindowReader<'a> {
    /// Files of a segment must be in the order of their first places.
    pub fn new(
        scan_input: ScanInput<'a>,
        row_selection: Selection,
        order: RowOrder,
        segments: VecDeque<Segment<'a>>,
    ) -> Self {
        Self {
            scan_input,
            row_selection,
            order,
            classes: order.classes(),
            segments,
            files: Vec::new(),
            blocks: Vec::new(),
            next_place: 0,
            window_bytes: WINDOW_BYTES,
            batch: FrameBatch::default(),
            next_row: 0,
            slots: Vec::new(),
            sorted_keys: Vec::new(),
            decoder: BlockDecoder::default(),
            block: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            failure: None,
            store_progress: None,
        }
    }

    pub fn set_progress(&mut self, progress: Arc<StoreProgress>) {
        self.store_progress = Some(progress);
    }

    /// Reads all classes.
    pub fn read_all_classes(&mut self) {
        self.classes = &FieldClass::ALL;
    }

    pub fn set_window_bytes(&mut self, bytes: u64) {
        self.window_bytes = bytes.max(1);
    }

    /// Returns the next row and its frame, or `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Option<WindowRow<'_>> {
        if self.next_row == self.batch.keys.len() {
            self.next_window()?;
        }
        let key = self.batch.keys[self.next_row];
        self.next_row += 1;
        let (tape, names) = (self.scan_input.tapes[key.tape_rank as usize], self.scan_input.names);
        Some(WindowRow { key, frame: self.batch.frame(&key), tape, names })
    }

    /// Decodes the next window that has a row. Returns `None` at the end.
    #[cold]
    fn next_window(&mut self) -> Option<()> {
        self.batch.clear();
        self.next_row = 0;
        while self.batch.keys.is_empty() {
            // A file may have no block with a selected row.
            while self.blocks.is_empty() {
                if !self.begin_files() {
                    // Whoever prints rows has asked for their names by now.
                    let names = self.scan_input.sealed_names.take();
                    names.and_then(SealedNames::damage).into_iter().for_each(|e| self.report_problem(e));
                    return None;
                }
            }
            // The rows of a file that is not open yet come behind this window.
            let begin = self.spans().map(|(first, _)| first).min()?.max(self.next_place);
            let pending = |this: &Self| this.segments.front()?.front().map(|file| file.first_place);
            if pending(self).is_some_and(|first| first <= begin) {
                self.open_file();
                continue;
            }
            let last = self.spans().map(|(_, last)| last).max()?;
            let end = pending(self).map_or(last, |first| last.min(first - 1));
            let (first_wanted, last_wanted) = self.wanted_places();
            let (begin, end) = (begin.max(first_wanted), end.min(last_wanted));
            let end = if begin <= end { self.read_window(begin, end)? } else { u64::MAX };
            self.close_blocks(end);
        }
        self.sort_rows();
        if let Some(p) = &self.store_progress {
            p.rows.fetch_add(self.batch.keys.len() as u64, Ordering::Relaxed);
        }
        Some(())
    }

    /// The places of the rows of each active block.
    fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().map(|block| self.order.span(&block.location.head))
    }

    /// The first and the last place that a selected row can have.
    fn wanted_places(&self) -> (u64, u64) {
        match self.order {
            RowOrder::Time => {
                (place_of_time(self.row_selection.rows.from), place_of_time(self.row_selection.rows.to))
            }
            RowOrder::Tape => (0, u64::MAX),
        }
    }

    /// Opens a file of the next segment that has one. Returns false at the end.
    fn begin_files(&mut self) -> bool {
        while let Some(segment) = self.segments.front() {
            if !segment.is_empty() {
                self.open_file();
                return true;
            }
            self.segments.pop_front();
            self.next_place = 0;
            self.files.clear();
        }
        false
    }

    /// Opens the next file of the segment, and finds its blocks that may have a selected row.
    fn open_file(&mut self) {
        let Some(SegmentFile { part, entry, tapes, .. }) =
            self.segments.front_mut().and_then(VecDeque::pop_front)
        else {
            return;
        };
        let id = part.file(entry);
        let mut problems = Vec::new();
        let locations = self.scan_input.blocks.locations(&id, entry, &mut |e| problems.push(e));
        let (file_index, old_blocks) = (self.files.len(), self.blocks.len());
        for location in locations.iter().copied() {
            if !self.row_selection.wants_block(&location) {
                continue;
            }
            match has_wanted_tape(&location.head, &tapes) {
                Some(true) => self.blocks.push(ActiveBlock { file_index, location }),
                Some(false) => {}
                None => {
                    let (path, head) = (self.scan_input.blocks.path(&id), &location.head);
                    let reason = "its rows are of a tape that its part does not have";
                    problems.push(Error::block_damage(&path, head.number, location.offset, reason));
                }
            }
        }
        problems.into_iter().for_each(|e| self.report_problem(e));
        self.files.push(OpenFile { id, tapes });
        if let Some(p) = &self.store_progress {
            let bytes = |block: &ActiveBlock| u64::from(block.location.head.bytes);
            p.bytes_total.fetch_add(self.blocks[old_blocks..].iter().map(bytes).sum(), Ordering::Relaxed);
        }
    }

    /// Decodes the rows from `begin` to `end`, or to an earlier place if they are too many. Returns the last place of the
    /// window. Returns `None` if no more blocks can be read.
    fn read_window(&mut self, begin: u64, end: u64) -> Option<u64> {
        let mut end = end;
        while end > begin && self.estimate_bytes(begin, end) > self.window_bytes {
            end = begin + (end - begin) / 2;
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        let mut decoded = 0;
        while decoded < blocks.len() {
            let block = &blocks[decoded];
            let (first, last) = self.order.span(&block.location.head);
            if first > end || last < begin {
                decoded += 1;
                continue;
            }
            match self.decode_block(block, begin, end) {
                // Rows may lie closer in one part of a block than the estimate took them to.
                Ok(()) if self.batch.arena.len() as u64 / 2 > self.window_bytes && end > begin => {
                    self.batch.clear();
                    (decoded, end) = (0, begin + (end - begin) / 2);
                }
                Ok(()) => decoded += 1,
                Err(e @ Error::Answer(_)) => {
                    // Otherwise the rows of half a window and the rows after them would look complete.
                    self.batch.clear();
                    self.segments.clear();
                    self.failure = Some(e);
                    return None;
                }
                Err(e) => {
                    // It is read and reported once.
                    self.report_problem(e);
                    blocks.remove(decoded);
                }
            }
        }
        self.blocks = blocks;
        Some(end)
    }

    /// Estimates the bytes of the frames from `begin` to `end`, as if the rows of a block had even distances.
    fn estimate_bytes(&self, begin: u64, end: u64) -> u64 {
        let of_block = |block: &ActiveBlock| {
            let head = &block.location.head;
            let (first, last) = self.order.span(head);
            if first > end || last < begin {
                return 0;
            }
            let length = |first: u64, last: u64| u128::from(last - first) + 1;
            let window_length = length(first.max(begin), last.min(end));
            (u128::from(head.raw_bytes) * window_length / length(first, last)) as u64
        };
        self.blocks.iter().map(of_block).sum()
    }

    /// Adds the selected rows of a block from `begin` to `end`.
    fn decode_block(&mut self, block: &ActiveBlock, begin: u64, end: u64) -> Result<()> {
        let ActiveBlock { file_index, location } = block;
        let OpenFile { id, tapes } = &self.files[*file_index];
        let open_block = self.scan_input.blocks.read(id, location, self.classes, &mut self.block)?;
        let mut wanted = self.row_selection.in_block(location.head.instrument);
        match self.order {
            RowOrder::Time => {
                (wanted.from, wanted.to) =
                    (time_of_place(begin).max(wanted.from), time_of_place(end).min(wanted.to));
            }
            RowOrder::Tape => {}
        }
        wanted.ordinals.extend(tapes.iter().map(|tape| match self.order {
            RowOrder::Time => tape.ordinals,
            RowOrder::Tape => (tape.ordinals.0.max(begin), tape.ordinals.1.min(end)),
        }));
        let first_key = self.batch.keys.len();
        let decoded = self.decoder.decode(&open_block, &location.head, &wanted, &mut self.batch);
        decoded.map_err(|flaw| {
            let offset = location.offset + flaw.offset as u64;
            Error::block_damage(&self.scan_input.blocks.path(id), location.head.number, offset, flaw.reason)
        })?;
        for key in &mut self.batch.keys[first_key..] {
            key.tape_rank = tapes[key.tape_rank as usize].rank;
        }
        Ok(())
    }

    /// Leaves the blocks whose last row is not behind `end`.
    fn close_blocks(&mut self, end: u64) {
        let order = self.order;
        let is_done = |block: &ActiveBlock| order.span(&block.location.head).1 <= end;
        if let Some(p) = &self.store_progress {
            let bytes = |block: &ActiveBlock| u64::from(block.location.head.bytes);
            let done = self.blocks.iter().filter(|block| is_done(block)).map(bytes).sum();
            p.bytes.fetch_add(done, Ordering::Relaxed);
        }
        self.blocks.retain(|block| !is_done(block));
        self.next_place = end.saturating_add(1);
    }

    /// Puts the rows of the window into their order.
    fn sort_rows(&mut self) {
        match self.order {
            RowOrder::Time => {
                self.batch.keys.sort_unstable_by_key(|key| (key.ts, key.tape_rank, key.ordinal));
            }
            RowOrder::Tape => self.sort_by_ordinal(),
        }
    }

    fn sort_by_ordinal(&mut self) {
        let keys = &mut self.batch.keys;
        if keys.is_sorted_by_key(|key| key.ordinal) {
            return;
        }
        let ordinals = || keys.iter().map(|key| key.ordinal);
        let (low, high) = (ordinals().min().unwrap_or(0), ordinals().max().unwrap_or(0));
        // Usually, most rows of this part of the tape are selected. Then each row gets its own place.
        if (high - low) / 4 < keys.len() as u64 {
            self.slots.clear();
            self.slots.resize((high - low) as usize + 1, u32::MAX);
            let mut is_distinct = true;
            for (i, key) in keys.iter().enumerate() {
                let slot = &mut self.slots[(key.ordinal - low) as usize];
                is_distinct &= *slot == u32::MAX;
                *slot = i as u32;
            }
            // Two events with the same ordinal mean that the store is damaged. Neither event may be lost.
            if is_distinct {
                self.sorted_keys.clear();
                self.sorted_keys.reserve_exact(keys.len());
                let filled_slots = self.slots.iter().filter(|slot| **slot != u32::MAX);
                self.sorted_keys.extend(filled_slots.map(|slot| keys[*slot as usize]));
                std::mem::swap(keys, &mut self.sorted_keys);
                return;
            }
        }
        keys.sort_by_key(|key| key.ordinal);
    }

    fn report_problem(&mut self, problem: Error) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}
