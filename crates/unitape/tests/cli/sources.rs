//! Files that are not what they were when the tape read them: grown, shrunk, replaced, removed, under another name.
//!
//! A file of a directory that grew between two runs was never read further. One of `consolidate` was read again from
//! its start, both with exit code 0. Tomorrow's `log.fix` and a copy of it passed for new sources without a word.
#![cfg(unix)]

use crate::common::{
    self, Ran, assert_closes, assert_same, file, finish, fix, jse, oids, order, quarantine, run, unitape,
};
use common::run::{Bench, Running, orders};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use unitape_sim::Rng;

fn names(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("O{n}")).collect()
}

/// Consolidates one file as feed `orders`.
fn consolidate(path: &Path, tape: &Path, more: &[&str]) -> Ran {
    let feed = common::orders_option("orders", path);
    let args = ["consolidate", "--json", "--feed", &feed, "--tape", tape.to_str().unwrap()];
    run(args.iter().chain(more))
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// 13,343 events instead of 10,850.
#[test]
fn a_grown_file_is_read_on_and_not_again() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(jse()).unwrap();
    let tape = dir.path().join("t");
    // 4,529 messages and a piece of the next one.
    let cut =
        whole.windows(10).enumerate().filter(|(_, w)| w.starts_with(b"8=FIXT.1.1")).nth(4529).unwrap().0;
    let path = file(dir.path(), "jse.fix", &whole[..cut + 40]);
    let feed = format!("jse=fix:jse-fix50-indices:{}", path.display());
    let args = ["consolidate", "--json", "--feed", &feed, "--tape", tape.to_str().unwrap()];
    let account = run(args).code(3).json();
    assert_eq!((&account["messages"], &account["quarantined"]), (&4530.into(), &1.into()));
    file(dir.path(), "jse.fix", &whole);
    let account = run(args).code(0).json();
    assert_closes(&account);
    assert_eq!((&account["messages"], &account["events"]), (&11110.into(), &10850.into()));
    assert_eq!(account["quarantined"], 0, "the message that was cut has left the account: {account}");
    let entries = quarantine(&tape);
    assert_eq!((entries.len(), &entries[0]["superseded"]), (1, &true.into()), "{entries:?}");
    run(["quarantine".as_ref(), "list".as_ref(), tape.as_os_str()]).code(0);
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    // All is done now; and what follows grows from there.
    let before = common::files(&tape);
    assert_eq!(run(args).code(0).json()["events"], 10850);
    assert!(before == common::files(&tape), "a rerun changed a file");
}

/// A file grows in steps, with and without a cut message, and with a bad one at the end that is whole.
#[test]
fn a_file_grows_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let mut bad = order(3);
    let at = bad.len() - 2;
    bad[at] = if bad[at] == b'0' { b'1' } else { b'0' };
    let all = [orders(1..3), bad, orders(4..9)].concat();
    let ends = [
        0,
        70,
        order(1).len(),
        order(1).len() + 5,
        orders(1..3).len() + order(3).len(),
        all.len() - 1,
        all.len(),
    ];
    for (i, end) in ends.into_iter().enumerate() {
        let path = file(dir.path(), "a.fix", &all[..end]);
        let account = consolidate(&path, &tape, &["--workers", &(1 + i % 2).to_string()]);
        let account = account.code(if [0, 2].contains(&i) { 0 } else { 3 }).json();
        assert_closes(&account);
        run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    }
    assert_eq!(oids(&tape), names([1, 2, 4, 5, 6, 7, 8]));
    let open = quarantine(&tape).iter().filter(|e| e["superseded"] != true).count();
    assert_eq!(open, 1, "{:?}", quarantine(&tape));
    let account = consolidate(&dir.path().join("a.fix"), &tape, &[]).code(3).json();
    assert_eq!((&account["messages"], &account["quarantined"]), (&8.into(), &1.into()));
}

