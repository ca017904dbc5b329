//! Committed and durable: who may wait for it, what answers, and what a flush costs when many wait.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{ID, append, directory, options};
use unitape_model::Position;
use unitape_tape::{
    Backing, DurabilityHandle, Error, Reader, RecorderLocation, RemovalOptions, StartPosition, SyncPolicy,
    Writer, WriterOptions, info, record,
};

const SEGMENT_BYTES: u64 = 16 << 10;
/// Longer than a machine stays frozen.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(20);

/// Starts the test binary again, to do as `child` says.
fn again(role: &str, dir: &Path, position: Position) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]).stdout(Stdio::null());
    command.env("UNITAPE_CHILD", role).env("DIR", dir).env("POSITION", position.0.to_string());
    command.spawn().unwrap()
}

/// Not a test of its own: what the other processes do.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    let dir = std::path::PathBuf::from(std::env::var("DIR").unwrap());
    let position = Position(std::env::var("POSITION").unwrap().parse().unwrap());
    match role.as_str() {
        "waiter" => {
            let mut reader = Reader::open(&dir, StartPosition::End).unwrap();
            reader.wait_durable(position, LONG).unwrap();
            assert!(reader.durable().unwrap() >= position);
        }
        "recorder" => {
            record(&dir, SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(false)).unwrap()
        }
        other => panic!("no role {other}"),
    }
}

/// A position must never be called durable before it is asked for or due, and once waited for it must be, in
/// the file too, for the writer, a reader of its process and one of another.
#[test]
fn whoever_waits_gets_it_and_nobody_else_is_told_before() {
    for hot in [false, true] {
        let (dir, other) = (tempfile::tempdir().unwrap(), directory());
        let place = other.path().join("hot");
        let options = options(1 << 20, hot.then_some(place.as_path()));
        let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
        assert_eq!(writer.durable(), Position(0));
        let mut next = 0;
        for round in 0..6 {
            append(&mut writer, 3, next, next + 50);
            next += 50;
            let end = writer.end();
            let before = writer.durable();
            assert!(before < end);
            let mut reader = Reader::open(dir.path(), StartPosition::End).unwrap();
            assert_eq!(reader.durable().unwrap(), before, "hot {hot} round {round}");
            match round % 3 {
                0 => writer.wait_durable(end, LONG).unwrap(),
                1 => reader.wait_durable(end, LONG).unwrap(),
                _ => assert!(again("waiter", dir.path(), end).wait().unwrap().success()),
            }
            assert!(writer.durable() >= end);
            assert_eq!(reader.durable().unwrap(), writer.durable());
            assert!(info(dir.path()).unwrap().durable >= end);
        }
        let mut late = DurabilityHandle::open(dir.path()).unwrap();
        let end = writer.end();
        writer.close().unwrap();
        // On a closed tape everything is durable, and there is nobody to ask.
        assert_eq!(late.position().unwrap(), end);
        late.wait(end, Position(0), SHORT).unwrap();
        let beyond = late.wait(Position(end.0 + 64), Position(0), SHORT).unwrap_err();
        assert!(matches!(beyond, Error::BeyondEnd { end: e, .. } if e == end), "{beyond}");
        // The page of the next writer is another one.
        let (mut writer, _) = Writer::open(dir.path(), ID, common::options(1 << 20, None)).unwrap();
        append(&mut writer, 3, next, next + 5);
        late.wait(writer.end(), writer.end(), LONG).unwrap();
        writer.close().unwrap();
    }
}

/// A waiter once would have waited for ever for a position that nobody will make durable.
#[test]
fn what_cannot_become_durable_is_an_error() {
    let (dir, other) = (directory(), directory());
    let options = WriterOptions {
        backing: Backing::Hot { dir: Some(other.path().join("hot")), window_segments: 8 },
        recorder: RecorderLocation::External,
        recorder_wait: SHORT,
        ..options(SEGMENT_BYTES, None)
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    append(&mut writer, 5, 0, 10);
    let end = writer.end();
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let beyond = Position(end.0 + 64);
    for error in
        [writer.wait_durable(beyond, LONG).unwrap_err(), reader.wait_durable(beyond, LONG).unwrap_err()]
    {
        assert!(
            matches!(error, Error::BeyondEnd { position, end: e } if position == beyond && e == end),
            "{error}"
        );
    }
    for error in [writer.wait_durable(end, LONG).unwrap_err(), reader.wait_durable(end, LONG).unwrap_err()] {
        assert!(matches!(error, Error::NoRecorder { durable: Position(0), .. }), "{error}");
    }
    for error in [
        writer.wait_durable(end, Duration::ZERO).unwrap_err(),
        reader.wait_durable(end, Duration::ZERO).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotDurable { wanted, .. } if wanted == end), "{error}");
    }
    // A recorder in a process of its own comes, goes, and comes again: a waiting process sees no difference.
    let mut recorder = again("recorder", dir.path(), end);
    let since = std::time::Instant::now();
    while let Err(e) = writer.wait_durable(end, LONG) {
        // Until it has started, there is none.
        assert!(matches!(e, Error::NoRecorder { .. }) && since.elapsed() < LONG, "{e}");
    }
    append(&mut writer, 5, 10, 20);
    reader.wait_durable(writer.end(), LONG).unwrap();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    append(&mut writer, 5, 20, 30);
    let error = writer.wait_durable(writer.end(), LONG).unwrap_err();
    assert!(
        matches!(error, Error::NoRecorder { durable, .. } if durable == reader.durable().unwrap()),
        "{error}"
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let recorder = s.spawn(|| record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &stop));
        while reader.wait_durable(writer.end(), LONG).is_err() {}
        assert!(writer.durable() >= writer.end());
        // Relaxed: a wish, nothing is read under it.
        stop.store(true, Ordering::Relaxed);
        recorder.join().unwrap().unwrap();
    });
    writer.close().unwrap();
}
