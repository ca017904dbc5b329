//! FAST feeds by rules: real messages to trades, sequences in sequences, bad messages with their reason, and the same tape
//! however they are cut.

use crate::common::{assert_same, events, files, run, run_in_parts};
use crate::text::entry_counts;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_feed::mapping::ExplainedOutcome;
use unitape_feed::{FileFeed, Format, Mapping, TapeAccount, explain, quarantine};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fast")
}

fn feed(format: &Format, file: &Path) -> FileFeed {
    FileFeed { name: "f".to_owned(), format: format.clone(), files: vec![file.to_owned()] }
}

/// A mapping beside a file of templates.
fn mapping(dir: &Path, templates: &str, table: &str, rest: &str) -> Format {
    std::fs::write(dir.join("t.xml"), templates).unwrap();
    let text =
        format!("name = \"m\"\nformat = \"fast\"\n[fast_messages]\ntemplates = [\"t.xml\"]\n{table}\n{rest}");
    Format::from_mapping(Mapping::parse(&text, dir.join("m.toml").to_str().unwrap()).unwrap()).unwrap()
}

/// Events of `bytes`, and why the rest was refused.
fn events_of(format: &Format, bytes: &[u8]) -> (Vec<Value>, Vec<(u64, String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, bytes).unwrap();
    run(&tape, &[feed(format, &file)], 1, 64 << 10);
    assert!(TapeAccount::load(&tape).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let mapped = events(&tape).into_iter().filter(|e| e["kind"] != "quarantine").collect();
    let refused = quarantine::list(&tape).unwrap().into_iter();
    (mapped, refused.map(|e| (e.offset, e.reason, e.detail)).collect())
}

fn moex() -> Format {
    Format::from_names("fast", "moex-trades").unwrap()
}

fn olr() -> PathBuf {
    vectors().join("moex/olr_5020.dat")
}

#[test]
fn trades_of_moscow() {
    let (mapped, refused) = events_of(&moex(), &std::fs::read(olr()).unwrap());
    assert_eq!(refused, []);
    assert_eq!(mapped.len(), 6_737);
    assert_eq!(
        mapped[0],
        json!({
            "seq": mapped[0]["seq"], "ts": 1_554_366_996_274_670_000u64, "kind": "trade", "venue": "MISX",
            "instr": "AFLT", "px": "74.78", "qty": "9", "match_id": "80810596", "side": "S", "board": "TQBR",
            "value": "6730.2", "MDEntryTime": "83636000", "OrigTime": "236732", "RefOrderID": "64760",
            "RptSeq": "7889", "SettlDate": "20190408", "SettleType": "Y2", "TradingSessionSubID": "N",
        })
    );
    // For each message, all trades in its order.
    let times: BTreeMap<u64, usize> = mapped.iter().fold(BTreeMap::new(), |mut all, e| {
        *all.entry(e["ts"].as_u64().unwrap()).or_default() += 1;
        all
    });
    assert_eq!(times.len(), 5_020);
}

// A feed of the class `stream` was once cut where a message was not over, and its rest counted as a new one.
#[test]
fn the_same_tape_however_it_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    run(&first, &[feed(&moex(), &olr())], 1, 256 << 10);
    for (name, workers, block) in [("two", 2, 1000), ("tiny", 3, 64), ("four", 4, 7000)] {
        let other = dir.path().join(name);
        run(&other, &[feed(&moex(), &olr())], workers, block);
        assert_same(&first, &other, name);
    }
    let parts = dir.path().join("parts");
    run_in_parts(&parts, &[feed(&moex(), &olr())], 2, 1000, 100);
    assert_same(&first, &parts, "in parts");
    assert!(!files(&first).is_empty());
}

const QUOTES: &str = r#"
[message]
ts = "SendingTime@s"
sequence = "MsgSeqNum"
unlisted = "drop"
[table.action]
"0" = "A"
"1" = "C"
"2" = "D"
[table.side]
"0" = "B"
"1" = "S"
[group.MDEntries]
members = ["MDUpdateAction", "MDPriceLevel", "MDEntryType", "SecurityID", "MDEntryPx", "MDEntrySize", "NumberOfOrders"]
[[rule]]
when = { "@template" = "QuoteRequest" }
ignore = true
[[rule]]
when = { "@template" = "MarketData" }
[[rule.event]]
kind = "index"
each = "MDEntries"
fields = { index = "SecurityID", px = "MDEntryPx" }
"#;

fn mfast(dir: &Path, reset: &str) -> Format {
    let xml = std::fs::read_to_string(vectors().join("mfast/example.xml")).unwrap();
    mapping(dir, &xml, &format!("framing = \"frames\"\nreset = \"{reset}\""), QUOTES)
}

