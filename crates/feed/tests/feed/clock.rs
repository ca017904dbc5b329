//! Ticks of a run's clock. A rerun of the journals once could put a tick elsewhere than the run had: by its time, which the
//! messages' times say nothing of.
//!
//! Wall time is a number that the test sets; the run's interval is a few milliseconds, and the test waits for events.

use crate::common::small_tape;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{
    AccountSummary, ClockSource, FeedInput, Format, RunFeed, RunOptions, RunOutcome, TapeAccount, run,
};
use unitape_model::{Event, EventKind, FrameHeader, UnixNanos, flags};
use unitape_tape::{Reader, StartPosition};

const S: i64 = 1_000_000_000;

/// A run of followed directories and a clock, in a directory of its own.
struct ClockBench {
    dir: tempfile::TempDir,
    feeds: Vec<&'static str>,
    now: fn() -> UnixNanos,
    wall: &'static AtomicI64,
}

/// A run in progress.
struct Running<'b> {
    bench: &'b ClockBench,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<RunOutcome>>,
}

impl ClockBench {
    fn new(feeds: &[&'static str], now: fn() -> UnixNanos, wall: &'static AtomicI64) -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap(), feeds: feeds.to_vec(), now, wall };
        feeds.iter().for_each(|feed| std::fs::create_dir(bench.path(feed)).unwrap());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self) -> Running<'_> {
        let follow = |feed: &&str| {
            let input = FeedInput::Directory { path: self.path(feed), follow: true };
            RunFeed::new((*feed).to_owned(), Format::events(), input)
        };
        let mut feeds: Vec<_> = self.feeds.iter().map(follow).collect();
        let source = ClockSource { interval: Duration::from_millis(4), now: self.now };
        feeds.push(RunFeed::clock("clock".to_owned(), self.path("journal"), source));
        let mut options = RunOptions::new(feeds);
        options.tape = small_tape();
        options.scan = Duration::from_millis(2);
        options.wait = Some(Duration::from_millis(20));
        let (stop, tape) = (options.stop.clone(), self.path("tape"));
        let thread = std::thread::spawn(move || run(&tape, options).unwrap());
        Running { bench: self, stop, thread: Some(thread) }
    }

    /// Puts a trade of this time into a file of a feed.
    fn put(&self, feed: &str, ts: i64) {
        let file = self.path(feed).join("a.jsonl");
        let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        let line = format!(
            "{{\"kind\":\"trade\",\"ts\":{ts},\"venue\":\"XLON\",\"instr\":\"{feed}\",\"px\":\"1.5\",\"qty\":\"1\"}}\n"
        );
        file.write_all(line.as_bytes()).unwrap();
    }

    /// Reads the files and the journal of ticks again, onto another tape.
    fn rerun(&self, name: &str, workers: usize, block_bytes: usize) -> PathBuf {
        let ticks = self.path(&format!("{name}-ticks"));
        std::fs::create_dir(&ticks).unwrap();
        std::fs::copy(self.path("journal/00000001.raw"), ticks.join("00000001.raw")).unwrap();
        let read = |path: PathBuf| FeedInput::Directory { path, follow: false };
        let events = |feed: &&str| RunFeed::new((*feed).to_owned(), Format::events(), read(self.path(feed)));
        let mut feeds: Vec<_> = self.feeds.iter().map(events).collect();
        feeds.push(RunFeed::new("clock".to_owned(), Format::clock(), read(ticks)));
        let mut options = RunOptions::new(feeds);
        (options.tape, options.workers, options.block_bytes) = (small_tape(), workers, block_bytes);
        let tape = self.path(name);
        run(&tape, options).unwrap();
        tape
    }
}

impl Running<'_> {
    /// Waits until the tape has this many events of a kind.
    #[track_caller]
    fn has(&self, kind: &str, events: u64) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let account = TapeAccount::load(&self.bench.path("tape"));
            let have = account.map_or(0, |a| a.summary().by_kind.get(kind).copied().unwrap_or(0));
            if have == events {
                return;
            }
            assert!(have < events && Instant::now() < until, "{have} of {events} {kind}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn put(&self, feed: &str, ts: i64, events: u64) {
        self.bench.put(feed, ts);
        self.has("trade", events);
    }

    /// Sets wall time and waits for the tick.
    fn tick(&self, wall: i64, ticks: u64) {
        self.bench.wall.store(wall, Ordering::SeqCst);
        self.has("clock", ticks);
    }

    fn stop(mut self) -> AccountSummary {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap().summary
    }
}

/// Kinds and times of all events, and which are late or lead by more than they may.
fn order(tape: &Path) -> Vec<String> {
    let show = |bytes: &Vec<u8>| {
        let event = Event::new(bytes).filter(|e| !e.header().is_meta())?;
        let late = if event.header().flags() & flags::LATE != 0 { " late" } else { "" };
        let ahead = if event.header().flags() & flags::CLOCK_AHEAD != 0 { " ahead" } else { "" };
        Some(format!("{} {}{late}{ahead}", event.kind().name(), event.ts_event().0))
    };
    frames(tape).iter().filter_map(show).collect()
}

