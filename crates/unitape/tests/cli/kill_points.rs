//! Commands that change a tape or a store, killed at each of their calls that change a file.
//!
//! A repair that was killed between the rewrite of `durable` and the move of the segments once left damaged frames where
//! readers compare nothing: `tape cat` printed a false price with exit code 0, and a merge put it under good checksums.
//! After each kill readers must find the old state or the new one, or report the damage as before, and the same command
//! again must end in the files of a run that nobody killed.
#![cfg(target_os = "linux")]

use crate::common::damage::{HEADER_PAGE, change, shorten};
use crate::common::kill_points::{KillPoints, arguments, cat, copy, remove};
use crate::common::{assert_same, file, files, flow, orders_option, run, unitape};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use unitape_tape::{ReadOptions, Reader, StartPosition};

const SEGMENT: u64 = 128 << 10;

/// A closed tape of trades at the price 100, in a few segments.
struct TradeBench {
    dir: tempfile::TempDir,
    tape: PathBuf,
    kill_points: KillPoints,
    /// The lines of `tape cat` of the tape without damage.
    lines: Vec<String>,
}

impl TradeBench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("tape");
        trade_tape(dir.path(), "X", &tape);
        let (code, lines) = cat(&tape);
        assert_eq!(code, Some(0));
        assert!(tape.join(format!("segments/{:016x}.seg", 2)).exists());
        Self { dir, tape, kill_points: KillPoints::new(), lines }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn segment(&self, index: u64) -> PathBuf {
        self.tape.join(format!("segments/{index:016x}.seg"))
    }

    fn crc(&self, index: u64) -> PathBuf {
        self.tape.join(format!("segments/{index:016x}.crc"))
    }

    /// Changes the price of a trade.
    fn falsify(&self, trade: usize) {
        let unverified = ReadOptions { verify: false, ..ReadOptions::default() };
        let mut reader = Reader::open_with(&self.tape, StartPosition::Oldest, unverified).unwrap();
        let mut events = 0;
        let position = loop {
            let frame = reader.next().unwrap().expect("a trade of that number");
            events += usize::from(!frame.header.is_meta());
            if events == trade {
                break frame.position.0;
            }
        };
        change(&self.segment(position / SEGMENT), HEADER_PAGE + position % SEGMENT + PRICE, |byte| byte ^ 64);
    }

    /// Kills `tape repair` with these options at its calls, reads, and repairs again.
    fn kill_repairs(&self, options: &[&str], check: impl Fn(&RepairedTape<'_>)) {
        let args = |tape: &Path| {
            let words = [&["tape", "repair", tape.to_str().unwrap(), "--apply"], options].concat();
            arguments(&words)
        };
        let whole = self.path("whole");
        copy(&self.tape, &whole);
        let (ran, calls) = self.kill_points.count(&args(&whole));
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
        let (code, content, after) = (ran.code, content(&whole), cat(&whole));
        assert!(content != self::content(&self.tape), "nothing was repaired");
        for (round, call) in KillPoints::points(calls).enumerate() {
            let tape = self.path("killed");
            copy(&self.tape, &tape);
            let killed = self.kill_points.kill_at(call, &args(&tape));
            let name = format!("call {call} of {calls}: {}", killed.stderr);
            assert!(killed.was_killed, "{name}");
            let (code_read, lines) = cat(&tape);
            let is_intact = verify(&tape) == Some(0);
            check(&RepairedTape {
                round,
                name: &name,
                tape: &tape,
                code: code_read,
                lines: &lines,
                after: &after,
            });
            assert!(!is_intact || (code_read, &lines) == (after.0, &after.1), "{name}: verify finds nothing");
            let again = run(args(&tape));
            assert_eq!(again.code, code, "{name}: {}", again.stderr);
            same(&self::content(&tape), &content, &name);
            assert_eq!(cat(&tape), after, "{name}");
            remove(&tape);
        }
        remove(&whole);
    }
}

