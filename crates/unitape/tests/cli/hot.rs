//! Tapes in shared memory that are copied, moved, or whose `run/hot` names what is not theirs.
#![cfg(unix)]

use crate::common::{self, Ran, file, files, oids, run};
use common::run::{Bench, Running, becomes, names, orders};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A run onto a hot tape, of the orders that lie in a directory.
struct HotBench {
    bench: Bench,
    files: u32,
}

impl HotBench {
    fn new() -> Self {
        let bench = Bench::new("", &[("a", "directory = \"in\"")]);
        std::fs::create_dir(bench.path("in")).unwrap();
        let text = std::fs::read_to_string(bench.path("run.toml")).unwrap();
        let hot = "[tape]\nbacking = \"hot\"\nsync = \"20ms\"\nsegment_bytes = 1048576\n";
        file(bench.dir.path(), "run.toml", text.replacen("[tape]\n", hot, 1));
        Self { bench, files: 0 }
    }

    /// Brings orders, and waits until they are on the tape.
    #[track_caller]
    fn bring(&mut self, running: &mut Running, numbers: std::ops::Range<u32>) {
        self.files += 1;
        let wanted = u64::from(numbers.end) - 1;
        file(&self.bench.path("in"), &self.files.to_string(), orders(numbers));
        let since = Instant::now();
        running.until(|| {
            let account = unitape_feed::TapeAccount::load(&self.bench.tape());
            let there = account.map_or(0, |a| a.summary().by_kind.get("order_new").copied().unwrap_or(0));
            assert!(since.elapsed() < Duration::from_secs(60), "{there} of {wanted} orders are on the tape");
            there >= wanted
        });
    }

    /// Waits until the disk has all that is on the tape.
    fn settle(&self) {
        let since = Instant::now();
        loop {
            let info = unitape_tape::info(&self.bench.tape()).unwrap();
            if info.durable == info.end_position {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "nothing becomes durable");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn copy(&self, name: &str) -> PathBuf {
        let to = self.bench.path(name);
        assert!(Command::new("cp").arg("-r").arg(self.bench.tape()).arg(&to).status().unwrap().success());
        to
    }
}

fn tape(command: &[&str], dir: &Path) -> Ran {
    run(command.iter().map(OsStr::new).chain([dir.as_os_str()]))
}

/// The exit code of a run that is to end by itself.
#[track_caller]
fn ends(mut running: Running) -> (Option<i32>, String) {
    if !becomes(|| running.child.try_wait().unwrap().is_some()) {
        let _ = running.child.kill();
        panic!("it does not end: {}", running.said());
    }
    running.ends()
}

fn hot_of(tape: &Path) -> PathBuf {
    std::fs::read_to_string(tape.join("run/hot")).unwrap().trim_end().into()
}

/// A copy made in the middle of a run is read from its own files, and a command that writes to it leaves the run alone:
/// it removed the shared memory of the run, whose later events were on no tape.
#[test]
fn a_copy_of_a_running_tape_is_a_tape_of_its_own() {
    let mut hot = HotBench::new();
    let mut running = hot.bench.start();
    hot.bring(&mut running, 1..100);
    hot.settle();
    let copied = hot.copy("copy");
    hot.bring(&mut running, 100..200);
    assert_eq!(oids(&copied), names(1..100), "events of the original");
    let said = ["copy", "is a copy", "own files"];
    tape(&["tape", "cat"], &copied).code(0).says(&said);
    tape(&["tape", "verify"], &copied).code(0).says(&said);
    tape(&["book", "show"], &copied).says(&said);
    tape(&["watch", "replay"], &copied).says(&said);
    let info = tape(&["tape", "info", "--json"], &copied).code(0).json();
    assert_eq!((&info["backing"], &info["writer"]), (&"file".into(), &serde_json::Value::Null));
    assert!(info["hot_notice"].as_str().unwrap().contains("is a copy"));
    let before = files(&hot_of(&hot.bench.tape()));
    assert!(!before.is_empty());
    tape(&["quarantine", "retry"], &copied).code(0).says(&said);
    assert!(before.keys().all(|name| files(&hot_of(&hot.bench.tape())).contains_key(name)));
    hot.bring(&mut running, 200..400);
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&hot.bench.tape()), names(1..400));
    assert_eq!(oids(&copied), names(1..100));
    for dir in [&copied, &hot.bench.tape()] {
        let ran = tape(&["tape", "verify"], dir).code(0);
        assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    }
}

