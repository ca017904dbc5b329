//! Commands on a damaged tape: no writer blesses damage, and none throws away what can be saved.
//!
//! Earlier mistakes: a writer made the checksums of the last segment again from its damaged contents, so that a price
//! with a flipped bit became "intact". It cut the dictionary log at the first record it could not read, and then said
//! why. A tape without its `durable` was intact, because nothing of it was compared.
#![cfg(unix)]

use crate::common::damage;

use crate::common::{self, run, unitape};
use common::run::{Bench as Place, orders};
use damage::{Bench, HEADER_PAGE, SEGMENT, a_price, flip, shorten};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// One bit of a price in the last segment: `verify` finds it, and a writer that opens the tape must not make it right.
#[test]
fn opening_for_writing_does_not_bless_a_flipped_bit() {
    let bench = Bench::new();
    bench.verify().code(0);
    let (segment, offset) = a_price(&bench);
    flip(&segment, offset);
    bench.verify().code(3);
    let before = bench.content();
    let name = segment.file_name().unwrap().to_str().unwrap();
    bench.write().code(3).says(&[name, "at offset", "positions", "tape repair"]);
    bench.verify().code(3);
    bench.write().code(3);
    assert!(before == bench.content(), "a writer that refuses changes nothing");
    assert!(!bench.path("run/writer.lock").exists(), "it stays closed");
    flip(&segment, offset);
    bench.write().code(0);
    bench.verify().code(0);
}

/// Damaged bytes are found in a span that is full, and in the open one.
#[test]
fn every_durable_span_of_the_last_segment_is_compared() {
    for messages in [1500, 1750, 2000] {
        let bench = Bench::of(messages, 4 << 20);
        assert_eq!(bench.segments(), 1);
        let end = bench.tape_command("info", &["--json"]).code(0).json()["end"].as_u64().unwrap();
        for at in [20, end / 2 - end / 2 % 64 + 24, end - 40] {
            flip(&bench.segment(0), HEADER_PAGE + at);
            bench.write().code(3).says(&["0000000000000000.seg", "tape repair"]);
            bench.verify().code(3);
            flip(&bench.segment(0), HEADER_PAGE + at);
        }
        bench.write().code(0);
        bench.verify().code(0);
    }
}

/// Checksums of durable bytes that are gone, or shorter, or damaged, were written again from the bytes.
#[test]
fn lost_checksums_are_not_made_from_the_data() {
    let bench = Bench::new();
    let crc = bench.crc(bench.last());
    let good = std::fs::read(&crc).unwrap();
    for length in [0, 2] {
        shorten(&crc, length);
        let before = bench.content();
        bench.verify().code(3);
        bench.write().code(3).says(&["no checksum", "tape repair"]);
        bench.verify().code(3);
        assert!(before == bench.content());
        std::fs::write(&crc, &good).unwrap();
    }
    flip(&crc, good.len() as u64 - 3);
    bench.write().code(3);
    bench.verify().code(3);
    std::fs::write(&crc, &good).unwrap();
    bench.write().code(0);
    bench.verify().code(0);
}

/// One flipped bit shrank the log from 90,832 bytes to 64 before anybody got an error.
#[test]
fn a_damaged_dictionary_log_is_not_cut() {
    let bench = Bench::new();
    let log = bench.path("definitions.log");
    let good = std::fs::read(&log).unwrap();
    for offset in [3, 18, 64 + 3, 64 + 10, 64 + 40, good.len() as u64 - 30] {
        flip(&log, offset);
        let damaged = std::fs::read(&log).unwrap();
        bench.write().code(3).says(&["definitions.log", "at offset", "tape repair"]);
        assert!(std::fs::read(&log).unwrap() == damaged, "a bit at {offset}");
        bench.verify().code(3);
        flip(&log, offset);
    }
    for length in [0, 40, good.len() as u64 / 2] {
        shorten(&log, length);
        bench.write().code(3).says(&["definitions.log", "tape repair"]);
        let left = std::fs::metadata(&log).map_or(0, |m| m.len());
        assert_eq!(left, length);
        std::fs::write(&log, &good).unwrap();
    }
    bench.write().code(0);
    bench.verify().code(0);
}

/// A closed tape was durable to its end: without the file that says so, or without checksums, it is unverified.
#[test]
fn a_closed_tape_without_its_marks_is_unverified() {
    let bench = Bench::new();
    let durable = std::fs::read(bench.path("durable")).unwrap();
    shorten(&bench.path("durable"), 0);
    let out = bench.verify().code(3);
    assert!(out.text().contains("unverified") && !out.text().contains("intact to"), "{}", out.text());
    bench.write().code(3).says(&["durable", "missing", "tape repair"]);
    recorder_refuses(&bench.tape, &["durable", "missing", "tape repair"]);
    assert!(!bench.path("durable").exists());
    std::fs::write(bench.path("durable"), &durable).unwrap();
    bench.verify().code(0);
    let crc = std::fs::read(bench.crc(1)).unwrap();
    shorten(&bench.crc(1), 0);
    let out = bench.verify().code(3);
    assert!(
        out.text().contains("unverified") && out.text().contains(&format!("{SEGMENT}")),
        "{}",
        out.text()
    );
    std::fs::write(bench.crc(1), crc).unwrap();
    bench.verify().code(0);
}

