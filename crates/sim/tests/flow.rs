//! The bytes of a flow against its truth, read back by a reader that shares nothing with the writer.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::io;
use unitape_model::Side;

use common::{Message, all_good, clock_ns, split};
use unitape_sim::oracle::{self, Exec, Finding, Params};
use unitape_sim::{Arm, Error, Flow, FlowConfig, Miss, Noise, Scene, Truth, VENUES, isin_check_digit};

fn run(config: &FlowConfig) -> (Vec<u8>, Truth) {
    let mut bytes = Vec::new();
    let truth =
        Flow::new(config.clone()).expect("a good config").write_fix(&mut bytes).expect("a vector takes all");
    (bytes, truth)
}

fn config(seed: u64) -> FlowConfig {
    FlowConfig { seed, messages: 20_000, wash_trades: 40, near_misses: 25, ..FlowConfig::default() }
}

/// A hidden source of chance (a map's order, a clock) would make the demo find other trades than were planted.
#[test]
fn seed_decides_the_bytes() {
    let (bytes, truth) = run(&config(5));
    assert!((bytes.clone(), truth.clone()) == run(&config(5)), "one seed, two flows");
    assert!(bytes != run(&config(6)).0, "two seeds, one flow");
    assert_eq!(truth.flow.bytes, bytes.len() as u64);
}

/// A step that stopped inside a message would tear it for a live reader.
#[test]
fn steps_are_whole_messages_and_the_same_bytes() {
    let mut flow = Flow::new(config(5)).expect("a good config");
    let (mut all, mut part) = (Vec::new(), Vec::new());
    loop {
        part.clear();
        let on = flow.step(&mut part);
        assert!(part.len() < 1 << 20, "a step of {} bytes", part.len());
        all_good(&part);
        all.extend_from_slice(&part);
        if !on {
            break;
        }
    }
    assert!((all, flow.truth()) == run(&config(5)));
}

