//! Prints books and best prices of a tape, and what may be wrong with them.

use super::ListingArgs;
use super::render::{self, BestPriceRow};
use crate::commands::read_args;
use crate::commands::tape::utc;
use crate::output::{self, CommandFailure, CommandOutcome, Destination, grouped, list_known_names, note};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_book::{ALL_VENUES, BookChange, BookOptions, ListingId, QuoteFlags, TapeBooks};
use unitape_model::{InstrumentId, NameKind, Position, UnixNanos};
use unitape_query::NameFilter;
use unitape_query::address::{EventAddress, TapeStopPoint};
use unitape_query::follow::TapeRange;
use unitape_run::replay::{BookMoment, BookReplay, PointPresence, ReplayOutcome};
use unitape_tape::ReadOptions;

/// What is printed, and of which part of a tape.
pub struct PrinterOptions<'a> {
    /// Directory of the tape.
    pub tape_dir: &'a Path,
    pub listings: &'a ListingArgs,
    pub output: PrinterOutput,
    /// The point at which the tape is cut.
    pub stop_point: Option<TapeStopPoint>,
    pub follow: bool,
    pub json: bool,
    /// The file that gets the output, instead of stdout.
    pub file: Option<&'a Path>,
    pub read_options: ReadOptions,
}

/// What is printed.
#[derive(Clone, Copy, Debug)]
pub enum PrinterOutput {
    /// Books with this many levels a side, and with the orders in line if asked for.
    Books { depth: usize, orders: bool },
    /// Changes of best prices within a part of the tape, this many at most.
    BestPrices { range: TapeRange, limit: u64, csv: bool },
}

/// The printer of books: its options, and its destination.
pub struct BookPrinter<'a> {
    options: PrinterOptions<'a>,
    instruments: NameFilter,
    venues: NameFilter,
    destination: Destination,
    /// Books and prices printed.
    printed: u64,
}

impl<'a> BookPrinter<'a> {
    /// Prints what the options ask for, and notes on stderr what is wrong with it.
    pub fn run(options: PrinterOptions<'a>) -> output::Result {
        let stop = output::stop_flag()?;
        output::print_hot_notice(options.tape_dir);
        let mut replay = BookReplay::open(options.tape_dir, options.read_options, BookOptions::default())?;
        let out = Destination::open(options.file)?;
        let instruments = NameFilter::new(NameKind::Instrument, &options.listings.instruments.names());
        let venues = NameFilter::new(NameKind::Venue, &options.listings.venue);
        let mut printer = Self { options, instruments, venues, destination: out, printed: 0 };
        if let PrinterOutput::BestPrices { csv: true, .. } = printer.options.output {
            printer.destination.write_all(render::BBO_CSV_HEADER.as_bytes())?;
        }
        let stop_point = printer.options.stop_point;
        let presence = match stop_point.filter(|_| printer.shows_books()) {
            Some(stop_point) => replay.seek(stop_point)?,
            None => printer.follow_tape(&mut replay, &stop)?,
        };
        printer.update_ids(replay.books());
        let (tape, moment) = (replay.books(), replay.moment());
        if printer.shows_books() && !printer.options.follow {
            printer.print_books(tape, moment, &tape.books.listings().collect())?;
        }
        printer.destination.flush()?;
        if !printer.options.follow && printer.printed == 0 && !printer.has_reached_limit() {
            printer.explain_empty(tape, moment);
        }
        let is_there = stop_point.is_none_or(|stop_point| note_absent_point(stop_point, presence, &replay));
        let is_clean = printer.note_flaws(&replay)? && is_there;
        let outcome = match is_clean {
            true => output::outcome_after_rewinds(replay.rewind_count()),
            false => CommandOutcome::Flawed,
        };
        printer.destination.finish()?;
        read_args::finish(replay.reader(), replay.books().names.lost_names(), outcome)
    }

    fn shows_books(&self) -> bool {
        matches!(self.options.output, PrinterOutput::Books { .. })
    }

