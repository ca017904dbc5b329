//! Events as frames of the tape, and as lines.

use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_model::records::{BboRecord, CommonRecord, OrderRecord, TradeRecord};
use unitape_model::schema::{EXP_NONE, RECV_NONE, SEQ_EXT};
use unitape_model::{
    Amount, CivilDate, Decimal, Event as Frame, EventBuilder, EventField, EventKind, EventValue, FrameHeader,
    InlineId, InstrumentId, Price, Side, UnixNanos, flags,
};
use zerocopy::IntoBytes;

use super::event::{DayEvent, DayEventBody, LiquidityFlag, OrderKind, OrderTicket};
use super::market::date_of;
use super::names;
use super::world::{ContractTerms, SimulatedMarket};
use crate::book::BestLevel;

/// Appends the frame of an event to `out`, unstamped. Names are by the ids of [`SimulatedMarket::names`]; the ordinal is
/// in place of the feed's own sequence. `last` marks the last event of a step.
#[inline]
pub fn write_frame(world: &SimulatedMarket, event: &DayEvent, last: bool, out: &mut Vec<u8>) {
    let bits = if last { flags::LAST } else { 0 };
    if event.seq >= u64::from(SEQ_EXT) {
        return slow(world, event, bits, out);
    }
    match event.body {
        DayEventBody::New(ref t) if t.stop_px.is_none() => {
            order(EventKind::OrderNew, world, event, t, bits, out)
        }
        DayEventBody::Amend(ref t) if t.stop_px.is_none() => {
            order(EventKind::OrderAmend, world, event, t, bits, out)
        }
        DayEventBody::Cancel(ref t) if t.stop_px.is_none() => {
            order(EventKind::OrderCancel, world, event, t, bits, out)
        }
        DayEventBody::Exec { ref order, px, qty, match_id, liq, cpty } if order.stop_px.is_none() => {
            let mut record = record(EventKind::Exec, world, event, order, bits);
            record.px = world.listed(order.book).nano(px).into();
            set_qty(&mut record, qty);
            record.common.kind_a |= (liq as u8 + 1) << 6;
            record.id2[..8].copy_from_slice(&names::match_bytes(match_id));
            if let Some(firm) = world.disclosed_firm(order.member, cpty) {
                record.tif_or_cpty = firm.into();
            }
            out.extend_from_slice(record.as_bytes());
        }
        DayEventBody::Bbo { book, bid, ask } => {
            let mut common = common(EventKind::Bbo, 1, event, bits);
            set_listing(&mut common, world, book);
            let listed = world.listed(book);
            let px = |best: Option<BestLevel>| best.map_or(Price::NONE.0, |best| listed.nano(best.px));
            let qty = |best: Option<BestLevel>| best.map_or(Some((0, EXP_NONE)), |best| narrow(best.qty));
            let (Some(bid_qty), Some(ask_qty)) = (qty(bid), qty(ask)) else {
                return slow(world, event, bits, out);
            };
            (common.kind_a, common.kind_b) = (bid_qty.1 as u8, ask_qty.1 as u8);
            let (bid, ask) = (px(bid).into(), px(ask).into());
            let record = BboRecord { common, bid, ask, bid_qty: bid_qty.0.into(), ask_qty: ask_qty.0.into() };
            out.extend_from_slice(record.as_bytes());
        }
        DayEventBody::Trade { book, px, qty, match_id, auction } => {
            let mut common = common(EventKind::Trade, 1, event, bits);
            set_listing(&mut common, world, book);
            let Some((qty, exponent)) = narrow(qty) else { return slow(world, event, bits, out) };
            common.kind_b = exponent as u8;
            let px = world.listed(book).nano(px).into();
            let cond = if auction { *b"AUC\0" } else { [0; 4] };
            let record =
                TradeRecord { common, px, match_id: names::match_bytes(match_id), qty: qty.into(), cond };
            out.extend_from_slice(record.as_bytes());
        }
        _ => slow(world, event, bits, out),
    }
}

