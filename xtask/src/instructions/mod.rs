//! `cargo xtask instructions`: what each case costs in instructions, and whether it costs more than at another commit.
//!
//! ```text
//! this tree ─▶ release build ─┐                       ┌─▶ a table, or a line of JSON a case
//!                             ├─▶ callgrind, case by ─┤
//! --against ─▶ worktree, built┘   case, two at once   └─▶ 1 where a case costs over 3 % more, or all over 1 %
//! ```
//!
//! Instructions are counted and not timed, so that what else the machine does is nothing to them. Valgrind has no
//! AVX-512: codecs that choose at run time use AVX2 under it. `cases` lists the counted cases, and those that cannot
//! be counted.

mod builds;
mod cache;
mod callgrind;
mod cases;
mod inputs;
mod launch;
mod measure;
mod verdict;

use std::collections::VecDeque;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::cargo::{Metadata, root};
use crate::{XtaskFailure, tools};
use builds::MeasuredBuild;
use cache::FigureCache;
use callgrind::CallgrindFailure;
use cases::{CaseWork, InstructionCase, UNCOVERED};
use inputs::FrozenInputs;
use measure::CaseContext;
use verdict::{CaseOutcome, FigureVerdict, MissingCase, compare, sum_ratio, table};

/// The request in the arguments.
#[derive(Debug, Clone, PartialEq)]
struct InstructionsRequest {
    against: Option<String>,
    cases: Vec<String>,
    json: bool,
    most_percent: f64,
    jobs: usize,
    dir: Option<PathBuf>,
    check_noise: bool,
    list: bool,
}

/// The allowed growth of a case, in per cent, unless `--most` says otherwise.
const MOST_PERCENT: f64 = 3.0;

/// The allowed growth of all cases together, in per cent.
const SUM_MOST_PERCENT: f64 = 1.0;

/// Two runs of one binary differ by no more than this, in per cent.
const NOISE_MOST_PERCENT: f64 = 0.5;

/// Runs the command; 1 if a case costs too much more, or could not be counted.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let request = parse(args).map_err(XtaskFailure::Usage)?;
    let mut cases = cases::select_cases(&request.cases).map_err(XtaskFailure::Usage)?;
    if !has_samples() {
        let (needy, rest): (Vec<InstructionCase>, _) =
            cases.into_iter().partition(|case| case.name.starts_with(SAMPLES));
        cases = rest;
        needy
            .iter()
            .for_each(|case| eprintln!("{} is left out: UNITAPE_SAMPLES names no {SAMPLES}", case.name));
    }
    if request.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        print_uncovered();
        return Ok(0);
    }
    tools::c_compiler()?;
    let valgrind = tools::valgrind()?;
    let dir = match &request.dir {
        Some(dir) => std::path::absolute(dir).map_err(|e| format!("{}: {e}", dir.display()))?,
        None => Metadata::load()?.target_dir()?.join("instructions"),
    };
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let before = request.against.as_deref().map(|rev| builds::commit(&dir, rev)).transpose()?;
    let after = builds::tree(&dir)?;
    let bench = InstructionsRun::new(valgrind, &dir, &after, request.jobs)?;
    let sets = bench.instruction_sets(&after)?;
    eprintln!("instruction sets under valgrind: {sets}");
    if request.check_noise {
        return noise(&bench, &after, &cases, request.json);
    }
    let outcomes = bench.outcomes(&after, &cases, true)?;
    let past = before.as_ref().map(|before| bench.outcomes(before, &cases, true)).transpose()?;
    let mut lines = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        lines.extend(compare(
            case.name,
            &outcomes[n],
            past.as_ref().map(|past| &past[n]),
            request.most_percent,
        ));
    }
    let against = before.as_ref().map(|before| before.name.as_str());
    if request.json {
        lines.iter().for_each(|line| println!("{}", line.to_json(against, &sets)));
    } else {
        print!("{}", table(&lines, before.is_some()));
        println!("\nInstructions of an operation, on the thread that does the work, under valgrind: {sets}.");
        println!(
            "It has no AVX-512, so codecs use AVX2 there. The bench cases that are not counted: --list."
        );
    }
    // The sum over a few chosen cases says nothing of the whole.
    let sum = if request.cases.is_empty() { sum_ratio(&lines) } else { None };
    let is_sum_bad =
        sum.is_some_and(|ratio| FigureVerdict::from_ratio(ratio, SUM_MOST_PERCENT) == FigureVerdict::More);
    if let Some(ratio) = sum {
        eprintln!(
            "the sum of all cases is {ratio:.4} of what it was; {SUM_MOST_PERCENT} % more is permitted"
        );
    }
    let bad = lines.iter().filter(|line| line.verdict.is_bad()).count();
    if let (Some(against), false) = (against, bad == 0) {
        let (most, against) = (request.most_percent, builds::short(against));
        eprintln!("xtask: {bad} cases cost over {most} % more than at {against}, or could not be counted");
    }
    Ok(u8::from(bad > 0 || is_sum_bad))
}

/// Messages that are not free to be in the repository, and the cases that need them.
const SAMPLES: &str = "fast/cme";

