//! Clocks that are ahead: one event dated 2261 made everything that followed `late`, also after a restart, and a merge that
//! waits without bound came to a halt.
#![cfg(unix)]

use crate::common::{self, cat, file, fix, order, run};
use common::run::{Bench, Running, becomes, connect, free_port, orders};
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use unitape_model::{CivilDate, UnixNanos};

/// An order with this time of sending and event.
fn at(n: u32, time: &str) -> Vec<u8> {
    fix(&format!(
        "35=8|49=XLON|56=U|34={n}|52={time}|60={time}|37=O{n}|150=0|54=1|38=100|40=2|207=XLON|48=GB0000000001|22=4|44=10.5|"
    ))
}

/// Our clock after `later`, in the form of FIX.
fn clock(later: Duration) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + later;
    let s = since.as_secs() % 86_400;
    let date = CivilDate::from_utc(UnixNanos(since.as_nanos() as i64)).to_string().replace('-', "");
    format!("{date}-{:02}:{:02}:{:02}.{:03}", s / 3600, s / 60 % 60, s % 60, since.subsec_millis())
}

fn of_feed(bench: &Bench, feed: &str) -> u64 {
    unitape_feed::TapeAccount::load(&bench.tape())
        .map_or(0, |a| a.summary().by_feed.get(feed).map_or(0, |f| f.with_events))
}

fn said(run: &Running) -> String {
    run.said()
}

fn has(event: &Value, flag: &str) -> bool {
    event["flags"].as_array().unwrap().iter().any(|f| f == flag)
}

/// Live, together and apart: the event is compared with the time of its receipt.
#[test]
fn one_event_of_2261_makes_no_other_late() {
    for segments in ["", "segments = \"apart\""] {
        let (a, b) = (free_port(), free_port());
        let feeds =
            [("a", &*format!("listen = \"127.0.0.1:{a}\"")), ("b", &*format!("listen = \"127.0.0.1:{b}\""))];
        let bench = Bench::new(&format!("wait = \"20ms\"\n{segments}"), &feeds);
        let mut sent = 0;
        for _ in 0..2 {
            let run = bench.start();
            let (mut to_a, mut to_b) = (connect(a), connect(b));
            to_a.write_all(&at(sent + 1, &clock(Duration::ZERO))).unwrap();
            to_a.write_all(&at(sent + 2, "22611231-10:00:00")).unwrap();
            assert!(becomes(|| of_feed(&bench, "a") == u64::from(sent / 2 + 2)), "{}", said(&run));
            // Later than what is there, by its clock and by ours.
            std::thread::sleep(Duration::from_millis(5));
            to_b.write_all(&at(sent + 3, &clock(Duration::ZERO))).unwrap();
            to_b.write_all(&at(sent + 4, &clock(Duration::from_secs(60)))).unwrap();
            assert!(becomes(|| of_feed(&bench, "b") == u64::from(sent / 2 + 2)), "{}", said(&run));
            sent += 4;
            let (code, said) = run.stop();
            assert_eq!(code, Some(0), "{said}");
        }
        let events = cat(&bench.tape(), &["--full"]);
        assert_eq!(events.len(), 8);
        let late: Vec<_> = events.iter().filter(|e| has(e, "late")).collect();
        // Events that the first run placed a minute ahead of us are earlier than nothing: the second run begins
        // within that minute.
        let expected = late.iter().all(|e| ["O5", "O7"].contains(&e["oid"].as_str().unwrap()));
        assert!(expected, "{segments}: {late:?}");
        let ahead: Vec<_> = events.iter().filter(|e| has(e, "clock_ahead")).collect();
        let oids: Vec<_> = ahead.iter().map(|e| e["oid"].as_str().unwrap()).collect();
        assert_eq!(oids, ["O2", "O6"], "{segments}");
        assert!(ahead.iter().all(|e| e["ts"].as_i64().unwrap() > 9_200_000_000_000_000_000), "{ahead:?}");
        let places: Vec<_> = events.iter().filter(|e| e["src"]["feed"] == "a").collect();
        assert_eq!(
            places.iter().map(|e| e["oid"].as_str().unwrap()).collect::<Vec<_>>(),
            ["O1", "O2", "O5", "O6"]
        );
        let account = run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]);
        account.code(0);
    }
}

