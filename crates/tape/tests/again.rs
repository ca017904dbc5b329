//! Shared memory that is used again: what a reader has in hand must never change under it, and what the tape gives up
//! must come round.

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Checker, ID, append, directory, mix, options};
use unitape_tape::{Backing, Reader, StartPosition, Writer, WriterOptions, verify};

const SEGMENT_BYTES: u64 = 64 << 10;

/// A hot tape with a small window on a file system in memory; there is nothing to test where there is none.
fn tape(window_segments: u32) -> Option<(tempfile::TempDir, PathBuf, PathBuf, WriterOptions)> {
    let dir = Path::new("/dev/shm").is_dir().then(directory)?;
    let (tape, hot) = (dir.path().join("tape"), dir.path().join("hot"));
    let mut options = options(SEGMENT_BYTES, Some(&hot));
    options.backing = Backing::Hot { dir: Some(hot.clone()), window_segments };
    Some((dir, tape, hot, options))
}

/// Files of the hot segments that are there now.
fn files(hot: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(hot).unwrap().flatten();
    entries
        .filter_map(|e| Some((e.file_name().into_string().ok()?, e.metadata().ok()?.ino())))
        .filter(|(name, _)| name.ends_with(".seg"))
        .collect()
}

/// Appends units until `segments` segments are full, a little at a time so that the recorder keeps up; gives the files
/// seen and the number of units.
fn fill(writer: &mut Writer, hot: &Path, seed: u64, from: u64, segments: u64) -> (BTreeSet<u64>, u64) {
    let until = writer.end().0 + segments * SEGMENT_BYTES;
    let (mut seen, mut index) = (BTreeSet::new(), from);
    while writer.end().0 < until {
        append(writer, seed, index, index + 20);
        index += 20;
        let since = Instant::now();
        while writer.recorded() < writer.end() && since.elapsed() < Duration::from_secs(180) {
            std::thread::yield_now();
        }
        seen.extend(files(hot).into_iter().map(|(_, file)| file));
    }
    (seen, index)
}

/// Pages that are not recycled are made again for ever, which recycling exists to avoid.
#[test]
fn a_tape_goes_round_in_a_few_files() {
    let Some((_dir, dir, hot, options)) = tape(4) else { return };
    let (mut writer, _) = Writer::open(&dir, ID, options).unwrap();
    let mut checker = Checker::new(&dir, 1);
    let (mut files, mut units) = (BTreeSet::new(), 0);
    for _ in 0..10 {
        let (seen, until) = fill(&mut writer, &hot, 1, units, 6);
        files.extend(seen);
        units = until;
        assert_eq!(checker.catch_up(), units);
    }
    // Two kept behind the writer, its own, one ahead, those that wait, and some that were made before any came round.
    assert!(files.len() <= 30, "{} files for sixty segments", files.len());
    writer.close().unwrap();
    assert!(!hot.exists(), "a closed tape leaves nothing in shared memory");
    assert_eq!(Checker::new(&dir, 1).catch_up(), units);
    assert!(verify(&dir).unwrap().is_intact());
}

/// A reader that stands still for an hour has its frame in hand all the while. If the memory went to a later segment
/// it would see another frame, or half of one.
#[test]
fn what_a_reader_has_in_hand_never_changes() {
    let Some((_dir, dir, hot, options)) = tape(4) else { return };
    let (mut writer, _) = Writer::open(&dir, ID, options).unwrap();
    append(&mut writer, 2, 0, 5);
    let mut stopped = Reader::open(&dir, StartPosition::Oldest).unwrap();
    let mut aside = Reader::open(&dir, StartPosition::Oldest).unwrap();
    let looked_up = aside.next().unwrap().unwrap().position;
    let frame = stopped.next().unwrap().unwrap();
    let before = frame.bytes.to_vec();
    let other = aside.frame_at(looked_up).unwrap();
    let (_, units) = fill(&mut writer, &hot, 2, 5, 40);
    assert!(frame.bytes == before, "the frame in hand has changed");
    assert!(other.bytes == before, "the frame that was looked up has changed");
    // It continues, from the disk, where it stood.
    let mut rest = 0;
    while stopped.next().unwrap().is_some_and(|f| f.header.is_at(f.position)) {
        rest += 1;
    }
    assert!(rest > units, "{rest} frames of {units} units");
    let held = files(&hot).len();
    writer.close().unwrap();
    assert!(held <= 6, "{held} segments in shared memory");
}

/// Readers come to a segment in the very moment in which it loses its name, is zeroed, and gets another.
#[test]
fn readers_at_every_pace_see_every_unit() {
    let seed = common::process::number("UNITAPE_SEED", 11);
    println!("UNITAPE_SEED={seed}");
    let Some((_dir, dir, hot, options)) = tape(2) else { return };
    let (mut writer, _) = Writer::open(&dir, ID, options).unwrap();
    append(&mut writer, seed, 0, 1);
    let stop = AtomicBool::new(false);
    let units = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4u64)
            .map(|reader| {
                let (dir, stop) = (&dir, &stop);
                scope.spawn(move || {
                    let mut checker = Checker::new(dir, seed);
                    let mut turn = 0;
                    while !stop.load(Ordering::Relaxed) {
                        checker.catch_up();
                        turn += 1;
                        std::thread::sleep(Duration::from_micros(
                            mix(seed ^ reader, turn) % (400 * reader + 1),
                        ));
                    }
                    checker.catch_up()
                })
            })
            .collect();
        let mut index = 1;
        for _ in 0..30 {
            index = fill(&mut writer, &hot, seed, index, 5).1;
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), index, "a reader lost units");
        }
        index
    });
    writer.close().unwrap();
    assert_eq!(Checker::new(&dir, seed).catch_up(), units);
}

/// A writer that dies while it makes a segment out of an old one leaves it half zeroed, under a name of its own.
#[test]
fn what_waits_to_be_used_again_is_gone_after_a_death() {
    let Some((_dir, dir, hot, options)) = tape(4) else { return };
    let (mut writer, _) = Writer::open(&dir, ID, options.clone()).unwrap();
    let (_, units) = fill(&mut writer, &hot, 3, 0, 12);
    drop(writer);
    std::fs::write(hot.join("spare-0000000000000003"), b"cut short").unwrap();
    let (mut writer, recovery) = Writer::open(&dir, ID, options).unwrap();
    assert!(!recovery.was_closed);
    let (_, units) = fill(&mut writer, &hot, 3, units, 12);
    assert_eq!(Checker::new(&dir, 3).catch_up(), units);
    writer.close().unwrap();
    assert!(!hot.exists(), "nothing is left in shared memory");
}
