//! The books that a refused message may concern, by the rule for it.

use super::apply::{MappingInput, MessageMapper, translate};
use super::format_adapter::ParsedMessage;
use super::plan::{self, ValueSource};
use crate::block::affected_books::{AffectedBooks, changes_books};
use unitape_model::EventField;

impl<R: Copy> MessageMapper<R> {
    /// Returns the books that a refused message may affect: those of the instrument that the first event of its rule
    /// names, or that all events for entries of its groups name. A type whose rules make no book events affects no
    /// books.
    #[cold]
    pub(super) fn affected_books<M: ParsedMessage<Ref = R>>(&mut self, message: &M) -> AffectedBooks {
        let Self { plan, scratch, .. } = self;
        let plan = &*plan;
        let view = MappingInput { message, picked_values: &[], entry_values: &[] };
        let type_value = message.slot(plan.message_type);
        let message_type = type_value.map_or(&b""[..], |v| message.text(v, &mut scratch.suffixed_text));
        let rules: Vec<_> = plan.rules_for(message_type).iter().map(|&i| &plan.rules[i]).collect();
        let of_books = |rule: &&plan::CompiledRule| rule.events.iter().any(|e| changes_books(e.kind));
        let Some(rule) = rules.iter().find(|r| view.holds(&r.conditions, &mut scratch.value_text)) else {
            return if rules.iter().any(of_books) { AffectedBooks::Feed } else { AffectedBooks::Nothing };
        };
        if !of_books(rule) {
            return AffectedBooks::Nothing;
        }
        let mut events = rule.events.iter().filter(|e| changes_books(e.kind));
        // Entries of a group are of one instrument if the message names it for all of them.
        let names_message = |e: &plan::EventPlan| {
            let instr = e.fields.iter().find(|f| f.spec.field == EventField::Instr);
            instr.is_some_and(|f| !matches!(f.from, ValueSource::Entry(_) | ValueSource::Pick(_)))
        };
        let first_event = events.clone().next().filter(|_| events.clone().all(names_message));
        let event = events.find(|e| e.each.is_none()).or(first_event);
        // Where names are looked up, the one on the tape is another.
        let (Some(event), None) = (event, &plan.instrument_master) else { return AffectedBooks::Feed };
        let mut text = |field| {
            let plan_of = event.fields.iter().find(|f| f.spec.field == field)?;
            let picked =
                |from: &&ValueSource| matches!(from, ValueSource::Message(_) | ValueSource::Const(_));
            let from = [Some(&plan_of.from), plan_of.or.as_ref()].into_iter().flatten().filter(picked);
            let field_value = from.filter_map(|from| view.get(from)).next()?;
            let value = view.text(field_value, &mut scratch.value_text);
            let mut buffer = Vec::new();
            translate::<M>(plan, plan_of, value, &mut buffer).ok()?.map(<[u8]>::to_vec)
        };
        let (instrument, venue) = (text(EventField::Instr), text(EventField::Venue));
        AffectedBooks::from_names(instrument.as_deref(), venue.as_deref())
    }
}
