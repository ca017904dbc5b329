//! Days in a store hold what the tape holds; what is damaged is named, and what is not stays readable.

use crate::common::{self, cat, file, jse, run, unitape};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use unitape_sim::day::{Sim, SimConfig, write_line};

/// A real feed, a simulated day, an order flow with damaged messages, and a line of every kind, on one tape.
fn tape(dir: &Path) -> PathBuf {
    let (mut flow, _) = common::flow(5, 3_000, true);
    // What is refused before its feed had a time has none.
    flow.splice(0..0, *b"8=FIX.4.4 and no more of it");
    let orders = common::orders_option("orders", &file(dir, "orders.fix", flow));
    let lines = file(dir, "kinds.jsonl", every_kind());
    let day = file(dir, "day.jsonl", simulated_day());
    let (jse, tape) = (jse(), dir.join("tape"));
    let args =
        ["consolidate".as_ref(), jse.as_os_str(), lines.as_os_str(), day.as_os_str(), "--feed".as_ref()]
            .map(ToOwned::to_owned);
    run(args.into_iter().chain([orders.into(), "--tape".into(), tape.clone().into_os_string()])).code(3);
    tape
}

/// A small day of a simulated market: auctions, halts, orders of every kind, news, payments, planted scenes.
fn simulated_day() -> Vec<u8> {
    let config = SimConfig { seed: 9, events: 4_000, instruments: 12, ..SimConfig::default() };
    let (mut sim, mut lines, mut scratch) = (Sim::new(config).unwrap(), Vec::new(), Vec::new());
    while sim.step().is_some() {
        sim.last_events().iter().for_each(|e| write_line(sim.world(), e, &mut scratch, &mut lines));
    }
    lines
}

