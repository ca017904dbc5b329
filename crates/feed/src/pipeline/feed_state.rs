//! The sequencer's state of each feed and source: its position, and the inputs of its order.

use crate::account::bookkeeping::{SourceDefinitionFields, head_frame, source_frame};
use crate::account::{SourceAccount, TapeAccount};
use crate::block::cursor::BlockCursor;
use crate::block::numbers::FeedSessions;
use crate::block::{Block, BlockMessage, CarriedMessage, MessageTally};
use crate::formats::decoder::FeedDecoder;
use crate::formats::format::FormatId;
use crate::pipeline::job::BlockJob;
use crate::pipeline::lead::ClockLeadContext;
use crate::pipeline::sequence::{LargeMessage, UnitPlace};
use crate::sources::content::ContentHash;
use crate::sources::link::{FeedAvailability, MergeWait};
use crate::sources::open::first_message_hash;
use crate::sources::source::SourceFacts;
use crate::sources::stats::JournalPosition;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use unitape_model::UnixNanos;

/// The sequencer's state of a feed.
#[derive(Debug)]
pub struct FeedState {
    /// Its name.
    pub name: String,
    /// Its sources are found while it runs.
    pub grows: bool,
    /// Whether its marks of progress have the hash of the bytes read.
    pub hashes: bool,
    /// Messages that came after their time order.
    pub late: u64,
    /// Messages whose time leads by more than it may.
    pub clock_ahead: u64,
    /// The event time of its messages is compared with the time of their receipt.
    pub received: bool,
    /// A message whose last part has not arrived.
    pub large: Option<Box<LargeMessage>>,
    /// The merge's knowledge of the current unit.
    pub head: Option<FeedHead>,
    /// Sources in order.
    pub sources: Vec<SourceState>,
    /// Blocks decoded and not yet wholly on the tape.
    pub queue: VecDeque<Box<BlockJob>>,
    /// The position in the first block that is not done.
    pub cursor: BlockCursor,
    /// The required start of the next block: index of the source and offset.
    pub expected: Option<(usize, u64)>,
    /// Bytes that the block before left undecoded.
    pub leftover: Vec<u8>,
    /// The unfinished message at the end of the block before.
    pub carried: Option<Box<CarriedMessage>>,
    /// Greatest event time so far: a feed's own order wins over its clock.
    pub running_max: UnixNanos,
    /// The sequence numbers that each session has sent.
    pub sessions: FeedSessions,
    /// Sources not yet ended, including future ones; a feed whose sources are found while it runs counts as one.
    pub open_sources: usize,
    /// Brings nothing more in this run, whatever is open.
    pub closed: bool,
    /// Its journal continues in a further file where a message ends: its receiver is to know where that is.
    pub rotates: bool,
    /// The latest availability that the intake reported.
    pub availability: FeedAvailability,
    /// The time that the merge waits for it.
    pub wait: MergeWait,
    /// Since when it has something at hand that waits for other feeds, on the intake's clock.
    pub held_since: Option<i64>,
    /// Since when other feeds wait for it.
    pub waited_since: Option<i64>,
    /// The decoder of a stream, whose blocks are decoded in their turn, and which of the feed's mappings it is by.
    pub in_turn: Option<(u64, FeedDecoder)>,
    /// When the leftover bytes were received.
    pub leftover_times: Vec<(u64, UnixNanos)>,
    /// The account of all of its sources, of the blocks that are wholly on the tape.
    pub total: MessageTally,
    /// Blocks claimed and not yet wholly on the tape; the intake looks at it.
    pub outstanding: Arc<AtomicU64>,
    /// Its messages are the ticks of a clock, for which nothing waits.
    pub is_clock: bool,
    /// The last unit that was placed or left out, beside a clock.
    pub passed: Option<UnitPlace>,
}

/// The merge's knowledge of a feed's next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedHead {
    /// The time by which it is merged.
    pub ts: UnixNanos,
    /// Its time leads by more than it may.
    pub is_ahead: bool,
}

