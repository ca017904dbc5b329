//! The slow twin: the same books, each thing done the obvious way with a map, for tests and benches.
//!
//! It keeps quantities as whole numbers of 10^-12, so it is right only for input that fits those; it knows no bounds.

mod fields;
mod wide;

use self::fields::Fields;
use crate::books::Books;
use crate::fault::{BookFault, BookFaultCounts};
use crate::value::{Basis, QuoteFlags, SessionPhase};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use unitape_model::{Amount, Event, EventField, EventKind, InstrumentId, Price, Side, flags};

/// All books, slowly.
#[derive(Default)]
pub struct Naive {
    listings: Vec<Listing>,
    statements: Vec<(u16, InstrumentId, Said)>,
    /// Order events that name no instrument: the feed of the twin's input is one, so each may be any order.
    unnamed: usize,
    all_venues: Option<u16>,
    stale_after_ns: Option<i64>,
    now: i64,
    /// The number of the current event.
    number: u64,
}

/// The statement of an event about listings.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Phase(SessionPhase),
    Stale,
    Recovered,
    Restarted,
    Halted(bool),
}

#[derive(Default)]
struct Listing {
    venue: u16,
    instrument: InstrumentId,
    phase: SessionPhase,
    /// By side, by how bad the price is, then by arrival.
    queues: BTreeMap<(Side, i128, u64), Order>,
    /// The places of orders in the queues.
    places: BTreeMap<String, (Side, i128, u64)>,
    aside: BTreeMap<String, Order>,
    matching: Option<String>,
    arrivals: u64,
    /// Best first.
    levels: [Vec<Rung>; 2],
    bbo: [Option<Rung>; 2],
    /// By side of `bbo`, the number of the last event that stated the side, and of the last event that made it stale.
    stated: [u64; 2],
    bbo_lost: u64,
    has_data: [bool; 3],
    stale: [bool; 3],
    ts: [i64; 3],
    /// The source and offset of the event that made a basis stale.
    lost: [Option<(u32, u32)>; 3],
    halted: bool,
    /// The number of events without an instrument before its last clear.
    cleared: usize,
    faults: BookFaultCounts,
    source: (u32, u32),
}

#[derive(Clone)]
struct Order {
    oid: String,
    side: Side,
    px: Option<i64>,
    left: i128,
    done: i128,
    hidden: bool,
    /// No more than this is seen.
    display: Option<i128>,
}

#[derive(Clone, Copy)]
struct Rung {
    px: i64,
    qty: i128,
    orders: Option<u64>,
}

const PLACES: i8 = 12;
const PREFER: [Basis; 3] = [Basis::Bbo, Basis::Levels, Basis::Orders];

fn badness(side: Side, px: i64) -> i128 {
    if side == Side::Buy { -i128::from(px) } else { px.into() }
}

/// The place of no event.
const NOWHERE: (u32, u32) = (u32::MAX, u32::MAX);

type Outcome = Result<(), BookFault>;

impl Naive {
    /// Makes an empty set of books.
    pub fn new(stale_after_ns: Option<i64>, all_venues: Option<u16>) -> Self {
        Self { stale_after_ns, all_venues, now: i64::MIN, ..Self::default() }
    }