/// A number left out looks like a lost message to every session layer; a time that goes back breaks every window.
#[test]
fn sessions_count_and_time_does_not_go_back() {
    let noise = Noise { heartbeat_ns: 30_000_000_000, bad_per_million: 0 };
    let (bytes, truth) = run(&FlowConfig { noise, ..config(9) });
    let messages = all_good(&bytes);
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

    let mut by_type: BTreeMap<String, u64> = BTreeMap::new();
    messages.iter().for_each(|m| *by_type.entry(m.get(35).to_owned()).or_default() += 1);
    assert_eq!(by_type, truth.flow.by_type);
    assert!(by_type["0"] > 100);
    let total = messages.len() as u64;
    assert!(total == truth.flow.messages && (20_000..20_200).contains(&total), "{total} messages");
    let report = |kind: &str| messages.iter().filter(|m| m.find(150) == Some(kind)).count() as u64;
    let kinds = [
        ("order_new", report("0")),
        ("order_amend", report("5")),
        ("order_cancel", report("4")),
        ("exec", report("F")),
        ("trade", by_type["X"]),
        ("bbo", by_type["W"]),
    ];
    assert_eq!(truth.flow.by_kind, kinds.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect());
    assert_eq!(truth.flow.no_event, ["0", "D", "F", "G"].iter().map(|t| by_type[*t]).sum::<u64>());
    assert!(kinds.iter().all(|(_, n)| *n > 500), "a thin flow: {kinds:?}");

    let orders = messages.iter().filter(|m| m.get(35) == "8").count();
    let mean = bytes.len() / messages.len();
    assert!(orders > 8_000 && (200..350).contains(&mean), "{orders} reports, {mean} bytes a message");
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
    let messages = all_good(&run(&config(21)).0);
    for m in messages.into_iter().filter(|m| m.get(35) == "8") {
        let id = m.get(37).to_owned();
        if m.get(150) == "0" {
            let client_id = m.get(11).to_owned();
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
    for (id, legs) in &matches {
        let [taker, maker] = &legs[..] else { panic!("{id} has {} legs", legs.len()) };
        for tag in [31, 32, 48, 207, 60, 30] {
            assert_eq!(taker.get(tag), maker.get(tag), "{id}");
        }
        assert_eq!((taker.get(851), maker.get(851)), ("2", "1"));
        assert_ne!(taker.get(54), maker.get(54));
    }
    assert!(matches.len() > 500);
}

/// A published best that the reports do not support would make every book built from them look wrong.
#[test]
fn best_is_what_the_reports_say() {
    type Key = (String, String);
    let (bytes, truth) = run(&config(33));
    let mut books: HashMap<Key, HashMap<String, (String, i64, i64)>> = HashMap::new();
    let mut last: HashMap<Key, Vec<(String, i64, i64)>> = HashMap::new();
    for m in all_good(&bytes) {
        let Some(venue) = m.find(207) else { continue };
        let key: Key = (venue.to_owned(), m.get(48).to_owned());
        match m.get(35) {
            "8" => {
                let book = books.entry(key).or_default();
                if m.int(151) == 0 || m.get(59) == "3" {
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
                    let px = if code == "1" { px.max() } else { px.min() }.expect("a side is never empty");
                    (px, book.values().filter(|o| o.0 == code && o.1 == px).map(|o| o.2).sum::<i64>())
                };
                let expected: Vec<_> =
                    ["1", "2"].iter().map(|s| (s.to_string(), side(s).0, side(s).1)).collect();
                let values = |tag: u32| m.0.iter().filter(move |(t, _)| *t == tag).map(|(_, v)| v.clone());
                let got: Vec<_> = values(269)
                    .zip(values(270))
                    .zip(values(271))
                    .map(|((code, px), qty)| {
                        let px = Message(vec![(270, px)]).nano(270).expect("fits");
                        (
                            (code.parse::<u8>().expect("0 or 1") + 1).to_string(),
                            px,
                            qty.parse().expect("shares"),
                        )
                    })
                    .collect();
                assert_eq!(got, expected, "{m:?}");
                assert!(got[0].1 < got[1].1, "crossed: {m:?}");
                assert_ne!(last.get(&key), Some(&got), "published without a change");
                last.insert(key, got);
            }
            _ => {}
        }
    }
    assert_eq!(truth.bbo.len(), VENUES.len() * 12);
    for bbo in &truth.bbo {
        let nano = |text: &Option<String>| {
            Message(vec![(1, text.clone().expect("both sides"))]).nano(1).expect("fits")
        };
        let qty = |text: &Option<String>| text.as_ref().expect("both sides").parse::<i64>().expect("shares");
        let expected = [
            ("1".to_owned(), nano(&bbo.bid), qty(&bbo.bid_qty)),
            ("2".to_owned(), nano(&bbo.ask), qty(&bbo.ask_qty)),
        ];
        assert_eq!(last[&(bbo.venue.to_owned(), bbo.instr.clone())], expected);
    }
}

fn execs(messages: &[Message]) -> (Vec<Exec>, Vec<String>) {
    let trades: Vec<&Message> = messages.iter().filter(|m| m.find(150) == Some("F")).collect();
    let exec = |m: &&Message| Exec {
        ts: clock_ns(m.get(60)),
        venue: m.get(207).to_owned(),
        instr: m.get(48).to_owned(),
        match_id: m.get(880).to_owned(),
        owner: m.party("3").to_owned(),
        side: if m.get(54) == "1" { Side::Buy } else { Side::Sell },
        px: m.nano(31).expect("fits"),
        qty: m.int(32),
    };
    (trades.iter().map(exec).collect(), trades.iter().map(|m| m.get(17).to_owned()).collect())
}

fn labels(scenes: &[Scene]) -> Vec<(Arm, [String; 2])> {
    let label = |s: &Scene| (s.arm, [s.legs[0].exec_id.clone(), s.legs[1].exec_id.clone()]);
    scenes.iter().map(label).collect()
}

/// An accidental wash trade, or a planted one that is none, would make a right detector look wrong.
#[test]
fn oracle_finds_what_was_planted_and_nothing_else() {
    // The second is dense: some 60 messages and a scene every second, so that owners are short and scenes overlap.
    let packed = FlowConfig { wash_trades: 400, near_misses: 200, ..config(102) };
    let dense = FlowConfig { span_ns: 600_000_000_000, messages: 40_000, ..packed };
    for config in [config(101), dense, FlowConfig { messages: 0, ..config(103) }] {
        let (bytes, truth) = run(&config);
        let (execs, ids) = execs(&all_good(&bytes));
        let name = |f: Finding| (f.arm, f.legs.map(|n| ids[n].clone()));
        let found: Vec<_> = oracle::wash_trades(&execs, &Params::default()).into_iter().map(name).collect();
        assert_eq!(found, labels(&truth.planted), "seed {}", config.seed);
        let (washes, misses) = (config.wash_trades, config.near_misses);
        assert_eq!((truth.planted.len(), truth.near_misses.len()), (washes, misses));
        assert_eq!(truth.planted.iter().filter(|s| s.arm == Arm::SelfMatch).count(), washes / 2);
        assert!(truth.planted.iter().any(|s| s.legs[0].venue != s.legs[1].venue));
    }
}

/// A near miss that is far away tests nothing: a little more tolerance must catch it, and only what it is labelled for.
#[test]
fn near_misses_are_near() {
    let (bytes, truth) = run(&config(7));
    let (execs, ids) = execs(&all_good(&bytes));
    let strict = Params::default();
    let caught = |params: &Params, execs: &[Exec], scene: &Scene| {
        let at = |n: usize| ids.iter().position(|id| *id == scene.legs[n].exec_id).expect("on the wire");
        let pair = [execs[at(0)].clone(), execs[at(1)].clone()];
        !oracle::wash_trades(&pair, params).is_empty()
    };
    let mut seen: BTreeMap<Miss, u32> = BTreeMap::new();
    for scene in &truth.near_misses {
        let miss = scene.miss.expect("a near miss says why");
        *seen.entry(miss).or_default() += 1;
        assert!(!caught(&strict, &execs, scene));
        let mut changed = execs.clone();
        let mut params = strict;
        match miss {
            Miss::Window => params.window_ns += 5_100_000_000,
            Miss::Price => params.px_tol_bps += 2,
            Miss::Quantity => params.qty_tol_pct += 1,
            Miss::Side => changed.iter_mut().for_each(|e| {
                let second = ids.iter().position(|id| *id == scene.legs[1].exec_id).map(|n| &execs[n]);
                if second == Some(e) {
                    e.side = e.side.opposite();
                }
            }),
            Miss::Owner => changed.iter_mut().for_each(|e| {
                if e.owner == scene.legs[1].owner {
                    e.owner.clone_from(&scene.legs[0].owner);
                }
            }),
        }
        assert!(caught(&params, &changed, scene), "{scene:?}");
    }
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [5; 5]);
    let exact = truth.near_misses.iter().filter(|s| s.legs[1].ts - s.legs[0].ts == strict.window_ns).count();
    assert!(exact > 0, "none is exactly a window away, which is the edge that detectors get wrong");
}

/// Damage that hurts a neighbour, or is not damage, would make the count of quarantined messages meaningless.
#[test]
fn damage_is_counted_and_hurts_nobody() {
    let noise = Noise { heartbeat_ns: 60_000_000_000, bad_per_million: 20_000 };
    let (bytes, truth) = run(&FlowConfig { noise, ..config(55) });
    let bad = truth.flow.bad;
    let counts = [bad.checksum, bad.body_length, bad.decimals, bad.garbage];
    assert!(counts.iter().all(|&n| n > 20), "{bad:?}");
    let (good, broken): (Vec<_>, Vec<_>) = split(&bytes).into_iter().partition(Result::is_ok);
    let good: Vec<Message> = good.into_iter().flatten().collect();
    assert_eq!(broken.len() as u64, bad.checksum + bad.body_length + bad.garbage);
    let exact = |m: &Message| m.find(31).is_none() || m.nano(31).is_some();
    let (good, too_fine): (Vec<_>, Vec<_>) = good.into_iter().partition(exact);
    assert_eq!((good.len() as u64, too_fine.len() as u64), (truth.flow.messages, bad.decimals));
    assert_eq!(too_fine.iter().filter(|m| m.get(35) == "8").count(), too_fine.len());

    let (execs, ids) = execs(&good);
    let name = |f: Finding| (f.arm, f.legs.map(|n| ids[n].clone()));
    let found: Vec<_> = oracle::wash_trades(&execs, &Params::default()).into_iter().map(name).collect();
    assert_eq!(found, labels(&truth.planted));
}

/// A request that cannot be met must say so before hours of output, and never hang or panic.
#[test]
fn impossible_configs_are_refused() {
    let refuse = |config: FlowConfig| Flow::new(config).expect_err("refused");
    let base = FlowConfig::default;
    assert!(matches!(refuse(FlowConfig { span_ns: 1, ..base() }), Error::SpanTooShort { span_ns: 1, .. }));
    assert!(matches!(refuse(FlowConfig { messages: u64::MAX, ..base() }), Error::TooManyMessages { .. }));
    assert!(matches!(refuse(FlowConfig { wash_trades: 200_000, ..base() }), Error::TooManyScenes { .. }));
    assert!(matches!(refuse(FlowConfig { start_ns: u64::MAX, ..base() }), Error::OutOfTime { .. }));
    Flow::new(FlowConfig { wash_trades: 8_000, near_misses: 4_000, ..base() })
        .expect("3,000 scenes an hour fit");
    let noise = Noise { bad_per_million: 1_000_001, ..Noise::default() };
    assert!(matches!(refuse(FlowConfig { noise, ..base() }), Error::BadShare { .. }));
}

/// A full disk must come back as the error it is.
#[test]
fn sink_errors_come_back() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut flow = Flow::new(config(1)).expect("a good config");
    assert_eq!(flow.write_fix(&mut Full).err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    assert_eq!(
        run(&config(1)).1.write_jsonl(&mut Full).err().map(|e| e.kind()),
        Some(io::ErrorKind::StorageFull)
    );
}

/// Truth that cannot be read by line is of no use to a test in another language.
#[test]
fn truth_is_json_lines() {
    let (_, truth) = run(&config(2));
    let mut text = Vec::new();
    truth.write_jsonl(&mut text).expect("a vector takes all");
    let text = String::from_utf8(text).expect("UTF-8");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let count = |rec: &str| lines.iter().filter(|l| l["rec"] == rec).count();
    assert_eq!((count("flow"), count("planted"), count("near_miss"), count("bbo")), (1, 40, 25, 36));
    let planted = lines.iter().find(|l| l["rec"] == "planted").expect("planted");
    assert_eq!(
        (&planted["scenario"], planted["legs"].as_array().map(Vec::len)),
        (&"wash_trade".into(), Some(2))
    );
    assert_eq!(planted["key"]["group"], planted["legs"][1]["owner"]);
}
