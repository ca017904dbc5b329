use super::super::feeds::order_counts;
use super::*;
use serde_json::json;
use unitape_sim::day::DropCopyTotals;

fn scene(n: u64, arm: &str) -> Value {
    let leg = |id: u64, side: &str| {
        json!({
            "ts": 1000 + n, "venue": "XLON", "oid": format!("O{n}{id}"), "match_id": format!("M{n}"),
            "owner": format!("WSH{n}"), "side": side, "px": "2500.5", "qty": "100",
        })
    };
    json!({
        "scenario": "wash_trade", "arm": arm, "ts": 1000 + n,
        "key": { "group": format!("WSH{n}"), "instr": "GB00B03MLX29" }, "legs": [leg(1, "B"), leg(2, "S")],
    })
}

fn found(scene: &Value) -> ExplainedAlert {
    let mut events = BTreeMap::new();
    for (position, leg) in [64, 192].into_iter().zip(scene["legs"].as_array().unwrap()) {
        let mut event = leg.clone();
        event["kind"] = "exec".into();
        event["instr"] = "GB00B03MLX29".into();
        events.insert(position, event);
    }
    let alert = json!({
        "scenario": scene["scenario"], "ts": scene["ts"], "trigger_seq": 9, "key": scene["key"],
        "detail": { "arm": scene["arm"], "positions": [64, 192] },
    });
    ExplainedAlert::new(alert, &events)
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
    let scenes = [scene(1, "self_match"), scene(2, "round_trip")];
    let planted: Vec<&Value> = scenes.iter().collect();
    let all: Vec<ExplainedAlert> = scenes.iter().map(found).collect();
    assert_eq!(match_scenes(&planted, &all), (vec![Some(0), Some(1)], vec![]));

    let (matched, differs) = match_scenes(&planted, &all[1..]);
    assert_eq!(matched, [None, Some(0)]);
    assert!(differs.len() == 1 && differs[0].starts_with("no alert for self_match of WSH1"), "{differs:?}");

    let extra = [&all[..], &[found(&scene(3, "self_match"))]].concat();
    let (matched, differs) = match_scenes(&planted, &extra);
    assert_eq!(matched, [Some(0), Some(1)]);
    assert!(differs.len() == 1 && differs[0].contains("was not planted"), "{differs:?}");

    // The same alert twice is one too many.
    let twice = [&all[..], &all[..1]].concat();
    assert_eq!(match_scenes(&planted, &twice).1.len(), 1);
}

/// An alert about the right owner with the wrong evidence accuses somebody of something else.
#[test]
fn every_part_of_an_alert_counts() {
    let planted = scene(1, "round_trip");
    let right = found(&planted);
    let spoil: [fn(&mut ExplainedAlert); 9] = [
        |f| f.alert["scenario"] = "spoofing".into(),
        |f| f.alert["detail"]["arm"] = "self_match".into(),
        |f| f.alert["key"]["group"] = "WSH9".into(),
        |f| f.alert["key"]["instr"] = "GB0002634946".into(),
        |f| f.alert["ts"] = 1.into(),
        |f| f.evidence.swap(0, 1),
        |f| f.evidence[0]["kind"] = "order_new".into(),
        |f| f.evidence[1]["px"] = "2500".into(),
        |f| f.positions.push(256),
    ];
    for spoil in spoil {
        let mut wrong = right.clone();
        spoil(&mut wrong);
        assert_eq!(match_scenes(&[&planted], &[wrong.clone()]).1.len(), 2, "{wrong:?}");
    }
    // A position at which the tape has no event is no evidence.
    let missing = ExplainedAlert::new(right.alert.clone(), &BTreeMap::new());
    assert_eq!(match_scenes(&[&planted], &[missing]).1.len(), 2);
}

#[test]
fn a_near_miss_in_evidence_fails() {
    let near = [scene(1, "round_trip")];
    assert_eq!(near_miss_alerts(&near, &[found(&scene(2, "round_trip"))]), [""; 0]);
    let mut half = found(&scene(2, "round_trip"));
    half.evidence[1] = found(&near[0]).evidence[1].clone();
    assert_eq!(near_miss_alerts(&near, &[half]).len(), 1);
}

