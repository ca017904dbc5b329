//! A stream of orders for benches: the same bytes from the same numbers, on every machine.
//!
//! Two thousand traders, each with its own owner, send orders in ten thousand instruments at three venues. Most orders
//! are amended or cancelled, some trade. Activity is uneven: a few traders and instruments have most of it. Now and
//! then a trader spoofs, floods, or trades with itself, so that there is something to find.

use unitape_model::{
    Decimal, Dictionary, EventBuilder, EventField, EventKind, EventValue, InlineId, InstrumentId, NameKind,
    Price, UnixNanos,
};

/// Traders, and owners.
pub const TRADERS: u32 = 2_000;
/// Instruments.
pub const INSTRUMENTS: u32 = 10_000;

/// Makes events as frames, one after another, and the names of their ids.
pub fn orders(events: usize, seed: u64) -> (Vec<u8>, Dictionary) {
    let mut names = Dictionary::default();
    for (dict, count, letter) in [
        (NameKind::Instrument, INSTRUMENTS, 'I'),
        (NameKind::Venue, 3, 'V'),
        (NameKind::Trader, TRADERS, 'T'),
        (NameKind::Owner, TRADERS, 'O'),
    ] {
        for n in 1..=count {
            names.intern(dict, format!("{letter}{n:05}").as_bytes()).expect("a short name, and few");
        }
    }
    let mut stream = SampleEventGenerator { random: seed, ..SampleEventGenerator::default() };
    stream.references();
    while stream.count < events {
        stream.act();
    }
    // The last planted scene may have run over.
    let end =
        unitape_model::frames(&stream.arena).nth(events).map_or(stream.arena.len(), |(offset, ..)| offset);
    stream.arena.truncate(end);
    (stream.arena, names)
}

#[derive(Clone, Copy)]
struct SampleOrder {
    oid: u64,
    owner: u32,
    instr: InstrumentId,
    venue: u32,
    side: usize,
    px: i64,
    qty: i64,
}

#[derive(Default)]
struct SampleEventGenerator {
    arena: Vec<u8>,
    count: usize,
    random: u64,
    now: i64,
    next_oid: u64,
    next_match: u64,
    live: Vec<SampleOrder>,
}

const START_NS: i64 = 1_710_167_400_000_000_000;
const TICK: i64 = 10_000_000;

impl SampleEventGenerator {
    fn references(&mut self) {
        // Only the busy instruments have reference data and a price from the start.
        for instr in (1..=200).map(InstrumentId) {
            self.push_event(EventKind::Ref, |b, s| {
                s(b, EventField::Instr, EventValue::Sym(NameKind::Instrument, instr.0));
                s(b, EventField::Tick, EventValue::Price(Price(TICK)));
            });
            for venue in 1..=3 {
                self.bbo(instr, venue);
            }
        }
    }

    fn act(&mut self) {
        self.now += 1_000 + self.random_below(4_000) as i64;
        match self.random_below(10_000) {
            0..3 => self.spoof(),
            3 => self.flood(),
            4..8 => self.wash(),
            8..1_000 => {
                let (instr, venue) = (self.instrument(), self.random_below(3) as u32 + 1);
                self.bbo(instr, venue);
            }
            _ if self.live.len() < 1_000 => self.enter(),
            1_000..4_500 => self.enter(),
            4_500..5_500 => {
                let order_index = self.pick();
                self.live[order_index].qty += 100;
                let order = self.live[order_index];
                self.order(EventKind::OrderAmend, &order);
            }
            5_500..8_000 => {
                let order_index = self.pick();
                let order = self.live.swap_remove(order_index);
                self.order(EventKind::OrderCancel, &order);
            }
            _ => {
                let order_index = self.pick();
                let order = self.live.swap_remove(order_index);
                let counter_order =
                    SampleOrder { owner: self.trader(), side: 1 - order.side, oid: 0, ..order };
                self.next_match += 1;
                self.exec(&order, order.qty);
                self.exec(&counter_order, order.qty);
            }
        }
    }

    fn enter(&mut self) {
        let order = self.draw();
        self.order(EventKind::OrderNew, &order);
        self.live.push(order);
    }

    /// Makes a small order that trades and a large order that is cancelled after the trade.
    fn spoof(&mut self) {
        let small = SampleOrder { instr: InstrumentId(self.random_below(200) as u32 + 1), ..self.draw() };
        let large = SampleOrder { oid: small.oid + 1, side: 1 - small.side, qty: small.qty * 20, ..small };
        self.next_oid += 1;
        self.order(EventKind::OrderNew, &small);
        self.order(EventKind::OrderNew, &large);
        self.next_match += 1;
        self.exec(&small, small.qty);
        self.now += 100_000_000;
        self.order(EventKind::OrderCancel, &large);
    }

