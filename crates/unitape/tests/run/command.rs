//! `unitape run` over each kind of source, and sources that misbehave.
#![cfg(unix)]

use crate::common::{self, cat, file, oids, order, unitape};
use common::run::{Bench, Running, connect, free_port, names, orders};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use unitape_base::capture::write as capture;

/// Compressed files, a capture and a plain one are distinguished by their content, whatever they are called.
#[test]
fn files_of_every_packing_make_the_same_events() {
    let bench = Bench::new("", &[("a", "files = [\"1\", \"2\", \"3\", \"4\"]")]);
    let dir = bench.dir.path();
    file(dir, "1", orders(1..40));
    for (name, program, numbers) in [("2", "gzip", 40..80), ("3", "zstd", 80..90)] {
        let plain = file(dir, "plain", orders(numbers.clone()));
        let packed = match program {
            "gzip" => {
                let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                e.write_all(&std::fs::read(&plain).unwrap()).unwrap();
                e.finish().unwrap()
            }
            _ => zstd::encode_all(&std::fs::read(&plain).unwrap()[..], 1).unwrap(),
        };
        file(dir, name, packed);
    }
    let mut pcap = Vec::new();
    capture::file_header(&mut pcap);
    let (from, to) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    for n in 90..120 {
        capture::datagram(&mut pcap, 1_772_409_600_000_000_000 + i64::from(n), from, to, &order(n));
    }
    file(dir, "4", pcap);
    let (code, said) = bench.start().ends();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&bench.tape()), names(1..120));
    let last = cat(&bench.tape(), &["--full"]).pop().unwrap();
    assert_eq!(last["ts_recv"], 1_772_409_600_000_000_000i64 + 119, "the time of its packet: {last}");
    let raw = order(119);
    let offset = last["src"]["offset"].as_u64().unwrap() as usize;
    let capture = std::fs::read(bench.path("4")).unwrap();
    assert_eq!(capture[offset..offset + raw.len()], raw, "the offset shows the message in the capture");
    // Again: all is done.
    let before = common::files(&bench.tape());
    assert_eq!(bench.start().ends().0, Some(0));
    assert!(before == common::files(&bench.tape()));
}

#[test]
fn a_directory_is_followed_as_it_grows() {
    let bench = Bench::new("", &[("a", "directory = \"in\"")]);
    let dir = bench.path("in");
    std::fs::create_dir(&dir).unwrap();
    file(&dir, "1", orders(1..10));
    file(&dir, ".2", orders(500..510));
    file(&dir, "3.tmp", orders(600..610));
    // The times of a journal's stream, in a copy of its directory.
    file(&dir, "00000001.raw", b"");
    file(&dir, "00000001.times", [7; 32]);
    let mut run = bench.start();
    bench.has(&mut run, 9);
    let mut growing = File::options().append(true).open(dir.join("1")).unwrap();
    let (half, rest) = order(10).split_at(30).map_both();
    growing.write_all(&half).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    growing.write_all(&rest).unwrap();
    bench.has(&mut run, 10);
    std::fs::rename(dir.join("3.tmp"), dir.join("3")).unwrap();
    bench.has(&mut run, 20);
    file(&dir, "4", orders(11..20));
    bench.has(&mut run, 29);
    let (code, said) = run.stop();
    assert_eq!(code, Some(0), "{said}");
    // While nothing runs, the last one grows and another comes.
    File::options().append(true).open(dir.join("4")).unwrap().write_all(&orders(20..25)).unwrap();
    file(&dir, "5", orders(25..30));
    let mut run = bench.start();
    bench.has(&mut run, 39);
    assert_eq!(run.stop().0, Some(0));
    let want = [names(1..11), names(600..610), names(11..30)].concat();
    assert_eq!(oids(&bench.tape()), want);
}

trait MapBoth {
    fn map_both(self) -> (Vec<u8>, Vec<u8>);
}

impl MapBoth for (&[u8], &[u8]) {
    fn map_both(self) -> (Vec<u8>, Vec<u8>) {
        (self.0.to_vec(), self.1.to_vec())
    }
}

