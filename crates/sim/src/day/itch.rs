//! The book of one venue as ITCH 5.0 messages, for the mapping `nasdaq-itch50`.
//!
//! ```text
//!  events of the simulator                        messages
//!  New, aggressive: Exec Exec … ─▶ E for each resting order that was hit, then A for what is left
//!  Amend   less at the same price ─▶ X            any other ─▶ U; if it is matched at once D, E …, A
//!  auction Exec Exec Trade        ─▶ C C (not printable) Q
//! ```
//!
//! ITCH shows orders that rest: a new order is published only after it was matched with the resting ones. So an event
//! is held until it is known what follows from it. Stops, market orders and immediate orders never appear. Firms that
//! act for themselves sign their orders (`F`). References count from 1.

use super::event::{DayEvent, DayEventBody, LiquidityFlag, MarketPhase, OrderTicket};
use super::world::SimulatedMarket;
use crate::error::Error;
use rustc_hash::FxHashMap;
use unitape_codec::fixed::midnight;
use unitape_codec::itch::DAY_NANOS;
use unitape_codec::itch::{ItchMessageHeader, ItchSampleValue, write};
use unitape_model::{InstrumentId, Side};

/// Writes the messages of one venue's day.
#[derive(Debug)]
pub struct ItchDayWriter {
    venue: usize,
    /// Midnight in New York, nanoseconds since the epoch.
    midnight_ns: u64,
    date: (i64, i64, i64),
    /// Orders that live, shown or not, by the simulator's number.
    orders: FxHashMap<u64, ItchOrder>,
    /// The newest order, which may still be matched.
    held_order: Option<HeldOrder>,
    next_reference: u64,
    stage: ItchFileStage,
    now: u64,
}

/// An order that lives.
#[derive(Debug, Clone, Copy)]
struct ItchOrder {
    /// 0 while it is not shown.
    reference: u64,
    px: i64,
    left: i64,
    filled_qty: i64,
}

/// A new order, or new terms.
#[derive(Debug, Clone, Copy)]
struct HeldOrder {
    terms: OrderTicket,
    left: i64,
    filled_qty: i64,
    /// The order before the change, while it is still shown.
    before: Option<ItchOrder>,
    ts: u64,
}

/// One side of a match.
#[derive(Clone, Copy, Debug)]
struct ItchExecution {
    px: i64,
    qty: i64,
    match_id: u64,
    liq: LiquidityFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItchFileStage {
    Not,
    Directory,
    Day,
}

impl ItchDayWriter {
    /// Makes a writer for a venue of a day that begins at `start_ns` and lasts `span_ns`.
    ///
    /// # Errors
    /// Fails if the day in New York ends earlier: ITCH counts time from midnight.
    pub fn new(venue: usize, start_ns: u64, span_ns: u64) -> Result<ItchDayWriter, Error> {
        let out_of_time = || Error::OutOfTime { start_ns, span_ns };
        let days = start_ns / DAY_NANOS;
        for day in [days, days.saturating_sub(1)] {
            let (year, month, day) = crate::wire::civil(day);
            let date = (year as i64, month as i64, day as i64);
            let local_midnight = midnight(date.0, date.1, date.2, "America/New_York").ok().flatten();
            let Some(midnight_ns) =
                local_midnight.and_then(|m| u64::try_from(m).ok()).filter(|m| *m <= start_ns)
            else {
                continue;
            };
            if start_ns - midnight_ns + span_ns >= DAY_NANOS {
                return Err(out_of_time());
            }
            return Ok(ItchDayWriter {
                venue,
                midnight_ns,
                date,
                orders: FxHashMap::default(),
                held_order: None,
                next_reference: 0,
                stage: ItchFileStage::Not,
                now: start_ns,
            });
        }
        Err(out_of_time())
    }

    /// Returns the session date for a file name: `20260302`.
    #[must_use]
    pub fn date(&self) -> String {
        format!("{:04}{:02}{:02}", self.date.0, self.date.1, self.date.2)
    }

