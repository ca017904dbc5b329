//! `unitape book` against the simulator's truth, at points of a tape, live, and what ends it with which code.

use crate::common::{self, Ran, file, run, unitape};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use unitape_sim::day::DropCopyTruth;

fn book(tape: &Path, args: &[&str]) -> Ran {
    run_book("show", tape, args)
}

fn best_prices(tape: &Path, args: &[&str]) -> Ran {
    run_book("bbo", tape, args)
}

fn run_book(subcommand: &str, tape: &Path, args: &[&str]) -> Ran {
    let start = ["book".as_ref(), subcommand.as_ref(), tape.as_os_str()];
    run(start.into_iter().chain(args.iter().map(AsRef::as_ref)))
}

/// A tape of a simulated flow, and the flow's truth.
fn simulated(dir: &Path) -> (PathBuf, DropCopyTruth) {
    let (bytes, truth) = common::flow(33, 6_000, false);
    let tape = dir.join("tape");
    common::consolidate_orders(&file(dir, "flow.fix", bytes), &tape, 0);
    (tape, truth)
}

/// A tape of event lines, written short: the kind, then `field=value`; of VOD at XLON unless a line says otherwise.
fn write_event_lines(dir: &Path, lines: &[&str]) -> PathBuf {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let (kind, fields) = line.split_once(' ').unwrap();
        let mut object = serde_json::json!({ "seq": n + 1, "ts": (n + 1) * 1_000, "kind": kind });
        for (name, value) in [("venue", "XLON"), ("instr", "VOD")]
            .into_iter()
            .chain(fields.split(' ').map(|f| f.split_once('=').unwrap()))
        {
            object[name] = value.into();
        }
        text += &format!("{object}\n");
    }
    let (lines, tape) = (file(dir, "lines.jsonl", text), dir.join("spoken"));
    run(["consolidate".as_ref(), lines.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    tape
}

fn best(book: &Value, side: &str) -> [Option<String>; 2] {
    ["px", "qty"].map(|key| book[side][0][key].as_str().map(str::to_owned))
}

/// A book that is not the simulator's is worth nothing, however it was made.
#[test]
fn the_last_best_prices_are_those_of_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, truth) = simulated(dir.path());
    let books = book(&tape, &["--json", "--depth", "100"]).code(0).lines();
    for bbo in &truth.bbo {
        let mine: Vec<&Value> =
            books.iter().filter(|b| b["venue"] == bbo.venue && b["instr"] == bbo.instr).collect();
        let bases: Vec<_> = mine.iter().map(|b| b["basis"].as_str().unwrap()).collect();
        assert_eq!(bases, ["orders", "bbo"]);
        for book in mine {
            assert_eq!(best(book, "bids"), [bbo.bid.clone(), bbo.bid_qty.clone()], "{bbo:?}");
            assert_eq!(best(book, "asks"), [bbo.ask.clone(), bbo.ask_qty.clone()], "{bbo:?}");
            assert_eq!(book["faults"], serde_json::json!({}));
        }
    }
    let over_all = books.iter().filter(|b| b["venue"] == "NBBO").count();
    assert_eq!((over_all, truth.bbo.len()), (12, 36));
    // For people, and one of it.
    let instr = &truth.bbo[0].instr;
    let shown = book(&tape, &["--symbols", instr, "--venue", "CHIX", "--orders"]).code(0);
    assert!(shown.text().starts_with(&format!("{instr} at CHIX, from orders")), "{}", shown.text());
    assert!(!shown.text().contains("XLON") && shown.text().contains("O00000"), "{}", shown.text());
    let one = book(&tape, &["--symbols", instr, "--venue", "NBBO", "--json"]).code(0).json();
    assert!(one["venue"] == "NBBO" && one["bid_venues"].as_array().is_some_and(|v| !v.is_empty()), "{one}");
}

