//! Busy loops beside a run: what passes alone and fails beside them depends on the speed of the machine.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Loops that want more than the two cores of the smallest machine we test on.
const LOOPS: usize = 4;

/// Threads that do nothing but keep the cores busy, until this is dropped.
pub(crate) struct BusyLoops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    pub(crate) fn start() -> Self {
        eprintln!("{LOOPS} busy loops run beside the tests");
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..LOOPS)
            .map(|_| {
                let stop = stop.clone();
                std::thread::spawn(move || {
                    let mut number = 1u64;
                    // Relaxed: nothing but the flag itself is passed on.
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..10_000 {
                            number = black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
                        }
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop cannot panic; if one did, the tests' results are valid all the same.
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loops that continued after the tests would slow down every later step.
    #[test]
    fn the_loops_end_when_they_are_dropped() {
        let loops = BusyLoops::start();
        let stop = loops.stop.clone();
        drop(loops);
        assert_eq!(Arc::strong_count(&stop), 1, "no thread holds the flag any more");
    }
}
