//! Shared memory that is used again, with processes that stand still or die in the middle of it: readers at the moment
//! in which their segment loses its name, keepers in the middle of zeroing. A segment that a process has open stays
//! unchanged, and nothing of an old segment comes back in a new one.
//!
//! Rounds by `UNITAPE_AGAIN_ROUNDS` (40), seed by `UNITAPE_SEED`.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::process::{Counter, SEED, Victim, again, number, wait_for};
use common::{Checker, ID, append, directory, mix, options};
use rustix::process::{Pid, Signal, kill_process};
use unitape_tape::{Backing, HEADER_PAGE, Reader, StartPosition, Writer, WriterOptions, verify};

const READERS: usize = 3;
const SMALL: u64 = 64 << 10;
const LARGE: u64 = 1 << 20;

fn tape_options(hot: &Path, segment_bytes: u64) -> WriterOptions {
    let mut options = options(segment_bytes, Some(hot));
    options.backing = Backing::Hot { dir: Some(hot.into()), window_segments: 2 };
    options
}

/// Not a test of its own: the readers and writers that are stopped and killed.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let (dir, seed) = (PathBuf::from(var("DIR")), var("SEED").parse().unwrap());
    let counter = Counter::open(Path::new(&var("COUNTER")));
    match role.as_str() {
        "reader" => read(&dir, seed, var("READER").parse().unwrap(), &counter),
        "writer" => {
            let (mut writer, _) =
                Writer::open(&dir, ID, tape_options(Path::new(&var("HOT")), LARGE)).unwrap();
            let mut next = var("FROM").parse().unwrap();
            let until = writer.end().0 + 12 * LARGE;
            while writer.end().0 < until {
                append(&mut writer, seed, next, next + 50);
                next += 50;
                counter.committed().store(next, Ordering::Release); // pairs with the Acquire in the test
            }
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        other => panic!("no role {other}"),
    }
}

/// Reads for ever, and has a frame of some time ago in hand all the while, through a reader of its own, and one that
/// it looked up.
fn read(dir: &Path, seed: u64, which: usize, counter: &Counter) {
    let mut checker = Checker::new(dir, seed);
    let (mut behind, mut aside) = (
        Reader::open(dir, StartPosition::Oldest).unwrap(),
        Reader::open(dir, StartPosition::Oldest).unwrap(),
    );
    for turn in 0.. {
        let r = mix(seed ^ which as u64, turn);
        let Some(frame) = behind.next().unwrap() else {
            std::thread::sleep(Duration::from_micros(200));
            counter.seen(which).store(checker.catch_up(), Ordering::Release); // pairs with the Acquire in the test
            continue;
        };
        let (position, before) = (frame.position, frame.bytes.to_vec());
        // A position that was just read is there, if only on the disk.
        let other = aside.frame_at(position).unwrap();
        for _ in 0..r % 60 {
            checker.step();
        }
        if r.is_multiple_of(7) {
            std::thread::sleep(Duration::from_micros(r / 7 % 900));
        }
        assert!(
            frame.bytes == before && frame.header.is_at(position),
            "the frame in hand at {position} changed"
        );
        assert!(other.bytes == before, "the frame that was looked up at {position} changed");
        counter.seen(which).store(checker.next, Ordering::Release); // pairs with the Acquire in the test
        // Most of the time it jumps to where the others are: the newest segments are those that go round.
        if r.is_multiple_of(50) {
            behind.seek(checker.reader.position()).unwrap();
        }
    }
}

/// Appends until the tape is `segments` further, a little at a time so that the recorder keeps up and segments go round.
fn fill(
    writer: &mut Writer,
    seed: u64,
    from: u64,
    segments: u64,
    files: &mut BTreeSet<u64>,
    hot: &Path,
) -> u64 {
    let until = writer.end().0 + segments * SMALL;
    let mut next = from;
    while writer.end().0 < until {
        append(writer, seed, next, next + 20);
        next += 20;
        let since = Instant::now();
        while writer.recorded() < writer.end() && since.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        let named = fs::read_dir(hot).unwrap().flatten().filter(|e| e.path().extension().is_some());
        files.extend(named.filter_map(|e| Some(e.metadata().ok()?.ino())));
    }
    next
}

