//! The fast way of fixed-width records: up to 64 at once, column by column, straight into frames.
//!
//! ```text
//!  block   │rec│rec│rec│…│   starts, sorts           every record of its length, every line end in its place
//!             │ Columns::read   numbers, instants    by column; what is not plain is not good
//!             │ prepare         prices, quantities   by field, checked
//!             ▼ emit            names, kept columns  by record: template, ids, extension, unit
//!  arena   │frame│frame │…   store                   by field, into the frames
//! ```
//!
//! It is used for records whose rule it can express ([`program`] says which those are), and within a batch for those
//! that are good in all it looks at; every other record takes the general way, in its turn, and that one says
//! what is wrong with it. So both ways give the same bytes, and the general one is the twin of this one: tests
//! hold them equal.

mod bulk;
mod emit;
mod kept;
mod names;
mod program;
mod put;

use super::FixedDecoder;
use crate::block::Block;
use emit::Lists;
pub(super) use program::KindProgram;
use unitape_codec::fixed::{Framed, Frames, LANES, Layout};
use unitape_model::Dictionary;

/// What the fast way keeps; one per worker and feed.
#[derive(Debug)]
pub(super) struct Fast {
    /// By sort of record.
    kinds: Vec<Option<KindProgram>>,
    lists: Lists,
    frames: Frames,
    found: Box<[Framed; LANES]>,
    looked_up: Box<bulk::Found>,
    /// Records taken so.
    taken: u64,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    start: u32,
    /// Bytes without the terminator.
    length: u32,
    /// Behind the terminator.
    end: u32,
    /// Sort of record, or [`SLOW`].
    kind: u16,
    /// Index among those of its sort.
    index: u8,
}

/// A record that takes the general way.
const SLOW: u16 = u16::MAX;

impl Fast {
    /// `None` where no sort of record can be taken this way.
    pub(super) fn new(kinds: Vec<Option<KindProgram>>, layout: &Layout) -> Option<Self> {
        kinds.iter().any(Option::is_some).then(|| Self {
            lists: Lists::new(kinds.len()),
            kinds,
            frames: Frames::new(layout),
            found: Box::new([Framed::default(); LANES]),
            looked_up: Box::default(),
            taken: 0,
        })
    }

    /// Which sorts of record can be taken.
    #[cfg(test)]
    pub(super) fn kinds(&self) -> Vec<bool> {
        self.kinds.iter().map(Option::is_some).collect()
    }

    /// How many records were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Names may have other ids than in the block before.
    pub(super) fn begin_block(&mut self) {
        self.kinds.iter_mut().flatten().for_each(KindProgram::begin_block);
    }

    /// Finds the records of a batch from `at` on; gives how many.
    fn gather(&mut self, layout: &Layout, bytes: &[u8], at: usize, lanes: &mut [Lane; LANES]) -> usize {
        self.lists.clear();
        if let Some((first, count)) = self.frames.even(layout, bytes, at) {
            return self.even(bytes, at, (first, count), lanes);
        }
        let found = &mut self.found;
        let count = self.frames.fill(layout, bytes, at, found);
        let mut next = at;
        for (lane, found) in lanes.iter_mut().zip(&found[..count]) {
            let program = self.kinds[usize::from(found.kind)].as_ref();
            let fast = program.is_some_and(|p| next + p.reach <= bytes.len());
            let index = self.lists.add(if fast { Some(found.kind) } else { None }, next);
            let (start, length) = (next as u32, found.length);
            *lane = Lane { start, length, end: found.end, kind: if fast { found.kind } else { SLOW }, index };
            next = found.end as usize;
        }
        count
    }

    /// The same for records that are all like the first; those that come too near the end of the block are left.
    #[inline]
    fn even(
        &mut self,
        bytes: &[u8],
        at: usize,
        (first, count): (Framed, usize),
        lanes: &mut [Lane; LANES],
    ) -> usize {
        let whole = first.end as usize - at;
        let reach = self.kinds[usize::from(first.kind)].as_ref().map(|p| p.reach);
        let room = |reach: usize| (bytes.len() - at).checked_sub(reach).map_or(0, |room| room / whole + 1);
        let fast = reach.map_or(0, room).min(count);
        let starts = (0..fast).map(|i| (at + i * whole) as u32);
        self.lists.starts[usize::from(first.kind)].extend(starts);
        for (i, lane) in lanes.iter_mut().enumerate().take(count) {
            let start = (at + i * whole) as u32;
            let kind = if i < fast { first.kind } else { SLOW };
            let index = if i < fast { i as u8 } else { 0 };
            *lane = Lane { start, length: first.length, end: start + whole as u32, kind, index };
        }
        count
    }
}

impl FixedDecoder {
    /// Decodes records from `at` on for as long as the fast way finds some; gives where it stopped.
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
        // The fix-ups of what the general way has left stand before those of the batch.
        block.settle_names(known);
        let mut lanes = [Lane::default(); LANES];
        loop {
            let count = fast.gather(self.decoder.layout(), bytes, at, &mut lanes);
            // A few records at the end, or before something odd, are as quickly done one by one.
            if count < 4 {
                break;
            }
            let done = self.batch(&mut fast, block, bytes, &lanes[..count], (source, known, before));
            at = done;
            if done != lanes[count - 1].end as usize {
                break;
            }
        }
        self.fast = Some(fast);
        at
    }
}
