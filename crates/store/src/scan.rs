//! From the store back to events, in the order of the tape.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use unitape_model::{Event, LINE, Position, UnixNanos};
use unitape_tape::TapeId;

use crate::class::FieldClass;
use crate::day::Day;
use crate::decode::{BlockDecoder, FrameBatch};
use crate::error::{Error, Result};
use crate::file::{BlockLocation, FileId};
use crate::manifest::SealedPart;
use crate::schema::TickSchema;
use crate::seal::{STRIPE_BYTES_MAX, StoreProgress};
use crate::selection::Selection;
use crate::source::ScanInput;

/// The filter of a scan. An event must meet all its conditions.
#[derive(Clone, Debug, Default)]
pub struct ScanFilter {
    /// Instruments (an index is an instrument; news that lists one of them is selected too). Empty selects all.
    pub symbols: Vec<String>,
    /// Event time from here on.
    pub from: Option<UnixNanos>,
    /// Event time before this.
    pub to: Option<UnixNanos>,
    /// The day.
    pub date: Option<Day>,
    /// Schemas. All when empty.
    pub schemas: Vec<TickSchema>,
    /// The venue, or the bank that quotes.
    pub venue: Option<String>,
}

/// An event of the store.
#[derive(Clone, Copy, Debug)]
pub struct StoredEvent<'a> {
    /// The tape it stood on.
    pub tape: TapeId,
    /// Events before it on that tape.
    pub ordinal: u64,
    /// Where it stood.
    pub position: Position,
    /// The frame as it stood there, with the store's tokens as ids.
    pub frame: &'a [u8],
}

impl<'a> StoredEvent<'a> {
    /// Returns the frame as an event.
    #[inline]
    pub fn event(&self) -> Event<'a> {
        Event::new(self.frame).expect("only whole frames of known kinds are decoded")
    }
}

/// Problems that are kept; a store that is broken all over is described well enough by the first ones.
pub(crate) const PROBLEMS_MAX: usize = 1000;

/// Events, one after the other: of each tape in its order, tapes in the order of their first seal.
///
/// A damaged block is skipped and reported in [`Scan::problems`]; the rest is read.
#[derive(Debug)]
pub struct Scan<'a> {
    scan_input: ScanInput<'a>,
    row_selection: Selection,
    /// The parts of each tape that are left to read, by generation, in order.
    tapes: VecDeque<(TapeId, VecDeque<PendingGeneration<'a>>)>,
    active: Vec<GenerationReader>,
    /// Ordinal before which only the active streams have events.
    ordinal_bound: u64,
    batches: Vec<FrameBatch>,
    decoder: BlockDecoder,
    block: Vec<u8>,
    problems: Vec<Error>,
    problem_count: u64,
    failure: Option<Error>,
    store_progress: Option<Arc<StoreProgress>>,
}

/// The parts of a generation, not looked at yet.
#[derive(Debug)]
struct PendingGeneration<'a> {
    ordinal_first: u64,
    parts: Vec<&'a SealedPart>,
}

/// A generation being read, stripe by stripe.
#[derive(Debug)]
struct GenerationReader {
    files: Vec<FileId>,
    /// Blocks of each stripe: file and place.
    stripes: VecDeque<Vec<(u32, BlockLocation)>>,
    batch: FrameBatch,
    key_index: usize,
}

impl GenerationReader {
    fn head(&self) -> Option<u64> {
        self.batch.keys.get(self.key_index).map(|k| k.ordinal)
    }
}

