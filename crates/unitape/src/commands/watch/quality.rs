//! `unitape watch quality`: the report on values that events lack.

use super::ScenarioArgs;
use super::replay::{TapeObserver, finish_replay, open_lines, replay_part, scenario_count};
use crate::commands::range_args::{OutputArgs, SelectionArgs};
use crate::commands::read_args::ReadArgs;
use crate::output::{
    self, CommandFailure, CommandOutcome, Destination, RowFormat, csv_text, escape_line, grouped, note,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use unitape_model::{DefinitionTable, Dictionary, Event, EventField, EventKind, EventValue};
use unitape_query::EventSelection;
use unitape_watch::{
    Alert, MissingCounts, MissingValue, ReplayObserver, ReplaySummary, ScenarioSelection, replay_cases,
};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schema", |arg| arg.hide(true)),
    mut_arg("limit", |arg| arg.hide(true)),
    mut_arg("csv", |arg| arg.help("Print as CSV, with a header"))
)]
pub struct QualityArgs {
    /// EVENTS.jsonl, `-` for stdin, or the directory of a tape
    input: PathBuf,
    #[command(flatten)]
    scenarios: ScenarioArgs,
    #[command(flatten)]
    select: SelectionArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: QualityArgs) -> output::Result {
    let QualityArgs { input, scenarios, select, output, read } = args;
    if !select.schema.is_empty() || select.limit.is_some() {
        let message = "--schema and --limit choose rows of events, and the report has none";
        return Err(CommandFailure::Usage(message.to_owned()));
    }
    let selection = scenarios.parse()?;
    if !input.is_dir() {
        let report = report_on_lines(&input, &selection, select.is_empty())?;
        report.write(&output)?;
        return Ok(CommandOutcome::Clean);
    }
    output::print_hot_notice(&input);
    report_on_tape(&input, &selection, &select.parse()?, read, &output)
}

fn report_on_lines(
    path: &Path,
    selection: &ScenarioSelection,
    selects_all: bool,
) -> Result<QualityReport, CommandFailure> {
    let input = open_lines(path, selects_all)?;
    let mut counts = EventCounts::default();
    let summary = replay_cases(input, &path.display().to_string(), selection, &[], &mut counts)?;
    Ok(QualityReport::new(&summary, &counts, |_| EventSource::default()))
}

fn report_on_tape(
    dir: &Path,
    selection: &ScenarioSelection,
    events: &EventSelection,
    read: ReadArgs,
    output: &OutputArgs,
) -> output::Result {
    let mut counts = EventCounts::default();
    let surveillance = replay_part(dir, selection, events, read, &mut counts)?;
    let definitions = &surveillance.watch().names;
    let report =
        QualityReport::new(&surveillance.summary(), &counts, |id| EventSource::find(id, definitions));
    report.write(output)?;
    finish_replay(&surveillance, dir)
}

/// The number of events of each kind and source.
#[derive(Debug, Default)]
struct EventCounts(HashMap<(EventKind, u32), u64>);

impl EventCounts {
    fn add(&mut self, event: &Event<'_>) {
        *self.0.entry((event.kind(), event.source())).or_default() += 1;
    }
}

impl TapeObserver for EventCounts {
    #[inline]
    fn on_event(&mut self, event: &Event<'_>, _: u64, _: &DefinitionTable) {
        self.add(event);
    }

    fn on_alert(&mut self, _: &Alert) -> std::io::Result<()> {
        Ok(())
    }
}

impl ReplayObserver for EventCounts {
    fn on_case(&mut self, _: &str, _: Option<&str>) -> std::io::Result<()> {
        Ok(())
    }

    fn on_event(&mut self, event: &Event<'_>, _: u64, _: &Dictionary) -> std::io::Result<()> {
        self.add(event);
        Ok(())
    }

    fn on_alert(&mut self, _: &Alert, _: Option<&str>) -> std::io::Result<()> {
        Ok(())
    }
}

/// The origin of events: empty for a file, which has no feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct EventSource {
    feed: String,
    format: String,
    /// Name and hash of the mapping; empty for a format without a mapping.
    mapping: String,
}

impl EventSource {
    fn find(id: u32, definitions: &DefinitionTable) -> Self {
        let Some(definition) = definitions.source(id) else { return Self::default() };
        let text =
            |field| match Event::new(&definition.frame).map(|e| e.field(field, &mut [0; 36]).map(text_of)) {
                Some(Some(text)) => text,
                _ => String::new(),
            };
        Self {
            feed: definition.feed.clone(),
            format: text(EventField::Format),
            mapping: text(EventField::Mapping),
        }
    }

    /// Returns the short name of the mapping or, without one, of the format.
    fn mapping_name(&self) -> &str {
        let name = self.mapping.split('@').next().unwrap_or_default();
        if name.is_empty() { &self.format } else { name }
    }
}

fn text_of(value: EventValue<'_>) -> String {
    match value {
        EventValue::Text(text) => text.to_owned(),
        _ => String::new(),
    }
}

/// A value that events of one kind and one origin lack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QualityKey {
    value: MissingValue,
    kind: EventKind,
    source: EventSource,
}

/// The report: the missing values, the most frequent first.
#[derive(Debug)]
struct QualityReport {
    rows: Vec<QualityRow>,
    events: u64,
    scenarios: usize,
    /// Events that are counted in no row.
    uncounted: u64,
}

#[derive(Debug)]
struct QualityRow {
    key: QualityKey,
    /// The events that lack the value, by scenario. Every scenario passes over its own events.
    by_scenario: BTreeMap<&'static str, u64>,
    /// All events of this kind and origin.
    of_kind: u64,
}

