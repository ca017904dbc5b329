//! Processes that were forked from one that has a tape open. The child has the same open files: when it dropped a writer,
//! the lock of its parent was gone, and it waited for threads that it does not have.

mod common;

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Checker, ID, append, directory, options};
use unitape_tape::{
    Backing, Error, Gate, GateHandle, GatePolicy, Publication, Reader, RecorderLocation, StartPosition,
    Writer, WriterOptions, verify,
};

const SEGMENT: u64 = 64 << 10;

/// Runs `act` in a forked child; its exit code, or none if it hung or died.
fn in_child(act: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child runs `act` in the only thread that it has, and ends without returning into the test.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_or(99);
        // SAFETY: ends the process at once, without a word to what the parent has set up.
        unsafe { libc::_exit(code) };
    }
    let since = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is an integer of this frame, and the process is a child of this one.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        if since.elapsed() > Duration::from_secs(180) {
            // SAFETY: as above; a signal to a child of this process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test of its own: what forks does so in a process with nothing else in it.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_FORK") else { return };
    let dir = std::path::PathBuf::from(std::env::var("DIR").unwrap());
    match role.as_str() {
        "writer" => {
            for hot in [false, true] {
                for way in ["drop", "close", "append", "claim", "draft"] {
                    writer_in_child(&dir.join(format!("{way}-{hot}")), hot, way);
                }
            }
        }
        "reader" => reader_in_child(&dir),
        "gate" => gate_in_child(&dir),
        other => panic!("no role {other}"),
    }
}

fn run(role: &str) {
    let dir = directory();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]);
    let out = command.env("UNITAPE_FORK", role).env("DIR", dir.path()).output().unwrap();
    let (out, printed) = (out.status, String::from_utf8_lossy(&out.stderr).into_owned());
    assert!(out.success(), "{printed}");
}

fn writer_in_child(dir: &Path, hot: bool, way: &str) {
    let at = format!("{way}, hot {hot}");
    let backing =
        if hot { Backing::Hot { dir: None, window_segments: 4 } } else { options(SEGMENT, None).backing };
    let options = || WriterOptions { backing: backing.clone(), ..options(SEGMENT, None) };
    let (writer, _) = Writer::open(dir, ID, options()).unwrap();
    let mut held = Some(Publication::from(writer));
    append(held.as_mut().unwrap().writer(), 5, 0, 100);
    let end = held.as_ref().unwrap().end();
    let refused = |result: Result<(), Error>| i32::from(result.is_ok());
    let code = in_child(|| {
        let mut publication = held.take().unwrap();
        let mut unit = Vec::new();
        common::unit(6, 0, &mut unit);
        let code = match way {
            "drop" => 0,
            "close" => return refused(publication.close()),
            "append" => refused(publication.writer().append(&unit).map(drop)),
            "claim" => refused(publication.writer().claim(64, |_| (0, 0), 1).map(drop)),
            _ => refused(publication.offer(1, b"not ours").map(drop)),
        };
        drop(publication);
        code
    });
    assert_eq!(code, Some(0), "{at}: the child");
    let mut publication = held.take().unwrap();
    assert_eq!(publication.end(), end);
    let error = Writer::open(dir, ID, options()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{at}: the lock of the parent is gone: {error}");
    append(publication.writer(), 5, 100, 1000);
    publication.close().unwrap();
    assert_eq!(Checker::new(dir, 5).catch_up(), 1000, "{at}");
    assert!(verify(dir).unwrap().is_intact(), "{at}");
}

/// A child that uses its parent's writer gets an error, and changes nothing.
#[test]
fn a_child_cannot_close_its_parents_tape() {
    run("writer");
}

fn reader_in_child(dir: &Path) {
    let hot = dir.join("hot");
    let tape = dir.join("tape");
    // A recorder of this process would have the segment as well.
    let options = WriterOptions { recorder: RecorderLocation::External, ..options(SEGMENT, Some(&hot)) };
    let (mut writer, _) = Writer::open(&tape, ID, options).unwrap();
    append(&mut writer, 5, 0, 10);
    let mut reader = Some(Reader::open(&tape, StartPosition::Oldest).unwrap());
    reader.as_mut().unwrap().next().unwrap().unwrap();
    let code = in_child(|| {
        drop(reader.take());
        0
    });
    assert_eq!(code, Some(0), "the child");
    // The writer asks for this lock before it uses the memory for another segment.
    let segment = File::open(hot.join(format!("{:016x}.seg", 0))).unwrap();
    assert!(segment.try_lock().is_err(), "the segment that the reader has may be written again");
    drop(reader);
    assert!(segment.try_lock().is_ok());
    drop(segment);
    writer.close().unwrap();
}

/// A reader's lock keeps the memory that it reads; a child that dropped its copy gave the parent's away.
#[test]
fn a_child_does_not_let_go_of_its_parents_segment() {
    run("reader");
}

fn gate_in_child(dir: &Path) {
    let gate = Gate {
        reader: "risk".into(),
        ahead_bytes: 1 << 20,
        policy: GatePolicy::Wait { timeout: Duration::from_millis(1) },
        holds_when_absent: false,
    };
    let (mut writer, _) =
        Writer::open(dir, ID, WriterOptions { gates: vec![gate], ..options(SEGMENT, None) }).unwrap();
    let mut handle = Some(GateHandle::attach(dir, "risk", writer.end()).unwrap());
    append(&mut writer, 5, 0, 10);
    let code = in_child(|| {
        drop(handle.take());
        0
    });
    assert_eq!(code, Some(0), "the child");
    assert!(writer.gates()[0].alive, "the reader is there, and the writer would not wait for it");
    assert!(handle.as_ref().unwrap().is_heeded());
    drop(handle);
    assert!(!writer.gates()[0].alive);
    writer.close().unwrap();
}

/// The reader of a gate forked, and the writer continued as if it had died.
#[test]
fn a_child_does_not_leave_its_parents_gate() {
    run("gate");
}
