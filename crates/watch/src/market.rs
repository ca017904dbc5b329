//! The market around orders: best bid and offer, and reference data.

use crate::kept::OptionalPosition;
use crate::state::{state_value, watch_state};
use crate::watch::EvidencePlace;
use hashbrown::{DefaultHashBuilder, HashMap};
use unitape_model::records::BboRecord;
use unitape_model::schema::{EXP_EXT, EXP_NONE};
use unitape_model::{
    CivilDate, Decimal, Dictionary, Event, EventField, EventValue, InstrumentId, NameKind, Position, Price,
    UnixNanos,
};

/// The greatest number of kept pairs of venue and instrument, and of instruments. Later entries are counted, and
/// scenarios miss them.
const PAIRS_MAX: usize = 1 << 20;

/// The best bid and offer from the last `bbo` of a venue and instrument. A side that a partial `bbo` does not state
/// keeps its previous value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueBbo {
    /// Best bid, if there is one.
    pub bid: Option<Price>,
    /// Best offer, if there is one.
    pub ask: Option<Price>,
    /// The quantity of the bid, if it is stated.
    pub bid_qty: Option<Decimal>,
    /// The quantity of the offer, if it is stated.
    pub ask_qty: Option<Decimal>,
    /// Time of the event.
    pub ts: UnixNanos,
    /// Its ordinal.
    pub seq: u64,
    position: OptionalPosition,
}

impl VenueBbo {
    /// Returns the price on the side of an order: 1 is buy, 2 is sell.
    #[inline]
    pub fn of_side(&self, side: u8) -> Option<Price> {
        match side {
            1 => self.bid,
            2 => self.ask,
            _ => None,
        }
    }

    /// Returns the place of its event, for evidence.
    pub(crate) fn place(&self) -> EvidencePlace {
        EvidencePlace { seq: self.seq, position: self.position }
    }
}

impl VenueBbo {
    /// Takes over the prices that a partial quote does not state. A quantity of zero states that the side is empty.
    #[cold]
    fn keep_unstated(&mut self, before: &Self, event: &Event<'_>) {
        let is_gone = |qty| match event.field(qty, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) => qty.mantissa() <= 0,
            _ => false,
        };
        if self.bid.is_none() && !is_gone(EventField::BidQty) {
            (self.bid, self.bid_qty) = (before.bid, before.bid_qty);
        }
        if self.ask.is_none() && !is_gone(EventField::AskQty) {
            (self.ask, self.ask_qty) = (before.ask, before.ask_qty);
        }
    }
}

/// The terms of an instrument from its `ref` events. A later event changes the terms that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstrumentTerms {
    /// Least price step.
    pub tick: Option<Price>,
    /// Previous close.
    pub prev_close: Option<Price>,
    /// Average daily volume.
    pub adv: Option<Decimal>,
    /// Tier of the instrument in its plan.
    pub tier: Option<u64>,
    /// The instrument that it is derived from.
    pub underlying: Option<InstrumentId>,
    /// Units of the underlying in one of it.
    pub multiplier: Option<Decimal>,
    /// The last day of its life.
    pub expiry: Option<CivilDate>,
    /// Units that can be traded.
    pub float: Option<Decimal>,
}

state_value!(VenueBbo { bid, ask, bid_qty, ask_qty, ts, seq, position });
state_value!(InstrumentTerms { tick, prev_close, adv, tier, underlying, multiplier, expiry, float });

/// The market according to the events up to now.
#[derive(Default)]
pub struct MarketState {
    bests: HashMap<(u16, InstrumentId), VenueBbo, DefaultHashBuilder>,
    references: HashMap<InstrumentId, InstrumentTerms, DefaultHashBuilder>,
    bound_hit: u64,
}

watch_state!(MarketState { bests, references, bound_hit });

impl MarketState {
    /// Returns the terms of all instruments, in no order that means anything.
    pub fn references(&self) -> impl Iterator<Item = (InstrumentId, &InstrumentTerms)> {
        self.references.iter().map(|(instr, terms)| (*instr, terms))
    }

