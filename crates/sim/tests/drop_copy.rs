//! The bytes of a drop copy against its truth, read back by a reader that shares nothing with the writer.

mod common;
#[allow(dead_code, unused_imports)] // it knows all scenarios
mod oracle;

use std::collections::{BTreeMap, HashMap};
use std::io;

use common::{Message, all_good, clock_ns, split};
use oracle::Event;
use unitape_model::{InstrumentId, Side};
use unitape_sim::day::{
    DropCopy, DropCopyTruth, InjectedNoiseConfig, Scenario, SimConfig, WashTradeLeg, WashTradePair,
};
use unitape_sim::{Error, isin_check_digit};

fn run_to_close(config: &SimConfig, noise: InjectedNoiseConfig) -> (Vec<u8>, DropCopy) {
    let mut copy = DropCopy::new(config.clone(), noise).expect("a good config").to_close();
    let mut bytes = Vec::new();
    copy.write_fix(&mut bytes).expect("a vector takes all");
    (bytes, copy)
}

fn run(config: &SimConfig) -> (Vec<u8>, DropCopyTruth) {
    let (bytes, copy) = run_to_close(config, InjectedNoiseConfig::default());
    (bytes, copy.truth())
}

fn config(seed: u64) -> SimConfig {
    SimConfig {
        seed,
        events: 14_000,
        instruments: 12,
        depth: 20,
        plant: [(Scenario::WashTrade, 40)].into(),
        near_misses: [(Scenario::WashTrade, 25)].into(),
        ..SimConfig::default()
    }
}

/// A hidden source of chance (a map's order, a clock) would make the demo find other trades than were planted.
#[test]
fn seed_decides_the_bytes() {
    let (bytes, truth) = run(&config(5));
    assert!((bytes.clone(), truth.clone()) == run(&config(5)), "one seed, two drop copies");
    assert!(bytes != run(&config(6)).0, "two seeds, one drop copy");
    assert_eq!(truth.totals.bytes, bytes.len() as u64);
}

/// A step that stopped inside a message would tear it for a live reader.
#[test]
fn steps_are_whole_messages_and_the_same_bytes() {
    let mut copy =
        DropCopy::new(config(5), InjectedNoiseConfig::default()).expect("a good config").to_close();
    let (mut all, mut part) = (Vec::new(), Vec::new());
    loop {
        part.clear();
        let on = copy.step(&mut part);
        assert!(part.len() < 1 << 20, "a step of {} bytes", part.len());
        all_good(&part);
        all.extend_from_slice(&part);
        if !on {
            break;
        }
    }
    assert!((all, copy.truth()) == run(&config(5)));
}

