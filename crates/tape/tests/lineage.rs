//! Places on a tape that a power loss made shorter. A name beyond the end could not be opened, and once the tape had
//! grown past it, messages were skipped and nobody said so. Errors are read as text, so that these tests say of an
//! older library what it does wrong.

mod common;
#[path = "common/lines.rs"]
mod lines;

use std::path::Path;

use common::{directory, options};
use lines::{Lines, ask, machine_restarts, other_boot, power_fails, rewound};
use unitape_model::Position;
use unitape_tape::{
    Backing, Cursor, Error, Gate, GateHandle, GatePolicy, Publication, RecorderLocation, RemovalOptions,
    RetentionLimits, StartPosition, Subscription, WriterOptions, retain,
};

const SEGMENT: u64 = 4096;
const LINE: u64 = 64;

fn open(dir: &Path, hot: Option<&Path>) -> Publication {
    Publication::open(dir, options(SEGMENT, hot)).unwrap()
}

/// A tape with the lines 0 to 100, of which 50 are durable, and a power loss after them; `before` comes before the loss.
fn shortened(dir: &Path, hot: Option<&Path>, before: impl FnOnce()) {
    shortened_by(dir, hot, before, power_fails);
}

fn shortened_by(dir: &Path, hot: Option<&Path>, before: impl FnOnce(), loss: fn(&Path, u64)) {
    let mut publication = open(dir, hot);
    publication.put(0..50);
    publication.make_durable();
    publication.put(50..100);
    before();
    drop(publication);
    loss(dir, 50 * LINE);
}

/// Reads all lines under a name and acknowledges them.
fn acknowledge(dir: &Path, name: &str) {
    let mut subscription = Subscription::open_named(dir, name, StartPosition::Oldest).unwrap();
    let (lines, errors) = ask(&mut subscription, None);
    assert!(errors.is_empty() && !lines.is_empty(), "{errors:?}");
    subscription.acknowledge().unwrap();
}

/// The name was an error until the tape had grown past it, and then skipped the first lines after the cut.
#[test]
fn a_name_beyond_the_end_continues_at_the_cut() {
    for hot in [false, true] {
        // As many new lines, fewer than were cut, and more; with and without closes in between.
        for (lines, closes) in [(0, 0), (10, 0), (50, 1), (120, 0), (120, 3)] {
            let (dir, other) = (directory(), directory());
            let place = other.path().join("hot");
            let place = hot.then_some(place.as_path());
            shortened(dir.path(), place, || acknowledge(dir.path(), "risk"));
            let mut publication = open(dir.path(), place);
            assert_eq!(publication.end(), Position(50 * LINE));
            publication.put(1000..1000 + lines);
            for _ in 0..closes {
                publication.close().unwrap();
                publication = open(dir.path(), place);
            }
            let at = format!("hot {hot}, {lines} lines, {closes} closes");
            let mut risk = Subscription::open_named(dir.path(), "risk", StartPosition::Oldest)
                .unwrap_or_else(|e| panic!("{at}: the name cannot be opened: {e}"));
            let (seen, errors) = ask(&mut risk, None);
            assert_eq!(seen, (1000..1000 + lines).collect::<Vec<_>>(), "{at}");
            assert_eq!(errors, [rewound(100, 50)], "{at}");
            risk.acknowledge().unwrap();
            publication.put(5000..5010);
            assert_eq!(ask(&mut risk, Some(5009)), ((5000..5010).collect(), vec![]), "{at}");
            drop(risk);
            // A rewind that was reported once and acknowledged is not reported again.
            let mut risk = Subscription::open_named(dir.path(), "risk", StartPosition::Oldest).unwrap();
            assert_eq!(ask(&mut risk, None), ((5000..5010).collect(), vec![]), "{at}");
            publication.close().unwrap();
        }
    }
}

/// A reader that comes before the next writer knows no cut, and yet the tape is shorter.
#[test]
fn a_name_is_opened_before_a_writer_has_recovered_the_tape() {
    let dir = directory();
    shortened(dir.path(), None, || acknowledge(dir.path(), "risk"));
    let mut risk = Subscription::open_named(dir.path(), "risk", StartPosition::Oldest)
        .unwrap_or_else(|e| panic!("the name cannot be opened: {e}"));
    assert_eq!(ask(&mut risk, None), (vec![], vec![rewound(100, 50)]));
    let mut publication = open(dir.path(), None);
    publication.put(1000..1200);
    assert_eq!(ask(&mut risk, Some(1199)), ((1000..1200).collect(), vec![]));
    publication.close().unwrap();
}

