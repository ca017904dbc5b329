//! The search with the fuzz targets: one binary, built once; two targets run at a time, each in a process of its own.
//!
//! ```text
//! fuzz/src/targets/*.rs ──cargo fuzz build──▶ targets ──▶ seeds of the corpus, then a search ──▶ inputs, findings
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::cargo::{root, rustflags};
use crate::report::{self, TestCount};
use crate::steps::StepContext;
use crate::tools;

/// The binary that holds all targets, and the variable that names the one to run.
const BINARY: &str = "targets";
const VARIABLE: &str = "UNITAPE_FUZZ_TARGET";
/// Targets that run at the same time: each is one thread and up to 2 GB.
pub(crate) const AT_ONCE: usize = 2;

/// The effort of each target's search, from the inputs that earlier runs found.
pub(crate) struct FuzzEffort {
    pub(crate) seconds: u64,
    /// The start of the search.
    pub(crate) seed: u64,
    /// A slow target continues to this number of inputs.
    pub(crate) least: u64,
}

/// Runs each target, two at a time, and gives the inputs of each.
pub(crate) fn run_all(
    context: &StepContext,
    binary: &Path,
    effort: FuzzEffort,
    count: &mut TestCount,
) -> Result<BTreeMap<String, u64>, String> {
    let search = FuzzSearch::new(context, &effort);
    let left = Mutex::new(targets()?.into_iter().collect::<VecDeque<_>>());
    let next = || left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
    let results: Vec<Result<(String, u64), String>> = std::thread::scope(|scope| {
        let run_some = || {
            let mut results = Vec::new();
            while let Some(target) = next() {
                results.push(search.run(binary, &target).map(|inputs| (target, inputs)));
            }
            results
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run_some)).collect();
        let panicked = || vec![Err("a thread of the fuzz step has panicked".to_owned())];
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    // A run of the fuzzer is a test of its own: it has no closing line that could be counted.
    let mut inputs = BTreeMap::new();
    let mut problems = Vec::new();
    for result in results {
        match result {
            Ok((target, number)) => _ = inputs.insert(target, number),
            Err(reason) => problems.push(reason),
        }
    }
    count.passed += inputs.len() as u64;
    count.failed += problems.len() as u64;
    if problems.is_empty() { Ok(inputs) } else { Err(problems.join("; ")) }
}

/// The targets by name: each is a file.
pub(crate) fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/src/targets");
    let with_folder = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(with_folder)? {
        let path = entry.map_err(with_folder)?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "rs") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    if names.is_empty() { Err(format!("{}: no targets", folder.display())) } else { Ok(names) }
}

/// Builds the binary of all targets.
pub(crate) fn build_targets(context: &StepContext, count: &mut TestCount) -> Result<PathBuf, String> {
    let cargo_fuzz = tools::install(&tools::CARGO_FUZZ, &context.target_dir)?;
    let folder = context.target_dir.join("fuzz");
    let mut command = Command::new("rustup");
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command.args(["run", "nightly"]).arg(cargo_fuzz).args(["build", "--target-dir"]).arg(&folder);
    // Cargo-fuzz asks for one unit of code for each crate, which keeps a core idle for minutes.
    command.env("RUSTFLAGS", rustflags("-Ccodegen-units=4")).env("CARGO_PROFILE_RELEASE_LTO", "off");
    report::run(command.arg(BINARY).current_dir(root()), count)?;
    let host = tools::host().ok_or("rustc does not name its host")?;
    Ok(folder.join(host).join("release").join(BINARY))
}

/// The search that a run does for each target.
struct FuzzSearch {
    /// The fuzzer writes what it finds below this folder and only reads the tracked seeds.
    corpus_dir: PathBuf,
    /// The end of a target's search.
    ends: Vec<String>,
    /// A target that has run fewer inputs then continues.
    least: u64,
    args: Vec<String>,
}

impl FuzzSearch {
    fn new(context: &StepContext, effort: &FuzzEffort) -> Self {
        // Inputs that need more memory or time than any message deserves are findings too.
        let mut args =
            ["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"].map(str::to_owned).to_vec();
        // The fuzzer reads the seed as an unsigned number of 32 bits.
        args.push(format!("-seed={}", effort.seed % (1 << 32)));
        Self {
            corpus_dir: context.target_dir.join("fuzz-corpus"),
            ends: vec![format!("-max_total_time={}", effort.seconds)],
            least: effort.least,
            args,
        }
    }

    /// The number of inputs that ran.
    fn run(&self, binary: &Path, target: &str) -> Result<u64, String> {
        let inputs = self.run_until(binary, target, &self.ends)?;
        if inputs >= self.least {
            return Ok(inputs);
        }
        // It runs the inputs of its corpus again first, which are no new ones.
        let corpus_inputs = self.corpus(target);
        let rest = format!("-runs={}", self.least - inputs + corpus_inputs);
        let more = self.run_until(binary, target, &[rest])?;
        Ok(inputs + more.saturating_sub(corpus_inputs))
    }

    /// The number of inputs that a target begins with: those that are tracked, and those that it found.
    fn corpus(&self, target: &str) -> u64 {
        let folders = [root().join("fuzz/corpus").join(target), self.corpus_dir.join(target)];
        folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .map(|files| files.count() as u64)
            .sum()
    }

    fn run_until(&self, binary: &Path, target: &str, ends: &[String]) -> Result<u64, String> {
        let target_corpus = self.corpus_dir.join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        for folder in [&target_corpus, &artifacts] {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let mut command = Command::new(binary);
        command.arg(&target_corpus);
        let seeds = root().join("fuzz/corpus").join(target);
        if seeds.is_dir() {
            command.arg(&seeds);
        }
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).args(ends).args(&self.args);
        command.env(VARIABLE, target).env("ASAN_OPTIONS", "detect_odr_violation=0").current_dir(root());
        // Targets that work on files flush them: in memory that costs nothing. A target that crashes leaves its files.
        let memory = Path::new("/dev/shm");
        let scratch = memory.join(format!("unitape-fuzz-{}-{target}", std::process::id()));
        if memory.is_dir() {
            std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
            command.env("TMPDIR", &scratch);
        }
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output();
        _ = std::fs::remove_dir_all(&scratch);
        let output = output.map_err(|e| format!("{target}: {e}"))?;
        let stderr_text = String::from_utf8_lossy(&output.stderr);
        let seconds = start.elapsed().as_secs_f64();
        let inputs = executed(&stderr_text);
        if output.status.success() {
            eprintln!("fuzz {target:16} {inputs:>9} inputs in {seconds:.1} s");
            return Ok(inputs);
        }
        eprintln!("{stderr_text}");
        eprintln!("fuzz {target:16} FAILED after {inputs} inputs: {}", output.status);
        Err(format!("the fuzz target {target} ended with {}", output.status))
    }
}

/// The number of inputs that were run, by the fuzzer's statistics.
fn executed(stderr_text: &str) -> u64 {
    let line =
        stderr_text.lines().rev().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_from_the_statistics() {
        let stderr_text =
            "Done 9 runs\nstat::number_of_executed_units: 15267\nstat::average_exec_per_sec:     492\n";
        assert_eq!(executed(stderr_text), 15_267);
        assert_eq!(executed("crash"), 0);
    }
}
