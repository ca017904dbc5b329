//! The result of a run.

use crate::Error;
use std::sync::atomic::Ordering;
use unitape_feed::{FeedStatsSnapshot, RunMonitor, RunOutcome};
use unitape_model::ErrorCause;

/// The result of a run, with the feeds that failed.
#[derive(Debug)]
pub struct RunReport {
    /// The account of the tape.
    pub outcome: RunOutcome,
    /// The figures of each feed at the end, in order.
    pub figures: Vec<FeedStatsSnapshot>,
    /// Feeds that ended before their end or have failed.
    pub failed: Vec<FailedFeed>,
    /// The duration of the run.
    pub elapsed_s: f64,
    /// Whether datagrams were dropped.
    pub dropped: bool,
}

/// A feed that ended before its end or has failed.
#[derive(Debug)]
pub struct FailedFeed {
    /// Its name.
    pub feed: String,
    /// Whether the feed stopped before its end without a failure.
    pub gave_up: bool,
    /// Why, in words.
    pub error: String,
    /// On whose side the cause lies.
    pub cause: ErrorCause,
}

impl RunReport {
    pub(super) fn new(outcome: RunOutcome, stats: &RunMonitor, elapsed_s: f64) -> Self {
        let failed_feeds = stats.feeds.iter().filter_map(|feed| {
            Some(FailedFeed {
                feed: feed.name.clone(),
                gave_up: feed.link.has_given_up(),
                error: feed.error()?,
                cause: feed.error_cause()?,
            })
        });
        Self {
            outcome,
            figures: stats.feeds.iter().map(|feed| feed.figures()).collect(),
            failed: failed_feeds.collect(),
            elapsed_s,
            dropped: stats.feeds.iter().any(|feed| feed.drops.load(Ordering::Relaxed) > 0),
        }
    }

    /// Returns whether there are gaps, quarantined data or dropped datagrams.
    pub fn is_flawed(&self) -> bool {
        self.outcome.summary.is_flawed() || self.dropped
    }

    /// Checks that all feeds reached their end.
    ///
    /// # Errors
    /// Fails if a feed did not reach its end. A cause outside the data takes precedence over a cause in the data.
    pub fn result(&self) -> Result<(), Error> {
        let in_data = self.failed.iter().all(|feed| feed.cause == ErrorCause::Data);
        match self.failed.is_empty() {
            true => Ok(()),
            false => Err(Error::FeedsFailed { in_data }),
        }
    }
}
