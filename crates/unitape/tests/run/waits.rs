//! Feeds that are quiet for long and then late: each event of theirs was `late`, because a feed that had been quiet
//! once was not waited for again.
#![cfg(unix)]

use crate::common::{self, cat};
use common::run::{Bench, Running, becomes, connect, free_port};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn orders_of(bench: &Bench, feed: &str) -> u64 {
    unitape_feed::TapeAccount::load(&bench.tape())
        .map_or(0, |a| a.summary().by_feed.get(feed).map_or(0, |f| f.with_events))
}

fn late(bench: &Bench) -> Vec<String> {
    let has = |e: &Value| e["flags"].as_array().unwrap().iter().any(|f| f == "late");
    let events = cat(&bench.tape(), &["--full"]);
    events.iter().filter(|e| has(e)).map(|e| e["oid"].as_str().unwrap().to_owned()).collect()
}

/// Orders of the dense feed in a round.
const DENSE: u32 = 20;

/// A dense feed and one that is rare and late: in each round its order is earlier than the last one of the dense
/// feed, and comes after it, when `ready` says so of the orders that the dense feed has sent.
fn sparse(bench: &Bench, ports: [u16; 2], ready: impl Fn(u32) -> bool) -> Ended {
    let out = bench.path("out");
    let mut command = bench.command();
    command.arg("--json").stdout(std::fs::File::create(&out).unwrap());
    let err = bench.path("err");
    let child = command.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let run = Running { child, err };
    let (mut dense, mut seldom) = (connect(ports[0]), connect(ports[1]));
    for round in 1..4 {
        for n in 0..DENSE {
            dense.write_all(&common::order(1000 * round + 10 * n)).unwrap();
        }
        assert!(becomes(|| ready(round * DENSE)), "{}", run.said());
        seldom.write_all(&common::order(1000 * round + 10 * DENSE - 15)).unwrap();
    }
    // Orders of the dense feed wait for the other no longer; the last order may wait for the dense feed.
    seldom.write_all(&common::order(9_000)).unwrap();
    let all = u64::from(3 * DENSE + 4);
    assert!(becomes(|| orders_of(bench, "dense") + orders_of(bench, "seldom") + 1 >= all), "{}", run.said());
    // The figures of the wait that has ended come with the next ones.
    let waited = || figures(&read(&out), "seldom").is_some_and(|f| f["waited_ns"].as_u64() > Some(0));
    assert!(becomes(waited), "{}", run.said());
    let (code, said) = run.stop();
    assert_eq!(orders_of(bench, "dense") + orders_of(bench, "seldom"), all, "{said}");
    Ended { code, said, figures: read(&out) }
}

/// A run that was stopped.
struct Ended {
    code: Option<i32>,
    said: String,
    figures: Vec<Value>,
}

/// The lines that a run has printed; the last one may be half a line yet.
fn read(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The last figures of a feed.
fn figures(lines: &[Value], feed: &str) -> Option<Value> {
    lines.iter().rev().find(|l| l["stats"]["feed"] == feed).map(|l| l["stats"].clone())
}

/// Together and apart: a message that comes within the wait, but after a later one, is put in its place, each time.
/// The figures report the cost.
#[test]
fn a_sparse_feed_is_waited_for_each_time() {
    for segments in ["", "segments = \"apart\""] {
        let ports = [free_port(), free_port()];
        let listen = ports.map(|p| format!("listen = \"127.0.0.1:{p}\""));
        let feeds = [("dense", &*listen[0]), ("seldom", &*listen[1])];
        let bench = Bench::new(&format!("wait = \"4s\"\nstats = \"20ms\"\n{segments}"), &feeds);
        let ended = sparse(&bench, ports, |_| {
            std::thread::sleep(Duration::from_millis(250));
            true
        });
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        assert_eq!(late(&bench), [""; 0], "{segments}: {}", ended.said);
        let [dense, seldom] = ["dense", "seldom"].map(|feed| figures(&ended.figures, feed).unwrap());
        assert!(dense["held_ns_max"].as_u64().unwrap() > 100_000_000, "{dense}");
        assert!(seldom["waited_ns"].as_u64().unwrap() > 100_000_000, "{seldom}");
    }
}

/// Each feed may have a wait of its own; what is late is counted.
#[test]
fn a_feed_with_a_wait_of_its_own() {
    let ports = [free_port(), free_port()];
    let listen = ports.map(|p| format!("listen = \"127.0.0.1:{p}\""));
    let feeds = [("dense", listen[0].clone()), ("seldom", format!("{}\nwait = \"1ms\"", listen[1]))];
    let feeds: Vec<_> = feeds.iter().map(|(name, input)| (*name, input.as_str())).collect();
    let bench = Bench::new("wait = \"500ms\"\nstats = \"20ms\"", &feeds);
    let ended = sparse(&bench, ports, |sent| orders_of(&bench, "dense") == u64::from(sent));
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(late(&bench), ["O1185", "O2185", "O3185"]);
    assert_eq!(figures(&ended.figures, "seldom").unwrap()["late"], 3);
    let check = common::finish(bench.command().arg("--check")).code(0);
    assert!(check.text().contains("1ms for seldom"), "{}", check.text());
}

/// A feed without a sender is not waited for.
#[test]
fn a_feed_without_a_sender_holds_up_nobody() {
    let ports = [free_port(), free_port()];
    let listen = ports.map(|p| format!("listen = \"127.0.0.1:{p}\""));
    let bench = Bench::new("wait = \"2s\"", &[("a", &listen[0]), ("b", &listen[1])]);
    let run = bench.start();
    let mut to_a = connect(ports[0]);
    drop(connect(ports[1]));
    to_a.write_all(&common::order(1)).unwrap();
    assert!(becomes(|| orders_of(&bench, "a") == 1), "{}", run.said());
    // The other's sender has been gone for longer than the wait: each is placed at once.
    let began = Instant::now();
    for n in 2..40 {
        to_a.write_all(&common::order(n)).unwrap();
        assert!(becomes(|| orders_of(&bench, "a") == u64::from(n)), "{}", run.said());
    }
    let waited = began.elapsed().as_secs() / 2;
    assert!(waited < 38, "each event was held for the whole wait");
    assert_eq!(run.stop().0, Some(0));
}
