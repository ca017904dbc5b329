//! Reference data: one share under three names was three instruments, so that a wash trade between two of its notations
//! was none, and a symbol that is used again made one instrument of two.
#![cfg(unix)]

use crate::common::{self, assert_closes, cat, file, fix, order, quarantine, root, run};
use common::run::{Bench, orders};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use unitape_codec::twin::itch::sample::{SampleConfig, sample_messages};

const DAY_NS: i64 = 86_400_000_000_000;

/// 2026-03-02, the day of the orders.
const TODAY: i64 = 20_514;

fn example(name: &str) -> String {
    root().join("examples/feeds").join(name).display().to_string()
}

/// A master of lines, each with these fields.
fn master(dir: &Path, name: &str, entries: &[Value]) -> String {
    let line = |e: &Value| {
        let mut line = json!({"ts": 0, "kind": "ref"});
        line.as_object_mut().unwrap().extend(e.as_object().unwrap().clone());
        format!("{line}\n")
    };
    format!("{}:events", file(dir, name, entries.iter().map(line).collect::<String>()).display())
}

fn acme() -> Value {
    json!({"instr": "ACME", "isin": "GB0000000001", "figi": "BBG000000001", "mic": "XKES", "symbol": "ALDER"})
}

fn consolidate(feeds: &[String], tape: &Path, more: &[&str]) -> common::Ran {
    let mut args: Vec<String> = ["consolidate", "--json", "--tape"].map(str::to_owned).into();
    args.push(tape.display().to_string());
    args.extend(feeds.iter().flat_map(|f| ["--feed".to_owned(), f.clone()]));
    args.extend(more.iter().map(|m| (*m).to_owned()));
    run(args)
}

/// The instrument of each event.
fn instruments(tape: &Path) -> Vec<String> {
    let named = |e: &Value| e["instr"].as_str().map(str::to_owned);
    cat(tape, &[]).iter().filter_map(named).collect()
}

/// The mappings of the source definitions, in order.
fn sources(tape: &Path) -> Vec<(Value, String)> {
    let all = cat(tape, &["--all"]);
    let sources = all.iter().filter(|e| e["kind"] == "source");
    sources.map(|e| (e["of"].clone(), e["mapping"].as_str().unwrap_or_default().to_owned())).collect()
}

/// An order of this instrument at this time of 2026-03-02, on this venue.
fn order_of(n: u32, instr: &str, time: &str) -> Vec<u8> {
    fix(&format!(
        "35=8|49=XLON|56=U|34={n}|52=20260302-00:00:01|60={time}|37=O{n}|150=0|54=1|38=100|40=2|44=1|207=XNYS|48={instr}|"
    ))
}

#[test]
fn one_share_in_three_feeds_is_one_instrument() {
    let dir = tempfile::tempdir().unwrap();
    let master = master(dir.path(), "master.jsonl", &[acme()]);
    let line = |n: u32, instr: &str| {
        format!("{{\"ts\":{},\"kind\":\"trade\",\"instr\":\"{instr}\",\"px\":\"1\",\"qty\":\"1\"}}\n", 5 + n)
    };
    let prints = file(dir.path(), "prints.jsonl", line(1, "BBG000000001") + &line(2, "ACME"));
    let orders = file(dir.path(), "orders.fix", orders(1..4));
    let feeds = [
        common::orders_option("orders", &orders),
        format!("kestrel=csv:{}:{}", example("kestrel.toml"), example("kestrel_20260302.psv")),
        format!("prints=events::{}", prints.display()),
    ];
    let tape = dir.path().join("t");
    let account = consolidate(&feeds, &tape, &["--reference", &master]).code(3).json();
    assert_eq!(account["unresolved"], Value::Null, "all of them are known: {account}");
    assert_closes(&account);
    let named = instruments(&tape);
    assert_eq!(named, vec!["ACME"; 9]);
    let all = cat(&tape, &["--all"]);
    let defined: BTreeSet<_> =
        all.iter().filter(|e| e["kind"] == "define").map(|e| e["name"].as_str().unwrap()).collect();
    assert!(defined.contains("ACME"));
    assert!(!defined.contains("ALDER") && !defined.contains("GB0000000001"), "{defined:?}");
    for (_, mapping) in sources(&tape) {
        assert!(mapping.contains("+master.jsonl@") && mapping.ends_with(":events"), "{mapping}");
    }
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    // Without it they are three, and the account and the definitions are as they always were.
    let apart = dir.path().join("apart");
    consolidate(&feeds, &apart, &[]).code(3);
    assert_eq!(instruments(&apart).into_iter().collect::<BTreeSet<_>>().len(), 4);
    assert!(sources(&apart).iter().all(|(_, m)| !m.contains('+')));
}

