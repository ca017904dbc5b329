//! What a run tells while it goes on, and at its end.

use crate::channels;
use crate::commands::consolidate::print_summary;
use crate::output::{self, Failure, bytes, grouped, note};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{FeedFigures, FeedStats, LinkState, Outcome, Stats};
use unitape_model::ErrorCause;
use unitape_run::config::Span;

/// Tells the figures from time to time.
#[derive(Debug)]
pub struct Teller<'a> {
    stats: &'a Stats,
    tape: &'a Path,
    json: bool,
    every: Duration,
    /// Another process reads the figures: it learns at once of a feed that has another state.
    changes: bool,
}

impl<'a> Teller<'a> {
    /// One that tells `stats` every so often, never if that is zero, and at once what goes wrong with keeping `tape`.
    pub fn new(stats: &'a Stats, tape: &'a Path, json: bool, every: Duration) -> Self {
        Self { stats, tape, json, every, changes: false }
    }

    /// The same for a process that is to learn of each change of a state.
    pub fn with_changes(mut self) -> Self {
        (self.changes, self.json) = (true, true);
        self
    }

    /// Tells until `over`. What went wrong with a feed is told at once.
    pub fn tell_until(&self, over: &AtomicBool) {
        let mut last = Instant::now();
        let (mut looked, mut warned) = (Instant::now(), None);
        let mut not_durable = None;
        let mut states: Vec<(LinkState, bool, Option<String>)> = Vec::new();
        // Acquire: pairs with the Release at the end of the run.
        while !over.load(Ordering::Acquire) {
            self.wait();
            tell_notes(self.stats);
            self.print_notes();
            if self.changes {
                let now: Vec<_> = (self.stats.feeds.iter())
                    .map(|f| {
                        let state = f.link.state(f.ended.load(Ordering::Relaxed));
                        (state, f.link.is_complete(), f.error())
                    })
                    .collect();
                if now != states {
                    states = now;
                    self.tell();
                }
            }
            if looked.elapsed() >= WARNINGS {
                looked = Instant::now();
                let warning = unitape_tape::retention_warning(self.tape);
                if warning != warned
                    && let Some(warning) = &warning
                {
                    note!("unitape: {}: {warning}", self.tape.display());
                }
                warned = warning;
                let failure = unitape_tape::durability_warning(self.tape);
                match (&failure, &not_durable) {
                    (Some(failure), before) if before.as_ref() != Some(failure) => {
                        note!("unitape: {failure}")
                    }
                    (None, Some(_)) => {
                        note!("unitape: {}: a flush has succeeded again", self.tape.display())
                    }
                    _ => {}
                }
                not_durable = failure;
            }
            // So that they are of now when they are told.
            if !self.every.is_zero() {
                self.stats.feeds.iter().for_each(FeedStats::ask_handler);
            }
            if !self.every.is_zero() && last.elapsed() >= self.every {
                last = Instant::now();
                self.tell();
            }
        }
        self.print_notes();
        if self.changes {
            self.tell();
        }
    }

    /// Waits a while. Another process learns at once that the tape has more.
    fn wait(&self) {
        if !self.changes {
            self.stats.over.wait(LOOK);
        } else if self.stats.placed.wait(LOOK_FOR_CHANGES) {
            // A pipe that nobody reads is that of a process that is to die.
            _ = output::print_empty();
            // What comes in between is of the next line.
            std::thread::sleep(CHANGES);
        }
    }

    fn print_notes(&self) {
        for feed in &self.stats.feeds {
            while let Some(line) = feed.link.next_note() {
                note!("unitape: feed {}: {line}", feed.name);
            }
        }
    }

    fn tell(&self) {
        for feed in &self.stats.feeds {
            let f = feed.figures();
            if self.json {
                // A closed stdout is told of when the account is printed.
                _ = output::print_json(&serde_json::json!({ "stats": f }));
                continue;
            }
            let state = match f.state {
                LinkState::Open => "",
                LinkState::Waiting => ", waiting for a sender",
                LinkState::Connected => ", connected",
                LinkState::Failed => ", failed and tried again",
                LinkState::Ended if f.error.is_some() => ", failed",
                LinkState::Ended => ", ended",
            };
            note!(
                "{}: {} messages, {} events, {} quarantined, {} duplicates, {} ignored, {} late, {} clock ahead, {} dropped; {} read, {} behind (most {}), {} blocks waiting (most {}); held {} at most for other feeds{state}",
                f.feed,
                grouped(f.messages),
                grouped(f.events),
                grouped(f.quarantined),
                grouped(f.duplicates),
                grouped(f.ignored),
                grouped(f.late),
                grouped(f.clock_ahead),
                grouped(f.drops),
                bytes(f.read_bytes),
                bytes(f.lag_bytes),
                bytes(f.lag_bytes_max),
                f.blocks,
                f.blocks_max,
                Span(Duration::from_nanos(f.held_ns_max / 1000 * 1000)),
            );
            if f.repeats > 0 {
                let (repeats, unsure) = (grouped(f.repeats), grouped(f.unsure));
                note!("{}: {repeats} repeats, {unsure} of them unsure", f.feed);
            }
            tell_handler(&f);
        }
    }
}

/// What people are to know of the sources.
fn tell_notes(stats: &Stats) {
    stats.take_notes().iter().for_each(|text| note!("unitape: {text}"));
}

/// How the lines of a market-data handler do, where a feed has one.
fn tell_handler(figures: &FeedFigures) {
    for line in figures.handler.iter().flat_map(channels::lines) {
        note!("{}: {line}", figures.feed);
    }
}

/// The account at the end.
///
/// # Errors
/// When a feed has failed, too.
pub fn last(stats: &Stats, dir: &Path, outcome: &Outcome, json: bool, elapsed_s: f64) -> Result<(), Failure> {
    tell_notes(stats);
    if json {
        let figures: Vec<_> =
            stats.feeds.iter().map(|f| serde_json::json!({ "stats": f.figures() })).collect();
        for line in &figures {
            output::print_json(line)?;
        }
        let mut account = serde_json::to_value(&outcome.summary)?;
        account["elapsed_s"] = elapsed_s.into();
        output::print_json(&account)?;
    } else {
        print_summary(dir, outcome, elapsed_s)?;
        stats.feeds.iter().for_each(|feed| tell_handler(&feed.figures()));
    }
    let mut causes = Vec::new();
    for feed in &stats.feeds {
        if let (Some(error), Some(cause)) = (feed.error(), feed.error_cause()) {
            let how = if feed.link.has_given_up() { "ended before its end" } else { "has failed" };
            note!("unitape: feed {} {how}: {error}", feed.name);
            causes.push(cause);
        }
    }
    let what = "a feed ended before its end or has failed; the same command goes on from here";
    // A configuration's mistake is not the call's, and what lies outside the data comes first.
    match &causes[..] {
        [] => Ok(()),
        causes if causes.iter().all(|cause| *cause == ErrorCause::Data) => {
            Err(Failure::Data(what.to_owned()))
        }
        _ => Err(Failure::Error(what.to_owned())),
    }
}

/// How often it is looked whether something is wrong with keeping the tape.
const WARNINGS: Duration = Duration::from_secs(1);

/// How soon a line of a feed is printed.
const LOOK: Duration = Duration::from_millis(50);

/// The same where what changes is reported.
const LOOK_FOR_CHANGES: Duration = Duration::from_millis(250);

/// The shortest time between two reports of changes.
const CHANGES: Duration = Duration::from_micros(200);
