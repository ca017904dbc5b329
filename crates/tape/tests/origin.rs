//! Tapes that begin at an origin: a link that carries a tape from its middle on, and a writer that takes a tape over.
//! What may go wrong is a number: an event that is counted from another place is another event.

mod common;
#[path = "common/lines.rs"]
mod lines;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::process::{Account, Counter, SEED, Victim, again, number};
use common::{ID, Unstamp, content, directory, left_in_run, mix, options};
use unitape_model::{
    EventBuilder, EventField, EventKind, EventValue, FrameHeader, LINE, NameKind, Position, UnixNanos, flags,
};
use unitape_tape::{
    DefinitionReader, DefinitionRecord, Error, LineagePoint, LostDefinitions, Reader, RecorderLocation,
    RemovalOptions, RepairOptions, RetentionLimits, StartPosition, SyncPolicy, TapeId, TapeOrigin, Writer,
    WriterOptions, info, oldest_position, record, repair, retain, retention_status, tape_status, verify,
};

const SEGMENT: u64 = 16 << 10;

/// Unit `index` of the original: a definition, or an event of one to six lines.
fn unit(index: u64, out: &mut Vec<u8>) {
    out.clear();
    if index.is_multiple_of(7) {
        let name = format!("instrument {index}");
        let mut e = EventBuilder::begin(out, EventKind::Define, UnixNanos(0));
        let schema = e.schema();
        e.set(schema.get(EventField::Dict).unwrap(), EventValue::UInt(NameKind::Instrument as u64)).unwrap();
        e.set(schema.get(EventField::Index).unwrap(), EventValue::UInt(index / 7 + 1)).unwrap();
        e.set(schema.get(EventField::Name).unwrap(), EventValue::Text(&name)).unwrap();
        e.finish(flags::LAST).unwrap();
        return;
    }
    let lines = 1 + (mix(3, index) % 6) as u16;
    out.resize(usize::from(lines) * LINE, index as u8);
    FrameHeader::new_unstamped(20, flags::LAST, lines).write(out);
    out[8..16].copy_from_slice(&index.to_le_bytes());
}

fn append(writer: &mut Writer, units: std::ops::Range<u64>) {
    let mut bytes = Vec::new();
    for index in units {
        unit(index, &mut bytes);
        writer.append(&bytes).unwrap();
    }
}

/// A closed tape of some segments, and each place on it where a unit begins, with the events before it.
fn original(dir: &Path, units: u64) -> Vec<(Position, u64)> {
    let (mut writer, _) = Writer::open(dir, ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 0..units);
    let end = (writer.end(), writer.ordinal());
    writer.close().unwrap();
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let mut places = Vec::new();
    while let Some((ordinal, frame)) = reader.next_counted().unwrap() {
        places.push((frame.position, ordinal));
    }
    // The ordinal of a definition is that of the next event; `next_counted` gives the events before it.
    let mut events = 0;
    for (i, place) in places.iter_mut().enumerate() {
        place.1 = events;
        events += u64::from(!(i as u64).is_multiple_of(7));
    }
    places.push(end);
    places
}

/// The definitions of a tape before a position.
fn definitions(dir: &Path, before: Position) -> Vec<DefinitionRecord> {
    let mut log = DefinitionReader::open(dir).unwrap();
    let mut out = Vec::new();
    while let Some((position, frame)) = log.next().unwrap() {
        if position < before {
            out.push(DefinitionRecord { position, frame: frame.to_vec() });
        }
    }
    out
}

/// Places at which a tape may begin: in the first segment, within a later one, at the start of one, at the end.
fn starts(places: &[(Position, u64)]) -> Vec<(Position, u64)> {
    let find = |wanted: &dyn Fn(u64) -> bool| places.iter().copied().find(|(at, _)| wanted(at.0)).unwrap();
    vec![
        find(&|at| at > 1000),
        find(&|at| at > 2 * SEGMENT + 5000),
        find(&|at| at > 2 * SEGMENT && at.is_multiple_of(SEGMENT)),
        *places.last().unwrap(),
    ]
}

