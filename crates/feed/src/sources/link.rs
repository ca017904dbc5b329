//! The link to a feed's source: whether a sender is there, whether the feed has failed, and what people are to know.
//!
//! ```text
//!             opened            a sender comes
//!  (begin) ───────────▶ waiting ◀────────────▶ connected
//!     │                    │  its cause is gone  │
//!     └──▶ failed ◀────────┴─────────────────────┘      failed ──▶ ended, where nothing is to be tried again
//! ```
//!
//! A failure that is tried again lasts until a try succeeds. A merge does not wait for a feed that has failed.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use unitape_model::ErrorCause;

/// The treatment of a feed that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartMode {
    /// It ends.
    Never,
    /// A failed feed is tried again, if the cause lies outside the data.
    #[default]
    OnFailure,
}

/// Whether and how soon a feed that fails is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Whether.
    pub restart: RestartMode,
    /// The longest wait between two tries; the first wait is 50 ms, and each is twice the one before.
    pub backoff_max: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self { restart: RestartMode::OnFailure, backoff_max: Duration::from_secs(5) }
    }
}

impl RestartPolicy {
    /// Whether what failed for this cause is tried again.
    pub fn tries_again(&self, cause: ErrorCause) -> bool {
        self.restart == RestartMode::OnFailure && cause == ErrorCause::Outside
    }

    /// The wait after one of this length; the first one follows zero.
    pub fn next_wait(&self, before: Duration) -> Duration {
        (before * 2).max(WAIT_MIN).min(self.backoff_max.max(WAIT_MIN))
    }
}

/// The wait before the first further try.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// The link to a feed's source, as statistics show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// Files, pipes, datagrams: there is no sender to be known.
    #[default]
    Open,
    /// No sender is connected.
    Waiting,
    /// A sender is connected.
    Connected,
    /// It has failed, and is tried again.
    Failed,
    /// Nothing more comes in this run.
    Ended,
}

/// A feed's availability as its readers see it, on a clock that never steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedAvailability {
    /// It has failed, and all that it brought before has been read: a merge does not wait for it.
    pub absent: bool,
    /// When it was last found that all that it brought has been read.
    pub empty_ns: i64,
    /// Since when it has no sender, and all that the last one brought has been read; `i64::MAX` while it has one.
    pub gone_ns: i64,
}

impl Default for FeedAvailability {
    fn default() -> Self {
        Self { absent: false, empty_ns: i64::MIN, gone_ns: i64::MAX }
    }
}

impl FeedAvailability {
    /// Notes that at `now_ns` all that it brought has been read. `failing` and `merge_waits` are from before that look.
    pub fn note_empty(&mut self, now_ns: i64, failing: bool, waiting: bool) {
        (self.absent, self.empty_ns) = (failing, now_ns);
        self.gone_ns = if waiting { self.gone_ns.min(now_ns) } else { i64::MAX };
    }

    /// Notes that it brought something.
    pub fn note_bytes(&mut self, failing: bool) {
        self.absent &= failing;
        self.gone_ns = i64::MAX;
    }

    /// Until when a merge waits for it before it places what came at `came_ns`; `None` when it does not wait any more.
    pub fn waits_until(&self, came_ns: i64, wait: MergeWait) -> Option<i64> {
        if self.absent {
            return None;
        }
        let MergeWait::Bounded(wait) = wait else { return Some(i64::MAX) };
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        let until = came_ns.min(self.gone_ns).saturating_add(wait_ns);
        (self.empty_ns < until).then_some(until)
    }
}

/// The time that a merge waits for an idle feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeWait {
    /// So long after the receipt of what is to be placed, as long as the feed has a sender; and so long after it lost that.
    Bounded(Duration),
    /// Until it brings something, fails or ends.
    Unbounded,
}

impl From<Option<Duration>> for MergeWait {
    fn from(wait: Option<Duration>) -> Self {
        wait.map_or(Self::Unbounded, Self::Bounded)
    }
}

