//! `unitape store seal`: a tape, or files, into sealed days.

use super::{KeyArgs, parse_bytes, with_progress};
use crate::commands::consolidate::with_run_progress;
use crate::commands::tape::utc;
use crate::commands::{clock_time, read_args};
use crate::output::{self, CommandFailure, CommandOutcome, bytes, escape_line, grouped, note, say};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_feed::ChangedSourcePolicy;
use unitape_model::Calendar;
use unitape_run::inputs::InputArguments;
use unitape_run::ticks::seal_files::{FileSealOptions, FileSealStep, SealedFeed, seal_files};
use unitape_store::{Day, SealOptions, SealReport, StoreProgress, seal};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct SealArgs {
    /// Directory of one tape, or files that become events as `unitape consolidate` reads them (also compressed)
    #[arg(value_name = "TAPE|FILE")]
    inputs: Vec<PathBuf>,
    /// A feed of files: name=format:mapping:path (repeatable)
    #[arg(long, value_name = "FEED")]
    feed: Vec<String>,
    /// Reference data for files: a file of instruments, and the mapping that reads it or `events` (repeatable)
    #[arg(long, value_name = "FILE:MAPPING")]
    reference: Vec<String>,
    /// Worker threads that decode files [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
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
pub fn run(args: &SealArgs) -> output::Result {
    if args.inputs.is_empty() && args.feed.is_empty() {
        let message = "nothing to seal: name a tape, files or a --feed".to_owned();
        return Err(CommandFailure::Usage(message));
    }
    if let ([tape], []) = (&args.inputs[..], &args.feed[..])
        && (tape.is_dir() || !tape.exists())
    {
        return seal_tape(args, tape);
    }
    if let Some(folder) = args.inputs.iter().find(|input| input.is_dir()) {
        let message = format!("{}: a tape is sealed alone, without files or another tape", folder.display());
        return Err(CommandFailure::Usage(message));
    }
    if args.skip_damage {
        return Err(CommandFailure::Usage("--skip-damage goes with a tape".to_owned()));
    }
    seal_inputs(args)
}

/// Seals files and feeds.
fn seal_inputs(args: &SealArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let calendar = args.calendar.as_deref().map(read_calendar).transpose()?;
    let arguments = InputArguments {
        feeds: &args.feed,
        files: &args.inputs,
        reference: &args.reference,
        reference_strict: false,
        rules: ChangedSourcePolicy::default(),
    };
    // The files first: a wrong path must not leave a key behind.
    let inputs = arguments.read_inputs(&mut |text| note!("unitape: {text}"))?;
    let key = args.key.for_sealing(&args.store)?;
    let options = FileSealOptions {
        workers: args.workers.map_or_else(unitape_run::cores, usize::from),
        seal: SealOptions {
            date: args.date,
            memory_bytes: usize::try_from(args.memory).unwrap_or(usize::MAX),
            calendar: calendar.as_deref(),
            ..SealOptions::default()
        },
        clock: clock_time,
        stop: &stop,
    };
    let mut sealed_feeds: Vec<SealedFeed> = Vec::new();
    let mut printed: Result<(), CommandFailure> = Ok(());
    let result = seal_files(&args.store, &key, inputs, &options, &mut show_step, &mut |feed| {
        feed.outcome.notes.iter().for_each(|text| note!("unitape: {text}"));
        // Whoever reads no further does not want less to be sealed.
        if !args.json && printed.is_ok() {
            printed = print_feed(args, &feed);
        }
        sealed_feeds.push(feed);
    });
    if args.json {
        output::print_json(&account(&sealed_feeds))?;
    }
    let compaction_problem = result?;
    printed?;
    note_compaction(compaction_problem.as_deref());
    let is_flawed = |feed: &SealedFeed| feed.outcome.summary.is_flawed();
    let is_clean = compaction_problem.is_none() && !sealed_feeds.iter().any(is_flawed);
    Ok(if is_clean { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

/// Runs a step of the work with a progress bar.
fn show_step(step: &FileSealStep<'_>, work: &mut dyn FnMut()) {
    match step {
        FileSealStep::Decode { feed, progress } => {
            with_run_progress(&format!("decode {}", escape_line(feed)), progress, work);
        }
        FileSealStep::Seal { feed, progress } => {
            with_progress(&format!("seal {}", escape_line(feed)), progress, work);
        }
    }
}

/// Prints what a feed has added.
fn print_feed(args: &SealArgs, feed: &SealedFeed) -> Result<(), CommandFailure> {
    let SealedFeed { name, outcome, report } = feed;
    let name = escape_line(name);
    if report.generation.is_none() {
        say!("{name}: nothing to add, its events are in the store");
        return Ok(());
    }
    say!("{name}: {}", sealed_text(args, report));
    note_commit_time(report);
    let quarantined = outcome.summary.quarantined_open();
    if quarantined > 0 {
        note!(
            "unitape: {name}: {} messages are in quarantine; see: unitape store scan {} --schema quarantine",
            grouped(quarantined),
            args.store.display()
        );
    }
    Ok(())
}

/// Says that a day was not compacted, if that is so.
fn note_compaction(problem: Option<&str>) {
    if let Some(problem) = problem {
        note!("unitape: the events are sealed, but {problem}");
    }
}

/// Says that the clock is behind the last commit, if that is so.
fn note_commit_time(report: &SealReport) {
    if let Some(last) = report.last_commit_ahead {
        note!(
            "unitape: the last commit of the store has the time {}, and the clock is not after it; this commit has the \
             time one nanosecond later, which `--as-of TIME` compares",
            utc(last.0)
        );
    }
}

/// Returns the account of all feeds.
fn account(feeds: &[SealedFeed]) -> serde_json::Value {
    let sum = |count: fn(&SealReport) -> u64| feeds.iter().map(|feed| count(&feed.report)).sum::<u64>();
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    for (day, rows) in feeds.iter().flat_map(|feed| &feed.report.days) {
        *days.entry(day.to_string()).or_default() += rows;
    }
    let of_feed = |feed: &SealedFeed| {
        serde_json::json!({
            "name": feed.name, "messages": feed.outcome.fresh_messages,
            "quarantined": feed.outcome.summary.quarantined_open(),
            "generation": feed.report.generation, "rows": feed.report.rows,
        })
    };
    serde_json::json!({
        "generation": feeds.iter().filter_map(|feed| feed.report.generation).max(),
        "rows": sum(|report| report.rows), "blocks": sum(|report| report.blocks),
        "bytes": sum(|report| report.bytes), "days": days,
        "feeds": feeds.iter().map(of_feed).collect::<Vec<_>>(),
    })
}

/// Seals a tape.
fn seal_tape(args: &SealArgs, tape: &Path) -> output::Result {
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
    output::print_hot_notice(tape);
    // The tape first: a wrong path must not leave a key behind.
    unitape_tape::tape_status(tape)?;
    let key = args.key.for_sealing(&args.store)?;
    let sealed = with_progress("seal", &progress, || seal(tape, &args.store, &key, clock_time(), &options));
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
    note_commit_time(&sealed);
    note_compaction(sealed.compaction_problem.as_deref());
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

fn print_sealed(args: &SealArgs, sealed: &SealReport) -> Result<(), CommandFailure> {
    if sealed.generation.is_none() {
        say!("nothing to add; sealed to position {}", sealed.to);
    } else {
        say!("{}", sealed_text(args, sealed));
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

/// Returns a line about what a seal has added.
fn sealed_text(args: &SealArgs, sealed: &SealReport) -> String {
    let days: Vec<String> = sealed.days.iter().map(|(d, n)| format!("{d} ({})", grouped(*n))).collect();
    format!(
        "{} events, {} in {} blocks, into {}: {}",
        grouped(sealed.rows),
        bytes(sealed.bytes),
        grouped(sealed.blocks),
        args.store.display(),
        days.join(", ")
    )
}
