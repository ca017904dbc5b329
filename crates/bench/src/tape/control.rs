//! The raw control around every measurement, and the repeats grouped by the pair of cores that the control showed.
//!
//! Virtual cores move between a near pair and a far pair, and all data that crosses them moves along. So a `u64` goes
//! there and back in shared memory before and after each repeat. Its median shows which pair it was. Repeats of the two
//! pairs are never mixed.

use super::{AffinityGuard, spawn};
use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{
    BenchRecord, LatencyHistogram, LatencyPercentiles, RepeatTimes, cpu_ns, histogram, note, rounded,
};
use std::path::{Path, PathBuf};
use unitape_tape::twin::measure::raw_round_trips;

/// The distance of the two cores, by the control's median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreDistance {
    /// Up to [`NEAR_NS`].
    Near,
    /// Beyond it.
    Far,
}

/// Where near ends: measured are 100–200 ns and 350–500 ns, and nothing in between.
const NEAR_NS: u64 = 250;

impl CoreDistance {
    fn from_times(times: &LatencyHistogram) -> Self {
        if times.value_at_quantile(0.5) <= NEAR_NS { Self::Near } else { Self::Far }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Measures the control and keeps all of it.
pub struct ControlMeasurement<'a> {
    context: &'a BenchContext,
    dir: PathBuf,
    last: Option<LatencyHistogram>,
    all: RepeatsByDistance,
}

/// Returns the directory for the control's shared words.
pub fn shared_dir(context: &BenchContext) -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared } else { &context.options.dir }.into()
}

/// The control around one repeat.
pub struct ControlResult {
    pair: CoreDistance,
    p50_ns: f64,
    times: LatencyHistogram,
}

impl<'a> ControlMeasurement<'a> {
    pub fn new(context: &'a BenchContext) -> Self {
        Self { context, dir: shared_dir(context), last: None, all: RepeatsByDistance::default() }
    }

    /// Runs `measure` with the control before and after it. When the cores moved in between, that repeat is thrown
    /// away and done again, a few times at most.
    pub fn run_with_control<T>(
        &mut self,
        mut measure: impl FnMut() -> Result<T, Error>,
    ) -> Result<(T, ControlResult), Error> {
        let mut tries = if self.context.options.quick { 1 } else { 3 };
        loop {
            tries -= 1;
            let before = self.last.take().map_or_else(|| self.once(), Ok)?;
            let free = AffinityGuard::keep()?;
            let result = measure()?;
            drop(free);
            let after = self.once()?;
            let moved = CoreDistance::from_times(&before) != CoreDistance::from_times(&after);
            self.last = Some(after.clone());
            if moved && tries > 0 {
                continue;
            }
            let p50_ns = (before.value_at_quantile(0.5) + after.value_at_quantile(0.5)) as f64 / 2.0;
            let mut times = before;
            times += after;
            let pair = if p50_ns <= NEAR_NS as f64 { CoreDistance::Near } else { CoreDistance::Far };
            return Ok((result, ControlResult { pair, p50_ns, times }));
        }
    }

    fn once(&mut self) -> Result<LatencyHistogram, Error> {
        let count = self.context.pick(2_000, 200_000);
        let free = AffinityGuard::keep()?;
        let cpu = cpu_ns();
        let times = raw_round_trips(&self.dir, count, &spawn(self.context))?;
        let cpu_ns = cpu_ns() - cpu;
        drop(free);
        let wall_ns = times.iter().sum();
        let mut latencies = histogram();
        times.iter().for_each(|&ns| note(&mut latencies, ns));
        let pair = CoreDistance::from_times(&latencies);
        self.all.part(pair).add(
            RepeatResult { times: Some(latencies.clone()), control: None, count, wall_ns, cpu_ns },
            None,
        );
        Ok(latencies)
    }

    /// Returns the control's own records.
    pub fn records(&mut self) -> Result<Vec<BenchRecord>, Error> {
        if self.last.is_none() {
            // Nothing else was asked for.
            for _ in 0..self.context.repeats(5) {
                self.once()?;
            }
        }
        let method = "a u64 there and back in shared memory between two pinned processes";
        Ok(self.all.records(|_| RecordDescription { case: "raw", bytes: 16, method: method.to_owned() }))
    }
}

/// One repeat.
pub struct RepeatResult {
    /// The latencies, if the case measures latencies.
    pub times: Option<LatencyHistogram>,
    /// Its own control, if the control around the repeat does not apply: at a rate, from due time.
    pub control: Option<LatencyHistogram>,
    /// Operations.
    pub count: u64,
    /// Wall clock of all of them.
    pub wall_ns: u64,
    /// Processor time of this process meanwhile.
    pub cpu_ns: u64,
}

/// The repeats of one case, by pair.
#[derive(Default)]
pub struct RepeatsByDistance([DistanceRepeats; 2]);

/// The repeats on one pair.
#[derive(Default)]
pub struct DistanceRepeats {
    repeats: RepeatTimes,
    count: u64,
    times: Option<LatencyHistogram>,
    control: Option<LatencyHistogram>,
    /// The median divided by the median of the control around it, for each repeat.
    ratios: Vec<f64>,
}

/// The description in a record besides its figures.
pub struct RecordDescription {
    pub case: &'static str,
    /// Bytes that an operation moves.
    pub bytes: u64,
    pub method: String,
}

