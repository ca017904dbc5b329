//! Processes die: writers, readers, recorders. Everything reported committed stays, nothing else appears.
//!
//! The test binary starts itself again as the process to be killed; `child` is that process. Rounds by
//! `UNITAPE_KILL_ROUNDS` (200), seed by `UNITAPE_SEED`; a failure names both.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::process::{Account, Counter, SEED, Victim, again, number, wait_for};
use common::{Checker, ID, append, content, cut, events, mix, options, unit};
use rustix::process::{Pid, Signal, kill_process};
use unitape_model::UnixNanos;
use unitape_tape::{
    Backing, Reader, RecorderLocation, RemovalOptions, SeekOutcome, StartPosition, SyncPolicy, Writer,
    WriterOptions, record, verify,
};

const SEGMENT_BYTES: u64 = 32 << 10;

/// Not a test of its own: what the killed processes run.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let dir = std::path::PathBuf::from(var("DIR"));
    let seed: u64 = var("SEED").parse().unwrap();
    let counter = Counter::open(Path::new(&var("COUNTER")));
    match role.as_str() {
        "writer" => {
            let hot = std::env::var("HOT").ok();
            let options = options(SEGMENT_BYTES, hot.as_deref().map(Path::new));
            let in_bulk = std::env::var("IN_BULK").is_ok();
            let (mut writer, _) = Writer::open(&dir, ID, WriterOptions { in_bulk, ..options }).unwrap();
            write_until_killed(&mut writer, &dir, seed, var("ROUND").parse().unwrap(), &counter);
        }
        "reader" => {
            let mut reader = Checker::new(&dir, seed);
            // Reads until it has all, then says so; a reader that errs or hangs fails the test.
            loop {
                let count = reader.catch_up();
                counter.seen(0).store(count, Ordering::Release); // pairs with the Acquire in the tests
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        "recorder" => {
            let sync = SyncPolicy::Every { bytes: 1 << 20, interval: Duration::from_millis(5) };
            record(&dir, sync, RemovalOptions::default(), &AtomicBool::new(false)).unwrap();
        }
        other => panic!("no role {other}"),
    }
}

fn write_until_killed(writer: &mut Writer, dir: &Path, seed: u64, round: u64, counter: &Counter) {
    let mut next = next_index(dir);
    let mut run = Vec::new();
    for step in 0..250u64 {
        let r = mix(seed ^ round, step);
        if r.is_multiple_of(3) {
            // Several claims at once, filled by threads, published in whatever order.
            let mut work = Vec::new();
            for part in 0..1 + r / 3 % 3 {
                let mut run = Vec::new();
                let count = 1 + mix(r, part) % 6;
                (next..next + count).for_each(|i| unit(seed, i, &mut run));
                next += count;
                let claim = writer.claim(run.len() as u64, |l| cut(&run, l), events(&run)).unwrap();
                work.push((claim, run));
            }
            std::thread::scope(|s| {
                for (mut claim, run) in work {
                    s.spawn(move || {
                        claim.write_frames(&run).unwrap();
                        claim.publish();
                    });
                }
            });
        } else {
            run.clear();
            unit(seed, next, &mut run);
            writer.append(&run).unwrap();
            next += 1;
        }
        counter.committed().store(next, Ordering::Release); // pairs with the Acquire in the tests
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Index after the last whole unit on the tape.
fn next_index(dir: &Path) -> u64 {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let mut next = 0;
    while let Some(run) = reader.next_run(1 << 20).unwrap() {
        for (_, header, frame) in unitape_model::frames(run.bytes) {
            if header.is_last() {
                next = u64::from_le_bytes(frame[8..16].try_into().unwrap()) + 1;
            }
        }
    }
    next
}

/// Kills a writer again and again. Once recovery left a claim after a hole, which the next writer's frames
/// made reachable; once a segment file without a name was mistaken for the live one.
fn kill_rounds(hot: bool, in_bulk: bool) {
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 200), number("UNITAPE_SEED", SEED));
    let mut account = Account::begin("kill-writer", if hot { "hot" } else { "file" }, seed, rounds);
    let dir = if in_bulk { common::directory() } else { tempfile::tempdir().unwrap() };
    let other = tempfile::tempdir().unwrap();
    let place = other.path().join("hot");
    let counter_path = other.path().join("counter");
    let counter = Counter::create(&counter_path);
    let options = options(SEGMENT_BYTES, hot.then_some(place.as_path()));
    let spawn = |role: &str, round: u64| {
        let mut command = again(role, dir.path(), seed, &counter_path);
        command.env("ROUND", round.to_string());
        if hot {
            command.env("HOT", &place);
        }
        if in_bulk {
            command.env("IN_BULK", "");
        }
        Victim(command.spawn().unwrap())
    };
    Writer::open(dir.path(), ID, options.clone()).unwrap().0.close().unwrap();
    let mut reader = Checker::new(dir.path(), seed);
    let mut bystander = spawn("reader", 0);
    for round in 0..rounds {
        let at = format!("hot {hot} seed {seed} round {round}");
        let mut writer = spawn("writer", round);
        std::thread::sleep(Duration::from_micros(mix(seed, round) % 14_000));
        writer.kill();
        let committed = counter.committed().load(Ordering::Acquire); // pairs with the Release in the child
        let (mut writer, recovery) = Writer::open(dir.path(), ID, options.clone()).expect(&at);
        let found = catch_up_to(&mut reader, recovery.end_position.0);
        assert!(found >= committed, "{at}: {committed} were reported, {found} are there");
        assert_eq!(reader.reader.ordinal(), recovery.ordinal, "{at}");
        if recovery.ordinal > 0 {
            searches_agree(dir.path(), mix(seed, round) % recovery.ordinal, &at);
        }
        // Every other round the next writer is this one, and some end cleanly.
        if round.is_multiple_of(2) {
            append(&mut writer, seed, found, found + 7);
            counter.committed().store(found + 7, Ordering::Release);
        }
        if round.is_multiple_of(5) {
            writer.close().expect(&at);
            let report = verify(dir.path()).unwrap();
            assert!(report.is_intact(), "{at}: {:?}", report.problems);
        }
        assert!(bystander.is_running(), "{at}: the reader stopped");
        account.round();
    }
    let (writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let total = catch_up_to(&mut reader, writer.end().0);
    wait_for(|| counter.seen(0).load(Ordering::Acquire) == total, "the reader to see all");
    writer.close().unwrap();
    bystander.kill();
    equal_to_one_go(dir.path(), seed, total, SEGMENT_BYTES);
}

/// A search by number or time finds the event that a walk from the segment's start finds. The time of an event here is the
/// index of its unit.
fn searches_agree(dir: &Path, ordinal: u64, at: &str) {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let found = reader.seek_ordinal(ordinal).expect(at);
    let SeekOutcome::Event { position, .. } = found else { panic!("{at}: no event {ordinal}") };
    let (counted, frame) = reader.next_counted().unwrap().unwrap();
    assert!(!frame.header.is_meta() && counted == ordinal, "{at}: event {ordinal} is {counted}");
    let time = i64::from_le_bytes(frame.bytes[8..16].try_into().unwrap());
    assert_eq!(Reader::open(dir, StartPosition::At(position)).unwrap().ordinal(), ordinal, "{at}");
    let found = reader.seek_time(UnixNanos(time - 1)).expect(at);
    let SeekOutcome::Event { ordinal: first, .. } = found else { panic!("{at}: no time {time}") };
    let frame = reader.next().unwrap().unwrap();
    // A unit has at most four events.
    assert_eq!(i64::from_le_bytes(frame.bytes[8..16].try_into().unwrap()), time, "{at}");
    assert!(
        (first..first + 4).contains(&ordinal),
        "{at}: event {ordinal}, and {first} is the first of its time"
    );
}

#[test]
fn killed_writers_of_a_file_tape_lose_and_invent_nothing() {
    kill_rounds(false, false);
}

/// Claims go into the file by calls, and a call may be cut off anywhere.
#[test]
fn killed_writers_of_a_tape_in_bulk_lose_and_invent_nothing() {
    kill_rounds(false, true);
}

#[test]
fn killed_writers_of_a_hot_tape_lose_and_invent_nothing() {
    kill_rounds(true, false);
}

/// A reader that is stopped or dead must be nothing to the writer, which does not know of it.
#[test]
fn stopped_and_killed_readers_do_not_disturb_the_writer() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let counter_path = other.path().join("counter");
    let counter = Counter::create(&counter_path);
    let (mut writer, _) = Writer::open(dir.path(), ID, options(1 << 20, None)).unwrap();
    let mut victims: Vec<Victim> =
        (0..4).map(|_| Victim(again("reader", dir.path(), 4, &counter_path).spawn().unwrap())).collect();
    append(&mut writer, 4, 0, 1000);
    wait_for(|| counter.seen(0).load(Ordering::Acquire) == 1000, "a reader to read");
    victims[0].kill();
    for victim in &victims[1..3] {
        kill_process(Pid::from_child(&victim.0), Signal::STOP).unwrap();
    }
    append(&mut writer, 4, 1000, 20_000);
    wait_for(|| counter.seen(0).load(Ordering::Acquire) == 20_000, "the last reader to read all");
    let end = writer.end();
    writer.close().unwrap();
    assert_eq!(Reader::open(dir.path(), StartPosition::End).unwrap().position(), end);
    for victim in &victims[1..3] {
        kill_process(Pid::from_child(&victim.0), Signal::CONT).unwrap();
    }
    assert_eq!(Checker::new(dir.path(), 4).catch_up(), 20_000);
}

/// A recorder that dies in the middle of a copy must leave no hole, whichever process continues.
#[test]
fn killed_recorders_leave_no_hole() {
    killed_recorders(SEGMENT_BYTES, 20, 4);
}

/// A recorder that is far behind and writes around the page cache, page by page, must leave no hole either.
#[test]
fn killed_recorders_that_write_much_leave_no_hole() {
    killed_recorders(2 << 20, 800, 16);
}

fn killed_recorders(segment_bytes: u64, burst: u64, part: u64) {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let counter_path = other.path().join("counter");
    Counter::create(&counter_path);
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 200) / part, number("UNITAPE_SEED", SEED));
    let name = if burst > 100 { "kill-recorder-far-behind" } else { "kill-recorder" };
    let mut account = Account::begin(name, "hot", seed, rounds);
    let options = WriterOptions {
        backing: Backing::Hot { dir: Some(other.path().join("hot")), window_segments: 8 },
        recorder: RecorderLocation::External,
        recorder_wait: Duration::from_secs(60),
        ..options(segment_bytes, None)
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let mut recorder = Victim(again("recorder", dir.path(), 6, &counter_path).spawn().unwrap());
    let stop = AtomicBool::new(false);
    let total = std::thread::scope(|s| {
        let appender = s.spawn(|| {
            let mut next = 0;
            // Relaxed: a wish, nothing is read under it.
            while !stop.load(Ordering::Relaxed) {
                append(&mut writer, 6, next, next + burst);
                next += burst;
                std::thread::sleep(Duration::from_micros(500));
            }
            next
        });
        for round in 0..rounds {
            std::thread::sleep(Duration::from_micros(mix(seed, round) % 30_000));
            recorder.kill();
            recorder = Victim(again("recorder", dir.path(), 6, &counter_path).spawn().unwrap());
            account.round();
        }
        stop.store(true, Ordering::Relaxed);
        appender.join().unwrap()
    });
    writer.close().unwrap();
    recorder.kill();
    // The next close removes the files that the killed recorder left under `run/`.
    Writer::open(dir.path(), ID, common::options(segment_bytes, None)).unwrap().0.close().unwrap();
    equal_to_one_go(dir.path(), 6, total, segment_bytes);
}

