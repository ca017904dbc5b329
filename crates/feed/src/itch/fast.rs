//! The frequent messages, as images of events with the values put in.
//!
//! Once a block the events of each type are made with what does not change from message to message: header, kind,
//! source, venue. A message then costs one copy of an image into the arena and a handful of stores into it:
//!
//! ```text
//!  image   ┌header┬  ts  ┬source┬offset┬recv┬seq┬instr┬venue┬side┬exp┬ px ┬qty┬ … ┬ id ┬ … ┐
//!          └──────┴──▲───┴──────┴──▲───┴────┴───┴──▲──┴─────┴─▲──┴─▲─┴─▲──┴─▲─┴───┴─▲──┴───┘
//! ```
//!
//! What does not fit this way (a name without an id, a reference of more than 56 bits, anything refused) is left to
//! `fields`, and nothing has happened then.

use super::config::Config;
use super::fields::{PRICE_UNIT, side};
use super::orders::Order;
use super::{ItchDecoder, NO_DAY, Place};
use crate::block::Block;
use unitape_codec::itch::{DAY_NANOS, Message};
use unitape_model::event::Value;
use unitape_model::schema::{TAG_UNMAPPED, at};
use unitape_model::{Dict, Dictionary, EventBuilder, Field, Header, Kind, UnixNanos, flags};

/// Frames of one kind, made beforehand.
#[derive(Debug, Clone)]
pub(super) struct Images {
    /// They can be used: the venue has its id, and the day is known.
    pub ready: bool,
    order_new: [u8; 128],
    order_cancel: [u8; 128],
    order_amend: [u8; 128],
    exec: [u8; 128],
    trade: [u8; 64],
}

impl Default for Images {
    fn default() -> Self {
        Self {
            ready: false,
            order_new: [0; 128],
            order_cancel: [0; 128],
            order_amend: [0; 128],
            exec: [0; 128],
            trade: [0; 64],
        }
    }
}

impl Images {
    /// Makes them for a block.
    pub fn make(&mut self, config: &Config, source: u32, known: &Dictionary) {
        let venue = known.get(Dict::Venue, config.venue.as_bytes());
        self.ready = venue.is_some();
        let Some(venue) = venue else { return };
        self.order_new = image(Kind::OrderNew, source, venue);
        self.order_cancel = image(Kind::OrderCancel, source, venue);
        self.order_amend = image(Kind::OrderAmend, source, venue);
        self.exec = image(Kind::Exec, source, venue);
        self.trade = image(Kind::Trade, source, venue);
    }
}

fn image<const N: usize>(kind: Kind, source: u32, venue: u32) -> [u8; N] {
    let mut out = Vec::with_capacity(N);
    let mut e = EventBuilder::begin(&mut out, kind, UnixNanos(0));
    e.source(source, 0);
    let mut set = |field, value| {
        let spec = e.schema().get(field).expect("a field of the kind");
        e.set(spec, value).expect("of its sort");
    };
    set(Field::Venue, Value::Sym(Dict::Venue, venue));
    if kind == Kind::OrderNew {
        set(Field::Type, Value::Text("limit"));
    }
    e.finish(flags::LAST).expect("a short event");
    out.try_into().expect("as long as its kind")
}

/// A frame being filled in.
struct Frame<'f, const N: usize>(&'f mut [u8; N]);

impl<'f, const N: usize> Frame<'f, N> {
    #[inline(always)]
    fn put(arena: &'f mut Vec<u8>, image: &[u8; N], ts: i64, place: &Place) -> Self {
        arena.extend_from_slice(image);
        let frame = Frame(arena.last_chunk_mut().expect("just put there"));
        frame.0[at::TS_EVENT..][..8].copy_from_slice(&ts.to_le_bytes());
        frame.0[at::OFFSET..][..4].copy_from_slice(&(place.offset as u32).to_le_bytes());
        frame
    }

    #[inline(always)]
    fn set<const W: usize>(&mut self, at: usize, bytes: [u8; W]) {
        self.0[at..at + W].copy_from_slice(&bytes);
    }

