//! Quotes whose empty sides are unchanged: `empty_side = "unchanged"` of a `bbo` event.
//!
//! ```text
//!  row            event
//!  bid and ask    both sides
//!  ask            the ask, and `partial`: the bid is unchanged
//!  neither        none: the message counts as ignored, unless another event of its rule is written
//! ```

use super::apply::{MappingInput, TextScratch, translate};
use super::format_adapter::ParsedMessage;
use super::plan::{EventPlan, MappingPlan};
use super::{EmptySide, EventConfig, Mapping};
use unitape_model::event::EventValue;
use unitape_model::schema::EventFieldSpec;
use unitape_model::{EventBuilder, EventField, EventKind, EventSchema};

/// The plan of a quote whose empty sides are unchanged.
#[derive(Clone, Debug)]
pub struct PartialQuotePlan {
    /// A quote with a value of each of these fields states both sides: the prices, and the sizes that the mapping reads
    /// anywhere.
    required_fields: Vec<&'static EventFieldSpec>,
}

impl PartialQuotePlan {
    /// Makes the plan of this event; `None` if an empty side is withdrawn.
    ///
    /// # Errors
    /// Fails if the event is no quote, or has nothing that could be unchanged.
    pub(super) fn new(
        mapping: &Mapping,
        kind: EventKind,
        text: &EventConfig,
    ) -> Result<Option<Self>, String> {
        let Some(empty_side) = text.empty_side else { return Ok(None) };
        if kind != EventKind::Bbo {
            return Err(format!(": `empty_side` is for `bbo`, not for `{}`", text.kind));
        }
        if empty_side == EmptySide::Withdrawn {
            return Ok(None);
        }
        if text.fields.contains_key(EventField::Partial.name()) {
            return Err(": `empty_side` and the field `partial` exclude each other".to_owned());
        }
        if !QUOTE_FIELDS.iter().any(|field| text.fields.contains_key(field.name())) {
            return Err(": `empty_side` needs a field of a side: bid, bid_qty, ask, ask_qty".to_owned());
        }
        let quotes = mapping.rule.iter().flat_map(|rule| &rule.event).filter(|event| event.kind == text.kind);
        let is_read = |field: &EventField| {
            matches!(field, EventField::Bid | EventField::Ask)
                || quotes.clone().any(|event| event.fields.contains_key(field.name()))
        };
        let spec = |field| EventSchema::for_kind(kind).get(field).expect("a field of a quote");
        Ok(Some(Self { required_fields: QUOTE_FIELDS.into_iter().filter(is_read).map(spec).collect() }))
    }

    /// Returns whether the quote states both sides with all that the mapping reads of them.
    pub(super) fn is_whole(&self, event: &EventBuilder<'_>) -> bool {
        self.required_fields.iter().all(|spec| event.has(spec))
    }

    /// Marks a quote that states only the fields that it has.
    pub(super) fn mark_partial(event: &mut EventBuilder<'_>) {
        event.set_field(EventField::Partial, EventValue::Bool(true)).expect("a value of its field");
    }
}

impl<M: ParsedMessage> MappingInput<'_, M> {
    /// Returns whether the message or entry has a value of a side of the quote.
    pub(super) fn states_side(
        &self,
        plan: &MappingPlan,
        event: &EventPlan,
        scratch: &mut TextScratch,
    ) -> bool {
        event.fields.iter().filter(|field| QUOTE_FIELDS.contains(&field.spec.field)).any(|field| {
            let value = self.get(&field.from).or_else(|| field.or.as_ref().and_then(|or| self.get(or)));
            let Some(value) = value else { return false };
            let value = self.text(value, &mut scratch.value_text);
            // A value that is refused is one; its refusal follows.
            !matches!(translate::<M>(plan, field, value, &mut scratch.suffixed_text), Ok(None))
        })
    }
}

/// Prices and sizes of the sides.
const QUOTE_FIELDS: [EventField; 4] =
    [EventField::Bid, EventField::BidQty, EventField::Ask, EventField::AskQty];
