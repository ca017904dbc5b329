//! `unitape consolidate`: many feeds onto one tape, or many tapes.

mod tapes;

use crate::output::{
    self, CommandFailure, CommandOutcome, bytes, escape_line, grouped, note, say, say_lines,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;
use unitape_feed::block::EntryTally;
use unitape_feed::{
    ChangedSourcePolicy, ClockLeadLimits, ConsolidateOptions, Error, FarmEnding, RunOutcome, RunProgress,
    consolidate,
};
use unitape_run::config::WaitLimit;
use unitape_run::cores;
use unitape_run::inputs::{InputArguments, LoadedInputs};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape consolidate market.fix --tape tape
  unitape consolidate --feed orders=fix:fix44-orders:orders.fix market.fix --tape tape --workers 2 --json
  unitape consolidate feeds.toml --tape tape
  unitape consolidate quotes.fix prints.txt --reference master.txt:nyse-taq-master --tape tape
  unitape consolidate --tape-in monday --tape-in tuesday --tape week
  unitape consolidate --tape-in us=new-york/tape --tape-in uk=london/tape --tape both --json

unitape recognises the format of a file by its content; --feed sets it. Feeds are merged by event time; each feed keeps its own order.

A rerun resumes where the last run ended. It reads the rest of a file that has grown, and does nothing when all is done. Different content under a known file name is an error; --new-source treats it as a new source. Known content under a new file name is an error, too; --again accepts it.

Reference data are a file of instruments and the mapping that reads it. With them, an ISIN, a FIGI and a symbol on its venue become one instrument, by the day of the event. An instrument that the file does not have keeps its name and is counted as unresolved.

--tape-in merges existing tapes by event time, each up to its present end. The tape that is named first wins a tie. A rerun resumes where the last merge ended, also after a kill, and reads the new events. Events that retention removed before they were merged are listed as gaps, and the exit code is 3.

feeds.toml:
  [[feed]]
  name = \"orders\"
  format = \"fix\"
  mapping = \"fix44-orders\"     # shipped, or a file
  files = [\"orders-1.fix\", \"orders-2.fix\"]
  new_source = false         # the same as --new-source, --again: for this feed
  again = false
  [[reference]]
  file = \"master.txt\"
  mapping = \"nyse-taq-master\"")]
pub struct ConsolidateArgs {
    /// Input files (`-` is stdin, with --feed), or one CONFIG.toml
    #[arg(value_name = "CONFIG.toml|FILE")]
    inputs: Vec<PathBuf>,
    /// A tape to merge; NAME is the last part of DIR by default (repeatable, not with files)
    #[arg(long, value_name = "[NAME=]DIR", conflicts_with_all = [ "inputs", "feed", "reference", "reference_strict", "new_source", "again"])]
    tape_in: Vec<String>,
    /// Directory of the tape; made if it does not exist
    #[arg(long, value_name = "DIR")]
    tape: PathBuf,
    /// Worker threads; the tape does not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=WORKERS_MAX))]
    workers: Option<u16>,
    /// A feed: name=format:mapping:path (repeatable)
    #[arg(long, value_name = "FEED")]
    feed: Vec<String>,
    /// Reference data: a file of instruments, and the mapping that reads it or `events` (repeatable)
    #[arg(long, value_name = "FILE:MAPPING")]
    reference: Vec<String>,
    /// An instrument that the reference data does not have puts its message into quarantine
    #[arg(long)]
    reference_strict: bool,
    /// Other content under a name that the tape has is another source of this name (new_source)
    #[arg(long)]
    new_source: bool,
    /// Read a file that holds what another one holds a second time (again)
    #[arg(long)]
    again: bool,
    /// How far an event's time may lead that of its receipt (10min) or, without one, of the other feeds or merged tapes
    /// (366d); or `unbounded`. An event that leads by more is flagged clock_ahead
    #[arg(long, value_name = "SPAN")]
    clock_lead: Option<String>,
    /// Bytes of a block; the tape does not depend on it
    #[arg(long, value_name = "BYTES", default_value_t = unitape_feed::BLOCK_BYTES as u32, hide = true,
        value_parser = clap::value_parser!(u32).range(64..=unitape_feed::BLOCK_BYTES_MAX as i64))]
    block_bytes: u32,
    /// Bytes of a segment of a new tape, a power of two
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    segment_bytes: u64,
    /// Continue after damage of a merged tape, at its next segment, and count what is lost; the exit code is still 3
    #[arg(long, requires = "tape_in")]
    skip_damage: bool,
    /// Print the account as JSON
    #[arg(long)]
    json: bool,
}

/// More threads than this help nowhere, and each has its memory.
const WORKERS_MAX: i64 = 256;

