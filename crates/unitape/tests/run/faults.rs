//! Feeds that fail while others run: a full disk, no descriptors, a busy port, an unknown host. Each ends or continues when its
//! cause is gone; once it did neither, its port was refused, and feeds without a fault waited for it for ever.
//!
//! A library that is loaded before the system's refuses what a file in the bench's directory says, as long as it is there.
#![cfg(target_os = "linux")]

use crate::common::{self, oids};
use common::run::{Bench, Running, becomes, connect, free_port, names, orders};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
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
    return strstr(path, ".journal/a/") != NULL;
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

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real) real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && strcmp(node, "far.test") == 0) {
        if (is_up("names")) return EAI_NONAME;
        node = "127.0.0.1";
    }
    return real(node, service, hints, out);
}
"#;

/// The library, made by the C compiler of this machine.
fn shim(dir: &Path) -> PathBuf {
    let (source, library) = (common::file(dir, "shim.c", SHIM), dir.join("shim.so"));
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    library
}

fn start(bench: &Bench) -> Running {
    let shim = shim(bench.dir.path());
    let err = bench.path("err");
    let to = std::fs::File::create(&err).unwrap();
    let mut command = bench.command();
    command.env("LD_PRELOAD", shim).env("FAULTS", bench.dir.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn().unwrap();
    Running { child, err }
}

fn raise(bench: &Bench, fault: &str) {
    std::fs::write(bench.path(fault), "").unwrap();
}

fn clear(bench: &Bench, fault: &str) {
    std::fs::remove_file(bench.path(fault)).unwrap();
}

fn said(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path("err")).unwrap_or_default()
}

/// Orders on the tape of this feed.
fn of_feed(bench: &Bench, feed: &str) -> u64 {
    unitape_feed::TapeAccount::load(&bench.tape())
        .map_or(0, |a| a.summary().by_feed.get(feed).map_or(0, |f| f.with_events))
}

/// A journal whose disk is full: the sender waits, the other feed goes onto the tape although the merge waits without bound,
/// and when there is room again all that was sent is there.
#[test]
fn a_full_disk_holds_up_its_own_feed_alone() {
    full_disk("");
}

#[test]
fn a_full_disk_holds_up_its_own_feed_alone_apart() {
    full_disk("segments = \"apart\"");
}

fn full_disk(segments: &str) {
    let (a, b) = (free_port(), free_port());
    let bench = Bench::new(
        &format!("wait = \"unbounded\"\nstats = \"20ms\"\n{segments}"),
        &[("a", &format!("listen = \"127.0.0.1:{a}\"")), ("b", &format!("listen = \"127.0.0.1:{b}\""))],
    );
    let run = start(&bench);
    let (mut to_a, mut to_b) = (connect(a), connect(b));
    to_a.write_all(&orders(1..50)).unwrap();
    to_b.write_all(&orders(1000..1001)).unwrap();
    assert!(becomes(|| of_feed(&bench, "a") == 49));
    raise(&bench, "full");
    to_a.write_all(&orders(50..80)).unwrap();
    to_b.write_all(&orders(1001..1101)).unwrap();
    let healthy = becomes(|| of_feed(&bench, "b") == 101);
    assert!(healthy, "{} of 101 events of the healthy feed: {}", of_feed(&bench, "b"), said(&bench));
    let words = ["feed a: has failed and is tried again", "No space left"];
    assert!(becomes(|| words.iter().all(|w| said(&bench).contains(w))), "{}", said(&bench));
    clear(&bench, "full");
    to_a.write_all(&orders(80..90)).unwrap();
    assert!(becomes(|| said(&bench).contains("feed a: continues")), "{}", said(&bench));
    // Then it is waited for again, and so is the other: as soon as the process that merges knows.
    let is_connected =
        || said(&bench).lines().rfind(|l| l.starts_with("a: ")).is_some_and(|l| l.ends_with(", connected"));
    assert!(becomes(is_connected), "{}", said(&bench));
    to_b.write_all(&orders(1101..1102)).unwrap();
    drop(to_a);
    assert!(becomes(|| of_feed(&bench, "a") == 89), "{} of 89: {}", of_feed(&bench, "a"), said(&bench));
    connect(a).write_all(&orders(90..100)).unwrap();
    to_b.write_all(&orders(1102..1103)).unwrap();
    assert!(becomes(|| of_feed(&bench, "a") == 99), "a further sender: {}", said(&bench));
    let (code, said) = run.stop();
    assert_eq!(code, Some(0), "{said}");
    let mut all = oids(&bench.tape());
    all.sort_unstable();
    // The last two of b wait for a, also over the end of the run.
    let mut want = [names(1..100), names(1000..1101)].concat();
    want.sort_unstable();
    assert_eq!(all, want);
    let waits = if segments.is_empty() {
        "feed b: 2 messages wait for a;"
    } else {
        "feed b: messages wait for other feeds;"
    };
    assert!(said.contains(waits), "{said}");
}

