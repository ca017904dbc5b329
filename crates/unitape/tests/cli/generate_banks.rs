//! `unitape generate banks`: its events come in as anyone's would, and its truth is theirs.

use crate::common::run;
use std::fs;
use std::path::Path;
use unitape_sim::banks::{BestPriceConfig, BestPriceTruth};

fn generate(dir: &Path, out: &str, more: &[&str]) -> (String, String) {
    let (events, truth) = (dir.join(format!("{out}.jsonl")), dir.join(format!("{out}-best.jsonl")));
    let fixed = ["generate", "banks", "--pairs", "3", "--banks", "10", "--tiers", "3", "--rate", "400"];
    let files = ["-o", events.to_str().unwrap(), "--truth", truth.to_str().unwrap()];
    run(fixed.iter().chain(&files).chain(more)).code(0);
    (fs::read_to_string(events).unwrap(), fs::read_to_string(truth).unwrap())
}

/// A field that is lost on the way to the tape, or an event in another place, would give other prices than the truth, and an
/// engine that reads the tape would be wrong without a mistake of its own.
#[test]
fn a_tape_of_banks_has_the_prices_of_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let (events, best) = generate(dir.path(), "banks", &["--events", "4000"]);
    assert_eq!(events.lines().count(), 4_000);
    let (file, tape) = (dir.path().join("banks.jsonl"), dir.path().join("tape"));
    let tape = tape.to_str().unwrap();
    let account = run(["consolidate", file.to_str().unwrap(), "--tape", tape, "--json"]).code(0).json();
    assert_eq!((&account["quarantined"], &account["ignored"]), (&0.into(), &0.into()), "{account}");
    let mut truth = BestPriceTruth::new(BestPriceConfig::default()).unwrap();
    let mut of_tape = Vec::new();
    for event in run(["tape", "cat", tape, "--json", "--full"]).code(0).lines() {
        truth.apply_line(&event.to_string(), &mut of_tape).unwrap();
    }
    assert!(best.lines().count() > 500, "{} lines", best.lines().count());
    assert_eq!(String::from_utf8(of_tape).unwrap(), best);
}

/// A truth of other options beside the same events is what a test of these options needs.
#[test]
fn options_of_the_truth_change_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let (events, best) = generate(dir.path(), "plain", &["--seconds", "8"]);
    let calendar = dir.path().join("calendar.csv");
    fs::write(&calendar, "what,key,date,time,zone,value\nholiday,USD,2026-03-04,,,\n").unwrap();
    let options: [[&str; 2]; 5] = [
        ["--size", "750000.5,1000000"],
        ["--stale-ms", "400"],
        ["--spike-pips", "0"],
        ["--spike-banks", "9"],
        ["--calendar", calendar.to_str().unwrap()],
    ];
    for (at, options) in options.iter().enumerate() {
        let (same, other) =
            generate(dir.path(), &at.to_string(), &[&["--seconds", "8"], options.as_slice()].concat());
        assert!(same == events, "{options:?} changed the events");
        assert!(other != best, "{options:?} changed no price");
    }
    let printed = run([
        "generate",
        "banks",
        "--pairs",
        "3",
        "--banks",
        "10",
        "--tiers",
        "3",
        "--rate",
        "400",
        "--seconds",
        "8",
    ]);
    assert!(printed.code(0).stdout == events.as_bytes());
}

/// The two writers overwrote each other's lines in one file, and the summary counted both whole.
#[test]
fn events_and_best_prices_need_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let (out, link) = (dir.path().join("banks.jsonl"), dir.path().join("link.jsonl"));
    std::os::unix::fs::symlink("banks.jsonl", &link).unwrap();
    let out = out.to_str().unwrap();
    for truth in [out, link.to_str().unwrap()] {
        let ran = run(["generate", "banks", "--events", "20", "-o", out, "--truth", truth]).code(2);
        ran.says(&["--truth", "the events go into this file"]);
    }
    run(["generate", "banks", "--events", "20", "-o", out, "--truth", "-"]).code(2).says(&["go into a file"]);
}