/// Unflushed parts of a running tape have no checksums: the command says so, and it is no damage.
#[test]
fn what_no_checksum_covers_is_named_and_is_no_damage() {
    let place = Place::new("wait = \"10ms\"", &[("orders", "directory = \"in\"")]);
    let config = std::fs::read_to_string(place.path("run.toml")).unwrap();
    std::fs::write(place.path("run.toml"), config.replace("[run]", "sync = \"1h\"\n[run]")).unwrap();
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::write(place.path("in/a.fix"), orders(1..300)).unwrap();
    let mut running = place.start();
    place.has(&mut running, 290);
    let tape = place.tape();
    let out = run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str(), "--json".as_ref()]).code(0).json();
    assert_eq!(out["not_covered"][0], 0, "{out}");
    // Killed, it is not durable at all, and nobody is there who would say so.
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let out = run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(3);
    assert!(out.text().contains("unverified"), "{}", out.text());
    goes_on(&place, 300);
    let out = run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str(), "--json".as_ref()]).code(0).json();
    assert_eq!(out["not_covered"], Value::Null);
}

/// A hot tape whose recorder died: the copy on the disk is followed again, and so it is compared.
#[test]
fn a_hot_tape_is_compared_by_writer_and_recorder() {
    let place = Place::new("wait = \"10ms\"", &[("orders", "directory = \"in\"")]);
    let config = std::fs::read_to_string(place.path("run.toml")).unwrap();
    let hot = "backing = \"hot\"\nsync = \"5ms\"\nsegment_bytes = 1048576\n[run]";
    std::fs::write(place.path("run.toml"), config.replace("[run]", hot)).unwrap();
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::write(place.path("in/a.fix"), orders(1..400)).unwrap();
    let mut running = place.start();
    place.has(&mut running, 390);
    let durable = || unitape_tape::tape_status(&place.tape()).map_or(0, |s| s.durable.0);
    running.until(|| durable() > 30_000);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let hot = std::fs::read_to_string(place.path("tape/run/hot")).unwrap();
    let segment = place.path("tape/segments/0000000000000000.seg");
    let at = HEADER_PAGE + 64 * 150 + 20;
    for path in [segment, Path::new(hot.trim_end()).join("0000000000000000.seg")] {
        flip(&path, at);
        // Each alone finds it.
        recorder_refuses(&place.tape(), &["0000000000000000.seg", "tape repair"]);
        let (code, said) = place.start().ends();
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("0000000000000000.seg") && said.contains("tape repair"), "{said}");
        flip(&path, at);
    }
    goes_on(&place, 400);
    run(["tape".as_ref(), "verify".as_ref(), place.tape().as_os_str()]).code(0);
}

/// A recorder of its own process ends with 3 and says these words.
#[track_caller]
fn recorder_refuses(tape: &Path, words: &[&str]) {
    let mut child = unitape().arg("tape").arg("record").arg(tape).stderr(Stdio::piped()).spawn().unwrap();
    // A command that finds nothing wrong waits for a writer, as long as it must.
    common::run::becomes(|| child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "the recorder: {said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

/// The run continues with ten more orders, and ends in order.
fn goes_on(place: &Place, next: u32) {
    let mut running = place.start();
    std::fs::write(place.path("in/b.fix"), orders(next..next + 10)).unwrap();
    place.has(&mut running, u64::from(next) + 9);
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
}

/// A tape that an earlier build closed has no sum of the open span in its `durable`; it is compared by its `.crc`.
#[test]
fn tapes_of_earlier_builds_are_compared_and_go_on() {
    let bench = Bench::new();
    let path = bench.path("durable");
    let mut text = std::fs::read(&path).unwrap();
    let new = text.clone();
    text[32..60].fill(0);
    let sum = damage::crc32c(&text[..60]);
    text[60..].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &text).unwrap();
    bench.verify().code(0);
    let (segment, offset) = a_price(&bench);
    flip(&segment, offset);
    bench.verify().code(3);
    bench.write().code(3).says(&["tape repair"]);
    assert!(std::fs::read(&path).unwrap() == text);
    flip(&segment, offset);
    bench.write().code(0);
    bench.verify().code(0);
    assert!(std::fs::read(&path).unwrap() == new, "it has the sum from now on");
}

/// After retention `info` printed how many frames are there next to how many events there ever were.
#[test]
fn info_after_retention_tells_what_is_retained_and_what_ever_was() {
    let bench = Bench::new();
    let before = bench.tape_command("info", &["--json"]).code(0).json();
    bench.tape_command("retain", &["--bytes", "200000"]).code(0);
    let info = bench.tape_command("info", &["--json"]).code(0).json();
    let printed = common::cat(&bench.tape, &[]).len() as u64;
    assert_eq!((&info["events"], &info["ever"]["events"]), (&before["events"], &before["events"]));
    assert_eq!(info["retained"]["events"], printed);
    assert_eq!(info["retained"]["frames"], info["frames"]);
    assert!(printed < before["events"].as_u64().unwrap(), "{info}");
    let text = bench.tape_command("info", &[]).code(0);
    let line = |word: &str| text.text().lines().find(|l| l.starts_with(word)).unwrap().to_owned();
    assert!(line("frames").contains("retained") && line("events").contains("ever"), "{}", text.text());
}

/// Puts a `durable` of an earlier moment in its place: one from when the tape had two segments.
fn put_older_durable(bench: &Bench) {
    let path = bench.path("durable");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16..24].copy_from_slice(&(2 * SEGMENT).to_le_bytes());
    bytes[32..36].fill(0);
    let sum = damage::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
}

