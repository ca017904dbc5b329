//! The ring and the farm under ThreadSanitizer (`cargo xtask test --only tsan`), and as a plain test without.
//!
//! A program with its own `main`: where the standard library is not instrumented, the test harness and the
//! channels of the standard library look like races, plain threads that are joined do not. Everything shared
//! here goes through our code; what is handed over lies behind a pointer, so that a missing edge between two
//! threads shows as a race on the bytes and not only as a wrong sum.

use unitape_ring::{BlockClaim, Farm, FarmOptions, PopError, PushError, WaitStrategy, Waiter, ring, run};

/// An error that such code once had: an index published too early, so that the other side reads a slot
/// that is still being written. TSan ends the process with an error when it sees the race.
fn main() {
    // A test runner that runs each test in a process of its own asks for their names first.
    let asks = |word: &str| std::env::args().any(|arg| arg == word);
    if asks("--list") {
        if !asks("--ignored") {
            println!("tsan: test");
        }
        return;
    }
    for capacity in [1, 2, 64] {
        hand_over_boxes(capacity);
    }
    for workers in [1, 2, 4] {
        number_blocks(workers);
    }
    println!("test result: ok. 6 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

const ITEMS: u64 = 20_000;

fn hand_over_boxes(capacity: usize) {
    let (mut producer, mut consumer) = ring::<Box<u64>>(capacity);
    let thread = std::thread::spawn(move || {
        let mut waiter = Waiter::new(WaitStrategy::Balanced);
        for number in 0..ITEMS {
            let mut item = Box::new(number);
            loop {
                match producer.try_push(item) {
                    Ok(()) => break waiter.reset(),
                    Err(PushError::Full(back)) => item = back,
                    Err(PushError::Closed(_)) => panic!("the consumer left early"),
                }
                waiter.wait();
            }
        }
    });
    let mut waiter = Waiter::new(WaitStrategy::Balanced);
    let mut next = 0;
    loop {
        match consumer.try_pop() {
            Ok(item) => {
                assert_eq!(*item, next, "out of order");
                next += 1;
                waiter.reset();
            }
            Err(PopError::Empty) => waiter.wait(),
            Err(PopError::Closed) => break,
        }
    }
    assert_eq!(next, ITEMS);
    thread.join().expect("the producer");
}

/// Blocks of three numbers; the sequencer's plain fields are written by each worker in its turn.
struct Numbers;

impl Farm for Numbers {
    type Worker = Vec<u64>;
    type Intake = u64;
    type Input = u64;
    type Block = u64;
    type Sequencer = Vec<u64>;
    type Plan = ();
    type Error = String;

    fn intake(&self, left: &mut u64, _: &mut Vec<u64>, claim: BlockClaim<'_>) -> Result<Option<u64>, String> {
        if *left == 0 {
            return Ok(None);
        }
        *left -= 1;
        Ok(Some(claim.index()))
    }

    fn work(&self, arena: &mut Vec<u64>, block: u64) -> Result<u64, String> {
        arena.clear();
        arena.extend([block; 3]);
        Ok(block)
    }

    fn sequence(&self, all: &mut Vec<u64>, arena: &mut Vec<u64>, block: u64) -> Result<(), String> {
        assert_eq!(all.len() as u64, block * 3, "out of order");
        all.extend_from_slice(arena);
        Ok(())
    }

    fn finish(&self, arena: &mut Vec<u64>, (): ()) -> Result<(), String> {
        arena.push(0);
        Ok(())
    }
}

fn number_blocks(workers: usize) {
    const BLOCKS: u64 = 5_000;
    let arenas = vec![Vec::new(); workers];
    let done = run(&Numbers, arenas, BLOCKS, Vec::new(), &FarmOptions::default()).expect("no stage fails");
    assert_eq!(done.sequencer.len() as u64, BLOCKS * 3);
    assert!(done.sequencer.iter().enumerate().all(|(at, block)| at as u64 / 3 == *block));
    assert_eq!(done.stats.blocks, BLOCKS);
}