/// Appends an event as a line of JSON. `scratch` is kept between calls so that nothing is allocated.
pub fn write_line(world: &SimulatedMarket, event: &DayEvent, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    write_frame(world, event, true, scratch);
    let frame = Frame::new(scratch).expect("a frame of ours");
    write_event(out, &frame, event.seq, world.names(), &EmptySourceLookup, EventLineDetail::Plain);
    out.push(b'\n');
}

fn order(
    kind: EventKind,
    world: &SimulatedMarket,
    event: &DayEvent,
    t: &OrderTicket,
    bits: u8,
    out: &mut Vec<u8>,
) {
    let mut record = record(kind, world, event, t, bits);
    if kind != EventKind::OrderCancel {
        if let Some(px) = t.px {
            record.px = world.listed(t.book).nano(px).into();
        }
        set_qty(&mut record, t.qty);
    }
    record.tif_or_cpty = u32::from_le_bytes(padded(t.tif.word())).into();
    if t.parent != 0 {
        record.id2[..10].copy_from_slice(&names::parent_bytes(t.parent));
    }
    record.id2[16..].copy_from_slice(&padded::<8>(t.kind.word()));
    out.extend_from_slice(record.as_bytes());
}

/// Makes an order record with its identities; all other fields are empty.
#[inline]
fn record(
    kind: EventKind,
    world: &SimulatedMarket,
    event: &DayEvent,
    t: &OrderTicket,
    bits: u8,
) -> OrderRecord {
    let mut common = common(kind, 2, event, bits);
    set_listing(&mut common, world, t.book);
    let member = &world.members[t.member as usize];
    common.kind_a = side_code(t.side) | (1 + u8::from(member.agency)) << 2;
    common.kind_b = EXP_NONE as u8;
    let mut oid = [0; 24];
    oid[..11].copy_from_slice(&names::oid_bytes(t.oid));
    OrderRecord {
        common,
        px: Price::NONE.0.into(),
        qty: 0.into(),
        trader: (t.member + 1).into(),
        acct: (t.member + 1).into(),
        owner: (member.owner + 1).into(),
        firm: (member.firm + 1).into(),
        algo: member.algo.into(),
        tif_or_cpty: 0.into(),
        oid,
        id2: [0; 24],
    }
}

#[inline]
fn common(kind: EventKind, lines: u16, event: &DayEvent, bits: u8) -> CommonRecord {
    CommonRecord {
        header: FrameHeader::new_unstamped(kind as u8, bits, lines).0.into(),
        ts_event: (event.ts as i64).into(),
        source: 0.into(),
        offset: 0.into(),
        recv_delta: RECV_NONE.into(),
        sequence: (event.seq as u32).into(),
        instrument: 0.into(),
        venue: 0.into(),
        kind_a: 0,
        kind_b: 0,
    }
}

#[inline]
fn set_listing(common: &mut CommonRecord, world: &SimulatedMarket, book: u32) {
    common.instrument = SimulatedMarket::tape_id(world.instr_of(book)).0.into();
    common.venue = (world.venue_of(book) as u16 + 1).into();
}

#[inline]
fn set_qty(record: &mut OrderRecord, qty: i64) {
    let (mantissa, exponent) = canonical(qty);
    record.qty = mantissa.into();
    record.common.kind_b = exponent as u8;
}

#[inline]
fn canonical(mut qty: i64) -> (i64, i8) {
    let mut exponent = 0;
    while qty != 0 && qty % 10 == 0 {
        qty /= 10;
        exponent += 1;
    }
    (qty, exponent)
}

#[inline]
fn narrow(qty: i64) -> Option<(u32, i8)> {
    let (mantissa, exponent) = canonical(qty);
    Some((u32::try_from(mantissa).ok()?, exponent))
}

fn side_code(side: Side) -> u8 {
    side as u8 + 1
}

fn padded<const N: usize>(word: &str) -> [u8; N] {
    let mut room = [0; N];
    room[..word.len()].copy_from_slice(word.as_bytes());
    room
}

/// Writes any event field by field through the schema. It serves the rare kinds, and values that do not fit the narrow
/// fields.
#[cold]
fn slow(world: &SimulatedMarket, event: &DayEvent, bits: u8, out: &mut Vec<u8>) {
    let kind = EventKind::from_name(event.body.kind()).expect("a word of the schema");
    let mut e = FrameFieldSetter::begin(kind, event.seq, event.ts, out);
    set_fields(world, event, &mut e);
    e.finish(bits);
}

