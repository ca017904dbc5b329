//! Seeded rounds of faults while a run is live. Each ends in the tape of a run that nothing disturbed.
//!
//! Two streams and a directory are merged without bound. While they bring their messages, the run and its processes are killed,
//! peers reset, stall, lie and come twice, the disk of a journal is full, descriptors are exhausted, and our clock jumps.
//! Where a feed has failed for a while the merge did not wait for it: then each feed has all of its messages once and in
//! order. In all other rounds the tape is the same byte for byte.
//!
//! Rounds by `UNITAPE_LIVE_ROUNDS` (20), seed by `UNITAPE_SEED`; a failure names both.
#![cfg(target_os = "linux")]

use crate::common::{self, file, files, oids, order};
use common::run::{Bench, Running, becomes, free_port};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use unitape_sim::Rng;

/// Refuses and lies as long as a file of the fault's name is in the directory `FAULTS`.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_up(const char *name) {
    char path[4096];
    const char *dir = getenv("FAULTS");
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "/nowhere", name);
    return access(path, F_OK) == 0;
}

static int of_journal(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return strstr(path, "/tape.journal/") != NULL;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    if (is_up("full") && of_journal(fd)) { errno = ENOSPC; return -1; }
    return real(fd, bytes, length, at);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    static int (*real)(int, struct sockaddr *, socklen_t *, int);
    if (!real) real = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    if (is_up("descriptors")) { errno = EMFILE; return -1; }
    return real(fd, address, length, flags);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, time);
    if (done == 0 && clock == CLOCK_REALTIME) {
        if (is_up("ahead")) time->tv_sec += 400000000;
        if (is_up("back")) time->tv_sec -= 400000000;
    }
    return done;
}
"#;

/// The fault of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    ParentKilled,
    ChildKilled,
    ChildAndParentKilled,
    Stopped,
    PeerReset,
    PeerStalls,
    PeerComesTwice,
    PeerLeavesAtOnce,
    DiskFull,
    NoDescriptors,
    ClockAhead,
    ClockBack,
}

const FAULTS: [Fault; 12] = [
    Fault::ParentKilled,
    Fault::ChildKilled,
    Fault::ChildAndParentKilled,
    Fault::Stopped,
    Fault::PeerReset,
    Fault::PeerStalls,
    Fault::PeerComesTwice,
    Fault::PeerLeavesAtOnce,
    Fault::DiskFull,
    Fault::NoDescriptors,
    Fault::ClockAhead,
    Fault::ClockBack,
];

impl Fault {
    /// Whether a feed fails meanwhile, so that the merge does not wait for it.
    fn fails_a_feed(self) -> bool {
        matches!(self, Fault::DiskFull | Fault::NoDescriptors)
    }
}

#[test]
fn live_faults_change_no_tape() {
    let (rounds, seed) = (number("UNITAPE_LIVE_ROUNDS", 20), number("UNITAPE_SEED", 20_261_123));
    let since = Instant::now();
    let shared = tempfile::tempdir().unwrap();
    let shim = shim(shared.path());
    let mut whole = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    for n in 0..rounds {
        let mut rng = Rng::new(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9)));
        let (content, apart, rotates) = (rng.below(3), rng.one_in(2), rng.one_in(3));
        let undisturbed = whole.entry((content, apart)).or_insert_with(|| {
            let mut live = Live::new(content, apart, false, &shim);
            live.finish(false).unwrap_or_else(|what| panic!("undisturbed, content {content}: {what}"));
            live.has_all().unwrap();
            files(&live.bench.tape())
        });
        let mut live = Live::new(content, apart, rotates, &shim);
        let mut faults = Vec::new();
        let ended = live.disturb(&mut rng, &mut faults);
        let fails_a_feed = faults.iter().any(|fault| fault.fails_a_feed());
        let ended = ended.and_then(|()| live.finish(fails_a_feed));
        // A journal that continues in further files makes sources of them.
        let same = !rotates && !fails_a_feed;
        let ended = ended.and_then(|()| live.has_all()).and_then(|()| {
            match !same || files(&live.bench.tape()) == *undisturbed {
                true => Ok(()),
                false => Err("another tape".to_owned()),
            }
        });
        if let Err(what) = ended {
            let said = std::fs::read_to_string(live.bench.path("err")).unwrap_or_default();
            wrong.push(format!("seed {seed}, round {n}, apart {apart}, {faults:?}: {what}\n{said}"));
        }
    }
    record(seed, rounds, wrong.len(), since);
    let all = wrong.len();
    wrong.truncate(5);
    assert!(all == 0, "{all} of {rounds} rounds, the first of them:\n{}", wrong.join("\n"));
}

