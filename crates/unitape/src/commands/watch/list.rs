//! `unitape watch list`.

use super::line::{AlertTable, LeadColumn, key_json, parties_and_subject};
use crate::commands::range_args::{InstrumentArgs, OutputArgs, parse_time_alone};
use crate::commands::read_args::{self, ReadArgs};
use crate::output::{
    self, CommandFailure, CommandOutcome, Destination, RowFormat, csv_text, grouped, note, refuse_name,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use unitape_run::alert_reader::{AlertReader, AlertTapeContent, AlertTapeRecord, NoteRecord};
use unitape_run::tape_content::require_alert_tape;
use unitape_tape::{TapeId, TimeRange};
use unitape_watch::{Alert, RecordedAlert, scenarios};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Directory of the alert tape
    alerts: PathBuf,
    /// Only alerts of this scenario (repeatable)
    #[arg(long, value_name = "ID")]
    scenario: Vec<String>,
    /// Only alerts of this time or later: 2024-03-11, 2024-03-11T14:30:00.5 (UTC), or nanoseconds since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only alerts before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Only alerts with this in their key, such as owner=ACME (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    key: Vec<String>,
    /// Only alerts of this venue (repeatable)
    #[arg(long, value_name = "VENUE")]
    venue: Vec<String>,
    #[command(flatten)]
    instruments: InstrumentArgs,
    /// Print at most N
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> output::Result {
    let filter = AlertFilter::parse(args)?;
    let read = args.read.options();
    output::print_hot_notice(&args.alerts);
    require_alert_tape(&args.alerts, read)?;
    let mut reader = AlertReader::open(&args.alerts, read)?;
    let mut lines = AlertListLines::open(args)?;
    let mut counts = ListCounts::default();
    let end = loop {
        let AlertTapeRecord { number, content } = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        match content {
            AlertTapeContent::Note(note) => {
                note!("unitape: record {number}: {note}");
                lines.write_note(number, &note)?;
            }
            AlertTapeContent::Alert(recorded) => {
                counts.total += 1;
                if filter.has(&recorded.alert) {
                    counts.chosen += 1;
                    if args.limit.is_none_or(|limit| counts.chosen <= limit) {
                        lines.write(number, &recorded)?;
                    }
                }
            }
        }
    };
    // Also the alerts before damage.
    lines.finish()?;
    end?;
    counts.explain(args.limit);
    read_args::finish(reader.reader(), reader.lost_names(), CommandOutcome::Clean)
}

/// The numbers of alerts.
#[derive(Clone, Copy, Debug, Default)]
struct ListCounts {
    total: u64,
    chosen: u64,
}

impl ListCounts {
    /// Prints why no alert, or not every alert, was printed.
    fn explain(self, limit: Option<u64>) {
        let Self { total, chosen } = self;
        match limit {
            _ if total == 0 => note!("unitape: no alerts: the alert tape has none"),
            _ if chosen == 0 => note!("unitape: no alerts: none of the {} alerts fits", grouped(total)),
            Some(limit) if chosen > limit => {
                note!("unitape: --limit left out {} alerts", grouped(chosen - limit));
            }
            _ => {}
        }
    }
}

/// The choice of alerts.
#[derive(Debug)]
struct AlertFilter {
    scenarios: Vec<String>,
    times: TimeRange,
    /// The values that are wanted, by the name in the key.
    key: BTreeMap<String, Vec<String>>,
}

impl AlertFilter {
    fn parse(args: &ListArgs) -> Result<Self, CommandFailure> {
        for id in &args.scenario {
            scenarios::find(id)?;
        }
        let time = |option: &str, text: &Option<String>| {
            text.as_deref().map(|text| parse_time_alone(option, text)).transpose()
        };
        let times = TimeRange { since: time("--since", &args.since)?, until: time("--until", &args.until)? };
        if let (Some(since), Some(until)) = (times.since, times.until)
            && since >= until
        {
            let message = "--since is not before --until: nothing can be between them".to_owned();
            return Err(CommandFailure::Usage(message));
        }
        let mut key: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in &args.key {
            let Some((name, value)) = pair.split_once('=') else {
                let message = format!("--key {pair}: NAME=VALUE is needed, such as owner=ACME");
                return Err(CommandFailure::Usage(message));
            };
            let names = key_names();
            if !names.contains(&name) {
                return Err(refuse_name(name, "name in a key", "names", names).with_subject("--key"));
            }
            key.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        for (name, values) in [("venue", args.venue.clone()), ("instr", args.instruments.names())] {
            if !values.is_empty() {
                key.entry(name.to_owned()).or_default().extend(values);
            }
        }
        Ok(Self { scenarios: args.scenario.clone(), times, key })
    }

    fn has(&self, alert: &Alert) -> bool {
        let has_value = |name: &str, wanted: &[String]| {
            // `owners` is a list. An alert about several owners is about each of them.
            let several = if name == "owner" { alert.key_value("owners") } else { None };
            let Some(value) = alert.key_value(name).or(several) else { return false };
            let list = serde_json::from_str::<Vec<String>>(value).unwrap_or_default();
            wanted.iter().any(|wanted| wanted == value || list.contains(wanted))
        };
        (self.scenarios.is_empty() || self.scenarios.iter().any(|id| *id == alert.scenario))
            && self.times.contains(alert.ts)
            && self.key.iter().all(|(name, wanted)| has_value(name, wanted))
    }
}

/// Returns the names that keys of alerts have, sorted.
fn key_names() -> Vec<&'static str> {
    let forms = scenarios::ALL.iter().flat_map(|entry| &entry.def().key_forms);
    let mut names: Vec<&str> = forms.flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Writes the records of the list.
struct AlertListLines {
    format: RowFormat,
    table: AlertTable,
    text: String,
    has_rows: bool,
    out: Destination,
}

impl AlertListLines {
    fn open(args: &ListArgs) -> Result<Self, CommandFailure> {
        let OutputArgs { json, csv, file } = &args.output;
        let format = RowFormat::from_options(*json, *csv);
        let line_length_max = if file.is_none() { terminal_width() } else { None };
        let mut text = String::new();
        if format == RowFormat::Csv {
            text = format!("{}\n", CSV_COLUMNS.join(","));
        }
        let table = AlertTable::with_header(LeadColumn::Number, line_length_max);
        Ok(Self { format, table, text, has_rows: false, out: Destination::open(file.as_deref())? })
    }

    fn write(&mut self, number: u64, recorded: &RecordedAlert) -> Result<(), CommandFailure> {
        self.has_rows = true;
        match self.format {
            RowFormat::Table => self.table.add(&mut self.text, number.to_string(), &recorded.alert),
            RowFormat::Json => {
                self.text += &recorded_json(number, recorded).to_string();
                self.text.push('\n');
            }
            RowFormat::Csv => {
                let cells = csv_cells(number, recorded);
                let cells = cells.iter().map(|cell| csv_text(cell)).collect::<Vec<_>>();
                self.text += &cells.join(",");
                self.text.push('\n');
            }
        }
        self.flush()
    }

    fn write_note(&mut self, number: u64, note: &NoteRecord) -> Result<(), CommandFailure> {
        if self.format == RowFormat::Json {
            let detail: Value = serde_json::from_str(&note.detail).unwrap_or(Value::Null);
            let object = json!({
                "number": number, "ts": note.ts.0, "kind": "control", "action": note.action, "reason": note.reason,
                "detail": detail,
            });
            self.text += &format!("{object}\n");
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), CommandFailure> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), CommandFailure> {
        // A header without a row says nothing to a person.
        if self.format == RowFormat::Table && self.has_rows {
            self.table.end_page(&mut self.text);
        }
        self.flush()?;
        self.out.finish()
    }
}

/// Returns the width of the terminal that stdout is, in characters.
fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Returns a recorded alert as JSON: what `watch replay --json` prints, with its number and its origin.
pub fn recorded_json(number: u64, recorded: &RecordedAlert) -> Value {
    let RecordedAlert { alert, source_tape, rule_version, params_hash } = recorded;
    json!({
        "number": number, "scenario": alert.scenario, "ts": alert.ts.0, "trigger_seq": alert.trigger_seq,
        "key": key_json(alert), "detail": alert.detail,
        "trigger_position": alert.position.map(|position| position.0),
        "source_tape": source_tape.map(|id| TapeId(id).to_string()), "rule_version": rule_version,
        "params_hash": params_hash,
    })
}

fn csv_cells(number: u64, recorded: &RecordedAlert) -> [String; CSV_COLUMNS.len()] {
    let RecordedAlert { alert, source_tape, rule_version, params_hash } = recorded;
    let (who, what) = parties_and_subject(alert);
    [
        number.to_string(),
        alert.ts.0.to_string(),
        alert.scenario.to_string(),
        who,
        what,
        alert.trigger_seq.to_string(),
        alert.position.map(|position| position.0.to_string()).unwrap_or_default(),
        source_tape.map(|id| TapeId(id).to_string()).unwrap_or_default(),
        rule_version.clone().unwrap_or_default(),
        params_hash.clone().unwrap_or_default(),
        key_json(alert).to_string(),
        alert.detail.to_string(),
    ]
}

const CSV_COLUMNS: [&str; 12] = [
    "number",
    "ts",
    "scenario",
    "who",
    "what",
    "trigger_seq",
    "trigger_position",
    "source_tape",
    "rule_version",
    "params_hash",
    "key",
    "detail",
];
