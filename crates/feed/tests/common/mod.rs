//! Helpers that the tests of consolidation share.
#![allow(dead_code)] // each test file uses its part

pub mod fragments;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_feed::{
    ConsolidateOptions, FarmEnding, FileFeed, RunOutcome, TapeAccount, consolidate, feed_of_file,
};
use unitape_model::{Event, FrameHeader};
use unitape_tape::{Reader, StartPosition, TapeManifest, Writer, WriterOptions as TapeOptions};

/// The real JSE index feed.
pub fn jse() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fix/jse/jse_fix50_marketdata_head80.fix")
}

/// The real NYSE TAQ quotes.
pub fn taq() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt")
}

/// Segments small enough that every tape of a test has several.
pub fn small_tape() -> TapeOptions {
    TapeOptions { segment_bytes: 1 << 16, prefault_bytes: 0, ..TapeOptions::default() }
}

/// Consolidates and expects it to succeed.
pub fn run(dir: &Path, feeds: &[FileFeed], workers: usize, block_bytes: usize) -> RunOutcome {
    let tape = small_tape();
    consolidate(
        dir,
        ConsolidateOptions {
            feeds: feeds.to_vec(),
            workers,
            block_bytes,
            tape,
            ..ConsolidateOptions::default()
        },
    )
    .unwrap()
}

/// Consolidates in runs that are stopped once they have read `messages`, and returns how many it took. A run reads again
/// what no mark of progress vouches for, at worst a message of thousands of entries; where that was all it came to, the
/// next may read twice as far.
pub fn run_in_parts(
    dir: &Path,
    feeds: &[FileFeed],
    workers: usize,
    block_bytes: usize,
    messages: u64,
) -> u32 {
    let (mut far, mut before) = (messages, None);
    for runs in 1.. {
        let stop = AtomicBool::new(false);
        let options = ConsolidateOptions {
            feeds: feeds.to_vec(),
            workers,
            block_bytes,
            tape: small_tape(),
            stop: Some(&stop),
            ..ConsolidateOptions::default()
        };
        let progress = options.progress.clone();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                let read = || progress.counters.messages.load(Ordering::Relaxed);
                while read() < far && !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            });
            let outcome = consolidate(dir, options).unwrap();
            stop.store(true, Ordering::Relaxed);
            outcome
        });
        if outcome.ending == FarmEnding::EndOfInput {
            return runs;
        }
        let now = Some(outcome.summary.messages);
        far = if now == before { 2 * far } else { far };
        before = now;
    }
    unreachable!("the runs are not counted to their end")
}

/// A feed of one file, recognised.
pub fn feed(path: &Path) -> FileFeed {
    feed_of_file(path).unwrap()
}

/// The units of a tape, each as it was given to the writer.
pub fn units(dir: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let (mut units, mut unit) = (Vec::new(), Vec::new());
    while let Some(frame) = reader.next().unwrap() {
        let start = unit.len();
        unit.extend_from_slice(frame.bytes);
        // The stamp is the writer's.
        FrameHeader(frame.header.0 & !0xffff_ffff).write(&mut unit[start..]);
        if frame.header.is_last() {
            units.push(std::mem::take(&mut unit));
        }
    }
    units
}

/// A tape that ends after these units of another one, with what that one has in quarantine.
pub fn tape_of(dir: &Path, whole: &Path, units: &[Vec<u8>]) {
    let id = TapeManifest::load(whole).unwrap().id;
    let (mut writer, _) = Writer::open(dir, id, small_tape()).unwrap();
    for unit in units {
        writer.append(unit).unwrap();
    }
    writer.close().unwrap();
    let raw = "quarantine.raw";
    if whole.join(raw).exists() {
        std::fs::copy(whole.join(raw), dir.join(raw)).unwrap();
    }
}

/// Every file of a tape's directory.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(d) = todo.pop() {
        for entry in std::fs::read_dir(&d).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Files under `run/` do not belong to the tape: its writers and how far names are.
                if !(path.ends_with("run") && d.join("tape.toml").exists()) {
                    todo.push(path);
                }
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Asserts that two tapes are the same, byte for byte, naming the first difference.
pub fn assert_same(a: &Path, b: &Path, what: &str) {
    let (a, b) = (files(a), files(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &a {
        let other = &b[name];
        let at = bytes.iter().zip(other).position(|(x, y)| x != y);
        assert!(bytes.len() == other.len() && at.is_none(), "{what}: {name} differs at {at:?}");
    }
}

/// A FIX message with right length and checksum; `|` separates the fields of `body`.
pub fn fix(begin: &str, body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut m = format!("8={begin}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = m.iter().fold(0u8, |s, b| s.wrapping_add(*b));
    m.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    m
}

/// The events of the tape, as their lines.
pub fn events(dir: &Path) -> Vec<Value> {
    let names = TapeAccount::load(dir).unwrap().names.dictionary().clone();
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let mut lines = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        let Some(event) = Event::new(frame.bytes).filter(|_| !frame.header.is_meta()) else { continue };
        let mut out = Vec::new();
        write_event(&mut out, &event, 0, &names, &EmptySourceLookup, EventLineDetail::Plain);
        lines.push(serde_json::from_slice(&out).unwrap());
    }
    lines
}
