//! The stream itself: one request after the other, and what the books make of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use unitape_model::{Dictionary, EventKind, FrameHeader, NameKind, Side, UnixNanos, flags};

use super::frames::{FrameWriter, OrderOrigin, OrderTerms};
use super::population::{Population, draw_uneven};
use crate::book::{BestLevel, Fill, IncomingOrder, MatchingBook, OrderHandle};
use crate::rng::Rng;

/// How large a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveillanceConfig {
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Events, from 1.
    pub events: u64,
    /// Instruments, from 1.
    pub instruments: u32,
    /// Traders, from 1 to [`SurveillanceConfig::TRADERS_MAX`].
    pub traders: u32,
    /// Orders that rest in the books from 40 % of the events on.
    pub open_orders: u32,
    /// Time of the first event.
    pub start: UnixNanos,
    /// Time from the first to the last event, in seconds.
    pub seconds: u32,
    /// Every cancel and execution names all it has; otherwise one in five names only its order.
    pub names_all: bool,
}

impl Default for SurveillanceConfig {
    /// Returns 10 M events over four hours, 100,000 instruments, 2,000 traders, 1 M open orders.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 10_000_000,
            instruments: 100_000,
            traders: 2_000,
            open_orders: 1_000_000,
            start: UnixNanos(1_772_438_400_000_000_000), // 2026-03-02T08:00:00Z
            seconds: 4 * 3600,
            names_all: false,
        }
    }
}

impl SurveillanceConfig {
    /// The most traders: their names have five digits.
    pub const TRADERS_MAX: u32 = 99_999;

    /// Returns the configuration of a stream with `events` events and unchanged density. For example, a tenth of the
    /// events has a tenth of the instruments and open orders, in a tenth of the time.
    pub fn with_events(events: u64) -> Self {
        let full = Self::default();
        let part = |full_count: u32| {
            ((u64::from(full_count) * events).div_ceil(full.events)).clamp(1, u64::from(full_count) * 1000)
                as u32
        };
        Self {
            events,
            instruments: part(full.instruments),
            traders: part(full.traders).clamp(100, Self::TRADERS_MAX),
            open_orders: part(full.open_orders),
            seconds: part(full.seconds),
            ..full
        }
    }
}

/// Counts of the stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurveillanceCounts {
    /// Events in all.
    pub events: u64,
    /// `ref` of the instruments.
    pub references: u64,
    /// `party` of the traders' owners.
    pub parties: u64,
    /// New orders.
    pub orders: u64,
    /// Amended orders.
    pub amends: u64,
    /// Cancelled orders.
    pub cancels: u64,
    /// Cancels that name only the order.
    pub bare_cancels: u64,
    /// Executions, one for each side.
    pub executions: u64,
    /// Executions that name only the order.
    pub bare_executions: u64,
    /// Prints.
    pub trades: u64,
    /// Best prices.
    pub best_prices: u64,
    /// Orders that rest now.
    pub open_orders: u64,
    /// The most that rested at once.
    pub open_orders_max: u64,
    /// Planted trades of an owner with itself.
    pub wash_trades: u64,
    /// Planted layers of large orders that go when a small one has traded.
    pub layerings: u64,
    /// Planted floods of orders that are cancelled at once.
    pub floods: u64,
}

/// The stream.
#[derive(Debug)]
pub struct SurveillanceStream {
    config: SurveillanceConfig,
    rng: Rng,
    people: Population,
    books: Vec<MatchingBook>,
    /// The best prices of each listing that were written last.
    written: Vec<[Option<BestLevel>; 2]>,
    orders: Vec<OpenOrder>,
    free: Vec<u32>,
    /// The orders that rest, in no order.
    open: Vec<u32>,
    agenda: BinaryHeap<Reverse<PlannedStep>>,
    now: i64,
    burst_left: u64,
    orders_made: u64,
    matches_made: u64,
    steps_planned: u64,
    fills: Vec<Fill>,
    counts: SurveillanceCounts,
}

