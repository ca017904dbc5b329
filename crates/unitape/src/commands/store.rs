//! `unitape store`: a tape into sealed days, events out of them, and whether they are as they were sealed.

mod compact;
mod empty;
mod export;
mod info;
mod key;
mod partitions;
pub mod scan;
mod verify;

use self::compact::CompactArgs;
use self::export::ExportArgs;
use self::info::InfoArgs;
pub use self::key::KeyArgs;
use self::scan::ScanArgs;
use self::verify::VerifyArgs;
use super::{clock_time, read_args};
use crate::output::{self, CommandFailure, CommandOutcome, bytes, grouped, note, say};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use unitape_model::Calendar;
use unitape_store::{Day, SealOptions, SealReport, StoreProgress, seal};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    /// Seal the events of a tape into days
    #[command(after_help = "Examples:
  unitape store seal tape --store ticks
  unitape store seal tape --store ticks --date 2024-03-11

Each seal that adds events makes a generation; scan --as-of reads an earlier one. The store is encrypted. --key names the file of its key, otherwise UNITAPE_STORE_KEY_FILE does. Otherwise the key is beside the store (ticks.key for the store ticks), where the first seal writes it. Nobody can read a store without its key.

A seal adds the events that the store does not have yet, up to the durable position of the tape. A seal that is stopped or killed leaves the store unchanged; run the same command again. Events that do not match their checksums are never sealed. If the tape is damaged, or lacks checksums, the store stays unchanged and the exit code is 3. --skip-damage seals the events after the damage; a later repair of the damaged part is then not sealed any more.")]
    Seal(SealArgs),
    /// Print rows of one schema, or events in the order of the tape
    #[command(after_help = "Examples:
  unitape store scan ticks --schema trades --csv --date 2024-03-11
  unitape store scan ticks --schema bbo --symbols VOD,BARC --since 2024-03-11T14:30 --json
  unitape store scan ticks --schema mbo --with identity --date 2024-03-11 --json
  unitape store scan ticks --schema trades --as-of 3 --csv
  unitape store scan ticks --schema trades --parquet --symbols VOD -o vod.parquet
  unitape store scan ticks --json | head
  unitape store scan ticks --schema mbo,trades --venue XLON --events --json --full

With one --schema, the command prints rows in the order of event time: a table, or JSON with --json, CSV with --csv, Parquet with --parquet, an Arrow IPC stream with --arrow. Parquet and Arrow have prices as decimal(19,9) and sizes as decimal(38,18); a value that does not fit is null, and the exit code is 3. --with adds columns of identity (parties, free text) and provenance. Otherwise, and with --events, --full or --kind, it prints events in the order of the tape. --since and --until keep since <= ts < until. A sealed day has no ordinals, so there is no --from and no --to; for one release, a time behind these still counts as --since and --until.

Schemas: mbo mbp bbo trades quotes definition status statistics orders reference news comms payments alerts quarantine clock. Exit code 3 when blocks are damaged; all other blocks are read.")]
    Scan(Box<ScanArgs>),
    /// Write rows of one schema to a Parquet, Arrow or CSV file, or to one for each date or symbol
    #[command(after_help = "Examples:
  unitape store export ticks --schema trades --format parquet -o trades.parquet
  unitape store export ticks --schema bbo --format parquet --symbols VOD,BARC --since 2024-03-11T14:30 -o bbo.parquet
  unitape store export ticks --schema bbo --format parquet --partition date -o bbo
  unitape store export ticks --schema trades --format arrow --partition symbol -o trades --force --json

The columns and rows are those of `unitape store scan --schema`, in the order of event time. --format arrow writes an IPC stream. --partition writes a directory that DuckDB, Polars and Spark read as one table: date=2024-03-11/part-0.parquet, or symbol=VOD/part-0.parquet with reserved characters of a symbol as %XX. Rows without a date or symbol are in __HIVE_DEFAULT_PARTITION__. More than 64 symbols are read in several passes.

An existing file or directory is refused; --force replaces it, but no directory that has something other than an export in it. Values have the types of `unitape store scan --parquet`: exit code 3 when one does not fit and is null, or when blocks are damaged; all other blocks are exported.")]
    Export(Box<ExportArgs>),
    /// Verify a store against its signed manifest: every file, and with the key every block
    #[command(after_help = "Examples:
  unitape store verify ticks
  unitape store verify ticks --remember ~/generations --json
  unitape store verify ticks --public-key 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c

--public-key checks signature, lengths and hashes without the key of the store; `unitape store info` prints the public key. Only --at-least and --remember can find that the store was replaced by an older state of itself. Exit code 3 when a file is changed, missing or foreign, or the store is rolled back; 1 for a wrong key.")]
    Verify(VerifyArgs),
    /// Print days, schemas, sizes and names
    #[command(after_help = "Examples:
  unitape store info ticks --json
  unitape store info ticks --symbols
  unitape store info ticks --schema trades
  unitape store info ticks --blocks

--blocks prints one line per block: its day, schema, symbol, generation, number in its file, rows, file, offset and bytes. A block has up to 65,536 rows of one instrument; only the last one of an instrument, schema and day has fewer.")]
    Info(InfoArgs),
    /// Put the parts of each day together, in full blocks; no answer changes
    #[command(after_help = "Examples:
  unitape store compact ticks
  unitape store compact ticks --date 2024-03-11

