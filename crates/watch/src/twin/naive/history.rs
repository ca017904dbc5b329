//! Everything that happened, in plain fields, and nothing forgotten.

use crate::exact::QuantitySum;
use std::collections::HashMap;
use unitape_model::{
    Decimal, Event, EventField, EventKind, EventValue, InlineId, InstrumentId, Price, UnixNanos,
};

/// An id in its original form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Id {
    Number(u64),
    Text(Vec<u8>),
}

/// An event, each field by its name.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Happened {
    pub seq: u64,
    pub ts: UnixNanos,
    pub kind: EventKind,
    pub instr: Option<InstrumentId>,
    pub venue: Option<u32>,
    pub oid: Option<Id>,
    pub match_id: Option<Id>,
    pub side: Option<char>,
    pub px: Option<Price>,
    pub qty: Option<Decimal>,
    /// The remaining quantity of an order, as the event states it.
    pub left: Option<Decimal>,
    /// The reduction of an order.
    pub qty_reduced: Option<Decimal>,
    /// Its own; see [`History::owner`].
    pub owner: Option<u32>,
    /// Its own; see [`History::trader`].
    pub trader: Option<u32>,
    pub group: Option<u32>,
    pub bid: Option<Price>,
    pub bid_qty: Option<Decimal>,
    pub ask: Option<Price>,
    pub ask_qty: Option<Decimal>,
    pub partial: bool,
    pub tick: Option<Price>,
}

/// All events up to now, in the order they came.
#[derive(Default)]
pub struct History {
    events: Vec<Happened>,
    /// Owner and trader of each, inherited where that is due.
    whose: Vec<(Option<u32>, Option<u32>)>,
    // Only so that a search need not look at all of them.
    by_order: HashMap<(Option<u32>, Id), Vec<usize>>,
    by_owner: HashMap<u32, Vec<usize>>,
    by_trader: HashMap<u32, Vec<usize>>,
    by_instr: HashMap<InstrumentId, Vec<usize>>,
    by_kind: HashMap<EventKind, Vec<usize>>,
}

impl History {
    pub(crate) fn push(&mut self, event: &Event<'_>, seq: u64) {
        let now = read(event, seq);
        let at = self.events.len();
        let inherits = matches!(now.kind, EventKind::OrderCancel | EventKind::Exec);
        let of_order = |said: fn(&Happened) -> Option<u32>| {
            said(&now).or_else(|| self.life(&now).find_map(said).filter(|_| inherits))
        };
        let (owner, trader) = (of_order(|e| e.owner), of_order(|e| e.trader));
        if let Some(oid) = &now.oid {
            self.by_order.entry((now.venue, oid.clone())).or_default().push(at);
        }
        owner.into_iter().for_each(|o| self.by_owner.entry(o).or_default().push(at));
        trader.into_iter().for_each(|t| self.by_trader.entry(t).or_default().push(at));
        now.instr.into_iter().for_each(|i| self.by_instr.entry(i).or_default().push(at));
        self.by_kind.entry(now.kind).or_default().push(at);
        self.whose.push((owner, trader));
        self.events.push(now);
    }

    /// Returns the current event.
    pub fn now(&self) -> &Happened {
        self.events.last().expect("something happened")
    }

    /// Returns the beneficial owner that an event names. For a cancel or an execution without an owner, returns the
    /// owner of its order at that time.
    pub fn owner(&self, event: &Happened) -> Option<u32> {
        self.whose[self.index(event)].0
    }

    /// Returns the trader of an event by the rule of [`Self::owner`].
    pub fn trader(&self, event: &Happened) -> Option<u32> {
        self.whose[self.index(event)].1
    }

    /// Returns the events of a kind, latest first.
    pub fn of_kind(&self, kind: EventKind) -> impl Iterator<Item = &Happened> {
        self.at(self.by_kind.get(&kind))
    }

    /// Returns the events of an owner, latest first.
    pub fn of_owner(&self, owner: u32) -> impl Iterator<Item = &Happened> {
        self.at(self.by_owner.get(&owner))
    }

    /// Returns the events of a trader, latest first.
    pub fn of_trader(&self, trader: u32) -> impl Iterator<Item = &Happened> {
        self.at(self.by_trader.get(&trader))
    }

    /// Returns the events of an instrument, latest first.
    pub fn of_instr(&self, instr: InstrumentId) -> impl Iterator<Item = &Happened> {
        self.at(self.by_instr.get(&instr))
    }

