//! The venues: requests go in, books match, and the drop copy of what happened comes out as FIX.

use crate::book::{Best, Book, Fill, Handle, Incoming};
use crate::truth::Counts;
use crate::wire::Wire;
use crate::world::{VENUES, World};
use unitape_model::Side;

/// A request for a new order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewOrder {
    pub member: u16,
    pub book: usize,
    pub side: Side,
    /// In ticks; none is a market order, which is always immediate.
    pub limit: Option<i64>,
    pub qty: i64,
    /// What is not filled at once is cancelled.
    pub immediate: bool,
    /// Whether the background may later amend or cancel it.
    pub listed: bool,
}

/// One side of a trade.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leg {
    pub oid: u64,
    pub exec_id: u64,
    pub member: u16,
    pub side: Side,
}

/// A trade of the last request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trade {
    pub ts: u64,
    pub book: usize,
    pub match_id: u64,
    pub px: i64,
    pub qty: i64,
    pub taker: Leg,
    pub maker: Leg,
}

/// Best bid and offer of a book as last published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub ts: u64,
    pub sides: [Option<Best>; 2],
}

/// All venues with their books, orders and sessions. Memory follows the orders that are live, not the messages.
#[derive(Debug)]
pub(crate) struct Market {
    pub world: World,
    pub wire: Wire,
    pub counts: Counts,
    /// Time of the last thing that happened, in nanoseconds since the epoch.
    pub now: u64,
    /// Trades of the last request.
    pub trades: Vec<Trade>,
    /// Fields after `52` of the last `exec` report and its venue; kept only when `keep_exec` is set.
    pub last_exec: Option<(usize, Vec<u8>)>,
    pub keep_exec: bool,
    pub published: Vec<Published>,
    books: Vec<Book>,
    orders: Vec<Order>,
    free: Vec<u32>,
    /// Slots of the resting orders that the background may touch.
    live: Vec<u32>,
    fills: Vec<Fill>,
    next_oid: u64,
    next_clord: u64,
    next_exec: u64,
    next_match: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub member: u16,
    pub book: usize,
    pub side: Side,
    pub limit: Option<i64>,
    /// Total, also after an amend.
    pub qty: i64,
    pub done: i64,
    immediate: bool,
    oid: u64,
    clord: u64,
    /// Σ ticks × quantity of what is done.
    value: i64,
    handle: Option<Handle>,
    live_at: Option<u32>,
}

/// What a report tells.
#[derive(Clone, Copy)]
enum Report {
    New,
    Replaced { was: u64 },
    Cancelled { was: Option<u64> },
    Trade { match_id: u64, exec_px: i64, exec_qty: i64, removed: bool },
}

impl Market {
    pub fn new(world: World, start_ns: u64) -> Market {
        let books = world.books();
        Market {
            wire: Wire::new(&VENUES, "UNITAPE"),
            counts: Counts::default(),
            now: start_ns,
            trades: Vec::new(),
            last_exec: None,
            keep_exec: false,
            published: vec![Published::default(); books],
            books: (0..books).map(|_| Book::default()).collect(),
            orders: Vec::new(),
            free: Vec::new(),
            live: Vec::new(),
            fills: Vec::new(),
            next_oid: 0,
            next_clord: 0,
            next_exec: 0,
            next_match: 0,
            world,
        }
    }