/// The sequencer's state of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceState {
    /// Id of its first definition; 0 without a definition.
    pub first_id: u32,
    /// Id of the definition in use, for its first 4 GiB.
    pub id: u32,
    /// The definition in use is on the tape.
    pub defined: bool,
    /// Id of the definition in use of each further 4 GiB.
    pub extents: BTreeMap<u32, u32>,
    /// Ids of the definitions in use that have its first bytes, by its 4 GiB and the hash of these bytes.
    pub head_ids: BTreeMap<(u32, [u8; 32]), u32>,
    /// The first bytes that messages in quarantine had last, and their hash.
    pub head: Option<(Arc<[u8]>, [u8; 32])>,
    /// Its account so far.
    pub tally: MessageTally,
    /// Messages in the blocks sequenced so far, placed or not.
    pub sequenced_messages: u64,
    /// Consumed through this offset, as the last mark of progress says.
    pub through: u64,
    /// Consumed to its end.
    pub end: bool,
    /// Messages that start here or before are on the tape already.
    pub on_tape_through: Option<u64>,
    /// Starts of messages among these that lead, since the last mark of progress; in order.
    pub ahead_offsets: Vec<u64>,
    /// Set if the source is read again from its start, because later messages depend on it: marks of progress up to
    /// here are on the tape.
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
    pub format_id: FormatId,
    /// The hash of the decoded bytes, if its marks of progress have it.
    pub content: Option<Box<ContentHash>>,
}

impl SourceState {
    /// Makes the state of a source from its account on the tape.
    pub fn from_account(source: &SourceAccount) -> Self {
        let ids = source
            .further
            .range(source.mapping_start_id..)
            .filter(|(id, _)| !source.head_hashes.contains_key(id));
        let headed = source.head_hashes.range(source.mapping_start_id..);
        let headed =
            headed.filter_map(|(id, hash)| Some(((*source.further.get(id)?, *hash.as_bytes()), *id)));
        let id = ids.clone().find(|(_, extent)| **extent == 0).map_or(source.id, |(id, _)| *id);
        Self {
            first_id: source.id,
            id,
            defined: true,
            extents: ids.filter(|(_, extent)| **extent != 0).map(|(id, extent)| (*extent, *id)).collect(),
            head_ids: headed.collect(),
            head: None,
            tally: source.tally,
            sequenced_messages: source.tally.messages,
            through: source.through,
            end: source.end,
            on_tape_through: source.last_offset,
            ahead_offsets: source.ahead_offsets.clone(),
            again_through: 0,
            feed: source.feed.clone(),
            file: source.file.clone(),
            size: source.size,
            hash: source.hash.clone(),
            format_id: source.format_id.clone(),
            content: None,
        }
    }

    /// Restarts the source at its beginning, because the decoder needs the state from there. Messages that the tape
    /// already has are left out, but counted again.
    pub fn read_again(mut self) -> Self {
        (self.tally, self.sequenced_messages) = (MessageTally::default(), 0);
        self.again_through = self.through;
        if self.through > 0 {
            self.on_tape_through = self.on_tape_through.max(Some(self.through - 1));
        }
        self
    }

    /// Returns the id of the definition for a further 4 GiB, and whether this call assigned it.
    pub fn extent(&mut self, extent: u32, next: &mut u32) -> (u32, bool) {
        if let Some(id) = self.extents.get(&extent) {
            return (*id, false);
        }
        let id = *next;
        *next += 1;
        self.extents.insert(extent, id);
        (id, true)
    }

    /// Returns the id of the definition with these first bytes for the 4 GiB around `offset`. Writes its frame to
    /// `out` if the tape does not have it.
    pub fn head_definition_id(
        &mut self,
        offset: u64,
        head: &Arc<[u8]>,
        next: &mut u32,
        out: &mut Vec<u8>,
    ) -> u32 {
        let hash = match &self.head {
            Some((last, hash)) if Arc::ptr_eq(last, head) => *hash,
            _ => *blake3::hash(head).as_bytes(),
        };
        self.head = Some((head.clone(), hash));
        let key = ((offset >> 32) as u32, hash);
        if let Some(id) = self.head_ids.get(&key) {
            return *id;
        }
        let id = *next;
        *next += 1;
        self.head_ids.insert(key, id);
        let base = offset >> 32 << 32;
        let parts = SourceDefinitionFields { id, first_id: self.first_id, format_id: &self.format_id, base };
        head_frame(out, &self.feed, &self.file, parts, head);
        id
    }

    /// Returns whether this mark of progress is already on the tape.
    pub fn has_mark(&self, through: u64, end: bool) -> bool {
        through < self.again_through || through == self.again_through && through > 0 && !end
    }

    /// Writes the definition of a further 4 GiB.
    pub fn extent_frame(&self, id: u32, offset: u64, out: &mut Vec<u8>) {
        let facts = SourceFacts { file: self.file.clone(), size: None, hash: None };
        let parts = SourceDefinitionFields {
            id,
            first_id: self.first_id,
            format_id: &self.format_id,
            base: offset >> 32 << 32,
        };
        source_frame(out, &self.feed, &facts, parts);
    }