/// Copies the units from the reader's position on, one by one.
fn copy_units(from: &mut Reader, writer: &mut Writer) {
    let mut unit = Vec::new();
    while let Some(frame) = from.next().unwrap() {
        let at = unit.len();
        unit.extend_from_slice(frame.bytes);
        frame.header.unstamp().write(&mut unit[at..]);
        if frame.header.is_last() {
            assert_eq!(writer.append(&unit).unwrap(), Position(frame.position.0 - at as u64));
            unit.clear();
        }
    }
}

/// Asks everything that reads a tape where it begins.
fn begins_at(dir: &Path, (position, ordinal): (Position, u64), names: &[DefinitionRecord]) {
    assert_eq!(oldest_position(dir).unwrap(), position);
    assert_eq!(tape_status(dir).unwrap().oldest_position, position);
    assert_eq!(retention_status(dir).unwrap().oldest, position);
    let facts = info(dir).unwrap();
    assert_eq!((facts.oldest_position, facts.first_ordinal), (position, ordinal));
    for start in [StartPosition::Oldest, StartPosition::At(position)] {
        let reader = Reader::open(dir, start).unwrap();
        assert_eq!((reader.position(), reader.ordinal()), (position, ordinal));
    }
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    if let Some(frame) = reader.next().unwrap() {
        assert_eq!(frame.position, position);
    }
    for gone in [0, position.0 / 2 / 64 * 64, position.0 - 64] {
        let refused = Reader::open(dir, StartPosition::At(Position(gone))).unwrap_err();
        assert!(matches!(refused, Error::Retained { oldest, .. } if oldest == position), "{gone}: {refused}");
        let refused = reader.frame_at(Position(gone)).unwrap_err();
        assert!(matches!(refused, Error::Retained { .. } | Error::NoFrame(_)), "{gone}: {refused}");
    }
    let mut learned = Vec::new();
    let learn = |position, frame: &[u8]| {
        learned.push(DefinitionRecord { position, frame: frame.to_vec() });
        Ok::<_, std::fmt::Error>(())
    };
    LostDefinitions::new(dir, false).learn_before(position, learn).unwrap();
    assert_eq!(learned, names);
    let report = verify(dir).unwrap();
    assert!(report.is_intact(), "{:?}", report.problems);
    assert_eq!((report.frames, report.events), (facts.frames, facts.ordinals - ordinal));
}

/// A carried tape whose bytes are not those of the original cannot be compared with it, and its readers' places are not
/// those of the original.
#[test]
fn a_tape_that_is_copied_from_the_middle_on_is_the_tail_of_the_original() {
    let first = directory();
    let places = original(first.path(), 700);
    let whole = content(first.path());
    for hot in [false, true] {
        for (position, ordinal) in starts(&places) {
            let (dir, other) = (directory(), directory());
            let dir = dir.path().join("carried");
            let place = other.path().join("hot");
            let names = definitions(first.path(), position);
            let origin = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
            let how = options(SEGMENT, hot.then_some(place.as_path()));
            let (mut writer, recovery) = Writer::open_at(&dir, ID, &origin, how).unwrap();
            assert!(recovery.was_created && recovery.was_closed, "{recovery:?}");
            assert_eq!((recovery.end_position, recovery.ordinal, recovery.epoch), (position, ordinal, 7));
            let mut source = Reader::open(first.path(), StartPosition::At(position)).unwrap();
            copy_units(&mut source, &mut writer);
            assert_eq!((writer.end(), writer.ordinal()), *places.last().unwrap());
            writer.close().unwrap();
            begins_at(&dir, (position, ordinal), &names);

            let carried = content(&dir);
            let index = position.0 / SEGMENT;
            let at = (4096 + position.0 % SEGMENT) as usize;
            let of_start = |name: &str| name.contains(&format!("{index:016x}"));
            for (name, bytes) in &carried {
                let theirs = &whole[name];
                match name.rsplit('.').next() {
                    // The header page says how many events come before the segment, or before the origin in it.
                    Some("seg") if of_start(name) => assert!(bytes[at..] == theirs[at..], "{name}"),
                    // The filler has checksums of its own, in the span of the origin and those before it.
                    Some("crc") if of_start(name) => assert_eq!(bytes.len(), theirs.len(), "{name}"),
                    // Its index has no entry of the filler.
                    Some("idx") if of_start(name) => {}
                    _ if name == "durable" && places.last().unwrap().0.0 / SEGMENT == index => {}
                    _ => assert!(bytes == theirs, "{name}, from {position}"),
                }
            }
            let tail = |name: &&String| {
                let file = name.strip_prefix("segments/").and_then(|n| n.split('.').next());
                file.is_none_or(|file| u64::from_str_radix(file, 16).unwrap() >= index)
            };
            assert!(whole.keys().filter(tail).eq(carried.keys()), "other files, from {position}");
        }
    }
}

