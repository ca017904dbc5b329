//! FAST as the format of a feed: captures of two lines, snapshots and reference data to a tape.

use crate::common;
use std::path::{Path, PathBuf};
use unitape_feed::{FileFeed, Mapping, feed_of_option};

/// The templates, the mapping and a capture of a small day.
fn day(dir: &Path) -> PathBuf {
    std::fs::write(dir.join("t.xml"), TEMPLATES).unwrap();
    std::fs::write(dir.join("m.toml"), MAPPING).unwrap();
    let mut capture = header();
    let mut ts = 1_700_000_000_000_000_000;
    let mut send = |capture: &mut Vec<u8>, line: u8, port: u16, payload: &[u8]| {
        ts += 1000;
        record(capture, ts, [224, 0, 0, line], port, payload);
    };
    send(&mut capture, 1, 9, b"of another");
    for n in 1..1500u64 {
        let data = packet(n, &[depth(n, n as i64 % 50, n)]);
        // A loses each seventh, both each hundredth; B is a packet behind and has some that are bad.
        if n % 7 != 0 && n % 100 != 0 {
            send(&mut capture, 1, 1, &data);
        }
        if n > 1 && (n - 1) % 100 != 0 {
            let mut before = packet(n - 1, &[depth(n - 1, (n - 1) as i64 % 50, n - 1)]);
            if n % 31 == 0 {
                before.pop();
            }
            send(&mut capture, 2, 1, &before);
        }
        if n % 10 == 5 {
            send(&mut capture, 1, 2, &packet(n / 10 + 1, &[snapshot(n, n as i64 % 50, n)]));
        }
    }
    let path = dir.join("day.pcap");
    std::fs::write(&path, capture).unwrap();
    path
}

fn feed(dir: &Path, path: &Path) -> FileFeed {
    feed_of_option(&format!("f=fast:{}:{}", dir.join("m.toml").display(), path.display())).unwrap()
}

/// Whatever the workers, and every packet accounted for.
#[test]
fn the_same_tape_at_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    let feeds = [feed(dir.path(), &day(dir.path()))];
    let first = dir.path().join("first");
    let outcome = common::run(&first, &feeds, 1, 64 << 10);
    let s = &outcome.summary.by_feed["f"];
    assert_eq!(s.messages, s.quarantined + s.duplicates + s.ignored + s.with_events, "{s:?}");
    assert!(s.quarantined > 0 && s.duplicates > 500 && s.events > 300, "{s:?}");
    assert!(outcome.summary.by_kind["ref"] == 50 && outcome.summary.by_kind["status"] > 20);
    for (workers, block_bytes) in [(2, 64 << 10), (4, 4 << 10), (1, 1 << 20)] {
        let tape = dir.path().join(format!("tape{workers}-{block_bytes}"));
        common::run(&tape, &feeds, workers, block_bytes);
        common::assert_same(&first, &tape, "other workers, other blocks");
    }
    let report = unitape_tape::verify(&first).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// A run that is stopped and resumed ends in the same tape, wherever it was stopped. Messages that had waited for a
/// missing packet are after later ones, and must neither come twice nor be left out.
#[test]
fn a_run_in_parts_ends_in_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    let feeds = [feed(dir.path(), &day(dir.path()))];
    let whole = dir.path().join("whole");
    common::run(&whole, &feeds, 1, 16 << 10);
    for messages in (100..2_900).step_by(97) {
        let parts = dir.path().join(format!("stopped at {messages}"));
        common::run_in_parts(&parts, &feeds, 2, 4 << 10, messages);
        common::assert_same(&whole, &parts, &format!("stopped at each {messages}"));
        std::fs::remove_dir_all(&parts).unwrap();
    }
}

