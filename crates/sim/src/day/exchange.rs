//! The venues of a simulated day: requests go in, books match, events come out.
//!
//! ```text
//!  submit, amend, cancel ──▶ ┌──────────── book of one instrument on one venue ───────────┐ ──▶ events
//!                            │ pre ▸ auction ▸ open ◂▸ halt ▸ auction ▸ … ▸ auction ▸ close │
//!                            │   queue only     match     cancels only        queue only   │
//!                            └────────────────────────────────────────────────────────────┘
//! ```
//!
//! Memory follows the orders that are live and the pairs of owner and instrument that traded, not the events.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use unitape_model::{InstrumentId, Side};

use super::auction::clearing;
use super::config::SimConfig;
use super::event::{DayEvent, DayEventBody, LiquidityFlag, MarketPhase, OrderKind, OrderTicket, TimeInForce};
use super::instrument_prints::InstrumentPrints;
use super::market::RequestGate;
use super::minute_volumes::MinuteVolumes;
use super::truth::{OrderEnding, OrderLife};
use super::world::SimulatedMarket;
use crate::book::{BestLevel, Fill, IncomingOrder, MatchingBook, OrderHandle};

/// Numbers of orders, and of matches, that a market has: their text has ten digits, and there are ten markets.
const IDS_OF_A_MARKET: u64 = 1_000_000_000;

/// A request for a new order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewOrder {
    pub member: u32,
    pub book: u32,
    pub side: Side,
    pub kind: OrderKind,
    pub tif: TimeInForce,
    pub px: Option<i64>,
    pub stop_px: Option<i64>,
    pub qty: i64,
    pub parent: u64,
    /// Whether the background may later amend or cancel it.
    pub crowd: bool,
}

/// An order that may have gone meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OrderRef {
    pub slot: u32,
    pub oid: u64,
}

/// An order while it lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveOrder {
    pub terms: OrderTicket,
    pub filled_qty: i64,
    /// Σ ticks × quantity of the executed part.
    value: i64,
    entered: (u64, u64),
    handle: Option<OrderHandle>,
    /// The order's index in its book's list of orders that the background may touch.
    crowd_index: Option<u32>,
    crowd: bool,
}

impl LiveOrder {
    /// Returns whether the background may amend or cancel the order.
    pub fn is_of_background(&self) -> bool {
        self.crowd
    }
}

/// A book with its venue's state of it.
#[derive(Debug)]
pub(crate) struct VenueBook {
    pub book: MatchingBook,
    pub phase: MarketPhase,
    /// A scene is being played here: the background keeps out, stops wait.
    pub quiet: bool,
    pub last_trade: Option<i64>,
    /// Last trade of an earlier day.
    pub earlier_trade: Option<i64>,
    /// Last trade before the closing window, once that has begun.
    pub window: Option<Option<i64>>,
    /// The volume by the minute, in a book where a scene needs it.
    pub volumes: Option<Box<MinuteVolumes>>,
    /// Orders of the background that rest here.
    pub crowd: Vec<u32>,
    stops: Vec<u32>,
    published: [Option<BestLevel>; 2],
}

