//! `unitape breaker run`.

use super::list::{control_json, control_line};
use super::read_rules;
use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say, say_to};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use unitape_run::breaker::run_breaker;
use unitape_run::surveil::LiveControl;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Directory of the tape to watch
    tape: PathBuf,
    /// The rules
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// Directory of the control tape that the breaker makes or continues
    #[arg(long, value_name = "DIR")]
    control: PathBuf,
    /// End when all is read and nobody writes the tape
    #[arg(long)]
    until_end: bool,
    /// Look for the next event without a pause; this uses a core
    #[arg(long)]
    spin: bool,
    /// Print controls as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &RunArgs) -> output::Result {
    let RunArgs { tape, control: dir, until_end, spin, .. } = args;
    if tape.is_file() {
        let message = "this is a file; `unitape consolidate` makes a tape of one";
        return Err(CommandFailure::Usage(format!("{}: {message}", tape.display())));
    }
    let rules = read_rules(&args.rules)?;
    let stop = output::stop_flag()?;
    output::print_hot_notice(tape);
    let control = LiveControl {
        is_stopped: &|| stop.load(Ordering::Relaxed),
        is_finished: &|| match unitape_tape::tape_status(tape) {
            Ok(status) => Ok(*until_end && !status.live),
            // A tape that is not there yet is not finished.
            Err(unitape_tape::Error::NotATape { .. }) => Ok(false),
            Err(e) => Err(e.into()),
        },
        spin: *spin,
        on_missing: &|| note!("unitape: waiting for a tape in {}", tape.display()),
        on_snapshot_refused: &|_| {},
        on_snapshot_passed_over: &|_| {},
        snapshot_events: u64::MAX,
    };
    let mut out = output::stdout();
    let report = run_breaker(tape, dir, &rules, args.read.options(), &control, |record| {
        if args.json {
            writeln!(out, "{}", control_json(record))?;
        } else {
            say_to!(out, "{}", control_line(record));
        }
        out.flush()?;
        Ok::<(), CommandFailure>(())
    })?;
    drop(out);
    let Some(report) = report else { return Ok(CommandOutcome::Clean) };
    let (breaker, counters) = (report.run.breaker(), report.run.breaker().counters());
    if args.json {
        output::print_json(&json!({ "totals": {
            "events": breaker.events(), "controls": report.controls, "appended": report.appended,
            "unpriced": counters.unpriced, "merged": counters.merged, "forgotten": counters.forgotten,
        }}))?;
    } else {
        let (controls, appended) = (grouped(report.controls), grouped(report.appended));
        say!("{}: {controls} controls, {appended} of them new", dir.display());
    }
    for (count, text) in [
        (counters.unpriced, "orders without a known price"),
        (counters.merged, "entries of a window were put together for want of room; they count too long"),
        (counters.forgotten, "orders were forgotten before they were over, for want of room"),
    ] {
        if count > 0 {
            note!("unitape: {} {text}", grouped(count));
        }
    }
    let follower = report.run.follower();
    let outcome = read_args::finish_flaws(follower.flaws(), CommandOutcome::Clean);
    read_args::finish(follower.reader(), report.run.lost_names(), outcome)
}
