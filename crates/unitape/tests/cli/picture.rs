//! `unitape book picture`. A picture that shows another book than the tape has would mislead who decides on a case.

use crate::common::{self, file, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use unitape_sim::Rng;

/// A simulated day with orders, levels of depth, best prices and trades.
fn market(dir: &Path) -> PathBuf {
    let (day, tape) = (dir.join("day"), dir.join("t"));
    let fixed = ["generate", "market", "--events", "6000", "--instruments", "6", "--minutes", "60", "--full"];
    run(fixed.iter().chain(&["--seed", "11", "--out", day.to_str().unwrap()])).code(0);
    let feed = format!("f=events::{}", day.join("events.jsonl").display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0);
    tape
}

fn picture(
    tape: &Path,
    out: &Path,
    [instr, venue]: [&str; 2],
    [since, until]: [i64; 2],
    more: &[&str],
) -> common::Ran {
    let (since, until) = (since.to_string(), until.to_string());
    let fixed = [
        "book",
        "picture",
        tape.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--symbols",
        instr,
        "--venue",
        venue,
    ];
    run(fixed.iter().chain(&["--since", &since, "--until", &until]).chain(more))
}

/// The listing of a tape with most orders, and the times of its first and last event.
fn busiest(tape: &Path) -> ([String; 2], [i64; 2]) {
    let mut counts = std::collections::BTreeMap::<[String; 2], (u64, i64, i64)>::new();
    for event in common::cat(tape, &["--kind", "order_new"]) {
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        let ts = event["ts"].as_i64().unwrap();
        let entry = counts.entry([text("instr"), text("venue")]).or_insert((0, ts, ts));
        *entry = (entry.0 + 1, entry.1, ts);
    }
    let (listing, (_, first, last)) = counts.into_iter().max_by_key(|(_, count)| count.0).unwrap();
    (listing, [first, last])
}

fn levels(book: &Value, side: &str) -> Vec<Value> {
    let level = |level: &Value| json!([level["px"], level["qty"]]);
    book[side].as_array().unwrap().iter().map(level).collect()
}

/// A column is the book that `book --at` prints for its time: of a short part, where each change has a column, and of the whole
/// day, where a column has a slice of time.
#[test]
fn each_column_is_the_book_at_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let tape = market(dir.path());
    let ([instr, venue], [first, last]) = busiest(&tape);
    let mut rng = Rng::new(3);
    let part = (last - first) / 5;
    for (name, [since, until]) in [("day", [first, last + 1]), ("part", [first + 2 * part, first + 3 * part])]
    {
        let out = dir.path().join(format!("{name}.json"));
        picture(&tape, &out, [&instr, &venue], [since, until], &[]).code(0);
        let picture: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
        let columns = picture["columns"].as_array().unwrap();
        assert!((5..=401).contains(&columns.len()), "{} columns", columns.len());
        assert_eq!(picture["basis"], "orders");
        if name == "part" {
            assert_eq!(picture["left_out"]["book_changes"], 0, "every change of a short part has its column");
        }
        for _ in 0..10 {
            let column = &columns[rng.below(columns.len() as u64) as usize];
            let at = column["ts"].as_str().unwrap();
            // The column at the beginning is the book of before the part.
            let at = if at == since.to_string() { (since - 1).to_string() } else { at.to_owned() };
            let args = [
                "book",
                "show",
                tape.to_str().unwrap(),
                "--symbols",
                &instr,
                "--venue",
                &venue,
                "--json",
                "--basis",
                "orders",
            ];
            let books = run(args.iter().chain(&["--depth", "60", "--at", &at])).lines();
            let book = books.iter().find(|line| line["basis"] == "orders");
            let empty = json!({ "bids": [], "asks": [] });
            let book = book.unwrap_or(&empty);
            assert_eq!(json!(levels(book, "bids")), column["bids"], "bids at {at}");
            assert_eq!(json!(levels(book, "asks")), column["asks"], "asks at {at}");
        }
        let trades = common::cat(&tape, &["--kind", "trade", "--instr", &instr, "--venue", &venue]);
        let times = |trade: &&Value| (since..until).contains(&trade["ts"].as_i64().unwrap());
        let trades: Vec<_> =
            trades.iter().filter(times).map(|t| (t["seq"].to_string(), t["px"].clone())).collect();
        let drawn = picture["trades"].as_array().unwrap().iter();
        let drawn: Vec<_> = drawn.map(|t| (t["seq"].as_str().unwrap().to_owned(), t["px"].clone())).collect();
        assert_eq!(drawn, trades);
    }
}

/// Orders are drawn with each step, and only those of the parties that were asked for; names are text, not markup.
#[test]
fn orders_have_their_steps_and_names_are_text() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = "A<script>alert(1)</script>\u{202e}&\"'";
    let order = |ts: i64, kind: &str, oid: &str, owner: &str, px: &str| {
        json!({"ts": ts, "kind": kind, "oid": oid, "side": "B", "px": px, "qty": "5", "venue": "XLON", "instr": "I<b>",
               "owner": owner})
    };
    let lines = [
        order(1_000, "order_new", "<i>1", hostile, "10"),
        order(2_000, "order_new", "2", "OTHER", "9.5"),
        order(3_000, "order_amend", "<i>1", hostile, "10.5"),
        json!({"ts": 4_000, "kind": "exec", "oid": "<i>1", "side": "B", "px": "10.5", "qty": "2", "venue": "XLON",
               "instr": "I<b>", "owner": hostile}),
        json!({"ts": 4_000, "kind": "trade", "px": "10.5", "qty": "2", "side": "S", "venue": "XLON", "instr": "I<b>"}),
        json!({"ts": 5_000, "kind": "order_cancel", "oid": "<i>1", "side": "B", "venue": "XLON", "instr": "I<b>"}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let tape = dir.path().join("t");
    let feed = format!("f=events::{}", file(dir.path(), "e.jsonl", text).display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let (svg, data) = (dir.path().join("p.svg"), dir.path().join("p.json"));
    let listing = ["I<b>", "XLON"];
    picture(&tape, &data, listing, [500, 6_000], &["--party", hostile]).code(0);
    let drawn: Value = serde_json::from_slice(&std::fs::read(&data).unwrap()).unwrap();
    let orders = drawn["orders"].as_array().unwrap();
    assert_eq!(orders.len(), 1);
    assert_eq!((&orders[0]["oid"], &orders[0]["owner"]), (&json!("<i>1"), &json!(hostile)));
    let kinds: Vec<_> =
        orders[0]["steps"].as_array().unwrap().iter().map(|step| step["kind"].clone()).collect();
    assert_eq!(kinds, ["new", "amend", "fill", "cancel"]);
    picture(&tape, &svg, listing, [500, 6_000], &[]).code(0);
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(!svg.contains("<script") && !svg.contains("<i>") && !svg.contains("I<b>"), "{svg}");
    assert!(svg.contains("order &lt;i&gt;1") && svg.contains("A&lt;script&gt;"), "{svg}");
    assert!(!svg.contains('\u{202e}') && !svg.contains("style") && !svg.contains("http-equiv"));
    let outside = svg.matches("http").count();
    assert_eq!(outside, 1, "the name space alone");

    let nothing = picture(&tape, &data, ["VOD", "XLON"], [500, 6_000], &[]).code(2);
    nothing.says(&["no instrument VOD"]);
    picture(&tape, &data, listing, [6_000, 6_000], &[]).code(2).says(&["ends before it begins"]);
    run(["book", "picture", tape.to_str().unwrap(), "-o", "p.svg"]).code(2).says(&["--symbols"]);
}
