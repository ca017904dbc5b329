//! The promises of `docs/events.md` and `docs/formats-journal.md`, tried out one sentence after the other.
//!
//! Pages once said that an execution has a price, that `null` is always the same as nothing, and named half of the words
//! of quarantine.
#![cfg(unix)]

use crate::common::{self, cat, file, quarantine, root, run};
use common::run::{Bench, orders};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use unitape_model::{EventKind, EventSchema};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The rows of the first table after a heading, as cells.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let after = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}")).1;
    let table =
        after.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    table.map(|l| l.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The texts between pairs of `mark`s in a cell.
fn marked<'c>(cell: &'c str, mark: &str) -> BTreeSet<&'c str> {
    cell.split(mark).skip(1).step_by(2).collect()
}

#[test]
fn the_table_of_kinds_is_the_schema() {
    let page = page("events.md");
    let mut seen = BTreeSet::new();
    for row in rows(&page, "## Kinds and their fields") {
        for name in marked(&row[0], "`") {
            let kind = EventKind::from_name(name).unwrap_or_else(|| panic!("no kind {name}"));
            seen.insert(kind.name());
            let fields = EventSchema::for_kind(kind).fields;
            let required: BTreeSet<&str> =
                fields.iter().filter(|f| f.required).map(|f| f.field.name()).collect();
            assert_eq!(marked(&row[1], "**"), required, "in bold for {name}");
            let words: BTreeSet<&str> =
                row[1].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
            for field in fields {
                assert!(words.contains(field.field.name()), "{name} has {}", field.field.name());
            }
        }
    }
    assert_eq!(seen, EventKind::EVENTS.map(EventKind::name).into_iter().collect());
    let meta = page.split_once("`tape cat --all` also prints bookkeeping").unwrap().1;
    for kind in EventKind::META {
        let words = meta.split_once(&format!("`{}` (", kind.name())).unwrap().1.split_once(')').unwrap().0;
        let words: BTreeSet<&str> = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for field in EventSchema::for_kind(kind).fields {
            assert!(words.contains(field.field.name()), "{} has {}", kind.name(), field.field.name());
        }
    }
}

/// Consolidates lines; gives what is on the tape and what the account says.
fn consolidate(dir: &Path, lines: &[u8]) -> (Vec<Value>, Value) {
    let input = file(dir, "in.jsonl", lines);
    let tape = dir.join("t");
    let feed = format!("f=events:{}", input.display());
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    (cat(&tape, &[]), ran.json())
}

