//! `unitape handler CAPTURE --config CONFIG` where lines fail: what each line missed, lines that are down, gaps, snapshots that come
//! early, fragments. Every packet of these captures is made here, so that the figures are known.
//!
//! A line that was dead for hours once had "0 missed", nothing on stderr and exit code 0.

use crate::common::{self, Ran, file, run};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use unitape_base::capture::write::{datagram, file_header};

const TEMPLATES: &str = r#"<templates xmlns="http://www.fixprotocol.org/ns/fast/td/1.1">
  <template name="Head" id="1"><uInt32 name="Number"/></template>
  <template name="Depth" id="2"><uInt32 name="Seq"/><uInt32 name="Product"/><sequence name="Entries">
    <uInt64 name="Id"/><uInt32 name="Action"/><uInt32 name="Type"/><uInt32 name="Px"/><uInt32 name="Qty"/>
    <uInt32 name="Level"/></sequence></template>
  <template name="Snapshot" id="3"><uInt32 name="Product"/><uInt32 name="Last"/><uInt64 name="Id"/>
    <sequence name="Entries"><uInt32 name="Type"/><uInt32 name="Px"/><uInt32 name="Qty"/><uInt32 name="Level"/>
    </sequence></template>
</templates>"#;

const MAPPING: &str = r#"name = "mine"
format = "fast"
[fast]
templates = ["t.xml"]
venue = "TEST"
market_depth = 1
framing = { header = "Head", sequence = "Number" }
action = { 0 = "new", 1 = "change" }
type = { 0 = "bid" }
recovery = { first = 1, early_bytes = 65536 }
[[fast.channel]]
name = "inc"
role = "incremental"
a = ["224.0.0.1:1"]
b = ["224.0.0.2:1"]
[[fast.channel]]
name = "snap"
role = "snapshot"
a = ["224.0.0.1:2"]
[[fast.message]]
templates = ["Depth"]
kind = "depth"
entries = "Entries"
fields = { product = "Product", sequence = "Seq", instrument = "Entries.Id", action = "Entries.Action", type = "Entries.Type", px = "Entries.Px", qty = "Entries.Qty", depth = "Entries.Level" }
[[fast.message]]
templates = ["Snapshot"]
kind = "snapshot"
entries = "Entries"
fields = { product = "Product", last = "Last", instrument = "Id", type = "Entries.Type", px = "Entries.Px", qty = "Entries.Qty", depth = "Entries.Level" }
"#;

/// A number with its stop bit.
fn put(out: &mut Vec<u8>, n: u64) {
    let groups = (1..10).find(|g| n >> (7 * g) == 0).unwrap_or(10);
    for g in (0..groups).rev() {
        out.push((n >> (7 * g) & 0x7f) as u8 | if g == 0 { 0x80 } else { 0 });
    }
}

fn message(template: u64, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![0xc0];
    put(&mut out, template);
    numbers.iter().for_each(|n| put(&mut out, *n));
    out
}

/// A packet and the message in it: the only bid has the message's number as its price.
fn bid(packet: u64, n: u64) -> Vec<u8> {
    let action = u64::from(n > 1);
    [message(1, &[packet]), message(2, &[n, 9, 1, 50, action, 0, n, 1, 1])].concat()
}

/// A snapshot with all messages up to this one.
fn snapshot(number: u64, last: u64) -> Vec<u8> {
    [message(1, &[number]), message(3, &[9, last, 50, 1, 0, last, 1, 1])].concat()
}

const MILLISECOND: i64 = 1_000_000;

/// A packet: when, line A or B, and where to.
struct Sent {
    ms: i64,
    line: u8,
    port: u16,
    payload: Vec<u8>,
}

fn inc(ms: i64, line: u8, n: u64) -> Sent {
    Sent { ms, line, port: 1, payload: bid(n, n) }
}

fn capture(dir: &Path, sent: &[Sent]) {
    let mut bytes = Vec::new();
    file_header(&mut bytes);
    for Sent { ms, line, port, payload } in sent {
        let (from, to) = ("10.0.0.1:7000".parse().unwrap(), SocketAddr::from(([224, 0, 0, 1 + line], *port)));
        datagram(&mut bytes, 1_700_000_000_000_000_000 + ms * MILLISECOND, from, to, payload);
    }
    file(dir, "day.pcap", bytes);
    file(dir, "t.xml", TEMPLATES);
    file(dir, "m.toml", MAPPING);
}

