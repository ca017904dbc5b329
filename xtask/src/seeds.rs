//! `cargo xtask seeds`: the exchange in a box against the market-data handler, for thousands of seeds, in release.
//!
//! ```text
//! --seeds N, --from S ─▶ cargo test --release … ─▶ progress on stderr, each seed that fails with what differs
//! ```
//!
//! With T7's own templates, too, where `UNITAPE_SAMPLES` says where they are.

use std::path::Path;

use crate::XtaskFailure;
use crate::cargo::Metadata;
use crate::deep::release_tests;
use crate::rounds::{numbers, to_stderr};

/// Seeds where none are asked for.
const SEEDS: u64 = 3_000;

/// Runs them; exit code 1 if one failed.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let (seeds, from) = choose(args).map_err(XtaskFailure::Usage)?;
    make(&Metadata::load()?.target_dir()?, seeds, from)?;
    Ok(0)
}

/// Runs `seeds` seeds, the first of them `from`. An error if one fails.
pub(crate) fn make(target_dir: &Path, seeds: u64, from: u64) -> Result<(), String> {
    let mut command = release_tests(target_dir);
    command.args(["--package", "unitape-marketdata", "--test", "exchange", "--", "--nocapture"]);
    command.env("UNITAPE_SEEDS", seeds.to_string()).env("UNITAPE_SEEDS_FROM", from.to_string());
    command.env_remove("UNITAPE_SEED");
    if to_stderr(&mut command)? {
        Ok(())
    } else {
        Err(format!("one of the {seeds} seeds from {from} on failed"))
    }
}

/// The number of seeds, and the first.
fn choose(args: &[String]) -> Result<(u64, u64), String> {
    let [seeds, from] = numbers(args, [("--seeds", SEEDS), ("--from", 0)])?;
    Ok((seeds, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_with_names() {
        let args = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(choose(&args("--seeds 5 --from 7")), Ok((5, 7)));
        assert_eq!(choose(&[]), Ok((SEEDS, 0)));
        for bad in ["--seeds", "--from x", "5"] {
            assert!(choose(&args(bad)).is_err(), "{bad}");
        }
    }
}
