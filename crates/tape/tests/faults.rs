//! Every system call of a tape fails once, or from then on: what is reported committed stays readable, what is
//! reported durable is on the disk, errors name the file, and the next opening goes on.
//!
//! A run opens a tape, appends over several segments, waits for durability, closes, opens again and appends
//! more; it is done again with the first call of a kind failing, the second, and so on until none fails any
//! more. Some places are left out, chosen by `UNITAPE_SEED`; with `UNITAPE_FAULT_ROUNDS` it goes on with other seeds.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::process::{Account, SEED, number};
use common::{Checker, ID, append, directory, mix, options, unit};
use unitape_model::Position;
use unitape_tape::faults::{Call, Fault, arm, disarm, fired};
use unitape_tape::{
    Backing, Durability, Error, Options, Reader, RecorderPlace, Removal, Start, Sync, Writer, record, verify,
};

const SEGMENT_BYTES: u64 = 4096;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EDQUOT: i32 = 122;
const LONG: Duration = Duration::from_secs(300);

/// Faults are the process's, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    disarm();
    guard
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Hot,
    /// Hot, recorded by another thread that calls `record` as a process of its own would.
    Outside,
}

fn options_of(kind: Kind, place: &Path) -> Options {
    let mut options = options(SEGMENT_BYTES, (kind != Kind::File).then_some(place));
    options.prefault_bytes = 4096;
    options.recorder_wait = Duration::from_millis(60);
    if let Backing::Hot { window_segments, .. } = &mut options.backing {
        *window_segments = 4;
    }
    if kind == Kind::Outside {
        options.recorder = RecorderPlace::External;
    }
    options
}

/// What a run was told.
#[derive(Debug, Default)]
struct Told {
    /// Units committed, and whether the append behind them failed (and left nothing, by the contract).
    committed: u64,
    durable: Position,
    errors: Vec<String>,
}

impl Told {
    fn error(&mut self, error: &Error) {
        let text = error.to_string();
        let named = match error {
            Error::Io { .. } | Error::DiskFull { .. } | Error::DurabilityFailed { .. } => {
                text.contains('/') || text.contains("tape-")
            }
            Error::RecorderBehind { .. } | Error::NotDurable { .. } | Error::NoRecorder { .. } => true,
            _ => false,
        };
        assert!(named, "{text}");
        self.errors.push(text);
    }
}

/// One life of a writer: as much of it as the faults allow. False if it ended early.
fn live(dir: &Path, options: &Options, seed: u64, told: &mut Told, wait: Duration) -> bool {
    let (mut writer, _) = match Writer::open(dir, ID, options.clone()) {
        Ok(opened) => opened,
        Err(e) => {
            told.error(&e);
            return false;
        }
    };
    let mut bytes = Vec::new();
    for step in 0..36 {
        bytes.clear();
        unit(seed, told.committed, &mut bytes);
        let mut tries = 0;
        while let Err(e) = writer.append(&bytes) {
            told.error(&e);
            tries += 1;
            if tries > 2 || told.errors.len() > 20 {
                return false;
            }
        }
        told.committed += 1;
        if step % 17 == 8 {
            match writer.wait_durable(writer.end(), wait) {
                Ok(()) => told.durable = told.durable.max(writer.end()),
                Err(e) => told.error(&e),
            }
        }
        told.durable = told.durable.max(writer.durable());
    }
    let end = writer.end();
    match writer.close() {
        Ok(()) => {
            told.durable = end;
            true
        }
        Err(e) => {
            told.error(&e);
            false
        }
    }
}