/// Sets the fields of an event.
pub(super) fn set_fields(world: &SimulatedMarket, event: &DayEvent, e: &mut FrameFieldSetter<'_>) {
    match event.body {
        DayEventBody::Ref { instr } => {
            let listed = &world.instruments[instr.index()];
            e.instrument(instr);
            e.price(EventField::Tick, listed.tick_nano);
            e.price(EventField::PrevClose, listed.nano(listed.reference));
            e.qty(EventField::Adv, listed.adv);
            e.text(EventField::Ccy, listed.ccy);
            e.set(EventField::Tier, EventValue::UInt(listed.tier.into()));
            e.qty(EventField::Lot, 1);
            e.text(EventField::Symbol, &listed.symbol);
            if let Some(ContractTerms { underlying, expiry_days }) = world.contract(instr) {
                e.sym(EventField::Underlying, SimulatedMarket::tape_id(underlying).0);
                e.qty(EventField::Multiplier, 1);
                let expiry = expiry_days.map(|days| CivilDate::from_days(date_of(event.ts).days() + days));
                expiry.into_iter().for_each(|expiry| e.set(EventField::Expiry, EventValue::Date(expiry)));
            }
        }
        DayEventBody::Party { owner } => {
            e.sym(EventField::Owner, owner + 1);
            e.sym(EventField::Group, world.groups[owner as usize]);
            if let Some(&score) = world.link_scores.get(&owner) {
                let score = Decimal::new(score, -2).expect("a score of ours is small");
                e.set(EventField::LinkScore, EventValue::Decimal(score));
            }
        }
        DayEventBody::Session { book, phase, px } => {
            e.set_listing(world, book);
            e.text(EventField::Phase, phase.word());
            px.into_iter().for_each(|px| e.price(EventField::Px, world.listed(book).nano(px)));
        }
        DayEventBody::Status { book, halted } => {
            e.set_listing(world, book);
            e.text(EventField::State, if halted { "halted" } else { "trading" });
            e.text(EventField::Reason, if halted { "regulatory" } else { "resumed" });
        }
        DayEventBody::Bbo { book, bid, ask } => {
            e.set_listing(world, book);
            for (best, px, qty) in
                [(bid, EventField::Bid, EventField::BidQty), (ask, EventField::Ask, EventField::AskQty)]
            {
                if let Some(best) = best {
                    e.price(px, world.listed(book).nano(best.px));
                    e.qty(qty, best.qty);
                }
            }
        }
        DayEventBody::Trade { book, px, qty, match_id, auction } => {
            e.set_listing(world, book);
            e.price(EventField::Px, world.listed(book).nano(px));
            e.qty(EventField::Qty, qty);
            e.id(EventField::MatchId, &names::match_bytes(match_id));
            if auction {
                e.text(EventField::Cond, "AUC");
            }
        }
        DayEventBody::OrderRecv { client, member, instr, side, qty } => {
            e.id(EventField::Coid, &names::client_bytes(client));
            e.member(world, member);
            e.instrument(instr);
            e.text(EventField::Side, side.letter());
            e.qty(EventField::Qty, qty);
            e.text(EventField::Channel, "client");
        }
        DayEventBody::Parent { parent, member, instr, side, qty } => {
            e.id(EventField::Parent, &names::parent_bytes(parent));
            e.member(world, member);
            e.instrument(instr);
            e.text(EventField::Side, side.letter());
            e.qty(EventField::Qty, qty);
        }
        DayEventBody::New(t) | DayEventBody::Amend(t) => {
            e.terms(world, &t);
            t.px.into_iter().for_each(|px| e.price(EventField::Px, world.listed(t.book).nano(px)));
            e.qty(EventField::Qty, t.qty);
            e.resting(world, &t);
        }
        DayEventBody::Cancel(t) => {
            e.terms(world, &t);
            e.resting(world, &t);
        }
        DayEventBody::Reject(t) => {
            e.terms(world, &t);
            t.px.into_iter().for_each(|px| e.price(EventField::Px, world.listed(t.book).nano(px)));
            e.qty(EventField::Qty, t.qty);
            e.resting(world, &t);
            e.text(EventField::Reason, "rejected");
        }
        DayEventBody::Exec { order: t, px, qty, match_id, liq, cpty } => {
            e.terms(world, &t);
            e.price(EventField::Px, world.listed(t.book).nano(px));
            e.qty(EventField::Qty, qty);
            e.id(EventField::MatchId, &names::match_bytes(match_id));
            e.text(EventField::Liq, liq.letter());
            let firm = world.disclosed_firm(t.member, cpty);
            firm.into_iter().for_each(|firm| e.sym(EventField::Cpty, firm));
        }
        DayEventBody::News { id, instr, good, .. } => {
            e.id(EventField::NewsId, &names::news_bytes(id));
            e.set(
                EventField::Instrs,
                EventValue::Syms(
                    unitape_model::NameKind::Instrument,
                    &SimulatedMarket::tape_id(instr).0.to_le_bytes(),
                ),
            );
            let symbol = &world.instruments[instr.index()].symbol;
            e.text(EventField::Headline, &names::headline(symbol, good));
            e.text(EventField::Source, "wire");
        }
        DayEventBody::Payment(p) => {
            e.text(EventField::Msg, if p.between_banks { "MT202" } else { "MT103" });
            e.id(EventField::Ref, names::payment_text(p.number).as_bytes());
            e.sym(EventField::DrAcct, world.pay_account_id(p.debtor));
            e.sym(EventField::CrAcct, world.pay_account_id(p.creditor));
            e.text(EventField::DrName, &world.pay_holder(p.debtor));
            e.text(EventField::CrName, &world.pay_holder(p.creditor));
            e.text(EventField::Ccy, p.ccy);
            let amount = Amount::new(p.cents.into(), -2).expect("an amount of ours is small");
            e.set(EventField::Amt, EventValue::Amount(amount));
            e.text(EventField::CrBic, &world.pay_bic(p.creditor));
            e.text(EventField::DrBic, &world.pay_bic(p.debtor));
        }
        DayEventBody::List(_) | DayEventBody::Position { .. } => {
            unreachable!("a market of several days writes its lists and positions")
        }
    }
}

