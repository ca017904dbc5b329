//! Five feeds of five kinds onto one tape, killed again and again, end in the tape of a run that was left alone.
//!
//! Earlier mistakes: bytes read from a socket and not yet journaled were lost with us; a stream was cut at another
//! byte after each restart; a source was defined twice. `UNITAPE_KILL_ROUNDS` asks for more kills,
//! `UNITAPE_KILL_SEED` for other moments.
#![cfg(unix)]

use crate::common::{self, assert_same, file, unitape};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use unitape_base::capture::write as capture;
use unitape_sim::Rng;

/// The contents of the five feeds.
struct Market {
    tcp: Vec<u8>,
    fifo: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
}

/// A place with everything that a run needs; each has its own copy of what grows.
struct RunFolder {
    dir: PathBuf,
    address: SocketAddr,
}

impl Market {
    fn new(shared: &Path) -> Self {
        let orders = |seed, n| common::flow(seed, n, true).0;
        // Orders again, one to three in a packet, with packets of others and of nobody in between.
        let mut rng = Rng::new(5);
        let mut pcap = Vec::new();
        capture::file_header(&mut pcap);
        let (from, ours) = ("10.0.0.1:9".parse().unwrap(), "239.1.1.1:5000".parse().unwrap());
        let other = "239.1.1.1:5001".parse().unwrap();
        for n in 1..2500u32 {
            let ts = 1_772_434_800_000_000_000 + i64::from(n) * 1_000_000_000;
            let packet: Vec<u8> =
                (0..1 + rng.below(3)).flat_map(|i| common::order(n * 3 + i as u32)).collect();
            capture::datagram(&mut pcap, ts, from, if rng.one_in(9) { other } else { ours }, &packet);
            if rng.one_in(300) {
                capture::drop_note(&mut pcap, ts, 3);
            }
        }
        file(shared, "day.pcap", pcap);
        file(shared, "whole.fix", orders(41, 4000));
        let names = ["01.fix", "02.fix", "03.fix"];
        let files = names.iter().zip(42..).map(|(n, seed)| ((*n).to_owned(), orders(seed, 900))).collect();
        Self { tcp: orders(51, 3000), fifo: orders(52, 3000), files }
    }

    fn bytes_of_files(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

impl RunFolder {
    fn new(dir: PathBuf, shared: &Path) -> Self {
        std::fs::create_dir_all(dir.join("in")).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], common::run::free_port()));
        let made = Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap();
        assert!(made.success());
        let feed = |name: &str, input: &str| {
            format!("[[feed]]\nname = \"{name}\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\n{input}\n\n")
        };
        let shared = shared.display();
        let config = [
            "[tape]\ndir = \"tape\"\nsegment_bytes = 262144\n\n".to_owned(),
            "[run]\nwait = \"unbounded\"\nstats = \"20ms\"\nscan = \"5ms\"\n\n".to_owned(),
            feed("pcap", &format!("files = [\"{shared}/day.pcap\"]\nports = [5000]")),
            feed("tcp", &format!("listen = \"{address}\"\nresume = true\nreceive_times = false")),
            feed("dir", "directory = \"in\""),
            feed("sim", "fifo = \"pipe\"\nreceive_times = false"),
            feed("file", &format!("files = [\"{shared}/whole.fix\"]")),
        ];
        file(&dir, "run.toml", config.concat());
        Self { dir, address }
    }

    fn start(&self, workers: u64) -> Child {
        let out = File::create(self.dir.join("out")).unwrap();
        let err = File::options().append(true).create(true).open(self.dir.join("err")).unwrap();
        let mut command = unitape();
        command.arg("run").arg(self.dir.join("run.toml")).args(["--json", "--workers", &workers.to_string()]);
        command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap()
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.dir.join("err")).unwrap()
    }

    /// The last figures that the run reported about a feed.
    fn figures(&self, feed: &str) -> Option<Value> {
        let text = std::fs::read_to_string(self.dir.join("out")).unwrap();
        let figures = |line: &str| serde_json::from_str::<Value>(line).ok().map(|v| v["stats"].clone());
        text.lines().filter_map(figures).rfind(|f| f["feed"] == feed)
    }

    fn read_bytes(&self, feed: &str) -> u64 {
        self.figures(feed).map_or(0, |f| f["read_bytes"].as_u64().unwrap())
    }

    /// Whether the feed's files are read to their end. A run that is stopped before leaves the rest to the next one.
    fn is_ended(&self, feed: &str) -> bool {
        self.figures(feed).is_some_and(|f| f["state"] == "ended")
    }

    fn journaled(&self, feed: &str) -> u64 {
        std::fs::metadata(self.dir.join("tape.journal").join(feed).join("00000001.raw"))
            .map_or(0, |m| m.len())
    }
}

/// How fast a growing feed may grow: parts of 1000 that may be there at this time.
struct Pace(AtomicU64);

