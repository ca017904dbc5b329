//! `unitape breaker list`.

use super::read_rules;
use crate::commands::read_args::{self, ReadArgs};
use crate::commands::tape::{readable, utc};
use crate::output::{self, CommandFailure, CommandOutcome, note, say_to};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use unitape_run::breaker::{BreakerOutcome, BreakerRun, controls_in_force, read_controls};
use unitape_tape::TapeManifest;
use unitape_watch::breakers::RecordedControl;

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
    let run = match (&args.rules, &args.tape) {
        (Some(rules), Some(tape)) => {
            let rules = read_rules(rules)?;
            let source = TapeManifest::load(tape)?.id;
            let records = read_controls(&args.control, Some(source), args.read.options())?;
            let mut run = BreakerRun::open(tape, rules, args.read.options())?;
            run.take_recorded(&records);
            Some((judge(run)?, records))
        }
        _ => None,
    };
    let mut out = output::stdout();
    let (tripped, missing) = match &run {
        Some((run, records)) => in_force(run, records),
        None => {
            let records = read_controls(&args.control, None, args.read.options())?;
            (controls_in_force(&records, None), 0)
        }
    };
    for record in &tripped {
        if args.json {
            writeln!(out, "{}", json!({ "tripped": control_json(record) }))?;
        } else {
            say_to!(out, "{}", control_line(record));
        }
    }
    for used in run.iter().flat_map(|(run, _)| run.breaker().uses()) {
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
    if missing > 0 {
        note!("unitape: {missing} trips are not on the control tape yet; see: unitape breaker run");
    }
    match &run {
        Some((run, _)) => read_args::finish(run.follower().reader(), run.lost_names(), CommandOutcome::Clean),
        None => Ok(CommandOutcome::Clean),
    }
}

fn judge(mut run: BreakerRun) -> Result<BreakerRun, CommandFailure> {
    loop {
        match run.step()? {
            BreakerOutcome::Frame(_) => {}
            BreakerOutcome::AtEnd => return Ok(run),
            BreakerOutcome::Rewound => {
                let what = "the tape was cut back while it was read; run the command again";
                return Err(CommandFailure::Data(what.to_owned()));
            }
        }
    }
}

/// Returns the records of what is in force at the end of the tape, and how many trips have none.
fn in_force(run: &BreakerRun, records: &[RecordedControl]) -> (Vec<RecordedControl>, usize) {
    let by_id: BTreeMap<&str, &RecordedControl> =
        records.iter().map(|record| (record.id.as_str(), record)).collect();
    let tripped = run.breaker().tripped();
    let known: Vec<_> = tripped
        .iter()
        .filter_map(|(_, trip)| by_id.get(trip.id.as_str()).map(|record| (*record).clone()))
        .collect();
    let missing = tripped.len() - known.len();
    (known, missing)
}

/// A control as JSON.
pub fn control_json(record: &RecordedControl) -> Value {
    let detail =
        record.detail.as_ref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()));
    json!({
        "id": record.id, "action": record.verb.name(), "scope": record.scope.to_string(), "ts": record.ts.0,
        "cause": record.cause.position.0, "reason": record.reason, "detail": detail.unwrap_or(Value::Null), "by": record.by,
        "second_by": record.second_by, "until": record.until.map(|until| until.0), "dry_run": record.dry_run,
    })
}

/// A control as a line.
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
    let persons = [&record.by, &record.second_by].into_iter().flatten().cloned().collect::<Vec<_>>();
    if !persons.is_empty() {
        line += &format!("  by {}", persons.join(" and "));
    }
    if let Some(until) = record.until {
        line += &format!("  until {}", utc(until.0));
    }
    String::from_utf8_lossy(&readable(line.as_bytes())).into_owned()
}
