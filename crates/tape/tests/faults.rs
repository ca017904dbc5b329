//! Every system call of a tape fails once, or from then on: what is reported committed stays readable, what is
//! reported durable is on the disk, errors name the file, and the next opening continues.
//!
//! A run opens a tape, appends over several segments, waits for durability, closes, opens again and appends
//! more; it is done again with the first call of a kind failing, the second, and so on until none fails any
//! more. Some places are left out, chosen by `UNITAPE_SEED`; with `UNITAPE_FAULT_ROUNDS` it continues with other seeds.

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::process::{Account, SEED, number};
use common::{Checker, ID, append, content, cut, directory, events, mix, options, unit};
use unitape_model::Position;
use unitape_tape::faults::{InjectedFault, SystemCall, arm, calls, disarm, fired};
use unitape_tape::{
    Backing, DurabilityHandle, Error, HEADER_PAGE, Reader, RecorderLocation, RemovalOptions, RepairOptions,
    StartPosition, SyncPolicy, TapeOrigin, Writer, WriterOptions, record, repair, verify,
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
    /// A file tape that also takes claims by calls.
    Bulk,
    Hot,
    /// Hot, recorded by another thread that calls `record` as a process of its own would.
    Outside,
}

fn options_of(kind: Kind, place: &Path) -> WriterOptions {
    let mut options = options(SEGMENT_BYTES, matches!(kind, Kind::Hot | Kind::Outside).then_some(place));
    options.in_bulk = kind == Kind::Bulk;
    options.prefault_bytes = 4096;
    options.recorder_wait = Duration::from_millis(60);
    if let Backing::Hot { window_segments, .. } = &mut options.backing {
        *window_segments = 4;
    }
    if kind == Kind::Outside {
        options.recorder = RecorderLocation::External;
    }
    options
}

/// The results and errors that a run returned.
#[derive(Debug, Default)]
struct ErrorTally {
    /// Units committed, and whether the append after them failed (and left nothing, by the contract).
    committed: u64,
    durable: Position,
    errors: Vec<String>,
}

