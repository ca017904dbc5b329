//! `unitape book --picture`: the book over time, as SVG or JSON.

use super::BookArgs;
use crate::output::{self, CommandFailure, CommandOutcome, note};
use std::path::Path;
use unitape_model::UnixNanos;
use unitape_run::address;
use unitape_run::picture::{Picture, PictureOptions};

/// Writes the picture of a book to `file`: SVG, or JSON where the name ends in `.json`.
pub fn run(args: &BookArgs, file: &Path) -> output::Result {
    let wanted = |option: &str, value: &Option<String>| {
        let what = format!("--picture needs {option}: a picture is of one book over a time");
        value.clone().ok_or(CommandFailure::Usage(what))
    };
    let (instr, venue) = (wanted("--instr", &args.instr)?, wanted("--venue", &args.venue)?);
    let time = |option: &str, value: &Option<String>| -> Result<UnixNanos, CommandFailure> {
        let text = wanted(option, value)?;
        address::parse_time(&text).map_err(|e| CommandFailure::from(e).with_subject(option))
    };
    let (since, until) = (time("--since", &args.since)?, time("--until", &args.until)?);
    let mut options = PictureOptions::new(&instr, &venue, since, until);
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
