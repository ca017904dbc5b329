//! Changes that others make to the files of a tape in use: a segment that is removed under its readers, a lock that a
//! killed recorder has left. Each process continues, or reports the problem and its place. Nobody waits for ever, or
//! reads bytes that are not there.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::process::Victim;
use common::{Checker, ID, append, directory, options, unit};
use unitape_tape::{
    Backing, Error, Reader, RecorderLocation, RemovalOptions, StartPosition, SyncPolicy, Writer,
    WriterOptions, record, verify,
};

const SEGMENT_BYTES: u64 = 16 << 10;
const LONG: Duration = Duration::from_secs(120);

fn segment(dir: &Path, index: u64) -> PathBuf {
    dir.join(format!("segments/{index:016x}.seg"))
}

/// Appends whole units until the tape ends in segment `index`, after its first quarter; gives how many there are.
fn fill(writer: &mut Writer, seed: u64, from: u64, index: u64) -> u64 {
    let mut next = from;
    while writer.end().0 < index * SEGMENT_BYTES + SEGMENT_BYTES / 4 {
        append(writer, seed, next, next + 1);
        next += 1;
    }
    next
}

/// Appends units while the writer now and then gets the error that durability is lost, and continues.
fn append_on(writer: &mut Writer, seed: u64, from: u64, to: u64) {
    let mut bytes = Vec::new();
    for i in from..to {
        bytes.clear();
        unit(seed, i, &mut bytes);
        while let Err(e) = writer.append(&bytes) {
            assert!(matches!(e, Error::DurabilityFailed { .. } | Error::Damage { .. }), "{e}");
        }
    }
}

/// Reads on until the error.
fn met(reader: &mut Reader) -> Error {
    let since = Instant::now();
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => assert!(since.elapsed() < LONG, "the reader waits for what is lost"),
            Err(e) => return e,
        }
    }
}

fn is_missing(error: &Error, path: &Path) -> bool {
    matches!(error, Error::Damage { path: p, reason, .. } if p == path && reason.contains("missing"))
}

/// A finished segment is removed. A reader that has it reads it to its end and continues; a new reader gets an error
/// that names the missing one and can continue after it. The writer notices nothing.
#[test]
fn a_finished_segment_is_removed_under_its_reader() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    let mut next = fill(&mut writer, 1, 0, 3);
    // The recorder is through with it, too.
    writer.wait_durable(writer.end(), LONG).unwrap();
    let mut inside = Checker::new(dir.path(), 1);
    while inside.reader.position().0 < SEGMENT_BYTES + 256 {
        inside.step();
    }
    fs::remove_file(segment(dir.path(), 1)).unwrap();
    assert_eq!(inside.catch_up(), next);
    let mut late = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let error = met(&mut late);
    assert!(is_missing(&error, &segment(dir.path(), 1)), "{error}");
    assert_eq!(late.position().0, SEGMENT_BYTES);
    assert_eq!(late.skip_damage().unwrap().unwrap().0, 2 * SEGMENT_BYTES);
    while late.next().unwrap().is_some() {}
    assert_eq!(late.position(), writer.end());
    let report = verify(dir.path()).unwrap();
    assert!(report.problems.iter().any(|p| p.file_path == segment(dir.path(), 1)), "{:?}", report.problems);
    append(&mut writer, 1, next, next + 50);
    next += 50;
    assert_eq!(inside.catch_up(), next);
    // The oldest one gone is as if retention had removed it.
    fs::remove_file(segment(dir.path(), 0)).unwrap();
    let gone = Reader::open(dir.path(), StartPosition::At(unitape_model::Position(0))).map(drop).unwrap_err();
    assert!(matches!(gone, Error::Retained { oldest, .. } if oldest.0 == 2 * SEGMENT_BYTES), "{gone}");
    drop(writer);
}

