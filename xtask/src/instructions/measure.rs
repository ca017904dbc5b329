//! Counts one case of one build: what is run, and what of the counts is the figure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::builds::MeasuredBuild;
use super::callgrind::{self, CallgrindFailure, CallgrindJob, InstructionCounts, InstructionTotals, count};
use super::cases::{
    CasePaths, CaseWork, InputAmount, InstructionCase, LastRepeats, OperationCount, arguments,
};
use super::inputs::FrozenInputs;
use crate::cargo::root;

/// Instructions of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseFigure {
    /// The case, and which of several ways of it.
    pub(crate) name: String,
    /// Instructions of the thread that does the work.
    pub(crate) instructions: f64,
    /// Instructions of all threads.
    pub(crate) all_threads: f64,
    /// The number of operations that the totals are divided by.
    pub(crate) operations: u64,
}

/// The state that all runs share.
#[derive(Debug)]
pub(crate) struct CaseContext<'a> {
    pub(crate) valgrind: &'a Path,
    pub(crate) inputs: &'a FrozenInputs,
    /// Tapes and stores that this build has made of the inputs.
    pub(crate) tapes: &'a Path,
    /// A directory of this run alone; its path is as long for every build.
    pub(crate) scratch: &'a Path,
}

/// The function that each benchmark of a binary with `--marks` calls around each repeat. It was `unitape::commands::bench::…`
/// in earlier builds, and is `unitape_bench::…` now.
const MARK: &str = "unitape*bench::record::mark";
/// The one that reads the processor's clock, in binaries without.
const CLOCK: &str = "rustix::backend::vdso_wrappers::clock_gettime_via_syscall";
/// That of the example.
const PROBE_MARK: &str = "instructions::mark";

/// Counts a case.
pub(crate) fn measure(
    build: &MeasuredBuild,
    case: &InstructionCase,
    scene: &CaseContext<'_>,
) -> Result<Vec<CaseFigure>, CallgrindFailure> {
    match &case.work {
        CaseWork::Bench(stretches) => bench(build, case.name, stretches, scene),
        CaseWork::Tape => tape(build, case.name, scene),
        CaseWork::Command { args, operations } => command(build, case.name, args, *operations, scene),
    }
}

/// The instruction sets that programs find under valgrind.
pub(crate) fn instruction_sets(
    build: &MeasuredBuild,
    scene: &CaseContext<'_>,
) -> Result<String, CallgrindFailure> {
    let Some(probe) = &build.probe else {
        return Err(CallgrindFailure::Failed("the example is not built".to_owned()));
    };
    let args = ["cpu".to_owned()];
    let stdout = fresh(scene, |scratch| callgrind::run_uncounted(&job(probe, &args, None, scratch, scene)))?;
    Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
}

fn job<'a>(
    program: &'a Path,
    args: &'a [String],
    mark: Option<&'a str>,
    scratch: &'a Path,
    scene: &'a CaseContext<'_>,
) -> CallgrindJob<'a> {
    // Samples that are not in the repository are found from its root.
    CallgrindJob {
        valgrind: scene.valgrind,
        program,
        args,
        mark,
        scratch,
        current_dir: Path::new(ROOT.as_str()),
    }
}

static ROOT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| root().to_string_lossy().into_owned());

/// Runs in an empty directory, which is gone afterwards.
fn fresh<T>(
    scene: &CaseContext<'_>,
    work: impl FnOnce(&Path) -> Result<T, CallgrindFailure>,
) -> Result<T, CallgrindFailure> {
    let failed = |e: std::io::Error| CallgrindFailure::Failed(format!("{}: {e}", scene.scratch.display()));
    _ = fs::remove_dir_all(scene.scratch);
    fs::create_dir_all(scene.scratch).map_err(failed)?;
    let result = work(scene.scratch);
    fs::remove_dir_all(scene.scratch).map_err(failed)?;
    result
}

fn bench(
    build: &MeasuredBuild,
    name: &str,
    last_repeats: &LastRepeats,
    scene: &CaseContext<'_>,
) -> Result<Vec<CaseFigure>, CallgrindFailure> {
    fresh(scene, |scratch| {
        let dir = scratch.join("bench");
        let mut args: Vec<String> = ["bench", "--quick", "--json", "--dir"].map(str::to_owned).to_vec();
        args.extend([dir.to_string_lossy().into_owned(), name.to_owned()]);
        args.extend(build.marks.then(|| "--marks".to_owned()));
        let mark = if build.marks { MARK } else { CLOCK };
        let counted = count(&job(&build.unitape, &args, Some(mark), scratch, scene))?;
        let records = lines(&counted.stdout).map_err(CallgrindFailure::Failed)?;
        let last_repeats = if build.marks { None } else { Some(last_repeats) };
        figures_of_bench(&records, &counted.counts, last_repeats).map_err(CallgrindFailure::Failed)
    })
}

fn lines(stdout: &[u8]) -> Result<Vec<Value>, String> {
    let lines = stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).map_err(|e| format!("a line that is not JSON: {e}")))
        .collect()
}