/// All frames but marks of progress: only a rerun knows where the sources end.
fn frames(tape: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(tape, StartPosition::Oldest).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        if Event::new(frame.bytes).is_some_and(|e| e.kind() != EventKind::Progress) {
            let mut bytes = frame.bytes.to_vec();
            // The stamp is the writer's.
            FrameHeader(frame.header.0 & !0xffff_ffff).write(&mut bytes);
            all.push(bytes);
        }
    }
    all
}

#[track_caller]
fn assert_reruns(bench: &ClockBench, tape: &Path) {
    let want = frames(tape);
    for (workers, block_bytes) in [(1, 256 << 10), (2, 64), (3, 300)] {
        let name = format!("rerun-{workers}-{block_bytes}-{}", want.len());
        let again = bench.rerun(&name, workers, block_bytes);
        assert_eq!(order(&again), order(tape), "{workers} workers, blocks of {block_bytes}");
        assert!(frames(&again) == want, "{workers} workers, blocks of {block_bytes}: other bytes");
        let report = unitape_tape::verify(&again).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// Times of messages are before, between and after those of the ticks; the wall clock steps back; the run is stopped
/// and continues. No message is late, and the journals give the same events in the same order.
#[test]
fn ticks_have_their_place_in_each_rerun() {
    static WALL: AtomicI64 = AtomicI64::new(0);
    let bench = ClockBench::new(&["a"], || UnixNanos(WALL.load(Ordering::SeqCst)), &WALL);
    WALL.store(3, Ordering::SeqCst);
    let run = bench.start();
    // The first tick, rounded down; then wall time does not pass it.
    run.has("clock", 1);
    run.put("a", 100, 1);
    run.tick(10 * S + 123, 2);
    WALL.store(9 * S, Ordering::SeqCst);
    run.put("a", 50, 2);
    run.put("a", 200, 3);
    run.tick(11 * S, 3);
    run.put("a", 20 * S, 4);
    run.tick(12 * S, 4);
    run.put("a", 20 * S + 1, 5);
    let summary = run.stop();
    let want = [
        "clock 0",
        "trade 100",
        "clock 10000000000",
        "trade 50",
        "trade 200",
        "clock 11000000000",
        "trade 20000000000",
        "clock 12000000000",
        "trade 20000000001",
    ];
    let tape = bench.path("tape");
    assert_eq!(order(&tape), want);
    assert_eq!((summary.messages, summary.events, summary.by_kind["clock"]), (9, 9, 4));
    assert_eq!((summary.by_feed["clock"].messages, summary.by_feed["clock"].with_events), (4, 4));
    assert_reruns(&bench, &tape);

    // Wall time is still that of the last tick.
    let run = bench.start();
    run.put("a", 20 * S + 2, 6);
    run.tick(30 * S, 5);
    run.put("a", 3, 7);
    run.stop();
    // The tape's latest time is that of the feed.
    let run = bench.start();
    run.put("a", 4, 8);
    let summary = run.stop();
    assert_eq!(order(&tape)[9..], ["trade 20000000002", "clock 30000000000", "trade 3", "trade 4"]);
    assert_eq!((summary.messages, summary.by_kind["clock"]), (13, 5));
    assert_reruns(&bench, &tape);
    let report = unitape_tape::verify(&tape).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// A message of one feed that is late beside the other stays so, and a tick between them makes none late; the clock is not
/// one of the feeds that a merge waits for.
#[test]
fn feeds_are_merged_as_without_a_clock() {
    static WALL: AtomicI64 = AtomicI64::new(0);
    let bench = ClockBench::new(&["a", "b"], || UnixNanos(WALL.load(Ordering::SeqCst)), &WALL);
    let run = bench.start();
    run.has("clock", 1);
    run.put("a", 10, 1);
    run.put("b", 20, 2);
    run.tick(S, 2);
    run.put("a", 15, 3);
    run.put("b", 30, 4);
    run.tick(2 * S, 3);
    run.stop();
    let tape = bench.path("tape");
    let want = [
        "clock 0",
        "trade 10",
        "trade 20",
        "clock 1000000000",
        "trade 15 late",
        "trade 30",
        "clock 2000000000",
    ];
    assert_eq!(order(&tape), want);
    assert_reruns(&bench, &tape);
}

/// A run that is killed between the journal and the tape has a tick in its journal that the tape does not have, or no more
/// than a part of what came after it. Each such tape is continued to the same one.
#[test]
fn a_tape_that_ends_anywhere_is_continued_to_the_same_one() {
    static WALL: AtomicI64 = AtomicI64::new(0);
    let bench = ClockBench::new(&["a"], || UnixNanos(WALL.load(Ordering::SeqCst)), &WALL);
    let run = bench.start();
    run.has("clock", 1);
    for n in 1..6 {
        run.put("a", n, n as u64);
        run.tick(n * S, n as u64 + 1);
    }
    run.stop();
    let whole = bench.path("tape");
    let (want, units) = (order(&whole), crate::common::units(&whole));
    assert_eq!(want.len(), 11);
    for cut in 0..units.len() {
        std::fs::rename(bench.path("tape"), bench.path("aside")).unwrap();
        crate::common::tape_of(&bench.path("tape"), &bench.path("aside"), &units[..cut]);
        let run = bench.start();
        run.has("clock", 6);
        run.has("trade", 5);
        run.stop();
        assert_eq!(order(&bench.path("tape")), want, "after {cut} units");
        std::fs::remove_dir_all(bench.path("tape")).unwrap();
        std::fs::rename(bench.path("aside"), bench.path("tape")).unwrap();
    }
}

/// The host's clock was a year ahead for a while. Its ticks were believed, so that readers were a year ahead, and no tick
/// came in later runs.
#[test]
fn a_clock_that_is_ahead_for_a_while_silences_nothing() {
    static WALL: AtomicI64 = AtomicI64::new(0);
    const NOW: i64 = 1_772_440_000 * S;
    const YEAR: i64 = 365 * 86_400 * S;
    let bench = ClockBench::new(&["a"], || UnixNanos(WALL.load(Ordering::SeqCst)), &WALL);
    let tape = bench.path("tape");
    WALL.store(NOW, Ordering::SeqCst);
    let run = bench.start();
    run.has("clock", 1);
    run.put("a", NOW + 1, 1);
    run.tick(NOW + S, 2);
    run.tick(NOW + YEAR, 3);
    run.put("a", NOW + S + 1, 2);
    run.tick(NOW + YEAR + S, 4);
    run.tick(NOW + 2 * S, 5);
    let summary = run.stop();
    assert_eq!(summary.clock_ahead, 2);
    let own = |kind: &str, ts: i64, flag: &str| format!("{kind} {ts}{flag}");
    let mut want = vec![
        own("clock", NOW, ""),
        own("trade", NOW + 1, ""),
        own("clock", NOW + S, ""),
        own("clock", NOW + YEAR, " ahead"),
        own("trade", NOW + S + 1, ""),
        own("clock", NOW + YEAR + S, " ahead"),
        own("clock", NOW + 2 * S, ""),
    ];
    assert_eq!(order(&tape), want);
    assert_reruns(&bench, &tape);

    // A host that starts a year ahead is believed, because a tape may rest for a year; the next run ticks all the same.
    WALL.store(NOW + YEAR, Ordering::SeqCst);
    let run = bench.start();
    run.has("clock", 6);
    run.stop();
    WALL.store(NOW + 3 * S, Ordering::SeqCst);
    let run = bench.start();
    run.has("clock", 7);
    run.put("a", NOW + 3 * S + 1, 3);
    run.tick(NOW + 4 * S, 8);
    run.stop();
    want.extend([
        own("clock", NOW + YEAR, ""),
        own("clock", NOW + 3 * S, ""),
        own("trade", NOW + 3 * S + 1, ""),
        own("clock", NOW + 4 * S, ""),
    ]);
    assert_eq!(order(&tape), want);
    // A host that is further ahead than a tape may rest is not believed, from the start.
    WALL.store(NOW + 2 * YEAR, Ordering::SeqCst);
    let run = bench.start();
    run.has("clock", 9);
    run.stop();
    want.push(own("clock", NOW + 2 * YEAR, " ahead"));
    assert_eq!(order(&tape), want);
    assert_reruns(&bench, &tape);
}

/// A journal of ticks that was lost ended the ticks for good, and the flag that the error named did nothing.
#[test]
fn ticks_continue_after_their_journal_was_lost() {
    static WALL: AtomicI64 = AtomicI64::new(0);
    let bench = ClockBench::new(&["a"], || UnixNanos(WALL.load(Ordering::SeqCst)), &WALL);
    let mut ticks = 0;
    let mut ticks_of_a_run = || {
        let run = bench.start();
        for _ in 0..2 {
            ticks += 1;
            run.tick(ticks as i64 * S, ticks);
        }
        run.stop();
    };
    ticks_of_a_run();
    std::fs::remove_dir_all(bench.path("journal")).unwrap();
    ticks_of_a_run();
    std::fs::remove_file(bench.path("journal/00000002.raw")).unwrap();
    ticks_of_a_run();
    ticks_of_a_run();
    let want: Vec<_> = (1..9).map(|n| format!("clock {}", n * S)).collect();
    assert_eq!(order(&bench.path("tape")), want);
    let report = unitape_tape::verify(&bench.path("tape")).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}