/// Each word of quarantine has a line that earns it, and a place on the page; the neighbours live.
#[test]
fn every_word_of_quarantine_is_on_the_page() {
    let long = format!(r#"{{"ts":1,"kind":"clock","x":"{}"}}"#, "x".repeat(4 << 20));
    let deep = format!(r#"{{"ts":1,"kind":"clock","x":{}{}}}"#, "[".repeat(129), "]".repeat(129));
    let name = format!(r#"{{"ts":1,"kind":"index","index":"{}","px":"1"}}"#, "n".repeat(256));
    let cases: [(&str, &[u8]); 26] = [
        ("bad_json", b"[]"),
        ("bad_json", b"{\"ts\":1,\"kind\":\"clock\"} {}"),
        ("bad_json", deep.as_bytes()),
        ("not_utf8", b"{\"ts\":1,\"kind\":\"clock\",\"x\":\"\xff\"}"),
        ("too_large", long.as_bytes()),
        ("unknown_kind", br#"{"ts":1,"kind":"tread"}"#),
        ("unknown_rec", br#"{"ts":1,"kind":"clock","rec":"evnt"}"#),
        ("bookkeeping", br#"{"ts":1,"kind":"define"}"#),
        ("missing", br#"{"kind":"clock"}"#),
        ("missing", br#"{"kind":"clock","ts":null}"#),
        ("missing", br#"{"ts":1,"kind":null}"#),
        ("missing", br#"{"ts":1,"kind":"exec","oid":null,"qty":"1"}"#),
        ("duplicate", br#"{"ts":1,"kind":"clock","x":1,"x":2}"#),
        ("wrong_sort", br#"{"ts":1,"kind":"trade","instr":["V"],"px":"1","qty":"1"}"#),
        ("bad_decimal", br#"{"ts":1,"kind":"trade","instr":"V","px":2500.0,"qty":"1"}"#),
        ("bad_decimal", br#"{"ts":1,"kind":"trade","instr":"V","px":"1e2","qty":"1"}"#),
        ("decimal_fit", br#"{"ts":1,"kind":"trade","instr":"V","px":"0.0000000001","qty":"1"}"#),
        ("decimal_fit", br#"{"ts":1,"kind":"trade","instr":"V","px":"9223372036.854775807","qty":"1"}"#),
        ("decimal_fit", br#"{"ts":1,"kind":"payment","amt":"999999999999999999999999999999999999999"}"#),
        ("bad_integer", br#"{"ts":1,"kind":"exec","oid":18446744073709551616,"qty":"1"}"#),
        ("bad_integer", br#"{"ts":1.5,"kind":"clock"}"#),
        ("bad_time", br#"{"ts":1,"kind":"list","name":"l","instr":"V","from":"noon"}"#),
        ("bad_value", br#"{"ts":1,"kind":"level","instr":"V","action":"Z"}"#),
        ("publisher_name", br#"{"ts":1,"kind":"quote","instr":"V","venue":"A","bank":"B@C"}"#),
        ("name_length", name.as_bytes()),
        ("name_length", br#"{"ts":1,"kind":"index","index":"","px":"1"}"#),
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for (i, (_, line)) in cases.iter().enumerate() {
        lines.extend_from_slice(line);
        writeln!(lines, "\n{{\"ts\":{i},\"kind\":\"clock\"}}").unwrap();
    }
    let (events, _) = consolidate(dir.path(), &lines);
    assert_eq!(events.iter().filter(|e| e["kind"] == "clock").count(), cases.len(), "the neighbours live");
    let entries = quarantine(&dir.path().join("t"));
    let mut reasons: Vec<&str> = entries.iter().map(|e| e["reason"].as_str().unwrap()).collect();
    // The rest of a line that is cut in pieces follows it.
    reasons.dedup_by(|a, b| *a == "bad_json" && *b == "too_large");
    assert_eq!(reasons, cases.map(|(word, _)| word));
    let page = page("events.md");
    let table = rows(&page, "## What is refused");
    let listed: BTreeSet<&str> = table.iter().flat_map(|row| marked(&row[0], "`")).collect();
    let mut earned: BTreeSet<&str> = reasons.into_iter().collect();
    // A full dictionary and reference data have tests of their own.
    earned.extend(["dict_full", "unknown_instrument"]);
    assert_eq!(listed, earned);
}

/// Numbers, ids, `null` and records as the page has them.
#[test]
fn lines_come_back_as_the_page_says() {
    let dir = tempfile::tempdir().unwrap();
    let longest = "n".repeat(255);
    let wide = "1".repeat(38);
    let cases: Vec<(String, String)> = [
        (r#""kind":"trade","instr":"V","px":2500,"qty":"0100.50""#, r#""px":"2500","qty":"100.5""#),
        (
            r#""kind":"trade","instr":"V","px":"9223372036.854775806","qty":"123456789012345678000""#,
            r#""px":"9223372036.854775806","qty":"123456789012345678000""#,
        ),
        (&format!(r#""kind":"payment","amt":"{wide}00""#), &format!(r#""amt":"{wide}00""#)),
        (&format!(r#""kind":"index","index":"{longest}","px":"1""#), &format!(r#""index":"{longest}""#)),
        (r#""kind":"exec","oid":18446744073709551615,"qty":"1""#, r#""oid":18446744073709551615"#),
        (r#""kind":"exec","oid":"007","qty":"1","px":null"#, r#""oid":"007","qty":"1"}"#),
        (
            r#""rec":null,"kind":"clock","note":null,"z": [1, 2e5]"#,
            r#""kind":"clock","note":null,"z":[1, 2e5]}"#,
        ),
        (r#""rec":"event","kind":"clock","flags":1,"later":2"#, r#""ext":[["flags",1],["later",2]]}"#),
        (r#""kind":"clock","ext":[["flags",1],["later",2]]"#, r#""ext":[["flags",1],["later",2]]}"#),
    ]
    .map(|(line, back)| (format!("{{\"ts\":1,{line}}}"), back.to_owned()))
    .into();
    let mut lines: String = cases.iter().map(|(line, _)| line.clone() + "\n").collect();
    lines += "{\"rec\":\"header\",\"params\":{}}\n{\"rec\":\"case\",\"id\":\"x\"}\n{\"rec\":\"expect\"}\n\n";
    let (_, account) = consolidate(dir.path(), lines.as_bytes());
    assert_eq!(
        (&account["events"], &account["ignored"], &account["quarantined"]),
        (&9.into(), &3.into(), &0.into())
    );
    let printed = run(["tape", "cat", dir.path().join("t").to_str().unwrap(), "--json"]).code(0);
    for ((line, back), out) in cases.iter().zip(printed.text().lines()) {
        assert!(out.contains(back), "{line}\n{out}\nhas no {back}");
    }
}

/// A journal of a stream: its bytes, when they came, and what a kill leaves.
#[test]
fn a_journal_of_a_stream_is_as_the_page_draws_it() {
    let bench = Bench::new("", &[("in", "fifo = \"pipe\"")]);
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let journal = bench.path("tape.journal").join("in");
    let times = |name: &str| -> Vec<(u64, i64)> {
        let bytes = std::fs::read(journal.join(name)).unwrap();
        assert!(bytes.len().is_multiple_of(16));
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap());
        bytes.chunks(16).map(|e| (word(&e[..8]), word(&e[8..]) as i64)).collect()
    };
    let write = |numbers| {
        let mut pipe = std::fs::File::options().write(true).open(bench.path("pipe")).unwrap();
        pipe.write_all(&orders(numbers)).unwrap();
        pipe
    };
    let mut run = bench.start_with(Stdio::null());
    let pipe = write(1..6);
    bench.has(&mut run, 5);
    run.signal("-KILL");
    run.ends();
    drop(pipe);
    let raw = orders(1..6);
    assert_eq!(std::fs::read(journal.join("00000001.raw")).unwrap(), raw);
    let ends = times("00000001.times");
    assert_eq!(ends.last().unwrap().0, raw.len() as u64);
    assert!(ends.iter().all(|(_, ts)| *ts > 1_700_000_000_000_000_000 && *ts < i64::MAX), "{ends:?}");

    // Bytes that were read and have no entry yet, and an entry that was cut short.
    let append = |name: &str, bytes: &[u8]| {
        std::fs::File::options().append(true).open(journal.join(name)).unwrap().write_all(bytes).unwrap()
    };
    append("00000001.raw", &orders(6..8));
    append("00000001.times", b"cut short");
    let mut run = bench.start_with(Stdio::null());
    bench.has(&mut run, 7);
    drop(write(8..10));
    bench.has(&mut run, 9);
    // The events may be on the tape before the end of the pipe is seen.
    run.until(|| {
        let bytes = std::fs::read(journal.join("00000001.times")).unwrap();
        bytes.as_chunks::<16>().0.last().is_some_and(|entry| entry[8..] == i64::MAX.to_le_bytes())
    });
    assert_eq!(run.stop().0, Some(0));
    let whole = orders(1..8).len() as u64;
    let all = times("00000001.times");
    assert_eq!(all[..ends.len()], ends[..]);
    assert_eq!(all[ends.len()], (whole, i64::MIN), "the least time: not known");
    let listed = || journal.read_dir().unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(all.last().unwrap().1, i64::MAX, "the greatest time: it ended there; {all:?} {:?}", listed());
    let events = cat(&bench.tape(), &["--full", "--kind", "order_new"]);
    assert_eq!(events.len(), 9);
    assert!(events[..5].iter().all(|e| e["ts_recv"].is_i64()), "received then");
    assert!(events[5..7].iter().all(|e| e["ts_recv"].is_null()), "nobody knows when");
    assert!(events[7..].iter().all(|e| e["ts_recv"].is_i64()));
}
