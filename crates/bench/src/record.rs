//! One measurement, as `--json` prints it, and the arithmetic behind its fields.

use crate::scaling::ScalingModel;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};

/// One measurement. Times are wall clock of one repeat divided by `count`, in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchRecord {
    /// The bench: `tape`, `farm`, `fix`, `store`, `book`.
    pub bench: String,
    /// The case of the bench.
    pub case: String,
    /// `unitape`, or the peer with its version.
    pub subject: String,
    /// `hot` or `file`, where a tape is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// `tmpfs` or `disk`: where the files of the measurement lay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Threads that did the work; a second process is counted.
    pub threads: u32,
    /// Operations in one repeat.
    pub count: u64,
    /// Repeats after the warm-up.
    pub repeats: u32,
    /// Median of the repeats.
    pub ns_per_op: f64,
    /// Fastest repeat.
    pub min: f64,
    /// Slowest repeat.
    pub max: f64,
    /// Processor time of this process (all threads, user and system) per operation, mean of the repeats.
    pub cpu_ns_per_op: f64,
    /// From the median.
    pub ops_per_s: f64,
    /// Megabytes (10^6) of input per second, from the median.
    pub mb_per_s: f64,
    /// Latencies over all repeats together; only for latencies.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyPercentiles>,
    /// `near` or `far`: the pair of cores, as the raw control shows it around the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    /// The variant, if the case has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Bytes of payload in a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Messages that were due in a second, where that was fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u64>,
    /// Median of the control around the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_p50_ns: Option<u64>,
    /// 99.99th percentile of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_p9999_ns: Option<u64>,
    /// Median latency over the median of the control around it; median of the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_raw: Option<f64>,
    /// The ratio of the 99.99th percentiles to the control, over all repeats together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_p9999_to_raw: Option<f64>,
    /// The median (of latencies, otherwise of the time) divided by the median without readers and without load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_alone: Option<f64>,
    /// The ratio of the 99.99th percentiles to the same alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_p9999_to_alone: Option<f64>,
    /// Megabytes (10^6) a second that the disk took in the same run, written and flushed in the plainest way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_mb_per_s: Option<f64>,
    /// Ours over that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_disk: Option<f64>,
    /// The settings that `--tune` changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
    /// Bytes that a row takes; only for sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_row: Option<f64>,
    /// Bytes that an operation puts onto the tape, definitions and bookkeeping included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape_bytes_per_op: Option<f64>,
    /// Nanoseconds of an operation in the intake's turn, where one worker is at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intake_ns_per_op: Option<f64>,
    /// Nanoseconds of an operation in the sequencer's turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_ns_per_op: Option<f64>,
    /// The longer of the two turns: more workers than the time of an operation has of it do not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_ns_per_op: Option<f64>,
    /// The limits for more workers, and their predicted times; with the figures of one worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ScalingModel>,
    /// The hash of the input bytes, or null if there is no input.
    pub input_sha256: Option<String>,
    /// The hash of the output, checked against the slow path's hash. Null if there is no output.
    pub output_sha256: Option<String>,
    /// The method of the measurement.
    pub method: String,
    /// Between which calls of [`mark`] the last repeat was; printed with `--marks` alone, by [`MarkedRecord`].
    #[serde(skip)]
    pub marks: Option<InstructionMarks>,
}

/// The part of a run between two calls of [`mark`], for `cargo xtask instructions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionMarks {
    /// The number of the first call, from 0. The next call ends the part.
    pub from: u64,
    /// Operations in it.
    pub operations: u64,
}

/// A record with its marks.
#[derive(Debug, Serialize)]
pub struct MarkedRecord<'a> {
    /// The measurement.
    #[serde(flatten)]
    pub record: &'a BenchRecord,
    /// Its marks.
    pub marks: Option<InstructionMarks>,
}

/// Percentiles in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LatencyPercentiles {
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub p9999_ns: u64,
    pub max_ns: u64,
}