/// Two lives with a fault, then one without: everything must be there.
fn round(kind: Kind, call: Call, nth: u64, fault: Fault, seed: u64) -> u64 {
    let at = format!("{kind:?} {} {nth} {fault:?} seed {seed}", call.name());
    let (dir, other) = (directory(), directory());
    let options = options_of(kind, &other.path().join("hot"));
    let mut told = Told::default();
    let mut bystander = None;
    let stop = AtomicBool::new(false);
    let hits = std::thread::scope(|s| {
        let _stop = Stop(&stop);
        if kind == Kind::Outside {
            // It has a tape to record from the start; a recorder that fails is started again, as one would be.
            Writer::open(dir.path(), ID, options_of(Kind::File, other.path())).unwrap().0.close().unwrap();
            s.spawn(|| {
                // Relaxed: a wish, nothing is read under it.
                while !stop.load(Ordering::Relaxed) {
                    if record(dir.path(), Sync::OnClose, Removal::default(), &stop).is_err() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            });
        }
        arm(call, nth, fault);
        let wait = Duration::from_millis(60);
        for _ in 0..2 {
            live(dir.path(), &options, seed, &mut told, wait);
            if bystander.is_none() && dir.path().join("tape.toml").exists() && fired() > 0 {
                bystander = Some(Reader::open(dir.path(), Start::Oldest));
            }
        }
        disarm()
    });
    // What is on the disk is what a reader finds now, also one that was there all the time.
    let end = committed_end(dir.path());
    assert!(end >= told.durable, "{at}: durable {} of {end:?} {told:?}", told.durable);
    if dir.path().join("tape.toml").exists() {
        let found = Checker::new(dir.path(), seed).catch_up();
        assert!(found >= told.committed, "{at}: {found} units are there, told {told:?}");
        let mut durable = Durability::open(dir.path()).unwrap();
        assert!(durable.position().unwrap() <= end, "{at}");
    }
    let (mut writer, recovery) =
        Writer::open(dir.path(), ID, options_of(Kind::File, other.path())).expect(&at);
    assert_eq!(recovery.end, end, "{at}: {told:?}");
    let found = Checker::new(dir.path(), seed).catch_up();
    assert_eq!(found, told.committed, "{at}: {told:?}");
    append(&mut writer, seed, found, found + 10);
    writer.wait_durable(writer.end(), LONG).expect(&at);
    if let Some(Ok(mut reader)) = bystander {
        let mut seen = 0;
        for _ in 0..200_000 {
            while let Some(frame) = reader.next().expect(&at) {
                seen += u64::from(frame.header.is_last());
            }
            if seen == found + 10 {
                break;
            }
        }
        assert_eq!(seen, found + 10, "{at}: the reader that was there stopped");
    }
    writer.close().expect(&at);
    let report = verify(dir.path()).unwrap();
    assert!(report.is_intact(), "{at}: {:?}", report.problems);
    assert_eq!(report.units, found + 10, "{at}");
    if hits > 0 && fault.always && matches!(call, Call::Sync | Call::SyncDir | Call::Open | Call::Write) {
        assert!(!told.errors.is_empty(), "{at}: nobody was told");
    }
    hits
}

/// Ends the recorder, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        disarm();
        // Relaxed: a wish, nothing is read under it.
        self.0.store(true, Ordering::Relaxed);
    }
}

fn committed_end(dir: &Path) -> Position {
    match Reader::open(dir, Start::Oldest) {
        Ok(mut reader) => {
            while reader.next_run(1 << 20).unwrap().is_some() {}
            reader.position()
        }
        Err(_) => Position(0),
    }
}

/// Each kind of call fails at many places.
fn sweep(kind: Kind) {
    let _alone = alone();
    let (wanted, mut seed) = (number("UNITAPE_FAULT_ROUNDS", 1), number("UNITAPE_SEED", SEED));
    let backing = match kind {
        Kind::File => "file",
        Kind::Hot => "hot",
        Kind::Outside => "hot, recorder outside",
    };
    let step = match (wanted, kind) {
        (1, Kind::Outside) => 60,
        (1, _) => 25,
        _ => 2,
    };
    let mut account = Account::begin("fault", backing, seed, wanted);
    while account.rounds() < wanted {
        once_through(kind, seed, step, &mut account);
        seed += 1;
    }
}

fn once_through(kind: Kind, seed: u64, step: u64, account: &mut Account) {
    let mut hit = 0;
    for call in Call::ALL {
        let errno = match call {
            Call::Allocate | Call::Write | Call::SetLen => ENOSPC,
            Call::Open | Call::Rename => EROFS,
            Call::MakeDir => EDQUOT,
            _ => EIO,
        };
        let mut faults = vec![Fault::once(errno), Fault::always(errno)];
        if call == Call::Write {
            faults.push(Fault { short: true, ..Fault::once(ENOSPC) });
        }
        for fault in faults {
            let mut nth = 1;
            while nth < 2000 {
                account.round();
                let hits = round(kind, call, nth, fault, seed);
                if hits == 0 {
                    break;
                }
                hit += 1;
                // The first ones are those of opening, each of its own kind.
                nth += if nth <= 2 { 1 } else { 1 + mix(seed, account.rounds()) % (2 * step) };
            }
        }
    }
    assert!(hit > 20, "{kind:?}: {hit} rounds met their fault");
}

#[test]
fn every_call_of_a_file_tape_may_fail() {
    sweep(Kind::File);
}

#[test]
fn every_call_of_a_hot_tape_may_fail() {
    sweep(Kind::Hot);
}

#[test]
fn every_call_of_a_tape_with_its_own_recorder_may_fail() {
    sweep(Kind::Outside);
}
