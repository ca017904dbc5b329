//! Claims, pads and the recorder's copy: a reader that sees a first word sees the frames.

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use unitape_model::{FrameHeader, LINE, Position, flags, frame::KIND_PAD};
use unitape_tape::loom_parts::lines::{self, HeaderWordState};
use unitape_tape::loom_parts::{SharedMemory, flaw};

use crate::{model, rejected};

/// Lines of a header word, which is atomic, and the word after it, which is plain memory that loom watches: an
/// access that is not ordered after the one before is an error, whatever it reads.
struct Lines(Vec<(AtomicU64, UnsafeCell<u64>)>);

// SAFETY: loom checks every access to the cells, which is what these tests are about.
unsafe impl Sync for Lines {}
// SAFETY: as above.
unsafe impl Send for Lines {}

impl Lines {
    fn new(count: usize) -> Arc<Self> {
        Arc::new(Self((0..count).map(|_| (AtomicU64::new(0), UnsafeCell::new(0))).collect()))
    }

    fn size(&self) -> u64 {
        (self.0.len() * LINE) as u64
    }

    fn payload(&self, at: u64) -> u64 {
        // SAFETY: the caller has seen the line committed; loom objects if that is no reason.
        self.0[at as usize / LINE].1.with(|word| unsafe { *word })
    }
}

impl SharedMemory for Lines {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        assert!(at.is_multiple_of(LINE as u64));
        self.0[at as usize / LINE].0.load(order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        assert!(at.is_multiple_of(LINE as u64));
        self.0[at as usize / LINE].0.store(value, order);
    }

    unsafe fn fill(&self, at: u64, bytes: &[u8]) {
        // The bytes of the second word of a line; the other six are not modelled.
        for (i, chunk) in bytes.chunks_exact(8).enumerate() {
            let word = at as usize + i * 8;
            if word % LINE == 8 {
                let value = u64::from_le_bytes(chunk.try_into().unwrap());
                // SAFETY: loom objects if someone else has the cell.
                self.0[word / LINE].1.with_mut(|cell| unsafe { *cell = value });
            }
        }
    }
}

const BASE: Position = Position(4096);

/// Frames of one line that carry the numbers, the last one ending the unit.
fn run(numbers: &[u64]) -> Vec<u8> {
    let mut run = vec![0; numbers.len() * LINE];
    for (i, number) in numbers.iter().enumerate() {
        let last = if i + 1 == numbers.len() { flags::LAST } else { 0 };
        FrameHeader::new_unstamped(20, last, 1).write(&mut run[i * LINE..]);
        run[i * LINE + 8..i * LINE + 16].copy_from_slice(&number.to_le_bytes());
    }
    run
}

/// As `Claim` does: everything but the first word, then the first word.
fn publish<const FLAW: u8>(memory: &Lines, at: u64, numbers: &[u64]) {
    let run = run(numbers);
    // SAFETY: the range is this claim's, within the lines.
    unsafe { lines::write_frames::<FLAW>(memory, BASE, at, &run, true) };
    lines::commit::<FLAW>(memory, BASE, at, FrameHeader::read(&run));
}

/// Reads what is there from line `from` on, as `Reader` does, and checks it; gives how many lines.
fn follow<const FLAW: u8>(memory: &Lines, from: u64, want: &[u64]) -> u64 {
    let mut at = from * LINE as u64;
    while at < memory.size() {
        match lines::header_state::<FLAW>(memory, BASE, memory.size(), at) {
            HeaderWordState::Frame(header) => {
                assert!(header.is_at(BASE.plus(at)));
                assert_eq!(memory.payload(at), want[at as usize / LINE], "a frame is not as it was written");
                at += header.len_bytes() as u64;
            }
            HeaderWordState::Pad => return u64::MAX,
            HeaderWordState::Nothing => break,
            HeaderWordState::Damage(header) => panic!("damage: {header:?}"),
        }
    }
    at / LINE as u64
}