    /// Writes its definition: the first one, identified by its first message at `offset`, or a further one after the
    /// mapping changed.
    pub fn define(&mut self, next: &mut u32, offset: u64, first: &[u8], out: &mut Vec<u8>) {
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
            let parts = SourceDefinitionFields { id, first_id: 0, format_id: &self.format_id, base: 0 };
            source_frame(out, &self.feed, &facts, parts);
        } else {
            match extent {
                0 => self.id = id,
                _ => _ = self.extents.insert(extent, id),
            }
            self.extent_frame(id, offset, out);
        }
    }

    /// Switches to another mapping: the following bytes get a definition of their own.
    pub fn switch_format(&mut self, format_id: FormatId) {
        self.format_id = format_id;
        self.defined = false;
        self.extents.clear();
        self.head_ids.clear();
    }
}

impl TapeAccount {
    /// Replaces the tape's figures of a source by the figures of this run.
    pub fn update_source(&mut self, state: &SourceState) {
        if state.first_id == 0 {
            return;
        }
        let index = self.sources.iter().position(|s| s.id == state.first_id);
        let index = index.unwrap_or_else(|| {
            let (id, feed, file) = (state.first_id, state.feed.clone(), state.file.clone());
            self.sources.push(SourceAccount { id, feed, file, ..SourceAccount::default() });
            self.sources.len() - 1
        });
        {
            let source = &mut self.sources[index];
            source.tally = state.tally;
            source.since = MessageTally::default();
            source.through = state.through;
            source.end = state.end;
            source.quarantined_tail = None;
        }
    }
}

/// A feed as it is when a run begins.
pub struct FeedResumeState {
    pub name: String,
    /// Whether more sources may appear.
    pub grows: bool,
    pub sources: Vec<SourceState>,
    /// Greatest event time that the tape has of it.
    pub running_max: UnixNanos,
    pub sessions: FeedSessions,
    /// Sources that are still to be read.
    pub open_sources: usize,
    /// Blocks that are claimed and not yet wholly on the tape.
    pub outstanding: Arc<AtomicU64>,
}

impl FeedState {
    /// Makes the state of a feed of which this run has read nothing.
    pub fn new(start: FeedResumeState) -> Self {
        let FeedResumeState { name, grows, sources, running_max, sessions, open_sources, outstanding } =
            start;
        let total = sources.iter().fold(MessageTally::default(), |sum, s| sum.plus(s.tally));
        Self {
            name,
            grows,
            hashes: false,
            late: 0,
            clock_ahead: 0,
            received: false,
            large: None,
            head: None,
            sources,
            queue: VecDeque::new(),
            cursor: BlockCursor::default(),
            expected: None,
            leftover: Vec::new(),
            carried: None,
            running_max,
            sessions,
            open_sources,
            closed: false,
            rotates: false,
            availability: FeedAvailability::default(),
            wait: MergeWait::Unbounded,
            held_since: None,
            waited_since: None,
            in_turn: None,
            leftover_times: Vec::new(),
            total,
            outstanding,
            is_clock: false,
            passed: None,
        }
    }

    /// Returns how far the feed's journal is decoded.
    pub fn settled(&self) -> JournalPosition {
        let (source, through) = self.expected.unwrap_or_default();
        let file = self.sources.get(source).map_or("", |source| &source.file);
        let number = file.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let between_messages = self.leftover.is_empty() && self.carried.is_none();
        JournalPosition {
            number,
            through: if self.expected.is_some() { through } else { 0 },
            between_messages,
        }
    }

    /// Returns the number of the feed's blocks that are claimed and not yet completely on the tape.
    pub fn outstanding(&self) -> Arc<AtomicU64> {
        self.outstanding.clone()
    }

    /// Returns the index of the cursor's block. Earlier blocks are finished and wait to be copied.
    pub fn in_hand(&self) -> Option<usize> {
        self.queue.iter().position(|job| !job.block.is_sequenced)
    }