/// A number left out looks like a lost message to every session layer; a time that goes back breaks every window.
#[test]
fn sessions_count_and_time_does_not_go_back() {
    let noise = InjectedNoiseConfig { heartbeat_ns: 30_000_000_000, bad_per_million: 0 };
    let (bytes, copy) = run_to_close(&config(9), noise);
    let (messages, totals) = (all_good(&bytes), copy.truth().totals);
    let mut seqs: BTreeMap<&str, i64> = BTreeMap::new();
    let mut last = 0;
    for m in &messages {
        let seq = seqs.entry(m.get(49)).or_default();
        *seq += 1;
        assert_eq!((m.int(34), m.get(56)), (*seq, "UNITAPE"));
        assert!(m.sent_ns() >= last, "{m:?}");
        last = m.sent_ns();
        if let Some(transact) = m.find(60) {
            assert_eq!(transact, m.get(52));
        }
        if let Some(venue) = m.find(207) {
            assert_eq!(venue, m.get(49));
            let isin = m.get(48);
            assert_eq!(isin_check_digit(&isin[..11]), isin[11..].parse().ok());
        }
    }
    assert_eq!(seqs.into_keys().collect::<Vec<_>>(), ["BATE", "CHIX", "XLON"]);

    let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
    messages.iter().for_each(|m| *by_type.entry(m.get(35)).or_default() += 1);
    assert!(["0", "D", "F", "G"].iter().all(|t| by_type[t] > 100), "{by_type:?}");
    let total = messages.len() as u64;
    assert!(total == totals.messages && (18_000..26_000).contains(&total), "{total} messages");
    let report = |kinds: &[&str]| {
        messages.iter().filter(|m| m.find(150).is_some_and(|k| kinds.contains(&k))).count() as u64
    };
    let kinds = [
        ("bbo", by_type["W"]),
        ("exec", report(&["F"])),
        ("order_amend", report(&["5", "L"])),
        ("order_cancel", report(&["4"])),
        ("order_new", report(&["0"])),
        ("party", by_type["UP"]),
        ("ref", by_type["d"]),
        ("session", by_type["h"]),
        ("status", by_type["f"]),
        ("trade", by_type["X"]),
    ];
    assert_eq!(totals.by_kind, kinds.map(|(kind, n)| (kind.to_owned(), n)).into());
    assert_eq!(totals.no_event, ["0", "D", "F", "G"].iter().map(|t| by_type[t]).sum::<u64>());
    assert!(kinds[..5].iter().all(|(_, n)| *n > 400), "a thin day: {kinds:?}");
    let mean = bytes.len() / messages.len();
    assert!((200..350).contains(&mean), "{mean} bytes a message");
}

/// Quantity that appears or vanishes in a match, or an order that does not add up, would poison every count downstream.
#[test]
fn orders_and_matches_add_up() {
    struct Order {
        qty: i64,
        done: i64,
        value: i128,
        client_id: String,
    }
    let mut orders: HashMap<String, Order> = HashMap::new();
    let mut matches: HashMap<String, Vec<Message>> = HashMap::new();
    let mut requested = HashMap::new();
    for m in all_good(&run(&config(21)).0) {
        if matches!(m.get(35), "D" | "F" | "G") {
            assert_eq!((m.get(35) == "D", m.get(35) == "D"), (m.find(41).is_none(), m.find(37).is_none()));
            requested.insert(m.get(11).to_owned(), m.get(35).to_owned());
        }
        if m.get(35) != "8" {
            continue;
        }
        let id = m.get(37).to_owned();
        if m.get(150) == "0" {
            let client_id = m.get(11).to_owned();
            assert_eq!(requested.remove(&client_id).as_deref(), Some("D"), "{m:?}");
            let fresh = Order { qty: m.int(38), done: 0, value: 0, client_id };
            assert!(orders.insert(id.clone(), fresh).is_none(), "order id used twice");
        }
        let order = orders.get_mut(&id).expect("an order that is live");
        match m.get(150) {
            "F" => {
                order.done += m.int(32);
                order.value += i128::from(m.nano(31).expect("fits")) * i128::from(m.int(32));
            }
            "5" => order.qty = m.int(38),
            _ => {}
        }
        if let Some(was) = m.find(41) {
            assert_eq!(was, order.client_id);
            order.client_id = m.get(11).to_owned();
            let kind = if m.get(150) == "4" { "F" } else { "G" };
            assert_eq!(requested.remove(m.get(11)).as_deref(), Some(kind), "{m:?}");
        }
        assert_eq!((m.int(38), m.int(14), m.get(11)), (order.qty, order.done, order.client_id.as_str()));
        let leaves = if m.get(150) == "4" { 0 } else { order.qty - order.done };
        assert!(m.int(151) == leaves && leaves >= 0 && order.done <= order.qty, "{m:?}");
        if order.done > 0 {
            let exact = order.value / i128::from(order.done);
            assert!((0..=10_000_000).contains(&(exact - i128::from(m.nano(6).expect("fits")))), "{m:?}");
        }
        if m.get(150) == "F" {
            matches.entry(m.get(880).to_owned()).or_default().push(m);
        } else if m.int(151) == 0 {
            orders.remove(&id);
        }
    }
    assert_eq!(requested, HashMap::new(), "requests without a report");
    for (id, legs) in &matches {
        let [taker, maker] = &legs[..] else { panic!("{id} has {} legs", legs.len()) };
        for tag in [31, 32, 48, 207, 60, 30] {
            assert_eq!(taker.get(tag), maker.get(tag), "{id}");
        }
        assert!(matches!((taker.get(851), maker.get(851)), ("2", "1") | ("4", "4")), "{id}");
        assert_ne!(taker.get(54), maker.get(54));
    }
    assert!(matches.len() > 500);
}