    /// Takes the next event.
    pub fn on_event(&mut self, event: &Event<'_>) {
        self.number += 1;
        let kind = event.kind();
        let order = matches!(
            kind,
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec
        );
        if kind == EventKind::Session {
            return self.on_session(event);
        }
        let f = Fields(event);
        if kind == EventKind::Status {
            return self.on_status(event);
        }
        if !order && kind != EventKind::Level && kind != EventKind::Bbo {
            return;
        }
        let (oid, instrument) = (f.text(EventField::Oid), event.instrument());
        self.now = self.now.max(event.ts_event().0);
        if order && (oid.is_none() || instrument == InstrumentId::NONE) {
            self.unnamed += 1;
            for l in self.listings.iter_mut().filter(|l| l.has_data[Basis::Orders as usize]) {
                l.lost[Basis::Orders as usize] = Some((event.source(), event.offset()));
            }
            return;
        }
        if instrument == InstrumentId::NONE {
            return;
        }
        let (unnamed, number) = (self.unnamed, self.number);
        let listing = self.listing(event.venue(), instrument);
        let late = event.header().flags() & flags::LATE != 0;
        let out_of_turn = late && event.source() == listing.source.0 && event.offset() < listing.source.1;
        if !late {
            listing.source = (event.source(), event.offset());
        }
        let basis = match kind {
            EventKind::Level => Basis::Levels,
            EventKind::Bbo => Basis::Bbo,
            _ => Basis::Orders,
        };
        let outcome = match (kind, oid) {
            _ if out_of_turn => Err(BookFault::Late),
            (EventKind::Level, _) => listing.on_level(&f),
            (EventKind::Bbo, _) if f.flag(EventField::Partial) => listing.on_partial_bbo(&f, number),
            (EventKind::Bbo, _) => listing.on_bbo(&f),
            (EventKind::OrderNew, Some(oid)) => {
                listing.on_new(oid, &f, event.header().flags() & flags::SNAPSHOT != 0)
            }
            (EventKind::OrderAmend, Some(oid)) => listing.on_amend(&oid, &f),
            (EventKind::OrderCancel, Some(oid)) => listing.on_cancel(&oid, &f),
            (_, Some(oid)) => listing.on_exec(&oid, &f),
            (_, None) => Ok(()),
        };
        if let Err(fault) = outcome {
            listing.faults.count(fault);
            listing.stale[basis as usize] |= fault != BookFault::Late;
            if fault != BookFault::Late && basis == Basis::Bbo {
                listing.bbo_lost = number;
            }
        }
        if outcome != Err(BookFault::Late) {
            let first = !std::mem::replace(&mut listing.has_data[basis as usize], true);
            if first && basis == Basis::Orders && unnamed > listing.cleared {
                listing.lost[Basis::Orders as usize] = Some(NOWHERE);
            }
            listing.ts[basis as usize] = event.ts_event().0;
        }
    }

    /// Writes everything that can be seen of the books as text.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        for l in &self.listings {
            writeln!(out, "listing {} {} {:?}", l.venue, l.instrument, l.phase).expect("text");
            for basis in Basis::ALL.into_iter().filter(|b| l.has_data[*b as usize]) {
                let top = l.top(basis);
                let mut marks = l.phase.marks().union(crossed(top));
                if l.halted {
                    marks = marks.union(QuoteFlags::HALTED);
                }
                if self.is_stale(l, basis) {
                    marks = marks.union(QuoteFlags::STALE);
                }
                writeln!(out, " {} {marks:?} {}", basis.name(), l.ts[basis as usize]).expect("text");
                for side in Side::BOTH {
                    for (px, qty, orders) in l.rungs(basis, side) {
                        let orders = orders.map(|n| n.to_string()).unwrap_or_default();
                        writeln!(out, "  {} {} {} {orders}", side.letter(), Price(px), amount(qty))
                            .expect("text");
                        let queue = |o: &&Order| basis == Basis::Orders && o.side == side && o.px == Some(px);
                        l.queues.values().filter(queue).for_each(|o| out.push_str(&o.dump()));
                    }
                }
                if basis == Basis::Orders {
                    let mut aside: Vec<_> = l.aside.values().map(Order::dump).collect();
                    aside.sort();
                    out.extend(aside);
                }
            }
            let best = self.basis(l).map(|b| (b, l.top(b)));
            writeln!(
                out,
                " best {:?}",
                best.map(|(b, t)| (b.name(), t.map(|t| t.map(|t| (t.0, amount(t.1))))))
            )
            .expect("text");
            let met: Vec<_> = l.faults.nonzero().map(|(f, n)| (f.name(), n)).collect();
            writeln!(out, " faults {met:?}").expect("text");
        }
        let mut instruments = Vec::new();
        self.listings.iter().for_each(|l| {
            if !instruments.contains(&l.instrument) {
                instruments.push(l.instrument);
            }
        });
        for instrument in instruments {
            let (mut sides, mut left_out) = ([Vec::new(), Vec::new()], false);
            for l in self
                .listings
                .iter()
                .filter(|l| l.instrument == instrument && self.all_venues != Some(l.venue))
            {
                let Some(basis) = self.basis(l).filter(|_| l.is_continuous()) else { continue };
                if self.is_stale(l, basis) {
                    left_out = true;
                    continue;
                }
                for (side, touch) in sides.iter_mut().zip(l.top(basis)) {
                    side.extend(touch.map(|(px, qty)| (px, qty, l.venue)));
                }
            }
            let [bids, asks] = &sides;
            let best = [bids.iter().map(|b| b.0).max(), asks.iter().map(|a| a.0).min()];
            let sides = [(bids, best[0]), (asks, best[1])].map(|(side, best)| {
                let best = best?;
                let at: Vec<_> = side.iter().filter(|t| t.0 == best).collect();
                Some((best, amount(at.iter().map(|t| t.1).sum()), at[0].2, at.len()))
            });
            let mut marks = crossed([best[0].map(|p| (p, 0)), best[1].map(|p| (p, 0))]);
            if left_out {
                marks = marks.union(QuoteFlags::STALE);
            }
            writeln!(out, "over {instrument} {sides:?} {marks:?}").expect("text");
        }
        out
    }

    fn is_stale(&self, l: &Listing, basis: Basis) -> bool {
        let old = |after| self.now.saturating_sub(l.ts[basis as usize]) > after;
        let lost = l.lost[basis as usize].is_some();
        l.stale[basis as usize] || lost || self.stale_after_ns.is_some_and(old)
    }

    fn basis(&self, l: &Listing) -> Option<Basis> {
        let known: Vec<Basis> = PREFER.into_iter().filter(|b| l.has_data[*b as usize]).collect();
        known.iter().find(|b| !self.is_stale(l, **b)).or(known.first()).copied()
    }
}