/// What a reader finds after a killed repair.
struct RepairedTape<'a> {
    round: usize,
    name: &'a str,
    tape: &'a Path,
    code: Option<i32>,
    lines: &'a [String],
    /// The same after a repair that was not killed.
    after: &'a (Option<i32>, Vec<String>),
}

/// Where a trade's frame has its price.
const PRICE: u64 = 40;

/// Makes a tape of trades.
fn trade_tape(dir: &Path, venue: &str, tape: &Path) {
    let mut text = String::new();
    for n in 0..4500u64 {
        let (ts, instrument) = (1_772_440_000_000_000_000 + n * 1000, n % 30);
        text += &format!(
            "{{\"ts\":{ts},\"kind\":\"trade\",\"venue\":\"{venue}\",\"instr\":\"I{instrument}\",\"px\":\"100\",\"qty\":\"1\",\"match_id\":\"{venue}-{n}\"}}\n"
        );
    }
    let feed = format!("{venue}=events:events:{}", file(dir, &format!("{venue}.jsonl"), text).display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "131072"])
        .code(0);
}

/// The files of a tape without what repairs keep.
fn content(tape: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = files(tape);
    all.retain(|name, _| !name.starts_with("repair") && !name.starts_with("run/"));
    all
}

fn verify(tape: &Path) -> Option<i32> {
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code
}

#[track_caller]
fn same(found: &BTreeMap<String, Vec<u8>>, wanted: &BTreeMap<String, Vec<u8>>, name: &str) {
    let names = found.keys().chain(wanted.keys());
    let other: Vec<_> = names.filter(|file| found.get(*file) != wanted.get(*file)).collect();
    assert!(other.is_empty(), "{name}: {other:?} are not those of a run that was not killed");
}

/// The cut moves the damaged segment away, with the one after it.
#[test]
fn a_repair_that_is_killed_while_it_cuts_at_a_segment_serves_no_damage() {
    kill_cuts(2600);
}

/// The cut replaces the damaged segment, and moves the one after it away.
#[test]
fn a_repair_that_is_killed_while_it_cuts_in_a_segment_serves_no_damage() {
    kill_cuts(3500);
}

