//! `unitape book`: order books and best prices from a tape, at its end, at a point of it, or as it grows.

mod derive;
pub(super) mod ladder;
mod packets;
mod picture;
mod render;

use super::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, list_known_names, note, say};
use render::BestPriceRow;
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_book::{ALL_VENUES, Basis, BookChange, BookOptions, ListingId, QuoteFlags, TapeBooks};
use unitape_model::{InstrumentId, NameKind, Position};
use unitape_run::address::TapeStopPoint;
use unitape_run::replay::{BookMoment, BookReplay, CheckpointStatus, PointPresence, ReplayOutcome};
use unitape_tape::ReadOptions;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape book tape
  unitape book tape --instr GB00S0000160 --venue XLON --depth 10
  unitape book tape --at 2026-03-02T09:30 --json
  unitape book tape --at @1048576 --orders      # with the orders in line
  unitape book tape --checkpoint-every 250000   # so that --at reads 250,000 events at most
  unitape book tape --verify-checkpoints
  unitape book tape --bbo --json | head         # each change of a best price
  unitape book tape --bbo --follow              # and on, as the tape grows
  unitape book tape --derive NBBO --tape-out nbbo   # the best prices over all venues, as a tape
  unitape book tape --picture book.svg --instr GB00S0000160 --venue XLON --since 2026-03-02T09:30 --until 2026-03-02T09:31
  unitape book day.pcap --handler venue.toml --group BUND --depth 10 --stats

--at cuts the tape: through an ordinal of events (`seq`) or a tape position with an @ before it, or before the first event
that is later than a time, in UTC or nanoseconds since 1970. Digits below 10^15 are an ordinal. Exit code 3 when the tape does
not have the event or position; the books are then those of its end. A time after the last event is reported alone.
Checkpoints (DIR/checkpoints) are derived: remove them at any time. One that does not belong to the tape as it is is not used. The venue NBBO is the best price over all venues that trade, without those
whose books are stale. --derive NBBO puts it onto a tape whenever its bid, ask or a quantity changes, also of an instrument with one
venue: events `bbo` with the time of the event that caused them, and `cause`, the position of that event. Events of a venue NBBO on
the input are ignored. The same command continues where it ended; another input is refused with exit code 3. A listing has a book for each basis on the tape: `orders` (order_new, order_amend, order_cancel,
exec), `levels` (level) and `bbo`; a best price is taken from the first of bbo, levels, orders that is not stale, or from
--basis. With --json a last line {\"warnings\": ...} counts what is in no book. With --handler, a mapping with a table [fast], the books are those that its channels make of the packets of a
capture, at its end; exit code 3 then also means gaps, stale books or unusable packets.
Exit code 3 when events said what cannot be (an unknown order, a negative rest): these are counted as faults; when a book
is stale: by a fault, because its feed says so, because a gap or a message in quarantine may concern it, or because a message that
may be there twice (`repeat`) was left out; when all messages of an instrument are in quarantine, or may be there twice; when retention has
removed the beginning of the tape, or a merge lacks a part of its inputs: books are stale then until their feed begins a new
day; when orders name no instrument; and when the tape is damaged or cannot be
checked against its checksums: then no book is printed, or with --skip-damage the books without what is lost.")]
pub struct BookArgs {
    /// Directory of the tape, or with --handler a capture
    dir: PathBuf,
    /// Only this instrument, by its name on the tape; with --handler by its id or symbol
    #[arg(long, value_name = "X")]
    instr: Option<String>,
    /// Make the books of packets by this configuration of a FAST handler
    #[arg(long, value_name = "CONFIG", conflicts_with_all = ["venue", "at", "bbo", "basis", "orders", "follow"])]
    handler: Option<PathBuf>,
    /// Only this group of products
    #[arg(long, value_name = "G", requires = "handler", conflicts_with = "instr")]
    group: Option<String>,
    /// The file has packets with four bytes of length before each, of this channel
    #[arg(long, value_name = "NAME", requires = "handler")]
    channel: Option<String>,
    /// How the lines of each channel did, too: packets, copies, what was missing, late, damaged
    #[arg(long, requires = "handler")]
    stats: bool,
    /// Only this venue; NBBO is the best price over all of them
    #[arg(long, value_name = "V")]
    venue: Option<String>,
    /// Levels of each side
    #[arg(long, value_name = "N", default_value_t = 5)]
    depth: usize,
    /// Up to here: ordinal, @position, or time
    #[arg(long, value_name = "POSITION|TIME", conflicts_with = "follow")]
    at: Option<String>,
    /// Write a checkpoint of the books beside the tape after each N events
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "handler"])]
    checkpoint_every: Option<NonZeroU64>,
    /// Compare the checkpoints beside the tape with its books, instead of printing these
    #[arg(long, conflicts_with_all = ["at", "follow", "bbo", "handler", "checkpoint_every"])]
    verify_checkpoints: bool,
    /// Each change of a best price, instead of the books
    #[arg(long)]
    bbo: bool,
    /// Put the best prices over all venues onto a tape, instead of printing books
    #[arg(long, value_name = "NBBO", value_parser = [ALL_VENUES], requires = "tape_out",
          conflicts_with_all = ["handler", "instr", "venue", "at", "checkpoint_every", "verify_checkpoints", "bbo", "basis", "orders"])]
    derive: Option<String>,
    /// Directory of the tape that --derive makes or continues
    #[arg(long, value_name = "DIR", requires = "derive")]
    tape_out: Option<PathBuf>,
    /// Draw the book over time: levels, best prices, trades and orders; JSON where FILE ends in .json
    #[arg(long, value_name = "FILE.svg", requires = "instr", requires = "venue", requires = "since", requires = "until",
          conflicts_with_all = ["handler", "at", "checkpoint_every", "verify_checkpoints", "bbo", "derive", "basis", "orders",
          "follow", "json"])]
    picture: Option<PathBuf>,
    /// First time of the picture, in UTC, or nanoseconds since 1970
    #[arg(long, value_name = "TIME", requires = "picture", allow_hyphen_values = true)]
    since: Option<String>,
    /// The picture ends before this time
    #[arg(long, value_name = "TIME", requires = "picture", allow_hyphen_values = true)]
    until: Option<String>,
    /// Draw only the orders of this owner or trader; may be repeated
    #[arg(long, value_name = "NAME", requires = "picture")]
    party: Vec<String>,
    /// Only books of this basis
    #[arg(long, value_name = "BASIS", value_parser = basis)]
    basis: Option<Basis>,
    /// The orders in line at each level, too
    #[arg(long, conflicts_with = "bbo")]
    orders: bool,
    /// Follow the tape as it grows, until stopped
    #[arg(long, short)]
    follow: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