/// The figures of the records with one thread: by their marks, or by what the table knows of binaries without.
fn figures_of_bench(
    records: &[Value],
    counts: &InstructionCounts,
    last_repeats: Option<&LastRepeats>,
) -> Result<Vec<CaseFigure>, String> {
    if let Some(repeats) = last_repeats.filter(|candidate| candidate.reads != counts.marks()) {
        return Err(format!("{} reads of the clock where {} are known of", counts.marks(), repeats.reads));
    }
    let single_threaded: Vec<&Value> = records.iter().filter(|record| record["threads"] == 1).collect();
    if let Some(repeats) = last_repeats.filter(|candidate| candidate.from.len() != single_threaded.len()) {
        return Err(format!(
            "{} records of one thread where {} are known of",
            single_threaded.len(),
            repeats.from.len()
        ));
    }
    if single_threaded.is_empty() {
        return Err("no record of one thread".to_owned());
    }
    let figure = |(n, record): (usize, &&Value)| {
        let number = |value: &Value, name: &str| {
            value[name].as_u64().ok_or_else(|| format!("a record without {name}"))
        };
        let (from, operations) = match last_repeats {
            Some(repeats) => (repeats.from[n], number(record, "count")? * repeats.repeats),
            None => (number(&record["marks"], "from")?, number(&record["marks"], "operations")?),
        };
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        let mut name = format!("{}/{}", text("bench"), text("case"));
        if !text("condition").is_empty() {
            name = format!("{name}, {}", text("condition"));
        }
        each(name, counts.totals_after_mark(from), operations)
    };
    single_threaded.iter().enumerate().map(figure).collect()
}

/// Instructions over operations.
fn each(name: String, counted: InstructionTotals, operations: u64) -> Result<CaseFigure, String> {
    if operations == 0 || counted.main == 0 {
        return Err(format!("{name}: {} instructions for {operations} operations", counted.main));
    }
    let per_operation = |count: u64| count as f64 / operations as f64;
    Ok(CaseFigure {
        name,
        instructions: per_operation(counted.main),
        all_threads: per_operation(counted.all),
        operations,
    })
}

fn tape(
    build: &MeasuredBuild,
    name: &str,
    scene: &CaseContext<'_>,
) -> Result<Vec<CaseFigure>, CallgrindFailure> {
    let no_probe = || CallgrindFailure::Unknown("the cases of the tape do not compile there".to_owned());
    let probe = build.probe.as_ref().ok_or_else(no_probe)?;
    fresh(scene, |scratch| {
        let dir = scratch.join("dir");
        fs::create_dir(&dir).map_err(|e| CallgrindFailure::Failed(format!("{}: {e}", dir.display())))?;
        let case = name.split_once('/').map_or(name, |(_, case)| case);
        let args = [case.to_owned(), dir.to_string_lossy().into_owned()];
        let counted = count(&job(probe, &args, Some(PROBE_MARK), scratch, scene))?;
        let records = lines(&counted.stdout).map_err(CallgrindFailure::Failed)?;
        let operations = records.first().and_then(|record| record["count"].as_u64()).unwrap_or(0);
        if counted.counts.marks() != 4 {
            return Err(CallgrindFailure::Failed(format!("{} marks, not 4", counted.counts.marks())));
        }
        each(name.to_owned(), counted.counts.totals_after_mark(2), operations)
            .map(|f| vec![f])
            .map_err(CallgrindFailure::Failed)
    })
}

fn command(
    build: &MeasuredBuild,
    name: &str,
    args: &[&str],
    operations: OperationCount,
    scene: &CaseContext<'_>,
) -> Result<Vec<CaseFigure>, CallgrindFailure> {
    let run = |amount| {
        fresh(scene, |scratch| {
            let (root, inputs) = (root(), &scene.inputs.dir);
            let places = CasePaths { root: &root, inputs, tapes: scene.tapes, fresh: scratch };
            let args = arguments(args, amount, &places);
            let counted = count(&job(&build.unitape, &args, None, scratch, scene))?;
            let operation_count = match operations {
                OperationCount::Lines => counted.stdout.iter().filter(|b| **b == b'\n').count() as u64,
                OperationCount::Messages(file) => scene.inputs.messages(file, amount),
            };
            Ok((counted.counts.total(), operation_count))
        })
    };
    let (one, two) = (run(InputAmount::One)?, run(InputAmount::Two)?);
    difference(name, one, two).map(|figure| vec![figure]).map_err(CallgrindFailure::Failed)
}

/// The instructions that the second run has more than the first, without the start, the end and everything that is
/// done once.
fn difference(
    name: &str,
    one: (InstructionTotals, u64),
    two: (InstructionTotals, u64),
) -> Result<CaseFigure, String> {
    let less = |a: u64, b: u64| a.checked_sub(b).ok_or_else(|| format!("{name}: less for twice the input"));
    let main = less(two.0.main, one.0.main)?;
    // Threads that wait may wait less.
    let all = two.0.all.saturating_sub(one.0.all);
    each(name.to_owned(), InstructionTotals { main, all }, less(two.1, one.1)?)
}

