//! `unitape fx`: the best price of many banks, from their quotes on a tape.

mod best;
mod book;
mod render;

use super::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, list_known_names, note};
use clap::Subcommand;
use std::path::Path;
use unitape_book::fx::{BestPrice, FxOptions, OrientedPair, PairName, QuoteRefusal};
use unitape_model::Position;
use unitape_run::fx::FxReplay;
use unitape_run::replay::ReplayOutcome;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate banks --events 20000 --out banks.jsonl && unitape consolidate banks.jsonl --tape banks
  unitape fx best banks --size 1000000,5000000 --json
  unitape fx book banks --instr EURUSD

A tape has the quotes of banks and venues as events `quote`, whatever their format was. docs/best-price-rules.md defines the best price.")]
pub struct FxArgs {
    #[command(subcommand)]
    command: FxCommand,
}

#[derive(Debug, Subcommand)]
enum FxCommand {
    /// Print each change of the best price of each pair, value date and size
    Best(best::BestArgs),
    /// Print the quotes of each pair and value date, the best first
    Book(book::BookArgs),
}

/// Runs the command.
pub fn run(args: FxArgs) -> output::Result {
    match args.command {
        FxCommand::Best(args) => best::run(&args),
        FxCommand::Book(args) => book::run(&args),
    }
}

/// The options of the rules.
#[derive(Clone, Copy, Debug, clap::Args)]
struct RuleArgs {
    /// Silence after which the quotes of a bank are withdrawn, in milliseconds; 0 is never
    #[arg(long, value_name = "MS", default_value_t = FxOptions::default().stale_ms)]
    stale_ms: u32,
    /// Distance from the median of the other banks beyond which a quote is a spike; 0 is no check
    #[arg(long, value_name = "PIPS", default_value_t = FxOptions::default().spike_pips)]
    spike_pips: u32,
    /// The least number of other banks for that median
    #[arg(long, value_name = "N", default_value_t = FxOptions::default().spike_banks,
          value_parser = clap::value_parser!(u32).range(1..))]
    spike_banks: u32,
}

impl RuleArgs {
    fn options(self) -> FxOptions {
        let Self { stale_ms, spike_pips, spike_banks } = self;
        FxOptions { stale_ms, spike_pips, spike_banks, ..FxOptions::default() }
    }
}

/// Reads a pair, either way round.
fn parse_pair(text: &str) -> Result<PairName, String> {
    let pair = OrientedPair::parse(text);
    pair.map(|pair| pair.name).ok_or_else(|| "no currency pair; write EURUSD or EUR/USD".to_owned())
}

/// Reads the tape in `dir` to its end. `put` takes each change of a best price and writes it to a buffer; `flush` prints the
/// buffer after each event, or forgets it where a tape that was cut back repeats what was printed.
fn replay_tape<B: Default>(
    dir: &Path,
    read: ReadArgs,
    options: FxOptions,
    mut put: impl FnMut(&mut B, &BestPrice<'_>),
    mut flush: impl FnMut(&mut B, bool) -> Result<(), CommandFailure>,
) -> Result<FxReplay, CommandFailure> {
    output::print_hot_notice(dir);
    let mut replay = FxReplay::open(dir, read.options(), options)?;
    // Changes before this were printed.
    let (mut buffer, mut quiet_to) = (B::default(), Position(0));
    loop {
        let outcome = replay.step(&mut |price| put(&mut buffer, price))?;
        match outcome {
            ReplayOutcome::Event => flush(&mut buffer, replay.moment().position >= quiet_to)?,
            ReplayOutcome::Rewound { from, to } => {
                output::print_rewound(from, to);
                quiet_to = to;
            }
            ReplayOutcome::AtEnd | ReplayOutcome::Reached => return Ok(replay),
        }
    }
}

/// Says why nothing was printed, and what there is.
fn explain_nothing(replay: &FxReplay, subject: &str, pair: Option<PairName>, request_text: &str) {
    let (events, quotes) = (replay.moment().seq, replay.books().counters().quotes);
    let pairs = replay.books().pairs();
    match pair.filter(|pair| !pairs.contains(pair)) {
        _ if quotes == 0 => note!(
            "unitape: no {subject}: none of the {} events is a quote; events `quote` come from a feed of banks, see \
             `unitape generate banks`",
            grouped(events)
        ),
        Some(pair) => {
            let names_text = list_known_names(pair.as_str(), "pairs", pairs.iter().map(PairName::as_str));
            note!("unitape: no {subject}: the tape has no quote of {pair}; {names_text}");
        }
        None => note!("unitape: no {subject}{request_text}: the {} quotes made none", grouped(quotes)),
    }
}

/// Prints the counts of what is in no book, and gives how the command ends.
fn print_counts(replay: &FxReplay) -> output::Result {
    let (counters, options) = (replay.books().counters(), replay.books().options());
    for reason in QuoteRefusal::ALL {
        let refused = counters.refused(reason);
        if refused > 0 {
            note!("{} quotes were refused: {}", grouped(refused), reason.name());
        }
    }
    if counters.spikes > 0 {
        note!("{} quotes were a spike", grouped(counters.spikes));
    }
    let no_room = counters.refused(QuoteRefusal::NoRoom);
    if no_room > 0 {
        note!(
            "there is room for {} quotes, {} on a side of a book, {} pairs, {} dates of each, and {} of long ids",
            grouped(options.quotes_max.into()),
            grouped(options.quotes_per_side_max.into()),
            grouped(options.pairs_max.into()),
            grouped(options.dates_per_pair_max.into()),
            output::bytes(options.id_bytes_max as u64)
        );
    }
    if counters.controls_no_room > 0 {
        let (controls, room) = (grouped(counters.controls_no_room), grouped(options.switches_max.into()));
        note!("{controls} controls were not obeyed: there is room for {room} switches of banks");
    }
    let first_address = replay.first();
    if first_address.seq > 1 {
        note!(
            "unitape: retention has removed what is before event {}, at position @{}: older quotes are missing",
            grouped(first_address.seq),
            first_address.position
        );
    }
    let outcome = if no_room + counters.controls_no_room > 0 || first_address.seq > 1 {
        CommandOutcome::Flawed
    } else {
        output::outcome_after_rewinds(replay.rewind_count())
    };
    let outcome = read_args::finish_flaws(replay.flaws(), outcome);
    read_args::finish(replay.reader(), replay.names().lost_names(), outcome)
}
