//! The sequencer: what order must decide.
//!
//! It holds the turn: blocks come to it in the order they were claimed. For each message it decides whether it
//! goes on the tape (not when it is there already after a restart, not when it is a duplicate), gives ids to
//! names in tape order, puts definitions right before their first use, merges feeds by time, and gives
//! everything a place on the tape. With one feed the worker copies its own block into that place when it has
//! left the turn; a merge of several feeds copies here, because its pieces come from several workers' blocks.
//!
//! Invariant: what is written depends on the sources alone, not on where blocks were cut, on how many workers
//! there are, or on when anything ran.

use crate::account::Account;
use crate::block::{Block, Instead, NO_TS, Unit, What};
use crate::bookkeeping::{
    Progress, Quarantined, define_frame, progress_frame, quarantine_frame, source_frame,
};
use crate::error::Error;
use crate::feed_state::{FeedState, apply_runs};
use crate::quarantine::RawLog;
use crate::source::SourceFacts;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use unitape_model::schema::at;
use unitape_model::{Dict, Dictionary, Header, Refusal, frames};
use unitape_tape::{Claim, Writer};

/// The state behind the sequencing turnstile.
#[derive(Debug)]
pub struct Sequencer {
    writer: Writer,
    raw: RawLog,
    dictionary: Dictionary,
    /// Every name in the order it was defined, for workers to catch up with.
    defined: Vec<(Dict, u32)>,
    feeds: Vec<FeedState>,
    /// Next id of a source definition.
    next_source: u32,
    pieces: Vec<Piece>,
    /// Events by kind written by this run.
    pub by_kind: [u64; 64],
    #[expect(clippy::vec_box, reason = "blocks travel by pointer; unboxing them here would move them")]
    spares: Vec<Box<Block>>,
    counters: Arc<Counters>,
}

/// What a run has done so far, for progress bars.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Counters {
    pub messages: AtomicU64,
    pub events: AtomicU64,
    pub quarantined: AtomicU64,
}

/// A stretch of frames that goes onto the tape as it is.
#[derive(Clone, Copy, Debug)]
struct Piece {
    feed: u32,
    /// Index in the feed's queue.
    block: u32,
    /// In `added` rather than in the arena.
    added: bool,
    start: u32,
    end: u32,
}

/// Where a block goes: its own pieces and the place claimed for them.
#[derive(Debug)]
pub struct Plan {
    block: Box<Block>,
    pieces: Vec<Piece>,
    claim: Claim,
}

impl Plan {
    /// Copies the block onto the tape and publishes it. Gives the block back for its next bytes.
    ///
    /// # Errors
    /// When the tape refuses; the claim is then lost and the tape must be opened again.
    pub fn carry_out(self) -> Result<(Box<Block>, PieceBuffer), Error> {
        let Plan { block, pieces, mut claim } = self;
        for p in &pieces {
            claim.put(p.of(&block))?;
        }
        claim.publish();
        Ok((block, PieceBuffer(pieces)))
    }
}

/// An emptied list of pieces on its way back to be used again.
#[derive(Debug)]
pub struct PieceBuffer(Vec<Piece>);

impl Piece {
    fn of<'b>(&self, block: &'b Block) -> &'b [u8] {
        let bytes = if self.added { &block.added } else { &block.arena };
        &bytes[self.start as usize..self.end as usize]
    }
}

/// The stretch of a block's arena that is being taken, as pieces.
struct Run<'p> {
    pieces: &'p mut Vec<Piece>,
    feed: usize,
    block: usize,
    /// Start of what has not become a piece yet.
    start: usize,
}

impl Run<'_> {
    /// Puts what was added to the block before the frame at `before`.
    fn insert(&mut self, before: usize, added: Range<usize>) {
        self.push(false, self.start..before);
        self.push(true, added);
        self.start = before;
    }

    /// Leaves these frames out.
    fn skip(&mut self, frames: Range<usize>) {
        self.push(false, self.start..frames.start);
        self.start = frames.end;
    }

    fn end(mut self, at: usize) {
        self.push(false, self.start..at);
    }

    fn push(&mut self, added: bool, range: Range<usize>) {
        if !range.is_empty() {
            let (feed, block) = (self.feed as u32, self.block as u32);
            self.pieces.push(Piece { feed, block, added, start: range.start as u32, end: range.end as u32 });
        }
    }
}

