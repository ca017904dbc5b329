//! Instruments of events by way of reference data: the part of the mapper that only feeds with such data have.

use super::apply::{MappingInput, field_refusal, translate};
use super::format_adapter::{MessageRefusal, ParsedMessage};
use super::plan::{EventPlan, FieldOp, FieldPlan, MappingPlan};
use crate::block::names::BlockNames;
use crate::reference::InstrumentLookup;
use unitape_model::{EventBuilder, EventField, NameKind, Refusal, UnixNanos};

/// Whether a field's value is an instrument that reference data knows by another name.
#[inline(always)]
pub(super) fn is_looked_up<I: InstrumentLookup>(op: &FieldOp) -> bool {
    I::BY_REFERENCE && op.spec.slot.dict() == Some(NameKind::Instrument)
}

/// Passes the venue and time of an event to the instrument lookup.
#[inline(always)]
pub(super) fn set_venue_and_time<M: ParsedMessage, I: InstrumentLookup>(
    plan: &MappingPlan,
    event: &EventPlan,
    view: &MappingInput<'_, M>,
    (by, ts): (&mut I, UnixNanos),
    (plain, whole): (&mut Vec<u8>, &mut Vec<u8>),
) {
    if !I::BY_REFERENCE {
        return;
    }
    let venue = event.fields.iter().find(|f| matches!(f.spec.field, EventField::Venue | EventField::Mic));
    let found = venue.and_then(|f| Some((f, view.get(&f.from).or_else(|| view.get(f.or.as_ref()?))?)));
    // One that its table refuses is refused where it is set.
    by.set_event(found.and_then(|(f, v)| translate::<M>(plan, f, view.text(v, plain), whole).ok()?), ts);
}

/// Sets an instrument by way of reference data.
#[inline(never)]
pub(super) fn set_looked_up<M: ParsedMessage, I: InstrumentLookup>(
    plan: &MappingPlan,
    field: &FieldPlan,
    view: &MappingInput<'_, M>,
    (event, names, by): (&mut EventBuilder<'_>, &mut BlockNames<'_>, &mut I),
    (plain, whole): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), MessageRefusal> {
    let Some(found) = view.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| view.get(f))) else {
        return match field.required {
            true => Err(field_refusal::<M>(Refusal::Missing, field, b"")),
            false => Ok(()),
        };
    };
    let value = view.text(found, plain);
    match translate::<M>(plan, field, value, whole)? {
        Some(value) => event
            .set_text(field.spec, value, &mut by.resolver(names))
            .map_err(|r| field_refusal::<M>(r, field, value)),
        None => Ok(()),
    }
}
