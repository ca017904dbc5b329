//! Writing, reading, opening again: the tape as its users see it.

mod common;

use common::{Checker, ID, append, content, cut, directory, events, options, unit};
use proptest::prelude::*;
use unitape_model::{FrameHeader, LINE, Position, flags};
use unitape_tape::{
    Cursor, DefinitionReader, Error, Reader, RemovalOptions, RetentionLimits, StartPosition, Writer,
    WriterOptions, info, retain, verify,
};

/// A reader once stopped for good at the end of a segment: it kept a mapping that the next writer did not use.
#[test]
fn readers_follow_across_segments_and_writers_in_both_backings() {
    for hot in [false, true] {
        let dir = directory();
        let shm = directory();
        let place = shm.path().join("hot");
        let options = options(16 << 10, hot.then_some(place.as_path()));
        let (writer, recovery) = Writer::open(dir.path(), ID, options.clone()).unwrap();
        assert!(recovery.was_created && recovery.was_closed);
        let mut reader = Checker::new(dir.path(), 7);
        writer.close().unwrap();
        let mut to = 0;
        for round in 1..6 {
            let (mut writer, recovery) = Writer::open(dir.path(), ID, options.clone()).unwrap();
            assert!(recovery.was_closed && !recovery.was_created, "hot {hot} round {round}");
            append(&mut writer, 7, to, to + 300);
            to += 300;
            for _ in 0..100_000 {
                if reader.catch_up() == to {
                    break;
                }
            }
            assert_eq!(reader.next, to, "hot {hot} round {round}");
            assert_eq!(reader.reader.ordinal(), writer.ordinal());
            writer.close().unwrap();
            let report = verify(dir.path()).unwrap();
            assert!(report.is_intact(), "{:?}", report.problems);
            assert_eq!((report.unit_count, report.intact_to), (to, reader.reader.position()));
        }
        assert_eq!(common::left_in_run(dir.path()), ["lineage"]);
        assert!(!place.exists());
        let info = info(dir.path()).unwrap();
        assert_eq!((info.end_position, info.durable, info.writer), (info.durable, info.end_position, None));
        assert!(info.segments > 10);
    }
}