fn crossed(top: [Option<(i64, i128)>; 2]) -> QuoteFlags {
    match top {
        [Some(bid), Some(ask)] if bid.0 > ask.0 => QuoteFlags::CROSSED,
        [Some(bid), Some(ask)] if bid.0 == ask.0 => QuoteFlags::LOCKED,
        _ => QuoteFlags::default(),
    }
}

fn amount(qty: i128) -> String {
    Amount::new(qty, -PLACES).expect("a quantity of a test").to_string()
}

impl Order {
    /// Returns the visible quantity.
    fn shown(&self) -> i128 {
        self.display.map_or(self.left, |display| display.min(self.left))
    }

    fn dump(&self) -> String {
        let px = self.px.map(|px| Price(px).to_string());
        // A long id is seen only as a hash, and is printed as such.
        let oid = if self.oid.len() > 25 { "#" } else { &self.oid[1..] };
        format!("   {oid} {} {px:?} {} {}\n", self.side.letter(), amount(self.left), amount(self.done))
    }
}

impl Listing {
    fn is_continuous(&self) -> bool {
        self.phase.is_continuous() && !self.halted
    }

    fn clear(&mut self) {
        self.matching = None;
        self.queues.clear();
        self.places.clear();
        self.aside.clear();
        self.levels = Default::default();
        self.bbo = Default::default();
        (self.stated, self.bbo_lost) = Default::default();
        (self.has_data, self.stale, self.lost) = Default::default();
    }

    fn find(&mut self, oid: &str) -> Option<&mut Order> {
        match self.places.get(oid) {
            Some(place) => self.queues.get_mut(place),
            None => self.aside.get_mut(oid),
        }
    }

    fn take(&mut self, oid: &str) -> Option<Order> {
        if self.matching.as_deref() == Some(oid) {
            self.matching = None;
        }
        match self.places.remove(oid) {
            Some(place) => self.queues.remove(&place),
            None => self.aside.remove(oid),
        }
    }

    fn best(&self, side: Side) -> Option<i64> {
        let (place, order) = self.queues.range((side, i128::MIN, 0)..).next()?;
        order.px.filter(|_| place.0 == side)
    }

    fn meets(&self, order: &Order) -> bool {
        match (order.px, self.best(order.side.opposite()), order.side) {
            (Some(px), Some(best), Side::Buy) => best <= px,
            (Some(px), Some(best), Side::Sell) => best >= px,
            _ => false,
        }
    }

    fn place(&mut self, order: Order) {
        let Some(px) = order.px.filter(|_| !order.hidden) else {
            self.aside.insert(order.oid.clone(), order);
            return;
        };
        if self.is_continuous() && self.meets(&order) {
            self.matching = Some(order.oid.clone());
            self.aside.insert(order.oid.clone(), order);
        } else {
            self.queue(order, px);
        }
    }

    fn queue(&mut self, order: Order, px: i64) {
        self.arrivals += 1;
        let place = (order.side, badness(order.side, px), self.arrivals);
        self.places.insert(order.oid.clone(), place);
        self.queues.insert(place, order);
    }