impl Sequencer {
    /// A sequencer over an open tape, from the account of what stands on it.
    pub fn new(
        writer: Writer,
        raw: RawLog,
        dictionary: Dictionary,
        next_source: u32,
        feeds: Vec<FeedState>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            writer,
            raw,
            dictionary,
            defined: Vec::new(),
            feeds,
            next_source,
            pieces: Vec::new(),
            by_kind: [0; 64],
            spares: Vec::new(),
            counters,
        }
    }

    /// The names known so far; a worker's first snapshot.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Brings a worker's snapshot up to date; `seen` is how much of the definitions it has.
    pub fn publish(&self, known: &mut Dictionary, seen: &mut usize) {
        for &(dict, id) in &self.defined[*seen..] {
            let name = self.dictionary.name(dict, id).expect("defined");
            let follows = known.define(dict, id, name.as_bytes());
            debug_assert!(follows, "definitions are published in order");
        }
        *seen = self.defined.len();
    }

    /// The feed of this index.
    pub fn feed(&mut self, index: usize) -> &mut FeedState {
        &mut self.feeds[index]
    }

    /// A block to be used again.
    pub fn spare(&mut self) -> Option<Box<Block>> {
        self.spares.pop()
    }

    /// Takes back a list of pieces.
    pub fn recycle(&mut self, buffer: PieceBuffer) {
        if buffer.0.capacity() > self.pieces.capacity() {
            self.pieces = buffer.0;
            self.pieces.clear();
        }
    }

    /// Takes the next block in order and gives places to all that can be placed now.
    ///
    /// # Errors
    /// When the tape or the raw log cannot take more.
    pub fn take(&mut self, mut block: Box<Block>) -> Result<Option<Plan>, Error> {
        let feed = &mut self.feeds[block.feed];
        // What is left over belongs to the same source: at its end a block is decoded whole.
        feed.sources[block.source].seen += block.tally.messages;
        feed.leftover.extend_from_slice(&block.bytes[block.decoded..]);
        feed.expected =
            if block.eof { None } else { Some((block.source, block.base + block.bytes.len() as u64)) };
        self.counters.messages.fetch_add(block.tally.messages, Ordering::Relaxed);
        self.counters.events.fetch_add(block.tally.events, Ordering::Relaxed);
        self.counters.quarantined.fetch_add(block.tally.quarantined, Ordering::Relaxed);
        block.done = false;
        feed.queue.push_back(block);
        feed.advance();
        self.place()
    }

    /// Merges as far as every open feed has something at hand, and claims the place for it.
    fn place(&mut self) -> Result<Option<Plan>, Error> {
        self.pieces.clear();
        loop {
            let mut next: Option<(i64, usize)> = None;
            let mut must_wait = false;
            for (i, feed) in self.feeds.iter().enumerate() {
                match feed.head() {
                    Some(ts) if next.is_none_or(|(t, _)| ts < t) => next = Some((ts, i)),
                    Some(_) => {}
                    None => must_wait |= feed.open_sources > 0,
                }
            }
            let Some((_, i)) = next else { break };
            if must_wait {
                break;
            }
            let limit = self.feeds.iter().enumerate().filter(|(j, _)| *j != i).filter_map(|(j, f)| {
                // A feed before this one wins a tie.
                f.head().map(|ts| if j < i { ts.saturating_sub(1) } else { ts })
            });
            let limit = limit.min().unwrap_or(i64::MAX);
            self.emit_run(i, limit)?;
        }
        let (mut bytes, mut events) = (0u64, 0u64);
        for p in &self.pieces {
            let piece = p.of(&self.feeds[p.feed as usize].queue[p.block as usize]);
            bytes += piece.len() as u64;
            events += count_events(piece, &mut self.by_kind);
        }
        if bytes == 0 {
            self.drop_emptied();
            return Ok(None);
        }
        let (feeds, pieces) = (&self.feeds, &self.pieces);
        let boundary = |limit: u64| boundary_before(feeds, pieces, limit);
        let mut claim = self.writer.claim(bytes, boundary, events)?;
        if let [feed] = &mut self.feeds[..]
            && feed.queue.len() == 1
        {
            let block = feed.queue.pop_front().expect("one block");
            feed.outstanding.fetch_sub(1, Ordering::Relaxed);
            return Ok(Some(Plan { block, pieces: std::mem::take(&mut self.pieces), claim }));
        }
        for p in &self.pieces {
            claim.put(p.of(&self.feeds[p.feed as usize].queue[p.block as usize]))?;
        }
        claim.publish();
        self.drop_emptied();
        Ok(None)
    }

    /// Takes units of feed `i` while they are not later than `limit`; leaves emptied blocks in the queue, for
    /// the pieces to be copied from, and stops at the end of one.
    fn emit_run(&mut self, i: usize, limit: i64) -> Result<(), Error> {
        let feed = &mut self.feeds[i];
        let index = feed.in_hand().expect("a feed with a head");
        let block = &mut feed.queue[index];
        let mut run = Run { pieces: &mut self.pieces, feed: i, block: index, start: feed.cursor.arena };
        while let Some(&unit) = block.units.get(feed.cursor.unit) {
            if feed.running_max.max(unit.ts) > limit {
                break;
            }
            feed.running_max = feed.running_max.max(unit.ts);
            let frames = feed.cursor.arena..unit.end as usize;
            let state = &mut feed.sources[block.source];
            let mut wanted = state.on_tape_through.is_none_or(|t| unit.offset > t) || unit.is_progress();
            match unit.what {
                What::Events => {}
                What::Maybe { run } => {
                    apply_runs(block, &mut feed.cursor.run, run as usize, &mut feed.sessions);
                    let r = block.runs[run as usize];
                    let seen = feed.sessions.get(&block.sessions[r.session as usize]);
                    if seen.is_some_and(|max| r.max <= *max) {
                        wanted = false;
                        block.recount(feed.cursor.unit, Instead::Duplicate);
                    }
                }
                What::Quarantine => {
                    let raw = &block.raw[feed.cursor.raw..unit.raw_end as usize];
                    let raw_at = if wanted { self.raw.append(raw)? } else { 0 };
                    let ts = if feed.running_max == NO_TS { 0 } else { feed.running_max };
                    let frame = &mut block.arena[frames.clone()];
                    patch(frame, at::TS_EVENT, &ts.to_le_bytes());
                    patch(frame, RAW_AT, &raw_at.to_le_bytes());
                }
                What::Progress { tally, end } => {
                    let done = feed.cursor.unit;
                    let upto = block.runs.partition_point(|r| r.units_before as usize <= done);
                    apply_runs(block, &mut feed.cursor.run, upto, &mut feed.sessions);
                    let total = state.tally.plus(block.tallies[tally as usize]);
                    let (source, running_max) = (state.id, feed.running_max);
                    let mark = Progress { source, through: unit.offset, end, running_max };
                    let start = block.added.len();
                    progress_frame(&mut block.added, &mark, total, &feed.sessions);
                    run.insert(frames.start, start..block.added.len());
                    (state.through, state.end) = (unit.offset, end);
                    feed.open_sources -= usize::from(end);
                }
            }
            let own = feed.cursor.fixup..unit.fixups_end as usize;
            if wanted {
                let mut source = state.id;
                if unit.offset >> 32 != 0 && !unit.is_progress() {
                    let (id, new) = state.extent((unit.offset >> 32) as u32, &mut self.next_source);
                    if new {
                        let start = block.added.len();
                        let facts = SourceFacts { file: state.file.clone(), size: None, hash: None };
                        let base = unit.offset >> 32 << 32;
                        source_frame(&mut block.added, id, &state.feed, &facts, &state.sort, base);
                        run.insert(frames.start, start..block.added.len());
                    }
                    patch_each(&mut block.arena[frames.clone()], at::SOURCE, &id.to_le_bytes());
                    source = id;
                }
                let full = block.without_place(own.clone(), &self.dictionary, |f| feed.cursor.resolved(f));
                if let Some(dict) = full {
                    block.recount(feed.cursor.unit, Instead::Quarantined);
                    self.counters.quarantined.fetch_add(1, Ordering::Relaxed);
                    let added = refuse(block, &mut self.raw, (&unit, feed.running_max, source), dict)?;
                    run.insert(frames.start, added);
                    run.skip(frames);
                    wanted = false;
                }
            } else {
                run.skip(frames);
            }
            if wanted {
                for f in own {
                    let fixup = block.fixups[f];
                    let id = match feed.cursor.resolved(&fixup) {
                        0 => {
                            let name = block.names.name(fixup.dict, fixup.id).expect("the block's own name");
                            let given = self.dictionary.intern(fixup.dict, name.as_bytes());
                            let (id, new) = given.expect("it has a place");
                            if new {
                                self.defined.push((fixup.dict, id));
                                let start = block.added.len();
                                define_frame(&mut block.added, fixup.dict, id, name);
                                run.insert(fixup.frame as usize, start..block.added.len());
                            }
                            feed.cursor.resolve(&fixup, id);
                            id
                        }
                        id => id,
                    };
                    let width = if fixup.dict == Dict::Venue { 2 } else { 4 };
                    patch(&mut block.arena, fixup.at as usize, &id.to_le_bytes()[..width]);
                }
            }
            feed.cursor.unit += 1;
            feed.cursor.arena = unit.end as usize;
            feed.cursor.fixup = unit.fixups_end as usize;
            feed.cursor.raw = unit.raw_end as usize;
        }
        run.end(feed.cursor.arena);
        feed.advance();
        Ok(())
    }

    /// Gives blocks that are wholly on the tape back.
    fn drop_emptied(&mut self) {
        for feed in &mut self.feeds {
            while feed.queue.front().is_some_and(|b| b.done) {
                let block = feed.queue.pop_front().expect("a front");
                // Relaxed: a guess for the intake, as there.
                feed.outstanding.fetch_sub(1, Ordering::Relaxed);
                self.spares.push(block);
            }
        }
    }

    /// The tape, when all blocks are placed; and the raw log, synced.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn close(self) -> Result<(), Error> {
        let Self { writer, raw, .. } = self;
        raw.sync()?;
        writer.close()?;
        Ok(())
    }

    /// Adds this run's counts to the account that was read from the tape.
    pub fn settle(&self, account: &mut Account) {
        for (kind, n) in self.by_kind.iter().enumerate() {
            account.by_kind[kind] += n;
        }
        for feed in &self.feeds {
            for source in &feed.sources {
                account.settle(source);
            }
        }
    }
}

