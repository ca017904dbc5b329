//! What the sequencer keeps of each feed and source: how far it has come, and what its order depends on.

use crate::account::SourceAccount;
use crate::block::{Block, Fixup, Tally};
use crate::bookkeeping::source_frame;
use crate::decode::Decoder;
use crate::iso20022::Carried;
use crate::source::SourceFacts;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use unitape_model::Dict;

/// What the sequencer keeps of a feed.
#[derive(Debug)]
pub struct FeedState {
    /// Its name.
    pub name: String,
    /// Its sources are found while it runs.
    pub grows: bool,
    /// Messages that came behind their time order.
    pub late: u64,
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
    /// What came before of a message that was not over there.
    pub carried: Option<Box<Carried>>,
    /// Greatest event time so far: a feed's own order wins over its clock.
    pub running_max: i64,
    /// Greatest sequence of each session.
    pub sessions: Sessions,
    /// How often messages of a session came that is not kept, see [`SESSIONS_MAX`].
    pub sessions_refused: u64,
    /// Sources still to come or not yet ended; a feed whose sources are found while it runs counts as one.
    pub open_sources: usize,
    /// Brings nothing more in this run, whatever is open.
    pub closed: bool,
    /// The merge has waited for it long enough; until it brings something again.
    pub quiet: bool,
    /// The decoder of a stream, whose blocks are decoded in their turn, and which of the feed's mappings it is by.
    pub in_turn: Option<(u64, Decoder)>,
    /// When the leftover bytes were received.
    pub leftover_times: Vec<(u64, i64)>,
    /// The account of all of its sources, of the blocks that are wholly on the tape.
    pub total: Tally,
    /// Blocks claimed and not yet wholly on the tape; the intake looks at it.
    pub outstanding: Arc<AtomicU64>,
}

/// What the sequencer keeps of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceState {
    /// Id of its first definition; 0 while it has none.
    pub first_id: u32,
    /// Id of the definition in use, for its first 4 GiB.
    pub id: u32,
    /// The definition in use is on the tape.
    pub defined: bool,
    /// Id of the definition in use of each further 4 GiB.
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
    /// Read again from its start, because what comes depends on it: marks of progress up to here are on the tape.
    pub again_through: u64,
    /// Name of its feed, to define further extents.
    pub feed: String,
    /// File name.
    pub file: String,
    /// Bytes, where they are known.
    pub size: Option<u64>,
    /// Its hash, or that of its first message.
    pub hash: Option<String>,
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
    /// What the tape says of a source.
    pub fn of(source: &SourceAccount) -> Self {
        let ids = source.further.range(source.sort_id..);
        let id = ids.clone().find(|(_, extent)| **extent == 0).map_or(source.id, |(id, _)| *id);
        Self {
            first_id: source.id,
            id,
            defined: true,
            extents: ids.filter(|(_, extent)| **extent != 0).map(|(id, extent)| (*extent, *id)).collect(),
            tally: source.tally,
            seen: source.tally.messages,
            through: source.through,
            end: source.end,
            on_tape_through: source.last_offset,
            again_through: 0,
            feed: source.feed.clone(),
            file: source.file.clone(),
            size: source.size,
            hash: source.hash.clone(),
            sort: source.sort.clone(),
        }
    }

    /// The source is read again from its start, for what the decoder has to know; what is on the tape already is left
    /// out, and counted anew.
    pub fn read_again(mut self) -> Self {
        (self.tally, self.seen) = (Tally::default(), 0);
        self.again_through = self.through;
        if self.through > 0 {
            self.on_tape_through = self.on_tape_through.max(Some(self.through - 1));
        }
        self
    }

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

    /// Whether this mark of progress is on the tape already.
    pub fn has_mark(&self, through: u64, end: bool) -> bool {
        through < self.again_through || through == self.again_through && through > 0 && !end
    }

    /// Writes the definition of a further 4 GiB.
    pub fn extent_frame(&self, id: u32, offset: u64, out: &mut Vec<u8>) {
        let facts = SourceFacts { file: self.file.clone(), size: None, hash: None };
        source_frame(out, (id, self.first_id), &self.feed, &facts, &self.sort, offset >> 32 << 32);
    }

    /// Writes its definition: the first one, told apart by its first message at `offset`, or a further one
    /// after the mapping changed.
    pub fn define(&mut self, next: &mut u32, (offset, first): (u64, &[u8]), out: &mut Vec<u8>) {
        let id = *next;
        *next += 1;
        self.defined = true;
        let extent = (offset >> 32) as u32;
        if self.first_id == 0 {
            self.first_id = id;
            self.id = id;
            if self.hash.is_none() && !first.is_empty() {
                self.hash = Some(first_message_hash(offset, first));
            }
            let facts = SourceFacts { file: self.file.clone(), size: self.size, hash: self.hash.clone() };
            source_frame(out, (id, 0), &self.feed, &facts, &self.sort, 0);
        } else {
            match extent {
                0 => self.id = id,
                _ => _ = self.extents.insert(extent, id),
            }
            self.extent_frame(id, offset, out);
        }
    }

    /// What comes now is decoded by another mapping, and gets a definition of its own.
    pub fn switch(&mut self, sort: Sort) {
        self.sort = sort;
        self.defined = false;
        self.extents.clear();
    }
}

