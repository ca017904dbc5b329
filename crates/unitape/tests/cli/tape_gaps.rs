//! What a tape lacks stays known: to its books, to what is derived from it, and to every merge of it.
//!
//! After retention `unitape book` showed 907 of 5,000 orders without a mark, exit code 0; and the books of a merge that lacked
//! the beginning of an input, or a damaged part, looked whole. A part that a repair had accepted without a check came
//! through merges and seals without a word.

use crate::common::{self, Ran, cat, file, files, run, tape_of_units, unitape, units};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A segment that these tapes fill several times.
const SEGMENT: u64 = 1 << 16;
const START: u64 = 1_772_440_000_000_000_000;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Orders of one venue, one a microsecond: an order of another price each time, and a best price every 100 if asked for.
fn orders(venue: &str, count: u64, is_quoted: bool) -> String {
    let mut lines = String::new();
    for n in 0..count {
        let ts = START + n * 1_000;
        let instr = if n % 2 == 0 { "VOD" } else { "BP" };
        let order = json!({"ts": ts, "kind": "order_new", "venue": venue, "instr": instr, "oid": format!("o{n}"), "side": "B",
            "px": (100 - n % 5).to_string(), "qty": "10"});
        lines += &format!("{order}\n");
        if is_quoted && n % 100 == 99 {
            let quote = json!({"ts": ts, "kind": "bbo", "venue": venue, "instr": instr, "bid": "100", "bid_qty": n.to_string()});
            lines += &format!("{quote}\n");
        }
    }
    lines
}

/// A tape in `dir/NAME` of a feed with this name.
fn tape_of(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let (input, tape) = (file(dir, &format!("{name}.jsonl"), lines), dir.join(name));
    let (feed, segment) = (format!("{name}=events::{}", input.display()), SEGMENT.to_string());
    run(["consolidate", "--feed", &feed, "--tape", text(&tape), "--segment-bytes", &segment, "--json"])
        .code(0);
    tape
}

fn retain(tape: &Path, segments: u64) {
    run(["tape", "retain", text(tape), "--bytes", &(segments * SEGMENT).to_string()]).code(0);
    assert!(unitape_tape::oldest_position(tape).unwrap().0 > 0);
}

/// Damages the first span of a segment.
fn damage(tape: &Path, segment: u64) {
    common::damage::flip(&tape.join(format!("segments/{segment:016x}.seg")), 4096 + 4000);
}

fn merge_arguments(inputs: &[&Path], tape: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["consolidate".into(), "--skip-damage".into(), "--json".into()];
    inputs.iter().for_each(|input| args.extend(["--tape-in".into(), (*input).into()]));
    args.extend(["--segment-bytes".into(), SEGMENT.to_string().into(), "--tape".into(), tape.into()]);
    args
}

fn merge(inputs: &[&Path], tape: &Path) -> Ran {
    run(merge_arguments(inputs, tape))
}

fn book(tape: &Path, args: &[&str]) -> Ran {
    run(["book", "show", text(tape), "--json"].iter().chain(args))
}

/// The venues, each with whether all its books are stale; some and some not is an error.
fn stale_venues(ran: &Ran) -> Vec<(String, bool)> {
    let mut venues: Vec<(String, bool)> = Vec::new();
    for line in ran.lines().iter().filter(|line| line["basis"] == "orders") {
        let venue = line["venue"].as_str().unwrap().to_owned();
        venues.push((venue, line["marks"].as_array().unwrap().contains(&json!("stale"))));
    }
    venues.sort();
    venues.dedup();
    venues
}

fn is(venue: &str, is_stale: bool) -> (String, bool) {
    (venue.to_owned(), is_stale)
}

/// Draws the book of VOD at XA over the times of the orders.
fn draw(tape: &Path, dir: &Path) -> Ran {
    let picture = dir.join("book.json");
    let (since, until) = (START.to_string(), (START + 9_000_000).to_string());
    let book = ["book", "picture", text(tape), "-o", text(&picture), "--symbols", "VOD", "--venue", "XA"];
    run(book.iter().copied().chain(["--since", &since, "--until", &until]))
}

