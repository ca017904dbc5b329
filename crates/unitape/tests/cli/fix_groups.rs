//! Repeating groups of FIX: members that a mapping does not use, groups inside groups, tags of a venue's own, and counts
//! that are wrong.
//!
//! An entry ended at the first tag that the mapping did not list, and the whole message was refused.

use crate::common::{Ran, cat, file, fix, orders_option, quarantine, run, run_with_stdin};
use serde_json::{Value, json};
use std::path::Path;

/// A message of FIX 4.4 with this number.
fn message(number: usize, fields: &str) -> Vec<u8> {
    let (kind, rest) = fields.split_once('|').unwrap();
    let time = format!("20260302-10:00:{:02}", number % 60);
    fix(&format!("35={kind}|49=LP|56=DESK|34={number}|52={time}|60={time}|{rest}|"))
}

/// The events and the messages in quarantine of these messages by `fix44-orders`.
fn by_orders(messages: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = messages.iter().enumerate().flat_map(|(n, m)| message(n + 1, m)).collect();
    let feed = orders_option("lp", &file(dir.path(), "lp.fix", bytes));
    made(dir.path(), &feed)
}

/// The same by a mapping of one's own.
fn by_mapping(mapping: &str, messages: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = messages.iter().enumerate().flat_map(|(n, m)| message(n + 1, m)).collect();
    let source = file(dir.path(), "own.fix", bytes);
    let mapping = file(dir.path(), "own.toml", mapping);
    made(dir.path(), &format!("own=fix:{}:{}", mapping.display(), source.display()))
}

fn made(dir: &Path, feed: &str) -> (Vec<Value>, Vec<Value>) {
    let tape = dir.join("tape");
    let ran = run(["consolidate", "--feed", feed, "--tape", tape.to_str().unwrap(), "--json"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    (cat(&tape, &[]).into_iter().filter(|e| e["kind"] != "quarantine").collect(), quarantine(&tape))
}

/// The only refusal of these messages.
fn refused(messages: &[&str]) -> String {
    let (_, refused) = by_orders(messages);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["reason"], "group_count");
    refused[0]["detail"].as_str().unwrap().to_owned()
}

fn picked(event: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| event[*name].clone()).collect()
}

const BBO: [&str; 5] = ["instr", "bid", "bid_qty", "ask", "ask_qty"];

/// FIX 4.4 and 5.0 SP2 give an entry of a snapshot some hundred members; a mapping names four of them.
#[test]
fn snapshots_have_all_members_of_the_standard() {
    let snapshots = [
        // Position, time, number of orders, conditions: 4.4.
        "W|55=EUR/USD|262=1|268=2|269=0|270=1.1|271=5|272=20260302|273=10:00:00|290=1|346=3|276=A|58=a|\
         269=1|270=1.2|271=6|272=20260302|273=10:00:00|290=1|346=2|277=U",
        // Levels, ids and dates: 5.0 SP2.
        "W|55=EUR/USD|262=1|268=2|269=0|278=a1|270=1.1|271=5|1023=1|63=0|64=20260304|290=1|\
         269=1|278=b1|270=1.2|271=6|1023=1|63=0|64=20260304|290=1",
        // Parties in each entry: a group inside a group, and one inside that.
        "W|55=EUR/USD|262=1|268=2|269=0|270=1.1|271=5|453=2|448=A|447=D|452=1|802=1|523=s|803=4|448=B|447=D|452=3|\
         269=1|270=1.2|271=6|453=1|448=C|447=D|452=1",
    ];
    for snapshot in snapshots {
        let (events, refused) = by_orders(&[snapshot]);
        assert_eq!(refused, Vec::<Value>::new(), "{snapshot}");
        assert_eq!(picked(&events[0], &BBO), ["EUR/USD", "1.1", "5", "1.2", "6"], "{snapshot}");
    }
}

/// Nobody lists these tags. Between two entries, and between members of the last, they are of the group; behind it not.
#[test]
fn tags_of_a_venues_own_lose_no_message() {
    let snapshots = [
        "W|55=EUR/USD|268=2|269=0|270=1.1|271=5|5001=x|20010=y|269=1|270=1.2|271=6",
        "W|55=EUR/USD|268=2|269=0|5001=x|270=1.1|271=5|269=1|5001=x|270=1.2|271=6|5002=z",
        "W|55=EUR/USD|268=2|5000=w|269=0|270=1.1|271=5|5000=w|269=1|270=1.2|271=6|9999=v|207=XLON",
        // A standard tag that neither the entry nor the message has.
        "W|55=EUR/USD|268=2|269=0|270=1.1|271=5|44=1|269=1|270=1.2|271=6|44=2",
        // Each entry begins with another member than the mapping says.
        "W|55=EUR/USD|268=2|278=a|269=0|270=1.1|271=5|278=b|269=1|270=1.2|271=6",
    ];
    for snapshot in snapshots {
        let (events, refused) = by_orders(&[snapshot]);
        assert_eq!(refused, Vec::<Value>::new(), "{snapshot}");
        assert_eq!(picked(&events[0], &BBO), ["EUR/USD", "1.1", "5", "1.2", "6"], "{snapshot}");
    }
}