/// A datagram without a byte lets go what waits: it has no place for a unit of its own, and the unit before it may be a mark
/// of progress, to which no events can be put.
#[test]
fn a_datagram_without_a_byte_behind_a_mark_of_progress() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.xml"), TEMPLATES).unwrap();
    std::fs::write(dir.path().join("m.toml"), MAPPING).unwrap();
    let (mut capture, t0) = (header(), 1_700_000_000_000_000_000);
    record(&mut capture, t0, [224, 0, 0, 1], 1, &packet(1, &[depth(1, 1, 1)]));
    record(&mut capture, t0 + 1000, [224, 0, 0, 1], 2, &packet(1, &[snapshot(1, 1, 1)]));
    while capture.len() < (1 << 20) - 3000 {
        record(&mut capture, t0 + 2000, [224, 0, 0, 9], 77, &[7; 1400]);
    }
    // 2 is missing, and 3 waits for it.
    record(&mut capture, t0 + 2500, [224, 0, 0, 1], 1, &packet(3, &[depth(3, 1, 3)]));
    // A frame that is no datagram reaches over a mebibyte.
    while capture.len() <= 1 << 20 {
        for n in [t0 / 1_000_000_000, t0 % 1_000_000_000 + 2600, 4000, 4000] {
            capture.extend((n as u32).to_le_bytes());
        }
        capture.extend([0; 12]);
        capture.extend([8, 6]);
        capture.extend([0; 3986]);
    }
    record(&mut capture, t0 + 50_000_000, [224, 0, 0, 1], 1, &[]);
    let path = dir.path().join("day.pcap");
    std::fs::write(&path, capture).unwrap();
    let outcome = common::run(&dir.path().join("tape"), &[feed(dir.path(), &path)], 1, 4 << 20);
    let s = &outcome.summary.by_feed["f"];
    assert_eq!(s.messages, s.quarantined + s.duplicates + s.ignored + s.with_events, "{s:?}");
    let lost = ["lost", "missing", "stale"].len() as u64;
    assert!(outcome.summary.by_kind["status"] >= lost, "{:?}", outcome.summary.by_kind);
    assert!(unitape_tape::verify(&dir.path().join("tape")).unwrap().problems.is_empty());
}

