//! The reports that a run prints while it runs, and at its end.

use crate::channels;
use crate::commands::consolidate::print_summary;
use crate::output::{self, CommandFailure, bytes, grouped, note};
use std::path::Path;
use std::time::Duration;
use unitape_feed::{FeedStatsSnapshot, LinkState};
use unitape_run::config::TimeSpan;
use unitape_run::{RunEvent, RunReport};

/// Prints what a run reports while it runs.
pub fn print_event(event: RunEvent<'_>, json: bool) {
    match event {
        RunEvent::HotNotice { tape, notice } => output::print_notice(tape, notice),
        RunEvent::SourceFingerprint(text) => note!("unitape: {text}"),
        RunEvent::LinkNote { feed, text } => note!("unitape: feed {feed}: {text}"),
        RunEvent::RetentionWarning { tape, warning } => note!("unitape: {}: {warning}", tape.display()),
        RunEvent::NotDurable { failure } => note!("unitape: {failure}"),
        RunEvent::DurableAgain { tape } => {
            note!("unitape: {}: a flush has succeeded again", tape.display());
        }
        // Printing the account reports a closed stdout.
        // The monitor reads these figures when it is asked.
        RunEvent::Begun { .. } => {}
        RunEvent::Figures(figures) if json => {
            _ = output::print_json(&serde_json::json!({ "stats": figures }))
        }
        RunEvent::Figures(figures) => print_figures(figures),
        // A pipe that nobody reads is that of a process that is to die.
        RunEvent::TapeGrew => _ = output::print_empty(),
        RunEvent::MappingLoaded { feed, mapping } => {
            note!("unitape: feed {feed}: from here on by mapping {}", mapping.unwrap_or("none"));
        }
        RunEvent::AddressesChanged { feed } => {
            let message =
                "its addresses are others now; those of the start are listened to until the next one";
            note!("unitape: feed {feed}: {message}");
        }
        RunEvent::MappingRefused { feed, error } => {
            note!("unitape: feed {feed}: {error}; the mapping in use stays");
        }
        RunEvent::ProcessRetried { feed, reason } => {
            note!("unitape: feed {feed}: has failed and is tried again: {reason}");
        }
    }
}

fn print_figures(f: &FeedStatsSnapshot) {
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
        TimeSpan(Duration::from_nanos(f.held_ns_max / 1000 * 1000)),
    );
    if f.repeats > 0 {
        let (repeats, unsure) = (grouped(f.repeats), grouped(f.unsure));
        note!("{}: {repeats} repeats, {unsure} of them unsure", f.feed);
    }
    print_handler(f);
}

/// Prints the state of a market-data handler's lines if the feed has a handler.
fn print_handler(figures: &FeedStatsSnapshot) {
    for line in figures.handler.iter().flat_map(channels::lines) {
        note!("{}: {line}", figures.feed);
    }
}

/// Prints the account at the end.
///
/// # Errors
/// Fails if a feed has failed or the output cannot be written.
pub fn last(report: &RunReport, dir: &Path, json: bool) -> Result<(), CommandFailure> {
    let (outcome, elapsed_s) = (&report.outcome, report.elapsed_s);
    if json {
        for figures in &report.figures {
            output::print_json(&serde_json::json!({ "stats": figures }))?;
        }
        let mut account = serde_json::to_value(&outcome.summary)?;
        account["elapsed_s"] = elapsed_s.into();
        output::print_json(&account)?;
    } else {
        print_summary(dir, outcome, elapsed_s)?;
        report.figures.iter().for_each(print_handler);
    }
    for failed in &report.failed {
        let ending = if failed.gave_up { "ended before its end" } else { "has failed" };
        note!("unitape: feed {} {ending}: {}", failed.feed, failed.error);
    }
    Ok(report.result()?)
}
