//! `unitape breaker list`.

use super::read_rules;
use crate::commands::read_args::{self, ReadArgs};
use crate::commands::tape::{readable, utc};
use crate::output::{self, CommandFailure, CommandOutcome, note, say_to};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use unitape_run::breaker::{
    BreakerOutcome, BreakerRun, cause_missing, controls_in_force, read_controls, require_controls_of,
};
use unitape_tape::TapeManifest;
use unitape_watch::breakers::{BreakerRules, RecordedControl};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Directory of the control tape
    #[arg(long, value_name = "DIR")]
    control: PathBuf,
    /// The rules, for the use of each limit
    #[arg(long, value_name = "FILE", requires = "tape")]
    rules: Option<PathBuf>,
    /// Directory of the tape that is watched
    #[arg(long, requires = "rules")]
    tape: Option<PathBuf>,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> output::Result {
    output::print_hot_notice(&args.control);
    let limits = match (&args.rules, &args.tape) {
        (Some(rules), Some(tape)) => Some((read_rules(rules)?, tape)),
        _ => None,
    };
    let records = read_controls(&args.control, args.read.options())?;
    // What is tripped is printed whatever becomes of the watched tape.
    let judged = limits.map(|(rules, tape)| replay_rules(args, rules, tape, &records)).transpose();
    let run = judged.as_ref().ok().and_then(Option::as_ref);
    let tripped = controls_in_force(&records, run.and_then(|run| run.breaker().now()));
    let mut out = output::stdout();
    for record in &tripped {
        if args.json {
            writeln!(out, "{}", json!({ "tripped": control_json(record) }))?;
        } else {
            say_to!(out, "{}", control_line(record));
        }
    }
    for used in run.iter().flat_map(|run| run.breaker().uses()) {
        let scope = used.scope.to_string();
        if args.json {
            let line = json!({ "limit": used.limit, "scope": scope, "percent": used.percent });
            writeln!(out, "{}", json!({ "use": line }))?;
        } else {
            out.write_all(&readable(format!("{:>4} %  {scope}  {}\n", used.percent, used.limit).as_bytes()))?;
        }
    }
    out.flush()?;
    drop(out);
    if tripped.is_empty() {
        note!("unitape: nothing is tripped");
    }
    let missing = run.map_or(0, |run| trips_without_record(run, &records));
    if missing > 0 {
        note!("unitape: {missing} trips are not on the control tape yet; see: unitape breaker run");
    }
    match judged? {
        Some(run) => read_args::finish(run.follower().reader(), run.lost_names(), CommandOutcome::Clean),
        None => Ok(CommandOutcome::Clean),
    }
}

/// Judges the watched tape to its end. It must be the one of the control tape, and have the causes of all controls.
fn replay_rules(
    args: &ListArgs,
    rules: BreakerRules,
    tape: &Path,
    records: &[RecordedControl],
) -> Result<BreakerRun, CommandFailure> {
    require_controls_of(&args.control, TapeManifest::load(tape)?.id, args.read.options())?;
    let mut run = BreakerRun::open(tape, rules, args.read.options())?;
    run.take_recorded(records);
    loop {
        match run.step()? {
            BreakerOutcome::Frame(_) => {}
            BreakerOutcome::AtEnd => break,
            BreakerOutcome::Rewound => {
                let message = "the tape was cut back while it was read; run the command again";
                return Err(CommandFailure::Data(message.to_owned()));
            }
        }
    }
    if run.has_cause_ahead() {
        return Err(cause_missing(&args.control).into());
    }
    Ok(run)
}

/// Returns the number of trips in force that the control tape does not have.
fn trips_without_record(run: &BreakerRun, records: &[RecordedControl]) -> usize {
    let recorded_ids: BTreeSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
    run.breaker().tripped().iter().filter(|(_, trip)| !recorded_ids.contains(trip.id.as_str())).count()
}

/// Writes a control as JSON.
pub fn control_json(record: &RecordedControl) -> Value {
    let detail =
        record.detail.as_ref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()));
    json!({
        "id": record.id, "action": record.verb.name(), "scope": record.scope.to_string(), "ts": record.ts.0,
        "cause": record.cause.position.0, "reason": record.reason, "detail": detail.unwrap_or(Value::Null), "by": record.user,
        "second_by": record.second_user, "until": record.until.map(|until| until.0), "dry_run": record.dry_run,
    })
}

/// Writes a control as a line.
pub fn control_line(record: &RecordedControl) -> String {
    let mut line = format!("{}  {:6}  {}", utc(record.ts.0), record.verb.name(), record.scope);
    if record.dry_run {
        line += "  (rehearsal)";
    }
    let detail: Option<Value> = record.detail.as_ref().and_then(|text| serde_json::from_str(text).ok());
    let text = |name: &str| detail.as_ref().and_then(|detail| detail[name].as_str());
    let reason = record.reason.as_deref().unwrap_or_default();
    match (text("limit"), text("used"), text("max")) {
        (Some(limit), Some(used), Some(max)) => {
            line += &format!("  {limit}: {reason} {used}, limit {max}");
        }
        _ => line += &format!("  {reason}"),
    }
    let persons = [&record.user, &record.second_user].into_iter().flatten().cloned().collect::<Vec<_>>();
    if !persons.is_empty() {
        line += &format!("  by {}", persons.join(" and "));
    }
    if let Some(trip_end) = record.until {
        line += &format!("  until {}", utc(trip_end.0));
    }
    String::from_utf8_lossy(&readable(line.as_bytes())).into_owned()
}
