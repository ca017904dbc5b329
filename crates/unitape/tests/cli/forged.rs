//! No input can forge the events of a tape's account: `define`, `source`, `progress` and `quarantine`.
//!
//! A line of kind `quarantine` once went onto the tape unchanged. It named bytes of a raw log that nobody had
//! written, and from then on neither `tape verify` nor the next run could read the account of the tape.

use crate::common::{self, assert_closes, cat, file, quarantine, root, run, run_with_stdin};
use serde_json::Value;
use std::path::{Path, PathBuf};
use unitape_model::{EventBuilder, EventField, EventKind, EventValue as FieldValue, UnixNanos, flags};
use unitape_tape::{Publication, WriterOptions};

/// Events that stay legal, and between them one of each kind that does not.
const LINES: &str = r#"{"ts":1,"kind":"trade","venue":"X","instr":"V","px":"1","qty":"2"}
{"ts":2,"kind":"quarantine","reason":"x","raw_at":18446744073709551000,"length":4294967000}
{"ts":3,"kind":"clock"}
{"ts":4,"kind":"define","dict":"venue","index":1,"name":"Q"}
{"ts":5,"kind":"control","action":"gap","reason":"test"}
{"ts":6,"kind":"source","index":1,"feed":"a","file":"b"}
{"ts":7,"kind":"alert","scenario":"wash_trade"}
{"ts":8,"kind":"progress","through":1000000,"messages":9,"ignored":9,"duplicates":0,"quarantined":0,"events":0,"end":true}
{"ts":9,"kind":"quarantine","reason":"y"}
{"ts":10,"kind":"trade","venue":"X","instr":"V","px":"3","qty":"4"}
"#;

fn lines(dir: &Path) -> PathBuf {
    file(dir, "lines.jsonl", LINES)
}

