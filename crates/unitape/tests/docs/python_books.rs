//! The keeper of books in `examples/python`, which was written from `docs/books.md` alone, prints what `unitape book` prints.
//!
//! Two that were written from one page and agree have both read it; where the page said nothing, they once did not.
#![cfg(unix)]

use crate::common::{file, flow, orders_option, root, run};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unitape_base::capture;
use unitape_codec::itch::MoldPacketHeader;
use unitape_codec::twin::itch::sample::{SampleConfig, sample_messages};
use unitape_sim::Rng;
use unitape_sim::day::{ItchDayWriter, Sim, SimConfig};

const OPTIONS: [&str; 3] = ["--depth", "20", "--orders"];

/// The Python keeper's result for these lines of a tape.
fn python(lines: &[u8]) -> Vec<Value> {
    let script = root().join("examples/python/keep_books.py");
    assert!(script.is_file(), "{} is missing", script.display());
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).args(OPTIONS);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("this test needs Python 3: python3: {e}"));
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || _ = stdin.write_all(lines));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asserts that both make the same books of a tape, at its end and up to these shares of it; gives how many books there are.
#[track_caller]
fn assert_equal(tape: &Path, parts: &[f64]) -> usize {
    let t = tape.to_str().unwrap();
    let cat = run(["tape", "cat", t, "--json", "--full", "--all"]).code(0);
    let lines: Vec<&str> = cat.text().lines().collect();
    let seq = |line: &str| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap();
    let last = lines.last().map_or(0, |line| seq(line));
    let mut count = 0;
    for part in parts.iter().chain(&[1.0]) {
        let at = (last as f64 * part) as u64;
        let upto = lines.partition_point(|line| seq(line) <= at);
        let at = at.to_string();
        let ours = run(["book", "show", t, "--json", "--at", &at].iter().chain(&OPTIONS)).lines();
        let theirs = python((lines[..upto].join("\n") + "\n").as_bytes());
        for (n, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(theirs, ours, "line {n} at {at}");
        }
        assert_eq!(theirs.len(), ours.len(), "at {at}");
        count += ours.len();
    }
    count
}

fn consolidate(dir: &Path, name: &str, feeds: &[&str]) -> PathBuf {
    let tape = dir.join(name);
    let feeds = feeds.iter().flat_map(|feed| ["--feed", *feed]);
    run(["consolidate", "--tape", tape.to_str().unwrap()].into_iter().chain(feeds));
    tape
}

/// A whole market in its three formats, and one of its venues as ITCH.
#[test]
fn simulated_days_in_all_formats() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    let d = day.to_str().unwrap();
    let size = [
        "--events",
        "5000",
        "--instruments",
        "9",
        "--minutes",
        "120",
        "--plant",
        "all=0",
        "--near-miss",
        "all=0",
    ];
    run(["generate", "market", "--out", d, "--format", "events,fix,fixed"].iter().chain(&size)).code(0);
    let parts = [0.1, 0.6];
    for feed in [
        format!("day=events:{d}/events.jsonl"),
        format!("day=fix:fix44-orders:{d}/market.fix"),
        format!("day=fixed:sim-day:{d}/market.fixed"),
    ] {
        let name = feed.rsplit('/').next().unwrap();
        assert!(assert_equal(&consolidate(dir.path(), &format!("tape-{name}"), &[&feed]), &parts) > 60);
    }
    let config = SimConfig {
        seed: 4,
        events: 5_000,
        instruments: 9,
        span_ns: 7_200_000_000_000,
        ..SimConfig::default()
    };
    let mut sim =
        Sim::new(SimConfig { plant: Default::default(), near_misses: Default::default(), ..config.clone() })
            .unwrap();
    let mut itch = ItchDayWriter::new(0, config.start_ns, config.span_ns + 60_000_000_000).unwrap();
    let mut bytes = Vec::new();
    while sim.step().is_some() {
        for event in sim.last_events() {
            itch.write(sim.world(), event, &mut bytes);
        }
    }
    let source = file(dir.path(), &format!("{}.itch", itch.date()), bytes);
    let feed = format!("day=itch:nasdaq-itch50:{}", source.display());
    assert!(assert_equal(&consolidate(dir.path(), "itch", &[&feed]), &parts) > 20);
    let feed = format!("day=itch:nasdaq-itch50-stateless:{}", source.display());
    assert_eq!(assert_equal(&consolidate(dir.path(), "stateless", &[&feed]), &[0.5]), 2, "warnings alone");
}