/// The two backings, and a unit at a time against claims, must not differ in a single byte.
#[test]
fn both_backings_leave_equal_directories() {
    let mut all = Vec::new();
    for hot in [false, true] {
        let dir = directory();
        let shm = directory();
        let place = shm.path().join("hot");
        let (mut writer, _) = Writer::open(dir.path(), ID, options(64 << 10, hot.then_some(&place))).unwrap();
        append(&mut writer, 3, 0, 2000);
        writer.close().unwrap();
        all.push(content(dir.path()));
    }
    assert_eq!(all[0].keys().collect::<Vec<_>>(), all[1].keys().collect::<Vec<_>>());
    for (name, bytes) in &all[0] {
        assert!(*bytes == all[1][name], "{name} differs");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Threads that fill claims in any order must leave what one thread leaves that appends unit by unit.
    #[test]
    fn claims_of_any_split_and_threads_equal_appends(
        seed in any::<u64>(),
        splits in proptest::collection::vec(1u64..40, 1..30),
        threads in 1usize..5,
        in_bulk: bool,
    ) {
        let (one, many) = (directory(), directory());
        let (mut writer, _) = Writer::open(one.path(), ID, options(4096, None)).unwrap();
        append(&mut writer, seed, 0, splits.iter().sum());
        let (end, ordinal) = (writer.end(), writer.ordinal());
        writer.close().unwrap();

        let in_bulk = WriterOptions { in_bulk, ..options(4096, None) };
        let (mut writer, _) = Writer::open(many.path(), ID, in_bulk).unwrap();
        let mut next = 0;
        for group in splits.chunks(threads) {
            let mut work = Vec::new();
            for &count in group {
                let mut run = Vec::new();
                (next..next + count).for_each(|i| unit(seed, i, &mut run));
                next += count;
                let claim = writer.claim(run.len() as u64, |limit| cut(&run, limit), events(&run)).unwrap();
                work.push((claim, run));
            }
            std::thread::scope(|s| {
                for (mut claim, run) in work {
                    s.spawn(move || {
                        // In two parts, the second beginning at some frame.
                        let (middle, _) = cut(&run, run.len() as u64 / 2);
                        if middle > 0 {
                            claim.write_frames(&run[..middle as usize]).unwrap();
                        }
                        claim.write_frames(&run[middle as usize..]).unwrap();
                        claim.publish();
                    });
                }
            });
        }
        prop_assert_eq!((writer.end(), writer.ordinal()), (end, ordinal));
        writer.close().unwrap();
        let (a, b) = (content(one.path()), content(many.path()));
        prop_assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        for (name, bytes) in &a {
            prop_assert!(*bytes == b[name], "{} differs", name);
        }
        let report = verify(many.path()).unwrap();
        prop_assert!(report.is_intact(), "{:?}", report.problems);
    }
}

/// Blocks that are reserved by and by must be there before anybody writes or looks, whichever way frames come: by a
/// claim that is larger than what is ahead, by single appends, across segments, and by the next writer.
#[test]
fn a_tape_written_in_bulk_is_the_one_written_in_one_go() {
    const SEGMENT: u64 = 16 << 20;
    let (one, bulk) = (directory(), directory());
    let (mut writer, _) = Writer::open(one.path(), ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 9, 0, 60_000);
    writer.close().unwrap();

    let in_bulk = WriterOptions { in_bulk: true, ..options(SEGMENT, None) };
    let mut next = 0;
    for to in [30_000, 60_000] {
        let (mut writer, _) = Writer::open(bulk.path(), ID, in_bulk.clone()).unwrap();
        // A claim of 9 MB, one of a few frames, and appends.
        for count in [20_000, 3, 1, 1000] {
            let mut run = Vec::new();
            (next..next + count).for_each(|i| unit(9, i, &mut run));
            next += count;
            let mut claim = writer.claim(run.len() as u64, |l| cut(&run, l), events(&run)).unwrap();
            claim.write_frames(&run).unwrap();
            claim.publish();
        }
        append(&mut writer, 9, next, to);
        next = to;
        let mut reader = Checker::new(bulk.path(), 9);
        assert_eq!(reader.catch_up(), to);
        writer.close().unwrap();
    }
    let (a, b) = (content(one.path()), content(bulk.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{name} differs");
    }
}

/// Frames that an unpublished claim hides must stay hidden, and must not come back after recovery.
#[test]
fn a_hole_ends_the_tape_and_is_cut() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(4096, None)).unwrap();
    append(&mut writer, 1, 0, 5);
    let end = writer.end();
    let mut run = Vec::new();
    (5..9).for_each(|i| unit(1, i, &mut run));
    let hole = writer.claim(run.len() as u64, |l| cut(&run, l), events(&run)).unwrap();
    let mut behind = writer.claim(run.len() as u64, |l| cut(&run, l), events(&run)).unwrap();
    behind.write_frames(&run).unwrap();
    behind.publish();
    assert_eq!(Checker::new(dir.path(), 1).catch_up(), 5);
    drop(hole);
    assert!(matches!(writer.append(&run), Err(Error::ClaimAbandoned(_))));
    assert!(matches!(writer.append(&run), Err(Error::ClaimAbandoned(_))));
    drop(writer);
    let (mut writer, recovery) = Writer::open(dir.path(), ID, options(4096, None)).unwrap();
    assert_eq!((recovery.end_position, recovery.was_closed, recovery.epoch), (end, false, 2));
    append(&mut writer, 1, 5, 40);
    writer.close().unwrap();
    assert_eq!(Checker::new(dir.path(), 1).catch_up(), 40);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Units that are none must be refused before a byte of them is on the tape.
#[test]
fn what_is_no_unit_is_refused_and_leaves_nothing() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(4096, None)).unwrap();
    let mut frame = [0u8; 2 * LINE];
    for (header, length) in [
        (FrameHeader::new_unstamped(20, flags::LAST, 0), 64),
        (FrameHeader::new_unstamped(20, flags::LAST, 2), 64),
        (FrameHeader::new_unstamped(20, flags::LAST, 1), 100),
        (FrameHeader::new_unstamped(20, flags::LAST, 1), 40),
        (FrameHeader::new_unstamped(1, flags::LAST, 1), 64),
        (FrameHeader::new_unstamped(20, 0, 1), 64),
        (FrameHeader::new_unstamped(20, flags::LAST, 1), 128),
    ] {
        header.write(&mut frame);
        assert!(matches!(writer.append(&frame[..length]), Err(Error::BadUnit { .. })), "{header:?} {length}");
    }
    assert!(matches!(writer.append(&[]), Err(Error::BadUnit { .. })));
    let mut long = vec![0; 8192];
    FrameHeader::new_unstamped(20, flags::LAST, 128).write(&mut long);
    assert!(matches!(writer.append(&long), Err(Error::BadUnit { .. })));
    assert_eq!(writer.end(), Position(0));
    writer.close().unwrap();
}

