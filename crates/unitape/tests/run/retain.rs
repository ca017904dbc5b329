//! A run that keeps little of its tape, killed again and again: all that was ever on the tape is what a run that was
//! left alone, and kept everything, has.
//!
//! Earlier mistakes: the account of the sources was on the tape alone. So a restart after retention read every source
//! again from its start, and cut off the raw bytes of the quarantine. `UNITAPE_KILL_ROUNDS` asks for more kills,
//! `UNITAPE_KILL_SEED` for other moments.
#![cfg(unix)]

use crate::common::{self, file, run, unitape};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use unitape_feed::TapeAccount;
use unitape_model::{FrameHeader, Position};
use unitape_sim::Rng;
use unitape_tape::{Cursor, Reader, StartPosition, tape_status};

const SEGMENT: u64 = 16 << 10;

/// A place to run in: a file that is whole, and a directory in which one file grows.
struct RunFolder {
    dir: PathBuf,
}

impl RunFolder {
    fn new(dir: PathBuf, whole: &[u8], retain: &str) -> Self {
        std::fs::create_dir_all(dir.join("in")).unwrap();
        file(&dir, "whole.fix", whole);
        let place = Self { dir };
        place.configure(retain);
        place
    }

    fn configure(&self, retain: &str) {
        let feed = |name: &str, input: &str| {
            format!("[[feed]]\nname = \"{name}\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\n{input}\n")
        };
        let config = [
            format!("[tape]\ndir = \"tape\"\nsegment_bytes = {SEGMENT}\nsync = \"5ms\"\n{retain}\n"),
            "[run]\nwait = \"unbounded\"\nstats = \"20ms\"\nscan = \"5ms\"\n".to_owned(),
            feed("whole", "files = [\"whole.fix\"]"),
            feed("grows", "directory = \"in\""),
        ];
        file(&self.dir, "run.toml", config.concat());
    }

    fn start(&self, workers: u64) -> Child {
        let out = File::create(self.dir.join("out")).unwrap();
        let err = File::options().append(true).create(true).open(self.dir.join("err")).unwrap();
        let mut command = unitape();
        command.arg("run").arg(self.dir.join("run.toml")).args(["--json", "--workers", &workers.to_string()]);
        command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap()
    }