fn basis(text: &str) -> Result<Basis, String> {
    let names = Basis::ALL.map(Basis::name);
    let found = Basis::ALL.into_iter().find(|b| b.name() == text);
    found.ok_or_else(|| format!("there are: {}", names.join(", ")))
}

fn at(text: &str) -> Result<TapeStopPoint, CommandFailure> {
    TapeStopPoint::parse(text).map_err(|e| CommandFailure::Usage(format!("--at {e}")))
}

/// Runs the command.
pub fn run(args: BookArgs) -> output::Result {
    if let Some(config) = &args.handler {
        return packets::run(&args, config);
    }
    if let Some(out) = &args.tape_out {
        return derive::run(&args, out);
    }
    if let Some(file) = &args.picture {
        return picture::run(&args, file);
    }
    let at = args.at.as_deref().map(at).transpose()?;
    let stop = output::stop_flag()?;
    output::print_hot_notice(&args.dir);
    if args.verify_checkpoints {
        return verify_checkpoints(&args);
    }
    let mut replay = BookReplay::open(&args.dir, args.read.options(), BookOptions::default())?;
    if args.checkpoint_every.is_some() && args.read.options() != ReadOptions::default() {
        let what = "--checkpoint-every keeps books of a tape that is compared with its checksums and read whole: leave out \
                    --no-verify and --skip-damage";
        return Err(CommandFailure::Usage(what.to_owned()));
    }
    if let Some(every) = args.checkpoint_every {
        replay.write_checkpoints(every);
    }
    let mut view = BookPrinter { args: &args, out: output::stdout(), printed: 0 };
    // All of the tape is read from the last checkpoint on, too.
    let end = args.checkpoint_every.map(|_| TapeStopPoint::Ordinal(u64::MAX));
    let presence = match at.or(end).filter(|_| !args.bbo) {
        Some(at) => replay.seek(at)?,
        None => view.run(&mut replay, at, &stop)?,
    };
    let written = replay.checkpoints_written();
    if args.checkpoint_every.is_some() {
        note!("unitape: {} checkpoints written, {}", grouped(written.count), output::bytes(written.bytes));
    }
    let (tape, here) = (replay.books(), replay.moment());
    if !args.follow && !args.bbo {
        view.books(tape, here, &tape.books.listings().collect())?;
    }
    view.out.flush()?;
    if !args.follow && view.printed == 0 {
        explain(&args, tape, here);
    }
    let is_there = at.is_none_or(|at| is_there(at, presence, &replay));
    let faults: u64 = view.wanted(tape).map(|id| tape.books.faults(id).total()).sum();
    if faults > 0 {
        note!("{} events said of these books what cannot be; see `faults`", grouped(faults));
    }
    let marked =
        |id| tape.books.listing(id).books().filter(|b| b.marks().contains(QuoteFlags::STALE)).count() as u64;
    let stale: u64 = view.wanted(tape).map(marked).sum();
    if stale > 0 {
        note!("{} of these books are stale: something of their feed is missing", grouped(stale));
    }
    let is_partial = note_missing_part(&replay);
    let refused = note_all_refused(&args, tape, here);
    let repeated = view.wanted(tape).filter(|id| tape.books.has_only_repeats(*id)).count() as u64;
    if repeated > 0 {
        note!(
            "{} listings have no book: all events since their last clear are of messages that may be there twice (`repeat`)",
            grouped(repeated)
        );
    }
    let accepted = replay.flaws().accepted.len() as u64 + replay.flaws().unverified;
    if accepted > 0 {
        note!("a repair accepted parts of the tape without a check; see: unitape tape verify");
    }
    let warnings = warnings(tape);
    for (_, count, what) in &warnings {
        note!("{} {what}", grouped(*count));
    }
    if args.json && !warnings.is_empty() {
        render::warnings_json(&mut view.out, &warnings)?;
        view.out.flush()?;
    }
    let counters = tape.books.counters();
    let left_out = counters.unnamed + counters.no_room;
    let done = if faults + stale + left_out + accepted + refused + repeated > 0 || !is_there || is_partial {
        CommandOutcome::Flawed
    } else {
        output::outcome_after_rewinds(replay.rewinds())
    };
    read_args::finish(replay.reader(), tape.names.lost_names(), done)
}