/// Each form of `book`: at the end, at a point, from a checkpoint, and with nothing left of the books.
#[test]
fn books_without_their_beginning_are_stale() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), "a", &orders("XA", 5_000, false));
    assert_eq!(stale_venues(&book(&tape, &[]).code(0)), [is("XA", false)]);
    run(["book", "checkpoint", text(&tape), "--every", "1000"]).code(0);
    retain(&tape, 2);
    let ran = book(&tape, &[]).code(3).says(&["retention has removed what is before event"]);
    assert_eq!(stale_venues(&ran), [is("XA", true)]);
    let is_stale = |args: &[&str]| {
        assert_eq!(stale_venues(&book(&tape, args).code(3)), [is("XA", true)], "{args:?}");
    };
    is_stale(&["--at", "4990"]);
    is_stale(&["--symbols", "VOD"]);
    run(["book", "checkpoint", text(&tape), "--every", "100"]).code(0);
    is_stale(&[]);
    is_stale(&["--at", "4995"]);
    run(["book", "checkpoint", text(&tape), "--verify"]);
    run(["book", "bbo", text(&tape)]).code(3);
    book(&tape, &["--instr", "NONE"]).code(3);
    draw(&tape, dir.path()).code(3);

    // A status for the whole feed, or its next day, ends it.
    let more = orders("XA", 3_000, false)
        + &format!(
            "{}\n",
            json!({"ts": START + 9_000_000, "kind": "session", "venue": "XA", "phase": "close"})
        )
        + &format!(
            "{}\n",
            json!({"ts": START + 9_000_001, "kind": "session", "venue": "XA", "phase": "open"})
        );
    let next = tape_of(dir.path(), "next", &more);
    retain(&next, 2);
    book(&next, &[]).code(0);
}

/// Books of what follows damage that is passed over are stale, those before it are not.
#[test]
fn books_after_damage_are_stale() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), "a", &orders("XA", 5_000, false));
    damage(&tape, 2);
    book(&tape, &[]).code(3);
    assert_eq!(stale_venues(&book(&tape, &["--skip-damage"]).code(3)), [is("XA", true)]);
    let before = book(&tape, &["--skip-damage", "--at", "500"]).code(0);
    assert_eq!(stale_venues(&before), [is("XA", false)]);
}

/// The inputs of a merge that lacks something, and the books that it concerns.
struct MergeCase {
    name: &'static str,
    change: fn(&Path),
    gaps: usize,
}

const MERGE_CASES: [MergeCase; 4] = [
    MergeCase { name: "retained", change: |a| retain(a, 2), gaps: 1 },
    MergeCase { name: "damaged", change: |a| damage(a, 1), gaps: 1 },
    MergeCase {
        name: "twice",
        change: |a| {
            retain(a, 4);
            damage(a, 4);
        },
        gaps: 2,
    },
    MergeCase { name: "tail", change: |a| damage(a, last_segment(a)), gaps: 1 },
];

fn last_segment(tape: &Path) -> u64 {
    let segments = files(tape).into_keys().filter_map(|name| {
        name.strip_prefix("segments/")?.strip_suffix(".seg").and_then(|hex| u64::from_str_radix(hex, 16).ok())
    });
    segments.max().unwrap()
}

