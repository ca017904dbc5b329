//! Writers of a ring tape die in the middle of a write, readers are stopped for laps and continue: every frame that is
//! given is exactly one that was written, order is kept, and what was lost is counted to the event.
//!
//! The test binary starts itself again as the other process; `child` is that process. Rounds by
//! `UNITAPE_KILL_ROUNDS` (200), seed by `UNITAPE_KILL_SEED`; a failure names both.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{ID, Unstamp, directory, mix};
use memmap2::MmapRaw;
use rustix::process::{Pid, Signal, kill_process};
use unitape_model::{FrameHeader, flags, frames};
use unitape_tape::{Error, RingOptions, RingTapeReader, RingTapeWriter, StartPosition};

const OPTIONS: RingOptions = RingOptions { capacity_bytes: 32 << 10 };

/// Not a test of its own: what the other processes run.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let path = std::path::PathBuf::from(var("RING"));
    let seed: u64 = var("SEED").parse().unwrap();
    let counter = Counter::open(Path::new(&var("COUNTER")));
    match role.as_str() {
        "writer" => {
            let (mut writer, _) = RingTapeWriter::open(&path, ID, OPTIONS).unwrap();
            let mut next = index_of(seed, writer.ordinal());
            loop {
                write(&mut writer, seed, next);
                next += 1;
                // Release: pairs with the Acquire in the tests.
                counter.word(0).store(next, Ordering::Release);
            }
        }
        "reader" => {
            let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
            let mut checker = Checker::new(seed, reader.ordinal());
            for turn in 0.. {
                checker.take(&mut reader);
                // Release: pair with the Acquires in the tests.
                counter.word(2).store(reader.losses().overruns, Ordering::Release);
                counter.word(1).store(checker.accounted, Ordering::Release);
                if mix(seed, turn).is_multiple_of(4) {
                    std::thread::sleep(Duration::from_micros(mix(seed, turn) % 700));
                }
                reader.wait(Duration::from_millis(20)).unwrap();
            }
        }
        other => panic!("no role {other}"),
    }
}

/// Writers are killed wherever they are. Possible errors: a frame half of the old lap and half of the new, a unit
/// after a pad that was never committed, a mark whose unit was not, an ordinal that jumps.
#[test]
fn killed_writers_leave_whole_units_and_the_next_one_goes_on() {
    let rounds: u64 = std::env::var("UNITAPE_KILL_ROUNDS").map_or(200, |r| r.parse().unwrap());
    let seed: u64 = std::env::var("UNITAPE_KILL_SEED").map_or(20_261_121, |s| s.parse().unwrap());
    let (dir, other) = (directory(), directory());
    let path = dir.path().join("ring");
    let counter = Counter::create(&other.path().join("counter"));
    let spawn = |role: &str| again(role, &path, seed, &other.path().join("counter"));
    drop(RingTapeWriter::open(&path, ID, OPTIONS).unwrap());
    let mut bystander = spawn("reader");
    let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
    let mut checker = Checker::new(seed, 0);
    let mut epoch = reader.epoch();
    for round in 0..rounds {
        let at = format!("seed {seed} round {round}");
        let mut victim = spawn("writer");
        let before = counter.word(0).load(Ordering::Acquire); // pairs with the Release in the child
        wait_for(|| counter.word(0).load(Ordering::Acquire) > before || !victim.is_running(), &at);
        std::thread::sleep(Duration::from_micros(mix(seed, round) % 3000));
        victim.kill();
        let committed = counter.word(0).load(Ordering::Acquire); // pairs with the Release in the child
        let (mut writer, recovery) = RingTapeWriter::open(&path, ID, OPTIONS).expect(&at);
        epoch += 2;
        assert_eq!((recovery.epoch, reader.epoch()), (epoch, epoch), "{at}");
        assert!(!recovery.clean && !recovery.emptied, "{at}");
        let found = index_of(seed, recovery.ordinal);
        assert!(
            found == committed || found == committed + 1,
            "{at}: {committed} were reported, {found} are there"
        );
        checker.take(&mut reader);
        assert_eq!((reader.position(), checker.accounted), (recovery.end, recovery.ordinal), "{at}");
        // Every other round this one writes on.
        if round.is_multiple_of(2) {
            (found..found + 20).for_each(|i| write(&mut writer, seed, i));
        }
        counter.word(0).store(index_of(seed, writer.ordinal()), Ordering::Release);
        assert!(bystander.is_running(), "{at}: the reader stopped");
    }
    let (writer, recovery) = RingTapeWriter::open(&path, ID, OPTIONS).unwrap();
    // Acquire: pairs with the Release in the child.
    wait_for(|| counter.word(1).load(Ordering::Acquire) == recovery.ordinal, "the reader to account for all");
    assert!(
        bystander.is_running() && counter.word(2).load(Ordering::Acquire) > 0,
        "seed {seed}: never overrun"
    );
    writer.close().unwrap();
}

