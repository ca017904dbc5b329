//! Measurements as tables: for a terminal, and for the docs.

use crate::output::{self, CommandFailure, CommandOutcome, grouped, open_file, say_to};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use unitape_bench::record::BenchRecord;
use unitape_bench::scaling::ScalingModel;

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
    "p50 / p99 / p99.9 / p99.99 / max",
    "ratio",
];

/// Makes a table for a terminal.
pub fn table(records: &[BenchRecord]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(HEAD);
    for record in records {
        table.add_row(record_cells(record));
    }
    table
}

/// Prints the records of a file as a Markdown table.
pub fn print_markdown(file: &Path) -> output::Result {
    let input: Box<dyn Read> =
        if file.as_os_str() == "-" { Box::new(std::io::stdin().lock()) } else { Box::new(open_file(file)?) };
    let mut out = output::stdout();
    say_to!(out, "| {} |", HEAD.join(" | "));
    say_to!(out, "|{}", "---|".repeat(HEAD.len()));
    for (n, line) in BufReader::new(input).lines().enumerate() {
        let with_location =
            |failure: CommandFailure| failure.with_subject(format_args!("{}:{}", file.display(), n + 1));
        let line = line.map_err(|e| with_location(e.into()))?;
        let record: BenchRecord =
            serde_json::from_str(&line).map_err(|e| with_location(CommandFailure::Data(e.to_string())))?;
        say_to!(out, "| {} |", record_cells(&record).join(" | "));
    }
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

fn record_cells(r: &BenchRecord) -> [String; 11] {
    let on = [r.backing.as_deref(), r.place.as_deref(), r.pair.as_deref()];
    let rate = r.rate_per_s.map(|rate| format!("{} k/s", grouped(rate / 1000)));
    let case = [Some(r.case.as_str()), rate.as_deref(), r.condition.as_deref(), r.tuned.as_deref()];
    let latency = r.latency.map_or(String::new(), |l| {
        let points = [l.p50_ns, l.p99_ns, l.p999_ns, l.p9999_ns, l.max_ns];
        points.map(|ns| ns.to_string()).join(" / ")
    });
    [
        r.bench.clone(),
        case.into_iter().flatten().collect::<Vec<_>>().join(", "),
        r.subject.clone(),
        on.into_iter().flatten().collect::<Vec<_>>().join(", "),
        r.threads.to_string(),
        figure_text(r.ns_per_op),
        format!("{}–{}", figure_text(r.min), figure_text(r.max)),
        figure_text(r.cpu_ns_per_op),
        grouped(r.ops_per_s as u64),
        latency,
        ratios_text(r),
    ]
}

/// Writes all ratios of a record. The ratio of the 99.99th percentiles is in brackets.
fn ratios_text(r: &BenchRecord) -> String {
    let tail = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!(" ({ratio:.2})"));
    let ratio_texts = [
        r.ratio_to_raw.map(|raw| format!("{raw:.2}{} × raw", tail(r.ratio_p9999_to_raw))),
        r.ratio_to_alone
            .map(|alone_ratio| format!("{alone_ratio:.2}{} × alone", tail(r.ratio_p9999_to_alone))),
        r.ratio_to_disk.map(|disk| format!("{disk:.2} × disk")),
        r.bytes_per_row.map(|bytes| format!("{bytes:.1} B a row")),
        r.tape_bytes_per_op.map(|bytes| format!("{bytes:.0} B on tape")),
        r.serial_ns_per_op.map(|ns| format!("{ns:.1} ns serial")),
        r.model.as_ref().map(prediction_text),
    ];
    ratio_texts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Writes a model's prediction for more workers.
fn prediction_text(model: &ScalingModel) -> String {
    let each: Vec<_> =
        model.predicted_ns.iter().map(|(w, ns)| format!("{} at {w}", figure_text(*ns))).collect();
    format!("model: {} ns", each.join(", "))
}

/// Writes a number with three significant digits.
fn figure_text(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_bench::record::RepeatTimes;

    /// Fails if a row has another number of cells than the head, because all later figures would shift in the docs'
    /// table.
    #[test]
    fn a_row_has_the_cells_of_the_head() {
        let mut repeats = RepeatTimes::default();
        repeats.add(123_456, 1_000);
        let mut record = repeats.record("tape", "rtt", 1_000, 0, String::new());
        record.ratio_to_raw = Some(1.456);
        record.backing = Some("hot".to_owned());
        let expected =
            ["tape", "rtt", "unitape", "hot", "1", "123", "123–123", "1.00", "8,100,052", "", "1.46 × raw"];
        assert_eq!(record_cells(&record), expected);
        assert_eq!(table(&[record.clone()]).row_iter().count(), 1);

        record.ratio_p9999_to_raw = Some(20.0);
        record.ratio_to_alone = Some(1.02);
        record.ratio_to_disk = Some(0.85);
        (record.pair, record.rate_per_s) = (Some("far".to_owned()), Some(1_000_000));
        record.condition = Some("unloaded".to_owned());
        let cells = record_cells(&record);
        assert_eq!(cells[1], "rtt, 1,000 k/s, unloaded");
        assert_eq!(cells[3], "hot, far");
        assert_eq!(cells[10], "1.46 (20.00) × raw, 1.02 × alone, 0.85 × disk");
        record = repeats.record("fix", "orders-to-tape", 1_000, 0, String::new());
        let predicted_ns = [(1, 400.0), (64, 31.25)].into();
        record.model = Some(ScalingModel { predicted_ns, ..ScalingModel::default() });
        assert_eq!(ratios_text(&record), "model: 400 at 1, 31.2 at 64 ns");
    }
}