impl ErrorTally {
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
fn live(dir: &Path, options: &WriterOptions, seed: u64, tally: &mut ErrorTally, wait: Duration) -> bool {
    let (mut writer, _) = match Writer::open(dir, ID, options.clone()) {
        Ok(opened) => opened,
        Err(e) => {
            tally.error(&e);
            return false;
        }
    };
    let mut bytes = Vec::new();
    for step in 0..36 {
        bytes.clear();
        unit(seed, tally.committed, &mut bytes);
        if options.in_bulk && step % 2 == 0 {
            match writer.claim(bytes.len() as u64, |limit| cut(&bytes, limit), events(&bytes)) {
                Ok(mut claim) => {
                    // Without its bytes the claim is lost, and the tape must be opened again.
                    if let Err(e) = claim.write_frames(&bytes) {
                        tally.error(&e);
                        return false;
                    }
                    claim.publish();
                    tally.committed += 1;
                    continue;
                }
                Err(e) => tally.error(&e),
            }
        }
        let mut tries = 0;
        while let Err(e) = writer.append(&bytes) {
            tally.error(&e);
            tries += 1;
            if tries > 2 || tally.errors.len() > 20 {
                return false;
            }
        }
        tally.committed += 1;
        if step % 17 == 8 {
            match writer.wait_durable(writer.end(), wait) {
                Ok(()) => tally.durable = tally.durable.max(writer.end()),
                Err(e) => tally.error(&e),
            }
        }
        tally.durable = tally.durable.max(writer.durable());
    }
    let end = writer.end();
    match writer.close() {
        Ok(()) => {
            tally.durable = end;
            true
        }
        Err(e) => {
            tally.error(&e);
            false
        }
    }
}

/// Two lives with a fault, then one without: everything must be there.
fn round(kind: Kind, call: SystemCall, nth: u64, fault: InjectedFault, seed: u64) -> u64 {
    let at = format!("{kind:?} {} {nth} {fault:?} seed {seed}", call.name());
    let (dir, other) = (directory(), directory());
    let options = options_of(kind, &other.path().join("hot"));
    let mut tally = ErrorTally::default();
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
                    if record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &stop).is_err() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            });
        }
        arm(call, nth, fault);
        let wait = Duration::from_millis(60);
        for _ in 0..2 {
            live(dir.path(), &options, seed, &mut tally, wait);
            if bystander.is_none() && dir.path().join("tape.toml").exists() && fired() > 0 {
                bystander = Some(Reader::open(dir.path(), StartPosition::Oldest));
            }
        }
        disarm()
    });
    // Every reader finds the bytes on the disk now, also one that was there all the time.
    let end = committed_end(dir.path());
    assert!(end >= tally.durable, "{at}: durable {} of {end:?} {tally:?}", tally.durable);
    if dir.path().join("tape.toml").exists() {
        let found = Checker::new(dir.path(), seed).catch_up();
        assert!(found >= tally.committed, "{at}: {found} units are there, reported {tally:?}");
        let mut durable = DurabilityHandle::open(dir.path()).unwrap();
        assert!(durable.position().unwrap() <= end, "{at}");
    }
    let (mut writer, recovery) =
        Writer::open(dir.path(), ID, options_of(Kind::File, other.path())).expect(&at);
    assert_eq!(recovery.end_position, end, "{at}: {tally:?}");
    let found = Checker::new(dir.path(), seed).catch_up();
    assert_eq!(found, tally.committed, "{at}: {tally:?}");
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
    assert_eq!(report.unit_count, found + 10, "{at}");
    if hits > 0
        && fault.always
        && matches!(call, SystemCall::Sync | SystemCall::SyncDir | SystemCall::Open | SystemCall::Write)
    {
        assert!(!tally.errors.is_empty(), "{at}: nobody got an error");
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
    match Reader::open(dir, StartPosition::Oldest) {
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
        Kind::Bulk => "file, in bulk",
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
    for call in SystemCall::ALL {
        let errno = match call {
            SystemCall::Allocate | SystemCall::Write | SystemCall::SetLen => ENOSPC,
            SystemCall::Open | SystemCall::Rename => EROFS,
            SystemCall::MakeDir => EDQUOT,
            _ => EIO,
        };
        let mut faults = vec![InjectedFault::once(errno), InjectedFault::always(errno)];
        if call == SystemCall::Write {
            faults.push(InjectedFault { writes_half_first: true, ..InjectedFault::once(ENOSPC) });
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
fn every_call_of_a_tape_in_bulk_may_fail() {
    sweep(Kind::Bulk);
}

#[test]
fn every_call_of_a_hot_tape_may_fail() {
    sweep(Kind::Hot);
}

#[test]
fn every_call_of_a_tape_with_its_own_recorder_may_fail() {
    sweep(Kind::Outside);
}

/// The recorder fails after it has finished a segment and before it begins the next: the dictionary log still has every
/// definition of that segment, and counts it.
#[test]
fn a_recorder_that_fails_between_two_segments_counts_all_definitions() {
    let _alone = alone();
    for seed in [21, 22, 23] {
        for nth in 33..38 {
            round(Kind::Outside, SystemCall::Open, nth, InjectedFault::once(EROFS), seed);
        }
    }
}

/// The flush fails between two segments, and the tape ends there: every closed segment is durable to its end.
#[test]
fn a_flush_that_fails_between_two_segments_comes_again_before_the_close() {
    let _alone = alone();
    for nth in 36..44 {
        round(Kind::Hot, SystemCall::Open, nth, InjectedFault::once(EROFS), 1_795_434_357);
    }
}

/// A flush that failed once made the next one succeed over pages that were never written. A file tape must not call
/// them durable, must say so as long as it is open, must continue otherwise, and must repair it when it is reopened.
#[test]
fn a_failed_flush_of_a_file_tape_lasts_until_it_is_opened_anew() {
    let _alone = alone();
    let (dir, other) = (directory(), directory());
    let options = options_of(Kind::File, other.path());
    let (mut writer, _) = Writer::open(dir.path(), ID, options.clone()).unwrap();
    append(&mut writer, 1, 0, 20);
    let first = writer.end();
    writer.wait_durable(first, LONG).unwrap();
    append(&mut writer, 1, 20, 60);
    let end = writer.end();
    arm(SystemCall::Sync, 1, InjectedFault::once(EIO));
    let mut reader = Reader::open(dir.path(), StartPosition::End).unwrap();
    for error in [
        writer.wait_durable(end, LONG).unwrap_err(),
        // The fault is over; a flush would succeed now, and lie.
        writer.wait_durable(end, LONG).unwrap_err(),
        reader.wait_durable(end, LONG).unwrap_err(),
    ] {
        let Error::DurabilityFailed { path, durable, source, consequence: what } = &error else {
            panic!("{error}")
        };
        assert!(path.starts_with(dir.path()) && source.raw_os_error() == Some(EIO), "{error}");
        assert!(*durable == first && what.contains("reopen the tape"), "{error}");
    }
    assert_eq!(disarm(), 1);
    let failure = writer.durability_failure().unwrap();
    assert!(failure.lasting && failure.errno == EIO);
    assert_eq!(reader.durability().unwrap().failure().unwrap(), Some(failure));
    assert_eq!(reader.durability().unwrap().failures().unwrap(), 1);
    // The appending process gets the error once, then it can append again; what was durable stays so.
    let (mut bytes, mut errors) = (Vec::new(), 0);
    for i in 60..100 {
        bytes.clear();
        unit(1, i, &mut bytes);
        while let Err(e) = writer.append(&bytes) {
            assert!(matches!(e, Error::DurabilityFailed { .. }), "{e}");
            errors += 1;
        }
    }
    assert!(errors <= 1, "reported {errors} times");
    writer.wait_durable(first, Duration::ZERO).unwrap();
    assert_eq!((writer.durable(), Checker::new(dir.path(), 1).catch_up()), (first, 100));
    let error = writer.close().unwrap_err();
    assert!(matches!(error, Error::DurabilityFailed { .. }), "{error}");
    let (mut writer, recovery) = Writer::open(dir.path(), ID, options).unwrap();
    assert!(!recovery.was_closed && recovery.cut_bytes == 0);
    append(&mut writer, 1, 100, 120);
    writer.wait_durable(writer.end(), LONG).unwrap();
    assert_eq!(writer.durability_failure(), None);
    reader.wait_durable(writer.end(), LONG).unwrap();
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 1).catch_up(), 120);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// The kernel may drop pages that it could not write. The bytes that then come back from the disk are not the
/// committed ones, and must not be mistaken for them.
#[test]
fn pages_lost_after_a_failed_flush_are_damage() {
    use std::os::unix::fs::FileExt;
    let _alone = alone();
    let (dir, other) = (directory(), directory());
    let options = options_of(Kind::File, other.path());
    let (mut writer, _) = Writer::open(dir.path(), ID, options.clone()).unwrap();
    append(&mut writer, 2, 0, 20);
    let durable = writer.end();
    writer.wait_durable(durable, LONG).unwrap();
    append(&mut writer, 2, 20, 120);
    let end = writer.end();
    arm(SystemCall::Sync, 1, InjectedFault::once(EIO));
    writer.wait_durable(end, LONG).unwrap_err();
    disarm();
    while writer.recorded() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    // Some words in the middle of a frame, in a segment that is neither the first nor the last.
    let index = (durable.0 / SEGMENT_BYTES + end.0 / SEGMENT_BYTES) / 2;
    assert!(index > durable.0 / SEGMENT_BYTES && index < end.0 / SEGMENT_BYTES);
    let path = dir.path().join(format!("segments/{index:016x}.seg"));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 40], 4096 + 16).unwrap();
    let error = Writer::open(dir.path(), ID, options.clone()).unwrap_err();
    assert!(
        matches!(&error, Error::Damage { path: p, offset: 4096, reason } if *p == path && reason.contains("flush")),
        "{error}"
    );
    // Nothing was touched; cut on request, and only then.
    let cut = WriterOptions { truncate_damage: true, ..options };
    let (writer, recovery) = Writer::open(dir.path(), ID, cut).unwrap();
    assert!(
        recovery.end_position >= durable && recovery.end_position.0 <= index * SEGMENT_BYTES,
        "{recovery:?}"
    );
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
    assert!(Checker::new(dir.path(), 2).catch_up() >= 20);
}

/// The recorder of a hot tape still has what a failed flush lost: it must write it into new files, and those who
/// wait must not notice more than the time it takes; with its own process as well.
#[test]
fn a_failed_flush_of_a_hot_tape_is_made_good_from_memory() {
    use std::os::unix::fs::MetadataExt;
    let _alone = alone();
    for call in [SystemCall::Sync, SystemCall::SyncDir] {
        for nth in 1..6 {
            let (dir, other) = (directory(), directory());
            let mut options = options_of(Kind::Hot, &other.path().join("hot"));
            // No fault here is one of time.
            options.recorder_wait = LONG;
            let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
            append(&mut writer, 3, 0, 12);
            writer.wait_durable(writer.end(), LONG).unwrap();
            let segment = dir.path().join(format!("segments/{:016x}.seg", writer.end().0 / SEGMENT_BYTES));
            let before = std::fs::metadata(&segment).unwrap().ino();
            append(&mut writer, 3, 12, 16);
            arm(call, nth, InjectedFault::once(EIO));
            writer.wait_durable(writer.end(), LONG).unwrap();
            let failed = disarm() > 0;
            if failed && call == SystemCall::Sync && nth == 1 {
                assert_ne!(
                    std::fs::metadata(&segment).unwrap().ino(),
                    before,
                    "it is still the file that failed"
                );
            }
            let mut durability = DurabilityHandle::open(dir.path()).unwrap();
            assert_eq!(durability.failures().unwrap(), u64::from(failed));
            assert_eq!((durability.failure().unwrap(), writer.durability_failure()), (None, None));
            append(&mut writer, 3, 16, 60);
            writer.close().unwrap();
            assert_eq!(Checker::new(dir.path(), 3).catch_up(), 60);
            assert!(verify(dir.path()).unwrap().is_intact());
        }
    }
}

/// Much is written by a thread of its own, several pieces at a time. One of them fails, or only half of it is written:
/// those after it must not count before it has been written again.
#[test]
fn a_piece_that_fails_on_its_way_is_written_again() {
    const SEGMENT_BYTES: u64 = 4 << 20;
    let _alone = alone();
    let frames = 20_000;
    let (dir, other) = (directory(), directory());
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 5, 0, frames);
    let end = writer.end();
    writer.close().unwrap();
    let wanted = segments(dir.path());
    assert!(end.0 > 2 * SEGMENT_BYTES, "{end:?}");
    let half = InjectedFault { writes_half_first: true, ..InjectedFault::once(EIO) };
    let mut met = 0;
    for (call, fault) in [
        (SystemCall::Write, InjectedFault::once(EIO)),
        (SystemCall::Write, half),
        (SystemCall::Sync, InjectedFault::once(EIO)),
    ] {
        for nth in (1..40).step_by(3) {
            let (dir, place) = (directory(), other.path().join(format!("hot-{nth}")));
            let mut options = options(SEGMENT_BYTES, Some(&place));
            options.recorder = RecorderLocation::External;
            options.recorder_wait = LONG;
            let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
            append(&mut writer, 5, 0, frames);
            // It begins when all is there.
            arm(call, nth, fault);
            let sync = SyncPolicy::Every { bytes: 1 << 20, interval: LONG };
            let outcome = record(dir.path(), sync, RemovalOptions::default(), &AtomicBool::new(true));
            let failed = disarm() > 0;
            met += u64::from(failed);
            // A flush that fails is made good by the recorder itself.
            assert!(outcome.is_ok() || failed && call == SystemCall::Write, "{call:?} {nth}: {outcome:?}");
            record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(true))
                .unwrap();
            writer.close().unwrap();
            assert!(verify(dir.path()).unwrap().is_intact(), "{call:?} {nth} {fault:?}");
            assert_eq!(segments(dir.path()), wanted, "{call:?} {nth} {fault:?}");
        }
    }
    assert!(met > 20, "{met} calls failed");
}

