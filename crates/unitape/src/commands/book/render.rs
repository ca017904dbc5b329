//! Books and best prices, for people and as JSON.

use super::ladder;
use crate::commands::tape::utc;
use crate::output::{CommandFailure, csv_text, escape_line, grouped, say_to};
use serde_json::{Map, Value, json};
use std::io::Write;
use unitape_book::{ALL_VENUES, Basis, BookView, ListingView, OrderView, PriceLevel, QuoteFlags, TapeBooks};
use unitape_model::{InstrumentId, NameKind, Side};
use unitape_run::replay::BookMoment;

/// Returns the name of a venue or instrument, or an empty text if the feed gives no name.
fn name(tape: &TapeBooks, dict: NameKind, id: u32) -> &str {
    tape.names.name(dict, id).unwrap_or_default()
}

fn mark_names(marks: QuoteFlags) -> Vec<&'static str> {
    marks.names().collect()
}

fn write_json_line(out: &mut impl Write, value: &Value) -> Result<(), CommandFailure> {
    serde_json::to_writer(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// The books of a tape at a moment, and how much of them is written.
#[derive(Clone, Copy)]
pub struct BookRows<'a> {
    pub tape: &'a TapeBooks,
    pub moment: BookMoment,
    /// Levels of each side.
    pub depth: usize,
    /// With the orders in line at each level.
    pub orders: bool,
}

impl BookRows<'_> {
    /// Writes a book as a line of JSON.
    pub fn json(
        &self,
        out: &mut impl Write,
        listing: ListingView<'_>,
        book: BookView<'_>,
    ) -> Result<(), CommandFailure> {
        let (tape, moment) = (self.tape, self.moment);
        let side = |side: Side| -> Vec<Value> {
            let level = |level: PriceLevel| {
                let mut object = Map::new();
                object.insert("px".into(), level.px.to_string().into());
                object.insert("qty".into(), level.qty.to_string().into());
                if let Some(orders) = level.orders {
                    object.insert("orders".into(), orders.into());
                }
                if self.orders {
                    object.insert("queue".into(), book.queue(side, level.px).map(order_json).collect());
                }
                Value::Object(object)
            };
            book.levels(side).take(self.depth).map(level).collect()
        };
        let faults: Map<String, Value> =
            listing.faults().nonzero().map(|(fault, n)| (fault.name().to_owned(), n.into())).collect();
        let mut value = json!({
            "seq": moment.seq, "position": moment.position.0, "ts": book.ts().0,
            "instr": name(tape, NameKind::Instrument, listing.instrument().0),
            "venue": name(tape, NameKind::Venue, listing.venue().into()),
            "basis": book.basis().name(), "phase": listing.phase().name(), "marks": mark_names(book.marks()),
            "levels": [book.level_count(Side::Buy), book.level_count(Side::Sell)],
            "orders": book.order_count(), "bids": side(Side::Buy), "asks": side(Side::Sell), "faults": faults,
        });
        if self.orders {
            value["aside"] = book.unqueued_orders().map(order_json).collect();
        }
        write_json_line(out, &value)
    }

    /// Writes a book as a table.
    pub fn table(
        &self,
        out: &mut impl Write,
        listing: ListingView<'_>,
        book: BookView<'_>,
    ) -> Result<(), CommandFailure> {
        let tape = self.tape;
        let mut head = format!(
            "{} at {}, from {}",
            name(tape, NameKind::Instrument, listing.instrument().0),
            name(tape, NameKind::Venue, listing.venue().into()),
            book.basis().name(),
        );
        let phase = listing.phase().name().filter(|p| !matches!(*p, "auction" | "close" | "halt"));
        phase.into_iter().chain(book.marks().names()).for_each(|word| head += &format!(", {word}"));
        if book.basis() == Basis::Orders {
            head += &format!(", {} orders", grouped(book.order_count().into()));
        }
        for (fault, n) in listing.faults().nonzero() {
            head += &format!(", {} × {}", grouped(n), fault.name());
        }
        // A book that no event has changed has no time.
        let time_text = if book.ts().0 == 0 { "-".to_owned() } else { utc(book.ts().0) };
        say_to!(*out, "{head}, {time_text}");
        let depth = book.depth(self.depth);
        let orders = |side, level: &PriceLevel| match self.orders {
            true => {
                let line = book
                    .queue(side, level.px)
                    .map(|o| escape_line(&format!("{} {}", o.oid, o.left)).into_owned());
                line.collect::<Vec<_>>().join("\n")
            }
            false => level.orders.map(|n| n.to_string()).unwrap_or_default(),
        };
        ladder::print(
            out,
            [&depth.bids, &depth.asks],
            Side::BOTH.map(|side| book.level_count(side)),
            orders,
        )?;
        if self.orders {
            for order in book.unqueued_orders() {
                let px = order.px.map_or_else(|| "no price".to_owned(), |px| px.to_string());
                say_to!(*out, "aside: {} {} {} at {px}", order.oid, order.side.letter(), order.left);
            }
        }
        Ok(writeln!(out)?)
    }
}

