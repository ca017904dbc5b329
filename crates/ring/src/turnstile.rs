//! A turnstile: state that threads enter one at a time, in an order fixed beforehand.
//!
//! ```text
//!  turn = 7          │ state │
//!  block 7  ────────▶│ &mut  │──▶ turn = 8 (Release)
//!  block 8  waits    └───────┘
//!  block 9  waits
//! ```
//!
//! It is not a lock: no thread competes. The counter shows whose turn it is, and only that thread ever writes it. A
//! thread that fails inside does not leave, so no later thread can enter. That alone keeps the order after an error;
//! the farm's halt flags only end the waiting.

use crate::{
    sleepers::SleepingThreads,
    sync::{AtomicU64, CachePadded, Ordering, UnsafeCell},
    wait::{WaitStrategy, Waiter},
};

/// State behind a counter of turns.
///
/// `SOUND = false` is the deliberately broken copy that loom must reject (it leaves without Release); it
/// cannot be made outside a loom build.
#[derive(Debug)]
pub(crate) struct Turnstile<S, const SOUND: bool = true> {
    current_turn: CachePadded<AtomicU64>,
    sleepers: CachePadded<SleepingThreads>,
    state: CachePadded<UnsafeCell<S>>,
}

// SAFETY: the state is reached only through `enter`, whose contract gives each turn to one caller, and turns
// follow each other by Release/Acquire; so `&Turnstile` moves the state between threads, it never shares it.
unsafe impl<S: Send, const SOUND: bool> Sync for Turnstile<S, SOUND> {}

/// How an attempt to enter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnterOutcome {
    /// It was this caller's turn already.
    AtOnce,
    /// The turn came after waiting.
    Waited,
    /// The caller's condition for giving up came true first.
    GaveUp,
}

impl<S, const SOUND: bool> Turnstile<S, SOUND> {
    /// Makes a turnstile that lets turn 0 in first.
    pub(crate) fn new(state: S) -> Self {
        assert!(SOUND || cfg!(loom), "the broken copy is for loom alone");
        Self {
            current_turn: CachePadded(AtomicU64::new(0)),
            sleepers: CachePadded::default(),
            state: CachePadded(UnsafeCell::new(state)),
        }
    }

    /// Waits until it is `index`'s turn, or until `gave_up` returns true.
    #[inline]
    pub(crate) fn wait_for(
        &self,
        index: u64,
        wait: WaitStrategy,
        gave_up: impl Fn() -> bool,
    ) -> EnterOutcome {
        let mut waiter = Waiter::new(wait);
        let mut came = EnterOutcome::AtOnce;
        loop {
            if gave_up() {
                return EnterOutcome::GaveUp;
            }
            // Acquire: pairs with the Release in `leave`; the changes of earlier turns to the state are visible.
            if self.current_turn.load(Ordering::Acquire) == index {
                return came;
            }
            came = EnterOutcome::Waited;
            match waiter.is_idle() {
                true => {
                    _ = self.sleepers.sleep(|| gave_up() || self.current_turn.load(Ordering::SeqCst) == index)
                }
                false => waiter.wait(),
            }
        }
    }

    /// Gives `f` the state.
    ///
    /// # Safety
    /// - [`Turnstile::wait_for`] of this index has returned [`EnterOutcome::AtOnce`] or [`EnterOutcome::Waited`] on this
    ///   thread, and [`Turnstile::leave`] was not called since.
    /// - No other thread ever waits for the same index.
    #[inline]
    pub(crate) unsafe fn enter<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        // SAFETY: the caller holds the turn, turns are unique, and `leave` is the only way to pass it on;
        // so no other reference to the state is alive.
        self.state.with_mut(|state| f(unsafe { &mut *state }))
    }

    /// Lets `index + 1` in; only for the holder of turn `index`.
    #[inline]
    pub(crate) fn leave(&self, index: u64) {
        // SeqCst: Release pairs with the Acquire in `wait_for` of the next turn, and the order of all is that of `SleepingThreads`.
        let order = if SOUND { Ordering::SeqCst } else { Ordering::Relaxed };
        self.current_turn.store(index + 1, order);
        self.sleepers.rouse();
    }

    /// Wakes the sleeping threads so that they check again whether they must give up.
    pub(crate) fn rouse(&self) {
        self.sleepers.rouse_all();
    }

    /// Returns the state when all threads are through.
    pub(crate) fn into_inner(self) -> S {
        self.state.0.into_inner()
    }
}