/// A file that is replaced, cut, or grows after its end: the feed ends with the reason, the others continue, and a
/// restart says it again.
#[test]
fn files_that_change_under_us() {
    type Change = fn(&Path);
    let cases: [(&str, Change, &str); 3] = [
        (
            "cut",
            |dir| File::options().write(true).open(dir.join("2")).unwrap().set_len(50).unwrap(),
            "was cut to 50",
        ),
        (
            "replaced",
            |dir| {
                file(dir, ".new", orders(700..900));
                std::fs::rename(dir.join(".new"), dir.join("2")).unwrap();
            },
            "another file has taken its name",
        ),
        (
            "grown",
            |dir| {
                let mut file = File::options().append(true).open(dir.join("1")).unwrap();
                file.write_all(&orders(800..801)).unwrap();
            },
            "has changed after it was read to its end",
        ),
    ];
    for (name, change, words) in cases {
        let bench =
            Bench::new("wait = \"1ms\"", &[("bad", "directory = \"in\""), ("good", "directory = \"good\"")]);
        let (dir, good) = (bench.path("in"), bench.path("good"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::create_dir(&good).unwrap();
        file(&dir, "1", orders(1..10));
        file(&dir, "2", orders(10..20));
        let mut run = bench.start();
        bench.has(&mut run, 19);
        change(&dir);
        let err = bench.path("err");
        run.until(|| std::fs::read_to_string(&err).unwrap().contains(words));
        file(&good, "1", orders(1000..1010));
        bench.has(&mut run, 29);
        let (code, said) = run.stop();
        assert_eq!(code, Some(3), "{name}: {said}");
        assert!(said.contains("feed bad"), "{name}: {said}");
        if name == "replaced" {
            let mut again = bench.start();
            let words = "are others than those that were read before";
            again.until(|| std::fs::read_to_string(&err).unwrap().contains(words));
            assert_eq!(again.stop().0, Some(3));
        }
    }
}

/// A connection that dies in mid-message: what came of the message is kept, and the next one starts clean.
#[test]
fn tcp_connections_that_end_anywhere() {
    let port = free_port();
    let bench = Bench::new("", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    let mut run = bench.start();
    let mut stream = connect(port);
    stream.write_all(&orders(1..10)).unwrap();
    let (half, _) = order(10).split_at(40).map_both();
    stream.write_all(&half).unwrap();
    drop(stream);
    connect(port).write_all(&orders(11..20)).unwrap();
    bench.has(&mut run, 18);
    let (code, said) = run.stop();
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(oids(&bench.tape()), [names(1..10), names(11..20)].concat());
    let quarantine = common::quarantine(&bench.tape());
    assert_eq!(quarantine.len(), 1, "{quarantine:?}");
    assert_eq!(quarantine[0]["reason"], "truncated");
    assert_eq!(quarantine[0]["length"], 40);
    assert_eq!(quarantine[0]["source"], "a/00000001.raw");
}

/// With `resume`, a sender continues where we were, message or not; the connection's end means nothing.
#[test]
fn a_sender_is_told_where_to_go_on() {
    let port = free_port();
    let bench =
        Bench::new("", &[("a", &format!("connect = \"127.0.0.1:{port}\"\nresume = true\nconnections = 3"))]);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let run = bench.start();
    let bytes = orders(1..30);
    for (from, upto) in [(0, 333), (333, 1234), (1234, bytes.len())] {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("unitape-resume {from}\n"));
        stream.write_all(&bytes[from..upto]).unwrap();
    }
    let (code, said) = run.ends();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&bench.tape()), names(1..30));
    let events = cat(&bench.tape(), &["--full"]);
    assert!(events.iter().all(|e| e["ts_recv"].is_i64()), "each has its receive time");
}

/// More than may wait: the sender waits with it, and nothing is lost.
#[test]
fn a_sender_faster_than_we_are() {
    let port = free_port();
    let bench =
        Bench::new("lag_bytes = 4096", &[("a", &format!("listen = \"127.0.0.1:{port}\"\nconnections = 1"))]);
    let run = bench.start();
    connect(port).write_all(&orders(1..20_000)).unwrap();
    let (code, said) = run.ends();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&bench.tape()).len(), 19_999);
}