/// A symbol goes to another company at midnight of UTC, also for an event that comes late and for each kind of feed.
#[test]
fn a_symbol_that_is_used_again_changes_hands_at_midnight() {
    let dir = tempfile::tempdir().unwrap();
    let master = master(
        dir.path(),
        "master.jsonl",
        &[
            json!({"instr": "OLD", "mic": "XNYS", "symbol": "SUN", "valid_to": "2026-03-01"}),
            json!({"instr": "NEW", "mic": "XNYS", "symbol": "SUN", "valid_from": "2026-03-02"}),
        ],
    );
    let midnight = TODAY * DAY_NS;
    let line = |ts: i64| {
        format!(
            "{{\"ts\":{ts},\"kind\":\"trade\",\"venue\":\"XNYS\",\"instr\":\"SUN\",\"px\":\"1\",\"qty\":\"1\"}}\n"
        )
    };
    let lines = file(dir.path(), "l.jsonl", [-1, 0, -2].map(|d| line(midnight + d)).concat());
    let times = ["20260301-23:59:59.999999999", "20260302-00:00:00", "20260301-23:59:59.999999998"];
    let orders = times.iter().zip(1..).flat_map(|(t, n)| order_of(n, "SUN", t)).collect::<Vec<_>>();
    let orders = file(dir.path(), "o.fix", orders);
    for feed in [format!("l=events::{}", lines.display()), common::orders_option("o", &orders)] {
        let tape = dir.path().join(&feed[..1]);
        consolidate(&[feed], &tape, &["--reference", &master]).code(0);
        assert_eq!(instruments(&tape), ["OLD", "NEW", "OLD"]);
    }
}

/// ITCH writes its frequent messages by images with ids in them; seven in the evening in New York is midnight of UTC.
#[test]
fn a_session_of_itch_may_have_midnight_within_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = sample_messages(SampleConfig { messages: 4_000, stocks: 20, live: 200, seed: 7 });
    // The sample is of one moment: here from 18:00 to 20:00.
    let (mut at, end) = (0, bytes.len() as u64);
    while at < bytes.len() {
        let nanos = 64_800_000_000_000 + at as u64 * 7_200_000_000_000 / end;
        bytes[at + 7..at + 13].copy_from_slice(&nanos.to_be_bytes()[2..]);
        at += 2 + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    }
    let bytes = file(dir.path(), "20200130.itch50", bytes);
    for shipped in ["nasdaq-itch50", "nasdaq-itch50-stateless"] {
        let feeds = [format!("f=itch:{shipped}:{}", bytes.display())];
        let (plain, named) = (dir.path().join(format!("{shipped}-p")), dir.path().join(shipped));
        consolidate(&feeds, &plain, &[]).code(0);
        let symbols: BTreeSet<String> = instruments(&plain).into_iter().collect();
        // The last one is not in it.
        let entries: Vec<Value> = symbols
            .iter()
            .take(symbols.len() - 1)
            .flat_map(|s| {
                let of = |name: &str, key: &str, day: &str| {
                    json!({"instr": format!("{s}.{name}"), "mic": "XNAS", "symbol": s, key: day})
                };
                [of("old", "valid_to", "2020-01-30"), of("new", "valid_from", "2020-01-31")]
            })
            .collect();
        let master = master(dir.path(), "master.jsonl", &entries);
        let account = consolidate(&feeds, &named, &["--reference", &master]).code(0).json();
        let (plain, named) = (cat(&plain, &[]), cat(&named, &[]));
        assert_eq!(plain.len(), named.len());
        let (mut old, mut new, mut unknown) = (0, 0, 0);
        for (was, mut is) in plain.into_iter().zip(named) {
            let midnight = is["ts"].as_i64().unwrap() < 18_292 * DAY_NS;
            if let Some(symbol) = was["instr"].as_str() {
                let name = match midnight {
                    _ if Some(symbol) == symbols.last().map(String::as_str) => {
                        unknown += 1;
                        symbol.to_owned()
                    }
                    true => {
                        old += 1;
                        format!("{symbol}.old")
                    }
                    false => {
                        new += 1;
                        format!("{symbol}.new")
                    }
                };
                assert_eq!(is["instr"], name);
                is["instr"] = was["instr"].clone();
            }
            assert_eq!(was, is, "nothing else is another");
        }
        assert!(old > 100 && new > 100 && unknown > 0, "{shipped}: {old} {new} {unknown}");
        let unresolved = account["unresolved"].as_u64().unwrap();
        assert!(0 < unresolved && unresolved <= unknown, "{unresolved} messages of {unknown} events");
    }
}

