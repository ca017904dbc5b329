//! The `unitape` binary: data to stdout, progress and logs to stderr.
//!
//! Exit codes: 0 done, 1 error, 2 usage, 3 finished but with gaps, quarantined or corrupt data.

mod channels;
mod commands;
mod config;
mod output;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    bench, book, consolidate, decode, demo, doctor, mapping, quarantine, run, store, tape, watch,
};
use output::{Done, Failure};
use std::process::ExitCode;

/// Every feed on one tape.
#[derive(Debug, Parser)]
#[command(
    name = "unitape",
    version,
    after_help = "Examples:\n  unitape demo\n  unitape consolidate market.fix --tape tape\n  unitape tape cat tape --json | head"
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
    Bench(bench::Args),
    /// The second process of a measurement
    #[command(hide = true)]
    BenchPeer(bench::PeerArgs),
    /// What is missing or misconfigured here, and how to mend it
    Doctor(doctor::Args),
    /// Simulated markets with their truth; also shell completions and man pages
    Generate(commands::generate::Args),
}

fn main() -> ExitCode {
    // Clap ends usage errors with exit code 2 and help with 0 by itself.
    let cli = Cli::parse();
    if let Err(Failure::Error(what)) = output::refusals_not_signals() {
        eprintln!("unitape: {what}");
        return ExitCode::FAILURE;
    }
    let result = match cli.command {
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
        Command::Bench(args) => bench::run(args),
        Command::BenchPeer(args) => bench::run_peer(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Generate(args) => commands::generate::run(args, Cli::command()),
    };
    match result {
        Ok(Done::Clean) => ExitCode::SUCCESS,
        Ok(Done::Flawed) => ExitCode::from(3),
        // Whoever reads our output has seen enough.
        Err(Failure::ClosedStdout) => ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => {
            eprintln!("unitape: {what}");
            ExitCode::from(2)
        }
        Err(Failure::Error(what)) => {
            eprintln!("unitape: {what}");
            ExitCode::FAILURE
        }
    }
}