/// A tape that nothing was appended to lost its only segment when it was closed, and with it the number of its events.
#[test]
fn a_tape_without_a_unit_keeps_its_origin() {
    let first = directory();
    let places = original(first.path(), 700);
    for hot in [false, true] {
        for (position, ordinal) in starts(&places) {
            let (dir, other) = (directory(), directory());
            let (dir, place) = (dir.path(), other.path().join("hot"));
            let how = || options(SEGMENT, hot.then_some(place.as_path()));
            let names = definitions(first.path(), position);
            let origin = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
            for closes in [true, false, true, false] {
                let (writer, recovery) = Writer::open_at(dir, ID, &origin, how()).unwrap();
                assert_eq!(
                    (recovery.end_position, recovery.ordinal, recovery.cut_bytes),
                    (position, ordinal, 0)
                );
                begins_at(dir, (position, ordinal), &names);
                if closes {
                    writer.close().unwrap();
                    assert_eq!(left_in_run(dir), ["lineage", "origin"]);
                } else {
                    // As if it was killed: the next opening is a recovery.
                    drop(writer);
                }
                begins_at(dir, (position, ordinal), &names);
            }
            let found = repair(dir, &RepairOptions::default()).unwrap();
            assert!(found.is_clean(), "{:?}", found.findings);
            // Without its record it is a tape that begins at its oldest position.
            std::fs::remove_dir_all(dir.join("run")).unwrap();
            let (mut writer, recovery) = Writer::open(dir, ID, how()).unwrap();
            assert_eq!((recovery.end_position, recovery.ordinal), (position, ordinal));
            append(&mut writer, 0..100);
            writer.close().unwrap();
            begins_at(dir, (position, ordinal), &names);
        }
    }
}

/// An origin at 0 is an ordinary tape, byte for byte.
#[test]
fn an_origin_at_zero_is_a_plain_tape() {
    let (first, dir) = (directory(), directory());
    original(first.path(), 100);
    let origin = TapeOrigin { position: Position(0), ordinal: 0, definitions: &[], epoch: 12 };
    let (mut writer, recovery) = Writer::open_at(dir.path(), ID, &origin, options(SEGMENT, None)).unwrap();
    assert_eq!((recovery.epoch, recovery.was_created), (12, true));
    append(&mut writer, 0..100);
    writer.close().unwrap();
    assert_eq!(content(dir.path()), content(first.path()));
}

/// A service that starts again with what it was started with must find its tape, also after retention has removed the
/// segment of the origin; one that was fenced must not.
#[test]
fn the_same_origin_resumes_and_a_lesser_epoch_does_not() {
    let dir = directory();
    let dir = dir.path();
    let (position, ordinal) = (Position(SEGMENT + 640), 9);
    let at = |epoch| TapeOrigin { position, ordinal, definitions: &[], epoch };
    let open =
        |epoch| Writer::open_at(dir, ID, &at(epoch), options(SEGMENT, None)).map(|(w, r)| (w, r.epoch));
    let taken = |epoch| match open(epoch).unwrap_err() {
        Error::EpochTaken { epoch: asked, newest, .. } => (asked, newest),
        other => panic!("{other}"),
    };
    for expected in [5, 6, 7] {
        let (mut writer, epoch) = open(5).unwrap();
        assert_eq!(epoch, expected);
        append(&mut writer, 0..100);
        writer.close().unwrap();
    }
    assert_eq!((taken(4), taken(6), taken(7)), ((4, 7), (6, 7), (7, 7)));
    // Refusals leave a closed tape closed.
    assert_eq!(left_in_run(dir), ["lineage", "origin"]);
    let limits = RetentionLimits { bytes: Some(SEGMENT), ..RetentionLimits::default() };
    assert!(retain(dir, &limits, &RemovalOptions::default(), false).unwrap().segments > 1);
    assert!(oldest_position(dir).unwrap() > position);
    let (writer, epoch) = open(100).unwrap();
    assert_eq!(epoch, 100);
    writer.close().unwrap();
    assert_eq!((taken(5), taken(99)), ((5, 100), (99, 100)));
    let (writer, epoch) = open(100).unwrap();
    assert_eq!(epoch, 101);
    writer.close().unwrap();
    for (position, ordinal) in [(position, 10), (position.plus(64), 9), (Position(0), 0)] {
        let origin = TapeOrigin { position, ordinal, ..at(200) };
        let refused = Writer::open_at(dir, ID, &origin, options(SEGMENT, None)).unwrap_err();
        assert!(matches!(refused, Error::OtherOrigin(_)), "{refused}");
    }
    let refused = Writer::open_at(dir, TapeId(8), &at(200), options(SEGMENT, None)).unwrap_err();
    assert!(matches!(refused, Error::ForeignTape { .. }), "{refused}");
    let (_, recovery) = Writer::open(dir, ID, options(SEGMENT, None)).unwrap();
    assert_eq!(recovery.epoch, 102);
}

