//! `unitape handler`: the books that a FAST handler makes of the packets of a capture.

use super::book::ladder;
use super::range_args::InstrumentArgs;
use crate::channels;
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say_to};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_book::PriceLevel;
use unitape_marketdata::{
    BookView, EventContext, Handler, InstrumentId, LineState, Listener, PacketFile, RefusedInput,
    SequenceGap, Side, StoredLevel, Subscription,
};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape handler day.pcap --config venue.toml --group BUND --depth 10 --stats
  unitape handler day.packets --config venue.toml --channel incremental --json

The configuration is a mapping with a table [fast]. The books are those that its channels make of the packets, at the end of the capture.

Exit code 3 if a sequence gap remains, a book is stale, a line is down, or packets are unusable.")]
pub struct HandlerArgs {
    /// A capture of packets
    pub capture: PathBuf,
    /// Configuration of the handler
    #[arg(long, value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub instruments: InstrumentArgs,
    /// Only this group of products
    #[arg(long, value_name = "G", conflicts_with_all = ["symbols", "symbol"])]
    pub group: Option<String>,
    /// Read a file that has four bytes of length before each packet, as packets of this channel
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
    /// Print the counters of each channel's lines: packets, copies, missing, late and damaged ones
    #[arg(long)]
    pub stats: bool,
    /// Levels of each side
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub depth: usize,
    /// Print as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Counts what is wrong; books are looked at when all has been read.
#[derive(Debug, Default)]
struct HandlerProblems {
    refused_count: u64,
    first_refusal: Option<String>,
    /// Times there was no room for what waited.
    no_room: u64,
    /// Events of lines, the first few.
    line_events: Vec<String>,
    line_changes: u64,
}

/// Changes of lines that are printed.
const LINES_MAX: usize = 20;

impl Listener for HandlerProblems {
    fn on_gap(&mut self, _: &EventContext<'_>, gap: SequenceGap) {
        self.no_room += u64::from(matches!(gap, SequenceGap::NoRoom { .. }));
    }

    fn on_line(&mut self, context: &EventContext<'_>, state: LineState) {
        self.line_changes += 1;
        if self.line_events.len() < LINES_MAX {
            let channel = &context.tables.channels[context.channel.index()].name;
            let [name, other_name] = if state.line == 0 { ["A", "B"] } else { ["B", "A"] };
            let silent = Duration::from_nanos(context.ts_recv.0.saturating_sub(state.since.0).max(0) as u64);
            self.line_events.push(match state.down {
                true => format!("line {name} of {channel} is down: silent for {silent:?}, while line {other_name} brought packets"),
                false => format!("line {name} of {channel} is back: it was silent for {silent:?}"),
            });
        }
    }

