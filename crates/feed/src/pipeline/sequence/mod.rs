//! The sequencer: what order must decide.
//!
//! It holds the turn: blocks come to it in the order they were claimed. For each message it decides whether to put it
//! on the tape (not when it is there already after a restart, not when it is a duplicate), gives ids to names in tape
//! order, puts definitions right before their first use, merges feeds by time, and gives everything a place on the
//! tape. With one feed the worker copies its own block into that place when it has left the turn; a merge of several
//! feeds copies here, because its pieces come from several workers' blocks.
//!
//! Invariant: what is written depends on the sources alone, not on where blocks were cut, on how many workers
//! there are, or on when anything ran.

mod clock;
mod emit;
mod large;
mod merge_waits;

pub use clock::{ClockMerge, UnitPlace};
pub use large::LargeMessage;

use crate::account::TapeAccount;
use crate::block::{Block, NO_TS};
use crate::error::Error;
use crate::pipeline::durability::FlushFailures;
use crate::pipeline::feed_state::{FeedHead, FeedState, SourceState};
use crate::pipeline::job::{BlockJob, BlockKind};
use crate::pipeline::lead::{ClockLeadContext, ClockLeadLimits};
use crate::pipeline::open_sources::SourceNotesWriter;
use crate::quarantine::RawLog;
use crate::sources::stats::{FeedStats, RunMonitor};
use clock::ClockStep;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use unitape_model::{Dictionary, FrameHeader, NameKind, UnixNanos, frames};
use unitape_tape::{Claim, Writer};

/// Events by kind.
pub type KindCounts = [u64; 64];

/// The state behind the sequencing turnstile.
#[derive(Debug)]
pub struct BlockSequencer {
    writer: Writer,
    raw_log: RawLog,
    dictionary: Dictionary,
    /// Every name in the order it was defined, for workers to catch up with.
    defined_names: Vec<(NameKind, u32)>,
    feeds: Vec<FeedState>,
    /// Next id of a source definition.
    next_source: u32,
    frame_pieces: Vec<FramePiece>,
    /// Events of the current pieces.
    events: u64,
    /// Events by kind that were copied here; workers count the events that they copy.
    pub by_kind: KindCounts,
    /// Blocks of this run have findings; only the tape says how many of these it did not have before.
    pub has_findings: bool,
    #[expect(clippy::vec_box, reason = "blocks travel by pointer; unboxing them here would move them")]
    spares: Vec<Box<BlockJob>>,
    counters: Arc<RunCounters>,
    patience: MergeTimer,
    /// The latest time that was placed; a unit with an earlier time is late.
    placed_max: UnixNanos,
    /// The latest time that was placed when the run began.
    placed_before: UnixNanos,
    /// The bound on the lead of an event's time.
    lead_limits: ClockLeadLimits,
    stats: Option<Arc<RunMonitor>>,
    /// For a run that continues while flushes fail: up when it is to end.
    stopping: Option<Arc<AtomicBool>>,
    flushes: FlushFailures,
    /// Notes how far growing files were read; `None` if no feed has such files.
    open_sources: Option<SourceNotesWriter>,
    /// The feed whose messages are ticks, if there is one.
    clock: Option<Box<ClockMerge>>,
}

/// The timer of a waiting merge.
#[derive(Debug, Default)]
pub struct MergeTimer {
    /// When the merge must check again, on the intake's clock; the intake reads it. `i64::MAX`: not before new data
    /// arrives.
    due_ns: Arc<AtomicI64>,
    /// The time when the current block was claimed.
    now_ns: i64,
    /// It waits no more: all that is at hand is placed.
    is_over: bool,
}

impl MergeTimer {
    /// Makes a timer whose intake reads `due_ns`.
    pub fn new(due_ns: Arc<AtomicI64>) -> Self {
        Self { due_ns, ..Self::default() }
    }
}

/// The progress of a run, for progress bars.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct RunCounters {
    pub messages: AtomicU64,
    pub events: AtomicU64,
    pub quarantined: AtomicU64,
}

