//! Messages of a tape about hot segments that are not its own, and the adoption of these by a tape that was moved.

mod common;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Checker, ID, append, content, directory, options};
use unitape_tape::{
    Backing, Error, HotNotice, StartPosition, Writer, WriterOptions, adopt_hot, forget_hot, hot_leftovers,
    hot_notice, info, verify,
};

const SEGMENT: u64 = 64 << 10;

fn hot_options() -> WriterOptions {
    WriterOptions { backing: Backing::Hot { dir: None, window_segments: 4 }, ..options(SEGMENT, None) }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success(), "cp -r");
}

fn hot_of(tape: &Path) -> PathBuf {
    fs::read_to_string(tape.join("run/hot")).unwrap().trim_end().into()
}

/// A tape whose writer has died, with 900 units of which not all are on the disk.
fn dead_tape(tape: &Path) -> PathBuf {
    let (mut writer, _) = Writer::open(tape, ID, hot_options()).unwrap();
    append(&mut writer, 9, 0, 900);
    let hot = hot_of(tape);
    drop(writer);
    hot
}

/// Another file system is a copy and a removal: the identity is another one, and what was in memory alone would be lost
/// without a word.
#[test]
fn a_dead_tape_that_was_moved_is_refused_until_its_memory_is_adopted() {
    let base = directory();
    let (tape, moved) = (base.path().join("tape"), base.path().join("moved"));
    let hot = dead_tape(&tape);
    copy(&tape, &moved);
    // As long as it is there, it is the one that has them.
    let notice = HotNotice::Copy { hot: hot.clone(), tape: fs::canonicalize(&tape).unwrap() };
    assert_eq!(hot_notice(&moved).unwrap(), Some(notice));
    let error = adopt_hot(&moved).unwrap_err().to_string();
    assert!(error.contains("which is there"), "{error}");
    let full = fs::canonicalize(&tape).unwrap();
    fs::remove_dir_all(&tape).unwrap();

    assert!(hot_leftovers().iter().any(|left| left.hot_dir == hot && left.tape == full && left.bytes > 0));
    let orphan = HotNotice::Orphan { hot: hot.clone(), tape: Some(full.clone()) };
    assert_eq!(hot_notice(&moved).unwrap(), Some(orphan.clone()));
    assert!(verify(&moved).unwrap().problems.iter().any(|problem| problem.problem == orphan.to_string()));
    let before = content(&moved);
    for backing in [Backing::File, hot_options().backing] {
        let error =
            Writer::open(&moved, ID, WriterOptions { backing, ..hot_options() }).map(drop).unwrap_err();
        assert!(matches!(&error, Error::HotElsewhere { notice, .. } if **notice == orphan), "{error}");
    }
    let same = |name: &str| content(&moved).get(name) == before.get(name);
    assert!(same("run/hot") && same("run/hot.mark") && same("durable"));
    assert_eq!(adopt_hot(&moved).unwrap(), hot);
    // Once more is no mistake: the first time may have been interrupted.
    assert_eq!(adopt_hot(&moved).unwrap(), hot);
    assert_eq!(hot_notice(&moved).unwrap(), None);
    assert_eq!(Checker::new(&moved, 9).catch_up(), 900);
    let (mut writer, recovery) = Writer::open(&moved, ID, hot_options()).unwrap();
    assert_eq!(recovery.hot_notice, None);
    append(&mut writer, 9, 900, 1000);
    writer.close().unwrap();
    assert!(!hot.exists());
    assert_eq!(Checker::new(&moved, 9).catch_up(), 1000);
    assert!(verify(&moved).unwrap().is_intact());
}

/// Two copies of a tape that is gone: the first that adopts the memory has it.
#[test]
fn only_one_adopts() {
    let base = directory();
    let (tape, first, second) =
        (base.path().join("tape"), base.path().join("first"), base.path().join("second"));
    let hot = dead_tape(&tape);
    copy(&tape, &first);
    copy(&tape, &second);
    fs::remove_dir_all(&tape).unwrap();
    adopt_hot(&first).unwrap();
    let error = adopt_hot(&second).unwrap_err().to_string();
    assert!(error.contains("which is there") && error.contains("first"), "{error}");
    let error = forget_hot(&first).unwrap_err();
    assert!(matches!(error, Error::Option(_)), "they are its own now: {error}");
    assert_eq!(forget_hot(&second).unwrap(), hot);
    let error = forget_hot(&second).unwrap_err();
    assert!(matches!(error, Error::Option(_)), "{error}");
    let (writer, recovery) = Writer::open(&second, ID, hot_options()).unwrap();
    assert!(!recovery.was_closed && recovery.hot_notice.is_none());
    writer.close().unwrap();
    Writer::open(&first, ID, hot_options()).unwrap().0.close().unwrap();
    let (all, part) = (Checker::new(&first, 9).catch_up(), Checker::new(&second, 9).catch_up());
    // The recorder may have been fast.
    assert!(all == 900 && part <= 900, "{all} {part}");
    assert!(!hot.exists() && verify(&first).unwrap().is_intact() && verify(&second).unwrap().is_intact());
}

