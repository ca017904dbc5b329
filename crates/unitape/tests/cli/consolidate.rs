//! `unitape consolidate` as the command-line contract words it: the account, the same tape at any number of
//! workers, the merge, the ways to name inputs, and a rerun that does nothing.

use crate::common::{
    self, assert_closes, assert_same, cat, file, files, finish, fix, flow, jse, oids, order, run, unitape,
};
use serde_json::Value;
use std::path::Path;

fn consolidate(tape: &Path, args: &[&str]) -> common::Ran {
    let tape = tape.to_str().unwrap();
    run(["consolidate"].iter().chain(args).chain(&["--tape", tape, "--json"]))
}

/// The account once lacked what a reader counts on; its fields are these, and it closes.
#[test]
fn the_account_has_the_fields_of_the_contract_and_closes() {
    let dir = tempfile::tempdir().unwrap();
    let account = consolidate(&dir.path().join("t"), &[jse().to_str().unwrap()]).code(0).json();
    let keys: Vec<&str> = account.as_object().unwrap().keys().map(String::as_str).collect();
    // Entries came later, where there are some.
    let contract = [
        "messages",
        "events",
        "quarantined",
        "duplicates",
        "ignored",
        "entries",
        "by_feed",
        "by_kind",
        "elapsed_s",
    ];
    assert_eq!(keys, contract);
    assert_closes(&account);
    assert_eq!(account["messages"], 11110);
    assert_eq!(account["ignored"], 2523);
    assert_eq!(account["by_feed"]["jse_fix50_marketdata_head80"]["complete"], true);
    assert_eq!(account["by_feed"]["jse_fix50_marketdata_head80"]["bytes"], 1_617_971);
}

/// A tape that depends on the number of workers or on where blocks are cut cannot be compared or audited.
#[test]
fn tapes_are_byte_equal_at_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let orders = file(dir.path(), "orders.fix", flow(3, 6_000, true).0);
    let feed = common::orders_option("orders", &orders);
    let jse = jse();
    let args = |workers, block| {
        [
            "--feed",
            &feed,
            jse.to_str().unwrap(),
            "--segment-bytes",
            "262144",
            "--workers",
            workers,
            "--block-bytes",
            block,
        ]
        .map(str::to_owned)
    };
    let mut first: Option<Value> = None;
    for (name, workers, block) in [
        ("one", "1", "1048576"),
        ("two", "2", "262144"),
        ("four", "4", "262144"),
        ("small", "4", "777"),
        ("large", "2", "67108864"),
    ] {
        let args = args(workers, block);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut account = consolidate(&path(name), &args).code(3).json();
        account.as_object_mut().unwrap().remove("elapsed_s");
        assert_closes(&account);
        assert_eq!(first.get_or_insert_with(|| account.clone()), &account);
        assert_same(&path("one"), &path(name), &format!("{workers} workers, blocks of {block}"));
    }
    run(["tape".as_ref(), "verify".as_ref(), path("small").as_os_str()]).code(0);
}

/// The simulator's events are known; the tape must have them, no more and no less.
#[test]
fn a_simulated_flow_is_accounted_for_to_the_message() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, truth) = flow(11, 8_000, true);
    let orders = file(dir.path(), "orders.fix", bytes);
    let account = common::consolidate_orders(&orders, &dir.path().join("t"), 3);
    assert_closes(&account);
    let t = &truth.totals;
    assert_eq!(account["messages"], t.messages + t.bad.total());
    assert_eq!(account["quarantined"], t.bad.total());
    assert_eq!(account["ignored"], t.no_event);
    assert_eq!(account["duplicates"], 0);
    for (kind, n) in &t.by_kind {
        assert_eq!(account["by_kind"][kind], *n, "{kind}");
    }
}