/// A report that fell behind must learn what it missed, and definitions must outlive their segments.
#[test]
fn retention_removes_whole_segments_and_keeps_definitions() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(4096, None)).unwrap();
    let positions = append(&mut writer, 5, 0, 400);
    writer.close().unwrap();
    let mut all = Vec::new();
    let mut log = DefinitionReader::open(dir.path()).unwrap();
    while let Some((position, frame)) = log.next().unwrap() {
        all.push((position, frame.to_vec()));
    }
    assert!(all.len() > 20);
    let mut late = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    late.next().unwrap().unwrap();
    let end = Reader::open(dir.path(), StartPosition::End).unwrap().position();
    let limits = RetentionLimits { bytes: Some(end.0 - positions[200].0), ..RetentionLimits::default() };
    let planned = retain(dir.path(), &limits, &RemovalOptions::default(), true).unwrap();
    let removed = retain(dir.path(), &limits, &RemovalOptions::default(), false).unwrap();
    assert!(removed.segments > 5 && removed == planned, "{planned:?} {removed:?}");
    let oldest = Reader::open(dir.path(), StartPosition::Oldest).unwrap().position();
    assert!(oldest <= positions[200] && oldest.0 > 0);
    let gone = Reader::open(dir.path(), StartPosition::At(positions[0])).unwrap_err();
    assert!(matches!(gone, Error::Retained { oldest: o, .. } if o == oldest), "{gone}");
    let met = loop {
        match late.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the reader waits for what is gone"),
            Err(e) => break e,
        }
    };
    assert!(matches!(met, Error::Retained { .. }), "{met}");
    let report = verify(dir.path()).unwrap();
    assert!(report.is_intact(), "{:?}", report.problems);
    assert_eq!(report.definitions, all.len() as u64);
    let (mut writer, recovery) = Writer::open(dir.path(), ID, options(4096, None)).unwrap();
    assert!(recovery.was_closed);
    append(&mut writer, 5, 400, 500);
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Evidence is named by position; any frame must be found again, and nothing else.
#[test]
fn random_access_seek_and_cursors() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(8192, None)).unwrap();
    let positions = append(&mut writer, 9, 0, 300);
    let mut reader = Reader::open(dir.path(), StartPosition::End).unwrap();
    assert_eq!((reader.position(), reader.ordinal()), (writer.end(), writer.ordinal()));
    for (i, &position) in positions.iter().enumerate().rev() {
        let frame = reader.frame_at(position).unwrap();
        assert_eq!(frame.bytes[8..16], (i as u64).to_le_bytes());
        reader.seek(position).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().position, position);
    }
    assert!(matches!(reader.frame_at(Position(positions[3].0 + 1)), Err(Error::NoFrame(_))));
    assert!(matches!(reader.frame_at(writer.end()), Err(Error::NoFrame(_))));
    assert!(matches!(reader.seek(Position(u64::MAX)), Err(Error::NoFrame(_))));
    let mut cursor = Cursor::open(dir.path(), "watch").unwrap();
    assert_eq!(cursor.load().unwrap(), None);
    cursor.store(positions[17]).unwrap();
    assert!(Cursor::open(dir.path(), "../x").is_err());
    writer.close().unwrap();
    // A cursor survives the writer's clean close.
    let cursor = Cursor::open(dir.path(), "watch").unwrap();
    assert_eq!(cursor.load().unwrap(), Some(positions[17]));
    cursor.delete().unwrap();
    assert!(
        !Reader::open(dir.path(), StartPosition::End)
            .unwrap()
            .wait(std::time::Duration::from_millis(1))
            .unwrap()
    );
}