/// All segments of a tape, with their bytes.
fn segments(dir: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(dir.join("segments")).unwrap().map(|entry| entry.unwrap());
    let mut all: Vec<_> = entries.map(|e| (e.file_name(), std::fs::read(e.path()).unwrap())).collect();
    all.sort();
    all
}

/// A recorder process; its environment says what is to fail.
#[test]
fn a_recorder_process_makes_a_failed_flush_good() {
    if let Ok(dir) = std::env::var("RECORD") {
        // Ended by the test that started it, or by a fault.
        let ended =
            record(Path::new(&dir), SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(false));
        eprintln!("recorder: {ended:?}");
        return;
    }
    let _alone = alone();
    let (dir, other) = (directory(), directory());
    let mut options = options_of(Kind::Outside, &other.path().join("hot"));
    options.recorder_wait = LONG;
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_recorder_process_makes_a_failed_flush_good", "--nocapture"]);
    command.env("RECORD", dir.path()).env("UNITAPE_FAULTS", "sync:2:5").stdout(std::process::Stdio::null());
    let mut recorder = command.spawn().unwrap();
    append(&mut writer, 4, 0, 10);
    let since = std::time::Instant::now();
    let mut to = 10;
    let mut failures = DurabilityHandle::open(dir.path()).unwrap();
    while failures.failures().unwrap() == 0 {
        assert!(since.elapsed() < LONG && recorder.try_wait().unwrap().is_none(), "no flush has failed");
        append(&mut writer, 4, to, to + 5);
        to += 5;
        // Until it has started there is none.
        let _ = writer.wait_durable(writer.end(), LONG);
    }
    // Whether it has made it good by then or not: another one has all of it to do.
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    append(&mut writer, 4, to, to + 5);
    to += 5;
    recorder = command.env_remove("UNITAPE_FAULTS").spawn().unwrap();
    while writer.wait_durable(writer.end(), LONG).is_err() {
        assert!(since.elapsed() < LONG && recorder.try_wait().unwrap().is_none(), "nobody makes it good");
    }
    assert!(failures.failures().unwrap() > 0 && failures.failure().unwrap().is_none());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 4).catch_up(), to);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Everybody who waits once would have flushed for himself: what they wait for is flushed together.