/// A run with the messages for it, and how many of them are sent.
struct Live {
    bench: Bench,
    shim: PathBuf,
    run: Option<Running>,
    senders: [Sender; 2],
    /// Contents of the directory, and how many of them are there.
    batches: Vec<Vec<u8>>,
    put: usize,
    /// The orders of each feed; after its last one no feed waits.
    orders: [Vec<String>; 3],
}

/// A sender that resumes.
struct Sender {
    port: u16,
    bytes: Vec<u8>,
    connection: Option<(TcpStream, usize)>,
}

impl Live {
    fn new(content: u64, apart: bool, rotates: bool, shim: &Path) -> Self {
        let ports = [free_port(), free_port()];
        let listen = ports.map(|port| {
            format!("listen = \"127.0.0.1:{port}\"\nresume = true\nreceive_times = false\nbackoff = \"50ms\"")
        });
        let feeds = [
            ("a", listen[0].as_str()),
            ("b", "directory = \"in\"\nreceive_times = false"),
            ("c", listen[1].as_str()),
        ];
        let apart = if apart { "segments = \"apart\"" } else { "" };
        let rotation = if rotates { "journal_file_bytes = 8000" } else { "" };
        let bench = Bench::new(&format!("wait = \"unbounded\"\n{rotation}\n{apart}"), &feeds);
        std::fs::create_dir(bench.path("in")).unwrap();
        let mut rng = Rng::new(content);
        let mut bytes = [Vec::new(), Vec::new(), Vec::new()];
        let mut batches = Vec::new();
        let mut orders = [Vec::new(), Vec::new(), Vec::new()];
        for n in 1..300 {
            let feed = if n % 3 == 0 { rng.below(3) as usize } else { n as usize % 3 };
            let mut message = order(n);
            if rng.one_in(40) {
                // A peer that lies: its checksum is that of another message.
                let at = message.windows(4).position(|w| w == b"|44=" || w == b"\x0144=").unwrap() + 4;
                message[at] ^= 1;
            } else {
                orders[feed].push(format!("O{n}"));
            }
            bytes[feed].extend(message);
            if rng.one_in(60) {
                batches.push(std::mem::take(&mut bytes[1]));
            }
        }
        // The last message of each lets all that was before it onto the tape; only that of the first feed follows.
        for (feed, n) in (0..3).zip(20_000..) {
            bytes[feed].extend(order(if feed == 0 { 20_000 } else { n + 10 }));
        }
        let [a, last, c] = bytes;
        batches.push(last);
        batches.retain(|batch| !batch.is_empty());
        let [a, c] =
            [(ports[0], a), (ports[1], c)].map(|(port, bytes)| Sender { port, bytes, connection: None });
        let mut live =
            Self { bench, shim: shim.to_owned(), run: None, senders: [a, c], batches, put: 0, orders };
        live.start();
        live
    }

    fn start(&mut self) {
        let err = self.bench.path("err");
        let to = std::fs::File::options().create(true).append(true).open(&err).unwrap();
        let mut command = self.bench.command();
        command.env("LD_PRELOAD", &self.shim).env("FAULTS", self.bench.dir.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn().unwrap();
        self.run = Some(Running { child, err });
    }

    fn kill(&mut self) {
        if let Some(mut run) = self.run.take() {
            run.child.kill().unwrap();
            run.child.wait().unwrap();
        }
    }

    fn kill_child(&self, rng: &mut Rng) {
        let id = self.run.as_ref().map_or(0, |run| run.child.id());
        let mut children = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.extend(text.split_whitespace().map(str::to_owned));
        }
        if !children.is_empty() {
            let child = &children[rng.below(children.len() as u64) as usize];
            // It may have ended just now.
            _ = Command::new("kill").args(["-KILL", child]).stderr(Stdio::null()).status();
        }
    }

