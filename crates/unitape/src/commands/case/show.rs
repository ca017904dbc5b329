//! `unitape case show`.

use super::act::action_json;
use super::list::{case_json, case_line, event_json};
use crate::commands::evidence::{books_json, evidence_line_json, print_books, print_evidence_line};
use crate::commands::read_args::{self, ReadArgs};
use crate::commands::tape::{readable, utc};
use crate::output::{self, CommandFailure, CommandOutcome, note, say_to};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use unitape_case::evidence::{AlertEvidence, EvidenceTape};
use unitape_case::{ActionRecord, AlertRecord, Case, CaseStore};
use unitape_tape::TapeId;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The number of the case
    case: u64,
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    /// Directory of the tape that was watched
    #[arg(long)]
    tape: Option<PathBuf>,
    /// Alerts that are shown in full, from the first one on
    #[arg(long, value_name = "N", default_value_t = 5)]
    alerts: u64,
    /// Levels of each side of a book
    #[arg(long, value_name = "N", default_value_t = 5)]
    depth: usize,
    /// Print as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// All that is shown of a case.
struct ShownCase {
    case: Case,
    parties: Vec<String>,
    alerts: Vec<ShownAlert>,
    earlier: Vec<Case>,
    blind: Vec<ActionRecord>,
    history: Vec<ActionRecord>,
}

struct ShownAlert {
    record: AlertRecord,
    /// None without the tape of the alert.
    evidence: Option<AlertEvidence>,
}

/// Runs the command.
pub fn run(args: &ShowArgs) -> output::Result {
    let store = CaseStore::open(&args.cases)?;
    let case = store.case(args.case)?;
    let records = store.alerts(case.id, args.alerts.max(1))?;
    let mut tape = match &args.tape {
        None => None,
        Some(dir) => {
            output::print_hot_notice(dir);
            Some(EvidenceTape::open(dir, args.read.options())?)
        }
    };
    if let Some(tape) = &tape {
        require_tape(tape, &case, &records)?;
    }
    let mut alerts = Vec::new();
    for record in records {
        let evidence = match &mut tape {
            Some(tape) if record.recorded.source_tape == Some(tape.id().0) => {
                Some(tape.evidence(&record.recorded.alert, args.depth)?)
            }
            _ => None,
        };
        alerts.push(ShownAlert { record, evidence });
    }
    let case_report = ShownCase {
        parties: store.parties(case.id)?,
        earlier: store.earlier_cases(case.id, EARLIER_MAX)?,
        blind: store.blind(Some(&case.session_date))?,
        history: store.actions(case.id)?,
        alerts,
        case,
    };
    let mut out = output::stdout();
    if args.json {
        writeln!(out, "{}", case_report.json())?;
    } else {
        case_report.print(&mut out)?;
    }
    out.flush()?;
    drop(out);
    let evidence = case_report.alerts.iter().filter_map(|alert| alert.evidence.as_ref());
    let is_incomplete =
        evidence.clone().flat_map(|evidence| &evidence.events).any(|line| line.event.is_err());
    let outcome = if is_incomplete {
        note!("unitape: some evidence is not on the tape any more");
        CommandOutcome::Flawed
    } else {
        CommandOutcome::Clean
    };
    match &tape {
        Some(tape) => read_args::finish(tape.reader(), tape.lost_names(), outcome),
        None => Ok(outcome),
    }
}

/// Fails if no alert of the case is of the tape.
fn require_tape(tape: &EvidenceTape, case: &Case, records: &[AlertRecord]) -> Result<(), CommandFailure> {
    let sources: Vec<u128> = records.iter().filter_map(|record| record.recorded.source_tape).collect();
    if sources.contains(&tape.id().0) {
        return Ok(());
    }
    let source =
        sources.first().map_or_else(|| "no tape".to_owned(), |id| format!("the tape {}", TapeId(*id)));
    let message =
        format!("this is the tape {}, and the alerts of case {} are of {source}", tape.id(), case.id);
    Err(CommandFailure::Data(format!("{}: {message}", tape.dir().display())))
}

impl ShownCase {
    fn json(&self) -> Value {
        let mut value = case_json(&self.case);
        let def = unitape_watch::scenarios::find(&self.case.scenario).ok();
        value["title"] = def.map(|def| def.title).into();
        value["rule"] = def.map(|def| def.trigger).into();
        value["parties"] = self.parties.clone().into();
        value["alert_list"] = self.alerts.iter().map(ShownAlert::json).collect();
        value["earlier"] = self.earlier.iter().map(case_json).collect();
        let blind = |action: &ActionRecord| event_json(action.text.as_deref().unwrap_or_default());
        value["blind"] = self.blind.iter().map(blind).collect();
        value["history"] = self.history.iter().map(action_json).collect();
        value
    }