/// One line of every kind that a line can have, some with what has no place of its own.
fn every_kind() -> String {
    let base = |seq: usize, body: &str| {
        let ts = 1_710_167_400_000_000_000 + seq as i64 * 7_200_000_000_000;
        format!(r#"{{"seq":{seq},"ts":{ts},{body}}}"#) + "\n"
    };
    [
        r##""kind":"ref","instr":"I1","tick":"0.5","ccy":"GBP","mic":"XLON","figi":"BBG000B9XRY4""##,
        r##""kind":"session","venue":"XLON","instr":"I1","phase":"auction","px":"10""##,
        r##""kind":"status","venue":"XLON","instr":"I1","state":"a state with a long name""##,
        r##""kind":"bbo","venue":"XLON","instr":"I1","bid":"9.5","bid_qty":"123456789012345","ask":"10""##,
        r##""kind":"level","venue":"XLON","instr":"I1","side":"B","action":"A","px":"9","qty":"1","depth":3"##,
        r##""kind":"quote","venue":"BANK","instr":"EURUSD","quote_id":"Q1","side":"S","px":"1.1","qty":"1000000""##,
        r##""kind":"trade","venue":"XLON","instr":"I1","px":"9.75","qty":"3","match_id":"M1","odd":{"a":[1]}"##,
        r##""kind":"order_recv","coid":"C1","owner":"O","instr":"I1","side":"B","qty":"5","channel":"phone""##,
        r##""kind":"parent","parent":"P1","instr":"I1","side":"B","qty":"5","firm":"F""##,
        r##""kind":"order_new","oid":"X1","side":"B","px":"9","qty":"5","venue":"XLON","instr":"I1","owner":"O""##,
        r##""kind":"order_amend","oid":"X1","side":"B","px":"9.1","qty":"5","venue":"XLON","instr":"I1""##,
        r##""kind":"order_cancel","oid":"X1","venue":"XLON","instr":"I1","stop_px":"3""##,
        r##""kind":"exec","oid":"X1","px":"9","qty":"2","match_id":"M2","liq":"A","venue":"XLON","instr":"I2""##,
        r##""kind":"party","owner":"O","group":"G","link_score":"0.5""##,
        r##""kind":"position","owner":"O","instr":"I1","qty":"-5""##,
        r##""kind":"list","name":"restricted","instr":"I1","from":1,"to":2"##,
        r##""kind":"index","index":"UKX","px":"7500.123456789012""##,
        r##""kind":"ref_px","instr":"I1","px":"9.9","source":"composite""##,
        r##""kind":"news","news_id":"N1","instrs":["I1","I2"],"headline":"h","source":"wire""##,
        r##""kind":"comm","msg_id":"E1","channel":"chat","from":"a","to":["b","c"],"text":"hello""##,
        r##""kind":"payment","msg":"MT103","ref":"R1","dr_acct":"D","cr_acct":"C","ccy":"EUR","amt":"123456789012345678.12345""##,
        r##""kind":"statement","acct":"D","ccy":"EUR","ref":"R2","opening":"1","closing":"2","entries":[{"a":1}]"##,
        r##""kind":"alert","scenario":"s","trigger_seq":1,"key":{"owner":"O"},"detail":{}"##,
        r##""kind":"control","venue":"XLON","instr":"I1","action":"halt","reason":"r""##,
        r##""kind":"clock""##,
    ]
    .iter()
    .enumerate()
    .map(|(i, body)| base(i + 1, body))
    .collect()
}

fn seal(tape: &Path, store: &Path, more: &[&str]) -> Value {
    let args = ["store".as_ref(), "seal".as_ref(), tape.as_os_str(), "--store".as_ref(), store.as_os_str()];
    run(args.into_iter().chain(more.iter().map(AsRef::as_ref)).chain(["--json".as_ref()])).code(0).json()
}

/// Events of the store, as JSON.
fn scan(store: &Path, more: &[&str]) -> common::Ran {
    let args = ["store".as_ref(), "scan".as_ref(), store.as_os_str(), "--json".as_ref(), "--events".as_ref()];
    run(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

/// The full form without what is the tape's own: ids of names and of the source.
fn without_ids(mut events: Vec<Value>) -> Vec<Value> {
    for e in &mut events {
        let map = e.as_object_mut().unwrap();
        map.remove("ids");
        if let Some(src) = map.get_mut("src") {
            src.as_object_mut().unwrap().remove("id");
        }
    }
    events
}

#[test]
fn a_store_prints_what_the_tape_prints() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (tape(dir.path()), dir.path().join("ticks"));
    let sealed = seal(&tape, &store, &["--memory", "600000"]);
    let events = cat(&tape, &[]);
    assert_eq!(sealed["rows"], events.len());
    assert!(sealed["days"].as_object().unwrap().len() >= 4, "{sealed}");
    let text = run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]).code(0);
    assert!(scan(&store, &[]).code(0).stdout == text.stdout, "the plain form differs");
    let full = scan(&store, &["--full"]).code(0).lines();
    assert!(without_ids(full) == without_ids(cat(&tape, &["--full"])), "the full form differs");
    let eyes = run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str()]).code(0);
    assert!(run(["store".as_ref(), "scan".as_ref(), store.as_os_str()]).code(0).stdout == eyes.stdout);

    let kinds: std::collections::BTreeSet<_> = events.iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 26, "{kinds:?}");
    let again = seal(&tape, &store, &[]);
    assert_eq!((&again["generation"], &again["rows"]), (&Value::Null, &0.into()));
    let info = run(["store".as_ref(), "info".as_ref(), store.as_os_str(), "--json".as_ref()]).code(0).json();
    assert_eq!(info["rows"], events.len());
    let days = info["days"].as_array().unwrap();
    assert!(days.iter().any(|day| day["date"] == "2011-11-24"), "{info}");
    assert!(info["bytes_per_row"].as_f64().unwrap() > 1.0 && info["problems"] == Value::Array(vec![]));
}

