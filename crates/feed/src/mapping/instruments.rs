//! Instruments of events by way of reference data: the part of the mapper that only feeds with such data have.

use super::apply::{View, refused, translate};
use super::plan::{EventPlan, FieldPlan, Op, Plan};
use super::seam::{Message, Refused};
use crate::block::names::Names;
use crate::reference::Instruments;
use unitape_model::{EventBuilder, EventField, NameKind, Refusal, UnixNanos};

/// Whether a field's value is an instrument that reference data knows by another name.
#[inline(always)]
pub(super) fn is_looked_up<I: Instruments>(op: &Op) -> bool {
    I::BY_REFERENCE && op.spec.slot.dict() == Some(NameKind::Instrument)
}

/// Tells the venue and time of an event to what looks up its instruments.
#[inline(always)]
pub(super) fn by_venue<M: Message, I: Instruments>(
    plan: &Plan,
    event: &EventPlan,
    view: &View<'_, M>,
    (by, ts): (&mut I, UnixNanos),
    (plain, whole): (&mut Vec<u8>, &mut Vec<u8>),
) {
    if !I::BY_REFERENCE {
        return;
    }
    let venue = event.fields.iter().find(|f| matches!(f.spec.field, EventField::Venue | EventField::Mic));
    let found = venue.and_then(|f| Some((f, view.get(&f.from).or_else(|| view.get(f.or.as_ref()?))?)));
    // One that its table refuses is refused where it is set.
    by.at(found.and_then(|(f, v)| translate::<M>(plan, f, view.text(v, plain), whole).ok()?), ts);
}

/// Sets an instrument by way of reference data.
#[inline(never)]
pub(super) fn set_looked_up<M: Message, I: Instruments>(
    plan: &Plan,
    field: &FieldPlan,
    view: &View<'_, M>,
    (event, names, by): (&mut EventBuilder<'_>, &mut Names<'_>, &mut I),
    (plain, whole): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), Refused> {
    let Some(found) = view.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| view.get(f))) else {
        return match field.required {
            true => Err(refused::<M>(Refusal::Missing, field, b"")),
            false => Ok(()),
        };
    };
    let value = view.text(found, plain);
    match translate::<M>(plan, field, value, whole)? {
        Some(value) => {
            event.set_text(field.spec, value, &mut by.over(names)).map_err(|r| refused::<M>(r, field, value))
        }
        None => Ok(()),
    }
}