/// mFAST's own messages are complete each by itself, because their template resets: whatever the mapping says, and on any
/// number of workers, the same events come.
#[test]
fn messages_with_their_length_before_them() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(vectors().join("mfast/complex30000.frames")).unwrap();
    // The first thousand will do; the last of all is of a template that the mapping has no rule for.
    let end = (0..1000)
        .fold(0, |at, _| at + 4 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize);
    let file = dir.path().join("first.frames");
    std::fs::write(&file, &bytes[..end]).unwrap();
    let mut all = Vec::new();
    for reset in ["never", "packet", "message"] {
        let format = mfast(dir.path(), reset);
        let first = dir.path().join(reset);
        run(&first, &[feed(&format, &file)], 1, 256 << 10);
        for (workers, block) in [(2, 500), (3, 3000)] {
            let other = dir.path().join(format!("{reset}-{workers}"));
            run(&other, &[feed(&format, &file)], workers, block);
            assert_same(&first, &other, reset);
        }
        all.push(events(&first));
    }
    assert!(all[0] == all[1] && all[0] == all[2], "other events by another reset");
    assert!(all[0].len() > 1000, "{}", all[0].len());
    assert_eq!(all[0][0]["px"], "26");
}

const NESTED: &str = r#"<templates>
<template name="Deal" id="1">
  <uInt64 name="Time"/>
  <string name="Desk" presence="optional"/>
  <sequence name="Orders"><length name="N"/>
    <string name="Order"/>
    <group name="Trader"><string name="Name"/></group>
    <sequence name="Fills"><length name="M"/>
      <decimal name="Px"/><uInt32 name="Qty"/><byteVector name="Id"/>
    </sequence>
  </sequence>
</template></templates>"#;

const FILLS: &str = r#"
[message]
ts = "Time@ns"
[group."Orders.Fills"]
members = ["Px", "Qty", "Id", "Order", "Trader.Name"]
[group.Orders]
members = ["Order", "Trader.Name", "Fills.Px"]
[[rule]]
[[rule.event]]
kind = "exec"
each = "Orders.Fills"
fields = { oid = "Order", px = "Px", qty = "Qty", match_id = "Id", trader = "Trader.Name", venue = { const = "X" } }
[[rule.event]]
kind = "order_amend"
each = "Orders"
fields = { oid = "Order", px = "Fills.Px" }
keep = { fills = "Orders" }
"#;

/// One message: two orders, the first with two fills, the second with none; then one with another.
fn deal() -> Vec<u8> {
    let mut m = vec![0xc0, 0x81, 0x8a]; // Time 10
    m.extend([b'D', 0xb1]); // Desk "D1"
    m.push(0x82);
    m.extend([0xc1, b'A', 0xce, 0x82]); // order "A", trader "AN", two fills
    m.extend([0xfe, 0x02, 0xc8, 0x85, 0x82, 0xab, 0xcd]); // 328e-2, 5, id abcd
    m.extend([0x80, 0x83, 0x86, 0x81, 0x0f]); // 3, 6, id 0f
    m.extend([0xc2, b'B', 0xce, 0x81]); // order "B", trader "BN", one fill
    m.extend([0x81, 0xff, 0x81, 0x80]); // -1e1, 1, no id
    m
}

fn frame(messages: &[&[u8]]) -> Vec<u8> {
    messages.iter().flat_map(|m| [&(m.len() as u32).to_le_bytes()[..], m].concat()).collect()
}

/// An entry of a sequence in a sequence once had the order of the element before its own.
#[test]
fn sequences_in_sequences() {
    let dir = tempfile::tempdir().unwrap();
    let format = mapping(dir.path(), NESTED, "", FILLS);
    let (mapped, refused) = events_of(&format, &frame(&[&deal()]));
    assert_eq!(refused, []);
    let short: Vec<Value> = mapped
        .iter()
        .map(|e| json!([e["kind"], e["oid"], e["px"], e["qty"], e["match_id"], e["trader"], e["Desk"]]))
        .collect();
    let nothing = Value::Null;
    assert_eq!(
        short,
        [
            json!(["exec", "A", "3.28", "5", "abcd", "AN", "D1"]),
            json!(["exec", "A", "3", "6", "0f", "AN", nothing]),
            json!(["exec", "B", "-10", "1", nothing, "BN", nothing]),
            json!(["order_amend", "A", "3.28", nothing, nothing, nothing, nothing]),
            json!(["order_amend", "B", "-10", nothing, nothing, nothing, nothing]),
        ]
    );
    assert_eq!(mapped[3]["fills"], "2");
    assert_eq!(mapped[3]["Trader.Name"], "AN", "what an entry has and nothing names is kept");
}

