//! The scheduler of a farm: the two turnstiles, the halt flags, and the loop of one worker.
//!
//! Apart from `farm` because here threads meet and nothing else does: loom drives [`Scheduler::run_worker`] directly,
//! with its own threads.

use std::cell::Cell;

use crate::{
    farm::{BlockClaim, Farm, FarmEnding, FarmOptions, FarmStage, FarmStats},
    sync::{AtomicU64, CachePadded, Ordering},
    turnstile::{EnterOutcome, Turnstile},
};

/// The state that the workers of one run share.
pub struct Scheduler<F: Farm, const SOUND: bool = true> {
    intake: Turnstile<F::Intake, SOUND>,
    sequence: Turnstile<F::Sequencer, SOUND>,
    halt: CachePadded<BlockHaltLimits>,
}

/// The block number from which on there is no work, or `u64::MAX` while there is no end.
///
/// Hints to end a wait. Nothing is published through them (errors travel by joining the thread), so they are Relaxed
/// and have no partner. Only the turnstiles decide which thread enters.
struct BlockHaltLimits {
    /// The lowest block that has failed: blocks above it give up wherever they wait.
    failed: AtomicU64,
    /// The block that found the input at its end: blocks above it are not claimed.
    end: AtomicU64,
}

/// One worker and the blocks that are its own: `index`, `index + stride`, … No two lanes of a scheduler share a
/// block number, and a lane serves only the scheduler it was made with.
pub struct WorkerSlot<F: Farm> {
    worker: F::Worker,
    /// The block under way; a cell, because it must be readable when a stage panics.
    index: Cell<u64>,
    stride: u64,
    parts: WorkerOutcome<F::Error>,
}

/// The parts of a lane that remain when its loop has ended.
pub(crate) struct FinishedWorker<F: Farm> {
    pub(crate) worker: F::Worker,
    pub(crate) stats: FarmStats,
    /// Set in the one lane that met the end and drained the sequencer.
    pub(crate) ending: Option<FarmEnding>,
    pub(crate) failure: Option<(FarmStage, F::Error)>,
}

struct WorkerOutcome<E> {
    stats: FarmStats,
    ending: Option<FarmEnding>,
    failure: Option<(FarmStage, E)>,
}

impl<F: Farm, const SOUND: bool> Scheduler<F, SOUND> {
    /// Makes a scheduler and its lanes, one lane for each worker.
    pub fn new(
        workers: Vec<F::Worker>,
        intake: F::Intake,
        sequencer: F::Sequencer,
    ) -> (Self, Vec<WorkerSlot<F>>) {
        let stride = workers.len() as u64;
        let lanes = workers
            .into_iter()
            .zip(0..)
            .map(|(worker, index)| WorkerSlot {
                worker,
                index: Cell::new(index),
                stride,
                parts: WorkerOutcome { stats: FarmStats::default(), ending: None, failure: None },
            })
            .collect();
        let halt = BlockHaltLimits { failed: AtomicU64::new(u64::MAX), end: AtomicU64::new(u64::MAX) };
        let scheduler = Self {
            intake: Turnstile::new(intake),
            sequence: Turnstile::new(sequencer),
            halt: CachePadded(halt),
        };
        (scheduler, lanes)
    }

    /// Runs one lane until its blocks are through, in the thread it is called on. Call it once for each
    /// lane, at the same time: a lane waits for its neighbours.
    pub fn run_worker(&self, farm: &F, lane: &mut WorkerSlot<F>, options: &FarmOptions<'_>) {
        let WorkerSlot { worker, index, stride, parts } = lane;
        let poison = PanicGuard { halt: &self.halt, index };
        let lane_number = index.get() as usize;
        farm.start(lane_number, worker);
        let loop_end = loop {
            match self.block(farm, worker, index.get(), options, &mut parts.stats) {
                Ok(WorkerAction::Block) => index.set(index.get() + *stride),
                Ok(WorkerAction::Nothing) => break Ok(()),
                Ok(WorkerAction::Drain(ending)) => {
                    parts.ending = Some(ending);
                    break self.drain(farm, worker, index.get(), ending, options, &mut parts.stats);
                }
                Err(failure) => break Err(failure),
            }
        };
        std::mem::forget(poison);
        if let Err(failure) = loop_end {
            parts.failure = Some(failure);
            self.fail(index.get());
        }
    }

