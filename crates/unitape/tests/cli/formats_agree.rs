//! One seeded day of the simulator in all its formats: the same books, the same best prices over all venues, the same alerts.
//!
//! The drop copy had no groups of owners, the records no reference data and no phases: 17, 16 and 13 alerts came of one day.

use crate::common::run;
use serde_json::Value;
use std::path::Path;

/// The tape of a format of the day.
fn tape(dir: &Path, name: &str, feed: &str) -> String {
    let tape = dir.join(name).display().to_string();
    run(["consolidate", "--feed", feed, "--tape", &tape]).code(0);
    tape
}

/// Lines without what depends on how many events there were before.
fn essence(lines: Vec<Value>) -> Vec<Value> {
    let strip = |mut line: Value| {
        let object = line.as_object_mut().unwrap();
        ["seq", "position", "trigger_seq", "detail"].iter().for_each(|name| _ = object.remove(*name));
        line
    };
    lines.into_iter().map(strip).collect()
}

#[test]
fn all_formats_of_a_day_give_the_same_books_and_alerts() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    let d = day.to_str().unwrap();
    let size = ["--events", "30000", "--instruments", "40", "--minutes", "120", "--seed", "11"];
    run(["generate", "market", "--out", d, "--format", "events,fix,fixed"].iter().chain(&size)).code(0);
    let tapes = [
        tape(dir.path(), "events", &format!("day=events:{d}/events.jsonl")),
        tape(dir.path(), "fix", &format!("day=fix:fix44-orders:{d}/market.fix")),
        tape(dir.path(), "fixed", &format!("day=fixed:sim-day:{d}/market.fixed")),
    ];
    let of =
        |args: &[&str]| tapes.each_ref().map(|tape| run(args.iter().chain(&[&tape[..]])).code(0).lines());
    let events = run(["tape", "cat", &tapes[0], "--json"]).code(0).lines();
    for part in 1..6 {
        // The last event of its time, so that the time is the same moment in each.
        let at = (events.len() * part / 6..).find(|n| events[*n]["ts"] != events[n + 1]["ts"]).unwrap();
        let at = events[at]["ts"].to_string();
        let [a, b, c] =
            of(&["book", "show", "--json", "--depth", "50", "--orders", "--at", &at]).map(essence);
        assert!(a.len() > 200, "{}", a.len());
        assert_eq!(a, b, "FIX at {at}");
        assert_eq!(a, c, "records at {at}");
    }
    let [a, b, c] = of(&["book", "bbo", "--json", "--venue", "NBBO"]).map(essence);
    assert!(a.len() > 1_000 && a == b && a == c, "{} {} {}", a.len(), b.len(), c.len());
    let [a, b, c] = of(&["watch", "replay", "--json"]).map(|lines| {
        // Payments are in the lines alone.
        let is_wanted =
            |line: &&Value| line["scenario"].as_str().is_some_and(|id| !id.starts_with("payments_"));
        let alerts = lines.iter().filter(is_wanted).cloned();
        essence(alerts.collect())
    });
    assert!(a.len() >= 9, "{}", a.len());
    assert_eq!(a, b);
    assert_eq!(a, c);
}