/// Runs the command.
pub fn run(args: ConsolidateArgs) -> output::Result {
    if !args.tape_in.is_empty() {
        return tapes::run(&args);
    }
    let arguments = InputArguments {
        feeds: &args.feed,
        files: &args.inputs,
        reference: &args.reference,
        reference_strict: args.reference_strict,
        rules: ChangedSourcePolicy { new_source: args.new_source, allows_same_content: args.again },
    };
    let LoadedInputs { feeds, rules: feed_rules } =
        arguments.read_inputs(&mut |text| note!("unitape: {text}"))?;
    let stop = output::stop_flag()?;
    let options = ConsolidateOptions {
        feeds,
        lead: lead_limits(args.clock_lead.as_deref())?,
        workers: args.workers.map_or_else(cores, usize::from),
        block_bytes: args.block_bytes as usize,
        tape: unitape_tape::WriterOptions { segment_bytes: args.segment_bytes, ..Default::default() },
        stop: Some(&stop),
        rules: arguments.rules,
        feed_rules,
        ..ConsolidateOptions::default()
    };
    output::print_hot_notice(&args.tape);
    let started_at = Instant::now();
    let outcome = run_with_progress(&args.tape, options).map_err(usage_or_error)?;
    let elapsed_s = started_at.elapsed().as_secs_f64();
    outcome.notes.iter().for_each(|text| note!("unitape: {text}"));
    if args.json {
        let mut account = serde_json::to_value(&outcome.summary)?;
        account["elapsed_s"] = elapsed_s.into();
        output::print_json(&account)?;
    } else {
        print_summary(&args.tape, &outcome, elapsed_s)?;
    }
    if outcome.ending == FarmEnding::Stopped {
        return Err(CommandFailure::Error("stopped; the same command resumes from here".to_owned()));
    }
    Ok(if outcome.summary.is_flawed() { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

fn lead_limits(text: Option<&str>) -> Result<ClockLeadLimits, CommandFailure> {
    let Some(text) = text else { return Ok(ClockLeadLimits::default()) };
    let WaitLimit(lead) = WaitLimit::try_from(text.to_owned())
        .map_err(|e| CommandFailure::Usage(format!("--clock-lead: {e}")))?;
    Ok(ClockLeadLimits { receipt: lead, feeds: lead })
}

/// Consolidates with a progress bar.
fn run_with_progress(dir: &Path, options: ConsolidateOptions<'_>) -> Result<RunOutcome, unitape_feed::Error> {
    let progress = options.progress.clone();
    with_run_progress("consolidate", &progress, || consolidate(dir, options))
}

/// Runs work that reads feeds with a progress bar.
pub fn with_run_progress<T>(label: &str, progress: &RunProgress, work: impl FnOnce() -> T) -> T {
    // Relaxed throughout: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let note = || {
        let c = &progress.counters;
        let (events, quarantined) = (c.events.load(Ordering::Relaxed), c.quarantined.load(Ordering::Relaxed));
        format!("{} events, {} quarantined", grouped(events), grouped(quarantined))
    };
    output::with_progress(label, position, note, work)
}

/// Converts an error into a failure. Invalid feeds or reference data on the command line are usage errors.
pub fn usage_or_error(error: Error) -> CommandFailure {
    match error {
        Error::Config { .. } => CommandFailure::Usage(error.to_string()),
        error => error.into(),
    }
}

/// Prints the account for people.
pub fn print_summary(dir: &Path, outcome: &RunOutcome, elapsed_s: f64) -> Result<(), CommandFailure> {
    let s = &outcome.summary;
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["feed", "messages", "with events", "quarantined", "duplicates", "ignored", "events"]);
    for (name, f) in &s.by_feed {
        let counts = [f.messages, f.with_events, f.quarantined, f.duplicates, f.ignored, f.events];
        table.add_row(std::iter::once(escape_line(name).into_owned()).chain(counts.map(grouped)));
    }
    say_lines(&mut output::unbuffered(), &table)?;
    let rate = if outcome.fresh_messages == 0 {
        if outcome.stopped { "stopped, nothing was read" } else { "nothing left to do" }.to_owned()
    } else {
        let per_s = outcome.fresh_messages as f64 / elapsed_s;
        format!(
            "{} messages in {elapsed_s:.2} s ({} a second)",
            grouped(outcome.fresh_messages),
            grouped(per_s as u64)
        )
    };
    if s.unresolved > 0 {
        say!(
            "{} messages name an instrument that the reference data does not have (unresolved)",
            grouped(s.unresolved)
        );
    }
    if s.repeats > 0 {
        say!("{} messages came with a sequence number that had come before (repeat)", grouped(s.repeats));
    }
    if s.unsure > 0 {
        say!(
            "of {} of these nobody knows, because a session had too many gaps or there were too many sessions",
            grouped(s.unsure)
        );
    }
    if s.entries.quarantined + s.entries.ignored > 0 {
        let EntryTally { total, quarantined, ignored, .. } = s.entries;
        say!(
            "{} entries of groups: {} in quarantine with their messages, {} ignored by the mapping",
            grouped(total),
            grouped(quarantined),
            grouped(ignored)
        );
    }
    if s.clock_ahead > 0 {
        say!("{} messages have a time that leads by more than it may (clock_ahead)", grouped(s.clock_ahead));
    }
    say!("{rate}; tape {}, {}", dir.display(), bytes(disk_bytes(dir)));
    if s.recovered > 0 {
        say!(
            "{} of the {} in quarantine were recovered by a retry",
            grouped(s.recovered),
            grouped(s.quarantined)
        );
    }
    if s.gaps > 0 {
        let tape = dir.display();
        say!(
            "{} gaps: packets or messages came on no line; see: unitape tape cat {tape} --kind status",
            grouped(s.gaps)
        );
    }
    if s.sums_differ > 0 {
        let tape = dir.display();
        say!(
            "{} messages state another sum or number than their transactions come to (sum_differs); see: unitape tape cat {tape} --json",
            grouped(s.sums_differ)
        );
    }
    for line in &s.lines_down {
        say!("{line}, is down: what the other line loses now is lost");
    }
    if s.quarantined_open() > 0 {
        say!("see: unitape quarantine list {}", dir.display());
    }
    Ok(())
}

fn disk_bytes(dir: &Path) -> u64 {
    unitape_tape::info(dir).map_or(0, |i| i.disk_bytes)
}
