//! Gates: the writer is held up for a critical reader, and only for one that is there and is not far enough.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{ID, content, directory, options, unit};
use proptest::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use unitape_model::Position;
use unitape_tape::{
    Error, Gate, GateHandle, GatePolicy, Publication, Reader, StartPosition, TapeId, Writer, WriterOptions,
    verify,
};

const WAIT: GatePolicy = GatePolicy::Wait { timeout: Duration::from_millis(5) };

fn gate(reader: &str, ahead_bytes: u64, policy: GatePolicy) -> Gate {
    Gate { reader: reader.into(), ahead_bytes, policy, holds_when_absent: false }
}

fn gated(gates: Vec<Gate>) -> WriterOptions {
    WriterOptions { gates, ..options(64 << 10, None) }
}

fn open(dir: &Path, gates: Vec<Gate>) -> Writer {
    Writer::open(dir, ID, gated(gates)).unwrap().0
}

fn append(writer: &mut Writer, index: u64) -> Result<Position, Error> {
    let mut bytes = Vec::new();
    unit(1, index, &mut bytes);
    writer.append(&bytes)
}

/// Appends until the writer is refused; gives how many were appended, and the refusal.
fn fill(writer: &mut Writer, from: u64) -> (u64, Error) {
    for i in from..from + 100_000 {
        if let Err(e) = append(writer, i) {
            return (i - from, e);
        }
    }
    panic!("the writer was never held up");
}

/// A gate that was declared once held up a writer whose reader had never come, and for ever one whose reader died.
#[test]
fn only_a_reader_that_is_there_holds_the_writer_up() {
    let dir = directory();
    let mut writer = open(dir.path(), vec![gate("risk", 4096, WAIT)]);
    (0..100).for_each(|i| _ = append(&mut writer, i).unwrap());
    assert!(matches!(GateHandle::attach(dir.path(), "other", Position(0)), Err(Error::NoGate { .. })));
    assert!(matches!(GateHandle::attach(dir.path(), "../x", Position(0)), Err(Error::Option(_))));
    let mut handle = GateHandle::attach(dir.path(), "risk", writer.end()).unwrap();
    assert!(matches!(GateHandle::attach(dir.path(), "risk", Position(0)), Err(Error::Locked { .. })));
    let (count, error) = fill(&mut writer, 100);
    assert!(count > 0 && handle.is_heeded());
    let Error::Gated { reader, position, alive: true } = error else { panic!("{error}") };
    assert_eq!((reader.as_str(), position), ("risk", handle.position()));
    // As far ahead as was agreed, and one look further: at most twice.
    let ahead = writer.end().0 - handle.position().0;
    assert!((2048..=8192).contains(&ahead), "{ahead}");
    assert!(writer.gates()[0].alive && writer.gates()[0].wait_count > 0);
    handle.advance(writer.end());
    handle.advance(Position(0)); // nothing new
    let (_, error) = fill(&mut writer, 100 + count);
    assert!(matches!(error, Error::Gated { alive: true, .. }));
    assert!(writer.end().0 - handle.position().0 <= 4096);
    drop(handle);
    assert!(!writer.gates()[0].alive);
    // The same units again would not verify: refused units are not on the tape.
    (0..100).for_each(|i| _ = append(&mut writer, i).unwrap());
    writer.close().unwrap();
    assert_eq!(common::left_in_run(dir.path()), ["lineage"]);
    assert!(verify(dir.path()).unwrap().is_intact());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Against the obvious twin, which computes for each unit whether it may be appended: with readers that are
    /// heeded, exactly the units that would be too far ahead of one of them are dropped, and counted where.
    #[test]
    fn drops_are_those_of_the_twin(
        ahead in (64u64..4000, 64u64..4000),
        steps in proptest::collection::vec((1u64..12, 0u64..3, 0u64..2000), 1..40),
    ) {
        let dir = directory();
        let gates = vec![gate("a", ahead.0, GatePolicy::Drop), gate("b", ahead.1, GatePolicy::Drop)];
        let mut writer = open(dir.path(), gates);
        let at = Position(0);
        let mut handles = ["a", "b"].map(|name| GateHandle::attach(dir.path(), name, at).unwrap());
        let (mut index, mut dropped) = (0, [(0, 0, 0, 0); 2]);
        for (count, which, by) in steps {
            for _ in 0..count {
                let mut bytes = Vec::new();
                unit(1, index, &mut bytes);
                index += 1;
                let (end, length) = (writer.end().0, bytes.len() as u64);
                let closed = [ahead.0, ahead.1].iter().zip(&handles).position(|(ahead, handle)| {
                    let position = handle.position().0;
                    end + length > position + ahead && position < end
                });
                // A segment that ends in between moves the end by its pad, which the twin sees at the next unit.
                match (writer.append(&bytes), closed) {
                    (Ok(_), None) => {}
                    (Err(Error::Dropped { reader, position, dropped: count }), Some(i)) => {
                        prop_assert_eq!((reader.as_str(), position.0), (["a", "b"][i], end));
                        let sum = &mut dropped[i];
                        *sum = (sum.0 + 1, sum.1 + length, if sum.0 == 0 { end } else { sum.2 }, end);
                        prop_assert_eq!(count, sum.0);
                    }
                    (got, closed) => prop_assert!(false, "{got:?}, the twin says {closed:?}"),
                }
            }
            if which < 2 {
                let handle = &mut handles[which as usize];
                handle.advance(Position((handle.position().0 + by / 64 * 64).min(writer.end().0)));
            }
            for (handle, (i, standing)) in handles.iter().zip(writer.gates().into_iter().enumerate()) {
                let reported = handle.dropped();
                prop_assert_eq!(reported, standing.drops);
                let reported = (reported.count, reported.bytes, reported.first_position.0, reported.last_position.0);
                prop_assert_eq!(reported, dropped[i]);
            }
        }
    }
}

