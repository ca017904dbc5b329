//! The ring tape: whatever a reader is given is one frame as it was written, and what it loses is counted.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use unitape_model::{FrameHeader, LINE, Position, flags};
use unitape_tape::loom_parts::ring::{
    RingGeometry, RingReadOutcome, RingReader, RingWriter, UnitMark, place,
};
use unitape_tape::loom_parts::{SharedMemory, flaw};

use crate::{model, rejected};

/// Eight lines of a header word and one word of payload, and the words of control. The other six words of a line
/// are not modelled: they are zero and stay it.
struct Words(Vec<Option<AtomicU64>>);

const SHAPE: RingGeometry = RingGeometry {
    data_at: 768,
    capacity: 8 * LINE as u64,
    step: LINE as u64,
    unit_max: 2 * LINE as u64,
    marks: 16,
};

impl Words {
    fn shared(shape: RingGeometry) -> Shared {
        let is_modelled = |at: u64| match at {
            place::INTENT | place::END => true,
            place::MARKS..768 => true,
            _ => at >= shape.data_at && at % LINE as u64 <= 8,
        };
        let words = (0..shape.data_at + shape.capacity).step_by(8);
        Shared(Arc::new(Self(words.map(|at| is_modelled(at).then(|| AtomicU64::new(0))).collect())))
    }
}

/// The words, as the threads share them.
#[derive(Clone)]
struct Shared(Arc<Words>);

impl SharedMemory for Shared {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.0.0[at as usize / 8].as_ref().map_or(0, |word| word.load(order))
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        if let Some(word) = &self.0.0[at as usize / 8] {
            word.store(value, order);
        }
    }

    unsafe fn fill(&self, _: u64, _: &[u8]) {
        unreachable!("the ring fills nothing but by words");
    }

    fn fence(order: Ordering) {
        loom::sync::atomic::fence(order);
    }
}

/// A frame of this many lines that carries its number in the first.
fn unit(number: u64, lines: u16) -> Vec<u8> {
    let mut unit = vec![0; lines as usize * LINE];
    FrameHeader::new_unstamped(20, flags::LAST, lines).write(&mut unit);
    for line in unit.chunks_exact_mut(LINE) {
        line[8..16].copy_from_slice(&(number + 100).to_le_bytes());
    }
    unit
}

const START: UnitMark = UnitMark { position: Position(0), ordinal: 0 };

/// Units of these lines are there when a reader begins at one of them and looks a few times, while the writer
/// adds others.
struct Case {
    before: &'static [u16],
    from: u64,
    during: &'static [u16],
    looks: u32,
}

fn run<const FLAW: u8>(case: &Case) {
    let words = Words::shared(SHAPE);
    let mut writer = RingWriter::<Shared, FLAW>::begin(words.clone(), SHAPE, START);
    let mut number = 0;
    for &lines in case.before {
        writer.append(&unit(number, lines), 1);
        number += 1;
    }
    let mut reader = RingReader::<Shared, FLAW>::open(words.clone(), SHAPE).expect("marks are there");
    while reader.next_mark().ordinal < case.from {
        assert!(matches!(reader.next(None), RingReadOutcome::Frame(_)));
    }
    let from = reader.next_mark();
    let during = case.during;
    drop(writer);
    // The next writer: what the first one knew it finds again. Not in its thread: loom remembers one access of a
    // word, and would forget the reader's look over this one's.
    let mut writer = RingWriter::<Shared, FLAW>::recover(words, SHAPE).expect("a whole ring");
    let thread = thread::spawn(move || {
        for (i, &lines) in during.iter().enumerate() {
            writer.append(&unit(number + i as u64, lines), 1);
        }
    });
    let (mut lost, mut given) = (0, 0);
    let mut read = |reader: &mut RingReader<Shared, FLAW>| {
        let at = reader.next_mark();
        let mut buffer = Vec::new();
        match reader.next(Some(&mut buffer)) {
            RingReadOutcome::Frame(header) => {
                let lines = buffer.iter().skip(1).step_by(LINE / 8);
                assert!(
                    lines.clone().all(|&n| n == at.ordinal + 100),
                    "{at:?} is not what was written: {buffer:?}"
                );
                assert_eq!(lines.count(), usize::from(header.lines()));
                given += 1;
                true
            }
            RingReadOutcome::Nothing => false,
            RingReadOutcome::Overrun => {
                let to = reader.oldest().expect("marks are there");
                assert!(to.position > at.position, "overrun, and nothing was lost");
                lost += to.ordinal - at.ordinal;
                // A wrong ordinal shows with the next frame.
                reader.move_to(to);
                true
            }
            RingReadOutcome::Damage(header) => panic!("damage: {header:?}"),
        }
    };
    for _ in 0..case.looks {
        read(&mut reader);
    }
    thread.join().unwrap();
    while read(&mut reader) {}
    assert_eq!(from.ordinal + given + lost, number + during.len() as u64, "not all is accounted for");
}