/// A reader that is stopped has its segment for as long as it likes, one that is killed gives it back, and neither is
/// ever shown the bytes of another segment.
#[test]
fn readers_stopped_and_killed_while_segments_go_round() {
    let (rounds, seed) = (number("UNITAPE_AGAIN_ROUNDS", 40), number("UNITAPE_SEED", SEED));
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let (dir, other) = (directory(), directory());
    let (hot, counter_path) = (other.path().join("hot"), other.path().join("counter"));
    let counter = Counter::create(&counter_path);
    let (mut writer, _) = Writer::open(dir.path(), ID, tape_options(&hot, SMALL)).unwrap();
    let mut next = 20;
    append(&mut writer, seed, 0, next);
    let spawn = |which: usize| {
        let mut command = again("reader", dir.path(), seed, &counter_path);
        Victim(command.env("READER", which.to_string()).spawn().unwrap())
    };
    let mut readers: Vec<Victim> = (0..READERS).map(spawn).collect();
    let mut files = BTreeSet::new();
    for round in 0..rounds {
        let r = mix(seed, round);
        let at = format!("seed {seed} round {round}");
        let which = (r % READERS as u64) as usize;
        let running = (which + 1) % READERS;
        // At any moment of its loop.
        std::thread::sleep(Duration::from_micros(r / 8 % 3000));
        kill_process(Pid::from_child(&readers[which].0), Signal::STOP).unwrap();
        next = fill(&mut writer, seed, next, 5, &mut files, &hot);
        wait_for(|| counter.seen(running).load(Ordering::Acquire) == next, &at); // pairs with the Release in the child
        if (r / 3).is_multiple_of(3) {
            readers[which].kill();
            readers[which] = spawn(which);
        } else {
            kill_process(Pid::from_child(&readers[which].0), Signal::CONT).unwrap();
        }
        assert!(readers.iter_mut().all(Victim::is_running), "{at}: a reader has failed");
    }
    for (which, reader) in readers.iter_mut().enumerate() {
        let done = || counter.seen(which).load(Ordering::Acquire) == next; // pairs with the Release in the child
        wait_for(|| done() || !reader.is_running(), "the readers to see all");
        assert!(reader.is_running(), "seed {seed}: reader {which} has failed");
    }
    // How many come round is a matter of the preallocator's time; that some do is what the readers were stopped for.
    let segments = writer.end().0 / SMALL;
    assert!((files.len() as u64) < segments, "{} files for {segments} segments", files.len());
    writer.close().unwrap();
    drop(readers);
    assert!(!hot.exists());
    assert_eq!(Checker::new(dir.path(), seed).catch_up(), next);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Files that wait, or are being made, and of which a part is zeroed and a part is not.
fn half_zeroed(hot: &Path) -> usize {
    let Ok(entries) = fs::read_dir(hot) else { return 0 };
    let spare = |name: &str| name.starts_with("spare-");
    let half = |path: PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        let pages = bytes.chunks_exact(4096).skip(1).map(|page| page.iter().all(|&b| b == 0));
        let zero = pages.clone().filter(|zero| *zero).count();
        zero > 0 && zero < pages.count() && bytes[4096..8192].iter().all(|&b| b == 0)
    };
    let spares = entries.flatten().filter(|e| e.file_name().to_str().is_some_and(spare));
    spares.filter(|e| half(e.path())).count()
}