    #[inline(always)]
    fn id(&mut self, at: usize, id: u64) {
        self.set(at, (id << 8 | 1).to_le_bytes());
    }

    #[inline(always)]
    fn instrument(&mut self, id: u32) {
        self.set(at::INSTRUMENT, id.to_le_bytes());
    }

    #[inline(always)]
    fn price(&mut self, units: u32) {
        self.set(PX, (i64::from(units) * PRICE_UNIT).to_le_bytes());
    }

    /// The quantity of an order or an execution.
    #[inline(always)]
    fn shares(&mut self, shares: u32) {
        let (mantissa, exponent) = canonical(shares);
        self.set(QTY, u64::from(mantissa).to_le_bytes());
        self.0[at::KIND_B] = exponent;
    }

    /// Whose order, where the feed tells.
    #[inline(always)]
    fn firm(&mut self, id: u32) {
        self.set(FIRM, id.to_le_bytes());
    }

    /// What the order table says: instrument, side, price.
    #[inline(always)]
    fn of(&mut self, order: &Order, id: u32, firm: u32) {
        self.instrument(id);
        self.0[at::KIND_A] |= order.side;
        self.price(order.px);
        self.firm(firm);
    }

    #[inline(always)]
    fn header(&mut self, change: impl FnOnce(Header) -> Header) {
        change(Header::read(self.0)).write(self.0);
    }
}

/// The frame goes on with a line that keeps a number under a name, and has the flags for it.
#[inline(always)]
fn extended(header: Header, last: u8) -> Header {
    Header::unstamped(header.kind(), header.flags() & !flags::LAST | flags::EXT | last, header.lines() + 1)
}

/// The line of an extension that keeps a number.
#[inline(always)]
fn keep_number<const K: usize>(arena: &mut Vec<u8>, name: &[u8; K], number: u64) {
    let (digits, from) = decimal(number);
    let count = digits.len() - from;
    let mut line = [0; 64];
    line[..2].copy_from_slice(&TAG_UNMAPPED.to_le_bytes());
    line[2..6].copy_from_slice(&((2 + K + count) as u32).to_le_bytes());
    line[6..8].copy_from_slice(&(K as u16).to_le_bytes());
    line[8..8 + K].copy_from_slice(name);
    line[8 + K..8 + K + count].copy_from_slice(&digits[from..]);
    arena.extend_from_slice(&line);
}

#[inline(always)]
fn decimal(mut number: u64) -> ([u8; 20], usize) {
    let (mut digits, mut at) = ([b'0'; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (digits, at);
        }
    }
}

/// A whole number without its trailing zeros, and how many there were.
#[inline(always)]
fn canonical(n: u32) -> (u32, u8) {
    if n.is_multiple_of(100) {
        return zeros(n);
    }
    if n.is_multiple_of(10) { (n / 10, 1) } else { (n, 0) }
}

#[inline]
fn zeros(mut n: u32) -> (u32, u8) {
    if n == 0 {
        return (0, 0);
    }
    (n, _) = (n / 100, ());
    let mut exponent = 2;
    while n.is_multiple_of(10) {
        (n, exponent) = (n / 10, exponent + 1);
    }
    (n, exponent)
}

impl ItchDecoder {
    /// Writes the events of a frequent message; false, and nothing has happened, when it is not one or not plain.
    #[inline]
    pub(super) fn fast(&mut self, block: &mut Block, message: Message<'_>, place: Place) -> bool {
        match self.orders {
            None => self.alone(block, message, place),
            Some(_) => self.tracked(block, message, place),
        }
    }

