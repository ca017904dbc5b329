//! `unitape fx best`: each change of a best price, as it was.

use super::{RuleArgs, render};
use crate::commands::read_args::ReadArgs;
use crate::output::{self, CommandFailure, grouped, note};
use std::io::Write;
use std::path::PathBuf;
use unitape_book::fx::{BestPrice, FxOptions, PairName};
use unitape_model::Decimal;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape fx best banks
  unitape fx best banks --size 1000000,10000000 --instr EURUSD
  unitape fx best banks --json | head
  unitape fx best banks --stale-ms 2000 --spike-pips 20 --spike-banks 4 --json

Prints a line each time the best price of a pair, value date and size changes: the best quote of one bank on each side, and the sweep. The sweep takes quotes of several banks until the size is full. A table shows the notional of a sweep and the number of its quotes. With --json, one object a line: ts, instr, value_date, size, state, bid, ask, bid_sweep, ask_sweep; counts go to stderr. Every rule: docs/best-price-rules.md

Exit code 3 when the tape is damaged or cannot be checked, when retention has removed its beginning, and when there was no room for a quote. Prices before the damage are correct.")]
pub struct BestArgs {
    /// Directory of the tape
    dir: PathBuf,
    /// Sizes in units of the first currency, more than one with commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1000000,5000000",
        value_parser = parse_size
    )]
    size: Vec<Decimal>,
    /// Only this pair: EURUSD or EUR/USD
    #[arg(long, value_name = "PAIR", value_parser = super::parse_pair)]
    instr: Option<PairName>,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    read: ReadArgs,
}

fn parse_size(text: &str) -> Result<Decimal, String> {
    let size = Decimal::parse(text.as_bytes()).ok().filter(|size| size.mantissa() > 0);
    size.ok_or_else(|| "a size is a number above 0, as in --size 1000000,5000000".to_owned())
}

/// The lines of one event, and their number.
#[derive(Default)]
struct PriceLines {
    bytes: Vec<u8>,
    count: u64,
}

/// Runs the command.
pub fn run(args: &BestArgs) -> output::Result {
    let options = FxOptions { sizes: args.size.clone(), ..args.rules.options() };
    let (mut out, mut printed) = (output::stdout(), 0);
    let push_price = |lines: &mut PriceLines, price: &BestPrice<'_>| {
        if args.instr.is_some_and(|pair| pair != price.pair) {
            return;
        }
        match args.json {
            true => render::price_json(&mut lines.bytes, price),
            false => render::price_row(&mut lines.bytes, price),
        }
        lines.count += 1;
    };
    let flush = |lines: &mut PriceLines, is_new: bool| -> Result<(), CommandFailure> {
        if is_new && lines.count > 0 {
            if printed == 0 && !args.json {
                render::price_heading(&mut out)?;
            }
            out.write_all(&lines.bytes)?;
            printed += lines.count;
        }
        lines.bytes.clear();
        lines.count = 0;
        Ok(())
    };
    let replay = super::replay_tape(&args.dir, args.read, options, push_price, flush);
    // What was printed up to an error is right.
    out.flush()?;
    let replay = replay?;
    if printed == 0 {
        let sizes: Vec<String> = args.size.iter().map(Decimal::to_string).collect();
        super::explain_nothing(&replay, "best price", args.instr, &format!(" for {}", sizes.join(", ")));
    } else {
        let (events, quotes) = (replay.moment().seq, replay.books().counters().quotes);
        let [printed, quotes, events] = [printed, quotes, events].map(grouped);
        note!("{printed} best prices from {quotes} quotes among {events} events");
    }
    super::print_counts(&replay)
}