#[derive(Clone, Copy, Debug)]
struct OpenOrder {
    terms: OrderTerms,
    /// Executed until now: an amend says the whole quantity, this included.
    executed: i64,
    /// `None` until the order has rested.
    handle: Option<OrderHandle>,
    /// The order's index among the open orders, or [`GONE`].
    open_index: u32,
}

/// A step of a planted scene that is due later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlannedStep {
    due: i64,
    /// Steps of one time are taken in the order in which they were planned.
    number: u64,
    action: PlannedAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PlannedAction {
    /// Cancels the order in this slot, if it still has this number.
    Cancel { slot: u32, order: u64 },
    /// Enters and cancels an order, with `left` more to follow.
    Flood { listing: u32, trader: u32, left: u32 },
    /// An order to buy at this price.
    Buy { listing: u32, trader: u32, px: i64, qty: i64 },
}

impl SurveillanceStream {
    /// Makes the stream of this seed and size.
    ///
    /// # Panics
    /// Panics if there are no events, instruments or traders, or if there are more traders than a name has room for.
    pub fn new(config: SurveillanceConfig) -> Self {
        assert!(config.events > 0 && config.instruments > 0, "a stream without events or instruments");
        let traders = 1..=SurveillanceConfig::TRADERS_MAX;
        assert!(traders.contains(&config.traders), "{} traders, from {traders:?}", config.traders);
        let mut rng = Rng::new(config.seed);
        let people = Population::new(config.instruments, config.traders, &mut rng);
        let books = people.listings.len();
        Self {
            config,
            rng,
            books: (0..books).map(|_| MatchingBook::default()).collect(),
            written: vec![[None; 2]; books],
            people,
            orders: Vec::new(),
            free: Vec::new(),
            open: Vec::new(),
            agenda: BinaryHeap::new(),
            now: config.start.0,
            burst_left: 0,
            orders_made: 0,
            matches_made: 0,
            steps_planned: 0,
            fills: Vec::new(),
            counts: SurveillanceCounts::default(),
        }
    }

    /// Returns the names of all ids in the frames.
    pub fn names(&self) -> &Dictionary {
        &self.people.names
    }

    /// Returns the counts of the stream so far.
    pub fn counts(&self) -> &SurveillanceCounts {
        &self.counts
    }

    /// Appends the definitions of all names as frames, unstamped. A tape of the stream begins with them.
    pub fn write_definitions(&self, out: &mut Vec<u8>) {
        let from = out.len();
        for dict in NameKind::ALL {
            for id in 1..=self.names().len(dict) {
                let name = self.names().name(dict, id).expect("an id of the dictionary");
                FrameWriter { out, ts: UnixNanos(0) }.definition(dict, id, name);
            }
        }
        flag_last(out, from);
    }

    /// Appends the frames of the next request, unstamped, the last one flagged so; false at the end of the stream.
    pub fn next_unit(&mut self, out: &mut Vec<u8>) -> bool {
        if self.counts.events >= self.config.events {
            return false;
        }
        let from = out.len();
        while out.len() == from {
            self.step(out);
        }
        // The stream has exactly as many events as it was asked for.
        let left = (self.config.events - self.counts.events) as usize;
        let end = unitape_model::frames(&out[from..]).nth(left).map(|(offset, ..)| from + offset);
        out.truncate(end.unwrap_or(out.len()));
        unitape_model::frames(&out[from..]).for_each(|(_, _, frame)| self.count(frame));
        flag_last(out, from);
        self.counts.open_orders = self.open.len() as u64;
        self.counts.open_orders_max = self.counts.open_orders_max.max(self.counts.open_orders);
        true
    }

