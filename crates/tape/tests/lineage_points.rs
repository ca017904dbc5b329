//! Readers that keep their place themselves, with its epoch: after cuts, on a tape that has lost its lineage, and
//! on an older copy.

mod common;
#[path = "common/lines.rs"]
mod lines;

use std::path::Path;
use std::time::Duration;

use common::{ID, directory, left_in_run, options};
use lines::{Lines, ask, number, power_fails, rewound};
use unitape_model::Position;
use unitape_tape::{
    Error, Gate, GateHandle, GatePolicy, LineagePoint, Publication, ReaderRewind, StartPosition,
    Subscription, Writer, WriterOptions,
};

const SEGMENT: u64 = 4096;
const LINE: u64 = 64;

fn open(dir: &Path) -> Publication {
    Publication::open(dir, options(SEGMENT, None)).unwrap()
}

/// Fifty durable lines, fifty more, and a power loss; the point at their end.
fn shortened(dir: &Path) -> LineagePoint {
    let mut publication = open(dir);
    publication.put(0..50);
    publication.make_durable();
    publication.put(50..100);
    let mut subscription = Subscription::open(dir, StartPosition::Oldest).unwrap();
    ask(&mut subscription, None);
    let point = subscription.point();
    assert_eq!(point, LineagePoint { epoch: publication.writer().epoch(), position: Position(100 * LINE) });
    drop(publication);
    power_fails(dir, 50 * LINE);
    point
}

/// A place in a database knew no epoch, and nothing in it could say that the tape was cut.
#[test]
fn a_point_finds_its_place_after_a_cut() {
    let dir = directory();
    let point = shortened(dir.path());
    let mut publication = open(dir.path());
    publication.put(1000..1200);
    let mut subscription = Subscription::resume(dir.path(), point).unwrap();
    assert_eq!(subscription.position(), Position(50 * LINE));
    let rewinds = subscription.reader().rewinds();
    let last = ReaderRewind { reader_position: point.position, resume_position: Position(50 * LINE) };
    assert_eq!((rewinds.count, rewinds.bytes, rewinds.last_rewind), (1, 50 * LINE, Some(last)));
    let error = subscription.next().map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Rewound { from, to } if (from, to) == (last.reader_position, last.resume_position)),
        "{error}"
    );
    assert_eq!(ask(&mut subscription, None), ((1000..1200).collect(), vec![]));
    // A point that the cut did not reach, and one of now.
    for (point, lines) in [
        (LineagePoint { epoch: point.epoch, position: Position(50 * LINE) }, 200),
        (subscription.point(), 0),
        (LineagePoint { epoch: subscription.point().epoch, position: Position(100 * LINE) }, 150),
    ] {
        let mut other = Subscription::resume(dir.path(), point).unwrap();
        let (seen, errors) = ask(&mut other, None);
        assert_eq!((seen.len(), errors.len()), (lines, 0), "{point:?}");
    }
    publication.close().unwrap();
}

/// With `run/` the epochs were gone: the next ones came a second time, for other frames at the same positions.
#[test]
fn a_tape_that_lost_its_lineage_has_epochs_of_its_own() {
    for reboots in [false, true] {
        let dir = directory();
        let mut point = shortened(dir.path());
        let mut publication = open(dir.path());
        publication.put(1000..1200);
        let epoch = publication.writer().epoch();
        if reboots {
            point.epoch = epoch;
        }
        publication.close().unwrap();
        assert_eq!(left_in_run(dir.path()), ["lineage"]);
        std::fs::remove_dir_all(dir.path().join("run")).unwrap();
        // Nobody has written since: what the tape is nobody knows, and so it is read from its start.
        let all = (0..50).chain(1000..1200).collect::<Vec<_>>();
        for _ in 0..3 {
            let mut publication = open(dir.path());
            assert!(publication.writer().epoch() > epoch + 1000);
            let mut subscription = Subscription::resume(dir.path(), point).unwrap();
            assert_eq!(ask(&mut subscription, None), (all.clone(), vec![rewound(100, 0)]));
            publication.close().unwrap();
        }
    }
}

