//! A reader compares durable data with their checksums: it reports damage and nothing else, while other processes
//! write, record, close or remove.

mod common;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use common::{ID, append, directory, mix, options, unit, writable};
use unitape_model::Position;
use unitape_tape::{
    CHECKSUM_SPAN, Error, HEADER_PAGE, ReadOptions, Reader, RecorderLocation, RetentionLimits, StartPosition,
    SyncPolicy, Writer, WriterOptions,
};

const SEED: u64 = 77;

/// Reads all there is again and again, from the oldest position or by positions, until `done`; gives how many segments
/// were entered and how many frames looked up.
fn read_again(dir: &Path, segment_bytes: u64, done: &AtomicBool, seed: u64) -> (u64, u64) {
    let (mut segments, mut looked_up) = (0, 0);
    for round in 0.. {
        // Acquire: pairs with the Release of the writer's thread; one more round sees all of it.
        let last = done.load(Ordering::Acquire);
        let mut reader = match Reader::open(dir, StartPosition::Oldest) {
            Ok(reader) => reader,
            Err(Error::Retained { .. }) => continue,
            Err(e) => panic!("{e}"),
        };
        let mut index = u64::MAX;
        let mut seen = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(frame)) => {
                    if frame.position.0 / segment_bytes != index {
                        index = frame.position.0 / segment_bytes;
                        segments += 1;
                    }
                    if mix(seed, frame.position.0 ^ round).is_multiple_of(97) {
                        seen.push((frame.position, crc32c::crc32c(frame.bytes)));
                    }
                }
                Ok(None) | Err(Error::Retained { .. }) => break,
                Err(e) => panic!("{e}"),
            }
        }
        for (position, sum) in seen {
            match reader.frame_at(position) {
                Ok(frame) => assert_eq!(crc32c::crc32c(frame.bytes), sum, "{position}"),
                Err(Error::Retained { .. }) => {}
                Err(e) => panic!("{e}"),
            }
            looked_up += 1;
        }
        assert!(reader.unverified().is_empty(), "{:?}", reader.unverified());
        assert_eq!(reader.damaged().count, 0);
        // On a busy machine the writer is done before much was read; the closed tape gives the rest.
        if last && segments > 400 && looked_up > 100 {
            break;
        }
    }
    (segments, looked_up)
}

/// Follows the tape until `done`; gives how many segments it entered.
fn follow(dir: &Path, segment_bytes: u64, done: &AtomicBool) -> u64 {
    let mut reader = Reader::open(dir, StartPosition::End).unwrap();
    let (mut index, mut segments) = (u64::MAX, 0);
    loop {
        let last = done.load(Ordering::Acquire);
        match reader.next() {
            Ok(Some(frame)) => {
                if frame.position.0 / segment_bytes != index {
                    index = frame.position.0 / segment_bytes;
                    segments += 1;
                }
            }
            Ok(None) if last => break,
            Ok(None) => _ = reader.wait(Duration::from_millis(1)),
            Err(Error::Retained { .. }) => _ = reader.skip_to_oldest().unwrap(),
            Err(e) => panic!("{e}"),
        }
    }
    assert!(reader.unverified().is_empty(), "{:?}", reader.unverified());
    segments
}

/// Joins a thread, and panics with the thread's own message if it panicked.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Stores true when it is dropped, also by a panic: the readers of a writer that failed come to an end.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in the readers.
        self.0.store(true, Ordering::Release);
    }
}

