//! Measurements as tables: for a terminal, and for the docs.

use super::record::Record;
use crate::output::{self, Done, Failure, grouped};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

const HEAD: [&str; 11] = [
    "bench",
    "case",
    "subject",
    "on",
    "threads",
    "ns/op",
    "spread",
    "CPU ns",
    "per s",
    "p50 / p99 / p99.9",
    "ratio",
];

/// A table for a terminal.
pub fn table(records: &[Record]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(HEAD);
    for record in records {
        table.add_row(cells(record));
    }
    table
}

/// Prints the records of a file as a Markdown table.
pub fn print_markdown(file: &Path) -> output::Result {
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).map_err(|e| at(file, 0, &e))?)
    };
    let mut out = output::stdout();
    writeln!(out, "| {} |", HEAD.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(HEAD.len()))?;
    for (n, line) in BufReader::new(input).lines().enumerate() {
        let line = line.map_err(|e| at(file, n, &e))?;
        let record: Record = serde_json::from_str(&line).map_err(|e| at(file, n, &e))?;
        writeln!(out, "| {} |", cells(&record).join(" | "))?;
    }
    out.flush()?;
    Ok(Done::Clean)
}

fn at(file: &Path, line: usize, error: &dyn std::fmt::Display) -> Failure {
    Failure::Error(format!("{}:{}: {error}", file.display(), line + 1))
}

fn cells(r: &Record) -> [String; 11] {
    let on = [r.backing.as_deref(), r.place.as_deref()];
    let latency = r.latency.map_or(String::new(), |l| format!("{} / {} / {}", l.p50_ns, l.p99_ns, l.p999_ns));
    let ratio = match (r.ratio_to_raw, r.ratio_to_alone) {
        (Some(raw), _) => format!("{raw:.2} × raw"),
        (None, Some(alone)) => format!("{alone:.2} × alone"),
        (None, None) => r.bytes_per_row.map_or(String::new(), |b| format!("{b:.1} B a row")),
    };
    [
        r.bench.clone(),
        r.case.clone(),
        r.subject.clone(),
        on.into_iter().flatten().collect::<Vec<_>>().join(", "),
        r.threads.to_string(),
        figure(r.ns_per_op),
        format!("{}–{}", figure(r.min), figure(r.max)),
        figure(r.cpu_ns_per_op),
        grouped(r.ops_per_s as u64),
        latency,
        ratio,
    ]
}

/// Three digits that mean something.
fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Repeats;
    use super::*;

    /// The docs' table is made of these cells; a column too few shifts all figures behind it.
    #[test]
    fn a_row_has_the_cells_of_the_head() {
        let mut repeats = Repeats::default();
        repeats.add(123_456, 1_000);
        let mut record = repeats.record("tape", "rtt", 1_000, 0, String::new());
        record.ratio_to_raw = Some(1.456);
        record.backing = Some("hot".to_owned());
        let expected =
            ["tape", "rtt", "unitape", "hot", "1", "123", "123–123", "1.00", "8,100,052", "", "1.46 × raw"];
        assert_eq!(cells(&record), expected);
        assert_eq!(table(&[record]).row_iter().count(), 1);
    }
}
