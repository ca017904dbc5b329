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
    /// A failed feed is retried if the cause lies outside the data.
    #[default]
    OnFailure,
}

/// Whether and how soon a failed feed is retried.
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
    /// Returns whether to retry after a failure with this cause.
    pub fn tries_again(&self, cause: ErrorCause) -> bool {
        self.restart == RestartMode::OnFailure && cause == ErrorCause::Outside
    }

    /// Returns the wait after a wait of length `before`, which is zero before the first wait.
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
    /// It has failed, and is being retried.
    Failed,
    /// No more data arrives in this run.
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

    /// Returns until when a merge waits for this link before it places a message that arrived at `came_ns`. Returns
    /// `None` if the merge no longer waits.
    pub fn waits_until(&self, came_ns: i64, wait: MergeWait) -> Option<i64> {
        if self.absent {
            return None;
        }
        let MergeWait::Bounded(wait) = wait else { return Some(i64::MAX) };
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        let wait_end_ns = came_ns.min(self.gone_ns).saturating_add(wait_ns);
        (self.empty_ns < wait_end_ns).then_some(wait_end_ns)
    }
}

/// The time that a merge waits for an idle feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeWait {
    /// The wait after the receipt of the unit to be placed, while the feed has a sender; after losing the sender, the
    /// wait since that moment.
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
    link_state: AtomicU8,
    /// Bits of [`FeedStage`]: the parts that have failed and are being retried.
    failing: AtomicU8,
    failures: AtomicU64,
    has_given_up: AtomicBool,
    is_complete: AtomicBool,
    failure: Mutex<Option<LinkFailure>>,
    user_notes: Mutex<VecDeque<String>>,
    notes_left_out: AtomicU64,
}

#[derive(Debug)]
struct LinkFailure {
    reason: String,
    cause: ErrorCause,
    /// Whether it is not retried.
    lasting: bool,
}

impl FeedLinkStatus {
    /// Returns the link's state for statistics; `ended` must be true if no more data will arrive.
    pub fn state(&self, ended: bool) -> LinkState {
        match self.link_state.load(Ordering::Relaxed) {
            _ if self.has_given_up.load(Ordering::Relaxed) || ended => LinkState::Ended,
            _ if self.is_failing() => LinkState::Failed,
            WAITING => LinkState::Waiting,
            CONNECTED => LinkState::Connected,
            _ => LinkState::Open,
        }
    }

    /// Marks the receiver as waiting for a sender.
    pub fn wait(&self) {
        self.link_state.store(WAITING, Ordering::Release);
    }

    /// Marks a sender as connected.
    pub fn connect(&self) {
        self.link_state.store(CONNECTED, Ordering::Release);
    }

    /// Returns whether the receiver waits for a sender.
    pub fn is_waiting(&self) -> bool {
        // Acquire: pairs with the Release in `wait`; what the last sender brought is in the journal.
        self.link_state.load(Ordering::Acquire) == WAITING
    }

    /// Marks the link's source as complete.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    /// Returns whether the source is complete or has failed for good. Then later runs need not wait for more data.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed) || self.has_given_up()
    }

    /// Takes over how another process says that it is; its lines are printed there.
    pub fn mirror(&self, state: LinkState, error: Option<&str>, failures: u64) {
        self.failures.store(failures, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|f| !f.lasting) {
            *failure = error.map(|reason| LinkFailure {
                reason: reason.to_owned(),
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

    /// Notes that a part failed and is being retried.
    pub fn note_failure(&self, part: FeedStage, reason: &str, cause: ErrorCause) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = failure.as_ref().is_some_and(|f| f.reason == reason || f.lasting);
        if !is_known {
            *failure = Some(LinkFailure { reason: reason.to_owned(), cause, lasting: false });
        }
        drop(failure);
        // Release: pairs with the Acquire in `is_failing`; what was received before is in the journal.
        let old_bits = self.failing.fetch_or(part as u8, Ordering::Release);
        if old_bits & part as u8 == 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if !is_known {
            self.note(format!("has failed and is tried again: {reason}"));
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

    /// Notes that no part is retried any more.
    pub fn end(&self, reason: String, cause: ErrorCause) {
        self.note(format!("ends: {reason}"));
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|f| !f.lasting) {
            *failure = Some(LinkFailure { reason, cause, lasting: true });
        }
        drop(failure);
        if self.failing.swap(0, Ordering::Relaxed) == 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `has_given_up`; what was received before is in the journal.
        self.has_given_up.store(true, Ordering::Release);
    }

    /// Returns whether a part of the link has failed and is being retried.
    pub fn is_failing(&self) -> bool {
        // Acquire: pairs with the Release in `falter`.
        self.failing.load(Ordering::Acquire) != 0
    }

    /// Returns whether the link has failed for good: the journal gets no more data.
    pub fn has_given_up(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.has_given_up.load(Ordering::Acquire)
    }

    /// Returns the number of failures.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns the reason for the present failure, if there is one.
    pub fn failure(&self) -> Option<(String, ErrorCause)> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|f| (f.reason.clone(), f.cause))
    }

    /// Has a line about the feed printed.
    pub fn note(&self, line: String) {
        let mut notes = self.user_notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push_back(line);
        } else {
            self.notes_left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the next line to print.
    pub fn next_note(&self) -> Option<String> {
        let mut notes = self.user_notes.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Guards against one recovery that hides another failure: a full disk and an unreadable file are two causes.
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
