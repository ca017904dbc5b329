//! The market around orders: best bid and offer, and reference data.

use crate::state::{state_value, watch_state};
use hashbrown::{DefaultHashBuilder, HashMap};
use unitape_model::records::BboRecord;
use unitape_model::{Decimal, Event, EventField, EventValue, InstrumentId, Price, UnixNanos};

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
    /// Time of the event.
    pub ts: UnixNanos,
    /// Its ordinal.
    pub seq: u64,
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
}

impl VenueBbo {
    /// Takes over the prices that a partial quote does not state. A quantity of zero states that the side is empty.
    #[cold]
    fn keep_unstated(&mut self, before: &Self, event: &Event<'_>) {
        let is_gone = |qty| match event.field(qty, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) => qty.mantissa() <= 0,
            _ => false,
        };
        self.bid = self.bid.or(before.bid.filter(|_| !is_gone(EventField::BidQty)));
        self.ask = self.ask.or(before.ask.filter(|_| !is_gone(EventField::AskQty)));
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
}

state_value!(VenueBbo { bid, ask, ts, seq });
state_value!(InstrumentTerms { tick, prev_close, adv, tier });

/// The market according to the events up to now.
#[derive(Default)]
pub struct MarketState {
    bests: HashMap<(u16, InstrumentId), VenueBbo, DefaultHashBuilder>,
    references: HashMap<InstrumentId, InstrumentTerms, DefaultHashBuilder>,
    bound_hit: u64,
}

watch_state!(MarketState { bests, references, bound_hit });

impl MarketState {
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
    pub(crate) fn on_bbo(&mut self, event: &Event<'_>, seq: u64, ts: UnixNanos) {
        let Some(bbo) = BboRecord::from_event(event) else { return };
        let mut best = VenueBbo {
            bid: Price(bbo.bid.get()).as_option(),
            ask: Price(bbo.ask.get()).as_option(),
            ts,
            seq,
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
        if let Some(EventValue::Decimal(adv)) = event.field(EventField::Adv, &mut [0; 36]) {
            reference.adv = Some(adv);
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
