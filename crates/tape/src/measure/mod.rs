//! Measurements of the machine: the throughput of its disk, and threads pinned to processors.

pub mod disk;

use std::sync::atomic::{AtomicBool, Ordering};

/// Pins the calling thread to processor `cpu`; false where that cannot be done, or is switched off.
pub fn pin(cpu: usize) -> bool {
    // Relaxed: set once, before anything is measured.
    PINNING.load(Ordering::Relaxed) && crate::write::placement::pin_to(&[cpu])
}

/// Switches [`pin`] off or on in this process, to measure the effect of pinning.
#[cfg(any(test, feature = "twin"))]
pub fn set_pinning(on: bool) {
    PINNING.store(on, Ordering::Relaxed);
}

/// Returns the value at `share` (0 to 1) of an ascending list; zero for an empty list.
pub fn percentile(ascending: &[u64], share: f64) -> u64 {
    let last_index = ascending.len().saturating_sub(1);
    ascending.get(((last_index as f64) * share) as usize).copied().unwrap_or(0)
}

static PINNING: AtomicBool = AtomicBool::new(true);