/// Makes a closed tape one whose writer was killed.
fn abandon(bench: &Bench) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = format!("pid 4194304\nepoch 1\nboot {}\n", boot.trim());
    std::fs::create_dir_all(bench.path("run")).unwrap();
    std::fs::write(bench.path("run/writer.lock"), text).unwrap();
}

/// A repair believed an older `durable` more than the checksums beyond it, and the next writer made new ones of what it found.
#[test]
fn an_older_durable_of_a_closed_tape_blesses_nothing() {
    let bench = Bench::new();
    put_older_durable(&bench);
    bench.verify().code(3);
    let read = bench.tape_command("cat", &["--json"]).code(3);
    assert!(read.stderr.contains("unverified") && read.stderr.contains("durable"), "{}", read.stderr);
    for index in [1, 3, bench.last()] {
        let at = HEADER_PAGE + 64 * 20 + 20;
        flip(&bench.segment(index), at);
        bench.tape_command("cat", &["--json"]).code(3).says(&["checksum", &format!("{index:016x}.seg")]);
        bench.repair(&["--apply"]).code(3);
        bench.write().code(3);
        bench.verify().code(3);
        flip(&bench.segment(index), at);
        put_older_durable(&bench);
    }
    bench.repair(&["--apply"]).code(0);
    bench.verify().code(0);
    bench.tape_command("cat", &["--json"]).code(0);
    bench.write().code(0);
}

/// Only what is durable is sealed. A sealed segment is compared, however old `durable` is, or where it is lost.
#[test]
fn a_sealed_segment_of_a_killed_writer_is_compared() {
    let bench = Bench::new();
    abandon(&bench);
    for lost in [false, true] {
        match lost {
            false => put_older_durable(&bench),
            true => std::fs::remove_file(bench.path("durable")).unwrap(),
        }
        let out = bench.tape_command("cat", &["--json"]);
        assert_eq!(out.code, Some(if lost { 3 } else { 0 }), "{}", out.stderr);
        assert!(!lost || out.stderr.contains("unverified"), "{}", out.stderr);
        let at = HEADER_PAGE + 64 * 20 + 20;
        flip(&bench.segment(3), at);
        bench.verify().code(3);
        bench.tape_command("cat", &["--json"]).code(3).says(&["checksum", "0000000000000003.seg"]);
        bench.repair(&[]).code(3);
        bench.write().code(3);
        bench.verify().code(3);
        flip(&bench.segment(3), at);
    }
}

/// A segment of another tape that has the same identity and size says how many events come before it.
#[test]
fn a_segment_that_does_not_follow_is_not_printed() {
    let (bench, other) = (Bench::new(), Bench::new());
    let all = common::cat(&bench.tape, &[]);
    let index = 3;
    std::fs::remove_file(bench.segment(index)).unwrap();
    std::fs::copy(other.segment(index), bench.segment(index)).unwrap();
    assert_eq!(common::cat(&bench.tape, &[]), all, "the same tape was made twice");
    let page = std::fs::read(bench.segment(index)).unwrap();
    let mut header = page[..64].to_vec();
    let ordinal = u64::from_le_bytes(header[56..64].try_into().unwrap());
    header[56..64].copy_from_slice(&(ordinal + 1).to_le_bytes());
    let sum = damage::crc32c(&header);
    let mut bytes = [&header, &page[64..]].concat();
    bytes[64..68].copy_from_slice(&sum.to_le_bytes());
    shorten(&bench.segment(index), 1);
    std::fs::write(bench.segment(index), bytes).unwrap();
    for command in ["cat", "replay", "info"] {
        bench.tape_command(command, &[]).code(3).says(&["0000000000000003.seg", "events come before"]);
    }
    bench.verify().code(3);
}
