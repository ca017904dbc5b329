//! Messages that a venue of another kind sends, or none should: each of these once ended the process, or left a book
//! that was live and not the venue's.

use super::*;

const DEEP: &str = "market_depth = 100";

/// Templates with one place in another way.
fn templates(from: &str, to: &str) -> String {
    let other = TEMPLATES.replacen(from, to, 1);
    assert_ne!(other, TEMPLATES);
    other
}

/// An entry for an empty book that names no instrument empties all, also where there is none yet.
#[test]
fn an_empty_book_without_an_instrument_is_all_of_them() {
    let optional = r#"<uInt64 name="Id" presence="optional"/><uInt32 name="Action"/>"#;
    let optional = templates(r#"<uInt64 name="Id"/><uInt32 name="Action"/>"#, optional);
    let mut rig = Rig::with(&format!("{DEEP}\nrecovery = {{ first = 1 }}"), &optional);
    let nullable = |id: u64| id + 1;
    let all = (0, 0, 3, 0, 1, 1);
    rig.send(0, INC, &packet(1, 10, false, &[depth(1, 9, &[all])]));
    assert_eq!(rig.said(), "whole 9");
    let bids = [(nullable(50), 0, 0, 5, 1, 1), (nullable(51), 0, 0, 6, 1, 1)];
    rig.send(0, INC, &packet(2, 20, false, &[depth(2, 9, &bids)]));
    assert_eq!((rig.bids("50"), rig.bids("51")), (vec![5], vec![6]));
    rig.send(0, INC, &packet(3, 30, false, &[depth(3, 9, &[all, bids[0]])]));
    assert_eq!((rig.bids("50"), rig.bids("51")), (vec![5], vec![]));
}

/// Without a known depth a side may grow for ever.
#[test]
fn levels_are_counted_up_to_their_bound() {
    let mut rig = Rig::with_table_text(
        "recovery = { first = 1 }\nchannel = [{ name = \"inc\", role = \"incremental\", a = [\"224.0.0.1:1\"] }, { name = \"snap\", role = \"snapshot\", a = [\"224.0.0.1:2\"] }]",
    );
    for n in 1..=66 {
        let entries = vec![(50, 0, 0, n as i64, 1, 1); 1000];
        rig.now += 1000;
        let payload = packet(n, n * 10, false, &[depth(n, 9, &entries)]);
        let to = SocketAddr::from(([224, 0, 0, 1], INC));
        let packet = Packet { to, ts_recv: UnixNanos(rig.now), position: n * 100_000, payload: &payload };
        rig.handler.packet(packet, &mut |_: &EventContext<'_>, _: MarketEvent<'_>| {});
    }
    assert!(!rig.handler.is_live(InstrumentId(0)), "a side of 65,536 levels is none");
    assert_eq!(rig.handler.stats().products.misplaced, 1);
}

/// A beacon that does not say which message was the last says nothing.
#[test]
fn a_beacon_without_its_number_is_refused() {
    let optional =
        r#"name="Beacon" id="4"><uInt32 name="Product"/><uInt32 name="Last" presence="optional"/>"#;
    let optional =
        templates(r#"name="Beacon" id="4"><uInt32 name="Product"/><uInt32 name="Last"/>"#, optional);
    let mut rig = Rig::with(DEEP, &optional);
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    rig.said();
    rig.send(0, INC, &packet(2, 20, false, &[message(4, &[9, 0])]));
    assert_eq!(rig.said(), "refused missing");
    rig.send(0, INC, &packet(3, 30, false, &[depth(2, 9, &[(50, 0, 0, 3, 1, 1)])]));
    assert_eq!((rig.said(), rig.bids("50")), (String::new(), vec![3, 1]));
}

/// Numbers of all sizes come from outside.
#[test]
fn counters_do_not_overflow() {
    let wide = r#"id="4"><uInt32 name="Product"/><uInt64 name="Last"/>"#;
    let wide = templates(r#"id="4"><uInt32 name="Product"/><uInt32 name="Last"/>"#, wide);
    let mut rig = Rig::with(DEEP, &wide);
    for (n, product, last) in [(1, 1, 1), (2, 2, 1), (3, 1, u64::MAX - 5), (4, 2, u64::MAX - 5)] {
        rig.send(0, INC, &packet(n, n * 10, false, &[message(4, &[product, last])]));
    }
    assert_eq!(rig.handler.stats().products.missing, u64::MAX);
    // The last number that a packet can have is lost, once more and once more.
    let mut stream =
        super::super::arbitration::ArbitratedStream::new(rig.handler.config().arbitration_window);
    stream.skip_packet(u64::MAX);
    stream.skip_packet(0);
    assert_eq!(stream.expected_number, Some(1));
    // And a time is that of no year that we know.
    use super::super::values::time_of;
    assert_eq!(time_of(22_620_411_235_959_999, super::super::config::TimeUnit::Digits), None);
}

/// A beacon before the first message does not say that something is missing.
#[test]
fn a_beacon_before_the_first_message_leaves_it_the_first() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    rig.send(0, INC, &packet(1, 5, false, &[message(4, &[9, 0])]));
    rig.send(0, INC, &packet(2, 10, false, &[depth(1, 9, &[(50, 0, 0, 1, 1, 1)])]));
    assert_eq!((rig.said(), rig.bids("50")), ("whole 9, recovered 50".to_owned(), vec![1]));
}

/// An instrument that is gone is not waited for, also after a gap.
#[test]
fn what_is_gone_is_not_waited_for() {
    let gone = r#"id="6"><uInt32 name="Product"/><uInt64 name="Id"/><uInt32 name="Gone"/>"#;
    let gone = templates(r#"id="6"><uInt32 name="Product"/><uInt64 name="Id"/>"#, gone);
    let tail = "[[message]]\ntemplates = [\"Instrument\"]\nkind = \"instrument\"\nfields = { product = \"Product\", instrument = \"Id\", deleted = \"Gone\" }";
    let table = TABLE.replace("templates = [\"Instrument\"]", "templates = [\"Other\"]");
    let text: ChannelsConfig = toml::from_str(&format!("{DEEP}\n{table}\n{tail}")).unwrap();
    let files = BTreeMap::from([("t.xml".to_owned(), gone.as_bytes().to_vec())]);
    let config =
        HandlerConfig::new(&text, OverrideSummary { messages: 0, has_own_framing: true }, &files).unwrap();
    let mut rig = Rig { handler: Engine::new(Arc::new(config)), ..Rig::with_table_text("") };
    let define = |n: u64, id: u64, gone: u64| packet(n, n, false, &[message(6, &[9, id, gone])]);
    rig.send(0, REF, &define(1, 50, 0));
    rig.send(0, REF, &define(2, 51, 0));
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    rig.send(0, SNAP, &packet(2, 20, false, &[snapshot(9, 1, 51, &Book::default())]));
    assert_eq!(rig.said(), "recovered 50, recovered 51, whole 9");
    // 51 expires, then a gap.
    rig.send(0, REF, &define(3, 51, 1));
    [3, 4, 5, 6, 7].iter().for_each(|n| rig.bid(*n));
    assert_eq!(rig.said(), "lost 2-2, missing 9 2-2, stale 50, stale 51");
    rig.send(0, SNAP, &snap(3, 7));
    assert_eq!(rig.said(), "recovered 50, whole 9");
}

const RESET: &str = "@@[[message]]\ntemplates = [\"Reset\"]\nkind = \"reset\"\nfields = { product = \"Product\", sequence = \"Seq\" }\n";

fn with_reset() -> Rig {
    let reset = r#"<template name="Reset" id="8"><uInt32 name="Seq"/><uInt32 name="Product"/></template></templates>"#;
    Rig::with(&format!("{DEEP}\n{RESET}"), &templates("</templates>", reset))
}

/// A message that empties all books keeps its place among the others.
#[test]
fn a_reset_waits_for_the_snapshot_that_it_is_behind() {
    let mut rig = with_reset();
    rig.bid(5);
    rig.send(0, INC, &packet(6, 60, false, &[message(8, &[6, 9])]));
    rig.bid(7);
    rig.send(0, SNAP, &snap(1, 4));
    assert_eq!(rig.bids("50"), [7], "6 emptied the books");
    // An unknown instrument, too: only a snapshot with the reset in it is good.
    let of_51 = |n: u64, last: u64| packet(n, n * 10, false, &[snapshot(9, last, 51, &bids_up_to(2))]);
    rig.send(0, SNAP, &of_51(2, 5));
    assert_eq!(rig.book("51"), None);
    rig.send(0, SNAP, &of_51(3, 6));
    assert_eq!(rig.bids("51"), [2, 1]);
}

#[test]
fn a_reset_that_a_snapshot_has_in_it_is_not_used_again() {
    let mut rig = with_reset();
    rig.bid(1);
    // This one has message 2, the reset, and 3, a bid, in it.
    rig.send(0, SNAP, &packet(1, 10, false, &[snapshot(9, 3, 50, &[vec![(3, 1)], vec![]])]));
    assert_eq!(rig.bids("50"), [3]);
    rig.send(0, INC, &packet(2, 20, false, &[message(8, &[2, 9])]));
    rig.bid(3);
    assert_eq!(rig.bids("50"), [3]);
}

/// A level at a place that its side does not have says that the book is wrong: the next snapshot mends it.
#[test]
fn a_book_with_a_level_that_cannot_be_wants_a_snapshot() {
    let mut rig = Rig::new("");
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    rig.send(0, SNAP, &snap(2, 1));
    assert_eq!(rig.said(), "recovered 50, whole 9");
    let entry = |n: u64, e: E| packet(n, n * 10, false, &[depth(n, 9, &[e])]);
    rig.send(0, INC, &entry(2, (50, 2, 0, 0, 1, 4)));
    assert_eq!((rig.said(), rig.seen.faults), ("stale 50".to_owned(), 0));
    rig.bid(3);
    rig.send(0, SNAP, &snap(3, 1));
    assert_eq!(rig.said(), "", "from before that level");
    rig.send(0, SNAP, &snap(4, 2));
    rig.send(0, SNAP, &snap(5, 3));
    assert_eq!((rig.said(), rig.bids("50")), ("recovered 50, whole 9".to_owned(), vec![3, 2, 1]));
    // The maker of the books may find that one is wrong, too.
    assert!(rig.handler.want_snapshot(InstrumentId(0)) && !rig.handler.is_live(InstrumentId(0)));
    rig.send(0, SNAP, &snap(6, 2));
    assert!(!rig.handler.is_live(InstrumentId(0)));
    rig.send(0, SNAP, &snap(7, 3));
    assert!(rig.handler.is_live(InstrumentId(0)));
    // A snapshot that cannot be is none.
    rig.handler.want_snapshot(InstrumentId(0));
    rig.said();
    let mut bad = message(3, &[9, 3, 50, 1, 0]);
    put_signed(&mut bad, 7);
    [1, 5].iter().for_each(|n| put(&mut bad, *n));
    rig.send(0, SNAP, &packet(8, 80, false, &[bad]));
    assert_eq!((rig.said(), rig.handler.is_live(InstrumentId(0))), ("stale 50".to_owned(), false));
    rig.send(0, SNAP, &snap(9, 3));
    assert_eq!(rig.bids("50"), [3, 2, 1]);
}

/// A level of nothing is none: books take it out, and so must be counted.
#[test]
fn a_quantity_of_nought_takes_a_level_out() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    let entry = |n: u64, e: E| packet(n, n * 10, false, &[depth(n, 9, &[e])]);
    (1..4).for_each(|n| rig.bid(n));
    rig.send(0, INC, &entry(4, (50, 1, 0, 2, 0, 2)));
    assert_eq!(rig.bids("50"), [3, 1]);
    rig.send(0, INC, &entry(5, (50, 5, 0, 1, 0, 2)));
    rig.send(0, INC, &entry(6, (50, 0, 0, 2, 7, 2)));
    assert_eq!((rig.bids("50"), rig.seen.faults), (vec![3, 2], 0));
    assert_eq!(rig.said(), "whole 9, recovered 50");
    rig.send(0, INC, &entry(7, (50, 0, 0, 9, 0, 1)));
    assert_eq!(rig.said(), "stale 50");
}

/// Two pairs of channels whose numbers have nothing to do with each other.
const TWO: &str = r#"market_depth = 100
key = "channel"
channel = [{ name = "i1", role = "incremental", pair = "x", a = ["224.0.0.1:1"] }, { name = "s1", role = "snapshot", pair = "x", a = ["224.0.0.1:2"] }, { name = "i2", role = "incremental", pair = "y", a = ["224.0.0.1:11"] }, { name = "s2", role = "snapshot", pair = "y", a = ["224.0.0.1:12"] }, { name = "ref", role = "reference", pair = "x", a = ["224.0.0.1:3"] }]
"#;

#[test]
fn two_pairs_may_use_one_id() {
    let mut rig = Rig::with(TWO, TEMPLATES);
    rig.send(0, REF, &packet(1, 1, false, &[message(6, &[9, 50])]));
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    assert_eq!(rig.said(), "recovered 50, whole i1");
    rig.send(0, 11, &packet(1, 10, false, &[depth(1000, 9, &[(50, 0, 0, 777, 1, 1)])]));
    assert_eq!((rig.said(), rig.handler.tables().instruments.len()), (String::new(), 2));
    assert_eq!(rig.bids("50"), [1], "the first channel's book");
    rig.send(0, 12, &packet(1, 10, false, &[snapshot(9, 999, 50, &bids_up_to(2))]));
    assert_eq!((rig.said(), rig.seen.books[&InstrumentId(1)][0].len()), ("recovered 50".to_owned(), 3));
}

/// Reference data must name their pair: they define nothing in one without messages.
#[test]
fn reference_data_of_no_pair_are_refused() {
    let without = TWO.replace(r#"role = "reference", pair = "x""#, r#"role = "reference""#);
    let wrong = config_of(&without, "", TEMPLATES).unwrap_err();
    assert!(wrong.reason.contains("no incremental channel"), "{wrong:?}");
    assert_eq!(wrong.key_path, ["channel", "4", "pair"]);
}

/// Dictionaries that are never empty are changed by a copy that is bad at its end; without numbers copies are used twice.
#[test]
fn two_lines_need_packets_that_can_be_told_apart() {
    let never = format!("{DEEP}\nreset = \"never\"\nframing = {{ number_bytes = 4 }}");
    let wrong = config_of(&never, "", TEMPLATES).unwrap_err();
    assert_eq!((wrong.key_path.join("."), wrong.reason.contains("reset")), ("channel.0.b".to_owned(), true));
    let plain = format!("{DEEP}\nframing = {{ length = true }}");
    assert!(config_of(&plain, "", TEMPLATES).is_ok(), "messages have numbers");
    let table = TABLE.replacen("sequence = \"Seq\", instrument", "instrument", 1);
    let lines = "channel = [{ name = \"inc\", role = \"incremental\", a = [\"224.0.0.1:1\"], b = [\"224.0.0.2:1\"] }]";
    let wrong = config_from(&table, &format!("{plain}\n{lines}"), "", TEMPLATES).unwrap_err();
    assert_eq!((wrong.key_path.join("."), wrong.reason.contains("Depth")), ("channel.0.b".to_owned(), true));
}

/// Where definitions of instruments give the depth, a book waits for its own definition.
#[test]
fn a_book_waits_for_the_definition_that_tells_its_depth() {
    let deep = r#"id="6"><uInt32 name="Product"/><uInt64 name="Id"/><sequence name="Feeds"><uInt32 name="Depth"/></sequence>"#;
    let deep = templates(r#"id="6"><uInt32 name="Product"/><uInt64 name="Id"/>"#, deep);
    let rig = |more: &str| {
        let table = TABLE
            .replace(", market_depth = \"Depth\"", "")
            .replace("instrument = \"Id\" }", "instrument = \"Id\", market_depth = \"Feeds.Depth\" }");
        let text: ChannelsConfig = toml::from_str(&format!("{more}\n{table}")).unwrap();
        let files = BTreeMap::from([("t.xml".to_owned(), deep.as_bytes().to_vec())]);
        let config = HandlerConfig::new(
            &text,
            OverrideSummary { messages: usize::MAX, has_own_framing: true },
            &files,
        )
        .unwrap();
        Rig { handler: Engine::new(Arc::new(config)), ..Rig::with_table_text("") }
    };
    let define = |n: u64| packet(n, n, false, &[message(6, &[9, 50, 2, 1, 2])]);
    let mut joins = rig("");
    joins.bid(1);
    joins.send(0, SNAP, &snap(1, 1));
    assert_eq!(joins.said(), "");
    joins.send(0, REF, &define(1));
    joins.send(0, SNAP, &snap(2, 1));
    (2..4).for_each(|n| joins.bid(n));
    assert_eq!((joins.said(), joins.bids("50")), ("recovered 50, whole 9".to_owned(), vec![3, 2]));
    // Books that begin empty need no snapshot, but what comes before the definition waits for it.
    let mut begins = rig("recovery = { first = 1 }");
    (1..4).for_each(|n| begins.bid(n));
    assert_eq!((begins.said(), begins.bids("50").len()), ("whole 9".to_owned(), 0));
    begins.send(0, REF, &define(1));
    begins.bid(4);
    assert_eq!((begins.said(), begins.bids("50")), ("recovered 50, whole 9".to_owned(), vec![4, 3]));
}

/// A snapshot gives the state of its product to a reader that has just joined.
#[test]
fn a_snapshot_tells_the_state_of_its_product() {
    let state = r#"id="3"><uInt32 name="Product"/><uInt32 name="Last"/><uInt32 name="Code"/>"#;
    let state = templates(r#"id="3"><uInt32 name="Product"/><uInt32 name="Last"/>"#, state);
    let table =
        TABLE.replace("last = \"Last\", instrument", "last = \"Last\", product_state = \"Code\", instrument");
    let text: ChannelsConfig = toml::from_str(&format!("{DEEP}\n{table}")).unwrap();
    let files = BTreeMap::from([("t.xml".to_owned(), state.as_bytes().to_vec())]);
    let config =
        HandlerConfig::new(&text, OverrideSummary { messages: usize::MAX, has_own_framing: true }, &files)
            .unwrap();
    let mut rig = Rig { handler: Engine::new(Arc::new(config)), ..Rig::with_table_text("") };
    let snap = |n: u64, id: u64, code: u64| packet(n, n, false, &[message(3, &[9, 2, code, id, 0])]);
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 50, 3));
    rig.send(0, SNAP, &snap(2, 51, 3));
    assert_eq!(rig.said(), "state Number(3) Some(Open), recovered 50, recovered 51");
}
