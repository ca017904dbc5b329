//! The prices of an event: what an event of a kind is about, so that one without any is a mistake of mapping and file.

use super::EventConfig;
use unitape_model::{EventField, EventKind};

/// Returns the price fields of an event, as far as the mapping names them. Each list must have at least one source: a
/// quote needs both of its sides, another event one price.
pub(crate) fn price_choices(kind: EventKind, event: &EventConfig) -> Vec<Vec<EventField>> {
    let choices: &[&[EventField]] = match kind {
        EventKind::Bbo => &[&[EventField::Bid], &[EventField::Ask]],
        // Facts and cancellations are complete without a price.
        EventKind::Ref | EventKind::Session | EventKind::OrderCancel | EventKind::QuoteReject => &[],
        _ => &[&[EventField::Px, EventField::StopPx]],
    };
    let has_field = |field: &&EventField| event.fields.contains_key(field.name());
    let choices = choices.iter().map(|fields| fields.iter().filter(has_field).copied().collect());
    choices.filter(|fields: &Vec<EventField>| !fields.is_empty()).collect()
}
