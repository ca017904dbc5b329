//! `unitape config`: the values in force, and their origins.

use crate::output::{self, CommandOutcome, say};
use std::path::PathBuf;
use unitape_run::config::read;
use unitape_run::layered::list_effective;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    what: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Print every value of a configuration, defaults included
    #[command(after_help = "Example:
  unitape config show feeds.toml --origin

The file overrides the defaults. Environment variables (UNITAPE_RUN__WORKERS=4, UNITAPE_FEED__ORDERS__LISTEN=…) override the file. Options of `unitape run` override the variables.")]
    Show {
        /// The configuration
        #[arg(value_name = "CONFIG.toml")]
        config: PathBuf,
        /// Where each value came from
        #[arg(long)]
        origin: bool,
        /// One JSON object a value
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: ConfigArgs) -> output::Result {
    let ConfigCommand::Show { config, origin, json } = args.what;
    let loaded = read(&config, &[])?;
    let mut entries = list_effective(&loaded.value, &loaded.origins);
    // A path is shown as it is used, wherever it was given.
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    for value in entries {
        if json {
            output::print_json(&value)?;
        } else if origin {
            say!("{} = {}  # {}", value.key, value.value, value.origin);
        } else {
            say!("{} = {}", value.key, value.value);
        }
    }
    Ok(CommandOutcome::Clean)
}
