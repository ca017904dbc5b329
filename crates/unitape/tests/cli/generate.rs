//! `unitape generate`: the files of a market agree with each other, and come in as anyone's would; the stream of orders
//! is frozen.

use crate::common::{run, run_with_stdin};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn generate(dir: &Path, more: &[&str]) -> Value {
    let fixed =
        ["generate", "market", "--events", "12000", "--instruments", "40", "--minutes", "120", "--json"];
    let out = ["--out", dir.to_str().unwrap()];
    run(fixed.iter().chain(&out).chain(more)).code(0).json()
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kinds: &[&str]) -> Vec<&'a Value> {
    events.iter().filter(|e| kinds.contains(&e["kind"].as_str().unwrap())).collect()
}

/// A figure is compared with one of last year, which was measured with the same stream. The deep run makes all ten million
/// events of it.
#[test]
fn bench_stream_is_frozen_by_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("orders");
    let (events, hash) = if std::env::var_os("UNITAPE_DEEP").is_some() {
        ("10000000", "ecce46f002ded3f730d247e642624723f13683bd23d010a651274f203592ffa3")
    } else {
        ("100000", "f200b20d3280606f36862af5c7529adca081d404710bc42d46f88db9d8fa8389")
    };
    let tape = tape.to_str().unwrap();
    let made = run(["generate", "bench", "--events", events, "--tape", tape, "--json"]).code(0).json();
    assert_eq!(made["frames_sha256"], hash);
    let open = made["open_orders_max"].as_u64().unwrap();
    assert!(
        open * 10 >= events.parse::<u64>().unwrap(),
        "a tenth as many orders are open as there are events: {open}"
    );
    let whole = run(["tape", "verify", tape, "--json"]).code(0).json();
    assert_eq!(whole["events"], made["events"]);
    // Another stream would go behind this one, with the same ids for other names.
    let again = run(["generate", "bench", "--events", "1000", "--tape", tape]).code(1);
    again.says(&["orders", "there is something in it already"]);
}

/// The lines of the stream and its tape are two writers for the same events.
#[test]
fn bench_stream_has_the_same_events_as_lines_and_on_a_tape() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, file) = (dir.path().join("orders"), dir.path().join("orders.jsonl"));
    let (tape, file) = (tape.to_str().unwrap(), file.to_str().unwrap());
    let to_tape = run(["generate", "bench", "--events", "3000", "--tape", tape]).code(0);
    let words = ["3,000 events in", "order_new", "only the order id"];
    assert!(words.iter().all(|word| to_tape.text().contains(word)), "{}", to_tape.text());
    let to_file = run(["generate", "bench", "--events", "3000", "--out", file, "--json"]).code(0).json();
    let printed = run(["generate", "bench", "--events", "3000", "--out", "-"]).code(0);
    let lines = fs::read_to_string(file).unwrap();
    assert_eq!(to_file["events"], lines.lines().count());
    assert_eq!(printed.text(), lines);
    assert_eq!(run(["tape", "cat", tape, "--json"]).code(0).text(), lines);
    let other = run(["generate", "bench", "--events", "3000", "--seed", "2", "--out", "-"]).code(0);
    assert_ne!(other.text(), lines);
}

/// The first stream had amends that said what was left, where the form wants the whole quantity: books called it faulty.
#[test]
fn books_of_the_bench_stream_have_no_faults() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("orders");
    let tape = tape.to_str().unwrap();
    let stream = ["--events", "60000", "--instruments", "20", "--open-orders", "600", "--names-all"];
    run(["generate", "bench", "--tape", tape].iter().chain(&stream)).code(0);
    let books = run(["book", "show", tape, "--basis", "orders", "--json"]).code(0).lines();
    assert!(books.len() > 15, "{}", books.len());
    let last = run(["tape", "cat", tape, "--from", "60000", "--json"]).code(0).lines();
    for book in &books {
        assert_eq!(
            (&book["faults"], &book["marks"]),
            (&serde_json::json!({}), &serde_json::json!([])),
            "{book}"
        );
        // The best prices that the stream wrote are those of its orders. The last request may have been cut before them.
        if (&book["instr"], &book["venue"]) == (&last[0]["instr"], &last[0]["venue"]) {
            continue;
        }
        let (instr, venue) = (book["instr"].as_str().unwrap(), book["venue"].as_str().unwrap());
        let options = ["--kind", "bbo", "--instr", instr, "--venue", venue, "--json"];
        let written = run(["tape", "cat", tape].iter().chain(&options)).code(0).lines();
        let written = written.last().unwrap();
        for (side, px, qty) in [("bids", "bid", "bid_qty"), ("asks", "ask", "ask_qty")] {
            let best = &book[side][0];
            assert_eq!((&best["px"], &best["qty"]), (&written[px], &written[qty]), "{book}");
        }
    }
}

