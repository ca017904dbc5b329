//! Copies of a tape that is in use, or whose writer has died: the shared memory of the original is nobody else's. A
//! copy once removed it, or wrote into it; and whatever `run/hot` named lost its files.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Checker, ID, append, content, directory, options};
use unitape_tape::{Backing, Reader, StartPosition, Writer, WriterOptions, info, verify};

const SEGMENT: u64 = 64 << 10;
const SEED: u64 = 77;
/// The seed of what the copies write, to distinguish it from what the original writes.
const OTHER_SEED: u64 = 78;

/// Options of a hot tape whose directory is under `/dev/shm`, as the commands have it.
fn hot_options() -> WriterOptions {
    WriterOptions { backing: Backing::Hot { dir: None, window_segments: 4 }, ..options(SEGMENT, None) }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(done.success(), "cp -r");
}

fn wait_recorded(writer: &Writer) {
    let since = Instant::now();
    while writer.recorded() < writer.end() {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is recorded");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The directory that a tape in use names.
fn hot_of(tape: &Path) -> PathBuf {
    fs::read_to_string(tape.join("run/hot")).unwrap().trim_end().into()
}

/// Units on a tape whose first `to` are the original's.
fn own_and_other(tape: &Path, to: u64) -> (u64, u64) {
    let mut own = Checker::new(tape, SEED);
    while own.next < to && own.step() {}
    let mut other = Checker::new(tape, OTHER_SEED);
    other.reader = own.reader;
    (own.next, other.catch_up())
}

/// While the original runs: a copy that is opened in files removed the shared memory of the original, and what came
/// later never reached it; a hot one wrote into it.
#[test]
fn a_copy_of_a_running_tape_leaves_it_alone() {
    for backing in [Backing::File, Backing::Hot { dir: None, window_segments: 4 }] {
        let base = directory();
        let (tape, copied) = (base.path().join("tape"), base.path().join("copy"));
        let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
        append(&mut writer, SEED, 0, 300);
        wait_recorded(&writer);
        let mut recorder = Checker::new(&tape, SEED);
        copy(&tape, &copied);
        let (mut other, recovery) =
            Writer::open(&copied, ID, WriterOptions { backing: backing.clone(), ..hot_options() }).unwrap();
        let had = {
            let mut checker = Checker::new(&copied, SEED);
            checker.catch_up()
        };
        assert_eq!((had, recovery.was_closed), (300, false), "{backing:?}");
        append(&mut other, OTHER_SEED, 0, 200);
        append(&mut writer, SEED, 300, 900);
        append(&mut other, OTHER_SEED, 200, 300);
        assert_eq!(recorder.catch_up(), 900, "{backing:?}: a reader of the original misses what came later");
        assert_eq!(own_and_other(&copied, had), (300, 300), "{backing:?}: the copy");
        assert!(backing == Backing::File || hot_of(&tape) != hot_of(&copied));
        other.close().unwrap();
        writer.close().unwrap();
        assert_eq!(Checker::new(&tape, SEED).catch_up(), 900, "{backing:?}");
        assert_eq!(own_and_other(&copied, had), (300, 300), "{backing:?}");
        for dir in [&tape, &copied] {
            let report = verify(dir).unwrap();
            assert!(report.is_intact(), "{backing:?} {}: {:?}", dir.display(), report.problems);
        }
    }
}

/// A reader of a copy read on in the shared memory of the original: events that are not on its tape.
#[test]
fn a_reader_of_a_copy_sees_the_copy() {
    let base = directory();
    let (tape, copied) = (base.path().join("tape"), base.path().join("copy"));
    let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    append(&mut writer, SEED, 0, 200);
    wait_recorded(&writer);
    let end = writer.end();
    copy(&tape, &copied);
    append(&mut writer, SEED, 200, 900);
    let mut checker = Checker::new(&copied, SEED);
    assert_eq!(checker.catch_up(), 200, "events of the original");
    assert!(!checker.reader.wait(Duration::from_millis(20)).unwrap());
    assert_eq!(checker.reader.lag().unwrap().bytes, 0);
    let found = info(&copied).unwrap();
    assert_eq!((found.end_position, found.hot_dir, found.writer), (end, None, None));
    let mut at_end = Reader::open(&copied, StartPosition::End).unwrap();
    assert_eq!((at_end.position(), at_end.next().unwrap().is_none()), (end, true));
    assert!(info(&tape).unwrap().hot_dir.is_some());
    let report = verify(&copied).unwrap();
    // Nothing of it was flushed, so nothing vouches for it; nothing else is wrong.
    assert!(report.problems.iter().all(|p| p.problem.starts_with("unverified")), "{report:?}");
    writer.close().unwrap();
}

/// The original has died: its shared memory is what only it has, and two copies were opened before it.
#[test]
fn copies_of_a_tape_whose_writer_died_leave_its_memory_alone() {
    let base = directory();
    let tape = base.path().join("tape");
    let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    append(&mut writer, SEED, 0, 300);
    wait_recorded(&writer);
    copy(&tape, &base.path().join("first"));
    append(&mut writer, SEED, 300, 700);
    let end = writer.end();
    drop(writer);
    copy(&tape, &base.path().join("second"));
    let before = content(&hot_of(&tape));
    for (name, backing) in [("first", Backing::File), ("second", hot_options().backing)] {
        let copied = base.path().join(name);
        let (mut other, _) = Writer::open(&copied, ID, WriterOptions { backing, ..hot_options() }).unwrap();
        let had = Checker::new(&copied, SEED).catch_up();
        assert!(had >= 300, "{name}: {had}");
        append(&mut other, OTHER_SEED, 0, 100);
        other.close().unwrap();
        assert_eq!(own_and_other(&copied, had), (had, 100), "{name}");
        assert!(verify(&copied).unwrap().is_intact(), "{name}");
    }
    assert!(content(&hot_of(&tape)) == before, "the shared memory of the original");
    let (writer, recovery) = Writer::open(&tape, ID, hot_options()).unwrap();
    assert_eq!(recovery.end_position, end, "all that was committed");
    writer.close().unwrap();
    assert_eq!(Checker::new(&tape, SEED).catch_up(), 700);
}

/// The files of a copy come one after the other: the file that says how far the tape is durable may be newer than the
/// segments. The original has all of it, so the copy ends where its own units end.
#[test]
fn a_copy_that_was_torn_ends_where_its_units_end() {
    let base = directory();
    let (tape, copied) = (base.path().join("tape"), base.path().join("copy"));
    let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    append(&mut writer, SEED, 0, 200);
    writer.wait_durable(writer.end(), Duration::from_secs(60)).unwrap();
    copy(&tape, &copied);
    append(&mut writer, SEED, 200, 900);
    writer.wait_durable(writer.end(), Duration::from_secs(60)).unwrap();
    fs::copy(tape.join("durable"), copied.join("durable")).unwrap();
    let (mut other, recovery) = Writer::open(&copied, ID, hot_options()).unwrap();
    assert_eq!(recovery.end_position, other.end());
    append(&mut other, OTHER_SEED, 0, 300);
    other.close().unwrap();
    assert_eq!(own_and_other(&copied, 200), (200, 300));
    assert!(verify(&copied).unwrap().is_intact());
    append(&mut writer, SEED, 900, 1000);
    writer.close().unwrap();
    assert_eq!(Checker::new(&tape, SEED).catch_up(), 1000);
    assert!(verify(&tape).unwrap().is_intact());
}

/// A tape that was given another name is the same tape: what was in shared memory is found.
#[test]
fn a_tape_that_was_renamed_keeps_its_memory() {
    let base = directory();
    let (tape, renamed) = (base.path().join("tape"), base.path().join("renamed"));
    let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    append(&mut writer, SEED, 0, 700);
    drop(writer);
    fs::rename(&tape, &renamed).unwrap();
    assert_eq!(Checker::new(&renamed, SEED).catch_up(), 700);
    let hot = hot_of(&renamed);
    Writer::open(&renamed, ID, hot_options()).unwrap().0.close().unwrap();
    assert_eq!(Checker::new(&renamed, SEED).catch_up(), 700);
    assert!(!hot.exists());
}

/// `run/hot` names a directory of somebody else's: with files of such names as ours, among them a tape's segments.
#[test]
fn what_is_not_ours_is_not_removed() {
    let base = directory();
    let (tape, victim) = (base.path().join("tape"), base.path().join("victim"));
    // Segments of the same tape, as a copy of it has them.
    let (mut writer, _) = Writer::open(&tape, ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, SEED, 0, 500);
    writer.close().unwrap();
    fs::create_dir(&victim).unwrap();
    copy(&tape.join("segments"), &victim.join("segments"));
    let plain = victim.join("plain");
    fs::create_dir(&plain).unwrap();
    for name in ["0000000000000000.seg", "spare-parts", "prepared-speech.txt", "making-of", "notes"] {
        fs::write(plain.join(name), name).unwrap();
    }
    let before = content(&victim);
    let mut next = 500;
    for named in [plain, victim.join("segments")] {
        for backing in [Backing::File, hot_options().backing] {
            fs::create_dir_all(tape.join("run")).unwrap();
            fs::write(tape.join("run/hot"), format!("{}\n", named.display())).unwrap();
            let opened = Writer::open(&tape, ID, WriterOptions { backing, ..hot_options() });
            assert!(content(&victim) == before, "{}: opened", named.display());
            let (mut writer, _) = opened.unwrap();
            append(&mut writer, SEED, next, next + 50);
            next += 50;
            writer.close().unwrap();
            assert!(content(&victim) == before, "{}: closed", named.display());
        }
    }
    assert_eq!(Checker::new(&tape, SEED).catch_up(), next);
    assert!(verify(&tape).unwrap().is_intact());
}

/// Hot segments of a private tape could be read by every user of the machine.
#[test]
fn a_private_tape_has_private_hot_segments() {
    let base = directory();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (mode, wanted) in [(0o700, 0o700), (0o750, 0o750), (0o755, 0o755), (0o777, 0o755)] {
        let tape = base.path().join(format!("{mode:o}"));
        fs::create_dir(&tape).unwrap();
        fs::set_permissions(&tape, fs::Permissions::from_mode(mode)).unwrap();
        let (writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
        let hot = hot_of(&tape);
        assert_eq!(fs::metadata(&hot).unwrap().permissions().mode() & 0o777, wanted, "of {mode:o}");
        writer.close().unwrap();
        assert!(!hot.exists());
    }
    // The directory above the tape is private.
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let tape = base.path().join("inside");
    fs::create_dir(&tape).unwrap();
    fs::set_permissions(&tape, fs::Permissions::from_mode(0o755)).unwrap();
    let (writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    assert_eq!(fs::metadata(hot_of(&tape)).unwrap().permissions().mode() & 0o777, 0o700);
    writer.close().unwrap();
}

/// A directory that another user, or everybody, may write to: that user could put a segment of his own in it.
#[test]
fn a_directory_of_another_user_is_refused() {
    let base = directory();
    let hot = base.path().join("hot");
    let with = || options(SEGMENT, Some(&hot));
    fs::create_dir(&hot).unwrap();
    fs::set_permissions(&hot, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Writer::open(&base.path().join("open"), ID, with()).map(drop).unwrap_err().to_string();
    assert!(error.contains("mode 777") && error.contains("chmod"), "{error}");
    // A link, though to a directory that is safe.
    fs::remove_dir(&hot).unwrap();
    let safe = base.path().join("safe");
    fs::create_dir(&safe).unwrap();
    std::os::unix::fs::symlink(&safe, &hot).unwrap();
    let error = Writer::open(&base.path().join("linked"), ID, with()).map(drop).unwrap_err().to_string();
    assert!(error.contains("is a link"), "{error}");
    fs::remove_file(&hot).unwrap();
    fs::create_dir(&hot).unwrap();
    if std::os::unix::fs::chown(&hot, Some(65534), Some(65534)).is_err() {
        eprintln!("only the system's user can give a directory away: the rest of this test sees nothing");
        return;
    }
    let error = Writer::open(&base.path().join("foreign"), ID, with()).map(drop).unwrap_err().to_string();
    assert!(error.contains("user 65534"), "{error}");
    assert_eq!(fs::read_dir(&hot).unwrap().count() + fs::read_dir(&safe).unwrap().count(), 0);
}

/// After the writer has died, another user has put a directory in the place of the hot one, with everything in it.
#[test]
fn a_hot_directory_that_was_replaced_is_neither_read_nor_written() {
    let base = directory();
    let tape = base.path().join("tape");
    let (mut writer, _) = Writer::open(&tape, ID, hot_options()).unwrap();
    append(&mut writer, SEED, 0, 300);
    drop(writer);
    let (hot, away) = (hot_of(&tape), base.path().join("away"));
    copy(&hot, &away);
    fs::remove_dir_all(&hot).unwrap();
    copy(&away, &hot);
    let all = || Command::new("chown").args(["-R", "65534:65534"]).arg(&hot).status();
    if !all().is_ok_and(|done| done.success()) {
        eprintln!("only the system's user can give a directory away: this test sees nothing");
        fs::remove_dir_all(&hot).unwrap();
        return;
    }
    let before = content(&hot);
    for backing in [Backing::File, hot_options().backing] {
        let opened = Writer::open(&tape, ID, WriterOptions { backing, ..hot_options() });
        let error = opened.map(drop).unwrap_err().to_string();
        assert!(error.contains("user 65534"), "{error}");
    }
    // A reader trusts it no more than the writer.
    let _ = Reader::open(&tape, StartPosition::Oldest).map(drop).unwrap_err();
    assert!(content(&hot) == before);
    fs::remove_dir_all(&hot).unwrap();
}
