//! `tape cat --schema`: rows, their forms, and files that are there only when they are complete.
#![cfg(unix)]

use crate::common::{self, file, run};
use std::path::{Path, PathBuf};

/// A tape of two quotes, of which the second has a bid alone, and of three trades.
fn tape(dir: &Path) -> PathBuf {
    let lines = concat!(
        r#"{"seq":7,"ts":1710167400000000000,"kind":"bbo","venue":"XLON","instr":"VOD","bid":"99.5","bid_qty":"300","ask":"100","ask_qty":"50"}"#,
        "\n",
        r#"{"ts":1710167400000001000,"kind":"trade","venue":"XLON","instr":"VOD","px":"100","qty":"50","side":"S","match_id":"M,1","cond":"@  I","trade_flags":["iso","no_last"]}"#,
        "\n",
        r#"{"ts":1710167400000002000,"kind":"bbo","instr":"a \"b\"","bid":"-0.000000001","bid_qty":"0.0000000000000000001"}"#,
        "\n",
        r#"{"ts":1710167400000003000,"kind":"trade","instr":"VOD","px":"1","qty":"100000000000000000000","action":"cancel","match_id":18446744073709551615}"#,
        "\n",
        r#"{"ts":1710167400000004000,"kind":"trade","venue":"CHIX","instr":"VOD","px":"2","qty":"1","action":"correct","side":"B"}"#,
        "\n",
    );
    let input = file(dir, "lines.jsonl", lines);
    let tape = dir.join("tape");
    let feed = format!("e=events::{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    tape
}

fn rows(tape: &Path, options: &[&str]) -> common::Ran {
    run(["tape", "cat", tape.to_str().unwrap()].into_iter().chain(options.iter().copied()))
}

/// The columns and their order are the same in a store, in Python and here.
#[test]
fn rows_have_the_columns_of_their_schema() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    assert_eq!(
        rows(&tape, &["--schema", "bbo", "--json"]).code(0).text(),
        concat!(
            r#"{"ts_event":1710167400000000000,"ts_recv":null,"publisher_id":1,"instrument_id":1,"sequence":7,"bid_px_00":"99.5","ask_px_00":"100","bid_sz_00":"300","ask_sz_00":"50","cond":null,"bid_venue":null,"ask_venue":null,"symbol":"VOD","venue":"XLON"}"#,
            "\n",
            r#"{"ts_event":1710167400000002000,"ts_recv":null,"publisher_id":null,"instrument_id":2,"sequence":null,"bid_px_00":"-0.000000001","ask_px_00":null,"bid_sz_00":"0.0000000000000000001","ask_sz_00":null,"cond":null,"bid_venue":null,"ask_venue":null,"symbol":"a \"b\"","venue":null}"#,
            "\n"
        )
    );
    assert_eq!(
        rows(&tape, &["--schema", "trades", "--csv"]).code(0).text(),
        "ts_event,ts_recv,publisher_id,instrument_id,action,side,price,size,sequence,match_id,cond,trade_flags,symbol,venue\n\
         1710167400000001000,,1,1,T,A,100,50,,\"M,1\",\"@  I\",iso+no_last,VOD,XLON\n\
         1710167400000003000,,,1,C,N,1,100000000000000000000,,18446744073709551615,,,VOD,\n\
         1710167400000004000,,2,1,M,B,2,1,,,,,VOD,CHIX\n"
    );
    let table = rows(&tape, &["--schema", "bbo"]).code(0);
    let widths: Vec<usize> = table.text().lines().map(|line| line.find("symbol").unwrap_or(0)).collect();
    assert_eq!((table.text().lines().count(), widths[0] > 0), (3, true), "{}", table.text());
    assert!(table.text().contains("2024-03-11 14:30:00.000002000"), "{}", table.text());
}

#[test]
fn selections_apply_to_rows() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let count = |options: &[&str]| {
        rows(&tape, &[&["--schema", "trades", "--json"], options].concat()).code(0).lines().len()
    };
    assert_eq!(count(&["--venue", "XLON"]), 1);
    assert_eq!(count(&["--limit", "2"]), 2);
    assert_eq!(count(&["--from", "4"]), 2);
    assert_eq!(count(&["--since", "2024-03-11T14:30:00.000003", "--until", "2024-03-11T14:30:00.000004"]), 1);
    // Nothing is no error, and CSV has its header.
    let nothing =
        rows(&tape, &["--schema", "bbo", "--csv", "--venue", "CHIX"]).code(0).says(&["nothing to print"]);
    assert!(nothing.text().starts_with("ts_event,") && nothing.text().lines().count() == 1);
    rows(&tape, &["--schema", "trade"]).code(2).says(&["no schema `trade`; did you mean `trades`?"]);
    rows(&tape, &["--schema", "bbo", "--schema", "trades"]).code(2);
    rows(&tape, &["--schema", "bbo", "--kind", "bbo"]).code(2);
    rows(&tape, &["--csv"]).code(2).says(&["--schema"]);
}

/// Sizes beyond `decimal(38,18)` are null in Arrow, counted, and exact everywhere else.
#[test]
fn sizes_that_arrow_cannot_hold_are_null_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let out = dir.path().join("rows.arrow");
    for schema in ["bbo", "trades"] {
        let ran = rows(&tape, &["--schema", schema, "--arrow", "-o", out.to_str().unwrap()]).code(3);
        ran.says(&["do not fit decimal(38,18) and are null: 1"]);
        let bytes = std::fs::read(&out).unwrap();
        // The mark of an IPC message, and that of the stream's end.
        assert!(bytes.starts_with(&[0xff; 4]) && bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
        assert_eq!(rows(&tape, &["--schema", schema, "--arrow"]).code(3).stdout, bytes);
    }
}

#[test]
fn a_terminal_gets_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let command = format!("{} tape cat {} --schema bbo --arrow", common::binary().display(), tape.display());
    let ran = common::finish(std::process::Command::new("script").args(["-qec", &command, "/dev/null"]));
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.text().contains("--arrow writes bytes") && !ran.stdout.contains(&0xff), "{}", ran.text());
}

/// Half of a file under the name of the whole was once read as the whole.
#[test]
fn a_file_is_there_when_it_is_complete() {
    let bench = common::damage::Bench::new();
    let dir = bench.dir.path();
    let lines = run(["tape", "cat", bench.tape.to_str().unwrap(), "--json"]).code(0).stdout;
    let out = dir.join("events.jsonl");
    let option = ["--json", "-o", out.to_str().unwrap()];
    rows(&bench.tape, &option).code(0);
    assert_eq!(std::fs::read(&out).unwrap(), lines);
    let segment = bench.tape.join("segments/0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8192] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    for options in [&option[..], &["--schema", "trades", "--csv", "-o", out.to_str().unwrap()]] {
        let before = std::fs::read(&out).unwrap();
        rows(&bench.tape, options).code(3).says(&["damage"]);
        assert_eq!(std::fs::read(&out).unwrap(), before, "{options:?}");
    }
    // What is read after damage is complete as far as it can be, and the exit code says the rest.
    rows(&bench.tape, &[&option[..], &["--skip-damage"]].concat()).code(3);
    assert!(std::fs::read(&out).unwrap().len() < lines.len());
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().ends_with(".part")));
    let gone = dir.join("missing/out.csv");
    rows(&bench.tape, &["--schema", "bbo", "--csv", "-o", gone.to_str().unwrap()])
        .code(1)
        .says(&["missing/out.csv"]);
    rows(&bench.tape, &["--json", "-o", "/dev/full"]).code(1).says(&["/dev/full"]);
}
