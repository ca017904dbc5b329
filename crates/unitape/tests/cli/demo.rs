//! `unitape demo` from outside: it holds, it can be run again, and it touches nothing that is not its own.
#![cfg(unix)]

use crate::common::{binary, run};

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn demo(dir: &Path) -> Output {
    let args = ["demo", "--seconds", "1", "--json", "--dir"];
    Command::new(binary::binary()).args(args).arg(dir).output().unwrap()
}

fn story(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "", "progress is for terminals");
    assert_eq!(output.stdout.iter().filter(|&&b| b == b'\n').count(), 1, "one object, one line");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The demo is the first thing that anybody runs; the second is the demo again, and then what it said to try.
#[test]
fn the_demo_holds_and_runs_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("a demo");
    let first = story(&demo(&dir));
    assert_eq!(first["holds"], true);
    let checks = first["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 14);
    assert!(checks.iter().all(|c| c["holds"] == true && c["differs"] == Value::Array(vec![])), "{checks:?}");

    let planted = first["planted"].as_array().unwrap();
    assert_eq!(planted.len(), 12);
    for scene in planted {
        assert_eq!(scene["alert"]["arm"], scene["scene"]["arm"]);
        assert_eq!(scene["alert"]["positions"].as_array().unwrap().len(), 2);
    }
    let labels = first["labels"].as_array().unwrap();
    let scenario = |label: &Value| label["label"]["scenario"].as_str().unwrap().to_owned();
    let mut scenarios: Vec<String> = labels.iter().map(scenario).collect();
    scenarios.sort_unstable();
    let scenarios: Vec<&[String]> = scenarios.chunk_by(|a, b| a == b).collect();
    assert!(scenarios.len() == 10 && scenarios.iter().all(|labels| labels.len() >= 2), "{scenarios:?}");
    assert!(labels.iter().all(|l| l["alert"]["key"].is_array()));
    assert_eq!(first["alerts"]["live"], 12 + labels.len());
    assert_eq!(first["not_planted"], Value::Array(vec![]));
    assert!(first["near_misses"].as_array().unwrap().iter().all(|n| n["alert"] == false));
    let jse = &first["feeds"]["jse"];
    assert_eq!((&jse["messages"], &jse["events"]), (&Value::from(11_110), &Value::from(10_850)));
    let taq = &first["feeds"]["taq"];
    assert_eq!((&taq["messages"], &taq["events"]), (&Value::from(9_995), &Value::from(9_994)));
    assert_eq!(first["feeds"]["bank"]["by_kind"]["statement"], 31);
    let days = first["days"].as_array().unwrap();
    assert!(days.iter().any(|d| d["day"] == "2014-02-06" && d["schemas"]["bbo"] == 9_994), "{days:?}");
    let rows: u64 = days.iter().map(|d| d["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, first["tape"]["events"].as_u64().unwrap());
    // Every line of the tape comes out of the encrypted days.
    let printed = |words: [&str; 2], from: &str| {
        let mut command = Command::new(binary::binary());
        let output = command.args(words).arg(dir.join(from)).arg("--json").output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
        output.stdout
    };
    assert!(printed(["store", "scan"], "store") == printed(["tape", "cat"], "tape"), "the days differ");
    assert!(first["quarantined"].as_u64().unwrap() > 0, "nothing broken shows nothing");
    assert!(first["feed_switches"].as_u64().unwrap() > 1_000, "the feeds lie one behind the other");
    assert_eq!(first["books"].as_array().unwrap().len(), 36);

    // An exchange whose lines lose nothing shows nothing.
    let depth = &first["depth"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(depth["channels"].as_array().unwrap().len(), 3);
    let incremental = &depth["channels"][0];
    assert!(number(&incremental["lost"]) > 0 && number(&incremental["recovered"]) > 10, "{incremental}");
    let lines = incremental["lines"].as_array().unwrap();
    for (count, line) in
        ["first", "twice", "missed", "reordered"].iter().flat_map(|c| lines.iter().map(move |l| (c, l)))
    {
        assert!(number(&line[count]) > 0, "{count}: {line}");
    }
    assert!(lines.iter().any(|line| number(&line["corrupt"]) > 0), "{incremental}");
    let loss = &depth["loss"];
    assert!(number(&loss["stale"]) > 0 && loss["stale"] == loss["mended"], "{loss}");
    assert_eq!(loss["left"], Value::Array(vec![]));
    assert!(number(&depth["instruments"]) > 50 && number(&depth["levels"]) > 200, "{depth}");
    assert!(number(&first["feeds"]["depth"]["duplicates"]) > 1_000);

    let again = story(&demo(&dir));
    for same in [
        "tape",
        "feeds",
        "planted",
        "labels",
        "books",
        "depth",
        "indices",
        "quarantine",
        "near_misses",
        "days",
    ] {
        let plain = |v: &Value| {
            let mut v = v[same].clone();
            if same == "feeds" {
                v.as_object_mut().unwrap().values_mut().for_each(|f| f["messages_per_s"] = Value::Null);
            }
            if same == "tape" {
                v["disk_bytes"] = Value::Null;
            }
            v
        };
        assert_eq!(plain(&first), plain(&again), "{same}: the same input gave another answer");
    }

    // The output of a command, and its exit code: a quarantine that is not empty is code 3.
    let ends = [
        (0, "\"kind\":\"exec\""),
        (0, "\"kind\":\"alert\""),
        (3, "bad_checksum"),
        (0, "wash_trade"),
        (0, "\"bids\":["),
        (0, "\"state\":\"new\""),
        (0, "\"bid_px_00\":"),
        (0, "\"basis\":\"levels\""),
    ];
    assert_eq!(again["next"].as_array().unwrap().len(), ends.len());
    for (command, (code, shows)) in again["next"].as_array().unwrap().iter().zip(ends) {
        let command = command.as_str().unwrap();
        let json = format!("{command} --json");
        let output = Command::new("sh").args(["-c", &json]).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(shows), "{command}: {text}");
        let lines = text.lines().count();
        if command.contains("watch replay") {
            assert!(lines > 12, "{lines} alerts with a wider window");
        }
    }
    the_alerts_become_cases(&dir, 12 + labels.len() as u64);
}

/// Every alert of the demo is in a case, and its evidence is on the tape.
fn the_alerts_become_cases(dir: &Path, alerts: u64) {
    let text = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (tape, cases) = (text("tape"), text("cases of the test"));
    let ingested = run(["case", "ingest", &text("alerts"), "--tape", &tape, "--cases", &cases, "--json"])
        .code(0)
        .lines();
    assert_eq!(ingested.last().unwrap()["totals"]["alerts"], alerts);
    let list = run(["case", "list", "--cases", &cases, "--json"]).code(0).lines();
    assert_eq!(list.iter().map(|case| case["alerts"].as_u64().unwrap()).sum::<u64>(), alerts);
    let id = list[0]["case"].to_string();
    let shown = run(["case", "show", &id, "--cases", &cases, "--tape", &tape, "--json"]).code(0).json();
    let evidence = shown["alert_list"][0]["evidence"].as_array().unwrap();
    assert!(evidence.iter().all(|line| line["event"]["kind"].is_string()), "{evidence:?}");
}

/// The summary is read in a terminal of 100 columns and in files, where colours are noise.
#[test]
fn the_summary_fits_and_is_plain() {
    let temp = tempfile::tempdir().unwrap();
    let output = Command::new(binary::binary())
        .args(["demo", "--seconds", "1", "--dir", "demo"])
        .current_dir(temp.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\x1b'));
    for heading in [
        "What just happened",
        "Feeds",
        "Market data",
        "Order books",
        "Indices",
        "Manipulations",
        "Wash trades",
        "Quarantine",
        "Sealed days",
        "Try next",
    ] {
        assert!(text.contains(heading), "{heading}");
    }
    // The commands at the end hold the path of the program, which is as long as it is.
    let (summary, _) = text.split_once("\nTry next").unwrap();
    for line in summary.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!summary.contains('✗') && summary.contains('✓'));
}

/// `--dir .` in the wrong place must not cost anybody their files.
#[test]
fn a_directory_of_somebody_elses_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("tape")).unwrap();
    fs::write(temp.path().join("tape/work.txt"), "years").unwrap();
    let output = demo(temp.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a demo's"));
    assert_eq!(fs::read_to_string(temp.path().join("tape/work.txt")).unwrap(), "years");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "nothing was added");
}
