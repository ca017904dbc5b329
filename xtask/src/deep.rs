//! `cargo xtask deep`: the checks that take long, each with the count that it must reach, and a record of the run.
//!
//! ```text
//! peers ─▶ twins ─▶ demo ─▶ cases ─▶ wheel ─▶ properties ─▶ loom ─▶ tsan ─▶ rounds ─▶ seeds ─▶ fuzz (the minutes that are left)
//!                                                                                       └▶ bench/record/DATE-deep.jsonl, a line a part
//! ```
//!
//! A person runs it before an issue that touches these parts is called done; `docs/testing.md` has the table. The
//! ordinary run prints which packages changed since the last record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cargo::{Metadata, cargo};
use crate::fuzz::FuzzEffort;
use crate::records::{self, RecordedCommit, git};
use crate::report::{self, TestCount};
use crate::steps::{StepContext, StepOutcome};
use crate::timings::Timings;
use crate::{XtaskFailure, changed, demo, fuzz, rounds, seeds, steps, tools, twins, wheel};

/// The kind of these runs' records.
const KIND: &str = "deep";
/// Minutes of a run if none are asked for, builds included.
const MINUTES: u64 = 60;
/// Each fuzz target searches at least this long, however little time the other parts left.
const FUZZ_SECONDS_LEAST: u64 = 30;

/// Preemptions that loom explores: one more than in the ordinary run.
const LOOM_PREEMPTIONS: u64 = 4;
/// Rounds of kills, stalls, faults, copies, flips, restarts and live faults.
const ROUNDS: u64 = 10_000;
/// Seeds of the exchange in a box.
const SEEDS: u64 = 3_000;
/// Inputs that each fuzz target must reach, also one that is slow.
const FUZZ_INPUTS: u64 = 2_000;

/// One part of the deep run.
struct DeepPart {
    name: &'static str,
    description: &'static str,
    /// The unit of the counts.
    counts: &'static str,
    /// The part fails if it counts fewer.
    minimum: u64,
    /// The packages whose changes ask for this part again.
    packages: &'static [&'static str],
    run: fn(&DeepRun, &mut TestCount) -> Result<PartCounts, String>,
}

/// The count of a part: one sum, or a count for each of several things that must each reach the minimum.
enum PartCounts {
    Sum(u64),
    Each(BTreeMap<String, u64>),
}

/// The state that all parts share.
struct DeepRun {
    context: StepContext,
    /// The end of the minutes.
    end: Instant,
    seed: u64,
}

const PARTS: [DeepPart; 11] = [
    DeepPart {
        name: "peers",
        description: "the measurements of peers compile",
        counts: "workspaces",
        minimum: 1,
        packages: &[],
        run: peers,
    },
    DeepPart {
        name: "twins",
        description: "a build without bench holds no slow twin, one with it does",
        counts: "builds",
        minimum: 2,
        packages: &["unitape", "unitape-bench"],
        run: run_twins,
    },
    DeepPart {
        name: "demo",
        description: "the demo of a release build checks itself",
        counts: "demos",
        minimum: 1,
        packages: &[],
        run: run_demo,
    },
    DeepPart {
        name: "cases",
        description: "every bench case has the fields of the contract; Python reads the demo's whole tape",
        counts: "tests",
        minimum: DEEP_TESTS.len() as u64,
        packages: &["unitape"],
        run: cases,
    },
    DeepPart {
        name: "wheel",
        description: "the wheel for older systems passes its tests in a fresh environment",
        counts: "wheels",
        minimum: 1,
        packages: &["unitape-python", "unitape-arrow"],
        run: run_wheel,
    },
    DeepPart {
        name: "properties",
        description: "the tests of the libraries, whose property tests start from the run's seed",
        counts: "tests",
        minimum: 600,
        packages: &PROPERTY_PACKAGES,
        run: properties,
    },
    DeepPart {
        name: "loom",
        description: "rings and tape under every interleaving of one preemption more",
        counts: "models",
        minimum: steps::LOOM_MODELS,
        packages: &["unitape-ring", "unitape-tape"],
        run: loom,
    },
    DeepPart {
        name: "tsan",
        description: "lock-free code under ThreadSanitizer (nightly)",
        counts: "programs or tests",
        minimum: 2,
        packages: &["unitape-ring", "unitape-tape"],
        run: tsan,
    },
    DeepPart {
        name: "rounds",
        description: "kills, stalls, faults, copies, flips, restarts and live faults",
        counts: "rounds",
        minimum: ROUNDS,
        packages: &["unitape-tape", "unitape-feed", "unitape"],
        run: run_rounds,
    },
    DeepPart {
        name: "seeds",
        description: "the exchange in a box against the market-data handler",
        counts: "seeds",
        minimum: SEEDS,
        packages: &["unitape-marketdata", "unitape-base", "unitape-fast", "unitape-book"],
        run: run_seeds,
    },
    DeepPart {
        name: "fuzz",
        description: "each fuzz target for the time that is left, with ASan (nightly)",
        counts: "inputs of each target",
        minimum: FUZZ_INPUTS,
        packages: &[
            "unitape-model",
            "unitape-base",
            "unitape-codec",
            "unitape-fast",
            "unitape-feed",
            "unitape-book",
            "unitape-store",
            "unitape-tape",
            "unitape-client",
            "unitape-fuzz",
        ],
        run: run_fuzz,
    },
];

