//! `unitape watch replay` against the vectors, its parameters, and the same from a tape.

use crate::common::{self, file, root, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type AlertCounts = &'static [(&'static str, usize)];

/// The shared suites, the alerts each expects at least, and the alerts of other scenarios on its events.
const SUITES: [(&str, usize, AlertCounts); 7] = [
    ("comms_lexicon", 2, &[]),
    ("fat_finger", 5, &[("reg_sho_201", 1)]),
    ("luld", 9, &[("eu_volatility_interruption", 2), ("price_spike", 2)]),
    ("order_to_trade_ratio", 5, &[]),
    ("payments_structuring", 4, &[]),
    ("spoofing", 5, &[("fat_finger", 24), ("wash_trade", 2)]),
    ("wash_trade", 4, &[]),
];

fn suite(scenario: &str) -> PathBuf {
    root().join(format!("vectors/watch/{scenario}.jsonl"))
}

fn vectors() -> PathBuf {
    suite("wash_trade")
}

fn replay(input: &Path, args: &[&str]) -> common::Ran {
    run(["watch".as_ref(), "replay".as_ref(), input.as_os_str(), "--json".as_ref()]
        .into_iter()
        .chain(args.iter().map(AsRef::as_ref)))
}

trait Alerts {
    /// The alerts, without the counters that may follow them.
    fn alerts(&self) -> Vec<Value>;
}

impl Alerts for common::Ran {
    fn alerts(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["counters"].is_null()).collect()
    }
}

/// The alerts in the form of the vectors, without the words for people.
fn essence(alerts: &[Value]) -> Vec<Value> {
    let strip = |a: &Value| {
        let mut a = a.as_object().unwrap().clone();
        a.remove("detail");
        Value::Object(a)
    };
    alerts.iter().map(strip).collect()
}

/// Each case of the shared suites gives the alerts it expects. The other scenarios run beside it unless they are left out. They
/// do not disturb it, and give few alerts of their own.
#[test]
fn the_suites_alerts_are_given_to_the_letter() {
    for (scenario, least, others) in SUITES {
        let text = std::fs::read_to_string(suite(scenario)).unwrap();
        let mut expected = Vec::new();
        for line in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
            for alert in line["alerts"].as_array().into_iter().flatten() {
                let mut alert = alert.clone();
                alert["case"] = line["case"].clone();
                expected.push(alert);
            }
        }
        assert!(expected.len() >= least, "{expected:?}");
        let alone = replay(&suite(scenario), &["--scenario", scenario]).code(0).alerts();
        assert_eq!(essence(&alone), essence(&expected), "{scenario}");
        let mut by_scenario = BTreeMap::<String, Vec<Value>>::new();
        for alert in replay(&suite(scenario), &[]).code(0).alerts() {
            by_scenario.entry(alert["scenario"].as_str().unwrap().to_owned()).or_default().push(alert);
        }
        assert_eq!(by_scenario.remove(scenario), Some(alone), "{scenario}");
        let counts: Vec<(&str, usize)> =
            by_scenario.iter().map(|(id, alerts)| (&**id, alerts.len())).collect();
        assert_eq!(counts, others, "{scenario}");
    }
}