/// Writers that come, go and die, with a recorder that flushes all the time, on small segments of which the oldest are
/// removed; readers that follow, and readers that read all again. No sum may be missed that is still to come, and none
/// believed that is of another moment.
fn nobody_is_alarmed(hot: bool, segment_bytes: u64, units: u64) {
    let (dir, hot_dir) = (directory(), directory());
    let hot = hot.then(|| hot_dir.path().join("hot"));
    let open = || {
        let options = WriterOptions {
            sync_policy: SyncPolicy::Every {
                bytes: 3 * segment_bytes / 2,
                interval: Duration::from_millis(2),
            },
            retention: RetentionLimits {
                bytes: Some(40 * segment_bytes),
                notice_period: Duration::ZERO,
                ..RetentionLimits::default()
            },
            ..options(segment_bytes, hot.as_deref())
        };
        Writer::open(dir.path(), ID, options).unwrap().0
    };
    let mut writer = open();
    append(&mut writer, SEED, 0, 50);
    let done = AtomicBool::new(false);
    let (path, done) = (dir.path(), &done);
    let (end, read) = std::thread::scope(|scope| {
        let again = |n| scope.spawn(move || read_again(path, segment_bytes, done, n));
        let again: Vec<_> = (0..3).map(again).collect();
        let follow = scope.spawn(move || follow(path, segment_bytes, done));
        let set_done = SetOnDrop(done);
        let (mut writer, mut bytes) = (writer, Vec::new());
        for n in 50..units {
            bytes.clear();
            unit(SEED, n, &mut bytes);
            writer.append(&bytes).unwrap();
            if mix(SEED, n).is_multiple_of(211) {
                std::thread::sleep(Duration::from_micros(300));
            }
            if n.is_multiple_of(3_000) {
                // A writer that is dropped dies: nothing is closed. Its recorder has written everything that it had.
                while writer.recorded() < writer.end() {
                    std::thread::sleep(Duration::from_micros(100));
                }
                match n.is_multiple_of(2_000) {
                    true => writer.close().unwrap(),
                    false => drop(writer),
                }
                std::thread::sleep(Duration::from_millis(2));
                writer = open();
            }
        }
        let end = writer.end();
        writer.close().unwrap();
        drop(set_done);
        let read: Vec<_> = again.into_iter().map(join).collect();
        assert!(join(follow) > 0);
        (end, read)
    });
    let turns = end.0 / segment_bytes;
    let entered: u64 = read.iter().map(|(segments, _)| segments).sum();
    let looked_up: u64 = read.iter().map(|(_, frames)| frames).sum();
    let counts = format!("{turns} turns, {entered} segments read, {looked_up} frames looked up");
    assert!(turns >= 100 && entered > 1_000 && looked_up > 100, "{counts}");
    assert!(unitape_tape::verify(path).unwrap().is_intact());
}

#[test]
fn nobody_is_alarmed_by_a_writer_on_files() {
    nobody_is_alarmed(false, 8 << 10, 40_000);
}

#[test]
fn nobody_is_alarmed_by_a_writer_in_memory() {
    nobody_is_alarmed(true, 8 << 10, 40_000);
}

/// Two spans a segment: the durable position is within one of them mostly.
#[test]
fn nobody_is_alarmed_by_a_position_within_a_span() {
    nobody_is_alarmed(false, 128 << 10, 40_000);
    nobody_is_alarmed(true, 128 << 10, 40_000);
}

/// A reader has mapped a hot segment to look up a frame. Before it compares the frame with its checksum, the writer
/// closes, and the next writer fills the segment in another file. The reader compared the old file with the checksums of
/// the new one, and reported damage.
#[test]
fn a_look_up_outlives_the_writer_whose_segment_it_has_mapped() {
    const SEGMENT_BYTES: u64 = 128 << 10;
    let (dir, hot_dir) = (directory(), directory());
    let hot = hot_dir.path().join("hot");
    let open = || Writer::open(dir.path(), ID, options(SEGMENT_BYTES, Some(&hot))).unwrap().0;
    let mut writer = open();
    let positions = append(&mut writer, SEED, 0, 30);
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let sum = crc32c::crc32c(reader.frame_at(positions[20]).unwrap().bytes);
    // A name that a backup has made keeps the reader from seeing at once that the file has lost its own.
    let name = format!("{:016x}.seg", 0);
    std::fs::hard_link(hot.join(&name), hot_dir.path().join(&name)).unwrap();
    writer.close().unwrap();
    let mut writer = open();
    append(&mut writer, SEED, 30, 400);
    assert!(writer.end().0 > CHECKSUM_SPAN);
    writer.wait_durable(writer.end(), Duration::from_secs(180)).unwrap();
    // As in a look-up that has just mapped the segment: the durable position is not known yet.
    reader.set_verify(true);
    assert_eq!(crc32c::crc32c(reader.frame_at(positions[20]).unwrap().bytes), sum);
    writer.close().unwrap();
}