/// Tests that do more where `UNITAPE_DEEP` is set.
const DEEP_TESTS: [&str; 5] = [
    "every_measurement_has_the_fields_of_the_contract",
    "kills_and_retention_change_no_byte_of_an_alert_tape",
    "kills_change_no_byte_of_a_merge",
    "bench_stream_is_frozen_by_its_hash",
    "the_tape_of_the_demo",
];

/// Runs all parts, or those that are named, prints one closing line and writes the record.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let Some(request) = parse(args).map_err(XtaskFailure::Usage)? else {
        PARTS.iter().for_each(|part| {
            println!("{:7} {} (at least {} {})", part.name, part.description, part.minimum, part.counts)
        });
        return Ok(0);
    };
    tools::c_compiler()?;
    let metadata = Metadata::load()?;
    let context = StepContext {
        target_dir: metadata.target_dir()?,
        locked: tools::fetch(),
        packages: None,
        has_noise: false,
        timings: Timings::default(),
    };
    let commit = RecordedCommit::current()?;
    if !commit.is_clean {
        eprintln!("files are changed or untracked: the record of this run does not count for the commit");
    }
    let deep = DeepRun {
        context,
        end: Instant::now() + Duration::from_secs(60 * request.minutes),
        seed: std::env::var("UNITAPE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(new_seed),
    };
    let mut total = TestCount::default();
    let mut lines = Vec::new();
    let mut summary = Vec::new();
    for part in PARTS.iter().filter(|part| request.names(part.name)) {
        eprintln!("\n== {}: {}", part.name, part.description);
        let mut count = TestCount::default();
        let start = Instant::now();
        let result = (part.run)(&deep, &mut count).and_then(|counts| part.check_minimum(counts));
        let seconds = start.elapsed().as_secs_f64();
        let text = match &result {
            Ok(counted) => format!("ok: {} {}", counted, part.counts),
            Err(reason) => {
                count.failed = count.failed.max(1);
                format!("FAILED: {reason}")
            }
        };
        count.passed = count.passed.max(u64::from(result.is_ok()));
        eprintln!("-- {:7} {seconds:6.0} s  {text}", part.name);
        summary.push(format!("{:7} {seconds:6.0} s  {text}", part.name));
        let mut line = json!({"record": KIND, "part": part.name, "passed": result.is_ok(),
            "count": result.as_ref().ok(), "counts": part.counts, "minimum": part.minimum,
            "seconds": seconds.round(), "seed": deep.seed});
        if let Err(reason) = &result {
            line["why"] = json!(reason);
        }
        commit.describe(&mut line);
        lines.push(line);
        total += count;
    }
    for failure in &total.failures {
        eprintln!("\n{failure}");
    }
    eprintln!("\n== summary");
    summary.iter().for_each(|line| eprintln!("{line}"));
    let path = records::write(KIND, &commit.date, &lines)?;
    eprintln!("the record is {}", path.display());
    let has_failed = lines.iter().any(|line| line["passed"] != true);
    println!("{total}");
    Ok(u8::from(has_failed))
}