fn book(dir: &Path) -> Ran {
    let (pcap, config) = (dir.join("day.pcap"), dir.join("m.toml"));
    let mut args = vec!["handler".as_ref(), pcap.as_os_str(), "--config".as_ref(), config.as_os_str()];
    args.extend(["--json", "--stats"].map(std::ffi::OsStr::new));
    run(args)
}

/// The figure of line A and of line B of the incremental channel.
fn figure(ran: &Ran, what: &str) -> [Value; 2] {
    let stats = ran.lines().pop().unwrap();
    [0, 1].map(|line| stats["stats"]["channels"][0]["lines"][line][what].clone())
}

/// Line A is killed for good: the books are whole, yet the next loss on line B would be one of the day.
#[test]
fn a_dead_line_is_reported_with_all_that_it_missed() {
    let dir = tempfile::tempdir().unwrap();
    let both = |n: u64| {
        let ms = n as i64 * 10;
        let a = (n <= 200 && n != 17 && n != 18).then(|| inc(ms, 0, n));
        a.into_iter().chain([inc(ms, 1, n)])
    };
    capture(dir.path(), &(1..=500).flat_map(both).collect::<Vec<_>>());
    let ran = book(dir.path()).code(3).says(&[
        "line A of inc is down: silent for 1.0",
        "while line B brought packets",
        "1 lines are down at the end",
    ]);
    assert_eq!(figure(&ran, "missed"), [json!(302), json!(0)]);
    assert_eq!(figure(&ran, "down"), [json!(true), json!(false)]);
    let book = &ran.lines()[0];
    assert_eq!((&book["stale"], &book["bids"][0]["px"]), (&json!(false), &json!("500")));
    // On a tape it is an event, and a run's figures are the same.
    let config = "[tape]\ndir = \"tape\"\n[[feed]]\nname = \"f\"\nformat = \"fast\"\nmapping = \"m.toml\"\nfiles = [\"day.pcap\"]\n";
    let path = file(dir.path(), "run.toml", config);
    let output = run(["run".as_ref(), path.as_os_str(), "--json".as_ref()]).code(3).lines();
    let last = output.iter().rfind(|line| line["stats"]["feed"] == "f").unwrap();
    assert_eq!(last["stats"]["handler"]["channels"][0]["lines"][0]["missed"], 302);
    let events = common::cat(&dir.path().join("tape"), &["--kind", "status", "--full"]);
    let down = events.iter().find(|e| e["state"] == "line_down").unwrap();
    let extra = down.to_string();
    assert!(extra.contains("\"inc\"") && extra.contains("\"A\""), "{extra}");
    // Somebody who reads the same capture without watching its figures hears of it as well.
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let feed = format!("f=fast:{}:{}", at("m.toml"), at("day.pcap"));
    let consolidate = |more: &[&str]| {
        run(["consolidate", "--feed", &feed, "--tape", &at("again")].iter().chain(more)).code(3)
    };
    let text = consolidate(&[]);
    assert!(text.text().contains("line A of inc, feed f, is down"), "{}", text.text());
    assert_eq!(consolidate(&["--json"]).json()["lines_down"], json!(["line A of inc, feed f"]));
    // It belongs to no message, and the account of the source holds all the same.
    let tape = dir.path().join("tape");
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
}

/// A jump beyond `window.far` was counted as nothing missed; and who was warned wants to know when it is over.
#[test]
fn a_line_that_comes_back_is_reported_with_what_it_jumped_over() {
    let dir = tempfile::tempdir().unwrap();
    let both = |n: u64| {
        let a = (n <= 100 || n >= 6_000).then(|| inc(n as i64, 0, n));
        [inc(n as i64, 1, n)].into_iter().chain(a)
    };
    capture(dir.path(), &(1..=6_300).flat_map(both).collect::<Vec<_>>());
    let ran = book(dir.path())
        .code(0)
        .says(&["line A of inc is down", "line A of inc is back: it was silent for 5.9s"]);
    assert_eq!(figure(&ran, "missed"), [json!(5_899), json!(0)]);
    assert_eq!(figure(&ran, "down"), [json!(false), json!(false)]);
}

/// A quiet venue is silent on both lines, and the copy that comes first says nothing about the other.
#[test]
fn a_quiet_venue_has_no_dead_line() {
    let dir = tempfile::tempdir().unwrap();
    let both =
        |n: u64| [inc(n as i64 * 60_000, (n % 2) as u8, n), inc(n as i64 * 60_000 + 1, 1 - (n % 2) as u8, n)];
    let mut sent: Vec<_> = (1..=20).flat_map(both).collect();
    // The last packets came on line B alone: too few to say that A is dead.
    sent.extend((21..=23).map(|n| inc(1_200_010 + n as i64, 1, n)));
    capture(dir.path(), &sent);
    let ran = book(dir.path()).code(0);
    assert!(!ran.stderr.contains("down"), "{}", ran.stderr);
    assert_eq!(figure(&ran, "missed"), [json!(3), json!(0)]);
}

