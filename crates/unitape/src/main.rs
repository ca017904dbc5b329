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
use commands::{
    book, breaker, calendar, case, consolidate, decode, demo, doctor, fx, get, handler, link, mapping,
    quarantine, run, serve, status, store, tape, user, watch,
};
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
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Put sample feeds onto a tape, watch and replay it, and explain the results
    Demo(demo::DemoArgs),
    /// Print the fields of raw messages
    Decode(decode::DecodeArgs),
    /// Put many feeds onto one ordered, durable tape
    Consolidate(consolidate::ConsolidateArgs),
    /// Put the configured feeds onto a tape, until stopped
    Run(run::RunArgs),
    /// Print whether a run is well, and if not, why
    Status(status::StatusArgs),
    /// Print a configuration, with the origin of each value
    Config(commands::config::ConfigArgs),
    /// Print, verify, replay and repair tapes
    Tape(tape::TapeArgs),
    /// Send a tape to another process, or receive one
    Link(link::LinkArgs),
    /// Seal, scan and inspect days of ticks
    Store(store::StoreArgs),
    /// List, show and retry quarantined input
    Quarantine(quarantine::QuarantineArgs),
    /// Check, list and print mappings
    Mapping(mapping::MappingArgs),
    /// Print books and best prices of a tape, derive an NBBO, draw a book
    Book(book::BookArgs),
    /// Print the books that a FAST handler makes of captured packets
    Handler(handler::HandlerArgs),
    /// Print the best price of many banks, and the quotes behind it
    Fx(fx::FxArgs),
    /// Run surveillance scenarios over events
    Watch(watch::WatchArgs),
    /// Run circuit breakers: halt a scope when it passes a limit
    Breaker(breaker::BreakerArgs),
    /// Turn alerts into cases, work on them, close them by two persons, and audit them
    Case(case::CaseArgs),
    /// Serve sealed days to those who may read them, or the desk in a browser
    Serve(serve::ServeArgs),
    /// Get rows or events of sealed days from a data server
    Get(get::GetArgs),
    /// Add, list and disable the users who work on cases
    User(user::UserArgs),
    /// Print the session date of a venue, or the trade and spot date of a currency pair
    Calendar(calendar::CalendarArgs),
    /// Measure the figures of the docs on this machine
    #[cfg(feature = "bench")]
    Bench(bench::BenchArgs),
    /// Say how to build `unitape bench`
    #[cfg(not(feature = "bench"))]
    #[command(hide = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _args: Vec<std::ffi::OsString>,
    },
    /// The second process of a measurement
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchPeer(bench::PeerArgs),
    /// Check this machine, and say how to mend what is missing or misconfigured
    Doctor(doctor::DoctorArgs),
    /// Generate simulated markets with their truth, shell completions and man pages
    Generate(commands::generate::GenerateArgs),
}

fn main() -> ExitCode {
    let result = match usage::parse::<CommandLine>() {
        Ok(cli) => output::ignore_file_size_signal().and_then(|()| run(cli)),
        Err(ended) => ended,
    };
    // A writer that was dropped has nobody else to report to.
    let result = result.and_then(|outcome| output::finish().map(|()| output::final_outcome(outcome)));
    if let Err(failure) = &result
        && let Some(message) = failure.text().filter(|text| !text.is_empty())
    {
        note!("unitape: {message}");
    }
    output::exit_code(&result)
}

fn run(cli: CommandLine) -> output::Result {
    match cli.command {
        CliCommand::Demo(args) => demo::run(args),
        CliCommand::Decode(args) => decode::run(args),
        CliCommand::Consolidate(args) => consolidate::run(args),
        CliCommand::Run(args) => run::run(args),
        CliCommand::Status(args) => status::run(&args),
        CliCommand::Config(args) => commands::config::run(args),
        CliCommand::Tape(args) => tape::run(args),
        CliCommand::Link(args) => link::run(args),
        CliCommand::Store(args) => store::run(args),
        CliCommand::Quarantine(args) => quarantine::run(args),
        CliCommand::Mapping(args) => mapping::run(args),
        CliCommand::Book(args) => book::run(args),
        CliCommand::Handler(args) => handler::run(&args),
        CliCommand::Fx(args) => fx::run(args),
        CliCommand::Watch(args) => watch::run(args),
        CliCommand::Breaker(args) => breaker::run(args),
        CliCommand::Case(args) => case::run(args),
        CliCommand::Serve(args) => serve::run(args),
        CliCommand::Get(args) => get::run(&args),
        CliCommand::User(args) => user::run(args),
        CliCommand::Calendar(args) => calendar::run(args),
        #[cfg(feature = "bench")]
        CliCommand::Bench(args) => bench::run(args),
        #[cfg(not(feature = "bench"))]
        CliCommand::Bench { .. } => Err(output::CommandFailure::Usage(
            "this build has no measurements; build them with: cargo build --release --package unitape --features bench".to_owned(),
        )),
        #[cfg(feature = "bench")]
        CliCommand::BenchPeer(args) => bench::run_peer(args),
        CliCommand::Doctor(args) => doctor::run(args),
        CliCommand::Generate(args) => commands::generate::run(args, CommandLine::command()),
    }
}
