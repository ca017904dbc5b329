//! `unitape book derive`. `book --bbo --venue NBBO` mixes prices that a feed brought with derived ones, and has none of
//! an instrument with one venue.

use crate::common::{Ran, cat, file, files, run, tape_of_units, units};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use unitape_book::twin::naive::Naive;
use unitape_feed::TapeAccount;
use unitape_model::{DefinitionTable, NameKind, Price};
use unitape_tape::{Reader, StartPosition};

fn derive(tape: &Path, out: &Path) -> Ran {
    let (tape, out) = (tape.to_str().unwrap(), out.to_str().unwrap());
    run(["book", "derive", tape, "--tape-out", out, "--json"])
}

fn consolidate(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let (input, tape) = (file(dir, "input.jsonl", lines), dir.join(name));
    let feed = format!("f=events::{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0);
    tape
}

/// A day of a market with its own NBBO, levels, halts and auctions.
fn market(dir: &Path) -> String {
    let day = dir.join("day");
    let fixed = ["generate", "market", "--events", "6000", "--instruments", "6", "--minutes", "60", "--full"];
    run(fixed.iter().chain(&["--seed", "11", "--out", day.to_str().unwrap()])).code(0);
    fs::read_to_string(day.join("events.jsonl")).unwrap()
}

/// The quote of an event on the output, and its cause.
fn row(event: &Value) -> Value {
    let field = |name: &str| event.get(name).cloned().unwrap_or(Value::Null);
    assert_eq!((&field("kind"), &field("venue")), (&json!("bbo"), &json!("NBBO")), "{event}");
    let names = ["ts", "instr", "bid", "bid_qty", "ask", "ask_qty", "cause"];
    names.iter().map(|name| field(name)).collect()
}

fn rows(tape: &Path) -> Vec<Value> {
    cat(tape, &[]).iter().map(row).collect()
}

/// The same of the slow books: all of them are looked at after each event.
fn naive_rows(tape: &Path) -> Vec<Value> {
    let account = TapeAccount::load(tape).unwrap();
    let nbbo = account.names.dictionary().get(NameKind::Venue, b"NBBO");
    let mut books = Naive::new(None, nbbo.map(|id| id as u16));
    let (mut names, mut last) = (DefinitionTable::default(), BTreeMap::new());
    let mut reader = Reader::open(tape, StartPosition::Oldest).unwrap();
    let (id, mut all) = (reader.id(), Vec::new());
    while let Some(frame) = reader.next().unwrap() {
        let position = frame.position;
        let Some(event) = names.admit_frame(frame.bytes).unwrap().filter(|e| !e.header().is_meta()) else {
            continue;
        };
        books.on_event(&event);
        let mut changed = BTreeMap::new();
        for line in books.dump().lines().filter_map(|line| line.strip_prefix("over ")) {
            let (instr, rest) = line.split_once(" [").unwrap();
            let quote = quote(rest);
            if last.insert(instr.to_owned(), quote.clone()).unwrap_or_else(|| vec![Value::Null; 4]) != quote {
                let instr: u32 = instr.trim_start_matches('#').parse().unwrap();
                changed.insert(instr, quote);
            }
        }
        for (instr, quote) in changed {
            let instr = names.name(NameKind::Instrument, instr);
            let mut row = vec![json!(event.ts_event().0), json!(instr)];
            row.extend(quote);
            row.push(json!({ "tape": id.to_string(), "position": position.0 }));
            all.push(Value::Array(row));
        }
    }
    all
}

/// Price and quantity of both sides of `Some((px, "qty", venue, venues)), None] marks`.
fn quote(mut text: &str) -> Vec<Value> {
    let mut quote = Vec::new();
    for _ in 0..2 {
        if let Some(rest) = text.strip_prefix("Some((") {
            let (px, rest) = rest.split_once(", \"").unwrap();
            let (qty, rest) = rest.split_once('"').unwrap();
            quote.push(json!(Price(px.parse().unwrap()).to_string()));
            quote.push(if qty == "0" { Value::Null } else { json!(qty) });
            text = rest.split_once("))").unwrap().1;
        } else {
            text = text.strip_prefix("None").unwrap();
            quote.extend([Value::Null, Value::Null]);
        }
        text = text.trim_start_matches(", ");
    }
    quote
}

/// A size over the venues that has more digits than a field holds is left out, and counted.
#[test]
fn a_size_that_no_field_holds_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let quote = |ts: u64, venue: &str| json!({"kind": "bbo", "ts": ts, "venue": venue, "instr": "VOD", "bid": "10", "bid_qty": i64::MAX.to_string()});
    let open = |venue: &str| json!({"kind": "session", "ts": 1, "venue": venue, "phase": "open"});
    let lines =
        [open("XLON"), open("XPAR"), quote(2, "XLON"), quote(3, "XPAR")].map(|line| format!("{line}\n"));
    let tape = consolidate(dir.path(), "tape", &lines.concat());
    let out = dir.path().join("nbbo");
    let counts = derive(&tape, &out).code(0).json();
    assert_eq!(counts, json!({ "events": 2, "appended": 2, "quantities_left_out": 1 }));
    let sizes: Vec<_> = rows(&out).iter().map(|row| row[3].clone()).collect();
    assert_eq!(sizes, [json!(i64::MAX.to_string()), Value::Null]);
}