    fn flood(&mut self) {
        let order = self.draw();
        for _ in 0..60 {
            self.order(EventKind::OrderNew, &order);
            self.order(EventKind::OrderCancel, &order);
        }
    }

    fn wash(&mut self) {
        let order = self.draw();
        self.next_match += 1;
        self.exec(&order, order.qty);
        self.exec(&SampleOrder { side: 1 - order.side, oid: 0, ..order }, order.qty);
    }

    fn draw(&mut self) -> SampleOrder {
        self.next_oid += 1;
        let instr = self.instrument();
        SampleOrder {
            oid: self.next_oid,
            owner: self.trader(),
            instr,
            venue: self.random_below(3) as u32 + 1,
            side: self.random_below(2) as usize,
            px: price(instr) + TICK * (self.random_below(9) as i64 - 4),
            qty: 100 * (1 + self.random_below(20) as i64),
        }
    }

    fn bbo(&mut self, instr: InstrumentId, venue: u32) {
        self.push_event(EventKind::Bbo, |b, s| {
            s(b, EventField::Instr, EventValue::Sym(NameKind::Instrument, instr.0));
            s(b, EventField::Venue, EventValue::Sym(NameKind::Venue, venue));
            s(b, EventField::Bid, EventValue::Price(Price(price(instr))));
            s(b, EventField::Ask, EventValue::Price(Price(price(instr) + TICK)));
        });
    }

    fn order(&mut self, kind: EventKind, order: &SampleOrder) {
        self.push_event(kind, |b, s| set_order(b, s, order));
    }

    fn exec(&mut self, order: &SampleOrder, qty: i64) {
        let id = self.next_match;
        self.push_event(EventKind::Exec, |b, s| {
            set_order(b, s, &SampleOrder { qty, ..*order });
            s(b, EventField::MatchId, EventValue::Id(InlineId::Number(id)));
        });
    }

    fn push_event(&mut self, kind: EventKind, fill: impl FnOnce(&mut EventBuilder<'_>, FieldSetter)) {
        let mut builder = EventBuilder::begin(&mut self.arena, kind, UnixNanos(START_NS + self.now));
        let set: FieldSetter = |b, field, value| b.set_field(field, value).expect("a value of the field");
        fill(&mut builder, set);
        builder.finish(unitape_model::flags::LAST).expect("a small frame");
        self.count += 1;
    }

    /// Draws a trader. Half of the draws are among the hundred busiest.
    fn trader(&mut self) -> u32 {
        let most = if self.random_below(2) == 0 { 100 } else { u64::from(TRADERS) };
        self.random_below(most) as u32 + 1
    }

    /// Draws an instrument. Half of the draws are among the two hundred busiest.
    fn instrument(&mut self) -> InstrumentId {
        let most = if self.random_below(2) == 0 { 200 } else { u64::from(INSTRUMENTS) };
        InstrumentId(self.random_below(most) as u32 + 1)
    }

    fn pick(&mut self) -> usize {
        self.random_below(self.live.len() as u64) as usize
    }

    /// Draws a number under `most` by SplitMix64.
    fn random_below(&mut self, most: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ z >> 31) * u128::from(most)) >> 64) as u64
    }
}

type FieldSetter = fn(&mut EventBuilder<'_>, EventField, EventValue<'_>);

fn price(instr: InstrumentId) -> i64 {
    (i64::from(instr.0) % 500 + 10) * 1_000_000_000
}

fn set_order(b: &mut EventBuilder<'_>, set: FieldSetter, order: &SampleOrder) {
    set(b, EventField::Oid, EventValue::Id(InlineId::Number(order.oid)));
    set(b, EventField::Side, EventValue::Text(["B", "S"][order.side]));
    set(b, EventField::Venue, EventValue::Sym(NameKind::Venue, order.venue));
    set(b, EventField::Instr, EventValue::Sym(NameKind::Instrument, order.instr.0));
    set(b, EventField::Trader, EventValue::Sym(NameKind::Trader, order.owner));
    set(b, EventField::Owner, EventValue::Sym(NameKind::Owner, order.owner));
    if b.schema().kind != EventKind::OrderCancel {
        set(b, EventField::Px, EventValue::Price(Price(order.px)));
        set(b, EventField::Qty, EventValue::Decimal(Decimal::from_int(order.qty)));
    }
}
