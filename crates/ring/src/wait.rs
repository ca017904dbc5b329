//! How to wait for another core without asking it for a wake-up.
//!
//! ```text
//!             20 times              256 times          1, 2, 4 … 50 µs, then 50 µs for good
//! first ─▶ ┌──────────────┐ ─▶ ┌───────────────┐ ─▶ ┌──────────────┐
//!          │ spin (pause) │    │ yield the CPU │    │ timed sleep  │ ◀┐
//!          └──────────────┘    └───────────────┘    └──────┬───────┘ ─┘
//!             a few µs             > 100 µs
//! ```
//!
//! The yields last longer than a short sleep takes in truth (1 µs asked for are 70 µs on a stock Linux):
//! otherwise, of two threads that wait for each other by turns, one sleeping once would send the other to sleep as
//! well, and the two would keep sleeping by turns.
//!
//! There is no wake-up on purpose: the side that makes progress only stores to memory and never makes a system call. So
//! a sleeping reader cannot cost the writer anything. The sleeper pays for it: it may notice progress up to
//! [`PARK_NS_MAX`] late (plus the kernel's timer slack, 50 µs on a stock Linux).

/// The longest sleep that a [`Waiter`] asks for, in nanoseconds.
pub const PARK_NS_MAX: u64 = 50_000;

/// How a thread waits, from the fastest answer to the least use of its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitStrategy {
    /// Keep the core and never leave it: lowest latency, for a thread that owns its core.
    Spin,
    /// Spin for a few microseconds, then yield, then sleep: the right one when cores are shared.
    #[default]
    Balanced,
    /// Yield a little, then sleep: for readers to whom a tenth of a millisecond means nothing.
    Park,
}

/// One wait, from its first idle round to the moment there is something to do.
///
/// ```
/// use unitape_ring::{WaitStrategy, Waiter};
/// let mut tries = 0;
/// let mut waiter = Waiter::new(WaitStrategy::Balanced);
/// while tries < 3 {
///     tries += 1; // here is the look at the other side's counter
///     waiter.wait();
/// }
/// waiter.reset(); // progress was made: the next wait begins with spinning again
/// ```
#[derive(Clone, Debug)]
pub struct Waiter {
    wait: WaitStrategy,
    round: u32,
    parks: u64,
}

impl Waiter {
    /// Makes a waiter at its first round.
    #[inline]
    pub const fn new(wait: WaitStrategy) -> Self {
        Self { wait, round: 0, parks: 0 }
    }

    /// Waits a little; a little longer each time until [`Waiter::reset`].
    #[inline]
    pub fn wait(&mut self) {
        let step = step(self.wait, self.round);
        self.round = self.round.saturating_add(1);
        self.parks += u64::from(matches!(step, WaitAction::Park { .. }));
        perform(step);
    }

    /// Starts over after progress.
    #[inline]
    pub fn reset(&mut self) {
        self.round = 0;
    }

    /// Returns whether the waiter has waited for some milliseconds. A thread that can be woken should then sleep.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        !matches!(self.wait, WaitStrategy::Spin) && self.round >= IDLE_ROUNDS
    }

    /// Counts how often this waiter has slept since it was made. The count shows how idle its thread was.
    #[inline]
    pub const fn parks(&self) -> u64 {
        self.parks
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitAction {
    Spin { hints: u32 },
    Yield,
    Park { ns: u64 },
}

/// Returns the action of round number `round` of a wait.
#[inline]
fn step(wait: WaitStrategy, round: u32) -> WaitAction {
    let (spins, yields) = match wait {
        WaitStrategy::Spin => return WaitAction::Spin { hints: 1 },
        WaitStrategy::Balanced => (SPIN_ROUNDS, YIELD_ROUNDS),
        WaitStrategy::Park => (0, 2),
    };
    if round < spins {
        // Few hints between two looks: they are how late the answer is noticed.
        WaitAction::Spin { hints: 1 << round.min(3) }
    } else if round < spins + yields {
        WaitAction::Yield
    } else {
        let doublings = (round - spins - yields).min(16);
        WaitAction::Park { ns: (1_000_u64 << doublings).min(PARK_NS_MAX) }
    }
}

#[cfg(not(loom))]
#[inline]
fn perform(step: WaitAction) {
    match step {
        WaitAction::Spin { hints } => {
            for _ in 0..hints {
                std::hint::spin_loop();
            }
        }
        WaitAction::Yield => std::thread::yield_now(),
        WaitAction::Park { ns } => std::thread::sleep(std::time::Duration::from_nanos(ns)),
    }
}

/// Yields to another thread, whatever the action: loom has no time.
#[cfg(loom)]
fn perform(_: WaitAction) {
    loom::thread::yield_now();
}

/// Rounds of 1, 2, 4, 8, 8 … hints, of 10 to 50 ns each on current cores.
const SPIN_ROUNDS: u32 = 20;
const YIELD_ROUNDS: u32 = 256;

/// Rounds of any kind before a wait is a long one: 100 sleeps after the last yield.
const IDLE_ROUNDS: u32 = SPIN_ROUNDS + YIELD_ROUNDS + 100;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Fails if the shift by the round number overflows after 64 idle rounds, or if the sleep keeps doubling, which
    /// would make an idle reader deaf for seconds.
    #[test]
    fn waits_grow_to_their_bound_and_stay_there() {
        for wait in [WaitStrategy::Spin, WaitStrategy::Balanced, WaitStrategy::Park] {
            for round in (0..200).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
                match step(wait, round) {
                    WaitAction::Spin { hints } => {
                        assert!((1..=8).contains(&hints) && wait != WaitStrategy::Park)
                    }
                    WaitAction::Yield => assert!(wait != WaitStrategy::Spin),
                    WaitAction::Park { ns } => {
                        assert!((1..=PARK_NS_MAX).contains(&ns) && wait != WaitStrategy::Spin)
                    }
                }
            }
        }
        assert_eq!(step(WaitStrategy::Spin, u32::MAX), WaitAction::Spin { hints: 1 });
        let first_park = SPIN_ROUNDS + YIELD_ROUNDS;
        assert_eq!(step(WaitStrategy::Balanced, first_park - 1), WaitAction::Yield);
        assert_eq!(step(WaitStrategy::Balanced, first_park), WaitAction::Park { ns: 1_000 });
        assert_eq!(step(WaitStrategy::Balanced, u32::MAX), WaitAction::Park { ns: PARK_NS_MAX });
    }

    /// Fails if a waiter is not reset, because it would then sleep at the first idle moment of a busy stream.
    #[test]
    fn reset_spins_again_and_sleeps_are_counted() {
        let mut waiter = Waiter::new(WaitStrategy::Park);
        for _ in 0..5 {
            waiter.wait();
        }
        assert_eq!(waiter.parks(), 3);
        waiter.reset();
        waiter.wait();
        assert_eq!(waiter.parks(), 3);
    }
}
