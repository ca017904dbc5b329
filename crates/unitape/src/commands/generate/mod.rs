//! `unitape generate`: simulated markets with their truth; shell completions and man pages from the commands themselves.

mod exchange;
mod market;

use crate::output::{self, Done};
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// A day of a simulated market, with its truth beside it
    Market(market::Args),
    /// An exchange in a box: market data in FAST on two lines, with snapshots and faults
    Exchange(exchange::Args),
    /// Completions of a shell, to stdout
    #[command(
        after_help = "Example:\n  unitape generate completions bash > ~/.local/share/bash-completion/completions/unitape"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Man pages into a directory
    #[command(after_help = "Example:\n  unitape generate man ~/.local/share/man/man1")]
    Man {
        /// The directory
        dir: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: Args, mut cli: clap::Command) -> output::Result {
    match args.what {
        What::Market(args) => return market::run(args),
        What::Exchange(args) => return exchange::run(args),
        What::Completions { shell } => {
            clap_complete::generate(shell, &mut cli, "unitape", &mut output::stdout());
        }
        What::Man { dir } => {
            std::fs::create_dir_all(&dir)?;
            clap_mangen::generate_to(cli, &dir)?;
        }
    }
    Ok(Done::Clean)
}