/// A place that went back with a power loss, as one may that the system had not written, is rewound by the cut of then.
#[test]
fn an_older_place_is_rewound_by_each_cut_since() {
    let dir = directory();
    shortened(dir.path(), None, || acknowledge(dir.path(), "risk"));
    let path = dir.path().join("run/cursors/risk");
    let old = std::fs::read(&path).unwrap();
    let mut publication = open(dir.path(), None);
    publication.put(1000..1200);
    publication.make_durable();
    publication.put(1200..1300);
    acknowledge_all(dir.path(), "risk");
    drop(publication);
    power_fails(dir.path(), 250 * LINE);
    std::fs::write(&path, old).unwrap();
    let mut publication = open(dir.path(), None);
    publication.put(2000..2100);
    let mut risk = Subscription::open_named(dir.path(), "risk", StartPosition::Oldest).unwrap();
    let (seen, errors) = ask(&mut risk, None);
    assert_eq!(seen, (1000..1200).chain(2000..2100).collect::<Vec<_>>());
    assert_eq!(errors, [rewound(100, 50)]);
}

fn acknowledge_all(dir: &Path, name: &str) {
    let mut subscription = Subscription::open_named(dir, name, StartPosition::Oldest).unwrap();
    ask(&mut subscription, None);
    subscription.acknowledge().unwrap();
}

/// A reader that lives on was at the old end, and never saw the lines that came at the positions it had read already.
#[test]
fn a_live_reader_that_is_beyond_the_cut_learns_of_it() {
    // Two where the disk has another file afterwards, and two where the writer itself cuts what the reader has mapped.
    for (hot, loss) in [
        (false, power_fails as fn(&Path, u64)),
        (true, power_fails),
        (false, machine_restarts),
        (true, machine_restarts),
    ] {
        for read in [30, 60, 100] {
            let (dir, other) = (directory(), directory());
            let place = other.path().join("hot");
            let place = hot.then_some(place.as_path());
            let mut subscription = None;
            let before = || {
                let mut reader = Subscription::open(dir.path(), StartPosition::Oldest).unwrap();
                (0..read).for_each(|_| assert!(reader.next().unwrap().is_some()));
                subscription = Some(reader);
            };
            shortened_by(dir.path(), place, before, loss);
            let mut subscription = subscription.unwrap();
            let mut publication = open(dir.path(), place);
            assert_eq!(publication.end(), Position(50 * LINE));
            publication.put(1000..1200);
            let (seen, errors) = ask(&mut subscription, Some(1199));
            let new = seen.iter().position(|&n| n >= 1000).unwrap_or(seen.len());
            let at = format!("hot {hot}, {read} lines read");
            // It may see some of the lines that were cut, as long as it has them mapped; it sees all of the others.
            assert_eq!(seen[new..], (1000..1200).collect::<Vec<_>>(), "{at}");
            assert!(seen[..new].iter().copied().eq(read..read + new as u64), "{at}: {seen:?}");
            match errors.as_slice() {
                [] => assert_eq!(read + new as u64, 50, "{at}"),
                errors => assert_eq!(errors, [rewound(read + new as u64, 50)], "{at}"),
            }
        }
    }
}

/// The epoch was 1 again after each clean close, so that it named nobody.
#[test]
fn epochs_never_go_back() {
    let dir = directory();
    let mut last = 0;
    for turn in 0..12 {
        let (mut writer, recovery) =
            unitape_tape::Writer::open(dir.path(), common::ID, options(SEGMENT, None)).unwrap();
        assert!(recovery.epoch > last, "turn {turn}: epoch {} after {last}", recovery.epoch);
        last = recovery.epoch;
        common::append(&mut writer, 1, turn * 10, turn * 10 + 10);
        match turn % 4 {
            0 | 3 => writer.close().unwrap(),
            1 => drop(writer),
            _ => {
                drop(writer);
                other_boot(dir.path());
            }
        }
    }
}

