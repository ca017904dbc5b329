//! Helpers that the tests of consolidation share.
#![allow(dead_code)] // each test file uses its part

pub mod fragments;

use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_feed::{
    ConsolidateOptions, FarmEnding, FileFeed, RunOutcome, TapeAccount, consolidate, feed_of_file,
};
use unitape_model::Event;
use unitape_tape::{Reader, StartPosition, WriterOptions as TapeOptions};
use unitape_testkit::tape_of_units;
#[allow(unused_imports)] // each test file uses its part
pub use unitape_testkit::{assert_same, files, fix, jse, taq, units};

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

/// A tape that ends after these units of another one, with what that one has in quarantine.
pub fn tape_of(dir: &Path, whole: &Path, units: &[Vec<u8>]) {
    tape_of_units(dir, whole, units, small_tape());
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
