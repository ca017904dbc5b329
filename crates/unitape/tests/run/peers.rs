//! Senders that come second, fall silent or are not there yet; journals that are long; files that come out of their order; runs
//! that are stopped or killed and started again at once.
#![cfg(target_os = "linux")]

use crate::common::{self, assert_same, file, oids};
use common::run::{Bench, PATIENCE, Running, becomes, connect, free_port, names, orders};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn said(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path("err")).unwrap_or_default()
}

fn says(bench: &Bench, words: &[&str]) {
    assert!(becomes(|| words.iter().all(|w| said(bench).contains(w))), "{words:?}: {}", said(bench));
}

fn placed(bench: &Bench) -> u64 {
    let account = unitape_feed::TapeAccount::load(&bench.tape());
    account.map_or(0, |a| a.summary().by_kind.get("order_new").copied().unwrap_or(0))
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match stream.read(&mut [0; 64]) {
        Ok(n) => n == 0,
        Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// A second sender waited in the socket, unheard, until the first one went.
#[test]
fn a_second_sender_is_refused_at_once() {
    let port = free_port();
    let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    let run = bench.start();
    let mut first = connect(port);
    first.write_all(&orders(1..10)).unwrap();
    assert!(becomes(|| placed(&bench) == 9), "{}", said(&bench));
    let mut second = connect(port);
    assert!(is_closed(&mut second), "the second sender waits: {}", said(&bench));
    let (first_is, second_is) = (first.local_addr().unwrap(), second.local_addr().unwrap());
    says(&bench, &[&format!("feed a: refused a sender from {second_is}: {first_is} is connected")]);
    first.write_all(&orders(10..20)).unwrap();
    drop(first);
    assert!(becomes(|| placed(&bench) == 19), "{}", said(&bench));
    connect(port).write_all(&orders(20..30)).unwrap();
    assert!(becomes(|| placed(&bench) == 29), "{}", said(&bench));
    assert_eq!(run.stop().0, Some(0));
    assert_eq!(oids(&bench.tape()), names(1..30));
}

/// A sender that hung up and connected again at once was refused as a second one while its own bytes were still read, and what it
/// sent then was lost.
#[test]
fn a_sender_that_follows_another_is_served() {
    let port = free_port();
    let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    let run = bench.start();
    for n in 0..20 {
        connect(port).write_all(&orders(100 * n..100 * (n + 1))).unwrap();
    }
    assert!(becomes(|| placed(&bench) == 2_000), "{}: {}", placed(&bench), said(&bench));
    assert_eq!(run.stop().0, Some(0));
    assert_eq!(oids(&bench.tape()), names(0..2_000));
}

/// A peer whose host is gone holds its port for ever where nobody asks for it.
#[test]
fn half_open_peers_are_found_out() {
    let port = free_port();
    let listen = format!("listen = \"127.0.0.1:{port}\"");
    let bench = Bench::new("", &[("a", &listen)]);
    let run = bench.start();
    let mut peer = connect(port);
    peer.write_all(&orders(1..10)).unwrap();
    assert!(becomes(|| placed(&bench) == 9), "{}", said(&bench));
    // The kernel's table of sockets: state 01 is established, timer 02 is keepalive.
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let (here, there) =
        (format!("0100007F:{port:04X}"), format!("0100007F:{:04X}", peer.local_addr().unwrap().port()));
    let row = table.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let row = row.into_iter().find(|r| r.get(1) == Some(&&*here) && r.get(2) == Some(&&*there)).unwrap();
    assert_eq!((row[3], &row[5][..2]), ("01", "02"), "{row:?}");
    assert_eq!(run.stop().0, Some(0));
    // A sender that is silent for too long.
    bench.configure("", &[("a", &format!("{listen}\nidle_limit = \"1s\""))]);
    let run = bench.start();
    let mut silent = connect(port);
    silent.write_all(&orders(10..20)).unwrap();
    assert!(is_closed(&mut silent), "{}", said(&bench));
    says(&bench, &["has sent nothing for 1s"]);
    connect(port).write_all(&orders(20..30)).unwrap();
    assert!(becomes(|| placed(&bench) == 29), "{}", said(&bench));
    assert_eq!(run.stop().0, Some(0));
}

/// A sender that is not there yet was asked for again and again, and nobody learned of it.
#[test]
fn refusals_are_reported() {
    let port = free_port();
    let bench = Bench::new(
        "stats = \"50ms\"",
        &[("a", &format!("connect = \"127.0.0.1:{port}\"\nbackoff = \"100ms\""))],
    );
    let run = bench.start();
    says(&bench, &["feed a: cannot connect to 127.0.0.1:", "refused", "tried again", "waiting for a sender"]);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&orders(1..10)).unwrap();
    says(&bench, &["feed a: is connected to 127.0.0.1:"]);
    assert!(becomes(|| placed(&bench) == 9), "{}", said(&bench));
    assert_eq!(run.stop().0, Some(0));
}

/// Sends from where the receiver says, in pieces of this length, up to `upto`. Gives where that was.
fn send_on(port: u16, bytes: &[u8], upto: usize, piece: usize) -> usize {
    let mut stream = connect(port);
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
    let from: usize = line.trim().strip_prefix("unitape-resume ").unwrap().parse().unwrap();
    for part in bytes[from..upto].chunks(piece) {
        stream.write_all(part).unwrap();
        if piece < 1000 {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    from
}

fn journal_files(bench: &Bench) -> Vec<PathBuf> {
    let dir = std::fs::read_dir(bench.path("tape.journal/a")).unwrap();
    let mut all: Vec<_> =
        dir.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "raw")).collect();
    all.sort();
    all
}

/// The journal of a resumed stream was one file for ever, which could not be removed. It continues in further files
/// between two messages. The sender gets the same place after a kill and with the older files gone.
#[test]
fn the_journal_of_a_resumed_stream_rotates() {
    let port = free_port();
    let listen = format!("listen = \"127.0.0.1:{port}\"\nresume = true");
    let bench = Bench::new("journal_file_bytes = 20000", &[("a", &listen)]);
    let bytes = orders(1..6000);
    let message = orders(1..2).len();
    let mut at = 0;
    for (upto, piece) in
        [(60_000, message), (200_000, 77), (bytes.len() - 100_000, 1 << 20), (bytes.len(), 333)]
    {
        let mut run = bench.start();
        let from = send_on(port, &bytes, upto, piece);
        // The bytes in the socket when it was killed were not received.
        assert!(from <= at && from + message > at, "{from} of {at}: {}", said(&bench));
        // Whole orders that have been sent.
        let sent = (1u32..).scan(0, |sum, n| {
            *sum += common::order(n).len();
            (*sum <= upto).then_some(n)
        });
        let whole = sent.take(5999).count() as u64;
        assert!(becomes(|| placed(&bench) == whole), "{} of {whole}: {}", placed(&bench), said(&bench));
        at = upto;
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        // The tape has reached the last file but one: of the last one nothing may have been read yet.
        let files = journal_files(&bench);
        for path in &files[..files.len().saturating_sub(2)] {
            std::fs::remove_file(path).unwrap();
            std::fs::remove_file(path.with_extension("times")).unwrap();
        }
    }
    let last = journal_files(&bench).pop().unwrap();
    let number: u32 = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    // On a machine that is busy the decoder is not always waited for: then there are few files.
    assert!(number > 1, "{number} files of {at} bytes");
    let run = bench.start();
    assert_eq!(send_on(port, &bytes, bytes.len(), 1), bytes.len());
    assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
    assert_eq!(oids(&bench.tape()), names(1..6000));
    common::run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
}

/// Removes a journal, or of it what has a number.
fn remove_journal(bench: &Bench, whole: bool) {
    let dir = bench.path("tape.journal/a");
    if whole {
        return std::fs::remove_dir_all(dir).unwrap();
    }
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    let numbered = entries.filter(|e| !e.file_name().to_string_lossy().starts_with('.'));
    numbered.for_each(|e| std::fs::remove_file(e.path()).unwrap());
}

/// A journal that was removed began again with number 1. The tape knew a source of this name, so what came was never read, with
/// exit code 0.
#[test]
fn what_comes_after_a_journal_was_removed_is_read() {
    for whole in [true, false] {
        let port = free_port();
        let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
        for n in 0..3 {
            let run = bench.start();
            connect(port).write_all(&orders(10 * n..10 * n + 10)).unwrap();
            let all = becomes(|| placed(&bench) == u64::from(10 * n + 10));
            assert!(all, "{whole}, {n}: {} {}", placed(&bench), said(&bench));
            assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
            remove_journal(&bench, whole);
        }
        assert_eq!(oids(&bench.tape()), names(0..30));
    }
    for whole in [true, false] {
        let port = free_port();
        let bench = Bench::new("", &[("a", &format!("udp = \"127.0.0.1:{port}\""))]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        for n in 0..3 {
            let before = placed(&bench);
            let run = bench.start();
            // Messages that are sent before the socket exists are lost.
            let come = becomes(|| {
                sent += 1;
                sender.send_to(&orders(sent..sent + 1), ("127.0.0.1", port)).unwrap();
                placed(&bench) > before
            });
            assert!(come, "{whole}, {n}: {}", said(&bench));
            assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
            // All that was read; the file in hand has not ended and may not go.
            let last = bench.path("tape.journal/a/closed");
            file(last.parent().unwrap(), "closed", "");
            assert_eq!(bench.start().ends().0, Some(0), "{}", said(&bench));
            std::fs::remove_file(&last).unwrap();
            remove_journal(&bench, whole);
        }
    }
}

/// A journal of a backup notes a lower number than the tape knows. The next file got a number that the tape had read, so it
/// was never read, with exit code 0.
#[test]
fn what_comes_after_a_journal_was_restored_is_read() {
    let port = free_port();
    let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    let (journal, backup) = (bench.path("tape.journal/a"), bench.path("backup"));
    for n in 0..3 {
        let run = bench.start();
        connect(port).write_all(&orders(10 * n..10 * n + 10)).unwrap();
        let all = becomes(|| placed(&bench) == u64::from(10 * n + 10));
        assert!(all, "{n}: {} {}", placed(&bench), said(&bench));
        assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
        match n {
            0 => copy_files(&journal, &backup),
            1 => {
                std::fs::remove_dir_all(&journal).unwrap();
                copy_files(&backup, &journal);
            }
            _ => {}
        }
    }
    assert_eq!(oids(&bench.tape()), names(0..30));
    assert!(journal.join("00000003.raw").exists());
}

/// The file in hand of a journal from a backup is shorter than what the tape has read of it. The next bytes were
/// written where the tape had read others, so they were never read, with exit code 0. A power loss has the same
/// effect: a journal is not flushed.
#[test]
fn a_journal_that_is_shorter_than_what_was_read_hides_nothing() {
    for boot in [Boot::Same, Boot::Other, Boot::NotNoted] {
        let port = free_port();
        let bench = Bench::new("", &[("a", &format!("udp = \"127.0.0.1:{port}\"\nrestart = \"never\""))]);
        let (journal, backup) = (bench.path("tape.journal/a"), bench.path("backup"));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        let mut receive = |run: Running, count: u64| {
            let before = placed(&bench);
            let come = becomes(|| {
                sent += 1;
                sender.send_to(&orders(sent..sent + 1), ("127.0.0.1", port)).unwrap();
                placed(&bench) >= before + count
            });
            assert!(come, "{}", said(&bench));
            assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
        };
        receive(bench.start(), 3);
        copy_files(&journal, &backup);
        receive(bench.start(), 5);
        std::fs::remove_dir_all(&journal).unwrap();
        copy_files(&backup, &journal);
        boot.is_noted_in(&journal);
        if boot == Boot::Same {
            let (code, said) = bench.start().ends();
            assert_eq!(code, Some(3), "{said}");
            assert!(said.contains("00000001.pcap of feed a: it has "), "{said}");
            assert!(said.contains("it is an older copy; put back the newer one, or remove it"), "{said}");
            // The advice is followed.
            std::fs::remove_file(journal.join("00000001.pcap")).unwrap();
            bench.configure("", &[("a", &format!("udp = \"127.0.0.1:{port}\"\nnew_source = true"))]);
        } else {
            // A run in which nothing comes leaves the next file unwritten; the first one is no older copy then.
            let number = || std::fs::read(journal.join(".number")).unwrap();
            let before = number();
            let run = bench.start();
            assert!(becomes(|| number() != before), "{boot:?}: {}", said(&bench));
            assert_eq!(run.stop().0, Some(0), "{boot:?}: {}", said(&bench));
        }
        receive(bench.start(), 4);
        let next = std::fs::read(journal.join(".number")).unwrap()[0];
        let file = |number: u8| journal.join(format!("{number:08}.pcap"));
        assert!(next > 1 && file(next).exists(), "{boot:?}");
        assert!(oids(&bench.tape()).len() >= 12);
        // The next run continues in that file, and the first one is no error.
        receive(bench.start(), 2);
        assert!(!file(next + 1).exists(), "{boot:?}");
    }
}

/// Two runs with one journal wrote into each other's files, and each lost about half of what it had received.
#[test]
fn a_journal_has_one_writer() {
    let (port, other) = (free_port(), free_port());
    let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    let mut run = bench.start();
    connect(port).write_all(&orders(1..3)).unwrap();
    bench.has(&mut run, 2);
    let journal = format!("journal = {:?}", bench.path("tape.journal"));
    let feed = format!("listen = \"127.0.0.1:{other}\"\nrestart = \"never\"");
    let second = Bench::new(&journal, &[("a", &feed)]);
    let (code, said) = second.start().ends();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("another run writes this journal"), "{said}");
    assert_eq!(run.stop().0, Some(0), "{}", self::said(&bench));
    // The next run gets the journal.
    let run = bench.start();
    connect(port).write_all(&orders(3..5)).unwrap();
    assert!(becomes(|| placed(&bench) == 4), "{}", self::said(&bench));
    assert_eq!(run.stop().0, Some(0), "{}", self::said(&bench));
}

/// A number that nothing follows ended the receiver's thread with a panic, and the run with exit code 0.
#[test]
fn a_journal_whose_number_is_damaged_ends_its_feed() {
    for udp in [false, true] {
        let port = free_port();
        let kind = if udp { "udp" } else { "listen" };
        let bench = Bench::new("", &[("a", &format!("{kind} = \"127.0.0.1:{port}\"\nrestart = \"never\""))]);
        let journal = bench.path("tape.journal/a");
        std::fs::create_dir_all(&journal).unwrap();
        std::fs::write(journal.join(".number"), [0xff; 8]).unwrap();
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("its last file has number 18446744073709551615"), "{said}");
    }
}

