//! Figures of each feed while it runs; read by anyone, at any time.
//!
//! All accesses are Relaxed: figures for people and for limits that need not be exact.

use crate::block::MessageTally;
use crate::block::numbers::FeedSessions;
use crate::sources::journal::{InitialJournalState, LastFile};
use crate::sources::link::{FeedLinkStatus, LinkState};
use serde::Serialize;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use unitape_marketdata::engine::EngineStats;
use unitape_model::{ErrorCause, UnixNanos};

/// The figures of a run.
#[derive(Debug, Default)]
pub struct RunMonitor {
    /// One for each feed, in order.
    pub feeds: Vec<FeedStats>,
    /// Wakes the intake.
    pub wake: WakeSignal,
    /// Wakes the threads that wait for new frames on the tape, or for another state of a feed.
    pub placed: WakeSignal,
    /// Wakes who waits for the end of the run.
    pub run_end: WakeSignal,
    notes: Mutex<Vec<String>>,
}

/// The figures of a feed.
#[derive(Debug, Default)]
#[allow(missing_docs)] // as in [`FeedStatsSnapshot`]
pub struct FeedStats {
    pub name: String,
    pub messages: AtomicU64,
    pub events: AtomicU64,
    pub quarantined: AtomicU64,
    pub duplicates: AtomicU64,
    pub ignored: AtomicU64,
    pub late: AtomicU64,
    pub clock_ahead: AtomicU64,
    pub drops: AtomicU64,
    pub connections: AtomicU64,
    pub received_bytes: AtomicU64,
    pub read_bytes: AtomicU64,
    pub lag_bytes_max: AtomicU64,
    pub blocks: AtomicU64,
    pub blocks_max: AtomicU64,
    pub repeats: AtomicU64,
    pub unsure: AtomicU64,
    pub sessions_refused: AtomicU64,
    pub ranges_forgotten: AtomicU64,
    pub pauses: AtomicU64,
    pub ts_max: AtomicI64,
    pub ended: AtomicBool,
    /// The link to its source.
    pub link: FeedLinkStatus,
    /// Senders that were refused because another one was connected.
    pub refused: AtomicU64,
    /// Attempts to connect that failed.
    pub refusals: AtomicU64,
    /// A file of the journal has begun since the reader last looked.
    pub began: AtomicBool,
    /// Whether data has arrived since the reader last checked.
    pub came: AtomicBool,
    /// The kernel reports what grows in its directory.
    pub watched: AtomicBool,
    /// The last file of its journal that the tape knows, when the tape has been read.
    pub(crate) journal_read: OnceLock<LastFile>,
    /// The state of its journal when its receiver began.
    pub(crate) journal_start: OnceLock<InitialJournalState>,
    journal_position: AtomicU64,
    held_ns: AtomicU64,
    held_ns_max: AtomicU64,
    held_messages: AtomicU64,
    waited_ns: AtomicU64,
    /// Somebody wants the handler's figures: they are reported with the next block.
    asked: AtomicBool,
    handler: Mutex<Option<EngineStats>>,
}

/// The decoded part of a stream's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalPosition {
    /// Number of the file.
    pub number: u64,
    /// Bytes of it.
    pub through: u64,
    /// Whether a message ends there and no byte of another has arrived.
    pub between_messages: bool,
}

/// The figures of a feed at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FeedStatsSnapshot {
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
    /// Messages that were appended after their time order.
    pub late: u64,
    /// Messages whose time leads by more than it may.
    pub clock_ahead: u64,
    /// The average time that its held messages waited for other feeds, ns.
    pub held_ns_mean: u64,
    /// At most, ns.
    pub held_ns_max: u64,
    /// The total time that other feeds have waited for it, ns.
    pub waited_ns: u64,
    /// Datagrams dropped by us or by the kernel.
    pub drops: u64,
    /// Connections made or accepted.
    pub connections: u64,
    /// Senders that were refused because another one was connected.
    pub refused: u64,
    /// Attempts to connect that failed.
    pub refusals: u64,
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
    /// Messages whose sequence number had arrived before, kept and flagged.
    pub repeats: u64,
    /// Repeats that cannot be confirmed, because a bound was met.
    pub unsure: u64,
    /// Runs of messages in sessions beyond the 1,024 that are kept; their messages that claim to be repeats are
    /// flagged.
    pub sessions_refused: u64,
    /// The number of times that a session had too many gaps, and its lowest numbers were forgotten.
    pub ranges_forgotten: u64,
    /// Times that a receiver stopped reading because the lag was at its bound.
    pub pauses: u64,
    /// Latest event time, ns since 1970; `None` before the first one.
    pub ts_max: Option<i64>,
    /// Whether no more data arrives in this run.
    pub ended: bool,
    /// Whether the source is complete.
    pub complete: bool,
    /// The link to its source.
    pub state: LinkState,
    /// Times that it failed, whether it continued or not.
    pub failures: u64,
    /// The reason for the failure: the source ended early, or is being retried.
    pub error: Option<String>,
    /// The market-data handler's statistics of the current source, if the feed has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<EngineStats>,
}

