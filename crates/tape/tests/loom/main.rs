//! The tape's lock-free core under loom: every interleaving of a few threads, with every value that the memory
//! model allows a load to return. Run with
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p unitape-tape --release --test loom
//! ```
//!
//! The code is that of the tape; only the memory is another: a few lines, of which two words each are modelled,
//! the header word and the one after it. Each protocol has copies with one flaw, and loom must reject them, or
//! these tests would prove nothing about the sound ones.
//!
//! Loom cannot see two things. A reader's look for a segment that has moved asks the file system, not memory. The
//! death of a process is not an interleaving; the kill tests are for those.
#![cfg(loom)]

mod gate;
mod lines;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Preemptions per run: three are enough for every known failure of such code, and bound the time. Gives how
/// many interleavings there were; a model whose threads never meet has one.
pub fn model(f: impl Fn() + Send + Sync + 'static) -> usize {
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        f();
    });
    let runs = runs.load(Ordering::Relaxed);
    println!("{runs} interleavings");
    runs
}

/// Whether loom rejects `f`.
pub fn rejected(f: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| model(f))).is_err()
}