/// Has a build make the tapes and stores that its commands read, of half and of all events.
pub(crate) fn make_tapes(build: &MeasuredBuild, inputs: &FrozenInputs, dir: &Path) -> Result<(), String> {
    _ = fs::remove_dir_all(dir);
    for amount in [InputAmount::One, InputAmount::Two] {
        let amount_dir = dir.join(amount.folder());
        fs::create_dir_all(&amount_dir).map_err(|e| format!("{}: {e}", amount_dir.display()))?;
        let (tape, store) = (amount_dir.join("tape"), amount_dir.join("store"));
        let events = inputs.dir.join(amount.folder()).join("events.jsonl");
        let words = |words: &[&str], paths: [&PathBuf; 2]| -> Vec<std::ffi::OsString> {
            let [a, b] = paths;
            let to_path = |word: &&str| match *word {
                "A" => a.into(),
                "B" => b.into(),
                word => word.into(),
            };
            words.iter().map(to_path).collect()
        };
        make(build, &words(&["consolidate", "A", "--tape", "B", "--workers", "1"], [&events, &tape]))?;
        make(build, &words(&["store", "seal", "A", "--store", "B"], [&tape, &store]))?;
    }
    Ok(())
}

fn make(build: &MeasuredBuild, args: &[std::ffi::OsString]) -> Result<(), String> {
    let mut command = Command::new(&build.unitape);
    let output = command.args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{}: {e}", build.unitape.display()))?;
    // 3: the simulated day has faults on purpose.
    if output.status.success() || output.status.code() == Some(3) {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{}: {args:?}: {}: {message}", build.unitape.display(), output.status))
}

impl CaseFigure {
    /// For the cache.
    pub(crate) fn to_json(&self) -> Value {
        json!({"name": self.name, "instructions": self.instructions, "all_threads": self.all_threads,
            "operations": self.operations})
    }

    /// Back from the cache.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            instructions: value["instructions"].as_f64()?,
            all_threads: value["all_threads"].as_f64()?,
            operations: value["operations"].as_u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Value> {
        let record = |condition: &str, threads: u64, from: u64| {
            json!({"bench": "itch", "case": "events", "condition": condition, "threads": threads, "count": 10,
                "marks": {"from": from, "operations": 10}})
        };
        vec![record("slow", 1, 2), record("two", 2, 4), record("fast", 1, 6)]
    }

    fn counts() -> InstructionCounts {
        InstructionCounts::from_counts((1..=9).map(|part| (part, 1, 100 * part)))
    }

    /// A figure of another repeat, or of several threads, would be compared with the right one of another commit.
    #[test]
    fn figures_are_those_of_the_marks_and_of_one_thread() {
        let figures = figures_of_bench(&records(), &counts(), None).unwrap();
        let names: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.instructions)).collect();
        assert_eq!(names, [("itch/events, slow", 40.0), ("itch/events, fast", 80.0)]);
    }

    /// A program that the table does not know must not be read by it.
    #[test]
    fn the_table_is_believed_only_where_it_fits() {
        let last_repeats = LastRepeats { from: &[2, 6], reads: 8, repeats: 2 };
        let figures = figures_of_bench(&records(), &counts(), Some(&last_repeats)).unwrap();
        assert_eq!(figures[0].instructions, 20.0, "two repeats in a stretch");
        let error_of =
            |table: LastRepeats| figures_of_bench(&records(), &counts(), Some(&table)).unwrap_err();
        assert!(error_of(LastRepeats { reads: 9, ..last_repeats }).contains("8 reads"), "reads");
        assert!(error_of(LastRepeats { from: &[2], ..last_repeats }).contains("2 records"), "records");
    }

    /// Starting costs the same with any input, and must not be in the figure.
    #[test]
    fn a_command_costs_what_twice_the_input_costs_more() {
        let run_totals = |main, all, operation_count| (InstructionTotals { main, all }, operation_count);
        let figure = difference("x", run_totals(1_000, 1_100, 10), run_totals(1_500, 1_050, 20)).unwrap();
        assert_eq!((figure.instructions, figure.all_threads, figure.operations), (50.0, 0.0, 10));
        assert!(difference("x", run_totals(1_000, 1_000, 10), run_totals(900, 900, 20)).is_err());
        assert!(
            difference("x", run_totals(1_000, 1_000, 10), run_totals(1_500, 1_500, 10)).is_err(),
            "no operations"
        );
    }

    #[test]
    fn a_figure_comes_back_from_the_cache() {
        let figure = CaseFigure { name: "a".to_owned(), instructions: 1.5, all_threads: 2.25, operations: 7 };
        assert_eq!(CaseFigure::from_json(&figure.to_json()), Some(figure));
        assert_eq!(CaseFigure::from_json(&json!({"name": "a"})), None);
    }
}
