//! Bounded SPSC rings, the ordered parallel farm, and how to wait.
//!
//! The caller decides which data flows: this crate knows neither messages nor tapes. Beside the tape, it is the only
//! place where threads meet without a lock.
//!
//! ```text
//!        [`ring`]: one to one                      [`run`]: in order through many
//!
//!  Producer ──▶ │ 9 │10 │11 │  ──▶ Consumer      ┌▶ worker 0: block 0, 2, 4 … ─┐
//!               a power of two                 ──┤                             ├─▶ in block order
//!                                                └▶ worker 1: block 1, 3, 5 … ─┘
//! ```
//!
//! A farm that gives every word its place in the text, with the same result for any number of workers:
//!
//! ```
//! use unitape_ring::{BlockClaim, Farm, FarmOptions, run};
//!
//! struct Words;
//! impl Farm for Words {
//!     type Worker = Vec<(u64, usize)>; //     what this worker put in its place
//!     type Intake = std::str::Lines<'static>;
//!     type Input = &'static str;
//!     type Block = usize;
//!     type Sequencer = usize; //              words so far
//!     type Plan = (u64, usize);
//!     type Error = std::io::Error;
//!
//!     fn intake(
//!         &self, lines: &mut Self::Intake, _: &mut Self::Worker, _: BlockClaim<'_>,
//!     ) -> Result<Option<&'static str>, Self::Error> {
//!         Ok(lines.next())
//!     }
//!     fn work(&self, _: &mut Self::Worker, line: &'static str) -> Result<usize, Self::Error> {
//!         Ok(line.split_whitespace().count())
//!     }
//!     fn sequence(
//!         &self, words: &mut usize, _: &mut Self::Worker, count: usize,
//!     ) -> Result<(u64, usize), Self::Error> {
//!         *words += count;
//!         Ok(((*words - count) as u64, count))
//!     }
//!     fn finish(&self, worker: &mut Self::Worker, plan: (u64, usize)) -> Result<(), Self::Error> {
//!         Ok(worker.push(plan))
//!     }
//! }
//!
//! let text = "every feed\non one tape\nin order";
//! let done = run(&Words, vec![Vec::new(); 2], text.lines(), 0, &FarmOptions::default()).unwrap();
//! assert_eq!(done.sequencer, 7);
//! assert_eq!(done.workers, [vec![(0, 2), (5, 2)], vec![(2, 3)]]);
//! ```
//!
//! # Threads, queues, bounds
//!
//! | what | who meets there | bound | counter when it is met |
//! |---|---|---|---|
//! | [`ring`] | one producer, one consumer | its capacity, fixed when made | [`Producer::fulls`], [`Consumer::empties`] |
//! | intake turnstile | the W workers of a farm, in block order | one inside; W blocks claimed at most | [`FarmStats::intake_waits`] |
//! | sequencing turnstile | the W workers, in block order | one inside; W − 1 worked blocks wait at most | [`FarmStats::sequence_waits`] |
//! | blocks under way | | W: worker *w* takes block *i + W* only after finishing *i* | |
//! | threads of a farm | `name[1]` … `name[W − 1]`; worker 0 is the caller | W − 1, none for one worker | |
//! | one sleep of a [`Waiter`] | | [`wait::PARK_NS_MAX`] | [`Waiter::parks`] |
//!
//! **Invariant:** who may enter a turnstile depends on block numbers alone, never on who comes first; that is
//! why a farm's result is the same at any number of workers.
//!
//! **Invariant:** no lock, no allocation and, while there is something to do, no system call per block or
//! item; progress never wakes anybody up, waiting is polling with a timed sleep.
//!
//! # Limits
//! It does not steal work: a block that takes long delays its successors, and with them the others after at
//! most W blocks. It does not pin threads ([`Farm::start`] can). It has no ring with several producers.

mod error;
pub mod farm;
mod scheduler;
mod sleepers;
pub mod spsc;
mod sync;
mod turnstile;
#[cfg(all(not(loom), any(test, feature = "twin")))]
#[doc(hidden)]
pub mod twin;
pub mod wait;

pub use error::Error;
pub use farm::{BlockClaim, Farm, FarmEnding, FarmOptions, FarmOutcome, FarmStage, FarmStats, run};
pub use spsc::{Consumer, PopError, Producer, PushError, ring};
pub use wait::{WaitStrategy, Waiter};

/// The farm's scheduler, for loom, which must make the threads itself.
#[cfg(loom)]
#[doc(hidden)]
pub mod loom_parts {
    pub use crate::{
        farm::conclude,
        scheduler::{Scheduler, WorkerSlot},
    };
}