/// A second run once wrote its definitions again. It must not touch a file, and must end as the first one did.
#[test]
fn a_rerun_does_nothing_and_ends_with_the_same_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let orders = file(dir.path(), "orders.fix", flow(5, 2_000, true).0);
    let without_time = |mut account: Value| {
        account.as_object_mut().unwrap().remove("elapsed_s");
        account
    };
    let first = without_time(common::consolidate_orders(&orders, &tape, 3));
    let before = files(&tape);
    let again = without_time(common::consolidate_orders(&orders, &tape, 3));
    assert_eq!(first, again);
    assert!(before == files(&tape), "a rerun changed a file");
}

/// Feeds are merged by event time; at the same time the feed named first comes first, and within a feed its own
/// order wins also when its clock goes back.
#[test]
fn feeds_merge_by_time_and_ties_go_to_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let line = |ts: i64, name: &str| format!("{{\"ts\":{ts},\"kind\":\"news\",\"news_id\":\"{name}\"}}\n");
    let lines = |events: &[(i64, &str)]| events.iter().map(|(ts, n)| line(*ts, n)).collect::<String>();
    let a = file(dir.path(), "a.jsonl", lines(&[(10, "a1"), (20, "a2"), (15, "a3"), (40, "a4")]));
    let b = file(dir.path(), "b.jsonl", lines(&[(10, "b1"), (19, "b2"), (20, "b3"), (30, "b4")]));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let order = |tape: &str, args: &[&str]| {
        let tape = dir.path().join(tape);
        consolidate(&tape, args).code(0);
        cat(&tape, &[])
            .iter()
            .map(|e| e["news_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(order("ab", &[a, b]), "a1 b1 b2 a2 a3 b3 b4 a4");
    assert_eq!(order("ba", &[b, a]), "b1 a1 b2 b3 a2 a3 b4 a4");
}

/// The ends of time once overflowed in the comparison of ties.
#[test]
fn the_ends_of_time_are_merged_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let line = |ts: i64, name: &str| format!("{{\"ts\":{ts},\"kind\":\"news\",\"news_id\":\"{name}\"}}\n");
    let both = |n: &str| line(i64::MIN, &format!("{n}1")) + &line(i64::MAX, &format!("{n}2"));
    let a = file(dir.path(), "a.jsonl", both("a"));
    let b = file(dir.path(), "b.jsonl", both("b"));
    let tape = dir.path().join("t");
    consolidate(&tape, &[a.to_str().unwrap(), b.to_str().unwrap(), "--workers", "2"]).code(0);
    let names: Vec<_> = cat(&tape, &[]).iter().map(|e| e["news_id"].clone()).collect();
    assert_eq!(names, ["a1", "b1", "a2", "b2"]);
}

/// The three ways to name the same feed make the same tape; files of a configuration are beside it.
#[test]
fn configuration_option_and_bare_file_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = [order(1), order(2), order(3)].concat();
    let orders = file(dir.path(), "orders.fix", bytes);
    let config = "[[feed]]\nname = \"orders\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [\"orders.fix\"]\n";
    let config = file(dir.path(), "feeds.toml", config);
    let option = common::orders_option("orders", &orders);
    let tape = |name: &str| dir.path().join(name);
    consolidate(&tape("config"), &[config.to_str().unwrap()]).code(0);
    consolidate(&tape("option"), &["--feed", &option]).code(0);
    consolidate(&tape("bare"), &[orders.to_str().unwrap()]).code(0);
    assert_same(&tape("config"), &tape("option"), "CONFIG.toml and --feed");
    assert_same(&tape("config"), &tape("bare"), "CONFIG.toml and a bare file");
    assert_eq!(oids(&tape("config")), ["O1", "O2", "O3"]);

    let wrong = file(dir.path(), "wrong.toml", config_with_typo());
    consolidate(&tape("wrong"), &[wrong.to_str().unwrap()]).code(1).says(&["wrong.toml", "mappin"]);
}

fn config_with_typo() -> &'static str {
    "[[feed]]\nname = \"orders\"\nformat = \"fix\"\nmappin = \"fix44-orders\"\nfiles = [\"orders.fix\"]\n"
}