    /// Returns the events that made or changed the order of `event` before it, first event first. The list starts at
    /// the latest `order_new`, or at the first event if there is no `order_new`. It leaves executions and cancels out.
    fn life(&self, event: &Happened) -> impl Iterator<Item = &Happened> {
        let all = self.of_order(event);
        let shapes = |e: &&Happened| matches!(e.kind, EventKind::OrderNew | EventKind::OrderAmend);
        all.into_iter().filter(shapes)
    }

    /// Returns the earlier events of the order of `event`, first event first. The list starts at the latest
    /// `order_new`, or at the first event if there is no `order_new`.
    pub fn of_order(&self, event: &Happened) -> Vec<&Happened> {
        let Some(oid) = &event.oid else { return Vec::new() };
        let mut found = Vec::new();
        for e in self.at(self.by_order.get(&(event.venue, oid.clone()))).filter(|e| e.seq < event.seq) {
            found.push(e);
            if e.kind == EventKind::OrderNew {
                break;
            }
        }
        found.reverse();
        found
    }

    fn at<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Happened> {
        places.into_iter().flatten().rev().map(|&at| &self.events[at])
    }

    fn index(&self, event: &Happened) -> usize {
        self.events.partition_point(|e| e.seq < event.seq)
    }
}

/// Sums the quantities of executions.
pub fn sum<'a>(executions: impl Iterator<Item = &'a Happened>) -> QuantitySum {
    let mut total = QuantitySum::ZERO;
    executions.filter_map(|e| e.qty).for_each(|qty| total.add(qty));
    total
}

/// Computes the total quantity of an order after these events. Returns `None` if no event states a quantity.
pub fn total<'a>(shapes: impl Iterator<Item = &'a Happened>) -> Option<Decimal> {
    let mut total = None;
    for event in shapes {
        let by = event.qty_reduced.filter(|_| event.left.is_none());
        total = event.qty.or_else(|| by.and_then(|by| Some(after_reduction(total?, by)))).or(total);
    }
    total
}

/// Subtracts a reduction from a total, to zero at least. Ignores a reduction that is impossible.
pub fn after_reduction(total: Decimal, by: Decimal) -> Decimal {
    match total.checked_sub(by) {
        Some(rest) if by.mantissa() > 0 => {
            if rest.mantissa() < 0 {
                Decimal::ZERO
            } else {
                rest
            }
        }
        _ => total,
    }
}

fn read(event: &Event<'_>, seq: u64) -> Happened {
    let sym = |field| match event.field(field, &mut [0; 36]) {
        Some(EventValue::Sym(_, id)) => Some(id),
        _ => None,
    };
    let px = |field| match event.field(field, &mut [0; 36]) {
        Some(EventValue::Price(px)) => Some(px),
        _ => None,
    };
    let id = |field| match event.field(field, &mut [0; 36]) {
        Some(EventValue::Id(InlineId::Number(n))) => Some(Id::Number(n)),
        Some(EventValue::Id(InlineId::Text(t))) => Some(Id::Text(t.to_vec())),
        _ => None,
    };
    let decimal = |field| match event.field(field, &mut [0; 36]) {
        Some(EventValue::Decimal(decimal)) => Some(decimal),
        _ => None,
    };
    Happened {
        seq,
        ts: event.ts_event(),
        kind: event.kind(),
        instr: sym(EventField::Instr).map(InstrumentId),
        venue: sym(EventField::Venue),
        oid: id(EventField::Oid),
        match_id: id(EventField::MatchId),
        side: match event.field(EventField::Side, &mut [0; 36]) {
            Some(EventValue::Text(side)) => side.chars().next(),
            _ => None,
        },
        px: px(EventField::Px),
        qty: decimal(EventField::Qty),
        left: decimal(EventField::Left),
        qty_reduced: decimal(EventField::QtyReduced),
        owner: sym(EventField::Owner),
        trader: sym(EventField::Trader),
        group: sym(EventField::Group),
        bid: px(EventField::Bid),
        bid_qty: decimal(EventField::BidQty),
        ask: px(EventField::Ask),
        ask_qty: decimal(EventField::AskQty),
        partial: matches!(event.field(EventField::Partial, &mut [0; 36]), Some(EventValue::Bool(true))),
        tick: px(EventField::Tick),
    }
}