#[test]
fn stdin_and_a_named_pipe() {
    let bench = Bench::new("wait = \"unbounded\"", &[("in", "stdin = true"), ("pipe", "fifo = \"pipe\"")]);
    let path = bench.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut run = bench.start_with(Stdio::piped());
    let mut stdin = run.child.stdin.take().unwrap();
    stdin.write_all(&orders(1..10)).unwrap();
    File::options().write(true).open(&path).unwrap().write_all(&orders(10..15)).unwrap();
    // A second writer: another source of the same feed.
    bench.has(&mut run, 9);
    File::options().write(true).open(&path).unwrap().write_all(&orders(15..20)).unwrap();
    drop(stdin);
    bench.has(&mut run, 18);
    let (code, said) = run.stop();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&bench.tape()), names(1..20));
}

/// Ctrl-C while nothing comes: it ends at once and in order.
#[test]
fn an_idle_stdin_can_be_interrupted() {
    for command in ["run", "consolidate"] {
        let bench = Bench::new("", &[("in", "stdin = true")]);
        let mut run = match command {
            "run" => bench.start_with(Stdio::piped()),
            _ => {
                let err = bench.path("err");
                let mut c = unitape();
                c.args(["consolidate", "--feed", "in=fix:fix44-orders:-", "--tape"]).arg(bench.tape());
                c.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(&err).unwrap());
                Running { child: c.spawn().unwrap(), err }
            }
        };
        let stdin = run.child.stdin.take().unwrap();
        let tape = bench.tape();
        run.until(|| tape.join("segments").exists());
        let (code, said) = run.stop();
        assert_eq!(code, Some(i32::from(command == "consolidate")), "{command}: {said}");
        drop(stdin);
    }
}

#[test]
fn datagrams_to_one_host_and_to_a_group() {
    for (address, group) in [("127.0.0.1", false), ("239.255.77.1", true)] {
        let port = free_port();
        let more = if group { "\ninterface = \"127.0.0.1\"" } else { "" };
        let bench = Bench::new("", &[("a", &format!("udp = \"{address}:{port}\"{more}"))]);
        let mut run = bench.start();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.set_multicast_loop_v4(true).unwrap();
        // Messages that are sent before the socket exists are lost: continue until the first one is on the tape.
        let tape = bench.tape();
        let first = std::cell::Cell::new(1);
        run.until(|| {
            first.set(first.get() + 1);
            sender.send_to(&order(first.get()), (address, port)).unwrap();
            unitape_feed::TapeAccount::load(&tape)
                .is_ok_and(|a| a.summary().by_kind.contains_key("order_new"))
        });
        // Again and again: a host whose buffers are full drops some.
        let two: Vec<u8> = orders(5000..5002);
        run.until(|| {
            sender.send_to(&two, (address, port)).unwrap();
            oids(&tape).iter().any(|o| o == "O5001")
        });
        let (half, _) = order(5002).split_at(33).map_both();
        run.until(|| {
            sender.send_to(&half, (address, port)).unwrap();
            !common::quarantine(&tape).is_empty()
        });
        let (code, said) = run.stop();
        assert_eq!(code, Some(3), "{said}");
        let quarantine = common::quarantine(&tape);
        assert_eq!(quarantine[0]["reason"], "truncated", "a message ends with its datagram: {quarantine:?}");
        let events = cat(&tape, &["--full"]);
        assert!(events.iter().filter(|e| e["kind"] == "order_new").all(|e| e["ts_recv"].is_i64()));
    }
}

/// A sender faster than us. Datagrams that did not fit were dropped by the kernel, or by us, and once nobody reported
/// either.
#[test]
fn what_a_burst_loses_is_counted_to_the_datagram() {
    for full in ["drop", "wait"] {
        // Two sockets, each with what the kernel counts for it.
        let ports = [free_port(), free_port()];
        let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
        let feed = format!("udp = {addresses:?}\nbuffer_bytes = 65536\nwhen_full = \"{full}\"");
        let bench = Bench::new("lag_bytes = 65536", &[("a", &feed)]);
        let mut run = bench.start();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tape = bench.tape();
        let (sent, both) = (std::cell::Cell::new(0), std::cell::Cell::new(false));
        let send = || {
            sent.set(sent.get() + 1);
            // The second is opened last: when it is heard, both are.
            let port = ports[if both.get() { sent.get() as usize % 2 } else { 1 }];
            sender.send_to(&order(sent.get()), ("127.0.0.1", port)).is_ok()
        };
        run.until(|| {
            send();
            unitape_feed::TapeAccount::load(&tape)
                .is_ok_and(|a| a.summary().by_kind.contains_key("order_new"))
        });
        both.set(true);
        let first: u32 = oids(&tape)[0][1..].parse().unwrap();
        // Nobody reads while the burst comes, then everybody does.
        run.signal("-STOP");
        (0..3_000).for_each(|_| assert!(send()));
        run.signal("-CONT");
        (0..3_000).for_each(|_| assert!(send()));
        let dropped = || -> u64 {
            let quarantine = common::quarantine(&tape);
            let counts = quarantine
                .iter()
                .filter(|q| q["reason"] == "dropped")
                .map(|q| q["detail"].as_str().unwrap().split(' ').next().unwrap().parse::<u64>().unwrap());
            counts.sum()
        };
        // No further datagram comes: the kernel is asked for what it dropped at the end.
        run.until(|| {
            std::thread::sleep(Duration::from_millis(30));
            oids(&tape).len() as u64 + dropped() == u64::from(sent.get() + 1 - first)
        });
        let (code, said) = run.stop();
        assert_eq!(code, Some(3), "{said}");
        assert!(dropped() > 0, "{full}: the burst was no burst");
        assert_eq!(oids(&tape).len() as u64 + dropped(), u64::from(sent.get() + 1 - first), "{full}");
    }
}

