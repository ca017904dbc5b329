//! Messaging peers: 100-byte messages between two pinned processes, all subjects repeat by repeat in turn.
//!
//! ```text
//!  repeat 1:  raw  unitape  raw  Aeron  raw  iceoryx2  raw  …  raw
//!  repeat 2:  raw  unitape  raw  Aeron  …
//! ```
//!
//! The raw control shows which pair of cores it was; figures of near and far pairs are never mixed, and a repeat during
//! which the cores moved is done again. Every subject's processes follow the same loops (`unitape_bench_side`).

mod figures;
pub mod links;
pub mod pair;
mod subjects;

use crate::Asked;
use figures::{Figures, Trial};
use subjects::{Programs, RAW, Ready, SUBJECTS, Subject};
use unitape_bench::record::BenchRecord;
use unitape_bench_side::Case;

/// A measurement, with what only messaging has beside it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Line {
    #[serde(flatten)]
    record: BenchRecord,
    /// `near` or `far`: the pair of cores, by the raw control.
    pair: &'static str,
    /// Median of the raw control around the repeats.
    raw_p50_ns: u64,
    /// Its 99th percentile.
    raw_p99_ns: u64,
    /// For latencies p50 over that of Aeron's C client, on the same pair in the same run; for rates how many times as
    /// many. Of its flavours the one that is best in this figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_aeron: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_p99_to_aeron: Option<f64>,
}

/// All subjects, as they are asked for.
pub fn ids() -> impl Iterator<Item = &'static str> {
    SUBJECTS.iter().map(|subject| subject.id)
}

/// Runs the cases, gives each record to `out`; an error is a subject that failed its check, after all others are out.
pub fn run(asked: &Asked, out: &mut dyn FnMut(&Line) -> Result<(), String>) -> Result<(), String> {
    let (mut programs, mut subjects) = (Programs::default(), Vec::new());
    for subject in SUBJECTS.iter().filter(|s| asked.takes(s.id)) {
        match programs.ready(subject) {
            Ok(ready) => subjects.push((subject, ready)),
            Err(reason) => eprintln!("skipped: {}: {reason}", subject.title),
        }
    }
    let raw = programs.ready(&RAW)?;
    let mut failed = Vec::new();
    for case in &asked.cases {
        run_case(asked, *case, &raw, &mut subjects, &mut failed, out)?;
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn run_case(
    asked: &Asked,
    case: Case,
    raw: &Ready,
    subjects: &mut Vec<(&Subject, Ready)>,
    failed: &mut Vec<String>,
    out: &mut dyn FnMut(&Line) -> Result<(), String>,
) -> Result<(), String> {
    let mut figures = Figures::default();
    let mut before = trial(asked, Case::RoundTrip, &RAW, raw)?;
    figures.control(&before);
    for repeat in 0..asked.repeats {
        let mut broken = Vec::new();
        for (subject, ready) in &*subjects {
            eprintln!("{}: repeat {} of {}: {}", case.name(), repeat + 1, asked.repeats, subject.title);
            let tries = if asked.quick { 1 } else { MOVES };
            for left in (0..tries).rev() {
                let trial_of = match trial(asked, case, subject, ready) {
                    Ok(found) => found,
                    Err(e) => {
                        broken.push((subject.id, format!("{}: {}: {e}", case.name(), subject.title)));
                        break;
                    }
                };
                let after = trial(asked, Case::RoundTrip, &RAW, raw)?;
                figures.control(&after);
                let moved = figures::Pair::of(&before) != figures::Pair::of(&after);
                let around = [before, after.clone()];
                before = after;
                if !moved || left == 0 {
                    figures.add(subject, trial_of, &around);
                    break;
                }
            }
        }
        for (id, error) in broken {
            eprintln!("failed: {error}");
            failed.push(error);
            subjects.retain(|(subject, _)| subject.id != id);
            figures.forget(id);
        }
    }
    figures.lines(case, asked).iter().try_for_each(|line| {
        eprintln!("{}", line.summary());
        out(line)
    })
}

/// How often a repeat is done until the cores have stayed where they were.
const MOVES: u32 = 3;

fn trial(asked: &Asked, case: Case, subject: &Subject, ready: &Ready) -> Result<Trial, String> {
    let (count, warm) = subject.counts(case, asked.quick);
    let shared = pair::shared_memory();
    let plan = pair::Plan {
        case,
        count,
        warm,
        flavour: subject.flavour,
        whole: subject.whole,
        dir: asked.dir.as_ref().filter(|_| subject.whole).unwrap_or(&shared),
    };
    Trial::of(count, pair::run(&plan, &|arguments| ready.command(arguments))?)
}