/// What tells a source apart whose end is not known when it begins: the place and hash of its first message.
pub fn first_message_hash(offset: u64, message: &[u8]) -> String {
    format!("first:{offset}+{}:{}", message.len(), &blake3::hash(message).to_hex()[..32])
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
        (name, grows): (String, bool),
        sources: Vec<SourceState>,
        (running_max, sessions): (i64, Sessions),
        open_sources: usize,
        outstanding: Arc<AtomicU64>,
    ) -> Self {
        let total = sources.iter().fold(Tally::default(), |sum, s| sum.plus(s.tally));
        Self {
            name,
            grows,
            late: 0,
            sources,
            queue: VecDeque::new(),
            cursor: Cursor::default(),
            expected: None,
            leftover: Vec::new(),
            carried: None,
            running_max,
            sessions,
            sessions_refused: 0,
            open_sources,
            closed: false,
            quiet: false,
            in_turn: None,
            leftover_times: Vec::new(),
            total,
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
            self.sessions_refused +=
                apply_runs(block, &mut self.cursor.run, block.runs.len(), &mut self.sessions);
            let state = &mut self.sources[block.source];
            state.tally = state.tally.plus(block.tally);
            self.total = self.total.plus(block.tally);
            block.done = true;
            self.cursor = Cursor::default();
        }
    }

    /// The block's place in its source does not follow what was decoded before it.
    pub fn misses(&self, block: &Block) -> bool {
        // A message that goes on from block to block must be told what it began with.
        self.carried.is_some()
            || !self.leftover.is_empty()
            || self.expected.is_some_and(|e| e != (block.source, block.base))
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
        block.carried = self.carried.take();
        block.base -= self.leftover.len() as u64;
        self.leftover.append(&mut block.bytes);
        std::mem::swap(&mut self.leftover, &mut block.bytes);
        self.leftover.clear();
        if !self.leftover_times.is_empty() {
            self.leftover_times.append(&mut block.times);
            self.leftover_times.dedup();
            std::mem::swap(&mut self.leftover_times, &mut block.times);
            self.leftover_times.clear();
        }
    }

    /// Keeps what the block did not decode, for the next one.
    pub fn keep_leftover(&mut self, block: &mut Block) {
        self.carried = block.leaves.take();
        // It belongs to the same source: at its end a block is decoded whole.
        self.leftover.extend_from_slice(&block.bytes[block.decoded..]);
        self.leftover_times.clear();
        if !self.leftover.is_empty() {
            self.leftover_times.extend_from_slice(&block.times);
        }
        self.expected =
            if block.eof { None } else { Some((block.source, block.base + block.bytes.len() as u64)) };
    }
}

/// Greatest sequence of each session.
pub type Sessions = BTreeMap<Vec<u8>, u64>;

/// A feed's sessions that are kept, the first ones in its order. What a further session sends again is taken
/// for new, so nothing is lost to the bound.
pub const SESSIONS_MAX: usize = 1024;

/// Takes over what the block's runs up to `upto` say of the sessions. Gives how many runs were of sessions that are
/// not kept.
pub fn apply_runs(block: &Block, done: &mut usize, upto: usize, sessions: &mut Sessions) -> u64 {
    let mut refused = 0;
    for run in &block.runs[(*done).min(upto)..upto] {
        let session = &block.sessions[run.session as usize];
        if let Some(max) = sessions.get_mut(session) {
            *max = run.max.max(*max);
        } else if sessions.len() < SESSIONS_MAX {
            sessions.insert(session.clone(), run.max);
        } else {
            refused += 1;
        }
    }
    *done = upto.max(*done);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound that nobody is told of looks like a feed without duplicates.
    #[test]
    fn sessions_beyond_the_bound_are_counted() {
        let mut block = Block::default();
        let name = |i: usize| format!("S{i}").into_bytes();
        for i in 0..SESSIONS_MAX + 3 {
            let id = block.session_named(&name(i), None);
            block.note_sequence(id, 1, false);
        }
        let (mut done, mut sessions) = (0, Sessions::new());
        assert_eq!(apply_runs(&block, &mut done, block.runs.len(), &mut sessions), 3);
        assert_eq!((done, sessions.len()), (SESSIONS_MAX + 3, SESSIONS_MAX));
        assert!(sessions.contains_key(&name(0)) && !sessions.contains_key(&name(SESSIONS_MAX)));
    }
}
