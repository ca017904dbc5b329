//! What is gathered of the repeats, by subject and by pair of cores, and the records made of it.

use super::{Asked, Line, RAW, SUBJECTS, Subject};
use std::collections::BTreeMap;
use unitape_bench::record::{BenchRecord, LatencyPercentiles, RepeatTimes, rounded};
use unitape_bench_side::{Case, MESSAGE_BYTES, ProcessResult, histogram};

type Times = hdrhistogram::Histogram<u64>;

/// One repeat.
#[derive(Clone, Debug)]
pub struct Trial {
    count: u64,
    wall_ns: u64,
    cpu_ns: u64,
    times: Times,
}

impl Trial {
    /// From what the first process found.
    pub fn of(count: u64, found: ProcessResult) -> Result<Self, String> {
        let mut times = histogram()?;
        for (ns, how_often) in found.latencies {
            times.saturating_record_n(ns, how_often);
        }
        Ok(Self { count, wall_ns: found.wall_ns, cpu_ns: found.cpu_ns, times })
    }

    fn p50(&self) -> u64 {
        self.times.value_at_quantile(0.5)
    }
}

/// How far apart the two cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pair {
    /// Up to [`NEAR_NS`] there and back.
    Near,
    /// Beyond it.
    Far,
}

/// Where near ends: measured are 100–200 ns and 350–500 ns, and nothing in between.
const NEAR_NS: u64 = 250;

impl Pair {
    /// By a trial of the control.
    pub fn of(raw: &Trial) -> Self {
        Self::at(raw.p50())
    }

