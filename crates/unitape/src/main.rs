//! The `unitape` binary: data to stdout, progress and logs to stderr.
//!
//! The rule for exit codes is in `output/failure.rs`.

#![warn(clippy::print_stdout, clippy::print_stderr)] // `output` escapes what a terminal would obey

mod channels;
mod commands;
mod output;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "bench")]
use commands::bench;
use commands::{book, consolidate, decode, demo, doctor, mapping, quarantine, run, store, tape, watch};
use output::note;
use std::process::ExitCode;

/// Every feed on one tape.
#[derive(Debug, Parser)]
#[command(
    name = "unitape",
    version,
    after_help = "Examples:
  unitape demo
  unitape consolidate market.fix --tape tape
  unitape tape cat tape --json | head

Exit codes of every command:
  0  done, also when nothing was found
  1  the cause lies outside the call and the data: a file, a permission, a disk, a port, a lock, a configuration
  2  the call is wrong
  3  the data are damaged, missing or in quarantine, whether the command finished or not; 1 wins over 3"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sample feeds onto a tape, watched and replayed, with a summary that explains itself
    Demo(demo::Args),
    /// Bytes to fields, without a mapping
    Decode(decode::Args),
    /// Many feeds onto one ordered, durable tape
    Consolidate(consolidate::Args),
    /// The configured feeds onto a tape, until stopped
    Run(run::Args),
    /// What a configuration says, and where each value came from
    Config(commands::config::Args),
    /// Look at a tape, check it, play it again
    Tape(tape::Args),
    /// Sealed days of ticks: from a tape, and back to events
    Store(store::Args),
    /// What could not become events, and another try at it
    Quarantine(quarantine::Args),
    /// Check a mapping, and what it makes of a sample
    Mapping(mapping::Args),
    /// Books and best prices from a tape
    Book(book::Args),
    /// Surveillance: scenarios over events
    Watch(watch::Args),
    /// Measure the figures of the docs on this machine
    #[cfg(feature = "bench")]
    Bench(bench::Args),
    /// The second process of a measurement
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchPeer(bench::PeerArgs),
    /// What is missing or misconfigured here, and how to mend it
    Doctor(doctor::Args),
    /// Simulated markets with their truth; also shell completions and man pages
    Generate(commands::generate::Args),
}

fn main() -> ExitCode {
    let result = match usage::parse::<Cli>() {
        Ok(cli) => output::refusals_not_signals().and_then(|()| run(cli)),
        Err(ended) => ended,
    };
    // A writer that was dropped has nobody else to report to.
    let result = result.and_then(|done| output::finish().map(|()| output::ending(done)));
    if let Err(failure) = &result
        && let Some(what) = failure.text().filter(|what| !what.is_empty())
    {
        note!("unitape: {what}");
    }
    output::exit_code(&result)
}

fn run(cli: Cli) -> output::Result {
    match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Consolidate(args) => consolidate::run(args),
        Command::Run(args) => run::run(args),
        Command::Config(args) => commands::config::run(args),
        Command::Tape(args) => tape::run(args),
        Command::Store(args) => store::run(args),
        Command::Quarantine(args) => quarantine::run(args),
        Command::Mapping(args) => mapping::run(args),
        Command::Book(args) => book::run(args),
        Command::Watch(args) => watch::run(args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(args),
        #[cfg(feature = "bench")]
        Command::BenchPeer(args) => bench::run_peer(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Generate(args) => commands::generate::run(args, Cli::command()),
    }
}