/// Whether these messages are where the benches look for them.
fn has_samples() -> bool {
    let named = std::env::var_os("UNITAPE_SAMPLES").map(PathBuf::from);
    let places = [named, Some("samples".into()), Some("../shared/data".into())];
    places.into_iter().flatten().any(|dir| root().join(dir).join(SAMPLES).join("templates.xml").is_file())
}

fn parse(args: &[String]) -> Result<InstructionsRequest, String> {
    let mut request = InstructionsRequest {
        against: None,
        cases: Vec::new(),
        json: false,
        most_percent: MOST_PERCENT,
        jobs: std::thread::available_parallelism().map_or(1, |n| n.get().min(2)),
        dir: None,
        check_noise: false,
        list: false,
    };
    let mut args = args.iter().peekable();
    while let Some(arg) = args.next() {
        let mut value = |noun: &str| {
            let next = args.next_if(|next| !next.starts_with("--"));
            next.cloned().ok_or_else(|| format!("{arg} wants {noun}"))
        };
        match arg.as_str() {
            "--against" => request.against = Some(value("a commit")?),
            "--dir" => request.dir = Some(value("a directory")?.into()),
            "--most" => {
                let text = value("a percentage")?;
                let percent = text.parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
                request.most_percent =
                    percent.ok_or_else(|| format!("--most wants a percentage, not `{text}`"))?;
            }
            "--jobs" => {
                let text = value("a number")?;
                let jobs = text.parse().ok().filter(|jobs| (1..=64).contains(jobs));
                request.jobs =
                    jobs.ok_or_else(|| format!("--jobs wants a number from 1 to 64, not `{text}`"))?;
            }
            "--case" => {
                request.cases.push(value("a name")?);
                while let Some(name) = args.next_if(|next| !next.starts_with("--")) {
                    request.cases.push(name.clone());
                }
            }
            "--json" => request.json = true,
            "--check-noise" => request.check_noise = true,
            "--list" => request.list = true,
            other => return Err(format!("unknown argument `{other}`; see cargo xtask help")),
        }
    }
    if request.check_noise && request.against.is_some() {
        return Err("--check-noise counts this tree twice; it goes with no --against".to_owned());
    }
    Ok(request)
}

fn print_uncovered() {
    println!("\nnot counted:");
    UNCOVERED.iter().for_each(|(names, reason)| println!("  {names}: {reason}"));
}

/// Counts every case twice, without the cache, and says how far the two are apart.
fn noise(
    bench: &InstructionsRun,
    build: &MeasuredBuild,
    cases: &[InstructionCase],
    json: bool,
) -> Result<u8, XtaskFailure> {
    let (first, second) = (bench.outcomes(build, cases, false)?, bench.outcomes(build, cases, false)?);
    let (mut worst, mut bad) = (0.0f64, false);
    for (n, case) in cases.iter().enumerate() {
        for line in compare(case.name, &second[n], Some(&first[n]), NOISE_MOST_PERCENT) {
            let percent = line.ratio.map_or(0.0, |ratio| (ratio - 1.0) * 100.0);
            worst = worst.max(percent.abs());
            bad |= line.ratio.is_none() || percent.abs() > NOISE_MOST_PERCENT;
            if json {
                println!("{}", line.to_json(None, ""));
            } else {
                println!(
                    "{percent:+9.4} %  {}{}",
                    line.name,
                    line.reason.map_or(String::new(), |reason| format!(": {reason}"))
                );
            }
        }
    }
    eprintln!("two runs of one binary are at most {worst:.4} % apart; {NOISE_MOST_PERCENT} % is permitted");
    Ok(u8::from(bad))
}

/// The state that the runs of all builds share.
struct InstructionsRun {
    valgrind: PathBuf,
    dir: PathBuf,
    /// The directory of the runs' files: in memory, if possible.
    run_dir: RunDirectory,
    inputs: FrozenInputs,
    jobs: usize,
}

impl InstructionsRun {
    fn new(valgrind: PathBuf, dir: &Path, build: &MeasuredBuild, jobs: usize) -> Result<Self, String> {
        let inputs = inputs::prepare(&dir.join("inputs"), build)?;
        Ok(Self { valgrind, dir: dir.to_owned(), run_dir: RunDirectory::new()?, inputs, jobs })
    }