/// A copy says that it is one, to who opens it.
#[test]
fn a_copy_says_so_in_its_recovery() {
    let base = directory();
    let (tape, copied) = (base.path().join("tape"), base.path().join("copy"));
    let (mut writer, recovery) = Writer::open(&tape, ID, hot_options()).unwrap();
    assert_eq!(recovery.hot_notice, None);
    append(&mut writer, 9, 0, 100);
    let hot = hot_of(&tape);
    // Its first step renames a file, which `cp` would look for in vain.
    while writer.recorded() < writer.end() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    copy(&tape, &copied);
    let (other, recovery) = Writer::open(&copied, ID, hot_options()).unwrap();
    let notice = HotNotice::Copy { hot: hot.clone(), tape: fs::canonicalize(&tape).unwrap() };
    assert_eq!(recovery.hot_notice, Some(notice));
    assert_ne!(info(&copied).unwrap().hot_dir, Some(hot.clone()));
    // It has a directory of its own now, and the original's is nobody else's to name.
    let named = Backing::Hot { dir: Some(hot.clone()), window_segments: 4 };
    let third = base.path().join("third");
    let error =
        Writer::open(&third, ID, WriterOptions { backing: named, ..hot_options() }).map(drop).unwrap_err();
    assert!(matches!(&error, Error::UnsafeHot { path, .. } if *path == hot), "{error}");
    other.close().unwrap();
    append(&mut writer, 9, 100, 200);
    writer.close().unwrap();
    // The original is closed: what the copy named is gone, and it is a copy all the same.
    assert_eq!(Checker::new(&tape, 9).catch_up(), 200);
}

/// Makes the state that an earlier version left: no marks, and a name that says for which path it was made.
fn early(tape: &Path, default_name: bool) -> PathBuf {
    let hot = dead_tape(tape);
    fs::remove_file(hot.join("hot.mark")).unwrap();
    fs::remove_file(tape.join("run/hot.mark")).unwrap();
    let full = fs::canonicalize(tape).unwrap();
    let of_path = format!("unitape-{ID}-{:08x}", crc32c::crc32c(full.as_os_str().as_bytes()));
    let name = if default_name { of_path } else { format!("early-{of_path}") };
    let named = hot.parent().unwrap().join(name);
    fs::rename(&hot, &named).unwrap();
    fs::write(tape.join("run/hot"), format!("{}\n", named.display())).unwrap();
    named
}

/// A tape of an earlier version whose writer has died is opened with all that was committed; unitape removes nothing in
/// a directory without its mark.
#[test]
fn a_dead_tape_of_an_earlier_version_is_opened_whole() {
    for (default_name, backing) in
        [(true, Backing::File), (true, hot_options().backing), (false, hot_options().backing)]
    {
        let base = directory();
        let tape = base.path().join("tape");
        let hot = early(&tape, default_name);
        assert_eq!(Checker::new(&tape, 9).catch_up(), 900);
        let before = content(&hot);
        let (mut writer, recovery) =
            Writer::open(&tape, ID, WriterOptions { backing, ..hot_options() }).unwrap();
        assert_eq!(recovery.hot_notice, Some(HotNotice::Early { hot: hot.clone() }));
        append(&mut writer, 9, 900, 1500);
        assert_eq!(Checker::new(&tape, 9).catch_up(), 1500);
        writer.close().unwrap();
        assert!(content(&hot) == before, "it stays as it was");
        assert_eq!(Checker::new(&tape, 9).catch_up(), 1500);
        assert!(verify(&tape).unwrap().is_intact());
        fs::remove_dir_all(hot).unwrap();
    }
}

/// A copied or moved tape of an earlier version: the name of the hot directory is of another path, so it is not
/// opened without a word.
#[test]
fn a_copy_of_a_dead_tape_of_an_earlier_version_is_refused() {
    let base = directory();
    let (tape, copied) = (base.path().join("tape"), base.path().join("copy"));
    let hot = early(&tape, true);
    copy(&tape, &copied);
    let before = content(&hot);
    let error = Writer::open(&copied, ID, hot_options()).map(drop).unwrap_err();
    let orphan = HotNotice::Orphan { hot: hot.clone(), tape: None };
    assert!(matches!(&error, Error::HotElsewhere { notice, .. } if **notice == orphan), "{error}");
    assert!(content(&hot) == before);
    fs::remove_dir_all(&tape).unwrap();
    assert_eq!(adopt_hot(&copied).unwrap(), hot);
    Writer::open(&copied, ID, hot_options()).unwrap().0.close().unwrap();
    assert_eq!(Checker::new(&copied, 9).catch_up(), 900);
    assert!(!hot.exists());
}

/// A tape directory is removed, and one that is made in its place has nothing of it, though the file system may give the
/// same inode number again.
#[test]
fn a_tape_in_the_place_of_another_begins_with_nothing() {
    let base = tempfile::tempdir().unwrap();
    let tape = base.path().join("tape");
    let hot = dead_tape(&tape);
    let saved = base.path().join("saved");
    copy(&tape, &saved);
    fs::remove_dir_all(&tape).unwrap();
    let (writer, recovery) = Writer::open(&tape, ID, hot_options()).unwrap();
    assert!(recovery.was_created && recovery.end_position.0 == 0 && recovery.hot_notice.is_none());
    assert_ne!(hot_of(&tape), hot);
    writer.close().unwrap();
    assert!(hot.exists(), "it may still be brought onto a tape");
    // The copy is put back under the old name.
    fs::remove_dir_all(&tape).unwrap();
    copy(&saved, &tape);
    let error = Writer::open(&tape, ID, hot_options()).map(drop).unwrap_err();
    assert!(matches!(error, Error::HotElsewhere { .. }), "{error}");
    adopt_hot(&tape).unwrap();
    Writer::open(&tape, ID, hot_options()).unwrap().0.close().unwrap();
    let mut checker = Checker::new(&tape, 9);
    assert_eq!((checker.catch_up(), hot.exists()), (900, false));
    let mut reader = unitape_tape::Reader::open(&tape, StartPosition::End).unwrap();
    assert!(reader.next().unwrap().is_none());
}