/// A published best that the reports do not support would make every book built from them look wrong.
#[test]
fn best_is_what_the_reports_say() {
    type Key = (String, String);
    type Level = (i64, i64);
    let (bytes, copy) = run_to_close(&config(33), InjectedNoiseConfig::default());
    let mut books: HashMap<Key, HashMap<String, (String, i64, i64)>> = HashMap::new();
    let mut last: HashMap<Key, [Option<Level>; 2]> = HashMap::new();
    for m in all_good(&bytes) {
        let Some(venue) = m.find(207) else { continue };
        let key: Key = (venue.to_owned(), m.get(48).to_owned());
        match m.get(35) {
            "8" => {
                let book = books.entry(key).or_default();
                // A stop that waits, and an order that may not rest, are in no book.
                if m.int(151) == 0 || m.get(59) != "0" || m.get(40) != "2" {
                    book.remove(m.get(37));
                } else {
                    let terms = (m.get(54).to_owned(), m.nano(44).expect("fits"), m.int(151));
                    book.insert(m.get(37).to_owned(), terms);
                }
            }
            "W" => {
                let book = &books[&key];
                let side = |code: &str| {
                    let px = book.values().filter(|o| o.0 == code).map(|o| o.1);
                    let px = if code == "1" { px.max() } else { px.min() }?;
                    Some((px, book.values().filter(|o| o.0 == code && o.1 == px).map(|o| o.2).sum::<i64>()))
                };
                let values = |tag: u32| m.0.iter().filter(move |(t, _)| *t == tag).map(|(_, v)| v.clone());
                let mut got = [None, None];
                for ((code, px), qty) in values(269).zip(values(270)).zip(values(271)) {
                    let px = Message(vec![(270, px)]).nano(270).expect("fits");
                    got[code.parse::<usize>().expect("0 or 1")] = Some((px, qty.parse().expect("shares")));
                }
                assert_eq!(got, [side("1"), side("2")], "{m:?}");
                if let [Some(bid), Some(ask)] = got {
                    assert!(bid.0 < ask.0, "crossed: {m:?}");
                }
                assert_ne!(last.get(&key), Some(&got), "published without a change");
                last.insert(key, got);
            }
            _ => {}
        }
    }
    let bbo = copy.truth().bbo;
    assert_eq!(bbo.len(), 36);
    let (sim, world) = (copy.sim(), copy.sim().world());
    for bbo in &bbo {
        let level = |px: &Option<String>, qty: &Option<String>| -> Option<Level> {
            let nano = Message(vec![(1, px.clone()?)]).nano(1).expect("fits");
            Some((nano, qty.as_ref()?.parse().expect("shares")))
        };
        let published = [level(&bbo.bid, &bbo.bid_qty), level(&bbo.ask, &bbo.ask_qty)];
        assert_eq!(last[&(bbo.venue.to_owned(), bbo.instr.clone())], published);
        // It ends while all books trade, and the published prices are those in them.
        let venue = world.venues.iter().position(|v| *v == bbo.venue).expect("a venue");
        let is = |i: &InstrumentId| world.instruments[i.index()].isin == bbo.instr;
        let instr = world.instrument_ids().find(is).expect("an instrument");
        let own = [Side::Buy, Side::Sell].map(|side| sim.book(venue, instr).best(side));
        assert_eq!(published, own.map(|b| b.map(|b| (world.instruments[instr.index()].nano(b.px), b.qty))));
    }
}

