//! What the sequencer keeps of each feed and source: how far it has come, and what its order depends on.

use crate::block::{Block, Fixup, Tally};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use unitape_model::Dict;

/// What the sequencer keeps of a feed.
#[derive(Debug)]
pub struct FeedState {
    /// Sources in order.
    pub sources: Vec<SourceState>,
    /// Blocks decoded and not yet wholly on the tape.
    pub queue: VecDeque<Box<Block>>,
    /// How far the first block that is not done has been taken.
    pub cursor: Cursor,
    /// Where the next block must start: index of the source and offset.
    pub expected: Option<(usize, u64)>,
    /// Bytes that the block before left undecoded.
    pub leftover: Vec<u8>,
    /// Greatest event time so far: a feed's own order wins over its clock.
    pub running_max: i64,
    /// Greatest sequence of each session.
    pub sessions: Sessions,
    /// Sources still to come or not yet ended.
    pub open_sources: usize,
    /// Blocks claimed and not yet wholly on the tape; the intake looks at it.
    pub outstanding: Arc<AtomicU64>,
}

/// What the sequencer keeps of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceState {
    /// Id of its definition.
    pub id: u32,
    /// Id of the definition of each further 4 GiB.
    pub extents: BTreeMap<u32, u32>,
    /// Its account so far.
    pub tally: Tally,
    /// Messages in the blocks taken so far, placed or not.
    pub seen: u64,
    /// Consumed through this offset, as the last mark of progress says.
    pub through: u64,
    /// Consumed to its end.
    pub end: bool,
    /// Messages that start here or before are on the tape already.
    pub on_tape_through: Option<u64>,
    /// Name of its feed, to define further extents.
    pub feed: String,
    /// File name.
    pub file: String,
    /// Format and mapping.
    pub sort: Sort,
}

/// Format and mapping of a source, as its definition tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// The format's word.
    pub format: String,
    /// Name and hash of the mapping.
    pub mapping: Option<String>,
}

impl SourceState {
    /// Id of the definition of a further 4 GiB, and whether it is given just now.
    pub fn extent(&mut self, extent: u32, next: &mut u32) -> (u32, bool) {
        if let Some(id) = self.extents.get(&extent) {
            return (*id, false);
        }
        let id = *next;
        *next += 1;
        self.extents.insert(extent, id);
        (id, true)
    }
}

/// How far the first block of a feed's queue has been taken.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Cursor {
    pub unit: usize,
    pub arena: usize,
    pub fixup: usize,
    pub raw: usize,
    pub run: usize,
    /// Global ids of the block's own names, by dictionary and own id; 0 not yet given.
    resolved: [Vec<u32>; Dict::COUNT],
}

impl Cursor {
    /// The id that was given to the block's own name, 0 if none was yet.
    pub fn resolved(&self, fixup: &Fixup) -> u32 {
        self.resolved[fixup.dict as usize].get(fixup.id as usize).copied().unwrap_or(0)
    }

    /// Keeps the id that was given to the block's own name.
    pub fn resolve(&mut self, fixup: &Fixup, id: u32) {
        let table = &mut self.resolved[fixup.dict as usize];
        if table.len() <= fixup.id as usize {
            table.resize(fixup.id as usize + 1, 0);
        }
        table[fixup.id as usize] = id;
    }
}

impl FeedState {
    /// A feed with its sources, of which `open_sources` are still to be read.
    pub fn new(
        sources: Vec<SourceState>,
        (running_max, sessions): (i64, Sessions),
        open_sources: usize,
        outstanding: Arc<AtomicU64>,
    ) -> Self {
        Self {
            sources,
            queue: VecDeque::new(),
            cursor: Cursor::default(),
            expected: None,
            leftover: Vec::new(),
            running_max,
            sessions,
            open_sources,
            outstanding,
        }
    }

    /// How many of its blocks are claimed and not yet wholly on the tape.
    pub fn outstanding(&self) -> Arc<AtomicU64> {
        self.outstanding.clone()
    }

    /// The block that the cursor stands in. Those before it are done and wait to be copied.
    pub fn in_hand(&self) -> Option<usize> {
        self.queue.iter().position(|b| !b.done)
    }

    /// The time by which the next unit is merged; `None` when nothing is at hand.
    pub fn head(&self) -> Option<i64> {
        let unit = self.queue[self.in_hand()?].units[self.cursor.unit];
        Some(self.running_max.max(unit.ts))
    }

    /// Settles blocks without further units, so that the cursor stands at a unit or at nothing.
    pub fn advance(&mut self) {
        while let Some(i) = self.in_hand() {
            let block = &mut self.queue[i];
            if self.cursor.unit < block.units.len() {
                return;
            }
            apply_runs(block, &mut self.cursor.run, block.runs.len(), &mut self.sessions);
            let state = &mut self.sources[block.source];
            state.tally = state.tally.plus(block.tally);
            block.done = true;
            self.cursor = Cursor::default();
        }
    }

    /// The block's place in its source does not follow what was decoded before it.
    pub fn misses(&self, block: &Block) -> bool {
        !self.leftover.is_empty() || self.expected.is_some_and(|e| e != (block.source, block.base))
    }

    /// The block ends a source, or has its trailer, and there are more or fewer messages before than is said;
    /// the decoder is to say where.
    pub fn miscounts(&self, block: &mut Block) -> bool {
        let before = self.sources[block.source].seen;
        let wrong = block.claims.iter().any(|c| before + c.here != c.messages);
        block.before = wrong.then_some(before);
        wrong
    }

    /// Puts what was left over before the block's own bytes, to be decoded again.
    pub fn join_leftover(&mut self, block: &mut Block) {
        block.base -= self.leftover.len() as u64;
        self.leftover.append(&mut block.bytes);
        std::mem::swap(&mut self.leftover, &mut block.bytes);
        self.leftover.clear();
    }
}

/// Greatest sequence of each session.
pub type Sessions = BTreeMap<Vec<u8>, u64>;

/// A feed's sessions that are kept, the first ones in its order. What a further session sends again is taken
/// for new, so nothing is lost to the bound.
pub const SESSIONS_MAX: usize = 1024;

/// Takes over what the block's runs up to `upto` say of the sessions.
pub fn apply_runs(block: &Block, done: &mut usize, upto: usize, sessions: &mut Sessions) {
    for run in &block.runs[(*done).min(upto)..upto] {
        let session = &block.sessions[run.session as usize];
        if let Some(max) = sessions.get_mut(session) {
            *max = run.max.max(*max);
        } else if sessions.len() < SESSIONS_MAX {
            sessions.insert(session.clone(), run.max);
        }
    }
    *done = upto.max(*done);
}