    fn end_matching(&mut self) {
        if let Some(oid) = self.matching.take() {
            let order = self.aside.remove(&oid).expect("what is matched is aside");
            let px = order.px.expect("what is matched has a price");
            self.queue(order, px);
        }
    }

    fn settle(&mut self) {
        if let Some(oid) = &self.matching
            && !self.meets(&self.aside[oid])
        {
            self.end_matching();
        }
    }

    fn on_new(&mut self, oid: String, f: &Fields<'_>, snapshot: bool) -> Outcome {
        self.end_matching();
        let side = f.side().ok_or(BookFault::WrongSide)?;
        let left = f.qty(EventField::Qty).filter(|q| *q > 0).ok_or(BookFault::BadQuantity)?;
        let total = left;
        let left = f.qty(EventField::Left).unwrap_or(total);
        let display = f.qty(EventField::DisplayQty);
        if left < 0 || display.is_some_and(|d| d < 0) || left > total || left == 0 {
            self.take(&oid);
            return Err(BookFault::BadQuantity);
        }
        let known = self.take(&oid).is_some();
        let hidden = f.hidden().unwrap_or(false);
        let px = f.px(EventField::Px);
        self.place(Order { oid, side, px, left, done: total - left, hidden, display });
        if known && !snapshot { Err(BookFault::DuplicateOrder) } else { Ok(()) }
    }

    fn on_amend(&mut self, oid: &str, f: &Fields<'_>) -> Outcome {
        if self.matching.as_deref() != Some(oid) {
            self.end_matching();
        }
        let said_left = f.qty(EventField::Left);
        let Some(was) = self.find(oid).cloned() else {
            return match said_left {
                Some(0) => Ok(()),
                Some(left) if left > 0 => self.on_new(oid.to_owned(), f, true),
                _ => Err(BookFault::UnknownOrder),
            };
        };
        let mut order = was.clone();
        let display = f.qty(EventField::DisplayQty);
        let total = f.qty(EventField::Qty);
        let less = said_left.zip(total).is_some_and(|(left, total)| left > total);
        let reduced = f
            .qty(EventField::QtyReduced)
            .filter(|_| f.qty(EventField::Left).or(f.qty(EventField::Qty)).is_none());
        let no_reduction = reduced.is_some_and(|reduced| reduced <= 0);
        if said_left.is_some_and(|l| l < 0) || display.is_some_and(|d| d < 0) || less || no_reduction {
            self.settle();
            return Err(BookFault::BadQuantity);
        }
        if let Some(left) = said_left {
            order.left = left;
            order.done = total.map_or(order.done, |total| total - left);
        } else if let Some(total) = total {
            order.left = total - order.done;
        } else if let Some(reduced) = reduced {
            order.left -= reduced;
        }
        order.display = display.or(order.display);
        if order.left <= 0 {
            self.take(oid);
            self.settle();
            return if order.left < 0 { Err(BookFault::NegativeLeft) } else { Ok(()) };
        }
        order.px = f.px(EventField::Px).or(order.px);
        order.hidden = f.hidden().unwrap_or(order.hidden);
        let queued = !self.aside.contains_key(oid);
        if queued
            && !order.hidden
            && order.px == was.px
            && order.left <= was.left
            && order.shown() <= was.shown()
        {
            *self.find(oid).expect("found before") = order;
        } else {
            self.take(oid);
            self.place(order);
        }
        self.settle();
        if f.side().is_some_and(|side| side != was.side) { Err(BookFault::WrongSide) } else { Ok(()) }
    }

    fn on_cancel(&mut self, oid: &str, f: &Fields<'_>) -> Outcome {
        let moot = matches!(f.text(EventField::Reason).as_deref(), Some("rejected" | "done_for_day"));
        let known = self.take(oid).is_some();
        if !known && moot {
            return Ok(());
        }
        self.settle();
        if known { Ok(()) } else { Err(BookFault::UnknownOrder) }
    }

    fn on_exec(&mut self, oid: &str, f: &Fields<'_>) -> Outcome {
        let Some(order) = self.find(oid) else { return Err(BookFault::UnknownOrder) };
        let qty = f.qty(EventField::Qty).filter(|q| *q > 0).ok_or(BookFault::BadQuantity)?;
        order.left -= qty;
        order.done += qty;
        let (left, side) = (order.left, order.side);
        if left <= 0 {
            self.take(oid);
        }
        self.settle();
        match f.side() {
            _ if left < 0 => Err(BookFault::NegativeLeft),
            Some(given) if given != side => Err(BookFault::WrongSide),
            _ => Ok(()),
        }
    }

