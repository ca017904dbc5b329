//! Every system call of the files beside a tape fails once, or from then on: gates, named cursors. The
//! error names the file, what was stored before stays as it was, nothing half made is left, and when the fault is
//! over all continues.
//!
//! Each round lives through a whole use with the n-th call of a kind failing, n growing until none fails any more.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::mount::{Mount, fill};
use common::{ID, append, directory, options, unit};
use unitape_model::Position;
use unitape_tape::faults::{InjectedFault, SystemCall, arm, disarm};
use unitape_tape::{
    Cursor, Error, Gate, GateHandle, GatePolicy, Publication, Reader, StartPosition, Subscription, Writer,
    WriterOptions, verify,
};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EDQUOT: i32 = 122;

/// Faults are the process's, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    disarm();
    guard
}

/// Counts the errors that a life with a fault returns.
struct FaultProbe<'a> {
    at: &'a str,
    /// The files are below this.
    below: &'a Path,
    errors: u32,
}

impl FaultProbe<'_> {
    /// An error of a fault is the system's, and names the file.
    fn hear(&mut self, error: &Error) {
        let path = match error {
            Error::Io { path, .. } | Error::DiskFull { path, .. } | Error::DurabilityFailed { path, .. } => {
                path
            }
            other => panic!("{}: {other}", self.at),
        };
        assert!(path.starts_with(self.below), "{}: {error}", self.at);
        self.errors += 1;
    }

    /// The value of a result, if it was not an error.
    fn good<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|e| self.hear(&e)).ok()
    }
}

/// Lives once with each call of each kind failing, and then looks what is left; gives how many lives met their fault.
fn sweep(
    mut before: impl FnMut(&Path),
    mut live: impl FnMut(&mut FaultProbe<'_>),
    mut after: impl FnMut(&str, &Path),
) -> u64 {
    let mut met = 0;
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
            for nth in 1..500 {
                let at = format!("{} {nth} {fault:?}", call.name());
                let dir = directory();
                let mut probe = FaultProbe { at: &at, below: dir.path(), errors: 0 };
                before(dir.path());
                arm(call, nth, fault);
                live(&mut probe);
                let hits = disarm();
                after(&at, dir.path());
                if hits == 0 {
                    assert_eq!(probe.errors, 0, "{at}: an error without a fault");
                    break;
                }
                met += 1;
                // The others are hints, files that stay a little longer, and segments made ahead in vain, for which
                // the writer tries again when it gets there.
                let matters = matches!(
                    call,
                    SystemCall::MakeDir
                        | SystemCall::Write
                        | SystemCall::Rename
                        | SystemCall::Sync
                        | SystemCall::SyncDir
                );
                assert!(probe.errors > 0 || !matters || !fault.always, "{at}: nobody got an error");
            }
        }
    }
    met
}

fn gated() -> WriterOptions {
    let policy = GatePolicy::Wait { timeout: Duration::from_millis(20) };
    let gate =
        |reader: &str| Gate { reader: reader.into(), ahead_bytes: 8192, policy, holds_when_absent: false };
    WriterOptions { gates: vec![gate("risk"), gate("audit")], ..options(64 << 10, None) }
}

/// A gate that was half made once stayed for ever beside the tape, and one that cannot be made must not let the writer
/// begin without it.
#[test]
fn every_call_of_a_gated_tape_may_fail() {
    let _alone = alone();
    let appended = std::cell::Cell::new(0);
    let live = |probe: &mut FaultProbe<'_>| {
        appended.set(0);
        let Some((mut writer, _)) = probe.good(Writer::open(probe.below, ID, gated())) else { return };
        assert_eq!(writer.gates().len(), 2, "{}: a writer without its gates", probe.at);
        let mut handle = probe.good(GateHandle::attach(probe.below, "risk", Position(0)));
        let mut bytes = Vec::new();
        for i in 0..10 {
            bytes.clear();
            unit(1, i, &mut bytes);
            if probe.good(writer.append(&bytes)).is_none() {
                break;
            }
            appended.set(i + 1);
        }
        if let Some(handle) = &mut handle {
            handle.advance(writer.end());
            assert_eq!(writer.gates()[0].position, writer.end(), "{}", probe.at);
        }
        drop(handle);
        probe.good(writer.close());
    };
    let after = |at: &str, dir: &Path| {
        let (mut writer, recovery) = Writer::open(dir, ID, gated()).expect(at);
        let mut reader = Reader::open(dir, StartPosition::Oldest).expect(at);
        let mut units = 0;
        while let Some(frame) = reader.next().expect(at) {
            units += u64::from(frame.header.is_last());
        }
        assert_eq!((units, reader.position()), (appended.get(), recovery.end_position), "{at}");
        let mut handle = GateHandle::attach(dir, "audit", recovery.end_position).expect(at);
        append(&mut writer, 1, units, units + 5);
        handle.advance(writer.end());
        drop(handle);
        writer.close().expect(at);
        assert!(!dir.join("run/gates").exists(), "{at}: a closed tape leaves no gates");
        assert!(verify(dir).unwrap().is_intact(), "{at}");
    };
    let met = sweep(|_| (), live, after);
    assert!(met > 40, "{met} lives met their fault");
}

