//! The events of the stream as frames. Names are by the ids of the population's dictionary.

use unitape_model::records::{BboRecord, CommonRecord, OrderRecord, TradeRecord};
use unitape_model::schema::{EXP_NONE, RECV_NONE, SEQ_NONE, at};
use unitape_model::{
    Decimal, EventBuilder, EventField, EventKind, EventValue, FrameHeader, NameKind, Price, Side, UnixNanos,
};
use zerocopy::IntoBytes;

use super::population::{Listing, TraderIdentity};
use crate::book::BestLevel;
use crate::day::names::{lettered, match_bytes};

/// The terms of an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderTerms {
    /// The order's number, from 1, which its id spells.
    pub number: u64,
    pub listing: u32,
    pub trader: u32,
    pub side: Side,
    /// In ticks.
    pub px: i64,
    /// The order's remaining quantity.
    pub qty: i64,
}

impl OrderTerms {
    /// Returns whether the frame of a cancel or an execution names only the order and its venue.
    pub fn is_bare(frame: &[u8]) -> bool {
        frame[at::INSTRUMENT..at::INSTRUMENT + 4] == [0; 4]
    }

    fn id(&self) -> [u8; 24] {
        let mut id = [0; 24];
        id[..13].copy_from_slice(&lettered::<13>(b'O', self.number, 10));
        id
    }
}

/// A trader and a listing, whose ids an order has.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderOrigin {
    pub trader: TraderIdentity,
    pub listing: Listing,
}

/// Appends frames of one time.
pub(super) struct FrameWriter<'a> {
    pub out: &'a mut Vec<u8>,
    pub ts: UnixNanos,
}

