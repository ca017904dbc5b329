//! Kinds and fields of events through the command line: what was added after f0271f1, and what old tapes had under these
//! names.

use crate::common::{cat, file, files, root, run};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use unitape_codec::events::{ParsedEventLine, parse_full};
use unitape_model::schema::{EventSchema, FieldLayout};
use unitape_model::{Event, EventField, EventKind, EventValue};

const TS: i64 = 1_772_719_445_123_456_789; // 2026-03-05T14:04:05.123456789Z

/// A value for a field as input lines have it.
fn value(slot: FieldLayout, n: usize) -> Value {
    let tape = "0123456789abcdef0123456789abcdef";
    match slot {
        FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } => json!(format!("NAME{n}")),
        FieldLayout::Publisher { .. } => json!("BANK@VENUE"),
        FieldLayout::Syms { .. } => json!(["ONE", "TWO"]),
        FieldLayout::Price { .. }
        | FieldLayout::Decimal { .. }
        | FieldLayout::DecimalNarrow { .. }
        | FieldLayout::DecimalExt
        | FieldLayout::Amount { .. } => json!(format!("{n}.5")),
        FieldLayout::Id { .. } => json!(format!("an id of {n}, longer than its place")),
        FieldLayout::Text { .. } => json!(format!("text {n}")),
        FieldLayout::Code { values, .. } => json!(values[n % values.len()]),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => json!(true),
        FieldLayout::FlagSet { values, .. } => json!(values),
        FieldLayout::UInt { .. } => json!(n),
        FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => json!(TS + n as i64),
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => json!("2026-03-09"),
        FieldLayout::Tape { .. } => json!(tape),
        FieldLayout::TapePosition { .. } => json!({"tape": tape, "position": 64 * n}),
        FieldLayout::TapePositions => json!([{"tape": tape, "position": 64}, {"tape": tape, "position": n}]),
        FieldLayout::Json => json!({"a": [1, "x"]}),
    }
}

/// A line of each kind that input may carry, with every field that it may have.
fn every_field() -> Vec<Value> {
    let kinds = EventKind::EVENTS.into_iter().filter(|kind| kind.is_input());
    let line = |(seq, kind): (usize, EventKind)| {
        let mut line = Map::new();
        line.insert("seq".into(), json!(seq + 1));
        line.insert("ts".into(), json!(TS));
        line.insert("kind".into(), json!(kind.name()));
        for (n, spec) in EventSchema::for_kind(kind).fields.iter().enumerate() {
            // A bank at a venue is printed as one.
            if spec.slot != (FieldLayout::Publisher { bank: false }) {
                line.insert(spec.field.name().into(), value(spec.slot, n + 1));
            }
        }
        line.insert("own".into(), json!({"of": "the user"}));
        Value::Object(line)
    };
    kinds.enumerate().map(line).collect()
}

fn consolidate_lines(input: &Path, tape: &Path, code: i32) {
    let feed = format!("lines=events:events:{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "65536"])
        .code(code);
}

fn lines_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The printed bytes of a tape.
fn printed(tape: &Path, options: &[&str]) -> String {
    let tape = tape.to_str().unwrap();
    run(["tape", "cat", tape, "--json"].iter().chain(options)).code(0).text().to_owned()
}

/// A field that was lost on the way to a line and back would be missing from every tape made of printed lines.
#[test]
fn every_field_of_every_kind_comes_back_from_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let lines = every_field();
    consolidate_lines(&file(dir.path(), "lines.jsonl", lines_of(&lines)), &first, 0);
    let plain = printed(&first, &[]);
    for (now, line) in plain.lines().zip(&lines) {
        assert_eq!(serde_json::from_str::<Value>(now).unwrap(), *line);
    }
    consolidate_lines(&file(dir.path(), "again.jsonl", &plain), &second, 0);
    assert_eq!(printed(&second, &[]), plain);

    let full = printed(&first, &["--full", "--all"]);
    let mut frames = 0;
    for line in full.lines() {
        let mut arena = Vec::new();
        let Ok(ParsedEventLine::Event { .. }) = parse_full(line.as_bytes(), &mut arena) else {
            panic!("{line}")
        };
        let position = serde_json::from_str::<Value>(line).unwrap()["position"].as_u64().unwrap() as usize;
        let segment = &files(&first)["segments/0000000000000000.seg"];
        let at = 4096 + position;
        assert_eq!(arena[4..], segment[at + 4..at + arena.len()], "{line}");
        assert!(!line.contains("\"raw\""), "{line}");
        frames += 1;
    }
    assert!(frames > lines.len());
}

