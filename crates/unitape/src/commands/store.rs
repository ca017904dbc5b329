//! `unitape store`: a tape into sealed days, events out of them, and whether they are as they were sealed.

mod empty;
mod key;
pub mod scan;
mod verify;

pub use self::key::KeyArgs;
use self::scan::ScanArgs;
use self::verify::VerifyArgs;
use super::read_args;
use super::tape::utc;
use crate::output::{self, CommandFailure, CommandOutcome, bytes, grouped, note, say, say_lines};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use unitape_model::UnixNanos;
use unitape_store::{
    Day, Error, SealOptions, SealReport, Store, StoreProgress, StoredTotals, TapePart, seal,
};

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

The store is encrypted. --key names the file of its key, otherwise UNITAPE_STORE_KEY_FILE does. Otherwise the key is beside the store (ticks.key for the store ticks), where the first seal writes it. Nobody can read a store without its key.

A seal adds the events that the store does not have yet, up to the durable position of the tape. A seal that is stopped or killed leaves the store unchanged; run the same command again. Events that do not match their checksums are never sealed. If the tape is damaged, or lacks checksums, the store stays unchanged and the exit code is 3. --skip-damage seals the events after the damage; a later repair of the damaged part is then not sealed any more.")]
    Seal(SealArgs),
    /// Print rows of one schema, or events in the order of the tape
    #[command(after_help = "Examples:
  unitape store scan ticks --schema trades --csv --date 2024-03-11
  unitape store scan ticks --schema bbo --symbols VOD,BARC --since 2024-03-11T14:30 --json
  unitape store scan ticks --json | head
  unitape store scan ticks --schema mbo,trades --venue XLON --events --json --full

With one --schema (trades or bbo), the command prints rows in the order of event time: a table, or JSON with --json, or CSV with --csv. Otherwise, and with --events, --full or --kind, it prints events in the order of the tape. --since and --until keep since <= ts < until. A sealed day has no ordinals, so there is no --from and no --to; for one release, a time behind these still counts as --since and --until.

Schemas: mbo mbp bbo trades quotes definition status statistics orders reference news comms payments alerts quarantine clock. Exit code 3 when blocks are damaged; all other blocks are read.")]
    Scan(ScanArgs),
    /// Verify a store against its signed manifest: every file, and with the key every block
    #[command(after_help = "Examples:
  unitape store verify ticks
  unitape store verify ticks --remember ~/generations --json
  unitape store verify ticks --public-key 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c

--public-key checks signature, lengths and hashes without the key of the store; `unitape store info` prints the public key. Only --at-least and --remember can find that the store was replaced by an older state of itself. Exit code 3 when a file is changed, missing or foreign, or the store is rolled back; 1 for a wrong key.")]
    Verify(VerifyArgs),
    /// Print days, schemas, sizes and names
    #[command(after_help = "Example:\n  unitape store info ticks --json")]
    Info {
        /// Directory of the store
        dir: PathBuf,
        #[command(flatten)]
        key: KeyArgs,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
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
    /// Bytes of frames gathered before blocks are written
    #[arg(long, value_name = "BYTES", default_value_t = SealOptions::default().stripe_bytes, hide = true)]
    stripe_bytes: usize,
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
        StoreCommand::Verify(args) => verify::run(&args),
        StoreCommand::Info { dir, key, json } => print_info(&dir, &key, json),
    }
}

fn run_seal(args: &SealArgs) -> output::Result {
    let (stop, progress) = (output::stop_flag()?, StoreProgress::default());
    let options = SealOptions {
        date: args.date,
        stripe_bytes: args.stripe_bytes,
        stop: Some(&stop),
        progress: Some(&progress),
        skip_damage: args.skip_damage,
        ..SealOptions::default()
    };
    output::print_hot_notice(&args.tape);
    // The tape first: a wrong path must not leave a key behind.
    unitape_tape::tape_status(&args.tape)?;
    let key = args.key.for_sealing(&args.store)?;
    let sealed = with_progress("seal", &progress, || seal(&args.tape, &args.store, &key, &options));
    let sealed = sealed?;
    if args.json {
        let days: serde_json::Map<_, _> =
            sealed.days.iter().map(|(d, n)| (d.to_string(), (*n).into())).collect();
        output::print_json(&serde_json::json!({
            "generation": sealed.generation, "rows": sealed.rows, "blocks": sealed.blocks,
            "bytes": sealed.bytes, "days": days, "from": sealed.from.0, "to": sealed.to.0,
            "gap": sealed.gap.map(|(from, to)| [from.0, to.0]),
            "accepted_unverified": sealed.accepted.iter().map(|(from, to)| [from.0, to.0]).collect::<Vec<_>>(),
            "checks": read_args::fields(&sealed.damaged, &sealed.unverified),
        }))?;
    } else {
        print_sealed(args, &sealed)?;
    }
    let outcome = if sealed.gap.is_some() { CommandOutcome::Flawed } else { CommandOutcome::Clean };
    read_args::finish_with(&sealed.damaged, &sealed.unverified, sealed.names, outcome)
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
    if let Some((from, to)) = sealed.gap {
        note!("unitape: positions {from} to {to} were removed from the tape before they were sealed");
    }
    for (from, to) in &sealed.accepted {
        note!("unitape: a repair had accepted positions {from} to {to} without a check; the store says so");
    }
    Ok(())
}

