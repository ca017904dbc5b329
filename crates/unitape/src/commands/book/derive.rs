//! `unitape book derive`: the best price over all venues, as events on a tape of its own.

use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandOutcome, grouped, note, say};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use unitape_model::Position;
use unitape_run::best_price_tape::BestPriceTape;
use unitape_run::replay::ReplayOutcome;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct DeriveArgs {
    /// Directory of the tape
    pub dir: PathBuf,
    /// Directory of the tape that is made or continued
    #[arg(long, value_name = "DIR")]
    pub tape_out: PathBuf,
    /// Follow the tape as it grows, until stopped
    #[arg(long, short)]
    pub follow: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Writes the best prices of the tape onto the one of `--tape-out`.
pub fn run(args: &DeriveArgs) -> output::Result {
    let out = &args.tape_out;
    let stop = output::stop_flag()?;
    output::print_hot_notice(&args.dir);
    let mut prices = BestPriceTape::open(&args.dir, out, args.read.options())?;
    loop {
        // A long tape is left where the next call continues.
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match prices.apply_next()? {
            ReplayOutcome::AtEnd if args.follow => prices.wait()?,
            ReplayOutcome::AtEnd => break,
            _ => {}
        }
    }
    let (reader, lost_names) = (prices.replay().reader(), prices.replay().books().names.lost_names());
    let run_outcome = if prices.is_flawed() { CommandOutcome::Flawed } else { CommandOutcome::Clean };
    let outcome = read_args::finish(reader, lost_names, run_outcome)?;
    let (first, is_partial) = (prices.replay().first(), prices.replay().books().books.lacks_part());
    let totals = prices.close()?;
    if args.json {
        let mut counts = serde_json::json!({
            "events": totals.events,
            "appended": totals.appended,
            "quantities_left_out": totals.quantities_left_out,
        });
        if totals.stale > 0 {
            counts["stale"] = totals.stale.into();
        }
        output::print_json(&counts)?;
    } else {
        let (events, appended) = (grouped(totals.events), grouped(totals.appended));
        say!("{}: {events} best prices, {appended} of them new", out.display());
        if totals.quantities_left_out > 0 {
            let n = grouped(totals.quantities_left_out);
            note!(
                "unitape: {n} sides have no quantity: the sum over the venues has more digits than a field holds"
            );
        }
    }
    if totals.stale > 0 {
        let stale = grouped(totals.stale);
        note!(
            "unitape: {stale} words on {} say that prices are stale: books of venues lack something",
            out.display()
        );
    }
    if first.position > Position(0) {
        let seq = grouped(first.seq);
        note!(
            "unitape: retention has removed what is before event {seq}: the best prices continue with the books of the rest"
        );
    } else if is_partial {
        note!("unitape: a part of the tape is missing: venues may be left out of the best prices");
    }
    Ok(outcome)
}