    /// A message that stands for itself.
    #[inline]
    fn alone(&mut self, block: &mut Block, message: Message<'_>, place: Place) -> bool {
        let arena = &mut block.arena;
        macro_rules! when {
            ($m:expr, $($ok:expr),*) => {{
                let Some(ts) = time($m.timestamp(), &place) else { return false };
                if !($($ok &&)* true) {
                    return false;
                }
                ts
            }};
        }
        let ts = match message {
            Message::AddOrder(m) => {
                let (id, side) = (self.stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
                let ts = when!(m, id != 0, side != 0, narrow(m.order()), m.shares() != 0);
                let mut f = Frame::put(arena, &self.images.order_new, ts, &place);
                f.instrument(id);
                f.0[at::KIND_A] = side;
                f.price(m.price());
                f.shares(m.shares());
                f.id(OID, m.order());
                ts
            }
            Message::OrderDelete(m) => {
                let ts = when!(m, narrow(m.order()));
                Frame::put(arena, &self.images.order_cancel, ts, &place).id(OID, m.order());
                ts
            }
            Message::OrderExecuted(m) => {
                let ts = when!(m, narrow(m.order()), narrow(m.match_number()), m.shares() != 0);
                let mut f = Frame::put(arena, &self.images.exec, ts, &place);
                f.shares(m.shares());
                f.0[at::KIND_A] = LIQ_ADDED;
                f.id(OID, m.order());
                f.id(MATCH_ID, m.match_number());
                ts
            }
            Message::OrderCancel(m) => {
                let ts = when!(m, narrow(m.order()), m.shares() != 0);
                let mut f = Frame::put(arena, &self.images.order_amend, ts, &place);
                f.id(OID, m.order());
                f.header(|h| extended(h, flags::LAST));
                keep_number(arena, b"cancelled", m.shares().into());
                ts
            }
            Message::OrderReplace(m) => {
                let ts = when!(m, narrow(m.order()), narrow(m.new_order()), m.shares() != 0);
                let mut f = Frame::put(arena, &self.images.order_cancel, ts, &place);
                f.id(OID, m.order());
                f.header(without_last);
                let mut f = Frame::put(arena, &self.images.order_new, ts, &place);
                f.price(m.price());
                f.shares(m.shares());
                f.id(OID, m.new_order());
                f.header(|h| extended(h, flags::LAST));
                keep_number(arena, b"replaces", m.order());
                block.end_resolved((place.offset, place.length), ts, 2, false);
                return true;
            }
            Message::Trade(m) => {
                let id = self.stocks.id(m.stock_locate(), &m.stock());
                let plain = m.order() == 0 && m.side() == b'B' && m.shares() != 0;
                let ts = when!(m, id != 0, plain, narrow(m.match_number()));
                let mut f = Frame::put(arena, &self.images.trade, ts, &place);
                f.print(id, m.price(), m.shares(), m.match_number());
                ts
            }
            _ => return false,
        };
        block.end_resolved((place.offset, place.length), ts, 1, false);
        true
    }

    /// A message about an order that is kept.
    #[inline]
    fn tracked(&mut self, block: &mut Block, message: Message<'_>, place: Place) -> bool {
        let arena = &mut block.arena;
        let (ts, count) = match message {
            Message::AddOrder(m) => {
                let (id, side) = (self.stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
                let Some(ts) = time(m.timestamp(), &place) else { return false };
                if id == 0 || side == 0 || !narrow(m.order()) || m.shares() == 0 {
                    return false;
                }
                let order = Order {
                    order: m.order(),
                    px: m.price(),
                    left: m.shares(),
                    done: 0,
                    firm: [0; 4],
                    locate: m.stock_locate(),
                    side,
                };
                if self.comes(order, &m.stock()).is_err() {
                    return false;
                }
                let mut f = Frame::put(arena, &self.images.order_new, ts, &place);
                f.of(&order, id, 0);
                f.shares(order.left);
                f.id(OID, order.order);
                (ts, 1)
            }
            Message::OrderDelete(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = time(m.timestamp(), &place) else { return false };
                if id == 0 || !narrow(m.order()) {
                    return false;
                }
                let Some((order, left)) = self.delete_plain(m.stock_locate(), m.order()) else {
                    return false;
                };
                let mut f = Frame::put(arena, &self.images.order_cancel, ts, &place);
                f.of(&order, id, 0);
                f.shares(left);
                f.id(OID, order.order);
                (ts, 1)
            }
            Message::OrderExecuted(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = time(m.timestamp(), &place) else { return false };
                let fits = narrow(m.order()) && narrow(m.match_number()) && m.shares() != 0;
                if id == 0 || !fits {
                    return false;
                }
                let Some(order) = self.take_plain(m.stock_locate(), m.order(), m.shares(), true) else {
                    return false;
                };
                let prints = self.config.prints;
                let mut f = Frame::put(arena, &self.images.exec, ts, &place);
                f.0[at::KIND_A] = LIQ_ADDED;
                f.of(&order, id, 0);
                f.shares(m.shares());
                f.id(OID, order.order);
                f.id(MATCH_ID, m.match_number());
                f.header(|h| extended(h, if prints { 0 } else { flags::LAST }));
                keep_number(arena, b"left", order.left.into());
                if prints {
                    let mut f = Frame::put(arena, &self.images.trade, ts, &place);
                    f.print(id, order.px, m.shares(), m.match_number());
                    f.0[at::KIND_A] = 3 - order.side;
                }
                (ts, 1 + u32::from(prints))
            }
            Message::OrderCancel(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = time(m.timestamp(), &place) else { return false };
                let fits = narrow(m.order()) && m.shares() != 0;
                if id == 0 || !fits {
                    return false;
                }
                let Some(order) = self.take_plain(m.stock_locate(), m.order(), m.shares(), false) else {
                    return false;
                };
                let (image, shares) = match order.left {
                    0 => (&self.images.order_cancel, m.shares()),
                    left => (&self.images.order_amend, order.done + left),
                };
                let mut f = Frame::put(arena, image, ts, &place);
                f.of(&order, id, 0);
                f.shares(shares);
                f.id(OID, order.order);
                (ts, 1)
            }
            Message::OrderReplace(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = time(m.timestamp(), &place) else { return false };
                let fits = narrow(m.order()) && narrow(m.new_order()) && m.shares() != 0;
                if id == 0 || !fits || !self.plain(m.stock_locate(), m.order()) {
                    return false;
                }
                let Ok((old, new)) = self.replaces(m.stock_locate(), m) else { return false };
                let mut f = Frame::put(arena, &self.images.order_cancel, ts, &place);
                f.of(&old, id, 0);
                f.shares(old.left);
                f.id(OID, old.order);
                f.header(without_last);
                let mut f = Frame::put(arena, &self.images.order_new, ts, &place);
                f.of(&new, id, 0);
                f.shares(new.left);
                f.id(OID, new.order);
                f.header(|h| extended(h, flags::LAST));
                keep_number(arena, b"replaces", m.order());
                (ts, 2)
            }
            Message::Trade(_) => return self.alone(block, message, place),
            _ => return false,
        };
        block.end_resolved((place.offset, place.length), ts, count, false);
        true
    }

    /// Takes shares off an order that is nobody's by name; none, and nothing has happened, when it is not so simple.
    #[inline]
    fn take_plain(&mut self, locate: u16, order: u64, shares: u32, executed: bool) -> Option<Order> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        let mut now = Order::default();
        let taken = orders.change(order, |o| {
            if o.locate != locate || o.firm != [0; 4] || o.left < shares {
                return false;
            }
            o.left -= shares;
            o.done += if executed { shares } else { 0 };
            now = *o;
            true
        });
        taken.then_some(now)
    }

    /// Deletes an order that is nobody's by name, likewise; with what was left of it.
    #[inline]
    fn delete_plain(&mut self, locate: u16, order: u64) -> Option<(Order, u32)> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        let (mut gone, mut left) = (Order::default(), 0);
        let deleted = orders.change(order, |o| {
            if o.locate != locate || o.firm != [0; 4] {
                return false;
            }
            (gone, left) = (*o, o.left);
            o.left = 0;
            true
        });
        deleted.then_some((gone, left))
    }

