//! The calls of `unitape book` before it had subcommands. They work for one release, and name the new call on stderr.

use super::{BboArgs, BookCommand, ListingArgs, ShowArgs, checkpoint, derive, picture};
use crate::commands::handler;
use crate::commands::range_args::{InstrumentArgs, OutputArgs, RangeArgs};
use crate::commands::read_args::ReadArgs;
use crate::output::{self, CommandFailure, CommandOutcome, bytes, grouped, note};
use std::num::NonZeroU64;
use std::path::PathBuf;
use unitape_book::{ALL_VENUES, Basis};

/// The options of all forms.
#[derive(Debug, clap::Args)]
pub struct LegacyArgs {
    #[arg(hide = true)]
    dir: Option<PathBuf>,
    #[arg(long, hide = true)]
    instr: Option<String>,
    #[arg(long, hide = true, conflicts_with_all = ["venue", "at", "bbo", "basis", "orders", "follow"])]
    handler: Option<PathBuf>,
    #[arg(long, hide = true, requires = "handler", conflicts_with = "instr")]
    group: Option<String>,
    #[arg(long, hide = true, requires = "handler")]
    channel: Option<String>,
    #[arg(long, hide = true, requires = "handler")]
    stats: bool,
    #[arg(long, hide = true)]
    venue: Option<String>,
    #[arg(long, hide = true, default_value_t = 5)]
    depth: usize,
    #[arg(long, hide = true, conflicts_with = "follow")]
    at: Option<String>,
    #[arg(long, hide = true, conflicts_with_all = ["follow", "handler"])]
    checkpoint_every: Option<NonZeroU64>,
    #[arg(long, hide = true, conflicts_with_all = ["at", "follow", "bbo", "handler", "checkpoint_every"])]
    verify_checkpoints: bool,
    #[arg(long, hide = true)]
    bbo: bool,
    #[arg(long, hide = true, value_parser = [ALL_VENUES], requires = "tape_out",
          conflicts_with_all = ["handler", "instr", "venue", "at", "checkpoint_every", "verify_checkpoints", "bbo", "basis", "orders"])]
    derive: Option<String>,
    #[arg(long, hide = true, requires = "derive")]
    tape_out: Option<PathBuf>,
    #[arg(long, hide = true, requires = "instr", requires = "venue", requires = "since", requires = "until",
          conflicts_with_all = ["handler", "at", "checkpoint_every", "verify_checkpoints", "bbo", "derive", "basis", "orders",
          "follow", "json"])]
    picture: Option<PathBuf>,
    #[arg(long, hide = true, requires = "picture", allow_hyphen_values = true)]
    since: Option<String>,
    #[arg(long, hide = true, requires = "picture", allow_hyphen_values = true)]
    until: Option<String>,
    #[arg(long, hide = true, requires = "picture")]
    party: Vec<String>,
    #[arg(long, hide = true, value_parser = super::parse_basis)]
    basis: Option<Basis>,
    #[arg(long, hide = true, conflicts_with = "bbo")]
    orders: bool,
    #[arg(long, short, hide = true)]
    follow: bool,
    #[arg(long, hide = true)]
    json: bool,
    #[arg(long, hide = true)]
    no_verify: bool,
    #[arg(long, hide = true)]
    skip_damage: bool,
}

/// Runs the new form of an old call.
pub fn run(args: LegacyArgs) -> output::Result {
    let Some(dir) = args.dir.clone() else {
        let reason =
            "unitape book needs a subcommand, as in: unitape book show TAPE; see: unitape book --help";
        return Err(CommandFailure::Usage(reason.to_owned()));
    };
    let read_args = ReadArgs { no_verify: args.no_verify, skip_damage: args.skip_damage };
    if let Some(config) = args.handler {
        note_new_call("unitape handler CAPTURE --config CONFIG");
        return handler::run(&handler::HandlerArgs {
            capture: dir,
            config,
            instruments: InstrumentArgs::from_name(args.instr),
            group: args.group,
            channel: args.channel,
            stats: args.stats,
            depth: args.depth,
            json: args.json,
        });
    }
    if let Some(tape_out) = args.tape_out {
        note_new_call("unitape book derive TAPE --tape-out DIR");
        return derive::run(&derive::DeriveArgs {
            dir,
            tape_out,
            follow: args.follow,
            json: args.json,
            read: read_args,
        });
    }
    let venue: Vec<String> = args.venue.clone().into_iter().collect();
    if let (Some(output), Some(symbols), Some(venue)) = (args.picture, args.instr.clone(), args.venue) {
        note_new_call("unitape book picture TAPE -o FILE");
        let (since, until) = (args.since.unwrap_or_default(), args.until.unwrap_or_default());
        let party = args.party;
        return picture::run(&picture::PictureArgs {
            dir,
            output,
            symbols,
            venue,
            since,
            until,
            party,
            read: read_args,
        });
    }
    if args.verify_checkpoints {
        note_new_call("unitape book checkpoint TAPE --verify");
        let json = args.json;
        return checkpoint::run(&checkpoint::CheckpointArgs {
            dir,
            every: None,
            verify: true,
            json,
            read: read_args,
        });
    }
    let stop_point = args.at.as_deref().map(super::parse_stop_point).transpose()?;
    let mut written = CommandOutcome::Clean;
    if let Some(every) = args.checkpoint_every {
        note_new_call("unitape book checkpoint TAPE --every N");
        let (totals, outcome) = checkpoint::write_checkpoints(&dir, every, read_args.options())?;
        note!("unitape: {} checkpoints written, {}", grouped(totals.count), bytes(totals.bytes));
        written = outcome;
    }
    let instruments = InstrumentArgs::from_name(args.instr);
    let listings = ListingArgs { instruments, venue, basis: args.basis };
    let (follow, json) = (args.follow, args.json);
    if args.bbo {
        note_new_call("unitape book bbo TAPE");
        let range = RangeArgs::default();
        let output = OutputArgs { json, csv: false, file: None };
        let bbo = BboArgs { dir, listings, range, limit: None, follow, output, read: read_args };
        return Ok(super::print_best_prices(&bbo, stop_point)?.max(written));
    }
    note_new_call("unitape book show TAPE");
    let (depth, orders, stop_text) = (args.depth, args.orders, args.at);
    let show = ShowArgs { dir, listings, depth, orders, at: stop_text, follow, json, read: read_args };
    Ok(super::run_command(BookCommand::Show(show))?.max(written))
}

fn note_new_call(call: &str) {
    note!("unitape: this form of `unitape book` ends with the next release; write: {call}");
}