/// A name that is not found stays and is counted, and the tape has the count: a rerun has it too.
#[test]
fn what_the_master_does_not_have_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let master = master(dir.path(), "master.jsonl", &[acme()]);
    let again = fix(
        "35=8|49=XLON|56=U|34=2|43=Y|52=20260302-00:00:02|60=20260302-00:00:02|37=O2|150=0|54=1|38=100|40=2|44=1|207=XNYS|48=US9|",
    );
    let bytes = [
        order(1),
        order_of(2, "US9", "20260302-00:00:02"),
        order(3),
        again,
        order_of(5, "US8", "20260302-00:00:05"),
    ];
    let orders = file(dir.path(), "orders.fix", bytes.concat());
    let feeds = [common::orders_option("orders", &orders)];
    let tape = dir.path().join("t");
    for _ in 0..2 {
        let account = consolidate(&feeds, &tape, &["--reference", &master]).code(0).json();
        assert_eq!((&account["unresolved"], &account["duplicates"]), (&2.into(), &1.into()), "{account}");
        assert_eq!(account["by_feed"]["orders"]["unresolved"], 2);
    }
    assert_eq!(instruments(&tape), ["ACME", "US9", "ACME", "US8"]);
    let marks = cat(&tape, &["--all"]);
    let last = marks.iter().rev().find(|e| e["kind"] == "progress").unwrap();
    assert_eq!(last["unresolved"], 2, "{last}");
    let output =
        run(["consolidate", "--feed", &feeds[0], "--reference", &master, "--tape", tape.to_str().unwrap()]);
    assert!(
        output.code(0).text().contains("2 messages name an instrument that the reference data does not have")
    );
}