impl FrameWriter<'_> {
    /// Writes the definition of a name. A tape must have it before the first event with its id.
    pub fn definition(&mut self, dict: NameKind, id: u32, name: &str) {
        EventBuilder::define(self.out, dict, id, name).expect("a name of a dictionary");
    }

    /// Writes the reference data of an instrument.
    pub fn reference(&mut self, listing: &Listing) {
        self.event(
            EventKind::Ref,
            &[
                (EventField::Instr, EventValue::Sym(NameKind::Instrument, listing.instrument.0)),
                (EventField::Tick, EventValue::Price(Price(listing.tick_nano))),
                (EventField::PrevClose, EventValue::Price(Price(listing.reference * listing.tick_nano))),
                (EventField::Lot, EventValue::Decimal(Decimal::from_int(100))),
                (EventField::Ccy, EventValue::Text("EUR")),
            ],
        );
    }

    /// Writes a trader's owner and account.
    pub fn party(&mut self, trader: &TraderIdentity) {
        self.event(
            EventKind::Party,
            &[
                (EventField::Owner, EventValue::Sym(NameKind::Owner, trader.owner)),
                (EventField::Acct, EventValue::Sym(NameKind::Account, trader.acct)),
            ],
        );
    }

    /// Writes a new, amended or cancelled order.
    pub fn order(&mut self, kind: EventKind, terms: &OrderTerms, origin: &OrderOrigin) {
        let mut record = self.record(kind, terms, origin);
        if kind == EventKind::OrderCancel {
            (record.px, record.qty) = (Price::NONE.0.into(), 0.into());
            record.common.kind_b = EXP_NONE as u8;
        }
        record.tif_or_cpty = u32::from_le_bytes(*b"DAY\0").into();
        record.id2[16..21].copy_from_slice(b"LIMIT");
        self.out.extend_from_slice(record.as_bytes());
    }

    /// Writes a cancel that names only the order and its venue.
    pub fn bare_cancel(&mut self, terms: &OrderTerms, venue: u32) {
        self.bare(EventKind::OrderCancel, terms, venue, None);
    }

    /// Writes one side of an execution, with the quantity and price of `terms`.
    pub fn execution(&mut self, terms: &OrderTerms, origin: &OrderOrigin, match_id: u64, is_passive: bool) {
        let mut record = self.record(EventKind::Exec, terms, origin);
        record.common.kind_a |= (if is_passive { PASSIVE } else { AGGRESSIVE }) << 6;
        record.id2[..8].copy_from_slice(&match_bytes(match_id));
        self.out.extend_from_slice(record.as_bytes());
    }

    /// Writes one side of an execution that names only the order and its venue.
    pub fn bare_execution(&mut self, terms: &OrderTerms, venue: u32, qty: i64) {
        self.bare(EventKind::Exec, terms, venue, Some(qty));
    }

    /// Writes the print of an execution.
    pub fn trade(&mut self, listing: &Listing, px: i64, qty: i64, match_id: u64) {
        let mut common = self.common(EventKind::Trade, 1, Some(listing));
        let (mantissa, exponent) = shortest(qty);
        common.kind_b = exponent as u8;
        let record = TradeRecord {
            common,
            px: (px * listing.tick_nano).into(),
            match_id: match_bytes(match_id),
            qty: narrow(mantissa).into(),
            cond: [0; 4],
        };
        self.out.extend_from_slice(record.as_bytes());
    }

    /// Writes the best bid and offer.
    pub fn best_prices(&mut self, listing: &Listing, best: [Option<BestLevel>; 2]) {
        let mut common = self.common(EventKind::Bbo, 1, Some(listing));
        let [bid, ask] = best.map(|best| {
            best.map_or((Price::NONE.0, 0, EXP_NONE), |best| {
                let (mantissa, exponent) = shortest(best.qty);
                (best.px * listing.tick_nano, narrow(mantissa), exponent)
            })
        });
        (common.kind_a, common.kind_b) = (bid.2 as u8, ask.2 as u8);
        let record = BboRecord {
            common,
            bid: bid.0.into(),
            ask: ask.0.into(),
            bid_qty: bid.1.into(),
            ask_qty: ask.1.into(),
        };
        self.out.extend_from_slice(record.as_bytes());
    }

    /// Writes a rare event, field by field through the schema.
    fn event(&mut self, kind: EventKind, fields: &[(EventField, EventValue<'_>)]) {
        let mut event = EventBuilder::begin(self.out, kind, self.ts);
        for (field, value) in fields {
            event.set_field(*field, *value).expect("a value that fits");
        }
        event.finish(0).expect("a small event");
    }

    fn bare(&mut self, kind: EventKind, terms: &OrderTerms, venue: u32, qty: Option<i64>) {
        let (mantissa, exponent) = qty.map_or((0, EXP_NONE), shortest);
        let mut common = self.common(kind, 2, None);
        common.venue = (venue as u16).into();
        common.kind_b = exponent as u8;
        let record = OrderRecord {
            common,
            px: Price::NONE.0.into(),
            qty: mantissa.into(),
            trader: 0.into(),
            acct: 0.into(),
            owner: 0.into(),
            firm: 0.into(),
            algo: 0.into(),
            tif_or_cpty: 0.into(),
            oid: terms.id(),
            id2: [0; 24],
        };
        self.out.extend_from_slice(record.as_bytes());
    }

    fn record(&self, kind: EventKind, terms: &OrderTerms, origin: &OrderOrigin) -> OrderRecord {
        let OrderOrigin { trader, listing } = origin;
        let (mantissa, exponent) = shortest(terms.qty);
        let mut common = self.common(kind, 2, Some(listing));
        let capacity = if terms.trader.is_multiple_of(4) { PRINCIPAL } else { AGENCY };
        common.kind_a = (terms.side as u8 + 1) | capacity << 2;
        common.kind_b = exponent as u8;
        OrderRecord {
            common,
            px: (terms.px * listing.tick_nano).into(),
            qty: mantissa.into(),
            trader: trader.trader.into(),
            acct: trader.acct.into(),
            owner: trader.owner.into(),
            firm: trader.firm.into(),
            algo: trader.algo.into(),
            tif_or_cpty: 0.into(),
            oid: terms.id(),
            id2: [0; 24],
        }
    }

    fn common(&self, kind: EventKind, lines: u16, listing: Option<&Listing>) -> CommonRecord {
        CommonRecord {
            header: FrameHeader::new_unstamped(kind as u8, 0, lines).0.into(),
            ts_event: self.ts.0.into(),
            source: 0.into(),
            offset: 0.into(),
            recv_delta: RECV_NONE.into(),
            sequence: SEQ_NONE.into(),
            instrument: listing.map_or(0, |listing| listing.instrument.0).into(),
            venue: listing.map_or(0, |listing| listing.venue as u16).into(),
            kind_a: 0,
            kind_b: 0,
        }
    }
}

/// Codes of the capacity in `kind_a`, as the schema lists them.
const PRINCIPAL: u8 = 1;
const AGENCY: u8 = 2;

/// Codes of the liquidity.
const PASSIVE: u8 = 1;
const AGGRESSIVE: u8 = 2;

/// Returns the mantissa without zeros at its end, and the exponent of ten.
fn shortest(mut qty: i64) -> (i64, i8) {
    let mut exponent = 0;
    while qty != 0 && qty % 10 == 0 {
        qty /= 10;
        exponent += 1;
    }
    (qty, exponent)
}

fn narrow(mantissa: i64) -> u32 {
    u32::try_from(mantissa).expect("a quantity of ours is small")
}