impl LatencyPercentiles {
    /// Computes the percentiles of the recorded times.
    pub fn from_times(times: &LatencyHistogram) -> Self {
        let quantile_ns = |share| times.value_at_quantile(share);
        Self {
            p50_ns: quantile_ns(0.5),
            p90_ns: quantile_ns(0.9),
            p99_ns: quantile_ns(0.99),
            p999_ns: quantile_ns(0.999),
            p9999_ns: quantile_ns(0.9999),
            max_ns: times.max(),
        }
    }
}

/// Latencies in nanoseconds, to three digits, however many there are.
pub type LatencyHistogram = Histogram<u64>;

/// Makes an empty histogram for times up to a minute.
pub fn histogram() -> LatencyHistogram {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("bounds in order")
}

/// Records a latency. A latency outside the bounds is recorded as the bound.
#[inline]
pub fn note(times: &mut LatencyHistogram, ns: u64) {
    times.saturating_record(ns.max(1));
}

const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// The repeats of one measurement.
#[derive(Debug, Default)]
pub struct RepeatTimes {
    wall_ns: Vec<u64>,
    cpu_ns: u64,
    /// The mark at which the last timed repeat began.
    mark: Option<u64>,
}

impl RepeatTimes {
    /// Measures the time of one repeat.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.mark = Some(mark());
        let (cpu, since) = (cpu_ns(), std::time::Instant::now());
        let result = std::hint::black_box(work());
        let wall = since.elapsed().as_nanos() as u64;
        self.add(wall, cpu_ns() - cpu);
        mark();
        result
    }

    /// Returns whether there are no repeats.
    pub fn is_empty(&self) -> bool {
        self.wall_ns.is_empty()
    }

    /// Counts the repeats.
    pub fn len(&self) -> usize {
        self.wall_ns.len()
    }

    /// Returns the median time of a repeat in nanoseconds.
    pub fn median_ns(&self) -> f64 {
        let mut sorted_ns = self.wall_ns.clone();
        sorted_ns.sort_unstable();
        let n = sorted_ns.len();
        match (sorted_ns.get(n / 2), sorted_ns.get(n.saturating_sub(1) / 2)) {
            (Some(a), Some(b)) => (a + b) as f64 / 2.0,
            _ => 0.0,
        }
    }

    /// Adds a repeat that was timed elsewhere.
    pub fn add(&mut self, wall_ns: u64, cpu_ns: u64) {
        self.wall_ns.push(wall_ns);
        self.cpu_ns += cpu_ns;
    }

    /// Makes the record of these repeats of `count` operations over `bytes` bytes, on one thread, by `unitape`.
    pub fn record(&self, bench: &str, case: &str, count: u64, bytes: u64, method: String) -> BenchRecord {
        let n = self.wall_ns.len().max(1);
        let median = self.median_ns();
        let ops = count.max(1) as f64;
        let per_second = |amount: f64| if median > 0.0 { amount * 1e9 / median } else { 0.0 };
        BenchRecord {
            bench: bench.to_owned(),
            case: case.to_owned(),
            subject: "unitape".to_owned(),
            backing: None,
            place: None,
            threads: 1,
            count,
            repeats: self.wall_ns.len() as u32,
            ns_per_op: rounded(median / ops),
            min: rounded(self.wall_ns.iter().min().copied().unwrap_or(0) as f64 / ops),
            max: rounded(self.wall_ns.iter().max().copied().unwrap_or(0) as f64 / ops),
            cpu_ns_per_op: rounded(self.cpu_ns as f64 / n as f64 / ops),
            ops_per_s: per_second(ops).round(),
            mb_per_s: rounded(per_second(bytes as f64 / 1e6)),
            latency: None,
            pair: None,
            condition: None,
            payload_bytes: None,
            rate_per_s: None,
            raw_p50_ns: None,
            raw_p9999_ns: None,
            ratio_to_raw: None,
            ratio_p9999_to_raw: None,
            ratio_to_alone: None,
            ratio_p9999_to_alone: None,
            disk_mb_per_s: None,
            ratio_to_disk: None,
            tuned: None,
            bytes_per_row: None,
            tape_bytes_per_op: None,
            intake_ns_per_op: None,
            sequence_ns_per_op: None,
            serial_ns_per_op: None,
            model: None,
            input_sha256: None,
            output_sha256: None,
            method,
            marks: self.mark.map(|from| InstructionMarks { from, operations: count }),
        }
    }
}

