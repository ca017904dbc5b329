//! `unitape fx book`: the quotes of each pair and date after the last event.

use super::{RuleArgs, render};
use crate::commands::read_args::ReadArgs;
use crate::output;
use std::io::Write;
use std::path::PathBuf;
use unitape_book::fx::PairName;
use unitape_model::CivilDate;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape fx book banks
  unitape fx book banks --instr EURUSD --value-date 2026-03-04
  unitape fx book banks --json | head -n 1

Prints the quotes after the last event, by pair and value date. A quote that is not on offer has its reason: `disabled` by a control, or a `spike`. Prices and quantities are as quoted. `inverted` marks a quote of the inverse pair; its quantity is in the second currency. With --json, one object for each pair and date: ts (the greatest time of an event), instr, value_date, bids and asks, the best first, with px, qty, bank, tier, quote_id, placed, valid_until, full_amount, inverted, off. Every rule: docs/best-price-rules.md

Exit code 3 when the tape is damaged or cannot be checked: no book is printed, or with --skip-damage the books without the lost events. Exit code 3 also when retention has removed its beginning, and when there was no room for a quote.")]
pub struct BookArgs {
    /// Directory of the tape
    dir: PathBuf,
    /// Only this pair: EURUSD or EUR/USD
    #[arg(long, value_name = "PAIR", value_parser = super::parse_pair)]
    instr: Option<PairName>,
    /// Only this value date, as in 2026-03-04
    #[arg(long, value_name = "DATE")]
    value_date: Option<CivilDate>,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &BookArgs) -> output::Result {
    let replay = super::replay_tape(&args.dir, args.read, args.rules.options(), |(), _| {}, |(), _| Ok(()))?;
    let books = replay.books();
    let (mut out, mut printed) = (output::stdout(), 0);
    for book in books.books() {
        let is_asked = args.instr.is_none_or(|pair| pair == book.pair())
            && args.value_date.is_none_or(|date| date == book.value_date());
        if !is_asked {
            continue;
        }
        match args.json {
            true => render::book_json(&mut out, books.now(), &book)?,
            false => render::book_table(&mut out, books.now(), &book)?,
        }
        printed += 1;
    }
    out.flush()?;
    if printed == 0 {
        let date = args.value_date.map(|date| format!(" for {date}")).unwrap_or_default();
        super::explain_nothing(&replay, "book", args.instr, &format!("{date} after the last event"));
    }
    super::print_counts(&replay)
}
