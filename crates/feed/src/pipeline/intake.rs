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
    live_run: Option<LiveRun>,
    /// The number of blocks that the present one lags in the order in which feeds are asked.
    feed_lags: Vec<usize>,
    /// Zero of its clock.
    began_at: Instant,
    /// When the merge was last asked to look again, and for what time.
    last_tick: (Instant, i64),
    /// The merge's knowledge of a feed must be updated.
    feeds_changed: bool,
    /// The longest sleep after this round, unless it is woken.
    sleep_max: Duration,
}

/// The state of a run that continues until it is stopped, besides its feeds.
#[derive(Debug)]
pub struct LiveRun {
    /// Set when the receivers have stopped: then the intake reads the remaining data and ends.
    pub stop: Arc<AtomicBool>,
    /// Figures, and what wakes the intake.
    pub stats: Arc<RunMonitor>,
    /// The longest sleep while sources must be checked that nobody reports.
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
    formats: Mutex<Vec<(usize, Arc<VersionedFormat>)>>,
    has_formats: AtomicBool,
}

impl FormatReloadQueue {
    /// Sets the format of a feed, by its index, from the next block on.
    pub fn push_format(&self, feed: usize, format: VersionedFormat) {
        self.formats.lock().unwrap_or_else(PoisonError::into_inner).push((feed, Arc::new(format)));
        // Release: pairs with the Acquire in `take`.
        self.has_formats.store(true, Ordering::Release);
    }

