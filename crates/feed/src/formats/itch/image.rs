//! Images of events, made once a block with what does not change from message to message: header, kind, source, venue.
//! A message then costs one copy of an image and a handful of stores into it:
//!
//! ```text
//!  image   ┌header┬  ts  ┬source┬offset┬recv┬seq┬instr┬venue┬side┬exp┬ px ┬qty┬ … ┬ id ┬ … ┐
//!          └──────┴──▲───┴──────┴──▲───┴────┴───┴──▲──┴─────┴─▲──┴─▲─┴─▲──┴─▲─┴───┴─▲──┴───┘
//! ```

use super::config::CheckedItchConfig;
use super::general_path::PRICE_UNIT;
use super::orders::ItchOrderState;
use super::{ItchMessageOrigin, NO_DAY};
use crate::formats::zeros::canonical;
use unitape_codec::itch::DAY_NANOS;
use unitape_model::event::EventValue;
use unitape_model::schema::{TAG_UNMAPPED, at};
use unitape_model::{
    Dictionary, EventBuilder, EventField, EventKind, FrameHeader, InstrumentId, NameKind, UnixNanos, flags,
};

/// Frames of one kind, made beforehand.
#[derive(Debug, Clone)]
pub(super) struct FramePrototypes {
    /// They can be used: the venue has its id, and the day is known.
    pub is_ready: bool,
    pub order_new: [u8; 128],
    pub order_cancel: [u8; 128],
    pub order_amend: [u8; 128],
    pub execution_frame: [u8; 128],
    pub trade: [u8; 64],
}

impl Default for FramePrototypes {
    fn default() -> Self {
        Self {
            is_ready: false,
            order_new: [0; 128],
            order_cancel: [0; 128],
            order_amend: [0; 128],
            execution_frame: [0; 128],
            trade: [0; 64],
        }
    }
}

impl FramePrototypes {
    /// Makes them for a block.
    pub fn make_frames(&mut self, config: &CheckedItchConfig, source: u32, dictionary: &Dictionary) {
        let venue = dictionary.get(NameKind::Venue, config.venue.as_bytes());
        self.is_ready = venue.is_some();
        let Some(venue) = venue else { return };
        self.order_new = frame_image(EventKind::OrderNew, source, venue);
        self.order_cancel = frame_image(EventKind::OrderCancel, source, venue);
        self.order_amend = frame_image(EventKind::OrderAmend, source, venue);
        self.execution_frame = frame_image(EventKind::Exec, source, venue);
        self.trade = frame_image(EventKind::Trade, source, venue);
    }
}

fn frame_image<const N: usize>(kind: EventKind, source: u32, venue: u32) -> [u8; N] {
    let mut out = Vec::with_capacity(N);
    let mut e = EventBuilder::begin(&mut out, kind, UnixNanos(0));
    e.source(source, 0);
    let mut set = |field, value| e.set_field(field, value).expect("of its sort");
    set(EventField::Venue, EventValue::Sym(NameKind::Venue, venue));
    if kind == EventKind::OrderNew {
        set(EventField::Type, EventValue::Text("limit"));
    }
    e.finish(flags::LAST).expect("a short event");
    out.try_into().expect("as long as its kind")
}

/// A frame being filled in.
pub(super) struct PrototypeFrame<'f, const N: usize>(pub &'f mut [u8; N]);

impl<'f, const N: usize> PrototypeFrame<'f, N> {
    /// Appends a frame to the arena: a copy of `image` with its time and offset.
    #[inline(always)]
    pub fn append_frame(
        arena: &'f mut Vec<u8>,
        image: &[u8; N],
        ts: UnixNanos,
        origin: &ItchMessageOrigin,
    ) -> Self {
        arena.extend_from_slice(image);
        Self::from_image(arena.last_chunk_mut().expect("just put there"), ts, origin.offset)
    }

    /// Writes time and offset into a copy of an image.
    #[inline(always)]
    pub fn from_image(image: &'f mut [u8; N], ts: UnixNanos, offset: u64) -> Self {
        let mut frame = PrototypeFrame(image);
        frame.set_bytes(at::TS_EVENT, ts.0.to_le_bytes());
        frame.set_bytes(at::OFFSET, (offset as u32).to_le_bytes());
        frame
    }