/// A source of a feed ends, and the handler of the next source knows nothing of its books. So they must be marked
/// stale. After the last source the books stay unmarked.
#[test]
fn books_are_stale_where_another_source_follows() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.xml"), TEMPLATES).unwrap();
    std::fs::write(dir.path().join("m.toml"), MAPPING).unwrap();
    let t0 = 1_700_000_000_000_000_000;
    let mut first = header();
    record(&mut first, t0, [224, 0, 0, 1], 1, &packet(1, &[depth(1, 1, 1)]));
    record(&mut first, t0 + 1000, [224, 0, 0, 1], 2, &packet(1, &[snapshot(1, 1, 1)]));
    record(&mut first, t0 + 2000, [224, 0, 0, 1], 1, &packet(2, &[depth(2, 1, 2)]));
    std::fs::write(dir.path().join("1.pcap"), &first).unwrap();
    let mut second = header();
    record(&mut second, t0 + 9000, [224, 0, 0, 1], 1, &packet(3, &[depth(3, 1, 3)]));
    std::fs::write(dir.path().join("2.pcap"), &second).unwrap();
    let mut both = feed(dir.path(), &dir.path().join("1.pcap"));
    both.files.push(dir.path().join("2.pcap"));
    let tape = dir.path().join("tape");
    common::run(&tape, &[both], 1, 64 << 10);
    let events = common::events(&tape);
    let of = |e: &serde_json::Value| {
        (e["kind"] == "status").then(|| e["state"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(events.iter().filter_map(of).collect::<Vec<_>>(), ["recovered", "stale"], "{events:#?}");
    let alone = dir.path().join("alone");
    common::run(&alone, &[feed(dir.path(), &dir.path().join("1.pcap"))], 1, 64 << 10);
    let alone = common::events(&alone);
    assert_eq!(alone.iter().filter_map(of).collect::<Vec<_>>(), ["recovered"], "{alone:#?}");
    assert_eq!(events.last().unwrap()["kind"], "ref", "the second defines the instrument again, and no book");
}

/// Names of events have 255 bytes at most: longer ids and texts, and those that are no text, are reported all the
/// same.
#[test]
fn names_that_are_long_or_no_text_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let refs_of = |id_type: &str, id: &[u8], text: &[u8]| {
        let ins = format!(
            "<template name=\"Ins\" id=\"6\"><uInt32 name=\"Product\"/><{id_type} name=\"Id\"/>\
             <string name=\"Desc\" charset=\"unicode\"/></template></templates>"
        );
        std::fs::write(dir.path().join("t.xml"), TEMPLATES.replace("</templates>", &ins)).unwrap();
        let ins = "[[fast.message]]\ntemplates = [\"Ins\"]\nkind = \"instrument\"\n\
             fields = { product = \"Product\", instrument = \"Id\", symbol = \"Desc\" }\n";
        let reference = "[[fast.channel]]\nname = \"ref\"\nrole = \"reference\"\na = [\"224.0.0.1:3\"]\n[[fast.message]]\ntemplates = [\"Depth\"]";
        let mapping = MAPPING.replace("[[fast.message]]\ntemplates = [\"Depth\"]", reference);
        std::fs::write(dir.path().join("m.toml"), mapping + ins).unwrap();
        let mut capture = header();
        let mut one = message(6, &[9]);
        one.extend(id);
        put(&mut one, text.len() as u64);
        one.extend(text);
        record(&mut capture, 1_700_000_000_000_000_000, [224, 0, 0, 1], 3, &packet(1, &[one]));
        std::fs::write(dir.path().join("1.pcap"), &capture).unwrap();
        let tape = tempfile::tempdir().unwrap();
        let outcome = common::run(tape.path(), &[feed(dir.path(), &dir.path().join("1.pcap"))], 1, 64 << 10);
        let events = common::events(tape.path());
        (events.into_iter().filter(|e| e["kind"] == "ref").collect::<Vec<_>>(), outcome.summary.quarantined)
    };
    let long = ["a".as_bytes(), "\u{e9}".repeat(150).as_bytes()].concat();
    let (refs, _) = refs_of("uInt64", &[0x87], &long);
    // The first event reports the instrument's name, the second its reference data.
    assert_eq!(refs[1]["symbol"].as_str().unwrap().len(), 255);
    let (refs, _) = refs_of("uInt64", &[0x87], &[0xff; 200]);
    assert_eq!(refs[1]["symbol"].as_str().unwrap().chars().count(), 85, "three bytes for each");
    let bytes = |n: usize, byte: u8| [&[0, 0x80 | n as u8][usize::from(n < 128)..], &vec![byte; n]].concat();
    let (refs, _) = refs_of("byteVector", &bytes(3, 0xfe), b"x");
    assert_eq!(refs[0]["instr"], "fefefe");
    let (refs, _) = refs_of("byteVector", &bytes(100, 0xff), b"x");
    assert_eq!(refs[0]["instr"], "ff".repeat(100));
    let (refs, quarantined) = refs_of("byteVector", &[&[1, 0x80 | 72][..], &[0xff; 200]].concat(), b"x");
    assert_eq!((refs.len(), quarantined), (0, 1), "two digits for each of 200 bytes are too many");
}

fn put(out: &mut Vec<u8>, n: u64) {
    let groups = (1..10).find(|g| n >> (7 * g) == 0).unwrap_or(10);
    (0..groups).rev().for_each(|g| out.push((n >> (7 * g) & 0x7f) as u8 | if g == 0 { 0x80 } else { 0 }));
}

fn message(template: u64, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![0xc0];
    [template].iter().chain(numbers).for_each(|n| put(&mut out, *n));
    out
}

fn packet(number: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    [message(1, &[number]), messages.concat()].concat()
}

/// A new best bid of one of fifty instruments.
fn depth(seq: u64, id: i64, px: u64) -> Vec<u8> {
    message(2, &[seq, 9, 1, id as u64, 0, 0, px, 10, 1])
}

fn snapshot(last: u64, id: i64, px: u64) -> Vec<u8> {
    message(3, &[9, last, id as u64, 1, 0, px, 10, 1])
}

fn header() -> Vec<u8> {
    [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat()
}

/// A record of a capture with Ethernet, IPv4 and UDP.
fn record(capture: &mut Vec<u8>, ts: u64, to: [u8; 4], port: u16, payload: &[u8]) {
    let length = 14 + 20 + 8 + payload.len();
    let head = [ts / 1_000_000_000, ts % 1_000_000_000, length as u64, length as u64];
    head.iter().for_each(|n| capture.extend((*n as u32).to_le_bytes()));
    capture.extend([0; 12]);
    capture.extend([8, 0, 0x45, 0]);
    capture.extend(((28 + payload.len()) as u16).to_be_bytes());
    capture.extend([0, 0, 0, 0, 16, 17, 0, 0, 10, 0, 0, 1]);
    capture.extend(to);
    capture.extend(7000u16.to_be_bytes());
    capture.extend(port.to_be_bytes());
    capture.extend(((8 + payload.len()) as u16).to_be_bytes());
    capture.extend([0, 0]);
    capture.extend(payload);
}

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
market_depth = 5
framing = { header = "Head", sequence = "Number" }
action = { 0 = "new" }
type = { 0 = "bid" }
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
[fast.message.fields]
product = "Product"
sequence = "Seq"
instrument = "Entries.Id"
action = "Entries.Action"
type = "Entries.Type"
px = "Entries.Px"
qty = "Entries.Qty"
depth = "Entries.Level"
[[fast.message]]
templates = ["Snapshot"]
kind = "snapshot"
entries = "Entries"
[fast.message.fields]
product = "Product"
last = "Last"
instrument = "Id"
type = "Entries.Type"
px = "Entries.Px"
qty = "Entries.Qty"
depth = "Entries.Level"
"#;

/// The shipped mapping accepts the templates of the exchange in a box, whose names are the venue's.
#[test]
fn the_shipped_mapping_fits_templates_of_these_names() {
    let dir = tempfile::tempdir().unwrap();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fast/box");
    for name in ["incremental.xml", "snapshot.xml", "reference.xml"] {
        std::fs::copy(vectors.join(name), dir.path().join(name)).unwrap();
    }
    like(dir.path(), "t7-emdi", ["incremental.xml", "snapshot.xml", "reference.xml"]).unwrap();
    let wrong = like(dir.path(), "t7-emdi", ["incremental.xml", "incremental.xml", "none.xml"]);
    assert!(wrong.unwrap_err().contains("none.xml"));
}

/// A feed and a handler by itself read the same files: a key that one of them refuses, the other refuses too.
#[test]
fn a_feed_and_a_handler_accept_the_same_keys() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.xml"), TEMPLATES).unwrap();
    let path = dir.path().join("m.toml");
    let by_both = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let feed = Mapping::load(path.to_str().unwrap()).map(drop).map_err(|e| e.to_string());
        let handler =
            unitape_marketdata::engine::HandlerConfig::load(&path).map(drop).map_err(|e| e.to_string());
        (feed, handler)
    };
    for more in ["", "title = \"mine\"\n", "detect = { contains = [] }\n"] {
        let (feed, handler) = by_both(&format!("{more}{MAPPING}"));
        assert_eq!((feed, handler), (Ok(()), Ok(())), "{more}");
    }
    let behind = [
        "[group.268]\nmembers = [\"55\"]\n",
        "[table.side]\n1 = \"B\"\n",
        "[message]\nts = \"52\"\n",
        "[message]\n",
        "[[rule]]\nignore = true\n",
        "[fast_messages]\ntemplates = [\"t.xml\"]\n",
        "[itch]\n",
        "[framing]\nsep = \"|\"\n",
        "[else]\n",
    ];
    let before = ["layout = \"jse-orders\"\n", "title = 5\n", "detect = 5\n"];
    let texts = behind.iter().map(|more| format!("{MAPPING}{more}"));
    let texts = texts.chain(before.iter().map(|more| format!("{more}{MAPPING}")));
    for text in texts.chain([MAPPING.replace("\"mine\"", "5"), MAPPING.replace("[fast]", "[fst]")]) {
        let (feed, handler) = by_both(&text);
        assert!(feed.is_err() && handler.is_err(), "{text}: {feed:?} {handler:?}");
    }
}

