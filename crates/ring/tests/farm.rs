//! The farm against its obvious twin: a loop that takes one block after the other.
#![cfg(not(loom))]

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use proptest::prelude::*;
use unitape_ring::{BlockClaim, Error, Farm, FarmEnding, FarmOptions, FarmStage, WaitStrategy, run};

/// Gives every message its ordinal in the whole input, which only a farm that keeps order can.
#[derive(Default)]
struct Numbering {
    faults: Vec<(u64, FarmStage, Fault)>,
    /// first ordinal → the block's messages as `finish` put them there
    placed: Mutex<BTreeMap<u64, Vec<u64>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Error,
    Panic,
}

/// A worker's arena: the messages of the block under way.
#[derive(Default)]
struct Arena {
    block: u64,
    messages: Vec<u64>,
}

/// The sequencer: how far the ordinals are given, which blocks came by, what to hand out at the end.
#[derive(Default, Debug, PartialEq, Eq)]
struct Ordinals {
    next: u64,
    blocks: Vec<u64>,
    held: Vec<u64>,
}

impl Numbering {
    fn trip(&self, block: u64, stage: FarmStage) -> Result<(), String> {
        match self.faults.iter().find(|(b, s, _)| (*b, *s) == (block, stage)) {
            None => Ok(()),
            Some((.., Fault::Error)) => Err(format!("{stage} {block}")),
            Some((.., Fault::Panic)) => panic!("{stage} {block}"),
        }
    }
}

/// The content of a block: anything that depends on its number and place.
fn message(block: u64, i: u64) -> u64 {
    block << 32 | i
}

impl<'a> Farm for &'a Numbering {
    type Worker = Arena;
    type Intake = std::slice::Iter<'a, u64>;
    type Input = u64;
    type Block = u64;
    type Sequencer = &'a mut Ordinals;
    type Plan = u64;
    type Error = String;

    fn intake(
        &self,
        sizes: &mut Self::Intake,
        arena: &mut Arena,
        claim: BlockClaim<'_>,
    ) -> Result<Option<u64>, String> {
        self.trip(claim.index(), FarmStage::Intake)?;
        arena.block = claim.index();
        Ok(sizes.next().copied())
    }

    fn work(&self, arena: &mut Arena, size: u64) -> Result<u64, String> {
        self.trip(arena.block, FarmStage::Work)?;
        arena.messages.clear();
        arena.messages.extend((0..size).map(|i| message(arena.block, i)));
        Ok(size)
    }

    fn sequence(&self, ordinals: &mut Self::Sequencer, arena: &mut Arena, size: u64) -> Result<u64, String> {
        self.trip(arena.block, FarmStage::Sequence)?;
        let first = ordinals.next;
        ordinals.next += size;
        ordinals.blocks.push(arena.block);
        Ok(first)
    }

    fn finish(&self, arena: &mut Arena, first: u64) -> Result<(), String> {
        self.trip(arena.block, FarmStage::Finish)?;
        if !arena.messages.is_empty() {
            self.placed.lock().unwrap().insert(first, arena.messages.clone());
        }
        Ok(())
    }

    fn drain(
        &self,
        ordinals: &mut Self::Sequencer,
        arena: &mut Arena,
        _: FarmEnding,
    ) -> Result<Option<u64>, String> {
        self.trip(arena.block, FarmStage::Drain)?;
        let Some(held) = ordinals.held.pop() else { return Ok(None) };
        arena.messages.clear();
        arena.messages.push(held);
        ordinals.next += 1;
        Ok(Some(ordinals.next - 1))
    }
}

/// The twin: what a farm must answer, from one loop without threads.
#[derive(Debug, PartialEq)]
struct Expected {
    result: Result<Vec<u64>, (u64, FarmStage, String)>,
    sequenced: Vec<u64>,
}

fn serially(sizes: &[u64], held: &[u64], faults: &[(u64, FarmStage, Fault)]) -> Expected {
    let tape = Numbering { faults: faults.to_vec(), placed: Mutex::default() };
    let mut out = Vec::new();
    let mut sequenced = Vec::new();
    let stages = [FarmStage::Intake, FarmStage::Work, FarmStage::Sequence, FarmStage::Finish];
    let last = [FarmStage::Intake, FarmStage::Drain, FarmStage::Finish]; // the last only when something was held
    let last = &last[..if held.is_empty() { 2 } else { 3 }];
    for block in 0..=sizes.len() as u64 {
        let end = block == sizes.len() as u64;
        for stage in if end { last } else { &stages[..] } {
            if let Err(e) = tape.trip(block, *stage) {
                return Expected { result: Err((block, *stage, e)), sequenced };
            }
            if *stage == FarmStage::Sequence {
                sequenced.push(block);
            }
        }
        if !end {
            out.extend((0..sizes[block as usize]).map(|i| message(block, i)));
        }
    }
    out.extend(held.iter().rev());
    Expected { result: Ok(out), sequenced }
}