#[test]
fn many_waiters_share_a_flush() {
    let _alone = alone();
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(1 << 20, None)).unwrap();
    append(&mut writer, 4, 0, 10);
    writer.wait_durable(writer.end(), LONG).unwrap();
    let ends: Vec<Position> =
        (10..34u64).map(|i| (append(&mut writer, 4, i, i + 1), writer.end()).1).collect();
    disarm();
    std::thread::scope(|s| {
        for &end in &ends {
            let dir = dir.path();
            s.spawn(move || {
                let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
                reader.wait_durable(end, LONG).unwrap();
                assert!(reader.durable().unwrap() >= end);
            });
        }
    });
    assert!(writer.durable() >= *ends.last().unwrap());
    // A flush is of the segment, its checksums, the definitions and the durable position: four calls.
    assert!(
        calls(SystemCall::Sync) <= 3 * 4,
        "{} flushes for {} waiters",
        calls(SystemCall::Sync),
        ends.len()
    );
    writer.close().unwrap();
}

/// A repair that stopped in the middle of a cut left half a cut. The next one mistook it for damage before the cut: it cut
/// once more, at the start of the segment. After any last call, the next repair must complete the same cut.
#[test]
fn a_repair_that_stops_at_any_call_completes_its_cut() {
    let _alone = alone();
    let options = RepairOptions { apply: true, truncates: true, ..RepairOptions::default() };
    // In the middle of a segment, at the start of the tape, and after a segment that is whole.
    for (wounded, offset) in [(2, HEADER_PAGE + 2048), (0, HEADER_PAGE), (3, HEADER_PAGE)] {
        let damaged = |dir: &Path| {
            let (mut writer, _) = Writer::open(dir, ID, self::options(SEGMENT_BYTES, None)).unwrap();
            append(&mut writer, 3, 0, 40);
            assert!(writer.end().0 > 5 * SEGMENT_BYTES);
            writer.close().unwrap();
            common::writable(&dir.join(format!("segments/{wounded:016x}.seg")))
                .write_all_at(&[0xa5; 256], offset)
                .unwrap();
        };
        let undisturbed = directory();
        damaged(undisturbed.path());
        let whole = repair(undisturbed.path(), &options).unwrap();
        assert!(whole.cut.is_some_and(|cut| cut.is_applied), "{whole:?}");
        assert!(verify(undisturbed.path()).unwrap().is_intact());
        let wanted = without_repairs(undisturbed.path());
        let mut stops = 0;
        for call in SystemCall::ALL {
            for nth in 1.. {
                let dir = directory();
                damaged(dir.path());
                arm(call, nth, InjectedFault::always(EIO));
                let first = repair(dir.path(), &options);
                if disarm() == 0 {
                    break;
                }
                let at = format!("segment {wounded}: {} {nth}: {first:?}", call.name());
                let is_pending = dir.path().join("cut").exists();
                if is_pending {
                    stops += 1;
                    let error = Writer::open(dir.path(), ID, self::options(SEGMENT_BYTES, None)).unwrap_err();
                    assert!(error.to_string().contains("completes the cut"), "{at}: {error}");
                    assert!(!verify(dir.path()).unwrap().is_intact(), "{at}");
                    let dry = repair(dir.path(), &RepairOptions::default()).unwrap();
                    assert!(
                        dry.findings.iter().any(|f| f.problem.contains("killed while it cut")),
                        "{at}: {dry:?}"
                    );
                    assert_eq!(dry.cut, whole.cut, "{at}");
                    // Either copy serves.
                    flip(&dir.path().join("cut"), 512 * (nth % 2) + 40);
                }
                let report = repair(dir.path(), &options).unwrap();
                assert!(report.cut == whole.cut || !is_pending, "{at}: {:?}", report.cut);
                assert!(verify(dir.path()).unwrap().is_intact(), "{at}: {:?}", verify(dir.path()).unwrap());
                let found = without_repairs(dir.path());
                let names = found.keys().chain(wanted.keys()).filter(|n| found.get(*n) != wanted.get(*n));
                let names: Vec<_> = names.collect();
                assert!(names.is_empty(), "{at}: not those of a repair in one go: {names:?}");
                append_after(dir.path());
            }
        }
        assert!(stops > 5, "the cut was stopped only {stops} times");
    }
}

