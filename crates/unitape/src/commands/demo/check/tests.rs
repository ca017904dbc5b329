use super::super::feeds::count_order_flow;
use super::*;
use serde_json::json;
use unitape_model::{Position, UnixNanos};
use unitape_sim::day::{DropCopyTotals, WashTradeLeg};

fn scene(n: u64, arm: &'static str, misses: Option<&'static str>) -> WashTradePair {
    let leg = |id: u64, side| WashTradeLeg {
        ts: 1000 + n,
        venue: "XLON",
        oid: format!("O{n}{id}"),
        match_id: format!("M{n}"),
        owner: format!("WSH{n}"),
        side,
        px: "2500.5".to_owned(),
        qty: "100".to_owned(),
    };
    WashTradePair {
        scenario: "wash_trade",
        arm,
        misses,
        ts: 1000 + n,
        key: AlertLabelKey(vec![("group", format!("WSH{n}")), ("instr", "GB00B03MLX29".to_owned())]),
        legs: [leg(1, "B"), leg(2, "S")],
    }
}

fn found(scene: &WashTradePair) -> ExplainedAlert {
    ExplainedAlert {
        scenario: scene.scenario.to_owned(),
        arm: scene.arm.to_owned(),
        key: values(&scene.key).cloned().collect(),
        ts: scene.ts as i64,
        positions: vec![Position(64), Position(192)],
        legs: legs(scene).to_vec(),
    }
}

/// The truth of a drop copy of 80 messages, of which 30 are no events.
fn truth() -> DropCopyTruth {
    let by_kind =
        [("order_new", 20), ("exec", 20), ("trade", 10)].map(|(kind, n)| (kind.to_owned(), n)).into();
    let totals = DropCopyTotals { messages: 80, by_kind, no_event: 30, ..DropCopyTotals::default() };
    DropCopyTruth { totals, planted: vec![], near_misses: vec![], bbo: vec![] }
}

/// A self-check that holds whatever happens is worse than none: each kind of difference must fail it.
#[test]
fn a_missing_and_an_extra_alert_fail() {
    let planted = [scene(1, "self_match", None), scene(2, "round_trip", None)];
    let all: Vec<ExplainedAlert> = planted.iter().map(found).collect();
    assert_eq!(scenes(&planted, &all), (vec![Some(0), Some(1)], vec![]));

    let (matched, differs) = scenes(&planted, &all[1..]);
    assert_eq!(matched, [None, Some(0)]);
    assert!(differs.len() == 1 && differs[0].starts_with("no alert for self_match of WSH1"), "{differs:?}");

    let extra = [&all[..], &[found(&scene(3, "self_match", None))]].concat();
    let (matched, differs) = scenes(&planted, &extra);
    assert_eq!(matched, [Some(0), Some(1)]);
    assert!(differs.len() == 1 && differs[0].contains("was not planted"), "{differs:?}");

    // The same alert twice is one too many.
    let twice = [&all[..], &all[..1]].concat();
    assert_eq!(scenes(&planted, &twice).1.len(), 1);
}

/// An alert about the right owner with the wrong evidence accuses somebody of something else.
#[test]
fn every_part_of_an_alert_counts() {
    let planted = [scene(1, "round_trip", None)];
    let right = found(&planted[0]);
    let spoil: [fn(&mut ExplainedAlert); 6] = [
        |f| f.scenario = "spoofing".to_owned(),
        |f| f.arm = "self_match".to_owned(),
        |f| f.key[0] = "WSH9".to_owned(),
        |f| f.key[1] = "GB0002634946".to_owned(),
        |f| f.ts += 1,
        |f| f.legs.swap(0, 1),
    ];
    for spoil in spoil {
        let mut wrong = right.clone();
        spoil(&mut wrong);
        assert_eq!(scenes(&planted, &[wrong.clone()]).1.len(), 2, "{wrong:?}");
    }
}

#[test]
fn a_near_miss_in_evidence_fails() {
    let near = [scene(1, "round_trip", Some("one tick too far"))];
    assert_eq!(near_miss_alerts(&near, &[found(&scene(2, "round_trip", None))]), [""; 0]);
    let mut half = found(&scene(2, "round_trip", None));
    half.legs[1] = legs(&near[0])[1].clone();
    assert_eq!(near_miss_alerts(&near, &[half]).len(), 1);
}

#[test]
fn live_and_replay_must_agree_to_the_letter() {
    let alert = |seq| Alert {
        scenario: "wash_trade".into(),
        ts: UnixNanos(5),
        trigger_seq: seq,
        position: None,
        key: vec![("group".into(), "WSH1".to_owned())],
        detail: json!({"arm": "self_match", "positions": [64, 192]}),
    };
    assert_eq!(alerts("live", &[alert(1), alert(2)], &[alert(1), alert(2)]), [""; 0]);
    assert_eq!(alerts("live", &[alert(1)], &[alert(1), alert(2)]).len(), 1);
    assert_eq!(alerts("live", &[alert(1), alert(3)], &[alert(1), alert(2)]).len(), 1);
}