    /// Returns the national best bid and offer of an instrument: the best price of the venue NBBO.
    pub fn national_best(&self, instr: InstrumentId, names: &Dictionary) -> Option<&VenueBbo> {
        let venue = names.get(NameKind::Venue, b"NBBO")?;
        self.best(u16::try_from(venue).ok()?, instr)
    }

    /// Returns the last best bid and offer of an instrument at a venue.
    #[inline]
    pub fn best(&self, venue: u16, instr: InstrumentId) -> Option<&VenueBbo> {
        self.bests.get(&(venue, instr))
    }

    /// Returns the terms of an instrument.
    #[inline]
    pub fn reference(&self, instr: InstrumentId) -> Option<&InstrumentTerms> {
        self.references.get(&instr)
    }

    #[inline]
    pub(crate) fn on_bbo(&mut self, event: &Event<'_>, seq: u64, position: Option<Position>, ts: UnixNanos) {
        let Some(bbo) = BboRecord::from_event(event) else { return };
        let mut best = VenueBbo {
            bid: Price(bbo.bid.get()).as_option(),
            ask: Price(bbo.ask.get()).as_option(),
            bid_qty: narrow_quantity(event, EventField::BidQty, bbo.bid_qty.get(), bbo.common.kind_a as i8),
            ask_qty: narrow_quantity(event, EventField::AskQty, bbo.ask_qty.get(), bbo.common.kind_b as i8),
            ts,
            seq,
            position: OptionalPosition::new(position),
        };
        let key = (bbo.common.venue.get(), InstrumentId(bbo.common.instrument.get()));
        if let Some(stored_bbo) = self.bests.get_mut(&key) {
            if (best.bid.is_none() || best.ask.is_none()) && event.is_partial() {
                best.keep_unstated(stored_bbo, event);
            }
            *stored_bbo = best;
        } else if self.bests.len() < PAIRS_MAX {
            self.bests.insert(key, best);
        } else {
            self.bound_hit += 1;
        }
    }

    pub(crate) fn on_ref(&mut self, event: &Event<'_>) {
        let instr = event.instrument();
        if !self.references.contains_key(&instr) && self.references.len() == PAIRS_MAX {
            self.bound_hit += 1;
            return;
        }
        let reference = self.references.entry(instr).or_default();
        let price = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Price(px)) => Some(px),
            _ => None,
        };
        reference.tick = price(EventField::Tick).or(reference.tick);
        reference.prev_close = price(EventField::PrevClose).or(reference.prev_close);
        let decimal = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Decimal(decimal)) => Some(decimal),
            _ => None,
        };
        reference.adv = decimal(EventField::Adv).or(reference.adv);
        reference.multiplier = decimal(EventField::Multiplier).or(reference.multiplier);
        reference.float = decimal(EventField::Float).or(reference.float);
        if let Some(EventValue::Sym(_, id)) = event.field(EventField::Underlying, &mut [0; 36]) {
            reference.underlying = Some(InstrumentId(id));
        }
        if let Some(EventValue::Date(expiry)) = event.field(EventField::Expiry, &mut [0; 36]) {
            reference.expiry = Some(expiry);
        }
        if let Some(EventValue::UInt(tier)) = event.field(EventField::Tier, &mut [0; 36]) {
            reference.tier = Some(tier);
        }
    }

    pub(crate) fn reset(&mut self) {
        self.bests.clear();
        self.references.clear();
    }

    pub(crate) fn bound_hit(&self) -> u64 {
        self.bound_hit
    }
}

/// Returns a quantity of a best price: `mantissa` × 10^`exponent`, or from the extension where it does not fit.
#[inline]
fn narrow_quantity(event: &Event<'_>, field: EventField, mantissa: u32, exponent: i8) -> Option<Decimal> {
    match exponent {
        EXP_NONE => None,
        EXP_EXT => match event.field(field, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) => Some(qty),
            _ => None,
        },
        _ => Some(Decimal::from_canonical(mantissa.into(), exponent)),
    }
}
