//! The ordered parallel farm: many cores work on blocks, and decisions that depend on order are made in block order.
//!
//! ```text
//!              intake turnstile              sequencing turnstile
//!              (claims, in order)            (ids, positions, in order)
//!  worker 0  ──[ intake 0 ]── work 0 ─────────[ sequence 0 ]── finish 0 ──▶ takes block 2
//!  worker 1      ──[ intake 1 ]── work 1 ───────────[ sequence 1 ]── finish 1 ──▶ takes block 3
//!                   serial      parallel            serial           parallel
//! ```
//!
//! Block *i* belongs to worker *i mod W* from intake to finish, on one thread: its bytes never move to
//! another core. A worker takes block *i + W* only after it has finished block *i*, so at most W blocks are
//! under way and every arena, queue and window of a farm is bounded by W blocks without a queue to bound.
//!
//! **Order.** `intake` and `sequence` run in block order, each exclusively; the results depend on nothing
//! but the input. `finish` of different blocks may run at the same time and end in any order.
//!
//! **Errors.** When block *k* fails in any stage, every earlier block still finishes and no later block
//! enters a turnstile that *k* has not left. If several fail, the lowest block's error is the one returned,
//! which is the one that a serial run would have met. A block after *k* can have been sequenced only if *k*
//! failed in `finish`, after it had left both turnstiles.
//!
//! **Panics** stop the farm in the same way and are then resumed in the caller's thread.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::AtomicBool as StopFlag,
    thread,
};

use crate::{
    Error,
    scheduler::{Scheduler, WorkerSlot},
    wait::WaitStrategy,
};

/// The data that flows through a farm, and the work of each stage on it.
///
/// A worker is a thread's own recycled memory (arena, caches). `Input`, `Block` and `Plan` never leave the thread and
/// should be small descriptions of the data in the worker.
pub trait Farm: Sync {
    /// The memory that one thread owns and reuses for each of its blocks.
    type Worker: Send;
    /// State behind the intake turnstile: the source, and how far it is claimed.
    type Intake: Send;
    /// A claimed block, before work.
    type Input;
    /// A finished block before its place is known.
    type Block;
    /// State behind the sequencing turnstile: ids, positions, dictionaries.
    type Sequencer: Send;
    /// Where a block goes.
    type Plan;
    /// Why a stage failed.
    type Error: Send;

    /// Runs once in each worker's thread before its first block, for pinning or warming.
    fn start(&self, lane: usize, worker: &mut Self::Worker) {
        let _ = (lane, worker);
    }

    /// Claims the next block: exclusive and in block order. `None` is the end of the input.
    ///
    /// An intake that waits for a live source must look at [`BlockClaim::is_cancelled`] and answer `None` then.
    ///
    /// # Errors
    /// Fails if the source cannot be read. No later block is then claimed.
    fn intake(
        &self,
        intake: &mut Self::Intake,
        worker: &mut Self::Worker,
        claim: BlockClaim<'_>,
    ) -> Result<Option<Self::Input>, Self::Error>;

    /// Works on a block, at the same time as other workers on theirs.
    ///
    /// # Errors
    /// Fails if the block cannot be worked on at all. Bad messages inside the block are results and not errors.
    fn work(&self, worker: &mut Self::Worker, input: Self::Input) -> Result<Self::Block, Self::Error>;

    /// Gives a block its ids and its place: exclusive and in block order.
    ///
    /// # Errors
    /// Fails if there is no room for the block. No later block is then sequenced.
    fn sequence(
        &self,
        sequencer: &mut Self::Sequencer,
        worker: &mut Self::Worker,
        block: Self::Block,
    ) -> Result<Self::Plan, Self::Error>;

    /// Puts a block at the place in the plan, at the same time as other workers.
    ///
    /// # Errors
    /// Fails if the block cannot be put there. Later blocks may already have been sequenced, or even finished.
    fn finish(&self, worker: &mut Self::Worker, plan: Self::Plan) -> Result<(), Self::Error>;

    /// Takes a plan that the sequencer still holds after the last block, such as the tail of a merge. The farm calls
    /// this in the sequencer's turn after the last block, until it returns `None`. Each plan goes through `finish`.
    ///
    /// # Errors
    /// Fails as `sequence` does.
    fn drain(
        &self,
        sequencer: &mut Self::Sequencer,
        worker: &mut Self::Worker,
        ending: FarmEnding,
    ) -> Result<Option<Self::Plan>, Self::Error> {
        let _ = (sequencer, worker, ending);
        Ok(None)
    }
}

/// The number of the block that an intake claims, and whether it still makes sense to wait for it.
#[derive(Clone, Copy)]
pub struct BlockClaim<'a> {
    pub(crate) index: u64,
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl BlockClaim<'_> {
    /// Returns the number of the block, counted from 0.
    #[inline]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns whether the stop flag is set or an earlier block has failed. In both cases the result of this block is
    /// not needed.
    pub fn is_cancelled(&self) -> bool {
        (self.cancelled)()
    }
}

impl fmt::Debug for BlockClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({})", self.index)
    }
}

/// The reason why no more blocks arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FarmEnding {
    /// The intake answered `None`.
    EndOfInput,
    /// The stop flag was up when a worker was about to claim a block; a later run may continue from here.
    Stopped,
}

/// A stage of a block, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FarmStage {
    /// Claiming from the source.
    Intake,
    /// Parallel work.
    Work,
    /// Giving ids and positions.
    Sequence,
    /// Putting the block in its place.
    Finish,
    /// The plans that the sequencer held after the last block.
    Drain,
}