    #[inline(always)]
    pub fn set_bytes<const W: usize>(&mut self, offset: usize, bytes: [u8; W]) {
        self.0[offset..offset + W].copy_from_slice(&bytes);
    }

    #[inline(always)]
    pub fn id(&mut self, offset: usize, id: u64) {
        self.set_bytes(offset, (id << 8 | 1).to_le_bytes());
    }

    #[inline(always)]
    pub fn instrument(&mut self, id: InstrumentId) {
        self.set_bytes(at::INSTRUMENT, id.0.to_le_bytes());
    }

    #[inline(always)]
    pub fn price(&mut self, units: u32) {
        self.set_bytes(PX, (i64::from(units) * PRICE_UNIT).to_le_bytes());
    }

    /// Writes the quantity of an order or an execution.
    #[inline(always)]
    pub fn set_shares(&mut self, shares: u32) {
        let (mantissa, exponent) = canonical(shares);
        self.set_bytes(QTY, u64::from(mantissa).to_le_bytes());
        self.0[at::KIND_B] = exponent;
    }

    /// Writes the order's firm, if the feed names it.
    #[inline(always)]
    pub fn set_firm(&mut self, id: u32) {
        self.set_bytes(FIRM, id.to_le_bytes());
    }

    /// Writes the values of the order table: instrument, side, price, firm.
    #[inline(always)]
    pub fn set_order(&mut self, order: &ItchOrderState, id: InstrumentId, firm: u32) {
        self.instrument(id);
        self.0[at::KIND_A] |= order.side;
        self.price(order.px);
        self.set_firm(firm);
    }

    #[inline(always)]
    pub fn header(&mut self, change: impl FnOnce(FrameHeader) -> FrameHeader) {
        change(FrameHeader::read(self.0)).write(self.0);
    }
}

/// Extends the frame by a line that keeps a number under a name, and sets its flags.
#[inline(always)]
pub(super) fn with_extension(header: FrameHeader, last: u8) -> FrameHeader {
    FrameHeader::new_unstamped(
        header.kind(),
        header.flags() & !flags::LAST | flags::EXT | last,
        header.lines() + 1,
    )
}

/// Makes a line of zeros one of an extension that keeps a number.
#[inline(always)]
pub(super) fn keep_number<const K: usize>(line: &mut [u8; 64], name: &[u8; K], number: u64) {
    let count = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    line[..2].copy_from_slice(&TAG_UNMAPPED.to_le_bytes());
    line[2..6].copy_from_slice(&((2 + K + count) as u32).to_le_bytes());
    line[6..8].copy_from_slice(&(K as u16).to_le_bytes());
    line[8..8 + K].copy_from_slice(name);
    write_digits(&mut line[8 + K..8 + K + count], number);
}

/// Puts a line that keeps a number at the end of the arena.
#[inline(always)]
pub(super) fn put_number<const K: usize>(arena: &mut Vec<u8>, name: &[u8; K], number: u64) {
    arena.extend_from_slice(&[0; 64]);
    keep_number(arena.last_chunk_mut().expect("just put there"), name, number);
}

/// Makes a line of zeros one of an extension that has the shares that are taken off an order.
#[inline(always)]
pub(super) fn write_reduction(line: &mut [u8; 64], shares: u32) {
    let (mantissa, exponent) = canonical(shares);
    line[..2].copy_from_slice(&(EventField::QtyReduced as u16).to_le_bytes());
    line[2..6].copy_from_slice(&DECIMAL_BYTES.to_le_bytes());
    line[6..14].copy_from_slice(&u64::from(mantissa).to_le_bytes());
    line[14] = exponent;
}

/// Puts a line with the shares that are taken off an order at the end of the arena.
#[inline(always)]
pub(super) fn put_reduction(arena: &mut Vec<u8>, shares: u32) {
    arena.extend_from_slice(&[0; 64]);
    write_reduction(arena.last_chunk_mut().expect("just put there"), shares);
}

/// Fills in as many digits, two at a time.
#[inline(always)]
fn write_digits(mut into: &mut [u8], mut number: u64) {
    while let [rest @ .., tens, ones] = into {
        [*tens, *ones] = PAIRS[(number % 100) as usize];
        (into, number) = (rest, number / 100);
    }
    if let [ones] = into {
        *ones = b'0' + (number % 10) as u8;
    }
}