/// The changes of the published best prices are the published best prices; those of the orders lead to the same.
#[test]
fn best_prices_as_they_change() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, truth) = simulated(dir.path());
    let keys = ["seq", "ts", "kind", "venue", "instr", "bid", "bid_qty", "ask", "ask_qty"];
    let essence = |v: &Value| keys.map(|k| v[k].clone());
    let published = common::cat(&tape, &["--kind", "bbo"]);
    let changes = best_prices(&tape, &["--json", "--basis", "bbo"]).code(0).lines();
    assert!(published.iter().map(essence).eq(changes.iter().map(essence)), "{}", changes.len());

    let instr = &truth.bbo[5].instr;
    let args = ["--json", "--basis", "orders", "--symbols", instr, "--venue", truth.bbo[5].venue];
    let of_orders = best_prices(&tape, &args).code(0).lines();
    let last = of_orders.last().unwrap();
    assert_eq!(last["bid"].as_str(), truth.bbo[5].bid.as_deref());
    assert_eq!(last["ask_qty"].as_str(), truth.bbo[5].ask_qty.as_deref());
    let marks = |v: &Value| v["marks"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
    let crossed = |v: &&Value| !marks(v).is_empty() && !marks(v).contains(&"\"auction\"".to_owned());
    assert_eq!(
        of_orders.iter().find(crossed),
        None,
        "a venue of the simulator crosses itself in auctions alone"
    );

    // Over all venues: each line differs from the one before it, and names who has the price.
    let over_all = best_prices(&tape, &["--json", "--symbols", instr, "--venue", "NBBO"]).code(0).lines();
    assert!(over_all.len() > 20 && over_all.iter().all(|v| v["venue"] == "NBBO"));
    let price = |v: &Value| {
        ["bid", "bid_qty", "ask", "ask_qty", "bid_venues", "ask_venues", "marks"].map(|k| v[k].clone())
    };
    assert!(over_all.windows(2).all(|w| price(&w[0]) != price(&w[1])));
    let text = best_prices(&tape, &["--symbols", instr, "--venue", "NBBO"]).code(0);
    assert_eq!(text.text().lines().count(), over_all.len());
}

/// One moment has three names; the book must be the same under each, and that of a tape that ends there.
#[test]
fn a_point_of_the_tape_by_ordinal_position_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, _) = simulated(dir.path());
    let events = common::cat(&tape, &["--full"]);
    // The last event of its time, so that the time names it alone.
    let at = (2_000..).find(|n| events[*n]["ts"] != events[n + 1]["ts"]).unwrap();
    let (seq, ts) = (events[at]["seq"].as_u64().unwrap(), events[at]["ts"].as_i64().unwrap());
    let position = events[at]["position"].as_u64().unwrap();
    let books = |at: &str| book(&tape, &["--json", "--at", at, "--orders"]).code(0).text().to_owned();
    let by_ordinal = books(&seq.to_string());
    assert_eq!(by_ordinal, books(&format!("@{position}")));
    assert_eq!(by_ordinal, books(&ts.to_string()));
    assert_ne!(by_ordinal, books(&(seq + 40).to_string()));
    // The lines that `--bbo` printed up to there agree with the books there.
    let seen = best_prices(&tape, &["--basis", "orders", "--json", "--to", &seq.to_string()]).code(0).lines();
    for line in by_ordinal.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
        let last = seen.iter().rfind(|v| v["venue"] == line["venue"] && v["instr"] == line["instr"]);
        if line["basis"] == "orders" {
            let last = last.unwrap();
            assert_eq!(best(&line, "bids"), ["bid", "bid_qty"].map(|k| last[k].as_str().map(str::to_owned)));
        }
    }
}

