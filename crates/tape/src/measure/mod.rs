//! Measurements of the machine: the throughput of its disk, and threads pinned to processors.

pub mod disk;

use std::sync::atomic::{AtomicBool, Ordering};

/// Pins the calling thread to processor `cpu`; false where that cannot be done, or is switched off.
pub fn pin(cpu: usize) -> bool {
    // Relaxed: set once, before anything is measured.
    PINNING.load(Ordering::Relaxed) && crate::write::placement::pin_to(&[cpu])
}

/// Switches [`pin`] off or on in this process: to see what pinning gives.
#[cfg(any(test, feature = "twin"))]
pub fn set_pinning(on: bool) {
    PINNING.store(on, Ordering::Relaxed);
}

/// Value at the given share (0 to 1) of an ascending list; zero of an empty one.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * share) as usize).copied().unwrap_or(0)
}

static PINNING: AtomicBool = AtomicBool::new(true);