/// Lines have their end by a character, packed files and captures by themselves.
#[test]
fn grown_files_of_other_kinds() {
    let line = |n: u32| format!("{{\"ts\":{n},\"kind\":\"news\",\"news_id\":\"n{n}\"}}\n");
    let lines = |numbers: std::ops::Range<u32>| numbers.map(line).collect::<String>().into_bytes();
    let gz = |bytes: &[u8]| {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(bytes).unwrap();
        e.finish().unwrap()
    };
    let (whole, cut) = (lines(0..30), lines(0..20).len() + 11);
    let packed = [gz(&whole[..cut]), gz(&whole[cut..])];
    for (name, first, then) in [
        ("a.jsonl", whole[..cut].to_vec(), whole.clone()),
        ("a.jsonl.gz", packed[0].clone(), packed.concat()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("t");
        let path = file(dir.path(), name, first);
        let feed = format!("a=events:{}", path.display());
        let args = ["consolidate", "--json", "--feed", &feed, "--tape", tape.to_str().unwrap()];
        assert_eq!(run(args).code(3).json()["events"], 20, "{name}");
        file(dir.path(), name, then);
        let account = run(args).code(0).json();
        assert_eq!(
            (&account["messages"], &account["events"], &account["quarantined"]),
            (&30.into(), &30.into(), &0.into()),
            "{name}"
        );
        let ids: Vec<_> =
            common::cat(&tape, &["--kind", "news"]).iter().map(|e| e["news_id"].clone()).collect();
        assert_eq!(ids, (0..30).map(|n| Value::from(format!("n{n}"))).collect::<Vec<_>>());
    }
}

/// Another content under a known name passed for a new source, or was no more than an error that named no way out.
#[test]
fn another_content_under_a_known_name_is_an_error_with_two_ways_out() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let path = file(dir.path(), "log.fix", orders(1..10));
    consolidate(&path, &tape, &[]).code(0);
    for other in [orders(20..40), orders(1..9), [orders(1..5), orders(6..12)].concat(), Vec::new()] {
        file(dir.path(), "log.fix", &other);
        let before = common::files(&tape);
        consolidate(&path, &tape, &[]).code(3).says(&[
            "log.fix",
            "--new-source",
            "new_source",
            "another feed name",
        ]);
        assert!(before == common::files(&tape), "what is refused must change nothing");
    }
    file(dir.path(), "log.fix", orders(20..30));
    let account = consolidate(&path, &tape, &["--new-source"]).code(0).json();
    assert_eq!(account["events"], 19);
    assert_eq!(oids(&tape), names((1..10).chain(20..30)));
    // It is known now, and the option changes nothing for what is as it was, or grows.
    assert_eq!(consolidate(&path, &tape, &[]).code(0).json()["events"], 19);
    file(dir.path(), "log.fix", orders(20..33));
    assert_eq!(consolidate(&path, &tape, &["--new-source"]).code(0).json()["events"], 22);
    // Another feed name is the other way.
    let feed = common::orders_option("other", &path);
    let tape_text = tape.to_str().unwrap();
    file(dir.path(), "log.fix", orders(50..60));
    run(["consolidate", "--feed", &feed, "--tape", tape_text]).code(0);
    assert_eq!(oids(&tape).len(), 32);
}

/// A copy doubled every event.
#[test]
fn the_same_content_under_two_names_is_an_error_unless_it_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (file(dir.path(), "a.fix", orders(1..10)), file(dir.path(), "b.fix", orders(1..10)));
    let (feed_a, feed_b) = (common::orders_option("x", &a), common::orders_option("x", &b));
    let feed_c = common::orders_option("y", &b);
    let tape = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // In one command, of one feed and of two; and in two commands.
    for (name, second) in [("one", &feed_b), ("two", &feed_c)] {
        let tape = tape(name);
        let args = ["consolidate", "--feed", &feed_a, "--feed", second, "--tape", &tape];
        run(args).code(3).says(&["b.fix", "a.fix", "--again"]);
        assert!(!Path::new(&tape).exists(), "nothing was to be made");
        run(args.iter().chain(&["--again"])).code(0);
        assert_eq!(oids(Path::new(&tape)).len(), 18);
        run(["consolidate", "--feed", &feed_a, "--tape", &tape]).code(0).says(&[]);
    }
    let tape_3 = tape("three");
    run(["consolidate", "--feed", &feed_a, "--tape", &tape_3]).code(0);
    run(["consolidate", "--feed", &feed_b, "--tape", &tape_3]).code(3).says(&["--again"]);
    assert_eq!(oids(Path::new(&tape_3)), names(1..10));
    run(["consolidate", "--feed", &feed_b, "--tape", &tape_3, "--again"]).code(0);
    assert_eq!(oids(Path::new(&tape_3)).len(), 18);
    // Empty files hold nothing that could be there twice.
    let (e, f) = (file(dir.path(), "e.fix", ""), file(dir.path(), "f.fix", ""));
    let (e, f) = (common::orders_option("x", &e), common::orders_option("x", &f));
    run(["consolidate", "--feed", &e, "--feed", &f, "--tape", &tape("empty")]).code(0);
}

