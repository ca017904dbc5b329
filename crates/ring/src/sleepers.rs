//! Threads that have waited for so long that they sleep until they are woken.
//!
//! ```text
//!  waiter                              who makes progress
//!  asleep += 1      (SeqCst)           turn = 8      (SeqCst)
//!  turn?            (SeqCst)           asleep > 0?   (SeqCst) ── no ──▶ no system call
//!  sleeps                                     └─ yes ──▶ wakes all
//! ```
//!
//! All four are in one order, so the waiter sees the progress or is seen. A wake-up cannot fall between its look and its
//! sleep: it makes both under a lock, which the other side goes through before it wakes. A flag that is raised without a
//! wake-up, as by a panic, is seen after [`SLEEP`].

#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering, fence},
};
#[cfg(not(loom))]
use std::time::Duration;

/// The threads that sleep for one cause.
#[derive(Debug, Default)]
pub(crate) struct SleepingThreads {
    #[cfg(not(loom))]
    asleep: AtomicU32,
    #[cfg(not(loom))]
    lock: Mutex<()>,
    #[cfg(not(loom))]
    woken: Condvar,
}

#[cfg(not(loom))]
impl SleepingThreads {
    /// Sleeps until woken, unless `is_ready` returns true. `is_ready` must read its data with SeqCst. Returns whether nobody
    /// woke the thread.
    #[cold]
    pub(crate) fn sleep(&self, is_ready: impl Fn() -> bool) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // SeqCst: in one order with the load in `rouse`, and with the fence in `rouse_all`.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let timed_out = !is_ready() && {
            let woken = self.woken.wait_timeout(lock, SLEEP).unwrap_or_else(PoisonError::into_inner);
            woken.1.timed_out()
        };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        timed_out
    }

    /// Wakes all sleeping threads. The caller must first store the awaited value with SeqCst.
    #[inline]
    pub(crate) fn rouse(&self) {
        // SeqCst: in one order with the increment in `sleep`.
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// Wakes all sleeping threads, after a store of any ordering.
    #[cold]
    pub(crate) fn rouse_all(&self) {
        // SeqCst: pairs with the fence in `sleep`; it sees the store, or is seen.
        fence(Ordering::SeqCst);
        self.rouse();
    }

    #[cold]
    fn wake(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_all();
    }
}

/// Loom has no time: a thread yields and does not wait.
#[cfg(loom)]
impl SleepingThreads {
    pub(crate) fn sleep(&self, _: impl Fn() -> bool) -> bool {
        loom::thread::yield_now();
        true
    }

    pub(crate) fn rouse(&self) {}

    pub(crate) fn rouse_all(&self) {}
}

/// The length of a sleep without a wake-up.
#[cfg(not(loom))]
const SLEEP: Duration = Duration::from_millis(200);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Fails if a wake-up is lost, which would cost a fifth of a second for each step.
    #[test]
    fn no_wake_up_is_lost() {
        const STEPS: u64 = 20_000;
        let (step_counter, sleepers, lost) =
            (AtomicU64::new(0), SleepingThreads::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for me in 0..2 {
                let (next_step, sleepers, lost) = (&step_counter, &sleepers, &lost);
                scope.spawn(move || {
                    for step in (me..STEPS).step_by(2) {
                        let is_my_turn = || next_step.load(Ordering::SeqCst) == step;
                        while !is_my_turn() {
                            let timed_out = sleepers.sleep(is_my_turn);
                            lost.fetch_add(u64::from(timed_out && is_my_turn()), Ordering::Relaxed);
                        }
                        next_step.store(step + 1, Ordering::SeqCst);
                        sleepers.rouse();
                    }
                });
            }
        });
        assert_eq!(step_counter.into_inner(), STEPS);
        // On a machine that is busy for so long, some are awake before they are woken.
        let lost = lost.into_inner();
        assert!(lost < STEPS / 1000, "{lost}");
    }
}