/// Returns how many losses are of instruments of which there is no book, and says so. A message that names no instrument may be of
/// any: it counts where there is nothing else.
fn note_all_refused(args: &BookArgs, tape: &TapeBooks, here: BookMoment) -> u64 {
    let venue = args.venue.as_deref().filter(|venue| *venue != ALL_VENUES);
    let named = tape.losses_without_book(args.instr.as_deref().map(str::as_bytes), venue.map(str::as_bytes));
    let refused = tape.books.counters().refused;
    let lost = if refused == here.seq { refused } else { 0 };
    if named + lost > 0 {
        note!(
            "{} messages in quarantine are of instruments without a book, or may be; see: unitape quarantine list {}",
            grouped(named + lost),
            args.dir.display()
        );
    }
    named + lost
}

/// Returns whether a part of the tape is missing, which books may need, and says so.
fn note_missing_part(replay: &BookReplay) -> bool {
    if !replay.books().books.lacks_part() {
        return false;
    }
    let first = replay.first();
    match first.position {
        Position(0) => note!("a part of the tape is missing, so books may be missing as well"),
        _ => note!(
            "retention has removed what is before event {}: books may be missing, and those that are there lack orders",
            grouped(first.seq)
        ),
    }
    true
}

/// Prints whether each checkpoint is what a replay of the tape gives.
fn verify_checkpoints(args: &BookArgs) -> output::Result {
    let all = BookReplay::verify_checkpoints(&args.dir, args.read.options(), BookOptions::default())?;
    if all.is_empty() {
        note!("unitape: no checkpoints; see: unitape book --checkpoint-every");
    }
    let mut done = CommandOutcome::Clean;
    for (path, status) in all {
        let word = match status {
            CheckpointStatus::Good => "good",
            CheckpointStatus::Outdated => "outdated",
            CheckpointStatus::Wrong => "wrong",
        };
        if status == CheckpointStatus::Wrong {
            done = CommandOutcome::Flawed;
        }
        match args.json {
            true => output::print_json(&serde_json::json!({ "checkpoint": path, "status": word }))?,
            false => say!("{word:8}  {}", path.display()),
        }
    }
    Ok(done)
}