/// A frame under way, field by field.
pub(super) struct FrameFieldSetter<'a>(EventBuilder<'a>);

impl<'a> FrameFieldSetter<'a> {
    pub(super) fn begin(kind: EventKind, seq: u64, ts: u64, out: &'a mut Vec<u8>) -> FrameFieldSetter<'a> {
        let mut builder = EventBuilder::begin(out, kind, UnixNanos(ts as i64));
        builder.sequence(seq);
        FrameFieldSetter(builder)
    }

    pub(super) fn finish(self, bits: u8) {
        self.0.finish(bits).expect("an event of ours is small");
    }

    pub(super) fn set(&mut self, field: EventField, value: EventValue<'_>) {
        self.0.set_field(field, value).expect("a value of the right sort");
    }

    pub(super) fn sym(&mut self, field: EventField, id: u32) {
        let spec = self.0.schema().get(field).expect("a field of the kind");
        let dict = spec.slot.dict().unwrap_or_else(|| panic!("{field:?} is no name"));
        self.set(field, EventValue::Sym(dict, id));
    }

    pub(super) fn instrument(&mut self, instr: InstrumentId) {
        self.sym(EventField::Instr, SimulatedMarket::tape_id(instr).0);
    }

    pub(super) fn price(&mut self, field: EventField, nano: i64) {
        self.set(field, EventValue::Price(Price(nano)));
    }

    pub(super) fn qty(&mut self, field: EventField, qty: i64) {
        self.set(field, EventValue::Decimal(Decimal::from_int(qty)));
    }

    pub(super) fn text(&mut self, field: EventField, text: &str) {
        self.set(field, EventValue::Text(text));
    }

    pub(super) fn id(&mut self, field: EventField, text: &[u8]) {
        self.set(field, EventValue::Id(InlineId::Text(text)));
    }

    pub(super) fn set_listing(&mut self, world: &SimulatedMarket, book: u32) {
        self.sym(EventField::Venue, world.venue_of(book) as u32 + 1);
        self.instrument(world.instr_of(book));
    }

    /// Sets those of a member's identities that the kind has.
    fn member(&mut self, world: &SimulatedMarket, member: u32) {
        let m = &world.members[member as usize];
        let ids = [
            (EventField::Trader, member + 1),
            (EventField::Acct, member + 1),
            (EventField::Owner, m.owner + 1),
            (EventField::Firm, m.firm + 1),
            (EventField::Algo, m.algo),
        ];
        for (field, id) in ids {
            if id != 0 && self.0.schema().get(field).is_some() {
                self.sym(field, id);
            }
        }
    }

    fn terms(&mut self, world: &SimulatedMarket, t: &OrderTicket) {
        self.id(EventField::Oid, &names::oid_bytes(t.oid));
        self.set_listing(world, t.book);
        self.text(EventField::Side, t.side.letter());
        self.member(world, t.member);
        self.text(EventField::Capacity, if world.members[t.member as usize].agency { "A" } else { "P" });
    }

    /// Writes the fields of a resting order that an execution lacks.
    fn resting(&mut self, world: &SimulatedMarket, t: &OrderTicket) {
        self.text(EventField::Tif, t.tif.word());
        self.text(EventField::Type, t.kind.word());
        if t.parent != 0 {
            self.id(EventField::Parent, &names::parent_bytes(t.parent));
        }
        if let Some(px) = t.stop_px.filter(|_| t.kind != OrderKind::Market) {
            self.price(EventField::StopPx, world.listed(t.book).nano(px));
        }
    }
}

impl LiquidityFlag {
    /// Returns `A`, `R` or `X`.
    pub const fn letter(self) -> &'static str {
        match self {
            LiquidityFlag::Passive => "A",
            LiquidityFlag::Aggressive => "R",
            LiquidityFlag::Auction => "X",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sim, SimConfig};
    use super::*;
    use unitape_codec::events::parse_full;

