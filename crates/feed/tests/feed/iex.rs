//! IEX captures onto the tape. Risks beyond ITCH: the numbers of messages are part of the state, so a block that is
//! decoded twice, not at all or out of turn makes gaps and duplicates that never were.

use crate::common::{self, assert_same, events, run};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use unitape_codec::iex::IexProtocol;
use unitape_codec::itch::MoldPacketHeader;
use unitape_codec::itch::{ItchMessageHeader, ItchSampleValue, write};
use unitape_codec::twin::iex::sample::{IexSampleConfig, capture, sample_packets};
use unitape_feed::{FileFeed, Mapping, TapeAccount, detect, feed_of_file, feed_of_option, quarantine};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/iex")
}

fn feed(path: &Path) -> FileFeed {
    feed_of_option(&format!("iex=iex:iex:{}", path.display())).unwrap()
}

/// A session as a capture: packets doubled, missing, out of turn, with bits flipped and bytes cut off.
fn adversarial(seed: u64, protocol: IexProtocol, messages: usize) -> Vec<u8> {
    let packets = sample_packets(IexSampleConfig { protocol, messages, symbols: 5, seed });
    let mut state = seed | 1;
    let mut random = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut out: Vec<Vec<u8>> = Vec::new();
    for mut packet in packets {
        match random(60) {
            0 => continue,
            1 => out.push(packet.clone()),
            2 => packet.truncate(packet.len() - 1 - random(packet.len() as u64 - 1) as usize),
            3 => {
                let index = random(packet.len() as u64) as usize;
                // Not in the sequence: a number that is far ahead would make all later messages late.
                if !(24..32).contains(&index) {
                    packet[index] ^= 1 << random(8);
                }
            }
            4 if !out.is_empty() => {
                let last = out.len() - 1;
                out.insert(last, packet);
                continue;
            }
            5 => packet.extend_from_slice(b"behind"),
            _ => {}
        }
        out.push(packet);
    }
    capture(&out)
}

