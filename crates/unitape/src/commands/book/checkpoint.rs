//! `unitape book checkpoint`: states of the books beside the tape, from which `--at` begins.

use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use unitape_book::BookOptions;
use unitape_query::address::TapeStopPoint;
use unitape_run::replay::{BookReplay, CheckpointStatus, CheckpointTotals};
use unitape_tape::ReadOptions;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Directory of the tape
    pub dir: PathBuf,
    /// Write a checkpoint after each N events, from the last checkpoint on
    #[arg(long, value_name = "N", required_unless_present = "verify", conflicts_with = "verify")]
    pub every: Option<NonZeroU64>,
    /// Compare the checkpoints with the books of the tape
    #[arg(long)]
    pub verify: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &CheckpointArgs) -> output::Result {
    output::print_hot_notice(&args.dir);
    let Some(every) = args.every else { return verify_checkpoints(args) };
    let (totals, outcome) = write_checkpoints(&args.dir, every, args.read.options())?;
    match args.json {
        true => {
            output::print_json(&serde_json::json!({ "checkpoints": totals.count, "bytes": totals.bytes }))?
        }
        false => say!("{} checkpoints written, {}", grouped(totals.count), output::bytes(totals.bytes)),
    }
    Ok(outcome)
}

/// Writes a checkpoint of the tape in `dir` after each `every` events.
pub fn write_checkpoints(
    dir: &Path,
    every: NonZeroU64,
    read: ReadOptions,
) -> Result<(CheckpointTotals, CommandOutcome), CommandFailure> {
    if read != ReadOptions::default() {
        let reason = "a checkpoint keeps books of a tape that is compared with its checksums and read whole: leave out \
                      --no-verify and --skip-damage";
        return Err(CommandFailure::Usage(reason.to_owned()));
    }
    let mut replay = BookReplay::open(dir, read, BookOptions::default())?;
    replay.write_checkpoints(every);
    _ = replay.seek(TapeStopPoint::Ordinal(u64::MAX))?;
    let lost_names = replay.books().names.lost_names();
    let outcome = read_args::finish(replay.reader(), lost_names, CommandOutcome::Clean)?;
    Ok((replay.checkpoints_written(), outcome))
}

/// Compares each checkpoint with a replay of the tape, and prints the result.
fn verify_checkpoints(args: &CheckpointArgs) -> output::Result {
    let verdicts = BookReplay::verify_checkpoints(&args.dir, args.read.options(), BookOptions::default())?;
    if verdicts.is_empty() {
        note!("unitape: no checkpoints; see: unitape book checkpoint --every");
    }
    let mut outcome = CommandOutcome::Clean;
    for (path, status) in verdicts {
        let word = match status {
            CheckpointStatus::Good => "good",
            CheckpointStatus::Outdated => "outdated",
            CheckpointStatus::Wrong => "wrong",
        };
        if status == CheckpointStatus::Wrong {
            outcome = CommandOutcome::Flawed;
        }
        match args.json {
            true => output::print_json(&serde_json::json!({ "checkpoint": path, "status": word }))?,
            false => say!("{word:8}  {}", path.display()),
        }
    }
    Ok(outcome)
}