    /// Steps through the tape, to the stop point or the end of the range, or on until `stop`. Prints each change of a best
    /// price, or the changed books of a tape that is followed.
    fn follow_tape(
        &mut self,
        replay: &mut BookReplay,
        stop: &AtomicBool,
    ) -> Result<PointPresence, CommandFailure> {
        let (stop_point, follow) = (self.options.stop_point, self.options.follow);
        // Changes before this position were printed.
        let mut printed_to = Position(0);
        loop {
            if self.has_reached_limit() {
                return Ok(PointPresence::There);
            }
            let step = match stop_point {
                Some(stop_point) => replay.step_to(stop_point),
                None => replay.step(),
            };
            let step = match step {
                Ok(ReplayOutcome::AtEnd) => {
                    // Prints the current books; later ones are printed when they change again.
                    if self.shows_books() && follow {
                        self.update_ids(replay.books());
                        let changed_listings = replay.take_changed();
                        self.print_books(replay.books(), replay.moment(), &changed_listings)?;
                    }
                    self.destination.flush()?;
                    let (next, is_stopped) = (next_address(replay), stop.load(Ordering::Relaxed));
                    if !follow || is_stopped || self.is_over(next) {
                        let point = stop_point.unwrap_or(TapeStopPoint::Ordinal(replay.moment().seq));
                        return Ok(replay.presence(point, false));
                    }
                    replay.wait()
                }
                other => other,
            };
            match step {
                Ok(ReplayOutcome::Event) => {
                    if self.is_over(address(replay.moment())) {
                        return Ok(PointPresence::There);
                    }
                    if replay.moment().position >= printed_to && self.is_in_range(replay.moment()) {
                        self.update_ids(replay.books());
                        for change in replay.changes() {
                            self.print_change(replay.books(), replay.moment(), change)?;
                        }
                    }
                }
                Ok(ReplayOutcome::AtEnd) => {}
                Ok(ReplayOutcome::Reached) => {
                    let point = stop_point.map(|stop_point| replay.presence(stop_point, true));
                    return Ok(point.unwrap_or(PointPresence::There));
                }
                Ok(ReplayOutcome::Rewound { from, to }) => {
                    self.destination.flush()?;
                    output::print_rewound(from, to);
                    printed_to = to;
                }
                Err(e) => {
                    self.destination.flush()?;
                    return Err(e.into());
                }
            }
        }
    }

    /// Returns whether as many best prices were printed as `--limit` allows.
    fn has_reached_limit(&self) -> bool {
        matches!(self.options.output, PrinterOutput::BestPrices { limit, .. } if self.printed >= limit)
    }

    /// Returns whether the range ends before this place.
    fn is_over(&self, address: EventAddress) -> bool {
        matches!(self.options.output, PrinterOutput::BestPrices { range, .. } if range.is_over(address))
    }

    /// Returns whether changes of best prices at this event are printed.
    fn is_in_range(&self, moment: BookMoment) -> bool {
        let PrinterOutput::BestPrices { range, .. } = self.options.output else { return false };
        let is_time = range.times.is_none_or(|times| times.contains(UnixNanos(moment.ts)));
        is_time && range.is_reached_by(address(moment))
    }

    /// Returns the chosen listings.
    fn chosen_listings(&self, tape: &TapeBooks) -> Vec<ListingId> {
        let listings = tape.books.listings();
        listings.filter(|id| self.is_chosen(tape, *id, self.options.listings.includes_all_venues())).collect()
    }

    /// Learns the ids of the chosen names as far as the tape has defined them.
    fn update_ids(&mut self, tape: &TapeBooks) {
        self.instruments.update_ids(tape.names.dictionary());
        self.venues.update_ids(tape.names.dictionary());
    }

    /// Returns whether the listing has a chosen instrument, and a chosen venue unless any venue will do.
    fn is_chosen(&self, tape: &TapeBooks, id: ListingId, any_venue: bool) -> bool {
        let listing = tape.books.listing(id);
        self.instruments.has_id(listing.instrument().0)
            && (any_venue || self.venues.has_id(listing.venue().into()))
    }

    /// Prints the chosen ones of the changed books.
    fn print_books(
        &mut self,
        tape: &TapeBooks,
        moment: BookMoment,
        changed: &BTreeSet<ListingId>,
    ) -> Result<(), CommandFailure> {
        let PrinterOutput::Books { depth, orders } = self.options.output else { return Ok(()) };
        let choice = self.options.listings;
        let rows = render::BookRows { tape, moment, depth, orders };
        let mut instruments = BTreeSet::new();
        for id in self.chosen_listings(tape).into_iter().filter(|id| changed.contains(id)) {
            let listing = tape.books.listing(id);
            instruments.insert(listing.instrument());
            if !self.is_chosen(tape, id, false) {
                continue;
            }
            for book in listing.books().filter(|b| choice.basis.is_none_or(|basis| basis == b.basis())) {
                self.printed += 1;
                match self.options.json {
                    true => rows.json(&mut self.destination, listing, book)?,
                    false => rows.table(&mut self.destination, listing, book)?,
                }
            }
        }
        if choice.wants_all_venues() {
            let has_several = |id: &InstrumentId| tape.books.listings_of(*id).count() > 1;
            for instrument in instruments.into_iter().filter(has_several) {
                self.print_best_price(&BestPriceRow::for_all_venues(tape, moment, instrument))?;
            }
        }
        Ok(self.destination.flush()?)
    }