/// The configuration names a line that nobody plugged in.
#[test]
fn a_line_that_was_never_heard_is_down() {
    let dir = tempfile::tempdir().unwrap();
    capture(dir.path(), &(1..=30).map(|n| inc(n as i64 * 100, 0, n)).collect::<Vec<_>>());
    let ran = book(dir.path()).code(3).says(&["line B of inc is down"]);
    assert_eq!(figure(&ran, "missed"), [json!(0), json!(30)]);
    assert_eq!(figure(&ran, "down"), [json!(false), json!(true)]);
}

/// A gap of packets makes a gap of messages: 14 gaps were printed as 28.
#[test]
fn a_gap_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let some = |n: u64| {
        let both = (n % 20 != 10).then(|| [inc(n as i64, 0, n), inc(n as i64, 1, n)]);
        both.into_iter().flatten()
    };
    let mut sent: Vec<_> = (1..=280).flat_map(some).collect();
    sent.push(Sent { ms: 281, line: 0, port: 2, payload: snapshot(1, 280) });
    capture(dir.path(), &sent);
    let ran = book(dir.path()).code(3).says(&["14 times something was missing on both lines"]);
    let stats = ran.lines().pop().unwrap();
    assert_eq!(
        (&stats["stats"]["channels"][0]["gaps"], &stats["stats"]["products"]["gaps"]),
        (&json!(14), &json!(14))
    );
    assert_eq!(stats["stats"]["products"]["gaps_alone"], 0);
}

/// The books were mended by a snapshot, so `consolidate` ended with 0 and no word, also the next time.
#[test]
fn a_tape_with_gaps_ends_with_three_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let some = |n: u64| (n % 20 != 10).then(|| [inc(n as i64, 0, n), inc(n as i64, 1, n)]);
    let mut sent: Vec<_> = (1..=60).filter_map(some).flatten().collect();
    sent.push(Sent { ms: 61, line: 0, port: 2, payload: snapshot(1, 60) });
    capture(dir.path(), &sent);
    let (tape, feed) =
        (dir.path().join("tape"), format!("f=fast:{0}/m.toml:{0}/day.pcap", dir.path().display()));
    let consolidate = |more: &[&str]| {
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()].iter().chain(more))
    };
    let first = consolidate(&["--json"]).code(3).lines().pop().unwrap();
    // The message that was in a packet is no gap of its own.
    assert_eq!((&first["gaps"], &first["quarantined"]), (&json!(3), &json!(0)));
    let again = consolidate(&[]).code(3);
    assert!(again.text().contains("3 gaps: packets or messages came on no line"), "{}", again.text());
    assert!(again.text().contains("nothing left to do"), "{}", again.text());
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    // On one line alone they are no gaps.
    let whole: Vec<_> = (1..=60).map(|n| inc(n as i64, (n % 2) as u8, n)).collect();
    capture(dir.path(), &whole);
    std::fs::remove_dir_all(&tape).unwrap();
    assert_eq!(consolidate(&["--json"]).code(0).lines().pop().unwrap().get("gaps"), None);
}

/// The packets are all there, but messages are missing in them.
#[test]
fn a_gap_of_messages_alone_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let skips = |n: u64| Sent { payload: bid(n, if n < 6 { n } else { n + 3 }), ..inc(n as i64, 0, n) };
    capture(dir.path(), &(1..=10).map(skips).collect::<Vec<_>>());
    let tape = dir.path().join("tape");
    let feed = format!("f=fast:{0}/m.toml:{0}/day.pcap", dir.path().display());
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(3);
    assert_eq!(ran.lines().pop().unwrap()["gaps"], 1);
    let statuses = common::cat(&tape, &["--kind", "status"]);
    let missing = statuses.iter().find(|e| e["state"] == "missing").unwrap();
    assert_eq!((&missing["from"], &missing["to"], &missing["alone"]), (&json!(6), &json!(8), &json!(true)));
}

