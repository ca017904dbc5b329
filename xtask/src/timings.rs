//! The seconds of a run, part by part, and what a run adds to the last one on record.
//!
//! ```text
//! steps, compiling, test binaries ─▶ Timings ─▶ --record: bench/record/DATE-test.jsonl, a line a part
//!                                           └─▶ --add-up: the parts that take longer or shorter than there
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::records::{self, RecordedCommit};

/// The kind of these runs' records.
pub(crate) const KIND: &str = "test";
/// A part whose seconds differ by less is not listed: runs differ by as much.
const SECONDS_LISTED: f64 = 1.0;

/// Seconds by part. The names are those of steps, of test binaries, and `compiling`.
#[derive(Debug, Default)]
pub(crate) struct Timings(RefCell<BTreeMap<String, f64>>);

impl Timings {
    pub(crate) fn add(&self, part: &str, seconds: f64) {
        *self.0.borrow_mut().entry(part.to_owned()).or_insert(0.0) += seconds;
    }

    /// One line of JSON for each part.
    pub(crate) fn to_lines(&self, commit: &RecordedCommit, cores: usize) -> Vec<Value> {
        let line = |(part, seconds): (&String, &f64)| {
            let mut line = json!({"record": KIND, "cores": cores, "part": part,
                "seconds": (seconds * 10.0).round() / 10.0});
            commit.describe(&mut line);
            line
        };
        self.0.borrow().iter().map(line).collect()
    }

    /// The parts that differ from the last record, the largest growth first, and the sum of the steps.
    pub(crate) fn compare(&self, record: &[Value]) -> Vec<String> {
        let Some(first) = record.first() else {
            return vec!["no run is on record yet: --record writes one".to_owned()];
        };
        let before: BTreeMap<&str, f64> = record
            .iter()
            .filter_map(|line| Some((line["part"].as_str()?, line["seconds"].as_f64()?)))
            .collect();
        let now = self.0.borrow();
        let mut parts: Vec<(f64, String)> = Vec::new();
        let of_run = now.keys().map(String::as_str);
        let of_both: std::collections::BTreeSet<&str> = of_run.chain(before.keys().copied()).collect();
        for part in of_both {
            let (was, is) = (before.get(part), now.get(part));
            // A run of some steps says nothing of the others.
            let Some(is) = is else { continue };
            let added = is - was.unwrap_or(&0.0);
            if added.abs() >= SECONDS_LISTED {
                let was = was.map_or("not there".to_owned(), |was| format!("{was:.1} s"));
                parts.push((added, format!("{added:+8.1} s  {part} ({was} before, {is:.1} s now)")));
            }
        }
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let head = format!(
            "seconds against the run of {} on record ({}, {} cores):",
            records::text(&first["date"]),
            records::short(records::text(&first["commit"])),
            first["cores"]
        );
        std::iter::once(head).chain(parts.into_iter().map(|(_, line)| line)).collect()
    }
}

/// CPU seconds of the whole machine since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuSeconds {
    /// Seconds that all processes used.
    pub(crate) used: f64,
    /// Seconds that a virtual machine wanted and its host gave to others: seconds of a run beside them say little.
    pub(crate) stolen: f64,
}

impl CpuSeconds {
    /// The kernel's counts; none if it does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::from_proc_stat(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line `cpu` of proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    fn from_proc_stat(stat: &str) -> Option<Self> {
        /// In this file the kernel counts hundredths of a second (`USER_HZ`).
        const TICKS_PER_SECOND: f64 = 100.0;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
        let used = user + nice + system + irq + softirq;
        Some(Self { used: used / TICKS_PER_SECOND, stolen: steal / TICKS_PER_SECOND })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { used: self.used - before.used, stolen: self.stolen - before.stolen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_seconds_are_told_apart() {
        let stat = "cpu  100 20 300 4000 50 6 70 800 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let before = CpuSeconds { used: 1.96, stolen: 2.0 };
        let since = CpuSeconds::from_proc_stat(stat).map(|now| now.since(before));
        assert_eq!(since, Some(CpuSeconds { used: 3.0, stolen: 6.0 }));
        assert_eq!(CpuSeconds::from_proc_stat("cpu  1 2 3\n"), None, "a kernel that does not count steal");
    }

    fn record(parts: &[(&str, f64)]) -> Vec<Value> {
        let timings = Timings::default();
        parts.iter().for_each(|(part, seconds)| timings.add(part, *seconds));
        let commit = RecordedCommit {
            hash: "0123456789abcdef".to_owned(),
            is_clean: true,
            date: "2026-11-26".to_owned(),
        };
        timings.to_lines(&commit, 2)
    }

    /// A landing that says it adds nothing must have looked at every part.
    #[test]
    fn parts_that_grew_are_listed_first() {
        let before = record(&[("step test", 100.0), ("step fuzz", 50.0), ("a::b", 5.0), ("step loom", 9.0)]);
        let now = Timings::default();
        for (part, seconds) in [("step test", 103.0), ("step fuzz", 40.0), ("a::b", 5.4), ("a::new", 2.0)] {
            now.add(part, seconds);
        }
        let lines = now.compare(&before);
        assert!(lines[0].contains("2026-11-26") && lines[0].contains("0123456"), "{lines:?}");
        assert_eq!(
            lines[1..],
            [
                "    +3.0 s  step test (100.0 s before, 103.0 s now)",
                "    +2.0 s  a::new (not there before, 2.0 s now)",
                "   -10.0 s  step fuzz (50.0 s before, 40.0 s now)",
            ]
        );
    }

    #[test]
    fn without_a_record_the_way_to_make_one_is_named() {
        assert!(Timings::default().compare(&[])[0].contains("--record"));
    }
}
