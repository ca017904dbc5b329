//! How a reader waits: how far it stays behind a writer that streams, and until when.
//!
//! ```text
//!   at its heels        w■r    each line goes back and forth between two caches: 30 to 100 ns a frame
//!   a pause behind it   w■■■■■■■■■■■■■r    lines come one after another: 8 to 12 ns
//! ```
//!
//! Whether a pause gains anything is only seen by making one: in a stream many frames are there afterwards, in a
//! dialogue one. So a run of frames begins it, or one wait in [`TRIAL`]; it doubles while it gains, and ends when it does not.
//! It is never made by [`WaitStrategy::Spin`], nor by who only calls `next`.

use std::time::{Duration, Instant};

use unitape_ring::{WaitStrategy, Waiter};

/// The pause before a wait.
#[derive(Debug, Default)]
pub(crate) struct ReadPacer {
    /// Hints of the last pause; zero if there was no pause.
    hints: u64,
    /// Ordinal at the last wait.
    last_ordinal: u64,
    /// Waits since the last trial.
    wait_count: u32,
}

impl ReadPacer {
    /// Hints to the processor before the next look, for a reader that has found nothing at `ordinal`.
    #[inline]
    pub fn pause(&mut self, ordinal: u64) -> u64 {
        let run = ordinal.wrapping_sub(self.last_ordinal);
        self.last_ordinal = ordinal;
        self.wait_count += 1;
        self.hints = match self.hints {
            0 if run > RUN || self.wait_count >= TRIAL => FIRST,
            hints if run > RUN => (hints * 2).min(MOST),
            _ => return self.clear_hints(),
        };
        self.wait_count = 0;
        // No longer than about what the run took: it must not double what a message has waited for already.
        self.hints.min(FIRST.max(run))
    }

    #[inline]
    fn clear_hints(&mut self) -> u64 {
        self.hints = 0;
        0
    }
}

/// More frames than this between two waits are a stream.
const RUN: u64 = 4;

/// Waits without a stream until a pause is tried.
const TRIAL: u32 = 256;

/// Hints of the first pause, and of the longest. One is 10 to 50 ns. Measured in a loop alone, frames of two lines, near
/// pair, a hint of 25 ns: 27 ns a frame without pauses, 18 with 16 hints, 11 with 64, 8 to 12 with 128 and more.
const FIRST: u64 = 16;
const MOST: u64 = 128;

/// A waiter that knows when time is up.
pub(crate) struct DeadlineWaiter {
    waiter: Waiter,
    timeout: Duration,
    waiting_since: Option<Instant>,
    wait_rounds: u32,
}

impl DeadlineWaiter {
    pub fn new(wait: WaitStrategy, timeout: Duration) -> Self {
        Self { waiter: Waiter::new(wait), timeout, waiting_since: None, wait_rounds: 0 }
    }

    /// Waits a little; false when time is up.
    #[inline]
    pub fn wait_once(&mut self) -> bool {
        self.waiter.wait();
        self.wait_rounds = self.wait_rounds.wrapping_add(1);
        // Asking for the time takes longer than a spin.
        if !self.wait_rounds.is_multiple_of(64) && self.waiter.parks() == 0 {
            return true;
        }
        self.waiting_since.get_or_insert_with(Instant::now).elapsed() < self.timeout
    }

    /// Returns how often the waiter has slept.
    #[inline]
    pub fn parks(&self) -> u64 {
        self.waiter.parks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pause that continues in a dialogue would be in every round trip; one that never begins leaves a stream at a
    /// third of its rate.
    #[test]
    fn pauses_grow_in_a_stream_and_end_in_a_dialogue() {
        let (mut pace, mut ordinal) = (ReadPacer::default(), 0);
        let mut after = |run: u64| {
            ordinal += run;
            pace.pause(ordinal)
        };
        assert_eq!(after(300), 16);
        assert_eq!([after(300), after(300), after(300), after(300)], [32, 64, 128, 128]);
        assert_eq!(after(20), 20, "as long as the run");
        assert_eq!(after(1), 0);
        // At the heels of a writer: one frame a wait. Tried now and then, and given up when it gains nothing.
        let tried = (0..TRIAL * 10).filter(|_| after(1) > 0).count();
        assert!((8..=10).contains(&tried), "{tried}");
        assert_eq!((0..TRIAL).map(|_| after(0)).filter(|&hints| hints > 0).count(), 1);
    }
}