/// The state that a [`BlockSequencer`] begins with, from an open tape and its account.
pub struct InitialSequencerState {
    pub writer: Writer,
    pub raw_log: RawLog,
    pub dictionary: Dictionary,
    /// Next id of a source definition.
    pub next_source: u32,
    pub feeds: Vec<FeedState>,
    pub counters: Arc<RunCounters>,
    pub patience: MergeTimer,
    /// The latest time on the tape.
    pub placed_max: UnixNanos,
    pub stats: Option<Arc<RunMonitor>>,
}

/// A range of frames that goes onto the tape unchanged.
#[derive(Clone, Copy, Debug)]
struct FramePiece {
    feed: u32,
    /// Index in the feed's queue.
    block: u32,
    /// In `added` rather than in the arena.
    added: bool,
    start: u32,
    end: u32,
}

/// The destination of a block: its own pieces and the place claimed for them.
#[derive(Debug)]
pub struct TapePlacement {
    job: Box<BlockJob>,
    pieces: Vec<FramePiece>,
    claim: Claim,
}

impl TapePlacement {
    /// Copies the block onto the tape and publishes it, and counts its events. Returns the block back for its next
    /// bytes.
    ///
    /// # Errors
    /// Fails if the tape refuses; the claim is then lost and the tape must be opened again.
    pub fn copy_to_tape(self, by_kind: &mut KindCounts) -> Result<(Box<BlockJob>, PieceBuffer), Error> {
        let TapePlacement { job, pieces, mut claim } = self;
        for p in &pieces {
            claim.write_frames_each(p.bytes_in(&job.block), |header| count(header, by_kind))?;
        }
        claim.publish();
        Ok((job, PieceBuffer(pieces)))
    }
}

/// An emptied list of pieces on its way back to be used again.
#[derive(Debug)]
pub struct PieceBuffer(Vec<FramePiece>);

impl FramePiece {
    fn bytes_in<'b>(&self, block: &'b Block) -> &'b [u8] {
        let bytes = if self.added { &block.added } else { &block.arena };
        &bytes[self.start as usize..self.end as usize]
    }
}

impl BlockSequencer {
    /// Makes a sequencer that has placed nothing in this run.
    pub fn new(start: InitialSequencerState) -> Self {
        Self {
            writer: start.writer,
            raw_log: start.raw_log,
            dictionary: start.dictionary,
            defined_names: Vec::new(),
            feeds: start.feeds,
            next_source: start.next_source,
            frame_pieces: Vec::new(),
            events: 0,
            by_kind: [0; 64],
            has_findings: false,
            spares: Vec::new(),
            counters: start.counters,
            patience: start.patience,
            placed_max: start.placed_max,
            placed_before: start.placed_max,
            lead_limits: ClockLeadLimits::UNBOUNDED,
            stats: start.stats,
            stopping: None,
            flushes: FlushFailures::default(),
            open_sources: None,
            clock: None,
        }
    }

    /// Bounds how far an event's time may lead.
    pub fn bound_lead(&mut self, lead: ClockLeadLimits) {
        self.lead_limits = lead;
    }

    /// Lets the run continue while flushes of the tape fail, until `stopping` is up and there is no room any more.
    pub fn survive_flush_failures(&mut self, stopping: Arc<AtomicBool>) {
        self.stopping = Some(stopping);
    }

    /// Sets the writer that notes how far growing files were read.
    pub fn note_sources(&mut self, open_sources: SourceNotesWriter) {
        self.open_sources = Some(open_sources);
    }

    /// Returns the names known so far, which are a worker's first snapshot.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Brings a worker's snapshot up to date; `seen` is how much of the definitions it has.
    pub fn publish(&self, dictionary: &mut Dictionary, definition_count: &mut usize) {
        for &(dict, id) in &self.defined_names[*definition_count..] {
            let name = self.dictionary.name(dict, id).expect("defined");
            let follows = dictionary.define(dict, id, name.as_bytes());
            debug_assert!(follows, "definitions are published in order");
        }
        *definition_count = self.defined_names.len();
    }

    /// Returns the feed at this index.
    pub fn feed(&mut self, index: usize) -> &mut FeedState {
        &mut self.feeds[index]
    }

    /// Takes a block that can be reused.
    pub fn spare(&mut self) -> Option<Box<BlockJob>> {
        self.spares.pop()
    }

