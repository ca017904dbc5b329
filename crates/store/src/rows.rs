//! Rows of one schema, in the order of event time, out of market data alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use unitape_model::{ClassSet, Event, EventRow};

use crate::day::Day;
use crate::error::{Error, Result};
use crate::manifest::GenerationBounds;
use crate::scan::ScanFilter;
use crate::schema::TickSchema;
use crate::seal::StoreProgress;
use crate::selection::Selection;
use crate::source::ScanInput;
use crate::window::{PartTape, RowOrder, Segment, SegmentFile, WindowReader};

/// Returns the files that may have a selected row, by day. Undated ones are left out where a window of time is wanted.
pub(crate) fn day_segments<'a>(
    input: &ScanInput<'a>,
    selection: &Selection,
    bounds: Option<&GenerationBounds>,
    has_window: bool,
) -> VecDeque<Segment<'a>> {
    let mut days: BTreeMap<Day, Segment<'a>> = BTreeMap::new();
    for part in input.parts.iter().filter(|part| !(has_window && part.date == Day::UNDATED)) {
        let tapes = PartTape::list(part, &input.tapes, bounds);
        if !tapes.iter().any(PartTape::is_wanted) {
            continue;
        }
        for entry in part.files.iter().filter(|entry| selection.wants_file(part, entry)) {
            let file = SegmentFile { part, entry, tapes: tapes.clone(), first_place: 0 };
            days.entry(part.date).or_default().push_back(file);
        }
    }
    days.into_values().collect()
}

/// Rows of one schema, one after the other: by event time, ties in the order of the tapes.
///
/// Only chunks of market data are opened. A damaged block is skipped and reported in [`RowScan::problems`]; the rest is read.
#[derive(Debug)]
pub struct RowScan<'a> {
    reader: WindowReader<'a>,
}

impl<'a> RowScan<'a> {
    pub(crate) fn new(input: ScanInput<'a>, schema: TickSchema, filter: &ScanFilter) -> Result<Self> {
        let filter = ScanFilter { schemas: vec![schema], ..filter.clone() };
        let bounds = input.bounds(&filter)?;
        let selection = input.selection(&filter, bounds.as_ref())?;
        let has_window = filter.from.is_some() || filter.to.is_some();
        let segments = day_segments(&input, &selection, bounds.as_ref(), has_window);
        Ok(Self { reader: WindowReader::new(input, selection, RowOrder::Time, segments) })
    }

    /// Reports how far it is in `progress`: bytes of blocks read, of those chosen so far, and rows.
    pub fn with_progress(mut self, progress: Arc<StoreProgress>) -> Self {
        self.reader.set_progress(progress);
        self
    }

    /// Reads the values of these classes. A row of a scan without this has market data alone.
    pub fn with_classes(mut self, classes: ClassSet) -> Self {
        // A frame is whole, or has its market data.
        if classes != ClassSet::MARKET {
            self.reader.read_all_classes();
        }
        self
    }

    /// Decodes about this many bytes of rows at once, instead of 256 MiB.
    pub fn with_window_bytes(mut self, bytes: u64) -> Self {
        self.reader.set_window_bytes(bytes);
        self
    }

    /// Returns the next row, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // lends its window, which an Iterator cannot
    pub fn next(&mut self) -> Option<EventRow<'_>> {
        let row = self.reader.next()?;
        let event = Event::new(row.frame).expect("only whole frames of known kinds are decoded");
        Some(EventRow { event, names: row.names })
    }

    /// Returns the first 1,000 problems found so far.
    pub fn problems(&self) -> &[Error] {
        &self.reader.problems
    }

    /// Counts the problems found so far.
    pub fn problem_count(&self) -> u64 {
        self.reader.problem_count
    }

    /// Takes the failure that ended the scan before its end, if one did. Rows of a store in a directory always end at its end.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.reader.failure.take()
    }
}
