//! Quotes that name one side, from a file to each reader. `unitape book bbo` printed books of one side without a mark, exit
//! code 0, because the quote of one side had taken the other away.

use crate::common::{Ran, cat, file, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A tape of a feed of events.
fn tape_of(dir: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (input, tape) = (file(dir, &format!("{name}.jsonl"), &lines), dir.join(name));
    let feed = format!("{name}=events::{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", text(&tape), "--segment-bytes", "65536", "--json"])
        .code(0);
    tape
}

fn book(tape: &Path, args: &[&str]) -> Ran {
    run(["book", "bbo", text(tape), "--json"].iter().chain(args))
}

fn best(line: &Value) -> [Value; 2] {
    ["bid", "ask"].map(|side| line[side].clone())
}

/// A quote of one side of VOD.
fn side(ts: u64, venue: &str, side: &str, px: &str) -> Value {
    json!({"ts": ts, "kind": "bbo", "venue": venue, "instr": "VOD", side: px, "partial": true})
}

fn whole(ts: u64, venue: &str, bid: &str, ask: &str) -> Value {
    json!({"ts": ts, "kind": "bbo", "venue": venue, "instr": "VOD", "bid": bid, "ask": ask})
}

const LAYOUT: &str = r#"
name = "ticks"
separator = "tab"
zone = "EET"
column = [
  { name = "<DATE>", type = "date", form = "YYYY.MM.DD", required = true },
  { name = "<TIME>", type = "time", form = "HH:MM:SS.fff", date = "<DATE>", required = true },
  { name = "<BID>", type = "decimal" },
  { name = "<ASK>", type = "decimal" },
]
"#;

const MAPPING: &str = r#"
name = "ticks"
format = "csv"
layout = "layout.toml"
[message]
ts = "<TIME>"
unlisted = "drop"
[[rule]]
when = { "@record" = "row" }
[[rule.event]]
kind = "bbo"
empty_side = "unchanged"
[rule.event.fields]
instr = { const = "EURUSD" }
bid = "<BID>"
ask = "<ASK>"
[[rule]]
ignore = true
"#;

const TICKS: &str = "<DATE>\t<TIME>\t<BID>\t<ASK>\t<LAST>\t<VOLUME>\t<FLAGS>\n\
                     2026.03.02\t00:00:03.123\t1.08001\t1.08010\t\t\t6\n\
                     2026.03.02\t00:00:03.456\t\t1.08012\t\t\t4\n\
                     2026.03.02\t00:00:03.600\t\t\t1.08\t1\t24\n\
                     2026.03.02\t00:00:03.789\t1.08003\t\t\t\t2\n";

/// Flags 2 and 4: the bid, the ask has changed. A row of another last price alone is no quote, and is counted.
#[test]
fn ticks_of_one_side_reach_every_reader() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("layout.toml"), LAYOUT).unwrap();
    let mapping = file(dir.path(), "mapping.toml", MAPPING);
    let ticks = file(dir.path(), "EURUSD.csv", TICKS);
    let tape = dir.path().join("tape");
    let feed = format!("m=csv:{}:{}", mapping.display(), ticks.display());
    let account = run(["consolidate", "--feed", &feed, "--tape", text(&tape), "--json"]).code(0).json();
    assert_eq!(
        ["events", "quarantined", "ignored"].map(|name| account[name].clone()),
        [json!(3), json!(0), json!(2)]
    );

    let events = cat(&tape, &[]);
    assert_eq!(
        events.iter().map(|e| e["partial"].clone()).collect::<Vec<_>>(),
        [Value::Null, json!(true), json!(true)]
    );
    assert_eq!(best(&events[1]), [Value::Null, json!("1.08012")], "the tape has what the source said");

    let books = book(&tape, &[]).code(0).lines();
    let prices = [["1.08001", "1.0801"], ["1.08001", "1.08012"], ["1.08003", "1.08012"]];
    assert_eq!(books.iter().map(best).collect::<Vec<_>>(), prices.map(|line| line.map(Value::from)));
    // A checkpoint has the sides, too.
    run(["book", "checkpoint", text(&tape), "--every", "1"]).code(0);
    let at = run(["book", "show", text(&tape), "--at", "3", "--json"]).code(0).lines();
    assert_eq!((&at[0]["bids"][0]["px"], &at[0]["asks"][0]["px"]), (&json!("1.08003"), &json!("1.08012")));

    let store = dir.path().join("store");
    run(["store", "seal", text(&tape), "--store", text(&store)]).code(0);
    for args in [["tape", "cat", text(&tape)], ["store", "scan", text(&store)]] {
        let rows = run(args.iter().chain(&["--schema", "bbo", "--json"])).code(0).lines();
        let cond: Vec<_> = rows.iter().map(|row| row["cond"].clone()).collect();
        assert_eq!(cond, [Value::Null, json!("partial"), json!("partial")], "{args:?}");
        assert_eq!((&rows[1]["bid_px_00"], &rows[1]["ask_px_00"]), (&Value::Null, &json!("1.08012")));
    }

    let explained = run(["mapping", "check", text(&mapping), text(&ticks), "--messages", "4"]).code(0);
    let text = explained.text();
    assert!(text.contains("partial    true                     from empty_side \"unchanged\""), "{text}");
    assert!(text.contains("is ignored by rule 1"), "{text}");
    assert!(text.contains("no event 1 (line 10): a side of the quote is not there"), "{text}");
}