/// The segment that is being written is removed. Its bytes would be flushed to a file without a name and be called
/// durable; a reader that comes would wait for ever at the end of the segment before.
#[test]
fn the_segment_of_the_end_is_removed() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    let next = fill(&mut writer, 2, 0, 2);
    let durable = unitape_model::Position(SEGMENT_BYTES);
    writer.wait_durable(durable, LONG).unwrap();
    let mut inside = Checker::new(dir.path(), 2);
    assert_eq!(inside.catch_up(), next);
    let last = segment(dir.path(), 2);
    fs::remove_file(&last).unwrap();
    append_on(&mut writer, 2, next, next + 5);
    let mut next = next + 5;
    assert_eq!(inside.catch_up(), next, "a process that has it open continues to read");
    let end = writer.end();
    let error = writer.wait_durable(end, LONG).unwrap_err();
    assert!(matches!(&error, Error::DurabilityFailed { path, .. } if *path == last), "{error}");
    // The published end is that of the helper thread's last look.
    while Reader::open(dir.path(), StartPosition::Oldest).unwrap().lag().unwrap().bytes < end.0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut late = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let error = met(&mut late);
    assert!(is_missing(&error, &last), "{error}");
    assert_eq!((late.position().0, late.skip_damage().unwrap()), (2 * SEGMENT_BYTES, None));
    let error = Reader::open(dir.path(), StartPosition::End).map(drop).unwrap_err();
    assert!(is_missing(&error, &last), "{error}");
    // The tape continues, and from the next segment on so does the late one.
    while writer.end().0 < 3 * SEGMENT_BYTES + 1024 {
        append_on(&mut writer, 2, next, next + 1);
        next += 1;
    }
    assert_eq!(inside.catch_up(), next);
    assert_eq!(late.skip_damage().unwrap().unwrap().0, 3 * SEGMENT_BYTES);
    while late.next().unwrap().is_some() {}
    assert_eq!(late.position(), writer.end());
    // Frames that were never reported durable are not: the writer reports it once more at its end, and the next one
    // refuses.
    let error = writer.close().unwrap_err();
    assert!(
        matches!(&error, Error::DurabilityFailed { path, .. } | Error::Damage { path, .. } if *path == last),
        "{error}"
    );
    let error = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).map(drop).unwrap_err();
    assert!(is_missing(&error, &last), "{error}");
    // The tape can be cut there, unless a flush had come further before the segment went: what was reported durable
    // is never cut.
    let mark = Reader::open(dir.path(), StartPosition::Oldest).unwrap().durable().unwrap();
    let cut = WriterOptions { truncate_damage: true, ..options(SEGMENT_BYTES, None) };
    match Writer::open(dir.path(), ID, cut) {
        Ok((writer, recovery)) => {
            assert!(
                recovery.end_position.0 <= 2 * SEGMENT_BYTES && recovery.end_position >= mark.max(durable),
                "{recovery:?}"
            );
            writer.close().unwrap();
            assert!(verify(dir.path()).unwrap().is_intact());
        }
        Err(error) => assert!(mark.0 > 2 * SEGMENT_BYTES && is_missing(&error, &last), "{mark:?}: {error}"),
    }
}

/// The segment of the end is removed, and then the writer dies: the next one must not mistake the end of the segment
/// before for the end of the tape.
#[test]
fn the_segment_of_the_end_is_removed_and_the_writer_dies() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    let next = fill(&mut writer, 3, 0, 2);
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    while reader.lag().unwrap().bytes < writer.end().0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    let last = segment(dir.path(), 2);
    let kept = fs::read(&last).unwrap();
    fs::remove_file(&last).unwrap();
    let error = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).map(drop).unwrap_err();
    assert!(is_missing(&error, &last), "{error}");
    // Put back, nothing is lost.
    fs::write(&last, kept).unwrap();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 3, next, next + 5);
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 3).catch_up(), next + 5);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// A hot tape has two of each segment that is being written. Whichever is removed, the other one serves: the recorder
/// once followed its own copy when the hot one went, and the writer waited for it for ever.
#[test]
fn a_hot_tape_survives_the_loss_of_either() {
    for hot_one in [false, true] {
        let (dir, other) = (directory(), directory());
        let hot = other.path().join("hot");
        let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, Some(&hot))).unwrap();
        let mut next = fill(&mut writer, 4, 0, 1);
        let mut inside = Checker::new(dir.path(), 4);
        assert_eq!(inside.catch_up(), next);
        wait_recorded(&writer);
        let gone = if hot_one { hot.join(format!("{:016x}.seg", 1)) } else { segment(dir.path(), 1) };
        fs::remove_file(&gone).unwrap();
        // Long enough that every periodic look has happened.
        for _ in 0..50 {
            append(&mut writer, 4, next, next + 1);
            next += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.wait_durable(writer.end(), LONG).unwrap();
        assert!(segment(dir.path(), 1).exists(), "hot {hot_one}: durable, and not there");
        let mut late = Checker::new(dir.path(), 4);
        for _ in 0..4 {
            let end = writer.end().0;
            let since = Instant::now();
            while inside.reader.position().0 < end || late.reader.position().0 < end {
                inside.catch_up();
                late.catch_up();
                assert!(since.elapsed() < LONG, "hot {hot_one}: a reader stands still");
            }
            let following = writer.end().0 / SEGMENT_BYTES + 1;
            next = fill(&mut writer, 4, next, following);
        }
        writer.close().unwrap();
        assert_eq!(Checker::new(dir.path(), 4).catch_up(), next, "hot {hot_one}");
        assert!(verify(dir.path()).unwrap().is_intact(), "hot {hot_one}");
        assert!(!hot.exists());
    }
}