    fn scene<'a>(&'a self, tapes: &'a Path, scratch: &'a Path) -> CaseContext<'a> {
        CaseContext { valgrind: &self.valgrind, inputs: &self.inputs, tapes, scratch }
    }

    fn instruction_sets(&self, build: &MeasuredBuild) -> Result<String, String> {
        let scratch = self.run_dir.0.join("cpu");
        match measure::instruction_sets(build, &self.scene(&scratch, &scratch)) {
            Ok(sets) => Ok(sets),
            Err(CallgrindFailure::Unknown(reason) | CallgrindFailure::Failed(reason)) => {
                Err(format!("valgrind: {reason}"))
            }
        }
    }

    /// The costs of all cases in a build, in their order: from the cache where it has them, if it is to be used.
    fn outcomes(
        &self,
        build: &MeasuredBuild,
        cases: &[InstructionCase],
        cached: bool,
    ) -> Result<Vec<CaseOutcome>, String> {
        let cache = FigureCache::open(&self.dir, build, self.inputs.hash, &self.valgrind)?;
        let mut outcomes: Vec<Option<CaseOutcome>> =
            cases.iter().map(|case| cached.then(|| cache.get(case)).flatten().map(Ok)).collect();
        let open: VecDeque<usize> = (0..cases.len()).filter(|n| outcomes[*n].is_none()).collect();
        let tapes = self.run_dir.0.join("tapes");
        if open.iter().any(|n| matches!(cases[*n].work, CaseWork::Command { .. })) {
            measure::make_tapes(build, &self.inputs, &tapes)?;
        }
        let progress =
            ProgressLine { name: builds::short(&build.name), total: open.len(), terminal: terminal() };
        let shared = Mutex::new((open, cache, &mut outcomes, 0));
        std::thread::scope(|scope| {
            for job in 0..self.jobs {
                let (shared, progress, tapes) = (&shared, &progress, &tapes);
                scope.spawn(move || {
                    let scratch = self.run_dir.0.join(format!("job-{job:02}"));
                    loop {
                        let next = shared.lock().ok().and_then(|mut shared| shared.0.pop_front());
                        let Some(n) = next else { return };
                        let outcome = outcome(build, &cases[n], &self.scene(tapes, &scratch));
                        let Ok(mut shared) = shared.lock() else { return };
                        if let (Ok(figures), true) = (&outcome, cached) {
                            shared.1.insert_figures(&cases[n], figures);
                        }
                        shared.2[n] = Some(outcome);
                        shared.3 += 1;
                        progress.show(shared.3, cases[n].name);
                    }
                });
            }
        });
        progress.end();
        let failed =
            || Err(MissingCase { unknown: false, reason: "the thread that counted it panicked".to_owned() });
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(failed)).collect())
    }
}

fn outcome(build: &MeasuredBuild, case: &InstructionCase, scene: &CaseContext<'_>) -> CaseOutcome {
    measure::measure(build, case, scene).map_err(|trouble| match trouble {
        CallgrindFailure::Unknown(reason) => MissingCase { unknown: true, reason },
        CallgrindFailure::Failed(reason) => MissingCase { unknown: false, reason },
    })
}

/// A directory for the files of this run; gone with it.
struct RunDirectory(PathBuf);

impl RunDirectory {
    fn new() -> Result<Self, String> {
        let shared = Path::new("/dev/shm");
        let parent_dir = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        remove_abandoned(&parent_dir);
        // As long for every process, so that no path is longer in one run than in another.
        let dir = parent_dir.join(format!("{PLACE}{:010}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(Self(dir))
    }
}

const PLACE: &str = "unitape-instructions-";

/// Removes what runs have left that were killed.
fn remove_abandoned(parent_dir: &Path) {
    for entry in fs::read_dir(parent_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PLACE)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Perhaps another user's: then it stays.
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // The counts are right whether or not this can be removed.
        _ = fs::remove_dir_all(&self.0);
    }
}

fn terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// One line on a terminal; nothing elsewhere.
struct ProgressLine<'a> {
    name: &'a str,
    total: usize,
    terminal: bool,
}

impl ProgressLine<'_> {
    fn show(&self, done_count: usize, case: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{}: {done_count} of {} cases, {case}", self.name, self.total);
        }
    }

    fn end(&self) {
        if self.terminal && self.total > 0 {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<InstructionsRequest, String> {
        parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    /// Files of a killed run in memory are memory that nobody has; files of a run beside this one belong to that run.
    #[test]
    fn what_killed_runs_left_is_removed_and_nothing_else() {
        let parent_dir = tempfile::tempdir().unwrap();
        let ours = format!("{PLACE}{:010}", std::process::id());
        let dead_name = format!("{PLACE}{:010}", u32::MAX);
        for name in [ours.as_str(), &dead_name, "unitape-instructions-x", "other"] {
            fs::create_dir(parent_dir.path().join(name)).unwrap();
        }
        remove_abandoned(parent_dir.path());
        let mut left: Vec<_> =
            fs::read_dir(parent_dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", ours.as_str(), "unitape-instructions-x"]);
    }

    /// An option that is passed over, or swallowed as a name, makes a check that checks something else.
    #[test]
    fn arguments_are_what_they_say() {
        let request =
            parsed("--against HEAD~1 --case fix tape/record --most 0.5 --json --jobs 3 --dir d").unwrap();
        assert_eq!(request.against.as_deref(), Some("HEAD~1"));
        assert_eq!(request.cases, ["fix", "tape/record"]);
        assert_eq!((request.most_percent, request.json, request.jobs), (0.5, true, 3));
        assert_eq!(request.dir.as_deref(), Some(Path::new("d")));
        let defaults = parsed("").unwrap();
        assert_eq!((defaults.most_percent, defaults.against, defaults.list), (MOST_PERCENT, None, false));
        for bad in [
            "--against",
            "--against --json",
            "--case",
            "--most much",
            "--most -1",
            "--most NaN",
            "--jobs 0",
            "HEAD",
            "--check-noise --against HEAD",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