/// An unlisted field of an entry was kept with the first event of the message.
#[test]
fn unlisted_fields_stay_with_their_entry() {
    let dir = tempfile::tempdir().unwrap();
    let rules = FILLS.replace("\"Qty\", \"Id\", ", "\"Qty\", ").replace("match_id = \"Id\", ", "");
    let format = mapping(dir.path(), NESTED, "", &rules);
    let (mapped, refused) = events_of(&format, &frame(&[&deal()]));
    assert_eq!(refused, []);
    let fills = mapped.iter().filter(|event| event["kind"] == "exec");
    let kept: Vec<_> = fills.map(|event| json!([event["Orders.Fills.Id"], event["Desk"]])).collect();
    let nothing = Value::Null;
    assert_eq!(
        kept,
        [json!(["abcd", "D1"]), json!(["0f", nothing]), json!([nothing, nothing])],
        "{mapped:?}"
    );
}

/// Of a refused message only the entries before the fault were counted.
#[test]
fn all_entries_of_a_refused_message_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let format = mapping(dir.path(), NESTED, "", FILLS);
    let good = deal();
    // The price of the second fill has an exponent of -20.
    let price = good.windows(2).position(|pair| pair == [0x80, 0x83]).unwrap();
    let mut bad = good.clone();
    bad[price] = 0xec;
    assert_eq!(entry_counts(&format, &frame(&[&good])), [5, 5, 0, 0]);
    assert_eq!(entry_counts(&format, &frame(&[&bad, &good])), [10, 5, 5, 0]);
}

/// A bad message takes no neighbour with it, and its reason says where.
#[test]
fn bad_messages_go_into_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let format = mapping(dir.path(), NESTED, "", FILLS);
    let good = deal();
    let mut wide = good.clone();
    wide[2..3].copy_from_slice(&[0x7f]); // a time without a stop bit
    wide.splice(3..3, [0x7f; 12]);
    let mut more = good.clone();
    more.extend([1, 2, 3]);
    let unknown: &[u8] = &[0xc0, 0x85, 0x80];
    let bytes = frame(&[&good, &wide, unknown, &good[..20], &more, &[], &good]);
    let (mapped, refused) = events_of(&format, &bytes);
    let reasons: Vec<&str> = refused.iter().map(|(_, reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["D2", "D9", "truncated", "rest_bytes", "D12"]);
    assert_eq!(mapped.len(), 15);
    assert_eq!(refused[0].0, good.len() as u64 + 8);
    assert!(refused[0].2.contains("template Deal, field Time, at byte 2 of the message"), "{}", refused[0].2);
    assert!(refused[2].2.contains("template Deal, field Id, at byte 20"), "{}", refused[2].2);

    // A length that cannot be: the rest of its 64 KiB is one piece, and all is well again after it.
    let mut bytes = frame(&[&good]);
    let at = bytes.len() as u64;
    bytes.resize(64 << 10, 0xff);
    bytes.extend(frame(&[&good]));
    let (mapped, refused) = events_of(&format, &bytes);
    assert_eq!((mapped.len(), refused.len()), (10, 1));
    assert_eq!((refused[0].0, refused[0].1.as_str()), (at, "too_large"));
}

/// Where only messages show their ends, the bytes after a bad one are kept, and reported as lost.
#[test]
fn behind_a_bad_message_that_tells_its_own_end() {
    let bytes = std::fs::read(olr()).unwrap();
    let mut damaged = bytes.clone();
    // The template's id of the third message.
    damaged[216] = 0x7f;
    damaged.resize(300 << 10, 0xaa);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in");
    std::fs::write(&file, &damaged).unwrap();
    let first = dir.path().join("first");
    run(&first, &[feed(&moex(), &file)], 1, 256 << 10);
    for (name, workers, block) in [("two", 2, 1000), ("three", 3, 70_000)] {
        let other = dir.path().join(name);
        run(&other, &[feed(&moex(), &file)], workers, block);
        assert_same(&first, &other, name);
    }
    let refused = quarantine::list(&first).unwrap();
    assert_eq!(refused.iter().map(|e| e.length as usize).sum::<usize>(), damaged.len() - 211);
    assert_eq!(refused.len(), 5);
    assert!(refused[1..].iter().all(|e| e.reason == "garbage"));
    assert_eq!(events(&first).iter().filter(|e| e["kind"] == "trade").count(), 3);
}

/// A retry with the mended mapping recovers a message that needs no earlier one; it does not guess any other.
#[test]
fn what_a_mended_mapping_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let short = FILLS.replace("oid = \"Order\"", "oid = { from = \"Order\", table = \"orders\" }");
    let short = format!("[table.orders]\nA = \"a\"\n{short}");
    let mended = format!("{}\n", short.replace("A = \"a\"", "A = \"a\"\nB = \"b\""));
    for (reset, recovered) in [("packet", 1), ("never", 0)] {
        let table = format!("reset = \"{reset}\"");
        let (file, tape) = (dir.path().join("in"), dir.path().join(format!("tape-{reset}")));
        std::fs::write(&file, frame(&[&deal()])).unwrap();
        run(&tape, &[feed(&mapping(dir.path(), NESTED, &table, &short), &file)], 1, 64 << 10);
        assert_eq!(quarantine::list(&tape).unwrap()[0].reason, "unknown_value");
        let mended = mapping(dir.path(), NESTED, &table, &mended);
        let done = quarantine::retry(&tape, mended.mapping_definition(), None).unwrap();
        assert_eq!((done.tried, done.recovered), (1, recovered), "{reset}");
    }
}

