//! `unitape store compact`: the parts of each day become one.

use super::{KeyArgs, parse_bytes, with_progress};
use crate::output::{self, CommandOutcome, bytes, grouped, note, say};
use std::path::PathBuf;
use unitape_store::{CompactOptions, CompactReport, Day, StoreProgress, compact};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Only this day; `undated` for events without a time
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Day>,
    /// Memory that the command may take, roughly; more rows than fit into a half of it go to temporary files in the store
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    memory: u64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &CompactArgs) -> output::Result {
    let (stop, progress) = (output::stop_flag()?, StoreProgress::default());
    let key = args.key.of_store(&args.dir)?;
    let options = CompactOptions {
        date: args.date,
        memory_bytes: usize::try_from(args.memory).unwrap_or(usize::MAX),
        stop: Some(&stop),
        progress: Some(&progress),
        ..CompactOptions::default()
    };
    let report = with_progress("compact", &progress, || compact(&args.dir, &key, &options))?;
    let CompactReport { days, files, bytes: sizes, kept_files } = &report;
    if args.json {
        let rows_by_day: serde_json::Map<_, _> =
            days.iter().map(|(day, rows)| (day.to_string(), (*rows).into())).collect();
        output::print_json(&serde_json::json!({
            "days": rows_by_day, "files_before": files.0, "files_after": files.1,
            "bytes_before": sizes.0, "bytes_after": sizes.1, "kept_files": kept_files,
        }))?;
    } else if days.is_empty() {
        say!("nothing to compact: no day has more than one part");
    } else {
        for (day, rows) in days {
            say!("{day} {} events", grouped(*rows));
        }
        let (before, after) = (bytes(sizes.0), bytes(sizes.1));
        say!("{} files with {before} became {} with {after}", grouped(files.0), grouped(files.1));
    }
    if *kept_files > 0 {
        note!(
            "unitape: {} replaced files stay until their readers end; the next seal or compaction removes them",
            grouped(*kept_files)
        );
    }
    Ok(CommandOutcome::Clean)
}
