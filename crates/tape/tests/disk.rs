//! Space on the disk: what a closed tape occupies, what a writer reserves, and a disk that is really full.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::{Checker, ID, append, content, options};
use unitape_model::{FrameHeader, LINE, flags};
use unitape_tape::{HEADER_PAGE, Writer, info, verify};

/// Bytes of blocks of all files below `dir`, as `du` counts them.
fn occupied(dir: &Path) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        sum += if meta.is_dir() { occupied(&entry.path()) } else { meta.blocks() * 512 };
    }
    sum
}

/// Whether the file system below `dir` can make holes in files.
fn makes_holes(dir: &Path) -> bool {
    let file = fs::File::create(dir.join("probe")).unwrap();
    file.set_len(1 << 20).unwrap();
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, flags, 0, 1 << 20).is_ok()
}

/// A tape of ten messages once occupied 64 MiB after its close. The next writer must reserve the returned space again
/// before it writes, readers that have the file mapped must continue, and no byte may differ for it.
#[test]
fn a_closed_tape_gives_its_tail_back_and_an_opened_one_reserves_it() {
    const SEGMENT_BYTES: u64 = 4 << 20;
    let one = tempfile::tempdir().unwrap();
    let (mut writer, _) = Writer::open(one.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 8, 0, 500);
    writer.close().unwrap();
    for hot in [false, true] {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        if !makes_holes(other.path()) {
            eprintln!("the file system of {} makes no holes: nothing to see here", other.path().display());
            return;
        }
        let place = other.path().join("hot");
        let options = options(SEGMENT_BYTES, hot.then_some(place.as_path()));
        let segment = dir.path().join("segments/0000000000000000.seg");
        let mut reader = None;
        let mut to = 0;
        // Nothing at all, one unit (the page after the header), and more.
        for step in [0, 1, 99, 400] {
            let (mut writer, _) = Writer::open(dir.path(), ID, options.clone()).unwrap();
            if !hot {
                assert!(fs::metadata(&segment).unwrap().blocks() * 512 >= HEADER_PAGE + SEGMENT_BYTES);
            }
            append(&mut writer, 8, to, to + step);
            to += step;
            let end = writer.end().0;
            writer.close().unwrap();
            let used = occupied(dir.path());
            assert!(used < end + (64 << 10), "hot {hot}: {end} bytes of tape occupy {used}");
            assert_eq!(fs::metadata(&segment).unwrap().len(), HEADER_PAGE + SEGMENT_BYTES);
            let reader = reader.get_or_insert_with(|| Checker::new(dir.path(), 8));
            let caught = (0..100_000).any(|_| reader.catch_up() == to);
            assert!(caught, "hot {hot}: the reader saw {} of {to}", reader.next);
            let report = verify(dir.path()).unwrap();
            assert!(report.is_intact(), "{:?}", report.problems);
            // Looking at it must not fill the holes, as reading them in shared memory would.
            assert_eq!(occupied(dir.path()), used);
            assert!(info(dir.path()).unwrap().disk_bytes <= used);
        }
        let (a, b) = (content(one.path()), content(dir.path()));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        assert!(a.iter().all(|(name, bytes)| *bytes == b[name]), "hot {hot}");
    }
}

/// A hot tape that was closed exactly at a segment's end once stood still for good: the new recorder waited for
/// the next segment before it said how far the tape is recorded, and the writer waited for that.
#[test]
fn a_hot_tape_closed_at_a_segments_end_goes_on() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = other.path().join("hot");
    let options = options(4096, Some(&place));
    let mut line = [0; LINE];
    FrameHeader::new_unstamped(20, flags::LAST, 1).write(&mut line);
    for _ in 0..2 {
        let (mut writer, _) = Writer::open(dir.path(), ID, options.clone()).unwrap();
        for _ in 0..9 * 4096 / LINE {
            writer.append(&line).unwrap();
        }
        assert!(writer.end().0.is_multiple_of(4096));
        writer.close().unwrap();
    }
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Direct writes and writes through the page cache must give the same bytes, wherever steps begin and end. A reader
/// of the disk's copy must never meet the part of it that is not whole.
#[test]
fn a_recorder_far_behind_writes_the_same_tape() {
    const SEGMENT_BYTES: u64 = 4 << 20;
    let (dir, other, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), common::directory());
    let place = other.path().join("hot");
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, Some(&place))).unwrap();
    let mut next = 0;
    for step in 0..60 {
        // Bursts of a few frames and of megabytes, and pauses in which the recorder catches up.
        let burst = if step % 3 == 0 { common::mix(9, step) % 6000 } else { common::mix(9, step) % 40 };
        append(&mut writer, 9, next, next + burst);
        next += burst;
        if step % 4 == 1 {
            std::thread::sleep(std::time::Duration::from_millis(common::mix(10, step) % 8));
        }
    }
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
    let (mut writer, _) = Writer::open(one.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 9, 0, next);
    writer.close().unwrap();
    let (a, b) = (content(one.path()), content(dir.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    assert!(a.iter().all(|(name, bytes)| *bytes == b[name]));
}