/// A gate that was required and whose reader was away once let the writer pass, and after a restart forgot where
/// the reader was.
#[test]
fn a_required_reader_is_waited_for_also_while_it_is_away() {
    let dir = directory();
    let gates = vec![Gate { holds_when_absent: true, ..gate("audit", 2048, WAIT) }];
    let mut writer = open(dir.path(), gates.clone());
    let (count, error) = fill(&mut writer, 0);
    assert!(matches!(error, Error::Gated { alive: false, position: Position(0), .. }), "{error}");
    assert!(writer.end().0 <= 2048);
    writer.close().unwrap();
    let mut writer = open(dir.path(), gates);
    assert!(matches!(append(&mut writer, count), Err(Error::Gated { alive: false, .. })));
    let mut handle = GateHandle::attach(dir.path(), "audit", Position(0)).unwrap();
    assert!(matches!(append(&mut writer, count), Err(Error::Gated { alive: true, .. })));
    handle.advance(writer.end());
    append(&mut writer, count).unwrap();
    drop(handle);
    assert!(matches!(fill(&mut writer, count + 1).1, Error::Gated { alive: false, .. }));
    // No longer declared, it is nobody's.
    drop(writer);
    let writer = open(dir.path(), vec![]);
    assert!(!dir.path().join("run/gates").exists());
    writer.close().unwrap();
}

/// A writer that waits continues as soon as the reader does, and a reader outlives its writer.
#[test]
fn the_writer_waits_for_a_slow_reader_and_nothing_is_lost() {
    let dir = directory();
    let patient = GatePolicy::Wait { timeout: Duration::from_secs(60) };
    let mut writer = open(dir.path(), vec![gate("slow", 2048, patient)]);
    let handle = GateHandle::attach(dir.path(), "slow", Position(0)).unwrap();
    let total = 3000;
    std::thread::scope(|s| {
        let reader = s.spawn(|| {
            let mut handle = handle;
            let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
            let mut units = 0;
            while units < total {
                assert!(reader.wait(Duration::from_secs(60)).unwrap());
                while let Some(frame) = reader.next().unwrap() {
                    units += u64::from(frame.header.is_last());
                }
                handle.advance(reader.position());
            }
            handle
        });
        for i in 0..total {
            append(&mut writer, i).unwrap();
        }
        let mut handle = reader.join().unwrap();
        assert_eq!(handle.dropped(), unitape_tape::GateDrops::default());
        assert!(writer.gates()[0].wait_count > 0);
        // The next writer finds the reader where it is.
        let end = writer.end();
        writer.close().unwrap();
        assert!(!handle.is_heeded());
        let mut writer = open(dir.path(), vec![gate("slow", 2048, WAIT)]);
        assert!(
            matches!(fill(&mut writer, total).1, Error::Gated { alive: true, position, .. } if position == end)
        );
        assert!(handle.is_heeded());
        handle.advance(writer.end());
        append(&mut writer, 0).unwrap();
    });
}