/// A reader that stands still while the writer goes round once found a later lap's frame at its place.
#[test]
fn stopped_readers_go_on_and_count_what_they_lost() {
    let rounds: u64 = std::env::var("UNITAPE_KILL_ROUNDS").map_or(200, |r| r.parse().unwrap()) / 2;
    let seed: u64 = std::env::var("UNITAPE_KILL_SEED").map_or(20_261_121, |s| s.parse().unwrap());
    let (dir, other) = (directory(), directory());
    let path = dir.path().join("ring");
    let counter = Counter::create(&other.path().join("counter"));
    let (mut writer, _) = RingTapeWriter::open(&path, ID, OPTIONS).unwrap();
    let mut readers: Vec<Victim> =
        (0..2).map(|_| again("reader", &path, seed, &other.path().join("counter"))).collect();
    let mut next = 0;
    let mut append = |writer: &mut RingTapeWriter, count: u64| {
        (next..next + count).for_each(|i| write(writer, seed, i));
        next += count;
    };
    // One reader is stopped somewhere, also in the middle of a copy; the other stays beside the writer.
    append(&mut writer, 10);
    wait_for(|| counter.word(1).load(Ordering::Acquire) > 0, "a reader to read");
    readers.truncate(1);
    for round in 0..rounds {
        let at = format!("seed {seed} round {round}");
        let mut writes = 0;
        let stop_after = mix(seed, round) % 40;
        while writes < stop_after {
            append(&mut writer, 1);
            writes += 1;
        }
        kill_process(Pid::from_child(&readers[0].0), Signal::STOP).unwrap();
        // From a part of a lap to many.
        append(&mut writer, mix(seed, round + 1000) % 600);
        kill_process(Pid::from_child(&readers[0].0), Signal::CONT).unwrap();
        // Acquire: pairs with the Release in the child.
        let seen = || counter.word(1).load(Ordering::Acquire);
        wait_for(|| seen() == writer.ordinal() || !readers[0].is_running(), &at);
        assert!(readers[0].is_running(), "{at}: the reader stopped");
    }
    assert!(counter.word(2).load(Ordering::Acquire) > 0, "seed {seed}: never overrun");
}

/// Unit `index`, whose last frame is an event, so that the number of events identifies the unit.
fn unit(seed: u64, index: u64, out: &mut Vec<u8>) {
    let from = out.len();
    common::unit(seed, index, out);
    let (offset, header, _) = frames(&out[from..]).last().unwrap();
    FrameHeader::new_unstamped(20, flags::LAST, header.lines()).write(&mut out[from + offset..]);
}

/// Events of unit `index`, without making it.
fn events_of(seed: u64, index: u64) -> u64 {
    let r = mix(seed, index);
    let count = 1 + r % 4;
    1 + (0..count - 1).filter(|&f| !mix(r, f).is_multiple_of(11)).count() as u64
}

/// Appends unit `index`; every fourth that is a single frame is written in place.
fn write(writer: &mut RingTapeWriter, seed: u64, index: u64) {
    let mut bytes = Vec::new();
    unit(seed, index, &mut bytes);
    let header = FrameHeader::read(&bytes);
    if header.flags() & flags::LAST != 0 {
        let mut draft = writer.draft(header).unwrap();
        draft.push(&bytes[8..]).unwrap();
        draft.commit();
    } else {
        writer.append(&bytes).unwrap();
    }
}