/// A directory, read once and left alone between runs.
fn folder(follow: bool) -> Bench {
    let bench = Bench::new("", &[("a", &format!("directory = \"in\"\nfollow = {follow}"))]);
    std::fs::create_dir(bench.path("in")).unwrap();
    bench
}

fn run_json(bench: &Bench, more: &[&str]) -> (Ran, Value) {
    let ran = finish(bench.command().arg("--json").args(more));
    let last = ran.text().lines().last().map_or(Value::Null, |l| serde_json::from_str(l).unwrap());
    (ran, last)
}

/// 4,529 of 11,110 messages, exit code 0, and `verify` was content.
#[test]
fn a_file_of_a_directory_that_grew_between_two_runs_is_read_on() {
    let bench = folder(false);
    let dir = bench.path("in");
    let cut = orders(1..7).len() + 30;
    let all = orders(1..20);
    file(&dir, "1", &all[..cut]);
    file(&dir, "2", orders(30..40));
    let (ran, account) = run_json(&bench, &[]);
    ran.code(3);
    assert_eq!((&account["events"], &account["quarantined"]), (&16.into(), &1.into()));
    file(&dir, "1", &all);
    file(&dir, "3", orders(50..60));
    let (ran, account) = run_json(&bench, &[]);
    ran.code(0);
    assert_closes(&account);
    assert_eq!(
        (&account["events"], &account["quarantined"], &account["messages"]),
        (&39.into(), &0.into(), &39.into())
    );
    assert_eq!(oids(&bench.tape()), names((1..7).chain(30..40).chain(7..20).chain(50..60)));
    run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
    let before = common::files(&bench.tape());
    run_json(&bench, &[]).0.code(0);
    assert!(before == common::files(&bench.tape()));
}

/// A file that was read to its end and is another one now, is shorter, or is missing.
#[test]
fn files_of_a_directory_that_were_changed_between_two_runs_are_noticed() {
    let with = |change: &dyn Fn(&Path)| {
        let bench = folder(false);
        bench.configure("", &[("a", "directory = \"in\"\nfollow = false"), ("b", "files = [\"b.fix\"]")]);
        let dir = bench.path("in");
        file(&dir, "1", orders(1..10));
        file(&dir, "2", orders(20..30));
        file(bench.dir.path(), "b.fix", orders(100..110));
        run_json(&bench, &[]).0.code(0);
        change(&dir);
        // The other feed continues.
        append(&bench.path("b.fix"), &orders(110..115));
        let (ran, account) = run_json(&bench, &[]);
        assert_eq!(account["by_feed"]["b"]["events"], 15, "{account}");
        (ran, bench)
    };
    let mut changed = orders(1..10);
    let at = changed.len() - 60;
    changed[at] ^= 1;
    // A file of the same length, and the same in its first message.
    let (ran, bench) = with(&|dir| _ = file(dir, "1", &changed));
    ran.code(3).says(&["feed a", "1 of feed a", "--new-source", "another feed name"]);
    let (ran, _) = run_json(&bench, &["--new-source"]);
    let _ = ran.code(3);
    let events = oids(&bench.tape());
    assert_eq!(events.iter().filter(|o| *o == "O1").count(), 2, "{events:?}");
    let (ran, _) = with(&|dir| File::options().write(true).open(dir.join("2")).unwrap().set_len(50).unwrap());
    ran.code(3).says(&["2 of feed a", "50 bytes", "--new-source"]);
    let (ran, _) = with(&|dir| _ = file(dir, "2", orders(60..90)));
    ran.code(3).says(&["2 of feed a", "--new-source"]);
    // A file that was read whole and moved is reported, and is no error.
    let (ran, _) = with(&|dir| std::fs::remove_file(dir.join("1")).unwrap());
    ran.code(0).says(&["a: 1 files", "1"]);
    // A copy, and a file that was renamed.
    let (ran, _) = with(&|dir| _ = std::fs::copy(dir.join("1"), dir.join("3")).unwrap());
    ran.code(3).says(&["3 of feed a", "holds what 1 of feed a holds", "--again"]);
    let (ran, bench) = with(&|dir| std::fs::rename(dir.join("2"), dir.join("4")).unwrap());
    ran.code(3).says(&["4 of feed a", "--again"]);
    run_json(&bench, &["--again"]).0.code(0);
    let (ran, _) = with(&|dir| {
        // Two new ones that are the same, and two that are empty.
        file(dir, "5", orders(40..50));
        file(dir, "6", orders(40..50));
    });
    ran.code(3).says(&["6 of feed a", "holds what 5 of feed a holds"]);
    let (ran, _) = with(&|dir| {
        file(dir, "5", "");
        file(dir, "6", "");
    });
    ran.code(0);
}

