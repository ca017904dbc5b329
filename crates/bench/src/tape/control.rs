//! The raw control around every measurement, and what is gathered of the repeats by the pair of cores that it showed.
//!
//! Virtual cores move between a near pair and a far one, and everything that crosses them moves along. So a `u64`
//! goes there and back in shared memory before and after each repeat; its median says which pair that was, and
//! repeats of one pair are never mixed with those of the other.

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
    fn of(times: &LatencyHistogram) -> Self {
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

/// The places of the control's words.
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
            let moved = CoreDistance::of(&before) != CoreDistance::of(&after);
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
        let mut found = histogram();
        times.iter().for_each(|&ns| note(&mut found, ns));
        let pair = CoreDistance::of(&found);
        self.all
            .part(pair)
            .add(RepeatResult { times: Some(found.clone()), control: None, count, wall_ns, cpu_ns }, None);
        Ok(found)
    }

    /// The control's own records.
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
    /// Latencies, where it is about them.
    pub times: Option<LatencyHistogram>,
    /// A control of its own, where that around the repeat is none: at a rate, from due time.
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
    /// Median over that of the control around it, each repeat.
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
    /// Adds a repeat to those of its pair.
    pub fn add(&mut self, trial: RepeatResult, beside: &ControlResult) {
        self.part(beside.pair).add(trial, Some(beside));
    }

    fn part(&mut self, pair: CoreDistance) -> &mut DistanceRepeats {
        &mut self.0[pair as usize]
    }

    /// One record for each pair that was met.
    pub fn records(&self, description: impl Fn(&DistanceRepeats) -> RecordDescription) -> Vec<BenchRecord> {
        self.records_against(None, description)
    }

    /// As [`RepeatsByDistance::records`], with the ratios to `alone`, where that was measured on the same pair.
    pub fn records_against(
        &self,
        alone: Option<&Self>,
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
            if let Some(other) = alone.map(|alone| &alone.0[i])
                && !other.repeats.is_empty()
            {
                part.compare(other, &mut record);
            }
            records.push(record);
        }
        records
    }
}

impl DistanceRepeats {
    fn add(&mut self, trial: RepeatResult, beside: Option<&ControlResult>) {
        self.repeats.add(trial.wall_ns, trial.cpu_ns);
        self.count = trial.count;
        if let Some(beside) = beside {
            let (control, p50_ns) = match &trial.control {
                Some(own) => (own, own.value_at_quantile(0.5) as f64),
                None => (&beside.times, beside.p50_ns),
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
        record.latency = self.times.as_ref().map(LatencyPercentiles::of);
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

    fn compare(&self, alone: &Self, record: &mut BenchRecord) {
        record.ratio_to_alone = match (&self.times, &alone.times) {
            (Some(with), Some(alone)) => {
                record.ratio_p9999_to_alone = Some(ratio(with, alone, 0.9999));
                Some(ratio(with, alone, 0.5))
            }
            _ => Some(rounded(
                self.repeats.median_ns()
                    / self.count.max(1) as f64
                    / (alone.repeats.median_ns() / alone.count.max(1) as f64).max(1e-9),
            )),
        };
    }
}

fn ratio(of: &LatencyHistogram, to: &LatencyHistogram, quantile: f64) -> f64 {
    rounded(of.value_at_quantile(quantile) as f64 / to.value_at_quantile(quantile).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(p50: u64) -> ControlResult {
        let mut times = histogram();
        note(&mut times, p50);
        ControlResult { pair: CoreDistance::of(&times), p50_ns: p50 as f64, times }
    }

    fn trial(ns: u64) -> RepeatResult {
        let mut times = histogram();
        note(&mut times, ns);
        RepeatResult { times: Some(times), control: None, count: 1, wall_ns: ns, cpu_ns: ns }
    }

    /// A run during which the cores moved once gave one median of both pairs, which no machine ever has.
    #[test]
    fn near_and_far_repeats_become_two_records_each_with_its_own_control() {
        let (mut with, mut alone) = (RepeatsByDistance::default(), RepeatsByDistance::default());
        for (raw, ns) in [(100, 150), (400, 500), (100, 150)] {
            alone.add(trial(ns), &beside(raw));
            with.add(trial(2 * ns), &beside(raw));
        }
        let description =
            |_: &DistanceRepeats| RecordDescription { case: "rtt", bytes: 1, method: "m".to_owned() };
        let records = with.records_against(Some(&alone), description);
        let shown: Vec<_> = records
            .iter()
            .map(|r| (r.pair.as_deref(), r.repeats, r.raw_p50_ns, r.ratio_to_raw, r.ratio_to_alone))
            .collect();
        assert_eq!(
            shown,
            [
                (Some("near"), 2, Some(100), Some(3.0), Some(2.0)),
                (Some("far"), 1, Some(400), Some(2.5), Some(2.0))
            ]
        );
    }
}