/// A reader at the end, where the writer continues.
const AT_THE_HEELS: Case = Case { before: &[1], from: 1, during: &[1, 1, 1], looks: 4 };
/// A reader in the middle of what the writer overwrites.
const OVERTAKEN: Case = Case { before: &[1; 6], from: 1, during: &[2, 2], looks: 3 };
/// A reader in the lap before, and a writer that pads and goes round.
const ROUND: Case = Case { before: &[1, 2, 2, 2], from: 1, during: &[2, 1, 1], looks: 2 };

#[test]
fn a_reader_at_the_heels_gets_what_was_written() {
    assert!(model(|| run::<{ flaw::NONE }>(&AT_THE_HEELS)) > 20);
}

#[test]
fn a_reader_that_is_overtaken_notices() {
    assert!(model(|| run::<{ flaw::NONE }>(&OVERTAKEN)) > 100);
    assert!(model(|| run::<{ flaw::NONE }>(&ROUND)) > 100);
}

/// The writer goes round twice beside one look for the oldest unit, so that the mark is used again meanwhile.
fn marks<const FLAW: u8>() {
    const SMALL: RingGeometry =
        RingGeometry { capacity: 4 * LINE as u64, unit_max: LINE as u64, marks: 8, ..SHAPE };
    let words = Words::shared(SMALL);
    let mut writer = RingWriter::<Shared, FLAW>::begin(words.clone(), SMALL, START);
    (0..4).for_each(|n| _ = writer.append(&unit(n, 1), 1));
    let thread = thread::spawn(move || {
        (4..10).for_each(|n| _ = writer.append(&unit(n, 1), 1));
    });
    let at = RingReader::<Shared, FLAW>::open(words, SMALL).expect("marks are there").next_mark();
    assert_eq!(at.position.0 / LINE as u64, at.ordinal, "a mark's ordinal is another unit's");
    thread.join().unwrap();
}

#[test]
fn marks_that_are_used_again_are_told_apart() {
    assert!(model(marks::<{ flaw::NONE }>) > 100);
}

#[test]
fn loom_rejects_marks_that_are_checked_without_a_fence() {
    assert!(rejected(marks::<{ flaw::NO_READ_FENCE }>));
}

#[test]
fn loom_rejects_a_ring_that_commits_relaxed() {
    assert!(rejected(|| run::<{ flaw::RELAXED_COMMIT }>(&AT_THE_HEELS)));
}

#[test]
fn loom_rejects_a_ring_whose_reader_looks_relaxed() {
    assert!(rejected(|| run::<{ flaw::RELAXED_LOOK }>(&AT_THE_HEELS)));
}

#[test]
fn loom_rejects_an_intent_that_is_published_after_the_write() {
    assert!(rejected(|| run::<{ flaw::LATE_INTENT }>(&OVERTAKEN)));
}

#[test]
fn loom_rejects_an_intent_without_a_fence() {
    assert!(rejected(|| run::<{ flaw::NO_WRITE_FENCE }>(&OVERTAKEN)));
}

#[test]
fn loom_rejects_a_check_without_a_fence() {
    assert!(rejected(|| run::<{ flaw::NO_READ_FENCE }>(&OVERTAKEN)));
}

#[test]
fn loom_rejects_a_check_before_the_copy() {
    assert!(rejected(|| run::<{ flaw::EARLY_CHECK }>(&OVERTAKEN)));
}

#[test]
fn loom_rejects_an_old_lap_left_behind_the_end() {
    assert!(rejected(|| run::<{ flaw::NO_ZERO }>(&OVERTAKEN)));
}
