//! The fuzz targets: one binary, built once; two targets run at a time, each in a process of its own.
//!
//! ```text
//! fuzz/targets/*.rs ──cargo fuzz build──▶ targets ──▶ seeds of the corpus, then a search ──▶ inputs, findings
//! ```

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::cargo::{root, rustflags};
use crate::report::{self, Count};
use crate::steps::{Context, Outcome, joined};
use crate::tools;

/// Inputs of a fuzz target in the ordinary run, and the seconds after which it ends with fewer.
const RUNS: u32 = 20_000;
const SECONDS: u32 = 3;
/// The binary that holds all targets, and the variable that names the one to run.
const BINARY: &str = "targets";
const VARIABLE: &str = "UNITAPE_FUZZ_TARGET";
/// Targets that run at the same time: each is one thread and up to 2 GB.
const AT_ONCE: usize = 2;

/// Builds all targets and runs each.
pub(crate) fn run(context: &Context, count: &mut Count) -> Outcome {
    if tools::nightly().is_none() {
        return Outcome::Skipped(tools::NO_NIGHTLY.to_owned());
    }
    let targets = match targets() {
        Ok(targets) => targets,
        Err(why) => return Outcome::Failed(why),
    };
    let cargo_fuzz = match tools::install(&tools::CARGO_FUZZ, &context.target_dir) {
        Ok(binary) => binary,
        Err(why) => return Outcome::Skipped(why),
    };
    let binary = match build(context, &cargo_fuzz, count) {
        Ok(binary) => binary,
        Err(why) => return Outcome::Failed(why),
    };
    let search = match Search::wanted(context) {
        Ok(search) => search,
        Err(why) => return Outcome::Failed(why),
    };
    let left = Mutex::new(targets.into_iter().collect::<VecDeque<_>>());
    let next = || left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
    let problems = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut problems = Vec::new();
                    let mut passed = 0;
                    while let Some(target) = next() {
                        match search.run(&binary, &target) {
                            Ok(()) => passed += 1,
                            Err(why) => problems.push(why),
                        }
                    }
                    (passed, problems)
                })
            })
            .collect();
        let mut problems = Vec::new();
        for thread in threads {
            // A run of the fuzzer is a test of its own: it has no closing line that could be counted.
            match thread.join() {
                Ok((passed, failed)) => {
                    count.passed += passed;
                    count.failed += failed.len() as u64;
                    problems.extend(failed);
                }
                Err(_) => problems.push("a thread of the fuzz step has panicked".to_owned()),
            }
        }
        problems
    });
    joined(problems)
}

/// The targets by name: each is a file beside the one with the table.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/targets");
    let at = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(at)? {
        let path = entry.map_err(at)?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "rs") && name != "main" {
            names.push(name.to_owned());
        }
    }
    names.sort();
    if names.is_empty() { Err(format!("{}: no targets", folder.display())) } else { Ok(names) }
}

fn build(context: &Context, cargo_fuzz: &Path, count: &mut Count) -> Result<PathBuf, String> {
    let folder = context.target_dir.join("fuzz");
    let mut command = Command::new("rustup");
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command.args(["run", "nightly"]).arg(cargo_fuzz).args(["build", "--target-dir"]).arg(&folder);
    // Cargo-fuzz asks for one unit of code for each crate, which keeps a core idle for minutes.
    command.env("RUSTFLAGS", rustflags("-Ccodegen-units=16"));
    report::run(command.arg(BINARY).current_dir(root()), count)?;
    let host = tools::host().ok_or("rustc does not name its host")?;
    Ok(folder.join(host).join("release").join(BINARY))
}

/// What a run of each target does.
struct Search {
    /// The fuzzer writes what it finds below this folder and only reads the tracked seeds.
    found: PathBuf,
    args: Vec<String>,
}

impl Search {
    /// By `FUZZ_SECONDS` and `FUZZ_SEED`, or as in the ordinary run.
    fn wanted(context: &Context) -> Result<Self, String> {
        let found = context.target_dir.join("fuzz-corpus");
        let mut args = match std::env::var("FUZZ_SECONDS") {
            Ok(seconds) => vec![format!("-max_total_time={seconds}")],
            Err(_) => {
                // The ordinary run starts from the tracked seeds alone: what it does must not depend on earlier runs.
                // All seeds run; the search after them ends after some inputs, so that it is the same on every machine
                // that is fast enough.
                if found.exists() {
                    std::fs::remove_dir_all(&found).map_err(|e| format!("{}: {e}", found.display()))?;
                }
                vec![format!("-runs={RUNS}"), format!("-max_total_time={SECONDS}")]
            }
        };
        // Inputs that need more memory or time than any message deserves are findings too.
        args.extend(["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"].map(str::to_owned));
        // The same search unless another is asked for: what is green stays green, and a longer run looks elsewhere.
        args.push(format!("-seed={}", std::env::var("FUZZ_SEED").unwrap_or_else(|_| "1".to_owned())));
        Ok(Self { found, args })
    }

    fn run(&self, binary: &Path, target: &str) -> Result<(), String> {
        let found = self.found.join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        for folder in [&found, &artifacts] {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let mut command = Command::new(binary);
        command.arg(&found);
        let seeds = root().join("fuzz/corpus").join(target);
        if seeds.is_dir() {
            command.arg(&seeds);
        }
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).args(&self.args);
        command.env(VARIABLE, target).env("ASAN_OPTIONS", "detect_odr_violation=0").current_dir(root());
        // Targets that work on files flush them: in memory that costs nothing.
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            command.env("TMPDIR", memory);
        }
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{target}: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let seconds = start.elapsed().as_secs_f64();
        let inputs = executed(&said);
        if output.status.success() {
            eprintln!("fuzz {target:16} {inputs:>9} inputs in {seconds:.1} s");
            return Ok(());
        }
        eprintln!("{said}");
        eprintln!("fuzz {target:16} FAILED after {inputs} inputs: {}", output.status);
        Err(format!("the fuzz target {target} ended with {}", output.status))
    }
}

/// How many inputs were run, as the fuzzer's statistics say.
fn executed(said: &str) -> u64 {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_from_the_statistics() {
        let said =
            "Done 9 runs\nstat::number_of_executed_units: 15267\nstat::average_exec_per_sec:     492\n";
        assert_eq!(executed(said), 15_267);
        assert_eq!(executed("crash"), 0);
    }

    /// A target that is in no table never runs.
    #[test]
    fn every_target_is_in_the_table_of_the_binary() {
        let table = std::fs::read_to_string(root().join("fuzz/targets/main.rs")).unwrap();
        let names = targets().unwrap();
        assert!(names.contains(&"fix_frame".to_owned()));
        for name in names {
            assert!(table.lines().any(|line| line.trim() == name), "{name}");
        }
    }
}