/// Whether the tape has the point of `--at`, and says so if not. A time after the last event is no such point: nothing was
/// later yet, and the books are those of that time.
fn is_there(at: TapeStopPoint, presence: PointPresence, replay: &BookReplay) -> bool {
    let (first, end) = (replay.first(), replay.end());
    match presence {
        PointPresence::There => true,
        PointPresence::Removed => {
            let (seq, position) = (grouped(first.seq), first.position);
            note!(
                "unitape: --at {at}: retention has removed what is before event {seq}, at position @{position}"
            );
            false
        }
        PointPresence::BeyondEnd => {
            let (seq, position) = (grouped(end.seq), end.position);
            note!("unitape: --at {at} is beyond the end: there are {seq} events, up to position @{position}");
            matches!(at, TapeStopPoint::Time(_))
        }
    }
}

/// The counters over all books that the books themselves lack: word, count, and meaning.
fn warnings(tape: &TapeBooks) -> Vec<(&'static str, u64, &'static str)> {
    let c = tape.books.counters();
    let all = [
        ("lost", c.lost, "gaps and messages in quarantine may concern books of their feeds"),
        ("unnamed", c.unnamed, "events of orders name no instrument or no order; no book has them"),
        ("bookless", c.bookless, "events of orders make no books: the mapping of their feed keeps no orders"),
        ("no_room", c.no_room, "events are of listings for which there is no room; no book has them"),
        ("repeats", c.repeats, "events are of messages that may be there twice (`repeat`); no book has them"),
        ("unknown_phase", c.unknown_phase, "session events are of a phase that books do not know"),
    ];
    all.into_iter().filter(|(_, count, _)| *count > 0).collect()
}

/// Says why nothing was printed, and what there is.
fn explain(args: &BookArgs, tape: &TapeBooks, here: BookMoment) {
    let asked = [
        (NameKind::Instrument, "instruments", args.instr.as_deref()),
        (NameKind::Venue, "venues", args.venue.as_deref().filter(|v| *v != ALL_VENUES)),
    ];
    for (dict, plural, name) in asked {
        let Some(name) = name.filter(|n| tape.names.get(dict, n.as_bytes()).is_none()) else { continue };
        let all = (1..=tape.names.len(dict)).filter_map(|id| tape.names.name(dict, id));
        note!(
            "unitape: no book: the tape has no {} {name}; {}",
            dict.name(),
            list_known_names(name, plural, all)
        );
        return;
    }
    let events = grouped(here.seq);
    let books = tape.books.listings().map(|id| tape.books.listing(id).books().count() as u64).sum::<u64>();
    match books {
        0 if args.at.is_some() => {
            note!(
                "unitape: no book: none of the {events} events up to --at is an order, a level or a best price"
            );
        }
        0 if tape.books.counters().bookless + tape.books.counters().unnamed > 0 => {
            note!("unitape: no book: books cannot be made of the orders among the {events} events");
        }
        0 if tape.books.counters().repeats > 0 => {
            let repeats = grouped(tape.books.counters().repeats);
            note!(
                "unitape: no book: of the {events} events {repeats} are of messages that may be there twice (`repeat`), and no \
                 other is an order, a level or a best price"
            );
        }
        0 => note!("unitape: no book: none of the {events} events is an order, a level or a best price"),
        _ => {
            let mut options = Vec::new();
            options.extend(args.instr.as_ref().map(|instr| format!("--instr {instr}")));
            options.extend(args.venue.as_ref().map(|venue| format!("--venue {venue}")));
            options.extend(args.basis.map(|basis| format!("--basis {}", basis.name())));
            options.extend(args.bbo.then(|| "--bbo".to_owned()));
            let options = options.join(" ");
            note!("unitape: no book with {options}: {events} events made {} books of others", grouped(books));
        }
    }
}

/// The printer of books: its options, and its destination.
struct BookPrinter<'a, W> {
    args: &'a BookArgs,
    out: W,
    /// Books and prices printed.
    printed: u64,
}