fn kill_cuts(trade: usize) {
    let bench = TradeBench::new();
    bench.falsify(trade);
    // Readers compare all of a file that is read-only. The last segment is not, and copies lose their permissions.
    for index in 0..3 {
        std::fs::set_permissions(bench.segment(index), Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!(cat(&bench.tape).0, Some(3));
    let merged = bench.path("merged");
    bench.kill_repairs(&["--truncate"], |found| {
        let name = found.name;
        assert!(bench.lines.starts_with(found.lines), "{name}: a line is not true");
        match found.code {
            Some(3) => {}
            // Only the whole cut: no reader may take the tape for one that ends elsewhere.
            Some(0) => assert_eq!(found.lines, found.after.1, "{name}"),
            other => panic!("{name}: tape cat ends with {other:?}"),
        }
        if found.round % 4 != 0 {
            return;
        }
        let words = ["consolidate", "--tape-in", found.tape.to_str().unwrap(), "--tape"];
        let merge = run(words.iter().map(AsRef::as_ref).chain([merged.as_os_str()]));
        assert_eq!(merge.code, found.code, "{name}: {}", merge.stderr);
        remove(&merged);
    });
}

#[test]
fn a_repair_that_is_killed_while_it_accepts_data_marks_them_first() {
    let bench = TradeBench::new();
    bench.falsify(300);
    bench.falsify(4400);
    shorten(&bench.crc(1), 0);
    bench.kill_repairs(&["--accept-unverified"], |found| {
        let name = found.name;
        // What is accepted is read, and all else is as it was.
        assert!(found.after.1.starts_with(found.lines), "{name}: a line is none of the tape");
        match found.code {
            Some(3) => {}
            Some(0) => assert_eq!(found.lines, found.after.1, "{name}"),
            other => panic!("{name}: tape cat ends with {other:?}"),
        }
        let false_prices = found.lines.iter().zip(&bench.lines).filter(|(line, truth)| line != truth);
        if false_prices.count() > 0 {
            let report = run(["tape", "verify", found.tape.to_str().unwrap()]);
            assert!(report.text().contains("accepted"), "{name}: {}", report.text());
        }
        if found.round % 4 == 0 {
            check_merge(&bench, found);
        }
    });
}

/// A merge of the tape either lacks a false price or says that nobody checked it.
fn check_merge(bench: &TradeBench, found: &RepairedTape<'_>) {
    let (name, merged) = (found.name, bench.path("merged"));
    let words = ["consolidate", "--tape-in", found.tape.to_str().unwrap(), "--tape"];
    let merge = run(words.iter().map(AsRef::as_ref).chain([merged.as_os_str()]));
    assert!(matches!(merge.code, Some(0 | 3)), "{name}: {}", merge.stderr);
    let (_, lines) = cat(&merged);
    let is_false = |line: &&String| line.contains("\"kind\":\"trade\"") && !line.contains("\"px\":\"100\"");
    if lines.iter().filter(is_false).count() > 0 {
        let report = run(["tape".as_ref(), "verify".as_ref(), merged.as_os_str()]);
        assert!(report.text().contains("accepted unverified"), "{name}: {}{}", report.text(), merge.stderr);
        assert!(lines.iter().any(|line| line.contains("tape_unverified")), "{name}: {}", merge.stderr);
    }
    remove(&merged);
}

#[test]
fn a_repair_that_is_killed_while_it_mends_loses_nothing() {
    let bench = TradeBench::new();
    shorten(&bench.tape.join("tape.toml"), 10);
    shorten(&bench.tape.join("definitions.log"), 200);
    shorten(&bench.tape.join("durable"), 0);
    change(&bench.segment(1), 57, |byte| byte ^ 4);
    bench.kill_repairs(&[], |found| {
        let name = found.name;
        assert!(bench.lines.starts_with(found.lines), "{name}: a line is not true");
        assert!(found.code != Some(0) || found.lines == bench.lines, "{name}: a part is missing");
        assert!(matches!(found.code, Some(0 | 1 | 3)), "{name}: {:?}", found.code);
    });
}

#[test]
fn retention_that_is_killed_leaves_a_tape_that_begins_later() {
    let bench = TradeBench::new();
    let args = |tape: &Path| arguments(&["tape", "retain", tape.to_str().unwrap(), "--bytes", "0"]);
    let whole = bench.path("whole");
    copy(&bench.tape, &whole);
    let (ran, calls) = bench.kill_points.count(&args(&whole));
    ran.code(0);
    let content = content(&whole);
    assert!(cat(&whole).1.len() < bench.lines.len());
    for call in KillPoints::points(calls) {
        let tape = bench.path("killed");
        copy(&bench.tape, &tape);
        let killed = bench.kill_points.kill_at(call, &args(&tape));
        let name = format!("call {call} of {calls}: {}", killed.stderr);
        let (code, lines) = cat(&tape);
        assert!(code == Some(0) && bench.lines.ends_with(&lines), "{name}: {code:?}, {} lines", lines.len());
        assert_eq!(verify(&tape), Some(0), "{name}");
        run(args(&tape)).code(0);
        same(&self::content(&tape), &content, &name);
        remove(&tape);
    }
}

/// Kills a command that makes a tape, reads what there is, and runs it again.
fn kill_writers(kill_points: &KillPoints, dir: &Path, code: i32, args: impl Fn(&Path) -> Vec<OsString>) {
    let whole = dir.join("whole");
    let (ran, calls) = kill_points.count(&args(&whole));
    let ran = ran.code(code);
    let (_, lines) = cat(&whole);
    assert!(lines.len() > 1000, "{}", ran.stderr);
    for call in KillPoints::points(calls) {
        let tape = dir.join("killed");
        let killed = kill_points.kill_at(call, &args(&tape));
        let name = format!("call {call} of {calls}: {}", killed.stderr);
        if tape.join("tape.toml").exists() {
            let (code, found) = cat(&tape);
            assert!(lines.starts_with(&found), "{name}: a line is not true");
            let report = run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]);
            // Before the tape is durable for the first time nothing says where it ends.
            let is_unverified = !tape.join("durable").exists();
            for code in [code, report.code] {
                let is_right = code == Some(0) || is_unverified && code == Some(3);
                assert!(is_right, "{name}: {code:?}: {}{}", report.text(), report.stderr);
            }
        }
        let again = run(args(&tape));
        assert_eq!(again.code, Some(code), "{name}: {}", again.stderr);
        assert_same(&whole, &tape, &name);
        remove(&tape);
    }
}

