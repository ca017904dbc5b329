//! `unitape bench` and `unitape doctor`: the fields of the contract, and what makes them fail.

use crate::common::binary;

use serde_json::{Map, Value};
use std::process::{Command, Output};

fn unitape(arguments: &[&str]) -> Output {
    Command::new(binary::binary()).args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Map<String, Value>> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const TAPE_CASES: [&str; 12] = [
    "raw",
    "rtt",
    "rtt-64",
    "rtt-rate",
    "rtt-load",
    "one-way",
    "sustained",
    "recorder-behind",
    "readers1",
    "readers4",
    "readers20",
    "isolation",
];

/// `cargo xtask instructions` counts between these calls: without them, or with a number that is none of the repeat's, its
/// figure is of something else.
#[test]
fn marks_are_printed_on_request_alone() {
    let cases = ["farm/empty", "sim/events", "itch/events"];
    let of = |options: &[&str]| {
        let output = unitape(&[&["bench", "--quick", "--json"], options, &cases[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        lines(&output)
    };
    let records = of(&["--marks"]);
    assert_eq!(records.len(), 9);
    let mut last = None;
    for record in &records {
        let (from, operations) = (record["marks"]["from"].as_u64(), record["marks"]["operations"].as_u64());
        assert!(from > last, "{record:?}");
        last = from;
        // The farm's repeats, and one that warms up, are in one stretch.
        let repeats = if record["bench"] == "farm" { 3 } else { 1 };
        assert_eq!(operations, record["count"].as_u64().map(|count| count * repeats), "{record:?}");
    }
    assert!(of(&[]).iter().all(|record| !record.contains_key("marks")));
    assert_eq!(unitape(&["bench", "--marks", "sim"]).status.code(), Some(2), "nobody would see them");
}

/// A small case of each bench. `UNITAPE_DEEP` asks for all cases, as `cargo xtask deep` does: these run for minutes.
const SMALL: [&str; 17] = [
    "tape/raw",
    "tape/rtt",
    "farm/empty",
    "fix/jse",
    "fast/moex2521",
    "fixed/taq",
    "csv/taq",
    "swift/typed",
    "itch/events",
    "iso20022/pacs008",
    "store/size",
    "watch/otr",
    "watch/alert-latency",
    "cases/alert-to-case",
    "serve/get",
    "book/flow",
    "sim/frames",
];

/// Scripts that draw figures read these fields; one that is missing, or a string where a number was, breaks them.
#[test]
fn every_measurement_has_the_fields_of_the_contract() {
    let is_deep = std::env::var_os("UNITAPE_DEEP").is_some();
    let names: &[&str] = if is_deep { &[] } else { &SMALL };
    let output = unitape(&[&["bench"], names, &["--quick", "--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = lines(&output);
    for name in names {
        let (bench, case) = name.split_once('/').unwrap();
        assert!(records.iter().any(|r| r["bench"] == bench && r["case"] == case), "{name}");
    }
    records.iter().for_each(has_the_fields_of_the_contract);
    if is_deep {
        every_case_is_there(&records);
    }
}

fn has_the_fields_of_the_contract(record: &Map<String, Value>) {
    let shown = format!("{record:?}");
    for name in ["bench", "case", "subject", "method"] {
        assert!(record[name].as_str().is_some_and(|s| !s.is_empty()), "{name}: {shown}");
    }
    for name in ["threads", "count", "repeats"] {
        assert!(record[name].as_u64().is_some_and(|n| n > 0), "{name}: {shown}");
    }
    for name in ["ns_per_op", "min", "max", "cpu_ns_per_op", "ops_per_s", "mb_per_s"] {
        assert!(record[name].as_f64().is_some_and(|n| n > 0.0), "{name}: {shown}");
    }
    let ns = |name: &str| record[name].as_f64().unwrap();
    assert!(ns("min") <= ns("ns_per_op") && ns("ns_per_op") <= ns("max"), "{shown}");
    for name in ["input_sha256", "output_sha256"] {
        let hash = |s: &str| s.len() == 64 && s.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(record[name].is_null() || record[name].as_str().is_some_and(hash), "{name}: {shown}");
    }
    let case = record["case"].as_str().unwrap();
    let latencies = ["recorder-behind", "isolation", "alert-latency", "alert-to-case"].contains(&case)
        || case.starts_with("rtt");
    if case == "raw" || latencies {
        let names = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"];
        let points: Vec<u64> = names.map(|name| record[name].as_u64().unwrap()).to_vec();
        assert!(points.is_sorted() && points[0] > 0, "{shown}");
    }
    // The others are compared with themselves, undisturbed.
    if case.starts_with("rtt") {
        // Zero where something stopped the control for so long that nothing is left when it is rounded.
        for name in ["ratio_to_raw", "ratio_p9999_to_raw"] {
            assert!(record[name].as_f64().is_some_and(|r| r >= 0.0), "{name}: {shown}");
        }
    }
    if record["bench"] == "tape" {
        assert!(record["pair"] == "near" || record["pair"] == "far", "{shown}");
        if case != "raw" {
            assert_eq!(record["payload_bytes"], if case == "rtt-64" { 56 } else { 100 }, "{shown}");
            assert_eq!(record["input_sha256"], record["output_sha256"], "{shown}");
            let back_to_back = !["recorder-behind", "isolation"].contains(&case);
            assert_eq!(
                back_to_back,
                record.get("raw_p50_ns").is_some_and(|ns| ns.as_u64() > Some(0)),
                "{shown}"
            );
        }
    }
}

fn every_case_is_there(records: &[Map<String, Value>]) {
    let has = |bench: &str, case: &str, backing: Option<&str>, threads: u64| {
        records.iter().any(|r| {
            r["bench"] == bench
                && r["case"] == case
                && backing.is_none_or(|b| r["backing"] == b)
                && r["threads"] == threads
        })
    };
    for backing in ["hot", "file"] {
        for case in TAPE_CASES {
            let wanted = case != "recorder-behind" || backing == "hot";
            assert!(!wanted || has("tape", case, Some(backing), 2), "tape {case} {backing}");
        }
    }
    // Each compared case has its counterpart in the records.
    let with = |case: &str, condition: &str| {
        let found =
            |r: &&Map<String, Value>| r["case"] == case && r.get("condition").is_some_and(|c| c == condition);
        assert!(records.iter().any(|r| found(&r)), "{case} {condition}");
    };
    ["unloaded", "beside 1 M/s", "beside 4 M/s"].into_iter().for_each(|c| with("rtt-load", c));
    ["undisturbed", "stopped"].into_iter().for_each(|c| with("recorder-behind", c));
    ["alone", "tail", "stall", "crash", "scan"].into_iter().for_each(|c| with("isolation", c));
    ["memory ready", "made on the way", "helpers anywhere"].into_iter().for_each(|c| with("readers20", c));
    ["helpers in turn with all", "helpers wait (nice 19)"].into_iter().for_each(|c| with("one-way", c));
    for rate in [100_000, 500_000, 1_000_000] {
        assert!(records.iter().any(|r| r["case"] == "rtt-rate" && r["rate_per_s"] == rate), "{rate}");
    }
    for threads in [1, 2] {
        assert!(has("farm", "empty", None, threads) && has("fix", "orders-to-tape", None, threads));
        assert!(has("swift", "to-tape", None, threads));
    }
    assert!(has("iso20022", "pacs008", None, 1));
    for case in ["ingest", "scan", "size"] {
        assert!(has("store", case, None, 1), "store {case}");
    }
    let size =
        |r: &&Map<String, Value>| r["case"] == "size" && r["bytes_per_row"].as_f64().is_some_and(|b| b > 1.0);
    assert_eq!(records.iter().filter(size).count(), 1);
    assert!(has("fixed", "taq", None, 1) && has("fixed", "taq-to-tape", None, 2));
    assert!(has("fix", "orders", None, 1) && has("fix", "jse", None, 1) && has("swift", "typed", None, 1));
    assert!(["otr", "wash", "spoofing", "three"].iter().all(|case| has("watch", case, None, 1)));
    assert!(has("watch", "alert-latency", None, 3) && has("cases", "alert-to-case", None, 3));
    assert!(has("serve", "local", None, 1) && has("serve", "get", None, 2));
    for case in ["complex30000", "moex2521", "complex30000-half", "moex2521-half", "handler"] {
        assert!(has("fast", case, None, 1), "fast {case}");
    }
    assert!(has("fast", "book-latency", None, 2));
    assert!(has("book", "flow", None, 1) && has("book", "deep", None, 1));
    assert!(has("sim", "events", None, 1) && has("sim", "frames", None, 1));
}

/// A table that was edited by hand, or left when its record was made again, shows figures that nobody measured.
#[test]
fn the_tables_of_the_page_are_those_of_their_records() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/bench.md")).unwrap();
    let mut tables = 0;
    for part in page.split("<!-- figures: ").skip(1) {
        let (record, rest) = part.split_once(" -->\n").unwrap();
        let (table, _) = rest.split_once("<!-- end -->").unwrap();
        let output = unitape(&["bench", "--render", root.join(record).to_str().unwrap()]);
        assert!(output.status.success(), "{record}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(table.trim_end(), String::from_utf8(output.stdout).unwrap().trim_end(), "{record}");
        tables += 1;
    }
    assert!(tables >= 8, "{tables} tables");
}

/// The README shows five figures of the page; one that is mended in one place only is wrong in the other.
#[test]
fn the_figures_of_the_readme_are_in_the_summary_of_the_page() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let between = |path: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        text.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned()
    };
    let summary = between("docs/bench.md", "## Summary", "\n## ");
    let numbers: Vec<&str> = numbers(&summary).collect();
    let rows = between("README.md", "## Speed", "\n## ");
    let mut figures = 0;
    for row in rows.lines().filter(|row| row.starts_with("| ") && row.contains(char::is_numeric)) {
        for figure in self::numbers(row) {
            assert!(numbers.contains(&figure), "{figure} of the README is not in the page's summary: {row}");
            figures += 1;
        }
    }
    assert!(figures >= 10, "{figures} figures");
}

/// The numbers in a text, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let separates = |c: char| !c.is_ascii_digit() && c != '.' && c != ',';
    let words = text.split(separates).map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// The input is frozen: a change of the generator would make figures of two days incomparable unnoticed.
#[test]
fn the_frozen_orders_are_those_of_the_record() {
    let output = unitape(&["bench", "fix/orders", "--quick", "--json"]);
    let records = lines(&output);
    assert_eq!(records.len(), 1);
    let frozen = "0cefe823a6e7870f2ef839d10b385f91bbbfaad3673fffcdde3ccf09f5878388";
    assert_eq!(records[0]["input_sha256"], frozen);
}

/// A case whose messages are not here and that was asked for by its name must not end well with no figure.
#[test]
fn a_case_without_its_messages_says_where_to_put_them() {
    let dir = std::env::temp_dir();
    for (name, code) in [("fast/cme", 1), ("fast/cme-half", 1), ("fast/moex2521", 0)] {
        let mut command = std::process::Command::new(binary::binary());
        command.args(["bench", name, "--quick", "--json"]).current_dir(&dir).env("UNITAPE_SAMPLES", &dir);
        let output = command.output().unwrap();
        let says = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {says}");
        assert_eq!(says.contains("UNITAPE_SAMPLES"), code == 1, "{name}: {says}");
    }
}

/// A tuning table whose rows were all measured with the defaults would look like a finding; and a pinned process
/// that was to be free like another.
#[test]
fn what_is_tuned_stands_in_the_record_and_what_cannot_be_is_a_usage_error() {
    let tuned = ["--tune", "segment_bytes=4MiB", "--tune", "pin=off"];
    let output = unitape(&[&["bench", "tape/one-way", "--quick", "--json"], &tuned[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = lines(&output);
    assert!(!records.is_empty() && records.iter().all(|r| r["tuned"] == "segment_bytes=4MiB pin=off"));
    for wrong in ["segment_bytes=many", "helper_cpus=100000", "speed=high"] {
        let output = unitape(&["bench", "tape/one-way", "--quick", "--tune", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    // Not a power of two: the tape refuses it, and no figure comes of it.
    let output = unitape(&["bench", "tape/rtt", "--quick", "--tune", "segment_bytes=3MiB"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A misspelt name that measured nothing would end well.
#[test]
fn a_name_that_is_none_is_a_usage_error_that_lists_the_names() {
    for name in ["tapes", "fix/order"] {
        let output = unitape(&["bench", name, "--json"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("there are: "), "{said}");
    }
}

/// The tables of the docs are made from recorded runs; a record that cannot be read must say where.
#[test]
fn a_recorded_run_becomes_a_table_and_a_broken_one_an_error_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = unitape(&["bench", "farm", "--quick", "--json"]).stdout;
    let file = dir.path().join("run.jsonl");
    std::fs::write(&file, &recorded).unwrap();
    let path = file.to_str().unwrap();
    let table = unitape(&["bench", "--render", path]);
    let text = String::from_utf8(table.stdout).unwrap();
    let rows = recorded.iter().filter(|b| **b == b'\n').count();
    assert_eq!(text.lines().count(), rows + 2, "{text}");
    assert!(text.lines().all(|l| l.starts_with('|') && l.matches('|').count() == 12), "{text}");

    std::fs::write(&file, [&recorded[..], b"{\"bench\":\"farm\"}\n"].concat()).unwrap();
    let broken = unitape(&["bench", "--render", path]);
    assert_eq!(broken.status.code(), Some(3));
    let said = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(said.contains(&format!("run.jsonl:{}:", rows + 1)), "{said}");
}

/// Set-up scripts read the doctor's findings, and it must name a cure for each complaint.
#[test]
fn the_doctor_names_a_state_and_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    let output = unitape(&["doctor", "--json", "--measure", "--dir", dir.path().to_str().unwrap()]);
    let findings = lines(&output);
    let bad = findings.iter().any(|f| f["state"] == "bad");
    assert_eq!(output.status.code(), Some(i32::from(bad)), "{}", String::from_utf8_lossy(&output.stderr));
    let names: Vec<&str> = findings.iter().map(|f| f["name"].as_str().unwrap()).collect();
    for name in [
        "cores",
        "memory",
        "kernel",
        "shared_memory",
        "hot_leftovers",
        "huge_pages",
        "cpu",
        "clock",
        "maps",
        "hugetlb",
        "governor",
        "isolation",
        "swap",
        "dirty_pages",
        "files",
        "priority",
        "disk",
        "locks",
        "pinning",
        "disk_speed",
        "pair",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for f in &findings {
        assert!(["ok", "warn", "bad"].contains(&f["state"].as_str().unwrap()), "{f:?}");
        assert!(!f["what"].as_str().unwrap().is_empty(), "{f:?}");
        for name in ["should", "gives", "mend"] {
            assert_eq!(f["state"] == "ok", f[name].as_str().unwrap().is_empty(), "{f:?}");
        }
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "something was left behind");
}

/// A directory that cannot be written to is the most common reason that nothing works.
#[test]
fn a_directory_that_cannot_be_used_is_bad_and_exits_1() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, b"x").unwrap();
    let output = unitape(&["doctor", "--json", "--dir", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(lines(&output).iter().any(|f| f["name"] == "disk" && f["state"] == "bad"));
}
