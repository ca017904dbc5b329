//! Processes stand still at any moment, as on a busy machine: the writer, the recorder, readers. Nobody else is
//! harmed, and a process that resumes is right.
//!
//! Rounds by `UNITAPE_STALL_ROUNDS` (150), seed by `UNITAPE_SEED`. Each stops one process, looks that those which do
//! not need it continue, and lets it continue.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::process::{Account, Counter, SEED, Victim, again, number, wait_for};
use common::{Checker, ID, mix, options, unit};
use rustix::process::{Pid, Signal, kill_process};
use unitape_tape::{
    Backing, Error, RecorderLocation, RemovalOptions, SyncPolicy, Writer, WriterOptions, record, verify,
};

const SEGMENT_BYTES: u64 = 64 << 10;
const READERS: usize = 2;
/// Rounds on one tape, so that it does not grow without end.
const ROUNDS_OF_A_TAPE: u64 = 100;

/// Not a test of its own: what the stopped processes run.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let (dir, seed) = (PathBuf::from(var("DIR")), var("SEED").parse().unwrap());
    let counter = Counter::open(Path::new(&var("COUNTER")));
    match role.as_str() {
        "writer" => write(&dir, seed, std::env::var("HOT").ok().map(PathBuf::from), &counter),
        "recorder" => {
            let sync = SyncPolicy::Every { bytes: 1 << 20, interval: Duration::from_millis(5) };
            // The test ends it; until then it records.
            record(&dir, sync, RemovalOptions::default(), &AtomicBool::new(false)).unwrap();
        }
        "reader" => {
            let mut reader = Checker::new(&dir, seed);
            let place = counter.seen(var("READER").parse().unwrap());
            loop {
                let count = reader.catch_up();
                place.store(count, Ordering::Release); // pairs with the Acquire in the test
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        other => panic!("no role {other}"),
    }
}

fn tape_options(hot: Option<&Path>) -> WriterOptions {
    let mut options = options(SEGMENT_BYTES, hot);
    if hot.is_some() {
        options.recorder = RecorderLocation::External;
        options.recorder_wait = Duration::from_millis(1);
        options.backing = Backing::Hot { dir: hot.map(Into::into), window_segments: 4 };
    }
    options
}

fn write(dir: &Path, seed: u64, hot: Option<PathBuf>, counter: &Counter) {
    let (mut writer, _) = Writer::open(dir, ID, tape_options(hot.as_deref())).unwrap();
    let (mut next, mut bytes) = (0, Vec::new());
    // Pairs with the Release in the test, which wants it closed.
    while counter.seen(60).load(Ordering::Acquire) == 0 {
        bytes.clear();
        unit(seed, next, &mut bytes);
        match writer.append(&bytes) {
            Ok(_) => next += 1,
            Err(Error::RecorderBehind { .. }) => {}
            Err(e) => panic!("seed {seed}: {e}"),
        }
        counter.committed().store(next, Ordering::Release); // pairs with the Acquire in the test
        if next.is_multiple_of(8) {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    // A recorder that just stood still gets its time.
    let end = writer.end();
    while let Err(e) = writer.wait_durable(end, Duration::from_secs(300)) {
        assert!(matches!(e, Error::NoRecorder { .. }), "seed {seed}: {e}");
    }
    drop(writer);
}

fn signal(victim: &Victim, signal: Signal) {
    kill_process(Pid::from_child(&victim.0), signal).unwrap();
}

/// A recorder that stood still once could have made the writer overwrite what it had not copied, a reader that
/// stood still could have been overtaken, a writer that stood still between two stores could have shown half a
/// frame.
fn stall_rounds(hot: bool) {
    let (rounds, seed) = (number("UNITAPE_STALL_ROUNDS", 150), number("UNITAPE_SEED", SEED));
    let mut account = Account::begin("stall", if hot { "hot" } else { "file" }, seed, rounds);
    let mut tape = 0;
    while account.rounds() < rounds {
        one_tape(hot, mix(seed, tape), rounds, &mut account);
        tape += 1;
    }
}

fn one_tape(hot: bool, seed: u64, rounds: u64, account: &mut Account) {
    let (dir, other) = (common::directory(), common::directory());
    let place = hot.then(|| other.path().join("hot"));
    let counter_path = other.path().join("counter");
    let counter = Counter::create(&counter_path);
    Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap().0.close().unwrap();
    let spawn = |role: &str, reader: usize| {
        let mut command = again(role, dir.path(), seed, &counter_path);
        command.env("READER", reader.to_string());
        if let Some(place) = &place {
            command.env("HOT", place);
        }
        Victim(command.spawn().unwrap())
    };
    let mut all = vec![("writer", spawn("writer", 0))];
    wait_for(|| committed(&counter) > 0, "the writer to begin");
    all.extend((0..READERS).map(|i| ("reader", spawn("reader", i))));
    if hot {
        all.push(("recorder", spawn("recorder", 0)));
    }
    for round in 0..ROUNDS_OF_A_TAPE {
        if account.rounds() >= rounds {
            break;
        }
        let r = mix(seed, round);
        let which = (r % all.len() as u64) as usize;
        let (role, victim) = &all[which];
        let at = format!("hot {hot} seed {seed} round {round}, {role} {which} stopped");
        signal(victim, Signal::STOP);
        let before = committed(&counter);
        match *role {
            // Readers come to its last frame, whatever it was doing, and find no damage.
            "writer" => wait_for(|| (0..READERS).all(|i| seen(&counter, i) >= before), &at),
            // The writer does not know of readers; the other one continues.
            "reader" => {
                let running = 2 - which;
                wait_for(|| committed(&counter) > before + 8, &at);
                wait_for(|| seen(&counter, running) >= before, &at);
            }
            // Readers continue to where the writer stops because the window is full.
            _ => wait_for(|| (0..READERS).all(|i| seen(&counter, i) >= before), &at),
        }
        std::thread::sleep(Duration::from_micros(r >> 32 & 0x3ff));
        signal(victim, Signal::CONT);
        let now = committed(&counter);
        wait_for(|| committed(&counter) > now && (0..READERS).all(|i| seen(&counter, i) > now), &at);
        for (role, victim) in &mut all {
            assert!(victim.is_running(), "{at}: a {role} has ended");
        }
        account.round();
    }
    // Release: pairs with the Acquire in the writer.
    counter.seen(60).store(1, Ordering::Release);
    assert!(all[0].1.0.wait().unwrap().success(), "hot {hot} seed {seed}: the writer");
    let total = committed(&counter);
    wait_for(|| (0..READERS).all(|i| seen(&counter, i) == total), "the readers to see all");
    drop(all);
    Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap().0.close().unwrap();
    let report = verify(dir.path()).unwrap();
    assert!(report.is_intact(), "hot {hot} seed {seed}: {:?}", report.problems);
    assert_eq!(report.unit_count, total, "hot {hot} seed {seed}");
}

fn committed(counter: &Counter) -> u64 {
    counter.committed().load(Ordering::Acquire) // pairs with the Release in the writer
}

fn seen(counter: &Counter, reader: usize) -> u64 {
    counter.seen(reader).load(Ordering::Acquire) // pairs with the Release in the reader
}

#[test]
fn stalled_processes_of_a_file_tape_harm_nobody() {
    stall_rounds(false);
}

#[test]
fn stalled_processes_of_a_hot_tape_harm_nobody() {
    stall_rounds(true);
}