/// All venues.
#[derive(Debug)]
pub(crate) struct SimulatedVenues {
    pub world: SimulatedMarket,
    /// The present time, nanoseconds since the epoch.
    pub now: u64,
    /// Ordinal of the last event.
    pub seq: u64,
    /// Events of the unit under way.
    pub out: Vec<DayEvent>,
    pub desks: Vec<VenueBook>,
    /// Net position and gross volume by owner and instrument.
    pub positions: FxHashMap<(u32, InstrumentId), (i64, i64)>,
    /// The requests of the background that are refused, in a market that refuses any.
    pub gate: Option<Box<RequestGate>>,
    /// Start of the day, nanoseconds since the epoch.
    pub start_ns: u64,
    /// The prints of the instruments whose scenes must know them.
    pub prints: FxHashMap<InstrumentId, InstrumentPrints>,
    /// The previous closes of the constituents of the index on the first day.
    pub index_base: Vec<i64>,
    /// The previous close of the index in hundredths.
    pub index_close: i64,
    /// The number of the local day on which the index last fell to a level, and how many levels have fired on it.
    pub breaker_levels: (u64, usize),
    /// The holdings of owners before the first day.
    pub initial_holdings: BTreeMap<(u32, InstrumentId), i64>,
    /// A reference price in halves of a tick that a scene wants the market to publish.
    pub reference_half_ticks: Option<(InstrumentId, i64)>,
    /// Orders that ended, when they are kept.
    pub lives: Option<Vec<OrderLife>>,
    /// Live stops by member: a bound that keeps elections from counting as a flood of messages.
    pub stops_of: Vec<u8>,
    /// Live orders of the background by member.
    live_of: Vec<u16>,
    orders: Vec<LiveOrder>,
    free: Vec<u32>,
    fills: Vec<Fill>,
    fills_other: Vec<Fill>,
    next_oid: u64,
    next_match: u64,
}

impl SimulatedVenues {
    pub fn new(world: SimulatedMarket, config: &SimConfig) -> SimulatedVenues {
        let desk = || VenueBook {
            book: MatchingBook::default(),
            phase: MarketPhase::Pre,
            quiet: false,
            last_trade: None,
            earlier_trade: None,
            window: None,
            volumes: None,
            crowd: Vec::new(),
            stops: Vec::new(),
            published: [None; 2],
        };
        SimulatedVenues {
            now: config.start_ns,
            seq: 0,
            out: Vec::with_capacity(1024),
            desks: (0..world.books()).map(|_| desk()).collect(),
            positions: FxHashMap::default(),
            gate: None,
            start_ns: config.start_ns,
            prints: FxHashMap::default(),
            index_base: Vec::new(),
            index_close: 0,
            breaker_levels: (0, 0),
            initial_holdings: BTreeMap::new(),
            reference_half_ticks: None,
            lives: config.keep_lives.then(Vec::new),
            stops_of: vec![0; world.members.len()],
            live_of: vec![0; world.members.len()],
            orders: Vec::new(),
            free: Vec::new(),
            fills: Vec::new(),
            fills_other: Vec::new(),
            next_oid: u64::from(config.market) * IDS_OF_A_MARKET,
            next_match: u64::from(config.market) * IDS_OF_A_MARKET,
            world,
        }
    }

    pub fn emit(&mut self, body: DayEventBody) {
        self.seq += 1;
        self.out.push(DayEvent { seq: self.seq, ts: self.now, body });
    }

    pub fn desk(&self, book: u32) -> &VenueBook {
        &self.desks[book as usize]
    }

    pub fn desk_mut(&mut self, book: u32) -> &mut VenueBook {
        &mut self.desks[book as usize]
    }

    pub fn order(&self, slot: u32) -> &LiveOrder {
        &self.orders[slot as usize]
    }

    /// Orders of a member of the background that rest or wait.
    pub fn live_algo_orders(&self, member: u32) -> u16 {
        self.live_of[member as usize]
    }

    /// Returns the remaining quantity of an order; 0 if the order has left the book.
    pub fn leaves(&self, order_ref: OrderRef) -> i64 {
        let order = &self.orders[order_ref.slot as usize];
        if order.terms.oid == order_ref.oid { order.terms.qty - order.filled_qty } else { 0 }
    }

    /// Returns the number that the next order will have.
    pub fn next_oid(&self) -> u64 {
        self.next_oid + 1
    }