    fn on_level(&mut self, f: &Fields<'_>) -> Outcome {
        let action = f.text(EventField::Action).ok_or(BookFault::BadLevel)?;
        if action == "R" {
            for side in Side::BOTH.into_iter().filter(|s| f.side().is_none_or(|given| given == *s)) {
                self.levels[side as usize].clear();
            }
            if f.side().is_none() && self.lost[Basis::Levels as usize] != Some(self.source) {
                self.stale[Basis::Levels as usize] = false;
                self.lost[Basis::Levels as usize] = None;
            }
            return Ok(());
        }
        let side = f.side().ok_or(BookFault::BadLevel)?;
        let (px, qty) = (f.px(EventField::Px), f.qty(EventField::Qty));
        if action != "D" && qty.is_none_or(|q| q < 0) {
            return Err(BookFault::BadQuantity);
        }
        let says_nothing_left = action == "U" || (action == "D" && qty == Some(0));
        let qty = if action == "D" { 0 } else { qty.unwrap_or_default() };
        let rung = |px| Rung { px, qty, orders: f.uint(EventField::Orders) };
        let levels = &mut self.levels[side as usize];
        let Some(depth) = f.uint(EventField::Depth) else {
            let px = px.ok_or(BookFault::BadLevel)?;
            // The first level that is no better; worse levels follow it.
            let at = levels.iter().position(|l| badness(side, l.px) >= badness(side, px));
            let found = at.filter(|at| levels[*at].px == px);
            match found {
                Some(at) if qty == 0 => _ = levels.remove(at),
                Some(at) => levels[at] = rung(px),
                None if qty == 0 && says_nothing_left => return Ok(()),
                None if qty == 0 => return Err(BookFault::UnknownLevel),
                None => levels.insert(at.unwrap_or(levels.len()), rung(px)),
            }
            return match (action.as_str(), found) {
                ("A", Some(_)) => Err(BookFault::DuplicateLevel),
                ("C", None) => Err(BookFault::UnknownLevel),
                _ => Ok(()),
            };
        };
        let last = levels.len() as u64 + u64::from(action == "A");
        if depth == 0 || depth > last || action == "U" {
            return Err(BookFault::BadLevel);
        }
        let at = depth as usize - 1;
        match (action.as_str(), px) {
            ("A", None) if qty > 0 || depth == last => return Err(BookFault::BadLevel),
            ("A", _) if qty == 0 => return Err(BookFault::BadQuantity),
            ("A", Some(px)) => levels.insert(at, rung(px)),
            _ if qty == 0 => {
                levels.remove(at);
                return Ok(());
            }
            (_, px) => levels[at] = rung(px.unwrap_or(levels[at].px)),
        }
        let mine = badness(side, levels[at].px);
        let in_order = (at == 0 || badness(side, levels[at - 1].px) < mine)
            && levels.get(at + 1).is_none_or(|l| badness(side, l.px) > mine);
        if in_order { Ok(()) } else { Err(BookFault::UnsortedLevel) }
    }

    fn on_bbo(&mut self, f: &Fields<'_>) -> Outcome {
        let side = |px, qty| {
            let (px, has_qty) = (f.px(px)?, f.0.field(qty, &mut [0; 36]).is_some());
            let qty = f.qty(qty).unwrap_or(0);
            (!has_qty || qty > 0).then_some(Rung { px, qty, orders: None })
        };
        self.bbo = [side(EventField::Bid, EventField::BidQty), side(EventField::Ask, EventField::AskQty)];
        if self.lost[Basis::Bbo as usize] != Some(self.source) {
            self.stale[Basis::Bbo as usize] = false;
            self.lost[Basis::Bbo as usize] = None;
        }
        Ok(())
    }

