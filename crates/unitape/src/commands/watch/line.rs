//! An alert as a line of a table: time, scenario, parties, subject, event, and the values of its detail.

use super::detail::telling_values;
use crate::commands::tape::utc;
use crate::output::escape_line;
use serde_json::Value;
use std::fmt::Write as _;
use unitape_case::names_party;
use unitape_watch::{Alert, ScenarioSelection};

/// What stands before the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadColumn {
    /// The number on the alert tape.
    Number,
    /// The case of a file with cases, if there is one: `WASH-P1: `.
    Case,
}

/// The cells of a line.
#[derive(Clone, Debug)]
struct AlertCells {
    lead: String,
    columns: [String; COLUMNS],
    values: String,
}

/// Writes alerts as lines whose columns are as wide as those of the lines before, or wider.
#[derive(Clone, Debug)]
pub struct AlertTable {
    lead: LeadColumn,
    lead_width: usize,
    widths: [usize; COLUMNS],
    /// The length at which a line is cut, in characters.
    line_length_max: Option<usize>,
    /// The lines that wait for the widths of their page.
    page: Vec<AlertCells>,
    page_lines: usize,
}

/// Writes each alert of a watch as a line at once, as JSON or of a table.
#[derive(Clone, Debug)]
pub struct AlertPrinter {
    json: bool,
    table: AlertTable,
}

impl AlertTable {
    /// Begins a table with a header, whose columns are set by pages of 1,000 lines. A line is cut at this length.
    pub fn with_header(lead: LeadColumn, line_length_max: Option<usize>) -> Self {
        let mut table = Self::new(lead, PAGE_LINES);
        table.line_length_max = line_length_max;
        table.page.push(AlertCells {
            lead: "number".to_owned(),
            columns: ["time", "scenario", "who", "what", "event"].map(str::to_owned),
            values: "detail".to_owned(),
        });
        table
    }

    fn new(lead: LeadColumn, page_lines: usize) -> Self {
        let (lead_width, widths, page) = (0, [0; COLUMNS], Vec::new());
        Self { lead, lead_width, widths, line_length_max: None, page, page_lines }
    }

    /// Adds an alert. Appends the lines of a full page to `out`.
    pub fn add(&mut self, out: &mut String, lead: String, alert: &Alert) {
        self.page.push(AlertCells::new(lead, alert));
        if self.page.len() >= self.page_lines {
            self.end_page(out);
        }
    }

    /// Appends the lines that wait to `out`.
    pub fn end_page(&mut self, out: &mut String) {
        for cells in &self.page {
            self.lead_width = self.lead_width.max(length(&cells.lead));
            for (width, column) in self.widths.iter_mut().zip(&cells.columns) {
                *width = length(column).max(*width);
            }
        }
        for cells in std::mem::take(&mut self.page) {
            self.write_line(out, &cells);
        }
    }

    fn write_line(&self, out: &mut String, cells: &AlertCells) {
        let mut line = String::new();
        // Writing to a String cannot fail.
        _ = match self.lead {
            LeadColumn::Number => write!(line, "{:>1$}  ", cells.lead, self.lead_width),
            LeadColumn::Case => write!(line, "{:1$}", cells.lead, self.lead_width),
        };
        for (column, width) in cells.columns.iter().zip(self.widths) {
            _ = write!(line, "{column:width$}  ");
        }
        line += &cells.values;
        let end = line.trim_end().len();
        line.truncate(end);
        if let Some(max) = self.line_length_max
            && let Some((cut, _)) = line.char_indices().nth(max)
        {
            line.truncate(cut);
        }
        *out += &line;
        out.push('\n');
    }
}

impl AlertPrinter {
    /// Makes a printer of the alerts of these scenarios.
    pub fn new(selection: &ScenarioSelection, json: bool) -> Self {
        let mut table = AlertTable::new(LeadColumn::Case, 1);
        let names = selection.scenarios.iter().map(String::len);
        let all_names = || unitape_watch::scenarios::ALL.iter().map(|entry| entry.id.len()).max();
        // Lines are printed at once, so the widths are guessed: a table that widens with each line is no table.
        table.widths =
            [0, names.max().or_else(all_names).unwrap_or(0), PARTIES_WIDTH, SUBJECT_WIDTH, EVENT_WIDTH];
        Self { json, table }
    }

