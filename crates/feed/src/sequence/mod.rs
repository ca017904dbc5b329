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

mod emit;

use crate::account::Account;
use crate::block::{Block, Turn};
use crate::error::Error;
use crate::feed_state::{FeedState, SourceState};
use crate::quarantine::RawLog;
use crate::stats::{FeedStats, Stats};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use unitape_model::{Dict, Dictionary, Header, frames};
use unitape_tape::{Claim, Writer};

/// Events by kind.
pub type ByKind = [u64; 64];

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
    /// Events of the pieces in hand.
    events: u64,
    /// Events by kind of what was copied here; workers count what they copy.
    pub by_kind: ByKind,
    #[expect(clippy::vec_box, reason = "blocks travel by pointer; unboxing them here would move them")]
    spares: Vec<Box<Block>>,
    counters: Arc<Counters>,
    patience: Patience,
    /// The latest time that was placed; what comes before it is late.
    placed_max: i64,
    stats: Option<Arc<Stats>>,
}

/// How long a merge waits for a feed that has nothing at hand.
#[derive(Debug, Default)]
pub struct Patience {
    /// So long; without bound when `None`, and then what is written depends on the sources alone.
    pub wait: Option<Duration>,
    /// Since when it waits.
    since: Option<Instant>,
    /// No more: all that is at hand is placed.
    over: bool,
}

impl Patience {
    /// A merge that waits so long.
    pub fn new(wait: Option<Duration>) -> Self {
        Self { wait, ..Self::default() }
    }

    fn is_over(&mut self) -> bool {
        self.over
            || self.wait.is_some_and(|wait| self.since.get_or_insert_with(Instant::now).elapsed() >= wait)
    }
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
    /// Copies the block onto the tape and publishes it, and counts its events. Gives the block back for its next
    /// bytes.
    ///
    /// # Errors
    /// When the tape refuses; the claim is then lost and the tape must be opened again.
    pub fn carry_out(self, by_kind: &mut ByKind) -> Result<(Box<Block>, PieceBuffer), Error> {
        let Plan { block, pieces, mut claim } = self;
        for p in &pieces {
            claim.put_each(p.of(&block), |header| count(header, by_kind))?;
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

impl Sequencer {
    /// A sequencer over an open tape, from the account of what stands on it.
    pub fn new(
        (writer, raw): (Writer, RawLog),
        dictionary: Dictionary,
        next_source: u32,
        feeds: Vec<FeedState>,
        counters: Arc<Counters>,
        (patience, placed_max): (Patience, i64),
        stats: Option<Arc<Stats>>,
    ) -> Self {
        Self {
            writer,
            raw,
            dictionary,
            defined: Vec::new(),
            feeds,
            next_source,
            pieces: Vec::new(),
            events: 0,
            by_kind: [0; 64],
            spares: Vec::new(),
            counters,
            patience,
            placed_max,
            stats,
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
        match block.turn {
            Turn::Bytes => {}
            Turn::Tick | Turn::FeedEnd => {
                feed.closed |= block.turn == Turn::FeedEnd;
                // Relaxed: a guess for the intake, as there.
                feed.outstanding.fetch_sub(1, Ordering::Relaxed);
                self.spares.push(block);
                return self.place();
            }
        }
        feed.sources[block.source].seen += block.tally.messages;
        feed.keep_leftover(&mut block);
        self.counters.messages.fetch_add(block.tally.messages, Ordering::Relaxed);
        self.counters.events.fetch_add(block.tally.events, Ordering::Relaxed);
        self.counters.quarantined.fetch_add(block.tally.quarantined, Ordering::Relaxed);
        let state = &feed.sources[block.source];
        if block.sorted.as_ref().is_some_and(|s| s.sort != state.sort) {
            block.begin_with_switch();
        }
        block.done = false;
        feed.queue.push_back(block);
        feed.advance();
        self.place()
    }

    /// Makes room for the source that begins with this block, when it was found while running.
    pub fn begin(&mut self, block: &mut Block) {
        let Some(facts) = block.begins.take() else { return };
        let feed = &mut self.feeds[block.feed];
        debug_assert_eq!(block.source, feed.sources.len(), "sources begin in order");
        let sort = block.sorted.as_ref().map(|s| s.sort.clone()).unwrap_or_default();
        feed.sources.push(SourceState {
            feed: feed.name.clone(),
            file: facts.file,
            size: facts.size,
            hash: facts.hash,
            sort,
            ..SourceState::default()
        });
    }

    /// Places all that is at hand, without waiting for anything. At the end of a run.
    ///
    /// # Errors
    /// As [`Sequencer::take`].
    pub fn flush(&mut self) -> Result<Option<Plan>, Error> {
        self.patience.over = true;
        self.place()
    }

    /// Merges as far as every open feed has something at hand, and claims the place for it.
    fn place(&mut self) -> Result<Option<Plan>, Error> {
        self.pieces.clear();
        loop {
            let mut next: Option<(i64, usize)> = None;
            let mut must_wait = false;
            for (i, feed) in self.feeds.iter_mut().enumerate() {
                match feed.head() {
                    Some(ts) => {
                        feed.quiet = false;
                        if next.is_none_or(|(t, _)| ts < t) {
                            next = Some((ts, i));
                        }
                    }
                    None => must_wait |= feed.open_sources > 0 && !feed.closed && !feed.quiet,
                }
            }
            let Some((_, i)) = next else {
                self.patience.since = None;
                break;
            };
            if !must_wait {
                self.patience.since = None;
            } else if self.patience.is_over() {
                self.patience.since = None;
                for feed in self.feeds.iter_mut().filter(|f| f.head().is_none()) {
                    feed.quiet = true;
                }
            } else {
                break;
            }
            let limit = self.feeds.iter().enumerate().filter(|(j, _)| *j != i).filter_map(|(j, f)| {
                // A feed before this one wins a tie.
                f.head().map(|ts| if j < i { ts.saturating_sub(1) } else { ts })
            });
            let limit = limit.min().unwrap_or(i64::MAX);
            self.emit_run(i, limit)?;
        }
        self.tell();
        let bytes: u64 = self.pieces.iter().map(|p| u64::from(p.end - p.start)).sum();
        let events = std::mem::take(&mut self.events);
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
            let frames = p.of(&self.feeds[p.feed as usize].queue[p.block as usize]);
            claim.put_each(frames, |header| count(header, &mut self.by_kind))?;
        }
        claim.publish();
        self.drop_emptied();
        Ok(None)
    }

    /// Tells the figures of each feed.
    fn tell(&self) {
        let Some(stats) = &self.stats else { return };
        for (feed, stats) in self.feeds.iter().zip(&stats.feeds) {
            stats.tell(&feed.total, feed.late, feed.running_max, feed.sessions_refused);
            if stats.is_asked() {
                tell_handler(feed, stats);
            }
        }
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
        let Self { writer, raw, feeds, stats, .. } = self;
        if let Some(stats) = stats {
            feeds.iter().zip(&stats.feeds).for_each(|(feed, stats)| tell_handler(feed, stats));
        }
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

#[cold]
fn tell_handler(feed: &FeedState, stats: &FeedStats) {
    if let Some(seen) = feed.in_turn.as_ref().and_then(|(_, decoder)| decoder.handler_stats()) {
        stats.tell_handler(seen);
    }
}

#[inline]
fn count(header: Header, by_kind: &mut ByKind) {
    by_kind[usize::from(header.kind() & 63)] += u64::from(!header.is_meta());
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
