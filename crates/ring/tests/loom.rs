//! Rings and farm under loom: every interleaving of a few threads, with every value that the memory model
//! allows a load to return. Run with
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p unitape-ring --release --test loom
//! ```
//!
//! Both the ring and the farm have a copy with one ordering taken away; loom must reject it, or these tests
//! would prove nothing about the sound ones.
#![cfg(loom)]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use loom::{cell::UnsafeCell, sync::Arc, thread};
use unitape_ring::{
    BlockClaim, Consumer, Error, Farm, FarmEnding, FarmOptions, FarmStage, PopError, Producer, PushError,
    loom_parts::{Scheduler, conclude},
    ring,
    spsc::broken_ring,
};

/// Preemptions per run: three are enough for every known failure of such code, and bound the time. Answers
/// how many interleavings there were; a model whose threads never meet has one.
fn model(f: impl Fn() + Send + Sync + 'static) -> usize {
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        f();
    });
    runs.load(Ordering::Relaxed)
}

/// Whether loom rejects `f`.
fn rejected(f: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| model(f))).is_err()
}

/// Three items through two slots, so that the ring wraps and is full once, then the producer is dropped.
fn three_items<const SOUND: bool>(
    (mut producer, mut consumer): (Producer<Box<u32>, SOUND>, Consumer<Box<u32>, SOUND>),
) {
    let sender = thread::spawn(move || {
        for n in 0..3 {
            let mut item = Box::new(n);
            while let Err(PushError::Full(back)) = producer.try_push(item) {
                item = back;
                thread::yield_now();
            }
        }
    });
    let mut expected = 0;
    loop {
        match consumer.try_pop() {
            Ok(item) => {
                assert_eq!(*item, expected);
                expected += 1;
            }
            Err(PopError::Empty) => thread::yield_now(),
            Err(PopError::Closed) => break,
        }
    }
    assert_eq!(expected, 3, "an item pushed before closing was lost");
    sender.join().unwrap();
}

/// An item seen before its bytes, or a slot filled before it was read.
#[test]
fn ring_passes_items_whole() {
    assert!(model(|| three_items(ring(2))) > 100);
}

/// The index of a batch is published once for all its items.
#[test]
fn ring_passes_batches_whole() {
    model(|| {
        let (mut producer, mut consumer) = ring::<Box<u32>>(2);
        let sender = thread::spawn(move || {
            let mut items = (0..3).map(Box::new);
            let mut sent = 0;
            while sent < 3 {
                match producer.push_batch(&mut items) {
                    0 => thread::yield_now(),
                    n => sent += n,
                }
            }
        });
        let mut expected = 0;
        while expected < 3 {
            let popped = consumer.pop_batch(2, |item| {
                assert_eq!(*item, expected);
                expected += 1;
            });
            if popped == 0 {
                thread::yield_now();
            }
        }
        sender.join().unwrap();
    });
}

/// Both ends go at once, with an item inside: loom's Arc reports a leak, the Box a double drop.
#[test]
fn ring_ends_may_go_in_any_order() {
    model(|| {
        let (mut producer, consumer) = ring::<Box<u32>>(2);
        let sender = thread::spawn(move || producer.try_push(Box::new(1)).is_ok());
        drop(consumer);
        sender.join().unwrap();
    });
}

#[test]
fn loom_rejects_the_ring_that_publishes_without_release() {
    assert!(rejected(|| three_items(broken_ring(2))), "loom accepts a broken ring");
}

/// Blocks of one message. The states are plain memory that loom watches: an access that is not ordered after
/// the one before is an error, whatever it reads.
struct Ordinals {
    blocks: u64,
    fault: Option<(u64, FarmStage)>,
    /// Written in `finish` at the place that `sequence` gave, as the tape is.
    places: Vec<UnsafeCell<u64>>,
}

// SAFETY: each place is written by the one block that was given it, and read after all lanes have ended.
unsafe impl Sync for Ordinals {}

impl Ordinals {
    fn trip(&self, block: u64, stage: FarmStage) -> Result<(), ()> {
        if self.fault == Some((block, stage)) { Err(()) } else { Ok(()) }
    }
}

/// State behind a turnstile, watched by loom.
struct Watched(UnsafeCell<u64>);

impl Watched {
    fn take_next(&mut self) -> u64 {
        // SAFETY: `&mut self`.
        self.0.with_mut(|n| unsafe {
            *n += 1;
            *n - 1
        })
    }

    fn get(&self) -> u64 {
        // SAFETY: `&self` of a type that no other thread holds now.
        self.0.with(|n| unsafe { *n })
    }
}