impl<'a> Scan<'a> {
    pub(crate) fn new(input: ScanInput<'a>, filter: &ScanFilter) -> Result<Self> {
        let selection = Selection::new(input.names, filter)?;
        let mut tapes = VecDeque::new();
        for tape in &input.tapes {
            let mut generations: BTreeMap<u64, PendingGeneration<'a>> = BTreeMap::new();
            for part in input.parts.iter().filter(|p| p.tape == *tape) {
                if part.files.iter().any(|f| selection.wants_file(part, f)) {
                    let empty = || PendingGeneration { ordinal_first: u64::MAX, parts: Vec::new() };
                    let pending = generations.entry(part.generation).or_insert_with(empty);
                    pending.ordinal_first = pending.ordinal_first.min(part.ordinal_first);
                    pending.parts.push(part);
                }
            }
            let mut pending: Vec<_> = generations.into_values().collect();
            pending.sort_by_key(|p| p.ordinal_first);
            tapes.push_back((*tape, pending.into()));
        }
        Ok(Self {
            scan_input: input,
            row_selection: selection,
            tapes,
            active: Vec::new(),
            ordinal_bound: 0,
            batches: Vec::new(),
            decoder: BlockDecoder::default(),
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

    /// Returns the next event, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // lends its batch, which an Iterator cannot
    pub fn next(&mut self) -> Option<StoredEvent<'_>> {
        let index = loop {
            match &self.active[..] {
                // Nearly always there is one, and it is its turn.
                [stream] if stream.head().is_some_and(|ordinal| ordinal < self.ordinal_bound) => break 0,
                _ => {}
            }
            if let Some(index) = self.next_stream()? {
                break index;
            }
        };
        let tape = self.tapes.front().expect("a tape while it is read").0;
        let stream = &mut self.active[index];
        let key = stream.batch.keys[stream.key_index];
        stream.key_index += 1;
        let frame = stream.batch.frame(&key);
        Some(StoredEvent { tape, ordinal: key.ordinal, position: key.position, frame })
    }

    /// Returns the first 1,000 problems found so far.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Counts the problems found so far.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Takes the failure that ended the scan before its end, if one did. Events of a store in a directory always end at its end.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Makes sure that every stream has a current event, and begins the streams whose time has come. Returns the stream
    /// whose turn it is. Returns `None` at the end of all streams, and `Some(None)` if it must be called again.
    fn next_stream(&mut self) -> Option<Option<usize>> {
        let mut i = 0;
        while i < self.active.len() {
            if self.active[i].head().is_some() || self.refill_stream(i) {
                i += 1;
            } else if self.failure.is_some() {
                return None;
            } else {
                let stream = self.active.swap_remove(i);
                self.batches.push(stream.batch);
            }
        }
        let least = (0..self.active.len()).min_by_key(|i| self.active[*i].head());
        let head = least.and_then(|i| self.active[i].head());
        let (_, pending) = self.tapes.front_mut()?;
        self.ordinal_bound = pending.front().map_or(u64::MAX, |p| p.ordinal_first);
        if pending.front().is_some_and(|p| head.is_none_or(|head| p.ordinal_first <= head)) {
            let pending = pending.pop_front().expect("just looked at");
            self.begin_generation(&pending);
            return Some(None);
        }
        if head.is_none() {
            self.tapes.pop_front();
        }
        Some(least)
    }

    /// Finds the blocks of a generation that may have a selected row.
    fn begin_generation(&mut self, pending: &PendingGeneration<'_>) {
        let (mut files, mut stripes) = (Vec::new(), BTreeMap::<u32, Vec<(u32, BlockLocation)>>::new());
        let mut bytes = 0;
        for part in &pending.parts {
            for entry in &part.files {
                if !self.row_selection.wants_file(part, entry) {
                    continue;
                }
                let id = part.file(entry);
                let mut problems = Vec::new();
                let places = self.scan_input.blocks.locations(&id, entry, &mut |e| problems.push(e));
                problems.into_iter().for_each(|e| self.report_problem(e));
                for location in places.into_iter().filter(|p| self.row_selection.wants_block(p)) {
                    bytes += u64::from(location.head.bytes);
                    stripes.entry(location.head.stripe).or_default().push((files.len() as u32, location));
                }
                files.push(id);
            }
        }
        if let Some(p) = &self.store_progress {
            p.bytes_total.fetch_add(bytes, Ordering::Relaxed);
        }
        let mut batch = self.batches.pop().unwrap_or_default();
        batch.clear();
        self.active.push(GenerationReader {
            files,
            stripes: stripes.into_values().collect(),
            batch,
            key_index: 0,
        });
    }

    /// Reads stripes of an active stream until a stripe has an event. Returns false if there are no more stripes.
    fn refill_stream(&mut self, index: usize) -> bool {
        while let Some(blocks) = self.active[index].stripes.pop_front() {
            let mut batch = std::mem::take(&mut self.active[index].batch);
            batch.clear();
            // Growing step by step would copy the rows before.
            let heads = || blocks.iter().map(|(_, location)| &location.head);
            let raw_bytes: usize = heads().map(|head| head.raw_bytes as usize).sum();
            let rows: usize = heads().map(|head| head.rows as usize).sum();
            let raw_bytes = raw_bytes.min(STRIPE_BYTES_MAX);
            batch.reserve_rows(raw_bytes, rows.min(raw_bytes / LINE));
            let mut room = STRIPE_BYTES_MAX;
            for (file, block_location) in blocks {
                let id = self.active[index].files[file as usize];
                let result = self.read_block(&id, &block_location, &mut room, &mut batch);
                match result {
                    Ok(()) => {}
                    Err(e @ Error::Answer(_)) => {
                        self.fail_scan(e);
                        return false;
                    }
                    Err(e) => self.report_problem(e),
                }
                if let Some(p) = &self.store_progress {
                    p.bytes.fetch_add(block_location.head.bytes.into(), Ordering::Relaxed);
                }
            }
            batch.sort_keys();
            if let Some(p) = &self.store_progress {
                p.rows.fetch_add(batch.keys.len() as u64, Ordering::Relaxed);
            }
            let stream = &mut self.active[index];
            (stream.batch, stream.key_index) = (batch, 0);
            if !stream.batch.keys.is_empty() {
                return true;
            }
        }
        false
    }

    /// Adds the selected rows of a block to `batch`.
    fn read_block(
        &mut self,
        id: &FileId,
        location: &BlockLocation,
        room: &mut usize,
        batch: &mut FrameBatch,
    ) -> Result<()> {
        let path = self.scan_input.blocks.path(id);
        let damage_at = |offset: u64, reason: &str| {
            Err(Error::block_damage(&path, location.head.number, location.offset + offset, reason))
        };
        // Before any memory of the stated size is allocated.
        match room.checked_sub(location.head.raw_bytes as usize) {
            Some(left) => *room = left,
            None => return damage_at(0, "its stripe holds more than any that a seal writes"),
        }
        let block = self.scan_input.blocks.read(id, location, &FieldClass::ALL, &mut self.block)?;
        let block_filter = self.row_selection.in_block(location.head.instrument);
        match self.decoder.decode(&block, &location.head, &block_filter, batch) {
            Ok(()) => Ok(()),
            Err(flaw) => damage_at(flaw.offset as u64, flaw.reason),
        }
    }

    /// Ends the scan, because the rest cannot be read.
    fn fail_scan(&mut self, failure: Error) {
        self.active.clear();
        self.tapes.clear();
        self.failure = Some(failure);
    }

    fn report_problem(&mut self, problem: Error) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}