/// The part of a feed that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FeedStage {
    /// The receiver, which writes the journal.
    Receiver = 1,
    /// The reader of files and journals.
    Reader = 2,
}

/// The link to a feed's source.
#[derive(Debug, Default)]
pub struct FeedLinkStatus {
    /// A [`LinkState`]: open, waiting or connected.
    state: AtomicU8,
    /// Bits of [`FeedStage`]: what has failed and is tried again.
    failing: AtomicU8,
    failures: AtomicU64,
    gave_up: AtomicBool,
    complete: AtomicBool,
    failure: Mutex<Option<LinkFailure>>,
    notes: Mutex<VecDeque<String>>,
    notes_left_out: AtomicU64,
}

#[derive(Debug)]
struct LinkFailure {
    why: String,
    cause: ErrorCause,
    /// It is not tried again.
    lasting: bool,
}

impl FeedLinkStatus {
    /// Its state, as statistics show it; `ended` says whether more comes.
    pub fn state(&self, ended: bool) -> LinkState {
        match self.state.load(Ordering::Relaxed) {
            _ if self.gave_up.load(Ordering::Relaxed) || ended => LinkState::Ended,
            _ if self.is_failing() => LinkState::Failed,
            WAITING => LinkState::Waiting,
            CONNECTED => LinkState::Connected,
            _ => LinkState::Open,
        }
    }

    /// A receiver of connections waits for a sender.
    pub fn wait(&self) {
        self.state.store(WAITING, Ordering::Release);
    }

    /// A sender is connected.
    pub fn connect(&self) {
        self.state.store(CONNECTED, Ordering::Release);
    }

    /// Whether it waits for a sender.
    pub fn is_waiting(&self) -> bool {
        // Acquire: pairs with the Release in `wait`; what the last sender brought is in the journal.
        self.state.load(Ordering::Acquire) == WAITING
    }

    /// Its source has come to its end.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    /// Whether its source has come to its end, or it has failed for good: no later run has more of it to wait for.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed) || self.has_given_up()
    }

    /// Takes over how another process says that it is; its lines are printed there.
    pub fn mirror(&self, state: LinkState, error: Option<&str>, failures: u64) {
        self.failures.store(failures, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|f| !f.lasting) {
            *failure = error.map(|why| LinkFailure {
                why: why.to_owned(),
                cause: ErrorCause::Outside,
                lasting: false,
            });
        }
        drop(failure);
        let failing = if state == LinkState::Failed { FeedStage::Receiver as u8 } else { 0 };
        self.failing.store(failing, Ordering::Release);
        match state {
            LinkState::Waiting => self.wait(),
            LinkState::Connected => self.connect(),
            LinkState::Open | LinkState::Failed | LinkState::Ended => {}
        }
    }

    /// Notes that a part failed and is tried again.
    pub fn note_failure(&self, part: FeedStage, why: &str, cause: ErrorCause) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failure.as_ref().is_some_and(|f| f.why == why || f.lasting);
        if !known {
            *failure = Some(LinkFailure { why: why.to_owned(), cause, lasting: false });
        }
        drop(failure);
        // Release: pairs with the Acquire in `is_failing`; what was received before is in the journal.
        let before = self.failing.fetch_or(part as u8, Ordering::Release);
        if before & part as u8 == 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if !known {
            self.note(format!("has failed and is tried again: {why}"));
        }
    }

    /// Notes that a part continues.
    pub fn recover(&self, part: FeedStage) {
        if self.failing.fetch_and(!(part as u8), Ordering::Release) == part as u8 {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if failure.as_ref().is_some_and(|f| !f.lasting) {
                *failure = None;
            }
            drop(failure);
            self.note("continues".to_owned());
        }
    }

    /// Notes that nothing is tried again.
    pub fn end(&self, why: String, cause: ErrorCause) {
        self.note(format!("ends: {why}"));
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|f| !f.lasting) {
            *failure = Some(LinkFailure { why, cause, lasting: true });
        }
        drop(failure);
        if self.failing.swap(0, Ordering::Relaxed) == 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `has_given_up`; what was received before is in the journal.
        self.gave_up.store(true, Ordering::Release);
    }

    /// Whether a part has failed and is tried again.
    pub fn is_failing(&self) -> bool {
        // Acquire: pairs with the Release in `falter`.
        self.failing.load(Ordering::Acquire) != 0
    }

    /// Whether it has failed for good: what is in the journal is all.
    pub fn has_given_up(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.gave_up.load(Ordering::Acquire)
    }

    /// Times that it failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Why it has failed, as long as it has.
    pub fn failure(&self) -> Option<(String, ErrorCause)> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|f| (f.why.clone(), f.cause))
    }

    /// Has a line about the feed printed.
    pub fn note(&self, line: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push_back(line);
        } else {
            self.notes_left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The next line to print.
    pub fn next_note(&self) -> Option<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.pop_front().or_else(|| match self.notes_left_out.swap(0, Ordering::Relaxed) {
            0 => None,
            n => Some(format!("{n} lines more were left out")),
        })
    }
}

