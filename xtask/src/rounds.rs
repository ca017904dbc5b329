//! `cargo xtask rounds`: the kill, stall, fault, copy, flip, restart and live-fault tests for long, in release, with a record of each.
//!
//! ```text
//! --rounds N ─▶ a share of each kind ─▶ cargo test --release … ─▶ progress on stderr
//!                                                              └▶ one line of JSON a test on stdout
//! ```

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::XtaskFailure;
use crate::cargo::Metadata;
use crate::deep::release_tests;

/// Rounds where none are asked for.
const ROUNDS: u64 = 10_000;

/// Runs them and prints the record; exit code 1 if a test failed or rounds are missing.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let (rounds, seed) = choose(args).map_err(XtaskFailure::Usage)?;
    let records = make(&Metadata::load()?.target_dir()?, rounds, seed)?;
    records.iter().for_each(|record| println!("{record}"));
    let total = sum(&records);
    eprintln!("{total} rounds, seed {seed}");
    if total < rounds {
        eprintln!("xtask: {rounds} rounds were asked for");
    }
    Ok(u8::from(total < rounds))
}

/// Runs `rounds` rounds and returns a record of each test. An error if a test fails.
pub(crate) fn make(target_dir: &Path, rounds: u64, seed: u64) -> Result<Vec<Value>, String> {
    let out = target_dir.join("rounds.jsonl");
    match std::fs::remove_file(&out) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(format!("{}: {e}", out.display())),
        _ => {}
    }
    let mut failed = Vec::new();
    for (package, features, tests, names) in TESTS {
        let mut command = release_tests(target_dir);
        command.args(["--package", package]).args(features);
        for test in tests {
            command.args(["--test", test]);
        }
        command.args(["--", "--nocapture"]).args(names);
        for (variable, share) in shares(rounds) {
            command.env(variable, share.to_string());
        }
        // A command has fewer calls.
        command.env("UNITAPE_KILL_POINTS", "10000");
        command.env("UNITAPE_SEED", seed.to_string()).env("UNITAPE_ROUNDS_OUT", &out);
        if !to_stderr(&mut command)? {
            failed.push(package);
        }
    }
    if !failed.is_empty() {
        let records = std::fs::read_to_string(&out).unwrap_or_default();
        return Err(format!(
            "rounds of {} failed with seed {seed}; the records:\n{records}",
            failed.join(", ")
        ));
    }
    let text = std::fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|e| format!("{line:?}: {e}"))).collect()
}

/// The rounds of all records.
pub(crate) fn sum(records: &[Value]) -> u64 {
    records.iter().filter_map(|record| record["rounds"].as_u64()).sum()
}

/// A package with its features, its tests, and which functions of these make rounds.
type RoundTests = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const TESTS: [RoundTests; 3] = [
    (
        "unitape-tape",
        &["--features", "faults"],
        &["kill", "stall", "faults", "copy_rounds", "flips"],
        &["killed_writers", "killed_recorders", "stalled", "may_fail", "copies_of", "of_a_damaged"],
    ),
    ("unitape-feed", &[], &["feed"], &["restarts_of"]),
    ("unitape", &[], &["run", "cli"], &["live_faults", "kill_points"]),
];

/// The number of rounds of each test of a kind, by its variable. Two tests kill the writer and one the recorder (a
/// quarter), two stall, three make calls fail. These make the rounds that were asked for; six that copy a tape, nine that
/// damage one, two that restart a run and one of live faults come on top, fewer where a round is longer.
pub(crate) fn shares(rounds: u64) -> [(&'static str, u64); 7] {
    let share = |thousandths: u64| (rounds * thousandths).div_ceil(1000).max(4);
    [
        ("UNITAPE_KILL_ROUNDS", share(300)),
        ("UNITAPE_STALL_ROUNDS", share(100)),
        ("UNITAPE_FAULT_ROUNDS", share(100)),
        ("UNITAPE_COPY_ROUNDS", share(20)),
        ("UNITAPE_FLIP_ROUNDS", share(100)),
        ("UNITAPE_RESTART_ROUNDS", share(10)),
        ("UNITAPE_LIVE_ROUNDS", share(100)),
    ]
}

/// Runs a command whose output is for people.
pub(crate) fn to_stderr(command: &mut Command) -> Result<bool, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(std::io::stderr()))
        .spawn()
        .map_err(|e| format!("cargo does not start: {e}"))?;
    Ok(child.wait().map_err(|e| format!("cargo: {e}"))?.success())
}

/// Rounds and seed; a new seed each time where none is given.
fn choose(args: &[String]) -> Result<(u64, u64), String> {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let [rounds, seed] = numbers(args, [("--rounds", ROUNDS), ("--seed", nanos.map_or(0, |n| n.as_secs()))])?;
    Ok((rounds, seed))
}

/// Arguments that are numbers with names, each with its default.
pub(crate) fn numbers<const N: usize>(
    args: &[String],
    defaults: [(&str, u64); N],
) -> Result<[u64; N], String> {
    let mut values = defaults.map(|(_, default)| default);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let index = defaults.iter().position(|(name, _)| name == arg);
        let index = index.ok_or_else(|| format!("unknown argument `{arg}`; see cargo xtask help"))?;
        let value = args.next().ok_or_else(|| format!("{arg} wants a number"))?;
        values[index] = value.parse().map_err(|_| format!("{arg} wants a number, not `{value}`"))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that made fewer rounds than it was asked for would be recorded as more than it was.
    #[test]
    fn all_tests_together_make_the_rounds_asked_for() {
        for rounds in [1, 10, 999, 10_000, 123_457] {
            let [(_, kill), (_, stall), (_, fault), ..] = shares(rounds);
            assert!(2 * kill + kill / 4 + 2 * stall + 3 * fault >= rounds);
        }
    }

    #[test]
    fn arguments_are_numbers_with_names() {
        let args = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(choose(&args("--rounds 5 --seed 7")), Ok((5, 7)));
        assert_eq!(choose(&[]).unwrap().0, ROUNDS);
        for bad in ["--rounds", "--rounds x", "5", "--seed -1"] {
            assert!(choose(&args(bad)).is_err(), "{bad}");
        }
    }
}