/// The process of the preallocator dies while it zeroes: the file has lost its old name and not yet a new one, and the kernel
/// takes its lock. The next process that opens the tape must not mistake the file for a segment, nor for a zeroed
/// one.
#[test]
fn writers_killed_while_they_make_a_segment_out_of_an_old_one() {
    let (rounds, seed) = (number("UNITAPE_AGAIN_ROUNDS", 40), number("UNITAPE_SEED", SEED));
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let mut met = 0;
    for tape in 0..rounds.div_ceil(8) {
        let seed = mix(seed, tape);
        let (dir, other) = (directory(), directory());
        let (hot, counter_path) = (other.path().join("hot"), other.path().join("counter"));
        let counter = Counter::create(&counter_path);
        let options = tape_options(&hot, LARGE);
        Writer::open(dir.path(), ID, options.clone()).unwrap().0.close().unwrap();
        let mut command = again("reader", dir.path(), seed, &counter_path);
        let mut bystander = Victim(command.env("READER", "0").spawn().unwrap());
        let (mut checker, mut next) = (Checker::new(dir.path(), seed), 0);
        for round in 0..8 {
            let at = format!("seed {seed} round {round}");
            let mut command = again("writer", dir.path(), seed, &counter_path);
            let mut victim = Victim(command.env("HOT", &hot).env("FROM", next.to_string()).spawn().unwrap());
            wait_for(|| counter.committed().load(Ordering::Acquire) > next, &at);
            std::thread::sleep(Duration::from_micros(mix(seed, round) % 40_000));
            victim.kill();
            met += half_zeroed(&hot);
            let (mut writer, recovery) = Writer::open(dir.path(), ID, options.clone()).expect(&at);
            wait_for(
                || {
                    next = checker.catch_up();
                    checker.reader.position() >= recovery.end_position
                },
                &at,
            );
            assert!(next >= counter.committed().load(Ordering::Acquire), "{at}: what was committed is gone");
            append(&mut writer, seed, next, next + 500);
            next += 500;
            counter.committed().store(next, Ordering::Release);
            assert!(bystander.is_running(), "{at}: the reader has failed");
            drop(writer);
        }
        wait_for(|| counter.seen(0).load(Ordering::Acquire) == next || !bystander.is_running(), "the reader");
        assert!(bystander.is_running(), "seed {seed}: the reader has failed");
        Writer::open(dir.path(), ID, options).unwrap().0.close().unwrap();
        bystander.kill();
        assert_eq!(Checker::new(dir.path(), seed).catch_up(), next);
        assert!(verify(dir.path()).unwrap().is_intact());
    }
    eprintln!("{met} kills met a segment that was half zeroed");
}

/// The files of such a death made by hand, so that it is met for certain: one half zeroed, with the header of its
/// next life, and another that is whole in its old life.
#[test]
fn a_half_zeroed_segment_is_nobodys() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let (dir, other) = (directory(), directory());
    let hot = other.path().join("hot");
    let (mut writer, _) = Writer::open(dir.path(), ID, tape_options(&hot, SMALL)).unwrap();
    let mut next = fill(&mut writer, 9, 0, 8, &mut BTreeSet::new(), &hot);
    let mut reader = Checker::new(dir.path(), 9);
    reader.catch_up();
    let index = writer.end().0 / SMALL;
    drop(writer);
    let current = fs::read(hot.join(format!("{index:016x}.seg"))).unwrap();
    for (name, zeroed) in [("spare-0000000000000002", true), ("spare-0000000000000003", false)] {
        fs::write(hot.join(name), &current).unwrap();
        if zeroed {
            let file = fs::OpenOptions::new().write(true).open(hot.join(name)).unwrap();
            file.write_all_at(&vec![0; SMALL as usize / 2], HEADER_PAGE).unwrap();
        }
    }
    for start in ["prepared", "making"] {
        fs::write(hot.join(format!("{start}-{:016x}", index + 1)), &current).unwrap();
    }
    let (mut writer, _) = Writer::open(dir.path(), ID, tape_options(&hot, SMALL)).unwrap();
    next = fill(&mut writer, 9, next, 8, &mut BTreeSet::new(), &hot);
    let since = Instant::now();
    while reader.catch_up() < next {
        assert!(since.elapsed() < Duration::from_secs(60), "the reader that was there stands still");
    }
    assert_eq!(Checker::new(dir.path(), 9).catch_up(), next);
    writer.close().unwrap();
    assert!(!hot.exists() && verify(dir.path()).unwrap().is_intact());
}