    /// Prints the best price of a venue, and over all venues, if this change moved it.
    fn print_change(
        &mut self,
        tape: &TapeBooks,
        moment: BookMoment,
        change: &BookChange,
    ) -> Result<(), CommandFailure> {
        let choice = self.options.listings;
        let listing = tape.books.listing(change.listing);
        if !self.is_chosen(tape, change.listing, true) {
            return Ok(());
        }
        let has_changed = match choice.basis {
            Some(basis) => change.top_changed && change.basis == Some(basis),
            None => change.best_changed,
        };
        if has_changed && self.is_chosen(tape, change.listing, false) {
            self.print_best_price(&BestPriceRow::for_venue(tape, moment, listing, choice.basis))?;
        }
        let has_several = || tape.books.listings_of(listing.instrument()).count() > 1;
        if change.consolidated_changed && choice.wants_all_venues() && has_several() {
            self.print_best_price(&BestPriceRow::for_all_venues(tape, moment, listing.instrument()))?;
        }
        Ok(())
    }

    fn print_best_price(&mut self, row: &BestPriceRow<'_>) -> Result<(), CommandFailure> {
        match self.options.output {
            PrinterOutput::BestPrices { limit, .. } if self.printed >= limit => return Ok(()),
            PrinterOutput::BestPrices { csv: true, .. } => row.csv(&mut self.destination)?,
            _ if self.options.json => row.json(&mut self.destination)?,
            _ => row.text(&mut self.destination)?,
        }
        self.printed += 1;
        Ok(())
    }

    /// Notes on stderr what is wrong with the chosen books. Returns whether nothing is.
    fn note_flaws(&mut self, replay: &BookReplay) -> Result<bool, CommandFailure> {
        let (tape, moment) = (replay.books(), replay.moment());
        let chosen = self.chosen_listings(tape);
        let faults: u64 = chosen.iter().map(|id| tape.books.faults(*id).total()).sum();
        if faults > 0 {
            note!("{} events said of these books what cannot be; see `faults`", grouped(faults));
        }
        let stale_books = |id: &ListingId| {
            let books = tape.books.listing(*id).books();
            books.filter(|b| b.marks().contains(QuoteFlags::STALE)).count() as u64
        };
        let stale: u64 = chosen.iter().map(stale_books).sum();
        if stale > 0 {
            note!("{} of these books are stale: something of their feed is missing", grouped(stale));
        }
        let is_partial = note_missing_part(replay);
        let refused = self.note_all_refused(tape, moment);
        let repeated = chosen.iter().filter(|id| tape.books.has_only_repeats(**id)).count() as u64;
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
        let warnings = warning_counters(tape);
        for (_, count, text) in &warnings {
            note!("{} {text}", grouped(*count));
        }
        if self.options.json && !warnings.is_empty() {
            render::warnings_json(&mut self.destination, &warnings)?;
            self.destination.flush()?;
        }
        let counters = tape.books.counters();
        let left_out = counters.unnamed_events + counters.no_room;
        Ok(faults + stale + left_out + accepted + refused + repeated == 0 && !is_partial)
    }

    /// Notes the messages in quarantine whose instruments have no book, and returns their number. A message that names no
    /// instrument counts only if there is nothing else on the tape.
    fn note_all_refused(&self, tape: &TapeBooks, moment: BookMoment) -> u64 {
        let choice = self.options.listings;
        let venue = match &choice.venue[..] {
            [venue] if venue != ALL_VENUES => Some(venue.as_bytes()),
            _ => None,
        };
        let wanted_names = self.instruments.wanted();
        let symbols =
            wanted_names.iter().map(|symbol| tape.losses_without_book(Some(symbol.as_bytes()), venue));
        let losses = match wanted_names.is_empty() {
            true => tape.losses_without_book(None, venue),
            false => symbols.sum(),
        };
        let refused = tape.books.counters().refused;
        let counted_refused = if refused == moment.seq { refused } else { 0 };
        if losses + counted_refused > 0 {
            note!(
                "{} messages in quarantine are of instruments without a book, or may be; see: unitape quarantine list {}",
                grouped(losses + counted_refused),
                self.options.tape_dir.display()
            );
        }
        losses + counted_refused
    }

