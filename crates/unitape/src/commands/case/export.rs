//! `unitape case export`: a case as a file.

use crate::commands::clock_time;
use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandOutcome, note};
use std::path::PathBuf;
use unitape_case::evidence::EvidenceTape;
use unitape_case::{CaseStore, export};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The number of the case
    case: u64,
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    /// Directory of the tape that was watched
    #[arg(long)]
    tape: PathBuf,
    /// Write one HTML file: no script, nothing from outside, ready to be printed
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> output::Result {
    let store = CaseStore::open(&args.cases)?;
    output::print_hot_notice(&args.tape);
    let mut tape = EvidenceTape::open(&args.tape, args.read.options())?;
    let html = export::html(&store, &mut tape, args.case, clock_time().0)?;
    output::write_private_file(&args.html, html.as_bytes())?;
    note!("unitape: case {} is in {}, which others cannot read", args.case, args.html.display());
    read_args::finish(tape.reader(), tape.lost_names(), CommandOutcome::Clean)
}