/// Two hosts once both held the lock, and both wrote.
#[test]
fn a_writer_that_is_fenced_publishes_nothing_more() {
    for (hot, closes) in [(false, false), (false, true), (true, false), (true, true)] {
        let (dir, other) = (directory(), directory());
        let (dir, place) = (dir.path(), other.path().join("hot"));
        let how = || options(SEGMENT, hot.then_some(place.as_path()));
        let (position, ordinal) = (Position(640), 3);
        let at = |epoch| TapeOrigin { position, ordinal, definitions: &[], epoch };
        let (mut old, _) = Writer::open_at(dir, ID, &at(5), how()).unwrap();
        append(&mut old, 0..10);
        let end = old.end();
        // The stub: the locks are other files now, and the old writer holds those of before.
        for lock in [dir.join("run/writer.lock"), dir.join("run/recorder.lock"), place.join("hot.mark")] {
            if let Ok(text) = std::fs::read(&lock) {
                std::fs::remove_file(&lock).unwrap();
                std::fs::write(&lock, text).unwrap();
            }
        }
        assert!(matches!(Writer::open_at(dir, ID, &at(4), how()), Err(Error::EpochTaken { .. })));
        let (mut new, recovery) = Writer::open_at(dir, ID, &at(9), how()).unwrap();
        assert_eq!((recovery.epoch, recovery.end_position), (9, end));
        let fenced = if closes {
            old.close().unwrap_err()
        } else {
            let mut bytes = Vec::new();
            unit(1, &mut bytes);
            // At the end of the segment at the latest.
            let refused =
                (0..=SEGMENT / 64).find_map(|_| old.append(&bytes).err()).expect("it wrote a segment");
            assert!((0..5).all(|_| old.append(&bytes).is_err()), "it continued after it was refused");
            refused
        };
        assert!(matches!(fenced, Error::Fenced { epoch: 5, newest: 9, .. }), "{fenced}");
        append(&mut new, 10..400);
        new.close().unwrap();
        let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
        let mut bytes = Vec::new();
        for index in 0..400 {
            unit(index, &mut bytes);
            let frame = reader.next().unwrap().expect("a unit of the new writer");
            assert!(frame.bytes[8..] == bytes[8..], "hot {hot}: unit {index} is not as it was written");
        }
        assert!(reader.next().unwrap().is_none());
        assert!(verify(dir).unwrap().is_intact(), "{:?}", verify(dir).unwrap().problems);
    }
}