impl RunMonitor {
    /// Figures for feeds of these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let feed = |name| FeedStats { name, ts_max: AtomicI64::new(i64::MIN), ..FeedStats::default() };
        Self { feeds: names.into_iter().map(feed).collect(), ..Self::default() }
    }

    /// Adds what people are to know of the sources.
    pub(crate) fn add_notes(&self, notes: &[String]) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(notes);
    }

    /// Takes the notes on the sources for people that nobody has fetched yet.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FeedStats {
    /// Returns a snapshot of all figures.
    pub fn figures(&self) -> FeedStatsSnapshot {
        let get = |n: &AtomicU64| n.load(Relaxed);
        FeedStatsSnapshot {
            feed: self.name.clone(),
            messages: get(&self.messages),
            events: get(&self.events),
            quarantined: get(&self.quarantined),
            duplicates: get(&self.duplicates),
            ignored: get(&self.ignored),
            late: get(&self.late),
            clock_ahead: get(&self.clock_ahead),
            held_ns_mean: get(&self.held_ns) / get(&self.held_messages).max(1),
            held_ns_max: get(&self.held_ns_max),
            waited_ns: get(&self.waited_ns),
            drops: get(&self.drops),
            connections: get(&self.connections),
            refused: get(&self.refused),
            refusals: get(&self.refusals),
            received_bytes: get(&self.received_bytes),
            read_bytes: get(&self.read_bytes),
            lag_bytes: self.lag_bytes(),
            lag_bytes_max: get(&self.lag_bytes_max),
            blocks: get(&self.blocks),
            blocks_max: get(&self.blocks_max),
            repeats: get(&self.repeats),
            unsure: get(&self.unsure),
            sessions_refused: get(&self.sessions_refused),
            ranges_forgotten: get(&self.ranges_forgotten),
            pauses: get(&self.pauses),
            ts_max: Some(self.ts_max.load(Relaxed)).filter(|ts| *ts != i64::MIN),
            ended: self.ended.load(Relaxed),
            complete: self.link.is_complete(),
            state: self.link.state(self.ended.load(Relaxed)),
            failures: self.link.failures(),
            error: self.error(),
            handler: self.handler_stats(),
        }
    }

    /// Returns the handler's last reported figures: reported on request, and at the end.
    fn handler_stats(&self) -> Option<EngineStats> {
        self.handler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for the handler's figures with the next block: collecting them costs more than counting.
    pub fn ask_handler(&self) {
        self.asked.store(true, Relaxed);
    }

    /// Returns whether a caller wants the handler's figures.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Records the handler's figures.
    pub(crate) fn report_handler(&self, stats: EngineStats) {
        self.asked.store(false, Relaxed);
        *self.handler.lock().unwrap_or_else(PoisonError::into_inner) = Some(stats);
    }

    /// Returns how many bytes were received and not yet read.
    pub fn lag_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed).saturating_sub(self.read_bytes.load(Relaxed))
    }

    /// Returns the reason for the feed's present failure, if there is one.
    pub fn error(&self) -> Option<String> {
        self.link.failure().map(|(reason, _)| reason)
    }

    /// Returns whose fault the present failure is.
    pub fn error_cause(&self) -> Option<ErrorCause> {
        self.link.failure().map(|(_, cause)| cause)
    }

    /// Notes that it ends before its end.
    pub fn fail(&self, reason: String, cause: ErrorCause) {
        self.link.end(reason, cause);
    }

    /// Returns the decoded part of a stream's journal.
    pub(crate) fn decoded_position(&self) -> JournalPosition {
        // Acquire: pairs with the Release in `settle`.
        let word = self.journal_position.load(Acquire);
        JournalPosition {
            number: word >> 41,
            through: (word >> 1) & ((1 << 40) - 1),
            between_messages: word & 1 == 1,
        }
    }

    /// Notes how far the journal of a stream has been decoded.
    pub(crate) fn set_journal_position(&self, position: JournalPosition) {
        let fits = position.through < 1 << 40 && position.number < 1 << 23;
        let word = position.number << 41 | position.through << 1 | u64::from(position.between_messages);
        self.journal_position.store(if fits { word } else { 0 }, Release);
    }

    /// Notes that something was held so long for other feeds.
    pub(crate) fn note_held(&self, ns: i64) {
        let ns = u64::try_from(ns).unwrap_or(0);
        self.held_ns.fetch_add(ns, Relaxed);
        self.held_messages.fetch_add(1, Relaxed);
        self.held_ns_max.fetch_max(ns, Relaxed);
    }

    /// Notes that other feeds have waited so long for it.
    pub(crate) fn note_waited(&self, ns: i64) {
        self.waited_ns.fetch_add(u64::try_from(ns).unwrap_or(0), Relaxed);
    }

    /// Notes that bytes were received.
    pub fn note_received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Relaxed);
        self.lag_bytes_max.fetch_max(self.lag_bytes(), Relaxed);
    }

    pub(crate) fn report_figures(
        &self,
        total: &MessageTally,
        late: u64,
        running_max: UnixNanos,
        sessions: &FeedSessions,
    ) {
        self.messages.store(total.messages, Relaxed);
        self.events.store(total.events, Relaxed);
        self.quarantined.store(total.quarantined, Relaxed);
        self.duplicates.store(total.duplicates, Relaxed);
        self.ignored.store(total.ignored, Relaxed);
        self.late.store(late, Relaxed);
        self.repeats.store(total.repeats, Relaxed);
        self.unsure.store(total.unsure, Relaxed);
        self.sessions_refused.store(sessions.refused_runs, Relaxed);
        self.ranges_forgotten.store(sessions.forgotten_ranges, Relaxed);
        self.ts_max.store(running_max.0, Relaxed);
    }
}

/// Lets the intake sleep while no data arrives.
#[derive(Debug, Default)]
pub struct WakeSignal {
    /// Whether data has arrived since the last check.
    is_raised: Mutex<bool>,
    condition: Condvar,
}

impl WakeSignal {
    /// Wakes the waiting thread: data has arrived.
    pub fn notify(&self) {
        *self.is_raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }

    /// Waits until data has arrived, or for `most`; returns whether data has arrived.
    pub fn wait(&self, most: Duration) -> bool {
        let guard = self.is_raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(guard, most, |is_raised| !*is_raised);
        let (mut guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *guard)
    }
}