/// All suites as one stream without cases, an hour between one and the next. The test fails if a default runs only
/// one scenario, or if the state differs from that of a tape.
#[test]
fn all_scenarios_run_and_a_tape_gives_what_its_lines_give() {
    let dir = tempfile::tempdir().unwrap();
    let (mut lines, mut seq, mut hours) = (Vec::new(), 0, 0);
    for (scenario, ..) in SUITES {
        for line in std::fs::read_to_string(suite(scenario)).unwrap().lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            hours += i64::from(event["rec"] == "case");
            if event["rec"] != "event" {
                continue;
            }
            seq += 1;
            event["seq"] = seq.into();
            event["ts"] = (event["ts"].as_i64().unwrap() + hours * 3_600_000_000_000).into();
            // Orders of one case are not those of another.
            if let Some(oid) = event["oid"].as_str().map(|oid| format!("{oid}-{hours}")) {
                event["oid"] = oid.into();
            }
            lines.push(event.to_string());
        }
    }
    let params = r#"{"order_to_trade_ratio":{"min_msgs":20,"max_ratio":5}}"#;
    let file = file(dir.path(), "all.jsonl", lines.join("\n") + "\n");
    let from_lines = replay(&file, &["--params", params]).code(0).alerts();
    let tape = dir.path().join("tape");
    run(["consolidate".as_ref(), file.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    let from_tape = replay(&tape, &["--params", params]).code(0).alerts();
    assert_eq!(essence(&from_lines), essence(&from_tape));
    for (scenario, least, _) in SUITES {
        let count = from_tape.iter().filter(|a| a["scenario"] == scenario).count();
        assert!(2 * count >= least, "{scenario}: {count}");
    }
    let order = |a: &Value| (a["trigger_seq"].as_u64().unwrap(), a["scenario"].as_str().unwrap().to_owned());
    assert!(from_tape.is_sorted_by_key(order));
    let positions = from_tape.iter().filter(|a| a["detail"]["positions"].is_array()).count();
    assert!(positions >= 9, "evidence is named by its place on the tape");
}

/// Two executions of one owner, `gap_ms` apart, with a header that sets the window.
fn round_trip(dir: &Path, gap_ms: i64, header: &str, case: &str) -> PathBuf {
    let exec = |seq: u32, ts: i64, side: &str| {
        format!(
            r#"{{"seq":{seq},"ts":{ts},"kind":"exec","oid":"O{seq}","match_id":"M{seq}","side":"{side}","px":"100","qty":"10","liq":"R","venue":"XLON","instr":"I","trader":"T","acct":"A","owner":"ACME","firm":"F","capacity":"P"}}"#
        )
    };
    let second = exec(2, 1_710_167_400_000_000_000 + gap_ms * 1_000_000, "S");
    let lines = [header, case, &exec(1, 1_710_167_400_000_000_000, "B"), &second];
    let text: Vec<&str> = lines.into_iter().filter(|l| !l.is_empty()).collect();
    file(dir, &format!("{gap_ms}-{}-{}.jsonl", header.len(), case.len()), text.join("\n") + "\n")
}

/// The command line wins over the case, the case over the header, that over the defaults.
#[test]
fn parameters_are_overlaid_in_the_order_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let header = r#"{"rec":"header","scenario":"wash_trade","params":{"window_ms":20000}}"#;
    let case = r#"{"rec":"case","id":"C","params":{"window_ms":40000}}"#;
    let alerts = |gap_ms, header, case, args: &[&str]| {
        replay(&round_trip(dir.path(), gap_ms, header, case), args).code(0).alerts().len()
    };
    // The default window is a minute.
    assert_eq!([30_000, 50_000, 70_000].map(|gap| alerts(gap, "", "", &[])), [1, 1, 0]);
    assert_eq!([10_000, 30_000].map(|gap| alerts(gap, header, "", &[])), [1, 0]);
    assert_eq!([30_000, 50_000].map(|gap| alerts(gap, header, case, &[])), [1, 0]);
    let short = ["--params", r#"{"wash_trade":{"window_ms":5000}}"#];
    assert_eq!([4_000, 10_000].map(|gap| alerts(gap, header, case, &short)), [1, 0]);
    let one = ["--scenario", "wash_trade", "--params", r#"{"window_ms":90000}"#];
    assert_eq!([70_000, 95_000].map(|gap| alerts(gap, header, case, &one)), [1, 0]);
    let toml = file(dir.path(), "p.toml", "[wash_trade]\nwindow_ms = 5000\n");
    let from_file = ["--params", toml.to_str().unwrap()];
    assert_eq!([4_000, 10_000].map(|gap| alerts(gap, "", "", &from_file)), [1, 0]);
}

/// An unknown name is reported, with the names that could have been meant.
#[test]
fn wrong_scenarios_parameters_and_lines_are_named() {
    let dir = tempfile::tempdir().unwrap();
    replay(&vectors(), &["--scenario", "wash_trad"]).code(2).says(&["wash_trad", "wash_trade"]);
    replay(&vectors(), &["--params", r#"{"wash_trade":{"windowms":1}}"#]).code(2).says(&["windowms"]);
    replay(&vectors(), &["--params", "missing.toml"]).code(1).says(&["missing.toml"]);
    replay(&dir.path().join("missing.jsonl"), &[]).code(1).says(&["missing.jsonl"]);
    let bad =
        file(dir.path(), "bad.jsonl", "{\"ts\":1,\"kind\":\"clock\"}\n{\"ts\":1,\"kind\":\"nothing\"}\n");
    replay(&bad, &[]).code(3).says(&["bad.jsonl:2:", "nothing"]);
}

/// Live, replayed from lines and replayed from a tape: the same alerts at the same events.
#[test]
fn a_tape_gives_the_alerts_that_its_lines_gave() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, truth) = common::flow(21, 6_000, false);
    let orders = file(dir.path(), "orders.fix", bytes);
    let tape = dir.path().join("tape");
    common::consolidate_orders(&orders, &tape, 0);
    let from_tape = replay(&tape, &[]).code(0).alerts();
    let wash: Vec<_> = from_tape.iter().filter(|alert| alert["scenario"] == "wash_trade").collect();
    assert_eq!(wash.len(), truth.planted.len(), "{from_tape:?}");
    for (alert, scene) in wash.into_iter().zip(&truth.planted) {
        assert_eq!(alert["scenario"], scene.scenario);
        assert_eq!(alert["ts"], scene.ts);
        assert_eq!(alert["key"], serde_json::to_value(&scene.key).unwrap());
    }
    let printed = run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]).code(0).stdout;
    let lines = file(dir.path(), "lines.jsonl", printed);
    let from_lines = replay(&lines, &[]).code(0).alerts();
    assert_eq!(essence(&from_lines), essence(&from_tape));
    // And once more through a tape made of the lines, whose `seq` is 1, 2, 3 …
    let again = dir.path().join("again");
    run(["consolidate".as_ref(), lines.as_os_str(), "--tape".as_ref(), again.as_os_str()]).code(0);
    assert_eq!(essence(&replay(&again, &[]).code(0).alerts()), essence(&from_tape));
}