    fn at(raw_p50_ns: u64) -> Self {
        if raw_p50_ns <= NEAR_NS { Self::Near } else { Self::Far }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// The repeats of one subject on one pair.
#[derive(Default)]
struct Part {
    repeats: RepeatTimes,
    count: u64,
    times: Option<Times>,
    control: Option<Times>,
    /// Median over that of the control around it, each repeat.
    ratios: Vec<f64>,
}

/// All repeats of a case.
#[derive(Default)]
pub struct Figures(BTreeMap<(Pair, &'static str), Part>);

impl Figures {
    /// Adds a trial of the control.
    pub fn control(&mut self, raw: &Trial) {
        let part = self.0.entry((Pair::of(raw), RAW.id)).or_default();
        part.add(raw);
        join(&mut part.control, &raw.times);
    }

    /// Adds a subject's trial, with the control before and after it.
    pub fn add(&mut self, subject: &Subject, trial: Trial, around: &[Trial; 2]) {
        let raw = (around[0].p50() + around[1].p50()) as f64 / 2.0;
        let part = self.0.entry((Pair::at(raw as u64), subject.id)).or_default();
        part.add(&trial);
        around.iter().for_each(|raw| join(&mut part.control, &raw.times));
        if !trial.times.is_empty() {
            part.ratios.push(trial.p50() as f64 / raw.max(1.0));
        }
    }

    /// Leaves a subject out: it failed a check.
    pub fn forget(&mut self, id: &str) {
        self.0.retain(|(_, subject), _| *subject != id);
    }

    /// The records: near before far, the control first, then the subjects in their order.
    pub fn lines(&self, case: Case, asked: &Asked) -> Vec<Line> {
        let mut lines = Vec::new();
        for pair in [Pair::Near, Pair::Far] {
            let from = lines.len();
            for subject in [RAW].iter().chain(&SUBJECTS) {
                let part = self.0.get(&(pair, subject.id)).filter(|part| part.count > 0);
                lines.extend(part.map(|part| part.line(pair, subject, case, asked)));
            }
            let aeron: Vec<BenchRecord> = SUBJECTS
                .iter()
                .filter(|s| s.is_aeron())
                .filter_map(|s| lines[from..].iter().find(|line| line.record.subject == s.title))
                .map(|line| line.record.clone())
                .collect();
            lines[from..].iter_mut().filter(|l| l.record.case == case.name()).for_each(|l| l.compare(&aeron));
        }
        lines
    }
}

impl Part {
    fn add(&mut self, trial: &Trial) {
        self.repeats.add(trial.wall_ns, trial.cpu_ns);
        self.count = trial.count;
        join(&mut self.times, &trial.times);
    }

    fn line(&self, pair: Pair, subject: &Subject, case: Case, asked: &Asked) -> Line {
        let is_raw = subject.id == RAW.id;
        let (size, name) = if is_raw { (8, "raw") } else { (MESSAGE_BYTES as u64, case.name()) };
        let ways = if is_raw || case == Case::RoundTrip { 2 } else { 1 };
        let method = match (is_raw, case) {
            (true, _) => subject.method.to_owned(),
            (false, Case::RoundTrip) => format!(
                "{MESSAGE_BYTES}-byte messages there and back between two pinned processes, every word read; raw control \
                 before and after each repeat; {}",
                subject.method
            ),
            (false, Case::OneWay) => format!(
                "{MESSAGE_BYTES}-byte messages one way between two pinned processes, every word read, until the last is \
                 read; {}",
                subject.method
            ),
        };
        let mut record = self.repeats.record("tape", name, self.count, size * self.count * ways, method);
        record.subject = subject.title.to_owned();
        record.threads = 2;
        if subject.id == "unitape" || is_raw {
            record.backing = Some("hot".to_owned());
        }
        let place = if asked.dir.is_some() && subject.on_files() { "disk" } else { "tmpfs" };
        record.place = Some(place.to_owned());
        record.latency = self.times.as_ref().filter(|times| !times.is_empty()).map(percentiles);
        if !is_raw && !self.ratios.is_empty() {
            let mut ratios = self.ratios.clone();
            ratios.sort_by(f64::total_cmp);
            record.ratio_to_raw = ratios.get(ratios.len() / 2).copied().map(rounded);
        }
        let control = |share| self.control.as_ref().map_or(0, |times| times.value_at_quantile(share));
        Line {
            record,
            pair: pair.name(),
            raw_p50_ns: control(0.5),
            raw_p99_ns: control(0.99),
            ratio_to_aeron: None,
            ratio_p99_to_aeron: None,
        }
    }
}

impl Line {
    /// Sets the ratios to the best of Aeron's in each figure.
    fn compare(&mut self, aeron: &[BenchRecord]) {
        let best = |figure: fn(&LatencyPercentiles) -> u64| {
            aeron.iter().filter_map(|a| a.latency.as_ref()).map(figure).min()
        };
        match &self.record.latency {
            Some(own) => {
                self.ratio_to_aeron = best(|l| l.p50_ns).map(|aeron| ratio(own.p50_ns, aeron));
                self.ratio_p99_to_aeron = best(|l| l.p99_ns).map(|aeron| ratio(own.p99_ns, aeron));
            }
            None => {
                let most = aeron.iter().map(|a| a.ops_per_s).max_by(f64::total_cmp);
                self.ratio_to_aeron = most.map(|aeron| rounded(self.record.ops_per_s / aeron.max(1e-9)));
            }
        }
    }

    /// For the one who waits.
    pub fn summary(&self) -> String {
        let r = &self.record;
        let times =
            |ratio: Option<f64>, what: &str| ratio.map_or(String::new(), |x| format!("  {x:.2} × {what}"));
        let figure = match r.latency {
            Some(l) => format!(
                "p50 {} p90 {} p99 {} p99.9 {} p99.99 {} max {} ns",
                l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.p9999_ns, l.max_ns
            ),
            None => format!("{:.2} M msg/s", r.ops_per_s / 1e6),
        };
        format!(
            "{:4} {:7} {:50} {figure}{}{}{}",
            self.pair,
            r.case,
            r.subject,
            times(r.ratio_to_raw, "raw"),
            times(self.ratio_to_aeron, "Aeron"),
            times(self.ratio_p99_to_aeron, "Aeron's p99")
        )
    }
}

fn join(all: &mut Option<Times>, times: &Times) {
    match all {
        // Both have the same bounds.
        Some(all) => _ = all.add(times),
        None => *all = Some(times.clone()),
    }
}

fn percentiles(times: &Times) -> LatencyPercentiles {
    let at = |share| times.value_at_quantile(share);
    LatencyPercentiles {
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: times.max(),
    }
}

fn ratio(of: u64, to: u64) -> f64 {
    rounded(of as f64 / to.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(ns: u64) -> Trial {
        let found = ProcessResult { wall_ns: ns, latencies: vec![(ns, 10)], ..ProcessResult::default() };
        Trial::of(10, found).unwrap()
    }

    /// A run during which the cores moved once gave one median of both pairs, which no machine ever has; and a ratio to
    /// Aeron must be to that of the same pair.
    #[test]
    fn near_and_far_become_two_records_each_with_its_own_control_and_its_own_aeron() {
        let asked = Asked { cases: vec![], only: vec![], quick: true, repeats: 1, dir: None };
        let (ours, aeron) = (&SUBJECTS[0], &SUBJECTS[1]);
        let mut figures = Figures::default();
        for (raw, own, other) in [(100, 150, 200), (400, 500, 1000), (100, 150, 200)] {
            figures.control(&trial(raw));
            figures.add(ours, trial(own), &[trial(raw), trial(raw)]);
            figures.add(aeron, trial(other), &[trial(raw), trial(raw)]);
        }
        let lines = figures.lines(Case::RoundTrip, &asked);
        let shown: Vec<_> = lines
            .iter()
            .filter(|line| line.record.case == "rtt")
            .map(|l| (l.pair, l.record.repeats, l.raw_p50_ns, l.record.ratio_to_raw, l.ratio_to_aeron))
            .collect();
        assert_eq!(
            shown,
            [
                ("near", 2, 100, Some(1.5), Some(0.75)),
                ("near", 2, 100, Some(2.0), Some(1.0)),
                ("far", 1, 400, Some(1.25), Some(0.5)),
                ("far", 1, 400, Some(2.5), Some(1.0)),
            ]
        );
        figures.forget(ours.id);
        assert!(
            figures
                .lines(Case::RoundTrip, &asked)
                .iter()
                .all(|l| l.record.case == "raw" || l.record.subject != "unitape")
        );
    }
}