/// The hot segment is removed and the writer dies: the next one once began a segment of zeros in its place, at whose
/// start every reader stopped.
#[test]
fn a_hot_segment_is_removed_and_the_writer_dies() {
    let (dir, other) = (directory(), directory());
    let hot = other.path().join("hot");
    let options = options(SEGMENT_BYTES, Some(&hot));
    let (mut writer, _) = Writer::open(dir.path(), ID, options.clone()).unwrap();
    let next = fill(&mut writer, 5, 0, 1);
    wait_recorded(&writer);
    let end = writer.end();
    drop(writer);
    fs::remove_file(hot.join(format!("{:016x}.seg", 1))).unwrap();
    let (mut writer, recovery) = Writer::open(dir.path(), ID, options).unwrap();
    assert_eq!(recovery.end_position, end, "all of it was recorded");
    append(&mut writer, 5, next, next + 100);
    assert_eq!(Checker::new(dir.path(), 5).catch_up(), next + 100);
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 5).catch_up(), next + 100);
    assert!(verify(dir.path()).unwrap().is_intact());
}

fn wait_recorded(writer: &Writer) {
    let since = Instant::now();
    while writer.recorded() < writer.end() {
        assert!(since.elapsed() < LONG, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test of its own: a recorder that records until it is killed.
#[test]
fn child() {
    let Ok(dir) = std::env::var("UNITAPE_RECORD") else { return };
    record(Path::new(&dir), SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(false)).unwrap();
}

/// A killed recorder leaves `recorder.lock` behind, with its process id in it. The next recorder takes the lock over,
/// whatever the file says and whichever process has that id now: the lock is the system's, not the file's.
#[test]
fn a_lock_that_a_killed_recorder_left_stops_nobody() {
    let (dir, other) = (directory(), directory());
    let options = WriterOptions {
        backing: Backing::Hot { dir: Some(other.path().join("hot")), window_segments: 4 },
        recorder: RecorderLocation::External,
        recorder_wait: LONG,
        ..options(SEGMENT_BYTES, None)
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let lock = dir.path().join("run/recorder.lock");
    let mut next = 0;
    for left in [None, Some(&b"pid 1\n"[..]), Some(&[0xff; 10_000]), Some(b"")] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture"]).env("UNITAPE_RECORD", dir.path());
        let mut recorder = Victim(command.stdout(Stdio::null()).spawn().unwrap());
        append(&mut writer, 6, next, next + 100);
        next += 100;
        let since = Instant::now();
        while let Err(e) = writer.wait_durable(writer.end(), LONG) {
            // Until it has begun there is none.
            assert!(matches!(e, Error::NoRecorder { .. }) && since.elapsed() < LONG, "{e}");
        }
        let error =
            record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(true))
                .unwrap_err();
        let holder = u64::from(recorder.0.id());
        assert!(matches!(error, Error::Locked { holder: h, .. } if h == holder), "{error}");
        recorder.kill();
        assert!(
            fs::read_to_string(&lock).unwrap().contains(&holder.to_string()),
            "it cleans up, nothing to see"
        );
        if let Some(left) = left {
            fs::write(&lock, left).unwrap();
        }
        // Nobody records now, and a waiting process gets that error.
        append(&mut writer, 6, next, next + 1);
        next += 1;
        let error = writer.wait_durable(writer.end(), LONG).unwrap_err();
        assert!(matches!(error, Error::NoRecorder { .. }), "{error}");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let recorder = s.spawn(|| record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &stop));
        while writer.wait_durable(writer.end(), LONG).is_err() {
            std::thread::yield_now();
        }
        // Relaxed: a wish, nothing is read under it.
        stop.store(true, Ordering::Relaxed);
        recorder.join().unwrap().unwrap();
    });
    drop(writer);
    // A writer with a recorder of its own finds the same file.
    fs::write(&lock, "pid 1\n").unwrap();
    Writer::open(dir.path(), ID, common::options(SEGMENT_BYTES, None)).unwrap().0.close().unwrap();
    assert!(!dir.path().join("run/recorder.lock").exists());
    assert_eq!(Checker::new(dir.path(), 6).catch_up(), next);
    assert!(verify(dir.path()).unwrap().is_intact());
}