/// An opening at an origin that stopped halfway left a directory that no opening wanted, or a tape that counted its events
/// from 0. After any last call it must be made again, or be a tape.
#[test]
fn an_opening_at_an_origin_that_stops_at_any_call_is_made_again() {
    let _alone = alone();
    let origin =
        TapeOrigin { position: Position(3 * SEGMENT_BYTES + 640), ordinal: 30, definitions: &[], epoch: 7 };
    let other = directory();
    for kind in [Kind::File, Kind::Hot] {
        // A hot directory for each tape: another tape's is refused.
        let options_in = |dir: &Path| options_of(kind, &other.path().join(dir.file_name().unwrap()));
        let open = |dir: &Path| Writer::open_at(dir, ID, &origin, options_in(dir));
        let close = |mut writer: Writer| {
            append(&mut writer, 3, 0, 20);
            writer.close().unwrap();
        };
        let undisturbed = directory();
        close(open(undisturbed.path()).unwrap().0);
        let wanted = content(undisturbed.path());
        let (mut unfinished, mut whole) = (0, 0);
        for call in SystemCall::ALL {
            for nth in 1.. {
                let dir = directory();
                let dir = dir.path();
                arm(call, nth, InjectedFault::always(EIO));
                let first = open(dir).map(|(_, recovery)| recovery);
                if disarm() == 0 {
                    break;
                }
                let at = format!("{kind:?} {} {nth}: {first:?}", call.name());
                let has_record = dir.join("run/origin").exists();
                if dir.join("tape.toml").exists() {
                    whole += 1;
                    let reader = Reader::open(dir, StartPosition::Oldest).unwrap();
                    assert_eq!((reader.position(), reader.ordinal()), (origin.position, 30), "{at}");
                } else if has_record {
                    unfinished += 1;
                    let refused = Writer::open(dir, ID, options_in(dir)).expect_err(&at);
                    assert!(matches!(refused, Error::Unfinished { .. }), "{at}: {refused}");
                }
                let (writer, recovery) = open(dir).expect(&at);
                assert_eq!((recovery.end_position, recovery.ordinal), (origin.position, 30), "{at}");
                assert!(recovery.epoch >= 7, "{at}: {recovery:?}");
                close(writer);
                let found = content(dir);
                let differs = found.keys().chain(wanted.keys()).find(|n| found.get(*n) != wanted.get(*n));
                assert_eq!(differs, None, "{at}");
                assert!(verify(dir).unwrap().is_intact(), "{at}: {:?}", verify(dir).unwrap());
            }
        }
        assert!(unfinished > 10 && whole > 5, "{unfinished} unfinished, {whole} whole");
    }
}