/// A file that was not read to its end is not there any more.
#[test]
fn a_file_that_was_being_followed_and_is_gone_ends_its_feed() {
    let bench = folder(true);
    file(&bench.path("in"), "1", orders(1..10));
    let mut running = bench.start();
    bench.has(&mut running, 9);
    assert_eq!(running.stop().0, Some(0));
    std::fs::rename(bench.path("in/1"), bench.path("elsewhere")).unwrap();
    let running = bench.start();
    let (code, said) = running.ends();
    assert!(
        code == Some(3) && said.contains("1 of feed a") && said.contains("--new-source"),
        "{code:?} {said}"
    );
    // The configuration says the same as the option.
    bench.configure("", &[("a", "directory = \"in\"\nnew_source = true")]);
    file(&bench.path("in"), "2", orders(10..12));
    let mut running = bench.start();
    bench.has(&mut running, 11);
    assert_eq!(running.stop().0, Some(0));
}

/// A file that may still grow was compared up to its last mark of progress, and a short one has none: another
/// content, a shorter file and a copy passed with exit code 0, and the copy's orders were on the tape twice.
#[test]
fn a_followed_file_that_was_changed_between_two_runs_is_noticed() {
    for killed in [false, true] {
        let with = |change: &dyn Fn(&Path)| {
            let bench = folder(true);
            let dir = bench.path("in");
            file(&dir, "1", orders(1..10));
            let mut running = bench.start();
            bench.has(&mut running, 9);
            if killed {
                running.child.kill().unwrap();
                running.child.wait().unwrap();
            } else {
                assert_eq!(running.stop().0, Some(0));
            }
            change(&dir);
            bench
        };
        let ends = |bench: &Bench, words: &[&str]| {
            let (code, said) = bench.start().ends();
            assert!(code == Some(3) && words.iter().all(|w| said.contains(w)), "{killed}: {code:?} {said}");
            assert_eq!(oids(&bench.tape()), names(1..10), "{killed}");
        };
        let goes_on = |bench: &Bench, upto: u32| {
            let mut running = bench.start();
            bench.has(&mut running, u64::from(upto) - 1);
            let (code, said) = running.stop();
            assert_eq!((code, oids(&bench.tape())), (Some(0), names(1..upto)), "{killed}: {said}");
            said
        };
        // A file of the same length, and the same but for the last message.
        let mut changed = orders(1..10);
        let at = changed.len() - 20;
        changed[at] ^= 1;
        ends(&with(&|dir| _ = file(dir, "1", &changed)), &["1 of feed a", "--new-source"]);
        ends(&with(&|dir| _ = file(dir, "1", orders(1..6))), &["1 of feed a", "bytes", "--new-source"]);
        let copy = |dir: &Path| _ = std::fs::copy(dir.join("1"), dir.join("2")).unwrap();
        ends(&with(&copy), &["2 of feed a", "holds what 1 of feed a holds", "--again"]);
        let copy_and_more = |dir: &Path| {
            copy(dir);
            append(&dir.join("2"), &orders(10..12));
        };
        ends(&with(&copy_and_more), &["2 of feed a", "holds what 1 of feed a holds", "--again"]);
        let bench = with(&|dir| append(&dir.join("1"), &orders(10..12)));
        goes_on(&bench, 12);
        // The notes on it are lost: then the tape alone is asked, and the run says so.
        std::fs::write(bench.tape().join("run/sources"), "{}\n").unwrap();
        append(&bench.path("in/1"), &orders(12..14));
        let said = goes_on(&bench, 14);
        assert!(said.contains("run/sources: its checksum does not match"), "{said}");
        append(&bench.path("in/1"), &orders(14..15));
        let said = goes_on(&bench, 15);
        assert!(!said.contains("run/sources"), "{said}");
    }
}