/// The exchange begins its numbers again while both lines are silent, and the first packet that comes has a number beyond the
/// old ones. A snapshot that came in the silence has that number already: the book of before was once printed as whole.
#[test]
fn a_number_that_a_snapshot_had_long_before_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut sent: Vec<_> = [1, 2, 3, 4, 5, 8].map(|n| inc(n, 0, n as u64)).into();
    sent.push(Sent { ms: 10, line: 0, port: 2, payload: snapshot(1, 20) });
    // Line B is heard, so that it is not down.
    sent.push(inc(11, 1, 8));
    capture(dir.path(), &sent);
    let before = book(dir.path()).code(3).lines();
    assert_eq!((&before[0]["stale"], &before[0]["bids"][0]["px"]), (&json!(false), &json!("20")));
    sent.push(inc(2_000, 0, 12));
    capture(dir.path(), &sent);
    let ran = book(dir.path()).code(3);
    assert_eq!(ran.lines()[0]["stale"], true, "{}", ran.text());
}

/// Between the loss and the message by which it is noticed a snapshot came that has what was lost in it. It was passed over, and
/// the book was stale until the next round.
#[test]
fn a_snapshot_before_its_gap_is_noticed_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut sent: Vec<_> = (1..=5).flat_map(|n| [inc(n, 0, n as u64), inc(n, 1, n as u64)]).collect();
    sent.push(Sent { ms: 6, line: 0, port: 2, payload: snapshot(1, 4) });
    sent.push(Sent { ms: 7, line: 0, port: 2, payload: snapshot(2, 6) });
    // 6 is lost on both lines.
    sent.extend((7..=12).flat_map(|n| [inc(n + 1, 0, n as u64), inc(n + 1, 1, n as u64)]));
    capture(dir.path(), &sent);
    let ran = book(dir.path()).code(3).says(&["1 times something was missing"]);
    let lines = ran.lines();
    assert_eq!((&lines[0]["stale"], &lines[0]["bids"][0]["px"]), (&json!(false), &json!("12")));
    assert_eq!(lines[1]["stats"]["products"]["snapshots_early"], 1);
    // On a tape every message is accounted for once.
    let (tape, feed) =
        (dir.path().join("tape"), format!("f=fast:{0}/m.toml:{0}/day.pcap", dir.path().display()));
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
    let account = ran.lines().pop().unwrap();
    common::assert_closes(&account);
    // Packets without levels count as one each, as messages do.
    assert_eq!(account["messages"], 24, "{account}");
}

/// One packet far ahead is not a line that has gone past all that is missing: what is late by its order alone still comes.
#[test]
fn the_window_counts_packets_and_not_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let order = (1..=10).chain([20]).chain(11..20).chain(21..=30);
    let sent: Vec<_> = order.map(|n| Sent { ms: 0, ..inc(0, 0, n) }).collect();
    capture(dir.path(), &sent);
    let mapping = MAPPING.replace("b = [\"224.0.0.2:1\"]\n", "");
    file(dir.path(), "m.toml", mapping);
    let ran = book(dir.path()).code(0);
    assert_eq!(figure(&ran, "missed")[0], 0);
    assert_eq!(figure(&ran, "reordered")[0], 9);
    assert_eq!(ran.lines()[0]["bids"][0]["px"], "30");
}