    /// Appends the messages of an event. Holds an order that may still be matched.
    pub fn write(&mut self, world: &SimulatedMarket, event: &DayEvent, out: &mut Vec<u8>) {
        self.now = event.ts;
        self.begin(ItchFileStage::Directory, out);
        if let DayEventBody::Ref { instr } = event.body {
            return self.directory(world, instr, out);
        }
        let Some(book) = book_of(&event.body).filter(|b| world.venue_of(*b) == self.venue) else { return };
        self.begin(ItchFileStage::Day, out);
        match event.body {
            DayEventBody::Exec { .. } | DayEventBody::Trade { .. } => {}
            DayEventBody::Cancel(t) if self.held_order.is_some_and(|h| h.terms.oid == t.oid) => {
                return self.give_up(world, out);
            }
            _ => self.flush(world, out),
        }
        match event.body {
            DayEventBody::New(terms) => {
                self.held_order =
                    Some(HeldOrder { terms, left: terms.qty, filled_qty: 0, before: None, ts: event.ts });
            }
            DayEventBody::Amend(terms) => {
                let before = self.orders.get(&terms.oid).copied();
                let filled_qty = before.map_or(0, |k| k.filled_qty);
                let before = before.filter(|k| k.reference != 0);
                self.held_order =
                    Some(HeldOrder { terms, left: terms.qty - filled_qty, filled_qty, before, ts: event.ts });
            }
            DayEventBody::Cancel(terms) => {
                if let Some(shown_order) = self.orders.remove(&terms.oid).filter(|k| k.reference != 0) {
                    self.write_message(
                        world,
                        b'D',
                        book,
                        &[ItchSampleValue::Number(shown_order.reference)],
                        out,
                    );
                }
            }
            DayEventBody::Exec { order, px, qty, match_id, liq, .. } => {
                self.exec(world, &order, ItchExecution { px, qty, match_id, liq }, out)
            }
            DayEventBody::Trade { px, qty, match_id, auction: true, .. } => {
                let symbol = world.listed(book).symbol.as_bytes();
                let price = price(world, book, px);
                let values = [
                    number(qty),
                    ItchSampleValue::Text(symbol),
                    price,
                    ItchSampleValue::Number(match_id),
                    ItchSampleValue::Text(b"O"),
                ];
                self.write_message(world, b'Q', book, &values, out);
            }
            DayEventBody::Session { phase, .. } => {
                let state: &[u8] = match phase {
                    MarketPhase::Auction => b"Q",
                    MarketPhase::Open => b"T",
                    MarketPhase::Halt => b"H",
                    MarketPhase::Pre | MarketPhase::Close => return,
                };
                let symbol = ItchSampleValue::Text(world.listed(book).symbol.as_bytes());
                self.write_message(
                    world,
                    b'H',
                    book,
                    &[
                        symbol,
                        ItchSampleValue::Text(state),
                        ItchSampleValue::Text(b""),
                        ItchSampleValue::Text(b""),
                    ],
                    out,
                );
            }
            _ => {}
        }
    }

    /// Writes the held order: nothing more follows from it. After a step of the simulator the messages then show the
    /// orders in its books.
    pub fn flush(&mut self, world: &SimulatedMarket, out: &mut Vec<u8>) {
        let Some(held_order) = self.held_order.take() else { return };
        let HeldOrder { terms, left, filled_qty, before, ts } = held_order;
        let is_shown = !terms.kind.is_waiting_stop() && terms.tif == super::TimeInForce::Day;
        let (oid, book) = (terms.oid, terms.book);
        let now = std::mem::replace(&mut self.now, ts);
        match (terms.px, before) {
            _ if left <= 0 => _ = self.orders.remove(&oid),
            (Some(px), Some(old)) if px == old.px && left <= old.left => {
                if left < old.left {
                    let values = [ItchSampleValue::Number(old.reference), number(old.left - left)];
                    self.write_message(world, b'X', book, &values, out);
                }
                self.orders.insert(oid, ItchOrder { left, ..old });
            }
            (Some(px), Some(old)) if is_shown => {
                let reference = self.reference();
                let values = [
                    ItchSampleValue::Number(old.reference),
                    ItchSampleValue::Number(reference),
                    number(left),
                    price(world, book, px),
                ];
                self.write_message(world, b'U', book, &values, out);
                self.orders.insert(oid, ItchOrder { reference, px, left, filled_qty });
            }
            (Some(px), None) if is_shown => {
                let reference = self.reference();
                let side: &[u8] = if terms.side == Side::Buy { b"B" } else { b"S" };
                let symbol = ItchSampleValue::Text(world.listed(book).symbol.as_bytes());
                let values = [
                    ItchSampleValue::Number(reference),
                    ItchSampleValue::Text(side),
                    number(left),
                    symbol,
                    price(world, book, px),
                ];
                if world.members[terms.member as usize].agency {
                    self.write_message(world, b'A', book, &values, out);
                } else {
                    let [a, b, c, d, e] = values;
                    let firm = ItchSampleValue::Text(world.firm_name(terms.member).as_bytes());
                    self.write_message(world, b'F', book, &[a, b, c, d, e, firm], out);
                }
                self.orders.insert(oid, ItchOrder { reference, px, left, filled_qty });
            }
            (px, _) => {
                _ = self.orders.insert(oid, ItchOrder { reference: 0, px: px.unwrap_or(0), left, filled_qty })
            }
        }
        self.now = now;
    }

    /// Ends the day.
    pub fn end(&mut self, world: &SimulatedMarket, out: &mut Vec<u8>) {
        self.begin(ItchFileStage::Day, out);
        self.flush(world, out);
        for event in [b"M", b"E", b"C"] {
            self.system(event, out);
        }
    }

