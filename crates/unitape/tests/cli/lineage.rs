//! A tape that a power loss made shorter, at the command line: what `info` says of names, and what `cat` and `book` print
//! that follow it.

use crate::common::{self, file, order_with, run, unitape};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use unitape_tape::{Cursor, Reader, StartPosition};

/// Copies the tape's files, `run/` aside.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true if path.ends_with("run") => {}
            true => copy(&path, &target),
            false => _ = std::fs::copy(&path, &target).unwrap(),
        }
    }
}

/// The power fails while a writer has the tape open: what the disk has is what it had when `disk` was copied.
fn power_fails(tape: &Path, disk: &Path) {
    let segments = |dir: &Path| std::fs::read_dir(dir.join("segments")).unwrap().count();
    assert_eq!(segments(tape), segments(disk), "there is one segment, which changes");
    for entry in std::fs::read_dir(disk.join("segments")).unwrap() {
        let name = Path::new("segments").join(entry.unwrap().file_name());
        replace(&disk.join(&name), &tape.join(&name));
    }
    for name in ["definitions.log", "durable"] {
        replace(&disk.join(name), &tape.join(name));
    }
    std::fs::create_dir_all(tape.join("run")).unwrap();
    std::fs::write(tape.join("run/writer.lock"), "pid 1\nepoch 1\nboot another\n").unwrap();
}

/// At once, so that nobody who looks meanwhile misses a file.
fn replace(from: &Path, to: &Path) {
    let temp = to.with_extension("temp");
    std::fs::copy(from, &temp).unwrap();
    std::fs::rename(&temp, to).unwrap();
}

/// Orders `from..to`, priced by their number and `plus`.
fn orders(tape: &Path, name: &str, numbers: std::ops::Range<u32>, plus: u32) {
    let bytes: Vec<u8> = numbers.flat_map(|n| order_with(n, &format!("44={}|", n + plus))).collect();
    common::consolidate_orders(&file(tape.parent().unwrap(), name, bytes), tape, 0);
}

fn end(tape: &Path) -> u64 {
    Reader::open(tape, StartPosition::End).unwrap().position().0
}

fn store(tape: &Path, name: &str) {
    let end = Reader::open(tape, StartPosition::End).unwrap().position();
    Cursor::open(tape, name).unwrap().store(end).unwrap();
}

/// `info` called the name an error as long as the tape was shorter, and then nothing at all.
#[test]
fn info_tells_where_a_name_continues() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, disk) = (dir.path().join("t"), dir.path().join("disk"));
    orders(&tape, "1.fix", 1..10, 0);
    let cut = end(&tape);
    copy(&tape, &disk);
    orders(&tape, "2.fix", 10..40, 0);
    store(&tape, "archive");
    let from = end(&tape);
    power_fails(&tape, &disk);
    let cursor = |at: &str| {
        let info = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json();
        let cursor = info["kept"]["cursors"][0].clone();
        assert_eq!(cursor["error"], Value::Null, "{at}: {cursor}");
        assert_eq!((&cursor["position"], &cursor["rewound_from"]), (&cut.into(), &from.into()), "{at}");
        cursor["lag_events"].as_u64().unwrap()
    };
    assert_eq!(cursor("before a writer came"), 0);
    orders(&tape, "3.fix", 50..60, 0);
    assert_eq!(cursor("shorter"), 10);
    orders(&tape, "4.fix", 60..200, 0);
    assert!(end(&tape) > from);
    assert_eq!(cursor("grown past it"), 150);
    let text = run(["tape", "info", tape.to_str().unwrap()]).code(0);
    assert!(text.text().contains(&format!("rewound from {from}")), "{}", text.text());
}

/// A command that follows a tape, and the lines it prints.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn new(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    fn next(&self) -> Value {
        // Longer than a machine stays frozen.
        let line = self.lines.recv_timeout(Duration::from_secs(120)).expect("the command prints no more");
        serde_json::from_str(&line).unwrap()
    }

    /// Asks it to stop: its exit code, and what it said on stderr.
    fn stop(mut self) -> (Option<i32>, String) {
        let kill = std::process::Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let mut said = String::new();
        std::io::Read::read_to_string(self.child.stderr.as_mut().unwrap(), &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A follower continued in the middle of the new events, and its last exit code was 0.
#[test]
fn cat_and_book_that_follow_print_what_comes_at_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, disk) = (dir.path().join("t"), dir.path().join("disk"));
    orders(&tape, "1.fix", 1..10, 0);
    copy(&tape, &disk);
    orders(&tape, "2.fix", 10..40, 0);
    let start = |arguments: &[&str]| {
        let mut command = unitape();
        command.args(arguments).arg(&tape).args(["--json", "--follow"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let cat = Follower::new(start(&["tape", "cat", "--kind", "order_new"]));
    let book = Follower::new(start(&["book", "bbo"]));
    for n in 1..40 {
        assert_eq!(
            (cat.next()["oid"].as_str(), book.next()["bid"].as_str()),
            (Some(&*format!("O{n}")), Some(&*n.to_string()))
        );
    }
    power_fails(&tape, &disk);
    orders(&tape, "3.fix", 50..150, 0);
    let rewind = cat.next();
    assert_eq!(rewind["kind"], "rewound", "{rewind}");
    assert!(rewind["from"].as_u64() > rewind["to"].as_u64(), "{rewind}");
    for n in 50..150 {
        assert_eq!(cat.next()["oid"], format!("O{n}"));
        assert_eq!(book.next()["bid"], n.to_string());
    }
    for follower in [cat, book] {
        let (code, said) = follower.stop();
        assert_eq!(code, Some(3));
        assert!(said.contains("was cut back from position") && said.contains("cut back 1 time"), "{said}");
    }
}