/// After it was once permitted to read another content of the same name, or to continue without a file, the next run
/// refused the feed for ever. It compared the file with the first source of that name.
#[test]
fn what_was_permitted_once_holds() {
    let follow = "directory = \"in\"\nfollow = true";
    for removed in [false, true] {
        let bench = folder(true);
        let dir = bench.path("in");
        file(&dir, "1", orders(1..10));
        let mut running = bench.start();
        bench.has(&mut running, 9);
        assert_eq!(running.stop().0, Some(0));
        std::fs::remove_file(dir.join("1")).unwrap();
        let name = if removed { "2" } else { "1" };
        file(&dir, name, orders(20..30));
        bench.configure("", &[("a", &format!("{follow}\nnew_source = true"))]);
        let mut running = bench.start();
        bench.has(&mut running, 19);
        assert_eq!(running.stop().0, Some(0));
        bench.configure("", &[("a", follow)]);
        let (out, err) = (bench.path("out"), bench.path("err"));
        let to = |path| File::create(path).unwrap();
        let child = bench.command().arg("--json").stdout(to(&out)).stderr(to(&err)).spawn().unwrap();
        let mut running = Running { child, err };
        append(&dir.join(name), &orders(30..35));
        bench.has(&mut running, 24);
        let (code, said) = running.stop();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(oids(&bench.tape()), names((1..10).chain(20..35)));
        let account = std::fs::read_to_string(out).unwrap();
        let account: Value = serde_json::from_str(account.lines().last().unwrap()).unwrap();
        assert_closes(&account);
        assert_eq!(account["messages"], 24);
        // The new file is compared like any other.
        file(&dir, name, orders(40..60));
        let (code, said) = bench.start().ends();
        assert!(code == Some(3) && said.contains(&format!("{name} of feed a")), "{code:?} {said}");
    }
}

/// A file that an earlier run read to its end grew during a run: nobody looked, and exit code 0.
#[test]
fn growth_of_a_file_that_an_earlier_run_read_is_noticed() {
    let bench = folder(false);
    let dir = bench.path("in");
    file(&dir, "1", orders(1..10));
    run_json(&bench, &[]).0.code(0);
    bench.configure("", &[("a", "directory = \"in\"\nfollow = true\nrestart = \"never\"")]);
    let mut running = bench.start();
    file(&dir, "2", orders(20..30));
    bench.has(&mut running, 19);
    append(&dir.join("1"), &orders(10..12));
    let (code, said) = running.ends();
    assert!(code.is_some_and(|code| code != 0), "{said}");
    assert!(said.contains("has changed after it was read to its end"), "{said}");
    bench.configure("", &[("a", "directory = \"in\"\nfollow = true")]);
    let mut running = bench.start();
    bench.has(&mut running, 21);
    assert_eq!(running.stop().0, Some(0));
}

/// A followed file that is cut and rewritten beyond what was read of it is no shorter. Its first messages were never
/// read.
#[test]
fn a_followed_file_that_is_written_anew_is_noticed() {
    let bench = Bench::new("", &[("a", "directory = \"in\"\nfollow = true\nrestart = \"never\"")]);
    let dir = bench.path("in");
    std::fs::create_dir(&dir).unwrap();
    file(&dir, "1", orders(1..10));
    let mut running = bench.start();
    bench.has(&mut running, 9);
    // At once, as it looks to one that looks now and then.
    let written = File::options().write(true).open(dir.join("1")).unwrap().write_all(&orders(21..40));
    written.unwrap();
    let (code, said) = running.ends();
    assert!(code.is_some_and(|code| code != 0), "{said}");
    assert!(said.contains("it was rewritten while it was read"), "{said}");
}