    /// Takes back a list of pieces.
    pub fn recycle(&mut self, buffer: PieceBuffer) {
        if buffer.0.capacity() > self.frame_pieces.capacity() {
            self.frame_pieces = buffer.0;
            self.frame_pieces.clear();
        }
    }

    /// Takes the next block in order and places all units that can be placed now.
    ///
    /// # Errors
    /// Fails if the tape or the raw log cannot take more.
    pub fn sequence_block(&mut self, mut job: Box<BlockJob>) -> Result<Option<TapePlacement>, Error> {
        for (feed, look) in self.feeds.iter_mut().zip(&job.availabilities) {
            feed.availability = *look;
        }
        self.patience.now_ns = job.claimed_ns;
        let feed = &mut self.feeds[job.block.feed];
        match job.kind {
            BlockKind::Bytes => {}
            BlockKind::Tick | BlockKind::FeedEnd | BlockKind::FeedStop => {
                feed.closed |= job.kind == BlockKind::FeedEnd;
                if job.kind == BlockKind::FeedStop
                    && let Some(clock) = self.clock.as_mut().filter(|clock| clock.feed == job.block.feed)
                {
                    clock.stop_clock();
                }
                // Relaxed: a guess for the intake, as there.
                feed.outstanding.fetch_sub(1, Ordering::Relaxed);
                self.spares.push(job);
                let plan = self.place_units()?;
                self.write_tick();
                return Ok(plan);
            }
        }
        let BlockJob { block, format, .. } = &mut *job;
        feed.sources[block.source].sequenced_messages += block.tally.messages;
        self.has_findings |= block.has_findings;
        feed.keep_leftover(block);
        if feed.rotates
            && let Some(stats) = &self.stats
        {
            stats.feeds[block.feed].set_journal_position(feed.settled());
        }
        self.counters.messages.fetch_add(block.tally.messages, Ordering::Relaxed);
        self.counters.events.fetch_add(block.tally.events, Ordering::Relaxed);
        self.counters.quarantined.fetch_add(block.tally.quarantined, Ordering::Relaxed);
        let state = &feed.sources[block.source];
        if format.as_ref().is_some_and(|s| s.format_id != state.format_id) {
            block.begin_with_switch();
        }
        let content = &mut feed.sources[block.source].content;
        if content.as_mut().is_some_and(|content| !content.add(block)) {
            *content = None;
        }
        block.is_sequenced = false;
        block.received_min = if feed.received { block.received_first() } else { None };
        feed.queue.push_back(job);
        feed.advance();
        let plan = self.place_units()?;
        // Before the messages are published, so that readers that see them on the tape find their source noted.
        self.write_sources(false);
        Ok(plan)
    }

    fn write_sources(&mut self, is_last: bool) {
        let Some(open_sources) = &mut self.open_sources else { return };
        let now_ns = self.patience.now_ns;
        if !is_last && !open_sources.is_due(now_ns) {
            return;
        }
        if let Err(e) = open_sources.write(&self.feeds, now_ns)
            && is_last
            && let Some(stats) = &self.stats
        {
            stats.add_notes(&[format!(
                "what was read of open files could not be noted ({e}); the next run compares them up to their last mark of progress"
            )]);
        }
    }

    /// Makes room for the source that begins with this block, when it was found while running.
    pub fn begin(&mut self, job: &mut BlockJob) {
        let Some(facts) = job.begins.take() else { return };
        let BlockJob { block, format, .. } = job;
        let feed = &mut self.feeds[block.feed];
        debug_assert_eq!(block.source, feed.sources.len(), "sources begin in order");
        let format_id = format.as_ref().map(|s| s.format_id.clone()).unwrap_or_default();
        feed.sources.push(SourceState {
            feed: feed.name.clone(),
            file: facts.file,
            size: facts.size,
            hash: facts.hash,
            format_id,
            content: feed.hashes.then(Box::default),
            ..SourceState::default()
        });
    }

    /// Places all that is at hand, but for what waits without bound for a feed that may bring more in a later run. At the end
    /// of a run.
    ///
    /// # Errors
    /// Fails as [`BlockSequencer::sequence_block`] does.
    pub fn flush(&mut self) -> Result<Option<TapePlacement>, Error> {
        self.patience.is_over = true;
        self.place_units()
    }