    /// Writes one side of a match.
    fn exec(
        &mut self,
        world: &SimulatedMarket,
        order: &OrderTicket,
        execution: ItchExecution,
        out: &mut Vec<u8>,
    ) {
        let ItchExecution { px, qty, match_id, liq } = execution;
        if let Some(held_order) = self.held_order.as_mut().filter(|h| h.terms.oid == order.oid) {
            (held_order.left, held_order.filled_qty) = (held_order.left - qty, held_order.filled_qty + qty);
            // Its earlier state is in nobody's way any more.
            if let Some(old) = held_order.before.take() {
                self.write_message(world, b'D', order.book, &[ItchSampleValue::Number(old.reference)], out);
            }
            return;
        }
        let Some(live_order) = self.orders.get_mut(&order.oid) else { return };
        (live_order.left, live_order.filled_qty) = (live_order.left - qty, live_order.filled_qty + qty);
        let live_order = *live_order;
        if live_order.left <= 0 {
            self.orders.remove(&order.oid);
        }
        if live_order.reference == 0 {
            return;
        }
        let (reference, match_number) =
            (ItchSampleValue::Number(live_order.reference), ItchSampleValue::Number(match_id));
        if liq == LiquidityFlag::Auction || px != live_order.px {
            let printable: &[u8] = if liq == LiquidityFlag::Auction { b"N" } else { b"Y" };
            let values = [
                reference,
                number(qty),
                match_number,
                ItchSampleValue::Text(printable),
                price(world, order.book, px),
            ];
            self.write_message(world, b'C', order.book, &values, out);
        } else {
            self.write_message(world, b'E', order.book, &[reference, number(qty), match_number], out);
        }
    }

    /// Cancels the held order: it never was in the book, or is no longer.
    fn give_up(&mut self, world: &SimulatedMarket, out: &mut Vec<u8>) {
        let Some(held_order) = self.held_order.take() else { return };
        self.orders.remove(&held_order.terms.oid);
        if let Some(old) = held_order.before {
            self.write_message(
                world,
                b'D',
                held_order.terms.book,
                &[ItchSampleValue::Number(old.reference)],
                out,
            );
        }
    }

    fn begin(&mut self, upto: ItchFileStage, out: &mut Vec<u8>) {
        if self.stage == ItchFileStage::Not {
            self.system(b"O", out);
            self.stage = ItchFileStage::Directory;
        }
        if self.stage == ItchFileStage::Directory && upto == ItchFileStage::Day {
            self.system(b"S", out);
            self.system(b"Q", out);
            self.stage = ItchFileStage::Day;
        }
    }

    fn directory(&self, world: &SimulatedMarket, instr: InstrumentId, out: &mut Vec<u8>) {
        let text = ItchSampleValue::Text;
        let values = [
            text(world.instruments[instr.index()].symbol.as_bytes()),
            text(b"Q"),
            text(b"N"),
            ItchSampleValue::Number(100),
            text(b"N"),
            text(b"C"),
            text(b"Z"),
            text(b"P"),
            text(b"N"),
            text(b"N"),
            text(if world.instruments[instr.index()].tier == 1 { b"1" } else { b"2" }),
            text(b"N"),
            ItchSampleValue::Number(0),
            text(b"N"),
        ];
        write(out, b'R', self.header(locate(instr)), &values);
    }

    fn system(&self, event: &[u8], out: &mut Vec<u8>) {
        write(out, b'S', self.header(0), &[ItchSampleValue::Text(event)]);
    }

    fn write_message(
        &self,
        world: &SimulatedMarket,
        letter: u8,
        book: u32,
        values: &[ItchSampleValue<'_>],
        out: &mut Vec<u8>,
    ) {
        write(out, letter, self.header(locate(world.instr_of(book))), values);
    }

    fn header(&self, stock_locate: u16) -> ItchMessageHeader {
        ItchMessageHeader { stock_locate, tracking_number: 0, timestamp_ns: self.nanos() }
    }

    fn nanos(&self) -> u64 {
        (self.now - self.midnight_ns).min(DAY_NANOS - 1)
    }

    fn reference(&mut self) -> u64 {
        self.next_reference += 1;
        self.next_reference
    }
}

/// Returns the locate code of an instrument.
fn locate(instr: InstrumentId) -> u16 {
    instr.0 as u16 + 1
}

fn book_of(body: &DayEventBody) -> Option<u32> {
    match *body {
        DayEventBody::New(t) | DayEventBody::Amend(t) | DayEventBody::Cancel(t) => Some(t.book),
        DayEventBody::Exec { order, .. } => Some(order.book),
        DayEventBody::Trade { book, .. }
        | DayEventBody::Bbo { book, .. }
        | DayEventBody::Session { book, .. }
        | DayEventBody::Status { book, .. } => Some(book),
        _ => None,
    }
}

fn number(qty: i64) -> ItchSampleValue<'static> {
    ItchSampleValue::Number(u64::try_from(qty).expect("a quantity is not below zero"))
}

/// Ticks as a price of four places.
fn price(world: &SimulatedMarket, book: u32, ticks: i64) -> ItchSampleValue<'static> {
    let nano = world.listed(book).nano(ticks);
    assert_eq!(nano % 100_000, 0, "a tick has more than four places");
    number(nano / 100_000)
}
