//! The intake: the feed that is most wanted gives its next block.
//!
//! Where sources grow, a block is what is there now; when nothing is there, the intake sleeps until a receiver
//! wakes it or it is time to look again. A feed whose blocks wait for another feed's is not read on: what it brings
//! stays in its files and journals, so memory is bounded however long a merge waits.

use crate::block::{Block, Turn};
use crate::decode::Sorted;
use crate::error::Error;
use crate::folder::{Folder, Found, Sort};
use crate::head::Head;
use crate::open::{Filled, Open};
use crate::source::{Pending, SourceFacts};
use crate::stats::Stats;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use unitape_ring::farm::Claim;

/// The state behind the intake turnstile: which sources are open, how far they are claimed.
pub struct Intake {
    feeds: Vec<FeedIntake>,
    block_bytes: usize,
    /// Bytes of input claimed so far, for progress bars.
    claimed_bytes: Arc<AtomicU64>,
    live: Option<Live>,
    /// How many blocks the present one is behind in the order in which feeds are asked.
    order: Vec<usize>,
    ticked: Instant,
}

/// What a run that goes on until it is stopped has beside its feeds.
#[derive(Debug)]
pub struct Live {
    /// Up when the receivers have stopped: what is there is read, and that is all.
    pub stop: Arc<AtomicBool>,
    /// Figures, and what wakes the intake.
    pub stats: Arc<Stats>,
    /// How long it sleeps at most when nothing comes.
    pub idle: Duration,
    /// How often the merge is asked whether it has waited long enough.
    pub tick: Option<Duration>,
    /// Mappings that were loaded anew.
    pub reload: Arc<Reload>,
}

/// Formats that replace those in use, by feed.
#[derive(Debug, Default)]
pub struct Reload {
    fresh: Mutex<Vec<(usize, Arc<Sorted>)>>,
    some: AtomicBool,
}