    /// Appends the line of an alert, of this case if it has one.
    pub fn write(&mut self, line: &mut Vec<u8>, alert: &Alert, case: Option<&str>) {
        if self.json {
            alert.write_json(line, case);
            line.push(b'\n');
        } else {
            let mut text = String::new();
            self.table.add(&mut text, case.map(|case| format!("{case}: ")).unwrap_or_default(), alert);
            line.extend_from_slice(text.as_bytes());
        }
    }
}

impl AlertCells {
    fn new(lead: String, alert: &Alert) -> Self {
        let (parties, subject) = parties_and_subject(alert);
        let columns = [
            utc(alert.ts.0),
            alert.scenario.to_string(),
            parties,
            subject,
            format!("event {}", alert.trigger_seq),
        ];
        Self {
            lead: escape_line(&lead).into_owned(),
            columns: columns.map(|text| escape_line(&text).into_owned()),
            values: escape_line(&telling_values(&alert.detail)).into_owned(),
        }
    }
}

/// Returns the parties in the key of an alert, and the rest of the key, as text; `-` for nothing.
pub fn parties_and_subject(alert: &Alert) -> (String, String) {
    let text = |is_of_party: bool| {
        let names = alert.key.iter().filter(|(name, _)| names_party(name) == is_of_party);
        let parts: Vec<String> =
            names.map(|(name, value)| format!("{name} {}", key_value_text(value))).collect();
        if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
    };
    (text(true), text(false))
}

/// Returns a value of a key for people: `A + B` for a list.
pub fn key_value_text(value: &str) -> String {
    match serde_json::from_str::<Vec<String>>(value) {
        Ok(list) => list.join(" + "),
        Err(_) => value.to_owned(),
    }
}

/// Returns the key of an alert as a JSON object.
pub fn key_json(alert: &Alert) -> Value {
    let value =
        |(name, value): &(std::borrow::Cow<'_, str>, String)| (name.to_string(), Value::from(value.as_str()));
    Value::Object(alert.key.iter().map(value).collect())
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The columns between the lead and the values.
const COLUMNS: usize = 5;
const PAGE_LINES: usize = 1_000;
const PARTIES_WIDTH: usize = 14;
const SUBJECT_WIDTH: usize = 40;
const EVENT_WIDTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use unitape_model::UnixNanos;

    fn alert(scenario: &'static str, key: &[(&'static str, &str)], detail: Value) -> Alert {
        let key = key.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect();
        Alert { scenario: scenario.into(), ts: UnixNanos(1_000), trigger_seq: 7, position: None, key, detail }
    }

    fn samples() -> [Alert; 2] {
        [
            alert("luld", &[("instr", "A\u{1b}")], json!({"reason": "pause", "seqs": [7]})),
            alert("prearranged", &[("owners", r#"["B","C"]"#), ("instr", "VOD")], json!({"repeats": 3})),
        ]
    }

    #[test]
    fn columns_are_aligned_within_a_page_and_what_a_feed_says_is_escaped() {
        let mut table = AlertTable::with_header(LeadColumn::Number, Some(90));
        let mut out = String::new();
        for (number, alert) in samples().iter().enumerate() {
            table.add(&mut out, (99 + number).to_string(), alert);
        }
        assert_eq!(out, "");
        table.end_page(&mut out);
        expect_test::expect![[r#"
            number  time                           scenario     who           what         event    de
                99  1970-01-01 00:00:00.000001000  luld         -             instr A\x1b  event 7  re
               100  1970-01-01 00:00:00.000001000  prearranged  owners B + C  instr VOD    event 7  re
        "#]]
        .assert_eq(&out);
    }

    /// Fails if a live line waits for later lines, or if the lines of a case lose its id.
    #[test]
    fn a_printer_prints_at_once() {
        let mut printer = AlertPrinter::new(&ScenarioSelection::of(&["prearranged"]), false);
        let mut line = Vec::new();
        for alert in &samples() {
            let before = line.len();
            printer.write(&mut line, alert, Some("P1"));
            assert!(line[before..].starts_with(b"P1: 1970-01-01 "));
        }
        expect_test::expect![[r#"
            P1: 1970-01-01 00:00:00.000001000  luld         -               instr A\x1b                               event 7   reason pause
            P1: 1970-01-01 00:00:00.000001000  prearranged  owners B + C    instr VOD                                 event 7   repeats 3
        "#]]
        .assert_eq(std::str::from_utf8(&line).unwrap());
    }
}
