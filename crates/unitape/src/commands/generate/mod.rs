//! `unitape generate`: simulated markets with their truth; shell completions and man pages from the commands themselves.

mod exchange;
mod market;

use crate::output::{self, Done, at};
use std::io::Write;
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
            // The generators panic when a write fails; into memory none does.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut cli, "unitape", &mut text);
            output::unbuffered().write_all(&text)?;
        }
        What::Man { dir } => {
            std::fs::create_dir_all(&dir).map_err(|e| at(&dir, e))?;
            clap_mangen::generate_to(cli, &dir).map_err(|e| at(&dir, e))?;
        }
    }
    Ok(Done::Clean)
}