/// A power loss can remove the lock, whose name nobody flushes: the tape passed for closed.
#[test]
fn a_lost_lock_does_not_make_a_clean_close() {
    let dir = directory();
    // All lines are in the memory of the machine: only the lock is lost.
    shortened_by(dir.path(), None, || {}, |_, _| {});
    std::fs::remove_file(dir.path().join("run/writer.lock")).unwrap();
    let (_, recovery) =
        unitape_tape::Writer::open(dir.path(), id(dir.path()), options(SEGMENT, None)).unwrap();
    assert!(!recovery.was_closed);
}

fn id(dir: &Path) -> unitape_tape::TapeId {
    unitape_tape::TapeManifest::load(dir).unwrap().id
}

/// A writer that has lost its lock, as on a machine that was set back to an earlier state, wrote on beside the next one.
#[test]
fn a_writer_that_is_not_the_newest_stops() {
    for close in [false, true] {
        let dir = directory();
        let mut old = open(dir.path(), None);
        old.put(0..10);
        old.make_durable();
        for lock in ["writer.lock", "recorder.lock"] {
            std::fs::remove_file(dir.path().join("run").join(lock)).unwrap();
        }
        let new = open(dir.path(), None);
        let end = new.end();
        // A segment at the latest, of 64 lines.
        let refused = if close { None } else { (0..1000).find_map(|n| old.try_put(n).err()) };
        let refused = match close {
            true => old.close().expect_err("an old writer closed the tape of a newer one"),
            false => {
                let refused = refused.expect("an old writer wrote a thousand lines beside a newer one");
                let again = (0..5).map(|n| old.try_put(n)).all(|again| again.is_err());
                assert!(again, "it continued after it was refused");
                refused
            }
        };
        assert!(refused.to_string().contains("fenced"), "{refused}");
        assert_eq!(new.end(), end);
        assert!(dir.path().join("run/writer.lock").exists(), "the newer one's lock was removed");
    }
}

/// The old writer's recorder said how far the newer one's tape is durable.
#[test]
fn a_recorder_of_an_old_writer_makes_nothing_durable() {
    let dir = directory();
    let mut old = open(dir.path(), None);
    old.put(0..10);
    old.make_durable();
    for lock in ["writer.lock", "recorder.lock"] {
        std::fs::remove_file(dir.path().join("run").join(lock)).unwrap();
    }
    let new = Publication::open(
        dir.path(),
        WriterOptions {
            backing: Backing::Hot { dir: Some(dir.path().join("hot")), window_segments: 4 },
            recorder: RecorderLocation::External,
            ..options(SEGMENT, None)
        },
    )
    .unwrap();
    // The old writer may have noticed it by now.
    if (10..20).all(|n| old.try_put(n).is_ok()) {
        let end = old.end();
        let waited = old.writer().wait_durable(end, std::time::Duration::from_secs(2));
        assert!(waited.is_err(), "an old writer made its lines durable");
    }
    drop(new);
}

/// A gate's reader that had dealt with more than the tape has let the writer go as far beyond it.
#[test]
fn a_gate_beyond_the_end_holds_at_the_end() {
    let gate = || Gate {
        reader: "risk".into(),
        ahead_bytes: 5 * LINE,
        policy: GatePolicy::Wait { timeout: std::time::Duration::from_millis(1) },
        holds_when_absent: true,
    };
    for alive in [false, true] {
        let dir = directory();
        let with_gate = || WriterOptions { gates: vec![gate()], ..options(SEGMENT, None) };
        let mut publication = Publication::open(dir.path(), with_gate()).unwrap();
        let mut handle = GateHandle::attach(dir.path(), "risk", Position(0)).unwrap();
        for n in 0..100 {
            if n == 50 {
                publication.make_durable();
            }
            publication.put(n..n + 1);
            handle.advance(publication.end());
        }
        drop(publication);
        let mut kept = Some(handle);
        if !alive {
            kept = None;
        }
        power_fails(dir.path(), 50 * LINE);
        let mut publication = Publication::open(dir.path(), with_gate()).unwrap();
        assert_eq!(publication.end(), Position(50 * LINE));
        let written = (1000..1100).take_while(|&n| publication.try_put(n).is_ok()).count();
        assert_eq!(written, 5, "alive {alive}: the writer left its reader behind");
        assert_eq!(publication.writer().gates()[0].position, Position(50 * LINE), "alive {alive}");
        // A reader that comes, or comes again, lets the writer continue.
        drop(kept);
        let mut handle = GateHandle::attach(dir.path(), "risk", Position(50 * LINE)).unwrap();
        handle.advance(publication.end());
        publication.put(2000..2005);
    }
}