/// A feed that ends while its disk is full decides the exit code, and so does one that is not to be tried again.
#[test]
fn a_feed_that_fails_decides_the_exit_code() {
    for restart in ["", "restart = \"never\""] {
        let (a, b) = (free_port(), free_port());
        let bench = Bench::new(
            "wait = \"unbounded\"",
            &[
                ("a", &format!("listen = \"127.0.0.1:{a}\"\n{restart}")),
                ("b", &format!("listen = \"127.0.0.1:{b}\"")),
            ],
        );
        let run = start(&bench);
        let (mut to_a, mut to_b) = (connect(a), connect(b));
        to_a.write_all(&orders(1..50)).unwrap();
        to_b.write_all(&orders(1000..1001)).unwrap();
        assert!(becomes(|| of_feed(&bench, "a") == 49), "{}", said(&bench));
        raise(&bench, "full");
        to_a.write_all(&orders(50..60)).unwrap();
        to_b.write_all(&orders(1001..1101)).unwrap();
        assert!(becomes(|| of_feed(&bench, "b") == 101), "{}", said(&bench));
        let (code, said) = run.stop();
        assert_eq!(code, Some(1), "{said}");
        let words = if restart.is_empty() { "feed a: ends: " } else { "feed a ended before its end" };
        assert!(said.contains(words) && said.contains("No space left"), "{said}");
    }
}

/// A busy port, an unknown host and no descriptors: the other feed runs, and each continues when it can.
#[test]
fn feeds_that_cannot_begin_yet_hold_up_no_other() {
    let (far, good) = (free_port(), free_port());
    let busy = free_port();
    let taken = TcpListener::bind(("127.0.0.1", busy)).unwrap();
    let sender = TcpListener::bind(("127.0.0.1", far)).unwrap();
    let bench = Bench::new(
        "wait = \"50ms\"",
        &[
            ("busy", &format!("listen = \"127.0.0.1:{busy}\"")),
            ("far", &format!("connect = \"far.test:{far}\"")),
            ("good", &format!("listen = \"127.0.0.1:{good}\"")),
        ],
    );
    raise(&bench, "names");
    let run = start(&bench);
    let mut to_good = connect(good);
    to_good.write_all(&orders(1..100)).unwrap();
    assert!(becomes(|| of_feed(&bench, "good") == 99), "{}", said(&bench));
    let words = ["feed busy: has failed and is tried again", "in use", "feed far: has failed", "cannot find"];
    assert!(becomes(|| words.iter().all(|w| said(&bench).contains(w))), "{}", said(&bench));
    raise(&bench, "descriptors");
    drop(taken);
    clear(&bench, "names");
    let (mut to_far, _) = sender.accept().unwrap();
    to_far.write_all(&orders(100..150)).unwrap();
    let mut to_busy = connect(busy);
    to_busy.write_all(&orders(150..200)).unwrap();
    assert!(becomes(|| said(&bench).contains("cannot accept")), "{}", said(&bench));
    clear(&bench, "descriptors");
    assert!(becomes(|| of_feed(&bench, "far") == 50 && of_feed(&bench, "busy") == 50), "{}", said(&bench));
    let (code, said) = run.stop();
    assert_eq!(code, Some(0), "{said}");
    let mut all = oids(&bench.tape());
    all.sort_by_key(|name| name[1..].parse::<u32>().unwrap());
    assert_eq!(all, names(1..200));
}

/// A feed that is not to be tried again ends, and a run whose feeds have all ended ends.
#[test]
fn a_busy_port_that_is_not_tried_again() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let bench = Bench::new("", &[("a", &format!("listen = \"{address}\"\nrestart = \"never\""))]);
    common::finish(&mut bench.command()).code(1).says(&["feed a: ends", "cannot listen", "in use"]);
}

/// `run --check` refuses what cannot be.
#[test]
fn a_check_refuses_ports_and_hosts() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 6] = [
        (&[("a", "listen = \"127.0.0.1:70000\"")], &["feed.a.listen", "70000 is no port", "65535"]),
        (&[("a", "connect = \"127.0.0.1:65536\"")], &["feed.a.connect", "65536 is no port"]),
        (
            &[("a", "listen = \"127.0.0.1:9000\""), ("b", "listen = \"127.0.0.1:9000\"")],
            &["feed.b.listen", "feed.a.listen has this port"],
        ),
        (
            &[("a", "listen = \"0.0.0.0:9000\""), ("b", "listen = \"127.0.0.1:9000\"")],
            &["feed.b.listen", "feed.a.listen has this port"],
        ),
        (
            &[("a", "udp = \"127.0.0.1:9000\""), ("b", "udp = \"127.0.0.1:9000\"")],
            &["feed.b.udp", "feed.a.udp has this port"],
        ),
        (&[("a", "connect = \"nowhere.invalid:9000\"")], &["feed.a.connect", "host is not known"]),
    ];
    for (feeds, words) in cases {
        let bench = Bench::new("", feeds);
        common::finish(bench.command().arg("--check")).code(1).says(words);
    }
    // A group has any number of readers, and TCP and UDP have ports of their own.
    let fine = [
        ("a", "udp = \"239.1.1.1:9000\""),
        ("b", "udp = \"239.1.1.1:9000\""),
        ("c", "udp = \"127.0.0.1:9000\""),
        ("d", "listen = \"127.0.0.1:9000\""),
    ];
    common::finish(Bench::new("", &fine).command().arg("--check")).code(0);
}
