//! Figures of each feed while it runs; read by anyone, at any time.
//!
//! All accesses are Relaxed: figures for people and for limits that need not be exact.

use crate::block::Tally;
use crate::fast;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The figures of a run.
#[derive(Debug, Default)]
pub struct Stats {
    /// One for each feed, in order.
    pub feeds: Vec<FeedStats>,
    /// Wakes the intake.
    pub wake: Wake,
}

/// The figures of a feed.
#[derive(Debug, Default)]
#[allow(missing_docs)] // as in [`FeedFigures`]
pub struct FeedStats {
    pub name: String,
    pub messages: AtomicU64,
    pub events: AtomicU64,
    pub quarantined: AtomicU64,
    pub duplicates: AtomicU64,
    pub ignored: AtomicU64,
    pub late: AtomicU64,
    pub drops: AtomicU64,
    pub connections: AtomicU64,
    pub received_bytes: AtomicU64,
    pub read_bytes: AtomicU64,
    pub lag_bytes_max: AtomicU64,
    pub blocks: AtomicU64,
    pub blocks_max: AtomicU64,
    pub sessions_refused: AtomicU64,
    pub pauses: AtomicU64,
    pub ts_max: AtomicI64,
    pub ended: AtomicBool,
    failed: Mutex<Option<String>>,
    /// Somebody wants to know what the handler has seen: it is told with the next block.
    asked: AtomicBool,
    handler: Mutex<Option<fast::Stats>>,
}

/// The figures of a feed at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FeedFigures {
    /// Name of the feed.
    pub feed: String,
    /// Messages in all, of the sources that are open or were read in this run.
    pub messages: u64,
    /// Events made of them.
    pub events: u64,
    /// Messages in quarantine.
    pub quarantined: u64,
    /// Messages that had been there before.
    pub duplicates: u64,
    /// Messages that the mapping does not want, and packets of others.
    pub ignored: u64,
    /// Messages that were appended behind their time order.
    pub late: u64,
    /// Datagrams dropped by us or by the kernel.
    pub drops: u64,
    /// Connections made or accepted.
    pub connections: u64,
    /// Bytes that the sources hold, as far as known.
    pub received_bytes: u64,
    /// Bytes taken out of them.
    pub read_bytes: u64,
    /// Bytes received and not yet read.
    pub lag_bytes: u64,
    /// The most there were.
    pub lag_bytes_max: u64,
    /// Blocks read and not yet wholly on the tape.
    pub blocks: u64,
    /// The most there were.
    pub blocks_max: u64,
    /// Stretches of messages of sessions beyond the 1,024 that are kept; what they send again is not told from new.
    pub sessions_refused: u64,
    /// Times that a receiver stopped reading because the lag was at its bound.
    pub pauses: u64,
    /// Latest event time, ns since 1970; `None` before the first one.
    pub ts_max: Option<i64>,
    /// Nothing more comes in this run.
    pub ended: bool,
    /// Why it ended before its end.
    pub error: Option<String>,
    /// What the market-data handler has seen of the source in hand, where the feed has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<fast::Stats>,
}

impl Stats {
    /// Figures for feeds of these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let feed = |name| FeedStats { name, ts_max: AtomicI64::new(i64::MIN), ..FeedStats::default() };
        Self { feeds: names.into_iter().map(feed).collect(), wake: Wake::default() }
    }
}

impl FeedStats {
    /// All of it at this moment.
    pub fn figures(&self) -> FeedFigures {
        let get = |n: &AtomicU64| n.load(Relaxed);
        FeedFigures {
            feed: self.name.clone(),
            messages: get(&self.messages),
            events: get(&self.events),
            quarantined: get(&self.quarantined),
            duplicates: get(&self.duplicates),
            ignored: get(&self.ignored),
            late: get(&self.late),
            drops: get(&self.drops),
            connections: get(&self.connections),
            received_bytes: get(&self.received_bytes),
            read_bytes: get(&self.read_bytes),
            lag_bytes: self.lag_bytes(),
            lag_bytes_max: get(&self.lag_bytes_max),
            blocks: get(&self.blocks),
            blocks_max: get(&self.blocks_max),
            sessions_refused: get(&self.sessions_refused),
            pauses: get(&self.pauses),
            ts_max: Some(self.ts_max.load(Relaxed)).filter(|ts| *ts != i64::MIN),
            ended: self.ended.load(Relaxed),
            error: self.error(),
            handler: self.handler(),
        }
    }

    /// What the handler has seen, as it was told last: when it was asked for, and at the end.
    fn handler(&self) -> Option<fast::Stats> {
        self.handler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the handler's figures told with the next block: to put them together takes longer than to count on.
    pub fn ask_handler(&self) {
        self.asked.store(true, Relaxed);
    }

    /// Whether somebody wants to know what the handler has seen.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Tells what the handler has seen.
    pub(crate) fn tell_handler(&self, seen: fast::Stats) {
        self.asked.store(false, Relaxed);
        *self.handler.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }

    /// Bytes received and not yet read.
    pub fn lag_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed).saturating_sub(self.read_bytes.load(Relaxed))
    }

    /// Why it ended before its end.
    pub fn error(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that it ends before its end.
    pub fn fail(&self, why: String) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Notes that bytes were received.
    pub fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Relaxed);
        self.lag_bytes_max.fetch_max(self.lag_bytes(), Relaxed);
    }

    pub(crate) fn tell(&self, total: &Tally, late: u64, running_max: i64, sessions_refused: u64) {
        self.messages.store(total.messages, Relaxed);
        self.events.store(total.events, Relaxed);
        self.quarantined.store(total.quarantined, Relaxed);
        self.duplicates.store(total.duplicates, Relaxed);
        self.ignored.store(total.ignored, Relaxed);
        self.late.store(late, Relaxed);
        self.sessions_refused.store(sessions_refused, Relaxed);
        self.ts_max.store(running_max, Relaxed);
    }
}

/// Lets the intake sleep while nothing comes.
#[derive(Debug, Default)]
pub struct Wake {
    /// Something has come since the last look.
    come: Mutex<bool>,
    condition: Condvar,
}

impl Wake {
    /// Something has come.
    pub fn up(&self) {
        *self.come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }

    /// Waits until something has come, or for `most`.
    pub fn wait(&self, most: Duration) {
        let come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(come, most, |come| !*come);
        let (mut come, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *come = false;
    }
}