#[test]
fn another_last_price_fails() {
    let must = LastBbo {
        ts: 7,
        venue: "XLON",
        instr: "GB00B03MLX29".to_owned(),
        bid: Some("10".to_owned()),
        bid_qty: Some("5".to_owned()),
        ask: None,
        ask_qty: None,
    };
    let course = || PriceHistory {
        venue: "XLON".to_owned(),
        instr: "GB00B03MLX29".to_owned(),
        ts: 7,
        last: vec![Some("10".to_owned()), Some("5".to_owned()), None, None],
        ..PriceHistory::default()
    };
    assert_eq!(last_bbo(std::slice::from_ref(&must), &[course()]), [""; 0]);
    assert_eq!(last_bbo(std::slice::from_ref(&must), &[]).len(), 2);
    assert_eq!(last_bbo(&[], &[course()]).len(), 1);
    let later = PriceHistory { ts: 8, ..course() };
    let dearer =
        PriceHistory { last: vec![Some("11".to_owned()), Some("5".to_owned()), None, None], ..course() };
    for wrong in [later, dearer] {
        assert_eq!(last_bbo(std::slice::from_ref(&must), &[wrong]).len(), 1);
    }
}

/// One message that is nowhere is the one that the customer asks about.
#[test]
fn an_account_that_is_one_off_fails() {
    let mut truth = truth();
    truth.totals.bad.garbage = 1;
    let jse = ExpectedFeedCounts {
        messages: 3,
        ignored: 1,
        by_kind: BTreeMap::from([("index".to_owned(), 2)]),
        ..ExpectedFeedCounts::default()
    };
    let sizes = BTreeMap::from([("jse".to_owned(), 10), ("orders".to_owned(), 20)]);
    let feed = |messages, quarantined, ignored, bytes| unitape_feed::FeedSummary {
        messages,
        with_events: messages - quarantined - ignored,
        quarantined,
        ignored,
        bytes,
        complete: true,
        ..unitape_feed::FeedSummary::default()
    };
    let mut summary = AccountSummary::default();
    summary.by_feed.insert("jse".to_owned(), feed(3, 0, 1, 10));
    let orders = feed(truth.totals.messages + 1, 1, truth.totals.no_event, 20);
    summary.by_feed.insert("orders".to_owned(), orders);
    let mut kinds = truth.totals.by_kind.clone();
    kinds.insert("quarantine".to_owned(), 1);
    let by_feed = BTreeMap::from([("jse".to_owned(), jse.by_kind.clone()), ("orders".to_owned(), kinds)]);
    let counted = [("jse", jse), ("orders", count_order_flow(&truth))];
    let mut picture = TapeOverview { by_feed, ..TapeOverview::default() };
    assert_eq!(account(&summary, &picture, &counted, &sizes, &[]), [""; 0]);

    *picture.by_feed.get_mut("orders").unwrap().get_mut("exec").unwrap() += 1;
    assert_eq!(account(&summary, &picture, &counted, &sizes, &[]).len(), 1);
    summary.by_feed.get_mut("orders").unwrap().ignored -= 1;
    assert_eq!(account(&summary, &picture, &counted, &sizes, &[]).len(), 3);
    summary.by_feed.remove("jse");
    assert!(account(&summary, &picture, &counted, &sizes, &[]).len() > 5);
}

#[test]
fn quarantine_must_hold_what_is_bad() {
    let mut truth = truth();
    assert_eq!(reasons(&truth, &BTreeMap::new()), [""; 0]);
    truth.totals.bad.checksum = 2;
    assert_eq!(reasons(&truth, &BTreeMap::from([("bad_checksum".to_owned(), 2)])), [""; 0]);
    assert_eq!(reasons(&truth, &BTreeMap::from([("garbage".to_owned(), 2)])).len(), 1);
}

/// An alert at another time, or of another owner, is another alert.
#[test]
fn a_label_without_its_alert_fails() {
    let label = |scene: u32, ts| AlertLabel {
        scene,
        scenario: "spoofing",
        key: AlertLabelKey(vec![("owner", "OWN1".to_owned()), ("side", "B".to_owned())]),
        reason: None,
        ts,
        first_seq: 1,
        trigger_seq: 2,
    };
    let alert = |owner: &str, ts| ExplainedAlert {
        scenario: "spoofing".to_owned(),
        arm: String::new(),
        key: vec![owner.to_owned(), "B".to_owned()],
        ts,
        positions: vec![],
        legs: vec![],
    };
    let all = [alert("OWN1", 7), alert("OWN1", 9)];
    assert_eq!(labels(&[label(1, 9), label(2, 7)], &all), (vec![Some(1), Some(0)], vec![]));
    for others in [[alert("OWN2", 7), alert("OWN1", 9)], [alert("OWN1", 8), alert("OWN1", 9)]] {
        let (matched, differs) = labels(&[label(1, 9), label(2, 7)], &others);
        assert_eq!((matched, differs.len()), (vec![Some(1), None], 1));
    }
}