fn farmed(
    workers: usize,
    wait: WaitStrategy,
    sizes: &[u64],
    held: &[u64],
    faults: &[(u64, FarmStage, Fault)],
) -> (Expected, BTreeMap<u64, Vec<u64>>) {
    let tape = Numbering { faults: faults.to_vec(), placed: Mutex::default() };
    let mut ordinals = Ordinals { held: held.to_vec(), ..Default::default() };
    let arenas = (0..workers).map(|_| Arena::default()).collect();
    let options = FarmOptions { wait, ..Default::default() };
    let ran = run(&&tape, arenas, sizes.iter(), &mut ordinals, &options);
    let result = match ran {
        Ok(done) => {
            assert_eq!(done.stats.blocks, sizes.len() as u64);
            assert_eq!(done.stats.drained, held.len() as u64);
            assert_eq!((done.workers.len(), done.ending), (workers, FarmEnding::EndOfInput));
            assert!(done.intake.as_slice().is_empty());
            Ok(())
        }
        Err(Error::Stage { block, stage, error }) => Err((block, stage, error)),
        Err(other) => panic!("{other}"),
    };
    let placed = tape.placed.into_inner().unwrap();
    let result = result.map(|()| {
        let mut out = Vec::new();
        for (first, messages) in &placed {
            assert_eq!(*first, out.len() as u64, "a hole or an overlap");
            out.extend(messages);
        }
        out
    });
    (Expected { result, sequenced: ordinals.blocks }, placed)
}