    /// Brings something, and makes something go wrong, a few times.
    fn disturb(&mut self, rng: &mut Rng, faults: &mut Vec<Fault>) -> Result<(), String> {
        for _ in 0..3 + rng.below(4) {
            for sender in &mut self.senders {
                if !rng.one_in(3) {
                    sender.send(rng.below(4_000) as usize);
                }
            }
            if rng.one_in(2) {
                self.put_early();
            }
            let fault = FAULTS[rng.below(FAULTS.len() as u64) as usize];
            faults.push(fault);
            let i = rng.below(2) as usize;
            match fault {
                Fault::ParentKilled => self.kill(),
                Fault::ChildKilled => self.kill_child(rng),
                Fault::ChildAndParentKilled => {
                    self.kill_child(rng);
                    self.kill();
                }
                Fault::Stopped => {
                    // A process that has just been started would die of the signal.
                    becomes(|| self.run.as_ref().is_none_or(|run| catches_interrupts(run.child.id())));
                    let (code, said) = self.run.take().map(Running::stop).unwrap_or_default();
                    // A quarantined message is a flaw; nothing else is. A process that was killed just before is an
                    // error of its own.
                    let killed = faults.contains(&Fault::ChildKilled);
                    let expected = matches!(code, Some(0 | 3)) || killed && code == Some(1);
                    if !expected {
                        return Err(format!("the stopped run ended with {code:?}: {said}"));
                    }
                }
                Fault::PeerReset => self.senders[i].reset(),
                Fault::PeerStalls => {
                    self.senders[i].send(1 + rng.below(100) as usize);
                    std::thread::sleep(Duration::from_millis(rng.below(30)));
                }
                Fault::PeerComesTwice => {
                    // A run that has just been killed may not know the first one any more.
                    if self.senders[i].connect()
                        && let Some((mut second, None)) = open(self.senders[i].port)
                    {
                        _ = second.write_all(&order(7_777));
                    }
                }
                Fault::PeerLeavesAtOnce => {
                    self.senders[i].connection = None;
                    _ = TcpStream::connect(("127.0.0.1", self.senders[i].port));
                }
                Fault::DiskFull => self.during("full", rng, i),
                Fault::NoDescriptors => {
                    self.senders[i].connection = None;
                    self.during("descriptors", rng, i);
                }
                Fault::ClockAhead => self.during("ahead", rng, i),
                Fault::ClockBack => self.during("back", rng, i),
            }
            if self.run.is_none() {
                self.senders.iter_mut().for_each(|sender| sender.connection = None);
                self.start();
            }
        }
        Ok(())
    }

    /// Brings something while a fault is there.
    fn during(&mut self, fault: &str, rng: &mut Rng, i: usize) {
        let path = file(self.bench.dir.path(), fault, "");
        if fault == "descriptors" {
            // It connects, and is not accepted before there are descriptors.
            _ = TcpStream::connect(("127.0.0.1", self.senders[i].port));
        } else {
            self.senders[i].send(rng.below(2_000) as usize);
        }
        std::thread::sleep(Duration::from_millis(rng.below(60)));
        std::fs::remove_file(path).unwrap();
    }

    /// Brings the next batch unless it is the last one.
    fn put_early(&mut self) {
        if self.put + 1 < self.batches.len() {
            self.put_next();
        }
    }

    fn put_next(&mut self) {
        if let Some(batch) = self.batches.get(self.put) {
            let new = file(self.bench.dir.path(), "new", batch);
            std::fs::rename(new, self.bench.path("in").join(format!("{:03}", self.put))).unwrap();
            self.put += 1;
        }
    }

    /// Brings the rest, waits for it on the tape, and stops. The others wait for what the directory brings last: were it placed
    /// while they still fail, nothing would end their wait.
    fn finish(&mut self, fails_a_feed: bool) -> Result<(), String> {
        (1..self.batches.len()).for_each(|_| self.put_early());
        for sender in &mut self.senders {
            sender.connection = None;
            if !becomes(|| sender.is_delivered()) {
                return Err(format!("port {} does not receive all", sender.port));
            }
        }
        self.put_next();
        // The last order of the first feed is placed, too.
        let (tape, orders) = (self.bench.tape(), 1 + self.orders.iter().map(Vec::len).sum::<usize>() as u64);
        let placed = || {
            let account = unitape_feed::TapeAccount::load(&tape);
            account.map_or(0, |a| a.summary().by_kind.get("order_new").copied().unwrap_or(0))
        };
        // Where a feed has failed, the last order of another one may come before some of its own.
        let mut since = Instant::now();
        let all = becomes(|| {
            if fails_a_feed && since.elapsed() > Duration::from_secs(2) {
                // The merge still took a feed for failed when the last batch came. The next one ends the wait.
                since = Instant::now();
                self.batches.push(order(20_100 + self.put as u32));
                self.put_next();
            }
            placed() >= orders && self.has_all().is_ok()
        });
        if !all {
            return Err(format!("{} of {orders} orders are placed: {:?}", placed(), self.has_all()));
        }
        let (code, said) = self.run.take().map(Running::stop).unwrap_or_default();
        match code {
            Some(0 | 3) => Ok(()),
            code => Err(format!("it ended with {code:?}: {said}")),
        }
    }
}