/// A reader has looked up a frame of a closed tape, so it has mapped the segment on the disk. The next writer writes to
/// shared memory, and its frames are not on the disk yet. The reader read them, and could not look them up.
#[test]
fn a_look_up_finds_frames_that_are_not_recorded_yet() {
    let (dir, hot_dir) = (directory(), directory());
    let hot = hot_dir.path().join("hot");
    let (mut writer, _) = Writer::open(dir.path(), ID, options(1 << 20, Some(&hot))).unwrap();
    let old = append(&mut writer, SEED, 0, 30);
    writer.close().unwrap();
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    while reader.next().unwrap().is_some() {}
    reader.frame_at(old[20]).unwrap();
    // Its recorder never comes.
    let options = WriterOptions { recorder: RecorderLocation::External, ..options(1 << 20, Some(&hot)) };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    append(&mut writer, SEED, 30, 40);
    let mut frames = 0;
    while let Some(frame) = reader.next().unwrap() {
        let (position, sum) = (frame.position, crc32c::crc32c(frame.bytes));
        assert_eq!(crc32c::crc32c(reader.frame_at(position).unwrap().bytes), sum, "{position}");
        frames += 1;
    }
    assert!(frames >= 10, "{frames} frames");
}

/// A tape of a writer that died, with its durable position within a span, and bytes after it in the same span.
fn abandoned(dir: &Path, segment_bytes: u64) -> (Position, Position) {
    let (mut writer, _) = Writer::open(dir, ID, options(segment_bytes, None)).unwrap();
    append(&mut writer, SEED, 0, 700);
    let durable = writer.end();
    writer.wait_durable(durable, Duration::from_secs(180)).unwrap();
    append(&mut writer, SEED, 700, 720);
    let end = writer.end();
    while writer.recorded() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    assert!(!durable.0.is_multiple_of(CHECKSUM_SPAN) && durable.0 / CHECKSUM_SPAN == end.0 / CHECKSUM_SPAN);
    (durable, end)
}

/// A reader has read a closed tape to its end; a writer opens the tape and appends. Nothing is missing.
#[test]
fn a_reader_of_a_closed_tape_follows_the_next_writer() {
    for segment_bytes in [1 << 20, 4096] {
        let dir = directory();
        let (mut writer, _) = Writer::open(dir.path(), ID, options(segment_bytes, None)).unwrap();
        append(&mut writer, SEED, 0, 3);
        writer.close().unwrap();
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        let mut frames = 0;
        while reader.next().unwrap().is_some() {
            frames += 1;
        }
        let options = WriterOptions { sync_policy: SyncPolicy::OnClose, ..options(segment_bytes, None) };
        let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
        append(&mut writer, SEED, 3, 40);
        while reader.next().unwrap().is_some() {
            frames += 1;
        }
        assert!(reader.unverified().is_empty(), "{:?}", reader.unverified());
        assert!(frames >= 40, "{frames} frames");
        writer.close().unwrap();
        assert!(reader.next().unwrap().is_none() && reader.unverified().is_empty());
    }
}