/// The figures of the docs come from here; a measurement that hangs or miscounts would be worse than none.
#[test]
fn measurements_run_to_their_end() {
    use unitape_tape::twin::measure;
    if std::env::var("UNITAPE_PEER").is_ok() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let spawn = |arguments: &[String]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "peer", "--nocapture"])
            .env("UNITAPE_PEER", arguments.join("\n"))
            .stdout(Stdio::null());
        command
    };
    // In a thread of its own, because measuring pins the thread to a processor.
    std::thread::scope(|s| {
        s.spawn(|| {
            let raw = measure::raw_round_trips(dir.path(), 200, &spawn).unwrap();
            assert!(raw.len() == 200 && raw.is_sorted());
            let file = options(1 << 20, None);
            let times = measure::round_trips(dir.path(), &file, 2, 200, &spawn).unwrap();
            assert!(times.len() == 200 && times.is_sorted());
            let place = dir.path().join("hot");
            let way =
                measure::one_way(dir.path(), &options(1 << 20, Some(&place)), 2, 20_000, &spawn).unwrap();
            assert_eq!((way.frames, way.bytes), (20_000, 20_000 * 128));
            assert!(verify(&dir.path().join("one-way")).unwrap().is_intact());
        });
    });
}

/// Not a test of its own: the second process of a measurement.
#[test]
fn peer() {
    let Ok(arguments) = std::env::var("UNITAPE_PEER") else { return };
    let arguments: Vec<String> = arguments.lines().map(Into::into).collect();
    unitape_tape::twin::measure::peer(&arguments).unwrap();
}

fn equal_to_one_go(dir: &Path, seed: u64, units: u64, segment_bytes: u64) {
    let report = verify(dir).unwrap();
    assert!(report.is_intact(), "{:?}", report.problems);
    assert_eq!(report.unit_count, units);
    let one = tempfile::tempdir().unwrap();
    let (mut writer, _) = Writer::open(one.path(), ID, options(segment_bytes, None)).unwrap();
    append(&mut writer, seed, 0, units);
    writer.close().unwrap();
    let (a, b) = (content(dir), content(one.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "seed {seed}: {name} differs from a tape written in one go");
    }
}

/// Reads until `position`; the reader may have to notice first that its segment has moved.
fn catch_up_to(reader: &mut Checker, position: u64) -> u64 {
    wait_for(
        || {
            reader.catch_up();
            reader.reader.position().0 >= position
        },
        "the reader to reach the end",
    );
    reader.next
}