    /// The records and the fields are two ways to one frame; should one be wrong, a tape made here would not be what a
    /// tape made from the lines is.
    #[test]
    fn fast_frames_equal_slow_ones_and_lines_make_them_again() {
        let config =
            SimConfig { events: 15_000, instruments: 12, span_ns: 3_600_000_000_000, ..SimConfig::default() };
        let mut sim = Sim::new(config).expect("a good config");
        let (mut fast, mut twin, mut line) = (Vec::new(), Vec::new(), Vec::new());
        let mut kinds = std::collections::BTreeSet::new();
        while let Some(events) = sim.step() {
            let events = events.to_vec();
            for e in &events {
                for buffer in [&mut fast, &mut twin, &mut line] {
                    buffer.clear();
                }
                write_frame(sim.world(), e, true, &mut fast);
                slow(sim.world(), e, flags::LAST, &mut twin);
                assert!(fast == twin, "{e:?}");
                let frame = Frame::new(&fast).expect("a frame");
                write_event(
                    &mut line,
                    &frame,
                    e.seq,
                    sim.world().names(),
                    &EmptySourceLookup,
                    EventLineDetail::Full,
                );
                twin.clear();
                parse_full(&line, &mut twin).unwrap_or_else(|err| panic!("{err:?}: {}", line.escape_ascii()));
                assert!(fast == twin, "{}", line.escape_ascii());
                kinds.insert(e.body.kind());
            }
        }
        assert_eq!(kinds.len(), 14, "{kinds:?}");
    }

    /// The five billionth event has no room for its number in the narrow place.
    #[test]
    fn large_ordinals_go_to_the_extension() {
        let sim = Sim::new(SimConfig::default()).expect("a good config");
        let body = DayEventBody::Trade { book: 0, px: 5_000, qty: 1 << 40, match_id: 7, auction: false };
        for seq in [SEQ_EXT.into(), 5_000_000_000] {
            let mut out = Vec::new();
            write_frame(sim.world(), &DayEvent { seq, ts: 1, body }, false, &mut out);
            assert_eq!(Frame::new(&out).expect("a frame").sequence(), Some(seq));
        }
    }
}