/// Groups and execs of the messages as events, numbered as the messages are.
fn events(messages: &[Message]) -> Vec<Event> {
    let event = |(n, m): (usize, &Message)| {
        let value = match (m.get(35), m.find(150)) {
            ("UP", _) => serde_json::json!({
                "seq": n, "ts": m.sent_ns(), "kind": "party", "owner": m.get(5003), "group": m.get(5004),
            }),
            (_, Some("F")) => serde_json::json!({
                "seq": n, "ts": clock_ns(m.get(60)), "kind": "exec", "venue": m.get(207), "instr": m.get(48),
                "match_id": m.get(880), "owner": m.party("3"), "side": if m.get(54) == "1" { "B" } else { "S" },
                "px": m.get(31), "qty": m.get(32),
            }),
            _ => return None,
        };
        Some(Event::parse(&value.to_string()))
    };
    messages.iter().enumerate().filter_map(event).collect()
}

fn at(messages: &[Message], leg: &WashTradeLeg) -> usize {
    let is = |m: &Message| {
        m.find(150) == Some("F")
            && m.get(37) == leg.oid
            && m.get(880) == leg.match_id
            && m.get(207) == leg.venue
    };
    let mut found = messages.iter().enumerate().filter(|(_, m)| is(m));
    let (n, m) = found.next().expect("on the wire");
    assert!(found.next().is_none() && m.party("3") == leg.owner && m.get(32) == leg.qty, "{m:?}, {leg:?}");
    assert_eq!((m.get(54) == "1", m.get(31).parse::<f64>()), (leg.side == "B", leg.px.parse::<f64>()));
    n
}

/// Keys and places of the second legs.
fn check_planted(messages: &[Message], planted: &[WashTradePair]) {
    let found = oracle::wash_trade(&events(messages));
    let alert = |s: &WashTradePair| {
        at(messages, &s.legs[0]);
        ("wash_trade", serde_json::to_string(&s.key).expect("a key is JSON"), at(messages, &s.legs[1]) as u64)
    };
    assert_eq!(found, planted.iter().map(alert).collect::<Vec<_>>());
}

/// An accidental wash trade, or a planted one that is none, would make a right detector look wrong.
#[test]
fn oracle_finds_what_was_planted_and_nothing_else() {
    let plant = |washes, misses| SimConfig {
        plant: [(Scenario::WashTrade, washes)].into(),
        near_misses: [(Scenario::WashTrade, misses)].into(),
        ..config(102)
    };
    // The second is dense: some thirty messages every second, and a scene every ten.
    let dense = SimConfig { span_ns: 1_200_000_000_000, events: 30_000, ..plant(60, 40) };
    for config in [config(101), dense, SimConfig { events: 0, seed: 103, ..plant(20, 10) }] {
        let (bytes, truth) = run(&config);
        check_planted(&all_good(&bytes), &truth.planted);
        let (washes, misses) =
            (config.plant[&Scenario::WashTrade] as usize, config.near_misses[&Scenario::WashTrade] as usize);
        assert_eq!((truth.planted.len(), truth.near_misses.len()), (washes, misses));
        assert_eq!(truth.planted.iter().filter(|s| s.arm == "self_match").count(), washes / 2);
        assert!(truth.planted.iter().any(|s| s.legs[0].venue != s.legs[1].venue));
        assert!(truth.planted.iter().any(|s| s.legs[0].owner != s.legs[1].owner), "friends of one group");
    }
}