/// Rounds to three decimals, which is more than the accuracy of any figure here.
pub fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Begins or ends a part whose instructions are counted. Returns the number of the mark, from 0.
///
/// `cargo xtask instructions` has callgrind cut its counts at calls to this function, by its name. So it must never be
/// inlined, and it holds only a number.
#[inline(never)]
pub fn mark() -> u64 {
    static MARKS: AtomicU64 = AtomicU64::new(0);
    // Relaxed: all calls are on one thread.
    MARKS.fetch_add(1, Ordering::Relaxed)
}

/// Returns the processor time of this process so far in nanoseconds, summed over all threads.
pub fn cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// SHA-256 in hexadecimal, of parts.
#[derive(Clone, Debug, Default)]
pub struct HexSha256(Sha256);

impl HexSha256 {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of the added bytes in hexadecimal.
    pub fn hex(self) -> String {
        self.0.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// Computes the SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hash = HexSha256::default();
    hash.add(bytes);
    hash.hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the median of an even number of repeats is the upper of the two middle values.
    #[test]
    fn median_and_rates_are_those_of_the_definition() {
        let mut repeats = RepeatTimes::default();
        for wall in [4_000, 1_000, 3_000, 2_000] {
            repeats.add(wall, 500);
        }
        let r = repeats.record("b", "c", 10, 5_000, String::new());
        assert_eq!((r.ns_per_op, r.min, r.max, r.cpu_ns_per_op), (250.0, 100.0, 400.0, 50.0));
        assert_eq!((r.ops_per_s, r.mb_per_s, r.repeats), (4_000_000.0, 2_000.0, 4));
    }

    /// Fails if a record marks another part of the run than its last repeat.
    #[test]
    fn marks_are_those_of_the_last_repeat() {
        let mut repeats = RepeatTimes::default();
        let marks_of = |repeats: &RepeatTimes| repeats.record("b", "c", 7, 1, String::new()).marks;
        assert_eq!(marks_of(&repeats), None);
        let before = mark();
        repeats.time(|| ());
        let inside = repeats.time(mark);
        assert!(inside > before + 2, "marks are numbered one after the other");
        assert_eq!(marks_of(&repeats), Some(InstructionMarks { from: inside - 1, operations: 7 }));
    }

    /// Fails if an optional field does not survive a round trip through JSON.
    #[test]
    fn a_record_comes_back_from_its_json() {
        let mut r = RepeatTimes::default().record("tape", "rtt", 1, 1, "m".to_owned());
        let mut times = histogram();
        (1..4).for_each(|ns| note(&mut times, ns));
        for latency in [None, Some(LatencyPercentiles::from_times(&times))] {
            r.latency = latency;
            let text = serde_json::to_string(&r).unwrap();
            let back: BenchRecord = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), text);
            assert_eq!(text.contains("p9999_ns"), latency.is_some());
        }
    }

    /// Fails if a latency beyond the histogram's bounds is lost, because it matters most.
    #[test]
    fn latencies_beyond_the_bounds_stay_the_greatest() {
        let mut times = histogram();
        [0, 5, u64::MAX].into_iter().for_each(|ns| note(&mut times, ns));
        let percentiles = LatencyPercentiles::from_times(&times);
        assert_eq!((times.len(), percentiles.p50_ns), (3, 5));
        assert!(percentiles.max_ns >= LATENCY_NS_MAX);
    }

    /// Checks the published vector of FIPS 180-2 for three bytes.
    #[test]
    fn sha256_is_that_of_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
    }
}