/// If the drop copy said something else than the events, every test of a mapping would test the simulator. Nothing
/// may go to quarantine, and every field of an event must come back, but for those that the convention leaves out.
#[test]
fn the_drop_copy_makes_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    let account = generate(&day, &["--format", "events,fix,swift", "--orders"]);
    let events = lines(&day.join("events.jsonl"));
    assert_eq!(account["events"], events.len());
    let (tape, fix) = (dir.path().join("tape"), day.join("market.fix"));
    let feed = format!("market=fix:fix44-orders:{}", fix.display());
    let out =
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!((&out["quarantined"], &out["ignored"]), (&0.into(), &0.into()));
    let kinds = [
        "ref",
        "party",
        "session",
        "status",
        "bbo",
        "trade",
        "order_new",
        "order_amend",
        "order_cancel",
        "exec",
    ];
    let wanted = of_kind(&events, &kinds);
    let found = run(["tape", "cat", tape.to_str().unwrap(), "--json"]).code(0).lines();
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        for (name, value) in wanted.as_object().unwrap().iter().filter(|(name, _)| *name != "seq") {
            assert_eq!(found.get(name), Some(value), "{name}: {found} is not {wanted}");
        }
    }
    let orders = lines(&day.join("orders.jsonl"));
    assert_eq!(orders.len(), of_kind(&events, &["order_new"]).len(), "every order has its life");
}

/// A column one byte off gives another price, and nobody would see it. Here everything that a record has must come back,
/// and nothing else.
#[test]
fn the_fixed_width_records_make_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    generate(&day, &["--format", "events,fixed"]);
    let kinds = [
        "ref",
        "party",
        "session",
        "status",
        "bbo",
        "trade",
        "order_new",
        "order_amend",
        "order_cancel",
        "exec",
    ];
    let events = lines(&day.join("events.jsonl"));
    let wanted = of_kind(&events, &kinds);
    let records = fs::read_to_string(day.join("market.fixed")).unwrap();
    assert_eq!(records.lines().count(), wanted.len() + 2, "a header, a trailer, and a record for each");
    let decoded =
        run(["decode", "fixed", "--layout", "sim-day", day.join("market.fixed").to_str().unwrap(), "--json"]);
    let trailer = decoded.code(0).lines().pop().unwrap();
    let count = |kinds: &[&str]| Value::from(of_kind(&events, kinds).len());
    assert_eq!(trailer["fields"]["records"], wanted.len());
    assert_eq!(trailer["fields"]["orders"], count(&["order_new", "order_amend", "order_cancel"]));
    assert_eq!(trailer["fields"]["executions"], count(&["exec"]));
    assert_eq!(trailer["fields"]["prints"], count(&["trade"]));
    assert_eq!(trailer["fields"]["best_prices"], count(&["bbo"]));
    assert_eq!(trailer["fields"]["others"], count(&["ref", "party", "session", "status"]));
    // By its mapping, and known by its content.
    let file = day.join("market.fixed").display().to_string();
    let feed = format!("market=fixed:sim-day:{file}");
    for (tape, source) in [("named", &["--feed", &feed][..]), ("found", &[file.as_str()])] {
        let tape = dir.path().join(tape);
        let args = ["consolidate", "--tape", tape.to_str().unwrap(), "--json"];
        let out = run(args.iter().chain(source)).code(0).json();
        assert_eq!((&out["quarantined"], &out["ignored"]), (&0.into(), &2.into()), "{source:?}");
        let found = run(["tape", "cat", tape.to_str().unwrap(), "--json"]).code(0).lines();
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            let fields = |of: &Value| {
                let mut fields = of.as_object().unwrap().clone();
                ["seq", "src", "off", "sequence"].iter().for_each(|name| _ = fields.remove(*name));
                fields
            };
            assert_eq!(fields(found), fields(wanted), "{found} is not {wanted}");
        }
    }
}