    fn count(&mut self, frame: &[u8]) {
        let counts = &mut self.counts;
        counts.events += 1;
        let kind = EventKind::from_u8(FrameHeader::read(frame).kind()).expect("a kind of ours");
        let is_bare = OrderTerms::is_bare(frame);
        match kind {
            EventKind::Ref => counts.references += 1,
            EventKind::Party => counts.parties += 1,
            EventKind::OrderNew => counts.orders += 1,
            EventKind::OrderAmend => counts.amends += 1,
            EventKind::OrderCancel => {
                counts.cancels += 1;
                counts.bare_cancels += u64::from(is_bare);
            }
            EventKind::Exec => {
                counts.executions += 1;
                counts.bare_executions += u64::from(is_bare);
            }
            EventKind::Trade => counts.trades += 1,
            _ => counts.best_prices += 1,
        }
    }

    fn step(&mut self, out: &mut Vec<u8>) {
        let made = self.counts.events;
        let (instruments, traders) = (u64::from(self.config.instruments), u64::from(self.config.traders));
        if made < instruments {
            let first = self.people.first_listing[made as usize];
            return self.writer(out).reference(&self.people.listings[first as usize]);
        }
        if made < instruments + traders {
            let trader = self.people.traders[(made - instruments) as usize];
            return self.writer(out).party(&trader);
        }
        self.advance();
        if self.agenda.peek().is_some_and(|step| step.0.due <= self.now)
            && let Some(Reverse(step)) = self.agenda.pop()
        {
            return self.perform(step.action, out);
        }
        let is_full = self.open.len() as u64 >= self.open_wanted();
        let (enters, amends, takes) = if is_full { (4_300, 1_300, 400) } else { (6_500, 1_300, 400) };
        match self.rng.below(10_000) {
            0 => self.plan_wash_trade(out),
            1 => self.plan_layering(out),
            2 if self.rng.one_in(2) => self.plan_flood(),
            n if n < enters || self.open.is_empty() => self.enter(out),
            n if n < enters + amends => self.amend(out),
            n if n < enters + amends + takes => self.take_liquidity(out),
            _ => {
                let slot = self.pick_open();
                self.cancel(slot, out);
            }
        }
    }

    /// Orders that should rest by now.
    fn open_wanted(&self) -> u64 {
        let (all, made) = (u64::from(self.config.open_orders), self.counts.events);
        all.min((u128::from(all) * u128::from(made) * 5 / (u128::from(self.config.events) * 2)) as u64)
    }

    /// Moves the time on: events of a burst are microseconds apart, and bursts begin when their share of the day has come.
    fn advance(&mut self) {
        if self.burst_left > 0 {
            self.burst_left -= 1;
            self.now += 1_000 + self.rng.below(30_000) as i64;
            return;
        }
        self.burst_left = draw_uneven(400, 2, &mut self.rng);
        self.now = (self.now + 1_000).max(self.config.start.0 + self.due_ns());
    }

    /// Computes when the next event is due, in nanoseconds after the start. More events are due at the start and at the
    /// end.
    fn due_ns(&self) -> i64 {
        const SHARES: [u128; 8] = [20, 12, 9, 7, 6, 8, 13, 25];
        let all = u128::from(self.config.events);
        let part_ns = u128::from(self.config.seconds) * 1_000_000_000 / SHARES.len() as u128;
        let mut progress = u128::from(self.counts.events) * 100;
        for (n, share) in SHARES.into_iter().enumerate() {
            if progress < share * all {
                return (n as u128 * part_ns + progress * part_ns / (share * all)) as i64;
            }
            progress -= share * all;
        }
        (SHARES.len() as u128 * part_ns) as i64
    }