/// Between segments a fenced writer looked at nothing, and a quiet one wrote for hours beside the next one.
#[test]
fn a_writer_learns_within_a_segment_that_it_is_fenced() {
    let dir = directory();
    let at = |epoch| TapeOrigin { position: Position(640), ordinal: 3, definitions: &[], epoch };
    let how = || WriterOptions { segment_bytes: 16 << 20, ..options(SEGMENT, None) };
    let (mut old, _) = Writer::open_at(dir.path(), ID, &at(5), how()).unwrap();
    append(&mut old, 0..10);
    for lock in ["run/writer.lock", "run/recorder.lock"] {
        std::fs::remove_file(dir.path().join(lock)).unwrap();
    }
    let (new, _) = Writer::open_at(dir.path(), ID, &at(9), how()).unwrap();
    let mut bytes = Vec::new();
    unit(1, &mut bytes);
    let mut refused = None;
    // One unit for each turn of the helper thread at most; a segment has room for 43,000 of them.
    for _ in 0..40_000 {
        refused = old.append(&bytes).err();
        if refused.is_some() {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    let refused = refused.expect("nobody told the old writer");
    assert!(matches!(refused, Error::Fenced { epoch: 5, newest: 9, .. }), "{refused}");
    assert!(old.end().0 < 16 << 20);
    assert_eq!(new.end(), Reader::open(dir.path(), StartPosition::End).unwrap().position());
}

/// A reader that comes with its place from the original must not take the frames of another writer for those it read.
#[test]
fn places_of_earlier_epochs_continue_at_the_origin_at_the_latest() {
    let dir = directory();
    let position = Position(SEGMENT + 640);
    let origin = TapeOrigin { position, ordinal: 9, definitions: &[], epoch: 7 };
    let (mut writer, _) = Writer::open_at(dir.path(), ID, &origin, options(SEGMENT, None)).unwrap();
    append(&mut writer, 0..100);
    let resume = |epoch, position| Reader::resume(dir.path(), LineagePoint { epoch, position });
    let refused = resume(6, Position(64)).unwrap_err();
    assert!(matches!(refused, Error::Retained { oldest, .. } if oldest == position), "{refused}");
    let mut reader = resume(6, position).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().position, position);
    let mut reader = resume(6, position.plus(64_000)).unwrap();
    let rewound = reader.next().unwrap_err();
    assert!(matches!(rewound, Error::Rewound { to, .. } if to == position), "{rewound}");
    assert_eq!(reader.next().unwrap().unwrap().position, position);
    let mut reader = resume(7, writer.end()).unwrap();
    assert!(reader.next().unwrap().is_none());
}

/// What cannot be an origin made a tape that no reader could read, or that counted from another place.
#[test]
fn each_bad_origin_has_an_error_of_its_own() {
    let first = directory();
    let places = original(first.path(), 100);
    let (position, ordinal) = places[60];
    let names = definitions(first.path(), position);
    assert!(names.len() > 3);
    let good = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
    let dir = directory();
    let dir = dir.path().join("tape");
    let refused = |origin: TapeOrigin<'_>| {
        let error = Writer::open_at(&dir, ID, &origin, options(SEGMENT, None)).unwrap_err().to_string();
        assert!(!dir.exists(), "{error}");
        error
    };
    let mut seen = vec![
        refused(TapeOrigin { position: position.plus(8), ..good }),
        refused(TapeOrigin { position: Position(1 << 62), ..good }),
        refused(TapeOrigin { ordinal: 0, ..good }),
        refused(TapeOrigin { position: Position(0), definitions: &[], ..good }),
        refused(TapeOrigin { ordinal: position.0, ..good }),
        refused(TapeOrigin { epoch: 0, ..good }),
    ];
    let with = |change: &dyn Fn(&mut Vec<DefinitionRecord>)| {
        let mut names = names.clone();
        change(&mut names);
        refused(TapeOrigin { definitions: &names, ..good })
    };
    seen.extend([
        with(&|names| names.swap(1, 2)),
        with(&|names| drop(names.remove(1))),
        with(&|names| names[1].frame.truncate(63)),
        with(&|names| names[1].position = names[1].position.plus(64)),
        with(&|names| names[1].frame[6] = 20),
        with(&|names| names[1] = names[0].clone()),
    ]);
    seen.push(refused(TapeOrigin { position: names[3].position.plus(0), ordinal: 3, ..good }));
    let options = WriterOptions { epoch_min: 8, ..options(SEGMENT, None) };
    seen.push(Writer::open_at(&dir, ID, &good, options).unwrap_err().to_string());
    let all = seen.len();
    seen.iter()
        .for_each(|error| assert!(error.starts_with("option: ") || error.starts_with("bad definition: ")));
    seen.sort();
    seen.dedup();
    assert!(seen.len() >= all - 1, "two of them read alike: {seen:#?}");
}