/// Packets that were cut, fragments, a file that ends in mid-record, and one that is damaged in its middle.
#[test]
fn captures_that_are_not_whole() {
    let bench = Bench::new("", &[("a", "files = [\"1.pcap\", \"2.pcap\"]\nports = [2]")]);
    let (from, to) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let mut one = Vec::new();
    capture::file_header(&mut one);
    for n in 1..6 {
        let start = one.len();
        capture::datagram(&mut one, n.into(), from, to, &order(n));
        if n == 2 {
            // The snap length was ten bytes too short.
            one.truncate(one.len() - 10);
            let captured = (one.len() - start - 16) as u32;
            one[start + 8..start + 12].copy_from_slice(&captured.to_le_bytes());
        }
    }
    capture::drop_note(&mut one, 6, 17);
    capture::datagram(&mut one, 7, from, to, &order(7));
    one.truncate(one.len() - 5);
    file(bench.dir.path(), "1.pcap", one);
    let mut two = Vec::new();
    capture::file_header(&mut two);
    capture::datagram(&mut two, 10, from, to, &order(10));
    let damaged = two.len();
    for n in 11..13 {
        capture::datagram(&mut two, n.into(), from, to, &order(n));
    }
    two[damaged + 11] = 0xff;
    file(bench.dir.path(), "2.pcap", two);
    let (code, said) = bench.start().ends();
    assert_eq!(code, Some(3), "{said}");
    let reasons: Vec<_> =
        common::quarantine(&bench.tape()).iter().map(|q| q["reason"].as_str().unwrap().to_owned()).collect();
    assert_eq!(reasons, ["truncated_packet", "dropped", "truncated", "bad_capture"]);
    assert_eq!(oids(&bench.tape()), ["O1", "O3", "O4", "O5", "O10"]);
    let account = unitape_feed::TapeAccount::load(&bench.tape()).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
}

/// A feed that falls silent does not hold the others for ever; what it brings later is flagged.
#[test]
fn a_quiet_feed_is_waited_for_a_while() {
    let bench = Bench::new("wait = \"5ms\"", &[("a", "directory = \"a\""), ("b", "directory = \"b\"")]);
    for dir in ["a", "b"] {
        std::fs::create_dir(bench.path(dir)).unwrap();
    }
    file(&bench.path("a"), "1", orders(1..10));
    let mut run = bench.start();
    bench.has(&mut run, 9);
    // The second feed's clock lags: feed order wins within it, and the merge appends it as late.
    file(&bench.path("b"), "1", [order(5), order(20), order(15)].concat());
    bench.has(&mut run, 12);
    assert_eq!(run.stop().0, Some(0));
    let late: Vec<_> = cat(&bench.tape(), &["--full"])
        .iter()
        .map(|e| (e["oid"].as_str().unwrap().to_owned(), e["flags"].to_string().contains("late")))
        .collect();
    let want = |name: &str, late: bool| (name.to_owned(), late);
    assert_eq!(late[9..], [want("O5", true), want("O20", false), want("O15", false)]);
    // Again, and nothing comes twice.
    let mut run = bench.start();
    file(&bench.path("b"), "2", orders(30..31));
    bench.has(&mut run, 13);
    assert_eq!(run.stop().0, Some(0));
    assert_eq!(oids(&bench.tape()).len(), 13);
    common::run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
}