/// A run that was killed, and whose tape was then moved to another file system: what was in shared memory alone is not
/// forgotten, and the same run continues with it.
#[test]
fn a_killed_tape_that_was_moved_is_not_opened_without_its_memory() {
    let mut hot = HotBench::new();
    let mut running = hot.bench.start();
    hot.bring(&mut running, 1..300);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let place = hot_of(&hot.bench.tape());
    let moved = hot.copy("moved");
    std::fs::remove_dir_all(hot.bench.tape()).unwrap();
    // The flushed part is known; without this file all of it is unverified.
    let is_flushed = moved.join("durable").exists();
    let config = std::fs::read_to_string(hot.bench.path("run.toml")).unwrap();
    file(hot.bench.dir.path(), "run.toml", config.replace("\"tape\"", "\"moved\"") + "\n");
    std::fs::rename(hot.bench.path("tape.journal"), hot.bench.path("moved.journal")).ok();

    let named = place.to_str().unwrap();
    let (code, said) = ends(hot.bench.start());
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains(named) && said.contains("--adopt"), "{said}");
    let shown = tape(&["tape", "hot"], &moved).code(3);
    assert!(shown.text().contains(named) && shown.text().contains("--adopt"), "{}", shown.text());
    tape(&["tape", "verify"], &moved).code(3);
    tape(&["quarantine", "retry"], &moved).code(3).says(&[named, "--adopt"]);
    tape(&["tape", "hot", "--adopt"], &moved).code(0);
    let shown = tape(&["tape", "hot", "--json"], &moved).code(0).json();
    assert_eq!(shown["hot"], named);
    let read = tape(&["tape", "cat", "--json"], &moved).code(if is_flushed { 0 } else { 3 });
    assert_eq!(read.text().lines().count(), 299);
    let mut running = hot.bench.start();
    running.until(|| unitape_tape::info(&moved).is_ok_and(|info| info.writer.is_some()));
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oids(&moved), names(1..300));
    assert!(!place.exists());
    tape(&["tape", "verify"], &moved).code(0);
    let shown = tape(&["tape", "hot"], &moved).code(0);
    assert_eq!(shown.text(), "this tape has no hot segments\n");
    tape(&["tape", "hot", "--forget"], &moved).code(2);
}

/// Files of somebody else in a directory that `run/hot` names, with names that begin as ours do.
#[test]
fn a_name_in_run_hot_removes_nothing_elsewhere() {
    let bench = Bench::new("", &[("a", "files = [\"1\"]")]);
    file(bench.dir.path(), "1", orders(1..50));
    assert_eq!(bench.start().ends().0, Some(0));
    let victim = bench.path("victim");
    std::fs::create_dir(&victim).unwrap();
    for name in ["0000000000000000.seg", "prepared-speech.txt", "making-of.mkv", "spare-parts.csv"] {
        file(&victim, name, name);
    }
    let before = files(&victim);
    std::fs::create_dir_all(bench.tape().join("run")).unwrap();
    file(&bench.tape().join("run"), "hot", format!("{}\n", victim.display()));
    let ran = tape(&["quarantine", "retry"], &bench.tape());
    assert!(files(&victim) == before, "{}", ran.stderr);
    ran.code(0).says(&["no hot directory of this tape", "victim"]);
    assert_eq!(oids(&bench.tape()), names(1..50));
    tape(&["tape", "verify"], &bench.tape()).code(0);
}

