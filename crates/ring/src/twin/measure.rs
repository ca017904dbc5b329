//! The cost of the farm itself, for `unitape bench farm`.
//!
//! The load is the smallest possible load. A block is `messages_per_block` messages of the same size in the worker's
//! arena (one warm copy, reused for every block). The work walks the messages by the length before each. Sequencing
//! gives the block the ordinal of its first message and its place. Finishing folds the ordinals into a sum. So only the
//! farm is measured: two turnstiles for each block and one read for each message. The sum and the number of blocks are
//! checked afterwards by arithmetic. A run that loses, doubles or misorders a block fails.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use crate::{
    Error,
    farm::{BlockClaim, Farm, FarmOptions, FarmStats, run},
    wait::WaitStrategy,
};

/// The load that runs through the farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarmBenchConfig {
    /// Workers, the caller's thread among them; at least 1.
    pub workers: usize,
    /// Messages in all.
    pub messages: u64,
    /// Size of a message in bytes, at least 8.
    pub message_bytes: usize,
    /// Size of a block in bytes; a block has at least one message.
    pub block_bytes: usize,
    /// Dependent multiplications per message, to see the speed-up under work; 0 for the farm alone.
    pub work_rounds: u32,
    /// How workers wait.
    pub wait: WaitStrategy,
}

impl FarmBenchConfig {
    /// Makes a load without any work: `messages` of 200 bytes in blocks of 64, as the peers are measured.
    pub const fn empty(workers: usize, messages: u64) -> Self {
        Self {
            workers,
            messages,
            message_bytes: 200,
            block_bytes: 64 * 200,
            work_rounds: 0,
            wait: WaitStrategy::Balanced,
        }
    }
}

/// One repeat of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct FarmMeasurement {
    /// Wall clock from before the threads start to after the last one has ended.
    pub elapsed: Duration,
    /// Wall clock per message in nanoseconds.
    pub ns_per_message: f64,
    /// The counts of the farm.
    pub stats: FarmStats,
}

/// Runs `load` `repeats` times after one run to warm up.
///
/// ```
/// use unitape_ring::twin::measure::{FarmBenchConfig, measure};
/// let runs = measure(&FarmBenchConfig::empty(2, 10_000), 3).unwrap();
/// assert_eq!(runs.len(), 3);
/// assert_eq!(runs[0].stats.blocks, 157); // 156 blocks of 64 messages and one of 16
/// ```
///
/// # Errors
/// Fails if the load makes no sense (no worker, or messages shorter than their length), if no thread can be started, or
/// if the self-check fails.
pub fn measure(
    load: &FarmBenchConfig,
    repeats: usize,
) -> Result<Vec<FarmMeasurement>, Error<MeasurementFault>> {
    let unsound = |error| Error::Stage { block: 0, stage: crate::FarmStage::Intake, error };
    if load.message_bytes < size_of::<u64>() {
        return Err(unsound(MeasurementFault("a message is shorter than its length field")));
    }
    let per_block = (load.block_bytes / load.message_bytes).max(1) as u64;
    once(load, per_block)?;
    (0..repeats).map(|_| once(load, per_block)).collect()
}

/// Why a measurement does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MeasurementFault(&'static str);

fn once(load: &FarmBenchConfig, per_block: u64) -> Result<FarmMeasurement, Error<MeasurementFault>> {
    let farm = MeasuredFarm { per_block, message_bytes: load.message_bytes, rounds: load.work_rounds };
    let workers = (0..load.workers).map(|_| MeasuredWorker::new(&farm)).collect();
    let options = FarmOptions { wait: load.wait, ..Default::default() };

    let begin = Instant::now();
    let outcome = run(&farm, workers, load.messages, 0, &options)?;
    let elapsed = begin.elapsed();

    let sum = outcome.workers.iter().fold(0u64, |sum, w| sum.wrapping_add(w.sum));
    let n = u128::from(load.messages);
    let expected = (n * n.saturating_sub(1) / 2) as u64;
    if sum != expected
        || outcome.sequencer != load.messages
        || outcome.stats.blocks != load.messages.div_ceil(per_block)
    {
        let error =
            MeasurementFault("the self-check failed: messages were lost, doubled or numbered wrongly");
        return Err(Error::Stage { block: outcome.stats.blocks, stage: crate::FarmStage::Finish, error });
    }
    let ns_per_message = elapsed.as_nanos() as f64 / load.messages.max(1) as f64;
    Ok(FarmMeasurement { elapsed, ns_per_message, stats: outcome.stats })
}