/// Index of the unit that has this many events before it.
fn index_of(seed: u64, ordinal: u64) -> u64 {
    let (mut index, mut events) = (0, 0);
    while events < ordinal {
        events += events_of(seed, index);
        index += 1;
    }
    assert_eq!(events, ordinal, "no unit has {ordinal} events before it");
    index
}

/// Checks each unit against what must have been written, and the reader's count against the unit's number.
struct Checker {
    seed: u64,
    /// Events before unit `i`, as far as was needed.
    before: Vec<u64>,
    next: Option<u64>,
    /// Events given or lost.
    accounted: u64,
    unit: Vec<u8>,
}

impl Checker {
    fn new(seed: u64, accounted: u64) -> Self {
        Self { seed, before: vec![0], next: None, accounted, unit: Vec::new() }
    }

    fn take(&mut self, reader: &mut RingTapeReader) {
        loop {
            match reader.next() {
                Ok(None) => return,
                Ok(Some(frame)) => {
                    assert!(frame.header.is_at(frame.position));
                    let (header, from) = (frame.header, self.unit.len());
                    self.unit.extend_from_slice(frame.bytes);
                    header.unstamp().write(&mut self.unit[from..]);
                    if header.is_last() {
                        self.whole();
                    }
                }
                Err(Error::Overrun { position, lost_bytes, lost_events, resume_at }) => {
                    assert_eq!(position.plus(lost_bytes), resume_at);
                    // Frames that were given of a unit that was cut off do not count as lost.
                    self.accounted += common::events(&self.unit) + lost_events;
                    assert_eq!(self.accounted, reader.ordinal());
                    self.unit.clear();
                    self.next = None;
                }
                Err(e) => panic!("seed {}: {e}", self.seed),
            }
        }
    }

    fn whole(&mut self) {
        let index = u64::from_le_bytes(self.unit[8..16].try_into().unwrap());
        let seed = self.seed;
        assert!(self.next.is_none_or(|next| next == index), "seed {seed}: unit {index} is not the next");
        let mut want = Vec::new();
        while self.before.len() <= index as usize + 1 {
            let last = self.before.len() - 1;
            self.before.push(self.before[last] + events_of(seed, last as u64));
        }
        unit(seed, index, &mut want);
        assert_eq!(common::events(&want), events_of(seed, index));
        assert!(self.unit == want, "seed {seed}: unit {index} is not as it was written");
        // The given and the lost events, together, are those written before this unit.
        assert_eq!(self.accounted, self.before[index as usize], "seed {seed}: before unit {index}");
        self.accounted = self.before[index as usize + 1];
        self.unit.clear();
        self.next = Some(index + 1);
    }
}

fn wait_for(mut done: impl FnMut() -> bool, what: &str) {
    for turn in 0..2_000_000u32 {
        if done() {
            return;
        }
        if turn > 1000 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    panic!("waited in vain for {what}");
}

fn again(role: &str, path: &Path, seed: u64, counter: &Path) -> Victim {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]);
    command
        .env("UNITAPE_CHILD", role)
        .env("RING", path)
        .env("SEED", seed.to_string())
        .env("COUNTER", counter);
    Victim(command.stdout(Stdio::null()).spawn().unwrap())
}

/// A child that does not outlive the test.
struct Victim(Child);

impl Victim {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counters that the processes share: units committed, events accounted for, overruns.
struct Counter(MmapRaw);

impl Counter {
    fn create(path: &Path) -> Self {
        std::fs::write(path, [0; 4096]).unwrap();
        Self::open(path)
    }

    fn open(path: &Path) -> Self {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self(MmapRaw::map_raw(&file).unwrap())
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 32);
        // SAFETY: the page has 4096 bytes and is aligned; all processes use atomics.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index * 16)) }
    }
}