/// A cursor whose first store failed half way was no cursor any more, and its subscriber could not come back.
#[test]
fn every_call_of_a_named_subscription_may_fail() {
    let _alone = alone();
    let acknowledged = std::cell::Cell::new(0);
    let named = |dir: &Path| Subscription::open_named(dir, "report", StartPosition::Oldest);
    let before = |dir: &Path| {
        acknowledged.set(0);
        let mut publication = Publication::open(dir, options(4096, None)).unwrap();
        // Each message has one line, so that a position is a number of them.
        (0..100).for_each(|topic| _ = publication.offer(topic, b"x").unwrap());
        publication.close().unwrap();
    };
    let live = |probe: &mut FaultProbe<'_>| {
        for _ in 0..3 {
            let Some(mut subscription) = probe.good(named(probe.below)) else { continue };
            for _ in 0..4 {
                let mut read = 0;
                while read < 7 && probe.good(subscription.next()).flatten().is_some() {
                    read += 1;
                }
                if probe.good(subscription.acknowledge()).is_some() {
                    acknowledged.set(subscription.position().0 / 64);
                }
            }
        }
    };
    let after = |at: &str, dir: &Path| {
        let mut subscription = named(dir).expect(at);
        let next = subscription.next().expect(at).expect(at).message().expect(at).topic;
        assert_eq!(u64::from(next), acknowledged.get(), "{at}");
        assert_eq!(Cursor::names(dir).expect(at), ["report"], "{at}");
    };
    let met = sweep(before, live, after);
    assert!(met > 20, "{met} lives met their fault");
}

/// No room for a gate or a cursor: an error and no signal, what is there continues, and with room again all does.
#[test]
fn a_full_file_system_is_an_error_for_gates_and_cursors() {
    let _alone = alone();
    let Some(disk) = Mount::new("size=256k") else { return };
    let filler = disk.0.path().join("filler");
    let dir = directory();
    // The tape elsewhere, its gates and cursors on the small disk.
    std::fs::create_dir_all(dir.path().join("run")).unwrap();
    for folder in ["gates", "cursors"] {
        std::fs::create_dir(disk.0.path().join(folder)).unwrap();
        symlink(disk.0.path().join(folder), dir.path().join("run").join(folder)).unwrap();
    }
    append(&mut Writer::open(dir.path(), ID, options(64 << 10, None)).unwrap().0, 1, 0, 30);
    let named = |name: &str| Subscription::open_named(dir.path(), name, StartPosition::Oldest).unwrap();
    let mut old = named("old");
    old.acknowledge().unwrap();
    fill(&filler);

    let error = Writer::open(dir.path(), ID, gated()).map(drop).unwrap_err();
    assert!(
        matches!(&error, Error::DiskFull { path, .. } if path.starts_with(dir.path().join("run/gates"))),
        "{error}"
    );
    old.next().unwrap().unwrap();
    old.acknowledge().expect("a cursor that is there has its place");
    let mut new = named("new");
    let error = new.acknowledge().unwrap_err();
    assert!(error.is_disk_full() && error.to_string().contains("run/cursors/new"), "{error}");
    assert_eq!((named("new").position(), named("old").position()), (Position(0), old.position()));

    std::fs::remove_file(&filler).unwrap();
    new.next().unwrap().unwrap();
    new.acknowledge().unwrap();
    assert_eq!(named("new").position(), new.position());
    let (mut writer, _) = Writer::open(dir.path(), ID, gated()).unwrap();
    let mut handle = GateHandle::attach(dir.path(), "risk", writer.end()).unwrap();
    fill(&filler);
    for i in 30..60 {
        append(&mut writer, 1, i, i + 1);
        handle.advance(writer.end());
    }
    drop(handle);
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
}
