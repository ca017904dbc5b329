//! Values of fields by their form, for kinds that have no record.

use unitape_model::{Decimal, Event, EventField, EventValue, Price};

/// Returns the price in a field.
pub(crate) fn price(event: &Event<'_>, field: EventField) -> Option<Price> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Price(px)) => Some(px),
        _ => None,
    }
}

/// Returns the decimal in a field.
pub(crate) fn decimal(event: &Event<'_>, field: EventField) -> Option<Decimal> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Decimal(decimal)) => Some(decimal),
        _ => None,
    }
}

/// Returns the id of the name in a field.
pub(crate) fn name_id(event: &Event<'_>, field: EventField) -> Option<u32> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Sym(_, id)) => Some(id),
        _ => None,
    }
}

/// Returns whether a field has this text or code word.
pub(crate) fn has_text(event: &Event<'_>, field: EventField, text: &str) -> bool {
    matches!(event.field(field, &mut [0; 36]), Some(EventValue::Text(value)) if value == text)
}