const WAITING: u8 = 1;
const CONNECTED: u8 = 2;

/// Lines that wait to be printed, at most; further ones are counted.
const NOTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that fills up while a file cannot be read are two causes, and the first that goes does not end the other.
    #[test]
    fn two_parts_fail_and_continue_one_by_one() {
        let link = FeedLinkStatus::default();
        link.note_failure(FeedStage::Receiver, "disk", ErrorCause::Outside);
        link.note_failure(FeedStage::Receiver, "disk", ErrorCause::Outside);
        link.note_failure(FeedStage::Reader, "files", ErrorCause::Outside);
        assert_eq!((link.failures(), link.state(false)), (2, LinkState::Failed));
        link.recover(FeedStage::Receiver);
        assert!(link.is_failing() && link.failure().is_some());
        link.recover(FeedStage::Reader);
        assert!(!link.is_failing() && link.failure().is_none());
        let notes: Vec<_> = std::iter::from_fn(|| link.next_note()).collect();
        assert_eq!(
            notes,
            ["has failed and is tried again: disk", "has failed and is tried again: files", "continues"]
        );
    }

    #[test]
    fn a_feed_is_waited_for_from_the_receipt_on() {
        let wait = MergeWait::Bounded(Duration::from_nanos(100));
        let mut look = FeedAvailability::default();
        assert_eq!(look.waits_until(1_000, wait), Some(1_100), "it was never looked at");
        look.note_empty(1_099, false, false);
        assert_eq!(look.waits_until(1_000, wait), Some(1_100));
        look.note_empty(1_100, false, false);
        assert_eq!(look.waits_until(1_000, wait), None);
        assert_eq!(look.waits_until(1_001, wait), Some(1_101), "each event is waited with");
        assert_eq!(look.waits_until(1_001, MergeWait::Unbounded), Some(i64::MAX));
        look.note_empty(2_000, false, true);
        look.note_empty(2_100, false, true);
        assert_eq!(look.waits_until(9_000, wait), None, "its sender has been gone for long enough");
        look.note_bytes(false);
        assert_eq!(look.waits_until(9_000, wait), Some(9_100));
        look.note_empty(9_000, true, true);
        assert_eq!(look.waits_until(9_000, MergeWait::Unbounded), None, "it has failed");
    }

    #[test]
    fn waits_double_up_to_their_bound() {
        let policy = RestartPolicy { backoff_max: Duration::from_millis(150), ..RestartPolicy::default() };
        let waits: Vec<_> = std::iter::successors(Some(Duration::ZERO), |w| Some(policy.next_wait(*w)))
            .map(|w| w.as_millis())
            .take(5)
            .collect();
        assert_eq!(waits, [0, 50, 100, 150, 150]);
    }
}
