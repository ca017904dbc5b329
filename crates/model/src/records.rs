//! The hot kinds as plain records, for code that cannot afford to look fields up by name.
//!
//! Each is the fixed part of its kind, byte for byte; the tests hold them against [`crate::schema`]. All
//! integers are little-endian and unaligned, so a record can be read wherever it lies.

use crate::event::Event;
use crate::kind::EventKind;
use zerocopy::little_endian::{I32, I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 40 bytes that every frame begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CommonRecord {
    pub header: U64,
    pub ts_event: I64,
    pub source: U32,
    pub offset: U32,
    pub recv_delta: I32,
    pub sequence: U32,
    pub instrument: U32,
    pub venue: U16,
    /// Small codes of the kind (side, capacity, …) or an exponent.
    pub kind_a: u8,
    /// As `kind_a`.
    pub kind_b: u8,
}

/// Best bid and offer.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)]
pub struct BboRecord {
    /// `kind_a`, `kind_b`: exponents of the bid and the ask quantity.
    pub common: CommonRecord,
    pub bid: I64,
    pub ask: I64,
    pub bid_qty: U32,
    pub ask_qty: U32,
}

/// A public print.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)]
pub struct TradeRecord {
    /// `kind_a`: side and action; `kind_b`: exponent of the quantity.
    pub common: CommonRecord,
    pub px: I64,
    pub match_id: [u8; 8],
    pub qty: U32,
    pub cond: [u8; 4],
}

/// The order family (`order_new`, `order_amend`, `order_cancel`) and, with `id2` the match id and `tail`
/// after it, `exec`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)]
pub struct OrderRecord {
    /// `kind_a`: side, capacity, short, liquidity; `kind_b`: exponent of the quantity.
    pub common: CommonRecord,
    pub px: I64,
    pub qty: I64,
    pub trader: U32,
    pub acct: U32,
    pub owner: U32,
    pub firm: U32,
    pub algo: U32,
    /// Time in force of an order; the counterparty of an execution.
    pub tif_or_cpty: U32,
    pub oid: [u8; 24],
    /// Parent (16 bytes) and type (8) of an order; match id of an execution.
    pub id2: [u8; 24],
}

const _: () = assert!(size_of::<CommonRecord>() == 40);
const _: () = assert!(size_of::<BboRecord>() == 64);
const _: () = assert!(size_of::<TradeRecord>() == 64);
const _: () = assert!(size_of::<OrderRecord>() == 128);

impl BboRecord {
    /// Returns the record of `event` if the event is of this kind.
    #[inline]
    pub fn from_event<'a>(event: &Event<'a>) -> Option<&'a Self> {
        (event.kind() == EventKind::Bbo).then(|| fixed_record(event.bytes()))
    }
}

impl TradeRecord {
    /// Returns the record of `event` if the event is of this kind.
    #[inline]
    pub fn from_event<'a>(event: &Event<'a>) -> Option<&'a Self> {
        (event.kind() == EventKind::Trade).then(|| fixed_record(event.bytes()))
    }
}

impl OrderRecord {
    /// Returns the record of `event` if the event belongs to the order family or is an execution.
    #[inline]
    pub fn from_event<'a>(event: &Event<'a>) -> Option<&'a Self> {
        matches!(
            event.kind(),
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec
        )
        .then(|| fixed_record(event.bytes()))
    }

    /// Returns the side's code: 1 buy, 2 sell, 0 no side.
    #[inline]
    pub fn side(&self) -> u8 {
        self.common.kind_a & 3
    }
}

#[inline]
fn fixed_record<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> &T {
    T::ref_from_prefix(bytes).expect("an event holds its fixed part").0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::EventField;
    use crate::schema::{EventSchema, at, width_bytes};
    use std::mem::offset_of;

    fn field_offset(kind: EventKind, field: EventField) -> usize {
        usize::from(width_bytes(EventSchema::for_kind(kind).get(field).unwrap().slot).unwrap().0)
    }

    /// The records and the table are two drawings of one layout; should one move, the other must.
    #[test]
    fn records_stand_where_the_schema_says() {
        assert_eq!(offset_of!(CommonRecord, ts_event), at::TS_EVENT);
        assert_eq!(offset_of!(CommonRecord, source), at::SOURCE);
        assert_eq!(offset_of!(CommonRecord, offset), at::OFFSET);
        assert_eq!(offset_of!(CommonRecord, recv_delta), at::RECV_DELTA);
        assert_eq!(offset_of!(CommonRecord, sequence), at::SEQUENCE);
        assert_eq!(offset_of!(CommonRecord, instrument), at::INSTRUMENT);
        assert_eq!(offset_of!(CommonRecord, venue), at::VENUE);
        assert_eq!(offset_of!(CommonRecord, kind_a), at::KIND_A);
        assert_eq!(offset_of!(BboRecord, bid), field_offset(EventKind::Bbo, EventField::Bid));
        assert_eq!(offset_of!(BboRecord, ask), field_offset(EventKind::Bbo, EventField::Ask));
        assert_eq!(offset_of!(BboRecord, bid_qty), field_offset(EventKind::Bbo, EventField::BidQty));
        assert_eq!(offset_of!(BboRecord, ask_qty), field_offset(EventKind::Bbo, EventField::AskQty));
        assert_eq!(offset_of!(TradeRecord, px), field_offset(EventKind::Trade, EventField::Px));
        assert_eq!(offset_of!(TradeRecord, match_id), field_offset(EventKind::Trade, EventField::MatchId));
        assert_eq!(offset_of!(TradeRecord, qty), field_offset(EventKind::Trade, EventField::Qty));
        assert_eq!(offset_of!(TradeRecord, cond), field_offset(EventKind::Trade, EventField::Cond));
        for kind in [EventKind::OrderNew, EventKind::Exec] {
            assert_eq!(offset_of!(OrderRecord, px), field_offset(kind, EventField::Px));
            assert_eq!(offset_of!(OrderRecord, qty), field_offset(kind, EventField::Qty));
            assert_eq!(offset_of!(OrderRecord, trader), field_offset(kind, EventField::Trader));
            assert_eq!(offset_of!(OrderRecord, acct), field_offset(kind, EventField::Acct));
            assert_eq!(offset_of!(OrderRecord, owner), field_offset(kind, EventField::Owner));
            assert_eq!(offset_of!(OrderRecord, firm), field_offset(kind, EventField::Firm));
            assert_eq!(offset_of!(OrderRecord, algo), field_offset(kind, EventField::Algo));
            assert_eq!(offset_of!(OrderRecord, oid), field_offset(kind, EventField::Oid));
        }
        assert_eq!(offset_of!(OrderRecord, id2), field_offset(EventKind::Exec, EventField::MatchId));
        assert_eq!(offset_of!(OrderRecord, id2), field_offset(EventKind::OrderNew, EventField::Parent));
        assert_eq!(offset_of!(OrderRecord, tif_or_cpty), field_offset(EventKind::Exec, EventField::Cpty));
    }
}
