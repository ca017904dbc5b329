//! The step `test`: all tests of the workspace by cargo-nextest, then the examples in the documentation by cargo.
//!
//! ```text
//! cargo nextest run --no-run ──▶ all test binaries                                      ──▶ seconds
//! cargo nextest list         ──▶ tests of each package, at least as many as xtask/checks.txt says
//! cargo nextest run          ──▶ PASS [ 0.011s] (  1/900) unitape-tape::kill writer ──▶ counts, seconds, the slowest
//! cargo test --doc           ──▶ test result: ok. 7 passed; …                       ──▶ counts
//! ```
//!
//! Nextest runs each test in a process of its own, tests of several binaries at a time, and measures each. Where it
//! cannot be installed, plain `cargo test` runs the same tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::cargo::cargo;
use crate::noise::BusyLoops;
use crate::report::{self, TestCount};
use crate::steps::{StepContext, StepOutcome, joined};
use crate::{checks, tools};

/// The number of the slowest tests that are listed.
const SLOWEST: usize = 20;
/// The name under which the seconds of compiling are recorded.
const COMPILING: &str = "compiling";
/// The package whose tests run in Python.
const PYTHON_PACKAGE: &str = "unitape-python";
/// More than this of the end of a run's output is not repeated in the summary.
const FAILURE_LINES: usize = 40;

pub(crate) fn run(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let mut problems = Vec::new();
    let python = tools::python_environment();
    if let Err(reason) = &python {
        eprintln!("skipped: the tests in Python: {reason}");
        count.skipped += 1;
    }
    match tools::install(&tools::CARGO_NEXTEST, &context.target_dir) {
        Ok(nextest) => {
            if let Err(reason) = build(&nextest, context, count) {
                return StepOutcome::Failed(reason);
            }
            // Fewer packages are built with other features, which some tests need.
            if context.packages.is_none() {
                problems.extend(checks::check(&nextest, context.locked).err());
            }
            let _noise = context.has_noise.then(BusyLoops::start);
            let mut command = nextest_run(&nextest, context);
            command.args(["--status-level", "pass", "--final-status-level", "fail"]);
            command.args(["--show-progress", "none", "--failure-output", "final", "--no-fail-fast"]);
            command.args(["--test-threads", &tests_at_a_time().to_string()]);
            if python.is_err() {
                command.args(["--filterset", &format!("not package({PYTHON_PACKAGE})")]);
            }
            problems.extend(by_nextest(seeded(&mut command), context, count).err());
            let mut examples = cargo();
            examples.args(["test", "--doc", "--no-fail-fast", context.locked]).args(context.package_args());
            problems.extend(report::run(&mut examples, count).err());
        }
        Err(reason) => {
            eprintln!("{reason}; cargo runs the tests, and their numbers are not compared");
            let mut command = cargo();
            command.args(["test", "--no-fail-fast", context.locked]).args(context.package_args());
            if python.is_err() && context.packages.is_none() {
                command.args(["--exclude", PYTHON_PACKAGE]);
            }
            problems.extend(report::run(seeded(&mut command), count).err());
        }
    }
    joined(problems)
}

/// One test more than cores: many wait for a disk, a process or a port.
fn tests_at_a_time() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 1
}

fn nextest_run(nextest: &Path, context: &StepContext) -> Command {
    let mut command = Command::new(nextest);
    command.args(["nextest", "run", "--color", "never", context.locked]).args(context.package_args());
    command.current_dir(crate::cargo::root());
    command
}

/// Builds everything first, so that the seconds of compiling and of the tests are printed apart.
fn build(nextest: &Path, context: &StepContext, count: &mut TestCount) -> Result<(), String> {
    let start = Instant::now();
    report::run(nextest_run(nextest, context).arg("--no-run"), count)?;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("compiling took {seconds:.1} s");
    context.timings.add(COMPILING, seconds);
    Ok(())
}

/// The property tests run the same cases unless others are asked for.
fn seeded(command: &mut Command) -> &mut Command {
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        command.env("PROPTEST_RNG_SEED", "1");
    }
    command
}