impl RepeatsByDistance {
    /// Adds a repeat to the repeats of its pair.
    pub fn add(&mut self, trial: RepeatResult, control_result: &ControlResult) {
        self.part(control_result.pair).add(trial, Some(control_result));
    }

    fn part(&mut self, pair: CoreDistance) -> &mut DistanceRepeats {
        &mut self.0[pair as usize]
    }

    /// Makes a record for each pair of cores that was measured.
    pub fn records(&self, description: impl Fn(&DistanceRepeats) -> RecordDescription) -> Vec<BenchRecord> {
        self.records_against(None, description)
    }

    /// Makes records as [`RepeatsByDistance::records`] does. Adds the ratios to `baseline` where the baseline was
    /// measured on the same pair.
    pub fn records_against(
        &self,
        baseline: Option<&Self>,
        description: impl Fn(&DistanceRepeats) -> RecordDescription,
    ) -> Vec<BenchRecord> {
        let mut records = Vec::new();
        for (i, pair) in [CoreDistance::Near, CoreDistance::Far].into_iter().enumerate() {
            let part = &self.0[i];
            if part.repeats.is_empty() {
                continue;
            }
            let mut record = part.record(description(part));
            record.pair = Some(pair.name().to_owned());
            if let Some(baseline_part) = baseline.map(|baseline_repeats| &baseline_repeats.0[i])
                && !baseline_part.repeats.is_empty()
            {
                part.compare(baseline_part, &mut record);
            }
            records.push(record);
        }
        records
    }
}

impl DistanceRepeats {
    fn add(&mut self, trial: RepeatResult, control_result: Option<&ControlResult>) {
        self.repeats.add(trial.wall_ns, trial.cpu_ns);
        self.count = trial.count;
        if let Some(control_result) = control_result {
            let (control, p50_ns) = match &trial.control {
                Some(own_control) => (own_control, own_control.value_at_quantile(0.5) as f64),
                None => (&control_result.times, control_result.p50_ns),
            };
            *self.control.get_or_insert_with(histogram) += control;
            if let Some(times) = &trial.times {
                self.ratios.push(times.value_at_quantile(0.5) as f64 / p50_ns.max(1.0));
            }
        }
        if let Some(times) = trial.times {
            *self.times.get_or_insert_with(histogram) += times;
        }
    }

    fn record(&self, description: RecordDescription) -> BenchRecord {
        let bytes = description.bytes * self.count;
        let mut record = self.repeats.record("tape", description.case, self.count, bytes, description.method);
        record.threads = 2;
        record.latency = self.times.as_ref().map(LatencyPercentiles::from_times);
        if let Some(control) = &self.control {
            record.raw_p50_ns = Some(control.value_at_quantile(0.5));
            record.raw_p9999_ns = Some(control.value_at_quantile(0.9999));
            if let Some(times) = &self.times {
                let mut ratios = self.ratios.clone();
                ratios.sort_by(f64::total_cmp);
                record.ratio_to_raw = ratios.get(ratios.len() / 2).copied().map(rounded);
                record.ratio_p9999_to_raw = Some(ratio(times, control, 0.9999));
            }
        }
        record
    }

    fn compare(&self, baseline: &Self, record: &mut BenchRecord) {
        record.ratio_to_alone = match (&self.times, &baseline.times) {
            (Some(own_times), Some(baseline_times)) => {
                record.ratio_p9999_to_alone = Some(ratio(own_times, baseline_times, 0.9999));
                Some(ratio(own_times, baseline_times, 0.5))
            }
            _ => Some(rounded(
                self.repeats.median_ns()
                    / self.count.max(1) as f64
                    / (baseline.repeats.median_ns() / baseline.count.max(1) as f64).max(1e-9),
            )),
        };
    }
}

fn ratio(times: &LatencyHistogram, baseline: &LatencyHistogram, quantile: f64) -> f64 {
    rounded(times.value_at_quantile(quantile) as f64 / baseline.value_at_quantile(quantile).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_control(p50: u64) -> ControlResult {
        let mut times = histogram();
        note(&mut times, p50);
        ControlResult { pair: CoreDistance::from_times(&times), p50_ns: p50 as f64, times }
    }

    fn trial(ns: u64) -> RepeatResult {
        let mut times = histogram();
        note(&mut times, ns);
        RepeatResult { times: Some(times), control: None, count: 1, wall_ns: ns, cpu_ns: ns }
    }

    /// Fails if near and far repeats share a median, as in a run during which the cores moved.
    #[test]
    fn near_and_far_repeats_become_two_records_each_with_its_own_control() {
        let (mut measured, mut baseline) = (RepeatsByDistance::default(), RepeatsByDistance::default());
        for (raw, ns) in [(100, 150), (400, 500), (100, 150)] {
            baseline.add(trial(ns), &make_control(raw));
            measured.add(trial(2 * ns), &make_control(raw));
        }
        let description =
            |_: &DistanceRepeats| RecordDescription { case: "rtt", bytes: 1, method: "m".to_owned() };
        let records = measured.records_against(Some(&baseline), description);
        let summaries: Vec<_> = records
            .iter()
            .map(|r| (r.pair.as_deref(), r.repeats, r.raw_p50_ns, r.ratio_to_raw, r.ratio_to_alone))
            .collect();
        assert_eq!(
            summaries,
            [
                (Some("near"), 2, Some(100), Some(3.0), Some(2.0)),
                (Some("far"), 1, Some(400), Some(2.5), Some(2.0))
            ]
        );
    }
}