    fn grow(&self, bytes: &[u8]) {
        let path = self.dir.join("in/all.fix");
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn tape(&self) -> PathBuf {
        self.dir.join("tape")
    }

    fn oldest(&self) -> u64 {
        tape_status(&self.tape()).map_or(0, |s| s.oldest_position.0)
    }

    /// Whether the run reported last that it read `bytes` of the growing file and all of the other one. A run that is
    /// stopped before leaves the events that wait for the other file to the next run.
    fn has_read(&self, bytes: usize) -> bool {
        let text = std::fs::read_to_string(self.dir.join("out")).unwrap();
        let figures = |line: &str| serde_json::from_str::<Value>(line).ok().map(|v| v["stats"].clone());
        let last = |name: &str| text.lines().filter_map(figures).rfind(|f| f["feed"] == name);
        let read = last("grows").map_or(0, |f| f["read_bytes"].as_u64().unwrap());
        read >= bytes as u64 && last("whole").is_some_and(|f| f["state"] == "ended")
    }

    fn wait(&self, child: &mut Child, what: &str, there: impl Fn() -> bool) {
        while !there() {
            if let Some(status) = child.try_wait().unwrap() {
                let said = std::fs::read_to_string(self.dir.join("err")).unwrap();
                panic!("waiting for {what}: ended with {status}: {said}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn stop(&self, mut child: Child) {
        let term =
            std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(term.success());
        let status = child.wait().unwrap();
        let said = std::fs::read_to_string(self.dir.join("err")).unwrap();
        assert_eq!(status.code(), Some(3), "{said}");
    }
}

/// Every frame that becomes durable, read from the tape before it may go: the cursor holds it.
fn archive(tape: &Path, all: &Mutex<Vec<u8>>, over: &AtomicBool) {
    let mut at = Position(0);
    loop {
        let last = over.load(Ordering::Acquire);
        if let Ok(durable) = tape_status(tape).map(|s| s.durable)
            && durable > at
        {
            let mut reader = Reader::open(tape, StartPosition::At(at)).unwrap();
            let mut all = all.lock().unwrap();
            while reader.position() < durable {
                let Some(frame) = reader.next().unwrap() else { break };
                // Events that are not durable may be cut and come again.
                if frame.position >= durable {
                    break;
                }
                all.extend_from_slice(frame.bytes);
                at = Position(frame.position.0 + frame.bytes.len() as u64);
            }
            Cursor::open(tape, "archive").unwrap().store(at).unwrap();
        }
        if last {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn everything(tape: &Path) -> Vec<u8> {
    let mut reader = Reader::open(tape, StartPosition::Oldest).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        all.extend_from_slice(frame.bytes);
    }
    all
}

#[test]
fn restarts_after_retention_are_exact() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (kills, seed) = (number("UNITAPE_KILL_ROUNDS", 8), number("UNITAPE_KILL_SEED", 1));
    let dir = tempfile::tempdir().unwrap();
    let (whole, grows) = (common::flow(61, 700, true).0, common::flow(62, 1000 * kills, true).0);

    let alone = RunFolder::new(dir.path().join("alone"), &whole, "");
    alone.grow(&grows);
    let mut child = alone.start(2);
    alone.wait(&mut child, "all to be read", || alone.has_read(grows.len()));
    alone.stop(child);

    let retain =
        format!("retain_bytes = {SEGMENT}\nretain_notice = \"0s\"\nretain_hold_bytes = 1000000000\n");
    let killed = RunFolder::new(dir.path().join("killed"), &whole, "");
    let (all, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let archiver = scope.spawn(|| archive(&killed.tape(), &all, &over));
        let mut rng = Rng::new(seed);
        let mut at = 0;
        // A cursor wants a tape: all is kept until there is one, so that nothing goes unseen.
        let mut child = killed.start(1);
        let stored = || Cursor::open(&killed.tape(), "archive").and_then(|c| c.load());
        killed.wait(&mut child, "a cursor", || matches!(stored(), Ok(Some(_))));
        child.kill().unwrap();
        child.wait().unwrap();
        killed.configure(&retain);
        for kill in 1..=kills {
            let to = (grows.len() as u64 * kill / kills) as usize;
            let gone = killed.oldest();
            let mut child = killed.start(1 + rng.below(3));
            while at < to {
                let next = (at + 1 + rng.below(40_000) as usize).min(to);
                killed.grow(&grows[at..next]);
                at = next;
                std::thread::sleep(Duration::from_micros(rng.below(2000)));
            }
            killed.wait(&mut child, "retention", || killed.oldest() > gone);
            std::thread::sleep(Duration::from_micros(rng.below(60_000)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut child = killed.start(2);
        killed.wait(&mut child, "all to be read", || killed.has_read(grows.len()));
        killed.stop(child);
        // Release: pairs with the Acquire of the archiver; the tape is closed.
        over.store(true, Ordering::Release);
        archiver.join().unwrap();
    });

    let (one, other) = (everything(&alone.tape()), all.into_inner().unwrap());
    let differ = one.chunks(64).zip(other.chunks(64)).position(|(a, b)| a != b);
    let of = |bytes: &[u8]| differ.map(|line| FrameHeader::read(&bytes[line * 64..]));
    assert_eq!(
        (one.len(), differ),
        (other.len(), None),
        "UNITAPE_KILL_SEED={seed}: {:?} and {:?}",
        of(&one),
        of(&other)
    );
    for name in ["definitions.log", "quarantine.raw"] {
        let read = |place: &RunFolder| std::fs::read(place.tape().join(name)).unwrap();
        assert!(read(&alone) == read(&killed), "UNITAPE_KILL_SEED={seed}: {name}");
    }
    let summary = |place: &RunFolder| {
        serde_json::to_value(TapeAccount::load(&place.tape()).unwrap().summary()).unwrap()
    };
    assert_eq!(summary(&alone), summary(&killed), "UNITAPE_KILL_SEED={seed}");
    let tape = killed.tape();
    let tape = tape.to_str().unwrap();
    run(["tape", "verify", tape]).code(0);
    let info = run(["tape", "info", tape, "--json"]).code(0).json();
    assert_eq!(info["first"], killed.oldest());
    assert_eq!(info["kept"]["cursors"][0]["name"], "archive");
    assert_eq!(info["kept"]["cursors"][0]["lag_bytes"], 0);
}