fn print_info(dir: &Path, key: &KeyArgs, json: bool) -> output::Result {
    let store = Store::open(dir, &key.of_store(dir)?)?;
    let info = store.info();
    let problems: Vec<String> = store.missing_files().iter().map(Error::to_string).collect();
    let totals = info.all();
    if json {
        let amount = |a: &StoredTotals| {
            serde_json::json!({
                "rows": a.rows, "blocks": a.blocks, "bytes": a.bytes, "bytes_per_row": per_row(a),
                "tape_bytes": a.raw_bytes, "ts_min": a.ts_min.map(|ts| ts.0), "ts_max": a.ts_max.map(|ts| ts.0),
            })
        };
        let days: Vec<_> = info
            .days
            .iter()
            .map(|(day, d)| {
                let mut value = amount(&d.all);
                let schemas: serde_json::Map<_, _> =
                    d.schemas.iter().map(|(s, a)| (s.name().to_owned(), amount(a))).collect();
                value["date"] = day.to_string().into();
                value["generations"] = d.generations.clone().into();
                value["schemas"] = schemas.into();
                value
            })
            .collect();
        let names: serde_json::Map<_, _> = info
            .names
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(d, n)| (d.name().to_owned(), (*n).into()))
            .collect();
        let tapes: Vec<_> = info
            .tapes
            .iter()
            .map(|(tape, sealed)| serde_json::json!({"tape": tape.to_string(), "sealed": sealed.0}))
            .collect();
        output::print_json(&serde_json::json!({
            "format": unitape_store::FORMAT_VERSION, "generation": info.generation,
            "public_key": info.public_key.to_string(), "rows": totals.rows,
            "blocks": totals.blocks, "bytes": totals.bytes, "bytes_per_row": per_row(&totals),
            "dictionary_bytes": info.dictionary_bytes, "names": names, "tapes": tapes, "days": days,
            "missing": info.missing.iter().map(part_json).collect::<Vec<_>>(),
            "accepted_unverified": info.unverified.iter().map(part_json).collect::<Vec<_>>(),
            "problems": problems,
        }))?;
    } else {
        say!("store   format {}, generation {}", unitape_store::FORMAT_VERSION, info.generation);
        say!("signed  with {}", info.public_key);
        for (tape, sealed) in &info.tapes {
            say!("tape    {tape}, sealed to position {sealed}");
        }
        for TapePart { tape, from, to } in &info.missing {
            say!("missing positions {from} to {to} of tape {tape}");
        }
        for TapePart { tape, from, to } in &info.unverified {
            say!("never verified: positions {from} to {to} of tape {tape}, accepted by a repair");
        }
        for (dict, n) in info.names.iter().filter(|(_, n)| *n > 0) {
            say!("names   {} {}", grouped((*n).into()), dict.name());
        }
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["day", "schema", "events", "blocks", "bytes", "per event", "first", "last"]);
        let row = |day: String, schema: &str, a: &StoredTotals| {
            // Events without a time have no first one.
            let time = |ts: Option<UnixNanos>| ts.map_or("-".to_owned(), |ts| utc(ts.0)[11..].to_owned());
            let (first, last) = (time(a.ts_min), time(a.ts_max));
            let sizes = [grouped(a.rows), grouped(a.blocks), bytes(a.bytes), per_row(a).to_string()];
            [day, schema.to_owned()].into_iter().chain(sizes).chain([first, last])
        };
        for (day, d) in &info.days {
            for (schema, a) in &d.schemas {
                table.add_row(row(day.to_string(), schema.name(), a));
            }
        }
        say_lines(&mut output::unbuffered(), &table)?;
        say!("{} events, {} in all", grouped(totals.rows), bytes(totals.bytes + info.dictionary_bytes));
        problems.iter().for_each(|p| note!("unitape: {p}"));
    }
    Ok(if problems.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

fn part_json(part: &TapePart) -> serde_json::Value {
    serde_json::json!({ "tape": part.tape.to_string(), "from": part.from.0, "to": part.to.0 })
}

/// Computes the bytes of a row, with two decimals.
fn per_row(a: &StoredTotals) -> f64 {
    if a.rows == 0 { 0.0 } else { (a.bytes as f64 / a.rows as f64 * 100.0).round() / 100.0 }
}

fn with_progress<T>(label: &str, progress: &StoreProgress, work: impl FnOnce() -> T) -> T {
    // Relaxed: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let note = || format!("{} events", grouped(progress.rows.load(Ordering::Relaxed)));
    output::with_progress(label, position, note, work)
}