fn consolidate(lines: &Path, tape: &Path) -> common::Ran {
    let feed = format!("lines=events:{}", lines.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"])
}

fn verify(tape: &Path) -> common::Ran {
    run(["tape", "verify", tape.to_str().unwrap(), "--json"])
}

/// Five lines are refused one by one, their neighbours live, and the account can be read.
#[track_caller]
fn assert_refused(tape: &Path) {
    let kinds: Vec<Value> = cat(tape, &[]).into_iter().map(|e| e["kind"].clone()).collect();
    let refused = "quarantine";
    let expected =
        ["trade", refused, "clock", refused, "control", refused, "alert", refused, refused, "trade"];
    assert_eq!(kinds, expected);
    let entries = quarantine(tape);
    let reasons: Vec<&str> = entries.iter().map(|e| e["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["bookkeeping"; 5]);
    let detail = entries[0]["detail"].as_str().unwrap();
    assert!(detail.contains("`quarantine`") && detail.contains("unitape writes itself"), "{detail}");
    verify(tape).code(0);
    let show =
        run(["quarantine", "show", tape.to_str().unwrap(), &entries[0]["position"].to_string(), "--json"]);
    assert_eq!(show.code(0).json()["raw"], LINES.lines().nth(1).unwrap());
    let summary = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json()["account"].clone();
    assert_eq!((&summary["quarantined"], &summary["events"]), (&5.into(), &5.into()));
}

#[test]
fn event_lines_cannot_forge_the_account() {
    let dir = tempfile::tempdir().unwrap();
    let (lines, tape) = (lines(dir.path()), dir.path().join("t"));
    let account = consolidate(&lines, &tape).code(3).json();
    assert_closes(&account);
    assert_refused(&tape);
    let retried = run(["quarantine", "retry", tape.to_str().unwrap(), "--json"]).code(3).json();
    assert_eq!(retried, serde_json::json!({"tried": 5, "recovered": 0, "events": 0, "left": 5}));
    consolidate(&lines, &tape).code(3);
    assert_refused(&tape);
}

#[test]
fn nor_on_the_way_through_run() {
    let dir = tempfile::tempdir().unwrap();
    lines(dir.path());
    let text =
        "[tape]\ndir = \"t\"\n[[feed]]\nname = \"lines\"\nformat = \"events\"\nfiles = [\"lines.jsonl\"]\n";
    let config = file(dir.path(), "run.toml", text);
    let ran = run(["run".as_ref(), config.as_os_str()]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    assert_refused(&dir.path().join("t"));
}

/// A tape with messages in quarantine is printed and watched: its own account in between is no event, and no error.
#[test]
fn a_replay_of_lines_passes_over_the_account() {
    let dir = tempfile::tempdir().unwrap();
    let input = lines(dir.path());
    let ran = run(["watch", "replay", input.to_str().unwrap(), "--scenario", "spoofing"])
        .code(0)
        .says(&["5 lines of a tape's account"]);
    assert!(ran.text().contains("5 events, 0 alerts"), "{}", ran.text());
    let ran = run_with_stdin(["watch", "replay", "-", "--json", "--scenario", "spoofing"], LINES.as_bytes())
        .code(0);
    assert_eq!(ran.text(), "");
    let other = LINES.replace("\"clock\"", "\"clack\"");
    run_with_stdin(["watch", "replay", "-"], other.as_bytes()).code(3).says(&["-:3", "unknown_kind"]);
}

/// A mapping that names such a kind is refused with its line, in every format.
#[test]
fn mappings_cannot_name_these_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = std::fs::read_to_string(root().join("mappings/fix44-orders.toml")).unwrap();
    let orders = file(dir.path(), "o.fix", common::order(1));
    for kind in ["quarantine", "define", "source", "progress"] {
        let rule = format!(
            "\n[[rule]]\nwhen = {{ \"35\" = \"ZZ\" }}\n[[rule.event]]\nkind = \"{kind}\"\n[rule.event.fields]\nreason = \"37\"\n"
        );
        let text = shipped.clone() + &rule;
        let line = text.lines().position(|l| l == format!("kind = \"{kind}\"")).unwrap() + 1;
        let mapping = file(dir.path(), "forged.toml", text);
        let at = format!("forged.toml:{line}");
        let said: [&str; 3] = [&at, kind, "which unitape writes itself"];
        run(["mapping", "check", mapping.to_str().unwrap()]).code(1).says(&said);
        let feed = format!("f=fix:{}:{}", mapping.display(), orders.display());
        let tape = dir.path().join("t");
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(1).says(&said);
        assert!(!tape.exists(), "nothing is made with a mapping that cannot be");
    }
}

/// The output of `tape cat` can be consolidated again: the events come back, and the tape's own account goes into
/// quarantine, each line with its reason.
#[test]
fn a_printed_tape_comes_back_without_its_account() {
    let dir = tempfile::tempdir().unwrap();
    let clean: String = LINES
        .lines()
        .filter(|l| !l.contains("through") && !l.contains("\"d") && !l.contains("reason\":\"x"))
        .filter(|l| !l.contains("\"source\"") && !l.contains("\"y\""))
        .map(|l| format!("{l}\n"))
        .collect();
    let (input, tape) = (file(dir.path(), "clean.jsonl", clean), dir.path().join("t"));
    consolidate(&input, &tape).code(0);
    let printed = |options: &[&str]| {
        let args =
            ["tape", "cat", tape.to_str().unwrap(), "--json"].into_iter().chain(options.iter().copied());
        run(args).code(0).text().to_owned()
    };
    let without = |events: Vec<Value>| -> Vec<Value> {
        let keep = ["ts", "kind", "venue", "instr", "px", "qty", "action", "reason", "scenario"];
        let events = events.into_iter().filter(|e| e["kind"] != "quarantine");
        events.map(|e| keep.iter().map(|k| e[*k].clone()).collect()).collect()
    };
    let before = without(cat(&tape, &[]));
    assert_eq!(before.len(), 5);
    for (name, options, refused) in
        [("plain", &[][..], 0), ("full", &["--full"], 0), ("all", &["--full", "--all"], 5)]
    {
        let lines = file(dir.path(), &format!("{name}.jsonl"), printed(options));
        let again = dir.path().join(name);
        let account = consolidate(&lines, &again).code(if refused > 0 { 3 } else { 0 }).json();
        assert_eq!((&account["events"], &account["quarantined"]), (&5.into(), &refused.into()), "{name}");
        assert!(quarantine(&again).iter().all(|e| e["reason"] == "bookkeeping"));
        assert_eq!(without(cat(&again, &[])), before, "{name}");
        verify(&again).code(0);
    }
}

/// A program that has a tape open for writing can append any frame. Such a frame is found, and nothing is made of it.
#[test]
fn forged_frames_are_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "o.fix", [common::order(1), common::order(2)].concat());
    let forge = |name: &str, frame: Vec<u8>| {
        let tape = dir.path().join(name);
        common::consolidate_orders(&orders, &tape, 0);
        let mut publication = Publication::open(&tape, WriterOptions::default()).unwrap();
        publication.writer().append(&frame).unwrap();
        publication.close().unwrap();
        let problems = verify(&tape).code(3).json()["problems"].to_string();
        let feed = common::orders_option("orders", &orders);
        let again = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
        (problems, again.stderr)
    };
    let progress = |events| {
        frame(
            EventKind::Progress,
            1,
            &[
                (EventField::Through, 1 << 40),
                (EventField::Messages, 9),
                (EventField::Ignored, 9 - events),
                (EventField::Duplicates, 0),
                (EventField::Quarantined, 0),
                (EventField::Events, events),
            ],
        )
    };
    let (problems, again) = forge("progress", progress(7));
    assert!(
        problems.contains("7 messages with events, 7 events") && problems.contains("the tape has 2, 2"),
        "{problems}"
    );
    assert!(again.contains("position ") && again.contains("use a new tape"), "{again}");
    let (problems, _) = forge("no-sum", {
        let fields =
            [EventField::Messages, EventField::Ignored, EventField::Duplicates, EventField::Quarantined]
                .map(|f| (f, u64::MAX - 5));
        frame(EventKind::Progress, 1, &fields)
    });
    assert!(problems.contains("does not close"), "{problems}");
    for (name, at, length) in [("beyond", 1 << 40, 5), ("overflow", u64::MAX - 9, 4_294_967_000)] {
        let (problems, again) = forge(
            name,
            frame(EventKind::Quarantine, 0, &[(EventField::RawAt, at), (EventField::Length, length)]),
        );
        for said in [problems, again] {
            assert!(said.contains("quarantine.raw"), "{name}: {said}");
        }
    }
    let mut flagged = frame(EventKind::Clock, 0, &[]);
    flagged[7] |= flags::META;
    let (problems, _) = forge("flag", flagged);
    assert!(problems.contains("`clock` with the flag of bookkeeping"), "{problems}");
}

/// A frame of one kind whose fields are numbers.
fn frame(kind: EventKind, source: u32, fields: &[(EventField, u64)]) -> Vec<u8> {
    let mut arena = Vec::new();
    let mut e = EventBuilder::begin(&mut arena, kind, UnixNanos(0));
    e.source(source, 0);
    for (field, n) in fields {
        e.set_field(*field, FieldValue::UInt(*n)).unwrap();
    }
    e.finish(flags::LAST).unwrap();
    arena
}

/// `tape verify` reports a raw log that somebody cut, with the first event that misses its bytes.
#[test]
fn a_raw_log_that_was_cut_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (lines, tape) = (lines(dir.path()), dir.path().join("t"));
    consolidate(&lines, &tape).code(3);
    let raw = tape.join("quarantine.raw");
    let bytes = std::fs::read(&raw).unwrap();
    std::fs::write(&raw, &bytes[..bytes.len() - 50]).unwrap();
    let entries = quarantine(&tape);
    let missing = entries.iter().rev().take(2).map(|e| e["position"].to_string()).collect::<Vec<_>>();
    let problems = verify(&tape).code(3).json()["problems"].to_string();
    assert!(
        problems.contains("quarantine.raw") && missing.iter().any(|at| problems.contains(at)),
        "{problems}"
    );
    let show = run(["quarantine", "show", tape.to_str().unwrap(), &missing[0]]);
    assert!(matches!(show.code, Some(1 | 3)), "{:?}", show.code);
    show.says(&["quarantine.raw", "tape verify"]);
}