/// Every line is that of books that are looked at as a whole after each event, with the time and the position of that event; the
/// market's own NBBO changes nothing.
#[test]
fn each_best_price_is_that_of_the_slow_books() {
    let dir = tempfile::tempdir().unwrap();
    let lines = market(dir.path());
    let tape = consolidate(dir.path(), "tape", &lines);
    let out = dir.path().join("nbbo");
    let counts = derive(&tape, &out).code(0).json();
    let (got, want) = (rows(&out), naive_rows(&tape));
    assert!(want.len() > 200, "{} best prices", want.len());
    for (n, (got, want)) in got.iter().zip(&want).enumerate() {
        assert_eq!(got, want, "line {n}");
    }
    assert_eq!(got.len(), want.len());
    assert_eq!(counts, json!({ "events": want.len(), "appended": want.len(), "quantities_left_out": 0 }));
    let whole = run(["tape", "verify", out.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(whole["events"], want.len());

    // Without the feed's NBBO the prices are the same; positions and ids are others.
    let other: String = lines.lines().filter(|l| !l.contains("\"NBBO\"")).map(|l| format!("{l}\n")).collect();
    assert!(other.len() < lines.len());
    let (tape, out) = (consolidate(dir.path(), "bare", &other), dir.path().join("bare-nbbo"));
    derive(&tape, &out).code(0);
    let prices =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|r| json!(r.as_array().unwrap()[..6])).collect() };
    assert_eq!(prices(&rows(&out)), prices(&got));
}

/// `book --bbo --venue NBBO` prints nothing of an instrument with one venue. A mark alone is no change.
#[test]
fn one_venue_has_a_best_price() {
    let dir = tempfile::tempdir().unwrap();
    let quote = |ts: u32, bid: &str, qty: u32| {
        format!(
            "{{\"kind\":\"bbo\",\"ts\":{ts},\"venue\":\"XLON\",\"instr\":\"I\",\"bid\":\"{bid}\",\"bid_qty\":\"{qty}\"}}\n"
        )
    };
    let clock = "{\"kind\":\"clock\",\"ts\":4}\n";
    let foreign = quote(5, "99", 1).replace("XLON", "NBBO");
    let lines = [
        quote(1, "10", 5),
        quote(2, "10", 5),
        quote(3, "10", 7),
        clock.to_owned(),
        foreign,
        quote(6, "9.5", 7),
    ];
    let tape = consolidate(dir.path(), "tape", &lines.concat());
    let out = dir.path().join("nbbo");
    derive(&tape, &out).code(0);
    let got: Vec<_> = rows(&out).iter().map(|r| json!([r[0], r[2], r[3], r[4]])).collect();
    let want = [json!([1, "10", "5", null]), json!([3, "10", "7", null]), json!([6, "9.5", "7", null])];
    assert_eq!(got, want);
}

/// The quotes of a market without what is as it was. A session or status empties books or makes them stale, so that the next
/// quote states all.
fn only_changes(lines: &str) -> String {
    let (mut before, mut out) = (BTreeMap::new(), String::new());
    for line in lines.lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if ["session", "status"].iter().any(|kind| event["kind"] == *kind) {
            before.clear();
        }
        if event["kind"] == "bbo" {
            let listing = ["venue", "instr"].map(|name| event[name].to_string());
            let quote = ["bid", "bid_qty", "ask", "ask_qty"].map(|name| event[name].clone());
            if let Some(known) = before.insert(listing, quote.clone()) {
                event["partial"] = json!(true);
                for ((name, old), new) in ["bid", "bid_qty", "ask", "ask_qty"].iter().zip(known).zip(quote) {
                    match (old == new, &new) {
                        (true, _) => event[*name].take(),
                        // A side that goes is stated by its quantity.
                        (false, Value::Null) if name.ends_with("qty") => {
                            std::mem::replace(&mut event[*name], json!("0"))
                        }
                        _ => continue,
                    };
                }
            }
        }
        out += &format!("{event}\n");
    }
    out
}