/// A near miss that is far away tests nothing: it must miss by what it says, by the least there is, and by nothing else.
#[test]
fn near_misses_are_near() {
    let (bytes, truth) = run(&config(7));
    let messages = all_good(&bytes);
    let ticks: HashMap<&str, i64> = messages
        .iter()
        .filter(|m| m.get(35) == "d")
        .map(|m| (m.get(48), m.nano(969).expect("fits")))
        .collect();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for scene in &truth.near_misses {
        let [first, second] = scene.legs.each_ref().map(|leg| &messages[at(&messages, leg)]);
        let ns = clock_ns(second.get(60)) - clock_ns(first.get(60));
        let px = |m: &Message| m.nano(31).expect("fits");
        let (px_off, qty_off) = ((px(second) - px(first)).abs(), (second.int(32) - first.int(32)).abs());
        let px_meets = |off: i64| off * 10_000 <= 5 * px(first);
        let qty_meets = |off: i64| off * 100 <= 10 * first.int(32);
        let opposite = first.get(54) != second.get(54);
        let met = [ns < 60_000_000_000, px_meets(px_off), qty_meets(qty_off), opposite];
        let misses = scene.misses.expect("a near miss says why");
        *seen.entry(misses).or_default() += 1;
        let said = ["window_ms", "px_tol_bps", "qty_tol_pct", "on one side", "somebody else"]
            .map(|word| misses.contains(word));
        assert_eq!(said[..4], met.map(|met| !met), "{scene:?}");
        // With a little more tolerance it would fire.
        assert!(ns < 61_000_000_000 && px_meets(px_off - ticks[first.get(48)]) && qty_meets(qty_off - 1));
        assert!(!said[4] || scene.legs[0].owner != scene.legs[1].owner);
    }
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [5; 5]);
    let exact = truth.near_misses.iter().filter(|s| s.legs[1].ts - s.legs[0].ts == 60_000_000_000).count();
    assert!(exact > 0, "none is exactly a window away, which is the edge that detectors get wrong");
}

/// An oracle that is wrong at an edge would bless a detector that is wrong at the same edge.
#[test]
fn edges_are_those_of_the_text() {
    const W: i64 = 60_000_000_000;
    type Exec<'a> = (i64, &'a str, &'a str, &'a str, &'a str, i64, i64);
    let check = |execs: &[Exec<'_>], expected: &[u64]| {
        let event = |(n, &(ts, venue, match_id, owner, side, px, qty)): (usize, &Exec<'_>)| {
            let (px, qty) = (px.to_string(), qty.to_string());
            let value = serde_json::json!({
                "seq": n, "ts": ts, "kind": "exec", "venue": venue, "instr": "I", "match_id": match_id,
                "owner": owner, "side": side, "px": px, "qty": qty,
            });
            Event::parse(&value.to_string())
        };
        let events: Vec<Event> = execs.iter().enumerate().map(event).collect();
        assert_eq!(oracle::wash_trade(&events).iter().map(|a| a.2).collect::<Vec<_>>(), expected);
    };
    check(&[(0, "X", "1", "A", "B", 10, 5), (0, "X", "1", "A", "S", 10, 5)], &[1]);
    check(&[(0, "X", "1", "A", "B", 10, 5), (0, "X", "1", "B", "S", 10, 5)], &[]);
    let trip = |dt, owner, side, px, qty, hit: bool| {
        let first = (0, "X", "1", "A", "B", 2000, 1000);
        check(&[first, (dt, "Y", "1", owner, side, px, qty)], if hit { &[1] } else { &[] });
    };
    trip(W - 1, "A", "S", 2001, 900, true);
    trip(W, "A", "S", 2001, 900, false);
    trip(1, "A", "S", 2002, 1000, false);
    trip(1, "A", "S", 2000, 899, false);
    trip(1, "A", "B", 2000, 1000, false);
    trip(1, "B", "S", 2000, 1000, false);
    check(
        &[
            (0, "X", "1", "A", "B", 2000, 1000),
            (1, "X", "2", "A", "S", 2001, 900),
            (2, "X", "3", "A", "S", 2001, 900),
        ],
        &[1],
    );
}

