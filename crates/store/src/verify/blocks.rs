//! The blocks of a store, opened and counted.

use std::cell::Cell;

use unitape_model::{Event, FieldClass, NameKind, UnixNanos};

use crate::day::DayRule;
use crate::decode::{BlockDecoder, FrameBatch, RowFilter};
use crate::dictionary::TokenDictionary;
use crate::error::{Error, Result};
use crate::file::{BlockFile, BlockLocation, BlockOpener, FileId};
use crate::manifest::FileEntry;
use crate::schema::TickSchema;

/// Opens and decodes blocks.
pub(super) struct BlockChecker<'a> {
    /// The names of the store, if they can be read.
    names: Option<&'a TokenDictionary>,
    day_rule: DayRule,
    opener: BlockOpener<'a>,
    decoder: BlockDecoder,
    batch: FrameBatch,
    block: Vec<u8>,
}

impl<'a> BlockChecker<'a> {
    /// Makes the check; without `names` the days of a calendar are not compared.
    pub fn new(names: Option<&'a TokenDictionary>, day_rule: DayRule, opener: BlockOpener<'a>) -> Self {
        let (decoder, batch) = (BlockDecoder::default(), FrameBatch::default());
        Self { names, day_rule, opener, decoder, batch, block: Vec::new() }
    }

    /// Opens all chunks of a block, makes its frames, and counts them.
    pub fn check_block(
        &mut self,
        file: &BlockFile,
        id: &FileId,
        location: &BlockLocation,
        counts: &mut FileCounts,
    ) -> Result<()> {
        let (head, number) = (&location.head, location.head.number);
        let open_block = self.opener.read_block(file, id, location, &FieldClass::ALL, &mut self.block)?;
        self.batch.clear();
        self.decoder.decode(&open_block, head, &RowFilter::all(), &mut self.batch).map_err(|flaw| {
            Error::block_damage(file.path(), number, location.offset + flaw.offset as u64, flaw.reason)
        })?;
        let damage_error =
            |reason: &str| Err(Error::block_damage(file.path(), number, location.offset, reason));
        if self.batch.keys.len() as u64 != u64::from(head.rows) {
            return damage_error("it has not as many rows as its header says");
        }
        for key in &self.batch.keys {
            let Some(ordinals) = counts.ordinals.get_mut(key.tape_rank as usize) else {
                return damage_error("it has an event of a tape that its part does not have");
            };
            *ordinals = (ordinals.0.min(key.ordinal), ordinals.1.max(key.ordinal));
            let event = Event::new(self.batch.frame(key)).expect("only whole frames are decoded");
            let is_erased = Cell::new(false);
            let venue_name = |venue| {
                let names = self.names?;
                is_erased.set(names.sealed().is_some_and(|sealed| sealed.is_erased(NameKind::Venue, venue)));
                names.names.name(NameKind::Venue, venue)
            };
            // Without the name of the venue, the day of a calendar is not known.
            let is_dated = self.day_rule.day_of(&event, venue_name) == id.day
                || self.day_rule.has_calendar() && (self.names.is_none() || is_erased.get());
            if !is_dated || TickSchema::for_kind(event.kind()) != Some(id.schema) {
                return damage_error("it has an event of another day or schema");
            }
        }
        counts.blocks += 1;
        counts.rows += u64::from(head.rows);
        counts.raw_bytes += u64::from(head.raw_bytes);
        counts.time_range = (counts.time_range.0.min(head.ts_min), counts.time_range.1.max(head.ts_max));
        Ok(())
    }
}

/// The counts of a file's contents.
pub(super) struct FileCounts {
    blocks: u32,
    rows: u64,
    raw_bytes: u64,
    time_range: (UnixNanos, UnixNanos),
    /// The first and the last ordinal of each tape of the part, by its index.
    pub ordinals: Vec<(u64, u64)>,
}

impl FileCounts {
    pub fn new(tapes: usize) -> Self {
        let time_range = (UnixNanos(i64::MAX), UnixNanos(i64::MIN));
        Self { blocks: 0, rows: 0, raw_bytes: 0, time_range, ordinals: vec![(u64::MAX, 0); tapes] }
    }

    pub fn are_of(&self, entry: &FileEntry) -> bool {
        (self.blocks, self.rows, self.raw_bytes) == (entry.blocks, entry.rows, entry.raw_bytes)
            && self.time_range == (UnixNanos(entry.ts_min), UnixNanos(entry.ts_max))
    }
}