#[test]
fn live_and_replay_must_agree_to_the_letter() {
    let alert = |seq: u64| json!({ "scenario": "wash_trade", "ts": 5, "trigger_seq": seq });
    let differences = |recorded: &[u64]| {
        let [recorded, replayed] =
            [recorded, &[1, 2]].map(|seqs| seqs.iter().map(|n| alert(*n)).collect::<Vec<_>>());
        alert_differences("live", &recorded, &replayed).len()
    };
    assert_eq!([differences(&[1, 2]), differences(&[1]), differences(&[1, 3])], [0, 1, 1]);
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
        last_values: vec![Some("10".to_owned()), Some("5".to_owned()), None, None],
        ..PriceHistory::default()
    };
    assert_eq!(last_bbo(std::slice::from_ref(&must), &[course()]), [""; 0]);
    assert_eq!(last_bbo(std::slice::from_ref(&must), &[]).len(), 2);
    assert_eq!(last_bbo(&[], &[course()]).len(), 1);
    let later = PriceHistory { ts: 8, ..course() };
    let dearer = PriceHistory {
        last_values: vec![Some("11".to_owned()), Some("5".to_owned()), None, None],
        ..course()
    };
    for wrong in [later, dearer] {
        assert_eq!(last_bbo(std::slice::from_ref(&must), &[wrong]).len(), 1);
    }
}

/// One message that is nowhere is the one that the customer asks about.
#[test]
fn an_account_that_is_one_off_fails() {
    let mut truth = truth();
    truth.totals.bad.garbage = 1;
    let jse = MessageCounts {
        messages: 3,
        ignored: 1,
        by_kind: BTreeMap::from([("index".to_owned(), 2)]),
        ..MessageCounts::default()
    };
    let feed = |counts: &MessageCounts, bytes| {
        let MessageCounts { messages, quarantined, ignored, .. } = *counts;
        json!({
            "messages": messages, "with_events": messages - quarantined - ignored, "quarantined": quarantined,
            "duplicates": 0, "ignored": ignored, "bytes": bytes, "complete": true,
        })
    };
    let orders = order_counts(&truth);
    assert_eq!((orders.messages, orders.quarantined, orders.ignored), (81, 1, 30));
    let mut feeds = json!({ "jse": feed(&jse, 10), "orders": feed(&orders, 20) });
    // Of market data, the bytes and the sum of its parts are known.
    feeds["depth"] = json!({ "messages": 2, "duplicates": 2, "bytes": 30, "complete": true });
    let by_feed =
        [("jse", &jse), ("orders", &orders)].map(|(feed, counts)| (feed.to_owned(), counts.by_kind.clone()));
    let mut overview = TapeOverview { by_feed: by_feed.into(), ..TapeOverview::default() };
    let counts = [("jse", 10, Some(jse)), ("orders", 20, Some(orders)), ("depth", 30, None)];
    let counts: BTreeMap<String, ExpectedCounts> =
        counts.map(|(feed, bytes, messages)| (feed.to_owned(), ExpectedCounts { bytes, messages })).into();
    assert_eq!(account_differences(&feeds, &overview, &counts), [""; 0]);

    *overview.by_feed.get_mut("orders").unwrap().get_mut("exec").unwrap() += 1;
    assert_eq!(account_differences(&feeds, &overview, &counts).len(), 1);
    feeds["orders"]["ignored"] = 29.into();
    assert_eq!(account_differences(&feeds, &overview, &counts).len(), 3);
    feeds["depth"]["duplicates"] = 1.into();
    feeds["depth"]["bytes"] = 29.into();
    feeds["depth"]["complete"] = false.into();
    assert_eq!(account_differences(&feeds, &overview, &counts).len(), 6);
    feeds.as_object_mut().unwrap().remove("jse");
    assert!(account_differences(&feeds, &overview, &counts).len() > 8);
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
    let label =
        |ts: u64| json!({ "scenario": "spoofing", "key": { "owner": "OWN1", "side": "B" }, "ts": ts });
    let alert = |owner: &str, ts: u64| {
        let alert = json!({ "scenario": "spoofing", "key": { "owner": owner, "side": "B" }, "ts": ts });
        ExplainedAlert::new(alert, &BTreeMap::new())
    };
    let labels = [label(9), label(7)];
    let labels: Vec<&Value> = labels.iter().collect();
    let all = [alert("OWN1", 7), alert("OWN1", 9)];
    assert_eq!(match_scenes(&labels, &all), (vec![Some(1), Some(0)], vec![]));
    for others in [[alert("OWN2", 7), alert("OWN1", 9)], [alert("OWN1", 8), alert("OWN1", 9)]] {
        let (matched, differs) = match_scenes(&labels, &others);
        assert_eq!((matched, differs.len()), (vec![Some(1), None], 2));
    }
}

/// Fails if an event of the sealed days may have another position: the plain lines do not have it.
#[test]
fn a_sealed_event_at_another_position_differs() {
    let event = |id: u64, position: u64| json!({ "seq": 1, "src": { "id": id, "feed": "jse" }, "ids": {}, "position": position });
    let differences = |sealed: Vec<Value>| sealed_differences(sealed, vec![event(3, 64)]).len();
    assert_eq!(
        [differences(vec![event(1, 64)]), differences(vec![event(1, 128)]), differences(vec![])],
        [0, 1, 1]
    );
}