/// Rows of every schema beside the event lines of the same events: fields of all classes, under the names of the lines.
#[test]
fn rows_of_every_schema_have_the_fields_of_the_event_lines() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (tape(dir.path()), dir.path().join("ticks"));
    let sealed = seal(&tape, &store, &[]);
    let path = store.to_str().unwrap();
    let (mut total, mut compared) = (0, 0);
    for schema in unitape_model::RowSchema::ALL.map(|schema| schema.name()) {
        let words = ["store", "scan", path, "--json", "--schema", schema];
        let mut events = run(words.into_iter().chain(["--events"])).code(0).lines();
        // Stable: ties stay in the order of the tape.
        events.sort_by_key(|event| event["ts"].as_i64().unwrap());
        let rows = run(words.into_iter().chain(["--with", "identity,provenance"])).code(0).lines();
        assert_eq!(rows.len(), events.len(), "{schema}");
        total += rows.len();
        for (row, event) in rows.iter().zip(&events) {
            for (name, value) in row.as_object().unwrap() {
                let of_line = match name.as_str() {
                    "publisher_id" | "instrument_id" | "sequence" | "raw_symbol" | "symbol" | "venue" => {
                        continue;
                    }
                    // Codes of Databento.
                    "action" | "side" | "cond" | "trade_flags" => continue,
                    "ts_recv" => continue,
                    "ts_event" => &event["ts"],
                    name => event.get(name).unwrap_or(&Value::Null),
                };
                let is_field = ["trades", "bbo", "mbo"].contains(&schema) && of_line.is_null();
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                // The digits are compared by the tests of the store; here numbers may be read as floating point.
                let number = |value: &Value| text(value).parse::<f64>().ok();
                let is_same = text(value) == text(of_line)
                    || number(value).is_some() && number(value) == number(of_line);
                assert!(is_field || is_same, "{schema} {name}: {row} {event}");
                compared += usize::from(!value.is_null());
            }
        }
        let columns = run(["store", "info", path, "--schema", schema, "--json"]).code(0).lines();
        if let Some(row) = rows.first() {
            assert_eq!(columns.len(), row.as_object().unwrap().len(), "{schema}");
        }
    }
    assert_eq!(sealed["rows"], total);
    assert!(compared > 4 * total, "{compared} of {total} rows");
    let symbols = run(["store", "info", path, "--symbols", "--json"]).code(0).lines();
    for symbol in &symbols {
        let name = symbol["symbol"].as_str().unwrap();
        let events = run(["store", "scan", path, "--json", "--symbol", name]).code(0).lines();
        // Events that list the instrument among others are not counted.
        let own = events.iter().filter(|event| event["instrs"].is_null());
        let times: Vec<i64> = own.map(|event| event["ts"].as_i64().unwrap()).collect();
        assert_eq!(symbol["rows"], times.len(), "{symbol}");
        assert_eq!(symbol["ts_min"], *times.iter().min().unwrap());
        assert_eq!(symbol["ts_max"], *times.iter().max().unwrap());
    }
    assert!(symbols.len() > 3, "{symbols:?}");
    run(["store", "scan", path, "--with", "identity"]).code(2).says(&["--with", "--schema"]);
    run(["store", "scan", path, "--schema", "bbo", "--with", "idenity"]).code(2).says(&["`identity`"]);
    run(["store", "info", path, "--schema", "trade"]).code(2).says(&["`trades`"]);
}

#[test]
fn info_lists_blocks_and_days_follow_a_calendar() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (tape(dir.path()), dir.path().join("ticks"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let calendar = path(&common::root().join("examples/calendar.csv"));
    let sealed = seal(&tape, &store, &["--calendar", &calendar]);
    let blocks = run(["store", "info", &path(&store), "--blocks", "--json"]).code(0).lines();
    let mut rows: std::collections::BTreeMap<String, Vec<u64>> = Default::default();
    for block in &blocks {
        let of_group = format!("{} {} {}", block["date"], block["schema"], block["symbol"]);
        rows.entry(of_group).or_default().push(block["rows"].as_u64().unwrap());
        assert!(store.join(block["file"].as_str().unwrap()).is_file(), "{block}");
    }
    // Small days: one block for each instrument and schema, whatever the kinds are.
    assert!(rows.values().all(|rows| rows.len() == 1), "{rows:?}");
    assert_eq!(rows.values().flatten().sum::<u64>(), sealed["rows"]);
    let lines = run(["store", "info", &path(&store), "--blocks"]).code(0).stdout;
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), blocks.len());
    run(["store", "verify", &path(&store)]).code(0);
    // The store keeps its calendar.
    let other =
        file(dir.path(), "other.csv", "what,key,date,time,zone,value\nvenue,XLON,,17:00,Europe/London,\n");
    let seal_with = |calendar: &str, store: &Path| {
        run(["store", "seal", &path(&tape), "--store", &path(store), "--calendar", calendar])
    };
    seal_with(&path(&other), &store).code(2).says(&["other calendar", "another calendar"]);
    seal_with(&calendar, &store).code(0);
    let bad =
        file(dir.path(), "bad.csv", "what,key,date,time,zone,value\nvenue,XLON,,25:00,Europe/London,\n");
    let none = dir.path().join("none");
    seal_with(&path(&bad), &none).code(1).says(&["bad.csv:2"]);
    assert!(!none.exists());
}