/// A capture has a message in each datagram, without its length; offsets are those of the capture, and what was refused can
/// be tried again.
#[test]
fn captures() {
    use unitape_base::capture::write::{datagram, file_header};
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = ("10.0.0.1:5".parse().unwrap(), "239.0.0.1:7".parse().unwrap());
    let mut bytes = Vec::new();
    file_header(&mut bytes);
    let good = deal();
    for message in [&good[..], &good[..9], &good] {
        datagram(&mut bytes, 1, from, to, message);
    }
    let (mapped, refused) = events_of(&mapping(dir.path(), NESTED, "", FILLS), &bytes);
    assert_eq!((mapped.len(), refused.len()), (10, 1));
    assert_eq!(
        (refused[0].0, refused[0].1.as_str()),
        ((24 + 2 * (16 + 28) + good.len()) as u64, "truncated")
    );
    // Without lengths: several messages of a datagram, one after the other.
    let raw = mapping(dir.path(), NESTED, "framing = \"raw\"", FILLS);
    let mut bytes = Vec::new();
    file_header(&mut bytes);
    datagram(&mut bytes, 1, from, to, &[&good[..], &good].concat());
    let (mapped, refused) = events_of(&raw, &bytes);
    assert_eq!((mapped.len(), refused.len()), (10, 0));
}

#[test]
fn mappings_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.xml"), NESTED).unwrap();
    std::fs::write(
        dir.path().join("bad.xml"),
        "<templates>\n<template name=\"A\" id=\"1\">\n<uint name=\"B\"/></template></templates>",
    )
    .unwrap();
    let rest = "[message]\nts='Time@ns'\n[[rule]]\nignore=true\n";
    let table = "[fast_messages]\ntemplates=['t.xml']\n";
    for (text, says) in [
        (rest.to_owned(), "format fast needs a table"),
        (format!("{table}{}", rest.replace("@ns", "@week")), "`@week` is neither a unit"),
        (format!("{table}{}", rest.replace("Time", "Tim")), "`Tim` is no field, group or sequence"),
        (format!("[fast_messages]\ntemplates=[]\n{rest}"), "no file is named"),
        (format!("[fast_messages]\ntemplates=['no.xml']\n{rest}"), "nor a readable file"),
        (format!("[fast_messages]\ntemplates=['bad.xml']\n{rest}"), "bad.xml:3"),
        (format!("{table}framing='tcp'\n{rest}"), "unknown variant `tcp`"),
        (format!("{table}[group.Orders]\nmembers=[]\n{rest}"), "no members"),
        (format!("{table}{rest}"), "ok"),
    ] {
        let text = format!("name='m'\nformat='fast'\n{text}");
        let got = Mapping::parse(&text, dir.path().join("m.toml").to_str().unwrap());
        let got = got.map(|_| "ok".to_owned()).unwrap_or_else(|e| e.to_string());
        assert!(got.contains(says), "{got}\nshould say: {says}");
        assert!(got == "ok" || got.contains("m.toml:"), "{got}");
    }
}

/// The fuzzer's property, with messages that are mostly right: blocks of any length give the same events as the
/// whole.
#[test]
fn any_bytes_come_to_the_same_in_pieces() {
    let message = deal();
    for n in 0..1000u32 {
        let mut bytes = vec![n as u8, (n >> 3) as u8];
        for i in 0..n % 7 {
            bytes.extend((message.len() as u32).to_le_bytes());
            bytes.extend(&message);
            let at = (n * 31 + i * 17) as usize % bytes.len();
            if n % 3 > 0 && at > 1 {
                bytes[at] ^= 1 << (n % 8);
            }
        }
        unitape_feed::try_fast(&bytes);
    }
}

#[test]
fn what_a_mapping_does_is_told() {
    let mut mapped = Vec::new();
    let rules = explain(&moex(), &olr(), |message| {
        mapped.push(message);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(rules.unwrap().len(), 1);
    assert_eq!(mapped.len(), 5_020);
    assert!(mapped.iter().all(|m| m.outcome == ExplainedOutcome::Events));
    let px = mapped[0].events[0].fields.iter().find(|f| f.field == "px").unwrap();
    assert_eq!((px.from.as_str(), px.source.as_ref()), ("MDEntryPx", Some(&json!("74.78"))));
}