/// Lines that a rewound name had still to read were once removed as if nobody needed them.
#[test]
fn retention_holds_from_where_a_name_continues() {
    let dir = directory();
    shortened(dir.path(), None, || acknowledge(dir.path(), "risk"));
    let mut publication = open(dir.path(), None);
    publication.put(1000..3000);
    publication.close().unwrap();
    let limits = RetentionLimits {
        bytes: Some(2 * SEGMENT),
        hold_for_cursors: Some(1 << 30),
        ..RetentionLimits::default()
    };
    retain(dir.path(), &limits, &RemovalOptions::default(), false).unwrap();
    let mut risk = Subscription::open_named(dir.path(), "risk", StartPosition::Oldest)
        .unwrap_or_else(|e| panic!("what the name has to read is gone: {e}"));
    let (seen, errors) = ask(&mut risk, None);
    assert_eq!(seen, (1000..3000).collect::<Vec<_>>());
    assert_eq!(errors, [rewound(100, 50)]);
}

/// Cursors of older libraries have no epoch: read as before, and where they are beyond the end, from there.
#[test]
fn a_cursor_without_an_epoch_is_read() {
    let dir = directory();
    let mut publication = open(dir.path(), None);
    publication.put(0..20);
    let store = |position: u64| {
        let mut text = [0; 64];
        text[..8].copy_from_slice(b"UNITCURS");
        text[8..16].copy_from_slice(&1u64.to_le_bytes());
        text[16..32].copy_from_slice(&id(dir.path()).0.to_le_bytes());
        text[32..40].copy_from_slice(&position.to_le_bytes());
        let crc = crc32c::crc32c(&text[..60]);
        text[60..].copy_from_slice(&crc.to_le_bytes());
        std::fs::create_dir_all(dir.path().join("run/cursors")).unwrap();
        std::fs::write(dir.path().join("run/cursors/old"), text).unwrap();
        Subscription::open_named(dir.path(), "old", StartPosition::Oldest)
    };
    assert_eq!(ask(&mut store(5 * LINE).unwrap(), None), ((5..20).collect(), vec![]));
    let mut beyond = store(90 * LINE).unwrap_or_else(|e| panic!("the name cannot be opened: {e}"));
    assert_eq!(ask(&mut beyond, None), (vec![], vec![rewound(90, 20)]));
    publication.put(20..30);
    assert_eq!(ask(&mut beyond, Some(29)), ((20..30).collect(), vec![]));
}

/// A damaged cursor must not let go of what others hold, nor a place that somebody set by hand.
#[test]
fn a_place_set_by_hand_is_of_the_epoch_it_was_set_in() {
    let dir = directory();
    shortened(dir.path(), None, || {
        let mut cursor = Cursor::open(dir.path(), "hand").unwrap();
        cursor.store(Position(80 * LINE)).unwrap();
        assert_eq!(cursor.load().unwrap(), Some(Position(80 * LINE)));
    });
    let mut publication = open(dir.path(), None);
    publication.put(1000..1100);
    let place = Cursor::open(dir.path(), "hand").unwrap().load().unwrap();
    assert_eq!(place, Some(Position(50 * LINE)), "who reads there misses what came at the cut");
    let named = Subscription::open_named(dir.path(), "hand", StartPosition::Oldest);
    let (seen, errors) = ask(&mut named.unwrap(), None);
    assert_eq!((seen.len(), errors), (100, vec![rewound(80, 50)]));
}

/// The error that stops is one that says which tape, and what to do.
#[test]
fn errors_of_a_tape_without_such_a_name_stay_as_they_were() {
    let dir = directory();
    let mut publication = open(dir.path(), None);
    publication.put(0..10);
    let beyond =
        Subscription::open(dir.path(), StartPosition::At(Position(20 * LINE))).map(drop).unwrap_err();
    assert!(matches!(beyond, Error::NoFrame(_)), "{beyond}");
}