/// The lines of a timeline, without the counts that follow it.
fn timeline(input: &Path, args: &[&str]) -> (Vec<String>, String) {
    let ran = run(["watch".as_ref(), "replay".as_ref(), input.as_os_str(), "--timeline".as_ref()]
        .into_iter()
        .chain(args.iter().map(AsRef::as_ref)))
    .code(0);
    let text = String::from_utf8(ran.stdout).unwrap();
    (text.lines().map(str::to_owned).collect(), ran.stderr)
}

/// An alert says numbers of events; the timeline shows them, and from a tape the same as from the lines.
#[test]
fn a_timeline_marks_the_evidence_and_the_completing_event() {
    let dir = tempfile::tempdir().unwrap();
    let chosen = ["--scenario", "spoofing", "--case", "SPOOF-P1"];
    let (lines, _) = timeline(&suite("spoofing"), &chosen);
    assert!(lines[0].starts_with("SPOOF-P1: 20k bid"), "{lines:#?}");
    assert_eq!(
        lines[1],
        "+0.000 is 2024-03-11 14:30:00.000000000 UTC; throughout: venue XLON, instr GB00B03MLX29, firm F1, capacity P"
    );
    let marked: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with("1 "))
        .map(|line| line.split_whitespace().nth(2).unwrap())
        .collect();
    assert_eq!(marked, ["4", "5", "7"], "{lines:#?}");
    let completing =
        lines.iter().position(|line| line.starts_with("1 ") && line.contains("order_cancel")).unwrap();
    assert!(lines[completing + 1].contains("==> alert 1  spoofing  owner ACME, venue XLON"), "{lines:#?}");

    // The same events on a tape, with times and numbers of their own.
    let text = std::fs::read_to_string(suite("spoofing")).unwrap();
    let case = text.split("{\"rec\": \"case\"").nth(1).unwrap().split_once('\n').unwrap().1;
    let events: String =
        case.lines().filter(|line| line.contains("\"event\"")).map(|line| format!("{line}\n")).collect();
    let events = file(dir.path(), "events.jsonl", events);
    let tape = dir.path().join("tape");
    run(["consolidate".as_ref(), events.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    let from_file = timeline(&events, &chosen[..2]).0;
    let from_tape = timeline(&tape, &chosen[..2]).0;
    let is_event =
        |line: &&String| line.contains("  order_") || line.contains("==>") || line.contains("  exec ");
    let shown: Vec<&String> = lines.iter().filter(is_event).collect();
    assert!(shown.len() > 5, "{lines:#?}");
    assert_eq!(from_file.iter().filter(is_event).collect::<Vec<_>>(), shown);
    assert_eq!(from_tape.iter().filter(is_event).collect::<Vec<_>>(), shown);
    // A part of the tape, and fewer events than the limit allows.
    let (part, _) = timeline(&tape, &["--scenario", "spoofing", "--from", "3", "--to", "5"]);
    assert_eq!(part.iter().filter(is_event).count(), 3, "{part:#?}");
    let (few, said) = timeline(&tape, &["--scenario", "spoofing", "--limit", "2"]);
    assert_eq!(few.iter().filter(|line| line.contains("==>")).count(), 0, "{few:#?}");
    assert!(
        said.contains("the timeline ends after 2 events") && said.contains("completed 1 alert"),
        "{said}"
    );
}

#[test]
fn a_case_is_chosen_from_a_file_of_cases_and_a_timeline_is_text() {
    let dir = tempfile::tempdir().unwrap();
    let alerts =
        replay(&suite("spoofing"), &["--scenario", "spoofing", "--case", "SPOOF-P1"]).code(0).alerts();
    assert_eq!(alerts.iter().map(|alert| &alert["case"]).collect::<Vec<_>>(), ["SPOOF-P1"]);
    replay(&suite("spoofing"), &["--case", "SPOF-P1"]).code(2).says(&["SPOF-P1", "did you mean `SPOOF-P1`?"]);
    let clock = file(dir.path(), "clock.jsonl", "{\"ts\":1,\"kind\":\"clock\"}\n");
    replay(&clock, &["--case", "P1"]).code(2).says(&["no case `P1`", "no cases at all"]);
    replay(&suite("spoofing"), &["--timeline"]).code(2).says(&["--timeline is text", "--json"]);
    let tape = dir.path().join("tape");
    run(["consolidate".as_ref(), clock.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    replay(&tape, &["--case", "P1"]).code(2).says(&["--case", "this is a tape"]);
}

/// The scenarios list their parameters and the regulations that they serve.
#[test]
fn scenarios_are_listed() {
    let listed = run(["watch", "scenarios", "--json"]).code(0).lines();
    let wash = listed.iter().find(|s| s["id"] == "wash_trade").unwrap();
    assert_eq!(wash["params"]["window_ms"], 60_000);
    assert_eq!(wash["key"], serde_json::json!(["group", "instr"]));
    let ids: Vec<&str> = listed.iter().map(|s| s["id"].as_str().unwrap()).collect();
    let agreed: Value =
        serde_json::from_slice(&std::fs::read(root().join("vectors/watch/scenarios.json")).unwrap()).unwrap();
    let mut agreed: Vec<&str> =
        agreed["scenarios"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap()).collect();
    agreed.sort_unstable();
    assert_eq!(ids, agreed);
    assert_eq!(ids.len(), 39);
    let spoofing = listed.iter().find(|s| s["id"] == "spoofing").unwrap();
    assert_eq!(spoofing["params"]["min_notional"], "50000");
    for parameter in listed.iter().flat_map(|s| s["parameters"].as_array().unwrap()) {
        assert!(parameter["unit"].as_str().is_some_and(|u| !u.is_empty()), "{parameter}");
    }
}

/// A match over midnight: by the calendar its two sides are in one session, by the dates in UTC in two.
#[test]
fn a_match_belongs_to_the_session_date_of_the_calendar() {
    let dir = tempfile::tempdir().unwrap();
    let midnight: i64 = 1_772_496_000_000_000_000; // 2026-03-03T00:00 UTC, 18:00 in Chicago
    let line = |offset_ms: i64, kind: &str, oid: u32, side: &str, qty: u32, more: &str| {
        let ts = midnight + offset_ms * 1_000_000;
        format!(
            r#"{{"ts":{ts},"kind":"{kind}","venue":"XCME","instr":"ES","oid":"{oid}","side":"{side}","px":"100","qty":"{qty}","owner":"A"{more}}}"#
        )
    };
    let id = r#","match_id":"M1""#;
    let lines = [
        line(-100, "order_new", 1, "B", 50, ""),
        line(-90, "order_new", 2, "S", 7, ""),
        line(-50, "exec", 1, "B", 50, id),
        line(50, "exec", 2, "S", 7, id),
    ];
    let input = file(dir.path(), "events.jsonl", lines.join("\n"));
    let calendar = root().join("examples/calendar.csv");
    let (wash, calendar) = (["--scenario", "wash_trade"], ["--calendar", calendar.to_str().unwrap()]);
    assert_eq!(replay(&input, &wash).code(0).alerts().len(), 0);
    let alerts = replay(&input, &[wash, calendar].concat()).code(0).alerts();
    assert_eq!((alerts.len(), &alerts[0]["detail"]["arm"]), (1, &"self_match".into()));
    let wrong =
        file(dir.path(), "wrong.csv", "what,key,date,time,zone,value\nvenue,XCME,,25:00,America/Chicago,\n");
    replay(&input, &["--calendar", wrong.to_str().unwrap()]).code(1).says(&["wrong.csv:2:", "25:00"]);
    let gone = dir.path().join("gone.csv");
    replay(&input, &["--calendar", gone.to_str().unwrap()]).code(1).says(&["gone.csv"]);
}
