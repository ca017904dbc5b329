//! The intake: the feed that is most wanted gives its next block.
//!
//! Where sources grow, a block is what is there now; when nothing is there, the intake sleeps until a receiver wakes
//! it or it is time to look again. A feed whose blocks wait for another feed's is not read further: what it brings
//! stays in its files and journals, so memory is bounded however long a merge waits.

use crate::error::Error;
use crate::pipeline::job::{BlockJob, BlockKind, VersionedFormat};
use crate::sources::folder::{FolderKind, NextFolderSource, SourceFolder};
use crate::sources::head::SourceHead;
use crate::sources::link::{FeedAvailability, FeedStage, RestartPolicy};
use crate::sources::open::{BlockFill, SourceReader};
use crate::sources::receive::age_ns;
use crate::sources::source::{PendingSource, SourceFacts};
use crate::sources::stats::{FeedStats, RunMonitor};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use unitape_ring::farm::BlockClaim;

/// The state behind the intake turnstile: which sources are open, how far they are claimed.
pub struct BlockIntake {
    feeds: Vec<FeedIntake>,
    block_bytes: usize,
    /// Bytes of input claimed so far, for progress bars.
    claimed_bytes: Arc<AtomicU64>,
    live: Option<LiveRun>,
    /// The number of blocks that the present one lags in the order in which feeds are asked.
    order: Vec<usize>,
    /// Zero of its clock.
    began: Instant,
    /// When the merge was last asked to look again, and for what time.
    ticked: (Instant, i64),
    /// The merge's knowledge of a feed must be updated.
    changed: bool,
    /// The longest sleep after this round, unless it is woken.
    pause: Duration,
}

/// The state of a run that continues until it is stopped, besides its feeds.
#[derive(Debug)]
pub struct LiveRun {
    /// Up when the receivers have stopped: what is there is read, and that is all.
    pub stop: Arc<AtomicBool>,
    /// Figures, and what wakes the intake.
    pub stats: Arc<RunMonitor>,
    /// How long it sleeps at most while something is to be looked at of which nobody reports that it has come.
    pub idle: Duration,
    /// It looks again and again instead of sleeping.
    pub spin: bool,
    /// When the merge is to look again, on the intake's clock.
    pub due_ns: Arc<AtomicI64>,
    /// Mappings that were reloaded.
    pub reload: Arc<FormatReloadQueue>,
    /// The restart policy for a feed that cannot be read, by feed.
    pub restarts: Vec<RestartPolicy>,
    /// Index of the feed of ticks: it ends with the last of the others.
    pub clock: Option<usize>,
}

/// Formats that replace those in use, by feed.
#[derive(Debug, Default)]
pub struct FormatReloadQueue {
    fresh: Mutex<Vec<(usize, Arc<VersionedFormat>)>>,
    some: AtomicBool,
}