/// Cuts each datagram of a capture by IP, the parts in another order, the last first.
fn fragmented(pcap: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (pcap[..24].to_vec(), 24);
    let mut id = 0u16;
    while at < pcap.len() {
        let length = u32::from_le_bytes(pcap[at + 8..at + 12].try_into().unwrap()) as usize;
        let (head, packet) = (&pcap[at..at + 8], &pcap[at + 16..at + 16 + length]);
        at += 16 + length;
        id += 1;
        let (ip, body) = packet.split_at(20);
        let parts: Vec<_> = body.chunks(16).enumerate().collect();
        for (n, part) in parts.iter().rev() {
            let more = if n + 1 < parts.len() { 0x2000u16 } else { 0 };
            out.extend_from_slice(head);
            out.extend_from_slice(&[(20 + part.len() as u32).to_le_bytes(); 2].concat());
            let mut ip = ip.to_vec();
            ip[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[6..8].copy_from_slice(&(more | (2 * *n as u16)).to_be_bytes());
            out.extend_from_slice(&ip);
            out.extend_from_slice(part);
        }
    }
    out
}

/// Large packets come in fragments: each was left out, and the capture was empty to the handler.
#[test]
fn fragments_of_ip_are_put_together() {
    let dir = tempfile::tempdir().unwrap();
    capture(dir.path(), &(1..=50).map(|n| inc(n as i64, (n % 2) as u8, n)).collect::<Vec<_>>());
    let whole = book(dir.path()).code(0);
    let uncut = std::fs::read(dir.path().join("day.pcap")).unwrap();
    let pcap = fragmented(&uncut);
    file(dir.path(), "day.pcap", &pcap);
    let parts = book(dir.path()).code(0);
    assert_eq!(parts.lines(), whole.lines());
    assert_eq!(whole.lines()[0]["bids"][0]["px"], "50");
    let (templates, pcap_path) = (dir.path().join("t.xml"), dir.path().join("day.pcap"));
    let decode = || {
        let args = ["decode", "fast", "--framing", "emdi", "--json", "--templates"].map(std::ffi::OsStr::new);
        run(args.into_iter().chain([templates.as_os_str(), pcap_path.as_os_str()]))
    };
    let lines = decode().code(0).lines();
    assert_eq!((lines.len(), &lines[99]["fields"]["Seq"]), (100, &json!(50)));
    // On the tape is the same, event by event.
    let taped = |name: &str, pcap: &[u8]| {
        let (tape, pcap) = (dir.path().join(name), file(dir.path(), &format!("{name}.pcap"), pcap));
        let feed = format!("f=fast:{}/m.toml:{}", dir.path().display(), pcap.display());
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0);
        common::cat(&tape, &[])
    };
    assert_eq!(taped("parts", &pcap), taped("whole", &uncut));
    // The last record is the first part of the last datagram: the rest of it has nowhere to go.
    let cut = pcap.len() - (16 + 20 + 16);
    file(dir.path(), "day.pcap", &pcap[..cut]);
    book(dir.path()).code(3).says(&["1 datagrams of which the capture has only a part"]);
    assert_eq!(decode().code(3).lines().pop().unwrap()["error"]["code"], "garbage");
}

/// CME sends a status of a security for other words than its trading status; five of five were refused.
#[test]
fn a_security_status_without_a_trading_status_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let templates = r#"<templates xmlns="http://www.fixprotocol.org/ns/fast/td/1.1">
  <template name="MDIncRefresh_81" id="81"><uInt32 name="MsgSeqNum"/><uInt64 name="SendingTime"/><sequence name="MDEntries">
    <uInt32 name="MDUpdateAction"/><string name="MDEntryType"/><uInt32 name="SecurityID"/><decimal name="MDEntryPx"/>
    <int32 name="MDEntrySize"/><uInt32 name="NumberOfOrders"/><uInt32 name="MDPriceLevel"/></sequence></template>
  <template name="MDSecurityStatus_83" id="83"><uInt32 name="MsgSeqNum"/><uInt64 name="SendingTime"/>
    <uInt32 name="SecurityID"/><uInt32 name="SecurityTradingStatus" presence="optional"/></template>
</templates>"#;
    let mapping = "name = \"mine\"\nformat = \"fast\"\n[fast]\nlike = \"cme-mdp2\"\ntemplates = [\"t.xml\"]\nmarket_depth = 5\n[[fast.channel]]\nname = \"inc\"\nrole = \"incremental\"\na = [\"224.0.0.1:1\"]\n";
    const TIME: u64 = 20_120_403_143_015_123;
    let packet = |n: u64, message: Vec<u8>| {
        let payload = [&(n as u32).to_be_bytes()[..], &[1], &message].concat();
        Sent { ms: n as i64, line: 0, port: 1, payload }
    };
    let mut depth = message(81, &[1, TIME, 1, 0]);
    depth.push(b'0' | 0x80);
    depth.extend(message(0, &[77]).split_off(2));
    // The price 100, the quantity 5, one order, level 1.
    depth.extend([0x80, 0x00, 0xe4, 0x85, 0x81, 0x81]);
    let mut sent = vec![packet(1, depth)];
    sent.extend((2..=6).map(|n| packet(n, message(83, &[n, TIME, 77, 0]))));
    // 17, as an optional number.
    sent.push(packet(7, message(83, &[7, TIME, 77, 18])));
    capture(dir.path(), &sent);
    file(dir.path(), "t.xml", templates);
    file(dir.path(), "m.toml", mapping);
    let ran = book(dir.path()).code(0);
    assert_eq!(ran.lines()[0]["bids"][0]["px"], "100");
    assert_eq!(figure(&ran, "packets")[0], 7);
    let tape = dir.path().join("tape");
    let feed = format!("f=fast:{0}/m.toml:{0}/day.pcap", dir.path().display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0);
    let phases = common::cat(&tape, &["--kind", "session"]);
    assert_eq!(phases.iter().map(|e| &e["phase"]).collect::<Vec<_>>(), ["open"]);
}
