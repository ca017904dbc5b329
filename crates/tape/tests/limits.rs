//! A writer at its limits: a recorder that is behind or away, no permission, no room, other options than last time.

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::mount::{Mount, fill, mount};
use common::{Checker, ID, append, content, directory, options, unit};
use unitape_tape::{
    Backing, DefinitionReader, Error, Reader, RecorderLocation, RemovalOptions, RetentionLimits,
    StartPosition, SyncPolicy, Writer, WriterOptions, info, record, verify,
};

const SEGMENT_BYTES: u64 = 16 << 10;

fn external(place: &Path, window_segments: u32) -> WriterOptions {
    WriterOptions {
        backing: Backing::Hot { dir: Some(place.into()), window_segments },
        recorder: RecorderLocation::External,
        ..options(SEGMENT_BYTES, None)
    }
}

/// Without a recorder shared memory once could fill up without end, or the writer hang: it must say so after the
/// time it was given, take nothing, and continue when a recorder comes.
#[test]
fn a_writer_says_that_the_recorder_is_behind_and_goes_on_when_it_comes() {
    let (dir, other) = (directory(), directory());
    let options =
        WriterOptions { recorder_wait: Duration::from_millis(30), ..external(&other.path().join("hot"), 2) };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let (mut next, mut bytes) = (0, Vec::new());
    let error = loop {
        bytes.clear();
        unit(3, next, &mut bytes);
        match writer.append(&bytes) {
            Ok(_) => next += 1,
            Err(e) => break e,
        }
    };
    let Error::RecorderBehind { recorded, wanted } = error else { panic!("{error}") };
    assert!(recorded.0 == 0 && wanted.0 > writer.end().0 && wanted.0 <= 3 * SEGMENT_BYTES, "{error}");
    assert_eq!(Checker::new(dir.path(), 3).catch_up(), next);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let recorder = s.spawn(|| record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &stop));
        for i in next..next + 2000 {
            bytes.clear();
            unit(3, i, &mut bytes);
            while let Err(e) = writer.append(&bytes) {
                assert!(matches!(e, Error::RecorderBehind { .. }), "{e}");
            }
        }
        // `close` waits for it no longer than its limit.
        let durable = (0..90_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            info(dir.path()).unwrap().durable == writer.end()
        });
        assert!(durable, "the recorder never made the end durable");
        writer.close().unwrap();
        stop.store(true, Ordering::Relaxed);
        recorder.join().unwrap().unwrap();
    });
    assert_eq!(Checker::new(dir.path(), 3).catch_up(), next + 2000);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// A recorder in the writer's own process once ignored the writer's retention options.