/// A run that was killed while its recorder had got no further than the first orders: the others are in shared memory
/// alone. The recorder writes without a flush, so the test takes away what it wrote.
fn killed_ahead() -> HotBench {
    let mut hot = HotBench::new();
    let mut running = hot.bench.start();
    hot.bring(&mut running, 1..100);
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    let config = std::fs::read_to_string(hot.bench.path("run.toml")).unwrap();
    file(hot.bench.dir.path(), "run.toml", config.replace("20ms", "1h"));
    let mut running = hot.bench.start();
    hot.bring(&mut running, 100..300);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let durable = std::fs::read(hot.bench.tape().join("durable")).unwrap();
    let durable = u64::from_le_bytes(durable[16..24].try_into().unwrap()) as usize;
    let segment = hot.bench.tape().join("segments/0000000000000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[4096 + durable..].fill(0);
    std::fs::write(&segment, bytes).unwrap();
    hot
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// The name or a mark of hot segments is lost or damaged: commands ended with 0 without the newest events, and the next
/// run removed the name and continued without them.
#[test]
fn hot_segments_whose_name_or_mark_is_lost_are_not_left_out() {
    type Damage = fn(&Path, &Path);
    let cases: [(&str, Damage); 7] = [
        ("the mark in the hot directory is damaged", |_, hot| flip(&hot.join("hot.mark"), 20)),
        ("the path in that mark is damaged", |_, hot| flip(&hot.join("hot.mark"), 130)),
        ("the mark in the hot directory is lost", |_, hot| {
            std::fs::remove_file(hot.join("hot.mark")).unwrap()
        }),
        ("run/hot.mark is damaged", |tape, _| flip(&tape.join("run/hot.mark"), 20)),
        ("run/hot.mark is lost", |tape, _| std::fs::remove_file(tape.join("run/hot.mark")).unwrap()),
        ("run/hot is lost", |tape, _| std::fs::remove_file(tape.join("run/hot")).unwrap()),
        ("run/hot names another directory", |tape, _| flip(&tape.join("run/hot"), 20)),
    ];
    for (what, damage) in cases {
        let hot = killed_ahead();
        let dir = hot.bench.tape();
        let place = hot_of(&dir);
        damage(&dir, &place);
        let ways = [place.to_str().unwrap(), "--adopt", "--forget"];
        let shown = tape(&["tape", "hot"], &dir).code(3);
        assert!(ways.iter().all(|way| shown.text().contains(way)), "{what}: {}", shown.text());
        tape(&["tape", "verify"], &dir).code(3).says(&ways);
        let read = tape(&["tape", "cat", "--json"], &dir).code(3).says(&ways);
        let there = read.lines().iter().filter(|event| event["kind"] == "order_new").count();
        assert_eq!(there, 99, "{what}: what is on the disk is printed");
        for command in [&["tape", "info"][..], &["tape", "replay"], &["book", "show"], &["watch", "replay"]] {
            tape(command, &dir).code(3);
        }
        let repair = tape(&["tape", "repair"], &dir).code(3);
        assert!(
            repair.text().contains("--adopt") && !repair.text().contains("not there"),
            "{}",
            repair.text()
        );
        let (before, in_memory) = (files(&dir), files(&place));
        let (code, said) = ends(hot.bench.start());
        assert_eq!(code, Some(3), "{what}: {said}");
        assert!(ways.iter().all(|way| said.contains(way)), "{what}: {said}");
        let kept = |name: &str| files(&dir).get(name) == before.get(name);
        assert!(kept("run/hot") && kept("run/hot.mark") && files(&place) == in_memory, "{what}");
        // A copy is opened from its own files, as long as the original is there.
        let copied = hot.copy("copy");
        assert_eq!(oids(&copied), names(1..100), "{what}");
        tape(&["tape", "cat"], &copied).code(0).says(&["is a copy"]);
        tape(&["tape", "hot", "--adopt"], &dir).code(0);
        tape(&["tape", "hot"], &dir).code(0);
        assert_eq!(oids(&dir), names(1..300), "{what}");
        let mut running = hot.bench.start();
        running.until(|| unitape_tape::info(&dir).is_ok_and(|info| info.writer.is_some()));
        let (code, said) = running.stop();
        assert_eq!((code, oids(&dir)), (Some(0), names(1..300)), "{what}: {said}");
        assert!(!place.exists(), "{what}");
        tape(&["tape", "verify"], &dir).code(0);
    }
}

/// The other way out: the tape is opened without what only shared memory had.
#[test]
fn hot_segments_whose_mark_is_damaged_can_be_forgotten() {
    let hot = killed_ahead();
    let dir = hot.bench.tape();
    let place = hot_of(&dir);
    flip(&place.join("hot.mark"), 70);
    tape(&["tape", "verify"], &dir).code(3);
    tape(&["tape", "hot", "--forget"], &dir).code(0);
    assert_eq!(oids(&dir), names(1..100));
    tape(&["tape", "hot"], &dir).code(0);
    assert!(place.exists());
    std::fs::remove_dir_all(place).unwrap();
}