impl Pace {
    fn wait(&self, part: usize, whole: usize) {
        while (part as u64 * 1000) > self.0.load(Ordering::Relaxed) * whole as u64 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// Sends the stream, each time from where the receiver says, until the receiver has it all.
fn send_tcp(address: SocketAddr, bytes: &[u8], pace: &Pace, seed: u64) {
    let mut rng = Rng::new(seed);
    loop {
        let Ok(mut stream) = TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            continue;
        }
        let have = line.trim().strip_prefix("unitape-resume ").unwrap().parse::<usize>().unwrap();
        if have == bytes.len() {
            return;
        }
        let mut at = have;
        while at < bytes.len() {
            let end = (at + 1 + rng.below(3000) as usize).min(bytes.len());
            pace.wait(end, bytes.len());
            if stream.write_all(&bytes[at..end]).is_err() {
                break;
            }
            at = end;
        }
        _ = stream.shutdown(std::net::Shutdown::Write);
        // The receiver closes when it has read to the end.
        _ = reader.read(&mut [0]);
    }
}

fn write_fifo(mut pipe: File, bytes: &[u8], pace: &Pace, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut at = 0;
    while at < bytes.len() {
        let end = (at + 1 + rng.below(4000) as usize).min(bytes.len());
        pace.wait(end, bytes.len());
        pipe.write_all(&bytes[at..end]).unwrap();
        at = end;
    }
}

fn write_files(dir: &Path, files: &[(String, Vec<u8>)], pace: &Pace, seed: u64) {
    let mut rng = Rng::new(seed);
    let whole: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut before = 0;
    for (name, bytes) in files {
        let mut file = File::create(dir.join(name)).unwrap();
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + 1 + rng.below(5000) as usize).min(bytes.len());
            pace.wait(before + end, whole);
            file.write_all(&bytes[at..end]).unwrap();
            at = end;
        }
        before += bytes.len();
    }
}

/// One tape: fed while the run is killed `kills` times; then it is left alone until it has all, and ends in order.
fn one_tape(place: &RunFolder, market: &Market, kills: u64, seed: u64) {
    let pace = Pace(AtomicU64::new(if kills == 0 { 1000 } else { 0 }));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Held open for reading too: a pipe without any end is gone, and what was in it.
        let pipe = File::options().read(true).write(true).open(place.dir.join("pipe")).unwrap();
        let held = pipe.try_clone().unwrap();
        let feeders = [
            scope.spawn(|| send_tcp(place.address, &market.tcp, &pace, seed ^ 1)),
            scope.spawn(|| write_fifo(pipe, &market.fifo, &pace, seed ^ 2)),
            scope.spawn(|| write_files(&place.dir.join("in"), &market.files, &pace, seed ^ 3)),
        ];
        let mut rng = Rng::new(seed);
        for kill in 0..kills {
            let mut child = place.start(1 + rng.below(3));
            let from = pace.0.load(Ordering::Relaxed);
            let upto = 1000 * (kill + 1) / kills;
            let longest_us = if rng.one_in(4) { 15_000 } else { 120_000 };
            let wait_us = 1_000 + rng.below(longest_us);
            let started = Instant::now();
            while started.elapsed() < Duration::from_micros(wait_us) {
                let part = started.elapsed().as_micros() as u64 * (upto - from) / wait_us;
                pace.0.store(from + part, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
            pace.0.store(upto, Ordering::Relaxed);
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "seed {seed}, kill {kill}: {ended:?}: {}", place.said());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut child = place.start(2);
        let (fifo, files) = (market.fifo.len() as u64, market.bytes_of_files());
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("seed {seed}: ended with {status}: {}", place.said());
            }
            let fed = feeders.iter().all(|f| f.is_finished());
            let read = ["pcap", "file"].iter().all(|feed| place.is_ended(feed));
            if fed && read && place.journaled("sim") == fifo && place.read_bytes("dir") >= files {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(held);
        let term = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(term.success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(3), "seed {seed}: {}", place.said());
        done.store(true, Ordering::Relaxed);
    });
    assert!(done.load(Ordering::Relaxed));
}

#[test]
fn five_feeds_survive_being_killed() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 20), number("UNITAPE_KILL_SEED", 1));
    let dir = tempfile::tempdir().unwrap();
    let market = Market::new(dir.path());
    let whole = RunFolder::new(dir.path().join("whole"), dir.path());
    one_tape(&whole, &market, 0, seed);
    let tape = whole.dir.join("tape");
    common::run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    let account = unitape_feed::TapeAccount::load(&tape).unwrap();
    let summary = account.summary();
    assert_eq!(summary.by_feed.len(), 5, "{summary:?}");
    assert!(summary.by_feed.values().all(|f| f.with_events > 1000), "{summary:?}");
    assert!(account.sources.iter().all(|s| s.tally.plus(s.since).is_balanced()));
    // By five kills a tape, so that some runs are long and some are killed before they begin.
    let (mut kills, mut tapes) = (0, 0);
    while kills < rounds {
        let now = (rounds - kills).min(5 + tapes % 3 * 5);
        let place = RunFolder::new(dir.path().join(format!("killed-{tapes}")), dir.path());
        one_tape(&place, &market, now, seed.wrapping_mul(1_000_003) + tapes);
        kills += now;
        assert_same(&tape, &place.dir.join("tape"), &format!("UNITAPE_KILL_SEED={seed}, tape {tapes}"));
        std::fs::remove_dir_all(&place.dir).unwrap();
        tapes += 1;
    }
    println!("{kills} kills, {tapes} tapes, all the same");
}