/// Two claims, published by their threads in whatever order, and a reader at their heels.
fn two_claims<const FLAW: u8>() {
    let memory = Lines::new(3);
    let want = [10, 11, 12];
    let second = {
        let memory = memory.clone();
        thread::spawn(move || publish::<FLAW>(&memory, 2 * LINE as u64, &[12]))
    };
    let first = {
        let memory = memory.clone();
        thread::spawn(move || publish::<FLAW>(&memory, 0, &[10, 11]))
    };
    let mut at = 0;
    for _ in 0..2 {
        at = follow::<FLAW>(&memory, at, &want);
        assert_ne!(at, 1, "a claim was seen in part");
    }
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(follow::<FLAW>(&memory, at, &want), 3, "published claims are not all there");
}

#[test]
fn claims_are_seen_whole_and_in_order() {
    assert!(model(two_claims::<{ flaw::NONE }>) > 100);
}

#[test]
fn loom_rejects_a_commit_that_is_relaxed() {
    assert!(rejected(two_claims::<{ flaw::RELAXED_COMMIT }>));
}

#[test]
fn loom_rejects_a_look_that_is_relaxed() {
    assert!(rejected(two_claims::<{ flaw::RELAXED_LOOK }>));
}

#[test]
fn loom_rejects_a_first_word_that_is_not_held_back() {
    assert!(rejected(two_claims::<{ flaw::FIRST_WORD_FIRST }>));
}

/// A claim that crosses into the next segment: a pad that publishes it, stored last, and the frames after it, which
/// are in place before.
#[test]
fn a_pad_publishes_what_stands_in_the_next_segment() {
    let runs = model(|| {
        let (near, far) = (Lines::new(2), Lines::new(2));
        let writer = {
            let (near, far) = (near.clone(), far.clone());
            thread::spawn(move || {
                publish::<{ flaw::NONE }>(&near, 0, &[10]);
                let next = run(&[20, 21]);
                // SAFETY: the range is this claim's, within the lines.
                unsafe { lines::write_frames::<{ flaw::NONE }>(&*far, BASE, 0, &next, false) };
                let pad = FrameHeader::new_unstamped(KIND_PAD, 0, 0);
                lines::commit::<{ flaw::NONE }>(&*near, BASE, LINE as u64, pad);
            })
        };
        for _ in 0..2 {
            if follow::<{ flaw::NONE }>(&near, 0, &[10]) == u64::MAX {
                assert_eq!(
                    follow::<{ flaw::NONE }>(&far, 0, &[20, 21]),
                    2,
                    "a pad came before what it publishes"
                );
            }
        }
        writer.join().unwrap();
        assert_eq!(follow::<{ flaw::NONE }>(&near, 0, &[10]), u64::MAX);
    });
    assert!(runs > 10);
}

/// The recorder copies what it sees to the disk's segment, where readers follow as well.
fn recorded<const FLAW: u8>() {
    let (hot, disk) = (Lines::new(2), Lines::new(2));
    let want = [10, 11];
    let writer = {
        let hot = hot.clone();
        thread::spawn(move || {
            publish::<{ flaw::NONE }>(&hot, 0, &[10]);
            publish::<{ flaw::NONE }>(&hot, LINE as u64, &[11]);
        })
    };
    let recorder = {
        let (hot, disk) = (hot.clone(), disk.clone());
        thread::spawn(move || {
            let to = follow::<{ flaw::NONE }>(&hot, 0, &want);
            if to > 0 {
                // As the recorder has them: whole committed frames, stamped.
                let mut bytes = run(&want[..to as usize]);
                for line in 0..to as usize {
                    let at = line * LINE;
                    let header = FrameHeader::read(&bytes[at..]).with_stamp(BASE.plus(at as u64));
                    header.write(&mut bytes[at..]);
                    if line > 0 {
                        lines::stamp_header(&*disk, BASE, at as u64, header);
                    }
                }
                // SAFETY: the range lies in the lines, and only the recorder writes to the copy.
                unsafe { lines::copy_in::<FLAW>(&*disk, 0, &bytes) };
            }
        })
    };
    follow::<{ flaw::NONE }>(&disk, 0, &want);
    writer.join().unwrap();
    recorder.join().unwrap();
    follow::<{ flaw::NONE }>(&disk, 0, &want);
}

#[test]
fn the_copy_is_seen_whole() {
    assert!(model(recorded::<{ flaw::NONE }>) > 100);
}

#[test]
fn loom_rejects_a_copy_whose_first_word_is_relaxed() {
    assert!(rejected(recorded::<{ flaw::RELAXED_COMMIT }>));
}