impl DeepPart {
    /// The count that goes into the record: the sum, or the least of several.
    fn check_minimum(&self, counts: PartCounts) -> Result<u64, String> {
        match counts {
            PartCounts::Sum(count) if count >= self.minimum => Ok(count),
            PartCounts::Sum(count) => {
                Err(format!("{count} {} instead of at least {}", self.counts, self.minimum))
            }
            PartCounts::Each(counts) => {
                let few: Vec<String> = counts
                    .iter()
                    .filter(|(_, count)| **count < self.minimum)
                    .map(|(name, count)| format!("{name} {count}"))
                    .collect();
                match counts.values().min() {
                    Some(least) if few.is_empty() => Ok(*least),
                    _ => Err(format!(
                        "at least {} {} are wanted: {}",
                        self.minimum,
                        self.counts,
                        few.join(", ")
                    )),
                }
            }
        }
    }
}

/// The request in the arguments.
struct DeepRequest {
    minutes: u64,
    only: Vec<String>,
}

impl DeepRequest {
    fn names(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == part)
    }
}

/// None if the arguments ask for the list of parts.
fn parse(args: &[String]) -> Result<Option<DeepRequest>, String> {
    let mut request = DeepRequest { minutes: MINUTES, only: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = |noun: &str| args.next().ok_or_else(|| format!("{arg} wants {noun}"));
        match arg.as_str() {
            "--minutes" => {
                let text = value("a number")?;
                request.minutes =
                    text.parse().map_err(|_| format!("--minutes wants a number, not `{text}`"))?;
            }
            "--only" => {
                let name = value("the name of a part")?;
                if !PARTS.iter().any(|part| part.name == name) {
                    let part_names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
                    return Err(format!("no part `{name}`; there are: {}", part_names.join(", ")));
                }
                request.only.push(name.clone());
            }
            "--list" => return Ok(None),
            other => return Err(format!("unknown argument `{other}`; see cargo xtask help")),
        }
    }
    Ok(Some(request))
}

fn new_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The peers use our measurements: a change here can break them.
fn peers(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let mut command = cargo();
    command.args(["check", "--manifest-path", "bench/Cargo.toml", deep.context.locked]);
    command.env("CARGO_TARGET_DIR", deep.context.target_dir.join("peers"));
    report::run(&mut command, count)?;
    Ok(PartCounts::Sum(1))
}

fn run_twins(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    twins::check(&deep.context.target_dir, deep.context.locked, count)?;
    Ok(PartCounts::Sum(2))
}

fn run_demo(_: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let binary = demo::build().map_err(|failure| failure.to_string())?;
    report::run(std::process::Command::new(binary).arg("demo"), count)?;
    Ok(PartCounts::Sum(1))
}

fn run_wheel(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    wheel::check(&deep.context.target_dir, deep.context.locked, count)?;
    Ok(PartCounts::Sum(1))
}

/// The tests that a step counted.
fn tests_of(outcome: StepOutcome, count: &TestCount) -> Result<PartCounts, String> {
    match outcome {
        StepOutcome::Ok => Ok(PartCounts::Sum(count.passed)),
        StepOutcome::Failed(reason) | StepOutcome::Skipped(reason) => Err(reason),
    }
}

/// Packages with property tests: the ordinary run starts these from one seed each time.
const PROPERTY_PACKAGES: [&str; 9] = [
    "unitape-model",
    "unitape-base",
    "unitape-codec",
    "unitape-fast",
    "unitape-book",
    "unitape-store",
    "unitape-marketdata",
    "unitape-watch",
    "unitape-feed",
];