/// The neighbours of a damaged header page say nothing of the events before an origin, and segment 0 begins with none
/// on every other tape.
#[test]
fn a_repair_knows_the_ordinal_of_an_origin() {
    let first = directory();
    let places = original(first.path(), 300);
    for (position, ordinal) in starts(&places) {
        let dir = directory();
        let dir = dir.path();
        let names = definitions(first.path(), position);
        let origin = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
        let (mut writer, _) = Writer::open_at(dir, ID, &origin, options(SEGMENT, None)).unwrap();
        append(&mut writer, 0..5);
        writer.close().unwrap();
        let before = content(dir);
        let path = dir.join(format!("segments/{:016x}.seg", position.0 / SEGMENT));
        let damage = |path: &Path, at: usize| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[at] ^= 0x40;
            std::os::unix::fs::FileExt::write_all_at(&common::writable(path), &bytes, 0).unwrap();
        };
        // The header page, the record of a definition, and the record of the origin.
        damage(&path, 57);
        let apply = RepairOptions { apply: true, ..RepairOptions::default() };
        let report = repair(dir, &apply).unwrap();
        assert!(!report.is_flawed() && !report.is_clean(), "{:?}", report.findings);
        begins_at(dir, (position, ordinal), &names);
        damage(&dir.join("run/origin"), 40);
        assert!(!verify(dir).unwrap().is_intact());
        let refused = Writer::open_at(dir, ID, &origin, options(SEGMENT, None)).unwrap_err();
        assert!(matches!(refused, Error::Damage { .. }), "{refused}");
        repair(dir, &apply).unwrap();
        begins_at(dir, (position, ordinal), &names);
        let (_, recovery) =
            Writer::open_at(dir, ID, &TapeOrigin { epoch: 8, ..origin }, options(SEGMENT, None)).unwrap();
        assert_eq!(recovery.epoch, 8);
        let now = content(dir);
        before.iter().for_each(|(name, bytes)| assert!(now[name] == *bytes, "{name}"));
    }
}

/// Definitions between the start of a segment and an origin in it are in the log alone: a log that was made again lost
/// them.
#[test]
fn a_repair_keeps_the_definitions_before_an_origin() {
    let first = directory();
    let places = original(first.path(), 300);
    let (position, ordinal) = starts(&places)[1];
    let names = definitions(first.path(), position);
    assert!(names.last().unwrap().position.0 > position.0 / SEGMENT * SEGMENT);
    let dir = directory();
    let dir = dir.path();
    let origin = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
    let (mut writer, _) = Writer::open_at(dir, ID, &origin, options(SEGMENT, None)).unwrap();
    append(&mut writer, 0..100);
    writer.close().unwrap();
    let path = dir.join("definitions.log");
    let whole = std::fs::read(&path).unwrap();
    // Its last record, which the tape has.
    std::fs::write(&path, &whole[..whole.len() - 32]).unwrap();
    let report = repair(dir, &RepairOptions { apply: true, ..RepairOptions::default() }).unwrap();
    assert!(!report.is_flawed(), "{:?}", report.findings);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    begins_at(dir, (position, ordinal), &names);
}

/// What an opening has left that died is another tape's, or of another origin.
#[test]
fn an_unfinished_tape_is_made_again_at_its_own_origin_alone() {
    let dir = directory();
    let dir = dir.path();
    let at =
        |position, epoch| TapeOrigin { position: Position(position), ordinal: 9, definitions: &[], epoch };
    let open = |id, origin| Writer::open_at(dir, id, &origin, options(SEGMENT, None)).map(drop);
    open(ID, at(SEGMENT + 640, 7)).unwrap();
    std::fs::remove_file(dir.join("tape.toml")).unwrap();
    let refused = open(TapeId(8), at(SEGMENT + 640, 7)).unwrap_err();
    assert!(matches!(refused, Error::ForeignTape { .. }), "{refused}");
    let refused = open(ID, at(SEGMENT + 704, 7)).unwrap_err();
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    let refused = open(ID, at(SEGMENT + 704, 6)).unwrap_err();
    assert!(matches!(refused, Error::EpochTaken { .. }), "{refused}");
    // A greater epoch begins where it says.
    open(ID, at(3 * SEGMENT + 640, 9)).unwrap();
    begins_at(dir, (Position(3 * SEGMENT + 640), 9), &[]);
}