/// Writes the counters over all books as the last line.
pub fn warnings_json(
    out: &mut impl Write,
    warnings: &[(&'static str, u64, &'static str)],
) -> Result<(), CommandFailure> {
    let counts: Map<String, Value> =
        warnings.iter().map(|(word, n, _)| ((*word).into(), (*n).into())).collect();
    write_json_line(out, &json!({ "warnings": counts }))
}

fn order_json(order: OrderView) -> Value {
    let mut value = json!({
        "oid": order.oid.to_string(), "left": order.left.to_string(), "done": order.executed_qty.to_string(),
    });
    if order.visible_qty != order.left {
        value["shown"] = order.visible_qty.to_string().into();
    }
    if !order.is_queued {
        value["side"] = order.side.letter().into();
        value["px"] = order.px.map(|px| px.to_string()).into();
    }
    value
}

/// A best price.
pub struct BestPriceRow<'a> {
    book_moment: BookMoment,
    venue: &'a str,
    instr: &'a str,
    basis: &'static str,
    sides: [Option<PriceLevel>; 2],
    /// Over all venues: who has the best bid and the best ask.
    venues: Option<[Vec<&'a str>; 2]>,
    marks: QuoteFlags,
}

impl<'a> BestPriceRow<'a> {
    /// Makes the row of a venue, from `basis` or from the basis of its best price.
    pub fn for_venue(
        tape: &'a TapeBooks,
        moment: BookMoment,
        listing: ListingView<'a>,
        basis: Option<Basis>,
    ) -> Self {
        let bbo = basis.map_or_else(|| listing.bbo(), |basis| listing.book(basis).bbo());
        Self {
            book_moment: moment,
            venue: name(tape, NameKind::Venue, listing.venue().into()),
            instr: name(tape, NameKind::Instrument, listing.instrument().0),
            basis: basis.or(listing.basis()).map_or("", Basis::name),
            sides: [bbo.bid, bbo.ask],
            venues: None,
            marks: bbo.marks,
        }
    }