    /// Reports each feed whose messages still wait; returns whether there are any. They are in files and journals,
    /// and a later run reads them again.
    pub fn note_left(&self) -> bool {
        let waits = |f: &&FeedState| f.look_waits_unbounded();
        let waiting_feeds: Vec<_> = self.feeds.iter().filter(waits).map(|f| f.name.as_str()).collect();
        for (feed, stats) in self.feeds.iter().zip(self.stats.iter().flat_map(|stats| &stats.feeds)) {
            let messages: usize = feed.unplaced_units().count();
            if messages > 0 {
                stats.link.note(format!(
                    "{messages} messages wait for {}; they are in its files or journal, and the next run places them",
                    waiting_feeds.join(", ")
                ));
            }
        }
        self.feeds.iter().any(|feed| feed.in_hand().is_some())
    }

    /// Merges as far as every open feed has something at hand, and claims the place for it.
    fn place_units(&mut self) -> Result<Option<TapePlacement>, Error> {
        self.frame_pieces.clear();
        let waits = loop {
            let step = self
                .clock
                .as_mut()
                .map(|clock| (clock.look_at_next(&mut self.feeds, self.patience.is_over), clock.feed));
            match step {
                Some((ClockStep::Wait, _)) => break None,
                Some((ClockStep::Place, i)) => {
                    self.place_tick(i)?;
                    continue;
                }
                Some((ClockStep::Others, _)) | None => {}
            }
            let mut next_feed: Option<(UnixNanos, usize)> = None;
            for i in 0..self.feeds.len() {
                if self.feeds[i].is_clock {
                    continue;
                }
                if let Some(ts) = self.look_at_head(i)
                    && !self.is_after_tick(i)
                    && next_feed.is_none_or(|(t, _)| ts < t)
                {
                    next_feed = Some((ts, i));
                }
            }
            let Some((_, i)) = next_feed else { break None };
            let came_ns = self.feeds[i].head_came_ns();
            let wait_end = || self.feeds.iter().filter_map(|feed| feed.waits_until(came_ns)).max();
            // A unit that waits without bound still waits at the end of the run.
            if let Some(wait_end) = wait_end().filter(|until| !self.patience.is_over || *until == i64::MAX) {
                break Some((came_ns, wait_end));
            }
            let merged = |j: usize| j != i && !self.is_after_tick(j);
            let limit = self.feeds.iter().enumerate().filter(|(j, _)| merged(*j)).filter_map(|(j, f)| {
                // A feed before this one wins a tie.
                f.head.map(|FeedHead { ts, .. }| UnixNanos(if j < i { ts.0.saturating_sub(1) } else { ts.0 }))
            });
            let limit = limit.min().unwrap_or(UnixNanos::MAX);
            self.note_placed(i);
            self.emit_run(i, limit)?;
        };
        if let Some(clock) = &mut self.clock {
            clock.note_events(self.events, self.patience.now_ns);
        }
        self.note_waiting(waits);
        self.report_figures();
        let bytes: u64 = self.frame_pieces.iter().map(|p| u64::from(p.end - p.start)).sum();
        let events = std::mem::take(&mut self.events);
        if bytes == 0 {
            self.drop_emptied();
            return Ok(None);
        }
        let (feeds, pieces) = (&self.feeds, &self.frame_pieces);
        let boundary = |limit: u64| boundary_before(feeds, pieces, limit);
        let mut claim = loop {
            match (self.writer.claim(bytes, boundary, events), &self.stopping) {
                (Err(e), Some(stopping))
                    if self.flushes.may_retry_append(&e, &self.writer, stopping.load(Ordering::Relaxed)) => {}
                (claim, _) => break claim?,
            }
        };
        if let [feed] = &mut self.feeds[..]
            && feed.queue.len() == 1
        {
            let job = feed.queue.pop_front().expect("one block");
            feed.outstanding.fetch_sub(1, Ordering::Relaxed);
            return Ok(Some(TapePlacement { job, pieces: std::mem::take(&mut self.frame_pieces), claim }));
        }
        for p in &self.frame_pieces {
            let frames = p.bytes_in(&self.feeds[p.feed as usize].queue[p.block as usize].block);
            claim.write_frames_each(frames, |header| count(header, &mut self.by_kind))?;
        }
        claim.publish();
        self.drop_emptied();
        Ok(None)
    }

