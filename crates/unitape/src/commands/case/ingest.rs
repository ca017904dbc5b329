//! `unitape case ingest`.

use crate::commands::clock_time;
use crate::commands::read_args::{self, ReadArgs};
use crate::commands::tape::utc;
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say, say_to};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use unitape_case::CaseStore;
use unitape_case::ingest::{IngestEnd, IngestOptions, IngestedAlert, ingest};
use unitape_model::Calendar;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct IngestArgs {
    /// Directory of the alert tape
    alerts: PathBuf,
    /// Directory of the tape that was watched
    #[arg(long)]
    tape: PathBuf,
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    /// Session dates by this calendar [default: UTC dates]
    #[arg(long, value_name = "FILE")]
    calendar: Option<PathBuf>,
    /// Follow the alert tape as it grows, until stopped
    #[arg(long, short)]
    follow: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &IngestArgs) -> output::Result {
    let calendar = match &args.calendar {
        None => Calendar::default(),
        Some(path) => Calendar::parse(&output::read_text(path)?)
            .map_err(|e| CommandFailure::Error(format!("{}:{}: {}", path.display(), e.line, e.fault)))?,
    };
    let stop = output::stop_flag()?;
    output::print_hot_notice(&args.alerts);
    // A tape that is not there, or one of another kind, must not leave a directory of cases behind.
    unitape_run::tape_content::require_alert_tape(&args.alerts, args.read.options())?;
    unitape_tape::TapeManifest::load(&args.tape)?;
    let mut store = CaseStore::open_or_create(&args.cases)?;
    let options = IngestOptions {
        alerts: &args.alerts,
        source: &args.tape,
        calendar: &calendar,
        read: args.read.options(),
        now: &|| clock_time().0,
        end: &|| match (stop.load(Ordering::Relaxed), args.follow) {
            (true, _) => IngestEnd::Now,
            (false, true) => IngestEnd::Never,
            (false, false) => IngestEnd::AtEnd,
        },
    };
    let mut out = output::stdout();
    let report = ingest(&mut store, &options, |alerts| {
        for alert in alerts {
            print_alert(&mut out, alert, args.json)?;
        }
        out.flush()?;
        Ok::<(), CommandFailure>(())
    })?;
    drop(out);
    let totals = report.totals;
    if args.json {
        output::print_json(&json!({ "totals": {
            "alerts": totals.alerts, "cases": totals.cases, "seen_again": totals.seen_again, "blind": totals.blind,
            "passed_over": totals.passed_over,
        }}))?;
    } else {
        say!(
            "{}: {} new alerts, {} new cases, {} alerts seen again",
            args.cases.display(),
            grouped(totals.alerts),
            grouped(totals.cases),
            grouped(totals.seen_again)
        );
    }
    for (count, text) in [
        (totals.blind, "times a scenario was blind; see: unitape case list --blind"),
        (totals.passed_over, "events of other kinds passed over"),
    ] {
        if count > 0 {
            note!("unitape: {} {text}", grouped(count));
        }
    }
    read_args::finish(report.follower.reader(), report.lost_names, CommandOutcome::Clean)
}

fn print_alert(out: &mut impl Write, alert: &IngestedAlert, json: bool) -> Result<(), CommandFailure> {
    let recorded = &alert.recorded.alert;
    if !json {
        let key: Vec<String> = recorded.key.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let (case, effect, scenario) = (alert.case, alert.effect.name(), &recorded.scenario);
        say_to!(*out, "case {case} {effect}: {}  {scenario}  {}", utc(recorded.ts.0), key.join(", "));
        return Ok(());
    }
    let key: serde_json::Map<String, serde_json::Value> =
        recorded.key.iter().map(|(name, value)| (name.to_string(), value.as_str().into())).collect();
    let line = json!({
        "alert": alert.number, "case": alert.case, "effect": alert.effect.name(), "scenario": recorded.scenario,
        "ts": recorded.ts.0, "trigger_seq": recorded.trigger_seq,
        "trigger_position": recorded.position.map(|position| position.0), "key": key,
    });
    Ok(writeln!(out, "{line}")?)
}