fn stages() -> impl Strategy<Value = FarmStage> {
    prop::sample::select(vec![
        FarmStage::Intake,
        FarmStage::Work,
        FarmStage::Sequence,
        FarmStage::Finish,
        FarmStage::Drain,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A farm that loses a turn, or lets the faster worker go first, numbers messages differently at 2
    /// workers than at 1; a farm that reports the first error in time instead of in order gives a different
    /// error on every run.
    #[test]
    fn any_number_of_workers_does_what_one_loop_does(
        workers in 1usize..=8,
        wait in prop::sample::select(vec![WaitStrategy::Balanced, WaitStrategy::Park]),
        sizes in prop::collection::vec(0u64..40, 0..40),
        held in prop::collection::vec(any::<u64>(), 0..4),
        places in prop::collection::vec((0u64..45, stages()), 0..4),
    ) {
        let faults: Vec<_> = places.into_iter().map(|(block, stage)| (block, stage, Fault::Error)).collect();
        let expected = serially(&sizes, &held, &faults);
        let (got, placed) = farmed(workers, wait, &sizes, &held, &faults);
        prop_assert_eq!(&got.result, &expected.result);

        let count = expected.sequenced.len();
        prop_assert_eq!(&got.sequenced[..count], &expected.sequenced[..]);
        match &expected.result {
            Ok(_) => prop_assert_eq!(got.sequenced.len(), count),
            // A block fails to finish after it was sequenced; its W - 1 neighbours may have been as well.
            Err((_, FarmStage::Finish, _)) => prop_assert!(got.sequenced.len() < count + workers),
            Err(_) => prop_assert_eq!(got.sequenced.len(), count),
        }
        // Every block before the failed one is in its place.
        if let Err((failed, ..)) = expected.result {
            let whole = sizes[..(failed as usize).min(sizes.len())].iter().filter(|s| **s > 0).count();
            prop_assert!(placed.len() >= whole);
        }
    }

    /// A worker that panics while others wait for its turn would leave them waiting for ever.
    #[test]
    fn a_panic_in_any_stage_ends_the_run_and_reaches_the_caller(
        workers in 1usize..=8,
        block in 0u64..12,
        stage in stages(),
        other in 0u64..12,
    ) {
        let sizes = [3; 12];
        let block = if stage == FarmStage::Drain { 12 } else { block };
        let faults = [(block, stage, Fault::Panic), (other, FarmStage::Work, Fault::Panic)];
        let caught = catch_unwind(AssertUnwindSafe(|| farmed(workers, WaitStrategy::Balanced, &sizes, &[], &faults)));
        let Err(panic) = caught else { panic!("the panic was swallowed") };
        let said = panic.downcast_ref::<String>().expect("our message");
        let twin = catch_unwind(AssertUnwindSafe(|| serially(&sizes, &[], &faults)));
        let expected = twin.expect_err("the twin meets the same fault");
        prop_assert_eq!(said, expected.downcast_ref::<String>().expect("our message"));
    }
}

/// An endless source that only the stop flag ends, as live feeds are.
struct Endless<'a> {
    stop: &'a AtomicBool,
    stop_after: u64,
}

impl Farm for Endless<'_> {
    type Worker = ();
    type Intake = u64;
    type Input = u64;
    type Block = u64;
    type Sequencer = Vec<u64>;
    type Plan = ();
    type Error = String;

    fn intake(&self, claimed: &mut u64, _: &mut (), claim: BlockClaim<'_>) -> Result<Option<u64>, String> {
        if *claimed == self.stop_after {
            // Nothing arrives any more.
            while !claim.is_cancelled() {
                std::thread::yield_now();
            }
            return Ok(None);
        }
        *claimed += 1;
        Ok(Some(claim.index()))
    }
    fn work(&self, (): &mut (), input: u64) -> Result<u64, String> {
        Ok(input)
    }
    fn sequence(&self, seen: &mut Vec<u64>, (): &mut (), block: u64) -> Result<(), String> {
        seen.push(block);
        if block + 1 == self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
    fn finish(&self, (): &mut (), (): ()) -> Result<(), String> {
        Ok(())
    }
    fn drain(&self, seen: &mut Vec<u64>, (): &mut (), ending: FarmEnding) -> Result<Option<()>, String> {
        assert_eq!(ending, FarmEnding::Stopped);
        assert_eq!(seen.len() as u64, self.stop_after);
        Ok(None)
    }
}

/// A quiet live source would keep a stopped farm alive until its next message.
#[test]
fn the_stop_flag_ends_a_farm_whose_source_is_silent() {
    for workers in 1..=4 {
        let stop = AtomicBool::new(false);
        let farm = Endless { stop: &stop, stop_after: 100 };
        let options = FarmOptions { stop: Some(&stop), ..Default::default() };
        let done = run(&farm, vec![(); workers], 0, Vec::new(), &options).unwrap();
        assert_eq!(done.ending, FarmEnding::Stopped);
        assert_eq!(done.sequencer, (0..100).collect::<Vec<_>>());
        assert_eq!((done.intake, done.stats.blocks), (100, 100));
    }
}

/// The caller asks for no workers when a configuration says `workers = 0`.
#[test]
fn no_workers_is_an_error() {
    let tape = Numbering::default();
    let mut ordinals = Ordinals::default();
    let ran = run(&&tape, Vec::new(), [1].iter(), &mut ordinals, &FarmOptions::default());
    assert!(matches!(ran, Err(Error::NoWorkers)));
    assert_eq!(ordinals, Ordinals::default());
}

/// One worker must cost no thread, and every other one carries the name of the data that flows.
#[test]
fn worker_zero_is_the_caller_and_the_others_are_named() {
    struct Names(Mutex<BTreeMap<usize, (std::thread::ThreadId, Option<String>)>>);
    impl Farm for Names {
        type Worker = ();
        type Intake = ();
        type Input = ();
        type Block = ();
        type Sequencer = ();
        type Plan = ();
        type Error = String;
        fn start(&self, lane: usize, (): &mut ()) {
            let thread = std::thread::current();
            self.0.lock().unwrap().insert(lane, (thread.id(), thread.name().map(str::to_owned)));
        }
        fn intake(&self, (): &mut (), (): &mut (), _: BlockClaim<'_>) -> Result<Option<()>, String> {
            Ok(None)
        }
        fn work(&self, (): &mut (), (): ()) -> Result<(), String> {
            unreachable!("there is no block")
        }
        fn sequence(&self, (): &mut (), (): &mut (), (): ()) -> Result<(), String> {
            unreachable!("there is no block")
        }
        fn finish(&self, (): &mut (), (): ()) -> Result<(), String> {
            unreachable!("there is no plan")
        }
    }
    let farm = Names(Mutex::default());
    let options = FarmOptions { name: "decode", ..Default::default() };
    let done = run(&farm, vec![(); 3], (), (), &options).unwrap();
    assert_eq!((done.stats.blocks, done.ending), (0, FarmEnding::EndOfInput));
    let names = farm.0.into_inner().unwrap();
    assert_eq!(names[&0].0, std::thread::current().id());
    assert_eq!(names[&1].1.as_deref(), Some("decode[1]"));
    assert_eq!(names[&2].1.as_deref(), Some("decode[2]"));
}