Each seal adds a part to the days of its events. Compaction writes the parts of a day into new files with full blocks, compares the result with the old rows, and then replaces them. A scan reads the same before, during and after it, also with --as-of. Old files go when nobody reads them any more. A seal compacts a day that has more than four parts by itself. A day with a damaged block stays as it is; exit code 3.")]
    Compact(CompactArgs),
}

#[derive(Debug, clap::Args)]
struct SealArgs {
    /// Directory of the tape
    tape: PathBuf,
    /// Directory of the store; made if it does not exist
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Only this day (UTC date of the event time)
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Day>,
    /// Memory that the seal may take, roughly; more rows than fit into a half of it go to temporary files in the store
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    memory: u64,
    /// Days are session dates by this calendar; the first seal keeps it in the store
    #[arg(long, value_name = "FILE")]
    calendar: Option<PathBuf>,
    /// Seal what comes after damage, at the next segment, and count what is lost; the exit code is still 3
    #[arg(long)]
    skip_damage: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: StoreArgs) -> output::Result {
    match args.command {
        StoreCommand::Seal(args) => run_seal(&args),
        StoreCommand::Scan(args) => scan::run(&args),
        StoreCommand::Export(args) => export::run(&args),
        StoreCommand::Verify(args) => verify::run(&args),
        StoreCommand::Info(args) => info::run(&args),
        StoreCommand::Compact(args) => compact::run(&args),
    }
}

fn run_seal(args: &SealArgs) -> output::Result {
    let (stop, progress) = (output::stop_flag()?, StoreProgress::default());
    let calendar = args.calendar.as_deref().map(read_calendar).transpose()?;
    let options = SealOptions {
        date: args.date,
        memory_bytes: usize::try_from(args.memory).unwrap_or(usize::MAX),
        calendar: calendar.as_deref(),
        stop: Some(&stop),
        progress: Some(&progress),
        skip_damage: args.skip_damage,
        ..SealOptions::default()
    };
    output::print_hot_notice(&args.tape);
    // The tape first: a wrong path must not leave a key behind.
    unitape_tape::tape_status(&args.tape)?;
    let key = args.key.for_sealing(&args.store)?;
    let sealed =
        with_progress("seal", &progress, || seal(&args.tape, &args.store, &key, clock_time(), &options));
    let sealed = sealed?;
    if args.json {
        let days: serde_json::Map<_, _> =
            sealed.days.iter().map(|(d, n)| (d.to_string(), (*n).into())).collect();
        output::print_json(&serde_json::json!({
            "generation": sealed.generation, "rows": sealed.rows, "blocks": sealed.blocks,
            "bytes": sealed.bytes, "days": days, "from": sealed.from.0, "to": sealed.to.0,
            "compacted": sealed.compacted.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "gap": sealed.gap.map(|(from, to)| [from.0, to.0]),
            "accepted_unverified": sealed.accepted.iter().map(|(from, to)| [from.0, to.0]).collect::<Vec<_>>(),
            "checks": read_args::fields(&sealed.damaged, &sealed.unverified),
        }))?;
    } else {
        print_sealed(args, &sealed)?;
    }
    if let Some(problem) = &sealed.compaction_problem {
        note!("unitape: the events are sealed, but {problem}");
    }
    let is_flawed = sealed.gap.is_some() || sealed.compaction_problem.is_some();
    let outcome = if is_flawed { CommandOutcome::Flawed } else { CommandOutcome::Clean };
    read_args::finish_with(&sealed.damaged, &sealed.unverified, sealed.names, outcome)
}

/// Reads the text of a calendar, and checks it.
fn read_calendar(path: &Path) -> Result<String, CommandFailure> {
    let text = output::read_text(path)?;
    Calendar::parse(&text)
        .map_err(|e| CommandFailure::Error(format!("{}:{}: {}", path.display(), e.line, e.fault)))?;
    Ok(text)
}

/// Parses a number of bytes: digits, then K, M, G or T (also KiB …) for multiples of 1,024.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err("a number of bytes is digits, or digits with K, M, G or T behind them".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "no number of bytes, as in 64M or 1GiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there are".to_owned())
}

fn print_sealed(args: &SealArgs, sealed: &SealReport) -> Result<(), CommandFailure> {
    if sealed.generation.is_none() {
        say!("nothing to add; sealed to position {}", sealed.to);
    } else {
        let days: Vec<String> = sealed.days.iter().map(|(d, n)| format!("{d} ({})", grouped(*n))).collect();
        say!(
            "{} events, {} in {} blocks, into {}: {}",
            grouped(sealed.rows),
            bytes(sealed.bytes),
            grouped(sealed.blocks),
            args.store.display(),
            days.join(", ")
        );
    }
    for day in &sealed.compacted {
        say!("{day} had many parts, which are one now");
    }
    if let Some((from, to)) = sealed.gap {
        note!("unitape: positions {from} to {to} were removed from the tape before they were sealed");
    }
    for (from, to) in &sealed.accepted {
        note!("unitape: a repair had accepted positions {from} to {to} without a check; the store says so");
    }
    Ok(())
}

fn with_progress<T>(label: &str, progress: &StoreProgress, work: impl FnOnce() -> T) -> T {
    // Relaxed: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let note = || format!("{} events", grouped(progress.rows.load(Ordering::Relaxed)));
    output::with_progress(label, position, note, work)
}