/// `files` of a run follow the same rule as those of `consolidate`.
#[test]
fn files_of_a_run_follow_the_same_rule() {
    let bench = Bench::new("", &[("a", "files = [\"a.fix\"]"), ("b", "files = [\"b.fix\"]")]);
    let cut = order(5).len() / 2;
    file(bench.dir.path(), "a.fix", [orders(1..5), order(5)[..cut].to_vec()].concat());
    file(bench.dir.path(), "b.fix", orders(20..30));
    let (ran, account) = run_json(&bench, &[]);
    ran.code(3);
    assert_eq!(account["events"], 14);
    file(bench.dir.path(), "a.fix", orders(1..9));
    let (ran, account) = run_json(&bench, &[]);
    ran.code(0);
    assert_eq!((&account["events"], &account["quarantined"]), (&18.into(), &0.into()));
    file(bench.dir.path(), "a.fix", orders(50..60));
    append(&bench.path("b.fix"), &orders(30..32));
    let (ran, account) = run_json(&bench, &[]);
    ran.code(3).says(&["feed a", "a.fix of feed a", "--new-source"]);
    assert_eq!(account["events"], 20, "b continues");
    let (ran, account) = run_json(&bench, &["--new-source"]);
    ran.code(0);
    assert_eq!(account["events"], 30);
}

/// Killed at any moment of a run over a file that has grown, and started again: the tape is that of a run that was left
/// alone. `UNITAPE_KILL_ROUNDS` asks for more kills, `UNITAPE_KILL_SEED` for other moments.
#[test]
fn a_run_over_grown_files_that_is_killed_ends_in_the_same_tape() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 24), number("UNITAPE_KILL_SEED", 1));
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = common::flow(77, 9_000, true);
    let (cut, cut_b) = (bytes.len() / 3, bytes.len() / 2 + 1_234);
    let place = |name: &str, end: (usize, usize)| {
        let base = dir.path().join(name);
        std::fs::create_dir_all(base.join("in")).unwrap();
        file(&base, "a.fix", &bytes[..end.0]);
        // The same messages of another session, so that it is no copy.
        let other = String::from_utf8_lossy(&bytes[..end.1]).replace("8=FIX.4.4", "8=FIX.4.2").into_bytes();
        file(&base.join("in"), "1", other);
        let feed = |name: &str, input: &str| {
            format!("[[feed]]\nname = \"{name}\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\n{input}\n")
        };
        let config = [
            "[tape]\ndir = \"tape\"\nsegment_bytes = 262144\n[run]\nwait = \"unbounded\"\n".to_owned(),
            feed("a", "files = [\"a.fix\"]"),
            feed("b", "directory = \"in\"\nfollow = false"),
        ];
        file(&base, "run.toml", config.concat());
        base
    };
    let command = |base: &Path, workers: u64| {
        let mut command = unitape();
        command.arg("run").arg(base.join("run.toml")).args(["--workers", &workers.to_string()]);
        command
    };
    let steps = [(cut, cut_b), (bytes.len(), bytes.len())];
    let since = std::time::Instant::now();
    for step in steps {
        let base = place("whole", step);
        assert_eq!(finish(&mut command(&base, 2)).code, Some(3));
    }
    let whole_us = since.elapsed().as_micros() as u64 / 2;
    let (mut kills, mut tapes) = (0, 0);
    while kills < rounds {
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003) + tapes);
        let name = format!("killed-{tapes}");
        for step in steps {
            let base = place(&name, step);
            loop {
                let mut command = command(&base, 1 + rng.below(3));
                let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
                let longest_us = if rng.one_in(3) { 30_000 } else { whole_us };
                std::thread::sleep(Duration::from_micros(rng.below(longest_us)));
                if let Some(status) = child.try_wait().unwrap() {
                    let said = child.wait_with_output().unwrap();
                    let said = String::from_utf8_lossy(&said.stderr);
                    assert_eq!(status.code(), Some(3), "UNITAPE_KILL_SEED={seed}, tape {tapes}: {said}");
                    break;
                }
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
        let (whole, tape) = (dir.path().join("whole/tape"), dir.path().join(&name).join("tape"));
        assert_same(&whole, &tape, &format!("UNITAPE_KILL_SEED={seed}, tape {tapes}, {kills} kills"));
        tapes += 1;
    }
    println!("{kills} kills, {tapes} tapes, all the same");
}

