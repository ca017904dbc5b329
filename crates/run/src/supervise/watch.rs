//! The things watched during a run: its figures, its sources, and how its tape is kept.

use super::event::{EventSink, RunEvent};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{FeedStats, LinkState, RunMonitor};

/// Reports the figures from time to time.
pub struct RunStatsReporter<'a> {
    stats: &'a RunMonitor,
    tape: &'a Path,
    report_interval: Duration,
    /// Another process reads the figures: it learns at once of a feed that has another state.
    reports_changes: bool,
    events: EventSink<'a>,
}

impl<'a> RunStatsReporter<'a> {
    /// Makes a watch that reports `stats` at this interval, or never if the interval is zero. It reports a failure to
    /// keep `tape` at once.
    pub fn new(stats: &'a RunMonitor, tape: &'a Path, every: Duration, events: EventSink<'a>) -> Self {
        Self { stats, tape, report_interval: every, reports_changes: false, events }
    }

    /// Makes the watch report each change of a state at once if `reports_changes`.
    pub fn with_changes(mut self, reports_changes: bool) -> Self {
        self.reports_changes = reports_changes;
        self
    }

    /// Reports until `is_finished`. Reports a failure of a feed at once.
    pub fn report_until(&self, is_finished: &AtomicBool) {
        let mut last_report = Instant::now();
        let (mut looked, mut warned) = (Instant::now(), None);
        let mut not_durable = None;
        let mut states: Vec<(LinkState, bool, Option<String>)> = Vec::new();
        // Acquire: pairs with the Release at the end of the run.
        while !is_finished.load(Ordering::Acquire) {
            self.wait_for_next();
            report_source_notes(self.stats, self.events);
            // A state is reported before its note: a reader of the note then knows that the merge knows the state.
            let notes = self.link_notes();
            if self.reports_changes {
                let now: Vec<_> = (self.stats.feeds.iter())
                    .map(|f| {
                        let state = f.link.state(f.ended.load(Ordering::Relaxed));
                        (state, f.link.is_complete(), f.error())
                    })
                    .collect();
                if now != states {
                    states = now;
                    self.report_figures();
                }
            }
            self.report_link_notes(&notes);
            if looked.elapsed() >= WARNINGS {
                looked = Instant::now();
                let tape = self.tape;
                let warning = unitape_tape::retention_warning(tape);
                if warning != warned
                    && let Some(warning) = &warning
                {
                    (self.events)(RunEvent::RetentionWarning { tape, warning });
                }
                warned = warning;
                let failure = unitape_tape::durability_warning(tape);
                match (&failure, &not_durable) {
                    (Some(failure), before) if before.as_ref() != Some(failure) => {
                        (self.events)(RunEvent::NotDurable { failure });
                    }
                    (None, Some(_)) => (self.events)(RunEvent::DurableAgain { tape }),
                    _ => {}
                }
                not_durable = failure;
            }
            // So that they are of now when they are reported.
            if !self.report_interval.is_zero() {
                self.stats.feeds.iter().for_each(FeedStats::ask_handler);
            }
            if !self.report_interval.is_zero() && last_report.elapsed() >= self.report_interval {
                last_report = Instant::now();
                self.report_figures();
            }
        }
        let notes = self.link_notes();
        if self.reports_changes {
            self.report_figures();
        }
        self.report_link_notes(&notes);
    }

    /// Waits a while. Another process learns at once that the tape has more.
    fn wait_for_next(&self) {
        if !self.reports_changes {
            self.stats.run_end.wait(LOOK);
        } else if self.stats.placed.wait(LOOK_FOR_CHANGES) {
            (self.events)(RunEvent::TapeGrew);
            // The report of the next event covers changes in between.
            std::thread::sleep(CHANGES);
        }
    }

    /// Takes the new notes of all feeds, each with the number of its feed.
    fn link_notes(&self) -> Vec<(usize, String)> {
        let notes = |(n, feed): (usize, &FeedStats)| {
            std::iter::from_fn(|| feed.link.next_note()).map(move |text| (n, text)).collect::<Vec<_>>()
        };
        self.stats.feeds.iter().enumerate().flat_map(notes).collect()
    }

    fn report_link_notes(&self, notes: &[(usize, String)]) {
        for (n, text) in notes {
            (self.events)(RunEvent::LinkNote { feed: &self.stats.feeds[*n].name, text });
        }
    }

    fn report_figures(&self) {
        for feed in &self.stats.feeds {
            (self.events)(RunEvent::Figures(&feed.figures()));
        }
    }
}

/// Reports the remarks for people on the sources.
pub fn report_source_notes(stats: &RunMonitor, events: EventSink<'_>) {
    stats.take_notes().iter().for_each(|text| events(RunEvent::SourceFingerprint(text)));
}

/// The interval at which the watch looks for failures of keeping the tape.
const WARNINGS: Duration = Duration::from_secs(1);

/// The delay after which a note of a feed is reported.
const LOOK: Duration = Duration::from_millis(50);

/// This delay if changes are reported.
const LOOK_FOR_CHANGES: Duration = Duration::from_millis(250);

/// The shortest time between two reports of changes.
const CHANGES: Duration = Duration::from_micros(200);