#[test]
fn filters_of_the_command_line_are_those_of_the_slow_way() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (tape(dir.path()), dir.path().join("ticks"));
    seal(&tape, &store, &[]);
    let events = cat(&tape, &[]);
    type Slow<'a> = &'a dyn Fn(&Value) -> bool;
    let is = |e: &Value, key: &str, want: &str| e[key] == want;
    let ts = |e: &Value| e["ts"].as_i64().unwrap();
    let cases: [(&[&str], Slow<'_>); 9] = [
        (&["--schema", "statistics", "--symbols", "J200,J203"], &|e| {
            is(e, "kind", "index") && (is(e, "index", "J200") || is(e, "index", "J203"))
        }),
        (&["--schema", "mbo", "--schema", "trades", "--venue", "CHIX"], &|e| {
            let kinds = ["order_new", "order_amend", "order_cancel", "exec", "trade"];
            kinds.contains(&e["kind"].as_str().unwrap()) && is(e, "venue", "CHIX")
        }),
        (&["--date", "2024-03-12"], &|e| {
            (1_710_201_600_000_000_000..1_710_288_000_000_000_000).contains(&ts(e))
        }),
        (&["--from", "2024-03-12", "--to", "2024-03-13T02:30:00Z"], &|e| {
            (1_710_201_600_000_000_000..1_710_297_000_000_000_000).contains(&ts(e))
        }),
        (&["--to", "1322116136151000001"], &|e| ts(e) <= 1_322_116_136_151_000_000),
        (
            &["--since", "2024-03-12", "--until", "2024-03-12T12:00", "--symbol", "I1", "--symbol", "I2"],
            &|e| {
                let is_listed =
                    e["instrs"].as_array().is_some_and(|all| all.iter().any(|i| i == "I1" || i == "I2"));
                (1_710_201_600_000_000_000..1_710_244_800_000_000_000).contains(&ts(e))
                    && (is(e, "instr", "I1") || is(e, "instr", "I2") || is_listed)
            },
        ),
        (&["--date", "undated"], &|e| is(e, "kind", "quarantine") && ts(e) == 0),
        (&["--schema", "quarantine"], &|e| is(e, "kind", "quarantine")),
        (&["--schema", "news", "--symbols", "I2"], &|e| {
            is(e, "kind", "news") && e["instrs"].as_array().unwrap().iter().any(|i| i == "I2")
        }),
    ];
    for (args, slow) in cases {
        let want: Vec<&Value> = events.iter().filter(|e| slow(e)).collect();
        let got = scan(&store, args).code(0).lines();
        let first = scan(&store, &[args, &["--limit", "2"]].concat()).code(0).lines();
        assert!(first.iter().eq(want.iter().take(2).copied()), "{args:?}: the first two");
        assert!(!want.is_empty(), "{args:?} finds nothing");
        assert!(got.iter().eq(want.iter().copied()), "{args:?}: {} of {}", got.len(), want.len());
    }
}

#[test]
fn a_tape_that_grew_adds_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (dir.path().join("tape"), dir.path().join("ticks"));
    for (n, seed) in [(1, 7), (2, 8)] {
        let orders = file(dir.path(), &format!("{seed}.fix"), common::flow(seed, 800, false).0);
        let feed = common::orders_option(&format!("feed{seed}"), &orders);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        let before = if n == 1 { 0 } else { scan(&store, &[]).code(0).lines().len() };
        let sealed = seal(&tape, &store, &[]);
        assert_eq!(sealed["generation"], n);
        assert_eq!(sealed["rows"].as_u64().unwrap() as usize + before, cat(&tape, &[]).len());
    }
    assert!(scan(&store, &[]).code(0).lines() == cat(&tape, &[]));
}

/// The file of the day and schema, and the offset of the second block in it.
fn second_block(store: &Path) -> (PathBuf, u64) {
    let path = store.join("2011-11-24/statistics/00000001.blocks");
    let bytes = std::fs::read(&path).unwrap();
    let first = u32::from_le_bytes(bytes[68..72].try_into().unwrap());
    (path, 64 + u64::from(first))
}