/// Phases, levels and prices over venues, from lines written by hand.
#[test]
fn auctions_levels_and_marks_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let tape = write_event_lines(
        dir.path(),
        &[
            "session phase=auction",
            "order_new oid=B side=B px=101 qty=5",
            "order_new oid=S side=S px=100 qty=7",
            "level venue=CHIX side=B action=A px=99.5 qty=20",
            "level venue=CHIX side=S action=A px=100.5 qty=30",
            "bbo venue=BATE bid=99.5 bid_qty=1 ask=100 ask_qty=2",
        ],
    );
    let lines = book(&tape, &["--json"]).code(0).lines();
    let [xlon, chix, bate, over] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(
        (&xlon["phase"], &xlon["marks"]),
        (&"auction".into(), &serde_json::json!(["crossed", "auction"]))
    );
    assert_eq!((&chix["basis"], &bate["basis"]), (&"levels".into(), &"bbo".into()));
    assert_eq!((&over["bid"], &over["bid_qty"], &over["ask"]), (&"99.5".into(), &"21".into(), &"100".into()));
    assert_eq!(over["bid_venues"], serde_json::json!(["CHIX", "BATE"]), "an auction takes no part");
    let text = book(&tape, &["--venue", "XLON"]).code(0);
    assert!(text.text().contains("VOD at XLON, from orders, crossed, auction, 2 orders"), "{}", text.text());
}

/// An impossible statement of a feed must reach a user who looks only at the exit code.
#[test]
fn faults_are_told_and_exit_3() {
    let dir = tempfile::tempdir().unwrap();
    let tape = write_event_lines(
        dir.path(),
        &[
            "order_new oid=A side=B px=10 qty=5",
            "exec oid=Z side=B px=10 qty=5",
            "exec oid=A side=B px=10 qty=6",
            "order_new venue=CHIX oid=A side=B px=9 qty=5",
        ],
    );
    let lines = book(&tape, &["--json"]).code(3).says(&["2 events"]).lines();
    assert_eq!(lines[0]["faults"], serde_json::json!({"unknown_order": 1, "negative_left": 1}));
    assert_eq!(lines[0]["marks"], serde_json::json!(["stale"]));
    let over = &lines[2];
    assert_eq!((&over["bid"], &over["marks"]), (&"9".into(), &serde_json::json!(["stale"])));
    book(&tape, &["--venue", "CHIX"]).code(0);
    best_prices(&tape, &[]).code(3);
}

/// A feed that has lost something says so on the tape; its book was shown as if all were well.
#[test]
fn what_a_feed_calls_stale_is_told_as_stale() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    [&a, &b].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let lost = ["level side=B action=A px=10 qty=5", "status state=stale"];
    let stale = write_event_lines(&a, &lost);
    let lines = book(&stale, &["--json"]).code(3).says(&["1 of these books are stale"]).lines();
    assert_eq!(lines[0]["marks"], serde_json::json!(["stale"]));
    assert!(book(&stale, &[]).code(3).text().contains("VOD at XLON, from levels, stale,"));
    let mended = write_event_lines(&b, &[&lost[..], &["status state=recovered"]].concat());
    assert_eq!(book(&mended, &["--json"]).code(0).lines()[0]["marks"], serde_json::json!([]));
}

/// A misspelt name shows no book and looks like an empty market.
#[test]
fn what_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let tape = write_event_lines(dir.path(), &["order_new oid=A side=B px=10 qty=5"]);
    book(&tape, &["--symbols", "VOX"]).code(0).says(&["VOX", "there is only VOD"]);
    book(&tape, &["--venue", "XLOM"]).code(0).says(&["XLOM", "XLON"]);
    book(&tape, &["--basis", "trades"]).code(2).says(&["orders, levels, bbo"]);
    book(&tape, &["--at", "noon"]).code(2).says(&["noon", "UTC"]);
    book(&tape, &["--at", "5", "--follow"]).code(2).says(&["--follow"]);
    book(&dir.path().join("none"), &[]).code(1).says(&["none"]);
    let help = run(["book", "bbo", "--help"]).code(0);
    assert!(help.text().contains("unitape book bbo tape --follow"), "{}", help.text());
}

