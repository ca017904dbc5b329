//! `unitape quarantine` and `unitape mapping`: what could not become events is shown, and recovered once a mended
//! mapping knows it.

use crate::common::{self, assert_closes, cat, file, fix, oids, order, order_with, root, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The shipped mapping, corrected: it reads `44=MKT` as no price and messages of type `ZZ` as news.
fn mended(dir: &Path) -> PathBuf {
    let shipped = std::fs::read_to_string(root().join("mappings/fix44-orders.toml")).unwrap();
    let rule = "\n[[rule]]\nwhen = { \"35\" = \"ZZ\" }\n[[rule.event]]\nkind = \"news\"\n[rule.event.fields]\nnews_id = \"37\"\n";
    file(dir, "mended.toml", shipped + rule)
}

fn unknown(n: u32) -> Vec<u8> {
    fix(&format!("35=ZZ|49=XLON|56=U|34={n}|52=20260302-00:00:0{n}|60=20260302-00:00:0{n}|37=N{n}|207=XNEW|"))
}

/// A tape with two messages that a mended mapping knows and one that nothing will.
fn tape(dir: &Path) -> (PathBuf, PathBuf) {
    let bytes = [order(1), unknown(2), order(3), order_with(4, "44=1.0000000001|"), unknown(5), order(6)];
    let orders = file(dir, "orders.fix", bytes.concat());
    let tape = dir.join("t");
    common::consolidate_orders(&orders, &tape, 3);
    (tape, orders)
}

fn retry(tape: &Path, mapping: Option<&Path>) -> common::Ran {
    let mapping = mapping.map(|m| ["--mapping".to_owned(), m.display().to_string()]);
    let args = ["quarantine", "retry", tape.to_str().unwrap(), "--json"].map(str::to_owned);
    run(args.into_iter().chain(mapping.into_iter().flatten()))
}

#[test]
fn entries_are_listed_and_shown_with_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, orders) = tape(dir.path());
    let t = tape.to_str().unwrap();
    let list = run(["quarantine", "list", t, "--json"]).code(3).lines();
    let reasons: Vec<&str> = list.iter().map(|e| e["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["no_rule", "decimal_fit", "no_rule"]);
    let input = std::fs::read(orders).unwrap();
    for entry in &list {
        let shown = run(["quarantine", "show", t, &entry["position"].to_string(), "--json"]).code(0).json();
        let (at, n) =
            (entry["offset"].as_u64().unwrap() as usize, entry["length"].as_u64().unwrap() as usize);
        assert_eq!(shown["raw"].as_str().unwrap().as_bytes(), &input[at..at + n]);
        assert_eq!(shown["reason"], entry["reason"]);
    }
    let text = run(["quarantine", "list", t]).code(3);
    assert!(text.text().contains("orders/orders.fix at byte"), "{}", text.text());
    run(["quarantine", "show", t, "0"]).code(2).says(&["position 0", "quarantine list"]);
}

/// A retry appends what the mended mapping recovers, flagged late, once; the account of the sources stays what it was,
/// and a consolidation after it finds nothing to do.
#[test]
fn a_retry_recovers_once_and_flags_late() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, orders) = tape(dir.path());
    let before = cat(&tape, &["--full", "--all"]);
    let unmended = retry(&tape, None).code(3).json();
    assert_eq!(
        (&unmended["tried"], &unmended["recovered"], &unmended["left"]),
        (&3.into(), &0.into(), &3.into())
    );

    let done = retry(&tape, Some(&mended(dir.path()))).code(3).json();
    assert_eq!(
        done,
        serde_json::json!({"tried": 3, "recovered": 2, "events": 2, "left": 1}),
        "two messages are known now, the third never"
    );
    let after = cat(&tape, &["--full", "--all"]);
    assert_eq!(after[..before.len()], before[..], "what stood on the tape has changed");
    let news = cat(&tape, &["--full", "--kind", "news"]);
    let late: Vec<(&Value, &Value)> = news.iter().map(|e| (&e["news_id"], &e["flags"])).collect();
    let flags = serde_json::json!(["last", "late"]);
    assert_eq!(late, [(&"N2".into(), &flags), (&"N5".into(), &flags)]);
    assert_eq!(news[0]["src"]["offset"], order(1).len());
    assert_eq!(news[0]["src"]["file"], "orders.fix");
    assert_eq!(oids(&tape), ["O1", "O3", "O6"]);

    let again = retry(&tape, Some(&mended(dir.path()))).code(3).json();
    assert_eq!(again, serde_json::json!({"tried": 1, "recovered": 0, "events": 0, "left": 1}));
    assert_eq!(cat(&tape, &["--full", "--all"]), after);
    let states: Vec<Value> = common::quarantine(&tape).iter().map(|e| e["recovered"].clone()).collect();
    assert_eq!(states, [true, false, true]);

    let account = common::consolidate_orders(&orders, &tape, 3);
    assert_eq!((&account["messages"], &account["quarantined"]), (&6.into(), &3.into()));
    assert_eq!(cat(&tape, &["--full", "--all"]), after);
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
}