/// Durable bytes are checked up to the last one, also where the sum of its span is of the first bytes only. Bytes
/// that a dead writer has appended after them are not covered, and read.
#[test]
fn the_span_of_the_durable_position_is_checked_up_to_it() {
    const SEGMENT_BYTES: u64 = 1 << 20;
    let dir = directory();
    let (durable, end) = abandoned(dir.path(), SEGMENT_BYTES);
    let frames = |dir: &Path| -> Result<Vec<Position>, Error> {
        let (mut reader, mut all) = (Reader::open(dir, StartPosition::Oldest)?, Vec::new());
        while let Some(frame) = reader.next()? {
            all.push(frame.position);
        }
        assert!(reader.unverified().is_empty(), "{:?}", reader.unverified());
        Ok(all)
    };
    let all = frames(dir.path()).unwrap();
    assert!(all.last().unwrap().0 < end.0 && all.last().unwrap().0 >= durable.0);
    let file = writable(&dir.path().join(format!("segments/{:016x}.seg", 0)));
    let last = all.iter().rposition(|at| *at < durable).unwrap();
    for (position, found) in [(all[last], true), (all[3], true), (all[last + 2], false)] {
        let offset = HEADER_PAGE + position.0 + 20;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 8], offset).unwrap();
        match frames(dir.path()) {
            Err(Error::Damage { reason: what, .. }) => {
                assert!(found && what.contains("checksum"), "{position}: {what}")
            }
            Ok(read) => assert!(!found && read == all, "{position}"),
            Err(e) => panic!("{e}"),
        }
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        assert_eq!(reader.frame_at(position).is_err(), found, "{position}");
        let mut unchecked = reader;
        unchecked.set_verify(false);
        assert_eq!(unchecked.frame_at(position).unwrap().position, position);
        file.write_all_at(&byte, offset).unwrap();
    }
    assert_eq!(frames(dir.path()).unwrap(), all);
}

/// A reader that passes over damage counts it, and says how many events that were.
#[test]
fn what_is_passed_over_is_counted() {
    const SEGMENT_BYTES: u64 = 128 << 10;
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, SEED, 0, 2_000);
    let end = writer.end();
    writer.close().unwrap();
    assert!(end.0 > 5 * SEGMENT_BYTES);
    let read = |skip_damage| {
        let options = ReadOptions { skip_damage, ..ReadOptions::default() };
        let mut reader = Reader::open_with(dir.path(), StartPosition::Oldest, options).unwrap();
        let mut all = Vec::new();
        while let Some((ordinal, frame)) = reader.next_counted().unwrap() {
            all.push((frame.position.0, ordinal, frame.header.is_meta()));
        }
        (all, reader)
    };
    let (all, _) = read(false);
    // The second span of the third segment, and the first byte of the last one.
    let damaged = 2 * SEGMENT_BYTES + CHECKSUM_SPAN;
    let file = writable(&dir.path().join(format!("segments/{:016x}.seg", 2)));
    let mut byte = [0];
    file.read_exact_at(&mut byte, HEADER_PAGE + CHECKSUM_SPAN + 500).unwrap();
    file.write_all_at(&[!byte[0]], HEADER_PAGE + CHECKSUM_SPAN + 500).unwrap();
    let last = end.0 / SEGMENT_BYTES;
    writable(&dir.path().join(format!("segments/{last:016x}.seg"))).write_all_at(b"x", 0).unwrap();
    let (some, mut reader) = read(true);
    let first = some.iter().position(|(at, ..)| *at >= damaged).unwrap();
    let (from, to) = (reader.damaged().parts[0].from_position.0, 3 * SEGMENT_BYTES);
    assert!(from <= damaged && damaged - from < 400, "{from}");
    let wanted: Vec<_> = all
        .iter()
        .filter(|(at, ..)| *at < from || (to..last * SEGMENT_BYTES).contains(at))
        .copied()
        .collect();
    assert_eq!(some, wanted);
    assert_eq!(some[first].0, to);
    let lost = all.iter().filter(|(at, _, meta)| (from..to).contains(at) && !meta).count() as u64;
    let parts = reader.damaged().clone();
    assert_eq!((parts.count, parts.uncounted, parts.events), (2, 1, lost));
    assert_eq!(parts.bytes, to - from + end.0 - last * SEGMENT_BYTES);
    assert_eq!((parts.parts[0].events, parts.parts[1].events), (Some(lost), None));
    // A seek to a place in damage goes to the first place after it; any other seek stays at its target.
    let inside = all.iter().find(|(at, ..)| *at > damaged + 1_000).unwrap().0;
    reader.seek(Position(inside)).unwrap();
    let (ordinal, frame) = reader.next_counted().unwrap().unwrap();
    assert_eq!((frame.position.0, ordinal), (to, some[first].1));
    reader.set_skip_damage(false);
    assert!(matches!(reader.seek(Position(inside)), Err(Error::Damage { .. })));
}