    fn writer<'a>(&self, out: &'a mut Vec<u8>) -> FrameWriter<'a> {
        FrameWriter { out, ts: UnixNanos(self.now) }
    }

    fn origin(&self, terms: &OrderTerms) -> OrderOrigin {
        OrderOrigin {
            trader: self.people.traders[terms.trader as usize],
            listing: self.people.listings[terms.listing as usize],
        }
    }

    fn plan(&mut self, after_ns: i64, action: PlannedAction) {
        self.steps_planned += 1;
        self.agenda.push(Reverse(PlannedStep {
            due: self.now + after_ns,
            number: self.steps_planned,
            action,
        }));
    }

    fn perform(&mut self, action: PlannedAction, out: &mut Vec<u8>) {
        match action {
            PlannedAction::Cancel { slot, order } => {
                let is_open = self.orders[slot as usize].open_index != GONE;
                if is_open && self.orders[slot as usize].terms.number == order {
                    self.cancel(slot, out);
                }
            }
            PlannedAction::Flood { listing, trader, left } => {
                let px = self.passive(listing, Side::Buy, 3);
                if let Some(slot) =
                    self.submit(OrderTerms { listing, trader, side: Side::Buy, px, qty: 100, number: 0 }, out)
                {
                    self.cancel(slot, out);
                }
                if left > 1 {
                    // No pause between two bursts lies within a flood: it is over within a second.
                    self.burst_left = self.burst_left.max(2 * u64::from(left));
                    let after = 1_000 + self.rng.below(20_000) as i64;
                    self.plan(after, PlannedAction::Flood { listing, trader, left: left - 1 });
                }
            }
            PlannedAction::Buy { listing, trader, px, qty } => {
                self.submit(OrderTerms { listing, trader, side: Side::Buy, px, qty, number: 0 }, out);
            }
        }
    }

    /// Plans a wash trade: one trader sells inside the spread, and soon a trader of the same owner buys that order.
    fn plan_wash_trade(&mut self, out: &mut Vec<u8>) {
        let seller = self.trader();
        let partner = (seller + 1) % self.config.traders;
        let owner = |trader_index: u32| self.people.traders[trader_index as usize].owner;
        let trader = if owner(partner) == owner(seller) { partner } else { seller };
        let listing = self.people.listing(&mut self.rng);
        let bid = self.books[listing as usize].best(Side::Buy);
        let ask = self.books[listing as usize].best(Side::Sell);
        let px = bid.map_or(self.people.listings[listing as usize].reference, |bid| bid.px + 1);
        if ask.is_some_and(|ask| ask.px <= px) {
            // No room inside the spread: the order would first meet an order of another trader.
            return self.enter(out);
        }
        let qty = 100 * self.rng.between(1, 50);
        self.submit(OrderTerms { listing, trader: seller, side: Side::Sell, px, qty, number: 0 }, out);
        let after = 1_000_000 + self.rng.below(200_000_000) as i64;
        self.plan(after, PlannedAction::Buy { listing, trader, px, qty });
        self.counts.wash_trades += 1;
    }

    /// Plans layering: five large orders to sell, a small order that buys, and the cancels of the large orders.
    fn plan_layering(&mut self, out: &mut Vec<u8>) {
        let trader = self.trader();
        let listing = self.people.listing(&mut self.rng);
        let ask = self.books[listing as usize].best(Side::Sell);
        for away in 1..=5 {
            let px = ask.map_or(self.people.listings[listing as usize].reference, |ask| ask.px) + away;
            let qty = 100 * self.rng.between(100, 400);
            if let Some(slot) =
                self.submit(OrderTerms { listing, trader, side: Side::Sell, px, qty, number: 0 }, out)
            {
                let order = self.orders[slot as usize].terms.number;
                let after = 200_000_000 + away * 10_000_000 + self.rng.below(600_000_000) as i64;
                self.plan(after, PlannedAction::Cancel { slot, order });
            }
        }
        if let Some(ask) = ask {
            let after = 50_000_000 + self.rng.below(100_000_000) as i64;
            self.plan(after, PlannedAction::Buy { listing, trader, px: ask.px, qty: 100 });
        }
        self.counts.layerings += 1;
    }

    fn plan_flood(&mut self) {
        let (trader, listing) = (self.trader(), self.people.listing(&mut self.rng));
        self.plan(0, PlannedAction::Flood { listing, trader, left: 80 });
        self.counts.floods += 1;
    }

    fn trader(&mut self) -> u32 {
        draw_uneven(self.config.traders.into(), 3, &mut self.rng) as u32
    }

    /// Enters an order that rests: most rest near the best price, some far away.
    fn enter(&mut self, out: &mut Vec<u8>) {
        let (trader, listing) = (self.trader(), self.people.listing(&mut self.rng));
        let side = if self.rng.one_in(2) { Side::Buy } else { Side::Sell };
        let away = self.rng.halving() * 3 + self.rng.below(4) as i64;
        let px = self.passive(listing, side, away);
        let qty = 100 * (1 + self.rng.halving() * 4 + self.rng.below(5) as i64);
        self.submit(OrderTerms { listing, trader, side, px, qty, number: 0 }, out);
    }

    /// Returns a price `away` ticks from the best price of its side, at which no order matches.
    fn passive(&self, listing: u32, side: Side, away: i64) -> i64 {
        let book = &self.books[listing as usize];
        let (best, opposite_best) = (book.best(side), book.best(side.opposite()));
        let toward = if side == Side::Buy { -1 } else { 1 };
        let opposite_px = opposite_best.map(|level| level.px + toward);
        let from = best.map(|best| best.px - toward).or(opposite_px);
        let px = from.unwrap_or(self.people.listings[listing as usize].reference) + toward * away;
        let px = match (side, opposite_px) {
            (Side::Buy, Some(opposite_px)) => px.min(opposite_px),
            (_, Some(opposite_px)) => px.max(opposite_px),
            _ => px,
        };
        px.max(1)
    }

    /// Sends an order that takes the best price of a book in which an order rests.
    fn take_liquidity(&mut self, out: &mut Vec<u8>) {
        let slot = self.pick_open();
        let resting = self.orders[slot as usize].terms;
        let best = self.books[resting.listing as usize].best(resting.side).expect("an order rests there");
        let trader = self.trader();
        let qty = match self.rng.below(4) {
            0 => best.qty,
            1 => best.qty + 100,
            _ => 100 * (1 + self.rng.below(5) as i64),
        };
        let side = resting.side.opposite();
        self.submit(OrderTerms { trader, side, px: best.px, qty, ..resting }, out);
    }

    fn amend(&mut self, out: &mut Vec<u8>) {
        let slot = self.pick_open();
        let OpenOrder { mut terms, executed, handle, .. } = self.orders[slot as usize];
        if self.rng.one_in(2) {
            terms.qty = if terms.qty > 100 && self.rng.one_in(2) { terms.qty - 100 } else { terms.qty + 100 };
        } else {
            let away = self.rng.below(6) as i64;
            terms.px = self.passive(terms.listing, terms.side, away);
        }
        // Its own price may have been the best one, so that the new price is not behind the others any more. It never matches.
        let handle = handle.expect("an open order rests");
        let placed = self.books[terms.listing as usize].amend(handle, terms.px, terms.qty, &mut self.fills);
        assert!(self.fills.is_empty(), "a passive price matches nothing");
        let order = &mut self.orders[slot as usize];
        (order.terms, order.handle) = (terms, placed.handle);
        let origin = self.origin(&terms);
        let full_terms = OrderTerms { qty: terms.qty + executed, ..terms };
        self.writer(out).order(EventKind::OrderAmend, &full_terms, &origin);
        self.best_prices(terms.listing, out);
    }

    fn cancel(&mut self, slot: u32, out: &mut Vec<u8>) {
        let OpenOrder { terms, handle, .. } = self.orders[slot as usize];
        self.books[terms.listing as usize].cancel(handle.expect("an open order rests"));
        self.remove(slot);
        let is_bare = self.rng.one_in(5) && !self.config.names_all;
        let origin = self.origin(&terms);
        let mut writer = self.writer(out);
        if is_bare {
            writer.bare_cancel(&terms, origin.listing.venue);
        } else {
            writer.order(EventKind::OrderCancel, &terms, &origin);
        }
        self.best_prices(terms.listing, out);
    }

    /// Submits a new order, which gets a number. Returns its slot if it rests.
    fn submit(&mut self, mut terms: OrderTerms, out: &mut Vec<u8>) -> Option<u32> {
        self.orders_made += 1;
        terms.number = self.orders_made;
        let OrderTerms { listing, side, px, qty, .. } = terms;
        let origin = self.origin(&terms);
        self.writer(out).order(EventKind::OrderNew, &terms, &origin);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.orders.push(OpenOrder { terms, executed: 0, handle: None, open_index: GONE });
            self.orders.len() as u32 - 1
        });
        let incoming = IncomingOrder { tag: slot, side, limit: Some(px), qty, may_rest: true };
        let mut fills = std::mem::take(&mut self.fills);
        let placed = self.books[listing as usize].submit(incoming, &mut fills);
        for fill in fills.drain(..) {
            self.execute(&terms, fill, out);
        }
        self.fills = fills;
        terms.qty = placed.leaves;
        if placed.handle.is_some() {
            let open_index = self.open.len() as u32;
            let executed = qty - placed.leaves;
            self.orders[slot as usize] = OpenOrder { terms, executed, handle: placed.handle, open_index };
            self.open.push(slot);
        } else {
            self.free.push(slot);
        }
        self.best_prices(listing, out);
        placed.handle.map(|_| slot)
    }

    /// Writes both sides of an execution, and its print.
    fn execute(&mut self, incoming: &OrderTerms, fill: Fill, out: &mut Vec<u8>) {
        self.matches_made += 1;
        let resting = self.orders[fill.tag as usize].terms;
        if fill.leaves == 0 {
            self.remove(fill.tag);
        } else {
            let order = &mut self.orders[fill.tag as usize];
            order.terms.qty = fill.leaves;
            order.executed += fill.qty;
        }
        for (terms, is_passive) in [(&resting, true), (incoming, false)] {
            let is_bare = self.rng.one_in(5) && !self.config.names_all;
            let (origin, match_id) = (self.origin(terms), self.matches_made);
            let mut writer = self.writer(out);
            if is_bare {
                writer.bare_execution(terms, origin.listing.venue, fill.qty);
            } else {
                let terms = OrderTerms { px: fill.px, qty: fill.qty, ..*terms };
                writer.execution(&terms, &origin, match_id, is_passive);
            }
        }
        let listing = self.people.listings[incoming.listing as usize];
        self.writer(out).trade(&listing, fill.px, fill.qty, self.matches_made);
    }

    /// Writes the best prices of a listing if they changed.
    fn best_prices(&mut self, listing: u32, out: &mut Vec<u8>) {
        let book = &self.books[listing as usize];
        let best = [book.best(Side::Buy), book.best(Side::Sell)];
        if std::mem::replace(&mut self.written[listing as usize], best) != best {
            let venue_listing = self.people.listings[listing as usize];
            self.writer(out).best_prices(&venue_listing, best);
        }
    }

    /// Picks a resting order: in most cases one of the last few, because most orders leave soon.
    fn pick_open(&mut self) -> u32 {
        let all = self.open.len() as u64;
        let back = if self.rng.one_in(3) { self.rng.below(all) } else { draw_uneven(all, 4, &mut self.rng) };
        self.open[(all - 1 - back) as usize]
    }

    fn remove(&mut self, slot: u32) {
        let open_index = self.orders[slot as usize].open_index;
        self.open.swap_remove(open_index as usize);
        if let Some(&moved) = self.open.get(open_index as usize) {
            self.orders[moved as usize].open_index = open_index;
        }
        self.orders[slot as usize].open_index = GONE;
        self.free.push(slot);
    }
}

/// Flags the last of the frames from `from` on as the end of a unit.
fn flag_last(out: &mut [u8], from: usize) {
    let Some((offset, header, _)) = unitape_model::frames(&out[from..]).last() else { return };
    let bits = header.flags() | flags::LAST;
    FrameHeader::new_unstamped(header.kind(), bits, header.lines()).write(&mut out[from + offset..]);
}

/// The index of an order that is not open.
const GONE: u32 = u32::MAX;