    /// Submits a new order.
    pub fn submit(&mut self, new: NewOrder) -> OrderRef {
        let NewOrder { member, book, side, kind, tif, px, stop_px, qty, parent, crowd } = new;
        let phase = self.desk(book).phase;
        assert!(
            phase == MarketPhase::Open
                || phase == MarketPhase::Auction && kind == OrderKind::Limit && tif == TimeInForce::Day,
            "an order that its venue would not take in {phase:?}"
        );
        self.next_oid += 1;
        let terms =
            OrderTicket { oid: self.next_oid, book, member, side, kind, tif, px, stop_px, qty, parent };
        if crowd && self.refuses(&terms) {
            self.emit(DayEventBody::Reject(terms));
            return OrderRef::default();
        }
        let entered = (self.seq + 1, self.now);
        let order =
            LiveOrder { terms, filled_qty: 0, value: 0, entered, handle: None, crowd_index: None, crowd };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.orders.push(order);
            self.orders.len() as u32 - 1
        });
        self.orders[slot as usize] = order;
        self.emit(DayEventBody::New(terms));
        if kind.is_waiting_stop() {
            self.desks[book as usize].stops.push(slot);
            self.stops_of[member as usize] += 1;
            self.list(slot);
        } else if phase == MarketPhase::Auction {
            let px = px.expect("a limit order has its limit");
            let handle = self.desks[book as usize].book.queue(side, px, qty, slot);
            self.orders[slot as usize].handle = Some(handle);
            self.list(slot);
        } else {
            self.match_new(slot);
            self.elect(book);
        }
        self.publish(book);
        OrderRef { slot, oid: terms.oid }
    }

    /// Submits a new order that a control must refuse, as the caller knows.
    pub fn send_refused(&mut self, new: NewOrder) {
        let NewOrder { member, book, side, kind, tif, px, stop_px, qty, parent, .. } = new;
        self.next_oid += 1;
        let terms =
            OrderTicket { oid: self.next_oid, book, member, side, kind, tif, px, stop_px, qty, parent };
        let gate = self.gate.as_deref_mut().expect("a market with controls has a gate");
        assert!(gate.blocks_order(&self.world, &terms, self.now), "no control covers the order");
        gate.refused.of_runaways += 1;
        self.emit(DayEventBody::Reject(terms));
    }

    /// Returns whether the gate, if there is one, refuses a new order.
    #[inline]
    fn refuses(&mut self, terms: &OrderTicket) -> bool {
        self.gate.as_deref_mut().is_some_and(|gate| gate.refuses_order(&self.world, terms, self.now))
    }

    /// Sets price and total quantity of an order that rests. A request that is refused leaves no event.
    pub fn amend(&mut self, slot: u32, px: i64, qty: i64) {
        if let Some(gate) = self.gate.as_deref_mut()
            && gate.blocks_amend(&self.world, &self.orders[slot as usize].terms, self.now)
        {
            return;
        }
        let order = &mut self.orders[slot as usize];
        assert!(qty > order.filled_qty, "an amend to what is done already");
        let handle = order.handle.expect("only a resting order is amended");
        (order.terms.px, order.terms.qty) = (Some(px), qty);
        let (terms, leaves) = (order.terms, qty - order.filled_qty);
        self.emit(DayEventBody::Amend(terms));
        let desk = &mut self.desks[terms.book as usize];
        if desk.phase == MarketPhase::Auction {
            self.orders[slot as usize].handle = Some(desk.book.amend_queued(handle, px, leaves));
            return;
        }
        assert_eq!(desk.phase, MarketPhase::Open, "an amend that its venue would not take");
        self.fills.clear();
        let placed = desk.book.amend(handle, px, leaves, &mut self.fills);
        self.orders[slot as usize].handle = placed.handle;
        self.report_fills(slot);
        if placed.handle.is_none() {
            self.release(slot, OrderEnding::Filled);
        }
        self.elect(terms.book);
        self.publish(terms.book);
    }

    /// Takes an order out, if it is still there.
    pub fn cancel(&mut self, order_ref: OrderRef) {
        if self.leaves(order_ref) > 0 {
            self.cancel_slot(order_ref.slot);
        }
    }

    pub fn cancel_slot(&mut self, slot: u32) {
        let order = &self.orders[slot as usize];
        let (terms, handle) = (order.terms, order.handle);
        let desk = &mut self.desks[terms.book as usize];
        match handle {
            Some(handle) => drop(desk.book.cancel(handle)),
            None => {
                let stop_index = desk.stops.iter().position(|&s| s == slot).expect("an order rests or waits");
                desk.stops.remove(stop_index);
                self.stops_of[terms.member as usize] -= 1;
            }
        }
        self.emit(DayEventBody::Cancel(terms));
        self.release(slot, OrderEnding::Cancelled);
        self.publish(terms.book);
    }

    /// Starts or ends a phase in which nothing is matched, or continuous trading. The auction is [`SimulatedVenues::uncross`].
    pub fn enter(&mut self, book: u32, phase: MarketPhase, px: Option<i64>) {
        let before = std::mem::replace(&mut self.desk_mut(book).phase, phase);
        if before == MarketPhase::Halt || phase == MarketPhase::Halt {
            self.emit(DayEventBody::Status { book, halted: phase == MarketPhase::Halt });
        }
        self.emit(DayEventBody::Session { book, phase, px });
        if let (MarketPhase::Open, Some(px)) = (phase, px)
            && let Some(prints) = self.prints.get_mut(&self.world.instr_of(book))
        {
            prints.open(self.now, self.world.listed(book).nano(px));
        }
        self.publish(book);
    }

    /// Ends the call of an auction: matches at one price, if anything can be, and returns it.
    pub fn uncross(&mut self, book: u32, reference: i64, limits: Option<(i64, i64)>) -> Option<i64> {
        assert_eq!(self.desk(book).phase, MarketPhase::Auction, "only a call is uncrossed");
        let desk = &mut self.desks[book as usize];
        let (px, volume) = clearing(&desk.book, reference, limits)?;
        let (mut bought, mut sold) = (std::mem::take(&mut self.fills), std::mem::take(&mut self.fills_other));
        bought.clear();
        sold.clear();
        desk.book.uncross(px, volume, &mut bought, &mut sold);
        // Buyers and sellers in their order, each met with as much of the other as is left.
        let (mut b, mut s) = (0, 0);
        while let (Some(buyer), Some(seller)) = (bought.get_mut(b), sold.get_mut(s)) {
            let qty = buyer.qty.min(seller.qty);
            (buyer.qty, seller.qty) = (buyer.qty - qty, seller.qty - qty);
            let (buyer, seller) = (*buyer, *seller);
            self.next_match += 1;
            for (fill, other) in [(buyer, seller), (seller, buyer)] {
                self.fill(fill.tag, other.tag, px, qty, LiquidityFlag::Auction);
            }
            self.print(book, px, qty, true);
            for (fill, fill_index) in [(buyer, &mut b), (seller, &mut s)] {
                if fill.qty == 0 {
                    *fill_index += 1;
                    if fill.leaves == 0 {
                        self.release(fill.tag, OrderEnding::Filled);
                    }
                }
            }
        }
        (self.fills, self.fills_other) = (bought, sold);
        Some(px)
    }

    /// Begins another day after the last order of this day has ended: the books are as new.
    pub fn begin_day(&mut self, start_ns: u64) {
        assert_eq!(self.orders.len(), self.free.len(), "an order outlives its day");
        (self.now, self.start_ns) = (start_ns, start_ns);
        for desk in &mut self.desks {
            desk.earlier_trade = desk.last_trade.take().or(desk.earlier_trade);
            (desk.phase, desk.quiet, desk.window) = (MarketPhase::Pre, false, None);
            desk.published = [None; 2];
        }
    }

    /// Orders that are in a book or wait for a price, in no particular order.
    pub fn all_of(&self, book: u32) -> Vec<u32> {
        let desk = self.desk(book);
        let resting = [Side::Buy, Side::Sell].into_iter().flat_map(|side| desk.book.orders(side));
        resting.map(|(slot, ..)| slot).chain(desk.stops.iter().copied()).collect()
    }

    fn match_new(&mut self, slot: u32) {
        let terms = self.orders[slot as usize].terms;
        let OrderTicket { book, side, px, qty, tif, .. } = terms;
        let desk = &mut self.desks[book as usize];
        self.fills.clear();
        let enough = || match px {
            Some(px) => desk.book.quantity_within(side.opposite(), px) >= qty,
            None => desk.book.levels(side.opposite()).map(|level| level.qty).sum::<i64>() >= qty,
        };
        let handle = if tif == TimeInForce::Fok && !enough() {
            None
        } else {
            let incoming = IncomingOrder {
                tag: slot,
                side,
                limit: px,
                qty,
                may_rest: tif == TimeInForce::Day && px.is_some(),
            };
            desk.book.submit(incoming, &mut self.fills).handle
        };
        self.orders[slot as usize].handle = handle;
        self.report_fills(slot);
        let order = &self.orders[slot as usize];
        if handle.is_some() {
            self.list(slot);
        } else if order.filled_qty < qty {
            let terms = order.terms;
            self.emit(DayEventBody::Cancel(terms));
            self.release(slot, OrderEnding::Cancelled);
        } else {
            self.release(slot, OrderEnding::Filled);
        }
    }

    /// Elects stops that the last trade reached, one after the other: each may trade and elect more.
    fn elect(&mut self, book: u32) {
        loop {
            let desk = &mut self.desks[book as usize];
            let (Some(last), false) = (desk.last_trade, desk.quiet || desk.stops.is_empty()) else { return };
            let reached = |&slot: &u32| {
                let terms = &self.orders[slot as usize].terms;
                let stop_px = terms.stop_px.expect("a stop has its price");
                if terms.side == Side::Buy { last >= stop_px } else { last <= stop_px }
            };
            let Some(stop_index) = desk.stops.iter().position(reached) else { return };
            let slot = desk.stops.remove(stop_index);
            self.unlist(slot);
            let order = &mut self.orders[slot as usize];
            self.stops_of[order.terms.member as usize] -= 1;
            order.terms.kind =
                if order.terms.kind == OrderKind::Stop { OrderKind::Market } else { OrderKind::Limit };
            let terms = order.terms;
            self.emit(DayEventBody::Amend(terms));
            self.match_new(slot);
        }
    }

    /// Reports both sides of each fill of the order of `taker`, and prints it.
    fn report_fills(&mut self, taker: u32) {
        for n in 0..self.fills.len() {
            let Fill { tag: maker, px, qty, leaves } = self.fills[n];
            self.next_match += 1;
            self.fill(taker, maker, px, qty, LiquidityFlag::Aggressive);
            self.fill(maker, taker, px, qty, LiquidityFlag::Passive);
            let book = self.orders[taker as usize].terms.book;
            self.print(book, px, qty, false);
            if leaves == 0 {
                self.release(maker, OrderEnding::Filled);
            }
        }
    }

    fn fill(&mut self, slot: u32, other_slot: u32, px: i64, qty: i64, liq: LiquidityFlag) {
        let cpty = self.orders[other_slot as usize].terms.member;
        let order = &mut self.orders[slot as usize];
        order.filled_qty += qty;
        order.value += qty * px;
        let terms = order.terms;
        let owner = self.world.members[terms.member as usize].owner;
        let position = self.positions.entry((owner, self.world.instr_of(terms.book))).or_default();
        position.0 += if terms.side == Side::Buy { qty } else { -qty };
        position.1 += qty;
        self.emit(DayEventBody::Exec { order: terms, px, qty, match_id: self.next_match, liq, cpty });
    }

    fn print(&mut self, book: u32, px: i64, qty: i64, auction: bool) {
        let match_id = self.next_match;
        let desk = &mut self.desks[book as usize];
        desk.last_trade = Some(px);
        if let Some(volumes) = &mut desk.volumes {
            volumes.add(self.now, qty);
        }
        if !self.prints.is_empty()
            && let Some(prints) = self.prints.get_mut(&self.world.instr_of(book))
        {
            prints.add(self.now, px, qty, self.world.listed(book));
        }
        self.emit(DayEventBody::Trade { book, px, qty, match_id, auction });
    }

    /// Returns the sum of all long holdings in an instrument, those before the first day included.
    pub fn long_holdings(&self, instr: InstrumentId) -> i64 {
        let initial = |key: &(u32, InstrumentId)| self.initial_holdings.get(key).copied().unwrap_or(0);
        let trades = self.positions.iter().filter(|(key, _)| key.1 == instr);
        let traded_holdings = trades.map(|(key, net)| net.0 + initial(key));
        let keys = self.initial_holdings.keys().filter(|key| key.1 == instr);
        let other_holdings = keys.filter(|key| !self.positions.contains_key(key)).map(initial);
        traded_holdings.chain(other_holdings).map(|qty| qty.max(0)).sum()
    }

    fn list(&mut self, slot: u32) {
        let order = &mut self.orders[slot as usize];
        if order.crowd {
            let crowd = &mut self.desks[order.terms.book as usize].crowd;
            order.crowd_index = Some(crowd.len() as u32);
            crowd.push(slot);
            self.live_of[order.terms.member as usize] += 1;
        }
    }

    fn unlist(&mut self, slot: u32) {
        let order = &mut self.orders[slot as usize];
        let Some(crowd_index) = order.crowd_index.take() else { return };
        let crowd = &mut self.desks[order.terms.book as usize].crowd;
        crowd.swap_remove(crowd_index as usize);
        self.live_of[order.terms.member as usize] -= 1;
        if let Some(&moved) = crowd.get(crowd_index as usize) {
            self.orders[moved as usize].crowd_index = Some(crowd_index);
        }
    }

    fn release(&mut self, slot: u32, ending: OrderEnding) {
        self.unlist(slot);
        let order = &mut self.orders[slot as usize];
        if let Some(lives) = &mut self.lives {
            let (seq_entered, ts_entered) = order.entered;
            let (filled_qty, value) = (order.filled_qty, order.value);
            let (seq_ended, ts_ended) = (self.seq, self.now);
            let terms = order.terms;
            lives.push(OrderLife {
                terms,
                filled_qty,
                value,
                seq_entered,
                ts_entered,
                seq_ended,
                ts_ended,
                ending,
            });
        }
        order.terms.oid = 0;
        order.handle = None;
        self.free.push(slot);
    }

    /// Publishes the best of a book that trades continuously, if it is another than before.
    fn publish(&mut self, book: u32) {
        let desk = &mut self.desks[book as usize];
        if desk.phase != MarketPhase::Open {
            return;
        }
        let sides = [Side::Buy, Side::Sell].map(|side| desk.book.best(side));
        if sides == desk.published {
            return;
        }
        desk.published = sides;
        let [bid, ask] = sides;
        self.emit(DayEventBody::Bbo { book, bid, ask });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sim, SimConfig};
    use super::*;

    /// A slot that is not given back grows the day with its events; a stray trade far from the others makes prices absurd.
    #[test]
    fn memory_follows_the_live_orders_and_prices_stay_near() {
        let config = SimConfig {
            events: 150_000,
            instruments: 12,
            plant: [].into(),
            near_misses: [].into(),
            ..SimConfig::default()
        };
        let mut sim = Sim::new(config).expect("a good config");
        let (mut steps, mut trades, mut most) = (0, 0, 0);
        while sim.step().is_some() {
            let x = &sim.x;
            for event in &x.out {
                if let DayEventBody::Trade { book, px, .. } = event.body {
                    let reference = x.world.listed(book).reference;
                    assert!((px - reference).abs() * 100 < reference * 10, "{event:?}");
                    trades += 1;
                }
            }
            let live = x.orders.len() - x.free.len();
            most = most.max(live);
            steps += 1;
            if steps % 1_000 == 0 {
                assert_eq!(live, (0..x.desks.len()).map(|book| x.all_of(book as u32).len()).sum::<usize>());
            }
        }
        assert!(trades > 5_000 && sim.x.orders.len() <= most + 2, "{trades}, {most}");
        assert_eq!(sim.x.orders.len(), sim.x.free.len(), "orders outlive the day");
    }
}