impl<W: Write> BookPrinter<'_, W> {
    /// The listings that were asked for.
    fn wanted<'t>(&self, tape: &'t TapeBooks) -> impl Iterator<Item = ListingId> + use<'t, '_, W> {
        let (instr, venue) = (self.args.instr.as_deref(), self.args.venue.as_deref());
        tape.books.listings().filter(move |id| {
            let listing = tape.books.listing(*id);
            let named = |dict, id, name: Option<&str>| {
                name.is_none_or(|name| tape.names.get(dict, name.as_bytes()) == Some(id))
            };
            named(NameKind::Instrument, listing.instrument().0, instr)
                && (venue == Some(ALL_VENUES) || named(NameKind::Venue, listing.venue().into(), venue))
        })
    }

    /// Steps through the tape, to `at` or to its end, or on until `stop`; prints each change of a best price, or with
    /// `--follow` the books that changed.
    fn run(
        &mut self,
        replay: &mut BookReplay,
        at: Option<TapeStopPoint>,
        stop: &AtomicBool,
    ) -> Result<PointPresence, CommandFailure> {
        // Changes before this were printed.
        let mut quiet_to = Position(0);
        loop {
            let step = match at {
                Some(at) => replay.step_to(at),
                None => replay.step(),
            };
            let step = match step {
                Ok(ReplayOutcome::AtEnd) => {
                    // Prints the current books; later ones are printed once more as they come.
                    if !self.args.bbo && self.args.follow {
                        let changed = replay.take_changed();
                        self.books(replay.books(), replay.moment(), &changed)?;
                    }
                    self.out.flush()?;
                    if !self.args.follow || stop.load(Ordering::Relaxed) {
                        let point = at.unwrap_or(TapeStopPoint::Ordinal(replay.moment().seq));
                        return Ok(replay.presence(point, false));
                    }
                    replay.wait()
                }
                other => other,
            };
            match step {
                Ok(ReplayOutcome::Event) if self.args.bbo && replay.moment().position >= quiet_to => {
                    for n in 0..replay.changes().len() {
                        self.change(replay.books(), replay.moment(), &replay.changes()[n])?;
                    }
                }
                Ok(ReplayOutcome::Event | ReplayOutcome::AtEnd) => {}
                Ok(ReplayOutcome::Reached) => {
                    return Ok(at.map_or(PointPresence::There, |at| replay.presence(at, true)));
                }
                Ok(ReplayOutcome::Rewound { from, to }) => {
                    self.out.flush()?;
                    output::print_rewound(from, to);
                    quiet_to = to;
                }
                Err(e) => {
                    self.out.flush()?;
                    return Err(e.into());
                }
            }
        }
    }

    /// Prints those of the books that were asked for.
    fn books(
        &mut self,
        tape: &TapeBooks,
        here: BookMoment,
        changed: &BTreeSet<ListingId>,
    ) -> Result<(), CommandFailure> {
        let wanted: Vec<ListingId> = self.wanted(tape).filter(|id| changed.contains(id)).collect();
        let over_all = |v: &str| v == ALL_VENUES;
        let mut instruments = BTreeSet::new();
        for id in wanted {
            let listing = tape.books.listing(id);
            instruments.insert(listing.instrument());
            if self.args.venue.as_deref().is_some_and(over_all) {
                continue;
            }
            for book in listing.books().filter(|b| self.args.basis.is_none_or(|basis| basis == b.basis())) {
                self.printed += 1;
                if self.args.json {
                    render::book_json(&mut self.out, tape, here, listing, book, self.args)?;
                } else {
                    render::book_table(&mut self.out, tape, listing, book, self.args)?;
                }
            }
        }
        if self.args.venue.as_deref().is_none_or(over_all) && self.args.basis.is_none() {
            let several = |id: &InstrumentId| tape.books.listings_of(*id).count() > 1;
            for instrument in instruments.into_iter().filter(several) {
                let row = BestPriceRow::for_all_venues(tape, here, instrument);
                self.row(&row)?;
            }
        }
        Ok(self.out.flush()?)
    }

    /// Prints a best price that has changed.
    fn change(
        &mut self,
        tape: &TapeBooks,
        here: BookMoment,
        change: &BookChange,
    ) -> Result<(), CommandFailure> {
        let args = self.args;
        let listing = tape.books.listing(change.listing);
        let is = |name: &Option<String>, dict, id| match name {
            Some(name) => tape.names.get(dict, name.as_bytes()) == Some(id),
            None => true,
        };
        if !is(&args.instr, NameKind::Instrument, listing.instrument().0) {
            return Ok(());
        }
        let changed = match args.basis {
            Some(basis) => change.top && change.basis == Some(basis),
            None => change.best,
        };
        if changed && is(&args.venue, NameKind::Venue, listing.venue().into()) {
            let row = BestPriceRow::for_venue(tape, here, listing, args.basis);
            self.row(&row)?;
        }
        let over_all = args.venue.as_deref().is_none_or(|v| v == ALL_VENUES) && args.basis.is_none();
        if change.consolidated && over_all && tape.books.listings_of(listing.instrument()).count() > 1 {
            let row = BestPriceRow::for_all_venues(tape, here, listing.instrument());
            self.row(&row)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &BestPriceRow<'_>) -> Result<(), CommandFailure> {
        self.printed += 1;
        if self.args.json { row.json(&mut self.out) } else { row.text(&mut self.out) }
    }
}