/// Several files of one feed follow one another, whether the option is repeated or the configuration lists them.
#[test]
fn files_of_a_feed_follow_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let one = file(dir.path(), "1.fix", [order(5), order(6)].concat());
    let two = file(dir.path(), "2.fix", [order(1), order(2)].concat());
    let tape = dir.path().join("t");
    let feed = |path: &Path| common::orders_option("orders", path);
    consolidate(&tape, &["--feed", &feed(&one), "--feed", &feed(&two)]).code(0);
    assert_eq!(oids(&tape), ["O5", "O6", "O1", "O2"]);
}

/// Stdin is a source like another, if its format is given.
#[test]
fn stdin_is_a_source() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let bytes = [order(1), order(2)].concat();
    let args =
        ["consolidate", "--feed", "orders=fix:fix44-orders:-", "--tape", tape.to_str().unwrap(), "--json"];
    let account = common::run_with_stdin(args, &bytes).code(0).json();
    assert_closes(&account);
    assert_eq!(oids(&tape), ["O1", "O2"]);

    let bare = ["consolidate", "-", "--tape", tape.to_str().unwrap()];
    common::run_with_stdin(bare, &bytes).code(2).says(&["--feed"]);
    let twice =
        ["consolidate", "--feed", "a=events::-", "--feed", "b=events::-", "--tape", tape.to_str().unwrap()];
    common::run_with_stdin(twice, &bytes).code(2).says(&["stdin"]);
}

/// A look at a pipe takes its first bytes away, and they were missing from the tape.
#[test]
fn a_pipe_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", (1..2000).map(order).collect::<Vec<_>>().concat());
    let pipe = dir.path().join("pipe.fix");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let tape = dir.path().join("t");
    consolidate(&tape, &[pipe.to_str().unwrap()]).code(2).says(&["pipe.fix", "only once", "--feed"]);
    for round in 1..=2 {
        let feed = common::orders_option("orders", &pipe);
        let mut cat = std::process::Command::new("sh")
            .args(["-c", "cat \"$0\" > \"$1\""])
            .args([&orders, &pipe])
            .spawn()
            .unwrap();
        let account = consolidate(&tape, &["--feed", &feed]).code(0).json();
        assert!(cat.wait().unwrap().success());
        // Bytes from a pipe are new each time; none of them may count as done.
        assert_eq!(account["messages"], 1999 * round);
        assert_closes(&account);
    }
}

/// The readable form of a tape is its own input: what goes in as lines comes out as the same lines.
#[test]
fn events_as_lines_come_out_as_they_went_in() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    consolidate(&first, &[jse().to_str().unwrap()]).code(0);
    let print = |tape: &Path, full: &[&str]| {
        run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]
            .into_iter()
            .chain(full.iter().map(AsRef::as_ref)))
        .code(0)
        .stdout
    };
    let plain = print(&first, &[]);
    let lines = file(dir.path(), "lines.jsonl", &plain);
    let second = dir.path().join("second");
    consolidate(&second, &[lines.to_str().unwrap()]).code(0);
    assert!(plain == print(&second, &[]), "the lines changed on their way");

    // `--full` prints all that a frame holds; consolidated, it is extra fields of a new event and loses none.
    let full = file(dir.path(), "full.jsonl", print(&first, &["--full"]));
    let third = dir.path().join("third");
    let account = consolidate(&third, &[full.to_str().unwrap()]).code(0).json();
    assert_eq!(account["messages"], account["events"]);
    let (before, after) = (cat(&first, &["--full", "--to", "50"]), cat(&third, &["--full", "--to", "50"]));
    assert_eq!(before.len(), 50);
    for (b, a) in before.iter().zip(&after) {
        for key in ["seq", "ts", "kind", "venue", "instr", "index", "px", "state"] {
            assert_eq!(b[key], a[key], "{key} of {b}");
        }
        assert_eq!(a["src"]["file"], "full.jsonl");
        assert!(a["ext"].to_string().contains(&b["src"].to_string()), "{a} has not kept {b}");
    }
}

