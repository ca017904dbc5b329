//! Decodes the fixed part of an event into the values that books need.

use crate::mbo::{OrderTerms, RareOrderFields};
use crate::mbp::{LevelAction, LevelChange, StoredLevel};
use crate::qty::OrderQuantity;
use crate::value::OrderId;
use std::hash::Hasher as _;
use unitape_model::records::{BboRecord, CommonRecord, OrderRecord};
use unitape_model::schema::{EXP_EXT, EXP_NONE};
use unitape_model::{Event, EventField, EventKind, EventValue, InlineId, Price, Side, flags};
use zerocopy::FromBytes as _;

/// Returns the id of an order, or `None` on a damaged tape.
#[inline]
pub(crate) fn order_id(event: &Event<'_>, order: &OrderRecord) -> Option<OrderId> {
    if order.oid[0] != 0 { Some(OrderId(order.oid)) } else { long_order_id(event) }
}

/// Makes the key of an order id that is in the extension.
#[cold]
fn long_order_id(event: &Event<'_>) -> Option<OrderId> {
    let mut scratch = [0; 36];
    let Some(EventValue::Id(id)) = event.field(EventField::Oid, &mut scratch) else { return None };
    let number;
    let bytes = match id {
        InlineId::Text(t) => t,
        InlineId::Number(n) => {
            number = n.to_le_bytes();
            &number
        }
    };
    let mut key = [0; 24];
    key[0] = OrderId::MARK_HASHED;
    key[1] = u8::from(matches!(id, InlineId::Number(_)));
    key[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    for half in 0..2u8 {
        // Its keys are fixed, so the key is the same on every run.
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u8(half);
        hasher.write(bytes);
        let offset = 8 + usize::from(half) * 8;
        key[offset..offset + 8].copy_from_slice(&hasher.finish().to_le_bytes());
    }
    Some(OrderId(key))
}

/// Reads an event of the order family.
#[inline]
pub(crate) fn terms(event: &Event<'_>, order: &OrderRecord) -> OrderTerms {
    let exp = order.common.kind_b as i8;
    let mut terms = OrderTerms {
        side: Side::from_code(order.side()),
        px: order.px.get(),
        qty: (exp != EXP_NONE).then(|| OrderQuantity { mantissa: order.qty.get(), exponent: exp }),
        is_hidden: None,
        rare_fields: None,
    };
    if event.kind() != EventKind::Exec {
        terms.is_hidden = is_hidden(event, order);
        if event.header().flags() & flags::EXT != 0 {
            extend_terms(event, &mut terms);
        }
    }
    terms
}

/// Adds the values in the extension of an order event to `terms`.
#[inline(never)]
fn extend_terms(event: &Event<'_>, terms: &mut OrderTerms) {
    const LEFT: u16 = EventField::Left as u16;
    const DISPLAY: u16 = EventField::DisplayQty as u16;
    const REASON: u16 = EventField::Reason as u16;
    const REDUCED: u16 = EventField::QtyReduced as u16;
    for (tag, payload) in event.extension_entries() {
        if !matches!(tag, LEFT | DISPLAY | REASON | REDUCED) {
            continue;
        }
        let more_terms = terms.rare_fields.get_or_insert_default();
        let decimal = |b: &[u8]| {
            let b: &[u8; 9] = b.try_into().ok()?;
            let mantissa = i64::from_le_bytes(b[..8].try_into().expect("eight bytes"));
            Some(OrderQuantity { mantissa, exponent: b[8] as i8 })
        };
        match tag {
            LEFT => more_terms.quantity_left = more_terms.quantity_left.or(decimal(payload)),
            DISPLAY => more_terms.display = more_terms.display.or(decimal(payload)),
            REDUCED => more_terms.reduced = more_terms.reduced.or(decimal(payload)),
            _ => {
                more_terms.is_moot |= matches!(payload, b"rejected" | b"done_for_day");
                if payload == b"suspended" {
                    terms.is_hidden = Some(true);
                }
            }
        }
    }
    if let Some(RareOrderFields { display: Some(OrderQuantity { mantissa: 0, .. }), .. }) = terms.rare_fields
    {
        terms.is_hidden = Some(true);
    }
}

/// Returns whether an order can never enter a queue, or `None` if the event does not say.
#[inline]
fn is_hidden(event: &Event<'_>, order: &OrderRecord) -> Option<bool> {
    let tif = order.tif_or_cpty.get().to_le_bytes();
    let (kind, inline) = (&order.id2[16..], order.id2[16] != 0);
    if matches!(&tif, b"IOC\0" | b"FOK\0") {
        return Some(true);
    }
    if inline {
        return Some(kind.starts_with(b"stop") || kind == b"market\0\0");
    }
    if event.header().flags() & flags::EXT != 0 {
        return hidden_by_extension(event).or((tif[0] != 0).then_some(false));
    }
    (tif[0] != 0).then_some(false)
}

/// Returns whether a long order type in the extension hides the order.
#[cold]
fn hidden_by_extension(event: &Event<'_>) -> Option<bool> {
    match event.field(EventField::Type, &mut [0; 36]) {
        Some(EventValue::Text(kind)) => Some(kind.starts_with("stop")),
        _ => None,
    }
}

/// Decodes a `level` event, or returns `None` if it has no action.
#[inline]
pub(crate) fn level(event: &Event<'_>) -> Option<LevelChange> {
    let bytes = event.bytes();
    let common = CommonRecord::ref_from_prefix(bytes).ok()?.0;
    let word =
        |offset: usize| bytes[offset..offset + 8].try_into().map(i64::from_le_bytes).expect("eight bytes");
    let action = match common.kind_a >> 2 & 7 {
        1 => LevelAction::Add,
        2 => LevelAction::Change,
        3 => LevelAction::Delete,
        4 => LevelAction::Clear,
        5 => LevelAction::Set,
        _ => return None,
    };
    let exp = common.kind_b as i8;
    let uint = |field| match event.field(field, &mut [0; 36]) {
        Some(EventValue::UInt(n)) => Some(n),
        _ => None,
    };
    Some(LevelChange {
        action,
        side: Side::from_code(common.kind_a & 3),
        px: word(LEVEL_PX),
        qty: (exp != EXP_NONE).then(|| (word(LEVEL_QTY), exp)),
        orders: uint(EventField::Orders).map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        depth: uint(EventField::Depth),
    })
}

const LEVEL_PX: usize = 40;
const LEVEL_QTY: usize = 48;

/// Decodes the best bid and offer of a `bbo` event. A side without a price or with a quantity of zero is empty. A price
/// without a quantity gets the quantity zero.
#[inline]
pub(crate) fn bbo(event: &Event<'_>) -> Option<[Option<StoredLevel>; 2]> {
    let bbo = BboRecord::from_event(event)?;
    let side = |px: i64, mantissa: u32, exp: u8, field| {
        if px == Price::NONE.0 {
            return None;
        }
        let qty = match exp as i8 {
            EXP_NONE => return Some(StoredLevel { px, qty: (0, 0), orders: u32::MAX }),
            EXP_EXT => wide_quantity(event, field)?,
            exp => (mantissa.into(), exp),
        };
        (qty.0 > 0 && qty.1.unsigned_abs() <= 30).then_some(StoredLevel { px, qty, orders: u32::MAX })
    };
    let common = &bbo.common;
    Some([
        side(bbo.bid.get(), bbo.bid_qty.get(), common.kind_a, EventField::BidQty),
        side(bbo.ask.get(), bbo.ask_qty.get(), common.kind_b, EventField::AskQty),
    ])
}

/// The values of one side in a partial `bbo`. A missing value is unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatedSide {
    pub px: Option<i64>,
    /// Mantissa and exponent. Zero or less means that the side is empty.
    pub qty: Option<(i64, i8)>,
}