/// All of the vectors becomes events, whose words are a promise to the readers of the tape.
#[test]
fn every_type_of_iex_as_events() {
    for (file, expected) in [
        (
            "tops.pcap",
            expect_test::expect![[r#"
            {"reason":"O","state":"system","kind":"status","venue":"IEXG"}
            {"phase":"open","venue":"IEXG","kind":"session"}
            {"reason":"S","state":"system","kind":"status","venue":"IEXG"}
            {"etp":true,"test_security":true,"kind":"ref","instr":"ZIEXT","prev_close":"99.05","ccy":"USD","tier":1,"lot":"100","mic":"IEXG","symbol":"ZIEXT"}
            {"phase":"open","instr":"ZIEXT","kind":"session","venue":"IEXG"}
            {"state":"trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"retail","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"op_trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"short_sale_detail":"N","reason":"0","kind":"status","venue":"IEXG","instr":"ZIEXT","state":"reg_sho"}
            {"reason":"R","state":"system","kind":"status","venue":"IEXG"}
            {"reason":"C","state":"retail","kind":"status","venue":"IEXG","instr":"ZIEXT"}
            {"ask_qty":"1000","ask":"99.07","kind":"bbo","venue":"IEXG","instr":"ZIEXT","bid":"99.03","bid_qty":"100"}
            {"trade_flags":["no_last"],"cond":"I","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.07","qty":"30","match_id":429974}
            {"ask_qty":"970","ask":"99.07","kind":"bbo","venue":"IEXG","instr":"ZIEXT","bid":"99.03","bid_qty":"100"}
            {"phase":"halt","instr":"ZIEXT","kind":"session","venue":"IEXG"}
            {"reason":"T1","state":"halted","kind":"status","venue":"IEXG","instr":"ZIEXT"}
            {"unavailable":true,"ask_qty":"970","kind":"bbo","venue":"IEXG","instr":"ZIEXT","ask":"99.07"}
            {"short_sale_detail":"A","reason":"1","kind":"status","venue":"IEXG","instr":"ZIEXT","state":"reg_sho"}
            {"state":"op_halt","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"upper":"103.95","lower":"94.05","kind":"ref_px","instr":"ZIEXT","px":"99.05","source":"auction","auction_type":"O","paired":500,"imbalance":200,"imbalance_side":"B","extension":1,"scheduled_time":1772461800,"indicative":"99.06","book_clearing":"99.07","collar_reference":"99"}
            {"source":"official_open","px":"99.05","kind":"ref_px","instr":"ZIEXT"}
            {"trade_flags":["no_last"],"action":"cancel","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.07","qty":"30","match_id":429974,"cond":"I"}
            {"phase":"close","venue":"IEXG","kind":"session"}
            {"reason":"E","state":"system","kind":"status","venue":"IEXG"}
            {"reason":"C","state":"system","kind":"status","venue":"IEXG"}
        "#]],
        ),
        (
            "deep.pcapng",
            expect_test::expect![[r#"
            {"reason":"O","state":"system","kind":"status","venue":"IEXG"}
            {"phase":"open","venue":"IEXG","kind":"session"}
            {"reason":"S","state":"system","kind":"status","venue":"IEXG"}
            {"etp":true,"test_security":true,"kind":"ref","instr":"ZIEXT","prev_close":"99.05","ccy":"USD","tier":1,"lot":"100","mic":"IEXG","symbol":"ZIEXT"}
            {"phase":"open","instr":"ZIEXT","kind":"session","venue":"IEXG"}
            {"state":"trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"retail","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"op_trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"short_sale_detail":"N","reason":"0","kind":"status","venue":"IEXG","instr":"ZIEXT","state":"reg_sho"}
            {"reason":"O","state":"opening_complete","kind":"status","venue":"IEXG","instr":"ZIEXT"}
            {"qty":"300","px":"99.05","kind":"level","venue":"IEXG","instr":"ZIEXT","side":"B","action":"U"}
            {"qty":"1000","px":"99.07","kind":"level","venue":"IEXG","instr":"ZIEXT","side":"S","action":"U"}
            {"qty":"500","px":"99.08","kind":"level","venue":"IEXG","instr":"ZIEXT","side":"S","action":"U"}
            {"trade_flags":["iso"],"cond":"F","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.07","qty":"1000","match_id":429975}
            {"trade_flags":["iso"],"cond":"F","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.08","qty":"200","match_id":429976}
            {"event_incomplete":true,"qty":"0","kind":"level","venue":"IEXG","instr":"ZIEXT","side":"S","action":"D","px":"99.07"}
            {"qty":"300","px":"99.08","kind":"level","venue":"IEXG","instr":"ZIEXT","side":"S","action":"U"}
            {"upper":"103.95","lower":"94.05","kind":"ref_px","instr":"ZIEXT","px":"99.05","source":"auction","auction_type":"O","paired":500,"imbalance":200,"imbalance_side":"B","extension":1,"scheduled_time":1772461800,"indicative":"99.06","book_clearing":"99.07","collar_reference":"99"}
            {"source":"official_close","px":"99.08","kind":"ref_px","instr":"ZIEXT"}
            {"trade_flags":["iso"],"action":"cancel","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.08","qty":"200","match_id":429976,"cond":"F"}
            {"phase":"close","venue":"IEXG","kind":"session"}
            {"reason":"E","state":"system","kind":"status","venue":"IEXG"}
            {"reason":"C","state":"system","kind":"status","venue":"IEXG"}
        "#]],
        ),
        (
            "deep_plus.pcap",
            expect_test::expect![[r#"
            {"reason":"O","state":"system","kind":"status","venue":"IEXG"}
            {"phase":"open","venue":"IEXG","kind":"session"}
            {"reason":"S","state":"system","kind":"status","venue":"IEXG"}
            {"etp":true,"test_security":true,"kind":"ref","instr":"ZIEXT","prev_close":"99.05","ccy":"USD","tier":1,"lot":"100","mic":"IEXG","symbol":"ZIEXT"}
            {"phase":"open","instr":"ZIEXT","kind":"session","venue":"IEXG"}
            {"state":"trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"retail","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"state":"op_trading","instr":"ZIEXT","kind":"status","venue":"IEXG"}
            {"short_sale_detail":"N","reason":"0","kind":"status","venue":"IEXG","instr":"ZIEXT","state":"reg_sho"}
            {"reason":"O","state":"opening_complete","kind":"status","venue":"IEXG","instr":"ZIEXT"}
            {"type":"limit","instr":"ZIEXT","kind":"order_new","oid":1001,"side":"B","px":"99.05","qty":"300","venue":"IEXG"}
            {"type":"limit","instr":"ZIEXT","kind":"order_new","oid":1002,"side":"B","px":"99.05","qty":"100","venue":"IEXG"}
            {"type":"limit","instr":"ZIEXT","kind":"order_new","oid":1003,"side":"S","px":"99.07","qty":"1000","venue":"IEXG"}
            {"instr":"ZIEXT","venue":"IEXG","kind":"order_amend","oid":1001,"side":"B","px":"99.05","qty":"200"}
            {"reason":"priority_reset","instr":"ZIEXT","kind":"order_cancel","oid":1002,"side":"B","px":"99.05","qty":"100","venue":"IEXG"}
            {"reason":"priority_reset","type":"limit","kind":"order_new","oid":1002,"side":"B","px":"99.05","qty":"100","venue":"IEXG","instr":"ZIEXT"}
            {"left":600,"instr":"ZIEXT","kind":"exec","oid":1003,"match_id":429977,"side":"S","px":"99.07","qty":"400","liq":"A","venue":"IEXG"}
            {"side":"B","match_id":429977,"kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.07","qty":"400"}
            {"trade_flags":["auction","no_last"],"cond":"TX","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.06","qty":"50","match_id":429978}
            {"trade_flags":["auction","no_last"],"action":"cancel","kind":"trade","venue":"IEXG","instr":"ZIEXT","px":"99.06","qty":"50","match_id":429978,"cond":"TX"}
            {"instr":"ZIEXT","venue":"IEXG","kind":"order_cancel","oid":1001,"side":"B","px":"99.05","qty":"200"}
            {"orders":2,"reason":"clear_book","kind":"status","venue":"IEXG","instr":"ZIEXT","state":"restarted"}
            {"phase":"close","venue":"IEXG","kind":"session"}
            {"reason":"E","state":"system","kind":"status","venue":"IEXG"}
            {"reason":"C","state":"system","kind":"status","venue":"IEXG"}
        "#]],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("tape");
        let outcome = run(&tape, &[feed(&vectors().join(file))], 1, 1 << 20);
        assert_eq!(outcome.summary.quarantined, 0, "{file}");
        let lines: Vec<String> = events(&tape).iter().map(line).collect();
        expected.assert_eq(&format!("{}\n", lines.join("\n")));
        let report = unitape_tape::verify(&tape).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// An event without what the reader of this test does not need.
fn line(event: &serde_json::Value) -> String {
    let mut event = event.clone();
    let fields = event.as_object_mut().unwrap();
    for name in ["seq", "ts", "position", "ids", "src"] {
        fields.remove(name);
    }
    event.to_string()
}

/// A capture that somebody downloaded needs no option: its packets say which format it is.
#[test]
fn iex_captures_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["tops.pcap", "deep.pcapng", "deep_plus.pcap"] {
        let path = vectors().join(file);
        assert_eq!(detect(&path).unwrap().name(), "iex", "{file}");
        assert!(feed_of_file(&path).is_ok());
    }
    let other = dir.path().join("other.pcap");
    std::fs::write(&other, capture(&[b"forty bytes and more that are no packet of IEX-TP"])).unwrap();
    assert!(detect(&other).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_workers_and_any_cut_give_the_same_tape_of_iex(
        seed in any::<u64>(), which in 0usize..3, workers in 2usize..5, block in 64usize..6000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.pcap");
        std::fs::write(&path, adversarial(seed, IexProtocol::ALL[which], 1_500)).unwrap();
        let feeds = [feed(&path)];
        let (one, many) = (dir.path().join("one"), dir.path().join("many"));
        let outcome = run(&one, &feeds, 1, 1 << 20);
        run(&many, &feeds, workers, block);
        assert_same(&one, &many, &format!("seed {seed}, {workers} workers, blocks of {block}"));
        prop_assert!(outcome.summary.quarantined > 0);
        prop_assert!(TapeAccount::load(&one).unwrap().sources.iter().all(|s| s.tally.is_balanced() && s.end));
    }
}

/// Each run must find numbers and orders as the one before it left them.
#[test]
fn an_iex_session_in_many_runs_is_the_session_in_one() {
    let mut runs = 0;
    for (seed, protocol) in [(1, IexProtocol::DeepPlus), (2, IexProtocol::Deep)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.pcap");
        // More than a mebibyte, so that there are marks of progress in between.
        std::fs::write(&path, adversarial(seed, protocol, 60_000)).unwrap();
        let feeds = [feed(&path)];
        let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
        run(&whole, &feeds, 1, 1 << 20);
        runs += common::run_in_parts(&parts, &feeds, 2, 20_000, 12_000);
        assert_same(&whole, &parts, &format!("seed {seed}"));
    }
    assert!(runs > 3, "{runs} runs");
}

/// A message in quarantine once had only its own bytes, or a place that no retry came to: nothing that came in packets
/// could be tried again.
#[test]
fn messages_of_packets_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let suffix = |mapping: &str| {
        // A name of 255 bytes at most: with this suffix no symbol is one.
        let text = Mapping::built_in(mapping)
            .unwrap()
            .text
            .replace("suffix = \"\"", &format!("suffix = \"{}\"", "x".repeat(255)));
        text.replace(&format!("name = \"{mapping}\""), "name = \"mine\"")
    };
    let mold = |text: &str| {
        text.replace("framing = \"length\"", "framing = \"mold\"")
            .replace("# session_date = \"2020-01-30\"", "session_date = \"2020-01-30\"")
    };
    let mut order = Vec::new();
    let values = [
        ItchSampleValue::Number(77),
        ItchSampleValue::Text(b"B"),
        ItchSampleValue::Number(100),
        ItchSampleValue::Text(b"ZVZZT"),
        ItchSampleValue::Number(123_000),
    ];
    let header = ItchMessageHeader { stock_locate: 5, tracking_number: 0, timestamp_ns: 34_200_000_000_000 };
    write(&mut order, b'A', header, &values);
    let mut packet = Vec::new();
    MoldPacketHeader { session: *b"000000001A", sequence: 1, count: 1 }.write(&mut packet);
    packet.extend_from_slice(&order);
    let itch = dir.path().join("itch.pcap");
    std::fs::write(&itch, capture(&[packet])).unwrap();
    let (bad, good) =
        (mold(&suffix("nasdaq-itch50")), mold(&Mapping::built_in("nasdaq-itch50").unwrap().text));
    for (format, path, bad, good) in [
        ("itch", itch, bad, good),
        (
            "iex",
            vectors().join("deep_plus.pcap"),
            suffix("iex"),
            Mapping::built_in("iex").unwrap().text.to_string(),
        ),
    ] {
        let mapping = dir.path().join(format!("{format}.toml"));
        std::fs::write(&mapping, bad).unwrap();
        let (tape, whole) = (dir.path().join(format), dir.path().join(format!("{format}-whole")));
        let option = format!("f={format}:{}:{}", mapping.display(), path.display());
        let outcome = run(&tape, &[feed_of_option(&option).unwrap()], 1, 1 << 20);
        assert!(outcome.summary.quarantined > 0, "{format}");
        std::fs::write(&mapping, good).unwrap();
        let mended = Mapping::load(&mapping.display().to_string()).unwrap();
        let report = quarantine::retry(&tape, Some(&mended), None).unwrap();
        assert_eq!((report.tried, report.damaged.len()), (outcome.summary.quarantined, 0), "{format}");
        let wanted = run(&whole, &[feed_of_option(&option).unwrap()], 1, 1 << 20);
        assert_eq!(wanted.summary.quarantined, 0);
        // What needs an order that another message brought stays where it is.
        let left = if format == "iex" { NEEDS_ORDERS } else { 0 };
        assert_eq!((report.recovered, report.left), (report.tried - left, left), "{format}");
        assert!(quarantine::list(&tape).unwrap().iter().filter(|e| e.is_open()).count() as u64 == left);
        let again = quarantine::retry(&tape, Some(&mended), None).unwrap();
        assert_eq!((again.tried, again.recovered), (left, 0), "{format}");
    }
}

/// Messages of the sample that change an order: two amends, an execution and a delete.
const NEEDS_ORDERS: u64 = 4;