/// An instrument behind the group is the message's, also where an entry of another message type has it.
#[test]
fn a_field_of_the_message_ends_the_group() {
    let (events, refused) = by_orders(&[
        "W|262=1|268=2|269=0|270=1.1|271=5|269=1|270=1.2|271=6|290=1|55=EUR/USD|207=XLON",
        "X|262=1|268=2|279=0|269=2|278=t1|55=A|207=XLON|270=7|271=1|290=1|279=0|269=2|278=t2|55=B|207=XLON|270=8|271=2|451=1",
    ]);
    assert_eq!(refused, Vec::<Value>::new());
    assert_eq!(picked(&events[0], &BBO), ["EUR/USD", "1.1", "5", "1.2", "6"]);
    let trades: Vec<_> = events[1..].iter().map(|e| picked(e, &["kind", "instr", "px", "qty"])).collect();
    assert_eq!(trades, [["trade", "A", "7", "1"], ["trade", "B", "8", "2"]]);
    // Between two entries it is the end, and the message names it.
    let detail = refused_of_body();
    assert!(detail.contains("entry 1 ended at 55 (Symbol) at byte "), "{detail}");
}

fn refused_of_body() -> String {
    refused(&["W|262=1|268=2|269=0|270=1.1|271=5|55=EUR/USD|269=1|270=1.2|271=6"])
}

/// The count names its group, the entries that there are, and what ended them; counts beyond belief cost nothing.
#[test]
fn wrong_counts_name_group_entry_and_tag() {
    let of = |count: &str| {
        refused(&[&format!(
            "W|55=EUR/USD|268={count}|269=0|270=1.1|271=5|290=1|269=1|270=1.2|271=6|290=1|9001=x"
        )])
    };
    for count in ["3", "1000000000", "18446744073709551616", "1", "0", "x", "-2"] {
        let (detail, group) =
            (of(count), format!("group 268 (NoMDEntries): \"{count}\" stated, 2 entries found"));
        assert!(detail.starts_with(&group), "{detail}");
        assert!(detail.contains("; entry 2 ended at 9001 at byte "), "{detail}");
    }
    let detail = refused(&["W|55=EUR/USD|268=2|207=XLON|269=0|270=1|271=1"]);
    let words =
        "0 entries found; entry 1 begins with 269 (MDEntryType), not with 207 (SecurityExchange) at byte ";
    assert!(detail.contains(words), "{detail}");
    // A tag of nobody's does not hide an entry too many.
    let detail = refused(&["W|55=EUR/USD|268=1|269=0|270=1.1|271=5|5001=x|269=1|270=1.2|271=6"]);
    assert!(detail.starts_with("group 268 (NoMDEntries): \"1\" stated, 2 entries found"), "{detail}");
}

/// A message in quarantine costs no neighbour, and a group of no entries is none.
#[test]
fn groups_of_no_entries_and_neighbours_of_wrong_ones_are_read() {
    let quote = |count: u8| format!("W|55=EUR/USD|268={count}|269=0|270=1.1|271=5|269=1|270=1.2|271=6|290=1");
    let empty = "W|55=EUR/USD|268=0|58=nothing there|5001=x";
    let (events, refused) = by_orders(&[&quote(2), &quote(3), empty, &quote(2)]);
    assert_eq!((events.len(), refused.len()), (3, 1));
    assert_eq!(picked(&events[1], &["kind", "bid", "ask"]), [json!("bbo"), Value::Null, Value::Null]);
}

/// Parties of an execution with ids of their own, and the legs of a strategy with parties of theirs.
#[test]
fn parties_and_legs_of_executions_are_read() {
    let report = "8|37=O1|17=E1|150=F|39=1|55=ABC|207=XVEN|54=1|38=100|44=10|32=40|31=10|151=60|14=40|\
         453=3|448=FIRM|447=D|452=1|2376=24|802=2|523=desk|803=4|523=site|803=5|5500=x|448=OWNER|447=D|452=3|448=T1|452=11|\
         382=1|375=CP|337=TR|555=2|600=L1|624=1|539=1|524=NP|525=D|538=1|804=1|545=s|805=2|600=L2|624=2|58=done";
    let (events, refused) = by_orders(&[report]);
    assert_eq!(refused, Vec::<Value>::new());
    assert_eq!(
        picked(&events[0], &["firm", "owner", "trader", "px", "qty"]),
        ["FIRM", "OWNER", "T1", "10", "40"]
    );
}

const SIDES: &str = r#"
name = "sides"
format = "fix"
title = "Drop copy of trades by side"
[message]
ts = "60"
unlisted = "keep"
drop = ["49", "56", "34", "52", "35", "571", "1", "447", "523", "803"]
[group.552]
delimiter = "54"
members = ["54", "37"]
[group.453]
delimiter = "448"
members = ["448", "447", "452"]
[table.side]
"1" = "B"
"2" = "S"
[[rule]]
when = { "35" = "AE" }
[[rule.event]]
kind = "exec"
each = "552"
[rule.event.fields]
oid = "37"
side = { from = "54", table = "side" }
px = "31"
qty = "32"
instr = "55"
venue = "30"
firm = { group = "453", key = "452", is = "1", value = "448" }
"#;