impl fmt::Display for FarmStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FarmStage::Intake => "intake",
            FarmStage::Work => "work",
            FarmStage::Sequence => "sequence",
            FarmStage::Finish => "finish",
            FarmStage::Drain => "drain",
        })
    }
}

/// How to run a farm.
#[derive(Clone, Copy, Debug)]
pub struct FarmOptions<'a> {
    /// How workers wait at the turnstiles.
    pub wait: WaitStrategy,
    /// When up, no further block is claimed; those under way finish.
    pub stop: Option<&'a StopFlag>,
    /// Names the threads after the data that flows: `decode` makes `decode[1]`, `decode[2]`; the caller's thread
    /// keeps its own name.
    pub name: &'a str,
}

impl Default for FarmOptions<'_> {
    fn default() -> Self {
        Self { wait: WaitStrategy::Balanced, stop: None, name: "farm" }
    }
}

/// Counters of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarmStats {
    /// Blocks that went through all stages (plans of `drain` not counted).
    pub blocks: u64,
    /// Plans that came out of `drain`.
    pub drained: u64,
    /// Blocks that found another one in the intake and had to wait.
    pub intake_waits: u64,
    /// Blocks that were worked on before their predecessor was sequenced and had to wait.
    pub sequence_waits: u64,
}

/// A farm that has come to its end.
pub struct FarmOutcome<F: Farm> {
    /// The state behind the intake turnstile.
    pub intake: F::Intake,
    /// The state behind the sequencing turnstile.
    pub sequencer: F::Sequencer,
    /// The workers in their order, to be used again.
    pub workers: Vec<F::Worker>,
    /// Why it ended.
    pub ending: FarmEnding,
    /// The counts of the run.
    pub stats: FarmStats,
}

/// Runs a farm to its end: worker 0 in this thread, each other one in a thread of its own, so that one
/// worker means no thread. Which worker gets which block does not depend on timing.
///
/// After an error, intake and sequencer are dropped; pass `&mut` of yours where they are needed then.
///
/// # Errors
/// Fails with [`Error::NoWorkers`], with [`Error::Spawn`] (no block was claimed then), or with [`Error::Stage`], which
/// has the error of the lowest failed block.
///
/// # Panics
/// Panics with the panic of a stage, after all workers have stopped.
pub fn run<F: Farm>(
    farm: &F,
    workers: Vec<F::Worker>,
    intake: F::Intake,
    sequencer: F::Sequencer,
    options: &FarmOptions<'_>,
) -> Result<FarmOutcome<F>, Error<F::Error>> {
    let (scheduler, mut lanes): (Scheduler<F>, _) = Scheduler::new(workers, intake, sequencer);
    let Some((first, other_lanes)) = lanes.split_first_mut() else { return Err(Error::NoWorkers) };

    let ran = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(other_lanes.len());
        for (i, lane) in other_lanes.iter_mut().enumerate() {
            let name = format!("{}[{}]", options.name, i + 1);
            let scheduler = &scheduler;
            let spawned = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || scheduler.run_worker(farm, lane, options));
            match spawned {
                Ok(handle) => threads.push(handle),
                Err(source) => {
                    // Block 0 belongs to this thread and is never claimed now, so no thread has entered a turnstile.
                    scheduler.fail(0);
                    return Err(Error::Spawn { worker: i + 1, source });
                }
            }
        }
        let mut panics =
            vec![catch_unwind(AssertUnwindSafe(|| scheduler.run_worker(farm, first, options))).err()];
        panics.extend(threads.into_iter().map(|handle| handle.join().err()));
        Ok(panics)
    });

    propagate(ran?, &lanes);
    conclude(scheduler, lanes)
}

/// Resumes the panic of the lowest block, if any worker panicked.
fn propagate<F: Farm>(panics: Vec<Option<Box<dyn Any + Send>>>, lanes: &[WorkerSlot<F>]) {
    let panicked = panics.into_iter().zip(lanes).filter_map(|(panic, lane)| Some((lane.index(), panic?)));
    if let Some((_, panic)) = panicked.min_by_key(|(index, _)| *index) {
        resume_unwind(panic);
    }
}

/// Combines the lanes' results into one result.
pub fn conclude<F: Farm, const SOUND: bool>(
    scheduler: Scheduler<F, SOUND>,
    lanes: Vec<WorkerSlot<F>>,
) -> Result<FarmOutcome<F>, Error<F::Error>> {
    let mut stats = FarmStats::default();
    let mut ending = FarmEnding::EndOfInput;
    let mut lowest: Option<(u64, FarmStage, F::Error)> = None;
    let mut workers = Vec::with_capacity(lanes.len());
    for lane in lanes {
        let block = lane.index();
        let parts = lane.into_parts();
        stats.blocks += parts.stats.blocks;
        stats.drained += parts.stats.drained;
        stats.intake_waits += parts.stats.intake_waits;
        stats.sequence_waits += parts.stats.sequence_waits;
        ending = parts.ending.unwrap_or(ending);
        if let Some((stage, error)) = parts.failure
            && lowest.as_ref().is_none_or(|(lowest_block, ..)| block < *lowest_block)
        {
            lowest = Some((block, stage, error));
        }
        workers.push(parts.worker);
    }
    match lowest {
        Some((block, stage, error)) => Err(Error::Stage { block, stage, error }),
        None => {
            let (intake, sequencer) = scheduler.into_inner();
            Ok(FarmOutcome { intake, sequencer, workers, ending, stats })
        }
    }
}
