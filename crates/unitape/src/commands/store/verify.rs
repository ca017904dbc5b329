//! `unitape store verify`: a store compared with its signed manifest.

use super::key::KeyArgs;
use super::with_progress;
use crate::output::{self, CommandFailure, CommandOutcome, bytes, grouped, say};
use std::path::PathBuf;
use unitape_store::{
    Error, Finding, Freshness, GenerationMemory, PublicKey, StoreProgress, VerifyKey, VerifyOptions,
    VerifyReport, check_format, verify,
};

#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Check signature, lengths and hashes with this public key alone, without the key of the store
    #[arg(long, value_name = "HEX", conflicts_with = "key", value_parser = parse_public_key)]
    public_key: Option<PublicKey>,
    /// The store has at least this generation; an older one has been put back
    #[arg(long, value_name = "N")]
    at_least: Option<u64>,
    /// Keep the highest generation seen of each store in this file, and say when a store is older
    #[arg(long, value_name = "FILE")]
    remember: Option<PathBuf>,
    /// Print as JSON: a line for each finding, then one for the store
    #[arg(long)]
    json: bool,
}

fn parse_public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text)
        .ok_or_else(|| "a public key has 64 hexadecimal digits; `store info` prints it".to_owned())
}

/// Runs the command.
pub fn run(args: &VerifyArgs) -> output::Result {
    let mut memory = args.remember.as_deref().map(GenerationMemory::load).transpose()?;
    let (stop, progress) = (output::stop_flag()?, StoreProgress::default());
    let options = VerifyOptions { stop: Some(&stop), progress: Some(&progress) };
    let master = match (args.public_key, check_format(&args.dir)) {
        // No key opens a damaged manifest; the check says where it is damaged.
        (None, Err(Error::Damage { .. })) | (Some(_), _) => None,
        (None, _) => Some(args.key.of_store(&args.dir)?),
    };
    let key = match &master {
        Some(master) => VerifyKey::Master(master),
        None => VerifyKey::Public(args.public_key.unwrap_or_default()),
    };
    let report = with_progress("verify", &progress, || verify(&args.dir, key, &options))?;

    let remembered_generation =
        report.store.as_deref().zip(memory.as_ref()).and_then(|(store, memory)| memory.generation(store));
    let freshness = match (report.generation, &memory) {
        (None, _) => Freshness::Unproven,
        // What is seen for the first time is the state to remember.
        (Some(now), Some(_)) => Freshness::for_generation(
            now,
            &[args.at_least.unwrap_or(0), remembered_generation.unwrap_or(now)],
        ),
        (Some(now), None) => Freshness::for_generation(now, args.at_least.as_slice()),
    };
    if let (Some(memory), Some(store), Some(now)) = (&mut memory, &report.store, report.generation) {
        memory.remember(store, now)?;
    }
    if args.json {
        print_json(&report, freshness, remembered_generation)?
    } else {
        print_report(args, &report, freshness, remembered_generation)?
    }
    let is_good = report.problems == 0 && freshness != Freshness::RolledBack;
    Ok(if is_good { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

fn print_json(
    report: &VerifyReport,
    freshness: Freshness,
    remembered_generation: Option<u64>,
) -> Result<(), CommandFailure> {
    for Finding { kind, path, block, offset, problem: what } in &report.findings {
        output::print_json(&serde_json::json!({
            "finding": kind.name(), "problem": kind.is_problem(), "path": path.to_string_lossy(), "block": block,
            "offset": offset, "what": what, "advice": kind.advice(),
        }))?;
    }
    output::print_json(&serde_json::json!({
        "generation": report.generation, "freshness": freshness.name(), "files": report.files,
        "bytes": report.bytes, "problems": report.problems, "store": report.store,
        "public_key": report.public_key.map(|key| key.to_string()), "remembered": remembered_generation,
    }))
}

fn print_report(
    args: &VerifyArgs,
    report: &VerifyReport,
    freshness: Freshness,
    remembered_generation: Option<u64>,
) -> Result<(), CommandFailure> {
    for Finding { kind, path, block, offset, problem: what } in &report.findings {
        let block = block.map_or(String::new(), |block| format!(", block {block}"));
        let offset = offset.map_or(String::new(), |offset| format!(" at offset {offset}"));
        say!("{}: {}{block}{offset}: {what}; to do: {}", kind.name(), path.display(), kind.advice());
    }
    if let (Some(generation), Some(key)) = (report.generation, report.public_key) {
        let freshness = match (freshness, remembered_generation, &args.remember) {
            (Freshness::Unproven, ..) => "unproven: it may be an older state of the store".to_owned(),
            (Freshness::Proven, None, Some(_)) => "from now on remembered".to_owned(),
            (Freshness::Proven, ..) => "proven".to_owned(),
            (Freshness::RolledBack, ..) => {
                let least = remembered_generation.max(args.at_least).unwrap_or(0);
                format!("rolled back: generation {least} was there before; to do: put the newer state back")
            }
        };
        say!("generation {generation}, freshness {freshness}");
        say!("signed with {key}");
    }
    let totals = format!("{} files, {}", grouped(report.files), bytes(report.bytes));
    match (report.problems, args.public_key) {
        (0, None) => say!("intact: {totals}; every block opens"),
        (0, Some(_)) => say!("intact: {totals}; blocks were not opened"),
        (n, _) => say!(
            "{} in {totals}",
            if n == 1 { "1 problem".to_owned() } else { format!("{} problems", grouped(n)) }
        ),
    }
    Ok(())
}
