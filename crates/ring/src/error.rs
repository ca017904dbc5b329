//! Errors of running a farm.

use crate::farm::FarmStage;

/// Why a farm did not come to its end. `E` is the error of the farm's own stages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// A stage failed; of all blocks that failed this is the lowest.
    #[error("{stage} of block {block}: {error}")]
    Stage {
        /// Number of the block, from 0.
        block: u64,
        /// Where it failed.
        stage: FarmStage,
        /// The error of the stage.
        error: E,
    },
    /// The system gave no thread for a worker. No block was claimed.
    #[error("starting the thread of worker {worker}: {source}")]
    Spawn {
        /// Number of the worker, from 1; worker 0 is the caller.
        worker: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A farm needs at least one worker.
    #[error("a farm needs at least one worker")]
    NoWorkers,
}