/// `DIR/cut` is followed only where it is of the tape as it is: not where a writer has appended since, and not where no
/// unit ends.
#[test]
fn a_cut_of_another_tape_or_time_is_not_completed() {
    let _alone = alone();
    let options = RepairOptions { apply: true, truncates: true, ..RepairOptions::default() };
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, self::options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 3, 0, 40);
    writer.close().unwrap();
    let segment = dir.path().join(format!("segments/{:016x}.seg", 2));
    common::writable(&segment).write_all_at(&[0xa5; 256], HEADER_PAGE + 2048).unwrap();
    let path = dir.path().join("cut");
    for nth in 1.. {
        arm(SystemCall::Rename, nth, InjectedFault::always(EIO));
        repair(dir.path(), &options).unwrap_err();
        assert!(disarm() > 0);
        if path.exists() {
            break;
        }
    }
    let of_before = std::fs::read(&path).unwrap();
    repair(dir.path(), &options).unwrap();
    append_after(dir.path());
    let refused = |bytes: &[u8], why: &str| {
        std::fs::write(&path, bytes).unwrap();
        let before = without_repairs(dir.path());
        let dry = repair(dir.path(), &RepairOptions::default()).unwrap();
        let report = repair(dir.path(), &options).unwrap();
        for report in [&dry, &report] {
            assert!(
                report.findings.iter().any(|f| f.file_path == path && f.problem.contains(why)),
                "{report:?}"
            );
            assert_eq!(report.cut, None);
        }
        let after = without_repairs(dir.path());
        let changed = before.keys().filter(|name| before.get(*name) != after.get(*name));
        assert_eq!(changed.collect::<Vec<_>>(), ["cut"]);
        assert!(verify(dir.path()).unwrap().is_intact());
    };
    refused(&of_before, "a writer opened the tape in epoch");
    // A cut of an unknown epoch, with the checksum that goes with it.
    let forged = |position: u64| {
        let mut copy = of_before[..512].to_vec();
        copy[32..40].copy_from_slice(&position.to_le_bytes());
        copy[56..64].fill(0);
        let crc = crc32c::crc32c(&copy[..80]);
        copy[80..84].copy_from_slice(&crc.to_le_bytes());
        copy
    };
    refused(&forged(1 << 40), "no unit of the tape ends there");
    refused(&forged(64), "no unit of the tape ends there");
    refused(&forged(65), "at no position");
    refused(&of_before[..511], "does not match its checksum");
    refused(&[], "does not match its checksum");
}

/// The files of the tape, without what repairs keep.
fn without_repairs(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = content(dir);
    files.retain(|name, _| !name.starts_with("repair"));
    files
}

/// Flips a bit of a file.
fn flip(path: &Path, offset: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset as usize] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

/// The next writer appends where the cut is.
fn append_after(dir: &Path) {
    let (mut writer, _) = Writer::open(dir, ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 4, 0, 4);
    writer.close().unwrap();
    assert!(verify(dir).unwrap().is_intact());
}