    fn take_formats(&self) -> Vec<(usize, Arc<VersionedFormat>)> {
        // Acquire: pairs with the Release in `batch_field`.
        if !self.has_formats.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.has_formats.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.formats.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A feed as the intake has it.
pub struct FeedIntake {
    format: Arc<VersionedFormat>,
    supply: SourceDiscovery,
    open_source: Option<SourceReader>,
    /// A source that was found and has too few bytes yet to recognise its format.
    unrecognised_source: Option<(PendingSource, Option<Box<SourceFacts>>)>,
    begins: Option<Box<SourceFacts>>,
    source_head: SourceHead,
    /// When the open file was last looked at, whether it is still the same.
    checked_at: Instant,
    scan_interval: Duration,
    /// Blocks claimed and not yet wholly on the tape; the feed that a merge waits for has the fewest.
    outstanding_blocks: Arc<AtomicU64>,
    has_ended: bool,
    /// It ended because the run stops, and not by itself.
    ended_by_stop: bool,
    availability: FeedAvailability,
    /// When the feed was last found to have no new data.
    quiet_since: Option<Instant>,
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
    /// Makes the intake of a feed and its sources; `scan_interval` is the time between two scans of its directory.
    pub fn new(
        format: VersionedFormat,
        supply: SourceDiscovery,
        outstanding: Arc<AtomicU64>,
        scan_interval: Duration,
    ) -> Self {
        Self {
            format: Arc::new(format),
            supply,
            open_source: None,
            unrecognised_source: None,
            begins: None,
            source_head: SourceHead::default(),
            checked_at: Instant::now(),
            scan_interval,
            outstanding_blocks: outstanding,
            has_ended: false,
            ended_by_stop: false,
            availability: FeedAvailability::default(),
            quiet_since: None,
            calm: 0,
            retry: None,
        }
    }

    /// Has the open source read again from the first byte that was in no block: reading it has failed in between.
    fn reopen_source(&mut self) {
        if let Some(open_source) = self.open_source.take() {
            self.unrecognised_source = Some((open_source.into_pending(), self.begins.take()));
        }
    }

    /// Returns whether the feed needs no look: it was empty, and no data has arrived since.
    fn is_resting(&mut self, stats: &FeedStats, now: Instant) -> bool {
        let lower = |flag: &AtomicBool| {
            // Acquire: pairs with the Release of who received it; it is in the file.
            flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Acquire)
        };
        if let (true, SourceDiscovery::Folder(folder)) = (lower(&stats.began), &mut self.supply) {
            folder.look_again();
            (self.quiet_since, self.calm) = (None, 0);
        }
        if lower(&stats.came) {
            (self.quiet_since, self.calm) = (None, 0);
        }
        let pause = self.pause_time(stats, Duration::ZERO);
        self.quiet_since.is_some_and(|since| now.duration_since(since) < pause)
    }

    /// Returns how long the intake may leave the feed alone if nothing is reported; `idle` if there is no reporter.
    fn pause_time(&self, stats: &FeedStats, idle: Duration) -> Duration {
        match &self.supply {
            SourceDiscovery::Folder(folder) => match folder.kind() {
                FolderKind::Files { .. } if !stats.watched.load(Ordering::Relaxed) => idle,
                // A further file is seen soon after what came last; later only what nobody reports is looked for.
                _ => self.scan_interval * self.calm.max(1),
            },
            SourceDiscovery::Static(_) => idle,
        }
    }

    /// Fills the block of `job`; `None` at the end of the feed.
    fn fill_block(
        &mut self,
        job: &mut BlockJob,
        block_bytes: usize,
        stop: bool,
    ) -> Result<Option<BlockFill>, Error> {
        loop {
            if self.open_source.is_none() {
                match self.open_next(stop)? {
                    Some(true) => {}
                    Some(false) => return Ok(Some(BlockFill::Nothing)),
                    None => return Ok(None),
                }
            }
            let open_source = self.open_source.as_mut().expect("opened above");
            let (followed, journal) = match &self.supply {
                SourceDiscovery::Folder(folder) => {
                    (matches!(folder.kind(), FolderKind::Files { .. }), folder.kind())
                }
                SourceDiscovery::Static(_) => (false, FolderKind::Files { follow: false }),
            };
            // Received bytes are read to their end; files stay where they are.
            if stop && matches!(journal, FolderKind::Files { .. }) {
                self.ended_by_stop = true;
                return Ok(None);
            }
            let block = &mut job.block;
            let fill_outcome = open_source.fill(block, block_bytes, &self.format.format)?;
            if fill_outcome == BlockFill::Nothing {
                // A stream's own journal says where it ends.
                if let SourceDiscovery::Folder(folder) = &mut self.supply
                    && journal != FolderKind::Streams
                {
                    if followed && self.checked_at.elapsed() >= self.scan_interval {
                        open_source.check_unchanged()?;
                        self.checked_at = Instant::now();
                    }
                    if folder.ends(&open_source.path)? {
                        open_source.mark_complete();
                        continue;
                    }
                }
                self.ended_by_stop = stop;
                return Ok(if stop { None } else { Some(BlockFill::Nothing) });
            }
            self.source_head.give(block, &self.format.format, &open_source.path)?;
            job.begins = self.begins.take();
            job.format = Some(self.format.clone());
            block.more = false;
            if block.eof
                && let Some(open) = self.open_source.take()
            {
                block.more = match &mut self.supply {
                    SourceDiscovery::Static(pending) => !pending.is_empty(),
                    SourceDiscovery::Folder(folder) => {
                        folder.note_ended(open.path.clone(), open.read_bytes());
                        folder.has_more()
                    }
                };
            }
            return Ok(Some(fill_outcome));
        }
    }

    /// Opens the next source. Returns whether there is one now; `None` if there will be no more.
    fn open_next(&mut self, stop: bool) -> Result<Option<bool>, Error> {
        if self.unrecognised_source.is_none() {
            self.unrecognised_source = match &mut self.supply {
                SourceDiscovery::Static(pending) => pending.pop_front().map(|p| (p, None)),
                SourceDiscovery::Folder(folder) => match folder.next()? {
                    NextFolderSource::Source(pending, facts) => Some((pending, facts)),
                    NextFolderSource::Nothing if stop => {
                        self.ended_by_stop = true;
                        None
                    }
                    NextFolderSource::Nothing => return Ok(Some(false)),
                    NextFolderSource::End => None,
                },
            };
        }
        let Some((pending, facts)) = &mut self.unrecognised_source else { return Ok(None) };
        self.open_source = match &mut self.supply {
            SourceDiscovery::Static(_) => SourceReader::new(pending.clone(), false, false)?,
            SourceDiscovery::Folder(folder) => {
                let is_journal = folder.kind() == FolderKind::Streams;
                match SourceReader::new(pending.clone(), true, is_journal)? {
                    None if folder.ends(&pending.path)? => {
                        SourceReader::new(pending.clone(), false, is_journal)?
                    }
                    open => open,
                }
            }
        };
        if self.open_source.is_none() {
            self.ended_by_stop = stop;
            return Ok(if stop { None } else { Some(false) });
        }
        self.begins = facts.take();
        self.unrecognised_source = None;
        self.checked_at = Instant::now();
        Ok(Some(true))
    }
}

impl BlockIntake {
    /// Makes an intake of several feeds.
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
            live_run: live,
            feed_lags: order,
            began_at: began,
            last_tick: (began, i64::MAX),
            feeds_changed: false,
            sleep_max: Duration::ZERO,
        }
    }

    /// Fills the block of `job` with the next bytes of the feed that is most wanted; false at the end of all input, or when
    /// no block is wanted any more.
    ///
    /// # Errors
    /// Fails if a source cannot be read; in a live run only its feed ends.
    pub fn fill(&mut self, job: &mut BlockJob, claim: BlockClaim<'_>) -> Result<bool, Error> {
        (job.kind, job.begins, job.format) = (BlockKind::Bytes, None, None);
        (job.block.head, job.block.is_head_defined) = (Arc::default(), false);
        let fill_outcome = self.fill_one(job, claim)?;
        job.availabilities.clear();
        if self.live_run.is_some() {
            job.availabilities.extend(self.feeds.iter().map(|feed| feed.availability));
            job.claimed_ns = self.now_ns();
            job.block.came_ns = job.claimed_ns.saturating_sub(job.block.received_last.map_or(0, age_ns));
        }
        Ok(fill_outcome)
    }

    fn fill_one(&mut self, job: &mut BlockJob, claim: BlockClaim<'_>) -> Result<bool, Error> {
        loop {
            self.reload_mappings();
            // Acquire: pairs with the Release of who stopped the receivers; all they wrote is seen.
            let stop = self.live_run.as_ref().is_some_and(|live| live.stop.load(Ordering::Acquire));
            if let Some(is_filled) = self.try_fill(job, stop)? {
                return Ok(is_filled);
            }
            if claim.is_cancelled() {
                return Ok(false);
            }
            match &self.live_run {
                Some(_) if std::mem::take(&mut self.feeds_changed) => {
                    return Ok(self.queue_mark(job, 0, BlockKind::Tick));
                }
                Some(live) => {
                    let now_ns = self.now_ns();
                    // Relaxed: as where it is stored.
                    let due_ns = live.due_ns.load(Ordering::Relaxed);
                    let may_tick = due_ns != self.last_tick.1 || self.last_tick.0.elapsed() >= TICK_AGAIN;
                    if due_ns <= now_ns && may_tick {
                        self.last_tick = (Instant::now(), due_ns);
                        return Ok(self.queue_mark(job, 0, BlockKind::Tick));
                    }
                    if live.spin {
                        std::hint::spin_loop();
                        continue;
                    }
                    let time_left = Duration::from_nanos(due_ns.saturating_sub(now_ns).max(0) as u64);
                    live.stats.wake.wait(self.sleep_max.min(time_left.max(TICK_LEAST)));
                }
                None => std::thread::sleep(IDLE),
            }
        }
    }

    /// Makes one round over the feeds. Returns whether a block was filled; `None` if no data is available now.
    fn try_fill(&mut self, job: &mut BlockJob, stop: bool) -> Result<Option<bool>, Error> {
        // Relaxed: a guess at what the merge needs next; the result does not depend on it. Each is read once: workers
        // change it meanwhile, and a sort whose keys change panics.
        let feeds = &self.feeds;
        self.feed_lags.sort_by_cached_key(|i| feeds[*i].outstanding_blocks.load(Ordering::Relaxed));
        let mut has_open = false;
        let now = Instant::now();
        let live_due_ns = self.live_run.as_ref().map(|live| live.due_ns.load(Ordering::Relaxed));
        let is_due = live_due_ns.is_some_and(|due_ns| due_ns <= self.now_ns());
        self.sleep_max = PAUSE_MOST;
        let clock = self.live_run.as_ref().and_then(|live| live.clock);
        let is_last =
            clock.is_some_and(|clock| self.feeds.iter().enumerate().all(|(i, f)| i == clock || f.has_ended));
        for i in 0..self.feed_lags.len() {
            let index = self.feed_lags[i];
            let feed = &mut self.feeds[index];
            if feed.has_ended {
                continue;
            }
            has_open = true;
            if let Some((retry_at, _)) = feed.retry
                && !stop
                && now < retry_at
            {
                self.sleep_max = self.sleep_max.min(retry_at - now);
                continue;
            }
            // Bytes of a receiver that has failed for good are read to their end.
            let link = self.live_run.as_ref().map(|live| &live.stats.feeds[index].link);
            let given_up = link.is_some_and(|link| link.has_given_up());
            let stop = stop || given_up || is_last && clock == Some(index);
            let failing = link.is_some_and(|link| link.is_failing());
            let waiting = link.is_some_and(|link| link.is_waiting());
            let blocks = feed.outstanding_blocks.load(Ordering::Relaxed);
            if let Some(live_run) = &self.live_run {
                self.sleep_max =
                    self.sleep_max.min(feed.pause_time(&live_run.stats.feeds[index], live_run.idle));
            }
            if blocks >= BLOCKS_MAX && self.feed_lags.len() > 1 {
                self.sleep_max = self.live_run.as_ref().map_or(self.sleep_max, |live| live.idle);
                continue;
            }
            if let Some(live_run) = &self.live_run {
                let is_unchanged =
                    feed.availability.absent == failing && (feed.availability.gone_ns != i64::MAX) == waiting;
                let is_resting = feed.is_resting(&live_run.stats.feeds[index], now);
                if is_resting && is_unchanged && !stop && !is_due {
                    continue;
                }
            }
            let fill_outcome = feed.fill_block(job, self.block_bytes, stop);
            if fill_outcome.is_ok() && feed.retry.take().is_some() {
                link.inspect(|link| link.recover(FeedStage::Reader));
            }
            if let (SourceDiscovery::Folder(folder), Some(link)) = (&mut feed.supply, link) {
                for name in folder.take_overtaken() {
                    link.note(format!(
                        "{name} came after a file of a greater name had begun: it waits until that one ends, with the next greater name"
                    ));
                }
            }
            match fill_outcome {
                Ok(Some(BlockFill::Some(n))) => {
                    job.block.feed = index;
                    (feed.quiet_since, feed.calm) = (None, 0);
                    feed.availability.note_bytes(failing);
                    if self.live_run.is_some() && job.block.received_last.is_none() {
                        job.block.received_last = feed.open_source.as_ref().and_then(SourceReader::modified);
                    }
                    feed.outstanding_blocks.fetch_add(1, Ordering::Relaxed);
                    self.claimed_bytes.fetch_add(n as u64, Ordering::Relaxed);
                    if let Some(live_run) = &self.live_run {
                        let stats = &live_run.stats.feeds[index];
                        stats.read_bytes.fetch_add(n as u64, Ordering::Relaxed);
                        stats.blocks.store(blocks + 1, Ordering::Relaxed);
                        stats.blocks_max.fetch_max(blocks + 1, Ordering::Relaxed);
                    }
                    return Ok(Some(true));
                }
                Ok(Some(BlockFill::Nothing)) => {
                    self.feeds_changed |= feed.availability.absent != failing;
                    feed.availability.note_empty(self.began_at.elapsed().as_nanos() as i64, failing, waiting);
                    feed.quiet_since = Some(now);
                    feed.calm = (feed.calm + 1).min(CALM_MOST);
                    if let Some(live_run) = &self.live_run {
                        let stats = &live_run.stats.feeds[index];
                        stats.blocks.store(blocks, Ordering::Relaxed);
                        // The whole journal has been read: nothing is pending. The receiver will count bytes again
                        // that it has written and not yet counted. Without this correction, a receiver at its bound
                        // would wait for ever for bytes that nobody has.
                        let bytes_read = stats.read_bytes.load(Ordering::Relaxed);
                        stats.received_bytes.store(bytes_read, Ordering::Relaxed);
                    }
                }
                Ok(None) => {
                    feed.has_ended = true;
                    let kind = if feed.ended_by_stop && !given_up {
                        BlockKind::FeedStop
                    } else {
                        BlockKind::FeedEnd
                    };
                    if self.live_run.is_some() {
                        return Ok(Some(self.queue_mark(job, index, kind)));
                    }
                }
                Err(error) => {
                    let Some(live_run) = &self.live_run else { return Err(error) };
                    let policy = live_run.restarts[index];
                    if !stop && policy.tries_again(error.cause()) {
                        let stats = &live_run.stats.feeds[index];
                        stats.link.note_failure(FeedStage::Reader, &error.to_string(), error.cause());
                        let wait = policy.next_wait(feed.retry.map_or(Duration::ZERO, |(_, wait)| wait));
                        feed.retry = Some((Instant::now() + wait, wait));
                        feed.quiet_since = None;
                        self.sleep_max = self.sleep_max.min(wait);
                        feed.reopen_source();
                        self.feeds_changed |= !feed.availability.absent;
                        feed.availability.note_empty(
                            self.began_at.elapsed().as_nanos() as i64,
                            true,
                            waiting,
                        );
                        continue;
                    }
                    live_run.stats.feeds[index].fail(error.to_string(), error.cause());
                    feed.has_ended = true;
                    return Ok(Some(self.queue_mark(job, index, BlockKind::FeedEnd)));
                }
            }
        }
        Ok(if has_open && self.feeds.iter().any(|f| !f.has_ended) { None } else { Some(false) })
    }

    fn queue_mark(&mut self, job: &mut BlockJob, feed: usize, kind: BlockKind) -> bool {
        (job.block.feed, job.kind) = (feed, kind);
        job.block.bytes.clear();
        self.feeds[feed].outstanding_blocks.fetch_add(1, Ordering::Relaxed);
        if matches!(kind, BlockKind::FeedEnd | BlockKind::FeedStop)
            && let Some(live) = &self.live_run
        {
            live.stats.feeds[feed].ended.store(true, Ordering::Relaxed);
            if kind == BlockKind::FeedEnd {
                live.stats.feeds[feed].link.complete();
            }
        }
        true
    }

    fn now_ns(&self) -> i64 {
        self.began_at.elapsed().as_nanos() as i64
    }

    fn reload_mappings(&mut self) {
        let Some(live_run) = &self.live_run else { return };
        for (feed, format) in live_run.reload.take_formats() {
            self.feeds[feed].format = format;
        }
    }
}

/// The merge is asked to look again for the same time after so long.
const TICK_AGAIN: Duration = Duration::from_millis(1);

/// The longest sleep: unreported events, such as a reloaded mapping, are seen after it.
const PAUSE_MOST: Duration = Duration::from_millis(250);

/// An idle feed is checked at intervals of at most this multiple of the shortest sleep.
const CALM_MOST: u32 = 10;

/// The shortest sleep before that.
const TICK_LEAST: Duration = Duration::from_micros(20);

/// The sleep of an intake without receivers if there is no data: then it waits for stdin or for the merge.
const IDLE: Duration = Duration::from_millis(1);
