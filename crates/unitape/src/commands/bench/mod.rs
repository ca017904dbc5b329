//! `unitape bench`: the measurements, and how they are printed.

mod render;

use crate::output::{self, CommandFailure, CommandOutcome, note};
use std::path::{Path, PathBuf};
use unitape_bench::record::{BenchRecord, MarkedRecord};
use unitape_bench::{BenchOptions, CaseSelection, Error, TapeTuning};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape bench
  unitape bench fix/orders tape/rtt --json > figures.jsonl
  unitape bench tape/sustained --seconds 60 --dir DISK
  unitape bench tape/rtt --tune helper_cpus=1 --tune segment_bytes=16MiB
  unitape bench --render figures.jsonl

Benches: tape (raw rtt rtt-64 rtt-rate rtt-load one-way sustained recorder-behind readers1 readers4 readers20 isolation), farm (empty), fix (orders jse orders-to-tape), fast (cme complex30000 moex2521, each with -half; handler book-latency; cme reads fast/cme in the directory that UNITAPE_SAMPLES names), fixed (taq taq-events taq-to-tape), csv (taq taq-events), swift (typed to-tape), itch (events with-orders), iso20022 (pacs008), store (ingest scan size), watch (otr wash layering three all alert-latency snapshot), book (flow deep), sim (events frames). Leave the machine alone while it measures. Exit code 1 when a measurement does not come out right.")]
pub struct BenchArgs {
    /// Benches, or single cases as bench/case [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print as JSON, one object a measurement
    #[arg(long)]
    json: bool,
    /// Small counts and few repeats: checks that everything works, the figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Directory for files and tapes [default: one in shared memory, so that no disk is measured]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How long the tape is written at full rate in tape/sustained [default: 60, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Print with each measurement which calls of the mark are around its last repeat: for `cargo xtask instructions`
    #[arg(long, hide = true, requires = "json")]
    marks: bool,
    /// Change how the tapes of `tape` are opened: segment_bytes, window_segments, prefault_bytes, helper_cpus,
    /// helper_nice, pin (repeatable; see docs/tuning.md)
    #[arg(long, value_name = "NAME=VALUE")]
    tune: Vec<String>,
    /// Measure nothing; print a recorded run (`-` is stdin) as a Markdown table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "quick", "dir", "seconds", "tune"])]
    render: Option<PathBuf>,
}

/// Arguments of the second process of a measurement.
#[derive(Debug, clap::Args)]
pub struct PeerArgs {
    /// Leave the threads where the system puts them
    #[arg(long)]
    unpinned: bool,
    #[arg(required = true)]
    arguments: Vec<String>,
}

/// Runs the command.
pub fn run(args: BenchArgs) -> output::Result {
    if let Some(file) = &args.render {
        return render::print_markdown(file);
    }
    let dir = args.dir.clone().unwrap_or_else(|| {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
    });
    let options = BenchOptions {
        wanted: args.names.iter().map(|name| CaseSelection::parse(name)).collect::<Result<_, _>>()?,
        quick: args.quick,
        dir,
        seconds: args.seconds.unwrap_or(if args.quick { 1 } else { 60 }),
        tune: TapeTuning::parse(&args.tune)?,
        note: |text| note!("{text}"),
    };
    let mut records = Vec::new();
    let mut failure = None;
    let outcome = unitape_bench::run(options, &mut |record| {
        print_record(&args, record, &mut records).map_err(|print_failure| {
            failure = Some(print_failure);
            Error::Failed("the record cannot be printed".to_owned())
        })
    });
    match failure {
        Some(failure) => return Err(failure),
        None => outcome?,
    }
    if !args.json {
        output::say_lines(&mut output::unbuffered(), &render::table(&records))?;
    }
    Ok(CommandOutcome::Clean)
}

/// Prints a record, or keeps it for the table.
fn print_record(
    args: &BenchArgs,
    record: BenchRecord,
    records: &mut Vec<BenchRecord>,
) -> Result<(), CommandFailure> {
    if args.marks {
        return output::print_json(&MarkedRecord { record: &record, marks: record.marks });
    }
    if args.json {
        return output::print_json(&record);
    }
    note!("{} {}: {} ns", record.bench, record.case, record.ns_per_op);
    records.push(record);
    Ok(())
}

/// Runs the second process of a measurement.
pub fn run_peer(args: PeerArgs) -> output::Result {
    unitape_bench::peer(args.unpinned, &args.arguments)?;
    Ok(CommandOutcome::Clean)
}