/// The gap is on the merge: verify names it, books of the feed are stale, those of the other feed are whole, and a merge of the
/// merge has it as well. A merge that is killed and continued has the same bytes.
#[test]
fn a_merge_says_on_its_tape_what_it_lacks() {
    for case in MERGE_CASES {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (
            tape_of(dir.path(), "a", &orders("XA", 3_000, false)),
            tape_of(dir.path(), "b", &orders("XB", 3_000, false)),
        );
        (case.change)(&a);
        let whole = dir.path().join("whole");
        let account = merge(&[&a, &b], &whole).code(3).json();
        assert_eq!(account["tape_gaps"], case.gaps, "{}: {account}", case.name);
        assert_eq!((&account["quarantined"], &account["by_feed"]["b"]["events"]), (&json!(0), &json!(3_000)));
        let events = cat(&whole, &["--kind", "quarantine"]);
        assert_eq!(events.len(), case.gaps, "{}: {events:?}", case.name);
        assert!(
            events.iter().all(|e| e["tape"] == "a" && e["reason"].as_str().unwrap().starts_with("tape_"))
        );
        let verified = run(["tape", "verify", text(&whole), "--json"]).code(3).json();
        assert_eq!(verified["problems"].as_array().unwrap().len(), case.gaps, "{verified}");
        assert!(verified.to_string().contains("of tape a positions"), "{verified}");
        let books = [is("XA", true), is("XB", false)];
        assert_eq!(stale_venues(&book(&whole, &[]).code(3)), books, "{}", case.name);

        // A rerun changes nothing, and a merge of the merge has it.
        let before = files(&whole);
        merge(&[&a, &b], &whole).code(3);
        assert!(before == files(&whole), "{}: a rerun changed the tape", case.name);
        let second = dir.path().join("second");
        merge(&[&whole], &second).code(3);
        run(["tape", "verify", text(&second)]).code(3).says(&[]);
        assert_eq!(stale_venues(&book(&second, &[]).code(3)), books, "{}: second", case.name);
        assert_eq!(cat(&second, &["--kind", "quarantine"]).len(), case.gaps);

        for kill_after in [1, 2, 4] {
            let tape = dir.path().join(format!("killed-{kill_after}"));
            let mut command = unitape();
            command.args(merge_arguments(&[&a, &b], &tape));
            let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = quiet.spawn().unwrap();
            let records = || {
                std::fs::read(tape.join("merge.state"))
                    .map_or(0, |s| s.iter().filter(|b| **b == b'\n').count())
            };
            while child.try_wait().unwrap().is_none() && records() < kill_after {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(merge(&[&a, &b], &tape).code(3).json()["tape_gaps"], case.gaps);
            common::assert_same(&whole, &tape, &format!("{}, killed after {kill_after} records", case.name));
        }
    }
}

/// A power loss may leave a merge that ends anywhere, also between the events of a gap and what follows it.
#[test]
fn a_merge_with_gaps_that_ends_anywhere_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (
        tape_of(dir.path(), "a", &orders("XA", 3_000, false)),
        tape_of(dir.path(), "b", &orders("XB", 3_000, false)),
    );
    retain(&a, 2);
    // Without --skip-damage the merge ends before its first batch, and leaves the record with nothing placed.
    damage(&b, 0);
    let refused = dir.path().join("refused");
    let mut strict = merge_arguments(&[&a, &b], &refused);
    strict.remove(1);
    run(&strict).code(3);
    let state = std::fs::read_to_string(refused.join("merge.state")).unwrap();
    let first = format!("{}\n", state.lines().next().unwrap());
    assert!(first.contains("\"end\":0"), "{first}");

    let whole = dir.path().join("whole");
    merge(&[&a, &b], &whole).code(3);
    let units = units(&whole);
    let is_gap = |unit: &[u8]| unit.windows(12).any(|w| w == b"tape_removed" || w == b"tape_damaged");
    let gaps: Vec<usize> = (0..units.len()).filter(|n| is_gap(&units[*n])).collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    for cut in gaps.iter().flat_map(|n| [*n, n + 1, n + 2]).chain([units.len() - 1]) {
        let tape = dir.path().join(format!("cut-{cut}"));
        tape_of_units(&tape, &whole, &units[..cut]);
        std::fs::write(tape.join("merge.state"), &first).unwrap();
        merge(&[&a, &b], &tape).code(3);
        assert!(common::units(&tape) == units, "cut after {cut} units");
    }
}

fn derive(tape: &Path, out: &Path) -> Ran {
    run(["book", "derive", text(tape), "--tape-out", text(out), "--json"])
}

/// The best prices continue after retention: what is there stays, and what follows is marked.
#[test]
fn best_prices_continue_after_retention() {
    let dir = tempfile::tempdir().unwrap();
    let lines = orders("XA", 4_000, false);
    let quotes = orders("XB", 4_000, true)
        .lines()
        .filter(|l| l.contains("bbo"))
        .map(|l| format!("{l}\n"))
        .collect::<String>();
    let mut all: Vec<&str> = lines.lines().chain(quotes.lines()).collect();
    all.sort_by_key(|line| serde_json::from_str::<Value>(line).unwrap()["ts"].as_u64());
    let tape = tape_of(dir.path(), "a", &format!("{}\n", all.join("\n")));
    let out = dir.path().join("nbbo");
    derive(&tape, &out).code(0);
    let before = units(&out);
    retain(&tape, 2);

    let counts = derive(&tape, &out).code(3).says(&["retention has removed what is before event"]).json();
    assert!(counts["appended"].as_u64().unwrap() > 0 && counts["stale"].as_u64().unwrap() > 0, "{counts}");
    let (after, files_after) = (units(&out), files(&out));
    assert!(after.len() > before.len() && after[..before.len()] == before[..]);
    let said = cat(&out, &["--kind", "status"]);
    assert!(said.iter().all(|e| e["venue"] == "NBBO" && e["state"] == "stale"), "{said:?}");
    assert_eq!(book(&out, &[]).code(3).lines()[0]["marks"], json!(["stale"]));
    run(["tape", "verify", text(&out)]).code(0);
    assert_eq!(derive(&tape, &out).code(3).json()["appended"], 0);
    assert!(files(&out) == files_after, "a rerun changed the output");
    for cut in before.len()..after.len() {
        let part = dir.path().join(format!("cut-{cut}"));
        tape_of_units(&part, &out, &after[..cut]);
        derive(&tape, &part).code(3);
        assert!(units(&part) == after, "after {cut} units");
    }

    // An output that begins after retention, and is cut anywhere.
    let fresh = dir.path().join("fresh");
    derive(&tape, &fresh).code(3);
    let whole = units(&fresh);
    // The orders of XA would add to the quantity of XB.
    let quantities = cat(&fresh, &["--kind", "bbo"]);
    let quantities = quantities.iter().filter_map(|e| e["bid_qty"].as_str()?.parse::<u64>().ok());
    assert!(quantities.clone().count() > 0 && quantities.max() < Some(4_000));
    for cut in [0, 1, 2, whole.len() / 2, whole.len() - 1] {
        let part = dir.path().join(format!("fresh-{cut}"));
        tape_of_units(&part, &fresh, &whole[..cut]);
        derive(&tape, &part).code(3);
        assert!(units(&part) == whole, "fresh, after {cut} units");
    }
}