    fn on_partial_bbo(&mut self, f: &Fields<'_>, number: u64) -> Outcome {
        let b = Basis::Bbo as usize;
        let goes_with = self.lost[b] == Some(self.source);
        let is_whole = self.has_data[b] && !self.stale[b] && self.lost[b].is_none();
        let fields = [(EventField::Bid, EventField::BidQty), (EventField::Ask, EventField::AskQty)];
        let (mut sides, mut stated) = (self.bbo, self.stated);
        for (side, (px, qty)) in fields.into_iter().enumerate() {
            let is_known = is_whole || stated[side] > self.bbo_lost;
            let has_qty = f.0.field(qty, &mut [0; 36]).is_some();
            let (px, qty) = (f.px(px), f.qty(qty).filter(|_| has_qty));
            if qty.is_some_and(|qty| qty <= 0) {
                (sides[side], stated[side]) = (None, number);
            } else if let Some(px) = px {
                let before = sides[side].filter(|_| is_known).map(|rung| rung.qty);
                let qty = qty.or(before).unwrap_or(0);
                (sides[side], stated[side]) = (Some(Rung { px, qty, orders: None }), number);
            } else if let Some(qty) = qty {
                match &mut sides[side] {
                    Some(rung) => rung.qty = qty,
                    None if is_known => return Err(BookFault::BadLevel),
                    None => {}
                }
            }
        }
        self.bbo = sides;
        if is_whole {
            return Ok(());
        }
        if !goes_with {
            self.stated = stated;
        }
        if self.stated.iter().all(|stated| *stated > self.bbo_lost) && !goes_with {
            (self.stale[b], self.lost[b]) = (false, None);
        } else if !self.has_data[b] {
            self.stale[b] = true;
        }
        Ok(())
    }

    fn rungs(&self, basis: Basis, side: Side) -> Vec<(i64, i128, Option<u64>)> {
        let mut rungs: Vec<(i64, i128, Option<u64>)> = Vec::new();
        match basis {
            Basis::Bbo => rungs.extend(self.bbo[side as usize].map(|r| (r.px, r.qty, None))),
            Basis::Levels => rungs.extend(self.levels[side as usize].iter().map(|r| (r.px, r.qty, r.orders))),
            Basis::Orders => {
                for order in self.queues.values().filter(|o| o.side == side) {
                    let px = order.px.expect("what is queued has a price");
                    match rungs.last_mut() {
                        Some(last) if last.0 == px => {
                            last.1 += order.shown();
                            last.2 = last.2.map(|n| n + 1);
                        }
                        _ => rungs.push((px, order.shown(), Some(1))),
                    }
                }
            }
        }
        rungs
    }

    fn top(&self, basis: Basis) -> [Option<(i64, i128)>; 2] {
        Side::BOTH.map(|side| self.rungs(basis, side).first().map(|r| (r.0, r.1)))
    }
}

/// Writes everything that can be seen of the fast books, in the words of the slow twin.
pub fn dump(books: &Books) -> String {
    let mut out = String::new();
    let order = |o: crate::OrderView| {
        let (px, oid) = (o.px.map(|px| px.to_string()), o.oid.to_string());
        let oid = if oid.starts_with('#') { "#" } else { &oid };
        format!("   {oid} {} {px:?} {} {}\n", o.side.letter(), o.left, o.executed_qty)
    };
    for id in books.listings() {
        let l = books.listing(id);
        writeln!(out, "listing {} {} {:?}", l.venue(), l.instrument(), l.phase()).expect("text");
        for book in l.books() {
            writeln!(out, " {} {:?} {}", book.basis().name(), book.marks(), book.ts().0).expect("text");
            for side in Side::BOTH {
                for level in book.levels(side) {
                    let orders = level.orders.map(|n| n.to_string()).unwrap_or_default();
                    writeln!(out, "  {} {} {} {orders}", side.letter(), level.px, level.qty).expect("text");
                    book.queue(side, level.px).for_each(|o| out.push_str(&order(o)));
                }
            }
            let mut aside: Vec<_> = book.unqueued_orders().map(order).collect();
            aside.sort();
            out.extend(aside);
        }
        let bbo = l.bbo();
        let touch = |level: Option<crate::PriceLevel>| level.map(|l| (l.px.0, l.qty.to_string()));
        let best = l.basis().map(|b| (b.name(), [touch(bbo.bid), touch(bbo.ask)]));
        writeln!(out, " best {best:?}").expect("text");
        let met: Vec<_> = l.faults().nonzero().map(|(f, n)| (f.name(), n)).collect();
        writeln!(out, " faults {met:?}").expect("text");
    }
    for instrument in books.instruments() {
        let over = books.consolidated(instrument);
        let sides = [over.bid, over.ask]
            .map(|side| side.map(|s| (s.level.px.0, s.level.qty.to_string(), s.venue, s.venues as usize)));
        writeln!(out, "over {instrument} {sides:?} {:?}", over.marks).expect("text");
    }
    out
}
