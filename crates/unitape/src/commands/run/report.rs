//! What a run tells while it goes on, and at its end.

use crate::channels;
use crate::commands::consolidate::print_summary;
use crate::output::{self, Failure, bytes, grouped};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{FeedFigures, FeedStats, Outcome, Stats};

/// Tells the figures from time to time.
#[derive(Debug)]
pub struct Teller<'a> {
    stats: &'a Stats,
    tape: &'a Path,
    json: bool,
    every: Duration,
}

impl<'a> Teller<'a> {
    /// One that tells `stats` every so often, never if that is zero, and at once what goes wrong with keeping `tape`.
    pub fn new(stats: &'a Stats, tape: &'a Path, json: bool, every: Duration) -> Self {
        Self { stats, tape, json, every }
    }

    /// Tells until `over`. What went wrong with a feed is told at once.
    pub fn tell_until(&self, over: &AtomicBool) {
        let mut last = Instant::now();
        let (mut told, mut looked, mut warned) = (BTreeSet::new(), Instant::now(), None);
        // Acquire: pairs with the Release at the end of the run.
        while !over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            for feed in &self.stats.feeds {
                if let Some(error) = feed.error()
                    && told.insert(feed.name.clone())
                {
                    eprintln!("unitape: feed {} ends: {error}", feed.name);
                }
            }
            if looked.elapsed() >= WARNINGS {
                looked = Instant::now();
                let warning = unitape_tape::retention_warning(self.tape);
                if warning != warned
                    && let Some(warning) = &warning
                {
                    eprintln!("unitape: {}: {warning}", self.tape.display());
                }
                warned = warning;
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
    }

    fn tell(&self) {
        for feed in &self.stats.feeds {
            let f = feed.figures();
            if self.json {
                // A closed stdout is told of when the account is printed.
                _ = output::print_json(&serde_json::json!({ "stats": f }));
                continue;
            }
            let state = match (&f.error, f.ended) {
                (Some(_), _) => ", failed",
                (None, true) => ", ended",
                (None, false) => "",
            };
            eprintln!(
                "{}: {} messages, {} events, {} quarantined, {} duplicates, {} ignored, {} late, {} dropped; {} read, {} behind (most {}), {} blocks waiting (most {}){state}",
                f.feed,
                grouped(f.messages),
                grouped(f.events),
                grouped(f.quarantined),
                grouped(f.duplicates),
                grouped(f.ignored),
                grouped(f.late),
                grouped(f.drops),
                bytes(f.read_bytes),
                bytes(f.lag_bytes),
                bytes(f.lag_bytes_max),
                f.blocks,
                f.blocks_max,
            );
            tell_handler(&f);
        }
    }
}

/// How the lines of a market-data handler do, where a feed has one.
fn tell_handler(figures: &FeedFigures) {
    for line in figures.handler.iter().flat_map(channels::lines) {
        eprintln!("{}: {line}", figures.feed);
    }
}

/// The account at the end; whether a feed has failed.
pub fn last(
    stats: &Stats,
    dir: &Path,
    outcome: &Outcome,
    json: bool,
    elapsed_s: f64,
) -> Result<bool, Failure> {
    let failed: Vec<_> = stats.feeds.iter().filter_map(|f| Some((&f.name, f.error()?))).collect();
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
    for (name, error) in &failed {
        eprintln!("unitape: feed {name} ended before its end: {error}");
    }
    Ok(!failed.is_empty())
}

/// How often it is looked whether something is wrong with keeping the tape.
const WARNINGS: Duration = Duration::from_secs(1);

/// How soon the end of the run is seen.
const LOOK: Duration = Duration::from_millis(20);