/// Reads a `bbo` that states only the fields that it has. Returns `None` for a `bbo` that states both sides.
#[inline]
pub(crate) fn partial_bbo(event: &Event<'_>) -> Option<[StatedSide; 2]> {
    if event.header().flags() & flags::EXT == 0 {
        return None;
    }
    let bbo = BboRecord::from_event(event)?;
    let exp_none = EXP_NONE as u8;
    let lacks_price = bbo.bid.get() == Price::NONE.0 || bbo.ask.get() == Price::NONE.0;
    let lacks_field = lacks_price || bbo.common.kind_a == exp_none || bbo.common.kind_b == exp_none;
    // A `bbo` that has all fields states both sides in any case.
    (lacks_field && event.is_partial()).then(|| stated_sides(event, bbo))
}

#[cold]
fn stated_sides(event: &Event<'_>, bbo: &BboRecord) -> [StatedSide; 2] {
    let side = |px: i64, mantissa: u32, exp: u8, field| StatedSide {
        px: (px != Price::NONE.0).then_some(px),
        qty: match exp as i8 {
            EXP_NONE => None,
            EXP_EXT => wide_quantity(event, field),
            exp => Some((mantissa.into(), exp)),
        }
        .map(|qty| if qty.1.unsigned_abs() <= 30 { qty } else { (0, 0) }),
    };
    let common = &bbo.common;
    [
        side(bbo.bid.get(), bbo.bid_qty.get(), common.kind_a, EventField::BidQty),
        side(bbo.ask.get(), bbo.ask_qty.get(), common.kind_b, EventField::AskQty),
    ]
}

/// Reads a quantity that is too long for the fixed part from the extension.
#[cold]
fn wide_quantity(event: &Event<'_>, field: EventField) -> Option<(i64, i8)> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Decimal(d)) => Some((d.mantissa(), d.exponent())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::schema::{EventSchema, FieldLayout};

    /// Fails if the schema moves a field whose offset is also written here.
    #[test]
    fn levels_stand_where_the_schema_says() {
        let slot = |field| EventSchema::for_kind(EventKind::Level).get(field).unwrap().slot;
        assert_eq!(slot(EventField::Px), FieldLayout::Price { offset: LEVEL_PX as u16 });
        assert_eq!(slot(EventField::Qty), FieldLayout::Decimal { offset: LEVEL_QTY as u16, exp_offset: 39 });
        let FieldLayout::Code { offset: 38, shift: 2, bits: 3, values } = slot(EventField::Action) else {
            panic!()
        };
        assert_eq!(values, ["A", "C", "D", "R", "U"]);
        let order = EventSchema::for_kind(EventKind::OrderNew);
        assert_eq!(order.get(EventField::Type).unwrap().slot, FieldLayout::Text { offset: 120, n: 8 });
        assert_eq!(order.get(EventField::Tif).unwrap().slot, FieldLayout::Text { offset: 76, n: 4 });
    }
}