/// A mapping is reloaded during the run; an invalid one is refused and the old one stays in force.
#[test]
fn a_mapping_that_changes() {
    let bench = Bench::new("", &[("a", "directory = \"in\"\nmapping = \"m.toml\"")]);
    let shipped = std::fs::read_to_string(common::root().join("mappings/fix44-orders.toml")).unwrap();
    let mapping = file(bench.dir.path(), "m.toml", &shipped);
    let dir = bench.path("in");
    std::fs::create_dir(&dir).unwrap();
    let path = file(&dir, "1", orders(1..10));
    let mut run = bench.start();
    bench.has(&mut run, 9);
    let err = bench.path("err");
    let said = |words: &'static str| {
        let err = err.clone();
        move || std::fs::read_to_string(&err).unwrap().contains(words)
    };
    std::fs::write(&mapping, "broken = ").unwrap();
    run.until(said("the mapping in use stays"));
    let mut growing = File::options().append(true).open(&path).unwrap();
    growing.write_all(&orders(10..20)).unwrap();
    bench.has(&mut run, 19);
    std::fs::write(&mapping, format!("{shipped}\n# mended\n")).unwrap();
    run.signal("-HUP");
    run.until(said("from here on by mapping"));
    growing.write_all(&orders(20..30)).unwrap();
    bench.has(&mut run, 29);
    assert_eq!(run.stop().0, Some(0));
    // Started again, it continues by the new one.
    growing.write_all(&orders(30..40)).unwrap();
    let mut run = bench.start();
    bench.has(&mut run, 39);
    assert_eq!(run.stop().0, Some(0));
    assert_eq!(oids(&bench.tape()), names(1..40));
    let account = unitape_feed::TapeAccount::load(&bench.tape()).unwrap();
    let [source] = &account.sources[..] else { panic!("one source: {:?}", account.sources) };
    assert_eq!(source.further.len(), 1, "one definition more, from where the new mapping holds: {source:?}");
    assert!(source.tally.plus(source.since).is_balanced());
    common::run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
}

/// Each message names the line, the key, and what is allowed.
#[test]
fn configurations_that_cannot_be() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 8] = [
        (
            &[("a", "stdin = true"), ("a", "directory = \"x\"")],
            &["run.toml:12", "feed.a.name", "two feeds have this name"],
        ),
        (&[("a", "")], &["run.toml:6", "feed.a", "one of files, directory", "there is none"]),
        (&[("a", "stdin = true\nlisten = \"x:1\"")], &["there is stdin and listen"]),
        (
            &[("a", "stdin = true\nresume = true")],
            &["run.toml:11", "feed.a.resume", "goes with listen or connect"],
        ),
        (&[("a", "stdinn = true")], &["run.toml:10", "stdinn", "expected one of"]),
        (&[("a", "stdin = true\nmapping = \"nope\"")], &["feed.a.mapping", "nope", "fix44-orders"]),
        (&[("a/b", "stdin = true")], &["is no name"]),
        (&[("a", "udp = \"239.1.1.1\"")], &["run.toml:10", "feed.a.udp"]),
    ];
    for (feeds, words) in cases {
        let bench = Bench::new("", feeds);
        common::finish(&mut bench.command()).code(1).says(words);
        common::finish(bench.command().arg("--check")).code(1).says(words);
        assert!(!bench.tape().exists());
    }
    let bench = Bench::new("wait = \"5 parsecs\"", &[("a", "directory = \"gone\"")]);
    common::finish(&mut bench.command()).code(1).says(&["run.toml:5", "run.wait", "250ms", "unbounded"]);
    bench.configure("", &[("a", "directory = \"gone\"")]);
    common::finish(bench.command().arg("--check")).code(1).says(&[
        "run.toml:10",
        "feed.a.directory",
        "is no directory",
    ]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = \"{}\"\nrestart = \"never\"", port.local_addr().unwrap());
    bench.configure("", &[("a", &listen)]);
    common::finish(&mut bench.command()).code(1).says(&["cannot listen", "in use"]);
}