/// With `--reference-strict` it is refused, and a retry needs the master: names next to each other are of one kind.
#[test]
fn strict_data_refuse_and_a_mended_master_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let known = master(dir.path(), "master.jsonl", &[acme()]);
    let bytes = [
        order(1),
        order_of(2, "US9", "20260302-00:00:02"),
        order(3),
        order_of(4, "US8", "20260302-00:00:04"),
    ];
    let orders = file(dir.path(), "orders.fix", bytes.concat());
    let line = "{\"ts\":9,\"kind\":\"trade\",\"instr\":\"US7\",\"px\":\"1\",\"qty\":\"1\"}\n";
    let lines = file(dir.path(), "lines.jsonl", line);
    let feeds = [common::orders_option("orders", &orders), format!("lines=events::{}", lines.display())];
    let tape = dir.path().join("t");
    let account = consolidate(&feeds, &tape, &["--reference", &known, "--reference-strict"]).code(3).json();
    assert_eq!((&account["quarantined"], &account["unresolved"]), (&3.into(), &Value::Null), "{account}");
    let entries = quarantine(&tape);
    assert!(entries.iter().all(|e| e["reason"] == "unknown_instrument"), "{entries:?}");
    assert!(entries.iter().any(|e| e["detail"].as_str().unwrap().contains("\"US9\"")), "{entries:?}");
    assert!(sources(&tape).iter().all(|(_, m)| m.ends_with(":events+strict")));

    let retry = |references: &[&str]| {
        let args = ["quarantine", "retry", tape.to_str().unwrap(), "--json"].map(str::to_owned);
        run(args
            .into_iter()
            .chain(references.iter().flat_map(|r| ["--reference".to_owned(), (*r).to_owned()])))
    };
    let before = cat(&tape, &["--full", "--all"]);
    retry(&[]).code(2).says(&["was read with reference data (master.jsonl@", "--reference FILE:MAPPING"]);
    assert_eq!(retry(&[&known]).code(3).json()["recovered"], 0);
    assert!(cat(&tape, &["--full", "--all"]) == before, "nothing was recovered, and nothing written");
    let more = master(
        dir.path(),
        "more.jsonl",
        &[json!({"instr": "NINE", "isin": "US9"}), json!({"instr": "SEVEN", "figi": "US7"})],
    );
    let done = retry(&[&known, &more]).code(3).json();
    assert_eq!(done, json!({"tried": 3, "recovered": 2, "events": 2, "left": 1}));
    let mut named = instruments(&tape);
    named.sort();
    assert_eq!(named, ["ACME", "ACME", "NINE", "SEVEN"]);
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    assert_eq!(retry(&[&known, &more]).code(3).json()["tried"], 1, "what was recovered is not tried again");
}

/// From the day on that the master is another one, the tape says so, in the midst of a source.
#[test]
fn another_master_is_a_further_definition() {
    let bench = Bench::new("", &[("a", "directory = \"in\"")]);
    let dir = bench.dir.path();
    std::fs::create_dir(bench.path("in")).unwrap();
    let configure = |master: &str| {
        bench.configure(
            "",
            &[(
                "a",
                &format!("mapping = \"fix44-orders\"\ndirectory = \"in\"\n[[reference]]\nfile = \"{master}\"\nmapping = \"events\""),
            )],
        );
    };
    master(dir, "one.jsonl", &[json!({"instr": "ONE", "isin": "GB0000000001"})]);
    master(dir, "two.jsonl", &[json!({"instr": "TWO", "isin": "GB0000000001"})]);
    for (i, name) in ["one.jsonl", "two.jsonl", "two.jsonl"].into_iter().enumerate() {
        configure(name);
        let upto = 10 * (i as u32 + 1);
        file(&bench.path("in"), "1", orders(0..upto));
        let mut running = bench.start();
        bench.has(&mut running, upto.into());
        let (code, said) = running.stop();
        assert_eq!(code, Some(0), "{said}");
    }
    let defs = sources(&bench.tape());
    assert_eq!(defs.len(), 2, "one definition, and one more for the other master: {defs:?}");
    assert!(defs[0].1.contains("+one.jsonl@") && defs[1].1.contains("+two.jsonl@"), "{defs:?}");
    assert_eq!((&defs[0].0, &defs[1].0), (&Value::Null, &1.into()), "{defs:?}");
    let named = instruments(&bench.tape());
    assert_eq!(named, [vec!["ONE"; 10], vec!["TWO"; 20]].concat());
    run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
}

