//! The effect of FIX 4.4 messages on books and events by the mapping `fix44-orders`, against the volumes of the
//! standard.
//!
//! Orders that had expired stayed live, a halt changed no best price, and a snapshot without bid and offer wiped the book.

use crate::common::{Ran, cat, file, fix, orders_option, quarantine, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Messages of one session, a second after each other; each is its MsgType and fields, `|` between them.
fn session(messages: &[&str]) -> Vec<u8> {
    let message = |(n, fields): (usize, &&str)| {
        let (kind, rest) = fields.split_once('|').unwrap();
        let time = format!("20260302-08:00:{:02}", n + 1);
        fix(&format!("35={kind}|49=XLON|56=U|34={}|52={time}|60={time}|{rest}|", n + 1))
    };
    messages.iter().enumerate().flat_map(message).collect()
}

fn tape_of(dir: &Path, messages: &[&str], code: i32) -> PathBuf {
    let (source, tape) = (file(dir, "orders.fix", session(messages)), dir.join("tape"));
    let feed = orders_option("orders", &source);
    let t = tape.to_str().unwrap();
    run(["consolidate", "--feed", &feed, "--tape", t, "--json"]).code(code);
    tape
}

fn book(tape: &Path, args: &[&str]) -> Ran {
    run(["book", "show", tape.to_str().unwrap(), "--json"].iter().chain(args))
}

const OF: &str = "48=GB0000000001|22=4|55=VOD|207=XLON";

fn new(oid: &str, side: u8, px: &str, qty: u32, more: &str) -> String {
    format!("8|37={oid}|17=E|150=0|39=0|{OF}|54={side}|38={qty}|40=2|44={px}|59=0|151={qty}|14=0{more}")
}

fn report(kind: char, oid: &str, fields: &str) -> String {
    format!("8|37={oid}|17=E|150={kind}|39=0|{OF}|54=1|40=2|59=0|{fields}")
}

/// The live orders of the only book, and what is left of each.
fn live(tape: &Path) -> Value {
    let lines = book(tape, &["--orders", "--basis", "orders"]).code(0).lines();
    let queue = |side: &Value| -> Vec<Value> {
        let levels = side.as_array().unwrap().iter();
        levels.flat_map(|l| l["queue"].as_array().unwrap().clone()).collect()
    };
    let of = |o: &Value| (o["oid"].as_str().unwrap().to_owned(), o["left"].clone());
    let books = lines.iter().filter(|b| b["basis"] == "orders");
    let all = books.flat_map(|b| queue(&b["bids"]).into_iter().chain(queue(&b["asks"])).collect::<Vec<_>>());
    Value::Object(all.map(|o| of(&o)).collect())
}

/// An entry that no event takes vanished where another entry of its message made one.
#[test]
fn every_entry_becomes_an_event_or_is_accounted_for() {
    let entry = |action: &str, rest: &str| format!("279={action}|{rest}55=VOD|207=XLON");
    let trade = |action: &str, id: &str| entry(action, &format!("269=2|278={id}|")) + "|270=10.5|271=5";
    let (new, gone, corrected) = (trade("0", "T2"), trade("2", "T1"), trade("1", "T3"));
    let (bid, untyped) = (entry("1", "269=0|") + "|270=9", entry("2", "278=Q7|"));
    let (volume, imbalance) = (entry("0", "269=B|") + "|271=900", entry("0", "269=A|") + "|271=3");
    let (open, empty) = (entry("0", "269=4|") + "|270=10", entry("2", "269=J|"));
    let (index, reopened) = (entry("0", "269=3|") + "|270=77", entry("2", "269=4|") + "|270=10");
    // The kinds of the events, and what the account says: entries, with events, in quarantine, ignored.
    let cases: [(&[&String], &[&str], [u64; 4]); 9] = [
        (&[&gone, &new], &["trade cancel T1", "trade - T2"], [2, 2, 0, 0]),
        (&[&new, &corrected, &gone], &["trade - T2", "trade correct T3", "trade cancel T1"], [3, 3, 0, 0]),
        (&[&untyped, &new], &["status stale", "trade - T2"], [2, 2, 0, 0]),
        (&[&new, &bid], &["trade - T2", "status stale"], [2, 2, 0, 0]),
        (&[&volume, &new, &imbalance], &["trade - T2"], [3, 1, 0, 2]),
        (&[&open, &empty], &["ref_px open", "status stale"], [2, 2, 0, 0]),
        (&[&volume, &imbalance], &[], [2, 0, 0, 2]),
        // Those behind the fault count, too.
        (&[&new, &index, &gone], &["quarantine entry 2: no event"], [3, 0, 3, 0]),
        (&[&reopened], &["quarantine entry 1: no event"], [1, 0, 1, 0]),
    ];
    for (entries, wanted, [total, with_events, quarantined, ignored]) in cases {
        let dir = tempfile::tempdir().unwrap();
        let body: Vec<&str> = entries.iter().map(|entry| entry.as_str()).collect();
        let message = format!("X|268={}|{}", entries.len(), body.join("|"));
        let code = if quarantined > 0 { 3 } else { 0 };
        let tape = tape_of(dir.path(), &[&message, "0|112=T"], code);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or("-").to_owned();
        let events: Vec<String> = cat(&tape, &[])
            .iter()
            .map(|event| match event["kind"].as_str().unwrap() {
                "trade" => format!("trade {} {}", text(event, "action"), text(event, "match_id")),
                "status" => format!("status {}", text(event, "state")),
                "ref_px" => format!("ref_px {}", text(event, "source")),
                kind => format!("{kind} {}", &text(event, "detail")[..17]),
            })
            .collect();
        assert_eq!(events, wanted, "{message}");
        let rerun = run(["consolidate", "--tape", tape.to_str().unwrap(), "--json", "--feed"]
            .into_iter()
            .chain([orders_option("orders", &dir.path().join("orders.fix")).as_str()]));
        let account = rerun.code(code).json()["by_feed"]["orders"]["entries"].clone();
        let wanted = json!({"total": total, "with_events": with_events, "quarantined": quarantined, "ignored": ignored});
        assert_eq!(account, wanted, "{message}");
        run(["tape", "verify", tape.to_str().unwrap()]).code(0);
    }
}

/// The segments with the marks of the first entries are gone; what is counted of them is kept, and the next run counts on.
#[test]
fn the_count_of_entries_survives_retention() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |n: usize| format!("279=0|269=2|278=T{n}|55=VOD|207=XLON|270=10.5|271=5|");
    let bytes = |count: usize| -> Vec<u8> {
        let message = |n: usize| {
            let time = format!("20260302-09:{:02}:{:02}", n / 60, n % 60);
            let entries = entry(2 * n) + &entry(2 * n + 1);
            fix(&format!("35=X|49=XLON|56=U|34={}|52={time}|60={time}|268=2|{entries}", n + 1))
        };
        (0..count).flat_map(message).collect()
    };
    let source = file(dir.path(), "orders.fix", bytes(2_900));
    let (tape, option) = (dir.path().join("tape"), orders_option("orders", &source));
    let words = [
        "consolidate",
        "--feed",
        &option,
        "--tape",
        tape.to_str().unwrap(),
        "--segment-bytes",
        "65536",
        "--json",
    ];
    let entries = |code: i32| run(words).code(code).json()["by_feed"]["orders"]["entries"].clone();
    let count = |total: u64| json!({"total": total, "with_events": total, "quarantined": 0, "ignored": 0});
    assert_eq!(entries(0), count(5_800));
    run(["tape", "retain", tape.to_str().unwrap(), "--bytes", "131072"]).code(0);
    assert!(tape.join("account.gone").exists());
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
    assert_eq!(entries(0), count(5_800));
    file(dir.path(), "orders.fix", bytes(3_000));
    assert_eq!(entries(0), count(6_000));
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

/// FIX 4.4, volume 6, tag 150: every value it has, and what it leaves of an order of 100 at 10.
#[test]
fn every_exec_type_does_to_the_order_what_the_standard_says() {
    let at = "38=100|44=10|14=0|151=100";
    let cases: [(char, &str, Value); 16] = [
        ('3', "38=100|44=10|14=0|151=0", json!({})),
        ('4', "38=100|44=10|14=0|151=0", json!({})),
        ('5', "38=70|44=10|14=0|151=70", json!({"A": "70"})),
        ('6', at, json!({"A": "100"})),
        ('7', at, json!({"A": "100"})),
        ('8', "38=100|44=10|14=0|151=0|58=too late", json!({})),
        ('9', at, json!({})),
        ('A', at, json!({"A": "100"})),
        ('B', at, json!({"A": "100"})),
        ('C', "38=100|44=10|14=0|151=0", json!({})),
        ('D', "38=80|44=10|14=0|151=80|378=3", json!({"A": "80"})),
        ('E', at, json!({"A": "100"})),
        ('F', "38=100|44=10|14=40|151=60|31=10|32=40", json!({"A": "60"})),
        ('G', "38=100|44=10|14=30|151=70|19=E1|31=10|32=30", json!({"A": "70"})),
        ('H', "38=100|44=10|14=0|151=100|19=E1|31=10|32=40", json!({"A": "100"})),
        ('I', at, json!({"A": "100"})),
    ];
    for (kind, fields, left) in cases {
        let dir = tempfile::tempdir().unwrap();
        let order = new("A", 1, "10", 100, "");
        let fill = report('F', "A", "38=100|44=10|14=40|151=60|31=10|32=40|880=M1");
        let of_kind = report(kind, "A", fields);
        let before = matches!(kind, 'G' | 'H').then_some(fill.as_str());
        let messages: Vec<&str> =
            [order.as_str()].into_iter().chain(before).chain([of_kind.as_str()]).collect();
        let tape = tape_of(dir.path(), &messages, 0);
        assert_eq!(live(&tape), left, "150={kind}");
        assert_eq!(quarantine(&tape).len(), 0, "150={kind}");
    }
}

/// An order of which nothing is left may come back: its execution was cancelled, or it is good for more than a day.
/// An order that was never accepted was never there.
#[test]
fn orders_come_back_where_the_venue_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let filled = [
        &new("A", 1, "10", 100, "")[..],
        &report('F', "A", "38=100|44=10|14=100|151=0|31=10|32=100|880=M1"),
        &report('H', "A", "38=100|44=10|14=0|151=100|19=E1|31=10|32=100|880=M1"),
        &new("B", 1, "9", 50, ""),
        &report('3', "B", "38=50|44=9|14=20|151=0"),
        &report('D', "B", "38=50|44=9|14=20|151=30|378=1"),
        &report('8', "Z", "38=10|44=9|14=0|151=0|103=3"),
        &report('9', "B", "38=50|44=9|14=20|151=30"),
        &report('D', "B", "38=50|44=9|14=20|151=30|378=99"),
    ];
    let tape = tape_of(dir.path(), &filled, 0);
    assert_eq!(live(&tape), json!({"A": "100", "B": "30"}));
    let amends = cat(&tape, &["--kind", "order_amend"]);
    let reasons: Vec<&str> = amends.iter().map(|e| e["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["trade_cancel", "restated", "suspended", "restated"]);
    assert_eq!((&amends[0]["exec_ref"], &amends[0]["left"]), (&"E1".into(), &"100".into()));
    let ends = cat(&tape, &["--kind", "order_cancel"]);
    assert_eq!([&ends[0]["reason"], &ends[1]["reason"]], ["done_for_day", "rejected"]);
}

/// FIX 4.4, volume 3, Security Status: a halted listing takes no part in the best price over all venues until it trades again.
#[test]
fn a_halt_by_security_status_leaves_the_nbbo() {
    let dir = tempfile::tempdir().unwrap();
    let at = |venue: &str, bid: &str, ask: &str| {
        format!("W|48=GB0000000001|22=4|55=VOD|207={venue}|268=2|269=0|270={bid}|271=5|269=1|270={ask}|271=5")
    };
    let status = |code: u8| format!("f|48=GB0000000001|22=4|55=VOD|207=XLON|326={code}");
    let messages =
        [at("XLON", "10", "11"), at("CHIX", "9", "12"), status(2), status(17), status(2), status(3)];
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let tape = tape_of(dir.path(), &messages, 0);
    let nbbo = |at: &str| {
        let line = book(&tape, &["--venue", "NBBO", "--at", at]).code(0).json();
        [line["bid"].clone(), line["ask"].clone()]
    };
    let (both, one) = ([json!("10"), json!("11")], [json!("9"), json!("12")]);
    assert_eq!([nbbo("2"), nbbo("3"), nbbo("4")], [both.clone(), one.clone(), both.clone()]);
    assert_eq!([nbbo("5"), nbbo("6")], [one, both]);
    let halted = book(&tape, &["--venue", "XLON", "--at", "3"]).code(0).json();
    assert_eq!(halted["marks"], json!(["halted"]));
}

/// An order has one venue: SecurityExchange (207) or, in a message without it, LastMkt (30), for orders and executions alike.
#[test]
fn the_venue_of_an_order_is_that_of_its_executions() {
    let dir = tempfile::tempdir().unwrap();
    let no_venue = "48=GB0000000001|22=4|55=VOD|54=1|38=100|40=2|44=10|59=0";
    let messages = [
        &new("A", 1, "10", 100, "")[..],
        &report('F', "A", "38=100|44=10|31=10|32=40|30=CHIX|14=40|151=60"),
        &format!("8|37=B|17=E|150=0|39=0|{no_venue}|30=BATE"),
        &format!("8|37=B|17=E|150=F|39=1|{no_venue}|30=BATE|31=10|32=30"),
    ];
    let tape = tape_of(dir.path(), &messages, 0);
    let books = book(&tape, &["--basis", "orders"]).code(0).lines();
    let sizes: Vec<_> = books.iter().map(|b| (b["venue"].clone(), b["bids"][0]["qty"].clone())).collect();
    assert_eq!(sizes, [("XLON".into(), "60".into()), ("BATE".into(), "70".into())]);
    assert_eq!(cat(&tape, &["--kind", "exec"])[0]["last_mkt"], "CHIX");
}

/// FIX 4.4 MaxFloor (111), FIX 5.0 DisplayQty (1138): that much of an order is seen, and never more than is left.
#[test]
fn a_level_has_what_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let messages = [
        &new("A", 1, "10", 1000, "|111=100")[..],
        &new("B", 1, "10", 30, ""),
        &new("C", 2, "11", 500, "|1138=200|111=50"),
        &report('F', "A", "38=1000|44=10|14=940|151=60|31=10|32=940"),
        &new("D", 2, "11", 70, "|1138=0"),
    ];
    let tape = tape_of(dir.path(), &messages, 0);
    let size = |at: &str, side: &str| {
        let b = book(&tape, &["--at", at, "--orders"]).code(0).json();
        [b[side][0]["qty"].clone(), b[side][0]["queue"][0]["shown"].clone(), b["orders"].clone()]
    };
    assert_eq!(size("2", "bids"), [json!("130"), json!("100"), json!(2)]);
    assert_eq!(size("4", "bids"), [json!("90"), Value::Null, json!(3)]);
    assert_eq!(size("5", "asks"), [json!("200"), json!("200"), json!(4)]);
}

/// FIX 4.4, volume 3, Market Data Snapshot: one that has trades only says nothing of bid and offer.
#[test]
fn a_snapshot_of_trades_leaves_the_best_prices() {
    let dir = tempfile::tempdir().unwrap();
    let messages = [
        format!("W|{OF}|268=2|269=0|270=10|15=GBX|271=5|269=1|270=11|15=GBX|271=6"),
        format!("W|{OF}|268=2|269=2|270=10.5|15=GBX|271=7|269=7|270=12"),
        format!("W|{OF}|268=0"),
    ];
    let tape = tape_of(dir.path(), &[&messages[0], &messages[1], &messages[2]], 0);
    let empty = book(&tape, &[]).code(0).json();
    assert_eq!((&empty["bids"], &empty["asks"]), (&json!([]), &json!([])), "a snapshot without entries");
    let best = book(&tape, &["--at", "3"]).code(0).json();
    assert_eq!((&best["bids"][0]["px"], &best["asks"][0]["px"]), (&"10".into(), &"11".into()));
    let prices = cat(&tape, &["--kind", "ref_px"]);
    let of = |e: &Value| [e["px"].clone(), e["source"].clone()];
    assert_eq!(
        [of(&prices[0]), of(&prices[1])],
        [[json!("10.5"), json!("last")], [json!("12"), json!("high")]]
    );
}

/// FIX 4.4, volume 3, Market Data Snapshot: entries of several levels may come in any order, and nothing but an optional
/// field ranks them.
#[test]
fn a_snapshot_of_several_levels_shows_the_best() {
    let dir = tempfile::tempdir().unwrap();
    let bids = "269=0|270=9.5|15=GBP|271=1|269=0|270=10|15=EUR|271=2|269=0|270=9.75|271=3";
    let asks = "269=1|270=11.5|271=4|269=1|270=11|271=5|269=1|270=11|271=6";
    let tape = tape_of(dir.path(), &[&format!("W|{OF}|268=6|{asks}|{bids}")], 0);
    let best = cat(&tape, &["--kind", "bbo"]);
    let of = |field: &str| best[0][field].as_str().unwrap().to_owned();
    let got = [of("bid"), of("bid_qty"), of("ccy"), of("ask"), of("ask_qty")];
    assert_eq!(got, ["10", "2", "EUR", "11", "5"]);

    // A price that is no number may be the best: the message is not accepted without it.
    for prices in [["10", "1e1", "9"], ["1e1", "10", "9"], ["10", "9", "1e1"]] {
        let dir = tempfile::tempdir().unwrap();
        let bids = prices.map(|price| format!("|269=0|270={price}|271=1")).concat();
        let tape = tape_of(dir.path(), &[&format!("W|{OF}|268=3{bids}")], 3);
        assert_eq!(cat(&tape, &["--kind", "bbo"]).len(), 0, "{prices:?}");
        let detail = quarantine(&tape)[0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("\"1e1\""), "{prices:?}: {detail}");
    }
}

/// FIX 4.4, volume 3, Market Data Incremental Refresh: a bid that changed leaves no best price that looks right.
#[test]
fn an_increment_of_a_bid_ends_the_best_price_of_the_snapshot() {
    let snapshot = format!("W|{OF}|268=2|269=0|270=10|271=5|269=1|270=11|271=6");
    let print = format!("X|268=1|279=0|269=2|278=T1|{OF}|270=10.5|271=1");
    for (action, kind) in [(0, 0), (1, 0), (2, 1)] {
        let change = format!("X|268=1|279={action}|269={kind}|278=B1|{OF}|270=9|271=5");
        let dir = tempfile::tempdir().unwrap();
        let tape = tape_of(dir.path(), &[&snapshot, &print, &change, &snapshot], 0);
        let marks = |at: &str, code| book(&tape, &["--at", at]).code(code).json()["marks"].clone();
        assert_eq!(marks("2", 0), json!([]), "a print changes no best price");
        assert_eq!(marks("3", 3), json!(["stale"]), "279={action} of 269={kind}");
        assert_eq!(marks("4", 0), json!([]), "the next snapshot gives the best price again");
    }
}

/// FIX 4.4, volume 6, tag 150, `L` (triggered or activated by system): a stop order then rests in the book as a limit
/// order.
#[test]
fn an_elected_stop_enters_the_book() {
    for kind in ["4", "2"] {
        let dir = tempfile::tempdir().unwrap();
        let of = format!("{OF}|54=1|38=100|44=10|99=11|59=0|151=100|14=0");
        let stop = format!("8|37=S|17=E1|150=0|39=0|{of}|40=4");
        let elected = format!("8|37=S|17=E2|150=L|39=0|{of}|40={kind}");
        let tape = tape_of(dir.path(), &[&new("A", 1, "9", 50, ""), &stop, &elected], 0);
        assert_eq!(live(&tape), json!({"A": "50", "S": "100"}), "40={kind} in the report of the election");
    }
}

/// Currency (15) is of the price: 1250 GBX is not 1250 GBP.
#[test]
fn the_currency_reaches_the_event() {
    let dir = tempfile::tempdir().unwrap();
    let messages = [
        &new("A", 1, "1250", 100, "|15=GBX")[..],
        &report('F', "A", "38=100|44=1250|31=1250|32=40|14=40|151=60|15=GBX"),
        &format!("W|{OF}|268=1|269=0|270=1250|15=GBX|271=5"),
        "X|268=1|279=0|269=2|278=M1|48=GB0000000001|22=4|207=XLON|270=1250|15=GBX|271=40",
    ];
    let tape = tape_of(dir.path(), &messages, 0);
    let events = cat(&tape, &[]);
    let currencies: Vec<_> = events.iter().map(|e| (e["kind"].as_str().unwrap(), e["ccy"].clone())).collect();
    assert_eq!(currencies, ["order_new", "exec", "bbo", "trade"].map(|kind| (kind, json!("GBX"))));
}

/// FIX 4.4, volume 6, tags 528 and 851: every value they have.
#[test]
fn all_capacities_and_liquidities_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let fills = |n: usize, more: String| {
        report('F', "A", &format!("38=100|44=10|31=10|32=1|14={n}|151={}|880=M{n}|{more}", 100 - n))
    };
    let mut messages = vec![new("A", 1, "10", 100, "|528=A")];
    let capacities = [("A", "A"), ("G", "P"), ("I", "A"), ("P", "P"), ("R", "R"), ("W", "A")];
    messages.extend(capacities.iter().enumerate().map(|(n, (c, _))| fills(n + 1, format!("528={c}"))));
    let liquidities = [("1", json!("A")), ("2", json!("R")), ("3", Value::Null)];
    messages.extend(liquidities.iter().enumerate().map(|(n, (l, _))| fills(n + 7, format!("851={l}"))));
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let tape = tape_of(dir.path(), &messages, 0);
    let execs = cat(&tape, &["--kind", "exec"]);
    for (exec, (code, capacity)) in execs.iter().zip(capacities) {
        assert_eq!(exec["capacity"], capacity, "528={code}");
    }
    for (exec, (code, liq)) in execs[6..].iter().zip(liquidities) {
        assert_eq!(exec["liq"], liq, "851={code}");
    }
    assert_eq!((execs.len(), &execs[8]["last_liquidity"]), (9, &"3".into()));
}

/// FIX 4.4, volume 3, Market Data Incremental Refresh: an entry without an instrument is about that of the entry before it.
#[test]
fn an_entry_inherits_the_instrument() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |id: &str, of: &str, px: &str| format!("279=0|269=2|278={id}|{of}270={px}|271=5|");
    let first = "55=VOD|48=GB0000000001|22=4|207=XLON|";
    let other = "48=GB0000000002|22=4|207=CHIX|";
    let entries =
        [entry("M1", first, "10"), entry("M2", "", "11"), entry("M3", other, "20"), entry("M4", "", "21")];
    let message = format!("X|268=4|{}", entries.concat());
    let tape = tape_of(dir.path(), &[message.trim_end_matches('|')], 0);
    let trades = cat(&tape, &[]);
    let of = |e: &Value| [e["instr"].clone(), e["venue"].clone(), e["px"].clone()];
    let all: Vec<_> = trades.iter().map(of).collect();
    let [a, b] = [["GB0000000001", "XLON"], ["GB0000000002", "CHIX"]];
    let want = |[instr, venue]: [&str; 2], px: &str| [json!(instr), json!(venue), json!(px)];
    assert_eq!(all, [want(a, "10"), want(a, "11"), want(b, "20"), want(b, "21")]);
}