impl Reload {
    /// From the next block on, the feed of this index is decoded so.
    pub fn put(&self, feed: usize, sorted: Sorted) {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner).push((feed, Arc::new(sorted)));
        // Release: pairs with the Acquire in `take`.
        self.some.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<(usize, Arc<Sorted>)> {
        // Acquire: pairs with the Release in `put`.
        if !self.some.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.some.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A feed as the intake has it.
pub struct FeedIntake {
    sorted: Arc<Sorted>,
    supply: Supply,
    open: Option<Open>,
    /// A source that was found and has too few bytes yet to tell what it is.
    found: Option<(Pending, Option<Box<SourceFacts>>)>,
    begins: Option<Box<SourceFacts>>,
    head: Head,
    /// When the open file was last looked at, whether it is still the same.
    checked: Instant,
    every: Duration,
    /// Blocks claimed and not yet wholly on the tape; the feed that a merge waits for has the fewest.
    outstanding: Arc<AtomicU64>,
    ended: bool,
}

/// Where a feed's sources come from.
#[derive(Debug)]
pub enum Supply {
    /// Known beforehand.
    Static(VecDeque<Pending>),
    /// Found while it runs.
    Folder(Box<Folder>),
}

/// Blocks of a feed that may wait for other feeds.
pub const BLOCKS_MAX: u64 = 64;

impl FeedIntake {
    /// A feed with its sources; `every` is how often its directory is looked at.
    pub fn new(sorted: Sorted, supply: Supply, outstanding: Arc<AtomicU64>, every: Duration) -> Self {
        Self {
            sorted: Arc::new(sorted),
            supply,
            open: None,
            found: None,
            begins: None,
            head: Head::default(),
            checked: Instant::now(),
            every,
            outstanding,
            ended: false,
        }
    }

    /// Fills `block`; `None` at the end of the feed.
    fn fill(&mut self, block: &mut Block, block_bytes: usize, stop: bool) -> Result<Option<Filled>, Error> {
        loop {
            if self.open.is_none() {
                match self.open_next(stop)? {
                    Some(true) => {}
                    Some(false) => return Ok(Some(Filled::Nothing)),
                    None => return Ok(None),
                }
            }
            let open = self.open.as_mut().expect("opened above");
            let (followed, journal) = match &self.supply {
                Supply::Folder(folder) => (matches!(folder.sort(), Sort::Files { .. }), folder.sort()),
                Supply::Static(_) => (false, Sort::Files { follow: false }),
            };
            // What was received is read to its end; files stay where they are.
            if stop && matches!(journal, Sort::Files { .. }) {
                return Ok(None);
            }
            let filled = open.fill(block, block_bytes, &self.sorted.format)?;
            if filled == Filled::Nothing {
                // A stream's own journal says where it ends.
                if let Supply::Folder(folder) = &mut self.supply
                    && journal != Sort::Streams
                {
                    if followed && self.checked.elapsed() >= self.every {
                        open.check()?;
                        self.checked = Instant::now();
                    }
                    if folder.ends(&open.path)? {
                        open.complete();
                        continue;
                    }
                }
                return Ok(if stop { None } else { Some(Filled::Nothing) });
            }
            self.head.give(block, &self.sorted.format, &open.path)?;
            block.begins = self.begins.take();
            block.sorted = Some(self.sorted.clone());
            block.more = false;
            if block.eof
                && let Some(open) = self.open.take()
            {
                block.more = match &mut self.supply {
                    Supply::Static(pending) => !pending.is_empty(),
                    Supply::Folder(folder) => {
                        folder.ended(open.path.clone(), open.read_bytes());
                        folder.has_more()
                    }
                };
            }
            return Ok(Some(filled));
        }
    }

    /// Opens the next source: whether there is one now, `None` when there will be none.
    fn open_next(&mut self, stop: bool) -> Result<Option<bool>, Error> {
        if self.found.is_none() {
            self.found = match &mut self.supply {
                Supply::Static(pending) => pending.pop_front().map(|p| (p, None)),
                Supply::Folder(folder) => match folder.next()? {
                    Found::Source(pending, facts) => Some((pending, facts)),
                    Found::Nothing if stop => None,
                    Found::Nothing => return Ok(Some(false)),
                    Found::End => None,
                },
            };
        }
        let Some((pending, facts)) = &mut self.found else { return Ok(None) };
        self.open = match &mut self.supply {
            Supply::Static(_) => Open::new(pending.clone(), false, false)?,
            Supply::Folder(folder) => {
                let journal = folder.sort() == Sort::Streams;
                match Open::new(pending.clone(), true, journal)? {
                    None if folder.ends(&pending.path)? => Open::new(pending.clone(), false, journal)?,
                    open => open,
                }
            }
        };
        if self.open.is_none() {
            return Ok(if stop { None } else { Some(false) });
        }
        self.begins = facts.take();
        self.found = None;
        self.checked = Instant::now();
        Ok(Some(true))
    }
}

impl Intake {
    /// An intake over feeds.
    pub fn new(
        feeds: Vec<FeedIntake>,
        block_bytes: usize,
        claimed_bytes: Arc<AtomicU64>,
        live: Option<Live>,
    ) -> Self {
        let order = (0..feeds.len()).collect();
        Self { feeds, block_bytes, claimed_bytes, live, order, ticked: Instant::now() }
    }

    /// Fills `block` with the next bytes of the feed that is most wanted; false at the end of all input, or when
    /// no block is wanted any more.
    ///
    /// # Errors
    /// When a source cannot be read; in a live run only its feed ends.
    pub fn fill(&mut self, block: &mut Block, claim: Claim<'_>) -> Result<bool, Error> {
        (block.turn, block.begins, block.sorted) = (Turn::Bytes, None, None);
        block.head = Arc::default();
        loop {
            self.reload();
            // Acquire: pairs with the Release of who stopped the receivers; all they wrote is seen.
            let stop = self.live.as_ref().is_some_and(|live| live.stop.load(Ordering::Acquire));
            if let Some(done) = self.try_fill(block, stop)? {
                return Ok(done);
            }
            if claim.is_cancelled() {
                return Ok(false);
            }
            match &self.live {
                Some(live) => {
                    if live.tick.is_some_and(|tick| self.ticked.elapsed() >= tick) {
                        self.ticked = Instant::now();
                        return Ok(self.empty(block, 0, Turn::Tick));
                    }
                    live.stats.wake.wait(live.idle);
                }
                None => std::thread::sleep(IDLE),
            }
        }
    }

    /// One round over the feeds: whether a block was filled, `None` when nothing is there now.
    fn try_fill(&mut self, block: &mut Block, stop: bool) -> Result<Option<bool>, Error> {
        // Relaxed: a guess at what the merge needs next; the result does not depend on it.
        let feeds = &self.feeds;
        self.order.sort_by_key(|i| feeds[*i].outstanding.load(Ordering::Relaxed));
        let mut open = false;
        for i in 0..self.order.len() {
            let index = self.order[i];
            let feed = &mut self.feeds[index];
            if feed.ended {
                continue;
            }
            open = true;
            let blocks = feed.outstanding.load(Ordering::Relaxed);
            if blocks >= BLOCKS_MAX && self.order.len() > 1 {
                continue;
            }
            match feed.fill(block, self.block_bytes, stop) {
                Ok(Some(Filled::Some(n))) => {
                    block.feed = index;
                    feed.outstanding.fetch_add(1, Ordering::Relaxed);
                    self.claimed_bytes.fetch_add(n as u64, Ordering::Relaxed);
                    if let Some(live) = &self.live {
                        let stats = &live.stats.feeds[index];
                        stats.read_bytes.fetch_add(n as u64, Ordering::Relaxed);
                        stats.blocks.store(blocks + 1, Ordering::Relaxed);
                        stats.blocks_max.fetch_max(blocks + 1, Ordering::Relaxed);
                    }
                    return Ok(Some(true));
                }
                Ok(Some(Filled::Nothing)) => {
                    if let Some(live) = &self.live {
                        let stats = &live.stats.feeds[index];
                        stats.blocks.store(blocks, Ordering::Relaxed);
                        // All that is in the journal has been read: nothing is behind. What a receiver has written
                        // and not yet counted it will count again; were that not taken back here, a receiver at
                        // its bound would wait for ever for bytes that nobody has.
                        let read = stats.read_bytes.load(Ordering::Relaxed);
                        stats.received_bytes.store(read, Ordering::Relaxed);
                    }
                }
                Ok(None) => {
                    feed.ended = true;
                    if self.live.is_some() {
                        return Ok(Some(self.empty(block, index, Turn::FeedEnd)));
                    }
                }
                Err(error) => {
                    let Some(live) = &self.live else { return Err(error) };
                    live.stats.feeds[index].fail(error.to_string());
                    feed.ended = true;
                    return Ok(Some(self.empty(block, index, Turn::FeedEnd)));
                }
            }
        }
        Ok(if open && self.feeds.iter().any(|f| !f.ended) { None } else { Some(false) })
    }

    fn empty(&mut self, block: &mut Block, feed: usize, turn: Turn) -> bool {
        (block.feed, block.turn) = (feed, turn);
        block.bytes.clear();
        self.feeds[feed].outstanding.fetch_add(1, Ordering::Relaxed);
        if turn == Turn::FeedEnd
            && let Some(live) = &self.live
        {
            live.stats.feeds[feed].ended.store(true, Ordering::Relaxed);
        }
        true
    }

    fn reload(&mut self) {
        let Some(live) = &self.live else { return };
        for (feed, sorted) in live.reload.take() {
            self.feeds[feed].sorted = sorted;
        }
    }
}

/// How long an intake without receivers sleeps when nothing is there: then it waits for stdin or for the merge.
const IDLE: Duration = Duration::from_millis(1);
