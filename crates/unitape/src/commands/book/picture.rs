//! `unitape book picture`: the book over time, as SVG or JSON.

use crate::commands::range_args;
use crate::commands::read_args::ReadArgs;
use crate::output::{self, CommandOutcome, note};
use std::path::PathBuf;
use unitape_run::picture::{Picture, PictureOptions};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct PictureArgs {
    /// Directory of the tape
    pub dir: PathBuf,
    /// Write to this file: SVG, or JSON if its name ends in .json
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The instrument, by its name on the tape
    #[arg(long, visible_alias = "instr", value_name = "X")]
    pub symbols: String,
    /// The venue
    #[arg(long, value_name = "V")]
    pub venue: String,
    /// First time of the picture, in UTC, or nanoseconds since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: String,
    /// The picture ends before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: String,
    /// Draw only the orders of this owner or trader (repeatable)
    #[arg(long, value_name = "NAME")]
    pub party: Vec<String>,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Writes the picture of a book over time.
pub fn run(args: &PictureArgs) -> output::Result {
    let since = range_args::parse_time_alone("--since", &args.since)?;
    let end_time = range_args::parse_time_alone("--until", &args.until)?;
    let file = &args.output;
    let mut options = PictureOptions::new(&args.symbols, &args.venue, since, end_time);
    options.parties.clone_from(&args.party);
    output::print_hot_notice(&args.dir);
    let picture = Picture::read(&args.dir, &options, args.read.options())?;
    let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let text = if is_json { format!("{}\n", picture.json()) } else { picture.svg(1100, 620) };
    output::write_file(file, text.as_bytes())?;
    let (columns, trades, orders) = (picture.columns.len(), picture.trades.len(), picture.lifelines.len());
    note!("unitape: {}: {columns} columns of the book, {trades} trades, {orders} orders", file.display());
    if picture.lacks_beginning {
        note!("unitape: retention has removed the beginning of the tape: orders of before are missing");
        return Ok(CommandOutcome::Flawed);
    }
    if picture.lacks_part {
        note!("unitape: a part of the tape is missing: orders may be missing");
        return Ok(CommandOutcome::Flawed);
    }
    Ok(CommandOutcome::Clean)
}