    /// Looks at the next unit: the time by which it is merged, `None` when nothing is at hand. `others` is asked for the
    /// latest time at hand of the other feeds.
    pub fn look_at_head(
        &mut self,
        bounds: &ClockLeadContext,
        latest_other_ts: impl FnOnce() -> UnixNanos,
    ) -> Option<UnixNanos> {
        let index = self.in_hand();
        if let Some(i) = index {
            self.note_stretch(i);
        }
        self.head = index.map(|i| {
            let block = &self.queue[i].block;
            let unit = &block.units[self.cursor.unit_index];
            let doubt = bounds.is_in_doubt(unit, &self.sources[block.source], bounds.ceiling(self, block));
            let is_ahead = doubt && bounds.leads(unit, self, block, latest_other_ts());
            FeedHead { ts: if is_ahead { self.running_max } else { self.running_max.max(unit.ts) }, is_ahead }
        });
        self.head.map(|head| head.ts)
    }

    /// Finds the duplicates among the messages up to the next mark of progress, before the time of one is used.
    #[inline]
    fn note_stretch(&mut self, in_hand: usize) {
        let block = &mut self.queue[in_hand].block;
        if self.cursor.unit_index >= self.cursor.recorded_units_end
            && !block.begins_with_switch(self.cursor.unit_index)
        {
            self.cursor.note_stretch(block, &mut self.sessions);
        }
    }

    /// Returns when the next unit arrived, on the intake's clock.
    pub fn head_came_ns(&self) -> i64 {
        self.in_hand().map_or(i64::MAX, |i| self.queue[i].block.came_ns)
    }

    /// Returns until when the merge waits for this feed before it places a message that arrived at `came_ns`.
    pub fn waits_until(&self, came_ns: i64) -> Option<i64> {
        let is_open = self.head.is_none() && self.open_sources > 0 && !self.closed && !self.is_clock;
        is_open.then(|| self.availability.waits_until(came_ns, self.wait)).flatten()
    }

    /// Returns whether other feeds wait for this feed without a bound.
    pub fn look_waits_unbounded(&self) -> bool {
        self.wait == MergeWait::Unbounded && self.in_hand().is_none() && self.waits_until(0).is_some()
    }

    /// Iterates over the feed's available messages that are not placed.
    pub fn unplaced_units(&self) -> impl Iterator<Item = &BlockMessage> {
        let blocks = self.queue.iter().map(|job| &job.block).filter(|block| !block.is_sequenced).enumerate();
        let units =
            blocks.flat_map(|(i, block)| &block.units[if i == 0 { self.cursor.unit_index } else { 0 }..]);
        units.filter(|unit| !unit.is_progress())
    }

    /// Returns the event time of the next unit, even if it is not credible.
    pub fn head_ts(&self) -> Option<UnixNanos> {
        Some(self.queue[self.in_hand()?].block.units[self.cursor.unit_index].ts)
    }

    /// Notes how far the units of a block have passed.
    pub fn note_passed(&mut self, block: usize) {
        let block = &self.queue[block].block;
        let last_unit = self
            .cursor
            .unit_index
            .checked_sub(1)
            .map(|unit| UnitPlace::new(block.source, &block.units[unit]));
        self.passed = self.passed.max(last_unit);
    }

    /// Settles blocks without further units, so that the cursor is at a unit or at nothing.
    pub fn advance(&mut self) {
        while let Some(i) = self.in_hand() {
            let block = &mut self.queue[i].block;
            if self.cursor.unit_index < block.units.len() {
                return;
            }
            while self.cursor.run_index < block.runs.len() {
                self.cursor.note_stretch(block, &mut self.sessions);
            }
            let state = &mut self.sources[block.source];
            state.tally = state.tally.plus(block.tally);
            self.total = self.total.plus(block.tally);
            block.is_sequenced = true;
            self.cursor = BlockCursor::default();
        }
    }

    /// Returns whether the block does not directly follow the bytes decoded before it.
    pub fn has_gap_before(&self, block: &Block) -> bool {
        // The decoder of a message that continues from block to block must know how the message began.
        self.carried.is_some()
            || !self.leftover.is_empty()
            || self.expected.is_some_and(|e| e != (block.source, block.base))
    }

    /// Returns whether a trailer or the end of a source states another number of messages than came before. If so,
    /// sets `block.before`, so that the decoder reports where.
    pub fn miscounts(&self, block: &mut Block) -> bool {
        let sequenced_before = self.sources[block.source].sequenced_messages;
        let is_wrong = block.claims.iter().any(|c| sequenced_before + c.messages_in_block != c.messages);
        block.before = is_wrong.then_some(sequenced_before);
        is_wrong
    }

    /// Puts the leftover bytes before the block's own bytes, so that they are decoded again.
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

    /// Keeps the bytes that the block did not decode, for the next block.
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