    /// Notes why nothing was printed, and what the tape has.
    fn explain_empty(&self, tape: &TapeBooks, moment: BookMoment) {
        let choice = self.options.listings;
        let no_name = |kind, plural, names: &[String]| {
            let mut names = names.iter().filter(|name| *name != ALL_VENUES);
            let name = names.find(|name| tape.names.get(kind, name.as_bytes()).is_none())?;
            let all_names = (1..=tape.names.len(kind)).filter_map(|id| tape.names.name(kind, id));
            Some(format!(
                "the tape has no {} {name}; {}",
                kind.name(),
                list_known_names(name, plural, all_names)
            ))
        };
        let no_name = no_name(NameKind::Instrument, "instruments", self.instruments.wanted())
            .or_else(|| no_name(NameKind::Venue, "venues", &choice.venue));
        if let Some(reason) = no_name {
            note!("unitape: no book: {reason}");
            return;
        }
        let events = grouped(moment.seq);
        let counters = tape.books.counters();
        let books =
            tape.books.listings().map(|id| tape.books.listing(id).books().count() as u64).sum::<u64>();
        match books {
            0 if self.options.stop_point.is_some() => {
                note!(
                    "unitape: no book: none of the {events} events up to --at is an order, a level or a best price"
                );
            }
            0 if counters.bookless + counters.unnamed_events > 0 => {
                note!("unitape: no book: books cannot be made of the orders among the {events} events");
            }
            0 if counters.repeats > 0 => {
                let repeats = grouped(counters.repeats);
                note!(
                    "unitape: no book: of the {events} events {repeats} are of messages that may be there twice (`repeat`), and \
                     no other is an order, a level or a best price"
                );
            }
            0 => note!("unitape: no book: none of the {events} events is an order, a level or a best price"),
            _ => {
                let options = self.option_words();
                note!(
                    "unitape: no book with {options}: {events} events made {} books of others",
                    grouped(books)
                );
            }
        }
    }

    /// Returns the options of the selection as they are given.
    fn option_words(&self) -> String {
        let choice = self.options.listings;
        let mut options: Vec<String> = choice.instruments.words().collect();
        options.extend(choice.venue.iter().map(|venue| format!("--venue {venue}")));
        options.extend(choice.basis.map(|basis| format!("--basis {}", basis.name())));
        if let PrinterOutput::BestPrices { range, .. } = self.options.output {
            options.extend(range.from.map(|from| format!("--from {from}")));
            options.extend(range.to.map(|to| format!("--to {to}")));
            let times = range.times.map(|times| [("--since", times.since), ("--until", times.until)]);
            let times = times.into_iter().flatten().filter_map(|(option, ts)| Some((option, ts?)));
            options.extend(times.map(|(option, ts)| format!("{option} '{}'", utc(ts.0))));
        }
        options.join(" ")
    }
}

fn address(moment: BookMoment) -> EventAddress {
    EventAddress { seq: moment.seq, position: moment.position }
}

/// Returns the address of the event that comes next.
fn next_address(replay: &BookReplay) -> EventAddress {
    let replay_end = replay.end();
    EventAddress { seq: replay_end.seq + 1, ..replay_end }
}

/// Notes that a part of the tape is missing which books may need. Returns whether there is such a part.
fn note_missing_part(replay: &BookReplay) -> bool {
    if !replay.books().books.lacks_part() {
        return false;
    }
    let first_address = replay.first();
    match first_address.position {
        Position(0) => note!("a part of the tape is missing, so books may be missing as well"),
        _ => note!(
            "retention has removed what is before event {}: books may be missing, and those that are there lack orders",
            grouped(first_address.seq)
        ),
    }
    true
}

/// Notes that the tape lacks the point of `--at`. Returns whether the books are those of the point: a time after the last event is
/// no point of the tape, but the books of the end are those of that time.
fn note_absent_point(point: TapeStopPoint, presence: PointPresence, replay: &BookReplay) -> bool {
    let (first, end) = (replay.first(), replay.end());
    match presence {
        PointPresence::There => true,
        PointPresence::Removed => {
            let (seq, position) = (grouped(first.seq), first.position);
            note!(
                "unitape: --at {point}: retention has removed what is before event {seq}, at position @{position}"
            );
            false
        }
        PointPresence::BeyondEnd => {
            let (seq, position) = (grouped(end.seq), end.position);
            note!(
                "unitape: --at {point} is beyond the end: there are {seq} events, up to position @{position}"
            );
            matches!(point, TapeStopPoint::Time(_))
        }
    }
}

/// Returns the counters that concern no single book: word, count, and meaning.
fn warning_counters(tape: &TapeBooks) -> Vec<(&'static str, u64, &'static str)> {
    let c = tape.books.counters();
    let counters = [
        ("lost", c.lost, "gaps and messages in quarantine may concern books of their feeds"),
        ("unnamed", c.unnamed_events, "events of orders name no instrument or no order; no book has them"),
        ("bookless", c.bookless, "events of orders make no books: the mapping of their feed keeps no orders"),
        ("no_room", c.no_room, "events are of listings for which there is no room; no book has them"),
        ("repeats", c.repeats, "events are of messages that may be there twice (`repeat`); no book has them"),
        ("unknown_phase", c.unknown_phase, "session events are of a phase that books do not know"),
    ];
    counters.into_iter().filter(|(_, count, _)| *count > 0).collect()
}