#[test]
fn a_merge_of_tapes_that_is_killed_continues() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = ["X", "Y"].map(|venue| {
        let tape = dir.path().join(venue);
        trade_tape(dir.path(), venue, &tape);
        tape
    });
    kill_writers(&KillPoints::new(), dir.path(), 0, |tape| {
        let [a, b, tape] = [&tapes[0], &tapes[1], tape].map(|path| path.to_str().unwrap());
        let words =
            ["consolidate", "--tape-in", a, "--tape-in", b, "--tape", tape, "--segment-bytes", "131072"];
        arguments(&words)
    });
}

/// What a repair accepted without a check keeps its mark in a merge that was killed and runs again.
#[test]
fn a_merge_of_an_accepted_tape_that_is_killed_continues() {
    let bench = TradeBench::new();
    bench.falsify(300);
    bench.falsify(2600);
    let input = bench.tape.to_str().unwrap();
    run(["tape", "repair", input, "--apply", "--accept-unverified"]);
    let args = |tape: &Path| {
        let tape = tape.to_str().unwrap();
        arguments(&["consolidate", "--tape-in", input, "--tape", tape, "--segment-bytes", "131072"])
    };
    let whole = bench.path("whole");
    let (ran, calls) = bench.kill_points.count(&args(&whole));
    ran.code(0);
    let (after, files_after) = (cat(&whole), files(&whole));
    let marks = |lines: &[String]| lines.iter().filter(|line| line.contains("tape_unverified")).count();
    assert!(marks(&after.1) > 0);
    for call in KillPoints::points(calls) {
        let tape = bench.path("killed");
        let killed = bench.kill_points.kill_at(call, &args(&tape));
        let name = format!("call {call} of {calls}: {}", killed.stderr);
        if tape.join("tape.toml").exists() {
            let (_, lines) = cat(&tape);
            assert!(after.1.starts_with(&lines), "{name}: a line is none of the whole merge");
            let is_false =
                |line: &&String| line.contains("\"kind\":\"trade\"") && !line.contains("\"px\":\"100\"");
            let first = lines.iter().position(|line| is_false(&line));
            assert!(
                first.is_none_or(|first| marks(&lines[..first]) > 0),
                "{name}: a false price before its mark"
            );
        }
        let again = run(args(&tape));
        assert_eq!(again.code, Some(0), "{name}: {}", again.stderr);
        assert_same(&whole, &tape, &name);
        remove(&tape);
    }
    assert!(files(&whole) == files_after);
}

#[test]
fn a_recorder_that_is_killed_continues() {
    let dir = tempfile::tempdir().unwrap();
    // With quarantine.
    let feed = orders_option("orders", &file(dir.path(), "orders.fix", flow(7, 2500, true).0));
    kill_writers(&KillPoints::new(), dir.path(), 3, |tape| {
        let tape = tape.to_str().unwrap();
        arguments(&["consolidate", "--feed", &feed, "--tape", tape, "--segment-bytes", "131072"])
    });
}

/// The newest part of the tape is in shared memory, and the recorder copies it to the disk.
#[test]
fn a_recorder_of_a_hot_tape_that_is_killed_continues() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "orders.fix", flow(7, 2500, true).0);
    let config = "[tape]\nbacking = \"hot\"\nsegment_bytes = 131072\n\
                  [[feed]]\nname = \"orders\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [\"orders.fix\"]\n";
    let config = file(dir.path(), "run.toml", config);
    kill_writers(&KillPoints::new(), dir.path(), 3, |tape| {
        arguments(&["run", config.to_str().unwrap(), "--tape", tape.to_str().unwrap()])
    });
}