/// What is derived from a merge that lacks something says so.
#[test]
fn what_is_derived_from_a_merge_with_a_gap_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (
        tape_of(dir.path(), "a", &orders("XA", 2_000, false)),
        tape_of(dir.path(), "b", &orders("XB", 2_000, true)),
    );
    retain(&a, 1);
    let tape = dir.path().join("merge");
    merge(&[&a, &b], &tape).code(3);
    let (nbbo, alerts, controls) =
        (dir.path().join("nbbo"), dir.path().join("alerts"), dir.path().join("controls"));
    derive(&tape, &nbbo).code(3).says(&["prices are stale"]);
    draw(&tape, dir.path()).code(3).says(&["a part of the tape is missing"]);
    let lacks = ["a merge that lacks parts of its inputs"];
    run(["watch", "replay", text(&tape), "--json"]).code(3).says(&lacks);
    run(["watch", "run", text(&tape), "--alerts", text(&alerts), "--until-end"]).code(3).says(&lacks);
    let rules = file(
        dir.path(),
        "rules.toml",
        "[[limit]]\nname = 'flood'\nscope = 'trader'\nmessages = 5\nwindow = '1s'\naction = 'kill'\n",
    );
    let words =
        ["breaker", "run", text(&tape), "--rules", text(&rules), "--control", text(&controls), "--until-end"];
    run(words).code(3).says(&lacks);
    run(["fx", "best", text(&tape)]).code(3).says(&lacks);
    run(["watch", "replay", text(&a), "--json"]).code(3).says(&["the scenarios have not seen it"]);
}

/// A part that a repair accepted without a check keeps its mark in merges, in seals and for alerts.
#[test]
fn an_accepted_part_keeps_its_mark() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (
        tape_of(dir.path(), "a", &orders("XA", 2_000, false)),
        tape_of(dir.path(), "b", &orders("XB", 2_000, false)),
    );
    common::damage::shorten(&a.join(format!("segments/{:016x}.crc", 1)), 0);
    run(["tape", "repair", text(&a), "--accept-unverified", "--apply"]).code(0);
    let part = run(["tape", "verify", text(&a), "--json"]).code(0).json()["accepted_unverified"][0].clone();
    let (from, to) = (&part[0], &part[1]);

    let tape = dir.path().join("merge");
    let account = merge(&[&a, &b], &tape).code(0).says(&["unverified: of tape a"]).json();
    assert_eq!(account["accepted_unverified"], json!([{"tape": "a", "from": from, "to": to}]));
    let events = cat(&tape, &["--full", "--kind", "quarantine"]);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (&events[0]["reason"], &events[0]["from"], &events[0]["tape"]),
        (&json!("tape_unverified"), from, &json!("a"))
    );
    let second = dir.path().join("second");
    merge(&[&tape], &second).code(0);
    for merged in [&tape, &second] {
        let verified = run(["tape", "verify", text(merged), "--json"]).code(0).json();
        assert!(verified["accepted_of_inputs"][0].as_str().unwrap().contains("of tape a"), "{verified}");
    }
    assert_eq!(merge(&[&a, &b], &tape).code(0).json()["accepted_unverified"], account["accepted_unverified"]);

    // Its events are all there, so no book is stale; who concludes from them says so.
    for tape in [&a, &tape] {
        let ran = book(tape, &[]).code(3).says(&["without a check"]);
        assert!(stale_venues(&ran).iter().all(|(_, is_stale)| !is_stale));
        run(["watch", "replay", text(tape), "--json"]).code(3).says(&["without a check"]);
    }
    let alerts = dir.path().join("alerts");
    run(["watch", "run", text(&a), "--alerts", text(&alerts), "--until-end"])
        .code(3)
        .says(&["without a check"]);

    let store = dir.path().join("store");
    let sealed = run(["store", "seal", text(&a), "--store", text(&store), "--json"]).code(0).json();
    assert_eq!(sealed["accepted_unverified"], json!([[from, to]]));
    let info = run(["store", "info", text(&store), "--json"]).code(0).json();
    let kept = &info["accepted_unverified"];
    assert_eq!((&kept[0]["from"], &kept[0]["to"], kept.as_array().unwrap().len()), (from, to, 1));
    assert!(run(["store", "info", text(&store)]).code(0).text().contains("never verified"));
}