/// Not a test of its own: a reader that attaches and then does nothing.
#[test]
fn child() {
    let Ok(dir) = std::env::var("UNITAPE_GATE") else { return };
    let _handle = GateHandle::attach(Path::new(&dir), "risk", Position(0)).unwrap();
    std::fs::write(Path::new(&dir).join("attached"), "").unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Ends with the test.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stopped reader is alive and holds the writer up; a killed one must not, however it died.
#[test]
fn stopped_readers_hold_the_writer_up_and_killed_ones_do_not() {
    let dir = directory();
    let mut writer = open(dir.path(), vec![gate("risk", 1024, WAIT)]);
    let mut next = 0;
    for round in 0..4 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--nocapture"])
            .env("UNITAPE_GATE", dir.path())
            .stdout(Stdio::null());
        let mut child = Victim(command.spawn().unwrap());
        let since = Instant::now();
        while !dir.path().join("attached").exists() {
            assert!(since.elapsed() < Duration::from_secs(180), "the reader never came");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(writer.gates()[0].alive);
        std::fs::remove_file(dir.path().join("attached")).unwrap();
        kill_process(Pid::from_child(&child.0), Signal::STOP).unwrap();
        let (count, error) = fill(&mut writer, next);
        next += count;
        assert!(matches!(error, Error::Gated { alive: true, .. }), "round {round}: {error}");
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        for _ in 0..20 {
            append(&mut writer, next).unwrap();
            next += 1;
        }
    }
    writer.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Drafts, batches and claims go through the gate as appends do, and leave the tape as without those refused.
#[test]
fn every_way_of_writing_goes_through_the_gate() {
    let dir = directory();
    let mut publication =
        Publication::open(dir.path(), gated(vec![gate("risk", 256, GatePolicy::Drop)])).unwrap();
    let mut handle = GateHandle::attach(dir.path(), "risk", Position(0)).unwrap();
    for _ in 0..4 {
        publication.offer(1, &[1; 48]).unwrap();
    }
    assert!(matches!(publication.offer(1, &[2; 48]), Err(Error::Dropped { dropped: 1, .. })));
    assert!(matches!(publication.claim(1, 48).map(|_| ()), Err(Error::Dropped { dropped: 2, .. })));
    let refused = publication.writer().claim(64, |_| (0, 0), 1).map(|_| ());
    assert!(matches!(refused, Err(Error::Dropped { dropped: 3, .. })));
    handle.advance(Position(128));
    let mut batch = publication.batch();
    batch.push(1, &[3; 48]).unwrap();
    batch.push(1, &[3; 48]).unwrap();
    assert!(matches!(
        batch.push(1, &[4; 48]),
        Err(Error::Dropped { dropped: 4, position: Position(256), .. })
    ));
    batch.commit().unwrap();
    assert_eq!((handle.dropped().count, handle.dropped().bytes), (4, 4 * 64));
    // Longer than it may be ahead: when the reader has dealt with all.
    assert!(publication.offer(1, &[5; 1000]).is_err());
    handle.advance(publication.writer().end());
    publication.offer(1, &[5; 1000]).unwrap();
    drop(handle);
    publication.close().unwrap();
    assert!(verify(dir.path()).unwrap().is_intact());
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let mut seen = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        seen.push(frame.message().unwrap().bytes[0]);
    }
    assert_eq!(seen, [1, 1, 1, 1, 3, 3, 5]);
}

/// A gate of another tape once made the writer wait for positions that were never its own.
#[test]
fn foreign_and_damaged_gates_are_named() {
    let dir = directory();
    let gates = || vec![gate("risk", 1024, WAIT)];
    let path = dir.path().join("run/gates/risk");
    drop(open(dir.path(), gates()));
    let good = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let ours = GateHandle::attach(dir.path(), "risk", Position(0)).unwrap_err();
        let theirs = Writer::open(dir.path(), ID, gated(gates())).unwrap_err();
        assert_eq!(ours.to_string(), theirs.to_string());
        theirs
    };
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        bad
    };
    assert!(matches!(refused(&with(0, 0)), Error::Damage { offset: 0, .. }));
    assert!(matches!(refused(&with(8, 7)), Error::ForeignVersion { version: 7, .. }));
    assert!(matches!(refused(&with(20, 1)), Error::Damage { offset: 60, .. }));
    assert!(matches!(refused(&good[..100]), Error::Damage { .. }));
    let other = directory();
    drop(Writer::open(other.path(), TapeId(9), gated(gates())).unwrap());
    let foreign = std::fs::read(other.path().join("run/gates/risk")).unwrap();
    assert!(matches!(refused(&foreign), Error::ForeignTape { tape_id: TapeId(9), .. }));
    std::fs::remove_file(&path).unwrap();
    open(dir.path(), gates()).close().unwrap();
    for wrong in
        [vec![gate("", 64, WAIT)], vec![gate("a", 63, WAIT)], vec![gate("a", 64, WAIT), gate("a", 64, WAIT)]]
    {
        assert!(matches!(Writer::open(dir.path(), ID, gated(wrong)), Err(Error::Option(_))));
    }
}

/// Gates are none of the tape's bytes: with readers that keep up, the tape is that of a writer without any.
#[test]
fn a_tape_with_gates_equals_one_without() {
    let (one, two) = (directory(), directory());
    let mut plain = open(one.path(), vec![]);
    let mut held = open(two.path(), vec![gate("risk", 8192, WAIT)]);
    let mut handle = GateHandle::attach(two.path(), "risk", Position(0)).unwrap();
    for i in 0..1000 {
        assert_eq!(append(&mut plain, i).unwrap(), append(&mut held, i).unwrap());
        handle.advance(held.end());
    }
    drop(handle);
    plain.close().unwrap();
    held.close().unwrap();
    assert!(content(one.path()) == content(two.path()));
}