/// `watch replay` once panicked on the kinds that came after `clock`: its table of kinds had its own end.
#[test]
fn every_command_that_reads_tapes_takes_every_kind() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // A line that cannot be read adds the one kind that input may not carry.
    let lines = lines_of(&every_field()) + "{\"ts\":1,\"kind\":\"exec\",\"px\":\"broken\"}\n";
    consolidate_lines(&file(dir.path(), "lines.jsonl", lines), &dir.path().join("t"), 3);
    let (tape, store, copy, nbbo) = (path("t"), path("store"), path("copy"), path("nbbo"));
    let kinds: Vec<Value> = cat(&dir.path().join("t"), &[]).iter().map(|line| line["kind"].clone()).collect();
    for kind in EventKind::EVENTS {
        assert!(kinds.contains(&json!(kind.name())), "the tape has no {}", kind.name());
    }
    // The values of these events do not make sense together, so the books report faults: exit code 3.
    for (command, code) in [
        (format!("tape cat {tape}"), 0),
        (format!("tape cat {tape} --json --full --all"), 0),
        (format!("tape cat {tape} --from 2 --to 29 --limit 99"), 0),
        (format!("tape info {tape} --json"), 0),
        (format!("tape verify {tape} --json"), 0),
        (format!("tape replay {tape} --json"), 0),
        (format!("tape repair {tape}"), 0),
        (format!("quarantine list {tape} --json"), 3),
        (format!("quarantine retry {tape} --json"), 3),
        (format!("book show {tape}"), 3),
        (format!("book bbo {tape} --json"), 3),
        (format!("book show {tape} --at 30 --json"), 3),
        (format!("book checkpoint {tape} --every 5"), 0),
        (format!("book checkpoint {tape} --verify"), 0),
        (format!("book derive {tape} --tape-out {nbbo} --json"), 3),
        (format!("watch replay {tape}"), 0),
        (format!("watch replay {tape} --json --from 2"), 0),
        (format!("store seal {tape} --store {store}"), 0),
        (format!("store scan {store} --json"), 0),
        (format!("consolidate --tape-in {tape} --tape {copy} --json"), 3),
        (format!("watch replay {copy} --json"), 0),
    ] {
        let ran = run(command.split(' '));
        assert!(!ran.stderr.contains("panicked"), "{command}: {}", ran.stderr);
        assert_eq!(ran.code, Some(code), "{command}: {}", ran.stderr);
    }
    let lines = file(dir.path(), "printed.jsonl", printed(&dir.path().join("t"), &[]));
    run(["watch", "replay", lines.to_str().unwrap(), "--json"]).code(0);
}

fn golden(name: &str) -> PathBuf {
    root().join("vectors/golden/f0271f1-names").join(name)
}

/// Old events had fields of their own under names that are fields now. They print as they did, and are read by name.
#[test]
fn an_old_tape_with_names_that_are_fields_now_prints_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    for (name, bytes) in files(&golden("tape")) {
        std::fs::create_dir_all(tape.join(&name).parent().unwrap()).unwrap();
        std::fs::write(tape.join(&name), bytes).unwrap();
    }
    let old = |name: &str| std::fs::read_to_string(golden(name)).unwrap();
    assert_eq!(printed(&tape, &[]), old("plain.jsonl"));
    let (now, before) = (printed(&tape, &["--full", "--all"]), old("cat.jsonl"));
    let (mut lines, mut marks) = (0, 0);
    for (now, before) in now.lines().zip(before.lines()) {
        lines += 1;
        // Marks of progress gained two counts before these fields came.
        if before.contains("\"kind\":\"progress\"") {
            marks += 1;
            continue;
        }
        assert_eq!(now, before);
    }
    assert_eq!((lines, marks), (before.lines().count(), 1));

    let segment = &files(&tape)["segments/0000000000000000.seg"];
    let mut read = Vec::new();
    for line in before.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let event = Event::new(&segment[4096 + line["position"].as_u64().unwrap() as usize..]).unwrap();
        let mut scratch = [0; 36];
        if let Some(EventValue::Id(id)) = event.field(EventField::Uetr, &mut scratch) {
            read.push((event.kind(), format!("{id:?}")));
        }
    }
    assert_eq!(read, vec![(EventKind::Payment, "\"t0\"".to_owned()); 2]);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