fn by_nextest(command: &mut Command, context: &StepContext, count: &mut TestCount) -> Result<(), String> {
    let name = report::command_text(command);
    eprintln!("$ {name}");
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("`{name}` does not start: {e}"))?;
    let mut results = NextestResults::default();
    if let Some(stderr) = child.stderr.take() {
        let read = results.read(BufReader::new(stderr), &mut std::io::stderr());
        read.map_err(|e| format!("`{name}`: reading its output: {e}"))?;
    }
    let status = child.wait().map_err(|e| format!("`{name}`: {e}"))?;
    results.slowest().iter().for_each(|line| eprintln!("{line}"));
    results.by_binary().into_iter().for_each(|(binary, seconds)| context.timings.add(&binary, seconds));
    *count += results.count;
    if status.success() { Ok(()) } else { Err(format!("`{name}` ended with {status}")) }
}

/// The output of nextest for a run.
#[derive(Default)]
struct NextestResults {
    count: TestCount,
    /// Seconds and name of each test.
    times: Vec<(f64, String)>,
    /// Whether the list of failed tests has begun.
    in_failures: bool,
}

impl NextestResults {
    /// Reads all lines and passes them on as they come.
    fn read(&mut self, mut from: impl BufRead, to: &mut impl Write) -> std::io::Result<()> {
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? != 0 {
            self.line(&String::from_utf8_lossy(&line));
            to.write_all(&line)?;
            line.clear();
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        let text = line.trim();
        // The lines of the run come first, then the summary, then the output of what failed.
        if let Some((run, passed, failed, skipped)) = summary(text) {
            self.count.passed += passed;
            // A test that was ended for its time is one that failed.
            self.count.failed += failed.max(run - passed);
            self.count.skipped += skipped;
            self.in_failures = true;
        } else if self.in_failures {
            self.repeat(text);
        } else if let Some((_, seconds, name)) = result(text) {
            self.times.push((seconds, name.to_owned()));
        }
    }

    /// Keeps the start of what failed for the end of the whole run.
    fn repeat(&mut self, text: &str) {
        let names_one = result(text).is_some_and(|(state, ..)| state != "PASS");
        if names_one {
            self.count.failures.push(text.to_owned());
        } else if let Some(failure) = self.count.failures.last_mut()
            && failure.lines().count() < FAILURE_LINES
        {
            failure.extend(["\n", text]);
        }
    }

    /// Seconds of all tests of a binary, by the name that nextest gives it; of each module where a binary has some.
    fn by_binary(&self) -> BTreeMap<String, f64> {
        let mut seconds = BTreeMap::new();
        for (took, name) in &self.times {
            let (binary, test) = name.split_once(' ').unwrap_or((name, ""));
            let part = match test.split_once("::") {
                Some((module, _)) if binary.contains("::") => format!("{binary}::{module}"),
                _ => binary.to_owned(),
            };
            *seconds.entry(part).or_insert(0.0) += took;
        }
        seconds
    }

    /// The slowest tests, a line each.
    fn slowest(&mut self) -> Vec<String> {
        self.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let all: f64 = self.times.iter().map(|(seconds, _)| seconds).sum();
        let head = format!("\nthe slowest of {} tests, {all:.0} s together:", self.times.len());
        let lines = self.times.iter().take(SLOWEST).map(|(seconds, name)| format!("{seconds:8.1} s  {name}"));
        std::iter::once(head).chain(lines).collect()
    }
}

/// `PASS [   0.011s] (1/9) unitape-tape::kill writer` as state, seconds and name.
fn result(text: &str) -> Option<(&str, f64, &str)> {
    let (state, rest) = text.split_once(" [")?;
    let is_state = ["PASS", "FAIL", "TIMEOUT", "ABORT", "LEAK", "LEAK-FAIL"].contains(&state)
        || state.starts_with("SIG");
    let (seconds, rest) = rest.split_once("s] ")?;
    let name = match rest.trim_start().strip_prefix('(') {
        Some(numbered) => numbered.split_once(") ")?.1,
        None => rest,
    };
    is_state.then_some((state, seconds.trim_start_matches('>').trim().parse().ok()?, name.trim()))
}

/// `Summary [  12.3s] 900 tests run: 898 passed (2 slow), 2 failed, 3 skipped` as tests run, passed, failed, skipped.
fn summary(text: &str) -> Option<(u64, u64, u64, u64)> {
    let rest = text.strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once("] ")?;
    let (run, rest) = rest.split_once(" run: ")?;
    // `898/900 tests run` where a run was interrupted.
    let run = run.split([' ', '/']).next()?.parse().ok()?;
    let count_of = |word: &str| {
        let part = rest.split(", ").find(|part| part.split(' ').nth(1).is_some_and(|w| w.starts_with(word)));
        part.and_then(|part| part.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    Some((run, count_of("passed"), count_of("failed") + count_of("timed"), count_of("skipped")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A count that is read wrongly would turn failures into a green run.
    #[test]
    fn the_summary_is_counted() {
        let ok = "Summary [  63.123s] 1550 tests run: 1550 passed (3 slow), 2 skipped";
        assert_eq!(summary(ok), Some((1550, 1550, 0, 2)));
        let bad = "Summary [   1.000s] 10 tests run: 7 passed, 2 failed, 1 timed out, 0 skipped";
        assert_eq!(summary(bad), Some((10, 7, 3, 0)));
        assert_eq!(summary("Summary [ 1.0s] 3/10 tests run: 3 passed, 0 skipped"), Some((3, 3, 0, 0)));
        assert_eq!(summary("Summary of nothing"), None);
    }

    #[test]
    fn each_result_has_its_time_and_name() {
        let line = "PASS [   0.011s] (   1/1550) unitape-tape::kill a_writer";
        assert_eq!(result(line), Some(("PASS", 0.011, "unitape-tape::kill a_writer")));
        let line = "FAIL [  12.500s] (  2/3) unitape-model tests::x";
        assert_eq!(result(line), Some(("FAIL", 12.5, "unitape-model tests::x")));
        assert_eq!(result("SLOW [> 60.000s] unitape x"), None, "not ended yet");
        assert_eq!(result("TIMEOUT [ 900.1s] (1/1) unitape::x y").map(|r| r.0), Some("TIMEOUT"));
        assert_eq!(result("SIGABRT [   0.1s] (1/1) unitape::x y").map(|r| r.0), Some("SIGABRT"));
    }

    /// A landing states the seconds it adds: by binary, because single tests come and go.
    #[test]
    fn seconds_are_added_up_by_binary() {
        let text = "PASS [ 0.2s] (1/4) a::b m::x\nPASS [ 0.3s] (2/4) a::b y\nFAIL [ 1.5s] (3/4) c z\n\
                    PASS [ 0.7s] (4/4) unitape::cli book::x\n";
        let mut results = NextestResults::default();
        results.read(text.as_bytes(), &mut Vec::new()).unwrap();
        let seconds: Vec<_> = results.by_binary().into_iter().collect();
        let wanted = [("a::b", 0.3), ("a::b::m", 0.2), ("c", 1.5), ("unitape::cli::book", 0.7)];
        assert_eq!(seconds, wanted.map(|(part, seconds)| (part.to_owned(), seconds)));
    }

    /// The closing lines are often all that is kept of a run: what failed must be among them.
    #[test]
    fn failures_are_repeated_at_the_end() {
        let text = "    PASS [   0.2s] (1/2) a::b good\n    FAIL [   0.1s] (2/2) a::b bad\n────\n\
             Summary [   0.3s] 2 tests run: 1 passed, 1 failed, 0 skipped\n\
             FAIL [   0.1s] (2/2) a::b bad\n  stdout ───\n    test result: FAILED. 0 passed; 1 failed; 0 ignored\n  thread panicked\n";
        let (mut results, mut out) = (NextestResults::default(), Vec::new());
        results.read(text.as_bytes(), &mut out).unwrap();
        assert_eq!(out, text.as_bytes());
        assert_eq!((results.count.passed, results.count.failed), (1, 1));
        assert_eq!(results.count.failures.len(), 1);
        assert!(results.count.failures[0].contains("panicked"), "{:?}", results.count.failures);
        assert!(results.slowest()[1].contains("0.2 s  a::b good"));
    }
}