#[test]
fn a_run_shows_its_reference_data_and_names_the_line_of_a_mistake() {
    let dir = tempfile::tempdir().unwrap();
    master(dir.path(), "master.jsonl", &[acme()]);
    master(dir.path(), "again.jsonl", &[json!({"instr": "OTHER", "isin": "GB0000000001"})]);
    file(dir.path(), "orders.fix", orders(1..3));
    let configured = |rest: &str| {
        let text = format!(
            "[tape]\ndir = \"t\"\n[[feed]]\nname = \"a\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [\"orders.fix\"]\n{rest}"
        );
        file(dir.path(), "run.toml", text).display().to_string()
    };
    let one = "[[reference]]\nfile = \"master.jsonl\"\nmapping = \"events\"\n";
    let config = configured(one);
    let shown = run(["config", "show", &config, "--origin"]).code(0);
    let has = |key: &str, line: u32| {
        let found = shown.text().lines().find(|l| l.starts_with(key)).unwrap_or_else(|| panic!("no {key}"));
        assert!(found.ends_with(&format!("run.toml:{line}")), "{found}");
    };
    has("reference.0.file", 9);
    has("reference.0.mapping", 10);
    assert!(shown.text().contains("run.reference_strict = false  # default"), "{}", shown.text());
    run(["run", &config, "--check"]).code(0);
    run(["run", &config]).code(0);
    assert_eq!(instruments(&dir.path().join("t")), ["ACME"; 2]);
    for (rest, says) in [
        ("[[reference]]\nfile = \"none.jsonl\"\nmapping = \"events\"\n", "run.toml:9: reference.0.file: "),
        (
            "[[reference]]\nfile = \"master.jsonl\"\nmapping = \"nope\"\n",
            "run.toml:10: reference.0.mapping: ",
        ),
        ("[[reference]]\nfile = \"master.jsonl\"\n", "run.toml:8: reference.0: missing field `mapping`"),
        ("[run]\nreference_strict = true\n", "run.toml:9: run.reference_strict: goes with [[reference]]"),
        (
            &format!("{one}[[reference]]\nfile = \"again.jsonl\"\nmapping = \"events\"\n"),
            "run.toml:12: reference.1.file: reference data",
        ),
    ] {
        // The entries are data, unlike the file that names them.
        let code = if says.ends_with("reference data") { 3 } else { 1 };
        run(["run", &configured(rest), "--check"]).code(code).says(&[says]);
    }
}

/// Reference data as a feed: currency, tick, tier and lot are on the tape, a tick table is kept as it came.
#[test]
fn a_master_may_be_a_feed_too() {
    let dir = tempfile::tempdir().unwrap();
    let psv = PathBuf::from(example("instruments_20260302.psv"));
    let tape = dir.path().join("t");
    consolidate(&[format!("m=csv:{}:{}", example("instruments.toml"), psv.display())], &tape, &[]).code(0);
    let refs = cat(&tape, &["--kind", "ref"]);
    let alder = refs.iter().find(|r| r["mic"] == "XKES").unwrap();
    for (key, value) in [
        ("instr", "ALDER-SA"),
        ("figi", "BBG000000017"),
        ("symbol", "ALDER"),
        ("ccy", "EUR"),
        ("tick", "0.05"),
        ("lot", "1"),
        ("isin", "FR0000000017"),
        ("valid_from", "2020-01-01"),
    ] {
        assert_eq!(alder[key], value, "{alder}");
    }
    assert_eq!(alder["tier"], 1);
    assert_eq!(alder["valid_to"], Value::Null);
    let table = json!([["0", "0.001"], ["10", "0.005"]]);
    let entry = json!({"ts": 0, "kind": "ref", "instr": "A", "tick": "0.001", "tick_table": table});
    let lines = file(dir.path(), "lines.jsonl", format!("{entry}\n"));
    let tape = dir.path().join("l");
    consolidate(&[format!("m=events::{}", lines.display())], &tape, &[]).code(0);
    assert_eq!(cat(&tape, &[])[0]["tick_table"], table);
}

#[test]
fn wrong_options_say_what_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", orders(1..2));
    let feed = [common::orders_option("o", &orders)];
    let tape = dir.path().join("t");
    consolidate(&feed, &tape, &["--reference-strict"]).code(2).says(&["--reference FILE:MAPPING"]);
    consolidate(&feed, &tape, &["--reference", "master.txt"]).code(2).says(&["FILE:MAPPING is needed"]);
    let twice = master(dir.path(), "m.jsonl", &[acme(), json!({"instr": "B", "isin": "GB0000000001"})]);
    let ran = consolidate(&feed, &tape, &["--reference", &twice]).code(3);
    ran.says(&["m.jsonl: at byte 1", "`GB0000000001` is B here and ACME in"]);
    assert!(!tape.exists(), "nothing is consolidated");
}