/// The boot that a journal notes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Boot {
    Same,
    Other,
    /// As earlier builds did.
    NotNoted,
}

impl Boot {
    fn is_noted_in(self, journal: &Path) {
        let path = journal.join(".number");
        let mut noted = std::fs::read(&path).unwrap();
        assert_eq!(noted.len(), 24);
        match self {
            Boot::Same => {}
            Boot::Other => noted[8] ^= 1,
            Boot::NotNoted => noted.truncate(8),
        }
        std::fs::write(path, noted).unwrap();
    }
}

/// The sender of a resumed stream is asked for what the journal lacks, so that nothing of it comes twice.
#[test]
fn a_resumed_stream_is_asked_for_what_its_journal_lost() {
    for boot in [Boot::Same, Boot::Other] {
        let port = free_port();
        let listen = format!("listen = \"127.0.0.1:{port}\"\nresume = true");
        let bench = Bench::new("", &[("a", &listen)]);
        let (journal, backup) = (bench.path("tape.journal/a"), bench.path("backup"));
        let bytes = orders(1..31);
        let mut upto = 0;
        for (n, count) in [10, 20, 30].into_iter().enumerate() {
            let run = bench.start();
            let from = send_on(port, &bytes, orders(1..count + 1).len(), 1 << 20);
            assert_eq!(from, upto);
            assert!(becomes(|| placed(&bench) == u64::from(count)), "{}", said(&bench));
            assert_eq!(run.stop().0, Some(0), "{}", said(&bench));
            if n == 0 {
                copy_files(&journal, &backup);
                upto = orders(1..count + 1).len();
            }
            if n == 1 {
                std::fs::remove_dir_all(&journal).unwrap();
                copy_files(&backup, &journal);
                boot.is_noted_in(&journal);
            }
        }
        assert_eq!(oids(&bench.tape()), names(1..31));
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|e| e.unwrap()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A journal that was removed before all of it was read, or that alone says how much of a resumed stream was received.
#[test]
fn a_journal_that_is_needed_and_was_removed_ends_its_feed() {
    for resume in [false, true] {
        let port = free_port();
        let listen = format!("listen = \"127.0.0.1:{port}\"\nresume = {resume}\nrestart = \"never\"");
        let bench = Bench::new("", &[("a", &listen)]);
        let run = bench.start();
        let mut sender = connect(port);
        sender.write_all(&orders(1..10)).unwrap();
        assert!(becomes(|| placed(&bench) == 9), "{}", said(&bench));
        drop(run);
        remove_journal(&bench, true);
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("00000001.raw of feed a: it is not there any more"), "{said}");
        // The advice works: to continue without it is no way for a resumed stream.
        let advice = if resume { "give the feed another name" } else { "--new-source" };
        assert!(said.contains(advice) && (!resume || !said.contains("--new-source")), "{said}");
        bench.configure("", &[("a", &format!("{listen}\nnew_source = true"))]);
        let run = bench.start();
        if resume {
            // Asked for what it has received it could say anything.
            let (code, said) = run.ends();
            assert!(
                code == Some(3) && said.contains("is missing, and how much of the stream"),
                "{code:?} {said}"
            );
            assert_eq!(oids(&bench.tape()), names(1..10));
            continue;
        }
        connect(port).write_all(&orders(10..12)).unwrap();
        assert!(becomes(|| placed(&bench) == 11), "{}", self::said(&bench));
        assert_eq!(run.stop().0, Some(0), "{}", self::said(&bench));
        assert_eq!(oids(&bench.tape()), names(1..12));
        // It is said once.
        bench.configure("", &[("a", &listen)]);
        let run = bench.start();
        connect(port).write_all(&orders(12..14)).unwrap();
        assert!(becomes(|| placed(&bench) == 13), "{}", self::said(&bench));
        assert_eq!(run.stop().0, Some(0), "{}", self::said(&bench));
    }
}

/// The processes and connections of a killed run do not hold its ports and tapes against the next start.
/// `UNITAPE_START_TRIES` asks for more of them.
#[test]
fn a_killed_run_starts_again_at_once() {
    let tries = std::env::var("UNITAPE_START_TRIES").map_or(30, |n| n.parse().unwrap());
    for segments in ["", "segments = \"apart\""] {
        let ports = [free_port(), free_port(), free_port()];
        let input = ports.map(|p| format!("listen = \"127.0.0.1:{p}\"\nresume = true\nrestart = \"never\""));
        let feeds: Vec<_> = ["a", "b", "c"].into_iter().zip(input.iter().map(String::as_str)).collect();
        let bench = Bench::new(&format!("wait = \"1ms\"\n{segments}"), &feeds);
        let mut sent = ports.map(|_| Vec::new());
        for n in 0..tries {
            let mut run = bench.start();
            for (feed, (port, sent)) in (0..).zip(ports.into_iter().zip(&mut sent)) {
                sent.extend(orders(3 * n + feed..3 * n + feed + 1));
                let there = becomes(|| is_delivered(port, sent) || ended(&mut run));
                assert!(there && !ended(&mut run), "{segments}, try {n}: {}", said(&bench));
            }
            run.child.kill().unwrap();
            run.child.wait().unwrap();
        }
        let mut run = bench.start();
        let all = becomes(|| placed(&bench) == u64::from(3 * tries) || ended(&mut run));
        assert!(all, "{segments}: {} of {}: {}", placed(&bench), 3 * tries, said(&bench));
        assert_eq!(run.stop().0, Some(0));
    }
}

/// Sends what the receiver does not have; whether it says that it has all. A process that is about to die may still answer.
fn is_delivered(port: u16, bytes: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut line = String::new();
    let read = stream.try_clone().and_then(|stream| BufReader::new(stream).read_line(&mut line));
    let have = line.trim().strip_prefix("unitape-resume ").and_then(|n| n.parse::<usize>().ok());
    let (Ok(_), Some(have)) = (read, have) else { return false };
    if have < bytes.len() && stream.write_all(&bytes[have..]).is_ok() {
        _ = stream.shutdown(std::net::Shutdown::Write);
        _ = stream.read(&mut [0]);
    }
    have == bytes.len()
}

fn ended(run: &mut Running) -> bool {
    run.child.try_wait().unwrap().is_some()
}

/// A file that comes after one of a greater name has begun is not read before the next one, and nobody learned of it.
#[test]
fn a_file_out_of_order_is_reported() {
    let bench = Bench::new("", &[("a", "directory = \"in\"")]);
    let dir = bench.path("in");
    std::fs::create_dir(&dir).unwrap();
    file(&dir, "2", orders(1..10));
    let run = bench.start();
    assert!(becomes(|| placed(&bench) == 9), "{}", said(&bench));
    file(&dir, "1", orders(10..20));
    says(&bench, &["feed a: 1 came after a file of a greater name had begun"]);
    file(&dir, "3", orders(20..30));
    assert!(becomes(|| placed(&bench) == 29), "{}", said(&bench));
    assert_eq!(run.stop().0, Some(0));
    assert_eq!(oids(&bench.tape()), names(1..30));
}

/// A stop placed what a merge without bound still waited with, and what came later was `late`.
#[test]
fn stops_do_not_change_a_merge_without_bound() {
    for segments in ["", "segments = \"apart\""] {
        let run_keys = format!("wait = \"unbounded\"\n{segments}");
        let feeds = [
            ("a", "directory = \"a\"\nreceive_times = false"),
            ("b", "directory = \"b\"\nreceive_times = false"),
        ];
        let parts: [[std::ops::Range<u32>; 2]; 3] = [[1..50, 1..20], [50..55, 20..60], [55..90, 60..80]];
        // Up to the last event of the feed that lags; among equal times the first feed's event comes first.
        let placed_by = [19 + 19, 54 + 53, 79 + 79];
        let whole = Bench::new(&run_keys, &feeds);
        let stopped = Bench::new(&run_keys, &feeds);
        for bench in [&whole, &stopped] {
            for dir in ["a", "b"] {
                std::fs::create_dir(bench.path(dir)).unwrap();
            }
        }
        let put = |bench: &Bench, part: usize| {
            for (dir, numbers) in ["a", "b"].into_iter().zip(&parts[part]) {
                file(bench.dir.path(), "new", orders(numbers.clone()));
                std::fs::rename(bench.path("new"), bench.path(dir).join(part.to_string())).unwrap();
            }
        };
        (0..3).for_each(|part| put(&whole, part));
        let run = whole.start();
        assert!(becomes(|| placed(&whole) >= placed_by[2]), "{} {}", placed(&whole), said(&whole));
        assert_eq!(run.stop().0, Some(0));
        for (part, least) in placed_by.iter().enumerate() {
            put(&stopped, part);
            let run = stopped.start();
            assert!(becomes(|| placed(&stopped) >= *least), "{} {}", placed(&stopped), said(&stopped));
            assert_eq!(run.stop().0, Some(0));
        }
        assert_same(&whole.tape(), &stopped.tape(), segments);
        assert!(said(&stopped).contains("messages wait for"), "{}", said(&stopped));
    }
}