/// A tape that was read with another mapping said "nothing left to do", and so nobody learned what to do.
#[test]
fn another_mapping_is_said_and_points_to_retry() {
    let dir = tempfile::tempdir().unwrap();
    let shown = run(["mapping", "show", "fix44-orders"]).code(0);
    let mended = file(dir.path(), "mended.toml", format!("{}\n# mended\n", shown.text()));
    let path = file(dir.path(), "a.fix", orders(1..5));
    let tape = dir.path().join("t");
    consolidate(&path, &tape, &[]).code(0);
    let feed = format!("orders=fix:{}:{}", mended.display(), path.display());
    let args = ["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()];
    run(args).code(0).says(&["orders/a.fix", "was read with mapping", "quarantine retry", "--mapping"]);
    let config = format!(
        "[tape]\ndir = \"t\"\n[[feed]]\nname = \"orders\"\nformat = \"fix\"\nmapping = \"{}\"\nfiles = [\"a.fix\"]\n",
        mended.display()
    );
    let config = file(dir.path(), "run.toml", config);
    run([OsStr::new("run"), config.as_os_str()]).code(0).says(&["quarantine retry", "--mapping"]);
}

/// Messages that a retry had recovered kept every later run at exit code 3.
#[test]
fn what_a_retry_recovered_is_no_flaw_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let body = "35=U9|49=XLON|56=U|34=2|52=20260302-09:00:00|60=20260302-09:00:00|37=O2|150=0|54=1|38=1|44=1|207=XLON|48=GB01|";
    let path = file(dir.path(), "a.fix", [order(1), fix(body), order(3)].concat());
    let tape = dir.path().join("t");
    consolidate(&path, &tape, &[]).code(3);
    let shown = run(["mapping", "show", "fix44-orders"]).code(0);
    let rule = "[[rule]]\nwhen = { \"35\" = \"U9\" }\n[[rule.event]]\nkind = \"session\"\n[rule.event.fields]\nvenue = \"207\"\nphase = \"37\"\n";
    let mended = file(dir.path(), "mended.toml", format!("{}\n{rule}", shown.text()));
    let retry = ["quarantine", "retry", tape.to_str().unwrap(), "--mapping", mended.to_str().unwrap()];
    run(retry).code(0);
    let account = consolidate(&path, &tape, &[]).code(0).json();
    assert_eq!((&account["quarantined"], &account["recovered"]), (&1.into(), &1.into()));
    assert_closes_but_recovered(&account);
}

fn assert_closes_but_recovered(account: &Value) {
    let n = |key: &str| account[key].as_u64().unwrap();
    let f = &account["by_feed"]["orders"];
    assert_eq!(
        n("messages"),
        f["with_events"].as_u64().unwrap() + n("quarantined") + n("duplicates") + n("ignored")
    );
}

/// A user who pressed Ctrl-C read that nothing was left to do.
#[test]
fn after_an_interrupt_the_summary_does_not_say_that_all_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let mut command = unitape();
    command.args(["consolidate", "--feed", "a=fix:fix44-orders:-", "--tape"]).arg(&tape);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    while !tape.join("segments").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("stopped") && !said.contains("nothing left to do"), "{said}");
}

/// A message that was refused before anything had a time was sealed into a day of 1970.
#[test]
fn events_without_a_time_are_not_of_1970() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "a.fix", [b"8=FIX.4.4 and no more of it".to_vec(), orders(1..4)].concat());
    let tape = dir.path().join("t");
    consolidate(&path, &tape, &[]).code(3);
    let store = dir.path().join("s");
    let args = ["store", "seal", tape.to_str().unwrap(), "--store", store.to_str().unwrap()];
    let ran = run(args);
    assert!(!ran.text().contains("1970") && ran.text().contains("2026-03-02"), "{ran:?}");
    let ran = ran.code(0);
    assert!(ran.text().contains("undated (1)"), "{}", ran.text());
    let info = run(["store", "info", store.to_str().unwrap()]).code(0);
    assert!(!info.text().contains("1970"), "{}", info.text());
}