/// Damage that hurts a neighbour, or is not damage, would make the count of quarantined messages meaningless.
#[test]
fn damage_is_counted_and_hurts_nobody() {
    let noise = InjectedNoiseConfig { heartbeat_ns: 60_000_000_000, bad_per_million: 20_000 };
    let (bytes, copy) = run_to_close(&config(55), noise);
    let truth = copy.truth();
    let bad = truth.totals.bad;
    let counts = [bad.checksum, bad.body_length, bad.decimals, bad.garbage];
    assert!(counts.iter().all(|&n| n > 20), "{bad:?}");
    let (good, broken): (Vec<_>, Vec<_>) = split(&bytes).into_iter().partition(Result::is_ok);
    let good: Vec<Message> = good.into_iter().flatten().collect();
    assert_eq!(broken.len() as u64, bad.checksum + bad.body_length + bad.garbage);
    let exact = |m: &Message| m.find(31).is_none() || m.nano(31).is_some();
    let (good, too_fine): (Vec<_>, Vec<_>) = good.into_iter().partition(exact);
    assert_eq!((good.len() as u64, too_fine.len() as u64), (truth.totals.messages, bad.decimals));
    assert_eq!(too_fine.iter().filter(|m| m.get(35) == "8").count(), too_fine.len());
    check_planted(&good, &truth.planted);
    // The day itself is the same.
    let quiet = run(&config(55)).1;
    assert_eq!((quiet.planted, quiet.bbo), (truth.planted, truth.bbo));
}

/// A request that cannot be met must say so before hours of output, and never hang or panic.
#[test]
fn impossible_configs_are_refused() {
    let refuse =
        |config: SimConfig| DropCopy::new(config, InjectedNoiseConfig::default()).expect_err("refused");
    let base = SimConfig::default;
    let range = |e: Error, what: &str| matches!(e, Error::OutOfRange { name, .. } if name == what);
    assert!(range(refuse(SimConfig { span_ns: 1, ..base() }), "span_ns"));
    assert!(range(refuse(SimConfig { events: u64::MAX, ..base() }), "events"));
    assert!(range(refuse(SimConfig { start_ns: u64::MAX, ..base() }), "start_ns"));
    assert!(range(refuse(SimConfig { market: 10, ..base() }), "market"));
    let plant = [(Scenario::WashTrade, 200_000)].into();
    assert!(matches!(refuse(SimConfig { plant, ..base() }), Error::NoRoom { .. }));
    let noise = InjectedNoiseConfig { bad_per_million: 1_000_001, ..InjectedNoiseConfig::default() };
    assert!(range(DropCopy::new(base(), noise).expect_err("refused"), "bad_per_million"));
}

struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A full disk must come back as the error it is.
#[test]
fn sink_errors_come_back() {
    let mut copy = DropCopy::new(config(1), InjectedNoiseConfig::default()).expect("a good config");
    assert_eq!(copy.write_fix(&mut Full).err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    let result = copy.sim().write_truth(&mut Full);
    assert_eq!(result.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
}

/// Truth that cannot be read by line is of no use to a test in another language.
#[test]
fn truth_is_json_lines() {
    let (_, copy) = run_to_close(&config(2), InjectedNoiseConfig::default());
    let mut text = Vec::new();
    copy.sim().write_truth(&mut text).expect("a vector takes all");
    let text = String::from_utf8(text).expect("UTF-8");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let count = |rec: &str| lines.iter().filter(|l| l["rec"] == rec).count();
    assert_eq!((count("day"), count("label"), count("near_miss"), count("book")), (1, 40, 25, 36));
    let label = lines.iter().find(|l| l["rec"] == "label").expect("planted");
    assert_eq!(label["scenario"], "wash_trade");
    let scene = serde_json::to_value(&copy.truth().planted[0]).expect("a scene is JSON");
    assert_eq!(scene["key"], label["key"]);
    assert_eq!(scene["legs"].as_array().map(Vec::len), Some(2));
}
