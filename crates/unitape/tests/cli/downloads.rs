//! Files that people download, by the shipped mappings.

use crate::common::{self, cat, file, root, run};
use serde_json::{Value, json};
use std::path::Path;

fn events(mapping: &str, source: &Path, code: i32) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    let feed = format!("f=csv:{mapping}:{}", source.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(code);
    let mut events = cat(&tape, &[]);
    for event in &mut events {
        event.as_object_mut().unwrap().remove("seq");
    }
    events
}

/// Each shipped mapping reads a file as its venue or program writes it: instrument from the file's name, times in UTC.
#[test]
fn ticks_trades_and_bars_as_they_are_downloaded() {
    // 22:00:03.123 UTC on 1 March 2026, which is midnight of the next day in Eastern Europe, and 17 o'clock in New York.
    const TS: u64 = 1_772_402_403_123_000_000;
    let quote = |venue: &str, instr: &str, ts: u64| json!({"ts": ts, "kind": "bbo", "venue": venue, "instr": instr, "bid": "1.08001", "ask": "1.08012"});
    let with = |mut event: Value, more: Value| {
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let dukascopy =
        |instr, ts| with(quote("DUKASCOPY", instr, ts), json!({"bid_qty": "0.75", "ask_qty": "1.5"}));
    let bar = |volume: Value| {
        with(
            json!({"ts": 1_772_402_400_000_000_000u64, "kind": "ref_px", "instr": "EURUSD", "px": "1.08001", "source": "open"}),
            volume,
        )
    };
    for (mapping, name, first) in [
        ("dukascopy-ticks", "EURUSD_Ticks_02.03.2026-02.03.2026.csv", dukascopy("EURUSD", TS)),
        (
            "dukascopy-ticks",
            "eurusd-tick-2026-03-02-2026-03-03.csv",
            dukascopy("eurusd", TS + 7_200_000_000_000),
        ),
        (
            "histdata-ticks",
            "DAT_ASCII_EURUSD_T_202603.csv",
            with(quote("HISTDATA", "EURUSD", TS), json!({"volume": "0"})),
        ),
        (
            "histdata-bars",
            "DAT_ASCII_EURUSD_M1_2026.csv",
            bar(json!({"high": "1.08015", "low": "1.08", "close": "1.0801", "volume": "0"})),
        ),
        ("truefx-ticks", "EURUSD-2026-03.csv", quote("TRUEFX", "EUR/USD", TS)),
        (
            "mt5-ticks",
            "EURUSD_202603020000_202603020001.csv",
            json!({"ts": TS, "kind": "bbo", "instr": "EURUSD", "bid": "1.08001", "ask": "1.08012", "<FLAGS>": "6"}),
        ),
        (
            "mt5-bars",
            "EURUSD_M1_202603020000_202603020001.csv",
            bar(
                json!({"<HIGH>": "1.08015", "<LOW>": "1.08", "<CLOSE>": "1.0801", "<TICKVOL>": "40", "<VOL>": "0", "<SPREAD>": "11"}),
            ),
        ),
        (
            "binance-trades",
            "BTCUSDT-trades-2024-12-31.csv",
            json!({"ts": 1_735_689_599_999_000_000u64, "kind": "trade", "venue": "BINANCE", "instr": "BTCUSDT", "px": "93576.1", "qty": "0.015", "match_id": "100", "side": "B", "quote_qty": "1403.6415", "is_best_match": "True"}),
        ),
        (
            "binance-futures-trades",
            "ETHUSDT-trades-2026-03-02.csv",
            json!({"ts": TS + 7_200_000_000_000, "kind": "trade", "venue": "BINANCE", "instr": "ETHUSDT", "px": "2500.25", "qty": "1.5", "match_id": "7", "side": "S", "quote_qty": "3750.375"}),
        ),
        (
            "binance-agg-trades",
            "BTCUSDT-aggTrades-2026-03-02.csv",
            json!({"ts": 1_772_409_603_123_456_000u64, "kind": "trade", "venue": "BINANCE", "instr": "BTCUSDT", "px": "93576.1", "qty": "0.015", "match_id": "501", "side": "B", "first_trade_id": "700", "last_trade_id": "702", "is_best_match": "True"}),
        ),
        (
            "binance-agg-trades",
            "BTCUSDT_260327-aggTrades-2026-03-02.csv",
            json!({"ts": TS + 7_200_000_000_000, "kind": "trade", "venue": "BINANCE", "instr": "BTCUSDT_260327", "px": "94010.5", "qty": "2", "match_id": "501", "side": "B", "first_trade_id": "800", "last_trade_id": "801"}),
        ),
        (
            "binance-klines",
            "ETHUSDT-1m-2026-03-02.csv",
            json!({"ts": 1_772_409_659_999_000_000u64, "kind": "ref_px", "instr": "ETHUSDT", "px": "2500.5", "source": "close", "open_time": "2026-03-02T00:00:00Z", "open": "2500.1", "high": "2501", "low": "2499", "volume": "120", "quote_volume": "300060", "count": "310", "taker_buy_volume": "60", "taker_buy_quote_volume": "150030"}),
        ),
        (
            "binance-klines",
            "BTCUSDT-1m-2026-03-02.csv",
            json!({"ts": 1_772_409_659_999_999_000u64, "kind": "ref_px", "instr": "BTCUSDT", "px": "93575.5", "source": "close", "open_time": "2026-03-02T00:00:00Z", "open": "93576.1", "high": "93580", "low": "93570", "volume": "12.5", "quote_volume": "1169700.1", "count": "310", "taker_buy_volume": "6.25", "taker_buy_quote_volume": "584850.05"}),
        ),
    ] {
        let events = events(mapping, &root().join("vectors/csv").join(name), 0);
        assert_eq!(events[0], first, "{mapping}: {name}");
        assert!(
            events.len() >= 2 && events.iter().all(|event| event["instr"] == first["instr"]),
            "{events:?}"
        );
    }
}

/// The page said that files with a header are recognised, and those of Dukascopy and of Binance's futures were not.
#[test]
fn files_with_a_header_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    for (i, (name, instr)) in [
        ("ETHUSDT-trades-2026-03-02.csv", "ETHUSDT"),
        ("BTCUSDT_260327-aggTrades-2026-03-02.csv", "BTCUSDT_260327"),
        ("ETHUSDT-1m-2026-03-02.csv", "ETHUSDT"),
        ("EURUSD_Ticks_02.03.2026-02.03.2026.csv", "EURUSD"),
        ("eurusd-tick-2026-03-02-2026-03-03.csv", "eurusd"),
        ("EURUSD_202603020000_202603020001.csv", "EURUSD"),
        ("EURUSD_M1_202603020000_202603020001.csv", "EURUSD"),
    ]
    .into_iter()
    .enumerate()
    {
        let (source, tape) = (root().join("vectors/csv").join(name), dir.path().join(i.to_string()));
        run(["consolidate", source.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
        let events = cat(&tape, &[]);
        assert!(
            events.len() >= 2 && events.iter().all(|event| event["instr"] == instr),
            "{name}: {events:?}"
        );
    }
    // Another file is none of these, and names its kind.
    for (name, bytes, words) in [
        ("a.csv", &b"time,price\n1,2\n"[..], "it begins with"),
        ("a.zip", b"PK\x03\x04\x14\0\0\0", "ZIP archive"),
        ("b.csv", b"\xff\xfea\0,\0b\0\n\0", "UTF-16"),
    ] {
        let source = file(dir.path(), name, bytes);
        let tape = dir.path().join("none");
        run(["consolidate", source.to_str().unwrap(), "--tape", tape.to_str().unwrap()])
            .code(3)
            .says(&[words]);
    }
}

/// A trade that the buyer's resting order made, and the change from milliseconds to microseconds in the year 2025.
#[test]
fn trades_have_the_side_of_the_aggressor_and_either_unit_of_time() {
    let events = events("binance-trades", &root().join("vectors/csv/BTCUSDT-trades-2024-12-31.csv"), 0);
    assert_eq!((&events[1]["side"], &events[1]["ts"]), (&json!("S"), &json!(1_735_689_600_000_123_000u64)));
    let dir = tempfile::tempdir().unwrap();
    let rows = "1,2,3,6,1735689600,true,true\n2,2,3,6,17356896000001,true,true\n3,2,3,6,1735689600001,maybe,true\n4,2,3,6,1735689600001,true,true\n";
    let source = file(dir.path(), "BTCUSDT-trades-2025-01.csv", rows);
    let tape = dir.path().join("tape");
    let feed = format!("f=csv:binance-trades:{}", source.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
    let reasons: Vec<_> = common::quarantine(&tape).iter().map(|entry| entry["reason"].clone()).collect();
    assert_eq!(reasons, ["bad_time", "bad_time", "unknown_value"]);
    assert_eq!(cat(&tape, &["--kind", "trade"])[0]["match_id"], "4");
}

/// After each row the book has both sides, also where the row has one, and a row of a last price alone is no quote.
#[test]
fn ticks_of_one_side_leave_the_other_one() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "<DATE>\t<TIME>\t<BID>\t<ASK>\t<LAST>\t<VOLUME>\t<FLAGS>\n\
        2026.03.02\t00:00:03.123\t1.08001\t1.08012\t\t\t6\n2026.03.02\t00:00:03.456\t\t1.08013\t\t\t4\n\
        2026.03.02\t00:00:03.789\t1.08002\t\t1.08002\t3\t26\n2026.03.02\t00:00:04.001\t\t\t1.08005\t2\t24\n";
    let source = file(dir.path(), "EURUSD_202603020000_202603022359.csv", rows);
    let tape = dir.path().join("tape");
    // Known by its header.
    run(["consolidate", source.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
    let book = run(["book", "bbo", tape.to_str().unwrap(), "--json"]).code(0).lines();
    let best: Vec<_> =
        book.iter().filter(|line| line["bid"].is_string()).map(|line| (&line["bid"], &line["ask"])).collect();
    assert_eq!(*best.last().unwrap(), (&json!("1.08002"), &json!("1.08013")));
    let trades = cat(&tape, &["--kind", "trade"]);
    assert_eq!((trades.len(), &trades[1]["px"], &trades[0]["qty"]), (2, &json!("1.08005"), &json!("3")));
    assert_eq!(cat(&tape, &["--kind", "bbo"]).len(), 3);
}

/// A message file of LOBSTER: the size of a partial cancel is what goes, and was taken for what is left.
#[test]
fn messages_of_lobster_make_the_book_of_their_orders() {
    let source = root().join("vectors/csv/ABCD_2012-06-21_34200000_57600000_message_10.csv");
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    let feed = format!("f=csv:lobster:{}", source.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let mut events = cat(&tape, &[]);
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        event.remove("seq");
        assert_eq!(
            (event.remove("venue"), event.remove("instr")),
            (Some(json!("XNAS")), Some(json!("ABCD")))
        );
    }
    // 9:30 in New York.
    const OPEN: u64 = 1_340_285_400_000_000_000;
    let order = |ts: u64, kind: &str, oid: &str, side: &str, px: &str| json!({"ts": OPEN + ts, "kind": kind, "oid": oid, "side": side, "px": px});
    let with = |mut event: Value, more: Value| {
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let new = |qty: &str| json!({"qty": qty, "type": "limit"});
    let status = |ts: u64, state: &str| json!({"ts": OPEN + ts, "kind": "status", "state": state});
    let trade =
        |ts: u64, px: &str, qty: &str| json!({"ts": OPEN + ts, "kind": "trade", "px": px, "qty": qty});
    let [a, b, c] = ["16113575", "16113584", "16120456"];
    let expected = [
        with(order(17_459_617, "order_new", a, "B", "585.33"), new("300")),
        with(order(189_607_670, "order_new", b, "B", "585.33"), new("200")),
        with(order(190_226_476, "order_new", c, "S", "585.91"), new("18")),
        with(order(372_779_672, "order_amend", a, "B", "585.33"), json!({"qty_reduced": "100"})),
        with(order(375_671_205, "exec", a, "B", "585.33"), json!({"qty": "50", "liq": "A"})),
        with(trade(375_671_205, "585.33", "50"), json!({"side": "S"})),
        with(trade(383_971_366, "585.71", "100"), json!({"side": "B", "type": "5"})),
        with(trade(400_000_001, "585.5", "4500"), json!({"trade_flags": ["auction"], "order_id": "-1"})),
        with(order(1_500_000_000, "order_cancel", b, "B", "585.33"), json!({"qty": "200"})),
        status(1_800_250_000_000, "halted"),
        status(2_100_000_000_000, "quotation"),
        status(2_160_000_000_001, "trading"),
        with(order(2_161_100_000_000, "exec", c, "S", "585.91"), json!({"qty": "18", "liq": "A"})),
        with(trade(2_161_100_000_000, "585.91", "18"), json!({"side": "B"})),
    ];
    assert_eq!(events, expected);
    let book = |at: &str| {
        run(["book", "show", tape.to_str().unwrap(), "--orders", "--at", at, "--json"]).code(0).lines()[0]
            .clone()
    };
    let queue = |line: &Value, side: &str| line[side][0]["queue"].clone();
    let (before, after) =
        (json!({"oid": a, "left": "200", "done": "0"}), json!({"oid": a, "left": "150", "done": "50"}));
    let next = json!({"oid": b, "left": "200", "done": "0"});
    assert_eq!(queue(&book("4"), "bids"), json!([before, next]), "the first one keeps its place");
    assert_eq!(
        queue(&book("8"), "bids"),
        json!([after, next]),
        "crosses and hidden executions are of no book"
    );
    assert_eq!(book("10")["marks"], json!(["halted"]));
    let end = book("14");
    assert_eq!((queue(&end, "bids"), &end["asks"], &end["marks"]), (json!([after]), &json!([]), &json!([])));
    let picture = dir.path().join("picture.json");
    let listing = ["--instr", "ABCD", "--venue", "XNAS"];
    let (since, until) = (OPEN.to_string(), (OPEN + 2_000_000_000).to_string());
    let span = ["--since", &since, "--until", &until, "-o", picture.to_str().unwrap()];
    run(["book", "picture", tape.to_str().unwrap()].iter().chain(&listing).chain(&span)).code(0);
    let picture: Value = serde_json::from_slice(&std::fs::read(picture).unwrap()).unwrap();
    let lifelines = picture["orders"].as_array().unwrap();
    let line = lifelines.iter().find(|line| line["oid"] == a).unwrap();
    assert_eq!(line["steps"][1]["qty_reduced"], "100", "{line}");
}

/// The day is in the name of the file, and bad rows leave their neighbours unharmed.
#[test]
fn rows_of_lobster_that_cannot_be() {
    let refused = |name: &str, rows: &str| -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("tape");
        let feed = format!("f=csv:lobster:{}", file(dir.path(), name, rows).display());
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
        common::quarantine(&tape).iter().map(|entry| entry["reason"].clone()).collect()
    };
    let good = "34200.5,1,7,300,5853300,1\n";
    assert_eq!(refused("ABCD_message_10.csv", good), ["no_date"]);
    // A type, a direction and a time that there is not, a price with a point, a row of another file.
    let rows = "34200.5,8,7,300,5853300,1\n34200.5,1,7,300,5853300,0\n86400,1,7,300,5853300,1\n34200.5,1,7,300,585.33,1\n5859400,200,5853300,18\n";
    let reasons = refused("ABCD_2012-06-21_34200000_57600000_message_10.csv", &format!("{good}{rows}{good}"));
    assert_eq!(reasons, ["no_rule", "unknown_value", "bad_time", "bad_number", "ragged_row"]);
}

/// The name was cut at each character that is no letter or digit: futures of one underlying became one instrument, and so
/// did BRK.A and BRK.B. A name without the separator or the part refuses its rows.
#[test]
fn the_instrument_may_be_in_the_name_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let sample = |name: &str| std::fs::read_to_string(root().join("vectors/csv").join(name)).unwrap();
    for (mapping, rows, names) in [
        (
            "binance-trades",
            sample("BTCUSDT-trades-2024-12-31.csv"),
            &[
                ("BTCUSDT-trades-2024-12.csv", "BTCUSDT"),
                ("BTCUSDT_260327-trades-2024-12-31.csv", "BTCUSDT_260327"),
            ][..],
        ),
        (
            "binance-klines",
            sample("BTCUSDT-1m-2026-03-02.csv"),
            &[
                ("BTCUSD_PERP-1m-2026-03-02.csv", "BTCUSD_PERP"),
                ("BTCUSD_260327-1h-2026-03.csv", "BTCUSD_260327"),
            ],
        ),
        (
            "mt5-bars",
            sample("EURUSD_M1_202603020000_202603020001.csv"),
            &[
                ("BRK.A_M1_202603020000_202603020001.csv", "BRK.A"),
                ("BRK.B_M1_202603020000_202603020001.csv", "BRK.B"),
                ("US 500_M1_202603020000_202603020001.csv", "US 500"),
                ("US500_CASH_Daily_202603020000_202603020001.csv", "US500_CASH"),
            ],
        ),
        (
            "mt5-ticks",
            sample("EURUSD_202603020000_202603020001.csv"),
            &[("US 500_202603020000_202603020001.csv", "US 500")],
        ),
        (
            "dukascopy-ticks",
            sample("EURUSD_Ticks_02.03.2026-02.03.2026.csv"),
            &[("USA500.IDXUSD_Ticks_02.03.2026-02.03.2026.csv", "USA500.IDXUSD")],
        ),
        (
            "histdata-ticks",
            sample("DAT_ASCII_EURUSD_T_202603.csv"),
            &[("DAT_ASCII_USDJPY_T_202603.csv", "USDJPY")],
        ),
    ] {
        for (name, instr) in names {
            let events = events(mapping, &file(dir.path(), name, &rows), 0);
            assert!(events.iter().all(|event| event["instr"] == *instr), "{mapping} {name}: {events:?}");
        }
        for name in ["ticks.csv", ".csv", "EURUSD"] {
            let source = file(dir.path(), name, &rows);
            let tape = dir.path().join(format!("{mapping}-{name}-tape"));
            let feed = format!("f=csv:{mapping}:{}", source.display());
            run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
            let refused = &common::quarantine(&tape)[0];
            let detail = refused["detail"].as_str().unwrap();
            assert_eq!(refused["reason"], "missing");
            assert!(detail.contains("@file[") && detail.contains(&format!("\"{name}\"")), "{detail}");
        }
    }
    for path in ["@file[2]", "@file[01, \"_\"]", "@file[]", "@file[-1, \"_\"]", "@file[:-0, \"_\"]", "@file"]
    {
        let shown = run(["mapping", "show", "histdata-ticks"]);
        let text = shown.code(0).text().replace("@file[2, \"_\"]", path);
        let wrong = file(dir.path(), "wrong.toml", text);
        run(["mapping", "check", wrong.to_str().unwrap()]).code(1).says(&[path, "no column", "@file[0, "]);
    }
}
