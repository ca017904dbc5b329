//! Instruments of events by way of reference data: the part of the mapper that only feeds with such data have.

use super::apply::{EventTarget, MappingInput, TextScratch, field_refusal, translate};
use super::format_adapter::{MessageRefusal, ParsedMessage};
use super::plan::{EventPlan, FieldOp, FieldPlan, MappingPlan};
use crate::reference::InstrumentLookup;
use unitape_model::{EventField, NameKind, Refusal, UnixNanos};

/// Returns whether a field's value is an instrument that reference data may know by another name.
#[inline(always)]
pub(super) fn is_looked_up<I: InstrumentLookup>(op: &FieldOp) -> bool {
    I::BY_REFERENCE && op.spec.slot.dict() == Some(NameKind::Instrument)
}

/// An instrument lookup, and the event time for which it is to answer.
pub(super) struct TimedLookup<'l, I> {
    pub instrument_lookup: &'l mut I,
    pub ts: UnixNanos,
}

/// An event whose instrument `by` resolves before its name gets an id.
pub(super) struct LookupTarget<'e, 'b, I> {
    pub target: EventTarget<'e, 'b>,
    pub instrument_lookup: &'e mut I,
}

/// Passes the venue and time of an event to the instrument lookup.
#[inline(always)]
pub(super) fn set_venue_and_time<M: ParsedMessage, I: InstrumentLookup>(
    plan: &MappingPlan,
    event: &EventPlan,
    view: &MappingInput<'_, M>,
    time: TimedLookup<'_, I>,
    scratch: &mut TextScratch,
) {
    if !I::BY_REFERENCE {
        return;
    }
    let TimedLookup { instrument_lookup: lookup, ts } = time;
    let TextScratch { value_text, suffixed_text, .. } = scratch;
    let venue = event.fields.iter().find(|f| matches!(f.spec.field, EventField::Venue | EventField::Mic));
    let venue_value = venue.and_then(|f| Some((f, view.get(&f.from).or_else(|| view.get(f.or.as_ref()?))?)));
    // A value that its table refuses is refused where the mapper sets it.
    lookup.set_event(
        venue_value
            .and_then(|(f, v)| translate::<M>(plan, f, view.text(v, value_text), suffixed_text).ok()?),
        ts,
    );
}

/// Sets an instrument by way of reference data.
#[inline(never)]
pub(super) fn set_looked_up<M: ParsedMessage, I: InstrumentLookup>(
    plan: &MappingPlan,
    field: &FieldPlan,
    view: &MappingInput<'_, M>,
    target: LookupTarget<'_, '_, I>,
    scratch: &mut TextScratch,
) -> Result<(), MessageRefusal> {
    let LookupTarget { target: EventTarget { event, names }, instrument_lookup: lookup } = target;
    let TextScratch { value_text, suffixed_text, .. } = scratch;
    let Some(field_value) = view.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| view.get(f)))
    else {
        return match field.required {
            true => Err(field_refusal::<M>(Refusal::Missing, field, b"")),
            false => Ok(()),
        };
    };
    let value = view.text(field_value, value_text);
    match translate::<M>(plan, field, value, suffixed_text)? {
        Some(value) => event
            .set_text(field.spec, value, &mut lookup.resolver(names))
            .map_err(|r| field_refusal::<M>(r, field, value)),
        None => Ok(()),
    }
}