/// The parties of the first side end at what follows them in the side, not at the end of the message.
#[test]
fn groups_inside_groups_end_with_their_entry() {
    let report = "AE|571=R1|55=ABC|30=XVEN|31=10|32=40|552=2|\
         54=1|37=O1|453=2|448=F1|447=D|452=1|802=1|523=d|803=4|448=X|447=D|452=12|1=ACC1|7001=a|\
         54=2|37=O2|453=1|448=F2|447=D|452=1|1=ACC2";
    let (events, refused) = by_mapping(SIDES, &[report]);
    assert_eq!(refused, Vec::<Value>::new());
    let sides: Vec<_> = events.iter().map(|e| picked(e, &["kind", "oid", "side", "firm"])).collect();
    assert_eq!(sides, [["exec", "O1", "B", "F1"], ["exec", "O2", "S", "F1"]]);
    let (_, refused) = by_mapping(SIDES, &[&report.replace("453=2", "453=3")]);
    let detail = refused[0]["detail"].as_str().unwrap();
    let words =
        "group 453 (NoPartyIDs): \"3\" stated, 2 entries found; entry 2 ended at 1 (Account) at byte ";
    assert!(detail.starts_with(words), "{detail}");
}

/// A tag that no list has, in the second entry of a group, was kept with the event of the first entry.
#[test]
fn unlisted_tags_are_kept_with_their_entry() {
    let report = "AE|571=R1|58=text|9002=m|55=ABC|30=XVEN|31=10|32=40|552=3|\
         54=1|37=O1|453=1|448=F1|447=D|452=1|54=2|37=O2|9001=second|453=1|448=F2|452=1|54=1|37=O3|9001=third|581=4";
    let (events, refused) = by_mapping(SIDES, &[report]);
    assert_eq!(refused, Vec::<Value>::new());
    let names = ["oid", "9001", "9002", "581", "58"];
    let kept: Vec<_> =
        events.iter().map(|e| names.map(|name| e[name].as_str().unwrap_or_default())).collect();
    assert_eq!(
        kept,
        [["O1", "", "m", "", "text"], ["O2", "second", "", "", ""], ["O3", "third", "", "4", ""]]
    );
}

const OWN: &str = r#"
name = "own"
format = "fix"
title = "A message and a group of a venue's own"
[message]
ts = "60"
drop = ["49", "56", "34", "52", "35"]
[group.9000]
delimiter = "9001"
members = ["9001", "9002"]
[[rule]]
when = { "35" = "U1" }
[[rule.event]]
kind = "index"
each = "9000"
fields = { index = "9001", px = "9002", venue = "207" }
"#;

/// Of a message that the standard does not have, the mapping says what is outside the group.
#[test]
fn groups_of_a_venues_own_are_as_tolerant() {
    let (events, refused) =
        by_mapping(OWN, &["U1|9000=2|9001=A|9002=1|9003=x|58=t|9001=B|9002=2|207=XVEN|9004=y"]);
    assert_eq!(refused, Vec::<Value>::new());
    let values: Vec<_> = events.iter().map(|e| picked(e, &["index", "px", "venue"])).collect();
    assert_eq!(values, [["A", "1", "XVEN"], ["B", "2", "XVEN"]]);
    let (_, refused) = by_mapping(OWN, &["U1|9000=2|9001=A|9002=1|207=XVEN|9001=B|9002=2"]);
    let detail = refused[0]["detail"].as_str().unwrap();
    assert!(
        detail.starts_with(
            "group 9000: \"2\" stated, 1 entries found; entry 1 ended at 207 (SecurityExchange)"
        ),
        "{detail}"
    );
}

/// `decode` reads the same groups by its dictionary.
#[test]
fn decoding_by_a_dictionary_keeps_unknown_tags_in_their_entries() {
    let dictionary = crate::common::root().join("vectors/fix/dict/quickfix_FIX44.xml").display().to_string();
    let decode = |fields: &str| -> Ran {
        run_with_stdin(["decode", "fix", "-", "--dictionary", &dictionary, "--json"], &message(1, fields))
    };
    let line = decode("W|55=A|268=2|269=0|270=1|5001=x|64=20260304|269=1|270=2|5001=y").code(0).json();
    let entries = json!([{"269": "0", "270": "1", "5001": "x", "64": "20260304"}, {"269": "1", "270": "2"}]);
    assert_eq!((&line["fields"]["268"], &line["fields"]["5001"]), (&entries, &json!("y")));
    let line = decode("W|268=2|269=0|270=1|55=A|269=1|270=2").code(3).json();
    let error = line["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("group 268 (NoMDEntries) at byte "), "{error}");
    assert!(error.ends_with(" says 2 entries, has 1; entry 1 ended at 55 (Symbol)"), "{error}");
}