/// Lines of events that say `late` once counted as recovered from quarantine, and were doubled by a resume.
#[test]
fn flags_in_lines_do_not_reach_the_bookkeeping() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        r#"{"ts":1,"kind":"news","news_id":"n","flags":["late"],"src":{"id":9,"offset":4},"position":64}"#;
    let lines = file(dir.path(), "l.jsonl", format!("{line}\n"));
    let tape = dir.path().join("t");
    let account = consolidate(&tape, &[lines.to_str().unwrap()]).code(0).json();
    assert_closes(&account);
    let event = &cat(&tape, &["--full"])[0];
    assert_eq!(event["flags"], serde_json::json!(["last"]));
    assert_eq!(event["src"]["id"], 1);
}

/// A message sent again is counted as a duplicate and not repeated.
#[test]
fn what_was_sent_before_is_counted_and_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let again = |n: u32| common::order_with(n, "43=Y|44=10.5|");
    let orders = file(dir.path(), "o.fix", [order(1), order(2), again(1), again(2), order(3)].concat());
    let tape = dir.path().join("t");
    let account = common::consolidate_orders(&orders, &tape, 0);
    assert_closes(&account);
    assert_eq!(account["duplicates"], 2);
    assert_eq!(oids(&tape), ["O1", "O2", "O3"]);
}

/// Names of sessions come from outside. Long ones, ones that are not text, and very many of them once ended the
/// run in a panic, and what a restart read back of them was not what had been written.
#[test]
fn strange_sessions_are_kept_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let message = |session: &str, n: u32, more: &str| {
        let extra = "x".repeat(600);
        fix(&format!(
            "35=8|49={session}|56=U|34={n}|{more}52=20260302-09:00:00|37=O{n}|150=0|54=1|38=1|44=1|48=I|58={extra}|"
        ))
    };
    let mut bytes = Vec::new();
    for i in 0..2500 {
        bytes.extend(message(&format!("S{i}"), 1, ""));
    }
    let long = "L".repeat(100_000);
    bytes.extend(message(&long, 7, ""));
    bytes.extend(message("S3", 1, "43=Y|"));
    bytes.extend(message(&long, 7, "43=Y|"));
    let orders = file(dir.path(), "o.fix", bytes);
    let tapes = [("a", "1", "1048576"), ("b", "4", "5000")].map(|(name, workers, block)| {
        let tape = dir.path().join(name);
        let feed = common::orders_option("orders", &orders);
        let account = consolidate(&tape, &["--feed", &feed, "--workers", workers, "--block-bytes", block])
            .code(0)
            .json();
        assert_closes(&account);
        assert_eq!(account["messages"], 2503);
        // S3 is one of the sessions kept; the long one came after the bound, and its message is not lost.
        assert_eq!(account["duplicates"], 1);
        tape
    });
    assert_same(&tapes[0], &tapes[1], "workers and cuts");
}

/// Places of fields are 16 bits wide; a message with more fields was mapped wrongly, or ended the run.
#[test]
fn a_message_of_very_many_fields_goes_into_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let many = common::order_with(2, &format!("44=1|{}", "58=x|".repeat(70_000)));
    assert!(many.len() < 1 << 20);
    let orders = file(dir.path(), "o.fix", [order(1), many, order(3)].concat());
    let tape = dir.path().join("t");
    let account = common::consolidate_orders(&orders, &tape, 3);
    assert_closes(&account);
    assert_eq!(common::quarantine(&tape)[0]["reason"], "too_large");
    assert_eq!(oids(&tape), ["O1", "O3"]);
}

/// Without `--json` the account is for people, and the words of a rerun say that there was nothing to do.
#[test]
fn the_account_for_people() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let jse = jse();
    let ran = |words: &[&str]| {
        let out = finish(unitape().arg("consolidate").arg(&jse).arg("--tape").arg(&tape)).code(0);
        for word in words {
            assert!(out.text().contains(word), "no {word:?} in {}", out.text());
        }
    };
    ran(&["11,110", "8,587", "2,523", "10,850"]);
    ran(&["nothing left to do"]);
}
