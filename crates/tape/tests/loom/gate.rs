//! Gates: what a reader did before it advanced comes before what the writer does then, and drops are counted whole.

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use unitape_model::Position;
use unitape_tape::loom_parts::gate::{self, place};
use unitape_tape::loom_parts::{SharedMemory, flaw};

use crate::{model, rejected};

/// The words of a gate, and memory of the reader's that the writer takes once it has seen the position.
struct Page {
    words: Vec<AtomicU64>,
    dealt_with: UnsafeCell<u64>,
}

// SAFETY: loom checks every access to the cell, which is what these tests are about.
unsafe impl Sync for Page {}
// SAFETY: as above.
unsafe impl Send for Page {}

impl SharedMemory for Page {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.words[at as usize / 8].load(order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.words[at as usize / 8].store(value, order);
    }

    unsafe fn fill(&self, _: u64, _: &[u8]) {
        unreachable!("a gate is words alone");
    }
}

fn page() -> Arc<Page> {
    let words = (0..=place::WAITS / 8).map(|_| AtomicU64::new(0)).collect();
    Arc::new(Page { words, dealt_with: UnsafeCell::new(0) })
}

/// A reader comes at 64 and advances to 128; the writer at 128 may write 64 bytes when it is there.
fn passing<const FLAW: u8>() {
    let page = page();
    let reader = {
        let page = page.clone();
        thread::spawn(move || {
            let came = gate::attach_reader::<FLAW>(&*page, Position(64));
            // SAFETY: loom objects if the writer has it now.
            page.dealt_with.with_mut(|n| unsafe { *n += 1 });
            gate::advance::<FLAW>(&*page, Position(128));
            came
        })
    };
    for _ in 0..2 {
        let (came, position) = gate::reader_state(&*page);
        assert!(came == 0 || (came == 1 && position >= Position(64)), "a position of before the reader came");
        if came == 1 && Position(128 + 64) <= gate::writer_limit(position, Position(128), 64, 64) {
            // SAFETY: loom objects if the reader has it now.
            page.dealt_with.with_mut(|n| assert_eq!(unsafe { *n }, 1));
            break;
        }
    }
    assert_eq!(reader.join().unwrap(), 1);
}

#[test]
fn the_writer_passes_behind_the_reader() {
    assert!(model(passing::<{ flaw::NONE }>) > 10);
}

#[test]
fn loom_rejects_a_position_that_is_told_relaxed() {
    assert!(rejected(passing::<{ flaw::RELAXED_POSITION }>));
}

/// Two drops beside a reader that asks.
fn dropping<const FLAW: u8>() {
    let page = page();
    let writer = {
        let page = page.clone();
        thread::spawn(move || {
            gate::drop_at::<FLAW>(&*page, Position(128), 64);
            gate::drop_at::<FLAW>(&*page, Position(192), 64);
        })
    };
    for _ in 0..2 {
        let seen = gate::dropped(&*page);
        assert!(seen.bytes >= 64 * seen.count, "fewer bytes than were counted: {seen:?}");
        assert!(
            seen.count == 0 || seen.first_position.0 == 128 && seen.last_position.0 >= 64 + 64 * seen.count,
            "{seen:?}"
        );
    }
    writer.join().unwrap();
    let seen = gate::dropped(&*page);
    assert_eq!((seen.count, seen.bytes, seen.first_position.0, seen.last_position.0), (2, 128, 128, 192));
}

#[test]
fn drops_are_counted_whole() {
    assert!(model(dropping::<{ flaw::NONE }>) > 10);
}

#[test]
fn loom_rejects_drops_that_are_counted_relaxed() {
    assert!(rejected(dropping::<{ flaw::RELAXED_COUNT }>));
}