    /// A new order arrives now and is answered `latency_ns` later.
    pub fn submit(&mut self, new: NewOrder, latency_ns: u64, out: &mut Vec<u8>) {
        let NewOrder { member, book, side, limit, qty, immediate, listed } = new;
        assert!(limit.is_some() || immediate, "a market order cannot rest");
        self.next_oid += 1;
        let (oid, clord) = (self.next_oid, self.take_clord());
        let (done, value, handle, live_at) = (0, 0, None, None);
        let order =
            Order { member, book, side, limit, qty, done, immediate, oid, clord, value, handle, live_at };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.orders.push(order);
            self.orders.len() as u32 - 1
        });
        self.orders[slot as usize] = order;

        self.request(b'D', &order, None, out);
        self.now += latency_ns;
        self.counts.order_new += 1;
        self.report(slot, Report::New, out);

        self.fills.clear();
        let incoming = Incoming { tag: slot, side, limit, qty, rests: !immediate };
        let placed = self.books[book].submit(incoming, &mut self.fills);
        self.orders[slot as usize].handle = placed.handle;
        self.settle(slot, out);
        if placed.handle.is_some() {
            if listed {
                self.orders[slot as usize].live_at = Some(self.live.len() as u32);
                self.live.push(slot);
            }
        } else {
            if placed.leaves > 0 {
                self.counts.order_cancel += 1;
                self.report(slot, Report::Cancelled { was: None }, out);
            }
            self.free.push(slot);
        }
        self.publish(book, out);
    }

    /// Asks for another price and total quantity of a resting order.
    pub fn amend(&mut self, slot: u32, px: i64, qty: i64, latency_ns: u64, out: &mut Vec<u8>) {
        let order = &mut self.orders[slot as usize];
        assert!(qty > order.done, "an amend to what is done already");
        let handle = order.handle.expect("only a resting order is amended");
        let was = order.clord;
        self.next_clord += 1;
        order.clord = self.next_clord;
        (order.limit, order.qty) = (Some(px), qty);
        let order = *order;
        self.request(b'G', &order, Some(was), out);
        self.now += latency_ns;
        self.counts.order_amend += 1;
        self.report(slot, Report::Replaced { was }, out);

        self.fills.clear();
        let placed = self.books[order.book].amend(handle, px, qty - order.done, &mut self.fills);
        self.orders[slot as usize].handle = placed.handle;
        self.settle(slot, out);
        if placed.handle.is_none() {
            self.release(slot);
        }
        self.publish(order.book, out);
    }

    /// Asks to take a resting order out.
    pub fn cancel(&mut self, slot: u32, latency_ns: u64, out: &mut Vec<u8>) {
        let clord = self.take_clord();
        let order = &mut self.orders[slot as usize];
        let handle = order.handle.expect("only a resting order is cancelled");
        let was = std::mem::replace(&mut order.clord, clord);
        let order = *order;
        self.request(b'F', &order, Some(was), out);
        self.now += latency_ns;
        self.books[order.book].cancel(handle);
        self.counts.order_cancel += 1;
        self.report(slot, Report::Cancelled { was: Some(was) }, out);
        self.release(slot);
        self.trades.clear();
        self.publish(order.book, out);
    }

    pub fn heartbeat(&mut self, venue: usize, out: &mut Vec<u8>) {
        self.wire.begin(venue, b'0', self.now);
        self.finish(b'0', out);
    }

    pub fn live(&self) -> &[u32] {
        &self.live
    }

    pub fn order(&self, slot: u32) -> &Order {
        &self.orders[slot as usize]
    }

    pub fn book(&self, book: usize) -> &Book {
        &self.books[book]
    }

    /// Orders that there is room for.
    #[cfg(test)]
    pub fn slots(&self) -> usize {
        self.orders.len()
    }

    fn take_clord(&mut self) -> u64 {
        self.next_clord += 1;
        self.next_clord
    }

    /// Reports both sides of each fill of the request of `taker`, and prints it.
    fn settle(&mut self, taker: u32, out: &mut Vec<u8>) {
        self.trades.clear();
        for n in 0..self.fills.len() {
            let Fill { tag: maker, px, qty, leaves } = self.fills[n];
            self.next_match += 1;
            let match_id = self.next_match;
            let legs = [(taker, true), (maker, false)].map(|(slot, removed)| {
                let order = &mut self.orders[slot as usize];
                order.done += qty;
                order.value += qty * px;
                let (oid, member, side) = (order.oid, order.member, order.side);
                self.counts.exec += 1;
                self.report(slot, Report::Trade { match_id, exec_px: px, exec_qty: qty, removed }, out);
                Leg { oid, exec_id: self.next_exec, member, side }
            });
            if leaves == 0 {
                self.release(maker);
            }
            let book = self.orders[taker as usize].book;
            self.print(book, match_id, px, qty, out);
            let [taker, maker] = legs;
            self.trades.push(Trade { ts: self.now, book, match_id, px, qty, taker, maker });
        }
    }

    fn release(&mut self, slot: u32) {
        if let Some(at) = self.orders[slot as usize].live_at.take() {
            self.live.swap_remove(at as usize);
            if let Some(&moved) = self.live.get(at as usize) {
                self.orders[moved as usize].live_at = Some(at);
            }
        }
        self.free.push(slot);
    }

    fn request(&mut self, kind: u8, order: &Order, was: Option<u64>, out: &mut Vec<u8>) {
        let wire = &mut self.wire;
        wire.begin(self.world.venue_of(order.book), kind, self.now);
        if let Some(was) = was {
            wire.id(b"41=", b'C', was);
            wire.id(b"37=", b'O', order.oid);
        }
        wire.id(b"11=", b'C', order.clord);
        wire.raw(&self.world.members[order.member as usize].parties);
        if kind != b'F' {
            wire.char(b"21=", b'1');
        }
        wire.raw(self.world.listing(order.book));
        wire.char(b"54=", side_code(order.side));
        wire.time(b"60=", self.now);
        wire.int(b"38=", order.qty as u64);
        if kind != b'F' {
            terms(wire, &self.world, order);
        }
        self.finish(kind, out);
    }

    fn report(&mut self, slot: u32, report: Report, out: &mut Vec<u8>) {
        self.next_exec += 1;
        let order = &self.orders[slot as usize];
        let venue = self.world.venue_of(order.book);
        let instrument = self.world.instrument_of(order.book);
        let (kind, was, open) = match report {
            Report::New => (b'0', None, true),
            Report::Replaced { was } => (b'5', Some(was), true),
            Report::Cancelled { was } => (b'4', was, false),
            Report::Trade { .. } => (b'F', None, true),
        };
        let leaves = if open { order.qty - order.done } else { 0 };
        let state = match (open, order.done, leaves) {
            (false, ..) => b'4',
            (true, 0, _) => b'0',
            (true, _, 0) => b'2',
            (true, ..) => b'1',
        };
        let wire = &mut self.wire;
        wire.begin(venue, b'8', self.now);
        wire.id(b"37=", b'O', order.oid);
        wire.id(b"11=", b'C', order.clord);
        if let Some(was) = was {
            wire.id(b"41=", b'C', was);
        }
        wire.id(b"17=", b'E', self.next_exec);
        wire.char(b"150=", kind);
        wire.char(b"39=", state);
        wire.raw(&self.world.members[order.member as usize].parties);
        wire.raw(self.world.listing(order.book));
        wire.char(b"54=", side_code(order.side));
        wire.int(b"38=", order.qty as u64);
        terms(wire, &self.world, order);
        if let Report::Trade { match_id, exec_px, exec_qty, removed } = report {
            wire.int(b"32=", exec_qty as u64);
            wire.decimal(b"31=", (exec_px * instrument.tick) as u64, instrument.decimals);
            wire.text(b"30=", VENUES[venue]);
            wire.char(b"851=", if removed { b'2' } else { b'1' });
            wire.id(b"880=", b'M', match_id);
        }
        wire.int(b"151=", leaves as u64);
        wire.int(b"14=", order.done as u64);
        let average = if order.done == 0 { 0 } else { order.value * instrument.tick * 100 / order.done };
        wire.decimal(b"6=", average as u64, instrument.decimals + 2);
        wire.time(b"60=", self.now);
        if self.keep_exec && kind == b'F' {
            let kept = self.last_exec.get_or_insert_with(Default::default);
            kept.0 = venue;
            kept.1.clear();
            kept.1.extend_from_slice(wire.body());
        }
        self.finish(b'8', out);
    }

    fn print(&mut self, book: usize, match_id: u64, px: i64, qty: i64, out: &mut Vec<u8>) {
        let instrument = self.world.instrument_of(book);
        let wire = &mut self.wire;
        wire.begin(self.world.venue_of(book), b'X', self.now);
        wire.raw(b"268=1\x01279=0\x01269=2\x01");
        wire.id(b"278=", b'M', match_id);
        wire.raw(self.world.listing(book));
        wire.decimal(b"270=", (px * instrument.tick) as u64, instrument.decimals);
        wire.text(b"15=", instrument.ccy);
        wire.int(b"271=", qty as u64);
        self.counts.trade += 1;
        self.finish(b'X', out);
    }

    /// Publishes the best of a book if it is another than before. Until both sides have been there once nothing is.
    fn publish(&mut self, book: usize, out: &mut Vec<u8>) {
        let sides = [Side::Buy, Side::Sell].map(|side| self.books[book].best(side));
        let last = self.published[book].sides;
        let opened = last != [None; 2] || sides.iter().all(Option::is_some);
        if sides == last || !opened {
            return;
        }
        self.published[book] = Published { ts: self.now, sides };
        let instrument = self.world.instrument_of(book);
        let wire = &mut self.wire;
        wire.begin(self.world.venue_of(book), b'W', self.now);
        wire.raw(self.world.listing(book));
        wire.int(b"268=", sides.iter().flatten().count() as u64);
        for (code, best) in [b'0', b'1'].into_iter().zip(sides) {
            let Some(best) = best else { continue };
            wire.char(b"269=", code);
            wire.decimal(b"270=", (best.px * instrument.tick) as u64, instrument.decimals);
            wire.text(b"15=", instrument.ccy);
            wire.int(b"271=", best.qty as u64);
        }
        self.counts.bbo += 1;
        self.finish(b'W', out);
    }

    fn finish(&mut self, kind: u8, out: &mut Vec<u8>) {
        self.counts.message(kind);
        self.wire.end(out);
    }
}

fn terms(wire: &mut Wire, world: &World, order: &Order) {
    let instrument = world.instrument_of(order.book);
    match order.limit {
        Some(px) => {
            wire.raw(b"40=2\x01");
            wire.decimal(b"44=", (px * instrument.tick) as u64, instrument.decimals);
        }
        None => wire.raw(b"40=1\x01"),
    }
    wire.text(b"15=", instrument.ccy);
    wire.char(b"59=", if order.immediate { b'3' } else { b'0' });
    wire.raw(&world.members[order.member as usize].capacity);
}

fn side_code(side: Side) -> u8 {
    match side {
        Side::Buy => b'1',
        Side::Sell => b'2',
    }
}
