//! The limits of a farm: a model of few figures, all measured at one worker, that predicts the times of more workers.
//!
//! ```text
//!  ns a message at W workers on C cores = fixed + the longest of
//!      workers / W                   what workers do side by side: decode, map, copy onto the tape
//!      (workers + helpers) / C       all work there is, on all cores there are
//!      intake, sequence              turns: one worker at a time
//!      preallocator, recorder, sums        threads of the tape, of which there is one each
//! ```
//!
//! The model ignores cache lines that move between cores, and the bandwidth of memory. So its prediction is the best
//! possible result, and the moved bytes beside it show the bandwidth that the result needs.

use crate::record::rounded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Nanoseconds and bytes for each message, by the stage that takes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ScalingModel {
    /// Before the first and after the last block, of the measured number of messages.
    pub fixed_ns: f64,
    /// Processor time of workers.
    pub workers_ns: f64,
    pub intake_ns: f64,
    pub sequence_ns: f64,
    /// Processor time of the thread that makes memory ahead.
    pub keeper_ns: f64,
    /// Processor time of the thread that makes the tape durable, and of the thread that makes its sums.
    pub recorder_ns: f64,
    pub sums_ns: f64,
    /// Read or written in memory: the input for its hash and to be decoded, the tape zeroed, written and summed.
    pub bytes_moved: f64,
    /// Cores of the machine that measured.
    pub cores: u32,
    /// Share of a message's time at one worker that does not get shorter, the longest of the single ones.
    pub serial_fraction: f64,
    /// Predicted times of 1, 2 and 4 workers here, and of 16 and 64 with as many cores.
    pub predicted_ns: BTreeMap<u32, f64>,
    /// Gigabytes (10^9) a second that memory has to give then.
    pub predicted_gb_per_s: BTreeMap<u32, f64>,
}

impl ScalingModel {
    /// Computes the fields that follow from the others.
    pub fn concluded(mut self) -> Self {
        self.serial_fraction = rounded(self.single() / self.workers_ns.max(f64::MIN_POSITIVE));
        for workers in [1, 2, 4, 16, 64] {
            let cores = if workers > 4 { workers } else { self.cores };
            let ns = self.ns(workers, cores);
            self.predicted_ns.insert(workers, rounded(ns));
            self.predicted_gb_per_s.insert(workers, rounded(self.bytes_moved / ns.max(f64::MIN_POSITIVE)));
        }
        self
    }

    /// Returns the longest time of the parts that run on one thread.
    fn single(&self) -> f64 {
        [self.intake_ns, self.sequence_ns, self.keeper_ns, self.recorder_ns, self.sums_ns]
            .into_iter()
            .fold(0.0, f64::max)
    }

    fn ns(&self, workers: u32, cores: u32) -> f64 {
        let all = self.workers_ns + self.keeper_ns + self.recorder_ns + self.sums_ns;
        let side_by_side = (self.workers_ns / f64::from(workers)).max(all / f64::from(cores.max(1)));
        self.fixed_ns + side_by_side.max(self.single())
    }
}

/// Measures the processor time of the threads of this process by name, in nanoseconds, while `work` runs. It includes
/// threads that `work` starts and ends, except for their last milliseconds.
pub fn threads_ns<T>(work: impl FnOnce() -> T) -> (T, BTreeMap<String, u64>) {
    let is_finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let before = look();
            let mut latest = before.clone();
            while !is_finished.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_EVERY);
                latest.extend(look());
            }
            let mut by_name = BTreeMap::new();
            for (thread, (name, ns)) in latest {
                let had = before.get(&thread).map_or(0, |(_, ns)| *ns);
                *by_name.entry(name).or_insert(0) += ns.saturating_sub(had);
            }
            by_name
        });
        let result = work();
        is_finished.store(true, Ordering::Relaxed);
        (result, looker.join().unwrap_or_default())
    })
}

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Lists the threads with their names and processor times. The list is empty if the system does not report them.
fn look() -> BTreeMap<u32, (String, u64)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return BTreeMap::new() };
    let read_thread = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let ns = times.split(' ').next()?.parse().ok()?;
        Some((task.file_name().to_str()?.parse().ok()?, (name.trim_end().to_owned(), ns)))
    };
    tasks.flatten().filter_map(read_thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> ScalingModel {
        let (workers_ns, intake_ns, sequence_ns) = (400.0, 20.0, 10.0);
        let (keeper_ns, recorder_ns, sums_ns) = (40.0, 4.0, 6.0);
        ScalingModel {
            fixed_ns: 5.0,
            workers_ns,
            intake_ns,
            sequence_ns,
            keeper_ns,
            recorder_ns,
            sums_ns,
            bytes_moved: 1000.0,
            cores: 2,
            ..ScalingModel::default()
        }
    }

    /// Fails if the prediction forgets the number of cores, as it once did for two cores.
    #[test]
    fn workers_help_while_there_are_cores_and_nothing_single_is_longer() {
        let m = model().concluded();
        assert_eq!(m.predicted_ns[&1], 405.0);
        assert_eq!((m.predicted_ns[&2], m.predicted_ns[&4]), (230.0, 230.0), "450 of work on two cores");
        assert_eq!(
            (m.predicted_ns[&16], m.predicted_ns[&64]),
            (45.0, 45.0),
            "the preallocator is one thread"
        );
        assert_eq!((m.serial_fraction, m.predicted_gb_per_s[&1]), (0.1, 2.469));
    }

    /// Fails if a thread that has already ended is counted as nothing.
    #[test]
    #[cfg(target_os = "linux")]
    fn threads_that_end_meanwhile_are_counted() {
        let work = || {
            let spin = || {
                // The sampler may be held up meanwhile, and so may this thread.
                let since = std::time::Instant::now();
                while since.elapsed() < Duration::from_secs(1) {
                    std::hint::spin_loop();
                }
            };
            std::thread::Builder::new().name("spins".to_owned()).spawn(spin).unwrap().join().unwrap();
        };
        let ((), by_name) = threads_ns(work);
        assert!(by_name["spins"] > 0, "{by_name:?}");
    }
}