#[test]
fn a_damaged_block_is_named_and_its_neighbours_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (dir.path().join("tape"), dir.path().join("ticks"));
    run(["consolidate".as_ref(), jse().as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    seal(&tape, &store, &[]);
    let all = scan(&store, &[]).code(0).lines();
    let (path, at) = second_block(&store);
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[at as usize + 700] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    let ran = scan(&store, &[]).code(3).says(&[
        "2011-11-24/statistics/00000001.blocks",
        "block 1 at offset",
        "as they were sealed",
    ]);
    let left = ran.lines();
    assert!(left.len() < all.len() && left.len() > all.len() * 9 / 10, "{} of {}", left.len(), all.len());
    let rows = |lines: &[Value]| lines.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    let (whole, kept) = (rows(&all), rows(&left));
    let lost = all.iter().filter(|e| !kept.contains(&e.to_string()));
    let instruments: BTreeSet<_> = lost.map(|e| e["index"].to_string()).collect();
    assert_eq!(instruments.len(), 1, "{instruments:?}");

    // Cut off: a walk finds what comes before the cut.
    std::fs::write(&path, &good[..good.len() / 2]).unwrap();
    let left = scan(&store, &[]).code(3).says(&["bytes long, not"]).lines();
    assert!(left.len() > all.len() / 4 && rows(&left).is_subset(&whole));
    run(["store".as_ref(), "info".as_ref(), store.as_os_str()]).code(3).says(&["as the manifest says"]);
    std::fs::remove_file(&path).unwrap();
    let left = scan(&store, &[]).code(3).says(&["00000001.blocks"]).lines();
    assert!(left.iter().all(|e| e["kind"] == "status") && left.len() == 80);
    // Sealing does not touch what is there.
    assert_eq!(seal(&tape, &store, &[])["rows"], 0);
}

#[test]
fn what_cannot_be_is_told_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", common::flow(3, 200, false).0);
    let (tape, store) = (dir.path().join("tape"), dir.path().join("ticks"));
    common::consolidate_orders(&orders, &tape, 0);
    let at = |dir: &Path| dir.to_str().unwrap().to_owned();
    let no_tape = ["store", "seal", "no-such-tape", "--store", &at(&store)];
    run(no_tape).code(1).says(&["not a tape", "no-such-tape"]);
    assert!(!store.exists(), "a wrong path leaves no store behind");
    run(["store", "seal", &at(&tape), "--store", &at(&tape)]).code(1).says(&["not a store"]);
    assert!(!dir.path().join("ticks.key").exists() && !dir.path().join("tape.key").exists(), "nor a key");
    run(["store", "scan", &at(&store)]).code(1).says(&["no such directory"]);
    run(["store", "seal", &at(&tape), "--store", &at(&store), "--date", "2024-02-30"])
        .code(2)
        .says(&["not a date"]);
    run(["store", "seal", &at(&tape), "--store", &at(&store), "--memory", "1"])
        .code(2)
        .says(&["memory_bytes"]);
    run(["store", "seal", &at(&tape), "--store", &at(&store), "--memory", "64X"])
        .code(2)
        .says(&["64X", "digits"]);
    seal(&tape, &store, &[]);
    run(["store", "scan", &at(&store), "--schema", "bbo,ohlcv-1m"]).code(2).says(&["`ohlcv-1m`", "trades"]);
    run(["store", "scan", &at(&store), "--symbols", "NOPE"]).code(0).says(&["the symbol NOPE"]);
    run(["store", "scan", &at(&store), "--venue", "NOPE"]).code(0).says(&["the venue NOPE"]);
    run(["store", "scan", &at(&store), "--from", "noon"]).code(2).says(&["not a time"]);
    run(["store", "scan", &at(&store), "--schema", "mbo,trades"]).code(2).says(&["--events"]);
    run(["store", "scan", &at(&store), "--csv"]).code(2).says(&["give one --schema"]);
    run(["store", "scan", &at(&store), "--csv", "--json", "--schema", "bbo"]).code(2).says(&["--json"]);

    let manifest = store.join("manifest");
    let good = std::fs::read(&manifest).unwrap();
    let mut other = good.clone();
    assert!(other.starts_with(b"unitape-store 1 "));
    other[14] = b'7';
    std::fs::write(&manifest, other).unwrap();
    run(["store", "scan", &at(&store)]).code(1).says(&["foreign version", "format 7", "manifest"]);
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    std::fs::write(&manifest, &bad).unwrap();
    for args in [
        vec!["store".to_owned(), "scan".to_owned(), at(&store)],
        vec!["store".to_owned(), "seal".to_owned(), at(&tape), "--store".to_owned(), at(&store)],
    ] {
        run(args).code(3).says(&["damage", "manifest", "checksum"]);
    }
    std::fs::write(&manifest, &good).unwrap();
    scan(&store, &[]).code(0);

    let lock = std::fs::OpenOptions::new().write(true).open(store.join("store.lock")).unwrap();
    lock.lock().unwrap();
    run(["store", "seal", &at(&tape), "--store", &at(&store)]).code(1).says(&["locked", "store.lock"]);
}