fn properties(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let mut command = release_tests(&deep.context.target_dir);
    command.args(PROPERTY_PACKAGES.iter().flat_map(|package| ["--package", package]));
    report::run(command.env("PROPTEST_RNG_SEED", deep.seed.to_string()), count)?;
    Ok(PartCounts::Sum(count.passed))
}

fn cases(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let mut command = release_tests(&deep.context.target_dir);
    command.args(["--package", "unitape", "--test", "cli", "--test", "docs"]);
    command.arg("--").args(DEEP_TESTS).env("UNITAPE_DEEP", "1");
    report::run(&mut command, count)?;
    Ok(PartCounts::Sum(count.passed))
}

fn loom(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    tests_of(steps::loom_with(&deep.context, LOOM_PREEMPTIONS, count), count)
}

fn tsan(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    tests_of(steps::tsan(&deep.context, count), count)
}

fn run_rounds(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let records = rounds::make(&deep.context.target_dir, ROUNDS, deep.seed)?;
    count.passed += records.iter().filter(|record| record["failures"] == 0).count() as u64;
    Ok(PartCounts::Sum(rounds::sum(&records)))
}

fn run_seeds(deep: &DeepRun, _: &mut TestCount) -> Result<PartCounts, String> {
    // Every run looks at other days than the last.
    seeds::make(&deep.context.target_dir, SEEDS, deep.seed % 1_000_000)?;
    Ok(PartCounts::Sum(SEEDS))
}

fn run_fuzz(deep: &DeepRun, count: &mut TestCount) -> Result<PartCounts, String> {
    let binary = fuzz::build_targets(&deep.context, count)?;
    let left = deep.end.saturating_duration_since(Instant::now()).as_secs();
    let seconds = (left * fuzz::AT_ONCE as u64 / fuzz::targets()?.len() as u64).max(FUZZ_SECONDS_LEAST);
    let effort = FuzzEffort { seconds, seed: deep.seed, least: FUZZ_INPUTS };
    fuzz::run_all(&deep.context, &binary, effort, count).map(PartCounts::Each)
}

/// `cargo test` in release. Link-time optimisation is left out: it takes minutes, and no check needs it.
pub(crate) fn release_tests(target_dir: &std::path::Path) -> std::process::Command {
    let folder: PathBuf = target_dir.join("deep");
    let mut command = cargo();
    command.args(["test", "--release", "--no-fail-fast"]);
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_TARGET_DIR", folder);
    command
}

/// Prints the packages that changed since a deep run that passed, and the parts that they ask for.
pub(crate) fn report_due() -> Result<(), XtaskFailure> {
    match due() {
        Ok(lines) => lines.iter().for_each(|line| eprintln!("{line}")),
        // A clone without history, or no git at all: the tests are as good as without it.
        Err(reason) => eprintln!("\nwhat changed since the last deep run is not known: {reason}"),
    }
    Ok(())
}

fn due() -> Result<Vec<String>, String> {
    let packages = Metadata::load()?.packages();
    let records = records::all(&records::folder(), KIND)?;
    let mut lines = vec!["\nchanged since a deep run that passed (cargo xtask deep):".to_owned()];
    let mut is_due = false;
    for part in PARTS.iter().filter(|part| !part.packages.is_empty()) {
        let Some(record) = last_passing(&records, part.name) else {
            lines.push(format!("{:7} no passing run is on record", part.name));
            is_due = true;
            continue;
        };
        let commit = records::text(&record["commit"]);
        let files = git(&["diff", "--name-only", "--no-renames", commit])?;
        let files: Vec<String> = files.lines().map(str::to_owned).collect();
        let owners = changed::owners(&files, &packages);
        let changed: Vec<&str> =
            part.packages.iter().copied().filter(|name| owners.contains(*name)).collect();
        if !changed.is_empty() {
            let (date, commit) = (records::text(&record["date"]), records::short(commit));
            lines.push(format!("{:7} {} (last run {date}, {commit})", part.name, changed.join(", ")));
            is_due = true;
        }
    }
    if is_due { Ok(lines) } else { Ok(vec!["\nno part of the deep run is due".to_owned()]) }
}