    fn print(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        say_to!(*out, "{}", case_line(&self.case).trim_start());
        if let Ok(def) = unitape_watch::scenarios::find(&self.case.scenario) {
            say_to!(*out, "{}: {}", def.title, def.trigger);
        }
        if !self.parties.is_empty() {
            say_to!(*out, "parties: {}", self.parties.join(", "));
        }
        for alert in &self.alerts {
            alert.print(out)?;
        }
        let alerts_left_out = self.case.alerts.saturating_sub(self.alerts.len() as u64);
        if alerts_left_out > 0 {
            say_to!(*out, "and {alerts_left_out} more alerts; see --alerts");
        }
        if !self.earlier.is_empty() {
            say_to!(*out, "earlier cases of these parties:");
        }
        for case in &self.earlier {
            say_to!(*out, "{}", case_line(case));
        }
        for action in &self.blind {
            out.write_all(&readable(action.text.as_deref().unwrap_or_default().as_bytes()))?;
            out.write_all(b"\n")?;
        }
        say_to!(*out, "history:");
        for action in &self.history {
            say_to!(*out, "{}", history_line(action));
        }
        Ok(())
    }
}

impl ShownAlert {
    fn json(&self) -> Value {
        let AlertRecord { number, recorded, seen_again, .. } = &self.record;
        let alert = &recorded.alert;
        let key: serde_json::Map<String, Value> =
            alert.key.iter().map(|(name, value)| (name.to_string(), value.as_str().into())).collect();
        let events: Vec<Value> = match &self.evidence {
            Some(evidence) => evidence.events.iter().map(evidence_line_json).collect(),
            None => alert.evidence().iter().map(|event| {
                json!({ "seq": event.seq, "position": event.position.map(|position| position.0) })
            }).collect(),
        };
        let mut value = json!({
            "alert": number, "ts": alert.ts.0, "trigger_seq": alert.trigger_seq,
            "trigger_position": alert.position.map(|position| position.0),
            "source_tape": recorded.source_tape.map(|id| TapeId(id).to_string()), "rule_version": recorded.rule_version,
            "params_hash": recorded.params_hash, "seen_again": seen_again, "key": key, "detail": alert.detail,
            "evidence": events,
        });
        if let Some(evidence) = &self.evidence {
            value["books"] = books_json(evidence);
            value["without_books"] = evidence.without_books.clone().into();
        }
        value
    }

    fn print(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let AlertRecord { number, recorded, seen_again, .. } = &self.record;
        let alert = &recorded.alert;
        writeln!(out)?;
        let repeat_text = match seen_again {
            0 => String::new(),
            n => format!(", seen again {n} times"),
        };
        say_to!(*out, "alert {number}: {}, event {}{repeat_text}", utc(alert.ts.0), alert.trigger_seq);
        for (name, value) in alert.detail.as_object().into_iter().flatten() {
            if !matches!(name.as_str(), "seqs" | "positions") {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                say_to!(*out, "    {name} {value}");
            }
        }
        let Some(evidence) = &self.evidence else {
            for event in alert.evidence() {
                let position =
                    event.position.map_or_else(|| "-".to_owned(), |position| format!("@{position}"));
                say_to!(*out, "    event {} at {position}", event.seq);
            }
            return Ok(());
        };
        for line in &evidence.events {
            print_evidence_line(out, line)?;
        }
        print_books(out, alert.trigger_seq, evidence)?;
        Ok(())
    }
}

fn history_line(action: &ActionRecord) -> String {
    let author_text = match &action.author {
        Some(author) if author.user == author.person => format!("{} ({})", author.user, author.role),
        Some(author) => format!("{} ({}, {})", author.user, author.person, author.role),
        None => "ingest".to_owned(),
    };
    let mut line = format!("{:>6}  {}  {author_text}  {}", action.number, utc(action.ts), action.kind.name());
    if let Some(alert) = action.alert {
        line += &format!(" {alert}");
    }
    if let Some(user) = &action.assignee {
        line += &format!(" to {user}");
    }
    if let Some(disposition) = action.disposition {
        line += &format!(" as {disposition}");
    }
    if let Some(state) = action.state {
        line += &format!(", {state}");
    }
    if let Some(text) = &action.text {
        line += &format!(": {text}");
    }
    line
}

const EARLIER_MAX: u64 = 20;