impl QualityRow {
    /// Returns the number of events that lack the value: at least as many as one scenario has met.
    fn events(&self) -> u64 {
        self.by_scenario.values().copied().max().unwrap_or(0)
    }
}

impl QualityReport {
    fn new(summary: &ReplaySummary, counts: &EventCounts, source: impl Fn(u32) -> EventSource) -> Self {
        let mut of_kind: BTreeMap<(EventKind, EventSource), u64> = BTreeMap::new();
        for ((kind, id), count) in &counts.0 {
            *of_kind.entry((*kind, source(*id))).or_default() += count;
        }
        let mut rows: BTreeMap<QualityKey, BTreeMap<&'static str, u64>> = BTreeMap::new();
        let mut uncounted = 0;
        for ((scenario, _), missing) in summary.metrics.iter().zip(&summary.missing) {
            uncounted += uncounted_in(missing);
            for (missing, count) in missing.counts() {
                let key =
                    QualityKey { value: missing.value, kind: missing.kind, source: source(missing.source) };
                *rows.entry(key).or_default().entry(scenario).or_default() += count;
            }
        }
        let row = |(key, by_scenario): (QualityKey, _)| {
            let of_kind = of_kind.get(&(key.kind, key.source.clone())).copied().unwrap_or(0);
            QualityRow { key, by_scenario, of_kind }
        };
        let mut rows: Vec<QualityRow> = rows.into_iter().map(row).collect();
        // The order of the keys stays among equal numbers.
        rows.sort_by_key(|row| std::cmp::Reverse(row.events()));
        Self { rows, events: summary.events, scenarios: summary.metrics.len(), uncounted }
    }

    fn write(&self, output: &OutputArgs) -> Result<(), CommandFailure> {
        let mut out = Destination::open(output.file.as_deref())?;
        match RowFormat::from_options(output.json, output.csv) {
            RowFormat::Json => {
                for row in &self.rows {
                    writeln!(out, "{}", row_json(row))?;
                }
                writeln!(out, "{}", json!({"totals": {"events": self.events, "scenarios": self.scenarios}}))?;
            }
            RowFormat::Csv => {
                writeln!(out, "missing,kind,feed,format,mapping,events,of_kind,scenarios")?;
                for row in &self.rows {
                    let QualityKey { value, kind, source } = &row.key;
                    let cells = [&value.name(), kind.name(), &source.feed, &source.format, &source.mapping];
                    let cells: Vec<_> = cells.into_iter().map(|cell| csv_text(cell)).collect();
                    let names: Vec<&str> = row.by_scenario.keys().copied().collect();
                    let (cells, names) = (cells.join(","), names.join(" "));
                    writeln!(out, "{cells},{},{},{names}", row.events(), row.of_kind)?;
                }
            }
            RowFormat::Table => self.write_table(&mut out)?,
        }
        out.finish()?;
        if self.uncounted > 0 {
            let count = grouped(self.uncounted);
            note!("unitape: {count} missing values are in no row: there are too many kinds and sources");
        }
        if self.rows.is_empty() {
            note!(
                "unitape: no missing values: {} over {} events",
                scenario_count(self.scenarios),
                grouped(self.events)
            );
        }
        Ok(())
    }

    fn write_table(&self, out: &mut impl Write) -> std::io::Result<()> {
        let header = ["missing", "kind", "feed", "mapping", "events", "of", "share", "scenarios"];
        let mut lines = vec![header.map(str::to_owned)];
        lines.extend(self.rows.iter().map(table_cells));
        let widths: Vec<usize> = (0..header.len())
            .map(|n| lines.iter().map(|cells| cells[n].chars().count()).max().unwrap_or(0))
            .collect();
        // A header without a row says nothing to a person.
        for cells in lines.iter().filter(|_| !self.rows.is_empty()) {
            let padded = cells.iter().zip(&widths).enumerate().map(|(n, (cell, width))| match n {
                4..=6 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
            writeln!(out, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Returns the number of missing values that have no key of their own.
fn uncounted_in(missing: &MissingCounts) -> u64 {
    missing.total() - missing.counts().iter().map(|(_, count)| count).sum::<u64>()
}

fn row_json(row: &QualityRow) -> Value {
    let QualityKey { value, kind, source } = &row.key;
    let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let by_scenario: Map<String, Value> =
        row.by_scenario.iter().map(|(id, count)| ((*id).to_owned(), (*count).into())).collect();
    json!({
        "missing": value.name(), "kind": kind.name(), "feed": text(&source.feed), "format": text(&source.format),
        "mapping": text(&source.mapping), "events": row.events(), "of_kind": row.of_kind, "scenarios": by_scenario,
    })
}

fn table_cells(row: &QualityRow) -> [String; 8] {
    let QualityKey { value, kind, source } = &row.key;
    let events = row.events();
    let share = match row.of_kind {
        0 => String::new(),
        of_kind => format!("{:.1} %", events as f64 * 100.0 / of_kind as f64),
    };
    let names: Vec<&str> = row.by_scenario.keys().copied().collect();
    let scenarios = match names.len() {
        0..=SCENARIOS_MAX => names.join(" "),
        count => format!("{} and {} more", names[..SCENARIOS_MAX].join(" "), count - SCENARIOS_MAX),
    };
    let text = |text: &str| if text.is_empty() { "-".to_owned() } else { escape_line(text).into_owned() };
    [
        value.name(),
        kind.name().to_owned(),
        text(&source.feed),
        text(source.mapping_name()),
        grouped(events),
        grouped(row.of_kind),
        share,
        scenarios,
    ]
}

/// The greatest number of scenarios that a line of the table names.
const SCENARIOS_MAX: usize = 3;