#[test]
fn a_seal_that_is_killed_leaves_the_old_store_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (tape, old) = (path("tape"), path("old"));
    let args = |store: &Path| {
        let words = ["store", "seal", "--memory", "60000", "--store"];
        arguments(&[&words[..], &[store.to_str().unwrap(), tape.to_str().unwrap()]].concat())
    };
    let append = |seed| {
        let orders = file(dir.path(), &format!("{seed}.fix"), flow(seed, 1500, false).0);
        let feed = orders_option(&format!("feed{seed}"), &orders);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    };
    append(41);
    run(args(&old)).code(0);
    append(42);
    let clone = |name: &str| {
        copy(&old, &path(name));
        std::fs::copy(old.with_extension("key"), path(name).with_extension("key")).unwrap();
        path(name)
    };
    let scan = |store: &Path| {
        run(["store".as_ref(), "scan".as_ref(), store.as_os_str(), "--json".as_ref()]).code(0).stdout
    };
    let (kill_points, whole) = (KillPoints::new(), clone("whole"));
    let (ran, calls) = kill_points.count(&args(&whole));
    ran.code(0);
    let (before, after) = (scan(&old), scan(&whole));
    assert!(before.len() < after.len());
    for call in KillPoints::points(calls) {
        let store = clone("killed");
        let killed = kill_points.kill_at(call, &args(&store));
        let name = format!("call {call} of {calls}: {}", killed.stderr);
        let found = scan(&store);
        assert!(found == before || found == after, "{name}: neither the old state nor the new one");
        run(["store".as_ref(), "verify".as_ref(), store.as_os_str()]).code(0);
        run(args(&store)).code(0);
        assert!(scan(&store) == after, "{name}: not all of it is there");
        assert!(files(&store).keys().eq(files(&whole).keys()), "{name}: other files");
        remove(&store);
    }
}

/// Two processes that wrote checkpoints of one tape wrote into one file, and half a checkpoint stayed under the name of a
/// whole one.
#[test]
fn checkpoints_of_writers_that_were_killed_are_written_again() {
    let bench = TradeBench::new();
    let tape = bench.tape.to_str().unwrap();
    let (checkpoints, args) =
        (bench.tape.join("checkpoints"), arguments(&["book", "checkpoint", tape, "--every", "1000"]));
    let is_good = |name: &str| {
        let report = run(["book", "checkpoint", tape, "--verify"]);
        assert_eq!(report.code, Some(0), "{name}: {}", report.text());
    };
    let (ran, calls) = bench.kill_points.count(&args);
    ran.code(0);
    let whole = files(&checkpoints);
    assert_eq!(whole.len(), 4);
    for call in KillPoints::points(calls) {
        remove(&checkpoints);
        let killed = bench.kill_points.kill_at(call, &args);
        let name = format!("call {call} of {calls}: {}", killed.stderr);
        is_good(&name);
        run(&args).code(0);
        same(&files(&checkpoints), &whole, &name);
    }
    // As earlier builds left it: half a file under a checkpoint's name, and another one that has no name yet.
    let (half, unnamed) = (checkpoints.join(format!("{:016x}.books", 2000)), checkpoints.join("writing"));
    shorten(&half, 500);
    std::fs::write(&unnamed, [7; 100_000]).unwrap();
    run(["book", "checkpoint", tape, "--verify"]).code(3);
    run(&args).code(0);
    assert!(!half.exists());
    is_good("after half a checkpoint");
    // Another process is writing one; it gives the file its name while this one waits.
    remove(&checkpoints);
    std::fs::create_dir(&checkpoints).unwrap();
    let file = std::fs::File::create(&unnamed).unwrap();
    file.lock().unwrap();
    let mut command = unitape();
    let mut child = command.args(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::fs::write(&unnamed, &whole["0000000000000fa0.books"]).unwrap();
    std::fs::rename(&unnamed, checkpoints.join("0000000000000fa0.books")).unwrap();
    file.unlock().unwrap();
    assert!(child.wait().unwrap().success());
    is_good("after a wait");
    assert!(!unnamed.exists());
}
