//! Files that are cut, flipped, foreign, missing or full: a clear error or finding, and the rest stays usable.

mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Checker, ID, append, mix, options, unit, writable};
use unitape_tape::{
    CHECKSUM_SPAN, Error, FORMAT_VERSION, HEADER_PAGE, Reader, RemovalOptions, StartPosition, TapeId, Writer,
    WriterOptions, record, verify,
};

const SEGMENT_BYTES: u64 = 128 << 10;

fn closed(units: u64) -> (tempfile::TempDir, u64) {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 2, 0, units);
    let end = writer.end().0;
    writer.close().unwrap();
    (dir, end)
}

fn segment(dir: &Path, index: u64) -> PathBuf {
    dir.join(format!("segments/{index:016x}.seg"))
}

fn flip(path: &Path, offset: u64, bit: u8) {
    let file = writable(path);
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ bit], offset).unwrap();
}

/// One bit anywhere in a closed tape must be found, at its place.
#[test]
fn every_flipped_bit_is_found() {
    let (dir, end) = closed(3000);
    let segments = end.div_ceil(SEGMENT_BYTES);
    assert!(segments > 4);
    for round in 0..60 {
        let r = mix(11, round);
        let path = segment(dir.path(), r % segments);
        let page = if r.is_multiple_of(5) { r / 7 % 68 } else { HEADER_PAGE + r / 7 % SEGMENT_BYTES };
        let bit = 1 << (r >> 60 & 7);
        flip(&path, page, bit);
        let report = verify(dir.path());
        let found = match &report {
            Ok(report) => report.problems.iter().any(|p| {
                let near = p.offset <= page && page < p.offset + CHECKSUM_SPAN;
                p.file_path == path && (near || page < HEADER_PAGE)
            }),
            Err(_) => false,
        };
        assert!(found, "round {round}: bit {bit} of byte {page} of {path:?}: {report:?}");
        flip(&path, page, bit);
    }
    for (name, at) in [
        ("definitions.log", 18),
        ("definitions.log", 200),
        ("durable", 18),
        ("segments/0000000000000001.crc", 6),
    ] {
        flip(&dir.path().join(name), at, 4);
        assert!(!verify(dir.path()).unwrap().is_intact(), "{name}");
        flip(&dir.path().join(name), at, 4);
    }
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// A file that is shorter than its mapping would be a signal; it must be an error, and the prefix readable.
#[test]
fn a_segment_cut_short_or_missing_is_damage_and_the_prefix_stays() {
    for missing in [false, true] {
        let (dir, _) = closed(3000);
        let path = segment(dir.path(), 2);
        if missing {
            fs::remove_file(&path).unwrap();
        } else {
            writable(&path).set_len(HEADER_PAGE + 4000).unwrap();
        }
        let report = verify(dir.path()).unwrap();
        assert!(report.problems.iter().any(|p| p.file_path == path), "{:?}", report.problems);
        assert!(report.intact_to.0 > SEGMENT_BYTES && report.intact_to.0 <= 2 * SEGMENT_BYTES);
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        let error = loop {
            match reader.next() {
                Ok(frame) => assert!(frame.is_some(), "the reader waits for what is lost"),
                Err(e) => break e,
            }
        };
        assert!(matches!(&error, Error::Damage { path: p, .. } if *p == path), "{error}");
        assert!(reader.position().0 == 2 * SEGMENT_BYTES);
    }
}

/// Durable bytes that are gone must stop the writer, or it would write over what can still be saved.
#[test]
fn the_writer_refuses_a_tape_that_ends_before_its_durable_position() {
    let (dir, end) = closed(3000);
    let last = segment(dir.path(), end / SEGMENT_BYTES);
    let before = fs::read(&last).unwrap();
    let file = writable(&last);
    file.write_all_at(&[0; 64], HEADER_PAGE).unwrap();
    let error = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(
        matches!(&error, Error::Damage { path, offset, .. } if *path == last && *offset == HEADER_PAGE),
        "{error}"
    );
    file.write_all_at(&before[4096..4160], HEADER_PAGE).unwrap();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 2, 3000, 3010);
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 2).catch_up(), 3010);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Without a close nothing is durable: garbage at the end is an error, and cut only when that is asked for.
#[test]
fn garbage_behind_the_end_is_cut_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 2, 0, 50);
    let end = writer.end();
    drop(writer);
    flip(&segment(dir.path(), 0), HEADER_PAGE + end.0 + 2, 1);
    let error = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(matches!(error, Error::Damage { offset, .. } if offset == HEADER_PAGE + end.0), "{error}");
    let cut = WriterOptions { truncate_damage: true, ..options(SEGMENT_BYTES, None) };
    let (writer, recovery) = Writer::open(dir.path(), ID, cut).unwrap();
    assert_eq!(recovery.end_position, end);
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// After a restart of the machine only what checksums vouch for may stay beyond the durable position.
#[test]
fn after_a_reboot_unproven_spans_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 2, 0, 2000);
    let end = writer.end();
    while writer.recorded() < end {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(writer);
    let lock = dir.path().join("run/writer.lock");
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replace("boot ", "boot another-")).unwrap();
    // A page of the second span that never reached the disk.
    let file = writable(&segment(dir.path(), 0));
    file.write_all_at(&[0; 4096], HEADER_PAGE + CHECKSUM_SPAN + 8192).unwrap();
    let (writer, recovery) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    assert!(
        recovery.has_rebooted
            && recovery.end_position.0 <= CHECKSUM_SPAN
            && recovery.end_position.0 > CHECKSUM_SPAN - 4096,
        "{recovery:?}"
    );
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
    assert!(Checker::new(dir.path(), 2).catch_up() > 10);
}