/// The advice for a directory without `tape.toml` was to remove it, and a whole tape was in it.
#[test]
fn a_tape_that_has_lost_its_manifest_is_not_unfinished() {
    let dir = directory();
    let dir = dir.path();
    let (position, ordinal) = (Position(SEGMENT + 640), 9);
    let origin = TapeOrigin { position, ordinal, definitions: &[], epoch: 7 };
    for units in [1..2, 2..300] {
        let (mut writer, _) = Writer::open_at(dir, ID, &origin, options(SEGMENT, None)).unwrap();
        append(&mut writer, units);
        writer.close().unwrap();
        let before = content(dir);
        std::fs::remove_file(dir.join("tape.toml")).unwrap();
        let how = || options(SEGMENT, None);
        for refused in [Writer::open(dir, ID, how()), Writer::open_at(dir, ID, &origin, how())] {
            let refused = refused.unwrap_err();
            assert!(refused.to_string().contains("unitape tape repair"), "{refused}");
        }
        repair(dir, &RepairOptions { apply: true, ..RepairOptions::default() }).unwrap();
        assert_eq!(content(dir), before);
    }
    begins_at(dir, (position, ordinal), &[]);
}

/// A header word counts 65535 lines, so what comes before an origin in a large segment has several of them.
#[test]
fn an_origin_deep_in_a_large_segment_is_found() {
    let size = 16u64 << 20;
    for hot in [false, true] {
        let (dir, other) = (directory(), directory());
        let (dir, place) = (dir.path(), other.path().join("hot"));
        let (position, ordinal) = (Position(size + 9 * (1 << 20) + 64), 1000);
        let origin = TapeOrigin { position, ordinal, definitions: &[], epoch: 7 };
        let how = || options(size, hot.then_some(place.as_path()));
        let (mut writer, _) = Writer::open_at(dir, ID, &origin, how()).unwrap();
        append(&mut writer, 1..7);
        drop(writer);
        begins_at(dir, (position, ordinal), &[]);
        let (writer, recovery) = Writer::open_at(dir, ID, &origin, how()).unwrap();
        assert_eq!(recovery.ordinal, ordinal + 6);
        writer.close().unwrap();
        begins_at(dir, (position, ordinal), &[]);
    }
}

/// A power loss takes what is not durable, and an origin is: a recovery once began where the disk had nothing.
#[test]
fn a_power_loss_leaves_the_origin() {
    for hot in [false, true] {
        for position in [Position(640), Position(SEGMENT + 640)] {
            let (dir, other) = (directory(), directory());
            let (dir, place) = (dir.path(), other.path().join("hot"));
            let ordinal = 9;
            let origin = TapeOrigin { position, ordinal, definitions: &[], epoch: 7 };
            let how = || options(SEGMENT, hot.then_some(place.as_path()));
            for _ in 0..2 {
                let (mut writer, recovery) = Writer::open_at(dir, ID, &origin, how()).unwrap();
                assert_eq!((recovery.end_position, recovery.ordinal), (position, ordinal));
                append(&mut writer, 1..100);
                drop(writer);
                lines::power_fails(dir, position.0);
            }
            let (mut writer, recovery) = Writer::open(dir, ID, how()).unwrap();
            assert_eq!(
                (recovery.end_position, recovery.ordinal, recovery.has_rebooted),
                (position, ordinal, true)
            );
            append(&mut writer, 1..100);
            writer.close().unwrap();
            begins_at(dir, (position, ordinal), &[]);
        }
    }
}

