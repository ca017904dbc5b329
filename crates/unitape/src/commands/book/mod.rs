//! `unitape book`: order books and best prices from a tape, at its end, at a point of it, or as it grows.

mod checkpoint;
mod derive;
pub mod ladder;
mod legacy;
mod picture;
mod printer;
mod render;

use super::range_args::{InstrumentArgs, OutputArgs, RangeArgs};
use super::read_args::ReadArgs;
use crate::output::{self, CommandFailure};
use printer::{BookPrinter, PrinterOptions, PrinterOutput};
use std::path::PathBuf;
use unitape_book::{ALL_VENUES, Basis};
use unitape_query::address::TapeStopPoint;
use unitape_query::follow::TapeRange;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    override_usage = "unitape book <COMMAND>"
)]
pub struct BookArgs {
    #[command(subcommand)]
    command: Option<BookCommand>,
    #[command(flatten)]
    legacy: legacy::LegacyArgs,
}

#[derive(Debug, clap::Subcommand)]
enum BookCommand {
    /// Print the books of a tape, at its end, at a point of it, or as it grows
    #[command(after_help = "Examples:
  unitape book show tape
  unitape book show tape --symbols GB00S0000160 --venue XLON --depth 10
  unitape book show tape --at 2026-03-02T09:30 --json
  unitape book show tape --at @1048576 --orders      # with the orders in line

--at cuts the tape: after an ordinal of events (`seq`), after a tape position with an @ before it, or before the first event that is later than a time (UTC, or nanoseconds since 1970). Digits below 10^15 are an ordinal. If the tape lacks the event or the position, the books are those of its end, and the exit code is 3. A time after the last event is only reported.

A listing has a book for each basis on the tape: `orders` (order_new, order_amend, order_cancel, exec), `levels` (level) and `bbo`. The venue NBBO is the best price over all venues that trade, without venues whose books are stale.

Exit code 3 if a book is stale or has faults, if an instrument has no book because its messages are in quarantine or may be there twice (`repeat`), if orders name no instrument, if retention or a merge left out a part of the tape, and if the tape is damaged or cannot be checked. A book is stale if its feed says so, and after a fault, a gap, a message in quarantine or a repeat that may concern it. If the tape is damaged no book is printed; --skip-damage prints the books without the lost events.")]
    Show(ShowArgs),
    /// Print each change of a best price
    #[command(after_help = "Examples:
  unitape book bbo tape --json | head
  unitape book bbo tape --symbols VOD --venue NBBO --since 2026-03-02T09:30 --limit 10
  unitape book bbo tape --csv -o best.csv
  unitape book bbo tape --follow              # follow the tape as it grows

A best price is taken from the first of bbo, levels, orders that is not stale, or from --basis. Books are always made from the oldest event on: --from, --to, --since and --until only select what is printed. A file that -o names is there only when it is complete.

Exit code 3 as with: unitape book show --help")]
    Bbo(BboArgs),
    /// Write the best prices over all venues onto a tape
    #[command(after_help = "Examples:
  unitape book derive tape --tape-out nbbo
  unitape book derive tape --tape-out nbbo --follow

Writes an event `bbo` of the venue NBBO whenever its bid, its ask or a quantity changes, also for an instrument with one venue. The event has the time of the event that caused it, and `cause`, the position of that event. Events of a venue NBBO on the input are ignored.

The same command continues where it ended, also after a kill. It compares the output with the input: an input that was cut, or is another tape, is refused with exit code 3.")]
    Derive(derive::DeriveArgs),
    /// Write checkpoints of the books beside the tape, or verify them
    #[command(after_help = "Examples:
  unitape book checkpoint tape --every 250000   # --at then reads 250,000 events at most
  unitape book checkpoint tape --verify

Checkpoints (TAPE/checkpoints) are derived: you can remove them at any time. A checkpoint that does not belong to the tape in its present state is not used. --verify compares each with a replay of the tape and prints good, outdated or wrong. Exit code 3 if one is wrong, or if the tape is damaged.")]
    Checkpoint(checkpoint::CheckpointArgs),
    /// Draw a book over time: levels, best prices, trades and orders
    #[command(after_help = "Examples:
  unitape book picture tape -o book.svg --symbols VOD --venue XLON --since 2026-03-02 --until 2026-03-03
  unitape book picture tape -o book.json --symbols VOD --venue XLON --since 0 --until 10 --party AMBER

Writes SVG, or JSON if the name of the file ends in .json. Exit code 3 if a part of the tape that the book needs is missing.")]
    Picture(picture::PictureArgs),
}

