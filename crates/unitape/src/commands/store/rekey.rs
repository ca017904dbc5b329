//! `unitape store rekey` and `unitape store erase`: another key for a store, and the end of a day.

use super::KeyArgs;
use crate::output::{self, CommandOutcome, grouped, note, say};
use std::path::PathBuf;
use unitape_store::{Day, EraseReport, MasterKey, SystemRandomness, erase_day, rekey};

/// Arguments of `store rekey`.
#[derive(Debug, clap::Args)]
pub struct RekeyArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// File of the new key, 64 hexadecimal digits; made if it does not exist
    #[arg(long, value_name = "FILE")]
    new_key: PathBuf,
}

/// Arguments of `store erase`.
#[derive(Debug, clap::Args)]
pub struct EraseArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// The day; `undated` for events without a time
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Day,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `store rekey`.
pub fn run_rekey(args: &RekeyArgs) -> output::Result {
    // The old key first: a wrong one must not leave a new one behind.
    let old_key = args.key.of_store(&args.dir)?;
    unitape_store::Store::open(&args.dir, &old_key)?;
    let (path, is_new) = (&args.new_key, !args.new_key.exists());
    let new_key = if is_new { MasterKey::create(path, &SystemRandomness)? } else { MasterKey::load(path)? };
    if !is_new && MasterKey::is_exposed(path) {
        note!("unitape: others than its owner can read the key {0}; chmod 600 {0}", path.display());
    }
    // A key that was made stays if this fails: it is never sure that no copy of the manifest has it. It serves the next time.
    rekey(&args.dir, &old_key, &new_key, &SystemRandomness)?;
    if is_new {
        note!("unitape: made the key {}: without it nobody can read the store", path.display());
    }
    say!("{} opens with {} alone", args.dir.display(), path.display());
    Ok(CommandOutcome::Clean)
}

/// Runs `store erase`.
pub fn run_erase(args: &EraseArgs) -> output::Result {
    let key = args.key.of_store(&args.dir)?;
    let EraseReport { rows, files, kept_files } = erase_day(&args.dir, &key, args.date, &SystemRandomness)?;
    if args.json {
        output::print_json(&serde_json::json!({
            "date": args.date.to_string(), "rows": rows, "files": files, "kept_files": kept_files,
        }))?;
    } else if files == 0 {
        say!("nothing to erase: the store has no events of {}", args.date);
    } else {
        say!("{} events of {} are erased, in {} files", grouped(rows), args.date, grouped(files));
    }
    if kept_files > 0 {
        note!(
            "unitape: {} files stay until their readers end; the next command that changes the store removes them",
            grouped(kept_files)
        );
    }
    Ok(CommandOutcome::Clean)
}
