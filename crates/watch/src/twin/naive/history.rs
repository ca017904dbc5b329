//! Everything that happened, in plain fields, and nothing forgotten.

use crate::exact::QuantitySum;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use unitape_model::{
    Amount, Calendar, CivilDate, DayKind, Decimal, Dictionary, Event, EventField, EventKind, EventValue,
    InlineId, InstrumentId, NameKind, Price, UnixNanos, flags,
};

/// An id in its original form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Id {
    Number(u64),
    Text(Vec<u8>),
}

/// An event, each field by its name. A cancel or an execution has the instrument and the side of its order if it names none.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Happened {
    pub seq: u64,
    /// The time at which it counts.
    pub ts: UnixNanos,
    /// `clock` for a cancel or an execution that names no venue: time passes, and nothing else.
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
    pub reason: Option<String>,
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
    /// The session date of its venue.
    pub session_date: CivilDate,
    /// All of its fields. A flag set has the names of the flags that are set.
    pub fields: BTreeMap<EventField, FieldValue>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldValue {
    Name(NameKind, u32),
    Names(NameKind, Vec<u32>),
    Price(Price),
    Decimal(Decimal),
    Amount(Amount),
    Id(Id),
    Text(String),
    Bool(bool),
    UInt(u64),
    Time(UnixNanos),
    Date(CivilDate),
    Flags(Vec<&'static str>),
    /// A form that no scenario reads.
    Other,
}

impl Happened {
    /// Returns whether the venue, and not the trader, made this cancel or amend.
    pub fn is_of_venue(&self) -> bool {
        let reasons: &[&str] = match self.kind {
            EventKind::OrderCancel => &["expired", "done_for_day", "rejected"],
            EventKind::OrderAmend => &["restated", "suspended", "trade_cancel", "trade_correct"],
            _ => &[],
        };
        self.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    }

    /// Returns the id of the name in a field.
    pub fn name(&self, field: EventField) -> Option<u32> {
        match self.fields.get(&field)? {
            FieldValue::Name(_, id) => Some(*id),
            _ => None,
        }
    }

    /// Returns the ids of the names in a field; none if the field is missing.
    pub fn names(&self, field: EventField) -> &[u32] {
        match self.fields.get(&field) {
            Some(FieldValue::Names(_, ids)) => ids,
            _ => &[],
        }
    }

    /// Returns the price in a field.
    pub fn price(&self, field: EventField) -> Option<Price> {
        match self.fields.get(&field)? {
            FieldValue::Price(px) => Some(*px),
            _ => None,
        }
    }

    /// Returns the decimal in a field.
    pub fn decimal(&self, field: EventField) -> Option<Decimal> {
        match self.fields.get(&field)? {
            FieldValue::Decimal(decimal) => Some(*decimal),
            _ => None,
        }
    }

    /// Returns the amount in a field.
    pub fn amount(&self, field: EventField) -> Option<Amount> {
        match self.fields.get(&field)? {
            FieldValue::Amount(amount) => Some(*amount),
            _ => None,
        }
    }

    /// Returns the id in a field.
    pub fn id(&self, field: EventField) -> Option<&Id> {
        match self.fields.get(&field)? {
            FieldValue::Id(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the text or the code word in a field.
    pub fn text(&self, field: EventField) -> Option<&str> {
        match self.fields.get(&field)? {
            FieldValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the whole number in a field.
    pub fn uint(&self, field: EventField) -> Option<u64> {
        match self.fields.get(&field)? {
            FieldValue::UInt(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the time in a field.
    pub fn time(&self, field: EventField) -> Option<UnixNanos> {
        match self.fields.get(&field)? {
            FieldValue::Time(ts) => Some(*ts),
            _ => None,
        }
    }

    /// Returns the date in a field.
    pub fn date(&self, field: EventField) -> Option<CivilDate> {
        match self.fields.get(&field)? {
            FieldValue::Date(date) => Some(*date),
            _ => None,
        }
    }

    /// Returns whether a flag is set in a field of flags.
    pub fn has_flag(&self, field: EventField, flag: &str) -> bool {
        matches!(self.fields.get(&field), Some(FieldValue::Flags(flags)) if flags.contains(&flag))
    }

    /// Returns whether it is a public print of its own, and does not cancel or correct one.
    pub fn is_print(&self) -> bool {
        self.kind == EventKind::Trade
            && self.text(EventField::Action).is_none_or(|action| action == "new")
            && self.px.is_some()
            && self.qty.is_some()
    }

    /// Returns whether it is a message of the trader about an order.
    pub fn is_message(&self) -> bool {
        matches!(self.kind, EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel)
            && !self.is_of_venue()
    }
}

/// An order according to some of its events.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Order<'a> {
    /// Its `order_new`, if it was seen.
    pub new: Option<&'a Happened>,
    pub instr: Option<InstrumentId>,
    pub side: Option<char>,
    pub qty: Option<Decimal>,
    pub px: Option<Price>,
    pub executed: QuantitySum,
    pub is_cancelled: bool,
    pub owner: Option<u32>,
    pub trader: Option<u32>,
}

impl Order<'_> {
    /// Implements "live = seen new, not cancelled, leaves > 0".
    pub fn is_live(&self) -> bool {
        let leaves = self.qty.is_some_and(|qty| self.executed < QuantitySum::from_decimal(qty));
        self.new.is_some() && !self.is_cancelled && leaves
    }
}

/// A public print, as it counts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Print {
    /// Of the trade that printed it.
    pub seq: u64,
    pub ts: UnixNanos,
    pub px: Price,
    pub qty: Decimal,
    /// It counts in volumes alone.
    pub no_last: bool,
}

/// Best bid and offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Best {
    pub bid: Option<Price>,
    pub bid_qty: Option<Decimal>,
    pub ask: Option<Price>,
    pub ask_qty: Option<Decimal>,
    /// Of the last `bbo`.
    pub ts: UnixNanos,
    pub seq: u64,
}

/// All events up to now, in the order they came.
pub struct History {
    calendar: Arc<Calendar>,
    events: Vec<Happened>,
    /// Owner and trader of each, inherited where that is due.
    whose: Vec<(Option<u32>, Option<u32>)>,
    /// The latest time of an event whose time is believed.
    latest: Option<UnixNanos>,
    // Only so that a search need not look at all of them.
    by_order: HashMap<(Option<u32>, Id), Vec<usize>>,
    by_owner: HashMap<u32, Vec<usize>>,
    by_trader: HashMap<u32, Vec<usize>>,
    by_instr: HashMap<InstrumentId, Vec<usize>>,
    by_kind: HashMap<EventKind, Vec<usize>>,
}

impl History {
    /// Makes a history without events.
    pub fn new(calendar: Arc<Calendar>) -> Self {
        Self {
            calendar,
            events: Vec::new(),
            whose: Vec::new(),
            latest: None,
            by_order: HashMap::new(),
            by_owner: HashMap::new(),
            by_trader: HashMap::new(),
            by_instr: HashMap::new(),
            by_kind: HashMap::new(),
        }
    }

    pub(crate) fn push(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary) {
        // "An event flagged clock_ahead counts at the latest believed time."
        let ts = match (event.header().flags() & flags::CLOCK_AHEAD, self.latest) {
            (0, latest) => {
                self.latest = latest.max(Some(event.ts_event()));
                event.ts_event()
            }
            (_, latest) => latest.unwrap_or(event.ts_event()),
        };
        let mut now = read(event, seq, ts);
        let venue = now.venue.and_then(|venue| names.name(NameKind::Venue, venue)).unwrap_or_default();
        now.session_date = self.calendar.session_date(venue, ts).0;
        let inherits = matches!(now.kind, EventKind::OrderCancel | EventKind::Exec);
        // "A cancel or execution that names no venue is missing; without instrument or side it has those of its order."
        // Nor does an event count whose message may be on the tape twice.
        if inherits && now.venue.is_none() || event.is_repeat() {
            now.kind = EventKind::Clock;
        }
        let order = self.order_before(&now).filter(|_| inherits);
        let (owner, trader) = match &order {
            Some(order) => (now.owner.or(order.owner), now.trader.or(order.trader)),
            None => (now.owner, now.trader),
        };
        let (instr, side) = order.map_or((None, None), |order| (order.instr, order.side));
        (now.instr, now.side) = (now.instr.or(instr), now.side.or(side));
        let index = self.events.len();
        if let Some(oid) = now.oid.clone().filter(|_| now.kind != EventKind::Clock) {
            self.by_order.entry((now.venue, oid)).or_default().push(index);
        }
        owner.into_iter().for_each(|o| self.by_owner.entry(o).or_default().push(index));
        trader.into_iter().for_each(|t| self.by_trader.entry(t).or_default().push(index));
        now.instr.into_iter().for_each(|i| self.by_instr.entry(i).or_default().push(index));
        self.by_kind.entry(now.kind).or_default().push(index);
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

    /// Returns the beneficial group of an owner: that of the last `party` event of the owner, or the owner alone.
    pub fn group(&self, owner: u32) -> u32 {
        let party = self.of_owner(owner).find(|e| e.kind == EventKind::Party);
        party.and_then(|party| party.group).unwrap_or(owner)
    }

    /// Returns the best bid and offer of a venue and instrument according to the `bbo` events before `seq`. A partial `bbo`
    /// states only the sides that it names; a quantity of zero states that the side is empty.
    pub fn best_before(&self, venue: Option<u32>, instr: InstrumentId, seq: u64) -> Option<Best> {
        let mut quotes: Vec<&Happened> = self
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Bbo && e.venue == venue && e.seq < seq)
            .collect();
        quotes.reverse();
        let mut best: Option<Best> = None;
        for e in quotes {
            let side = |px: Option<Price>,
                        qty: Option<Decimal>,
                        before: Option<(Option<Price>, Option<Decimal>)>| {
                let is_stated = !e.partial || px.is_some() || qty.is_some_and(|qty| qty.mantissa() <= 0);
                if is_stated { (px, qty) } else { before.unwrap_or_default() }
            };
            let (bid, bid_qty) = side(e.bid, e.bid_qty, best.map(|best| (best.bid, best.bid_qty)));
            let (ask, ask_qty) = side(e.ask, e.ask_qty, best.map(|best| (best.ask, best.ask_qty)));
            best = Some(Best { bid, bid_qty, ask, ask_qty, ts: e.ts, seq: e.seq });
        }
        best
    }

    /// Returns the public prints of an instrument before `seq` that count, in the order of their trades: at one venue, or over
    /// all venues if `venue` is `None`. A cancelled print does not count; a corrected one counts with its new price and quantity.
    pub fn prints_before(&self, instr: InstrumentId, venue: Option<u32>, seq: u64) -> Vec<Print> {
        let mut trades: Vec<&Happened> = self
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Trade && e.seq < seq)
            .filter(|e| venue.is_none() || e.venue == venue)
            .collect();
        trades.reverse();
        let mut prints: Vec<(&Happened, Print)> = Vec::new();
        for e in trades {
            let (Some(px), Some(qty)) = (e.px, e.qty) else { continue };
            let no_last = e.has_flag(EventField::TradeFlags, "no_last");
            let print = Print { seq: e.seq, ts: e.ts, px, qty, no_last };
            let Some(action) = e.text(EventField::Action).filter(|action| *action != "new") else {
                prints.push((e, print));
                continue;
            };
            // "the trade of that venue, instrument and match_id", which belongs to its session date
            let is_meant = |(t, _): &(&Happened, Print)| {
                e.match_id.is_some()
                    && (&t.match_id, t.venue, t.session_date) == (&e.match_id, e.venue, e.session_date)
            };
            let Some(index) = prints.iter().rposition(is_meant) else { continue };
            match action {
                "cancel" => _ = prints.remove(index),
                _ => (prints[index].1.px, prints[index].1.qty) = (px, qty),
            }
        }
        prints.into_iter().map(|(_, print)| print).collect()
    }

    /// Returns the last value that the `ref` events of an instrument before `seq` give a field.
    pub fn reference_before(&self, instr: InstrumentId, field: EventField, seq: u64) -> Option<&FieldValue> {
        let refs = self.of_instr(instr).filter(|e| e.kind == EventKind::Ref && e.seq < seq);
        refs.filter_map(|e| e.fields.get(&field)).next()
    }

    /// Returns the order of `event` according to the events before it. Returns `None` if no event shaped it.
    pub fn order_before(&self, event: &Happened) -> Option<Order<'_>> {
        let life = self.of_order(event);
        let first = life.iter().find(|e| matches!(e.kind, EventKind::OrderNew | EventKind::OrderAmend))?;
        let mut order = Order {
            new: Some(*first).filter(|e| e.kind == EventKind::OrderNew),
            instr: first.instr,
            side: first.side,
            qty: None,
            px: None,
            executed: QuantitySum::ZERO,
            is_cancelled: false,
            owner: None,
            trader: None,
        };
        for e in &life {
            match e.kind {
                EventKind::OrderCancel => order.is_cancelled = true,
                EventKind::Exec => e.qty.into_iter().for_each(|qty| order.executed.add(qty)),
                _ => {
                    let by = e.qty_reduced.filter(|_| e.left.is_none());
                    let reduced = || Some(after_reduction(order.qty?, by?));
                    order.qty = e.qty.or_else(reduced).or(order.qty);
                    order.px = e.px.or(order.px);
                    order.owner = order.owner.or(e.owner);
                    order.trader = order.trader.or(e.trader);
                    // "leaves follow `left`" after a trade was cancelled or corrected.
                    let left = e.left.filter(|left| e.is_of_venue() && left.mantissa() >= 0);
                    if let (Some(left), Some(qty)) = (left, order.qty) {
                        order.executed = QuantitySum::from_decimal(after_reduction(qty, left));
                    }
                }
            }
        }
        Some(order)
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

    /// Returns the current event as a print. Returns `None` if it is no trade, or cancels or corrects one.
    pub fn print_now(&self) -> Option<Print> {
        let now = self.now();
        let print = Print {
            seq: now.seq,
            ts: now.ts,
            px: now.px?,
            qty: now.qty?,
            no_last: now.has_flag(EventField::TradeFlags, "no_last"),
        };
        now.is_print().then_some(print)
    }

    /// Returns the price of the last public trade before `seq`, at one venue, or at any if `venue` is `None`. A print that
    /// does not count, or counts in volumes alone, is not the last trade.
    pub fn last_price_before(&self, instr: InstrumentId, venue: Option<u32>, seq: u64) -> Option<Price> {
        self.prints_before(instr, venue, seq).into_iter().rfind(|print| !print.no_last).map(|print| print.px)
    }

    /// Returns the national best bid and offer: "NBBO is a bbo whose venue is \"NBBO\"".
    pub fn national_best_before(&self, instr: InstrumentId, seq: u64, names: &Dictionary) -> Option<Best> {
        let venue = names.get(NameKind::Venue, b"NBBO")?;
        self.best_before(Some(venue), instr, seq)
    }

    /// Returns the next trading day of a venue after `date`: Monday to Friday where the calendar has no other word.
    pub fn trading_day_after(&self, venue: &str, date: CivilDate) -> CivilDate {
        let is_open =
            |date: &CivilDate| matches!(self.calendar.day_kind(venue, *date), DayKind::Open | DayKind::Half);
        std::iter::successors(Some(date.following()), |date| Some(date.following()))
            .find(is_open)
            .expect("a venue does not close for ever")
    }

    /// Returns the value that an event names in a field. For a cancel or an execution that names none, returns the value
    /// that its order had at that time, from its `order_new` or else its first amend that has one.
    pub fn inherited<'a>(&'a self, event: &'a Happened, field: EventField) -> Option<&'a FieldValue> {
        let of_order = || {
            let shapes = |e: &&Happened| matches!(e.kind, EventKind::OrderNew | EventKind::OrderAmend);
            let inherits = matches!(event.kind, EventKind::OrderCancel | EventKind::Exec);
            let life = if inherits { self.of_order(event) } else { Vec::new() };
            life.into_iter().filter(shapes).find_map(|e| e.fields.get(&field))
        };
        event.fields.get(&field).or_else(of_order)
    }

    /// Returns the order that `new` begins, according to the events before `seq`. Returns `None` if another order has its
    /// id by then.
    pub fn order_of(&self, new: &Happened, seq: u64) -> Option<Order<'_>> {
        let later = Happened { seq, ..new.clone() };
        self.order_before(&later).filter(|order| order.new.is_some_and(|e| e.seq == new.seq))
    }

    /// Returns a number of ticks, given in billionths, as a difference of prices × 10^9. The tick is the one known before
    /// `seq`. No ticks need no tick.
    pub fn ticks_before(&self, instr: InstrumentId, ticks: u64, seq: u64) -> Option<i128> {
        match self.reference_before(instr, EventField::Tick, seq) {
            _ if ticks == 0 => Some(0),
            Some(FieldValue::Price(tick)) if tick.0 > 0 => Some(i128::from(tick.0) * i128::from(ticks)),
            _ => None,
        }
    }
}

impl Happened {
    /// Implements "(t-W, t]".
    pub fn is_in_window(&self, t: UnixNanos, window: i128) -> bool {
        let (ts, t) = (i128::from(self.ts.0), i128::from(t.0));
        ts > t - window && ts <= t
    }

    /// Returns the quantity of an execution, if it is above zero.
    pub fn executed_qty(&self) -> Option<Decimal> {
        self.qty.filter(|qty| self.kind == EventKind::Exec && qty.mantissa() > 0)
    }

    /// Returns whether it is an execution with a quantity that removed liquidity.
    pub fn is_aggressive(&self) -> bool {
        self.executed_qty().is_some() && self.text(EventField::Liq) == Some("R")
    }
}

impl Order<'_> {
    /// Implements "leaves = qty - executed"; zero if the order is not live.
    pub fn leaves(&self) -> QuantitySum {
        let qty = self.qty.filter(|_| self.is_live()).map(QuantitySum::from_decimal);
        qty.map_or(QuantitySum::ZERO, |qty| qty.minus_earlier(&self.executed))
    }
}

/// Returns the other side.
pub fn opposite(side: char) -> char {
    if side == 'B' { 'S' } else { 'B' }
}

/// Sums the quantities of executions.
pub fn sum<'a>(executions: impl Iterator<Item = &'a Happened>) -> QuantitySum {
    let mut total = QuantitySum::ZERO;
    executions.filter_map(|e| e.qty).for_each(|qty| total.add(qty));
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

fn read(event: &Event<'_>, seq: u64, ts: UnixNanos) -> Happened {
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
        ts,
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
        reason: match event.field(EventField::Reason, &mut [0; 36]) {
            Some(EventValue::Text(reason)) => Some(reason.to_owned()),
            _ => None,
        },
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
        session_date: CivilDate::from_utc(ts),
        fields: event
            .schema()
            .fields
            .iter()
            .filter_map(|spec| Some((spec.field, read_field(event, spec.field)?)))
            .collect(),
    }
}

fn read_field(event: &Event<'_>, field: EventField) -> Option<FieldValue> {
    let mut scratch = [0; 36];
    Some(match event.field(field, &mut scratch)? {
        EventValue::Sym(dict, id) => FieldValue::Name(dict, id),
        EventValue::Syms(dict, ids) => {
            let (ids, _) = ids.as_chunks::<4>();
            FieldValue::Names(dict, ids.iter().map(|id| u32::from_le_bytes(*id)).collect())
        }
        EventValue::Price(px) => FieldValue::Price(px),
        EventValue::Decimal(decimal) => FieldValue::Decimal(decimal),
        EventValue::Amount(amount) => FieldValue::Amount(amount),
        EventValue::Id(InlineId::Number(number)) => FieldValue::Id(Id::Number(number)),
        EventValue::Id(InlineId::Text(text)) => FieldValue::Id(Id::Text(text.to_vec())),
        EventValue::Text(text) => FieldValue::Text(text.to_owned()),
        EventValue::Bool(value) => FieldValue::Bool(value),
        EventValue::UInt(number) => FieldValue::UInt(number),
        EventValue::Nanos(ts) => FieldValue::Time(ts),
        EventValue::Date(date) => FieldValue::Date(date),
        EventValue::Flags(names, set) => FieldValue::Flags(
            (0..).zip(names).filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, name)| *name).collect(),
        ),
        _ => FieldValue::Other,
    })
}