/// The choice of listings.
#[derive(Clone, Debug, Default, clap::Args)]
struct ListingArgs {
    #[command(flatten)]
    instruments: InstrumentArgs,
    /// Only these venues; NBBO is the best price over all of them (repeatable)
    #[arg(long, value_name = "V")]
    venue: Vec<String>,
    /// Only books of this basis: orders, levels or bbo
    #[arg(long, value_name = "BASIS", value_parser = parse_basis)]
    basis: Option<Basis>,
}

impl ListingArgs {
    /// Returns whether the best price over all venues is printed.
    fn wants_all_venues(&self) -> bool {
        self.basis.is_none() && (self.venue.is_empty() || self.includes_all_venues())
    }

    /// Returns whether the venue NBBO is chosen by its name.
    fn includes_all_venues(&self) -> bool {
        self.venue.iter().any(|venue| venue == ALL_VENUES)
    }
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Directory of the tape
    dir: PathBuf,
    #[command(flatten)]
    listings: ListingArgs,
    /// Levels of each side
    #[arg(long, value_name = "N", default_value_t = 5)]
    depth: usize,
    /// Print the orders in line at each level
    #[arg(long)]
    orders: bool,
    /// Cut the tape here: an ordinal, @position, or a time
    #[arg(long, value_name = "POSITION|TIME", conflicts_with = "follow")]
    at: Option<String>,
    /// Follow the tape as it grows, until stopped
    #[arg(long, short)]
    follow: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, clap::Args)]
struct BboArgs {
    /// Directory of the tape
    dir: PathBuf,
    #[command(flatten)]
    listings: ListingArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Print at most N
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Follow the tape as it grows, until stopped
    #[arg(long, short, conflicts_with = "output")]
    follow: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: BookArgs) -> output::Result {
    match args.command {
        Some(command) => run_command(command),
        None => legacy::run(args.legacy),
    }
}

fn run_command(command: BookCommand) -> output::Result {
    match command {
        BookCommand::Show(args) => show_book(&args),
        BookCommand::Bbo(args) => print_best_prices(&args, None),
        BookCommand::Derive(args) => derive::run(&args),
        BookCommand::Checkpoint(args) => checkpoint::run(&args),
        BookCommand::Picture(args) => picture::run(&args),
    }
}

fn show_book(args: &ShowArgs) -> output::Result {
    BookPrinter::run(PrinterOptions {
        tape_dir: &args.dir,
        listings: &args.listings,
        output: PrinterOutput::Books { depth: args.depth, orders: args.orders },
        stop_point: args.at.as_deref().map(parse_stop_point).transpose()?,
        follow: args.follow,
        json: args.json,
        file: None,
        read_options: args.read.options(),
    })
}

/// Prints the changes of best prices, up to `stop_point` where an old call has one.
fn print_best_prices(args: &BboArgs, stop_point: Option<TapeStopPoint>) -> output::Result {
    let range: TapeRange = args.range.parse()?;
    BookPrinter::run(PrinterOptions {
        tape_dir: &args.dir,
        listings: &args.listings,
        output: PrinterOutput::BestPrices {
            range,
            limit: args.limit.unwrap_or(u64::MAX),
            csv: args.output.csv,
        },
        stop_point,
        follow: args.follow,
        json: args.output.json,
        file: args.output.file.as_deref(),
        read_options: args.read.options(),
    })
}

fn parse_basis(text: &str) -> Result<Basis, String> {
    let basis_names = Basis::ALL.map(Basis::name);
    let basis = Basis::ALL.into_iter().find(|b| b.name() == text);
    basis.ok_or_else(|| format!("there are: {}", basis_names.join(", ")))
}

fn parse_stop_point(text: &str) -> Result<TapeStopPoint, CommandFailure> {
    TapeStopPoint::parse(text).map_err(|e| CommandFailure::Usage(format!("--at {e}")))
}