/// Its quotes at two venues would replace one another under one name.
#[test]
fn a_bank_at_a_venue_is_one_publisher() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    let quote = |seq: u32, members: &str| {
        format!(
            r#"{{"seq":{seq},"ts":1,"kind":"quote",{members},"instr":"EURUSD","side":"B","px":"1","qty":"1"}}"#
        )
    };
    let input = [
        quote(1, r#""bank":"BANKA","venue":"FXALL""#),
        quote(2, r#""venue":"FXALL","bank":"BANKA""#),
        quote(3, r#""bank":"BANKA@FXALL""#),
        quote(4, r#""venue":"FXALL""#),
        quote(5, r#""bank":"BANK@A","venue":"FXALL""#),
    ];
    let input = file(dir.path(), "quotes.jsonl", input.join("\n") + "\n");
    consolidate_lines(&input, &tape, 3);
    let publishers: Vec<(Value, Value)> =
        cat(&tape, &[]).iter().map(|event| (event["bank"].clone(), event["venue"].clone())).collect();
    let joined = (json!("BANKA@FXALL"), Value::Null);
    let quarantined = (Value::Null, Value::Null);
    let want = [joined.clone(), joined.clone(), joined, (Value::Null, json!("FXALL")), quarantined];
    assert_eq!(publishers, want);
    // The halves of the name are on no event, so nothing defines them before the venue's own quote.
    let names: Vec<Value> = cat(&tape, &["--all"]).into_iter().filter(|e| e["dict"] == "venue").collect();
    let names: Vec<&str> = names.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["BANKA@FXALL", "FXALL"]);
}

/// Where many names are known, a name is only sought while its event is built: the half that gives up its place must be
/// forgotten there as well.
#[test]
fn a_bank_at_a_venue_is_found_among_many_names() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    let quote = |seq: u32, publisher: &str| {
        format!(r#"{{"seq":{seq},"ts":1,"kind":"quote",{publisher},"instr":"EURUSD","side":"B","px":"1"}}"#)
    };
    let mut known: Vec<String> = (1..=3000).map(|n| quote(n, &format!(r#""bank":"BANK{n}""#))).collect();
    known.push(quote(3001, r#""bank":"A","venue":"X""#));
    known.push(quote(3002, r#""venue":"X""#));
    let first = file(dir.path(), "first.jsonl", known.join("\n") + "\n");
    consolidate_lines(&first, &tape, 0);
    let more =
        [r#""venue":"X","bank":"A""#, r#""bank":"BANK7","venue":"X""#, r#""bank":"NEW","venue":"FRESH""#];
    let more: Vec<String> = (3003..).zip(more).map(|(seq, publisher)| quote(seq, publisher)).collect();
    let best_price = r#"{"seq":3006,"ts":1,"kind":"bbo","venue":"X","instr":"EURUSD","bid_venue":"BANK2900","ask_venue":"LATE"}"#;
    let second = file(dir.path(), "second.jsonl", more.join("\n") + "\n" + best_price + "\n");
    consolidate_lines(&second, &tape, 0);
    let events = cat(&tape, &[]);
    let banks: Vec<&str> = events[3000..].iter().filter_map(|event| event["bank"].as_str()).collect();
    assert_eq!(banks, ["A@X", "A@X", "BANK7@X", "NEW@FRESH"]);
    // In the extension a venue has four bytes, of which two are written late.
    let best = events.last().unwrap();
    assert_eq!(
        (&best["venue"], &best["bid_venue"], &best["ask_venue"]),
        (&json!("X"), &json!("BANK2900"), &json!("LATE"))
    );
    let names = cat(&tape, &["--all"]).into_iter().filter(|e| e["dict"] == "venue").skip(3000);
    let names: Vec<String> = names.map(|e| e["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["A@X", "X", "BANK7@X", "NEW@FRESH", "LATE"]);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

/// Each of these lines says nothing, or two things.
#[test]
fn lines_that_mean_nothing_are_refused_and_say_why() {
    let dir = tempfile::tempdir().unwrap();
    for (line, reason) in [
        (r#"{"ts":1,"kind":"list","name":"restricted","from":1,"to":2}"#, "missing"),
        (
            r#"{"ts":1,"kind":"trade","instr":"A","px":"1","qty":"1","trade_flags":["iso","iso"]}"#,
            "bad_value",
        ),
        (r#"{"ts":1,"kind":"trade","instr":"A","px":"1","qty":"1","trade_flags":["odd"]}"#, "bad_value"),
        (r#"{"ts":1,"kind":"trade","instr":"A","px":"1","qty":"1","trade_flags":"iso"}"#, "wrong_sort"),
        (r#"{"ts":1,"kind":"quote","instr":"EURUSD","bank":"B","value_date":"2026-02-29"}"#, "bad_time"),
        (r#"{"ts":1,"kind":"quote","instr":"EURUSD","bank":"B","withdrawn":"Y"}"#, "wrong_sort"),
        (r#"{"ts":1,"kind":"payment","stage":"settled"}"#, "bad_value"),
        (r#"{"ts":1,"kind":"payment","uetr":"a","uetr":"b"}"#, "duplicate"),
        (r#"{"ts":1,"kind":"alert","scenario":"s","source_tape":"12"}"#, "wrong_sort"),
        (
            r#"{"ts":1,"kind":"control","action":"halt","cause":{"tape":"00000000000000000000000000000000","position":1}}"#,
            "wrong_sort",
        ),
        (r#"{"ts":1,"kind":"control","action":"halt","scope_kind":"desk "}"#, "bad_value"),
        (r#"{"ts":1,"kind":"decision","oid":"O","considered":[{"position":1}]}"#, "wrong_sort"),
        (r#"{"ts":1,"kind":"case","action":"open"}"#, "missing"),
    ] {
        let tape = dir.path().join("tape");
        let _ = std::fs::remove_dir_all(&tape);
        let input = file(dir.path(), "line.jsonl", format!("{line}\n"));
        consolidate_lines(&input, &tape, 3);
        let got = run(["quarantine", "list", tape.to_str().unwrap(), "--json"]).code(3).lines();
        assert_eq!(got[0]["reason"], reason, "{line}: {}", got[0]);
    }
}