/// A reader that has seen enough closes the pipe; that is no error and prints nothing.
#[test]
fn a_closed_stdout_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, _) = simulated(dir.path());
    for args in [&["bbo", "--json"][..], &["bbo"], &["show", "--json", "--depth", "50"]] {
        let mut child = unitape()
            .arg("book")
            .arg(args[0])
            .arg(&tape)
            .args(&args[1..])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::with_capacity(64, child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        drop(stdout);
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{args:?}");
    }
}

/// A follower sees each new best price as another process appends it.
#[test]
fn follow_goes_on_as_the_tape_grows() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    common::consolidate_orders(&file(dir.path(), "1.fix", common::order_with(1, "44=10|")), &tape, 0);
    let follow = |subcommand: &str| {
        let mut command = unitape();
        command.args(["book", subcommand]).arg(&tape).args(["--json", "--follow"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let (mut changes, mut books) = (follow("bbo"), follow("show"));
    let mut lines = [&mut changes, &mut books].map(|c| BufReader::new(c.stdout.take().unwrap()).lines());
    let mut read = |n: usize| -> Value { serde_json::from_str(&lines[n].next().unwrap().unwrap()).unwrap() };
    assert_eq!(read(0)["bid"], "10");
    assert_eq!(read(1)["bids"][0]["px"], "10");
    let mut writer = unitape()
        .args(["consolidate", "--feed", "orders=fix:fix44-orders:-", "--tape", tape.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    for n in 2..200 {
        stdin.write_all(&common::order_with(n, &format!("44={}|", 9 + n))).unwrap();
    }
    drop(stdin);
    assert_eq!(writer.wait().unwrap().code(), Some(0));
    for n in 2..200 {
        assert_eq!(read(0)["bid"], (9 + n).to_string());
    }
    // A book is printed as often as there is time for; the last one is that of the end.
    while read(1)["bids"][0]["px"] != "208" {}
    for child in [&mut changes, &mut books] {
        let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// Users' scripts call `book` as it was before it had subcommands. For one release they get what they got, and the new call.
#[test]
fn the_calls_of_the_last_release_print_the_same_and_name_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, _) = simulated(dir.path());
    let listing = book(&tape, &["--json"]).code(0).lines().remove(0);
    let (instr, venue) = (listing["instr"].as_str().unwrap(), listing["venue"].as_str().unwrap());
    let place = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let [old_tape, new_tape] = ["old", "new"].map(place);
    let [old_picture, new_picture] = ["old.svg", "new.svg"].map(place);
    for (old, subcommand, new) in [
        (&["--json", "--depth", "3"][..], "show", &["--json", "--depth", "3"][..]),
        (
            &["--instr", instr, "--venue", venue, "--orders"],
            "show",
            &["--symbols", instr, "--venue", venue, "--orders"],
        ),
        (&["--at", "999", "--json"], "show", &["--at", "999", "--json"]),
        (&["--bbo", "--json"], "bbo", &["--json"]),
        (&["--bbo", "--at", "999", "--basis", "orders"], "bbo", &["--to", "999", "--basis", "orders"]),
        (&["--verify-checkpoints", "--json"], "checkpoint", &["--verify", "--json"]),
        (
            &["--derive", "NBBO", "--tape-out", &old_tape, "--json"],
            "derive",
            &["--tape-out", &new_tape, "--json"],
        ),
        (
            &[
                "--picture",
                &old_picture,
                "--instr",
                instr,
                "--venue",
                venue,
                "--since",
                "0",
                "--until",
                "2027-01-01",
            ],
            "picture",
            &[
                "-o",
                &new_picture,
                "--symbols",
                instr,
                "--venue",
                venue,
                "--since",
                "0",
                "--until",
                "2027-01-01",
            ],
        ),
    ] {
        let start = ["book".as_ref(), tape.as_os_str()];
        let ran = run(start.into_iter().chain(old.iter().map(AsRef::as_ref))).code(0);
        let ran = ran.says(&["ends with the next release", &format!("unitape book {subcommand} ")]);
        assert_eq!(ran.text(), run_book(subcommand, &tape, new).code(0).text(), "{old:?}");
    }
    let [old_picture, new_picture] = [old_picture, new_picture].map(|path| std::fs::read(path).unwrap());
    assert!(old_picture == new_picture && !new_picture.is_empty());
    let books = book(&tape, &[]).code(0).text().to_owned();
    let ran = run(["book", tape.to_str().unwrap(), "--checkpoint-every", "1000"]).code(0);
    assert_eq!(ran.says(&["checkpoints written", "unitape book checkpoint"]).text(), books);
    assert!(tape.join("checkpoints").is_dir());
    run(["book", "--json"]).code(2).says(&["unitape book show TAPE"]);
}

/// A desk asks for the best prices of a minute, of two instruments, or of the first ten changes: the books behind them are those of
/// the whole tape.
#[test]
fn a_selection_chooses_among_the_best_prices_of_the_whole_tape() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, _) = simulated(dir.path());
    let all = best_prices(&tape, &["--json"]).code(0).lines();
    let ts = |line: &Value| line["ts"].as_i64().unwrap();
    let seq = |line: &Value| line["seq"].as_u64().unwrap();
    let (third, half) = (&all[all.len() / 3], &all[all.len() / 2]);
    let choose = |args: &[&str], is_chosen: &dyn Fn(&Value) -> bool| {
        let expected: Vec<&Value> = all.iter().filter(|line| is_chosen(line)).collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{args:?}");
        let lines = best_prices(&tape, &[&["--json"], args].concat()).code(0).lines();
        assert!(lines.iter().collect::<Vec<_>>() == expected, "{args:?}: {} lines", lines.len());
    };
    let (since, until) = (ts(third).to_string(), ts(half).to_string());
    choose(&["--since", &since, "--until", &until], &|line| (ts(third)..ts(half)).contains(&ts(line)));
    let (from, to) = (seq(third).to_string(), seq(half).to_string());
    choose(&["--from", &from, "--to", &to], &|line| (seq(third)..=seq(half)).contains(&seq(line)));
    let from = format!("@{}", third["position"]);
    choose(&["--from", &from], &|line| seq(line) >= seq(third));
    let mut instruments: Vec<&str> = all.iter().map(|line| line["instr"].as_str().unwrap()).collect();
    instruments.sort_unstable();
    instruments.dedup();
    let two = [instruments[0], instruments[1]];
    choose(&["--symbols", two[0], "--instr", two[1]], &|line| two.contains(&line["instr"].as_str().unwrap()));
    choose(&["--venue", "XLON", "--venue", "NBBO"], &|line| {
        line["venue"] == "XLON" || line["venue"] == "NBBO"
    });
    let first = best_prices(&tape, &["--json", "--limit", "10"]).code(0).lines();
    assert!(first == all[..10]);
    best_prices(&tape, &["--since", "2030-01-01"]).code(0).says(&["no book with --since '2030-01-01"]);
    best_prices(&tape, &["--from", "9", "--to", "8"]).code(2).says(&["nothing can be between them"]);

    let csv = best_prices(&tape, &["--csv"]).code(0);
    let mut lines = csv.text().lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..4], ["seq", "ts", "venue", "instr"]);
    let mut count = 0;
    for (line, object) in lines.zip(&all) {
        count += 1;
        for (name, cell) in header.iter().zip(line.split(',')) {
            let expected = match &object[*name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Array(texts) => {
                    texts.iter().map(|t| t.as_str().unwrap()).collect::<Vec<_>>().join("+")
                }
                number => number.to_string(),
            };
            assert_eq!(cell, expected, "{name} of {line}");
        }
    }
    assert_eq!(count, all.len());
    let file = dir.path().join("best.csv");
    best_prices(&tape, &["--csv", "-o", file.to_str().unwrap()]).code(0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), csv.text());
}