/// Quarantines a message whose names have no place in `dict`; gives where its event stands in `added`. `message`
/// is its unit, the time of its place, and the id of its source.
fn refuse(
    block: &mut Block,
    log: &mut RawLog,
    message: (&Unit, i64, u32),
    dict: Dict,
) -> Result<Range<usize>, Error> {
    let (unit, ts, source) = message;
    let at = (unit.offset - block.base) as usize;
    let raw_at = log.append(&block.bytes[at..at + unit.length as usize])?;
    let detail = format!("no place for another {}, there are {}", dict.name(), dict.id_max());
    let why = Quarantined {
        ts: if ts == NO_TS { 0 } else { ts },
        source,
        offset: unit.offset,
        raw_at,
        length: unit.length as usize,
        reason: Refusal::DictionaryFull.code(),
        detail: &detail,
        head: &block.head,
    };
    let start = block.added.len();
    quarantine_frame(&mut block.added, &why);
    Ok(start..block.added.len())
}

fn patch_each(mut run: &mut [u8], at: usize, bytes: &[u8]) {
    while !run.is_empty() {
        patch(run, at, bytes);
        let len = Header::read(run).len_bytes();
        run = &mut run[len..];
    }
}

fn patch(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}

fn count_events(piece: &[u8], by_kind: &mut [u64; 64]) -> u64 {
    let mut events = 0;
    let mut at = 0;
    while at < piece.len() {
        let header = Header::read(&piece[at..]);
        if !header.is_meta() {
            events += 1;
            by_kind[usize::from(header.kind() & 63)] += 1;
        }
        at += header.len_bytes();
    }
    events
}

/// The last frame boundary of the pieces at or before `limit`, and the events before it.
fn boundary_before(feeds: &[FeedState], pieces: &[Piece], limit: u64) -> (u64, u64) {
    let (mut bytes, mut events) = (0u64, 0u64);
    for p in pieces {
        for (_, header, frame) in frames(p.of(&feeds[p.feed as usize].queue[p.block as usize])) {
            if bytes + frame.len() as u64 > limit {
                return (bytes, events);
            }
            bytes += frame.len() as u64;
            events += u64::from(!header.is_meta());
        }
    }
    (bytes, events)
}

/// Where a quarantine event says its place in the raw log; the tests hold it against the schema.
const RAW_AT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{Field, Kind, Schema, Slot};

    #[test]
    fn the_place_in_the_raw_log_stands_where_the_schema_says() {
        let slot = Schema::of(Kind::Quarantine).get(Field::RawAt).unwrap().slot;
        assert_eq!(slot, Slot::UInt { at: RAW_AT as u16, width: 8 });
    }
}
