//! From the store back to events, in the order of the tape.

use std::collections::VecDeque;
use std::sync::Arc;

use unitape_model::{Event, Position, UnixNanos};
use unitape_tape::TapeId;

use crate::day::Day;
use crate::error::{Error, Result};
use crate::manifest::AsOf;
use crate::schema::TickSchema;
use crate::seal::StoreProgress;
use crate::source::ScanInput;
use crate::window::{PartTape, RowOrder, Segment, SegmentFile, WindowReader, WindowRow};

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
    /// The state of the store; the newest one if none. Events and names that came later do not show.
    pub as_of: Option<AsOf>,
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
    reader: WindowReader<'a>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(input: ScanInput<'a>, filter: &ScanFilter) -> Result<Self> {
        let bounds = input.bounds(filter)?;
        let selection = input.selection(filter, bounds.as_ref())?;
        let mut segments: VecDeque<Segment<'a>> = input.tapes.iter().map(|_| Segment::new()).collect();
        for part in input.parts {
            let part_tapes = PartTape::list(part, &input.tapes, bounds.as_ref());
            for (index, tape) in part_tapes.iter().enumerate().filter(|(_, tape)| tape.is_wanted()) {
                let tapes = PartTape::alone(&part_tapes, index);
                for entry in part.files.iter().filter(|entry| selection.wants_file(part, entry)) {
                    let (tapes, first_place) = (tapes.clone(), tape.ordinals.0);
                    segments[tape.rank as usize].push_back(SegmentFile { part, entry, tapes, first_place });
                }
            }
        }
        for segment in &mut segments {
            segment.make_contiguous().sort_by_key(|file| file.first_place);
        }
        Ok(Self { reader: WindowReader::new(input, selection, RowOrder::Tape, segments) })
    }

    /// Reports how far it is in `progress`: bytes of blocks read, of those chosen so far, and rows.
    pub fn with_progress(mut self, progress: Arc<StoreProgress>) -> Self {
        self.reader.set_progress(progress);
        self
    }

    /// Decodes about this many bytes of frames at once, instead of 256 MiB.
    pub fn with_window_bytes(mut self, bytes: u64) -> Self {
        self.reader.set_window_bytes(bytes);
        self
    }

    /// Returns the next event, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // lends its window, which an Iterator cannot
    pub fn next(&mut self) -> Option<StoredEvent<'_>> {
        let WindowRow { key, frame, tape, .. } = self.reader.next()?;
        Some(StoredEvent { tape, ordinal: key.ordinal, position: key.position, frame })
    }

    /// Returns the first 1,000 problems found so far.
    pub fn problems(&self) -> &[Error] {
        &self.reader.problems
    }

    /// Counts the problems found so far.
    pub fn problem_count(&self) -> u64 {
        self.reader.problem_count
    }

    /// Takes the failure that ended the scan before its end, if one did. Events of a store in a directory always end at its end.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.reader.failure.take()
    }
}