impl FormatReloadQueue {
    /// From the next block on, the feed of this index is decoded so.
    pub fn put(&self, feed: usize, sorted: VersionedFormat) {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner).push((feed, Arc::new(sorted)));
        // Release: pairs with the Acquire in `take`.
        self.some.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<(usize, Arc<VersionedFormat>)> {
        // Acquire: pairs with the Release in `batch_field`.
        if !self.some.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.some.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A feed as the intake has it.
pub struct FeedIntake {
    sorted: Arc<VersionedFormat>,
    supply: SourceDiscovery,
    open: Option<SourceReader>,
    /// A source that was found and has too few bytes yet to recognise its format.
    found: Option<(PendingSource, Option<Box<SourceFacts>>)>,
    begins: Option<Box<SourceFacts>>,
    head: SourceHead,
    /// When the open file was last looked at, whether it is still the same.
    checked: Instant,
    every: Duration,
    /// Blocks claimed and not yet wholly on the tape; the feed that a merge waits for has the fewest.
    outstanding: Arc<AtomicU64>,
    ended: bool,
    /// It ended because the run stops, and not by itself.
    stopped: bool,
    look: FeedAvailability,
    /// When it was last found that nothing more is there.
    quiet: Option<Instant>,
    /// The number of such looks since something came last, up to [`CALM_MOST`].
    calm: u32,
    /// It could not be read: not before this time again, and how long it was waited.
    retry: Option<(Instant, Duration)>,
}

/// The supply of a feed's sources.
#[derive(Debug)]
pub enum SourceDiscovery {
    /// Known beforehand.
    Static(VecDeque<PendingSource>),
    /// Found while it runs.
    Folder(Box<SourceFolder>),
}

/// Blocks of a feed that may wait for other feeds.
pub const BLOCKS_MAX: u64 = 64;

impl FeedIntake {
    /// A feed with its sources; `every` is how often its directory is looked at.
    pub fn new(
        sorted: VersionedFormat,
        supply: SourceDiscovery,
        outstanding: Arc<AtomicU64>,
        every: Duration,
    ) -> Self {
        Self {
            sorted: Arc::new(sorted),
            supply,
            open: None,
            found: None,
            begins: None,
            head: SourceHead::default(),
            checked: Instant::now(),
            every,
            outstanding,
            ended: false,
            stopped: false,
            look: FeedAvailability::default(),
            quiet: None,
            calm: 0,
            retry: None,
        }
    }

    /// Has the open source read again from the first byte that was in no block: reading it has failed in between.
    fn reopen(&mut self) {
        if let Some(open) = self.open.take() {
            self.found = Some((open.into_pending(), self.begins.take()));
        }
    }

    /// Whether there is no need to look at it: nothing was there, and nothing has come since.
    fn rests(&mut self, stats: &FeedStats, now: Instant) -> bool {
        let lower = |flag: &AtomicBool| {
            // Acquire: pairs with the Release of who received it; it is in the file.
            flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Acquire)
        };
        if let (true, SourceDiscovery::Folder(folder)) = (lower(&stats.began), &mut self.supply) {
            folder.look_again();
            (self.quiet, self.calm) = (None, 0);
        }
        if lower(&stats.came) {
            (self.quiet, self.calm) = (None, 0);
        }
        let pause = self.pause(stats, Duration::ZERO);
        self.quiet.is_some_and(|since| now.duration_since(since) < pause)
    }

    /// How long the intake may leave it alone unless something is reported; `idle` where nobody reports.
    fn pause(&self, stats: &FeedStats, idle: Duration) -> Duration {
        match &self.supply {
            SourceDiscovery::Folder(folder) => match folder.kind() {
                FolderKind::Files { .. } if !stats.watched.load(Ordering::Relaxed) => idle,
                // A further file is seen soon after what came last; later only what nobody reports is looked for.
                _ => self.every * self.calm.max(1),
            },
            SourceDiscovery::Static(_) => idle,
        }
    }

    /// Fills the block of `job`; `None` at the end of the feed.
    fn fill(
        &mut self,
        job: &mut BlockJob,
        block_bytes: usize,
        stop: bool,
    ) -> Result<Option<BlockFill>, Error> {
        loop {
            if self.open.is_none() {
                match self.open_next(stop)? {
                    Some(true) => {}
                    Some(false) => return Ok(Some(BlockFill::Nothing)),
                    None => return Ok(None),
                }
            }
            let open = self.open.as_mut().expect("opened above");
            let (followed, journal) = match &self.supply {
                SourceDiscovery::Folder(folder) => {
                    (matches!(folder.kind(), FolderKind::Files { .. }), folder.kind())
                }
                SourceDiscovery::Static(_) => (false, FolderKind::Files { follow: false }),
            };
            // Received bytes are read to their end; files stay where they are.
            if stop && matches!(journal, FolderKind::Files { .. }) {
                self.stopped = true;
                return Ok(None);
            }
            let block = &mut job.block;
            let filled = open.fill(block, block_bytes, &self.sorted.format)?;
            if filled == BlockFill::Nothing {
                // A stream's own journal says where it ends.
                if let SourceDiscovery::Folder(folder) = &mut self.supply
                    && journal != FolderKind::Streams
                {
                    if followed && self.checked.elapsed() >= self.every {
                        open.check()?;
                        self.checked = Instant::now();
                    }
                    if folder.ends(&open.path)? {
                        open.mark_complete();
                        continue;
                    }
                }
                self.stopped = stop;
                return Ok(if stop { None } else { Some(BlockFill::Nothing) });
            }
            self.head.give(block, &self.sorted.format, &open.path)?;
            job.begins = self.begins.take();
            job.sorted = Some(self.sorted.clone());
            block.more = false;
            if block.eof
                && let Some(open) = self.open.take()
            {
                block.more = match &mut self.supply {
                    SourceDiscovery::Static(pending) => !pending.is_empty(),
                    SourceDiscovery::Folder(folder) => {
                        folder.note_ended(open.path.clone(), open.read_bytes());
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
                SourceDiscovery::Static(pending) => pending.pop_front().map(|p| (p, None)),
                SourceDiscovery::Folder(folder) => match folder.next()? {
                    NextFolderSource::Source(pending, facts) => Some((pending, facts)),
                    NextFolderSource::Nothing if stop => {
                        self.stopped = true;
                        None
                    }
                    NextFolderSource::Nothing => return Ok(Some(false)),
                    NextFolderSource::End => None,
                },
            };
        }
        let Some((pending, facts)) = &mut self.found else { return Ok(None) };
        self.open = match &mut self.supply {
            SourceDiscovery::Static(_) => SourceReader::new(pending.clone(), false, false)?,
            SourceDiscovery::Folder(folder) => {
                let journal = folder.kind() == FolderKind::Streams;
                match SourceReader::new(pending.clone(), true, journal)? {
                    None if folder.ends(&pending.path)? => {
                        SourceReader::new(pending.clone(), false, journal)?
                    }
                    open => open,
                }
            }
        };
        if self.open.is_none() {
            self.stopped = stop;
            return Ok(if stop { None } else { Some(false) });
        }
        self.begins = facts.take();
        self.found = None;
        self.checked = Instant::now();
        Ok(Some(true))
    }
}

impl BlockIntake {
    /// An intake over feeds.
    pub fn new(
        feeds: Vec<FeedIntake>,
        block_bytes: usize,
        claimed_bytes: Arc<AtomicU64>,
        live: Option<LiveRun>,
    ) -> Self {
        let order = (0..feeds.len()).collect();
        let began = Instant::now();
        Self {
            feeds,
            block_bytes,
            claimed_bytes,
            live,
            order,
            began,
            ticked: (began, i64::MAX),
            changed: false,
            pause: Duration::ZERO,
        }
    }

    /// Fills the block of `job` with the next bytes of the feed that is most wanted; false at the end of all input, or when
    /// no block is wanted any more.
    ///
    /// # Errors
    /// When a source cannot be read; in a live run only its feed ends.
    pub fn fill(&mut self, job: &mut BlockJob, claim: BlockClaim<'_>) -> Result<bool, Error> {
        (job.turn, job.begins, job.sorted) = (BlockKind::Bytes, None, None);
        (job.block.head, job.block.is_head_defined) = (Arc::default(), false);
        let filled = self.fill_one(job, claim)?;
        job.looks.clear();
        if self.live.is_some() {
            job.looks.extend(self.feeds.iter().map(|feed| feed.look));
            job.claimed_ns = self.now_ns();
            job.block.came_ns = job.claimed_ns.saturating_sub(job.block.received_last.map_or(0, age_ns));
        }
        Ok(filled)
    }

    fn fill_one(&mut self, job: &mut BlockJob, claim: BlockClaim<'_>) -> Result<bool, Error> {
        loop {
            self.reload();
            // Acquire: pairs with the Release of who stopped the receivers; all they wrote is seen.
            let stop = self.live.as_ref().is_some_and(|live| live.stop.load(Ordering::Acquire));
            if let Some(done) = self.try_fill(job, stop)? {
                return Ok(done);
            }
            if claim.is_cancelled() {
                return Ok(false);
            }
            match &self.live {
                Some(_) if std::mem::take(&mut self.changed) => {
                    return Ok(self.empty(job, 0, BlockKind::Tick));
                }
                Some(live) => {
                    let now_ns = self.now_ns();
                    // Relaxed: as where it is stored.
                    let due_ns = live.due_ns.load(Ordering::Relaxed);
                    let again = due_ns != self.ticked.1 || self.ticked.0.elapsed() >= TICK_AGAIN;
                    if due_ns <= now_ns && again {
                        self.ticked = (Instant::now(), due_ns);
                        return Ok(self.empty(job, 0, BlockKind::Tick));
                    }
                    if live.spin {
                        std::hint::spin_loop();
                        continue;
                    }
                    let left = Duration::from_nanos(due_ns.saturating_sub(now_ns).max(0) as u64);
                    live.stats.wake.wait(self.pause.min(left.max(TICK_LEAST)));
                }
                None => std::thread::sleep(IDLE),
            }
        }
    }

    /// One round over the feeds: whether a block was filled, `None` when nothing is there now.
    fn try_fill(&mut self, job: &mut BlockJob, stop: bool) -> Result<Option<bool>, Error> {
        // Relaxed: a guess at what the merge needs next; the result does not depend on it. Each is read once: workers
        // change it meanwhile, and a sort whose keys change panics.
        let feeds = &self.feeds;
        self.order.sort_by_cached_key(|i| feeds[*i].outstanding.load(Ordering::Relaxed));
        let mut open = false;
        let now = Instant::now();
        let live_due_ns = self.live.as_ref().map(|live| live.due_ns.load(Ordering::Relaxed));
        let is_due = live_due_ns.is_some_and(|due_ns| due_ns <= self.now_ns());
        self.pause = PAUSE_MOST;
        let clock = self.live.as_ref().and_then(|live| live.clock);
        let is_last =
            clock.is_some_and(|clock| self.feeds.iter().enumerate().all(|(i, f)| i == clock || f.ended));
        for i in 0..self.order.len() {
            let index = self.order[i];
            let feed = &mut self.feeds[index];
            if feed.ended {
                continue;
            }
            open = true;
            if let Some((at, _)) = feed.retry
                && !stop
                && now < at
            {
                self.pause = self.pause.min(at - now);
                continue;
            }
            // Bytes of a receiver that has failed for good are read to their end.
            let link = self.live.as_ref().map(|live| &live.stats.feeds[index].link);
            let given_up = link.is_some_and(|link| link.has_given_up());
            let stop = stop || given_up || is_last && clock == Some(index);
            let failing = link.is_some_and(|link| link.is_failing());
            let waiting = link.is_some_and(|link| link.is_waiting());
            let blocks = feed.outstanding.load(Ordering::Relaxed);
            if let Some(live) = &self.live {
                self.pause = self.pause.min(feed.pause(&live.stats.feeds[index], live.idle));
            }
            if blocks >= BLOCKS_MAX && self.order.len() > 1 {
                self.pause = self.live.as_ref().map_or(self.pause, |live| live.idle);
                continue;
            }
            if let Some(live) = &self.live {
                let same = feed.look.absent == failing && (feed.look.gone_ns != i64::MAX) == waiting;
                let rests = feed.rests(&live.stats.feeds[index], now);
                if rests && same && !stop && !is_due {
                    continue;
                }
            }
            let filled = feed.fill(job, self.block_bytes, stop);
            if filled.is_ok() && feed.retry.take().is_some() {
                link.inspect(|link| link.recover(FeedStage::Reader));
            }
            if let (SourceDiscovery::Folder(folder), Some(link)) = (&mut feed.supply, link) {
                for name in folder.take_overtaken() {
                    link.note(format!(
                        "{name} came after a file of a greater name had begun: it waits until that one ends, with the next greater name"
                    ));
                }
            }
            match filled {
                Ok(Some(BlockFill::Some(n))) => {
                    job.block.feed = index;
                    (feed.quiet, feed.calm) = (None, 0);
                    feed.look.note_bytes(failing);
                    if self.live.is_some() && job.block.received_last.is_none() {
                        job.block.received_last = feed.open.as_ref().and_then(SourceReader::modified);
                    }
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
                Ok(Some(BlockFill::Nothing)) => {
                    self.changed |= feed.look.absent != failing;
                    feed.look.note_empty(self.began.elapsed().as_nanos() as i64, failing, waiting);
                    feed.quiet = Some(now);
                    feed.calm = (feed.calm + 1).min(CALM_MOST);
                    if let Some(live) = &self.live {
                        let stats = &live.stats.feeds[index];
                        stats.blocks.store(blocks, Ordering::Relaxed);
                        // The whole journal has been read: nothing is pending. The receiver will count bytes again
                        // that it has written and not yet counted. Without this correction, a receiver at its bound
                        // would wait for ever for bytes that nobody has.
                        let read = stats.read_bytes.load(Ordering::Relaxed);
                        stats.received_bytes.store(read, Ordering::Relaxed);
                    }
                }
                Ok(None) => {
                    feed.ended = true;
                    let turn =
                        if feed.stopped && !given_up { BlockKind::FeedStop } else { BlockKind::FeedEnd };
                    if self.live.is_some() {
                        return Ok(Some(self.empty(job, index, turn)));
                    }
                }
                Err(error) => {
                    let Some(live) = &self.live else { return Err(error) };
                    let policy = live.restarts[index];
                    if !stop && policy.tries_again(error.cause()) {
                        let stats = &live.stats.feeds[index];
                        stats.link.note_failure(FeedStage::Reader, &error.to_string(), error.cause());
                        let wait = policy.next_wait(feed.retry.map_or(Duration::ZERO, |(_, wait)| wait));
                        feed.retry = Some((Instant::now() + wait, wait));
                        feed.quiet = None;
                        self.pause = self.pause.min(wait);
                        feed.reopen();
                        self.changed |= !feed.look.absent;
                        feed.look.note_empty(self.began.elapsed().as_nanos() as i64, true, waiting);
                        continue;
                    }
                    live.stats.feeds[index].fail(error.to_string(), error.cause());
                    feed.ended = true;
                    return Ok(Some(self.empty(job, index, BlockKind::FeedEnd)));
                }
            }
        }
        Ok(if open && self.feeds.iter().any(|f| !f.ended) { None } else { Some(false) })
    }

    fn empty(&mut self, job: &mut BlockJob, feed: usize, turn: BlockKind) -> bool {
        (job.block.feed, job.turn) = (feed, turn);
        job.block.bytes.clear();
        self.feeds[feed].outstanding.fetch_add(1, Ordering::Relaxed);
        if matches!(turn, BlockKind::FeedEnd | BlockKind::FeedStop)
            && let Some(live) = &self.live
        {
            live.stats.feeds[feed].ended.store(true, Ordering::Relaxed);
            if turn == BlockKind::FeedEnd {
                live.stats.feeds[feed].link.complete();
            }
        }
        true
    }

    fn now_ns(&self) -> i64 {
        self.began.elapsed().as_nanos() as i64
    }

    fn reload(&mut self) {
        let Some(live) = &self.live else { return };
        for (feed, sorted) in live.reload.take() {
            self.feeds[feed].sorted = sorted;
        }
    }
}

/// The merge is asked to look again for the same time after so long.
const TICK_AGAIN: Duration = Duration::from_millis(1);

/// The longest sleep: events that nobody reports, such as a reloaded mapping, are seen after it.
const PAUSE_MOST: Duration = Duration::from_millis(250);

/// An idle feed is checked at intervals of at most this multiple of the shortest sleep.
const CALM_MOST: u32 = 10;

/// The shortest sleep before that.
const TICK_LEAST: Duration = Duration::from_micros(20);

/// How long an intake without receivers sleeps when nothing is there: then it waits for stdin or for the merge.
const IDLE: Duration = Duration::from_millis(1);