/// A side that nobody has stated has no price, and no exit code of a good book.
#[test]
fn a_book_with_an_unknown_side_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = vec![side(1, "OTC", "bid", "9")];
    let ran = book(&tape_of(dir.path(), "one", &lines), &[]).code(3).lines();
    assert_eq!((best(&ran[0]), &ran[0]["marks"]), ([json!("9"), Value::Null], &json!(["stale"])));
    lines.push(side(2, "OTC", "ask", "10"));
    let both = tape_of(dir.path(), "both", &lines);
    let last = book(&both, &[]).lines().pop().unwrap();
    assert_eq!((best(&last), &last["marks"]), ([json!("9"), json!("10")], &json!([])));
    run(["book", "show", text(&both), "--json"]).code(0);
}

/// Each input's quotes keep to their listing, however the merge mixes them.
#[test]
fn a_merge_of_tapes_keeps_the_sides() {
    let dir = tempfile::tempdir().unwrap();
    let a = tape_of(
        dir.path(),
        "a",
        &[whole(1, "XA", "9", "12"), side(4, "XA", "bid", "9.5"), side(7, "XA", "ask", "11")],
    );
    let b = tape_of(
        dir.path(),
        "b",
        &[whole(2, "XB", "8", "11.5"), side(5, "XB", "ask", "10.5"), side(6, "XB", "bid", "9.8")],
    );
    let merged = dir.path().join("merged");
    run(["consolidate", "--tape-in", text(&a), "--tape-in", text(&b), "--tape", text(&merged), "--json"])
        .code(0);
    let over = book(&merged, &["--venue", "NBBO"]).code(0).lines();
    let prices = [["9", "11.5"], ["9.5", "11.5"], ["9.5", "10.5"], ["9.8", "10.5"]];
    assert_eq!(over.iter().map(best).collect::<Vec<_>>(), prices.map(|line| line.map(Value::from)));
}

/// What retention has removed may have been a side.
#[test]
fn a_tape_without_its_beginning_has_a_side_when_it_is_stated_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = vec![whole(1, "XA", "9", "12")];
    lines.extend((2..2_000).map(|ts| side(ts, "XA", "bid", &format!("9.{ts}"))));
    let cut = |name: &str, lines: &[Value]| {
        let tape = tape_of(dir.path(), name, lines);
        run(["tape", "retain", text(&tape), "--bytes", "131072"]).code(0);
        assert!(unitape_tape::oldest_position(&tape).unwrap().0 > 0);
        let derived = dir.path().join(format!("{name}-nbbo"));
        let options = ["--json", "--tape-out", text(&derived)];
        run(["book", "derive", text(&tape)].iter().chain(&options)).code(3);
        let last = book(&tape, &[]).code(3).lines().into_iter().rfind(|line| line["kind"] == "bbo").unwrap();
        (best(&last), last["marks"].clone(), cat(&derived, &["--kind", "bbo"]))
    };
    let (sides, marks, derived) = cut("bids", &lines);
    assert_eq!((sides, marks), ([json!("9.1999"), Value::Null], json!(["stale"])));
    assert_eq!(derived, [] as [Value; 0], "no best price of a book that is not known");
    lines.push(side(2_000, "XA", "ask", "11"));
    let (sides, marks, derived) = cut("asks", &lines);
    assert_eq!((sides.clone(), marks), ([json!("9.1999"), json!("11")], json!([])));
    assert_eq!(derived.iter().map(best).collect::<Vec<_>>(), [sides]);
}
