//! `unitape generate`: simulated markets with their truth; shell completions and man pages from the commands themselves.

mod banks;
mod bench;
mod exchange;
mod market;

use crate::output::{self, CommandOutcome, file_failure};
use std::io::Write;
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: GenerateCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GenerateCommand {
    /// Generate one or more days of a simulated market, with their truth
    Market(market::MarketArgs),
    /// Generate the market data of an exchange in FAST, on two lines, with snapshots and faults
    Exchange(exchange::ExchangeArgs),
    /// Generate a stream of orders to measure surveillance with
    Bench(bench::BenchStreamArgs),
    /// Generate the quotes of banks for currency pairs in tiers, with their best prices
    Banks(banks::BanksArgs),
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  unitape generate completions bash > ~/.local/share/bash-completion/completions/unitape"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a directory
    #[command(after_help = "Example:\n  unitape generate man ~/.local/share/man/man1")]
    Man {
        /// The directory
        dir: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: GenerateArgs, mut cli: clap::Command) -> output::Result {
    match args.what {
        GenerateCommand::Market(args) => return market::run(args),
        GenerateCommand::Exchange(args) => return exchange::run(args),
        GenerateCommand::Bench(args) => return bench::run(args),
        GenerateCommand::Banks(args) => return banks::run(args),
        GenerateCommand::Completions { shell } => {
            // The generators panic when a write fails; into memory none does.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut cli, "unitape", &mut text);
            output::unbuffered().write_all(&text)?;
        }
        GenerateCommand::Man { dir } => {
            std::fs::create_dir_all(&dir).map_err(|e| file_failure(&dir, e))?;
            clap_mangen::generate_to(cli, &dir).map_err(|e| file_failure(&dir, e))?;
        }
    }
    Ok(CommandOutcome::Clean)
}