/// Strangers: nothing of theirs may be touched, and the error must say what was met.
#[test]
fn foreign_directories_versions_ids_and_second_writers_are_refused() {
    let (dir, _) = closed(10);
    let error = Writer::open(dir.path(), TapeId(1), options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(matches!(error, Error::ForeignTape { tape_id: ID, .. }), "{error}");
    assert_eq!(common::left_in_run(dir.path()), ["lineage"]);

    let toml = dir.path().join("tape.toml");
    let text = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, text.replace("format = 1", "format = 9")).unwrap();
    for error in [
        Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).map(drop).unwrap_err(),
        Reader::open(dir.path(), StartPosition::Oldest).map(drop).unwrap_err(),
        verify(dir.path()).map(drop).unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::ForeignVersion { version: 9, supported_version: FORMAT_VERSION, .. }),
            "{error}"
        );
    }
    fs::write(&toml, text).unwrap();

    let (_writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    let error = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(
        matches!(error, Error::Locked { holder, .. } if holder == u64::from(std::process::id())),
        "{error}"
    );
    let busy = record(dir.path(), unitape_tape::SyncPolicy::OnClose, RemovalOptions::default(), &true.into())
        .unwrap_err();
    assert!(matches!(busy, Error::Locked { .. }), "{busy}");

    let strange = tempfile::tempdir().unwrap();
    fs::write(strange.path().join("letter.txt"), "dear").unwrap();
    let error = Writer::open(strange.path(), ID, options(SEGMENT_BYTES, None)).unwrap_err();
    assert!(matches!(error, Error::NotATape { .. }), "{error}");
    assert_eq!(fs::read_dir(strange.path()).unwrap().count(), 1);
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Reader::open(empty.path(), StartPosition::Oldest), Err(Error::NotATape { .. })));
    assert!(matches!(verify(&empty.path().join("none")), Err(Error::NotATape { .. })));
    // A file that an earlier build verified as a ring tape.
    let error = verify(&strange.path().join("letter.txt")).unwrap_err();
    assert!(error.to_string().contains("it is a file, and a tape is a directory"), "{error}");
    let (writer, recovery) = Writer::open(empty.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    assert!(recovery.was_created);
    writer.close().unwrap();
    assert!(verify(empty.path()).unwrap().is_intact());
}

/// A full disk: the error says how far the tape goes, everything before stays, and room makes it continue.
#[test]
fn a_full_disk_is_an_error_and_what_is_committed_stays() {
    const ROLE: &str = "UNITAPE_FULL_DISK";
    if std::env::var(ROLE).is_err() {
        // The limit on the size of files is the process's, so it gets one of its own.
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_full_disk_is_an_error_and_what_is_committed_stays", "--nocapture"]);
        assert!(command.env(ROLE, "1").stdout(std::process::Stdio::null()).status().unwrap().success());
        return;
    }
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    ignore_file_size_signal();
    let dir = tempfile::tempdir().unwrap();
    let small = WriterOptions { prefault_bytes: 0, ..options(SEGMENT_BYTES, None) };
    let (mut writer, _) = Writer::open(dir.path(), ID, small).unwrap();
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(SEGMENT_BYTES / 2), maximum: before.maximum }).unwrap();
    let (mut next, mut bytes) = (0, Vec::new());
    let error = loop {
        bytes.clear();
        unit(2, next, &mut bytes);
        match writer.append(&bytes) {
            Ok(_) => next += 1,
            Err(e) => break e,
        }
        assert!(next < 100_000, "the limit was never met");
    };
    let end = writer.end();
    assert!(matches!(error, Error::DiskFull { committed, .. } if committed == end), "{error}");
    assert!(error.to_string().contains("disk full"));
    assert_eq!(Checker::new(dir.path(), 2).catch_up(), next);
    setrlimit(Resource::Fsize, before).unwrap();
    append(&mut writer, 2, next, next + 2000);
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 2).catch_up(), next + 2000);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Gives SIGXFSZ (25 on Linux) a handler that does nothing, so that the system call fails instead.
fn ignore_file_size_signal() {
    signal_hook::flag::register(25, std::sync::Arc::default()).unwrap();
}