/// Bad messages among good ones: what they may concern is stale.
#[test]
fn damaged_feeds() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = flow(12, 3_000, true);
    let orders = file(dir.path(), "orders.fix", bytes);
    assert_equal(&consolidate(dir.path(), "fix", &[&orders_option("orders", &orders)]), &[0.5]);

    // ITCH in packets, of which some are missing, some come twice, and a session begins again.
    let messages = sample_messages(SampleConfig { messages: 2_000, stocks: 12, live: 400, seed: 3 });
    let mut pcap = Vec::new();
    capture::write::file_header(&mut pcap);
    let (mut rng, mut at, mut number, mut session) = (Rng::new(5), 0, 1, *b"SESSION001");
    for n in 0.. {
        if at >= messages.len() {
            break;
        }
        let mut head = MoldPacketHeader { session, sequence: number, count: 0 };
        let from = at;
        while at < messages.len() && u64::from(head.count) < 1 + rng.below(12) {
            at += 2 + usize::from(u16::from_be_bytes([messages[at], messages[at + 1]]));
            head.count += 1;
        }
        number += u64::from(head.count);
        let mut packet = Vec::new();
        head.write(&mut packet);
        packet.extend_from_slice(&messages[from..at]);
        let [sender, to] = ["10.0.0.1:4000", "233.54.12.111:26477"].map(|a| a.parse().unwrap());
        let copies = match rng.below(60) {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        (0..copies).for_each(|_| {
            capture::write::datagram(&mut pcap, 1_580_394_600_000_000_000 + n, sender, to, &packet)
        });
        if n == 200 {
            (session, number) = (*b"SESSION002", 1);
        }
    }
    let capture = file(dir.path(), "day.pcap", pcap);
    let text = std::fs::read_to_string(root().join("mappings/nasdaq-itch50.toml")).unwrap();
    let text = text.replace("framing = \"length\"", "framing = \"mold\"\nsession_date = \"2020-01-30\"");
    let mapping = file(dir.path(), "mold.toml", text.replace("nasdaq-itch50\"", "mold\""));
    let feed = format!("itch=itch:{}:{}", mapping.display(), capture.display());
    assert!(assert_equal(&consolidate(dir.path(), "mold", &[&feed]), &[0.1, 0.5]) > 20);
}

/// Any order of sense and nonsense, of two feeds, with lines that are refused, events without names, phases, statuses, parts
/// that are shown, orders that are restated.
#[test]
fn whatever_a_feed_says() {
    for seed in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(seed);
        let feeds = ["one", "two"].map(|name| {
            let text: String = (0..250).map(|n| line(&mut rng, n)).collect();
            format!("{name}=events:{}", file(dir.path(), &format!("{name}.jsonl"), text).display())
        });
        let tape = consolidate(dir.path(), "tape", &feeds.each_ref().map(String::as_str));
        let parts: Vec<f64> = (1..4).map(|n| f64::from(n) / 4.0).collect();
        assert!(assert_equal(&tape, &parts) > 50, "seed {seed}");
    }
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u64) as usize]
}