/// A store is checked with its key and with the public one; what was remembered tells an older state of it.
#[test]
fn a_store_is_verified_and_an_older_state_of_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [tape, store, old, seen] = ["tape", "ticks", "old", "seen"].map(|name| dir.path().join(name));
    let verify = |more: &[&str]| {
        let args = ["store".as_ref(), "verify".as_ref(), store.as_os_str(), "--json".as_ref()];
        run(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
    };
    let remember = ["--remember", seen.to_str().unwrap()];
    let grow = |seed| {
        let orders = file(dir.path(), &format!("{seed}.fix"), common::flow(seed, 300, false).0);
        let feed = common::orders_option(&format!("feed{seed}"), &orders);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        seal(&tape, &store, &[])
    };
    assert_eq!(grow(7)["generation"], 1);
    let first = verify(&[]).code(0).json();
    assert_eq!((&first["generation"], &first["freshness"]), (&1.into(), &"unproven".into()));
    assert_eq!(first["problems"], 0);
    assert!(!seen.exists(), "nothing is remembered unless it is asked for");
    let public = first["public_key"].as_str().unwrap();
    let info = ["store".as_ref(), "info".as_ref(), store.as_os_str(), "--json".as_ref()];
    assert_eq!(run(info).code(0).json()["public_key"], public);
    for file in common::files(&store) {
        let path = old.join(file.0);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.1).unwrap();
    }
    let freshness = |more: &[&str], code| verify(more).code(code).json()["freshness"].clone();
    assert_eq!(freshness(&["--at-least", "1"], 0), "proven");
    assert_eq!(freshness(&["--at-least", "2"], 3), "rolled back");
    assert_eq!(freshness(&remember, 0), "proven");
    assert_eq!(grow(8)["generation"], 2);
    let grown = verify(&remember).code(0).json();
    assert_eq!((&grown["freshness"], &grown["remembered"]), (&"proven".into(), &1.into()));

    // The older state is whole; only what was remembered tells it.
    let newer = dir.path().join("newer");
    std::fs::rename(&store, &newer).unwrap();
    std::fs::rename(&old, &store).unwrap();
    assert_eq!(freshness(&[], 0), "unproven");
    for _ in 0..2 {
        assert_eq!(freshness(&remember, 3), "rolled back");
        assert_eq!(freshness(&["--public-key", public, remember[0], remember[1]], 3), "rolled back");
    }
    let words = ["store".as_ref(), "verify".as_ref(), store.as_os_str(), "--at-least".as_ref(), "2".as_ref()];
    assert!(run(words).code(3).text().contains("rolled back: generation 2 was there before"));

    // Without the key of the store, the public one finds what is changed; another one is refused.
    std::fs::remove_file(store.with_extension("key")).unwrap();
    verify(&[]).code(1).says(&["no key"]);
    verify(&["--public-key", public]).code(0);
    verify(&["--public-key", &"5a".repeat(32)]).code(1).says(&["wrong key", public]);
    let file = store.join("dictionary.log");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(store.join("notes"), "x").unwrap();
    let lines = verify(&["--public-key", public]).code(3).lines();
    let findings: Vec<_> = lines.iter().map(|line| line["finding"].as_str().unwrap_or_default()).collect();
    assert_eq!(findings, ["changed", "foreign", ""], "{lines:?}");
    assert_eq!((&lines[2]["problems"], &lines[2]["generation"]), (&2.into(), &1.into()));
    std::fs::write(store.join("manifest"), "x").unwrap();
    let lines = verify(&[]).code(3).lines();
    assert_eq!((&lines[1]["generation"], &lines[1]["problems"]), (&Value::Null, &1.into()));
}

/// `store scan … | head` must end quietly.
#[test]
fn a_closed_stdout_ends_a_scan_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, store) = (dir.path().join("tape"), dir.path().join("ticks"));
    run(["consolidate".as_ref(), jse().as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    seal(&tape, &store, &[]);
    let mut child = unitape()
        .args(["store".as_ref(), "scan".as_ref(), store.as_os_str(), "--json".as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), String::from_utf8_lossy(&out.stderr).as_ref()), (Some(0), ""));
}