#[test]
fn what_is_in_force_and_where_it_came_from() {
    let bench = Bench::new("workers = 3", &[("a-b", "stdin = true")]);
    let show = |more: &[&str]| {
        let mut command = unitape();
        command.args(["config", "show"]).arg(bench.path("run.toml")).args(more);
        command.env("UNITAPE_RUN__SCAN", "7ms").env("UNITAPE_FEED__A_B__FORMAT", "events");
        common::finish(&mut command).code(0)
    };
    let text = show(&["--origin"]);
    for (start, end) in [
        ("run.workers = 3", "run.toml:5"),
        ("run.scan = \"7ms\"", "UNITAPE_RUN__SCAN"),
        ("run.wait = \"250ms\"", "default"),
        ("feed.a-b.format = \"events\"", "UNITAPE_FEED__A_B__FORMAT"),
    ] {
        assert!(
            text.text().lines().any(|l| l.starts_with(start) && l.ends_with(end)),
            "{start}: {}",
            text.text()
        );
    }
    let lines = show(&["--json"]).lines();
    let scan = lines.iter().find(|v| v["key"] == "run.scan").unwrap();
    assert_eq!((&scan["value"], &scan["origin"]["variable"]), (&"7ms".into(), &"UNITAPE_RUN__SCAN".into()));
}

/// A process for each feed, each with its tape, and a merge of their tapes: the same events in the same order, with their
/// sources, their quarantine and its bytes; also when segments and the merge are killed on the way.
#[test]
fn segments_apart() {
    let feeds = [
        ("a", "directory = \"a\"\nfollow = false"),
        ("b", "directory = \"b\"\nfollow = false"),
        ("c", "files = [\"c\"]"),
    ];
    let bench = Bench::new("wait = \"unbounded\"", &feeds);
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let bytes = common::flow(70 + i as u64, 1500, true).0;
        match name {
            "c" => _ = file(bench.dir.path(), "c", bytes),
            dir => {
                std::fs::create_dir(bench.path(dir)).unwrap();
                file(&bench.path(dir), "1", &bytes[..bytes.len() / 2]);
                file(&bench.path(dir), "2", &bytes[bytes.len() / 2..]);
            }
        }
    }
    assert_eq!(bench.start().ends().0, Some(3));
    let together = cat(&bench.tape(), &["--full"]);
    let plain = |events: &[serde_json::Value]| -> Vec<serde_json::Value> {
        let strip = |e: &serde_json::Value| {
            let mut e = e.clone();
            let fields = e.as_object_mut().unwrap();
            // Ids and places are each tape's own.
            ["ids", "position", "raw", "raw_at"].iter().for_each(|f| _ = fields.remove(*f));
            fields["src"].as_object_mut().unwrap().remove("id");
            e
        };
        events.iter().map(strip).collect()
    };
    let shown = |tape: &Path| -> Vec<Vec<u8>> {
        let position = |q: &serde_json::Value| q["position"].to_string();
        let show = |p: String| {
            let tape = tape.to_str().unwrap();
            common::run(["quarantine", "show", tape, &p, "--raw"]).stdout
        };
        common::quarantine(tape).iter().map(position).map(show).collect()
    };
    let raw = shown(&bench.tape());
    assert!(!raw.is_empty());
    for kills in [0, 6] {
        for gone in ["tape", "tape.segments"] {
            _ = std::fs::remove_dir_all(bench.path(gone));
        }
        bench.configure("wait = \"unbounded\"\nsegments = \"apart\"", &feeds);
        for kill in 0..kills {
            let mut run = bench.start();
            std::thread::sleep(Duration::from_millis(10 + 25 * kill));
            _ = run.child.kill();
            run.child.wait().unwrap();
            // Its segments die with it, but not before it.
            std::thread::sleep(Duration::from_millis(50));
        }
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(3), "{said}");
        let apart = cat(&bench.tape(), &["--full"]);
        assert_eq!(apart.len(), together.len(), "{kills} kills");
        let differs = plain(&apart).into_iter().zip(plain(&together)).find(|(a, b)| a != b);
        assert!(differs.is_none(), "{kills} kills: {differs:?}");
        assert!(shown(&bench.tape()) == raw, "{kills} kills");
        common::run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
        let account = unitape_feed::TapeAccount::load(&bench.tape()).unwrap();
        assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
        // Again: all is done.
        assert_eq!(bench.start().ends().0, Some(3));
        assert_eq!(cat(&bench.tape(), &["--full"]), apart);
    }
}