/// A file that was cut must not pass for a whole day.
#[test]
fn a_cut_file_of_records_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    generate(&day, &["--format", "fixed"]);
    let text = fs::read_to_string(day.join("market.fixed")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(lines.len() / 2);
    let cut = dir.path().join("cut.fixed");
    fs::write(&cut, lines.join("\n") + "\n").unwrap();
    let args = ["decode", "fixed", "--layout", "sim-day", cut.to_str().unwrap(), "--json"];
    let last = run(args).code(3).lines().pop().unwrap();
    assert_eq!(last["error"]["code"], "record_count");
}

/// Payments lose their seconds on the network and nothing else.
#[test]
fn payments_come_back_from_swift() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    generate(&day, &["--format", "events,swift"]);
    let events = lines(&day.join("events.jsonl"));
    let wanted = of_kind(&events, &["payment"]);
    let (tape, file) = (dir.path().join("tape"), day.join("payments.swift"));
    let feed = format!("payments=swift:swift-mt:{}", file.display());
    let out =
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!((&out["quarantined"], &out["ignored"]), (&0.into(), &0.into()));
    let found = run(["tape", "cat", tape.to_str().unwrap(), "--json"]).code(0).lines();
    assert_eq!(found.len(), wanted.len());
    assert!(found.len() > 500);
    for (found, wanted) in found.iter().zip(wanted) {
        for name in ["kind", "msg", "ref", "dr_acct", "cr_acct", "ccy", "amt", "dr_bic", "cr_bic"] {
            assert_eq!(found[name], wanted[name], "{name}: {found} is not {wanted}");
        }
    }
}

/// The watch must find what the truth says there is, with the numbers of the very events.
#[test]
fn the_watch_finds_the_labels() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    generate(&day, &["--plant", "wash=12", "--near-miss", "wash=10"]);
    let key = |v: &Value| (v["trigger_seq"].as_u64().unwrap(), v["key"].to_string());
    let truth = lines(&day.join("truth.jsonl"));
    let labels: Vec<_> = truth.iter().filter(|l| l["rec"] == "label").map(key).collect();
    let input = day.join("events.jsonl");
    let alerts = run(["watch", "replay", input.to_str().unwrap(), "--scenario", "wash_trade", "--json"]);
    let alerts: Vec<_> = alerts.code(0).lines().iter().map(key).collect();
    assert_eq!((labels.len(), &alerts), (12, &labels));
    assert_eq!(truth.iter().filter(|l| l["rec"] == "near_miss").count(), 10);
}

/// A seed that means one thing today and another tomorrow makes every recorded figure worthless.
#[test]
fn the_same_options_give_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str| -> BTreeMap<String, Vec<u8>> {
        let day = dir.path().join(name);
        generate(&day, &["--format", "events,fix,fixed,swift"]);
        let files = fs::read_dir(&day).unwrap().map(|f| f.unwrap());
        files.map(|f| (f.file_name().into_string().unwrap(), fs::read(f.path()).unwrap())).collect()
    };
    let (one, two) = (read("one"), read("two"));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        ["events.jsonl", "market.fix", "market.fixed", "payments.swift", "truth.jsonl"]
    );
    assert!(one == two, "one seed, two days");
    let args =
        ["generate", "market", "--events", "12000", "--instruments", "40", "--minutes", "120", "--out", "-"];
    assert!(run_with_stdin(args, b"").code(0).stdout == one["events.jsonl"], "stdout is another day");
}

/// A typing error must not plant nothing and exit 0.
#[test]
fn what_cannot_be_planted_is_said() {
    let bad = |args: &[&str], code: i32, says: &str| {
        run(["generate", "market", "--out", "-"].iter().chain(args)).code(code).says(&[says]);
    };
    bad(&["--plant", "spofing=3"], 2, "spoofing, layering");
    bad(&["--plant", "spoofing=many"], 2, "scenario=count");
    bad(&["--venues", "9"], 2, "venues is 9, not 1 to 6");
    bad(&["--minutes", "1"], 2, "span_ns");
    bad(&["--plant", "marking_close=200"], 2, "no instrument is free for another marking_close");
}