    fn on_refused(&mut self, context: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        self.refused_count += 1;
        self.first_refusal.get_or_insert_with(|| {
            format!("the first at byte {}: {}: {}", context.position, refusal.code, refusal.detail)
        });
    }
}

/// Reads the packets and prints the books.
pub fn run(args: &HandlerArgs) -> output::Result {
    let mut handler = Handler::open(&args.config)?;
    let instruments = args.instruments.names().into_iter().map(Subscription::Instrument);
    let mut subscriptions: Vec<Subscription> =
        instruments.chain(args.group.clone().map(Subscription::Group)).collect();
    if subscriptions.is_empty() {
        subscriptions.push(Subscription::All);
    }
    for subscription in subscriptions {
        handler.subscribe(subscription);
    }
    let mut wrong = HandlerProblems::default();
    let counts = handler.replay(&args.capture, args.channel.as_deref(), &mut wrong)?;
    if !has_selection(args, &handler)? {
        return Ok(CommandOutcome::Clean);
    }
    let mut out = output::stdout();
    let mut stale = 0;
    for instrument in handler.tables().instrument_ids() {
        let Some(book) = handler.book(instrument) else { continue };
        stale += u64::from(book.is_stale());
        match args.json {
            true => write_line(&mut out, &handler, instrument, book, args.depth)?,
            false => write_table(&mut out, &handler, instrument, book, args.depth)?,
        }
    }
    let stats = handler.core().stats();
    if args.stats && args.json {
        writeln!(out, "{}", json!({ "stats": stats }))?;
    }
    out.flush()?;
    if args.stats && !args.json {
        channels::lines(&stats).iter().for_each(|line| note!("{line}"));
    }
    let losses = counts.unusable + counts.dropped + counts.lost_bytes;
    // A gap of packets and the gaps of messages that it makes are one.
    let gaps: u64 = stats.channels.iter().map(|c| c.gaps).sum::<u64>() + stats.products.gaps_alone;
    let down = stats.channels.iter().flat_map(|c| &c.lines).filter(|line| line.down).count() as u64;
    wrong.line_events.iter().for_each(|line| note!("{line}"));
    for (n, text) in [
        (stale, "books are stale at the end"),
        (gaps, "times something was missing on both lines"),
        (wrong.no_room, "times more levels waited for snapshots than there is room for"),
        (down, "lines are down at the end"),
        (wrong.line_changes - wrong.line_events.len() as u64, "more changes of lines"),
        (wrong.refused_count, "packets or messages could not be used"),
        (counts.unusable, "datagrams of which the capture has only a part"),
        (stats.unknown, "packets were sent to addresses of no channel"),
        (counts.dropped, "datagrams were dropped when the capture was made"),
        (counts.lost_bytes, "bytes at the end that are no whole packet"),
    ] {
        if n > 0 {
            note!("{} {text}", grouped(n));
        }
    }
    if let Some(first_fault) = &wrong.first_refusal {
        note!("{first_fault}");
    }
    let flawed = stale + gaps + wrong.no_room + down + wrong.refused_count + losses > 0;
    Ok(if flawed { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

/// Returns whether the packets have the chosen instruments or group; notes what they have instead.
///
/// # Errors
/// Fails if no packet is of a channel of the configuration.
fn has_selection(args: &HandlerArgs, handler: &Handler) -> Result<bool, CommandFailure> {
    let tables = handler.tables();
    let stats = handler.core().stats();
    if stats.unknown > 0 && stats.channels.iter().all(|c| c.lines.iter().all(|line| line.packets == 0)) {
        let destinations = sent_to(&args.capture)?;
        let message = "no packet was sent to an address of a channel of";
        return Err(CommandFailure::Data(format!(
            "{}: {message} {}: {destinations}",
            args.capture.display(),
            args.config.display()
        )));
    }
    if let Some(name) = args.instruments.names().iter().find(|name| handler.find(name).is_none()) {
        let names_text =
            output::list_known_names(name, "instruments", tables.instruments.iter().map(|i| i.id.as_str()));
        note!("unitape: no book: no instrument {name} in these packets; {names_text}");
        return Ok(false);
    }
    let mut groups: Vec<&str> = tables.instrument_ids().map(|id| tables.group(id)).collect();
    groups.sort_unstable();
    groups.dedup();
    if let Some(name) = args.group.as_ref().filter(|name| groups.binary_search(&name.as_str()).is_err()) {
        let groups_text = output::list_known_names(name, "groups", groups.iter().copied());
        note!("unitape: no book: no group {name} in these packets; {groups_text}");
        return Ok(false);
    }
    Ok(true)
}

/// Lists the destinations of the packets of a capture.
fn sent_to(capture: &Path) -> Result<String, CommandFailure> {
    let mut file = PacketFile::open(capture, None)?;
    let mut destinations = BTreeSet::new();
    while let Some(packet) = file.next()? {
        destinations.insert(packet.to);
        if destinations.len() > 10 {
            break;
        }
    }
    let ellipsis = if destinations.len() > 10 { ", …" } else { "" };
    let list: Vec<String> = destinations.iter().take(10).map(ToString::to_string).collect();
    Ok(format!("they were sent to {}{ellipsis}", list.join(", ")))
}

/// Writes a book as a line of JSON.
fn write_line(
    out: &mut impl Write,
    handler: &Handler,
    instrument: InstrumentId,
    book: BookView<'_>,
    depth: usize,
) -> Result<(), CommandFailure> {
    let tables = handler.tables();
    let definition = &tables.instruments[instrument.index()];
    let side = |side| -> Vec<_> {
        let one = |rung: &StoredLevel| {
            let level = rung.level();
            let mut value = json!({"px": level.px.to_string(), "qty": level.qty.to_string()});
            if let Some(orders) = level.orders {
                value["orders"] = orders.into();
            }
            value
        };
        book.levels(side).take(depth).map(one).collect()
    };
    let value = json!({
        "instr": definition.id, "symbol": definition.symbol, "product": tables.products[definition.product.index()].id,
        "group": tables.group(instrument), "stale": book.is_stale(),
        "levels": [book.depth(Side::Buy), book.depth(Side::Sell)],
        "bids": side(Side::Buy), "asks": side(Side::Sell),
    });
    serde_json::to_writer(&mut *out, &value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Writes a book as a table.
fn write_table(
    out: &mut impl Write,
    handler: &Handler,
    instrument: InstrumentId,
    book: BookView<'_>,
    depth: usize,
) -> Result<(), CommandFailure> {
    let tables = handler.tables();
    let definition = &tables.instruments[instrument.index()];
    let mut head = definition.id.clone();
    if !definition.symbol.is_empty() {
        head += &format!(" {}", definition.symbol);
    }
    head += &format!(" of {}", tables.group(instrument));
    if book.is_stale() {
        head += ", stale";
    }
    say_to!(*out, "{head}");
    let levels = |side| book.levels(side).take(depth).map(StoredLevel::level).collect::<Vec<_>>();
    let (bids, asks) = (levels(Side::Buy), levels(Side::Sell));
    let orders = |_, level: &PriceLevel| level.orders.map(|n| n.to_string()).unwrap_or_default();
    ladder::print(out, [&bids, &asks], Side::BOTH.map(|side| book.depth(side)), orders)?;
    Ok(writeln!(out)?)
}
