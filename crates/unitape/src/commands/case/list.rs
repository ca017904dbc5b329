//! `unitape case list`.

use super::parse_state;
use crate::commands::tape::{readable, utc};
use crate::output::{self, CommandFailure, CommandOutcome, note, say_to};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use unitape_case::{ActionRecord, Case, CaseFilter, CaseState, CaseStore};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    /// Only cases in this state: new, assigned, investigating, escalated, pending_close, closed, reopened
    #[arg(long, value_parser = parse_state)]
    state: Option<CaseState>,
    /// Only cases of this scenario
    #[arg(long, value_name = "ID")]
    scenario: Option<String>,
    /// Only cases that this user has
    #[arg(long, value_name = "USER")]
    assignee: Option<String>,
    /// Only cases that name this party: owner, trader, group, account
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
    /// Print at most N, from 1 to 10,000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,
    /// Only cases after this one: the cursor of the page before
    #[arg(long, value_name = "CURSOR")]
    after: Option<u64>,
    /// Print the times at which a scenario was blind, instead of cases
    #[arg(long, conflicts_with_all = ["state", "scenario", "assignee", "party", "after"])]
    blind: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> output::Result {
    let store = CaseStore::open(&args.cases)?;
    let mut out = output::stdout();
    let blind = store.blind(None)?;
    if args.blind {
        for action in &blind {
            print_blind(&mut out, action, args.json)?;
        }
        out.flush()?;
        return Ok(CommandOutcome::Clean);
    }
    let filter = CaseFilter {
        state: args.state,
        scenario: args.scenario.clone(),
        assignee: args.assignee.clone(),
        party: args.party.clone(),
        after: args.after,
        limit: Some(args.limit),
    };
    let page = store.cases(&filter)?;
    for case in &page.cases {
        if args.json {
            writeln!(out, "{}", case_json(case))?;
        } else {
            say_to!(out, "{}", case_line(case));
        }
    }
    if let Some(next_page) = page.next {
        if args.json {
            writeln!(out, "{}", json!({ "next": next_page }))?;
        } else {
            note!("unitape: more cases follow: --after {next_page}");
        }
    }
    out.flush()?;
    if page.cases.is_empty() {
        note!("unitape: no case fits");
    }
    if !blind.is_empty() {
        note!("unitape: {} times a scenario was blind; see: unitape case list --blind", blind.len());
    }
    Ok(CommandOutcome::Clean)
}

fn print_blind(out: &mut impl Write, action: &ActionRecord, json: bool) -> Result<(), CommandFailure> {
    let line = action.text.as_deref().unwrap_or_default();
    if json {
        writeln!(out, "{}", json!({ "action": action.number, "event": event_json(line) }))?;
    } else {
        // Escaped already.
        out.write_all(&readable(line.as_bytes()))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Parses the line of an event as JSON. A line that is not JSON becomes a string.
pub fn event_json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| line.into())
}

/// Writes a case as JSON.
pub fn case_json(case: &Case) -> Value {
    json!({
        "case": case.id, "scenario": case.scenario, "key": event_json(&case.key), "session_date": case.session_date,
        "state": case.state.name(), "disposition": case.disposition.map(|disposition| disposition.name()), "assignee": case.assignee,
        "alerts": case.alerts, "seen_again": case.seen_again, "first_ts": case.first_ts, "last_ts": case.last_ts,
        "opened": case.opened, "changed": case.changed,
    })
}

/// Writes a case as a line.
pub fn case_line(case: &Case) -> String {
    let key = match event_json(&case.key) {
        Value::Object(key) => {
            let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            key.iter().map(|(name, text)| format!("{name} {}", value(text))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let mut line =
        format!("{:>6}  {:13}  {}  {}  {key}", case.id, case.state.name(), case.session_date, case.scenario);
    let s = if case.alerts == 1 { "" } else { "s" };
    line += &format!("  {} alert{s}, first {}", case.alerts, utc(case.first_ts));
    if let Some(user) = &case.assignee {
        line += &format!("  {user}");
    }
    if let Some(disposition) = case.disposition {
        line += &format!("  {disposition}");
    }
    line
}
