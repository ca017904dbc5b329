//! Feeds that are quiet for long and then behind: each event of theirs was `late`, because a feed that had been quiet once was
//! not waited for again.
#![cfg(unix)]

mod common;

use common::cat;
use common::run::{Bench, Running, free_port};
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Whether it becomes so; what hangs is no answer.
fn becomes(mut there: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !there() {
        if begun.elapsed() > Duration::from_secs(30) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn connect(port: u16) -> TcpStream {
    let mut stream = None;
    assert!(becomes(|| {
        stream = TcpStream::connect(("127.0.0.1", port)).ok();
        stream.is_some()
    }));
    stream.unwrap()
}

fn orders_of(bench: &Bench, feed: &str) -> u64 {
    unitape_feed::Account::of(&bench.tape())
        .map_or(0, |a| a.summary().by_feed.get(feed).map_or(0, |f| f.with_events))
}

fn late(bench: &Bench) -> Vec<String> {
    let has = |e: &Value| e["flags"].as_array().unwrap().iter().any(|f| f == "late");
    let events = cat(&bench.tape(), &["--full"]);
    events.iter().filter(|e| has(e)).map(|e| e["oid"].as_str().unwrap().to_owned()).collect()
}

/// A dense feed and one that sends every two seconds and runs 50 ms behind: its order is earlier than the last one of the dense
/// feed, and comes 50 ms after it.
fn sparse(bench: &Bench, ports: [u16; 2]) -> (Option<i32>, String, Vec<Value>) {
    let out = bench.path("out");
    let mut command = bench.command();
    command.arg("--json").stdout(std::fs::File::create(&out).unwrap());
    let err = bench.path("err");
    let child = command.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let run = Running { child, err };
    let (mut dense, mut seldom) = (connect(ports[0]), connect(ports[1]));
    for round in 1..4u32 {
        for n in 0..40 {
            dense.write_all(&common::order(1000 * round + 10 * n)).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
        seldom.write_all(&common::order(1000 * round + 385)).unwrap();
    }
    assert!(becomes(|| orders_of(bench, "dense") + orders_of(bench, "seldom") == 123), "{}", run.said());
    let (code, said) = run.stop();
    let lines = std::fs::read_to_string(out).unwrap();
    (code, said, lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect())
}

fn figures<'a>(lines: &'a [Value], feed: &str) -> &'a Value {
    let of_feed = |l: &&Value| l["stats"]["feed"] == feed;
    &lines.iter().rev().find(of_feed).unwrap()["stats"]
}

/// Together and apart: what comes within the wait of what it is earlier than is in its place, again and again, and the figures
/// say what that costs.
#[test]
fn a_sparse_feed_is_waited_for_each_time() {
    for segments in ["", "segments = \"apart\""] {
        let ports = [free_port(), free_port()];
        let listen = ports.map(|p| format!("listen = \"127.0.0.1:{p}\""));
        let feeds = [("dense", &*listen[0]), ("seldom", &*listen[1])];
        let bench = Bench::new(&format!("wait = \"1s\"\nstats = \"50ms\"\n{segments}"), &feeds);
        let (code, said, lines) = sparse(&bench, ports);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(late(&bench), [""; 0], "{segments}: {said}");
        let (dense, seldom) = (figures(&lines, "dense"), figures(&lines, "seldom"));
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
    let bench = Bench::new("wait = \"10s\"\nstats = \"50ms\"", &feeds);
    let (code, said, lines) = sparse(&bench, ports);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(late(&bench), ["O1385", "O2385", "O3385"]);
    assert_eq!(figures(&lines, "seldom")["late"], 3);
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