impl Live {
    /// That each feed has its orders once and in its order, but for those of the end.
    fn has_all(&self) -> Result<(), String> {
        let placed: Vec<_> = oids(&self.bench.tape()).into_iter().filter(|oid| oid.len() < 6).collect();
        for (feed, orders) in self.orders.iter().enumerate() {
            let known: std::collections::HashSet<_> = orders.iter().collect();
            let of_feed: Vec<_> = placed.iter().filter(|oid| known.contains(oid)).collect();
            if of_feed != orders.iter().collect::<Vec<_>>() {
                return Err(format!(
                    "feed {feed} has {} of {} orders: {of_feed:?}",
                    of_feed.len(),
                    orders.len()
                ));
            }
        }
        match placed.len() == self.orders.iter().map(Vec::len).sum::<usize>() {
            true => Ok(()),
            false => Err("something else is on the tape".to_owned()),
        }
    }
}

impl Sender {
    /// Connects and learns where to resume; whether that succeeds soon.
    fn connect(&mut self) -> bool {
        let since = Instant::now();
        while self.connection.is_none() && since.elapsed() < Duration::from_secs(2) {
            self.connection = begin(self.port);
        }
        self.connection.is_some()
    }

    /// Sends some more; what is lost with a connection is sent on the next one.
    fn send(&mut self, most: usize) {
        if !self.connect() {
            return;
        }
        // The last message is sent at the end.
        let end = self.bytes.len() - 100;
        if let Some((stream, at)) = &mut self.connection {
            let upto = (*at + most).min(end).max(*at);
            match stream.write_all(&self.bytes[*at..upto]) {
                Ok(()) => *at = upto,
                Err(_) => self.connection = None,
            }
        }
    }

    /// Ends the connection with a reset: bytes on their way are lost.
    fn reset(&mut self) {
        if self.connect()
            && let Some((stream, _)) = self.connection.take()
        {
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
    }

    /// Sends what the receiver does not have; whether it says that it has all.
    fn is_delivered(&self) -> bool {
        let Some((mut stream, have)) = begin(self.port) else { return false };
        if have < self.bytes.len() && stream.write_all(&self.bytes[have..]).is_ok() {
            _ = stream.shutdown(Shutdown::Write);
            _ = stream.read(&mut [0]);
        }
        have == self.bytes.len()
    }
}

/// A connection, and the byte from which to send.
fn begin(port: u16) -> Option<(TcpStream, usize)> {
    let (stream, have) = open(port)?;
    if have.is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    Some((stream, have?))
}

/// A connection, and the byte from which to send unless another sender is connected.
fn open(port: u16) -> Option<(TcpStream, Option<usize>)> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok();
    let Some(stream) = stream else {
        std::thread::sleep(Duration::from_millis(2));
        return None;
    };
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).ok()?;
    let have = line.trim().strip_prefix("unitape-resume ").and_then(|n| n.parse().ok());
    Some((stream, have))
}

/// Whether a process has a handler for SIGINT.
fn catches_interrupts(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// The library, made by the C compiler of this machine.
fn shim(dir: &Path) -> PathBuf {
    let (source, library) = (file(dir, "shim.c", SHIM), dir.join("shim.so"));
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    library
}

/// The line for `cargo xtask rounds`.
fn record(seed: u64, rounds: u64, failures: usize, since: Instant) {
    let Ok(path) = std::env::var("UNITAPE_ROUNDS_OUT") else { return };
    let line = serde_json::json!({"test": "live-faults", "backing": "file", "rounds": rounds, "seed": seed,
        "failures": failures, "elapsed_s": since.elapsed().as_secs_f64()});
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}
