//! `unitape link`: two processes and Aeron between them. The copy must be the tape, byte for byte, also when either end is killed
//! while the tape grows.

#[path = "../common/mod.rs"]
mod common;

use common::ports::free_ports;
use common::{Ran, assert_same, damage, files, run, unitape};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use unitape_model::message::MESSAGE_BYTES_MAX;
use unitape_tape::{Publication, WriterOptions};

/// Nothing takes so long that is not stuck.
const STUCK: Duration = Duration::from_secs(300);

/// Many segments of the tape of 100,000 events.
const SEGMENT_BYTES: &str = "1048576";

/// A process of ours whose notes are read as they come. It is killed when it is dropped.
struct Process {
    child: Child,
    notes: Receiver<String>,
    seen: String,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (send, notes) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, notes, seen: String::new() }
    }

    fn send(tape: &Path, address: &str, options: &[&str]) -> Self {
        let tape = tape.to_str().unwrap();
        Self::start(unitape().args(["link", "send", tape, "--listen", address]).args(options))
    }

    fn receive(dir: &Path, from: &str, options: &[&str]) -> Self {
        let dir = dir.to_str().unwrap();
        Self::start(unitape().args(["link", "receive", dir, "--from", from]).args(options))
    }

    /// Waits for a note that has these words, and returns it.
    #[track_caller]
    fn wait_for(&mut self, words: &str) -> String {
        loop {
            match self.notes.recv_timeout(STUCK) {
                Ok(line) => {
                    self.seen += &line;
                    self.seen.push('\n');
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no {words:?} in: {}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {words:?}: {}", self.seen),
            }
        }
    }

    /// The address at which a sender listens.
    #[track_caller]
    fn address(&mut self) -> String {
        self.wait_for("listening at ").split_once("listening at ").unwrap().1.to_owned()
    }

    /// Waits for the end of the process.
    #[track_caller]
    fn finish(mut self) -> Ran {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            self.seen.extend(self.notes.try_iter().map(|line| line + "\n"));
            assert!(since.elapsed() < STUCK, "it does not end: {}", self.seen);
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut stdout = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        let stderr = self.notes.iter().fold(std::mem::take(&mut self.seen), |all, line| all + &line + "\n");
        Ran { code: status.code(), stdout, stderr }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Events of banks, one a line.
fn quotes(dir: &Path, events: u32) -> PathBuf {
    let path = dir.join("banks.jsonl");
    let events = events.to_string();
    run(["generate", "banks", "-o", path.to_str().unwrap(), "--events", &events]).code(0);
    path
}

fn consolidate(input: &Path, tape: &Path) {
    let feed = format!("banks=events::{}", input.display());
    let tape = tape.to_str().unwrap();
    run(["consolidate", "--feed", &feed, "--tape", tape, "--segment-bytes", SEGMENT_BYTES]).code(0);
}

/// A `consolidate` that writes a tape for as long as its input is open.
fn start_consolidate(tape: &Path) -> (Child, ChildStdin) {
    let tape = tape.to_str().unwrap();
    let mut command = unitape();
    command.args([
        "consolidate",
        "--feed",
        "banks=events::-",
        "--tape",
        tape,
        "--segment-bytes",
        SEGMENT_BYTES,
    ]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

#[track_caller]
fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_done() {
        assert!(since.elapsed() < STUCK, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn segments(tape: &Path) -> usize {
    files(tape).keys().filter(|name| name.ends_with(".seg")).count()
}

#[test]
fn a_copy_is_the_tape_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    consolidate(&quotes(dir.path(), 100_000), &a);
    assert!(segments(&a) > 5);
    let mut sender = Process::send(&a, "127.0.0.1:0", &["--once", "--json"]);
    let receiver = Process::receive(&b, &sender.address(), &["--once", "--json"]);
    let received = receiver.finish().code(0).json();
    let sent = sender.finish().code(0).json();
    assert_same(&a, &b, "the copy");
    run(["tape", "verify", b.to_str().unwrap()]).code(0);
    let info = run(["tape", "info", b.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(received["end"], info["end"]);
    // On a slow machine there may be several sessions.
    assert_eq!((&sent["completed"], &sent["refused"]), (&1.into(), &0.into()));

    // Both end at once when there is nothing to do.
    let mut sender = Process::send(&a, "127.0.0.1:0", &["--once"]);
    let receiver = Process::receive(&b, &sender.address(), &["--once"]);
    receiver.finish().code(0).says(&["following from position"]);
    sender.finish().code(0).says(&["has the whole tape"]);
    assert_same(&a, &b, "the copy after nothing was to do");
}

/// The receiver is killed, then the sender, while `consolidate` writes the tape.
#[test]
fn a_growing_tape_is_followed_through_deaths_of_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let lines = std::fs::read(quotes(dir.path(), 60_000)).unwrap();
    let parts: Vec<&[u8]> = lines.chunks(lines.len() / 3 + 1).collect();
    let (mut writer, mut input) = start_consolidate(&a);
    input.write_all(parts[0]).unwrap();
    wait_until("the tape is made", || a.join("tape.toml").exists());
    let address = format!("127.0.0.1:{}", free_ports(1));
    let mut sender = Process::send(&a, &address, &["--once"]);
    let mut receiver = Process::receive(&b, &address, &["--once"]);
    receiver.wait_for("following");
    wait_until("a part of the tape arrives", || b.join("segments").exists() && segments(&b) > 0);
    receiver.kill();

    let mut receiver = Process::receive(&b, &address, &["--once"]);
    receiver.wait_for("following");
    input.write_all(parts[1]).unwrap();
    sender.kill();
    let mut sender = Process::send(&a, &address, &["--once"]);
    receiver.wait_for("asking again");
    receiver.wait_for("following");
    input.write_all(parts[2]).unwrap();
    // Both are still there: the tape has a writer.
    assert!(sender.child.try_wait().unwrap().is_none() && receiver.child.try_wait().unwrap().is_none());
    drop(input);
    assert!(writer.wait().unwrap().success());
    receiver.finish().code(0);
    sender.wait_for("has the whole tape");
    sender.finish().code(0);
    assert_same(&a, &b, "the copy");
    run(["tape", "verify", b.to_str().unwrap()]).code(0);
}

/// The largest frames are longer than the longest message of Aeron. Datagrams of strangers reach both ports meanwhile.
#[test]
fn frames_of_4_mib_arrive_beside_strangers() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let options = WriterOptions { segment_bytes: 8 << 20, ..WriterOptions::default() };
    let mut publication = Publication::open(&a, options).unwrap();
    for n in 0..20u8 {
        let length = if n % 4 == 0 { MESSAGE_BYTES_MAX } else { 100 * usize::from(n) };
        publication.offer(u32::from(n), &vec![n; length]).unwrap();
    }
    publication.close().unwrap();
    let mut sender = Process::send(&a, "127.0.0.1:0", &["--once"]);
    let address = sender.address();
    let mut receiver = Process::receive(&b, &address, &["--once"]);
    let note = receiver.wait_for("receiving at ");
    let receives_at = note.split_once("receiving at ").unwrap().1.split(' ').next().unwrap().to_owned();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..300usize {
        for address in [&address, &receives_at] {
            // A port that is closed already is no matter.
            _ = stranger.send_to(&vec![length as u8; length * 4], address);
            _ = stranger.send_to(&[&b"utlk\x01\x01"[..], &vec![0; length]].concat(), address);
        }
    }
    receiver.finish().code(0);
    sender.finish().code(0);
    assert_same(&a, &b, "the copy");
}

/// The raw bytes of quarantine are in a file beside the segments.
#[test]
fn quarantine_arrives_with_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let good = std::fs::read_to_string(quotes(dir.path(), 5_000)).unwrap();
    let bad = (0..).map(|n| format!("{{ this is no event: {n}, {}", "x".repeat(n % 900)));
    let lines: Vec<String> = good.lines().zip(bad).flat_map(|(good, bad)| [good.to_owned(), bad]).collect();
    let input = dir.path().join("mixed.jsonl");
    std::fs::write(&input, lines.join("\n")).unwrap();
    let feed = format!("banks=events::{}", input.display());
    let tape = a.to_str().unwrap();
    run(["consolidate", "--feed", &feed, "--tape", tape, "--segment-bytes", SEGMENT_BYTES]).code(3);
    let mut sender = Process::send(&a, "127.0.0.1:0", &["--once"]);
    Process::receive(&b, &sender.address(), &["--once"]).finish().code(0);
    sender.finish().code(0);
    assert_same(&a, &b, "the copy");
    assert!(files(&b)["quarantine.raw"].len() > 1 << 20);
    run(["tape", "verify", b.to_str().unwrap()]).code(0);
    let entries = common::quarantine(&b);
    assert_eq!(entries.len(), 5_000);
    let position = entries[700]["position"].to_string();
    let shown = run(["quarantine", "show", b.to_str().unwrap(), &position]).code(0);
    assert!(shown.text().contains("this is no event: 700,"), "{}", shown.text());
}

/// Two runs of one configuration have the same tape id. A copy of one must not become a mixture of both.
#[test]
fn another_tape_is_refused_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let quotes = quotes(dir.path(), 3_000);
    consolidate(&quotes, &a);
    let other = dir.path().join("other.jsonl");
    std::fs::write(&other, std::fs::read_to_string(&quotes).unwrap().lines().next().unwrap()).unwrap();
    consolidate(&other, &b);
    let all = |dir: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let mut folders = vec![dir.to_owned()];
        let mut all = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => all.push((path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        all.sort();
        all
    };
    let before = all(&b);
    let mut sender = Process::send(&a, "127.0.0.1:0", &[]);
    let receiver = Process::receive(&b, &sender.address(), &["--once"]);
    receiver.finish().code(1).says(&["the sender at 127.0.0.1", "refuses: "]);
    assert!(all(&b) == before, "a refused receiver changes no byte");
    sender.wait_for("refused: ");
    // It still serves others.
    let c = dir.path().join("c");
    let from = sender.seen.lines().next().unwrap().split_once("listening at ").unwrap().1.to_owned();
    Process::receive(&c, &from, &["--once"]).finish().code(0);
    assert_same(&a, &c, "the copy");
}

#[test]
fn damage_is_never_sent() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    consolidate(&quotes(dir.path(), 60_000), &a);
    let segment = a.join("segments/0000000000000003.seg");
    damage::flip(&segment, damage::HEADER_PAGE + 5 * damage::SPAN);
    let mut sender = Process::send(&a, "127.0.0.1:0", &["--once"]);
    let receiver = Process::receive(&b, &sender.address(), &["--once"]);
    receiver.finish().code(3).says(&["refuses: damage: ", "0000000000000003.seg"]);
    sender.finish().code(3).says(&["damage: ", "0000000000000003.seg"]);
    // What came before it is whole.
    run(["tape", "verify", b.to_str().unwrap()]).code(0);
    assert_eq!(
        std::fs::read(a.join("segments/0000000000000002.seg")).ok(),
        std::fs::read(b.join("segments/0000000000000002.seg")).ok()
    );
}

/// A port of somebody else, a directory that is none: the cause is named, nobody waits.
#[test]
fn what_cannot_be_done_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a");
    let missing = dir.path().join("missing");
    run(["link", "send", missing.to_str().unwrap(), "--listen", "127.0.0.1:0"]).code(1).says(&["not a tape"]);
    consolidate(&quotes(dir.path(), 100), &a);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = run(["link", "send", a.to_str().unwrap(), "--listen", &address]).code(1);
    ran.says(&["listen at 127.0.0.1:", "Address already in use"]);
    let mut stopped = Process::send(&a, "127.0.0.1:0", &["--json"]);
    stopped.address();
    interrupt(&stopped);
    let figures = stopped.finish().code(0).json();
    assert_eq!(figures["sessions"], Value::from(0));
}

fn interrupt(process: &Process) {
    // The signal handler is there before the note that a sender listens.
    let id = process.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}