/// The figures and the account count them, and stderr names the first.
#[test]
fn what_leads_is_counted() {
    let bench = Bench::new("", &[("a", "files = [\"a\"]"), ("b", "files = [\"b\"]")]);
    file(bench.dir.path(), "a", [order(1), at(2, "22611231-10:00:00"), orders(3..50)].concat());
    file(bench.dir.path(), "b", orders(100..150));
    let ran = common::finish(bench.command().arg("--json"));
    let lines = ran.lines();
    let figures = lines.iter().find(|l| l["stats"]["feed"] == "a").unwrap();
    assert_eq!(figures["stats"]["clock_ahead"], 1, "{figures}");
    assert_eq!(lines.last().unwrap()["clock_ahead"], 1, "{lines:?}");
    ran.code(0).says(&["feed a: the event at byte", "clock_ahead"]);
}

/// Without bound and without times of receipt, the other feeds are the measure; so it is after stops and restarts, and in
/// `consolidate`.
#[test]
fn a_merge_without_bound_does_not_halt() {
    for segments in ["", "segments = \"apart\""] {
        let run_keys = format!("wait = \"unbounded\"\n{segments}");
        let bench = Bench::new(&run_keys, &[("a", "directory = \"a\""), ("b", "directory = \"b\"")]);
        for dir in ["a", "b"] {
            std::fs::create_dir(bench.path(dir)).unwrap();
        }
        file(&bench.path("a"), "1", [order(1), at(2, "22611231-10:00:00"), orders(3..203)].concat());
        file(&bench.path("b"), "1", [orders(1..100), order(300)].concat());
        let run = bench.start();
        let all = becomes(|| of_feed(&bench, "a") == 202);
        assert!(all, "{} of 202: {}", of_feed(&bench, "a"), said(&run));
        assert_eq!(run.stop().0, Some(0));
        let run = bench.start();
        file(&bench.path("a"), "2", [order(400), at(401, "22611231-10:00:00"), order(500)].concat());
        file(&bench.path("b"), "2", order(450));
        assert!(becomes(|| of_feed(&bench, "b") == 101), "{}", said(&run));
        assert_eq!(run.stop().0, Some(0));
        let events = cat(&bench.tape(), &["--full"]);
        assert!(!events.iter().any(|e| has(e, "late")), "{segments}");
        let ahead: Vec<_> = events.iter().filter(|e| has(e, "clock_ahead")).collect();
        let oids: Vec<_> = ahead.iter().map(|e| e["oid"].as_str().unwrap()).collect();
        assert_eq!(oids, ["O2", "O401"], "{segments}");
    }
}

/// `consolidate` has the same bounds; without them the order is as it was.
#[test]
fn consolidated_files() {
    let dir = tempfile::tempdir().unwrap();
    let a = file(dir.path(), "a", [order(1), at(2, "22611231-10:00:00"), order(30)].concat());
    let b = file(dir.path(), "b", orders(10..50));
    let consolidate = |tape: &str, more: &[&str]| {
        let mut args =
            vec!["consolidate".to_owned(), "--tape".to_owned(), dir.path().join(tape).display().to_string()];
        for (name, path) in [("a", &a), ("b", &b)] {
            args.extend(["--feed".to_owned(), common::orders_option(name, path)]);
        }
        args.extend(more.iter().map(|s| (*s).to_owned()));
        run(args).code(0);
        cat(&dir.path().join(tape), &["--full"])
    };
    let oids = |events: &[Value]| -> Vec<String> {
        events.iter().map(|e| e["oid"].as_str().unwrap().to_owned()).collect()
    };
    let bounded = consolidate("bounded", &[]);
    assert_eq!(oids(&bounded)[..3], ["O1", "O2", "O10"]);
    let place = |events: &[Value]| oids(events).iter().position(|o| o == "O30").unwrap();
    assert!(place(&bounded) < 25, "in its place: {:?}", oids(&bounded));
    let unbounded = consolidate("unbounded", &["--clock-lead", "unbounded"]);
    assert!(!unbounded.iter().any(|e| has(e, "clock_ahead")));
    assert_eq!(oids(&unbounded)[40..], ["O49", "O2", "O30"]);
}

