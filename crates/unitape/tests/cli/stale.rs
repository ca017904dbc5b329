//! A book that has lost something says so, and no book is made where none can be.
//!
//! After a gap in MoldUDP64 a book showed 100 where the truth was 60, without a mark and with exit code 0.

use crate::common::{Ran, file, fix, orders_option, quarantine, root, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use unitape_base::capture;
use unitape_codec::itch::MoldPacketHeader;
use unitape_codec::itch::{ItchMessageHeader, ItchSampleValue, write};

const SECOND: u64 = 1_000_000_000;

fn book(tape: &Path, args: &[&str]) -> Ran {
    run(["book", "show", tape.to_str().unwrap(), "--json"].iter().chain(args))
}

/// A message of ITCH at this second after midnight in New York.
fn itch(letter: u8, locate: u16, second: u64, values: &[ItchSampleValue<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let header =
        ItchMessageHeader { stock_locate: locate, tracking_number: 0, timestamp_ns: second * SECOND };
    write(&mut out, letter, header, values);
    out
}

fn add(locate: u16, order: u64, side: &[u8], shares: u64, stock: &[u8], px: u64) -> Vec<u8> {
    let values = [
        ItchSampleValue::Number(order),
        ItchSampleValue::Text(side),
        ItchSampleValue::Number(shares),
        ItchSampleValue::Text(stock),
        ItchSampleValue::Number(px),
    ];
    itch(b'A', locate, 36_000 + order, &values)
}

fn executed(locate: u16, order: u64, shares: u64) -> Vec<u8> {
    itch(
        b'E',
        locate,
        37_000,
        &[ItchSampleValue::Number(order), ItchSampleValue::Number(shares), ItchSampleValue::Number(1)],
    )
}

fn system(code: &[u8], second: u64) -> Vec<u8> {
    itch(b'S', 0, second, &[ItchSampleValue::Text(code)])
}

/// Session, number of the first message, messages.
type Packet = (&'static [u8; 10], u64, Vec<Vec<u8>>);

/// A capture of packets.
fn mold(dir: &Path, packets: &[Packet]) -> (Ran, PathBuf) {
    let mut bytes = Vec::new();
    capture::write::file_header(&mut bytes);
    for (n, (session, sequence, messages)) in packets.iter().enumerate() {
        let mut payload = Vec::new();
        let head = MoldPacketHeader { session: **session, sequence: *sequence, count: messages.len() as u16 };
        head.write(&mut payload);
        messages.iter().for_each(|m| payload.extend_from_slice(m));
        let [from, to] = ["10.0.0.1:4000", "233.54.12.111:26477"].map(|a| a.parse().unwrap());
        capture::write::datagram(&mut bytes, 1_580_394_600_000_000_000 + n as i64, from, to, &payload);
    }
    let capture = file(dir, "day.pcap", bytes);
    let text = std::fs::read_to_string(root().join("mappings/nasdaq-itch50.toml")).unwrap();
    let text = text.replace("framing = \"length\"", "framing = \"mold\"\nsession_date = \"2020-01-30\"");
    let mapping = file(dir, "mold.toml", text.replace("nasdaq-itch50\"", "mold\""));
    let tape = dir.join("tape");
    let feed = format!("itch=itch:{}:{}", mapping.display(), capture.display());
    (run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]), tape)
}

const DAY: &[u8; 10] = b"SESSION001";

fn bids(book: &Value) -> Value {
    book["bids"][0]["qty"].clone()
}

/// Missing messages may concern every book of the feed: 40 of the 100 were executed in one of them.
#[test]
fn a_gap_makes_the_books_of_its_feed_stale() {
    let dir = tempfile::tempdir().unwrap();
    let (ran, tape) = mold(
        dir.path(),
        &[
            (DAY, 1, vec![system(b"S", 35_000), add(7, 1, b"B", 100, b"ZVZZT", 100_000)]),
            (DAY, 3, vec![add(8, 2, b"B", 50, b"ZWZZT", 200_000)]),
            (DAY, 5, vec![add(8, 4, b"S", 20, b"ZWZZT", 300_000), add(9, 5, b"B", 5, b"ZXZZT", 90_000)]),
        ],
    );
    ran.code(3);
    let before = book(&tape, &["--at", "4"]).code(0).lines();
    assert_eq!(before.iter().map(|b| b["marks"].clone()).collect::<Vec<_>>(), [json!([]), json!([])]);
    let after = book(&tape, &[]).code(3).says(&["stale"]).lines();
    let marks: Vec<_> = after.iter().filter(|b| b["instr"].is_string()).map(|b| b["marks"].clone()).collect();
    // Also that of the security of which the first message came after the gap.
    assert_eq!(marks, [json!(["stale"]), json!(["stale"]), json!(["stale"])]);
    assert_eq!(after.last().unwrap()["warnings"], json!({"lost": 1}));
    let text = run(["book", "show", tape.to_str().unwrap()]).code(3);
    assert!(text.text().contains("ZVZZT at XNAS, from orders, open, stale"), "{}", text.text());
}

/// A receiver that joined late made books that looked whole, and so did the second file of a session.
#[test]
fn a_source_that_begins_within_a_session_begins_with_a_gap() {
    let day = |n| add(7, n, b"B", 10 * n, b"ZVZZT", 100_000 + n);
    for (late, marks) in [(1, json!([])), (5, json!(["stale"]))] {
        let dir = tempfile::tempdir().unwrap();
        let (ran, tape) = mold(dir.path(), &[(DAY, late, vec![day(1), day(2)])]);
        ran.code(if late == 1 { 0 } else { 3 });
        let entries = quarantine(&tape);
        assert_eq!(entries.len(), usize::from(late > 1), "{entries:?}");
        if let Some(gap) = entries.first() {
            assert_eq!((&gap["reason"], gap["offset"].is_u64()), (&json!("gap"), true), "{gap}");
            assert!(gap.to_string().contains("4 messages did not come: 1 to 4 of the session"), "{gap}");
        }
        let books = book(&tape, &[]).code(if late == 1 { 0 } else { 3 }).lines();
        assert_eq!((bids(&books[0]), &books[0]["marks"]), (json!("20"), &marks));
    }
}

/// The end of the day ends it: what follows a close begins with empty books.
#[test]
fn the_next_day_is_whole_again() {
    let dir = tempfile::tempdir().unwrap();
    let (ran, tape) = mold(
        dir.path(),
        &[
            (DAY, 1, vec![system(b"S", 35_000), add(7, 1, b"B", 100, b"ZVZZT", 100_000)]),
            (DAY, 5, vec![system(b"E", 36_100)]),
            (DAY, 6, vec![system(b"S", 36_200), add(7, 9, b"B", 30, b"ZVZZT", 100_000)]),
        ],
    );
    ran.code(3);
    let after = book(&tape, &[]).code(0).lines();
    assert_eq!((bids(&after[0]), &after[0]["marks"]), (json!("30"), &json!([])));
}

/// Another session of MoldUDP64 begins with no orders. The ones of before once made each new one a duplicate.
#[test]
fn another_session_begins_with_empty_books() {
    let dir = tempfile::tempdir().unwrap();
    let day = |n| add(7, n, b"B", 100, b"ZVZZT", 100_000);
    let (ran, tape) = mold(
        dir.path(),
        &[
            (DAY, 1, vec![system(b"S", 35_000), day(1)]),
            (DAY, 9, vec![day(2)]),
            (b"SESSION002", 1, vec![system(b"S", 36_100), day(1), executed(7, 1, 40)]),
        ],
    );
    ran.code(3);
    let after = book(&tape, &[]).code(0).lines();
    assert_eq!((bids(&after[0]), &after[0]["marks"]), (json!("60"), &json!([])));
    let reasons: Vec<Value> = quarantine(&tape).iter().map(|q| q["reason"].clone()).collect();
    assert_eq!(reasons, ["gap"]);
}

/// A message about one security that is refused marks the books of that security and no other, and is counted there.
#[test]
fn what_quarantine_refused_is_a_fault_of_its_book() {
    let dir = tempfile::tempdir().unwrap();
    let messages = [
        add(7, 1, b"B", 100, b"ZVZZT", 100_000),
        add(8, 2, b"B", 50, b"ZWZZT", 200_000),
        executed(7, 1, 140),
        executed(7, 77, 1),
        add(7, 1, b"S", 5, b"ZVZZT", 300_000),
    ];
    let (ran, tape) = mold(dir.path(), &[(DAY, 1, messages.to_vec())]);
    ran.code(3);
    let books = book(&tape, &[]).code(3).lines();
    assert_eq!((&books[0]["marks"], &books[1]["marks"]), (&json!(["stale"]), &json!([])));
    let faults = json!({"unknown_order": 1, "duplicate_order": 1, "bad_quantity": 1});
    assert_eq!((&books[0]["faults"], &books[1]["faults"]), (&faults, &json!({})));
}

/// A report of FIX that cannot be an event marks the books of its instrument; bytes that cannot be read may be of any; a
/// message of another type is of none.
#[test]
fn a_refused_report_marks_its_instrument() {
    let order = |n: u32, instr: &str, fields: &str| {
        let time = format!("20260302-08:00:{n:02}");
        fix(&format!(
            "35=8|49=XLON|56=U|34={n}|52={time}|60={time}|37=O{n}|54=1|38=100|40=2|207=XLON|48={instr}|{fields}|"
        ))
    };
    let bbo = |n: u32| {
        let time = format!("20260302-08:00:{n:02}");
        fix(&format!("35=W|49=XLON|56=U|34={n}|52={time}|48=A1|207=XLON|268=1|269=0|270=10|271=5|"))
    };
    let news = fix("35=B|49=XLON|56=U|34=9|52=20260302-08:00:09|148=news|");
    let marks = |messages: &[Vec<u8>], code: i32| -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let (source, tape) = (file(dir.path(), "orders.fix", messages.concat()), dir.path().join("tape"));
        let feed = orders_option("orders", &source);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
        let books = book(&tape, &[]).code(code).lines();
        books.iter().filter(|b| b["instr"].is_string()).map(|b| b["marks"].clone()).collect()
    };
    let [a, b] = [order(1, "A1", "150=0|44=10"), order(2, "B1", "150=0|44=10")];
    let (stale, whole) = (json!(["stale"]), json!([]));
    // A price that is none.
    let bad = order(3, "A1", "150=0|44=ten");
    assert_eq!(marks(&[a.clone(), b.clone(), bad.clone()], 3), [stale.clone(), whole.clone()]);
    // A best price says all of it; the orders stay as they are.
    assert_eq!(marks(&[a.clone(), bbo(2), bad, bbo(4)], 3), [stale.clone(), whole.clone()]);
    let mut torn = order(3, "A1", "150=4|44=10");
    torn[40] ^= 1;
    assert_eq!(marks(&[a.clone(), b.clone(), torn], 3), [stale.clone(), stale.clone()]);
    // An ExecType that the mapping does not have is about orders.
    assert_eq!(marks(&[a.clone(), b.clone(), order(3, "A1", "150=Z|44=10")], 3), [stale.clone(), stale]);
    assert_eq!(marks(&[a, b, news], 0), [whole.clone(), whole]);
}

