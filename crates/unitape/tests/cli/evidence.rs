//! The evidence of an alert on the command line: ids in full, every execution or how many are left out, and the
//! counters of events that could not be judged.
//!
//! Ids of 26 bytes were shown as `(of 26 bytes)`, and of forty executions the first eight were missing without a word.

use crate::common::{file, run};
use serde_json::{Value, json};

const OF: &str = "\"venue\":\"XLON\",\"instr\":\"VOD\"";

fn market() -> String {
    format!(
        "{{\"ts\":1,\"kind\":\"ref\",\"instr\":\"VOD\",\"tick\":\"0.5\"}}\n\
         {{\"ts\":2,\"kind\":\"bbo\",{OF},\"bid\":\"100\",\"bid_qty\":\"5\",\"ask\":\"101\",\"ask_qty\":\"5\"}}\n"
    )
}

fn event(ms: u64, kind: &str, fields: &str) -> String {
    format!("{{\"ts\":{},\"kind\":\"{kind}\",{OF},{fields}}}\n", ms * 1_000_000)
}

fn new(ms: u64, oid: &str, owner: &str) -> String {
    event(
        ms,
        "order_new",
        &format!("\"oid\":\"{oid}\",\"side\":\"B\",\"px\":\"100\",\"qty\":\"90000\"{owner}"),
    )
}

fn exec(ms: u64, id: &str, side: &str, owner: &str, qty: u64) -> String {
    let fields = format!(
        "\"oid\":\"X\",\"match_id\":\"{id}\",\"side\":\"{side}\",\"px\":\"101\",\"qty\":\"{qty}\",\"owner\":\"{owner}\""
    );
    event(ms, "exec", &fields)
}

fn cancel(ms: u64, oid: &str, owner: &str) -> String {
    event(ms, "order_cancel", &format!("\"oid\":\"{oid}\"{owner}"))
}

fn replay(text: &str, scenario: &str) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let lines = file(dir.path(), "lines.jsonl", text);
    run(["watch", "replay", lines.to_str().unwrap(), "--scenario", scenario, "--json"]).code(0).lines()
}

const ACME: &str = ",\"owner\":\"ACME\"";

/// An id is evidence only if it can be looked up.
#[test]
fn long_ids_are_given_in_full() {
    let [oid, a, b] =
        ["order", "match-a", "match-b"].map(|id| format!("{id}-0123456789-0123456789-0123456789"));
    let text = [
        market(),
        new(10, &oid, ACME),
        exec(20, &a, "S", "ACME", 10),
        exec(21, "M2", "S", "ACME", 10),
        exec(22, &b, "S", "ACME", 10),
        cancel(30, &oid, ACME),
    ];
    let alerts = replay(&text.concat(), "spoofing");
    assert_eq!(alerts[0]["detail"]["spoof_oid"], oid);
    assert_eq!(alerts[0]["detail"]["exec_match_ids"], json!([a, "M2", b]));
}

/// Every execution that was counted is named; where there are too many, the alert says how many are not.
#[test]
fn no_execution_is_left_out_in_silence() {
    for (count, left_out) in [(40u64, 0u64), (1_030, 6)] {
        let mut text = market() + &new(10, "S", ACME);
        (0..count).for_each(|n| text += &exec(20, &format!("M{n}"), "S", "ACME", 1));
        text += &cancel(30, "S", ACME);
        let detail = &replay(&text, "spoofing")[0]["detail"];
        let named = detail["exec_match_ids"].as_array().unwrap().len() as u64;
        assert_eq!((named, detail["left_out"].as_u64().unwrap_or(0)), (count - left_out, left_out));
        assert_eq!(detail["seqs"].as_array().unwrap().len() as u64, named + 2);
        assert_eq!(detail["executed_opposite"], count.to_string());
    }
}

/// The owner that only the cancel names is that of an order which named none.
#[test]
fn the_owner_may_be_named_on_the_cancel() {
    let text = [
        market(),
        new(10, "S", ""),
        exec(20, "M1", "S", "ACME", 10),
        exec(21, "M2", "S", "OTHER", 10),
        cancel(30, "S", ACME),
    ];
    let alerts = replay(&text.concat(), "spoofing");
    assert_eq!(
        (&alerts[0]["key"]["owner"], &alerts[0]["detail"]["exec_match_ids"]),
        (&"ACME".into(), &json!(["M1"]))
    );
}

/// An auction prints many legs under one id: the first two of other owners once decided for all of them.
#[test]
fn a_match_may_have_more_than_two_legs() {
    let legs = [("B", "ACME"), ("S", "OTHER"), ("B", "THIRD"), ("S", "ACME"), ("S", "ACME")];
    let text: String = legs
        .iter()
        .enumerate()
        .map(|(n, (side, owner))| exec(n as u64, "AUC", side, owner, 1 + 100 * n as u64))
        .collect();
    let alerts = replay(&text, "wash_trade");
    let seen: Vec<_> =
        alerts.iter().map(|a| (a["key"]["group"].clone(), a["detail"]["seqs"].clone())).collect();
    assert_eq!(seen, [("ACME".into(), json!([1, 4]))]);
}

/// The last line of `--json` counts events that could not be judged, as the text for people does. A cancel that names
/// an order and no venue was not counted at all.
#[test]
fn what_could_not_be_judged_is_counted_in_json() {
    let lost = "{\"ts\":40000000,\"kind\":\"order_cancel\",\"oid\":\"S\",\"instr\":\"VOD\"}\n";
    let no_side = event(41, "exec", "\"oid\":\"X\",\"qty\":\"5\",\"owner\":\"ACME\"");
    let text = market() + &new(10, "S", ACME) + lost + &no_side;
    let lines = replay(&text, "spoofing");
    let missing = json!({"missing": 2, "missing_values": {"venue": 1, "side": 1}});
    assert_eq!(lines, [json!({ "counters": { "spoofing": missing } })]);
    assert_eq!(replay(&(market() + &new(10, "S", ACME)), "spoofing"), Vec::<Value>::new());
}