impl Farm for Ordinals {
    type Worker = u64;
    type Intake = Watched;
    type Input = u64;
    type Block = u64;
    type Sequencer = Watched;
    type Plan = u64;
    type Error = ();

    fn intake(
        &self,
        claimed: &mut Watched,
        block: &mut u64,
        claim: BlockClaim<'_>,
    ) -> Result<Option<u64>, ()> {
        self.trip(claim.index(), FarmStage::Intake)?;
        if claimed.get() == self.blocks {
            return Ok(None);
        }
        *block = claimed.take_next();
        assert_eq!(*block, claim.index(), "claims out of order");
        Ok(Some(*block))
    }

    fn work(&self, _: &mut u64, input: u64) -> Result<u64, ()> {
        self.trip(input, FarmStage::Work)?;
        Ok(input)
    }

    fn sequence(&self, next: &mut Watched, _: &mut u64, block: u64) -> Result<u64, ()> {
        self.trip(block, FarmStage::Sequence)?;
        let place = next.take_next();
        assert_eq!(place, block, "sequenced out of order");
        Ok(place)
    }

    fn finish(&self, block: &mut u64, place: u64) -> Result<(), ()> {
        self.trip(*block, FarmStage::Finish)?;
        // SAFETY: the sequencer gives a place once.
        self.places[place as usize].with_mut(|slot| unsafe { *slot = *block + 100 });
        Ok(())
    }

    fn drain(&self, next: &mut Watched, block: &mut u64, ending: FarmEnding) -> Result<Option<u64>, ()> {
        assert_eq!(ending, FarmEnding::EndOfInput);
        if next.get() > self.blocks {
            return Ok(None);
        }
        assert_eq!(next.get(), self.blocks, "drained before the last block was sequenced");
        *block = self.blocks;
        Ok(Some(next.take_next()))
    }
}

/// Two lanes, three blocks and one plan from the drain.
fn two_workers<const SOUND: bool>(fault: Option<(u64, FarmStage)>) {
    let blocks = 3;
    let places = (0..=blocks).map(|_| UnsafeCell::new(0)).collect();
    let farm = Arc::new(Ordinals { blocks, fault, places });
    let start = || Watched(UnsafeCell::new(0));
    let (scheduler, mut lanes) = Scheduler::<Ordinals, SOUND>::new(vec![0; 2], start(), start());
    let scheduler = Arc::new(scheduler);

    let mut second = lanes.pop().unwrap();
    let mut first = lanes.pop().unwrap();
    let thread = {
        let (farm, scheduler) = (farm.clone(), scheduler.clone());
        thread::spawn(move || {
            scheduler.run_worker(&farm, &mut second, &FarmOptions::default());
            drop(scheduler);
            second
        })
    };
    scheduler.run_worker(&farm, &mut first, &FarmOptions::default());
    let second = thread.join().unwrap();

    let scheduler = Arc::try_unwrap(scheduler).ok().expect("the thread has dropped its own");
    // SAFETY: both lanes have ended, nobody writes any more.
    let placed = |i: usize| farm.places[i].with(|slot| unsafe { *slot });
    match (fault, conclude(scheduler, vec![first, second])) {
        (None, Ok(done)) => {
            assert_eq!((done.stats.blocks, done.stats.drained), (3, 1));
            assert_eq!((done.intake.get(), done.sequencer.get()), (3, 4));
            for i in 0..4 {
                assert_eq!(placed(i), i as u64 + 100);
            }
        }
        (Some(expected), Err(Error::Stage { block, stage, .. })) => {
            assert_eq!((block, stage), expected);
            for i in 0..block as usize {
                assert_eq!(placed(i), i as u64 + 100, "a block before the failed one did not finish");
            }
        }
        (fault, _) => panic!("wrong ending for {fault:?}"),
    }
}

#[test]
fn farm_keeps_order_and_ends() {
    assert!(model(|| two_workers::<true>(None)) > 100);
}

/// A failed block must neither let a later one pass nor leave it waiting (loom reports a deadlock as a run
/// without end).
#[test]
fn farm_stops_behind_an_error_in_any_stage() {
    for stage in [FarmStage::Intake, FarmStage::Work, FarmStage::Sequence, FarmStage::Finish] {
        assert!(model(move || two_workers::<true>(Some((1, stage)))) > 10);
    }
}

#[test]
fn loom_rejects_the_turnstile_that_is_left_without_release() {
    assert!(rejected(|| two_workers::<false>(None)), "loom accepts a broken turnstile");
}