const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut n) = ([[0; 2]; 100], 0);
    while n < 100 {
        pairs[n] = [b'0' + n as u8 / 10, b'0' + n as u8 % 10];
        n += 1;
    }
    pairs
};

impl PrototypeFrame<'_, 64> {
    #[inline(always)]
    pub fn print(&mut self, id: InstrumentId, px: u32, shares: u32, match_number: u64) {
        self.instrument(id);
        self.price(px);
        let (mantissa, exponent) = canonical(shares);
        self.set_bytes(TRADE_QTY, mantissa.to_le_bytes());
        self.0[at::KIND_B] = exponent;
        self.id(TRADE_MATCH, match_number);
    }
}

/// Clears the flag of the message's last frame: more frames follow.
#[inline(always)]
pub(super) fn without_last(header: FrameHeader) -> FrameHeader {
    FrameHeader::new_unstamped(header.kind(), header.flags() & !flags::LAST, header.lines())
}

/// Computes the event time; `None` if there is no such time of day, or if the day is unknown.
#[inline(always)]
pub(super) fn event_time(nanos: u64, origin: &ItchMessageOrigin) -> Option<UnixNanos> {
    (nanos < DAY_NANOS && origin.midnight != NO_DAY).then(|| UnixNanos(origin.midnight + nanos as i64))
}

/// Returns whether an id fits its field as a number.
#[inline(always)]
pub(super) fn fits_number(id: u64) -> bool {
    id >> 56 == 0
}

/// Bytes of a decimal in an extension: mantissa and exponent.
const DECIMAL_BYTES: u32 = 9;

/// Places in frames; the tests hold them against the schema.
const PX: usize = 40;
const QTY: usize = 48;
const FIRM: usize = 68;
pub(super) const OID: usize = 80;
pub(super) const MATCH_ID: usize = 104;
const TRADE_MATCH: usize = 48;
const TRADE_QTY: usize = 56;
pub(super) const LIQ_ADDED: u8 = 1 << 6;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{EventSchema, FieldLayout};

    /// Guards against a moved field: these offsets are written down twice, so they must follow the schema's table.
    #[test]
    fn places_stand_where_the_schema_says() {
        let slot = |kind, field| EventSchema::for_kind(kind).get(field).unwrap().slot;
        for kind in [EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec] {
            assert_eq!(slot(kind, EventField::Px), FieldLayout::Price { offset: PX as u16 });
            assert_eq!(
                slot(kind, EventField::Qty),
                FieldLayout::Decimal { offset: QTY as u16, exp_offset: at::KIND_B as u16 }
            );
            assert_eq!(slot(kind, EventField::Oid), FieldLayout::Id { offset: OID as u16, n: 24 });
            assert_eq!(
                slot(kind, EventField::Firm),
                FieldLayout::Sym { dict: NameKind::Firm, offset: FIRM as u16 }
            );
        }
        assert_eq!(
            slot(EventKind::Exec, EventField::MatchId),
            FieldLayout::Id { offset: MATCH_ID as u16, n: 24 }
        );
        assert!(
            matches!(slot(EventKind::Exec, EventField::Liq), FieldLayout::Code { offset: 38, shift: 6, values, .. } if values[0] == "A")
        );
        assert_eq!(
            slot(EventKind::Trade, EventField::MatchId),
            FieldLayout::Id { offset: TRADE_MATCH as u16, n: 8 }
        );
        assert_eq!(
            slot(EventKind::Trade, EventField::Qty),
            FieldLayout::DecimalNarrow { offset: TRADE_QTY as u16, exp_offset: at::KIND_B as u16 }
        );
        assert!(matches!(
            slot(EventKind::Trade, EventField::Side),
            FieldLayout::Code { offset: 38, shift: 0, .. }
        ));
    }

    #[test]
    fn numbers_are_kept_as_text() {
        for n in [0, 7, 10, 99, 100, 4_294_967_295, u64::MAX] {
            let mut line = [0; 64];
            keep_number(&mut line, b"left", n);
            let text = n.to_string();
            assert_eq!(line[8..12 + text.len()], *format!("left{text}").as_bytes());
            assert!(line[12 + text.len()..].iter().all(|b| *b == 0));
            assert_eq!(usize::from(line[2]), 6 + text.len());
        }
    }
}