/// The line of the newest record in which a part passed, on files that were all committed.
fn last_passing<'a>(records: &'a [Vec<Value>], part: &str) -> Option<&'a Value> {
    let passed = |line: &&Value| line["part"] == part && line["passed"] == true && line["clean"] == true;
    records.iter().rev().find_map(|lines| lines.iter().find(passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: &[&str]) -> Result<DeepRequest, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        parse(&args).map(|request| request.expect("no list is asked for"))
    }

    #[test]
    fn parts_and_minutes_are_chosen_by_name() {
        let got = request(&["--minutes", "40", "--only", "loom"]).unwrap();
        assert_eq!(got.minutes, 40);
        assert!(got.names("loom") && !got.names("fuzz"));
        assert!(request(&[]).unwrap().names("fuzz"));
        for bad in [&["--minutes"][..], &["--minutes", "x"], &["--only", "lom"], &["--fast"]] {
            assert!(request(bad).is_err(), "{bad:?}");
        }
    }

    /// A part that did less than it should would be recorded as done.
    #[test]
    fn a_part_below_its_minimum_fails() {
        let part = |name: &str| PARTS.iter().find(|part| part.name == name).unwrap();
        assert_eq!(part("rounds").check_minimum(PartCounts::Sum(ROUNDS)), Ok(ROUNDS));
        assert!(
            part("rounds").check_minimum(PartCounts::Sum(ROUNDS - 1)).unwrap_err().contains("9999 rounds")
        );
        let each = |counts: &[(&str, u64)]| {
            PartCounts::Each(counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
        };
        let fuzz = part("fuzz");
        assert_eq!(fuzz.check_minimum(each(&[("a", FUZZ_INPUTS + 5), ("b", FUZZ_INPUTS)])), Ok(FUZZ_INPUTS));
        let reason = fuzz.check_minimum(each(&[("a", FUZZ_INPUTS), ("slow", 93)])).unwrap_err();
        assert!(reason.ends_with("slow 93"), "{reason}");
        assert!(fuzz.check_minimum(each(&[])).is_err(), "no target at all");
    }

    /// Fewer rounds or inputs find less, and a run that passes would not show it.
    #[test]
    fn the_numbers_of_the_deep_run_do_not_fall() {
        assert_eq!((steps::LOOM_PREEMPTIONS, LOOM_PREEMPTIONS), (3, 4));
        assert_eq!((ROUNDS, SEEDS, FUZZ_INPUTS, FUZZ_SECONDS_LEAST), (10_000, 3_000, 2_000, 30));
        let shares = rounds::shares(ROUNDS).map(|(_, share)| share);
        assert_eq!(shares, [3_000, 1_000, 1_000, 200, 1_000, 100, 1_000]);
    }

    /// A run that failed, or one of files that nobody else has, says nothing of a commit.
    #[test]
    fn the_last_passing_record_counts() {
        let line = |n: u64, passed: bool, clean: bool| json!({"part": "loom", "n": n, "passed": passed, "clean": clean});
        let records = [
            vec![line(1, true, true)],
            vec![line(2, true, true)],
            vec![line(3, false, true)],
            vec![line(4, true, false)],
        ];
        assert_eq!(last_passing(&records, "loom").unwrap()["n"], 2);
        assert_eq!(last_passing(&records, "fuzz"), None);
    }

    #[test]
    fn the_parts_name_packages_of_this_workspace() {
        let packages = Metadata::load().unwrap().packages();
        for name in PARTS.iter().flat_map(|part| part.packages) {
            assert!(packages.iter().any(|package| package.name == *name), "{name}");
        }
    }
}