#[test]
fn retention_by_option_holds_for_every_place_of_the_recorder() {
    for (hot, outside) in [(false, false), (true, false), (true, true)] {
        let (dir, other) = (directory(), directory());
        let place = other.path().join("hot");
        let mut options =
            if outside { external(&place, 8) } else { options(SEGMENT_BYTES, hot.then_some(&place)) };
        options.retention = RetentionLimits {
            bytes: Some(4 * SEGMENT_BYTES),
            notice_period: Duration::ZERO,
            ..RetentionLimits::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
        let stop = AtomicBool::new(false);
        let end = std::thread::scope(|s| {
            let recorder = outside.then(|| {
                s.spawn(|| record(dir.path(), SyncPolicy::OnClose, RemovalOptions::default(), &stop))
            });
            append(&mut writer, 5, 0, 2000);
            let end = writer.end();
            while writer.recorded() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            writer.close().unwrap();
            stop.store(true, Ordering::Relaxed);
            if let Some(recorder) = recorder {
                recorder.join().unwrap().unwrap();
            }
            end
        });
        let info = info(dir.path()).unwrap();
        let kept = end.0 - info.oldest_position.0;
        assert_eq!(info.end_position, end);
        assert!(
            (4 * SEGMENT_BYTES..6 * SEGMENT_BYTES).contains(&kept),
            "hot {hot} outside {outside}: {kept}"
        );
        let report = verify(dir.path()).unwrap();
        assert!(report.is_intact(), "hot {hot} outside {outside}: {:?}", report.problems);
        let mut definitions = DefinitionReader::open(dir.path()).unwrap();
        let (first, _) = definitions.next().unwrap().unwrap();
        assert!(first < info.oldest_position, "the definitions of removed segments are gone");
    }
}

/// A tape that was not closed, opened with the other backing: nothing may be lost on the way over.
#[test]
fn an_unclean_tape_changes_its_backing() {
    let (dir, other) = (directory(), directory());
    let place = other.path().join("hot");
    let mut to = 0;
    for round in 0..8u64 {
        let hot = round.is_multiple_of(2);
        let (mut writer, recovery) =
            Writer::open(dir.path(), ID, options(SEGMENT_BYTES, hot.then_some(place.as_path()))).unwrap();
        assert!(!recovery.has_rebooted && recovery.was_closed == (round == 0), "round {round}: {recovery:?}");
        assert_eq!(Checker::new(dir.path(), 6).catch_up(), to, "round {round}");
        append(&mut writer, 6, to, to + 100 + 37 * round);
        to += 100 + 37 * round;
        assert_eq!(place.exists(), hot, "round {round}");
        drop(writer);
    }
    Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap().0.close().unwrap();
    let one = directory();
    let (mut writer, _) = Writer::open(one.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 6, 0, to);
    writer.close().unwrap();
    let (a, b) = (content(dir.path()), content(one.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    assert!(a.iter().all(|(name, bytes)| *bytes == b[name]));
}

/// No permission to write: an error that names the file; a closed tape on such a disk can still be read.
#[test]
fn directories_that_cannot_be_written() {
    let dir = directory();
    fs::write(dir.path().join("file"), "x").unwrap();
    let inside = dir.path().join("file/tape");
    let error = Writer::open(&inside, ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if *path == inside), "{error}");
    let Some(disk) = Mount::new("size=4m") else { return };
    let tape = disk.0.path().join("tape");
    let (mut writer, _) = Writer::open(&tape, ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 7, 0, 100);
    writer.close().unwrap();
    assert!(mount(&["-o", "remount,ro"], disk.0.path()));
    let error = Writer::open(&tape, ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(&tape)), "{error}");
    assert_eq!(Checker::new(&tape, 7).catch_up(), 100);
    assert!(verify(&tape).unwrap().is_intact());
    assert!(info(&tape).unwrap().writer.is_none());
}

/// A disk that is really full, of a file tape and under the hot segments: an error (never a signal), everything
/// committed stays, and with room again it continues. A closed tape that gave its tail back says it when it opens.
#[test]
fn a_full_file_system_is_an_error_and_room_makes_it_go_on() {
    for hot in [false, true] {
        let Some(disk) = Mount::new("size=2m") else { return };
        let elsewhere = directory();
        let (tape, place) = if hot {
            (elsewhere.path().join("tape"), Some(disk.0.path().join("hot")))
        } else {
            (disk.0.path().join("tape"), None)
        };
        let options = options(128 << 10, place.as_deref());
        let (mut writer, _) = Writer::open(&tape, ID, options.clone()).unwrap();
        append(&mut writer, 8, 0, 10);
        let filler = disk.0.path().join("filler");
        fill(&filler);
        let (mut next, mut bytes) = (10, Vec::new());
        let error = loop {
            bytes.clear();
            unit(8, next, &mut bytes);
            match writer.append(&bytes) {
                Ok(_) => next += 1,
                Err(e) => break e,
            }
            assert!(next < 100_000, "hot {hot}: the disk never got full");
        };
        let end = writer.end();
        assert!(matches!(error, Error::DiskFull { committed, .. } if committed == end), "hot {hot}: {error}");
        assert_eq!(Checker::new(&tape, 8).catch_up(), next, "hot {hot}");
        fs::remove_file(&filler).unwrap();
        for i in next..next + 100 {
            bytes.clear();
            unit(8, i, &mut bytes);
            // The writer reports once more what a helper met while the disk was full.
            while let Err(e) = writer.append(&bytes) {
                assert!(e.is_disk_full(), "hot {hot}: {e}");
            }
        }
        writer.close().unwrap();
        assert_eq!(Checker::new(&tape, 8).catch_up(), next + 100, "hot {hot}");
        assert!(verify(&tape).unwrap().is_intact());
        fill(&filler);
        let error = Writer::open(&tape, ID, options.clone()).map(drop).unwrap_err();
        assert!(error.is_disk_full(), "hot {hot}: {error}");
        assert_eq!(Checker::new(&tape, 8).catch_up(), next + 100, "hot {hot}");
        fs::remove_file(&filler).unwrap();
        let (mut writer, recovery) = Writer::open(&tape, ID, options).unwrap();
        assert_eq!(Reader::open(&tape, StartPosition::End).unwrap().position(), recovery.end_position);
        append(&mut writer, 8, next + 100, next + 110);
        writer.close().unwrap();
        assert!(verify(&tape).unwrap().is_intact());
    }
}