/// A handler by a mapping that is like a shipped one, with these templates for the three channels.
fn like(
    dir: &Path,
    base: &str,
    templates: [&str; 3],
) -> Result<std::sync::Arc<unitape_marketdata::engine::HandlerConfig>, String> {
    let mut text = format!("name = \"mine\"\nformat = \"fast\"\n[fast]\nlike = \"{base}\"\n");
    for (i, (role, file)) in ["incremental", "snapshot", "reference"].iter().zip(templates).enumerate() {
        text += &format!(
            "[[fast.channel]]\nname = \"{role}\"\nrole = \"{role}\"\ntemplates = ['{file}']\na = [\"224.0.0.1:{i}\"]\n"
        );
    }
    let path = dir.join("like.toml");
    std::fs::write(&path, text).unwrap();
    unitape_marketdata::engine::HandlerConfig::load(&path).map_err(|e| e.to_string())
}

/// Real packets of two lines in one log, and the templates of T7; only where the samples are.
#[test]
fn real_packets_and_real_templates() {
    use unitape_marketdata::UnixNanos;
    use unitape_marketdata::engine::{Engine, EventContext, MarketEvent, MessageOutcome, Packet};
    let Some(samples) = std::env::var_os("UNITAPE_SAMPLES") else {
        eprintln!("not run with CME's packets and T7's templates: UNITAPE_SAMPLES is not set");
        return;
    };
    let (dir, samples) = (tempfile::tempdir().unwrap(), Path::new(&samples).join("fast"));
    let file = |name: &str| samples.join(name).display().to_string();
    let t7 = ["EMDI", "EMDS", "RDD"].map(|n| file(&format!("bse_t7/{n}FastTemplates-1.1.xml")));
    like(dir.path(), "t7-emdi", [&t7[0], &t7[1], &t7[2]]).unwrap();
    let cme = file("cme/templates.xml");
    let mut handler = Engine::new(like(dir.path(), "cme-mdp2", [&cme, &cme, &cme]).unwrap());
    let log = std::fs::read_to_string(samples.join("cme/sampleMD_first2000.hex.log")).unwrap();
    let (mut levels, mut ends, mut refused, mut duplicates, mut packets) = (0, 0, Vec::new(), 0, 0);
    for line in log.lines() {
        let hex = line.rsplit(']').next().unwrap_or(line);
        let digits: Vec<u8> =
            hex.bytes().filter_map(|b| char::from(b).to_digit(16)).map(|d| d as u8).collect();
        let payload: Vec<u8> = digits.chunks_exact(2).map(|d| d[0] << 4 | d[1]).collect();
        if payload.is_empty() {
            continue;
        }
        packets += 1;
        let to = ([224, 0, 0, 1], 0).into();
        let ts_recv = UnixNanos(packets * 1000);
        let packet = Packet { to, ts_recv, position: packets as u64 * 2000, payload: &payload };
        handler.packet(packet, &mut |_: &EventContext<'_>, step: MarketEvent<'_>| match step {
            MarketEvent::Level(_) => levels += 1,
            MarketEvent::Refused(why) => refused.push(format!("{} {}", why.code, why.detail)),
            MarketEvent::End(outcome) => {
                ends += 1;
                duplicates += u64::from(outcome == MessageOutcome::Duplicate);
            }
            _ => {}
        });
    }
    handler.finish(&mut |_: &EventContext<'_>, _: MarketEvent<'_>| {});
    eprintln!(
        "{packets} packets, {levels} levels, {ends} messages, {duplicates} duplicates, {:?}",
        handler.stats()
    );
    assert!(refused.iter().all(|why| why.starts_with("late")), "{:?}", &refused[..refused.len().min(5)]);
    // There are no snapshots in the log: all levels wait for one.
    assert!(
        ends >= packets && handler.stats().products.waited > 2000 && !handler.tables().instruments.is_empty()
    );
}