    /// Returns whether the next unit of feed `i` must not be merged now: it comes after the current tick, or is a
    /// tick.
    fn is_after_tick(&self, i: usize) -> bool {
        self.clock.as_ref().is_some_and(|clock| i == clock.feed || clock.holds_feed(i, &self.feeds[i]))
    }

    /// Looks at the next unit of feed `i`; returns the time by which it is merged.
    #[inline]
    fn look_at_head(&mut self, i: usize) -> Option<UnixNanos> {
        let bounds = self.lead_context();
        let (before, rest) = self.feeds.split_at_mut(i);
        let (feed, after) = rest.split_first_mut().expect("a feed");
        let latest_other_ts = || {
            let other_feeds = before.iter().chain(after.iter()).filter(|feed| !feed.is_clock);
            other_feeds.filter_map(FeedState::head_ts).max()
        };
        feed.look_at_head(&bounds, || latest_other_ts().unwrap_or(NO_TS))
    }

    fn lead_context(&self) -> ClockLeadContext {
        ClockLeadContext {
            lead: self.lead_limits,
            placed_max: self.placed_max,
            placed_before: self.placed_before,
            merges: self.feeds.len() - usize::from(self.clock.is_some()) > 1,
        }
    }

    /// Reports the figures of each feed.
    fn report_figures(&self) {
        let Some(stats) = &self.stats else { return };
        for (feed, stats) in self.feeds.iter().zip(&stats.feeds) {
            stats.clock_ahead.store(feed.clock_ahead, Ordering::Relaxed);
            stats.report_figures(&feed.total, feed.late, feed.running_max, &feed.sessions);
            if stats.is_asked() {
                report_handler(feed, stats);
            }
        }
    }

    /// Gives back the blocks that are completely on the tape.
    fn drop_emptied(&mut self) {
        for feed in &mut self.feeds {
            while feed.queue.front().is_some_and(|job| job.block.is_sequenced) {
                let job = feed.queue.pop_front().expect("a front");
                // Relaxed: a guess for the intake, as there.
                feed.outstanding.fetch_sub(1, Ordering::Relaxed);
                self.spares.push(job);
            }
        }
    }

    /// Closes the tape and syncs the raw log; all blocks must be placed.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(mut self) -> Result<(), Error> {
        self.write_sources(true);
        let Self { writer, raw_log: raw, feeds, stats, .. } = self;
        if let Some(stats) = stats {
            feeds.iter().zip(&stats.feeds).for_each(|(feed, stats)| report_handler(feed, stats));
        }
        raw.sync()?;
        writer.close()?;
        Ok(())
    }

    /// Adds this run's counts to the account that was read from the tape.
    pub fn add_counts(&self, account: &mut TapeAccount) {
        for (kind, n) in self.by_kind.iter().enumerate() {
            account.by_kind[kind] += n;
        }
        for feed in &self.feeds {
            account.clock_ahead += feed.clock_ahead;
            for source in &feed.sources {
                account.update_source(source);
            }
        }
    }
}

#[cold]
fn report_handler(feed: &FeedState, stats: &FeedStats) {
    if let Some(handler_stats) = feed.in_turn.as_ref().and_then(|(_, decoder)| decoder.handler_stats()) {
        stats.report_handler(handler_stats);
    }
}

#[inline]
fn count(header: FrameHeader, by_kind: &mut KindCounts) {
    by_kind[usize::from(header.kind() & 63)] += u64::from(!header.is_meta());
}

/// Returns the last frame boundary of the pieces at or before `limit`, and the number of events before it.
fn boundary_before(feeds: &[FeedState], pieces: &[FramePiece], limit: u64) -> (u64, u64) {
    let (mut bytes, mut events) = (0u64, 0u64);
    for p in pieces {
        for (_, header, frame) in frames(p.bytes_in(&feeds[p.feed as usize].queue[p.block as usize].block)) {
            if bytes + frame.len() as u64 > limit {
                return (bytes, events);
            }
            bytes += frame.len() as u64;
            events += u64::from(!header.is_meta());
        }
    }
    (bytes, events)
}
