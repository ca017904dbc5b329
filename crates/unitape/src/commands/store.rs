//! `unitape store`: a tape into sealed days, events out of them, and whether they are as they were sealed.

mod compact;
mod empty;
mod export;
mod info;
mod key;
mod partitions;
mod rekey;
pub mod scan;
mod seal;
mod verify;

use self::compact::CompactArgs;
use self::export::ExportArgs;
use self::info::InfoArgs;
pub use self::key::KeyArgs;
use self::rekey::{EraseArgs, RekeyArgs};
use self::scan::ScanArgs;
use self::seal::SealArgs;
use self::verify::VerifyArgs;
use crate::output::{self, grouped};
use std::sync::atomic::Ordering;
use unitape_store::StoreProgress;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    /// Seal the events of a tape, or of files, into days
    #[command(after_help = "Examples:
  unitape store seal tape --store ticks
  unitape store seal tape --store ticks --date 2024-03-11
  unitape store seal quotes-20240311.gz trades-20240311.gz --store ticks
  unitape store seal --feed orders=fix:fix44-orders:orders.fix --store ticks --json

Each seal that adds events makes a generation; scan --as-of reads an earlier one. The store is encrypted. --key names the file of its key, otherwise UNITAPE_STORE_KEY_FILE does. Otherwise the key is beside the store (ticks.key for the store ticks), where the first seal writes it. Nobody can read a store without its key.

A seal adds the events that the store does not have yet, up to the durable position of the tape. A seal that is stopped or killed leaves the store unchanged; run the same command again. Events that do not match their checksums are never sealed. If the tape is damaged, or lacks checksums, the store stays unchanged and the exit code is 3. --skip-damage seals the events after the damage; a later repair of the damaged part is then not sealed any more.

Files are read as `unitape consolidate` reads them: each file, or each --feed, goes onto a tape beside the store (ticks.sealing), which is sealed and removed. The same file under the same name adds nothing the second time. A file that has grown is another file, and its events would be doubled: consolidate such a file onto a tape that you keep, and seal the tape.")]
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
    /// Give the store another key
    #[command(after_help = "Examples:
  unitape store rekey ticks --new-key safe/ticks.key
  unitape store rekey ticks --key old.key --new-key new.key

The data are not encrypted again: the keys that encrypt them are encrypted with the new key, and the old key opens the store no more, nor any day that is sealed later. Whoever has the old key and a copy of the store from before can read that copy. Move the new key to the place where commands look for it, or name it with --key.")]
    Rekey(RekeyArgs),
    /// Erase a day (its events and the key that opens them), or a name
    #[command(after_help = "Examples:
  unitape store erase ticks --date 2024-03-11
  unitape store erase ticks --name TRADER7

There is no way back. Tapes that were sealed are not sealed again, so the day stays empty, also with --as-of. A backup of the files of the day opens no more with this store; a backup of the whole store still has the day.

--name takes the name out of the dictionary, of each kind that has it. Its events stay, and have the name erased-N, where N is the token of the name; no selection finds it. If a tape with the name is sealed later, the name gets another token. Text in events that is no such name stays: symbols of reference data, names in payments and messages. A backup of the dictionary still opens with the store's key. Exit code 1 if the store does not have the name.")]
    Erase(EraseArgs),
}

/// Runs the command.
pub fn run(args: StoreArgs) -> output::Result {
    match args.command {
        StoreCommand::Seal(args) => seal::run(&args),
        StoreCommand::Scan(args) => scan::run(&args),
        StoreCommand::Export(args) => export::run(&args),
        StoreCommand::Verify(args) => verify::run(&args),
        StoreCommand::Info(args) => info::run(&args),
        StoreCommand::Compact(args) => compact::run(&args),
        StoreCommand::Rekey(args) => rekey::run_rekey(&args),
        StoreCommand::Erase(args) => rekey::run_erase(&args),
    }
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

fn with_progress<T>(label: &str, progress: &StoreProgress, work: impl FnOnce() -> T) -> T {
    // Relaxed: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let note = || format!("{} events", grouped(progress.rows.load(Ordering::Relaxed)));
    output::with_progress(label, position, note, work)
}