    /// Whether the order lives and is nobody's by name: names are left to the other way.
    #[inline]
    fn plain(&mut self, locate: u16, order: u64) -> bool {
        let orders = self.orders.as_mut().expect("asked with orders only");
        orders.get(order).is_some_and(|o| o.firm == [0; 4] && o.locate == locate)
    }
}

impl Frame<'_, 64> {
    #[inline(always)]
    fn print(&mut self, id: u32, px: u32, shares: u32, match_number: u64) {
        self.instrument(id);
        self.price(px);
        let (mantissa, exponent) = canonical(shares);
        self.set(TRADE_QTY, mantissa.to_le_bytes());
        self.0[at::KIND_B] = exponent;
        self.id(TRADE_MATCH, match_number);
    }
}

#[inline(always)]
fn without_last(header: Header) -> Header {
    Header::unstamped(header.kind(), header.flags() & !flags::LAST, header.lines())
}

/// Event time; none when there is no such time of day, or the day is not known.
#[inline(always)]
fn time(nanos: u64, place: &Place) -> Option<i64> {
    (nanos < DAY_NANOS && place.midnight != NO_DAY).then(|| place.midnight + nanos as i64)
}

/// Whether an id fits its place as a number.
#[inline(always)]
fn narrow(id: u64) -> bool {
    id >> 56 == 0
}