/// A tape of a lone feed has no bound, so one event of 2261 on it put all its later ones behind those of the other tapes, and
/// made all that came to the others later `late`. `--clock-lead` was refused.
#[test]
fn merged_tapes_have_the_bounds_of_merged_feeds() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let a = file(dir.path(), "a.fix", [order(1), at(2, "22611231-10:00:00"), orders(3..40)].concat());
    let b = file(dir.path(), "b.fix", orders(10..50));
    let consolidate = |tape: &str, feeds: &[(&str, &std::path::Path)]| {
        let options =
            feeds.iter().flat_map(|(name, path)| ["--feed".to_owned(), common::orders_option(name, path)]);
        run(["consolidate".to_owned(), "--tape".to_owned(), path(tape)].into_iter().chain(options)).code(0);
    };
    let merge = |tape: &str, more: &[&str]| {
        let (a, b, tape) = (path("a"), path("b"), path(tape));
        let args = ["consolidate", "--tape-in", &a, "--tape-in", &b, "--tape", &tape];
        run(args.into_iter().chain(more.iter().copied())).code(0)
    };
    let events = |tape: &str| -> Vec<(String, bool, bool)> {
        let events = cat(std::path::Path::new(&path(tape)), &["--full"]);
        let oid = |e: &Value| e["oid"].as_str().unwrap().to_owned();
        events.iter().map(|e| (oid(e), has(e, "late"), has(e, "clock_ahead"))).collect()
    };
    consolidate("a", &[("a", &a)]);
    consolidate("b", &[("b", &b)]);
    consolidate("feeds", &[("a", &a), ("b", &b)]);
    merge("merged", &[]).says(&["tape a: the event after position", "clock_ahead"]);
    assert_eq!(events("merged"), events("feeds"));
    assert_eq!(events("merged").iter().filter(|(_, _, ahead)| *ahead).count(), 1);

    merge("unbounded", &["--clock-lead", "unbounded"]);
    assert!(events("unbounded").iter().all(|(_, late, ahead)| !late && !ahead));
    assert_eq!(events("unbounded").last().unwrap().0, "O39", "all of tape a after its wrong one come last");

    // What comes later to the other tape is not late; so it is where both come to an end and begin again.
    let more = file(dir.path(), "more.fix", orders(50..60));
    consolidate("b", &[("b", &b), ("b", &more)]);
    merge("merged", &[]);
    let merged = events("merged");
    assert_eq!(merged.len(), 39 + 50);
    assert!(merged.iter().all(|(_, late, _)| !late), "{merged:?}");

    // Two wrong clocks at one moment do not vouch for each other.
    let wrong = "22611231-10:00:00";
    let c = [at(1, "20260302-09:00:00"), at(2, wrong), at(3, "20260302-09:00:03")].concat();
    let d = [at(11, "20260302-09:00:01"), at(12, wrong), at(13, "20260302-09:00:02")].concat();
    ["a", "b"].iter().for_each(|tape| std::fs::remove_dir_all(path(tape)).unwrap());
    consolidate("a", &[("c", &file(dir.path(), "c.fix", c))]);
    consolidate("b", &[("d", &file(dir.path(), "d.fix", d))]);
    merge("both", &[]);
    let both = events("both");
    let oids = |keep: fn(&&(String, bool, bool)) -> bool| -> Vec<&str> {
        both.iter().filter(keep).map(|(oid, _, _)| oid.as_str()).collect()
    };
    assert_eq!(oids(|(_, _, ahead)| *ahead), ["O2", "O12"]);
    assert_eq!(oids(|(_, _, ahead)| !ahead), ["O1", "O11", "O13", "O3"]);
}