/// When all is recovered there is nothing left to remark.
#[test]
fn a_retry_that_recovers_all_ends_clean() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", [order(1), unknown(2)].concat());
    let tape = dir.path().join("t");
    common::consolidate_orders(&orders, &tape, 3);
    retry(&tape, Some(&mended(dir.path()))).code(0);
    run(["quarantine".as_ref(), "list".as_ref(), tape.as_os_str()]).code(0);
    // More of the feed after a retry: late events must not count as its place.
    let more = file(dir.path(), "more.fix", [order(3), order(4)].concat());
    // The quarantined messages were recovered.
    let account = common::consolidate_orders(&more, &tape, 0);
    assert_closes_but_for_recovered(&account);
    assert_eq!(oids(&tape), ["O1", "O3", "O4"]);
}

fn assert_closes_but_for_recovered(account: &Value) {
    let mut account = account.clone();
    let kinds = account["by_kind"].as_object_mut().unwrap();
    assert_eq!(kinds.remove("news"), Some(1.into()), "the recovered event is counted by its kind");
    assert_closes(&account);
}

#[test]
fn mappings_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let good = mended(dir.path());
    run(["mapping".as_ref(), "check".as_ref(), good.as_os_str()]).code(0);
    run(["mapping", "check", "fix44-orders", "--json"]).code(0);
    assert!(run(["mapping", "list"]).code(0).text().contains("jse-fix50-indices"));
    let shipped = std::fs::read_to_string(&good).unwrap();
    for (name, broken, words) in [
        ("syntax.toml", "name = \n".to_owned(), &["syntax.toml"][..]),
        ("field.toml", shipped.replace("oid = \"37\"", "oidd = \"37\""), &["field.toml", "oidd"]),
        ("table.toml", shipped.replace("table = \"side\"", "table = \"sides\""), &["table.toml", "sides"]),
        ("kind.toml", shipped.replace("kind = \"bbo\"", "kind = \"bob\""), &["kind.toml", "bob"]),
        ("tag.toml", shipped.replace("qty = \"38\"", "qty = \"x38\""), &["tag.toml", "x38"]),
        ("group.toml", shipped.replace("each = \"prints\"", "each = \"print\""), &["group.toml", "print"]),
        ("key.toml", shipped.replace("title =", "titel ="), &["key.toml", "titel"]),
    ] {
        assert_ne!(broken, shipped, "{name} is not broken");
        let path = file(dir.path(), name, broken);
        run(["mapping".as_ref(), "check".as_ref(), path.as_os_str()]).code(1).says(words);
    }
    run(["mapping", "check", "no-such-mapping"]).code(1).says(&["no-such-mapping"]);
}

/// A check on a sample says what becomes of its messages, and leaves nothing behind.
#[test]
fn a_mapping_is_tried_on_a_sample() {
    let dir = tempfile::tempdir().unwrap();
    let tmp = dir.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let sample = file(dir.path(), "sample.fix", [order(1), unknown(2), order(3)].concat());
    let check = |mapping: &str, code| {
        let mut command = common::unitape();
        command.args(["mapping", "check", mapping]).arg(&sample).arg("--json").env("TMPDIR", &tmp);
        common::finish(&mut command).code(code).lines().pop().unwrap()
    };
    let shipped = check("fix44-orders", 3);
    assert_eq!(shipped["quarantined"], 1);
    assert_eq!(shipped["quarantine"][0]["reason"], "no_rule");
    assert_eq!(shipped["quarantine"][0]["offset"], order(1).len());
    let mended = check(mended(dir.path()).to_str().unwrap(), 0);
    assert_eq!((&mended["messages"], &mended["events"]), (&3.into(), &3.into()));
    assert!(common::files(&tmp).is_empty(), "a check left something behind");
    run(["mapping", "check", "fix44-orders", "missing.fix"]).code(1).says(&["missing.fix"]);
}