/// A capture that a decoder of any other make could not read would make every test of a handler test the exchange.
/// Damaged packets, and nothing else, are bad.
#[test]
fn the_exchange_is_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let [pcap, again, truth] = ["a.pcap", "b.pcap", "books.jsonl"].map(|name| dir.path().join(name));
    let make = |pcap: &Path| {
        let faults = "some,damaged=40000,restarts=300";
        let fixed =
            ["generate", "exchange", "--messages", "6000", "--options", "20", "--faults", faults, "--json"];
        let files = ["--pcap", pcap.to_str().unwrap(), "--truth", truth.to_str().unwrap()];
        run(fixed.iter().chain(&files)).code(0).json()
    };
    let out = make(&pcap);
    assert_eq!((&out["messages"], &out["channels"].as_array().unwrap().len()), (&6000.into(), &7));
    make(&again);
    assert!(fs::read(&pcap).unwrap() == fs::read(&again).unwrap());
    let templates = ["incremental", "snapshot", "reference"]
        .map(|name| format!("{}/../../vectors/fast/box/{name}.xml", env!("CARGO_MANIFEST_DIR")));
    let mut decode = vec!["decode", "fast", "--framing", "emdi", "--reset-per-packet", "--json"];
    templates.iter().for_each(|path| decode.extend(["--templates", path]));
    decode.push(pcap.to_str().unwrap());
    let decoded = run(&decode).code(3);
    let lines: Vec<Value> = decoded.lines();
    let bad = lines.iter().filter(|line| !line["error"].is_null()).count();
    let faults = &out["faults"];
    assert!(faults["damaged"].as_u64().unwrap() > 20 && faults["restarts"].as_u64().unwrap() > 0);
    // A damaged copy may have come twice.
    let damaged = faults["damaged"].as_u64().unwrap() as usize;
    assert!(
        (damaged..=damaged + faults["doubled"].as_u64().unwrap() as usize).contains(&bad),
        "{bad} {damaged}"
    );
    let headers = lines
        .iter()
        .filter(|line| line["type"]["name"] == "EMDPacketHeader" || line["type"]["name"] == "RDPacketHeader");
    assert!(headers.count() as u64 > out["packets"].as_u64().unwrap() - damaged as u64 * 2);
    let books = self::lines(&truth);
    let instruments = out["products"].as_array().unwrap().iter().map(|p| p["instruments"].as_u64().unwrap());
    assert_eq!(books.len() as u64, instruments.sum::<u64>());
    assert!(books.iter().filter(|book| book["bids"].as_array().unwrap().len() > 1).count() > 10);
    let wrong = ["generate", "exchange", "--pcap", pcap.to_str().unwrap(), "--faults", "lost=often"];
    assert!(run(wrong).code(2).stderr.contains("lost=often"));
    // No time, and no room for the addresses that follow.
    let wrong = ["generate", "exchange", "--pcap", pcap.to_str().unwrap(), "--seconds", "0"];
    assert!(run(wrong).code(2).stderr.contains("--seconds"));
    for group in ["239.1.2.3:65533", "239.1.253.3:1000", "239.1.2.254:1000"] {
        assert!(run(["generate", "exchange", "--udp", group]).code(2).stderr.contains(group));
    }
}