    /// Runs one block through all its stages.
    fn block(
        &self,
        farm: &F,
        worker: &mut F::Worker,
        index: u64,
        options: &FarmOptions<'_>,
        stats: &mut FarmStats,
    ) -> Result<WorkerAction, (FarmStage, F::Error)> {
        match self.intake.wait_for(index, options.wait, || self.halt.past_end(index)) {
            EnterOutcome::AtOnce => {}
            EnterOutcome::Waited => stats.intake_waits += 1,
            EnterOutcome::GaveUp => return Ok(WorkerAction::Nothing),
        }
        let is_stopped = || options.stop.is_some_and(|stop| stop.load(std::sync::atomic::Ordering::Relaxed));
        if is_stopped() {
            self.end_at(index);
            return Ok(WorkerAction::Drain(FarmEnding::Stopped));
        }
        let cancelled = || is_stopped() || self.halt.failed_before(index);
        let claim = BlockClaim { index, cancelled: &cancelled };
        // SAFETY: `wait_for` gave this thread the turn `index`, which belongs to this lane alone, and it is
        // left below at the earliest.
        let claimed = unsafe { self.intake.enter(|intake| farm.intake(intake, worker, claim)) };
        let Some(input) = claimed.map_err(|e| (FarmStage::Intake, e))? else {
            self.end_at(index);
            return Ok(WorkerAction::Drain(if is_stopped() {
                FarmEnding::Stopped
            } else {
                FarmEnding::EndOfInput
            }));
        };
        self.intake.leave(index);

        let block = farm.work(worker, input).map_err(|e| (FarmStage::Work, e))?;

        match self.sequence.wait_for(index, options.wait, || self.halt.failed_before(index)) {
            EnterOutcome::AtOnce => {}
            EnterOutcome::Waited => stats.sequence_waits += 1,
            EnterOutcome::GaveUp => return Ok(WorkerAction::Nothing),
        }
        // SAFETY: as above, with the turn of the sequencing turnstile.
        let plan = unsafe { self.sequence.enter(|sequencer| farm.sequence(sequencer, worker, block)) }
            .map_err(|e| (FarmStage::Sequence, e))?;
        self.sequence.leave(index);

        farm.finish(worker, plan).map_err(|e| (FarmStage::Finish, e))?;
        stats.blocks += 1;
        Ok(WorkerAction::Block)
    }

    /// Empties the sequencer in the turn of `index`, the block that does not exist any more.
    fn drain(
        &self,
        farm: &F,
        worker: &mut F::Worker,
        index: u64,
        ending: FarmEnding,
        options: &FarmOptions<'_>,
        stats: &mut FarmStats,
    ) -> Result<(), (FarmStage, F::Error)> {
        if self.sequence.wait_for(index, options.wait, || self.halt.failed_before(index))
            == EnterOutcome::GaveUp
        {
            return Ok(());
        }
        loop {
            // SAFETY: `wait_for` gave this thread the turn `index` of this lane, and nobody leaves it.
            let drain_result = unsafe { self.sequence.enter(|s| farm.drain(s, worker, ending)) };
            let Some(plan) = drain_result.map_err(|e| (FarmStage::Drain, e))? else { return Ok(()) };
            farm.finish(worker, plan).map_err(|e| (FarmStage::Finish, e))?;
            stats.drained += 1;
        }
    }

    /// Stops every block above `index`.
    pub(crate) fn fail(&self, index: u64) {
        self.halt.fail(index);
        self.rouse();
    }

    /// Prevents claims of blocks above `index`.
    fn end_at(&self, index: u64) {
        self.halt.end_at(index);
        self.rouse();
    }

    fn rouse(&self) {
        self.intake.rouse();
        self.sequence.rouse();
    }

    /// Returns the two states when all lanes are through.
    pub(crate) fn into_inner(self) -> (F::Intake, F::Sequencer) {
        (self.intake.into_inner(), self.sequence.into_inner())
    }
}

impl<F: Farm> WorkerSlot<F> {
    /// Returns the number of the current block, or of the block at which the lane ended.
    pub(crate) fn index(&self) -> u64 {
        self.index.get()
    }

    pub(crate) fn into_parts(self) -> FinishedWorker<F> {
        let WorkerOutcome { stats, ending, failure } = self.parts;
        FinishedWorker { worker: self.worker, stats, ending, failure }
    }
}

enum WorkerAction {
    /// Continue with the lane's next block.
    Block,
    /// The input ended here: drain, then stop.
    Drain(FarmEnding),
    /// Somebody else ended or failed before this block.
    Nothing,
}

impl BlockHaltLimits {
    fn fail(&self, index: u64) {
        self.failed.fetch_min(index, Ordering::Relaxed);
    }

    /// Records the end. The holder of the intake's turn `index` calls this, so it runs once.
    fn end_at(&self, index: u64) {
        self.end.store(index, Ordering::Relaxed);
    }

    #[inline]
    fn failed_before(&self, index: u64) -> bool {
        self.failed.load(Ordering::Relaxed) < index
    }

    #[inline]
    fn past_end(&self, index: u64) -> bool {
        self.end.load(Ordering::Relaxed) < index || self.failed_before(index)
    }
}

/// Fails the block under way when its stage panics; forgotten when the loop ends well.
struct PanicGuard<'a> {
    halt: &'a BlockHaltLimits,
    index: &'a Cell<u64>,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.halt.fail(self.index.get());
    }
}
