//! `unitape case export`: a case as a file.

use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, note};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
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
    let html = export::html(&store, &mut tape, args.case, super::now())?;
    write_private(&args.html, html.as_bytes())
        .map_err(|e| CommandFailure::from(e).with_subject(args.html.display()))?;
    note!("unitape: case {} is in {}, which others cannot read", args.case, args.html.display());
    read_args::finish(tape.reader(), tape.lost_names(), CommandOutcome::Clean)
}

/// Writes a file for its owner alone, as a whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let name = PathBuf::from(name);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&name)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&name, path));
    if written.is_err() {
        _ = fs::remove_file(&name);
    }
    written
}