/// A market of several days must come in as anyone's would: nothing in quarantine, the levels equal to the orders, and
/// rejects that are no fault of a book.
#[test]
fn several_days_come_in_whole() {
    let dir = tempfile::tempdir().unwrap();
    let week = dir.path().join("week");
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let options =
        "generate market --days 5 --seed 7 --events 4000 --instruments 40 --minutes 120 --orders --json";
    let files = ["--format", "events,fix,swift", "--out", week.to_str().unwrap()];
    let account = run(options.split(' ').chain(files)).code(0).json();
    let events = lines(&week.join("events.jsonl"));
    assert_eq!(account["events"], events.len());
    assert_eq!(lines(&week.join("truth.jsonl")).iter().filter(|line| line["rec"] == "day").count(), 5);
    let (file, tape) = (week.join("events.jsonl").to_str().unwrap().to_owned(), path("tape"));
    let out = run(["consolidate", &file, "--tape", &tape, "--json"]).code(0).json();
    assert_eq!((&out["quarantined"], &out["ignored"]), (&0.into(), &0.into()));
    run(["tape", "verify", &tape]).code(0);
    run(["watch", "replay", &tape, "--json"]).code(0);
    // In the middle of the third day.
    let opens: Vec<&Value> =
        events.iter().filter(|e| e["kind"] == "session" && e["phase"] == "open").collect();
    let at = (opens[opens.len() / 2]["ts"].as_u64().unwrap() + 2_000_000_000_000).to_string();
    let book = |basis: &str| {
        let args = ["book", "show", &tape, "--at", &at, "--venue", "XLON", "--basis", basis, "--json"];
        run(args).code(0).lines()
    };
    let (orders, levels) = (book("orders"), book("levels"));
    assert!(orders.len() == 40 && levels.len() == 40, "{} {}", orders.len(), levels.len());
    for (orders, levels) in orders.iter().zip(&levels) {
        for side in ["instr", "bids", "asks"] {
            assert_eq!(orders[side], levels[side]);
        }
    }
    // The drop copy has the same orders, among them those that were refused.
    let (feed, fix) = (format!("market=fix:fix44-orders:{}", week.join("market.fix").display()), path("fix"));
    let out = run(["consolidate", "--feed", &feed, "--tape", &fix, "--json"]).code(0).json();
    assert_eq!((&out["quarantined"], &out["ignored"]), (&0.into(), &0.into()));
    let found = run(["tape", "cat", &fix, "--json"]).code(0).lines();
    let refused = |events: &[Value]| {
        let refused = events.iter().filter(|e| e["reason"] == "rejected");
        refused.map(|e| (e["oid"].clone(), e["side"].clone(), e["qty"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(refused(&found), refused(&events));
    assert!(refused(&events).len() > 10);
    for kind in ["order_new", "order_amend", "order_cancel", "exec", "trade"] {
        assert_eq!(of_kind(&found, &[kind]).len(), of_kind(&events, &[kind]).len(), "{kind}");
    }
    run(["book", "show", &fix, "--json"]).code(0);
}

/// A file of controls with a line that says nothing must stop the command, and a day that is not asked for anything new
/// must be the day that it was.
#[test]
fn controls_are_read_and_a_plain_day_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("controls.jsonl");
    let ts = 1_772_437_800_000_000_000u64 + 1_800_000_000_000;
    let good = format!("{{\"ts\":{ts},\"kind\":\"control\",\"action\":\"halt\",\"venue\":\"CHIX\"}}\n\n");
    fs::write(&file, &good).unwrap();
    let halted = dir.path().join("halted");
    // With all near misses the scenes leave few events to the background.
    generate(&halted, &["--control", file.to_str().unwrap(), "--near-miss", "all=1"]);
    let events = lines(&halted.join("events.jsonl"));
    let (mut new, mut refused) = (0, 0);
    for event in events.iter().filter(|e| e["venue"] == "CHIX") {
        let after = event["ts"].as_u64().unwrap() >= ts;
        new += u32::from(event["kind"] == "order_new" && !after);
        refused += u32::from(event["reason"] == "rejected" && after);
        assert!(event["kind"] != "order_new" || !after, "{event}");
    }
    assert!(new > 100 && refused > 100, "{new} {refused}");
    fs::write(&file, format!("{good}{{\"ts\":1,\"kind\":\"control\",\"action\":\"explode\"}}\n")).unwrap();
    let args = ["generate", "market", "--out", "-", "--control", file.to_str().unwrap()];
    run(args).code(1).says(&["line 3", "explode"]);
    let (plain, dated) = (dir.path().join("plain"), dir.path().join("dated"));
    generate(&plain, &[]);
    generate(&dated, &["--days", "1", "--date", "2026-03-02"]);
    let text = |day: &Path| fs::read(day.join("events.jsonl")).unwrap();
    assert!(text(&plain) == text(&dated));
    run(["generate", "market", "--out", "d", "--days", "2", "--format", "fixed"]).code(2);
    run(["generate", "market", "--out", "d", "--days", "61"]).code(2);
}

/// A small full market had fewer scenes than the help says, and nothing told the user.
#[test]
fn fewer_scenes_for_lack_of_room_are_said_on_stderr() {
    let market = ["generate", "market", "--full", "--events", "2000", "--out", "-"];
    let small = ["--instruments", "4"];
    let words = ["instead of 3 scenes and near misses of every scenario", "for another", "--instruments"];
    let fewer = run(market.iter().chain(&small)).code(0).says(&words);
    assert_eq!(fewer.stderr.lines().count(), 1, "{}", fewer.stderr);
    assert!(fewer.lines().iter().all(|line| line["kind"].is_string()));
    let asked =
        run(market.iter().chain(&small).chain(&["--plant", "spoofing=1", "--near-miss", "all=0"])).code(0);
    assert_eq!(asked.stderr, "");
}