/// Places in frames; the tests hold them against the schema.
const PX: usize = 40;
const QTY: usize = 48;
const FIRM: usize = 68;
const OID: usize = 80;
const MATCH_ID: usize = 104;
const TRADE_MATCH: usize = 48;
const TRADE_QTY: usize = 56;
const LIQ_ADDED: u8 = 1 << 6;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{Decimal, Schema, Slot};

    /// These places are written down twice; should the table's move, these must.
    #[test]
    fn places_stand_where_the_schema_says() {
        let slot = |kind, field| Schema::of(kind).get(field).unwrap().slot;
        for kind in [Kind::OrderNew, Kind::OrderAmend, Kind::OrderCancel, Kind::Exec] {
            assert_eq!(slot(kind, Field::Px), Slot::Price { at: PX as u16 });
            assert_eq!(slot(kind, Field::Qty), Slot::Decimal { at: QTY as u16, exp_at: at::KIND_B as u16 });
            assert_eq!(slot(kind, Field::Oid), Slot::Id { at: OID as u16, n: 24 });
            assert_eq!(slot(kind, Field::Firm), Slot::Sym { dict: Dict::Firm, at: FIRM as u16 });
        }
        assert_eq!(slot(Kind::Exec, Field::MatchId), Slot::Id { at: MATCH_ID as u16, n: 24 });
        assert!(
            matches!(slot(Kind::Exec, Field::Liq), Slot::Code { at: 38, shift: 6, values, .. } if values[0] == "A")
        );
        assert_eq!(slot(Kind::Trade, Field::MatchId), Slot::Id { at: TRADE_MATCH as u16, n: 8 });
        assert_eq!(
            slot(Kind::Trade, Field::Qty),
            Slot::DecimalNarrow { at: TRADE_QTY as u16, exp_at: at::KIND_B as u16 }
        );
        assert!(matches!(slot(Kind::Trade, Field::Side), Slot::Code { at: 38, shift: 0, .. }));
    }

    #[test]
    fn numbers_lose_their_zeros() {
        let one = |n: u32| {
            let d = Decimal::from_int(n.into());
            assert_eq!(canonical(n), (d.mantissa() as u32, d.exponent() as u8), "{n}");
        };
        (0..20_000).for_each(one);
        for n in [u32::MAX, 4_000_000_000, 1_000_000_000, 123_000_000, 4_294_967_290] {
            one(n);
        }
        for n in [0, 7, 10, 4_294_967_295, u64::MAX] {
            let (digits, from) = decimal(n);
            assert_eq!(digits[from..], *n.to_string().as_bytes());
        }
    }
}