struct MeasuredFarm {
    per_block: u64,
    message_bytes: usize,
    rounds: u32,
}

struct MeasuredWorker {
    arena: Box<[u8]>,
    /// Ordinals of all messages this worker has finished, added up.
    sum: u64,
}

impl MeasuredWorker {
    fn new(farm: &MeasuredFarm) -> Self {
        let mut arena = vec![0; farm.per_block as usize * farm.message_bytes].into_boxed_slice();
        for message in arena.chunks_exact_mut(farm.message_bytes) {
            message[..8].copy_from_slice(&(farm.message_bytes as u64).to_le_bytes());
        }
        Self { arena, sum: 0 }
    }
}

/// The messages of one block, numbered from `first` without a gap.
struct MessageRange {
    first: u64,
    messages: u64,
}

impl Farm for MeasuredFarm {
    type Worker = MeasuredWorker;
    /// Messages that are not claimed yet.
    type Intake = u64;
    /// Messages of the block.
    type Input = u64;
    type Block = u64;
    /// The next ordinal.
    type Sequencer = u64;
    type Plan = MessageRange;
    type Error = MeasurementFault;

    fn intake(
        &self,
        left: &mut u64,
        _: &mut MeasuredWorker,
        _: BlockClaim<'_>,
    ) -> Result<Option<u64>, MeasurementFault> {
        let messages = self.per_block.min(*left);
        *left -= messages;
        Ok((messages > 0).then_some(messages))
    }

    fn work(&self, worker: &mut MeasuredWorker, messages: u64) -> Result<u64, MeasurementFault> {
        let mut offset = 0;
        for _ in 0..messages {
            let length =
                worker.arena.get(offset..offset + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
            let length = length.ok_or(MeasurementFault("a frame ends outside its block"))?;
            let mut value = length;
            for _ in 0..self.rounds {
                value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value >> 29);
            }
            offset += length as usize;
        }
        if offset == messages as usize * self.message_bytes {
            Ok(messages)
        } else {
            Err(MeasurementFault("frames do not add up"))
        }
    }

    fn sequence(
        &self,
        next: &mut u64,
        _: &mut MeasuredWorker,
        messages: u64,
    ) -> Result<MessageRange, MeasurementFault> {
        let first = *next;
        *next += messages;
        Ok(MessageRange { first, messages })
    }

    fn finish(&self, worker: &mut MeasuredWorker, range: MessageRange) -> Result<(), MeasurementFault> {
        let MessageRange { first, messages } = range;
        // The sum of first, first + 1, … is first times their number plus 0 + 1 + … .
        let steps = messages * (messages - 1) / 2;
        worker.sum = worker.sum.wrapping_add(first.wrapping_mul(messages)).wrapping_add(steps);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Fails if the farm loses its last, partial block, because it would then look a little faster than it is.
    #[test]
    fn every_message_is_counted_at_any_cut() {
        for (workers, messages, block_bytes) in [(1, 0, 1), (2, 1, 1), (2, 1_000, 200), (3, 1_001, 12_800)] {
            let load =
                FarmBenchConfig { block_bytes, work_rounds: 2, ..FarmBenchConfig::empty(workers, messages) };
            let runs = measure(&load, 2).unwrap();
            let per_block = (block_bytes as u64 / 200).max(1);
            assert!(runs.iter().all(|r| r.stats.blocks == messages.div_ceil(per_block)), "{load:?}");
        }
    }

    /// Fails if a load without sense is accepted. Both loads can come from a command line.
    #[test]
    fn a_load_without_sense_is_an_error() {
        assert!(matches!(measure(&FarmBenchConfig::empty(0, 10), 1), Err(Error::NoWorkers)));
        let short = FarmBenchConfig { message_bytes: 7, ..FarmBenchConfig::empty(1, 10) };
        assert!(matches!(measure(&short, 1), Err(Error::Stage { .. })));
    }
}