/// A directory that was restored from a copy has an older lineage than somebody knows of.
#[test]
fn an_older_copy_is_refused_where_the_least_epoch_is_known() {
    let dir = directory();
    let with = |epoch_min| WriterOptions { epoch_min, ..options(SEGMENT, None) };
    let (writer, recovery) = Writer::open(dir.path(), ID, with(40)).unwrap();
    assert_eq!((recovery.epoch, writer.epoch()), (40, 40), "a new tape begins with it");
    writer.close().unwrap();
    let refused = Writer::open(dir.path(), ID, with(42)).map(drop).unwrap_err();
    assert!(matches!(refused, Error::OldEpoch { epoch: 41, least: 42, .. }), "{refused}");
    let (writer, recovery) = Writer::open(dir.path(), ID, with(41)).unwrap();
    assert!(recovery.was_closed && recovery.epoch == 41, "{recovery:?}");
    writer.close().unwrap();
    std::fs::remove_file(dir.path().join("run/lineage")).unwrap();
    let (mut writer, recovery) = Writer::open(dir.path(), ID, with(1 << 60)).unwrap();
    assert_eq!(recovery.epoch, 1 << 60, "a lineage that was lost begins with it");
    // With something on the tape, so that it is as after a kill.
    let mut unit = vec![0; unitape_model::LINE];
    unitape_model::FrameHeader::new_unstamped(40, unitape_model::flags::LAST, 1).write(&mut unit);
    writer.append(&unit).unwrap();
    drop(writer);
    // Damaged, it is refused, until it is removed or given up with other damage.
    let path = dir.path().join("run/lineage");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let refused = Writer::open(dir.path(), ID, with(0)).map(drop).unwrap_err();
    assert!(matches!(&refused, Error::Damage { path, .. } if path.ends_with("run/lineage")), "{refused}");
    let cut = WriterOptions { truncate_damage: true, ..with(0) };
    let (_, recovery) = Writer::open(dir.path(), ID, cut).unwrap();
    assert!(recovery.epoch > 1 << 60);
}

/// Where the tape was made again at the same place, nothing of the old one means anything on it.
#[test]
fn a_tape_that_is_made_where_one_was_is_another() {
    let dir = directory();
    let point = shortened(dir.path());
    let id = unitape_tape::TapeManifest::load(dir.path()).unwrap().id;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("run") => {}
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
    let (writer, recovery) = Writer::open(dir.path(), id, options(SEGMENT, None)).unwrap();
    assert!(recovery.was_created && recovery.epoch > point.epoch);
    writer.close().unwrap();
    let mut publication = open(dir.path());
    publication.put(0..200);
    let mut subscription = Subscription::resume(dir.path(), point).unwrap();
    assert_eq!(ask(&mut subscription, None), ((0..200).collect(), vec![rewound(100, 0)]));
}

/// A gate's reader that lives on says that it went back, and the writer counts on it again.
#[test]
fn a_reader_that_went_back_opens_its_gate() {
    let dir = directory();
    let gate = || Gate {
        reader: "risk".into(),
        ahead_bytes: 5 * LINE,
        policy: GatePolicy::Wait { timeout: Duration::from_millis(1) },
        holds_when_absent: false,
    };
    let with_gate = || WriterOptions { gates: vec![gate()], ..options(SEGMENT, None) };
    let mut publication = Publication::open(dir.path(), with_gate()).unwrap();
    let mut handle = GateHandle::attach(dir.path(), "risk", Position(0)).unwrap();
    let mut reader = Subscription::open(dir.path(), StartPosition::Oldest).unwrap();
    for n in 0..100 {
        if n == 50 {
            publication.make_durable();
        }
        publication.put(n..n + 1);
        assert_eq!(number(reader.next().unwrap().unwrap().message().unwrap().bytes), n);
        handle.advance(reader.position());
    }
    drop(publication);
    power_fails(dir.path(), 50 * LINE);
    let mut publication = Publication::open(dir.path(), with_gate()).unwrap();
    publication.put(1000..1005);
    assert!(matches!(
        publication.try_put(1),
        Err(Error::Gated { position: Position(3200), alive: true, .. })
    ));
    // The reader has not heard of it: what it says of a tape that is gone counts for nothing.
    handle.advance(Position(101 * LINE));
    assert!(matches!(publication.try_put(1), Err(Error::Gated { .. })));
    let mut left = 100_000;
    let error = loop {
        match reader.next() {
            Err(e) => break e,
            Ok(_) => left -= 1,
        }
        assert!(left > 0, "the reader got no error");
    };
    assert!(matches!(error, Error::Rewound { to: Position(3200), .. }), "{error}");
    handle.rewind(reader.position());
    for n in 0..100 {
        let (seen, _) = ask(&mut reader, None);
        assert!(n == 0 || !seen.is_empty());
        handle.advance(reader.position());
        publication.put(2000 + n..2001 + n);
    }
    publication.close().unwrap();
}