/// A line of JSON; empty texts are left out.
fn line(rng: &mut Rng, n: u64) -> String {
    let none = if rng.below(12) == 0 { "" } else { "BP" };
    let mut fields: Vec<(&str, &str)> = vec![
        ("venue", pick(rng, &["XLON", "XLON", "CHIX", "BATE", "NBBO", ""])),
        ("instr", pick(rng, &["VOD", "VOD", "VOD", "BP", "SHEL", none])),
    ];
    let side = pick(rng, &["B", "S", "B", "S", ""]);
    let px = pick(rng, &["9", "9.5", "10", "10", "10.25", "10.5", "11", "-1", ""]);
    let qty = pick(rng, &["1", "2", "5", "10", "300", "0.25", "1000000", "0", "-3", ""]);
    let few = |rng: &mut Rng, of: &[&'static str]| if rng.below(3) == 0 { pick(rng, of) } else { "" };
    let kind = match rng.below(44) {
        0..=11 => "order_new",
        12..=17 => "order_amend",
        18..=21 => "order_cancel",
        22..=28 => "exec",
        29..=34 => "level",
        35..=37 => "bbo",
        38..=39 => "session",
        40..=42 => "status",
        _ => "trade",
    };
    match kind {
        "order_new" | "order_amend" | "order_cancel" => {
            fields.push(("oid", pick(rng, &["A", "B", "C", "D", "E", "F", "G", "H"])));
            fields.extend([("side", side), ("px", px), ("qty", qty)]);
            fields.push(("tif", few(rng, &["DAY", "IOC", "FOK", "GTC"])));
            fields.push(("type", few(rng, &["limit", "market", "stop", "stoplmt", "a-long-type"])));
            fields.push(("display_qty", few(rng, &["0", "1", "2.5", "20", "-1"])));
            fields.push(("left", few(rng, &["0", "1", "0.75", "4", "-1"])));
            if kind == "order_amend" && rng.below(2) == 0 {
                // Most reductions are without a total; one that has it says nothing.
                fields.retain(|(name, _)| !matches!(*name, "qty" | "left"));
                fields.push(("qty", few(rng, &["5", ""])));
                fields.push(("qty_reduced", pick(rng, &["1", "2", "0.25", "5", "0", "-1"])));
            }
            fields.push(("reason", few(rng, &["suspended", "rejected", "done_for_day", "expired"])));
        }
        "exec" => fields.extend([
            ("oid", pick(rng, &["A", "B", "C", "D", "E"])),
            ("side", side),
            ("px", "10"),
            ("qty", qty),
        ]),
        "level" => fields.extend([
            ("action", pick(rng, &["A", "A", "A", "C", "C", "D", "D", "R"])),
            ("side", side),
            ("px", px),
            ("qty", qty),
        ]),
        "bbo" => fields.extend([
            ("bid", px),
            ("bid_qty", qty),
            ("ask", pick(rng, &["10", "11", ""])),
            ("ask_qty", pick(rng, &["5", "5", "7", ""])),
        ]),
        "session" => fields.push((
            "phase",
            pick(rng, &["open", "open", "auction", "halt", "pre", "close", "close", "lunch"]),
        )),
        "status" => fields
            .push(("state", pick(rng, &["stale", "recovered", "restarted", "halted", "trading", "LIVE"]))),
        _ => fields.extend([("px", "10"), ("qty", "1")]),
    }
    if matches!(kind, "session" | "status") {
        fields.iter_mut().take(2).for_each(|field| {
            if rng.below(4) == 0 {
                field.1 = "";
            }
        });
    }
    let mut object = serde_json::json!({ "seq": n + 1, "ts": 1_000 + n / 3, "kind": kind });
    fields
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .for_each(|(name, value)| object[*name] = (*value).into());
    if kind == "bbo" && rng.below(2) == 0 {
        object["partial"] = (rng.below(4) > 0).into();
    }
    if kind == "level" && rng.below(2) == 0 {
        object["depth"] = rng.below(5).into();
    }
    match rng.below(40) {
        // Lines that are refused: with a name, of no book, and not even JSON.
        0 => object["qty"] = "many".into(),
        1 => object["kind"] = "nonsense".into(),
        2 => return "{\"ts\":\n".to_owned(),
        _ => {}
    }
    format!("{object}\n")
}