/// A recorder of its own process knows the tape by its files alone.
#[test]
fn a_recorder_process_follows_from_the_origin() {
    let (first, dir, other) = (directory(), directory(), directory());
    let places = original(first.path(), 300);
    let (position, ordinal) = starts(&places)[1];
    let names = definitions(first.path(), position);
    let origin = TapeOrigin { position, ordinal, definitions: &names, epoch: 7 };
    let how = WriterOptions {
        recorder: RecorderLocation::External,
        ..options(SEGMENT, Some(&other.path().join("hot")))
    };
    let (mut writer, _) = Writer::open_at(dir.path(), ID, &origin, how).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let recorder = std::thread::spawn({
        let (stop, dir) = (stop.clone(), dir.path().to_path_buf());
        move || record(&dir, SyncPolicy::OnClose, RemovalOptions::default(), &stop)
    });
    let mut source = Reader::open(first.path(), StartPosition::At(position)).unwrap();
    copy_units(&mut source, &mut writer);
    writer.close().unwrap();
    // Relaxed: a wish, nothing is read under it.
    stop.store(true, Ordering::Relaxed);
    recorder.join().unwrap().unwrap();
    begins_at(dir.path(), (position, ordinal), &names);
    let (carried, whole) = (content(dir.path()), content(first.path()));
    for name in ["definitions.log", "durable"] {
        assert_eq!(carried[name], whole[name], "{name}");
    }
}

/// Not a test of its own: the process that is killed while it opens a tape at an origin.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_CHILD") else { return };
    assert_eq!(role, "opener");
    let dir = std::path::PathBuf::from(std::env::var("DIR").unwrap());
    let names = killed_names();
    let (mut writer, _) = Writer::open_at(&dir, ID, &killed_origin(&names), options(SEGMENT, None)).unwrap();
    append(&mut writer, 7..8);
    append(&mut writer, 1..7);
    loop {
        std::thread::park();
    }
}

const KILLED_AT: Position = Position(SEGMENT + 6400);

fn killed_names() -> Vec<DefinitionRecord> {
    let mut frame = Vec::new();
    unit(0, &mut frame);
    FrameHeader::read(&frame).with_stamp(Position(0)).write(&mut frame);
    vec![DefinitionRecord { position: Position(0), frame }]
}

fn killed_origin(names: &[DefinitionRecord]) -> TapeOrigin<'_> {
    TapeOrigin { position: KILLED_AT, ordinal: 20, definitions: names, epoch: 7 }
}

/// A process that dies at any moment of an opening leaves a tape with the right numbers, or none.
#[test]
fn openings_that_are_killed_are_made_again() {
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 200) / 5, number("UNITAPE_SEED", SEED));
    let mut account = Account::begin("kill-origin", "file", seed, rounds);
    let other = directory();
    let counter = other.path().join("counter");
    Counter::create(&counter);
    let names = killed_names();
    // What the opening makes, in its order.
    let marks = [
        "run/writer.lock",
        "run/making-origin",
        "run/origin",
        "run/lineage",
        "segments",
        "definitions.log",
        "run/making-first",
        "segments/0000000000000001.crc",
        "durable",
        "segments/0000000000000001.seg",
        "tape.toml",
        "run/state",
    ];
    for round in 0..rounds {
        let dir = directory();
        let dir = dir.path();
        let mark = dir.join(marks[(mix(seed, round) % marks.len() as u64) as usize]);
        let at = format!("seed {seed} round {round} {}", mark.display());
        for _ in 0..1 + mix(seed, round + 1) % 2 {
            let mut child = Victim(again("opener", dir, seed, &counter).spawn().unwrap());
            // It may be gone by the time it is looked for, and then something later is there.
            common::process::wait_for(|| mark.exists() || dir.join("run/state").exists(), &at);
            child.kill();
        }
        let is_tape = dir.join("tape.toml").exists();
        if !is_tape && dir.join("run/origin").exists() {
            let refused = Writer::open(dir, ID, options(SEGMENT, None)).expect_err(&at);
            assert!(matches!(refused, Error::Unfinished { position: KILLED_AT, .. }), "{at}: {refused}");
        }
        if is_tape {
            let reader = Reader::open(dir, StartPosition::Oldest).expect(&at);
            assert_eq!((reader.position(), reader.ordinal()), (KILLED_AT, 20), "{at}");
        }
        let (mut writer, recovery) =
            Writer::open_at(dir, ID, &killed_origin(&names), options(SEGMENT, None)).expect(&at);
        assert!(recovery.epoch >= 7 && recovery.end_position >= KILLED_AT, "{at}: {recovery:?}");
        assert!(recovery.ordinal >= 20, "{at}: {recovery:?}");
        append(&mut writer, 1..7);
        writer.close().expect(&at);
        begins_at(dir, (KILLED_AT, 20), &names);
        account.round();
    }
}