fn lines(dir: &Path, text: &str) -> PathBuf {
    let (source, tape) = (file(dir, "lines.jsonl", text), dir.join("lines"));
    run(["consolidate", source.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
    tape
}

/// `stale` is of all books of a listing, also of those of orders and of the published best price, and makes no empty one.
#[test]
fn the_word_stale_marks_every_book() {
    let dir = tempfile::tempdir().unwrap();
    let on =
        |kind: &str, fields: &str| format!("{{\"ts\":1,\"kind\":\"{kind}\",\"venue\":\"XLON\",{fields}}}\n");
    let text = [
        on("status", "\"instr\":\"BP\",\"state\":\"stale\""),
        on("order_new", "\"instr\":\"VOD\",\"oid\":\"A\",\"side\":\"B\",\"px\":\"10\",\"qty\":\"5\""),
        on("bbo", "\"instr\":\"VOD\",\"bid\":\"10\",\"bid_qty\":\"5\""),
        on("status", "\"instr\":\"VOD\",\"state\":\"stale\""),
        on("bbo", "\"instr\":\"VOD\",\"bid\":\"11\",\"bid_qty\":\"5\""),
        on("status", "\"instr\":\"VOD\",\"state\":\"recovered\""),
    ];
    let tape = lines(dir.path(), &text.concat());
    let seen = |at: &str, code| -> Vec<(Value, Value)> {
        let books = book(&tape, &["--at", at]).code(code).lines();
        books.iter().map(|b| (b["basis"].clone(), b["marks"].clone())).collect()
    };
    let (stale, whole) = (json!(["stale"]), json!([]));
    assert_eq!(seen("4", 3), [("orders".into(), stale.clone()), ("bbo".into(), stale.clone())]);
    assert_eq!(seen("5", 3), [("orders".into(), stale), ("bbo".into(), whole.clone())]);
    assert_eq!(seen("6", 0), [("orders".into(), whole.clone()), ("bbo".into(), whole)]);
    let nbbo = run(["book", "bbo", tape.to_str().unwrap(), "--json", "--to", "4"]).code(3).lines();
    assert!(nbbo.iter().all(|line| line["instr"] != "BP"), "{nbbo:?}");
}

/// Deletes and executions of stateless ITCH name no instrument: orders that are gone would stay in the book.
#[test]
fn a_mapping_without_orders_makes_no_books() {
    let dir = tempfile::tempdir().unwrap();
    let day = [add(7, 1, b"B", 100, b"ZVZZT", 100_000), executed(7, 1, 100)].concat();
    let source = file(dir.path(), "S013020-v50.txt", day);
    let tape = dir.path().join("tape");
    let feed = format!("itch=itch:nasdaq-itch50-stateless:{}", source.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let ran = book(&tape, &[]).says(&["keeps no orders"]);
    assert_eq!(ran.lines(), [json!({"warnings": {"bookless": 2}})]);
    assert_eq!(book(&tape, &["--at", "1"]).lines(), [json!({"warnings": {"bookless": 1}})]);
}

/// An execution without an instrument is of a book that nobody can find.
#[test]
fn orders_without_an_instrument_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"ts\":1,\"kind\":\"order_new\",\"venue\":\"XLON\",\"instr\":\"VOD\",\"oid\":\"A\",\"side\":\"B\",\"px\":\"10\",\"qty\":\"5\"}\n\
                {\"ts\":2,\"kind\":\"exec\",\"venue\":\"XLON\",\"oid\":\"A\",\"px\":\"10\",\"qty\":\"5\"}\n";
    let tape = lines(dir.path(), text);
    let books = book(&tape, &[]).code(3).says(&["1 events of orders name no instrument"]).lines();
    assert_eq!(books[0]["marks"], json!(["stale"]));
    assert_eq!(books[1], json!({"warnings": {"unnamed": 1}}));
}