/// Quotes that state only what changed give the best prices of those that state both sides; at each event, with the same venues.
#[test]
fn quotes_of_changes_give_the_same_best_prices() {
    let dir = tempfile::tempdir().unwrap();
    let lines = market(dir.path());
    let changes = only_changes(&lines);
    let partial = changes.lines().filter(|line| line.contains("\"partial\":true"));
    assert!(partial.clone().count() > 500, "{}", partial.count());
    let [whole, changed] = [("whole", &lines), ("changed", &changes)].map(|(name, lines)| {
        let (tape, out) = (consolidate(dir.path(), name, lines), dir.path().join(format!("{name}-nbbo")));
        derive(&tape, &out).code(0);
        assert_eq!(rows(&out), naive_rows(&tape), "{name}");
        // Run again, nothing is left to say: the books are those of the tape.
        assert_eq!(derive(&tape, &out).code(0).json()["appended"], 0);
        let rows: Vec<Value> = rows(&out).iter().map(|row| json!(row.as_array().unwrap()[..6])).collect();
        let mut books = run(["book", "bbo", tape.to_str().unwrap(), "--json"]).code(0).lines();
        books.iter_mut().for_each(|line| line["position"] = Value::Null);
        (rows, books)
    });
    assert!(whole.0.len() > 200);
    assert_eq!(whole, changed);
}

/// A command that is killed leaves an output that ends anywhere, also between two prices of one event; and an input grows. The
/// output is the same as in one go.
#[test]
fn an_output_that_ends_anywhere_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let lines = market(dir.path());
    let tape = consolidate(dir.path(), "tape", &lines);
    let whole = dir.path().join("whole");
    derive(&tape, &whole).code(0);
    let (all, want) = (units(&whole), files(&whole));
    for cut in [0, 1, 2, 57, all.len() / 2, all.len() - 1, all.len()] {
        let out = dir.path().join(format!("cut-{cut}"));
        tape_of_units(&out, &whole, &all[..cut]);
        let counts = derive(&tape, &out).code(0).json();
        assert_eq!(
            counts,
            json!({ "events": all.len(), "appended": all.len() - cut, "quantities_left_out": 0 })
        );
        assert!(units(&out) == all, "after {cut} units");
        assert!(files(&out) == want, "after {cut} units: other files");
    }
    let (input, out) = (units(&tape), dir.path().join("grown-nbbo"));
    for (n, cut) in [40, input.len() / 3, input.len() / 2, input.len()].into_iter().enumerate() {
        let grown = dir.path().join(format!("grown-{n}"));
        tape_of_units(&grown, &tape, &input[..cut]);
        derive(&grown, &out).code(0);
    }
    assert!(units(&out) == all && files(&out) == want);

    // The input lost its end, or is another tape, or the output is something else.
    let short = dir.path().join("grown-1");
    derive(&short, &whole).code(3).says(&["the input was cut or is another one"]);
    let other = consolidate(dir.path(), "other", lines[..lines.len() / 2].rsplit_once('\n').unwrap().0);
    derive(&other, &whole).code(3).says(&["does not have the best prices of this tape"]);
    derive(&tape, &other).code(3).says(&["does not have the best prices of this tape"]);
    assert!(files(&whole) == want, "a refused command has changed the output");
}

/// Options of books that it would ignore are mistakes.
#[test]
fn options_that_do_not_go_together_are_refused() {
    for more in [&["--derive", "NBBO"][..], &["--tape-out", "x"], &["--derive", "XLON", "--tape-out", "x"]] {
        run(["book", "tape"].iter().chain(more)).code(2);
    }
    for more in [&["--bbo"][..], &["--venue", "XLON"], &["--at", "3"], &["--orders"]] {
        run(["book", "derive", "tape", "--tape-out", "x"].iter().chain(more)).code(2);
    }
}