    /// Makes the row over all venues of an instrument.
    pub fn for_all_venues(tape: &'a TapeBooks, moment: BookMoment, instrument: InstrumentId) -> Self {
        let best = tape.books.consolidated(instrument);
        let sides = [best.bid, best.ask].map(|side| side.map(|s| s.level));
        let has_side = |side: Side| {
            let best = sides[side as usize];
            let listings = tape.books.listings_of(instrument).map(|id| tape.books.listing(id));
            let mine = move |listing: &ListingView<'_>| {
                let bbo = listing.bbo();
                let mine = if side == Side::Buy { bbo.bid } else { bbo.ask };
                let takes_part = listing.is_continuous() && !bbo.marks.contains(QuoteFlags::STALE);
                takes_part && best.is_some() && mine.map(|l| l.px) == best.map(|l| l.px)
            };
            listings.filter(mine).map(|l| name(tape, NameKind::Venue, l.venue().into())).collect()
        };
        Self {
            book_moment: moment,
            venue: ALL_VENUES,
            instr: name(tape, NameKind::Instrument, instrument.0),
            basis: "venues",
            sides,
            venues: Some(Side::BOTH.map(has_side)),
            marks: best.marks,
        }
    }

    /// Writes a `bbo` event as JSON, with its basis, marks and venues.
    pub fn json(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let mut object = Map::new();
        let mut insert_field = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        insert_field("seq", self.book_moment.seq.into());
        insert_field("ts", self.book_moment.ts.into());
        insert_field("kind", "bbo".into());
        insert_field("venue", self.venue.into());
        insert_field("instr", self.instr.into());
        for (level, [px, qty]) in self.sides.into_iter().zip([["bid", "bid_qty"], ["ask", "ask_qty"]]) {
            let Some(level) = level else { continue };
            insert_field(px, level.px.to_string().into());
            // Zero means a quantity that the feed does not publish.
            if level.qty.mantissa() != 0 {
                insert_field(qty, level.qty.to_string().into());
            }
        }
        insert_field("basis", self.basis.into());
        insert_field("marks", mark_names(self.marks).into());
        if let Some([bid, ask]) = &self.venues {
            insert_field("bid_venues", bid.clone().into());
            insert_field("ask_venues", ask.clone().into());
        }
        insert_field("position", self.book_moment.position.0.into());
        write_json_line(out, &Value::Object(object))
    }

    /// Writes a line of CSV, with the columns of [`BBO_CSV_HEADER`].
    pub fn csv(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let quantity = |level: PriceLevel| Some(level.qty.to_string()).filter(|_| level.qty.mantissa() != 0);
        let side = |level: Option<PriceLevel>| {
            [level.map(|level| level.px.to_string()), level.and_then(quantity)].map(Option::unwrap_or_default)
        };
        let [[bid, bid_qty], [ask, ask_qty]] = self.sides.map(side);
        let venues = |side: Side| self.venues.as_ref().map(|venues| venues[side as usize].join("+"));
        let [bid_venues, ask_venues] = Side::BOTH.map(venues).map(Option::unwrap_or_default);
        let (bid_venues, ask_venues) = (csv_text(&bid_venues), csv_text(&ask_venues));
        let marks = mark_names(self.marks).join("+");
        let (seq, ts, position) = (self.book_moment.seq, self.book_moment.ts, self.book_moment.position.0);
        let (venue, instr) = (csv_text(self.venue), csv_text(self.instr));
        Ok(writeln!(
            out,
            "{seq},{ts},{venue},{instr},{bid},{bid_qty},{ask},{ask_qty},{},{marks},{bid_venues},{ask_venues},{position}",
            self.basis
        )?)
    }

    /// Writes a line for people.
    pub fn text(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let side = |level: Option<PriceLevel>| match level {
            Some(level) => (level.px.to_string(), level.qty.to_string()),
            None => ("-".to_owned(), String::new()),
        };
        let [(bid, bid_qty), (ask, ask_qty)] = self.sides.map(side);
        let mut line = format!(
            "{:>9}  {}  {:12} {:5} {bid_qty:>8} {bid:>10} | {ask:<10} {ask_qty:<8}",
            self.book_moment.seq,
            utc(self.book_moment.ts),
            self.instr,
            self.venue
        );
        if let Some([bid, ask]) = &self.venues {
            line += &format!(" {} | {}", bid.join("+"), ask.join("+"));
        }
        self.marks.names().for_each(|mark| line += &format!(" {mark}"));
        say_to!(*out, "{line}");
        Ok(())
    }
}

/// The header of best prices as CSV.
pub const BBO_CSV_HEADER: &str =
    "seq,ts,venue,instr,bid,bid_qty,ask,ask_qty,basis,marks,bid_venues,ask_venues,position\n";
